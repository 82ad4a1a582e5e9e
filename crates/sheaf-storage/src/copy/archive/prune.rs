//! Taking out of an archive what no backup needs any more.
//!
//! ```text
//!   archive    [1, 90)  [90, 175)  [175, 260)  [260, 300)
//!   backup              [R .......... E)                        the oldest that is kept
//!   pruned                         [175, 260)  [260, 300)       from where the backup's own log ends
//! ```
//!
//! Nothing else grows without a limit, and only the owner of the backups knows the limit of the archive. So pruning
//! must be asked for; the request names the oldest backup that shall be of use.

use super::LogArchive;
use crate::copy::restore::BackupInfo;
use crate::error::Result;

/// What was taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    pub objects: u64,
    /// Bytes of log that were in them, before compression.
    pub log_bytes: u64,
}

/// Removes the objects that neither `oldest` nor a younger backup of its history needs. The newest object stays,
/// because it says where the archive goes on. Other histories are left alone.
///
/// # Errors
/// `Archive`. What was removed until then is removed; it may be done again.
pub fn prune(archive: &dyn LogArchive, oldest: &BackupInfo) -> Result<Pruned> {
    let mut ranges = archive.ranges(oldest.history)?;
    // The oldest first, so that there is never a gap.
    ranges.sort_unstable();
    let newest_end = ranges.iter().map(|range| range.end).max();
    let mut pruned = Pruned::default();
    for range in ranges {
        if range.end <= oldest.end && Some(range.end) != newest_end {
            archive.remove(oldest.history, range)?;
            pruned.objects += 1;
            pruned.log_bytes += range.end.0 - range.start.0;
        }
    }
    Ok(pruned)
}
