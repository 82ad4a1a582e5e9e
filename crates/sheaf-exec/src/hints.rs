//! What a statement tells the planner about a table reference and about a query block.
//!
//! Two grammars end up here: `USE | FORCE | IGNORE INDEX` behind a table's name, and the optimizer hints of a comment,
//! `SELECT /*+ MRR(t) JOIN_ORDER(t, u) */` (MySQL's manual, "Index Hints" and "Optimizer Hints"). The pass that lowers
//! the statement resolves names. So what is kept here is known to exist, and nothing here is ever an error.
//!
//! A hint overrides `optimizer_switch`. A hint for an index overrides one for its table, and a hint for a table one for
//! its query block.

use std::sync::Arc;

/// The indexes that may, must and must not serve one purpose, by their names ("PRIMARY" is the clustered index).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexHints {
    /// USE INDEX: only these are candidates, besides a table scan. `Some` of an empty list means "no index".
    pub use_index: Option<Vec<String>>,
    /// FORCE INDEX: as USE INDEX, and a table scan is taken only if none of them can be used.
    pub force_index: Vec<String>,
    /// IGNORE INDEX: these are no candidates.
    pub ignore_index: Vec<String>,
}

fn named(list: &[String], index: &str) -> bool {
    list.iter().any(|name| name.eq_ignore_ascii_case(index))
}

impl IndexHints {
    /// True if there is no hint at all.
    pub fn is_empty(&self) -> bool {
        self.use_index.is_none() && self.force_index.is_empty() && self.ignore_index.is_empty()
    }

    /// Whether `index` may be used.
    pub fn allows(&self, index: &str) -> bool {
        if named(&self.ignore_index, index) {
            return false;
        }
        if !self.force_index.is_empty() {
            let used = self.use_index.as_deref();
            return self.forces(index) || used.is_some_and(|used| named(used, index));
        }
        self.use_index
            .as_deref()
            .is_none_or(|used| named(used, index))
    }

    /// Whether `index` is named by FORCE INDEX.
    pub fn forces(&self, index: &str) -> bool {
        named(&self.force_index, index)
    }
}

/// Something that hints turn on or off for a table, or for single indexes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toggle {
    pub table: Option<bool>,
    /// Goes before `table`.
    pub indexes: Vec<(String, bool)>,
}

impl Toggle {
    /// What is said about `index`; `None` if nothing is.
    pub fn of(&self, index: &str) -> Option<bool> {
        let own = self
            .indexes
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(index));
        own.map(|(_, on)| *on).or(self.table)
    }
}

/// All hints on one table reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableHints {
    /// Indexes to find rows by, alone and as the inner table of a join: `FOR JOIN`, `JOIN_INDEX`.
    pub rows: IndexHints,
    /// Indexes to read in order: `FOR ORDER BY`, `ORDER_INDEX`.
    pub order_by: IndexHints,
    /// Indexes to group by: `FOR GROUP BY`, `GROUP_INDEX`.
    pub group_by: IndexHints,
    /// Multi-range read. On: wherever it is possible, as with `mrr=on,mrr_cost_based=off`.
    pub mrr: Toggle,
    /// Index condition pushdown.
    pub index_condition: Toggle,
    /// Skip scan. On: wherever it is possible.
    pub skip_scan: Toggle,
    /// Index merge. On for some indexes: of these and no others.
    pub index_merge: Toggle,
    /// Looking up a buffer of keys at a time when the table is the inner one of a join.
    pub batched_key_access: Option<bool>,
    /// Hash join when the table is the inner one of a join.
    pub hash_join: Option<bool>,
    /// Indexes that are invisible serve as the others do (`use_invisible_indexes` of `optimizer_switch`).
    pub invisible_indexes: bool,
    /// What is said about the whole query block that the reference stands in.
    pub block: Arc<BlockHints>,
}

impl From<IndexHints> for TableHints {
    /// Hints without a FOR clause serve all purposes.
    fn from(hints: IndexHints) -> TableHints {
        TableHints {
            rows: hints.clone(),
            order_by: hints.clone(),
            group_by: hints,
            ..TableHints::default()
        }
    }
}

impl TableHints {
    /// Whether rows may be found by `index`.
    pub fn allows(&self, index: &str) -> bool {
        self.rows.allows(index)
    }

    /// Whether rows must be found by `index`, if it can be used.
    pub fn forces(&self, index: &str) -> bool {
        self.rows.forces(index)
    }

    /// Whether an index merge must be taken, if one is possible: of all indexes, or of those that are named.
    pub fn forces_merge(&self) -> bool {
        let Toggle { table, indexes } = &self.index_merge;
        *table == Some(true) || indexes.iter().any(|(_, on)| *on)
    }

    /// Whether `index` may be one of those that are merged.
    pub fn may_merge(&self, index: &str) -> bool {
        let others_are_named = self.index_merge.indexes.iter().any(|(_, on)| *on);
        self.index_merge.of(index).unwrap_or(!others_are_named)
    }

    /// Whether rows may be read in the order of `index`.
    pub fn allows_order(&self, index: &str) -> bool {
        self.order_by.allows(index)
    }

    /// Whether rows may be grouped in the order of `index`.
    pub fn allows_group(&self, index: &str) -> bool {
        self.group_by.allows(index)
    }
}

/// How a semijoin is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SemijoinStrategy {
    /// For each outer row a look for its first match: FIRSTMATCH, LOOSESCAN, DUPSWEEDOUT and INTOEXISTS, which are all
    /// lookups here.
    FirstMatch,
    /// The subquery's rows are collected in a hash table first: MATERIALIZATION.
    Materialization,
}

/// What SEMIJOIN, NO_SEMIJOIN and SUBQUERY say about the subquery that is the block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubqueryHint {
    /// False: the subquery is a test on rows that all other tables are joined for already.
    pub semijoin: Option<bool>,
    /// Strategies that may be used; empty: all.
    pub only: Vec<SemijoinStrategy>,
    /// Strategies that may not.
    pub never: Vec<SemijoinStrategy>,
}

impl SubqueryHint {
    /// Whether the subquery may be run in this way.
    pub fn allows(&self, strategy: SemijoinStrategy) -> bool {
        !self.never.contains(&strategy) && (self.only.is_empty() || self.only.contains(&strategy))
    }
}

/// Which part of the join order a hint fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinOrderKind {
    /// JOIN_ORDER: these in this order, with others anywhere.
    Order,
    /// JOIN_PREFIX: these first.
    Prefix,
    /// JOIN_SUFFIX: these last.
    Suffix,
}

/// A hint on the order of joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinOrderHint {
    pub kind: JoinOrderKind,
    /// Table references by number. What stands for several (a derived table) is one item.
    pub tables: Vec<Vec<u32>>,
    /// The hint, as a warning calls it.
    pub text: String,
}

/// All hints on one query block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockHints {
    /// Number of the block in its statement, from 1 in the order of the text; 0 for a block without hints.
    pub number: u32,
    pub join_orders: Vec<JoinOrderHint>,
    pub subquery: SubqueryHint,
    /// If the block stands in a derived table that a hint names: the table's alias, and whether it becomes part of the
    /// query around it.
    pub derived: Option<(String, bool)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_goes_before_its_table() {
        let toggle = Toggle {
            table: Some(false),
            indexes: vec![("I".into(), true)],
        };
        assert_eq!((toggle.of("i"), toggle.of("j")), (Some(true), Some(false)));
        assert_eq!(Toggle::default().of("i"), None);
    }

    #[test]
    fn hints_without_a_purpose_serve_all() {
        let hints = TableHints::from(IndexHints {
            ignore_index: vec!["i".into()],
            ..IndexHints::default()
        });
        assert!(!hints.allows("i") && !hints.allows_order("I") && !hints.allows_group("i"));
        assert!(hints.allows("j") && !hints.forces("j"));
    }

    #[test]
    fn a_merge_of_named_indexes_is_of_no_others() {
        let mut hints = TableHints::default();
        assert!(hints.may_merge("i") && !hints.forces_merge());
        hints.index_merge.indexes.push(("i".into(), true));
        assert!(hints.may_merge("I") && !hints.may_merge("j") && hints.forces_merge());
        hints.index_merge.indexes = vec![("i".into(), false)];
        assert!(!hints.may_merge("i") && hints.may_merge("j") && !hints.forces_merge());
        hints.index_merge.table = Some(false);
        assert!(!hints.may_merge("j"));
    }

    #[test]
    fn subquery_strategies_are_those_named_and_not_excluded() {
        let only = SubqueryHint {
            only: vec![SemijoinStrategy::FirstMatch],
            ..SubqueryHint::default()
        };
        assert!(only.allows(SemijoinStrategy::FirstMatch));
        assert!(!only.allows(SemijoinStrategy::Materialization));
        let never = SubqueryHint {
            never: vec![SemijoinStrategy::FirstMatch],
            ..SubqueryHint::default()
        };
        assert!(!never.allows(SemijoinStrategy::FirstMatch));
        assert!(SubqueryHint::default().allows(SemijoinStrategy::Materialization));
    }
}
