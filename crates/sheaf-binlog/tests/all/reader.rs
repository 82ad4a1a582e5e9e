//! What we take from MySQL's files: the events in their pieces.
//!
//! It reads what no one can know before and skips the rest, which the tests compare with ours. So a place that it reads
//! wrongly is a difference there.

use sheaf_binlog::event::{
    CHECKSUM_BYTES, EventHeader, EventType, GtidLog, HEADER_BYTES, QueryContext,
};
use sheaf_binlog::file::MAGIC;
use sheaf_binlog::gtid::{Gtid, Uuid};

/// An event of a file.
pub(crate) struct Found<'f> {
    pub(crate) event_type: EventType,
    pub(crate) header: EventHeader,
    /// All of it, from the header to the checksum.
    pub(crate) bytes: &'f [u8],
}

/// The events of a file that has all of its last one.
pub(crate) fn events(file: &[u8]) -> Vec<Found<'_>> {
    let mut rest = file.strip_prefix(MAGIC).expect("a binary log");
    let mut events = Vec::new();
    while !rest.is_empty() {
        let mut header = Fields(rest);
        let time = header.number(4) as u32;
        let number = header.number(1) as u8;
        let server_id = header.number(4) as u32;
        let (bytes, behind) = rest.split_at(header.number(4) as usize);
        events.push(Found {
            event_type: EventType::of(number).unwrap_or_else(|| panic!("type {number}")),
            header: EventHeader::new(time, server_id),
            bytes,
        });
        rest = behind;
    }
    events
}

impl<'f> Found<'f> {
    pub(crate) fn body(&self) -> Fields<'f> {
        Fields(&self.bytes[HEADER_BYTES..self.bytes.len() - CHECKSUM_BYTES])
    }

    /// FORMAT_DESCRIPTION: the version of the server, and when it started.
    pub(crate) fn description(&self) -> (String, u32) {
        let mut body = self.body();
        body.skip(2);
        let version = body.text(50).trim_end_matches('\0');
        (version.to_string(), body.number(4) as u32)
    }

    pub(crate) fn gtid_log(&self) -> GtidLog {
        let mut body = self.body();
        let has_statements = body.number(1) != 0;
        let server = Uuid(body.bytes(16).try_into().unwrap());
        let gtid = Gtid::new(server, body.number(8)).unwrap();
        body.skip(1);
        let log = GtidLog::new(gtid).in_order(body.number(8), body.number(8));
        let log = match has_statements {
            true => log.with_statements(),
            false => log,
        };
        // A second one follows if the highest bit is set.
        let (time, original_time) = body.one_or_two(7);
        body.packed();
        let (version, original_version) = body.one_or_two(4);
        log.committed(time, version as u32)
            .originally_committed(original_time, original_version as u32)
    }

    /// QUERY: the session and the text.
    pub(crate) fn query(&self) -> (QueryContext, &'f str) {
        let mut body = self.body();
        let mut context = QueryContext {
            thread_id: body.number(4) as u32,
            seconds_taken: body.number(4) as u32,
            ..QueryContext::default()
        };
        let database_bytes = body.number(1) as usize;
        body.skip(2);
        let status_bytes = body.number(2) as usize;
        let mut status = Fields(body.bytes(status_bytes));
        while !status.0.is_empty() {
            status.put_status(&mut context);
        }
        body.skip(database_bytes + 1);
        let text = body.0.len();
        (context, body.text(text))
    }

    /// TABLE_MAP: the number and the name of the table.
    pub(crate) fn table(&self) -> (u64, &'f str) {
        let mut body = self.body();
        let id = body.number(6);
        body.skip(2);
        let database_bytes = body.packed() as usize;
        body.skip(database_bytes + 1);
        let name_bytes = body.packed() as usize;
        (id, body.text(name_bytes))
    }
}

/// What is left to be read of a body.
pub(crate) struct Fields<'f>(&'f [u8]);

impl<'f> Fields<'f> {
    pub(crate) fn bytes(&mut self, count: usize) -> &'f [u8] {
        let (bytes, behind) = self.0.split_at(count);
        self.0 = behind;
        bytes
    }

    pub(crate) fn skip(&mut self, count: usize) {
        self.bytes(count);
    }

    /// A number whose lowest byte comes first.
    pub(crate) fn number(&mut self, count: usize) -> u64 {
        let bytes = self.bytes(count);
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    pub(crate) fn text(&mut self, count: usize) -> &'f str {
        std::str::from_utf8(self.bytes(count)).unwrap()
    }

    pub(crate) fn rest(self) -> &'f str {
        std::str::from_utf8(self.0).unwrap()
    }

    /// A number that says its length.
    fn packed(&mut self) -> u64 {
        match self.number(1) {
            0xFC => self.number(2),
            0xFD => self.number(3),
            0xFE => self.number(8),
            number => number,
        }
    }

    /// A number whose highest bit says that another one follows. It is the same twice if none does.
    fn one_or_two(&mut self, count: usize) -> (u64, u64) {
        let number = self.number(count);
        let another = 1 << (8 * count - 1);
        match number & another {
            0 => (number, number),
            _ => (number & !another, self.number(count)),
        }
    }

    fn text_until_zero(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap();
        let text = self.text(end).to_string();
        self.skip(1);
        text
    }

    /// Takes a status variable and enters it.
    fn put_status(&mut self, context: &mut QueryContext) {
        match self.number(1) {
            0 => {
                let options = self.number(4);
                context.autocommit = options & 1 << 19 == 0;
                context.foreign_key_checks = options & 1 << 26 == 0;
                context.unique_checks = options & 1 << 27 == 0;
            }
            1 => context.sql_mode = self.number(8),
            3 => context.auto_increment = (self.number(2) as u16, self.number(2) as u16),
            4 => {
                context.client = self.number(2) as u16;
                context.connection = self.number(2) as u16;
                context.server = self.number(2) as u16;
            }
            5 => {
                let length = self.number(1) as usize;
                context.time_zone = Some(self.text(length).to_string());
            }
            7 => context.lc_time_names = self.number(2) as u16,
            // The catalog.
            6 => {
                let length = self.number(1) as usize;
                self.skip(length);
            }
            9 => context.updated_tables = self.number(8),
            12 => {
                context.updated_databases = match self.number(1) {
                    254 => None,
                    count => Some((0..count).map(|_| self.text_until_zero()).collect()),
                }
            }
            13 => context.microseconds = Some(self.number(3) as u32),
            16 => context.explicit_defaults_for_timestamp = Some(self.number(1) != 0),
            17 => context.ddl_xid = Some(self.number(8)),
            18 => context.default_collation_for_utf8mb4 = self.number(2) as u16,
            19 => context.require_primary_key = Some(self.number(1) != 0),
            20 => context.default_table_encryption = Some(self.number(1) != 0),
            other => panic!("status variable {other}"),
        }
    }
}
