//! Builds trees of a table's rows while others change rows: [indexes](crate::build::index_build_beside), or a
//! [copy](crate::build::table_copy_beside) of the rows in another shape.
//!
//! ```text
//!   wait for older transactions -> note the keys of rows that are changed -> wait for those that may not know of it
//!     -> snapshot S0: read all rows, sort, write the trees
//!     -> snapshot S1: the noted rows, as they were at S0 and as they are at S1  ]  again and again, until few are left
//!     -> snapshot S2: ...                                                       ]
//!     -> lock all others out, for a moment: the last rows -> enter the definition
//! ```
//!
//! **Each round leaves the trees as they were to be at its snapshot.** A row that differs between two snapshots was
//! changed by a transaction that committed between them. It had noted the row before, and before the later snapshot.
//! Keys are taken after the snapshot, so its note is there, now or from a round before. Keys stay for the next rounds
//! until all transactions that were there when they were taken have ended before a round's snapshot
//! ([marks](crate::lock::table_lock) of writers of rows tell). So every note is looked at by the round that sees its
//! commit. A note too many costs a look: the row is the same at both snapshots.
//!
//! **Old transactions** are waited for before keys are noted: it may take long, and nothing of it need be kept. Those
//! that came meanwhile are waited for again, as they may have noted nothing.
//!
//! **What is compared are states that committed.** Changes that are rolled back, as a whole or to a savepoint, are seen
//! by no round, so uniqueness is judged by the rows of one snapshot: a duplicate that is reported was there. Writers
//! themselves are not checked against an index that is being built. If they leave duplicates, the build fails.
//!
//! **Nothing is left behind.** Nobody but the build knows its trees, and no transaction of others has changed them. So
//! they are dropped at once if it fails; after a crash [`Catalog::open`](crate::catalog::Catalog::open) drops them. The
//! noted keys are in memory and in a temporary file.
//!
//! **Waiting.** Until the last moment nobody waits for the build, unless it does not keep up. For that moment it asks
//! several times, for [a short time](FIRST_ATTEMPT) each. Statements that come then wait so long and go on, and the
//! next attempt comes after a longer pause. In a pause it looks whether there is nobody just then, and keeps nobody
//! waiting.
//!
//! **Steps.** A transaction of the build is short, in rows, in bytes and in time: what others need of the log, of
//! memory for old versions and of the processor is never taken for long ([`Step`]).
//!
//! **Limits.** Noted keys have a limit in bytes, beyond which the build [fails](crate::table::touched_rows). If rounds
//! do not become shorter, changes [are slowed](crate::build::keeping_up), more and more, until they do. The last moment
//! is bounded by the time that it will take.
//!
//! **Other tables** may be watched with the one that is built from: the parents of new
//! [foreign keys](crate::build::references_beside). Each notes its own keys. A round is then of all of them, at one
//! snapshot, and keys stay until the marked writers of all tables have gone. The last moment is that of all of them.
//!
//! The snapshots are held, so versions of all that changes meanwhile are kept, as for any long read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_storage::{ReadView, Storage, Transaction};

use crate::build::external_sort::{ExternalSort, SortedEntries};
use crate::build::keeping_up::{FinishedRound, KeepingUp, Stretch, Work};
use crate::error::{Result, TableError};
use crate::lock::table_lock::{ExclusiveLock, LockRequest, ShownWait, WriterLock};
use crate::progress::Progress;
use crate::table::Table;
use crate::table::touched_rows::{NotedKeys, NotingRows, entry_bytes};

/// How long an attempt to lock all others out takes at first.
const FIRST_ATTEMPT: Duration = Duration::from_millis(20);
/// And later: this part of what the build has waited so far. Beside transactions that overlap, no shorter attempt finds
/// a moment without them.
const ATTEMPT_SHARE: u32 = 20;
/// The pause after the first attempt; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A wait is cut into pieces of this length, so that KILL is noticed.
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// KILL is looked for after so much work.
pub(crate) const WORK_BETWEEN_CHECKS: Duration = Duration::from_millis(10);
/// The sorts of a round that are there at a time share the memory.
const SORTS_OF_ROUND: usize = 4;
/// A transaction of the build ends after so many rows of a round,
const STEP_ROWS: u64 = 1_000;
/// after so many bytes of rows: each is in the log twice, and room is kept there to roll them back,
const STEP_BYTES: usize = 1 << 20;
/// or after so long.
const STEP_TIME: Duration = Duration::from_millis(20);

/// What a statement does that waits for a table's users, in MySQL's words.
pub const WAITING: &str = "Waiting for table metadata lock";

/// Tables that are watched at a time: their numbers are a byte. Statements that name more parents lock writers out.
pub(crate) const MAX_WATCHED: usize = 256;

/// What is known of a noted key, as the payload of its entry: transactions that may have noted it, and were marked, are
/// those of the present mark; or some came later.
const MARKED: &[u8] = &[1];
const UNMARKED: &[u8] = &[0];

/// What a build beside writers is given.
#[derive(Clone, Copy)]
pub(crate) struct BesideOptions {
    /// Memory for sorting and merging, in bytes.
    pub(crate) memory_bytes: usize,
    /// Bytes of noted keys.
    pub(crate) noted_bytes: u64,
}

/// The progress of a build, which stops when noted keys are lost.
struct WhileNoting<'a> {
    progress: &'a dyn Progress,
    noting: &'a [NotingRows<'a>],
}

impl Progress for WhileNoting<'_> {
    fn begin(&self, name: &str, total: Option<u64>) {
        self.progress.begin(name, total);
    }

    fn advance(&self, units: u64) {
        self.progress.advance(units);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled() || self.noting.iter().any(NotingRows::has_failed)
    }
}

/// What is built of the rows of a table.
pub(crate) trait BesideTarget {
    /// What is done while changes are brought.
    fn catching_up(&self) -> &'static str;

    /// A round begins. `later`: for what is to be looked at when all its rows have been brought.
    fn begin_round(&mut self, later: ExternalSort);

    /// Brings a row from what it was to what it is now, which differ.
    fn bring(&mut self, change: &RowChange<'_>, transaction: &mut Transaction) -> Result<()>;

    /// All rows of the round have been brought.
    fn end_round(&mut self, round: &RoundEnd<'_>) -> Result<()>;
}

/// A table whose changes are noted, and the lock of its writer, which admits writers of rows.
#[derive(Clone, Copy)]
pub(crate) struct Watched<'a> {
    pub(crate) table: &'a Table,
    pub(crate) writer: &'a WriterLock,
}

/// A row that differs between two snapshots; `None`: it was not there, or is not there any more.
pub(crate) struct RowChange<'r> {
    /// The number of its table among those that are watched; 0: the one that is built from.
    pub(crate) table: usize,
    pub(crate) primary_key: &'r [u8],
    pub(crate) before: Option<SeenRow<'r>>,
    pub(crate) after: Option<SeenRow<'r>>,
}

/// The bytes of a row, and the view that sees them.
#[derive(Clone, Copy)]
pub(crate) struct SeenRow<'r> {
    pub(crate) view: &'r ReadView,
    pub(crate) bytes: &'r [u8],
}

/// What is there when all rows of a round have been brought.
pub(crate) struct RoundEnd<'r> {
    pub(crate) storage: &'r Arc<Storage>,
    /// Where the trees are brought to.
    pub(crate) view: &'r ReadView,
    /// Memory of a sort.
    pub(crate) sort_bytes: usize,
    pub(crate) progress: &'r dyn Progress,
}

/// See the [module](self).
pub(crate) struct BuildBeside<'a, T> {
    storage: &'a Arc<Storage>,
    /// The first one is built from. No more than [`MAX_WATCHED`].
    watched: Vec<Watched<'a>>,
    /// One for each of them.
    noting: Vec<NotingRows<'a>>,
    progress: &'a dyn Progress,
    request: LockRequest<'a>,
    /// Memory of each of the sorts of a round.
    sort_bytes: usize,
    target: T,
    /// The trees have the rows as this view sees them.
    built: ReadView,
    /// Noted keys that are to be looked at again, each behind the number of its table.
    kept: ExternalSort,
    /// Some of them may be of transactions that do not end.
    keeps_open: bool,
    keeping_up: KeepingUp,
}

/// Rows that are being brought.
struct Round {
    view: ReadView,
    step: Option<Step>,
    /// All rows that were brought.
    brought: u64,
}

/// A transaction of the build, and what it has done so far.
pub(crate) struct Step {
    pub(crate) transaction: Transaction,
    began: Instant,
    rows: u64,
    inserted_bytes: usize,
}

impl Step {
    pub(crate) fn begin(storage: &Arc<Storage>) -> Step {
        Step {
            transaction: storage.begin_transaction(),
            began: Instant::now(),
            rows: 0,
            inserted_bytes: 0,
        }
    }

    /// A row has been brought, of so many bytes that are new.
    pub(crate) fn brought(&mut self, inserted_bytes: usize) {
        self.rows += 1;
        self.inserted_bytes += inserted_bytes;
    }

    /// Whether it is to [end](Self::end).
    pub(crate) fn is_long(&self) -> bool {
        self.rows >= STEP_ROWS
            || self.inserted_bytes + self.transaction.bytes() >= STEP_BYTES
            || self.began.elapsed() >= STEP_TIME
    }

    /// Commits it. Returns how many rows it has brought.
    pub(crate) fn end(self) -> Result<u64> {
        self.transaction.commit()?;
        Ok(self.rows)
    }
}

impl<'a, T: BesideTarget> BuildBeside<'a, T> {
    /// Builds trees from a snapshot of the first of the tables. `name`: of what is built, for errors. `build`
    /// writes the trees of the rows that the view sees.
    ///
    /// # Errors
    /// Those of `build`; `Interrupted`, `LockWaitTimeout` if transactions do not end that were there before;
    /// `TooManyChangesBeside`; and whatever the storage reports.
    pub(crate) fn begin(
        storage: &'a Arc<Storage>,
        watched: Vec<Watched<'a>>,
        name: &str,
        options: BesideOptions,
        progress: &'a dyn Progress,
        request: LockRequest<'a>,
        build: impl FnOnce(&ReadView, &dyn Progress) -> Result<T>,
    ) -> Result<BuildBeside<'a, T>> {
        let BesideOptions {
            memory_bytes,
            noted_bytes,
        } = options;
        let mut waited = Duration::ZERO;
        wait_for_older(&watched, progress, request, &mut waited)?;
        let note = |of: &Watched<'a>| {
            let touched = &of.table.state.touched;
            touched.start(storage.temp_space(), name, noted_bytes)
        };
        let noting: Vec<NotingRows<'a>> = watched.iter().map(note).collect();
        let built = {
            let progress = WhileNoting {
                progress,
                noting: &noting,
            };
            let built = || -> Result<(T, ReadView)> {
                wait_for_older(&watched, &progress, request, &mut waited)?;
                let view = newest_view(storage)?;
                Ok((build(&view, &progress)?, view))
            };
            built()
        };
        let (target, built) = built.map_err(|error| why_stopped(&noting, error))?;
        Ok(BuildBeside {
            storage,
            watched,
            noting,
            progress,
            request,
            sort_bytes: memory_bytes / SORTS_OF_ROUND,
            target,
            built,
            kept: ExternalSort::new(storage.temp_space(), memory_bytes / SORTS_OF_ROUND),
            keeps_open: false,
            keeping_up: KeepingUp::new(),
        })
    }

    /// Brings the changes that come meanwhile to the trees, until all others are locked out and none is left. The locks
    /// are in the order of the tables.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(crate) fn finish(mut self) -> Result<(Vec<ExclusiveLock<'a>>, T)> {
        let mut waited = Duration::ZERO;
        let writers = self.watched.iter().map(|of| of.writer).collect();
        let mut attempts = Attempts::new(writers, self.request);
        loop {
            self.catch_up()?;
            if !self.keeping_up.is_few(self.left()) {
                waited += self.wait_for_marked(waited)?;
                continue;
            }
            // Those that are there are to end soon. Nobody else is let in.
            self.keeping_up.lift_pace();
            self.set_pace();
            let began = Instant::now();
            let exclusive = attempts.make(waited, self.progress, &|| self.check())?;
            if let Some(exclusive) = exclusive {
                // Changes may have come while it waited.
                if self.keeping_up.is_few_at_last(self.left()) {
                    self.catch_up()?;
                    return Ok((exclusive, self.target));
                }
                self.keeping_up.missed();
            }
            waited += began.elapsed();
        }
    }

    /// About how much is left to be looked at.
    fn left(&self) -> Work {
        let (noted, kept) = (self.noted(), self.kept.len());
        match self.keeps_open {
            true => Work {
                fresh: noted + kept,
                kept: 0,
            },
            false => Work { fresh: noted, kept },
        }
    }

    /// How many changes were noted since keys were taken last.
    fn noted(&self) -> u64 {
        self.noting.iter().map(NotingRows::len).sum()
    }

    /// Others change rows at the pace that has been found.
    fn set_pace(&self) {
        let longest = self.keeping_up.longest_wait();
        for noting in &self.noting {
            noting.slow_down(self.keeping_up.pace(), longest);
        }
    }

    /// Waits for a while for transactions that keep rows from being looked at for good. Returns how long it was.
    fn wait_for_marked(&self, waited: Duration) -> Result<Duration> {
        let began = Instant::now();
        loop {
            self.check()?;
            let slice = slice_of(self.request, waited + began.elapsed(), WAIT_SLICE)?;
            let mut writers = self.watched.iter().map(|of| of.writer);
            let blocked = writers.find(|writer| !writer.marked_have_gone());
            match blocked.map_or(Ok(()), |writer| writer.wait_for_marked(slice)) {
                Ok(()) if blocked.is_some() => {}
                Err(TableError::LockWaitTimeout) if began.elapsed() < LONGEST_PAUSE => {}
                Ok(()) | Err(TableError::LockWaitTimeout) => return Ok(began.elapsed()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Error if the statement is killed, or noted keys are lost.
    fn check(&self) -> Result<()> {
        let is_interrupted = self.request.interrupt.is_some_and(|interrupt| interrupt());
        if is_interrupted
            || self.progress.is_cancelled()
            || self.noting.iter().any(NotingRows::has_failed)
        {
            return Err(why_stopped(&self.noting, TableError::Interrupted));
        }
        Ok(())
    }

    /// A round: brings the trees from the view that they have been built for to a new one.
    fn catch_up(&mut self) -> Result<()> {
        let began = Instant::now();
        // The order matters: see the module's comment.
        let mut writers = self.watched.iter().map(|of| of.writer);
        let have_ended = writers.all(WriterLock::marked_have_gone);
        let view = newest_view(self.storage)?;
        let noted = self.noting.iter().map(NotingRows::take);
        let noted: Vec<NotedKeys> = noted.collect::<Result<_>>()?;
        if have_ended {
            for of in &self.watched {
                of.writer.mark_row_writers();
            }
        }
        let space = self.storage.temp_space();
        let mut keys = ExternalSort::new(space, self.sort_bytes);
        for (table, noted) in noted.into_iter().enumerate() {
            let mut numbered = Vec::new();
            noted.for_each(|key| {
                numbered.clear();
                numbered.push(table as u8);
                numbered.extend_from_slice(key);
                keys.push(&numbered, UNMARKED)
            })?;
        }
        let kept = ExternalSort::new(space, self.sort_bytes);
        let mut kept = std::mem::replace(&mut self.kept, kept).finish(self.sort_bytes)?;
        while kept.advance()? {
            let (key, mark) = kept.entry();
            keys.push(key, mark)?;
        }
        drop(kept);
        if keys.len() > 0 {
            let total = Some(keys.len());
            self.progress.begin(self.target.catching_up(), total);
        }
        let later = ExternalSort::new(space, self.sort_bytes);
        self.target.begin_round(later);
        let mut round = Round {
            view,
            step: None,
            brought: 0,
        };
        let mut again = ExternalSort::new(space, self.sort_bytes);
        let mut again_bytes = vec![0; self.watched.len()];
        let mut keys = DistinctKeys::new(keys.finish(self.sort_bytes)?)?;
        let mut done = Work::default();
        let (mut stretch_began, mut noted_before, mut looked_at) = (began, 0, 0);
        let mut checked = began;
        while let Some((numbered, is_marked)) = keys.next()? {
            let Some((table, key)) = numbered.split_first() else {
                continue;
            };
            let table = usize::from(*table);
            self.bring(&mut round, table, key)?;
            match is_marked {
                true => done.kept += 1,
                false => done.fresh += 1,
            }
            looked_at += 1;
            let now = Instant::now();
            if now - checked >= WORK_BETWEEN_CHECKS {
                self.check()?;
                checked = Instant::now();
            }
            let stretch = Stretch {
                keys: looked_at,
                elapsed: now - stretch_began,
            };
            if stretch.is_over() {
                let noted = self.noted();
                // Where a transaction does not end, a slower pace is of no use.
                if have_ended {
                    let more = noted.saturating_sub(noted_before);
                    self.keeping_up.after_stretch(stretch, more);
                    self.set_pace();
                }
                (stretch_began, noted_before, looked_at) = (now, noted, 0);
            }
            let mark = match (have_ended, is_marked) {
                (true, true) => continue,
                (false, false) => UNMARKED,
                (true, false) | (false, true) => MARKED,
            };
            again.push(&numbered, mark)?;
            again_bytes[table] += entry_bytes(key);
        }
        if let Some(step) = round.step {
            step.end()?;
        }
        let end = RoundEnd {
            storage: self.storage,
            view: &round.view,
            sort_bytes: self.sort_bytes,
            progress: &WhileNoting {
                progress: self.progress,
                noting: &self.noting,
            },
        };
        let ended = self.target.end_round(&end);
        ended.map_err(|error| why_stopped(&self.noting, error))?;
        for (noting, bytes) in self.noting.iter().zip(again_bytes) {
            noting.keep(bytes)?;
        }
        self.kept = again;
        self.built = round.view;
        self.keeps_open = !have_ended;
        let finished = FinishedRound {
            done,
            brought: round.brought,
            elapsed: began.elapsed(),
            can_shorten: have_ended,
        };
        self.keeping_up.after_round(&finished, self.left());
        self.set_pace();
        Ok(())
    }

    /// Brings a row of a round to the trees, if it has changed.
    fn bring(&mut self, round: &mut Round, table: usize, primary_key: &[u8]) -> Result<()> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let clustered = &self.watched[table].table.clustered;
        let was_there = clustered.get_at(&self.built, primary_key, &mut before)?;
        let is_there = clustered.get_at(&round.view, primary_key, &mut after)?;
        if was_there == is_there && before == after {
            return Ok(());
        }
        let seen = |is_there: bool, view, bytes| is_there.then_some(SeenRow { view, bytes });
        let change = RowChange {
            table,
            primary_key,
            before: seen(was_there, &self.built, before.as_slice()),
            after: seen(is_there, &round.view, after.as_slice()),
        };
        let taken = round.step.take();
        let mut step = taken.unwrap_or_else(|| Step::begin(self.storage));
        self.target.bring(&change, &mut step.transaction)?;
        step.brought(change.after.map_or(0, |row| row.bytes.len()));
        round.brought += 1;
        if !step.is_long() {
            round.step = Some(step);
            return Ok(());
        }
        self.progress.advance(step.end()?);
        self.check()
    }
}

/// Attempts to lock all others out. They go on in the pauses between them.
struct Attempts<'a> {
    /// Of the tables that are locked together.
    writers: Vec<&'a WriterLock>,
    request: LockRequest<'a>,
    /// The next one.
    pause: Duration,
    /// From the first attempt that has failed on.
    shown: Vec<ShownWait<'a>>,
}

impl<'a> Attempts<'a> {
    fn new(writers: Vec<&'a WriterLock>, request: LockRequest<'a>) -> Attempts<'a> {
        Attempts {
            writers,
            request,
            pause: FIRST_PAUSE,
            shown: Vec::new(),
        }
    }

    /// An attempt, and if it fails a pause. `waited`: how long it was so far. `check`: error if the statement is to
    /// end.
    fn make(
        &mut self,
        waited: Duration,
        progress: &dyn Progress,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Vec<ExclusiveLock<'a>>>> {
        check()?;
        let attempt = FIRST_ATTEMPT.max(waited / ATTEMPT_SHARE);
        let slice = slice_of(self.request, waited, attempt)?;
        let exclusive = match self.writers.as_slice() {
            [writer] => writer.exclusive(slice).map(|lock| vec![lock]),
            writers => WriterLock::exclusive_of_all(writers, slice),
        };
        match exclusive {
            Err(TableError::LockWaitTimeout) => {
                progress.begin(WAITING, None);
                if self.shown.is_empty() {
                    let writers = self.writers.iter();
                    self.shown = writers.map(|writer| writer.show_wait()).collect();
                }
                let found = self.pause(check)?;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                Ok(found)
            }
            exclusive => exclusive.map(Some),
        }
    }

    /// Lets others go on for a while, or until there is nobody just then.
    fn pause(&self, check: &dyn Fn() -> Result<()>) -> Result<Option<Vec<ExclusiveLock<'a>>>> {
        if self.request.wait.is_zero() {
            return Err(TableError::LockWaitTimeout);
        }
        let began = Instant::now();
        loop {
            check()?;
            let left = self.pause.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(left.min(WAIT_SLICE));
            let writers = self.writers.iter();
            let exclusive: Option<Vec<_>> = writers.map(|writer| writer.try_exclusive()).collect();
            if let Some(exclusive) = exclusive {
                return Ok(Some(exclusive));
            }
        }
    }
}

/// Locks all others out of tables, in one of several attempts, for a change that takes a moment. The writers admit
/// writers of rows.
///
/// # Errors
/// `LockWaitTimeout`, `Interrupted`.
pub(crate) fn lock_for_a_moment<'a>(
    writers: Vec<&'a WriterLock>,
    request: LockRequest<'a>,
    progress: &dyn Progress,
) -> Result<Vec<ExclusiveLock<'a>>> {
    let began = Instant::now();
    let mut attempts = Attempts::new(writers, request);
    let check = || {
        let is_interrupted = request.interrupt.is_some_and(|interrupt| interrupt());
        match is_interrupted || progress.is_cancelled() {
            true => Err(TableError::Interrupted),
            false => Ok(()),
        }
    };
    let mut waited = Duration::ZERO;
    loop {
        if let Some(exclusive) = attempts.make(waited, progress, &check)? {
            return Ok(exclusive);
        }
        waited = began.elapsed();
    }
}

/// The next part of a wait.
fn slice_of(request: LockRequest<'_>, waited: Duration, most: Duration) -> Result<LockRequest<'_>> {
    let left = request.wait.saturating_sub(waited);
    if left.is_zero() && !waited.is_zero() {
        return Err(TableError::LockWaitTimeout);
    }
    Ok(LockRequest {
        wait: most.min(left),
        // It is not announced between two attempts.
        definition_change: None,
        ..request
    })
}

/// A view of all that has committed, durable or not.
fn newest_view(storage: &Storage) -> Result<ReadView> {
    Ok(storage.begin_transaction().view_to_lock()?)
}

/// Why noted keys are lost, or else the error.
fn why_stopped(noting: &[NotingRows<'_>], error: TableError) -> TableError {
    match error {
        TableError::Interrupted => {
            let mut lost = noting.iter().filter_map(|noting| noting.take().err());
            lost.next().unwrap_or(error)
        }
        other => other,
    }
}

/// Waits for the transactions that are there.
fn wait_for_older(
    watched: &[Watched<'_>],
    progress: &dyn Progress,
    request: LockRequest<'_>,
    waited: &mut Duration,
) -> Result<()> {
    progress.begin(WAITING, None);
    let mut wait_for_marked = || {
        watched.iter().try_for_each(|Watched { writer, .. }| {
            in_slices(request, progress, waited, |request| {
                writer.wait_for_marked(request)
            })
        })
    };
    // Those of the last mark, and then those of now.
    wait_for_marked()?;
    for of in watched {
        of.writer.mark_row_writers();
    }
    wait_for_marked()
}

/// Waits as long as the request says. `waited`: how long it was in waits before this one.
fn in_slices<T>(
    request: LockRequest<'_>,
    progress: &dyn Progress,
    waited: &mut Duration,
    attempt: impl Fn(LockRequest<'_>) -> Result<T>,
) -> Result<T> {
    loop {
        if progress.is_cancelled() {
            return Err(TableError::Interrupted);
        }
        let left = request.wait.saturating_sub(*waited);
        let began = Instant::now();
        let slice = LockRequest {
            wait: left.min(WAIT_SLICE),
            ..request
        };
        match attempt(slice) {
            Err(TableError::LockWaitTimeout) if !left.is_zero() => *waited += began.elapsed(),
            other => return other,
        }
    }
}

/// Noted keys in order, each once.
struct DistinctKeys {
    entries: SortedEntries,
    /// The entries stand at one that was not given.
    has_next: bool,
}

impl DistinctKeys {
    fn new(mut entries: SortedEntries) -> Result<DistinctKeys> {
        let has_next = entries.advance()?;
        Ok(DistinctKeys { entries, has_next })
    }

    /// The next key, and whether all its notes are of marked transactions.
    fn next(&mut self) -> Result<Option<(Vec<u8>, bool)>> {
        if !self.has_next {
            return Ok(None);
        }
        let (key, mark) = self.entries.entry();
        let (key, mut is_marked) = (key.to_vec(), mark == MARKED);
        loop {
            self.has_next = self.entries.advance()?;
            if !self.has_next {
                return Ok(Some((key, is_marked)));
            }
            let (next, mark) = self.entries.entry();
            if next != key {
                return Ok(Some((key, is_marked)));
            }
            is_marked &= mark == MARKED;
        }
    }
}
