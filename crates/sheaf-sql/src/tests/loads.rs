//! LOAD DATA.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Bench, Collected, run};
use crate::EngineOptions;
use crate::error::Result;

fn load(bench: &mut Bench, file: &str, options: &str) -> Result<Collected> {
    let mut sink = Collected {
        files: vec![("f".into(), file.as_bytes().to_vec())],
        ..Collected::default()
    };
    bench.session.execute(
        &format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE t {options}"),
        &mut sink,
    )?;
    Ok(sink)
}

#[test]
fn a_file_fills_an_empty_table_and_adds_to_a_filled_one() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c DATE, KEY (b))");
    let loaded = load(
        &mut bench,
        "2|two|2024-02-29|\n1|one|\\N|\n",
        "FIELDS TERMINATED BY '|' LINES TERMINATED BY '|\\n'",
    );
    let ok = loaded.expect("it fits").ok;
    assert_eq!(ok.info, "Records: 2  Deleted: 0  Skipped: 0  Warnings: 0");
    assert_eq!(ok.affected_rows, 2);
    let loaded = load(
        &mut bench,
        "a,b,c\n\"3\",\"th,ree\",2024-01-01\n",
        "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' IGNORE 1 LINES",
    );
    assert_eq!(loaded.expect("it fits").ok.affected_rows, 1);
    assert_eq!(
        bench.table_rows("t"),
        ["1|one|NULL", "2|two|2024-02-29", "3|th,ree|2024-01-01"]
    );
    assert_eq!(bench.rows("CHECK TABLE t"), ["test.t|check|status|OK"]);
}

#[test]
fn a_terminator_at_the_end_of_a_line_is_no_field() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10))");
    let loaded = load(&mut bench, "1|x|\n2|y|\n", "FIELDS TERMINATED BY '|'").expect("it fits");
    assert_eq!((loaded.ok.affected_rows, loaded.warnings), (2, 0));
}

#[test]
fn columns_variables_and_set() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10) DEFAULT 'd', c INT)");
    load(&mut bench, "5\tx\t1\n", "(@n, @skipped, a) SET c = 40 + 2").expect("it fits");
    assert_eq!(bench.table_rows("t"), ["1|d|42"]);
    assert_eq!(
        load(&mut bench, "1\n", "(nowhere)")
            .map(|_| ())
            .map_err(|error| error.code),
        Err(1054)
    );
    assert_eq!(
        load(&mut bench, "1\n", "(a, a)")
            .map(|_| ())
            .map_err(|error| error.code),
        Err(1110)
    );
}

#[test]
fn local_files_are_lenient_and_server_files_are_not() {
    let files = tempfile::tempdir().expect("a directory");
    std::fs::write(files.path().join("short"), "1\tx\n2\n").expect("written");
    std::fs::write(files.path().join("long"), "1\tx\ty\n").expect("written");
    std::fs::write(files.path().join("wrong"), "1\tx\nq\ty\n").expect("written");
    let mut bench = Bench::with_options(EngineOptions {
        secure_file_priv: Some(files.path().to_path_buf()),
        ..EngineOptions::default()
    });
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10))");
    assert_eq!(bench.error("LOAD DATA INFILE 'short' INTO TABLE t"), 1261);
    assert_eq!(bench.error("LOAD DATA INFILE 'long' INTO TABLE t"), 1262);
    assert_eq!(bench.error("LOAD DATA INFILE 'wrong' INTO TABLE t"), 1366);
    assert_eq!(bench.error("LOAD DATA INFILE 'missing' INTO TABLE t"), 29);
    assert_eq!(
        bench.error("LOAD DATA INFILE '/etc/passwd' INTO TABLE t"),
        1290
    );
    assert!(
        bench.table_rows("t").is_empty(),
        "nothing of the failed loads remains"
    );
    bench.ok("INSERT INTO t VALUES (9, 'there')");
    assert_eq!(bench.error("LOAD DATA INFILE 'wrong' INTO TABLE t"), 1366);
    assert_eq!(bench.table_rows("t"), ["9|there"]);
    let loaded = load(&mut bench, "1\tx\ty\n2\n", "").expect("lenient");
    assert_eq!((loaded.ok.affected_rows, loaded.warnings), (2, 2));
    assert_eq!(bench.table_rows("t"), ["1|x", "2|NULL", "9|there"]);
    let mut closed = Bench::new();
    closed.ok("CREATE TABLE t (a INT)");
    assert_eq!(closed.error("LOAD DATA INFILE 'f' INTO TABLE t"), 1290);
    run(&mut closed.session, "SET GLOBAL local_infile = 0").expect("set");
    assert_eq!(
        load(&mut closed, "1\n", "")
            .map(|_| ())
            .map_err(|error| error.code),
        Err(3948)
    );
}

#[test]
fn what_a_file_does_not_have_is_null_or_zero() {
    let mut bench = Bench::new();
    bench.ok(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT DEFAULT 7, d VARCHAR(5) DEFAULT 'x', \
         e INT DEFAULT (3), f DATETIME DEFAULT CURRENT_TIMESTAMP, \
         g ENUM('a', 'b') NOT NULL DEFAULT 'b', h TIMESTAMP NOT NULL DEFAULT '2020-01-01')",
    );
    let loaded = load(&mut bench, "1\n2\t5\t6\ty\n", "").expect("lenient");
    assert_eq!((loaded.ok.affected_rows, loaded.warnings), (2, 11));
    assert_eq!(
        bench.rows("SELECT a, b, c, d, e, f, g + 0, h > '2024-01-01' FROM t ORDER BY a"),
        ["1|NULL|0||0|NULL|0|1", "2|5|6|y|0|NULL|0|1"]
    );
    // A variable becomes NULL without a warning.
    let loaded = load(&mut bench, "3\n", "(a, @b) SET b = IFNULL(@b, 9)").expect("it fits");
    assert_eq!((loaded.ok.affected_rows, loaded.warnings), (1, 0));
    assert_eq!(bench.rows("SELECT b FROM t WHERE a = 3"), ["9"]);
}

#[test]
fn the_word_null_is_null_where_fields_may_be_enclosed() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10))");
    load(&mut bench, "1\tNULL\n", "").expect("it fits");
    load(&mut bench, "2\tNULL\n", "FIELDS ESCAPED BY ''").expect("it fits");
    load(&mut bench, "3\tNULL\n", "FIELDS ENCLOSED BY '\"'").expect("it fits");
    load(&mut bench, "4\t\"NULL\"\n", "FIELDS ENCLOSED BY '\"'").expect("it fits");
    assert_eq!(
        bench.rows("SELECT a, b IS NULL FROM t ORDER BY a"),
        ["1|0", "2|0", "3|1", "4|0"]
    );
}

#[test]
fn a_pipe_is_read_as_it_is_written_and_can_be_given_up() {
    let files = tempfile::tempdir().expect("a directory");
    let pipe = files.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is there").success());
    let mut bench = Bench::with_options(EngineOptions {
        secure_file_priv: Some(files.path().to_path_buf()),
        ..EngineOptions::default()
    });
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY)");
    // Opening it waits for the reader.
    let writer = || OpenOptions::new().write(true).open(&pipe);
    let pause = || std::thread::sleep(Duration::from_millis(20));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = writer().expect("a reader");
            for part in ["1\n2", "\n", "3"] {
                writer.write_all(part.as_bytes()).expect("a reader");
                pause();
            }
        });
        bench.ok("LOAD DATA INFILE 'pipe' INTO TABLE t");
    });
    assert_eq!(bench.table_rows("t"), ["1", "2", "3"]);
    // There is no writer, or one that writes nothing.
    for is_written in [false, true] {
        let (handle, done) = (bench.session.handle(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _writer = is_written.then(writer);
                while !done.load(Ordering::Relaxed) {
                    pause();
                    handle.cancel();
                }
            });
            let ended = bench.run("LOAD DATA INFILE 'pipe' INTO TABLE t");
            done.store(true, Ordering::Relaxed);
            assert_eq!(ended.map(|_| ()).map_err(|error| error.code), Err(1317));
        });
    }
    assert_eq!(bench.table_rows("t"), ["1", "2", "3"]);
    // A late kill has ended with its statement.
    assert_eq!(bench.error("LOAD DATA INFILE 'absent' INTO TABLE t"), 29);
}

#[test]
fn a_file_has_no_fields_for_invisible_columns() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT DEFAULT 7 INVISIBLE, c INT)");
    let all = "SELECT a, b, c FROM t ORDER BY a";
    // Into an empty table, and into a filled one.
    for (file, expected) in [("1\t2\n", &["1|7|2"][..]), ("3\t4\n", &["1|7|2", "3|7|4"])] {
        let loaded = load(&mut bench, file, "").expect("it fits");
        assert_eq!((loaded.ok.affected_rows, loaded.warnings), (1, 0));
        assert_eq!(bench.rows(all), expected);
    }
    load(&mut bench, "5\t6\n", "(a, b)").expect("it fits");
    assert_eq!(bench.rows(all), ["1|7|2", "3|7|4", "5|6|NULL"]);
}
