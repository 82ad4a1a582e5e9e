//! The server as a replica: its connection to the source, and what it applies.

use sheaf_types::temporal::ZERO_DATETIME;

use crate::catalog_views::virtual_table::{Columns, owned};
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::replica::state::{Connection, Known, Worked};
use crate::session::Session;

const NUMBER: Cells = Cells::Unsigned;
const SIGNED: Cells = Cells::Signed;
const TEXT: Cells = Cells::Text(64);
const PATH: Cells = Cells::Text(512);
const LONG_TEXT: Cells = Cells::Text(1024);
const MOMENT: Cells = Cells::Moment;

/// `replication_connection_configuration`
pub(super) fn configuration_columns() -> Columns {
    owned(&[
        ("CHANNEL_NAME", TEXT),
        ("HOST", Cells::Text(255)),
        ("PORT", SIGNED),
        ("USER", Cells::Text(32)),
        ("NETWORK_INTERFACE", TEXT),
        ("AUTO_POSITION", TEXT),
        ("SSL_ALLOWED", TEXT),
        ("SSL_CA_FILE", PATH),
        ("SSL_CA_PATH", PATH),
        ("SSL_CERTIFICATE", PATH),
        ("SSL_CIPHER", PATH),
        ("SSL_KEY", PATH),
        ("SSL_VERIFY_SERVER_CERTIFICATE", TEXT),
        ("SSL_CRL_FILE", Cells::Text(255)),
        ("SSL_CRL_PATH", Cells::Text(255)),
        ("CONNECTION_RETRY_INTERVAL", SIGNED),
        ("CONNECTION_RETRY_COUNT", NUMBER),
        ("HEARTBEAT_INTERVAL", Cells::Double),
        ("TLS_VERSION", Cells::Text(255)),
        ("PUBLIC_KEY_PATH", PATH),
        ("GET_PUBLIC_KEY", TEXT),
        ("NETWORK_NAMESPACE", TEXT),
        ("COMPRESSION_ALGORITHM", TEXT),
        ("ZSTD_COMPRESSION_LEVEL", SIGNED),
        ("TLS_CIPHERSUITES", LONG_TEXT),
        ("SOURCE_CONNECTION_AUTO_FAILOVER", TEXT),
        ("GTID_ONLY", TEXT),
    ])
}

pub(super) fn configuration(session: &Session, rows: &mut Rows) -> Result<()> {
    let Some((known, _)) = replica_of(session) else {
        return Ok(());
    };
    let options = known.kept.unwrap_or_default().options;
    let nothing = || Cell::from("");
    let yes = |is_so: bool| Cell::from(if is_so { "YES" } else { "NO" });
    rows.push(vec![
        nothing(),
        options.host.into(),
        i64::from(options.port).into(),
        options.user.into(),
        nothing(),
        Cell::from(if options.auto_position { "1" } else { "0" }),
        yes(options.encrypts),
        options.tls.authorities.into(),
        nothing(),
        options.tls.certificate.into(),
        nothing(),
        options.tls.key.into(),
        yes(options.tls.verifies_name),
        nothing(),
        nothing(),
        i64::try_from(options.connect_retry)
            .unwrap_or(i64::MAX)
            .into(),
        options.retry_count.into(),
        Cell::Double(options.heartbeat_ms as f64 / 1000.0),
        nothing(),
        nothing(),
        yes(options.get_public_key),
        nothing(),
        "uncompressed".into(),
        3i64.into(),
        Cell::Null,
        "0".into(),
        "0".into(),
    ]);
    Ok(())
}

/// `replication_connection_status`
pub(super) fn connection_columns() -> Columns {
    owned(&[
        ("CHANNEL_NAME", TEXT),
        ("GROUP_NAME", TEXT),
        ("SOURCE_UUID", TEXT),
        ("THREAD_ID", NUMBER),
        ("SERVICE_STATE", TEXT),
        ("COUNT_RECEIVED_HEARTBEATS", NUMBER),
        ("LAST_HEARTBEAT_TIMESTAMP", MOMENT),
        ("RECEIVED_TRANSACTION_SET", Cells::Text(u32::MAX)),
        ("LAST_ERROR_NUMBER", SIGNED),
        ("LAST_ERROR_MESSAGE", LONG_TEXT),
        ("LAST_ERROR_TIMESTAMP", MOMENT),
        ("LAST_QUEUED_TRANSACTION", Cells::Text(90)),
        ("LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", MOMENT),
        ("LAST_QUEUED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", MOMENT),
        ("LAST_QUEUED_TRANSACTION_START_QUEUE_TIMESTAMP", MOMENT),
        ("LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP", MOMENT),
        ("QUEUEING_TRANSACTION", Cells::Text(90)),
        ("QUEUEING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", MOMENT),
        ("QUEUEING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", MOMENT),
        ("QUEUEING_TRANSACTION_START_QUEUE_TIMESTAMP", MOMENT),
    ])
}

pub(super) fn connection(session: &Session, rows: &mut Rows) -> Result<()> {
    let Some((known, (runs, _))) = replica_of(session) else {
        return Ok(());
    };
    let moment = |us| moment(session, us);
    let state = match known.connection {
        _ if !runs => "OFF",
        Connection::Connected => "ON",
        _ => "CONNECTING",
    };
    let mut row = vec![
        "".into(),
        "".into(),
        known.source_uuid.into(),
        Cell::Null,
        state.into(),
        known.heartbeats.into(),
        moment(known.last_heartbeat_us),
        known.retrieved.to_string().into(),
        i64::from(known.io_error.code).into(),
        known.io_error.message.into(),
        moment(known.io_error.time_us),
    ];
    row.extend(cells_of(session, known.received));
    rows.push(row);
    Ok(())
}

/// `replication_applier_status`
pub(super) fn applier_columns() -> Columns {
    owned(&[
        ("CHANNEL_NAME", TEXT),
        ("SERVICE_STATE", TEXT),
        ("REMAINING_DELAY", NUMBER),
        ("COUNT_TRANSACTIONS_RETRIES", NUMBER),
    ])
}

pub(super) fn applier(session: &Session, rows: &mut Rows) -> Result<()> {
    if let Some((known, (_, runs))) = replica_of(session) {
        rows.push(vec![
            "".into(),
            state_of(runs),
            Cell::Null,
            known.retries.into(),
        ]);
    }
    Ok(())
}

/// `replication_applier_status_by_coordinator`: empty, as the applier is one thread.
pub(super) fn coordinator_columns() -> Columns {
    owned(&[
        ("CHANNEL_NAME", TEXT),
        ("THREAD_ID", NUMBER),
        ("SERVICE_STATE", TEXT),
        ("LAST_ERROR_NUMBER", SIGNED),
        ("LAST_ERROR_MESSAGE", LONG_TEXT),
        ("LAST_ERROR_TIMESTAMP", MOMENT),
        ("LAST_PROCESSED_TRANSACTION", Cells::Text(90)),
        (
            "LAST_PROCESSED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP",
            MOMENT,
        ),
        (
            "LAST_PROCESSED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP",
            MOMENT,
        ),
        ("LAST_PROCESSED_TRANSACTION_START_BUFFER_TIMESTAMP", MOMENT),
        ("LAST_PROCESSED_TRANSACTION_END_BUFFER_TIMESTAMP", MOMENT),
        ("PROCESSING_TRANSACTION", Cells::Text(90)),
        ("PROCESSING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", MOMENT),
        ("PROCESSING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", MOMENT),
        ("PROCESSING_TRANSACTION_START_BUFFER_TIMESTAMP", MOMENT),
    ])
}

/// `replication_applier_status_by_worker`: the one thread.
pub(super) fn worker_columns() -> Columns {
    owned(&[
        ("CHANNEL_NAME", TEXT),
        ("WORKER_ID", NUMBER),
        ("THREAD_ID", NUMBER),
        ("SERVICE_STATE", TEXT),
        ("LAST_ERROR_NUMBER", SIGNED),
        ("LAST_ERROR_MESSAGE", LONG_TEXT),
        ("LAST_ERROR_TIMESTAMP", MOMENT),
        ("LAST_APPLIED_TRANSACTION", Cells::Text(90)),
        ("LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", MOMENT),
        (
            "LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP",
            MOMENT,
        ),
        ("LAST_APPLIED_TRANSACTION_START_APPLY_TIMESTAMP", MOMENT),
        ("LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP", MOMENT),
        ("APPLYING_TRANSACTION", Cells::Text(90)),
        ("APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", MOMENT),
        ("APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", MOMENT),
        ("APPLYING_TRANSACTION_START_APPLY_TIMESTAMP", MOMENT),
        ("LAST_APPLIED_TRANSACTION_RETRIES_COUNT", NUMBER),
        (
            "LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER",
            SIGNED,
        ),
        (
            "LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE",
            LONG_TEXT,
        ),
        (
            "LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP",
            MOMENT,
        ),
        ("APPLYING_TRANSACTION_RETRIES_COUNT", NUMBER),
        ("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER", SIGNED),
        (
            "APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE",
            LONG_TEXT,
        ),
        (
            "APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP",
            MOMENT,
        ),
    ])
}

pub(super) fn worker(session: &Session, rows: &mut Rows) -> Result<()> {
    let Some((known, (_, runs))) = replica_of(session) else {
        return Ok(());
    };
    let moment = |us| moment(session, us);
    let mut row = vec![
        "".into(),
        0u64.into(),
        Cell::Null,
        state_of(runs),
        i64::from(known.sql_error.code).into(),
        known.sql_error.message.into(),
        moment(known.sql_error.time_us),
    ];
    row.extend(cells_of(session, known.applied));
    row.extend([
        0u64.into(),
        0i64.into(),
        "".into(),
        moment(0),
        0u64.into(),
        0i64.into(),
        "".into(),
        moment(0),
    ]);
    rows.push(row);
    Ok(())
}

/// What is known, and whether the threads run; `None`: the server is no replica.
fn replica_of(session: &Session) -> Option<(Known, (bool, bool))> {
    let replica = session.engine.replica();
    let known = replica.state.get();
    let kept = known.kept.as_ref()?;
    if kept.options.host.is_empty() {
        return None;
    }
    Some((known, replica.threads_running()))
}

fn state_of(runs: bool) -> Cell {
    Cell::from(if runs { "ON" } else { "OFF" })
}

/// What a thread has done last, and what it does.
fn cells_of(session: &Session, worked: Worked) -> [Cell; 9] {
    let moment = |us| moment(session, us);
    [
        worked.last.into(),
        moment(worked.last_committed_us),
        moment(worked.last_committed_us),
        moment(worked.last_began_us),
        moment(worked.last_ended_us),
        worked.now.into(),
        moment(worked.now_committed_us),
        moment(worked.now_committed_us),
        moment(worked.now_began_us),
    ]
}

/// Microseconds since 1970, on the session's clock; 0 is no moment.
fn moment(session: &Session, us: u64) -> Cell {
    match i64::try_from(us) {
        Ok(us) if us > 0 => Cell::Signed(session.variables.time_zone().local(us)),
        _ => Cell::Signed(ZERO_DATETIME),
    }
}
