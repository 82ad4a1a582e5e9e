//! Chunks: how the log's bytes lie in a segment.
//!
//! ```text
//!  0         4       6       8       16           20             24      28         32
//!  | crc32c  | magic | codec | LSN   | raw length | stored bytes | epoch | segment  | stored bytes ... | zeros |
//!                                                                                                      4 KiB boundary
//! ```
//!
//! A chunk is what one flush writes: whole frames, compressed (LZ4) when that saves a block. It begins at a block and
//! is padded to the next, so **no block that holds acknowledged commits is ever written again**. A torn write can only
//! damage what was not acknowledged. The price is half a block for each flush; a device writes whole blocks anyway.
//!
//! A chunk is the log's next one if its checksum is right, its LSN is where the last one ended, and its epoch is not
//! older than the last one's. Anything else at its place (zeros, a chunk of the segment's earlier life, half a chunk)
//! is the end of the log.

use crate::log::bytes::Damaged;
use crate::log::log_file::BLOCK_BYTES;
use crate::page::Lsn;

const MAGIC: u16 = 0x5EAF;

/// Bytes before the stored ones.
pub(super) const CHUNK_HEADER_BYTES: usize = 32;

/// How the stored bytes are to be read.
mod codec {
    pub(super) const PLAIN: u16 = 0;
    pub(super) const LZ4: u16 = 1;
}

/// What a chunk says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChunkHeader {
    checksum: u32,
    codec: u16,
    /// Of the first byte.
    pub(super) lsn: Lsn,
    /// Bytes of log.
    pub(super) raw_bytes: usize,
    stored_bytes: usize,
    pub(super) epoch: u32,
    /// Sequence number of the segment.
    pub(super) segment: u32,
}

impl ChunkHeader {
    /// The header at the beginning of a block, if it looks like one. Whether it is one, [`decode`](Self::decode) says.
    pub(super) fn read(block: &[u8]) -> Option<ChunkHeader> {
        let head = block.first_chunk::<CHUNK_HEADER_BYTES>()?;
        let u32_at =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if u16::from_le_bytes([head[4], head[5]]) != MAGIC {
            return None;
        }
        Some(ChunkHeader {
            checksum: u32_at(0),
            codec: u16::from_le_bytes([head[6], head[7]]),
            lsn: Lsn(u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32),
            raw_bytes: u32_at(16) as usize,
            stored_bytes: u32_at(20) as usize,
            epoch: u32_at(24),
            segment: u32_at(28),
        })
    }

    /// Bytes of the chunk in its segment.
    pub(super) fn bytes_on_disk(&self) -> u64 {
        (CHUNK_HEADER_BYTES as u64 + self.stored_bytes as u64).next_multiple_of(BLOCK_BYTES)
    }

    /// The log's bytes in the chunk, which `chunk` holds completely.
    pub(super) fn decode(&self, chunk: &[u8], max_raw_bytes: usize) -> Result<Vec<u8>, Damaged> {
        let end = CHUNK_HEADER_BYTES + self.stored_bytes;
        let checked = chunk.get(4..end).ok_or(Damaged)?;
        if crc32c::crc32c(checked) != self.checksum || self.raw_bytes > max_raw_bytes {
            return Err(Damaged);
        }
        let stored = &chunk[CHUNK_HEADER_BYTES..end];
        match self.codec {
            codec::PLAIN if stored.len() == self.raw_bytes => Ok(stored.to_vec()),
            codec::LZ4 => {
                let mut raw = vec![0; self.raw_bytes];
                match lz4_flex::block::decompress_into(stored, &mut raw) {
                    Ok(length) if length == raw.len() => Ok(raw),
                    _ => Err(Damaged),
                }
            }
            _ => Err(Damaged),
        }
    }
}

/// Bytes that a buffer for chunks of up to `raw_bytes` must have.
pub(super) fn buffer_bytes(raw_bytes: usize) -> usize {
    let stored = lz4_flex::block::get_maximum_output_size(raw_bytes);
    (CHUNK_HEADER_BYTES + stored).next_multiple_of(BLOCK_BYTES as usize)
}

/// Bytes of log of which a chunk takes at most `room` bytes, however badly they compress.
pub(super) fn surely_fits(room: usize) -> usize {
    // In the worst case LZ4 adds a tenth and a few bytes.
    const OTHERS: usize = CHUNK_HEADER_BYTES + 64;
    room.saturating_sub(OTHERS) * 10 / 11
}

/// Makes a chunk at the beginning of `buffer`. Returns its bytes on disk.
pub(super) fn encode(buffer: &mut [u8], raw: &[u8], lsn: Lsn, epoch: u32, segment: u32) -> usize {
    let (head, body) = buffer.split_at_mut(CHUNK_HEADER_BYTES);
    // What fits in a block cannot be made to take less than one.
    let compressible = CHUNK_HEADER_BYTES + raw.len() > BLOCK_BYTES as usize;
    let compressed = if compressible {
        lz4_flex::block::compress_into(raw, body).ok()
    } else {
        None
    };
    let (codec, stored_bytes) = match compressed {
        Some(bytes) if bytes < raw.len() => (codec::LZ4, bytes),
        _ => {
            body[..raw.len()].copy_from_slice(raw);
            (codec::PLAIN, raw.len())
        }
    };
    head[4..6].copy_from_slice(&MAGIC.to_le_bytes());
    head[6..8].copy_from_slice(&codec.to_le_bytes());
    head[8..16].copy_from_slice(&lsn.0.to_le_bytes());
    head[16..20].copy_from_slice(&(raw.len() as u32).to_le_bytes());
    head[20..24].copy_from_slice(&(stored_bytes as u32).to_le_bytes());
    head[24..28].copy_from_slice(&epoch.to_le_bytes());
    head[28..32].copy_from_slice(&segment.to_le_bytes());
    let end = CHUNK_HEADER_BYTES + stored_bytes;
    let checksum = crc32c::crc32c(&buffer[4..end]);
    buffer[..4].copy_from_slice(&checksum.to_le_bytes());
    let padded = end.next_multiple_of(BLOCK_BYTES as usize);
    buffer[end..padded].fill(0);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(raw: &[u8], blocks: usize) {
        let mut buffer = vec![0xAA; buffer_bytes(raw.len())];
        let bytes = encode(&mut buffer, raw, Lsn(1 << 40), 3, 9);
        assert_eq!(bytes, blocks * BLOCK_BYTES as usize);
        let header = ChunkHeader::read(&buffer).unwrap();
        assert_eq!(
            (header.lsn, header.epoch, header.segment),
            (Lsn(1 << 40), 3, 9)
        );
        assert_eq!(header.bytes_on_disk(), bytes as u64);
        assert_eq!(header.decode(&buffer, raw.len()).unwrap(), raw);
        for byte in (0..CHUNK_HEADER_BYTES + 100.min(raw.len())).chain([CHUNK_HEADER_BYTES]) {
            let mut damaged = buffer.clone();
            damaged[byte] ^= 0x10;
            let read = ChunkHeader::read(&damaged).map(|header| header.decode(&damaged, 1 << 20));
            assert!(!matches!(read, Some(Ok(_))), "byte {byte}");
        }
    }

    #[test]
    fn what_surely_fits_fits() {
        for room in (BLOCK_BYTES as usize..1 << 20).step_by(BLOCK_BYTES as usize) {
            assert!(buffer_bytes(surely_fits(room)) <= room, "{room}");
        }
    }

    #[test]
    fn a_chunk_reads_as_it_was_written_and_a_damaged_one_does_not() {
        round_trip(b"a single short frame", 1);
        round_trip(&[7; 100_000], 1);
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        let noise: Vec<u8> = (0..10_000).map(|_| next()).collect();
        round_trip(&noise, 3);
    }
}
