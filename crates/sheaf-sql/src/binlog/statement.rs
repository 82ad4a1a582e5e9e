//! A statement in the log: DDL in the user's words, with what of the session it depends on.
//!
//! It is an annotation of the transaction that changes the catalog, so there is a line in the binary log exactly where
//! there is a change. Its bytes are this program's own: numbers are little-endian, texts stand behind their lengths.

use std::borrow::Cow;

use sheaf_binlog::event::QueryContext;
use sheaf_table::AccountName;
use sheaf_types::text::quoting::quoted_name;

use super::text_words::words_of;
use crate::parser::scan::without_words;
use crate::parser::text_size::at_first_word;

/// First byte: the version of what follows. Earlier ones did not have all of the session.
const VERSION: u8 = 3;
const WITHOUT_LC_TIME_NAMES: u8 = 2;
const FIRST_VERSION: u8 = 1;

/// What stands behind the definition of a table whose rows follow in the same transaction, and how MySQL says it.
pub(super) const WITH_ROWS: &str = " /*!80021 START TRANSACTION */";

/// The definition of a table whose rows follow in the same transaction. `None`: the statement is none of such a table.
pub(crate) fn definition_with_rows(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim_end();
    if let Some(definition) = text.strip_suffix(WITH_ROWS) {
        return Some(Cow::Borrowed(definition));
    }
    // MySQL's words stand between the columns and the options of the table.
    let definition = without_words(text, ["START", "TRANSACTION"]);
    definition.filter(|_| is_create_table(text)).map(Cow::Owned)
}

/// CREATE TABLE, but not of a temporary table.
pub(crate) fn is_create_table(text: &str) -> bool {
    let mut words = at_first_word(text).split_ascii_whitespace();
    let mut is = |known: &str| {
        words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(known))
    };
    is("CREATE") && is("TABLE")
}

/// Bits of the session.
mod session {
    pub(super) const FOREIGN_KEY_CHECKS: u8 = 1;
    pub(super) const UNIQUE_CHECKS: u8 = 2;
    pub(super) const AUTOCOMMIT: u8 = 4;
}

/// A statement that changes definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedStatement {
    /// The session's; empty if it has none.
    pub(crate) database: String,
    pub(crate) text: String,
    /// When it began, in microseconds since 1970: followers take that for the present time.
    pub(crate) time_us: u64,
    pub(crate) thread_id: u32,
    /// As MySQL numbers the modes.
    pub(crate) sql_mode: u64,
    pub(crate) foreign_key_checks: bool,
    pub(crate) unique_checks: bool,
    pub(crate) autocommit: bool,
    /// auto_increment_increment and auto_increment_offset.
    pub(crate) auto_increment: [u16; 2],
    /// By its number.
    pub(crate) lc_time_names: u16,
    /// collation_connection and collation_server, by MySQL's numbers. The text is UTF-8.
    pub(crate) collations: [u16; 2],
    pub(crate) time_zone: String,
    pub(crate) kind: StatementKind,
}

/// What a follower has to know beside the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum StatementKind {
    /// CREATE TABLE and ALTER TABLE.
    Table = 0,
    /// CREATE DATABASE and the like: no `USE` in front of it.
    Database = 1,
    Other = 2,
    /// CREATE TABLE of a table whose rows come in the same transaction.
    TableWithRows = 3,
}

impl StatementKind {
    fn of_number(number: u8) -> Option<StatementKind> {
        [
            StatementKind::Table,
            StatementKind::Database,
            StatementKind::Other,
            StatementKind::TableWithRows,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == number)
    }
}

impl LoggedStatement {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION, self.kind as u8];
        out.extend_from_slice(&self.time_us.to_le_bytes());
        out.extend_from_slice(&self.thread_id.to_le_bytes());
        out.extend_from_slice(&self.sql_mode.to_le_bytes());
        let mut bits = 0;
        for (is_on, bit) in [
            (self.foreign_key_checks, session::FOREIGN_KEY_CHECKS),
            (self.unique_checks, session::UNIQUE_CHECKS),
            (self.autocommit, session::AUTOCOMMIT),
        ] {
            if is_on {
                bits |= bit;
            }
        }
        out.push(bits);
        let numbers = self.collations.into_iter().chain(self.auto_increment);
        for number in numbers.chain([self.lc_time_names]) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for text in [&self.database, &self.time_zone, &self.text] {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        out
    }

    /// `None`: the bytes are none of a statement.
    pub(crate) fn read(bytes: &[u8]) -> Option<LoggedStatement> {
        let mut rest = bytes;
        let [version, kind] = take(&mut rest)?;
        if !matches!(version, FIRST_VERSION..=VERSION) {
            return None;
        }
        let time_us = u64::from_le_bytes(take(&mut rest)?);
        let thread_id = u32::from_le_bytes(take(&mut rest)?);
        let sql_mode = u64::from_le_bytes(take(&mut rest)?);
        let [mut bits] = take(&mut rest)?;
        let mut number = || take(&mut rest).map(u16::from_le_bytes);
        let collations = [number()?, number()?];
        let auto_increment = match version {
            FIRST_VERSION => {
                bits |= session::UNIQUE_CHECKS | session::AUTOCOMMIT;
                [1, 1]
            }
            _ => [number()?, number()?],
        };
        let lc_time_names = match version {
            FIRST_VERSION | WITHOUT_LC_TIME_NAMES => 0,
            _ => number()?,
        };
        let mut text = || {
            let length = u32::from_le_bytes(take(&mut rest)?) as usize;
            let (text, behind) = rest.split_at_checked(length)?;
            rest = behind;
            String::from_utf8(text.to_vec()).ok()
        };
        let (database, time_zone, text) = (text()?, text()?, text()?);
        Some(LoggedStatement {
            database,
            text,
            time_us,
            thread_id,
            sql_mode,
            foreign_key_checks: bits & session::FOREIGN_KEY_CHECKS != 0,
            unique_checks: bits & session::UNIQUE_CHECKS != 0,
            autocommit: bits & session::AUTOCOMMIT != 0,
            auto_increment,
            lc_time_names,
            collations,
            time_zone,
            kind: StatementKind::of_number(kind)?,
        })
    }

    /// What the event says of the session. `xid`: the number of the statement's transaction.
    pub(super) fn context(&self, xid: u64) -> QueryContext {
        let has_rows = self.kind == StatementKind::TableWithRows;
        let of_table = has_rows || self.kind == StatementKind::Table;
        let [connection, server] = self.collations;
        let [increment, offset] = self.auto_increment;
        QueryContext {
            thread_id: self.thread_id,
            sql_mode: self.sql_mode,
            foreign_key_checks: self.foreign_key_checks,
            unique_checks: self.unique_checks,
            autocommit: self.autocommit,
            auto_increment: (increment, offset),
            lc_time_names: self.lc_time_names,
            connection,
            server,
            time_zone: Some(self.time_zone.clone()),
            updated_databases: Some(Vec::from_iter(
                (!self.database.is_empty()).then(|| self.database.clone()),
            )),
            explicit_defaults_for_timestamp: of_table.then_some(true),
            require_primary_key: of_table.then_some(false),
            microseconds: Some((self.time_us % 1_000_000) as u32),
            // The event XID of a transaction says it.
            ddl_xid: (!has_rows).then_some(xid),
            ..QueryContext::default()
        }
    }
}

/// The text of a CREATE VIEW with its definer, which is the user unless the statement names one: followers run it as
/// another user.
pub(crate) fn with_definer<'t>(text: &'t str, definer: &AccountName) -> Cow<'t, str> {
    let words = words_of(text);
    let is = |place: usize, wanted: &str| {
        let word = words.get(place).map(|range| &text[range.clone()]);
        word.is_some_and(|word| word.eq_ignore_ascii_case(wanted))
    };
    let view = (0..words.len()).find(|place| is(*place, "VIEW"));
    let begins = (0..words.len()).take(2).any(|place| is(place, "CREATE"));
    let Some(view) = view.filter(|_| begins) else {
        return Cow::Borrowed(text);
    };
    if (0..view).any(|place| is(place, "DEFINER")) {
        return Cow::Borrowed(text);
    }
    let place = (0..view).find(|place| is(*place, "SQL")).unwrap_or(view);
    let (before, behind) = text.split_at(words[place].start);
    let (user, host) = (quoted_name(&definer.user), quoted_name(&definer.host));
    Cow::Owned(format!("{before}DEFINER={user}@{host} {behind}"))
}

/// Takes bytes from the left.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_has_the_definer_that_it_is_made_with() {
        let definer = AccountName::new("ann", "%");
        for (given, own) in [
            (
                "create or replace view v as select 1",
                "create or replace DEFINER=`ann`@`%` view v as select 1",
            ),
            (
                "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW v AS SELECT 1",
                "CREATE ALGORITHM=MERGE DEFINER=`ann`@`%` SQL SECURITY INVOKER VIEW v AS SELECT 1",
            ),
            (
                "CREATE DEFINER=`x`@`y` VIEW v AS SELECT 1",
                "CREATE DEFINER=`x`@`y` VIEW v AS SELECT 1",
            ),
            ("ALTER VIEW v AS SELECT 1", "ALTER VIEW v AS SELECT 1"),
        ] {
            assert_eq!(with_definer(given, &definer), own);
        }
    }

    #[test]
    fn a_table_with_rows_is_one_that_says_so() {
        for (text, definition) in [
            (
                "CREATE TABLE t (a INT) START TRANSACTION\n",
                Some("CREATE TABLE t (a INT)"),
            ),
            (
                "CREATE TABLE t (a INT) /*!80021 START TRANSACTION */",
                Some("CREATE TABLE t (a INT)"),
            ),
            (
                "CREATE TABLE `START TRANSACTION` (a INT COMMENT 'START TRANSACTION') START TRANSACTION ENGINE=InnoDB \
                 COMMENT='START TRANSACTION'",
                Some(
                    "CREATE TABLE `START TRANSACTION` (a INT COMMENT 'START TRANSACTION') ENGINE=InnoDB \
                     COMMENT='START TRANSACTION'",
                ),
            ),
            ("CREATE TABLE t (a INT)", None),
            ("CREATE TABLE t (a INT) COMMENT 'START TRANSACTION'", None),
            ("CREATE PROCEDURE p() BEGIN START TRANSACTION; END", None),
        ] {
            assert_eq!(definition_with_rows(text).as_deref(), definition);
        }
    }

    #[test]
    fn a_statement_reads_as_it_was_written_and_a_piece_of_it_does_not() {
        let statement = LoggedStatement {
            database: "shop".into(),
            text: "CREATE TABLE `ä` (id int)".into(),
            time_us: 1 << 50,
            thread_id: 7,
            sql_mode: 1 << 32,
            foreign_key_checks: true,
            unique_checks: false,
            autocommit: true,
            auto_increment: [3, 2],
            lc_time_names: 4,
            collations: [46, 33],
            time_zone: "SYSTEM".into(),
            kind: StatementKind::Table,
        };
        let bytes = statement.to_bytes();
        assert_eq!(LoggedStatement::read(&bytes), Some(statement));
        for end in 0..bytes.len() {
            assert_eq!(LoggedStatement::read(&bytes[..end]), None);
        }
    }
}
