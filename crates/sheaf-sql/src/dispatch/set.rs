//! SET.
//!
//! All values of a statement are computed before any is assigned, so that a statement that fails changes nothing.
//! Variables of the session are assigned one by one. Those that are global go through `GlobalAssignments`, a copy that
//! takes the place of the engine's at the end; PERSIST writes them down for the next start as well.

use sheaf_storage::sync::atomic::Ordering;
use sheaf_types::Value;
use sheaf_types::error::codes;
use sheaf_types::number::{decimal_to_double, wide_decimal_to_double};

use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::statement::{Assignment, Persist, Scope, SetValue};
use crate::replica::check_outside_transaction;
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::variables::persisted::Persisted;
use crate::variables::{
    self, GTID_NEXT, GTID_PURGED, Isolation, NewValue, NextTransaction, RESTRICTED, SaidPurged,
    TO_SET_GLOBALS, Truncated, VariableValue, Variables,
};

impl From<Value> for NewValue {
    fn from(value: Value) -> NewValue {
        match value {
            Value::Null => NewValue::Null,
            Value::Text(text) => NewValue::Text(text),
            Value::Bytes(bytes) => NewValue::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Value::Float(number) => NewValue::Float(number.into()),
            Value::Double(number) => NewValue::Float(number),
            Value::Decimal { unscaled, scale } => {
                NewValue::Float(decimal_to_double(unscaled, scale))
            }
            Value::WideDecimal { unscaled, scale } => {
                NewValue::Float(wide_decimal_to_double(unscaled.into(), scale))
            }
            value => match value.as_i128() {
                Some(number) => NewValue::Integer(number),
                None => NewValue::Text(value.to_string()),
            },
        }
    }
}

/// What a statement assigns to global variables. Others see it when all of the statement was found right.
struct GlobalAssignments {
    /// The global variables as they would be.
    draft: Variables,
    assigned: Vec<(String, NewValue)>,
    /// What is kept for the next start, by name.
    persisted: Vec<(&'static str, String)>,
    /// Transactions that count as executed from now on.
    purged: Vec<SaidPurged>,
}

impl GlobalAssignments {
    fn new(globals: Variables) -> GlobalAssignments {
        GlobalAssignments {
            draft: globals,
            assigned: Vec::new(),
            persisted: Vec::new(),
            purged: Vec::new(),
        }
    }
}

/// An assignment whose value is known.
enum Assigned {
    System {
        scope: Scope,
        persist: Persist,
        name: String,
        value: NewValue,
    },
    User {
        name: String,
        value: Value,
    },
    /// SET NAMES and SET CHARACTER SET.
    Texts {
        character_set: &'static str,
        collation: &'static str,
    },
}

impl Session {
    /// As in MySQL, all values are found out first, and then assigned in order: either all of them are, or none. Global
    /// variables come last.
    pub(crate) fn set(
        &mut self,
        assignments: Parsed<'_, Vec<Assignment>>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.assign_all(assignments)?;
        self.ok(sink, 0, String::new())
    }

    pub(crate) fn assign_all(&mut self, assignments: Parsed<'_, Vec<Assignment>>) -> Result<()> {
        self.findings.watch_divisions(self.variables.sql_mode());
        let Parsed {
            ast: assignments,
            text,
        } = assignments;
        let assigned = assignments
            .into_iter()
            .map(|assignment| self.value_of(Parsed::new(assignment, text)))
            .collect::<Result<Vec<_>>>()?;
        self.take_assigned_variables();
        let before = (self.variables.clone(), self.outcome.last_insert_id);
        let next_gtid = self.transactions.next_gtid;
        let numbers = self.outcome.seeded_numbers.place();
        let mut user_variables = Vec::new();
        let mut globals = GlobalAssignments::new(self.engine.globals());
        let outcome = assigned
            .into_iter()
            .try_for_each(|assigned| self.assign(assigned, &mut globals, &mut user_variables))
            .and_then(|()| self.assign_globals(globals));
        if let Err(error) = outcome {
            (self.variables, self.outcome.last_insert_id) = before;
            self.transactions.next_gtid = next_gtid;
            self.outcome.seeded_numbers.restore(numbers);
            for (name, value) in user_variables.into_iter().rev() {
                self.user_variables.restore(name, value);
            }
            return Err(error);
        }
        // The configuration of plans may depend on what was set.
        self.workers.forget_task();
        self.handle.tell_variables(&self.variables);
        Ok(())
    }

    fn value_of(&mut self, assignment: Parsed<'_, Assignment>) -> Result<Assigned> {
        let Parsed {
            ast: assignment,
            text,
        } = assignment;
        Ok(match assignment {
            Assignment::System {
                scope,
                persist,
                name,
                value,
            } => Assigned::System {
                scope,
                persist,
                name,
                value: match value {
                    SetValue::Default => NewValue::Default,
                    SetValue::Word(word) => NewValue::Text(word),
                    SetValue::Expression(expression) => {
                        self.evaluate(Parsed::new(&expression, text))?.into()
                    }
                },
            },
            Assignment::User { name, value } => Assigned::User {
                name,
                value: self.evaluate_variable(Parsed::new(&value, text))?,
            },
            Assignment::Names {
                character_set,
                collation,
            } => {
                let character_set = character_set.map_or(Ok("utf8mb4"), |name| {
                    variables::statement_character_set(&name)
                })?;
                Assigned::Texts {
                    character_set,
                    collation: variables::collation_within(character_set, collation.as_deref())?,
                }
            }
            Assignment::CharacterSet(name) => {
                let character_set = name.map_or(Ok("utf8mb4"), |name| {
                    variables::statement_character_set(&name)
                })?;
                Assigned::Texts {
                    character_set,
                    collation: variables::default_collation(character_set),
                }
            }
        })
    }

    /// `user_variables` gets what the user variables were before, by name.
    fn assign(
        &mut self,
        assigned: Assigned,
        globals: &mut GlobalAssignments,
        user_variables: &mut Vec<(String, Option<Value>)>,
    ) -> Result<()> {
        match assigned {
            Assigned::System {
                persist: Persist::Only,
                name,
                value,
                ..
            } => self.keep_for_next_start(&name, value, globals),
            Assigned::System {
                scope,
                persist,
                name,
                value,
            } => {
                if persist != Persist::No {
                    check_can_persist(&name)?;
                }
                self.assign_system(scope, &name, value, globals)?;
                match persist {
                    Persist::No => Ok(()),
                    Persist::AndSet | Persist::Only => {
                        globals.persisted.push(globals.draft.name_and_text(&name)?);
                        Ok(())
                    }
                }
            }
            Assigned::User { name, value } => {
                let before = self.user_variables.set(&name, value)?;
                user_variables.push((name, before));
                Ok(())
            }
            Assigned::Texts {
                character_set,
                collation,
            } => {
                self.variables
                    .set_connection_texts(character_set, collation);
                Ok(())
            }
        }
    }

    fn assign_system(
        &mut self,
        scope: Scope,
        name: &str,
        new: NewValue,
        globals: &mut GlobalAssignments,
    ) -> Result<()> {
        if RESTRICTED.contains(&name) && scope != Scope::Global {
            self.client.check_one_of(TO_SET_GLOBALS)?;
        }
        if matches!(name, "last_insert_id" | "identity") && scope != Scope::Global {
            let NewValue::Integer(number) = new else {
                return Err(SqlError::wrong_type_for_variable(name));
            };
            self.outcome.last_insert_id = u64::try_from(number).unwrap_or(0);
            return Ok(());
        }
        if name == "insert_id" && scope != Scope::Global {
            let NewValue::Integer(number) = new else {
                return Err(SqlError::wrong_type_for_variable(name));
            };
            let chosen = u64::try_from(number).unwrap_or(0);
            self.outcome
                .chosen_insert_id
                .store(chosen, Ordering::Relaxed);
            return Ok(());
        }
        let is_seed = matches!(name, "rand_seed1" | "rand_seed2") && scope != Scope::Global;
        if is_seed && matches!(new, NewValue::Default) {
            return Err(SqlError::new(
                codes::NO_DEFAULT,
                format!("Variable '{name}' doesn't have a default value"),
            ));
        }
        if name == GTID_NEXT && scope != Scope::Global {
            return self.set_gtid_next(&new);
        }
        if name == GTID_PURGED && scope == Scope::Global {
            check_outside_transaction(name, self.transactions.is_open_for_more())?;
            globals.purged.push(SaidPurged::of(&new)?);
            return Ok(());
        }
        if name == "sql_log_bin" && self.transactions.is_open_for_more() {
            return Err(SqlError::new(
                codes::INSIDE_TRANSACTION_PREVENTS_SWITCH_SQL_LOG_BIN,
                "Cannot modify @@session.sql_log_bin inside a transaction",
            ));
        }
        let (new, truncated) = within_memory(&self.engine, name, new);
        let (session, draft) = (&mut self.variables, &mut globals.draft);
        let truncated = variables::assign(session, draft, scope, name, &new)?.or(truncated);
        let target = match scope {
            Scope::Global => draft,
            _ => session,
        };
        if scope == Scope::Global {
            let is_on = || matches!(target.get(name), Ok(VariableValue::Bool(true)));
            self.engine.check_secure_transport(name, is_on)?;
        }
        // A limit that is set is meant.
        if name == "max_join_size" && scope != Scope::Global {
            let is_default = matches!(new, NewValue::Default);
            target.set_internally("sql_big_selects", VariableValue::Bool(is_default));
        }
        if is_seed {
            self.outcome.take_seed(name, target);
        }
        let without_effect = variables::without_effect(target, name);
        let deprecation = match name {
            "sql_mode" => target.sql_mode().deprecation(),
            _ => None,
        };
        if scope == Scope::Global {
            globals.assigned.push((name.to_string(), new));
        }
        if let Some(truncated) = truncated {
            self.warnings.warn_truncated(&truncated);
        }
        if let Some(message) = without_effect {
            self.warnings.warn(codes::NOT_SUPPORTED_YET, message);
        }
        if let Some(message) = deprecation {
            self.warnings.warn(codes::WARN_DEPRECATED_SQLMODE, message);
        }
        Ok(())
    }

    /// SET PERSIST_ONLY: the value is tested as if it were set.
    fn keep_for_next_start(
        &mut self,
        name: &str,
        new: NewValue,
        globals: &mut GlobalAssignments,
    ) -> Result<()> {
        if variables::is_read_only(name)? {
            return Err(SqlError::new(
                codes::INCORRECT_GLOBAL_LOCAL_VAR,
                format!("Variable '{name}' is a non persistent read only variable"),
            ));
        }
        check_can_persist(name)?;
        let mut unset = GlobalAssignments::new(globals.draft.clone());
        self.assign_system(Scope::Global, name, new, &mut unset)?;
        unset.draft.check_slow_log(name)?;
        globals.persisted.push(unset.draft.name_and_text(name)?);
        Ok(())
    }

    /// Assigns global variables as a configuration says: all of them, or none. Returns what the assignments warn of, or
    /// what is wrong with them.
    pub(crate) fn assign_configured(
        &mut self,
        assignments: &[(&str, &str)],
    ) -> std::result::Result<Vec<String>, Vec<String>> {
        let mut globals = GlobalAssignments::new(self.engine.globals());
        let (mut warnings, mut faults) = (Vec::new(), Vec::new());
        for (name, value) in assignments {
            let name = name.to_ascii_lowercase();
            self.clear_warnings();
            let assigned = check_can_persist(&name)
                .and_then(|()| variables::of_configuration(&name, value))
                .and_then(|new| self.assign_system(Scope::Global, &name, new, &mut globals));
            if let Err(error) = assigned {
                faults.push(variables::said_of(&name, value, &error));
            }
            let kept = self.warnings.kept().iter();
            warnings.extend(kept.map(|warning| format!("{name} = {value}: {}", warning.message)));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        match self.assign_globals(globals) {
            Ok(()) => Ok(warnings),
            Err(error) => Err(vec![error.to_string()]),
        }
    }

    /// RESET PERSIST: forgets what is kept of a variable, or of all.
    pub(crate) fn reset_persist(
        &mut self,
        name: Option<&str>,
        if_exists: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let is_absent = self.engine.change_persisted(|persisted| {
            let Some(name) = name else {
                persisted.clear();
                return Ok(None);
            };
            let found = persisted.remove(variables::known_name(name).unwrap_or(name));
            let absent = format!("Variable {name} does not exist in persisted config file");
            match found {
                Some(_) => Ok(None),
                None if if_exists => Ok(Some(absent)),
                None => Err(SqlError::new(codes::VAR_DOES_NOT_EXIST, absent)),
            }
        })?;
        if let Some(message) = is_absent {
            self.warnings.warn(codes::VAR_DOES_NOT_EXIST, message);
        }
        self.ok(sink, 0, String::new())
    }

    /// Keeps values for the next start.
    fn persist(&self, values: Vec<(&'static str, String)>) -> Result<()> {
        let account = self.client.account_name();
        let set_micros = u64::try_from(self.statement.start_micros).unwrap_or(0);
        self.engine.change_persisted(|persisted| {
            for (name, value) in values {
                let one = Persisted {
                    value,
                    user: account.user.clone(),
                    host: account.host.clone(),
                    set_micros,
                };
                persisted.insert(name.to_string(), one);
            }
            Ok(())
        })
    }

    /// Assigns what was checked before. Other sessions have not seen anything of it, and what they have assigned
    /// meanwhile stays.
    fn assign_globals(&mut self, globals: GlobalAssignments) -> Result<()> {
        let GlobalAssignments {
            draft,
            assigned,
            persisted,
            purged,
        } = globals;
        // What may fail comes before the others.
        for said in purged {
            self.engine.purge_gtids(said)?;
        }
        if assigned.is_empty() && persisted.is_empty() {
            return Ok(());
        }
        for (name, _) in &assigned {
            draft.check_slow_log(name)?;
        }
        let sync_log = assigned
            .iter()
            .rev()
            .find_map(|(name, _)| variables::chosen_sync_log(&draft, name));
        let storage = self.engine.storage();
        let sync_log_before = storage.sync_log();
        if let Some(sync_log) = sync_log
            && sync_log != sync_log_before
        {
            storage.set_sync_log(sync_log)?;
        }
        if let Err(error) = self.persist(persisted) {
            if storage.sync_log() != sync_log_before {
                storage.set_sync_log(sync_log_before)?;
            }
            return Err(error);
        }
        let session = &mut self.variables;
        self.engine.change_globals(|globals| -> Result<()> {
            for (name, new) in &assigned {
                variables::assign(session, globals, Scope::Global, name, new)?;
            }
            if let Some(sync_log) = sync_log {
                variables::show_sync_log(globals, sync_log);
            }
            Ok(())
        })
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
            if self.transactions.is_open() {
                return Err(SqlError::transaction_in_progress());
            }
            self.transactions.next = NextTransaction {
                isolation: isolation.as_deref().map(Isolation::of_name),
                read_only,
            };
            return self.ok(sink, 0, String::new());
        }
        let mut globals = GlobalAssignments::new(self.engine.globals());
        if let Some(isolation) = isolation {
            let isolation = NewValue::Text(isolation);
            self.assign_system(scope, "transaction_isolation", isolation, &mut globals)?;
        }
        if let Some(read_only) = read_only {
            let read_only = NewValue::Integer(read_only.into());
            self.assign_system(scope, "transaction_read_only", read_only, &mut globals)?;
        }
        self.assign_globals(globals)?;
        self.ok(sink, 0, String::new())
    }
}

impl Variables {
    fn set_connection_texts(&mut self, character_set: &str, collation: &str) {
        for name in [
            "character_set_client",
            "character_set_connection",
            "character_set_results",
        ] {
            self.set_internally(name, VariableValue::Text(character_set.to_string()));
        }
        self.set_internally(
            "collation_connection",
            VariableValue::Text(collation.to_string()),
        );
    }
}

/// Error 1238 for what each start finds out by itself.
fn check_can_persist(name: &str) -> Result<()> {
    match name {
        GTID_PURGED => Err(SqlError::new(
            codes::INCORRECT_GLOBAL_LOCAL_VAR,
            format!("Variable '{name}' is a non persistent variable"),
        )),
        _ => Ok(()),
    }
}

/// A value that the engine has memory for.
fn within_memory(engine: &Engine, name: &str, new: NewValue) -> (NewValue, Option<Truncated>) {
    let most = engine.most_connections() as i128;
    match new {
        NewValue::Integer(connections) if name == "max_connections" && connections > most => {
            let truncated = Truncated {
                variable: name.to_string(),
                value: connections.to_string(),
            };
            (NewValue::Integer(most), Some(truncated))
        }
        new => (new, None),
    }
}
