//! Statements by digest, and how long they took.

use crate::catalog_views::virtual_table::{Columns, owned};
use crate::error::Result;
use crate::events::digest_sums::DigestSums;
use crate::events::latency_histogram::{Bucket, LatencyHistogram};
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

pub(super) fn digest_columns() -> Columns {
    owned(&COLUMNS)
}

/// `events_statements_summary_by_digest`.
pub(super) fn by_digest(session: &Session, rows: &mut Rows) -> Result<()> {
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
    Ok(())
}

const BUCKET_COLUMNS: [(&str, Cells); 6] = [
    ("BUCKET_NUMBER", NUMBER),
    ("BUCKET_TIMER_LOW", NUMBER),
    ("BUCKET_TIMER_HIGH", NUMBER),
    ("COUNT_BUCKET", NUMBER),
    ("COUNT_BUCKET_AND_LOWER", NUMBER),
    ("BUCKET_QUANTILE", Cells::Double),
];

fn bucket_cells((number, bucket): (usize, Bucket)) -> [Cell; 6] {
    [
        Cell::Unsigned(number as u64),
        bucket.begin.into(),
        bucket.end.into(),
        bucket.count.into(),
        bucket.count_and_lower.into(),
        Cell::Double(bucket.quantile),
    ]
}

pub(super) fn histogram_columns() -> Columns {
    owned(&BUCKET_COLUMNS)
}

pub(super) fn histogram_columns_by_digest() -> Columns {
    let mut columns = owned(&[("SCHEMA_NAME", Cells::Name), ("DIGEST", Cells::Text(64))]);
    columns.extend(histogram_columns());
    columns
}

/// `events_statements_histogram_by_digest`, without the buckets that were never hit: there are 450 of each digest.
pub(super) fn histograms_by_digest(session: &Session, rows: &mut Rows) -> Result<()> {
    for (name, sums) in session.engine.digests_of_statements() {
        let (mut schema, mut hash) = (Cell::Null, Cell::Null);
        if let Some(name) = name {
            schema = name.schema.clone().into();
            hash = name.digest.hex().into();
        }
        session.handle.cancel_flag().check()?;
        let buckets = sums.times.all_buckets().enumerate();
        for bucket in buckets.filter(|(_, bucket)| bucket.count > 0) {
            let mut row = vec![schema.clone(), hash.clone()];
            row.extend(bucket_cells(bucket));
            rows.push(row);
        }
    }
    Ok(())
}

/// `events_statements_histogram_global`.
pub(super) fn histogram_of_all(session: &Session, rows: &mut Rows) -> Result<()> {
    let mut all = LatencyHistogram::default();
    for (_, sums) in session.engine.digests_of_statements() {
        all.merge(&sums.times);
    }
    for bucket in all.all_buckets().enumerate() {
        rows.push(bucket_cells(bucket).into());
    }
    Ok(())
}

/// The cells behind the names.
fn counted(sums: &DigestSums, session: &Session) -> Vec<Cell> {
    let zone = session.variables.time_zone();
    let moment = |micros: i64| Cell::Signed(zone.local(micros));
    let picos = |nanos: u64| Cell::Unsigned(nanos.saturating_mul(PICOS_PER_NANO));
    let not_measured = || Cell::Unsigned(0);
    let quantile = |thousandths| Cell::Unsigned(sums.times.quantile(thousandths));
    vec![
        sums.count.into(),
        picos(sums.sum_nanos),
        picos(sums.min_nanos),
        picos(sums.sum_nanos / sums.count.max(1)),
        picos(sums.max_nanos),
        picos(sums.lock_nanos),
        sums.errors.into(),
        sums.warnings.into(),
        sums.rows_affected.into(),
        sums.rows_sent.into(),
        sums.rows_examined.into(),
        sums.work.temporary_files.into(),
        sums.work.temporary_tables.into(),
        sums.reads.full_joins.into(),
        sums.reads.full_range_joins.into(),
        sums.reads.ranges.into(),
        // No index is chosen anew for each row.
        Cell::Unsigned(0),
        sums.reads.scans.into(),
        sums.work.merge_passes.into(),
        (sums.work.sorts - sums.sorts_of_scans).into(),
        sums.work.sorted_rows.into(),
        sums.sorts_of_scans.into(),
        sums.scans.into(),
        // No good index, processor time, memory, secondary engines.
        not_measured(),
        not_measured(),
        not_measured(),
        not_measured(),
        not_measured(),
        moment(sums.first_seen),
        moment(sums.last_seen),
        quantile(950),
        quantile(990),
        quantile(999),
        sums.sample.text.clone().into(),
        moment(sums.sample.seen),
        picos(sums.sample.nanos),
    ]
}
