//! Plans that are abandoned for others: when that happens, and that the rows are right wherever it does.

use sheaf_exec::operator::regret_exec::RegretExec;
use sheaf_storage::Random;
use sheaf_types::Value;

use super::harness::{Lab, Rows, metric};
use crate::Trace;
use crate::json::Layout;

fn text(value: &str) -> Value {
    Value::Text(value.to_string())
}

/// 20,011 wide rows. `kind` is 3 for the first 400 rows, and 0 to 2 for others; its index has another column behind it,
/// so that its ends do not tell where in the table its rows lie.
fn log() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(3);
    let rows = (0..20_011i64).map(|id| {
        let kind = if id < 400 { 3 } else { random.below(3) as i64 };
        vec![
            Value::Int(id),
            Value::Int(kind),
            Value::Int(random.below(50) as i64),
            text(&"wide row ".repeat(15 + random.below(10) as usize)),
        ]
    });
    lab.table(
        "log",
        &[
            ("id", "int", false),
            ("kind", "int", true),
            ("host", "int", true),
            ("message", "varchar(400)", true),
        ],
        &["PRIMARY(id)", "by_kind(kind,host)"],
        rows.collect(),
    );
    lab
}

fn switches(rows: &Rows) -> usize {
    metric::<RegretExec>(&rows.plan, "switches")
}

fn extra(rows: &Rows) -> String {
    rows.explain[0].extra.clone().unwrap_or_default()
}

/// What the optimizer cannot know: all matches lie where the walk ends.
#[test]
fn a_walk_that_meets_its_matches_too_late_is_given_up() {
    let lab = log();
    let sql = |kind: i64, direction: &str| {
        format!("SELECT * FROM log WHERE kind = {kind} ORDER BY id {direction} LIMIT 20")
    };
    let far = lab.run(&sql(3, "DESC"));
    assert_eq!(
        extra(&far),
        "Using where; Backward index scan; May switch to by_kind"
    );
    assert_eq!(switches(&far), 1);
    let ids: Vec<i64> = far.text().lines().map(first_number).collect();
    assert_eq!(ids, (380..400).rev().collect::<Vec<_>>());
    // The walk saw a part of the table only.
    let examined = metric::<sheaf_exec::operator::scan_exec::ScanExec>(&far.plan, "rows_examined");
    assert!(examined < 16_000, "{examined}");

    // The same plan where the estimate is right.
    let near = lab.run(&sql(3, "ASC"));
    assert!(extra(&near).ends_with("May switch to by_kind"));
    assert_eq!(switches(&near), 0);
    let ids: Vec<i64> = near.text().lines().map(first_number).collect();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
}

/// The longer a LIMIT, the less a walk is expected to save: at first it is guarded, then not begun though it seems
/// cheaper, and in the end it is not cheaper.
#[test]
fn a_walk_that_saves_little_is_not_begun() {
    let mut lab = log();
    let mut ways = Vec::new();
    for limit in 1..400 {
        let sql = format!("SELECT * FROM log WHERE kind = 3 ORDER BY id DESC LIMIT {limit}");
        lab.trace = Trace::on(1 << 20);
        lab.plan(&sql).unwrap();
        let trace = lab.trace.finish().unwrap().document.print(Layout {
            one_line: true,
            end_markers: false,
        });
        let way = match trace.contains("\"alternative_plan\"") {
            true if trace.contains("\"guards\": true, \"taken_at_once\": false") => "walk",
            true if trace.contains("\"guards\": false, \"taken_at_once\": true") => "not begun",
            _ => "no walk",
        };
        if ways.last() != Some(&way) {
            ways.push(way);
        }
    }
    assert_eq!(ways, ["walk", "not begun", "no walk"]);
}

fn first_number(line: &str) -> i64 {
    let number = line.split(' ').next().unwrap_or_default();
    number.parse().unwrap_or(-1)
}

#[test]
fn a_plan_is_guarded_only_where_it_can_be_regretted() {
    let mut lab = log();
    for sql in [
        // Each row matches, or the index is the better way at once.
        "SELECT * FROM log ORDER BY id DESC LIMIT 20",
        "SELECT * FROM log WHERE kind = 7 ORDER BY id DESC LIMIT 20",
        "SELECT * FROM log WHERE id = 7 ORDER BY id LIMIT 1",
        // No other plan is much cheaper than the whole walk.
        "SELECT * FROM log WHERE kind = 1 ORDER BY id DESC LIMIT 20",
        // More rows than are held back.
        "SELECT * FROM log WHERE kind = 3 ORDER BY id DESC LIMIT 10001",
    ] {
        let rows = lab.run(sql);
        assert!(
            !extra(&rows).contains("May switch"),
            "{sql}\n{}",
            rows.shown
        );
    }
    let sql = "SELECT * FROM log WHERE kind = 3 ORDER BY id DESC LIMIT 20";
    lab.settings.switch.bounded_regret = false;
    assert!(!lab.run(sql).shown.contains("RegretExec"));
    lab.settings.switch.bounded_regret = true;
    lab.trace = Trace::on(1 << 20);
    lab.plan(sql).unwrap();
    let trace = lab.trace.finish().unwrap().document.print(Layout {
        one_line: true,
        end_markers: false,
    });
    assert!(trace.contains("\"bounded_regret\": {\"cost\": "), "{trace}");
    assert!(
        trace.contains("\"alternative_plan\": {\"plan\": \"by_kind\", \"cost\": "),
        "{trace}"
    );
}

/// A table whose columns have few values, and one to join it with.
fn random_tables(random: &mut Random) -> Lab {
    let mut lab = Lab::new();
    let rows = (0..2_503i64).map(|id| {
        let mut small = |most: usize| match random.below(9) {
            0 => Value::Null,
            _ => Value::Int(random.below(most as u64) as i64),
        };
        vec![
            Value::Int(id),
            small(4),
            small(30),
            small(700),
            text(&"wide row ".repeat(15 + random.below(10) as usize)),
        ]
    });
    let columns = [
        ("id", "int", false),
        ("a", "int", true),
        ("b", "int", true),
        ("c", "int", true),
        ("wide", "varchar(400)", true),
    ];
    let keys = ["PRIMARY(id)", "ab(a,b)", "bc(b,c)", "c(c)"];
    lab.table("t", &columns, &keys, rows.collect());
    let rows = (0..40i64).map(|id| vec![Value::Int(id), Value::Int(id % 7)]);
    let columns = [("k", "int", false), ("v", "int", true)];
    lab.table("u", &columns, &["PRIMARY(k)"], rows.collect());
    lab
}

/// A query whose result is one, to the order of its rows.
fn random_query(random: &mut Random) -> String {
    let mut conditions: Vec<String> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let n = random.below(30);
        conditions.push(match random.below(6) {
            0 => format!("a = {}", n % 4),
            1 => format!("b = {n}"),
            2 => format!("b BETWEEN {} AND {n}", n / 2),
            3 => format!("c < {}", n * 20),
            4 => format!("c > {}", n * 20),
            _ => format!("id % 7 = {}", n % 7),
        });
    }
    let condition = conditions.join(" AND ");
    let limit = 1 + random.below(60);
    let direction = ["ASC", "DESC"][random.below(2) as usize];
    match random.below(6) {
        0 => format!("SELECT COUNT(*), SUM(c), MIN(wide) FROM t WHERE {condition}"),
        1 => format!("SELECT a, SUM(id) FROM t WHERE {condition} GROUP BY a ORDER BY a"),
        2 => format!(
            "SELECT id, v FROM t, u WHERE b = k AND {condition} ORDER BY v, id {direction} LIMIT {limit}"
        ),
        3 => {
            let column = ["a", "b", "c"][random.below(3) as usize];
            format!(
                "SELECT * FROM t WHERE {condition} ORDER BY {column} {direction}, id {direction} LIMIT {limit}"
            )
        }
        _ => {
            let offset = random.below(30);
            format!(
                "SELECT * FROM t WHERE {condition} ORDER BY id {direction} LIMIT {limit} OFFSET {offset}"
            )
        }
    }
}

/// Every plan that can be abandoned is, at every moment, and the rows are those of a plan that is not.
#[test]
fn the_rows_are_the_same_whenever_a_plan_is_given_up() {
    for seed in 0..2 {
        let mut random = Random::new(seed);
        let mut lab = random_tables(&mut random);
        let mut switched = 0;
        for _ in 0..30 {
            let sql = random_query(&mut random);
            lab.settings.switch.bounded_regret = false;
            lab.settings.regret_budget_us = None;
            let expected = lab.run(&sql).text();
            lab.settings.switch.bounded_regret = true;
            let mut budget_us = 0.0;
            loop {
                lab.settings.regret_budget_us = Some(budget_us);
                let rows = lab.run(&sql);
                assert_eq!(
                    rows.text(),
                    expected,
                    "seed {seed}, {budget_us} us: {sql}\n{}",
                    rows.shown
                );
                if switches(&rows) == 0 {
                    break;
                }
                switched += 1;
                budget_us = budget_us * 1.5 + 1.0;
            }
        }
        assert!(switched > 100, "seed {seed}: {switched} switches");
    }
}

/// Without an order any rows do, as long as there are as many as there should be and none comes twice.
#[test]
fn a_limit_without_an_order_gives_rows_of_the_result() {
    let mut random = Random::new(7);
    let mut lab = random_tables(&mut random);
    let mut switched = 0;
    for n in 0..30 {
        let condition = format!("a = {} AND b < {}", n % 4, 5 + n % 20);
        let limit = 1 + random.below(200) as usize;
        lab.settings.regret_budget_us = None;
        let all = lab
            .run(&format!("SELECT id FROM t WHERE {condition}"))
            .sorted();
        let all: Vec<&str> = all.lines().collect();
        for budget_us in [0.0, 2.0, 10.0, 50.0, 200.0] {
            lab.settings.regret_budget_us = Some(budget_us);
            let sql = format!("SELECT id FROM t WHERE {condition} LIMIT {limit}");
            let found = lab.run(&sql);
            switched += switches(&found);
            let found = found.sorted();
            let mut found: Vec<&str> = found.lines().collect();
            assert_eq!(found.len(), limit.min(all.len()), "{sql}");
            assert!(found.iter().all(|id| all.contains(id)), "{sql}");
            found.dedup();
            assert_eq!(found.len(), limit.min(all.len()), "{sql}");
        }
    }
    assert!(switched > 0);
}
