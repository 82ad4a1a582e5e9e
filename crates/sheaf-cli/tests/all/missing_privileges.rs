//! What an account meets that has some of the privileges of a statement, or none.

use crate::harness::{TestServer, code, query_text, run};
use crate::users::connect_as;

#[test]
fn a_revoke_takes_all_that_it_names_or_nothing() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(
        &mut root,
        &[
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
            "CREATE USER ann",
            "GRANT SELECT, UPDATE (b) ON t TO ann",
            "GRANT SELECT ON shop.* TO ann",
        ],
    );
    let usage = "GRANT USAGE ON *.* TO `ann`@`%`";
    let database = "GRANT SELECT ON `shop`.* TO `ann`@`%`";
    let table = "GRANT SELECT, UPDATE (`b`) ON `shop`.`t` TO `ann`@`%`";
    for (statement, expected) in [
        ("REVOKE SELECT, INSERT ON t FROM ann", 1147),
        ("REVOKE SELECT, GRANT OPTION ON t FROM ann", 1147),
        ("REVOKE SELECT, INSERT (b) ON t FROM ann", 1147),
        ("REVOKE SELECT, INSERT ON shop.* FROM ann", 1141),
    ] {
        assert_eq!(code(&mut root, statement), expected, "{statement}");
    }
    run(
        &mut root,
        &["REVOKE IF EXISTS SELECT, INSERT ON t FROM ann"],
    );
    assert_eq!(
        query_text(&mut root, "SHOW GRANTS FOR ann"),
        [usage, database, table]
    );
    // Of ALL, and ON *.*, some are enough.
    run(
        &mut root,
        &[
            "REVOKE INSERT ON *.* FROM ann",
            "REVOKE UPDATE, SELECT ON t FROM ann",
            "REVOKE ALL ON shop.* FROM ann",
        ],
    );
    assert_eq!(query_text(&mut root, "SHOW GRANTS FOR ann"), [usage]);
}

#[test]
fn a_table_without_a_readable_column_shows_none() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(
        &mut root,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (a INT, b INT)",
            "CREATE TABLE shop.s (a INT)",
            "CREATE USER ann, bob",
            "GRANT DROP ON shop.t TO ann",
            "GRANT DROP ON shop.* TO bob",
        ],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    for statement in ["DESCRIBE shop.t", "SHOW FULL COLUMNS FROM shop.t"] {
        assert_eq!(query_text(&mut ann, statement), [""; 0], "{statement}");
    }
    assert_eq!(code(&mut ann, "DESCRIBE shop.s"), 1142);
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    for statement in ["DESCRIBE shop.t", "SHOW INDEX FROM shop.t"] {
        assert_eq!(code(&mut bob, statement), 1142, "{statement}");
    }
}

#[test]
fn the_log_and_restricted_variables_need_privileges() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(&mut root, &["CREATE USER ann, bob"]);
    run(&mut root, &["GRANT REPLICATION CLIENT ON *.* TO bob"]);
    run(&mut root, &["GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO bob"]);
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    for statement in [
        "SET sql_log_bin = 1",
        "SET SESSION max_error_count = 5",
        "SET @a = 1, @@session.pseudo_thread_id = 5",
        "SHOW BINARY LOGS",
        "SHOW BINARY LOG STATUS",
        "SHOW REPLICA STATUS",
    ] {
        assert_eq!(code(&mut ann, statement), 1227, "{statement}");
        run(&mut bob, &[statement]);
    }
    assert_eq!(query_text(&mut ann, "SELECT @a"), ["NULL"]);
}
