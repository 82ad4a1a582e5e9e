//! Whatever plan runs a query, its rows are the same.
//!
//! Schemas, rows and queries come from a seed. Each query runs without hints, with no index at all, and under random
//! combinations of hints that force indexes, orders of joins, join methods, multi-range reads and strategies for
//! subqueries. `SHEAF_PLAN_SEEDS=100..300` runs other seeds.

use std::collections::BTreeSet;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::direct::random::Random;
use crate::harness::{TestServer, query_text};

/// Queries of a seed.
const QUERIES: usize = 30;
/// Seeds that found something: a string constant in the key of a join was taken by its sort key; of `s = 'x6' AND s
/// LIKE 'x%'` only the second condition was tested.
const FOUND: [u64; 2] = [100, 154];
/// Combinations of hints for each query.
const COMBINATIONS: usize = 10;

/// Columns of every table besides its key, with their types.
const COLUMNS: [(&str, &str); 5] = [
    ("a", "int"),
    ("b", "int not null"),
    ("c", "smallint unsigned"),
    ("s", "varchar(12)"),
    ("d", "decimal(6,2)"),
];

struct Table {
    name: String,
    /// Columns of the primary key.
    key: Vec<&'static str>,
    indexes: Vec<String>,
}

/// A value of a column, as SQL: few different ones, and small ones are common.
fn value(random: &mut Random, column: &str) -> String {
    let nullable = column != "b";
    if nullable && random.one_in(10) {
        return "null".to_string();
    }
    let largest = random.below(40) + 1;
    let n = random.below(largest);
    match column {
        "s" => {
            let texts = ["'x", "'X", "'xy", "'á", "'b", "'"];
            format!("{}{n}'", random.pick(&texts))
        }
        "d" => format!("{}.{}", n, random.below(4) * 25),
        _ => n.to_string(),
    }
}

fn columns_of(table: &Table) -> Vec<&'static str> {
    let keys = table.key.iter().copied();
    keys.chain(COLUMNS.iter().map(|(name, _)| *name)).collect()
}

fn create(random: &mut Random, c: &mut Conn, number: usize) -> Table {
    let name = format!("t{number}");
    let key = match random.below(3) {
        0 => vec!["k", "l"],
        _ => vec!["k"],
    };
    let mut parts: Vec<String> = key
        .iter()
        .map(|key| format!("{key} int not null"))
        .collect();
    parts.extend(COLUMNS.iter().map(|(name, ty)| format!("{name} {ty}")));
    parts.push(format!("primary key ({})", key.join(",")));
    let mut indexes = vec!["PRIMARY".to_string()];
    for index in 0..2 + random.below(3) {
        let mut columns: Vec<String> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let (column, _) = random.pick(&COLUMNS);
            let is_new = !columns.iter().any(|known| known.starts_with(column));
            let prefix = *column == "s" && random.one_in(3);
            if is_new {
                columns.push(match prefix {
                    true => "s(2)".to_string(),
                    false => (*column).to_string(),
                });
            }
        }
        indexes.push(format!("i{index}"));
        parts.push(format!("key i{index} ({})", columns.join(",")));
    }
    c.query_drop(format!("create table {name} ({})", parts.join(",")))
        .expect("a table");
    let rows: Vec<String> = (0..40 + random.below(300))
        .map(|n| {
            let mut cells = match key.len() {
                1 => vec![(n * 7 % 1009).to_string()],
                _ => vec![(n % 9).to_string(), n.to_string()],
            };
            cells.extend(COLUMNS.iter().map(|(column, _)| value(random, column)));
            format!("({})", cells.join(","))
        })
        .collect();
    c.query_drop(format!("insert into {name} values {}", rows.join(",")))
        .expect("rows");
    Table { name, key, indexes }
}

/// A condition on one table.
fn condition(random: &mut Random, alias: &str, table: &Table) -> String {
    let column = *random.pick(&columns_of(table));
    let ty = match column {
        "k" | "l" => "b",
        other => other,
    };
    // A literal of the column's own type, which is not NULL.
    let mut literal = || loop {
        let literal = value(random, ty);
        if literal != "null" {
            break literal;
        }
    };
    let (one, two, three) = (literal(), literal(), literal());
    let name = format!("{alias}.{column}");
    match random.below(9) {
        0..=2 => format!("{name} = {one}"),
        3 => format!("{name} in ({one}, {two}, {three})"),
        4 => format!("{name} between {one} and {two}"),
        5 => format!("{name} >= {one}"),
        6 => format!("{name} < {one}"),
        7 if column == "s" => format!("{name} like 'x%'"),
        7 => format!("({name} = {one} or {name} is null)"),
        _ => {
            let other = *random.pick(&["a", "b", "c"]);
            format!("({name} = {one} or {alias}.{other} = {})", random.below(9))
        }
    }
}

/// What may be hinted about a query.
#[derive(Default)]
struct Query {
    text: String,
    /// Aliases of the outer block with their indexes.
    tables: Vec<(String, Vec<String>)>,
    /// The block of a subquery.
    subquery: Option<(String, Vec<String>)>,
    /// The rows have one order.
    is_ordered: bool,
}

fn equality(random: &mut Random, left: &str, right: &str) -> String {
    // Columns that compare by one index order, and some that do not.
    let pairs = [
        ("a", "a"),
        ("b", "a"),
        ("b", "b"),
        ("c", "b"),
        ("k", "b"),
        ("a", "k"),
        ("s", "s"),
        ("d", "d"),
        ("k", "k"),
    ];
    let (one, other) = *random.pick(&pairs);
    format!("{left}.{one} = {right}.{other}")
}

fn query(random: &mut Random, tables: &[Table]) -> Query {
    let mut query = Query::default();
    let count = 1 + random.below(3);
    let chosen: Vec<&Table> = (0..count).map(|_| random.pick(tables)).collect();
    let mut from = String::new();
    for (number, table) in chosen.iter().enumerate() {
        let alias = format!("x{number}");
        if number == 0 {
            from = format!("{} {alias}", table.name);
        } else {
            let join = *random.pick(&["join", "join", "left join"]);
            let before = format!("x{}", random.below(number));
            let on = equality(random, &before, &alias);
            let more = match random.one_in(3) {
                true => format!(" and {}", condition(random, &alias, table)),
                false => String::new(),
            };
            from = format!("{from} {join} {} {alias} on {on}{more}", table.name);
        }
        query.tables.push((alias, table.indexes.clone()));
    }
    let mut conditions: Vec<String> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let number = random.below(count);
        conditions.push(condition(random, &format!("x{number}"), chosen[number]));
    }
    if random.one_in(3) {
        let inner = random.pick(tables);
        let own = condition(random, "y", inner);
        let on = equality(random, "x0", "y");
        let not = *random.pick(&["", "", "not "]);
        conditions.push(match random.below(2) {
            0 => format!(
                "{not}exists (select /*+ HINTS */ 1 from {} y where {on} and {own})",
                inner.name
            ),
            _ => format!(
                "x0.b {not}in (select /*+ HINTS */ y.a from {} y where {own})",
                inner.name
            ),
        });
        query.subquery = Some(("y".to_string(), inner.indexes.clone()));
    }
    let filter = conditions.join(" and ");
    let all: Vec<String> = (0..count)
        .flat_map(|number| {
            let columns = columns_of(chosen[number]);
            columns
                .into_iter()
                .map(move |column| format!("x{number}.{column}"))
        })
        .collect();
    let shown: Vec<String> = (0..1 + random.below(4))
        .map(|_| random.pick(&all).clone())
        .collect();
    // Of strings that are equal any may be the smallest, or stand for its group.
    let single = match shown[0].ends_with(".s") {
        true => "x0.b",
        false => &shown[0],
    };
    query.text = match random.below(4) {
        0 => format!(
            "select /*+ HINTS */ count(*), sum(x0.b), min({single}) from {from} where {filter}"
        ),
        1 => format!(
            "select /*+ HINTS */ {single}, count(*) from {from} where {filter} group by {single}"
        ),
        2 if count == 1 => {
            query.is_ordered = true;
            let mut order = vec![format!("x0.{}", random.pick(&["a", "b", "c", "d"]))];
            order.extend(chosen[0].key.iter().map(|key| format!("x0.{key}")));
            let direction = *random.pick(&["", " desc"]);
            let order: Vec<String> = order.into_iter().map(|column| column + direction).collect();
            format!(
                "select /*+ HINTS */ {} from {from} where {filter} order by {} limit {}",
                shown.join(","),
                order.join(","),
                1 + random.below(20)
            )
        }
        _ => format!(
            "select /*+ HINTS */ {} from {from} where {filter}",
            shown.join(",")
        ),
    };
    query
}

/// Hints on the access to a table.
fn table_hints(random: &mut Random, alias: &str, indexes: &[String], hints: &mut Vec<String>) {
    let index = random.pick(indexes);
    match random.below(5) {
        0 => hints.push(format!("NO_INDEX({alias})")),
        1 => hints.push(format!("NO_INDEX({alias} {index})")),
        2 | 3 => hints.push(format!("INDEX({alias} {index})")),
        _ => {}
    }
    for (one, other) in [
        ("MRR", "NO_MRR"),
        ("BKA", "NO_BKA"),
        ("HASH_JOIN", "NO_HASH_JOIN"),
        ("SKIP_SCAN", "NO_SKIP_SCAN"),
        ("INDEX_MERGE", "NO_INDEX_MERGE"),
    ] {
        match random.below(4) {
            0 => hints.push(format!("{one}({alias})")),
            1 => hints.push(format!("{other}({alias})")),
            _ => {}
        }
    }
    if random.one_in(3) {
        hints.push(format!("NO_ICP({alias})"));
    }
}

/// The query under a random combination of hints.
fn hinted(random: &mut Random, query: &Query) -> String {
    let mut hints = Vec::new();
    for (alias, indexes) in &query.tables {
        table_hints(random, alias, indexes, &mut hints);
    }
    if query.tables.len() > 1 && random.one_in(2) {
        let mut order: Vec<&str> = query
            .tables
            .iter()
            .map(|(alias, _)| alias.as_str())
            .collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        let what = *random.pick(&["JOIN_ORDER", "JOIN_PREFIX", "JOIN_SUFFIX"]);
        let named = 1 + random.below(order.len());
        hints.push(format!("{what}({})", order[..named].join(",")));
    }
    let mut inner = Vec::new();
    if let Some((alias, indexes)) = &query.subquery {
        table_hints(random, alias, indexes, &mut inner);
        let strategies = [
            "SEMIJOIN(FIRSTMATCH)",
            "SEMIJOIN(MATERIALIZATION)",
            "NO_SEMIJOIN()",
            "SUBQUERY(INTOEXISTS)",
            "SUBQUERY(MATERIALIZATION)",
        ];
        if !random.one_in(3) {
            inner.push((*random.pick(&strategies)).to_string());
        }
    }
    with_hints(query, &hints.join(" "), &inner.join(" "))
}

fn with_hints(query: &Query, outer: &str, inner: &str) -> String {
    query
        .text
        .replacen("HINTS", outer, 1)
        .replacen("HINTS", inner, 1)
}

fn rows(c: &mut Conn, query: &Query, sql: &str) -> Vec<String> {
    let mut rows = query_text(c, sql);
    if !query.is_ordered {
        rows.sort_unstable();
    }
    rows
}

/// Runs a seed; returns how many different plans its queries had.
fn run(server: &TestServer, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let mut c = server.connect_to_new(&format!("p{seed}"));
    let tables: Vec<Table> = (0..3)
        .map(|number| create(&mut random, &mut c, number))
        .collect();
    let mut plans = 0;
    for _ in 0..QUERIES {
        let query = query(&mut random, &tables);
        let no_index = |tables: &mut dyn Iterator<Item = &(String, Vec<String>)>| {
            let hints: Vec<String> = tables
                .map(|(alias, _)| format!("NO_INDEX({alias})"))
                .collect();
            hints.join(" ")
        };
        let plain = with_hints(
            &query,
            &no_index(&mut query.tables.iter()),
            &no_index(&mut query.subquery.iter()),
        );
        let expected = rows(&mut c, &query, &plain);
        let mut different = BTreeSet::new();
        for combination in 0..=COMBINATIONS {
            let sql = match combination {
                0 => with_hints(&query, "", ""),
                _ => hinted(&mut random, &query),
            };
            let found = rows(&mut c, &query, &sql);
            assert_eq!(found, expected, "seed {seed}:\n{sql}\nunlike\n{plain}");
            different.insert(query_text(&mut c, &format!("explain {sql}")));
        }
        plans += different.len();
    }
    plans
}

#[test]
fn every_plan_gives_the_same_rows() {
    let seeds = std::env::var("SHEAF_PLAN_SEEDS").unwrap_or_else(|_| "0..6".into());
    let (first, end) = seeds.split_once("..").expect("a range of seeds");
    let (first, end): (u64, u64) = (first.parse().expect("a seed"), end.parse().expect("a seed"));
    let server = TestServer::start();
    let found = FOUND
        .into_iter()
        .filter(|seed| !(first..end).contains(seed));
    let seeds: Vec<u64> = found.chain(first..end).collect();
    let plans: usize = seeds.iter().map(|seed| run(&server, *seed)).sum();
    let queries = QUERIES * seeds.len();
    assert!(
        plans > 3 * queries,
        "{queries} queries had only {plans} plans"
    );
}
