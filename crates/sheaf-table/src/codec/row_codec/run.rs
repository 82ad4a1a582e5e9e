//! Runs of rows of one layout, for what reads a column of all of them at a time.
//!
//! A row is looked at once, when it is pushed. If it has later [segments](super::segments), it is noted where they end.
//! What then reads columns asks for a segment of the whole run:
//!
//! ```text
//!   rows of a leaf          the run's segment 1           its segment 2
//!   | a b c |               initial values                initial values, the same for all rows:
//!   | a b c | d |           | d |                         a column is filled with one value, and
//!   | a b c |               initial values                a condition is decided once
//! ```
//!
//! So rows that were written before columns were added cost no more than others.

use std::cell::OnceCell;

use super::{RowLayout, RowView};
use crate::error::Result;

/// See the [module](self).
pub struct RowRun<'r> {
    layout: &'r RowLayout,
    rows: Vec<RowView<'r>>,
    /// Where the segments of a row end that has more than one, row by row.
    ends: Vec<u32>,
    /// Where a row's ends begin among these, up to the last row that has any.
    first_ends: Vec<usize>,
    /// Of each later segment that some row has: that of all rows, once it is asked for.
    later: Vec<OnceCell<Vec<RowView<'r>>>>,
}

/// A segment of each row of a run.
pub enum SegmentRows<'v, 'r> {
    /// One for each row.
    Each(&'v [RowView<'r>]),
    /// No row has it: what they have instead.
    Same(RowView<'r>),
}

impl<'r> RowRun<'r> {
    /// An empty run, with room for so many rows.
    pub fn with_capacity(layout: &'r RowLayout, rows: usize) -> RowRun<'r> {
        RowRun {
            layout,
            rows: Vec::with_capacity(rows),
            ends: Vec::new(),
            first_ends: Vec::new(),
            later: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// As [`RowLayout::view`].
    #[inline(always)]
    pub fn push(&mut self, bytes: &'r [u8]) -> Result<()> {
        let layout = self.layout;
        let row = RowView { layout, bytes };
        if !row.is_of_first_segment() {
            self.push_ends(&row)?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Notes where the segments of the next row end.
    #[inline(never)]
    fn push_ends(&mut self, row: &RowView<'_>) -> Result<()> {
        self.begin_ends();
        let before = self.ends.len();
        let ends = &mut self.ends;
        row.each_segment_end(|end| ends.push(end as u32))?;
        self.note_segments(self.ends.len() - before);
        Ok(())
    }

    /// The ends that come are those of the next row.
    fn begin_ends(&mut self) {
        self.first_ends.resize(self.rows.len() + 1, self.ends.len());
    }

    /// A row has so many segments.
    fn note_segments(&mut self, count: usize) {
        let later = count.saturating_sub(1).max(self.later.len());
        self.later.resize_with(later, OnceCell::new);
    }

    /// Where the segments of a row end; empty if it has one.
    fn ends_of(&self, row: usize) -> &[u32] {
        let Some(start) = self.first_ends.get(row) else {
            return &[];
        };
        let end = self.first_ends.get(row + 1);
        &self.ends[*start..end.copied().unwrap_or(self.ends.len())]
    }

    /// Some of these rows, in the order of the selection.
    pub fn selected(&self, selection: &[u32]) -> RowRun<'r> {
        let mut run = RowRun::with_capacity(self.layout, selection.len());
        for &row in selection {
            let ends = self.ends_of(row as usize);
            if !ends.is_empty() {
                run.begin_ends();
                run.ends.extend_from_slice(ends);
                run.note_segments(ends.len());
            }
            run.rows.push(self.rows[row as usize]);
        }
        run
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The [segment](RowView::segment) of each row.
    pub fn segment(&self, number: usize) -> SegmentRows<'_, 'r> {
        let Some(instead) = self.layout.instead_of(number) else {
            return SegmentRows::Each(&self.rows);
        };
        let Some(later) = self.later.get(number - 1) else {
            return SegmentRows::Same(instead);
        };
        let of_row = |row: usize| {
            let bytes = match *self.ends_of(row).get(number - 1..=number)? {
                [start, end] => self.rows[row].bytes.get(start as usize..end as usize)?,
                _ => return None,
            };
            Some(RowView { bytes, ..instead })
        };
        let rows = 0..self.rows.len();
        let views = || rows.map(|row| of_row(row).unwrap_or(instead)).collect();
        SegmentRows::Each(later.get_or_init(views))
    }
}
