//! The engine as a replica of another server.

use sheaf_binlog::gtid::{Gtid, GtidSet};

use super::Engine;
use crate::binlog::server_uuid;
use crate::replica_parts::Replica;
use crate::replica_parts::link::OpenLink;
use crate::variables::VariableValue;

impl Engine {
    pub(crate) fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The program around the engine says how another server is reached.
    pub fn reach_sources_by(&self, open_link: Box<OpenLink>) {
        self.replica.reaches_sources_by(open_link);
    }

    pub(crate) fn server_uuid(&self) -> String {
        server_uuid(self.storage.history()).to_string()
    }

    /// The transactions that were executed here, of this server and of others.
    pub(crate) fn executed_gtids(&self) -> GtidSet {
        self.executed_and_purged_gtids().0
    }

    /// The transactions that were executed here, and those of them that are in no file of the binary log.
    pub(crate) fn executed_and_purged_gtids(&self) -> (GtidSet, GtidSet) {
        let of_own_log = self.binlog().map(|binlog| binlog.gtids());
        let has_log = of_own_log.is_some();
        let (mut executed, purged) = of_own_log.unwrap_or_default();
        if let Some(kept) = self.replica.state.get().kept {
            executed.union(&kept.position.gtids);
        }
        let purged = match has_log {
            true => purged,
            false => executed.clone(),
        };
        (executed, purged)
    }

    /// Bytes of an event that the replica takes, at most.
    pub(crate) fn longest_source_event(&self) -> usize {
        let said = self.globals().replica_max_event_bytes();
        said.min(self.long_statements().limit_bytes())
    }

    /// Whether a transaction is this server's own.
    pub(crate) fn has_logged(&self, gtid: Gtid) -> bool {
        gtid.server() == server_uuid(self.storage.history())
            && self
                .binlog()
                .is_some_and(|binlog| binlog.gtids().0.contains(gtid))
    }

    /// What sql_replica_skip_counter says, which is said once.
    pub(crate) fn take_replica_skip_counter(&self) -> u64 {
        self.change_globals(|globals| {
            let skip = globals.replica_skip_counter();
            globals.set_internally("sql_replica_skip_counter", VariableValue::Integer(0));
            skip
        })
    }
}
