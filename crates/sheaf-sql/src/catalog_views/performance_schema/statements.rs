//! Statements by digest.

use crate::events::digest_sums::DigestSums;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;

const LONG_TEXT: Cells = Cells::Text(u32::MAX);
const NUMBER: Cells = Cells::Unsigned;

/// The columns, in MySQL's order.
const COLUMNS: [(&str, Cells); 39] = [
    ("SCHEMA_NAME", Cells::Name),
    ("DIGEST", Cells::Text(64)),
    ("DIGEST_TEXT", LONG_TEXT),
    ("COUNT_STAR", NUMBER),
    ("SUM_TIMER_WAIT", NUMBER),
    ("MIN_TIMER_WAIT", NUMBER),
    ("AVG_TIMER_WAIT", NUMBER),
    ("MAX_TIMER_WAIT", NUMBER),
    ("SUM_LOCK_TIME", NUMBER),
    ("SUM_ERRORS", NUMBER),
    ("SUM_WARNINGS", NUMBER),
    ("SUM_ROWS_AFFECTED", NUMBER),
    ("SUM_ROWS_SENT", NUMBER),
    ("SUM_ROWS_EXAMINED", NUMBER),
    ("SUM_CREATED_TMP_DISK_TABLES", NUMBER),
    ("SUM_CREATED_TMP_TABLES", NUMBER),
    ("SUM_SELECT_FULL_JOIN", NUMBER),
    ("SUM_SELECT_FULL_RANGE_JOIN", NUMBER),
    ("SUM_SELECT_RANGE", NUMBER),
    ("SUM_SELECT_RANGE_CHECK", NUMBER),
    ("SUM_SELECT_SCAN", NUMBER),
    ("SUM_SORT_MERGE_PASSES", NUMBER),
    ("SUM_SORT_RANGE", NUMBER),
    ("SUM_SORT_ROWS", NUMBER),
    ("SUM_SORT_SCAN", NUMBER),
    ("SUM_NO_INDEX_USED", NUMBER),
    ("SUM_NO_GOOD_INDEX_USED", NUMBER),
    ("SUM_CPU_TIME", NUMBER),
    ("MAX_CONTROLLED_MEMORY", NUMBER),
    ("MAX_TOTAL_MEMORY", NUMBER),
    ("COUNT_SECONDARY", NUMBER),
    ("FIRST_SEEN", Cells::Moment),
    ("LAST_SEEN", Cells::Moment),
    ("QUANTILE_95", NUMBER),
    ("QUANTILE_99", NUMBER),
    ("QUANTILE_999", NUMBER),
    ("QUERY_SAMPLE_TEXT", LONG_TEXT),
    ("QUERY_SAMPLE_SEEN", Cells::Moment),
    ("QUERY_SAMPLE_TIMER_WAIT", NUMBER),
];

/// Timers count picoseconds.
const PICOS_PER_NANO: u64 = 1000;

/// `events_statements_summary_by_digest`.
pub(super) fn by_digest(session: &Session) -> Rows {
    let mut rows = Rows::new(COLUMNS);
    for (name, sums) in session.engine.digests_of_statements() {
        let (mut schema, mut hash, mut text) = (Cell::Null, Cell::Null, Cell::Null);
        if let Some(name) = name {
            schema = name.schema.clone().into();
            hash = name.digest.hex().into();
            text = name.digest.text.clone().into();
        }
        let mut row = vec![schema, hash, text];
        row.extend(counted(&sums, session));
        rows.push(row);
    }
    rows
}

/// The cells behind the names.
fn counted(sums: &DigestSums, session: &Session) -> Vec<Cell> {
    let zone = session.variables.time_zone();
    let moment = |micros: i64| Cell::Signed(zone.local(micros));
    let picos = |nanos: u64| Cell::Unsigned(nanos.saturating_mul(PICOS_PER_NANO));
    let not_measured = || Cell::Unsigned(0);
    let quantile = |share: f64| picos(sums.times.quantile(share));
    vec![
        sums.count.into(),
        picos(sums.sum_nanos),
        picos(sums.min_nanos),
        picos(sums.sum_nanos / sums.count.max(1)),
        picos(sums.max_nanos),
        not_measured(),
        sums.errors.into(),
        sums.warnings.into(),
        sums.rows_affected.into(),
        sums.rows_sent.into(),
        sums.rows_examined.into(),
        not_measured(),
        not_measured(),
        not_measured(),
        not_measured(),
        not_measured(),
        not_measured(),
        sums.scans.into(),
        not_measured(),
        not_measured(),
        not_measured(),
        not_measured(),
        sums.scans.into(),
        not_measured(),
        not_measured(),
        not_measured(),
        not_measured(),
        not_measured(),
        moment(sums.first_seen),
        moment(sums.last_seen),
        quantile(0.95),
        quantile(0.99),
        quantile(0.999),
        sums.sample.text.clone().into(),
        moment(sums.sample.seen),
        picos(sums.sample.nanos),
    ]
}
