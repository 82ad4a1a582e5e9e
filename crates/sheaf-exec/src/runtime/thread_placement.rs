//! Where threads run: their CPUs, and their priority.
//!
//! A resource group gives both to the threads that work for its sessions. A worker thread belongs to one group for as
//! long as it lives. A session's own thread goes in and out:
//!
//! ```text
//!   thread:   as it began --enter(a)--> a --enter(a)--> a --enter(b)--> b --leave()--> as it began
//!   system calls:            yes            none           yes             yes
//! ```
//!
//! Each thread remembers where it is, so a session that stays in its group, or in none, costs no system call. It also
//! remembers how it began: the thread of a program that uses the library may have been placed by the program.
//!
//! CPUs are set by sched_setaffinity(2). The priority is the thread's nice value, which is a thread's own on Linux. A
//! thread may always make it greater, but smaller again only with the capability CAP_SYS_NICE or a limit RLIMIT_NICE
//! that allows it. Where that is not allowed, priorities cannot be used at all: no thread could be reset.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use sheaf_table::CpuSet;
use sheaf_table::cpu_set::MAX_CPUS;

/// A set of CPUs and a priority for threads.
#[derive(Debug)]
pub struct ThreadPlacement {
    /// Not given to another one in this process; not 0.
    id: u64,
    cpus: CpuSet,
    /// A nice value; `None`: as it is.
    nice: Option<i8>,
}

thread_local! {
    /// The id of the placement that the thread is in; 0: none.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
    /// How the thread was before it entered a placement.
    static BEFORE: RefCell<Option<(CpuSet, i8)>> = const { RefCell::new(None) };
}

impl ThreadPlacement {
    /// `nice` is from -20 to 19, and is left out where priorities cannot be changed.
    pub fn new(cpus: CpuSet, nice: i8) -> ThreadPlacement {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        ThreadPlacement {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            cpus,
            nice: priorities_are_available().then_some(nice),
        }
    }

    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Moves the calling thread here, unless it is here already.
    ///
    /// # Errors
    /// What the system reports, such as that none of the CPUs may be used any more.
    pub fn enter(&self) -> io::Result<()> {
        let current = CURRENT.get();
        if current == self.id {
            return Ok(());
        }
        if current == 0 {
            let before = (cpus_of_thread(0)?, nice_of_thread()?);
            BEFORE.set(Some(before));
        }
        set_cpus(&self.cpus)?;
        // From here on the thread is not as it began.
        CURRENT.set(self.id);
        self.nice.map_or(Ok(()), set_nice)
    }
}

/// Moves the calling thread back to where it was before it entered its first placement, if it has entered any.
///
/// # Errors
/// What the system reports.
pub fn leave() -> io::Result<()> {
    if CURRENT.get() == 0 {
        return Ok(());
    }
    CURRENT.set(0);
    match BEFORE.take() {
        Some((cpus, nice)) => move_to(&cpus, nice),
        None => Ok(()),
    }
}

/// For a new thread that serves all sessions: it began where the session's thread was that started it.
///
/// # Errors
/// What the system reports.
pub fn go_where_the_process_began() -> io::Result<()> {
    move_to(cpus_of_process(), process().nice)
}

/// The CPUs that the process could use when it was first asked.
pub fn cpus_of_process() -> &'static CpuSet {
    &process().cpus
}

/// Whether threads may change their priority, and restore it.
pub fn priorities_are_available() -> bool {
    process().priorities
}

struct Process {
    cpus: CpuSet,
    nice: i8,
    priorities: bool,
}

fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(|| {
        // SAFETY: getpid has no preconditions.
        let main_thread = unsafe { libc::getpid() };
        // If the system call is not allowed, the standard library says how many CPUs there are.
        let cpus = cpus_of_thread(main_thread).unwrap_or_else(|_| {
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            let last = count.min(usize::from(MAX_CPUS)) - 1;
            CpuSet::from_ranges([(0, last as u16)])
        });
        let nice = nice_of_thread().unwrap_or_default();
        Process {
            cpus,
            nice,
            // Tried by a thread that does nothing else.
            priorities: std::thread::spawn(move || try_priorities(nice))
                .join()
                .unwrap_or(false),
        }
    })
}

fn try_priorities(nice: i8) -> bool {
    let greater = (nice + 1).min(19);
    set_nice(greater).and_then(|()| set_nice(0)).is_ok()
}

fn move_to(cpus: &CpuSet, nice: i8) -> io::Result<()> {
    set_cpus(cpus)?;
    match priorities_are_available() {
        true => set_nice(nice),
        false => Ok(()),
    }
}

/// The CPUs that a thread may run on; 0 is the calling thread.
fn cpus_of_thread(thread: libc::pid_t) -> io::Result<CpuSet> {
    // SAFETY: a cpu_set_t is an array of integers, for which all bits zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a cpu_set_t of the size that is given, valid for writes during the call.
    let result = unsafe { libc::sched_getaffinity(thread, size_of_val(&set), &mut set) };
    check(result)?;
    // SAFETY: MAX_CPUS is how many CPUs a cpu_set_t has room for, so each number is in its bounds.
    let is_in = |cpu: &u16| unsafe { libc::CPU_ISSET(usize::from(*cpu), &set) };
    Ok((0..MAX_CPUS).filter(is_in).collect())
}

fn set_cpus(cpus: &CpuSet) -> io::Result<()> {
    // SAFETY: a cpu_set_t is an array of integers, for which all bits zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus.iter().filter(|cpu| *cpu < MAX_CPUS) {
        // SAFETY: the number is below MAX_CPUS, which is how many CPUs a cpu_set_t has room for.
        unsafe { libc::CPU_SET(usize::from(cpu), &mut set) };
    }
    // SAFETY: `set` is a cpu_set_t of the size that is given, valid for reads during the call. 0 is the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) })
}

/// The nice value of the calling thread.
fn nice_of_thread() -> io::Result<i8> {
    // SAFETY: both functions take and return integers only; errno is the thread's own.
    let (nice, error) = unsafe {
        // -1 is a nice value, too; an error shows in errno.
        *libc::__errno_location() = 0;
        let nice = libc::getpriority(libc::PRIO_PROCESS, 0);
        (nice, *libc::__errno_location())
    };
    match error {
        0 => Ok(nice as i8),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Sets the nice value of the calling thread, which is what Linux takes PRIO_PROCESS and 0 for.
fn set_nice(nice: i8) -> io::Result<()> {
    // SAFETY: setpriority takes integers only.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice.into()) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_cpu() -> CpuSet {
        cpus_of_process().iter().take(1).collect()
    }

    #[test]
    fn a_thread_goes_into_a_placement_and_comes_back() {
        let before = (
            cpus_of_thread(0).expect("the CPUs"),
            nice_of_thread().expect("a value"),
        );
        let (polite, plain) = (
            ThreadPlacement::new(first_cpu(), 5),
            ThreadPlacement::new(first_cpu(), 0),
        );
        polite.enter().expect("the CPU is there");
        polite.enter().expect("nothing is to be done");
        assert_eq!(cpus_of_thread(0).expect("the CPUs"), first_cpu());
        if priorities_are_available() {
            assert_eq!(nice_of_thread().expect("a value"), 5);
        }
        plain.enter().expect("the CPU is there");
        if priorities_are_available() {
            assert_eq!(nice_of_thread().expect("a value"), 0);
        }
        leave().expect("the CPUs are there");
        leave().expect("nothing is to be done");
        let after = (
            cpus_of_thread(0).expect("the CPUs"),
            nice_of_thread().expect("a value"),
        );
        assert_eq!(after, before);
    }

    #[test]
    fn a_placement_without_cpus_is_refused() {
        let nowhere = ThreadPlacement::new(CpuSet::default(), 0);
        assert!(nowhere.enter().is_err());
        leave().expect("the thread is where it was");
        assert!(!cpus_of_thread(0).expect("the CPUs").is_empty());
    }
}
