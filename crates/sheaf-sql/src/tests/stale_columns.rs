//! Generated columns that do not hold what their expressions give, as an older program may have left them.

use std::time::Duration;

use sheaf_types::Value;

use super::Bench;

const TABLE: &str = "CREATE TABLE t (a INT PRIMARY KEY, b INT, s INT AS (b + 1) STORED, v INT AS (b * 2), \
                     KEY k ((b + 3)), KEY (s))";

/// Writes rows without computing anything.
fn put(bench: &Bench, rows: &[[i64; 5]]) {
    let catalog = bench.engine.catalog();
    let table = catalog
        .open_for_write("test", "t", Duration::ZERO)
        .expect("the table");
    let mut transaction = catalog.storage().begin_transaction();
    for row in rows {
        let values: Vec<Value> = row.iter().map(|value| Value::Int(*value)).collect();
        table.insert(&mut transaction, &values).expect("a row");
    }
    transaction.commit().expect("a commit");
}

fn messages(bench: &mut Bench, sql: &str) -> Vec<String> {
    let rows = bench.rows(sql);
    rows.iter()
        .map(|row| row.split('|').skip(2).collect::<Vec<_>>().join(": "))
        .collect()
}

#[test]
fn check_table_names_stale_values() {
    let mut bench = Bench::new();
    bench.ok(TABLE);
    put(&bench, &[[1, 5, 6, 10, 8], [2, 6, 7, 12, 9]]);
    assert_eq!(messages(&mut bench, "CHECK TABLE t"), ["status: OK"]);
    put(&bench, &[[3, 7, 70, 14, 10], [4, 8, 80, 16, 11]]);
    assert_eq!(
        messages(&mut bench, "CHECK TABLE t"),
        [
            "Error: Generated column 's' holds '70' in row '3', and its expression gives '8' (2 such values)",
            "status: Operation failed"
        ]
    );
    // Only the columns that name `b` are computed again.
    bench.ok("DELETE FROM t WHERE a > 2");
    put(&bench, &[[5, 1, 2, 2, 40]]);
    assert_eq!(
        messages(&mut bench, "CHECK TABLE t")[0],
        "Error: Functional index 'k' holds '40' in row '5', and its expression gives '4'"
    );
    assert_eq!(
        bench
            .session
            .stale_generated_column("test", "t")
            .expect("a check"),
        Some(
            "Functional index 'k' holds '40' in row '5', and its expression gives '4'".to_string()
        )
    );
}

#[test]
fn a_rebuild_computes_columns_again() {
    for statement in ["OPTIMIZE TABLE t", "ALTER TABLE t FORCE"] {
        let mut bench = Bench::new();
        bench.ok(TABLE);
        put(&bench, &[[1, 5, 60, 10, 8], [2, 6, 7, 120, 90]]);
        bench.ok(statement);
        assert_eq!(messages(&mut bench, "CHECK TABLE t"), ["status: OK"]);
        assert_eq!(
            bench.rows("SELECT a, b, s, v FROM t ORDER BY a"),
            ["1|5|6|10", "2|6|7|12"]
        );
        assert_eq!(
            bench.rows("SELECT a FROM t FORCE INDEX (k) WHERE b + 3 = 9"),
            ["2"]
        );
        assert_eq!(
            bench.rows("SELECT a FROM t FORCE INDEX (s) WHERE s = 6"),
            ["1"]
        );
    }
}
