//! What would take too long or too much: long lists, deep nests, plans that multiply, texts that multiply, and
//! statements that are to end while they are planned or while one of their expressions is computed.

use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_sql::EngineOptions;

use crate::command_line::{connect, serve_with, terminate};
use crate::harness::{TestServer, error_of, query_text, wait_until};
use crate::raw_client::{COM_QUERY, RawClient};

/// Much longer than anything here takes, and much shorter than what is ended would take.
const PATIENCE: Duration = Duration::from_secs(20);

fn server() -> TestServer {
    TestServer::start_with(
        EngineOptions {
            memory_bytes: 256 << 20,
            ..EngineOptions::default()
        },
        |_, _| {},
    )
}

/// 2,000 rows: id = 3n, a = n % 50, b = n.
fn connect_with_rows(server: &TestServer) -> Conn {
    let mut c = server.connect();
    fill(&mut c);
    c
}

fn fill(c: &mut Conn) {
    c.query_drop("create database limits").expect("a database");
    c.query_drop("use limits").expect("it is there");
    c.query_drop("create table t (id int primary key, a int, b int, c int, key (a, b))")
        .expect("a table");
    let rows: Vec<String> = (0..2000)
        .map(|n| format!("({}, {}, {n}, {n})", 3 * n, n % 50))
        .collect();
    c.query_drop(format!("insert into t values {}", rows.join(",")))
        .expect("rows");
    c.query_drop("create table copied (id int)")
        .expect("a table");
}

fn join<T: std::fmt::Display>(items: impl Iterator<Item = T>, separator: &str) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    items.join(separator)
}

/// Each window has an operator of its own, and plans grow with their square.
#[test]
fn a_select_has_so_many_windows() {
    let server = server();
    let mut c = connect_with_rows(&server);
    let of_windows = |count: usize| {
        let calls = join(
            (0..count).map(|n| format!("row_number() over (order by id + {n})")),
            ",",
        );
        format!("select {calls} from t where id = 0")
    };
    let of_one_window = join(
        (0..1000).map(|n| format!("sum(b + {n}) over (order by id)")),
        ",",
    );
    for sql in [
        of_windows(127),
        format!("select {of_one_window} from t where id = 0"),
    ] {
        assert_eq!(query_text(&mut c, &sql).len(), 1);
    }
    for count in [128, 1000] {
        let error = error_of(c.query_drop(of_windows(count)));
        assert_eq!((error.0, error.1.as_str()), (4086, "HY000"));
    }
}

#[test]
fn long_lists_and_chains_are_planned() {
    let server = server();
    let mut c = connect_with_rows(&server);
    c.query_drop("set max_execution_time = 120000").unwrap();
    let mut count = |condition: &str| {
        let sql = format!("select count(*) from t where {condition}");
        query_text(&mut c, &sql)
    };
    // Every third value is an id.
    let list = join(0..20_000, ",");
    assert_eq!(count(&format!("id in ({list})")), ["2000"]);
    assert_eq!(count(&format!("c in ({list})")), ["2000"]);
    let odd = join((0..3000).map(|n| 2 * n + 1), ",");
    assert_eq!(count(&format!("id not in ({odd})")), ["1000"]);
    assert_eq!(count(&format!("c not in ({odd})")), ["1000"]);
    let halves = join((0..3000).map(|n| format!("{n}.5")), ",");
    assert_eq!(count(&format!("id in ({halves})")), ["0"]);
    assert_eq!(count(&format!("id in ({halves}, 6)")), ["1"]);

    let pairs = join((0..3000).map(|n| format!("({}, {n})", n % 50)), ",");
    assert_eq!(count(&format!("(a, b) in ({pairs})")), ["2000"]);
    assert_eq!(count(&format!("(a, c) in ({pairs})")), ["2000"]);
    // (0, 0) and (25, 75)
    assert_eq!(count(&format!("(c, id) in ({pairs})")), ["2"]);

    let chain = join((0..5000).map(|n| format!("id = {n}")), " or ");
    assert_eq!(count(&chain), ["1667"]);
    let ranges = (0..1500).map(|n| format!("(b >= {} and b < {})", 4 * n, 4 * n + 2));
    let ranges: Vec<String> = ranges.collect();
    assert_eq!(count(&ranges.join(" or ")), ["1000"]);
    assert_eq!(
        count(&format!("a < 25 and ({})", ranges.join(" or "))),
        ["500"]
    );
    let chain = join((0..5000).map(|n| format!("id <> {}", 6 * n)), " and ");
    assert_eq!(count(&chain), ["1000"]);
    let chain = join((0..5000).map(|n| format!("c <> {n}")), " and ");
    assert_eq!(count(&chain), ["0"]);
    // Numbers that are no dates, and texts that are no numbers.
    let few = join((0..3000).map(|n| format!("{n}")), ",");
    assert_eq!(count(&format!("date(20200101 + c % 9) in ({few})")), ["0"]);
    assert_eq!(
        count(&format!("date(20200101 + c % 9) in ({few}, 20200102)")),
        ["223"]
    );
    let texts = join((0..3000).map(|n| format!("'t{n}'")), ",");
    assert_eq!(count(&format!("concat('t', c) in ({texts})")), ["2000"]);
    assert_eq!(count(&format!("concat('u', c) not in ({texts})")), ["2000"]);
    let branches = join(
        (0..500).map(|n| format!("when c = {n} then {}", n % 2)),
        " ",
    );
    assert_eq!(count(&format!("case {branches} end")), ["250"]);
    let branches = join((0..1000).map(|n| format!("when {n} then {}", n % 2)), " ");
    assert_eq!(count(&format!("case c {branches} end = 1")), ["500"]);
    // Conditions behind the one that is met are not computed.
    let branches = join(
        (0..100).map(|n| format!("when c < {n} then {}", 18_446_744_073_709_551_615u64 - n)),
        " ",
    );
    let sums = format!("case {branches} when c = 3 then 1 else 9223372036854775807 + c end");
    assert_eq!(count(&format!("c < 90 and {sums} > 0")), ["90"]);
    let chain = join((0..4001).map(|n| format!("c < {n}")), " xor ");
    // An odd number of these is true.
    assert_eq!(count(&chain), ["1000"]);
}

/// Lists that the parser keeps as one text: what is in them has the meaning that it has in a short one.
#[test]
fn long_lists_of_any_constants_are_planned() {
    let server = server();
    let mut c = connect_with_rows(&server);
    c.query_drop("set max_execution_time = 120000").unwrap();
    c.query_drop(
        "create table s (k int primary key, v varchar(20), d date, m decimal(6,2), key (v))",
    )
    .expect("a table");
    let rows =
        (0..1500).map(|n| format!("({n}, 'v;{n}:', '2000-01-01' + interval {n} day, {n}.25)"));
    c.query_drop(format!("insert into s values {}", join(rows, ",")))
        .expect("rows");
    c.query_drop(
        "insert into s values (9000, null, null, null), (9001, 'it''s', '1999-12-31', -1.5)",
    )
    .expect("rows");
    let mut count = |condition: &str| {
        let sql = format!("select count(*) from t where {condition}");
        query_text(&mut c, &sql)
    };
    // Texts of numbers, with signs, blanks and decimals among them, and what is none.
    let texts = join((0..20_000).map(|n| format!("'{n}'")), ",");
    assert_eq!(count(&format!("id in ({texts})")), ["2000"]);
    assert_eq!(count(&format!("c in ({texts})")), ["2000"]);
    assert_eq!(count(&format!("c + 0 in ({texts})")), ["2000"]);
    assert_eq!(count(&format!("c not in ({texts})")), ["0"]);
    let odd = join((0..1000).map(|n| format!("\"{}\"", 2 * n + 1)), ",");
    assert_eq!(count(&format!("c in ({odd})")), ["1000"]);
    assert_eq!(
        count(&format!("c in ({odd}, '-0', '2.0', ' 4', '6.5', 'x')")),
        ["1003"]
    );
    assert_eq!(count(&format!("c in ({odd}, null, 0)")), ["1001"]);
    assert_eq!(count(&format!("c not in ({odd}, 0)")), ["999"]);
    assert_eq!(count(&format!("c not in ({odd}, null)")), ["0"]);
    assert_eq!(
        count(&format!("(c not in ({odd}, null)) is null")),
        ["1000"]
    );
    assert_eq!(
        count(&format!(
            "c in ({odd}, 1e0, 4e0, -1.5, 18446744073709551615)"
        )),
        ["1001"]
    );
    // Rows, with texts of numbers and NULL.
    let rows = join((0..3000).map(|n| format!("({}, '{n}')", n % 50)), ",");
    assert_eq!(count(&format!("(a, b) in ({rows})")), ["2000"]);
    assert_eq!(count(&format!("(a, b) not in ({rows})")), ["0"]);
    assert_eq!(
        count(&format!("(a, b) in ({rows}, (null, 5), (7, null))")),
        ["2000"]
    );
    assert_eq!(
        count(&format!("(a, b + 1) not in ({rows}, (null, 7))")),
        ["1999"]
    );
    assert_eq!(count(&format!("(b, id) in ({rows})")), ["2"]);
    assert_eq!(
        count(&format!(
            "(id, a, c) in ((0, 0, 0), {})",
            join(
                (1..1500).map(|n| format!("({}, {}, {n})", 3 * n, n % 50)),
                ","
            )
        )),
        ["1500"]
    );
    let joined = format!(
        "exists (select 1 from s where (k, v) in ({}) and k = c)",
        join((0..1200).map(|n| format!("({n}, 'V;{n}:')")), ",")
    );
    assert_eq!(count(&joined), ["1200"]);
    let mut one = |sql: &str| query_text(&mut c, sql);
    let names = join((0..1400).map(|n| format!("'v;{n}:'")), ", ");
    assert_eq!(
        one(&format!(
            "select count(*), min(k) from s where v in ({names}, 'IT''S', \"n0\")"
        )),
        ["1401\t0"]
    );
    assert_eq!(
        one(&format!("select count(*) from s where v not in ({names})")),
        ["101"]
    );
    let days = join(
        (0..1000).map(|n| format!("'{}-{:02}-01'", 2000 + n / 12, n % 12 + 1)),
        ",",
    );
    assert_eq!(
        one(&format!("select count(*) from s where d in ({days})")),
        ["50"]
    );
    let decimals = join((0..1000).map(|n| format!("{n}.250")), ",");
    assert_eq!(
        one(&format!(
            "select count(*) from s where m in ({decimals}, -1.5)"
        )),
        ["1001"]
    );
    // Where a list stands does not matter.
    let list = format!("select sum(c in ({odd})), sum((a, b) in ({rows})) from t");
    assert_eq!(one(&list), ["1000\t2000"]);
    let grouped = format!(
        "select count(*) from (select a, max(c) m from t group by a having m in ({odd})) d"
    );
    assert_eq!(one(&grouped), ["25"]);
    let common = format!(
        "with recursive r as (select 1 as n union all select n + 1 from r where n in ({odd}, '2')) select max(n) from r"
    );
    assert_eq!(one(&common), ["4"]);
    let joined = format!(
        "select count(*) from t join s on s.k = t.c where t.id in ({texts}) and s.v in ({names})"
    );
    assert_eq!(one(&joined), ["1400"]);
    // A number that is not exact makes expressions of all members.
    let exact = format!("select count(*) from t where (a, b) in ({rows})");
    let inexact = format!("select count(*) from t where (a, b) in ({rows}, (1e0, 7e9))");
    assert_eq!(one(&inexact), one(&exact));
    let prepared = format!("select count(*) from t where id > ? and c in ({odd})");
    assert_eq!(c.exec_first(&prepared, (2999,)).unwrap(), Some(500));
    c.query_drop(format!(
        "update t set c = -1 where c in ({odd}) and (a, b) in ({rows})"
    ))
    .expect("a change");
    assert_eq!(c.affected_rows(), 1000);
    c.query_drop(format!(
        "delete from t where (a, b) in ({rows}) and c in (-1, {odd})"
    ))
    .expect("a change");
    assert_eq!(c.affected_rows(), 1000);
    // Rows of other lengths.
    for wrong in [
        format!("a in ({rows})"),
        format!("(a, b) in ({odd})"),
        format!("(a, b, c) in ({rows})"),
        format!("(a, b) in ({rows}, (1, 2, 3))"),
    ] {
        let sql = format!("select count(*) from t where {wrong}");
        assert_eq!(error_of(c.query_drop(sql)).0, 1241);
    }
}

#[test]
fn long_ors_of_any_terms_are_planned() {
    let server = server();
    let mut c = connect_with_rows(&server);
    c.query_drop("set max_execution_time = 120000").unwrap();
    let mut count = |term: &dyn Fn(usize) -> String| {
        let terms = join((0..3000).map(term), " or ");
        query_text(&mut c, &format!("select count(*) from t where {terms}"))
    };
    assert_eq!(
        count(&|n| format!("b between {} and {}", 4 * n, 4 * n + 1)),
        ["1000"]
    );
    assert_eq!(
        count(&|n| format!("id between {} and {}", 12 * n, 12 * n + 3)),
        ["1000"]
    );
    assert_eq!(
        count(&|n| format!("c not between {} and {}", 1 - n as i64, 1995 + n)),
        ["5"]
    );
    assert_eq!(
        count(&|n| format!("b between '{}' and {}.5", 4 * n, 4 * n + 1)),
        ["1000"]
    );
    assert_eq!(
        count(&|n| format!("(id >= {} and id < {})", 12 * n, 12 * n + 6)),
        ["1000"]
    );
    assert_eq!(
        count(&|n| format!("id = {} and a = {}", 3 * n, n % 50)),
        ["2000"]
    );
    assert_eq!(
        count(&|n| format!("id = {} and a > {}", 3 * n, 25)),
        ["960"]
    );
    assert_eq!(count(&|n| format!("a + {n} = b")), ["2000"]);
    assert_eq!(count(&|n| format!("concat(c) like '{n}_9'")), ["190"]);
    assert_eq!(
        count(&|n| format!("(id, a) = ({}, {})", 3 * n, n % 50)),
        ["2000"]
    );
    assert_eq!(
        count(&|n| format!("c in ({}, {})", 4 * n, 4 * n + 1)),
        ["1000"]
    );
    assert_eq!(
        count(&|n| format!("c is null or b = {n} and id is not null")),
        ["2000"]
    );
}

/// A strict change hears of operands that are no numbers, if it comes to them. Each got copies of all before it: a list
/// of 900 was planned for minutes.
#[test]
fn long_lists_that_a_change_watches_are_planned() {
    let server = server();
    let mut c = connect_with_rows(&server);
    let list = |member: &dyn Fn(usize) -> String| join((0..3000).map(member), ", ");
    for condition in [
        format!("b in ({})", list(&|n| format!("concat(a) + {n}"))),
        format!("b in ({})", list(&|n| format!("'{n}x'"))),
        format!("concat(b) + 0 in ({})", list(&|n| format!("'{n}x'"))),
        format!("(a, b) in ({})", list(&|n| format!("(concat(a), {n})"))),
        format!("concat({}) = '1'", list(&|n| format!("concat(a) + {n}"))),
        format!("coalesce({}) = 1", list(&|n| format!("{n} / a"))),
        format!("greatest({}) = 1", list(&|n| format!("concat(a) + {n}"))),
    ] {
        let sql = format!("delete from t where id < 0 and {condition}");
        c.query_drop(&sql).expect(&condition[..40]);
        let sql = format!("update t set c = 1 where id < 0 and not {condition}");
        c.query_drop(&sql).expect(&condition[..40]);
        assert_eq!(c.affected_rows(), 0);
    }
    let chosen = join(
        (0..3000).map(|n| format!("when concat(a) + {n} then {n}")),
        " ",
    );
    let sql = format!("delete from t where id < 0 and case b {chosen} end = 1");
    c.query_drop(&sql).expect("a CASE");
}

/// `inner`, with `wrap` put around it so many times.
fn nest(times: usize, inner: &str, wrap: impl Fn(&str) -> String) -> String {
    (0..times).fold(inner.to_string(), |nested, _| wrap(&nested))
}

#[test]
fn deep_nests_are_planned() {
    let server = server();
    let mut c = connect_with_rows(&server);
    let scalar = nest(30, "select 1", |inner| format!("select ({inner}) + 1"));
    assert_eq!(query_text(&mut c, &scalar), ["31"]);
    let all = "select id from t";
    let within = nest(30, all, |inner| format!("{all} where id in ({inner})"));
    let count = format!("select count(*) from ({within}) d");
    assert_eq!(query_text(&mut c, &count), ["2000"]);
    let having = nest(30, all, |inner| {
        format!("{all} group by id having id in ({inner})")
    });
    let count = format!("select count(*) from ({having}) d");
    assert_eq!(query_text(&mut c, &count), ["2000"]);
    let least = "select min(id) from t";
    let above = nest(30, least, |inner| format!("{least} where id > ({inner})"));
    assert_eq!(query_text(&mut c, &above), ["90"]);
    // Parentheses inside of each other have a limit still.
    let deep = nest(400, "1", |inner| format!("({inner})"));
    assert_eq!(error_of(c.query_drop(format!("select {deep}"))).0, 1436);
    let deep = nest(400, "1", |inner| format!("not {inner}"));
    assert_eq!(error_of(c.query_drop(format!("select {deep}"))).0, 1436);
}

/// Operators whose meaning names an operand twice, inside of each other: planned once for each time that it is written.
#[test]
fn nests_that_repeat_an_operand_are_planned() {
    let server = server();
    let mut c = connect_with_rows(&server);
    c.query_drop("set max_execution_time = 120000").unwrap();
    let nests = [
        "nullif(x, b)",
        "nullif(concat(x), 'q')",
        "ifnull(x, a + 1)",
        "coalesce(nullif(x, 5), a - 1, b * 2, 3)",
        "if(x > 3, a, b)",
        "case x when 1 then 2 when 3 then 4 else a end",
        "(x between a and b)",
        "(x in (a, b))",
        "((x, a) < (b, a))",
        "((x, a) in ((1, b), (2, 3)))",
        "((b, 1) in ((1, x), (2, 3)))",
        "if(b = 7, x, a)",
        "if(b = 7, a, x)",
        "case b when 7 then x else a end",
        "case b when 7 then a else x end",
        "nullif(b + 1, x)",
        "ifnull(b + 1, x)",
        "str_to_date(x, '%Y')",
        "(x <=> a)",
        "(x = a)",
        "interval(x, 1, 2)",
    ];
    for wrapped in nests {
        let nested = |times| nest(times, "c", |inner| wrapped.replace('x', inner));
        for times in [4, 30] {
            let sql = format!("select count(*) from t where {} or true", nested(times));
            assert_eq!(query_text(&mut c, &sql), ["2000"], "{wrapped}");
            let sql = format!("select count(v) from (select {} v from t) d", nested(times));
            let count = query_text(&mut c, &sql);
            assert_eq!(count.len(), 1, "{wrapped}: {count:?}");
        }
    }
    // Every level does the same to what the one below it gives.
    let same = nest(30, "c", |inner| format!("nullif({inner}, 7)"));
    let sql = format!("select count({same}), sum({same}) from t");
    assert_eq!(query_text(&mut c, &sql), ["1999\t1998993"]);
    let same = nest(30, "c", |inner| {
        format!("ifnull(nullif({inner}, 7), b + 0)")
    });
    let sql = format!("select count({same}), sum({same}) from t");
    assert_eq!(query_text(&mut c, &sql), ["2000\t1999000"]);
    // Long results are made of as many rows at a time as memory allows.
    let operand = "concat(upper(c), lower(c), left(c, 2), right(c, 2), reverse(c))";
    let long = format!(
        "ifnull(nullif(nullif({operand}, 'q'), {operand}), concat(repeat('x', 100000), c))"
    );
    let sql = format!("select count(*), sum(length({long}) > 100000) from t");
    assert_eq!(query_text(&mut c, &sql), ["2000\t2000"]);
    let flips = nest(30, "c", |inner| format!("({inner} between 1 and b + 3000)"));
    let sql = format!("select sum({flips}) from t");
    assert_eq!(query_text(&mut c, &sql), ["1999"]);
}

/// Each left side has what is before it, and a lateral table's domain is made of the left side.
#[test]
fn chains_of_lateral_tables_are_planned() {
    let server = server();
    let mut c = connect_with_rows(&server);
    c.query_drop("set max_execution_time = 120000").unwrap();
    for (condition, expected) in [("y.b <= l{n}.m", "1"), ("y.b <= l0.m", "1")] {
        let lateral = |n: usize| {
            let condition = condition.replace("{n}", &(n - 1).to_string());
            format!(" join lateral (select max(b) m from t y where {condition}) l{n}")
        };
        let chain: String = (1..=14).map(lateral).collect();
        let sql = format!("select count(*) from (select max(b) m from t) l0{chain}");
        assert_eq!(query_text(&mut c, &sql), [expected], "{condition}");
    }
}

/// `c0`, and `c1` to so many, each the union of two of the one before.
fn doubled(first: &str, times: usize) -> String {
    let tables = (0..times).map(|n| {
        format!(
            "c{} as (select x from c{n} union all select x from c{n})",
            n + 1
        )
    });
    let tables = join(tables, ", ");
    format!("with c0 as ({first}), {tables} select count(*) from c{times}")
}

/// What is named several times is planned once, and computed once.
#[test]
fn chains_of_common_tables_are_planned() {
    let server = server();
    let mut c = connect_with_rows(&server);
    let began = Instant::now();
    assert_eq!(
        query_text(&mut c, &doubled("select 1 as x", 18)),
        ["262144"]
    );
    let deep = doubled("select 1 as x", 30);
    assert!(!query_text(&mut c, &format!("explain {deep}")).is_empty());
    let document = query_text(&mut c, &format!("explain format=json {deep}"));
    assert!(document[0].len() < 100_000);
    c.query_drop("set max_execution_time = 300").unwrap();
    assert_eq!(error_of(c.query_drop(&deep)).0, 3024);
    c.query_drop("set max_execution_time = 0").unwrap();
    let tables = (0..300).map(|n| {
        format!(
            "c{} as (select x from c{n} union select x + 1 from c{n} limit 5)",
            n + 1
        )
    });
    let long = format!(
        "with c0 as (select 1 as x), {} select count(*) from c300",
        join(tables, ", ")
    );
    assert_eq!(query_text(&mut c, &long), ["5"]);
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn unions_and_orders_of_many_are_planned() {
    let server = server();
    let mut c = connect_with_rows(&server);
    let began = Instant::now();
    let parts = |word: &str| {
        let parts = (0..1000).map(|n| format!("select {} as x", n % 900));
        let union = join(parts, word);
        format!("select count(*), sum(x) from ({union}) d")
    };
    assert_eq!(query_text(&mut c, &parts(" union all ")), ["1000\t409500"]);
    assert_eq!(query_text(&mut c, &parts(" union ")), ["900\t404550"]);
    let keys = join((0..1000).map(|n| format!("a + {n}")), ", ");
    let first = format!("select id from t order by {keys}, id limit 2");
    assert_eq!(query_text(&mut c, &first), ["0", "150"]);
    let groups = format!("select count(*) from (select 1 from t group by {keys}) d");
    assert_eq!(query_text(&mut c, &groups), ["50"]);
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn plans_that_multiply_are_refused() {
    let server = server();
    let mut c = connect_with_rows(&server);
    // Tables that take something from the row around them are planned wherever they are named.
    let of_row = |times: usize| {
        let chain = doubled("select t.id as x", times);
        format!("select sum(n) from (select ({chain}) as n from t where id < 5) d")
    };
    assert_eq!(query_text(&mut c, &of_row(4)), ["32"]);
    assert_eq!(error_of(c.query_drop(of_row(30))).0, 1116);
    let sums = nest(30, "select id from t", |inner| {
        format!("select d.id + d.id as id from ({inner}) d")
    });
    let sums = format!("select * from ({sums}) d where id = 5");
    assert_eq!(error_of(c.query_drop(sums)).0, 1436);
    assert_eq!(query_text(&mut c, "select 1"), ["1"]);
}

#[test]
fn texts_that_multiply_have_a_limit() {
    let server = server();
    let mut c = connect_with_rows(&server);
    let limit: usize = c
        .query_first("select @@max_allowed_packet")
        .unwrap()
        .unwrap();
    let mut warned = |sql: &str| {
        assert_eq!(query_text(&mut c, sql), ["NULL"], "{sql}");
        let warnings = query_text(&mut c, "show warnings");
        assert!(warnings[0].starts_with("Warning\t1301\t"), "{warnings:?}");
    };
    let hex = nest(31, "repeat('a', 2)", |inner| format!("hex({inner})"));
    warned(&format!("select length({hex})"));
    warned(&format!("select repeat('ab', {limit})"));
    warned("select space(9e18)");
    warned("select lpad('a', 4294967295, 'bc')");
    warned("select cast(1 as binary(4294967295))");
    let many = nest(12, "repeat('ab', 5000)", |inner| {
        format!("replace({inner}, 'b', 'abab')")
    });
    warned(&format!("select {many}"));
    let again = format!("regexp_replace(repeat('a', 100000), 'a', repeat('b', {limit} / 1000))");
    warned(&format!("select {again}"));
    assert_eq!(
        query_text(&mut c, "explain select cast(1 as binary(4294967295))").len(),
        1
    );
    // What is stored is not NULL in silence.
    c.query_drop("create table k (v longtext)").unwrap();
    let insert = format!("insert into k values (repeat('ab', {limit}))");
    assert_eq!(error_of(c.query_drop(insert)).0, 1301);
    // Of a value that may be as long there may be many in a batch.
    let long = format!("repeat('a', {limit} / 8)");
    let sql = format!(
        "select sum(length({long})) div {limit} from t where length(concat({long}, id)) > 0"
    );
    assert_eq!(query_text(&mut c, &sql), ["250"]);
    let sql = format!(
        "select max(length(v)) * 8 = {limit} from (select concat({long}) as v, id from t limit 50) d"
    );
    assert_eq!(query_text(&mut c, &sql), ["1"]);
}

/// MySQL's answers, with as many times its max_allowed_packet.
#[test]
fn what_is_longer_than_a_packet_is_null_and_named_as_it_was_written() {
    let server = server();
    let mut c = connect_with_rows(&server);
    let limit: usize = c
        .query_first("select @@max_allowed_packet")
        .unwrap()
        .unwrap();
    c.query_drop("create table l (v longtext not null)")
        .unwrap();
    c.query_drop(format!("insert into l values (repeat('a', {limit} - 1))"))
        .unwrap();
    let two = format!("repeat('a', {limit} / 4 * 3), repeat('a', {limit} / 4 * 3)");
    let numbers = |count: usize| format!("cast(concat('[', repeat('1,', {count}), '1]') as json)");
    let long = numbers(limit / 2 - 2);
    for (sql, function) in [
        (format!("quote(repeat('a', {limit} - 1))"), "quote"),
        ("quote(v) from l".to_string(), "quote"),
        ("concat(v, 'bb') from l".to_string(), "concat"),
        ("concat_ws('-', v, 'b') from l".to_string(), "concat_ws"),
        ("insert(v, 1, 0, 'bb') from l".to_string(), "insert"),
        ("replace(v, 'a', 'bb') from l".to_string(), "replace"),
        ("to_base64(v) from l".to_string(), "to_base64"),
        (format!("length(json_array({two}))"), "json_array"),
        (
            format!("length(json_pretty(json_array({two})))"),
            "json_pretty",
        ),
        (format!("length({long})"), "cast_as_json"),
    ] {
        assert_eq!(
            query_text(&mut c, &format!("select {sql}")),
            ["NULL"],
            "{sql}"
        );
        let warning = format!(
            "Warning\t1301\tResult of {function}() was larger than max_allowed_packet ({limit}) - truncated"
        );
        assert_eq!(query_text(&mut c, "show warnings")[0], warning, "{sql}");
    }
    // A document itself is as long as there is memory for it.
    let mut one = |sql: &str| {
        let answer = query_text(&mut c, &format!("select {sql}"));
        assert_eq!(query_text(&mut c, "show warnings").len(), 0, "{sql}");
        answer
    };
    let count = limit / 4;
    let lengths = [(count + 1).to_string()];
    assert_eq!(one(&format!("json_length({})", numbers(count))), lengths);
    assert_eq!(one(&format!("json_length(json_array({two}))")), ["2"]);
    let arrays = "json_length(json_arrayagg(v)) from (select v from l union all select v from l) d";
    assert_eq!(one(arrays), ["2"]);
    // One that is stored is not.
    c.query_drop("create table j (v json)").unwrap();
    let insert = format!("insert into j values (json_array({two}))");
    assert_eq!(error_of(c.query_drop(insert)).0, 1301);
}

/// Statements that would take much longer than [`PATIENCE`], by what they spend their time on.
fn endless() -> Vec<String> {
    let values = join(
        (0..300).map(|n| format!("(select max(a + {n}) from t where id <= o.id)")),
        ", ",
    );
    let ids = join(0..300_000, ",");
    let deep = nest(25, "select id from t", |inner| {
        format!(
            "select a.id from t a join t b on a.id = b.b join t c on b.id = c.b where a.id in ({inner})"
        )
    });
    let joined = join((0..12).map(|n| format!("t t{n}")), ", ");
    vec![
        // Planning, and then waiting.
        format!("select count(*) from t where id in ({ids}) and sleep(1) = 0"),
        format!("select count(*) from ({deep}) d where sleep(1) = 0"),
        format!("select count(*) from {joined}"),
        format!("select {values} from t o, t p, t q order by 1"),
        // Rows that are sorted, grouped, and written.
        "select count(*) from (select x.*, y.id as of_y from t x, t y, t z order by x.b, y.c, z.id limit 2000000) d".to_string(),
        "select count(*) from (select x.id, y.id as of_y, z.id as of_z, count(*) from t x, t y, t z group by 1, 2, 3) d".to_string(),
        "insert into copied select x.id from t x, t y, t z".to_string(),
        // One expression.
        "select sum(length(replace(repeat('ab', 1000000 + x.id + y.id), 'a', 'xyz'))) from t x, t y".to_string(),
        "select sum(repeat('abc', 500000 + x.id) regexp concat('c', y.id, '$')) from t x, t y".to_string(),
        "select count(*) from t x, t y where locate(concat('b', y.id), repeat('ab', 1000000 + x.id)) > 5".to_string(),
        "select sum(length(hex(repeat(x.id, 200000)))) from t x, t y, t z".to_string(),
        "select sum(json_length(cast(concat('[', repeat('1,', 1000000 + x.id), '1]') as json))) from t x, t y".to_string(),
    ]
}

#[test]
fn statements_end_when_they_are_killed() {
    let server = server();
    let mut root = connect_with_rows(&server);
    let mut random = 88_172_645_463_325_252u64;
    for (n, sql) in endless().iter().enumerate() {
        for (round, kill) in ["kill query", "kill query", "kill"].iter().enumerate() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut c = server.connect();
            c.query_drop("use limits").unwrap();
            let id = c.connection_id();
            std::thread::scope(|scope| {
                let running = scope.spawn(move || {
                    let ended = match c.query_drop(sql) {
                        Ok(()) => panic!("statement {n} has come to its end"),
                        Err(mysql::Error::MySqlError(error)) => Some(error.code),
                        // The connection is closed.
                        Err(_) => None,
                    };
                    (c, ended)
                });
                std::thread::sleep(Duration::from_millis(random % 700));
                // It may not have begun yet, and then a KILL ends nothing.
                let began = Instant::now();
                while !running.is_finished() {
                    assert!(began.elapsed() < PATIENCE, "statement {n}, round {round}");
                    match root.query_drop(format!("{kill} {id}")) {
                        Ok(()) => {}
                        // It is gone already.
                        Err(error) => assert_eq!(error_of(Err::<(), _>(error)).0, 1094),
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
                let (mut c, ended) = running.join().expect("no panic");
                if *kill == "kill query" {
                    assert_eq!(ended, Some(1317), "statement {n}");
                    assert_eq!(query_text(&mut c, "select 1"), ["1"]);
                } else {
                    assert!(
                        matches!(ended, None | Some(1317)),
                        "statement {n}: {ended:?}"
                    );
                }
            });
        }
    }
}

#[test]
fn a_time_limit_ends_statements_that_are_planned_or_computed() {
    let server = server();
    let mut c = connect_with_rows(&server);
    // It is for queries alone.
    let queries = endless()
        .into_iter()
        .filter(|sql| sql.starts_with("select"));
    for (n, sql) in queries.enumerate() {
        c.query_drop("set max_execution_time = 300").unwrap();
        let began = Instant::now();
        assert_eq!(error_of(c.query_drop(sql)).0, 3024, "statement {n}");
        assert!(began.elapsed() < PATIENCE, "statement {n}");
    }
}

#[test]
fn statements_end_when_their_client_hangs_up() {
    let server = server();
    let mut root = connect_with_rows(&server);
    let connected = "select count(*) from information_schema.processlist where db = 'limits' and id <> connection_id()";
    let running = format!("{connected} and command = 'Query'");
    for (n, sql) in endless().into_iter().enumerate() {
        let mut client = RawClient::connect(server.address(), 0);
        client.succeed(COM_QUERY, b"use limits");
        client
            .send_command(COM_QUERY, sql.as_bytes())
            .expect("it is sent");
        wait_until("the statement runs", || {
            query_text(&mut root, &running) == ["1"]
        });
        std::thread::sleep(Duration::from_millis(100));
        if n % 2 == 0 {
            // As a client says goodbye.
            client.send_command(1, b"").expect("it is sent");
        }
        drop(client);
        wait_until("the statement has ended", || {
            query_text(&mut root, connected) == ["0"]
        });
    }
}

#[test]
fn statements_end_when_the_server_is_told_to() {
    for sql in [
        "select count(*) from t a, t b, t c, t d, t e",
        "select sum(repeat('abc', 500000 + x.id) regexp concat('c', y.id, '$')) from t x, t y",
        "insert into copied select x.id from t x, t y, t z",
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (mut child, port) = serve_with(directory.path(), &[]);
        let mut root = connect(port);
        fill(&mut root);
        let mut c = connect(port);
        c.query_drop("use limits").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(c.query_drop(sql).is_err()));
            let running = "select count(*) from information_schema.processlist where db = 'limits' and command = 'Query' and id <> connection_id()";
            wait_until("the statement runs", || {
                query_text(&mut root, running) == ["1"]
            });
            std::thread::sleep(Duration::from_millis(200));
            let began = Instant::now();
            terminate(&child);
            let status = child.wait().expect("it ends");
            assert!(status.success());
            assert!(began.elapsed() < PATIENCE);
        });
    }
}

#[test]
fn many_parameters_are_prepared() {
    let server = server();
    let mut c = server.connect();
    let places = join((0..4000).map(|_| "?"), ", ");
    let statement = c.prep(format!("select {places}")).expect("it is prepared");
    assert_eq!(statement.num_params(), 4000);
    let values: Vec<mysql::Value> = (0..4000).map(mysql::Value::Int).collect();
    let row: Option<mysql::Row> = c.exec_first(statement, values).expect("a row");
    let row = row.expect("a row");
    assert_eq!(row.len(), 4000);
    assert_eq!(row.get::<i64, _>(3999), Some(3999));
}

#[test]
fn windows_order_texts_that_are_longer_than_a_packet() {
    let server = server();
    let mut c = server.connect();
    for sql in [
        "create database long_keys",
        "use long_keys",
        "create table t (id int primary key, s text, b blob)",
        "insert into t values (1, repeat('b', 600), repeat('y', 600)), (2, repeat('a', 600), repeat('x', 600))",
        "insert into t select id + 2, concat(s, s, s), concat(b, b, b) from t",
        "set global max_allowed_packet = 1024",
    ] {
        c.query_drop(sql).unwrap();
    }
    let mut c = server.connect();
    for key in ["s", "b"] {
        let ranks = format!(
            "select id, rank() over (order by {key}), sum(id) over (order by {key}) from long_keys.t order by id"
        );
        let expected = ["1\t3\t7", "2\t1\t2", "3\t4\t10", "4\t2\t6"];
        assert_eq!(query_text(&mut c, &ranks), expected);
        assert!(query_text(&mut c, "show warnings").is_empty());
    }
}
