//! The sets of expressions that GROUPING SETS, ROLLUP and CUBE group by.

use datafusion_expr::{Expr, GroupingSet};

/// The grouping sets that GROUPING SETS, ROLLUP or CUBE stand for; `None` for a plain GROUP BY.
pub(crate) fn grouping_sets(group_expr: &[Expr]) -> Option<Vec<Vec<Expr>>> {
    let [Expr::GroupingSet(set)] = group_expr else {
        return None;
    };
    Some(match set {
        GroupingSet::GroupingSets(sets) => sets.clone(),
        // (a, b) WITH ROLLUP: (), (a), (a, b).
        GroupingSet::Rollup(exprs) => (0..=exprs.len()).map(|n| exprs[..n].to_vec()).collect(),
        GroupingSet::Cube(exprs) => {
            let subset = |mask: usize| {
                let chosen = exprs
                    .iter()
                    .enumerate()
                    .filter(move |(i, _)| mask & (1 << i) != 0);
                chosen.map(|(_, expr)| expr.clone()).collect()
            };
            (0..1usize << exprs.len()).map(subset).collect()
        }
    })
}
