//! EXPLAIN FORMAT=TREE, and EXPLAIN ANALYZE in both of its formats: the nodes of a plan, one a line.
//!
//! ```text
//!   -> Limit: 20 row(s)  (cost=5120 rows=20)
//!       -> Sort: revenue DESC, limit input to 20 row(s)  (cost=5120 rows=20)
//!           -> Nested loop inner join  (cost=4800 rows=310)
//!               -> Index range scan on orders using i_o_orderdate over (...)  (cost=900 rows=201)
//!               -> Index lookup on lineitem using PRIMARY (l_orderkey=orders.o_orderkey)  (cost=... rows=5)
//! ```
//!
//! Costs are microseconds.

use std::time::Duration;

use sheaf_exec::operator::measuring_exec::Measured;

use crate::explain::plan_node::PlanNode;
use crate::json::{Json, Object};

/// A tree as text, each level indented by four blanks.
pub(crate) fn tree_text(tree: &PlanNode) -> String {
    let mut text = String::new();
    print_at(tree, 0, &mut text);
    text
}

fn print_at(node: &PlanNode, depth: usize, output: &mut String) {
    output.extend(std::iter::repeat_n("    ", depth));
    output.push_str("-> ");
    push_line(&node.text, output);
    if let (Some(rows), Some(cost_us)) = (node.rows, node.cost_us) {
        let (cost, rows) = (number(cost_us), number(rows));
        output.push_str(&format!("  (cost={cost} rows={rows})"));
    }
    if let Some(measured) = node.measured {
        output.push_str(&measured_text(measured));
    }
    if let Some(progress) = node.progress {
        output.push_str(&format!("  (so far: rows={}", progress.rows));
        if let Some(walked) = progress.walked {
            output.push_str(&format!(", {:.0}% of the ranges", walked * 100.0));
        }
        output.push(')');
    }
    if !node.counters.is_empty() {
        let counters = node.counters.iter();
        let texts: Vec<String> = counters
            .map(|(name, count)| format!("{name}={count}"))
            .collect();
        output.push_str(&format!("  [{}]", texts.join(" ")));
    }
    output.push('\n');
    for child in &node.children {
        print_at(child, depth + 1, output);
    }
}

/// Writes a text as part of one line: a literal with newlines in it does not look like other operators.
fn push_line(text: &str, output: &mut String) {
    for character in text.chars() {
        match character {
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            _ => output.push(character),
        }
    }
}

/// What MySQL 8.3 prints of an operator in EXPLAIN ANALYZE FORMAT=JSON, with what the access methods counted.
pub(crate) fn tree_json(node: &PlanNode) -> Json {
    let mut object = Object::new()
        .with("operation", node.text.as_str())
        .with_some("estimated_rows", node.rows.map(Json::count))
        .with_some(
            "estimated_total_cost",
            node.cost_us.map(|cost_us| Json::fixed(cost_us, 2)),
        );
    if let Some(measured) = node.measured {
        let first = measured.first_row.map(milliseconds);
        object = object
            .with_some("actual_first_row_ms", first.map(|ms| Json::fixed(ms, 3)))
            .with(
                "actual_last_row_ms",
                Json::fixed(milliseconds(measured.total), 3),
            )
            .with("actual_rows", measured.rows)
            .with("actual_loops", measured.loops);
    }
    for (name, count) in &node.counters {
        object.add_named(name.clone(), *count);
    }
    if !node.children.is_empty() {
        let inputs: Vec<Json> = node.children.iter().map(tree_json).collect();
        object.add("inputs", inputs);
    }
    object.into()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// MySQL's `(actual time=0.05..1.2 rows=20 loops=1)`, in milliseconds and per loop.
fn measured_text(measured: Measured) -> String {
    if measured.loops == 0 {
        return "  (never executed)".to_string();
    }
    let loops = measured.loops as f64;
    let last = milliseconds(measured.total) / loops;
    let first = measured.first_row.map_or(last, milliseconds);
    format!(
        "  (actual time={}..{} rows={} loops={})",
        number(first),
        number(last),
        number(measured.rows as f64 / loops),
        measured.loops
    )
}

/// A number with about three digits, as MySQL prints costs and rows.
fn number(number: f64) -> String {
    if number >= 100.0 || number.fract() == 0.0 {
        format!("{number:.0}")
    } else if number >= 10.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    }
}
