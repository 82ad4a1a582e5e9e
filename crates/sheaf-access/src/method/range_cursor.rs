//! [`RangeCursor`]: the leaves of many ranges of one tree, one range after another, in either direction.

use std::ops::{Bound, Range};
use std::sync::Arc;

use sheaf_storage::{
    Direction, KeptShare, KeyRange, LeafCursor, LeafEntries, ReadAhead, ReadView, Tree,
};

use crate::cancel::CancelFlag;
use crate::error::Result;
use crate::method::jump_walk::{After, JumpWalk};
use crate::scan_counters::ScanCounters;
use crate::spec::ScanSpec;

/// How long a whole scan is, is not asked before so many leaves.
const LEAVES_OF_SHORT_WALK: usize = 128;

/// Walks ascending, disjoint ranges; from the last one when backward. At each leaf it checks the cancel flag and pays
/// for the leaf before; it counts how each range was positioned.
pub(crate) struct RangeCursor {
    tree: Arc<Tree>,
    view: ReadView,
    /// Ranges still to walk.
    ranges: std::vec::IntoIter<KeyRange>,
    direction: Direction,
    read_ahead_pages: usize,
    /// How much of what is read ahead stays in the pool.
    kept: KeptShare,
    /// All ranges of the scan, this worker's and the others', as long as it is not known how much they are.
    whole: Option<Vec<KeyRange>>,
    leaves: usize,
    cursor: Option<LeafCursor>,
    /// Only the entries that a key filter lets in.
    jumps: Option<JumpWalk>,
    cancel: CancelFlag,
}

impl RangeCursor {
    /// A worker's `ranges` of a scan, which are ranges of `tree`.
    pub(crate) fn of_spec(
        spec: &ScanSpec,
        tree: Arc<Tree>,
        ranges: Vec<KeyRange>,
        cancel: CancelFlag,
    ) -> Self {
        let view = spec.view.clone();
        let cursor = RangeCursor::new(
            tree,
            view,
            ranges,
            spec.direction,
            spec.read_ahead_pages,
            cancel,
        );
        cursor
            .of_scan(&spec.ranges)
            .with_jumps(JumpWalk::of_scan(spec))
    }

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
            kept: KeptShare::ALL,
            whole: None,
            leaves: 0,
            cursor: None,
            jumps: None,
            cancel,
        }
    }

    /// Restricts the walk to what a key filter lets in.
    pub(crate) fn with_jumps(mut self, jumps: Option<JumpWalk>) -> Self {
        self.jumps = jumps;
        self
    }

    /// The walk is a part of a scan of these ranges. If they are more than the pool holds, a part of them stays there.
    pub(crate) fn of_scan(mut self, whole: &[KeyRange]) -> Self {
        self.whole = self.tree.may_exceed_pool(whole).then(|| whole.to_vec());
        self
    }

    /// A long walk asks how long the whole scan is: that takes a dive into the tree, which a short one does not need.
    fn count_leaf(&mut self) -> Result<()> {
        self.leaves += 1;
        if self.leaves > LEAVES_OF_SHORT_WALK
            && let Some(whole) = self.whole.take()
        {
            self.kept = self.tree.kept_share(&whole)?;
            if let Some(cursor) = &mut self.cursor {
                cursor.keep(self.kept);
            }
        }
        Ok(())
    }

    pub(crate) fn has_jumps(&self) -> bool {
        self.jumps.is_some()
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Gives the next leaf's entries that lie in the ranges to `visit`: runs of the leaf's, ascending, and at least
    /// one. `None` after the last leaf.
    pub(crate) fn next_leaf<R>(
        &mut self,
        tally: &mut ScanCounters,
        visit: impl FnOnce(&LeafEntries, &[Range<usize>], &mut ScanCounters) -> Result<R>,
    ) -> Result<Option<R>> {
        loop {
            self.cancel.check()?;
            tally.pay()?;
            if self.whole.is_some() {
                self.count_leaf()?;
            }
            if let Some(cursor) = &mut self.cursor {
                match (cursor.next_leaf()?, &mut self.jumps) {
                    (None, _) => self.cursor = None,
                    (Some(leaf), None) => {
                        return visit(leaf, std::slice::from_ref(&(0..leaf.len())), tally)
                            .map(Some);
                    }
                    (Some(leaf), Some(jumps)) => {
                        let after = jumps.select(leaf, self.direction, tally)?;
                        let runs = jumps.runs();
                        if runs.is_empty() {
                            self.go_on(after);
                            continue;
                        }
                        let visited = visit(leaf, runs, tally)?;
                        self.go_on(after);
                        return Ok(Some(visited));
                    }
                }
            }
            let next = match self.direction {
                Direction::Forward => self.ranges.next(),
                Direction::Backward => self.ranges.next_back(),
            };
            let Some(range) = next else {
                if std::mem::replace(&mut self.kept, KeptShare::ALL) != KeptShare::ALL {
                    self.tree.end_large_scan();
                }
                return Ok(None);
            };
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
            let mut cursor = self.tree.scan_at(view, range, self.direction, read_ahead);
            cursor.keep(self.kept);
            self.cursor = Some(cursor);
        }
    }

    /// Goes to where a walk with jumps goes on after a leaf.
    fn go_on(&mut self, after: After) {
        match (after, &self.jumps, &mut self.cursor) {
            (After::Bound, Some(jumps), Some(cursor)) => cursor.skip_to(jumps.bound()),
            (After::End, ..) => self.stop(),
            _ => {}
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
