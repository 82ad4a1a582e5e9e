//! Expressions whose value may be another one for other rows, statements or sessions: no constraint may have one, and a
//! default that is one is computed for each row.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Function, FunctionArguments, Query};

use crate::parser::check_text::column_names;
use crate::walk::{ExpressionVisitor, walk_expression};

/// Functions whose value does not depend on their operands alone.
const VARYING: &[&str] = &[
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
    "RAND",
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

/// The name of the function, if the value of this call does not depend on its operands alone.
pub fn varying_call(function: &Function) -> Option<String> {
    let called = function.name.to_string().to_ascii_uppercase();
    // UNIX_TIMESTAMP of the present.
    let takes_now = called == "UNIX_TIMESTAMP"
        && matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty());
    let varies = takes_now || VARYING.contains(&called.as_str());
    varies.then(|| called.to_ascii_lowercase())
}

/// Whether the expression names columns or has such calls. One with a query counts as a constant.
pub fn varies(expression: &Expr) -> bool {
    if !column_names(expression).is_empty() {
        return true;
    }
    let calls = Calls::of(expression);
    calls.vary && !calls.has_query
}

pub fn has_query(expression: &Expr) -> bool {
    Calls::of(expression).has_query
}

/// Looks for calls that vary.
#[derive(Default)]
struct Calls {
    vary: bool,
    has_query: bool,
}

impl Calls {
    fn of(expression: &Expr) -> Calls {
        let mut calls = Calls::default();
        walk_expression(&mut expression.clone(), &mut calls);
        calls
    }
}

impl ExpressionVisitor for Calls {
    fn enter_query(&mut self, _query: &Query) {
        self.has_query = true;
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression {
            self.vary |= varying_call(function).is_some();
        }
        ControlFlow::Continue(())
    }
}
