//! What an entry of a secondary index says itself.
//!
//! ```text
//!   KEY (a, b)   a BETWEEN ? AND ? AND b = ? AND c > ?
//!                |---- range ----|     |---|     |---|   the entry decides about b, only its row about c
//! ```
//!
//! Tests of columns that the index holds are made on the entry's bytes, which order as their values do: an entry that
//! fails saves the lookup of its row. If the index holds every column that the statement reads, no row is looked up at
//! all: the entry's values are put where the row would have them.

use std::cmp::Ordering;

use sheaf_table::{KeyLayout, KeyPart, Table, TableDefinition};
use smallvec::SmallVec;

use crate::direct::operands::operand::Place;
use crate::direct::operands::relation::{Branch, Relation};
use crate::error::Result;

/// What a plan takes from the entries of its index.
#[derive(Clone, Debug, Default)]
pub(in crate::direct) struct EntryUse {
    /// Columns that are tested on the entry, with the parts that hold them.
    tested: Vec<(usize, usize)>,
    /// All columns that the plan reads, ascending, with the parts that hold them.
    covered: Option<Vec<(usize, usize)>>,
}

impl EntryUse {
    /// `tested`: the columns that are tested, if the index condition is to be used; `read`: those that are read
    /// besides, if entries may stand for their rows.
    pub(in crate::direct) fn new(
        layout: &KeyLayout,
        (tested, pushes): (&[usize], bool),
        read: Option<&[usize]>,
    ) -> EntryUse {
        let read = read.and_then(|read| {
            let mut columns = [tested, read].concat();
            columns.sort_unstable();
            columns.dedup();
            let held = |column: usize| Some((column, layout.part_of(column)?));
            columns.into_iter().map(held).collect::<Option<Vec<_>>>()
        });
        let part = |column: &usize| {
            let holds =
                |part: &KeyPart| part.column == Some(*column) && part.prefix_length.is_none();
            Some((*column, layout.parts.iter().position(holds)?))
        };
        EntryUse {
            tested: match pushes || read.is_some() {
                true => tested.iter().filter_map(part).collect(),
                false => Vec::new(),
            },
            covered: read,
        }
    }

    /// Whether no row is looked up.
    pub(in crate::direct) fn is_covering(&self) -> bool {
        self.covered.is_some()
    }

    /// The part on which a column is tested.
    pub(in crate::direct) fn part_tested(&self, column: usize) -> Option<usize> {
        let mut tested = self.tested.iter();
        tested.find(|(of, _)| *of == column).map(|(_, part)| *part)
    }
}

/// A test of a part of the entry: in one of the branches every relation holds.
#[derive(Debug)]
pub(in crate::direct) struct EntryTest {
    part: usize,
    branches: SmallVec<[EncodedBranch; 1]>,
    wants_null: bool,
}

/// Relations that hold all, nearly always one.
type EncodedBranch = SmallVec<[(Relation, EncodedPlace); 1]>;

/// As [`Place`], the value as the part has it.
#[derive(Debug)]
enum EncodedPlace {
    Null,
    BelowAll,
    AboveAll,
    At(Vec<u8>),
}

impl EntryTest {
    /// Of the same branches of relations to values.
    pub(in crate::direct) fn new(
        layout: &KeyLayout,
        part: usize,
        (branches, wants_null): (&[Branch], bool),
    ) -> EntryTest {
        let encoded = |place: &Place| match place {
            Place::Null => EncodedPlace::Null,
            Place::BelowAll => EncodedPlace::BelowAll,
            Place::AboveAll => EncodedPlace::AboveAll,
            Place::At(value) => {
                let mut bytes = Vec::new();
                layout.encode_part(part, value.into(), &mut bytes);
                EncodedPlace::At(bytes)
            }
        };
        let branches = branches.iter().map(|branch| {
            let branch = branch.iter();
            branch
                .map(|(relation, place)| (*relation, encoded(place)))
                .collect()
        });
        EntryTest {
            part,
            branches: branches.collect(),
            wants_null,
        }
    }

    /// Whether an entry with these bytes in the part passes.
    fn passes(&self, layout: &KeyLayout, bytes: &[u8]) -> bool {
        if layout.is_null(self.part, bytes) {
            return self.wants_null;
        }
        let holds = |(relation, place): &(Relation, EncodedPlace)| match place {
            EncodedPlace::Null => false,
            EncodedPlace::BelowAll => relation.holds(Ordering::Greater),
            EncodedPlace::AboveAll => relation.holds(Ordering::Less),
            EncodedPlace::At(value) => relation.holds(bytes.cmp(value)),
        };
        self.branches.iter().any(|branch| branch.iter().all(holds))
    }
}

/// Reads entries of one index.
pub(in crate::direct) struct EntryReader<'a> {
    definition: &'a TableDefinition,
    layout: &'a KeyLayout,
    tests: SmallVec<[&'a EntryTest; 2]>,
    covered: Option<&'a [(usize, usize)]>,
    /// Where the parts of the entry begin that are looked at.
    offsets: SmallVec<[usize; 8]>,
    /// Parts to locate.
    parts: usize,
    texts: Vec<Vec<u8>>,
    row: Vec<u8>,
}

impl<'a> EntryReader<'a> {
    pub(in crate::direct) fn new(
        table: &'a Table,
        position: usize,
        tests: impl Iterator<Item = &'a EntryTest>,
        uses: &'a EntryUse,
    ) -> EntryReader<'a> {
        let tests: SmallVec<[&EntryTest; 2]> = tests.collect();
        let covered = uses.covered.as_deref();
        let tested = tests.iter().map(|test| test.part);
        let shown = covered.into_iter().flatten().map(|(_, part)| *part);
        EntryReader {
            definition: &table.definition,
            layout: &table.secondary_layouts[position],
            parts: tested.chain(shown).max().map_or(0, |last| last + 1),
            tests,
            covered,
            offsets: SmallVec::new(),
            texts: vec![Vec::new(); covered.map_or(0, <[_]>::len)],
            row: Vec::new(),
        }
    }

    /// Whether entries are tested in order not to look up the rows of those that fail.
    pub(in crate::direct) fn is_index_condition(&self) -> bool {
        !self.tests.is_empty() && self.covered.is_none()
    }

    /// Looks at the next entry: whether it passes.
    pub(in crate::direct) fn passes(&mut self, entry: &[u8]) -> Result<bool> {
        self.offsets.clear();
        let mut at = 0;
        for part in 0..self.parts {
            self.offsets.push(at);
            at += self.layout.part_length(part, &entry[at..])?;
        }
        self.offsets.push(at);
        let offsets = &self.offsets;
        let passes = |test: &&EntryTest| {
            let bytes = &entry[offsets[test.part]..offsets[test.part + 1]];
            test.passes(self.layout, bytes)
        };
        Ok(self.tests.iter().all(passes))
    }

    /// The row that the entry stands for, with the columns that the statement reads; none if more is needed. The entry
    /// is the one that was looked at.
    pub(in crate::direct) fn row(
        &mut self,
        table: &Table,
        entry: &[u8],
        payload: &[u8],
    ) -> Result<Option<&[u8]>> {
        let Some(covered) = self.covered else {
            return Ok(None);
        };
        let mut values: SmallVec<[_; 8]> = SmallVec::new();
        for ((column, part), text) in covered.iter().zip(&mut self.texts) {
            let bytes = &entry[self.offsets[*part]..];
            let value = self
                .layout
                .decode_ref(self.definition, *part, bytes, payload, text)?;
            values.push((*column, value));
        }
        self.row.clear();
        table.row_layout.encode_some(&values, &mut self.row);
        Ok(Some(&self.row))
    }
}
