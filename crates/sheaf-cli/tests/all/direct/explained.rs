//! What EXPLAIN says of statements that run directly.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::statements_direct;
use crate::harness::{TestServer, query_text};

/// Statements of sysbench go the direct way, as EXPLAIN says.
#[test]
fn explain_says_direct() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("explained");
    c.query_drop("create table t (id int primary key, k int not null, c char(120), key k (k))")
        .expect("a table");
    c.query_drop("insert into t values (1, 5, 'a'), (2, 6, 'b'), (3, 7, 'c')")
        .expect("rows");
    let mut extra = |sql: &str| {
        let rows = query_text(&mut c, &format!("explain {sql}"));
        rows[0].rsplit('\t').next().unwrap_or_default().to_string()
    };
    for sql in [
        "select c from t where id = 1",
        "select c from t where id = '1'",
        "select c from t where id between 1 and 2",
        "select c from t where id between 1 and 2 order by c",
        "select distinct c from t where id between 1 and 2 order by c",
        "select c from t where id = 1 for update",
        "select id from t where k >= 5 order by k limit 1 for share nowait",
        "select c from t where id = 1 for update skip locked",
        "select c from t where k >= 5 order by k limit 2 for share skip locked",
        "select a.c, b.c from t a, t b where a.id = 1 and b.id = a.k",
        "select a.c, b.c from t a, t b where a.k between 5 and 6 and b.id = a.k order by b.c desc, a.id limit 1",
        "select distinct b.c from t a, t b where a.k between 5 and 6 and b.id = a.k order by b.c",
        "select b.c, count(*), sum(a.k) from t a join t b on b.id = a.k where a.k between 5 and 6 group by b.c",
        "select k, max(id), count(distinct c) as n from t where k in (5, 6) group by k order by k desc limit 1",
        "select count(distinct b.k), count(*) from t a join t b on b.id = a.k where a.k between 5 and 6",
        "select a.c, b.c from t a left join t b on b.id = a.k where a.id = 1",
        "select a.c, b.id from t a left join t b on b.id = a.k and b.k = 7 left join t x on x.id = b.k where a.k in (5, 6)",
        "select count(*) from t a left join t b on b.id = a.k where a.k between 5 and 6",
        "select b.c from t a left join t b on b.id = a.k where a.id = 1 and b.k > 3",
        "select id, k from t where k in (5, 6)",
        "select id, k from t where k >= 10 - 5 and k < 5 + 2",
        "select a.c, b.c from t a, t b where a.k between 6 - 1 and 6 and b.id = a.k",
        "select k + 1, upper(c) from t where id = 1",
        "select c from t where id = last_insert_id()",
        "select a.c from t a join t b on b.id = a.k where a.id = last_insert_id()",
        "select id from t where id between 1 and 2 and (c like '%a' or k is null)",
        "select sum(k) from t where id between 1 and 2",
        "select count(k) from t where k between 5 and 6 or k between 6 and 9 or k = 1",
        "select max(id) from t",
        "select min(k) from t",
        "select max(k) from t where c >= 'a'",
        "select c from t limit 1",
        "select c from t order by id desc limit 2 offset 1",
        "select id, c from t where c >= 'a' order by k limit 1",
        "select k, count(*) as n from t where id between 1 and 2 group by k order by n",
        "select a.c from t a, t b where a.id = 1 and b.c = a.c",
        "select a.c, b.k from t a join t b on b.id = a.k",
        "select k, max(id) from t group by k",
        "select k, count(*) from t where id between 1 and 2 group by k with rollup",
        "select max(k) from t where id = 1 for update",
        "select c from t order by id limit 1 for update",
        "select c from t where c = 'a' for update",
        "select c from t where id between 1 and 2 order by c limit 1 for update",
        "select a.c, b.c from t a join t b on b.id = a.k where a.id = 1 for update",
        "select a.c, b.c from t a join t b on b.id = a.k where a.id = 1 for update of a nowait",
        "select a.c from t a left join t b on b.id = a.k where a.k between 5 and 6 order by a.id limit 1 for update of a skip locked",
        // A small table is read from end to end.
        "select * from t",
        "select c from t where c = 'a'",
        "select c from t order by c limit 1",
        "select count(*) from t",
        "select distinct c from t limit 1",
        "select c from t where id = 1 or upper(c) = 'X'",
        "select max(c) from t",
        "select max(c) from t group by k",
    ] {
        assert!(extra(sql).contains("Direct"), "{sql}: {}", extra(sql));
    }
    for sql in [
        "select c from t order by id limit 1001",
        "select rand(1) from t where id = 1",
        "select c from t where id < '1.5'",
        "select c from t where id = '1 apple'",
        "select a.c from t a left join t b on b.id = a.k and a.c = 'x' where a.id = 1",
    ] {
        assert!(!extra(sql).contains("Direct"), "{sql}: {}", extra(sql));
    }
}

/// What follows EXPLAIN is a statement of its own.
#[test]
fn a_direct_statement_after_explain_is_counted() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("counted_after");
    for sql in [
        "create table t (id int primary key, c varchar(20))",
        "insert into t values (1, 'a')",
    ] {
        c.query_drop(sql).expect(sql);
    }
    let before = statements_direct(&mut c);
    for sql in [
        "explain select c from t where id = 1",
        "select c from t where id = 1",
        "explain analyze select c from t where id = 1",
        "select c from t where id = 1",
    ] {
        c.query_drop(sql).expect(sql);
    }
    assert_eq!(statements_direct(&mut c), before + 2);
}

/// Also of queries in a FROM, of subqueries and of the parts of a UNION, EXPLAIN says whether they run directly.
#[test]
fn explain_says_which_queries_run_directly() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("explained_queries");
    for sql in [
        "create table t (id int primary key, k int, c varchar(20), key (k))",
        "create table u (id int primary key, t int not null, n varchar(20), key by_t (t, n))",
        "insert into t values (1, 5, 'a'), (2, 5, 'b'), (3, 7, 'c'), (4, 1, 'd')",
        "insert into u values (1, 1, 'a'), (2, 1, 'b'), (3, 7, 'c')",
        "create table m (id int primary key, at datetime, key (at))",
        "insert into m values (1, '2024-01-01'), (2, '2024-01-31 10:00:00'), (3, '2024-02-01')",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    // Too many to be read whole.
    let others: Vec<String> = (1000..1600)
        .map(|id| format!("({id}, {id}, 'z')"))
        .collect();
    let others = format!("insert into t values {}", others.join(", "));
    connection.query_drop(others).expect("more rows");
    let direct = [
        "select * from (select k, c from t where id in (1, 2)) d where d.k = 5",
        "select t.c, d.n from (select t, n from u where t = 1) d join t on t.id = d.t",
        "select id from t where id = 1 union select id from u where id = 3 order by id desc limit 3",
        "select c from t where id = (select max(id) from u where t = 1)",
        "select c from t where id in (select t from u where id in (1, 2))",
        "select c from t where id = 1 or k = 5",
        "select id, n from u where n like 'a%' and t = 1",
        "select k, count(*) from t where id in (1, 2) group by k having count(*) > (select count(*) from u where u.t = t.k)",
        "select id from t where k = 5 or c like 'a%' limit 2",
        "select u.n from t join u on u.t = t.id where t.k = 5",
        "select id, (select count(*) from u where u.t = t.id) from t where k = 5 order by c desc",
        "select t.id, d.n from t left join (select t, count(*) n from u group by t) d on d.t = t.id where t.k = 5",
        "with w as (select id from t where k = 5 order by id limit 1) select w.id, u.n from w join u on u.t = w.id",
        "with w as (select id, k from t where k = 5) select a.id, b.id from w a join w b on a.id = b.id",
        "with w as (select id, k from t where k = 5) select id from w where id < 2 union all select id from w where id > 1",
        "select id from m where at >= '2024-01-31' and at < '2024-02-01 00:00:00'",
        "insert into u select id + 10, k, c from t where id in (1, 2)",
        "update t join u on u.t = t.id set t.k = t.k + 1 where u.id = 1",
        "update t set c = (select max(n) from u where t = 1) where id = 1",
        "delete t from u join t on t.id = u.t where u.id = 1",
        "delete from t where id in (select t from u where id in (1, 2))",
        "delete from t where id = (select t from u where id = 1)",
        "select t.c, d.m from (select t, max(n) m from u group by t) d join t on t.id = d.t",
        "select t.c, d.m from (select t, max(n) m from u group by t) d join t on t.id between d.t + 1 and d.t + 2",
        "select t.c from t join (select t as id from u where id in (1, 2)) d using (id)",
        "select (select max(c) from t where t.id = u.t + 1) from u",
        "select count(*) from u where exists (select 1 from t where t.k > u.t * 100 and t.k < u.t * 100 + 3)",
        "select t.id from (select id from t order by k limit 3 offset 550) d join t on t.id = d.id",
        "update u set n = (select max(c) from t where t.id between u.t - 1 and u.t)",
        // The new k is in the row, converted to its type, before c is computed.
        "update t set k = k + 1, c = k where id = 1",
        "update t set k = k + 1, c = concat(k, 'x') where id = 1",
        "select id from t where id in (1, 2) and k > all (select u.t from u where u.t = t.id)",
        "select id, k not in (select u.t from u where u.t = t.id) from t where id in (1, 2)",
    ];
    let operators = [
        "select count(*) from (select c from t order by c) d",
        "select c from t where c = (select n from u where id = 1)",
        "select id from t where id in (1, 2) and k > all (select max(u.t) from u where u.t = t.id)",
        "select id from t where id = 1 union select id from t where c = 'a'",
        "select t.c from t where id in (select t from u where n = 'a')",
        "with w as (select id from t where k = 5 order by id limit 1) select a.id, b.id from w a join w b on a.id = b.id",
        "select id from m where at >= '2024-1-31'",
    ];
    for sql in direct {
        says_whether_it_runs_directly(&mut connection, sql, true);
    }
    for sql in operators {
        says_whether_it_runs_directly(&mut connection, sql, false);
    }
    // The session's limit is for the rows that a client gets, so direct plans of queries in a FROM leave it alone.
    connection
        .query_drop("set sql_select_limit = 5")
        .expect("a limit");
    for (sql, is_direct) in [(direct[0], false), (direct[3], true), (direct[4], true)] {
        says_whether_it_runs_directly(&mut connection, sql, is_direct);
    }
}

/// Statements without a table, and those over definitions, are told from those that operators run.
#[test]
fn explain_says_which_constants_and_definitions_run_directly() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("explained_constants");
    for sql in [
        "create table t (id int primary key, k int, c varchar(20), key (k))",
        "insert into t values (1, 5, 'a'), (2, 5, 'b'), (3, 7, 'c')",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    for sql in [
        "select 1",
        "select 1 from dual",
        "select 1 + 1, 'a' as b",
        "select version(), connection_id()",
        "select now(), last_insert_id()",
        "select max(id) + 1, concat(min(k), '-', max(k)) from t",
        "select table_name from information_schema.tables where table_schema = 'explained_constants'",
        "select table_name from information_schema.tables where table_schema = database() and table_name = 't'",
        "select count(*) from information_schema.tables where table_schema = 'explained_constants'",
        "select column_name from information_schema.columns where table_schema = database() and table_name = 't' \
         order by ordinal_position",
        "select exists (select 1 from information_schema.tables where table_schema = 'explained_constants' \
         and table_name = 't') as `exists`",
    ] {
        says_whether_it_runs_directly(&mut connection, sql, true);
    }
    for sql in [
        "select sleep(0)",
        "select rand(1)",
        "select benchmark(1, 1)",
    ] {
        says_whether_it_runs_directly(&mut connection, sql, false);
    }
}

/// All formats of EXPLAIN say whether a statement runs directly, and it does what they say.
fn says_whether_it_runs_directly(connection: &mut Conn, sql: &str, is_direct: bool) {
    let rows = query_text(connection, &format!("explain {sql}"));
    let says = |row: &String| row.ends_with("Direct") == is_direct;
    assert!(rows.iter().all(says), "{sql}: {rows:?}");
    let tree = query_text(connection, &format!("explain format=tree {sql}"));
    let is_so = tree[0].starts_with("-> Direct (without operators)");
    assert_eq!(is_so, is_direct, "{sql}: {tree:?}");
    let json = query_text(connection, &format!("explain format=json {sql}"));
    let is_so = json[0].contains("\"direct\": true");
    assert_eq!(is_so, is_direct, "{sql}: {json:?}");
    connection.query_drop("flush status").expect("a reset");
    connection.query_drop(sql).expect(sql);
    let count = "show session status like 'Statements_direct'";
    let count = query_text(connection, count);
    assert_eq!(count[0].ends_with('1'), is_direct, "{sql}: {count:?}");
}
