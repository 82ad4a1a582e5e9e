//! Pieces of syntax tree.

use sheaf_access::cancel;
use sheaf_algebra::scalar::Comparison;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, UnaryOperator, Value as Literal, ValueWithSpan,
};
use sqlparser::tokenizer::Span;

use crate::error::Result;

/// Aggregates of MySQL by their names here.
pub fn aggregate_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "count" => "count",
        "sum" => "$sum",
        "avg" => "avg",
        "min" => "min",
        "max" => "max",
        "any_value" => "any_value",
        "grouping" => "grouping",
        "group_concat" => "$group_concat",
        "json_arrayagg" => "json_arrayagg",
        "json_objectagg" => "json_objectagg",
        "std" | "stddev" | "stddev_pop" => "stddev_pop",
        "stddev_samp" => "stddev",
        "variance" | "var_pop" => "var_pop",
        "var_samp" => "var",
        "bit_and" => "bit_and",
        "bit_or" => "bit_or",
        "bit_xor" => "bit_xor",
        _ => return None,
    })
}

/// The expression without the parentheses around it.
pub fn inside(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

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

/// A call; the name is exact.
pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(name, args.into_iter().map(argument).collect()))
}

/// A copy of an expression. That of a call with thousands of arguments takes megabytes: between them the statement can
/// be stopped.
pub fn copy_of(expr: &Expr) -> Result<Expr> {
    cancel::check_statement()?;
    let call = match expr {
        Expr::Function(call) => call,
        Expr::Nested(inner) => return Ok(Expr::Nested(Box::new(copy_of(inner)?))),
        // CHAR(... USING ..).
        Expr::Convert {
            is_try,
            expr,
            data_type,
            charset,
            target_before_value,
            styles,
        } => {
            return Ok(Expr::Convert {
                is_try: *is_try,
                expr: Box::new(copy_of(expr)?),
                data_type: data_type.clone(),
                charset: charset.clone(),
                target_before_value: *target_before_value,
                styles: styles.clone(),
            });
        }
        other => return Ok(other.clone()),
    };
    let FunctionArguments::List(list) = &call.args else {
        return Ok(expr.clone());
    };
    cancel::check_room_for_value(list.args.len() * size_of::<FunctionArg>())?;
    let mut args = Vec::with_capacity(list.args.len());
    for arg in &list.args {
        args.push(match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => argument(copy_of(expr)?),
            other => other.clone(),
        });
    }
    let args = FunctionArgumentList {
        duplicate_treatment: list.duplicate_treatment,
        args,
        clauses: list.clauses.clone(),
    };
    Ok(Expr::Function(Function {
        name: call.name.clone(),
        uses_odbc_syntax: call.uses_odbc_syntax,
        parameters: call.parameters.clone(),
        args: FunctionArguments::List(args),
        filter: call.filter.clone(),
        null_treatment: call.null_treatment,
        over: call.over.clone(),
        within_group: call.within_group.clone(),
    }))
}

/// A name without quotes.
pub fn object_text(name: &ObjectName) -> String {
    let parts: Vec<&str> = name
        .0
        .iter()
        .filter_map(|part| part.as_ident())
        .map(|ident| ident.value.as_str())
        .collect();
    parts.join(".")
}

/// The digits of a number literal.
pub fn number_digits(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan {
            value: Literal::Number(digits, _),
            ..
        }) => Some(digits),
        _ => None,
    }
}

/// Whether this is the position of a column, where one may stand: a whole number.
pub fn is_position(expr: &Expr) -> bool {
    number_digits(expr).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Taken apart from the alias that an item's text may end with.
pub fn is_plain_column(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(ident) if !ident.value.starts_with('@') => Some(ident),
        Expr::CompoundIdentifier(parts) if !parts[0].value.starts_with('@') => parts.last(),
        _ => None,
    }
}

/// An expression without parentheses and plus signs around it. A column or a literal has its header from there.
pub fn bare(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner)
    | Expr::UnaryOp {
        op: UnaryOperator::Plus,
        expr: inner,
    } = expr
    {
        expr = inner;
    }
    expr
}

/// The longest header that an item without an alias has, in bytes: MySQL's MAX_ALIAS_NAME without the byte behind it.
const MAX_HEADER_BYTES: usize = 255;

/// What a header shows of a text.
pub fn shown_in_header(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_HEADER_BYTES)]
}

/// The header of a literal that is not the way in which it is written: the text of a string, and NULL.
pub fn header_of_literal(literal: &Expr) -> Option<String> {
    let shown = |text: &str| Some(shown_in_header(text).to_string());
    match literal {
        Expr::Value(value) => match &value.value {
            Literal::SingleQuotedString(text)
            | Literal::DoubleQuotedString(text)
            | Literal::NationalStringLiteral(text) => shown(text),
            Literal::Null => Some("NULL".to_string()),
            _ => None,
        },
        Expr::Prefixed { value, .. } => match value.as_ref() {
            Expr::Value(text) => match &text.value {
                Literal::SingleQuotedString(text) => shown(text),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Whether this is a literal, with signs in front of it or a collation behind it.
pub fn is_literal(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Value(value) => !matches!(value.value, Literal::Placeholder(_)),
        Expr::Prefixed { .. } | Expr::TypedString(_) => true,
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        }
        | Expr::Collate { expr, .. } => is_literal(expr),
        _ => false,
    }
}

/// The name that NAME_CONST gives to its value; `None` of everything else.
pub fn name_of_constant(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else {
        return None;
    };
    if !object_text(&function.name).eq_ignore_ascii_case("name_const") {
        return None;
    }
    let FunctionArguments::List(arguments) = &function.args else {
        return None;
    };
    match arguments.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(name)) => {
            header_of_literal(name).or_else(|| number_digits(name).map(str::to_string))
        }
        _ => None,
    }
}

/// `ROW(a, b)` as `(a, b)`; `None` of everything else.
pub fn as_row(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let FunctionArguments::List(arguments) = &function.args else {
        return None;
    };
    if !object_text(&function.name).eq_ignore_ascii_case("row") {
        return None;
    }
    let values = arguments.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    });
    values.collect::<Option<_>>().map(Expr::Tuple)
}

pub fn is_same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}

/// The text of a string literal.
pub fn string_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan {
            value: Literal::SingleQuotedString(text),
            ..
        }) => Some(text),
        _ => None,
    }
}

/// The comparison that an operator is; `None` for another operator.
pub(crate) fn comparison_of(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        BinaryOperator::Spaceship => Comparison::NullSafeEqual,
        _ => return None,
    })
}
