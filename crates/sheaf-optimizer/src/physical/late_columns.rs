//! Leaves long columns out of sorts that keep few rows.
//!
//! `SELECT id, data FROM t ORDER BY name LIMIT 5` wants five values of `data`, and a sort of whole rows reads them all:
//! for BLOBs of 100 KB, 40 MB of 400 rows. Here the scan delivers clustered keys in their places, and a
//! [`LateColumnsExec`] above the sort reads the values of the rows that it has left.
//!
//! A column is late if it may be long, and nothing between the scan and the end of the sort looks at it: projections
//! hand it on as it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::{ExecutionPlan, replace_children_if_necessary};
use sheaf_access::{CancelFlag, Fetch, IndexRef, clustered_key_field, clustered_key_position};
use sheaf_exec::operator::late_columns_exec::LateColumnsExec;
use sheaf_exec::operator::scan_exec::ScanExec;

use crate::logical::late_values::{MOST_READ_LATE, may_be_long};

/// Has the long columns of sorts with a limit read after the sort.
pub(crate) fn read_late(
    plan: Arc<dyn ExecutionPlan>,
    cancel: &CancelFlag,
) -> Result<Arc<dyn ExecutionPlan>> {
    let read = plan.transform_down(|node| {
        let Some(sort) = sort_of(&node) else {
            return Ok(Transformed::no(node));
        };
        match Late::of(sort)? {
            Some(late) => {
                let plan = late.plan(&node, cancel)?;
                // What is below has been looked at.
                Ok(Transformed::new(plan, true, TreeNodeRecursion::Jump))
            }
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(read.data)
}

/// The sort that few rows are left of, below a limit or what puts partitions together.
fn sort_of(node: &Arc<dyn ExecutionPlan>) -> Option<&SortExec> {
    if let Some(limit) = node.downcast_ref::<GlobalLimitExec>() {
        return sort_of(limit.input());
    }
    if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() {
        return sort_of(merge.input());
    }
    let sort = node.downcast_ref::<SortExec>()?;
    sort.fetch()
        .is_some_and(|fetch| fetch <= MOST_READ_LATE)
        .then_some(sort)
}

/// What is late of a sort.
struct Late<'p> {
    scan: &'p ScanExec,
    /// Positions in the scan's output.
    of_scan: BTreeSet<usize>,
    /// Positions in the sort's output, with those in the scan's.
    of_sort: Vec<(usize, usize)>,
}

impl<'p> Late<'p> {
    fn of(sort: &'p SortExec) -> Result<Option<Late<'p>>> {
        let mut projections = Vec::new();
        let mut below = sort.input();
        while let Some(projection) = below.downcast_ref::<ProjectionExec>() {
            projections.push(projection);
            below = projection.input();
        }
        let Some(scan) = below.downcast_ref::<ScanExec>() else {
            return Ok(None);
        };
        let (spec, definition) = (scan.spec(), &scan.spec().table.definition);
        let is_covering = spec.fetch == Fetch::Covering && spec.index != IndexRef::Clustered;
        if definition.overflow.is_none() || is_covering || spec.limit.is_some() {
            return Ok(None);
        }
        let is_long = |position: &usize| {
            let column = definition.columns.get(*position);
            column.is_some_and(|column| may_be_long(&column.ty))
        };
        let mut of_scan: BTreeSet<usize> = (0..spec.projection.len())
            .filter(|position| is_long(&spec.projection[*position]))
            .collect();
        for expr in scan.order().sorted.iter().chain(&scan.order().constant) {
            without_those_of(expr, &mut of_scan);
        }
        // The positions in what is above the scan that hand one of its columns on.
        let mut handed: Vec<(usize, usize)> = of_scan.iter().map(|at| (*at, *at)).collect();
        let mut looked_at = BTreeSet::new();
        for projection in projections.iter().rev() {
            let mut next = Vec::new();
            for (to, shown) in projection.expr().iter().enumerate() {
                let column = shown.expr.downcast_ref::<Column>();
                for (from, at) in &handed {
                    match column {
                        Some(column) if column.index() == *from => next.push((to, *at)),
                        Some(_) => {}
                        None if reads(&shown.expr, *from) => {
                            looked_at.insert(*at);
                        }
                        None => {}
                    }
                }
            }
            handed = next;
        }
        for sorted in sort.expr() {
            for (from, at) in &handed {
                if reads(&sorted.expr, *from) {
                    looked_at.insert(*at);
                }
            }
        }
        of_scan.retain(|at| !looked_at.contains(at));
        handed.retain(|(_, at)| of_scan.contains(at));
        // One that is not handed on is not wanted at all, and a rule has left it out.
        Ok((!handed.is_empty()).then_some(Late {
            scan,
            of_scan,
            of_sort: handed,
        }))
    }

    /// `top`, the sort or what is above it, with the columns read at its end.
    fn plan(
        &self,
        top: &Arc<dyn ExecutionPlan>,
        cancel: &CancelFlag,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let spec = self.scan.spec();
        let key = clustered_key_position(&spec.table.definition);
        let mut projection = spec.projection.clone();
        let mut fields = self.scan.schema().fields().to_vec();
        for at in &self.of_scan {
            projection[*at] = key;
            let name = fields[*at].name().clone();
            fields[*at] = Arc::new(clustered_key_field().with_name(name));
        }
        let scan = self
            .scan
            .with_projection(projection, Arc::new(Schema::new(fields)));
        let below = with_scan(top, &(Arc::new(scan) as Arc<dyn ExecutionPlan>))?;
        let late = self.of_sort.iter();
        let late = late.map(|(place, at)| (*place, spec.projection[*at]));
        let schema: SchemaRef = top.schema();
        Ok(Arc::new(LateColumnsExec::new(
            below,
            (Arc::clone(spec), self.scan.alias().to_string()),
            late.collect(),
            schema,
            cancel.clone(),
        )?))
    }
}

/// The plan with another scan for its only leaf.
fn with_scan(
    plan: &Arc<dyn ExecutionPlan>,
    scan: &Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter();
    let children = children.map(|child| with_scan(child, scan));
    let children = children.collect::<Result<Vec<_>>>()?;
    match (children.is_empty(), plan.downcast_ref::<ProjectionExec>()) {
        (true, _) => Ok(Arc::clone(scan)),
        // Its schema follows that of its input.
        (false, Some(projection)) => {
            let exprs = projection.expr().to_vec();
            let [input] = children.as_slice() else {
                return Ok(Arc::clone(plan));
            };
            Ok(Arc::new(ProjectionExec::try_new(exprs, Arc::clone(input))?))
        }
        (false, None) => replace_children_if_necessary(Arc::clone(plan), children),
    }
}

fn reads(expr: &Arc<dyn PhysicalExpr>, position: usize) -> bool {
    collect_columns(expr)
        .iter()
        .any(|column| column.index() == position)
}

fn without_those_of(expr: &Arc<dyn PhysicalExpr>, positions: &mut BTreeSet<usize>) {
    for column in collect_columns(expr) {
        positions.remove(&column.index());
    }
}
