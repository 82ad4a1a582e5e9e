//! Query rewrite rules, as with MySQL's rewriter plugin.

use mysql::prelude::Queryable;
use sheaf::{Database, Options};

use crate::harness::{TestServer, error_of, query_text};

const FLUSH: &str = "call query_rewrite.flush_rewrite_rules()";

#[test]
fn statements_are_rewritten() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("d");
    assert_eq!(error_of(c.query_drop(FLUSH)).0, 1305);
    c.query_drop("install plugin rewriter soname 'rewriter.so'")
        .expect("the plugin");
    c.query_drop("create table t (id int primary key, a int, key a (a))")
        .expect("a table");
    c.query_drop("insert into t values (1, 10), (2, 20), (3, 10)")
        .expect("rows");
    c.query_drop(
        "insert into query_rewrite.rewrite_rules (pattern, replacement, pattern_database) values
         ('SELECT ?', 'SELECT ? + 1', null),
         ('SELECT id FROM t WHERE a = ?', 'SELECT id FROM t FORCE INDEX (a) WHERE a = ? ORDER BY id DESC', 'd'),
         ('DELETE FROM t WHERE a = ?', 'DELETE FROM t WHERE a = ? AND id > 1', 'd')",
    )
    .expect("rules");
    assert_eq!(query_text(&mut c, "select 7"), ["7"], "nothing was flushed");
    c.query_drop(FLUSH).expect("rules that are right");

    assert_eq!(query_text(&mut c, "select 7"), ["8"]);
    assert_eq!(
        query_text(&mut c, "show warnings"),
        ["Note\t1105\tQuery 'select 7' rewritten to 'SELECT 7 + 1' by a query rewrite plugin"]
    );
    assert_eq!(query_text(&mut c, "select 7, 8"), ["7\t8"]);
    let by_a = "select id from t where a = 10";
    assert_eq!(query_text(&mut c, by_a), ["3", "1"]);
    let found: Vec<i32> = c
        .exec("select id from t where a = ?", (10,))
        .expect("a prepared statement");
    assert_eq!(found, [3, 1]);
    c.query_drop("delete from t where a = 10")
        .expect("it is rewritten");
    assert_eq!(query_text(&mut c, "select count(*) from t"), ["2"]);

    // Rules with a database are for its sessions; rules that are not enabled are for nobody.
    c.query_drop("create database e").expect("a database");
    c.query_drop("use e").expect("it is there");
    let elsewhere = c.query_drop("select id from t where a = 10");
    assert_eq!(error_of(elsewhere).0, 1146);
    c.query_drop(
        "update query_rewrite.rewrite_rules set enabled = 'NO' where pattern = 'SELECT ?'",
    )
    .expect("a rule");
    c.query_drop(FLUSH).expect("the others are right");
    assert_eq!(query_text(&mut c, "select 7"), ["7"]);
    c.query_drop("uninstall plugin rewriter")
        .expect("the plugin");
    c.query_drop("use d").expect("it is there");
    assert_eq!(query_text(&mut c, by_a), ["1"]);
    assert_eq!(query_text(&mut c, "show warnings"), [""; 0]);
}

#[test]
fn installing_and_uninstalling_commit() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("d");
    c.query_drop("create table t (id int primary key)")
        .expect("a table");
    for (id, statement) in [
        (1, "install plugin rewriter soname 'rewriter.so'"),
        (2, "uninstall plugin rewriter"),
    ] {
        c.query_drop("begin").expect("a transaction");
        c.query_drop(format!("insert into t values ({id})"))
            .expect("a row");
        c.query_drop(statement).expect("the plugin");
        c.query_drop("rollback").expect("nothing is open");
        let count = query_text(&mut c, "select count(*) from t");
        assert_eq!(count, [id.to_string()], "{statement}");
    }
}

#[test]
fn a_wrong_rule_says_why() {
    let server = TestServer::start();
    let mut c = server.connect();
    c.query_drop("install plugin rewriter soname 'rewriter.so'")
        .expect("the plugin");
    c.query_drop(
        "insert into query_rewrite.rewrite_rules (pattern, replacement) values
         ('SELECT ?', 'SELECT ?, ?'), ('SELECT 5', 'SELECT 6')",
    )
    .expect("rules");
    assert_eq!(
        error_of(c.query_drop(FLUSH)),
        (1644, "45000".to_string()),
        "one of them is wrong"
    );
    let messages = "select message from query_rewrite.rewrite_rules order by id";
    assert_eq!(
        query_text(&mut c, messages),
        ["Replacement has more parameters than pattern.", "NULL"]
    );
    assert_eq!(query_text(&mut c, "select 5"), ["6"], "the other one holds");
    c.query_drop("update query_rewrite.rewrite_rules set replacement = 'SELECT ?' where id = 1")
        .expect("a rule");
    c.query_drop(FLUSH).expect("both are right");
    assert_eq!(query_text(&mut c, messages), ["NULL", "NULL"]);
}

#[test]
fn rules_outlive_the_server() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for life in 0..2 {
        let options = Options::default().with_memory_bytes(64 << 20);
        let database = Database::open(directory.path(), options).expect("a database");
        let mut connection = database.connect().expect("a session");
        if life == 0 {
            for sql in [
                "install plugin rewriter soname 'rewriter.so'",
                "insert into query_rewrite.rewrite_rules (pattern, replacement) values ('SELECT 1', 'SELECT nothing')",
                FLUSH,
            ] {
                connection
                    .execute(sql)
                    .unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        }
        let error = connection.query("select 1").expect_err("it is rewritten");
        assert_eq!(error.code, 1054, "life {life}");
        drop(connection);
        database.close().expect("the database closes");
    }
}
