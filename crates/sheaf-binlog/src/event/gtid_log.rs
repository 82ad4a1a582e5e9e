//! GTID_LOG: the first event of each transaction.

use super::{CHECKSUM_BYTES, Event, EventType, HEADER_BYTES};
use crate::bytes::{packed_bytes, put_little, put_packed, read_packed};
use crate::gtid::{Gtid, Uuid};

/// There are numbers of the order of commits.
pub(crate) const LOGICAL_CLOCK: u8 = 2;
/// Statements are logged as such, too: DDL.
const MAY_HAVE_STATEMENTS: u8 = 1;
/// Bytes of a time, and the bit that says that another one follows.
pub(crate) const TIME_BYTES: usize = 7;
pub(crate) const ANOTHER_TIME: u64 = 1 << 55;
pub(crate) const ANOTHER_VERSION: u32 = 1 << 31;
/// Bytes of the body in front of the length of the transaction, with one time.
const FIXED_BYTES: usize = 1 + 16 + 8 + 1 + 8 + 8 + TIME_BYTES;
const VERSION_BYTES: usize = 4;

/// The identifier of a transaction and its place among others.
#[derive(Debug, Clone)]
pub struct GtidLog {
    gtid: Gtid,
    has_statements: bool,
    last_committed: u64,
    sequence_number: u64,
    committed_us: u64,
    original_committed_us: Option<u64>,
    version: u32,
    original_version: Option<u32>,
    /// Bytes of the events of the transaction, this one not included.
    events_bytes: u64,
}

impl GtidLog {
    /// A transaction of rows.
    pub fn new(gtid: Gtid) -> GtidLog {
        GtidLog {
            gtid,
            has_statements: false,
            last_committed: 0,
            sequence_number: 1,
            committed_us: 0,
            original_committed_us: None,
            version: 0,
            original_version: None,
            events_bytes: 0,
        }
    }

    /// The transaction has a statement that is run again: DDL.
    pub fn with_statements(mut self) -> GtidLog {
        self.has_statements = true;
        self
    }

    /// Its number in the file, from 1 on, and the number of the newest transaction that it must not run beside.
    pub fn in_order(mut self, last_committed: u64, sequence_number: u64) -> GtidLog {
        self.last_committed = last_committed;
        self.sequence_number = sequence_number;
        self
    }

    /// When it committed, in microseconds since 1970, on a server of this version (80099).
    pub fn committed(mut self, time_us: u64, version: u32) -> GtidLog {
        self.committed_us = time_us;
        self.version = version;
        self
    }

    /// The same of the server that the transaction comes from.
    pub fn originally_committed(mut self, time_us: u64, version: u32) -> GtidLog {
        self.original_committed_us = Some(time_us);
        self.original_version = Some(version);
        self
    }

    pub(crate) fn with_events_bytes(mut self, bytes: u64) -> GtidLog {
        self.events_bytes = bytes;
        self
    }

    /// The transaction that a body is of, and the bytes of all its events.
    pub fn read(body: &[u8]) -> Option<(Gtid, u64)> {
        let (_, rest) = body.split_first()?;
        let (server, rest) = rest.split_first_chunk::<16>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let gtid = Gtid::new(Uuid(*server), u64::from_le_bytes(*number))?;
        // The clock and its two numbers.
        let times = rest.get(1 + 8 + 8..)?;
        let has_another = times.get(TIME_BYTES - 1)? & 0x80 != 0;
        let behind = times.get(
            if has_another {
                2 * TIME_BYTES
            } else {
                TIME_BYTES
            }..,
        )?;
        Some((gtid, read_packed(behind)?))
    }

    fn original_time(&self) -> Option<u64> {
        self.original_committed_us
            .filter(|original| *original != self.committed_us)
    }

    fn original_version(&self) -> Option<u32> {
        self.original_version
            .filter(|original| *original != self.version)
    }

    /// The bytes of the transaction, this event and the number itself included.
    fn transaction_bytes(&self) -> u64 {
        let more = self.original_time().map_or(0, |_| TIME_BYTES)
            + self.original_version().map_or(0, |_| VERSION_BYTES);
        let own = HEADER_BYTES + FIXED_BYTES + VERSION_BYTES + more + CHECKSUM_BYTES;
        let without = self.events_bytes + own as u64;
        // The number may grow over a limit by its own bytes.
        let at_least = without + packed_bytes(without) as u64;
        without + packed_bytes(at_least) as u64
    }
}

impl Event for GtidLog {
    fn event_type(&self) -> EventType {
        EventType::GtidLog
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        out.push(if self.has_statements {
            MAY_HAVE_STATEMENTS
        } else {
            0
        });
        out.extend_from_slice(&self.gtid.server().0);
        out.extend_from_slice(&self.gtid.number().to_le_bytes());
        out.push(LOGICAL_CLOCK);
        out.extend_from_slice(&self.last_committed.to_le_bytes());
        out.extend_from_slice(&self.sequence_number.to_le_bytes());
        let time = self.committed_us & (ANOTHER_TIME - 1);
        match self.original_time() {
            None => put_little(out, time, TIME_BYTES),
            Some(original) => {
                put_little(out, time | ANOTHER_TIME, TIME_BYTES);
                put_little(out, original, TIME_BYTES);
            }
        }
        put_packed(out, self.transaction_bytes());
        let version = self.version & (ANOTHER_VERSION - 1);
        match self.original_version() {
            None => out.extend_from_slice(&version.to_le_bytes()),
            Some(original) => {
                out.extend_from_slice(&(version | ANOTHER_VERSION).to_le_bytes());
                out.extend_from_slice(&original.to_le_bytes());
            }
        }
    }
}
