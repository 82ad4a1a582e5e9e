//! Statements beside changes of definitions: of the tables that they change, that they only read, and that foreign keys
//! lead to. A statement outside of a transaction waits for the change, and never fails because of it.

use std::sync::atomic::{AtomicBool, Ordering};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, wait_until};

/// Statements of each kind that have to succeed.
const STATEMENTS: usize = 40;

const TABLES: [&str; 7] = [
    "create table parent (id int primary key, value int)",
    "insert into parent values (1, 1), (2, 2)",
    "create table child (id int auto_increment primary key, parent int, \
     foreign key (parent) references parent (id) on delete cascade on update cascade)",
    "insert into child (parent) values (1), (2)",
    "create table copies (id int auto_increment primary key, parent int, child int, \
     foreign key (child) references child (id) on delete cascade)",
    "create table loose (id int auto_increment primary key, value int)",
    "insert into loose (value) values (0)",
];

fn session(server: &TestServer) -> Conn {
    let mut c = server.connect();
    c.query_drop("use definitions").expect("the database");
    c.query_drop("set innodb_lock_wait_timeout = 20")
        .expect("a variable");
    c
}

/// Runs a statement again and again while others change definitions.
fn beside(statement: &str, changes: &'static [&'static str]) -> TestServer {
    let server = TestServer::start();
    let mut c = server.connect_to_new("definitions");
    for table in TABLES {
        c.query_drop(table).expect(table);
    }
    let (is_over, has_begun) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut c = session(&server);
            while !is_over.load(Ordering::Relaxed) {
                for change in changes {
                    c.query_drop(change).expect(change);
                    has_begun.store(true, Ordering::Relaxed);
                }
            }
        });
        let mut c = session(&server);
        wait_until("the definition changes", || {
            has_begun.load(Ordering::Relaxed)
        });
        let outcome = (0..STATEMENTS).try_for_each(|_| c.query_drop(statement));
        is_over.store(true, Ordering::Relaxed);
        outcome.expect(statement);
    });
    server
}

fn count(server: &TestServer, table: &str) -> usize {
    let sql = format!("select count(*) from {table}");
    let count = session(server).query_first(&sql).expect(&sql);
    count.expect("a row")
}

const OF_PARENT: &[&str] = &[
    "alter table parent modify value bigint",
    "alter table parent add key (value)",
    "alter table parent drop key value",
    "alter table parent modify value int",
];

const OF_CHILD: &[&str] = &[
    "alter table child add added int",
    "alter table child drop added",
];

#[test]
fn a_child_is_filled_from_its_parent() {
    let server = beside(
        "insert into child (parent) select id from parent where value = 1",
        OF_PARENT,
    );
    assert_eq!(count(&server, "child"), 2 + STATEMENTS);
    let server = beside(
        "insert into child (parent) values ((select max(id) from parent))",
        OF_PARENT,
    );
    assert_eq!(count(&server, "child"), 2 + STATEMENTS);
    let server = beside(
        "replace into child (id, parent) select id, id from parent",
        OF_PARENT,
    );
    assert_eq!(count(&server, "child"), 2);
}

/// What it reads gets another definition between its view and its plan, or while it waits for a row.
#[test]
fn a_table_is_filled_from_one_that_it_does_not_refer_to() {
    for statement in [
        "insert into loose (value) select value from parent",
        "insert into loose (value) select value from parent where id < 3",
        "insert into loose (value) select p.value from parent p join parent q on p.id = q.value",
    ] {
        let server = beside(statement, OF_PARENT);
        assert_eq!(count(&server, "loose"), 1 + 2 * STATEMENTS, "{statement}");
    }
}

#[test]
fn a_parent_is_filled_from_its_child() {
    let server = beside(
        "insert into parent select max(id) + 1, 1 from (select id from parent union select parent from child) as known",
        OF_CHILD,
    );
    assert_eq!(count(&server, "parent"), 2 + STATEMENTS);
}

#[test]
fn a_grandchild_is_filled_from_all_that_its_keys_lead_to() {
    let query = "insert into copies (parent, child) select parent.id, child.id from parent join child \
                 on child.parent = parent.id";
    for changes in [OF_PARENT, OF_CHILD] {
        let server = beside(query, changes);
        assert_eq!(count(&server, "copies"), 2 * STATEMENTS);
    }
}

#[test]
fn a_locking_read_reads_tables_that_it_does_not_lock() {
    let query = "select count(*), max(parent.value) from parent join child on child.parent = parent.id for share of child";
    beside(query, OF_PARENT);
    beside(query, OF_CHILD);
    let query = "select id, (select max(value) from parent) from child for update";
    beside(query, OF_PARENT);
    let query = "select child.id, parent.value from parent join child on child.parent = parent.id \
                 for update of child skip locked";
    beside(query, OF_PARENT);
    beside(query, OF_CHILD);
}
