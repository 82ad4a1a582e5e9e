//! What a statement that changes rows, or a locking read, locks at each level.
//!
//! | level | rows that it finds | what it searched ([`Search`]) |
//! |---|---|---|
//! | READ COMMITTED | locked; given back if they do not match any more once they are locked | nothing |
//! | REPEATABLE READ | locked | of the tables that it locks rows of: nothing is inserted there (next-key locks) |
//! | SERIALIZABLE | locked | of all tables: nothing changes |
//!
//! Rows are locked first, one by one as the statement comes to them, and the ranges when it is through: so who waits for a
//! row holds no range that the row's owner may have to insert into. If something has come into a range since the
//! statement read it, the statement begins again; the range is locked by then.
//!
//! A row that the statement has changed needs no lock besides: its version is one. The lock is given back, so that a large
//! change holds no lock for each row. A statement that begins again keeps them, so that it gets ahead. A statement that is
//! a transaction of its own locks no gaps in REPEATABLE READ: when it could look again, they are free.
//!
//! Lookups of a keyed join are not known before it runs. In SERIALIZABLE they count as a search of the whole index; in
//! REPEATABLE READ they lock no gaps.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_physical_plan::ExecutionPlan;
use sheaf_access::{Fetch, IndexRef, MergeKind};
use sheaf_exec::keyed_join_exec::KeyedJoinExec;
use sheaf_exec::scan_exec::ScanExec;
use sheaf_storage::{Direction, KeyRange, LockMode, LockWait, RangeLock, ReadView, TreeId};
use sheaf_table::{Search, Table};

use crate::error::Result;
use crate::run_query::PlannedQuery;
use crate::session::Session;
use crate::transaction::{Isolation, StatementTransaction};

/// Rows that a statement remembers to have locked, to give those back that do not match. The others stay locked.
const MAX_REMEMBERED_LOCKS: usize = 1 << 16;

/// One search of a plan.
pub(crate) struct PlannedSearch {
    pub(crate) search: Search,
    /// It is the inner side of a keyed join.
    is_lookup: bool,
    /// A forward scan of the clustered index that ends after so many rows.
    limit: Option<usize>,
}

impl PlannedSearch {
    fn of_scan(scan: &ScanExec) -> Vec<PlannedSearch> {
        let spec = scan.spec();
        if let Some(merge) = &spec.merge {
            // What would come into an intersection would come into each of its indexes.
            let searched = match merge.kind {
                MergeKind::Union => merge.inputs.len(),
                MergeKind::Intersection => 1,
            };
            let inputs = merge.inputs.iter().take(searched);
            return inputs
                .map(|input| PlannedSearch {
                    search: Search {
                        table: Arc::clone(&spec.table),
                        index: secondary(input.index),
                        ranges: input.ranges.clone(),
                        reads_rows: secondary(input.index).is_some(),
                    },
                    is_lookup: false,
                    limit: None,
                })
                .collect();
        }
        let index = secondary(spec.index);
        let in_order = matches!(spec.direction, Direction::Forward) && spec.first_of.is_none();
        vec![PlannedSearch {
            search: Search {
                table: Arc::clone(&spec.table),
                index,
                ranges: spec.ranges.clone(),
                reads_rows: index.is_some() && spec.fetch != Fetch::Covering,
            },
            is_lookup: false,
            limit: spec.limit.filter(|_| index.is_none() && in_order),
        }]
    }

    fn of_lookup(join: &KeyedJoinExec) -> PlannedSearch {
        let spec = join.spec();
        let index = secondary(spec.index);
        PlannedSearch {
            search: Search {
                table: Arc::clone(&spec.table),
                index,
                ranges: vec![KeyRange::all()],
                reads_rows: index.is_some() && spec.fetch != Fetch::Covering,
            },
            is_lookup: true,
            limit: None,
        }
    }
}

fn secondary(index: IndexRef) -> Option<usize> {
    match index {
        IndexRef::Clustered => None,
        IndexRef::Secondary(position) => Some(position),
    }
}

/// Everything that a plan reads of tables.
pub(crate) fn searches_of(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<PlannedSearch>> {
    let mut searches = Vec::new();
    plan.apply(|node| {
        let node: &dyn std::any::Any = node.as_ref();
        if let Some(scan) = node.downcast_ref::<ScanExec>() {
            searches.extend(PlannedSearch::of_scan(scan));
        } else if let Some(join) = node.downcast_ref::<KeyedJoinExec>() {
            searches.push(PlannedSearch::of_lookup(join));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(searches)
}

/// A row that the statement has locked and not changed.
struct KeptLock {
    table: Arc<Table>,
    /// The statement found it in its last attempt, locked it, and it was what the statement had read.
    matches: bool,
}

/// See the module's comment.
pub(crate) struct StatementLocks {
    isolation: Isolation,
    autocommit: bool,
    wait: LockWait,
    has_restarted: bool,
    /// READ COMMITTED: rows that were not locked before the statement.
    kept: BTreeMap<(TreeId, Vec<u8>), KeptLock>,
}

impl StatementLocks {
    pub(crate) fn new(isolation: Isolation, autocommit: bool, wait: LockWait) -> StatementLocks {
        StatementLocks {
            isolation,
            autocommit,
            wait,
            has_restarted: false,
            kept: BTreeMap::new(),
        }
    }

    /// How long the statement waits for a lock.
    pub(crate) fn wait(&self) -> LockWait {
        self.wait
    }

    pub(crate) fn start_again(&mut self) {
        self.has_restarted = true;
        for kept in self.kept.values_mut() {
            kept.matches = false;
        }
    }

    fn kind_of_range(&self) -> Option<RangeLock> {
        match self.isolation {
            Isolation::ReadUncommitted | Isolation::ReadCommitted => None,
            Isolation::RepeatableRead if self.autocommit => None,
            Isolation::RepeatableRead => Some(RangeLock::NoInserts),
            Isolation::Serializable => Some(RangeLock::NoChanges),
        }
    }

    /// Whether what the statement finds out must stay as it is.
    pub(crate) fn is_serializable(&self) -> bool {
        self.isolation == Isolation::Serializable
    }

    fn gives_back_rows(&self) -> bool {
        self.isolation <= Isolation::ReadCommitted && !self.autocommit
    }

    fn remember(&mut self, table: &Arc<Table>, key: &[u8], is_new: bool, matches: bool) {
        if !self.gives_back_rows() {
            return;
        }
        let name = (table.clustered.id(), key.to_vec());
        let has_room = self.kept.len() < MAX_REMEMBERED_LOCKS;
        match self.kept.get_mut(&name) {
            Some(kept) => kept.matches = matches,
            None if is_new && has_room => {
                let table = Arc::clone(table);
                self.kept.insert(name, KeptLock { table, matches });
            }
            None => {}
        }
    }
}

impl StatementTransaction {
    /// Locks a row that was found through `view`. `None`: it is not what the view shows, and the statement begins again.
    /// `Some(true)`: the lock is new.
    pub(crate) fn lock_row(
        &mut self,
        view: &ReadView,
        table: &Arc<Table>,
        key: &[u8],
        mode: LockMode,
    ) -> Result<Option<bool>> {
        let (changes, locks) = self.changes_and_locks();
        let row = changes.lock_row_of_view(view, &table.clustered, key, mode, locks.wait)?;
        locks.remember(table, key, row.is_new, row.is_unchanged);
        Ok(row.is_unchanged.then_some(row.is_new))
    }

    /// The statement has changed a row that it had locked: if it was the first to, the version is lock enough.
    pub(crate) fn row_is_changed(&mut self, table: &Arc<Table>, key: &[u8], is_new: bool) {
        let (changes, locks) = self.changes_and_locks();
        // In SERIALIZABLE the lock is also what keeps the row as it was read, should the change be taken back.
        if is_new && !locks.has_restarted && locks.isolation < Isolation::Serializable {
            changes.unlock_row(&table.clustered, key);
            locks.kept.remove(&(table.clustered.id(), key.to_vec()));
        }
    }

    /// What of a plan's searches is to be locked when the rows are.
    pub(crate) fn searches_to_lock(
        &mut self,
        planned: &PlannedQuery,
        targets: &[Arc<Table>],
    ) -> Result<Vec<PlannedSearch>> {
        let (_, locks) = self.changes_and_locks();
        if locks.kind_of_range().is_none() {
            return Ok(Vec::new());
        }
        let mut searches = searches_of(&planned.physical.plan)?;
        if locks.isolation < Isolation::Serializable {
            searches.retain(|planned| {
                let mut targets = targets.iter();
                !planned.is_lookup && targets.any(|table| Arc::ptr_eq(table, &planned.search.table))
            });
        }
        Ok(searches)
    }

    /// As [`Self::searches_to_lock`], of a direct plan that reads ranges of one index of a table, and its rows; `limit` if
    /// it ends after so many, going forward.
    pub(crate) fn search_to_lock(
        &mut self,
        table: &Arc<Table>,
        index: IndexRef,
        limit: Option<usize>,
        ranges: impl FnOnce() -> Vec<KeyRange>,
    ) -> Vec<PlannedSearch> {
        let (_, locks) = self.changes_and_locks();
        if locks.kind_of_range().is_none() {
            return Vec::new();
        }
        let index = secondary(index);
        let search = Search {
            table: Arc::clone(table),
            index,
            ranges: ranges(),
            reads_rows: index.is_some(),
        };
        vec![PlannedSearch {
            limit: limit.filter(|_| index.is_none()),
            search,
            is_lookup: false,
        }]
    }

    /// Ends the locking of a statement that has found its rows through `view`, `rows` of them, the last one with this
    /// key: locks what it searched, and gives back what does not match. False: the statement begins again.
    pub(crate) fn lock_searches(
        &mut self,
        view: &ReadView,
        searches: &mut [PlannedSearch],
        (rows, last): (usize, Option<&[u8]>),
    ) -> Result<bool> {
        let (changes, locks) = self.changes_and_locks();
        if let Some(kind) = locks.kind_of_range() {
            if let [only] = searches
                && only.limit.is_some_and(|limit| limit == rows)
                && let Some(last) = last
            {
                only.search.end_at(last);
            }
            for planned in searches {
                let search = &planned.search;
                if !search.lock_of_view(changes, view, kind, locks.wait)? {
                    return Ok(false);
                }
            }
        }
        for ((_, key), kept) in std::mem::take(&mut locks.kept) {
            if !kept.matches {
                changes.unlock_row(&kept.table.clustered, &key);
            }
        }
        Ok(true)
    }
}

impl Session {
    /// Locks what a query of the open transaction reads against all changes, until the transaction ends. The query then
    /// reads what is there now.
    pub(crate) fn lock_all_it_reads(
        &mut self,
        planned: &PlannedQuery,
        wait: LockWait,
    ) -> Result<()> {
        let Some(changes) = self.open_changes() else {
            return Ok(());
        };
        for planned in searches_of(&planned.physical.plan)? {
            planned.search.lock_shared(changes, wait)?;
        }
        Ok(())
    }
}
