//! SET.

use sheaf_table::Value;

use crate::error::{Result, SqlError};
use crate::parser::statement::{Assignment, Scope, SetValue};
use crate::result::ResultSink;
use crate::session::Session;
use crate::transaction::{Isolation, NextTransaction};
use crate::variables::{self, NewValue, Truncated, VariableValue};

impl From<Value> for NewValue {
    fn from(value: Value) -> NewValue {
        match value {
            Value::Null => NewValue::Null,
            Value::Text(text) => NewValue::Text(text),
            Value::Bytes(bytes) => NewValue::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Value::Float(number) => NewValue::Float(number.into()),
            Value::Double(number) => NewValue::Float(number),
            Value::Decimal { unscaled, scale } => {
                NewValue::Float(unscaled as f64 / 10f64.powi(scale.into()))
            }
            value => match value.as_i128() {
                Some(number) => NewValue::Integer(number),
                None => NewValue::Text(value.to_string()),
            },
        }
    }
}

impl Session {
    /// Assigns in order; as in MySQL, either all assignments of system variables happen or none.
    pub(crate) fn set(
        &mut self,
        assignments: Vec<Assignment>,
        text: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let session_before = self.variables.clone();
        let globals_before = self.engine.globals();
        for assignment in assignments {
            if let Err(error) = self.assign(assignment, text) {
                self.variables = session_before;
                self.engine
                    .change_globals(|globals| *globals = globals_before);
                self.follow_sync_log("sync_log")?;
                return Err(error);
            }
        }
        // The configuration of plans may depend on what was set.
        self.task = None;
        self.ok(sink, 0, String::new())
    }

    fn assign(&mut self, assignment: Assignment, text: &str) -> Result<()> {
        match assignment {
            Assignment::System { scope, name, value } => {
                let new = match value {
                    SetValue::Default => NewValue::Default,
                    SetValue::Word(word) => NewValue::Text(word),
                    SetValue::Expression(expression) => self.evaluate(&expression, text)?.into(),
                };
                self.assign_system(scope, &name, new)
            }
            Assignment::User { name, value } => {
                let value = self.evaluate(&value, text)?;
                self.set_user_variable(&name, value)
            }
            Assignment::Names {
                character_set,
                collation,
            } => {
                let character_set =
                    character_set.map_or(Ok("utf8mb4"), |name| variables::character_set(&name))?;
                let collation = match collation {
                    Some(name) => variables::collation(&name)?.1,
                    None => variables::default_collation(character_set),
                };
                if collation.split('_').next() != Some(character_set) {
                    return Err(SqlError::new(
                        1253,
                        "42000",
                        format!(
                            "COLLATION '{collation}' is not valid for CHARACTER SET '{character_set}'"
                        ),
                    ));
                }
                self.set_connection_texts(character_set, collation);
                Ok(())
            }
            Assignment::CharacterSet(name) => {
                let character_set =
                    name.map_or(Ok("utf8mb4"), |name| variables::character_set(&name))?;
                let collation = variables::default_collation(character_set);
                self.set_connection_texts(character_set, collation);
                Ok(())
            }
        }
    }

    fn set_connection_texts(&mut self, character_set: &str, collation: &str) {
        for name in [
            "character_set_client",
            "character_set_connection",
            "character_set_results",
        ] {
            self.variables
                .set_internally(name, VariableValue::Text(character_set.to_string()));
        }
        self.variables.set_internally(
            "collation_connection",
            VariableValue::Text(collation.to_string()),
        );
    }

    fn assign_system(&mut self, scope: Scope, name: &str, new: NewValue) -> Result<()> {
        if matches!(name, "last_insert_id" | "identity") && scope != Scope::Global {
            let NewValue::Integer(number) = new else {
                return Err(SqlError::wrong_type_for_variable(name));
            };
            self.last_insert_id = u64::try_from(number).unwrap_or(0);
            return Ok(());
        }
        let session = &mut self.variables;
        let truncated = self
            .engine
            .change_globals(|globals| variables::assign(session, globals, scope, name, &new))?;
        self.follow_sync_log(name)?;
        if let Some(truncated) = truncated {
            self.warn_truncated(&truncated);
        }
        if name == "autocommit" && !self.variables.autocommit() {
            self.warnings.note(
                1235,
                "autocommit=0 has no effect yet: each statement is atomic and takes effect when it ends",
            );
        }
        Ok(())
    }

    /// If it was this variable that was set: commits wait for the disk from now on as it says.
    fn follow_sync_log(&self, name: &str) -> Result<()> {
        let storage = self.engine.storage();
        if let Some(sync_log) = variables::chosen_sync_log(&self.engine.globals(), name)
            && sync_log != storage.sync_log()
        {
            storage.set_sync_log(sync_log)?;
            self.engine
                .change_globals(|globals| variables::show_sync_log(globals, sync_log));
        }
        Ok(())
    }

    pub(crate) fn warn_truncated(&mut self, truncated: &Truncated) {
        let Truncated { variable, value } = truncated;
        let message = format!("Truncated incorrect {variable} value: '{value}'");
        self.warnings.warn(1292, message);
    }

    pub(crate) fn set_transaction(
        &mut self,
        scope: Scope,
        isolation: Option<String>,
        read_only: Option<bool>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        // Without a scope: for the next transaction only.
        if scope == Scope::Default {
            if self.in_transaction() {
                return Err(SqlError::transaction_in_progress());
            }
            self.next_transaction = NextTransaction {
                isolation: isolation.as_deref().map(Isolation::of_name),
                read_only,
            };
            return self.ok(sink, 0, String::new());
        }
        if let Some(isolation) = isolation {
            self.assign_system(scope, "transaction_isolation", NewValue::Text(isolation))?;
        }
        if let Some(read_only) = read_only {
            self.assign_system(
                scope,
                "transaction_read_only",
                NewValue::Integer(read_only.into()),
            )?;
        }
        self.ok(sink, 0, String::new())
    }
}
