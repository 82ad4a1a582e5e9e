//! Optimizer hints, index hints and the flags of `optimizer_switch`: EXPLAIN changes as told, and what is wrong with a
//! hint is a warning.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, error_of, query_text};

/// A table with indexes to choose from, and one to join it with.
fn with_tables(server: &TestServer, database: &str) -> Conn {
    let mut c = server.connect_to_new(database);
    c.query_drop(
        "create table t (id int primary key, a int not null, b int not null, c varchar(40), key a (a), key ab (a, b),
         key b (b))",
    )
    .expect("a table");
    c.query_drop(
        "create table u (id int primary key, t_id int not null, d int not null, key t_id (t_id))",
    )
    .expect("a table");
    for chunk in 0..4 {
        let rows: Vec<String> = (chunk * 500..(chunk + 1) * 500)
            .map(|n| format!("({n}, {}, {}, 'c{n}')", n % 10, n % 100))
            .collect();
        c.query_drop(format!("insert into t values {}", rows.join(",")))
            .expect("rows");
    }
    let rows: Vec<String> = (0..300)
        .map(|n| format!("({n}, {}, {})", n * 7 % 2000, n % 3))
        .collect();
    c.query_drop(format!("insert into u values {}", rows.join(",")))
        .expect("rows");
    c
}

/// What EXPLAIN says of a table.
#[derive(Debug)]
struct Line {
    table: String,
    type_: String,
    key: String,
    extra: String,
}

fn explain(c: &mut Conn, sql: &str) -> Vec<Line> {
    let lines = query_text(c, &format!("explain {sql}"));
    lines
        .into_iter()
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            Line {
                table: cells[2].to_string(),
                type_: cells[4].to_string(),
                key: cells[6].to_string(),
                extra: cells[11].to_string(),
            }
        })
        .collect()
}

/// The tables in the order in which they are joined.
fn order(c: &mut Conn, sql: &str) -> Vec<String> {
    explain(c, sql).into_iter().map(|line| line.table).collect()
}

/// Codes and messages of the last statement.
fn warnings(c: &mut Conn) -> Vec<String> {
    query_text(c, "show warnings")
}

#[test]
fn access_paths_are_as_told() {
    let server = TestServer::start();
    let mut c = with_tables(&server, "access");
    let mut key = |sql: &str| {
        let line = explain(&mut c, sql).remove(0);
        (line.type_ + " " + &line.key, line.extra)
    };
    let condition = "c from t where a = 3 and b = 53";
    for (hint, expected) in [
        ("INDEX(t b)", "ref b"),
        ("INDEX(t a)", "ref a"),
        ("INDEX(t ab)", "ref ab"),
        ("JOIN_INDEX(t a)", "ref a"),
        ("NO_INDEX(t ab, a)", "ref b"),
        ("NO_INDEX(t)", "ALL NULL"),
        ("NO_JOIN_INDEX(t)", "ALL NULL"),
        ("INDEX(`t` `B`)", "ref b"),
        ("QB_NAME(q) INDEX(@q t a)", "ref a"),
        ("INDEX(t@`select#1` a)", "ref a"),
    ] {
        let sql = format!("select /*+ {hint} */ {condition}");
        assert_eq!(key(&sql).0, expected, "{sql}");
    }
    // USE INDEX counts no more when there is a hint.
    let sql = "select /*+ INDEX(t b) */ c from t use index (a) where a = 3 and b = 53";
    assert_eq!(key(sql).0, "ref b");

    let condition = "c from t where a between 2 and 4 and b = 53";
    let extra = |key: &mut dyn FnMut(&str) -> (String, String), hint: &str| {
        key(&format!("select /*+ INDEX(t ab) {hint} */ {condition}")).1
    };
    assert!(extra(&mut key, "").contains("Using index condition"));
    for hint in ["NO_ICP(t)", "NO_ICP(t ab)", "NO_ICP(t a, ab)"] {
        assert!(
            !extra(&mut key, hint).contains("Using index condition"),
            "{hint}"
        );
    }
    assert!(extra(&mut key, "NO_ICP(t b)").contains("Using index condition"));

    for hint in [
        "MRR(t)",
        "MRR(t ab)",
        "SET_VAR(optimizer_switch='mrr=off') MRR(t ab)",
    ] {
        assert!(extra(&mut key, hint).contains("Using MRR"), "{hint}");
    }
    for hint in ["NO_MRR(t)", "MRR(t) NO_MRR(t ab)"] {
        assert!(!extra(&mut key, hint).contains("Using MRR"), "{hint}");
    }
}

#[test]
fn skip_scans_and_index_merges_are_as_told() {
    let server = TestServer::start();
    let mut c = with_tables(&server, "merges");
    let mut key = |hint: &str, condition: &str| {
        let sql = format!("select /*+ {hint} */ c from t where {condition}");
        let line = explain(&mut c, &sql).remove(0);
        (line.type_, line.key)
    };
    let either = "a = 3 or b = 7";
    let off = "SET_VAR(optimizer_switch='index_merge=off,skip_scan=off')";
    for hint in ["INDEX_MERGE(t)", "INDEX_MERGE(t a, b)"] {
        assert_eq!(key(hint, either).0, "index_merge", "{hint}");
        let hint = format!("{off} {hint}");
        assert_eq!(key(&hint, either).0, "index_merge", "{hint}");
    }
    for hint in ["NO_INDEX_MERGE(t)", "NO_INDEX_MERGE(t b)", off] {
        assert_ne!(key(hint, either).0, "index_merge", "{hint}");
    }
    assert_eq!(key("INDEX_MERGE(t a, b)", either).1, "a,b");
    assert_eq!(key("INDEX_MERGE(t ab, b)", either).1, "ab,b");

    // Index b would find the rows at once.
    assert_eq!(key("SKIP_SCAN(t ab)", "b = 53").1, "ab");
    assert_eq!(key(&format!("{off} SKIP_SCAN(t)"), "b = 53").1, "ab");
    assert_ne!(key("NO_SKIP_SCAN(t)", "b = 53").1, "ab");
}

#[test]
fn orders_are_as_told() {
    let server = TestServer::start();
    let mut c = with_tables(&server, "orders");
    let mut plan = |sql: &str| {
        let line = explain(&mut c, sql).remove(0);
        (line.key, line.extra.contains("filesort"))
    };
    let walk = ("b".to_string(), false);
    let sort = ("NULL".to_string(), true);
    for (sql, expected) in [
        ("select /*+ ORDER_INDEX(t b) */ c from t order by b", &walk),
        (
            "select c from t force index for order by (b) order by b",
            &walk,
        ),
        ("select c from t order by b limit 3", &walk),
        (
            "select /*+ NO_ORDER_INDEX(t b) */ c from t order by b limit 3",
            &sort,
        ),
        (
            "select c from t ignore index for order by (b) order by b limit 3",
            &sort,
        ),
        (
            "select c from t use index for order by () order by b limit 3",
            &sort,
        ),
        // For rows only: the order may still come from the index.
        (
            "select c from t ignore index for join (b) order by b limit 3",
            &walk,
        ),
        (
            "select /*+ SET_VAR(optimizer_switch='prefer_ordering_index=off') */ c from t order by b limit 3",
            &sort,
        ),
    ] {
        assert_eq!(plan(sql), *expected, "{sql}");
    }
    // An index for its order only finds no rows.
    let sql = "select c from t use index for join () where b = 5";
    assert_eq!(plan(sql).0, "NULL", "{sql}");
}

#[test]
fn join_orders_are_as_told() {
    let server = TestServer::start();
    let mut c = with_tables(&server, "joins");
    for (sql, expected) in [
        (
            "select /*+ JOIN_ORDER(t, u) */ count(d) from t join u on u.t_id = t.id",
            ["t", "u"],
        ),
        (
            "select /*+ JOIN_ORDER(u, t) */ count(d) from t join u on u.t_id = t.id",
            ["u", "t"],
        ),
        (
            "select /*+ JOIN_PREFIX(t) */ count(d) from u join t on u.t_id = t.id",
            ["t", "u"],
        ),
        (
            "select /*+ JOIN_SUFFIX(t) */ count(d) from t join u on u.t_id = t.id",
            ["u", "t"],
        ),
        (
            "select /*+ JOIN_FIXED_ORDER() */ count(d) from t join u on u.t_id = t.id",
            ["t", "u"],
        ),
        (
            "select /*+ JOIN_FIXED_ORDER() */ count(d) from u join t on u.t_id = t.id",
            ["u", "t"],
        ),
        (
            "select straight_join count(d) from t join u on u.t_id = t.id",
            ["t", "u"],
        ),
        (
            "select count(d) from t straight_join u on u.t_id = t.id",
            ["t", "u"],
        ),
        (
            "select count(d) from u straight_join t on u.t_id = t.id",
            ["u", "t"],
        ),
        (
            "select /*+ QB_NAME(o) JOIN_ORDER(t@o, u@i) */ count(a) from t where b in
             (select /*+ QB_NAME(i) */ d from u where u.id < t.id)",
            ["t", "u"],
        ),
    ] {
        assert_eq!(order(&mut c, sql), expected, "{sql}");
        assert_eq!(warnings(&mut c), [""; 0], "{sql}");
    }
    // The tables of a derived table are one item.
    let sql = "select /*+ JOIN_ORDER(x, y) */ count(*) from (select u.d, t.a from u join t on u.t_id = t.id) y
               join t x on x.id = y.d";
    assert_eq!(order(&mut c, sql)[0], "x", "{sql}");
    // An outer join leaves no choice.
    let sql = "select /*+ JOIN_ORDER(u, t) */ count(d) from t left join u on u.t_id = t.id";
    assert_eq!(order(&mut c, sql).len(), 2);
    let expected = "Warning\t3126\tHint JOIN_ORDER(`u`,`t`) is ignored as conflicting/duplicated";
    assert_eq!(warnings(&mut c), [expected]);
}

#[test]
fn join_methods_are_as_told() {
    let server = TestServer::start();
    let mut c = with_tables(&server, "methods");
    let mut second = |hint: &str| {
        let sql = format!("select /*+ JOIN_ORDER(u, t) {hint} */ c from u join t on t.b = u.d");
        explain(&mut c, &sql).remove(1).extra
    };
    assert!(second("HASH_JOIN(t)").contains("hash join"));
    assert!(second("BNL(t)").contains("hash join"));
    assert!(!second("NO_HASH_JOIN(t)").contains("hash join"));
    assert!(second("NO_HASH_JOIN(t) NO_INDEX(t)").contains("sort-merge"));
    assert!(second("BKA(t)").contains("Batched Key Access"));
    assert!(second("BKA()").contains("Batched Key Access"));
    let switch = "SET_VAR(optimizer_switch='batched_key_access=off')";
    assert!(second(&format!("{switch} BKA(t)")).contains("Batched Key Access"));
    let no_batches = second("NO_BKA(t) NO_HASH_JOIN(t)");
    assert!(!no_batches.contains("Batched Key Access") && !no_batches.contains("hash join"));
    assert!(!second("SET_VAR(optimizer_switch='hash_join=off') NO_INDEX(t)").contains("hash join"));
    assert!(!second("SET_VAR(optimizer_switch='block_nested_loop=off')").contains("hash join"));
}

#[test]
fn subqueries_are_as_told() {
    let server = TestServer::start();
    let mut c = with_tables(&server, "subqueries");
    let mut extras = |hint: &str| {
        let sql = format!(
            "select count(*) from t where id in (select /*+ {hint} */ t_id from u where d = 1)"
        );
        let lines = explain(&mut c, &sql).into_iter();
        lines.map(|line| line.extra).collect::<String>()
    };
    assert!(extras("SEMIJOIN(FIRSTMATCH)").contains("FirstMatch"));
    assert!(extras("SUBQUERY(INTOEXISTS)").contains("FirstMatch"));
    assert!(extras("NO_SEMIJOIN(MATERIALIZATION)").contains("FirstMatch"));
    assert!(extras("SEMIJOIN(MATERIALIZATION)").contains("hash join"));
    assert!(extras("SUBQUERY(MATERIALIZATION)").contains("hash join"));

    // A subquery on a unique key may come first, unless it is no semijoin.
    let sql = |outer: &str, inner: &str| {
        format!(
            "select /*+ {outer} */ count(*) from u where u.t_id in
             (select /*+ QB_NAME(q) {inner} */ id from t where a = 3 and b = 53)"
        )
    };
    assert_eq!(order(&mut c, &sql("JOIN_PREFIX(t@q)", "")), ["t", "u"]);
    let no_semijoin = sql("JOIN_PREFIX(t@q)", "NO_SEMIJOIN()");
    assert_eq!(order(&mut c, &no_semijoin).len(), 2);
    let expected = "Warning\t3126\tHint JOIN_PREFIX(`t`@`q`) is ignored as conflicting/duplicated";
    assert_eq!(warnings(&mut c), [expected]);
    assert_eq!(order(&mut c, &sql("", "SUBQUERY(INTOEXISTS)")), ["u", "t"]);
    let switch = "SET_VAR(optimizer_switch='semijoin=off,materialization=off')";
    assert_eq!(order(&mut c, &sql(switch, "")), ["u", "t"]);

    // A derived table that is not merged has a block of its own.
    let derived = |hint: &str| {
        format!(
            "select {hint} count(*) from (select u.t_id as x from u join t on t.id = u.d) d join t on t.id = d.x"
        )
    };
    let is_derived = |tables: Vec<String>| tables.iter().any(|table| table.starts_with("<derived"));
    // A direct plan of small tables has the rows of one, too, and does not merge it.
    c.query_drop("set optimizer_switch='direct=off'")
        .expect("a flag");
    assert!(!is_derived(order(&mut c, &derived(""))));
    assert!(is_derived(order(&mut c, &derived("/*+ NO_MERGE(d) */"))));
    c.query_drop("set optimizer_switch='derived_merge=off'")
        .expect("a flag");
    assert!(is_derived(order(&mut c, &derived(""))));
    assert!(!is_derived(order(&mut c, &derived("/*+ MERGE(d) */"))));
    let count = query_text(&mut c, &derived(""));
    c.query_drop("set optimizer_switch='default'")
        .expect("flags");
    assert_eq!(query_text(&mut c, &derived("")), count);
}

#[test]
fn wrong_hints_are_warnings() {
    let server = TestServer::start();
    let mut c = with_tables(&server, "wrong");
    for (sql, expected) in [
        (
            "select /*+ FASTER(t) */ a from t where id = 1",
            "1064\tOptimizer hint syntax error near 'FASTER(t) */ a from t where id = 1' at line 1",
        ),
        (
            "select /*+ MRR(x) */ a from t where id = 1",
            "3128\tUnresolved name `x`@`select#1` for MRR hint",
        ),
        (
            "select /*+ NO_ICP(t x) */ a from t where id = 1",
            "3128\tUnresolved name `t`@`select#1` `x` for NO_ICP hint",
        ),
        (
            "select /*+ BKA(t@q) */ a from t where id = 1",
            "3127\tQuery block name `q` is not found for BKA hint",
        ),
        (
            "select /*+ MRR(t) NO_MRR(t) */ a from t where id = 1",
            "3126\tHint NO_MRR(`t`) is ignored as conflicting/duplicated",
        ),
        (
            "select /*+ INDEX(t a) NO_JOIN_INDEX(t b) */ a from t where id = 1",
            "3126\tHint NO_JOIN_INDEX(`t` `b`) is ignored as conflicting/duplicated",
        ),
        (
            "select /*+ QB_NAME(x) QB_NAME(y) */ a from t where id = 1",
            "3126\tHint QB_NAME(`y`) is ignored as conflicting/duplicated",
        ),
        (
            "select /*+ SET_VAR(nothing=1) */ a from t where id = 1",
            "3128\tUnresolved name 'nothing' for SET_VAR hint",
        ),
        (
            "select /*+ SET_VAR(autocommit=0) */ a from t where id = 1",
            "3637\tVariable 'autocommit' cannot be set using SET_VAR hint.",
        ),
        (
            "select a from t where id in (select /*+ MAX_EXECUTION_TIME(1) */ 1)",
            "3125\tMAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only",
        ),
        (
            "insert /*+ MAX_EXECUTION_TIME(1) */ into u values (1000, 1, 1)",
            "3125\tMAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only",
        ),
        (
            "update /*+ MRR(x) */ u set d = 1 where id = 1000",
            "3128\tUnresolved name `x`@`select#1` for MRR hint",
        ),
        (
            "delete /*+ MRR(x) */ from u where id = 1000",
            "3128\tUnresolved name `x`@`select#1` for MRR hint",
        ),
        (
            "insert /*+ MRR(x) */ into u select id + 5000, 1, 1 from t where id = 1",
            "3128\tUnresolved name `x`@`select#1` for MRR hint",
        ),
        (
            "insert into u select /*+ MRR(x) */ id + 6000, 1, 1 from t where id = 1",
            "3128\tUnresolved name `x`@`select#1` for MRR hint",
        ),
    ] {
        c.query_drop(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(warnings(&mut c), [format!("Warning\t{expected}")], "{sql}");
    }
    // Other comments are no hints.
    for sql in [
        "select /* MRR(x) */ a from t where id = 1",
        "select a /*+ MRR(x) */ from t where id = 1",
        "select /*+ MRR(t) */ a from t where id = 1",
    ] {
        c.query_drop(sql).expect("a query");
        assert_eq!(warnings(&mut c), [""; 0], "{sql}");
    }
    let mut prepared = c
        .prep("select /*+ MRR(x) */ a from t where id = ?")
        .expect("a statement");
    for id in [1, 2] {
        let found: Option<i32> = c.exec_first(&prepared, (id,)).expect("a row");
        assert_eq!(found, Some(id));
        assert_eq!(warnings(&mut c).len(), 1);
    }
    prepared = c
        .prep("select /*+ SET_VAR(max_error_count=7) */ @@max_error_count from t where id = ?")
        .expect("a statement");
    for id in [1, 2] {
        let found: Option<i32> = c.exec_first(&prepared, (id,)).expect("a row");
        assert_eq!(found, Some(7));
    }
}

#[test]
fn variables_are_set_for_one_statement() {
    let server = TestServer::start();
    let mut c = with_tables(&server, "variables");
    let before = query_text(&mut c, "select @@sort_buffer_size, @@max_error_count");
    let hinted = "select /*+ SET_VAR(sort_buffer_size=256K) SET_VAR(max_error_count=5) */ @@sort_buffer_size,
                  @@max_error_count";
    assert_eq!(query_text(&mut c, hinted), ["262144\t5"]);
    assert_eq!(
        query_text(&mut c, "select @@sort_buffer_size, @@max_error_count"),
        before
    );
    let failing = c.query_drop("select /*+ SET_VAR(max_error_count=5) */ nothing from t");
    assert_eq!(error_of(failing).0, 1054);
    assert_eq!(
        query_text(&mut c, "select @@sort_buffer_size, @@max_error_count"),
        before
    );
    // A value that is refused leaves the variable alone; a second assignment is ignored.
    let sql = "select /*+ SET_VAR(optimizer_switch='mrr=perhaps') SET_VAR(max_error_count=3)
               SET_VAR(max_error_count=4) */ @@max_error_count";
    assert_eq!(query_text(&mut c, sql), ["3"]);
    let codes: Vec<String> = warnings(&mut c)
        .iter()
        .map(|line| line.split('\t').nth(1).unwrap_or_default().to_string())
        .collect();
    assert_eq!(codes, ["1231", "3126"]);
}

#[test]
fn a_statement_has_its_time() {
    let server = TestServer::start();
    let mut c = with_tables(&server, "time");
    let slow = "count(*) from u a, u b, u c, u d, u e, u f, u g, u h";
    let interrupted = c.query_drop(format!("select /*+ MAX_EXECUTION_TIME(1) */ {slow}"));
    assert_eq!(error_of(interrupted).0, 3024);
    assert_eq!(
        query_text(
            &mut c,
            "select /*+ MAX_EXECUTION_TIME(100000) */ count(*) from t"
        ),
        ["2000"]
    );
}
