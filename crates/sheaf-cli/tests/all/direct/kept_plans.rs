//! Plans that are kept: with a prepared statement, and for all sessions that send the same text.
//!
//! A kept plan must notice everything that changes its meaning: its tables, the session's modes and collations, the
//! types of parameters, the clock.

use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};

use super::session_count;
use crate::harness::TestServer;

/// A plan that is kept must notice everything that changes its meaning.
#[test]
fn a_prepared_statement_follows_its_table() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("followed");
    let setup = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    setup(
        &mut c,
        "create table t (id int primary key, a int, b varchar(9))",
    );
    setup(&mut c, "insert into t values (1, 10, 'x'), (2, 20, 'Y')");
    let by_id = c.prep("select * from t where id = ?").expect("prepared");
    let rows = |c: &mut Conn| -> Vec<String> {
        let rows: Vec<mysql::Row> = c.exec(&by_id, (1,)).expect("rows");
        rows.into_iter()
            .map(|row| format!("{:?}", row.unwrap()))
            .collect()
    };
    assert_eq!(rows(&mut c), ["[Int(1), Int(10), Bytes(\"x\")]"]);
    setup(&mut c, "rename table t to other");
    setup(&mut c, "create table t (id varchar(5) primary key, b int)");
    setup(&mut c, "insert into t values ('1', 5)");
    assert_eq!(rows(&mut c), ["[Bytes(\"1\"), Int(5)]"]);
    setup(&mut c, "drop table t");
    c.exec::<mysql::Row, _, _>(&by_id, (1,))
        .expect_err("there is no such table");
    setup(&mut c, "create table t (z int, id int, unique (id))");
    setup(&mut c, "insert into t values (7, 1)");
    assert_eq!(rows(&mut c), ["[Int(7), Int(1)]"]);
    setup(&mut c, "create database elsewhere");
    setup(&mut c, "create table elsewhere.t (id int primary key)");
    // The table is that of the database in which the statement was prepared.
    setup(&mut c, "use elsewhere");
    assert_eq!(rows(&mut c), ["[Int(7), Int(1)]"]);
    setup(&mut c, "truncate table followed.t");
    assert_eq!(rows(&mut c), Vec::<String>::new());
}

/// A plan that is kept must notice whatever changes how texts are compared.
#[test]
fn a_prepared_statement_follows_collations() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("compared");
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    let make = |c: &mut Conn, collation: &str| {
        run(c, "drop table if exists t");
        let columns = format!("id int primary key, a varchar(9) collate {collation}, key (a)");
        run(c, &format!("create table t ({columns})"));
        run(
            c,
            "insert into t values (1, 'a'), (2, 'A'), (3, 'b'), (4, '\u{e4}')",
        );
    };
    make(&mut c, "utf8mb4_0900_ai_ci");
    let by_key = c
        .prep("select id from t where a = ? order by id")
        .expect("prepared");
    let by_range = c
        .prep("select id from t where a > ? order by a, id")
        .expect("prepared");
    let update = c.prep("update t set a = a where a = ?").expect("prepared");
    let cases = [
        ("utf8mb4_0900_ai_ci", vec![1, 2, 4], vec![3]),
        ("utf8mb4_bin", vec![1], vec![3, 4]),
        ("utf8mb4_general_ci", vec![1, 2, 4], vec![3]),
        ("utf8mb4_0900_ai_ci", vec![1, 2, 4], vec![3]),
    ];
    for (collation, equal, greater) in cases {
        make(&mut c, collation);
        for direct in ["on", "off"] {
            run(&mut c, &format!("set optimizer_switch = 'direct={direct}'"));
            let what = format!("{collation}, direct={direct}");
            let found: Vec<i32> = c.exec(&by_key, ("a",)).expect("rows");
            assert_eq!(found, equal, "= {what}");
            let text = "select id from t where a = 'a' order by id";
            let found: Vec<i32> = c.query(text).expect("rows");
            assert_eq!(found, equal, "text = {what}");
            let found: Vec<i32> = c.exec(&by_range, ("a",)).expect("rows");
            assert_eq!(found, greater, "> {what}");
            c.exec_drop(&update, ("a",)).expect("it changes nothing");
            assert!(
                c.info_str()
                    .starts_with(&format!("Rows matched: {}", equal.len())),
                "{what}"
            );
        }
    }
}

/// Whether columns have to be grouped is asked by each execution anew, prepared or not.
#[test]
fn a_prepared_statement_follows_sql_mode() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("grouped");
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    run(
        &mut c,
        "create table t (id int primary key, a int, b varchar(9), key (a))",
    );
    run(
        &mut c,
        "insert into t values (1, 1, 'x'), (2, 1, 'x'), (3, 2, 'y')",
    );
    run(&mut c, "set sql_mode = 'STRICT_TRANS_TABLES'");
    let text = "select a, b, count(*) from t where a = 1 group by a";
    let by_value = c
        .prep("select a, b, count(*) from t where a = ? group by a")
        .expect("any row's b");
    let of_all = c
        .prep("select a, b, count(*) from t where a = 1 group by a limit 5")
        .expect("any row's b");
    let grouped = c
        .prep("select a, count(*) from t where a = ? group by a")
        .expect("prepared");
    let code = |error: mysql::Error| match error {
        mysql::Error::MySqlError(error) => error.code,
        other => panic!("{other}"),
    };
    type Group = (i32, String, i64);
    for mode in ["", "ONLY_FULL_GROUP_BY", "", "ONLY_FULL_GROUP_BY"] {
        run(&mut c, &format!("set sql_mode = '{mode}'"));
        // The second time, what the first has left is used.
        for _ in 0..2 {
            let answers: [mysql::Result<Vec<Group>>; 3] =
                [c.query(text), c.exec(&by_value, (1,)), c.exec(&of_all, ())];
            for answer in answers {
                match (mode, answer.map_err(code)) {
                    ("", answer) => assert_eq!(answer, Ok(vec![(1, "x".to_string(), 2)])),
                    (_, answer) => assert_eq!(answer, Err(1055)),
                }
            }
            let counts: Vec<(i32, i64)> = c.exec(&grouped, (1,)).expect("rows");
            assert_eq!(counts, [(1, 2)], "sql_mode '{mode}'");
        }
    }
    let refused = c.prep("select a, b from t group by a").map_err(code);
    assert_eq!(refused.err(), Some(1055));
}

/// The same statement with parameters of other types than at its first execution.
#[test]
fn a_prepared_statement_takes_parameters_of_any_type() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("typed");
    c.query_drop("create table t (id int primary key, b varchar(9) unique)")
        .expect("a table");
    c.query_drop("insert into t values (1, '1'), (2, '02'), (3, 'drei')")
        .expect("rows");
    let by_id = c.prep("select id from t where id = ?").expect("prepared");
    let by_text = c.prep("select id from t where b = ?").expect("prepared");
    let values = [
        (Value::Int(1), vec![1], vec![1]),
        (Value::Bytes(b"1".to_vec()), vec![1], vec![1]),
        (Value::Double(2.0), vec![2], vec![2]),
        (Value::Bytes(b"2".to_vec()), vec![2], vec![]),
        (Value::NULL, vec![], vec![]),
        (Value::Bytes(b"DREI".to_vec()), vec![], vec![3]),
        (Value::UInt(u64::MAX), vec![], vec![]),
        (Value::Int(2), vec![2], vec![2]),
    ];
    for (value, ids, texts) in values {
        let parameters = Params::Positional(vec![value.clone()]);
        let found: Vec<i32> = c.exec(&by_id, parameters.clone()).expect("rows");
        assert_eq!(found, ids, "id = {value:?}");
        let found: Vec<i32> = c.exec(&by_text, parameters).expect("rows");
        assert_eq!(found, texts, "b = {value:?}");
    }
}

/// Statements that differ in their comments share a plan, unless the result's header is another.
#[test]
fn the_header_of_an_aggregate_has_its_comment() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("headers");
    c.query_drop("create table t (a int primary key)")
        .expect("a table");
    for direct in ["on", "off"] {
        c.query_drop(format!("set optimizer_switch = 'direct={direct}'"))
            .expect("a switch");
        for header in ["sum(/* all */ a)", "sum(/* of them */ a)", "sum( a )"] {
            let sql = format!("/* tag */ select {header} from t where a = 1");
            let result = c.query_iter(&sql).expect("a sum");
            let columns = result.columns();
            assert_eq!(columns.as_ref()[0].name_str(), header, "direct={direct}");
        }
    }
}

/// A header shows as much of an expression as MySQL's do, 255 bytes, and no part of a character.
#[test]
fn a_header_shows_the_beginning_of_a_long_expression() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("long_headers");
    c.query_drop("create table t (a int primary key)")
        .expect("a table");
    c.query_drop("insert into t values (1)").expect("a row");
    let long = "é".repeat(400);
    for direct in ["on", "off"] {
        c.query_drop(format!("set optimizer_switch = 'direct={direct}'"))
            .expect("a switch");
        for (item, shown) in [
            (format!("'{long}'"), "é".repeat(127)),
            (
                format!("length('{long}')"),
                format!("length('{}", "é".repeat(123)),
            ),
            (format!("'{}' as b", "z".repeat(300)), "b".to_string()),
        ] {
            for from in ["", " from t", " from t where a = 1"] {
                let result = c.query_iter(format!("select {item}{from}")).expect("a row");
                let columns = result.columns();
                assert_eq!(columns.as_ref()[0].name_str(), shown, "{direct}{from}");
            }
        }
    }
}

/// The clock is read at each execution of a plan that is kept, and so are variables.
#[test]
fn a_kept_plan_reads_the_clock_and_variables_anew() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("clocks");
    c.query_drop("create table t (id int primary key, at datetime, n int)")
        .expect("a table");
    let insert = c
        .prep("insert into t values (?, now(), @n + 1)")
        .expect("prepared");
    let select = c
        .prep("select year(now()), at < now(), n + @n from t where id = ?")
        .expect("prepared");
    for (id, seconds) in [
        (1, 1_000_000_000u64),
        (2, 1_500_000_000),
        (3, 1_600_000_000),
    ] {
        c.query_drop(format!("set timestamp = {seconds}, @n = {id}"))
            .expect("a moment");
        c.exec_drop(&insert, (id,)).expect("a row");
        let rows: Vec<(i64, i64, i64)> = c.exec(&select, (1,)).expect("a row");
        let year = [2001, 2017, 2020][id as usize - 1];
        assert_eq!(rows, [(year, i64::from(id > 1), 2 + id)]);
    }
    let rows: Vec<(i64, i64, i64)> = c
        .query("select id, unix_timestamp(at), n from t order by id")
        .expect("rows");
    assert_eq!(
        rows,
        [
            (1, 1_000_000_000, 2),
            (2, 1_500_000_000, 3),
            (3, 1_600_000_000, 4)
        ]
    );
}

/// Sessions share plans, but not what a plan depends on.
#[test]
fn a_plan_is_found_by_other_sessions_in_the_same_circumstances() {
    let server = TestServer::start();
    let mut first = server.connect_to_new("one");
    let mut second = server.connect_to_new("two");
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    for (c, value) in [(&mut first, "'one'"), (&mut second, "'two'")] {
        run(
            c,
            "create table t (id int primary key, a varchar(9), key (a))",
        );
        run(
            c,
            &format!("insert into t values (1, {value}), (2, 'Zwei')"),
        );
    }
    let mut third = server.connect();
    run(&mut third, "use one");
    let by_id = |id: u32| format!("/* by id */ select a from t where id = {id};");
    let ask = |c: &mut Conn, sql: &str| -> Vec<String> { c.query(sql).expect(sql) };

    assert_eq!(ask(&mut first, &by_id(1)), ["one"]);
    assert_eq!(ask(&mut second, &by_id(1)), ["two"]);
    run(&mut third, "flush status");
    assert_eq!(ask(&mut third, &by_id(2)), ["Zwei"]);
    assert_eq!(ask(&mut third, &by_id(1)), ["one"]);
    let by_id_prepared = third
        .prep("select a from t where id = ?")
        .expect("prepared");
    let rows: Vec<String> = third.exec(&by_id_prepared, (2,)).expect("rows");
    assert_eq!(rows, ["Zwei"]);
    assert_eq!(session_count(&mut third, "Statement_cache_misses"), 0);
    assert_eq!(session_count(&mut third, "Statement_cache_hits"), 3);
    assert_eq!(session_count(&mut third, "Statements_direct"), 3);

    // A literal's collation is not the column's; the column's order decides.
    let by_text = "select id from t where a = 'ZWEI'";
    run(&mut third, "set names utf8mb4 collate utf8mb4_bin");
    assert_eq!(ask(&mut first, by_text), ["2"]);
    assert_eq!(ask(&mut third, by_text), ["2"]);
    run(&mut second, "drop table t");
    run(
        &mut second,
        "create table t (id int primary key, a varchar(9) collate utf8mb4_bin, key (a))",
    );
    run(&mut second, "insert into t values (2, 'Zwei')");
    assert_eq!(ask(&mut second, by_text), Vec::<String>::new());
    assert_eq!(ask(&mut first, by_text), ["2"]);

    // What is between double quotes depends on sql_mode.
    let quoted = "select id from t where a = \"a\" and id = 1";
    assert_eq!(ask(&mut first, quoted), Vec::<String>::new());
    run(&mut third, "set sql_mode = 'ANSI_QUOTES'");
    assert_eq!(ask(&mut third, quoted), ["1"]);
    assert_eq!(ask(&mut first, quoted), Vec::<String>::new());

    // Other definitions are other plans, whichever session changed them.
    run(&mut second, "drop table one.t");
    run(
        &mut second,
        "create table one.t (id varchar(5) primary key, a varchar(9))",
    );
    run(
        &mut second,
        "insert into one.t values ('1', 'one'), ('01', 'text')",
    );
    for c in [&mut first, &mut third] {
        assert_eq!(ask(c, &by_id(1)), ["text", "one"]);
    }
    let evictions: Option<(String, u64)> = first
        .query_first("show global status like 'Statement_cache_evictions'")
        .expect("a status variable");
    assert_eq!(evictions.map(|(_, count)| count), Some(0));
}
