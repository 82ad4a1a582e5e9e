//! IN, ANY and ALL of a subquery, and an OR in EXISTS, as EXISTS that keys find rows for.
//!
//! ```text
//!   x IN (SELECT y FROM t WHERE p)       EXISTS (SELECT 1 FROM t WHERE p AND x = y)
//!                                        OR NULL AND (x IS NULL AND EXISTS (SELECT 1 FROM t WHERE p)
//!                                                     OR EXISTS (SELECT 1 FROM t WHERE p AND y IS NULL))
//!   x > ALL (SELECT y FROM t WHERE p)    NOT (the same with x <= y)
//!   EXISTS (.. WHERE p AND (q OR r))     EXISTS (.. WHERE p AND q) OR EXISTS (.. WHERE p AND r)
//! ```
//!
//! The second line is left out where x and y are never NULL, and where unknown means the same as false. Rows of values
//! are compared where it is left out. What is compared are columns. Whether they are of one kind, as keys take them, is
//! asked where the EXISTS is compiled.

use std::ops::ControlFlow;

use sheaf_frontend::walk::{read_outside_queries, walk_outside_queries};
use sqlparser::ast;

use crate::direct::read::{plain_query, plain_select};
use crate::direct::syntax::names::{Names, column_of};
use crate::session::Session;

/// So many parts of an OR become an EXISTS each.
const MAX_PARTS: usize = 4;

/// The query with EXISTS in such places; `None` if it has none.
pub(in crate::direct) fn with_exists(session: &Session, query: &ast::Query) -> Option<ast::Query> {
    let plain = plain_query(query)?;
    let groups = plain_select(plain.select)?.group_by;
    // What is grouped by is to be the same expression as what is shown.
    if !groups.is_empty() || !plain.locks.is_empty() {
        return None;
    }
    if !has_quantified(query) {
        return None;
    }
    let mut rewritten = query.clone();
    let ast::SetExpr::Select(select) = rewritten.body.as_mut() else {
        return None;
    };
    let from = select.from.clone();
    let names = Tables::of(session, &from)?;
    let mut is_changed = false;
    for item in &mut select.projection {
        if let ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } =
            item
            && !tests_quantified(expr)
        {
            is_changed |= rewrite(session, &names, expr);
        }
    }
    if let Some(condition) = &mut select.selection {
        is_changed |= rewrite_condition(session, &names, condition);
    }
    let has_alias = |item: &ast::SelectItem| matches!(item, ast::SelectItem::ExprWithAlias { .. });
    // A name there may be that of an item.
    let names_columns = !select.projection.iter().any(has_alias);
    if names_columns
        && let Some(order_by) = &mut rewritten.order_by
        && let ast::OrderByKind::Expressions(items) = &mut order_by.kind
    {
        for item in items {
            is_changed |= rewrite(session, &names, &mut item.expr);
        }
    }
    is_changed.then_some(rewritten)
}

/// Whether there may be anything to rewrite. The copy of a long query takes megabytes.
fn has_quantified(query: &ast::Query) -> bool {
    let mut is_found = false;
    let mut look = |expr: &ast::Expr| {
        read_outside_queries(expr, &mut |expr| {
            is_found |= is_quantified(expr);
            match is_found {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    };
    if let ast::SetExpr::Select(select) = query.body.as_ref() {
        for item in &select.projection {
            if let ast::SelectItem::UnnamedExpr(expr)
            | ast::SelectItem::ExprWithAlias { expr, .. } = item
            {
                look(expr);
            }
        }
        select.selection.iter().for_each(&mut look);
    }
    if let Some(order_by) = &query.order_by
        && let ast::OrderByKind::Expressions(items) = &order_by.kind
    {
        items.iter().for_each(|item| look(&item.expr));
    }
    is_found
}

/// Rewrites a condition whose rows go where it is unknown as where it is false.
fn rewrite_condition(session: &Session, outer: &Tables<'_>, condition: &mut ast::Expr) -> bool {
    match condition {
        ast::Expr::Nested(inner) => rewrite_condition(session, outer, inner),
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::And,
            right,
        } => {
            let of_left = rewrite_condition(session, outer, left);
            rewrite_condition(session, outer, right) || of_left
        }
        _ => match exists_of(session, outer, condition, true) {
            Some(exists) => {
                *condition = exists;
                true
            }
            None => rewrite(session, outer, condition),
        },
    }
}

fn rewrite(session: &Session, outer: &Tables<'_>, expr: &mut ast::Expr) -> bool {
    let mut is_changed = false;
    walk_outside_queries(expr, &mut |expr| {
        if let Some(exists) = exists_of(session, outer, expr, false) {
            *expr = exists;
            is_changed = true;
        }
        ControlFlow::Continue(())
    });
    is_changed
}

/// The same as EXISTS; `None` if it is nothing of that, or has a part that is left to the vectorised path.
/// `is_affirmed`: unknown means the same as false.
fn exists_of(
    session: &Session,
    outer: &Tables<'_>,
    expr: &ast::Expr,
    is_affirmed: bool,
) -> Option<ast::Expr> {
    let any = |operand: &ast::Expr, op: &ast::BinaryOperator, query: &ast::Query, is_affirmed| {
        Quantified::of(session, outer, (operand, query))?.exists(op, is_affirmed)
    };
    match expr {
        ast::Expr::InSubquery {
            expr,
            subquery,
            negated: false,
        } => any(expr, &ast::BinaryOperator::Eq, subquery, is_affirmed),
        ast::Expr::InSubquery {
            expr,
            subquery,
            negated: true,
        } => Some(not(any(expr, &ast::BinaryOperator::Eq, subquery, false)?)),
        ast::Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        } => any(left, compare_op, subquery_of(right)?, is_affirmed),
        ast::Expr::AllOp {
            left,
            compare_op,
            right,
        } => Some(not(any(
            left,
            &negated(compare_op)?,
            subquery_of(right)?,
            false,
        )?)),
        ast::Expr::Exists { subquery, negated } => {
            let parts = parts_of_exists(subquery)?;
            Some(match negated {
                true => not(parts),
                false => parts,
            })
        }
        _ => None,
    }
}

/// Whether an item asks if something of this kind is NULL or true, which never is NULL. Of an OR of EXISTS a client is
/// told that it may be.
fn tests_quantified(item: &ast::Expr) -> bool {
    let mut tests = false;
    read_outside_queries(item, &mut |expr| {
        tests |= match expr {
            ast::Expr::IsNull(operand)
            | ast::Expr::IsNotNull(operand)
            | ast::Expr::IsTrue(operand)
            | ast::Expr::IsNotTrue(operand)
            | ast::Expr::IsFalse(operand)
            | ast::Expr::IsNotFalse(operand)
            | ast::Expr::IsUnknown(operand)
            | ast::Expr::IsNotUnknown(operand) => is_quantified(operand),
            _ => false,
        };
        ControlFlow::Continue(())
    });
    tests
}

fn is_quantified(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Nested(inner) | ast::Expr::UnaryOp { expr: inner, .. } => is_quantified(inner),
        ast::Expr::InSubquery { .. }
        | ast::Expr::AnyOp { .. }
        | ast::Expr::AllOp { .. }
        | ast::Expr::Exists { .. } => true,
        _ => false,
    }
}

fn subquery_of(expr: &ast::Expr) -> Option<&ast::Query> {
    match expr {
        ast::Expr::Nested(inner) => subquery_of(inner),
        ast::Expr::Subquery(query) => Some(query),
        _ => None,
    }
}

/// The comparison that is true where another one is false.
fn negated(op: &ast::BinaryOperator) -> Option<ast::BinaryOperator> {
    use ast::BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    Some(match op {
        Eq => NotEq,
        NotEq => Eq,
        Lt => GtEq,
        LtEq => Gt,
        Gt => LtEq,
        GtEq => Lt,
        _ => return None,
    })
}

/// The tables of a FROM.
struct Tables<'a> {
    names: Vec<Names<'a>>,
    /// Which of them may have no row.
    missing: Vec<bool>,
}

impl<'a> Tables<'a> {
    /// `None`: they are joined in a way that has no direct plan.
    fn of(session: &Session, from: &'a [ast::TableWithJoins]) -> Option<Tables<'a>> {
        use ast::JoinOperator::{CrossJoin, Inner, Join, Left, LeftOuter};
        let mut tables = Tables {
            names: Vec::new(),
            missing: Vec::new(),
        };
        let mut add = |factor: &'a ast::TableFactor, may_miss: bool| {
            tables.names.push(Names::of_factor(session, factor)?);
            tables.missing.push(may_miss);
            Some(())
        };
        for part in from {
            add(&part.relation, false)?;
            for join in &part.joins {
                let may_miss = match join.join_operator {
                    Join(_) | Inner(_) | CrossJoin(_) => false,
                    Left(_) | LeftOuter(_) => true,
                    _ => return None,
                };
                add(&join.relation, may_miss)?;
            }
        }
        Some(tables)
    }

    /// A column by the names of its table and its own, and whether it may be NULL.
    fn column(&self, expr: &ast::Expr) -> Option<(ast::Expr, bool)> {
        let (table, column) = column_of(&self.names, expr)?;
        let names = &self.names[table];
        let column = &names.definition().columns[column];
        let part = |name: &str| ast::Ident::with_quote('`', name);
        let name = vec![part(names.alias), part(&column.name)];
        let is_nullable = column.nullable || self.missing[table];
        Some((ast::Expr::CompoundIdentifier(name), is_nullable))
    }
}

/// Columns that are compared with columns of the rows of a query.
struct Quantified<'q> {
    pairs: Vec<Pair>,
    query: &'q ast::Query,
    select: &'q ast::Select,
}

/// A column of the row around, one of the query, and whether they may be NULL.
struct Pair {
    operand: (ast::Expr, bool),
    column: (ast::Expr, bool),
}

impl<'q> Quantified<'q> {
    fn of(
        session: &Session,
        outer: &Tables<'_>,
        (operand, query): (&ast::Expr, &'q ast::Query),
    ) -> Option<Quantified<'q>> {
        let plain = plain_query(query)?;
        let select = plain.select;
        let is_whole = plain.limit_clause.is_none() && plain.locks.is_empty();
        if !is_whole || !plain_select(select)?.group_by.is_empty() {
            return None;
        }
        let inner = Tables::of(session, &select.from)?;
        let is_hidden = |names: &Names<'_>| {
            let mut inner = inner.names.iter();
            inner.any(|inner| inner.alias.eq_ignore_ascii_case(names.alias))
        };
        if outer.names.iter().any(is_hidden) {
            return None;
        }
        let operands = match operand {
            ast::Expr::Tuple(operands) => operands.as_slice(),
            operand => std::slice::from_ref(operand),
        };
        if operands.len() != select.projection.len() {
            return None;
        }
        let pairs = operands.iter().zip(&select.projection);
        let pairs = pairs.map(|(operand, item)| match item {
            ast::SelectItem::UnnamedExpr(column)
            | ast::SelectItem::ExprWithAlias { expr: column, .. } => Some(Pair {
                operand: outer.column(operand)?,
                column: inner.column(column)?,
            }),
            _ => None,
        });
        Some(Quantified {
            pairs: pairs.collect::<Option<_>>()?,
            query,
            select,
        })
    }

    fn exists(&self, op: &ast::BinaryOperator, is_affirmed: bool) -> Option<ast::Expr> {
        negated(op)?;
        let compared = self.pairs.iter().map(|pair| ast::Expr::BinaryOp {
            left: Box::new(pair.operand.0.clone()),
            op: op.clone(),
            right: Box::new(pair.column.0.clone()),
        });
        let found = self.rows(compared.reduce(and));
        // Of rows there are = ANY and <> ALL.
        if self.pairs.len() > 1 && *op != ast::BinaryOperator::Eq {
            return None;
        }
        if is_affirmed {
            return Some(found);
        }
        let Pair { operand, column } = match self.pairs.as_slice() {
            [pair] => pair,
            // Of rows of values that may be NULL there would be too many of them.
            pairs => {
                let mut nullable = pairs.iter().map(|pair| pair.operand.1 || pair.column.1);
                return (!nullable.any(|nullable| nullable)).then_some(found);
            }
        };
        let mut unknown = Vec::new();
        if operand.1 {
            let is_null = ast::Expr::IsNull(Box::new(operand.0.clone()));
            unknown.push(both(is_null, self.rows(None)));
        }
        if column.1 {
            let is_null = ast::Expr::IsNull(Box::new(column.0.clone()));
            unknown.push(self.rows(Some(is_null)));
        }
        let Some(unknown) = unknown.into_iter().reduce(either) else {
            return Some(found);
        };
        let null = ast::Expr::value(ast::Value::Null);
        Some(either(found, both(null, unknown)))
    }

    /// Whether there are rows of the query that meet a condition, too.
    fn rows(&self, condition: Option<ast::Expr>) -> ast::Expr {
        let mut select = self.select.clone();
        select.distinct = None;
        let one = ast::Expr::value(ast::Value::Number("1".into(), false));
        select.projection = vec![ast::SelectItem::ExprWithAlias {
            expr: one,
            alias: ast::Ident::with_quote('`', "1"),
        }];
        let conditions = select.selection.take().map(nested).into_iter();
        select.selection = conditions.chain(condition).reduce(and);
        exists(self.query, select)
    }
}

/// EXISTS over an OR of conditions as an OR of EXISTS.
fn parts_of_exists(query: &ast::Query) -> Option<ast::Expr> {
    let plain = plain_query(query)?;
    let selection = plain_select(plain.select)?.selection?;
    let is_whole = plain.limit_clause.is_none() && plain.locks.is_empty();
    let ast::GroupByExpr::Expressions(by, _) = &plain.select.group_by else {
        return None;
    };
    if !is_whole || !by.is_empty() {
        return None;
    }
    let mut conjuncts = Vec::new();
    add_operands(selection, &ast::BinaryOperator::And, &mut conjuncts);
    let parts_of = |conjunct: &ast::Expr| {
        let mut parts = Vec::new();
        add_operands(conjunct, &ast::BinaryOperator::Or, &mut parts);
        parts.iter().map(|part| (*part).clone()).collect::<Vec<_>>()
    };
    let parts = conjuncts.iter().map(|conjunct| parts_of(conjunct));
    let mut several = parts.enumerate().filter(|(_, parts)| parts.len() > 1);
    let (at, parts) = several.next()?;
    if parts.len() > MAX_PARTS || several.next().is_some() {
        return None;
    }
    let parts = parts.into_iter().map(|part| {
        let conditions = conjuncts.iter().enumerate().map(|(position, conjunct)| {
            nested(match position == at {
                true => part.clone(),
                false => (*conjunct).clone(),
            })
        });
        let mut select = plain.select.clone();
        select.selection = conditions.reduce(and);
        exists(query, select)
    });
    parts.reduce(either)
}

/// The operands of a chain of one operator.
fn add_operands<'e>(
    expr: &'e ast::Expr,
    operator: &ast::BinaryOperator,
    operands: &mut Vec<&'e ast::Expr>,
) {
    match expr {
        ast::Expr::Nested(inner) => add_operands(inner, operator, operands),
        ast::Expr::BinaryOp { left, op, right } if op == operator => {
            add_operands(left, operator, operands);
            add_operands(right, operator, operands);
        }
        expr => operands.push(expr),
    }
}

fn exists(query: &ast::Query, select: ast::Select) -> ast::Expr {
    ast::Expr::Exists {
        subquery: Box::new(ast::Query {
            body: Box::new(ast::SetExpr::Select(Box::new(select))),
            order_by: None,
            ..query.clone()
        }),
        negated: false,
    }
}

fn nested(expr: ast::Expr) -> ast::Expr {
    ast::Expr::Nested(Box::new(expr))
}

fn not(expr: ast::Expr) -> ast::Expr {
    nested(ast::Expr::UnaryOp {
        op: ast::UnaryOperator::Not,
        expr: Box::new(nested(expr)),
    })
}

fn and(left: ast::Expr, right: ast::Expr) -> ast::Expr {
    ast::Expr::BinaryOp {
        left: Box::new(left),
        op: ast::BinaryOperator::And,
        right: Box::new(right),
    }
}

fn both(left: ast::Expr, right: ast::Expr) -> ast::Expr {
    nested(and(left, right))
}

fn either(left: ast::Expr, right: ast::Expr) -> ast::Expr {
    nested(ast::Expr::BinaryOp {
        left: Box::new(left),
        op: ast::BinaryOperator::Or,
        right: Box::new(right),
    })
}
