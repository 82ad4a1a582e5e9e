//! QUERY: a statement as text. BEGIN in front of rows, and DDL.
//!
//! Between the head and the text stand *status variables*: what of the session the statement depends on. They come in
//! MySQL's order, each with its number. Followers that do not know one cannot read those behind it.

use super::{Event, EventType, flags};
use sheaf_types::Collation;

mod status {
    pub(super) const FLAGS: u8 = 0;
    pub(super) const SQL_MODE: u8 = 1;
    pub(super) const AUTO_INCREMENT: u8 = 3;
    pub(super) const CHARSET: u8 = 4;
    pub(super) const TIME_ZONE: u8 = 5;
    pub(super) const CATALOG: u8 = 6;
    pub(super) const LC_TIME_NAMES: u8 = 7;
    pub(super) const TABLE_MAP_FOR_UPDATE: u8 = 9;
    pub(super) const UPDATED_DATABASES: u8 = 12;
    pub(super) const MICROSECONDS: u8 = 13;
    pub(super) const EXPLICIT_DEFAULTS_FOR_TIMESTAMP: u8 = 16;
    pub(super) const DDL_XID: u8 = 17;
    pub(super) const DEFAULT_COLLATION_FOR_UTF8MB4: u8 = 18;
    pub(super) const REQUIRE_PRIMARY_KEY: u8 = 19;
    pub(super) const DEFAULT_TABLE_ENCRYPTION: u8 = 20;
}

/// Bits of the session that are off by default.
mod option {
    pub(super) const NOT_AUTOCOMMIT: u32 = 1 << 19;
    pub(super) const NO_FOREIGN_KEY_CHECKS: u32 = 1 << 26;
    pub(super) const RELAXED_UNIQUE_CHECKS: u32 = 1 << 27;
}

/// MySQL's only catalog.
const CATALOG: &[u8] = b"std";
/// Names of databases that a statement changes, at most; more are said to be too many.
const MAX_UPDATED_DATABASES: usize = 16;
const TOO_MANY_DATABASES: u8 = 254;

/// What of the session a statement depends on.
#[derive(Debug, Clone)]
pub struct QueryContext {
    pub thread_id: u32,
    pub seconds_taken: u32,
    pub sql_mode: u64,
    pub autocommit: bool,
    pub foreign_key_checks: bool,
    pub unique_checks: bool,
    /// auto_increment_increment and auto_increment_offset.
    pub auto_increment: (u16, u16),
    /// The number of the collation that character_set_client has by default.
    pub client: u16,
    /// Those of collation_connection and collation_server.
    pub connection: u16,
    pub server: u16,
    /// Where the statement depends on it.
    pub time_zone: Option<String>,
    /// lc_time_names by its number; 0: en_US.
    pub lc_time_names: u16,
    /// A bit for each table of an UPDATE that it changes, by their places in the statement; 0 of others.
    pub updated_tables: u64,
    /// Of the statement's time, where it depends on it.
    pub microseconds: Option<u32>,
    pub default_collation_for_utf8mb4: u16,
    /// Databases that the statement changes. Followers may run statements about different ones beside each other.
    /// `None`: it is to run alone, as changes of tables with foreign keys are.
    pub updated_databases: Option<Vec<String>>,
    /// Of CREATE TABLE and ALTER TABLE.
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// The number of a DDL statement in the storage engine.
    pub ddl_xid: Option<u64>,
    /// Of CREATE TABLE and ALTER TABLE.
    pub require_primary_key: Option<bool>,
    /// Of CREATE DATABASE.
    pub default_table_encryption: Option<bool>,
}

impl Default for QueryContext {
    /// A session that has changed nothing, of a client with utf8mb4.
    fn default() -> QueryContext {
        let utf8mb4 = Collation::default().id();
        QueryContext {
            thread_id: 0,
            seconds_taken: 0,
            sql_mode: 0,
            autocommit: true,
            foreign_key_checks: true,
            unique_checks: true,
            auto_increment: (1, 1),
            client: utf8mb4,
            connection: utf8mb4,
            server: utf8mb4,
            time_zone: None,
            lc_time_names: 0,
            updated_tables: 0,
            microseconds: None,
            default_collation_for_utf8mb4: utf8mb4,
            updated_databases: Some(Vec::new()),
            explicit_defaults_for_timestamp: None,
            ddl_xid: None,
            require_primary_key: None,
            default_table_encryption: None,
        }
    }
}

impl QueryContext {
    fn put(&self, out: &mut Vec<u8>) {
        let mut options = 0;
        for (is_on, bit) in [
            (self.autocommit, option::NOT_AUTOCOMMIT),
            (self.foreign_key_checks, option::NO_FOREIGN_KEY_CHECKS),
            (self.unique_checks, option::RELAXED_UNIQUE_CHECKS),
        ] {
            if !is_on {
                options |= bit;
            }
        }
        put(out, status::FLAGS, &options.to_le_bytes());
        put(out, status::SQL_MODE, &self.sql_mode.to_le_bytes());
        put_text(out, status::CATALOG, CATALOG);
        if self.auto_increment != (1, 1) {
            let (increment, offset) = self.auto_increment;
            put(out, status::AUTO_INCREMENT, &increment.to_le_bytes());
            out.extend_from_slice(&offset.to_le_bytes());
        }
        put(out, status::CHARSET, &self.client.to_le_bytes());
        out.extend_from_slice(&self.connection.to_le_bytes());
        out.extend_from_slice(&self.server.to_le_bytes());
        if let Some(zone) = &self.time_zone {
            put_text(out, status::TIME_ZONE, zone.as_bytes());
        }
        if self.lc_time_names != 0 {
            put(
                out,
                status::LC_TIME_NAMES,
                &self.lc_time_names.to_le_bytes(),
            );
        }
        if self.updated_tables != 0 {
            put(
                out,
                status::TABLE_MAP_FOR_UPDATE,
                &self.updated_tables.to_le_bytes(),
            );
        }
        self.put_updated_databases(out);
        if let Some(microseconds) = self.microseconds {
            put(out, status::MICROSECONDS, &microseconds.to_le_bytes()[..3]);
        }
        if let Some(value) = self.explicit_defaults_for_timestamp {
            put(
                out,
                status::EXPLICIT_DEFAULTS_FOR_TIMESTAMP,
                &[value.into()],
            );
        }
        if let Some(xid) = self.ddl_xid {
            put(out, status::DDL_XID, &xid.to_le_bytes());
        }
        let collation = self.default_collation_for_utf8mb4.to_le_bytes();
        put(out, status::DEFAULT_COLLATION_FOR_UTF8MB4, &collation);
        if let Some(value) = self.require_primary_key {
            put(out, status::REQUIRE_PRIMARY_KEY, &[value.into()]);
        }
        if let Some(value) = self.default_table_encryption {
            put(out, status::DEFAULT_TABLE_ENCRYPTION, &[value.into()]);
        }
    }

    fn put_updated_databases(&self, out: &mut Vec<u8>) {
        match &self.updated_databases {
            Some(names) if names.is_empty() => {}
            Some(names) if names.len() <= MAX_UPDATED_DATABASES => {
                put(out, status::UPDATED_DATABASES, &[names.len() as u8]);
                for name in names {
                    out.extend_from_slice(name.as_bytes());
                    out.push(0);
                }
            }
            _ => put(out, status::UPDATED_DATABASES, &[TOO_MANY_DATABASES]),
        }
    }
}

fn put(out: &mut Vec<u8>, status: u8, bytes: &[u8]) {
    out.push(status);
    out.extend_from_slice(bytes);
}

/// A text of at most 255 bytes: names of zones and of the catalog.
fn put_text(out: &mut Vec<u8>, status: u8, text: &[u8]) {
    let text = &text[..text.len().min(255)];
    put(out, status, &[text.len() as u8]);
    out.extend_from_slice(text);
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Query {
    database: String,
    text: String,
    context: QueryContext,
    flags: u16,
}

impl Query {
    /// A statement of a session whose database is `database`; none if empty. Names of databases have at most 255 bytes.
    pub fn new(database: &str, text: &str, context: QueryContext) -> Query {
        Query {
            database: database.to_string(),
            text: text.to_string(),
            context,
            flags: 0,
        }
    }

    /// The begin of a transaction of rows.
    pub fn begin(database: &str) -> Query {
        Query::new(database, "BEGIN", QueryContext::default()).without_use()
    }

    /// The same statement without `USE` in front of it: CREATE DATABASE and BEGIN.
    pub fn without_use(mut self) -> Query {
        self.flags |= flags::SUPPRESS_USE;
        self
    }

    /// The same statement about a temporary table of its thread.
    pub fn of_thread(mut self) -> Query {
        self.flags |= flags::THREAD_SPECIFIC;
        self
    }

    pub fn with_context(mut self, context: QueryContext) -> Query {
        self.context = context;
        self
    }
}

impl Event for Query {
    fn event_type(&self) -> EventType {
        EventType::Query
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        let database = self.database.as_bytes();
        let database = &database[..database.len().min(255)];
        out.extend_from_slice(&self.context.thread_id.to_le_bytes());
        out.extend_from_slice(&self.context.seconds_taken.to_le_bytes());
        out.push(database.len() as u8);
        // Statements that failed are not logged: no error.
        out.extend_from_slice(&[0; 2]);
        let length_place = out.len();
        out.extend_from_slice(&[0; 2]);
        let begin = out.len();
        self.context.put(out);
        // Sixteen names of 255 bytes are far fewer than two bytes count.
        let length = (out.len() - begin) as u16;
        out[length_place..begin].copy_from_slice(&length.to_le_bytes());
        out.extend_from_slice(database);
        out.push(0);
        out.extend_from_slice(self.text.as_bytes());
    }

    fn flags(&self) -> u16 {
        self.flags
    }
}
