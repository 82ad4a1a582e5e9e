//! What programs that read binary logs say of a file of ours.

use std::io::Write as _;
use std::process::{Command, Output};

use crate::cases::{self, file_of};

/// What a program says of a file, or `None` if it is not installed.
fn run(program: &str, file: &std::path::Path) -> Option<Output> {
    let mut command = Command::new(program);
    command
        .args(["--base64-output=decode-rows", "-vv"])
        .arg(file);
    match command.output() {
        Ok(output) => Some(output),
        Err(_) => {
            // Past the capture of the test's output: it is to be seen that nothing was tested.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {program} is not installed");
            None
        }
    }
}

#[test]
fn mysqlbinlog_reads_what_we_write() {
    // MariaDB's does not know MySQL's JSON and stops there.
    let mut cases = cases::all();
    cases.retain(|case| !case.name.contains("documents"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("binlog.000001");
    std::fs::write(&path, file_of(&cases)).unwrap();
    for program in ["mysqlbinlog", "mariadb-binlog"] {
        let Some(output) = run(program, &path) else {
            continue;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}: {errors}");
        for case in &cases {
            let rows = said
                .matches(&format!(
                    "### INSERT INTO `{}`.`{}`",
                    cases::DATABASE,
                    case.name
                ))
                .count();
            assert_eq!(rows, case.rows.len(), "{program}: {}\n{errors}", case.name);
        }
        for value in ["### @4='häß'", "### @3=12345678.90", "### @2='1970:01:01'"] {
            assert!(
                said.replace("   @", " @").contains(value),
                "{program}: no {value}"
            );
        }
    }
}
