//! The memory of the process, beside its limit.
//!
//! The system's count is looked at when somebody asks and the last look is old: when some milliseconds have passed, or
//! threads have taken a megabyte since. It costs some microseconds. Pages of files, such as the program itself, are not
//! in it; the system takes them back when it wants to. What the kernel has for each thread is added.
//!
//! Many small statements take much together, and none of them asks. So there is a thread that looks, too
//! ([`crate::keep_within`]).
//!
//! What is over the limit is first asked of the allocator, which keeps free memory for a while. Then of *lenders*:
//! caches that go on with less, and take their memory again when the process has room.

use std::fs;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError, Weak};
use std::time::Instant;

use crate::ALLOCATOR;
use crate::making_room::making_room;

/// How long a look at the system's count serves.
const LOOK_MICROS: u64 = 2_000;
/// What all threads together have taken since the last look may be so much that it does not serve.
const LOOK_BYTES: i64 = 1 << 20;
/// How often the allocator is asked to give back what it keeps, at most.
const GIVE_BACK_MICROS: u64 = 50_000;
/// The same where a statement would be stopped otherwise.
const GIVE_BACK_SOON_MICROS: u64 = 5_000;
/// How long lenders are left alone that have given less than they were asked for.
const SHORT_MICROS: u64 = 20_000;
/// How long statements wait for what lenders write to the disk before one of them is stopped.
const WRITING_MICROS: u64 = 500_000;
/// They wait while the process is no further than by this part of its tolerance beyond what is bearable.
const WRITING_SHARE: usize = 8;
/// The process takes at most this much more than its limit.
const MAX_TOLERANCE_BYTES: usize = 32 << 20;
/// Nor more than this part of its limit.
const TOLERANCE_SHARE: usize = 4;
/// The end of the tolerance that nobody is given, however small the limit is: where lists of syntax trees grow, and
/// texts of requests are copied, they take megabytes in one step.
const LEAST_RESERVE_BYTES: usize = 10 << 20;

/// What the kernel has for a thread: its stack there, the tables of the pages of its own stack, and the socket of its
/// client. 400 threads of clients took 11.3 MiB of a cgroup.
const KERNEL_BYTES_OF_THREAD: usize = 28 << 10;

/// Lenders give this part of the limit more than is wanted, so that they are not asked for a little again and again.
const LENT_SHARE: usize = 32;
/// The process has room for what was lent when it has less than its limit by this part of it.
const ROOM_SHARE: usize = 16;

/// A cache that can do with less memory for a while.
pub trait Lender: Send + Sync {
    /// Gives back up to so many bytes. It waits for nothing: the caller may hold latches. Returns how many it gave.
    fn lend(&self, bytes: usize) -> usize;

    /// Bytes that it could give if they were on the disk, where they are on their way to.
    fn coming(&self) -> usize;
}

static LENDERS: Mutex<Vec<Weak<dyn Lender>>> = Mutex::new(Vec::new());

/// What the process may take, in bytes. Not set: it has no limit.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The last look: what the process took, and when, in microseconds since the first look.
static RESIDENT: AtomicUsize = AtomicUsize::new(0);
static LOOKED: AtomicU64 = AtomicU64::new(0);
static GAVE_BACK: AtomicU64 = AtomicU64::new(0);
/// What threads say that they have taken since the last look.
static TAKEN: AtomicI64 = AtomicI64::new(0);
/// What threads are about to take: the system counts it when it is written to.
static AHEAD: AtomicUsize = AtomicUsize::new(0);
/// Held while a thread asks whether it may take something.
static ASKING: Mutex<()> = Mutex::new(());
/// Held while the allocator gives back.
static GIVING: Mutex<()> = Mutex::new(());
/// When lenders last gave less than they were asked for.
static SHORT: AtomicU64 = AtomicU64::new(0);
/// Since when the process has had too much; 0: it has not.
static FULL_SINCE: AtomicU64 = AtomicU64::new(0);
/// What the kernel has for the process's threads.
static OF_KERNEL: AtomicUsize = AtomicUsize::new(0);
/// The most that was seen.
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Sets what the process may take.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// A thread has taken so many bytes since it has last said so, or freed them.
pub(crate) fn note_taken(bytes: i64) {
    TAKEN.fetch_add(bytes, Ordering::Relaxed);
}

/// What the process may take; `None`: no limit was set.
pub fn limit() -> Option<usize> {
    match LIMIT.load(Ordering::Relaxed) {
        usize::MAX => None,
        limit => Some(limit),
    }
}

/// How far the process may pass its limit before statements are stopped.
pub fn tolerance(limit: usize) -> usize {
    (limit / TOLERANCE_SHARE).min(MAX_TOLERANCE_BYTES)
}

/// Whether the process has more than its limit, so that operators should not take more.
#[inline]
pub fn is_pressed() -> bool {
    excess(LOOK_MICROS).is_some_and(|excess| excess > 0)
}

/// Whether the process had more than its limit when it was looked at last. A thread that keeps memory for its next work
/// keeps none then. This costs nothing.
#[inline]
pub fn was_pressed() -> bool {
    RESIDENT.load(Ordering::Relaxed) > LIMIT.load(Ordering::Relaxed)
}

/// The allocator is to give back what is free now, however lately it has done so: a statement has let go what it held.
pub(crate) fn expect_free_memory() {
    GAVE_BACK.store(0, Ordering::Relaxed);
}

/// By how much the process comes near to the end of its tolerance: statements that hold so much have to be stopped.
fn bytes_too_many() -> usize {
    let Some(mut excess) = excess(LOOK_MICROS) else {
        return 0;
    };
    let limit = LIMIT.load(Ordering::Relaxed);
    let most = bearable(limit);
    if excess > most && (give_back(GIVE_BACK_SOON_MICROS) || await_givers()) {
        excess = look(0).saturating_sub(limit);
    }
    excess.saturating_sub(most)
}

/// What is to be done about what the process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fullness {
    /// Nothing.
    Bearable,
    /// It has too much. Caches are about to give as much as that, and what takes memory is to wait for them.
    Writing,
    /// Statements that hold so much have to be stopped.
    TooFull(usize),
}

/// How full the process is. Lenders are asked first.
pub(crate) fn fullness() -> Fullness {
    let too_many = bytes_too_many();
    if too_many == 0 {
        if FULL_SINCE.load(Ordering::Relaxed) > 0 {
            FULL_SINCE.store(0, Ordering::Relaxed);
        }
        return Fullness::Bearable;
    }
    let now = now();
    let since = FULL_SINCE.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    let full_micros = now.saturating_sub(since.err().unwrap_or(now));
    fullness_with(too_many, LIMIT.load(Ordering::Relaxed), full_micros, coming)
}

/// The same where it has had so many bytes too many for so long.
fn fullness_with(
    too_many: usize,
    limit: usize,
    full_micros: u64,
    coming: impl FnOnce() -> usize,
) -> Fullness {
    let may_wait = full_micros < WRITING_MICROS && too_many <= tolerance(limit) / WRITING_SHARE;
    match may_wait && coming() >= too_many {
        true => Fullness::Writing,
        false => Fullness::TooFull(too_many),
    }
}

/// What lenders could give if it were on the disk.
fn coming() -> usize {
    let lenders = match LENDERS.try_lock() {
        Ok(lenders) => lenders,
        Err(TryLockError::Poisoned(lenders)) => lenders.into_inner(),
        // Somebody asks them, and is told.
        Err(TryLockError::WouldBlock) => return 0,
    };
    let lenders = lenders.iter().filter_map(Weak::upgrade);
    lenders.map(|lender| lender.coming()).sum()
}

/// Whether the process was near to its limit, or beyond it, when it was looked at last.
pub(crate) fn was_close() -> bool {
    let limit = LIMIT.load(Ordering::Relaxed);
    RESIDENT.load(Ordering::Relaxed) > limit - limit / ROOM_SHARE
}

/// A thread is about to take so many bytes: as [`make_room`], and until they [are taken](has_taken), nobody else gets
/// that room. False: there is none, and the thread shall not take them.
pub(crate) fn will_take(bytes: usize) -> bool {
    // One after the other: what another is refused is not to keep this one from getting it.
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let has_room = make_room(bytes);
    if has_room {
        AHEAD.fetch_add(bytes, Ordering::Relaxed);
    }
    has_room
}

/// Whether caches could make room for so many bytes if what they have were on the disk.
pub(crate) fn will_have_room(bytes: usize) -> bool {
    let Some(limit) = limit() else {
        return true;
    };
    let wanted = look(LOOK_MICROS)
        .saturating_add(bytes)
        .saturating_add(AHEAD.load(Ordering::Relaxed));
    let missing = wanted.saturating_sub(limit + bearable(limit));
    coming() >= missing
}

/// So many bytes that a thread was about to take are taken.
pub(crate) fn has_taken(bytes: usize) {
    AHEAD.fetch_sub(bytes, Ordering::Relaxed);
}

/// Makes room for so many bytes that are about to be taken at once. False: the process would come near to the end of
/// its tolerance.
pub(crate) fn make_room(bytes: usize) -> bool {
    let bytes = bytes.saturating_add(AHEAD.load(Ordering::Relaxed));
    let Some(limit) = limit() else {
        return true;
    };
    let is_over = |most: usize| look(LOOK_MICROS).saturating_add(bytes) > most;
    if !is_over(limit) {
        return true;
    }
    if give_back(GIVE_BACK_SOON_MICROS) {
        look(0);
    }
    if is_over(limit) && borrow(limit, bytes) {
        look(0);
    }
    let most = limit + bearable(limit);
    // What was freed since the allocator was asked last may be enough.
    if is_over(most) && (give_back(0) || await_givers()) {
        look(0);
    }
    !is_over(most)
}

/// Where the process is when it takes so many bytes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    WithinLimit,
    /// Beyond it, by less than what is [bearable].
    WithinTolerance,
    None,
}

/// Whether the process has room for so many bytes more. What the allocator keeps and what caches can do without makes
/// room.
pub(crate) fn room_for(bytes: usize) -> Room {
    let Some(limit) = limit() else {
        return Room::WithinLimit;
    };
    let bytes = bytes.saturating_add(AHEAD.load(Ordering::Relaxed));
    let fits = |most: usize| look(LOOK_MICROS).saturating_add(bytes) <= most;
    if fits(limit) {
        return Room::WithinLimit;
    }
    if give_back(GIVE_BACK_SOON_MICROS) {
        look(0);
    }
    if !fits(limit) && borrow(limit, bytes) {
        look(0);
    }
    if fits(limit) {
        return Room::WithinLimit;
    }
    match fits(limit + bearable(limit)) {
        true => Room::WithinTolerance,
        false => Room::None,
    }
}

/// How far the process may pass its limit before statements are stopped: three eighths of the tolerance or more are for
/// what happens until the next look, and for what a statement takes between two safe points.
fn bearable(limit: usize) -> usize {
    let tolerance = tolerance(limit);
    let (most, least) = (tolerance / 8 * 5, tolerance / 8 * 3);
    tolerance
        .saturating_sub(LEAST_RESERVE_BYTES)
        .clamp(least, most)
}

/// Whether the process has so much less than its limit that lenders may take their memory again.
pub fn has_room() -> bool {
    limit().is_none_or(|limit| look(LOOK_MICROS) < limit - limit / ROOM_SHARE)
}

/// Adds a cache that is asked for memory when the process has more than its limit.
pub fn add_lender(lender: Weak<dyn Lender>) {
    let mut lenders = LENDERS
        .lock()
        .unwrap_or_else(|lenders| lenders.into_inner());
    lenders.retain(|lender| lender.strong_count() > 0);
    lenders.push(lender);
}

/// Asks lenders for what the process has more than its limit, or will have with so many bytes more. False: they give
/// nothing, are being asked, or had too little a moment ago: a cache whose pages are in use would look at all of them
/// again and again.
fn borrow(limit: usize, ahead: usize) -> bool {
    let short = SHORT.load(Ordering::Relaxed);
    if short > 0 && now().saturating_sub(short) < SHORT_MICROS {
        return false;
    }
    let lenders = match LENDERS.try_lock() {
        Ok(lenders) => lenders,
        Err(TryLockError::Poisoned(lenders)) => lenders.into_inner(),
        Err(TryLockError::WouldBlock) => return false,
    };
    let lenders: Vec<Arc<dyn Lender>> = lenders.iter().filter_map(Weak::upgrade).collect();
    // Another thread may have asked since this one has looked.
    let mut wanted = look(0).saturating_add(ahead).saturating_sub(limit);
    if wanted == 0 {
        return true;
    }
    wanted += limit / LENT_SHARE;
    let mut lent = 0;
    for lender in lenders {
        lent += making_room(|| lender.lend(wanted.saturating_sub(lent)));
    }
    if lent < wanted {
        SHORT.store(now().max(1), Ordering::Relaxed);
    }
    lent > 0
}

/// By how much the process is over its limit. `None`: it has none. What the allocator keeps and what caches can do
/// without does not count: it is given back first.
fn excess(micros: u64) -> Option<usize> {
    let limit = limit()?;
    let mut resident = look(micros);
    if resident > limit && give_back(GIVE_BACK_MICROS) {
        resident = look(0);
    }
    if resident > limit && borrow(limit, 0) {
        resident = look(0);
    }
    Some(resident.saturating_sub(limit))
}

/// Counts the threads, for which the kernel has memory that a cgroup counts, too.
pub(crate) fn count_threads() {
    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return;
    };
    let threads = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    let threads = threads.and_then(|threads| threads.trim().parse::<usize>().ok());
    let bytes = threads.unwrap_or(0) * KERNEL_BYTES_OF_THREAD;
    OF_KERNEL.store(bytes, Ordering::Relaxed);
}

/// Anonymous resident memory and what the kernel has, in bytes, as it was at most so long ago.
fn look(micros: u64) -> usize {
    let now = now();
    let last = LOOKED.load(Ordering::Relaxed);
    let is_recent = now.saturating_sub(last) < micros && TAKEN.load(Ordering::Relaxed) < LOOK_BYTES;
    let is_elsewhere = || {
        // One thread looks; the others take what it saw last.
        let exchanged = LOOKED.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
        micros > 0 && exchanged.is_err()
    };
    if is_recent || is_elsewhere() {
        return RESIDENT.load(Ordering::Relaxed);
    }
    TAKEN.store(0, Ordering::Relaxed);
    // Where the system does not tell, such as for want of a file handle, the last answer stays.
    let resident = read_resident().map(|bytes| bytes + OF_KERNEL.load(Ordering::Relaxed));
    let resident = resident.unwrap_or(RESIDENT.load(Ordering::Relaxed));
    RESIDENT.store(resident, Ordering::Relaxed);
    PEAK.fetch_max(resident, Ordering::Relaxed);
    resident
}

/// Waits while another thread asks the allocator or the lenders for what they have: no statement is stopped for want of
/// memory that is about to come back. Neither of them waits for anything. False: nobody did.
fn await_givers() -> bool {
    let is_giving = matches!(GIVING.try_lock(), Err(TryLockError::WouldBlock));
    if is_giving {
        drop(GIVING.lock());
    }
    let is_lending = matches!(LENDERS.try_lock(), Err(TryLockError::WouldBlock));
    if is_lending {
        drop(LENDERS.lock());
    }
    is_giving || is_lending
}

/// Asks the allocator to give back what it keeps, unless it was asked less than so long ago.
fn give_back(micros: u64) -> bool {
    let Some(allocator) = ALLOCATOR.get() else {
        return false;
    };
    let now = now();
    let last = GAVE_BACK.load(Ordering::Relaxed);
    if now.saturating_sub(last) < micros {
        return false;
    }
    let _giving = match GIVING.try_lock() {
        Ok(giving) => giving,
        Err(TryLockError::Poisoned(giving)) => giving.into_inner(),
        Err(TryLockError::WouldBlock) => return false,
    };
    GAVE_BACK.store(now, Ordering::Relaxed);
    (allocator.give_back)();
    true
}

/// Anonymous resident memory of the process now, in bytes. `None` where the system does not tell.
pub fn resident_bytes() -> Option<usize> {
    read_resident()
}

/// The most that the process was seen to take, in bytes.
pub fn peak_bytes() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Fields 2 and 3 of `/proc/self/statm`: resident pages, and those of them that belong to files.
fn read_resident() -> Option<usize> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut fields = text.split_ascii_whitespace().skip(1);
    let mut pages = || fields.next()?.parse::<usize>().ok();
    let (resident, of_files) = (pages()?, pages()?);
    Some(resident.saturating_sub(of_files) * page_bytes())
}

/// Bytes of a page of memory.
fn page_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    // SAFETY: the call has no arguments that could be wrong.
    *BYTES.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as usize)
}

/// Microseconds since the first call. Never 0 afterwards, which stands for "not yet".
fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    // So that a first look is not taken for a recent one.
    LOOK_MICROS + GIVE_BACK_MICROS + start.elapsed().as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_what_the_process_takes() {
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let resident = resident_bytes().expect("Linux tells");
        assert!(resident >= block.len(), "{resident}");
    }

    #[test]
    fn a_request_for_memory_waits_for_what_is_being_given_back() {
        let giving = GIVING.lock().expect("no panic");
        let waits = std::thread::spawn(await_givers);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!waits.is_finished());
        drop(giving);
        waits.join().expect("no panic");
        assert!(!await_givers());
    }

    #[test]
    fn the_tolerance_is_a_quarter_of_little_and_no_more_than_its_maximum() {
        assert_eq!(tolerance(64 << 20), 16 << 20);
        assert_eq!(tolerance(1 << 30), 32 << 20);
        assert_eq!(bearable(32 << 20), 3 << 20);
        assert_eq!(bearable(64 << 20), 6 << 20);
        assert_eq!(bearable(1 << 30), 20 << 20);
    }

    #[test]
    fn statements_wait_a_while_for_what_is_written() {
        const MIB: usize = 1 << 20;
        let with = |too_many, micros, coming| {
            fullness_with(too_many * MIB, 64 * MIB, micros, || coming * MIB)
        };
        assert_eq!(with(2, 0, 2), Fullness::Writing);
        assert_eq!(with(2, 0, 1), Fullness::TooFull(2 * MIB));
        assert_eq!(with(3, 0, 30), Fullness::TooFull(3 * MIB));
        assert_eq!(with(2, WRITING_MICROS, 30), Fullness::TooFull(2 * MIB));
    }
}
