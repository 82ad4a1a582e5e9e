//! Which crates and folders may import which others, in the whole workspace. It stands in the lowest crate because it
//! builds in seconds there.
//!
//! Crates are floors: each depends on lower ones alone. So are the folders and files at the top of a crate's sources,
//! in the order of [`ORDER`]. Imports that go up nevertheless, and files of one folder that form circles, are named
//! below: a new one fails the test, and so does a name that is not true any more. So these lists can only shrink.
//!
//! The files that ARCHITECTURE.md, CONTRIBUTING.md and the glossary name must be there.

mod imports;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use imports::Sources;

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
            "folded",
            "shared_value",
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
            "pages",
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
            "number_literal",
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
            "planned",
            "access",
            "adaptive",
            "join",
            "physical",
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
            "gtid_wait",
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
            "replica_parts",
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
            "readiness",
            "tls",
            "source_tls",
            "source_link",
            "encoded_row",
            "authentication",
            "compression",
            "parameters",
            "handshake",
            "local_infile",
            "text_row",
            "binary_row",
            "response",
            "ready_connections",
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
            "collected",
            "lessons",
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
        ],
    ),
    (
        "sheaf-exec",
        &[
            "typing/choose",
            "typing/compare",
            "typing/date_operands",
            "typing/number_operands",
            "typing/once",
            "typing/reached",
        ],
    ),
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
            "physical/applied_subquery",
            "physical/common_tables",
            "physical/joins",
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
            "parser/resource_group",
            "parser/statement",
            "parser/view",
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
/// folder, a file or folder of it: `tree/search`. What the top of the crate defines itself is of all its modules.
///
/// That a folder's own module names its parts is no import: it is made of them.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn imports_of(name: &str) -> Imports {
    let sources = Sources::read(&crates().join(name).join("src"));
    let mut imports = Imports::new();
    for (module, others) in sources.imports() {
        let Some(module) = module_name(&module) else {
            continue;
        };
        let found = imports.entry(module.clone()).or_default();
        let others = others.iter().filter_map(|other| module_name(other));
        found.extend(others.filter(|other| *other != module && top_of(other) != module));
    }
    imports
}

/// The first two names of a path; `None`: the top of the crate.
fn module_name(path: &[String]) -> Option<String> {
    match path {
        [] => None,
        [top] => Some(top.clone()),
        [top, inner, ..] => Some(format!("{top}/{inner}")),
    }
}

fn top_of(module: &str) -> &str {
    module.split('/').next().unwrap_or_default()
}

/// The shortest way from a module over others of its folder back to it; `None` if there is none.
fn circle_of(imports: &Imports, module: &str) -> Option<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut ways = VecDeque::from([vec![module.to_string()]]);
    while let Some(way) = ways.pop_front() {
        let others = way.last().and_then(|last| imports.get(last));
        for other in others.into_iter().flatten() {
            if top_of(other) != top_of(module) || !seen.insert(other.clone()) {
                continue;
            }
            let longer: Vec<String> = way.iter().chain([other]).cloned().collect();
            if other == module {
                return Some(longer);
            }
            ways.push_back(longer);
        }
    }
    None
}

/// What a list says of a crate.
fn listed(list: &[(&str, &'static [&'static str])], name: &str) -> BTreeSet<&'static str> {
    let found = list.iter().find(|(known, _)| *known == name);
    found.map_or(BTreeSet::new(), |(_, listed)| {
        listed.iter().copied().collect()
    })
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
        let known = listed(UPWARD, name);
        let new = upward.iter().filter(|new| !known.contains(new.as_str()));
        wrong.extend(new.map(|new| format!("{name}: {new} goes up")));
        let gone = known.iter().filter(|gone| !upward.contains(**gone));
        wrong.extend(gone.map(|gone| format!("{name}: remove {gone}, which is not true any more")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn circles_inside_folders_only_become_fewer() {
    let mut wrong = Vec::new();
    for name in FLOORS.iter().copied().flatten() {
        let imports = imports_of(name);
        let circles: BTreeMap<&String, String> = imports
            .keys()
            .filter_map(|module| Some((module, circle_of(&imports, module)?.join(" -> "))))
            .collect();
        let known = listed(CIRCLES, name);
        for (module, circle) in &circles {
            if !known.contains(module.as_str()) {
                wrong.push(format!("{name}: a new circle {circle}"));
            }
        }
        let gone = known
            .iter()
            .filter(|known| !circles.contains_key(&(**known).to_string()));
        wrong.extend(
            gone.map(|gone| format!("{name}: remove {gone}, which is in no circle any more")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Modules below the folders that [`CIRCLES`] is about, which import each other.
const DEEP_CIRCLES: &[(&str, &[&str])] = &[(
    "sheaf-exec",
    &[
        "operator/window/filed",
        "operator/window/functions",
        "operator/window/peers",
        "operator/window/rows",
        "operator/window/running",
    ],
)];

/// Of each module below the second level, by its full path, the others of its folder that it names.
fn deep_imports_of(name: &str) -> Imports {
    let sources = Sources::read(&crates().join(name).join("src"));
    let mut imports = Imports::new();
    for (module, others) in sources.imports() {
        let Some((_, folder)) = module.split_last() else {
            continue;
        };
        // Folders of a folder: a file in one of them is the folder, seen from its neighbours.
        for depth in 2..=folder.len() {
            let folder = &module[..depth];
            let part = module[..=depth].join("/");
            let others = others.iter().filter(|other| other.starts_with(folder));
            let others = others.filter_map(|other| Some(other.get(..=depth)?.join("/")));
            let found = imports.entry(part.clone()).or_default();
            found.extend(others.filter(|other| *other != part));
        }
    }
    imports
}

#[test]
fn circles_inside_folders_of_folders_only_become_fewer() {
    let mut wrong = Vec::new();
    for name in FLOORS.iter().copied().flatten() {
        let imports = deep_imports_of(name);
        let circles: BTreeSet<&str> = imports
            .keys()
            .filter(|module| circle_of(&imports, module).is_some())
            .map(String::as_str)
            .collect();
        let known = listed(DEEP_CIRCLES, name);
        let new = circles.difference(&known);
        wrong.extend(new.map(|new| format!("{name}: {new} is in a new circle")));
        let gone = known.difference(&circles);
        wrong.extend(
            gone.map(|gone| format!("{name}: remove {gone}, which is in no circle any more")),
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
