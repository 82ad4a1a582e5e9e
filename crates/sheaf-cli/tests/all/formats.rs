//! Directories that older programs have written: each is opened, checked, read and changed.
//!
//! `tests/formats/` has one for each version of the data file and the log that this program opens. Its definitions have
//! all formats of the catalog, and its last changes stand in the log alone, since its server was killed.
//! docs/upgrades.md says what is promised.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::command_line::{check, sheaf, stdout_of};

/// Bytes of a control block, of which the log has two at its beginning, and where its version stands.
const CONTROL_BLOCK_BYTES: u64 = 4096;
const LOG_VERSION_AT: u64 = 12;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

fn text_of(file: &str) -> String {
    fs::read_to_string(folder().join(file)).expect("the file is there")
}

/// The directory in an archive.
fn unpacked(name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(folder().join(format!("{name}.tar.gz")))
        .arg("-C")
        .arg(directory.path())
        .status();
    assert!(unpacked.expect("tar runs").success());
    let data = directory.path().join(name);
    (directory, data)
}

fn sql(data: &Path, script: &str) -> Output {
    let mut child = sheaf()
        .args(["sql", "--memory", "64M", "--data-dir"])
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sheaf runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(script.as_bytes()).expect("sheaf reads it");
    drop(input);
    child.wait_with_output().expect("sheaf ends")
}

/// Names of the archives.
fn archives() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("the folder is there");
    let names = files.filter_map(|file| {
        let name = file.expect("an entry").file_name();
        Some(name.to_str()?.strip_suffix(".tar.gz")?.to_string())
    });
    names.collect()
}

#[test]
fn directories_of_older_programs_are_opened_read_and_changed() {
    let archives = archives();
    assert!(archives.len() >= 2, "{archives:?}");
    for name in archives {
        let (_directory, data) = unpacked(&name);
        let checked = stdout_of(&check(&data));
        assert!(checked.contains("no problem found"), "{name}: {checked}");
        let read = stdout_of(&sql(&data, &text_of("read.sql")));
        assert_eq!(read, text_of("read.txt"), "{name}");
        let changed = sql(
            &data,
            "USE shop; INSERT INTO orders (customer_id, price) VALUES (2, 5); UPDATE shaped SET added = a; \
             ALTER TABLE shaped ADD COLUMN more INT DEFAULT 9; SELECT * FROM shaped; SELECT MAX(id) FROM orders;",
        );
        let expected =
            "a\tkept\tadded\tmore\n1\t101\t1\t9\n2\t201\t2\t9\n3\t301\t3\t9\nMAX(id)\n4\n";
        assert_eq!(stdout_of(&changed), expected, "{name}");
        let checked = stdout_of(&check(&data));
        assert!(checked.contains("no problem found"), "{name}: {checked}");
    }
}

#[test]
fn a_log_of_a_newer_program_is_refused_by_name() {
    let (_directory, data) = unpacked("data-3-log-4");
    let log = data.join("sheaf.log");
    let mut file = File::options().write(true).open(&log).expect("a log");
    for block in 0..2 {
        let at = block * CONTROL_BLOCK_BYTES + LOG_VERSION_AT;
        file.seek(SeekFrom::Start(at)).expect("inside of the file");
        file.write_all(&99_u32.to_le_bytes()).expect("written");
    }
    drop(file);
    let before = fs::read(&log).expect("a log");
    for refused in [check(&data), sql(&data, "SELECT 1")] {
        assert!(!refused.status.success());
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            said.contains("the format of the log has version 99"),
            "{said}"
        );
    }
    assert!(
        before == fs::read(&log).expect("a log"),
        "the log was changed"
    );
}
