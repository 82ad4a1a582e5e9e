//! What EXPLAIN tells of direct plans: all that they test, compute and sort by.

use sheaf_types::Value;

use super::direct::RowSink;
use super::explains::{bench, document, has_in_order};
use super::{Bench, run};

/// Conditions on joined rows, and that of an anti join, stand where rows are tested: above the join. JSON attaches them
/// to the table that is read last, as MySQL does.
#[test]
fn conditions_on_joined_rows_are_told() {
    let mut bench = bench();
    let without = "FROM t a LEFT JOIN t b ON b.id = a.k + 900 WHERE a.k = 5 AND b.id IS NULL";
    let sums =
        "FROM t a JOIN t b ON b.id = a.k WHERE a.k = 5 AND a.id + b.id > 7 AND upper(b.c) <> 'X'";
    for (from, kind, condition) in [
        (without, "left", "(b.id IS NULL)"),
        (sums, "inner", "(a.id + b.id > 7) and (upper(b.c) <> 'X')"),
    ] {
        let sql = format!("SELECT a.c {from}");
        let tree = document(&mut bench, &format!("EXPLAIN FORMAT=TREE {sql}"));
        let filter = format!("-> Operators over the rows, in one batch: filter {condition}\n");
        let join = format!("-> Nested loop {kind} join\n");
        has_in_order(
            &tree,
            &[
                "-> Direct (without operators)\n",
                &filter,
                &join,
                "on a using by_k (k = 5)",
                "on b using PRIMARY",
            ],
        );
        let json = document(&mut bench, &format!("EXPLAIN FORMAT=JSON {sql}"));
        let attached = format!("\"attached_condition\": \"{condition}\"");
        has_in_order(
            &json,
            &[
                "\"table_name\": \"a\"",
                "\"table_name\": \"b\"",
                &attached,
                "\"direct\": true",
            ],
        );
        let rows = bench.rows(&format!("EXPLAIN {sql}"));
        assert!(rows[1].ends_with("|Using where; Direct"), "{rows:?}");
    }
}

/// Groups are tested by HAVING.
#[test]
fn conditions_on_groups_are_told() {
    let mut bench = bench();
    let sql = "SELECT k, COUNT(*) FROM t WHERE k IN (5, 6) GROUP BY k HAVING COUNT(*) > 3";
    let tree = document(&mut bench, &format!("EXPLAIN FORMAT=TREE {sql}"));
    has_in_order(
        &tree,
        &[
            "-> Operators over the rows, in one batch: aggregate",
            "; filter groups (COUNT(*) > 3)\n",
        ],
    );
}

/// A condition has the values that a run would have, and says which ones a subquery finds first.
#[test]
fn conditions_have_values_in_the_places_of_parameters() {
    let mut bench = bench();
    bench.ok("SET @x = 'C5'");
    let sql = "SELECT c FROM t WHERE k = 5 AND upper(c) <> @x";
    let tree = document(&mut bench, &format!("EXPLAIN FORMAT=TREE {sql}"));
    has_in_order(
        &tree,
        &["using by_k (k = 5), with row condition: (upper(c) <> 'C5')"],
    );
    bench.ok("CREATE TABLE few (id INT PRIMARY KEY, name VARCHAR(20))");
    bench.ok("INSERT INTO few VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    for (condition, told) in [
        ("name = 'b'", "(few.name = 'b')"),
        ("name LIKE '%b' OR id = 7", "(name LIKE '%b' OR id = 7)"),
        ("upper(name) = @x", "(upper(name) = 'C5')"),
    ] {
        let sql = format!("EXPLAIN FORMAT=TREE SELECT * FROM few WHERE {condition}");
        let tree = document(&mut bench, &sql);
        let scan = format!("-> Table scan on few, with row condition: {told}");
        has_in_order(&tree, &["-> Direct (without operators)\n", &scan]);
    }
}

/// What rows are grouped and sorted by is told, also where it is computed. A number is an item of the list.
#[test]
fn computed_keys_are_told() {
    let mut bench = bench();
    for (sql, steps) in [
        (
            "SELECT c FROM t WHERE k = 5 ORDER BY id % 7 DESC, c",
            "sort by id % 7 DESC, c",
        ),
        (
            "SELECT k + 1 AS more, COUNT(*) FROM t WHERE k IN (5, 6) GROUP BY k + 1 ORDER BY 1, 2 DESC",
            "aggregate by k + 1; sort by more, COUNT(*) DESC",
        ),
        (
            "SELECT a.id % 2, MAX(b.c) FROM t a JOIN t b ON b.id = a.k WHERE a.k = 5 GROUP BY a.id % 2",
            "aggregate by a.id % 2",
        ),
    ] {
        let tree = document(&mut bench, &format!("EXPLAIN FORMAT=TREE {sql}"));
        let steps = format!("-> Operators over the rows, in one batch: {steps}\n");
        has_in_order(&tree, &["-> Direct (without operators)\n", &steps]);
    }
}

/// DISTINCT without an order sorts nothing.
#[test]
fn distinct_rows_without_an_order_are_not_sorted() {
    let mut bench = bench();
    let sql = "SELECT DISTINCT c FROM t WHERE k = 5";
    let tree = document(&mut bench, &format!("EXPLAIN FORMAT=TREE {sql}"));
    has_in_order(
        &tree,
        &[
            "-> Direct (without operators)\n",
            "-> Remove duplicates by t.c\n",
            "on t using by_k (k = 5)",
        ],
    );
    assert!(!tree.contains("Sort"), "{tree}");
    let rows = bench.rows(&format!("EXPLAIN {sql}"));
    assert!(rows[0].ends_with("|Using temporary; Direct"), "{rows:?}");
    let tree = document(&mut bench, &format!("EXPLAIN FORMAT=TREE {sql} ORDER BY c"));
    has_in_order(&tree, &["-> Sort: t.c\n", "-> Remove duplicates by t.c\n"]);
}

/// Constants and tables of `information_schema` are read without operators, too.
#[test]
fn constants_and_definitions_are_direct() {
    let mut bench = bench();
    assert_eq!(
        bench.rows("EXPLAIN SELECT 1"),
        ["1|SIMPLE|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|No tables used; Direct"]
    );
    let tree = document(&mut bench, "EXPLAIN FORMAT=TREE SELECT 1, NOW()");
    has_in_order(
        &tree,
        &[
            "-> Direct (without operators)\n",
            "-> Rows fetched before execution",
        ],
    );
    let json = document(&mut bench, "EXPLAIN FORMAT=JSON SELECT 1");
    has_in_order(
        &json,
        &["\"message\": \"No tables used\"", "\"direct\": true"],
    );
    let run = document(&mut bench, "EXPLAIN ANALYZE SELECT 1 + 1");
    has_in_order(
        &run,
        &[
            "-> Direct (without operators)  (actual time=",
            "rows=1 loops=1)",
            "-> Rows fetched before execution",
        ],
    );
    let definitions = "SELECT table_type FROM information_schema.tables \
                       WHERE table_schema = 'test' AND table_name = 't'";
    let tree = document(&mut bench, &format!("EXPLAIN FORMAT=TREE {definitions}"));
    has_in_order(
        &tree,
        &[
            "-> Direct (without operators)\n",
            "-> Index lookup on tables using <auto_key0> (TABLE_SCHEMA='test', TABLE_NAME='t')",
        ],
    );
    // A limit of no rows is for the operators.
    bench.ok("SET sql_select_limit = 0");
    let rows = bench.rows("EXPLAIN SELECT 1");
    assert!(!rows.iter().any(|row| row.contains("Direct")), "{rows:?}");
    bench.ok("SET sql_select_limit = default");
    for sql in ["SELECT SLEEP(0)", "SELECT RAND(1)"] {
        let rows = bench.rows(&format!("EXPLAIN {sql}"));
        assert!(!rows[0].contains("Direct"), "{sql}: {rows:?}");
        let tree = document(&mut bench, &format!("EXPLAIN FORMAT=TREE {sql}"));
        assert!(!tree.contains("Direct"), "{sql}: {tree}");
    }
}

/// What EXPLAIN FOR CONNECTION shows once the other session runs something.
fn explained(bench: &mut Bench, format: &str, id: u64) -> Vec<String> {
    loop {
        let rows = bench.rows(&format!("EXPLAIN {format} FOR CONNECTION {id}"));
        if !rows.is_empty() {
            return rows;
        }
        std::thread::yield_now();
    }
}

/// A direct plan that waits for a lock of a row is planned again from its text, which is read as its own session does.
#[test]
fn another_session_sees_a_direct_plan_that_waits() {
    let mut bench = bench();
    let mut other = bench.engine.session(Default::default()).expect("a session");
    let id = other.id();
    for sql in ["USE test", "SET sql_mode = 'ANSI_QUOTES'"] {
        run(&mut other, sql).expect(sql);
    }
    let mode = bench.rows("SELECT @@sql_mode, DATABASE()");
    bench.ok("CREATE DATABASE elsewhere");
    bench.ok("BEGIN");
    bench.ok("UPDATE t SET c = 'x' WHERE id = 5");
    bench.ok("USE elsewhere");
    let runner = std::thread::spawn(move || {
        let outcome = run(&mut other, "UPDATE t SET \"c\" = 'y' WHERE \"id\" = 5");
        (other, outcome.map(|done| done.ok.affected_rows))
    });
    let rows = explained(&mut bench, "", id);
    assert!(
        rows[0].starts_with("1|UPDATE|t|NULL|const|PRIMARY|PRIMARY|4|const|1|"),
        "{rows:?}"
    );
    assert!(rows[0].ends_with("|Direct"), "{rows:?}");
    let tree = explained(&mut bench, "FORMAT=TREE", id);
    has_in_order(
        &tree[0],
        &[
            "-> Direct (without operators)\n",
            "-> Update t (buffered)\n",
            "-> Single-row index lookup on t using PRIMARY (id = 5)",
        ],
    );
    // The session that asks is as before.
    assert!(bench.rows("SHOW WARNINGS").is_empty());
    assert_eq!(bench.rows("SELECT DATABASE(), \"c\""), ["elsewhere|c"]);
    bench.ok("USE test");
    assert_eq!(bench.rows("SELECT @@sql_mode, DATABASE()"), mode);
    bench.ok("ROLLBACK");
    let (mut other, changed) = runner.join().expect("no panic");
    assert_eq!(changed.map_err(|error| error.code), Ok(1));
    assert!(
        bench
            .rows(&format!("EXPLAIN FOR CONNECTION {id}"))
            .is_empty()
    );

    // The values of a prepared statement are its own.
    bench.ok("BEGIN");
    bench.ok("UPDATE t SET c = 'x' WHERE id = 5");
    let prepared = other.prepare("SELECT c FROM t WHERE id = ? AND k < ? FOR UPDATE");
    let prepared = prepared.expect("a statement").id;
    let runner = std::thread::spawn(move || {
        let values = [Value::Int(5), Value::Int(50)];
        other.execute_prepared(prepared, &values, &mut RowSink::default())
    });
    let tree = explained(&mut bench, "FORMAT=TREE", id);
    has_in_order(
        &tree[0],
        &[
            "-> Direct (without operators)\n",
            "on t using PRIMARY (id = ?), with row condition: (t.k < ?)",
        ],
    );
    bench.ok("ROLLBACK");
    let outcome = runner.join().expect("no panic");
    assert_eq!(outcome.map_err(|error| error.code), Ok(()));
}

/// A locking read is measured as it runs, directly. Locks are left out, which the first line says.
#[test]
fn analyze_of_a_locking_read_measures_its_direct_plan() {
    let mut bench = bench();
    let mut other = bench.engine.session(Default::default()).expect("a session");
    run(&mut other, "USE test").expect("a database");
    bench.ok("BEGIN");
    for (sql, access, rows) in [
        (
            "SELECT c FROM t WHERE id = 5 FOR UPDATE",
            "on t using PRIMARY (id = 5)",
            1,
        ),
        (
            "SELECT c FROM t WHERE k = 5 FOR SHARE SKIP LOCKED",
            "on t using by_k (k = 5)",
            10,
        ),
        (
            "SELECT a.c, b.c FROM t a JOIN t b ON b.id = a.k WHERE a.k = 5 FOR UPDATE",
            "on a using by_k (k = 5)",
            10,
        ),
    ] {
        let tree = document(&mut bench, &format!("EXPLAIN ANALYZE {sql}"));
        let counted = format!("rows={rows} loops=1)");
        has_in_order(
            &tree,
            &[
                "-> Direct (without operators, and without its locks)  (actual time=",
                &counted,
                access,
                &counted,
            ],
        );
    }
    let free = "SELECT id FROM t WHERE k = 5 FOR UPDATE NOWAIT";
    assert_eq!(run(&mut other, free).expect("no lock").rows.len(), 10);
    // Which rows these are is known when others are locked.
    let limited =
        "SELECT a.c FROM t a JOIN t b ON b.id = a.k WHERE a.k = 5 LIMIT 2 FOR UPDATE SKIP LOCKED";
    let tree = document(&mut bench, &format!("EXPLAIN ANALYZE {limited}"));
    assert!(
        tree.starts_with("-> Operators in place of a direct plan, without its locks"),
        "{tree}"
    );
    bench.ok("ROLLBACK");
}

/// A statement that is traced runs as it does without: the trace says whether its direct plan was chosen or given up.
#[test]
fn tracing_leaves_a_statement_its_direct_plan() {
    let mut bench = bench();
    bench.ok("SET optimizer_trace = 'enabled=on,one_line=on'");
    let traces = "SELECT query, trace FROM information_schema.optimizer_trace";
    let query = "SELECT c FROM t WHERE k = 5";
    let chosen = "{\"direct_plan\": {\"outcome\": \"chosen\"}}";
    let given_up = "{\"direct_plan\": {\"outcome\": \"given_up\"}}";
    // It refuses batches of operators.
    let mut sink = RowSink::default();
    bench.session.execute(query, &mut sink).expect("a row");
    let trace = format!("{query}|{{\"steps\": [{chosen}]}}");
    assert_eq!(bench.rows(traces), [trace]);
    let update = "UPDATE t SET c = 'x' WHERE id = 5";
    bench.ok(update);
    let trace = format!("{update}|{{\"steps\": [{chosen}]}}");
    assert_eq!(bench.rows(traces), [trace]);
    // A sink that wants batches has the direct plan given up.
    bench.ok(query);
    let trace = bench.rows(traces).remove(0);
    has_in_order(&trace, &[query, given_up, "\"final_plan\""]);
    // EXPLAIN plans operators in any case.
    let rows = bench.rows(&format!("EXPLAIN {query}"));
    assert!(rows[0].ends_with("Direct"), "{rows:?}");
    let trace = bench.rows(traces).remove(0);
    has_in_order(
        &trace,
        &["EXPLAIN", chosen, "\"rows_estimation\"", "\"final_plan\""],
    );
    assert_eq!(trace.matches("\"final_plan\"").count(), 1, "{trace}");
}
