//! Which crates and folders may import which others, in the whole workspace. It stands in the lowest crate because it
//! builds in seconds there.
//!
//! Crates are floors: each depends on lower ones alone. So are the folders and files at the top of a crate's sources,
//! in the order of [`ORDER`]. Imports that go up nevertheless, and files of one folder that form circles, are named
//! below: a new one fails the test, and so does a name that is not true any more. So these lists can only shrink.
//!
//! The files that ARCHITECTURE.md, CONTRIBUTING.md and the glossary name must be there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// From the bottom up. Crates of one line do not know each other.
const FLOORS: &[&[&str]] = &[
    &["sheaf-memory"],
    &["sheaf-storage", "sheaf-types"],
    &["sheaf-table", "sheaf-archive", "sheaf-binlog"],
    &["sheaf-access"],
    &["sheaf-exec"],
    &["sheaf-algebra"],
    &["sheaf-optimizer", "sheaf-frontend"],
    &["sheaf-sql"],
    &["sheaf-server", "sheaf"],
    &["sheaf-cli", "sheaf-python"],
    &["sheaf-torture", "sheaf-fuzz"],
    &["sheaf-bench"],
];

/// Libraries that a crate does not know, by what their names begin with. See ARCHITECTURE.md for the reasons.
const UNKNOWN: &[(&str, &[&str])] = &[
    ("sheaf-memory", ABOVE_BATCHES),
    ("sheaf-storage", ABOVE_BATCHES),
    ("sheaf-types", ABOVE_BATCHES),
    ("sheaf-table", ABOVE_BATCHES),
    ("sheaf-binlog", ABOVE_BATCHES),
    (
        "sheaf-access",
        &["datafusion", "sqlparser", "tokio", "futures", "mysql"],
    ),
    ("sheaf-exec", &["mysql", "rustls", "clap"]),
    (
        "sheaf-optimizer",
        &["sqlparser", "tokio", "mysql", "rustls", "clap"],
    ),
    ("sheaf-frontend", &["tokio", "mysql", "rustls", "clap"]),
    ("sheaf-sql", &["mysql", "rustls", "clap"]),
    (
        "sheaf",
        &[
            "mysql",
            "rustls",
            "rcgen",
            "clap",
            "rustyline",
            "sheaf-server",
        ],
    ),
    (
        "sheaf-python",
        &["mysql", "rustls", "rcgen", "clap", "datafusion"],
    ),
];

/// What is known from batches of rows on.
const ABOVE_BATCHES: &[&str] = &[
    "arrow",
    "datafusion",
    "sqlparser",
    "tokio",
    "futures",
    "mysql",
    "rustls",
    "clap",
];

/// The folders and files at the top of each crate's sources, from the bottom up.
const ORDER: &[(&str, &[&str])] = &[
    (
        "sheaf-memory",
        &[
            "counting",
            "budget",
            "making_room",
            "stop_flag",
            "process",
            "group",
            "thread_memory",
            "statement",
            "filling",
            "planning",
            "crowd",
            "watch",
        ],
    ),
    (
        "sheaf-storage",
        &[
            "page",
            "error",
            "sync",
            "random",
            "counters",
            "space",
            "disk",
            "pool",
            "node",
            "key_range",
            "temp_file",
            "background",
            "log",
            "transaction",
            "durability",
            "page_store",
            "tree",
            "copy",
            "storage",
            "check",
        ],
    ),
    (
        "sheaf-types",
        &[
            "error",
            "output",
            "text",
            "number",
            "temporal",
            "json",
            "xml",
            "column_type",
            "labels",
            "value",
            "assignment",
        ],
    ),
    (
        "sheaf-table",
        &[
            "error",
            "definition",
            "codec",
            "progress",
            "lock",
            "statistics",
            "table",
            "catalog",
            "build",
            "check",
            "change",
        ],
    ),
    ("sheaf-archive", &["object_archive"]),
    (
        "sheaf-binlog",
        &[
            "error", "bytes", "gtid", "row", "table", "event", "received", "file", "reader",
            "recovery", "shown",
        ],
    ),
    (
        "sheaf-access",
        &[
            "arrow_types",
            "index_uses",
            "counters",
            "error",
            "cancel",
            "sort_rule",
            "keys",
            "condition",
            "spec",
            "budget",
            "scan_counters",
            "batch",
            "method",
        ],
    ),
    (
        "sheaf-exec",
        &[
            "shared_constant",
            "long_literal",
            "functions",
            "error",
            "group_keys",
            "hints",
            "blocking",
            "memory_consumers",
            "memory_pool",
            "table_source",
            "plan_size",
            "row_by_row",
            "json_table",
            "lateral",
            "value_array",
            "short_key",
            "operator",
            "keyed_join",
            "runtime",
            "aggregates",
            "typing",
        ],
    ),
    (
        "sheaf-algebra",
        &[
            "column",
            "column_set",
            "scalar",
            "relation",
            "properties",
            "rules",
            "printer",
            "to_logical_plan",
        ],
    ),
    (
        "sheaf-optimizer",
        &[
            "cost",
            "settings",
            "hints",
            "row_width",
            "logical",
            "estimate",
            "json",
            "trace",
            "explain",
            "access",
            "adaptive",
            "physical",
            "join",
            "advisor",
        ],
    ),
    (
        "sheaf-frontend",
        &[
            "error",
            "collation_names",
            "character_sets",
            "reserved",
            "function_names",
            "session_functions",
            "syntax",
            "token",
            "value_literal",
            "packed_list",
            "dialect",
            "last_insert_id",
            "sleep",
            "benchmark",
            "load_file",
            "user_lock",
            "walk",
            "locking",
            "statement_text",
            "parser",
            "digest",
            "column_default",
            "varying",
            "query",
            "bind",
        ],
    ),
    (
        "sheaf-sql",
        &[
            "virtual_database",
            "events",
            "binlog",
            "variables",
            "session_parts",
            "rights",
            "engine",
            "session",
            "statement",
            "isolation",
            "query",
            "locking",
            "change",
            "definition",
            "select",
            "accounts",
            "resource_groups",
            "replica",
            "catalog_views",
            "advisor",
            "direct",
            "dispatch",
            "request",
            "start",
        ],
    ),
    (
        "sheaf-server",
        &[
            "packet",
            "source_link",
            "readiness",
            "tls",
            "encoded_row",
            "authentication",
            "compression",
            "parameters",
            "handshake",
            "local_infile",
            "response",
            "ready_connections",
            "text_row",
            "binary_row",
            "self_signed",
            "transport",
            "cursor",
            "command",
            "connection",
            "binlog_dump",
            "deferred_answers",
            "shared_threads",
            "listener",
            "http",
            "metrics",
            "console",
        ],
    ),
    ("sheaf", &["statement", "answer", "typed"]),
    (
        "sheaf-python",
        &[
            "error",
            "value",
            "arrow_stream",
            "open_databases",
            "answer",
            "connection",
        ],
    ),
    (
        "sheaf-cli",
        &[
            "allocator",
            "result_printer",
            "server_connection",
            "size",
            "slow_log",
            "advise",
            "backup",
            "statement_reader",
            "check",
            "help_pages",
            "demo",
            "prune",
            "tpch",
            "tpch_schema",
            "restore",
            "configuration",
            "serve",
            "config",
            "init",
            "sql_shell",
        ],
    ),
    (
        "sheaf-torture",
        &[
            "machine",
            "measurement",
            "command",
            "table_rows",
            "tables",
            "checkpoint_latency",
            "recovery_time",
            "followed",
            "trees",
            "point_in_time",
        ],
    ),
    (
        "sheaf-fuzz",
        &[
            "schema",
            "tree",
            "parameters",
            "query",
            "answer",
            "known_differences",
            "plans",
            "reduce",
            "changes",
            "known",
            "expression",
            "families",
            "sources",
            "windows",
            "json",
            "metamorphic",
            "command",
        ],
    ),
    (
        "sheaf-bench",
        &[
            "error",
            "machine",
            "data",
            "chart",
            "peers",
            "reference",
            "readiness",
            "driver",
            "generated_queries",
            "fuzz",
            "answers",
            "concurrency",
            "oltp",
            "online",
            "planning",
            "statements",
            "plans",
            "tpch",
            "mixed",
            "ranges",
            "tpcc",
        ],
    ),
];

/// Imports that go up.
const UPWARD: &[(&str, &[&str])] = &[
    (
        "sheaf-storage",
        &[
            "background -> storage",
            "copy/backup -> storage",
            "durability/checkpointer -> storage",
            "durability/recovery -> page_store",
            "log/mini_transaction -> page_store",
            "pool/write_back -> log",
            "space/orphaned_pages -> page_store",
            "transaction -> page_store",
            "transaction -> tree",
            "transaction -> tree/delete",
            "transaction -> tree/leaf_hints",
            "transaction/locks -> tree",
            "transaction/versions -> storage",
            "tree/bulk_build -> storage",
            "tree/residency -> storage",
        ],
    ),
    ("sheaf-algebra", &["relation -> properties"]),
    (
        "sheaf-optimizer",
        &[
            "access/loose_scan -> physical/planner",
            "access/path -> physical/planner",
            "adaptive/bounded_regret -> physical/planner",
            "adaptive/lookup_regret -> physical/planner",
            "estimate/statistics -> access/ranges",
            "explain/table_detail -> access/range_text",
        ],
    ),
    (
        "sheaf-sql",
        &[
            "accounts -> engine",
            "change/on_duplicate -> direct",
            "isolation/locking_read -> change/change_query",
            "query/run -> catalog_views/information_schema",
            "query/run -> isolation/serializable_read",
            "query/run -> isolation/locking_read",
            "replica/applier -> engine",
            "replica/control -> engine",
            "replica/receiver -> engine",
            "resource_groups -> engine",
            "session -> accounts",
            "session -> direct",
            "session -> engine",
            "session -> isolation/locked_tables",
            "session -> isolation/transaction",
            "session/prepared -> direct",
        ],
    ),
    ("sheaf-server", &["command -> connection"]),
    ("sheaf-fuzz", &["query -> expression"]),
    ("sheaf-bench", &["generated_queries -> plans"]),
];

/// Modules of one folder that import each other, directly or by way of others.
const CIRCLES: &[(&str, &[&str])] = &[
    (
        "sheaf-storage",
        &[
            "copy/archive",
            "copy/restore",
            "pool/buffer_pool",
            "pool/eviction",
            "pool/pool_core",
            "pool/write_back",
            "transaction",
            "transaction/row_lock",
            "transaction/snapshot",
            "transaction/undo_stack",
            "tree",
            "tree/search",
        ],
    ),
    ("sheaf-exec", &["typing/choose", "typing/compare"]),
    ("sheaf-algebra", &["rules/repeatable", "rules/unnest"]),
    (
        "sheaf-optimizer",
        &[
            "access/index_merge",
            "access/path",
            "access/path_cost",
            "access/table_reference",
            "access/trace",
            "join/edge",
            "join/first_rows",
            "join/order",
            "join/row_order",
            "join/rows",
            "join/trace",
            "physical/aggregate",
            "physical/common_tables",
            "physical/planner",
            "physical/texts_in_order",
            "physical/window",
        ],
    ),
    (
        "sheaf-frontend",
        &[
            "bind/expression",
            "bind/group",
            "bind/select",
            "bind/subquery",
            "parser/account",
            "parser/statement",
            "parser/view",
        ],
    ),
    // Direct plans of queries inside of queries: each kind of plan may hold any other.
    (
        "sheaf-sql",
        &[
            "direct/access",
            "direct/aggregate",
            "direct/derived",
            "direct/entry",
            "direct/expression",
            "direct/insert",
            "direct/join",
            "direct/join_walk",
            "direct/joined_result",
            "direct/locking",
            "direct/names",
            "direct/order",
            "direct/over_rows",
            "direct/read",
            "direct/row",
            "direct/select_list",
            "direct/subquery",
            "direct/value_lists",
        ],
    ),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn floor_of(name: &str) -> usize {
    let floor = FLOORS.iter().position(|floor| floor.contains(&name));
    floor.unwrap_or_else(|| panic!("{name} has no floor"))
}

/// The crates that a crate depends on.
fn dependencies_of(name: &str) -> Vec<String> {
    let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml"));
    let manifest = manifest.expect("its manifest");
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    let lines = dependencies.lines().filter(|line| !line.starts_with('#'));
    let names = lines.filter_map(|line| line.split_once(['.', ' ', '=']));
    names.map(|(used, _)| used.to_string()).collect()
}

#[test]
fn crates_depend_on_lower_ones_alone() {
    for entry in fs::read_dir(crates()).expect("the crates") {
        let name = entry.expect("a crate").file_name();
        let name = name.to_string_lossy();
        for used in dependencies_of(&name) {
            if used == "sheaf" || used.starts_with("sheaf-") {
                assert!(
                    floor_of(&used) < floor_of(&name),
                    "{name} depends on {used}"
                );
            }
        }
    }
}

#[test]
fn crates_do_not_know_libraries_of_higher_ones() {
    for (name, unknown) in UNKNOWN {
        for used in dependencies_of(name) {
            let is_known = unknown.iter().any(|begin| used.starts_with(begin));
            assert!(!is_known, "{name} depends on {used}");
        }
    }
}

/// Of each module the others that it names. A module is a file or folder at the top of the sources, or, in such a
/// folder, a file or folder of it: `tree/search`.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// What stands in a folder of sources, by the names of modules. Tests are left out.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let found = fs::read_dir(folder).expect("a folder").map(|entry| {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        (name.into_owned(), path)
    });
    let left_out = ["lib", "main", "tests", "fuzzing"];
    found
        .filter(|(name, path)| {
            let is_source = path.is_dir() || path.extension().is_some_and(|e| e == "rs");
            is_source && !left_out.contains(&name.as_str())
        })
        .collect()
}

/// The modules of a crate, each with its files and folders.
fn modules_of(name: &str) -> BTreeMap<String, Vec<PathBuf>> {
    let mut modules: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (top, path) in entries(&crates().join(name).join("src")) {
        if !path.is_dir() {
            modules.entry(top).or_default().push(path);
            continue;
        }
        for (inner, path) in entries(&path) {
            let module = match inner.as_str() {
                "mod" => top.clone(),
                _ => format!("{top}/{inner}"),
            };
            modules.entry(module).or_default().push(path);
        }
    }
    modules
}

fn imports_of(name: &str) -> Imports {
    let modules = modules_of(name);
    let mut imports = Imports::new();
    for (module, paths) in &modules {
        let found = imports.entry(module.clone()).or_default();
        for path in paths {
            collect(path, &modules, found);
        }
        found.remove(module);
    }
    imports
}

fn collect(path: &Path, modules: &BTreeMap<String, Vec<PathBuf>>, found: &mut BTreeSet<String>) {
    if path.is_dir() {
        for (_, path) in entries(path) {
            collect(&path, modules, found);
        }
        return;
    }
    let text = fs::read_to_string(path).expect("a source");
    let code = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let own = module_path(path);
    for line in code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        for named in named_paths(line, &own) {
            let top = named.first().map_or("", String::as_str);
            let inner = named.get(..2).unwrap_or_default().join("/");
            match modules.contains_key(&inner) {
                true => found.insert(inner),
                false => modules.contains_key(top) && found.insert(top.to_string()),
            };
        }
    }
}

/// The path of a file's module in its crate.
fn module_path(file: &Path) -> Vec<String> {
    let names = file.iter().map(|name| name.to_string_lossy().into_owned());
    let names: Vec<String> = names.collect();
    let root = names.iter().rposition(|name| name == "src");
    let mut path = names[root.map_or(0, |root| root + 1)..].to_vec();
    if let Some(last) = path.pop()
        && last != "mod.rs"
    {
        path.push(last.trim_end_matches(".rs").to_string());
    }
    path
}

/// What a line of the module `own` names of its crate, by `crate::` or by `super::`.
fn named_paths(line: &str, own: &[String]) -> Vec<Vec<String>> {
    let names = |after: &str| -> Vec<String> {
        let names = after.split("::").map(leading_name);
        names.take(2).map(str::to_string).collect()
    };
    let mut paths: Vec<Vec<String>> = line.split("crate::").skip(1).map(names).collect();
    // Several in a row lead further up.
    let mut above = own;
    for after in line.split("super::").skip(1) {
        above = above.split_last().map_or(above, |(_, above)| above);
        if after.is_empty() {
            continue;
        }
        // A star inside of a file is about the file itself.
        if !after.starts_with('*') {
            paths.push(above.iter().cloned().chain(names(after)).collect());
        }
        above = own;
    }
    paths
}

fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

fn top_of(module: &str) -> &str {
    module.split('/').next().unwrap_or_default()
}

/// All modules of the same folder that can be reached from one by imports inside of it.
fn reached(imports: &Imports, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut to_visit = vec![from.to_string()];
    while let Some(module) = to_visit.pop() {
        for other in imports.get(&module).into_iter().flatten() {
            if top_of(other) == top_of(from) && reached.insert(other.clone()) {
                to_visit.push(other.clone());
            }
        }
    }
    reached
}

/// What a list says of a crate.
fn listed(list: &[(&str, &'static [&'static str])], name: &str) -> BTreeSet<&'static str> {
    let found = list.iter().find(|(known, _)| *known == name);
    found.map_or(BTreeSet::new(), |(_, listed)| {
        listed.iter().copied().collect()
    })
}

/// Adds a line for whatever is only in one of the sets.
fn compare(
    wrong: &mut Vec<String>,
    (name, what): (&str, &str),
    known: &BTreeSet<&str>,
    found: &BTreeSet<String>,
) {
    for new in found.iter().filter(|new| !known.contains(new.as_str())) {
        wrong.push(format!("{name}: {new} {what}"));
    }
    for gone in known.iter().filter(|gone| !found.contains(**gone)) {
        wrong.push(format!("{name}: remove {gone}, which is not true any more"));
    }
}

#[test]
fn modules_import_lower_ones() {
    let mut wrong = Vec::new();
    for name in FLOORS.iter().copied().flatten() {
        let imports = imports_of(name);
        let order = ORDER.iter().find(|(known, _)| known == name);
        let order = order.map_or(&[][..], |(_, order)| order);
        let place = |module: &str| order.iter().position(|top| *top == top_of(module));
        let unplaced = imports.keys().filter(|module| place(module).is_none());
        wrong.extend(unplaced.map(|module| format!("{name}: {module} has no place in the order")));
        let upward: BTreeSet<String> = imports
            .iter()
            .flat_map(|(module, others)| others.iter().map(move |other| (module, other)))
            .filter(|(module, other)| place(module) < place(other))
            .map(|(module, other)| format!("{module} -> {other}"))
            .collect();
        compare(
            &mut wrong,
            (name, "goes up"),
            &listed(UPWARD, name),
            &upward,
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn circles_inside_folders_only_become_fewer() {
    let mut wrong = Vec::new();
    for name in FLOORS.iter().copied().flatten() {
        let imports = imports_of(name);
        let in_circles: BTreeSet<String> = imports
            .keys()
            .filter(|module| reached(&imports, module).contains(*module))
            .cloned()
            .collect();
        let known = listed(CIRCLES, name);
        compare(
            &mut wrong,
            (name, "has joined a circle"),
            &known,
            &in_circles,
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The paths of a document that begin with a crate or `docs/`, in backquotes.
fn named_files(document: &str) -> Vec<String> {
    let quoted = document.split('`').skip(1).step_by(2);
    let is_path = |text: &&str| {
        let begins = text.starts_with("crates/")
            || text.starts_with("docs/")
            || text.starts_with("sheaf") && text.contains("/src/");
        begins && !text.contains(['*', ' ', '<', '{'])
    };
    quoted.filter(is_path).map(str::to_string).collect()
}

#[test]
fn files_that_the_maps_name_are_there() {
    let root = crates().join("..");
    let mut missing = Vec::new();
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md"] {
        let text = fs::read_to_string(root.join(document)).expect(document);
        let named = named_files(&text);
        assert!(named.len() > 10, "{document} names {} files", named.len());
        for file in named {
            let is_there = root.join(&file).exists() || crates().join(&file).exists();
            if !is_there {
                missing.push(format!("{document}: {file}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
