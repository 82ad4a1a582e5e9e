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
    /// The oldest position that is still needed.
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

    /// All that can be delivered by now ends here.
    pub(crate) fn durable_end(&self) -> Lsn {
        self.log.flushed()
    }

    /// Followers of changes have read all that was delivered.
    pub(crate) fn note_followed(&self) {
        self.log.note_followed(self.position);
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

/// Whether a segment holds the log from its beginning to exactly `end`.
fn is_whole(chunks: &mut ChunkReader, segment: Segment, end: Lsn) -> Result<bool> {
    let (mut used, mut lsn, mut epoch) = (0, segment.first_lsn, 0);
    while lsn < end {
        match chunks.chunk_at(segment, used)? {
            Some((header, bytes)) if header.lsn == lsn && header.epoch >= epoch => {
                used += header.bytes_on_disk();
                lsn.0 += bytes.len() as u64;
                epoch = header.epoch;
            }
            _ => return Ok(false),
        }
    }
    Ok(lsn == end)
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

    /// Lets go of segments that cannot be followed from `position` on.
    ///
    /// Segments from before the redo start may be worth archiving, but recovery has not read them. They may be what an
    /// opening wrote that crashed before it was durable, and that others have continued in another way.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) fn check_from(&self, position: Lsn) -> Result<()> {
        let segments: Vec<Segment> = self.writer.lock().segments.iter().copied().collect();
        let mut chunks = ChunkReader::new(&self.file);
        let mut first = segments.partition_point(|segment| segment.first_lsn < self.read_from);
        while first > 0 && segments[first].first_lsn > position {
            let end = segments[first].first_lsn;
            if !is_whole(&mut chunks, segments[first - 1], end)? {
                self.forget_before(segments[first]);
                break;
            }
            first -= 1;
        }
        Ok(())
    }

    fn forget_before(&self, first: Segment) {
        let mut writer = self.writer.lock();
        while let Some(segment) = writer.segments.front().copied()
            && segment.sequence < first.sequence
        {
            writer.segments.pop_front();
            writer.free_slots.push(segment.slot);
        }
        self.note_free_bytes(&writer);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::disk::simulated::{SimulatedDisk, SimulationOptions};
    use crate::log::change::TransactionId;
    use crate::log::control::Control;
    use crate::log::log_file::LogFile;
    use crate::log::{
        LOG_START, LogOptions, LogReader, MAX_BUFFER_BYTES, MIN_SEGMENT_BYTES, frame,
    };
    use crate::random::Random;

    const OPTIONS: LogOptions = LogOptions {
        limit_bytes: 1 << 30,
        archive_lag_bytes: Some(1 << 30),
        follow_lag_bytes: None,
        buffer_bytes: MAX_BUFFER_BYTES,
    };

    fn reopen(file: &LogFile) -> Arc<Log> {
        let control = Control::read(file).unwrap().unwrap();
        let mut reader = LogReader::open(file, &control).unwrap();
        while reader.next_chunk().unwrap().is_some() {}
        let end = reader.end().unwrap();
        Arc::new(Log::resume(file.clone(), OPTIONS, control, end).unwrap())
    }

    /// A log of some segments, of which only the last is still needed. With its disk, where each segment begins, and
    /// all bytes.
    fn log_of_four_segments() -> (Arc<SimulatedDisk>, LogFile, Vec<Segment>, Vec<u8>) {
        let simulated = SimulatedDisk::new(SimulationOptions::new(3));
        let disk: Arc<dyn Disk> = simulated.clone();
        let file = Log::file(&disk, disk.open("sheaf.log").unwrap(), MIN_SEGMENT_BYTES);
        let log = Log::create(file.clone(), OPTIONS, 1, None).unwrap();
        let (mut random, mut all) = (Random::new(4), Vec::new());
        while log.writer.lock().segments.len() < 4 {
            let mut frames = Vec::new();
            for _ in 0..2_000 {
                let transaction = TransactionId(random.next());
                frame::put_commit(&mut frames, transaction, random.next(), None);
            }
            all.extend_from_slice(&frames);
            log.flush_to(log.append(&frames)).unwrap();
        }
        let segments = log.writer.lock().segments.iter().copied().collect();
        log.advance(log.end(), |control| {
            control.state = crate::log::LogState::InUse
        })
        .unwrap();
        assert_eq!(log.writer.lock().segments.len(), 1);
        (simulated, file, segments, all)
    }

    #[test]
    fn what_is_left_of_the_log_can_be_followed_from_its_beginning() {
        let (_, file, _, all) = log_of_four_segments();
        let log = reopen(&file);
        log.check_from(LOG_START).unwrap();
        let mut follower = LogFollower::new(&log, LOG_START);
        assert_eq!(follower.position(), LOG_START);
        let mut found = Vec::new();
        while let Some((lsn, frames)) = follower.next().unwrap() {
            assert_eq!(lsn.0, LOG_START.0 + found.len() as u64);
            found.extend_from_slice(&frames);
        }
        assert!(found == all);
    }

    #[test]
    fn a_segment_that_recovery_does_not_need_and_that_is_not_whole_is_let_go() {
        let (disk, file, segments, all) = log_of_four_segments();
        let in_the_middle = file.slot_offset(segments[1].slot) + MIN_SEGMENT_BYTES / 2;
        disk.flip_stored_bit(disk.open("sheaf.log").unwrap(), in_the_middle, 0);
        let log = reopen(&file);
        assert_eq!(log.oldest(), LOG_START);
        // A check that begins behind the damage does not look at it.
        log.check_from(segments[2].first_lsn).unwrap();
        assert_eq!(log.oldest(), LOG_START);
        log.check_from(LOG_START).unwrap();
        assert_eq!(log.oldest(), segments[2].first_lsn);
        let mut follower = LogFollower::new(&log, LOG_START);
        let (start, mut found) = (follower.position(), Vec::new());
        while let Some((_, frames)) = follower.next().unwrap() {
            found.extend_from_slice(&frames);
        }
        assert!(found == all[(start.0 - LOG_START.0) as usize..]);
    }
}
