//! Packed log: chunks one after the other, as an archive keeps them.
//!
//! The chunks have the format of those in a segment, but as many frames as a chunk may have, whatever was flushed
//! together; their epoch and their segment are 0. A reader gets the frames of a range back, or an error: nothing here
//! is the "end of the log".

use crate::error::{Result, StorageError};
use crate::log::MAX_CHUNK_BYTES;
use crate::log::chunk::{self, ChunkHeader};
use crate::log::frame;
use crate::page::Lsn;

/// Makes packed log.
pub(crate) struct Packer {
    /// Where the frames begin that are not packed yet.
    lsn: Option<Lsn>,
    frames: Vec<u8>,
    packed_bytes: usize,
    chunks: Vec<u8>,
    buffer: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> Packer {
        Packer {
            lsn: None,
            frames: Vec::new(),
            packed_bytes: 0,
            chunks: Vec::new(),
            buffer: vec![0; chunk::buffer_bytes(MAX_CHUNK_BYTES)],
        }
    }

    /// Bytes of log so far.
    pub(crate) fn log_bytes(&self) -> usize {
        self.packed_bytes + self.frames.len()
    }

    /// Adds whole frames, which begin at `lsn`, where the ones before them ended. They are at most what a chunk holds.
    pub(crate) fn add(&mut self, lsn: Lsn, frames: &[u8]) -> Result<()> {
        if self.frames.len() + frames.len() > MAX_CHUNK_BYTES {
            self.pack();
        }
        let start = *self.lsn.get_or_insert(lsn);
        if start.0 + self.frames.len() as u64 != lsn.0 || frames.len() > MAX_CHUNK_BYTES {
            return Err(damaged(format!("its frames at {} do not follow", lsn.0)));
        }
        self.frames.extend_from_slice(frames);
        Ok(())
    }

    fn pack(&mut self) {
        let Some(lsn) = self.lsn else {
            return;
        };
        let bytes = chunk::encode(&mut self.buffer, &self.frames, lsn, 0, 0);
        self.chunks.extend_from_slice(&self.buffer[..bytes]);
        self.packed_bytes += self.frames.len();
        self.lsn = Some(Lsn(lsn.0 + self.frames.len() as u64));
        self.frames.clear();
    }

    /// The packed log; `None` if nothing was added.
    pub(crate) fn finish(mut self) -> Result<Option<Vec<u8>>> {
        if !self.frames.is_empty() {
            self.pack();
        }
        Ok((!self.chunks.is_empty()).then_some(self.chunks))
    }
}

/// Calls `visit` with the frames of each chunk of packed log, and where they begin.
///
/// # Errors
/// `Archive`: these are not the bytes of packed log that begins at `start` and ends at `end`. What `visit` says.
pub(crate) fn unpack(
    packed: &[u8],
    start: Lsn,
    end: Lsn,
    mut visit: impl FnMut(Lsn, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut expected = start;
    let mut rest = packed;
    while !rest.is_empty() {
        let header = ChunkHeader::read(rest).filter(|header| header.lsn == expected);
        let header = header.ok_or_else(|| damaged(format!("it has no log at {}", expected.0)))?;
        let frames = header
            .decode(rest, MAX_CHUNK_BYTES)
            .map_err(|_| damaged(format!("the log at {} is damaged", expected.0)))?;
        visit(expected, &frames)?;
        expected = Lsn(expected.0 + frames.len() as u64);
        let chunk_bytes = header.bytes_on_disk().min(rest.len() as u64);
        rest = &rest[chunk_bytes as usize..];
    }
    if expected != end {
        return Err(damaged(format!(
            "an object that should end at {} ends at {}",
            end.0, expected.0
        )));
    }
    Ok(())
}

/// Calls `visit` with each of these whole frames, and the positions of its first byte and behind its last.
pub(crate) fn for_each_frame(
    start: Lsn,
    frames: &[u8],
    mut visit: impl FnMut(Lsn, Lsn, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut at = 0;
    while at < frames.len() {
        let lsn = Lsn(start.0 + at as u64);
        let length = frame::length(&frames[at..])
            .map_err(|_| damaged(format!("the record at {} is damaged", lsn.0)))?;
        let frame = &frames[at..at + length];
        at += length;
        visit(lsn, Lsn(start.0 + at as u64), frame)?;
    }
    Ok(())
}

fn damaged(reason: String) -> StorageError {
    StorageError::Archive { reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::change::TransactionId;

    /// Frames of some length, and where they end.
    fn frames(start: Lsn, count: u64) -> (Vec<u8>, Lsn) {
        let mut frames = Vec::new();
        for i in 0..count {
            frame::put_commit(&mut frames, TransactionId(i), i * 1_000_003, None);
        }
        let end = Lsn(start.0 + frames.len() as u64);
        (frames, end)
    }

    #[test]
    fn packed_log_unpacks_to_what_was_packed() {
        let mut packer = Packer::new();
        let (mut lsn, mut all) = (Lsn(77), Vec::new());
        for count in [1, 30_000, 70_000, 2, 60_000] {
            let (frames, end) = frames(lsn, count);
            packer.add(lsn, &frames).unwrap();
            all.extend_from_slice(&frames);
            lsn = end;
        }
        assert_eq!(packer.log_bytes(), all.len());
        let packed = packer.finish().unwrap().unwrap();
        let mut found = Vec::new();
        unpack(&packed, Lsn(77), lsn, |at, frames| {
            assert_eq!(at.0, 77 + found.len() as u64);
            found.extend_from_slice(frames);
            for_each_frame(at, frames, |_, _, frame| {
                assert!(frame::decode(frame).is_ok());
                Ok(())
            })
        })
        .unwrap();
        assert_eq!(found, all);
    }

    #[test]
    fn damaged_or_foreign_log_is_refused() {
        let (frames, end) = frames(Lsn(1), 500);
        let mut packer = Packer::new();
        packer.add(Lsn(1), &frames).unwrap();
        assert!(packer.add(Lsn(9), &frames).is_err());
        let packed = packer.finish().unwrap().unwrap();
        let read = |packed: &[u8], start, end| unpack(packed, start, end, |_, _| Ok(()));
        assert!(read(&packed, Lsn(1), end).is_ok());
        assert!(read(&packed, Lsn(2), end).is_err());
        assert!(read(&packed, Lsn(1), Lsn(end.0 + 1)).is_err());
        assert!(read(&[], Lsn(1), end).is_err());
        for byte in 0..200 {
            let mut damaged = packed.clone();
            damaged[byte] ^= 4;
            assert!(read(&damaged, Lsn(1), end).is_err(), "byte {byte}");
        }
        assert_eq!(Packer::new().finish().unwrap(), None);
    }
}
