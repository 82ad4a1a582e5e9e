//! FORMAT_DESCRIPTION: the first event of each file. It says which server wrote the file, and how to read the
//! others.

use super::{Event, EventType, HEADER_BYTES, flags};

/// The format of the log: since MySQL 5.0.
const FORMAT: u16 = 4;
/// Bytes of the version.
const VERSION_BYTES: usize = 50;
/// Events have a CRC-32.
const CRC32: u8 = 1;

/// Bytes in front of the variable part of each type of event, from type 1 on: MySQL 9.7's. Types that are not written
/// have theirs, too, so that readers know where to find what they ask for by number.
const FIXED_BYTES: [u8; 42] = [
    0, 13, 0, 8, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 99, 0, 4, 26, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 10,
    10, 10, 42, 42, 0, 18, 52, 0, 10, 40, 0, 0,
];

/// What a file says of itself.
#[derive(Debug, Clone)]
pub struct FormatDescription {
    version: String,
    /// When the server started, in the first file after that; otherwise 0.
    started: u32,
    is_in_use: bool,
}

impl FormatDescription {
    /// `version` is the server's, of which 50 bytes count. `started`: seconds since 1970 in the first file after the
    /// server's start, which ends all temporary tables; 0 in others.
    pub fn new(version: &str, started: u32) -> FormatDescription {
        FormatDescription {
            version: version.to_string(),
            started,
            is_in_use: false,
        }
    }

    /// Of a file that is being written.
    pub fn in_use(mut self) -> FormatDescription {
        self.is_in_use = true;
        self
    }
}

impl Event for FormatDescription {
    fn event_type(&self) -> EventType {
        EventType::FormatDescription
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&FORMAT.to_le_bytes());
        let mut version = [0; VERSION_BYTES];
        for (to, from) in version.iter_mut().zip(self.version.bytes()) {
            *to = from;
        }
        out.extend_from_slice(&version);
        out.extend_from_slice(&self.started.to_le_bytes());
        out.push(HEADER_BYTES as u8);
        out.extend_from_slice(&FIXED_BYTES);
        out.push(CRC32);
    }

    fn flags(&self) -> u16 {
        match self.is_in_use {
            true => flags::IN_USE,
            false => 0,
        }
    }
}
