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
//! So rows that were written before columns were added cost no more than others, and others little more than rows of
//! one segment.

use std::cell::OnceCell;

use super::{RowLayout, RowView};
use crate::error::Result;

/// See the [module](self).
pub struct RowRun<'r> {
    layout: &'r RowLayout,
    rows: Vec<RowView<'r>>,
    /// For each row where each segment of the layout ends; one that it does not have is empty. Nothing if all rows have
    /// the first one alone.
    ends: Vec<u32>,
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
            later: Vec::new(),
        }
    }

    /// Adds a row. Segments are asked for when all rows are there.
    ///
    /// # Errors
    /// As [`RowLayout::view`].
    #[inline(always)]
    pub fn push(&mut self, bytes: &'r [u8]) -> Result<()> {
        let layout = self.layout;
        let row = RowView { layout, bytes };
        if !row.is_of_first_segment() || !self.ends.is_empty() {
            self.push_ends(&row)?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Notes where the segments of the next row end.
    #[inline(never)]
    fn push_ends(&mut self, row: &RowView<'_>) -> Result<()> {
        let segments = self.layout.segments.len();
        if self.ends.is_empty() {
            for row in &self.rows {
                let end = row.bytes.len() as u32;
                self.ends.extend(std::iter::repeat_n(end, segments));
            }
        }
        let before = self.ends.len();
        self.ends.resize(before + segments, row.bytes.len() as u32);
        if row.is_of_first_segment() {
            return Ok(());
        }
        let mut places = self.ends[before..].iter_mut();
        let mut later = 0;
        row.each_segment_end(|end| {
            if let Some(place) = places.next() {
                *place = end as u32;
            }
            later += 1;
        })?;
        self.note_later(later - 1);
        Ok(())
    }

    /// Some row has so many later segments.
    #[inline]
    fn note_later(&mut self, later: usize) {
        if later > self.later.len() {
            self.later.resize_with(later, OnceCell::new);
        }
    }

    /// Some of these rows, in the order of the selection.
    pub fn selected(&self, selection: &[u32]) -> RowRun<'r> {
        let mut run = RowRun::with_capacity(self.layout, selection.len());
        let rows = selection.iter().map(|&row| self.rows[row as usize]);
        run.rows.extend(rows);
        if !self.ends.is_empty() {
            let segments = self.layout.segments.len();
            for &row in selection {
                let first = row as usize * segments;
                let ends = &self.ends[first..first + segments];
                run.ends.extend_from_slice(ends);
            }
            run.note_later(self.later.len());
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
        let of_row = |(row, ends): (&RowView<'r>, &[u32])| {
            let (start, end) = (ends[number - 1] as usize, ends[number] as usize);
            match row.bytes.get(start..end) {
                Some(bytes) if !bytes.is_empty() => RowView { bytes, ..instead },
                _ => instead,
            }
        };
        let ends = self.ends.chunks_exact(self.layout.segments.len());
        let views = || self.rows.iter().zip(ends).map(of_row).collect();
        SegmentRows::Each(later.get_or_init(views))
    }
}
