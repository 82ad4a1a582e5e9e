//! What this machine is, for the head of a results table, and what a process used of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

/// One line about the processor, cores, memory and kernel.
pub fn describe() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        text.lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
    };
    let processor =
        field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown processor".into());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory_gib = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(0.0, |kib| kib / (1024.0 * 1024.0));
    let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
    format!("{processor}, {cores} cores, {memory_gib:.0} GiB, Linux {kernel}")
}

/// Peak resident memory of a process in bytes (`VmHWM`), or `None` when it has ended.
pub fn peak_resident_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Peak resident memory of a process and all its descendants, added up: PostgreSQL is a family of processes.
/// Shared memory counts once per process in it, so this is an upper bound.
pub fn peak_resident_bytes_of_family(process: u32) -> u64 {
    let mut total = peak_resident_bytes(process).unwrap_or(0);
    let children =
        fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
        total += peak_resident_bytes_of_family(child);
    }
    total
}

/// Processor time that a process and all its descendants have used so far.
pub fn processor_time_of_family(process: u32) -> Duration {
    // SAFETY: sysconf reads a constant of the system.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // After the name, which is in parentheses: state, parent, ...; user and system time are the 12th and 13th.
    let ticks: u64 = stat
        .rsplit_once(')')
        .map(|(_, fields)| {
            let fields = fields.split_whitespace().skip(11).take(4);
            fields.filter_map(|field| field.parse::<u64>().ok()).sum()
        })
        .unwrap_or(0);
    let mut total = Duration::from_millis(ticks * 1000 / ticks_per_second);
    let children =
        fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
        total += processor_time_of_family(child);
    }
    total
}

/// Processor time that threads of this process have used so far, by their ids.
pub struct ThreadTimes(BTreeMap<OsString, u64>);

impl ThreadTimes {
    /// Of the threads whose names begin with one of `prefixes`.
    pub fn now(prefixes: &[&str]) -> ThreadTimes {
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
        let nanoseconds = threads.flatten().filter_map(|thread| {
            let name = fs::read_to_string(thread.path().join("comm")).ok()?;
            let counts = prefixes.iter().any(|prefix| name.starts_with(prefix));
            // Time on a processor, time waiting for one, turns.
            let times = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            let time = times.split_whitespace().next()?.parse::<u64>().ok()?;
            counts.then(|| (thread.file_name(), time))
        });
        ThreadTimes(nanoseconds.collect())
    }

    /// What those of them that are still there have used since `before`.
    pub fn since(&self, before: &ThreadTimes) -> Duration {
        let used = |(thread, time): (&OsString, &u64)| {
            let before = before.0.get(thread).copied().unwrap_or(0);
            time.saturating_sub(before)
        };
        Duration::from_nanos(self.0.iter().map(used).sum())
    }
}

/// Processor time that the calling thread has used so far.
pub fn processor_time_of_this_thread() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock writes to a value that lives during the call. Each thread has this clock, so it cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Today's date as `YYYY-MM-DD` in UTC.
pub fn today() -> String {
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs());
    let (year, month, day) = sheaf_types::temporal::civil_from_days((seconds / 86_400) as i32);
    format!("{year:04}-{month:02}-{day:02}")
}
