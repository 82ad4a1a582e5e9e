//! Amend, the fast path of an update: an entry whose newest version the writer's view shows is changed in one visit of
//! its leaf.
//!
//! A statement that changes rows reads each through its view, locks it, looks whether it is still what was read, reads
//! what to change, and changes it. Each of these finds the leaf again. Nearly always no other transaction is about, and
//! then one visit is enough. Under the leaf's exclusive latch nothing can come between looking and changing, so the
//! version that the change leaves behind is all the lock that the row needs.
//!
//! ```text
//!   read    lock    look again    read    change        five descents
//!   latch: no obstacle? newest version seen? -> new value -> change        one
//! ```
//!
//! In any other case nothing is changed, and the caller takes the general path, which can wait and begin again. Such
//! cases are: another transaction has changed the entry or locked it, the view does not show its newest version, or the
//! leaf is full.

use crate::error::Result;
use crate::node::{Node, Position};
use crate::pool::guard::ExclusiveGuard;
use crate::transaction::snapshot::ReadView;
use crate::transaction::versions::Before;
use crate::transaction::{Change, Transaction};
use crate::tree::Tree;
use crate::tree::insert::{Placed, check_entry};

impl Tree {
    /// Gives a live entry the value that `amended` makes of its present one, if the view shows that and no other
    /// transaction keeps this one from changing it. False: nothing has happened, because that is not so, because
    /// `amended` wants no change, or because the leaf has no room for it. `amended` may run under the leaf's latch: it
    /// computes and never waits. What it makes of the value counts only if this returns true: another transaction that
    /// has locked the entry may be about to change it.
    ///
    /// # Errors
    /// As [`replace`](Self::replace), except those of waiting.
    pub fn amend(
        &self,
        transaction: &mut Transaction,
        view: &ReadView,
        key: &[u8],
        amended: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<bool> {
        if transaction.id().is_some() {
            return self.amend_latched(transaction, view, key, amended);
        }
        // Its first change: a transaction that turns out to change nothing takes no permit to, and keeps no log.
        let mut old = Vec::new();
        let found = self.read_newest_seen(view, key, &mut old, transaction.leaf_hints())?;
        if found != Some(true) {
            return Ok(false);
        }
        let Some(value) = amended(&old) else {
            return Ok(false);
        };
        let unless_changed = |now: &[u8]| (now == old).then_some(value);
        self.amend_latched(transaction, view, key, unless_changed)
    }

    fn amend_latched(
        &self,
        transaction: &mut Transaction,
        view: &ReadView,
        key: &[u8],
        amended: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<bool> {
        transaction.begin_change(self)?;
        let leaf = self.next_leaf_for_change(transaction, key)?;
        let Some(position) = self.seen_entry(&leaf, transaction, view, key) else {
            return Ok(false);
        };
        let old = Node(&leaf).value(position.slot).to_vec();
        let Some(value) = amended(&old) else {
            return Ok(false);
        };
        check_entry(key, &value)?;
        transaction.push(self, Change::Update, key, &old)?;
        let before = Before::Value(&old);
        let placed = self.place_noted(transaction, leaf, position, key, &value, before)?;
        Ok(matches!(placed, Placed::Done))
    }

    /// Where the live entry of `key` is in its leaf, if the view shows its newest version and there is no obstacle.
    fn seen_entry(
        &self,
        leaf: &ExclusiveGuard<'_>,
        transaction: &Transaction,
        view: &ReadView,
        key: &[u8],
    ) -> Option<Position> {
        let (system, own) = (&self.store.transactions, transaction.status());
        let node = Node(leaf);
        let position = node.view().lower_bound(key);
        if !position.found || node.is_ghost(position.slot) {
            return None;
        }
        let may_be_unseen = leaf.has_unsettled_versions()
            || leaf.has_versions()
                && view
                    .timestamp()
                    .is_some_and(|snapshot| snapshot < system.versions.settled_horizon());
        if may_be_unseen && !system.versions.shows_newest(leaf.page_id(), key, view) {
            return None;
        }
        let wanted = transaction.wanted_change(self.id, key, false);
        let is_free = system.row_locks.blocker(own, wanted).is_none();
        is_free.then_some(position)
    }
}
