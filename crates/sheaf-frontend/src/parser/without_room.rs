//! A syntax tree whose lists have no room for more.

use std::ops::ControlFlow;

use sheaf_access::cancel;
use sqlparser::ast::{Expr, FunctionArguments, Query, SetExpr, TableFactor};

use crate::walk::ExpressionVisitor;

/// Takes the room from lists.
pub(super) struct WithoutRoom;

impl ExpressionVisitor for WithoutRoom {
    fn change_query(&mut self, query: &mut Query) {
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection.shrink_to_fit();
            select.from.shrink_to_fit();
        }
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression {
            function.name.0.shrink_to_fit();
            if let FunctionArguments::List(list) = &mut function.args {
                list.args.shrink_to_fit();
            }
        }
        // What is shorter is somewhere else until the walk has come to an end.
        match cancel::is_statement_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn leave_table(&mut self, table: &mut TableFactor) {
        if let TableFactor::Table { name, .. } = table {
            name.0.shrink_to_fit();
        }
    }
}
