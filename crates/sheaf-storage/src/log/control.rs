//! The control block: where recovery begins, and what it has to know before it reads the log.
//!
//! Two blocks take turns, so that the older one is intact while the newer one is being written; the valid one with the
//! higher number counts.

use std::sync::Arc;

use crate::disk::AlignedBuffer;
use crate::error::Result;
use crate::log::log_file::{BLOCK_BYTES, LogFile};
use crate::page::Lsn;
use crate::sync;

/// First bytes of a control block.
const MAGIC: [u8; 8] = *b"SHEAFLOG";

/// Version of the log's format. A log of a version that is not [readable](is_readable) is refused.
const LOG_VERSION: u32 = 4;

/// Whether a log of this version can be read. Version 2 has no updates of parts, and version 3 nothing for followers of
/// changes. Opened, they become the newest one.
fn is_readable(version: u32) -> bool {
    (2..=LOG_VERSION).contains(&version)
}

/// Bytes of a control block that are used; the checksum of the others comes first.
const USED_BYTES: usize = 128;

/// The same of versions before 4, whose blocks end before the number of the next commit.
const USED_BYTES_BEFORE_4: usize = 120;

/// Names what has happened to one database, in one order. A copy that is changed on its own, such as a backup that is
/// opened or restored, has a history of its own from there on, although the positions in its log go on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HistoryId(pub u64);

impl HistoryId {
    pub(crate) fn unique() -> HistoryId {
        HistoryId(sync::unique_number())
    }
}

impl std::fmt::Display for HistoryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What the files of the database are. The numbers are the log's format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogState {
    /// A database in use.
    InUse = 0,
    /// The data file is still being made: there is nothing to recover.
    Creating = 1,
    /// A copy of a database that was not opened yet.
    Copy = 2,
}

impl LogState {
    fn of_number(number: u64) -> Option<LogState> {
        [LogState::InUse, LogState::Creating, LogState::Copy]
            .into_iter()
            .find(|&state| state as u64 == number)
    }
}

/// Contents of a control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    /// Number of this block; the next one has the next.
    pub number: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    pub state: LogState,
    /// Counts the times that the log was opened. Chunks carry it, so that what an earlier opening left behind the end
    /// of the log is not taken for its continuation.
    pub epoch: u32,
    /// Sequence number of the segment that holds `redo_start`.
    pub first_segment: u32,
    /// Recovery reads the log from here.
    pub redo_start: Lsn,
    /// Begin of the last checkpoint.
    pub checkpoint_begin: Lsn,
    /// At the checkpoint: numbers from here on were not given out.
    pub next_tree: u64,
    pub next_transaction: u64,
    /// Earlier batches in the doublewrite area are not needed any more, and must not be used.
    pub first_batch: u64,
    pub history: HistoryId,
    /// What lies before this in the log has happened to the database of which this one was a copy.
    pub history_start: Lsn,
    /// Where the log of a copy ends: the pages of the copy may have all changes up to here. 0 unless it is a copy.
    pub copy_end: Lsn,
    /// No commit in a copy is later than this, in microseconds since 1970. 0 unless it is a copy.
    pub copied_at_us: u64,
    /// At the checkpoint: the number of the next commit that is numbered. All before are durable.
    pub next_number: u64,
}

impl Control {
    /// The same, but what follows `start` is a history of its own.
    pub(super) fn with_new_history(self, start: Lsn) -> Control {
        Control {
            state: LogState::InUse,
            history: HistoryId::unique(),
            history_start: start,
            copy_end: Lsn(0),
            copied_at_us: 0,
            next_number: 1,
            ..self
        }
    }

    /// The newest valid control block; none if the file has none.
    ///
    /// # Errors
    /// `UnknownFormat` if it is of another version.
    pub(crate) fn read(file: &LogFile) -> Result<Option<Control>> {
        let length = file.disk.length(file.file)?;
        let mut newest: Option<Control> = None;
        let mut other_version = None;
        for place in 0..2 {
            let offset = place * BLOCK_BYTES;
            if length < offset + BLOCK_BYTES {
                break;
            }
            let block = file.read(offset, BLOCK_BYTES as usize)?;
            if let Some(control) = Control::decode(&block)
                && newest.is_none_or(|newest| newest.number < control.number)
            {
                newest = Some(control);
            }
            other_version = other_version.or(version_of(&block).filter(|&it| !is_readable(it)));
        }
        match other_version {
            Some(version) if newest.is_none() => Err(file.damaged(format!(
                "the format of the log has version {version}, and this program reads version {LOG_VERSION}: open it with the \
                 program that wrote it, and copy the tables over"
            ))),
            _ => Ok(newest),
        }
    }

    /// Writes the block to its place. Durable on return.
    pub(super) fn write(&self, file: &LogFile) -> Result<()> {
        let mut block = AlignedBuffer::zeroed(BLOCK_BYTES as usize)?;
        self.encode(&mut block);
        let offset = self.number % 2 * BLOCK_BYTES;
        file.write(&Arc::new(block), 0..BLOCK_BYTES as usize, offset)?;
        file.sync()
    }

    fn encode(&self, block: &mut [u8]) {
        block[4..12].copy_from_slice(&MAGIC);
        block[12..16].copy_from_slice(&LOG_VERSION.to_le_bytes());
        let fields = [
            self.number,
            self.segment_bytes,
            self.state as u64,
            u64::from(self.epoch) | u64::from(self.first_segment) << 32,
            self.redo_start.0,
            self.checkpoint_begin.0,
            self.next_tree,
            self.next_transaction,
            self.first_batch,
            self.history.0,
            self.history_start.0,
            self.copy_end.0,
            self.copied_at_us,
            self.next_number,
        ];
        for (i, field) in fields.into_iter().enumerate() {
            block[16 + 8 * i..24 + 8 * i].copy_from_slice(&field.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&block[4..USED_BYTES]);
        block[..4].copy_from_slice(&checksum.to_le_bytes());
    }

    fn decode(block: &[u8]) -> Option<Control> {
        let version = version_of(block).filter(|&version| is_readable(version))?;
        let used = block.get(
            ..match version {
                2 | 3 => USED_BYTES_BEFORE_4,
                _ => USED_BYTES,
            },
        )?;
        if used[..4] != crc32c::crc32c(&used[4..]).to_le_bytes() {
            return None;
        }
        let field = |i: usize| -> u64 {
            let bytes = &used[16 + 8 * i..24 + 8 * i];
            bytes
                .iter()
                .rev()
                .fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        Some(Control {
            number: field(0),
            segment_bytes: field(1),
            state: LogState::of_number(field(2))?,
            epoch: field(3) as u32,
            first_segment: (field(3) >> 32) as u32,
            redo_start: Lsn(field(4)),
            checkpoint_begin: Lsn(field(5)),
            next_tree: field(6),
            next_transaction: field(7),
            first_batch: field(8),
            history: HistoryId(field(9)),
            history_start: Lsn(field(10)),
            copy_end: Lsn(field(11)),
            copied_at_us: field(12),
            next_number: match version {
                2 | 3 => 1,
                _ => field(13),
            },
        })
    }

    /// To be asked about a log that was read to its end.
    ///
    /// # Errors
    /// `UnknownFormat`: it is the log of a copy, and a part of it is lost. The pages of the copy may have changes from
    /// there.
    pub(crate) fn check_copy(&self, file: &LogFile, end: Lsn) -> Result<()> {
        if self.state == LogState::Copy && end < self.copy_end {
            return Err(file.damaged(format!(
                "the copy's log ends at {}, and had {} when the copy was made: use another backup",
                end.0, self.copy_end.0
            )));
        }
        Ok(())
    }
}

/// The format's version that a block claims, if it is a control block of any version.
fn version_of(block: &[u8]) -> Option<u32> {
    let version = block.get(12..16)?.try_into().ok()?;
    (block[4..12] == MAGIC).then(|| u32::from_le_bytes(version))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::disk::Disk;
    use crate::disk::simulated::{SimulatedDisk, SimulationOptions};
    use crate::log::Log;

    #[test]
    fn a_log_of_another_version_is_refused_by_its_number() {
        let disk: Arc<dyn Disk> = SimulatedDisk::new(SimulationOptions::new(1));
        let file = Log::file(&disk, disk.open("sheaf.log").unwrap(), 1 << 20);
        assert_eq!(Control::read(&file).unwrap(), None);
        let mut block = AlignedBuffer::zeroed(2 * BLOCK_BYTES as usize).unwrap();
        block[4..12].copy_from_slice(&MAGIC);
        block[12] = 1;
        let length = block.len();
        file.write(&Arc::new(block), 0..length, 0).unwrap();
        let error = Control::read(&file).unwrap_err().to_string();
        assert!(
            error.contains("version 1, and this program reads version 4"),
            "{error}"
        );
    }

    #[test]
    fn a_block_reads_as_it_was_written_and_a_damaged_one_does_not() {
        let control = Control {
            number: 3,
            segment_bytes: 1 << 20,
            state: LogState::Copy,
            epoch: 5,
            first_segment: 7,
            redo_start: Lsn(11),
            checkpoint_begin: Lsn(13),
            next_tree: 17,
            next_transaction: 19,
            first_batch: 23,
            history: HistoryId(29),
            history_start: Lsn(31),
            copy_end: Lsn(37),
            copied_at_us: 41,
            next_number: 43,
        };
        let mut block = vec![0; BLOCK_BYTES as usize];
        assert_eq!(Control::decode(&block), None);
        control.encode(&mut block);
        assert_eq!(Control::decode(&block), Some(control));
        for byte in 0..USED_BYTES {
            block[byte] ^= 1;
            assert_eq!(Control::decode(&block), None);
            block[byte] ^= 1;
        }
        let of_version = |version: u8, used: usize| {
            let mut block = block.clone();
            block[12] = version;
            let checksum = crc32c::crc32c(&block[4..used]);
            block[..4].copy_from_slice(&checksum.to_le_bytes());
            Control::decode(&block)
        };
        let without_number = Control {
            next_number: 1,
            ..control
        };
        for version in [2, 3] {
            let read = of_version(version, USED_BYTES_BEFORE_4);
            assert_eq!(read, Some(without_number));
        }
        assert_eq!(of_version(4, USED_BYTES), Some(control));
        let others = (of_version(1, USED_BYTES), of_version(5, USED_BYTES));
        assert_eq!(others, (None, None));
    }
}
