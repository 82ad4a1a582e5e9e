//! Indexes and foreign keys that come while other sessions change rows, as without a LOCK or with LOCK=NONE.

use std::sync::atomic::{AtomicBool, Ordering};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, query_text, wait_until};
use crate::locked_tables::{TABLE_LOCK, id_of, set_wait, state_of};
use crate::transactions::{Random, error_of, run};

/// Sessions that change rows.
const SESSIONS: u64 = 4;

/// Ends the threads of a test, also after a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A connection to a database, which waits for a table as long as a test takes.
fn patient(server: &TestServer, database: &str) -> Conn {
    let mut connection = server.connect();
    run(&mut connection, &format!("use {database}"));
    set_wait(&mut connection, 600);
    connection
}

/// Each session has rows and numbers of its own.
fn any_change(random: &mut Random, session: u64, number: u64) -> String {
    let id = random.below(300) * SESSIONS + session;
    let name = random.below(50);
    match random.below(6) {
        0 => format!("delete from t where id = {id}"),
        1 => format!("update t set name = 'name {name}' where id = {id}"),
        2 => format!("update t set number = {number} where id = {id}"),
        3 => "savepoint s".to_string(),
        4 => format!(
            "insert into t values ({id}, {session}, {number}, 'name {name}', repeat('n', {number} % 9000))
             on duplicate key update number = {number}, note = repeat('m', {name})"
        ),
        _ => format!("replace into t values ({id}, {session}, {number}, 'name {name}', 'note')"),
    }
}

#[test]
fn rows_are_changed_while_indexes_are_built_and_tables_copied() {
    let server = TestServer::start();
    let mut admin = server.connect_to_new("online");
    run(
        &mut admin,
        "create table t (id int primary key, owner int, number int, name varchar(40), note text)",
    );
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = Ends(&done);
        for session in 0..SESSIONS {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut c = server.connect();
                run(&mut c, "use online");
                let level = ["read committed", "repeatable read"][session as usize % 2];
                run(
                    &mut c,
                    &format!("set transaction_isolation = '{}'", level.replace(' ', "-")),
                );
                let mut random = Random(session + 1);
                let mut number = session;
                while !done.load(Ordering::Relaxed) {
                    run(&mut c, "begin");
                    let statements = 1 + random.below(5);
                    let is_through = (0..statements).all(|_| {
                        number += SESSIONS;
                        let sql = any_change(&mut random, session, number);
                        match c.query_drop(sql) {
                            Ok(()) => true,
                            // Gaps are locked, too.
                            Err(mysql::Error::MySqlError(error)) => {
                                assert_eq!(error.code, 1213, "{error}");
                                false
                            }
                            Err(error) => panic!("{error}"),
                        }
                    });
                    let end = match is_through {
                        true => ["rollback", "rollback to s", "commit"][random.below(3) as usize],
                        false => "rollback",
                    };
                    // There may be no such savepoint.
                    drop(c.query_drop(end));
                    run(&mut c, "commit");
                }
            });
        }
        for round in 0..6 {
            run(
                &mut admin,
                "alter table t add unique by_number (number), add key by_name (name, owner), lock = none",
            );
            run(&mut admin, "create index by_note on t (note(3))");
            // Rows are copied, or get columns without it.
            for change in [
                "alter table t modify number bigint, lock = none",
                "alter table t add extra int not null default 7 invisible first",
                "alter table t force, lock = none",
                "alter table t drop extra, algorithm = instant",
                "alter table t modify number int",
            ] {
                run(&mut admin, change);
            }
            if round < 5 {
                run(
                    &mut admin,
                    "alter table t drop key by_number, drop key by_name, drop key by_note",
                );
            }
        }
        drop(ends);
    });
    let digest = |index: &str, column: &str| {
        format!(
            "select count(*), sum(id), sum(number), sum(crc32(concat(id, number, name, note)))
             from t force index ({index}) where {column} is not null"
        )
    };
    let expected = query_text(&mut admin, &digest("primary", "id"));
    for (index, column) in [
        ("by_number", "number"),
        ("by_name", "name"),
        ("by_note", "note"),
    ] {
        let found = query_text(&mut admin, &digest(index, column));
        assert_eq!(found, expected, "{index}");
    }
    let report =
        sheaf_table::check::check(server.engine().catalog(), 8 << 20, &sheaf_table::NoProgress)
            .expect("the tables can be read");
    assert_eq!(report.found, 0, "{:?}", report.findings);
}

/// EXPLAIN ALTER TABLE says what the statement does, and does nothing.
#[test]
fn what_a_change_would_do_is_explained() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("online_explained");
    for sql in [
        "create table t (a int primary key, b int, c varchar(10), key (b))",
        "create table bare (a int, b int)",
        "insert into t values (1, 1, 'x'), (2, 2, 'y')",
    ] {
        run(&mut c, sql);
    }
    let made = query_text(&mut c, "show create table t");
    for (change, expected) in [
        (
            "t add d text not null",
            "t INSTANT NONE the definition changes alone 0 0 0",
        ),
        (
            "t alter b set default 5",
            "t INSTANT NONE the definition changes alone 0 0 0",
        ),
        (
            "t add key (c), add unique (b, c)",
            "t INPLACE NONE 2 indexes are built 2",
        ),
        (
            "t add key (c), lock = shared",
            "t INPLACE SHARED 1 index is built 2",
        ),
        (
            "t add key (c), algorithm = copy",
            "t COPY SHARED 1 index is built 2",
        ),
        (
            "t modify b bigint",
            "t COPY NONE rows are converted and written anew, 1 index is built 2",
        ),
        (
            "t force",
            "t INPLACE NONE rows are written anew, 1 index is built 2",
        ),
        (
            "t drop primary key",
            "t COPY SHARED rows are converted and written anew, 1 index is built 2",
        ),
        (
            "bare modify b bigint, lock = exclusive",
            "bare COPY EXCLUSIVE rows are converted and written anew 0",
        ),
        ("t add check (b > 0)", "t INPLACE NONE rows are tested 2"),
        (
            "t add foreign key (b) references t (a)",
            "t INPLACE NONE rows are tested 2",
        ),
        (
            "bare add foreign key (b) references t (a), lock = none",
            "bare INPLACE NONE rows are tested, 1 index is built 0",
        ),
        (
            "t add foreign key (b) references t (a), algorithm = copy",
            "t COPY SHARED rows are tested 2",
        ),
    ] {
        let found = query_text(&mut c, &format!("explain alter table {change}"));
        let found = found.join("|").replace('\t', " ");
        assert!(found.starts_with(expected), "{change}: {found}");
    }
    run(&mut c, "set foreign_key_checks = 0");
    let found = query_text(
        &mut c,
        "explain alter table t add foreign key (b) references t (a)",
    );
    let found = found.join("|").replace('\t', " ");
    let expected = "t INPLACE NONE the definition changes alone 0 0 0";
    assert_eq!(found, expected);
    run(&mut c, "set foreign_key_checks = 1");
    for (change, code) in [
        ("t modify b bigint, algorithm = instant", 1846),
        (
            "t add foreign key (b) references t (a), algorithm = instant",
            1845,
        ),
        (
            "t add foreign key (b) references t (a), algorithm = copy, lock = none",
            1846,
        ),
        ("t drop d", 1091),
        ("nothing add d int", 1146),
    ] {
        let refused = error_of(&mut c, &format!("explain alter table {change}"));
        assert_eq!(refused, code, "{change}");
    }
    let refused = error_of(&mut c, "explain format = json alter table t force");
    assert_eq!(refused, 1235);
    assert_eq!(query_text(&mut c, "show create table t"), made);
}

/// What a session does that keeps its children and parents together, whether it is made to or not.
fn any_family_change(random: &mut Random, session: u64) -> Vec<String> {
    let (id, parent) = (
        random.below(100) * SESSIONS + session,
        random.below(20) * SESSIONS + session,
    );
    let other = random.below(20) * SESSIONS + session;
    let born = format!("insert ignore into p values ({parent}, 0)");
    match random.below(5) {
        0 => vec![
            born,
            format!("replace into c values ({id}, {parent}, 'child')"),
        ],
        1 => vec![
            format!("delete from c where parent = {parent}"),
            format!("delete from p where id = {parent}"),
        ],
        2 => vec![
            format!("update c set parent = null where parent = {parent}"),
            format!("delete from p where id = {parent}"),
        ],
        3 => vec![
            born,
            format!("update c set parent = {parent} where parent = {other}"),
            format!("delete from p where id = {other} and id <> {parent}"),
        ],
        _ => vec![
            format!("update c set note = 'other' where id = {id}"),
            format!("update p set n = n + 1 where id = {parent}"),
        ],
    }
}

#[test]
fn rows_are_changed_while_foreign_keys_come_and_go() {
    let server = TestServer::start();
    let mut admin = server.connect_to_new("online_families");
    run(&mut admin, "create table p (id int primary key, n int)");
    run(
        &mut admin,
        "create table c (id int primary key, parent int, note varchar(10), key (parent))",
    );
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = Ends(&done);
        for session in 0..SESSIONS {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut c = server.connect();
                run(&mut c, "use online_families");
                let mut random = Random(session + 1);
                while !done.load(Ordering::Relaxed) {
                    run(&mut c, "begin");
                    let changes = any_family_change(&mut random, session);
                    let is_through = changes.iter().all(|sql| match c.query_drop(sql) {
                        Ok(()) => true,
                        // Gaps are locked, and a snapshot may be older than the definition.
                        Err(mysql::Error::MySqlError(error)) => {
                            assert!([1213, 1412].contains(&error.code), "{sql}: {error}");
                            false
                        }
                        Err(error) => panic!("{error}"),
                    });
                    let ends_well = is_through && random.below(5) > 0;
                    run(&mut c, if ends_well { "commit" } else { "rollback" });
                }
            });
        }
        for round in 0..6 {
            for change in [
                "alter table c add constraint f foreign key (parent) references p (id), lock = none",
                "alter table c drop foreign key f, lock = none",
                "alter table c drop key parent",
                // With its index, and one that is not asked for by the key.
                "alter table c add constraint g foreign key (parent) references p (id), add key (note)",
            ] {
                run(&mut admin, change);
            }
            if round < 5 {
                for change in [
                    "alter table c drop foreign key g, drop key note, drop key g",
                    "alter table c add key (parent)",
                ] {
                    run(&mut admin, change);
                }
            }
        }
        drop(ends);
    });
    let orphans =
        "select count(*) from c where parent is not null and parent not in (select id from p)";
    assert_eq!(query_text(&mut admin, orphans), ["0"]);
    assert_eq!(
        error_of(&mut admin, "insert into c values (1000, 1000, '')"),
        1452
    );
    let report =
        sheaf_table::check::check(server.engine().catalog(), 8 << 20, &sheaf_table::NoProgress)
            .expect("the tables can be read");
    assert_eq!(report.found, 0, "{:?}", report.findings);
}

#[test]
fn a_foreign_key_waits_for_transactions_of_both_tables_and_nobody_waits_for_it() {
    let server = TestServer::start();
    let mut one = server.connect_to_new("online_parents");
    let [mut two, mut three] = [(); 2].map(|()| patient(&server, "online_parents"));
    for sql in [
        "create table p (id int primary key)",
        "create table c (id int primary key, parent int)",
        "insert into p values (1), (2), (3)",
        "insert into c values (1, 1), (2, 2)",
    ] {
        run(&mut one, sql);
    }
    let add = "alter table c add constraint f foreign key (parent) references p (id)";
    let keys = "select constraint_name from information_schema.referential_constraints
                where constraint_schema = 'online_parents'";
    // KILL leaves nothing behind. A reader of the parent is waited for at the end alone.
    for phase in [
        "delete from p where id = 3",
        "update c set parent = 2 where id = 1",
        "select * from p",
    ] {
        run(&mut one, "begin");
        run(&mut one, phase);
        let id = id_of(&two);
        std::thread::scope(|scope| {
            let altering = scope.spawn(|| error_of(&mut two, add));
            wait_until("it waits", || state_of(&mut one, id) == [TABLE_LOCK]);
            run(&mut three, "insert into p values (7)");
            run(&mut three, "insert into c values (7, 7)");
            run(&mut three, "delete from c where id = 7");
            run(&mut three, "delete from p where id = 7");
            run(&mut three, &format!("kill query {id}"));
            assert_eq!(altering.join().expect("an error"), 1317);
        });
        run(&mut one, "rollback");
        assert_eq!(query_text(&mut three, keys), [""; 0]);
        assert_eq!(
            query_text(&mut three, "show index from c where key_name = 'f'"),
            [""; 0]
        );
    }
    // What others break meanwhile fails it.
    run(&mut one, "begin");
    run(&mut one, "delete from p where id = 2");
    let id = id_of(&two);
    std::thread::scope(|scope| {
        let altering = scope.spawn(|| error_of(&mut two, add));
        wait_until("it waits", || state_of(&mut three, id) == [TABLE_LOCK]);
        run(&mut one, "commit");
        assert_eq!(altering.join().expect("an error"), 1452);
    });
    assert_eq!(query_text(&mut three, keys), [""; 0]);
    run(&mut one, "insert into p values (2)");
    run(&mut two, add);
    assert_eq!(query_text(&mut three, keys), ["f"]);
    assert_eq!(error_of(&mut three, "delete from p where id = 2"), 1451);
    assert_eq!(error_of(&mut three, "insert into c values (9, 9)"), 1452);
}

#[test]
fn a_build_waits_for_an_old_transaction_and_nobody_waits_for_the_build() {
    let server = TestServer::start();
    let mut one = server.connect_to_new("online_waits");
    let [mut two, mut three] = [(); 2].map(|()| patient(&server, "online_waits"));
    run(&mut one, "create table t (a int primary key, b int)");
    run(&mut one, "insert into t values (1, 10), (2, 20), (3, 30)");
    let indexes = "show index from t where key_name <> 'PRIMARY'";
    // KILL leaves nothing behind.
    for phase in ["update t set b = 11 where a = 1", "select * from t"] {
        run(&mut one, "begin");
        run(&mut one, phase);
        let id = id_of(&two);
        std::thread::scope(|scope| {
            let altering = scope.spawn(|| error_of(&mut two, "create index i on t (b)"));
            wait_until("it waits", || state_of(&mut one, id) == [TABLE_LOCK]);
            run(&mut three, "update t set b = b + 1 where a = 2");
            assert_eq!(query_text(&mut three, "select count(*) from t"), ["3"]);
            run(&mut three, &format!("kill query {id}"));
            assert_eq!(altering.join().expect("an error"), 1317);
        });
        run(&mut one, "rollback");
        assert_eq!(query_text(&mut three, indexes), [""; 0]);
    }
    // It goes on when the transaction has ended; a snapshot from before cannot use the table then.
    run(&mut one, "begin");
    run(&mut one, "update t set b = 12 where a = 1");
    run(&mut three, "start transaction with consistent snapshot");
    let id = id_of(&two);
    std::thread::scope(|scope| {
        let altering = scope.spawn(|| run(&mut two, "create unique index i on t (b) lock = none"));
        wait_until("it waits", || state_of(&mut one, id) == [TABLE_LOCK]);
        run(&mut one, "insert into t values (4, 40)");
        run(&mut one, "commit");
        altering.join().expect("it is built");
    });
    assert_eq!(error_of(&mut three, "select * from t"), 1412);
    run(&mut three, "rollback");
    assert_eq!(
        query_text(
            &mut three,
            "select a from t force index (i) where b > 11 order by b"
        ),
        ["1", "2", "3", "4"]
    );
    assert_eq!(error_of(&mut three, "insert into t values (5, 40)"), 1062);
    // What others leave behind fails it, and names the value.
    run(&mut one, "insert into t values (6, 60)");
    run(&mut one, "alter table t drop key i");
    run(&mut one, "insert into t values (7, 60)");
    let failed = two.query_drop("alter table t add unique j (b), lock = none");
    let failed = failed.expect_err("there are duplicates").to_string();
    assert!(
        failed.contains("Duplicate entry '60' for key 't.j'"),
        "{failed}"
    );
    assert_eq!(query_text(&mut three, indexes), [""; 0]);
}

#[test]
fn a_build_beside_too_many_changes_fails_and_leaves_nothing_behind() {
    let server = TestServer::start();
    let mut one = server.connect_to_new("online_limit");
    let [mut two, mut three] = [(); 2].map(|()| patient(&server, "online_limit"));
    run(
        &mut one,
        "set global innodb_online_alter_log_max_size = 65536",
    );
    run(&mut one, "create table t (a int primary key, b int)");
    run(
        &mut one,
        "insert into t with recursive n as (select 1 i union all select i + 1 from n where i < 200) select i, i from n",
    );
    // The build waits for it at its end, and notes what others change meanwhile.
    run(&mut one, "begin");
    run(&mut one, "select * from t where a = 1");
    let id = id_of(&two);
    std::thread::scope(|scope| {
        let altering =
            scope.spawn(|| two.query_drop("alter table t add key i (b), add key j (b, a)"));
        wait_until("it waits", || state_of(&mut one, id) == [TABLE_LOCK]);
        // Each of them is too much. The first one may come before anything is noted.
        let mut first = 1_000;
        while !altering.is_finished() {
            let rows = format!("{first} + x.a * 1000 + y.a, 0 from t x, t y");
            let insert = format!("insert into t select {rows} where x.a < 150 and y.a <= 200");
            run(&mut three, &insert);
            first += 200_000;
        }
        let failed = altering.join().expect("an answer");
        let failed = failed.expect_err("too much is changed").to_string();
        let text = "Creating index 'i' required more than 'innodb_online_alter_log_max_size' bytes of modification log. Please try again.";
        assert!(failed.contains("1799") && failed.contains(text), "{failed}");
    });
    run(&mut one, "rollback");
    let indexes = "show index from t where key_name <> 'PRIMARY'";
    assert_eq!(query_text(&mut three, indexes), [""; 0]);
    run(
        &mut one,
        "set global innodb_online_alter_log_max_size = default",
    );
    run(&mut two, "alter table t add key i (b)");
    let found = |index: &str| format!("select count(*) from t force index ({index}) where b = 0");
    let expected = query_text(&mut three, &found("primary"));
    assert_eq!(query_text(&mut three, &found("i")), expected);
}

#[test]
fn a_change_with_lock_exclusive_waits_for_readers_first() {
    let server = TestServer::start();
    let mut one = server.connect_to_new("online_alone");
    let mut two = patient(&server, "online_alone");
    run(&mut one, "create table t (a int primary key, b int)");
    run(&mut one, "insert into t values (1, 10), (2, 20)");
    let id = id_of(&two);
    for change in [
        "alter table t add key i (b), lock = exclusive",
        "alter table t modify b bigint, lock = exclusive",
        "create index j on t (b, a) algorithm = copy lock = exclusive",
    ] {
        run(&mut one, "begin");
        run(&mut one, "select * from t");
        std::thread::scope(|scope| {
            let altering = scope.spawn(|| run(&mut two, change));
            wait_until("it waits", || state_of(&mut one, id) == [TABLE_LOCK]);
            assert!(!altering.is_finished());
            run(&mut one, "commit");
            altering.join().expect("it is done");
        });
        assert_eq!(query_text(&mut one, "select sum(b) from t"), ["30"]);
    }
}
