//! How a table is read: every way that its indexes offer, what each would cost, and the cheapest.
//!
//! For each index that the hints allow: the key ranges that the conditions leave of it ([`crate::ranges`]), an index
//! dive for how many entries that is, whether the entries hold all columns, which of the remaining conditions can be
//! tested on the entry before the row is fetched, and whether its order is the one the query wants. A wanted order
//! with a LIMIT makes an ordered path cheap in proportion: rows that match are taken to be spread evenly along the
//! order.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Column, DFSchema, Result, internal_datafusion_err};
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{Expr, SortExpr, TableScan};
use sheaf_access::{
    ColumnsCondition, Condition, EncodedCondition, Fetch, IndexRef, ScanSpec, SortKeys,
    clustered_key_position, split_ranges,
};
use sheaf_exec::SheafTableSource;
use sheaf_exec::batch_condition::ExprCondition;
use sheaf_exec::scan_exec::{ScanExec, ScanOrder, access_error};
use sheaf_storage::{Direction, KeyRange};
use sheaf_table::{KeyLayout, PRIMARY, Table};

use crate::condition::{self, Term};
use crate::explain::{ExplainRow, ExtraNote};
use crate::hints::IndexSwitches;
use crate::physical_planner::{Block, Planned, Planner, Wanted};
use crate::ranges::{self, IndexRanges};
use crate::statistics::{self as cost, layout, tree};
use crate::table_detail::TableDetail;
use crate::trace::Lost;
use crate::trace::access::Alternatives;
use crate::{PlannerContext, semantics};

/// Entries below which a scan is not split: starting another partition costs about as much as reading them.
const MIN_ENTRIES_PER_PARTITION: f64 = 25_000.0;

/// Row lookups from which on sorting their keys can pay.
const MIN_MRR_LOOKUPS: f64 = 64.0;

/// Rows per distinct value of a column that no index starts with.
const GUESSED_ROWS_PER_VALUE: f64 = 10.0;

/// One condition on a table reference, a conjunct of its filters.
pub(crate) struct TableFilter {
    pub expr: Expr,
    pub term: Term,
    /// Table columns that it reads.
    pub columns: Vec<usize>,
    /// Estimated share of rows that it accepts.
    pub selectivity: f64,
}

/// One reference to a table, with its conditions.
pub(crate) struct TableReference<'a> {
    pub source: &'a SheafTableSource,
    pub table: &'a Arc<Table>,
    /// Table columns that the plan above wants, in order.
    pub projection: Vec<usize>,
    /// Their schema.
    pub schema: SchemaRef,
    pub filters: Vec<TableFilter>,
    /// All columns of the table under the qualifier that the filters use.
    qualified: DFSchema,
    fetch: Option<usize>,
    /// Rows of the table.
    pub table_rows: f64,
    /// Rows that pass all conditions.
    pub rows: f64,
    memo: Memo,
}

/// What a plan has asked about a table, so that comparing join orders asks once.
#[derive(Default)]
struct Memo {
    /// By index and number of leading parts.
    rows_per_key: RefCell<HashMap<(IndexRef, usize), f64>>,
    /// By index.
    resident: RefCell<HashMap<IndexRef, f64>>,
    /// Cost of reading the table in any order, in microseconds.
    scan_us: Cell<Option<f64>>,
}

/// What a path that ignores FORCE INDEX costs on top, in microseconds: more than any join order that obeys it. MySQL's
/// manual says that a table scan is then "assumed to be very expensive".
const FORCED_INDEX_SCAN_US: f64 = 1e12;

/// One way to read the table.
#[derive(Debug, Clone)]
pub(crate) struct AccessPath {
    pub index: IndexRef,
    pub ranges: IndexRanges,
    pub direction: Direction,
    pub fetch: Fetch,
    /// Filters that are tested on the index entry before the lookup.
    pub index_filters: Vec<usize>,
    /// Filters that are tested on the row, or on the entry of a covering or clustered scan.
    pub row_filters: Vec<usize>,
    /// Entries in the ranges.
    pub entries: f64,
    /// The rows come in the wanted order.
    pub ordered: bool,
    /// Estimated cost including a sort if one is needed, in microseconds.
    pub cost_us: f64,
}

impl<'a> TableReference<'a> {
    pub(crate) fn new(
        scan: &'a TableScan,
        source: &'a SheafTableSource,
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
            let term = condition::analyze(expr, definition);
            filters.push(TableFilter {
                expr: expr.clone(),
                term,
                columns,
                selectivity: 1.0,
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
            table_rows: (table.row_count_estimate() as f64).max(1.0),
            rows: 1.0,
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

    /// The selectivity of each filter, from a dive into an index that starts with its column where there is one.
    fn estimate_filters(&mut self) -> Result<()> {
        let mut rows = self.table_rows;
        for position in 0..self.filters.len() {
            let filter = &self.filters[position];
            let mut selectivity = cost::default_selectivity(&filter.expr);
            for index in self.indexes() {
                let layout = layout(self.table, index);
                let starts_with_column = layout
                    .parts
                    .first()
                    .and_then(|part| part.column)
                    .is_some_and(|column| filter.columns == [column]);
                if !starts_with_column {
                    continue;
                }
                let terms = std::slice::from_ref(&filter.term);
                let found = ranges::index_ranges(terms, layout);
                if !found.is_full() {
                    let entries = cost::entries_in(tree(self.table, index), &found.ranges)?;
                    selectivity = (entries / self.table_rows).clamp(0.0, 1.0);
                    break;
                }
            }
            self.filters[position].selectivity = selectivity;
            rows *= selectivity;
        }
        // What several conditions leave together is known where one index binds them together.
        let terms: Vec<Term> = self
            .filters
            .iter()
            .map(|filter| filter.term.clone())
            .collect();
        for index in self.indexes() {
            let found = ranges::index_ranges(&terms, layout(self.table, index));
            if !found.is_full() && found.parts > 1 {
                let entries = cost::entries_in(tree(self.table, index), &found.ranges)?;
                rows = rows.min(entries);
            }
        }
        self.rows = rows.max(if self.filters.is_empty() { 1.0 } else { 0.1 });
        Ok(())
    }

    /// All indexes of the table, whatever the hints say.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = IndexRef> + use<> {
        let secondary = self.table.definition.secondary.len();
        std::iter::once(IndexRef::Clustered).chain((0..secondary).map(IndexRef::Secondary))
    }

    pub(crate) fn index_name(&self, index: IndexRef) -> &str {
        match index {
            IndexRef::Clustered => PRIMARY,
            IndexRef::Secondary(_) => &index.definition(self.table).name,
        }
    }

    /// Estimated distinct values of a column: what an index that starts with it knows, or a guess.
    pub(crate) fn distinct(&self, column: usize) -> Result<f64> {
        for index in self.indexes() {
            let first = layout(self.table, index).parts.first();
            if first.is_some_and(|part| part.column == Some(column) && part.prefix_length.is_none())
            {
                return Ok((self.table_rows / self.rows_per_key(index, 1)?).max(1.0));
            }
        }
        Ok((self.table_rows / GUESSED_ROWS_PER_VALUE).max(1.0))
    }

    /// Average rows that share a key of the first `parts` parts of an index.
    pub(crate) fn rows_per_key(&self, index: IndexRef, parts: usize) -> Result<f64> {
        if let Some(known) = self.memo.rows_per_key.borrow().get(&(index, parts)) {
            return Ok(*known);
        }
        let rows = cost::rows_per_key(self.table, index, parts)?;
        self.memo
            .rows_per_key
            .borrow_mut()
            .insert((index, parts), rows);
        Ok(rows)
    }

    /// Share of an index's leaves that is in memory.
    pub(crate) fn resident(&self, index: IndexRef) -> Result<f64> {
        if let Some(known) = self.memo.resident.borrow().get(&index) {
            return Ok(*known);
        }
        let share = tree(self.table, index)
            .resident_share(&KeyRange::all())
            .map_err(cost::storage_error)?;
        self.memo.resident.borrow_mut().insert(index, share);
        Ok(share)
    }

    /// The cost of reading the table in any order, in microseconds.
    pub(crate) fn scan_us(&self, context: &PlannerContext) -> Result<f64> {
        if let Some(known) = self.memo.scan_us.get() {
            return Ok(known);
        }
        let cost_us = self.best_path(context, &Wanted::default())?.cost_us;
        self.memo.scan_us.set(Some(cost_us));
        Ok(cost_us)
    }

    /// The cheapest way to read the table for a parent that wants `wanted`.
    pub(crate) fn best_path(
        &self,
        context: &PlannerContext,
        wanted: &Wanted,
    ) -> Result<AccessPath> {
        let mut best: Option<AccessPath> = None;
        let mut forced: Option<AccessPath> = None;
        let mut tried = Alternatives::new(&context.trace);
        for index in self.indexes() {
            let name = self.index_name(index);
            let hints = &self.source.hints;
            let (by_key, by_order) = (hints.allows(name), hints.allows_order(name));
            // The clustered tree is also the table: it can be scanned whatever the hints say, but then not by key.
            if !by_key && !by_order && index != IndexRef::Clustered {
                tried.without(index, Lost::Hint);
                continue;
            }
            let allowed = (by_key, by_order);
            let Some(path) = self.path(context, index, allowed, wanted, &mut tried)? else {
                tried.without(index, Lost::NotApplicable("no condition, order or column"));
                continue;
            };
            let useful =
                path.ranges.parts > 0 || path.ordered || matches!(path.fetch, Fetch::Covering);
            let is_forced =
                hints.forces(name) && useful || hints.order_by.forces(name) && path.ordered;
            let slot = if is_forced { &mut forced } else { &mut best };
            if slot
                .as_ref()
                .is_none_or(|known| path.cost_us < known.cost_us)
            {
                *slot = Some(path);
            }
        }
        if forced.is_none()
            && !self.source.hints.rows.force_index.is_empty()
            && let Some(scan) = &mut best
        {
            scan.cost_us += FORCED_INDEX_SCAN_US;
        }
        let chosen = forced.or(best).ok_or_else(|| {
            internal_datafusion_err!("table {} has no access path", self.source.alias)
        })?;
        tried.decide(self, wanted, &chosen);
        Ok(chosen)
    }

    /// The best use of one index; `None` if it is of no use at all.
    fn path(
        &self,
        context: &PlannerContext,
        index: IndexRef,
        (by_key, by_order): (bool, bool),
        wanted: &Wanted,
        tried: &mut Alternatives<'_>,
    ) -> Result<Option<AccessPath>> {
        let layout = layout(self.table, index);
        let switches = self.switches(context, index);
        let terms: Vec<Term> = if by_key {
            self.terms()
        } else {
            vec![Term::Opaque; self.filters.len()]
        };
        let ranges = ranges::index_ranges(&terms, layout);
        let open: Vec<usize> = (0..self.filters.len())
            .filter(|filter| !ranges.consumed.contains(filter))
            .collect();
        let clustered = index == IndexRef::Clustered;
        // Every entry leads to the clustered key.
        let clustered_key = clustered_key_position(&self.table.definition);
        let in_entry =
            |column: &usize| *column == clustered_key || layout.part_of(*column).is_some();
        let covering = clustered
            || self.projection.iter().all(in_entry)
                && open
                    .iter()
                    .all(|filter| self.filters[*filter].columns.iter().all(in_entry));
        let direction = order_direction(&wanted.order, layout, &ranges, self).filter(|_| {
            let for_limit = ranges.is_full() && wanted.limit.is_some();
            by_order && (context.settings.switch.prefer_ordering_index || !for_limit)
        });
        let is_useful = covering && by_key || !ranges.is_full() || direction.is_some();
        if !clustered && !is_useful {
            return Ok(None);
        }
        let (index_filters, row_filters) = if covering || !switches.index_condition {
            (Vec::new(), open)
        } else {
            open.into_iter()
                .partition(|filter| self.filters[*filter].columns.iter().all(in_entry))
        };
        let entries = if ranges.is_full() {
            self.table_rows
        } else {
            cost::entries_in(tree(self.table, index), &ranges.ranges)?
        };
        let mut path = AccessPath {
            index,
            ranges,
            direction: direction.unwrap_or(Direction::Forward),
            fetch: Fetch::Covering,
            index_filters,
            row_filters,
            entries,
            ordered: direction.is_some() && !wanted.order.is_empty(),
            cost_us: 0.0,
        };
        if self.is_one_row(&path) {
            // Nothing beats one row by its key: at cost 0, and in any order.
            path.fetch = if covering {
                Fetch::Covering
            } else {
                Fetch::Lookup
            };
            path.ordered = !wanted.order.is_empty();
            tried.consider(&path);
            return Ok(Some(path));
        }
        if covering {
            path.cost_us = self.cost(&path, wanted)?;
            tried.consider(&path);
            return Ok(Some(path));
        }
        path.fetch = Fetch::Lookup;
        path.cost_us = self.cost(&path, wanted)?;
        tried.consider(&path);
        if let Some(fetch) = self.multi_range(context, &path, wanted) {
            // The order of the index is lost.
            let sorted = AccessPath {
                fetch,
                ordered: false,
                direction: Direction::Forward,
                ..path.clone()
            };
            let cost_us = self.cost(&sorted, wanted)?;
            let sorted = AccessPath { cost_us, ..sorted };
            tried.consider(&sorted);
            if cost_us < path.cost_us || !switches.mrr_cost_based && !path.ordered {
                return Ok(Some(sorted));
            }
        } else {
            tried.without_multi_range(index, &context.settings);
        }
        Ok(Some(path))
    }

    /// One value for every part of a unique key: a const table, as MySQL calls it. A key with a NULL may occur often.
    fn is_one_row(&self, path: &AccessPath) -> bool {
        let definition = path.index.definition(self.table);
        let parts = definition.parts.len();
        let layout = layout(self.table, path.index);
        (definition.unique || definition.primary)
            && parts > 0
            && path.ranges.constant_parts >= parts
            && path.ranges.ranges.len() == 1
            && layout.parts[..parts]
                .iter()
                .all(|part| part.prefix_length.is_none())
            && path.entries <= 1.0
    }

    fn switches(&self, context: &PlannerContext, index: IndexRef) -> IndexSwitches {
        let name = self.index_name(index);
        IndexSwitches::of(&self.source.hints, name, &context.settings.switch)
    }

    /// The multi-range read for a path with lookups, if the switches allow it and it can pay.
    fn multi_range(
        &self,
        context: &PlannerContext,
        path: &AccessPath,
        wanted: &Wanted,
    ) -> Option<Fetch> {
        let switches = self.switches(context, path.index);
        if !switches.mrr {
            return None;
        }
        let buffer_bytes = context.settings.mrr_buffer_bytes;
        if !switches.mrr_cost_based {
            return Some(Fetch::MultiRange {
                buffer_bytes,
                sort: SortKeys::Always,
            });
        }
        let limit = wanted
            .limit
            .or(self.fetch)
            .map_or(f64::MAX, |limit| limit as f64);
        let lookups = self.lookups(path).min(limit);
        (lookups >= MIN_MRR_LOOKUPS).then_some(Fetch::MultiRange {
            buffer_bytes,
            sort: SortKeys::Auto,
        })
    }

    /// Rows that a path fetches from the clustered tree.
    pub(crate) fn lookups(&self, path: &AccessPath) -> f64 {
        if matches!(path.fetch, Fetch::Covering) {
            return 0.0;
        }
        path.entries
            * path
                .index_filters
                .iter()
                .map(|filter| self.filters[*filter].selectivity)
                .product::<f64>()
    }

    /// The cost of a path for a parent that wants `wanted`, in microseconds.
    /// Pages of the clustered index that a multi-range read with this buffer reads for `lookups` rows.
    pub(crate) fn fetched_pages(&self, lookups: f64, buffer_bytes: usize) -> f64 {
        let clustered = &self.table.clustered;
        let layout = &self.table.clustered_layout;
        let key_bytes = layout.mysql_key_len(layout.parts.len()).max(1);
        let keys = buffer_bytes as f64 / key_bytes as f64;
        let leaves = clustered.statistics().leaf_pages as f64;
        cost::pages_in_turns(lookups, leaves, keys, clustered.pool_pages() as f64)
    }

    fn cost(&self, path: &AccessPath, wanted: &Wanted) -> Result<f64> {
        let tree = tree(self.table, path.index);
        let statistics = tree.statistics();
        let share = (path.entries / statistics.entries.max(1) as f64).min(1.0);
        let pages = (statistics.leaf_pages as f64 * share).max(1.0);
        let resident = match path.ranges.ranges.as_slice() {
            // A part of the index: what is in memory of this part.
            [range] if !path.ranges.is_full() => {
                tree.resident_share(range).map_err(cost::storage_error)?
            }
            _ => self.resident(path.index)?,
        };
        let ranges = path.ranges.ranges.len() as f64;
        let conditions = (path.index_filters.len() + path.row_filters.len()) as f64;
        let mut total = ranges * cost::LOOKUP_US
            + pages * (1.0 - resident) * cost::SEQUENTIAL_PAGE_US
            + path.entries * (cost::ENTRY_US + conditions * cost::CONDITION_US);
        let lookups = self.lookups(path);
        if lookups > 0.0 {
            let missing = 1.0 - self.resident(IndexRef::Clustered)?;
            total += match path.fetch {
                Fetch::MultiRange { sort, buffer_bytes } => {
                    let sorts = sort == SortKeys::Always || missing > 0.02;
                    let lookup = if sorts {
                        cost::SORTED_LOOKUP_US
                    } else {
                        cost::LOOKUP_US
                    };
                    let sort_us = if sorts {
                        lookups.log2().max(1.0) * cost::COMPARE_US
                    } else {
                        0.0
                    };
                    // A little for collecting the keys, so that it is not taken for nothing.
                    lookups * (lookup + sort_us + cost::ENTRY_US * 0.2)
                        + self.fetched_pages(lookups, buffer_bytes)
                            * missing
                            * cost::PREFETCHED_PAGE_US
                }
                _ => lookups * (cost::LOOKUP_US + missing * cost::RANDOM_PAGE_US),
            };
        }
        let columns = self.projection.len() as f64;
        total += self.rows.min(path.entries) * columns * cost::COLUMN_US;

        let limit = wanted.limit.or(self.fetch);
        if path.ordered || wanted.order.is_empty() {
            // Stops when enough rows have come.
            if let Some(limit) = limit {
                total *= (limit as f64 / self.rows.max(1.0)).min(1.0);
            }
        } else {
            let kept = limit
                .map_or(self.rows, |limit| self.rows.min(limit as f64))
                .max(2.0);
            total += self.rows * kept.log2() * cost::COMPARE_US;
        }
        Ok(total)
    }

    /// A condition of the access method from some of the filters: what can be, on encoded bytes.
    pub(crate) fn condition(
        &self,
        planner: &Planner<'_>,
        block: &Block,
        filters: &[usize],
    ) -> Result<Option<Condition>> {
        let mut encoded = Vec::new();
        let mut rest = Vec::new();
        for filter in filters.iter().map(|filter| &self.filters[*filter]) {
            match filter.term.encoded(&self.table.definition) {
                Some(condition) => encoded.push(condition),
                None => rest.push(filter.expr.clone()),
            }
        }
        let encoded = match encoded.len() {
            0 => None,
            1 => encoded.pop(),
            _ => Some(EncodedCondition::And(encoded)),
        };
        let rest = match datafusion_expr::utils::conjunction(rest) {
            None => None,
            Some(expr) => {
                let columns = columns_of(&expr, &self.qualified)?;
                let fields = columns.iter().map(|column| {
                    let (qualifier, field) = self.qualified.qualified_field(*column);
                    (qualifier.cloned(), Arc::clone(field))
                });
                let schema = DFSchema::new_with_metadata(fields.collect(), Default::default())?;
                let condition = Arc::new(ExprCondition::new(planner.expr(&expr, &schema, block)?));
                Some(ColumnsCondition { columns, condition })
            }
        };
        Ok((encoded.is_some() || rest.is_some()).then_some(Condition { encoded, rest }))
    }

    /// Chooses a path and builds its operator.
    pub(crate) fn plan_scan(
        &self,
        planner: &Planner<'_>,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let context = planner.context;
        let path = self.best_path(context, wanted)?;
        let spec = Arc::new(ScanSpec {
            table: Arc::clone(self.table),
            view: context.view.clone(),
            index: path.index,
            ranges: path.ranges.ranges.clone(),
            key_filter: None,
            first_of: None,
            merge: None,
            direction: path.direction,
            index_condition: self.condition(planner, block, &path.index_filters)?,
            row_condition: self.condition(planner, block, &path.row_filters)?,
            projection: self.projection.clone(),
            fetch: path.fetch,
            limit: self.fetch,
            batch_rows: context.settings.batch_rows,
            read_ahead_pages: context.settings.read_ahead_pages,
        });
        let order = self.scan_order(planner, block, &path)?;
        let shares = self.shares(context, &path, wanted, &spec)?;
        let plan = ScanExec::new(
            Arc::clone(&spec),
            shares,
            Arc::clone(&self.schema),
            order,
            self.source.alias.clone(),
            self.source.reference,
            Arc::clone(&context.counters),
            context.cancel.clone(),
        );
        let rows = self
            .fetch
            .map_or(self.rows, |fetch| self.rows.min(fetch as f64));
        Ok(Planned {
            plan: Arc::new(plan),
            rows,
            cost_us: path.cost_us,
            explain: vec![self.explain_scan(block, &path, wanted)],
        })
    }

    /// The ranges of each partition. One partition where an order is wanted (the rows stop early or are merged
    /// anyway), where few entries are read, and for a multi-range read, whose one buffer is filled by all ranges.
    fn shares(
        &self,
        context: &PlannerContext,
        path: &AccessPath,
        wanted: &Wanted,
        spec: &ScanSpec,
    ) -> Result<Vec<Vec<KeyRange>>> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let worth = (path.entries / MIN_ENTRIES_PER_PARTITION) as usize;
        let parts = context.settings.target_partitions.min(worth);
        let alone = path.ordered || wanted.limit.is_some() || spec.limit.is_some();
        if parts <= 1 || alone || matches!(path.fetch, Fetch::MultiRange { .. }) {
            return Ok(vec![spec.ranges.clone()]);
        }
        split_ranges(self.table, path.index, &spec.ranges, parts).map_err(access_error)
    }

    /// The order of a path's rows in terms of the output columns: the parts of the index that follow each other
    /// without a gap in the output.
    fn scan_order(
        &self,
        planner: &Planner<'_>,
        block: &Block,
        path: &AccessPath,
    ) -> Result<ScanOrder> {
        let mut order = ScanOrder::default();
        if matches!(path.fetch, Fetch::MultiRange { .. }) {
            return Ok(order);
        }
        let output =
            DFSchema::from_unqualified_fields(self.schema.fields().clone(), Default::default())?;
        for (position, part) in layout(self.table, path.index).parts.iter().enumerate() {
            let Some(column) = part.column else {
                break;
            };
            let constant = position < path.ranges.constant_parts;
            let delivered = self.projection.iter().position(|known| *known == column);
            let key = delivered
                .filter(|_| part.prefix_length.is_none())
                .and_then(|delivered| {
                    let expr =
                        Expr::Column(Column::new_unqualified(self.schema.field(delivered).name()));
                    semantics::order_key(&self.table.definition.columns[column], expr)
                });
            match key {
                Some(key) => {
                    let key = planner.expr(&key, &output, block)?;
                    let list = if constant {
                        &mut order.constant
                    } else {
                        &mut order.sorted
                    };
                    list.push(key);
                }
                None if constant => {}
                None => break,
            }
        }
        Ok(order)
    }

    /// The conditions as key ranges see them.
    pub(crate) fn terms(&self) -> Vec<Term> {
        let filters = self.filters.iter();
        filters.map(|filter| filter.term.clone()).collect()
    }

    /// Indexes that the conditions or `lookup_columns` could use.
    pub(crate) fn possible_keys(&self, lookup_columns: &[usize]) -> Option<String> {
        let terms = self.terms();
        let names: Vec<&str> = self
            .indexes()
            .filter(|index| self.source.hints.allows(self.index_name(*index)))
            .filter(|index| {
                let layout = layout(self.table, *index);
                let first = layout.parts.first().and_then(|part| part.column);
                first.is_some_and(|column| lookup_columns.contains(&column))
                    || !ranges::index_ranges(&terms, layout).is_full()
            })
            .map(|index| self.index_name(index))
            .collect();
        (!names.is_empty()).then(|| names.join(","))
    }

    fn explain_scan(&self, block: &Block, path: &AccessPath, wanted: &Wanted) -> ExplainRow {
        let ranges = &path.ranges;
        let layout = layout(self.table, path.index);
        let definition = path.index.definition(self.table);
        let clustered = path.index == IndexRef::Clustered;
        let single =
            ranges.ranges.len() == 1 && ranges.parts > 0 && ranges.equal_parts == ranges.parts;
        let by_order = path.ordered && !wanted.order.is_empty();
        let type_ = if self.is_one_row(path) {
            "const"
        } else if single {
            "ref"
        } else if !ranges.is_full() {
            "range"
        } else if clustered && !by_order {
            "ALL"
        } else {
            "index"
        };
        let mut row = ExplainRow::table(block, &self.source.alias, type_);
        row.possible_keys = self.possible_keys(&[]);
        if type_ != "ALL" {
            row.key = Some(self.index_name(path.index).to_string());
            let parts = if ranges.is_full() {
                definition.parts.len()
            } else {
                ranges.parts
            };
            row.key_len = Some(
                layout
                    .mysql_key_len(parts.min(layout.parts.len()))
                    .to_string(),
            );
        }
        if matches!(type_, "const" | "ref") {
            row.ref_ = Some(vec!["const"; ranges.parts].join(","));
        }
        if ranges.ranges.is_empty() {
            row.add(ExtraNote::ImpossibleWhere);
        }
        let read = match wanted.limit.or(self.fetch) {
            Some(limit) if path.ordered || wanted.order.is_empty() => path
                .entries
                .min(limit as f64 * (path.entries / self.rows.max(0.1)).max(1.0)),
            _ => path.entries,
        };
        let filters = path.index_filters.iter().chain(&path.row_filters);
        let left = read
            * filters
                .map(|filter| self.filters[*filter].selectivity)
                .product::<f64>();
        row.estimate(read, left);
        if !path.index_filters.is_empty() {
            row.add(ExtraNote::UsingIndexCondition);
        }
        if !path.row_filters.is_empty() {
            row.add(ExtraNote::UsingWhere);
        }
        if matches!(path.fetch, Fetch::MultiRange { .. }) {
            row.add(ExtraNote::UsingMrr);
        }
        if !clustered && matches!(path.fetch, Fetch::Covering) {
            row.add(ExtraNote::UsingIndex);
        }
        if matches!(path.direction, Direction::Backward) {
            row.add(ExtraNote::BackwardIndexScan);
        }
        row.cost(path.cost_us, path.cost_us, self.rows);
        row.detail = Some(Arc::new(TableDetail {
            fetch: path.fetch,
            is_backward: matches!(path.direction, Direction::Backward),
            key_parts: path.ranges.parts,
            by_ranges: true,
            ..self.detail(path.index, &path.index_filters, &path.row_filters)
        }));
        row
    }

    /// What EXPLAIN's trees need of an access to the table.
    pub(crate) fn detail(
        &self,
        index: IndexRef,
        index_filters: &[usize],
        row_filters: &[usize],
    ) -> TableDetail {
        let filters = self.filters.iter();
        TableDetail {
            table: Arc::clone(self.table),
            index,
            fetch: Fetch::Covering,
            is_backward: false,
            filters: filters.map(|filter| filter.expr.clone()).collect(),
            index_filters: index_filters.to_vec(),
            row_filters: row_filters.to_vec(),
            residual: Vec::new(),
            columns: self.projection.clone(),
            key_parts: 0,
            by_ranges: false,
        }
    }
}

/// Table columns that an expression reads, ascending.
pub(crate) fn columns_of(expr: &Expr, schema: &DFSchema) -> Result<Vec<usize>> {
    use datafusion_common::tree_node::TreeNode;
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

/// The direction in which reading `ranges` of an index delivers `order`; `None` if neither does.
fn order_direction(
    order: &[SortExpr],
    layout: &KeyLayout,
    ranges: &IndexRanges,
    table: &TableReference<'_>,
) -> Option<Direction> {
    let first = order.first()?;
    // NULL sorts first in the index: first when ascending, last when descending.
    let direction = match (first.asc, first.nulls_first) {
        (true, true) => Direction::Forward,
        (false, false) => Direction::Backward,
        _ => return None,
    };
    let same = |sort: &&SortExpr| (sort.asc, sort.nulls_first) == (first.asc, first.nulls_first);
    let mut parts = layout.parts.iter().enumerate();
    'sort: for sort in order {
        let column = semantics::ordered_column(&sort.expr, &table.table.definition)?;
        let is_constant = layout.parts[..ranges.constant_parts]
            .iter()
            .any(|part| part.column == Some(column));
        if is_constant {
            continue;
        }
        if !same(&sort) {
            return None;
        }
        for (position, part) in parts.by_ref() {
            if part.column == Some(column) && part.prefix_length.is_none() {
                continue 'sort;
            }
            if position >= ranges.constant_parts {
                return None;
            }
        }
        // Past the last part every key is unique, so any order is the order; but the parts did not name this column.
        return None;
    }
    Some(direction)
}
