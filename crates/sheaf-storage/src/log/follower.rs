//! Reading the log while it is being written: for archives and backups.
//!
//! A [`LogFollower`] reads chunk after chunk, up to what is durable. It keeps the log's segments from a position on,
//! whatever checkpoints would free, until it is told that what it has read is safe elsewhere. Durable chunks are never
//! written again while their segment is kept, so it needs no lock while it reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::log::Log;
use crate::log::reader::{ChunkReader, Segment};
use crate::page::Lsn;

/// Positions from which on the log is kept.
#[derive(Default)]
pub(super) struct Holds {
    positions: BTreeMap<u64, Lsn>,
    next_number: u64,
}

impl Holds {
    /// The oldest position that somebody needs.
    pub(super) fn oldest(&self) -> Lsn {
        let oldest = self.positions.values().min();
        oldest.copied().unwrap_or(Lsn(u64::MAX))
    }
}

/// Keeps the log from a position on until it is dropped.
struct LogHold {
    log: Arc<Log>,
    number: u64,
}

impl LogHold {
    /// Keeps what is left of the log now, and what will be written.
    fn all(log: &Arc<Log>) -> LogHold {
        let holds = &mut log.writer.lock().holds;
        let number = holds.next_number;
        holds.next_number += 1;
        holds.positions.insert(number, Lsn(0));
        LogHold {
            log: log.clone(),
            number,
        }
    }

    /// What lies before `position` is not needed any more.
    fn move_to(&self, position: Lsn) {
        let mut writer = self.log.writer.lock();
        writer.holds.positions.insert(self.number, position);
    }
}

impl Drop for LogHold {
    fn drop(&mut self) {
        self.log.writer.lock().holds.positions.remove(&self.number);
    }
}

/// See the [module](self).
pub(crate) struct LogFollower {
    log: Arc<Log>,
    hold: LogHold,
    chunks: ChunkReader,
    /// What ends here or before is not delivered.
    position: Lsn,
    place: Option<Place>,
    /// Of the last chunk: the next one is not older.
    epoch: u32,
}

/// Where the next chunk begins.
#[derive(Clone, Copy)]
struct Place {
    segment: Segment,
    used: u64,
    lsn: Lsn,
}

impl LogFollower {
    /// Follows the log from `position` on, or from its oldest part that is left if that is younger: see
    /// [`position`](Self::position). From there on the log is kept.
    pub(crate) fn new(log: &Arc<Log>, position: Lsn) -> LogFollower {
        let hold = LogHold::all(log);
        let position = position.max(log.oldest());
        hold.move_to(position);
        LogFollower {
            log: log.clone(),
            hold,
            chunks: ChunkReader::new(&log.file),
            position,
            place: None,
            epoch: 0,
        }
    }

    /// All that lies before was delivered, or not asked for.
    pub(crate) fn position(&self) -> Lsn {
        self.position
    }

    /// What lies before `position` is not needed any more.
    pub(crate) fn release(&self, position: Lsn) {
        self.hold.move_to(position);
    }

    /// The next bytes of the log that are durable, whole frames, with the position of the first; `None` if there are no
    /// more for now. The first of them may begin before the position that was asked for.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<(Lsn, Vec<u8>)>> {
        while self.position < self.log.flushed() {
            let (lsn, bytes) = self.next_chunk()?;
            let end = Lsn(lsn.0 + bytes.len() as u64);
            if end > self.position {
                self.position = end;
                return Ok(Some((lsn, bytes)));
            }
        }
        Ok(None)
    }

    /// The chunk at the place, or at the beginning of the next segment. There is one.
    fn next_chunk(&mut self) -> Result<(Lsn, Vec<u8>)> {
        let place = match self.place {
            Some(place) => place,
            None => {
                let first = self.log.segment_with(self.position);
                Place::at_start(first.ok_or_else(|| self.unreadable())?)
            }
        };
        if let Some(chunk) = self.chunk_at(place)? {
            return Ok(chunk);
        }
        // What was read before may be older than what is durable now.
        self.chunks.forget();
        if let Some(chunk) = self.chunk_at(place)? {
            return Ok(chunk);
        }
        let next = self.log.segment_after(place.segment.sequence);
        match next.map(Place::at_start) {
            Some(next) if next.lsn == place.lsn => {
                let chunk = self.chunk_at(next)?;
                chunk.ok_or_else(|| self.unreadable())
            }
            _ => Err(self.unreadable()),
        }
    }

    fn chunk_at(&mut self, place: Place) -> Result<Option<(Lsn, Vec<u8>)>> {
        let Some((header, bytes)) = self.chunks.chunk_at(place.segment, place.used)? else {
            return Ok(None);
        };
        if header.lsn != place.lsn || header.epoch < self.epoch {
            return Ok(None);
        }
        self.epoch = header.epoch;
        self.place = Some(Place {
            segment: place.segment,
            used: place.used + header.bytes_on_disk(),
            lsn: Lsn(place.lsn.0 + bytes.len() as u64),
        });
        Ok(Some((header.lsn, bytes)))
    }

    fn unreadable(&self) -> StorageError {
        let position = self.position.0;
        let reason = format!("it cannot be read from {position} on, while it is being written");
        self.log.file.damaged(reason)
    }
}

impl Place {
    fn at_start(segment: Segment) -> Place {
        Place {
            segment,
            used: 0,
            lsn: segment.first_lsn,
        }
    }
}

impl Log {
    /// The oldest position that is still in the file.
    pub(crate) fn oldest(&self) -> Lsn {
        let writer = self.writer.lock();
        let first = writer.segments.front();
        first.map_or(Lsn(writer.pending_start), |segment| segment.first_lsn)
    }

    /// The segment that has this position.
    fn segment_with(&self, lsn: Lsn) -> Option<Segment> {
        let writer = self.writer.lock();
        writer.segments.get(writer.place_of(lsn)).copied()
    }

    fn segment_after(&self, sequence: u32) -> Option<Segment> {
        let writer = self.writer.lock();
        let next = |segment: &&Segment| segment.sequence == sequence + 1;
        writer.segments.iter().find(next).copied()
    }
}
