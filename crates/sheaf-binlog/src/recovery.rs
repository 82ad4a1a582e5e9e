//! What a crash left of a file.
//!
//! A file is written in order, so what is there is a beginning of what was to be there, and then perhaps bytes that
//! mean nothing. GTID_LOG says how long its transaction is. A transaction is whole if its events fill just that, and
//! each has its position and its checksum:
//!
//! ```text
//!   | start | transaction | transaction | tran            what is there
//!   | start | transaction | transaction |                 what is kept: `end`, and `gtids` up to here
//! ```
//!
//! The server cuts the file there and goes on with the next transaction, which its own log still has.

use std::io::{self, Read};

use crate::event::{EventType, GtidLog};
use crate::gtid::{Gtid, GtidSet};
use crate::reader::EventReader;

/// What is good of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Where the last whole transaction ends, or the start of the file if there is none. What follows is to be cut off.
    pub end: u64,
    /// What this file and those before it have.
    pub gtids: GtidSet,
    /// The last transaction of this file.
    pub last: Option<Gtid>,
    /// How many transactions of this file are whole.
    pub transactions: u64,
    /// The file ends with ROTATE or STOP, and nothing is missing.
    pub is_closed: bool,
}

/// Reads a file up to its last whole transaction. `None`: not even its first two events are there.
///
/// # Errors
/// Those of reading.
pub fn recover(file: impl Read) -> io::Result<Option<Recovered>> {
    let mut reader = EventReader::new(file);
    let Some(gtids) = begin(&mut reader)? else {
        return Ok(None);
    };
    let mut found = Recovered {
        end: reader.position(),
        gtids,
        last: None,
        transactions: 0,
        is_closed: false,
    };
    loop {
        let start = reader.position();
        match reader.read_event()? {
            Some(EventType::GtidLog) => {
                let Some((gtid, bytes)) = GtidLog::read(reader.body()) else {
                    return Ok(Some(found));
                };
                let end = start.saturating_add(bytes);
                while reader.position() < end {
                    if reader.read_event()?.is_none() {
                        return Ok(Some(found));
                    }
                }
                if reader.position() > end {
                    return Ok(Some(found));
                }
                found.gtids.add(gtid);
                found.last = Some(gtid);
                found.transactions += 1;
                found.end = end;
            }
            Some(EventType::Rotate | EventType::Stop) => {
                found.end = reader.position();
                found.is_closed = true;
                return Ok(Some(found));
            }
            _ => return Ok(Some(found)),
        }
    }
}

/// What the files before a file have, as it says itself. `None`: not even its first two events are there.
///
/// # Errors
/// Those of reading.
pub fn previous_gtids(file: impl Read) -> io::Result<Option<GtidSet>> {
    begin(&mut EventReader::new(file))
}

/// Reads the first two events.
fn begin(reader: &mut EventReader<impl Read>) -> io::Result<Option<GtidSet>> {
    if !reader.begin()? {
        return Ok(None);
    }
    let description = reader.read_event()?;
    Ok(match (description, reader.read_event()?) {
        (Some(EventType::FormatDescription), Some(EventType::PreviousGtids)) => {
            GtidSet::read(reader.body())
        }
        _ => None,
    })
}
