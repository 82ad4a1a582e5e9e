//! The situations in which known optimizers choose wrongly: what is chosen here, and why it is right.

use sheaf_storage::Random;
use sheaf_types::Value;

use super::harness::Lab;

fn text(value: &str) -> Value {
    Value::Text(value.to_string())
}

const MODES: [&str; 7] = ["AIR", "AIR REG", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK"];
const INSTRUCTIONS: [&str; 4] = [
    "COLLECT COD",
    "DELIVER IN PERSON",
    "NONE",
    "TAKE BACK RETURN",
];

/// TPC-H's part and lineitem, small, with the two indexes of Q19 that begin alike.
fn parts_and_lines() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(19);
    let parts = (0..401i64).map(|id| {
        vec![
            Value::Int(id),
            text(&format!("Brand#{}", id % 25)),
            Value::Int(id % 50),
        ]
    });
    let columns = [
        ("p_partkey", "int", false),
        ("p_brand", "varchar(10)", true),
        ("p_size", "int", true),
    ];
    lab.table("part", &columns, &["PRIMARY(p_partkey)"], parts.collect());
    let lines = (0..12_007i64).map(|id| {
        vec![
            Value::Int(id),
            Value::Int(random.below(401) as i64),
            Value::Int(random.below(1000) as i64),
            Value::Int(1 + random.below(50) as i64),
            text(MODES[random.below(7) as usize]),
            text(INSTRUCTIONS[random.below(4) as usize]),
            Value::Int(random.below(100_000) as i64),
            text(&"comment ".repeat(1 + random.below(8) as usize)),
        ]
    });
    lab.table(
        "lineitem",
        &[
            ("l_id", "int", false),
            ("l_partkey", "int", true),
            ("l_suppkey", "int", true),
            ("l_quantity", "int", true),
            ("l_shipmode", "varchar(10)", true),
            ("l_shipinstruct", "varchar(25)", true),
            ("l_price", "int", true),
            ("l_comment", "varchar(80)", true),
        ],
        &[
            "PRIMARY(l_id)",
            "by_supplier(l_partkey,l_suppkey)",
            "by_mode(l_partkey,l_quantity,l_shipmode,l_shipinstruct)",
        ],
        lines.collect(),
    );
    lab
}

/// Beginnings that are tested one after the other on each row cost more than a narrow scan of all rows saves.
#[test]
fn long_ors_are_tested_on_few_rows() {
    // Long ORs are deep trees. A session makes room for them.
    let roomy = std::thread::Builder::new().stack_size(256 << 20);
    let planning = roomy.spawn(plan_long_ors).unwrap();
    planning.join().unwrap();
}

fn plan_long_ors() {
    let mut lab = Lab::new();
    let rows = (0..20_011i64).map(|id| {
        let name = text(&format!("k{}", 100_000 + id * 2));
        vec![Value::Int(id), Value::Int(id % 100), name]
    });
    let columns = [
        ("id", "int", false),
        ("a", "int", true),
        ("b", "varchar(40)", true),
    ];
    let indexes = ["PRIMARY(id)", "a_2(a,b)", "b(b)"];
    lab.table("t", &columns, &indexes, rows.collect());
    lab.analyze(1, 1_000);
    for terms in [20, 200, 1_500] {
        let branches: Vec<String> = (0..terms)
            .map(|at| format!("b LIKE 'k{}%'", 100_000 + at * 7))
            .collect();
        let sql = format!(
            "SELECT COUNT(*), MAX(a) FROM t WHERE {}",
            branches.join(" OR ")
        );
        assert_eq!(keys(&lab, &sql), ["t range b"], "{terms}");
    }
}

/// The keys that EXPLAIN shows, by table.
fn keys(lab: &Lab, sql: &str) -> Vec<String> {
    let rows = lab.run(sql).explain;
    let show = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    rows.iter()
        .map(|row| {
            format!(
                "{} {} {}",
                show(&row.table),
                show(&row.type_),
                show(&row.key)
            )
        })
        .collect()
}

/// Q19: what the index condition keeps decides between two indexes that begin alike.
#[test]
fn the_index_whose_entries_can_be_tested_wins() {
    let lab = parts_and_lines();
    let sql = r#"SELECT SUM(l_price) FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#12'
        AND p_size < 30 AND l_quantity BETWEEN 1 AND 11
        AND (l_shipmode = 'AIR' OR l_shipmode = 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'"#;
    assert_eq!(keys(&lab, sql), ["part ALL -", "lineitem ref by_mode"]);
    let sql = r#"SELECT SUM(l_price) FROM lineitem WHERE l_partkey = 7 AND l_quantity BETWEEN 1 AND 11
        AND l_shipinstruct = 'DELIVER IN PERSON'"#;
    assert_eq!(keys(&lab, sql), ["lineitem range by_mode"]);
    // With a supplier the other one is better.
    let sql = "SELECT SUM(l_price) FROM lineitem WHERE l_partkey = 7 AND l_suppkey = 3";
    assert_eq!(keys(&lab, sql), ["lineitem ref by_supplier"]);
}

/// 20,011 wide rows; `kind` is 0 for most, 1 for a tenth, anywhere; 2 for few, anywhere; 3 for the first 400 only.
/// `age` goes with `id`, and `back` against it.
fn log() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(3);
    const ROWS: i64 = 20_011;
    let rows = (0..ROWS).map(|id| {
        let kind = match random.below(1000) {
            _ if id < 400 => 3,
            0..100 => 1,
            100..102 => 2,
            _ => 0,
        };
        vec![
            Value::Int(id),
            Value::Int(kind),
            Value::Int(id / 3),
            Value::Int((ROWS - id) / 3),
            text(&"wide row ".repeat(15 + random.below(10) as usize)),
        ]
    });
    lab.table(
        "log",
        &[
            ("id", "int", false),
            ("kind", "int", true),
            ("age", "int", true),
            ("back", "int", true),
            ("message", "varchar(400)", true),
        ],
        &[
            "PRIMARY(id)",
            "by_kind(kind)",
            "by_age(age)",
            "by_back(back)",
        ],
        rows.collect(),
    );
    lab
}

/// `ORDER BY id DESC LIMIT 20` with a filter: the walk is right where matches are met soon, and a disaster where they
/// all lie at the far end.
#[test]
fn a_limit_walks_in_order_where_the_matches_are_met_soon() {
    let lab = log();
    let walk = ["log index PRIMARY"];
    for (condition, expected) in [
        ("kind = 0", walk[0]),
        // The entries of one kind are in the order of id as well: twenty of them against two hundred rows.
        ("kind = 1", "log ref by_kind"),
        ("kind = 1 OR kind = 0", walk[0]),
        ("kind = 2", "log ref by_kind"),
        // All at the far end, which the index on kind knows.
        ("kind = 3", "log ref by_kind"),
        ("kind = 2 OR kind = 3", "log range by_kind"),
        // The end from which the walk begins, and the other, by correlation.
        ("age > 5000", walk[0]),
        ("age < 150", "log range by_age"),
        ("back < 1500", walk[0]),
        ("back > 6600", "log range by_back"),
    ] {
        let sql = format!("SELECT * FROM log WHERE {condition} ORDER BY id DESC LIMIT 20");
        assert_eq!(keys(&lab, &sql), [expected], "{condition}");
        let found = lab.run(&sql);
        let all = lab.run(&format!(
            "SELECT * FROM log WHERE {condition} ORDER BY id DESC"
        ));
        let first: Vec<_> = all.text().lines().take(20).map(str::to_string).collect();
        assert_eq!(found.text(), first.join("\n"), "{condition}");
    }
    // Forward, the near end is the far one.
    let forward = |condition: &str| {
        keys(
            &lab,
            &format!("SELECT * FROM log WHERE {condition} ORDER BY id LIMIT 20"),
        )
    };
    assert_eq!(forward("kind = 3"), walk);
    assert_eq!(forward("age < 150"), walk);
    assert_eq!(forward("back < 150"), ["log range by_back"]);
}

/// The order of joins follows the conditions, whatever the statistics' sample was: here one row of a hundred customers'
/// orders is wanted, or nearly all.
#[test]
fn the_order_of_joins_follows_what_conditions_leave() {
    let mut lab = parts_and_lines();
    let sql = |part: &str, line: &str| {
        format!(
            "SELECT SUM(l_price) FROM part, lineitem WHERE p_partkey = l_partkey AND {part} AND {line}"
        )
    };
    assert_eq!(
        keys(&lab, &sql("p_partkey = 3", "l_quantity < 10")),
        // The lines are those of the part that the condition names.
        ["part const PRIMARY", "lineitem range by_mode"]
    );
    assert_eq!(
        keys(&lab, &sql("p_size < 45", "l_id < 5")),
        ["lineitem range PRIMARY", "part eq_ref PRIMARY"]
    );
    // Everything with everything: no key is looked up twelve thousand times.
    let hashed = lab.explain(&sql("p_size >= 0", "l_quantity > 0"));
    assert!(hashed.contains("hash join"), "{hashed}");
    // What a lookup costs is a matter of the constants, which users can set.
    lab.settings.costs.hash_build_us = 1000.0;
    lab.settings.costs.hash_probe_us = 1000.0;
    let keyed = lab.explain(&sql("p_size >= 0", "l_quantity > 0"));
    assert!(!keyed.contains("hash join"), "{keyed}");
}

/// TPC-H's customers and what they ordered, small, with wide lines.
fn customers_and_orders() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(10);
    let nations = (0..25i64).map(|id| vec![Value::Int(id), text(&format!("nation {id}"))]);
    let columns = [("n_nationkey", "int", false), ("n_name", "char(25)", true)];
    lab.table(
        "nation",
        &columns,
        &["PRIMARY(n_nationkey)"],
        nations.collect(),
    );
    let customers = (0..1_009i64).map(|id| {
        let nation = random.below(25) as i64;
        vec![
            Value::Int(id),
            Value::Int(nation),
            text(&"address ".repeat(8)),
        ]
    });
    let customers: Vec<_> = customers.collect();
    let columns = [
        ("c_custkey", "int", false),
        ("c_nationkey", "int", true),
        ("c_address", "varchar(80)", true),
    ];
    let keys = ["PRIMARY(c_custkey)", "i_c_nationkey(c_nationkey)"];
    lab.table("customer", &columns, &keys, customers);
    let orders = (0..10_007i64).map(|id| {
        vec![
            Value::Int(id * 4),
            Value::Int(random.below(1_009) as i64),
            Value::Date(8_000 + random.below(2_400) as i32),
            text(&"comment ".repeat(6)),
        ]
    });
    let orders: Vec<_> = orders.collect();
    let columns = [
        ("o_orderkey", "int", false),
        ("o_custkey", "int", true),
        ("o_orderdate", "date", true),
        ("o_comment", "varchar(80)", true),
    ];
    let keys = [
        "PRIMARY(o_orderkey)",
        "i_o_orderdate(o_orderdate)",
        "i_o_custkey(o_custkey)",
    ];
    lab.table("orders", &columns, &keys, orders);
    let lines = (0..30_011i64).map(|line| {
        let flag = ["A", "N", "N", "R"][random.below(4) as usize];
        vec![
            Value::Int(random.below(10_007) as i64 * 4),
            Value::Int(line),
            Value::Int(random.below(10_000) as i64),
            text(flag),
            text(&"comment ".repeat(5)),
        ]
    });
    let lines: Vec<_> = lines.collect();
    let columns = [
        ("l_orderkey", "int", false),
        ("l_linenumber", "int", false),
        ("l_price", "int", true),
        ("l_returnflag", "char(1)", true),
        ("l_comment", "varchar(80)", true),
    ];
    lab.table(
        "lineitem",
        &columns,
        &["PRIMARY(l_orderkey,l_linenumber)"],
        lines,
    );
    lab
}

/// Q10 begins with the orders of its months and looks up their lines, whichever leaves the analysis happened to read.
#[test]
fn the_plan_of_q10_does_not_depend_on_the_sample() {
    let lab = customers_and_orders();
    let sql = r#"SELECT c_custkey, SUM(l_price) FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND c_nationkey = n_nationkey
        AND o_orderdate >= DATE '1993-08-01' AND o_orderdate < DATE '1993-11-01'
        AND l_returnflag = 'R' GROUP BY c_custkey"#;
    for seed in 0..20 {
        lab.analyze(seed, 6);
        let plan = keys(&lab, sql);
        assert!(
            plan.contains(&"orders range i_o_orderdate".to_string()),
            "seed {seed}: {plan:?}"
        );
        assert!(
            plan.contains(&"lineitem ref PRIMARY".to_string()),
            "seed {seed}: {plan:?}"
        );
        assert!(
            !plan.contains(&"orders ref i_o_custkey".to_string()),
            "seed {seed}: {plan:?}"
        );
    }
}

/// 60,000 lines of 20,000 orders of 10,000 customers; the lines do not fit in the pool.
fn customers_orders_and_lines() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(10);
    let customers = (0..10_000i64).map(|id| vec![Value::Int(id), text(&format!("customer {id}"))]);
    lab.table(
        "customers",
        &[("c_id", "int", false), ("c_name", "varchar(20)", false)],
        &["PRIMARY(c_id)"],
        customers.collect(),
    );
    let orders = (0..20_000i64).map(|id| {
        let customer = random.below(10_000) as i64;
        vec![
            Value::Int(id),
            Value::Int(customer),
            Value::Int(id * 7919 % 100),
        ]
    });
    lab.table(
        "orders",
        &[
            ("o_id", "int", false),
            ("o_customer", "int", false),
            ("o_day", "int", false),
        ],
        &["PRIMARY(o_id)"],
        orders.collect(),
    );
    let lines = (0..60_000i64).map(|n| {
        let wide = text(&"wide row ".repeat(50));
        vec![Value::Int(n / 3), Value::Int(n % 3), wide]
    });
    lab.table(
        "lines",
        &[
            ("l_order", "int", false),
            ("l_line", "int", false),
            ("l_text", "varchar(500)", false),
        ],
        &["PRIMARY(l_order,l_line)"],
        lines.collect(),
    );
    lab
}

/// Q10: the rows of a hash join come in the order of what streams through it, and lookups in a tree that is larger than
/// the pool want that of their keys.
#[test]
fn lookups_in_a_tree_larger_than_the_pool_come_in_its_order() {
    let mut lab = customers_orders_and_lines();
    let sql = "SELECT c_name, COUNT(l_text) FROM customers, orders, lines
        WHERE c_id = o_customer AND o_id = l_order AND o_day < 20 GROUP BY c_name";
    // All keys are sorted at once: the smaller side is kept in memory.
    let (customers, orders, lines) = ("customers ALL -", "orders ALL -", "lines ref PRIMARY");
    assert_eq!(keys(&lab, sql), [orders, customers, lines]);
    lab.settings.join_buffer_bytes = 512;
    assert_eq!(keys(&lab, sql), [customers, orders, lines]);
}
