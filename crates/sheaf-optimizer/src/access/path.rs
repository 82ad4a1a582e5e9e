//! How a table is read: every way that its indexes offer, what each would cost, and the cheapest.
//!
//! For each index that the hints allow, we find out:
//!
//! - the key ranges that the conditions leave of it ([`crate::access::ranges`]), and how many entries these hold (index
//!   dive);
//! - whether the entries hold all columns;
//! - which of the remaining conditions can be tested on the entry before the row is fetched;
//! - whether its order is the one that the query wants.
//!
//! A wanted order with a LIMIT makes an ordered path cheap in proportion: rows that match are taken to be spread evenly
//! along the order.

use std::rc::Rc;
use std::sync::Arc;

use datafusion_common::{Column, DFSchema, Result, internal_datafusion_err};
use datafusion_expr::{Expr, SortExpr};
use sheaf_access::sort_rule::MISSING_SHARE;
use sheaf_access::{
    ColumnsCondition, Condition, EncodedCondition, Fetch, FirstOf, IndexRef, ScanSpec, SortKeys,
    clustered_key_position, split_ranges,
};
use sheaf_exec::functions::in_values::as_in_values;
use sheaf_exec::operator::batch_condition::ExprCondition;
use sheaf_exec::operator::scan_exec::{ScanExec, ScanOrder, access_error};
use sheaf_storage::{Direction, KeyRange};
use sheaf_table::KeyLayout;

use crate::PlannerContext;
use crate::access::index_merge::PlannedMerge;
use crate::access::jumps::{self, IndexJumps};
use crate::access::ranges::IndexRanges;
use crate::access::table_reference::{
    BoundIndex, ChosenScan, TableFilter, TableReference, columns_of,
};
use crate::access::trace::Alternatives;
use crate::access::wanted::Wanted;
use crate::estimate::risk::Risk;
use crate::estimate::statistics::layout;
use crate::explain::table_detail::TableDetail;
use crate::explain::{ExplainRow, ExtraNote};
use crate::hints::IndexSwitches;
use crate::logical::semantics;
use crate::physical::planner::Planner;
use crate::planned::{Block, Planned};
use crate::trace::Lost;

/// Entries below which a scan is not split: starting another partition costs about as much as reading them.
const MIN_ENTRIES_PER_PARTITION: f64 = 25_000.0;

/// Row lookups from which on asking for their pages ahead can pay.
const MIN_MRR_LOOKUPS: f64 = 4.0;

/// What a path that ignores FORCE INDEX costs on top, in microseconds: more than any join order that obeys it. MySQL's
/// manual says that a table scan is then "assumed to be very expensive".
const FORCED_INDEX_SCAN_US: f64 = 1e12;

/// One way to read the table.
#[derive(Debug, Clone)]
pub(crate) struct AccessPath {
    pub index: IndexRef,
    pub ranges: IndexRanges,
    /// Jumps inside the ranges.
    pub jumps: Option<Rc<IndexJumps>>,
    /// A loose index scan: one entry for each group.
    pub first_of: Option<FirstOf>,
    /// Several indexes in place of `index`, which is the clustered one then, and of `ranges`, which are all of it.
    pub merge: Option<Rc<PlannedMerge>>,
    pub direction: Direction,
    pub fetch: Fetch,
    /// Filters that are tested on the index entry before the lookup.
    pub index_filters: Vec<usize>,
    /// Filters that are tested on the row, or on the entry of a covering or clustered scan.
    pub row_filters: Vec<usize>,
    /// Entries in the ranges.
    pub entries: f64,
    /// Entries that the walk delivers: all of them, or those that its jumps do not leave out.
    pub walked: f64,
    /// Rows fetched from the clustered tree.
    pub lookups: f64,
    /// Leaves read, of the index and of the clustered tree, if none is in memory.
    pub pages: f64,
    /// Share of the leaves of the ranges that is in memory.
    pub resident: f64,
    /// The rows come in the wanted order.
    pub ordered: bool,
    /// Estimated cost including a sort if one is needed, in microseconds.
    pub cost_us: f64,
    /// What it may cost.
    pub risk: Risk,
}

impl AccessPath {
    /// A walk over `ranges` of an index in its order; what it reads and costs is still to be said.
    pub(crate) fn whole(
        index: IndexRef,
        ranges: IndexRanges,
        jumps: Option<Rc<IndexJumps>>,
        fetch: Fetch,
    ) -> AccessPath {
        AccessPath {
            index,
            ranges,
            jumps,
            first_of: None,
            merge: None,
            direction: Direction::Forward,
            fetch,
            index_filters: Vec::new(),
            row_filters: Vec::new(),
            entries: 0.0,
            walked: 0.0,
            lookups: 0.0,
            pages: 0.0,
            resident: 1.0,
            ordered: false,
            cost_us: 0.0,
            risk: Risk::default(),
        }
    }

    /// Leading parts of the index that ranges or jumps restrict, and open ones between them.
    fn key_parts(&self) -> usize {
        let jumps = self.jumps.as_ref();
        let by_jumps = jumps.map_or(0, |jumps| jumps.key_parts());
        by_jumps.max(self.ranges.parts)
    }

    /// Filters that the keys say, by ranges or jumps.
    pub(crate) fn key_filters(&self) -> Vec<usize> {
        let jumps = self.jumps.iter().flat_map(|jumps| &jumps.consumed);
        self.ranges.consumed.iter().chain(jumps).copied().collect()
    }
}

impl TableReference<'_> {
    /// The cheapest way to read the table in any order.
    pub(crate) fn chosen_scan(&self, context: &PlannerContext) -> Result<Rc<ChosenScan>> {
        if let Some(known) = self.memo.scan.borrow().as_ref() {
            return Ok(Rc::clone(known));
        }
        let wanted = Wanted::default();
        let path = self.best_path(context, &wanted)?;
        let workers = self.partitions(context, &path, &wanted)?;
        let chosen = Rc::new(ChosenScan { path, workers });
        *self.memo.scan.borrow_mut() = Some(Rc::clone(&chosen));
        Ok(chosen)
    }

    /// Rows that reading the table may give if its conditions keep more than they are taken to: those in the ranges,
    /// which come from index dives.
    pub(crate) fn most_rows(&self, context: &PlannerContext) -> Result<f64> {
        let path = &self.chosen_scan(context)?.path;
        Ok(match self.is_one_row(path) {
            true => 1.0,
            false => path.entries.max(self.rows),
        })
    }

    /// The cheapest way to read the table for a parent that wants `wanted`.
    pub(crate) fn best_path(
        &self,
        context: &PlannerContext,
        wanted: &Wanted,
    ) -> Result<AccessPath> {
        let mut tried = Alternatives::new(&context.trace);
        let paths = self.alternatives(context, wanted, &mut tried)?;
        let chosen = self.cheapest(paths).ok_or_else(|| {
            internal_datafusion_err!("table {} has no access path", self.source.alias)
        })?;
        tried.decide(self, wanted, &chosen);
        Ok(chosen)
    }

    /// Every way to read the table that the hints and switches leave.
    fn alternatives(
        &self,
        context: &PlannerContext,
        wanted: &Wanted,
        tried: &mut Alternatives<'_>,
    ) -> Result<Vec<AccessPath>> {
        let mut paths = Vec::new();
        for index in self.indexes() {
            let (name, hints) = (self.index_name(index), &self.source.hints);
            let allowed = (hints.allows(name), hints.allows_order(name));
            // The clustered tree is also the table: it can be scanned whatever the hints say, but then not by key.
            if allowed == (false, false) && index != IndexRef::Clustered {
                tried.without(index, Lost::Hint);
                continue;
            }
            let before = paths.len();
            self.add_paths(context, index, allowed, wanted, &mut paths)?;
            let found = paths.get(before..).unwrap_or(&[]);
            let looks_up = found.iter().any(|path| matches!(path.fetch, Fetch::Lookup));
            let by_mrr = |path: &AccessPath| matches!(path.fetch, Fetch::MultiRange { .. });
            if found.is_empty() {
                tried.without(index, Lost::NotApplicable("no condition, order or column"));
            } else if looks_up && !found.iter().any(by_mrr) {
                tried.without_multi_range(index, &context.settings);
            }
        }
        self.add_merges(context, wanted, &mut paths)?;
        for path in &paths {
            tried.consider(path);
        }
        Ok(paths)
    }

    /// Of all alternatives the cheapest one. A forced index that is of any use is preferred to all others.
    fn cheapest(&self, paths: Vec<AccessPath>) -> Option<AccessPath> {
        let mut best: Option<AccessPath> = None;
        let mut forced: Option<AccessPath> = None;
        for path in paths {
            let useful = path.ranges.parts > 0
                || path.jumps.is_some()
                || path.ordered
                || matches!(path.fetch, Fetch::Covering);
            let (name, hints) = (self.index_name(path.index), &self.source.hints);
            let is_hinted = match &path.merge {
                Some(_) => hints.forces_merge(),
                None => {
                    let skips = path.jumps.is_some() && path.ranges.is_full();
                    skips && hints.skip_scan.of(name) == Some(true)
                }
            };
            let is_forced = is_hinted
                || hints.forces(name) && useful
                || hints.order_by.forces(name) && path.ordered;
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
        forced.or(best)
    }

    /// Adds the ways to use one index; none if it is of no use at all.
    fn add_paths(
        &self,
        context: &PlannerContext,
        index: IndexRef,
        (by_key, by_order): (bool, bool),
        wanted: &Wanted,
        paths: &mut Vec<AccessPath>,
    ) -> Result<()> {
        let allowed = (by_key, by_order);
        self.add_walks(context, index, allowed, None, wanted, paths)?;
        // Jumps inside ranges test entries before rows are fetched: what NO_ICP is against.
        let is_allowed = by_key
            && (index == IndexRef::Clustered
                || self.switches(context, index).index_condition
                || self.bound(index)?.ranges.is_full());
        match self.jumps(context, index)?.filter(|_| is_allowed) {
            Some(jumps) => self.add_walks(context, index, allowed, Some(jumps), wanted, paths),
            None => Ok(()),
        }
    }

    /// Adds the ways to walk over one index, with these jumps.
    fn add_walks(
        &self,
        context: &PlannerContext,
        index: IndexRef,
        (by_key, by_order): (bool, bool),
        jumps: Option<Rc<IndexJumps>>,
        wanted: &Wanted,
        paths: &mut Vec<AccessPath>,
    ) -> Result<()> {
        let layout = layout(self.table, index);
        let switches = self.switches(context, index);
        let bound = if by_key {
            self.bound(index)?
        } else {
            Rc::new(BoundIndex::new(IndexRanges::full(), self.table_rows))
        };
        let ranges = bound.ranges.clone();
        let open: Vec<usize> = (0..self.filters.len())
            // Both are in order.
            .filter(|filter| ranges.consumed.binary_search(filter).is_err())
            .filter(|filter| {
                let jumps = jumps.as_ref();
                jumps.is_none_or(|jumps| jumps.consumed.binary_search(filter).is_err())
            })
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
        let is_useful =
            covering && by_key || !ranges.is_full() || direction.is_some() || jumps.is_some();
        if !clustered && !is_useful {
            return Ok(());
        }
        let (index_filters, row_filters) = if covering || !switches.index_condition {
            (Vec::new(), open)
        } else {
            open.into_iter()
                .partition(|filter| self.filters[*filter].columns.iter().all(in_entry))
        };
        let mut path = AccessPath {
            index,
            ranges,
            jumps,
            first_of: None,
            merge: None,
            direction: direction.unwrap_or(Direction::Forward),
            fetch: Fetch::Covering,
            index_filters,
            row_filters,
            entries: bound.entries,
            walked: bound.entries,
            lookups: 0.0,
            pages: 0.0,
            resident: self.resident_in(index, &bound)?,
            ordered: direction.is_some() && !wanted.order.is_empty(),
            cost_us: 0.0,
            risk: Risk::default(),
        };
        if self.is_one_row(&path) {
            // Nothing beats one row by its key: at cost 0, and in any order.
            path.fetch = if covering {
                Fetch::Covering
            } else {
                Fetch::Lookup
            };
            path.ordered = !wanted.order.is_empty();
            paths.push(path);
            return Ok(());
        }
        if !covering {
            path.fetch = Fetch::Lookup;
        }
        self.estimate(context, &mut path, wanted)?;
        if let Some(fetch) = self.multi_range(context, &path, wanted)? {
            // The order of the index is lost.
            let mut sorted = AccessPath {
                fetch,
                ordered: false,
                direction: Direction::Forward,
                ..path.clone()
            };
            self.estimate(context, &mut sorted, wanted)?;
            paths.push(sorted);
            if !switches.mrr_cost_based && !path.ordered {
                // Wherever it is possible, whatever it costs.
                return Ok(());
            }
        }
        paths.push(path);
        Ok(())
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

    pub(crate) fn switches(&self, context: &PlannerContext, index: IndexRef) -> IndexSwitches {
        let name = self.index_name(index);
        IndexSwitches::of(&self.source.hints, name, &context.settings.switch)
    }

    /// The multi-range read for a path with lookups, if the switches allow it and it can pay.
    fn multi_range(
        &self,
        context: &PlannerContext,
        path: &AccessPath,
        wanted: &Wanted,
    ) -> Result<Option<Fetch>> {
        let switches = self.switches(context, path.index);
        if !switches.mrr || matches!(path.fetch, Fetch::Covering) {
            return Ok(None);
        }
        let buffer_bytes = context.settings.mrr_buffer_bytes;
        if !switches.mrr_cost_based {
            return Ok(Some(Fetch::MultiRange {
                buffer_bytes,
                sort: SortKeys::Always,
            }));
        }
        let mut lookups = path.lookups;
        // What is to be sorted is fetched as a whole, whatever the limit.
        if let Some(limit) = wanted
            .limit
            .or(self.fetch)
            .filter(|_| wanted.order.is_empty())
        {
            lookups *= self.match_positions(path)?.walked(limit as f64, self.rows);
        }
        Ok((lookups >= MIN_MRR_LOOKUPS).then_some(Fetch::MultiRange {
            buffer_bytes,
            sort: SortKeys::Auto,
        }))
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
            match (self.encoded(filter), &planner.context.places) {
                (Some(condition), _) => encoded.push(condition),
                (None, Some(places)) if filter.has_places => {
                    rest.push(places.read_in(filter.expr.clone())?.data);
                }
                (None, _) => rest.push(filter.expr.clone()),
            }
        }
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
        Ok(condition_of(encoded, rest))
    }

    /// A filter as a condition on encoded bytes, if it is tested as such.
    pub(crate) fn encoded(&self, filter: &TableFilter<'_>) -> Option<EncodedCondition> {
        // A row is found in a set of rows faster than among conditions on columns.
        let is_of_rows = as_in_values(filter.expr).is_some_and(|(operands, _)| operands.len() > 1);
        let condition = || filter.term.encoded(&self.table.definition);
        (!is_of_rows).then(condition).flatten()
    }

    /// Chooses a path and builds its operator.
    pub(crate) fn plan_scan(
        &self,
        planner: &Planner<'_>,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let path = self.best_path(planner.context, wanted)?;
        self.plan_path(planner, block, wanted, &path)
    }

    /// Builds the operator of a path.
    pub(crate) fn plan_path(
        &self,
        planner: &Planner<'_>,
        block: &Block,
        wanted: &Wanted,
        path: &AccessPath,
    ) -> Result<Planned> {
        let context = planner.context;
        let spec = Arc::new(self.scan_spec(planner, block, path, self.projection.clone())?);
        let order = self.scan_order(planner, block, path)?;
        let shares = self.shares(context, path, wanted, &spec)?;
        let mut plan = ScanExec::new(
            Arc::clone(&spec),
            shares,
            Arc::clone(&self.schema),
            order,
            self.source.alias.clone(),
            self.source.reference,
            Arc::clone(&context.counters),
            context.cancel.clone(),
        );
        if let Some(budget) = &planner.budget {
            plan = plan.with_budget(budget.clone(), self.prices(context, path));
        }
        if wanted.limit.is_some() {
            plan = plan.starting_small();
        }
        if let Some(places) = context.places.as_ref().filter(|_| self.has_places()) {
            let condition = |filters: &[usize]| self.condition(planner, block, filters);
            plan = plan.bound_by(places.add_scan(self, path, condition)?);
        }
        let rows = self
            .fetch
            .map_or(self.rows, |fetch| self.rows.min(fetch as f64));
        Ok(Planned {
            plan: Arc::new(plan),
            rows,
            cost_us: path.cost_us,
            risk: path.risk,
            explain: vec![self.explain_scan(block, path, wanted)],
        })
    }

    /// What a path asks of the access method, to deliver the columns of `projection`.
    pub(crate) fn scan_spec(
        &self,
        planner: &Planner<'_>,
        block: &Block,
        path: &AccessPath,
        projection: Vec<usize>,
    ) -> Result<ScanSpec> {
        let context = planner.context;
        Ok(ScanSpec {
            table: Arc::clone(self.table),
            view: context.view_of(self.source),
            index: path.index,
            ranges: path.ranges.ranges.as_ref().clone(),
            key_filter: path.jumps.as_ref().and_then(|jumps| {
                let layout = layout(self.table, path.index);
                jumps::key_filter(jumps, &self.terms(), layout).map(Arc::new)
            }),
            first_of: path.first_of,
            merge: path
                .merge
                .as_ref()
                .map(|merge| merge.spec(context.settings.mrr_buffer_bytes)),
            direction: path.direction,
            index_condition: self.condition(planner, block, &path.index_filters)?,
            row_condition: self.condition(planner, block, &path.row_filters)?,
            projection,
            fetch: path.fetch,
            limit: self.fetch,
            batch: context.settings.batch(),
            read_ahead_pages: context.settings.read_ahead_pages,
        })
    }

    /// Workers among which a path is divided: one where an order is wanted (the rows stop early or are merged anyway),
    /// and where few entries are read. In a multi-range read each worker has a buffer of its own: where pages have to
    /// be read, they are to be full, or each worker would read the same pages.
    pub(crate) fn partitions(
        &self,
        context: &PlannerContext,
        path: &AccessPath,
        wanted: &Wanted,
    ) -> Result<usize> {
        let alone =
            path.merge.is_some() || path.ordered || wanted.limit.is_some() || self.fetch.is_some();
        if alone {
            return Ok(1);
        }
        let least = match path.fetch {
            Fetch::MultiRange { buffer_bytes, .. }
                if 1.0 - self.resident(IndexRef::Clustered)? > MISSING_SHARE =>
            {
                self.keys_per_turn(buffer_bytes)
            }
            _ => 0.0,
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let worth = (path.entries / least.max(MIN_ENTRIES_PER_PARTITION)) as usize;
        Ok(context.settings.target_partitions.min(worth).max(1))
    }

    /// The ranges of each partition.
    fn shares(
        &self,
        context: &PlannerContext,
        path: &AccessPath,
        wanted: &Wanted,
        spec: &ScanSpec,
    ) -> Result<Vec<Vec<KeyRange>>> {
        let is_real = match path.index {
            IndexRef::Clustered => true,
            IndexRef::Secondary(position) => !self.table.is_hypothetical(position),
        };
        match self.partitions(context, path, wanted)? {
            1 => Ok(vec![spec.ranges.clone()]),
            // The plan does not run.
            _ if !is_real => Ok(vec![spec.ranges.clone()]),
            parts => {
                split_ranges(self.table, path.index, &spec.ranges, parts).map_err(access_error)
            }
        }
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

    /// Indexes that the conditions or `lookup_columns` could use.
    pub(crate) fn possible_keys(&self, lookup_columns: &[usize]) -> Option<String> {
        let is_bound =
            |index: IndexRef| self.bound(index).is_ok_and(|bound| !bound.ranges.is_full());
        let names: Vec<&str> = self
            .indexes()
            .filter(|index| self.source.hints.allows(self.index_name(*index)))
            .filter(|index| {
                let layout = layout(self.table, *index);
                let first = layout.parts.first().and_then(|part| part.column);
                first.is_some_and(|column| lookup_columns.contains(&column)) || is_bound(*index)
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
        let single = ranges.ranges.len() == 1
            && ranges.parts > 0
            && ranges.equal_parts == ranges.parts
            && path.jumps.is_none()
            && path.first_of.is_none();
        let by_order = path.ordered && !wanted.order.is_empty();
        let type_ = if path.merge.is_some() {
            "index_merge"
        } else if self.is_one_row(path) {
            "const"
        } else if single {
            "ref"
        } else if !ranges.is_full() || path.jumps.is_some() || path.first_of.is_some() {
            "range"
        } else if clustered && !by_order {
            "ALL"
        } else {
            "index"
        };
        let mut row = block.row(&self.source.alias, type_);
        row.possible_keys = self.possible_keys(&[]);
        match &path.merge {
            Some(merge) => merge.inputs.iter().for_each(|input| {
                row.add_possible_key(self.index_name(input.index));
            }),
            None if type_ == "range" => row.add_possible_key(self.index_name(path.index)),
            None => {}
        }
        if type_ != "ALL" {
            row.key = Some(self.index_name(path.index).to_string());
            let parts = match ranges.is_full() && path.jumps.is_none() {
                true => definition.parts.len(),
                false => path.key_parts(),
            };
            row.key_len = Some(
                layout
                    .mysql_key_len(parts.min(layout.parts.len()))
                    .to_string(),
            );
        }
        if let Some(merge) = &path.merge {
            merge.explain(self, &mut row);
        }
        if let Some(first_of) = path.first_of {
            row.add(match first_of.parts > path.ranges.constant_parts {
                true => ExtraNote::UsingIndexForGroupBy,
                false => ExtraNote::TablesOptimizedAway,
            });
        }
        if matches!(type_, "const" | "ref") {
            row.ref_ = Some(vec!["const"; ranges.parts].join(","));
        }
        if ranges.ranges.is_empty() {
            row.add(ExtraNote::ImpossibleWhere);
        }
        let read = match wanted.limit.or(self.fetch) {
            Some(limit) if path.ordered || wanted.order.is_empty() => path
                .walked
                .min(limit as f64 * (path.walked / self.rows.max(0.1)).max(1.0)),
            _ => path.walked,
        };
        let tested: Vec<usize> = [path.index_filters.as_slice(), &path.row_filters].concat();
        let left = match &path.merge {
            Some(_) => self.rows.min(read),
            None => read * self.shares.kept(&tested, &path.key_filters()),
        };
        row.estimate(read, left);
        let by_jumps = path
            .jumps
            .as_ref()
            .filter(|_| !matches!(path.fetch, Fetch::Covering));
        if !path.index_filters.is_empty() || by_jumps.is_some() {
            row.add(ExtraNote::UsingIndexCondition);
        }
        if path.jumps.is_some() {
            row.add(match path.ranges.is_full() {
                true => ExtraNote::UsingIndexForSkipScan,
                false => ExtraNote::UsingJumps,
            });
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
            key_parts: path.key_parts(),
            by_ranges: path.ranges.parts > 0,
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
            bounds: Vec::new(),
            columns: self.projection.clone(),
            key_parts: 0,
            by_ranges: false,
        }
    }
}

/// The direction in which reading `ranges` of an index delivers `order`; `None` if neither does.
pub(crate) fn order_direction(
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

/// A condition of the access method; `None` if there is nothing to test.
pub(crate) fn condition_of(
    mut encoded: Vec<EncodedCondition>,
    rest: Option<ColumnsCondition>,
) -> Option<Condition> {
    let encoded = match encoded.len() {
        0 => None,
        1 => encoded.pop(),
        _ => Some(EncodedCondition::And(encoded)),
    };
    (encoded.is_some() || rest.is_some()).then_some(Condition { encoded, rest })
}
