//! Makes a statement as small as it can be while it still shows a difference.

use crate::tree::Tree;

/// Statements that are tried for one difference, at most.
const TRIES: usize = 600;

/// The smallest statement found for which `is_different` still holds.
pub fn reduce(tree: Tree, mut is_different: impl FnMut(&str) -> bool) -> Tree {
    let mut smallest = tree;
    let mut tries = 0;
    loop {
        let mut candidates: Vec<(usize, Tree)> = smallest
            .reductions()
            .into_iter()
            .map(|tree| (tree.sql().len(), tree))
            .collect();
        candidates.sort_by_key(|(length, _)| *length);
        let size = smallest.sql().len();
        let next = candidates.into_iter().find(|(length, tree)| {
            tries += 1;
            tries <= TRIES && *length < size && is_different(&tree.sql())
        });
        match next {
            Some((_, tree)) => smallest = tree,
            None => return smallest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::list;
    use crate::tree::text;

    #[test]
    fn what_does_not_matter_goes() {
        let tree = list(vec![text("a"), text("b"), text("c"), text("d")]);
        assert_eq!(reduce(tree, |sql| sql.contains('c')).sql(), "c");
    }
}
