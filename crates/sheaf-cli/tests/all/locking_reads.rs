//! FOR UPDATE and FOR SHARE: what they lock, wait for, and leave out.

use mysql::prelude::Queryable;

use crate::harness::{TestServer, query_text, run as run_all};
use crate::transactions::{code_of, error_of, rows, run, two_sessions};

#[test]
fn locking_reads_see_the_newest_rows_and_keep_them() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "locking");
    run(&mut one, "begin");
    assert_eq!(rows(&mut one), [(1, 10), (2, 20)]);
    run(&mut two, "update t set n = 15 where id = 1");
    let newest: Vec<i64> = one
        .query("select n from t where id = 1 for update")
        .expect("rows");
    assert_eq!(newest, [15]);
    let shared: Vec<i64> = one
        .query("select n from t where id = 1 lock in share mode")
        .expect("rows");
    assert_eq!(shared, [15]);
    assert_eq!(rows(&mut one), [(1, 10), (2, 20)]);
    run(&mut two, "set innodb_lock_wait_timeout = 1");
    assert_eq!(error_of(&mut two, "update t set n = 16 where id = 1"), 1205);
    run(&mut one, "update t set n = n + 1 where id = 1");
    run(&mut one, "commit");
    assert_eq!(rows(&mut two), [(1, 16), (2, 20)]);
}

/// A locking read of SERIALIZABLE locks the rows of its FOR UPDATE, and what else it reads to show them.
#[test]
fn a_serializable_locking_read_keeps_what_its_subqueries_read() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "subqueries_skew");
    run(&mut one, "create table u (id int primary key, n int)");
    run(&mut one, "insert into u values (1, 1), (2, 2)");
    for connection in [&mut one, &mut two] {
        run(
            connection,
            "set session transaction isolation level serializable",
        );
        run(connection, "begin");
    }
    let found: Vec<(i64, i64)> = one
        .query("select id, (select sum(n) from u) from t where id = 1 for update")
        .expect("a row");
    assert_eq!(found, [(1, 3)]);
    assert_eq!(
        error_of(&mut two, "select * from u where id = 2 for update nowait"),
        3572
    );
}

/// With LIMIT the rows that a locking read shows are those that it locks, whatever its order is called.
#[test]
fn a_locking_read_with_limit_shows_the_rows_that_it_locks() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "limited");
    run(&mut one, "update t set n = 30 where id = 1");
    for sql in [
        "select n, id from t order by 1 desc limit 1 for update",
        "select n as number, id from t order by number desc limit 1 for update",
    ] {
        run(&mut one, "begin");
        let found: Vec<(i64, i64)> = one.query(sql).expect(sql);
        assert_eq!(found, [(30, 1)], "{sql}");
        let nowait = |id: i64| format!("select * from t where id = {id} for update nowait");
        assert_eq!(error_of(&mut two, &nowait(1)), 3572, "{sql}");
        run(&mut two, &nowait(2));
        run(&mut one, "rollback");
    }
    run(&mut one, "begin");
    let found: Vec<(i64, i64)> = one
        .query("select * from t order by 2 limit 1 for update skip locked")
        .expect("a row");
    assert_eq!(found, [(2, 20)]);
    run(&mut one, "rollback");
}

#[test]
fn skip_locked_leaves_out_what_others_have() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "skips");
    run(&mut one, "begin");
    run(&mut one, "select * from t where id = 1 for update");
    run(&mut two, "begin");
    let sql = "select id as number, n from t order by id limit 1 for update skip locked";
    let rows: Vec<(i64, i64)> = two.query(sql).expect("rows");
    assert_eq!(rows, [(2, 20)]);
    let mut three = server.connect();
    run(&mut three, "use skips");
    let none: Vec<(i64, i64)> = three
        .query("select * from t for share skip locked")
        .expect("no rows");
    assert_eq!(none, []);
    run(&mut one, "rollback");
    let rows: Vec<(i64, i64)> = three
        .query("select * from t for share skip locked")
        .expect("rows");
    assert_eq!(rows, [(1, 10)]);
    // It locks no gaps.
    run(&mut three, "insert into t values (3, 30)");
}

/// `*` of a join is the columns of its tables. One clause treats locked rows of all tables alike.
#[test]
fn skip_locked_and_nowait_are_about_the_tables_that_they_name() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "joined");
    run(&mut one, "create table u (id int primary key, t_id int)");
    run(&mut one, "insert into u values (11, 1), (12, 2)");
    run(&mut one, "begin");
    run(&mut one, "select * from t where id = 1 for update");
    run(&mut two, "begin");
    let join = "from t join u on u.t_id = t.id";
    for (list, of) in [("*", "t"), ("t.*, u.*", "t")] {
        let sql = format!("select {list} {join} order by u.id for update of {of} skip locked");
        let rows: Vec<(i64, i64, i64, i64)> = two.query(&sql).expect(&sql);
        assert_eq!(rows, [(2, 20, 12, 2)], "{sql}");
    }
    let sql = format!("select u.* {join} order by u.id limit 1 for update skip locked");
    let rows: Vec<(i64, i64)> = two.query(&sql).expect(&sql);
    assert_eq!(rows, [(12, 2)]);
    let sql = format!("select u.* {join} order by u.id for update of u skip locked");
    let rows: Vec<(i64, i64)> = two.query(&sql).expect(&sql);
    assert_eq!(rows, [(11, 1), (12, 2)]);
    let mixed = format!("select u.id {join} for update of t skip locked for share of u");
    assert_eq!(code_of(&mut two, &mixed), 1235);
    let union = "(select id from t where id = 1 for update nowait) union all (select 7)";
    assert_eq!(code_of(&mut two, union), 3572);
}

/// A clause behind a UNION is about the tables of its last SELECT.
#[test]
fn for_update_behind_a_union_is_about_the_last_select() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "unions");
    run(&mut one, "create table u (id int primary key)");
    run(&mut one, "insert into u values (1)");
    for union in [
        "select id from t union all select id from u for update",
        "(select id from t) union all (select id from u) for update",
        "(select id from t) union all (select id from u) order by id for update",
    ] {
        run(&mut one, "begin");
        run(&mut one, union);
        run(&mut two, "begin");
        run(&mut two, "select * from t for share nowait");
        let last = "select * from u for share nowait";
        assert_eq!(code_of(&mut two, last), 3572, "{union}");
        run(&mut two, "rollback");
        run(&mut one, "rollback");
    }
}

/// Sessions that take jobs off a queue: each job is done once.
#[test]
fn a_queue_gives_each_job_to_one_worker() {
    const JOBS: usize = 60;
    let server = TestServer::start();
    let mut admin = server.connect_to_new("queue");
    run(
        &mut admin,
        "create table job (id int primary key, done int not null, key (done))",
    );
    for id in 0..JOBS {
        run(&mut admin, &format!("insert into job values ({id}, 0)"));
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut c = server.connect();
                run(&mut c, "use queue");
                loop {
                    run(&mut c, "begin");
                    let next: Option<i64> = c
                        .query_first(
                            "select id from job where done = 0 order by id limit 1 for update skip locked",
                        )
                        .expect("a job, or none");
                    if let Some(id) = next {
                        run(&mut c, &format!("update job set done = done + 1 where id = {id}"));
                    }
                    run(&mut c, "commit");
                    let left: Option<i64> = c
                        .query_first("select count(*) from job where done = 0")
                        .expect("a count");
                    if left == Some(0) {
                        break;
                    }
                }
            });
        }
    });
    let done: Vec<i64> = admin.query("select done from job").expect("rows");
    assert_eq!(done, [1; JOBS]);
}

/// What a query inside of a statement locks stays locked, whatever the statement does with its own rows.
#[test]
fn queries_inside_of_statements_lock_what_they_say() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "locked_inside");
    run(&mut one, "create table o (id int primary key, a int)");
    run(&mut one, "insert into o values (1, 10), (5, 5)");
    for sql in [
        "select * from o where a in (select n from t where id = 1 for update) for update",
        "select * from o where exists (select 1 from t where t.id = o.id for update) for share",
        "select id, (select n from t where t.id = 1 for update) from o for update",
        "select id, (select max(n) from t where t.n = o.a for update) from o for share",
        "select * from o where a in (select n from t where id = 1 for update) for update skip locked",
        "insert into o select 10, n from t where id = 1 for update",
        "insert into o values (10, (select n from t where id = 1 for update))",
        "replace into o values (1, (select n from t where id = 1 for update))",
        "insert into o values (1, 1) on duplicate key update a = (select n from t where id = 1 for update)",
        "update o set a = a + (select n from t where id = 1 for update) where id = 1",
        "update o set a = 3 where a in (select n from t where id = 1 for update)",
        "update o join (select n from t where id = 1 for update) d on d.n = o.a set o.a = 9",
        "delete from o where a = (select n from t where id = 1 for update)",
        "delete from o where id = 1 and exists (select 1 from t where t.id = o.id for update)",
    ] {
        for level in ["repeatable read", "read committed"] {
            run(
                &mut one,
                &format!("set transaction isolation level {level}"),
            );
            run(&mut one, "begin");
            run(&mut one, sql);
            let other = "select * from t where id = 1 for share nowait";
            assert_eq!(error_of(&mut two, other), 3572, "{level}: {sql}");
            run(&mut one, "rollback");
            run(&mut two, other);
            let shared = sql.replace("for update", "for share");
            run(&mut one, "begin");
            run(&mut one, &shared);
            run(&mut two, other);
            let other = "select * from t where id = 1 for update nowait";
            assert_eq!(error_of(&mut two, other), 3572, "{level}: {shared}");
            run(&mut one, "rollback");
        }
    }
    run(&mut two, "begin");
    run(&mut two, "select * from t where id = 1 for update");
    let sql = "update o set a = 3 where a in (select n from t where id = 1 for update nowait)";
    assert_eq!(error_of(&mut one, sql), 3572);
    run(&mut two, "rollback");
    let sql = "insert into o select id, n from t for update skip locked";
    assert_eq!(error_of(&mut one, sql), 1235);
}

/// Those that ask for the same row wait for one another, and are no deadlock.
#[test]
fn queries_inside_that_lock_one_row_come_one_after_the_other() {
    let server = TestServer::start();
    let (mut one, _) = two_sessions(&server, "one_after_the_other");
    run(&mut one, "create table o (id int primary key, a int)");
    run(&mut one, "insert into o values (1, 0), (2, 0), (3, 0)");
    std::thread::scope(|scope| {
        for id in 1..=3 {
            let mut session = server.connect();
            scope.spawn(move || {
                run(&mut session, "use one_after_the_other");
                for _ in 0..20 {
                    run(&mut session, "begin");
                    run(
                        &mut session,
                        &format!(
                            "update o set a = a + 1 where id = {id} and exists (select 1 from t where id = 1 for update)"
                        ),
                    );
                    run(&mut session, "commit");
                }
            });
        }
    });
    let sum: Option<i64> = one.query_first("select sum(a) from o").expect("it runs");
    assert_eq!(sum, Some(60));
}

/// A locking read locks the same rows whichever way it runs: of joins, groups, subqueries and sorted LIMITs.
#[test]
fn direct_locking_reads_lock_the_rows_that_planned_ones_lock() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "both_locked");
    run(
        &mut one,
        "create table u (id int primary key, t_id int not null, v varchar(10), key (t_id))",
    );
    run(
        &mut one,
        "insert into u values (11, 1, 'a'), (12, 1, 'b'), (13, 2, 'c'), (14, 3, 'd')",
    );
    // With what is shown, and the rows of each table that are locked.
    let statements = [
        (
            "select t.id, u.v from t join u on u.t_id = t.id where t.id = 1 order by u.id for update",
            "1\ta,1\tb",
            "t1 u11 u12",
        ),
        (
            "select t.*, u.id from u join t on t.id = u.t_id where u.id = 12 for update of u",
            "1\t10\t12",
            "u12",
        ),
        (
            "select u.v from u join t on t.id = u.t_id where u.id = 13 for update of t nowait",
            "c",
            "t2",
        ),
        (
            "select u.v, t.n from u left join t on t.id = u.t_id where u.id in (13, 14) order by u.id for update",
            "c\t20,d\tNULL",
            "t2 u13 u14",
        ),
        (
            "select u.id from u join t on t.id = u.t_id where t.id = 1 order by u.v desc limit 1 for update",
            "12",
            "t1 u12",
        ),
        (
            "select u.id from u join t on t.id = u.t_id where t.id = 1 order by u.id limit 1 for update of u skip locked",
            "11",
            "u11",
        ),
        (
            "select u.id from u join t on t.id = u.t_id where t.id = 1 order by u.id limit 1 offset 1 for update of u skip locked",
            "12",
            "u11 u12",
        ),
        (
            "select count(*), max(v) from u where t_id = 1 for update",
            "2\tb",
            "u11 u12",
        ),
        (
            "select distinct t_id from u where t_id = 1 for update",
            "1",
            "u11 u12",
        ),
        (
            "select id from u where t_id = 1 order by v desc limit 1 for update",
            "12",
            "u12",
        ),
        (
            "select id from u where t_id = 1 order by id limit 1 offset 1 for update",
            "12",
            "u11 u12",
        ),
        (
            "select n from t where id = (select t_id from u where id = 13) for update",
            "20",
            "t2",
        ),
        (
            "select id from t where id in (select t_id from u where v = 'c' and id = 13) for update",
            "2",
            "t2",
        ),
        (
            "select t.id, (select count(*) from u where u.t_id = t.id) from t where t.id = 1 for update",
            "1\t2",
            "t1",
        ),
    ];
    let direct_count = |connection: &mut mysql::Conn| {
        let sql = "show status like 'Statements_direct'";
        let row: Option<(String, u64)> = connection.query_first(sql).expect(sql);
        row.expect("a count").1
    };
    // What is searched besides is locked in REPEATABLE READ, and depends on the plan.
    run(
        &mut one,
        "set session transaction isolation level read committed",
    );
    for (sql, shown, expected) in statements {
        for direct in ["off", "on"] {
            run(
                &mut one,
                &format!("set optimizer_switch = 'direct={direct}'"),
            );
            run(&mut one, "begin");
            let before = direct_count(&mut one);
            let what = format!("direct={direct}: {sql}");
            assert_eq!(query_text(&mut one, sql).join(","), shown, "{what}");
            let is_direct = direct_count(&mut one) > before;
            assert_eq!(is_direct, direct == "on", "{what}");
            let mut locked = Vec::new();
            for (table, ids) in [("t", 1..=2), ("u", 11..=14)] {
                for id in ids {
                    let probe = format!("select * from {table} where id = {id} for update nowait");
                    if two.query_drop(&probe).is_err() {
                        locked.push(format!("{table}{id}"));
                    }
                }
            }
            assert_eq!(locked.join(" "), expected, "{what}");
            run(&mut one, "rollback");
        }
    }
}

/// In REPEATABLE READ nothing is inserted where a locking join has looked for rows of the tables that it locks.
#[test]
fn a_direct_locking_join_locks_what_it_has_searched() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "searched_joins");
    run(
        &mut one,
        "create table u (id int primary key, t_id int not null, key (t_id))",
    );
    run(&mut one, "insert into u values (11, 1), (13, 2), (15, 2)");
    run(&mut two, "set innodb_lock_wait_timeout = 1");
    let join = "select u.id from t join u on u.t_id = t.id where t.id = 1 for update";
    for (level, of, is_free) in [
        ("repeatable read", "", false),
        ("repeatable read", " of t", true),
        ("repeatable read", " of u", false),
        ("read committed", "", true),
    ] {
        run(
            &mut one,
            &format!("set session transaction isolation level {level}"),
        );
        run(&mut one, "begin");
        let sql = format!("{join}{of}");
        assert_eq!(query_text(&mut one, &sql), ["11"], "{level}: {sql}");
        run(&mut two, "begin");
        let inserted = two.query_drop("insert into u values (12, 1)");
        assert_eq!(inserted.is_ok(), is_free, "{level}: {sql}");
        run(&mut two, "rollback");
        run(&mut one, "rollback");
    }
}

/// A row that another transaction has changed since is found as it is now, and not at all where it does not match.
#[test]
fn a_direct_locking_join_waits_and_looks_again() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "looked_again");
    run(
        &mut one,
        "create table u (id int primary key, t_id int not null, v int)",
    );
    run(&mut one, "insert into u values (11, 1, 5), (12, 2, 6)");
    let join = "select u.id, u.v, t.n from u join t on t.id = u.t_id where u.id in (11, 12) and u.v < 100 \
                order by u.id for update";
    run(&mut two, "begin");
    assert_eq!(query_text(&mut two, "select count(*) from u"), ["2"]);
    run(&mut one, "begin");
    run(&mut one, "update u set v = 7 where id = 11");
    run(&mut one, "update u set v = 700 where id = 12");
    let found = std::thread::scope(|scope| {
        let found = scope.spawn(|| query_text(&mut two, join));
        let waits = "select count(*) from performance_schema.data_lock_waits";
        while query_text(&mut one, waits) == ["0"] {
            std::thread::yield_now();
        }
        run(&mut one, "commit");
        found.join().expect("rows")
    });
    assert_eq!(found, ["11\t7\t10"]);
    run(&mut two, "commit");
}

/// A small table without an index is read from end to end, locked and changed directly: numbers that programs take
/// from a table are.
#[test]
fn small_tables_without_keys_are_locked_and_changed_directly() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server, "numbers_taken");
    run(&mut one, "create table s (next_val bigint)");
    run(&mut one, "insert into s values (5)");
    let direct_count = |connection: &mut mysql::Conn| {
        let sql = "show status like 'Statements_direct'";
        let row: Option<(String, u64)> = connection.query_first(sql).expect(sql);
        row.expect("a count").1
    };
    for level in ["read committed", "repeatable read"] {
        run(
            &mut one,
            &format!("set session transaction isolation level {level}"),
        );
        run(&mut one, "begin");
        let before = direct_count(&mut one);
        let sql = "select next_val as id_val from s for update";
        assert_eq!(query_text(&mut one, sql), ["5"], "{level}");
        assert_eq!(
            error_of(&mut two, "select * from s for update nowait"),
            3572
        );
        run(&mut one, "update s set next_val = 6 where next_val = 5");
        run(
            &mut one,
            "update s set next_val = 5 where next_val = 6 limit 3",
        );
        run(&mut one, "delete from s where next_val > 6");
        assert_eq!(direct_count(&mut one), before + 4, "{level}");
        run(&mut one, "commit");
        assert_eq!(query_text(&mut two, "select * from s"), ["5"], "{level}");
    }
}

/// In REPEATABLE READ, subqueries, queries in the FROM and tables that OF leaves out are seen as plain reads see them,
/// in each way to run the statement. The answers are MySQL's.
#[test]
fn what_is_not_locked_is_seen_as_by_plain_reads() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("beside");
    run_all(
        &mut connection,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE s (id INT PRIMARY KEY, v INT)",
            "CREATE VIEW few AS SELECT * FROM t WHERE id IN (SELECT id FROM s WHERE v < 10)",
        ],
    );
    let mut other = server.connect();
    run_all(&mut other, &["USE beside"]);
    let queries = [
        (
            "SELECT t.id FROM t WHERE id IN (SELECT id FROM s WHERE v >= 10) FOR UPDATE",
            &[][..],
        ),
        (
            "SELECT t.v, (SELECT MAX(s.v) FROM s) FROM t WHERE id = 1 FOR UPDATE",
            &["100\t2"],
        ),
        (
            "SELECT t.v, (SELECT MAX(x.v) FROM t x) FROM t WHERE id = 1 FOR SHARE",
            &["100\t2"],
        ),
        (
            "SELECT t.v, s.v FROM t JOIN s ON t.id = s.id FOR UPDATE OF t",
            &["100\t1", "200\t2"],
        ),
        (
            "SELECT t.v, s.v FROM t JOIN s ON t.id = s.id WHERE t.id = 1 FOR UPDATE OF s",
            &["1\t10"],
        ),
        (
            "SELECT t.v, s.v FROM t JOIN s ON t.id = s.id FOR UPDATE",
            &["100\t10", "200\t20"],
        ),
        (
            "SELECT t.v, q.v FROM t JOIN (SELECT id, v FROM s) q ON t.id = q.id FOR UPDATE",
            &["100\t1", "200\t2"],
        ),
        (
            "WITH q AS (SELECT MAX(v) AS v FROM t) SELECT t.v, q.v FROM t, q FOR UPDATE",
            &["100\t2", "200\t2"],
        ),
        (
            "SELECT COUNT(*), SUM(v), (SELECT SUM(v) FROM s) FROM t FOR UPDATE",
            &["2\t300\t3"],
        ),
        ("SELECT v FROM few FOR UPDATE", &["100", "200"]),
        (
            "SELECT v FROM t WHERE v > (SELECT MIN(v) FROM s) + 5 ORDER BY v LIMIT 1 FOR UPDATE",
            &["100"],
        ),
        (
            "SELECT t.id FROM t WHERE v > (SELECT MAX(x.v) FROM t x) FOR UPDATE SKIP LOCKED",
            &["1", "2"],
        ),
    ];
    for direct in ["on", "off"] {
        run_all(
            &mut connection,
            &[&format!("SET optimizer_switch = 'direct={direct}'")],
        );
        for (query, expected) in queries {
            run_all(
                &mut other,
                &[
                    "REPLACE INTO t VALUES (1, 1), (2, 2)",
                    "REPLACE INTO s VALUES (1, 1), (2, 2)",
                ],
            );
            run_all(&mut connection, &["BEGIN"]);
            assert_eq!(query_text(&mut connection, "SELECT COUNT(*) FROM t"), ["2"]);
            run_all(
                &mut other,
                &["UPDATE t SET v = 100 * v", "UPDATE s SET v = 10 * v"],
            );
            for _ in 0..2 {
                let mut found = query_text(&mut connection, query);
                found.sort();
                assert_eq!(found, expected, "{query}, direct={direct}");
            }
            run_all(&mut connection, &["ROLLBACK"]);
        }
    }
}
