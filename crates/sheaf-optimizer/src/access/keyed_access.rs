//! Which indexes of a table a join can look keys up in.
//!
//! A part of a key comes from an equality of the join (`inner column = expression over the rows so far`) or from a
//! condition on the table that binds the part to one value (`inner.b = 5`). The parts have to be the first ones of the
//! index. What is not in the key is tested on the entry, on the row, or on the joined row.
//!
//! Behind these parts, or instead of them, inequalities may bound the next part (`inner.c > expression over the rows so
//! far`). Then a range is looked up for each row. The inequalities are tested on the joined row all the same, so a
//! range only has to hold every row that satisfies them.

use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, Result, ScalarValue};
use datafusion_expr::{Expr, ExprSchemable};
use sheaf_access::{Fetch, IndexRef, Prices, SortKeys, arrow_type, clustered_key_position};
use sheaf_exec::keyed_join::exec::{BoundSide, OUTER_BYTES_PER_KEY_BYTE};

use crate::PlannerContext;
use crate::access::path_cost::EntryOrder;
use crate::access::table_reference::TableReference;
use crate::access::table_reference::table_column;
use crate::cost::CostConstants;
use crate::cost::index_condition::conditions_us;
use crate::cost::keyed_join::{KeyOrder, KeyedLookups};
use crate::cost::work::Work;
use crate::estimate::column_set::column_value;
use crate::estimate::condition::{self, Term};
use crate::estimate::statistics::{layout, tree};
use crate::hints::IndexSwitches;
use crate::logical::equality::Equality;
use crate::logical::inequality::{Inequality, values_between};
use crate::logical::join_graph::Relation;
use crate::logical::{literal, semantics};

/// Where one part of a looked-up key comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KeySource {
    /// The equality at this position of the list.
    Join(usize),
    Constant(ScalarValue),
}

/// What inequalities leave of a column of a table, for a row of the others.
#[derive(Debug, Clone)]
pub(crate) struct RangeShare {
    pub column: usize,
    pub bounds: Vec<Inequality>,
    /// Share of the table's rows.
    pub share: f64,
}

impl RangeShare {
    /// How many values of the column satisfy all of the inequalities, at most, if that is known.
    pub(crate) fn most_values(&self) -> Option<f64> {
        let of_side = |side| self.bounds.iter().filter(move |bound| bound.side() == side);
        let pairs = of_side(BoundSide::Lower)
            .flat_map(|lower| of_side(BoundSide::Upper).map(move |upper| (lower, upper)));
        let values = pairs.filter_map(|(lower, upper)| values_between(lower, upper));
        values.reduce(f64::min)
    }
}

/// One way to look up the rows of a table for a join.
#[derive(Debug, Clone)]
pub(crate) struct LookupPath {
    pub index: IndexRef,
    /// One for each leading part of the index.
    pub key: Vec<KeySource>,
    /// Bounds of the part behind them.
    pub bounds: Vec<Inequality>,
    pub fetch: Fetch,
    pub batched: bool,
    pub sort_keys: bool,
    /// Bytes of keys that are looked up at a time (`join_buffer_size`).
    pub buffer_bytes: usize,
    /// Filters on columns of the key: its constants say them, or they hold for the rows so far as they do for these.
    pub implied: Vec<usize>,
    pub index_filters: Vec<usize>,
    pub row_filters: Vec<usize>,
    /// Index entries for one key.
    pub entries_per_key: f64,
}

/// What rows of a table are looked up by.
#[derive(Clone, Copy)]
pub(crate) struct LookedUp<'c> {
    pub equalities: &'c [Equality],
    pub ranges: &'c [RangeShare],
}

/// All lookups that these conditions allow into `table`.
pub(crate) fn lookup_paths(
    table: &TableReference<'_>,
    relation: &Relation<'_>,
    LookedUp { equalities, ranges }: LookedUp<'_>,
    schema: &DFSchema,
    context: &PlannerContext,
) -> Result<Vec<LookupPath>> {
    // For each table column the equality that gives its value.
    let mut sources: Vec<(usize, usize)> = Vec::new();
    for (position, equality) in equalities.iter().enumerate() {
        if let Some(column) = key_column(table, relation, equality, schema)?
            && !sources.iter().any(|(known, _)| *known == column)
        {
            sources.push((column, position));
        }
    }
    let mut paths = Vec::new();
    if sources.is_empty() && ranges.is_empty() {
        return Ok(paths);
    }
    let hints = &table.source.hints;
    for index in table.indexes() {
        if !hints.allows(table.index_name(index)) {
            continue;
        }
        paths.extend(lookup_path(table, index, &sources, None, context)?);
        for range in ranges {
            paths.extend(lookup_path(table, index, &sources, Some(range), context)?);
        }
    }
    if paths
        .iter()
        .any(|path| hints.forces(table.index_name(path.index)))
    {
        paths.retain(|path| hints.forces(table.index_name(path.index)));
    }
    Ok(paths)
}

fn lookup_path(
    table: &TableReference<'_>,
    index: IndexRef,
    sources: &[(usize, usize)],
    range: Option<&RangeShare>,
    context: &PlannerContext,
) -> Result<Option<LookupPath>> {
    let layout = layout(table.table, index);
    let mut key = Vec::new();
    let mut in_key: Vec<usize> = Vec::new();
    for part in &layout.parts {
        if range.is_some_and(|range| part.column == Some(range.column)) {
            break;
        }
        let Some(column) = part.column.filter(|_| part.prefix_length.is_none()) else {
            break;
        };
        if let Some((_, equality)) = sources.iter().find(|(known, _)| *known == column) {
            key.push(KeySource::Join(*equality));
        } else if let Some((filter, value)) = bound_constant(table, column) {
            key.push(KeySource::Constant(value));
            in_key.push(filter);
        } else {
            break;
        }
    }
    let is_bounded = match range {
        Some(range) => layout
            .parts
            .get(key.len())
            .is_some_and(|part| part.column == Some(range.column) && part.prefix_length.is_none()),
        None => key
            .iter()
            .any(|source| matches!(source, KeySource::Join(_))),
    };
    if !is_bounded {
        return Ok(None);
    }
    let settings = &context.settings;
    let switches = IndexSwitches::of(
        &table.source.hints,
        table.index_name(index),
        &settings.switch,
    );
    let clustered = index == IndexRef::Clustered;
    // Every entry leads to the clustered key.
    let clustered_key = clustered_key_position(&table.table.definition);
    let in_entry = |column: &usize| *column == clustered_key || layout.part_of(*column).is_some();
    let open: Vec<usize> = (0..table.filters.len())
        .filter(|filter| !in_key.contains(filter))
        .collect();
    let covering = clustered
        || table.projection.iter().all(in_entry)
            && open
                .iter()
                .all(|filter| table.filters[*filter].columns.iter().all(in_entry));
    let (index_filters, row_filters) = if covering || !switches.index_condition {
        (Vec::new(), open)
    } else {
        open.into_iter()
            .partition(|filter| table.filters[*filter].columns.iter().all(in_entry))
    };
    let fetch = if covering {
        Fetch::Covering
    } else if switches.mrr && switches.batched_key_access {
        let sort = if switches.mrr_cost_based {
            SortKeys::Auto
        } else {
            SortKeys::Always
        };
        Fetch::MultiRange {
            buffer_bytes: settings.mrr_buffer_bytes,
            sort,
        }
    } else {
        Fetch::Lookup
    };
    let key_columns: Vec<Option<usize>> = layout.parts[..key.len()]
        .iter()
        .map(|part| part.column)
        .collect();
    let is_implied = |filter: &usize| match &table.filters[*filter].term {
        Term::Column { column, .. } => key_columns.contains(&Some(*column)),
        _ => false,
    };
    let implied: Vec<usize> = (0..table.filters.len()).filter(is_implied).collect();
    let entries_per_key = match (range, key.is_empty()) {
        (None, _) => table.rows_per_key(index, key.len())?,
        (Some(range), true) => table.table_rows * range.share,
        (Some(range), false) => table.rows_per_key(index, key.len())? * range.share,
    };
    Ok(Some(LookupPath {
        index,
        key,
        bounds: range.map_or_else(Vec::new, |range| range.bounds.clone()),
        fetch,
        batched: switches.batched_key_access,
        sort_keys: switches.mrr_sort_keys,
        buffer_bytes: settings.join_buffer_bytes,
        implied,
        index_filters,
        row_filters,
        entries_per_key,
    }))
}

/// The rows whose keys are looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OuterRows {
    pub rows: f64,
    /// Bytes of a row, as a round of the join holds it.
    pub row_bytes: f64,
    /// Workers among which they are divided.
    pub workers: f64,
    pub order: KeyOrder,
}

impl OuterRows {
    /// So many rows of one worker, in no order and of no width to speak of.
    pub(crate) fn new(rows: f64) -> OuterRows {
        OuterRows {
            rows,
            row_bytes: 0.0,
            workers: 1.0,
            order: KeyOrder::NONE,
        }
    }

    /// Keys that are sorted together: those for which a round has memory, of one worker.
    fn keys_per_turn(&self, buffer_bytes: f64, key_bytes: f64) -> f64 {
        let outer_bytes = buffer_bytes * OUTER_BYTES_PER_KEY_BYTE as f64;
        (buffer_bytes / key_bytes.max(1.0))
            .min(outer_bytes / self.row_bytes.max(1.0))
            .min(self.rows / self.workers)
            .max(1.0)
    }
}

/// What looking keys up is estimated to take, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookupWork {
    /// Finding the keys in the index, besides reading its pages.
    keys_us: f64,
    /// Rows fetched for the entries of a secondary index, and the same for those.
    fetched: f64,
    fetching_us: f64,
    /// Entries, conditions, and reading pages.
    rest: Work,
}

impl LookupWork {
    fn total(self) -> Work {
        Work::of_workers(self.keys_us + self.fetching_us) + self.rest
    }
}

impl LookupPath {
    /// What looking up the keys of `outer` takes.
    pub(crate) fn work(
        &self,
        table: &TableReference<'_>,
        outer: OuterRows,
        constants: &CostConstants,
    ) -> Result<Work> {
        Ok(self.pieces(table, outer, constants)?.total())
    }

    fn pieces(
        &self,
        table: &TableReference<'_>,
        outer: OuterRows,
        constants: &CostConstants,
    ) -> Result<LookupWork> {
        let index_tree = tree(table.table, self.index);
        let statistics = index_tree.statistics();
        let key_bytes = layout(table.table, self.index).mysql_key_len(self.parts());
        let keys_per_turn = outer.keys_per_turn(self.buffer_bytes as f64, f64::from(key_bytes));
        let outer_rows = outer.rows;
        let keys = KeyedLookups {
            keys: outer_rows,
            order: outer.order,
            workers: outer.workers,
            entries_per_key: self.entries_per_key,
            leaves: statistics.leaf_pages as f64,
            entries: statistics.entries as f64,
            resident: table.resident(self.index)?,
            pool_pages: index_tree.pool_pages() as f64,
            sorted_keys_per_turn: self.sort_keys.then_some(keys_per_turn),
            batched: self.batched,
            reads_points: self.index == IndexRef::Clustered && self.is_unique(table),
        };
        let entries = outer_rows * self.entries_per_key;
        let keys_us = keys.descents_us(constants);
        let mut work = LookupWork {
            keys_us,
            fetched: 0.0,
            fetching_us: 0.0,
            rest: keys.work(constants),
        };
        work.rest.worker_us +=
            conditions_us(constants, entries, table.tests(&self.index_filters)) - keys_us;
        let mut rows = entries;
        if !matches!(self.fetch, Fetch::Covering) {
            rows *= table.shares.kept(&self.index_filters, &self.implied);
            let lookups = table.clustered_lookups(rows, self.entry_order(table, outer_rows))?;
            work.fetched = rows;
            let fetching = match self.fetch {
                Fetch::MultiRange { buffer_bytes, sort } => {
                    let read = table.multi_range_read(lookups, sort, buffer_bytes);
                    work.fetching_us = read.processor_us(constants);
                    read.work(constants)
                }
                _ => {
                    work.fetching_us = lookups.processor_us(constants);
                    Work::of_workers(lookups.cost_us(constants))
                }
            };
            work.rest += fetching;
            work.rest.worker_us -= work.fetching_us;
        }
        work.rest.worker_us += conditions_us(constants, rows, table.tests(&self.row_filters));
        if !self.bounds.is_empty() {
            // What is in a range is joined first, and then all conditions say whether it stays.
            let tested = [self.index_filters.as_slice(), &self.row_filters].concat();
            let candidates = entries * table.shares.kept(&tested, &self.implied);
            work.rest.worker_us += candidates * constants.joined_row_us
                + conditions_us(constants, candidates, self.bounds.len());
        }
        Ok(work)
    }

    /// What the work costs piece by piece when so many keys are looked up, in no order: [`Self::work`] read backwards.
    pub(crate) fn prices(
        &self,
        table: &TableReference<'_>,
        outer_rows: f64,
        constants: &CostConstants,
    ) -> Result<Prices> {
        let outer_rows = outer_rows.max(1.0);
        let work = self.pieces(table, OuterRows::new(outer_rows), constants)?;
        let lookup_us = match work.fetched > 0.0 {
            true => work.fetching_us / work.fetched,
            false => 0.0,
        };
        Ok(Prices {
            key_us: work.keys_us / outer_rows,
            entry_us: constants.entry_us,
            row_us: conditions_us(constants, 1.0, table.tests(&self.row_filters))
                + match self.index {
                    // Its rows are its entries.
                    IndexRef::Clustered => constants.entry_us,
                    IndexRef::Secondary(_) => 0.0,
                },
            index_condition_us: conditions_us(constants, 1.0, table.tests(&self.index_filters)),
            jump_us: 0.0,
            lookup_us,
            random_read_us: constants.random_read_us,
            sequential_read_us: constants.prefetched_read_us,
        })
    }

    /// In which order the entries of the keys lead to rows: in primary key order for one key that binds all parts, and
    /// in index order if the keys are sorted.
    fn entry_order(&self, table: &TableReference<'_>, outer_rows: f64) -> EntryOrder {
        let declared = self.index.definition(table.table).parts.len();
        EntryOrder {
            correlation: match self.sort_keys {
                true => table.part_correlation(self.index, 0),
                false => 0.0,
            },
            places: outer_rows,
            sorted_runs: (self.key.len() >= declared).then_some(outer_rows),
        }
    }

    /// Whether the key has values of the rows so far, besides bounds.
    pub(crate) fn looks_up_values(&self) -> bool {
        let mut key = self.key.iter();
        key.any(|source| matches!(source, KeySource::Join(_)))
    }

    /// Leading parts of the index that keys and bounds are of.
    pub(crate) fn parts(&self) -> usize {
        self.key.len() + usize::from(!self.bounds.is_empty())
    }

    /// What EXPLAIN says of how rows are found.
    pub(crate) fn access_type(&self, table: &TableReference<'_>) -> &'static str {
        match (self.bounds.is_empty(), self.is_unique(table)) {
            (false, _) => "range",
            (true, true) => "eq_ref",
            (true, false) => "ref",
        }
    }

    /// At most one entry for each key.
    pub(crate) fn is_unique(&self, table: &TableReference<'_>) -> bool {
        let definition = self.index.definition(table.table);
        let parts = definition.parts.len();
        self.bounds.is_empty()
            && (definition.unique || definition.primary)
            && parts > 0
            && self.key.len() >= parts
    }
}

/// The table column whose value an equality gives, if its key can be made from the outer side.
fn key_column(
    table: &TableReference<'_>,
    relation: &Relation<'_>,
    equality: &Equality,
    schema: &DFSchema,
) -> Result<Option<usize>> {
    let column = indexed_column(table, relation, (&equality.inner, &equality.outer), schema)?;
    // Keys that are NULL are not looked up. They find nothing in a column that has no NULL.
    Ok(column.filter(|column| {
        !equality.null_equals_null || !table.table.definition.columns[*column].nullable
    }))
}

/// The table column that an inequality bounds, if the bound can be made from the outer side.
pub(crate) fn bounded_column(
    table: &TableReference<'_>,
    relation: &Relation<'_>,
    bound: &Inequality,
    schema: &DFSchema,
) -> Result<Option<usize>> {
    indexed_column(table, relation, (&bound.inner, &bound.outer), schema)
}

/// The table column that is compared with a value of the rows so far, if an index orders it as it is compared, and can
/// hold the value.
fn indexed_column(
    table: &TableReference<'_>,
    relation: &Relation<'_>,
    (inner, outer): (&Expr, &Expr),
    schema: &DFSchema,
) -> Result<Option<usize>> {
    let outer_collation = semantics::collation_of_key(outer);
    let outer = outer_value(outer);
    let Some(inner) = Side::of(inner) else {
        return Ok(None);
    };
    let Some(column) = table_column(relation, table, inner.column) else {
        return Ok(None);
    };
    // A statement that changes rows reads a column more than the table has.
    let Some(definition) = table.table.definition.columns.get(column) else {
        return Ok(None);
    };
    let ty = &definition.ty;
    // Both sides must be compared as the index orders the column.
    if ty.has_labels() || inner.collation != ty.collation() || outer_collation != ty.collation() {
        return Ok(None);
    }
    let column_type = arrow_type(ty);
    let outer_type = outer.get_type(schema)?;
    let exact = if inner.cast {
        both_integers(&outer_type, &column_type)
    } else {
        converts(&outer_type, &column_type)
    };
    Ok(exact.then_some(column))
}

fn both_integers(a: &DataType, b: &DataType) -> bool {
    a.is_integer() && b.is_integer()
}

/// Whether a value of type `from` becomes the equal value of type `to`, or NULL if there is none.
fn converts(from: &DataType, to: &DataType) -> bool {
    both_integers(from, to) || condition::keeps_order(from, to)
}

/// The inner side of an equality: a column, perhaps under a cast or a collation key.
struct Side<'e> {
    column: &'e Column,
    collation: Option<sheaf_types::Collation>,
    cast: bool,
}

impl Side<'_> {
    fn of(expr: &Expr) -> Option<Side<'_>> {
        let collation = semantics::collation_of_key(expr);
        match semantics::key_argument(expr).unwrap_or(expr) {
            Expr::Column(column) => Some(Side {
                column,
                collation,
                cast: false,
            }),
            Expr::Cast(cast) => match cast.expr.as_ref() {
                Expr::Column(column) => Some(Side {
                    column,
                    collation,
                    cast: true,
                }),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The outer value itself: the string under a collation key.
pub(crate) fn outer_value(expr: &Expr) -> &Expr {
    semantics::key_argument(expr).unwrap_or(expr)
}

/// The one value that a filter binds a column to, and that filter.
fn bound_constant(table: &TableReference<'_>, column: usize) -> Option<(usize, ScalarValue)> {
    table
        .filters
        .iter()
        .enumerate()
        .find_map(|(position, filter)| match &filter.term {
            Term::Column {
                column: known,
                set,
                exact: true,
            } if *known == column => match set.points()?.as_slice() {
                // The set knows strings by their sort keys.
                [value] => {
                    let ty = &table.table.definition.columns[column].ty;
                    let value = column_value(value, ty)?;
                    Some((position, literal::scalar(&value, ty)?))
                }
                _ => None,
            },
            _ => None,
        })
}
