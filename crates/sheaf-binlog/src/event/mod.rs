//! Events: what a binary log consists of.
//!
//! ```text
//!   | time (4) | type (1) | server (4) | length (4) | end position (4) | flags (2) | body | CRC-32 (4) |
//! ```
//!
//! The length and the checksum include all. An event is made without its place: [`push`] appends it, and
//! [`seal`] enters positions and checksums when the place is known. So a transaction can be made before the one in
//! front of it has ended.
//!
//! | file | what it holds |
//! |---|---|
//! | `control` | XID, ROTATE, STOP, HEARTBEAT, PREVIOUS_GTIDS |
//! | `format_description` | FORMAT_DESCRIPTION |
//! | `gtid_log` | GTID_LOG |
//! | `query` | QUERY: BEGIN and DDL |
//! | [`rows`] | TABLE_MAP, WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS |

mod control;
mod format_description;
pub(crate) mod gtid_log;
mod query;
pub mod rows;

pub use control::{Heartbeat, PreviousGtids, Rotate, Stop, Xid};
pub use format_description::FormatDescription;
pub use gtid_log::GtidLog;
pub use query::{Query, QueryContext};

/// Bytes before the body.
pub const HEADER_BYTES: usize = 19;
/// Bytes behind the body: CRC-32.
pub const CHECKSUM_BYTES: usize = 4;

/// Where the type, the server, the length, the end position and the flags stand in the header.
pub(crate) const TYPE_PLACE: usize = 4;
pub(crate) const SERVER_PLACE: usize = 5;
pub(crate) const LENGTH_PLACE: usize = 9;
pub(crate) const END_PLACE: usize = 13;
pub(crate) const FLAGS_PLACE: usize = 17;
/// Where FORMAT_DESCRIPTION says when the server started, in the body.
const CREATED_PLACE: usize = 52;

/// Flags of an event.
pub mod flags {
    /// FORMAT_DESCRIPTION: the file was not closed. It does not count in the checksum.
    pub const IN_USE: u16 = 0x1;
    /// The statement is about a temporary table of its thread.
    pub const THREAD_SPECIFIC: u16 = 0x4;
    /// No `USE` belongs in front of the statement.
    pub const SUPPRESS_USE: u16 = 0x8;
    /// Made up for one follower: it stands in no file.
    pub const ARTIFICIAL: u16 = 0x20;
    /// A follower that does not know the event may pass it by.
    pub const IGNORABLE: u16 = 0x80;
}

/// Types of events by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EventType {
    Query = 2,
    Stop = 3,
    Rotate = 4,
    FormatDescription = 15,
    Xid = 16,
    TableMap = 19,
    Heartbeat = 27,
    WriteRows = 30,
    UpdateRows = 31,
    DeleteRows = 32,
    GtidLog = 33,
    PreviousGtids = 35,
}

impl EventType {
    const ALL: [EventType; 12] = [
        EventType::Query,
        EventType::Stop,
        EventType::Rotate,
        EventType::FormatDescription,
        EventType::Xid,
        EventType::TableMap,
        EventType::Heartbeat,
        EventType::WriteRows,
        EventType::UpdateRows,
        EventType::DeleteRows,
        EventType::GtidLog,
        EventType::PreviousGtids,
    ];

    /// The type of this number. `None`: it is none that we write.
    pub fn of(number: u8) -> Option<EventType> {
        EventType::ALL
            .into_iter()
            .find(|known| *known as u8 == number)
    }
}

/// When and where an event was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    /// Seconds since 1970.
    pub time: u32,
    pub server_id: u32,
}

impl EventHeader {
    pub fn new(time: u32, server_id: u32) -> EventHeader {
        EventHeader { time, server_id }
    }
}

/// What an event says.
pub trait Event {
    fn event_type(&self) -> EventType;

    fn put_body(&self, out: &mut Vec<u8>);

    /// Its [`flags`].
    fn flags(&self) -> u16 {
        0
    }
}

/// Appends an event without its end position and its checksum.
pub fn push(out: &mut Vec<u8>, header: &EventHeader, event: &dyn Event) {
    let start = out.len();
    out.extend_from_slice(&header.time.to_le_bytes());
    out.push(event.event_type() as u8);
    out.extend_from_slice(&header.server_id.to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&event.flags().to_le_bytes());
    event.put_body(out);
    out.extend_from_slice(&[0; CHECKSUM_BYTES]);
    let length = (out.len() - start) as u32;
    out[start + LENGTH_PLACE..][..4].copy_from_slice(&length.to_le_bytes());
}

/// An event of its own with this end position: for a follower, and in no file.
pub fn alone(header: &EventHeader, event: &dyn Event, end: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    push(&mut bytes, header, event);
    seal_one(&mut bytes, end);
    bytes
}

/// A FORMAT_DESCRIPTION of a file as it is sent: the file is not said to be in use. To a follower that begins in the
/// middle of the file, where no server has started, it says nothing of a start and has no place.
pub fn as_sent_description(event: &mut [u8], is_whole_file: bool) {
    if let Some(flags) = event.get_mut(FLAGS_PLACE) {
        *flags &= !(flags::IN_USE as u8);
    }
    if is_whole_file {
        return;
    }
    let created = HEADER_BYTES + CREATED_PLACE;
    if let Some(created) = event.get_mut(created..created + 4) {
        created.fill(0);
    }
    seal_one(event, 0);
}

/// Enters the end positions and checksums of events that [`push`] has appended; the first begins at `position`.
pub fn seal(events: &mut [u8], position: u64) {
    let mut position = position;
    let mut rest = events;
    while let Some(length) = rest.get(LENGTH_PLACE..LENGTH_PLACE + 4) {
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let Some((event, behind)) = rest.split_at_mut_checked(length.max(HEADER_BYTES)) else {
            return;
        };
        position += length as u64;
        seal_one(event, position);
        rest = behind;
    }
}

/// Enters the end position and the checksum of one event. Positions beyond 4 GiB lose their high bits, as MySQL's do.
/// A follower that is sent an event of another place wants to see 0.
pub fn seal_one(event: &mut [u8], end: u64) {
    event[END_PLACE..END_PLACE + 4].copy_from_slice(&(end as u32).to_le_bytes());
    let Some(body) = event.len().checked_sub(CHECKSUM_BYTES) else {
        return;
    };
    let checksum = checksum(&event[..body]);
    event[body..].copy_from_slice(&checksum.to_le_bytes());
}

/// Takes the checksum from an event: for a follower that has not read yet that events have one.
pub fn cut_checksum(event: &mut Vec<u8>) {
    let length = event.len().saturating_sub(CHECKSUM_BYTES);
    if length >= HEADER_BYTES {
        event.truncate(length);
        event[LENGTH_PLACE..][..4].copy_from_slice(&(length as u32).to_le_bytes());
    }
}

/// Whether an event has the checksum of its bytes.
pub(crate) fn is_sound(event: &[u8]) -> bool {
    let Some(body) = event.len().checked_sub(CHECKSUM_BYTES) else {
        return false;
    };
    event[body..] == checksum(&event[..body]).to_le_bytes()
}

/// The checksum of an event without its last four bytes. A file that is in use has the checksum of one that is not, so
/// that closing it changes one bit.
fn checksum(event: &[u8]) -> u32 {
    let is_description = event.get(4) == Some(&(EventType::FormatDescription as u8));
    let in_use = flags::IN_USE as u8;
    let mut crc = crc32fast::Hasher::new();
    if is_description && event[FLAGS_PLACE] & in_use != 0 {
        crc.update(&event[..FLAGS_PLACE]);
        crc.update(&[event[FLAGS_PLACE] & !in_use]);
        crc.update(&event[FLAGS_PLACE + 1..]);
    } else {
        crc.update(event);
    }
    crc.finalize()
}
