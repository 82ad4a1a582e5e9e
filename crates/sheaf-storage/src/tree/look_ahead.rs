//! Lookups to come: what they will read is brought into the processor's cache, for many keys at the same time.
//!
//! A lookup in a tree that is larger than the processor's cache waits for memory several times: at the leaf's word in
//! the page table, its header, some slots, the record. Each time it learns where to look next. For keys that are all
//! going to be looked up, these waits can be made to overlap. Every step is done for all keys of a group before the
//! next step is done for the first of them.
//!
//! ```text
//!   one by one   | word | header | slots | record |        | word | header | slots | record |        | word ...
//!   in a group   | words of all | headers of all | slots of all | records of all |  lookups, which wait for nothing
//! ```
//!
//! Nothing is waited for but memory. A page that is not there, or that changes, costs the time of asking for bytes that
//! are not needed. What is asked for is not validated, but the leaves are, each together with its parent: lookups begin
//! with them, and a leaf that was freed meanwhile looks as it did before. (Group prefetching: Chen, Ailamaki, Gibbons,
//! Mowry, "Improving Hash Join Performance through Prefetching", 2004.)

use crate::node::{MAX_HEIGHT, NodeView};
use crate::page::PageId;
use crate::pool::guard::{OptimisticGuard, PageVersion};
use crate::tree::Tree;

/// Keys of a group: about as many as the processor has requests to memory under way.
pub const LOOK_AHEAD_KEYS: usize = 16;

/// How far the way to a key was gone.
#[derive(Clone, Copy)]
struct Place<'k, 'p> {
    key: &'k [u8],
    page: PageId,
    /// None: it is not there, or being changed.
    node: Option<OptimisticGuard<'p>>,
    slot: usize,
}

/// The leaves that keys seemed to be on, in the order of the keys; none where something was not there.
pub(super) type LeavesAhead = Vec<Option<(PageId, PageVersion)>>;

impl Tree {
    /// Asks memory for what lookups of these keys will read, at most [`LOOK_AHEAD_KEYS`] of them.
    pub fn look_ahead<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        self.leaves_ahead(keys, &mut LeavesAhead::new());
    }

    /// As [`look_ahead`](Self::look_ahead), and says which leaves the keys are on; none of them if there is a single
    /// leaf.
    pub(super) fn leaves_ahead<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        leaves: &mut LeavesAhead,
    ) {
        leaves.clear();
        let pool = &self.store.pool;
        let Some(root) = pool.glance_at(self.root) else {
            return;
        };
        let levels = usize::from(NodeView(&root).level()).min(MAX_HEIGHT);
        if levels == 0 {
            return;
        }
        let start = Place {
            key: &[],
            page: self.root,
            node: Some(root),
            slot: 0,
        };
        let mut group = [start; LOOK_AHEAD_KEYS];
        let mut count = 0;
        for (place, key) in group.iter_mut().zip(keys) {
            place.key = key;
            count += 1;
        }
        let group = &mut group[..count];
        for _ in 0..levels {
            for place in &mut *group {
                if let Some(node) = &place.node {
                    place.slot = NodeView(node).child_slot(place.key);
                    NodeView(node).ask_for_record(place.slot, 1);
                }
            }
            for place in &mut *group {
                if let Some(node) = &place.node {
                    place.page = NodeView(node).child(place.slot);
                    pool.ask_for_word(place.page);
                }
            }
            #[cfg(all(test, not(feature = "simulation")))]
            tests::reach_the_pages();
            for place in &mut *group {
                if let Some(parent) = place.node {
                    // As in a descent: the child's version is known, and the parent still points to it.
                    let child = pool.glance_at(place.page);
                    place.node = child.filter(|_| parent.validate().is_ok());
                }
                if let Some(node) = &place.node {
                    NodeView(node).ask_for_header();
                }
            }
            for place in &*group {
                if let Some(node) = &place.node {
                    NodeView(node).ask_for_slots();
                }
            }
        }
        for place in &*group {
            leaves.push(place.node.map(|leaf| {
                let slot = NodeView(&leaf).lower_bound(place.key).slot;
                NodeView(&leaf).ask_for_record(slot, RECORD_BYTES);
                (place.page, leaf.version())
            }));
        }
    }
}

/// Bytes of a record that are asked for: how long it is, is only known when its first ones are there.
const RECORD_BYTES: usize = 256;

/// What tests do to the tree when a look ahead knows the pages of the next level, and has not looked at them.
#[cfg(all(test, not(feature = "simulation")))]
pub(super) mod tests {
    use std::cell::Cell;

    type Interruption = Box<dyn FnOnce()>;

    thread_local! {
        static INTERRUPTION: Cell<Option<Interruption>> = const { Cell::new(None) };
    }

    pub(in crate::tree) fn interrupt_once(with: impl FnOnce() + 'static) {
        INTERRUPTION.set(Some(Box::new(with)));
    }

    pub(super) fn reach_the_pages() {
        if let Some(interruption) = INTERRUPTION.take() {
            interruption();
        }
    }
}
