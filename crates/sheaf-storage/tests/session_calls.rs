//! Which folders of sheaf-sql call methods of a session, or of the engine, that a higher folder defines.
//!
//! A session has its methods in many files, and a call of one names no file. So what `floors.rs` says of imports says
//! nothing of these calls. Here they are found by the names of the methods:
//!
//! ```text
//!   impl Session { fn plan(..) }       in query/run      defines `plan`
//!   self.plan(..), session.plan(..)    in change/update  calls it: `change` stands above `query`
//! ```
//!
//! Calls that go up nevertheless are named below. The list can only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Calls that go up: what calls, the method, and where that is.
const UPWARD: &[&str] = &[
    "advisor/study calls plan_of_statement of dispatch/explain",
    "advisor/verify calls run_statement of dispatch/run",
    "change/insert calls add_columns_of of definition/ddl",
    "query/run/plan calls read_lock_mode of select/locking_read",
    "query/run/plan calls tables_locked_inside of select/locking_read",
    "query/values calls read_for_change of locking/change_read",
    // What a replica's source has done runs as requests do.
    "replica/applier calls execute of request",
    "replica/applier calls run of request",
    "replica/applier calls run_own of request",
    "replica/applier calls session_of_replica of start",
];

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The folders of sheaf-sql from the bottom up, as `floors.rs` has them.
fn order() -> Vec<String> {
    let floors = fs::read_to_string(tests().join("floors.rs")).expect("the floors");
    let begin = floors.find("\"virtual_database\"").expect("the order");
    let list = floors[begin..].split(']').next().unwrap_or_default();
    let names = list.split('"').skip(1).step_by(2);
    names.map(str::to_string).collect()
}

/// The sources by the names of their modules, `query/run/plan`, without comments, tests and line breaks in front of
/// calls.
fn sources() -> BTreeMap<String, String> {
    let root = tests().join("../../sheaf-sql/src");
    let mut found = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                folders.push(path.clone());
            } else if !["lib", "tests"].contains(&&*name) && !path.starts_with(root.join("tests")) {
                let below = path.strip_prefix(&root).expect("a path").with_extension("");
                let module = below.to_string_lossy().replace('\\', "/");
                let module = module.trim_end_matches("/mod").to_string();
                let text = fs::read_to_string(&path).expect("a source");
                found.insert(module, code_of(&text));
            }
        }
    }
    found
}

fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next();
    let mut code = String::new();
    for line in text.unwrap_or_default().lines() {
        let inner = line.trim_start();
        if inner.starts_with("//") {
            continue;
        }
        if !inner.starts_with('.') {
            code.push('\n');
            code.push_str(line);
        } else {
            code.push_str(inner);
        }
    }
    code
}

/// The bodies of the `impl` blocks of a type. `of_traits`: those of traits, too.
fn bodies<'t>(code: &'t str, ty: &str, of_traits: bool) -> Vec<&'t str> {
    let is_head = |line: &str| {
        let own = line.starts_with("impl ") && line.ends_with(&format!("{ty} {{"));
        own && (of_traits || line == format!("impl {ty} {{"))
    };
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("\nimpl ") {
        rest = &rest[at + 1..];
        let end = rest.find("\n}").unwrap_or(rest.len());
        let head = rest.lines().next().unwrap_or_default();
        if is_head(head) {
            found.push(&rest[..end]);
        }
        rest = &rest[end..];
    }
    found
}

/// The methods that blocks define.
fn methods<'t>(bodies: &[&'t str]) -> Vec<&'t str> {
    let lines = bodies.iter().flat_map(|body| body.lines());
    let methods = lines.filter(|line| line.starts_with("    ") && !line.starts_with("     "));
    let names = methods.filter_map(|line| line.split("fn ").nth(1));
    names.map(leading_name).collect()
}

fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// What is called of a receiver: `self.` and the like.
fn called<'t>(code: &'t str, receiver: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(receiver) {
        let before = code[..at].chars().next_back();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = leading_name(&code[at + receiver.len()..]);
        let after = &code[at + receiver.len() + name.len()..];
        if !before.is_some_and(is_word) && after.starts_with(['(', ':']) {
            found.push(name);
        }
    }
    found
}

#[test]
fn sessions_call_methods_of_lower_folders() {
    let sources = sources();
    let order = order();
    let place = |module: &str| {
        let top = module.split('/').next();
        order.iter().position(|known| Some(known.as_str()) == top)
    };
    // `session` is the name of a handle in places.
    let handles = sources
        .values()
        .flat_map(|code| bodies(code, "SessionHandle", false));
    let of_handles: BTreeSet<&str> = methods(&handles.collect::<Vec<_>>()).into_iter().collect();
    let mut upward = BTreeSet::new();
    for (ty, receiver) in [("Session", "session."), ("Engine", "engine.")] {
        let mut defined: BTreeMap<&str, &str> = BTreeMap::new();
        for (module, code) in &sources {
            for method in methods(&bodies(code, ty, false)) {
                defined.insert(method, module);
            }
        }
        assert!(defined.len() > 50, "methods of {ty} are found");
        for (module, code) in &sources {
            let own = bodies(code, ty, true);
            let own = own.iter().flat_map(|body| called(body, "self."));
            let others = called(code, receiver).into_iter();
            let others = others.filter(|method| !of_handles.contains(method));
            for method in own.chain(others) {
                let Some(owner) = defined.get(method) else {
                    continue;
                };
                if place(module) < place(owner) {
                    upward.insert(format!("{module} calls {method} of {owner}"));
                }
            }
        }
    }
    let known: BTreeSet<String> = UPWARD.iter().map(ToString::to_string).collect();
    let new: Vec<&String> = upward.difference(&known).collect();
    let gone: Vec<&String> = known.difference(&upward).collect();
    assert!(new.is_empty(), "these go up: {new:#?}");
    assert!(gone.is_empty(), "these are not true any more: {gone:#?}");
}
