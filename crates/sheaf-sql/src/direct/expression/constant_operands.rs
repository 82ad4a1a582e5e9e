//! Operands that are computed of constants alone: `id = FLOOR(? / 2)`, `email = CONCAT('user', ?)`, `day >= CURDATE() -
//! INTERVAL 7 DAY`.
//!
//! What they come to is the same for all rows, so they can be operands of keys. In the statement each gets a place
//! behind the parameters. It is computed when the statement runs, by the kernels of the vectorised path, before keys
//! are bound:
//!
//! ```text
//!   WHERE email = CONCAT('user', ?0)     ->     WHERE email = ?1,  ?1 := CONCAT('user', ?0)
//! ```
//!
//! A value is like a literal then. So only functions whose text yields to a column's collation are taken, and only
//! values of types that literals have. NULL, a warning and an error are left to the vectorised path: it knows how often
//! they are told. EXPLAIN computes nothing, and shows the operators' plan of such a statement.

use sheaf_exec::functions::called;
use sheaf_types::Value;
use sqlparser::ast;

use crate::direct::expression::{Collector, Expressions, evaluator};
use crate::direct::operands::operand::Compared;
use crate::direct::operands::relation::Relation;
use crate::direct::syntax::given::Given;
use crate::direct::syntax::plain_call::plain_call;
use crate::direct::syntax::selection::selection_of;
use crate::parser::parameter_number;
use crate::parser::statement::Statement;
use crate::session::Session;

/// Constants that a statement has computed, at most: each is evaluated alone.
const MAX_CONSTANTS: usize = 16;

/// A statement whose WHERE has places for the constants in it that columns are compared with, behind so many places.
/// With what takes them; `None` if there are none. `parameters`: how many the statement has itself.
pub(in crate::direct) fn with_places(
    statement: &Statement,
    (parameters, places): (usize, usize),
) -> Option<(Statement, Expressions)> {
    let selection = match statement {
        Statement::Query(query) => match query.body.as_ref() {
            ast::SetExpr::Select(select) => select.selection.as_ref(),
            _ => None,
        },
        Statement::Update(update) => update.selection.as_ref(),
        Statement::Delete(delete) => delete.selection.as_ref(),
        _ => None,
    };
    if !has_some(selection?, parameters) {
        return None;
    }
    let mut statement = statement.clone();
    let selection = selection_of(&mut statement);
    let mut found = Places {
        parameters,
        places,
        collector: Collector::of_constants().for_values(),
        taken: 0,
    };
    visit_operands(selection?, &mut |operand| found.take(operand))?;
    let expressions = found.collector.finish()?.compared();
    Some((statement, expressions))
}

/// Whether there are such constants.
fn has_some(condition: &ast::Expr, parameters: usize) -> bool {
    match condition {
        ast::Expr::Nested(inner) => has_some(inner, parameters),
        ast::Expr::BinaryOp { left, op, right } if joins_conditions(op) => {
            has_some(left, parameters) || has_some(right, parameters)
        }
        ast::Expr::BinaryOp { left, op, right } if Relation::of(op).is_some() => {
            is_column(left) && is_computed(right, parameters)
                || is_column(right) && is_computed(left, parameters)
        }
        ast::Expr::Between {
            expr, low, high, ..
        } => is_column(expr) && (is_computed(low, parameters) || is_computed(high, parameters)),
        ast::Expr::InList { expr, list, .. } => {
            is_column(expr) && list.iter().any(|member| is_computed(member, parameters))
        }
        _ => false,
    }
}

/// Gives what columns are compared with to `take`; `None` as soon as that returns it.
fn visit_operands(
    condition: &mut ast::Expr,
    take: &mut dyn FnMut(&mut ast::Expr) -> Option<()>,
) -> Option<()> {
    match condition {
        ast::Expr::Nested(inner) => visit_operands(inner, take),
        ast::Expr::BinaryOp { left, op, right } if joins_conditions(op) => {
            visit_operands(left, take)?;
            visit_operands(right, take)
        }
        ast::Expr::BinaryOp { left, op, right } if Relation::of(op).is_some() => {
            match (is_column(left), is_column(right)) {
                (true, _) => take(right),
                (_, true) => take(left),
                _ => Some(()),
            }
        }
        ast::Expr::Between {
            expr, low, high, ..
        } if is_column(expr) => {
            take(low)?;
            take(high)
        }
        ast::Expr::InList { expr, list, .. } if is_column(expr) => {
            list.iter_mut().try_for_each(take)
        }
        _ => Some(()),
    }
}

fn joins_conditions(op: &ast::BinaryOperator) -> bool {
    matches!(op, ast::BinaryOperator::And | ast::BinaryOperator::Or)
}

/// Whether an expression is the name of a column, as far as it tells itself.
fn is_column(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Nested(inner) => is_column(inner),
        ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => {
            Given::in_expression(expr).is_none()
        }
        _ => false,
    }
}

/// Whether an expression is computed of constants, and is no [operand](Compared) as it is.
fn is_computed(expr: &ast::Expr, parameters: usize) -> bool {
    Compared::of(expr).is_none() && is_constant(expr, parameters)
}

fn is_constant(expr: &ast::Expr, parameters: usize) -> bool {
    let is_constant = |expr: &ast::Expr| is_constant(expr, parameters);
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(..) | ast::Value::Null => true,
            ast::Value::SingleQuotedString(_) | ast::Value::DoubleQuotedString(_) => true,
            // A user variable's text does not yield to a column.
            ast::Value::Placeholder(text) => {
                parameter_number(text).is_some_and(|number| number < parameters)
            }
            _ => false,
        },
        ast::Expr::Nested(inner) => is_constant(inner),
        ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Minus | ast::UnaryOperator::Plus,
            expr,
        } => is_constant(expr),
        ast::Expr::BinaryOp { left, op, right } => {
            use ast::BinaryOperator::{Divide, Minus, Modulo, Multiply, MyIntegerDivide, Plus};
            matches!(
                op,
                Plus | Minus | Multiply | Divide | Modulo | MyIntegerDivide
            ) && is_constant(left)
                && is_constant(right)
        }
        ast::Expr::Interval(interval) => is_constant(&interval.value),
        ast::Expr::Cast {
            kind: ast::CastKind::Cast,
            expr,
            data_type,
            array: false,
            format: None,
        } => {
            use ast::DataType::{Date, Datetime, Signed, SignedInteger, Unsigned, UnsignedInteger};
            let is_plain = matches!(
                data_type,
                Date | Datetime(_) | Signed | SignedInteger | Unsigned | UnsignedInteger
            );
            is_plain && is_constant(expr)
        }
        ast::Expr::Substring {
            expr,
            substring_from,
            substring_for,
            ..
        } => {
            let bounds = [substring_from, substring_for];
            is_constant(expr) && bounds.into_iter().flatten().all(|bound| is_constant(bound))
        }
        ast::Expr::Trim {
            expr,
            trim_what: None,
            trim_characters: None,
            ..
        } => is_constant(expr),
        ast::Expr::Function(function) => {
            matches!(Given::of(expr), Some(Given::Clock(_)))
                || arguments_of(function)
                    .is_some_and(|arguments| arguments.into_iter().all(is_constant))
        }
        _ => false,
    }
}

/// The arguments of a function of which keys may be made.
fn arguments_of(function: &ast::Function) -> Option<Vec<&ast::Expr>> {
    let (name, arguments) = plain_call(function)?;
    let is_key_operand = called(&name).is_some_and(|row| row.is_key_operand);
    (is_key_operand && !matches!(function.args, ast::FunctionArguments::None)).then_some(arguments)
}

/// See [`with_places`].
struct Places {
    parameters: usize,
    places: usize,
    collector: Collector<'static>,
    taken: usize,
}

impl Places {
    /// `None`: it cannot be computed so.
    fn take(&mut self, operand: &mut ast::Expr) -> Option<()> {
        if !is_computed(operand, self.parameters) {
            return Some(());
        }
        if self.taken == MAX_CONSTANTS {
            return None;
        }
        self.collector.add(operand)?;
        let place = format!("?{}", self.places + self.taken);
        *operand = ast::Expr::value(ast::Value::Placeholder(place));
        self.taken += 1;
        Some(())
    }
}

/// The parameters of a run with what constants come to behind them. `None`: the vectorised path has to do it.
pub(in crate::direct) fn with_constants(
    session: &mut Session,
    constants: &Expressions,
    parameters: &[Value],
) -> Option<Vec<Value>> {
    let noted = session.findings.truncated_texts.messages();
    let evaluator = evaluator(session, constants, parameters)?;
    let row = evaluator.row(|_, _| Ok(Value::Null)).ok()?;
    let mut all = parameters.to_vec();
    for item in 0..evaluator.len() {
        let value = evaluator.value(item, &row).ok()?;
        let is_literal = match value {
            Value::Int(_) | Value::UInt(_) | Value::Decimal { .. } => true,
            Value::Date(_) | Value::DateTime(_) => true,
            Value::Text(_) => evaluator.yields_to_columns(item),
            _ => false,
        };
        if !is_literal {
            return None;
        }
        all.push(value);
    }
    (session.findings.truncated_texts.messages() == noted).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;
    use crate::parser::parse_expression;

    fn computed(text: &str) -> bool {
        let expr = parse_expression(text, &SheafDialect::default()).expect(text);
        is_computed(&expr, 0)
    }

    #[test]
    fn constants_are_computed() {
        for text in [
            "5 % 3",
            "floor(7 / 2)",
            "abs(-3)",
            "lower('ABC')",
            "concat('a', 1 + 1)",
            "cast('5' as unsigned)",
            "curdate() - interval 7 day",
            "date_sub(now(), interval 1 hour)",
            "substring('abc', 2)",
        ] {
            assert!(computed(text), "{text}");
        }
    }

    #[test]
    fn what_differs_from_row_to_row_is_not_computed() {
        for text in [
            // Operands as they are.
            "5",
            "5 + 3",
            "'abc'",
            // Their value is another one each time.
            "floor(rand() * 5)",
            "uuid()",
            "a + 1",
            "lower(a)",
            // Text that does not yield to a column's collation.
            "cast(5 as char)",
            "lower('abc' collate utf8mb4_bin)",
            "concat(@a, 'b')",
            "concat(user(), 'b')",
            "(select 5) + 1",
        ] {
            assert!(!computed(text), "{text}");
        }
    }
}
