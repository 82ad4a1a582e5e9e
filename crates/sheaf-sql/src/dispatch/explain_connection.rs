//! EXPLAIN FOR CONNECTION: the plan that another session is running.
//!
//! A plan of operators is shown while it runs, with how far it has come. A direct plan leaves nothing for others while
//! it runs. So the statement is planned again from its text, by the session that asks:
//!
//! ```text
//!   text, database         what SHOW PROCESSLIST knows
//!   variables              what the other session told when it assigned some: sql_mode, character sets, switches
//!      -> direct plan -> described without values: `?` stands for what the statement is given
//! ```
//!
//! No row is locked or read for it, and a walk that may be too long is not tried. The text of a long statement is not
//! known to its end, temporary tables are known to their own session alone, and a table whose definition changes is not
//! waited for: then nothing is shown.

use std::sync::Arc;

use sheaf_optimizer::Explanation;
use sheaf_types::error::codes;

use super::explain::{Change, changed, empty, inserted, shown};
use crate::direct::{RunBy, describe_direct};
use crate::error::{Result, SqlError};
use crate::parser::statement::{ExplainFormat, Statement};
use crate::parser::text_size::begins_with;
use crate::parser::{self, Parameters, scan};
use crate::query::rows::Rows;
use crate::session::{Session, SessionHandle};
use crate::variables::{Isolation, VariableValue};

impl Session {
    pub(super) fn explain_connection(&mut self, id: u64, format: ExplainFormat) -> Result<Rows> {
        let handle = self.engine.session_handle(id)?;
        if let Some(plan) = handle.running_plan() {
            return Ok(shown(&plan.explain_progress(), format));
        }
        match handle.activity().statement {
            Some(statement) if !is_explainable(&statement) => Err(not_explainable()),
            Some(_) => {
                let explanation = self.planned_as_by(&handle)?;
                Ok(explanation.map_or_else(|| empty(format), |plan| shown(&plan, format)))
            }
            // A session that runs nothing has an empty plan.
            None => Ok(empty(format)),
        }
    }

    /// The direct plan of what another session runs; `None` if it has none, or not all is known of it.
    fn planned_as_by(&mut self, other: &SessionHandle) -> Result<Option<Explanation>> {
        let (Some(text), Some(mut variables)) = (other.whole_statement(), other.told_variables())
        else {
            return Ok(None);
        };
        variables.set_internally("lock_wait_timeout", VariableValue::Integer(0));
        if self.temporary.has_any() {
            return Ok(None);
        }
        let own = (self.variables.clone(), self.database.clone());
        let (reading, warnings) = (self.statement.reading.take(), self.warnings.clone());
        // After a panic the end of the request gives them back.
        let (own_variables, own_database) = own.clone();
        self.statement.own_variables.get_or_insert(own_variables);
        self.statement.own_database.get_or_insert(own_database);
        self.variables = variables;
        self.database = other.activity().database;
        self.workers.forget_task();
        let explanation = self.planned_directly(&text);
        (self.variables, self.database) = own;
        (self.statement.reading, self.warnings) = (reading, warnings);
        self.findings.begin();
        self.workers.forget_task();
        let is_locked =
            |error: &SqlError| error.is(codes::LOCK_WAIT_TIMEOUT) || error.is(codes::LOCK_DEADLOCK);
        match explanation {
            Err(error) if is_locked(&error) => Ok(None),
            explanation => explanation,
        }
    }

    /// The direct plan of a text, whoever runs it.
    fn planned_directly(&mut self, text: &str) -> Result<Option<Explanation>> {
        let text = scan::resolve_executable_comments(text);
        let Some((range, _)) = scan::first_statement(&text) else {
            return Ok(None);
        };
        let text = &text[range];
        let dialect = self.dialect();
        let planning = Arc::clone(self.workers.planning());
        let parsed = planning.during(|| {
            let whole = parser::parse_statement(text, &dialect).map(|statement| (statement, 0));
            // Of a prepared statement the values are not known.
            whole.or_else(|_| parser::parse_with_parameters(text, &dialect, Parameters::Numbered))
        });
        let Ok((statement, parameters)) = parsed else {
            return Ok(None);
        };
        let locks = match &statement {
            Statement::Query(query) => !query.locks.is_empty(),
            _ => true,
        };
        // In a transaction plain reads would lock what they read, which operators do.
        if !locks && self.variables.transaction_isolation() == Isolation::Serializable {
            return Ok(None);
        }
        let plan = planning.during(|| self.direct_plan(&statement, (text, parameters)));
        let Some(plan) = plan else {
            return Ok(None);
        };
        let explanation = match describe_direct(self, (&plan, RunBy::Another))? {
            Some(described) => described.explanation,
            None if plan.reads_table() => return Ok(None),
            None => Explanation::default(),
        };
        let change = match &statement {
            Statement::Insert(insert) => Some(inserted(insert)),
            _ => plan
                .changed_tables()
                .map(|(kind, tables)| Change { kind, tables }),
        };
        Ok(Some(changed(explanation, change).as_direct()))
    }
}

/// Error 3012.
fn not_explainable() -> SqlError {
    SqlError::new(
        codes::EXPLAIN_NOT_SUPPORTED,
        "EXPLAIN FOR CONNECTION command is supported only for SELECT/UPDATE/INSERT/DELETE/REPLACE",
    )
}

fn is_explainable(statement: &str) -> bool {
    let words = [
        "SELECT", "WITH", "TABLE", "VALUES", "UPDATE", "INSERT", "DELETE", "REPLACE",
    ];
    begins_with(statement, &words)
}
