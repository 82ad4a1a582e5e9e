//! Each kind of operator, over tables in memory.

use super::harness::Lab;

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.memory_table(
        "t",
        "a, b, c",
        "(1, 10, 'x'), (2, 20, 'y'), (3, 20, 'x'), (4, NULL, 'z')",
    );
    lab.memory_table("u", "a, d", "(1, 100), (2, 200), (2, 201), (9, 900)");
    lab.memory_table("v", "d, e", "(100, 'p'), (200, 'q'), (201, 'r')");
    lab
}

#[test]
fn projection_filter_sort_limit() {
    let lab = lab();
    assert_eq!(
        lab.rows("SELECT a + 1, c FROM t WHERE b >= 20 ORDER BY a DESC"),
        "4 x\n3 y"
    );
    assert_eq!(
        lab.rows("SELECT a FROM t ORDER BY b, a LIMIT 2 OFFSET 1"),
        "1\n2"
    );
    assert_eq!(lab.rows("SELECT 1 + 1"), "2");
    assert_eq!(lab.rows("SELECT a FROM t WHERE 1 = 0"), "");
}

#[test]
fn aggregates() {
    let lab = lab();
    assert_eq!(
        lab.rows("SELECT COUNT(*), SUM(a), MIN(b) FROM t"),
        "4 10 10"
    );
    assert_eq!(
        lab.rows("SELECT c, COUNT(*) AS n FROM t GROUP BY c HAVING COUNT(*) > 1 ORDER BY c"),
        "x 2"
    );
    assert_eq!(
        lab.rows("SELECT COUNT(DISTINCT b), COUNT(DISTINCT c) FROM t"),
        "2 3"
    );
    assert_eq!(
        lab.rows("SELECT b, COUNT(DISTINCT c), COUNT(*), MAX(a) FROM t GROUP BY b ORDER BY b"),
        "NULL 1 1 4\n10 1 1 1\n20 2 2 3"
    );
    assert_eq!(
        lab.rows("SELECT COUNT(DISTINCT c), COUNT(*), COUNT(b) FROM t WHERE a > 9"),
        "0 0 0"
    );
    assert_eq!(lab.run("SELECT DISTINCT b FROM t").sorted(), "10\n20\nNULL");
    assert_eq!(
        lab.run("SELECT c, b, COUNT(*) FROM t WHERE b = 20 GROUP BY c, b WITH ROLLUP")
            .sorted(),
        "NULL NULL 2\nx 20 1\nx NULL 1\ny 20 1\ny NULL 1"
    );
}

#[test]
fn inner_joins_in_any_order() {
    let lab = lab();
    let expected = "1 p\n2 q\n2 r";
    for sql in [
        "SELECT t.a, e FROM t, u, v WHERE t.a = u.a AND u.d = v.d ORDER BY e",
        "SELECT t.a, e FROM v JOIN u ON u.d = v.d JOIN t ON t.a = u.a ORDER BY e",
        "SELECT x.a, e FROM (SELECT a, d AS dd FROM u) x JOIN v ON x.dd = v.d JOIN t ON t.a = x.a ORDER BY e",
    ] {
        assert_eq!(lab.rows(sql), expected, "{sql}");
    }
    assert_eq!(lab.rows("SELECT COUNT(*) FROM t, u"), "16");
    assert_eq!(lab.rows("SELECT COUNT(*) FROM t JOIN u ON t.a < u.a"), "6");
}

#[test]
fn joins_on_what_null_equals_keep_to_themselves() {
    let lab = lab();
    // The row of t whose b is NULL joins itself.
    let (itself, rest) = ("x.b <=> y.b", "x.a = z.a");
    let expected = "1 1 1\n2 2 2\n2 3 2\n3 2 3\n3 3 3\n4 4 4";
    for from in [
        format!("t x JOIN t y ON {itself} JOIN t z ON {rest}"),
        format!("t x JOIN t z ON {rest} JOIN t y ON {itself}"),
        format!("t x JOIN t z ON {rest}, t y WHERE {itself}"),
    ] {
        let sql = format!("SELECT x.a, y.a, z.a FROM {from}");
        assert_eq!(lab.run(&sql).sorted(), expected, "{sql}");
    }
    let nulls =
        "SELECT x.a, y.a FROM t x JOIN t y ON x.b = y.b JOIN t z ON x.c <=> z.c WHERE x.a = 4";
    assert_eq!(lab.rows(nulls), "");
}

#[test]
fn equalities_between_three_tables_hold() {
    let lab = lab();
    assert_eq!(
        lab.rows(
            "SELECT t.a, u.a, w.a FROM t CROSS JOIN u JOIN t w ON t.c = w.c AND t.a + u.a = w.a ORDER BY t.a"
        ),
        "1 2 3\n1 2 3"
    );
}

#[test]
fn self_joins_keep_their_columns_apart() {
    let lab = lab();
    assert_eq!(
        lab.rows("SELECT x.a, y.a FROM t x JOIN t y ON x.b = y.b AND x.a < y.a"),
        "2 3"
    );
}

#[test]
fn outer_joins() {
    let lab = lab();
    assert_eq!(
        lab.rows("SELECT t.a, u.d FROM t LEFT JOIN u ON t.a = u.a ORDER BY t.a, u.d"),
        "1 100\n2 200\n2 201\n3 NULL\n4 NULL"
    );
    assert_eq!(
        lab.rows("SELECT t.a, u.d FROM u RIGHT JOIN t ON t.a = u.a AND u.d > 200 ORDER BY t.a"),
        "1 NULL\n2 201\n3 NULL\n4 NULL"
    );
    assert_eq!(
        lab.rows("SELECT t.a FROM t LEFT JOIN u ON t.a = u.a WHERE u.a IS NULL ORDER BY t.a"),
        "3\n4"
    );
    assert_eq!(
        lab.rows("SELECT t.a, u.d, v.e FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN v ON u.d = v.d ORDER BY t.a, e"),
        "1 100 p\n2 200 q\n2 201 r\n3 NULL NULL\n4 NULL NULL"
    );
    assert_eq!(
        lab.rows("SELECT t.a, w.e FROM t LEFT JOIN (SELECT u.a, v.e FROM u JOIN v ON u.d = v.d) w ON w.a = t.a ORDER BY 1, 2"),
        "1 p\n2 q\n2 r\n3 NULL\n4 NULL"
    );
}

#[test]
fn subqueries() {
    let lab = lab();
    assert_eq!(
        lab.rows("SELECT a FROM t WHERE a IN (SELECT a FROM u) ORDER BY a"),
        "1\n2"
    );
    assert_eq!(
        lab.rows("SELECT a FROM t WHERE a NOT IN (SELECT a FROM u) ORDER BY a"),
        "3\n4"
    );
    assert_eq!(
        lab.rows("SELECT a FROM t WHERE 20 NOT IN (SELECT b FROM t) ORDER BY a"),
        ""
    );
    assert_eq!(
        lab.rows("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND d > 150)"),
        "2"
    );
    assert_eq!(
        lab.rows("SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a) ORDER BY a"),
        "3\n4"
    );
    assert_eq!(
        lab.rows("SELECT a FROM t WHERE a = 4 OR a IN (SELECT a FROM u) ORDER BY a"),
        "1\n2\n4",
        "a mark join"
    );
    assert_eq!(
        lab.rows("SELECT a FROM t WHERE a > (SELECT AVG(a) FROM t) ORDER BY a"),
        "3\n4"
    );
    assert_eq!(
        lab.rows("SELECT a, (SELECT MAX(d) FROM u WHERE u.a = t.a) FROM t ORDER BY a"),
        "1 100\n2 201\n3 NULL\n4 NULL"
    );
    assert_eq!(
        lab.rows("SELECT a FROM t WHERE b = (SELECT MAX(b) FROM t WHERE a < (SELECT MAX(a) FROM u)) ORDER BY a"),
        "2\n3",
        "a subquery in a subquery"
    );
}

#[test]
fn unions_and_set_operations() {
    let lab = lab();
    assert_eq!(
        lab.run("SELECT a FROM t UNION SELECT a FROM u").sorted(),
        "1\n2\n3\n4\n9"
    );
    assert_eq!(
        lab.rows("SELECT COUNT(*) FROM (SELECT a FROM t UNION ALL SELECT a FROM u) x"),
        "8"
    );
    assert_eq!(
        lab.run("SELECT a FROM t INTERSECT SELECT a FROM u")
            .sorted(),
        "1\n2"
    );
    assert_eq!(
        lab.run("SELECT b FROM t EXCEPT SELECT 10").sorted(),
        "20\nNULL"
    );
}

#[test]
fn windows() {
    let lab = lab();
    assert_eq!(
        lab.rows("SELECT a, ROW_NUMBER() OVER (PARTITION BY c ORDER BY a) AS n, SUM(a) OVER () AS s FROM t ORDER BY a"),
        "1 1 10\n2 1 10\n3 2 10\n4 1 10"
    );
}

#[test]
fn recursive_queries() {
    let lab = lab();
    let sql = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT SUM(i) FROM n";
    assert_eq!(lab.rows(sql), "15");
}

#[test]
fn a_recursion_reads_the_round_before_once() {
    let mut lab = lab();
    // Every plan that can be abandoned is.
    lab.settings.regret_budget_us = Some(0.0);
    let sql = "WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL \
               SELECT d.j FROM (SELECT i + 1 AS j FROM n WHERE i < 5 LIMIT 10) d) SELECT SUM(i) FROM n";
    assert_eq!(lab.rows(sql), "15");
}

#[test]
fn many_partitions_give_the_same_rows() {
    let mut lab = lab();
    lab.settings.target_partitions = 3;
    let union = "(SELECT a, c FROM t UNION ALL SELECT a, c FROM t)";
    assert_eq!(
        lab.rows(&format!(
            "SELECT c, COUNT(*), SUM(a) FROM {union} x GROUP BY c ORDER BY c"
        )),
        "x 4 8\ny 2 4\nz 2 8"
    );
    assert_eq!(
        lab.rows(&format!("SELECT a FROM {union} x ORDER BY a LIMIT 3")),
        "1\n1\n2"
    );
    assert_eq!(
        lab.rows(&format!(
            "SELECT x.a, d FROM {union} x JOIN u ON x.a = u.a ORDER BY d"
        )),
        "1 100\n1 100\n2 200\n2 200\n2 201\n2 201"
    );
}

#[test]
fn a_build_side_beyond_the_memory_is_hashed_in_files() {
    let mut lab = lab();
    for (switch, join) in [("default", "HashJoin"), ("hash_join=off", "SortMergeJoin")] {
        lab.settings.switch.apply(switch).unwrap();
        lab.settings.query_memory_bytes = 1;
        let rows = lab.run("SELECT t.a, e FROM t, u, v WHERE t.a = u.a AND u.d = v.d ORDER BY e");
        assert_eq!(rows.text(), "1 p\n2 q\n2 r");
        assert!(rows.shown.contains(join), "{}", rows.shown);
    }
}

#[test]
fn texts_of_groups_are_the_same_where_memory_is_short() {
    let mut lab = lab();
    lab.memory_table(
        "g",
        "k, s, v",
        "(1, 'b', 2), (1, 'a', 1), (NULL, 'a', 1), (1, 'b', 3), (2, NULL, NULL), (2, 'c', 2), (NULL, 'b', 1)",
    );
    let text = "GROUP_CONCAT(DISTINCT s ORDER BY s DESC)";
    for sql in [
        format!("SELECT k, {text}, COUNT(*), SUM(v) FROM g GROUP BY k WITH ROLLUP"),
        format!(
            "SELECT k, v, {text}, GROUP_CONCAT(v ORDER BY s, v) FROM g GROUP BY k, v WITH ROLLUP"
        ),
        format!(
            "SELECT {text}, GROUP_CONCAT(v ORDER BY v), COUNT(DISTINCT s), SUM(DISTINCT v) FROM g"
        ),
        format!(
            "SELECT k, {text}, COUNT(DISTINCT v), COUNT(v), MIN(s), AVG(DISTINCT v) FROM g GROUP BY k"
        ),
        format!(
            "SELECT k, {text}, GROUP_CONCAT(v ORDER BY v DESC), COUNT(DISTINCT k) FROM g GROUP BY k"
        ),
        // Without texts, where distinct values are no groups of groups.
        "SELECT k, COUNT(DISTINCT s), SUM(DISTINCT v), SUM(v) FROM g GROUP BY k WITH ROLLUP"
            .to_string(),
        // Of no rows there is a grand total.
        format!("SELECT k, {text}, COUNT(*) FROM g WHERE v > 100 GROUP BY k WITH ROLLUP"),
        format!(
            "SELECT {text}, GROUP_CONCAT(v ORDER BY v), COUNT(DISTINCT s) FROM g WHERE v > 100"
        ),
    ] {
        lab.settings.query_memory_bytes = 64 << 20;
        let expected = lab.run(&sql);
        assert!(!expected.shown.contains("CopiesExec"), "{sql}");
        lab.settings.query_memory_bytes = 0;
        let found = lab.run(&sql);
        assert!(found.shown.contains("CopiesExec"), "{sql}: {}", found.shown);
        assert_eq!(found.sorted(), expected.sorted(), "{sql}");
    }
}

#[test]
fn many_texts_are_made_below_an_aggregate_where_memory_is_short() {
    let mut lab = lab();
    lab.memory_table("g", "k, s", "(1, 'b'), (1, 'a'), (2, 'c')");
    let texts: Vec<String> = (0..8).map(|n| format!("MAX(CONCAT(s, {n}))")).collect();
    let sql = format!("SELECT k, {} FROM g GROUP BY k", texts.join(", "));
    let expected = lab.run(&sql);
    assert!(!expected.shown.contains("$kept_"), "{}", expected.shown);
    lab.settings.query_memory_bytes = 1;
    let found = lab.run(&sql);
    assert!(found.shown.contains("$kept_"), "{}", found.shown);
    assert_eq!(found.sorted(), expected.sorted());
}

#[test]
fn merged_rows_meet_the_rest_of_their_condition() {
    let mut lab = lab();
    lab.settings.switch.apply("hash_join=off").unwrap();
    // A column that only the condition needs, and sides whose names are not in their order.
    for (sql, expected) in [
        (
            "SELECT t.a, d FROM t LEFT JOIN u ON t.a = u.a AND t.b * 10 <> u.d ORDER BY t.a, d",
            "1 NULL\n2 201\n3 NULL\n4 NULL",
        ),
        (
            "SELECT d, b FROM u LEFT JOIN t ON t.a = u.a AND t.b * 10 <> u.d ORDER BY d",
            "100 NULL\n200 NULL\n201 20\n900 NULL",
        ),
    ] {
        let rows = lab.run(sql);
        assert_eq!(rows.text(), expected, "{sql}");
        assert!(rows.shown.contains("SortMergeJoin"), "{}", rows.shown);
    }
}

#[test]
fn explain_names_blocks_and_methods() {
    let lab = lab();
    assert_eq!(
        lab.explain(
            "SELECT c, COUNT(*) FROM t JOIN u ON t.a = u.a WHERE b > 5 GROUP BY c ORDER BY 2"
        ),
        "1 SIMPLE t type=ALL possible=- key=- len=- ref=- rows=4 filtered=33 | Using where; Using temporary; Using filesort\n\
         1 SIMPLE u type=ALL possible=- key=- len=- ref=- rows=4 filtered=100 | Using join buffer (hash join)"
    );
    assert_eq!(
        lab.explain("SELECT 1"),
        "1 SIMPLE - type=- possible=- key=- len=- ref=- rows=- filtered=- | No tables used"
    );
    let explain = lab.explain("SELECT a FROM t WHERE a > (SELECT MAX(a) FROM u)");
    assert!(
        explain.starts_with("1 PRIMARY t") && explain.contains("\n2 SUBQUERY u"),
        "{explain}"
    );
}
