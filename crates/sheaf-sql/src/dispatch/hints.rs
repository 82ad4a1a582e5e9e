//! Optimizer hints that are about the statement as a whole: SET_VAR, MAX_EXECUTION_TIME and RESOURCE_GROUP; and the
//! warnings of all hints.
//!
//! SET_VAR assigns variables of the session before the statement is planned, and the session has its own back when the
//! statement is over, however it ended. The hints are those of the first query block; others are left to the planner
//! (`sheaf-frontend/src/bind/hints.rs`). A statement with hints has no direct plan.

use std::collections::BTreeSet;

use sheaf_types::error::codes;

use super::set_statement::forget_set_statement;
use crate::error::SqlError;
use crate::parser::hint::{Hint, HintValue, HintWarning, hints_of};
use crate::parser::statement::Scope;
use crate::resource_groups::enter_hinted_group;
use crate::session::Session;
use crate::session::warnings::Warnings;
use crate::statement::properties::Hints;
use crate::variables::{self, NewValue, VariableValue};

/// The variables that SET_VAR may assign: those of MySQL's manual, "Variable-Setting Hint Syntax", that exist here, and
/// the planner's own.
const HINTABLE: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "big_tables",
    "bulk_insert_buffer_size",
    "cte_max_recursion_depth",
    "default_tmp_storage_engine",
    "div_precision_increment",
    "end_markers_in_json",
    "eq_range_index_dive_limit",
    "explain_format",
    "foreign_key_checks",
    "group_concat_max_len",
    "internal_tmp_mem_storage_engine",
    "join_buffer_size",
    "lock_wait_timeout",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_points_in_geometry",
    "max_seeks_for_key",
    "max_sort_length",
    "max_statement_time",
    "mrr_buffer_size",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_mode",
    "sql_safe_updates",
    "sql_select_limit",
    "time_zone",
    "timestamp",
    "tmp_table_size",
    "unique_checks",
    "updatable_views_with_limit",
    "windowing_use_high_precision",
];

/// Obeys the hints of a statement that is about to run.
pub(crate) fn obey_statement_hints(session: &mut Session, given: Hints<'_>, text: &str) {
    if given.comments.is_empty() {
        return;
    }
    let (hints, warnings) = hints_of(given.comments, text);
    session.warnings.warn_of_hints(warnings);
    let mut assigned = BTreeSet::new();
    for hint in &hints {
        let is_limit = matches!(hint, Hint::MaxExecutionTime { .. });
        if is_limit && !given.may_limit_time {
            session.warnings.warn(
                codes::WARN_UNSUPPORTED_MAX_EXECUTION_TIME,
                "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only",
            );
            continue;
        }
        let about = match hint {
            Hint::SetVariable { name, .. } => name.as_str(),
            Hint::MaxExecutionTime { .. } => "MAX_EXECUTION_TIME",
            Hint::ResourceGroup(_) => "RESOURCE_GROUP",
            _ => continue,
        };
        if !assigned.insert(about) {
            session.warnings.warn(
                codes::WARN_CONFLICTING_HINT,
                format!("Hint {hint} is ignored as conflicting/duplicated"),
            );
            continue;
        }
        match hint {
            Hint::SetVariable { name, value } => set_variable_for_statement(session, name, value),
            Hint::MaxExecutionTime { milliseconds } => {
                limit_time_of_statement(session, *milliseconds);
            }
            Hint::ResourceGroup(name) => enter_hinted_group(session, name),
            _ => {}
        }
    }
}

fn set_variable_for_statement(session: &mut Session, name: &str, value: &HintValue) {
    if session.variables.get(name).is_err() {
        let message = format!("Unresolved name '{name}' for SET_VAR hint");
        return session.warnings.warn(codes::UNRESOLVED_HINT_NAME, message);
    }
    if !HINTABLE.contains(&name) {
        let message = format!("Variable '{name}' cannot be set using SET_VAR hint.");
        return session
            .warnings
            .warn(codes::NOT_HINT_UPDATABLE_VARIABLE, message);
    }
    let new = match value {
        HintValue::Text(text) => NewValue::Text(text.clone()),
        HintValue::Integer(number) => NewValue::Integer(*number),
        HintValue::Number(number) => NewValue::Float(*number),
    };
    keep_variables(session);
    // The globals are looked at only.
    let mut globals = session.engine.globals();
    let scope = Scope::Session;
    match variables::assign(&mut session.variables, &mut globals, scope, name, &new) {
        Ok(None) => {}
        Ok(Some(truncated)) => session.warnings.warn_truncated(&truncated),
        Err(SqlError { code, message, .. }) => return session.warnings.warn(code, message),
    }
    if let Some(message) = variables::without_effect(&session.variables, name) {
        session.warnings.warn(codes::NOT_SUPPORTED_YET, message);
    }
}

fn limit_time_of_statement(session: &mut Session, milliseconds: u64) {
    keep_variables(session);
    // MariaDB's variable would go before.
    session
        .variables
        .set_internally("max_statement_time", VariableValue::Float(0.0));
    session.variables.set_internally(
        "max_execution_time",
        VariableValue::Integer(milliseconds.into()),
    );
}

/// WAIT and NOWAIT: waits for locks of tables, and of rows, end after so long.
pub(crate) fn limit_lock_waits_of_statement(session: &mut Session, seconds: u64) {
    keep_variables(session);
    for name in ["lock_wait_timeout", "innodb_lock_wait_timeout"] {
        let seconds = VariableValue::Integer(seconds.into());
        session.variables.set_internally(name, seconds);
    }
}

fn keep_variables(session: &mut Session) {
    let variables = &session.variables;
    session
        .statement
        .own_variables
        .get_or_insert_with(|| variables.clone());
    // The configuration of plans may depend on what is set.
    session.workers.forget_task();
}

/// Gives the session its variables back when a statement is over.
pub(crate) fn forget_statement_hints(session: &mut Session) {
    session.workers.leave_hinted_group();
    if let Some(variables) = session.statement.own_variables.take() {
        session.variables = variables;
        session.workers.forget_task();
    }
    forget_set_statement(session);
}

impl Warnings {
    /// Warns of hints, once of each: a statement may be planned several times.
    pub(crate) fn warn_of_hints(&mut self, warnings: Vec<HintWarning>) {
        for HintWarning { code, message } in warnings {
            let mut known = self.kept().iter();
            if !known.any(|known| known.code == code && known.message == message) {
                self.warn(code, message);
            }
        }
    }

    /// Warns of hints that the planner could not obey, by their texts.
    pub(crate) fn warn_of_conflicts(&mut self, hints: Vec<String>) {
        let warning = |hint| HintWarning {
            code: codes::WARN_CONFLICTING_HINT.number(),
            message: format!("Hint {hint} is ignored as conflicting/duplicated"),
        };
        self.warn_of_hints(hints.into_iter().map(warning).collect());
    }
}
