//! Writes docs/variables.md from the table of variables, and checks that the document is up to date.
//!
//! Whether a variable has an effect is read from the source: one whose name stands in no other file is kept and shown
//! only. So the document cannot claim more than the code does.

use std::path::Path;

use super::table::DEFINITIONS;
use super::{ALIASES, Definition, Kind, Lives, OTHER_NAMES, unheeded};
use crate::tests::check_document;

/// Files that name variables and obey none of them.
const NOT_READERS: [&str; 6] = [
    "dispatch/set_statement.rs",
    "variables/table.rs",
    "variables/restricted.rs",
    "variables/unheeded.rs",
    "variables/reference.rs",
    "dispatch/hints.rs",
];

/// Variables whose names are quoted for other reasons.
const OTHER_MEANINGS: [&str; 2] = ["new", "sql_buffer_result"];

const OPENING: &str = "\
# System variables

Every variable that `SHOW VARIABLES` lists. Names, types and limits are those of MySQL 8, so that clients, drivers and
dumps find what they ask for. This page is written by a test from the table in `crates/sheaf-sql/src/variables/table.rs`;
`SHEAF_WRITE_DOCS=1 cargo test --release -p sheaf-sql --lib documents` writes it anew.

- **Scope**: *session* can be set with `SET SESSION`, *global* with `SET GLOBAL`; *read only* comes from an option of
  `sheaf serve` or is a fact.
- **Effect**: *yes*: it is obeyed. *none*: it is kept and shown; it tunes an engine that is not here. *warned of*: other
  values than the default are kept and have no effect, and `SET` says so (warning 1235). *refused*: other values than
  the default are error 1235, because data would be written otherwise than was asked for, or somebody would count on a
  protection.

| variable | scope | values | default | effect |
|---|---|---|---|---|
";

const OTHERS: &str = "
Some have another name as well, MariaDB's or an older one of MySQL's.

| name | variable | listed |
|---|---|---|
";

#[test]
fn documents_of_variables_are_up_to_date() {
    let sources = sources();
    let mut page = OPENING.to_string();
    for definition in DEFINITIONS {
        page.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            definition.name,
            scope_of(definition.lives),
            values_of(definition.kind),
            default_of(definition),
            effect_of(definition, &sources),
        ));
    }
    page.push_str(OTHERS);
    for (name, variable) in OTHER_NAMES {
        let listed = match ALIASES.contains(&name) {
            true => "yes",
            false => "no",
        };
        page.push_str(&format!("| `{name}` | `{variable}` | {listed} |\n"));
    }
    check_document("variables.md", &page);
}

fn scope_of(lives: Lives) -> &'static str {
    match lives {
        Lives::Global => "global",
        Lives::Both => "session, global",
        Lives::Session => "session",
        Lives::ReadOnly => "read only",
    }
}

fn values_of(kind: Kind) -> String {
    let listed = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        words.join(", ")
    };
    match kind {
        Kind::Bool => "`ON`, `OFF`".into(),
        Kind::Integer { min, max: u64::MAX } => format!("integer from {min}"),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Float { min, max } => format!("number, {min} to {max}"),
        Kind::Text => "text".into(),
        Kind::Choice(words) => listed(words),
        Kind::OptimizerSwitch => "list of `flag=on`, `off` or `default` ([flags](hints.md))".into(),
        Kind::Flags(words) => format!("list of `flag=on`, `off` or `default`: {}", listed(words)),
        Kind::SqlMode => "list of modes".into(),
        Kind::CharacterSet => "character set".into(),
        Kind::Collation => "collation".into(),
        Kind::TimeZone => "offset, or `SYSTEM`".into(),
        Kind::Locale => "locale".into(),
    }
}

fn default_of(definition: &Definition) -> String {
    match definition.default {
        _ if definition.name.starts_with("version_compile") => "that of the build".into(),
        "" => String::new(),
        default => format!("`{default}`"),
    }
}

fn effect_of(definition: &Definition, sources: &[String]) -> &'static str {
    let quoted = format!("\"{}\"", definition.name);
    if unheeded::REFUSED.contains(&definition.name) {
        "refused"
    } else if unheeded::WARNED_OF.contains(&definition.name) {
        "warned of"
    } else if !OTHER_MEANINGS.contains(&definition.name)
        && sources.iter().any(|source| source.contains(&quoted))
    {
        "yes"
    } else {
        match definition.lives {
            Lives::ReadOnly => "a fact",
            Lives::Global | Lives::Both | Lives::Session => "none",
        }
    }
}

/// The sources of all crates without their tests.
fn sources() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for member in std::fs::read_dir(crates).expect("the crates") {
        collect(&member.expect("a crate").path().join("src"), &mut sources);
    }
    sources
}

fn collect(folder: &Path, sources: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "tests" {
                collect(&path, sources);
            }
        } else if name.ends_with(".rs")
            && name != "tests.rs"
            && !NOT_READERS.iter().any(|file| path.ends_with(file))
        {
            let text = std::fs::read_to_string(&path).expect("a source");
            let code = text.split("#[cfg(test)]\nmod tests").next();
            sources.push(code.unwrap_or_default().to_string());
        }
    }
}
