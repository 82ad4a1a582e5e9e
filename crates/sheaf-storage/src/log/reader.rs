//! Reading the log from where recovery begins to its end.

use std::collections::BTreeMap;

use crate::disk::{AlignedBuffer, STRETCH_BYTES};
use crate::error::Result;
use crate::log::chunk::ChunkHeader;
use crate::log::control::Control;
use crate::log::log_file::{BLOCK_BYTES, HEAD_BYTES, LogFile};
use crate::page::Lsn;

/// A segment in its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    /// Segments are numbered in the order of the log.
    pub(super) sequence: u32,
    pub(super) slot: u32,
    pub(super) first_lsn: Lsn,
}

/// Where the log ends, and so where it goes on.
#[derive(Clone, Debug)]
pub(crate) struct LogEnd {
    /// The segments that were read, in order; the last one is to be written on.
    pub(super) segments: Vec<Segment>,
    /// Segments before these that are still in the file, in order: of use to archives only.
    pub(super) earlier: Vec<Segment>,
    /// Bytes used of the last segment.
    pub(super) used: u64,
    pub(crate) lsn: Lsn,
}

impl LogEnd {
    /// The end of a log that was not read.
    pub(crate) fn empty() -> LogEnd {
        Self::at(Lsn(0))
    }

    /// The end of a log that begins at `lsn`, and is empty.
    pub(super) fn at(lsn: Lsn) -> LogEnd {
        LogEnd {
            segments: Vec::new(),
            earlier: Vec::new(),
            used: 0,
            lsn,
        }
    }

    /// About how many bytes of the file were read to find it.
    pub(crate) fn bytes_read(&self, file: &LogFile) -> u64 {
        let others = self.segments.len().saturating_sub(1) as u64;
        others * file.segment_bytes + self.used
    }
}

/// Finds chunks in segments. Reads the file a stretch at a time.
pub(super) struct ChunkReader {
    file: LogFile,
    /// The stretch that was read last, and where it begins.
    window: Option<(u64, AlignedBuffer)>,
}

/// See the [module](self).
pub(crate) struct LogReader {
    chunks: ChunkReader,
    redo_start: Lsn,
    /// First chunks of all slots by sequence number and epoch.
    first_chunks: BTreeMap<(u32, u32), (u32, Lsn)>,
    end: LogEnd,
    epoch: u32,
}

impl LogReader {
    pub(crate) fn open(file: &LogFile, control: &Control) -> Result<LogReader> {
        let mut first_chunks = BTreeMap::new();
        for slot in 0..file.slots()? {
            let block = file.read(file.slot_offset(slot), BLOCK_BYTES as usize)?;
            if let Some(header) = ChunkHeader::read(&block) {
                first_chunks.insert((header.segment, header.epoch), (slot, header.lsn));
            }
        }
        let mut reader = LogReader {
            chunks: ChunkReader::new(file),
            redo_start: control.redo_start,
            first_chunks,
            end: LogEnd::at(control.redo_start),
            epoch: 0,
        };
        reader.enter_first(control)?;
        Ok(reader)
    }

    /// Finds the segment that recovery begins in.
    fn enter_first(&mut self, control: &Control) -> Result<()> {
        let sequence = control.first_segment;
        for segment in self.candidates(sequence) {
            if segment.first_lsn <= control.redo_start
                && self.chunks.chunk_at(segment, 0)?.is_some()
            {
                self.end.segments.push(segment);
                self.end.lsn = segment.first_lsn;
                return Ok(());
            }
        }
        Err(self.chunks.file.damaged(format!(
            "its segment {sequence}, in which recovery begins, cannot be read"
        )))
    }

    /// What may be the segment of this number: slots whose first chunks say so, those of the latest openings first.
    fn candidates(&self, sequence: u32) -> Vec<Segment> {
        let first_chunks = self
            .first_chunks
            .range((sequence, 0)..=(sequence, u32::MAX));
        let candidates = first_chunks.map(|(_, &(slot, first_lsn))| Segment {
            sequence,
            slot,
            first_lsn,
        });
        candidates.rev().collect()
    }

    /// The next bytes of the log, whole frames, and the LSN of the first; `None` at the end. What lies before the redo
    /// start is delivered, too, if it is in the same segment.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<(Lsn, Vec<u8>)>> {
        let Some(&segment) = self.end.segments.last() else {
            return Ok(None);
        };
        if let Some(chunk) = self.continuation(segment, self.end.used)? {
            return Ok(Some(chunk));
        }
        // No room was left in the segment, or this is the end of the log.
        for next in self.candidates(segment.sequence + 1) {
            let used = std::mem::replace(&mut self.end.used, 0);
            if let Some(chunk) = self.continuation(next, 0)? {
                self.end.segments.push(next);
                return Ok(Some(chunk));
            }
            self.end.used = used;
        }
        Ok(None)
    }

    /// The chunk at this place, if it is the log's next one.
    fn continuation(&mut self, segment: Segment, used: u64) -> Result<Option<(Lsn, Vec<u8>)>> {
        let Some((header, raw)) = self.chunks.chunk_at(segment, used)? else {
            return Ok(None);
        };
        if header.lsn != self.end.lsn || header.epoch < self.epoch {
            return Ok(None);
        }
        self.end.used = used + header.bytes_on_disk();
        self.end.lsn = Lsn(header.lsn.0 + raw.len() as u64);
        self.epoch = header.epoch;
        Ok(Some((header.lsn, raw)))
    }

    /// Where the log ends. To be asked when [`next_chunk`](Self::next_chunk) has said so.
    ///
    /// # Errors
    /// The log ends before the place where recovery begins: a part of it is lost.
    pub(crate) fn end(mut self) -> Result<LogEnd> {
        if self.end.lsn < self.redo_start {
            return Err(self.chunks.file.damaged(format!(
                "it ends at {}, but is needed from {} on",
                self.end.lsn.0, self.redo_start.0
            )));
        }
        self.find_earlier_segments();
        Ok(self.end)
    }

    fn find_earlier_segments(&mut self) {
        let Some(&(mut next)) = self.end.segments.first() else {
            return;
        };
        while let Some(sequence) = next.sequence.checked_sub(1) {
            let candidates = self.candidates(sequence);
            let before = candidates
                .into_iter()
                .find(|segment| segment.first_lsn < next.first_lsn);
            let Some(segment) = before else {
                break;
            };
            self.end.earlier.insert(0, segment);
            next = segment;
        }
    }
}

impl ChunkReader {
    pub(super) fn new(file: &LogFile) -> ChunkReader {
        ChunkReader {
            file: file.clone(),
            window: None,
        }
    }

    /// Reads anew what it may have read already.
    pub(super) fn forget(&mut self) {
        self.window = None;
    }

    /// The valid chunk of a segment at this place, if there is one.
    pub(super) fn chunk_at(
        &mut self,
        segment: Segment,
        used: u64,
    ) -> Result<Option<(ChunkHeader, Vec<u8>)>> {
        let segment_bytes = self.file.segment_bytes;
        if used + BLOCK_BYTES > segment_bytes {
            return Ok(None);
        }
        let offset = self.file.slot_offset(segment.slot) + used;
        let block = self.bytes(offset, BLOCK_BYTES)?;
        let Some(header) = ChunkHeader::read(&block) else {
            return Ok(None);
        };
        if header.segment != segment.sequence || used + header.bytes_on_disk() > segment_bytes {
            return Ok(None);
        }
        let bytes = self.bytes(offset, header.bytes_on_disk())?;
        let max_raw_bytes = super::max_chunk_bytes(segment_bytes);
        Ok(header
            .decode(&bytes, max_raw_bytes)
            .ok()
            .map(|raw| (header, raw)))
    }

    /// Bytes of the file, read a stretch at a time.
    fn bytes(&mut self, offset: u64, length: u64) -> Result<Vec<u8>> {
        let end = offset + length;
        let file_end = self.file.slot_offset(self.file.slots()?);
        let mut bytes = Vec::with_capacity(length as usize);
        let mut position = offset;
        while position < end {
            let start = position - position % STRETCH_BYTES;
            if self.window.as_ref().is_none_or(|(at, _)| *at != start) {
                let length = (file_end - start).min(STRETCH_BYTES);
                self.window = Some((start, self.file.read(start, length as usize)?));
            }
            let Some((start, window)) = &self.window else {
                continue;
            };
            let from = (position - start) as usize;
            let to = (end - start).min(window.len() as u64) as usize;
            bytes.extend_from_slice(&window[from..to]);
            position = start + to as u64;
        }
        Ok(bytes)
    }
}

const _: () = assert!(HEAD_BYTES < STRETCH_BYTES);
