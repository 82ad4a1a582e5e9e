//! Nodes of a plan of operators, one for each operator that does something, in the words of MySQL 8.
//!
//! They are made of the operators that run, so exchanges between workers are there, too. Operators that only hand rows
//! on have no node. A keyed join has one for its lookups, and one for what may take their place.

use std::sync::Arc;

use datafusion_common::JoinType;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::metrics::MetricValue;
use datafusion_physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};
use sheaf_access::{Fetch, IndexRef};
use sheaf_exec::keyed_join::exec::{KeyedJoinExec, KeyedJoinType};
use sheaf_exec::keyed_join::lookup_switch::{LookupSwitch, SWITCH_METRICS};
use sheaf_exec::operator::apply_exec::ApplyExec;
use sheaf_exec::operator::apply_rows_exec::ApplyRowsExec;
use sheaf_exec::operator::bounded_projection::BoundedProjectionExec;
use sheaf_exec::operator::common_tables_exec::{CommonTableReadExec, CommonTablesExec};
use sheaf_exec::operator::compacted_exec::CompactedExec;
use sheaf_exec::operator::expand_exec::ExpandExec;
use sheaf_exec::operator::first_rows_exec::sort_of;
use sheaf_exec::operator::gather_in_order_exec::GatherInOrderExec;
use sheaf_exec::operator::grace_join::GraceJoinExec;
use sheaf_exec::operator::interruptible_exec::InterruptibleExec;
use sheaf_exec::operator::key_width_exec::KeyWidthExec;
use sheaf_exec::operator::late_columns_exec::LateColumnsExec;
use sheaf_exec::operator::less_order_exec::LessOrderExec;
use sheaf_exec::operator::measuring_exec::{Measured, MeasuringExec};
use sheaf_exec::operator::node_id::NodeId;
use sheaf_exec::operator::recursive_exec::{RecursiveExec, RoundRowsExec};
use sheaf_exec::operator::regret_exec::RegretExec;
use sheaf_exec::operator::restartable_exec::RestartableExec;
use sheaf_exec::operator::row_by_row_exec::RowByRowExec;
use sheaf_exec::operator::scan_exec::ScanExec;
use sheaf_exec::operator::shared_exec::SharedExec;
use sheaf_exec::operator::sort_batches_exec::{CutBatchesExec, SortBatchesExec};
use sheaf_exec::operator::spare_memory_exec::SpareMemoryExec;
use sheaf_exec::operator::subquery_values_exec::SubqueryValuesExec;
use sheaf_exec::operator::values_exec::ValuesExec;
use sheaf_storage::KeyRange;
use sheaf_table::PRIMARY;

use crate::explain::notes::{About, NodeNotes, Note};
use crate::explain::physical_order::physical_order_text;
use crate::explain::plan_node::{PlanNode, Progress, limit_text};
use crate::explain::sql_text::{
    Names, conditions_text, expression_text, operator_text, order_text,
};
use crate::explain::{ExplainRow, MAY_SWITCH, access_words, lookup_words};

/// What is said of the operators besides the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Plan,
    /// What they did in a measured run.
    Run,
    /// What they have done so far.
    Progress,
}

impl PlanNode {
    /// A line with what the planner estimated.
    fn new(text: impl Into<String>, note: Option<&Note>, children: Vec<PlanNode>) -> PlanNode {
        PlanNode {
            text: text.into(),
            rows: note.map(|note| note.rows),
            cost_us: note.map(|note| note.cost_us),
            children,
            ..PlanNode::default()
        }
    }
}

/// The tree of a plan with the planner's notes on its operators.
pub(crate) fn plan_tree(
    plan: &Arc<dyn ExecutionPlan>,
    notes: &NodeNotes,
    shown: Shown,
) -> PlanNode {
    if let Some(measuring) = plan.downcast_ref::<MeasuringExec>() {
        let mut node = plan_tree(measuring.input(), notes, shown);
        node.measured = Some(measuring.measured());
        return node;
    }
    // Operators that only hand rows on have no line.
    if !has_line(plan)
        && let [child] = plan.children().as_slice()
    {
        return plan_tree(child, notes, shown);
    }
    let mut node = plan_line(plan, notes, shown);
    node.id = node.id.or(NodeId::of(plan));
    if shown != Shown::Plan {
        add_counters(plan, &mut node);
    }
    if shown == Shown::Progress
        && let Some(metrics) = plan.metrics()
    {
        let rows = metrics.output_rows().unwrap_or_default() as u64;
        let walked = walked_share(plan, notes, &node);
        node.progress = Some(Progress { rows, walked });
    }
    node
}

/// Adds what the operator counted. A keyed join's counts are its lookups', and those of what may take their place; both
/// have lines of their own.
fn add_counters(plan: &Arc<dyn ExecutionPlan>, node: &mut PlanNode) {
    let counters = counters_of(plan);
    let Some(join) = plan.downcast_ref::<KeyedJoinExec>() else {
        node.counters = counters;
        return;
    };
    let is_of_switch = |(name, _): &(String, u64)| SWITCH_METRICS.contains(&name.as_str());
    let (of_switch, of_lookup): (Vec<_>, Vec<_>) = counters.into_iter().partition(is_of_switch);
    if let [_, lookup, switch @ ..] = node.children.as_mut_slice() {
        lookup.counters = of_lookup;
        if let [switch] = switch {
            switch.counters = of_switch;
            let scan = switch
                .children
                .iter_mut()
                .flat_map(|hash| &mut hash.children);
            scan.zip(join.switched_scan())
                .for_each(|(scan, run)| scan.counters = counters_of(run));
        }
    }
}

/// What an operator counted, by name, over all workers, in the order in which it has them.
fn counters_of(plan: &Arc<dyn ExecutionPlan>) -> Vec<(String, u64)> {
    let mut counters: Vec<(String, u64)> = Vec::new();
    let Some(metrics) = plan.metrics() else {
        return counters;
    };
    let is_ours = plan.is::<ScanExec>() || plan.is::<KeyedJoinExec>() || plan.is::<RegretExec>();
    for value in metrics.iter().map(|metric| metric.value()) {
        let is_shown = is_ours && matches!(value, MetricValue::Count { .. })
            || matches!(
                value,
                MetricValue::SpillCount(_) | MetricValue::SpilledBytes(_)
            );
        let count = value.as_usize() as u64;
        if !is_shown || count == 0 {
            continue;
        }
        match counters.iter_mut().find(|(name, _)| name == value.name()) {
            Some((_, sum)) => *sum += count,
            None => counters.push((value.name().to_string(), count)),
        }
    }
    counters
}

/// Which share of the ranges of a scan has been walked over, by the estimate of how many entries they have.
fn walked_share(plan: &Arc<dyn ExecutionPlan>, notes: &NodeNotes, node: &PlanNode) -> Option<f64> {
    let About::Table(row) = &notes.of(plan)?.about else {
        return None;
    };
    let scan = plan.downcast_ref::<ScanExec>()?;
    let counter = match (scan.spec().index, scan.spec().fetch) {
        (IndexRef::Secondary(_), _) => "index_entries",
        (IndexRef::Clustered, _) => "rows_examined",
    };
    let (_, walked) = node.counters.iter().find(|(name, _)| name == counter)?;
    Some((*walked as f64 / (row.rows?.max(1)) as f64).min(1.0))
}

fn plan_line(plan: &Arc<dyn ExecutionPlan>, notes: &NodeNotes, shown: Shown) -> PlanNode {
    let note = notes.of(plan);
    let about = note.map_or(&About::Nothing, |note| &note.about);
    let children = || -> Vec<PlanNode> {
        let children = plan.children().into_iter();
        children
            .map(|child| plan_tree(child, notes, shown))
            .collect()
    };
    let line = |text: String| PlanNode::new(text, note, children());
    if plan.is::<ScanExec>() {
        let text = match about {
            About::Table(row) => scan_text(row),
            _ => plan.name().to_string(),
        };
        return PlanNode::new(text, note, Vec::new());
    }
    if let Some(join) = plan.downcast_ref::<KeyedJoinExec>() {
        return keyed_join(join, (NodeId::of(plan), note), children(), shown);
    }
    if let Some(join) = plan.downcast_ref::<GraceJoinExec>() {
        return hash_join(join.join(), note, children());
    }
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        return line(limit_text(limit.skip(), limit.fetch()));
    }
    if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        return line(limit_text(0, Some(limit.fetch())));
    }
    if let Some(sort) = sort_of(plan) {
        let order = match about {
            About::Order(order) => order_text(order, Names::PLAIN),
            _ => physical_order_text(sort.expr(), sort.input()),
        };
        return line(match sort.fetch() {
            Some(fetch) => format!("Sort: {order}, limit input to {fetch} row(s)"),
            None => format!("Sort: {order}"),
        });
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return line(aggregate_text(aggregate, about));
    }
    if plan.is::<FilterExec>() {
        let text = match about {
            About::Condition(conditions) => conditions_text(conditions, Names::PLAIN),
            _ => None,
        };
        return line(match text {
            Some(text) => format!("Filter: {text}"),
            None => "Filter".to_string(),
        });
    }
    if let About::Functions(functions) = about {
        return line(format!("Window aggregate: {}", list(functions)));
    }
    if let Some(regret) = plan.downcast_ref::<RegretExec>() {
        let alternative = plan_tree(regret.alternative(), notes, shown);
        let lines = vec![
            plan_tree(regret.preferred(), notes, shown),
            PlanNode::new(
                "In its place once its cost is spent",
                None,
                vec![alternative],
            ),
        ];
        return PlanNode::new("Bounded regret", note, lines);
    }
    if let Some(shared) = plan.downcast_ref::<SharedExec>() {
        return line(match shared.is_first() {
            true => format!("Shared subplan {} (runs once)", shared.number()),
            false => format!("Rows of shared subplan {}", shared.number()),
        });
    }
    if let Some(read) = plan.downcast_ref::<CommonTableReadExec>() {
        return line(format!("Rows of CTE {}", read.table().name));
    }
    if let Some(late) = plan.downcast_ref::<LateColumnsExec>() {
        let columns: Vec<&str> = late.columns().collect();
        let (table, columns) = (late.alias(), columns.join(", "));
        return line(format!("Late lookup on {table} using {PRIMARY}: {columns}"));
    }
    if let Some(subquery) = plan.downcast_ref::<SubqueryValuesExec>() {
        return scalar_subquery(subquery, notes, shown);
    }
    if let Some(expand) = plan.downcast_ref::<ExpandExec>() {
        return table_function(expand, note, children());
    }
    if let Some(tables) = plan.downcast_ref::<CommonTablesExec>() {
        return common_tables(tables, notes, shown);
    }
    let text = other_text(plan, about);
    // One that takes the first rows belongs to a LIMIT, which is estimated and not this.
    if plan.is::<CoalescePartitionsExec>() {
        return PlanNode::new(text, None, children());
    }
    line(text)
}

/// A join with the rows before it, unless it takes nothing of them.
fn table_function(expand: &ExpandExec, note: Option<&Note>, rows: Vec<PlanNode>) -> PlanNode {
    const TEXT: &str = "Materialize table function";
    // A row without columns.
    let mut inputs = expand.children().into_iter();
    let is_first = inputs.all(|input| input.schema().fields().is_empty());
    if is_first {
        return PlanNode::new(TEXT, note, Vec::new());
    }
    let kind = match expand.keeps_rows() {
        true => "left join",
        false => "inner join",
    };
    let below = rows.into_iter().chain([PlanNode::line(TEXT, None)]);
    PlanNode::new(format!("Nested loop {kind}"), note, below.collect())
}

/// Whether the tree has a line for an operator.
pub(crate) fn has_line(plan: &Arc<dyn ExecutionPlan>) -> bool {
    !(plan.is::<ProjectionExec>()
        || plan.is::<BoundedProjectionExec>()
        || plan.is::<InterruptibleExec>()
        || plan.is::<CompactedExec>()
        || plan.is::<KeyWidthExec>()
        || plan.is::<LessOrderExec>()
        || plan.is::<RestartableExec>()
        || plan.is::<SortBatchesExec>()
        || plan.is::<CutBatchesExec>()
        || plan.is::<SpareMemoryExec>()
        || plan
            .downcast_ref::<GatherInOrderExec>()
            .is_some_and(GatherInOrderExec::runs_one)
        || plan.is::<MeasuringExec>()
        || plan
            .downcast_ref::<RowByRowExec>()
            .is_some_and(RowByRowExec::hands_all_on)
        || plan.is::<SubqueryValuesExec>()
        || plan.is::<CommonTablesExec>())
}

fn list(exprs: &[datafusion_expr::Expr]) -> String {
    let texts = exprs.iter().map(|expr| expression_text(expr, Names::PLAIN));
    texts.collect::<Vec<_>>().join(", ")
}

fn scan_text(row: &ExplainRow) -> String {
    let mut text = access_words(row);
    let Some(detail) = &row.detail else {
        return text;
    };
    let ranges = detail.range_texts();
    match (row.type_.as_deref(), ranges.as_slice()) {
        (_, []) => {}
        (Some("const" | "ref"), ranges) => text.push_str(&format!(" ({})", ranges.join(" OR "))),
        (_, ranges) => {
            let ranges: Vec<String> = ranges.iter().map(|range| format!("({range})")).collect();
            text.push_str(&format!(" over {}", ranges.join(" OR ")));
        }
    }
    if detail.is_backward {
        text.push_str(" (reverse)");
    }
    text.push_str(&conditions(row));
    text
}

/// What is tested on entries and rows while they are read, and how rows are fetched.
fn conditions(row: &ExplainRow) -> String {
    let mut text = String::new();
    let Some(detail) = &row.detail else {
        return text;
    };
    let names = Names {
        table: row.table.as_deref(),
        ..Names::PLAIN
    };
    if let Some(condition) = detail.index_condition(names) {
        text.push_str(&format!(", with index condition: {condition}"));
    }
    if let Some(condition) = detail.attached_condition(names) {
        text.push_str(&format!(", with row condition: {condition}"));
    }
    if matches!(detail.fetch, Fetch::MultiRange { .. }) {
        text.push_str(", using MRR");
    }
    let notes = row.other_notes().into_iter();
    // What the plan may switch to has a line of its own.
    for note in notes.filter(|note| !note.starts_with(MAY_SWITCH)) {
        text.push_str(", ");
        // As the other words of a line.
        text.push_str(&note.replacen("Using", "using", 1));
    }
    text
}

/// The outer rows, and the lookup as a line of its own.
fn keyed_join(
    join: &KeyedJoinExec,
    (id, note): (Option<NodeId>, Option<&Note>),
    mut children: Vec<PlanNode>,
    shown: Shown,
) -> PlanNode {
    let kind = match join.join_type() {
        KeyedJoinType::Inner => "inner join",
        KeyedJoinType::LeftOuter => "left join",
        KeyedJoinType::Semi => "semijoin",
        KeyedJoinType::Anti => "antijoin",
        KeyedJoinType::Mark => "mark join",
    };
    let batched = match join.spec().batched {
        true => "Batched key access",
        false => "Nested loop",
    };
    if let Some(About::Table(row)) = note.map(|note| &note.about) {
        let table = row.table.as_deref().unwrap_or_default();
        let key = row.key.as_deref().unwrap_or_default();
        let kind = lookup_words(row);
        let keys = row
            .detail
            .as_ref()
            .map(|detail| detail.key_texts(row.ref_.as_deref()));
        let mut text = format!("{kind} on {table} using {key}");
        if let Some(keys) = keys {
            text.push_str(&format!(" ({})", keys.join(", ")));
        }
        text.push_str(&conditions(row));
        children.push(PlanNode {
            id,
            text,
            rows: row.rows.map(|rows| rows as f64),
            cost_us: row.cost_us,
            ..PlanNode::default()
        });
        if let Some(switch) = join.switch() {
            let has_run = join.switched_scan().is_some();
            children.push(PlanNode {
                measured: (shown == Shown::Run && !has_run).then(Measured::default),
                ..other_way(switch, table)
            });
        }
    }
    PlanNode::new(format!("{batched} {kind}"), note, children)
}

/// How a keyed join goes on when its lookups have cost too much. The cost of the first line is what they may cost.
fn other_way(switch: &LookupSwitch, table: &str) -> PlanNode {
    let spec = &switch.scan;
    let is_whole = spec.ranges == [KeyRange::all()];
    let scan = match spec.index {
        _ if spec.merge.is_some() => format!("Index merge on {table}"),
        IndexRef::Clustered if is_whole => format!("Table scan on {table}"),
        IndexRef::Clustered => format!("Index range scan on {table} using {PRIMARY}"),
        IndexRef::Secondary(_) => {
            let range = if is_whole { "" } else { "range " };
            let index = &spec.index.definition(&spec.table).name;
            format!("Index {range}scan on {table} using {index}")
        }
    };
    let hash = PlanNode {
        rows: Some(switch.rows),
        cost_us: Some(switch.cost_us),
        ..PlanNode::line("Hash", Some(PlanNode::line(scan, None)))
    };
    PlanNode {
        rows: Some(switch.rows),
        cost_us: Some(switch.limit_us),
        ..PlanNode::line(
            "In place of lookups once they have cost as much",
            Some(hash),
        )
    }
}

fn is_join_of_all_pairs(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let nested = plan.downcast_ref::<NestedLoopJoinExec>();
    plan.is::<CrossJoinExec>()
        || nested
            .is_some_and(|join| join.filter().is_none() && *join.join_type() == JoinType::Inner)
}

fn join_name(join_type: JoinType) -> &'static str {
    match join_type {
        JoinType::Inner => "inner join",
        JoinType::Left => "left join",
        JoinType::Right => "right join",
        JoinType::Full => "full join",
        JoinType::LeftSemi | JoinType::RightSemi => "semijoin",
        JoinType::LeftAnti | JoinType::RightAnti => "antijoin",
        JoinType::LeftMark | JoinType::RightMark => "mark join",
    }
}

/// ` (a = b), extra conditions: c`, or nothing.
fn join_condition(about: &About) -> String {
    let About::Join { on, rest } = about else {
        return String::new();
    };
    let pairs: Vec<String> = on
        .iter()
        .map(|(left, op, right)| {
            let side = |expr| expression_text(expr, Names::PLAIN);
            format!("({} {} {})", side(left), operator_text(*op), side(right))
        })
        .collect();
    let mut text = match pairs.is_empty() {
        true => String::new(),
        false => format!(" {}", pairs.join(", ")),
    };
    if let Some(rest) = conditions_text(rest, Names::PLAIN) {
        text.push_str(&format!(", extra conditions: {rest}"));
    }
    text
}

/// The side that streams by, and the side in memory below a line "Hash", as MySQL has them.
fn hash_join(join: &HashJoinExec, note: Option<&Note>, children: Vec<PlanNode>) -> PlanNode {
    let about = note.map_or(&About::Nothing, |note| &note.about);
    let text = format!(
        "Hash {}{}",
        join_name(*join.join_type()),
        join_condition(about)
    );
    let mut children = children.into_iter();
    let build = children.next().into_iter().collect();
    let mut lines: Vec<PlanNode> = children.collect();
    lines.push(PlanNode::new("Hash", None, build));
    PlanNode::new(text, note, lines)
}

fn aggregate_text(aggregate: &AggregateExec, about: &About) -> String {
    let (keys, functions) = match about {
        About::Groups { keys, functions } => (list(keys), list(functions)),
        _ => (String::new(), String::new()),
    };
    let how = match (aggregate.mode(), aggregate.group_expr().is_empty()) {
        (AggregateMode::Partial | AggregateMode::PartialReduce, _) => {
            return "Partial aggregate".to_string();
        }
        (_, true) => "Aggregate",
        (_, false) if *aggregate.input_order_mode() == InputOrderMode::Linear => {
            "Aggregate using temporary table"
        }
        (_, false) => "Group aggregate",
    };
    let by = match keys.is_empty() {
        true => String::new(),
        false => format!(" by {keys}"),
    };
    match functions.is_empty() {
        true => format!("{how}{by}"),
        false => format!("{how}: {functions}{by}"),
    }
}

fn scalar_subquery(plan: &SubqueryValuesExec, notes: &NodeNotes, shown: Shown) -> PlanNode {
    let mut node = plan_tree(plan.input(), notes, shown);
    for (number, subquery) in plan.subqueries().iter().enumerate() {
        let text = format!(
            "Subquery {} in the conditions (runs once, first)",
            number + 1
        );
        let child = plan_tree(&subquery.plan, notes, shown);
        node.children.push(PlanNode::new(text, None, vec![child]));
    }
    node
}

fn common_tables(plan: &CommonTablesExec, notes: &NodeNotes, shown: Shown) -> PlanNode {
    let mut node = plan_tree(plan.input(), notes, shown);
    for (table, operators) in plan.tables() {
        let text = format!("Materialize CTE {} (runs once, if needed)", table.name);
        let child = plan_tree(operators, notes, shown);
        node.children.push(PlanNode::new(text, None, vec![child]));
    }
    node
}

fn other_text(plan: &Arc<dyn ExecutionPlan>, about: &About) -> String {
    let partitions = || match plan.children().as_slice() {
        [child] => child.output_partitioning().partition_count(),
        _ => 1,
    };
    if plan.is::<CoalescePartitionsExec>() || plan.is::<GatherInOrderExec>() {
        format!("Gather from {} workers", partitions())
    } else if plan.is::<SortPreservingMergeExec>() {
        format!("Merge sorted rows of {} workers", partitions())
    } else if plan.is::<RepartitionExec>() {
        format!(
            "Exchange between {} workers",
            plan.output_partitioning().partition_count()
        )
    } else if plan.is::<ApplyExec>() {
        "Value of a subquery that runs for each row".to_string()
    } else if let Some(apply) = plan.downcast_ref::<ApplyRowsExec>() {
        let join = match apply.keeps_rows() {
            true => "left join",
            false => "inner join",
        };
        format!("Nested loop {join} with a query that runs for each row")
    } else if is_join_of_all_pairs(plan) {
        "Inner join of all pairs (no condition)".to_string()
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        format!(
            "Nested loop {} over pairs{}",
            join_name(*join.join_type()),
            join_condition(about)
        )
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        format!(
            "Sort-merge {}{}",
            join_name(join.join_type()),
            join_condition(about)
        )
    } else if plan.is::<UnionExec>() {
        "Append".to_string()
    } else if plan.is::<EmptyExec>() {
        "Zero rows".to_string()
    } else if plan.is::<PlaceholderRowExec>() {
        "Rows fetched before execution".to_string()
    } else if plan.is::<RecursiveExec>() {
        "Repeat until convergence".to_string()
    } else if plan.is::<RoundRowsExec>() || plan.is::<ValuesExec>() {
        match about {
            About::Table(row) => format!(
                "Table scan on {}",
                row.table.as_deref().unwrap_or("<temporary>")
            ),
            _ => "Rows fetched before execution".to_string(),
        }
    } else {
        plan.name().trim_end_matches("Exec").to_string()
    }
}
