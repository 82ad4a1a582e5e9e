//! What EXPLAIN shows of a direct plan: the plan describes itself.
//!
//! Its order of tables, its indexes and its sorts are its own. The optimizer's estimates are added by EXPLAIN where a
//! plan of operators reads a table the same way ([`Explanation::take_estimates`]). The queries that a direct plan reads
//! are direct plans of their own. They run first, and their rows or values wait in memory:
//!
//! ```text
//!   -> Direct (without operators)
//!       -> Nested loop inner join
//!           -> Table scan on k
//!               -> Materialize
//!                   -> Limit: 20 row(s)
//!                       -> Index scan on n using created (reverse)
//!           -> Single-row index lookup on n using PRIMARY (id = k.id)
//! ```
//!
//! What they find decides whether the plan runs to its end: if it is too much, the statement runs as a plan of
//! operators after all. EXPLAIN runs no query, so it tells what runs first. A walk that a LIMIT ends is tried.

use std::borrow::Cow;
use std::sync::Arc;

use sheaf_frontend::value_literal::value_literal;
use sheaf_optimizer::{ExplainRow, Explanation, ExtraNote, NodeId, PlanNode};
use sheaf_storage::Direction;
use sheaf_table::Table;
use sheaf_types::Value;

use crate::direct::access::measured::AccessId;
use crate::direct::access::{Access, KnownParameters, OuterColumn, ReadIn};
use crate::direct::change::Rows;
use crate::direct::join::{Join, Joined, JoinedWay, rows_if_small};
use crate::direct::operands::operand::{Compared, Operand};
use crate::direct::over_rows::OverRows;
use crate::direct::read::{self, Read, Way, row_count, would_read};
use crate::direct::rows::derived_rows::Lookup;
use crate::direct::rows::order::{OrderItem, SortKey};
use crate::direct::rows::row_source::Derived;
use crate::direct::subquery::Subquery;
use crate::direct::{Action, DirectPlan, shown::joined_list};
use crate::error::Result;
use crate::session::Session;
use crate::session::result::ColumnMeta;

/// What EXPLAIN shows of a plan.
pub(crate) struct Described {
    pub(crate) explanation: Explanation,
    /// The accesses that read the table of a line. Where it has several, a run takes the best for each row.
    pub(crate) accesses: Vec<(NodeId, AccessId)>,
}

/// Which session runs the plan that is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunBy {
    /// The one that describes it.
    Itself,
    /// Another one, which is running it: only that knows what it is given, and which tables it holds.
    Another,
}

/// `None`: it would not run, or it reads nothing.
pub(crate) fn describe_direct(
    session: &Session,
    (plan, run_by): (&DirectPlan, RunBy),
) -> Result<Option<Described>> {
    let read = match &plan.action {
        Action::ChangeFound(change) => &change.query,
        Action::LockFound(lock) => lock.described(),
        _ => plan,
    };
    if !session.client.meets_needs_to_show(plan) || !session.client.meets_needs_to_show(read) {
        return Ok(None);
    }
    let given = match run_by {
        RunBy::Itself => session.given_of(read, &[]),
        RunBy::Another => Some(Cow::default()),
    };
    let Some(values) = given else {
        return Ok(None);
    };
    // Rows that are changed are locked one by one, and constants are not.
    let takes_no_view = matches!(
        read.action,
        Action::Update(..) | Action::Delete(..) | Action::Constants(_)
    );
    let locks_itself =
        session.table_locks.are_held() || session.transactions.reads_lock() && !takes_no_view;
    if run_by == RunBy::Itself && locks_itself {
        return Ok(None);
    }
    let mut description = Description {
        session,
        parameters: &values,
        given: read.given_places(),
        of_row: (usize::MAX, Vec::new()),
        accesses: Vec::new(),
        blocks: 0,
        is_tried: run_by == RunBy::Itself && !read.reads_queries(),
        run_by,
    };
    let Some(mut tree) = description.plan(read, "PRIMARY")? else {
        return Ok(None);
    };
    if description.blocks == 1 {
        tree.for_each(&mut |node| {
            let rows = node.tables.iter_mut();
            rows.for_each(|row| row.select_type = "SIMPLE".to_string());
        });
    }
    Ok(Some(Described {
        explanation: Explanation::new(tree, None),
        accesses: description.accesses,
    }))
}

/// What a plan's parts have told so far. Its methods give `None` where a part would not run directly.
struct Description<'s> {
    session: &'s Session,
    /// Those that are known before the statement runs.
    parameters: &'s [Value],
    /// See [`KnownParameters`].
    given: usize,
    of_row: (usize, Vec<OuterColumn>),
    /// See [`Described`].
    accesses: Vec<(NodeId, AccessId)>,
    /// Query blocks numbered so far.
    blocks: u64,
    /// The plan reads no queries, so it can be told which of two ways its rows are found.
    is_tried: bool,
    run_by: RunBy,
}

/// A query block: its number, and what MySQL calls its kind.
type Block<'a> = (u64, &'a str);

impl Description<'_> {
    fn block<'a>(&mut self, kind: &'a str) -> Block<'a> {
        self.blocks += 1;
        (self.blocks, kind)
    }

    /// A plan, with what runs before it.
    fn plan(&mut self, plan: &DirectPlan, kind: &str) -> Result<Option<PlanNode>> {
        let block = self.block(kind);
        let Some(mut node) = self.action(&plan.action, block)? else {
            return Ok(None);
        };
        for subquery in plan.subqueries.iter().chain(&plan.list) {
            let line = "Subquery in the conditions (runs once, first)";
            let Some(subquery) = self.subquery(subquery, line, "SUBQUERY")? else {
                return Ok(None);
            };
            node.children.push(subquery);
        }
        Ok(Some(node))
    }

    fn subquery(
        &mut self,
        subquery: &Subquery,
        line: &str,
        kind: &str,
    ) -> Result<Option<PlanNode>> {
        let below = self.plan(&subquery.plan, kind)?;
        Ok(below.map(|below| PlanNode::line(line, Some(below))))
    }

    fn action(&mut self, action: &Action, block: Block<'_>) -> Result<Option<PlanNode>> {
        match action {
            Action::Constants(_) => Ok(Some(Self::no_tables(block))),
            Action::Read(read, table) => self.read(read, table, block),
            Action::Join(join) => self.join(join, block),
            Action::OverRows(query) => self.over_rows(query, block),
            Action::Union(union) => self.derived(&union.derived, block),
            Action::InsertSelect(insert) => self.action(&insert.query, block),
            Action::Update(update, table) => self.changed(update.rows(), table, block),
            Action::Delete(delete, table) => self.changed(delete.rows(), table, block),
            // It is its query that finds rows, or there are none to be found.
            Action::ChangeFound(_)
            | Action::LockFound(_)
            | Action::IntoVariables(_)
            | Action::SetVariable(_)
            | Action::Insert(_) => Ok(None),
        }
    }

    fn no_tables((id, kind): Block<'_>) -> PlanNode {
        let row = ExplainRow::no_tables(kind).with_id(id);
        PlanNode::line("Rows fetched before execution", None).of_table(row)
    }

    /// The rows that an UPDATE or a DELETE of one table finds.
    fn changed(
        &mut self,
        rows: &Rows,
        table: &Arc<Table>,
        block: Block<'_>,
    ) -> Result<Option<PlanNode>> {
        let read_in = self.read_in(block, (&rows.alias, table), &[]);
        let expected = self.expected_rows(&rows.access, &read_in)?;
        // Without an order they come as they lie.
        let ordered = (!rows.access.is_scan).then_some(rows.direction);
        let (node, row) = rows.access.describe(&read_in, ordered, expected);
        let node = self.read_by([&rows.access], node, row);
        Ok(Some(self.limited((&rows.limit, &None), node)))
    }

    /// In which part of the statement a table is read.
    fn read_in<'a>(
        &'a self,
        block: Block<'a>,
        (alias, table): (&'a str, &'a Arc<Table>),
        outer: &'a [OuterColumn],
    ) -> ReadIn<'a> {
        ReadIn {
            block,
            alias,
            table,
            known: self.known(),
            outer,
        }
    }

    fn known(&self) -> KnownParameters<'_> {
        KnownParameters {
            values: self.parameters,
            given: self.given,
            of_row: (self.of_row.0, &self.of_row.1),
        }
    }

    /// The node of a table that is read by one of these.
    fn read_by<'a>(
        &mut self,
        accesses: impl IntoIterator<Item = &'a Access>,
        node: PlanNode,
        row: ExplainRow,
    ) -> PlanNode {
        let node = node.of_table(row);
        if let Some(id) = node.id {
            let accesses = accesses.into_iter().map(|access| (id, access.id));
            self.accesses.extend(accesses);
        }
        node
    }

    fn read(
        &mut self,
        read: &Read,
        table: &Arc<Table>,
        block: Block<'_>,
    ) -> Result<Option<PlanNode>> {
        let read_in = self.read_in(block, (&read.alias, table), &[]);
        let is_known = read.access.is_known(&read_in) && self.knows(read.limit.as_ref());
        let way = match is_known && self.knows(read.offset.as_ref()) {
            true if self.run_by == RunBy::Another => self.way_of(read, table)?,
            true => would_read(self.session, read, table, self.parameters)?,
            false => Some(Way::Through),
        };
        let Some(way) = way else {
            return Ok(None);
        };
        let (access, direction) = read.access_of(way);
        let rows = self.expected_rows(access, &read_in)?;
        // Without an order they come as they lie.
        let is_ordered = read.is_ordered && !(read.reads_whole && read.sorts());
        let ordered = (is_ordered || way == Way::InOrder).then_some(direction);
        let (node, mut row) = access.describe(&read_in, ordered, rows);
        let (order, distinct) = read.sort_keys();
        // Only one way sorts, and DISTINCT alone wants no order.
        let sorts = |order: &&SortKey| way != Way::InOrder && !order.items().is_empty();
        let order = order.filter(sorts);
        if order.is_some() {
            row.add(ExtraNote::UsingFilesort);
        }
        if distinct.is_some() {
            row.add(ExtraNote::UsingTemporary);
        }
        let ends_at_first = match read.shown {
            read::Shown::Columns(_) => false,
            read::Shown::Aggregates { ends_at_first, .. } => ends_at_first,
        };
        if ends_at_first && !access.has_tests() {
            row.rows = Some(1);
            row.add(ExtraNote::TablesOptimizedAway);
        }
        let mut node = self.read_by([access], node, row);
        if ends_at_first {
            node = PlanNode::limit((0, Some(1)), node);
        }
        let name = |column: usize| {
            let columns = &table.definition.columns;
            format!("{}.{}", read.alias, columns[column].name)
        };
        if let read::Shown::Aggregates { aggregates, .. } = &read.shown {
            let texts = aggregates.iter().map(|aggregate| aggregate.text(name));
            let texts = texts.collect::<Vec<_>>().join(", ");
            node = PlanNode::line(format!("Aggregate: {texts}"), Some(node));
        }
        if let Some(distinct) = distinct {
            // What rows are sorted by is not told apart once more.
            let sorted = read.sort_keys().0.into_iter().flat_map(SortKey::items);
            let mut names: Vec<String> = Vec::new();
            for item in distinct.items().iter().chain(sorted) {
                let name = name(item.column);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            let text = match names.as_slice() {
                [] => "Remove duplicates".to_string(),
                names => format!("Remove duplicates by {}", names.join(", ")),
            };
            node = PlanNode::line(text, Some(node));
        }
        if let Some(order) = order {
            let names = columns_text(order, name);
            node = PlanNode::line(format!("Sort: {names}"), Some(node));
        }
        Ok(Some(self.limited((&read.limit, &read.offset), node)))
    }

    /// How a table would be read, without trying it.
    fn way_of(&self, read: &Read, table: &Arc<Table>) -> Result<Option<Way>> {
        let Some(_guard) = self.session.borrow_for_read(table, false)? else {
            return Ok(None);
        };
        let most = self.session.variables.sql_select_limit();
        let ready = read.prepare(most, table, self.parameters)?;
        Ok(ready.map(|ready| ready.way))
    }

    fn join(&mut self, join: &Join, block: Block<'_>) -> Result<Option<PlanNode>> {
        if !self.is_tried {
            return self.one_join(join, block);
        }
        match join.that_would_run(self.session, self.parameters)? {
            Some(join) => self.one_join(join, block),
            None => Ok(None),
        }
    }

    fn one_join(&mut self, join: &Join, block: Block<'_>) -> Result<Option<PlanNode>> {
        let Some(mut node) = self.joined(join, block)? else {
            return Ok(None);
        };
        let name = |place: usize, column: usize| {
            let joined = &join.tables[place];
            let columns = &joined.source.definition().columns;
            format!("{}.{}", joined.alias, columns[column].name)
        };
        let note = match &join.shown {
            joined_list::Shown::Columns(_) => None,
            joined_list::Shown::Aggregates(_) => {
                node = aggregate(&join.columns, node);
                None
            }
            joined_list::Shown::Groups { by, aggregates, .. } => {
                let is_first = join
                    .tables
                    .iter()
                    .any(|joined| matches!(joined.way, JoinedWay::First(..)));
                let keys = items_text(by.items(), name);
                let how = match (is_first, aggregates.is_empty()) {
                    (true, _) => "First entry of each group",
                    (false, true) => "Remove duplicates",
                    (false, false) => "Aggregate using temporary table",
                };
                node = PlanNode::line(format!("{how} by {keys}"), Some(node));
                (!is_first).then_some(ExtraNote::UsingTemporary)
            }
        };
        if let Some(order) = &join.order {
            let order = items_text(order.items(), name);
            node = PlanNode::line(format!("Sort: {order}"), Some(node));
        }
        let sorts = join.order.as_ref().map(|_| ExtraNote::UsingFilesort);
        if let Some(row) = node.first_table() {
            note.into_iter().chain(sorts).for_each(|note| row.add(note));
        }
        Ok(Some(self.limited((&join.limit, &join.offset), node)))
    }

    /// The tables of a join, one in another.
    fn joined(&mut self, join: &Join, block: Block<'_>) -> Result<Option<PlanNode>> {
        if join.tables.is_empty() {
            return Ok(Some(Self::no_tables(block)));
        }
        let slots = join.tables.iter().map(|joined| joined.gives.len()).sum();
        let mut outer = vec![OuterColumn::default(); slots];
        for joined in &join.tables {
            for (column, slot) in &joined.gives {
                outer[*slot] = joined.column(*column);
            }
        }
        let mut tree: Option<PlanNode> = None;
        for (place, joined) in join.tables.iter().enumerate() {
            let Some(node) = self.table((joined, place), &outer, block)? else {
                return Ok(None);
            };
            tree = Some(match tree {
                None => node,
                Some(before) => {
                    let kind = match joined.is_outer {
                        true => "left",
                        false => "inner",
                    };
                    let mut both = PlanNode::line(format!("Nested loop {kind} join"), Some(before));
                    both.children.push(node);
                    both
                }
            });
        }
        Ok(tree)
    }

    fn table(
        &mut self,
        (joined, place): (&Joined, usize),
        outer: &[OuterColumn],
        block: Block<'_>,
    ) -> Result<Option<PlanNode>> {
        let alias = joined.alias.as_str();
        let (table, access, direction) = match &joined.way {
            JoinedWay::Rows(lookup) => return self.lookup(lookup, alias, outer, block),
            JoinedWay::Small(table, access) => {
                let rows = match self.session.borrow_for_read(table, false)? {
                    Some(_guard) => rows_if_small(table)?,
                    None => None,
                };
                let Some(rows) = rows else {
                    return Ok(None);
                };
                let read_in = self.read_in(block, (alias, table), outer);
                let (node, row) = access.describe(&read_in, None, Some(rows));
                return Ok(Some(self.read_by([access], node, row)));
            }
            JoinedWay::Walk(table, access, direction)
            | JoinedWay::First(table, access, (direction, _)) => (table, access, *direction),
            JoinedWay::Keys(table, accesses) => {
                let read_in = self.read_in(block, (alias, table), outer);
                let mut best: Option<(u64, &Access)> = None;
                for access in accesses {
                    let rows = self.expected_rows(access, &read_in)?.unwrap_or(u64::MAX);
                    if best.is_none_or(|(fewest, _)| rows <= fewest) {
                        best = Some((rows, access));
                    }
                }
                let Some((rows, access)) = best else {
                    return Ok(None);
                };
                if place == 0 && rows != u64::MAX && rows > joined.most_rows {
                    return Ok(None);
                }
                (table, access, Direction::Forward)
            }
        };
        let read_in = self.read_in(block, (alias, table), outer);
        let rows = self.expected_rows(access, &read_in)?;
        let (node, row) = access.describe(&read_in, Some(direction), rows);
        let node = match &joined.way {
            JoinedWay::Keys(_, accesses) => self.read_by(accesses, node, row),
            _ => self.read_by([access], node, row),
        };
        Ok(Some(node))
    }

    /// The rows of a query in a FROM, or of a table of `information_schema`.
    fn lookup(
        &mut self,
        lookup: &Lookup,
        alias: &str,
        outer: &[OuterColumn],
        (id, kind): Block<'_>,
    ) -> Result<Option<PlanNode>> {
        let derived = match lookup.derived.is_of_definitions() {
            true => None,
            false => Some(self.block("DERIVED")),
        };
        let row = |type_: &str| match derived {
            Some((block, _)) => ExplainRow::derived(id, kind, block, type_),
            None => ExplainRow::table(id, kind, alias, type_),
        };
        let of_operand = |operand: &Operand, in_tree: bool| match operand {
            Operand::Outer(place) => {
                let column = outer.get(*place).cloned().unwrap_or_default();
                match in_tree {
                    true => column.name,
                    false => column.with_database,
                }
            }
            Operand::Constant(value) if in_tree => value_literal(value).to_string(),
            Operand::Parameter(number) if in_tree => self.known().written(*number).to_string(),
            Operand::Constant(_) | Operand::Parameter(_) => "const".to_string(),
        };
        let column_of = |compared: &Compared, in_tree: bool| match compared {
            Compared::Plain(operand) => of_operand(operand, in_tree),
            Compared::Whole(_) if !in_tree => "func".to_string(),
            Compared::Whole(arithmetic) => arithmetic.text(&|operand| of_operand(operand, true)),
        };
        let (mut row, text) = match lookup.equal.as_slice() {
            [] => (row("ALL"), format!("Table scan on {alias}")),
            equal => {
                let mut row = row("ref");
                row.add_possible_key(AUTO_KEY);
                row.key = Some(AUTO_KEY.to_string());
                let sources = equal.iter().map(|(_, operand)| column_of(operand, false));
                row.ref_ = Some(sources.collect::<Vec<_>>().join(","));
                let columns = &lookup.derived.definition.columns;
                let keys = equal.iter().map(|(column, operand)| {
                    format!("{}={}", columns[*column].name, column_of(operand, true))
                });
                let keys = keys.collect::<Vec<_>>().join(", ");
                (
                    row,
                    format!("Index lookup on {alias} using {AUTO_KEY} ({keys})"),
                )
            }
        };
        let Some(derived) = derived else {
            let Some(rows) = self.definitions(lookup)? else {
                return Ok(None);
            };
            row.rows = rows.filter(|_| lookup.equal.is_empty());
            return Ok(Some(PlanNode::line(text, None).of_table(row)));
        };
        let node = PlanNode::line(text, None).of_table(row);
        let Some(rows) = self.derived(&lookup.derived, derived)? else {
            return Ok(None);
        };
        let rows = PlanNode::line("Materialize", Some(rows));
        Ok(Some(PlanNode {
            children: vec![rows],
            ..node
        }))
    }

    /// How many rows are made of a table of `information_schema`; the inner `None`: a run alone knows what it is asked
    /// for.
    fn definitions(&self, lookup: &Lookup) -> Result<Option<Option<u64>>> {
        let Some(table) = &lookup.derived.of_definitions else {
            return Ok(None);
        };
        let knows = |operand: &Operand| match operand {
            Operand::Outer(_) => true,
            operand => self.knows(Some(operand)),
        };
        if !lookup
            .equal
            .iter()
            .all(|(_, operand)| operand.all(&mut |operand| knows(operand)))
        {
            return Ok(Some(None));
        }
        let given = (lookup.equal.as_slice(), self.parameters);
        let rows = lookup
            .derived
            .rows_of_definitions(self.session, table, given)?;
        Ok(rows.map(|rows| u64::try_from(rows.spans.len()).ok()))
    }

    /// A query in a FROM, or a UNION.
    fn derived(&mut self, derived: &Derived, block: Block<'_>) -> Result<Option<PlanNode>> {
        // What makes the rows of definitions is no plan. For the others see `Derived::rows`.
        if derived.is_of_definitions() || self.session.variables.sql_select_limit() != u64::MAX {
            return Ok(None);
        }
        let mut parts = Vec::with_capacity(derived.parts.len());
        for (number, part) in derived.parts.iter().enumerate() {
            let block = match number {
                0 => block,
                _ => self.block("UNION"),
            };
            let Some(node) = self.action(&part.action, block)? else {
                return Ok(None);
            };
            parts.push(node);
        }
        let is_distinct = derived.parts.iter().any(|part| part.is_distinct);
        let mut node = match (parts.len(), is_distinct) {
            (1, _) => parts.remove(0),
            (_, true) => node_of("Union materialize with deduplication", parts),
            (_, false) => node_of("Append", parts),
        };
        if let Some(order) = &derived.order {
            let columns = &derived.definition.columns;
            let order = columns_text(order, |column| columns[column].name.clone());
            node = PlanNode::line(format!("Sort: {order}"), Some(node));
        }
        Ok(Some(self.limited((&derived.limit, &derived.offset), node)))
    }

    fn over_rows(&mut self, query: &OverRows, block: Block<'_>) -> Result<Option<PlanNode>> {
        let query = match self.is_tried {
            true => query.that_would_run(self.session, self.parameters)?,
            false => Some(query),
        };
        let Some(query) = query else {
            return Ok(None);
        };
        let Some(mut rows) = self.one_join(&query.rows, block)? else {
            return Ok(None);
        };
        if let Some(row) = rows.first_table() {
            query.notes().for_each(|note| row.add(note));
        }
        let known = self.known();
        let steps = query.told_steps(&|number| known.written(number));
        // MySQL attaches a condition on joined rows to the table that is read last.
        if let (Some(condition), Some(row)) = (&steps.condition, rows.last_table()) {
            row.test_joined(condition);
        }
        let mut children = vec![rows];
        for subquery in &query.subqueries {
            let line = match subquery.is_exists {
                true => "EXISTS (runs for each row)",
                false => "Value of a subquery that runs for each row",
            };
            let kind = match subquery.outer.is_empty() {
                true => "SUBQUERY",
                false => "DEPENDENT SUBQUERY",
            };
            let columns = subquery.outer.iter();
            let columns = columns.filter_map(|(from, column)| query.rows.column(*from, *column));
            let columns: Vec<OuterColumn> = columns.collect();
            let first = subquery.plan.parameters.saturating_sub(columns.len());
            let before = std::mem::replace(&mut self.of_row, (first, columns));
            let node = self.subquery(subquery, line, kind);
            self.of_row = before;
            let Some(node) = node? else {
                return Ok(None);
            };
            children.push(node);
        }
        let text = match steps.texts.is_empty() {
            true => "Select list over the rows".to_string(),
            false => format!(
                "Operators over the rows, in one batch: {}",
                steps.texts.join("; ")
            ),
        };
        let node = node_of(&text, children);
        Ok(Some(self.limited((&query.limit, &query.offset), node)))
    }

    fn limited(
        &self,
        (limit, offset): (&Option<Operand>, &Option<Operand>),
        node: PlanNode,
    ) -> PlanNode {
        if !self.knows(limit.as_ref()) || !self.knows(offset.as_ref()) {
            return PlanNode::line("Limit", Some(node));
        }
        let count = |operand: &Option<Operand>| {
            let count = row_count(operand.as_ref(), self.parameters, u64::MAX)?;
            usize::try_from(count).ok()
        };
        match limit {
            Some(_) => {
                let skip = offset.as_ref().and_then(|_| count(offset)).unwrap_or(0);
                PlanNode::limit((skip, count(limit)), node)
            }
            None => node,
        }
    }

    fn knows(&self, operand: Option<&Operand>) -> bool {
        match operand {
            None | Some(Operand::Constant(_)) => true,
            Some(Operand::Parameter(number)) => *number < self.parameters.len(),
            Some(Operand::Outer(_)) => false,
        }
    }

    /// Rows of an access, by an estimate of its table as it is now.
    fn expected_rows(&self, access: &Access, read: &ReadIn<'_>) -> Result<Option<u64>> {
        match self.session.borrow_for_read(read.table, false)? {
            Some(_guard) => access.expected_rows(read),
            None => Ok(None),
        }
    }
}

impl Joined {
    /// How EXPLAIN names one of its columns.
    fn column(&self, column: usize) -> OuterColumn {
        let definition = self.source.definition();
        let name = format!("{}.{}", self.alias, definition.columns[column].name);
        OuterColumn {
            with_database: match self.source.table() {
                Some(_) => format!("{}.{name}", definition.database),
                None => name.clone(),
            },
            name,
        }
    }
}

impl Join {
    /// The same of the table at a place of the FROM.
    fn column(&self, from: usize, column: usize) -> Option<OuterColumn> {
        let mut tables = self.tables.iter();
        let joined = tables.find(|joined| joined.from == from)?;
        Some(joined.column(column))
    }
}

/// What MySQL calls the index of a derived table.
const AUTO_KEY: &str = "<auto_key0>";

fn node_of(text: &str, children: Vec<PlanNode>) -> PlanNode {
    PlanNode {
        children,
        ..PlanNode::line(text, None)
    }
}

fn aggregate(columns: &[ColumnMeta], rows: PlanNode) -> PlanNode {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    PlanNode::line(format!("Aggregate: {}", names.join(", ")), Some(rows))
}

fn item_text(name: String, item: OrderItem) -> String {
    match item.descending {
        true => format!("{name} DESC"),
        false => name,
    }
}

fn columns_text(key: &SortKey, name: impl Fn(usize) -> String) -> String {
    let items = key.items().iter();
    let texts = items.map(|item| item_text(name(item.column), *item));
    texts.collect::<Vec<_>>().join(", ")
}

fn items_text(
    items: impl Iterator<Item = (usize, OrderItem)>,
    name: impl Fn(usize, usize) -> String,
) -> String {
    let texts = items.map(|(place, item)| item_text(name(place, item.column), item));
    texts.collect::<Vec<_>>().join(", ")
}
