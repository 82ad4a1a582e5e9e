//! Statements and changes of definitions that wait for each other at a table.

use std::sync::atomic::{AtomicBool, Ordering};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, query_text, wait_until};
use crate::locked_tables::{
    TABLE_LOCK, another, goes_on, id_of, set_wait, state_of, times_out, two_sessions, waits,
};
use crate::transactions::{error_of, run};

/// A transaction has read a table, somebody alters the table, and the transaction comes back to change it.
#[test]
fn a_transaction_and_a_change_of_a_definition_do_not_wait_for_each_other() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    set_wait(&mut one, 60);
    set_wait(&mut two, 60);
    run(&mut two, "begin");
    run(&mut two, "insert into u values (2, 20)");
    run(&mut two, "select * from t");
    let mut three = another(&server);
    std::thread::scope(|scope| {
        let altering = scope.spawn(|| run(&mut one, "alter table t add c int, algorithm=copy"));
        wait_until("the alter keeps writers out", || {
            let refused = three.query_drop("lock tables t read nowait").is_err();
            run(&mut three, "unlock tables");
            refused
        });
        assert_eq!(error_of(&mut two, "update t set b = 11"), 1213);
        altering.join().expect("the alter goes on");
    });
    // Nothing is left of the transaction.
    assert_eq!(query_text(&mut two, "select count(*) from u"), ["1"]);
    goes_on(&mut three, "update u set b = 11");
    run(&mut two, "update t set b = 11, c = 12");
    assert_eq!(query_text(&mut two, "select * from t"), ["1\t11\t12"]);
}

/// What a change only reads is kept as what it changes is, also if the change fails.
#[test]
fn a_transaction_keeps_the_tables_that_its_changes_read() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    let reads = "where a in (select a + 0 from u where b < 1000)";
    for change in [
        format!("update t set b = b + 1 {reads}"),
        format!("delete from t {reads}"),
        "insert into t select a + 1, b from u".to_string(),
        "update t join u on t.b < u.b set t.b = 1".to_string(),
    ] {
        run(&mut one, "begin");
        run(&mut one, &change);
        times_out(&mut two, "truncate table u");
        times_out(&mut two, "alter table u add column c int");
        run(&mut one, "rollback");
    }
    run(&mut one, "begin");
    let fails =
        format!("update t set b = 1 {reads} and cast(b as signed) + 9223372036854775807 > 0");
    assert_eq!(error_of(&mut one, &fails), 1690);
    times_out(&mut two, "truncate table u");
    run(&mut one, "rollback");
    // A statement of its own keeps nothing.
    run(&mut one, &format!("update t set b = b + 1 {reads}"));
    goes_on(&mut two, "truncate table u");
}

#[test]
fn an_alter_that_waited_looks_again_what_it_has_to_do() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "lock tables t write");
    // Of an INT it changes the definition only.
    let modify = "alter table t modify b int comment 'number'";
    waits(&server, &mut two, modify, TABLE_LOCK, || {
        run(&mut one, "alter table t modify b bigint");
        run(&mut one, "unlock tables");
    });
    assert_eq!(
        query_text(
            &mut one,
            "select column_type, column_comment from information_schema.columns where table_schema = 'd' and table_name = 't' and column_name = 'b'",
        ),
        ["int\tnumber"]
    );
    run(&mut one, "lock tables t write");
    let at_once = "alter table t modify b int comment 'again', algorithm = instant";
    set_wait(&mut two, 60);
    let id = id_of(&two);
    let mut watcher = another(&server);
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| error_of(&mut two, at_once));
        wait_until("it waits", || state_of(&mut watcher, id) == [TABLE_LOCK]);
        run(&mut one, "alter table t modify b bigint");
        run(&mut one, "unlock tables");
        assert_eq!(refused.join().expect("an error"), 1846);
    });
}

/// Each of the readers takes longer than one attempt of a change that waits, and at each moment one of them reads.
#[test]
fn a_definition_changes_between_long_statements() {
    let server = TestServer::start();
    let (mut one, _) = two_sessions(&server);
    set_wait(&mut one, 20);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut connection = another(server);
                std::thread::sleep(std::time::Duration::from_millis(reader * 60));
                while !done.load(Ordering::Relaxed) {
                    run(&mut connection, "select sleep(0.25) from t");
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(400));
        let outcomes = [
            "alter table t add column c int",
            "alter table t add index (b)",
            "truncate table t",
        ]
        .map(|sql| (sql, one.query_drop(sql)));
        done.store(true, Ordering::Relaxed);
        for (sql, outcome) in outcomes {
            outcome.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    });
}

/// Others have an empty table, and would keep what is loaded from entering it.
#[test]
fn an_empty_table_that_others_use_gets_its_rows_one_by_one() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "create table empty (a int primary key, b int)");
    run(
        &mut one,
        "set session transaction isolation level read committed",
    );
    for keeps in ["select * from empty", "delete from empty"] {
        run(&mut one, "begin");
        run(&mut one, keeps);
        goes_on(&mut two, "insert into empty select * from t");
        run(&mut one, "rollback");
        assert_eq!(query_text(&mut one, "select * from empty"), ["1\t10"]);
        run(&mut one, "truncate table empty");
    }
}

/// A transaction reads the empty table while it is being loaded.
#[test]
fn a_load_that_waits_for_readers_can_be_killed_and_has_a_limit() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    run(&mut one, "create table empty (a int primary key, b int)");
    let id = id_of(&two);
    let load = "insert into empty select a, sleep(1) from t";
    for limit in [60, 1] {
        set_wait(&mut two, limit);
        let began = std::time::Instant::now();
        std::thread::scope(|scope| {
            let loading = scope.spawn(|| error_of(&mut two, load));
            wait_until("the rows come", || {
                state_of(&mut one, id) == ["loading empty"]
            });
            run(&mut one, "begin");
            run(&mut one, "select * from empty");
            if limit == 60 {
                std::thread::sleep(std::time::Duration::from_millis(1_500));
                assert!(!loading.is_finished());
                run(&mut one, &format!("kill query {id}"));
            }
            let expected = if limit == 60 { 1317 } else { 1205 };
            assert_eq!(loading.join().expect("an answer"), expected);
        });
        assert!(began.elapsed().as_secs() < 20);
        run(&mut one, "commit");
        assert!(query_text(&mut one, "select * from empty").is_empty());
    }
    goes_on(&mut two, "insert into empty select * from t");
}

#[test]
fn a_change_of_a_definition_that_waits_can_be_killed() {
    let server = TestServer::start();
    let (mut one, mut two) = two_sessions(&server);
    set_wait(&mut two, 60);
    let id = id_of(&two);
    // The first wait of an index build is for writers, the second for readers.
    for (keeps, changes) in [
        ("update t set b = b + 1", "alter table t add index (b)"),
        ("select * from t", "alter table t add index (b)"),
        ("select * from t", "alter table t modify b bigint"),
        ("select * from t", "alter table t add column c int"),
        ("select * from t", "drop table t"),
        ("select * from t", "lock tables t write"),
    ] {
        run(&mut one, "begin");
        run(&mut one, keeps);
        let began = std::time::Instant::now();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| error_of(&mut two, changes));
            std::thread::sleep(std::time::Duration::from_millis(200));
            while !waiting.is_finished() {
                run(&mut one, &format!("kill query {id}"));
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            assert_eq!(waiting.join().expect("an answer"), 1317, "{changes}");
        });
        assert!(began.elapsed().as_secs() < 10, "{changes}");
        run(&mut one, "rollback");
    }
    run(&mut two, "alter table t add index (b)");
}

/// Tables of `information_schema` in one statement show one state, whatever is defined meanwhile.
#[test]
fn definitions_are_those_of_one_moment_in_a_statement() {
    let server = TestServer::start();
    let (mut defining, mut reading) = two_sessions(&server);
    let ends = AtomicBool::new(false);
    let queries = [
        "select count(*) from information_schema.columns c left join information_schema.tables t \
         on t.table_schema = c.table_schema and t.table_name = c.table_name \
         where c.table_schema = 'd' and t.table_name is null",
        "select count(*) from (select * from information_schema.columns) c \
         left join (select * from information_schema.tables) t \
         on t.table_schema = c.table_schema and t.table_name = c.table_name where t.table_name is null",
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                run(&mut defining, "create table v (a int primary key, b int)");
                run(&mut defining, "drop table v");
            }
        });
        let mut found = Vec::new();
        for _ in 0..100 {
            for query in queries {
                found.extend(query_text(&mut reading, query));
            }
        }
        ends.store(true, Ordering::Relaxed);
        assert!(found.iter().all(|rows| rows == "0"), "{found:?}");
    });
}

/// What a statement has bound stays what it is while it runs: no statement sees a table that has been dropped.
#[test]
fn reads_beside_changes_of_definitions_read_one_table() {
    const CHANGES: usize = 60;
    let server = TestServer::start();
    let mut owner = server.connect_to_new("d");
    run(
        &mut owner,
        "create table acc (id int primary key, bal int, s varchar(20) default 'x', key (bal))",
    );
    run(
        &mut owner,
        "create table o (x int primary key, aid int, key (aid))",
    );
    for table in ["acc (id, bal)", "o (x, aid)"] {
        let rows = (0..500).map(|id| format!("({id}, {})", id % 100));
        let rows = rows.collect::<Vec<_>>().join(", ");
        run(&mut owner, &format!("insert into {table} values {rows}"));
    }
    let queries = [
        "select count(*), sum(bal) from acc where id >= 0 for share",
        "select count(*), sum(bal) from acc where id >= 400 for update",
        "select count(*), sum(bal) from acc where exists (select 1 from o where o.aid = acc.id) lock in share mode",
        "select id, bal from acc where id < 50 order by bal, id limit 3 for share",
        "select id from acc where id < 10 for share skip locked",
        "select a.id, o.x from acc a join o on o.aid = a.id where a.id < 7 order by 1, 2 for share of a",
        "select sum(bal), count(*) from (select bal, row_number() over (order by s) r from acc where id >= 0) w",
        "select d.bal, (select max(bal) from acc) from (select bal from acc order by bal limit 2) d",
        "select concat(sum(bal), '') from acc where id in (select aid from o)",
    ];
    let changes = [
        "modify bal bigint",
        "modify bal int",
        "modify s varchar(30)",
        "modify s varchar(20)",
        "add column z int",
        "drop column z",
        "drop key bal",
        "add key bal (bal)",
    ];
    let expected: Vec<Vec<String>> = queries.map(|query| query_rows(&mut owner, query)).to_vec();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (is_over, expected, mut connection) = (&is_over, &expected, another(&server));
            scope.spawn(move || {
                for turn in reader.. {
                    let at = turn % queries.len();
                    assert_eq!(
                        query_rows(&mut connection, queries[at]),
                        expected[at],
                        "{}",
                        queries[at]
                    );
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        for change in changes.iter().cycle().take(CHANGES) {
            run(&mut owner, &format!("alter table acc {change}"));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// The rows of a query, each as one text.
fn query_rows(connection: &mut Conn, sql: &str) -> Vec<String> {
    let rows: Vec<mysql::Row> = connection
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.into_iter()
        .map(|row| format!("{:?}", row.unwrap()))
        .collect()
}
