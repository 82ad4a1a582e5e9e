//! What a subquery takes from the row of the query around it: parameters in the places of columns.
//!
//! ```text
//!   SELECT p.id, (SELECT MAX(c.score) FROM c WHERE c.post = p.id) FROM p WHERE p.user = ?
//!                 SELECT MAX(c.score) FROM c WHERE c.post = ?1
//! ```
//!
//! They are operands of comparisons with columns of the subquery, and of queries in its FROM. Where a text is compared
//! with one that is computed of such columns, that is computed for each row, and its value is one more parameter:
//! `c.code = CONCAT('p', p.id)`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionVisitor, walk_expression, walk_outside_queries, walk_query};
use sqlparser::ast;

use super::Subqueries;
use crate::change::values::assigned::last_part;
use crate::direct::derived::table_of_from;
use crate::direct::expression::{Collector, Expressions};
use crate::direct::operands::arithmetic::Arithmetic;
use crate::direct::operands::operand::{Operand, are_comparable};
use crate::direct::operands::relation::Relation;
use crate::direct::syntax::names::{ColumnNames, Names, column_of};

impl Subqueries<'_> {
    /// Puts parameters in the places of the row's columns in a query of the subquery's FROM.
    pub(super) fn correlate_query(&self, part: &mut ast::TableFactor, taken: &mut FromRow) {
        let ast::TableFactor::Derived { subquery, .. } = part else {
            return;
        };
        let ast::SetExpr::Select(select) = subquery.body.as_mut() else {
            return;
        };
        let names = tables_of(&select.from);
        let names = names.map(|table| table_of_from(self.session, table));
        if let Some(inner) = names.collect::<Option<Vec<_>>>()
            && let Some(selection) = &mut select.selection
        {
            self.correlate(selection, &inner, taken);
        }
    }

    /// Puts parameters in the places of the row's columns that conjuncts compare with the subquery's own.
    pub(super) fn correlate(
        &self,
        conjunct: &mut ast::Expr,
        inner: &[Names<'_>],
        taken: &mut FromRow,
    ) {
        match conjunct {
            ast::Expr::Nested(nested) => self.correlate(nested, inner, taken),
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::And,
                right,
            } => {
                self.correlate(left, inner, taken);
                self.correlate(right, inner, taken);
            }
            ast::Expr::BinaryOp { left, op, right } if Relation::of(op).is_some() => {
                let (own, other) = match column_of(inner, left) {
                    Some(own) => (own, right),
                    None => match column_of(inner, right) {
                        Some(own) => (own, left),
                        None => return,
                    },
                };
                self.take_columns(other, (own, inner), taken);
            }
            ast::Expr::Between {
                expr,
                negated: false,
                low,
                high,
            } => {
                if let Some(own) = column_of(inner, expr) {
                    self.take_columns(low, (own, inner), taken);
                    self.take_columns(high, (own, inner), taken);
                }
            }
            ast::Expr::InList { expr, list, .. } => {
                if let Some(own) = column_of(inner, expr) {
                    for member in list {
                        self.take_columns(member, (own, inner), taken);
                    }
                }
            }
            ast::Expr::UnaryOp {
                op: ast::UnaryOperator::Not,
                expr,
            } if matches!(expr.as_ref(), ast::Expr::Exists { .. }) => {
                self.correlate(expr, inner, taken);
            }
            ast::Expr::Exists { subquery, .. } => self.correlate_nested(subquery, inner, taken),
            _ => {}
        }
    }

    /// The same in an EXISTS of the subquery.
    fn correlate_nested(&self, query: &mut ast::Query, inner: &[Names<'_>], taken: &mut FromRow) {
        let ast::SetExpr::Select(select) = query.body.as_mut() else {
            return;
        };
        let from = select.from.clone();
        let names = tables_of(&from).map(|table| table_of_from(self.session, table));
        let Some(names) = names.collect::<Option<Vec<_>>>() else {
            return;
        };
        let is_hidden = |one: &Names<'_>| {
            let mut others = names.iter();
            others.any(|other| other.alias.eq_ignore_ascii_case(one.alias))
        };
        if inner.iter().any(is_hidden) {
            return;
        }
        let names: Vec<Names<'_>> = names.iter().chain(inner).cloned().collect();
        if let Some(selection) = &mut select.selection {
            self.correlate(selection, &names, taken);
        }
    }

    /// Puts parameters in the places of the row's columns in what a column of the subquery is compared with: it is such
    /// a column, or whole numbers or a text are computed of such.
    fn take_columns(
        &self,
        compared: &mut ast::Expr,
        (own, inner): ((usize, usize), &[Names<'_>]),
        taken: &mut FromRow,
    ) {
        let column = |names: &[Names<'_>], (table, column): (usize, usize)| {
            names[table].definition().columns[column].clone()
        };
        // A name that several tables of the subquery have is none of the row's.
        let is_inner = |expr: &ast::Expr| inner.iter().any(|names| names.column(expr).is_some());
        let of_row = |expr: &ast::Expr| match is_inner(expr) {
            true => None,
            false => column_of(self.names, expr),
        };
        let own = column(inner, own);
        let is_taken = match of_row(compared) {
            Some(of_row) => are_comparable(&own, &column(self.names, of_row)),
            None => {
                let mut is_whole = |expr: &ast::Expr| match of_row(expr) {
                    Some(of_row) => column(self.names, of_row).ty.is_integer().then_some(()),
                    None => Operand::of(expr).map(|_| ()),
                };
                own.ty.is_integer() && Arithmetic::of(compared, &mut is_whole).is_some()
            }
        };
        if is_taken {
            let mut columns = Taken {
                first: self.attempt.parameters,
                of_row: &of_row,
                outer: &mut taken.columns,
            };
            walk_expression(compared, &mut columns);
            return;
        }
        let is_of_kind = |column_of_row: (usize, usize)| {
            let ty = column(self.names, column_of_row).ty;
            match ty.is_character() {
                true => ty.collation() == own.ty.collation(),
                false => ty.is_integer() && ty.zerofill().is_none(),
            }
        };
        if own.ty.is_short_text() && is_computed_text(compared, &of_row, &is_of_kind) {
            taken.compute(compared, &of_row);
        }
    }
}

/// The parts of a FROM.
fn tables_of(from: &[ast::TableWithJoins]) -> impl Iterator<Item = &ast::TableFactor> {
    from.iter().flat_map(|part| {
        let joined = part.joins.iter().map(|join| &join.relation);
        std::iter::once(&part.relation).chain(joined)
    })
}

/// What a subquery takes from each row of the query around it.
#[derive(Default)]
pub(super) struct FromRow {
    /// Columns, with their tables' positions in the FROM.
    pub(super) columns: Vec<(usize, usize)>,
    /// What is computed of them.
    computed: Vec<ast::Expr>,
}

/// What the place of something computed begins with, until it is known how many columns are taken.
const COMPUTED: &str = "?computed ";

impl FromRow {
    /// Puts a place for its value in the place of an expression.
    fn compute(
        &mut self,
        expr: &mut ast::Expr,
        of_row: &dyn Fn(&ast::Expr) -> Option<(usize, usize)>,
    ) {
        let place = format!("{COMPUTED}{}", self.computed.len());
        let place = ast::Expr::value(ast::Value::Placeholder(place));
        let mut computed = std::mem::replace(expr, place);
        let columns = &mut self.columns;
        walk_outside_queries(&mut computed, &mut |expr| {
            if let Some(column) = of_row(expr)
                && !columns.contains(&column)
            {
                columns.push(column);
            }
            ControlFlow::Continue(())
        });
        self.computed.push(computed);
    }

    /// What is computed of the rows of these tables. It comes behind the columns, which begin with the parameter
    /// `first`. Inside is `None` if there is nothing; `None`: something is not computed from a row.
    pub(super) fn computed(
        &self,
        query: &mut ast::Query,
        names: &[Names<'_>],
        first: usize,
    ) -> Option<Option<Expressions>> {
        if self.computed.is_empty() {
            return Some(None);
        }
        let mut collector = Collector::of_query(names, BTreeSet::new());
        for expr in &self.computed {
            collector.add(expr)?;
        }
        let mut places = Places(first + self.columns.len());
        walk_query(query, &mut places);
        collector.finish().map(Some)
    }
}

/// Numbers the places of what is computed.
struct Places(usize);

impl ExpressionVisitor for Places {
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Value(value) = expression
            && let ast::Value::Placeholder(place) = &mut value.value
            && let Some(number) = place.strip_prefix(COMPUTED)
            && let Ok(number) = number.parse::<usize>()
        {
            *place = format!("?{}", self.0 + number);
        }
        ControlFlow::Continue(())
    }
}

/// Functions whose text has the collation of what it is compared with, if their operands are numbers, constants and
/// texts of that collation.
const TEXT_FUNCTIONS: [&str; 9] = [
    "concat", "lower", "lcase", "upper", "ucase", "left", "right", "lpad", "rpad",
];

/// Whether an expression is a text that is computed of columns of the row and of nothing else.
fn is_computed_text(
    expr: &ast::Expr,
    of_row: &dyn Fn(&ast::Expr) -> Option<(usize, usize)>,
    is_of_kind: &dyn Fn((usize, usize)) -> bool,
) -> bool {
    let is_text_function = |expr: &ast::Expr| match expr {
        ast::Expr::Function(function) => {
            let name = last_part(&function.name);
            let is_known = |known: &&str| name.eq_ignore_ascii_case(known);
            function.over.is_none()
                && function.filter.is_none()
                && TEXT_FUNCTIONS.iter().any(is_known)
        }
        _ => false,
    };
    if !is_text_function(expr) {
        return false;
    }
    let mut is_computed = true;
    let mut is_of_row = false;
    let mut copy = expr.clone();
    walk_outside_queries(&mut copy, &mut |expr| {
        if let Some(column) = of_row(expr) {
            is_of_row = true;
            is_computed &= is_of_kind(column);
            return ControlFlow::Continue(());
        }
        is_computed &= match expr {
            ast::Expr::Value(_) | ast::Expr::Nested(_) => true,
            ast::Expr::BinaryOp { op, .. } => matches!(
                op,
                ast::BinaryOperator::Plus
                    | ast::BinaryOperator::Minus
                    | ast::BinaryOperator::Multiply
            ),
            expr => is_text_function(expr),
        };
        ControlFlow::Continue(())
    });
    is_computed && is_of_row
}

/// Puts parameters in the places of columns.
struct Taken<'a> {
    /// The first parameter that is one.
    first: usize,
    of_row: &'a dyn Fn(&ast::Expr) -> Option<(usize, usize)>,
    outer: &'a mut Vec<(usize, usize)>,
}

impl ExpressionVisitor for Taken<'_> {
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if !matches!(expression, ast::Expr::Nested(_))
            && let Some(of_row) = (self.of_row)(expression)
        {
            let place = format!("?{}", self.first + self.outer.len());
            *expression = ast::Expr::value(ast::Value::Placeholder(place));
            self.outer.push(of_row);
        }
        ControlFlow::Continue(())
    }
}
