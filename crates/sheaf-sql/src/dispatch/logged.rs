//! A statement that changes definitions, as the binary log has it: in the user's words, unless followers could not do
//! the same with them.
//!
//! | statement | what followers get |
//! |---|---|
//! | CREATE TABLE ... LIKE a temporary table | the definition: followers have no temporary tables |
//! | DROP TABLE of temporary tables and others | DROP TABLE of the others |
//! | CREATE OR REPLACE TABLE | DROP TABLE, if there is one to drop, and CREATE TABLE |
//! | CREATE TABLE ... SELECT | the definition, and then the rows |
//! | ALTER TABLE that numbers rows by a series of the session | the same with ALGORITHM=COPY |
//! | others with ALGORITHM=INPLACE or INSTANT, or LOCK=NONE | the same with DEFAULT |
//! | CREATE VIEW | the same with the definer |
//! | CREATE USER and others with passwords | what is kept of the passwords |
//! | SET STATEMENT ... FOR a statement | the statement |
//! | a statement with WAIT or NOWAIT | the statement without |

use std::borrow::Cow;

use sheaf_table::{AutoIncrementSeries, QualifiedName};

use crate::binlog::statement::{LoggedStatement, StatementKind, with_definer};
use crate::binlog::words_of;
use crate::definition::ddl::same_shape;
use crate::definition::source_numbers::numbers_rows;
use crate::error::Result;
use crate::parser::statement::{self as parsed, Statement, TableChange};
use crate::session::Session;
use crate::session_parts::transactions::SourceKind;
use crate::statement::logged_text::drop_text;

impl Session {
    /// What the change of the catalog says that the statement makes; `None`: it says so itself. Passwords in the
    /// statement are replaced by what is kept of them.
    ///
    /// # Errors
    /// There is no table of a name, or a password is none.
    pub(crate) fn logged_definition(
        &self,
        kind: StatementKind,
        statement: &mut Statement,
        text: &str,
    ) -> Result<Option<LoggedStatement>> {
        let text = without_set_statement(text);
        let text = text.trim_end().trim_end_matches(';');
        let text = &*match self.statement.says_wait {
            true => without_wait(text),
            false => Cow::Borrowed(text),
        };
        let text = match statement {
            Statement::CreateView(_) => with_definer(text, &self.client.own_definer()),
            Statement::CreateTable(create) if create.query.is_some() => return Ok(None),
            Statement::CreateTable(create) => {
                if let Some(definition) = self.definition_like_temporary(create)? {
                    return Ok(Some(self.logged_text_of_definition(&definition)));
                }
                match create.or_replace {
                    true => without_or_replace(text),
                    false => Cow::Borrowed(text),
                }
            }
            Statement::DropTables {
                names, if_exists, ..
            } => {
                let resolved = names.iter().map(|name| self.resolve(name));
                let resolved = resolved.collect::<Result<Vec<QualifiedName>>>()?;
                let is_temporary = |(database, table): &QualifiedName| {
                    self.table_names().is_temporary(database, table)
                };
                match resolved.iter().any(is_temporary) {
                    true => {
                        let others = resolved.iter().filter(|name| !is_temporary(name));
                        Cow::Owned(drop_text(*if_exists, others))
                    }
                    false => Cow::Borrowed(text),
                }
            }
            Statement::AlterTable { changes, .. } if self.numbers_rows_otherwise(changes) => {
                Cow::Owned(with_copy(text))
            }
            Statement::AlterTable { changes, .. } if changes.iter().any(is_demand) => {
                with_demands(text, "DEFAULT")
            }
            Statement::Account(statement) => match &self.transactions.source_text {
                // The source has logged what it keeps of passwords, perhaps for servers of several versions.
                Some(text) if self.applies_mysql() => Cow::Borrowed(text.as_str()),
                _ => Cow::Owned(self.logged_account_text(statement, text)?),
            },
            _ => Cow::Borrowed(text),
        };
        Ok(Some(self.logged_text(kind, &text)))
    }

    /// Whether a follower would number the rows of a new AUTO_INCREMENT column otherwise: InnoDB begins behind the
    /// first number of the series, unless it copies the table. What a source has numbered, followers number as this
    /// server does.
    fn numbers_rows_otherwise(&self, changes: &[TableChange]) -> bool {
        let is_series = self.variables.auto_increment_series() != AutoIncrementSeries::default();
        is_series && !self.applies_mysql() && numbers_rows(changes)
    }

    /// The statement is one of a source that is a MySQL or a Sheaf.
    fn applies_mysql(&self) -> bool {
        self.transactions.source == Some(SourceKind::Mysql)
    }

    fn definition_like_temporary(&self, create: &parsed::CreateTable) -> Result<Option<String>> {
        let Some(other) = &create.like else {
            return Ok(None);
        };
        let (database, table) = self.resolve(other)?;
        if !self.table_names().is_temporary(&database, &table) {
            return Ok(None);
        }
        let other = self.table_names_in_utc().table(&database, &table)?;
        let (database, name) = self.resolve(&create.name)?;
        let request = same_shape(&other.definition, database, name);
        self.text_of_request(&request, create.if_not_exists)
            .map(Some)
    }
}

fn is_demand(change: &TableChange) -> bool {
    matches!(change, TableChange::Algorithm(_) | TableChange::Lock(_))
}

/// An ALTER TABLE with ALGORITHM=COPY, in front of its changes: ORDER BY may be the last of them.
fn with_copy(text: &str) -> String {
    let words = words_of(text);
    let word = |place: usize| words.get(place).map_or("", |range| &text[range.clone()]);
    let is = |place: usize, wanted: &str| word(place).eq_ignore_ascii_case(wanted);
    // ALTER [IGNORE] TABLE [IF EXISTS] [database.]table
    let table = (0..words.len()).find(|place| is(*place, "TABLE"));
    let first = table.map_or(0, |table| {
        let has_condition = is(table + 1, "IF") && is(table + 2, "EXISTS");
        table + if has_condition { 3 } else { 1 }
    });
    let ends = words.get(first).zip(words.get(first + 1));
    let name = match ends {
        Some((database, table))
            if text[database.end..table.start]
                .trim_start()
                .starts_with('.') =>
        {
            first + 1
        }
        _ => first,
    };
    let end = words.get(name).map_or(text.len(), |name| name.end);
    let changes = with_demands(&text[end..], "COPY");
    format!("{} ALGORITHM=COPY,{changes}", &text[..end])
}

/// Changes of a table that ask for this algorithm where they asked for less than a copy, and for no lock where they let
/// others write: a follower may not be able to do them so.
fn with_demands<'t>(text: &'t str, algorithm: &str) -> Cow<'t, str> {
    let words = words_of(text);
    let word = |place: usize| words.get(place).map_or("", |range| &text[range.clone()]);
    let is = |place: usize, wanted: &str| word(place).eq_ignore_ascii_case(wanted);
    let is_one_of = |place: usize, others: &[&str]| others.iter().any(|other| is(place, other));
    let (mut own, mut done) = (String::new(), 0);
    let mut depth: usize = 0;
    for (place, value) in words.iter().enumerate().skip(1) {
        match word(place - 1) {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let between = text[words[place - 1].end..value.start].trim();
        if depth > 0 || !matches!(between, "" | "=") {
            continue;
        }
        let instead = match () {
            () if is(place - 1, "ALGORITHM")
                && is_one_of(place, &["DEFAULT", "INSTANT", "INPLACE"]) =>
            {
                algorithm
            }
            () if is(place - 1, "LOCK") && is(place, "NONE") => "DEFAULT",
            () => continue,
        };
        own.push_str(&text[done..value.start]);
        own.push_str(instead);
        done = value.end;
    }
    match done {
        0 => Cow::Borrowed(text),
        _ => {
            own.push_str(&text[done..]);
            Cow::Owned(own)
        }
    }
}

/// What stands behind SET STATEMENT ... FOR.
fn without_set_statement(text: &str) -> &str {
    let mut rest = text;
    loop {
        let words = words_of(rest);
        let word = |place: usize| words.get(place).map_or("", |range| &rest[range.clone()]);
        let is = |place: usize, wanted: &str| word(place).eq_ignore_ascii_case(wanted);
        if !is(0, "SET") || !is(1, "STATEMENT") {
            return rest;
        }
        match (2..words.len()).find(|place| is(*place, "FOR")) {
            Some(place) => rest = rest[words[place].end..].trim_start(),
            None => return rest,
        }
    }
}

/// A statement that says how long it waits for locks, without that.
fn without_wait(text: &str) -> Cow<'_, str> {
    let words = words_of(text);
    let word = |place: usize| words.get(place).map_or("", |range| &text[range.clone()]);
    let is = |place: usize, wanted: &str| word(place).eq_ignore_ascii_case(wanted);
    // Names may be the same words.
    let is_name = |place: usize| {
        let before = place - 1;
        let between = &text[words[before].end..words[place].start];
        let begins_name = ["TABLE", "TABLES", "EXISTS", "TO"];
        between.contains([',', '.']) || begins_name.iter().any(|name| is(before, name))
    };
    let is_number = |place: usize| {
        !word(place).is_empty() && word(place).bytes().all(|byte| byte.is_ascii_digit())
    };
    let last_of = |place: usize| match () {
        () if place == 0 || is_name(place) => None,
        () if is(place, "NOWAIT") => Some(place),
        () if is(place, "WAIT") && is_number(place + 1) => Some(place + 1),
        () => None,
    };
    let mut found: Vec<(usize, usize)> = (0..words.len())
        .filter_map(|place| last_of(place).map(|last| (place, last)))
        .collect();
    match () {
        () if is(0, "ALTER") => found.truncate(1),
        () if is(0, "RENAME") => found.retain(|(_, last)| is(last + 1, "TO")),
        () => drop(found.drain(..found.len().saturating_sub(1))),
    }
    let mut own = String::new();
    let mut done = 0;
    for (first, last) in found {
        own.push_str(text[done..words[first].start].trim_end());
        done = words[last].end;
    }
    own.push_str(&text[done..]);
    Cow::Owned(own)
}

fn without_or_replace(text: &str) -> Cow<'_, str> {
    let words = words_of(text);
    let word = |place: usize| words.get(place).map_or("", |range| &text[range.clone()]);
    let is = |place: usize, wanted: &str| word(place).eq_ignore_ascii_case(wanted);
    match words.get(3) {
        Some(behind) if is(1, "OR") && is(2, "REPLACE") => {
            let before = &text[..words[1].start];
            Cow::Owned(format!("{before}{}", &text[behind.start..]))
        }
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_around_a_statement_is_left_out() {
        for (given, own) in [
            ("CREATE TABLE t (a INT)", "CREATE TABLE t (a INT)"),
            (
                "SET STATEMENT sql_mode='', x = (1) FOR DROP TABLE t",
                "DROP TABLE t",
            ),
            (
                "set statement a=1 for set statement b='for' for DROP TABLE t",
                "DROP TABLE t",
            ),
            ("SET STATEMENT", "SET STATEMENT"),
        ] {
            assert_eq!(without_set_statement(given), own);
        }
        for (given, own) in [
            (
                "CREATE OR  REPLACE /* c */ TABLE t (a INT)",
                "CREATE TABLE t (a INT)",
            ),
            ("create table `or` (a INT)", "create table `or` (a INT)"),
        ] {
            assert_eq!(without_or_replace(given), own);
        }
        for (given, own) in [
            (
                "ALTER TABLE t ADD id INT AUTO_INCREMENT KEY ORDER BY a -- b",
                "ALTER TABLE t ALGORITHM=COPY, ADD id INT AUTO_INCREMENT KEY ORDER BY a -- b",
            ),
            (
                "alter table d . `a``t` algorithm INPLACE, ADD algorithm INT, lock = none, ALGORITHM=default",
                "alter table d . `a``t` ALGORITHM=COPY, algorithm COPY, ADD algorithm INT, lock = DEFAULT, ALGORITHM=COPY",
            ),
            (
                "ALTER TABLE t\nADD a INT COMMENT 'ALGORITHM=INPLACE', ADD (`lock` INT AUTO_INCREMENT KEY)",
                "ALTER TABLE t ALGORITHM=COPY,\nADD a INT COMMENT 'ALGORITHM=INPLACE', ADD (`lock` INT AUTO_INCREMENT KEY)",
            ),
        ] {
            assert_eq!(with_copy(given), own);
        }
        for (given, own) in [
            (
                "CREATE INDEX `lock` ON t (lock) ALGORITHM=INPLACE LOCK none",
                "CREATE INDEX `lock` ON t (lock) ALGORITHM=DEFAULT LOCK DEFAULT",
            ),
            (
                "ALTER TABLE t ADD a INT COMMENT 'LOCK=NONE', ALGORITHM=COPY, LOCK=SHARED",
                "ALTER TABLE t ADD a INT COMMENT 'LOCK=NONE', ALGORITHM=COPY, LOCK=SHARED",
            ),
        ] {
            assert_eq!(with_demands(given, "DEFAULT"), own);
        }
        for (given, own) in [
            ("DROP TABLE a, nowait NOWAIT", "DROP TABLE a, nowait"),
            ("DROP TABLE nowait WAIT 5", "DROP TABLE nowait"),
            (
                "ALTER TABLE d.t WAIT 5 DROP nowait",
                "ALTER TABLE d.t DROP nowait",
            ),
            (
                "RENAME TABLE a NOWAIT TO nowait, b WAIT 3 TO c",
                "RENAME TABLE a TO nowait, b TO c",
            ),
            (
                "CREATE INDEX i ON t (wait) NOWAIT COMMENT 'nowait'",
                "CREATE INDEX i ON t (wait) COMMENT 'nowait'",
            ),
        ] {
            assert_eq!(without_wait(given), own);
        }
    }
}
