//! Who may import whom, in the whole workspace. It stands in the lowest crate because it builds in seconds there.
//!
//! Crates are floors: each depends on lower ones alone. Inside a crate the modules at the top of `src` should not form
//! circles. Those that do are named below; a module that joins a circle fails the test, and so does a name that is in
//! no circle any more. So the lists can only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// From the bottom up. Crates of one line do not know each other.
const FLOORS: &[&[&str]] = &[
    &["sheaf-storage"],
    &["sheaf-table", "sheaf-archive"],
    &["sheaf-access"],
    &["sheaf-exec"],
    &["sheaf-optimizer", "sheaf-frontend"],
    &["sheaf-sql"],
    &["sheaf-server"],
    &["sheaf"],
    &["sheaf-torture", "sheaf-fuzz"],
    &["sheaf-bench"],
];

/// Modules that import each other, directly or by way of others.
const KNOWN_CIRCLES: &[(&str, &[&str])] = &[
    (
        "sheaf-storage",
        &[
            "archive",
            "background",
            "backup",
            "buffer_pool",
            "checkpointer",
            "eviction",
            "log",
            "lost_pages",
            "mini_transaction",
            "page_store",
            "pool_core",
            "prefetch",
            "recovery",
            "redo",
            "restore",
            "row_lock",
            "snapshot",
            "storage",
            "transaction",
            "transaction_system",
            "tree",
            "tree_directory",
            "undo_stack",
            "versions",
            "write_back",
        ],
    ),
    (
        "sheaf-table",
        &[
            "alter_table",
            "altered_definition",
            "bulk_load",
            "catalog",
            "catalog_accounts",
            "catalog_databases",
            "catalog_foreign_keys",
            "catalog_resource_groups",
            "change_set",
            "check_constraint",
            "collation",
            "foreign_key",
            "schema",
            "show_create",
            "statistics",
            "table",
            "tree_load",
            "unicode_weights",
        ],
    ),
    ("sheaf-exec", &["collation", "functions"]),
    (
        "sheaf-optimizer",
        &[
            "access_path",
            "aggregate",
            "bounded_regret",
            "condition",
            "connection",
            "explain",
            "group_rows",
            "hints",
            "index_merge",
            "join_first_rows",
            "join_graph",
            "join_order",
            "join_rows",
            "keyed_access",
            "loose_scan",
            "path_cost",
            "physical_planner",
            "plan_outline",
            "ranges",
            "row_order",
            "table_detail",
            "table_reference",
            "trace",
            "window",
        ],
    ),
    (
        "sheaf-frontend",
        &["context", "dialect", "lower", "multiset", "parser", "query"],
    ),
    (
        "sheaf-sql",
        &[
            "accounts",
            "batch_builder",
            "change_query",
            "column_statistics",
            "ddl",
            "delete",
            "direct",
            "engine",
            "information_schema",
            "insert",
            "kept_read",
            "locked_tables",
            "locking_read",
            "maintenance",
            "on_duplicate",
            "optimizer_traces",
            "prepared",
            "record_spool",
            "resource_groups",
            "result",
            "rewrite_rules",
            "row_evaluator",
            "row_spool",
            "rows",
            "run_query",
            "session",
            "session_handle",
            "sort_memory",
            "statement_locks",
            "statement_properties",
            "statement_timer",
            "status",
            "table_checks",
            "table_writer",
            "text_length",
            "transaction",
            "update",
            "values",
            "values_before",
            "variables",
        ],
    ),
    (
        "sheaf-server",
        &["authentication", "command", "connection", "handshake"],
    ),
    ("sheaf-fuzz", &["expression", "query"]),
    ("sheaf-bench", &["generated_queries", "plans"]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn floor_of(name: &str) -> usize {
    let floor = FLOORS.iter().position(|floor| floor.contains(&name));
    floor.unwrap_or_else(|| panic!("{name} has no floor"))
}

#[test]
fn crates_depend_on_lower_ones_alone() {
    for entry in fs::read_dir(crates()).expect("the crates") {
        let name = entry.expect("a crate").file_name();
        let name = name.to_string_lossy();
        let manifest = fs::read_to_string(crates().join(&*name).join("Cargo.toml"));
        let manifest = manifest.expect("its manifest");
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        for line in dependencies.lines() {
            let Some((used, _)) = line.split_once(['.', ' ', '=']) else {
                continue;
            };
            if used == "sheaf" || used.starts_with("sheaf-") {
                assert!(floor_of(used) < floor_of(&name), "{name} depends on {used}");
            }
        }
    }
}

/// Of each module the others that it names.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The modules at the top of a crate's sources, tests left out.
fn imports_of(name: &str) -> Imports {
    let mut imports = Imports::new();
    let sources = crates().join(name).join("src");
    for entry in fs::read_dir(sources).expect("the sources") {
        let path = entry.expect("an entry").path();
        let module = path.file_stem().unwrap_or_default().to_string_lossy();
        if !matches!(&*module, "lib" | "main" | "tests" | "fuzzing") {
            let found = imports.entry(module.to_string()).or_default();
            collect(&path, found);
        }
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for (module, found) in &mut imports {
        found.retain(|other| other != module && modules.contains(other));
    }
    imports
}

fn collect(path: &Path, found: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.file_stem().is_none_or(|name| name != "tests") {
                collect(&path, found);
            }
        }
        return;
    }
    if path.extension().is_none_or(|extension| extension != "rs") {
        return;
    }
    let text = fs::read_to_string(path).expect("a source");
    let code = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    for line in code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        for after in line.split("crate::").skip(1) {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            found.insert(after[..end.unwrap_or(after.len())].to_string());
        }
    }
}

/// All modules that can be reached from one by its imports.
fn reached(imports: &Imports, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut to_visit = vec![from.to_string()];
    while let Some(module) = to_visit.pop() {
        for other in imports.get(&module).into_iter().flatten() {
            if reached.insert(other.clone()) {
                to_visit.push(other.clone());
            }
        }
    }
    reached
}

#[test]
fn circles_of_imports_only_become_fewer() {
    let mut wrong = Vec::new();
    for name in FLOORS.iter().copied().flatten() {
        let imports = imports_of(name);
        let in_circles: BTreeSet<&str> = imports
            .keys()
            .filter(|module| reached(&imports, module).contains(*module))
            .map(String::as_str)
            .collect();
        let known = KNOWN_CIRCLES.iter().find(|(known, _)| known == name);
        let known: BTreeSet<&str> = known.map_or(BTreeSet::new(), |(_, modules)| {
            modules.iter().copied().collect()
        });
        for module in in_circles.difference(&known) {
            wrong.push(format!("{name}: {module} has joined a circle of imports"));
        }
        for module in known.difference(&in_circles) {
            wrong.push(format!(
                "{name}: {module} is in no circle any more: remove its name"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
