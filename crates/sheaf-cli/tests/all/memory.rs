//! What `--memory` promises: a server process stays within it and its tolerance, whatever its statements ask for, and
//! statements that need much wait for one another.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use tempfile::TempDir;

use crate::command_line::{connect, serve_in, serve_with, terminate};
use crate::harness::{error_of, query_text, text_rows, wait_until};
use crate::raw_client::{COM_QUERY, RawClient};

const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_SEND_LONG_DATA: u8 = 0x18;

/// The servers' `--memory`.
const MEMORY_MIB: usize = 64;
/// What the process may take besides, as docs/operations.md says:
const TOLERANCE_MIB: usize = 16;
/// What may come on top between two looks at it, on a machine that is busy with other tests: with the tolerance as much
/// as a larger server's tolerance.
const LATE_MIB: usize = 16;
const ROWS: usize = 256_000;
/// How long a small change may take beside a huge one, on a machine that is busy with other tests.
const MOST_WAIT: Duration = Duration::from_secs(3);

/// Anonymous resident memory of a process, in MiB.
fn resident_mib(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    let kib: usize = number.and_then(|number| number.parse().ok()).expect("KiB");
    kib >> 10
}

/// A server with a table of [`ROWS`] rows of a hundred bytes.
struct Filled {
    /// Deleted when the server is gone.
    _directory: TempDir,
    /// Kept for the tests that follow.
    _template: Arc<TempDir>,
    child: Child,
    port: u16,
}

impl Drop for Filled {
    fn drop(&mut self) {
        // What it has written is deleted as well.
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

/// The data directory that all servers of these tests begin with, as long as one of them is there.
static TEMPLATE: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());

fn filled() -> Filled {
    filled_by(|directory| serve_with(directory, &[]))
}

fn filled_by(serve: impl FnOnce(&Path) -> (Child, u16)) -> Filled {
    let template = template();
    let directory = tempfile::tempdir().expect("a temporary directory");
    copy(template.path(), directory.path());
    let (child, port) = serve(directory.path());
    Filled {
        _directory: directory,
        _template: template,
        child,
        port,
    }
}

fn template() -> Arc<TempDir> {
    let mut template = TEMPLATE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = template.upgrade() {
        return known;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut child, port) = serve_with(directory.path(), &[]);
    fill(&mut connect(port));
    terminate(&child);
    child.wait().expect("it ends");
    let directory = Arc::new(directory);
    *template = Arc::downgrade(&directory);
    directory
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("its type").is_dir() {
            true => {
                fs::create_dir_all(&to).expect("a directory");
                copy(&entry.path(), &to);
            }
            false => {
                fs::copy(entry.path(), to).expect("a copy");
            }
        }
    }
}

/// What comes of `work`. Meanwhile the process takes no more than it may.
fn within_memory<T>(process: u32, work: impl FnOnce() -> T) -> T {
    let (peak, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = thread::scope(|scope| {
        let _ends = EndsAll(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                peak.fetch_max(resident_mib(process), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        work()
    });
    let peak = peak.load(Ordering::Relaxed);
    assert!(
        peak <= MEMORY_MIB + TOLERANCE_MIB + LATE_MIB,
        "the process took {peak} MiB"
    );
    done
}

fn fill(connection: &mut Conn) {
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.a (id INT PRIMARY KEY, k INT, s VARCHAR(100) NOT NULL)",
        "INSERT INTO d.a WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 1000) \
         SELECT n, n * 7919 % 1000, CONCAT(MD5(n), REPEAT('x', 40)) FROM r",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let mut rows = 1000;
    while rows < ROWS {
        let sql = format!(
            "INSERT INTO d.a SELECT id + {rows}, k * 17 % {rows}, CONCAT(MD5(id + {rows}), REPEAT('x', 40)) FROM d.a"
        );
        answer_of(connection, &sql);
        rows *= 2;
    }
    connection
        .query_drop("ANALYZE TABLE d.a")
        .expect("statistics");
}

/// The statement's rows. On a busy machine it may be stopped because the process has too much, and is asked again.
fn answer_of(connection: &mut Conn, sql: &str) -> Vec<String> {
    for _ in 0..20 {
        match connection.query::<Row, _>(sql) {
            Ok(rows) => return text_rows(rows),
            Err(error) => assert_eq!(error_of::<()>(Err(error)).0, 1041, "{sql}"),
        }
    }
    panic!("{sql}: no answer in twenty attempts")
}

/// Ends what runs beside a test, also when the test fails.
struct EndsAll<'a>(&'a AtomicBool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_server_stays_within_its_memory() {
    let server = filled();
    let port = server.port;
    let process = server.child.id();
    // Each takes more than all query memory, if it is not spilled.
    let hungry = [
        "SELECT COUNT(DISTINCT s), COUNT(DISTINCT id) FROM d.a",
        "SELECT MAX(n) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY s) AS n FROM d.a) t",
        "SELECT COUNT(*), MAX(x.s) FROM d.a x JOIN d.a y ON x.s = y.s",
        "SELECT COUNT(*) FROM (SELECT s, COUNT(*) FROM d.a GROUP BY s) t",
        "SELECT LENGTH(GROUP_CONCAT(DISTINCT s)) FROM d.a",
        "SELECT * FROM d.a ORDER BY s LIMIT 1 OFFSET 200000",
    ];
    let is_over = AtomicBool::new(false);
    let all_at_once = || {
        thread::scope(|scope| {
            let _ends = EndsAll(&is_over);
            scope.spawn(|| {
                let mut connection = connect(port);
                while !is_over.load(Ordering::Relaxed) {
                    let sql =
                        "SELECT COUNT(*), MAX(s) FROM d.a WHERE id BETWEEN 100 AND 199 AND k >= 0";
                    let row = answer_of(&mut connection, sql);
                    assert!(row[0].starts_with("100"), "small statements go on: {row:?}");
                    thread::sleep(Duration::from_millis(10));
                }
            });
            let clients: Vec<_> = (0..3)
                .map(|client| {
                    scope.spawn(move || {
                        let mut connection = connect(port);
                        // Each in another order.
                        let mut answers = vec![Vec::new(); hungry.len()];
                        for turn in 0..hungry.len() {
                            let which = (turn + client * 2) % hungry.len();
                            answers[which] = answer_of(&mut connection, hungry[which]);
                        }
                        answers
                    })
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().expect("each statement has an answer"))
                .collect()
        })
    };
    let answers: Vec<Vec<Vec<String>>> = within_memory(process, all_at_once);
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
}

/// A control group whose processes the kernel kills when they have more.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Version 1 of the controller. `None`: it is not there, or this user may not use it.
    fn of_mib(mib: usize) -> Option<MemoryGroup> {
        let name = format!("sheaf-test-{}", std::process::id());
        let path = Path::new("/sys/fs/cgroup/memory").join(name);
        fs::create_dir(&path).ok()?;
        let group = MemoryGroup(path);
        let limit = group.0.join("memory.limit_in_bytes");
        fs::write(limit, (mib << 20).to_string()).ok()?;
        Some(group)
    }

    /// How many processes were killed in it.
    fn killed(&self) -> usize {
        let control = fs::read_to_string(self.0.join("memory.oom_control")).expect("it is there");
        let mut lines = control.lines();
        let killed = lines.find_map(|line| line.strip_prefix("oom_kill "));
        killed.and_then(|killed| killed.parse().ok()).unwrap_or(0)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // One that is left behind is empty.
        drop(fs::remove_dir(&self.0));
    }
}

/// docs/operations.md: a control group of 1.25 x `--memory` is enough, whatever runs.
#[test]
#[ignore = "needs the right to make a cgroup, and takes minutes where nothing is optimised"]
fn a_quarter_more_than_its_memory_is_enough_for_the_process() {
    let Some(group) = MemoryGroup::of_mib(MEMORY_MIB + MEMORY_MIB / 4) else {
        eprintln!("skipped: this user may not make a group of version 1's memory controller");
        return;
    };
    let server = filled_by(|directory| serve_in(&group.0, directory));
    let port = server.port;
    let mut connection = connect(port);
    for sql in [
        "SET group_concat_max_len = 4294967295",
        "CREATE TABLE d.c (id INT PRIMARY KEY, s VARCHAR(100) NOT NULL)",
        "SELECT COUNT(DISTINCT s), COUNT(DISTINCT id) FROM d.a",
        "SELECT COUNT(*), MAX(x.s) FROM d.a x JOIN d.a y ON x.s = y.s",
        "SELECT MAX(x) FROM (SELECT LEAD(s, 3) OVER (ORDER BY CONCAT(s, s, s)) AS x FROM d.a) t",
        "SELECT SUM(LENGTH(g)) FROM (SELECT GROUP_CONCAT(REPEAT(s, 20)) AS g FROM d.a GROUP BY k % 10) t",
        "SELECT SUM(LENGTH(g)) FROM (SELECT GROUP_CONCAT(DISTINCT s ORDER BY s) AS g FROM d.a GROUP BY k % 10) t",
        "INSERT INTO d.c SELECT id, s FROM d.a RETURNING id, CONCAT(s, s)",
        "REPLACE INTO d.c SELECT id, s FROM d.a RETURNING id, CONCAT(s, s)",
        "UPDATE d.a SET k = k + 1 ORDER BY s",
    ] {
        answer_of(&mut connection, sql);
        assert_eq!(group.killed(), 0, "{sql}");
    }
    // Ghosts are purged while the rows leave; and statements that may be too large, whatever runs besides.
    let values = (0..3000).map(|n| format!("(SELECT MAX(id) FROM d.a WHERE id <= {n})"));
    let values: Vec<String> = values.collect();
    for sql in [
        "DELETE FROM d.c WHERE id > 100 RETURNING id, CONCAT(s, s)".to_string(),
        format!("SELECT {}", values[..1000].join(", ")),
        format!("SELECT {}", values.join(", ")),
    ] {
        if let Err(error) = connection.query_drop(&sql) {
            assert_eq!(error_of::<()>(Err(error)).0, 1041, "{}", &sql[..100]);
        }
        assert_eq!(group.killed(), 0, "{}", &sql[..100]);
    }
    take_much_at_once(&mut connection);
    assert_eq!(group.killed(), 0);
    write_at_the_same_time(port, 200);
    assert_eq!(group.killed(), 0);
    // Some of these may be stopped when they run at the same time.
    let hungry = [
        "SELECT COUNT(*) FROM (SELECT s, COUNT(*) FROM d.a GROUP BY s) t",
        "SELECT * FROM d.a ORDER BY s LIMIT 1 OFFSET 200000",
        "SELECT LENGTH(GROUP_CONCAT(DISTINCT s, REPEAT(s, 20) ORDER BY s DESC)) FROM d.a WHERE id < 50000",
        "SELECT COUNT(*) FROM d.a x JOIN d.c y ON x.s = y.s",
    ];
    thread::scope(|scope| {
        for sql in hungry {
            scope.spawn(move || {
                if let Err(error) = connect(port).query_drop(sql) {
                    assert_eq!(error_of::<()>(Err(error)).0, 1041, "{sql}");
                }
            });
        }
    });
    assert_eq!(group.killed(), 0);
    drop(server);
}

/// Windows over texts, each alone: what waits for the end of a partition is little, or goes to a file.
#[test]
fn windows_over_texts_stay_within_memory() {
    let server = filled();
    let port = server.port;
    let process = server.child.id();
    let mut connection = connect(port);
    let last = answer_of(&mut connection, "SELECT MAX(s) FROM d.a");
    within_memory(process, || {
        let sql = |over: &str| format!("SELECT MAX(x) FROM (SELECT {over} AS x FROM d.a) t");
        for over in [
            "MAX(s) OVER (PARTITION BY k)",
            "MAX(s) OVER ()",
            // Sorts of keys that are twice as wide as the rows.
            "FIRST_VALUE(s) OVER (PARTITION BY k ORDER BY s DESC)",
            "LEAD(s, 3) OVER (ORDER BY s)",
            "LAG(s, 0) OVER (ORDER BY s)",
            "LAST_VALUE(s) OVER (ORDER BY s ROWS BETWEEN 100 PRECEDING AND CURRENT ROW)",
            // And six times.
            "LEAD(s, 3) OVER (ORDER BY CONCAT(s, s, s))",
            // What follows a row.
            "MAX(s) OVER (ORDER BY s ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
            "LAST_VALUE(s) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
        ] {
            let sql = sql(over);
            let expected = match over.contains("ORDER BY id") {
                true => answer_of(
                    &mut connection,
                    "SELECT s FROM d.a ORDER BY id DESC LIMIT 1",
                ),
                false => last.clone(),
            };
            assert_eq!(answer_of(&mut connection, &sql), expected, "{sql}");
        }
        // More than the memory, so they are planned again for one worker.
        for function in ["COUNT(x)", "MAX(x)", "FIRST_VALUE(x)"] {
            let texts = "SELECT k, CONCAT(s, s, s, s, s, s) AS x FROM d.a";
            let values = format!("SELECT {function} OVER (PARTITION BY k) AS q FROM ({texts}) t");
            let sql = format!("SELECT COUNT(*) FROM ({values}) u WHERE q IS NOT NULL");
            let count = answer_of(&mut connection, &sql);
            assert_eq!(count, [ROWS.to_string()], "{sql}");
        }
        // Numbers of rows, with the rows behind them.
        for (over, expected) in [
            ("NTILE(7) OVER (ORDER BY s)", "7"),
            ("CUME_DIST() OVER (ORDER BY s)", "1"),
            ("PERCENT_RANK() OVER (ORDER BY s)", "1"),
            ("CUME_DIST() OVER (ORDER BY k)", "1"),
        ] {
            let sql = format!("SELECT MAX(x), MAX(s) FROM (SELECT {over} AS x, s FROM d.a) t");
            let expected = format!("{expected}\t{}", last[0]);
            assert_eq!(answer_of(&mut connection, &sql), [expected], "{sql}");
        }
    });
}

/// Where the parts of a union do not fit beside each other they run one after another.
#[test]
fn unions_of_many_parts_have_an_answer() {
    let server = filled();
    let port = server.port;
    let mut connection = connect(port);
    let parts = |part: &dyn Fn(usize) -> String, by: &str| {
        let parts: Vec<String> = (0..8).map(part).collect();
        parts.join(by)
    };
    let distinct = parts(
        &|part| format!("SELECT CONCAT(s, s, s) FROM d.a WHERE id % 8 = {part}"),
        " UNION ",
    );
    let groups = parts(
        &|part| format!("SELECT s, COUNT(*) FROM d.a WHERE id % 8 = {part} GROUP BY s"),
        " UNION ALL ",
    );
    for union in [distinct, groups] {
        let sql = format!("SELECT COUNT(*) FROM ({union}) t");
        assert_eq!(answer_of(&mut connection, &sql), [ROWS.to_string()]);
    }
}

/// The keys of the rows that a join finds go to files.
#[test]
fn updates_of_joined_tables_remember_their_rows_in_files() {
    let server = filled();
    let port = server.port;
    let mut connection = connect(port);
    connection
        .query_drop("CREATE TABLE d.twice (id INT PRIMARY KEY, a INT NOT NULL)")
        .expect("a table");
    let sql = format!(
        "INSERT INTO d.twice SELECT id, (id * 7919) % {} DIV 2 + 1 FROM d.a",
        ROWS / 2
    );
    connection.query_drop(sql).expect("rows");
    let before = answer_of(&mut connection, "SELECT SUM(k) FROM d.a");
    let before: i64 = before[0].parse().expect("a number");
    // Each row of the one table has four of the other, and is changed once.
    connection
        .query_drop("UPDATE d.a JOIN d.twice ON twice.a = a.id SET a.k = a.k + 1")
        .expect("there are files");
    assert_eq!(connection.affected_rows(), ROWS as u64 / 4);
    let after = answer_of(&mut connection, "SELECT SUM(k) FROM d.a");
    assert_eq!(after, [(before + ROWS as i64 / 4).to_string()]);
}

/// The rows that RETURNING and locking reads show wait in files until those of the table are gone, written or locked.
#[test]
fn rows_that_are_shown_at_the_end_wait_in_files() {
    let server = filled();
    let mut connection = connect(server.port);
    answer_of(&mut connection, "CREATE TABLE d.b SELECT id, s FROM d.a");
    connection.query_drop("BEGIN").expect("a transaction");
    // Each row is found twice.
    let sql = "DELETE d.a FROM d.a JOIN d.b ON b.id DIV 2 = a.id DIV 2 WHERE a.id < 60000";
    answer_of(&mut connection, sql);
    assert_eq!(connection.affected_rows(), 59_999);
    connection.query_drop("ROLLBACK").expect("the end of it");
    connection
        .query_drop("CREATE TABLE d.c (id INT PRIMARY KEY, s VARCHAR(100) NOT NULL)")
        .expect("a table");
    for sql in [
        "SELECT id, CONCAT(s, s) FROM d.a LIMIT 256000 FOR UPDATE",
        "SELECT id, CONCAT(s, s) FROM d.a ORDER BY s LIMIT 256000 FOR UPDATE",
        "INSERT INTO d.c SELECT id, s FROM d.a RETURNING id, CONCAT(s, s)",
        "REPLACE INTO d.c SELECT id, s FROM d.a RETURNING id, CONCAT(s, s)",
        "DELETE FROM d.a RETURNING id, CONCAT(s, s)",
    ] {
        let rows = || connection.query::<(usize, String), _>(sql);
        let rows = match within_memory(server.child.id(), rows) {
            // Deleted rows are versions besides, and a server that has too much may stop it.
            Err(mysql::Error::MySqlError(error))
                if error.code == 1041 && sql.starts_with("DELETE") =>
            {
                let count = answer_of(&mut connection, "SELECT COUNT(*) FROM d.a");
                assert_eq!(count, [ROWS.to_string()]);
                continue;
            }
            rows => rows.expect(sql),
        };
        assert_eq!(rows.len(), ROWS, "{sql}");
        let sum: usize = rows.iter().map(|(id, _)| id).sum();
        assert_eq!(sum, ROWS * (ROWS + 1) / 2, "{sql}");
        assert!(rows.iter().all(|(_, s)| s.len() == 144), "{sql}");
    }
    let left = "SELECT (SELECT COUNT(*) FROM d.a), (SELECT COUNT(*) FROM d.c)";
    assert_eq!(answer_of(&mut connection, left), [format!("0\t{ROWS}")]);
}

/// A huge transaction keeps little of what it has changed in memory, and does not keep others from small changes.
#[test]
fn changes_of_all_rows_and_small_ones_go_on_side_by_side() {
    let server = filled();
    let mut connection = connect(server.port);
    let mut other = connect(server.port);
    for sql in [
        "ALTER TABLE d.a ADD KEY (k), ADD KEY (s)",
        "CREATE TABLE d.small (id INT PRIMARY KEY, n INT NOT NULL)",
        "INSERT INTO d.small SELECT id, 0 FROM d.a WHERE id <= 100",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let is_over = AtomicBool::new(false);
    let small_ones = || {
        let (mut changes, mut longest) = (0, Duration::ZERO);
        while !is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            let sql = format!(
                "UPDATE d.small SET n = n + 1 WHERE id = {}",
                changes % 100 + 1
            );
            other.query_drop(&sql).expect("a small change");
            longest = longest.max(began.elapsed());
            changes += 1;
            thread::sleep(Duration::from_millis(5));
        }
        (changes, longest)
    };
    let all_at_once = || {
        thread::scope(|scope| {
            let small_ones = scope.spawn(small_ones);
            {
                let _ends = EndsAll(&is_over);
                let sql = "UPDATE d.a SET k = k + 1, s = CONCAT('y', s) ORDER BY s";
                connection.query_drop(sql).expect(sql);
            }
            small_ones.join().expect("no panic")
        })
    };
    let (changes, longest) = within_memory(server.child.id(), all_at_once);
    assert_eq!(connection.affected_rows(), ROWS as u64);
    assert_eq!(
        answer_of(&mut connection, "SELECT SUM(n) FROM d.small"),
        [changes.to_string()]
    );
    assert!(longest < MOST_WAIT, "a small change took {longest:?}");
}

/// A change of the first rows of an order finds more of them than fit in memory.
#[test]
fn many_first_rows_are_changed() {
    const MANY: u64 = 150_000;
    let server = filled();
    let mut connection = connect(server.port);
    let changes = [
        format!("UPDATE d.a SET k = -1 ORDER BY s, id LIMIT {MANY}"),
        format!("DELETE FROM d.a ORDER BY s DESC, id LIMIT {MANY}"),
    ];
    for sql in &changes {
        within_memory(server.child.id(), || connection.query_drop(sql)).expect(sql);
        assert_eq!(connection.affected_rows(), MANY, "{sql}");
    }
    let left = ROWS as u64 - MANY;
    assert_eq!(
        answer_of(&mut connection, "SELECT COUNT(*) FROM d.a WHERE k = -1"),
        [left.min(MANY).to_string()]
    );
    let locked = within_memory(server.child.id(), || {
        let sql = format!("SELECT id FROM d.a ORDER BY s, id LIMIT {left} FOR UPDATE");
        answer_of(&mut connection, &sql).len()
    });
    assert_eq!(locked as u64, left);
}

/// Texts of groups may together be longer than all memory. One group is in memory, as far as its texts are shown.
#[test]
fn long_texts_of_groups_have_an_answer_where_each_group_fits() {
    let server = filled();
    let mut connection = connect(server.port);
    connection
        .query_drop("SET group_concat_max_len = 4294967295")
        .expect("a variable");
    let packet = answer_of(&mut connection, "SELECT @@max_allowed_packet");
    let packet: usize = packet[0].parse().expect("a number");
    for (what, by, expected) in [
        ("REPEAT(s, 20)", "k % 1000", ROWS * 1441 - 1000),
        ("REPEAT(s, 20)", "k % 10", 10 * packet),
        ("REPEAT(s, 20) ORDER BY s DESC", "k % 10", 10 * packet),
        // What is distinct is sorted, which takes files.
        ("DISTINCT s, REPEAT(s, 4)", "k % 10", 10 * packet),
        ("DISTINCT s, s ORDER BY s DESC", "k % 10", 10 * packet),
    ] {
        let sql = format!(
            "SELECT SUM(LENGTH(g)) FROM \
             (SELECT {by} AS b, GROUP_CONCAT({what}) AS g FROM d.a GROUP BY b) t"
        );
        let rows = within_memory(server.child.id(), || connection.query::<usize, _>(&sql));
        assert_eq!(rows.expect(&sql), [expected], "{sql}");
    }
    // What fits has an answer.
    let sql = "SELECT SUM(LENGTH(g)) FROM \
        (SELECT GROUP_CONCAT(s) AS g FROM d.a WHERE id < 30000 GROUP BY id DIV 100) t";
    let expected = (73 * 29_999 - 300).to_string();
    assert_eq!(answer_of(&mut connection, sql), [expected], "{sql}");
}

/// Texts that are sorted in files come in their order, group by group.
#[test]
fn distinct_texts_of_groups_come_in_their_order() {
    let server = filled();
    let mut connection = connect(server.port);
    connection
        .query_drop("SET group_concat_max_len = 4294967295")
        .expect("a variable");
    for by in ["k % 7", "k % 100"] {
        let sql = format!(
            "SELECT GROUP_CONCAT(DISTINCT s ORDER BY s) FROM d.a WHERE id < 60000 GROUP BY {by}"
        );
        let groups: Vec<String> = connection.query(&sql).expect(&sql);
        for group in groups {
            assert!(group.split(',').is_sorted(), "{sql}");
        }
    }
}

/// Each of the keys, in each of the streams, took 2 MiB however few groups there were.
#[test]
fn distinct_values_of_several_texts_are_counted_in_groups() {
    let server = filled();
    let mut connection = connect(server.port);
    let sql = "SELECT id % 20, COUNT(DISTINCT s), COUNT(DISTINCT REVERSE(s)) FROM d.a \
        WHERE id <= 60000 GROUP BY 1";
    let groups = || connection.query::<(usize, usize, usize), _>(sql);
    let groups = within_memory(server.child.id(), groups).expect(sql);
    let counts: Vec<_> = groups.iter().map(|group| (group.1, group.2)).collect();
    assert_eq!(counts, [(3_000, 3_000); 20], "{sql}");
}

/// Texts of several orders and of sets of groups, and distinct values beside them, are sorted in files as well.
#[test]
fn texts_of_several_orders_and_sets_of_groups_have_an_answer() {
    let server = filled();
    let mut connection = connect(server.port);
    connection
        .query_drop("SET group_concat_max_len = 4294967295")
        .expect("a variable");
    let sql = "SELECT LENGTH(GROUP_CONCAT(DISTINCT LEFT(s, 12) ORDER BY s)), COUNT(DISTINCT s), COUNT(*) \
        FROM d.a WHERE id <= 150000 GROUP BY id % 5 WITH ROLLUP";
    let groups = || connection.query::<(usize, usize, usize), _>(sql);
    let groups = within_memory(server.child.id(), groups).expect(sql);
    let mut rows: Vec<usize> = groups.iter().map(|group| group.2).collect();
    rows.sort_unstable();
    assert_eq!(rows, [30_000, 30_000, 30_000, 30_000, 30_000, 150_000]);
    for (bytes, distinct, rows) in groups {
        assert_eq!((bytes, distinct), (13 * rows - 1, rows), "{sql}");
    }
    let sql = "SELECT GROUP_CONCAT(DISTINCT LEFT(s, 12) ORDER BY s), GROUP_CONCAT(id ORDER BY id DESC), \
        COUNT(DISTINCT s), SUM(DISTINCT id) FROM d.a WHERE id <= 100000";
    let all = || connection.query_first::<(String, String, usize, u64), _>(sql);
    let all = within_memory(server.child.id(), all)
        .expect(sql)
        .expect("a row");
    assert!(all.0.split(',').is_sorted(), "{sql}");
    let ids = all.1.split(',').map(str::parse::<u64>);
    let ids: Vec<u64> = ids.collect::<Result<_, _>>().expect(sql);
    assert!(ids.iter().copied().eq((1..=100_000).rev()), "{sql}");
    assert_eq!((all.2, all.3), (100_000, 100_000 * 100_001 / 2), "{sql}");
    // EXPLAIN ANALYZE tells of the plan that has run to its end.
    let explained = answer_of(&mut connection, &format!("EXPLAIN ANALYZE {sql}"));
    assert!(explained[0].contains("spill_count"), "{explained:?}");
}

/// The rows that a recursion has seen go to a file.
#[test]
fn recursions_remember_their_rows_in_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let mut connection = connect(port);
    connection
        .query_drop("SET cte_max_recursion_depth = 1000")
        .expect("a variable");
    // Each round finds the numbers of the round before and one thousand new ones.
    let sql = "WITH RECURSIVE thousand (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM thousand WHERE n < 1000), \
        r (n, s) AS (SELECT n, REPEAT('x', 20) FROM thousand \
        UNION SELECT n + d * 1000, s FROM r JOIN (SELECT 0 AS d UNION ALL SELECT 1) AS t WHERE n + d * 1000 <= 400000) \
        SELECT COUNT(*), COUNT(DISTINCT n), MAX(n) FROM r";
    assert_eq!(answer_of(&mut connection, sql), ["400000\t400000\t400000"]);
    terminate(&child);
}

/// Many subqueries in one statement.
#[test]
fn a_thousand_subqueries_have_an_answer() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let mut connection = connect(port);
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.b (id INT PRIMARY KEY)",
        "INSERT INTO d.b VALUES (1), (500), (900)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let items = (0..1000).map(|n| format!("(SELECT MAX(id) FROM d.b WHERE id <= {n})"));
    let sql = format!("SELECT {}", items.collect::<Vec<_>>().join(", "));
    let answer = answer_of(&mut connection, &sql);
    let values: Vec<&str> = answer[0].split('\t').collect();
    assert_eq!((values.len(), values[499], values[999]), (1000, "1", "900"));
    terminate(&child);
}

/// Each query of a nest has those in it. What is kept of a statement for the next time is bounded by its memory, not by
/// its text.
#[test]
fn nests_of_queries_leave_nothing_behind() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let nest = (0..40).fold("SELECT 1".to_string(), |inner, _| {
        format!("SELECT ({inner})")
    });
    let mut connection = connect(port);
    let process = "SHOW GLOBAL STATUS LIKE 'Process_memory_bytes'";
    let held = |connection: &mut Conn| -> u64 {
        let answer = answer_of(connection, process);
        let (_, bytes) = answer[0].split_once('\t').expect("a name and a value");
        bytes.parse().expect("a number")
    };
    let before = held(&mut connection);
    for _ in 0..2 {
        let mut connection = connect(port);
        assert_eq!(answer_of(&mut connection, &nest), ["1"]);
    }
    // The allocator gives free memory back after a while.
    let limit = Instant::now() + Duration::from_secs(60);
    while held(&mut connection) > before + (8 << 20) {
        assert!(Instant::now() < limit, "{} bytes", held(&mut connection));
        std::thread::sleep(Duration::from_millis(100));
    }
    terminate(&child);
}

/// Parsing, binding and planning are stopped before they take too much; the pool is full of pages besides.
#[test]
fn too_many_subqueries_are_refused() {
    let server = filled();
    let mut connection = connect(server.port);
    answer_of(&mut connection, "SELECT MAX(s) FROM d.a");
    let of = |count: usize, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<String>>()
    };
    let value = |n: usize| format!("(SELECT MAX(id) FROM d.a WHERE id <= {n})");
    let exists = |n: usize| format!("EXISTS (SELECT 1 FROM d.a WHERE id = x.id + {n})");
    for sql in [
        format!("SELECT {}", of(4000, &value).join(", ")),
        format!("PREPARE s FROM 'SELECT {}'", of(4000, &value).join(", ")),
        format!(
            "SELECT id FROM d.a x WHERE {}",
            of(4000, &exists).join(" OR ")
        ),
    ] {
        let refused = || error_of(connection.query_drop(&sql)).0;
        let code = within_memory(server.child.id(), refused);
        assert_eq!(code, 1041, "{}", &sql[..100]);
    }
    assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
}

/// A request that is on its way takes all memory for long ones. Others are refused, but for those of a transaction,
/// whose locks may be waited for, and pieces of parameters, which have no answer that could say so.
#[test]
fn no_piece_of_a_parameter_is_lost_for_want_of_memory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let mut root = connect(port);
    root.query_drop("SET GLOBAL query_memory_wait_timeout = 0")
        .expect("a variable");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    // The length of a request that is as long as it may be, and its first byte.
    let most: u32 = query_text(&mut root, "SELECT @@max_allowed_packet - 16")[0]
        .parse()
        .expect("a number");
    let header = [&most.to_le_bytes()[..3], &[0, COM_QUERY]].concat();
    let long = format!("SELECT '{}'", "x".repeat(20_000));
    let mut holders = Vec::new();
    wait_until("long requests are refused", || {
        // If the other request came first, this one is refused, and the next one is tried.
        let mut holder = RawClient::connect(address, 0);
        holder.send_raw(&header).expect("it is sent");
        holders.push(holder);
        match root.query_drop(&long) {
            Ok(()) => false,
            refused => error_of(refused).0 == 1041,
        }
    });
    root.query_drop("BEGIN").expect("a transaction");
    root.query_drop(&long).expect("it does not wait");
    root.query_drop("COMMIT").expect("a transaction");

    let mut client = RawClient::connect(address, 0);
    let sql = b"SELECT LENGTH(?) = 110000";
    client
        .send_command(COM_STMT_PREPARE, sql)
        .expect("it is sent");
    let prepared = client.receive_payload();
    assert_eq!(prepared[0], 0, "{prepared:02X?}");
    // The parameter, the column, and what ends each of them.
    for _ in 0..4 {
        client.receive_payload();
    }
    let id = &prepared[1..5];
    for bytes in [10_000, 100_000] {
        let piece = [id, &[0, 0], &vec![b'x'; bytes]].concat();
        client
            .send_command(COM_STMT_SEND_LONG_DATA, &piece)
            .expect("it is sent");
    }
    // No cursor, once, no NULL, and a type: BLOB.
    let execution = [id, &[0], &1_u32.to_le_bytes(), &[0, 1, 0xFC, 0]].concat();
    client
        .send_command(COM_STMT_EXECUTE, &execution)
        .expect("it is sent");
    let answer: Vec<Vec<u8>> = (0..5).map(|_| client.receive_payload()).collect();
    // Columns, a column, its end, and the row: a header, NULLs, the value.
    assert_eq!(
        (answer[0][0], answer[3][0], answer[3][2]),
        (1, 0, 1),
        "{answer:02X?}"
    );
    terminate(&child);
}

/// Sorted in memory, short and long texts lie far from one another, and each batch that is merged holds on to those of
/// many. The rows that have been sent cannot be taken back.
#[test]
fn texts_of_all_lengths_are_sorted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let mut connection = connect(port);
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.n (i INT PRIMARY KEY)",
        "INSERT INTO d.n WITH RECURSIVE r (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 399) SELECT i FROM r",
        "CREATE TABLE d.w (id INT PRIMARY KEY, t VARCHAR(200))",
        "INSERT INTO d.w SELECT x.i * 400 + y.i, IF(y.i % 4 = 0, NULL, REPEAT('t', y.i % 200)) FROM d.n x, d.n y",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    for sql in [
        "SELECT id, t FROM d.w ORDER BY t, id",
        "SELECT id, t, ROW_NUMBER() OVER (ORDER BY t, id) FROM d.w",
        "SELECT x.id, y.t FROM d.w x JOIN d.w y ON y.id = x.id ORDER BY x.t, x.id",
    ] {
        let rows = connection.query_iter(sql).and_then(|found| {
            let mut rows = 0;
            for row in found {
                row?;
                rows += 1;
            }
            Ok(rows)
        });
        match rows {
            // Known fault: on a busy machine one in five of these joins is refused, most before their first row.
            Err(mysql::Error::MySqlError(error)) if error.code == 1041 && sql.contains("JOIN") => {}
            rows => assert_eq!(rows.expect(sql), 160_000, "{sql}"),
        }
    }
    terminate(&child);
}

/// A statement that is big waits while the only place for one is taken, says so, and gives up when it was told to.
#[test]
fn big_statements_wait_for_one_another() {
    let server = filled();
    let port = server.port;
    let mut first = connect(port);
    // Until its only row comes, which takes for ever, it has the only place.
    let id = first.connection_id();
    let slow = "SELECT COUNT(*), SLEEP(100000) FROM (SELECT s, COUNT(*) FROM d.a GROUP BY s) t";
    let holds = thread::spawn(move || first.query_drop(slow));
    let running = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(1%' AND COMMAND = 'Query'";
    let mut other = connect(port);
    wait_until("the first statement runs", || {
        query_text(&mut other, running)
            .first()
            .is_some_and(|count| count != "0")
    });
    let sql = "SELECT COUNT(*) FROM (SELECT s, COUNT(*) FROM d.a GROUP BY s) t";
    let waits = thread::spawn(move || query_text(&mut connect(port), sql));
    let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Waiting for query memory'";
    wait_until("the second statement waits", || {
        query_text(&mut other, waiting) == ["1"]
    });
    other
        .query_drop("SET GLOBAL query_memory_wait_timeout = 0")
        .expect("it is a global variable");
    assert_eq!(error_of(other.query_drop(sql)).0, 1041);
    other
        .query_drop(format!("KILL QUERY {id}"))
        .expect("it runs");
    assert_eq!(error_of(holds.join().expect("no panic")).0, 1317);
    let answer = waits.join().expect("no panic");
    assert_eq!(answer, [ROWS.to_string()]);
    // The place is free again. A statement that is big twice, as a query and as a load, does not wait for itself.
    let sql = "CREATE TABLE d.g SELECT s, COUNT(*) AS n FROM d.a GROUP BY s";
    other.query_drop(sql).expect(sql);
    assert_eq!(
        query_text(&mut other, "SELECT COUNT(*) FROM d.g"),
        [ROWS.to_string()]
    );
}

/// Both workers spill what they exchange. Such a statement waited for ever now and then, and KILL did not end it.
#[test]
fn exchanges_that_spill_come_to_an_end() {
    let server = filled();
    let port = server.port;
    let mut connection = connect(port);
    let sql = "SELECT s FROM d.a WHERE id BETWEEN 100000 AND 190000 \
        UNION SELECT REVERSE(s) FROM d.a WHERE id < 100000 ORDER BY 1 LIMIT 30000";
    for _ in 0..20 {
        assert_eq!(answer_of(&mut connection, sql).len(), 30_000);
    }
}

/// A server without [`Filled`]'s table, and a connection to it.
fn empty() -> (TempDir, Child, u16, Conn) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let mut connection = connect(port);
    connection
        .query_drop("CREATE DATABASE d")
        .expect("a database");
    (directory, child, port, connection)
}

/// The rows of a batch are as many as their width allows, whatever the operators are.
#[test]
fn joins_and_sorts_of_wide_rows_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    let columns: Vec<String> = (0..150).map(|column| format!("c{column} TEXT")).collect();
    let values: Vec<String> = (0..150)
        .map(|column| format!("REPEAT('x', {})", column * 10))
        .collect();
    for sql in [
        format!("CREATE TABLE d.w (id INT PRIMARY KEY, {})", columns.join(", ")),
        format!(
            "INSERT INTO d.w WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100) \
             SELECT n, {} FROM r",
            values.join(", ")
        ),
        "CREATE TABLE d.l (id INT PRIMARY KEY, a TEXT, b TEXT)".to_string(),
        "INSERT INTO d.l SELECT id, REPEAT('a', 50000), CONCAT(REPEAT('b', 50000), id % 7) FROM d.w"
            .to_string(),
        "INSERT INTO d.l SELECT id + 100, a, b FROM d.l".to_string(),
    ] {
        connection.query_drop(&sql).expect(&sql);
    }
    within_memory(child.id(), || {
        // 300 columns; what is sorted or compared is more than there is memory.
        for sql in [
            "SELECT * FROM d.w a JOIN d.w b ON a.id <> b.id LIMIT 1000",
            "SELECT * FROM d.w a JOIN d.w b ON a.id < b.id ORDER BY a.c149 LIMIT 3",
            "SELECT DISTINCT * FROM d.w a JOIN d.w b ON a.id <> b.id",
        ] {
            let rows = connection.query_iter(sql);
            let ended: mysql::Result<Vec<()>> =
                rows.and_then(|rows| rows.map(|row| row.map(drop)).collect());
            if ended.is_err() {
                assert_eq!(error_of(ended).0, 1041, "{sql}");
            }
        }
        // 20 MB in 200 rows.
        for sql in [
            "SELECT id, RIGHT(b, 1), b FROM d.l ORDER BY a, b DESC, id",
            "SELECT id, RIGHT(b, 1), b, ROW_NUMBER() OVER (ORDER BY b DESC, id) FROM d.l ORDER BY b DESC, id",
        ] {
            let rows = connection.query_iter(sql).expect(sql);
            let keys: Vec<(u32, u32)> = rows
                .map(|row| {
                    let row = row.expect(sql);
                    let id: u32 = row.get("id").expect("a number");
                    let digit: u32 = row.get(1).expect("a digit");
                    (9 - digit, id)
                })
                .collect();
            assert_eq!(keys.len(), 200, "{sql}");
            assert!(keys.is_sorted(), "{sql}");
        }
    });
    terminate(&child);
}

/// A list of expressions is bound and planned once.
#[test]
fn lists_of_many_expressions_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    connection
        .query_drop("CREATE TABLE d.o SELECT 1 AS id")
        .expect("a table");
    let items: Vec<String> = (0..10_000).map(|item| format!("{item}+id")).collect();
    let sql = format!("SELECT {} FROM d.o", items.join(","));
    within_memory(child.id(), || {
        let row: Option<Row> = connection.query_first(&sql).expect("a row");
        let last: Option<u32> = row.and_then(|row| row.get(9_999));
        assert_eq!(last, Some(10_000));
    });
    terminate(&child);
}

/// Statements that take much in one step, each twice. Those that do not fit are refused.
fn take_much_at_once(connection: &mut Conn) {
    let list = |count: usize, by: &str, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<String>>().join(by)
    };
    let nest = (0..27).fold("id".to_string(), |inner, _| {
        format!("HEX(CONCAT({inner}, 1))")
    });
    let statements = [
        format!(
            "SELECT COUNT(*) FROM d.a WHERE {}",
            list(20_000, " OR ", &|n| format!("(k * {n} = {n})"))
        ),
        format!(
            "SELECT COUNT(*) FROM d.a WHERE k IN ({})",
            list(200_000, ",", &|n| n.to_string())
        ),
        format!(
            "SELECT {} FROM d.a LIMIT 1",
            list(20_000, ",", &|n| format!("{n} + id"))
        ),
        format!("SELECT SUM(LENGTH({nest})) FROM d.a WHERE id <= 1000"),
        format!(
            "SELECT {} FROM d.a o LIMIT 1",
            list(900, ",", &|n| format!(
                "(SELECT MAX(k + {n}) FROM d.a WHERE id <= o.id)"
            ))
        ),
    ];
    for sql in statements.iter().flat_map(|sql| [sql, sql]) {
        if let Err(error) = connection.query_drop(sql) {
            assert_eq!(error_of::<()>(Err(error)).0, 1041, "{}", &sql[..60]);
        }
    }
}

/// Whoever is about to take much asks for room before. The caches have given it back then.
#[test]
fn what_takes_much_at_once_stays_within_memory() {
    let server = filled();
    let mut connection = connect(server.port);
    answer_of(&mut connection, "SELECT MAX(s) FROM d.a");
    within_memory(server.child.id(), || take_much_at_once(&mut connection));
    assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
}

/// Clients that insert rows, and change the same few at the same time: none of their statements takes much.
fn write_at_the_same_time(port: u16, clients: usize) {
    let mut connection = connect(port);
    for sql in [
        "SET GLOBAL max_connections = 2000",
        "CREATE TABLE d.written (id INT AUTO_INCREMENT PRIMARY KEY, k INT, s VARCHAR(100), KEY (k))",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let rows: Vec<String> = (0..50)
        .map(|k| format!("({k}, '{}')", "x".repeat(80)))
        .collect();
    let insert = format!("INSERT INTO d.written (k, s) VALUES {}", rows.join(","));
    let update = "UPDATE d.written SET k = k + 1 WHERE k < 20 LIMIT 5";
    let all: Vec<Conn> = (0..clients).map(|_| connect(port)).collect();
    thread::scope(|scope| {
        for mut client in all {
            let insert = insert.as_str();
            scope.spawn(move || {
                for _ in 0..5 {
                    client.query_drop(insert).expect("an insert");
                    // Deadlocks are part of it.
                    if let Err(error) = client.query_drop(update) {
                        assert_eq!(error_of::<()>(Err(error)).0, 1213);
                    }
                }
            });
        }
    });
    let count = answer_of(&mut connection, "SELECT COUNT(*) FROM d.written");
    assert_eq!(count, [(clients * 5 * 50).to_string()]);
}

/// What threads keep for their next work they give back while they wait, and the pool lends pages.
#[test]
fn many_clients_that_write_stay_within_memory() {
    let (_directory, child, port, _connection) = empty();
    within_memory(child.id(), || write_at_the_same_time(port, 200));
    terminate(&child);
}

/// A session and its thread take memory, whatever they do.
#[test]
fn as_many_clients_are_let_in_as_there_is_memory_for() {
    let (_directory, child, port, mut connection) = empty();
    let most = (MEMORY_MIB << 20) / 4 * 3 / (112 << 10);
    connection
        .query_drop("SET GLOBAL max_connections = 2000")
        .expect("it becomes what there is memory for");
    let warnings = answer_of(&mut connection, "SHOW WARNINGS");
    assert_eq!(
        warnings,
        ["Warning\t1292\tTruncated incorrect max_connections value: '2000'"]
    );
    let set = answer_of(&mut connection, "SELECT @@max_connections");
    assert_eq!(set, [most.to_string()]);
    within_memory(child.id(), || {
        let mut clients: Vec<Conn> = (1..most).map(|_| connect(port)).collect();
        for client in &mut clients {
            assert_eq!(answer_of(client, "SELECT 1"), ["1"]);
        }
    });
    terminate(&child);
}

/// Transactions lock rows beside each other, so that none of them can lock the table instead.
#[test]
fn rows_are_locked_as_far_as_there_is_memory() {
    const CHUNK: usize = 2_000;
    let (_directory, child, port, mut connection) = empty();
    for sql in [
        "CREATE TABLE d.locked (id INT PRIMARY KEY)",
        "SET cte_max_recursion_depth = 200000",
        "INSERT INTO d.locked WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 150000) \
         SELECT n FROM r",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let limit: usize = connection
        .query_first("SELECT @@max_row_locks")
        .expect("a variable")
        .expect("a row");
    assert_eq!(limit, (MEMORY_MIB << 20) / 4 / 256);
    let mut owners = [connect(port), connect(port)];
    for owner in &mut owners {
        for sql in ["SET transaction_isolation = 'READ-COMMITTED'", "BEGIN"] {
            owner.query_drop(sql).expect(sql);
        }
    }
    within_memory(child.id(), || {
        let mut locked = 0;
        let error = loop {
            let owner = &mut owners[locked / CHUNK % 2];
            let sql = format!(
                "SELECT COUNT(*) FROM d.locked WHERE id BETWEEN {} AND {} FOR UPDATE",
                locked + 1,
                locked + CHUNK
            );
            match owner.query_drop(sql) {
                Ok(()) => locked += CHUNK,
                Err(error) => break error_of::<()>(Err(error)).0,
            }
        };
        assert_eq!((error, locked), (1206, limit / CHUNK * CHUNK));
    });
    for owner in &mut owners {
        owner.query_drop("ROLLBACK").expect("the locks go");
    }
    connection
        .query_drop("DELETE FROM d.locked")
        .expect("nobody has locks");
    terminate(&child);
}

/// Each waits for others before its text is read, and keeps nothing when it has been answered.
#[test]
fn long_statements_of_many_clients_have_an_answer() {
    const CLIENTS: usize = 30;
    const TEXT_BYTES: usize = 1_900_000;
    let (_directory, child, port, _connection) = empty();
    let process = child.id();
    let clients: Vec<Conn> = (0..CLIENTS).map(|_| connect(port)).collect();
    let clients: Vec<Conn> = within_memory(process, || {
        thread::scope(|scope| {
            let running: Vec<_> = clients
                .into_iter()
                .map(|mut client| {
                    scope.spawn(move || {
                        let sql = format!("SELECT LENGTH('{}')", "x".repeat(TEXT_BYTES));
                        let length: Option<usize> = client.query_first(sql).expect("an answer");
                        assert_eq!(length, Some(TEXT_BYTES));
                        client
                    })
                })
                .collect();
            let ended = running.into_iter().map(|client| client.join());
            ended.map(|client| client.expect("no panic")).collect()
        })
    });
    wait_until("the memory is given back", || resident_mib(process) < 40);
    drop(clients);
    terminate(&child);
}

/// Statements that take much before they run wait for one another, and small ones do not wait for them.
#[test]
fn many_clients_whose_statements_are_planned_stay_within_memory() {
    let (_directory, child, port, mut connection) = empty();
    let process = child.id();
    let mut nest = "SELECT 1 AS n".to_string();
    for level in 0..25 {
        nest = format!("SELECT t{level}.n + 1 AS n FROM ({nest}) t{level}");
    }
    let list = |count: usize, one: &dyn Fn(usize) -> String, between: &str| {
        let all: Vec<String> = (0..count).map(one).collect();
        all.join(between)
    };
    let of_items = format!("SELECT {}", list(4000, &|n| format!("{n}+1"), ", "));
    let of_unions = list(700, &|n| format!("SELECT {n} + 1"), " UNION ALL ");
    let of_terms = format!(
        "SELECT COUNT(*) FROM d.few WHERE {}",
        list(20_000, &|n| format!("k = {n}"), " OR ")
    );
    let of_members = format!(
        "SELECT COUNT(*) FROM d.few WHERE k IN ({})",
        list(100_000, &|n| n.to_string(), ",")
    );
    for sql in [
        // The machine may be busy with other tests.
        "SET GLOBAL query_memory_wait_timeout = 600",
        "CREATE TABLE d.few (id INT PRIMARY KEY, k INT)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Waiting for query memory'";
    let mut have_waited = false;
    for (sql, clients, least_answered) in [
        (of_items, 60, 31),
        (of_unions, 60, 31),
        (nest, 100, 51),
        (of_members, 60, 31),
        // One of them takes more than there is for all. It is refused, and so may be all.
        (of_terms, 60, 0),
    ] {
        let clients: Vec<Conn> = (0..clients).map(|_| connect(port)).collect();
        let answered = within_memory(process, || {
            thread::scope(|scope| {
                let sql = sql.as_str();
                let running: Vec<_> = clients
                    .into_iter()
                    .map(|mut client| {
                        scope.spawn(move || match client.query_drop(sql) {
                            Ok(()) => true,
                            Err(error) => {
                                assert_eq!(error_of::<()>(Err(error)).0, 1041);
                                false
                            }
                        })
                    })
                    .collect();
                while running.iter().any(|client| !client.is_finished()) {
                    have_waited |= answer_of(&mut connection, waiting) != ["0"];
                    thread::sleep(Duration::from_millis(10));
                }
                let ended = running.into_iter().map(|client| client.join());
                ended
                    .filter(|is_answered| *is_answered.as_ref().expect("no panic"))
                    .count()
            })
        });
        assert!(answered >= least_answered, "{answered}: {}", &sql[..80]);
    }
    assert!(have_waited, "they wait for one another");
    wait_until("the memory is given back", || resident_mib(process) < 40);
    terminate(&child);
}

/// Each of them is small when it begins, and each wants to be big. There is no room for all of them.
#[test]
fn many_groups_at_once_are_all_answered() {
    const CLIENTS: usize = 40;
    let filled = filled();
    let mut root = connect(filled.port);
    root.query_drop("SET GLOBAL query_memory_wait_timeout = 3600")
        .expect("a variable");
    let clients: Vec<Conn> = (0..CLIENTS).map(|_| connect(filled.port)).collect();
    let sql = "SELECT s, COUNT(*) FROM d.a WHERE id < 40000 GROUP BY s ORDER BY 2 DESC, 1 LIMIT 3";
    let expected = query_text(&mut root, sql);
    within_memory(filled.child.id(), || {
        thread::scope(|scope| {
            for mut client in clients {
                let expected = &expected;
                scope.spawn(move || assert_eq!(query_text(&mut client, sql), *expected));
            }
        });
    });
}

/// Variables, prepared statements and parameters of all sessions share one limit.
#[test]
fn what_sessions_keep_has_a_limit() {
    let (_directory, child, port, mut connection) = empty();
    let limit: Option<usize> = connection
        .query_first("SELECT @@session_memory")
        .expect("a variable");
    assert_eq!(limit, Some(MEMORY_MIB << 17));
    let mut clients = Vec::new();
    let refused = within_memory(child.id(), || {
        (0..20).find_map(|client| {
            let mut client_connection = connect(port);
            let sql = format!("SET @v{client} = REPEAT('x', 1000000)");
            let set = client_connection.query_drop(sql);
            clients.push(client_connection);
            set.err()
        })
    });
    let refused = refused.expect("more than there may be");
    assert!(refused.to_string().contains("session_memory"), "{refused}");
    assert_eq!((error_of::<()>(Err(refused)).0, clients.len()), (1041, 9));
    // What a client has kept is free when it is gone, or has set its variables to less.
    clients[0].query_drop("SET @v0 = 1").expect("less");
    let text = format!("SELECT '{}'", "x".repeat(800_000));
    let statement = connection.prep(&text).expect("there is room again");
    assert_eq!(error_of(connection.prep(text + " ")).0, 1041);
    connection.close(statement).expect("it is known");
    drop(clients);
    wait_until("the variables are gone", || {
        connection
            .query_drop("SET @v = REPEAT('x', 2000000)")
            .is_ok()
            && connection
                .query_drop("SET @w = REPEAT('x', 2000000)")
                .is_ok()
    });
    terminate(&child);
}
