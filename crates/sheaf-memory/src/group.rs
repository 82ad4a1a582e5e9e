//! The memory that the system lets the process's control group have, where it has a limit: containers and services do.
//!
//! What is written to files counts, too, until it is on the disk: the system cannot take it back before.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process;

/// A group that has so much beside the process's limit is not bounded: the system writes that much in a few seconds,
/// and a group without a limit says that it has nearly 2^63 bytes.
const UNBOUNDED_BYTES: u64 = 1 << 30;

/// Bytes of files that may be on their way to the disk at the same time; `None`: as many as the system likes.
///
/// It is half of what the group has beside the process's limit and its tolerance, and something in any case.
pub fn most_unwritten() -> Option<u64> {
    let limit = process::limit()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = group_limit(&groups, &|path| fs::read_to_string(path).ok())?;
    unwritten_beside(limit as u64, group)
}

/// In a group of so many bytes.
fn unwritten_beside(limit: u64, group: u64) -> Option<u64> {
    /// At least this part of the limit.
    const LEAST_SHARE: u64 = 32;
    let tolerance = process::tolerance(limit as usize) as u64;
    let beside = group.saturating_sub(limit + tolerance);
    (beside < UNBOUNDED_BYTES).then(|| (beside / 2).max(limit / LEAST_SHARE))
}

/// The least limit of a group and those around it. `groups`: what the system says the process is in.
fn group_limit(groups: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let inside = PathBuf::from(path.trim_start_matches('/'));
        let groups = inside.ancestors();
        let limits = groups.filter_map(|group| {
            let limit = read(&Path::new(root).join(group).join(file))?;
            limit.trim().parse::<u64>().ok()
        });
        limits.min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_counts() {
        let limit = |groups: &str, files: &[(&str, &str)]| {
            let read = |path: &Path| {
                let file = files.iter().find(|(name, _)| Path::new(name) == path);
                file.map(|(_, text)| (*text).to_string())
            };
            group_limit(groups, &read)
        };
        let second = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "1000\n"),
        ];
        assert_eq!(limit("0::/a/b\n", &second), Some(1000));
        assert_eq!(limit("0::/b\n", &second), None);
        let first = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9000\n"),
            ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "80\n"),
        ];
        assert_eq!(
            limit("5:devices:/\n2:cpu,memory:/x\n0::/\n", &first),
            Some(80)
        );
        assert_eq!(limit("2:memory:/y\n", &first), Some(9000));
        assert_eq!(limit("", &first), None);
    }

    #[test]
    fn half_of_what_is_beside_may_be_unwritten() {
        const MIB: u64 = 1 << 20;
        assert_eq!(unwritten_beside(64 * MIB, 80 * MIB), Some(2 * MIB));
        assert_eq!(unwritten_beside(256 * MIB, 1024 * MIB), Some(368 * MIB));
        // What the first version of groups says where there is no limit.
        let none = 9_223_372_036_854_771_712;
        assert_eq!(unwritten_beside(64 * MIB, none), None);
    }
}
