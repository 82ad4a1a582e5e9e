//! The purge of a leaf's versions: what no snapshot needs goes.
//!
//! What a version holds was current from the commit of the next older version's writer until the commit of its own
//! writer. When no snapshot lies in between, it goes.
//!
//! **Keys that came and went.** A snapshot is held. Another transaction inserts an entry that a third one deletes, as
//! the entries of an index on a column that is updated:
//!
//! ```text
//!   log    --S-----------T1-----------T2-----        page:  nothing under k
//!            |           inserts k    deletes k      table: (k, T2, before "row")  (k, T1, before absent)
//!            held, sees no k
//! ```
//!
//! No snapshot looks between T1 and T2, so T2's version goes. T1's tells S that there was no entry, but there is none
//! on the page either. So it goes as well, or each such key would leave one behind for as long as S is held. For this a
//! version remembers whether its writer has left no entry, and hands that down to the next older version when it goes
//! itself. A chain that says "absent" to every view, above a page that holds nothing, is of no use.
//!
//! A reader of the page as it was before T2 came finds that the page has changed since, and begins again.

use std::ops::Range;

use crate::page::Lsn;
use crate::transaction::snapshot::{LiveSnapshots, TransactionStatus};
use crate::transaction::versions::table::{Version, VersionTable};

impl VersionTable {
    /// Drops every version that no snapshot needs. Returns whether some key has no version any more.
    pub(crate) fn purge(&mut self, live: &LiveSnapshots) -> bool {
        let has_forgotten = self.drop_unneeded(live);
        self.settle();
        has_forgotten
    }

    fn drop_unneeded(&mut self, live: &LiveSnapshots) -> bool {
        let purge = Purge::new(self, live);
        // While an old snapshot is held for long, most tables stay what they are at most purges: they are not rebuilt.
        if self.dead_bytes * 2 <= self.bytes.len() && purge.keeps_all() {
            self.purged_to = self.versions.len();
            return false;
        }
        let mut has_forgotten = false;
        let mut kept = VersionTable::default();
        let mut at = 0;
        while at < self.versions.len() {
            let chain = at..self.chain_end(at, self.key(self.versions[at]));
            at = chain.end;
            let kept_before = kept.versions.len();
            if !purge.is_useless(chain.clone()) {
                let needed = chain.clone().filter(|&i| purge.is_needed(i));
                needed.for_each(|i| kept.append(self, i));
            }
            match kept.versions.get_mut(kept_before) {
                Some(newest) => newest.set_leaves_nothing(purge.leaves_nothing(chain)),
                None => has_forgotten = true,
            }
        }
        kept.purged_to = kept.versions.len();
        *self = kept;
        has_forgotten
    }
}

/// What a purge asks a table, while it stays as it is.
struct Purge<'t> {
    table: &'t VersionTable,
    /// Of its writers: those that end meanwhile are not taken for ended.
    statuses: Vec<TransactionStatus>,
    live: &'t LiveSnapshots,
}

impl<'t> Purge<'t> {
    fn new(table: &'t VersionTable, live: &'t LiveSnapshots) -> Purge<'t> {
        let writers = table.writers().iter();
        Purge {
            table,
            statuses: writers.map(|writer| writer.status()).collect(),
            live,
        }
    }

    fn status(&self, version: Version) -> TransactionStatus {
        self.statuses[version.writer as usize]
    }

    /// Whether some snapshot may look at what the version holds.
    fn is_needed(&self, i: usize) -> bool {
        let version = self.table.versions[i];
        let ended = match self.status(version) {
            TransactionStatus::Committed(lsn) => lsn,
            TransactionStatus::Active => return true,
            // What it holds is what the next newer state is.
            TransactionStatus::RolledBack => return false,
        };
        let key = self.table.key(version);
        // What a writer has undone may be all that it changed: then the state did not begin with that writer.
        let older = self.table.versions.get(i + 1).copied();
        let older = older.filter(|&older| self.table.key(older) == key && older.changes > 0);
        let created = match older.map(|older| self.status(older)) {
            Some(TransactionStatus::Committed(lsn)) => lsn,
            _ => Lsn(0),
        };
        self.live.need(created, ended)
    }

    /// The newest version of a chain that was not rolled back as a whole.
    fn newest(&self, chain: Range<usize>) -> Option<Version> {
        let mut versions = self.table.versions[chain].iter().copied();
        versions.find(|&version| self.status(version) != TransactionStatus::RolledBack)
    }

    /// Whether there is no entry on the page under the chain's key. May be false although that is so.
    fn leaves_nothing(&self, chain: Range<usize>) -> bool {
        self.newest(chain).is_some_and(Version::leaves_nothing)
    }

    /// Whether every view finds that there is no entry under the chain's key, with and without the chain. May be false
    /// although that is so.
    fn is_useless(&self, chain: Range<usize>) -> bool {
        let has_ended = |version: Version| self.status(version) != TransactionStatus::Active;
        let says_absent = |i: usize| {
            let version = self.table.versions[i];
            version.held_nothing() && version.changes > 0
        };
        self.newest(chain.clone())
            .is_some_and(|newest| newest.leaves_nothing() && has_ended(newest))
            && chain.filter(|&i| self.is_needed(i)).all(says_absent)
    }

    /// Whether nothing would be dropped.
    fn keeps_all(&self) -> bool {
        let is_kept = |i: usize| {
            let version = self.table.versions[i];
            // Of a useless chain of which everything is needed, the newest version is like that.
            let is_suspect = version.leaves_nothing() && version.held_nothing();
            self.is_needed(i)
                && !(is_suspect && self.is_useless(self.table.chain(self.table.key(version))))
        };
        (0..self.table.versions.len()).all(is_kept)
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::transaction::TransactionId;
    use crate::transaction::snapshot::{ReadView, SnapshotRegistry, StatusCell};
    use crate::transaction::versions::table::{Before, Seen};

    fn committed(id: u64) -> Arc<StatusCell> {
        let cell = StatusCell::new(TransactionId(id));
        cell.commit(Lsn(id));
        cell
    }

    /// A snapshot of 1 is held; the newest is of 100.
    fn held_snapshot() -> (Arc<SnapshotRegistry>, ReadView) {
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let old = ReadView::take(&registry, None).unwrap();
        registry.advance_to(Lsn(100));
        (registry, old)
    }

    #[test]
    fn a_key_that_came_and_went_leaves_nothing() {
        let (registry, old) = held_snapshot();
        let mut table = VersionTable::default();
        table.push(b"k", &committed(5), Before::Absent);
        assert!(!table.purge(&registry.live()) && table.len() == 1);
        table.push_delete(b"k", &committed(9), Before::Value(b"row"));
        assert!(table.purge(&registry.live()) && table.is_empty());
        // One transaction may do both, and so may several, one after the other.
        let own = committed(12);
        table.push(b"k", &own, Before::Absent);
        table.push_delete(b"k", &own, Before::Value(b"row"));
        table.push(b"k", &committed(15), Before::Absent);
        assert!(!table.purge(&registry.live()) && !table.is_empty());
        assert_eq!(table.resolve(b"k", &old), Seen::Absent);
        table.push_delete(b"k", &committed(16), Before::Value(b"row"));
        assert!(table.purge(&registry.live()) && table.is_empty());
    }

    #[test]
    fn a_key_that_came_and_went_stays_while_somebody_sees_it() {
        let (registry, old) = held_snapshot();
        let mut table = VersionTable::default();
        table.push(b"k", &committed(90), Before::Absent);
        let between = ReadView::take(&registry, None).unwrap();
        table.push(b"k", &committed(110), Before::Value(b"row"));
        table.push_delete(b"k", &committed(120), Before::Value(b"new row"));
        registry.advance_to(Lsn(120));
        assert!(!table.purge(&registry.live()));
        assert_eq!(table.resolve(b"k", &between), Seen::Value(b"row"));
        assert_eq!(table.resolve(b"k", &old), Seen::Absent);
        // The deletion's own version has gone, and nevertheless it is known.
        assert_eq!(table.len(), 2);
        drop(between);
        assert!(table.purge(&registry.live()) && table.is_empty());
    }

    #[test]
    fn what_an_old_view_sees_stays_however_often_the_key_comes_and_goes() {
        let (registry, old) = held_snapshot();
        let mut table = VersionTable::default();
        table.push_delete(b"k", &committed(5), Before::Value(b"first"));
        for id in (10..50).step_by(2) {
            table.push(b"k", &committed(id), Before::Absent);
            table.purge(&registry.live());
            table.push_delete(b"k", &committed(id + 1), Before::Value(b"row"));
            table.purge(&registry.live());
        }
        assert_eq!(table.len(), 1);
        assert_eq!(table.resolve(b"k", &old), Seen::Value(b"first"));
    }

    /// What is on the page is known only if it was the last that happened to the key.
    #[test]
    fn an_entry_that_is_on_the_page_is_hidden_from_readers_that_may_not_see_it() {
        let (registry, old) = held_snapshot();
        let is_hidden = |table: &mut VersionTable| {
            table.purge(&registry.live());
            table.resolve(b"k", &old) == Seen::Absent
        };
        // Deleted, inserted again.
        let mut table = VersionTable::default();
        let own = committed(5);
        table.push(b"k", &own, Before::Absent);
        table.push_delete(b"k", &own, Before::Value(b"row"));
        table.push(b"k", &committed(7), Before::Absent);
        assert!(is_hidden(&mut table) && is_hidden(&mut table));
        // Deleted, and that undone: by its transaction as a whole, or as far as that.
        for commits in [false, true] {
            let mut table = VersionTable::default();
            let writer = StatusCell::new(TransactionId(9));
            table.push(b"k", &committed(5), Before::Absent);
            if commits {
                table.push(b"k", &writer, Before::Value(b"row"));
            }
            table.push_delete(b"k", &writer, Before::Value(b"row"));
            assert!(is_hidden(&mut table));
            table.pop(b"k", &writer);
            match commits {
                true => writer.commit(Lsn(9)),
                false => writer.roll_back(),
            }
            assert!(is_hidden(&mut table) && is_hidden(&mut table));
        }
    }

    /// The writer deletes what it has inserted; that is spilled; it undoes the delete, and changes the entry instead.
    #[test]
    fn a_deletion_that_was_spilled_may_be_taken_back() {
        let (registry, old) = held_snapshot();
        let writer = StatusCell::new(TransactionId(9));
        let mut older = VersionTable::default();
        older.push(b"k", &writer, Before::Absent);
        older.push_delete(b"k", &writer, Before::Value(b"row"));
        let spilled = older.encode();
        let mut table = VersionTable::default();
        table.pop_spilled(b"k", &writer);
        table.push(b"k", &writer, Before::Value(b"row"));
        writer.commit(Lsn(9));
        let older = VersionTable::decode(&spilled, older.writers()).unwrap();
        table.add_older(&older, None, None);
        table.purge(&registry.live());
        assert_eq!(table.resolve(b"k", &old), Seen::Absent);
        // Of writers that have ended it is known for good.
        let mut ended = VersionTable::default();
        ended.push(b"k", &committed(5), Before::Absent);
        ended.push_delete(b"k", &committed(9), Before::Value(b"row"));
        let mut ended = VersionTable::decode(&ended.encode(), ended.writers()).unwrap();
        assert!(ended.purge(&registry.live()) && ended.is_empty());
    }
}
