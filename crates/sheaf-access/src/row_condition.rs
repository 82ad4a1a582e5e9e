//! An [`EncodedCondition`] compiled for rows: tests on the bytes of the clustered tree's values.

use sheaf_table::{Collation, ColumnType, RowView, Table, Value};

use crate::columns::{ColumnSource, NumberKind, Place, Source, scale_of};
use crate::condition::{CompareOp, EncodedCondition};
use crate::encoded::{BytesSet, Number, Tests, WordDomain, WordSet, compare_word, retain};
use crate::error::{AccessError, Result};
use crate::words::{load_little, load_little_wide, ordered_float};

/// A condition on rows.
pub(crate) struct RowCondition {
    tests: Tests<RowTest>,
    /// A long value, and the sort key of the string that is being compared.
    long_value: Vec<u8>,
    sort_key: Vec<u8>,
}

/// A test of one column. NULL passes only `IsNull`.
#[derive(Clone, Debug)]
struct RowTest {
    column: usize,
    null_bit: Option<(usize, u8)>,
    kind: TestKind,
}

#[derive(Clone, Debug)]
enum TestKind {
    IsNull,
    /// A number of at most 8 bytes.
    Word {
        offset: usize,
        width: usize,
        kind: NumberKind,
        set: WordSet,
    },
    /// A DECIMAL of more than 8 bytes: one of these ranges, bounds included.
    Wide {
        offset: usize,
        width: usize,
        ranges: Vec<(i128, i128)>,
    },
    /// A string; with a collation its sort key is compared.
    Bytes {
        collation: Option<Collation>,
        set: BytesSet,
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
            long_value: Vec::new(),
            sort_key: Vec::new(),
        })
    }

    /// Keeps in `selection` (positions in `rows`) the rows for which the condition is true.
    pub(crate) fn retain(
        &mut self,
        table: &Table,
        rows: &[RowView<'_>],
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        let (long_value, sort_key) = (&mut self.long_value, &mut self.sort_key);
        self.tests.retain(selection, &mut |test, selection| {
            test.retain(table, rows, selection, long_value, sort_key)
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
        EncodedCondition::And(terms) => Ok(Tests::And(merge(compile_all(terms)?))),
        EncodedCondition::Or(terms) => Ok(Tests::Or(compile_all(terms)?)),
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
                column: *column,
                null_bit,
                kind: TestKind::IsNull,
            }),
        }),
    }
}

/// Merges ranges of one column, as BETWEEN gives them, into one.
fn merge(terms: Vec<Tests<RowTest>>) -> Vec<Tests<RowTest>> {
    let mut merged: Vec<Tests<RowTest>> = Vec::with_capacity(terms.len());
    for term in terms {
        if let Tests::One(RowTest {
            column,
            kind: TestKind::Word { set, .. },
            ..
        }) = &term
        {
            let earlier = merged.iter_mut().find_map(|other| match other {
                Tests::One(RowTest {
                    column: same,
                    kind: TestKind::Word { set: other, .. },
                    ..
                }) if same == column => other.intersect(set).map(|both| (other, both)),
                _ => None,
            });
            if let Some((set, both)) = earlier {
                *set = both;
                continue;
            }
        }
        merged.push(term);
    }
    merged
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
        Place::RowNumber { offset, width, .. } => {
            let number = |value| number(table, &source, value);
            let ranges = match operand {
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
            TestKind::Bytes { collation, set }
        }
    };
    Ok(Tests::One(RowTest {
        column,
        null_bit: source.null_bit,
        kind,
    }))
}

/// A constant as a number in units of the column.
pub(crate) fn number(table: &Table, source: &ColumnSource, value: &Value) -> Result<Number> {
    Number::of(value, scale_of(&source.ty)).ok_or_else(|| mismatch(table, source.column))
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
    match ty {
        ColumnType::Char { collation, .. }
        | ColumnType::VarChar { collation, .. }
        | ColumnType::Text { collation, .. } => {
            (*collation != Collation::Binary).then_some(*collation)
        }
        _ => None,
    }
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
        &self,
        table: &Table,
        rows: &[RowView<'_>],
        selection: &mut Vec<u32>,
        long_value: &mut Vec<u8>,
        sort_key: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some((byte, mask)) = self.null_bit {
            let null_passes = matches!(self.kind, TestKind::IsNull);
            retain(selection, |row| {
                (rows[row as usize].bytes()[byte] & mask != 0) == null_passes
            });
        }
        match &self.kind {
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
                    ranges
                        .iter()
                        .any(|&(low, high)| low <= number && number <= high)
                });
            }
            TestKind::Bytes { collation, set } => {
                let mut kept = 0;
                for position in 0..selection.len() {
                    let entry = selection[position];
                    let row = &rows[entry as usize];
                    let mut bytes = row.get_bytes(self.column);
                    if row.is_overflow(self.column) {
                        table.read_overflow(bytes, long_value)?;
                        bytes = long_value;
                    }
                    let passes = match collation {
                        None => set.contains(bytes),
                        Some(collation) => {
                            sort_key.clear();
                            collation.sort_key_into(&String::from_utf8_lossy(bytes), sort_key);
                            set.contains(sort_key)
                        }
                    };
                    selection[kept] = entry;
                    kept += usize::from(passes);
                }
                selection.truncate(kept);
            }
        }
        Ok(())
    }
}
