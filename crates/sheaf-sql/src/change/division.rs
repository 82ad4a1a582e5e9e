//! Divisions by zero in the values of an UPDATE with a LIMIT.
//!
//! A division by zero is NULL, and ERROR_FOR_DIVISION_BY_ZERO makes it an error or a warning. As a rule the division
//! itself tells of it while it is computed (`$divisor` of sheaf-exec). A query may compute its values for more rows than
//! its LIMIT leaves, though, and of those nobody may hear. So the query of an UPDATE with a LIMIT has a flag beside each
//! value that divides something:
//!
//! ```text
//!   SET a = IF(b > 0, 10 / c, d / e)     CASE WHEN b > 0 THEN c = 0 ELSE e = 0 AND d IS NOT NULL END
//! ```
//!
//! MySQL hears of a division only if it comes to it: operands behind a NULL, and branches that are not taken, are not
//! computed. Subqueries are left out.

use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Value,
};

/// A condition that is true where an expression divides by zero; `None` if it divides nothing.
pub(crate) fn divides_by_zero(expression: &Expr) -> Option<Expr> {
    match expression {
        Expr::BinaryOp { left, op, right } => in_operands(left, op, right),
        Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } => {
            let last = else_result.as_deref().and_then(divides_by_zero);
            let branches = conditions.iter().rev().fold(last, |others, branch| {
                let CaseWhen { condition, result } = branch;
                let taken = match operand {
                    Some(operand) => {
                        binary((**operand).clone(), BinaryOperator::Eq, condition.clone())
                    }
                    None => condition.clone(),
                };
                let chosen = choice(taken, divides_by_zero(result), others);
                any([divides_by_zero(condition), chosen])
            });
            any([operand.as_deref().and_then(divides_by_zero), branches])
        }
        Expr::Function(function) => in_function(function),
        Expr::UnaryOp { expr, .. }
        | Expr::Nested(expr)
        | Expr::Cast { expr, .. }
        | Expr::Collate { expr, .. }
        | Expr::Ceil { expr, .. }
        | Expr::Floor { expr, .. }
        | Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr)
        | Expr::IsUnknown(expr)
        | Expr::IsNotUnknown(expr) => divides_by_zero(expr),
        Expr::Between {
            expr, low, high, ..
        } => any([expr, low, high].map(|operand| divides_by_zero(operand))),
        Expr::Like { expr, pattern, .. } | Expr::RLike { expr, pattern, .. } => {
            any([expr, pattern].map(|operand| divides_by_zero(operand)))
        }
        Expr::InList { expr, list, .. } => {
            let items = list.iter().map(divides_by_zero);
            any(std::iter::once(divides_by_zero(expr)).chain(items))
        }
        _ => None,
    }
}

fn in_operands(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Expr> {
    let divides = matches!(
        op,
        BinaryOperator::Divide | BinaryOperator::Modulo | BinaryOperator::MyIntegerDivide
    );
    let on_the_right = match divides {
        true => any([divides_by_zero(right), Some(is_zero(right))]),
        false => divides_by_zero(right),
    };
    let left_operand = || Box::new(nested(left.clone()));
    let is_reached = match op {
        BinaryOperator::And => Some(Expr::IsNotFalse(left_operand())),
        BinaryOperator::Or => Some(Expr::IsNotTrue(left_operand())),
        BinaryOperator::Spaceship | BinaryOperator::Xor => None,
        _ if is_literal(left) => None,
        _ => Some(Expr::IsNotNull(left_operand())),
    };
    any([divides_by_zero(left), guarded(is_reached, on_the_right)])
}

fn in_function(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let arguments: Vec<&Expr> = list
        .args
        .iter()
        .filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect();
    let name = function.name.to_string().to_ascii_uppercase();
    match (name.as_str(), arguments.as_slice()) {
        ("IF", [condition, then, otherwise]) => {
            let chosen = choice(
                (*condition).clone(),
                divides_by_zero(then),
                divides_by_zero(otherwise),
            );
            any([divides_by_zero(condition), chosen])
        }
        ("IFNULL" | "COALESCE", arguments) => {
            let mut arguments = arguments.iter().rev();
            let last = divides_by_zero(arguments.next()?);
            arguments.fold(last, |others, argument| {
                let is_null = Expr::IsNull(Box::new(nested((*argument).clone())));
                any([divides_by_zero(argument), guarded(Some(is_null), others)])
            })
        }
        ("MOD", [dividend, divisor]) => in_operands(dividend, &BinaryOperator::Modulo, divisor),
        (_, arguments) => any(arguments.iter().map(|argument| divides_by_zero(argument))),
    }
}

fn is_literal(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(value) if value.value != Value::Null)
}

fn nested(expression: Expr) -> Expr {
    Expr::Nested(Box::new(expression))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(nested(left)),
        op,
        right: Box::new(nested(right)),
    }
}

fn is_zero(divisor: &Expr) -> Expr {
    let zero = Expr::value(Value::Number("0".to_string(), false));
    binary(divisor.clone(), BinaryOperator::Eq, zero)
}

/// One of the conditions that there are is true.
fn any(conditions: impl IntoIterator<Item = Option<Expr>>) -> Option<Expr> {
    let conditions = conditions.into_iter().flatten();
    conditions.reduce(|left, right| binary(left, BinaryOperator::Or, right))
}

/// `condition`, where `guard` is true.
fn guarded(guard: Option<Expr>, condition: Option<Expr>) -> Option<Expr> {
    match guard {
        Some(guard) => choice(guard, condition, None),
        None => condition,
    }
}

/// One condition where `taken` is true, the other elsewhere.
fn choice(taken: Expr, then: Option<Expr>, otherwise: Option<Expr>) -> Option<Expr> {
    if then.is_none() && otherwise.is_none() {
        return None;
    }
    let never = || Expr::value(Value::Boolean(false));
    Some(Expr::Case {
        case_token: sqlparser::ast::helpers::attached_token::AttachedToken::empty(),
        end_token: sqlparser::ast::helpers::attached_token::AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: taken,
            result: then.unwrap_or_else(never),
        }],
        else_result: Some(Box::new(otherwise.unwrap_or_else(never))),
    })
}
