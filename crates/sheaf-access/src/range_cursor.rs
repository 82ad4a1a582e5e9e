//! [`RangeCursor`]: the leaves of many ranges of one tree, one range after another, in either direction.

use std::ops::Bound;
use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, LeafCursor, LeafEntries, ReadAhead, ReadView, Tree};

use crate::cancel::CancelFlag;
use crate::error::Result;
use crate::tally::Tally;

/// Walks ascending, disjoint ranges; from the last one when backward. Checks the cancel flag at each leaf, and counts
/// how each range was positioned.
pub(crate) struct RangeCursor {
    tree: Arc<Tree>,
    view: ReadView,
    /// Ranges still to walk.
    ranges: std::vec::IntoIter<KeyRange>,
    direction: Direction,
    read_ahead_pages: usize,
    cursor: Option<LeafCursor>,
    cancel: CancelFlag,
}

impl RangeCursor {
    pub(crate) fn new(
        tree: Arc<Tree>,
        view: ReadView,
        ranges: Vec<KeyRange>,
        direction: Direction,
        read_ahead_pages: usize,
        cancel: CancelFlag,
    ) -> Self {
        Self {
            tree,
            view,
            ranges: ranges.into_iter(),
            direction,
            read_ahead_pages,
            cursor: None,
            cancel,
        }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Gives the next leaf's entries that lie in the ranges to `visit`. `None` after the last leaf.
    pub(crate) fn next_leaf<R>(
        &mut self,
        tally: &mut Tally,
        visit: impl FnOnce(&LeafEntries, &mut Tally) -> Result<R>,
    ) -> Result<Option<R>> {
        self.cancel.check()?;
        loop {
            if let Some(cursor) = &mut self.cursor {
                match cursor.next_leaf()? {
                    Some(leaf) => return visit(leaf, tally).map(Some),
                    None => self.cursor = None,
                }
            }
            let next = match self.direction {
                Direction::Forward => self.ranges.next(),
                Direction::Backward => self.ranges.next_back(),
            };
            let Some(range) = next else { return Ok(None) };
            let open_start = match self.direction {
                Direction::Forward => matches!(range.lower, Bound::Unbounded),
                Direction::Backward => matches!(range.upper, Bound::Unbounded),
            };
            match (open_start, self.direction) {
                (true, Direction::Forward) => tally.read_first += 1,
                (true, Direction::Backward) => tally.read_last += 1,
                (false, _) => tally.read_key += 1,
            }
            let read_ahead = match self.read_ahead_pages {
                0 => ReadAhead::Off,
                _ if is_point(&range) => ReadAhead::Off,
                pages => ReadAhead::Pages(pages),
            };
            let view = self.view.clone();
            self.cursor = Some(self.tree.scan_at(view, range, self.direction, read_ahead));
        }
    }

    /// Gives up the rest of the walk.
    pub(crate) fn stop(&mut self) {
        self.cursor = None;
        self.ranges = Vec::new().into_iter();
    }
}

/// Whether a range is one complete key.
pub(crate) fn is_point(range: &KeyRange) -> bool {
    matches!((&range.lower, &range.upper), (Bound::Included(lower), Bound::Included(upper)) if lower == upper)
}
