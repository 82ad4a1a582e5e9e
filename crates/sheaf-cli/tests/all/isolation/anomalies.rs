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

use mysql::prelude::Queryable;

use super::{
    ALL, COMMITTED, REPEATABLE, SERIALIZABLE, Scene, await_running, later,
    one_of_two_is_the_victim, rows, run, value,
};

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
