//! Fingerprints: equal expressions have equal ones, and different ones nearly never.
//!
//! A list of thousands of expressions is searched for one of them, so most comparisons have to end at once. An
//! expression knows its fingerprint from when it was made, of its own kind and of its operands' fingerprints:
//!
//! ```text
//!   a = 1      kind of comparison, fingerprint of a, fingerprint of 1
//! ```
//!
//! That of a conjunction goes on where that of its first conditions ended, so conditions may be added one by one.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;

use smallvec::SmallVec;

use super::{Scalar, ScalarKind};

/// See the module's comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Of a kind, before its operands.
    pub(super) fn of_kind(kind: &ScalarKind) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        mem::discriminant(kind).hash(&mut hasher);
        match kind {
            ScalarKind::Column(id) => id.hash(&mut hasher),
            ScalarKind::Literal(value) => value.hash(&mut hasher),
            ScalarKind::Call { function, .. } => function.name().hash(&mut hasher),
            ScalarKind::Comparison { operator, .. } => operator.hash(&mut hasher),
            ScalarKind::Test { is, negated, .. } => (is, negated).hash(&mut hasher),
            ScalarKind::InList { negated, .. } => negated.hash(&mut hasher),
            ScalarKind::Cast(_)
            | ScalarKind::And(_)
            | ScalarKind::Or(_)
            | ScalarKind::Not(_)
            | ScalarKind::Case { .. } => {}
        }
        Fingerprint(hasher.finish())
    }

    /// With one more operand.
    pub(super) fn with(self, operand: &Scalar) -> Fingerprint {
        self.and(operand.fingerprint)
    }

    fn and(self, other: Fingerprint) -> Fingerprint {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.0.rotate_left(23) ^ other.0).wrapping_mul(FACTOR);
        Fingerprint(mixed ^ (mixed >> 32))
    }

    /// Of several expressions, one behind the other.
    pub fn of_all<'s>(scalars: impl Iterator<Item = &'s Scalar>) -> Fingerprint {
        scalars.fold(Fingerprint(0), Fingerprint::with)
    }
}

/// Where things stand in a list, by their fingerprints.
#[derive(Clone, Debug, Default)]
pub struct Places {
    places: HashMap<Fingerprint, SmallVec<[usize; 1]>>,
}

impl Places {
    pub fn add(&mut self, fingerprint: Fingerprint, place: usize) {
        self.places.entry(fingerprint).or_default().push(place);
    }

    /// The first of those with a fingerprint that is the one.
    pub fn find(&self, fingerprint: Fingerprint, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let mut places = self.places.get(&fingerprint)?.iter().copied();
        places.find(|place| is_it(*place))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field};
    use datafusion_common::ScalarValue;

    use super::super::Comparison;
    use super::*;
    use crate::column::ColumnId;

    fn equal(id: u32, number: i64) -> Scalar {
        let field = Arc::new(Field::new("a", DataType::Int64, true));
        let column = Scalar::column(ColumnId(id), field);
        let number = Scalar::literal(ScalarValue::Int64(Some(number)));
        Scalar::comparison(Comparison::Equal, column, number)
    }

    #[test]
    fn equal_expressions_have_equal_fingerprints_however_they_were_made() {
        let all: Vec<Scalar> = (0..9).map(|number| equal(1, number)).collect();
        let at_once = Scalar::and(all.clone());
        let one_by_one = all
            .iter()
            .cloned()
            .reduce(|one, next| Scalar::and([one, next]));
        let halves = Scalar::and([
            Scalar::and(all[..4].to_vec()),
            Scalar::and(all[4..].to_vec()),
        ]);
        let replaced = at_once.clone().replace(&|_| None);
        for other in [one_by_one.expect("nine"), halves, replaced] {
            assert_eq!(other, at_once);
            assert_eq!(other.fingerprint(), at_once.fingerprint());
        }
    }

    #[test]
    fn what_differs_has_different_fingerprints() {
        let mut made = vec![
            equal(1, 1),
            equal(2, 1),
            equal(1, 2),
            Scalar::and([equal(1, 1), equal(2, 1)]),
            Scalar::and([equal(2, 1), equal(1, 1)]),
            Scalar::or([equal(1, 1), equal(2, 1)]),
            equal(1, 1).not(),
        ];
        made.extend(made.clone().into_iter().map(Scalar::is_null));
        let mut fingerprints: Vec<u64> = made.iter().map(|one| one.fingerprint().0).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        assert_eq!(fingerprints.len(), made.len());
    }

    #[test]
    fn places_are_found_by_what_stands_there() {
        let list = [equal(1, 1), equal(1, 2), equal(1, 1)];
        let mut places = Places::default();
        for (place, one) in list.iter().enumerate() {
            places.add(one.fingerprint(), place);
        }
        let find = |one: &Scalar| places.find(one.fingerprint(), |place| list[place] == *one);
        assert_eq!(find(&equal(1, 2)), Some(1));
        assert_eq!(find(&equal(1, 1)), Some(0));
        assert_eq!(find(&equal(1, 3)), None);
    }
}
