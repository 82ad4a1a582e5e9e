//! Loose index scans: grouping that needs one entry of an index per group.
//!
//! With KEY (a, b), `SELECT a, MIN(b) FROM t GROUP BY a` needs the first entry of each `a`, `SELECT DISTINCT a` any,
//! and `SELECT MAX(a) FROM t` the last entry of all. The walk jumps from group to group. The aggregate above it is an
//! ordinary one, and finds one row per group (or a few, where ranges begin within a group).
//!
//! `SELECT a, MIN(b), MAX(b) FROM t GROUP BY a` needs both ends of each group: a walk forward finds the first entries,
//! a walk backward the last ones, and the aggregate gets the rows of both.
//!
//! This needs an index that begins with the grouped columns, followed by the one of MIN or MAX, and holds all columns
//! that are read. Its ranges and jumps must say every condition: a condition that is tested later would lose a group
//! whose first entry fails. Parts that are bound to one value may stand between.
//!
//! It wins when groups are large. MySQL says "Using index for group-by", and of MIN and MAX alone that the tables are
//! optimized away.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::{Aggregate, Expr, LogicalPlan, TableScan};
use datafusion_physical_plan::union::UnionExec;
use sheaf_access::{Fetch, FirstOf, IndexRef, clustered_key_position};
use sheaf_exec::SheafTableSource;
use sheaf_storage::Direction;
use sheaf_table::TableDefinition;

use crate::PlannerContext;
use crate::access::path::AccessPath;
use crate::access::table_reference::TableReference;
use crate::access::trace::Alternatives;
use crate::access::wanted::Wanted;
use crate::cost::jumps::JumpingWalk;
use crate::cost::range_scan::RangeScan;
use crate::estimate::statistics::{layout, tree};
use crate::logical::semantics;
use crate::physical::planner::Planner;
use crate::planned::{Block, Planned};

/// Which value of a column is wanted of each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extreme {
    Least,
    Greatest,
}

/// What an aggregate wants of a table.
#[derive(Debug)]
struct WantedGroups {
    /// Table columns that are grouped by, each once.
    columns: Vec<usize>,
    /// The column whose least or greatest value is wanted, or both.
    extreme_of: Option<usize>,
    extremes: Vec<Extreme>,
}

/// The walks over an index that find all that is wanted. What both cost is the first one's cost.
struct LooseWalks {
    first: AccessPath,
    second: Option<AccessPath>,
}

/// Plans the input of an aggregate as a loose index scan, where that is cheaper than any other way.
pub(crate) fn plan_groups(
    planner: &mut Planner<'_>,
    aggregate: &Aggregate,
    block: &Block,
) -> Result<Option<Planned>> {
    let Some(scan) = scanned_table(&aggregate.input) else {
        return Ok(None);
    };
    let Some(source) = scan.source.downcast_ref::<SheafTableSource>() else {
        return Ok(None);
    };
    let Some(wanted) = WantedGroups::of(aggregate, &source.table.definition) else {
        return Ok(None);
    };
    let table = TableReference::new(scan, source, planner.context)?;
    let mut tried = Alternatives::new(&planner.context.trace);
    let mut best: Option<LooseWalks> = None;
    for index in table.indexes() {
        let (name, hints) = (table.index_name(index), &table.source.hints);
        if !hints.allows(name) || !hints.allows_group(name) {
            continue;
        }
        let Some(walks) = table.loose_walks(planner.context, index, &wanted)? else {
            continue;
        };
        tried.consider(&walks.first);
        if best
            .as_ref()
            .is_none_or(|known| walks.first.cost_us < known.first.cost_us)
        {
            best = Some(walks);
        }
    }
    let Some(LooseWalks {
        first: path,
        second,
    }) = best
    else {
        return Ok(None);
    };
    // Only now: if it is the better one, the rest of the planner asks for it again.
    let usual = table.best_path(planner.context, &Wanted::default())?;
    tried.consider(&usual);
    let cheaper = match usual.cost_us <= path.cost_us {
        true => &usual,
        false => &path,
    };
    tried.decide(&table, &Wanted::default(), cheaper);
    if usual.cost_us <= path.cost_us {
        return Ok(None);
    }
    let planned = table.plan_path(planner, block, &Wanted::default(), &path)?;
    let planned = planned.noted_as_table(&planner.notes)?;
    let Some(second) = second else {
        return Ok(Some(planned));
    };
    let other = table.plan_path(planner, block, &Wanted::default(), &second)?;
    let other = other.noted_as_table(&planner.notes)?;
    let walks = vec![Arc::clone(&planned.plan), other.plan];
    Ok(Some(Planned {
        plan: UnionExec::try_new(walks)?,
        ..planned
    }))
}

/// The table that an aggregate reads directly.
fn scanned_table(input: &LogicalPlan) -> Option<&TableScan> {
    match input {
        // A LIMIT below is one of rows, not of groups.
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => Some(scan),
        LogicalPlan::SubqueryAlias(alias) => scanned_table(&alias.input),
        _ => None,
    }
}

impl WantedGroups {
    fn of(aggregate: &Aggregate, definition: &TableDefinition) -> Option<WantedGroups> {
        let mut columns = Vec::new();
        for expr in &aggregate.group_expr {
            let column = semantics::ordered_column(unalias(expr), definition)?;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let (mut extreme_of, mut extremes) = (None, Vec::new());
        for expr in &aggregate.aggr_expr {
            let Expr::AggregateFunction(AggregateFunction { func, params }) = unalias(expr) else {
                return None;
            };
            let [Expr::Column(argument)] = params.args.as_slice() else {
                return None;
            };
            let column = definition.position_in_plan(&argument.name)?;
            if params.filter.is_some() || !params.order_by.is_empty() {
                return None;
            }
            let which = match func.name() {
                "min" => Extreme::Least,
                "max" => Extreme::Greatest,
                // All rows of a group have the same value, as far as the collation goes.
                "first_value" if columns.contains(&column) => continue,
                _ => return None,
            };
            // Strings are not compared by the bytes of the column.
            let is_text = definition.columns[column].ty.collation().is_some();
            if is_text || extreme_of.is_some_and(|known| known != column) {
                return None;
            }
            extreme_of = Some(column);
            if !extremes.contains(&which) {
                extremes.push(which);
            }
        }
        (!columns.is_empty() || extreme_of.is_some()).then_some(WantedGroups {
            columns,
            extreme_of,
            extremes,
        })
    }
}

fn unalias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unalias(&alias.expr),
        other => other,
    }
}

impl TableReference<'_> {
    /// Loose scans of one index that find all that is wanted.
    fn loose_walks(
        &self,
        context: &PlannerContext,
        index: IndexRef,
        wanted: &WantedGroups,
    ) -> Result<Option<LooseWalks>> {
        let mut extremes = wanted.extremes.iter().copied();
        let first = self.loose_path(context, index, wanted, extremes.next())?;
        let Some(mut first) = first else {
            return Ok(None);
        };
        let second = match extremes.next() {
            Some(extreme) => self.loose_path(context, index, wanted, Some(extreme))?,
            None => None,
        };
        if let Some(second) = &second {
            first.cost_us += second.cost_us;
            first.pages += second.pages;
            first.walked += second.walked;
        }
        Ok(Some(LooseWalks { first, second }))
    }

    /// A loose scan of one index for at most one extreme of each group.
    fn loose_path(
        &self,
        context: &PlannerContext,
        index: IndexRef,
        wanted: &WantedGroups,
        extreme: Option<Extreme>,
    ) -> Result<Option<AccessPath>> {
        let bound = self.bound(index)?;
        let layout = layout(self.table, index);
        let jumps = self.jumps(context, index)?;
        let is_said = |filter: &usize| {
            bound.ranges.consumed.contains(filter)
                || jumps
                    .as_ref()
                    .is_some_and(|jumps| jumps.consumed.contains(filter))
        };
        let clustered_key = clustered_key_position(&self.table.definition);
        let in_entry = |column: &usize| {
            index == IndexRef::Clustered
                || *column == clustered_key
                || layout.part_of(*column).is_some()
        };
        let constant = bound.ranges.constant_parts;
        let Some(parts) = group_parts(layout, constant, wanted) else {
            return Ok(None);
        };
        if !(0..self.filters.len()).all(|filter| is_said(&filter))
            || !self.projection.iter().all(in_entry)
            || bound.ranges.ranges.is_empty()
        {
            return Ok(None);
        }
        let jumps = jumps.filter(|jumps| !jumps.consumed.is_empty());
        let declared = index.definition(self.table).parts.len();
        let groups = match parts {
            parts if parts <= constant => bound.ranges.ranges.len() as f64,
            parts if parts > declared => bound.entries,
            parts => bound.entries / self.rows_per_key(index, parts)?,
        };
        let mut path = AccessPath {
            entries: bound.entries,
            resident: self.resident_in(index, &bound)?,
            first_of: Some(FirstOf {
                parts,
                nulls_apart: extreme == Some(Extreme::Least),
            }),
            direction: match extreme {
                Some(Extreme::Greatest) => Direction::Backward,
                _ => Direction::Forward,
            },
            ..AccessPath::whole(index, bound.ranges.clone(), jumps, Fetch::Covering)
        };
        let statistics = tree(self.table, index).statistics();
        let scan = RangeScan {
            ranges: bound.ranges.ranges.len() as f64,
            entries: bound.entries,
            tree_pages: statistics.leaf_pages as f64,
            tree_entries: statistics.entries as f64,
            pool_pages: tree(self.table, index).pool_pages() as f64,
            resident: self.resident_in(index, &bound)?,
        };
        let groups = groups.clamp(1.0, bound.entries.max(1.0));
        let jumping = self.jumping_walk(&path, scan)?;
        let walk = JumpingWalk {
            scan,
            matches: groups,
            jumps: groups + jumping.map_or(0.0, |walk| walk.jumps),
        };
        let constants = &context.settings.costs;
        path.walked = groups;
        path.entries = groups;
        path.pages = walk.pages();
        path.cost_us = walk.work(constants).elapsed_us(1.0)
            + groups * self.projection.len() as f64 * constants.column_us;
        Ok(Some(path))
    }
}

/// How many leading parts of an index make up the groups; `None` if it does not begin with them.
fn group_parts(
    layout: &sheaf_table::KeyLayout,
    constant: usize,
    wanted: &WantedGroups,
) -> Option<usize> {
    let mut missing = wanted.columns.clone();
    let mut parts = 0;
    for (position, part) in layout.parts.iter().enumerate() {
        if missing.is_empty() && position >= constant {
            break;
        }
        let column = part.column?;
        let is_group = part.prefix_length.is_none() && wanted.columns.contains(&column);
        if !is_group && position >= constant {
            return None;
        }
        missing.retain(|known| *known != column);
        parts = position + 1;
    }
    if !missing.is_empty() {
        return None;
    }
    let Some(column) = wanted.extreme_of else {
        return Some(parts);
    };
    let next = layout.parts.get(parts)?;
    (next.column == Some(column) && next.prefix_length.is_none()).then_some(parts)
}
