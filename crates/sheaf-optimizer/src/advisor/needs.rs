//! By which columns a plan finds, joins, orders and groups the rows of each table.
//!
//! ```text
//!   SELECT c FROM t JOIN u ON t.u = u.id WHERE t.a = 1 AND t.b > 2 ORDER BY t.d
//!
//!   t:  equal a   ranged b   joined u   ordered d   read a b c d u
//! ```
//!
//! It is read off the optimised logical plan, where conditions stand at their tables and equalities are keys of joins.
//! Conditions mean what they mean to key ranges ([`Term`]), so a column is listed only if an index could bind it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use datafusion_common::{Column, DFSchema, Result};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{Aggregate, BinaryExpr, Expr, LogicalPlan, Operator, SortExpr, TableScan};
use sheaf_access::clustered_key_position;
use sheaf_exec::{SheafTableSource, for_each_node};
use sheaf_table::{IndexPart, Table};

use crate::access::table_reference::columns_of;
use crate::estimate::column_set::{ColumnSet, Interval};
use crate::estimate::condition::{self, Term, conjuncts};
use crate::logical::semantics::compared_column;

/// Branches of an OR, each with an index of its own, at most.
const MAX_BRANCHES: usize = 4;

/// A column that a condition restricts to a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangedColumn {
    pub column: usize,
    /// The shortest text that its values must begin with, if LIKE asks for one and nothing else restricts it.
    pub begins_with: Option<String>,
}

/// What one branch of an OR could use of an index of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchNeed {
    /// As those of a [`TableNeed`].
    pub equal: Vec<usize>,
    pub ranged: Vec<RangedColumn>,
}

/// What one reference to a table could use of an index.
#[derive(Clone)]
pub struct TableNeed {
    pub table: Arc<Table>,
    /// Columns that conditions bind to single values, ascending.
    pub equal: Vec<usize>,
    pub ranged: Vec<RangedColumn>,
    /// ORs of conditions on several columns, with what each branch could use: indexes of all branches are merged.
    pub alternatives: Vec<Vec<BranchNeed>>,
    /// Columns that equalities compare with other tables, or with the row around a subquery.
    pub joined: Vec<usize>,
    /// ORDER BY, if it is of columns of this table in one direction.
    pub ordered: Vec<usize>,
    /// GROUP BY, if it is of columns of this table.
    pub grouped: Vec<usize>,
    /// The column whose MIN or MAX is all that is computed of each group, or of all rows.
    pub extreme: Option<usize>,
    /// All columns that are read, ascending.
    pub read: Vec<usize>,
    /// Its rows are found to be changed.
    pub is_changed: bool,
}

/// The reference's number, and the table's.
type Reference = (u32, u64);

/// What a plan could use of each table, one for each reference. `plan` comes from
/// [`optimize_logical`](crate::optimize_logical).
pub fn table_needs(plan: &LogicalPlan) -> Result<Vec<TableNeed>> {
    let mut needs: BTreeMap<Reference, TableNeed> = BTreeMap::new();
    for_each_node(plan, &mut |node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = scan.source.downcast_ref::<SheafTableSource>()
        {
            let need = need_of(scan, source)?;
            needs.insert(reference(source), need);
        }
        Ok(())
    })?;
    for_each_node(plan, &mut |node| {
        match node {
            LogicalPlan::Join(join) => {
                for (left, right) in &join.on {
                    for (key, side) in [(left, &join.left), (right, &join.right)] {
                        add_joined(&mut needs, side, key);
                    }
                }
            }
            LogicalPlan::Sort(sort) => add_order(&mut needs, &sort.input, &sort.expr),
            LogicalPlan::Aggregate(aggregate) => {
                add_groups(&mut needs, &aggregate.input, &aggregate.group_expr);
                add_extreme(&mut needs, aggregate);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(needs.into_values().collect())
}

fn reference(source: &SheafTableSource) -> Reference {
    (source.reference, source.table.definition.id)
}

fn need_of(scan: &TableScan, source: &SheafTableSource) -> Result<TableNeed> {
    let table = &source.table;
    let definition = &table.definition;
    let schema = datafusion_expr::TableSource::schema(source);
    let clustered_key = clustered_key_position(definition);
    let qualified = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &schema)?;
    let projection = scan.projection.clone();
    let mut read = projection.unwrap_or_else(|| (0..schema.fields().len()).collect());
    let is_changed = read.contains(&clustered_key);
    let mut need = TableNeed {
        table: Arc::clone(table),
        equal: Vec::new(),
        ranged: Vec::new(),
        alternatives: Vec::new(),
        joined: Vec::new(),
        ordered: Vec::new(),
        grouped: Vec::new(),
        extreme: None,
        read: Vec::new(),
        is_changed,
    };
    for expr in scan.filters.iter().flat_map(split_conjunction) {
        read.extend(columns_of(expr, &qualified)?);
        let term = condition::analyze(expr, definition);
        for term in conjuncts(&term) {
            need.add_term(term);
        }
        if let (Term::Opaque, Some(column)) = (&term, compared_with_outside(expr)) {
            need.joined
                .extend(definition.position_in_plan(&column.name));
        }
    }
    read.retain(|column| *column != clustered_key);
    read.sort_unstable();
    read.dedup();
    need.read = read;
    need.equal.sort_unstable();
    need.equal.dedup();
    let equal = &need.equal;
    need.ranged.retain(|range| !equal.contains(&range.column));
    need.joined.dedup();
    Ok(need)
}

/// The column of an equality whose other side has no column of the table: a value of the row around a subquery.
fn compared_with_outside(expr: &Expr) -> Option<&Column> {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Eq,
        right,
    }) = expr
    else {
        return None;
    };
    let is_outside = |expr: &Expr| expr.column_refs().is_empty();
    match (compared_column(left), compared_column(right)) {
        (Some(column), None) if is_outside(right) => Some(column),
        (None, Some(column)) if is_outside(left) => Some(column),
        _ => None,
    }
}

impl TableNeed {
    /// Whether a plan may have any use of an index of these parts. All that is read of it counts: the rows that a range
    /// or a jump finds, conditions that are tested on entries, its order, and entries in place of rows.
    pub fn may_use(&self, parts: &[IndexPart]) -> bool {
        let is_tested = |part: &IndexPart| {
            let column = part.column;
            self.equal.contains(&column)
                || self.joined.contains(&column)
                || self.ranged.iter().any(|range| range.column == column)
                || self.alternatives.iter().flatten().any(|branch| {
                    let mut ranged = branch.ranged.iter();
                    branch.equal.contains(&column) || ranged.any(|range| range.column == column)
                })
        };
        let is_ordered = |part: &IndexPart| {
            self.ordered.contains(&part.column)
                || self.grouped.contains(&part.column)
                || self.extreme == Some(part.column)
        };
        let whole = |of: &[IndexPart], column: usize| {
            let mut parts = of.iter();
            parts.any(|part| part.column == column && part.prefix_length.is_none())
        };
        let primary = &self.table.definition.primary.parts;
        let is_read = |column: &usize| whole(parts, *column) || whole(primary, *column);
        parts.iter().any(is_tested)
            || parts.first().is_some_and(is_ordered)
            || self.read.iter().all(is_read)
    }

    fn add_term(&mut self, term: &Term) {
        match term {
            Term::Column { column, set, .. } => self.add_set(*column, set),
            Term::Or(branches) => self.add_branches(branches),
            Term::And(_) | Term::Opaque => {}
        }
    }

    fn add_alternatives(&mut self, branches: &[Term]) {
        let needs = branches.iter().map(|branch| {
            let mut need = BranchNeed::default();
            for term in conjuncts(branch) {
                if let Term::Column { column, set, .. } = term {
                    need.add_set(*column, set);
                }
            }
            need
        });
        let needs: Vec<BranchNeed> = needs.collect();
        let is_bound = |need: &BranchNeed| !(need.equal.is_empty() && need.ranged.is_empty());
        if needs.len() <= MAX_BRANCHES && needs.iter().all(is_bound) {
            self.alternatives.push(needs);
        }
    }

    fn add_set(&mut self, column: usize, set: &ColumnSet) {
        let mut need = BranchNeed {
            equal: std::mem::take(&mut self.equal),
            ranged: std::mem::take(&mut self.ranged),
        };
        need.add_set(column, set);
        (self.equal, self.ranged) = (need.equal, need.ranged);
    }

    /// All branches of an OR are about one column: it is in one of several ranges. Or each could use an index of its
    /// own.
    fn add_branches(&mut self, branches: &[Term]) {
        let mut columns = branches.iter().map(|branch| match branch {
            Term::Column { column, .. } => Some(*column),
            _ => None,
        });
        let first = columns.next().flatten();
        if first.is_none() || columns.any(|column| column != first) {
            return self.add_alternatives(branches);
        }
        for branch in branches {
            if let Term::Column { column, set, .. } = branch {
                let mut alone = BranchNeed::default();
                alone.add_set(*column, set);
                let whole = alone.equal.into_iter().map(|column| RangedColumn {
                    column,
                    begins_with: None,
                });
                for range in whole.chain(alone.ranged) {
                    let known = self.ranged.iter_mut();
                    match known.into_iter().find(|known| known.column == range.column) {
                        Some(known) => {
                            known.begins_with =
                                shortest(known.begins_with.take(), range.begins_with);
                        }
                        None => self.ranged.push(range),
                    }
                }
            }
        }
    }
}

impl BranchNeed {
    fn add_set(&mut self, column: usize, set: &ColumnSet) {
        if set.is_points() {
            return self.equal.push(column);
        }
        let begins_with = set.starts_with.clone();
        if begins_with.is_none() && !is_bounded(set) {
            return;
        }
        let known = self.ranged.iter_mut();
        match known.into_iter().find(|known| known.column == column) {
            Some(known) => known.begins_with = shortest(known.begins_with.take(), begins_with),
            None => self.ranged.push(RangedColumn {
                column,
                begins_with,
            }),
        }
    }
}

/// The shorter of two beginnings; `None` if one of the conditions asks for none.
fn shortest(a: Option<String>, b: Option<String>) -> Option<String> {
    match (a, b) {
        (Some(a), Some(b)) if a.chars().count() <= b.chars().count() => Some(a),
        (Some(_), b) => b,
        (None, _) => None,
    }
}

/// Whether a set leaves out more than NULL and single values: `<>` is no range to look for.
fn is_bounded(set: &ColumnSet) -> bool {
    let open = set.intervals.iter().filter(|interval| {
        matches!(
            interval,
            Interval::Range {
                lower: Bound::Unbounded,
                ..
            } | Interval::Range {
                upper: Bound::Unbounded,
                ..
            }
        )
    });
    let is_except = set.intervals.len() == 2 && open.count() == 2;
    let is_whole = set.intervals.iter().any(|interval| {
        matches!(
            interval,
            Interval::Range {
                lower: Bound::Unbounded,
                upper: Bound::Unbounded,
            }
        )
    });
    !is_except && !is_whole && !set.intervals.is_empty()
}

/// The reference and the column that an expression over a plan's rows is made of.
fn origin(plan: &LogicalPlan, expr: &Expr) -> Option<(Reference, usize)> {
    origin_of_column(plan, compared_column(expr)?)
}

fn origin_of_column(plan: &LogicalPlan, column: &Column) -> Option<(Reference, usize)> {
    let position = plan.schema().index_of_column(column).ok()?;
    match plan {
        LogicalPlan::TableScan(scan) => {
            let source = scan.source.downcast_ref::<SheafTableSource>()?;
            let column = source.table.definition.position_in_plan(&column.name)?;
            Some((reference(source), column))
        }
        LogicalPlan::Projection(projection) => {
            origin(&projection.input, projection.expr.get(position)?)
        }
        LogicalPlan::Aggregate(aggregate) => {
            origin(&aggregate.input, aggregate.group_expr.get(position)?)
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let inner = Column::from(alias.input.schema().qualified_field(position));
            origin_of_column(&alias.input, &inner)
        }
        LogicalPlan::Union(_) => None,
        other => {
            let mut inputs = other.inputs().into_iter();
            inputs.find_map(|input| origin_of_column(input, column))
        }
    }
}

fn add_joined(needs: &mut BTreeMap<Reference, TableNeed>, side: &LogicalPlan, key: &Expr) {
    if let Some((reference, column)) = origin(side, key)
        && let Some(need) = needs.get_mut(&reference)
        && !need.joined.contains(&column)
    {
        need.joined.push(column);
    }
}

/// The columns of one table that a list is made of; `None` if it is anything else.
fn columns_of_one<'e>(
    input: &LogicalPlan,
    list: impl Iterator<Item = &'e Expr>,
) -> Option<(Reference, Vec<usize>)> {
    let mut columns = Vec::new();
    let mut table = None;
    for expr in list {
        let (reference, column) = origin(input, expr)?;
        if table.is_some_and(|known| known != reference) {
            return None;
        }
        table = Some(reference);
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    Some((table?, columns))
}

/// An index is walked in one direction, so an order that goes both ways needs a sort whatever the index.
fn add_order(needs: &mut BTreeMap<Reference, TableNeed>, input: &LogicalPlan, order: &[SortExpr]) {
    let Some(first) = order.first() else {
        return;
    };
    if order.iter().any(|sort| sort.asc != first.asc) {
        return;
    }
    let found = columns_of_one(input, order.iter().map(|sort| &sort.expr));
    if let Some((reference, columns)) = found
        && let Some(need) = needs.get_mut(&reference)
    {
        need.ordered = columns;
    }
}

fn add_groups(needs: &mut BTreeMap<Reference, TableNeed>, input: &LogicalPlan, groups: &[Expr]) {
    let found = columns_of_one(input, groups.iter());
    if let Some((reference, columns)) = found
        && let Some(need) = needs.get_mut(&reference)
    {
        need.grouped = columns;
    }
}

/// MIN and MAX of one column, and nothing else.
fn add_extreme(needs: &mut BTreeMap<Reference, TableNeed>, aggregate: &Aggregate) {
    let mut found = None;
    for expr in &aggregate.aggr_expr {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = without_alias(expr)
        else {
            return;
        };
        let ([argument], "min" | "max") = (params.args.as_slice(), func.name()) else {
            return;
        };
        let Some(column) = origin(&aggregate.input, argument) else {
            return;
        };
        if found.is_some_and(|known| known != column) {
            return;
        }
        found = Some(column);
    }
    if let Some((reference, column)) = found
        && let Some(need) = needs.get_mut(&reference)
    {
        need.extreme = Some(column);
    }
}

fn without_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => without_alias(&alias.expr),
        other => other,
    }
}
