//! The anomalies of Berenson et al. ("A Critique of ANSI SQL Isolation Levels", 1995) and of the Hermitage suite
//! (github.com/ept/hermitage), as transcripts over SQL: what each level prevents, and what it allows.
//!
//! | anomaly | READ COMMITTED | REPEATABLE READ | SERIALIZABLE |
//! |---|---|---|---|
//! | G0, dirty writes | prevented | prevented | prevented |
//! | G1a, aborted reads | prevented | prevented | prevented |
//! | G1b, intermediate reads | prevented | prevented | prevented |
//! | G1c, circular information flow | prevented | prevented | prevented |
//! | OTV, an observed transaction vanishes | prevented | prevented | prevented |
//! | PMP, a predicate sees many states | allowed | prevented for plain reads | prevented |
//! | P4, lost updates | allowed | allowed, as in MySQL: a write works on the newest row | prevented |
//! | G-single, read skew | allowed | prevented for plain reads | prevented |
//! | G2-item, write skew | allowed | allowed | prevented |
//! | G2, anti-dependency cycles through predicates | allowed | allowed | prevented |
//!
//! Nothing here is timed. A statement that must wait runs in a thread; what it comes to in the end says that it waited.

use std::thread::JoinHandle;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, query_text};

const COMMITTED: &str = "read committed";
const REPEATABLE: &str = "repeatable read";
const SERIALIZABLE: &str = "serializable";
const ALL: [&str; 3] = [COMMITTED, REPEATABLE, SERIALIZABLE];

/// A table `test (id, value)` with the rows (1, 10) and (2, 20), and an index on the values.
struct Scene {
    server: TestServer,
}

impl Scene {
    fn new() -> Scene {
        let server = TestServer::start();
        let mut c = server.connect_to_new("scene");
        run(
            &mut c,
            "create table test (id int primary key, value int not null, key (value))",
        );
        run(&mut c, "insert into test values (1, 10), (2, 20)");
        Scene { server }
    }

    fn session(&self) -> Conn {
        let mut c = self.server.connect();
        run(&mut c, "use scene");
        c
    }

    /// A session in a transaction of this level.
    fn begin(&self, level: &str) -> Conn {
        let mut c = self.session();
        run(
            &mut c,
            &format!("set session transaction isolation level {level}"),
        );
        run(&mut c, "begin");
        c
    }

    fn committed(&self) -> Vec<(i64, i64)> {
        rows(&mut self.session(), "true")
    }
}

fn run(c: &mut Conn, sql: &str) {
    c.query_drop(sql).expect(sql);
}

/// The error of a statement; 0 if it succeeds.
fn code_of(c: &mut Conn, sql: &str) -> u16 {
    match c.query_drop(sql) {
        Ok(()) => 0,
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(error) => panic!("{sql}: {error}"),
    }
}

fn rows(c: &mut Conn, condition: &str) -> Vec<(i64, i64)> {
    let sql = format!("select id, value from test where {condition} order by id");
    c.query(&sql).expect(&sql)
}

fn value(c: &mut Conn, id: i64) -> i64 {
    rows(c, &format!("id = {id}"))[0].1
}

/// Runs statements in a thread, as far as they succeed; gives back the session and the last error code.
fn later(mut c: Conn, statements: &[&str]) -> JoinHandle<(Conn, u16)> {
    let statements: Vec<String> = statements.iter().map(ToString::to_string).collect();
    std::thread::spawn(move || {
        for sql in &statements {
            let code = code_of(&mut c, sql);
            if code != 0 {
                return (c, code);
            }
        }
        (c, 0)
    })
}

/// Two sessions of which each wants what the other has: one of them is the victim of the deadlock.
fn one_of_two_is_the_victim(first: Conn, second: Conn, statements: [&str; 2]) {
    let threads = [
        later(first, &[statements[0], "commit"]),
        later(second, &[statements[1], "commit"]),
    ];
    let mut codes = threads.map(|thread| thread.join().expect("an answer").1);
    codes.sort_unstable();
    assert_eq!(codes, [0, 1213], "{statements:?}");
}

#[test]
fn g0_writes_of_two_transactions_do_not_mix() {
    for level in ALL {
        let scene = Scene::new();
        let (mut t1, t2) = (scene.begin(level), scene.begin(level));
        run(&mut t1, "update test set value = 11 where id = 1");
        // Waits for t1.
        let t2 = later(
            t2,
            &[
                "update test set value = 12 where id = 1",
                "update test set value = 22 where id = 2",
                "commit",
            ],
        );
        run(&mut t1, "update test set value = 21 where id = 2");
        run(&mut t1, "commit");
        assert_eq!(t2.join().expect("an answer").1, 0);
        assert_eq!(scene.committed(), [(1, 12), (2, 22)], "{level}");
    }
}

#[test]
fn g1a_what_is_rolled_back_is_never_read() {
    for level in [COMMITTED, REPEATABLE] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(level), scene.begin(level));
        run(&mut t1, "update test set value = 101 where id = 1");
        assert_eq!(rows(&mut t2, "true"), [(1, 10), (2, 20)]);
        run(&mut t1, "rollback");
        assert_eq!(rows(&mut t2, "true"), [(1, 10), (2, 20)]);
    }
    // Here the read waits for t1's end.
    let scene = Scene::new();
    let mut t1 = scene.begin(SERIALIZABLE);
    run(&mut t1, "update test set value = 101 where id = 1");
    let mut t2 = scene.begin(SERIALIZABLE);
    let reader = std::thread::spawn(move || rows(&mut t2, "true"));
    run(&mut t1, "rollback");
    assert_eq!(reader.join().expect("rows"), [(1, 10), (2, 20)]);
}

#[test]
fn g1b_a_value_that_its_writer_replaces_is_never_read() {
    for (level, at_last) in [(COMMITTED, 11), (REPEATABLE, 10)] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(level), scene.begin(level));
        run(&mut t1, "update test set value = 101 where id = 1");
        assert_eq!(value(&mut t2, 1), 10);
        run(&mut t1, "update test set value = 11 where id = 1");
        run(&mut t1, "commit");
        assert_eq!(value(&mut t2, 1), at_last, "{level}");
    }
    let scene = Scene::new();
    let (mut t1, mut t2) = (scene.begin(SERIALIZABLE), scene.begin(SERIALIZABLE));
    run(&mut t1, "update test set value = 101 where id = 1");
    let reader = std::thread::spawn(move || value(&mut t2, 1));
    run(&mut t1, "update test set value = 11 where id = 1");
    run(&mut t1, "commit");
    assert_eq!(reader.join().expect("a value"), 11);
}

#[test]
fn g1c_two_transactions_do_not_read_each_others_writes() {
    for level in [COMMITTED, REPEATABLE] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(level), scene.begin(level));
        run(&mut t1, "update test set value = 11 where id = 1");
        run(&mut t2, "update test set value = 22 where id = 2");
        assert_eq!((value(&mut t1, 2), value(&mut t2, 1)), (20, 10), "{level}");
        run(&mut t1, "commit");
        run(&mut t2, "commit");
    }
    let scene = Scene::new();
    let (mut t1, mut t2) = (scene.begin(SERIALIZABLE), scene.begin(SERIALIZABLE));
    run(&mut t1, "update test set value = 11 where id = 1");
    run(&mut t2, "update test set value = 22 where id = 2");
    one_of_two_is_the_victim(
        t1,
        t2,
        [
            "select value from test where id = 2",
            "select value from test where id = 1",
        ],
    );
}

#[test]
fn otv_an_observed_transaction_does_not_vanish() {
    for (level, at_last) in [(COMMITTED, (12, 18)), (REPEATABLE, (11, 19))] {
        let scene = Scene::new();
        let (mut t1, t2) = (scene.begin(level), scene.begin(level));
        run(&mut t1, "update test set value = 11 where id = 1");
        run(&mut t1, "update test set value = 19 where id = 2");
        let t2 = later(t2, &["update test set value = 12 where id = 1"]);
        run(&mut t1, "commit");
        let (mut t2, code) = t2.join().expect("an answer");
        assert_eq!(code, 0);
        let mut t3 = scene.begin(level);
        assert_eq!(value(&mut t3, 1), 11);
        run(&mut t2, "update test set value = 18 where id = 2");
        assert_eq!(value(&mut t3, 2), 19, "{level}");
        run(&mut t2, "commit");
        assert_eq!((value(&mut t3, 1), value(&mut t3, 2)), at_last, "{level}");
    }
    // t3 comes to row 1 while t2 has changed it: it reads what t2 leaves, of both rows.
    let scene = Scene::new();
    let (mut t2, mut t3) = (scene.begin(SERIALIZABLE), scene.begin(SERIALIZABLE));
    run(&mut t2, "update test set value = 12 where id = 1");
    let reader = std::thread::spawn(move || (value(&mut t3, 1), value(&mut t3, 2)));
    run(&mut t2, "update test set value = 18 where id = 2");
    run(&mut t2, "commit");
    assert!([(12, 18)].contains(&reader.join().expect("values")));
}

#[test]
fn pmp_a_predicate_read_twice() {
    for (level, again) in [(COMMITTED, 1), (REPEATABLE, 0)] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(level), scene.begin(level));
        assert_eq!(rows(&mut t1, "value = 30"), []);
        run(&mut t2, "insert into test values (3, 30)");
        run(&mut t2, "commit");
        assert_eq!(rows(&mut t1, "value = 30").len(), again, "{level}");
    }
    let scene = Scene::new();
    let (mut t1, t2) = (scene.begin(SERIALIZABLE), scene.begin(SERIALIZABLE));
    assert_eq!(rows(&mut t1, "value = 30"), []);
    let t2 = later(t2, &["insert into test values (3, 30)", "commit"]);
    assert_eq!(rows(&mut t1, "value = 30"), []);
    run(&mut t1, "commit");
    assert_eq!(t2.join().expect("an answer").1, 0);
    assert_eq!(scene.committed(), [(1, 10), (2, 20), (3, 30)]);
}

/// The predicate of a DELETE meets an UPDATE of the rows that it is about.
#[test]
fn pmp_a_write_goes_by_what_is_committed_when_it_has_its_locks() {
    for level in ALL {
        let scene = Scene::new();
        let (mut t1, t2) = (scene.begin(level), scene.begin(level));
        run(&mut t1, "update test set value = value + 10 where id > 0");
        let t2 = later(t2, &["delete from test where value = 20", "commit"]);
        run(&mut t1, "commit");
        assert_eq!(t2.join().expect("an answer").1, 0);
        // The row that has 20 now went, not the one that had it before.
        assert_eq!(scene.committed(), [(2, 30)], "{level}");
    }
}

/// The row that a statement waits for stays as it is, and others change and come meanwhile.
#[test]
fn a_statement_that_has_waited_finds_what_was_committed_meanwhile() {
    for level in ALL {
        let scene = Scene::new();
        let mut t1 = scene.begin(COMMITTED);
        run(&mut t1, "insert into test values (3, 30)");
        run(&mut t1, "commit");
        for (statement, committed) in [
            ("delete from test where value < 15", vec![(2, 20)]),
            (
                "update test set value = value + 100 where value % 5 = 0",
                vec![(1, 110), (2, 120), (3, 12)],
            ),
            (
                "select id from test where value < 15 for update",
                vec![(1, 10), (2, 20), (3, 12)],
            ),
        ] {
            let (mut t1, mut t2) = (scene.begin(COMMITTED), scene.begin(level));
            run(&mut t1, "select * from test where id = 1 for update");
            let waiting = std::thread::spawn(move || {
                let found: Vec<i64> = t2.query(statement).expect(statement);
                let changed = t2.affected_rows();
                run(&mut t2, "commit");
                (found, changed)
            });
            await_running(&scene, statement);
            run(&mut t1, "update test set value = 12 where id = 3");
            run(&mut t1, "commit");
            let (found, changed) = waiting.join().expect("an answer");
            assert_eq!(scene.committed(), committed, "{level}: {statement}");
            match statement.starts_with("select") {
                true => assert_eq!(found, [1, 3], "{level}"),
                false => assert_eq!(changed, 2, "{level}: {statement}"),
            }
            run(&mut t1, "delete from test");
            run(&mut t1, "insert into test values (1, 10), (2, 20), (3, 30)");
            run(&mut t1, "commit");
        }
    }
}

#[test]
fn p4_an_update_that_goes_by_a_plain_read_is_lost_below_serializable() {
    for level in [COMMITTED, REPEATABLE] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(level), scene.begin(level));
        assert_eq!((value(&mut t1, 1), value(&mut t2, 1)), (10, 10));
        run(&mut t1, "update test set value = 11 where id = 1");
        let t2 = later(t2, &["update test set value = 11 where id = 1", "commit"]);
        run(&mut t1, "commit");
        assert_eq!(t2.join().expect("an answer").1, 0);
        assert_eq!(scene.committed()[0], (1, 11), "{level}");
    }
    let scene = Scene::new();
    let (mut t1, mut t2) = (scene.begin(SERIALIZABLE), scene.begin(SERIALIZABLE));
    assert_eq!((value(&mut t1, 1), value(&mut t2, 1)), (10, 10));
    let update = "update test set value = value + 1 where id = 1";
    one_of_two_is_the_victim(t1, t2, [update, update]);
    assert_eq!(scene.committed()[0], (1, 11));
}

#[test]
fn p4_no_update_is_lost_after_a_locking_read() {
    for level in ALL {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(level), scene.begin(level));
        run(&mut t1, "select * from test where id = 1 for update");
        let second = std::thread::spawn(move || {
            let found: Vec<i64> = t2
                .query("select value from test where id = 1 for update")
                .expect("a row");
            let update = format!("update test set value = {} where id = 1", found[0] + 1);
            run(&mut t2, &update);
            run(&mut t2, "commit");
        });
        run(&mut t1, "update test set value = 11 where id = 1");
        run(&mut t1, "commit");
        second.join().expect("the second one ends");
        assert_eq!(scene.committed()[0], (1, 12), "{level}");
    }
}

#[test]
fn g_single_reads_of_one_transaction_belong_together() {
    for (level, second) in [(COMMITTED, 18), (REPEATABLE, 20)] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(level), scene.begin(level));
        assert_eq!(value(&mut t1, 1), 10);
        run(&mut t2, "update test set value = 12 where id = 1");
        run(&mut t2, "update test set value = 18 where id = 2");
        run(&mut t2, "commit");
        assert_eq!(value(&mut t1, 2), second, "{level}");
    }
    let scene = Scene::new();
    let (mut t1, t2) = (scene.begin(SERIALIZABLE), scene.begin(SERIALIZABLE));
    assert_eq!(value(&mut t1, 1), 10);
    let t2 = later(
        t2,
        &[
            "update test set value = 12 where id = 1",
            "update test set value = 18 where id = 2",
            "commit",
        ],
    );
    assert_eq!(value(&mut t1, 2), 20);
    run(&mut t1, "commit");
    assert_eq!(t2.join().expect("an answer").1, 0);
}

#[test]
fn g2_item_write_skew() {
    for level in [COMMITTED, REPEATABLE] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(level), scene.begin(level));
        for session in [&mut t1, &mut t2] {
            assert_eq!(rows(session, "id in (1, 2)").len(), 2);
        }
        run(&mut t1, "update test set value = 11 where id = 1");
        run(&mut t2, "update test set value = 21 where id = 2");
        run(&mut t1, "commit");
        run(&mut t2, "commit");
        assert_eq!(scene.committed(), [(1, 11), (2, 21)], "{level}");
    }
    let scene = Scene::new();
    let (mut t1, mut t2) = (scene.begin(SERIALIZABLE), scene.begin(SERIALIZABLE));
    for session in [&mut t1, &mut t2] {
        assert_eq!(rows(session, "id in (1, 2)").len(), 2);
    }
    one_of_two_is_the_victim(
        t1,
        t2,
        [
            "update test set value = 11 where id = 1",
            "update test set value = 21 where id = 2",
        ],
    );
    assert!(
        [[(1, 11), (2, 20)], [(1, 10), (2, 21)]]
            .contains(&scene.committed()[..].try_into().expect("two rows"))
    );
}

#[test]
fn g2_cycles_through_predicates() {
    let inserts = [
        "insert into test values (3, 30)",
        "insert into test values (4, 42)",
    ];
    for level in [COMMITTED, REPEATABLE] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(level), scene.begin(level));
        for session in [&mut t1, &mut t2] {
            assert_eq!(rows(session, "value % 3 = 0"), []);
        }
        run(&mut t1, inserts[0]);
        run(&mut t2, inserts[1]);
        run(&mut t1, "commit");
        run(&mut t2, "commit");
        assert_eq!(scene.committed().len(), 4, "{level}");
    }
    // Through a full scan, and through a range of the index: one row comes, not two.
    for predicate in ["value % 3 = 0", "value between 25 and 50"] {
        let scene = Scene::new();
        let (mut t1, mut t2) = (scene.begin(SERIALIZABLE), scene.begin(SERIALIZABLE));
        for session in [&mut t1, &mut t2] {
            assert_eq!(rows(session, predicate), []);
        }
        one_of_two_is_the_victim(t1, t2, inserts);
        assert_eq!(scene.committed().len(), 3, "{predicate}");
    }
}

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

/// A keyed join locks the keys that it has looked up, also those that it has not found, and no others.
#[test]
fn a_locking_join_keeps_inserts_out_of_what_it_looked_up() {
    const HINTS: &str = "/*+ JOIN_ORDER(parent, child) BKA(child) */";
    for statement in [
        format!(
            "select {HINTS} child.id from parent join child on child.parent = parent.id \
             where parent.name <= 20 for update"
        ),
        format!(
            "select {HINTS} child.id from parent left join child on child.parent = parent.id \
             where parent.name <= 20 for share"
        ),
        format!(
            "update {HINTS} parent join child on child.parent = parent.id set child.amount = 0 \
             where parent.name <= 20"
        ),
        format!(
            "delete {HINTS} child from parent join child on child.parent = parent.id \
             where parent.name <= 20"
        ),
    ] {
        let (found, not_found) = (
            "insert into child values (11, 1, 0)",
            "insert into child values (12, 2, 0)",
        );
        for (level, insert, expected) in [
            (COMMITTED, not_found, 0),
            (REPEATABLE, not_found, 1205),
            (SERIALIZABLE, found, 1205),
        ] {
            let scene = Scene::new();
            let mut c = scene.session();
            for sql in [
                "create table parent (id int primary key, name int)",
                "create table child (id int primary key, parent int, amount int, key (parent))",
                "insert into parent values (1, 10), (2, 20), (3, 30)",
                "insert into child values (1, 1, 100), (3, 3, 300)",
            ] {
                run(&mut c, sql);
            }
            let mut t1 = scene.begin(level);
            let plan = query_text(&mut t1, &format!("explain {statement}")).join("\n");
            assert!(plan.contains("Batched Key Access"), "{plan}");
            run(&mut t1, &statement);
            let mut t2 = scene.begin(COMMITTED);
            run(&mut t2, "set innodb_lock_wait_timeout = 1");
            let code = code_of(&mut t2, insert);
            assert_eq!(code, expected, "{level}: {statement}");
            // Nobody has asked for these.
            run(&mut t2, "insert into child values (13, 3, 0), (14, 4, 0)");
            run(&mut t2, "update child set amount = 0 where id = 3");
            run(&mut t2, "rollback");
            // Its owner may insert what it has looked up, and afterwards everybody may.
            run(&mut t1, "insert into child values (15, 2, 0)");
            run(&mut t1, "commit");
            run(&mut t2, insert);
        }
    }
}

/// A join by a range for each row locks the ranges that it has searched, also where nothing is in them, and no others.
#[test]
fn a_join_by_ranges_keeps_inserts_out_of_what_it_searched() {
    const JOIN: &str = "child on child.place between parent.low and parent.high";
    const HINTS: &str = "/*+ JOIN_ORDER(parent, child) BKA(child) JOIN_INDEX(child place) */";
    for (statement, is_locking) in [
        (
            format!("select {HINTS} child.id, amount from parent join {JOIN} for update"),
            true,
        ),
        (
            format!("select {HINTS} child.id, amount from parent left join {JOIN} for share"),
            true,
        ),
        (
            format!("update {HINTS} parent join {JOIN} set child.amount = 0"),
            true,
        ),
        (
            format!("delete {HINTS} child from parent join {JOIN}"),
            true,
        ),
        (
            format!("select {HINTS} child.id, amount from parent join {JOIN}"),
            false,
        ),
    ] {
        for (level, is_kept) in [
            (COMMITTED, false),
            (REPEATABLE, is_locking),
            (SERIALIZABLE, true),
        ] {
            let scene = Scene::new();
            let mut c = scene.session();
            for sql in [
                "create table parent (id int primary key, low int, high int)",
                "create table child (id int primary key, place int, amount int, key place (place))",
                "insert into parent values (1, 10, 20), (2, 15, 25), (3, 40, 50), (4, 70, 60), (5, null, 90)",
                "insert into child values (1, 15, 100), (2, 22, 200), (3, 30, 300), (4, 80, 400), (5, null, 500)",
            ] {
                run(&mut c, sql);
            }
            let mut t1 = scene.begin(level);
            let plan = query_text(&mut t1, &format!("explain {statement}")).join("\n");
            assert!(
                plan.contains("\trange\t") && plan.contains("\tfunc\t"),
                "{plan}"
            );
            run(&mut t1, &statement);
            let mut t2 = scene.begin(COMMITTED);
            run(&mut t2, "set innodb_lock_wait_timeout = 1");
            // At both ends, inside, and where nothing is.
            for place in [10, 18, 25, 40, 45, 50] {
                let insert = format!("insert into child values ({}, {place}, 0)", 100 + place);
                let expected = if is_kept { 1205 } else { 0 };
                assert_eq!(
                    code_of(&mut t2, &insert),
                    expected,
                    "{level}: {statement}: {insert}"
                );
            }
            // Nobody has asked for these.
            run(
                &mut t2,
                "insert into child values (11, 9, 0), (12, 26, 0), (13, 51, 0), (14, 65, 0), (15, null, 0)",
            );
            run(&mut t2, "update child set amount = 0 where id in (3, 4, 5)");
            run(&mut t2, "rollback");
            run(&mut t1, "insert into child values (16, 45, 0)");
            run(&mut t1, "commit");
            run(&mut t2, "insert into child values (17, 45, 0)");
        }
    }
}

/// A plain join of SERIALIZABLE keeps the rows that it has found as they are, and the gaps that it has looked into;
/// what is far from them in the same index is free.
#[test]
fn a_join_of_serializable_keeps_what_it_looked_up() {
    const HINTS: &str = "/*+ JOIN_ORDER(parent, child) BKA(child) */";
    for (statement, found, free, kept) in [
        (
            format!(
                "select {HINTS} child.id, amount from parent join child on child.parent = parent.id \
                 where parent.name <= 20"
            ),
            &["1\t100"][..],
            ["insert into child values (13, 3, 0, ''), (14, 4, 0, '')"],
            &[
                "insert into child values (11, 1, 0, '')",
                "insert into child values (12, 2, 0, '')",
                "update child set amount = 5 where id = 1",
                "update child set note = 'x' where id = 1",
                "update child set parent = 7 where id = 1",
                "update child set parent = 2 where id = 3",
                "delete from child where id = 1",
                "update parent set name = 15 where id = 3",
            ][..],
        ),
        // Entries of the index are all that it reads.
        (
            format!(
                "select {HINTS} parent.id, child.id from parent left join child on child.parent = parent.id \
                 where parent.name <= 20"
            ),
            &["1\t1", "2\tNULL"][..],
            ["insert into child values (13, 3, 0, ''), (14, 4, 0, '')"],
            &[
                "insert into child values (12, 2, 0, '')",
                "update child set note = 'x' where id = 1",
            ][..],
        ),
        (
            format!(
                "select {HINTS} parent.id, amount from parent left join child on child.id = parent.id \
                 where parent.name <= 20"
            ),
            &["1\t100", "2\tNULL"][..],
            ["insert into child values (13, 1, 0, ''), (14, 2, 0, '')"],
            &[
                "insert into child values (2, 1, 0, '')",
                "update child set note = 'x' where id = 1",
            ][..],
        ),
    ] {
        let scene = Scene::new();
        let mut c = scene.session();
        for sql in [
            "create table parent (id int primary key, name int)",
            "create table child (id int primary key, parent int, amount int, note varchar(9), key (parent))",
            "insert into parent values (1, 10), (2, 20), (3, 30)",
            "insert into child values (1, 1, 100, ''), (3, 3, 300, '')",
        ] {
            run(&mut c, sql);
        }
        let mut t1 = scene.begin(SERIALIZABLE);
        let plan = query_text(&mut t1, &format!("explain {statement}")).join("\n");
        assert!(plan.contains("Batched Key Access"), "{plan}");
        assert_eq!(query_text(&mut t1, &statement), found);
        let mut t2 = scene.begin(COMMITTED);
        run(&mut t2, "set innodb_lock_wait_timeout = 1");
        for sql in free {
            run(&mut t2, sql);
        }
        run(&mut t2, "update child set amount = 0 where id = 3");
        for sql in kept {
            assert_eq!(code_of(&mut t2, sql), 1205, "{statement}: {sql}");
        }
        run(&mut t2, "commit");
        // It finds the same again, and may change it.
        assert_eq!(query_text(&mut t1, &statement), found);
        run(&mut t1, "update child set note = 'own' where id = 1");
        // Who waits goes on when it has ended.
        let waiting = later(t2, &[kept[0]]);
        run(&mut t1, "commit");
        assert_eq!(waiting.join().expect("an answer").1, 0, "{statement}");
    }
}

/// What somebody has changed and not committed is waited for, and then the join finds what has become of it.
#[test]
fn a_join_of_serializable_begins_again_after_who_was_at_its_rows() {
    const JOIN: &str = "select /*+ JOIN_ORDER(parent, child) BKA(child) */ child.id, amount \
                        from parent join child on child.parent = parent.id order by child.id";
    for (change, end, expected) in [
        (
            "update child set amount = 101 where id = 1",
            "commit",
            &["1\t101"][..],
        ),
        (
            "update child set amount = 101 where id = 1",
            "rollback",
            &["1\t100"],
        ),
        (
            "insert into child values (2, 2, 200)",
            "commit",
            &["1\t100", "2\t200"],
        ),
        ("delete from child", "commit", &[]),
    ] {
        let scene = Scene::new();
        let mut c = scene.session();
        for sql in [
            "create table parent (id int primary key)",
            "create table child (id int primary key, parent int, amount int, key (parent))",
            "insert into parent values (1), (2)",
            "insert into child values (1, 1, 100)",
        ] {
            run(&mut c, sql);
        }
        let (mut t1, mut t2) = (scene.begin(COMMITTED), scene.begin(SERIALIZABLE));
        run(&mut t1, change);
        let reader = std::thread::spawn(move || {
            let found = query_text(&mut t2, JOIN);
            run(&mut t2, "commit");
            found
        });
        // It may not have begun to wait yet; then it finds the same.
        std::thread::sleep(std::time::Duration::from_millis(100));
        run(&mut t1, end);
        assert_eq!(reader.join().expect("rows"), expected, "{change}, {end}");
    }
}

/// Rows that are too many to wait until the rest is locked: all that the join could have looked up is locked first.
#[test]
fn a_large_join_of_serializable_locks_whole_indexes() {
    let join = |length: usize| {
        format!(
            "select /*+ JOIN_ORDER(parent, child) BKA(child) */ child.id, repeat(child.id, {length}) \
             from parent join child on child.parent = parent.id"
        )
    };
    let scene = Scene::new();
    let mut c = scene.session();
    run(&mut c, "create table parent (id int primary key)");
    run(
        &mut c,
        "create table child (id int primary key, parent int, key (parent))",
    );
    run(&mut c, "insert into parent values (1)");
    let rows: Vec<_> = (1..=200).map(|id| format!("({id}, 1)")).collect();
    run(
        &mut c,
        &format!("insert into child values {}", rows.join(",")),
    );
    for (length, code) in [(1_000, 0), (50_000, 1205)] {
        let mut t1 = scene.begin(SERIALIZABLE);
        assert_eq!(query_text(&mut t1, &join(length)).len(), 200);
        let mut t2 = scene.begin(COMMITTED);
        run(&mut t2, "set innodb_lock_wait_timeout = 1");
        assert_eq!(
            code_of(&mut t2, "insert into child values (1000, 7)"),
            code,
            "{length}"
        );
        assert_eq!(code_of(&mut t2, "insert into child values (1001, 1)"), 1205);
        run(&mut t1, "set sql_select_limit = 2");
        assert_eq!(query_text(&mut t1, &join(1)).len(), 2);
    }
}

/// Jobs taken off a queue by a join that ends at a LIMIT: what is locked is what it has looked up, not the whole index.
#[test]
fn a_locking_join_that_ends_at_a_limit_locks_what_it_has_looked_up() {
    let scene = Scene::new();
    let mut c = scene.session();
    for sql in [
        "create table customer (id int primary key, name varchar(20))",
        "create table job (id int primary key, customer int, done int, key (customer))",
    ] {
        run(&mut c, sql);
    }
    for first in (1..2000).step_by(500) {
        let ids = first..first + 500;
        let customers: Vec<_> = ids.clone().map(|id| format!("({id}, 'c{id}')")).collect();
        let jobs: Vec<_> = ids.map(|id| format!("({id}, {id}, 0)")).collect();
        run(
            &mut c,
            &format!("insert into customer values {}", customers.join(",")),
        );
        run(
            &mut c,
            &format!("insert into job values {}", jobs.join(",")),
        );
    }
    run(&mut c, "analyze table customer, job");
    let next = "select job.id, customer.name from job join customer on customer.id = job.customer \
                where customer.name like 'c%' order by job.id limit 1";
    for (switch, is_guarded, level, lock) in [
        ("on", true, REPEATABLE, " for update"),
        ("off", false, REPEATABLE, " for update"),
        ("on", true, SERIALIZABLE, ""),
        ("off", false, SERIALIZABLE, ""),
    ] {
        let next = &format!("{next}{lock}");
        let mut t1 = scene.begin(level);
        run(
            &mut t1,
            &format!("set optimizer_switch = 'bounded_regret={switch}'"),
        );
        let plan = query_text(&mut t1, &format!("explain {next}")).join("\n");
        assert!(plan.contains("Batched Key Access"), "{plan}");
        assert_eq!(plan.contains("May switch to"), is_guarded, "{plan}");
        assert_eq!(query_text(&mut t1, next), ["1\tc1"]);
        let mut t2 = scene.begin(COMMITTED);
        run(&mut t2, "set innodb_lock_wait_timeout = 1");
        assert_eq!(
            code_of(&mut t2, "update customer set name = 'x' where id = 1"),
            1205
        );
        run(&mut t2, "update customer set name = 'x' where id = 1900");
        run(&mut t2, "insert into customer values (3000, 'x')");
        run(&mut t2, "rollback");
    }
}

/// Far more rows of the first table match than expected, because all of its columns say the same: most items are not
/// looked up but found in memory. What is locked is what a join that looks all of them up locks.
#[test]
fn a_locking_join_that_gives_its_lookups_up_locks_the_same() {
    let scene = Scene::new();
    let mut c = scene.session();
    for sql in [
        "create table mark (id int primary key, item int, a int, b int, c int, d int)",
        "create table item (id int primary key, name varchar(20))",
    ] {
        run(&mut c, sql);
    }
    for first in (0..20_000).step_by(1_000) {
        let marks: Vec<_> = (first..first + 1_000)
            .map(|id| {
                let same = id % 5;
                format!("({id}, {}, {same}, {same}, {same}, {same})", id % 2_000)
            })
            .collect();
        run(
            &mut c,
            &format!("insert into mark values {}", marks.join(",")),
        );
    }
    for first in (0..3_000).step_by(1_000) {
        let items: Vec<_> = (first..first + 1_000)
            .map(|id| format!("({id}, 'item {id}')"))
            .collect();
        run(
            &mut c,
            &format!("insert into item values {}", items.join(",")),
        );
    }
    run(&mut c, "analyze table mark, item");
    let locking = "select count(*), max(item.name) from mark join item on item.id = mark.item \
                   where a = 2 and b = 2 and c = 2 and d = 2 for update";
    for switch in ["on", "off"] {
        let mut t1 = scene.begin(REPEATABLE);
        run(
            &mut t1,
            &format!("set optimizer_switch = 'bounded_regret={switch}'"),
        );
        let plan = query_text(&mut t1, &format!("explain {locking}")).join("\n");
        assert!(plan.contains("Batched Key Access"), "{plan}");
        assert_eq!(plan.contains("May switch to hash join"), switch == "on");
        run(&mut t1, "flush status");
        assert_eq!(query_text(&mut t1, locking), ["4000\titem 997"]);
        let switched = query_text(&mut t1, "show session status like 'Sheaf_plan_switches'");
        let is_off = switched == ["Sheaf_plan_switches\t0"];
        assert_eq!(is_off, switch == "off", "{switched:?}");
        let mut t2 = scene.begin(COMMITTED);
        run(&mut t2, "set innodb_lock_wait_timeout = 1");
        for (change, code) in [
            // Looked up first, found in memory later, and in no join.
            ("update item set name = 'x' where id = 2", 1205),
            ("update item set name = 'x' where id = 1997", 1205),
            ("update item set name = 'x' where id = 1998", 0),
            ("update item set name = 'x' where id = 2997", 0),
            ("insert into item values (4000, 'x')", 0),
        ] {
            assert_eq!(code_of(&mut t2, change), code, "{switch}: {change}");
        }
        run(&mut t2, "rollback");
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

/// What makes a change fail is something that the transaction has read: in SERIALIZABLE it stays as it is.
#[test]
fn what_a_serializable_change_fails_because_of_stays() {
    for (statement, code, other) in [
        (
            "insert into parent values (1, 5)",
            1062,
            "delete from parent where id = 1",
        ),
        (
            "insert into parent values (9, 10)",
            1062,
            "update parent set n = 11 where id = 1",
        ),
        (
            "update parent set n = 10 where id = 2",
            1062,
            "delete from parent where id = 1",
        ),
        (
            "insert ignore into parent values (1, 5)",
            0,
            "delete from parent where id = 1",
        ),
        (
            "insert into child values (2, 7)",
            1452,
            "insert into parent values (7, 70)",
        ),
        (
            "update child set parent = 7 where id = 1",
            1452,
            "insert into parent values (7, 70)",
        ),
        (
            "delete from parent where id = 2",
            1451,
            "delete from child where id = 1",
        ),
        (
            "update parent set id = 8 where id = 2",
            1451,
            "update child set parent = null",
        ),
    ] {
        for (level, expected) in [(SERIALIZABLE, 1205), (REPEATABLE, 0)] {
            let scene = Scene::new();
            let mut c = scene.session();
            run(
                &mut c,
                "create table parent (id int primary key, n int, unique key (n))",
            );
            run(
                &mut c,
                "create table child (id int primary key, parent int, \
                 foreign key (parent) references parent (id))",
            );
            run(&mut c, "insert into parent values (1, 10), (2, 20)");
            run(&mut c, "insert into child values (1, 2)");
            let mut t1 = scene.begin(level);
            assert_eq!(code_of(&mut t1, statement), code, "{statement}");
            let mut t2 = scene.begin(COMMITTED);
            run(&mut t2, "set innodb_lock_wait_timeout = 1");
            assert_eq!(code_of(&mut t2, other), expected, "{level}: {statement}");
            if level == SERIALIZABLE {
                assert_eq!(code_of(&mut t1, statement), code, "{statement}");
            }
            run(&mut t1, "commit");
        }
    }
}

/// Returns when a session runs the statement, a little later, so that it will mostly wait for a row by then.
fn await_running(scene: &Scene, statement: &str) {
    let running = "select info from information_schema.processlist where command = 'Query'";
    let mut c = scene.session();
    while !query_text(&mut c, running).contains(&statement.to_string()) {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(50));
}

/// What a change reads of other tables stays as it is until the transaction ends, as in MySQL.
#[test]
fn what_a_change_only_reads_is_locked_from_repeatable_read_on() {
    let scene = Scene::new();
    let mut admin = scene.session();
    run(
        &mut admin,
        "create table log (id int primary key, value int, key (value))",
    );
    run(&mut admin, "insert into log values (1, 10), (9, 90)");
    let changes = [
        "insert into log select id + 100, value from test where id = 1",
        "insert into log select t.id + 100, l.value from log l join test t on t.value = l.value where l.id = 1",
        "insert into log select id + 100, value from test where value in (10, 11)",
        "insert into log values (200, (select value from test where id = 1))",
        "insert into log (id) select 200 from (select id from test where id = 1) d",
        "replace into log select id + 100, value from test where id = 1",
        "insert into log values (1, 5) on duplicate key update value = (select value from test where id = 1)",
        "update log set value = (select value + 1 from test where id = 1) where id = 9",
        "update log l join test t on t.value = l.value set l.value = 11",
        "update log set value = 11 where id in (select id from test where id = 1)",
        "delete from log where value = (select value from test where id = 1)",
        "delete l from log l join test t on t.value = l.value",
    ];
    for level in ALL {
        let locks = level != COMMITTED;
        for change in changes {
            let mut one = scene.begin(level);
            let mut two = scene.session();
            run(&mut two, "set innodb_lock_wait_timeout = 1");
            run(&mut two, "begin");
            run(&mut one, change);
            // What reads only entries of an index locks these and no rows.
            let reads_entries = ["t.value = l.value", "value in (10, 11)"];
            let reads_entries = reads_entries.iter().any(|reads| change.contains(reads));
            let (sql, refused) = match reads_entries {
                true => ("update test set value = 12 where id = 1", 1205),
                false => ("select id from test where id = 1 for update nowait", 3572),
            };
            let expected = if locks { refused } else { 0 };
            assert_eq!(code_of(&mut two, sql), expected, "{level}: {change}");
            if !locks {
                run(&mut two, "rollback");
                run(&mut two, "begin");
            }
            // They are shared.
            let shared = "select id from test where id = 1 for share nowait";
            assert_eq!(code_of(&mut two, shared), 0, "{level}: {change}");
            run(&mut two, "rollback");
            run(&mut one, "rollback");
        }
    }
    assert_eq!(scene.committed(), [(1, 10), (2, 20)]);
}

/// A statement that is a transaction of its own waits for what others have changed in what it reads, too.
#[test]
fn a_change_of_its_own_locks_what_it_reads() {
    let scene = Scene::new();
    let mut admin = scene.session();
    run(
        &mut admin,
        "create table log (id int primary key, value int)",
    );
    run(&mut admin, "insert into log values (900, 1)");
    let changes = [
        "insert into log select id + 100, value from test where id = 1",
        "insert into log select 200, count(*) from test",
        "insert into log values (300, (select value from test where id = 1))",
        "insert into log set id = 400, value = (select min(value) from test)",
        "replace into log select id + 500, value from test where value < 1000",
        "update log set value = (select value from test where id = 1) where id = 900",
        "update log l join test t on t.id = 1 set l.value = t.value where l.id = 900",
        "update log set value = 7 where id in (select value from test)",
        "delete l from log l join test t on t.id = 1 where t.value = 999 and l.id = 900",
        "delete from log where id = (select max(value) + min(value) from test)",
    ];
    for level in ALL {
        for (change, way) in changes.iter().zip(["on", "off"].iter().cycle()) {
            let mut one = scene.session();
            let mut two = scene.session();
            for sql in [
                &format!("set session transaction isolation level {level}"),
                &format!("set optimizer_switch = 'direct={way}'"),
                "set innodb_lock_wait_timeout = 1",
            ] {
                run(&mut one, sql);
            }
            run(&mut two, "begin");
            run(&mut two, "update test set value = value + 1 where id = 1");
            let expected = if level == COMMITTED { 0 } else { 1205 };
            assert_eq!(code_of(&mut one, change), expected, "{level}: {change}");
            run(&mut two, "rollback");
            run(&mut one, "delete from log where id < 900");
            run(&mut one, change);
            // Nothing is left of it.
            run(&mut two, "select * from test for update nowait");
            run(&mut two, "select * from log for update nowait");
            run(&mut one, "delete from log where id < 900");
        }
    }
}

/// A load of an empty table keeps all others from it. It does not wait for rows that it reads: their transactions may
/// wait for it, and nothing would tell that it is a deadlock.
#[test]
fn a_load_locks_nothing_that_it_reads() {
    let scene = Scene::new();
    let mut admin = scene.session();
    for level in ALL {
        for way in ["on", "off"] {
            for sql in [
                "drop table if exists copies",
                "create table copies (id int primary key, value int)",
            ] {
                run(&mut admin, sql);
            }
            let mut one = scene.session();
            for sql in [
                &format!("set session transaction isolation level {level}"),
                &format!("set optimizer_switch = 'direct={way}'"),
                "set innodb_lock_wait_timeout = 1",
            ] {
                run(&mut one, sql);
            }
            let mut two = scene.begin(REPEATABLE);
            run(&mut two, "update test set value = value + 1");
            // It is no load in SERIALIZABLE, nor where rows are looked at one by one.
            let is_load = level != SERIALIZABLE && way == "off";
            let waits = level != COMMITTED && !is_load;
            let expected = if waits { 1205 } else { 0 };
            let load = "insert into copies select id, value + 0 from test where value > 0";
            assert_eq!(code_of(&mut one, load), expected, "{level}, {way}");
            run(&mut two, "insert into copies values (3, 30)");
            run(&mut two, "rollback");
            let count = query_text(&mut one, "select count(*) from copies");
            let loaded = if waits { "0" } else { "2" };
            assert_eq!(count, [loaded], "{level}");
        }
    }
}

/// The statement's own guard of what it has read is not in the way of its load.
#[test]
fn a_table_is_loaded_from_itself() {
    let scene = Scene::new();
    let mut c = scene.session();
    run(&mut c, "set innodb_lock_wait_timeout = 1");
    for query in [
        "select * from copies for update",
        "select id, (select count(*) from copies) from test for update",
        "select id, value from test where not exists (select 1 from copies) for update",
        "select id, (select count(*) from copies) from test",
    ] {
        for level in ALL {
            for sql in [
                "drop table if exists copies",
                "create table copies (id int primary key, value int)",
                &format!("set session transaction isolation level {level}"),
                &format!("insert into copies {query}"),
                "drop table copies",
            ] {
                run(&mut c, sql);
            }
        }
    }
}

/// A change opens the table that it changes before it locks what it reads: others may wait for that.
#[test]
fn a_change_waits_for_its_table_before_it_locks_what_it_reads() {
    let scene = Scene::new();
    let mut admin = scene.session();
    for sql in [
        "create table copies (id int auto_increment primary key, value int)",
        "insert into copies values (100, 1)",
    ] {
        run(&mut admin, sql);
    }
    for source in ["where id = 1", "where value + 0 = 10"] {
        let mut reader = scene.begin(REPEATABLE);
        query_text(&mut reader, "select * from copies");
        let altering = later(
            scene.session(),
            &[
                "alter table copies add key (value)",
                "alter table copies drop key value",
            ],
        );
        await_running(&scene, "alter table copies add key (value)");
        let insert = format!("insert into copies (value) select value from test {source}");
        let inserting = later(scene.session(), &[&insert]);
        await_running(&scene, &insert);
        run(&mut reader, "set innodb_lock_wait_timeout = 5");
        run(&mut reader, "update test set value = 10 where id = 1");
        run(&mut reader, "commit");
        assert_eq!(altering.join().expect("an answer").1, 0);
        assert_eq!(inserting.join().expect("an answer").1, 0, "{source}");
    }
}

/// Numbers that are taken from the table itself are not taken twice: who is refused is the victim of a deadlock.
#[test]
fn numbers_that_a_change_reads_are_not_taken_twice() {
    let scene = Scene::new();
    run(
        &mut scene.session(),
        "create table log (id int primary key)",
    );
    run(&mut scene.session(), "insert into log values (0)");
    let inserted: u64 = std::thread::scope(|scope| {
        let clients = [0; 4].map(|_| {
            let mut c = scene.session();
            scope.spawn(move || {
                let codes =
                    (0..30).map(|_| code_of(&mut c, "insert into log select max(id) + 1 from log"));
                let codes: Vec<u16> = codes.collect();
                assert!(
                    codes.iter().all(|code| [0, 1213].contains(code)),
                    "{codes:?}"
                );
                codes.iter().filter(|code| **code == 0).count() as u64
            })
        });
        clients
            .map(|client| client.join().expect("no panic"))
            .iter()
            .sum()
    });
    let last = query_text(&mut scene.session(), "select max(id) from log");
    assert_eq!(last, [inserted.to_string()]);
}

/// A read that stops early has locked what it has read, and the gap before it, and no more.
#[test]
fn what_a_change_reads_is_locked_as_far_as_it_has_read() {
    let scene = Scene::new();
    let mut admin = scene.session();
    for sql in [
        "create table log (id int primary key, value int, key (value))",
        "insert into log values (1, 10), (9, 90)",
        "create table big (id int primary key, value int, filler varchar(100), key (value))",
        "insert into big with recursive n (n) as (select 10 union all select n + 10 from n where n < 4000) \
         select n, 5000 - n, repeat('x', 100) from n",
        "analyze table big",
    ] {
        run(&mut admin, sql);
    }
    // What is read first, what is inserted before it, and whether the row is read with its index's entry.
    let (first, last) = ((10, 5, true), (4000, 4005, true));
    let (first_entry, last_entry) = ((10, 5, false), (4000, 4005, false));
    let changes = [
        (
            "insert into log (id) select id + 9000 from big order by id limit 1",
            first,
        ),
        (
            "insert into log (id) select id + 9000 from big order by id desc limit 1",
            last,
        ),
        (
            "insert into log (id) select 9000 + (select max(id) from big)",
            last,
        ),
        ("insert into log (id) select max(id) + 1 from big", last),
        (
            "insert into log values (9000, (select min(id) from big))",
            first,
        ),
        (
            "insert into log values (9000, (select id from big order by value limit 1))",
            last_entry,
        ),
        (
            "insert into log (id) select id + 9000 from big where value > 4000 order by value desc limit 1",
            first_entry,
        ),
        (
            "replace into log (id) select id + 9000 from big order by id limit 1",
            first,
        ),
        (
            "update log set value = (select min(id) from big) where id = 9",
            first,
        ),
        (
            "update log l join (select id from big order by id limit 1) d set l.value = d.id where l.id = 9",
            first,
        ),
        (
            "delete from log where value = (select max(id) from big)",
            last,
        ),
    ];
    for way in ["on", "off"] {
        for (change, (read, inserted, locks_row)) in changes {
            let mut one = scene.begin(REPEATABLE);
            run(&mut one, &format!("set optimizer_switch = 'direct={way}'"));
            let mut two = scene.session();
            run(&mut two, "set innodb_lock_wait_timeout = 1");
            run(&mut two, "begin");
            run(&mut one, change);
            let expected = if locks_row { 3572 } else { 0 };
            for (id, expected) in [(read, expected), (2000, 0)] {
                let sql = format!("select id from big where id = {id} for update nowait");
                assert_eq!(code_of(&mut two, &sql), expected, "{way}: {change}: {sql}");
            }
            run(&mut two, "insert into big (id, value) values (2005, 2995)");
            if way == "on" {
                let value = 5000 - inserted;
                let sql = format!("insert into big (id, value) values ({inserted}, {value})");
                assert_eq!(code_of(&mut two, &sql), 1205, "{change}: {sql}");
            }
            run(&mut two, "rollback");
            run(&mut one, "rollback");
        }
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
