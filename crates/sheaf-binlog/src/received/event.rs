//! An event by its type, and the statement of QUERY.

use super::cursor::Cursor;
use super::payload::TransactionPayload;
use crate::event::gtid_log::{ANOTHER_TIME, ANOTHER_VERSION, LOGICAL_CLOCK, TIME_BYTES};
use crate::event::{CHECKSUM_BYTES, FLAGS_PLACE, HEADER_BYTES, flags, is_sound};
use crate::gtid::{Gtid, Uuid};

/// Types of events by their numbers. Sheaf writes only some of them.
mod code {
    pub(super) const QUERY: u8 = 2;
    pub(super) const STOP: u8 = 3;
    pub(super) const ROTATE: u8 = 4;
    pub(super) const INTVAR: u8 = 5;
    pub(super) const FORMAT_DESCRIPTION: u8 = 15;
    pub(super) const XID: u8 = 16;
    pub(super) const TABLE_MAP: u8 = 19;
    pub(super) const WRITE_ROWS_V1: u8 = 23;
    pub(super) const UPDATE_ROWS_V1: u8 = 24;
    pub(super) const DELETE_ROWS_V1: u8 = 25;
    pub(super) const HEARTBEAT: u8 = 27;
    pub(super) const ROWS_QUERY: u8 = 29;
    pub(super) const WRITE_ROWS: u8 = 30;
    pub(super) const UPDATE_ROWS: u8 = 31;
    pub(super) const DELETE_ROWS: u8 = 32;
    pub(super) const GTID_LOG: u8 = 33;
    pub(super) const ANONYMOUS_GTID_LOG: u8 = 34;
    pub(super) const PREVIOUS_GTIDS: u8 = 35;
    pub(super) const TRANSACTION_PAYLOAD: u8 = 40;
    pub(super) const HEARTBEAT_V2: u8 = 41;
    pub(super) const MARIADB_ANNOTATE_ROWS: u8 = 160;
    pub(super) const MARIADB_CHECKPOINT: u8 = 161;
    pub(super) const MARIADB_GTID: u8 = 162;
    pub(super) const MARIADB_GTID_LIST: u8 = 163;
}

/// Names of the types that are refused, as MySQL and MariaDB call them.
const REFUSED: [(u8, &str); 11] = [
    (13, "RAND"),
    (14, "USER_VAR"),
    (17, "BEGIN_LOAD_QUERY"),
    (18, "EXECUTE_LOAD_QUERY"),
    (26, "INCIDENT"),
    (36, "TRANSACTION_CONTEXT"),
    (37, "VIEW_CHANGE"),
    (38, "XA_PREPARE"),
    (39, "PARTIAL_UPDATE_ROWS"),
    (42, "GTID_TAGGED_LOG"),
    (164, "START_ENCRYPTION"),
];

/// Where FORMAT_DESCRIPTION has the version, and its bytes.
const VERSION_PLACE: usize = 2;
const VERSION_BYTES: usize = 50;
/// FORMAT_DESCRIPTION: the algorithm of checksums, in front of its own checksum.
const NO_CHECKSUMS: u8 = 0;
/// MARIADB_GTID: no COMMIT follows.
const MARIADB_STANDALONE: u8 = 1;
/// INTVAR: what the value is.
const LAST_INSERT_ID: u8 = 1;
const INSERT_ID: u8 = 2;
/// Bytes of a GTID and what is in front of it in its event.
const GTID_BYTES: usize = 1 + 16 + 8;

/// An event of another server, with its checksum behind it or without.
#[derive(Clone, Copy, Debug)]
pub struct SourceEvent<'e> {
    header: &'e [u8],
    body: &'e [u8],
}

/// What an event says.
#[derive(Clone, Debug)]
pub enum Received<'e> {
    /// How the events behind it are to be read.
    FormatDescription {
        version: String,
        has_checksums: bool,
    },
    /// The events behind it are of this file.
    Rotate {
        file: String,
        position: u64,
    },
    /// A transaction begins. `None`: it has no identifier.
    Gtid(Option<Gtid>),
    /// A transaction of MariaDB begins. Unless it is one statement, COMMIT or XID ends it.
    MariadbGtid {
        domain: u32,
        server: u32,
        number: u64,
        is_one_statement: bool,
    },
    Query(ReceivedQuery<'e>),
    /// What the next statement of a client takes for LAST_INSERT_ID(), or gives as AUTO_INCREMENT.
    LastInsertId(u64),
    InsertId(u64),
    /// The body of a TABLE_MAP.
    TableMap(&'e [u8]),
    /// The type and the body of an event of rows.
    Rows(super::RowsKind, &'e [u8]),
    /// All events of a transaction behind its GTID.
    Payload(TransactionPayload<'e>),
    /// The transaction commits.
    Xid,
    /// There is nothing new.
    Heartbeat,
    /// It says nothing that a replica has to do.
    Nothing,
    /// It is not applied: its name.
    Refused(String),
}

impl<'e> SourceEvent<'e> {
    /// Reads the header of an event. `None`: the bytes are no event, or do not have their checksum.
    pub fn new(bytes: &'e [u8], has_checksum: bool) -> Option<SourceEvent<'e>> {
        if has_checksum && !is_sound(bytes) {
            return None;
        }
        let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
        let event = SourceEvent { header, body };
        let length = event.word(crate::event::LENGTH_PLACE);
        if length as usize != bytes.len() {
            return None;
        }
        let body = match has_checksum {
            true => body.get(..body.len().checked_sub(CHECKSUM_BYTES)?)?,
            false => body,
        };
        Some(SourceEvent { header, body })
    }

    /// Takes the checksum from an event that was found to have it.
    pub fn strip_checksum(bytes: &mut Vec<u8>) {
        let Some(length) = bytes.len().checked_sub(CHECKSUM_BYTES) else {
            return;
        };
        bytes.truncate(length);
        let place = crate::event::LENGTH_PLACE;
        if let Some(field) = bytes.get_mut(place..place + 4) {
            field.copy_from_slice(&(length as u32).to_le_bytes());
        }
    }

    /// Whether the bytes are of a FORMAT_DESCRIPTION, which says itself whether it has a checksum.
    pub fn is_description(bytes: &[u8]) -> bool {
        bytes.get(crate::event::TYPE_PLACE) == Some(&code::FORMAT_DESCRIPTION)
    }

    /// A FORMAT_DESCRIPTION. `None`: it is none, or does not have its checksum.
    pub fn description(bytes: &'e [u8]) -> Option<SourceEvent<'e>> {
        let algorithm = bytes.len().checked_sub(CHECKSUM_BYTES + 1)?;
        // Since MySQL 5.6.1 and MariaDB 5.3 it has room for a checksum, whether or not others have one.
        let has_checksum = *bytes.get(algorithm)? != NO_CHECKSUMS;
        if has_checksum && !is_sound(bytes) {
            return None;
        }
        let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
        let body = body.get(..body.len().checked_sub(CHECKSUM_BYTES)?)?;
        Some(SourceEvent { header, body })
    }

    fn word(&self, place: usize) -> u32 {
        let bytes = self.header.get(place..place + 4);
        bytes.map_or(0, |bytes| {
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        })
    }

    /// Seconds since 1970.
    pub fn time(&self) -> u32 {
        self.word(0)
    }

    pub fn server_id(&self) -> u32 {
        self.word(crate::event::SERVER_PLACE)
    }

    /// The low 32 bits of the position behind it in its file; 0 of events that are in none.
    pub fn end(&self) -> u32 {
        self.word(crate::event::END_PLACE)
    }

    fn code(&self) -> u8 {
        self.header[crate::event::TYPE_PLACE]
    }

    fn has_flag(&self, flag: u16) -> bool {
        let flags = [self.header[FLAGS_PLACE], self.header[FLAGS_PLACE + 1]];
        u16::from_le_bytes(flags) & flag != 0
    }

    /// It was made up for this replica, and is in no file.
    pub fn is_artificial(&self) -> bool {
        self.has_flag(flags::ARTIFICIAL)
    }

    /// Of an event that begins a transaction: when its first server committed it, in microseconds since 1970, and that
    /// server's version. `None`: it does not say so.
    pub fn first_commit(&self) -> Option<(u64, u32)> {
        if !matches!(self.code(), code::GTID_LOG | code::ANONYMOUS_GTID_LOG) {
            return None;
        }
        let mut cursor = Cursor(self.body.get(GTID_BYTES..)?);
        if cursor.byte()? != LOGICAL_CLOCK {
            return None;
        }
        let _clock = (cursor.u64()?, cursor.u64()?);
        let own = cursor.little(TIME_BYTES)?;
        let time = match own & ANOTHER_TIME {
            0 => own,
            _ => cursor.little(TIME_BYTES)?,
        };
        let _length = cursor.packed()?;
        let own = cursor.u32()?;
        let version = match own & ANOTHER_VERSION {
            0 => own,
            _ => cursor.u32()?,
        };
        Some((time, version))
    }

    /// What it says. `None`: the bytes do not hold.
    pub fn read(&self) -> Option<Received<'e>> {
        use super::RowsKind;
        let body = self.body;
        let mut cursor = Cursor(body);
        Some(match self.code() {
            code::FORMAT_DESCRIPTION => {
                let version = body.get(VERSION_PLACE..VERSION_PLACE + VERSION_BYTES)?;
                let end = version.iter().position(|byte| *byte == 0);
                let version = &version[..end.unwrap_or(version.len())];
                Received::FormatDescription {
                    version: String::from_utf8_lossy(version).into_owned(),
                    has_checksums: *body.last()? != NO_CHECKSUMS,
                }
            }
            code::ROTATE => Received::Rotate {
                position: cursor.u64()?,
                file: String::from_utf8(cursor.0.to_vec()).ok()?,
            },
            code::GTID_LOG => {
                cursor.byte()?;
                let server = Uuid(cursor.array()?);
                Received::Gtid(Some(Gtid::new(server, cursor.u64()?)?))
            }
            code::ANONYMOUS_GTID_LOG => Received::Gtid(None),
            code::MARIADB_GTID => {
                let (number, domain) = (cursor.u64()?, cursor.u32()?);
                Received::MariadbGtid {
                    domain,
                    server: self.server_id(),
                    number,
                    is_one_statement: cursor.byte()? & MARIADB_STANDALONE != 0,
                }
            }
            code::QUERY => Received::Query(ReceivedQuery::read(body)?),
            code::INTVAR => match (cursor.byte()?, cursor.u64()?) {
                (LAST_INSERT_ID, value) => Received::LastInsertId(value),
                (INSERT_ID, value) => Received::InsertId(value),
                _ => return None,
            },
            code::TABLE_MAP => Received::TableMap(body),
            code::WRITE_ROWS | code::WRITE_ROWS_V1 => {
                Received::Rows(RowsKind::insert(self.code() == code::WRITE_ROWS), body)
            }
            code::UPDATE_ROWS | code::UPDATE_ROWS_V1 => {
                Received::Rows(RowsKind::update(self.code() == code::UPDATE_ROWS), body)
            }
            code::DELETE_ROWS | code::DELETE_ROWS_V1 => {
                Received::Rows(RowsKind::delete(self.code() == code::DELETE_ROWS), body)
            }
            code::TRANSACTION_PAYLOAD => Received::Payload(TransactionPayload::read(body)?),
            code::XID => Received::Xid,
            code::HEARTBEAT | code::HEARTBEAT_V2 => Received::Heartbeat,
            code::STOP
            | code::ROWS_QUERY
            | code::PREVIOUS_GTIDS
            | code::MARIADB_ANNOTATE_ROWS
            | code::MARIADB_CHECKPOINT
            | code::MARIADB_GTID_LIST => Received::Nothing,
            other => match REFUSED.iter().find(|(number, _)| *number == other) {
                Some((_, name)) => Received::Refused((*name).to_string()),
                None if self.has_flag(flags::IGNORABLE) => Received::Nothing,
                None => Received::Refused(format!("of type {other}")),
            },
        })
    }
}

mod status {
    pub(super) const FLAGS: u8 = 0;
    pub(super) const SQL_MODE: u8 = 1;
    pub(super) const OLD_CATALOG: u8 = 2;
    pub(super) const AUTO_INCREMENT: u8 = 3;
    pub(super) const CHARSET: u8 = 4;
    pub(super) const TIME_ZONE: u8 = 5;
    pub(super) const CATALOG: u8 = 6;
    pub(super) const LC_TIME_NAMES: u8 = 7;
    pub(super) const CHARSET_DATABASE: u8 = 8;
    pub(super) const TABLE_MAP_FOR_UPDATE: u8 = 9;
    pub(super) const INVOKER: u8 = 11;
    pub(super) const UPDATED_DATABASES: u8 = 12;
    pub(super) const MICROSECONDS: u8 = 13;
    pub(super) const EXPLICIT_DEFAULTS_FOR_TIMESTAMP: u8 = 16;
    pub(super) const DDL_XID: u8 = 17;
    pub(super) const DEFAULT_COLLATION_FOR_UTF8MB4: u8 = 18;
    pub(super) const MARIADB_MICROSECONDS: u8 = 128;
}

mod option {
    pub(super) const NO_FOREIGN_KEY_CHECKS: u32 = 1 << 26;
    pub(super) const RELAXED_UNIQUE_CHECKS: u32 = 1 << 27;
}

/// Names of databases that are not listed, because they are too many.
const TOO_MANY_DATABASES: u8 = 254;

/// A statement, with what of its session is known. `None` of a field: the event does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedQuery<'e> {
    pub thread_id: u32,
    /// The error that the statement ended with on the source; 0: none.
    pub error: u16,
    /// Empty: the session had none.
    pub database: &'e [u8],
    /// In the character set of the client.
    pub text: &'e [u8],
    pub foreign_key_checks: bool,
    pub unique_checks: bool,
    pub sql_mode: Option<u64>,
    /// auto_increment_increment and auto_increment_offset.
    pub auto_increment: Option<(u16, u16)>,
    /// Collations by their numbers: one of character_set_client, collation_connection, collation_server.
    pub collations: Option<[u16; 3]>,
    pub time_zone: Option<&'e [u8]>,
    /// lc_time_names by its number; 0: en_US.
    pub lc_time_names: u16,
    /// The collation of utf8mb4 where a statement names none.
    pub default_collation_for_utf8mb4: Option<u16>,
    /// Microseconds of the time of the event.
    pub microseconds: u32,
}

impl<'e> ReceivedQuery<'e> {
    fn read(body: &'e [u8]) -> Option<ReceivedQuery<'e>> {
        let mut cursor = Cursor(body);
        let thread_id = cursor.u32()?;
        let _seconds_taken = cursor.u32()?;
        let database = usize::from(cursor.byte()?);
        let error = cursor.u16()?;
        let status = usize::from(cursor.u16()?);
        let mut query = ReceivedQuery {
            thread_id,
            error,
            foreign_key_checks: true,
            unique_checks: true,
            ..ReceivedQuery::default()
        };
        let status = cursor.take(status)?;
        query.database = cursor.take(database)?;
        // A zero ends the name.
        cursor.byte()?;
        query.text = cursor.0;
        query.read_status(Cursor(status))?;
        Some(query)
    }

    /// What stands behind a status variable of an unknown number cannot be read, and is left out.
    fn read_status(&mut self, mut cursor: Cursor<'e>) -> Option<()> {
        while let Some(number) = cursor.byte() {
            match number {
                status::FLAGS => {
                    let options = cursor.u32()?;
                    self.foreign_key_checks = options & option::NO_FOREIGN_KEY_CHECKS == 0;
                    self.unique_checks = options & option::RELAXED_UNIQUE_CHECKS == 0;
                }
                status::SQL_MODE => self.sql_mode = Some(cursor.u64()?),
                status::OLD_CATALOG => {
                    cursor.short_string()?;
                    cursor.byte()?;
                }
                status::AUTO_INCREMENT => {
                    self.auto_increment = Some((cursor.u16()?, cursor.u16()?));
                }
                status::CHARSET => {
                    self.collations = Some([cursor.u16()?, cursor.u16()?, cursor.u16()?]);
                }
                status::TIME_ZONE => self.time_zone = Some(cursor.short_string()?),
                status::CATALOG => {
                    cursor.short_string()?;
                }
                status::LC_TIME_NAMES => self.lc_time_names = cursor.u16()?,
                status::CHARSET_DATABASE => {
                    cursor.u16()?;
                }
                status::EXPLICIT_DEFAULTS_FOR_TIMESTAMP => {
                    cursor.byte()?;
                }
                status::DDL_XID => {
                    cursor.u64()?;
                }
                status::DEFAULT_COLLATION_FOR_UTF8MB4 => {
                    self.default_collation_for_utf8mb4 = Some(cursor.u16()?);
                }
                status::TABLE_MAP_FOR_UPDATE => {
                    cursor.u64()?;
                }
                status::INVOKER => {
                    cursor.short_string()?;
                    cursor.short_string()?;
                }
                status::UPDATED_DATABASES => {
                    let count = cursor.byte()?;
                    for _ in 0..if count == TOO_MANY_DATABASES {
                        0
                    } else {
                        count
                    } {
                        while cursor.byte()? != 0 {}
                    }
                }
                status::MICROSECONDS | status::MARIADB_MICROSECONDS => {
                    self.microseconds = cursor.little(3)? as u32;
                }
                _ => break,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventHeader, GtidLog, Query, QueryContext, Rotate, Xid, alone};

    fn header() -> EventHeader {
        EventHeader::new(1_700_000_000, 7)
    }

    #[test]
    fn a_statement_reads_as_it_was_written() {
        let context = QueryContext {
            thread_id: 9,
            sql_mode: 1 << 32 | 2,
            foreign_key_checks: false,
            auto_increment: (10, 3),
            time_zone: Some("+02:00".into()),
            lc_time_names: 4,
            explicit_defaults_for_timestamp: Some(true),
            ddl_xid: Some(8),
            default_collation_for_utf8mb4: 45,
            updated_databases: Some(vec!["shop".into(), "other".into()]),
            microseconds: Some(123_456),
            ..QueryContext::default()
        };
        let bytes = alone(
            &header(),
            &Query::new("shop", "CREATE TABLE t (a int)", context),
            99,
        );
        let event = SourceEvent::new(&bytes, true).unwrap();
        assert_eq!(
            (event.time(), event.server_id(), event.end()),
            (1_700_000_000, 7, 99)
        );
        let Some(Received::Query(query)) = event.read() else {
            panic!("no statement");
        };
        assert_eq!(query.thread_id, 9);
        assert_eq!(
            (query.database, query.text),
            (&b"shop"[..], &b"CREATE TABLE t (a int)"[..])
        );
        assert!(!query.foreign_key_checks && query.unique_checks);
        assert_eq!(query.sql_mode, Some(1 << 32 | 2));
        assert_eq!(query.auto_increment, Some((10, 3)));
        assert_eq!(query.time_zone, Some(&b"+02:00"[..]));
        assert_eq!(query.microseconds, 123_456);
        assert_eq!(query.lc_time_names, 4);
        assert_eq!(query.default_collation_for_utf8mb4, Some(45));
    }

    #[test]
    fn events_read_as_they_were_written_and_pieces_of_them_do_not() {
        let server = Uuid([7; 16]);
        let gtid = Gtid::new(server, 5).unwrap();
        let read = |bytes: &[u8]| {
            let event = SourceEvent::new(bytes, true)?;
            event.read().map(|read| format!("{read:?}"))
        };
        let written = alone(&header(), &GtidLog::new(gtid), 0);
        assert_eq!(
            read(&written),
            Some(format!("{:?}", Received::Gtid(Some(gtid))))
        );
        let commit = |gtid: GtidLog| {
            let written = alone(&header(), &gtid, 0);
            let event = SourceEvent::new(&written, true).unwrap();
            event.first_commit()
        };
        let own = GtidLog::new(gtid).committed(1 << 50, 80_099);
        assert_eq!(commit(own.clone()), Some((1 << 50, 80_099)));
        let passed_on = own.originally_committed(1 << 49, 90_704);
        assert_eq!(commit(passed_on), Some((1 << 49, 90_704)));
        let written = alone(&header(), &Rotate::to("binlog.000002"), 0);
        assert!(read(&written).unwrap().contains("binlog.000002"));
        let written = alone(&header(), &Xid(3), 0);
        assert_eq!(read(&written).as_deref(), Some("Xid"));
        for end in 0..written.len() {
            assert_eq!(read(&written[..end]), None);
        }
        let mut wrong = written.clone();
        wrong[3] ^= 1;
        assert_eq!(read(&wrong), None);
    }
}
