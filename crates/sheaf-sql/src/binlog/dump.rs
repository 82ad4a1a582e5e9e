//! What a follower is sent: events from a place on, and then each new transaction when the files have it.
//!
//! ```text
//!   ROTATE (made up) | FORMAT_DESCRIPTION | PREVIOUS_GTIDS | transactions ... | ROTATE |  ROTATE (made up) | ...
//!                                                            without those that the follower has
//! ```
//!
//! The made-up event tells the name of the file that follows. Where there is nothing new for a while, a heartbeat is
//! sent. Events are those of the files, with their positions there.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_binlog::event::{self, EventHeader, EventType, GtidLog, HEADER_BYTES, Heartbeat, Rotate};
use sheaf_binlog::gtid::GtidSet;
use sheaf_binlog::reader::EventReader;
use sheaf_storage::sync::waiting;
use sheaf_types::error::codes;

use super::Binlogger;
use super::files::{FileNumber, failed};
use super::lock;
use crate::error::{Result, SqlError};

/// Where the first event of a file begins.
const FIRST_POSITION: u64 = 4;

/// Where a follower begins.
#[derive(Clone, Debug)]
pub enum DumpStart {
    /// In a file (the oldest one if empty), at a position.
    Place { file: String, position: u64 },
    /// Behind the transactions that it has.
    Gtids(GtidSet),
}

/// See the [module](self).
pub struct BinlogDump {
    binlog: Arc<Binlogger>,
    /// What the follower has, and is not sent.
    has: GtidSet,
    file: FileNumber,
    reader: EventReader<BufReader<File>>,
    /// Events before this position are not sent. One begins there.
    first: u64,
    /// Where the file's first event ends.
    description_end: u64,
    /// What of a transaction is left that is not sent ends here.
    skipped_to: u64,
    /// Made-up events, to be sent next.
    ready: VecDeque<Vec<u8>>,
    server_id: u32,
    heartbeat: Option<Duration>,
    sent_at: Instant,
    is_at_end: bool,
}

fn fatal(reason: impl Into<String>) -> SqlError {
    SqlError::new(codes::SOURCE_FATAL_ERROR_READING_BINLOG, reason)
}

impl Binlogger {
    /// Begins to send.
    ///
    /// # Errors
    /// 1236: what the follower needs is not there, or it has what nobody else has.
    pub(crate) fn dump(
        self: &Arc<Self>,
        start: DumpStart,
        heartbeat: Option<Duration>,
    ) -> Result<BinlogDump> {
        let server_id = self.settings().server_id;
        let (file, path, position, has) = self.with(|running| {
            let (file, position, has) = match start {
                DumpStart::Place { file, position } => {
                    let known = running.files.numbers();
                    let number = match file.is_empty() {
                        true => known.first().copied(),
                        false => FileNumber::of_name(&file).filter(|it| known.contains(it)),
                    };
                    let number = number.ok_or_else(|| {
                        fatal("Could not find first log file name in binary log index file")
                    })?;
                    if position < FIRST_POSITION {
                        return Err(fatal("Client requested source to start replication from position < 4"));
                    }
                    let (newest, end) = running.place();
                    let end = match number == newest {
                        true => Ok(end),
                        false => running.files.length(number),
                    };
                    if position > end.map_err(|error| failed(number, &error))? {
                        return Err(fatal(
                            "Client requested source to start replication from position > file size",
                        ));
                    }
                    (number, position, GtidSet::new())
                }
                DumpStart::Gtids(has) => {
                    let is_known = lock(&self.unlogged).is_subset(&has);
                    let file = running.file_for(&has).filter(|_| is_known);
                    let number = file.ok_or_else(|| {
                        fatal(
                            "Cannot replicate because the source purged required binary logs. Replicate the missing \
                             transactions from elsewhere, or provision a new replica from backup.",
                        )
                    })?;
                    if !running.has_all_own_of(&has) {
                        return Err(fatal(
                            "Replica has more GTIDs than the source has, using the source's SERVER_UUID.",
                        ));
                    }
                    (number, FIRST_POSITION, has)
                }
            };
            Ok((file, running.files.path(file), position, has))
        })?;
        let mut dump = BinlogDump {
            binlog: Arc::clone(self),
            has,
            reader: open(file, path)?,
            file,
            first: position,
            description_end: FIRST_POSITION,
            skipped_to: 0,
            ready: VecDeque::new(),
            server_id,
            heartbeat,
            sent_at: Instant::now(),
            is_at_end: false,
        };
        dump.begin_file(position)?;
        Ok(dump)
    }
}

fn open(file: FileNumber, path: std::path::PathBuf) -> Result<EventReader<BufReader<File>>> {
    let opened = File::open(path).map_err(|error| failed(file, &error))?;
    let mut reader = EventReader::new(BufReader::new(opened));
    match reader.begin() {
        Ok(true) => Ok(reader),
        Ok(false) => Err(fatal(format!("'{file}' is no binary log file"))),
        Err(error) => Err(failed(file, &error)),
    }
}

impl BinlogDump {
    /// The follower has said that it expects no checksums. As in MySQL, it is told then that events have them: the
    /// first made-up event alone has none, since it comes before the description that tells.
    pub(crate) fn begin_without_checksum(&mut self) {
        if let Some(rotate) = self.ready.front_mut() {
            event::cut_checksum(rotate);
        }
    }

    /// Says which file follows, and how it is read.
    fn begin_file(&mut self, position: u64) -> Result<()> {
        let header = EventHeader::new(0, self.server_id);
        let rotate = Rotate::artificial(self.file.to_string(), position);
        self.ready.push_back(event::alone(&header, &rotate, 0));
        let read = self.reader.read_event();
        let read = read.map_err(|error| failed(self.file, &error))?;
        if read != Some(EventType::FormatDescription) {
            return Err(fatal(format!(
                "'{}' does not begin as it should",
                self.file
            )));
        }
        self.description_end = self.reader.position();
        let mut description = self.reader.bytes().to_vec();
        event::as_sent_description(&mut description, position == FIRST_POSITION);
        self.ready.push_back(description);
        Ok(())
    }

    /// The next event to send. `None`: there was nothing new for so long, or all is [sent](Self::is_at_end).
    ///
    /// # Errors
    /// 1236, and those of files: nothing more can be sent.
    pub fn next_event(&mut self, wait: Duration) -> Result<Option<Vec<u8>>> {
        let began = Instant::now();
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.sent_at = Instant::now();
                return Ok(Some(event));
            }
            self.check_first(FIRST_POSITION.max(self.reader.start()))?;
            let (newest, end) = self.binlog.written();
            let is_newest = self.file == newest;
            self.is_at_end = is_newest && self.reader.position() >= end;
            if self.is_at_end {
                if let Some(period) = self.heartbeat
                    && self.sent_at.elapsed() >= period
                {
                    self.ready.push_back(self.heartbeat_event());
                    continue;
                }
                let left = wait.saturating_sub(began.elapsed());
                if left.is_zero() {
                    return Ok(None);
                }
                waiting(|| self.binlog.await_written((newest, end), left));
                continue;
            }
            let before = self.reader.position();
            let read = self.reader.read_event();
            match read.map_err(|error| failed(self.file, &error))? {
                // A file that is complete.
                None if !is_newest => self.next_file()?,
                None => {
                    return Err(fatal(format!(
                        "'{}' cannot be read from {before} on",
                        self.file
                    )));
                }
                Some(event) => {
                    if self.is_wanted(event, before) {
                        self.sent_at = Instant::now();
                        return Ok(Some(self.reader.bytes().to_vec()));
                    }
                }
            }
        }
    }

    /// The position that the client asks for lies inside of the event that was read last, which begins at `start`: it
    /// is answered as MySQL does, which takes what stands there for an event.
    fn check_first(&self, start: u64) -> Result<()> {
        let (first, file) = (self.first, self.file);
        if first <= start || first >= self.reader.position() {
            return Ok(());
        }
        let (known, read) = (self.description_end, first + HEADER_BYTES as u64);
        Err(fatal(format!(
            "bogus data in log event; the first event '{file}' at {first}, the last event read from './{file}' at \
             {known}, the last byte read from './{file}' at {read}."
        )))
    }

    /// Whether the last answer was that there is nothing more by now.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    fn is_wanted(&mut self, event: EventType, start: u64) -> bool {
        if event == EventType::GtidLog
            && let Some((gtid, bytes)) = GtidLog::read(self.reader.body())
            && self.has.contains(gtid)
        {
            self.skipped_to = start + bytes;
        }
        event != EventType::Stop && start >= self.first && start >= self.skipped_to
    }

    fn next_file(&mut self) -> Result<()> {
        let file = self.file;
        let (next, path) = self.binlog.with(|running| {
            let numbers = running.files.numbers();
            let next = numbers.iter().find(|number| **number > file);
            let next = next.ok_or_else(|| fatal(format!("there is no file behind '{file}'")))?;
            // What is gone has not been sent.
            if *next != file.next() {
                return Err(fatal(format!("the file behind '{file}' was removed")));
            }
            Ok((*next, running.files.path(*next)))
        })?;
        self.reader = open(next, path)?;
        (self.file, self.first, self.skipped_to) = (next, FIRST_POSITION, 0);
        self.begin_file(FIRST_POSITION)
    }

    fn heartbeat_event(&self) -> Vec<u8> {
        let header = EventHeader::new(0, self.server_id);
        let heartbeat = Heartbeat::new(self.file.to_string());
        event::alone(&header, &heartbeat, self.reader.position())
    }
}
