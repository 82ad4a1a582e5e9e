//! Expressions whose value may be another one for other rows, statements or sessions: no constraint may have one, and a
//! default that is one is computed for each row. Nor may a generated column have one.

use std::ops::ControlFlow;

use sheaf_exec::functions::called;
use sqlparser::ast::{Expr, Function, FunctionArguments, Ident, Query};

use crate::error::NotKept;
use crate::function_names::without_parenthesis;
use crate::gtid_wait::WAIT_FOR_EXECUTED_GTID_SET;
use crate::parser::check_text::column_names;
use crate::session_functions::SessionFunction;
use crate::syntax::object_text;
use crate::user_lock::is_lock_function;
use crate::walk::{ExpressionReader, read_expression, read_query};

/// What the value of a call depends on, besides its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dependence {
    /// Nothing.
    OperandsAlone,
    /// The statement and its session.
    Statement,
    /// It is another one each time, or the call has an effect.
    EachCall,
}

/// What a function of this (lower-case) name depends on. The table of functions says it of those that have a kernel
/// there (`Function::volatile`), and [`SessionFunction`] names those of the session. The binder makes the others.
fn dependence_of(name: &str) -> Dependence {
    if is_volatile(name) || BOUND_EACH_CALL.contains(&name) || is_lock_function(name) {
        Dependence::EachCall
    } else if SessionFunction::named(name).is_some() || BOUND_BY_STATEMENT.contains(&name) {
        Dependence::Statement
    } else {
        Dependence::OperandsAlone
    }
}

/// Whether the table of functions says that the same operands give different results.
fn is_volatile(name: &str) -> bool {
    called(name).is_some_and(|function| function.volatile)
}

/// Functions of the binder's own that wait, read a file, or change the session.
const BOUND_EACH_CALL: &[&str] = &[
    "benchmark",
    LAST_INSERT_ID,
    "load_file",
    "sleep",
    WAIT_FOR_EXECUTED_GTID_SET,
];
const LAST_INSERT_ID: &str = "last_insert_id";

/// Whether a call of this (lower-case) name waits, reads a file, or takes a lock: a plan that may be given up for
/// another one does not have it.
pub fn acts(name: &str) -> bool {
    BOUND_EACH_CALL.contains(&name) && name != LAST_INSERT_ID || is_lock_function(name)
}

/// Functions that the binder hands a setting of the session, or the row of an INSERT.
const BOUND_BY_STATEMENT: &[&str] = &["aes_decrypt", "aes_encrypt", "values"];

/// Whether a query calls functions that give another value each time: where it is a subquery, it is computed for each
/// row.
pub fn varies_by_row(query: &Query) -> bool {
    let mut calls = CallsOfEachRow(false);
    read_query(query, &mut calls);
    calls.0
}

struct CallsOfEachRow(bool);

impl ExpressionReader for CallsOfEachRow {
    fn leave_expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expression else {
            return ControlFlow::Continue(());
        };
        let called = object_text(&function.name).to_ascii_lowercase();
        let is_bare =
            matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty());
        // The last number that was given out is a constant of the statement.
        let is_constant = is_bare && called == LAST_INSERT_ID;
        self.0 = !is_constant && dependence_of(&called) == Dependence::EachCall;
        match self.0 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// The name of the function, if the value of this call does not depend on its operands alone.
pub fn varying_call(function: &Function) -> Option<String> {
    let called = object_text(&function.name).to_ascii_lowercase();
    // It is none, and shown as it is written.
    if let Some(name) = without_parenthesis(&called) {
        return Some(format!("`{name}`"));
    }
    // UNIX_TIMESTAMP of the present.
    let takes_now = called == "unix_timestamp"
        && matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty());
    let varies = takes_now || dependence_of(&called) != Dependence::OperandsAlone;
    varies.then_some(called)
}

/// Whether the expression names columns or has such calls.
pub fn varies(expression: &Expr) -> bool {
    !column_names(expression).is_empty() || Parts::of(expression).vary
}

/// Whether a server that follows may compute another value from the same statement: the expression calls a function
/// that gives another one each time, or tells of the client or of the server.
pub fn differs_elsewhere(expression: &Expr) -> bool {
    let mut calls = CallsThatDiffer(false);
    read_expression(expression, &mut calls);
    calls.0
}

struct CallsThatDiffer(bool);

impl ExpressionReader for CallsThatDiffer {
    fn leave_expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expression else {
            return ControlFlow::Continue(());
        };
        let called = object_text(&function.name).to_ascii_lowercase();
        let tells = matches!(
            SessionFunction::named(&called),
            Some(SessionFunction::User | SessionFunction::CurrentUser | SessionFunction::Version)
        );
        self.0 = tells || dependence_of(&called) == Dependence::EachCall;
        match self.0 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Whether a default may call a function whose value depends on more than its operands. It may call none that tells of
/// the session's last statements, waits, or has an effect. A function that its row does not allow is refused.
fn is_in_defaults(name: &str) -> bool {
    // UNIX_TIMESTAMP of the present. What has a space behind its name is no function, which the binder says.
    if name == "unix_timestamp" || name.starts_with('`') {
        return true;
    }
    let Some(function) = SessionFunction::named(name) else {
        return called(name).is_some_and(|function| function.in_defaults);
    };
    match function {
        SessionFunction::Now
        | SessionFunction::SysDate
        | SessionFunction::UtcTimestamp
        | SessionFunction::CurrentDate
        | SessionFunction::UtcDate
        | SessionFunction::CurrentTime
        | SessionFunction::UtcTime
        | SessionFunction::Database
        | SessionFunction::User
        | SessionFunction::CurrentUser
        | SessionFunction::CurrentRole
        | SessionFunction::Version
        | SessionFunction::ConnectionId => true,
        SessionFunction::LastInsertId | SessionFunction::RowCount | SessionFunction::FoundRows => {
            false
        }
    }
}

impl NotKept {
    /// What the default of a column cannot have; `None`: it can be kept.
    pub fn of(expression: &Expr) -> Option<NotKept> {
        let parts = Parts::of(expression);
        match (parts.has_query, parts.has_variable) {
            (true, _) => Some(NotKept::Query),
            (_, true) => Some(NotKept::Variable),
            (false, false) => parts.disallowed.map(NotKept::Function),
        }
    }

    /// What the expression of a generated column cannot have; `None`: it can be kept.
    pub fn of_generated(expression: &Expr) -> Option<NotKept> {
        let parts = Parts::of(expression);
        match (parts.has_query, parts.has_variable) {
            (true, _) => Some(NotKept::Query),
            (_, true) => Some(NotKept::Variable),
            (false, false) => parts.varying.map(NotKept::Function),
        }
    }
}

/// Whether the expression calls a function whose value depends on its operands and on the session's time zone.
pub fn depends_on_time_zone(expression: &Expr) -> bool {
    Parts::of(expression).in_time_zone
}

/// What an expression has in it.
#[derive(Default)]
struct Parts {
    vary: bool,
    in_time_zone: bool,
    has_query: bool,
    has_variable: bool,
    disallowed: Option<String>,
    /// The first call whose value does not depend on its operands alone. That of UNIX_TIMESTAMP depends on the
    /// session's time zone, too.
    varying: Option<String>,
}

impl Parts {
    fn of(expression: &Expr) -> Parts {
        let mut parts = Parts::default();
        read_expression(expression, &mut parts);
        parts
    }
}

impl ExpressionReader for Parts {
    fn enter_query(&mut self, _query: &Query) {
        self.has_query = true;
    }

    fn leave_expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        let is_variable = |name: &Ident| name.quote_style.is_none() && name.value.starts_with('@');
        match expression {
            Expr::Function(function) => {
                let name = object_text(&function.name).to_ascii_lowercase();
                self.in_time_zone |= name == "unix_timestamp" || name == "from_unixtime";
                if self.varying.is_none() {
                    let depends = name == "unix_timestamp" || varying_call(function).is_some();
                    self.varying = depends.then_some(name);
                }
                if let Some(called) = varying_call(function) {
                    self.vary = true;
                    if !is_in_defaults(&called) {
                        self.disallowed.get_or_insert(called);
                    }
                }
            }
            Expr::Identifier(name) => self.has_variable |= is_variable(name),
            Expr::CompoundIdentifier(names) => {
                self.has_variable |= names.first().is_some_and(is_variable)
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_say_what_they_depend_on() {
        for name in [
            "rand",
            "random_bytes",
            "sysdate",
            "uuid",
            "uuid_short",
            "sleep",
            "get_lock",
        ] {
            assert_eq!(dependence_of(name), Dependence::EachCall, "{name}");
        }
        for name in [
            "now",
            "utc_date",
            "version",
            "schema",
            "found_rows",
            "aes_encrypt",
        ] {
            assert_eq!(dependence_of(name), Dependence::Statement, "{name}");
        }
        for name in ["abs", "concat", "if", "date_add", "is_uuid", "unknown"] {
            assert_eq!(dependence_of(name), Dependence::OperandsAlone, "{name}");
        }
    }

    #[test]
    fn defaults_call_what_has_no_effect() {
        for name in ["rand", "uuid", "now", "user", "unix_timestamp"] {
            assert!(is_in_defaults(name), "{name}");
        }
        for name in [
            "sleep",
            "get_lock",
            "row_count",
            "last_insert_id",
            "values",
            "benchmark",
        ] {
            assert!(!is_in_defaults(name), "{name}");
        }
    }
}
