//! TRANSACTION_PAYLOAD: the events of a transaction, compressed (`binlog_transaction_compression` of MySQL).
//!
//! ```text
//!   | field (1..9), length (1..9), value | ... | 0 | events without checksums, compressed |
//! ```
//!
//! The events are made one by one, so that a large transaction takes the memory of its largest event.

use std::io::{self, Read};

use zstd::stream::read::Decoder;

use super::cursor::Cursor;
use crate::event::{HEADER_BYTES, LENGTH_PLACE};

/// Fields of the header.
mod field {
    pub(super) const END: u64 = 0;
    pub(super) const PAYLOAD_BYTES: u64 = 1;
    pub(super) const COMPRESSION: u64 = 2;
    pub(super) const UNCOMPRESSED_BYTES: u64 = 3;
}

mod compression {
    pub(super) const ZSTD: u64 = 0;
    pub(super) const NONE: u64 = 255;
}

/// Logarithm of the bytes that a decoder keeps to refer to, at most: 8 MiB, enough for levels up to 19 of 22.
const MAX_WINDOW_LOG: u32 = 23;

/// The compressed events of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct TransactionPayload<'e> {
    compression: u64,
    bytes: &'e [u8],
}

impl<'e> TransactionPayload<'e> {
    /// Reads the body of the event. `None`: the bytes do not hold.
    pub(super) fn read(body: &'e [u8]) -> Option<TransactionPayload<'e>> {
        let mut cursor = Cursor(body);
        let (mut compression, mut bytes) = (compression::NONE, None);
        loop {
            let field = cursor.packed()?;
            if field == field::END {
                break;
            }
            let mut value = Cursor(cursor.string()?);
            match field {
                field::PAYLOAD_BYTES => bytes = Some(value.packed()?),
                field::COMPRESSION => compression = value.packed()?,
                field::UNCOMPRESSED_BYTES => {}
                // What is not known may be passed by.
                _ => {}
            }
        }
        let is_all = bytes.is_none_or(|bytes| bytes == cursor.0.len() as u64);
        is_all.then_some(TransactionPayload {
            compression,
            bytes: cursor.0,
        })
    }

    /// The events, none of them longer than `max_bytes`.
    ///
    /// # Errors
    /// They are compressed in a way that is not known.
    pub fn events(&self, max_bytes: usize) -> io::Result<PayloadEvents<'e>> {
        let source: Box<dyn Read + 'e> = match self.compression {
            compression::NONE => Box::new(self.bytes),
            compression::ZSTD => {
                let mut decoder = Decoder::with_buffer(self.bytes)?;
                decoder.window_log_max(MAX_WINDOW_LOG)?;
                Box::new(decoder)
            }
            other => {
                let message = format!("events are compressed in a way that is not known ({other})");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        };
        Ok(PayloadEvents {
            source,
            max_bytes,
            event: Vec::new(),
        })
    }
}

/// The events of a payload, one after the other.
pub struct PayloadEvents<'e> {
    source: Box<dyn Read + 'e>,
    max_bytes: usize,
    event: Vec<u8>,
}

impl PayloadEvents<'_> {
    /// The next event, without a checksum. `None`: there is no other one.
    ///
    /// # Errors
    /// The bytes do not hold, or an event is too long.
    pub fn read_event(&mut self) -> io::Result<Option<&[u8]>> {
        self.event.clear();
        self.fill(HEADER_BYTES)?;
        if self.event.is_empty() {
            return Ok(None);
        }
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "an event is cut");
        let length = self.event.get(LENGTH_PLACE..).ok_or_else(cut)?;
        let length = length.first_chunk::<4>().ok_or_else(cut)?;
        let length = u32::from_le_bytes(*length) as usize;
        if !(HEADER_BYTES..=self.max_bytes).contains(&length) {
            let message = format!("an event of {length} bytes, of {} at most", self.max_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.fill(length)?;
        match self.event.len() == length {
            true => Ok(Some(&self.event)),
            false => Err(cut()),
        }
    }

    /// Reads up to so many bytes of an event, fewer where there are no more.
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        let missing = bytes.saturating_sub(self.event.len()) as u64;
        let source = &mut self.source;
        source.take(missing).read_to_end(&mut self.event)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::put_packed;

    fn event(body: &[u8]) -> Vec<u8> {
        let mut event = vec![7; HEADER_BYTES];
        let length = (HEADER_BYTES + body.len()) as u32;
        event[LENGTH_PLACE..LENGTH_PLACE + 4].copy_from_slice(&length.to_le_bytes());
        event.extend_from_slice(body);
        event
    }

    fn payload(compression: u64, bytes: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        let fields = [
            (field::COMPRESSION, compression),
            // Of a later version.
            (9, 77),
            (field::PAYLOAD_BYTES, bytes.len() as u64),
        ];
        for (field, value) in fields {
            let mut number = Vec::new();
            put_packed(&mut number, value);
            put_packed(&mut body, field);
            put_packed(&mut body, number.len() as u64);
            body.extend_from_slice(&number);
        }
        put_packed(&mut body, field::END);
        body.extend_from_slice(bytes);
        body
    }

    fn events_of(body: &[u8], max_bytes: usize) -> io::Result<Vec<Vec<u8>>> {
        let payload = TransactionPayload::read(body).expect("a payload");
        let mut events = payload.events(max_bytes)?;
        let mut found = Vec::new();
        while let Some(event) = events.read_event()? {
            found.push(event.to_vec());
        }
        Ok(found)
    }

    #[test]
    fn compressed_events_are_read_as_they_were() {
        let made = [event(b""), event(&[1; 300]), event(b"last")];
        let bytes = made.concat();
        let compressed = zstd::encode_all(bytes.as_slice(), 3).expect("it is compressed");
        for body in [payload(0, &compressed), payload(255, &bytes)] {
            assert_eq!(events_of(&body, 400).expect("events"), made);
            assert!(events_of(&body, 300).is_err(), "one is too long");
            for end in 0..body.len() {
                let piece = TransactionPayload::read(&body[..end]);
                assert!(piece.is_none(), "its length is another one");
            }
        }
        let cut = &compressed[..compressed.len() - 3];
        assert!(events_of(&payload(0, cut), 400).is_err());
        assert!(events_of(&payload(255, &bytes[..bytes.len() - 1]), 400).is_err());
        assert!(events_of(&payload(1, &bytes), 400).is_err(), "not known");
        let huge = zstd::encode_all(vec![0; 1 << 20].as_slice(), 19).expect("it is compressed");
        assert!(events_of(&payload(0, &huge), 400).is_err());
    }
}
