//! The session variables that the planner obeys.
//!
//! The session makes [`PlannerSettings`] of its variables once for each statement, after hints of SET_VAR. Planning
//! depends on nothing else of a session. A flag of `optimizer_switch` has four lines here: its field, its default, its
//! name in [`FLAGS`], and its names in [`OptimizerSwitch::field`].

use std::fmt;

use sheaf_access::{BatchSize, DEFAULT_BATCH_STRING_BYTES};
use sheaf_exec::operator::shared_exec::MAX_KEPT_BYTES;

use crate::cost::CostConstants;

/// Flags of `optimizer_switch` that change what Sheaf does. Every other flag that MySQL or MariaDB know is
/// accepted and kept, so that a client which sets and reads the whole string finds what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptimizerSwitch {
    /// Test conditions on the index entry before the row is fetched.
    pub index_condition_pushdown: bool,
    /// Multi-Range Read: fetch rows in primary key order.
    pub mrr: bool,
    /// Use MRR only where it is estimated to pay; off: wherever it is possible.
    pub mrr_cost_based: bool,
    /// Sort the join keys too before walking the index (MariaDB).
    pub mrr_sort_keys: bool,
    /// Join by looking up a buffer-full of keys at a time (MySQL's name; MariaDB: join_cache_bka).
    pub batched_key_access: bool,
    /// Hash joins. Since MySQL 8.0.20 block_nested_loop is about them; MariaDB: join_cache_hashed.
    pub hash_join: bool,
    /// Reads of several indexes of a table, merged; and the ways to merge them.
    pub index_merge: bool,
    pub index_merge_union: bool,
    pub index_merge_sort_union: bool,
    pub index_merge_intersection: bool,
    /// Jumps over what cannot match where the first part of an index is not bound.
    pub skip_scan: bool,
    /// The same inside ranges of an index (Sheaf's own flag).
    pub index_jumps: bool,
    /// Subqueries in IN and EXISTS are joined in any order; off: after the tables around them.
    pub semijoin: bool,
    /// Semijoins that look for the first match of each row.
    pub firstmatch: bool,
    /// Semijoins that collect the subquery's rows in a hash table first.
    pub materialization: bool,
    /// Derived tables become part of the query around them.
    pub derived_merge: bool,
    /// A whole index may be read in order for the sake of a LIMIT.
    pub prefer_ordering_index: bool,
    /// A plan that counts on what may not happen is abandoned once it has spent what another one would cost (Sheaf's
    /// own flag).
    pub bounded_regret: bool,
    /// Parts that a plan has several times are run once (Sheaf's own flag).
    pub shared_subplans: bool,
    /// Indexes that are invisible serve as the others do.
    pub use_invisible_indexes: bool,
    /// Run statements about a few rows without a vectorised plan (Sheaf's own flag).
    pub direct: bool,
    /// Flags that are only kept, in the order they were first set.
    pub kept: Vec<(String, bool)>,
}

impl Default for OptimizerSwitch {
    fn default() -> OptimizerSwitch {
        OptimizerSwitch {
            index_condition_pushdown: true,
            mrr: true,
            mrr_cost_based: true,
            mrr_sort_keys: true,
            batched_key_access: true,
            hash_join: true,
            index_merge: true,
            index_merge_union: true,
            index_merge_sort_union: true,
            index_merge_intersection: true,
            skip_scan: true,
            index_jumps: true,
            semijoin: true,
            firstmatch: true,
            materialization: true,
            derived_merge: true,
            prefer_ordering_index: true,
            bounded_regret: true,
            shared_subplans: true,
            use_invisible_indexes: false,
            direct: true,
            kept: Vec::new(),
        }
    }
}

/// The flags with a meaning, in the order in which they are shown.
const FLAGS: &[&str] = &[
    "index_condition_pushdown",
    "mrr",
    "mrr_cost_based",
    "mrr_sort_keys",
    "batched_key_access",
    "hash_join",
    "index_merge",
    "index_merge_union",
    "index_merge_sort_union",
    "index_merge_intersection",
    "skip_scan",
    "index_jumps",
    "semijoin",
    "firstmatch",
    "materialization",
    "derived_merge",
    "prefer_ordering_index",
    "bounded_regret",
    "shared_subplans",
    "use_invisible_indexes",
    "direct",
];

/// What direct plans never do: EXPLAIN switches it off to show the plan of operators that reads as one of them does.
pub const NOT_IN_DIRECT_PLANS: &str = "mrr=off,batched_key_access=off,hash_join=off,index_jumps=off,\
                                       skip_scan=off,index_merge=off,bounded_regret=off";

/// Flags of MySQL 8.4 and MariaDB 11 that Sheaf keeps but does not act on.
const KEPT_FLAGS: &[&str] = &[
    "condition_fanout_filter",
    "condition_pushdown_for_derived",
    "condition_pushdown_for_subquery",
    "condition_pushdown_from_having",
    "cset_narrowing",
    "derived_condition_pushdown",
    "derived_keys",
    "derived_with_keys",
    "duplicateweedout",
    "engine_condition_pushdown",
    "exists_to_in",
    "extended_keys",
    "hash_join_cardinality",
    "hash_set_operations",
    "hypergraph_optimizer",
    "in_to_exists",
    "index_merge_sort_intersection",
    "join_cache_incremental",
    "loosescan",
    "not_null_range_scan",
    "optimize_join_buffer_size",
    "orderby_uses_equalities",
    "outer_join_with_cache",
    "partial_match_rowid_merge",
    "partial_match_table_scan",
    "reorder_outer_joins",
    "rowid_filter",
    "sargable_casefold",
    "semijoin_with_cache",
    "split_materialized",
    "subquery_cache",
    "subquery_materialization_cost_based",
    "subquery_to_derived",
    "table_elimination",
    "use_index_extensions",
];

impl OptimizerSwitch {
    /// The flag's field, under any of its names.
    fn field(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "index_condition_pushdown" => &mut self.index_condition_pushdown,
            "mrr" => &mut self.mrr,
            "mrr_cost_based" => &mut self.mrr_cost_based,
            "mrr_sort_keys" => &mut self.mrr_sort_keys,
            "batched_key_access" | "join_cache_bka" => &mut self.batched_key_access,
            "hash_join" | "block_nested_loop" | "join_cache_hashed" => &mut self.hash_join,
            "index_merge" => &mut self.index_merge,
            "index_merge_union" => &mut self.index_merge_union,
            "index_merge_sort_union" => &mut self.index_merge_sort_union,
            "index_merge_intersection" => &mut self.index_merge_intersection,
            "skip_scan" => &mut self.skip_scan,
            "index_jumps" => &mut self.index_jumps,
            "semijoin" => &mut self.semijoin,
            "firstmatch" => &mut self.firstmatch,
            "materialization" => &mut self.materialization,
            "derived_merge" => &mut self.derived_merge,
            "prefer_ordering_index" => &mut self.prefer_ordering_index,
            "bounded_regret" => &mut self.bounded_regret,
            "shared_subplans" => &mut self.shared_subplans,
            "use_invisible_indexes" => &mut self.use_invisible_indexes,
            "direct" => &mut self.direct,
            _ => return None,
        })
    }

    /// Applies `SET optimizer_switch = text`: a list of `flag=on|off|default`, or `default` for all of them.
    /// Flags that are not in the list keep their values.
    ///
    /// # Errors
    /// The part that is not understood (error 1231); nothing is changed then.
    pub fn apply(&mut self, text: &str) -> Result<(), String> {
        let mut changed = self.clone();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            if part.eq_ignore_ascii_case("default") {
                changed = OptimizerSwitch::default();
                continue;
            }
            let (name, value) = part.split_once('=').ok_or_else(|| part.to_string())?;
            let name = name.trim().to_ascii_lowercase();
            let value = match value.trim().to_ascii_lowercase().as_str() {
                "on" | "1" => Some(true),
                "off" | "0" => Some(false),
                "default" => None,
                _ => return Err(part.to_string()),
            };
            if let Some(flag) = changed.field(&name) {
                let default = OptimizerSwitch::default()
                    .field(&name)
                    .is_some_and(|flag| *flag);
                *flag = value.unwrap_or(default);
            } else if KEPT_FLAGS.contains(&name.as_str()) {
                changed.kept.retain(|(kept, _)| *kept != name);
                if let Some(value) = value {
                    changed.kept.push((name, value));
                }
            } else {
                return Err(part.to_string());
            }
        }
        *self = changed;
        Ok(())
    }
}

impl fmt::Display for OptimizerSwitch {
    /// The value of `@@optimizer_switch`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = |on: bool| if on { "on" } else { "off" };
        let mut flags = self.clone();
        for (position, name) in FLAGS.iter().enumerate() {
            let separator = if position == 0 { "" } else { "," };
            let on = flags.field(name).is_some_and(|flag| *flag);
            write!(f, "{separator}{name}={}", state(on))?;
        }
        for (name, value) in &self.kept {
            write!(f, ",{name}={}", state(*value))?;
        }
        Ok(())
    }
}

/// Everything of a session that planning depends on.
#[derive(Debug, Clone)]
pub struct PlannerSettings {
    pub switch: OptimizerSwitch,
    /// Bytes of primary keys that a multi-range read collects before it sorts and reads
    /// (`mrr_buffer_size`, `read_rnd_buffer_size`).
    pub mrr_buffer_bytes: usize,
    /// Bytes of keys and outer rows that a keyed join collects before it looks them up (`join_buffer_size`).
    pub join_buffer_bytes: usize,
    /// An index is dived into for each range of a single value only if there are fewer than so many of them; 0: always
    /// (`eq_range_index_dive_limit`).
    pub eq_range_index_dive_limit: usize,
    /// Rows of a batch, and bytes that its strings take at most.
    pub batch_rows: usize,
    pub batch_string_bytes: usize,
    /// Into how many parts a big scan is split, at most.
    pub target_partitions: usize,
    /// Memory that one statement should get along with, in bytes: a hash join whose build side is estimated to
    /// be bigger pays for going to files. 0: little must do, see `is_thrifty`.
    pub query_memory_bytes: usize,
    /// A sort for the first rows holds them in memory. Where more than so many are wanted, all are sorted, which can
    /// spill, and be stopped.
    pub most_first_rows: usize,
    /// Sorts of several workers become one. What two of them hold when they merge what they have spilled, and the merge
    /// of both, may be more than a small memory has.
    pub sorts_in_one_stream: bool,
    /// Pages that a scan reads ahead: 4 MiB keep a device of 1.5 GB/s busy between two requests, 1 MiB did so to three
    /// quarters.
    pub read_ahead_pages: usize,
    /// Rounds that a recursive CTE may take (`cte_max_recursion_depth`).
    pub max_recursion_rounds: u64,
    /// What a plan that may be abandoned may spend, in microseconds, in place of the cost of the other plan. Every plan
    /// that can be abandoned may be abandoned then. For tests.
    pub regret_budget_us: Option<f64>,
    /// What the lookups of each keyed join may cost, in microseconds, in place of the cost of a hash join; every keyed
    /// join that can become one does then. For tests.
    pub lookup_budget_us: Option<f64>,
    /// Bytes of rows that a shared subplan keeps; if they are more, its readers run it for themselves.
    pub kept_bytes: usize,
    /// What things cost on this machine.
    pub costs: CostConstants,
}

/// Rows of a batch where there is memory enough.
const BATCH_ROWS: usize = 8192;

/// See [`PlannerSettings::most_first_rows`]. A sort of the first rows puts them in their order in one step, in which it
/// cannot be stopped: of 300,000 it took 0.5 s.
const MAX_FIRST_ROWS: usize = 50_000;

impl PlannerSettings {
    /// Whether there is so little memory that batches have fewer rows.
    pub fn has_little_memory(&self) -> bool {
        self.batch_rows < BATCH_ROWS
    }

    /// How large the batches of scans and lookups are.
    pub(crate) fn batch(&self) -> BatchSize {
        BatchSize {
            rows: self.batch_rows,
            string_bytes: self.batch_string_bytes,
        }
    }

    /// Whether a plan that took too much memory is to be replaced by one that takes little.
    pub(crate) fn is_thrifty(&self) -> bool {
        self.query_memory_bytes == 0
    }
}

impl Default for PlannerSettings {
    fn default() -> PlannerSettings {
        PlannerSettings {
            switch: OptimizerSwitch::default(),
            mrr_buffer_bytes: 256 << 10,
            join_buffer_bytes: 256 << 10,
            eq_range_index_dive_limit: 200,
            batch_rows: BATCH_ROWS,
            batch_string_bytes: DEFAULT_BATCH_STRING_BYTES,
            target_partitions: 1,
            query_memory_bytes: 64 << 20,
            most_first_rows: MAX_FIRST_ROWS,
            sorts_in_one_stream: false,
            read_ahead_pages: 256,
            max_recursion_rounds: 1_000,
            regret_budget_us: None,
            lookup_budget_us: None,
            kept_bytes: MAX_KEPT_BYTES,
            costs: CostConstants::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switch_keeps_what_is_not_named() {
        let mut switch = OptimizerSwitch::default();
        switch.apply("mrr=off,join_cache_bka=off").unwrap();
        assert!(!switch.mrr && !switch.batched_key_access && switch.index_condition_pushdown);
        switch.apply("mrr=default").unwrap();
        assert!(switch.mrr && !switch.batched_key_access);
        switch.apply("default").unwrap();
        assert_eq!(switch, OptimizerSwitch::default());
    }

    #[test]
    fn what_is_shown_can_be_set_again() {
        let mut switch = OptimizerSwitch::default();
        let all_off: Vec<String> = FLAGS.iter().map(|name| format!("{name}=off")).collect();
        switch.apply(&all_off.join(",")).unwrap();
        let mut again = OptimizerSwitch::default();
        again.apply(&switch.to_string()).unwrap();
        assert_eq!(again, switch);
        assert!(!switch.to_string().contains("=on"));
    }

    #[test]
    fn flags_of_others_are_kept_and_unknown_ones_refused() {
        let mut switch = OptimizerSwitch::default();
        switch
            .apply("rowid_filter=off, table_elimination = on")
            .unwrap();
        assert!(
            switch
                .to_string()
                .ends_with("direct=on,rowid_filter=off,table_elimination=on")
        );
        assert_eq!(
            switch.apply("mrr=off,warp_drive=on"),
            Err("warp_drive=on".to_string())
        );
        assert_eq!(switch.apply("mrr=maybe"), Err("mrr=maybe".to_string()));
        assert!(switch.mrr, "a refused value changes nothing");
    }
}
