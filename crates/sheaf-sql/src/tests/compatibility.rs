//! Runs the statements of docs/compatibility.md, so that the page stays true.

use super::*;

/// The rows of tables whose first column is `statement`: a statement and what Sheaf answers.
fn differences(page: &str) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut is_about_statements = false;
    for line in page.lines() {
        let Some(cells) = line.strip_prefix("| ") else {
            is_about_statements &= line.starts_with("|--");
            continue;
        };
        if cells.starts_with("statement |") {
            is_about_statements = true;
        } else if is_about_statements {
            let (statement, rest) = cells
                .strip_prefix('`')
                .and_then(|cells| cells.split_once("` | "))
                .unwrap_or_else(|| panic!("a statement in backquotes: {line}"));
            let (answer, _) = rest.split_once(" | ").expect("a third column");
            rows.push((statement.to_string(), answer.to_string()));
        }
    }
    rows
}

#[test]
fn the_page_of_compatibility_says_what_happens() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    let rows = differences(&std::fs::read_to_string(path).expect("the page"));
    assert!(rows.len() > 50, "{} statements were found", rows.len());
    let mut bench = Bench::new();
    bench
        .run(
            "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20)); CREATE TABLE d (day DATE);
             INSERT INTO t VALUES (1, 'a'), (2, 'b'); CREATE VIEW v AS SELECT * FROM t",
        )
        .expect("tables");
    let mut wrong = Vec::new();
    for (statement, expected) in rows {
        let answer = match bench.run(&statement) {
            Err(error) => format!("error {}", error.code),
            Ok(found) => match found.rows.first() {
                Some(value) => value.clone(),
                None => "no rows".to_string(),
            },
        };
        if answer != expected {
            wrong.push(format!("{statement}: {answer}, and not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
