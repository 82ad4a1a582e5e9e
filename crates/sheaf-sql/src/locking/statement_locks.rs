//! What a statement that changes rows, or a locking read, locks at each level.
//!
//! | level | rows that it finds | what it searched ([`Search`]) |
//! |---|---|---|
//! | READ COMMITTED | locked; released if they do not match any more once they are locked | nothing |
//! | REPEATABLE READ | locked | of the tables that it locks rows of: nothing is inserted there (next-key locks), and nothing changes if the search reads rows that it does not find; of the tables that a change only reads: nothing changes |
//! | SERIALIZABLE | locked | of all tables: nothing changes |
//!
//! Rows are locked first, one by one as the statement comes to them, and the ranges when it is through. So a
//! transaction that waits for a row holds no range that the row's owner may have to insert into. If something has come
//! into a range since the statement read it, the statement begins again; the range is locked by then.
//!
//! A row that the statement has changed needs no lock besides: its version is one. The lock is released, so that a
//! large change holds no lock for each row. A statement that begins again keeps them, so that it gets ahead. A
//! statement that is a transaction of its own locks no gaps in REPEATABLE READ: when it could look again, they are
//! free.
//!
//! **Rows that are read and not found.** What is in the searched ranges of an index is what the statement finds, unless
//! something besides the ranges decides. That may be a condition on other columns, a join, or a sort that ends at a
//! LIMIT. Then a change of a row there could make it one that the statement would have found. So in REPEATABLE READ
//! nothing may change in the ranges, whether it matches or not, as in InnoDB, which locks every row that it reads.
//!
//! Nor is what a statement only reads locked beyond where its scans have come to ([`ScanReach`]): MAX(id), or the first
//! rows of an index, are a few of its entries.
//!
//! Lookups of a keyed join are not known before it runs. It records them ([`LookupRecord`]), and then the rows that
//! they have met are locked, and the gaps around them. Plain reads of SERIALIZABLE do the same
//! (`select/serializable_read.rs`). Only a query that is locked before it runs locks the whole index instead: one
//! whose rows cannot wait, or that feeds a change. If a plan can be replaced at run time ([`RegretExec`]), only what
//! the plan that came to the end has searched is locked.

use std::sync::Arc;

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::execution_plan::CardinalityEffect;
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use sheaf_access::{Fetch, ScanReach};
use sheaf_exec::keyed_join::exec::KeyedJoinExec;
use sheaf_exec::keyed_join::lookup_record::LookupRecord;
use sheaf_exec::operator::apply_exec::ApplyExec;
use sheaf_exec::operator::apply_rows_exec::ApplyRowsExec;
use sheaf_exec::operator::regret_exec::RegretExec;
use sheaf_exec::operator::scan_exec::ScanExec;
use sheaf_storage::{Direction, KeyRange, LockMode, LockWait, RangeLock, ReadView, Transaction};
use sheaf_table::{Search, Table};

use crate::error::Result;
use crate::isolation::transaction::{StatementTransaction, Transactions};
use crate::query::run::{Asked, PlannedQuery};
use crate::session::searched::{DirectSearch, Searched};
use crate::session_parts::remembered_locks::StatementLocks;
use crate::variables::Isolation;

/// Most rows that a plain read locks one by one for a join's lookups. A transaction that has locked so many tries to
/// lock the table instead, and has then held up its reader for long enough.
const MAX_ROWS_OF_LOOKUPS: usize = 1 << 13;

/// One search of a plan.
pub(crate) struct PlannedSearch {
    pub(crate) search: Search,
    /// It is the inner side of a keyed join, and these are its ranges once that has run.
    lookups: Option<Arc<LookupRecord>>,
    /// It is a scan, and this says how far it has come once it has run.
    reach: Option<Arc<ScanReach>>,
    /// It may end before it has read all of its ranges.
    may_end_early: bool,
    /// Something besides the ranges decides which rows are found.
    is_filtered: bool,
    /// It ends after so many rows, which it finds in the order of its index.
    limit: Option<usize>,
    direction: Direction,
    /// The plans that have to come to the end for this search to count.
    doubts: Vec<Doubt>,
    /// A query inside of the statement says so of the table.
    asked: Option<Asked>,
    /// No row of the table is locked for being found.
    is_only_read: bool,
}

/// A part of a plan that counts only if a plan was not replaced at run time, or only if it was.
#[derive(Clone)]
struct Doubt {
    /// A [`RegretExec`].
    regret: Arc<dyn ExecutionPlan>,
    is_alternative: bool,
}

impl Doubt {
    fn has_come_true(&self) -> bool {
        let regret = self.regret.downcast_ref::<RegretExec>();
        regret.is_none_or(|regret| regret.has_switched() == self.is_alternative)
    }
}

impl PlannedSearch {
    /// Whether it will have been made, and where, whatever happens.
    fn is_known(&self) -> bool {
        self.lookups.is_none() && self.doubts.is_empty() && !self.may_end_early
    }

    /// Locks what it has read through `view`, now that it is over. False: that is not what is there now.
    fn lock_of_view(
        &mut self,
        changes: &mut Transaction,
        view: &ReadView,
        kind: RangeLock,
        (most_rows, wait): (usize, LockWait),
    ) -> Result<bool> {
        let search = &mut self.search;
        if let Some(record) = &self.lookups {
            search.ranges = record.ranges();
        }
        if let Some(reach) = &self.reach {
            search.ranges = reach.ranges();
        }
        let wait = match &self.asked {
            Some(asked) if !asked.waits => LockWait::No,
            _ => wait,
        };
        // Before what follows shares it: two that share it would wait for one another.
        if let Some(asked) = &self.asked
            && asked.mode == LockMode::Exclusive
        {
            search.lock(changes, asked.mode, wait)?;
        }
        Ok(match &self.lookups {
            Some(_) => search.lock_lookups_of_view(changes, view, most_rows, wait)?,
            None => search.lock_of_view(changes, view, kind, wait)?,
        })
    }

    fn has_come_to_the_end(&self) -> bool {
        self.doubts.iter().all(Doubt::has_come_true)
    }

    fn of_scan(scan: &ScanExec, known: Lookups) -> Vec<PlannedSearch> {
        let spec = scan.spec();
        let searches = spec.searches().into_iter();
        searches
            .map(|search| PlannedSearch {
                search,
                lookups: None,
                reach: match known {
                    Lookups::Noted => scan.record_reach(),
                    Lookups::Unknown => None,
                },
                may_end_early: false,
                is_filtered: spec.is_filtered(),
                limit: spec.limit.filter(|_| spec.is_in_order()),
                direction: spec.direction,
                doubts: Vec::new(),
                asked: None,
                is_only_read: false,
            })
            .collect()
    }

    /// Forwards, to the end of its ranges, of rows that conditions may leave out.
    fn of(search: Search) -> PlannedSearch {
        PlannedSearch {
            search,
            lookups: None,
            reach: None,
            may_end_early: false,
            is_filtered: true,
            limit: None,
            direction: Direction::Forward,
            doubts: Vec::new(),
            asked: None,
            is_only_read: false,
        }
    }

    fn of_direct(table: &Arc<Table>, search: DirectSearch, ranges: Vec<KeyRange>) -> PlannedSearch {
        let DirectSearch {
            index,
            reads_rows,
            is_filtered,
            limit,
            direction,
        } = search;
        let index = index.secondary();
        let search = Search {
            table: Arc::clone(table),
            index,
            ranges,
            reads_rows: reads_rows && index.is_some(),
        };
        PlannedSearch {
            is_filtered,
            limit,
            direction,
            ..PlannedSearch::of(search)
        }
    }

    /// Of a table of which the rows that are found are locked.
    pub(crate) fn of_found(searched: Searched) -> PlannedSearch {
        let search = DirectSearch {
            reads_rows: true,
            ..searched.search
        };
        PlannedSearch::of_direct(&searched.table, search, searched.ranges)
    }

    /// Of a table that `view` has shown, and of which the statement locks no rows for being found.
    ///
    /// # Errors
    /// The row cannot be read to which the search has come.
    pub(crate) fn of_read(searched: Searched, view: &ReadView) -> Result<PlannedSearch> {
        let mut planned = PlannedSearch {
            is_only_read: true,
            ..PlannedSearch::of_direct(&searched.table, searched.search, searched.ranges)
        };
        if let Some(last) = &searched.last {
            planned.search.end_at_row(view, last, planned.direction)?;
        }
        Ok(planned)
    }

    /// Of a subquery that is planned for each row, of which nothing is known before.
    fn of_all(table: &Arc<Table>) -> PlannedSearch {
        PlannedSearch::of(Search {
            table: Arc::clone(table),
            index: None,
            ranges: vec![KeyRange::all()],
            reads_rows: false,
        })
    }

    fn of_lookup(join: &KeyedJoinExec, known: Lookups) -> PlannedSearch {
        let spec = join.spec();
        let index = spec.index.secondary();
        let search = Search {
            table: Arc::clone(&spec.table),
            index,
            ranges: vec![KeyRange::all()],
            reads_rows: index.is_some() && spec.fetch != Fetch::Covering,
        };
        PlannedSearch {
            lookups: (known == Lookups::Noted).then(|| join.record_lookups()),
            ..PlannedSearch::of(search)
        }
    }
}

/// What becomes of the tables that a statement only reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// A change depends on them, so they stay as they are from REPEATABLE READ on.
    Locked,
    /// A locking read leaves them as they are below SERIALIZABLE.
    Free,
}

/// What will be known of the keys that keyed joins look up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookups {
    /// Nothing: all of the index is searched.
    Unknown,
    /// The joins are going to run, and note them down.
    Noted,
}

/// Everything that a plan reads of tables.
pub(crate) fn searches_of(
    plan: &Arc<dyn ExecutionPlan>,
    lookups: Lookups,
) -> Result<Vec<PlannedSearch>> {
    let mut searches = Vec::new();
    let (mut is_filtered, mut may_end_early) = (false, false);
    let mut doubted = Vec::new();
    plan.apply(|node| {
        if node.is::<RegretExec>() {
            doubted.push(Arc::clone(node));
            return Ok(TreeNodeRecursion::Jump);
        }
        if let Some(scan) = node.downcast_ref::<ScanExec>() {
            let spec = scan.spec();
            may_end_early |= spec.limit.is_some() || spec.ends_at_first_entry();
            searches.extend(PlannedSearch::of_scan(scan, lookups));
            return Ok(TreeNodeRecursion::Continue);
        }
        if let Some(apply) = node.downcast_ref::<ApplyExec>() {
            searches.extend(apply.tables().iter().map(PlannedSearch::of_all));
        }
        if let Some(apply) = node.downcast_ref::<ApplyRowsExec>() {
            searches.extend(apply.tables().iter().map(PlannedSearch::of_all));
        }
        if let Some(join) = node.downcast_ref::<KeyedJoinExec>() {
            searches.push(PlannedSearch::of_lookup(join, lookups));
        }
        is_filtered |= !passes_first_rows(node.as_ref());
        may_end_early |= node.fetch().is_some();
        Ok(TreeNodeRecursion::Continue)
    })?;
    for regret in doubted {
        searches.extend(searches_in_doubt(&regret, lookups)?);
    }
    for search in &mut searches {
        search.is_filtered |= is_filtered;
        search.may_end_early |= may_end_early && search.reach.is_some();
    }
    Ok(searches)
}

/// The searches of a [`RegretExec`]. Both of its plans find the same rows: locking what one of them searches keeps
/// others out of the result. That is the preferred one, if its searches are known whether it comes to the end or not.
fn searches_in_doubt(
    plan: &Arc<dyn ExecutionPlan>,
    lookups: Lookups,
) -> Result<Vec<PlannedSearch>> {
    let Some(regret) = plan.downcast_ref::<RegretExec>() else {
        return Ok(Vec::new());
    };
    let mut searches = searches_of(regret.preferred(), lookups)?;
    if searches.iter().all(|search| search.lookups.is_none()) {
        // If another plan takes its place, it has not come to where that one has.
        for search in &mut searches {
            (search.reach, search.may_end_early) = (None, false);
        }
        return Ok(searches);
    }
    let preferred = searches.len();
    searches.extend(searches_of(regret.alternative(), lookups)?);
    for (position, search) in searches.iter_mut().enumerate() {
        search.doubts.push(Doubt {
            regret: Arc::clone(plan),
            is_alternative: position >= preferred,
        });
    }
    Ok(searches)
}

/// Whether a node passes all rows on, or the first of them.
fn passes_first_rows(node: &dyn ExecutionPlan) -> bool {
    matches!(node.cardinality_effect(), CardinalityEffect::Equal)
        || node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>()
}

impl StatementLocks {
    fn kind_of_range(&self, search: &PlannedSearch) -> RangeLock {
        let reads_more = search.is_filtered || search.is_only_read || search.asked.is_some();
        match self.isolation == Isolation::Serializable || reads_more {
            true => RangeLock::NoChanges,
            false => RangeLock::NoInserts,
        }
    }
}

impl StatementTransaction {
    /// Whether a row that is as the statement's view shows it may be changed without being locked first: its version is
    /// lock enough then, see [`Self::row_is_changed`].
    pub(crate) fn may_change_without_locks(&mut self) -> bool {
        let (_, locks) = self.changes_and_locks();
        !locks.has_restarted && locks.isolation < Isolation::Serializable
    }

    /// Locks a row that was found through `view`. `None`: it is not what the view shows, or had to be waited for, and
    /// the statement begins again. `Some(true)`: the lock is new.
    pub(crate) fn lock_row(
        &mut self,
        view: &ReadView,
        table: &Arc<Table>,
        key: &[u8],
        mode: LockMode,
    ) -> Result<Option<bool>> {
        let (changes, locks) = self.changes_and_locks();
        let row = changes.lock_row_of_view(view, &table.clustered, key, mode, locks.wait)?;
        let is_current = row.is_unchanged && !row.has_waited;
        locks.remember(table, key, row.is_new, is_current);
        Ok(is_current.then_some(row.is_new))
    }

    /// Locks and reads the row that is all that the statement may find, if the view shows its newest version and no
    /// other transaction conflicts. `Some(false)`: there is none. `None`: it is to be found and locked as other rows
    /// are.
    pub(crate) fn lock_only_row(
        &mut self,
        view: &ReadView,
        table: &Arc<Table>,
        key: &[u8],
        mode: LockMode,
        row: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        let (changes, locks) = self.changes_and_locks();
        match locks.has_restarted {
            // What it has locked before is to be remembered.
            true => Ok(None),
            false => Ok(changes.lock_and_read(view, &table.clustered, key, mode, row)?),
        }
    }

    /// The statement has changed a row that it had locked: if it was the first to, the version is lock enough.
    pub(crate) fn row_is_changed(&mut self, table: &Arc<Table>, key: &[u8], is_new: bool) {
        let (changes, locks) = self.changes_and_locks();
        // In SERIALIZABLE the lock is also what keeps the row as it was read, if the change is rolled back.
        if is_new && !locks.has_restarted && locks.isolation < Isolation::Serializable {
            changes.unlock_row(&table.clustered, key);
            locks.kept.remove(&(table.clustered.id(), key.to_vec()));
        }
    }

    /// What of a plan's searches is to be locked when the rows are. `targets` are the tables of which rows are locked.
    pub(crate) fn searches_to_lock(
        &mut self,
        planned: &PlannedQuery,
        targets: &[Arc<Table>],
        others: Others,
    ) -> Result<Vec<PlannedSearch>> {
        let (_, locks) = self.changes_and_locks();
        let may_lock_reads = others == Others::Locked && locks.locks_reads();
        if !locks.locks_searches() && !may_lock_reads && planned.asked.is_empty() {
            return Ok(Vec::new());
        }
        let locks_others = others == Others::Locked || locks.isolation == Isolation::Serializable;
        let mut searches = searches_of(&planned.physical.plan, Lookups::Noted)?;
        let tables = searches.iter().map(|planned| &planned.search.table);
        let locks_searches =
            locks.locks_searches() || may_lock_reads && reads_more(tables, targets);
        searches.retain_mut(|planned_search| {
            let table = &planned_search.search.table;
            planned_search.asked = planned.asked_of(table);
            let is_target = targets.iter().any(|target| Arc::ptr_eq(target, table));
            planned_search.is_only_read = !is_target;
            if is_target || planned_search.asked.is_some() {
                planned_search.reach = None;
            }
            planned_search.asked.is_some() || locks_searches && (is_target || locks_others)
        });
        Ok(searches)
    }

    /// Locks what queries inside of one say that they lock, before it runs. False: that is not what the view shows.
    pub(crate) fn lock_asked(&mut self, view: &ReadView, planned: &PlannedQuery) -> Result<bool> {
        let (changes, locks) = self.changes_and_locks();
        lock_asked(changes, view, planned, locks.wait)
    }

    /// Whether the statement may have to lock what it has searched; `None`: it is SERIALIZABLE.
    pub(crate) fn may_lock_its_searches(&mut self) -> Option<bool> {
        let (_, locks) = self.changes_and_locks();
        (locks.isolation < Isolation::Serializable).then(|| locks.locks_reads())
    }

    /// Whether the statement locks what it searches for rows that it locks; `None`: it is SERIALIZABLE.
    pub(crate) fn locks_its_searches(&mut self) -> Option<bool> {
        let (_, locks) = self.changes_and_locks();
        (locks.isolation < Isolation::Serializable).then(|| locks.locks_searches())
    }

    /// Whether a change of rows of `targets` that has searched these tables locks what it has searched.
    pub(crate) fn locks_what_it_searched<'t>(
        &mut self,
        searched: impl Iterator<Item = &'t Arc<Table>>,
        targets: &[Arc<Table>],
    ) -> bool {
        let (_, locks) = self.changes_and_locks();
        locks.locks_searches() || locks.locks_reads() && reads_more(searched, targets)
    }

    /// As [`Self::searches_to_lock`], of a direct plan.
    pub(crate) fn search_to_lock(
        &mut self,
        table: &Arc<Table>,
        search: DirectSearch,
        ranges: impl FnOnce() -> Vec<KeyRange>,
    ) -> Vec<PlannedSearch> {
        let (_, locks) = self.changes_and_locks();
        match locks.locks_searches() {
            true => vec![PlannedSearch::of_direct(table, search, ranges())],
            false => Vec::new(),
        }
    }

    /// Ends the locking of a statement that has found its rows through `view`, `rows` of them, the last one with this
    /// key: locks what it searched, and releases what does not match. False: the statement begins again.
    pub(crate) fn lock_searches(
        &mut self,
        view: &ReadView,
        searches: &mut Vec<PlannedSearch>,
        (rows, last): (usize, Option<&[u8]>),
    ) -> Result<bool> {
        let has_changed = self.has_changed();
        let (changes, locks) = self.changes_and_locks();
        if locks.locks_searches() || !searches.is_empty() {
            searches.retain(PlannedSearch::has_come_to_the_end);
            if let [only] = searches.as_mut_slice()
                && only.asked.is_none()
                && !only.is_only_read
                && only.limit.is_some_and(|limit| limit == rows)
                // The key of a row in a secondary index may be another by now.
                && (only.search.index.is_none() || !has_changed)
                && let Some(last) = last
            {
                let locked = ReadView::newest();
                only.search.end_at_row(&locked, last, only.direction)?;
            }
            for planned in searches {
                let kind = locks.kind_of_range(planned);
                // The rows that it has found are locked one by one, too.
                let most_rows = usize::MAX;
                if !planned.lock_of_view(changes, view, kind, (most_rows, locks.wait))? {
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

/// Whether a change searches more than the tables of which it changes rows, or one of these more than once.
fn reads_more<'t>(
    mut searched: impl Iterator<Item = &'t Arc<Table>>,
    targets: &[Arc<Table>],
) -> bool {
    let is_target = |table: &Arc<Table>| targets.iter().any(|target| Arc::ptr_eq(target, table));
    let mut searches = 0;
    searched.any(|table| {
        searches += 1;
        searches > targets.len() || !is_target(table)
    })
}

/// Locks what queries inside of a planned one say that they lock. False: that is not what the view shows.
fn lock_asked(
    changes: &mut Transaction,
    view: &ReadView,
    planned: &PlannedQuery,
    wait: LockWait,
) -> Result<bool> {
    if planned.asked.is_empty() {
        return Ok(true);
    }
    for mut search in searches_of(&planned.physical.plan, Lookups::Unknown)? {
        search.asked = planned.asked_of(&search.search.table);
        if search.asked.is_some()
            && !search.lock_of_view(changes, view, RangeLock::NoChanges, (usize::MAX, wait))?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Transactions {
    /// Locks what queries inside of one say that they lock, if a transaction is open, before it runs. False: that is
    /// not what the view shows.
    pub(crate) fn lock_asked(
        &mut self,
        view: &ReadView,
        planned: &PlannedQuery,
        wait: LockWait,
    ) -> Result<bool> {
        match self.open_changes() {
            Some(changes) => lock_asked(changes, view, planned, wait),
            None => Ok(true),
        }
    }

    /// Locks what a query that has not run yet is sure to search, and leaves the other `searches`.
    /// False: what `view` shows is not what is there now.
    pub(crate) fn lock_known_searches(
        &mut self,
        view: &ReadView,
        searches: &mut Vec<PlannedSearch>,
        wait: LockWait,
    ) -> Result<bool> {
        let (mut known, others): (Vec<_>, Vec<_>) = std::mem::take(searches)
            .into_iter()
            .partition(PlannedSearch::is_known);
        *searches = others;
        for search in &mut known {
            // It has not begun.
            search.reach = None;
        }
        self.lock_what_was_searched(view, known, wait)
    }

    /// Locks what a query has searched through `view`. False: that is not what is there now.
    pub(crate) fn lock_what_was_searched(
        &mut self,
        view: &ReadView,
        mut searches: Vec<PlannedSearch>,
        wait: LockWait,
    ) -> Result<bool> {
        let Some(changes) = self.open_changes() else {
            return Ok(true);
        };
        searches.retain(PlannedSearch::has_come_to_the_end);
        let mut is_unchanged = true;
        for planned in &mut searches {
            let (kind, limits) = (RangeLock::NoChanges, (MAX_ROWS_OF_LOOKUPS, wait));
            is_unchanged &= planned.lock_of_view(changes, view, kind, limits)?;
        }
        Ok(is_unchanged)
    }

    /// Locks what a query of the open transaction reads, until the transaction ends: `mode` and `wait` tell how, for
    /// each table. The query then reads what is there now.
    pub(crate) fn lock_all_it_reads(
        &mut self,
        planned: &PlannedQuery,
        mode: impl Fn(&Arc<Table>) -> LockMode,
        wait: impl Fn(&Arc<Table>) -> LockWait,
    ) -> Result<()> {
        let Some(changes) = self.open_changes() else {
            return Ok(());
        };
        for PlannedSearch { search, .. } in searches_of(&planned.physical.plan, Lookups::Unknown)? {
            search.lock(changes, mode(&search.table), wait(&search.table))?;
        }
        Ok(())
    }
}
