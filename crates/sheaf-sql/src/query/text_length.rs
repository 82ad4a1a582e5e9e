//! How long the texts of computed columns can be, as far as their expressions tell.
//!
//! Clients size columns and buffers by the length that a result's column is announced with. Where nothing is found
//! here, that is the longest that MySQL announces for a short text. What is found is never too short.

use std::cell::Cell;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{Column, JoinType, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{Aggregate, Distinct, Expr, LogicalPlan};
use sheaf_access::TYPE_KEY;
use sheaf_types::{ColumnType, column_type::MAX_CHARACTER_BYTES};

use crate::session::result::{is_of_any_length, shown_length};

/// Expressions and plans that are looked at for one statement, at most: a column may stand for what stands for others.
const MAX_STEPS: u32 = 2_000;

/// Characters of the longest hash (SHA-512), in hexadecimal digits.
const LONGEST_HASH: u32 = 128;

/// The longest text of each of a plan's columns, in characters, or of bytes in bytes. `None`: not known, or no text.
pub(crate) fn text_lengths(plan: &LogicalPlan) -> Vec<Option<u32>> {
    let lengths = Lengths {
        steps_left: Cell::new(MAX_STEPS),
    };
    let fields = plan.schema().fields().iter().enumerate();
    fields
        .map(|(position, field)| match is_text(field.data_type()) {
            true => lengths.of_column(plan, position),
            false => None,
        })
        .collect()
}

fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// Whether a join has the columns of its left input and then those of its right one.
fn is_of_both(join: JoinType) -> bool {
    matches!(
        join,
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full
    )
}

fn is_bytes(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

struct Lengths {
    steps_left: Cell<u32>,
}

impl Lengths {
    fn step(&self) -> Option<()> {
        self.steps_left.set(self.steps_left.get().checked_sub(1)?);
        Some(())
    }

    /// The longest text that a plan's column shows, be it a number.
    fn of_column(&self, plan: &LogicalPlan, position: usize) -> Option<u32> {
        self.step()?;
        let field = plan.schema().fields().get(position)?;
        if let Some(length) = of_field(field) {
            return Some(length);
        }
        match plan {
            LogicalPlan::Projection(projection) => {
                self.of(projection.expr.get(position)?, &projection.input)
            }
            LogicalPlan::Sort(sort) => self.of_column(&sort.input, position),
            LogicalPlan::Limit(limit) => self.of_column(&limit.input, position),
            LogicalPlan::Filter(filter) => self.of_column(&filter.input, position),
            LogicalPlan::SubqueryAlias(alias) => self.of_column(&alias.input, position),
            LogicalPlan::Distinct(Distinct::All(input)) => self.of_column(input, position),
            LogicalPlan::Aggregate(aggregate) => self.of_group(aggregate, position),
            LogicalPlan::Union(union) => {
                let inputs = union.inputs.iter();
                let mut lengths = inputs.map(|input| self.of_column(input, position));
                lengths.try_fold(0, |longest: u32, length| Some(longest.max(length?)))
            }
            LogicalPlan::Join(join) if is_of_both(join.join_type) => {
                let left = join.left.schema().fields().len();
                match position.checked_sub(left) {
                    None => self.of_column(&join.left, position),
                    Some(position) => self.of_column(&join.right, position),
                }
            }
            _ => None,
        }
    }

    /// The same of a column of groups: what they are grouped by, or one of their values.
    fn of_group(&self, aggregate: &Aggregate, position: usize) -> Option<u32> {
        let Aggregate {
            input,
            group_expr,
            aggr_expr,
            ..
        } = aggregate;
        if let [Expr::GroupingSet(_)] = group_expr.as_slice() {
            return None;
        }
        if let Some(group) = group_expr.get(position) {
            return self.of(group, input);
        }
        let aggregate = aggr_expr.get(position - group_expr.len())?;
        match aggregate.clone().unalias() {
            Expr::AggregateFunction(function)
                if matches!(function.func.name(), "any_value" | "min" | "max") =>
            {
                self.of(function.params.args.first()?, input)
            }
            _ => None,
        }
    }

    /// The longest text of an expression over the columns of `input`.
    fn of(&self, expr: &Expr, input: &LogicalPlan) -> Option<u32> {
        self.step()?;
        match expr {
            Expr::Alias(alias) => self.of(&alias.expr, input),
            Expr::Column(column) => self.of_column(input, position_of(column, input)?),
            Expr::Literal(value, _) => of_literal(value),
            Expr::ScalarSubquery(subquery) => self.of_column(&subquery.subquery, 0),
            Expr::Case(case) => {
                let results = case.when_then_expr.iter().map(|(_, then)| then);
                let results = results.chain(&case.else_expr).map(AsRef::as_ref);
                self.longest(results, input, is_bytes(&type_of(expr, input)?))
            }
            Expr::ScalarFunction(function) => match type_of(expr, input)? {
                ty if is_text(&ty) => self.of_function(function, input, is_bytes(&ty)),
                ty => shown_length(None, &ty),
            },
            _ => of_number(expr, input),
        }
    }

    /// The same as a part of a text, or of a byte string.
    fn of_part(&self, expr: &Expr, input: &LogicalPlan, as_bytes: bool) -> Option<u32> {
        let length = self.of(expr, input)?;
        let is_converted = as_bytes && !is_bytes(&type_of(expr, input)?);
        length.checked_mul(if is_converted { MAX_CHARACTER_BYTES } else { 1 })
    }

    fn longest<'e>(
        &self,
        mut exprs: impl Iterator<Item = &'e Expr>,
        input: &LogicalPlan,
        as_bytes: bool,
    ) -> Option<u32> {
        exprs.try_fold(0, |longest: u32, expr| {
            Some(longest.max(self.of_part(expr, input, as_bytes)?))
        })
    }

    fn sum(&self, exprs: &[Expr], input: &LogicalPlan, as_bytes: bool) -> Option<u32> {
        exprs.iter().try_fold(0, |sum: u32, expr| {
            sum.checked_add(self.of_part(expr, input, as_bytes)?)
        })
    }

    /// A function whose result is a text, or a byte string.
    fn of_function(
        &self,
        function: &ScalarFunction,
        input: &LogicalPlan,
        as_bytes: bool,
    ) -> Option<u32> {
        let args = &function.args;
        let argument = |position: usize| self.of_part(args.get(position)?, input, as_bytes);
        let number = |position: usize| constant(args.get(position)?);
        match function.func.name() {
            "concat" => self.sum(args, input, as_bytes),
            "concat_ws" => {
                let (_, values) = args.split_first()?;
                let separators = u32::try_from(values.len().saturating_sub(1)).ok()?;
                let between = argument(0)?.checked_mul(separators)?;
                self.sum(values, input, as_bytes)?.checked_add(between)
            }
            "coalesce" | "greatest" | "least" | "$greatest" | "$least" => {
                self.longest(args.iter(), input, as_bytes)
            }
            "nullif" | "upper" | "lower" | "ltrim" | "rtrim" | "$trim" | "reverse" | "$collate"
            | "$typed" | "$only_row" | "substring_index" => argument(0),
            "left" | "right" => least(argument(0), number(1)),
            "substring" => least(argument(0), number(2)),
            "repeat" => argument(0)?.checked_mul(number(1)?),
            "lpad" | "rpad" | "$cast_char" | "$cast_binary" if args.len() > 1 => number(1),
            "$cast_char" | "$cast_binary" => argument(0),
            "space" => number(0),
            "hex" => {
                let ty = type_of(args.first()?, input)?;
                match is_text(&ty) {
                    true => self.of_part(args.first()?, input, true)?.checked_mul(2),
                    // A BIGINT.
                    false => Some(16),
                }
            }
            "md5" => Some(32),
            "sha1" => Some(40),
            "sha2" => Some(LONGEST_HASH),
            "bin" => Some(64),
            "oct" => Some(22),
            _ => None,
        }
    }
}

/// What is known of a column by its type.
fn of_field(field: &Field) -> Option<u32> {
    let declared = field.metadata().get(TYPE_KEY);
    let declared = declared.and_then(|text| ColumnType::parse(text).ok());
    match declared {
        Some(ty) if is_of_any_length(&ty) => None,
        None if is_text(field.data_type()) => None,
        declared => shown_length(declared.as_ref(), field.data_type()),
    }
}

/// What a number or a point in time is as a text.
fn of_number(expr: &Expr, input: &LogicalPlan) -> Option<u32> {
    let ty = type_of(expr, input)?;
    match is_text(&ty) {
        true => None,
        false => shown_length(None, &ty),
    }
}

fn type_of(expr: &Expr, input: &LogicalPlan) -> Option<DataType> {
    use datafusion_expr::ExprSchemable;
    expr.get_type(input.schema()).ok()
}

fn position_of(column: &Column, input: &LogicalPlan) -> Option<usize> {
    input.schema().index_of_column(column).ok()
}

fn of_literal(value: &ScalarValue) -> Option<u32> {
    match value {
        value if value.is_null() => Some(0),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => u32::try_from(text.chars().count()).ok(),
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes)) => u32::try_from(bytes.len()).ok(),
        value => shown_length(None, &value.data_type()),
    }
}

/// A number of characters that is written down.
fn constant(expr: &Expr) -> Option<u32> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(Some(number)) => u32::try_from(number.max(0)).ok(),
        _ => None,
    }
}

fn least(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (known, None) | (None, known) => known,
    }
}
