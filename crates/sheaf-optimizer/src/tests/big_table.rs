//! What is done otherwise where there are many rows.

use sheaf_types::Value;

use super::harness::Lab;

const ROWS: i64 = 60_000;

/// Rows whose key is spread over all of the table by a secondary index.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let rows = (0..ROWS).map(|id| {
        vec![
            Value::Int(id),
            Value::Int(id * 7919 % ROWS),
            Value::Int(id % 13),
        ]
    });
    lab.table(
        "numbers",
        &[
            ("id", "int", false),
            ("k", "int", false),
            ("v", "int", false),
        ],
        &["PRIMARY(id)", "by_k(k)"],
        rows.collect(),
    );
    lab
}

#[test]
fn a_scan_is_split_and_gives_the_same_rows() {
    let mut lab = lab();
    let sql = "SELECT v, COUNT(*), SUM(k) FROM numbers WHERE k >= 0 GROUP BY v ORDER BY v";
    lab.force_index("numbers", "PRIMARY");
    let alone = lab.rows(sql);
    lab.settings.target_partitions = 2;
    let split = lab.run(sql);
    assert!(split.shown.contains("partitions=2"), "{}", split.shown);
    assert_eq!(split.text(), alone);
}

#[test]
fn windows_are_computed_in_one_stream_where_memory_is_short() {
    let mut lab = lab();
    lab.force_index("numbers", "PRIMARY");
    lab.settings.target_partitions = 2;
    for sql in [
        "SELECT MAX(q) FROM (SELECT COUNT(k) OVER (PARTITION BY v) AS q FROM numbers) w",
        "SELECT q, COUNT(*) FROM (SELECT MAX(k) OVER (PARTITION BY v) AS q FROM numbers) w GROUP BY q ORDER BY q LIMIT 9",
        "SELECT v, COUNT(k) OVER (PARTITION BY v) AS q FROM numbers ORDER BY v, q LIMIT 3",
        "SELECT v, SUM(k) OVER (PARTITION BY v ORDER BY k, id) AS q FROM numbers ORDER BY v, q LIMIT 3",
        "SELECT MAX(q) FROM (SELECT FIRST_VALUE(k) OVER (PARTITION BY v ORDER BY k, id \
         ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS q FROM numbers) w",
        "SELECT MAX(q) FROM (SELECT COUNT(k) OVER () AS q FROM numbers) w",
    ] {
        lab.settings.query_memory_bytes = 64 << 20;
        let expected = lab.rows(sql);
        lab.settings.query_memory_bytes = 0;
        assert_eq!(lab.rows(sql), expected, "{sql}");
    }
}

#[test]
fn a_multi_range_read_is_split_and_gives_the_same_rows() {
    let mut lab = lab();
    lab.settings.switch.apply("mrr_cost_based=off").unwrap();
    lab.force_index("numbers", "by_k");
    let sql = "SELECT v, COUNT(*), SUM(k) FROM numbers WHERE k >= 100 GROUP BY v ORDER BY v";
    let alone = lab.rows(sql);
    lab.settings.target_partitions = 2;
    lab.settings.mrr_buffer_bytes = 10_000;
    let split = lab.run(sql);
    assert!(split.shown.contains("partitions=2"), "{}", split.shown);
    assert!(split.shown.contains(", mrr"), "{}", split.shown);
    assert_eq!(split.text(), alone);
}
