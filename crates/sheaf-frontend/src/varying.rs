//! Expressions whose value may be another one for other rows, statements or sessions: no constraint may have one, and a
//! default that is one is computed for each row. Nor may a generated column have one.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Function, FunctionArguments, Ident, Query};

use crate::error::NotKept;
use crate::function_names::without_parenthesis;
use crate::parser::check_text::column_names;
use crate::syntax::object_text;
use crate::walk::{ExpressionVisitor, walk_expression, walk_query};

/// Functions whose value does not depend on their operands alone.
const VARYING: &[&str] = &[
    "AES_DECRYPT",
    "AES_ENCRYPT",
    "BENCHMARK",
    "CONNECTION_ID",
    "CURDATE",
    "CURRENT_DATE",
    "CURRENT_ROLE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "CURTIME",
    "DATABASE",
    "FOUND_ROWS",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LAST_INSERT_ID",
    "LOAD_FILE",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "NOW",
    "PS_CURRENT_THREAD_ID",
    "RAND",
    "RANDOM_BYTES",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "ROW_COUNT",
    "SCHEMA",
    "SESSION_USER",
    "SLEEP",
    "SYSDATE",
    "SYSTEM_USER",
    "USER",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
    "UUID",
    "UUID_SHORT",
    "VALUES",
    "VERSION",
];

/// Functions that give another value each time, or have an effect.
const OF_EACH_ROW: &[&str] = &[
    "BENCHMARK",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LAST_INSERT_ID",
    "LOAD_FILE",
    "RAND",
    "RANDOM_BYTES",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "SLEEP",
    "SYSDATE",
    "UUID",
    "UUID_SHORT",
];

/// Whether a query calls functions that give another value each time: where it is a subquery, it is computed for each
/// row.
pub fn varies_by_row(query: &Query) -> bool {
    let mut calls = CallsOfEachRow(false);
    walk_query(&mut query.clone(), &mut calls);
    calls.0
}

struct CallsOfEachRow(bool);

impl ExpressionVisitor for CallsOfEachRow {
    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expression else {
            return ControlFlow::Continue(());
        };
        let called = object_text(&function.name);
        let is_bare =
            matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty());
        // The last number that was given out is a constant of the statement.
        let is_constant = is_bare && called.eq_ignore_ascii_case("LAST_INSERT_ID");
        let mut known = OF_EACH_ROW.iter();
        self.0 = !is_constant && known.any(|known| called.eq_ignore_ascii_case(known));
        match self.0 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// The name of the function, if the value of this call does not depend on its operands alone.
pub fn varying_call(function: &Function) -> Option<String> {
    let called = object_text(&function.name).to_ascii_uppercase();
    // It is none, and shown as it is written.
    if let Some(name) = without_parenthesis(&called) {
        return Some(format!("`{}`", name.to_ascii_lowercase()));
    }
    // UNIX_TIMESTAMP of the present.
    let takes_now = called == "UNIX_TIMESTAMP"
        && matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty());
    let varies = takes_now || VARYING.contains(&called.as_str());
    varies.then(|| called.to_ascii_lowercase())
}

/// Whether the expression names columns or has such calls.
pub fn varies(expression: &Expr) -> bool {
    !column_names(expression).is_empty() || Parts::of(expression).vary
}

/// Functions that a default cannot call: they tell of the session's last statements, wait, or do something.
const NOT_IN_DEFAULTS: &[&str] = &[
    "benchmark",
    "found_rows",
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "last_insert_id",
    "load_file",
    "release_all_locks",
    "release_lock",
    "row_count",
    "sleep",
    "values",
];

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
        walk_expression(&mut expression.clone(), &mut parts);
        parts
    }
}

impl ExpressionVisitor for Parts {
    fn enter_query(&mut self, _query: &Query) {
        self.has_query = true;
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
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
                    if NOT_IN_DEFAULTS.contains(&called.as_str()) {
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
