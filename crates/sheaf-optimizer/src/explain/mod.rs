//! EXPLAIN in MySQL's columns.
//!
//! The rows are made where the plan is made. Code that builds a scan or a keyed join writes the row of that table from
//! the specification that it hands to the access method. Code that adds a sort or a hash table notes it there.
//!
//! One difference from MySQL: "Using where" and "Using index condition" stand only where a condition is tested. MySQL
//! also shows them for conditions that the key ranges say completely.
//!
//! These values say what goes on inside a scan or a join ("Using jumps" and "May switch" are Sheaf's own):
//!
//! - "Using jumps": inside the ranges the walk jumps over entries that cannot match. Conditions that the jumps say
//!   completely are not tested again, and the parts that they restrict count in `key_len`.
//! - "Using index for skip scan": the same where the first part is not bound.
//! - "May switch to k": once the plan has spent what the one by key k would cost, that one runs in its place.
//! - "May switch to hash join": once lookups have spent the limit, the rest of a keyed join is done without lookups.
//!
//! | file | what it holds |
//! |---|---|
//! | [`explanation`] | a plan as all formats print it |
//! | [`plan_node`] | its tree: nodes with their lines, and their rows of the table |
//! | [`tree`] | the nodes of a plan of operators |
//! | [`tree_text`] | FORMAT=TREE and EXPLAIN ANALYZE: the nodes, one a line |
//! | [`nested_json`] | FORMAT=JSON: the rows of the table as MySQL 8 nests them |
//! | [`notes`] | what the planner knew and estimated of each node |
//! | [`sql_text`] | expressions of a typed plan as SQL |
//! | [`physical_order`] | the order of a sort that no statement has written |
//! | [`hidden_names`] | columns of functional key parts as their expressions |
//! | [`reads`] | how many tables are read without a key |
//! | [`table_detail`] | what trees say of a table beyond its row of the table |

pub(crate) mod explanation;
pub(crate) mod hidden_names;
pub(crate) mod nested_json;
pub(crate) mod notes;
mod physical_order;
pub(crate) mod plan_node;
pub(crate) mod reads;
pub(crate) mod sql_text;
pub(crate) mod table_detail;
pub(crate) mod tree;
mod tree_text;

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_exec::operator::node_id::NodeId;

use crate::explain::table_detail::TableDetail;

/// One row of EXPLAIN's table. `None` is shown as NULL.
#[derive(Debug, Clone, Default)]
pub struct ExplainRow {
    /// The node that reads the table.
    pub node: Option<NodeId>,
    /// Among the rows of a plan of operators: a hash join reads first what it keeps in memory, whatever the order of
    /// its lines.
    place: usize,
    /// Number of the SELECT; `None` for the row of a UNION's result.
    pub id: Option<u64>,
    pub select_type: String,
    pub table: Option<String>,
    /// The query block that a derived table is.
    pub(crate) derived: Option<u64>,
    pub partitions: Option<String>,
    /// system, const, eq_ref, ref, range, index or ALL, best first.
    pub type_: Option<String>,
    pub possible_keys: Option<String>,
    pub key: Option<String>,
    /// Bytes of the key that the ranges use, as MySQL counts them.
    pub key_len: Option<String>,
    pub ref_: Option<String>,
    /// Estimated rows read, per row of the tables before it.
    pub rows: Option<u64>,
    /// Estimated percentage of them that pass the conditions.
    pub filtered: Option<f64>,
    /// The notes, separated by "; ".
    pub extra: Option<String>,
    notes: BTreeSet<ExtraNote>,
    /// The plan that takes the place of this one if it turns out badly.
    switches_to: Option<String>,
    /// What lookups may cost before that, in microseconds.
    pub(crate) switch_limit_us: Option<f64>,
    /// Estimated cost of reading the table, and of the plan up to here, in microseconds.
    pub(crate) cost_us: Option<f64>,
    pub(crate) prefix_cost_us: Option<f64>,
    /// Estimated rows of the plan up to here.
    pub(crate) produced: Option<f64>,
    pub(crate) detail: Option<Arc<TableDetail>>,
    /// Of a plan that describes itself: what it tests.
    pub conditions: Option<RowConditions>,
}

/// What is tested while a table is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowConditions {
    /// On entries of an index, before rows are fetched.
    pub on_entries: Option<String>,
    pub on_rows: Option<String>,
}

/// What is taken to be spent on a row after it was read, in microseconds: what MySQL calls row_evaluate_cost.
const ROW_EVALUATION_US: f64 = 0.05;

/// What is shown for a plan that another one may replace.
pub(crate) const MAY_SWITCH: &str = "May switch to";

/// What Extra can say, in the order in which it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExtraNote {
    NoTablesUsed,
    ImpossibleWhere,
    UsingIndexCondition,
    UsingJumps,
    UsingIndexForSkipScan,
    UsingIndexForGroupBy,
    TablesOptimizedAway,
    UsingUnion,
    UsingSortUnion,
    UsingIntersect,
    UsingWhere,
    UsingMrr,
    NotExists,
    BackwardIndexScan,
    UsingIndex,
    BatchedKeyAccess,
    JoinBufferHash,
    JoinBufferMerge,
    JoinBufferNestedLoop,
    FirstMatch,
    Recursive,
    /// The rows of a document. To MySQL they lie in a temporary table.
    TableFunction,
    /// Groups in a hash table.
    UsingTemporary,
    UsingFilesort,
    MaySwitch,
    /// The statement runs without operators.
    Direct,
}

/// Notes that FORMAT=JSON has members for, and FORMAT=TREE lines or words.
const TOLD: &[ExtraNote] = &[
    ExtraNote::NoTablesUsed,
    ExtraNote::UsingIndexCondition,
    ExtraNote::UsingWhere,
    ExtraNote::UsingMrr,
    ExtraNote::NotExists,
    ExtraNote::BackwardIndexScan,
    ExtraNote::UsingIndex,
    ExtraNote::BatchedKeyAccess,
    ExtraNote::JoinBufferHash,
    ExtraNote::JoinBufferMerge,
    ExtraNote::JoinBufferNestedLoop,
    ExtraNote::FirstMatch,
    ExtraNote::TableFunction,
    ExtraNote::UsingTemporary,
    ExtraNote::UsingFilesort,
    ExtraNote::Direct,
];

impl ExtraNote {
    fn text(self) -> &'static str {
        match self {
            ExtraNote::NoTablesUsed => "No tables used",
            ExtraNote::ImpossibleWhere => "Impossible WHERE",
            ExtraNote::UsingIndexCondition => "Using index condition",
            ExtraNote::UsingJumps => "Using jumps",
            ExtraNote::UsingIndexForSkipScan => "Using index for skip scan",
            ExtraNote::UsingIndexForGroupBy => "Using index for group-by",
            ExtraNote::TablesOptimizedAway => "Select tables optimized away",
            ExtraNote::UsingUnion => "Using union",
            ExtraNote::UsingSortUnion => "Using sort_union",
            ExtraNote::UsingIntersect => "Using intersect",
            ExtraNote::UsingWhere => "Using where",
            ExtraNote::UsingMrr => "Using MRR",
            ExtraNote::NotExists => "Not exists",
            ExtraNote::BackwardIndexScan => "Backward index scan",
            ExtraNote::UsingIndex => "Using index",
            ExtraNote::BatchedKeyAccess => "Using join buffer (Batched Key Access)",
            ExtraNote::JoinBufferHash => "Using join buffer (hash join)",
            ExtraNote::JoinBufferMerge => "Using sort-merge join",
            ExtraNote::JoinBufferNestedLoop => "Using join buffer (Block Nested Loop)",
            ExtraNote::FirstMatch => "FirstMatch",
            ExtraNote::Recursive => "Recursive",
            ExtraNote::TableFunction => "Table function: json_table; Using temporary",
            ExtraNote::UsingTemporary => "Using temporary",
            ExtraNote::UsingFilesort => "Using filesort",
            ExtraNote::MaySwitch => MAY_SWITCH,
            ExtraNote::Direct => "Direct",
        }
    }
}

impl ExplainRow {
    /// The row of a query block without tables.
    pub fn no_tables(select_type: &str) -> ExplainRow {
        let mut row = ExplainRow {
            id: Some(1),
            select_type: select_type.to_string(),
            ..ExplainRow::default()
        };
        row.add(ExtraNote::NoTablesUsed);
        row
    }

    pub fn with_id(self, id: u64) -> ExplainRow {
        ExplainRow {
            id: Some(id),
            ..self
        }
    }

    /// The row of a table that an INSERT or REPLACE (`kind`) fills.
    pub(crate) fn inserted(kind: &str, table: &str) -> ExplainRow {
        ExplainRow::table(1, kind, table, "ALL")
    }

    /// The row of a table in a query block by its number and its kind.
    pub fn table(id: u64, select_type: &str, name: &str, type_: &str) -> ExplainRow {
        ExplainRow {
            id: Some(id),
            select_type: select_type.to_string(),
            table: Some(name.to_string()),
            type_: Some(type_.to_string()),
            ..ExplainRow::default()
        }
    }

    /// The row of a derived table: another query block.
    pub fn derived(id: u64, select_type: &str, block: u64, type_: &str) -> ExplainRow {
        ExplainRow {
            derived: Some(block),
            ..ExplainRow::table(id, select_type, &format!("<derived{block}>"), type_)
        }
    }

    /// Names a key that is used although no condition binds its first part.
    pub fn add_possible_key(&mut self, name: &str) {
        let keys = self.possible_keys.get_or_insert_default();
        if !keys.split(',').any(|known| known == name) {
            if !keys.is_empty() {
                keys.push(',');
            }
            keys.push_str(name);
        }
    }

    /// Names the keys, too, that another plan of the statement could use for the same table.
    pub fn name_keys_of(&mut self, other: &ExplainRow) {
        let own = std::mem::replace(&mut self.possible_keys, other.possible_keys.clone());
        for key in own.iter().flat_map(|own| own.split(',')) {
            self.add_possible_key(key);
        }
    }

    pub fn add(&mut self, note: ExtraNote) {
        self.notes.insert(note);
        let text = |note: &ExtraNote| match (note, &self.key) {
            (
                ExtraNote::UsingUnion | ExtraNote::UsingSortUnion | ExtraNote::UsingIntersect,
                Some(keys),
            ) => format!("{}({keys})", note.text()),
            (ExtraNote::MaySwitch, _) => {
                let plan = self.switches_to.as_deref().unwrap_or_default();
                format!("{} {plan}", note.text())
            }
            _ => note.text().to_string(),
        };
        let texts: Vec<_> = self.notes.iter().map(text).collect();
        self.extra = Some(texts.join("; "));
    }

    /// Rows of the table, joined with those before them, are tested by a condition, too.
    pub fn test_joined(&mut self, condition: &str) {
        if self.table.is_none() {
            return;
        }
        self.add(ExtraNote::UsingWhere);
        self.filtered = None;
        let on_rows = &mut self.conditions.get_or_insert_default().on_rows;
        *on_rows = Some(match on_rows.take() {
            None => condition.to_string(),
            Some(own) => format!("({own} and {condition})"),
        });
    }

    /// Another plan takes the place of this one if it turns out badly.
    pub(crate) fn may_switch_to(&mut self, plan: &str) {
        self.switches_to = Some(plan.to_string());
        self.add(ExtraNote::MaySwitch);
    }

    /// Lookups are replaced by a hash join once they have cost so much.
    pub(crate) fn may_switch_to_hash_join(&mut self, limit_us: f64) {
        self.switch_limit_us = Some(limit_us);
        self.may_switch_to("hash join");
    }

    pub(crate) fn has(&self, note: ExtraNote) -> bool {
        self.notes.contains(&note)
    }

    /// No rows are fetched for the entries of the index.
    pub(crate) fn is_index_only(&self) -> bool {
        self.has(ExtraNote::UsingIndex)
    }

    /// Why a query block has no table. The document says elsewhere that a statement runs without operators.
    pub(crate) fn message(&self) -> Option<String> {
        let notes = self.notes.iter().filter(|note| **note != ExtraNote::Direct);
        let texts: Vec<_> = notes.map(|note| note.text()).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// What Extra says and the trees have no words of their own for.
    pub(crate) fn other_notes(&self) -> Vec<&str> {
        let is_told = |text: &&str| {
            let mut told = TOLD.iter().flat_map(|note| note.text().split("; "));
            told.any(|told| told == *text)
        };
        let extra = self.extra.as_deref().unwrap_or_default();
        let notes = extra.split("; ").filter(|text| !text.is_empty());
        notes.filter(|text| !is_told(text)).collect()
    }

    /// Whether another row's table is read as this one's.
    fn is_read_as(&self, other: &ExplainRow) -> bool {
        self.id == other.id
            && self.table == other.table
            && self.type_ == other.type_
            && self.key == other.key
            && self.key_len == other.key_len
    }

    /// Takes over what the optimizer estimates of a table that is read the same way.
    fn take_estimates(&mut self, same: &ExplainRow) {
        self.rows = same.rows;
        self.filtered = same.filtered;
        self.cost_us = same.cost_us;
        self.prefix_cost_us = same.prefix_cost_us;
        self.produced = same.produced;
        self.detail = same.detail.clone();
    }

    pub(crate) fn cost(&mut self, cost_us: f64, prefix_us: f64, produced: f64) {
        self.cost_us = Some(cost_us);
        self.prefix_cost_us = Some(prefix_us);
        self.produced = Some(produced);
    }

    /// The share of the table's cost that is handing its rows on, in microseconds.
    pub(crate) fn eval_cost_us(&self) -> f64 {
        let cost_us = self.cost_us.unwrap_or_default();
        (self.produced.unwrap_or_default() * ROW_EVALUATION_US).min(cost_us)
    }

    /// Bytes of the rows that the plan up to here reads of this table, as MySQL abbreviates them.
    pub(crate) fn data_read_per_join(&self) -> Option<String> {
        let mut amount = self.produced? * self.detail.as_ref()?.row_bytes();
        let mut units = ["", "K", "M", "G", "T"].into_iter();
        let mut unit = units.next()?;
        while amount >= 1024.0 {
            let Some(bigger) = units.next() else {
                break;
            };
            (amount, unit) = (amount / 1024.0, bigger);
        }
        Some(format!("{amount:.0}{unit}"))
    }

    /// `rows` and `filtered` from estimates: so many entries read, so many rows left.
    pub(crate) fn estimate(&mut self, read: f64, left: f64) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate, at least 1"
        )]
        let rows = read.round().max(1.0) as u64;
        self.rows = Some(rows);
        let share = if read > 0.0 {
            (left / read * 100.0).clamp(0.01, 100.0)
        } else {
            100.0
        };
        self.filtered = Some((share * 100.0).round() / 100.0);
    }
}

/// How a row of EXPLAIN's table says that its table is read: `Index lookup on t using k`.
pub fn access_words(row: &ExplainRow) -> String {
    let table = row.table.as_deref().unwrap_or_default();
    match (row.type_.as_deref(), row.key.as_deref()) {
        (_, None) => format!("Table scan on {table}"),
        (Some("const" | "eq_ref" | "ref"), Some(key)) => {
            format!("{} on {table} using {key}", lookup_words(row))
        }
        // The note names the indexes and what is made of them.
        (Some("index_merge"), Some(_)) => format!("Index merge on {table}"),
        (Some("range"), Some(key)) => {
            format!("{}ndex range scan on {table} using {key}", covering(row))
        }
        (_, Some(key)) => format!("{}ndex scan on {table} using {key}", covering(row)),
    }
}

/// How a lookup by keys is called: by its type, and whether the index has all columns.
fn lookup_words(row: &ExplainRow) -> &'static str {
    match (row.type_.as_deref(), row.is_index_only()) {
        (Some("const" | "eq_ref"), false) => "Single-row index lookup",
        (Some("const" | "eq_ref"), true) => "Single-row covering index lookup",
        (Some("range"), false) => "Index range lookup",
        (Some("range"), true) => "Covering index range lookup",
        (_, false) => "Index lookup",
        (_, true) => "Covering index lookup",
    }
}

/// How much of a table a read of a type is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    All,
    Ranges,
    /// What keys of other tables lead to.
    Keys,
    /// One row by its key, read before all other tables.
    OneRow,
}

impl Reach {
    /// Of a type of access in EXPLAIN's table.
    fn of(type_: &str) -> Reach {
        match type_ {
            "ALL" | "index" => Reach::All,
            "range" | "index_merge" => Reach::Ranges,
            "const" | "system" => Reach::OneRow,
            _ => Reach::Keys,
        }
    }
}

/// The first letter of "Index", after "Covering" if the index has all columns.
fn covering(row: &ExplainRow) -> &'static str {
    match row.is_index_only() {
        true => "Covering i",
        false => "I",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_in_a_fixed_order_and_once() {
        let mut row = ExplainRow::default();
        for note in [
            ExtraNote::UsingFilesort,
            ExtraNote::UsingIndexCondition,
            ExtraNote::UsingMrr,
            ExtraNote::UsingMrr,
        ] {
            row.add(note);
        }
        assert_eq!(
            row.extra.as_deref(),
            Some("Using index condition; Using MRR; Using filesort")
        );
        assert!(row.other_notes().is_empty());
        row.add(ExtraNote::Recursive);
        row.add(ExtraNote::TableFunction);
        assert_eq!(row.other_notes(), ["Recursive"]);
    }

    #[test]
    fn estimates_are_rounded_as_mysql_shows_them() {
        let mut row = ExplainRow::default();
        row.estimate(1000.4, 111.1);
        assert_eq!((row.rows, row.filtered), (Some(1000), Some(11.11)));
        row.estimate(0.2, 0.2);
        assert_eq!((row.rows, row.filtered), (Some(1), Some(100.0)));
    }
}
