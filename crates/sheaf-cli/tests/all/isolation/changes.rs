//! What changes lock of the tables and rows that they only read.

use super::{ALL, COMMITTED, REPEATABLE, SERIALIZABLE, Scene, await_running, code_of, later, run};
use crate::harness::query_text;

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
                "alter table copies add key (value), lock = shared",
                "alter table copies drop key value",
            ],
        );
        await_running(&scene, "alter table copies add key (value), lock = shared");
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

/// Numbers that are taken from the table itself are not taken twice: one of the sessions is the victim of a deadlock.
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
