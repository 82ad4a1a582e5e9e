//! Compiling conditions: from constants to compares of words and bytes.
//!
//! Every comparison of a number with a constant becomes a test of a range of *ordered words*: unsigned 64-bit numbers
//! that order as the values do (see [`sheaf_table::fixed_width_loads`]). `=`, `<`, BETWEEN and
//! similar comparisons differ only in the bounds, so one branch-free loop serves them all. Constants that the type
//! cannot hold need no special case: the range is empty or everything. Strings, and decimals too wide for a word,
//! compare as bytes.

use std::collections::BTreeMap;
use std::ops::Bound;

use sheaf_types::Value;

use crate::condition::CompareOp;

/// A set of words: a range, or its complement, or a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WordSet {
    /// `low <= word <= low + span`
    Within { low: u64, span: u64 },
    /// `word <> it`
    Not(u64),
    /// One of these, ascending.
    OneOf(Vec<u64>),
    /// In one of these ranges, bounds included: ascending, no two of them overlap or touch.
    Ranges(Vec<(u64, u64)>),
    /// Any word: the value only has to be not NULL.
    Any,
    /// No word.
    Nothing,
}

impl WordSet {
    fn range(low: u64, high: u64) -> Self {
        match (low, high) {
            _ if low > high => Self::Nothing,
            (0, u64::MAX) => Self::Any,
            _ => Self::Within {
                low,
                span: high - low,
            },
        }
    }

    /// The words in both sets, if that is a set that can be said.
    pub(crate) fn intersect(&self, other: &Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (Self::Any, set) | (set, Self::Any) => set.clone(),
            (Self::Within { low: a, span: s }, Self::Within { low: b, span: t }) => {
                Self::range(*a.max(b), (a + s).min(b + t))
            }
            (Self::Ranges(_) | Self::OneOf(_), Self::Within { low, span }) => {
                Self::of_ranges(clipped(self.ranges(), *low, low + span))
            }
            (Self::Within { low, span }, Self::Ranges(_) | Self::OneOf(_)) => {
                Self::of_ranges(clipped(other.ranges(), *low, low + span))
            }
            _ => return None,
        })
    }

    /// The words in any of the sets.
    fn union(sets: &[Self]) -> Self {
        let mut ranges: Vec<_> = sets.iter().flat_map(Self::ranges).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some((_, last)) if low <= last.saturating_add(1) => *last = high.max(*last),
                _ => merged.push((low, high)),
            }
        }
        Self::of_ranges(merged)
    }

    /// The set as ascending ranges.
    fn ranges(&self) -> Vec<(u64, u64)> {
        match self {
            Self::Within { low, span } => vec![(*low, low + span)],
            Self::Not(word) => {
                let below = word.checked_sub(1).map(|high| (0, high));
                let above = word.checked_add(1).map(|low| (low, u64::MAX));
                below.into_iter().chain(above).collect()
            }
            Self::OneOf(words) => words.iter().map(|&word| (word, word)).collect(),
            Self::Ranges(ranges) => ranges.clone(),
            Self::Any => vec![(0, u64::MAX)],
            Self::Nothing => Vec::new(),
        }
    }

    /// The set of ascending ranges.
    fn of_ranges(ranges: Vec<(u64, u64)>) -> Self {
        match ranges.as_slice() {
            [] => Self::Nothing,
            &[(low, high)] => Self::range(low, high),
            ranges if ranges.iter().all(|(low, high)| low == high) => {
                Self::OneOf(ranges.iter().map(|&(word, _)| word).collect())
            }
            _ => Self::Ranges(ranges),
        }
    }

    /// Keeps in `selection` the entries whose word, given by `load`, is in the set.
    #[inline(always)]
    pub(crate) fn retain(&self, selection: &mut Vec<u32>, load: impl Fn(u32) -> u64) {
        match self {
            Self::Within { low, span } => {
                retain(selection, |entry| load(entry).wrapping_sub(*low) <= *span);
            }
            Self::Not(word) => retain(selection, |entry| load(entry) != *word),
            Self::OneOf(words) if words.len() <= 8 => {
                retain(selection, |entry| {
                    let word = load(entry);
                    words
                        .iter()
                        .fold(false, |found, &candidate| found | (candidate == word))
                });
            }
            Self::OneOf(words) => {
                retain(selection, |entry| words.binary_search(&load(entry)).is_ok())
            }
            Self::Ranges(ranges) => retain(selection, |entry| {
                let word = load(entry);
                let next = ranges.partition_point(|&(low, _)| low <= word);
                next > 0 && word <= ranges[next - 1].1
            }),
            Self::Any => {}
            Self::Nothing => selection.clear(),
        }
    }
}

/// What of ascending ranges lies between two words, both included.
fn clipped(ranges: Vec<(u64, u64)>, low: u64, high: u64) -> Vec<(u64, u64)> {
    let within = ranges.into_iter().filter_map(|(from, to)| {
        let (from, to) = (from.max(low), to.min(high));
        (from <= to).then_some((from, to))
    });
    within.collect()
}

/// Keeps the entries of `selection` that `test` accepts, in their order; without a branch on the outcome.
#[inline(always)]
pub(crate) fn retain(selection: &mut Vec<u32>, test: impl Fn(u32) -> bool) {
    let mut kept = 0;
    for position in 0..selection.len() {
        let entry = selection[position];
        selection[kept] = entry;
        kept += usize::from(test(entry));
    }
    selection.truncate(kept);
}

/// How numbers of a type map to ordered words: `word = value + bias`, for words up to `max`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordDomain {
    bias: i128,
    max: u64,
}

impl WordDomain {
    /// Signed numbers of `width` (1 to 8) bytes.
    pub(crate) fn signed(width: usize) -> Self {
        Self {
            bias: 1 << (8 * width - 1),
            max: u64::MAX >> (64 - 8 * width),
        }
    }

    /// Unsigned numbers of `width` (1 to 8) bytes.
    pub(crate) fn unsigned(width: usize) -> Self {
        Self {
            bias: 0,
            max: u64::MAX >> (64 - 8 * width),
        }
    }

    /// The words of the numbers from `low` to `high`, both included.
    fn range(&self, low: i128, high: i128) -> WordSet {
        let low = low.max(-self.bias);
        let high = high.min(i128::from(self.max) - self.bias);
        if low > high {
            return WordSet::Nothing;
        }
        let (low, high) = ((low + self.bias) as u64, (high + self.bias) as u64);
        // A domain narrower than a word has no words above its maximum, so "up to the maximum" is "any".
        WordSet::range(low, if high == self.max { u64::MAX } else { high })
    }

    /// The words for which `value op number` is true.
    pub(crate) fn compare(&self, op: CompareOp, number: Number) -> WordSet {
        if op == CompareOp::NotEq {
            return match (number.exact, self.range(number.floor, number.floor)) {
                (true, WordSet::Within { low, .. }) => WordSet::Not(low),
                _ => WordSet::Any,
            };
        }
        match number.bounds(op) {
            Some((low, high)) => self.range(low, high),
            None => WordSet::Nothing,
        }
    }

    /// The words of the numbers in a list.
    pub(crate) fn one_of(&self, numbers: impl Iterator<Item = Number>) -> WordSet {
        let mut words: Vec<u64> = numbers
            .filter(|number| number.exact)
            .filter(|number| {
                (-self.bias..=i128::from(self.max) - self.bias).contains(&number.floor)
            })
            .map(|number| (number.floor + self.bias) as u64)
            .collect();
        words.sort_unstable();
        words.dedup();
        match words.as_slice() {
            [] => WordSet::Nothing,
            [word] => WordSet::range(*word, *word),
            _ => WordSet::OneOf(words),
        }
    }
}

/// The words of an already ordered domain (floats) for which `value op word` is true.
pub(crate) fn compare_word(op: CompareOp, word: u64) -> WordSet {
    match op {
        CompareOp::Eq => WordSet::range(word, word),
        CompareOp::NotEq => WordSet::Not(word),
        CompareOp::Less => word
            .checked_sub(1)
            .map_or(WordSet::Nothing, |high| WordSet::range(0, high)),
        CompareOp::LessOrEqual => WordSet::range(0, word),
        CompareOp::Greater => word
            .checked_add(1)
            .map_or(WordSet::Nothing, |low| WordSet::range(low, u64::MAX)),
        CompareOp::GreaterOrEqual => WordSet::range(word, u64::MAX),
    }
}

/// A constant in units of the column: `floor`, and whether that is all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    pub(crate) floor: i128,
    pub(crate) exact: bool,
}

impl Number {
    /// The number of a constant for a column with `scale` digits after the point (0 for all that is no DECIMAL). `None`
    /// if the constant is no exact number, or too large to be scaled.
    pub(crate) fn of(value: &Value, scale: u8) -> Option<Self> {
        let whole = |number: i128| {
            let floor = number.checked_mul(10i128.checked_pow(u32::from(scale))?)?;
            Some(Self { floor, exact: true })
        };
        match value {
            Value::Date(days) => whole(i128::from(*days)),
            Value::Time(micros) | Value::DateTime(micros) | Value::Timestamp(micros) => {
                whole(i128::from(*micros))
            }
            Value::Decimal {
                unscaled,
                scale: from,
            } if *from <= scale => {
                let floor = unscaled.checked_mul(10i128.checked_pow(u32::from(scale - from))?)?;
                Some(Self { floor, exact: true })
            }
            Value::Decimal {
                unscaled,
                scale: from,
            } => {
                let divisor = 10i128.checked_pow(u32::from(from - scale))?;
                let floor = unscaled.div_euclid(divisor);
                Some(Self {
                    floor,
                    exact: floor * divisor == *unscaled,
                })
            }
            value => whole(value.as_i128()?),
        }
    }

    /// The least and the greatest whole number `n` with `n op self`; `None` if there is none. Not for `<>`.
    pub(crate) fn bounds(&self, op: CompareOp) -> Option<(i128, i128)> {
        let Self { floor, exact } = *self;
        let above = floor.saturating_add(1);
        match op {
            CompareOp::Eq => exact.then_some((floor, floor)),
            CompareOp::Less if exact => Some((i128::MIN, floor.saturating_sub(1))),
            CompareOp::Less | CompareOp::LessOrEqual => Some((i128::MIN, floor)),
            CompareOp::GreaterOrEqual if exact => Some((floor, i128::MAX)),
            CompareOp::GreaterOrEqual | CompareOp::Greater => Some((above, i128::MAX)),
            CompareOp::NotEq => None,
        }
    }
}

/// A set of byte strings.
#[derive(Clone, Debug)]
pub(crate) enum BytesSet {
    /// Between two bounds.
    Within(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Anything but this.
    Not(Vec<u8>),
    /// One of these, ascending.
    OneOf(Vec<Vec<u8>>),
}

impl BytesSet {
    /// Every string.
    pub(crate) fn any() -> Self {
        Self::Within(Bound::Unbounded, Bound::Unbounded)
    }

    /// The strings for which `value op string` is true.
    pub(crate) fn compare(op: CompareOp, string: Vec<u8>) -> Self {
        match op {
            CompareOp::Eq => Self::OneOf(vec![string]),
            CompareOp::NotEq => Self::Not(string),
            CompareOp::Less => Self::Within(Bound::Unbounded, Bound::Excluded(string)),
            CompareOp::LessOrEqual => Self::Within(Bound::Unbounded, Bound::Included(string)),
            CompareOp::Greater => Self::Within(Bound::Excluded(string), Bound::Unbounded),
            CompareOp::GreaterOrEqual => Self::Within(Bound::Included(string), Bound::Unbounded),
        }
    }

    /// A list.
    pub(crate) fn one_of(mut strings: Vec<Vec<u8>>) -> Self {
        strings.sort_unstable();
        strings.dedup();
        Self::OneOf(strings)
    }

    /// Whether `bytes` is in the set.
    #[inline]
    pub(crate) fn contains(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Within(lower, upper) => {
                (match lower {
                    Bound::Unbounded => true,
                    Bound::Included(lower) => bytes >= lower.as_slice(),
                    Bound::Excluded(lower) => bytes > lower.as_slice(),
                }) && (match upper {
                    Bound::Unbounded => true,
                    Bound::Included(upper) => bytes <= upper.as_slice(),
                    Bound::Excluded(upper) => bytes < upper.as_slice(),
                })
            }
            Self::Not(string) => bytes != string.as_slice(),
            Self::OneOf(strings) if strings.len() <= 4 => {
                strings.iter().any(|string| string.as_slice() == bytes)
            }
            Self::OneOf(strings) => strings
                .binary_search_by(|string| string.as_slice().cmp(bytes))
                .is_ok(),
        }
    }
}

/// Tests under AND and OR. `T` tests one column.
pub(crate) enum Tests<T> {
    One(T),
    And(Vec<Tests<T>>),
    Or(Vec<Tests<T>>),
}

impl<T> Tests<T> {
    /// All of these, without ANDs directly in the AND.
    fn all(terms: Vec<Tests<T>>) -> Self {
        let mut flat = Vec::with_capacity(terms.len());
        for term in terms {
            match term {
                Tests::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Tests::And(flat)
    }

    /// All of these. `merge` makes one of two terms of an AND, if it can, and says whether it has.
    pub(crate) fn all_merged(terms: Vec<Tests<T>>, merge: impl Fn(&mut T, &T) -> bool) -> Self {
        let Tests::And(terms) = Self::all(terms) else {
            return Self::never();
        };
        let mut merged: Vec<Tests<T>> = Vec::with_capacity(terms.len());
        for term in terms {
            let is_merged = match &term {
                Tests::One(test) => merged.iter_mut().any(|other| match other {
                    Tests::One(other) => merge(other, test),
                    _ => false,
                }),
                _ => false,
            };
            if !is_merged {
                merged.push(term);
            }
        }
        match merged.len() {
            1 => merged.remove(0),
            _ => Tests::And(merged),
        }
    }

    /// Any of these, with the words of one column in one set. `words` says of a test which column it tests and the
    /// words that pass, if it tests words.
    pub(crate) fn any_merged<C: Ord>(
        terms: Vec<Tests<T>>,
        words: impl Fn(&mut T) -> Option<(C, &mut WordSet)>,
    ) -> Self {
        let mut merged: Vec<Tests<T>> = Vec::new();
        // By column, where its test stands and the sets that are to go into it.
        let mut gathered: BTreeMap<C, (usize, Vec<WordSet>)> = BTreeMap::new();
        let flat = terms.into_iter().flat_map(|term| match term {
            Tests::Or(inner) => inner,
            other => vec![other],
        });
        for mut term in flat {
            if let Tests::One(test) = &mut term
                && let Some((column, set)) = words(test)
            {
                let set = std::mem::replace(set, WordSet::Nothing);
                if let Some((_, sets)) = gathered.get_mut(&column) {
                    sets.push(set);
                    continue;
                }
                gathered.insert(column, (merged.len(), vec![set]));
            }
            merged.push(term);
        }
        for (place, sets) in gathered.into_values() {
            if let Tests::One(test) = &mut merged[place]
                && let Some((_, set)) = words(test)
            {
                *set = match <[WordSet; 1]>::try_from(sets) {
                    Ok([only]) => only,
                    Err(sets) => WordSet::union(&sets),
                };
            }
        }
        match merged.len() {
            1 => merged.remove(0),
            _ => Tests::Or(merged),
        }
    }

    /// A test that nothing passes.
    pub(crate) fn never() -> Self {
        Tests::Or(Vec::new())
    }

    /// Keeps in `selection` what passes, in its order. `test` does the same for one column.
    pub(crate) fn retain<E>(
        &mut self,
        selection: &mut Vec<u32>,
        test: &mut impl FnMut(&mut T, &mut Vec<u32>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Tests::One(one) => test(one, selection),
            Tests::And(terms) => {
                for term in terms {
                    if selection.is_empty() {
                        break;
                    }
                    term.retain(selection, test)?;
                }
                Ok(())
            }
            Tests::Or(terms) => {
                // Each term sees only what no term before it accepted.
                let mut undecided = selection.clone();
                let mut passed = Vec::new();
                for term in terms {
                    if undecided.is_empty() {
                        break;
                    }
                    let mut accepted = undecided.clone();
                    term.retain(&mut accepted, test)?;
                    let mut rest = accepted.iter().peekable();
                    undecided.retain(|entry| rest.next_if(|&&next| next == *entry).is_none());
                    passed.extend(accepted);
                }
                let mut keep =
                    vec![false; selection.iter().max().map_or(0, |&last| last as usize + 1)];
                passed.iter().for_each(|&entry| keep[entry as usize] = true);
                selection.retain(|&entry| keep[entry as usize]);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: [CompareOp; 6] = [
        CompareOp::Eq,
        CompareOp::NotEq,
        CompareOp::Less,
        CompareOp::LessOrEqual,
        CompareOp::Greater,
        CompareOp::GreaterOrEqual,
    ];

    fn holds<T: PartialOrd>(op: CompareOp, a: T, b: T) -> bool {
        match op {
            CompareOp::Eq => a == b,
            CompareOp::NotEq => a != b,
            CompareOp::Less => a < b,
            CompareOp::LessOrEqual => a <= b,
            CompareOp::Greater => a > b,
            CompareOp::GreaterOrEqual => a >= b,
        }
    }

    fn accepts(set: &WordSet, word: u64) -> bool {
        let mut selection = vec![0];
        set.retain(&mut selection, |_| word);
        !selection.is_empty()
    }

    #[test]
    fn a_comparison_is_a_range_of_words_even_with_constants_out_of_range() {
        for (domain, values) in [
            (WordDomain::signed(1), (-128..=127).collect::<Vec<i128>>()),
            (WordDomain::unsigned(1), (0..=255).collect()),
            (
                WordDomain::signed(8),
                vec![i64::MIN as i128, -1, 0, 1, i64::MAX as i128],
            ),
            (WordDomain::unsigned(8), vec![0, 1, u64::MAX as i128]),
        ] {
            for constant in [
                -1000,
                -128,
                -1,
                0,
                1,
                127,
                128,
                255,
                256,
                i64::MAX as i128,
                u64::MAX as i128 + 1,
            ] {
                for op in OPS {
                    let set = domain.compare(
                        op,
                        Number {
                            floor: constant,
                            exact: true,
                        },
                    );
                    for &value in &values {
                        let word = (value + domain.bias) as u64;
                        assert_eq!(
                            accepts(&set, word),
                            holds(op, value, constant),
                            "{value} {op:?} {constant}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_constant_with_more_digits_than_the_column_compares_exactly() {
        let domain = WordDomain::signed(2);
        for unscaled in [-1055, -1050, 55, 50, 0, -5] {
            let number = Number::of(&Value::Decimal { unscaled, scale: 3 }, 1).unwrap();
            for op in OPS {
                for value in -20..20 {
                    let accepted =
                        accepts(&domain.compare(op, number), (value + domain.bias) as u64);
                    assert_eq!(
                        accepted,
                        holds(op, value * 100, unscaled),
                        "{value}/10 {op:?} {unscaled}/1000"
                    );
                }
            }
        }
    }

    #[test]
    fn lists_leave_out_what_the_type_cannot_hold() {
        let numbers = [3, 300, 3, 7].map(|floor| Number { floor, exact: true });
        assert_eq!(
            WordDomain::unsigned(1).one_of(numbers.into_iter()),
            WordSet::OneOf(vec![3, 7])
        );
        assert_eq!(
            WordDomain::unsigned(1).one_of(numbers[1..2].iter().copied()),
            WordSet::Nothing
        );
    }

    #[test]
    fn the_union_of_sets_of_words_is_one_set() {
        let sets = [
            WordSet::Nothing,
            WordSet::Within { low: 3, span: 2 },
            WordSet::OneOf(vec![1, 6, 9]),
            WordSet::Ranges(vec![(20, 22), (u64::MAX, u64::MAX)]),
            WordSet::Not(21),
            WordSet::Not(0),
            WordSet::Not(u64::MAX),
            WordSet::Any,
        ];
        let words = [0, 1, 2, 3, 5, 6, 7, 9, 10, 20, 21, 22, 23, u64::MAX];
        for (position, a) in sets.iter().enumerate() {
            for b in &sets[position..] {
                let union = WordSet::union(&[a.clone(), b.clone()]);
                let both = a.intersect(b);
                for word in words {
                    let either = accepts(a, word) || accepts(b, word);
                    assert_eq!(accepts(&union, word), either, "{a:?} OR {b:?}: {word}");
                    if let Some(both) = &both {
                        let expected = accepts(a, word) && accepts(b, word);
                        assert_eq!(accepts(both, word), expected, "{a:?} AND {b:?}: {word}");
                    }
                }
            }
        }
        let touching = [WordSet::range(4, 5), WordSet::range(6, 7)];
        assert_eq!(WordSet::union(&touching), WordSet::range(4, 7));
    }

    #[test]
    fn sets_of_one_column_become_one_test_of_an_or() {
        let or = Tests::any_merged(
            vec![
                Tests::One(('a', WordSet::range(1, 3))),
                Tests::One(('b', WordSet::range(2, 2))),
                Tests::Or(vec![
                    Tests::One(('a', WordSet::range(5, 6))),
                    Tests::And(vec![Tests::One(('a', WordSet::Any))]),
                ]),
            ],
            |(column, set)| Some((*column, set)),
        );
        let Tests::Or(terms) = or else {
            panic!("an OR of two columns");
        };
        let sets: Vec<_> = terms
            .iter()
            .map(|term| match term {
                Tests::One(test) => Some(test.clone()),
                _ => None,
            })
            .collect();
        let a = ('a', WordSet::Ranges(vec![(1, 3), (5, 6)]));
        assert_eq!(sets, [Some(a), Some(('b', WordSet::range(2, 2))), None]);
    }

    #[test]
    fn or_keeps_the_order_of_the_selection() {
        let mut tests = Tests::Or(vec![
            Tests::One(7),
            Tests::And(vec![Tests::One(3), Tests::One(2)]),
            Tests::One(10),
        ]);
        let mut selection: Vec<u32> = (1..=20).rev().collect();
        let mut divisible = |divisor: &mut u32, selection: &mut Vec<u32>| -> Result<(), ()> {
            selection.retain(|entry| entry % *divisor == 0);
            Ok(())
        };
        tests.retain(&mut selection, &mut divisible).unwrap();
        assert_eq!(selection, [20, 18, 14, 12, 10, 7, 6]);
        Tests::never()
            .retain(&mut selection, &mut divisible)
            .unwrap();
        assert!(selection.is_empty());
    }

    #[test]
    fn byte_strings_compare_as_memcmp_does() {
        for op in OPS {
            for (a, b) in [("a", "b"), ("b", "a"), ("a", "a"), ("a", "ab"), ("", "a")] {
                let set = BytesSet::compare(op, b.as_bytes().to_vec());
                assert_eq!(
                    set.contains(a.as_bytes()),
                    holds(op, a, b),
                    "{a} {op:?} {b}"
                );
            }
        }
    }
}
