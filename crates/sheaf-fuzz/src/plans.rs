//! The same statement under other plans: with switches of the optimizer, or with hints in every query block. Its rows
//! must be those of the plan that the optimizer chooses by itself.

use sheaf_storage::Random;

use crate::schema::{one_in, pick};

/// Values of `optimizer_switch`.
const SWITCHES: [&str; 14] = [
    "direct=off",
    "hash_join=off",
    "batched_key_access=off",
    "hash_join=off,batched_key_access=off",
    "semijoin=off",
    "materialization=off",
    "firstmatch=off",
    "derived_merge=off",
    "mrr=off,index_condition_pushdown=off",
    "mrr_cost_based=off",
    "index_merge=off,skip_scan=off,index_jumps=off",
    "prefer_ordering_index=off",
    "bounded_regret=off",
    "shared_subplans=off",
];

/// Hints about tables, which the generator names x1, x2, and so on; hints about others than a block has do nothing.
const TABLE_HINTS: [&str; 13] = [
    "NO_HASH_JOIN",
    "HASH_JOIN",
    "NO_BKA",
    "BKA",
    "NO_INDEX",
    "INDEX",
    "NO_MERGE",
    "MERGE",
    "NO_ICP",
    "MRR",
    "NO_MRR",
    "INDEX_MERGE",
    "SKIP_SCAN",
];

const ORDER_HINTS: [&str; 3] = ["JOIN_PREFIX", "JOIN_ORDER", "JOIN_SUFFIX"];

const BLOCK_HINTS: [&str; 8] = [
    "NO_HASH_JOIN()",
    "NO_BKA() NO_HASH_JOIN()",
    "JOIN_FIXED_ORDER()",
    "SEMIJOIN(MATERIALIZATION)",
    "SEMIJOIN(FIRSTMATCH)",
    "NO_SEMIJOIN()",
    "SUBQUERY(MATERIALIZATION)",
    "SUBQUERY(INTOEXISTS)",
];

/// Another way to plan a statement.
#[derive(Clone, Debug)]
pub enum OtherPlan {
    /// A value of `optimizer_switch`.
    Switch(&'static str),
    /// Hints of the first block, the second, and so on; from the last on, it begins again.
    Hints(Vec<String>),
}

impl OtherPlan {
    pub fn new(random: &mut Random) -> OtherPlan {
        match one_in(random, 2) {
            true => OtherPlan::Switch(pick::<&str>(random, &SWITCHES)),
            false => OtherPlan::Hints((0..4).map(|_| hints(random)).collect()),
        }
    }

    /// The statement that is planned so.
    pub fn of(&self, sql: &str) -> String {
        let hints: Vec<String> = match self {
            OtherPlan::Switch(switch) => vec![format!("SET_VAR(optimizer_switch='{switch}')")],
            OtherPlan::Hints(hints) => hints.clone(),
        };
        let is_first_only = matches!(self, OtherPlan::Switch(_));
        let mut out = String::with_capacity(sql.len() + 64);
        let mut hints = hints.iter().cycle();
        for (number, part) in sql.split("select ").enumerate() {
            if number > 0 {
                out.push_str("select ");
                if let (Some(hints), true) = (hints.next(), number == 1 || !is_first_only) {
                    out.push_str(&format!("/*+ {hints} */ "));
                }
            }
            out.push_str(part);
        }
        out
    }
}

fn table(random: &mut Random) -> String {
    format!("x{}", 1 + random.below(5))
}

fn hints(random: &mut Random) -> String {
    let hint = |random: &mut Random| match random.below(4) {
        0 => (*pick(random, &BLOCK_HINTS)).to_owned(),
        1 => {
            let hint = *pick(random, &ORDER_HINTS);
            let (one, two) = (table(random), table(random));
            match one == two {
                true => format!("{hint}({one})"),
                false => format!("{hint}({one}, {two})"),
            }
        }
        _ => format!("{}({})", pick(random, &TABLE_HINTS), table(random)),
    };
    let hints: Vec<String> = (0..1 + random.below(3)).map(|_| hint(random)).collect();
    hints.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_stand_in_each_block_and_switches_in_the_first() {
        let sql = "select a from t where a in (select b from u)";
        let hinted = OtherPlan::Hints(vec!["NO_BKA(x1)".to_owned()]).of(sql);
        assert_eq!(
            hinted,
            "select /*+ NO_BKA(x1) */ a from t where a in (select /*+ NO_BKA(x1) */ b from u)"
        );
        let switched = OtherPlan::Switch("mrr=off").of(sql);
        assert_eq!(
            switched,
            "select /*+ SET_VAR(optimizer_switch='mrr=off') */ a from t where a in (select b from u)"
        );
    }
}
