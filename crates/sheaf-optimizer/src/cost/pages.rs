//! How many pages of a tree are touched by lookups.
//!
//! Three answers to one question, with `n` lookups in a tree of `t` leaves and a pool of `b` pages:
//!
//! - *each page once*, because keys come in order or the pool holds everything: t (1 - (1 - 1/t)^n), Cardenas,
//!   "Analysis and Performance of Inverted Data Base Structures", CACM 1975;
//! - *some pages again*, because the pool has forgotten them: Mackert and Lohman, "Index Scans Using a Finite LRU
//!   Buffer: A Validated I/O Model", TODS 1989, the approximation that PostgreSQL uses too;
//! - *neighbours together*, because rows that are near each other in the index are so in the tree, as the correlation
//!   of the column with the clustered order tells. They are neighbours within what is looked up at one place: all that
//!   a range has, but of a join's keys, which lie anywhere, the rows of each key only.
//!
//! Pages read from the device are one thing, and how often the processor visits a page that is in memory is another:
//! [`visits_in_turns`]. Whether it still has it in its cache depends on the size of the tree: [`uncached`].

use sheaf_access::sort_rule::CACHED_LEAVES;

use super::CostConstants;

/// Distinct pages of a tree of `pages` leaves that `lookups` random keys touch (Cardenas).
pub(crate) fn distinct_pages(lookups: f64, pages: f64) -> f64 {
    if pages <= 1.0 {
        return pages.min(lookups);
    }
    pages * (1.0 - (lookups * (1.0 - 1.0 / pages).ln()).exp())
}

/// Pages read by `lookups` random keys, one after the other, through a pool of `pool_pages` (Mackert and Lohman).
pub(crate) fn pages_in_no_order(lookups: f64, pages: f64, pool_pages: f64) -> f64 {
    let (n, t, b) = (lookups, pages.max(1.0), pool_pages.max(1.0));
    let once = 2.0 * t * n / (2.0 * t + n);
    if t <= b {
        return once.min(t);
    }
    // From so many lookups on the pool is full.
    let full = 2.0 * t * b / (2.0 * t - b);
    if n <= full {
        once
    } else {
        b + (n - full) * (t - b) / t
    }
}

/// Pages read when `lookups` rows of a tree of `leaves` pages are fetched in turns, each sorted, of at most
/// `keys_per_turn` keys. A tree that does not fit in the pool's `pool_pages` is gone through anew in each turn.
pub(crate) fn pages_in_turns(
    lookups: f64,
    leaves: f64,
    keys_per_turn: f64,
    pool_pages: f64,
) -> f64 {
    let once = distinct_pages(lookups, leaves);
    if leaves <= pool_pages {
        return once;
    }
    let turns = (lookups / keys_per_turn.max(1.0)).ceil().max(1.0);
    turns * distinct_pages(lookups / turns, leaves)
}

/// What reading `pages` prefetched pages of a tree of `leaves` takes, in `turns` that go through the tree in its order,
/// a share p of the leaves in each:
///
/// ```text
///   turns x leaves x sequential read x (1 - (1 - p)^(prefetched read / sequential read))
/// ```
///
/// The next page is some leaves away, g with chance p (1 - p)^(g - 1). It takes the reading of all of them, or a
/// request of its own, whatever is less. So few pages take a request each, and all pages what a scan takes. A turn
/// begins with a request.
pub(crate) fn gapped_reads_us(
    constants: &CostConstants,
    pages: f64,
    leaves: f64,
    turns: f64,
) -> f64 {
    let turns = turns.max(1.0);
    let share = (pages / (turns * leaves.max(1.0))).min(1.0);
    let requests = 1.0 - (1.0 - share).powf(constants.merge_gap_pages().max(1.0));
    let in_turns_us = turns * leaves * constants.sequential_read_us * requests;
    let begun_us = turns.min(pages) * constants.prefetched_read_us;
    in_turns_us.max(begun_us + (pages - turns).max(0.0) * constants.sequential_read_us)
}

/// How often leaves are visited by the lookups of [`pages_in_turns`], in memory or not: once in each turn.
pub(crate) fn visits_in_turns(lookups: f64, leaves: f64, keys_per_turn: f64) -> f64 {
    pages_in_turns(lookups, leaves, keys_per_turn, 0.0)
}

/// Share of the visits to a tree of `leaves` pages, in no order, whose page is in no cache of the processor:
/// 1 - exp(-leaves / cached). Measured, a lookup in no order took 0.30 us in a tree of 1.6 MiB, 0.6 in 27, 1.5 in 180
/// and 2.7 in 805.
pub(crate) fn uncached(leaves: f64) -> f64 {
    1.0 - (-leaves / CACHED_LEAVES).exp()
}

/// Pages read by lookups at `places` anywhere in a tree of `leaves` pages and `rows` rows, `lookups` in all, those of a
/// place being neighbours in the tree.
pub(crate) fn pages_at_places(places: f64, lookups: f64, rows: f64, leaves: f64) -> f64 {
    let places = places.min(lookups);
    let behind_first = (lookups - places) / rows.max(1.0) * leaves;
    (distinct_pages(places, leaves) + behind_first).min(leaves.max(1.0))
}

/// Between `scattered` pages and those of `together` neighbours, by the correlation (-1 to 1) of the lookups' order
/// with the tree's.
pub(crate) fn with_correlation(scattered: f64, together: f64, correlation: f64) -> f64 {
    let share = correlation * correlation;
    scattered.min(together) * share + scattered * (1.0 - share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_holds_everything_reads_no_page_twice() {
        assert!(pages_in_no_order(1e6, 1000.0, 2000.0) <= 1000.0);
        assert!(pages_in_no_order(1e6, 1000.0, 500.0) > 400_000.0);
        let few = pages_in_no_order(10.0, 1000.0, 500.0);
        assert!((9.0..=10.0).contains(&few), "{few}");
    }

    #[test]
    fn turns_go_through_a_big_tree_again() {
        assert!(pages_in_turns(10_000.0, 1000.0, 100.0, 2000.0) <= 1000.0);
        let again = pages_in_turns(10_000.0, 1000.0, 1000.0, 500.0);
        assert!((6000.0..7000.0).contains(&again), "{again}");
    }

    #[test]
    fn gaps_cost_what_is_less() {
        let constants = CostConstants::default();
        let near = |a: f64, b: f64| (a - b).abs() < 0.01 * b;
        let few = gapped_reads_us(&constants, 10.0, 100_000.0, 1.0);
        assert!(near(few, 10.0 * constants.prefetched_read_us), "{few}");
        let one = gapped_reads_us(&constants, 1.0, 1.0, 1.0);
        assert!(near(one, constants.prefetched_read_us), "{one}");
        let all = gapped_reads_us(&constants, 1000.0, 1000.0, 1.0);
        assert!(near(all, 1000.0 * constants.sequential_read_us), "{all}");
        let twice = gapped_reads_us(&constants, 2000.0, 1000.0, 2.0);
        assert!(near(twice, 2.0 * all), "{twice}");
    }

    #[test]
    fn rows_in_the_order_of_the_tree_share_their_pages() {
        // A hundred neighbours begin somewhere on the first of their leaves, ten rows each.
        let together = pages_at_places(1.0, 100.0, 10_000.0, 1000.0);
        assert!((together - 10.9).abs() < 1e-6, "{together}");
        assert_eq!(with_correlation(90.0, together, 1.0), together);
        assert_eq!(with_correlation(90.0, together, 0.0), 90.0);
        assert_eq!(with_correlation(90.0, together, -1.0), together);
    }

    #[test]
    fn neighbours_at_many_places_are_on_many_pages() {
        // Four rows at each of a hundred places in a thousand leaves of ten.
        let pages = pages_at_places(100.0, 400.0, 10_000.0, 1000.0);
        assert!((110.0..130.0).contains(&pages), "{pages}");
        assert_eq!(pages_at_places(1e6, 4e6, 10_000.0, 1000.0), 1000.0);
        assert_eq!(pages_at_places(5.0, 1.0, 10_000.0, 1000.0).round(), 1.0);
    }
}
