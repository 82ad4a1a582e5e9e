//! Cursors: leaf by leaf through a range, in either direction.
//!
//! A cursor delivers leaves as private copies. Copying 16 KiB costs about a microsecond, once for a hundred entries or
//! more. In return, no page is held while the caller filters, converts or waits: a scan cannot block a writer, and a
//! writer cannot pull the page from under a scan. Of a range that ends after a few entries, only those are copied.
//!
//! Between calls the cursor keeps a key, not a page. Going forward, it is the high fence of the leaf that it delivered,
//! where the next leaf begins whatever was split or merged in the meantime. Going backward, it is the low fence. So
//! every entry that stays in the tree is delivered once.
//!
//! *Read-ahead* asks the level above the leaves which pages come next, and requests them in batches before they are
//! needed. The window opens slowly, so that a scan that soon stops (LIMIT) has not read much in vain.

use std::ops::{Bound, Range};
use std::sync::Arc;

use crate::error::Result;
use crate::key_range::KeyRange;
use crate::node::Node;
use crate::page::PageId;
use crate::pool::passing_pages::KeptShare;
use crate::transaction::snapshot::ReadView;
use crate::tree::page_buffer::PageBuffer;
use crate::tree::search::Target;
use crate::tree::versioned_read::Differences;
use crate::tree::{Direction, ReadAhead, Tree};

/// A scan reads ahead by at most this share of the frames: several scans fit in the pool's quota for prefetched pages,
/// and what was read ahead is still there when the scan arrives.
const READ_AHEAD_FRAMES_DIVISOR: u64 = 8;

/// The same share of a scan that is larger than the pool.
const LARGE_SCAN_FRAMES_DIVISOR: u64 = 64;

/// Leaves that the first read-ahead of a scan requests; the window doubles from here.
const FIRST_WINDOW_PAGES: usize = 8;

/// Leaves that read-ahead requests first after the scan has skipped leaves.
const WINDOW_AFTER_SKIP_PAGES: usize = 2;

/// A resumable scan. It owns its tree and holds no page between calls.
pub struct LeafCursor {
    tree: Arc<Tree>,
    view: ReadView,
    range: KeyRange,
    direction: Direction,
    /// The part of the range that lies ahead; none when the scan is over.
    ahead: Option<KeyRange>,
    leaf: LeafEntries,
    /// How far `leaf` is what the view sees of the leaf that it is a copy of.
    exact: Exact,
    read_ahead: Option<LeafReadAhead>,
}

impl LeafCursor {
    pub(super) fn new(
        tree: Arc<Tree>,
        view: ReadView,
        range: KeyRange,
        direction: Direction,
        read_ahead: ReadAhead,
    ) -> LeafCursor {
        let read_ahead = match read_ahead {
            ReadAhead::Off | ReadAhead::Pages(0) | ReadAhead::AfterMiss(0) => None,
            ReadAhead::Pages(pages) | ReadAhead::AfterMiss(pages) => {
                let most = (tree.store().frames / READ_AHEAD_FRAMES_DIVISOR) as usize;
                let mut leaves = LeafReadAhead::new(pages.min(most));
                if let ReadAhead::AfterMiss(_) = read_ahead {
                    leaves.waits_for_miss = Some(tree.thread_page_work().reads);
                }
                Some(leaves)
            }
        };
        let ahead = (!range.is_empty()).then(|| range.clone());
        LeafCursor {
            tree,
            view,
            range,
            direction,
            ahead,
            leaf: LeafEntries::empty(),
            exact: Exact::default(),
            read_ahead,
        }
    }

    /// The entries of the next leaf that lie in the range, as a private copy; none at the end of the scan. A copy has
    /// at least one entry.
    pub fn next_leaf(&mut self) -> Result<Option<&LeafEntries>> {
        while let Some(ahead) = &self.ahead {
            let target = match self.direction {
                Direction::Forward => match &ahead.lower {
                    Bound::Included(key) | Bound::Excluded(key) => Target::Key(key),
                    Bound::Unbounded => Target::Key(&[]),
                },
                Direction::Backward => match &ahead.upper {
                    Bound::Included(key) => Target::Key(key),
                    Bound::Excluded(key) => Target::Before(key),
                    Bound::Unbounded => Target::Last,
                },
            };
            let mut few = None;
            if !self.exact.has(target, self.direction, &self.leaf) {
                if let Some(read_ahead) = &mut self.read_ahead {
                    read_ahead.advance(&self.tree, target, ahead, self.direction)?;
                }
                self.exact.is_known = false;
                let LeafEntries {
                    page, differences, ..
                } = &mut self.leaf;
                few = self
                    .tree
                    .copy_leaf_at(&self.view, target, ahead, page, differences)?;
                // What a snapshot sees stays as it is, so a key that is sought later may be found in this copy.
                if few.is_none() && !self.view.is_newest() {
                    self.exact.note(target);
                }
            }
            let slots = few.unwrap_or_else(|| ahead.slots_in(&Node(&self.leaf.page).view()));
            self.leaf.select(slots, ahead);
            let node = Node(&self.leaf.page);
            let rest = match self.direction {
                Direction::Forward => node.high_fence().map(|high| KeyRange {
                    lower: Bound::Included(high.to_vec()),
                    upper: ahead.upper.clone(),
                }),
                Direction::Backward => (!node.low_fence().is_empty()).then(|| KeyRange {
                    lower: ahead.lower.clone(),
                    upper: Bound::Excluded(node.low_fence().to_vec()),
                }),
            };
            self.ahead = rest.filter(|rest| !rest.is_empty());
            if !self.leaf.is_empty() {
                return Ok(Some(&self.leaf));
            }
        }
        Ok(None)
    }

    /// Goes on from `key`, inclusive: the next leaf delivered begins (backward: ends) with the first entry in scan
    /// direction that is not before `key` and lies in the range. A key on the leaf that was delivered last delivers the
    /// rest of that leaf again. A snapshot's cursor does not copy it again for a key that lies further on than the one
    /// for which it did.
    pub fn seek(&mut self, key: &[u8]) {
        let mut ahead = self.range.clone();
        match self.direction {
            Direction::Forward => {
                if !ahead.is_below(key) {
                    ahead.lower = Bound::Included(key.to_vec());
                }
            }
            Direction::Backward => {
                if !ahead.is_above(key) {
                    ahead.upper = Bound::Included(key.to_vec());
                }
            }
        }
        self.ahead = (!ahead.is_empty()).then_some(ahead);
        if let Some(read_ahead) = &mut self.read_ahead {
            read_ahead.restart();
        }
    }

    /// Leaves out what lies before `key` (backward: what lies at `key` or after it), of what is still to come. Never
    /// goes back.
    pub fn skip_to(&mut self, key: &[u8]) {
        let Some(ahead) = &mut self.ahead else {
            return;
        };
        match self.direction {
            Direction::Forward if ahead.is_below(key) => return,
            Direction::Forward => ahead.lower = Bound::Included(key.to_vec()),
            Direction::Backward if ahead.is_above(key) => return,
            Direction::Backward => ahead.upper = Bound::Excluded(key.to_vec()),
        }
        if ahead.is_empty() {
            self.ahead = None;
        }
        if let Some(read_ahead) = &mut self.read_ahead {
            read_ahead.skip_to(key, self.direction);
        }
    }

    /// Of what this cursor reads ahead from now on, so much stays in the pool: see [`Tree::kept_share`].
    pub fn keep(&mut self, kept: KeptShare) {
        if let Some(read_ahead) = &mut self.read_ahead {
            read_ahead.kept = kept;
            if kept != KeptShare::ALL {
                // What is on its way has no room beside what is kept.
                let most = (self.tree.store().frames / LARGE_SCAN_FRAMES_DIVISOR) as usize;
                read_ahead.limit = read_ahead.limit.min(most.max(FIRST_WINDOW_PAGES));
                read_ahead.window = read_ahead.window.min(read_ahead.limit);
            }
        }
    }

    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }
}

/// How far a copy of a leaf is what a view sees. The scan asked where the view sees something else than the page holds,
/// from the place on at which it came to the leaf.
#[derive(Default)]
struct Exact {
    is_known: bool,
    /// The place.
    key: Vec<u8>,
    /// There is no such key: the copy is exact to the end of the leaf. Of backward scans only.
    is_last: bool,
    /// The key itself is exact too.
    includes_key: bool,
}

impl Exact {
    /// The leaf was copied for `target`.
    fn note(&mut self, target: Target<'_>) {
        let (key, includes_key) = match target {
            Target::Key(key) => (key, true),
            Target::Before(key) => (key, false),
            Target::Last => (&[][..], false),
        };
        self.is_known = true;
        self.is_last = matches!(target, Target::Last);
        self.includes_key = includes_key;
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    /// Whether the copy `leaf` holds what a scan in this direction finds from `target` on.
    fn has(&self, target: Target<'_>, direction: Direction, leaf: &LeafEntries) -> bool {
        if !self.is_known {
            return false;
        }
        let node = Node(&leaf.page);
        match (direction, target) {
            (Direction::Forward, Target::Key(key)) => {
                key >= self.key.as_slice() && node.view().covers(key)
            }
            (Direction::Backward, Target::Key(key)) => {
                let reaches = match self.includes_key {
                    true => key <= self.key.as_slice(),
                    false => key < self.key.as_slice(),
                };
                (self.is_last || reaches) && node.view().covers(key)
            }
            // The keys right before this one are on the leaf.
            (Direction::Backward, Target::Before(key)) => {
                let is_on_leaf =
                    key > node.low_fence() && node.high_fence().is_none_or(|high| key <= high);
                (self.is_last || key <= self.key.as_slice()) && is_on_leaf
            }
            (Direction::Forward, Target::Before(_)) | (_, Target::Last) => false,
        }
    }
}

/// The entries of one leaf that the cursor's view sees, ascending by key in both scan directions.
pub struct LeafEntries {
    /// A copy of the leaf; of one that has few entries in the range perhaps only those, see [`Tree::copy_leaf_at`].
    page: PageBuffer,
    /// Where the view sees something else than the page holds.
    differences: Differences,
    /// Slots in the range: the entries, unless `seen` names them one by one.
    slots: Range<usize>,
    seen: Vec<SeenEntry>,
    /// Some slots are not to be seen, or with other values.
    is_selected: bool,
    prefix_length: usize,
}

/// An entry: its slot, and which difference has its value, if it is not the slot's. Small, because there is one for
/// each entry of a leaf with ghosts.
struct SeenEntry {
    /// [`NO_SLOT`]: the entry is not on the page any more, and the difference has its key, too.
    slot: u16,
    difference: Option<u32>,
}

/// A page has fewer slots.
const NO_SLOT: u16 = u16::MAX;

impl LeafEntries {
    pub(super) fn empty() -> LeafEntries {
        LeafEntries {
            page: PageBuffer::new(),
            differences: Differences::default(),
            slots: 0..0,
            seen: Vec::new(),
            is_selected: false,
            prefix_length: 0,
        }
    }

    /// Reads the leaf that covers `key`, with all its live entries as they are now.
    pub(super) fn read_leaf_of(&mut self, tree: &Tree, key: &[u8]) -> Result<()> {
        let LeafEntries {
            page, differences, ..
        } = self;
        let newest = ReadView::newest();
        tree.copy_leaf_at(
            &newest,
            Target::Key(key),
            &KeyRange::all(),
            page,
            differences,
        )?;
        self.select(0..Node(&self.page).count(), &KeyRange::all());
        Ok(())
    }

    pub(super) fn node(&self) -> Node<'_> {
        Node(&self.page)
    }

    /// Makes the leaf's entries those of `slots`, which are what the range has of the page.
    fn select(&mut self, slots: Range<usize>, range: &KeyRange) {
        let node = Node(&self.page);
        self.prefix_length = node.prefix().len();
        self.is_selected = node.ghost_count() > 0 || !self.differences.is_empty();
        self.slots = slots;
        if self.is_selected {
            self.select_seen(range);
        }
    }

    fn select_seen(&mut self, range: &KeyRange) {
        let node = Node(&self.page);
        self.seen.clear();
        let entry = |slot: usize, difference| SeenEntry {
            slot: slot as u16,
            difference,
        };
        if self.differences.is_empty() {
            let slots = self.slots.clone().filter(|&slot| !node.is_ghost(slot));
            self.seen.extend(slots.map(|slot| entry(slot, None)));
            return;
        }
        let mut differences = self
            .differences
            .iter()
            .enumerate()
            .skip_while(|(_, (key, _))| range.is_below(key))
            .take_while(|(_, (key, _))| !range.is_above(key))
            .map(|(i, (key, is_there))| {
                (node.view().lower_bound(key), is_there.then_some(i as u32))
            })
            // What is neither on the page nor seen by the view is nothing.
            .filter(|(position, value)| position.found || value.is_some())
            .peekable();
        for slot in self.slots.clone() {
            while let Some((_, value)) = differences.next_if(|(at, _)| !at.found && at.slot <= slot)
            {
                self.seen.push(entry(usize::from(NO_SLOT), value));
            }
            match differences.next_if(|(at, _)| at.slot == slot) {
                Some((_, None)) => {}
                Some((_, value)) => self.seen.push(entry(slot, value)),
                None if node.is_ghost(slot) => {}
                None => self.seen.push(entry(slot, None)),
            }
        }
        let behind = differences.map(|(_, value)| entry(usize::from(NO_SLOT), value));
        self.seen.extend(behind);
    }

    pub fn len(&self) -> usize {
        if self.is_selected {
            self.seen.len()
        } else {
            self.slots.len()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What all keys of the leaf begin with; a key is `prefix ++ suffix`.
    pub fn prefix(&self) -> &[u8] {
        &Node(&self.page).low_fence()[..self.prefix_length]
    }

    /// Entry `i`'s key after the prefix.
    #[inline]
    pub fn suffix(&self, i: usize) -> &[u8] {
        debug_assert!(i < self.len());
        if !self.is_selected {
            return Node(&self.page).suffix(self.slots.start + i);
        }
        match self.seen[i] {
            SeenEntry {
                slot: NO_SLOT,
                difference: Some(difference),
            } => &self.differences.key(difference as usize)[self.prefix_length..],
            SeenEntry { slot, .. } => Node(&self.page).suffix(usize::from(slot)),
        }
    }

    /// Clears `key` and writes entry `i`'s key to it.
    pub fn key_into(&self, i: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        key.extend_from_slice(self.suffix(i));
    }

    /// How many entries have keys before `key`: where it is, or would be.
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        self.lower_bound_in(0..self.len(), key)
    }

    /// The same, if it is known to lie in `among`.
    pub fn lower_bound_in(&self, among: Range<usize>, key: &[u8]) -> usize {
        let prefix = self.prefix();
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { among.start } else { among.end };
        };
        let (mut low, mut high) = (among.start, among.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.suffix(middle) < rest {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Entry `i`'s value.
    #[inline]
    pub fn value(&self, i: usize) -> &[u8] {
        debug_assert!(i < self.len());
        if !self.is_selected {
            return Node(&self.page).value(self.slots.start + i);
        }
        let entry = &self.seen[i];
        match entry.difference {
            Some(difference) => self.differences.value(difference as usize),
            None => Node(&self.page).value(usize::from(entry.slot)),
        }
    }
}

/// Requests leaves ahead of a scan. It walks the level above the leaves on its own, ahead of the cursor.
struct LeafReadAhead {
    /// Most leaves ahead of the cursor.
    limit: usize,
    window: usize,
    /// Leaves requested that the cursor has not come to.
    outstanding: usize,
    /// Where the next request begins; none when everything in the range was requested.
    frontier: Frontier,
    /// The cursor has just left out leaves: the one where it arrives is all that is known to be wanted.
    skipped: bool,
    /// What the thread had read before the scan, as long as nothing is requested until it has read more.
    waits_for_miss: Option<u64>,
    /// How much of what is requested stays in the pool.
    kept: KeptShare,
    pages: Vec<PageId>,
}

enum Frontier {
    /// At the cursor.
    AtCursor,
    /// At this key: forward, the first leaf that covers it; backward, the last leaf below it.
    Key(Vec<u8>),
    Done,
}

impl LeafReadAhead {
    fn new(limit: usize) -> LeafReadAhead {
        LeafReadAhead {
            limit,
            window: limit.min(FIRST_WINDOW_PAGES),
            outstanding: 0,
            frontier: Frontier::AtCursor,
            skipped: false,
            waits_for_miss: None,
            kept: KeptShare::ALL,
            pages: Vec::new(),
        }
    }

    fn restart(&mut self) {
        self.skipped = false;
        self.outstanding = 0;
        self.window = self.limit.min(FIRST_WINDOW_PAGES);
        self.frontier = Frontier::AtCursor;
    }

    /// The cursor goes on at `key`. Beyond what was requested, the window opens anew, and slower than at the start: a
    /// scan that skips leaves once is likely to do it again.
    fn skip_to(&mut self, key: &[u8], direction: Direction) {
        let beyond = match (&self.frontier, direction) {
            (Frontier::Key(frontier), Direction::Forward) => key >= frontier.as_slice(),
            (Frontier::Key(frontier), Direction::Backward) => key <= frontier.as_slice(),
            (Frontier::AtCursor, _) => true,
            (Frontier::Done, _) => false,
        };
        if beyond {
            self.outstanding = 0;
            self.window = self.limit.min(WINDOW_AFTER_SKIP_PAGES);
            self.frontier = Frontier::AtCursor;
            self.skipped = true;
        }
    }

    /// The cursor is about to read one more leaf. When half of the window is used up, requests more.
    fn advance(
        &mut self,
        tree: &Tree,
        cursor: Target<'_>,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<()> {
        if std::mem::take(&mut self.skipped) {
            return Ok(());
        }
        // A cursor that goes to another thread meets other figures there; it then reads ahead, which is but a hint.
        if let Some(before) = self.waits_for_miss {
            if tree.thread_page_work().reads == before {
                return Ok(());
            }
            self.waits_for_miss = None;
        }
        self.outstanding = self.outstanding.saturating_sub(1);
        if matches!(self.frontier, Frontier::Done) || self.outstanding * 2 > self.window {
            return Ok(());
        }
        let wanted = self.window - self.outstanding;
        self.pages.clear();
        let next = {
            let target = match &self.frontier {
                Frontier::Key(key) => match direction {
                    Direction::Forward => Target::Key(key),
                    Direction::Backward => Target::Before(key),
                },
                Frontier::AtCursor | Frontier::Done => cursor,
            };
            tree.upcoming_leaves(target, range, direction, wanted, &mut self.pages)?
        };
        self.frontier = match next {
            Some(key) => {
                let is_over = match direction {
                    Direction::Forward => range.is_above(&key),
                    // What lies below the frontier lies below the range, if the frontier does not lie above its bound.
                    Direction::Backward => match &range.lower {
                        Bound::Included(lower) | Bound::Excluded(lower) => key <= *lower,
                        Bound::Unbounded => key.is_empty(),
                    },
                };
                if is_over {
                    Frontier::Done
                } else {
                    Frontier::Key(key)
                }
            }
            None => Frontier::Done,
        };
        self.outstanding += self.pages.len();
        self.window = (self.window * 2).min(self.limit);
        if self.pages.len() > 1 {
            tree.store().pool.prefetch_keeping(&self.pages, self.kept);
        }
        Ok(())
    }
}

impl Tree {
    /// A cursor over the entries of `range` as they are now.
    pub fn scan(
        self: &Arc<Self>,
        range: KeyRange,
        direction: Direction,
        read_ahead: ReadAhead,
    ) -> LeafCursor {
        self.scan_at(ReadView::newest(), range, direction, read_ahead)
    }

    /// A cursor over the entries of `range` as the view sees them: on all leaves the same state.
    pub fn scan_at(
        self: &Arc<Self>,
        view: ReadView,
        range: KeyRange,
        direction: Direction,
        read_ahead: ReadAhead,
    ) -> LeafCursor {
        LeafCursor::new(self.clone(), view, range, direction, read_ahead)
    }

    /// Puts into `pages` the leaf for `target` and up to `wanted - 1` after it in scan direction, of one parent and
    /// not beyond the range. Returns the key where the leaves after them begin (backward: end), if there are any.
    fn upcoming_leaves(
        &self,
        target: Target<'_>,
        range: &KeyRange,
        direction: Direction,
        wanted: usize,
        pages: &mut Vec<PageId>,
    ) -> Result<Option<Vec<u8>>> {
        self.retry(|failures| {
            pages.clear();
            let Some(parent) = self.find(target, 1, failures)? else {
                return Ok(None);
            };
            let view = parent.view();
            let slot = target.child_slot(&view);
            let mut key = Vec::new();
            let has_more = match direction {
                Direction::Forward => {
                    let last_in_range = match &range.upper {
                        Bound::Included(key) if view.covers(key) => view.child_slot(key),
                        Bound::Excluded(key) if view.covers(key) => view.child_slot_before(key),
                        _ => view.count().saturating_sub(1),
                    };
                    let end = (slot + wanted).min(last_in_range + 1).max(slot);
                    pages.extend((slot..end).map(|slot| view.child(slot)));
                    if end < view.count() {
                        view.key_into(end, &mut key);
                        true
                    } else {
                        view.high_fence_into(&mut key)
                    }
                }
                Direction::Backward => {
                    let first_in_range = match &range.lower {
                        Bound::Included(key) | Bound::Excluded(key) if view.covers(key) => {
                            view.child_slot(key)
                        }
                        _ => 0,
                    };
                    let first = (slot + 1).saturating_sub(wanted).max(first_in_range);
                    pages.extend((first..=slot).rev().map(|slot| view.child(slot)));
                    if first > 0 {
                        view.key_into(first, &mut key);
                    } else {
                        view.low_fence_into(&mut key);
                    }
                    !key.is_empty()
                }
            };
            parent.validate()?;
            Ok(has_more.then_some(key))
        })
    }
}
