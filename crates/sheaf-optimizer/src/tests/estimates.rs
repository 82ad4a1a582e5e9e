//! Estimated rows against exact counts, on skewed, correlated and uniform columns, with stated bounds.
//!
//! The table is small enough to be analyzed as a whole, so what remains is the error of the histogram. A range is off
//! by no more than two buckets' height, 2% of the rows, and a common value not at all. Errors from sampling are tested
//! with the statistics themselves.

use sheaf_storage::Random;
use sheaf_types::Value;

use super::harness::Lab;

/// A prime, as [`Lab::table`] inserts rows in steps.
const ROWS: i64 = 9_973;

/// `skewed` by Zipf's law; `uniform` with a tenth NULL; `city` is decided by `zip`; `day` goes with `id`; `due` is up
/// to 30 days after `day`.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(7);
    let mut cumulative = Vec::new();
    let mut sum = 0.0;
    for rank in 1..=500 {
        sum += 1.0 / f64::from(rank);
        cumulative.push(sum);
    }
    let rows = (0..ROWS).map(|id| {
        let draw = random.below(1 << 30) as f64 / f64::from(1 << 30) * sum;
        let rank = cumulative.partition_point(|&below| below < draw) as i64;
        let uniform = match random.below(10) {
            0 => Value::Null,
            _ => Value::Int(random.below(2_000) as i64),
        };
        let zip = random.below(200) as i64;
        let day = 9_000 + (id / 20) as i32;
        vec![
            Value::Int(id),
            Value::Int(rank * 37 % 500),
            uniform,
            Value::Int(zip / 10),
            Value::Int(zip),
            Value::Date(day),
            Value::Date(day + random.below(30) as i32),
            Value::Text(format!(
                "{}{}",
                ["red", "Green", "blue"][(rank % 3) as usize],
                id % 97
            )),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let columns = [
        ("id", "int", false),
        ("skewed", "int", true),
        ("uniform", "int", true),
        ("city", "int", true),
        ("zip", "int", true),
        ("day", "date", true),
        ("due", "date", true),
        ("name", "varchar(40)", true),
    ];
    lab.table("t", &columns, &["PRIMARY(id)"], rows.clone());
    let keys = [
        "PRIMARY(id)",
        "by_skewed(skewed)",
        "by_place(city,zip)",
        "by_day(day)",
    ];
    lab.table("indexed", &columns, &keys, rows);
    lab
}

/// Estimated and exact rows of a condition.
fn compare(lab: &Lab, table: &str, condition: &str) -> (f64, f64) {
    let sql = format!("SELECT * FROM {table} WHERE {condition}");
    let rows = lab.run(&sql);
    let exact: usize = rows.batches.iter().map(|batch| batch.num_rows()).sum();
    let row = &rows.explain[0];
    let estimated = row.rows.unwrap() as f64 * row.filtered.unwrap() / 100.0;
    (estimated, exact as f64)
}

#[test]
fn conditions_on_one_column_are_within_two_buckets() {
    let lab = lab();
    let bound = 0.02 * ROWS as f64;
    for condition in [
        "skewed = 0",
        "skewed = 37",
        "skewed = 499",
        "skewed <> 0",
        "skewed IN (0, 37, 74, 111)",
        "skewed NOT IN (0, 37)",
        "skewed BETWEEN 30 AND 80",
        "skewed NOT BETWEEN 30 AND 80",
        "NOT (skewed > 30)",
        "uniform IS NULL",
        "uniform IS NOT NULL",
        "uniform < 500",
        "uniform >= 1990",
        "uniform < 100 OR uniform > 1900",
        "uniform < 100 OR uniform IS NULL",
        "uniform > 600 AND uniform < 700",
        "uniform = 77",
        "uniform = -5",
        "day < DATE '1994-12-01'",
        "day BETWEEN DATE '1995-01-01' AND DATE '1995-02-01'",
        r#"name = 'red12'"#,
        r#"name LIKE 'gre%'"#,
        r#"NOT name LIKE 'gre%'"#,
        r#"name >= 'green5'"#,
    ] {
        for table in ["t", "indexed"] {
            let (estimated, exact) = compare(&lab, table, condition);
            assert!(
                (estimated - exact).abs() <= bound,
                "{condition} on {table}: {estimated}, exactly {exact}"
            );
        }
    }
}

/// What no range says is tried on the two hundred values that stand for the column.
#[test]
fn conditions_that_are_no_ranges_are_tried_on_the_histogram() {
    let lab = lab();
    let bound = 0.08 * ROWS as f64;
    for condition in [
        "uniform % 4 = 1",
        "abs(uniform - 1000) < 250",
        "character_length(name) = 5",
        r#"name LIKE '%ee%'"#,
        r#"name LIKE '%xyz%'"#,
        "city < zip",
        "zip < city",
        "city = zip",
    ] {
        let (estimated, exact) = compare(&lab, "t", condition);
        assert!(
            (estimated - exact).abs() <= bound,
            "{condition}: {estimated}, exactly {exact}"
        );
    }
}

/// Independent conditions multiply; correlated ones are known where an index has both columns, within a leaf or so.
#[test]
fn conditions_on_several_columns() {
    let lab = lab();
    for (table, condition, factor) in [
        ("t", "uniform < 1000 AND skewed = 0", 1.2),
        ("t", "uniform < 1000 OR skewed = 0", 1.2),
        (
            "t",
            "uniform < 1000 AND day < DATE '1995-01-01' AND skewed < 250",
            1.3,
        ),
        ("indexed", "city = 3 AND zip = 35", 1.5),
        ("indexed", "city = 3 AND zip BETWEEN 32 AND 35", 1.5),
        (
            "indexed",
            "city = 3 AND zip BETWEEN 32 AND 35 AND uniform < 1000",
            1.6,
        ),
        ("indexed", "city = 3 AND zip = 35 AND skewed = 0", 2.0),
    ] {
        let (estimated, exact) = compare(&lab, table, condition);
        assert!(
            estimated <= exact * factor && exact <= estimated * factor,
            "{condition}: {estimated}, exactly {exact}"
        );
    }
}

/// From `eq_range_index_dive_limit` values on, each counts as the average key.
#[test]
fn many_values_are_not_dived_into() {
    let mut lab = lab();
    let condition = "skewed IN (0, 37, 74)";
    let (dived, exact) = compare(&lab, "indexed", condition);
    assert!(
        (dived - exact).abs() < 0.02 * ROWS as f64,
        "{dived}, exactly {exact}"
    );
    lab.settings.eq_range_index_dive_limit = 3;
    let (average, _) = compare(&lab, "indexed", condition);
    let per_key = ROWS as f64 / 500.0;
    assert!((average - 3.0 * per_key).abs() < 0.1 * per_key, "{average}");
    lab.settings.eq_range_index_dive_limit = 0;
    assert_eq!(
        compare(&lab, "indexed", condition).0,
        dived,
        "0: always dive"
    );
}

/// Estimated and exact rows of a join.
fn joined(lab: &Lab, sql: &str) -> (f64, f64) {
    let rows = lab.run(sql);
    let exact: usize = rows.batches.iter().map(|batch| batch.num_rows()).sum();
    (lab.estimated_rows(sql), exact as f64)
}

#[test]
fn joins() {
    let lab = lab();
    for (sql, factor) in [
        (
            "SELECT a.id FROM t a JOIN t b ON a.uniform = b.uniform WHERE a.id < 3000",
            1.3,
        ),
        (
            "SELECT a.id FROM t a JOIN indexed b ON a.id = b.id WHERE a.uniform < 200 AND b.zip < 50",
            1.5,
        ),
        (
            "SELECT a.id FROM t a JOIN indexed b ON a.city = b.city AND a.zip = b.zip WHERE a.id < 100",
            1.3,
        ),
        (
            "SELECT a.id FROM t a WHERE a.zip IN (SELECT b.zip FROM indexed b WHERE b.zip < 50)",
            1.3,
        ),
        (
            "SELECT a.id FROM t a WHERE a.zip NOT IN (SELECT b.zip FROM indexed b WHERE b.zip < 50 AND b.zip IS NOT NULL)",
            1.3,
        ),
        (
            "SELECT a.id FROM t a WHERE EXISTS (SELECT 1 FROM indexed b WHERE b.zip = a.zip AND b.id <> a.id)",
            1.1,
        ),
        (
            "SELECT a.id FROM t a LEFT JOIN t b ON a.uniform = b.uniform AND b.id < 100",
            1.2,
        ),
        (
            "SELECT a.id FROM t a JOIN indexed b ON a.id = b.id \
             WHERE (a.city = 1 AND b.city = 1) OR (a.city = 2 AND b.city = 2)",
            25.0,
        ),
    ] {
        let (estimated, exact) = joined(&lab, sql);
        assert!(
            estimated <= exact * factor && exact <= estimated * factor,
            "{sql}: {estimated}, exactly {exact}"
        );
    }
}

#[test]
fn groups_are_as_many_as_values_of_their_columns_are_met() {
    let lab = lab();
    for sql in [
        "SELECT zip, COUNT(*) FROM t GROUP BY zip",
        "SELECT uniform, COUNT(*) FROM t GROUP BY uniform",
        "SELECT DISTINCT zip FROM t WHERE id < 100",
        "SELECT zip, uniform, COUNT(*) FROM t GROUP BY zip, uniform",
        "SELECT z FROM (SELECT zip AS z, id FROM t WHERE id < 3000) AS d GROUP BY z",
        "SELECT a.zip FROM t a, t b WHERE a.id = b.id GROUP BY a.zip",
        // One of them is a key.
        "SELECT id, zip, city FROM t GROUP BY id, zip, city",
        // One decides the other, and an index has both.
        "SELECT zip, city FROM indexed GROUP BY zip, city",
        "SELECT a.zip, a.city FROM indexed a, t b WHERE a.id = b.id GROUP BY a.city, a.zip",
    ] {
        let exact = lab.rows(sql).lines().count() as f64;
        let estimated = lab.estimated_rows(sql);
        assert!(
            (estimated / exact - 1.0).abs() < 0.1,
            "{sql}: {estimated} for {exact}"
        );
    }
}
