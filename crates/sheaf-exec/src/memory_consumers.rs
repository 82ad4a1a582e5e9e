//! What the operators that take memory are called in SQL, for the error of a statement that has run out of it.
//!
//! The error that an operator of DataFusion fails with begins with the name of its consumer and goes on with a list of
//! all consumers. Neither says anything to the author of the statement.

use sheaf_memory::planning::PLANNING;

/// Names of consumers, and what they do in words of SQL.
const IN_SQL: &[(&str, &str)] = &[
    ("ExternalSorter", "a sort"),
    ("SortPreservingMerge", "a sort"),
    ("WindowExec", "a window function"),
    ("PartitionedTopK", "a window function"),
    ("TopK", "ORDER BY with LIMIT"),
    ("FirstRows", "ORDER BY with LIMIT"),
    ("AggregateStream", "an aggregate function"),
    ("FinalHashAggregateStream", GROUPS),
    ("OrderedFinalAggregateStream", GROUPS),
    ("OrderedPartialAggregateStream", GROUPS),
    ("PartialHashAggregateStream", GROUPS),
    ("PartialReduceHashAggregateStream", GROUPS),
    ("SingleHashAggregateStream", GROUPS),
    ("GroupedHashAggregateStream", GROUPS),
    ("GroupedTopKAggregateStream", GROUPS),
    ("HashJoinInput", "a hash join"),
    ("hash join", "a hash join"),
    ("SMJStream", "a sort-merge join"),
    ("NestedLoopJoin", "a join without an equality"),
    ("CrossJoinExec", "a join without a condition"),
    ("KeyedJoinExec", "a join that looks keys up"),
    ("RepartitionExec", "an exchange between workers"),
    ("RecursiveQuery", "a recursive WITH"),
    ("JsonTable", "JSON_TABLE"),
    ("CommonTable", "a WITH that is named several times"),
    ("SharedExec", "a subquery that is read in several places"),
    (PLANNING, "planning"),
];

/// Aggregate functions that keep what they find. Operators are named with their functions behind them.
const FUNCTIONS: &[(&str, &str)] = &[("$group_concat", "GROUP_CONCAT")];

const GROUPS: &str = "GROUP BY, DISTINCT or UNION";

/// The error of a statement that has waited for memory in vain.
pub const OTHERS_HAVE_IT: &str = "other statements have all query memory";

/// Stands before the name of the consumer that got nothing more.
const BEFORE_NAME: [&str; 2] = ["allocation failed for ", "additional "];

/// Which part of a statement ran out of memory, as far as the error's text tells.
pub fn out_of_memory_in(text: &str) -> Option<&'static str> {
    let name = BEFORE_NAME
        .iter()
        .find_map(|before| Some(text.split_once(before)?.1));
    let name = name.unwrap_or(text);
    // The list of all consumers follows in other lines.
    let name = name.lines().next().unwrap_or(name);
    let mut functions = FUNCTIONS.iter();
    if let Some((_, in_sql)) = functions.find(|(function, _)| name.contains(function)) {
        return Some(in_sql);
    }
    IN_SQL
        .iter()
        .find(|(consumer, _)| name.starts_with(consumer))
        .map(|(_, in_sql)| *in_sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_named_in_words_of_sql() {
        for (text, expected) in [
            (
                "Additional allocation failed for ExternalSorter[1] with top memory consumers (across reservations) as:\n  \
                 AggregateStream[1]#49(can spill: false) consumed 5.4 MB",
                Some("a sort"),
            ),
            (
                "Additional allocation failed for FinalHashAggregateStream[0] with top memory consumers",
                Some("GROUP BY, DISTINCT or UNION"),
            ),
            (
                "AggregateStream[0] has 10 bytes of query memory, and 5 more are not left",
                Some("an aggregate function"),
            ),
            (
                "GroupedHashAggregateStream[0] ($group_concat(s)) has 10 bytes of query memory, and 5 more are not left",
                Some("GROUP_CONCAT"),
            ),
            (
                "$group_concat has long texts of many groups",
                Some("GROUP_CONCAT"),
            ),
            (PLANNING, Some("planning")),
            ("something else", None),
        ] {
            assert_eq!(out_of_memory_in(text), expected, "{text}");
        }
    }
}
