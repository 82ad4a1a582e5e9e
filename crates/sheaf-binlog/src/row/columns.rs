//! Sets of columns, and which columns an image has: binlog_row_image.

use crate::bytes::put_bits_low_first;

/// Columns of a table, by their positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSet {
    columns: Vec<bool>,
    /// The bits of the last byte that stand for no column: MySQL sets them in a set that began as that of all.
    padding: bool,
}

impl ColumnSet {
    /// None of so many columns.
    pub fn none(columns: usize) -> ColumnSet {
        ColumnSet {
            columns: vec![false; columns],
            padding: false,
        }
    }

    /// All of so many columns.
    pub fn all(columns: usize) -> ColumnSet {
        ColumnSet {
            columns: vec![true; columns],
            padding: true,
        }
    }

    /// Adds a column. A position beyond the last column adds none.
    pub fn add(&mut self, column: usize) {
        if let Some(is_in) = self.columns.get_mut(column) {
            *is_in = true;
        }
    }

    /// The same set with a column.
    pub fn with(mut self, column: usize) -> ColumnSet {
        self.add(column);
        self
    }

    pub fn contains(&self, column: usize) -> bool {
        self.columns.get(column) == Some(&true)
    }

    /// How many columns the table has.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// The positions of the columns, in their order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.columns.len()).filter(|column| self.columns[*column])
    }

    /// Appends a bit for each column of the table.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let padding = std::iter::repeat_n(
            self.padding,
            self.width().next_multiple_of(8) - self.width(),
        );
        put_bits_low_first(out, self.columns.iter().copied().chain(padding));
    }
}

/// Which columns row images have: the values of binlog_row_image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowImage {
    /// All, before and after.
    #[default]
    Full,
    /// Before: the primary key. After: what was assigned.
    Minimal,
    /// As FULL, without TEXT and BLOB columns that are not needed: before, those that are not of the primary
    /// key; after, those that were not assigned.
    NoBlob,
}

/// What of a column decides whether an image has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnRole {
    pub(crate) is_of_key: bool,
    pub(crate) is_blob: bool,
}

impl RowImage {
    /// The columns of the row before an update or a delete. A table without a primary key has all.
    pub(crate) fn before(self, roles: &[ColumnRole]) -> ColumnSet {
        let has_key = roles.iter().any(|role| role.is_of_key);
        if self == RowImage::Full || !has_key {
            return ColumnSet::all(roles.len());
        }
        let is_in = |role: &ColumnRole| match self {
            RowImage::Full => true,
            RowImage::Minimal => role.is_of_key,
            RowImage::NoBlob => role.is_of_key || !role.is_blob,
        };
        ColumnSet {
            columns: roles.iter().map(is_in).collect(),
            padding: false,
        }
    }

    /// The columns of the row after an insert or an update that assigned some.
    pub(crate) fn after(self, roles: &[ColumnRole], assigned: &ColumnSet) -> ColumnSet {
        let is_in = |(at, role): (usize, &ColumnRole)| match self {
            RowImage::Full => true,
            RowImage::Minimal => assigned.contains(at),
            RowImage::NoBlob => assigned.contains(at) || !role.is_blob,
        };
        ColumnSet {
            columns: roles.iter().enumerate().map(is_in).collect(),
            padding: self == RowImage::Full,
        }
    }
}
