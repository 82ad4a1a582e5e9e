//! Which columns, in which order, an index may have to serve a [`TableNeed`].
//!
//! The rule of thumb is that of the field: what is bound to single values comes first, and one range, the order or the
//! groups behind it. Behind a range the columns of others still help: they are tested on the entry before its row is
//! fetched. Which of the lists is the best is for the optimizer to say.
//!
//! ```text
//!   a = 1 AND b > 2 AND c < 3 ORDER BY d      a
//!                                             a b      a b c
//!                                             a c      a c b
//!                                             a d
//!   each also with all other columns that are read, if these are few
//!
//!   a = 1 OR b > 2                            a and b: indexes that are merged
//!   MIN(e) ... WHERE a = 1 GROUP BY g         a g e
//! ```
//!
//! An index with all columns is a second copy of the table, which nobody wants for a `SELECT *`.

use super::needs::{BranchNeed, TableNeed};

/// Columns that are added to an index so that rows need not be fetched, at most.
pub const MAX_COVERING_COLUMNS: usize = 3;

/// Columns of a candidate, at most, those for covering not counted.
const MAX_COLUMNS: usize = 5;

/// The column lists of indexes that may serve a need, without repetitions, the most promising first.
///
/// `distinct`: estimated values of a column, by which those that are bound to single values are ordered. `may_cover`:
/// whether a column may be in an index just to be read from it.
pub fn column_lists(
    need: &TableNeed,
    distinct: impl Fn(usize) -> f64,
    may_cover: impl Fn(usize) -> bool,
) -> Vec<Vec<usize>> {
    let mut equal = need.equal.clone();
    equal.sort_by(|a, b| distinct(*b).total_cmp(&distinct(*a)));
    let mut bases: Vec<Vec<usize>> = vec![equal.clone()];
    for joined in &need.joined {
        bases.push(with(&[*joined], &equal));
        bases.push(with(&equal, &[*joined]));
    }
    if need.joined.len() > 1 {
        bases.push(with(&need.joined, &equal));
    }
    let ranged: Vec<usize> = need.ranged.iter().map(|range| range.column).collect();
    let mut lists = Vec::new();
    for base in &bases {
        for first in &ranged {
            let others = ranged.iter().copied().filter(|other| other != first);
            let one = with(base, &[*first]);
            let all = with(&one, &others.collect::<Vec<_>>());
            lists.push(all);
            lists.push(one);
        }
        // MIN and MAX of a group are at its ends.
        let extremes = need.extreme.iter().copied().collect::<Vec<_>>();
        let with_extreme = match need.extreme {
            Some(_) => with(&need.grouped, &extremes),
            None => Vec::new(),
        };
        for order in [&need.ordered, &with_extreme, &need.grouped] {
            if !order.is_empty() {
                lists.push(with(base, order));
                // Behind the order, what is left is tested on entries.
                lists.push(with(&with(base, order), &ranged));
            }
        }
        lists.push(base.clone());
    }
    // What is bound to single values serves other statements alone, too.
    lists.extend(equal.iter().map(|column| vec![*column]));
    for list in &mut lists {
        list.truncate(MAX_COLUMNS);
    }
    lists.retain(|list| !list.is_empty());
    // Every index has the primary key.
    let primary = &need.table.definition.primary.parts;
    let is_implied = |column: usize| {
        let mut parts = primary.iter();
        parts.any(|part| part.column == column && part.prefix_length.is_none())
    };
    let covering: Vec<Vec<usize>> = lists
        .iter()
        .filter_map(|list| {
            let others = need.read.iter().copied();
            let others = others.filter(|column| !list.contains(column) && !is_implied(*column));
            let others: Vec<usize> = others.collect();
            let fits = !others.is_empty()
                && others.len() <= MAX_COVERING_COLUMNS
                && need.read.len() < need.table.definition.visible_columns().count()
                && need.read.iter().all(|column| may_cover(*column));
            fits.then(|| with(list, &others))
        })
        .collect();
    lists.extend(covering);
    let mut known: Vec<Vec<usize>> = Vec::new();
    for list in lists {
        if !known.contains(&list) {
            known.push(list);
        }
    }
    known
}

/// For each OR over several columns, the column lists of the indexes that serve its branches together.
pub fn merged_lists(need: &TableNeed, distinct: impl Fn(usize) -> f64) -> Vec<Vec<Vec<usize>>> {
    let of_branch = |branch: &BranchNeed| {
        let mut list = branch.equal.clone();
        list.sort_by(|a, b| distinct(*b).total_cmp(&distinct(*a)));
        let first = branch.ranged.first().map(|range| range.column);
        let mut list = with(&[], &with(&list, &Vec::from_iter(first)));
        list.truncate(MAX_COLUMNS);
        list
    };
    let alternatives = need.alternatives.iter();
    let lists = alternatives.map(|branches| {
        let mut lists: Vec<Vec<usize>> = Vec::new();
        for list in branches.iter().map(of_branch) {
            if !lists.contains(&list) {
                lists.push(list);
            }
        }
        lists
    });
    lists.collect()
}

/// A list with the columns of another behind it, each once.
fn with(list: &[usize], behind: &[usize]) -> Vec<usize> {
    let mut all = list.to_vec();
    for column in behind {
        if !all.contains(column) {
            all.push(*column);
        }
    }
    all
}
