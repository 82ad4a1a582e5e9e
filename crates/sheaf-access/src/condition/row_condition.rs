//! An [`EncodedCondition`] compiled for rows: tests on the bytes of the clustered tree's values.
//!
//! In come rows and a selection of them; what stays in the selection are the rows for which the condition is true. No
//! value is decoded first. A number is compared as an ordered word, or as an `i128` if it is a DECIMAL of more than 8
//! bytes. A string is compared as it is stored, or by its sort key, with a memo of the last verdicts. Two comparisons
//! of one column, as BETWEEN gives them, become one range.

use sheaf_table::fixed_width_loads::{load_little, load_little_wide, ordered_float};
use sheaf_table::{RowRun, RowView, SegmentRows, Table};
use sheaf_types::number::{WIDE_BYTES, Wide};
use sheaf_types::{Collation, ColumnType, Value};

use crate::condition::columns::{ColumnSource, NumberKind, Place, Source, scale_of};
use crate::condition::encoded::{
    BytesSet, Number, Tests, WordDomain, WordSet, compare_word, retain,
};
use crate::condition::predicate_cache::PredicateCache;
use crate::condition::{CompareOp, EncodedCondition};
use crate::error::{AccessError, Result};
use crate::keys::table_snapshot::TableSnapshot;

/// A condition on rows.
pub(crate) struct RowCondition {
    tests: Tests<RowTest>,
}

/// A test of one column. NULL passes only `IsNull`.
struct RowTest {
    /// The segment of the rows, and the column's number there.
    segment: (usize, usize),
    null_bit: Option<(usize, u8)>,
    kind: TestKind,
}

enum TestKind {
    IsNull,
    /// A number of at most 8 bytes.
    Word {
        offset: usize,
        width: usize,
        kind: NumberKind,
        set: WordSet,
    },
    /// A DECIMAL of more than 8 bytes: one of these ranges, bounds included. They are in order, and overlap only where
    /// they are the same.
    Wide {
        offset: usize,
        width: usize,
        ranges: Vec<(i128, i128)>,
    },
    /// A wide DECIMAL, compared by [bytes in its order](Wide::ordered_bytes).
    WideDecimal {
        offset: usize,
        set: BytesSet,
    },
    /// A string, compared as it is.
    Bytes {
        set: BytesSet,
        long_value: Vec<u8>,
    },
    /// A string, compared by its sort key.
    Text {
        collation: Collation,
        set: BytesSet,
        memo: PredicateCache,
        long_value: Vec<u8>,
        sort_key: Vec<u8>,
    },
}

impl RowCondition {
    /// Compiles `condition`.
    ///
    /// # Errors
    /// `Unsupported` if a constant is not of its column's type.
    pub(crate) fn compile(table: &Table, condition: &EncodedCondition) -> Result<Self> {
        Ok(Self {
            tests: compile(table, condition)?,
        })
    }

    /// Keeps in `selection` (positions in `rows`) the rows for which the condition is true.
    pub(crate) fn retain(
        &mut self,
        table: &TableSnapshot,
        rows: &RowRun<'_>,
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        self.tests.retain(selection, &mut |test, selection| {
            test.retain(table, rows, selection)
        })
    }
}

fn compile(table: &Table, condition: &EncodedCondition) -> Result<Tests<RowTest>> {
    let compile_all = |terms: &[EncodedCondition]| {
        terms
            .iter()
            .map(|term| compile(table, term))
            .collect::<Result<Vec<_>>>()
    };
    match condition {
        EncodedCondition::And(terms) => Ok(Tests::all_merged(compile_all(terms)?, merge)),
        EncodedCondition::Or(terms) => Ok(Tests::any_merged(compile_all(terms)?, words)),
        EncodedCondition::Compare {
            value: Value::Null, ..
        } => Ok(Tests::never()),
        EncodedCondition::Compare { column, op, value } => {
            column_test(table, *column, Operand::Compare(*op, value))
        }
        EncodedCondition::In { column, values } => column_test(table, *column, Operand::In(values)),
        EncodedCondition::IsNotNull { column } => column_test(table, *column, Operand::NotNull),
        EncodedCondition::IsNull { column } => Ok(match table.row_layout.null_bit(*column) {
            None => Tests::never(),
            null_bit => Tests::One(RowTest {
                segment: table.row_layout.segment_of(*column),
                null_bit,
                kind: TestKind::IsNull,
            }),
        }),
    }
}

/// Makes one range of two of the same column, as BETWEEN gives them. False: it cannot be done.
fn merge(test: &mut RowTest, other: &RowTest) -> bool {
    let (TestKind::Word { set, .. }, TestKind::Word { set: other_set, .. }) =
        (&mut test.kind, &other.kind)
    else {
        return false;
    };
    match set.intersect(other_set) {
        Some(both) if test.segment == other.segment => {
            *set = both;
            true
        }
        _ => false,
    }
}

/// The column that a test of words tests, and the words.
fn words(test: &mut RowTest) -> Option<((usize, usize), &mut WordSet)> {
    match &mut test.kind {
        TestKind::Word { set, .. } => Some((test.segment, set)),
        _ => None,
    }
}

enum Operand<'a> {
    Compare(CompareOp, &'a Value),
    In(&'a [Value]),
    NotNull,
}

fn column_test(table: &Table, column: usize, operand: Operand<'_>) -> Result<Tests<RowTest>> {
    let source = ColumnSource::new(table, Source::Rows, column)?;
    let kind = match source.place {
        Place::RowNumber {
            offset,
            width,
            kind: NumberKind::Float,
        } => {
            let set = match operand {
                Operand::NotNull => WordSet::Any,
                Operand::Compare(op, value) => compare_word(
                    op,
                    float_word(value).ok_or_else(|| mismatch(table, column))?,
                ),
                Operand::In(values) => {
                    let mut words: Vec<u64> = non_null(values)
                        .map(|value| float_word(value).ok_or_else(|| mismatch(table, column)))
                        .collect::<Result<_>>()?;
                    words.sort_unstable();
                    WordSet::OneOf(words)
                }
            };
            TestKind::Word {
                offset,
                width,
                kind: NumberKind::Float,
                set,
            }
        }
        Place::RowNumber {
            offset,
            width,
            kind,
        } if width <= 8 => {
            let domain = match kind {
                NumberKind::Signed => WordDomain::signed(8),
                _ => WordDomain::unsigned(8),
            };
            let number = |value| number(table, &source, value);
            let set = match operand {
                Operand::NotNull => WordSet::Any,
                Operand::Compare(op, value) => domain.compare(op, number(value)?),
                Operand::In(values) => domain.one_of(
                    non_null(values)
                        .map(number)
                        .collect::<Result<Vec<_>>>()?
                        .into_iter(),
                ),
            };
            TestKind::Word {
                offset,
                width,
                kind,
                set,
            }
        }
        Place::RowNumber { offset, .. } if source.ty.is_wide_decimal() => {
            let bytes = |value: &Value| match value {
                Value::WideDecimal { unscaled, .. } => Ok(unscaled.ordered_bytes().to_vec()),
                _ => Err(mismatch(table, column)),
            };
            let set = match operand {
                Operand::NotNull => BytesSet::any(),
                Operand::Compare(op, value) => BytesSet::compare(op, bytes(value)?),
                Operand::In(values) => {
                    BytesSet::one_of(non_null(values).map(bytes).collect::<Result<_>>()?)
                }
            };
            TestKind::WideDecimal { offset, set }
        }
        Place::RowNumber { offset, width, .. } => {
            let number = |value| number(table, &source, value);
            let mut ranges: Vec<(i128, i128)> = match operand {
                Operand::NotNull => vec![(i128::MIN, i128::MAX)],
                Operand::Compare(CompareOp::NotEq, value) => {
                    let number = number(value)?;
                    let sides = [CompareOp::Less, CompareOp::Greater];
                    sides
                        .into_iter()
                        .filter_map(|op| number.bounds(op))
                        .collect()
                }
                Operand::Compare(op, value) => number(value)?.bounds(op).into_iter().collect(),
                Operand::In(values) => non_null(values)
                    .filter_map(|value| {
                        number(value)
                            .map(|number| number.bounds(CompareOp::Eq))
                            .transpose()
                    })
                    .collect::<Result<_>>()?,
            };
            ranges.sort_unstable();
            TestKind::Wide {
                offset,
                width,
                ranges,
            }
        }
        _ => {
            let collation = collation_of(&source.ty);
            let bytes = |value: &Value| {
                string_bytes(collation, value).ok_or_else(|| mismatch(table, column))
            };
            let set = match operand {
                Operand::NotNull => BytesSet::any(),
                Operand::Compare(op, value) => BytesSet::compare(op, bytes(value)?),
                Operand::In(values) => {
                    BytesSet::one_of(non_null(values).map(bytes).collect::<Result<_>>()?)
                }
            };
            match collation {
                None => TestKind::Bytes {
                    set,
                    long_value: Vec::new(),
                },
                Some(collation) => TestKind::Text {
                    collation,
                    set,
                    memo: PredicateCache::new(),
                    long_value: Vec::new(),
                    sort_key: Vec::new(),
                },
            }
        }
    };
    Ok(Tests::One(RowTest {
        segment: source.segment,
        null_bit: source.null_bit,
        kind,
    }))
}

/// A constant as a number in units of the column.
pub(crate) fn number(table: &Table, source: &ColumnSource, value: &Value) -> Result<Number> {
    let number = match value {
        Value::Timestamp(micros) => {
            let stored = Value::Timestamp(source.time_zone.utc(*micros));
            Number::of(&stored, 0)
        }
        value => Number::of(value, scale_of(&source.ty)),
    };
    number.ok_or_else(|| mismatch(table, source.column))
}

/// The constants of a list that are not NULL: `x IN (..., NULL)` is never true because of the NULL.
pub(crate) fn non_null(values: &[Value]) -> impl Iterator<Item = &Value> {
    values.iter().filter(|value| !value.is_null())
}

pub(crate) fn mismatch(table: &Table, column: usize) -> AccessError {
    let definition = &table.definition;
    AccessError::Unsupported(format!(
        "a constant that column '{}.{}' is compared with is not of its type, {}",
        definition.name, definition.columns[column].name, definition.columns[column].ty
    ))
}

fn float_word(value: &Value) -> Option<u64> {
    match value {
        Value::Float(number) => Some(ordered_float(f64::from(*number))),
        Value::Double(number) => Some(ordered_float(*number)),
        _ => None,
    }
}

/// The collation of a character column that does not compare byte by byte as it is stored.
fn collation_of(ty: &ColumnType) -> Option<Collation> {
    let collation = ty.collation().filter(|_| ty.is_character())?;
    (collation != Collation::Binary).then_some(collation)
}

/// A string constant as it is compared.
fn string_bytes(collation: Option<Collation>, value: &Value) -> Option<Vec<u8>> {
    match (collation, value) {
        (Some(collation), Value::Text(text)) => {
            let mut key = Vec::new();
            collation.sort_key_into(text, &mut key);
            Some(key)
        }
        (None, Value::Text(text)) => Some(text.clone().into_bytes()),
        (None, Value::Bytes(bytes)) => Some(bytes.clone()),
        _ => None,
    }
}

impl RowTest {
    fn retain(
        &mut self,
        table: &TableSnapshot,
        run: &RowRun<'_>,
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        match run.segment(self.segment.0) {
            SegmentRows::Each(rows) => self.retain_each(table, rows, selection)?,
            SegmentRows::Same(row) => {
                let mut first = vec![0];
                self.retain_each(table, &[row], &mut first)?;
                if first.is_empty() {
                    selection.clear();
                }
            }
        }
        Ok(())
    }

    /// Keeps the rows that pass: of the column's segment.
    fn retain_each(
        &mut self,
        table: &TableSnapshot,
        rows: &[RowView<'_>],
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        let column = self.segment.1;
        if let Some((byte, mask)) = self.null_bit {
            let null_passes = matches!(self.kind, TestKind::IsNull);
            retain(selection, |row| {
                (rows[row as usize].bytes()[byte] & mask != 0) == null_passes
            });
        }
        match &mut self.kind {
            TestKind::IsNull => {}
            TestKind::Word {
                offset,
                width,
                kind,
                set,
            } => {
                let (offset, width, shift) = (*offset, *width, 64 - 8 * *width as u32);
                let load = |row: u32| load_little(rows[row as usize].bytes(), offset, width);
                match kind {
                    NumberKind::Signed => {
                        set.retain(selection, |row| {
                            ((load(row) as i64 >> shift) as u64) ^ 1 << 63
                        });
                    }
                    NumberKind::Unsigned => set.retain(selection, |row| load(row) >> shift),
                    NumberKind::Float if width == 4 => set.retain(selection, |row| {
                        ordered_float(f64::from(f32::from_bits((load(row) >> 32) as u32)))
                    }),
                    NumberKind::Float => {
                        set.retain(selection, |row| ordered_float(f64::from_bits(load(row))))
                    }
                }
            }
            TestKind::Wide {
                offset,
                width,
                ranges,
            } => {
                let shift = 128 - 8 * *width as u32;
                retain(selection, |row| {
                    let number = load_little_wide(rows[row as usize].bytes(), *offset, *width)
                        as i128
                        >> shift;
                    let at = ranges.partition_point(|&(_, high)| high < number);
                    ranges.get(at).is_some_and(|&(low, _)| low <= number)
                });
            }
            TestKind::WideDecimal { offset, set } => retain(selection, |row| {
                let row = rows[row as usize].bytes();
                let field = row.get(*offset..*offset + WIDE_BYTES);
                let field = field.and_then(|field| field.try_into().ok());
                field.is_some_and(|field| set.contains(&Wide::of_bytes(field).ordered_bytes()))
            }),
            TestKind::Bytes { set, long_value } => {
                try_retain(selection, |row| {
                    Ok(set.contains(string_of(table, &rows[row as usize], column, long_value)?))
                })?;
            }
            TestKind::Text {
                collation,
                set,
                memo,
                long_value,
                sort_key,
            } => {
                try_retain(selection, |row| {
                    let string = string_of(table, &rows[row as usize], column, long_value)?;
                    Ok(memo.verdict(string, |string| {
                        sort_key.clear();
                        collation.sort_key_into(&String::from_utf8_lossy(string), sort_key);
                        set.contains(sort_key)
                    }))
                })?;
            }
        }
        Ok(())
    }
}

/// The string in a column of a row; `long_value` holds it if the row does not.
fn string_of<'a>(
    table: &TableSnapshot,
    row: &RowView<'a>,
    column: usize,
    long_value: &'a mut Vec<u8>,
) -> Result<&'a [u8]> {
    if row.is_overflow(column) {
        table.read_long_value(row.get_bytes(column), long_value)?;
        return Ok(long_value);
    }
    Ok(row.get_bytes(column))
}

/// Keeps the rows that `test` accepts, in their order.
fn try_retain(selection: &mut Vec<u32>, mut test: impl FnMut(u32) -> Result<bool>) -> Result<()> {
    let mut kept = 0;
    for position in 0..selection.len() {
        let row = selection[position];
        selection[kept] = row;
        kept += usize::from(test(row)?);
    }
    selection.truncate(kept);
    Ok(())
}
