//! The trace of the order of joins: for each step that was considered, the ways to do it.

use sheaf_access::Fetch;

use crate::join::method::Method;
use crate::join::order::{Input, Step};
use crate::json::{Json, Object};
use crate::trace::{Lost, Trace, with_verdict};

/// What was considered for one step of a plan; empty and without cost if the trace is off.
pub(crate) struct JoinAlternatives<'t> {
    trace: &'t Trace,
    tried: Vec<Object>,
    /// Position of the cheapest so far.
    best: Option<(usize, f64)>,
}

impl<'t> JoinAlternatives<'t> {
    pub(crate) fn new(trace: &'t Trace) -> JoinAlternatives<'t> {
        JoinAlternatives {
            trace,
            tried: Vec::new(),
            best: None,
        }
    }

    /// A method, with what the step itself would cost, in microseconds.
    pub(crate) fn consider(&mut self, input: &Input<'_>, method: &Method, step_us: f64) {
        if !self.trace.is_on() {
            return;
        }
        if self.best.is_none_or(|(_, best_us)| step_us < best_us) {
            self.best = Some((self.tried.len(), step_us));
        }
        let object = describe(input, method).with("cost", Json::fixed(step_us, 2));
        self.tried.push(object);
    }

    /// Records the step that adds a relation after those that `prefix` tells.
    pub(crate) fn decide(self, prefix: &dyn Fn() -> Vec<usize>, inputs: &[Input<'_>], step: &Step) {
        let (tried, best) = (self.tried, self.best);
        self.trace.step("considered_execution_plans", || {
            let prefix: Vec<String> = prefix()
                .into_iter()
                .map(|relation| name(&inputs[relation], relation))
                .collect();
            let mut paths: Vec<Json> = tried
                .into_iter()
                .enumerate()
                .map(|(position, object)| {
                    let is_best = best.is_some_and(|(best, _)| best == position);
                    with_verdict(object, (!is_best).then_some(Lost::Cost)).into()
                })
                .collect();
            if matches!(step.method, Method::Merge) {
                // Sorting is considered only where no side fits in memory.
                let hash = Object::new().with("access_type", "hash_join");
                paths.push(with_verdict(hash, Some(Lost::Memory)).into());
            }
            Object::new()
                .with("plan_prefix", prefix)
                .with("table", name(&inputs[step.relation], step.relation))
                .with("considered_access_paths", paths)
                .with("rows_for_plan", Json::count(step.rows))
                .with("cost_for_plan", Json::fixed(step.cost_us, 2))
                .into()
        });
    }
}

/// The name of a relation in the trace: a table's alias, or its number.
fn name(input: &Input<'_>, number: usize) -> String {
    match input {
        Input::Table(table) => table.source.alias.clone(),
        Input::Derived(_) => format!("<derived relation {}>", number + 1),
    }
}

/// The order that was found.
pub(crate) fn chosen_order(trace: &Trace, steps: &[Step], inputs: &[Input<'_>]) {
    trace.outcome("chosen_join_order", || {
        let steps: Vec<Json> = steps
            .iter()
            .map(|step| {
                let input = &inputs[step.relation];
                let mut object = Object::new().with("table", name(input, step.relation));
                if !matches!(step.method, Method::First) {
                    object.add("join", describe(input, &step.method));
                }
                object
                    .with("rows_for_plan", Json::count(step.rows))
                    .with("cost_for_plan", Json::fixed(step.cost_us, 2))
                    .into()
            })
            .collect();
        steps.into()
    });
}

fn describe(input: &Input<'_>, method: &Method) -> Object {
    let object = Object::new();
    let build = |build_new: bool| if build_new { "the table" } else { "the prefix" };
    match (method, input) {
        (Method::Keyed(path), Input::Table(table)) => object
            .with("access_type", path.access_type(table))
            .with("index", table.index_name(path.index))
            .with("used_key_parts", path.parts())
            .with("rows_per_key", Json::count(path.entries_per_key))
            .with_flag("index_only", matches!(path.fetch, Fetch::Covering))
            .with_flag("batched_key_access", path.batched)
            .with_flag("using_mrr", matches!(path.fetch, Fetch::MultiRange { .. }))
            .with_some(
                "resident",
                table
                    .resident(path.index)
                    .ok()
                    .map(|share| Json::fixed(share, 2)),
            ),
        (Method::Keyed(_), Input::Derived(_)) | (Method::First, _) => {
            object.with("access_type", "scan")
        }
        (Method::Hash { build_new }, _) => object
            .with("access_type", "hash_join")
            .with("in_memory", build(*build_new)),
        (Method::Merge, _) => object.with("access_type", "sort_merge_join"),
        (Method::NestedLoop { build_new }, _) => object
            .with("access_type", "nested_loop")
            .with("in_memory", build(*build_new)),
    }
}
