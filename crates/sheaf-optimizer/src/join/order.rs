//! In which order relations are joined, and each by which method.
//!
//! Left-deep plans, found by dynamic programming over sets of relations: the best plan of a set is the best plan of
//! the set without one relation, joined with that relation. Beyond [`MAX_DYNAMIC`] relations the next relation is
//! chosen greedily. A cross product is considered only where nothing else connects.
//!
//! Lookups in a tree that does not fit in the pool may still be to come. Then the best plan of each
//! [order](crate::join::row_order) that serves them is kept beside the best of all (Selinger et al., "Access Path
//! Selection in a Relational Database Management System", SIGMOD 1979, calls these interesting orders).
//!
//! For each step the candidates are:
//!
//! - a keyed join through each index of the new relation that the join's equalities bind from the left, and through
//!   each whose next part inequalities bound;
//! - a hash join with either side in memory, if it fits the memory that the statement may use, and a sort-merge join
//!   otherwise;
//! - nested loops, if there are no equalities.
//!
//! How many rows a step leaves is estimated in [`crate::join::rows`].

use std::collections::BTreeMap;
use std::rc::Rc;

use datafusion_common::{DFSchema, Result, internal_datafusion_err};
use datafusion_physical_plan::ExecutionPlanProperties;
use sheaf_access::cancel;
use sheaf_exec::operator::scan_exec::access_error;

use crate::PlannerContext;
use crate::access::keyed_access::OuterRows;
use crate::access::table_reference::TableReference;
use crate::cost::hash_join::{
    HASH_ROW_BYTES, hash_build_us, hash_probe_us, nested_loop_us, spilled_join_us,
};
use crate::cost::sort::merge_join_us;
use crate::cost::work::Work;
use crate::join::edge::{JoinEdge, JoinEdges, is_connected};
use crate::join::first_rows::FirstRows;
use crate::join::hints::JoinHints;
use crate::join::method::Method;
use crate::join::row_order::RowOrder;
use crate::join::trace::JoinAlternatives;
use crate::logical::join_graph::{JoinGraph, RelationKind, RelationSet};
use crate::planned::Planned;

/// Relations up to which all orders are compared.
const MAX_DYNAMIC: usize = 10;

/// Share of the statement's memory that the build sides of its hash joins, all together, may be estimated at: estimates
/// are often low, and groups and sorts above the joins need room too.
pub(crate) const BUILD_SHARE: f64 = 0.5;

/// As many rows as there may ever be.
const MOST_ROWS: f64 = 1e12;

/// A relation as it is read.
pub(crate) enum Input<'a> {
    /// A table, whose access path is still open.
    Table(Box<TableReference<'a>>),
    /// Anything else, planned already.
    Derived(Planned),
}

/// What a plan is to be good at.
#[derive(Clone, Copy)]
pub(crate) enum Goal<'a> {
    AllRows,
    /// The plan streams: all its methods deliver rows as they come, and in their order.
    FirstRows(&'a FirstRows),
}

/// One step of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub relation: usize,
    pub method: Method,
    /// Estimated rows after the step.
    pub rows: f64,
    /// Estimated cost of the plan up to here, in microseconds.
    pub cost_us: f64,
    /// The same if no LIMIT stops it.
    pub unstopped_us: f64,
    /// Rows that may come after the step if conditions keep more, and keys have more matches, than they are taken to.
    pub most_rows: f64,
    /// Workers among which the rows up to here are divided.
    pub workers: usize,
    /// Estimated bytes that the joins up to here keep in memory. A table that was consumed by the join after it still
    /// counts, because that join's rows refer to its strings.
    pub held_bytes: f64,
    /// In which order the rows come.
    pub order: Option<RowOrder>,
}

/// What reading a relation by itself takes.
struct Read {
    rows: f64,
    /// In microseconds, by its workers.
    cost_us: f64,
    workers: usize,
}

/// What choosing an order needs to know.
pub(crate) struct Chooser<'a, 'p> {
    pub graph: &'a JoinGraph<'p>,
    pub inputs: &'a [Input<'a>],
    pub context: &'a PlannerContext,
    /// All columns of the graph.
    pub schema: &'a DFSchema,
    pub hints: &'a JoinHints,
    pub goal: Goal<'a>,
    pub known: JoinEdges,
}

/// A state of the search: which relations a plan has joined, and which of them its rows stream from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// The relations joined so far, a [`RelationSet`].
    relations: u64,
    /// The plan is the best of those whose rows stream from this relation; otherwise it is the best of all.
    streams_from: Option<usize>,
}

impl State {
    fn best(set: RelationSet) -> State {
        State {
            relations: set.bits(),
            streams_from: None,
        }
    }

    fn size(&self) -> usize {
        self.relations.count_ones() as usize
    }
}

/// The last step of the best plan of a state, and the state before it.
struct Best {
    step: Step,
    before: Option<State>,
}

impl Chooser<'_, '_> {
    /// The cheapest order.
    pub(crate) fn choose(&self) -> Result<Vec<Step>> {
        let steps = self.choose_if_any()?;
        steps.ok_or_else(|| internal_datafusion_err!("no order joins all relations"))
    }

    /// The cheapest order, if there is one that serves the goal.
    pub(crate) fn choose_if_any(&self) -> Result<Option<Vec<Step>>> {
        if self.graph.relations.len() <= MAX_DYNAMIC {
            self.dynamic()
        } else {
            self.greedy()
        }
    }

    fn dynamic(&self) -> Result<Option<Vec<Step>>> {
        let keeps_orders = self.has_large_trees();
        let mut best: BTreeMap<State, Best> = BTreeMap::new();
        for relation in self.first_candidates() {
            if let Some(step) = self.first(relation)? {
                let state = State::best(RelationSet::one(relation));
                best.insert(state, Best { step, before: None });
            }
        }
        let all = self.graph.relations.len();
        for size in 1..all {
            let of_size = best.keys().copied().filter(|state| state.size() == size);
            let states: Vec<State> = of_size.collect();
            for state in states {
                let set = RelationSet::from_bits(state.relations);
                if state.streams_from.is_some() && is_best_of_all(&best, state) {
                    continue;
                }
                let prefix = || relations_in_order(&best, state);
                let last = &best[&state].step;
                let mut steps = Vec::new();
                for relation in self.candidates(set) {
                    let Some(step) = self.step(set, last, &prefix, relation)? else {
                        continue;
                    };
                    let with = set.with(relation);
                    let ordered = match keeps_orders && self.serves_later(with, &step)? {
                        true => step.order.map(|order| State {
                            streams_from: Some(order.relation),
                            ..State::best(with)
                        }),
                        false => None,
                    };
                    let mut is_kept = false;
                    for to in [Some(State::best(with)), ordered].into_iter().flatten() {
                        let known = best.get(&to).map(|known| known.step.cost_us);
                        if known.is_none_or(|known| step.cost_us < known) {
                            steps.push((to, step.clone()));
                            is_kept = true;
                        }
                    }
                    if !is_kept {
                        self.context.trace.amend("pruned_by_cost", true);
                    }
                }
                for (to, step) in steps {
                    let before = Some(state);
                    best.insert(to, Best { step, before });
                }
            }
        }
        let is_complete = |state: &State| state.size() == all && state.streams_from.is_none();
        let mut state = best.keys().copied().find(is_complete);
        if state.is_none() {
            return Ok(None);
        }
        let mut plan = Vec::with_capacity(all);
        while let Some(Best { step, before }) = state.and_then(|state| best.remove(&state)) {
            plan.push(step);
            state = before;
        }
        plan.reverse();
        Ok(Some(plan))
    }

    fn greedy(&self) -> Result<Option<Vec<Step>>> {
        let mut best: Option<Step> = None;
        for relation in self.first_candidates() {
            let Some(step) = self.first(relation)? else {
                continue;
            };
            if best.as_ref().is_none_or(|known| step.rows < known.rows) {
                best = Some(step);
            }
        }
        let Some(first) = best else {
            return Ok(None);
        };
        let mut set = RelationSet::one(first.relation);
        let mut plan = vec![first];
        while plan.len() < self.graph.relations.len() {
            let last = plan
                .last()
                .ok_or_else(|| internal_datafusion_err!("a plan without a first step"))?;
            let mut best: Option<Step> = None;
            for relation in self.candidates(set) {
                let prefix = || plan.iter().map(|step: &Step| step.relation).collect();
                let Some(step) = self.step(set, last, &prefix, relation)? else {
                    continue;
                };
                if best
                    .as_ref()
                    .is_none_or(|known| step.cost_us < known.cost_us)
                {
                    best = Some(step);
                }
            }
            let Some(step) = best else {
                return Ok(None);
            };
            set = set.with(step.relation);
            plan.push(step);
        }
        Ok(Some(plan))
    }

    fn first_candidates(&self) -> Vec<usize> {
        let relations = self.graph.relations.iter().enumerate();
        relations
            .filter(|(number, relation)| {
                relation.kind == RelationKind::Inner && self.hints.before(*number).is_empty()
            })
            .map(|(number, _)| number)
            .collect()
    }

    /// Relations that may come next: their constraints are met, and something connects them if anything does.
    fn candidates(&self, set: RelationSet) -> Vec<usize> {
        let open = (0..self.graph.relations.len()).filter(|relation| {
            let entry = &self.graph.relations[*relation];
            let before = entry.needs.union(self.hints.before(*relation));
            !set.contains(*relation) && before.is_subset(set)
        });
        let (mut connected, mut by_range, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for relation in open {
            // A range of an index for each row connects, too. But it rules out no other step: the range may be wide,
            // and nearer when both of its bounds are there.
            let has_lookups = || {
                let edge = self.edge(set, relation);
                edge.is_ok_and(|edge| !edge.lookups.is_empty())
            };
            if is_connected(self.graph, set, relation) {
                connected.push(relation);
            } else if has_lookups() {
                by_range.push(relation);
            } else {
                others.push(relation);
            }
        }
        connected.extend(others.extract_if(.., |relation| {
            self.graph.relations[*relation].kind != RelationKind::Inner
        }));
        let is_alone = connected.is_empty();
        connected.extend(by_range);
        if is_alone {
            connected.extend(others);
        }
        connected
    }

    /// The first step; `None` if the relation does not serve the goal.
    fn first(&self, relation: usize) -> Result<Option<Step>> {
        let read = self.read(relation)?;
        let step = Step {
            relation,
            method: Method::First,
            rows: read.rows,
            cost_us: read.cost_us,
            unstopped_us: read.cost_us,
            most_rows: self.most_rows(relation)?,
            workers: read.workers,
            held_bytes: 0.0,
            order: self.order_of(relation)?,
        };
        let Goal::FirstRows(goal) = self.goal else {
            return Ok(Some(step));
        };
        let Some(wanted) = goal.wanted_of(relation, read.rows) else {
            return Ok(None);
        };
        let rows = read.rows * goal.share;
        Ok(match &self.inputs[relation] {
            Input::Table(table) => {
                let path = table.best_path(self.context, &wanted)?;
                let serves = path.ordered || wanted.order.is_empty();
                serves.then_some(Step {
                    rows,
                    cost_us: path.cost_us,
                    unstopped_us: path.risk.unstopped_us,
                    workers: 1,
                    order: self.order_of_path(relation, &path),
                    ..step
                })
            }
            Input::Derived(_) => Some(Step { rows, ..step }),
        })
    }

    /// What reading a relation by itself takes.
    fn read(&self, relation: usize) -> Result<Read> {
        Ok(match &self.inputs[relation] {
            Input::Table(table) => {
                let scan = table.chosen_scan(self.context)?;
                Read {
                    rows: table.rows,
                    cost_us: scan.path.cost_us,
                    workers: scan.workers,
                }
            }
            Input::Derived(planned) => Read {
                rows: planned.rows,
                cost_us: planned.cost_us,
                workers: planned.plan.output_partitioning().partition_count(),
            },
        })
    }

    /// Rows that a relation may have; see [`Step::most_rows`].
    fn most_rows(&self, relation: usize) -> Result<f64> {
        Ok(match &self.inputs[relation] {
            Input::Table(table) => table.most_rows(self.context)?,
            Input::Derived(_) => {
                let most = self.graph.relations[relation].plan.max_rows();
                most.map_or(MOST_ROWS, |most| most as f64)
            }
        })
    }

    /// The same after a relation is joined to so many rows.
    fn most_joined_rows(&self, before: f64, edge: &JoinEdge, relation: usize) -> Result<f64> {
        let delivers_matches = matches!(
            self.graph.relations[relation].kind,
            RelationKind::Inner | RelationKind::Outer
        );
        Ok(match delivers_matches && !edge.is_unique {
            true => (before * self.most_rows(relation)?.max(1.0)).min(MOST_ROWS),
            false => before,
        })
    }

    /// The cheapest way to join `relation` to the plan of `set` that ends with `before`, if any serves the goal;
    /// `prefix` tells its relations, for the trace.
    fn step(
        &self,
        set: RelationSet,
        before: &Step,
        prefix: &dyn Fn() -> Vec<usize>,
        relation: usize,
    ) -> Result<Option<Step>> {
        cancel::check_statement().map_err(access_error)?;
        let edge = self.edge(set, relation)?;
        let entry = &self.graph.relations[relation];
        let Read {
            rows: new_rows,
            cost_us: scan_us,
            workers: new_workers,
        } = self.read(relation)?;
        let rows = self.joined_rows(before.rows, new_rows, &edge, set, relation)?;
        let most_rows = self.most_joined_rows(before.most_rows, &edge, relation)?;
        let constants = &self.context.settings.costs;
        // A table that a hint wants after others is not read before them.
        let in_order = self.hints.comes_after(relation);
        let mut best: Option<Step> = None;
        // The best of the methods that hints exclude, for want of another.
        let mut excluded: Option<Step> = None;
        let wanted = self.hints.methods(relation);
        let share = match self.goal {
            Goal::AllRows => 1.0,
            Goal::FirstRows(goal) => goal.share,
        };
        let mut tried = JoinAlternatives::new(&self.context.trace);
        // `alone_us` is what one after the other takes.
        let mut consider = |method: Method, alone_us: f64, shared: Work, build_bytes: f64| {
            if matches!(self.goal, Goal::FirstRows(_)) && !method.streams() {
                return;
            }
            // The side that streams by decides how many workers there are.
            let workers = match method {
                Method::Hash { build_new: false } | Method::NestedLoop { build_new: false } => {
                    new_workers
                }
                Method::Merge => 1,
                _ => before.workers,
            };
            let step_us = alone_us + shared.elapsed_us(workers as f64);
            tried.consider(&self.inputs[relation], &method, step_us);
            let output_us = rows * constants.joined_row_us / workers.max(1) as f64;
            let cost_us = before.cost_us + step_us + output_us;
            let best = match wanted.allow(&method) {
                true => &mut best,
                false => &mut excluded,
            };
            if best.as_ref().is_none_or(|known| cost_us < known.cost_us) {
                *best = Some(Step {
                    relation,
                    method,
                    rows,
                    cost_us,
                    unstopped_us: before.unstopped_us
                        + alone_us
                        + (step_us - alone_us + output_us) / share,
                    most_rows,
                    workers,
                    held_bytes: before.held_bytes + build_bytes,
                    order: None,
                });
            }
        };
        let widths = set
            .iter()
            .map(|joined| self.graph.relations[joined].row_bytes);
        let joined_bytes: f64 = widths.sum();
        if let Input::Table(table) = &self.inputs[relation] {
            for path in &edge.lookups {
                let outer = OuterRows {
                    rows: before.rows,
                    row_bytes: joined_bytes,
                    workers: before.workers as f64,
                    order: self.key_order(before.order, &edge, path),
                };
                let lookups = path.work(table, outer, constants)?;
                consider(Method::Keyed(Rc::clone(path)), 0.0, lookups, 0.0);
            }
        }
        if edge.equalities.is_empty() {
            let pairs = Work::of_workers(nested_loop_us(constants, before.rows, new_rows));
            let build_new = new_rows <= before.rows && !must_build_joined(&entry.kind) && !in_order;
            consider(Method::NestedLoop { build_new }, scan_us, pairs, 0.0);
        } else {
            let grant = self.context.settings.query_memory_bytes as f64 * BUILD_SHARE;
            let new_bytes = new_rows * (entry.row_bytes + HASH_ROW_BYTES);
            let held_bytes = before.rows * (joined_bytes + HASH_ROW_BYTES);
            let null_aware = matches!(entry.kind, RelationKind::Anti { null_aware: true });
            // A build side that does not fit goes to files, and the other side with it.
            let spilling = |bytes: f64| match before.held_bytes + bytes <= grant {
                true => (0.0, bytes),
                false => (spilled_join_us(constants, before.rows, new_rows), 0.0),
            };
            if !null_aware && !in_order {
                let (spilled_us, held_bytes) = spilling(new_bytes);
                consider(
                    Method::Hash { build_new: true },
                    scan_us + hash_build_us(constants, new_rows) + spilled_us,
                    Work::of_workers(hash_probe_us(constants, before.rows)),
                    held_bytes,
                );
            }
            let (spilled_us, held_bytes) = spilling(held_bytes);
            consider(
                Method::Hash { build_new: false },
                scan_us + hash_build_us(constants, before.rows) + spilled_us,
                Work::of_workers(hash_probe_us(constants, new_rows)),
                held_bytes,
            );
            let without_hash = !wanted.hash && !null_aware && entry.kind != RelationKind::Mark;
            if without_hash {
                let merge_us = merge_join_us(constants, before.rows, new_rows);
                consider(Method::Merge, scan_us + merge_us, Work::default(), 0.0);
            }
        }
        let mut step = best.or(excluded);
        if let Some(step) = &mut step {
            step.order = self.joined_order(before.order, &step.method, relation)?;
            tried.decide(prefix, self.inputs, step);
        }
        Ok(step)
    }
}

/// Whether the best plan of the state's order is the best one of all.
fn is_best_of_all(best: &BTreeMap<State, Best>, state: State) -> bool {
    let of_all = best.get(&State {
        streams_from: None,
        ..state
    });
    let order = of_all.and_then(|of_all| of_all.step.order);
    order.map(|order| order.relation) == state.streams_from
}

/// The relations of the best plan of a state, in the order in which they are joined.
fn relations_in_order(best: &BTreeMap<State, Best>, state: State) -> Vec<usize> {
    let mut relations = Vec::new();
    let mut next = Some(state);
    while let Some(Best { step, before }) = next.and_then(|state| best.get(&state)) {
        relations.push(step.relation);
        next = *before;
    }
    relations.reverse();
    relations
}

/// Rows that are preserved can only be built on by operators that keep track of them on the build side; the others
/// probe.
fn must_build_joined(kind: &RelationKind) -> bool {
    !matches!(kind, RelationKind::Inner)
}
