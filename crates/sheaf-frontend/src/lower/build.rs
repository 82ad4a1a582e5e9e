//! Pieces of syntax tree.

use sqlparser::ast::{
    Array, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, UnaryOperator, Value as Literal, ValueWithSpan,
};
use sqlparser::tokenizer::Span;

pub fn literal(value: Literal) -> Expr {
    Expr::Value(ValueWithSpan {
        value,
        span: Span::empty(),
    })
}

pub fn text(text: impl Into<String>) -> Expr {
    literal(Literal::SingleQuotedString(text.into()))
}

pub fn null() -> Expr {
    literal(Literal::Null)
}

/// A number as its digits; a sign makes it a negation, as the parser would.
pub fn number(digits: impl ToString) -> Expr {
    let digits = digits.to_string();
    match digits.strip_prefix('-') {
        Some(digits) => Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: Box::new(literal(Literal::Number(digits.to_string(), false))),
        },
        None => literal(Literal::Number(digits, false)),
    }
}

pub fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    // In parentheses: SqlToRel folds chains of operators on a stack of its own, which must not see through ours.
    Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }))
}

/// Operands up to which a chain of operators is a tree as the parser makes them, deepest on the left. Longer ones are
/// balanced: everything behind the parser walks down such trees.
const MAX_DEEP_CHAIN: usize = 16;

/// `a op b op c ...` in any number of operands, of an operator that does not mind where parentheses stand. `None` if
/// there are no operands.
pub fn chain(
    mut operands: Vec<Expr>,
    op: &BinaryOperator,
    join: fn(Expr, BinaryOperator, Expr) -> Expr,
) -> Option<Expr> {
    while operands.len() > MAX_DEEP_CHAIN {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => join(left, op.clone(), right),
                None => left,
            });
        }
        operands = pairs;
    }
    let operands = operands.into_iter();
    operands.reduce(|left, right| join(left, op.clone(), right))
}

pub fn not(condition: Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: Box::new(Expr::Nested(Box::new(condition))),
    }
}

pub fn argument(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

pub fn function(name: &str, args: Vec<FunctionArg>) -> Function {
    Function {
        name: ObjectName::from(vec![Ident::with_quote('`', name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    }
}

/// In GROUP BY: all else is that of any row of the group (`any_row.rs`).
pub fn any_row() -> Expr {
    Expr::Array(Array {
        elem: Vec::new(),
        named: false,
    })
}

/// The members of a long IN list, which are whole numbers, as one.
pub fn pack_numbers(list: String) -> Expr {
    Expr::Array(Array {
        elem: vec![text(list)],
        named: true,
    })
}

/// What [`pack_numbers`] has packed, if these are the members of such a list.
pub fn packed_numbers(members: &[Expr]) -> Option<&Expr> {
    match members {
        [Expr::Array(Array { elem, named: true })] => elem.first(),
        _ => None,
    }
}

/// A call; the name is exact.
pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(name, args.into_iter().map(argument).collect()))
}
