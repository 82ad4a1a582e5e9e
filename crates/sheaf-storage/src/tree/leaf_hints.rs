//! Leaf hints: of each tree the leaf that a transaction visited last, where its next search begins.
//!
//! Statements come back to where others of their transaction were a moment ago: a row is locked and then changed, the
//! lines of an order are inserted one behind the other. If the leaf is still of the version that was left, and its
//! fences enclose the key, the descent is saved. As for a [`PointReader`](crate::tree::point_reader), nothing is
//! latched or pinned in between, and a page that was changed, evicted or freed meanwhile is of another version.

use crate::page::{PageId, TreeId};
use crate::pool::guard::{OptimisticGuard, PageVersion};
use crate::tree::Tree;
use crate::tree::point_reader::revisit;

/// Trees of which a leaf is remembered; of those beyond, the place of one is used for another.
const MAX_TREES: usize = 8;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct LeafHints {
    leaves: [Option<LeafHint>; MAX_TREES],
    /// The place that is reused next, when all are taken.
    next: usize,
}

#[derive(Clone, Copy)]
struct LeafHint {
    tree: TreeId,
    page: PageId,
    version: PageVersion,
}

impl LeafHints {
    /// The leaf of `key`, if the tree was left there and the leaf has not changed since; to be validated by the caller.
    /// It is forgotten: a caller that has used it notes it again.
    #[inline]
    pub(crate) fn take<'t>(&mut self, tree: &'t Tree, key: &[u8]) -> Option<OptimisticGuard<'t>> {
        let is_it =
            |place: &&mut Option<LeafHint>| place.as_ref().is_some_and(|hint| hint.tree == tree.id);
        let place = self.leaves.iter_mut().find(is_it)?;
        let LeafHint { page, version, .. } = place.take()?;
        revisit(tree, (page, version), key)
    }

    /// The transaction leaves a leaf of `tree` that is, or is going to be, of this version.
    #[inline]
    pub(crate) fn note(&mut self, tree: TreeId, page: PageId, version: PageVersion) {
        let hint = LeafHint {
            tree,
            page,
            version,
        };
        let is_it = |place: &Option<LeafHint>| place.is_some_and(|known| known.tree == tree);
        let place = self.leaves.iter().position(is_it);
        let place = place.or_else(|| self.leaves.iter().position(Option::is_none));
        let place = place.unwrap_or_else(|| {
            self.next = (self.next + 1) % MAX_TREES;
            self.next
        });
        self.leaves[place] = Some(hint);
    }
}
