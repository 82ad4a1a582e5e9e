//! What documents name is there. It stands in the lowest crate because it builds in seconds there.
//!
//! Names of files and folders in backticks, and the targets of links. A name may be short, as `tree/search.rs` is: some
//! file of the repository ends like that.

use std::fs;
use std::path::{Path, PathBuf};

/// What is named and is not in the repository: folders of a data directory.
const ELSEWHERE: &[&str] = &["temp/"];

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    crates.join("..").canonicalize().expect("the repository")
}

/// The files of a folder with its folders, as paths below the root.
fn add_files(folder: &Path, below: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let own = format!("{below}/{name}");
        if !path.is_dir() {
            found.push(own);
        } else if name != "target" && name != ".git" {
            found.push(format!("{own}/"));
            add_files(&path, &own, found);
        }
    }
}

fn documents() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).expect("a folder");
    let crates = crates.map(|entry| entry.expect("an entry").path());
    let folders = [root(), root().join("docs")].into_iter().chain(crates);
    let folders: Vec<PathBuf> = folders.collect();
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

/// Whether what stands in backticks is the name of a file or of a folder.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let endings = [".rs", ".md", ".txt", ".toml", ".slt", "/"];
    text.len() > 1
        && !text.starts_with(['/', '.', '-'])
        && text.chars().all(plain)
        && endings.iter().any(|ending| text.ends_with(ending))
}

#[test]
fn files_that_documents_name_are_there() {
    let mut files = Vec::new();
    add_files(&root(), "", &mut files);
    let mut missing = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        let shown = document.file_name().unwrap_or_default().to_string_lossy();
        let mut is_code = false;
        for line in text.lines() {
            is_code ^= line.starts_with("```");
            let quoted = line.split('`').skip(1).step_by(2);
            for path in quoted.filter(|path| !is_code && is_path(path)) {
                let end = format!("/{path}");
                let is_there = files.iter().any(|file| file.ends_with(&end));
                if !is_there && !ELSEWHERE.contains(&path) {
                    missing.push(format!("{shown}: {path}"));
                }
            }
            let folder = document.parent().expect("a folder");
            for target in line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split([')', '#']).next())
            {
                let is_ours = !target.is_empty() && !target.contains("://") && !is_code;
                if is_ours && !folder.join(target).exists() {
                    missing.push(format!("{shown}: {target}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}
