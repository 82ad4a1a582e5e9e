//! Resource groups: which users may define and use them, and where the threads of their sessions then run.

use std::fs;
use std::time::Instant;

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf::{Database, Options};

use crate::harness::{PATIENCE, TestServer, query_text, wait_until};

/// Code and text of the error that a statement must give.
fn refusal(connection: &mut Conn, statement: &str) -> (u16, String) {
    match connection.query_drop(statement) {
        Err(mysql::Error::MySqlError(error)) => (error.code, error.message),
        other => panic!("{statement}: {other:?}"),
    }
}

fn run(connection: &mut Conn, statement: &str) {
    connection
        .query_drop(statement)
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

fn warnings(connection: &mut Conn) -> Vec<String> {
    query_text(connection, "SHOW WARNINGS")
}

fn groups(connection: &mut Conn) -> Vec<String> {
    let sql = "SELECT RESOURCE_GROUP_NAME, RESOURCE_GROUP_TYPE, RESOURCE_GROUP_ENABLED, VCPU_IDS, THREAD_PRIORITY
               FROM information_schema.RESOURCE_GROUPS";
    query_text(connection, sql)
}

/// The CPUs of the machine, as a group without VCPU has them, and the first of them.
fn cpus(connection: &mut Conn) -> (String, String) {
    let sql = "SELECT VCPU_IDS FROM information_schema.RESOURCE_GROUPS WHERE RESOURCE_GROUP_NAME = 'usr_default'";
    let all = query_text(connection, sql).remove(0);
    let first = all.split(['-', ',']).next().expect("a number").to_string();
    (all, first)
}

/// The CPUs that a thread of this process may run on, by its folder in /proc.
fn allowed_cpus(task: &std::path::Path) -> Option<String> {
    let status = fs::read_to_string(task.join("status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim().to_string())
}

/// The CPUs of each worker thread of a group.
fn cpus_of_workers(group: &str) -> Vec<String> {
    let name = format!("query {group}");
    fs::read_dir("/proc/self/task")
        .expect("Linux has it")
        .filter_map(|task| Some(task.ok()?.path()))
        // Threads of other tests come and go.
        .filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name))
        .filter_map(|task| allowed_cpus(&task))
        .collect()
}

#[test]
fn groups_are_made_altered_and_dropped() {
    let mut server = TestServer::start();
    let mut c = server.connect();
    let (all, first) = cpus(&mut c);
    let defaults = [
        format!("USR_default\tUSER\t1\t{all}\t0"),
        format!("SYS_default\tSYSTEM\t1\t{all}\t0"),
    ];
    assert_eq!(groups(&mut c), defaults);

    run(
        &mut c,
        &format!("CREATE RESOURCE GROUP Night TYPE = USER VCPU = {first}, {first} DISABLE"),
    );
    run(&mut c, "create resource group chores type system");
    let made = [
        format!("chores\tSYSTEM\t1\t{all}\t0"),
        format!("Night\tUSER\t0\t{first}\t0"),
    ];
    assert_eq!(groups(&mut c)[2..], made);

    drop(c);
    server.restart();
    let mut c = server.connect();
    assert_eq!(groups(&mut c)[2..], made);

    run(&mut c, "ALTER RESOURCE GROUP night ENABLE");
    run(
        &mut c,
        &format!("ALTER RESOURCE GROUP chores VCPU = {first} DISABLE"),
    );
    let altered = [
        format!("chores\tSYSTEM\t0\t{first}\t0"),
        format!("Night\tUSER\t1\t{first}\t0"),
    ];
    assert_eq!(groups(&mut c)[2..], altered);
    run(&mut c, "DROP RESOURCE GROUP NIGHT");
    run(&mut c, "DROP RESOURCE GROUP chores FORCE");
    assert_eq!(groups(&mut c), defaults);
}

#[test]
fn what_is_no_group_is_refused() {
    let server = TestServer::start();
    let mut c = server.connect();
    run(&mut c, "CREATE RESOURCE GROUP night TYPE = USER");
    for (sql, code, message) in [
        (
            "CREATE RESOURCE GROUP Night TYPE = SYSTEM",
            3650,
            "Resource Group 'Night' exists",
        ),
        (
            "CREATE RESOURCE GROUP usr_DEFAULT TYPE = USER",
            3650,
            "Resource Group 'usr_DEFAULT' exists",
        ),
        (
            "CREATE RESOURCE GROUP day TYPE = USER VCPU = 2000",
            3652,
            "Invalid cpu id 2000",
        ),
        (
            "CREATE RESOURCE GROUP day TYPE = USER VCPU = 3-1",
            3653,
            "Invalid VCPU range 3-1",
        ),
        (
            "CREATE RESOURCE GROUP day TYPE = USER VCPU = 0-18446744073709551615",
            3652,
            "Invalid cpu id ",
        ),
        (
            "CREATE RESOURCE GROUP day TYPE = USER THREAD_PRIORITY = -5",
            3654,
            "Invalid thread priority value -5 for User resource group day. Allowed range is [0, 19].",
        ),
        (
            "ALTER RESOURCE GROUP night THREAD_PRIORITY = 20",
            3654,
            "Invalid thread priority value 20 for User resource group night. Allowed range is [0, 19].",
        ),
        (
            "CREATE RESOURCE GROUP day TYPE = SYSTEM THREAD_PRIORITY = 1",
            3654,
            "Invalid thread priority value 1 for System resource group day. Allowed range is [-20, 0].",
        ),
        (
            "ALTER RESOURCE GROUP day ENABLE",
            3651,
            "Resource Group 'day' does not exist.",
        ),
        (
            "ALTER RESOURCE GROUP SYS_default DISABLE",
            3655,
            "Alter operation is disallowed on default resource groups.",
        ),
        (
            "DROP RESOURCE GROUP usr_default",
            3655,
            "Drop operation is disallowed on default resource groups.",
        ),
        (
            "ALTER RESOURCE GROUP night ENABLE FORCE",
            3662,
            "Option FORCE invalid as DISABLE option is not specified.",
        ),
        (
            "DROP RESOURCE GROUP day",
            3651,
            "Resource Group 'day' does not exist.",
        ),
        (
            "SET RESOURCE GROUP day",
            3651,
            "Resource Group 'day' does not exist.",
        ),
        (
            "SET RESOURCE GROUP night FOR 77777",
            3660,
            "Invalid thread id (77777).",
        ),
    ] {
        let (found, text) = refusal(&mut c, sql);
        assert_eq!(found, code, "{sql}: {text}");
        assert!(text.starts_with(message), "{sql}: {text}");
    }
    let long = "n".repeat(65);
    let sql = format!("CREATE RESOURCE GROUP {long} TYPE = USER");
    assert_eq!(refusal(&mut c, &sql).0, 1059);

    // The default ones are not counted.
    for n in 1..32 {
        run(&mut c, &format!("CREATE RESOURCE GROUP g{n} TYPE = USER"));
    }
    let (code, text) = refusal(&mut c, "CREATE RESOURCE GROUP g32 TYPE = USER");
    assert_eq!(code, 1105, "{text}");
}

#[test]
fn a_priority_is_kept_where_threads_can_have_one() {
    let server = TestServer::start();
    let mut c = server.connect();
    run(
        &mut c,
        "CREATE RESOURCE GROUP night TYPE = USER THREAD_PRIORITY = 7",
    );
    let (priority, warned) = match warnings(&mut c).as_slice() {
        [] => (7, false),
        other => {
            let text = "Warning\t3659\tAttribute thread_priority is ignored (using default value).";
            assert_eq!(other, [text]);
            (0, true)
        }
    };
    let shown = |c: &mut Conn| {
        let sql = "SELECT THREAD_PRIORITY FROM information_schema.RESOURCE_GROUPS WHERE RESOURCE_GROUP_NAME = 'night'";
        query_text(c, sql)
    };
    assert_eq!(shown(&mut c), [priority.to_string()]);
    // What is not named stays.
    run(&mut c, "ALTER RESOURCE GROUP night DISABLE");
    assert_eq!(shown(&mut c), [priority.to_string()]);
    run(
        &mut c,
        "CREATE RESOURCE GROUP urgent TYPE = SYSTEM THREAD_PRIORITY = -20",
    );
    assert_eq!(warnings(&mut c).is_empty(), !warned);
}

#[test]
fn sessions_go_into_groups_and_are_moved_out() {
    let server = TestServer::start();
    let mut c = server.connect();
    let mut other = server.connect();
    let id = query_text(&mut other, "SELECT CONNECTION_ID()").remove(0);
    run(&mut c, "CREATE RESOURCE GROUP night TYPE = USER");
    run(&mut c, "CREATE RESOURCE GROUP chores TYPE = SYSTEM");

    // A group with sessions cannot be dropped.
    run(&mut c, "SET RESOURCE GROUP night");
    let busy = (3656, "Resource group night is busy.".to_string());
    assert_eq!(refusal(&mut other, "DROP RESOURCE GROUP night"), busy);
    run(&mut c, "SET RESOURCE GROUP USR_default");
    run(&mut c, "DROP RESOURCE GROUP night");

    // Somebody else's session; several at once, of which some are not there.
    run(&mut c, "CREATE RESOURCE GROUP night TYPE = USER");
    run(
        &mut c,
        &format!("SET RESOURCE GROUP night FOR {id}, 77777, 88888"),
    );
    assert_eq!(
        warnings(&mut c),
        [
            "Warning\t3660\tInvalid thread id (77777).",
            "Warning\t3660\tInvalid thread id (88888).",
        ]
    );
    assert_eq!(refusal(&mut c, "DROP RESOURCE GROUP night"), busy);
    // The group changes under its session, which goes on.
    run(&mut c, "ALTER RESOURCE GROUP night THREAD_PRIORITY = 1");
    assert_eq!(query_text(&mut other, "SELECT 1"), ["1"]);
    assert_eq!(refusal(&mut c, "DROP RESOURCE GROUP night"), busy);

    // A disabled group keeps its sessions until they are forced out, and takes no other.
    run(&mut c, "ALTER RESOURCE GROUP night DISABLE");
    assert_eq!(
        refusal(&mut c, "SET RESOURCE GROUP night"),
        (3657, "Resource group night is disabled.".into())
    );
    assert_eq!(refusal(&mut c, "DROP RESOURCE GROUP night"), busy);
    run(&mut c, "ALTER RESOURCE GROUP night DISABLE FORCE");
    run(&mut c, "DROP RESOURCE GROUP night");

    // So does DROP with FORCE, and the end of a session.
    run(&mut c, "CREATE RESOURCE GROUP night TYPE = USER");
    run(&mut other, "SET RESOURCE GROUP night");
    run(&mut c, "DROP RESOURCE GROUP night FORCE");
    assert_eq!(query_text(&mut other, "SELECT 1"), ["1"]);
    run(&mut c, "CREATE RESOURCE GROUP night TYPE = USER");
    run(&mut other, "SET RESOURCE GROUP night");
    other.reset().expect("the connection goes on");
    run(&mut c, "DROP RESOURCE GROUP night");

    let (code, message) = refusal(&mut c, "SET RESOURCE GROUP chores");
    assert_eq!(code, 3661);
    assert!(message.ends_with("(System resource group can't be applied to user thread.)."));
    let (code, message) = refusal(&mut c, &format!("SET RESOURCE GROUP chores FOR {id}"));
    assert_eq!(code, 3661);
    assert!(message.ends_with("(Resource group type and thread type doesn't match.)."));
}

#[test]
fn a_hint_puts_one_statement_into_a_group() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("hinted");
    let (_, first) = cpus(&mut c);
    run(&mut c, "CREATE TABLE t (a INT PRIMARY KEY, b INT)");
    run(&mut c, "INSERT INTO t VALUES (1, 10), (2, 20), (3, 20)");
    run(
        &mut c,
        &format!("CREATE RESOURCE GROUP hinted TYPE = USER VCPU = {first}"),
    );
    run(&mut c, "CREATE RESOURCE GROUP chores TYPE = SYSTEM");
    let grouped = "b, count(*) from t group by b order by b";
    let expected = ["10\t1", "20\t2"];
    assert_eq!(query_text(&mut c, &format!("select {grouped}")), expected);
    assert!(cpus_of_workers("hinted").is_empty());
    let sql = format!("select /*+ RESOURCE_GROUP(hinted) */ {grouped}");
    assert_eq!(query_text(&mut c, &sql), expected);
    assert_eq!(warnings(&mut c), [""; 0]);
    // One worker for one CPU. A list of threads may lack some while threads of other tests end.
    wait_until("its worker", || {
        cpus_of_workers("hinted") == [first.as_str()]
    });
    // It was for one statement: nobody is in the group.
    run(&mut c, "DROP RESOURCE GROUP hinted");
    // They end when they have finished what they do.
    let patience = Instant::now() + PATIENCE;
    while !cpus_of_workers("hinted").is_empty() {
        assert!(Instant::now() < patience, "its workers are still there");
        std::thread::yield_now();
    }

    let id = query_text(&mut c, "SELECT CONNECTION_ID()").remove(0);
    for (group, warning) in [
        (
            "hinted",
            "Warning\t3651\tResource Group 'hinted' does not exist.".to_string(),
        ),
        (
            "chores",
            format!(
                "Warning\t3661\tUnable to bind resource group chores with thread id ({id}).(System resource group can't \
                 be bound with a session thread)."
            ),
        ),
    ] {
        for statement in ["select", "update", "insert"] {
            let rest = match statement {
                "select" => "1",
                "update" => "t set b = 30 where a = 1",
                _ => "ignore into t values (1, 1)",
            };
            run(
                &mut c,
                &format!("{statement} /*+ RESOURCE_GROUP({group}) */ {rest}"),
            );
            assert_eq!(warnings(&mut c)[0], warning, "{statement}");
        }
    }
}

#[test]
fn a_group_is_for_users_that_may_use_it() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(&mut root, "CREATE RESOURCE GROUP night TYPE = USER");
    run(&mut root, "CREATE RESOURCE GROUP chores TYPE = SYSTEM");
    run(&mut root, "CREATE USER ann");
    let mut ann = Conn::new(server.options().user(Some("ann"))).expect("she has no password");
    let needed = |privileges: &str| {
        let text = format!(
            "Access denied; you need (at least one of) the {privileges} privilege(s) for this operation"
        );
        (1227, text)
    };
    let to_use = needed("RESOURCE_GROUP_ADMIN or RESOURCE_GROUP_USER");
    assert_eq!(refusal(&mut ann, "SET RESOURCE GROUP night"), to_use);
    assert!(groups(&mut ann).is_empty());
    assert_eq!(
        query_text(&mut ann, "select /*+ RESOURCE_GROUP(night) */ 1"),
        ["1"]
    );
    assert_eq!(
        warnings(&mut ann),
        [format!("Warning\t{}\t{}", to_use.0, to_use.1)]
    );

    run(&mut root, "GRANT RESOURCE_GROUP_USER ON *.* TO ann");
    run(&mut ann, "SET RESOURCE GROUP night");
    let names = |groups: Vec<String>| -> Vec<String> {
        let name = |row: &String| row.split('\t').next().unwrap_or_default().to_string();
        groups.iter().map(name).collect()
    };
    assert_eq!(names(groups(&mut ann)), ["USR_default", "night"]);
    for sql in [
        "SET RESOURCE GROUP chores",
        "CREATE RESOURCE GROUP day TYPE = USER",
        "ALTER RESOURCE GROUP night DISABLE",
        "DROP RESOURCE GROUP night",
    ] {
        assert_eq!(
            refusal(&mut ann, sql),
            needed("RESOURCE_GROUP_ADMIN"),
            "{sql}"
        );
    }
    run(&mut root, "GRANT RESOURCE_GROUP_ADMIN ON *.* TO ann");
    assert_eq!(groups(&mut ann).len(), 4);
    run(&mut ann, "DROP RESOURCE GROUP night FORCE");
}

#[test]
fn definitions_commit_what_is_open() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("committing");
    run(&mut c, "CREATE TABLE t (a INT PRIMARY KEY)");
    run(&mut c, "CREATE RESOURCE GROUP night TYPE = USER");
    run(&mut c, "BEGIN");
    run(&mut c, "INSERT INTO t VALUES (1)");
    run(&mut c, "SET RESOURCE GROUP night");
    run(&mut c, "ROLLBACK");
    assert_eq!(query_text(&mut c, "SELECT * FROM t"), [""; 0]);
    run(&mut c, "BEGIN");
    run(&mut c, "INSERT INTO t VALUES (1)");
    run(&mut c, "ALTER RESOURCE GROUP night DISABLE");
    run(&mut c, "ROLLBACK");
    assert_eq!(query_text(&mut c, "SELECT * FROM t"), ["1"]);
}

#[test]
fn the_thread_of_a_session_runs_where_its_group_says() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = Options::default().with_memory_bytes(64 << 20);
    let database = Database::open(directory.path(), options).expect("an empty database");
    let here = || allowed_cpus("/proc/thread-self".as_ref()).expect("Linux has it");
    let all = here();
    let first = all.split(['-', ',']).next().expect("a number").to_string();
    let mut connection = database.connect().expect("a session");
    let mut other = database.connect().expect("a session");
    for sql in [
        format!("CREATE RESOURCE GROUP one TYPE = USER VCPU = {first}"),
        "SET RESOURCE GROUP one".into(),
    ] {
        connection.execute(&sql).expect("it may do everything");
    }
    assert_eq!(here(), first);
    connection.query("SELECT 1").expect("a row");
    assert_eq!(here(), first);
    // Another session of the same thread is not in the group.
    other.query("SELECT 1").expect("a row");
    assert_eq!(here(), all);
    other
        .query("SELECT /*+ RESOURCE_GROUP(one) */ 1")
        .expect("a row");
    assert_eq!(here(), all);
    connection.query("SELECT 1").expect("a row");
    assert_eq!(here(), first);
    drop(connection);
    assert_eq!(here(), all);
}
