//! docs/tutorial.md, run as it stands there: its commands are one script, and what it shows of an answer is compared.
//!
//! The old server is a second Sheaf, whose dump is MySQL's. The pages of the documentation are looked at as well: each
//! is in the book, and their links lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clients::installed;
use crate::command_line::{serve_with, sheaf, stdout_of, terminate};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// A command of the page, and the answer that the page shows of it.
struct Step {
    command: String,
    shown: Option<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            continue;
        };
        let block = lines.by_ref().take_while(|line| *line != "```");
        let block: String = block.flat_map(|line| [line, "\n"]).collect();
        match (kind, steps.last_mut()) {
            ("sh", _) => steps.push(Step {
                command: block,
                shown: None,
            }),
            ("text", Some(step)) => step.shown = Some(block),
            (other, _) => panic!("a block of {other}: the test knows sh, and text behind it"),
        }
    }
    steps
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn the_tutorial_does_what_it_says() {
    if !installed("mariadb", &["mariadb", "--version"])
        || !installed("mariadb-dump", &["mariadb-dump", "--version"])
    {
        return;
    }
    let page = fs::read_to_string(docs().join("tutorial.md")).expect("the page is there");
    let steps = steps(&page);
    assert!(steps.len() > 10);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let old_data = directory.path().join("old");
    let (mut old, old_port) = serve_with(&old_data, &[]);
    let new_port = free_port();
    let work = directory.path().join("work");
    fs::create_dir(&work).expect("a folder");
    let mut script =
        String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n");
    for (number, step) in steps.iter().enumerate() {
        let command = step
            .command
            .replace("mariadb -h", "mariadb --no-defaults -h");
        let command = command.replace("mariadb-dump -h", "mariadb-dump --no-defaults -h");
        let command = command.replace("-P 3306", &format!("-P {old_port}"));
        let command = command.replace("3307", &new_port.to_string());
        script += &format!("{{\n{command}}} > ../{number}.out\n");
    }
    // The page says `sheaf`.
    let program = PathBuf::from(sheaf().get_program());
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = program.parent().expect("a folder").display();
    let ran = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&work)
        .env("PATH", format!("{folder}:{path}"))
        .output()
        .expect("bash runs");
    let server_log = fs::read_to_string(work.join("sheaf.log")).unwrap_or_default();
    assert!(
        ran.status.success(),
        "{}\n{server_log}",
        String::from_utf8_lossy(&ran.stderr)
    );
    stdout_of(&ran);
    for (number, step) in steps.iter().enumerate() {
        if let Some(shown) = &step.shown {
            let answer = fs::read_to_string(directory.path().join(format!("{number}.out")));
            assert_eq!(&answer.expect("an answer"), shown, "{}", step.command);
        }
    }
    terminate(&old);
    old.wait().expect("the process is ours");
}

/// The pages of a folder, with their folders.
fn pages(folder: &Path, inside: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = format!("{inside}{}", name.expect("a plain name"));
        if path.is_dir() {
            pages(&path, &format!("{name}/"), found);
        } else if name.ends_with(".md") {
            found.insert(name);
        }
    }
}

/// Targets of the links of a page, without those into the network and without what is behind `#`.
fn links(page: &str) -> Vec<String> {
    let parts = page.split("](").skip(1);
    let targets = parts.filter_map(|part| part.split_once(')').map(|(target, _)| target));
    let targets = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    let targets = targets.filter(|target| !target.contains(char::is_whitespace));
    let targets = targets.map(|target| target.split('#').next().unwrap_or_default().to_string());
    targets.filter(|target| !target.is_empty()).collect()
}

#[test]
fn each_page_is_in_the_book_and_its_links_lead_somewhere() {
    let mut all = BTreeSet::new();
    pages(&docs(), "", &mut all);
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).expect("a table of contents");
    let listed = links(&summary);
    let once: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    assert!(all.remove("SUMMARY.md"));
    assert_eq!(once, all);
    let mut missing = Vec::new();
    for page in &all {
        let path = docs().join(page);
        let text = fs::read_to_string(&path).expect("a page");
        let folder = path.parent().expect("a folder");
        // Code has brackets, too.
        let text: String = text.split("```").step_by(2).collect();
        for link in links(&text) {
            if !folder.join(&link).exists() {
                missing.push(format!("{page}: {link}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
