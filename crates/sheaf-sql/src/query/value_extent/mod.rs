//! How long the texts of computed columns can be, and how many digits their numbers can have, as far as their
//! expressions tell.
//!
//! ```text
//!   concat(v, 'x')     v varchar(3)                    4 characters
//!   d * 2              d decimal(10,2)                 11 digits, 2 behind the point
//!   i = 1              i int                           1 digit
//! ```
//!
//! Clients size columns and buffers by the length that a result's column is announced with, and CREATE TABLE … SELECT
//! makes columns of it. The rules for digits are MySQL's. What is found is never too small; where nothing is found, the
//! kind of the value alone is known.
//!
//! The query is asked as it is written, before rules are applied to it: of one without rows they leave nothing to ask.

mod functions;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::ScalarValue;
use sheaf_access::{TYPE_KEY, int256_of};
use sheaf_algebra::scalar::ScalarKind;
use sheaf_algebra::{ColumnId, Operator, Relation, Scalar};
use sheaf_exec::CommonTableSource;
use sheaf_frontend::query::{BoundQuery, Shown};
use sheaf_types::number::MAX_WIDE_DIGITS;
use sheaf_types::{ColumnType, column_type::MAX_CHARACTER_BYTES};

use crate::session::result::{is_of_any_length, shown_length};

/// Expressions and columns that are looked at for one statement, at most: a column may stand for others, and those for
/// more.
const MAX_STEPS: u32 = 2_000;

/// Characters of a DOUBLE and of a FLOAT.
const LONGEST_DOUBLE: u32 = 23;
const LONGEST_FLOAT: u32 = 12;
/// What a number is longer than its digits.
const SIGN_AND_POINT: u32 = 2;
/// The digits of the sum of numbers are these more than those of the numbers.
const DIGITS_OF_SUM: u32 = 22;
/// What is computed of a whole number has so many digits before the point, at least, whatever the number.
const DIGITS_OF_ANY_INTEGER: u32 = 19;
/// Whole numbers of so many digits, with their sign, are not computed as INT.
const DIGITS_OF_BIGINT: u32 = 10;

/// What is known of an expression's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// NULL, which goes with everything.
    Null,
    /// Texts of at most so many characters.
    Text(u32),
    /// Byte strings of at most so many bytes.
    Bytes(u32),
    Integer {
        digits: u32,
        /// Characters of its text.
        shown: u32,
        /// It fits an INT.
        is_narrow: bool,
    },
    /// Digits in all, and behind the point.
    Decimal { precision: u32, scale: u32 },
    /// Anything else, whose text has at most so many characters.
    Shown(u32),
}

impl Extent {
    /// The longest text of a value, in characters, or of bytes in bytes.
    pub(crate) fn shown(self) -> u32 {
        match self {
            Extent::Null => 0,
            Extent::Text(length) | Extent::Bytes(length) | Extent::Shown(length) => length,
            Extent::Integer { shown, .. } => shown,
            // A sign, a point and a 0 before it. No DECIMAL has more digits.
            Extent::Decimal { precision, scale } => {
                precision.min(MAX_WIDE_DIGITS.into())
                    + 1
                    + u32::from(scale > 0)
                    + u32::from(scale == precision)
            }
        }
    }

    fn integer(digits: u32, is_narrow: bool) -> Extent {
        Extent::Integer {
            digits,
            shown: digits.saturating_add(1),
            is_narrow,
        }
    }

    /// A computed whole number.
    pub(crate) fn of_digits(digits: u32) -> Extent {
        Extent::integer(digits, digits.saturating_add(1) < DIGITS_OF_BIGINT)
    }

    /// An INT.
    fn int() -> Extent {
        Extent::integer(DIGITS_OF_BIGINT, true)
    }

    pub(crate) fn widened(self) -> Extent {
        match self {
            Extent::Integer { digits, shown, .. } => Extent::Integer {
                digits,
                shown,
                is_narrow: false,
            },
            other => other,
        }
    }

    /// Digits in all, and behind the point; `None` of what is no exact number.
    pub(crate) fn digits(self) -> Option<(u32, u32)> {
        match self {
            Extent::Integer { digits, .. } => Some((digits, 0)),
            Extent::Decimal { precision, scale } => Some((precision, scale)),
            _ => None,
        }
    }

    /// Digits in all of a choice of FLOAT(M,D)s; `None` where the kind of the value alone is known.
    pub(crate) fn float_digits(self) -> Option<u32> {
        match self {
            Extent::Shown(LONGEST_FLOAT) => None,
            Extent::Shown(length) => length.checked_sub(SIGN_AND_POINT),
            _ => None,
        }
    }

    /// An exact number of so many digits before the point, and behind it.
    fn exact(whole: u32, scale: u32) -> Extent {
        match scale {
            0 => Extent::of_digits(whole),
            _ => Extent::Decimal {
                precision: whole.saturating_add(scale),
                scale,
            },
        }
    }

    /// What a division by another makes that adds so many decimals.
    pub(crate) fn divided_by(self, divisor: Extent, increment: u32) -> Option<Extent> {
        let ((one, scale), (_, other_scale)) = (self.digits()?, divisor.digits()?);
        Some(Extent::Decimal {
            precision: one.saturating_add(other_scale + increment),
            scale: scale.saturating_add(increment),
        })
    }

    /// What is one of two values, neither of them a text.
    pub(crate) fn or(self, other: Extent) -> Option<Extent> {
        Some(match (self, other) {
            (Extent::Null, known) | (known, Extent::Null) => known,
            (
                Extent::Integer {
                    digits,
                    shown,
                    is_narrow,
                },
                Extent::Integer {
                    digits: other_digits,
                    shown: other_shown,
                    is_narrow: other_is_narrow,
                },
            ) => Extent::Integer {
                digits: digits.max(other_digits),
                shown: shown.max(other_shown),
                is_narrow: is_narrow && other_is_narrow,
            },
            (Extent::Shown(one), Extent::Shown(other)) => Extent::Shown(one.max(other)),
            (one, other) => {
                let ((precision, scale), (other, other_scale)) = (one.digits()?, other.digits()?);
                let whole = (precision - scale).max(other - other_scale);
                let scale = scale.max(other_scale);
                Extent::Decimal {
                    precision: whole.saturating_add(scale),
                    scale,
                }
            }
        })
    }
}

/// What is known of each of a query's columns.
pub(crate) fn extents(query: &BoundQuery) -> Vec<Option<Extent>> {
    let Shown {
        outputs,
        columns,
        made_by,
    } = &query.shown;
    let field = |id: ColumnId| Some(Arc::clone(&columns.get(id).field));
    let mut extents = Extents::new(&field);
    for (_, relation) in made_by {
        extents.add(relation, made_by);
    }
    let outputs = outputs.iter();
    outputs.map(|(id, _)| extents.of_column(*id)).collect()
}

/// The longest text of each of a query's columns, in characters, or of bytes in bytes. `None`: not known, or no text.
pub(crate) fn text_lengths(query: &BoundQuery) -> Vec<Option<u32>> {
    let fields = query.plan.schema().fields();
    if !fields.iter().any(|field| is_string(field.data_type())) {
        return vec![None; fields.len()];
    }
    let known = fields.iter().zip(extents(query));
    known
        .map(|(field, extent)| match is_string(field.data_type()) {
            true => extent.map(Extent::shown),
            false => None,
        })
        .collect()
}

/// The same of values that are computed over rows. `position`: where a column is among those of the schema.
pub(crate) fn text_lengths_over_rows<'s>(
    values: impl Iterator<Item = &'s Scalar>,
    (schema, position): (&Schema, &dyn Fn(ColumnId) -> Option<usize>),
) -> Vec<Option<u32>> {
    let field = |id: ColumnId| schema.fields().get(position(id)?).map(Arc::clone);
    values
        .map(|value| match is_string(value.field().data_type()) {
            true => Extents::new(&field).of(value).map(Extent::shown),
            false => None,
        })
        .collect()
}

/// What is known of the values of an expression over rows at hand, whose columns have positions in a schema.
pub(crate) fn extent_over_rows(
    value: &Scalar,
    (schema, position): (&Schema, &dyn Fn(ColumnId) -> Option<usize>),
) -> Option<Extent> {
    let field = |id: ColumnId| schema.fields().get(position(id)?).map(Arc::clone);
    Extents::new(&field).of(value)
}

fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn is_bytes(ty: &DataType) -> bool {
    matches!(ty, DataType::Binary | DataType::BinaryView)
}

pub(crate) fn is_string(ty: &DataType) -> bool {
    is_text(ty) || is_bytes(ty)
}

/// How a column comes to be that is not one of a table.
enum Made<'a> {
    Computed(&'a Scalar),
    /// By an aggregate, or a function of windows, of this name.
    OfRows(&'a str, &'a [Scalar]),
    /// Its values are those of these columns.
    OneOf(Vec<ColumnId>),
    Written(Vec<&'a Scalar>),
}

struct Extents<'a> {
    field: &'a dyn Fn(ColumnId) -> Option<FieldRef>,
    made: HashMap<ColumnId, Made<'a>>,
    steps_left: Cell<u32>,
}

impl<'a> Extents<'a> {
    /// `field`: what a column is declared as.
    fn new(field: &'a dyn Fn(ColumnId) -> Option<FieldRef>) -> Extents<'a> {
        Extents {
            field,
            made: HashMap::new(),
            steps_left: Cell::new(MAX_STEPS),
        }
    }

    /// Notes how the columns of a query come to be. `queries`: see [`Shown::made_by`].
    fn add(&mut self, relation: &'a Relation, queries: &'a [(Option<u32>, Relation)]) {
        match relation.operator() {
            Operator::Scan(scan) => {
                let number = CommonTableSource::of(&scan.source).map(|table| table.number);
                let mut queries = queries.iter();
                let read = queries.find(|(own, _)| number.is_some() && *own == number);
                if let Some((_, query)) = read {
                    let columns = scan.columns.iter().zip(query.columns());
                    let same = columns.map(|(own, column)| (*own, Made::OneOf(vec![*column])));
                    self.made.extend(same);
                }
            }
            Operator::Project(project) => {
                let computed = project.items.iter().filter(|item| !item.is_passed_on());
                let computed = computed.map(|item| (item.column, Made::Computed(&item.value)));
                self.made.extend(computed);
            }
            Operator::Group(group) => {
                let aggregates = group.aggregates.iter();
                self.made.extend(aggregates.map(|(column, aggregate)| {
                    let made = Made::OfRows(aggregate.name(), aggregate.arguments());
                    (*column, made)
                }));
            }
            Operator::Window(window) => {
                let functions = window.functions.iter();
                self.made.extend(functions.map(|(column, function)| {
                    let made = Made::OfRows(function.name(), function.arguments());
                    (*column, made)
                }));
            }
            Operator::SetOperation(operation) => {
                for (at, column) in operation.columns.iter().enumerate() {
                    let inputs = operation.inputs.iter();
                    let inputs = inputs.map(|input| input.columns()[at]).collect();
                    self.made.insert(*column, Made::OneOf(inputs));
                }
            }
            Operator::Values(values) => {
                for (at, column) in values.columns.iter().enumerate() {
                    let written = values.rows.iter().map(|row| &row[at]).collect();
                    self.made.insert(*column, Made::Written(written));
                }
            }
            Operator::Filter(_)
            | Operator::Join(_)
            | Operator::DependentJoin(_)
            | Operator::Expand(_)
            | Operator::Sort(_)
            | Operator::Limit(_)
            | Operator::Recursive(_) => {}
        }
        for input in relation.inputs() {
            self.add(input, queries);
        }
    }

    fn step(&self) -> Option<()> {
        self.steps_left.set(self.steps_left.get().checked_sub(1)?);
        Some(())
    }

    fn of_column(&self, id: ColumnId) -> Option<Extent> {
        self.step()?;
        let field = (self.field)(id)?;
        if let Some(extent) = of_declared(&field) {
            return Some(extent);
        }
        let ty = field.data_type();
        let found = match self.made.get(&id) {
            Some(Made::Computed(value)) => self.of(value),
            Some(Made::OfRows(name, arguments)) => self.of_aggregate(name, arguments),
            Some(Made::OneOf(columns)) => {
                one_of(columns.iter().map(|column| self.of_column(*column)), ty)
            }
            Some(Made::Written(values)) => one_of(values.iter().map(|value| self.of(value)), ty),
            None => None,
        };
        found.or_else(|| of_kind(ty))
    }

    fn of_aggregate(&self, name: &str, args: &[Scalar]) -> Option<Extent> {
        let argument = self.of(args.first()?)?;
        match name {
            "any_value" | "min" | "max" | "first_value" | "last_value" | "nth_value" => {
                Some(argument)
            }
            "lag" | "lead" => match args.get(2) {
                None => Some(argument),
                Some(default) => argument.or(self.of(default)?),
            },
            "$sum" => {
                let (precision, scale) = argument.digits()?;
                let precision = precision.saturating_add(DIGITS_OF_SUM);
                Some(Extent::Decimal { precision, scale })
            }
            "$group_concat" => Some(Extent::Text(constant(args.get(2)?)?)),
            _ => None,
        }
    }

    fn of(&self, value: &Scalar) -> Option<Extent> {
        self.step()?;
        let ty = value.field().data_type();
        let found = match value.kind() {
            ScalarKind::Column(id) => return self.of_column(*id),
            ScalarKind::Literal(value) => return of_literal(value),
            ScalarKind::Case {
                branches,
                otherwise,
            } => {
                let results = branches.iter().map(|(_, then)| then);
                self.one_of(results.chain(otherwise.as_deref()), ty)
            }
            ScalarKind::Cast(operand) if !is_string(ty) => self.of_cast(operand, ty),
            ScalarKind::Call {
                function,
                arguments,
            } => match is_string(ty) {
                true => self.of_text_function((function, arguments), ty),
                false => self.of_number_function((function, arguments), ty),
            },
            _ => None,
        };
        found.or_else(|| of_kind(ty))
    }

    /// A number of another type that has the same digits.
    fn of_cast(&self, operand: &Scalar, to: &DataType) -> Option<Extent> {
        let extent = self.of(operand)?;
        match (extent, to) {
            (Extent::Null, _) => Some(extent),
            (Extent::Integer { .. }, to) if to.is_integer() => Some(extent),
            (
                Extent::Integer { .. } | Extent::Decimal { .. },
                DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale),
            ) => {
                let is_whole = extent.digits()?.1 <= u32::try_from(*scale).ok()?;
                is_whole.then_some(extent)
            }
            _ => None,
        }
    }

    /// What is the value of one of these, which all have this type.
    fn one_of<'e>(
        &self,
        values: impl Iterator<Item = &'e Scalar>,
        ty: &DataType,
    ) -> Option<Extent> {
        match is_string(ty) {
            true => {
                let longest = self.longest(values, is_bytes(ty))?;
                Some(of_length(longest, ty))
            }
            false => one_of(values.map(|value| self.of(value)), ty),
        }
    }

    /// How long something is as a part of a text, or of a byte string.
    fn part(&self, value: &Scalar, as_bytes: bool) -> Option<u32> {
        let length = self.of(value)?.shown();
        let is_converted = as_bytes && is_text(value.field().data_type());
        length.checked_mul(if is_converted { MAX_CHARACTER_BYTES } else { 1 })
    }

    fn longest<'e>(
        &self,
        mut values: impl Iterator<Item = &'e Scalar>,
        as_bytes: bool,
    ) -> Option<u32> {
        values.try_fold(0, |longest: u32, value| {
            Some(longest.max(self.part(value, as_bytes)?))
        })
    }

    fn sum(&self, values: &[Scalar], as_bytes: bool) -> Option<u32> {
        values.iter().try_fold(0, |sum: u32, value| {
            sum.checked_add(self.part(value, as_bytes)?)
        })
    }
}

/// What is one of several values of a type; `None` if one of them is not known.
fn one_of(extents: impl Iterator<Item = Option<Extent>>, ty: &DataType) -> Option<Extent> {
    let mut common = Extent::Null;
    for extent in extents {
        let extent = extent?;
        common = match is_string(ty) {
            true => of_length(common.shown().max(extent.shown()), ty),
            false => common.or(extent)?,
        };
    }
    Some(common)
}

fn of_length(length: u32, ty: &DataType) -> Extent {
    match is_bytes(ty) {
        true => Extent::Bytes(length),
        false => Extent::Text(length),
    }
}

/// What is known of a column by its declared type.
fn of_declared(field: &Field) -> Option<Extent> {
    let declared = ColumnType::parse(field.metadata().get(TYPE_KEY)?).ok()?;
    let filled = declared.zerofill().map_or(0, u32::from);
    let integer = |digits: u32, unsigned: bool| {
        Some(Extent::Integer {
            digits,
            shown: (digits + u32::from(!unsigned)).max(filled),
            is_narrow: digits <= DIGITS_OF_BIGINT,
        })
    };
    if is_of_any_length(&declared) {
        return None;
    }
    if let Some(digits) = declared.whole_digits() {
        let extent = integer(digits, declared.is_unsigned());
        // Half of the unsigned ones do not fit an INT.
        let is_int = declared.is_integer() && declared.integer_bits() == Some(32);
        return match is_int && declared.is_unsigned() {
            true => extent.map(Extent::widened),
            false => extent,
        };
    }
    if let Some((precision, scale)) = declared.decimal_digits() {
        return Some(Extent::Decimal {
            precision: precision.into(),
            scale: scale.into(),
        });
    }
    if let Some(digits) = declared.float_digits() {
        return Some(Extent::Shown(u32::from(digits.precision) + SIGN_AND_POINT));
    }
    match &declared {
        ty if ty.is_single() => Some(Extent::Shown(LONGEST_FLOAT.max(filled))),
        ty if ty.is_floating() => Some(Extent::Shown(LONGEST_DOUBLE.max(filled))),
        // Each byte may be a character.
        ty if ty.is_character() && ty.long_bytes().is_some() => {
            let most = ty.long_bytes().unwrap_or_default();
            Some(Extent::Text(u32::try_from(most).unwrap_or(u32::MAX)))
        }
        ty => {
            let length = shown_length(Some(ty), field.data_type())?;
            Some(match is_string(field.data_type()) {
                true => of_length(length, field.data_type()),
                false => Extent::Shown(length),
            })
        }
    }
}

/// What is known of a value by its kind alone.
fn of_kind(ty: &DataType) -> Option<Extent> {
    let integer = |digits: u32, unsigned: bool| {
        Some(Extent::Integer {
            digits,
            shown: digits + u32::from(!unsigned),
            is_narrow: digits <= DIGITS_OF_BIGINT,
        })
    };
    match ty {
        DataType::Null => Some(Extent::Null),
        DataType::Boolean => integer(1, true),
        DataType::Int8 | DataType::UInt8 => integer(3, ty.is_unsigned_integer()),
        DataType::Int16 | DataType::UInt16 => integer(5, ty.is_unsigned_integer()),
        DataType::Int32 => integer(DIGITS_OF_BIGINT, false),
        DataType::UInt32 => integer(DIGITS_OF_BIGINT, true).map(Extent::widened),
        DataType::Int64 => integer(19, false),
        DataType::UInt64 => integer(20, true),
        DataType::Float32 => Some(Extent::Shown(LONGEST_FLOAT)),
        DataType::Float64 => Some(Extent::Shown(LONGEST_DOUBLE)),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            Some(Extent::Decimal {
                precision: (*precision).into(),
                scale: u32::try_from(*scale).ok()?,
            })
        }
        ty if is_string(ty) => None,
        ty => Some(Extent::Shown(shown_length(None, ty)?)),
    }
}

fn of_literal(value: &ScalarValue) -> Option<Extent> {
    if value.is_null() {
        return Some(Extent::Null);
    }
    let length = |length: usize| u32::try_from(length).ok();
    Some(match value {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => Extent::Text(length(text.chars().count())?),
        ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes)) => {
            Extent::Bytes(length(bytes.len())?)
        }
        ScalarValue::Decimal128(Some(number), precision, scale) => {
            let scale = u32::try_from(*scale).ok()?;
            let digits = length(number.unsigned_abs().to_string().len())?;
            let declared = u32::from(*precision);
            let precision = match declared.saturating_sub(scale) >= DIGITS_OF_ANY_INTEGER {
                true => digits,
                // What is computed of DECIMALs may have more digits than its value.
                false => digits.max(declared),
            };
            Extent::Decimal {
                // At least the 0 before the point.
                precision: precision.max(scale + 1),
                scale,
            }
        }
        ScalarValue::Decimal256(Some(number), _, scale) => {
            let scale = u32::try_from(*scale).ok()?;
            let digits = length(int256_of(*number).count_digits())?;
            Extent::Decimal {
                precision: digits.max(scale + 1).min(MAX_WIDE_DIGITS.into()),
                scale,
            }
        }
        value if value.data_type().is_integer() => {
            let text = value.to_string();
            let digits = length(text.trim_start_matches('-').len())?;
            Extent::Integer {
                digits,
                shown: length(text.len())?,
                is_narrow: digits < DIGITS_OF_BIGINT,
            }
        }
        value => return of_kind(&value.data_type()),
    })
}

/// A number of characters that is written down.
fn constant(value: &Scalar) -> Option<u32> {
    match value.as_literal()?.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(Some(number)) => u32::try_from(number.max(0)).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_one_of_several_has_room_for_each() {
        let int = of_kind(&DataType::Int32);
        let one = of_literal(&ScalarValue::Int64(Some(1)));
        let decimal = Some(Extent::Decimal {
            precision: 10,
            scale: 2,
        });
        let among = |extents: &[Option<Extent>], ty: &DataType| one_of(extents.iter().copied(), ty);
        assert_eq!(
            among(&[int, one, Some(Extent::Null)], &DataType::Int64),
            int
        );
        let with_bigint = among(&[int, of_kind(&DataType::Int64)], &DataType::Int64);
        assert!(matches!(
            with_bigint,
            Some(Extent::Integer {
                digits: 19,
                is_narrow: false,
                ..
            })
        ));
        let number = DataType::Decimal128(21, 2);
        let wide = Some(Extent::Decimal {
            precision: 12,
            scale: 2,
        });
        assert_eq!(among(&[int, decimal], &number), wide);
        let text = DataType::Utf8View;
        assert_eq!(
            among(&[Some(Extent::Text(3)), int], &text),
            Some(Extent::Text(11))
        );
        assert_eq!(among(&[Some(Extent::Text(3)), None], &text), None);
    }
}
