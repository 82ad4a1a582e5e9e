//! Foreign keys between transactions: children come side by side, and none is ever without its parent.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::TestServer;
use crate::transactions::{Random, error_of, run};

/// Parents 1 and 2 and no children, in two sessions.
fn family(server: &TestServer, database: &str, action: &str) -> (Conn, Conn) {
    let mut one = server.connect_to_new(database);
    run(
        &mut one,
        "create table parent (id int primary key, name varchar(20))",
    );
    run(
        &mut one,
        &format!(
            "create table child (id int primary key, parent int,
             foreign key (parent) references parent (id) {action})"
        ),
    );
    run(&mut one, "insert into parent values (1, 'a'), (2, 'b')");
    let mut two = server.connect();
    run(&mut two, &format!("use {database}"));
    (one, two)
}

#[test]
fn children_of_one_parent_come_side_by_side() {
    let server = TestServer::start();
    let (mut one, mut two) = family(&server, "siblings", "");
    run(&mut two, "set innodb_lock_wait_timeout = 1");
    run(&mut one, "begin");
    run(&mut two, "begin");
    run(&mut one, "insert into child values (1, 1)");
    run(&mut two, "insert into child values (2, 1)");
    // What is no key of the parent may change meanwhile, and does not keep children out.
    run(&mut one, "update parent set name = 'c' where id = 1");
    run(&mut two, "insert into child values (3, 1)");
    // The parent itself cannot go: first it is unknown whether it has children, then it has.
    assert_eq!(error_of(&mut two, "delete from parent where id = 1"), 1205);
    run(&mut one, "commit");
    assert_eq!(error_of(&mut two, "delete from parent where id = 1"), 1451);
    run(&mut two, "delete from parent where id = 2");
    // Nor can a child come to a parent of which it is unknown whether it stays.
    let late = std::thread::spawn(move || {
        run(&mut one, "insert into child values (4, 2)");
    });
    run(&mut two, "rollback");
    late.join().expect("the parent has stayed");
    run(&mut two, "begin");
    run(&mut two, "delete from child where id = 4");
    run(&mut two, "delete from parent where id = 2");
    let mut one = server.connect();
    run(&mut one, "use siblings");
    let late = std::thread::spawn(move || error_of(&mut one, "insert into child values (5, 2)"));
    run(&mut two, "commit");
    assert_eq!(late.join().expect("an answer"), 1452);
}

/// Random changes of parents and children in several sessions: no child is without its parent afterwards.
#[test]
fn random_families_stay_together() {
    const SESSIONS: u64 = 4;
    const TRANSACTIONS: u64 = 80;
    let actions = [
        "",
        "on delete cascade on update cascade",
        "on delete set null on update cascade",
    ];
    for (seed, action) in actions.into_iter().enumerate() {
        let server = TestServer::start();
        let (mut admin, _) = family(&server, "families", action);
        std::thread::scope(|scope| {
            for session in 0..SESSIONS {
                let server = &server;
                scope.spawn(move || {
                    let mut c = server.connect();
                    run(&mut c, "use families");
                    let mut random = Random(100 * seed as u64 + session);
                    for _ in 0..TRANSACTIONS {
                        run(&mut c, "begin");
                        let steps = 1 + random.below(3);
                        let outcome = (0..steps).try_for_each(|_| {
                            let (parent, other, child) =
                                (random.below(5), random.below(5), random.below(20));
                            let sql = match random.below(6) {
                                0 => format!("insert ignore into parent values ({parent}, 'x')"),
                                1 => format!("delete from parent where id = {parent}"),
                                2 => format!("update parent set id = {other} where id = {parent}"),
                                3 => {
                                    format!("update child set parent = {parent} where id = {child}")
                                }
                                4 => format!("delete from child where id = {child}"),
                                _ => format!("insert into child values ({child}, {parent})"),
                            };
                            match c.query_drop(&sql) {
                                // The statement alone has failed.
                                Err(mysql::Error::MySqlError(error))
                                    if [1062, 1451, 1452].contains(&error.code) =>
                                {
                                    Ok(())
                                }
                                outcome => outcome,
                            }
                        });
                        match outcome {
                            Ok(()) if random.below(4) > 0 => run(&mut c, "commit"),
                            Ok(()) => run(&mut c, "rollback"),
                            Err(mysql::Error::MySqlError(error)) => {
                                assert_eq!(error.code, 1213, "{error}");
                                run(&mut c, "rollback");
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        let orphans: Vec<(i64, i64)> = admin
            .query(
                "select child.id, child.parent from child left join parent on parent.id = child.parent
                 where child.parent is not null and parent.id is null",
            )
            .expect("orphans");
        assert_eq!(orphans, [], "{action}");
        for table in ["parent", "child"] {
            let checked: Vec<(String, String, String, String)> = admin
                .query(format!("check table {table}"))
                .expect("a check");
            assert_eq!(checked[0].3, "OK");
        }
    }
}
