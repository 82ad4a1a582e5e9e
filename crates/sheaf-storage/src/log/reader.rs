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
    /// Bytes used of the last segment.
    pub(super) used: u64,
    pub(crate) lsn: Lsn,
}

impl LogEnd {
    /// The end of a log that was not read.
    pub(crate) fn empty() -> LogEnd {
        LogEnd {
            segments: Vec::new(),
            used: 0,
            lsn: Lsn(0),
        }
    }

    /// About how many bytes of the file were read to find it.
    pub(crate) fn bytes_read(&self, file: &LogFile) -> u64 {
        let others = self.segments.len().saturating_sub(1) as u64;
        others * file.segment_bytes + self.used
    }
}

/// See the [module](self).
pub(crate) struct LogReader {
    file: LogFile,
    redo_start: Lsn,
    /// First chunks of all slots by sequence number and epoch.
    first_chunks: BTreeMap<(u32, u32), (u32, Lsn)>,
    end: LogEnd,
    epoch: u32,
    /// A stretch of the file that was read last.
    window: Option<(u64, AlignedBuffer)>,
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
            file: file.clone(),
            redo_start: control.redo_start,
            first_chunks,
            end: LogEnd {
                segments: Vec::new(),
                used: 0,
                lsn: control.redo_start,
            },
            epoch: 0,
            window: None,
        };
        reader.enter_first(control)?;
        Ok(reader)
    }

    /// Finds the segment that recovery begins in.
    fn enter_first(&mut self, control: &Control) -> Result<()> {
        let sequence = control.first_segment;
        let candidates = self
            .first_chunks
            .range((sequence, 0)..=(sequence, u32::MAX));
        let candidates: Vec<_> = candidates.map(|(_, &first)| first).rev().collect();
        for (slot, first_lsn) in candidates {
            if first_lsn <= control.redo_start && self.chunk_at(slot, 0, sequence)?.is_some() {
                self.end.segments.push(Segment {
                    sequence,
                    slot,
                    first_lsn,
                });
                self.end.lsn = first_lsn;
                return Ok(());
            }
        }
        Err(self.file.damaged(format!(
            "its segment {sequence}, in which recovery begins, cannot be read"
        )))
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
        let sequence = segment.sequence + 1;
        let candidates = self
            .first_chunks
            .range((sequence, 0)..=(sequence, u32::MAX));
        let candidates: Vec<_> = candidates.map(|(_, &first)| first).rev().collect();
        for (slot, first_lsn) in candidates {
            let next = Segment {
                sequence,
                slot,
                first_lsn,
            };
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
        let Some((header, raw)) = self.chunk_at(segment.slot, used, segment.sequence)? else {
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

    /// The valid chunk of a segment at this place, if there is one.
    fn chunk_at(
        &mut self,
        slot: u32,
        used: u64,
        sequence: u32,
    ) -> Result<Option<(ChunkHeader, Vec<u8>)>> {
        let segment_bytes = self.file.segment_bytes;
        if used + BLOCK_BYTES > segment_bytes {
            return Ok(None);
        }
        let offset = self.file.slot_offset(slot) + used;
        let block = self.bytes(offset, BLOCK_BYTES)?;
        let Some(header) = ChunkHeader::read(&block) else {
            return Ok(None);
        };
        if header.segment != sequence || used + header.bytes_on_disk() > segment_bytes {
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

    /// Where the log ends. To be asked when [`next_chunk`](Self::next_chunk) has said so.
    ///
    /// # Errors
    /// The log ends before the place where recovery begins: a part of it is lost.
    pub(crate) fn end(self) -> Result<LogEnd> {
        if self.end.lsn < self.redo_start {
            return Err(self.file.damaged(format!(
                "it ends at {}, but is needed from {} on",
                self.end.lsn.0, self.redo_start.0
            )));
        }
        Ok(self.end)
    }
}

const _: () = assert!(HEAD_BYTES < STRETCH_BYTES);
