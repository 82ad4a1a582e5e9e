//! COMPRESS and its relatives: byte strings in the format of zlib (RFC 1950).
//!
//! ```text
//!   length of the whole, 4 bytes    zlib's stream    '.' if that would end with a space
//! ```
//!
//! The length comes first, lowest byte first, and its two highest bits mean nothing. So it is known how long a value
//! will be before it is made, and one that is longer than `max_allowed_packet` is not made at all. An empty string is
//! an empty string. What is damaged is NULL, with a warning.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder};
use datafusion_common::Result;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use sheaf_types::error::codes;

use super::limits::Turns;
use super::result_array::{byte_strings, ints};
use super::types::field;
use super::{Call, EvaluationError, Function};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "compress",
        (1, 1),
        |_| Ok(field::bytes()),
        |call| {
            let (values, turns) = (call.bytes(0)?, call.turns());
            byte_strings(call, |row, out| compress(values.get(row)?, out, &turns))
        },
    )
    .makes_bytes(),
    Function::new("uncompress", (1, 1), |_| Ok(field::bytes()), uncompress).makes_bytes(),
    Function::strict(
        "uncompressed_length",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            let values = call.bytes(0)?;
            let is_damaged = |bytes: &[u8]| !bytes.is_empty() && bytes.len() <= LENGTH_BYTES;
            for row in 0..call.rows() {
                if values.get(row).is_some_and(is_damaged) {
                    call.warn(damaged())?;
                }
            }
            ints(call, |row| {
                let length = length_and_stream(values.get(row)?);
                Some(length.map_or(0, |(length, _)| length as i64))
            })
        },
    ),
];

/// In front of the stream.
const LENGTH_BYTES: usize = 4;

/// The bits of the length that mean something.
const LENGTH_MASK: u32 = 0x3FFF_FFFF;

/// What is made at a time, in bytes.
const PIECE_BYTES: usize = 32 << 10;

fn length_and_stream(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, stream) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let length = u32::from_le_bytes(*length) & LENGTH_MASK;
    (!stream.is_empty()).then_some((length as usize, stream))
}

/// `None`: the value is too long to say its length, or the statement has been told to stop.
fn compress(bytes: &[u8], out: &mut Vec<u8>, turns: &Turns<'_>) -> Option<()> {
    if bytes.is_empty() {
        return Some(());
    }
    let length = u32::try_from(bytes.len()).ok()?;
    if length > LENGTH_MASK {
        return None;
    }
    out.extend(length.to_le_bytes());
    let mut stream = Compress::new(Compression::default(), true);
    for piece in turns.byte_stretches(bytes) {
        let mut rest = piece;
        while !rest.is_empty() {
            let before = stream.total_in();
            out.reserve(PIECE_BYTES);
            stream.compress_vec(rest, out, FlushCompress::None).ok()?;
            let taken = usize::try_from(stream.total_in() - before).ok()?;
            rest = rest.get(taken..)?;
        }
    }
    loop {
        out.reserve(PIECE_BYTES);
        let status = stream.compress_vec(&[], out, FlushCompress::Finish).ok()?;
        if status == Status::StreamEnd {
            break;
        }
    }
    if out.last() == Some(&b' ') {
        // Columns that cut spaces off would damage it.
        out.push(b'.');
    }
    Some(())
}

fn uncompress(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, turns) = (call.bytes(0)?, call.turns());
    let mut account = call.account();
    let mut builder = BinaryBuilder::with_capacity(call.rows(), 0);
    let mut out = Vec::new();
    for row in 0..call.rows() {
        account.check()?;
        let Some(bytes) = values.get(row) else {
            builder.append_null();
            continue;
        };
        out.clear();
        let made = match length_and_stream(bytes) {
            _ if bytes.is_empty() => Ok(()),
            None => Err(damaged()),
            Some((length, _)) if length > account.value_bytes() => {
                Err(too_long(account.value_bytes()))
            }
            Some((length, stream)) => {
                account.book(length)?;
                inflate(stream, length, &mut out, &turns)
            }
        };
        match made {
            Ok(()) => builder.append_value(&out),
            Err(error) => {
                call.warn(error)?;
                builder.append_null();
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Appends what a stream stands for, `most` bytes and no more.
fn inflate(
    stream: &[u8],
    most: usize,
    out: &mut Vec<u8>,
    turns: &Turns<'_>,
) -> std::result::Result<(), EvaluationError> {
    let mut inflater = Decompress::new(true);
    let mut piece = vec![0; PIECE_BYTES.min(most + 1)];
    let mut rest = stream;
    while !turns.is_over_now() {
        let (taken, made) = (inflater.total_in(), inflater.total_out());
        let status = inflater.decompress(rest, &mut piece, FlushDecompress::None);
        let status = status.map_err(|_| damaged())?;
        let taken = (inflater.total_in() - taken) as usize;
        let made = (inflater.total_out() - made) as usize;
        rest = &rest[taken..];
        if made > most - out.len() {
            return Err(no_room());
        }
        out.extend_from_slice(&piece[..made]);
        match status {
            Status::StreamEnd => break,
            // The stream has no end.
            _ if taken == 0 && made == 0 => {
                return Err(match out.len() < most {
                    true => damaged(),
                    false => no_room(),
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// 1259.
fn damaged() -> EvaluationError {
    EvaluationError::new(codes::ZLIB_Z_DATA_ERROR, "ZLIB: Input data corrupted")
}

/// 1258: the value is longer than it says.
fn no_room() -> EvaluationError {
    EvaluationError::new(
        codes::ZLIB_Z_BUF_ERROR,
        "ZLIB: Not enough room in the output buffer (probably, length of uncompressed data was corrupted)",
    )
}

/// 1256.
fn too_long(most: usize) -> EvaluationError {
    EvaluationError::new(
        codes::TOO_BIG_FOR_UNCOMPRESS,
        format!(
            "Uncompressed data size too large; the maximum size is {most} (probably, length of uncompressed data was \
             corrupted)"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_access::CancelFlag;

    #[test]
    fn what_is_compressed_comes_back() {
        let cancel = CancelFlag::new();
        let turns = Turns::new(&cancel);
        for length in [1, 2, PIECE_BYTES, PIECE_BYTES + 1, 300_000] {
            for step in [0, 1, 7] {
                let bytes: Vec<u8> = (0..length).map(|at| (at * step % 251) as u8).collect();
                let mut packed = Vec::new();
                compress(&bytes, &mut packed, &turns).unwrap();
                let (said, stream) = length_and_stream(&packed).unwrap();
                assert_eq!(said, length);
                let mut unpacked = Vec::new();
                inflate(stream, said, &mut unpacked, &turns).unwrap();
                assert_eq!(unpacked, bytes);
                unpacked.clear();
                let short = inflate(stream, said - 1, &mut unpacked, &turns);
                assert_eq!(short, Err(no_room()));
                unpacked.clear();
                let cut = inflate(&stream[..stream.len() - 2], said, &mut unpacked, &turns);
                assert!(cut.is_err());
            }
        }
    }
}
