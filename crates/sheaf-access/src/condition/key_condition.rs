//! An [`EncodedCondition`] compiled for index entries: tests on the parts of their keys.
//!
//! A part orders as its bytes do, so a constant is encoded once and compared with the part by memcmp. Parts of up to 8
//! bytes are loaded as one word instead.

use sheaf_table::fixed_width_loads::load_big;
use sheaf_table::{KeyLayout, KeyPart, PartKind, Table, ValueRef};
use sheaf_types::Value;

use crate::condition::columns::{ColumnSource, NumberKind, Place, Source};
use crate::condition::encoded::{
    BytesSet, Number, Tests, WordDomain, WordSet, compare_word, retain,
};
use crate::condition::index_entries::EntryBlock;
use crate::condition::row_condition::{mismatch, non_null, number};
use crate::condition::{CompareOp, EncodedCondition};
use crate::error::{AccessError, Result};

/// A condition on the entries of one secondary index.
pub(crate) struct KeyCondition {
    /// All of them must be true. Each with the last part that it tests, in the order of these: an entry that fails on
    /// an early part is not searched for the later ones.
    terms: Vec<(Option<usize>, Tests<KeyTest>)>,
}

/// A test of one part. NULL passes only `IsNull`.
struct KeyTest {
    part: usize,
    /// The part begins with a NULL byte.
    nullable: bool,
    kind: TestKind,
}

enum TestKind {
    IsNull,
    /// A number of at most 8 bytes.
    Word {
        width: usize,
        set: WordSet,
    },
    /// The part's encoded bytes, NULL byte included.
    Bytes(BytesSet),
}

impl KeyCondition {
    /// Compiles `condition` for the index at `position`.
    ///
    /// # Errors
    /// `Unsupported` if the index does not hold a column whole, or a constant is not of its column's type.
    pub(crate) fn compile(
        table: &Table,
        position: usize,
        condition: &EncodedCondition,
    ) -> Result<Self> {
        let compiler = Compiler {
            table,
            position,
            layout: &table.secondary_layouts[position],
        };
        let tests = compiler.compile(condition)?;
        let terms = match tests {
            Tests::And(terms) => terms,
            other => vec![other],
        };
        let mut terms: Vec<_> = terms
            .into_iter()
            .map(|term| (last_tested_part(&term), term))
            .collect();
        terms.sort_by_key(|(part, _)| *part);
        Ok(Self { terms })
    }

    /// Keeps in `selection` the entries for which the condition is true.
    pub(crate) fn retain(
        &mut self,
        layout: &KeyLayout,
        block: &mut EntryBlock,
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        for (part, term) in &mut self.terms {
            if let Some(part) = part {
                block.locate(layout, *part, selection)?;
            }
            let block = &*block;
            term.retain(selection, &mut |test: &mut KeyTest, selection| {
                test.retain(block, selection);
                Ok::<_, AccessError>(())
            })?;
        }
        Ok(())
    }
}

fn last_tested_part(tests: &Tests<KeyTest>) -> Option<usize> {
    match tests {
        Tests::One(test) => Some(test.part),
        Tests::And(terms) | Tests::Or(terms) => terms.iter().filter_map(last_tested_part).max(),
    }
}

struct Compiler<'a> {
    table: &'a Table,
    position: usize,
    layout: &'a KeyLayout,
}

enum Operand<'a> {
    Compare(CompareOp, &'a Value),
    In(&'a [Value]),
    NotNull,
}

impl Compiler<'_> {
    fn compile(&self, condition: &EncodedCondition) -> Result<Tests<KeyTest>> {
        let compile_all = |terms: &[EncodedCondition]| {
            terms
                .iter()
                .map(|term| self.compile(term))
                .collect::<Result<Vec<_>>>()
        };
        match condition {
            EncodedCondition::And(terms) => Ok(Tests::all_merged(compile_all(terms)?, merge)),
            EncodedCondition::Or(terms) => Ok(Tests::any_merged(compile_all(terms)?, words)),
            EncodedCondition::Compare {
                value: Value::Null, ..
            } => Ok(Tests::never()),
            EncodedCondition::Compare { column, op, value } => {
                self.column_test(*column, Operand::Compare(*op, value))
            }
            EncodedCondition::In { column, values } => {
                self.column_test(*column, Operand::In(values))
            }
            EncodedCondition::IsNotNull { column } => self.column_test(*column, Operand::NotNull),
            EncodedCondition::IsNull { column } => {
                let part = self.part(*column)?;
                Ok(if self.layout.parts[part].nullable {
                    Tests::One(KeyTest {
                        part,
                        nullable: true,
                        kind: TestKind::IsNull,
                    })
                } else {
                    Tests::never()
                })
            }
        }
    }

    /// The part that holds a column whole. It need not be decodable: a sort key can be compared all the same.
    fn part(&self, column: usize) -> Result<usize> {
        let whole = |part: &KeyPart| part.column == Some(column) && part.prefix_length.is_none();
        self.layout.parts.iter().position(whole).ok_or_else(|| {
            let definition = &self.table.definition;
            AccessError::Unsupported(format!(
                "index '{}' of table '{}' does not hold column '{}'",
                definition.secondary[self.position].name,
                definition.name,
                definition.columns[column].name
            ))
        })
    }

    fn column_test(&self, column: usize, operand: Operand<'_>) -> Result<Tests<KeyTest>> {
        let part = self.part(column)?;
        let nullable = self.layout.parts[part].nullable;
        let kind = match ColumnSource::new(self.table, Source::Entries(self.position), column)
            .map(|c| (c.place, c))
        {
            Ok((Place::KeyNumber { width, kind, .. }, source))
                if width <= 8 && kind != NumberKind::Float =>
            {
                let domain = match kind {
                    NumberKind::Signed => WordDomain::signed(width),
                    _ => WordDomain::unsigned(width),
                };
                let number = |value| number(self.table, &source, value);
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
                TestKind::Word { width, set }
            }
            Ok((
                Place::KeyNumber {
                    width,
                    kind: NumberKind::Float,
                    ..
                },
                _,
            )) => {
                let word = |value| {
                    Ok::<_, AccessError>(load_big(
                        &self.encode(part, value)?,
                        usize::from(nullable),
                        width,
                    ))
                };
                let set = match operand {
                    Operand::NotNull => WordSet::Any,
                    Operand::Compare(op, value) => compare_word(op, word(value)?),
                    Operand::In(values) => {
                        let mut words = non_null(values).map(word).collect::<Result<Vec<_>>>()?;
                        words.sort_unstable();
                        WordSet::OneOf(words)
                    }
                };
                TestKind::Word { width, set }
            }
            _ => TestKind::Bytes(match operand {
                Operand::NotNull => BytesSet::any(),
                Operand::Compare(op, value) => BytesSet::compare(op, self.encode(part, value)?),
                Operand::In(values) => BytesSet::one_of(
                    non_null(values)
                        .map(|value| self.encode(part, value))
                        .collect::<Result<Vec<_>>>()?,
                ),
            }),
        };
        Ok(Tests::One(KeyTest {
            part,
            nullable,
            kind,
        }))
    }

    /// A constant as the part holds it.
    fn encode(&self, part: usize, value: &Value) -> Result<Vec<u8>> {
        let description = &self.layout.parts[part];
        let encodable = match (description.kind, value) {
            (PartKind::Decimal { .. }, Value::WideDecimal { .. }) => Some(ValueRef::from(value)),
            (PartKind::Decimal { scale, .. }, _) => Number::of(value, scale)
                .filter(|number| number.exact)
                .map(|number| ValueRef::Decimal(number.floor)),
            (PartKind::Float, Value::Float(_)) | (PartKind::Double, Value::Double(_)) => {
                Some(ValueRef::from(value))
            }
            (PartKind::Text(_), Value::Text(_)) => Some(ValueRef::from(value)),
            (PartKind::Bytes, Value::Bytes(_) | Value::Text(_)) => Some(ValueRef::from(value)),
            _ => None,
        };
        let Some(encodable) = encodable else {
            return Err(mismatch(self.table, description.column.unwrap_or_default()));
        };
        let mut bytes = Vec::new();
        self.layout.encode_part(part, encodable, &mut bytes);
        Ok(bytes)
    }
}

/// Makes one range of two of the same part, as BETWEEN gives them. False: it cannot be done.
fn merge(test: &mut KeyTest, other: &KeyTest) -> bool {
    let (TestKind::Word { set, .. }, TestKind::Word { set: other_set, .. }) =
        (&mut test.kind, &other.kind)
    else {
        return false;
    };
    match set.intersect(other_set) {
        Some(both) if test.part == other.part => {
            *set = both;
            true
        }
        _ => false,
    }
}

/// The part that a test of words tests, and the words.
fn words(test: &mut KeyTest) -> Option<(usize, &mut WordSet)> {
    match &mut test.kind {
        TestKind::Word { set, .. } => Some((test.part, set)),
        _ => None,
    }
}

impl KeyTest {
    fn retain(&self, block: &EntryBlock, selection: &mut Vec<u32>) {
        let starts = block.starts(self.part);
        if self.nullable {
            let null_passes = matches!(self.kind, TestKind::IsNull);
            retain(selection, |entry| {
                let start = usize::from(starts[entry as usize]);
                (block.keys.get(entry as usize).get(start) == Some(&0)) == null_passes
            });
        }
        match &self.kind {
            TestKind::IsNull => {}
            TestKind::Word { width, set } => {
                let (width, null_byte) = (*width, usize::from(self.nullable));
                set.retain(selection, |entry| {
                    let start = usize::from(starts[entry as usize]) + null_byte;
                    load_big(block.keys.get(entry as usize), start, width)
                });
            }
            TestKind::Bytes(set) => retain(selection, |entry| {
                set.contains(block.part(self.part, entry as usize))
            }),
        }
    }
}
