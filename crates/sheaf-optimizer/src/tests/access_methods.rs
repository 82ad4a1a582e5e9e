//! Jumps, skip scans, loose scans and index merges: chosen where they should be, and right wherever they are chosen.

use std::collections::BTreeSet;

use sheaf_storage::Random;
use sheaf_types::Value;

use super::harness::Lab;
use crate::cost::CostConstants;

const ROWS: i64 = 20_011;

/// 20,011 wide rows. `a` has 5 values, `b` 40, `c` 100, `d` 2,000; b, c and d are NULL now and then. `e` says nothing.
fn wide() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(29);
    let mut value = |below: u64, nulls: u64| match random.below(100) {
        n if n < nulls => Value::Null,
        _ => Value::Int(random.below(below) as i64),
    };
    let rows = (0..ROWS).map(|id| {
        vec![
            Value::Int(id),
            value(5, 0),
            value(40, 5),
            value(100, 5),
            value(2000, 5),
            Value::Text("filler ".repeat(30)),
        ]
    });
    let columns = [
        ("id", "int", false),
        ("a", "int", false),
        ("b", "int", true),
        ("c", "int", true),
        ("d", "int", true),
        ("e", "varchar(300)", true),
    ];
    let keys = ["PRIMARY(id)", "abc(a,b,c)", "bd(b,d)", "c(c)", "d(d)"];
    lab.table("t", &columns, &keys, rows.collect());
    lab
}

/// The notes of EXPLAIN, and the rows, of a query by the plan that is chosen; the rows must be the same without any
/// index.
fn checked(lab: &mut Lab, sql: &str) -> (String, String) {
    let chosen = lab.run(sql);
    lab.ignore_all("t");
    let expected = lab.run(sql).sorted();
    lab.no_hints();
    assert_eq!(chosen.sorted(), expected, "{sql}\n{}", chosen.shown);
    let notes = chosen.explain.iter().filter_map(|row| row.extra.clone());
    (notes.collect::<Vec<_>>().join(" / "), expected)
}

#[test]
fn conditions_behind_a_range_make_jumps() {
    let mut lab = wide();
    let sql = "SELECT id, c FROM t WHERE a = 2 AND b BETWEEN 3 AND 20 AND c IN (7, 90)";
    let (notes, _) = checked(&mut lab, sql);
    assert_eq!(notes, "Using jumps; Using index");
    let row = &lab.run(sql).explain[0];
    assert_eq!(
        (
            row.type_.as_deref(),
            row.key.as_deref(),
            row.key_len.as_deref()
        ),
        (Some("range"), Some("abc"), Some("14")),
        "all three parts"
    );
    lab.settings.switch.index_jumps = false;
    let (notes, _) = checked(&mut lab, sql);
    assert_eq!(notes, "Using where; Using index");
}

#[test]
fn a_missing_first_column_is_skipped() {
    let mut lab = wide();
    let sql = "SELECT id, a FROM t WHERE b = 7 AND c = 3";
    lab.force_index("t", "abc");
    let forced = lab.explain(sql);
    assert!(forced.contains("Using index for skip scan"), "{forced}");
    lab.no_hints();
    lab.settings.switch.skip_scan = false;
    lab.force_index("t", "abc");
    let forced = lab.explain(sql);
    assert!(!forced.contains("skip scan"), "{forced}");
}

#[test]
fn groups_of_a_prefix_are_read_loosely() {
    let mut lab = wide();
    for (sql, notes) in [
        (
            "SELECT DISTINCT a FROM t",
            "Using index for group-by; Using index",
        ),
        (
            "SELECT a, MIN(b) FROM t GROUP BY a",
            "Using index for group-by; Using index",
        ),
        (
            "SELECT a, MAX(b) FROM t WHERE a > 1 GROUP BY a",
            "Using index for group-by; Backward index scan; Using index",
        ),
        // The groups of two walks do not come in one order.
        (
            "SELECT a, MIN(b), MAX(b) FROM t GROUP BY a",
            "Using index for group-by; Using index; Using temporary",
        ),
        (
            "SELECT a, MAX(b), MIN(b) FROM t WHERE a > 1 GROUP BY a",
            "Using index for group-by; Backward index scan; Using index; Using temporary",
        ),
        (
            "SELECT MIN(d), MAX(d) FROM t",
            "Select tables optimized away; Using index",
        ),
        (
            "SELECT MIN(d) FROM t",
            "Select tables optimized away; Using index",
        ),
        (
            "SELECT MAX(b) FROM t WHERE a = 3",
            "Select tables optimized away; Backward index scan; Using index",
        ),
    ] {
        assert_eq!(checked(&mut lab, sql).0, notes, "{sql}");
    }
    let count = "SELECT a, COUNT(*) FROM t GROUP BY a";
    assert!(!checked(&mut lab, count).0.contains("group-by"));
    let of_two_columns = "SELECT a, MIN(b), MAX(c) FROM t GROUP BY a";
    assert!(!checked(&mut lab, of_two_columns).0.contains("group-by"));
    let tested_later = "SELECT a, MIN(b) FROM t WHERE c * id > 7 GROUP BY a";
    assert!(!checked(&mut lab, tested_later).0.contains("group-by"));
}

#[test]
fn conditions_on_several_indexes_are_merged() {
    let mut lab = wide();
    let either = "SELECT e FROM t WHERE d = 17 OR c = 5 AND b = 3";
    let (notes, _) = checked(&mut lab, either);
    assert!(notes.contains("union("), "{notes}");
    assert!(notes.contains("Using where"), "{notes}");
    let row = &lab.run(either).explain[0];
    assert_eq!(row.type_.as_deref(), Some("index_merge"));
    lab.settings.switch.index_merge = false;
    let (notes, _) = checked(&mut lab, either);
    assert!(!notes.contains("union("), "{notes}");
}

/// Columns with the number of their values.
const COLUMNS: [(&str, u64); 4] = [("a", 5), ("b", 40), ("c", 100), ("d", 2000)];

/// A random condition on one of these columns.
fn condition(random: &mut Random, columns: &[(&str, u64)]) -> String {
    let (column, values) = columns[random.below(columns.len() as u64) as usize];
    let mut value = || random.below(values) as i64;
    let (x, y, z) = (value(), value(), value());
    match random.below(7) {
        0..=2 => format!("{column} = {x}"),
        3 => format!("{column} IN ({x}, {y}, {z})"),
        4 => format!("{column} BETWEEN {} AND {}", x.min(y), x.max(y)),
        5 => format!("{column} > {x}"),
        _ if column == "a" => format!("a <> {x}"),
        _ => format!("{column} IS NULL"),
    }
}

fn query(random: &mut Random) -> String {
    // Disjunctions of what leaves many rows are scans.
    let (columns, joined) = match random.below(3) {
        0 => (&COLUMNS[2..], " OR "),
        _ => (&COLUMNS[..], " AND "),
    };
    let conditions: Vec<String> = (0..1 + random.below(3))
        .map(|_| condition(random, columns))
        .collect();
    let filter = conditions.join(joined);
    match random.below(6) {
        0 => format!("SELECT DISTINCT a, b FROM t WHERE {filter}"),
        1 if filter.len() % 2 == 0 => {
            format!("SELECT a, MIN(b), MAX(b) FROM t WHERE {filter} GROUP BY a")
        }
        1 => format!("SELECT a, MIN(b) FROM t WHERE {filter} GROUP BY a"),
        2 if filter.len() % 2 == 0 => format!("SELECT MAX(c), MIN(c) FROM t WHERE {filter}"),
        2 => format!("SELECT MAX(c) FROM t WHERE {filter}"),
        3 => format!("SELECT a, b, c FROM t WHERE {filter}"),
        _ => format!("SELECT id, e, d FROM t WHERE {filter}"),
    }
}

/// Every plan that the hints and switches can make gives the same rows.
#[test]
fn every_plan_gives_the_same_rows() {
    let mut lab = wide();
    let mut random = Random::new(31);
    let mut seen = BTreeSet::new();
    for _ in 0..120 {
        let sql = query(&mut random);
        lab.ignore_all("t");
        let expected = lab.run(&sql).sorted();
        lab.no_hints();
        for (index, jumps, slow_lookups) in [
            (None, true, false),
            (None, false, false),
            (None, true, true),
            (Some("abc"), true, false),
            (Some("bd"), true, false),
            (Some("c"), true, false),
        ] {
            lab.settings.switch.index_jumps = jumps;
            // The tables are small: by its cost MRR would not be taken.
            lab.settings.switch.mrr_cost_based = jumps;
            lab.settings.costs = CostConstants::default();
            if slow_lookups {
                // As if all rows were on a slow disk: reading more entries for fewer rows pays.
                lab.settings.costs.descent_us = 50.0;
                lab.settings.costs.sorted_descent_us = 50.0;
            }
            if let Some(index) = index {
                lab.force_index("t", index);
            }
            let rows = lab.run(&sql);
            assert_eq!(rows.sorted(), expected, "{sql}\n{}", rows.shown);
            let notes = rows.explain.iter().filter_map(|row| row.extra.clone());
            for note in
                notes.flat_map(|notes| notes.split("; ").map(String::from).collect::<Vec<_>>())
            {
                let name = note.split('(').next().unwrap_or_default();
                seen.insert(name.to_string());
            }
            lab.no_hints();
        }
    }
    for note in [
        "Using jumps",
        "Using index for skip scan",
        "Using index for group-by",
        "Using sort_union",
        "Using intersect",
        "Using MRR",
    ] {
        assert!(seen.contains(note), "no plan was {note}: {seen:?}");
    }
}
