//! The step of a join with a relation that is read by itself: hash, sort-merge and cross joins, and those of all pairs.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion_common::{Column, JoinType, NullEquality, Result, internal_err};
use datafusion_physical_expr::expressions::{CastExpr, Column as PhysicalColumn};
use datafusion_physical_expr::{LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::joins::utils::{JoinFilter, JoinOn};
use datafusion_physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode, SortMergeJoinExec,
};
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_exec::operator::less_order_exec::{in_streamed_order, without_constants, without_order};
use sheaf_exec::operator::restartable_exec::{RestartableExec, SecondRun};

use super::{Builder, JoinCondition, Joined};
use crate::explain::ExtraNote;
use crate::join::method::Method;
use crate::logical::join_graph::{Relation, RelationKind};
use crate::physical::long_keys::Lengthened;

impl Builder<'_, '_, '_> {
    /// A join with a relation that is read by itself.
    pub(super) fn scanned(
        &self,
        before: Joined,
        relation: &Relation<'_>,
        new: Joined,
        method: &Method,
        condition: JoinCondition,
        needed: &BTreeSet<Column>,
    ) -> Result<Joined> {
        let build_new = match method {
            Method::Hash { build_new } | Method::NestedLoop { build_new } => *build_new,
            _ => false,
        };
        // `left` is kept in memory (or simply comes first), `right` streams by.
        let (left, right) = if build_new {
            (&new, &before)
        } else {
            (&before, &new)
        };
        let join_type = join_type(&relation.kind, build_new);
        let (left_schema, right_schema) = (left.schema()?, right.schema()?);
        let (equalities, null_equality, rest) = condition.into_keys();
        let mut on = Vec::with_capacity(equalities.len());
        for equality in &equalities {
            let (left_key, right_key) = if build_new {
                (&equality.inner, &equality.outer)
            } else {
                (&equality.outer, &equality.inner)
            };
            let left_key = self.planner.expr(left_key, &left_schema, self.block)?;
            let right_key = self.planner.expr(right_key, &right_schema, self.block)?;
            on.push((left_key, right_key));
        }
        let filter = self.join_filter(
            rest,
            &left.layout,
            left.plan.schema().fields(),
            &right.layout,
            right.plan.schema().fields(),
        )?;

        // The join's own output, before columns are dropped.
        let both = || {
            left.layout
                .iter()
                .chain(&right.layout)
                .cloned()
                .collect::<Vec<_>>()
        };
        let with_mark = |side: &Joined| {
            side.layout
                .iter()
                .chain(&relation.mark)
                .cloned()
                .collect::<Vec<_>>()
        };
        let full_layout = match join_type {
            JoinType::LeftSemi | JoinType::LeftAnti => left.layout.clone(),
            JoinType::RightSemi | JoinType::RightAnti => right.layout.clone(),
            JoinType::LeftMark => with_mark(left),
            JoinType::RightMark => with_mark(right),
            _ => both(),
        };
        let kept: Vec<usize> = (0..full_layout.len())
            .filter(|position| needed.contains(&full_layout[*position]))
            .collect();
        let layout: Vec<Column> = kept
            .iter()
            .map(|position| full_layout[*position].clone())
            .collect();
        let (mut left_plan, mut right_plan) = (Arc::clone(&left.plan), Arc::clone(&right.plan));
        let mut projection = (kept.len() < full_layout.len()).then(|| kept.clone());
        if matches!(method, Method::Hash { .. }) {
            let lengthened = with_lengthened_keys([&mut left_plan, &mut right_plan], &mut on)?;
            let [added_left, added_right] = lengthened;
            if added_left + added_right > 0 {
                // What is behind the first side's own columns has moved.
                let (own, added) = match join_type {
                    JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                        (right.layout.len(), added_right)
                    }
                    _ => (left.layout.len(), added_left),
                };
                let moved = |position: &usize| match *position < own {
                    true => *position,
                    false => *position + added,
                };
                projection = Some(kept.iter().map(moved).collect());
            }
        }
        // What is constant in a side is NULL besides where the side has no row. DataFusion forgets that.
        if matches!(join_type, JoinType::Left | JoinType::Full) {
            right_plan = without_constants(right_plan)?;
        }
        if matches!(join_type, JoinType::Right | JoinType::Full) {
            left_plan = without_constants(left_plan)?;
        }
        let null_aware = matches!(relation.kind, RelationKind::Anti { null_aware: true });
        let (plan, note): (Arc<dyn ExecutionPlan>, ExtraNote) = match method {
            Method::Merge => {
                let merge = self.merge_join(
                    [left_plan, right_plan],
                    on,
                    filter,
                    join_type,
                    null_equality,
                )?;
                (project(merge, projection)?, ExtraNote::JoinBufferMerge)
            }
            // CrossJoinExec keeps its left side in memory. Without columns that is nothing, and pairs are counted fast.
            Method::NestedLoop { .. }
                if filter.is_none()
                    && join_type == JoinType::Inner
                    && left_plan.schema().fields().is_empty() =>
            {
                let cross = CrossJoinExec::new(left_plan, right_plan);
                (
                    project(Arc::new(cross), projection)?,
                    ExtraNote::JoinBufferNestedLoop,
                )
            }
            Method::NestedLoop { .. } => {
                let sides = self.nested_loop_sides(left_plan, right_plan, join_type);
                let [left, right] = sides;
                let nested =
                    NestedLoopJoinExec::try_new(left, right, filter, &join_type, projection)?;
                (Arc::new(nested), ExtraNote::JoinBufferNestedLoop)
            }
            _ => {
                // DataFusion moves sorts below joins. Where it looks up the columns of a projection in such a join, it
                // forgets the mark.
                let (inside, above) = match join_type {
                    JoinType::RightMark => (None, projection),
                    _ => (projection, None),
                };
                let hash = HashJoinExec::try_new(
                    without_order(left_plan)?,
                    right_plan,
                    on,
                    filter,
                    &join_type,
                    inside,
                    PartitionMode::CollectLeft,
                    null_equality,
                    null_aware,
                )?;
                (project(Arc::new(hash), above)?, ExtraNote::JoinBufferHash)
            }
        };
        // In the order in which the tables are read: what is kept in memory first.
        let (mut explain, mut later) = if build_new {
            (new.explain, before.explain)
        } else {
            (before.explain, new.explain)
        };
        if let Some(row) = later.first_mut() {
            row.add(note);
        }
        explain.extend(later);
        Ok(Joined {
            plan,
            layout,
            rows: before.rows,
            cost_us: before.cost_us,
            unstopped_us: before.unstopped_us,
            most_rows: before.most_rows,
            explain,
        })
    }

    /// Both sides of a join of all pairs, ready for [what it does](sheaf_exec::operator::restartable_exec) when the
    /// left one does not fit in memory.
    fn nested_loop_sides(
        &self,
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        join_type: JoinType,
    ) -> [Arc<dyn ExecutionPlan>; 2] {
        let delivers_unmatched_left = matches!(
            join_type,
            JoinType::Left
                | JoinType::LeftSemi
                | JoinType::LeftAnti
                | JoinType::LeftMark
                | JoinType::Full
        );
        let settings = &self.planner.context.settings;
        let (second_run, right): (_, Arc<dyn ExecutionPlan>) = if !delivers_unmatched_left {
            (SecondRun::Copy, right)
        } else if settings.target_partitions == 1 || settings.is_thrifty() {
            let right = RestartableExec::new(right, SecondRun::Copy);
            (SecondRun::Copy, Arc::new(right))
        } else {
            (SecondRun::Refused, right)
        };
        [Arc::new(RestartableExec::new(left, second_run)), right]
    }

    /// A sort-merge join. Its inputs are sorted here already and divided between its workers, as the physical rules
    /// would have it. The order that the join promises follows from its inputs, and operators above it rely on that.
    fn merge_join(
        &self,
        inputs: [Arc<dyn ExecutionPlan>; 2],
        on: JoinOn,
        filter: Option<JoinFilter>,
        join_type: JoinType,
        null_equality: NullEquality,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let workers = self
            .planner
            .context
            .task
            .session_config()
            .target_partitions();
        let [left, right] = inputs;
        let (left_schema, right_schema) = (left.schema(), right.schema());
        let on: JoinOn = on
            .into_iter()
            .map(|(l, r)| Ok((merge_key(l, &left_schema)?, merge_key(r, &right_schema)?)))
            .collect::<Result<_>>()?;
        let (left_keys, right_keys): (Vec<_>, Vec<_>) = on.iter().cloned().unzip();
        let left = sorted_by_keys(left, left_keys, workers)?;
        let right = sorted_by_keys(right, right_keys, workers)?;
        let options = vec![MERGE_ORDER; on.len()];
        let merge =
            SortMergeJoinExec::try_new(left, right, on, filter, join_type, options, null_equality)?;
        in_streamed_order(Arc::new(merge))
    }
}

/// Has keys that are texts which functions lengthen computed with the rows of both sides. Returns how many columns the
/// sides have more.
fn with_lengthened_keys(
    [left, right]: [&mut Arc<dyn ExecutionPlan>; 2],
    on: &mut JoinOn,
) -> Result<[usize; 2]> {
    let mut of_left = Lengthened::new(Arc::clone(left), "left");
    let mut of_right = Lengthened::new(Arc::clone(right), "right");
    for (left_key, right_key) in on {
        *left_key = of_left.column_of(Arc::clone(left_key));
        *right_key = of_right.column_of(Arc::clone(right_key));
    }
    let added = [of_left.added(), of_right.added()];
    (*left, *right) = (of_left.plan()?, of_right.plan()?);
    Ok(added)
}

/// DataFusion's join type, with the rows so far on the right if the new relation is built on.
fn join_type(kind: &RelationKind, build_new: bool) -> JoinType {
    match (kind, build_new) {
        (RelationKind::Inner, _) => JoinType::Inner,
        (RelationKind::Outer, false) => JoinType::Left,
        (RelationKind::Outer, true) => JoinType::Right,
        (RelationKind::Semi, false) => JoinType::LeftSemi,
        (RelationKind::Semi, true) => JoinType::RightSemi,
        (RelationKind::Anti { .. }, false) => JoinType::LeftAnti,
        (RelationKind::Anti { .. }, true) => JoinType::RightAnti,
        (RelationKind::Mark, false) => JoinType::LeftMark,
        (RelationKind::Mark, true) => JoinType::RightMark,
    }
}

/// The order in which a sort-merge join wants its keys.
const MERGE_ORDER: SortOptions = SortOptions {
    descending: false,
    nulls_first: true,
};

/// A key as a merge join takes it. Of the types of columns, DataFusion's cannot compare TIME.
fn merge_key(key: Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(match key.data_type(schema)? {
        DataType::Duration(_) => Arc::new(CastExpr::new(key, DataType::Int64, None)),
        _ => key,
    })
}

/// The rows of `plan`, divided between workers by their keys and sorted by them.
fn sorted_by_keys(
    plan: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    workers: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let order = keys
        .iter()
        .map(|key| PhysicalSortExpr::new(Arc::clone(key), MERGE_ORDER));
    let Some(order) = LexOrdering::new(order) else {
        return internal_err!("a merge join without keys");
    };
    let divided: Arc<dyn ExecutionPlan> = match workers {
        1 if plan.output_partitioning().partition_count() == 1 => plan,
        1 => Arc::new(CoalescePartitionsExec::new(plan)),
        _ => Arc::new(RepartitionExec::try_new(
            plan,
            Partitioning::Hash(keys, workers),
        )?),
    };
    let is_sorted = divided
        .equivalence_properties()
        .ordering_satisfy(order.clone())?;
    Ok(match is_sorted {
        true => divided,
        false => Arc::new(SortExec::new(order, divided).with_preserve_partitioning(workers > 1)),
    })
}

/// Keeps some columns of an operator that cannot do so itself.
fn project(
    plan: Arc<dyn ExecutionPlan>,
    columns: Option<Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(columns) = columns else {
        return Ok(plan);
    };
    let schema = plan.schema();
    let expressions = columns.into_iter().map(|position| {
        let name = schema.field(position).name();
        ProjectionExpr {
            expr: Arc::new(PhysicalColumn::new(name, position)),
            alias: name.clone(),
        }
    });
    Ok(Arc::new(ProjectionExec::try_new(
        expressions.collect::<Vec<_>>(),
        plan,
    )?))
}
