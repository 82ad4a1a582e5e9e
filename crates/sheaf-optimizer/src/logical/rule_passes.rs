//! The passes of rules over a logical plan, until they leave it as it is.
//!
//! DataFusion's `Optimizer` offers every rule every node in every pass. It hashes the whole plan with all its schemas
//! after each, and stops when a pass has changed nothing. So of three passes over a join of eight tables, two do almost
//! nothing at almost the same cost. Here the same rules run in the same order, but
//!
//! - a rule is offered only the nodes that it is [about](Rule::about), which a look at the node decides;
//! - a rule that left a plan as it was, or is known to do all that it can do at once, is not applied again before
//!   another one has changed the plan:
//!
//! ```text
//!   pass 1   simplify *   joins     filters *   projections *        * changes the plan
//!   pass 2   simplify     joins *   filters     projections
//!   pass 3   simplify     joins     (both have seen this plan)
//! ```
//!
//! - a hash of its expressions says whether a plan has changed: schemas follow from these.

use std::hash::{BuildHasher, Hash, Hasher};
use std::mem;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion_common::{HashMap, Result};
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};
use sheaf_access::cancel;
use sheaf_exec::functions::EvaluationError;
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_exec::plan_size::{check_plan_size, check_room_for_schemas, expression_nodes};

/// Nodes of the expressions of a plan's node that it may come to have while rules are applied, unless it has nearly as
/// many from the start.
const MAX_EXPRESSION_NODES: usize = 200_000;

/// What a rule is about.
pub(crate) enum About {
    /// Nodes that it may change: it leaves all others as they are.
    Nodes(fn(&LogicalPlan) -> bool),
    /// The same, of a rule that walks over what is below such a node by itself, and would walk there from the root.
    Subtrees(fn(&LogicalPlan) -> bool),
}

/// A rule, and when it is applied.
pub(crate) struct Rule {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
    about: About,
    /// What is to be in a plan for the rule to be applied after the first pass, if that is less than what it is about.
    again: Option<fn(&LogicalPlan) -> bool>,
    /// Whether it leaves a plan alone that it has made itself.
    is_at_once: bool,
}

impl Rule {
    fn new(about: About, rule: impl OptimizerRule + Send + Sync + 'static) -> Rule {
        Rule {
            rule: Arc::new(rule),
            about,
            again: None,
            is_at_once: false,
        }
    }

    pub(crate) fn on(
        about: fn(&LogicalPlan) -> bool,
        rule: impl OptimizerRule + Send + Sync + 'static,
    ) -> Rule {
        Rule::new(About::Nodes(about), rule)
    }

    pub(crate) fn below(
        about: fn(&LogicalPlan) -> bool,
        rule: impl OptimizerRule + Send + Sync + 'static,
    ) -> Rule {
        Rule::new(About::Subtrees(about), rule)
    }

    /// After the first pass only where a node is like this.
    pub(crate) fn again_on(self, again: fn(&LogicalPlan) -> bool) -> Rule {
        Rule {
            again: Some(again),
            ..self
        }
    }

    /// It does all that it can do at once.
    pub(crate) fn at_once(self) -> Rule {
        Rule {
            is_at_once: true,
            ..self
        }
    }

    fn is_about(&self, node: &LogicalPlan) -> bool {
        match self.about {
            About::Nodes(about) | About::Subtrees(about) => about(node),
        }
    }

    /// Whether there is anything for the rule in the plan, as far as that can be told without applying it; `has_nodes`:
    /// there are nodes that it is about.
    fn may_apply(&self, plan: &LogicalPlan, pass: usize, has_nodes: bool) -> bool {
        match self.again {
            Some(again) if pass > 0 => has_nodes && has_node(plan, &again),
            _ => has_nodes,
        }
    }

    /// Applies the rule to one node, unless the statement shall end. A filter that is pushed through projections
    /// repeats what they compute wherever it names it, so expressions can double from one projection to the next.
    fn rewrite(&self, node: LogicalPlan, config: &Config<'_>) -> Result<Transformed<LogicalPlan>> {
        cancel::check_statement().map_err(access_error)?;
        let rewritten = self.rule.rewrite(node, config.config)?;
        if rewritten.transformed {
            let most = config.most_expression_nodes;
            let node = &rewritten.data;
            let inputs = node.inputs().into_iter();
            for node in inputs.chain([node]) {
                if expression_nodes(node, most) == most {
                    return Err(EvaluationError::expression_too_large(most).into());
                }
            }
        }
        Ok(rewritten)
    }

    /// Applies the rule; also says whether it claims to have changed anything.
    fn apply(
        &self,
        mut plan: LogicalPlan,
        has_subqueries: bool,
        config: &Config<'_>,
    ) -> Result<(LogicalPlan, bool)> {
        let order = match self.about {
            // At the topmost such node, and not further.
            About::Subtrees(_) if !has_subqueries => Some(ApplyOrder::TopDown),
            _ => self.rule.apply_order(),
        };
        if order.is_none() {
            check_room_for_schemas(&plan)?;
        }
        let applied = match order {
            None => self.rewrite(plan, config),
            Some(order) if has_subqueries => plan.rewrite_with_subqueries(&mut Walk {
                rule: self,
                order,
                config,
            }),
            Some(order) => self
                .apply_in_place(&mut plan, order, config)
                .map(|changed| Transformed::new_transformed(plan, changed)),
        };
        let applied = applied.and_then(|applied| {
            if applied.transformed {
                check_plan_size(&applied.data)?;
            }
            Ok(applied)
        });
        let applied = applied.map_err(|error| {
            error.context(format!("Optimizer rule '{}' failed", self.rule.name()))
        })?;
        Ok((applied.data, applied.transformed))
    }

    /// Applies the rule to a node and all below, which has no subqueries. When the schema of an input changes, the
    /// node's is made anew. After an error there is no telling what the plan is.
    fn apply_in_place(
        &self,
        plan: &mut LogicalPlan,
        order: ApplyOrder,
        config: &Config<'_>,
    ) -> Result<bool> {
        let mut changed = false;
        if order == ApplyOrder::TopDown && self.is_about(plan) {
            let rewritten = self.rewrite(mem::take(plan), config)?;
            *plan = rewritten.data;
            changed = rewritten.transformed;
            if rewritten.tnr == TreeNodeRecursion::Stop || matches!(self.about, About::Subtrees(_))
            {
                return Ok(changed);
            }
        }
        let mut is_stale = false;
        changed |= self.apply_to_inputs(plan, order, config, &mut is_stale)?;
        if is_stale {
            *plan = mem::take(plan).recompute_schema()?;
        }
        if order == ApplyOrder::BottomUp && self.is_about(plan) {
            let rewritten = self.rewrite(mem::take(plan), config)?;
            *plan = rewritten.data;
            changed |= rewritten.transformed;
        }
        Ok(changed)
    }

    /// `is_stale` is raised when the schema of an input has changed.
    fn apply_to_inputs(
        &self,
        plan: &mut LogicalPlan,
        order: ApplyOrder,
        config: &Config<'_>,
        is_stale: &mut bool,
    ) -> Result<bool> {
        let mut apply = |input: &mut LogicalPlan| -> Result<bool> {
            let before = Arc::clone(input.schema());
            let changed = self.apply_in_place(input, order, config)?;
            *is_stale |= changed && before.as_ref() != input.schema().as_ref();
            Ok(changed)
        };
        match plan {
            LogicalPlan::TableScan(_) | LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => {
                Ok(false)
            }
            LogicalPlan::Projection(node) => apply(Arc::make_mut(&mut node.input)),
            LogicalPlan::Filter(node) => apply(Arc::make_mut(&mut node.input)),
            LogicalPlan::Aggregate(node) => apply(Arc::make_mut(&mut node.input)),
            LogicalPlan::Window(node) => apply(Arc::make_mut(&mut node.input)),
            LogicalPlan::Sort(node) => apply(Arc::make_mut(&mut node.input)),
            LogicalPlan::Limit(node) => apply(Arc::make_mut(&mut node.input)),
            LogicalPlan::SubqueryAlias(node) => apply(Arc::make_mut(&mut node.input)),
            LogicalPlan::Join(node) => {
                let left = apply(Arc::make_mut(&mut node.left))?;
                Ok(apply(Arc::make_mut(&mut node.right))? | left)
            }
            _ => {
                let rewritten = mem::take(plan).map_children(|mut input| {
                    let changed = apply(&mut input)?;
                    Ok(Transformed::new_transformed(input, changed))
                })?;
                *plan = rewritten.data;
                Ok(rewritten.transformed)
            }
        }
    }
}

/// Offers a rule the nodes that it is about, those of subqueries included.
struct Walk<'a> {
    rule: &'a Rule,
    order: ApplyOrder,
    config: &'a Config<'a>,
}

impl Walk<'_> {
    fn offer(&self, node: LogicalPlan, order: ApplyOrder) -> Result<Transformed<LogicalPlan>> {
        if self.order == order && self.rule.is_about(&node) {
            self.rule.rewrite(node, self.config)
        } else {
            Ok(Transformed::no(node))
        }
    }
}

impl TreeNodeRewriter for Walk<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.offer(node, ApplyOrder::TopDown)
    }

    fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.offer(node, ApplyOrder::BottomUp)
    }
}

/// What rules are applied with.
struct Config<'a> {
    config: &'a dyn OptimizerConfig,
    /// Nodes of the expressions of a plan's node, at most.
    most_expression_nodes: usize,
}

impl<'a> Config<'a> {
    /// What the statement has written out is not too much, however long it is.
    fn new(config: &'a dyn OptimizerConfig, plan: &LogicalPlan) -> Config<'a> {
        let mut largest = 0;
        // The closure does not fail.
        let _ = plan.apply(|node| {
            largest = largest.max(expression_nodes(node, usize::MAX));
            Ok(TreeNodeRecursion::Continue)
        });
        Config {
            config,
            most_expression_nodes: MAX_EXPRESSION_NODES.max(largest.saturating_mul(4)),
        }
    }
}

/// A plan after some passes.
pub(crate) struct Passed {
    pub plan: LogicalPlan,
    /// No rule changes it any more.
    pub is_settled: bool,
}

/// Applies the rules in their order, up to `max_passes` times.
pub(crate) fn apply_rules(
    rules: &[Rule],
    mut plan: LogicalPlan,
    config: &dyn OptimizerConfig,
    max_passes: usize,
) -> Result<Passed> {
    let config = &Config::new(config, &plan);
    let hashes = HashMap::<(), ()>::default();
    let mut hash = hash_of(&plan, hashes.hasher());
    // Hashes of the plan between passes.
    let mut seen = vec![hash];
    let mut has_subqueries = contains_subqueries(&plan);
    let mut has_nodes = rules_with_nodes(rules, &plan);
    // Grows with each change.
    let mut state = 0;
    // The state that each rule has left as it was.
    let mut left_alone: Vec<Option<usize>> = vec![None; rules.len()];
    for pass in 0..max_passes {
        let state_before = state;
        for (at, rule) in rules.iter().enumerate() {
            if left_alone[at] == Some(state) || !rule.may_apply(&plan, pass, has_nodes[at]) {
                continue;
            }
            let claims_change;
            (plan, claims_change) = rule.apply(plan, has_subqueries, config)?;
            if claims_change {
                has_subqueries = has_subqueries && contains_subqueries(&plan);
                let now = hash_of(&plan, hashes.hasher());
                if now != hash {
                    (hash, state) = (now, state + 1);
                    has_nodes = rules_with_nodes(rules, &plan);
                    left_alone[at] = rule.is_at_once.then_some(state);
                    continue;
                }
            }
            left_alone[at] = Some(state);
        }
        if state == state_before {
            let is_settled = true;
            return Ok(Passed { plan, is_settled });
        }
        // A circle.
        if seen.contains(&hash) {
            break;
        }
        seen.push(hash);
    }
    let is_settled = false;
    Ok(Passed { plan, is_settled })
}

/// Of each rule, whether there are nodes that it is about, those of subqueries included.
fn rules_with_nodes(rules: &[Rule], plan: &LogicalPlan) -> Vec<bool> {
    let mut has_nodes = vec![false; rules.len()];
    // The closure does not fail.
    let _ = plan.apply_with_subqueries(|node| {
        for (has_nodes, rule) in has_nodes.iter_mut().zip(rules) {
            *has_nodes = *has_nodes || rule.is_about(node);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    has_nodes
}

/// Whether any node of the plan, those of subqueries included, is like this.
fn has_node(plan: &LogicalPlan, is_it: &dyn Fn(&LogicalPlan) -> bool) -> bool {
    let mut found = false;
    // The closure does not fail.
    let _ = plan.apply_with_subqueries(|node| {
        found |= is_it(node);
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    });
    found
}

/// Whether there are subqueries in expressions.
pub(crate) fn contains_subqueries(plan: &LogicalPlan) -> bool {
    let is_subquery = |expr: &Expr| matches!(expr, Expr::ScalarSubquery(_));
    any_expression(plan, &mut |expr| {
        expr.exists(|expr| Ok(is_subquery(expr))).unwrap_or(true)
    })
}

/// Whether any expression of any node is like this.
fn any_expression(plan: &LogicalPlan, is_it: &mut dyn FnMut(&Expr) -> bool) -> bool {
    let mut found = false;
    let recursion = |found| match found {
        true => TreeNodeRecursion::Stop,
        false => TreeNodeRecursion::Continue,
    };
    // The closures do not fail.
    let _ = plan.apply(|node| {
        node.apply_expressions(|expr| {
            found |= is_it(expr);
            Ok(recursion(found))
        })
    });
    found
}

/// A hash of what the nodes of a plan do.
fn hash_of(plan: &LogicalPlan, builder: &impl BuildHasher) -> u64 {
    let mut hasher = builder.build_hasher();
    // The closures do not fail.
    let _ = plan.apply(|node| {
        mem::discriminant(node).hash(&mut hasher);
        match node {
            LogicalPlan::TableScan(scan) => {
                scan.table_name.hash(&mut hasher);
                (&scan.projection, scan.fetch).hash(&mut hasher);
            }
            LogicalPlan::Join(join) => {
                (join.join_type, join.null_equality, join.on.len()).hash(&mut hasher);
                (join.null_aware, join.filter.is_some()).hash(&mut hasher);
            }
            LogicalPlan::SubqueryAlias(alias) => alias.alias.hash(&mut hasher),
            LogicalPlan::Sort(sort) => {
                sort.fetch.hash(&mut hasher);
                // With their directions, which the expressions below do not have.
                sort.expr.hash(&mut hasher);
            }
            LogicalPlan::Limit(limit) => (&limit.skip, &limit.fetch).hash(&mut hasher),
            LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.len().hash(&mut hasher),
            LogicalPlan::EmptyRelation(empty) => empty.produce_one_row.hash(&mut hasher),
            LogicalPlan::Union(union) => union.inputs.len().hash(&mut hasher),
            _ => {}
        }
        node.apply_expressions(|expr| {
            expr.hash(&mut hasher);
            Ok(TreeNodeRecursion::Continue)
        })
    });
    hasher.finish()
}
