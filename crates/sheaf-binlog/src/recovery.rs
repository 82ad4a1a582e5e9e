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

use crate::event::{
    self, CHECKSUM_BYTES, END_PLACE, EventType, GtidLog, HEADER_BYTES, LENGTH_PLACE,
};
use crate::file::MAGIC;
use crate::gtid::{Gtid, GtidSet};

/// What is good of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Where the last whole transaction ends, or the start of the file if there is none. What follows is to be cut off.
    pub end: u64,
    /// What this file and those before it have.
    pub gtids: GtidSet,
    /// The last transaction of this file.
    pub last: Option<Gtid>,
    /// The file ends with ROTATE or STOP, and nothing is missing.
    pub is_closed: bool,
}

/// Reads a file up to its last whole transaction. `None`: not even its first two events are there.
///
/// # Errors
/// Those of reading.
pub fn recover(file: impl Read) -> io::Result<Option<Recovered>> {
    let mut reader = Reader {
        file,
        position: 0,
        event: Vec::new(),
    };
    if !reader.begin()? {
        return Ok(None);
    }
    let description = reader.next()?;
    let previous = match (description, reader.next()?) {
        (Some(EventType::FormatDescription), Some(EventType::PreviousGtids)) => {
            GtidSet::read(reader.body())
        }
        _ => None,
    };
    let Some(gtids) = previous else {
        return Ok(None);
    };
    let mut found = Recovered {
        end: reader.position,
        gtids,
        last: None,
        is_closed: false,
    };
    loop {
        let start = reader.position;
        match reader.next()? {
            Some(EventType::GtidLog) => {
                let Some((gtid, bytes)) = GtidLog::read(reader.body()) else {
                    return Ok(Some(found));
                };
                let end = start.saturating_add(bytes);
                while reader.position < end {
                    if reader.next()?.is_none() {
                        return Ok(Some(found));
                    }
                }
                if reader.position > end {
                    return Ok(Some(found));
                }
                found.gtids.add(gtid);
                found.last = Some(gtid);
                found.end = end;
            }
            Some(EventType::Rotate | EventType::Stop) => {
                found.end = reader.position;
                found.is_closed = true;
                return Ok(Some(found));
            }
            _ => return Ok(Some(found)),
        }
    }
}

/// Reads event after event.
struct Reader<F> {
    file: F,
    /// Where the next event begins.
    position: u64,
    /// The bytes of the last one.
    event: Vec<u8>,
}

impl<F: Read> Reader<F> {
    /// Reads so many bytes behind those that are there. `false`: they are not in the file.
    fn read(&mut self, bytes: usize) -> io::Result<bool> {
        // Takes no more memory than there is to be read, whatever a damaged length says.
        let read = self
            .file
            .by_ref()
            .take(bytes as u64)
            .read_to_end(&mut self.event)?;
        Ok(read == bytes)
    }

    fn begin(&mut self) -> io::Result<bool> {
        self.position = MAGIC.len() as u64;
        Ok(self.read(MAGIC.len())? && self.event == MAGIC)
    }

    /// The type of the next event. `None`: there is none that is whole, or its type is none that we write.
    fn next(&mut self) -> io::Result<Option<EventType>> {
        self.event.clear();
        if !self.read(HEADER_BYTES)? {
            return Ok(None);
        }
        let length = word(&self.event, LENGTH_PLACE) as usize;
        let Some(rest) = length
            .checked_sub(HEADER_BYTES)
            .filter(|rest| *rest >= CHECKSUM_BYTES)
        else {
            return Ok(None);
        };
        if !self.read(rest)? {
            return Ok(None);
        }
        let end = self.position + length as u64;
        if word(&self.event, END_PLACE) != end as u32 || !event::is_sound(&self.event) {
            return Ok(None);
        }
        self.position = end;
        Ok(EventType::of(self.event[4]))
    }

    /// The body of the event that was read last.
    fn body(&self) -> &[u8] {
        let end = self.event.len().saturating_sub(CHECKSUM_BYTES);
        self.event.get(HEADER_BYTES..end).unwrap_or_default()
    }
}

/// A number of four bytes in a header.
fn word(event: &[u8], place: usize) -> u32 {
    let bytes = event.get(place..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
