//! SET gtid_next and SET GLOBAL gtid_purged: transactions of other servers count as executed without being applied.
//!
//! Both add to the set of GTIDs that the catalog keeps with the position of the replica, with or without a source.
//! With a binary log an empty transaction goes there as well, so that followers of this server count it, too. What is
//! purged never was in a file: followers that lack it are refused (1236).

use sheaf_binlog::gtid::{Gtid, GtidSet, Tag};
use sheaf_table::{AppliedChange, applied};
use sheaf_types::error::codes;

use super::lock;
use super::state::now_us;
use crate::binlog::origin::Origin;
use crate::binlog::server_uuid;
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session_parts::next_gtid::NextGtid;
use crate::variables::{ANONYMOUS, AUTOMATIC, GTID_NEXT, NewValue, SaidNext, SaidPurged};

impl Session {
    /// SET gtid_next.
    ///
    /// # Errors
    /// 1766 in a transaction, 1774 for what is no GTID, 1782 for an anonymous transaction where all have GTIDs, 1790
    /// while another GTID is owned; 1235 for a new GTID of this server.
    pub(crate) fn set_gtid_next(&mut self, new: &NewValue) -> Result<()> {
        check_outside_transaction(GTID_NEXT, self.transactions.is_open_for_more())?;
        let said = SaidNext::of(new)?;
        self.transactions.next_gtid.check_can_be_set()?;
        let (next, shown) = match said {
            SaidNext::Automatic => (NextGtid::Automatic, AUTOMATIC.to_string()),
            SaidNext::Anonymous if self.engine.binlog().is_some() => {
                return Err(SqlError::new(
                    codes::CANT_SET_GTID_NEXT_TO_ANONYMOUS_WHEN_GTID_MODE_IS_ON,
                    "@@SESSION.GTID_NEXT cannot be set to ANONYMOUS when @@GLOBAL.GTID_MODE = ON.",
                ));
            }
            SaidNext::Anonymous => (NextGtid::Automatic, ANONYMOUS.to_string()),
            SaidNext::Gtid(gtid) => (self.engine.next_gtid_of(gtid)?, gtid.to_string()),
        };
        self.transactions.next_gtid = next;
        self.variables.show_gtid_next(shown);
        Ok(())
    }

    /// COMMIT or ROLLBACK under `gtid_next`, of a transaction that has changed nothing.
    ///
    /// # Errors
    /// Those of [`Engine::execute_empty`]. The GTID is owned as before then.
    pub(crate) fn end_gtid(&mut self, commits: bool) -> Result<()> {
        if let Some(gtid) = self.transactions.next_gtid.owned().filter(|_| commits) {
            let _ticket = self.begin_commit()?;
            self.engine
                .execute_empty(gtid, self.variables.logs_changes())?;
        }
        self.transactions.next_gtid.end_transaction();
        Ok(())
    }
}

/// Error 1766 in a transaction.
pub(crate) fn check_outside_transaction(variable: &str, is_open: bool) -> Result<()> {
    match is_open {
        false => Ok(()),
        true => Err(SqlError::new(
            codes::VARIABLE_NOT_SETTABLE_IN_TRANSACTION,
            format!(
                "The system variable {variable} cannot be set when there is an ongoing transaction."
            ),
        )),
    }
}

impl Engine {
    /// Error 1235 for a new GTID of this server: its numbers follow from the log.
    fn next_gtid_of(&self, gtid: Gtid) -> Result<NextGtid> {
        if self.executed_gtids().contains(gtid) {
            return Ok(NextGtid::Executed(gtid));
        }
        match gtid.server() == server_uuid(self.storage().history()) {
            true => Err(SqlError::not_supported_yet(
                "a new GTID of this server itself as gtid_next",
            )),
            false => Ok(NextGtid::Owned(gtid)),
        }
    }

    /// Marks a transaction of another server as executed: an empty one has its GTID. `logs`: in the binary log, too.
    ///
    /// # Errors
    /// 3085 while the applier runs, which adds to the same set; those of the catalog.
    fn execute_empty(&self, gtid: Gtid, logs: bool) -> Result<()> {
        let replica = self.replica();
        let _control = lock(&replica.control);
        self.check_applier_stopped()?;
        if self.executed_gtids().contains(gtid) {
            return Ok(());
        }
        let committed_us = now_us();
        let origin = Origin {
            server_id: self.server_id(),
            time: u32::try_from(committed_us / 1_000_000).unwrap_or(u32::MAX),
            committed_us,
            version: crate::binlog::VERSION_NUMBER,
            gtid: Some(gtid),
        };
        let mut added = GtidSet::new();
        added.add(gtid);
        let origin = (logs && self.binlog().is_some()).then_some(origin);
        self.keep_executed(&added, origin)
    }

    /// SET GLOBAL gtid_purged.
    ///
    /// # Errors
    /// 3546 for what was executed otherwise, and for a set that lacks what is purged; 3085 while the applier runs; 1235
    /// for GTIDs of this server; those of the catalog.
    pub(crate) fn purge_gtids(&self, said: SaidPurged) -> Result<()> {
        let replica = self.replica();
        let _control = lock(&replica.control);
        self.check_applier_stopped()?;
        let (executed, purged) = self.executed_and_purged_gtids();
        let SaidPurged { mut set, is_added } = said;
        if !is_added {
            if !purged.is_subset(&set) {
                return Err(cannot_change_purged(
                    "the new value must be a superset of the old value",
                ));
            }
            set.subtract(&purged);
        }
        let mut unknown = set.clone();
        unknown.subtract(&executed);
        if unknown != set {
            return Err(cannot_change_purged(
                "the added gtid set must not overlap with @@GLOBAL.GTID_EXECUTED",
            ));
        }
        let server = server_uuid(self.storage().history());
        if set.intervals(server, &Tag::default()).is_some() {
            return Err(SqlError::not_supported_yet(
                "GTIDs of this server itself in gtid_purged",
            ));
        }
        self.keep_executed(&set, None)
    }

    /// Adds to the set that the catalog keeps. `origin`: in the binary log, as an empty transaction.
    fn keep_executed(&self, added: &GtidSet, origin: Option<Origin>) -> Result<()> {
        if added.is_empty() {
            return Ok(());
        }
        let replica = self.replica();
        let mut kept = replica.state.get().kept.unwrap_or_default();
        kept.position.gtids.union(added);
        let change = AppliedChange {
            position: kept.position.to_bytes(),
            origin: origin.map(Origin::to_bytes),
        };
        let (is_kept, _) = applied(change, || {
            self.catalog().keep_replication(Some(&kept.to_kept()))
        });
        is_kept?;
        let gtids = kept.position.gtids.clone();
        replica.state.change(|known| known.kept = Some(kept));
        if let Some(binlog) = self.binlog()
            && origin.is_none()
        {
            binlog.note_unlogged(gtids);
        }
        Ok(())
    }

    /// Error 3085 while the applier runs.
    fn check_applier_stopped(&self) -> Result<()> {
        match self.replica().threads_running() {
            (_, false) => Ok(()),
            (_, true) => Err(SqlError::new(
                codes::REPLICA_CHANNEL_SQL_THREAD_MUST_STOP,
                "This operation cannot be performed with a running replica sql thread; run STOP REPLICA SQL_THREAD FOR \
                 CHANNEL '' first",
            )),
        }
    }
}

fn cannot_change_purged(why: &str) -> SqlError {
    SqlError::new(
        codes::CANT_SET_GTID_PURGED_DUE_SETS_CONSTRAINTS,
        format!("@@GLOBAL.GTID_PURGED cannot be changed: {why}"),
    )
}
