//! What reads of one table lock: FOR UPDATE, FOR SHARE, and plain reads of SERIALIZABLE.
//!
//! Rows that were searched stay as they are, and nothing is inserted between them. In READ COMMITTED, rows that do not
//! match are unlocked again.

use super::{COMMITTED, REPEATABLE, SERIALIZABLE, Scene, code_of, later, rows, run, value};

/// READ ONLY is serializable by its snapshot: it waits for nobody, and nobody for it.
#[test]
fn a_serializable_transaction_that_only_reads_locks_nothing() {
    let scene = Scene::new();
    let mut t1 = scene.begin(SERIALIZABLE);
    assert_eq!(value(&mut t1, 2), 20);
    run(&mut t1, "update test set value = 0 where id = 1");
    let mut t3 = scene.session();
    run(
        &mut t3,
        "set session transaction isolation level serializable",
    );
    run(&mut t3, "start transaction read only");
    assert_eq!(rows(&mut t3, "true"), [(1, 10), (2, 20)]);
    run(&mut t1, "update test set value = 25 where id = 2");
    run(&mut t1, "commit");
    assert_eq!(rows(&mut t3, "true"), [(1, 10), (2, 20)]);
    assert_eq!(code_of(&mut t3, "delete from test"), 1792);
    run(&mut t3, "commit");
    assert_eq!(scene.committed(), [(1, 0), (2, 25)]);
}

/// Next-key locks: what a locking read has searched stays without new rows, and no other place does.
#[test]
fn a_locking_read_keeps_inserts_out_of_what_it_searched() {
    for search in [
        "select * from test where id between 5 and 9 for update",
        "select * from test force index (value) where value between 50 and 90 for share",
        "update test set value = 0 where id between 5 and 9",
        "delete from test where id between 5 and 9",
    ] {
        let scene = Scene::new();
        let mut t1 = scene.begin(REPEATABLE);
        run(&mut t1, search);
        let mut t2 = scene.begin(REPEATABLE);
        run(&mut t2, "set innodb_lock_wait_timeout = 1");
        assert_eq!(code_of(&mut t2, "insert into test values (7, 70)"), 1205);
        // Outside of the range, at its owner's, and at READ COMMITTED it is free.
        run(&mut t2, "insert into test values (3, 30)");
        run(&mut t1, "insert into test values (8, 80)");
        run(&mut t1, "commit");
        run(&mut t2, "insert into test values (7, 70)");
        run(&mut t2, "commit");
        let mut t3 = scene.begin(COMMITTED);
        run(
            &mut t3,
            "select * from test where id between 15 and 19 for update",
        );
        run(&mut scene.session(), "insert into test values (17, 170)");
    }
}

/// READ COMMITTED keeps no lock of a row that did not match once it was locked; REPEATABLE READ keeps it.
#[test]
fn read_committed_gives_rows_back_that_do_not_match() {
    let scene = Scene::new();
    let (mut t1, t2) = (scene.begin(COMMITTED), scene.begin(COMMITTED));
    run(&mut t1, "update test set value = 11 where id = 1");
    let t2 = later(t2, &["delete from test where id = 1 and value = 10"]);
    run(&mut t1, "commit");
    let (mut t2, code) = t2.join().expect("an answer");
    assert_eq!((code, t2.affected_rows()), (0, 0));
    let mut t3 = scene.session();
    run(&mut t3, "set innodb_lock_wait_timeout = 1");
    run(&mut t3, "update test set value = 13 where id = 1");
    run(&mut t2, "commit");
    assert_eq!(scene.committed()[0], (1, 13));
}

/// REPEATABLE READ keeps what a locking read, or a change, has read as it is, also rows that do not match: nobody makes
/// them match meanwhile. READ COMMITTED does not.
#[test]
fn rows_that_were_read_and_do_not_match_stay_as_they_are() {
    for (statement, change) in [
        (
            "select * from rest where id between 1 and 9 and flag = 1 for update",
            1205,
        ),
        (
            "select * from rest where id between 1 and 9 and flag = 1 for share",
            1205,
        ),
        (
            "select * from rest force index (n) where n between 1 and 9 and flag = 1 for update",
            1205,
        ),
        (
            "select count(*) from rest force index (n) where n between 1 and 9 and flag = 1 for share",
            1205,
        ),
        (
            "update rest set n = n + 10 where id between 1 and 9 and flag = 1",
            1205,
        ),
        (
            "delete from rest where id between 1 and 9 and flag = 1",
            1205,
        ),
        // All that was read was found.
        ("select * from rest where id in (1, 3) for update", 0),
        // The search ended before it came to the row.
        (
            "select * from rest where id between 1 and 9 and flag = 1 order by id limit 1 for update",
            0,
        ),
        (
            "select * from rest force index (n) where n between 1 and 9 and flag = 1 \
             order by n limit 1 for update",
            0,
        ),
        (
            "select * from rest where id between 1 and 3 and flag = 1 order by id desc limit 1 for update",
            0,
        ),
    ] {
        for (level, expected) in [(REPEATABLE, change), (COMMITTED, 0)] {
            let scene = Scene::new();
            let mut c = scene.session();
            run(
                &mut c,
                "create table rest (id int primary key, n int, flag int, key (n))",
            );
            run(
                &mut c,
                "insert into rest values (1, 1, 1), (2, 2, 0), (3, 3, 1), (20, 20, 0)",
            );
            let mut t1 = scene.begin(level);
            run(&mut t1, statement);
            let mut t2 = scene.begin(COMMITTED);
            run(&mut t2, "set innodb_lock_wait_timeout = 1");
            let change = "update rest set flag = 1 where id = 2";
            assert_eq!(code_of(&mut t2, change), expected, "{level}: {statement}");
            run(&mut t2, "update rest set flag = 1 where id = 20");
            run(&mut t2, "rollback");
            run(&mut t1, "commit");
            run(&mut t2, change);
        }
    }
}

/// FOR UPDATE is about the tables of its own FROM. What a derived table or a common table expression reads stays free,
/// as in MySQL and MariaDB.
#[test]
fn for_update_does_not_lock_inside_of_queries_in_its_from() {
    for statement in [
        "select * from (select * from test where id = 1) d for update",
        "select * from (select * from test where id < 2) d for share",
        "with c as (select * from test force index (value) where value = 10) select * from c for update",
    ] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(REPEATABLE), scene.begin(COMMITTED));
        run(&mut t1, statement);
        run(&mut t2, "select * from test where id = 1 for update nowait");
    }
    for statement in [
        "select * from (select * from test where id = 1 for update) d",
        "select * from (select * from test where id < 2 for update) d",
    ] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(REPEATABLE), scene.begin(COMMITTED));
        run(&mut t1, statement);
        let other = "select * from test where id = 1 for update nowait";
        assert_eq!(code_of(&mut t2, other), 3572, "{statement}");
    }
}

/// FOR UPDATE locks what it searches against others' FOR UPDATE and FOR SHARE, also behind a union. A transaction that
/// reads a range to keep it as it is waits for one that has locked a row of it.
#[test]
fn for_update_excludes_others_whatever_it_reads() {
    for statement in [
        "select * from test where id = 1 union all select * from test where id = 1 for update",
        "select * from test where id = 1 for update",
        "select * from (select * from test where id = 1 for update) d",
        "select (select value from test where id = 1 for update)",
        "with d as (select * from test where id = 1 for update) select * from d",
        "select * from (with c as (select 1 as one) select test.* from c join test on test.id = c.one where test.id = 1 for update) d",
        "select * from (with c as (select 1 as one) select test.* from c join test on test.id = 1 for update of test) d",
        "with test as (select * from test where id = 1 for update) select * from test",
        "with c as (select 1 as one) select test.* from c join test on test.id = 1 for update of test",
        "select * from (select * from test where id = 1 union select * from test where id = 1 for update) d",
    ] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(REPEATABLE), scene.begin(SERIALIZABLE));
        run(&mut t1, statement);
        run(&mut t2, "set innodb_lock_wait_timeout = 1");
        for (other, code) in [
            ("select * from test where id = 1 for update nowait", 3572),
            ("select * from test where id = 1 for share nowait", 3572),
            ("select * from test where id < 2 for share nowait", 3572),
            ("select * from test where id < 2", 1205),
        ] {
            assert_eq!(code_of(&mut t2, other), code, "{statement}; {other}");
        }
        run(&mut t2, "select * from test where id = 2 for update");
        run(&mut t1, "update test set value = 11 where id = 1");
        run(&mut t1, "commit");
        run(&mut t2, "select * from test where id < 2");
    }
}

/// The part of a common table expression that names it locks what it reads, round by round.
#[test]
fn for_update_of_a_recursive_part_excludes_others() {
    for clause in ["for update", "for update of test", "for update nowait"] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(REPEATABLE), scene.begin(COMMITTED));
        let statement = format!(
            "with recursive r as (select 0 as n union all select n + 1 from r join test on test.id = r.n + 1 \
             where n < 1 {clause}) select * from r"
        );
        run(&mut t1, &statement);
        let other = "select * from test where id = 1 for update nowait";
        assert_eq!(code_of(&mut t2, other), 3572, "{statement}");
    }
}

/// Of a common table expression nothing is locked for changes, whatever it is called. What the statement reads besides
/// is kept as it is.
#[test]
fn for_update_of_a_common_table_locks_nothing() {
    for statement in [
        "with test as (select * from test where id = 1) select exists (select 1 from test where id = 1 for update of test)",
        "with c as (select 1 as one) select test.* from c join test on test.id = c.one for update of c",
        "with c as (select 1 as one) select test.* from c d join test on test.id = d.one for update of d",
    ] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(REPEATABLE), scene.begin(COMMITTED));
        run(&mut t1, statement);
        run(&mut t2, "select * from test for share nowait");
    }
}

/// Rows that a locking read finds are locked, and what its subqueries read is not.
#[test]
fn a_locking_read_leaves_what_its_subqueries_read_below_serializable() {
    let scene = Scene::new();
    run(
        &mut scene.session(),
        "create table other (id int primary key)",
    );
    run(&mut scene.session(), "insert into other values (1), (2)");
    let mut one = scene.begin(REPEATABLE);
    run(
        &mut one,
        "select * from test where id in (select id from other where id = 1) for update",
    );
    let mut two = scene.session();
    run(&mut two, "begin");
    run(&mut two, "select * from other for update nowait");
    assert_eq!(
        code_of(&mut two, "select * from test where id = 1 for share nowait"),
        3572
    );
}
