//! The SQL thread: it takes events from the queue and applies transactions and statements.
//!
//! A transaction of rows is one transaction here, which writes the position, too. A DDL statement writes it with the
//! change of the catalog that it makes. With a binary log of its own it says there, too, which transaction of the
//! source it is (`binlog/origin.rs`). What fails is rolled back, and the thread stops with the error, as MySQL's
//! does. After a deadlock or a lock wait the transaction is received again a few times.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sheaf_binlog::gtid::Gtid;
use sheaf_binlog::received::rows::{RowsChange, table_of_rows};
use sheaf_binlog::received::{
    Received, ReceivedQuery, RowsKind, SourceEvent, SourceTable, TransactionPayload, uncompressed,
};
use sheaf_table::{AppliedChange, TableError, applied, put_replication_position};
use sheaf_types::error::codes;
use sheaf_types::text::quoting::quoted_string;

use super::filter::{Filter, changed_by};
use super::queue::Queued;
use super::source::Position;
use super::state::{Connection, ThreadError, Until, place};
use crate::binlog::origin::Origin;
use crate::binlog::statement::{definition_with_rows, is_create_table};
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::parser::statement::Statement;
use crate::parser::text_size::first_word;
use crate::session::{IgnoredResult, Session, SessionInfo};
use crate::session_parts::transactions::{IncomingTable, SourceKind};

/// Tables that a transaction may name, at most.
const MAX_TABLES: usize = 10_000;
/// The number of no table: MySQL ends a statement with it.
const NO_TABLE: u64 = 0xFF_FFFF;
/// A refused event that ends the group which it is in: the first part of an XA transaction.
const GROUP_END: &str = "XA_PREPARE";
/// MySQL's number for the version of a server that does not say it.
const UNKNOWN_VERSION: u32 = 999_999;
/// How often a transaction is tried again that others were in the way of (replica_transaction_retries).
const MAX_RETRIES: u32 = 10;
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Runs until it is told to stop, or a transaction cannot be applied.
pub(super) fn apply(engine: &Arc<Engine>, stops: &Arc<AtomicBool>) {
    let replica = engine.replica();
    let stopped = || stops.load(Ordering::Acquire);
    replica.queue.begin_applying();
    let mut applier = match Applier::new(engine, stops) {
        Ok(applier) => applier,
        Err(error) => return stop_with(engine, &error),
    };
    let mut retries = 0;
    loop {
        if applier.is_there() {
            tracing::info!("the replica has applied what it was told to");
            break;
        }
        applier.show_idle();
        let Some(item) = replica.queue.pop(&stopped) else {
            break;
        };
        let applied = match &item {
            Queued::Event { bytes, .. } => applier.take(bytes),
            Queued::Interrupted => {
                applier.interrupt();
                Ok(Step::Within)
            }
        };
        match applied {
            Ok(Step::Within) => {}
            Ok(Step::Ended) => retries = 0,
            Err(_) if stopped() || engine.is_shutting_down() => break,
            Err(error) if is_transient(&error) && retries < MAX_RETRIES => {
                retries += 1;
                replica.state.change(|known| known.retries += 1);
                tracing::warn!(%error, retries, "a transaction of the source is tried again");
                applier.interrupt();
                replica.queue.begin_applying();
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(error) => {
                applier.interrupt();
                stop_with(engine, &error);
                break;
            }
        }
    }
    applier.interrupt();
    replica.state.change(|known| {
        known.sql_state = "";
        known.applying_time = 0;
    });
}

fn stop_with(engine: &Arc<Engine>, error: &SqlError) {
    tracing::error!(%error, "the replica has stopped to apply");
    engine.replica().state.change(|known| {
        known.sql_error = ThreadError::now(error.code, error.message.as_str());
    });
}

/// Others were in the way.
fn is_transient(error: &SqlError) -> bool {
    error.is(codes::LOCK_WAIT_TIMEOUT)
        || error.is(codes::LOCK_DEADLOCK)
        || error.is_definition_changed()
}

/// What an event was to its transaction.
enum Step {
    Within,
    /// The last one.
    Ended,
}

/// The transaction that events are of.
#[derive(Default)]
struct Group {
    gtid: Option<Gtid>,
    /// What the own binary log says of it; `None`: it has none, or has the transaction already.
    origin: Option<Origin>,
    /// The source has begun it, and not ended it.
    is_begun: bool,
    /// Rows and statements are changes of one transaction.
    is_open: bool,
    /// It is not applied.
    is_skipped: bool,
    /// sql_replica_skip_counter leaves it out.
    is_counted: bool,
}

struct Applier {
    engine: Arc<Engine>,
    session: Session,
    /// Changes are in the own binary log.
    logs: bool,
    position: Position,
    /// Tables by the numbers that rows events name.
    tables: BTreeMap<u64, SourceTable>,
    group: Group,
    filter: Filter,
    until: Option<Until>,
    /// It has come to a transaction that it is not to begin with.
    is_in_front: bool,
}

impl Applier {
    fn new(engine: &Arc<Engine>, stops: &Arc<AtomicBool>) -> Result<Applier> {
        let mut session = engine.session_of_replica(SessionInfo {
            user: "system user".into(),
            host: String::new(),
            ..SessionInfo::default()
        })?;
        session.transactions.applies(SourceKind::Mysql);
        let logs = engine.binlog().is_some();
        session.variables.log_changes(logs);
        // What a statement sets is reset before the next one; rows are in UTC.
        session.run_own("SET time_zone = '+00:00'")?;
        let kept = engine.replica().state.get().kept.unwrap_or_default();
        let handle = session.handle();
        let cancelled = Arc::clone(stops);
        engine.replica().on_stop_applying(Box::new(move || {
            if cancelled.load(Ordering::Acquire) {
                handle.cancel();
            }
        }));
        Ok(Applier {
            logs,
            engine: Arc::clone(engine),
            session,
            position: kept.position,
            filter: kept.options.filter,
            tables: BTreeMap::new(),
            group: Group::default(),
            until: engine.replica().state.get().until,
            is_in_front: false,
        })
    }

    fn show_idle(&self) {
        if self.group.is_open {
            return;
        }
        let replica = self.engine.replica();
        if replica.queue.bytes() == 0 {
            replica.state.change(|known| {
                known.applying_time = 0;
                known.sql_state = match known.connection {
                    Connection::Connected => {
                        "Replica has read all relay log; waiting for more updates"
                    }
                    _ => "Waiting for source to send event",
                };
            });
        }
    }

    /// Whether START REPLICA UNTIL has the applier stop here. It never does within a transaction.
    fn is_there(&self) -> bool {
        let Some(until) = &self.until else {
            return false;
        };
        !(self.group.is_begun || self.group.is_open)
            && (self.is_in_front || until.is_reached(&self.position, &self.engine.executed_gtids()))
    }

    /// Rolls back what is not complete.
    fn interrupt(&mut self) {
        self.tables.clear();
        if std::mem::take(&mut self.group).is_open {
            let _ = self.session.execute("ROLLBACK", &mut IgnoredResult);
        }
        self.session.transactions.incoming = IncomingTable::default();
        self.engine
            .replica()
            .state
            .change(|known| known.applied.give_up());
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Step> {
        let plain = uncompressed(bytes, self.engine.longest_source_event());
        let plain = plain.map_err(|error| unreadable_because(&error))?;
        let bytes = plain.as_deref().unwrap_or(bytes);
        let event = match SourceEvent::is_description(bytes) {
            true => SourceEvent::description(bytes),
            false => SourceEvent::new(bytes, false),
        };
        let event = event.ok_or_else(unreadable)?;
        let said = event.read().ok_or_else(unreadable)?;
        let end = self.place_behind(&event);
        self.take_read(&event, said, end)
    }

    /// The compressed events of a transaction: what stands behind its GTID.
    fn payload(&mut self, payload: TransactionPayload<'_>, end: u64) -> Result<Step> {
        if self.group.is_skipped {
            return self.keep_position(self.next_position(end));
        }
        let max_bytes = self.engine.longest_source_event();
        let failed = |error| unreadable_because(&error);
        let mut events = payload.events(max_bytes).map_err(failed)?;
        while let Some(bytes) = events.read_event().map_err(failed)? {
            let event = SourceEvent::new(bytes, false).ok_or_else(unreadable)?;
            let said = event.read().ok_or_else(unreadable)?;
            // Its transaction is one of a file, and has a GTID already.
            let is_within = matches!(
                said,
                Received::Query(_)
                    | Received::LastInsertId(_)
                    | Received::InsertId(_)
                    | Received::TableMap(_)
                    | Received::Rows(..)
                    | Received::Xid
                    | Received::Nothing
                    | Received::Refused(_)
            );
            if !is_within {
                return Err(unreadable());
            }
            if let Step::Ended = self.take_read(&event, said, end)? {
                return Ok(Step::Ended);
            }
        }
        Err(unreadable())
    }

    /// `end`: the position behind the event.
    fn take_read(&mut self, event: &SourceEvent<'_>, said: Received<'_>, end: u64) -> Result<Step> {
        match said {
            Received::FormatDescription { version, .. } => {
                let source = match version.contains("MariaDB") {
                    true => SourceKind::Mariadb,
                    false => SourceKind::Mysql,
                };
                self.session.transactions.applies(source);
            }
            Received::Nothing | Received::Heartbeat => {}
            Received::Rotate { file, position } => {
                // A transaction is in one file.
                if self.group.is_open {
                    self.interrupt();
                }
                self.move_to(file, position);
            }
            Received::Gtid(gtid) => {
                let mut until = self.until.iter();
                if until.any(|until| until.is_in_front_of(gtid)) {
                    self.is_in_front = true;
                    return Ok(Step::Within);
                }
                self.begin_group(event, gtid)?;
            }
            Received::MariadbGtid {
                is_one_statement, ..
            } => {
                self.begin_group(event, None)?;
                if !is_one_statement {
                    self.open()?;
                }
            }
            Received::Query(query) => return self.query(event, &query, end),
            Received::LastInsertId(value) => {
                self.set(&format!("SET last_insert_id = {value}"))?;
            }
            Received::InsertId(value) => self.set(&format!("SET insert_id = {value}"))?,
            Received::TableMap(body) => {
                let table = SourceTable::read(body).ok_or_else(unreadable)?;
                if self.tables.len() >= MAX_TABLES {
                    return Err(fatal("a transaction names too many tables"));
                }
                self.tables.insert(table.id, table);
            }
            Received::Rows(kind, body) => self.rows(kind, body, end)?,
            Received::Payload(payload) => return self.payload(payload, end),
            Received::Xid => return self.commit(end),
            Received::Refused(name) => {
                if !self.group.is_skipped {
                    return Err(fatal(&format!("events {name} are not supported yet")));
                }
                if name == GROUP_END {
                    return self.keep_position(self.next_position(end));
                }
            }
        }
        Ok(Step::Within)
    }

    /// The position behind an event, whose low 32 bits it says.
    fn place_behind(&self, event: &SourceEvent<'_>) -> u64 {
        let low = u64::from(event.end());
        if low == 0 || event.is_artificial() {
            return self.position.position;
        }
        let high = self.position.position >> 32 << 32;
        let place = high | low;
        match place < self.position.position {
            true => place + (1 << 32),
            false => place,
        }
    }

    fn move_to(&mut self, file: String, position: u64) {
        self.position.file = file;
        self.position.position = position;
        // By GTIDs a source begins with a file, and leaves out what was applied.
        let is_back = self.engine.replica().state.change(|known| {
            known.kept.as_ref().is_some_and(|kept| {
                let (shown, own) = (&kept.position, &self.position);
                kept.options.auto_position
                    && place(&own.file, own.position) < place(&shown.file, shown.position)
            })
        });
        if !is_back {
            self.show_position();
        }
    }

    fn show_position(&self) {
        let position = self.position.clone();
        self.engine.replica().state.change(|known| {
            if let Some(kept) = &mut known.kept {
                kept.position = position;
            }
        });
    }

    fn begin_group(&mut self, event: &SourceEvent<'_>, gtid: Option<Gtid>) -> Result<()> {
        if self.group.is_open {
            self.interrupt();
        }
        let replica = self.engine.replica();
        let is_known = gtid
            .is_some_and(|gtid| self.position.gtids.contains(gtid) || self.engine.has_logged(gtid));
        // The number may be set anew at any time.
        let is_own = event.server_id() == self.engine.server_id();
        let is_done = is_own || is_known;
        // What is left out anyway is not one of those to leave out.
        let is_counted = replica.state.change(|known| {
            let name = gtid.map_or("ANONYMOUS".to_string(), |gtid| gtid.to_string());
            known
                .applied
                .begin(name, u64::from(event.time()) * 1_000_000);
            known.applying_time = event.time();
            known.sql_state = "Applying batch of row changes";
            !is_done && known.skip > 0
        });
        let origin = (self.logs && !is_done).then(|| origin_of(event, gtid));
        self.group = Group {
            // What is left out for its number alone has not been executed.
            gtid: gtid.filter(|_| !is_own),
            origin,
            is_begun: true,
            is_open: false,
            is_skipped: is_done || is_counted,
            is_counted,
        };
        Ok(())
    }

    /// Begins the transaction that rows are changed in.
    fn open(&mut self) -> Result<()> {
        self.group.is_open = true;
        match self.group.is_skipped {
            true => Ok(()),
            false => self.begin(),
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.session.execute("BEGIN", &mut IgnoredResult)?;
        let changes = self.session.transactions.open_changes();
        if let Some((origin, changes)) = self.group.origin.zip(changes) {
            changes.annotate(&origin.to_bytes(), true)?;
        }
        Ok(())
    }

    fn set(&mut self, text: &str) -> Result<()> {
        match self.group.is_skipped {
            true => Ok(()),
            false => self.session.run_own(text),
        }
    }

    fn rows(&mut self, kind: RowsKind, body: &[u8], end: u64) -> Result<()> {
        if self.group.is_skipped {
            return Ok(());
        }
        if !self.group.is_open {
            self.open()?;
        }
        let number = table_of_rows(body).ok_or_else(|| fatal("a rows event cannot be read"))?;
        if number == NO_TABLE {
            return Ok(());
        }
        let Some(table) = self.tables.get(&number) else {
            return Err(fatal(
                "a rows event is about a table that no event describes",
            ));
        };
        if !self.filter.takes_rows(&table.database, &table.name) {
            return Ok(());
        }
        let checks = sheaf_binlog::received::rows::checks_foreign_keys(body);
        self.session.variables.check_foreign_keys(checks);
        let applied = self
            .session
            .run("", |session| session.apply_rows(kind, body, table));
        applied.map_err(|error| {
            let what = match kind.change {
                RowsChange::Insert => "Write_rows",
                RowsChange::Update => "Update_rows",
                RowsChange::Delete => "Delete_rows",
            };
            SqlError {
                message: format!(
                    "Could not execute {what} event on table {}.{}; {}, Error_code: {}; the event's source log {}, \
                     end_log_pos {end}",
                    table.database, table.name, error.message, error.code, self.position.file
                ),
                ..error
            }
        })
    }

    fn query(
        &mut self,
        event: &SourceEvent<'_>,
        query: &ReceivedQuery<'_>,
        end: u64,
    ) -> Result<Step> {
        let text = text_of(query)?;
        match first_word(&text).to_ascii_uppercase().as_str() {
            "BEGIN" => {
                self.open()?;
                return Ok(Step::Within);
            }
            "COMMIT" => return self.commit(end),
            "ROLLBACK" if !text.to_ascii_uppercase().contains(" TO ") => {
                if self.group.is_open && !self.group.is_skipped {
                    self.session.execute("ROLLBACK", &mut IgnoredResult)?;
                    self.begin()?;
                }
                return self.commit(end);
            }
            "XA" if !self.group.is_skipped => {
                return Err(fatal("XA transactions are not supported yet"));
            }
            "XA" => {
                // Between XA START and XA_PREPARE nothing ends the group.
                let verb = text.split_whitespace().nth(1).unwrap_or_default();
                if ["START", "BEGIN", "END"]
                    .iter()
                    .any(|within| verb.eq_ignore_ascii_case(within))
                {
                    self.open()?;
                    return Ok(Step::Within);
                }
                return self.keep_position(self.next_position(end));
            }
            _ => {}
        }
        // MySQL says that rows follow; MariaDB has a definition in a transaction only if they do.
        let definition = match definition_with_rows(&text) {
            Some(definition) => Some(definition),
            None => Some(Cow::Borrowed(text.as_str()))
                .filter(|_| self.group.is_open && is_create_table(&text)),
        };
        let definition = definition.as_deref();
        let is_taken =
            self.group.is_skipped || self.takes_statement(query, definition.unwrap_or(&text))?;
        if !is_taken {
            return match (self.group.is_open, definition) {
                (true, _) => Ok(Step::Within),
                // Its rows are to come.
                (false, Some(_)) => self.open().map(|()| Step::Within),
                (false, None) => self.keep_position(self.next_position(end)),
            };
        }
        if let Some(definition) = definition {
            self.create_for_rows(event, query, definition, end)?;
            return Ok(Step::Within);
        }
        if self.group.is_open {
            if !self.group.is_skipped {
                self.run_statement(event, query, &text)?;
            }
            return Ok(Step::Within);
        }
        let next = self.next_position(end);
        if self.group.is_skipped {
            return self.keep_position(next);
        }
        let change = AppliedChange {
            position: next.to_bytes(),
            origin: self.group.origin.map(Origin::to_bytes),
        };
        let (ran, is_written) = applied(change, || self.run_statement(event, query, &text));
        ran?;
        match is_written {
            true => self.ended(next),
            // It has changed nothing in the catalog.
            false => self.keep_position(next),
        }
    }

    /// Whether the filter lets a statement pass. Error 1593 for changes of rows, of which it is not known here which
    /// tables they are of.
    fn takes_statement(&mut self, query: &ReceivedQuery<'_>, text: &str) -> Result<bool> {
        if self.filter.is_empty() {
            return Ok(true);
        }
        let database = String::from_utf8_lossy(query.database).into_owned();
        let dialect = self.session.dialect();
        // What cannot be read fails when it runs.
        let Ok(statement) = crate::parser::parse_statement(text, &dialect) else {
            return Ok(true);
        };
        if self.filter.names_tables()
            && matches!(
                statement,
                Statement::Insert(_)
                    | Statement::Update(_)
                    | Statement::Delete(_)
                    | Statement::LoadData(_)
            )
        {
            return Err(fatal(
                "statements that change rows are not supported yet beside a replication filter of tables; set \
                 binlog_format = ROW on the source",
            ));
        }
        let changed = changed_by(&statement, &database);
        Ok(self.filter.takes_statement(&database, &changed))
    }

    /// Makes the table of a CREATE TABLE ... SELECT, whose rows follow in the same transaction of the source: it is
    /// there when they are. An earlier version made it before its rows, and said so in the position.
    fn create_for_rows(
        &mut self,
        event: &SourceEvent<'_>,
        query: &ReceivedQuery<'_>,
        definition: &str,
        end: u64,
    ) -> Result<()> {
        if !self.group.is_skipped && self.position.made != end {
            if std::mem::take(&mut self.group.is_open) {
                self.session.execute("ROLLBACK", &mut IgnoredResult)?;
            }
            self.session.transactions.incoming.is_next = true;
            let ran = self.run_statement(event, query, definition);
            self.session.transactions.incoming.is_next = false;
            ran?;
        }
        if !self.group.is_open {
            self.open()?;
            self.session.transactions.keep_incoming_table();
        }
        Ok(())
    }

    /// Runs a statement with what is known of the session that ran it.
    fn run_statement(
        &mut self,
        event: &SourceEvent<'_>,
        query: &ReceivedQuery<'_>,
        text: &str,
    ) -> Result<()> {
        let utf8mb4 = query.default_collation_for_utf8mb4;
        if utf8mb4.is_some_and(|id| id != sheaf_types::Collation::default().id())
            && text.to_ascii_lowercase().contains("utf8mb4")
        {
            return Err(fatal(
                "a statement with another default_collation_for_utf8mb4 than utf8mb4_0900_ai_ci is not supported yet",
            ));
        }
        let database = String::from_utf8_lossy(query.database).into_owned();
        let session = &mut self.session;
        // CREATE DATABASE names a database that is not there yet.
        if database.is_empty() || session.set_database(&database).is_err() {
            session.database = None;
        }
        let on = |is_on: bool| if is_on { "1" } else { "0" };
        let mut set = format!(
            "SET timestamp = {}.{:06}, pseudo_thread_id = {}, foreign_key_checks = {}, unique_checks = {}",
            event.time(),
            query.microseconds,
            query.thread_id,
            on(query.foreign_key_checks),
            on(query.unique_checks)
        );
        if let Some(mode) = query.sql_mode {
            set.push_str(&format!(", sql_mode = {}", mode & KNOWN_MODES));
        }
        // Where the event does not say them, they are 1, whatever the replica's global values are.
        let (increment, offset) = query.auto_increment.unwrap_or((1, 1));
        set.push_str(&format!(
            ", auto_increment_increment = {increment}, auto_increment_offset = {offset}"
        ));
        set.push_str(&format!(", lc_time_names = {}", query.lc_time_names));
        if let Some(zone) = query.time_zone {
            let zone = String::from_utf8_lossy(zone).into_owned();
            set.push_str(&format!(", time_zone = {}", quoted_string(&zone)));
        }
        if let Some([_, connection, server]) = query.collations {
            for (name, id) in [
                ("collation_connection", connection),
                ("collation_server", server),
            ] {
                if let Some(collation) = sheaf_types::Collation::of_id(id.into()) {
                    set.push_str(&format!(", {name} = {}", collation.name()));
                }
            }
        }
        session.run_own(&set)?;
        session.transactions.source_text = Some(text.to_string());
        let ran = session.execute(text, &mut IgnoredResult);
        session.transactions.source_text = None;
        session.run_own("SET time_zone = '+00:00', timestamp = DEFAULT")?;
        match ran {
            Err(error) if query.error == 0 || query.error != error.code => {
                let shown = crate::error::excerpt(text);
                Err(SqlError {
                    message: format!(
                        "Error '{}' on query. Default database: '{database}'. Query: '{shown}'",
                        error.message
                    ),
                    ..error
                })
            }
            // The source had the same error.
            _ => Ok(()),
        }
    }

    fn next_position(&self, end: u64) -> Position {
        let mut next = self.position.clone();
        next.position = end;
        next.made = 0;
        if let Some(gtid) = self.group.gtid {
            next.gtids.add(gtid);
        }
        next
    }

    /// Ends the group with its changes and the position in one transaction.
    fn commit(&mut self, end: u64) -> Result<Step> {
        let next = self.next_position(end);
        if self.group.is_skipped || !self.group.is_open {
            return self.keep_position(next);
        }
        let bytes = next.to_bytes();
        let storage = Arc::clone(self.engine.storage());
        let is_written = self.session.run("COMMIT", |session| {
            let changes = session.transactions.open_changes();
            let is_written = changes.is_some();
            if let Some(changes) = changes {
                put_replication_position(&storage, changes, &bytes)?;
            }
            session.commit_source_table()?;
            Ok(is_written)
        })?;
        match is_written {
            true => self.ended(next),
            // Nothing was changed: the filter has left out all of it, for example.
            false => self.keep_position(next),
        }
    }

    /// Keeps a position that no change has written.
    fn keep_position(&mut self, next: Position) -> Result<Step> {
        let storage = self.engine.storage();
        let mut transaction = storage.begin_transaction();
        // Own followers learn that there is nothing in it.
        let origin = self.group.origin.filter(|origin| origin.gtid.is_some());
        let said = match origin {
            Some(origin) => transaction.annotate(&origin.to_bytes(), true),
            None => Ok(()),
        };
        let position = next.to_bytes();
        let put = said
            .map_err(TableError::from)
            .and_then(|()| put_replication_position(storage, &mut transaction, &position));
        match put {
            Ok(()) => transaction.commit_or_stop()?,
            Err(error) => {
                transaction.rollback()?;
                return Err(error.into());
            }
        }
        self.ended(next)
    }

    fn ended(&mut self, next: Position) -> Result<Step> {
        self.position = next;
        self.show_position();
        self.tables.clear();
        let is_counted = std::mem::take(&mut self.group).is_counted;
        self.engine.replica().state.change(|known| {
            known.applied.end();
            if is_counted {
                known.skip = known.skip.saturating_sub(1);
            }
        });
        Ok(Step::Ended)
    }
}

/// All but NO_AUTO_CREATE_USER, which MariaDB has on and which means nothing here.
const KNOWN_MODES: u64 = !(1 << 28);

/// Where the transaction comes from that an event begins.
fn origin_of(event: &SourceEvent<'_>, gtid: Option<Gtid>) -> Origin {
    let began = (u64::from(event.time()) * 1_000_000, UNKNOWN_VERSION);
    let (committed_us, version) = event.first_commit().unwrap_or(began);
    Origin {
        server_id: event.server_id(),
        time: event.time(),
        committed_us,
        version,
        gtid,
    }
}

fn unreadable() -> SqlError {
    SqlError::new(
        codes::REPLICA_RELAY_LOG_READ_FAILURE,
        "Relay log read failure: an event cannot be read",
    )
}

/// Of compressed bytes.
fn unreadable_because(error: &std::io::Error) -> SqlError {
    SqlError::new(
        codes::REPLICA_RELAY_LOG_READ_FAILURE,
        format!("Relay log read failure: compressed events cannot be read: {error}"),
    )
}

/// The text of a statement, which is in the character set of its client.
fn text_of(query: &ReceivedQuery<'_>) -> Result<String> {
    let client = query.collations.map_or(45, |[client, ..]| client);
    sheaf_binlog::received::decode_text(query.text, client)
        .ok_or_else(|| fatal("a statement is in a character set that is not known"))
}

fn fatal(message: &str) -> SqlError {
    SqlError::new(
        codes::REPLICA_FATAL_ERROR,
        format!("Fatal error: {message}"),
    )
}
