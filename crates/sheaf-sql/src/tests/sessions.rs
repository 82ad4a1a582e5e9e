//! Variables, status, warnings, prepared statements, and requests of several statements.

use sheaf_types::Value;

use super::{Bench, Collected};
use crate::{SessionInfo, SqlError};

#[test]
fn variables_are_set_and_shown() {
    let mut bench = Bench::new();
    bench.ok("SET sort_buffer_size = 4*1024*1024, @x = 'y', optimizer_switch = 'mrr=off'");
    assert_eq!(
        bench.rows("SHOW VARIABLES LIKE 'sort_buffer_size'"),
        ["sort_buffer_size|4194304"]
    );
    assert_eq!(
        bench.rows("SHOW GLOBAL VARIABLES LIKE 'sort_buffer_size'"),
        ["sort_buffer_size|262144"]
    );
    assert!(bench.rows("SHOW VARIABLES LIKE 'optimizer_switch'")[0].contains("mrr=off"));
    bench.ok("SET mrr_buffer_size = 1000000");
    assert_eq!(
        bench
            .rows("SHOW VARIABLES LIKE '%r%_buffer_size'")
            .iter()
            .filter(|row| row.ends_with("|1000000"))
            .count(),
        2
    );
    bench.ok("SET @old = @@read_rnd_buffer_size, @@session.mrr_buffer_size = DEFAULT; SET GLOBAL join_buffer_size = 65536");
    assert_eq!(bench.session.variables().mrr_buffer_bytes(), 256 << 10);
    let second = bench
        .engine
        .session(SessionInfo::default())
        .expect("a session");
    assert_eq!(second.variables().join_buffer_bytes(), 65536);
    assert_eq!(bench.error("SET no_such = 1"), 1193);
    bench.ok("SET @y = 1");
    assert_eq!(
        bench.error("SET @y = 2, @z = 1, sort_buffer_size = 'big'"),
        1232
    );
    assert_eq!(bench.rows("SELECT @y, @z"), ["1|NULL"]);
    bench.ok("SET @y = 2, @z = @y, @day = DATE '2024-01-02', @time = CAST('2024-01-02 03:04:05' AS DATETIME)");
    assert_eq!(
        bench.rows("SELECT @y, @z, @day, @day + 0, @time"),
        ["2|1|2024-01-02|2024|2024-01-02 03:04:05"]
    );
    assert_eq!(bench.error("SET version = 'x'"), 1238);
    assert_eq!(bench.ok("SET sort_buffer_size = 1").warnings, 1);
    assert_eq!(
        bench.rows("SHOW WARNINGS"),
        ["Warning|1292|Truncated incorrect sort_buffer_size value: '1'"]
    );
    assert_eq!(bench.error("SET NAMES utf8mb4 COLLATE latin1_bin"), 1253);
    bench.ok("SET NAMES utf8mb4 COLLATE utf8mb4_bin");
    assert_eq!(bench.session.result_collation_id(), 46);
}

#[test]
fn the_engine_says_that_it_has_transactions() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.rows(
            "SELECT engine, support, transactions, xa, savepoints FROM information_schema.engines"
        ),
        ["InnoDB|DEFAULT|YES|NO|YES"]
    );
}

#[test]
fn a_request_of_several_statements_stops_at_the_first_error() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.error("CREATE TABLE a (x INT); CREATE TABLE a (x INT); CREATE TABLE b (x INT)"),
        1050
    );
    assert_eq!(bench.rows("SHOW TABLES"), ["a"]);
    assert_eq!(bench.error(" ; -- nothing"), 1065);
    bench.session.set_multi_statements(false);
    assert_eq!(bench.error("SHOW TABLES; SHOW TABLES"), 1064);
    assert_eq!(bench.rows("SHOW TABLES; -- the end"), ["a"]);
}

#[test]
fn errors_are_listed_as_warnings() {
    let mut bench = Bench::new();
    bench.error("DROP TABLE nowhere");
    assert_eq!(
        bench.rows("SHOW ERRORS"),
        ["Error|1051|Unknown table 'test.nowhere'"]
    );
    assert_eq!(bench.rows("SHOW COUNT(*) WARNINGS"), ["1"]);
    bench.ok("SHOW TABLES");
    assert!(bench.rows("SHOW WARNINGS").is_empty());
}

#[test]
fn status_counts_and_flushes() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT); INSERT INTO t VALUES (1),(2),(3)");
    assert_eq!(
        bench.rows("SHOW STATUS LIKE 'Handler_write'"),
        ["Handler_write|3"]
    );
    assert_eq!(
        bench.rows("SHOW SESSION STATUS LIKE 'Com_create_table'"),
        ["Com_create_table|1"]
    );
    bench.ok("FLUSH STATUS");
    assert_eq!(
        bench.rows("SHOW SESSION STATUS LIKE 'Handler_write'"),
        ["Handler_write|0"]
    );
    assert_eq!(
        bench.rows("SHOW GLOBAL STATUS LIKE 'Handler_write'"),
        ["Handler_write|3"]
    );
    assert_eq!(
        bench.rows("SHOW STATUS LIKE 'Threads_connected'"),
        ["Threads_connected|1"]
    );
}

#[test]
fn prepared_statements_bind_values() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20))");
    let prepared = bench
        .session
        .prepare("INSERT INTO t VALUES (?, ?)")
        .expect("prepared");
    assert_eq!((prepared.parameters.len(), prepared.columns.len()), (2, 0));
    let mut sink = Collected::default();
    for (a, b) in [(1, Value::Text("it's".into())), (-2, Value::Null)] {
        bench
            .session
            .execute_prepared(prepared.id, &[Value::Int(a), b], &mut sink)
            .expect("inserted");
    }
    assert_eq!(bench.table_rows("t"), ["-2|NULL", "1|it's"]);
    let wrong = bench
        .session
        .execute_prepared(prepared.id, &[Value::Int(1)], &mut sink);
    assert_eq!(wrong.map_err(|error| error.code), Err(1210));
    bench.session.close_prepared(prepared.id);
    let gone =
        bench
            .session
            .execute_prepared(prepared.id, &[Value::Int(1), Value::Null], &mut sink);
    assert_eq!(gone.map_err(|error| error.code), Err(1243));
    bench.ok("SET @a = 7; PREPARE s FROM 'INSERT INTO t VALUES (?, ''seven'')'; EXECUTE s USING @a; DEALLOCATE PREPARE s");
    assert_eq!(bench.table_rows("t"), ["-2|NULL", "1|it's", "7|seven"]);
    assert_eq!(bench.error("EXECUTE s"), 1243);
}

/// Or it could be one that runs itself, for ever.
#[test]
fn a_prepared_statement_is_none_about_prepared_statements() {
    let mut bench = Bench::new();
    for about in [
        "EXECUTE s",
        "DEALLOCATE PREPARE s",
        "PREPARE t FROM ''SELECT 1''",
    ] {
        assert_eq!(bench.error(&format!("PREPARE s FROM '{about}'")), 1295);
        let prepared = bench.session.prepare(&about.replace("''", "'"));
        assert_eq!(prepared.map(drop).map_err(|error| error.code), Err(1295));
    }
    assert_eq!(bench.error("EXECUTE s"), 1243);
}

/// Names mean what they meant when the statement was prepared, whatever database the session is in.
#[test]
fn a_prepared_statement_stays_in_its_database() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1)");
    bench.ok("CREATE DATABASE other; CREATE TABLE other.t (a INT PRIMARY KEY); INSERT INTO other.t VALUES (2)");
    let prepared = bench
        .session
        .prepare("SELECT a, DATABASE() FROM t")
        .expect("prepared");
    bench.ok("PREPARE s FROM 'SELECT a, DATABASE() FROM t'; PREPARE d FROM 'DROP DATABASE other'");
    bench.ok("PREPARE u FROM 'USE test'; USE other");
    for _ in 0..2 {
        assert_eq!(bench.rows("EXECUTE s"), ["1|test"]);
        let mut sink = Collected::default();
        bench
            .session
            .execute_prepared(prepared.id, &[], &mut sink)
            .expect("it runs");
        assert_eq!(sink.rows, ["1|test"]);
        assert_eq!(bench.rows("SELECT a, DATABASE() FROM t"), ["2|other"]);
    }
    bench.ok("EXECUTE u");
    assert_eq!(bench.rows("SELECT DATABASE()"), ["test"]);
    bench.ok("USE other; EXECUTE d");
    assert_eq!(bench.rows("SELECT DATABASE()"), ["NULL"]);
}

#[test]
fn kill_finds_sessions() {
    let mut bench = Bench::new();
    let other = bench
        .engine
        .session(SessionInfo::default())
        .expect("a session");
    let id = other.id();
    assert_eq!(bench.rows("SHOW PROCESSLIST").len(), 2);
    bench.ok(&format!("KILL {id}"));
    assert!(other.handle().is_killed());
    drop(other);
    assert_eq!(bench.error(&format!("KILL {id}")), 1094);
}

#[test]
fn the_field_list_has_the_columns_of_a_table() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT NOT NULL, b VARCHAR(10))");
    let fields = bench.session.field_list("t").expect("fields");
    assert_eq!(
        fields
            .iter()
            .map(|field| field.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(
        bench.session.field_list("u").map_err(|error| error.code),
        Err(1146)
    );
}

/// A statement runs until what it has committed is durable, also where another thread waits for that.
#[test]
fn a_statement_whose_commit_is_left_to_others_still_runs() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (n INT PRIMARY KEY)");
    let commits = |bench: &mut Bench| bench.rows("SHOW SESSION STATUS LIKE 'Handler_commit'");
    let before = commits(&mut bench);
    bench.session.leave_commits(true);
    bench.ok("INSERT INTO t VALUES (1)");
    let unfinished = bench.session.take_unfinished_commit();
    let unfinished = unfinished.expect("nobody has waited for the log");
    let activity = bench.session.handle().activity();
    assert_eq!(activity.command, "Query");
    assert_eq!(activity.state, "waiting for handler commit");
    assert_eq!(
        activity.statement.as_deref(),
        Some("INSERT INTO t VALUES (1)")
    );
    let ended = bench.session.commit_ended(unfinished.finish());
    ended.expect("the disk works");
    assert_eq!(bench.session.handle().activity().command, "Sleep");
    bench.session.leave_commits(false);
    let after = commits(&mut bench);
    assert_ne!(before, after);

    // One that has failed does not count.
    bench.session.leave_commits(true);
    bench.ok("INSERT INTO t VALUES (2)");
    let unfinished = bench.session.take_unfinished_commit();
    unfinished
        .expect("nobody has waited for the log")
        .finish()
        .expect("the disk works");
    let failed = Err(SqlError::lock_wait_timeout());
    let told = bench.session.commit_ended(failed);
    assert_eq!(told.expect_err("it has failed").code, 1205);
    bench.session.leave_commits(false);
    assert_eq!(commits(&mut bench), after);
}
