//! What the binlogger has to know after a crash, beside its files.
//!
//! The file is replaced as a whole, when all that it tells of is durable in the files. Numbers are little-endian:
//!
//! ```text
//!   | "SHEAFBIN" | version (4) | history (8) | position (8) | number (8) | base (8) | files are void (8): 0 or 1 |
//!   | file (8) | number before the file (8) |
//!   | descriptions: length (4), bytes |
//!   | CRC-32 of all before, by the polynomial of Ethernet (4) |
//! ```

use std::io;
use std::path::Path;

use sheaf_storage::{FeedPoint, HistoryId, Lsn};

use super::files::replace_file;

pub(super) const FILE: &str = "binlog.state";
const MAGIC: &[u8; 8] = b"SHEAFBIN";
const VERSION: u32 = 3;
/// It did not say which transaction its file begins with: all in the files were of this server.
const WITHOUT_FILE: u32 = 2;
/// It did not say whether files are void.
const FIRST_VERSION: u32 = 1;

/// See the [module](self).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The database that it is about: a copy has another one.
    pub(super) history: HistoryId,
    /// Where to go on in the log.
    pub(super) point: FeedPoint,
    /// The transaction with the number after this one is the first of the binary log: 0, unless RESET was said.
    pub(super) base: u64,
    /// A RESET has begun, and files that are there are to be removed.
    pub(super) is_reset: bool,
    /// The newest file, and the log's number of the last transaction before it. `None`: an earlier version did not say
    /// it.
    pub(super) file: Option<(u64, u64)>,
    /// What the log has said of tables before the point.
    pub(super) remarks: Vec<Vec<u8>>,
}

impl State {
    /// `None`: there is none, or it is damaged.
    pub(super) fn read(directory: &Path) -> io::Result<Option<State>> {
        match std::fs::read(directory.join(FILE)) {
            Ok(bytes) => Ok(State::of_bytes(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        replace_file(directory, FILE, &self.to_bytes())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        let (file, before) = self.file.unwrap_or_default();
        let numbers = [
            self.history.0,
            self.point.position.0,
            self.point.number,
            self.base,
            self.is_reset.into(),
            file,
            before,
        ];
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for remark in &self.remarks {
            out.extend_from_slice(&(remark.len() as u32).to_le_bytes());
            out.extend_from_slice(remark);
        }
        out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
        out
    }

    fn of_bytes(bytes: &[u8]) -> Option<State> {
        let (body, checksum) = bytes.split_last_chunk::<4>()?;
        if u32::from_le_bytes(*checksum) != crc32fast::hash(body) {
            return None;
        }
        let rest = body.strip_prefix(MAGIC)?;
        let (version, mut rest) = rest.split_first_chunk::<4>()?;
        let given = match u32::from_le_bytes(*version) {
            FIRST_VERSION => 4,
            WITHOUT_FILE => 5,
            VERSION => 7,
            _ => return None,
        };
        let mut numbers = [0; 7];
        for number in &mut numbers[..given] {
            let (bytes, behind) = rest.split_first_chunk::<8>()?;
            (*number, rest) = (u64::from_le_bytes(*bytes), behind);
        }
        let [history, position, number, base, is_reset, file, before] = numbers;
        let mut remarks = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (remark, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            remarks.push(remark.to_vec());
            rest = behind;
        }
        rest.is_empty().then_some(State {
            history: HistoryId(history),
            point: FeedPoint {
                position: Lsn(position),
                number,
            },
            base,
            is_reset: is_reset != 0,
            file: (file > 0).then_some((file, before)),
            remarks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_as_it_was_written_and_a_damaged_one_does_not() {
        let state = State {
            history: HistoryId(3),
            point: FeedPoint {
                position: Lsn(5),
                number: 7,
            },
            base: 1,
            is_reset: true,
            file: Some((6, 4)),
            remarks: vec![b"one".to_vec(), Vec::new(), b"three".to_vec()],
        };
        let bytes = state.to_bytes();
        assert_eq!(State::of_bytes(&bytes), Some(state));
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert_eq!(State::of_bytes(&damaged), None);
            assert_eq!(State::of_bytes(&bytes[..place]), None);
        }
    }

    #[test]
    fn a_state_of_the_first_version_has_no_reset() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FIRST_VERSION.to_le_bytes());
        for number in [3_u64, 5, 7, 1] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&3_u32.to_le_bytes());
        bytes.extend_from_slice(b"one");
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        let state = State::of_bytes(&bytes).expect("it is whole");
        assert_eq!((state.base, state.is_reset, state.file), (1, false, None));
        assert_eq!(state.remarks, [b"one".to_vec()]);
    }
}
