//! USING, written as ON: `a JOIN b USING (id)` is `a JOIN b ON a.id = b.id`, and what is called `id` is `a.id`.
//!
//! That holds for inner joins and for LEFT JOIN. A `*` shows such a column once, and is left to the binder, which knows
//! the columns of all tables.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sqlparser::ast;

/// A query without USING; `None` if it has none, or one that this says nothing of.
pub(in crate::direct) fn without_using(query: &ast::Query) -> Option<ast::Query> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let has_using = |join: &ast::Join| constraint(&join.join_operator).is_some();
    if !select
        .from
        .iter()
        .any(|part| part.joins.iter().any(has_using))
    {
        return None;
    }
    let mut query = query.clone();
    let ast::SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    // A name without a table is a column of any part of the FROM.
    let [part] = select.from.as_mut_slice() else {
        return None;
    };
    let mut shared = Shared::default();
    let mut before = vec![alias_of(&part.relation)?];
    for join in &mut part.joins {
        let alias = alias_of(&join.relation)?;
        shared.write_on(&mut join.join_operator, &before, &alias)?;
        before.push(alias);
    }
    for item in &mut select.projection {
        match item {
            ast::SelectItem::UnnamedExpr(expr) => walk_expression(expr, &mut shared),
            ast::SelectItem::ExprWithAlias { expr, alias } => {
                // ORDER BY and its like would mean the item.
                if shared.of(alias).is_some() {
                    return None;
                }
                walk_expression(expr, &mut shared);
            }
            ast::SelectItem::QualifiedWildcard(..) => {}
            _ => return None,
        }
    }
    let conditions = select.selection.iter_mut().chain(&mut select.having);
    conditions.for_each(|condition| walk_expression(condition, &mut shared));
    if let ast::GroupByExpr::Expressions(by, _) = &mut select.group_by {
        by.iter_mut()
            .for_each(|expr| walk_expression(expr, &mut shared));
    }
    if let Some(order_by) = &mut query.order_by {
        let ast::OrderByKind::Expressions(items) = &mut order_by.kind else {
            return None;
        };
        let items = items.iter_mut();
        items.for_each(|item| walk_expression(&mut item.expr, &mut shared));
    }
    Some(query)
}

/// The columns of USING.
fn constraint(operator: &ast::JoinOperator) -> Option<&[ast::ObjectName]> {
    match operator {
        ast::JoinOperator::Join(ast::JoinConstraint::Using(columns))
        | ast::JoinOperator::Inner(ast::JoinConstraint::Using(columns))
        | ast::JoinOperator::Left(ast::JoinConstraint::Using(columns))
        | ast::JoinOperator::LeftOuter(ast::JoinConstraint::Using(columns)) => Some(columns),
        _ => None,
    }
}

/// What the columns of a table are qualified with.
fn alias_of(factor: &ast::TableFactor) -> Option<ast::Ident> {
    match factor {
        ast::TableFactor::Table {
            alias: Some(alias), ..
        }
        | ast::TableFactor::Derived {
            alias: Some(alias), ..
        }
        | ast::TableFactor::JsonTable {
            alias: Some(alias), ..
        } => Some(alias.name.clone()),
        ast::TableFactor::Table {
            name, alias: None, ..
        } => name.0.last()?.as_ident().cloned(),
        _ => None,
    }
}

/// The columns that tables have in common, by their names in small letters, with the first table that has each.
#[derive(Default)]
struct Shared {
    tables: BTreeMap<String, ast::Ident>,
    /// Queries around the expression that is walked.
    depth: usize,
}

impl Shared {
    fn of(&self, name: &ast::Ident) -> Option<&ast::Ident> {
        self.tables.get(&name.value.to_lowercase())
    }

    /// Writes the USING of a join to a table as ON. `None`: which of the tables before has the column is not known.
    fn write_on(
        &mut self,
        operator: &mut ast::JoinOperator,
        before: &[ast::Ident],
        alias: &ast::Ident,
    ) -> Option<()> {
        let Some(columns) = constraint(operator) else {
            let is_on = matches!(
                operator,
                ast::JoinOperator::CrossJoin(ast::JoinConstraint::None)
                    | ast::JoinOperator::Join(ast::JoinConstraint::On(_))
                    | ast::JoinOperator::Inner(ast::JoinConstraint::On(_))
                    | ast::JoinOperator::Left(ast::JoinConstraint::On(_))
                    | ast::JoinOperator::LeftOuter(ast::JoinConstraint::On(_))
            );
            // A name in a condition may be one that tables have in common.
            return (is_on && self.tables.is_empty()).then_some(());
        };
        let mut condition: Option<ast::Expr> = None;
        for column in columns {
            let [name] = column.0.as_slice() else {
                return None;
            };
            let name = name.as_ident()?;
            let first = match (self.of(name), before) {
                (Some(first), _) => first.clone(),
                (None, [only]) => only.clone(),
                (None, _) => return None,
            };
            let side = |table: &ast::Ident| {
                Box::new(ast::Expr::CompoundIdentifier(vec![
                    table.clone(),
                    name.clone(),
                ]))
            };
            let equal = ast::Expr::BinaryOp {
                left: side(&first),
                op: ast::BinaryOperator::Eq,
                right: side(alias),
            };
            condition = Some(match condition {
                None => equal,
                Some(before) => ast::Expr::BinaryOp {
                    left: Box::new(before),
                    op: ast::BinaryOperator::And,
                    right: Box::new(equal),
                },
            });
            self.tables.insert(name.value.to_lowercase(), first);
        }
        let on = ast::JoinConstraint::On(condition?);
        *operator = match operator {
            ast::JoinOperator::Left(_) | ast::JoinOperator::LeftOuter(_) => {
                ast::JoinOperator::LeftOuter(on)
            }
            _ => ast::JoinOperator::Inner(on),
        };
        Some(())
    }
}

impl ExpressionVisitor for Shared {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.depth += 1;
    }

    fn leave_query(&mut self) {
        self.depth -= 1;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let ast::Expr::Identifier(name) = expression
            && let Some(table) = self.of(name)
        {
            let qualified = vec![table.clone(), name.clone()];
            *expression = ast::Expr::CompoundIdentifier(qualified);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;
    use crate::parser::statement::Statement;
    use crate::parser::{Parameters, parse_with_parameters};

    fn written(text: &str) -> Option<String> {
        let parsed = parse_with_parameters(text, &SheafDialect::default(), Parameters::Numbered);
        match parsed.expect(text).0 {
            Statement::Query(query) => without_using(&query).map(|query| query.to_string()),
            _ => None,
        }
    }

    #[test]
    fn using_is_on() {
        for (using, on) in [
            (
                "SELECT id, b.x FROM a JOIN b USING (ID) WHERE id > 5 ORDER BY id",
                "SELECT a.id, b.x FROM a INNER JOIN b ON a.ID = b.ID WHERE a.id > 5 ORDER BY a.id",
            ),
            (
                "SELECT k.* FROM t AS a LEFT JOIN (SELECT 1 AS x, 2 AS y) AS k USING (x, y)",
                "SELECT k.* FROM t AS a LEFT OUTER JOIN (SELECT 1 AS x, 2 AS y) AS k \
                 ON a.x = k.x AND a.y = k.y",
            ),
            (
                "SELECT max(id) FROM a JOIN b USING (id) JOIN c USING (id) GROUP BY id",
                "SELECT max(a.id) FROM a INNER JOIN b ON a.id = b.id \
                 INNER JOIN c ON a.id = c.id GROUP BY a.id",
            ),
        ] {
            assert_eq!(written(using).as_deref(), Some(on));
        }
        for other in [
            "SELECT * FROM a JOIN b USING (id)",
            "SELECT a.id FROM a JOIN b ON a.id = b.id",
            "SELECT 1 FROM a JOIN b USING (x) JOIN c USING (y)",
            "SELECT 1 FROM a RIGHT JOIN b USING (id)",
            "SELECT 1 FROM a JOIN b USING (id), c",
            "SELECT b.x AS id FROM a JOIN b USING (id) ORDER BY id",
        ] {
            assert_eq!(written(other), None, "{other}");
        }
    }
}
