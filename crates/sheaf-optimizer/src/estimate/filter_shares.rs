//! What several conditions of one table accept together.
//!
//! ```text
//!   a = 1    b = 2    c < 7    c > 3    d LIKE '%x%'      conditions
//!   [---- dive into (a, b) ----]                          joint: an index knows both, however they are correlated
//!   [ a ]    [ b ]    [ c: a histogram ]  [ d: tried ]    single: what is said of one column, together
//! ```
//!
//! The share of a set of conditions is the product of the groups that it is made of: of joint ones where it holds all
//! of their conditions, of single ones otherwise. Groups of one kind do not overlap.

/// Conditions, by position, with the share of the rows that satisfy all of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    pub filters: Vec<usize>,
    pub share: f64,
}

impl Group {
    fn is_within(&self, filters: &[usize]) -> bool {
        self.filters.iter().all(|filter| filters.contains(filter))
    }

    fn overlaps(&self, filters: &[usize]) -> bool {
        self.filters.iter().any(|filter| filters.contains(filter))
    }
}

/// What is known of the conditions of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilterShares {
    joint: Vec<Group>,
    single: Vec<Group>,
    /// By condition, each for itself.
    alone: Vec<f64>,
}

impl FilterShares {
    /// `alone` by condition; `single` groups cover all of them; of `joint`, those that say most are used.
    pub(crate) fn new(alone: Vec<f64>, single: Vec<Group>, mut joint: Vec<Group>) -> FilterShares {
        // Many conditions first; of the same ones, the smaller share, which came from the longer key.
        joint.sort_by(|a, b| {
            let most = b.filters.len().cmp(&a.filters.len());
            most.then(a.share.total_cmp(&b.share))
        });
        let mut chosen: Vec<Group> = Vec::new();
        for group in joint {
            if group.filters.len() > 1 && !chosen.iter().any(|known| known.overlaps(&group.filters))
            {
                chosen.push(group);
            }
        }
        FilterShares {
            joint: chosen,
            single,
            alone,
        }
    }

    /// Share of the rows that satisfy all of these conditions.
    pub(crate) fn of(&self, filters: &[usize]) -> f64 {
        let (whole, broken): (Vec<&Group>, Vec<&Group>) = self
            .joint
            .iter()
            .partition(|group| group.is_within(filters));
        let mut share: f64 = whole.iter().map(|group| group.share).product();
        let open: Vec<usize> = filters
            .iter()
            .copied()
            .filter(|filter| !whole.iter().any(|group| group.filters.contains(filter)))
            .collect();
        for group in &self.single {
            let part: Vec<usize> = group
                .filters
                .iter()
                .copied()
                .filter(|filter| open.contains(filter))
                .collect();
            if part.len() == group.filters.len() {
                share *= group.share;
            } else if !part.is_empty() {
                // A part of what is said of a column accepts no less than all of it.
                let product: f64 = part.iter().map(|filter| self.alone[*filter]).product();
                share *= product.max(group.share);
            }
        }
        // Nor does a part of the conditions that an index knows.
        let least = broken.iter().filter(|group| {
            let mut filters = filters.iter();
            filters.all(|filter| group.filters.contains(filter))
        });
        let least = least.map(|group| group.share).fold(0.0, f64::max);
        if filters.is_empty() {
            1.0
        } else {
            share.max(least)
        }
    }

    /// Share that satisfies `filters` of the rows that satisfy `given`.
    pub(crate) fn kept(&self, filters: &[usize], given: &[usize]) -> f64 {
        if filters.is_empty() {
            return 1.0;
        }
        let before = self.of(given);
        if before <= 0.0 {
            return self.of(filters);
        }
        let both: Vec<usize> = given.iter().chain(filters).copied().collect();
        (self.of(&both) / before).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(filters: &[usize], share: f64) -> Group {
        Group {
            filters: filters.to_vec(),
            share,
        }
    }

    /// `a = 1`, `b = 2`, `c < 7`, `c > 3`: a and b say the same, and the interval of c is small.
    fn shares() -> FilterShares {
        FilterShares::new(
            vec![0.1, 0.1, 0.6, 0.5],
            vec![group(&[0], 0.1), group(&[1], 0.1), group(&[2, 3], 0.2)],
            vec![group(&[0, 1], 0.1), group(&[0, 2], 0.3)],
        )
    }

    #[test]
    fn an_index_knows_that_columns_are_correlated() {
        let shares = shares();
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{found}");
        near(shares.of(&[]), 1.0);
        near(shares.of(&[0, 1]), 0.1);
        near(shares.of(&[1]), 0.1);
        near(shares.of(&[0, 1, 2, 3]), 0.02);
        near(shares.of(&[2]), 0.6);
        near(shares.kept(&[1], &[0]), 1.0);
        near(shares.kept(&[2, 3], &[0, 1]), 0.2);
        near(shares.kept(&[], &[0]), 1.0);
    }
}
