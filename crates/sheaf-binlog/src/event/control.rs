//! Events about the file and the connection, and the end of a transaction.

use super::{Event, EventType, flags};
use crate::gtid::GtidSet;

/// Where the events of a file begin.
const FIRST_POSITION: u64 = 4;

/// The end of a transaction: its number in the storage engine.
#[derive(Debug, Clone, Copy)]
pub struct Xid(pub u64);

impl Event for Xid {
    fn event_type(&self) -> EventType {
        EventType::Xid
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }
}

/// The log goes on in another file.
#[derive(Debug, Clone)]
pub struct Rotate {
    position: u64,
    file: String,
    is_artificial: bool,
}

impl Rotate {
    /// At the end of a file.
    pub fn to(file: impl Into<String>) -> Rotate {
        Rotate {
            position: FIRST_POSITION,
            file: file.into(),
            is_artificial: false,
        }
    }

    /// For a follower, in front of a file of which it reads from a position on.
    pub fn artificial(file: impl Into<String>, position: u64) -> Rotate {
        Rotate {
            position,
            file: file.into(),
            is_artificial: true,
        }
    }
}

impl Event for Rotate {
    fn event_type(&self) -> EventType {
        EventType::Rotate
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(self.file.as_bytes());
    }

    fn flags(&self) -> u16 {
        match self.is_artificial {
            true => flags::ARTIFICIAL,
            false => 0,
        }
    }
}

/// The server was shut down.
#[derive(Debug, Clone, Copy)]
pub struct Stop;

impl Event for Stop {
    fn event_type(&self) -> EventType {
        EventType::Stop
    }

    fn put_body(&self, _: &mut Vec<u8>) {}
}

/// There is nothing new: sent to followers, and in no file.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    file: String,
}

impl Heartbeat {
    /// `file` is the one that the follower reads.
    pub fn new(file: impl Into<String>) -> Heartbeat {
        Heartbeat { file: file.into() }
    }
}

impl Event for Heartbeat {
    fn event_type(&self) -> EventType {
        EventType::Heartbeat
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.file.as_bytes());
    }
}

/// What the files before this one have.
#[derive(Debug, Clone, Copy)]
pub struct PreviousGtids<'s>(pub &'s GtidSet);

impl Event for PreviousGtids<'_> {
    fn event_type(&self) -> EventType {
        EventType::PreviousGtids
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn flags(&self) -> u16 {
        flags::IGNORABLE
    }
}
