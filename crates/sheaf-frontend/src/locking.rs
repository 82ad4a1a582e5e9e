//! What FOR UPDATE and FOR SHARE are about: the tables of the FROM that they stand behind. What a query in that FROM
//! reads, or a common table expression, is not locked unless it says so itself.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Query, SetExpr, TableFactor, TableWithJoins};

use crate::walk::{ExpressionVisitor, walk_query};

/// Whether a query's own locking clauses are about any table.
pub fn locks_tables(query: &Query) -> bool {
    if query.locks.is_empty() {
        return false;
    }
    let SetExpr::Select(select) = query.body.as_ref() else {
        return true;
    };
    let common_tables = query.with.iter().flat_map(|with| &with.cte_tables);
    let common_tables: Vec<&str> = common_tables
        .map(|table| table.alias.name.value.as_str())
        .collect();
    let names_table = |factor: &TableFactor| match factor {
        TableFactor::Table { name, .. } => match name.0.as_slice() {
            [name] => {
                let name = name.as_ident().map(|ident| ident.value.as_str());
                !name.is_some_and(|name| common_tables.contains(&name))
            }
            _ => true,
        },
        _ => false,
    };
    any_factor(&select.from, &names_table)
}

/// Whether a query has a locking clause somewhere.
pub fn has_locking_clause(query: &Query) -> bool {
    let mut found = Clauses::default();
    walk_query(&mut query.clone(), &mut found);
    found.0
}

fn any_factor(tables: &[TableWithJoins], test: &dyn Fn(&TableFactor) -> bool) -> bool {
    tables.iter().any(|table| {
        let joined = table.joins.iter().map(|join| &join.relation);
        std::iter::once(&table.relation)
            .chain(joined)
            .any(|factor| match factor {
                TableFactor::NestedJoin {
                    table_with_joins, ..
                } => any_factor(std::slice::from_ref(table_with_joins), test),
                factor => test(factor),
            })
    })
}

#[derive(Default)]
struct Clauses(bool);

impl ExpressionVisitor for Clauses {
    fn enter_query(&mut self, query: &Query) {
        self.0 |= !query.locks.is_empty();
    }

    fn leave_expression(&mut self, _expression: &mut Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
