//! [`JumpWalk`]: the entries of a leaf that a key filter lets in, without testing all of them. A loose index scan takes
//! of these only the first of each group.
//!
//! The walk asks the [filter](crate::keys::key_filter) about one entry. If it matches, so do all up to a bound; if not,
//! none does before a bound. Either way the next entry that is looked at is the first one from the bound on:
//!
//! ```text
//!   leaf     m m m m - - - - - - m m - - - - - - - -      m matches
//!            ^       ^           ^   ^                    looked at
//!                                                   `-> beyond the leaf: one descent to where the bound leads
//! ```
//!
//! Within the leaf, which is a private copy, the bound is found by galloping: tested 1, 2, 4, ... entries on, then
//! between the last two. So jumping over many entries costs little more than stepping over one, and where matches and
//! holes are one entry long it costs about as much as testing each. Beyond the leaf a jump costs a descent, as much as
//! stepping to the next leaf would: leaves without a match are not read at all.
//!
//! A loose index scan delivers the first entry, in scan direction, of each group of entries that begin with the same
//! parts. Then it jumps to where the group ends: with KEY (a, b), `SELECT a, MIN(b) ... GROUP BY a` looks at one entry
//! per `a`.
//!
//! Counts: `Sheaf_index_jumps` per entry that was looked at and did not match; `Handler_read_key` per group, as in
//! MySQL.

use std::ops::Range;
use std::sync::Arc;

use sheaf_storage::{Direction, LeafEntries, prefix_successor};
use sheaf_table::{KeyLayout, Table};

use crate::error::Result;
use crate::keys::key_filter::{KeyFilter, KeyProbe, Verdict};
use crate::scan_counters::ScanCounters;
use crate::spec::{FirstOf, IndexRef, ScanSpec};

/// Where a walk goes on after a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// With the next leaf.
    NextLeaf,
    /// At the [bound](JumpWalk::bound).
    Bound,
    /// Nothing that follows in the tree matches.
    End,
}

/// See the module's comment.
pub(crate) struct JumpWalk {
    table: Arc<Table>,
    index: IndexRef,
    filter: Option<Arc<KeyFilter>>,
    first_of: Option<FirstOf>,
    probe: KeyProbe,
    /// The key that is looked at.
    key: Vec<u8>,
    /// The entries of the leaf that match, ascending.
    runs: Vec<Range<usize>>,
}

impl JumpWalk {
    /// `None` if neither asks to leave anything out.
    pub(crate) fn new(
        table: &Arc<Table>,
        index: IndexRef,
        filter: Option<Arc<KeyFilter>>,
        first_of: Option<FirstOf>,
    ) -> Option<Self> {
        (filter.is_some() || first_of.is_some()).then(|| Self {
            table: Arc::clone(table),
            index,
            filter,
            first_of,
            probe: KeyProbe::default(),
            key: Vec::new(),
            runs: Vec::new(),
        })
    }

    /// What a scan asks for.
    pub(crate) fn of_scan(spec: &ScanSpec) -> Option<Self> {
        Self::new(
            &spec.table,
            spec.index,
            spec.key_filter.clone(),
            spec.first_of,
        )
    }

    /// The entries that the last [`select`](Self::select) found, ascending and not empty.
    pub(crate) fn runs(&self) -> &[Range<usize>] {
        &self.runs
    }

    /// With [`After::Bound`]: forward the least key that may match, backward what all keys that may match lie before.
    pub(crate) fn bound(&self) -> &[u8] {
        self.probe.bound().unwrap_or_default()
    }

    /// Finds the entries of a leaf that match.
    pub(crate) fn select(
        &mut self,
        leaf: &LeafEntries,
        direction: Direction,
        tally: &mut ScanCounters,
    ) -> Result<After> {
        self.runs.clear();
        let table = Arc::clone(&self.table);
        let layout = match self.index {
            IndexRef::Clustered => &table.clustered_layout,
            IndexRef::Secondary(position) => &table.secondary_layouts[position],
        };
        match direction {
            Direction::Forward => self.select_forward(leaf, layout, tally),
            Direction::Backward => {
                let after = self.select_backward(leaf, layout, tally)?;
                self.runs.reverse();
                Ok(after)
            }
        }
    }

    /// Asks the filter about the current key.
    fn ask(&mut self, layout: &KeyLayout, direction: Direction) -> Result<Verdict> {
        match (&self.filter, direction) {
            (None, _) => Ok(Verdict::Accept),
            (Some(filter), Direction::Forward) => self.probe.forward(filter, layout, &self.key),
            (Some(filter), Direction::Backward) => self.probe.backward(filter, layout, &self.key),
        }
    }

    /// The bytes of the current key that its group has in common.
    fn group(&self, first_of: FirstOf, layout: &KeyLayout) -> Result<&[u8]> {
        let parts = layout.leading_parts(&self.key, first_of.parts)?;
        let apart = first_of.nulls_apart && layout.parts[first_of.parts].nullable;
        Ok(&self.key[..parts.len() + usize::from(apart)])
    }

    fn select_forward(
        &mut self,
        leaf: &LeafEntries,
        layout: &KeyLayout,
        tally: &mut ScanCounters,
    ) -> Result<After> {
        let mut entry = 0;
        while entry < leaf.len() {
            leaf.key_into(entry, &mut self.key);
            let verdict = self.ask(layout, Direction::Forward)?;
            if let (Verdict::Accept, Some(first_of)) = (verdict, self.first_of) {
                self.runs.push(entry..entry + 1);
                tally.read_key += 1;
                let bound = prefix_successor(self.group(first_of, layout)?);
                self.probe.set_bound_to(bound);
            }
            let end = match self.probe.bound() {
                Some(bound) => gallop_forward(leaf, entry + 1, bound),
                None => leaf.len(),
            };
            match (verdict, self.first_of) {
                (Verdict::Accept, None) => self.runs.push(entry..end),
                (Verdict::Accept, Some(_)) if end == leaf.len() => return Ok(self.after_jump()),
                (Verdict::Accept, Some(_)) => {}
                (Verdict::Reject, _) => {
                    tally.metrics.jumps += 1;
                    if end == leaf.len() {
                        return Ok(self.after_jump());
                    }
                }
            }
            entry = end;
        }
        Ok(After::NextLeaf)
    }

    fn select_backward(
        &mut self,
        leaf: &LeafEntries,
        layout: &KeyLayout,
        tally: &mut ScanCounters,
    ) -> Result<After> {
        // Entries before this one are still to be looked at.
        let mut end = leaf.len();
        while end > 0 {
            leaf.key_into(end - 1, &mut self.key);
            let verdict = self.ask(layout, Direction::Backward)?;
            if let (Verdict::Accept, Some(first_of)) = (verdict, self.first_of) {
                self.runs.push(end - 1..end);
                tally.read_key += 1;
                let group = self.group(first_of, layout)?.to_vec();
                self.probe
                    .set_bound_to((!group.is_empty()).then_some(group));
            }
            let start = match self.probe.bound() {
                Some(bound) => gallop_backward(leaf, end - 1, bound),
                None => 0,
            };
            match (verdict, self.first_of) {
                (Verdict::Accept, None) => self.runs.push(start..end),
                (Verdict::Accept, Some(_)) if start == 0 => return Ok(self.after_jump()),
                (Verdict::Accept, Some(_)) => {}
                (Verdict::Reject, _) => {
                    tally.metrics.jumps += 1;
                    if start == 0 {
                        return Ok(self.after_jump());
                    }
                }
            }
            end = start;
        }
        Ok(After::NextLeaf)
    }

    fn after_jump(&self) -> After {
        match self.probe.bound() {
            Some(_) => After::Bound,
            None => After::End,
        }
    }
}

/// The first entry at or after `from` whose key is not before `bound`.
fn gallop_forward(leaf: &LeafEntries, from: usize, bound: &[u8]) -> usize {
    let (mut low, mut step) = (from, 1);
    while low < leaf.len() {
        let high = (low + step).min(leaf.len());
        let found = leaf.lower_bound_in(low..high, bound);
        if found < high {
            return found;
        }
        (low, step) = (high, step * 2);
    }
    low
}

/// The first entry whose key is not before `bound`, where entry `from` is known not to be.
fn gallop_backward(leaf: &LeafEntries, from: usize, bound: &[u8]) -> usize {
    let (mut high, mut step) = (from, 1);
    while high > 0 {
        let low = high.saturating_sub(step);
        let found = leaf.lower_bound_in(low..high, bound);
        if found > low {
            return found;
        }
        (high, step) = (low, step * 2);
    }
    high
}
