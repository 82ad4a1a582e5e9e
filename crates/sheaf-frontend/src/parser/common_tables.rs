//! `WITH ... UPDATE` and `WITH ... DELETE`: the queries of WITH stand in the places of their names.
//!
//! ```text
//!   WITH c AS (SELECT 1 AS k) UPDATE t, c SET t.a = 2 WHERE t.k = c.k
//!   UPDATE t, (SELECT 1 AS k) AS c SET t.a = 2 WHERE t.k = c.k
//! ```
//!
//! So the statements themselves know of no WITH. A recursive table has no such form: error 1235.

use std::ops::ControlFlow;

use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::statement::{Delete, Update};
use super::{ParseResult, Statement, StatementParser};
use crate::dialect::ahead::Ahead;
use crate::error::SqlError;
use crate::walk::{ExpressionVisitor, walk_expression, walk_query, walk_tables};

/// Puts queries in the places of their names.
struct Tables {
    known: Vec<ast::Cte>,
    /// How often a name was met.
    found: usize,
}

impl ExpressionVisitor for Tables {
    fn leave_table(&mut self, table: &mut ast::TableFactor) {
        let ast::TableFactor::Table { name, alias, .. } = table else {
            return;
        };
        let [part] = name.0.as_slice() else {
            return;
        };
        let Some(name) = part.as_ident() else {
            return;
        };
        let mut known = self.known.iter().rev();
        let Some(common) = known.find(|common| common.alias.name.value == name.value) else {
            return;
        };
        self.found += 1;
        let alias = match alias.take() {
            Some(alias) if alias.columns.is_empty() => ast::TableAlias {
                columns: common.alias.columns.clone(),
                ..alias
            },
            Some(alias) => alias,
            None => common.alias.clone(),
        };
        *table = ast::TableFactor::Derived {
            lateral: false,
            subquery: common.query.clone(),
            alias: Some(alias),
            sample: None,
        };
    }

    fn leave_expression(&mut self, _expression: &mut ast::Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Tables {
    fn in_update(&mut self, update: &mut Update) {
        walk_tables(&mut update.tables, self);
        let values = update.assignments.iter_mut();
        let orders = update.order_by.iter_mut();
        let expressions = values.map(|assignment| &mut assignment.value);
        let expressions = expressions.chain(&mut update.selection);
        for expression in expressions.chain(orders.map(|order| &mut order.expr)) {
            walk_expression(expression, self);
        }
    }

    fn in_delete(&mut self, delete: &mut Delete) {
        walk_tables(&mut delete.tables, self);
        let orders = delete.order_by.iter_mut();
        let expressions = delete.selection.iter_mut();
        for expression in expressions.chain(orders.map(|order| &mut order.expr)) {
            walk_expression(expression, self);
        }
    }
}

impl StatementParser<'_> {
    /// Whether WITH begins an UPDATE or a DELETE.
    pub(super) fn is_with_change(&self) -> bool {
        let mut ahead = Ahead::of(&self.tokens);
        let mut depth = 0usize;
        loop {
            match ahead.next() {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                Token::EOF => return false,
                token if depth == 0 => {
                    if Self::is_word(token, "update") || Self::is_word(token, "delete") {
                        return true;
                    }
                    if Self::is_word(token, "select") {
                        return false;
                    }
                }
                _ => {}
            }
        }
    }

    /// The statement behind WITH.
    pub(super) fn with_change(&mut self) -> ParseResult<Statement> {
        self.expect("WITH")?;
        let is_recursive = self.accept("RECURSIVE");
        let tables = self.list(|parser| {
            let table = parser.tokens.parse_cte()?;
            parser.native_common_table(table)
        })?;
        let mut known = Tables {
            known: Vec::with_capacity(tables.len()),
            found: 0,
        };
        for mut table in tables {
            let name = &table.alias.name.value;
            if known
                .known
                .iter()
                .any(|known| known.alias.name.value == *name)
            {
                return Err(SqlError::non_unique_table(name).into());
            }
            if is_recursive {
                let mut itself = Tables {
                    known: vec![table.clone()],
                    found: 0,
                };
                walk_query(&mut table.query.as_ref().clone(), &mut itself);
                if itself.found > 0 {
                    return self.unsupported("WITH RECURSIVE in front of UPDATE and DELETE");
                }
            }
            walk_query(&mut table.query, &mut known);
            known.known.push(table);
        }
        let mut statement = match self.peek("UPDATE") {
            true => self.update()?,
            false => self.delete()?,
        };
        match &mut statement {
            Statement::Update(update) => known.in_update(update),
            Statement::Delete(delete) => known.in_delete(delete),
            _ => {}
        }
        Ok(statement)
    }
}
