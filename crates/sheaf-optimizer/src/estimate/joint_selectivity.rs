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
    fn is_within(&self, filters: &Members) -> bool {
        self.filters.iter().all(|filter| filters.have(*filter))
    }
}

/// Some of the conditions of a table. There may be thousands, so they are not looked for in a list.
struct Members(Vec<bool>);

impl Members {
    fn of(filters: &[usize]) -> Members {
        let mut members = Members(Vec::new());
        members.extend(filters);
        members
    }

    fn extend(&mut self, filters: &[usize]) {
        let most = filters.iter().max().map_or(0, |most| most + 1);
        self.0.resize(most.max(self.0.len()), false);
        for filter in filters {
            self.0[*filter] = true;
        }
    }

    fn have(&self, filter: usize) -> bool {
        self.0.get(filter).is_some_and(|is_member| *is_member)
    }
}

/// What is known of the conditions of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct JointSelectivity {
    joint: Vec<Group>,
    single: Vec<Group>,
    /// By condition, each for itself.
    alone: Vec<f64>,
}

impl JointSelectivity {
    /// `alone` by condition; `single` groups cover all of them; of `joint`, those that say most are used.
    pub(crate) fn new(
        alone: Vec<f64>,
        single: Vec<Group>,
        mut joint: Vec<Group>,
    ) -> JointSelectivity {
        // Many conditions first; of the same ones, the smaller share, which came from the longer key.
        joint.sort_by(|a, b| {
            let most = b.filters.len().cmp(&a.filters.len());
            most.then(a.share.total_cmp(&b.share))
        });
        let mut chosen: Vec<Group> = Vec::new();
        let mut taken = Members::of(&[]);
        for group in joint {
            let overlaps = group.filters.iter().any(|filter| taken.have(*filter));
            if group.filters.len() > 1 && !overlaps {
                taken.extend(&group.filters);
                chosen.push(group);
            }
        }
        JointSelectivity {
            joint: chosen,
            single,
            alone,
        }
    }

    /// Share of the rows that satisfy all of these conditions.
    pub(crate) fn of(&self, filters: &[usize]) -> f64 {
        let members = Members::of(filters);
        let (whole, broken): (Vec<&Group>, Vec<&Group>) = self
            .joint
            .iter()
            .partition(|group| group.is_within(&members));
        let mut share: f64 = whole.iter().map(|group| group.share).product();
        let mut said = Members::of(&[]);
        whole.iter().for_each(|group| said.extend(&group.filters));
        for group in &self.single {
            let part: Vec<usize> = group
                .filters
                .iter()
                .copied()
                .filter(|filter| members.have(*filter) && !said.have(*filter))
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
            let of_group = Members::of(&group.filters);
            filters.iter().all(|filter| of_group.have(*filter))
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
    fn shares() -> JointSelectivity {
        JointSelectivity::new(
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

    /// Thousands of conditions are looked at once for each question, not once for each of themselves.
    #[test]
    fn many_conditions_are_looked_at_once() {
        const MANY: usize = 100_000;
        let all: Vec<usize> = (0..MANY).collect();
        let single = vec![group(&all, 0.5)];
        let joint = vec![group(&all, 0.25), group(&all[1..], 0.5)];
        let shares = JointSelectivity::new(vec![0.999; MANY], single, joint);
        assert_eq!(shares.of(&all), 0.25);
        assert_eq!(
            shares.kept(&all[10..], &all[..10]),
            0.25 / shares.of(&all[..10])
        );
    }
}
