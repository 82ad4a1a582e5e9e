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
