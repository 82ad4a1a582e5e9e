//! EXPLAIN of plans of operators, in each of its forms: whatever rules made of a plan, each operator that runs has a
//! line, and each line of a run says what its operator did.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, query_text};
use crate::tpch;

const SCALE: f64 = 0.01;

/// What a line is about that stands for no operator of its own: parts of an operator, and what may take its place.
const PARTS: [&str; 7] = [
    "Hash",
    "In its place once its cost is spent",
    "In place of lookups once they have cost as much",
    "Materialize CTE ",
    "Materialize table function",
    "Subquery ",
    // The lookups of a join.
    " lookup on ",
];

/// A line of a tree: how deep it stands, what it says, and what follows that.
fn parts_of(line: &str) -> (usize, &str, &str) {
    let said = line.trim_start_matches(' ');
    let depth = line.len() - said.len();
    let said = said.strip_prefix("-> ").unwrap_or(said);
    let end = ["  (cost=", "  (actual time=", "  (never executed)", "  ["]
        .into_iter()
        .filter_map(|begin| said.find(begin));
    let (said, rest) = said.split_at(end.min().unwrap_or(said.len()));
    (depth, said, rest)
}

fn is_part(said: &str) -> bool {
    let is_late = said.starts_with("Late lookup on ");
    let part = PARTS.iter().any(|part| match part.starts_with(' ') {
        true => said.contains(part),
        false => said.starts_with(part) && !said.starts_with("Hash "),
    });
    part && !is_late
}

/// Lines of a measured run that do not say what happened.
fn unmeasured(tree: &str) -> Vec<&str> {
    let mut skipped_below = None;
    let lines = tree.lines().filter(|line| {
        let (depth, said, rest) = parts_of(line);
        // A scan in the place of lookups is a part of the join.
        if skipped_below.is_some_and(|above| depth > above) {
            return false;
        }
        skipped_below = said.starts_with("In place of lookups").then_some(depth);
        !is_part(said) && !rest.contains("(actual time=") && !rest.contains("(never executed)")
    });
    lines.collect()
}

fn said(tree: &str) -> Vec<(usize, &str)> {
    let lines = tree.lines().map(parts_of);
    lines.map(|(depth, said, _)| (depth, said)).collect()
}

/// What is wrong with the explanations of a query.
fn wrong(session: &mut Conn, sql: &str) -> Vec<String> {
    let mut text = |form: &str| query_text(session, &format!("explain {form} {sql}")).join("\n");
    let run = text("analyze");
    let mut wrong: Vec<String> = unmeasured(&run).into_iter().map(str::to_owned).collect();
    if said(&text("format=tree")) != said(&run) {
        wrong.push("the tree has other lines".to_owned());
    }
    let measured = |text: &str, name: &str| text.matches(name).count();
    let document = text("analyze format=json");
    let (lines, objects) = (
        measured(&run, "(actual time=") + measured(&run, "(never executed)"),
        measured(&document, "\"actual_rows\""),
    );
    if lines != objects {
        wrong.push(format!("{lines} measured lines and {objects} objects"));
    }
    if !wrong.is_empty() {
        wrong.insert(0, sql.to_owned());
        wrong.push(run);
    }
    wrong
}

/// Forms of queries beside those of TPC-H.
const FORMS: &[&str] = &[
    "select n_name from nation union select r_name from region",
    "select n_name from nation union all select r_name from region order by 1 limit 3",
    "select c_name from customer where c_acctbal > (select avg(c_acctbal) from customer) limit 5",
    "select c_name, (select max(o_totalprice) from orders where o_custkey = c_custkey) from customer limit 7",
    "with c as (select o_custkey as k, sum(o_totalprice) as s from orders group by o_custkey)
     select count(*) from c a, c b where a.s = b.s",
    "with recursive r as (select 1 as n union all select n + 1 from r where n < 50)
     select n, n_name from r left join nation on n_nationkey = n",
    "select o_orderkey, rank() over (partition by o_custkey order by o_totalprice) from orders",
    "select count(*) from lineitem a join lineitem b on a.l_partkey + 0 = b.l_partkey + 0",
    "select l_comment, l_orderkey from lineitem order by l_comment, l_orderkey",
    "select l_partkey, count(*) from lineitem group by l_partkey",
    "select distinct l_shipmode, l_returnflag from lineitem order by 1 desc limit 3 offset 2",
    "select count(*) from nation a, nation b where a.n_nationkey + b.n_nationkey < 9",
    "select l_returnflag, l_linestatus, count(*) from lineitem group by 1, 2 with rollup",
    "select * from orders where o_orderdate > '1995-01-01' order by o_totalprice limit 4",
    "select count(*) from json_table('[1, 2, 3]', '$[*]' columns (x int path '$')) j, nation where n_nationkey = x",
];

#[test]
fn each_operator_has_a_line_and_each_line_says_what_happened() {
    let server = TestServer::start_with_pool(96 << 20, 64 << 20);
    let mut session = server.connect();
    tpch::load(&mut session, SCALE);
    session
        .query_drop("set optimizer_switch = 'direct=off'")
        .expect("a switch");
    let mut report = Vec::new();
    for settings in [
        "set join_buffer_size = default",
        "set optimizer_switch = 'bounded_regret=off,shared_subplans=off,mrr=off'",
        "set optimizer_switch = 'block_nested_loop=off'",
    ] {
        session.query_drop(settings).expect("a setting");
        let reference = tpch::queries().into_iter().map(|(_, sql)| sql);
        let others = FORMS.iter().map(|sql| (*sql).to_owned());
        for sql in reference.chain(others) {
            report.extend(wrong(&mut session, &sql));
        }
    }
    assert!(report.is_empty(), "{}", report.join("\n"));
}
