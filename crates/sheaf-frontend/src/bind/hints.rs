//! The query blocks of a statement, the tables of each, and the hints that find their tables and blocks by name.
//!
//! ```text
//!   SELECT /*+ QB_NAME(q) BKA(t@q) INDEX(u@in i) */ … FROM t WHERE t.a IN (SELECT /*+ QB_NAME(in) */ u.a FROM u)
//!   `--------------- block 1 = q: t ------------------------------------'   `------ block 2 = in: u --------------'
//! ```
//!
//! A hint may name a block that comes after it. So blocks and tables are recorded while the pass walks the statement,
//! and hints are resolved at its end. Those on tables go to their sources ([`TableHints`]), those on blocks to all
//! sources of the block ([`BlockHints`]). A hint that cannot be resolved is a warning. So is a second hint about the
//! same thing, or one that contradicts the first; the first of them counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use datafusion_expr::TableSource;
use sheaf_exec::hints::{
    BlockHints, JoinOrderHint, JoinOrderKind, SubqueryHint, TableHints, Toggle,
};
use sheaf_exec::{IndexHints, SheafTableSource};
use sheaf_types::error::codes::{self, ErrorCode};
use sheaf_types::text::quoting::quoted_name;
use sqlparser::ast::Select;

use crate::parser::hint::{Hint, HintTable, HintWarning, IndexSwitch, TableSwitch, hints_of};

/// A table as it stands in a FROM.
struct BlockTable {
    alias: String,
    /// References to stored tables that it stands for: one, or those of a derived table.
    references: Vec<u32>,
    derived: bool,
}

struct QueryBlock {
    /// The number of the view that it stands in, 0 for the statement itself; line and column of its SELECT.
    place: (u64, u64, u64),
    hints: Vec<Hint>,
    /// SELECT STRAIGHT_JOIN.
    straight: bool,
    /// The tables on both sides of each `left STRAIGHT_JOIN right`, by position in `tables`.
    straight_joins: Vec<[Range<usize>; 2]>,
    tables: Vec<BlockTable>,
}

/// The blocks seen so far.
pub struct QueryBlocks {
    /// Derived tables are merged unless a hint says otherwise; false: the other way round.
    merges_derived: bool,
    /// How many views have been opened. Their blocks come behind those of the statement.
    views: u64,
    /// The one whose query is bound; 0: the statement itself.
    view: u64,
    blocks: Vec<QueryBlock>,
    /// The innermost block whose binding has begun and not ended.
    current: Option<usize>,
    /// The block of each reference.
    block_of: Vec<Option<usize>>,
    warnings: Vec<HintWarning>,
}

/// The block around the current one: to be given back to [`QueryBlocks::close`].
pub struct Enclosing {
    block: Option<usize>,
    view: u64,
}

impl QueryBlocks {
    pub fn new(merges_derived: bool) -> QueryBlocks {
        QueryBlocks {
            merges_derived,
            views: 0,
            view: 0,
            blocks: Vec::new(),
            current: None,
            block_of: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Begins a block. `sql` is the statement's text.
    pub fn open(&mut self, select: &Select, sql: &str) -> Enclosing {
        let (hints, warnings) = hints_of(&select.optimizer_hints, sql);
        self.warnings.extend(warnings);
        let start = select.select_token.0.span.start;
        let modifiers = select.select_modifiers.as_ref();
        let enclosing = self.current.replace(self.blocks.len());
        self.blocks.push(QueryBlock {
            place: (self.view, start.line, start.column),
            hints,
            straight: modifiers.is_some_and(|modifiers| modifiers.straight_join),
            straight_joins: Vec::new(),
            tables: Vec::new(),
        });
        Enclosing {
            block: enclosing,
            view: self.view,
        }
    }

    pub fn close(&mut self, enclosing: Enclosing) {
        self.current = enclosing.block;
        self.view = enclosing.view;
    }

    /// The query of a view comes: its blocks are none of the statement's.
    pub fn leave_statement(&mut self) -> Enclosing {
        self.views += 1;
        Enclosing {
            block: self.current.take(),
            view: std::mem::replace(&mut self.view, self.views),
        }
    }

    fn current(&mut self) -> Option<&mut QueryBlock> {
        self.current.map(|current| &mut self.blocks[current])
    }

    /// A reference to a stored table; its number is the count of those before it.
    pub fn add_table(&mut self, alias: &str) {
        let number = self.block_of.len() as u32;
        self.block_of.push(self.current);
        self.add(alias, vec![number], false);
    }

    /// A derived table, which began when there were `first` references.
    pub fn add_derived(&mut self, alias: &str, first: usize) {
        let references = (first as u32..self.block_of.len() as u32).collect();
        self.add(alias, references, true);
    }

    /// A derived table that has these references, and was bound before it is named.
    pub fn add_bound_derived(&mut self, alias: &str, references: Range<usize>) {
        let references = (references.start as u32..references.end as u32).collect();
        self.add(alias, references, true);
    }

    fn add(&mut self, alias: &str, references: Vec<u32>, derived: bool) {
        if let Some(block) = self.current() {
            block.tables.push(BlockTable {
                alias: alias.to_string(),
                references,
                derived,
            });
        }
    }

    /// Tables of the current block so far.
    pub fn tables_so_far(&mut self) -> usize {
        self.current().map_or(0, |block| block.tables.len())
    }

    /// `left STRAIGHT_JOIN right`, by positions among the tables of the current block.
    pub fn add_straight_join(&mut self, left: Range<usize>, right: Range<usize>) {
        if let Some(block) = self.current() {
            block.straight_joins.push([left, right]);
        }
    }

    /// Gives every reference its hints. What comes back is for the client.
    pub fn resolve(mut self, references: &mut [Arc<dyn TableSource>]) -> Vec<HintWarning> {
        let merges = self.merges_derived;
        let is_plain = |block: &QueryBlock| {
            let has_derived = block.tables.iter().any(|table| table.derived);
            (merges || !has_derived)
                && block.hints.is_empty()
                && !block.straight
                && block.straight_joins.is_empty()
        };
        let warnings = std::mem::take(&mut self.warnings);
        if self.blocks.iter().all(is_plain) {
            return warnings;
        }
        Resolver::new(&self, references, warnings).run()
    }
}

fn source(reference: &Arc<dyn TableSource>) -> Option<&SheafTableSource> {
    reference.downcast_ref()
}

/// The pass over the hints of all blocks.
struct Resolver<'a> {
    blocks: &'a [QueryBlock],
    block_of: &'a [Option<usize>],
    merges_derived: bool,
    references: &'a mut [Arc<dyn TableSource>],
    /// Blocks in the order of the text.
    order: Vec<usize>,
    /// Names of the blocks.
    names: Vec<String>,
    tables: Vec<TableHints>,
    block_hints: Vec<BlockHints>,
    /// What is said about all tables of a block.
    block_switches: Vec<BTreeMap<TableSwitch, bool>>,
    /// What has been said already.
    said: BTreeSet<String>,
    warnings: Vec<HintWarning>,
}

impl<'a> Resolver<'a> {
    fn new(
        blocks: &'a QueryBlocks,
        references: &'a mut [Arc<dyn TableSource>],
        warnings: Vec<HintWarning>,
    ) -> Resolver<'a> {
        let QueryBlocks {
            merges_derived,
            blocks,
            block_of,
            ..
        } = blocks;
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        order.sort_by_key(|block| blocks[*block].place);
        let mut block_hints = vec![BlockHints::default(); blocks.len()];
        for (number, block) in (1..).zip(&order) {
            block_hints[*block].number = number;
        }
        let names = block_hints
            .iter()
            .map(|hints| format!("select#{}", hints.number));
        let tables = references.iter().map(|reference| {
            source(reference).map_or_else(TableHints::default, |source| source.hints.clone())
        });
        Resolver {
            names: names.collect(),
            tables: tables.collect(),
            block_switches: vec![BTreeMap::new(); blocks.len()],
            said: BTreeSet::new(),
            merges_derived: *merges_derived,
            blocks,
            block_of,
            references,
            order,
            block_hints,
            warnings,
        }
    }

    fn run(mut self) -> Vec<HintWarning> {
        let order = self.order.clone();
        for block in &order {
            self.name_block(*block);
        }
        if !self.merges_derived {
            for block in &order {
                self.merge_all(*block, false);
            }
        }
        for block in order {
            let blocks = self.blocks;
            for hint in &blocks[block].hints {
                self.hint(block, hint);
            }
            self.straight_joins(block);
        }
        self.give_out();
        self.warnings
    }

    fn warn(&mut self, code: ErrorCode, message: String) {
        let code = code.number();
        self.warnings.push(HintWarning { code, message });
    }

    fn conflict(&mut self, hint: &Hint) {
        let message = format!("Hint {hint} is ignored as conflicting/duplicated");
        self.warn(codes::WARN_CONFLICTING_HINT, message);
    }

    /// Notes that something is said. False, with a warning, if it has been already.
    fn say(&mut self, about: String, hint: &Hint) -> bool {
        let is_new = self.said.insert(about);
        if !is_new {
            self.conflict(hint);
        }
        is_new
    }

    /// QB_NAME.
    fn name_block(&mut self, block: usize) {
        let mut is_named = false;
        let blocks = self.blocks;
        for hint in &blocks[block].hints {
            let Hint::QueryBlockName(name) = hint else {
                continue;
            };
            let is_taken = self
                .names
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name));
            if is_named || is_taken {
                self.conflict(hint);
            } else {
                self.names[block] = name.clone();
                is_named = true;
            }
        }
    }

    /// The block that a hint in `own` means; warning 3127 if there is none.
    fn find_block(&mut self, own: usize, name: Option<&str>, hint: &Hint) -> Option<usize> {
        let Some(name) = name else {
            return Some(own);
        };
        let mut names = self.names.iter();
        let found = names.position(|known| known.eq_ignore_ascii_case(name));
        if found.is_none() {
            let hint = hint.name();
            let message = format!(
                "Query block name {} is not found for {hint} hint",
                quoted_name(name)
            );
            self.warn(codes::WARN_UNKNOWN_QB_NAME, message);
        }
        found
    }

    /// The table that a hint in `own` means: its block, and its position there. Warnings 3127 and 3128.
    fn find_table(&mut self, own: usize, table: &HintTable, hint: &Hint) -> Option<(usize, usize)> {
        let block = self.find_block(own, table.block.as_deref(), hint)?;
        let mut tables = self.blocks[block].tables.iter();
        let found = tables.position(|known| known.alias == table.name);
        if found.is_none() {
            self.unresolved(block, &table.name, None, hint);
        }
        Some((block, found?))
    }

    fn unresolved(&mut self, block: usize, table: &str, index: Option<&str>, hint: &Hint) {
        let index = index.map_or(String::new(), |index| format!(" {}", quoted_name(index)));
        let message = format!(
            "Unresolved name {}@{}{index} for {} hint",
            quoted_name(table),
            quoted_name(&self.names[block]),
            hint.name()
        );
        self.warn(codes::UNRESOLVED_HINT_NAME, message);
    }

    fn hint(&mut self, own: usize, hint: &Hint) {
        match hint {
            Hint::Table {
                what,
                on,
                block,
                tables,
            } => {
                if *what == TableSwitch::DerivedConditionPushdown {
                    self.without_effect(hint);
                } else if tables.is_empty() {
                    self.switch_block(own, (*what, *on), block.as_deref(), hint);
                } else {
                    for table in tables {
                        self.switch_table(own, (*what, *on), table, hint);
                    }
                }
            }
            Hint::Index {
                what: IndexSwitch::RangeOptimization,
                ..
            } => self.without_effect(hint),
            Hint::Index {
                what,
                on,
                table,
                indexes,
            } => self.index(own, (*what, *on), (table, indexes), hint),
            Hint::JoinOrder {
                kind,
                block,
                tables,
            } => self.join_order(own, *kind, block.as_deref(), tables, hint),
            Hint::JoinFixedOrder { block } => {
                if let Some(block) = self.find_block(own, block.as_deref(), hint)
                    && self.say(format!("fixed order {block}"), hint)
                {
                    self.fix_order(block, hint.to_string());
                }
            }
            Hint::Semijoin {
                on,
                block,
                strategies,
            } => {
                let subquery = match (on, strategies.is_empty()) {
                    (true, _) => SubqueryHint {
                        semijoin: Some(true),
                        only: strategies.clone(),
                        never: Vec::new(),
                    },
                    (false, true) => SubqueryHint {
                        semijoin: Some(false),
                        ..SubqueryHint::default()
                    },
                    (false, false) => SubqueryHint {
                        never: strategies.clone(),
                        ..SubqueryHint::default()
                    },
                };
                self.subquery(own, block.as_deref(), subquery, hint);
            }
            Hint::Subquery { block, strategy } => {
                let subquery = SubqueryHint {
                    semijoin: Some(false),
                    only: vec![*strategy],
                    never: Vec::new(),
                };
                self.subquery(own, block.as_deref(), subquery, hint);
            }
            Hint::MaxExecutionTime { .. } if self.block_hints[own].number > 1 => self.warn(
                codes::WARN_UNSUPPORTED_MAX_EXECUTION_TIME,
                "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only"
                    .to_string(),
            ),
            // The names of blocks are known, and the rest is the session's.
            Hint::QueryBlockName(_)
            | Hint::SetVariable { .. }
            | Hint::MaxExecutionTime { .. }
            | Hint::ResourceGroup(_) => {}
        }
    }

    fn without_effect(&mut self, hint: &Hint) {
        self.warn(
            codes::NOT_SUPPORTED_YET,
            format!("The hint {} has no effect yet", hint.name()),
        );
    }

    fn switch_block(
        &mut self,
        own: usize,
        (what, on): (TableSwitch, bool),
        block: Option<&str>,
        hint: &Hint,
    ) {
        let Some(block) = self.find_block(own, block, hint) else {
            return;
        };
        if !self.say(format!("{what:?} {block}"), hint) {
            return;
        }
        if what == TableSwitch::Merge {
            self.merge_all(block, on);
        } else {
            self.block_switches[block].insert(what, on);
        }
    }

    fn switch_table(
        &mut self,
        own: usize,
        (what, on): (TableSwitch, bool),
        table: &HintTable,
        hint: &Hint,
    ) {
        let Some((block, position)) = self.find_table(own, table, hint) else {
            return;
        };
        if !self.say(format!("{what:?} {block} {position}"), hint) {
            return;
        }
        if what == TableSwitch::Merge {
            return self.merge(block, position, on);
        }
        let table = &self.blocks[block].tables[position];
        if let (&[reference], false) = (table.references.as_slice(), table.derived) {
            let hints = &mut self.tables[reference as usize];
            match what {
                TableSwitch::BatchedKeyAccess => hints.batched_key_access = Some(on),
                _ => hints.hash_join = Some(on),
            }
        }
    }

    /// MERGE and NO_MERGE of all derived tables of a block.
    fn merge_all(&mut self, block: usize, on: bool) {
        for table in 0..self.blocks[block].tables.len() {
            self.merge(block, table, on);
        }
    }

    /// MERGE and NO_MERGE: what is in the derived table knows whether it stays in there.
    fn merge(&mut self, block: usize, table: usize, on: bool) {
        let table = &self.blocks[block].tables[table];
        for reference in table.references.iter().filter(|_| table.derived) {
            if let Some(inner) = self.block_of[*reference as usize] {
                self.block_hints[inner].derived = Some((table.alias.clone(), on));
            }
        }
    }

    fn index(
        &mut self,
        own: usize,
        (what, on): (IndexSwitch, bool),
        (table, indexes): (&HintTable, &[String]),
        hint: &Hint,
    ) {
        let Some((block, position)) = self.find_table(own, table, hint) else {
            return;
        };
        let found = &self.blocks[block].tables[position];
        let (&[reference], false) = (found.references.as_slice(), found.derived) else {
            return;
        };
        let reference = reference as usize;
        let Some(source) = source(&self.references[reference]) else {
            return;
        };
        let definition = &source.table.definition;
        let all: Vec<String> = std::iter::once(&definition.primary)
            .chain(&definition.secondary)
            .map(|index| index.name.clone())
            .collect();
        let (known, unknown): (Vec<String>, Vec<String>) =
            indexes.iter().cloned().partition(|index| {
                all.iter()
                    .any(|existing| existing.eq_ignore_ascii_case(index))
            });
        for index in &unknown {
            self.unresolved(block, &table.name, Some(index), hint);
        }
        if known.is_empty() && !indexes.is_empty() {
            return;
        }
        let hints = &mut self.tables[reference];
        let toggle = match what {
            IndexSwitch::MultiRangeRead => &mut hints.mrr,
            IndexSwitch::IndexCondition => &mut hints.index_condition,
            IndexSwitch::SkipScan => &mut hints.skip_scan,
            IndexSwitch::IndexMerge => &mut hints.index_merge,
            _ => return self.index_list(reference, (what, on), (known, all), hint),
        };
        if !set(toggle, &known, on) {
            self.conflict(hint);
        }
    }

    /// INDEX and its like: what USE, FORCE and IGNORE INDEX say counts no more.
    fn index_list(
        &mut self,
        reference: usize,
        (what, on): (IndexSwitch, bool),
        (named, all): (Vec<String>, Vec<String>),
        hint: &Hint,
    ) {
        let list = match (on, named.is_empty()) {
            (true, true) => IndexHints {
                force_index: all,
                ..IndexHints::default()
            },
            (true, false) => IndexHints {
                force_index: named,
                ..IndexHints::default()
            },
            (false, true) => IndexHints {
                use_index: Some(Vec::new()),
                ..IndexHints::default()
            },
            (false, false) => IndexHints {
                ignore_index: named,
                ..IndexHints::default()
            },
        };
        let purposes: &[IndexSwitch] = match what {
            IndexSwitch::Index => &[
                IndexSwitch::JoinIndex,
                IndexSwitch::OrderIndex,
                IndexSwitch::GroupIndex,
            ],
            _ => &[what],
        };
        let about = |purpose: &IndexSwitch| format!("{purpose:?} {reference}");
        if purposes.iter().any(|one| self.said.contains(&about(one))) {
            return self.conflict(hint);
        }
        self.said.extend(purposes.iter().map(about));
        let hints = &mut self.tables[reference];
        for purpose in purposes {
            let place = match purpose {
                IndexSwitch::OrderIndex => &mut hints.order_by,
                IndexSwitch::GroupIndex => &mut hints.group_by,
                _ => &mut hints.rows,
            };
            *place = list.clone();
        }
    }

    fn join_order(
        &mut self,
        own: usize,
        kind: JoinOrderKind,
        block: Option<&str>,
        tables: &[HintTable],
        hint: &Hint,
    ) {
        let Some(block) = self.find_block(own, block, hint) else {
            return;
        };
        let is_repeated = kind != JoinOrderKind::Order
            && self.block_hints[block]
                .join_orders
                .iter()
                .any(|known| known.kind == kind);
        if is_repeated || self.said.contains(&format!("fixed order {block}")) {
            return self.conflict(hint);
        }
        let mut items = Vec::with_capacity(tables.len());
        for table in tables {
            if let Some((block, position)) = self.find_table(own, table, hint) {
                items.push(self.blocks[block].tables[position].references.clone());
            }
        }
        self.block_hints[block].join_orders.push(JoinOrderHint {
            kind,
            tables: items,
            text: hint.to_string(),
        });
    }

    /// All tables of a block in the order in which they are written.
    fn fix_order(&mut self, block: usize, text: String) {
        let tables = self.blocks[block].tables.iter();
        self.block_hints[block].join_orders.push(JoinOrderHint {
            kind: JoinOrderKind::Order,
            tables: tables.map(|table| table.references.clone()).collect(),
            text,
        });
    }

    fn straight_joins(&mut self, block: usize) {
        const STRAIGHT_JOIN: &str = "STRAIGHT_JOIN";
        let entry = &self.blocks[block];
        if entry.straight {
            self.fix_order(block, STRAIGHT_JOIN.to_string());
        }
        for sides in &entry.straight_joins {
            let side = |tables: &Range<usize>| -> Vec<u32> {
                let tables = &entry.tables[tables.clone()];
                tables
                    .iter()
                    .flat_map(|table| table.references.iter().copied())
                    .collect()
            };
            self.block_hints[block].join_orders.push(JoinOrderHint {
                kind: JoinOrderKind::Order,
                tables: sides.iter().map(side).collect(),
                text: STRAIGHT_JOIN.to_string(),
            });
        }
    }

    fn subquery(&mut self, own: usize, block: Option<&str>, subquery: SubqueryHint, hint: &Hint) {
        if let Some(block) = self.find_block(own, block, hint)
            && self.say(format!("subquery {block}"), hint)
        {
            self.block_hints[block].subquery = subquery;
        }
    }

    /// Hands everything to the references' sources.
    fn give_out(&mut self) {
        let blocks: Vec<Arc<BlockHints>> = self.block_hints.drain(..).map(Arc::new).collect();
        let tables = self.tables.drain(..).zip(self.references.iter_mut());
        for ((mut hints, reference), block) in tables.zip(self.block_of) {
            let Some(block) = *block else {
                continue;
            };
            let switch = |what| self.block_switches[block].get(&what).copied();
            hints.batched_key_access = hints
                .batched_key_access
                .or_else(|| switch(TableSwitch::BatchedKeyAccess));
            hints.hash_join = hints.hash_join.or_else(|| switch(TableSwitch::HashJoin));
            hints.block = Arc::clone(&blocks[block]);
            if let Some(source) = source(reference) {
                *reference = Arc::new(source.with_hints(hints));
            }
        }
    }
}

/// False if it was said already of one of the indexes, or of the table if there are none.
fn set(toggle: &mut Toggle, indexes: &[String], on: bool) -> bool {
    if indexes.is_empty() {
        let is_new = toggle.table.is_none();
        toggle.table = toggle.table.or(Some(on));
        return is_new;
    }
    let mut all_new = true;
    for index in indexes {
        let is_known = toggle
            .indexes
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(index));
        if is_known {
            all_new = false;
        } else {
            toggle.indexes.push((index.clone(), on));
        }
    }
    all_new
}
