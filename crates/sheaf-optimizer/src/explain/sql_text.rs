//! Expressions of a typed plan as MySQL would write them, for EXPLAIN.
//!
//! Typing has turned operators of strings into comparisons of sort keys, and added casts that the statement does not
//! have. Here both are left out again. The text of a string constant is derived from its sort key where that is
//! possible. Under a collation that ignores case it is in small letters.

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef};
use datafusion_common::{Column, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, WindowFunction};
use datafusion_expr::{BinaryExpr, Expr, Operator, SortExpr};
use sheaf_access::int256_of;
use sheaf_exec::functions::as_function;
use sheaf_exec::functions::closed::closed_operator;
use sheaf_exec::functions::in_values::as_in_values;
use sheaf_exec::long_literal;
use sheaf_table::text_of_sort_key;
use sheaf_types::number::wide_decimal_text;
use sheaf_types::text::hexadecimal::literal_of;
use sheaf_types::text::quoting::quoted_string;
use sheaf_types::{Collation, Value};

use crate::logical::semantics;

/// Characters of one text, at most: a list of ten thousand values is of no use to a reader.
const MAX_CHARACTERS: usize = 4 << 10;

/// How columns are named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// Some: `` `database`.`table`.`column` ``, as in FORMAT=JSON; otherwise `table.column`, as in FORMAT=TREE.
    pub database: Option<&'a str>,
    /// The table of columns that are qualified with the number of a table reference.
    pub table: Option<&'a str>,
}

impl Names<'static> {
    pub(crate) const PLAIN: Names<'static> = Names {
        database: None,
        table: None,
    };
}

/// The conjunction of conditions; `None` if there are none.
pub(crate) fn conditions_text(conditions: &[Expr], names: Names<'_>) -> Option<String> {
    let texts: Vec<String> = conditions.iter().map(|expr| text(expr, names)).collect();
    match texts.len() {
        0 => None,
        1 => Some(shortened(texts.into_iter().collect())),
        _ => Some(shortened(format!("({})", texts.join(" and ")))),
    }
}

/// One expression.
pub(crate) fn expression_text(expr: &Expr, names: Names<'_>) -> String {
    shortened(text(expr, names))
}

/// Sort expressions, as `a, b DESC`.
pub(crate) fn order_text(order: &[SortExpr], names: Names<'_>) -> String {
    let texts = order.iter().map(|sort| {
        let direction = if sort.asc { "" } else { " DESC" };
        format!("{}{direction}", text(&sort.expr, names))
    });
    shortened(texts.collect::<Vec<_>>().join(", "))
}

pub(super) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARACTERS) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

fn text(expr: &Expr, names: Names<'_>) -> String {
    operand(expr, None, names)
}

/// `expr` on one side of a comparison under a collation.
fn operand(expr: &Expr, collation: Option<Collation>, names: Names<'_>) -> String {
    if let Some(value) = long_literal::literal_of(expr) {
        return literal_text(value, collation);
    }
    match expr {
        Expr::Column(column) => column_text(column, names),
        Expr::Alias(alias) => operand(&alias.expr, collation, names),
        // Casts that the statement writes are functions; these are the typing rule's.
        Expr::Cast(cast) => operand(&cast.expr, collation, names),
        Expr::TryCast(cast) => operand(&cast.expr, collation, names),
        Expr::BinaryExpr(binary) => binary_text(binary, names),
        Expr::Between(between) => {
            let under = collation_of([&*between.expr, &*between.low, &*between.high]);
            format!(
                "({} {}between {} and {})",
                operand(&between.expr, under, names),
                not(between.negated),
                operand(&between.low, under, names),
                operand(&between.high, under, names)
            )
        }
        Expr::InList(list) => {
            let under = collation_of(std::iter::once(&*list.expr).chain(&list.list));
            let items = list.list.iter().map(|item| operand(item, under, names));
            format!(
                "({} {}in ({}))",
                operand(&list.expr, under, names),
                not(list.negated),
                items.collect::<Vec<_>>().join(",")
            )
        }
        Expr::Like(like) => format!(
            "({} {}like {})",
            text(&like.expr, names),
            not(like.negated),
            text(&like.pattern, names)
        ),
        Expr::Not(inner) => format!("(not({}))", text(inner, names)),
        Expr::IsNull(inner) => format!("({} is null)", text(inner, names)),
        Expr::IsNotNull(inner) => format!("({} is not null)", text(inner, names)),
        // Only rows for which a condition is true are kept, so this is not written.
        Expr::IsTrue(inner) => text(inner, names),
        Expr::IsNotTrue(inner) => format!("({} is not true)", text(inner, names)),
        Expr::IsFalse(inner) => format!("({} is false)", text(inner, names)),
        Expr::IsNotFalse(inner) => format!("({} is not false)", text(inner, names)),
        Expr::IsUnknown(inner) => format!("({} is unknown)", text(inner, names)),
        Expr::IsNotUnknown(inner) => format!("({} is not unknown)", text(inner, names)),
        Expr::Negative(inner) => format!("-({})", text(inner, names)),
        Expr::Case(case) => {
            let mut output = "(case".to_string();
            if let Some(value) = &case.expr {
                let _ = write!(output, " {}", text(value, names));
            }
            for (when, then) in &case.when_then_expr {
                let _ = write!(
                    output,
                    " when {} then {}",
                    text(when, names),
                    text(then, names)
                );
            }
            if let Some(otherwise) = &case.else_expr {
                let _ = write!(output, " else {}", text(otherwise, names));
            }
            output + " end)"
        }
        Expr::ScalarFunction(call) => match (as_function(&call.func), as_in_values(expr)) {
            (Some(function), _) => call_text(function.name, &call.args, collation, names),
            (None, Some((operands, columns))) => list_text(operands, columns, names),
            (None, None) => {
                let name = closed_operator(&call.func).unwrap_or(call.func.name());
                call_text(name, &call.args, collation, names)
            }
        },
        Expr::AggregateFunction(aggregate) => aggregate_text(aggregate, names),
        Expr::WindowFunction(window) => window_text(window, names),
        Expr::ScalarSubquery(_) => "(select)".to_string(),
        other => other.to_string(),
    }
}

/// A list of constants, as far as it is shown.
fn list_text(operands: &[Expr], columns: &[ArrayRef], names: Names<'_>) -> String {
    let in_parentheses = |texts: Vec<String>| match texts.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(",")),
    };
    let of_operands = operands.iter().map(|operand| text(operand, names));
    let row = in_parentheses(of_operands.collect());
    let rows = columns.first().map_or(0, |values| values.len());
    // Each value has a character at least.
    let rows = (0..rows.min(MAX_CHARACTERS)).map(|row| {
        let values =
            operands.iter().zip(columns).map(
                |(operand, values)| match ScalarValue::try_from_array(values, row) {
                    Ok(value) => literal_text(&value, semantics::collation_of_key(operand)),
                    Err(_) => String::new(),
                },
            );
        in_parentheses(values.collect())
    });
    format!("({row} in ({}))", rows.collect::<Vec<_>>().join(","))
}

fn not(negated: bool) -> &'static str {
    if negated { "not " } else { "" }
}

fn column_text(column: &Column, names: Names<'_>) -> String {
    let relation = column.relation.as_ref().map(|relation| relation.table());
    let (table, column) = match relation {
        Some(relation) if is_numbered(relation, '#') => (names.table, column.name.as_str()),
        // A column of a join graph, whose name is the whole one.
        Some(relation) if is_numbered(relation, 'r') => match column.name.rsplit_once('.') {
            Some((table, name)) => (Some(table), name),
            None => (None, column.name.as_str()),
        },
        // The same before its name was made part of the column's.
        Some(relation) => match relation.split_once('.') {
            Some((number, table)) if is_numbered(number, 'r') => {
                (Some(table), column.name.as_str())
            }
            _ => (Some(relation), column.name.as_str()),
        },
        None => (None, column.name.as_str()),
    };
    let (table, column) = (table.map(without_number), without_number(column));
    match (names.database, table) {
        (Some(database), Some(table)) => format!("`{database}`.`{table}`.`{column}`"),
        (Some(_), None) => format!("`{column}`"),
        (None, Some(table)) => format!("{table}.{column}"),
        (None, None) => column.to_string(),
    }
}

/// The name of a table or a column without the number that tells it from others of this name.
pub(super) fn without_number(relation: &str) -> &str {
    match relation.rsplit_once('#') {
        Some((name, number)) if !name.is_empty() && is_number(number) => name,
        _ => relation,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Whether a qualifier is a number behind a letter, as the planner makes them.
fn is_numbered(relation: &str, letter: char) -> bool {
    relation.strip_prefix(letter).is_some_and(is_number)
}

fn binary_text(binary: &BinaryExpr, names: Names<'_>) -> String {
    if matches!(binary.op, Operator::And | Operator::Or) {
        let mut parts = Vec::new();
        flatten(binary, binary.op, &mut parts);
        let word = if binary.op == Operator::And {
            " and "
        } else {
            " or "
        };
        let parts: Vec<String> = parts.into_iter().map(|part| text(part, names)).collect();
        return format!("({})", parts.join(word));
    }
    let under = collation_of([&*binary.left, &*binary.right]);
    let operator = operator_text(binary.op);
    format!(
        "({} {operator} {})",
        operand(&binary.left, under, names),
        operand(&binary.right, under, names)
    )
}

/// How MySQL writes an operator.
pub(crate) fn operator_text(operator: Operator) -> String {
    match operator {
        Operator::NotEq => "<>".to_string(),
        Operator::IsNotDistinctFrom => "<=>".to_string(),
        other => other.to_string(),
    }
}

/// The operands of a chain of one operator, from left to right.
fn flatten<'e>(binary: &'e BinaryExpr, op: Operator, parts: &mut Vec<&'e Expr>) {
    for side in [&*binary.left, &*binary.right] {
        match side {
            Expr::BinaryExpr(inner) if inner.op == op => flatten(inner, op, parts),
            other => parts.push(other),
        }
    }
}

/// The collation that a comparison of these is made under, if they are strings.
fn collation_of<'e>(operands: impl IntoIterator<Item = &'e Expr>) -> Option<Collation> {
    operands.into_iter().find_map(semantics::collation_of_key)
}

/// Operators that stand between their operands, by the name of their function.
const INFIX: &[(&str, &str)] = &[
    ("$add", "+"),
    ("$subtract", "-"),
    ("$signed_subtract", "-"),
    ("$multiply", "*"),
    ("$divide", "/"),
    ("$average", "/"),
    ("$integer_divide", "DIV"),
    ("mod", "%"),
    ("$bit_and", "&"),
    ("$bit_or", "|"),
    ("$bit_xor", "^"),
    ("$shift_left", "<<"),
    ("$shift_right", ">>"),
    ("$like", "like"),
    ("$eq", "="),
    ("$ne", "<>"),
    ("$lt", "<"),
    ("$le", "<="),
    ("$gt", ">"),
    ("$ge", ">="),
    ("$null_safe_eq", "<=>"),
];

/// Functions of the typing rule that give their first argument another type or name.
const TRANSPARENT: &[&str] = &[
    "ck",
    "$hex_of_key",
    "$result",
    "$typed",
    "$short_double",
    "$rounded_double",
    "$truth",
    "$is_not_zero",
    "$enum_number",
    "$int",
    "$double_of_text",
    "$decimal_of_text",
    "$integer_of_text",
    "$divisor",
    "$watched_json",
    "$logarithm_of",
    "$finite",
    "$sort_key",
    "$or_null",
    "$on_day",
    "$using",
    "$encoded",
    "$number_of_bytes",
    "$collated",
];

/// What the names of functions begin with that note something of their result.
const NOTED: &str = "$noted_";

fn call_text(name: &str, args: &[Expr], collation: Option<Collation>, names: Names<'_>) -> String {
    if let Some((_, operator)) = INFIX.iter().find(|(known, _)| *known == name)
        && let [left, right, ..] = args
    {
        return format!("({} {operator} {})", text(left, names), text(right, names));
    }
    match (name, args) {
        (name, [inner, ..]) if TRANSPARENT.contains(&name) => operand(inner, collation, names),
        (name, args) if name.starts_with(NOTED) => {
            call_text(&name[NOTED.len()..], args, collation, names)
        }
        ("$negate", [inner]) => format!("-({})", text(inner, names)),
        ("$bit_not", [inner]) => format!("~({})", text(inner, names)),
        ("$date_add", [date, amount, unit]) => interval_text("+", date, amount, unit, names),
        ("$date_subtract", [date, amount, unit]) => interval_text("-", date, amount, unit, names),
        (name, [inner, ..]) if name.starts_with("$cast_") => {
            format!(
                "cast({} as {})",
                text(inner, names),
                &name["$cast_".len()..]
            )
        }
        _ => plain_call(name, args, names),
    }
}

fn interval_text(
    operator: &str,
    date: &Expr,
    amount: &Expr,
    unit: &Expr,
    names: Names<'_>,
) -> String {
    let unit = text(unit, names);
    format!(
        "({} {operator} interval {} {})",
        text(date, names),
        text(amount, names),
        unit.trim_matches('\'').to_lowercase()
    )
}

/// A call by the texts of its arguments.
pub(super) fn called(name: &str, mut args: Vec<String>) -> String {
    if let Some((_, operator)) = INFIX.iter().find(|(known, _)| *known == name)
        && let [left, right, ..] = args.as_slice()
    {
        return format!("({left} {operator} {right})");
    }
    if TRANSPARENT.contains(&name) && !args.is_empty() {
        return args.swap_remove(0);
    }
    let name = match name.strip_prefix(NOTED) {
        Some(function) => function,
        None => name.trim_start_matches('$'),
    };
    match (name.strip_prefix("cast_"), args.first()) {
        (Some(ty), Some(inner)) => format!("cast({inner} as {ty})"),
        _ => format!("{name}({})", args.join(",")),
    }
}

fn plain_call(name: &str, args: &[Expr], names: Names<'_>) -> String {
    let args: Vec<String> = args.iter().map(|arg| text(arg, names)).collect();
    format!("{}({})", name.trim_start_matches('$'), args.join(","))
}

fn aggregate_text(aggregate: &AggregateFunction, names: Names<'_>) -> String {
    let distinct = if aggregate.params.distinct {
        "distinct "
    } else {
        ""
    };
    let args = aggregate.params.args.iter().map(|arg| text(arg, names));
    format!(
        "{}({distinct}{})",
        aggregate.func.name().trim_start_matches('$'),
        args.collect::<Vec<_>>().join(",")
    )
}

fn window_text(window: &WindowFunction, names: Names<'_>) -> String {
    let params = &window.params;
    let args = params.args.iter().map(|arg| text(arg, names));
    let mut over = Vec::new();
    if !params.partition_by.is_empty() {
        let by = params.partition_by.iter().map(|expr| text(expr, names));
        over.push(format!("PARTITION BY {}", by.collect::<Vec<_>>().join(",")));
    }
    if !params.order_by.is_empty() {
        over.push(format!("ORDER BY {}", order_text(&params.order_by, names)));
    }
    format!(
        "{}({}) OVER ({})",
        window.fun.name().trim_start_matches('$'),
        args.collect::<Vec<_>>().join(","),
        over.join(" ")
    )
}

/// A constant as a literal of MySQL.
pub(super) fn literal_text(value: &ScalarValue, collation: Option<Collation>) -> String {
    if value.is_null() {
        return "NULL".to_string();
    }
    match value {
        ScalarValue::Boolean(Some(value)) => value.to_string(),
        ScalarValue::Decimal128(Some(unscaled), _, scale) => Value::Decimal {
            unscaled: *unscaled,
            scale: u8::try_from(*scale).unwrap_or(0),
        }
        .to_string(),
        ScalarValue::Decimal256(Some(unscaled), _, scale) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            wide_decimal_text(int256_of(*unscaled), scale)
        }
        ScalarValue::Date32(Some(days)) => format!("DATE'{}'", Value::Date(*days)),
        ScalarValue::TimestampMicrosecond(Some(micros), _) => {
            format!("TIMESTAMP'{}'", Value::DateTime(*micros))
        }
        ScalarValue::DurationMicrosecond(Some(micros)) => {
            format!("TIME'{}'", Value::Time(*micros))
        }
        ScalarValue::Float32(Some(number)) => Value::Float(*number).to_string(),
        ScalarValue::Float64(Some(number)) => Value::Double(*number).to_string(),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => quoted_string(text),
        ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes)) => {
            match collation.and_then(|collation| text_of_sort_key(bytes, collation)) {
                Some(text) => quoted_string(&text),
                None => literal_of(bytes),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion_common::TableReference;
    use datafusion_expr::{cast, col, lit};
    use sheaf_exec::functions::collation::collation_key;

    fn plain(expr: &Expr) -> String {
        expression_text(expr, Names::PLAIN)
    }

    #[test]
    fn conditions_read_as_they_were_written() {
        let ci = Collation::Utf8mb4_0900_ai_ci;
        let name = || collation_key(col("t.name"), ci);
        let text = |text: &str| collation_key(lit(text), ci);
        let a = || col("t.a");
        for (expr, expected) in [
            (a().gt(lit(5i64)), "(t.a > 5)"),
            (
                a().gt(lit(5i64))
                    .and(a().lt(lit(9i64)))
                    .and(a().is_not_null()),
                "((t.a > 5) and (t.a < 9) and (t.a is not null))",
            ),
            (name().eq(text("Air")), "(t.name = 'air')"),
            (
                name().in_list(vec![text("air"), text("air reg")], false),
                "(t.name in ('air','air reg'))",
            ),
            (
                cast(a(), arrow::datatypes::DataType::Int64).not_eq(lit(1i64)),
                "(t.a <> 1)",
            ),
            (
                col("t.day").lt(Expr::Literal(ScalarValue::Date32(Some(8613)), None)),
                "(t.day < DATE'1993-08-01')",
            ),
            (
                col("t.d").gt_eq(Expr::Literal(
                    ScalarValue::Decimal128(Some(150), 15, 2),
                    None,
                )),
                "(t.d >= 1.50)",
            ),
            (a().eq(lit("it's")), "(t.a = 'it''s')"),
            (
                !a().between(lit(1i64), lit(2i64)),
                "(not((t.a between 1 and 2)))",
            ),
        ] {
            assert_eq!(plain(&expr), expected);
        }
    }

    #[test]
    fn json_names_columns_in_full() {
        let names = Names {
            database: Some("d"),
            table: Some("u"),
        };
        let of = |relation: &str, name: &str| {
            Expr::Column(Column::new(Some(relation.to_string()), name))
        };
        let conditions = [
            col("t.a").gt(lit(5i64)),
            col("b").is_null(),
            of("#3", "c").is_null(),
            of("r0", "t.d").is_null(),
            Expr::Column(Column::new(Some(TableReference::bare("r0.t")), "e")).is_null(),
        ];
        assert_eq!(
            conditions_text(&conditions, names).as_deref(),
            Some(
                "((`d`.`t`.`a` > 5) and (`b` is null) and (`d`.`u`.`c` is null) and (`d`.`t`.`d` is null) and (`d`.`t`.`e` is null))"
            )
        );
        assert_eq!(conditions_text(&[], names), None);
    }

    #[test]
    fn long_lists_are_cut() {
        let list = (0..10_000i64).map(lit).collect();
        let text = plain(&col("a").in_list(list, false));
        assert!(text.ends_with("..."), "{text}");
        assert_eq!(text.chars().count(), MAX_CHARACTERS + 3);
    }
}
