//! What this machine is, for the head of a results table, and what a process used of it.

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

/// Today's date as `YYYY-MM-DD` in UTC.
pub fn today() -> String {
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs());
    let (year, month, day) = civil_from_days((seconds / 86_400) as i64);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Days since 1970-01-01 to a date of the proleptic Gregorian calendar (eras of 400 years begin on 1 March).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    #[test]
    fn days_become_dates() {
        assert_eq!(super::civil_from_days(0), (1970, 1, 1));
        assert_eq!(super::civil_from_days(19_782), (2024, 2, 29));
        assert_eq!(super::civil_from_days(-1), (1969, 12, 31));
    }
}
