//! Point lookups in a row.
//!
//! Sorted keys come in runs that lie on the same leaf. The reader remembers the leaf of its last lookup and that leaf's
//! version. If the page is still of that version and its fences enclose the next key, the descent is saved. Nothing is
//! latched or pinned in between.

use std::sync::Arc;

use crate::error::Result;
use crate::node::PageBytes;
use crate::page::{PageId, header};
use crate::pool::guard::{OptimisticGuard, PageVersion};
use crate::transaction::snapshot::ReadView;
use crate::tree::Tree;
use crate::tree::look_ahead::LeavesAhead;
use crate::tree::search::{NodeRef, Target};

/// Looks up one key after another; a key on the leaf of its predecessor costs no descent.
pub struct PointReader {
    tree: Arc<Tree>,
    view: ReadView,
    leaf: Option<(PageId, PageVersion)>,
    value: Vec<u8>,
    /// Since [`look_ahead`](Self::look_ahead) was called last: lookups, and how many of them went to another leaf.
    lookups: usize,
    moves: usize,
    /// Where the next keys seemed to be when the caller looked ahead.
    ahead: LeavesAhead,
    /// How many of these keys have been looked up.
    taken: usize,
}

impl PointReader {
    /// The value of `key` as the reader's view sees it, valid until the next call.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let PointReader {
            tree,
            view,
            leaf: remembered,
            value,
            lookups,
            moves,
            ahead,
            taken,
        } = self;
        *lookups += 1;
        *taken += 1;
        let last = remembered.take();
        let mut known = [ahead.get(*taken - 1).copied().flatten(), last];
        let found = tree.retry(|failures| {
            let known = known.iter_mut().filter_map(Option::take);
            let leaf = match known.filter_map(|known| revisit(tree, known, key)).next() {
                Some(guard) => NodeRef::optimistic(guard),
                None => tree.find_leaf(Target::Key(key), failures)?,
            };
            let is_live = tree.read_entry(&leaf, view, key, value)?;
            leaf.validate()?;
            *remembered = Some((leaf.guard().page_id(), leaf.guard().version()));
            Ok(is_live)
        })?;
        let leaf_of = |leaf: Option<(PageId, PageVersion)>| leaf.map(|(page, _)| page);
        *moves += usize::from(leaf_of(last) != leaf_of(*remembered));
        Ok(found.then_some(value.as_slice()))
    }

    /// Says which keys are looked up next, at most [`LOOK_AHEAD_KEYS`], so that the lookups wait less for memory. Where
    /// most keys lie on the leaf of the key before them, there is little to wait for, and the keys are not looked at.
    ///
    /// [`LOOK_AHEAD_KEYS`]: super::LOOK_AHEAD_KEYS
    #[inline]
    pub fn look_ahead<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) {
        let stays = self.lookups > 0 && self.moves * 2 < self.lookups;
        (self.lookups, self.moves) = (0, 0);
        self.taken = 0;
        match stays {
            true => self.ahead.clear(),
            false => self.tree.leaves_ahead(keys, &mut self.ahead),
        }
    }

    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }
}

/// The leaf, if it has not changed and covers the key. That it is a leaf of the tree is looked at as in a descent:
/// version numbers come again, if one is remembered for very long.
pub(super) fn revisit<'t>(
    tree: &'t Tree,
    (page, version): (PageId, PageVersion),
    key: &[u8],
) -> Option<OptimisticGuard<'t>> {
    let pool = &tree.store().pool;
    if !pool.is_resident(page) {
        return None;
    }
    let leaf = NodeRef::optimistic(pool.optimistic(page).ok()?);
    let is_leaf = leaf.view().level() == 0 && leaf.guard().u64_at(header::TREE_ID) == tree.id.0;
    let is_it = leaf.guard().version() == version && is_leaf && leaf.view().covers(key);
    leaf.validate().ok()?;
    is_it.then(|| *leaf.guard())
}

impl Tree {
    /// A reader for many point lookups, best in key order, of what is there now.
    pub fn point_reader(self: &Arc<Self>) -> PointReader {
        self.point_reader_at(ReadView::newest())
    }

    /// As [`point_reader`](Self::point_reader), of what the view sees.
    pub fn point_reader_at(self: &Arc<Self>, view: ReadView) -> PointReader {
        PointReader {
            tree: self.clone(),
            view,
            leaf: None,
            value: Vec::new(),
            lookups: 0,
            moves: 0,
            ahead: LeavesAhead::new(),
            taken: 0,
        }
    }
}
