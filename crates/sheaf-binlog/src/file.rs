//! A binary log file: events one after the other, each with the position behind it.
//!
//! ```text
//!   0    4                     127
//!   | fe 'b' 'i' 'n' | FORMAT_DESCRIPTION | PREVIOUS_GTIDS | transactions ... | ROTATE or STOP |
//! ```
//!
//! A file that is not closed says so in its first event. It is good up to its last transaction that is whole.

use std::io::{self, Write};

use crate::event::{self, Event, EventHeader, FormatDescription, GtidLog, PreviousGtids};
use crate::gtid::GtidSet;

/// The first bytes of a file.
pub const MAGIC: &[u8; 4] = b"\xfebin";

/// What a file begins with.
#[derive(Debug, Clone)]
pub struct FileStart {
    version: String,
    server_id: u32,
    time: u32,
    started: u32,
    previous: GtidSet,
}

impl FileStart {
    /// `time`: seconds since 1970. `previous`: all that the files before have.
    pub fn new(version: &str, server_id: u32, time: u32, previous: GtidSet) -> FileStart {
        FileStart {
            version: version.to_string(),
            server_id,
            time,
            started: 0,
            previous,
        }
    }

    /// Of the first file after the server's start.
    pub fn of_started_server(mut self) -> FileStart {
        self.started = self.time;
        self
    }
}

/// Where the events of a transaction go, without GTID_LOG, which has their length.
pub trait EventSink {
    /// # Errors
    /// Those of writing.
    fn push(&mut self, header: &EventHeader, event: &dyn Event) -> io::Result<()>;
}

/// How long the events of a transaction are.
#[derive(Debug, Default)]
pub struct EventsLength {
    bytes: u64,
    event: Vec<u8>,
}

impl EventsLength {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl EventSink for EventsLength {
    fn push(&mut self, header: &EventHeader, event: &dyn Event) -> io::Result<()> {
        self.event.clear();
        event::push(&mut self.event, header, event);
        self.bytes += self.event.len() as u64;
        Ok(())
    }
}

/// The events of a transaction in memory, without GTID_LOG.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    events: Vec<u8>,
}

impl Transaction {
    pub fn new() -> Transaction {
        Transaction::default()
    }

    pub fn push(&mut self, header: &EventHeader, event: &dyn Event) {
        event::push(&mut self.events, header, event);
    }

    /// The events of another one come behind these.
    pub fn append(&mut self, other: Transaction) {
        match self.events.is_empty() {
            true => self.events = other.events,
            false => self.events.extend_from_slice(&other.events),
        }
    }

    pub fn bytes(&self) -> usize {
        self.events.len()
    }
}

impl EventSink for Transaction {
    fn push(&mut self, header: &EventHeader, event: &dyn Event) -> io::Result<()> {
        Transaction::push(self, header, event);
        Ok(())
    }
}

/// A file that is written.
#[derive(Debug)]
pub struct BinlogFile<W> {
    out: W,
    position: u64,
    buffer: Vec<u8>,
}

impl<W: Write> BinlogFile<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Those of writing.
    pub fn create(mut out: W, start: &FileStart) -> io::Result<BinlogFile<W>> {
        out.write_all(MAGIC)?;
        let position = MAGIC.len() as u64;
        let mut file = BinlogFile {
            out,
            position,
            buffer: Vec::new(),
        };
        let header = EventHeader::new(start.time, start.server_id);
        let description = FormatDescription::new(&start.version, start.started).in_use();
        file.write(&header, &description)?;
        file.write(&header, &PreviousGtids(&start.previous))?;
        Ok(file)
    }

    /// Goes on in a file that ends at `position`, as [`recovery`](crate::recovery) says.
    pub fn resume(out: W, position: u64) -> BinlogFile<W> {
        BinlogFile {
            out,
            position,
            buffer: Vec::new(),
        }
    }

    /// Where the next event begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Appends an event that is no part of a transaction.
    ///
    /// # Errors
    /// Those of writing. How much was written is unknown then.
    pub fn write(&mut self, header: &EventHeader, event: &dyn Event) -> io::Result<()> {
        self.buffer.clear();
        event::push(&mut self.buffer, header, event);
        self.flush_buffer()
    }

    /// Appends a transaction, in one write.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn append(
        &mut self,
        header: &EventHeader,
        gtid: GtidLog,
        transaction: Transaction,
    ) -> io::Result<()> {
        let gtid = gtid.with_events_bytes(transaction.bytes() as u64);
        self.buffer.clear();
        event::push(&mut self.buffer, header, &gtid);
        self.buffer.extend_from_slice(&transaction.events);
        self.flush_buffer()
    }

    /// Begins a transaction whose events are [pushed](EventSink::push) one by one, and have so many bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn begin(
        &mut self,
        header: &EventHeader,
        gtid: GtidLog,
        events_bytes: u64,
    ) -> io::Result<()> {
        self.write(header, &gtid.with_events_bytes(events_bytes))
    }

    fn flush_buffer(&mut self) -> io::Result<()> {
        event::seal(&mut self.buffer, self.position);
        self.out.write_all(&self.buffer)?;
        self.position += self.buffer.len() as u64;
        Ok(())
    }

    /// What is written to.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> EventSink for BinlogFile<W> {
    fn push(&mut self, header: &EventHeader, event: &dyn Event) -> io::Result<()> {
        self.write(header, event)
    }
}

/// Where the flags of the first event stand in the file, and what they are once it is closed. The checksum does not
/// change.
pub const CLOSED_FLAGS: (u64, [u8; 2]) = (MAGIC.len() as u64 + 17, [0, 0]);
