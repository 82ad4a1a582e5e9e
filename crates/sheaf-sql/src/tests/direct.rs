//! Direct plans, and what surrounds them.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use sheaf_types::Value;

use super::{Bench, Collected};
use crate::error::Result;
use crate::session::result::CellRow;
use crate::variables::Isolation;
use crate::{Cell, ColumnMeta, EndOfRows, OkInfo, ResultSink, SessionHandle};

/// Waiting for another thread fails after this.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sink that takes rows, and can wait at each until the statement is cancelled.
#[derive(Default)]
pub(super) struct RowSink {
    waits_for: Option<Arc<SessionHandle>>,
    columns: usize,
    rows: Vec<String>,
}

impl ResultSink for RowSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.columns = columns.len();
        Ok(())
    }

    fn rows(&mut self, _batch: &RecordBatch) -> Result<()> {
        panic!("the statement is not direct");
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(&mut self, _columns: &[ColumnMeta], row: &dyn CellRow) -> Result<()> {
        if let Some(handle) = &self.waits_for {
            let begin = Instant::now();
            while !handle.cancel_flag().is_cancelled() {
                assert!(begin.elapsed() < PATIENCE, "nobody ends the statement");
                std::thread::yield_now();
            }
        }
        let cells = (0..self.columns).map(|column| match row.cell(column) {
            Cell::Signed(number) => number.to_string(),
            other => format!("{other:?}"),
        });
        self.rows.push(cells.collect::<Vec<_>>().join("|"));
        Ok(())
    }

    fn end_of_rows(&mut self, _end: EndOfRows) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _ok: OkInfo) -> Result<()> {
        Ok(())
    }

    fn local_infile(&mut self, _name: &str) -> Result<Box<dyn Read + '_>> {
        Ok(Box::new(std::io::empty()))
    }
}

fn direct(bench: &mut Bench, sink: &mut RowSink, sql: &str) -> Result<()> {
    bench.session.execute(sql, sink)
}

#[test]
fn a_direct_read_keeps_to_its_time() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
    let mut sink = RowSink::default();
    direct(&mut bench, &mut sink, "SELECT a FROM t WHERE a IN (3, 1)").expect("no limit");
    assert_eq!(sink.rows, ["1", "3"]);
    for variable in ["max_execution_time = 1", "max_statement_time = 0.001"] {
        bench.ok(&format!("SET {variable}"));
        let mut sink = RowSink {
            waits_for: Some(bench.session.handle()),
            ..RowSink::default()
        };
        let outcome = direct(&mut bench, &mut sink, "SELECT a FROM t WHERE a IN (1, 2)");
        assert_eq!(outcome.map_err(|error| error.code), Err(3024), "{variable}");
        bench.ok("SET max_execution_time = 0, max_statement_time = 0");
    }
}

#[test]
fn a_direct_query_has_a_cost_of_its_own() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
    let cost = "SHOW STATUS LIKE 'Last_query_cost'";
    bench.ok("SELECT COUNT(*) FROM t AS x, t AS y WHERE x.a <> y.a");
    assert_ne!(bench.rows(cost), ["Last_query_cost|1.000000"]);
    let mut sink = RowSink::default();
    direct(&mut bench, &mut sink, "SELECT a FROM t WHERE a = 1").expect("a row");
    assert_eq!(bench.rows(cost), ["Last_query_cost|1.000000"]);
    // Changes are no queries.
    bench.ok("SELECT COUNT(*) FROM t AS x, t AS y WHERE x.a <> y.a");
    let estimated = bench.rows(cost);
    direct(&mut bench, &mut sink, "DELETE FROM t WHERE a = 1").expect("it is deleted");
    assert_eq!(bench.rows(cost), estimated);
}

#[test]
fn a_sum_beyond_every_decimal_is_an_error() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, d DECIMAL(38,0), b BIGINT)");
    let nines = "9".repeat(38);
    let most = i64::MAX;
    bench.ok(&format!(
        "INSERT INTO t VALUES (1, {nines}, {most}), (2, {nines}, {most})"
    ));
    let mut sink = RowSink::default();
    let sum = "SELECT SUM(d) FROM t WHERE a BETWEEN 1 AND 2";
    let outcome = direct(&mut bench, &mut sink, sum);
    assert_eq!(outcome.map_err(|error| error.code), Err(1690));
    let sum = "SELECT SUM(b) FROM t WHERE a BETWEEN 1 AND 2";
    direct(&mut bench, &mut sink, sum).expect("integers add up to a DECIMAL");
    let expected = 2 * i128::from(most);
    assert_eq!(
        sink.rows,
        [format!("Decimal {{ unscaled: {expected}, scale: 0 }}")]
    );
}

/// The statement that goes on another way is the one that SET TRANSACTION was for.
#[test]
fn an_attempt_that_gives_up_leaves_set_transaction_to_the_next() {
    let mut bench = Bench::new();
    bench.ok("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    let session = &mut bench.session;
    let statement = session.begin_locks(None);
    session
        .transactions
        .abandon_changes(statement)
        .expect("nothing was changed");
    assert_eq!(
        session.transactions.next.isolation,
        Some(Isolation::Serializable)
    );
}

#[test]
fn what_was_compiled_from_a_long_text_is_not_kept() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b LONGTEXT)");
    let mut sink = Collected::default();
    for (id, length, direct) in [(1, 100, 1), (2, 1 << 16, 0)] {
        bench.ok("FLUSH STATUS");
        let text = format!("INSERT INTO t VALUES (?, '{}')", "x".repeat(length));
        let prepared = bench.session.prepare(&text).expect("prepared");
        bench
            .session
            .execute_prepared(prepared.id, &[Value::Int(id)], &mut sink)
            .expect("inserted");
        assert_eq!(
            bench.rows("SHOW STATUS LIKE 'Statements_direct'"),
            [format!("Statements_direct|{direct}")]
        );
    }
    assert_eq!(bench.rows("SELECT COUNT(*) FROM t"), ["2"]);
}

/// `*` is short, and its plan as long as the table is wide.
#[test]
fn the_columns_of_a_plan_count_in_the_cache() {
    let mut bench = Bench::new();
    let columns: Vec<String> = (0..300).map(|column| format!("c{column} INT")).collect();
    bench.ok(&format!(
        "CREATE TABLE t ({}, PRIMARY KEY (c0))",
        columns.join(", ")
    ));
    let bytes = |bench: &mut Bench| -> u64 {
        let rows = bench.rows("SHOW STATUS LIKE 'Statement_cache_bytes'");
        let (_, value) = rows[0].split_once('|').expect("a name and a value");
        value.parse().expect("a number")
    };
    bench.ok("SELECT c1 FROM t WHERE c0 = 1");
    let narrow = bytes(&mut bench);
    bench.ok("SELECT * FROM t WHERE c0 = 1");
    assert!(bytes(&mut bench) > narrow + 300 * 300);
}

#[test]
fn a_kept_expression_tells_of_its_constants_each_time() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 0), (2, 0)");
    for way in ["direct=on", "direct=off"] {
        bench.ok(&format!("SET optimizer_switch = '{way}'"));
        for time in 1..=3 {
            let answer = bench.ok("SELECT a = 'x1' FROM t WHERE id = 1");
            assert_eq!(
                (answer.rows, answer.warnings),
                (vec!["1".into()], 1),
                "{way}, time {time}"
            );
            assert_eq!(
                bench.rows("SHOW WARNINGS"),
                ["Warning|1292|Truncated incorrect DOUBLE value: 'x1'"]
            );
        }
    }
}
