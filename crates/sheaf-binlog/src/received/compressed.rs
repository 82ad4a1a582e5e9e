//! Events that MariaDB compresses one by one (`log_bin_compress`): the text of QUERY, or the rows of an event.
//!
//! ```text
//!   | header of the event | what stands in front | 0x80 + bytes of the length (1) | length, high first (1..4) | zlib |
//! ```

use std::io::{self, Read};

use flate2::read::ZlibDecoder;

use super::cursor::Cursor;
use crate::event::{HEADER_BYTES, LENGTH_PLACE, TYPE_PLACE};

/// The types of compressed events, and what they are without it.
const TYPES: [(u8, Front, u8); 7] = [
    (165, Front::OfQuery, 2),
    (166, Front::OfRows(Bitmaps(1), Extra(false)), 23),
    (167, Front::OfRows(Bitmaps(2), Extra(false)), 24),
    (168, Front::OfRows(Bitmaps(1), Extra(false)), 25),
    (169, Front::OfRows(Bitmaps(1), Extra(true)), 30),
    (170, Front::OfRows(Bitmaps(2), Extra(true)), 31),
    (171, Front::OfRows(Bitmaps(1), Extra(true)), 32),
];

/// Sets of columns in front of rows.
#[derive(Clone, Copy)]
struct Bitmaps(usize);

/// Whether there is more in front of the number of columns: a length, and what it is of.
#[derive(Clone, Copy)]
struct Extra(bool);

/// What stands in front of the compressed bytes.
#[derive(Clone, Copy)]
enum Front {
    OfQuery,
    OfRows(Bitmaps, Extra),
}

/// QUERY: the thread and the time that it took.
const THREAD_AND_TIME_BYTES: usize = 8;
/// QUERY: the number of an error.
const ERROR_BYTES: usize = 2;
/// Rows: the number of the table, and flags.
const TABLE_AND_FLAGS_BYTES: usize = 8;

const IS_COMPRESSED: u8 = 0x80;
/// Of the first byte: the algorithm, 0 for zlib.
const ALGORITHM: u8 = 0x70;
const LENGTH_BYTES: u8 = 0x07;

/// An event without checksum as it would be without compression. `None`: it has none.
///
/// # Errors
/// The bytes do not hold, or the event would be longer than `max_bytes`.
pub fn uncompressed(event: &[u8], max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    let code = event.get(TYPE_PLACE);
    let Some((_, front, plain)) = TYPES.iter().find(|(number, ..)| Some(number) == code) else {
        return Ok(None);
    };
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let parts = event.split_at_checked(HEADER_BYTES);
    let parts = parts.and_then(|(header, body)| {
        let (front, length, compressed) = split(*front, body)?;
        Some((header, front, length, compressed))
    });
    let cut = || invalid("a compressed event cannot be read");
    let (header, front, length, compressed) = parts.ok_or_else(cut)?;
    let whole = (header.len() + front.len()).saturating_add(length);
    if whole > max_bytes {
        return Err(invalid("a compressed event is too long"));
    }
    let mut made = [header, front].concat();
    made[TYPE_PLACE] = *plain;
    // One byte more than it says, so that it is found to be longer.
    let mut decoder = ZlibDecoder::new(compressed).take(length as u64 + 1);
    decoder.read_to_end(&mut made)?;
    if made.len() != whole {
        return Err(invalid(
            "a compressed event has another length than it says",
        ));
    }
    let whole = u32::try_from(whole).map_err(|_| cut())?;
    made[LENGTH_PLACE..LENGTH_PLACE + 4].copy_from_slice(&whole.to_le_bytes());
    Ok(Some(made))
}

/// What stands in front of the compressed bytes, how long they were, and they.
fn split(front: Front, body: &[u8]) -> Option<(&[u8], usize, &[u8])> {
    let mut cursor = Cursor(body);
    match front {
        Front::OfQuery => {
            cursor.take(THREAD_AND_TIME_BYTES)?;
            let database = usize::from(cursor.byte()?);
            cursor.take(ERROR_BYTES)?;
            let status = usize::from(cursor.u16()?);
            // The name of the database ends with a zero.
            cursor.take(status + database + 1)?;
        }
        Front::OfRows(Bitmaps(bitmaps), Extra(has_extra)) => {
            cursor.take(TABLE_AND_FLAGS_BYTES)?;
            if has_extra {
                let length = usize::from(cursor.u16()?);
                cursor.take(length.checked_sub(size_of::<u16>())?)?;
            }
            let columns = usize::try_from(cursor.packed()?).ok()?;
            cursor.take(columns.div_ceil(8).checked_mul(bitmaps)?)?;
        }
    }
    let in_front = body.get(..body.len() - cursor.0.len())?;
    let first = cursor.byte()?;
    if first & IS_COMPRESSED == 0 || first & ALGORITHM != 0 {
        return None;
    }
    let bytes = usize::from(first & LENGTH_BYTES);
    let length = (1..=4).contains(&bytes).then(|| cursor.big(bytes))??;
    Some((in_front, usize::try_from(length).ok()?, cursor.0))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn event(code: u8, front: &[u8], behind: &[u8]) -> Vec<u8> {
        let mut event = vec![0; HEADER_BYTES];
        event[TYPE_PLACE] = code;
        event.extend_from_slice(front);
        event.extend_from_slice(behind);
        let length = event.len() as u32;
        event[LENGTH_PLACE..LENGTH_PLACE + 4].copy_from_slice(&length.to_le_bytes());
        event
    }

    fn record(said: usize, bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("into memory");
        let mut record = vec![IS_COMPRESSED | 2];
        record.extend_from_slice(&(said as u16).to_be_bytes());
        record.extend(encoder.finish().expect("into memory"));
        record
    }

    #[test]
    fn events_are_as_they_were() {
        let text = [b"INSERT ".as_slice(), &[b'x'; 500]].concat();
        // Two bytes of status, and a database of three.
        let query = [&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 2, 0, 9, 9][..], b"abc\0"].concat();
        // Nine columns.
        let rows = [&[7; 8][..], &[9, 255, 1]].concat();
        let update = [&[7; 8][..], &[9, 255, 1, 255, 1]].concat();
        let extra = [&[7; 8][..], &[4, 0, 5, 5], &[9, 255, 1]].concat();
        for (code, plain, front) in [
            (165, 2, &query),
            (166, 23, &rows),
            (167, 24, &update),
            (168, 25, &rows),
            (169, 30, &extra),
        ] {
            let compressed = event(code, front, &record(text.len(), &text));
            let made = uncompressed(&compressed, 1000).expect("it holds");
            assert_eq!(made, Some(event(plain, front, &text)), "{code}");
            assert!(uncompressed(&compressed, 500).is_err(), "{code}: too long");
            for end in HEADER_BYTES..compressed.len() {
                assert!(
                    uncompressed(&compressed[..end], 1000).is_err(),
                    "{code}: cut"
                );
            }
            for said in [text.len() - 1, text.len() + 1] {
                let other = event(code, front, &record(said, &text));
                assert!(uncompressed(&other, 1000).is_err(), "{code}: {said}");
            }
        }
        let plain = event(2, &query, &text);
        assert_eq!(uncompressed(&plain, 10).expect("it is no such event"), None);
    }
}
