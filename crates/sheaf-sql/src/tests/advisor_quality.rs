//! How good the advice of ADVISE INDEXES is: against the best of all sets of indexes, and for workloads that write.

use super::Bench;

/// Tables in the manner of TPC-H, small, without secondary indexes.
const TABLES: [&str; 3] = [
    "CREATE TABLE customer (c_custkey INT PRIMARY KEY, c_nationkey INT, c_mktsegment CHAR(10), \
     c_acctbal DECIMAL(12,2))",
    "CREATE TABLE orders (o_orderkey INT PRIMARY KEY, o_custkey INT, o_orderdate DATE, o_totalprice DECIMAL(12,2), \
     o_comment VARCHAR(79))",
    "CREATE TABLE lineitem (l_orderkey INT, l_linenumber INT, l_partkey INT, l_quantity INT, \
     l_extendedprice DECIMAL(12,2), l_discount DECIMAL(4,2), l_shipdate DATE, l_comment VARCHAR(44), \
     PRIMARY KEY (l_orderkey, l_linenumber))",
];

const QUERIES: [&str; 6] = [
    "SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) FROM customer, orders, lineitem \
     WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey \
     AND o_orderdate < '1992-02-01' AND l_shipdate > '1992-01-15' GROUP BY l_orderkey",
    "SELECT COUNT(*) FROM orders WHERE o_orderdate >= '1994-01-01' AND o_orderdate < '1994-01-15'",
    "SELECT SUM(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= '1994-01-01' \
     AND l_shipdate < '1994-01-08' AND l_discount BETWEEN 0.05 AND 0.07",
    "SELECT o_orderkey FROM orders WHERE o_custkey = 17 ORDER BY o_orderdate DESC LIMIT 5",
    "SELECT SUM(l_quantity) FROM lineitem WHERE l_partkey = 35",
    "SELECT c_custkey, SUM(o_totalprice) FROM customer JOIN orders ON c_custkey = o_custkey \
     WHERE c_nationkey = 3 GROUP BY c_custkey",
];

/// Of these all sets are tried.
const CANDIDATES: [(&str, &str); 8] = [
    ("customer", "c_nationkey"),
    ("customer", "c_mktsegment"),
    ("orders", "o_orderdate"),
    ("orders", "o_custkey"),
    ("orders", "o_custkey, o_orderdate"),
    ("lineitem", "l_shipdate"),
    ("lineitem", "l_partkey"),
    ("lineitem", "l_shipdate, l_discount, l_extendedprice"),
];

const CUSTOMERS: usize = 1_500;
const ORDERS: usize = 6_000;
const LINES_OF_ORDER: usize = 4;

/// Numbers that look like chance and are the same each time.
fn scattered(number: usize, below: usize) -> usize {
    (number.wrapping_mul(2_654_435_761) >> 8) % below
}

fn date(day: usize) -> String {
    let (year, day) = (1992 + day / 336, day % 336);
    format!("{year}-{:02}-{:02}", day / 28 + 1, day % 28 + 1)
}

fn insert(bench: &mut Bench, table: &str, rows: impl Iterator<Item = String>) {
    let rows: Vec<String> = rows.collect();
    for some in rows.chunks(2_000) {
        bench.ok(&format!("INSERT INTO {table} VALUES {}", some.join(", ")));
    }
    bench.ok(&format!("ANALYZE TABLE {table}"));
}

fn small_tpch() -> Bench {
    const SEGMENTS: [&str; 5] = [
        "BUILDING",
        "AUTOMOBILE",
        "MACHINERY",
        "HOUSEHOLD",
        "FURNITURE",
    ];
    let mut bench = Bench::new();
    for table in TABLES {
        bench.ok(table);
    }
    let customer = |key: usize| {
        let segment = SEGMENTS[scattered(key, SEGMENTS.len())];
        format!(
            "({key}, {}, '{segment}', {}.5)",
            scattered(key + 7, 25),
            key % 1_000
        )
    };
    insert(&mut bench, "customer", (1..=CUSTOMERS).map(customer));
    let order = |key: usize| {
        let day = date(scattered(key, 7 * 336));
        let customer = 1 + scattered(key + 3, CUSTOMERS);
        format!(
            "({key}, {customer}, '{day}', {}.25, REPEAT('o', {}))",
            key % 4_000,
            key % 70
        )
    };
    insert(&mut bench, "orders", (1..=ORDERS).map(order));
    let line = |number: usize| {
        let (order, line) = (1 + number / LINES_OF_ORDER, 1 + number % LINES_OF_ORDER);
        let day = date(scattered(order, 7 * 336) + 1 + scattered(number, 100));
        let (part, quantity) = (scattered(number + 5, 2_000), 1 + scattered(number, 50));
        let discount = scattered(number + 9, 11);
        format!(
            "({order}, {line}, {part}, {quantity}, {}.10, 0.{discount:02}, '{day}', REPEAT('l', {}))",
            900 + part,
            number % 40
        )
    };
    insert(
        &mut bench,
        "lineitem",
        (0..ORDERS * LINES_OF_ORDER).map(line),
    );
    bench
}

/// The cost of a query as it would run, in microseconds.
fn cost(bench: &mut Bench, query: &str) -> f64 {
    bench.ok("SET optimizer_switch = 'direct=off'");
    let explained = bench
        .rows(&format!("EXPLAIN FORMAT=JSON {query}"))
        .join("\n");
    let (_, cost) = explained.split_once("\"query_cost\": \"").expect("a cost");
    let (cost, _) = cost.split_once('"').expect("its end");
    cost.parse().expect("a number")
}

fn total_cost(bench: &mut Bench) -> f64 {
    QUERIES.iter().map(|query| cost(bench, query)).sum()
}

/// What is proposed to be made: the statement, and what it saves less its upkeep.
fn proposed(bench: &mut Bench, workload: &str) -> Vec<(String, f64)> {
    let literal = workload.replace('\'', "''");
    let rows = bench.rows(&format!("ADVISE INDEXES FOR '{literal}'"));
    let number = |cell: &str| cell.parse::<f64>().expect("a number");
    let of_row = |row: &String| {
        let cells: Vec<&str> = row.split('|').collect();
        let saved = number(cells[9]) - number(cells[10]) - number(cells[11]);
        (cells[4].to_string(), saved)
    };
    rows.iter().map(of_row).collect()
}

#[test]
fn what_is_advised_costs_little_more_than_the_best_set() {
    let mut bench = small_tpch();
    let before = total_cost(&mut bench);
    let advised = proposed(&mut bench, &QUERIES.join("; "));
    for (statement, _) in &advised {
        bench.ok(statement);
    }
    let with_advice = total_cost(&mut bench);
    for (statement, _) in &advised {
        let (name, table) = statement
            .strip_prefix("CREATE INDEX ")
            .and_then(|rest| rest.split_once(" ON "))
            .expect("an index");
        let table = table.split(" (").next().expect("a table");
        bench.ok(&format!("DROP INDEX {name} ON {table}"));
    }
    for (number, (table, columns)) in CANDIDATES.iter().enumerate() {
        bench.ok(&format!(
            "CREATE INDEX i{number} ON {table} ({columns}) INVISIBLE"
        ));
    }
    // One index comes or goes from set to set.
    let (mut best, mut shown) = (before, 0_usize);
    for turn in 1..1_usize << CANDIDATES.len() {
        let set = turn ^ (turn >> 1);
        let changed = (set ^ shown).trailing_zeros() as usize;
        let is_shown = set >> changed & 1 == 1;
        let visibility = if is_shown { "VISIBLE" } else { "INVISIBLE" };
        let (table, _) = CANDIDATES[changed];
        bench.ok(&format!(
            "ALTER TABLE {table} ALTER INDEX i{changed} {visibility}"
        ));
        shown = set;
        best = best.min(total_cost(&mut bench));
    }
    assert!(with_advice < before / 2.0, "{with_advice} of {before}");
    assert!(
        with_advice <= best * 1.05,
        "{with_advice}, the best is {best}: {advised:?}"
    );
}

#[test]
fn no_index_is_advised_that_costs_more_than_it_saves() {
    let mut bench = small_tpch();
    let of_order =
        "SELECT o_orderkey FROM orders WHERE o_custkey = 17 ORDER BY o_orderdate DESC LIMIT 5";
    let move_order =
        "UPDATE orders SET o_custkey = o_custkey + 1, o_orderdate = '1995-05-05' WHERE o_orderkey";
    let workload = |reads: usize, writes: usize, writes_what: &str| {
        let reads = std::iter::repeat_n(of_order.to_string(), reads);
        let writes =
            (0..writes).map(|number| format!("{move_order} {writes_what} {}", 10 + number));
        reads.chain(writes).collect::<Vec<_>>().join("; ")
    };
    // Nine rows are changed for each that is read: it pays.
    let advised = proposed(&mut bench, &workload(10, 90, "="));
    assert!(!advised.is_empty());
    assert!(advised.iter().all(|(_, saved)| *saved > 0.0), "{advised:?}");
    // Each change moves thousands of entries: it does not.
    let advised = proposed(&mut bench, &workload(10, 90, ">"));
    assert_eq!(advised, []);
}
