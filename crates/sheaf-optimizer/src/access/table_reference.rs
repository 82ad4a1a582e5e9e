//! One reference to a table, with the conditions on it: what they leave of each index, and of the rows.
//!
//! The trees and the statistics are asked each question once per statement and reference, however many access paths and
//! join orders are compared.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, HashMap, Result};
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{Expr, TableScan};
use sheaf_access::{IndexRef, cancel};
use sheaf_exec::SheafTableSource;
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_storage::KeyRange;
use sheaf_table::{PRIMARY, Table};

use crate::PlannerContext;
use crate::access::jumps::{self, IndexJumps};
use crate::access::path::AccessPath;
use crate::access::ranges::{self, IndexRanges};
use crate::estimate::column_set::ColumnSet;
use crate::estimate::condition::{self, Term};
use crate::estimate::joint_selectivity::{Group, JointSelectivity};
use crate::estimate::selectivity::Selectivity;
use crate::estimate::statistics::{self, layout, tree};
use crate::logical::join_graph::Relation;
use crate::logical::places::has_places;

/// Rows per distinct value of a column that no index starts with.
const GUESSED_ROWS_PER_VALUE: f64 = 10.0;

/// Rows that are taken to pass conditions, at least: estimates are never certain that nothing is there.
const LEAST_ROWS: f64 = 0.1;

/// One condition on a table reference, a conjunct of its filters.
pub(crate) struct TableFilter<'a> {
    pub expr: &'a Expr,
    /// Of one with places, for the values that are bound to them now.
    pub term: Term,
    /// Each run of the plan has values of its own there ([`crate::access::bound_scan`]).
    pub has_places: bool,
    /// Conditions that it takes to test it on a row.
    pub tests: usize,
    /// Table columns that it reads.
    pub columns: Vec<usize>,
}

/// One reference to a table, with its conditions.
pub(crate) struct TableReference<'a> {
    pub source: &'a SheafTableSource,
    pub table: &'a Arc<Table>,
    /// Table columns that the plan above wants, in order.
    pub projection: Vec<usize>,
    /// Their schema.
    pub schema: SchemaRef,
    pub filters: Vec<TableFilter<'a>>,
    /// All columns of the table under the qualifier that the filters use.
    pub qualified: DFSchema,
    pub fetch: Option<usize>,
    selectivity: Selectivity,
    /// What the filters accept, together and each for itself.
    pub shares: JointSelectivity,
    /// Rows of the table.
    pub table_rows: f64,
    /// Rows that pass all conditions.
    pub rows: f64,
    /// Ranges of single values from which on an index is not dived into for each (`eq_range_index_dive_limit`).
    pub dive_limit: usize,
    pub memo: Memo,
}

/// What a plan has asked about a table, so that comparing join orders asks once.
#[derive(Default)]
pub(crate) struct Memo {
    /// By index and number of leading parts.
    rows_per_key: RefCell<HashMap<(IndexRef, usize), f64>>,
    /// By index.
    resident: RefCell<HashMap<IndexRef, f64>>,
    /// By index, what all filters leave of it.
    bound: RefCell<HashMap<IndexRef, Rc<BoundIndex>>>,
    /// The cheapest way to read the table in any order.
    pub scan: RefCell<Option<Rc<ChosenScan>>>,
}

/// A way to read a table, and the workers that share it.
pub(crate) struct ChosenScan {
    pub path: AccessPath,
    pub workers: usize,
}

/// What the conditions leave of an index.
#[derive(Debug)]
pub(crate) struct BoundIndex {
    pub ranges: IndexRanges,
    /// Entries in them.
    pub entries: f64,
    /// Share of their leaves that is in memory, once it was asked for.
    resident: Cell<Option<f64>>,
}

impl BoundIndex {
    pub(crate) fn new(ranges: IndexRanges, entries: f64) -> BoundIndex {
        BoundIndex {
            ranges,
            entries,
            resident: Cell::new(None),
        }
    }
}

impl<'a> TableReference<'a> {
    pub(crate) fn new(
        scan: &'a TableScan,
        source: &'a SheafTableSource,
        context: &PlannerContext,
    ) -> Result<TableReference<'a>> {
        let table = &source.table;
        let definition = &table.definition;
        let table_schema = datafusion_expr::TableSource::schema(source);
        let projection = scan
            .projection
            .clone()
            .unwrap_or_else(|| (0..table_schema.fields().len()).collect());
        let qualified =
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &table_schema)?;
        let schema = Arc::new(table_schema.project(&projection)?);
        let mut filters = Vec::new();
        for expr in scan.filters.iter().flat_map(split_conjunction) {
            let columns = columns_of(expr, &qualified)?;
            let has_places = context.places.is_some() && has_places(expr);
            let term = match &context.places {
                Some(places) if has_places => {
                    places.term(expr, &Arc::new(qualified.clone()), table)?
                }
                _ => condition::analyze(expr, definition),
            };
            filters.push(TableFilter {
                expr,
                has_places,
                tests: condition::tests(expr, &term),
                term,
                columns,
            });
        }
        let mut reference = TableReference {
            source,
            table,
            projection,
            schema,
            filters,
            qualified,
            fetch: scan.fetch,
            selectivity: Selectivity::new(Arc::clone(table)),
            shares: JointSelectivity::default(),
            table_rows: (table.row_count_estimate() as f64).max(1.0),
            rows: 1.0,
            dive_limit: context.settings.eq_range_index_dive_limit,
            memo: Memo::default(),
        };
        reference.estimate_filters()?;
        Ok(reference)
    }

    /// The same reference with only some of its columns, under other names.
    pub(crate) fn select<'n>(
        self,
        columns: &[usize],
        names: impl Iterator<Item = &'n str>,
    ) -> TableReference<'a> {
        let fields = columns
            .iter()
            .zip(names)
            .map(|(column, name)| Arc::new(self.schema.field(*column).clone().with_name(name)));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let projection = columns
            .iter()
            .map(|column| self.projection[*column])
            .collect();
        TableReference {
            projection,
            schema,
            ..self
        }
    }

    /// What the filters accept: from dives into indexes that they bind, from the statistics otherwise.
    fn estimate_filters(&mut self) -> Result<()> {
        let all: Vec<usize> = (0..self.filters.len()).collect();
        if self.is_empty_set()? {
            // Nothing needs to be known of any condition alone, and dives may have to read.
            let none = vec![0.0; all.len()];
            let group = Group {
                filters: all,
                share: 0.0,
            };
            self.shares = JointSelectivity::new(none, vec![group], Vec::new());
            self.rows = LEAST_ROWS;
            return Ok(());
        }
        let mut alone = Vec::with_capacity(all.len());
        let mut single: Vec<Group> = Vec::new();
        let mut by_column: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for position in all.iter().copied() {
            let share = self.share_of(&[position])?;
            alone.push(share);
            match &self.filters[position].term {
                Term::Column { column, .. } => by_column.entry(*column).or_default().push(position),
                _ => single.push(Group {
                    filters: vec![position],
                    share,
                }),
            }
        }
        for filters in by_column.into_values() {
            let share = match filters.as_slice() {
                [one] => alone[*one],
                several => self.share_of(several)?,
            };
            single.push(Group { filters, share });
        }
        // What several conditions leave together is known where one index binds them together.
        let mut joint = Vec::new();
        for index in self.indexes() {
            let bound = self.bound(index)?;
            if bound.ranges.parts > 1 {
                let parts = &layout(self.table, index).parts[..bound.ranges.parts];
                // The branches of an OR may have narrowed the ranges further than the conditions on columns do.
                let has_branches = self.filters.iter().any(|filter| {
                    let mut columns = filter.columns.iter();
                    !matches!(filter.term, Term::Column { .. } | Term::Opaque)
                        && columns
                            .any(|column| parts.iter().any(|part| part.column == Some(*column)))
                });
                if has_branches {
                    continue;
                }
                let is_bound = |filter: &usize| match &self.filters[*filter].term {
                    Term::Column { column, .. } => {
                        parts.iter().any(|part| part.column == Some(*column))
                    }
                    _ => false,
                };
                joint.push(Group {
                    filters: all.iter().copied().filter(is_bound).collect(),
                    share: (bound.entries / self.table_rows).min(1.0),
                });
            }
        }
        self.shares = JointSelectivity::new(alone, single, joint);
        self.rows = self.table_rows * self.shares.of(&all);
        self.rows = self.rows.max(if all.is_empty() { 1.0 } else { LEAST_ROWS });
        Ok(())
    }

    /// Share of the rows that some of the filters accept together.
    fn share_of(&self, filters: &[usize]) -> Result<f64> {
        let filters: Vec<&TableFilter<'_>> = filters.iter().map(|at| &self.filters[*at]).collect();
        let column = match filters.first().map(|filter| &filter.term) {
            Some(Term::Column { column, .. }) => Some(*column),
            // Beginnings of a text. Each alone is a set that the others are taken to be independent of.
            Some(Term::Or(terms)) => column_of_all(terms),
            _ => None,
        };
        let known = column.is_some_and(|column| self.selectivity.estimator(column).is_some());
        for index in self.indexes() {
            let layout = layout(self.table, index);
            // A prefix of the column holds more than the condition accepts.
            let starts_with_column = layout.parts.first().is_some_and(|part| {
                part.column.is_some()
                    && part.column == column
                    && !(known && part.prefix_length.is_some())
            });
            if !starts_with_column {
                continue;
            }
            let terms: Vec<&Term> = filters.iter().map(|filter| &filter.term).collect();
            // What all filters leave of the index is kept: the access paths ask for it, too.
            let bound = match filters.len() == self.filters.len() {
                true => self.bound(index)?,
                false => Rc::new(self.bound_by(&terms, index)?),
            };
            if !bound.ranges.is_full() {
                return Ok((bound.entries / self.table_rows).clamp(0.0, 1.0));
            }
        }
        let conditions = filters.iter().map(|filter| (filter.expr, &filter.term));
        Ok(self.selectivity.of_all(conditions, &self.qualified))
    }

    /// Share of the table's rows that satisfy a condition over its columns, whatever qualifies them.
    pub(crate) fn share_of_condition(&self, expr: &Expr) -> Result<f64> {
        let qualified = expr.clone().transform(|expr| match &expr {
            Expr::Column(column) => {
                let position = self.table.definition.position_in_plan(&column.name);
                Ok(match position {
                    Some(position) => {
                        let column = Column::from(self.qualified.qualified_field(position));
                        Transformed::yes(Expr::Column(column))
                    }
                    None => Transformed::no(expr),
                })
            }
            _ => Ok(Transformed::no(expr)),
        })?;
        Ok(self.selectivity.of(&qualified.data, &self.qualified))
    }

    /// Whether what the filters leave of an index follows from values in their places.
    pub(crate) fn depends_on_places(&self, index: IndexRef) -> bool {
        if !self.has_places() {
            return false;
        }
        let layout = layout(self.table, index);
        let without = self.filters.iter().map(|filter| match filter.has_places {
            true => &Term::Opaque,
            false => &filter.term,
        });
        let without: Vec<&Term> = without.collect();
        ranges::index_ranges(&self.terms(), layout) != ranges::index_ranges(&without, layout)
    }

    /// Whether filters have places.
    pub(crate) fn has_places(&self) -> bool {
        self.filters.iter().any(|filter| filter.has_places)
    }

    /// Whether the conditions contradict each other, so that no row can satisfy them.
    fn is_empty_set(&self) -> Result<bool> {
        let bound = self.bound(IndexRef::Clustered)?;
        Ok(bound.ranges.ranges.is_empty())
    }

    /// Conditions that it takes to test some of the filters on a row.
    pub(crate) fn tests(&self, filters: &[usize]) -> usize {
        filters.iter().map(|at| self.filters[*at].tests).sum()
    }

    /// The conditions as key ranges see them.
    pub(crate) fn terms(&self) -> Vec<&Term> {
        let filters = self.filters.iter();
        filters.map(|filter| &filter.term).collect()
    }

    /// What the filters leave of an index.
    pub(crate) fn bound(&self, index: IndexRef) -> Result<Rc<BoundIndex>> {
        if let Some(known) = self.memo.bound.borrow().get(&index) {
            return Ok(Rc::clone(known));
        }
        let bound = Rc::new(self.bound_by(&self.terms(), index)?);
        self.memo
            .bound
            .borrow_mut()
            .insert(index, Rc::clone(&bound));
        Ok(bound)
    }

    /// What some of the filters leave of an index.
    fn bound_by(&self, terms: &[&Term], index: IndexRef) -> Result<BoundIndex> {
        cancel::check_statement().map_err(access_error)?;
        let ranges = ranges::index_ranges(terms, layout(self.table, index));
        let entries = match ranges.is_full() {
            true => self.table_rows,
            false => statistics::entries_in(self.table, index, &ranges, self.dive_limit)?,
        };
        Ok(BoundIndex::new(ranges, entries))
    }

    /// The jumps that the filters allow inside their ranges of an index, if the switches do.
    pub(crate) fn jumps(
        &self,
        context: &PlannerContext,
        index: IndexRef,
    ) -> Result<Option<Rc<IndexJumps>>> {
        let switch = &context.settings.switch;
        let bound = self.bound(index)?;
        let allowed = match bound.ranges.is_full() {
            true => {
                let hinted = self.source.hints.skip_scan.of(self.index_name(index));
                hinted.unwrap_or(switch.skip_scan)
            }
            false => switch.index_jumps,
        };
        if !allowed {
            return Ok(None);
        }
        let jumps = jumps::index_jumps(&self.terms(), layout(self.table, index), &bound.ranges);
        Ok(jumps.map(Rc::new))
    }

    /// All indexes of the table but those that are invisible, whatever hints say of single ones.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = IndexRef> {
        let secondary = self.table.definition.secondary.iter().enumerate();
        let secondary = secondary.filter(|(_, index)| self.source.uses(index));
        let secondary = secondary.map(|(position, _)| IndexRef::Secondary(position));
        std::iter::once(IndexRef::Clustered).chain(secondary)
    }

    pub(crate) fn index_name(&self, index: IndexRef) -> &str {
        match index {
            IndexRef::Clustered => PRIMARY,
            IndexRef::Secondary(_) => &index.definition(self.table).name,
        }
    }

    /// Estimated distinct values of a column in the rows that pass the conditions on that column: from the statistics,
    /// else from an index that starts with it, else a guess.
    ///
    /// Conditions on other columns are taken to leave values of all kinds.
    pub(crate) fn distinct(&self, column: usize) -> Result<f64> {
        let all = match self.selectivity.distinct(column) {
            Some(distinct) => distinct,
            None => self.indexed_distinct(column)?,
        };
        let mut values = all;
        let mut filters = Vec::new();
        for (position, filter) in self.filters.iter().enumerate() {
            if let Term::Column {
                column: known, set, ..
            } = &filter.term
                && *known == column
            {
                filters.push(position);
                if set.is_points() {
                    values = values.min(set.intervals.len() as f64);
                }
            }
        }
        if !filters.is_empty() {
            values = values.min(all * self.shares.of(&filters));
        }
        Ok(values.max(1.0))
    }

    fn indexed_distinct(&self, column: usize) -> Result<f64> {
        for index in self.indexes() {
            let first = layout(self.table, index).parts.first();
            if first.is_some_and(|part| part.column == Some(column) && part.prefix_length.is_none())
            {
                return Ok((self.table_rows / self.rows_per_key(index, 1)?).max(1.0));
            }
        }
        Ok((self.table_rows / GUESSED_ROWS_PER_VALUE).max(1.0))
    }

    /// Distinct values of several columns together, where an index starts with just these.
    pub(crate) fn distinct_together(&self, columns: &[usize]) -> Result<Option<f64>> {
        for index in self.indexes() {
            let parts = &layout(self.table, index).parts;
            let is_one = |part: &sheaf_table::KeyPart| {
                part.prefix_length.is_none()
                    && part.column.is_some_and(|column| columns.contains(&column))
            };
            if parts.len() >= columns.len() && parts[..columns.len()].iter().all(is_one) {
                let rows = self.rows_per_key(index, columns.len())?;
                return Ok(Some((self.table_rows / rows).max(1.0)));
            }
        }
        Ok(None)
    }

    /// Share of the table's rows whose value in a column is in `set`; `None` if the table was never analyzed.
    pub(crate) fn share_of_set(&self, column: usize, set: &ColumnSet) -> Option<f64> {
        self.selectivity.of_set(column, set)
    }

    /// Correlation of a column with the clustered order, -1 to 1; 0 if the table was never analyzed.
    pub(crate) fn correlation(&self, column: usize) -> f64 {
        let estimator = self.selectivity.estimator(column);
        estimator.map_or(0.0, |estimator| estimator.statistics().correlation)
    }

    /// Share of the table's rows that have NULL in a column.
    pub(crate) fn nulls(&self, column: usize) -> f64 {
        self.selectivity.nulls(column)
    }

    /// Average rows that share a key of the first `parts` parts of an index.
    pub(crate) fn rows_per_key(&self, index: IndexRef, parts: usize) -> Result<f64> {
        if let Some(known) = self.memo.rows_per_key.borrow().get(&(index, parts)) {
            return Ok(*known);
        }
        let rows = statistics::rows_per_key(self.table, index, parts)?;
        self.memo
            .rows_per_key
            .borrow_mut()
            .insert((index, parts), rows);
        Ok(rows)
    }

    /// Share of the leaves of a bound index's ranges that is in memory.
    pub(crate) fn resident_in(&self, index: IndexRef, bound: &BoundIndex) -> Result<f64> {
        if let Some(known) = bound.resident.get() {
            return Ok(known);
        }
        let ranges = &bound.ranges;
        let share = match ranges.is_full() {
            true => self.resident(index)?,
            false => statistics::resident_share(tree(self.table, index), &ranges.ranges)?,
        };
        bound.resident.set(Some(share));
        Ok(share)
    }

    /// Share of an index's leaves that is in memory.
    pub(crate) fn resident(&self, index: IndexRef) -> Result<f64> {
        if let Some(known) = self.memo.resident.borrow().get(&index) {
            return Ok(*known);
        }
        let share = tree(self.table, index)
            .resident_share(&KeyRange::all())
            .map_err(statistics::storage_error)?;
        self.memo.resident.borrow_mut().insert(index, share);
        Ok(share)
    }
}

/// Table columns that an expression reads, ascending.
pub(crate) fn columns_of(expr: &Expr, schema: &DFSchema) -> Result<Vec<usize>> {
    let mut columns = Vec::new();
    expr.apply(|expr| {
        if let Expr::Column(column) = expr {
            columns.push(schema.index_of_column(column)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    columns.sort_unstable();
    columns.dedup();
    Ok(columns)
}

/// The table column behind a column of the graph; one beyond those that are defined is the encoded clustered key.
pub(crate) fn table_column(
    relation: &Relation<'_>,
    table: &TableReference<'_>,
    column: &Column,
) -> Option<usize> {
    let position = relation.columns.iter().position(|known| known == column)?;
    table.projection.get(position).copied()
}

/// The column of which all branches of an OR say something, and of no other.
fn column_of_all(terms: &[Term]) -> Option<usize> {
    let mut columns = terms.iter().map(|term| match term {
        Term::Column { column, .. } => Some(*column),
        _ => None,
    });
    let first = columns.next()??;
    columns.all(|column| column == Some(first)).then_some(first)
}
