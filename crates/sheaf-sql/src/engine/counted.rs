//! What `performance_schema` shows of all sessions: each counts for itself, and their sums are made when they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sheaf_access::{IndexUse, IndexUses};
use sheaf_storage::TreeId;

use super::Engine;
use crate::events::digest_name::DigestName;
use crate::events::digest_sums::DigestSums;

impl Engine {
    /// What was counted of statements by digest, by all sessions.
    pub(crate) fn digests_of_statements(&self) -> Vec<(Option<Arc<DigestName>>, DigestSums)> {
        let sessions = self.sessions();
        let sums = sessions.iter().map(|session| &*session.digests);
        self.digest_table.rows(sums)
    }

    /// Forgets it.
    pub(crate) fn clear_digests(&self) {
        let sessions = self.sessions();
        let sums = sessions.iter().map(|session| &*session.digests);
        self.digest_table.clear(sums);
    }

    /// Forgets how long statements took.
    pub(crate) fn clear_histograms(&self) {
        let sessions = self.sessions();
        let sums = sessions.iter().map(|session| &*session.digests);
        self.digest_table.clear_times(sums);
    }

    /// How often indexes were used, by all sessions. `trees` are those of all indexes that there are; what was counted
    /// of others is forgotten.
    pub(crate) fn index_uses(&self, trees: &BTreeSet<TreeId>) -> BTreeMap<TreeId, IndexUse> {
        let ended = &self.handler_total.index_uses;
        ended.retain(|tree| trees.contains(&tree));
        let sum = IndexUses::default();
        ended.add_to(&sum);
        for session in self.sessions() {
            session.counters.index_uses.add_to(&sum);
        }
        sum.all()
    }

    /// Forgets that.
    pub(crate) fn clear_index_uses(&self) {
        self.handler_total.index_uses.clear();
        for session in self.sessions() {
            session.counters.index_uses.clear();
        }
    }
}
