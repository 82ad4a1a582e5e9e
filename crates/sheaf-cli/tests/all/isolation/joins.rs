//! What joins lock: the keys and ranges that they look up.
//!
//! A locking join locks them as it goes. A plain join of SERIALIZABLE reads first, and locks what it has read when it
//! has come to its end.

use super::{COMMITTED, REPEATABLE, SERIALIZABLE, Scene, code_of, later, run};
use crate::harness::query_text;

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
        // The session that waits goes on when it has ended.
        let waiting = later(t2, &[kept[0]]);
        run(&mut t1, "commit");
        assert_eq!(waiting.join().expect("an answer").1, 0, "{statement}");
    }
}

/// What somebody has changed and not committed is waited for, and then the join finds what has become of it.
#[test]
fn a_join_of_serializable_begins_again_after_another_was_at_its_rows() {
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
