//! Reading a file of ours, event after event.

use std::io::{self, Read};

use crate::event::{
    self, CHECKSUM_BYTES, END_PLACE, EventType, FLAGS_PLACE, HEADER_BYTES, LENGTH_PLACE,
    SERVER_PLACE, TYPE_PLACE,
};
use crate::file::MAGIC;

/// See the [module](self).
pub struct EventReader<F> {
    file: F,
    /// Where the last event begins, and where the next one does.
    start: u64,
    position: u64,
    /// The bytes of the last one.
    event: Vec<u8>,
}

impl<F: Read> EventReader<F> {
    pub fn new(file: F) -> EventReader<F> {
        EventReader {
            file,
            start: 0,
            position: 0,
            event: Vec::new(),
        }
    }

    /// Reads what stands in front of the first event. `false`: something else stands there.
    ///
    /// # Errors
    /// Those of reading.
    pub fn begin(&mut self) -> io::Result<bool> {
        self.position = MAGIC.len() as u64;
        self.event.clear();
        Ok(self.read(MAGIC.len())? && self.event == MAGIC)
    }

    /// Reads the next event, and returns its type. `None`: there is none that is whole, or its type is none that we
    /// write.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read_event(&mut self) -> io::Result<Option<EventType>> {
        self.event.clear();
        if !self.read(HEADER_BYTES)? {
            return Ok(None);
        }
        let length = self.word(LENGTH_PLACE) as usize;
        let Some(rest) = length
            .checked_sub(HEADER_BYTES)
            .filter(|rest| *rest >= CHECKSUM_BYTES)
        else {
            return Ok(None);
        };
        if !self.read(rest)? {
            return Ok(None);
        }
        let end = self.position + length as u64;
        if self.word(END_PLACE) != end as u32 || !event::is_sound(&self.event) {
            return Ok(None);
        }
        (self.start, self.position) = (self.position, end);
        Ok(EventType::of(self.event[TYPE_PLACE]))
    }

    /// Where the event begins that was read last.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Where the next event begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The server that the event is of.
    pub fn server_id(&self) -> u32 {
        self.word(SERVER_PLACE)
    }

    /// All bytes of the event.
    pub fn bytes(&self) -> &[u8] {
        &self.event
    }

    /// Its [flags](crate::event::flags).
    pub fn flags(&self) -> u16 {
        let flags = self
            .event
            .get(FLAGS_PLACE..)
            .and_then(|rest| rest.first_chunk());
        flags.map_or(0, |flags| u16::from_le_bytes(*flags))
    }

    /// What lies between its header and its checksum.
    pub fn body(&self) -> &[u8] {
        let end = self.event.len().saturating_sub(CHECKSUM_BYTES);
        self.event.get(HEADER_BYTES..end).unwrap_or_default()
    }

    /// Reads so many bytes behind those that are there. `false`: they are not in the file.
    fn read(&mut self, bytes: usize) -> io::Result<bool> {
        // Takes no more memory than there is to be read, whatever a damaged length says.
        let read = self
            .file
            .by_ref()
            .take(bytes as u64)
            .read_to_end(&mut self.event)?;
        Ok(read == bytes)
    }

    /// A number of four bytes in the header.
    fn word(&self, place: usize) -> u32 {
        let bytes = self.event.get(place..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }
}
