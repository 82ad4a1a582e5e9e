//! EXPLAIN in its formats, and the optimizer trace.

use super::Bench;

/// 1,000 rows with an index that 10 share a key of.
pub(super) fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT, c VARCHAR(20), KEY by_k (k))");
    let rows: Vec<String> = (0..1000)
        .map(|id| format!("({id}, {}, 'c{id}')", id % 100))
        .collect();
    bench.ok(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    bench
}

const TRACES: &str = "SELECT query, trace, missing_bytes_beyond_max_mem_size, insufficient_privileges \
                      FROM information_schema.optimizer_trace";

/// A sort below a window has the statement's names, not those of the operators' columns and keys.
#[test]
fn sorts_of_windows_are_shown_without_places_and_options() {
    let mut bench = bench();
    bench.ok("SET optimizer_switch = 'direct=off'");
    let sums = "SUM(id) OVER (PARTITION BY k % 7 ORDER BY c DESC)";
    let tree = bench.rows(&format!("EXPLAIN FORMAT=TREE SELECT {sums} FROM t"));
    let tree = tree.join("\n");
    assert!(tree.contains("Sort: (k % 7), c DESC"), "{tree}");
    assert!(tree.contains("ORDER BY t.c DESC)"), "{tree}");
    for internal in ["@", "NULLS", "$"] {
        assert!(!tree.contains(internal), "{tree}");
    }
    let ranks = "ROW_NUMBER() OVER (PARTITION BY c ORDER BY c DESC, k * 2)";
    let tree = bench.rows(&format!("EXPLAIN FORMAT=TREE SELECT {ranks} FROM t"));
    let tree = tree.join("\n");
    let over = "OVER (PARTITION BY t.c ORDER BY t.c DESC, (t.k * 2))";
    assert!(tree.contains(over), "{tree}");
    for internal in ["__common_expr", "$"] {
        assert!(!tree.contains(internal), "{tree}");
    }
}

/// A functional key part is shown as its expression, wherever the plan names its column.
#[test]
fn functional_key_parts_are_shown_as_expressions() {
    let mut bench = bench();
    bench.ok("CREATE TABLE f (a INT, s VARCHAR(9), KEY i ((a + 1)), KEY l ((LOWER(s))))");
    bench.ok("INSERT INTO f VALUES (1, 'A'), (2, 'B'), (3, 'C')");
    const JOIN: &str = "SELECT x.a FROM f x JOIN f y ON x.a + 1 = y.a + 1 WHERE ABS(x.a + 1) > 2";
    for switch in ["direct=on", "direct=off"] {
        bench.ok(&format!("SET optimizer_switch = '{switch}'"));
        for format in ["", "FORMAT=TREE", "FORMAT=JSON", "ANALYZE"] {
            let plan = bench.rows(&format!("EXPLAIN {format} {JOIN}")).join("\n");
            assert!(!plan.contains("!hidden!"), "{plan}");
        }
    }
    let tree = bench
        .rows(&format!("EXPLAIN FORMAT=TREE {JOIN}"))
        .join("\n");
    assert!(tree.contains("abs("), "{tree}");
}

#[test]
fn the_last_statement_is_traced() {
    let mut bench = bench();
    assert!(bench.rows(TRACES).is_empty());
    // What operators are chosen for.
    bench.ok("SET optimizer_switch = 'direct=off'");
    bench.ok("SET optimizer_trace = 'enabled=on,one_line=on'");
    assert_eq!(
        bench.rows("SELECT @@optimizer_trace, @@optimizer_trace_offset"),
        ["enabled=on,one_line=on|-1"]
    );
    bench.ok("SELECT c FROM t WHERE k = 5 AND id < 500");
    for _ in 0..2 {
        // Reading the traces is not traced.
        let traces = bench.rows(TRACES);
        assert_eq!(traces.len(), 1);
        let trace = &traces[0];
        assert!(trace.starts_with("SELECT c FROM t WHERE k = 5 AND id < 500|{\"steps\": ["));
        assert!(
            trace.contains("\"ranges\": [\"k = 5 AND id < 500\"]"),
            "{trace}"
        );
        assert!(trace.contains("\"final_plan\""), "{trace}");
        assert!(trace.ends_with("|0|0"), "{trace}");
    }
    bench.ok("SET optimizer_trace = 'enabled=off'");
    bench.ok("SELECT COUNT(*) FROM t");
    assert!(bench.rows(TRACES)[0].starts_with("SELECT c FROM t"));
    assert_eq!(bench.error("SET optimizer_trace = 'enabled=maybe'"), 1231);
    assert_eq!(bench.error("SET optimizer_trace = 4"), 1231);
}

#[test]
fn offset_limit_and_memory_choose_the_traces() {
    let mut bench = bench();
    bench.ok("SET optimizer_switch = 'direct=off'");
    bench.ok("SET optimizer_trace = 'enabled=on', optimizer_trace_offset = -2, optimizer_trace_limit = 2");
    for n in 0..4 {
        bench.ok(&format!("SELECT {n} FROM t WHERE id = 1"));
    }
    let queries = |bench: &mut Bench| {
        bench.rows("SELECT query, missing_bytes_beyond_max_mem_size FROM information_schema.optimizer_trace")
    };
    assert_eq!(
        queries(&mut bench),
        [
            "SELECT 2 FROM t WHERE id = 1|0",
            "SELECT 3 FROM t WHERE id = 1|0"
        ]
    );
    bench.ok("SET optimizer_trace_offset = 0, optimizer_trace_max_mem_size = 300");
    bench.ok("UPDATE t SET c = 'x' WHERE k = 7");
    let kept = queries(&mut bench);
    assert!(kept[0].starts_with("UPDATE t SET"), "{kept:?}");
    assert!(!kept[0].ends_with("|0"), "{kept:?}");
}

/// The one text that EXPLAIN FORMAT=JSON or TREE shows.
pub(super) fn document(bench: &mut Bench, sql: &str) -> String {
    let rows = bench.rows(sql);
    assert_eq!(rows.len(), 1, "{sql}");
    rows[0].clone()
}

/// Whether `parts` come one after the other in `text`.
pub(super) fn has_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => panic!("no {part} in {rest} of {text}"),
        }
    }
}

#[test]
fn json_nests_what_happens_to_the_rows() {
    let mut bench = bench();
    bench.ok("SET optimizer_switch = 'direct=off'");
    let json = document(
        &mut bench,
        "EXPLAIN FORMAT=JSON SELECT c, COUNT(*) FROM t WHERE k = 5 AND c <> 'x' GROUP BY c ORDER BY 2",
    );
    has_in_order(
        &json,
        &[
            "{\n  \"query_block\": {\n    \"select_id\": 1,\n    \"cost_info\": {\n      \"query_cost\": \"",
            "\"ordering_operation\": {\n      \"using_filesort\": true,",
            "\"grouping_operation\": {\n        \"using_temporary_table\": true,",
            "\"table\": {",
            "\"table_name\": \"t\"",
            "\"access_type\": \"ref\"",
            "\"possible_keys\": [",
            "\"key\": \"by_k\"",
            "\"used_key_parts\": [",
            "\"k\"",
            "\"key_length\": \"5\"",
            "\"ref\": [",
            "\"rows_examined_per_scan\": 10",
            "\"filtered\": \"",
            "\"k = 5\"",
            "\"read_cost\": \"",
            "\"prefix_cost\": \"",
            "\"resident\": {",
            "\"used_columns\": [",
            "\"attached_condition\": \"(`test`.`t`.`c` <> 'x')\"",
        ],
    );
}

#[test]
fn json_of_joins_subqueries_and_changes() {
    let mut bench = bench();
    bench.ok("SET optimizer_switch = 'direct=off'");
    let json = document(
        &mut bench,
        "EXPLAIN FORMAT=JSON SELECT a.c FROM t a JOIN t b ON b.id = a.k WHERE a.id < 3 AND b.k = (SELECT MAX(k) FROM t)",
    );
    has_in_order(
        &json,
        &[
            "\"nested_loop\": [",
            "\"table_name\": \"a\"",
            "\"table_name\": \"b\"",
        ],
    );
    has_in_order(&json, &["\"attached_subqueries\": [", "\"select_id\": 2"]);
    let json = document(
        &mut bench,
        "EXPLAIN FORMAT=JSON UPDATE t SET c = 'y' WHERE k = 5",
    );
    has_in_order(
        &json,
        &[
            "\"update\": true",
            "\"table_name\": \"t\"",
            "\"key\": \"by_k\"",
        ],
    );
    let json = document(&mut bench, "EXPLAIN FORMAT=JSON DELETE FROM t WHERE id = 5");
    has_in_order(&json, &["\"delete\": true", "\"access_type\": \"const\""]);
    let json = document(
        &mut bench,
        "EXPLAIN FORMAT=JSON INSERT INTO t SELECT id + 1000, k, c FROM t WHERE k = 5",
    );
    has_in_order(
        &json,
        &[
            "\"insert\": true",
            "\"insert_from\": {",
            "\"key\": \"by_k\"",
        ],
    );
    let json = document(&mut bench, "EXPLAIN FORMAT=JSON SELECT 1");
    has_in_order(&json, &["\"message\": \"No tables used\""]);
    assert_eq!(
        bench.rows("SELECT COUNT(*) FROM t WHERE c = 'y' OR id > 999 OR id = 5"),
        ["1"],
        "nothing was changed"
    );
}

#[test]
fn the_tree_says_what_the_operators_do() {
    let mut bench = bench();
    bench.ok("SET optimizer_switch = 'direct=off'");
    let tree = document(
        &mut bench,
        "DESC FORMAT=TREE SELECT a.c, b.c FROM t a JOIN t b ON b.id = a.k WHERE a.id < 3 AND a.c <> 'x' ORDER BY a.c LIMIT 2",
    );
    has_in_order(
        &tree,
        &[
            "-> Sort: a.c, limit input to 2 row(s)  (cost=",
            "-> Batched key access inner join",
            "-> Index range scan on a using PRIMARY over (id < 3), with row condition: (a.c <> 'x')  (cost=",
            "-> Single-row index lookup on b using PRIMARY (id=a.k)",
        ],
    );
    let tree = document(&mut bench, "EXPLAIN FORMAT=TREE DELETE FROM t WHERE k = 5");
    has_in_order(
        &tree,
        &["-> Delete from t (buffered)\n    -> Covering index lookup on t using by_k (k = 5)"],
    );
    bench.ok("SET optimizer_switch = 'default'");
    let tree = document(
        &mut bench,
        "EXPLAIN FORMAT=TREE SELECT c FROM t WHERE id = 1",
    );
    has_in_order(
        &tree,
        &[
            "-> Direct",
            "\n    -> Single-row index lookup on t using PRIMARY",
        ],
    );
}

#[test]
fn analyze_runs_the_statement_and_counts() {
    let mut bench = bench();
    let switch = format!("direct=off,{}", sheaf_optimizer::NOT_IN_DIRECT_PLANS);
    bench.ok(&format!("SET optimizer_switch = '{switch}'"));
    let sql = "SELECT a.c FROM t a FORCE INDEX (by_k) JOIN t b ON b.id = a.k WHERE a.k = 5 AND b.c <> 'x'";
    let tree = document(&mut bench, &format!("EXPLAIN ANALYZE {sql}"));
    has_in_order(
        &tree,
        &[
            "join",
            "(actual time=",
            "rows=10 loops=1)",
            "on b using PRIMARY (id = 5), with row condition: (b.c <> 'x')  (cost=",
            "rows=1 loops=1)  [pages=",
        ],
    );
    // Which one comes first is the optimizer's choice.
    has_in_order(&tree, &["join", "on a using by_k", "index_entries=10"]);
    let json = document(&mut bench, &format!("EXPLAIN ANALYZE FORMAT=JSON {sql}"));
    has_in_order(
        &json,
        &[
            "\"operation\": ",
            "\"actual_rows\": 10",
            "\"inputs\": [",
            "\"index_entries\": 10",
        ],
    );
    assert_eq!(bench.error("EXPLAIN ANALYZE UPDATE t SET c = 'x'"), 1235);
    assert_eq!(
        bench.error(&format!("EXPLAIN ANALYZE FORMAT=TRADITIONAL {sql}")),
        1235
    );
    assert_eq!(bench.error("EXPLAIN FORMAT=XML SELECT 1"), 1791);
}

/// EXPLAIN of a direct plan tells what it could read, and what it reads.
#[test]
fn a_direct_plan_names_all_keys_that_it_could_use() {
    let mut bench = bench();
    for sql in [
        "SELECT c FROM t WHERE id = 5 AND k = 5",
        "SELECT c FROM t WHERE id = 5 AND k = 5 FOR UPDATE",
        "UPDATE t SET c = 'x' WHERE id = 5 AND k = 5",
        "DELETE FROM t WHERE id = 5 AND k = 5",
    ] {
        let rows = bench.rows(&format!("EXPLAIN {sql}"));
        let cells: Vec<&str> = rows[0].split('|').collect();
        assert_eq!(&cells[5..7], ["PRIMARY,by_k", "PRIMARY"], "{sql}");
        assert!(cells[11].ends_with("Direct"), "{sql}: {}", cells[11]);
    }
}

/// EXPLAIN of a direct plan shows the tables that it reads, in its order and by its keys, also where operators would
/// leave a table out, read them in another order, or read one from end to end.
#[test]
fn a_direct_plan_shows_what_it_reads() {
    let mut bench = bench();
    for (sql, tables) in [
        ("SELECT MAX(id) FROM t", "t index PRIMARY"),
        ("SELECT MIN(k) FROM t", "t index by_k"),
        ("SELECT MAX(k) FROM t WHERE c >= 'a'", "t index by_k"),
        (
            "SELECT COUNT(*) FROM t a LEFT JOIN t b ON b.id = a.k WHERE a.k BETWEEN 5 AND 6",
            "a range by_k, b eq_ref PRIMARY",
        ),
        (
            "SELECT a.c, b.id FROM t a LEFT JOIN t b ON b.id = a.k AND b.k = 7 LEFT JOIN t x ON x.id = b.k \
             WHERE a.k IN (5, 6)",
            "a range by_k, b eq_ref PRIMARY, x eq_ref PRIMARY",
        ),
        (
            "SELECT DISTINCT b.c FROM t a, t b WHERE a.k BETWEEN 5 AND 6 AND b.id = a.k ORDER BY b.c",
            "a range by_k, b eq_ref PRIMARY",
        ),
        (
            "SELECT b.c FROM t a JOIN t b ON b.id = a.k ORDER BY a.id LIMIT 1",
            "a index PRIMARY, b eq_ref PRIMARY",
        ),
        ("UPDATE t SET c = 'x' WHERE k = 5 LIMIT 3", "t ref by_k"),
    ] {
        let rows = bench.rows(&format!("EXPLAIN {sql}"));
        let reads = rows.iter().map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            assert!(cells[11].ends_with("Direct"), "{sql}: {row}");
            format!("{} {} {}", cells[2], cells[4], cells[6])
        });
        assert_eq!(reads.collect::<Vec<_>>().join(", "), tables, "{sql}");
    }
    let tree = document(
        &mut bench,
        "EXPLAIN FORMAT=TREE SELECT MAX(k), MIN(k) FROM t",
    );
    has_in_order(
        &tree,
        &[
            "-> Direct (without operators)\n",
            "-> Rows fetched before execution\n",
            "-> Aggregate: max(t.k)\n",
            "-> Covering index scan on t using by_k (reverse)",
            "-> Aggregate: min(t.k)\n",
            "-> Covering index scan on t using by_k",
        ],
    );
    let ranks = "SELECT id, RANK() OVER (ORDER BY c) FROM t WHERE k BETWEEN 5 AND 6";
    let tree = document(&mut bench, &format!("EXPLAIN FORMAT=TREE {ranks}"));
    let steps = "-> Operators over the rows, in one batch: compute window functions\n";
    has_in_order(&tree, &["-> Direct (without operators)\n", steps]);
}

/// Of indexes whose keys say the same, the one in the wanted order comes before the first one.
#[test]
fn a_direct_plan_says_in_each_format_what_it_tests() {
    let mut bench = bench();
    let sql = "SELECT * FROM t WHERE k = 5 AND c <> 'c5'";
    let tree = bench.rows(&format!("EXPLAIN FORMAT=TREE {sql}")).join("\n");
    assert!(
        tree.contains(", with row condition: (t.c <> 'c5')"),
        "{tree}"
    );
    let json = document(&mut bench, &format!("EXPLAIN FORMAT=JSON {sql}"));
    has_in_order(
        &json,
        &[
            "\"access_type\": \"ref\"",
            "\"attached_condition\": \"(`",
            "`.`t`.`c` <> 'c5')\"",
        ],
    );
    // All of the condition is the key.
    let json = document(
        &mut bench,
        "EXPLAIN FORMAT=JSON SELECT * FROM t WHERE k = 5",
    );
    assert!(!json.contains("_condition"), "{json}");
}

#[test]
fn a_direct_plan_takes_the_index_in_the_order_of_its_limit() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE n (i INT PRIMARY KEY)");
    bench.ok("INSERT INTO n VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)");
    bench.ok(
        "CREATE TABLE l (id INT PRIMARY KEY, b INT, s VARCHAR(20), c INT, KEY by_s (b, s(2)), KEY by_c (b, c))",
    );
    bench.ok("INSERT INTO l SELECT x.i * 10 + y.i, y.i % 5, CONCAT('s', x.i), x.i * 7 % 10 FROM n x, n y");
    for (sql, key) in [
        ("SELECT * FROM l WHERE b = 3 ORDER BY c LIMIT 5", "by_c"),
        (
            "SELECT * FROM l WHERE b = 3 ORDER BY c DESC LIMIT 1",
            "by_c",
        ),
        (
            "SELECT * FROM l WHERE b = 3 ORDER BY c, id LIMIT 500",
            "by_c",
        ),
        ("SELECT * FROM l WHERE b = 3 ORDER BY c", "by_c"),
        ("SELECT * FROM l WHERE b = 3 ORDER BY id LIMIT 5", "by_s"),
        ("SELECT * FROM l WHERE b = 3 LIMIT 5", "by_s"),
        (
            "SELECT l.s, n.i FROM l JOIN n ON n.i = l.c WHERE l.b = 3 ORDER BY l.c LIMIT 5",
            "by_c",
        ),
        (
            "SELECT l.s, n.i FROM l JOIN n ON n.i = l.c WHERE l.b = 3 ORDER BY l.c DESC LIMIT 5",
            "by_c",
        ),
        (
            "UPDATE l SET s = 'x' WHERE b = 3 ORDER BY c LIMIT 2",
            "by_c",
        ),
        ("DELETE FROM l WHERE b = 3 ORDER BY c LIMIT 2", "by_c"),
    ] {
        let rows = bench.rows(&format!("EXPLAIN {sql}"));
        let cells: Vec<&str> = rows[0].split('|').collect();
        assert_eq!((cells[2], cells[6]), ("l", key), "{sql}: {rows:?}");
        assert!(cells[11].ends_with("Direct"), "{sql}: {rows:?}");
        let is_sorted = cells[11].contains("filesort");
        assert_eq!(is_sorted, sql.contains("ORDER BY id"), "{sql}: {rows:?}");
    }
}

/// The queries that a direct plan reads are direct plans in the plan.
#[test]
fn a_direct_plan_of_queries_describes_itself() {
    let mut bench = bench();
    bench.ok("CREATE TABLE u (id INT PRIMARY KEY, t INT NOT NULL, n VARCHAR(20), KEY by_t (t, n))");
    bench.ok("INSERT INTO u VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 7, 'c')");
    let rows = (1000..1600).map(|id| format!("({id}, {id}, 'd')"));
    bench.ok(&format!(
        "INSERT INTO u VALUES {}",
        rows.collect::<Vec<_>>().join(", ")
    ));
    let tree = document(
        &mut bench,
        "EXPLAIN FORMAT=TREE SELECT t.id, d.n, EXISTS (SELECT 1 FROM u WHERE u.t = t.id AND u.n > 'a')
         FROM t LEFT JOIN (SELECT t, COUNT(*) n FROM u GROUP BY t) d ON d.t = t.id WHERE t.k = 1 ORDER BY t.c LIMIT 5",
    );
    has_in_order(
        &tree,
        &[
            "-> Direct (without operators)\n",
            "-> Limit: 5 row(s)\n",
            "-> Operators over the rows, in one batch: sort by t.c\n",
            "-> Nested loop left join\n",
            "-> Index lookup on t using by_k (k = 1)\n",
            "-> Index lookup on d using <auto_key0> (t=t.id)\n",
            "-> Materialize\n",
            "-> Aggregate using temporary table by u.t\n",
            "-> Covering index range scan on u using by_t over (t in (<subquery>))\n",
            "-> EXISTS (runs for each row)\n",
            "on u using by_t over (t=t.id AND n > 'a')\n",
        ],
    );
    let rows = bench.rows(
        "EXPLAIN SELECT t.c, d.n FROM (SELECT t, n FROM u WHERE t = 1 ORDER BY id LIMIT 2) d JOIN t ON t.id = d.t",
    );
    assert_eq!(
        rows,
        [
            "1|PRIMARY|<derived2>|NULL|ALL|NULL|NULL|NULL|NULL|NULL|NULL|Direct",
            "1|PRIMARY|t|NULL|eq_ref|PRIMARY|PRIMARY|4|d.t|1|100.00|Direct",
            "2|DERIVED|u|NULL|ref|by_t|by_t|4|const|2|100.00|Using index; Using filesort; Direct",
        ]
    );
    // A small table is read whole.
    bench.ok("DELETE FROM u WHERE id >= 1000");
    let rows = bench.rows(
        "EXPLAIN SELECT d.m, t.c FROM (SELECT n, MAX(t) m FROM u WHERE n <> 'c' GROUP BY n) d \
         JOIN t ON t.id BETWEEN d.m * 2 AND d.m * 2 + 1",
    );
    assert_eq!(
        rows,
        [
            "1|PRIMARY|<derived2>|NULL|ALL|NULL|NULL|NULL|NULL|NULL|NULL|Direct",
            "1|PRIMARY|t|NULL|range|PRIMARY|PRIMARY|4|NULL|NULL|100.00|Direct",
            "2|DERIVED|u|NULL|ALL|NULL|NULL|NULL|NULL|3|NULL|Using where; Using temporary; Direct",
        ]
    );
    let tree = document(
        &mut bench,
        "EXPLAIN FORMAT=TREE SELECT (SELECT MAX(c) FROM t WHERE t.id = u.id + 1 AND t.k > u.t) FROM u",
    );
    has_in_order(
        &tree,
        &[
            "-> Direct (without operators)\n",
            "-> Table scan on u\n",
            "-> Value of a subquery that runs for each row\n",
            "-> Single-row index lookup on t using PRIMARY (id=(u.id + 1)), with row condition: (t.k > u.t)\n",
        ],
    );
}

/// A small table that is read whole is tested by its conditions, and a lookup that needs the index only says so.
#[test]
fn a_direct_plan_tells_what_it_tests_and_what_an_index_covers() {
    let mut bench = bench();
    bench.ok("CREATE TABLE few (id INT PRIMARY KEY, name VARCHAR(20))");
    bench.ok("INSERT INTO few VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    let tree = document(
        &mut bench,
        "EXPLAIN FORMAT=TREE SELECT t.id FROM few JOIN t ON t.k = few.id WHERE few.name = 'b'",
    );
    has_in_order(
        &tree,
        &[
            "-> Direct (without operators)\n",
            "-> Table scan on few, with row condition: (few.name = 'b')",
            "-> Covering index lookup on t using by_k (k=few.id)",
        ],
    );
}

/// The operators would rather read nine tenths of the table than look them up.
#[test]
fn a_direct_plan_is_explained_and_analyzed_by_its_own_index() {
    let mut bench = bench();
    let condition = "WHERE k BETWEEN 0 AND 90";
    for sql in [
        format!("EXPLAIN FORMAT=TREE SELECT c FROM t {condition}"),
        format!("EXPLAIN FORMAT=TREE DELETE FROM t {condition}"),
        format!("EXPLAIN ANALYZE SELECT c FROM t {condition}"),
    ] {
        let tree = document(&mut bench, &sql);
        assert!(tree.contains("on t using by_k"), "{sql}: {tree}");
        assert!(bench.rows("SHOW WARNINGS").is_empty(), "{sql}");
    }
    bench.ok("SET optimizer_switch = 'direct=off'");
    let sql = format!("EXPLAIN ANALYZE SELECT c FROM t {condition}");
    let tree = document(&mut bench, &sql);
    assert!(!tree.contains("using by_k"), "{tree}");
    assert_eq!(bench.rows("SELECT COUNT(*) FROM t"), ["1000"]);
}

/// What runs is measured: a direct plan has rows, loops and pages of each of its accesses.
#[test]
fn analyze_of_a_direct_plan_measures_its_accesses() {
    let mut bench = bench();
    let sql = "SELECT b.c FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.k = 5 ORDER BY b.id";
    let tree = document(&mut bench, &format!("EXPLAIN ANALYZE {sql}"));
    has_in_order(
        &tree,
        &[
            "-> Direct (without operators)  (actual time=",
            "rows=10 loops=1)",
            "Nested loop inner join",
            "on a using by_k (k = 5)",
            "rows=10 loops=1)  [pages=",
            "rows_examined=10]",
            "on b using PRIMARY",
            "rows=1 loops=10)  [pages=",
            "rows_examined=10]",
        ],
    );
    let json = document(&mut bench, &format!("EXPLAIN ANALYZE FORMAT=JSON {sql}"));
    has_in_order(
        &json,
        &[
            "\"operation\": \"Direct (without operators)\"",
            "\"actual_rows\": 10",
            "\"inputs\": [",
            "\"actual_loops\": 10",
            "\"rows_examined\": 10",
        ],
    );
    // A table that no row leads to is not read.
    let none = "SELECT b.c FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.k = 500";
    let tree = document(&mut bench, &format!("EXPLAIN ANALYZE {none}"));
    has_in_order(&tree, &["rows=0 loops=1)", "on b", "(never executed)"]);
    // It is not counted as a SELECT.
    let direct = "SHOW STATUS LIKE 'Statements_direct'";
    let before = bench.rows(direct);
    document(&mut bench, &format!("EXPLAIN ANALYZE {sql}"));
    assert_eq!(bench.rows(direct), before);
    // Rows of a query in a FROM are found by the lines below.
    let derived = "SELECT * FROM (SELECT id, k FROM t WHERE k = 4 LIMIT 3) d JOIN t ON t.id = d.k";
    let tree = document(&mut bench, &format!("EXPLAIN ANALYZE {derived}"));
    has_in_order(
        &tree,
        &["-> Table scan on d\n", "on t using by_k", "rows=3 loops=1)"],
    );
    // An entry that has all columns is examined, and no row is looked up.
    let count = "SELECT COUNT(*) FROM t WHERE k = 7";
    let tree = document(&mut bench, &format!("EXPLAIN ANALYZE {count}"));
    has_in_order(
        &tree,
        &[
            "-> Direct",
            "rows=1 loops=1)",
            "on t using by_k",
            "rows=10 loops=1)",
        ],
    );
}

/// Whether a LIMIT ends a walk soon is found out by walking.
#[test]
fn explaining_a_walk_counts_no_reads() {
    let mut bench = bench();
    let reads = |bench: &Bench| -> Vec<_> {
        let counts = bench.session.handle().counters.entries().into_iter();
        counts
            .filter(|(name, _)| name.starts_with("Handler_read"))
            .collect()
    };
    let sql = "SELECT c FROM t WHERE c = 'c5' ORDER BY id LIMIT 1";
    let before = reads(&bench);
    let rows = bench.rows(&format!("EXPLAIN {sql}"));
    assert!(rows[0].ends_with("Direct"), "{rows:?}");
    assert_eq!(reads(&bench), before);
    assert_eq!(bench.rows(sql), ["c5"]);
    assert_ne!(reads(&bench), before);
}

#[test]
fn analyze_counts_the_runs_of_a_recursive_query() {
    let mut bench = bench();
    let tree = document(
        &mut bench,
        "EXPLAIN ANALYZE WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT SUM(i) FROM n",
    );
    assert!(tree.contains("loops=5"), "{tree}");
}

#[test]
fn the_cost_of_the_last_query_is_kept() {
    let mut bench = bench();
    bench.ok("SELECT COUNT(*) FROM t WHERE c LIKE '%7%'");
    let cost = bench.rows("SHOW STATUS LIKE 'Last_query_cost'");
    let cost: f64 = cost[0]
        .split('|')
        .nth(1)
        .expect("a value")
        .parse()
        .expect("a number");
    assert!(cost > 0.0, "{cost}");
}

#[test]
fn another_session_sees_how_far_a_statement_has_come() {
    let mut bench = bench();
    let mut other = bench.engine.session(Default::default()).expect("a session");
    let id = other.id();
    assert!(
        bench
            .rows(&format!("EXPLAIN FOR CONNECTION {id}"))
            .is_empty()
    );
    assert_eq!(bench.error("EXPLAIN FOR CONNECTION 4000000"), 1094);
    let own = bench.session.id();
    assert_eq!(bench.error(&format!("EXPLAIN FOR CONNECTION {own}")), 3012);
    let runner = std::thread::spawn(move || {
        let endless =
            "SELECT COUNT(*) FROM test.t a, test.t b, test.t c, test.t d WHERE a.c <> b.c";
        super::run(&mut other, endless)
    });
    let sql = format!("EXPLAIN FORMAT=TREE FOR CONNECTION {id}");
    let tree = loop {
        // The other thread may not have planned it yet.
        if let Some(tree) = bench.rows(&sql).pop() {
            break tree;
        }
        std::thread::yield_now();
    };
    has_in_order(&tree, &["(so far: rows="]);
    let table = bench.rows(&format!("EXPLAIN FOR CONNECTION {id}"));
    assert_eq!(table.len(), 4, "{table:?}");
    bench.ok(&format!("KILL QUERY {id}"));
    let outcome = runner.join().expect("no panic");
    assert_eq!(outcome.map(|_| ()).map_err(|error| error.code), Err(1317));
}

#[test]
fn conditions_above_rollup_are_told_by_grouping_and_aggregates() {
    let mut bench = bench();
    let tree = document(
        &mut bench,
        "EXPLAIN FORMAT=TREE SELECT k, COUNT(*) FROM t GROUP BY k WITH ROLLUP HAVING GROUPING(k) = 1 AND COUNT(*) > 2",
    );
    has_in_order(&tree, &["-> Filter: (", "(count(1) > 2)", "grouping(t.k)"]);
}

#[test]
fn an_invisible_index_serves_nothing_until_it_is_asked_for() {
    const FILTERED: &str = "SELECT id FROM t WHERE k = 5 ORDER BY id";
    let mut bench = bench();
    let expected = bench.rows(FILTERED);
    let uses = |bench: &mut Bench, statement: &str| {
        let plan = bench.rows(&format!("EXPLAIN {statement}"));
        plan.iter().any(|line| line.contains("by_k"))
    };
    assert!(uses(&mut bench, FILTERED));
    bench.ok("ALTER TABLE t ALTER INDEX by_k INVISIBLE");
    for statement in [
        FILTERED,
        "SELECT k FROM t ORDER BY k LIMIT 3",
        "SELECT k, COUNT(*) FROM t GROUP BY k",
        "SELECT MAX(k) FROM t",
        "SELECT DISTINCT k FROM t",
        "SELECT COUNT(*) FROM t",
        "SELECT a.c FROM t a JOIN t b ON b.k = a.id WHERE a.id = 7",
        "SELECT c FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.k = t.id) AND id < 5",
        "UPDATE t SET c = 'x' WHERE k = 5",
        "DELETE FROM t WHERE k = 5",
    ] {
        assert!(!uses(&mut bench, statement), "{statement}");
    }
    assert_eq!(bench.rows(FILTERED), expected);
    let hinted = "SELECT /*+ SET_VAR(optimizer_switch = 'use_invisible_indexes=on') */ id FROM t WHERE k = 5";
    assert!(uses(&mut bench, hinted));
    bench.ok("SET optimizer_switch = 'use_invisible_indexes=on'");
    assert!(uses(&mut bench, FILTERED));
    assert_eq!(bench.rows(FILTERED), expected);
    bench.ok("SET optimizer_switch = 'use_invisible_indexes=off'");
    assert!(!uses(&mut bench, FILTERED));
    bench.ok("ALTER TABLE t ALTER INDEX by_k VISIBLE");
    assert!(uses(&mut bench, FILTERED));
}

#[test]
fn indexes_of_expressions_serve_what_is_said_of_these() {
    let mut bench = bench();
    bench.ok("ALTER TABLE t ADD n INT AS (k * 7), ADD INDEX of_n (n)");
    bench.ok("ALTER TABLE t ADD INDEX of_sum ((k + id)), ADD INDEX of_text ((upper(c)))");
    bench.ok("CREATE TABLE o (id INT PRIMARY KEY, s VARCHAR(20))");
    bench.ok("INSERT INTO o VALUES (1, 'C5'), (2, 'C77')");
    bench.ok("ANALYZE TABLE t, o");
    let uses = |bench: &mut Bench, index: &str, statement: &str| {
        let plan = bench.rows(&format!("EXPLAIN {statement}"));
        plan.iter().any(|line| line.contains(index))
    };
    for (index, statement) in [
        ("of_sum", "SELECT id FROM t WHERE k + id = 500"),
        ("of_sum", "SELECT id FROM t WHERE 500 = t.k + t.id"),
        ("of_sum", "SELECT id FROM t WHERE k + id BETWEEN 10 AND 12"),
        ("of_sum", "SELECT id FROM t WHERE k + id IN (10, 12)"),
        ("of_sum", "SELECT c FROM t ORDER BY k + id LIMIT 3"),
        ("of_sum", "UPDATE t SET c = 'x' WHERE k + id = 500"),
        ("of_sum", "DELETE FROM t WHERE k + id < 3"),
        ("of_text", "SELECT id FROM t WHERE upper(c) = 'C7'"),
        ("of_text", "SELECT id FROM t WHERE UPPER( c ) = 'C7'"),
        ("of_text", "SELECT t.id FROM o JOIN t ON upper(t.c) = o.s"),
        (
            "of_text",
            "SELECT id FROM (SELECT id, c FROM t) d WHERE upper(d.c) = 'C7'",
        ),
        ("of_text", "UPDATE t SET k = 1 WHERE upper(c) = 'C7'"),
        ("of_n", "SELECT id FROM t WHERE k * 7 = 70"),
        ("of_n", "SELECT id FROM t WHERE k * 7 IN (70, 77)"),
    ] {
        assert!(uses(&mut bench, index, statement), "{statement}");
    }
    for (index, statement) in [
        ("of_sum", "SELECT id FROM t WHERE id + k = 500"),
        (
            "of_sum",
            "SELECT id FROM t IGNORE INDEX (of_sum) WHERE k + id = 500",
        ),
        ("of_text", "SELECT id FROM t WHERE lower(c) = 'c7'"),
        (
            "of_text",
            "SELECT o.id FROM o LEFT JOIN t ON t.id = o.id WHERE coalesce(upper(t.c), 'C7') = 'C7'",
        ),
        ("of_n", "SELECT id FROM t WHERE k * 7 = 7000000000"),
    ] {
        assert!(!uses(&mut bench, index, statement), "{statement}");
    }
    let by_text = "SELECT id FROM t WHERE upper(c) = 'C7'";
    bench.ok("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci");
    assert!(uses(&mut bench, "of_text", by_text));
    bench.ok("ALTER TABLE t ALTER INDEX of_text INVISIBLE");
    assert!(!uses(&mut bench, "of_text", by_text));
    assert_eq!(bench.rows(by_text), ["7"]);
    // Nothing is read by the name of what an index has.
    assert!(bench.rows("SELECT * FROM t WHERE k + id = 4")[0].ends_with("|14"));
}

/// Each part of an OR is looked up by its own index, also where the other side of an equality is computed.
#[test]
fn an_or_of_computed_keys_is_looked_up_part_by_part() {
    let mut bench = bench();
    bench.ok("CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT, KEY (a), KEY (b))");
    let rows: Vec<String> = (0..1000).map(|id| format!("({id}, {id}, {id})")).collect();
    bench.ok(&format!("INSERT INTO u VALUES {}", rows.join(", ")));
    bench.ok("ANALYZE TABLE t, u");
    let either = "u.a = t.id + 1 OR u.b = t.k * 2";
    for query in [
        format!("SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE {either})"),
        format!("SELECT COUNT(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE {either})"),
        format!("SELECT COUNT(*) FROM t JOIN u ON {either}"),
        "SELECT COUNT(*) FROM t JOIN u ON u.a IN (t.id + 1, t.k)".to_string(),
    ] {
        let tree = bench
            .rows(&format!("EXPLAIN FORMAT=TREE {query}"))
            .join("\n");
        assert!(!tree.contains("over pairs"), "{query}\n{tree}");
    }
}
