//! Whether a [build beside writers](crate::build::build_beside) keeps up with them, and what is done if it does not.
//!
//! ```text
//!   rounds become shorter   --> others go on as they like
//!   they do not             --> others are slowed, more and more: from one change to the next
//!   that does not help      --> the last moment may take longer, and others may wait longer for a change
//! ```
//!
//! **All is measured by time.** A key of one table is looked at in some microseconds, and one whose row has long values
//! takes a thousand times as long. So a round tells how long the work of the next one will take. A key that was looked
//! at in a round before mostly belongs to a row that has not changed again: it counts for a part of a fresh one.
//!
//! **It ends, whatever others do.** A round that is no shorter than the one before makes them slower, or brings the
//! limits nearer to what is needed: those of the last moment, and of a wait. All grow by doubling. They begin so that
//! no statement about a row waits for more than 50 ms.
//!
//! The pace is lifted when the last moment is tried, and stays so if that fails: then the build waits for transactions
//! to end, and a slower pace would keep them from it.

use std::time::Duration;

/// What is left may take so long when all others are locked out, at first.
const LAST_MOMENT: Duration = Duration::from_millis(10);
/// A change of others waits for no longer, at first. It is less than the pace, where several of them wait.
const LONGEST_WAIT: Duration = Duration::from_millis(30);
/// And at last.
const LONGEST_WAIT_AT_LAST: Duration = Duration::from_millis(1_000);
/// More may have come when they are: so many times as much.
const GRACE: u32 = 2;
/// After so many rounds that were not shorter the last moment, and waits, may be twice as long.
const STALE_ROUNDS: u32 = 2;
/// Whether the build keeps up is looked at after each so many keys of a round, or so much time.
const KEYS_OF_STRETCH: u64 = 4_096;
const TIME_OF_STRETCH: Duration = Duration::from_millis(100);
/// It does not if others note more than this part of as many meanwhile: each key is looked at in two rounds.
const KEEPS_UP_PERCENT: u64 = 40;
/// A round is shorter than another if it takes no more than this part of it.
const SHORTER_PERCENT: u32 = 75;
/// Others that are slowed change one row while the build looks at so many keys.
const KEYS_PER_CHANGE: u32 = 4;
/// The slowest pace of others at first, and at last: between two changes.
const SLOWEST_FIRST_PACE: Duration = Duration::from_millis(10);
const SLOWEST_PACE: Duration = Duration::from_millis(250);
/// A fresh key is so many times the work of one that was looked at before.
const UNITS_OF_FRESH: u64 = 4;
/// What a round costs without keys, in such units.
const UNITS_OF_ROUND: u64 = 64;
/// Before anything was measured.
const FIRST_UNIT_NANOS: u64 = 6_000;

/// Keys to look at.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) fresh: u64,
    /// Those that were looked at in a round before.
    pub(crate) kept: u64,
}

impl Work {
    fn units(self) -> u64 {
        self.fresh
            .saturating_mul(UNITS_OF_FRESH)
            .saturating_add(self.kept)
    }

    fn keys(self) -> u64 {
        self.fresh.saturating_add(self.kept)
    }
}

/// Some keys, and how long they took.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) keys: u64,
    pub(crate) elapsed: Duration,
}

impl Stretch {
    pub(crate) fn is_over(&self) -> bool {
        self.keys >= KEYS_OF_STRETCH || self.elapsed >= TIME_OF_STRETCH
    }

    /// Whether rounds become shorter, if others note so many keys in this time.
    fn keeps_up(&self, noted: u64) -> bool {
        noted <= self.keys.saturating_mul(KEEPS_UP_PERCENT) / 100
    }

    /// A slower pace of others, with which the build would have kept up, or will after some more of these.
    fn slower_pace(&self, pace: Duration) -> Duration {
        let per_key = self.elapsed / u32::try_from(self.keys).unwrap_or(u32::MAX).max(1);
        let fitting = per_key.saturating_mul(KEYS_PER_CHANGE);
        let slower = pace.saturating_mul(2).max(fitting.min(SLOWEST_FIRST_PACE));
        slower.min(SLOWEST_PACE)
    }
}

/// A round that is over.
#[derive(Clone, Copy)]
pub(crate) struct FinishedRound {
    pub(crate) done: Work,
    /// Keys whose rows had changed.
    pub(crate) brought: u64,
    pub(crate) elapsed: Duration,
    /// No transaction that does not end keeps keys from being looked at for good.
    pub(crate) can_shorten: bool,
}

/// See the [module](self).
pub(crate) struct KeepingUp {
    /// From one change of others to the next; 0: as they like.
    pace: Duration,
    /// How long one of their changes may wait.
    longest_wait: Duration,
    /// How long the last moment may take.
    moment: Duration,
    /// What a unit of work takes, as far as it is known.
    unit_nanos: u64,
    /// How long the round before took.
    last_round: Option<Duration>,
    /// Rounds that were not shorter than the one before, since the moment was made longer.
    stale: u32,
}

impl KeepingUp {
    pub(crate) fn new() -> KeepingUp {
        KeepingUp {
            pace: Duration::ZERO,
            longest_wait: LONGEST_WAIT,
            moment: LAST_MOMENT,
            unit_nanos: FIRST_UNIT_NANOS,
            last_round: None,
            stale: 0,
        }
    }

    pub(crate) fn pace(&self) -> Duration {
        self.pace
    }

    /// No change of others waits for longer.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.longest_wait
    }

    /// Others go on as they like.
    pub(crate) fn lift_pace(&mut self) {
        self.pace = Duration::ZERO;
    }

    /// A part of a round is over, while others noted so many keys.
    pub(crate) fn after_stretch(&mut self, stretch: Stretch, noted: u64) {
        if !stretch.keeps_up(noted) {
            self.pace = stretch.slower_pace(self.pace);
        }
    }

    /// `left`: what the next round has to do.
    pub(crate) fn after_round(&mut self, round: &FinishedRound, left: Work) {
        let FinishedRound { done, elapsed, .. } = *round;
        if done.keys() > 0 {
            let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
            let unit = nanos / done.units().saturating_add(UNITS_OF_ROUND);
            // Rows that have not changed tell little of those that will have, such as those of an open transaction.
            let is_typical = round.brought > 0 && round.brought >= done.fresh / 2;
            self.unit_nanos = unit.max(match is_typical {
                true => self.unit_nanos / 2,
                false => self.unit_nanos,
            });
        }
        let last = self.last_round.replace(elapsed);
        if self.is_few(left) || !round.can_shorten {
            return;
        }
        let is_shorter = |next: Duration, than: Duration| next <= than * SHORTER_PERCENT / 100;
        if !is_shorter(self.estimate(left), elapsed) {
            let keys = done.keys();
            self.pace = Stretch { keys, elapsed }.slower_pace(self.pace);
        }
        if last.is_some_and(|last| !is_shorter(elapsed, last)) {
            self.is_stale();
        }
    }

    /// The last moment came, and there was too much.
    pub(crate) fn missed(&mut self) {
        self.is_stale();
    }

    fn is_stale(&mut self) {
        self.stale += 1;
        if self.stale == STALE_ROUNDS {
            self.stale = 0;
            self.moment = self.moment.saturating_mul(2);
            self.longest_wait = (self.longest_wait * 2).min(LONGEST_WAIT_AT_LAST);
        }
    }

    /// Whether what is left is little enough to lock all others out.
    pub(crate) fn is_few(&self, left: Work) -> bool {
        self.estimate(left) <= self.moment
    }

    /// Whether it still is, now that they are locked out.
    pub(crate) fn is_few_at_last(&self, left: Work) -> bool {
        self.estimate(left) <= self.moment.saturating_mul(GRACE)
    }

    /// How long the work will take.
    fn estimate(&self, work: Work) -> Duration {
        Duration::from_nanos(work.units().saturating_mul(self.unit_nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn fresh(fresh: u64) -> Work {
        Work { fresh, kept: 0 }
    }

    /// A round that has brought all its fresh keys.
    fn round(done: Work, elapsed: Duration) -> FinishedRound {
        FinishedRound {
            done,
            brought: done.fresh,
            elapsed,
            can_shorten: true,
        }
    }

    #[test]
    fn others_are_slowed_if_nearly_half_as_many_rows_change_as_the_build_looks_at() {
        let stretch = Stretch {
            keys: 20_000,
            elapsed: millis(400),
        };
        assert!(stretch.keeps_up(8_000) && !stretch.keeps_up(8_001));
        // 20 microseconds a key.
        let pace = stretch.slower_pace(Duration::ZERO);
        assert_eq!(pace, Duration::from_micros(80));
        assert_eq!(stretch.slower_pace(pace), Duration::from_micros(160));
        assert_eq!(stretch.slower_pace(SLOWEST_PACE), SLOWEST_PACE);
        // A key that took a second does not make others stand still at once.
        let slow = Stretch {
            keys: 1,
            elapsed: millis(1_000),
        };
        assert_eq!(slow.slower_pace(Duration::ZERO), SLOWEST_FIRST_PACE);
    }

    #[test]
    fn a_stretch_ends_after_keys_or_after_time() {
        let is_over = |keys, elapsed| Stretch { keys, elapsed }.is_over();
        assert!(!is_over(4_095, millis(99)));
        assert!(is_over(4_096, millis(1)) && is_over(1, millis(100)));
        let mut keeping = KeepingUp::new();
        let stretch = Stretch {
            keys: 100,
            elapsed: millis(100),
        };
        keeping.after_stretch(stretch, 40);
        assert_eq!(keeping.pace(), Duration::ZERO);
        keeping.after_stretch(stretch, 41);
        assert_eq!(keeping.pace(), millis(4));
        keeping.lift_pace();
        assert_eq!(keeping.pace(), Duration::ZERO);
    }

    #[test]
    fn the_last_moment_is_bounded_by_time_and_not_by_rows() {
        let mut keeping = KeepingUp::new();
        assert!(keeping.is_few(fresh(400)) && !keeping.is_few(fresh(450)));
        // A millisecond a row.
        keeping.after_round(&round(fresh(1_000), millis(1_000)), fresh(0));
        assert!(keeping.is_few(fresh(10)) && !keeping.is_few(fresh(11)));
        assert!(keeping.is_few_at_last(fresh(20)) && !keeping.is_few_at_last(fresh(21)));
        // Keys that were looked at before are less.
        assert!(keeping.is_few(Work { fresh: 0, kept: 40 }));
        // What few keys took says little.
        let mut keeping = KeepingUp::new();
        keeping.after_round(&round(fresh(1), millis(20)), fresh(0));
        assert!(keeping.is_few(fresh(8)));
        // Nor do rows of a transaction that is still open.
        let mut keeping = KeepingUp::new();
        let open = FinishedRound {
            brought: 0,
            ..round(fresh(3_000), millis(3))
        };
        (0..10).for_each(|_| keeping.after_round(&open, fresh(0)));
        assert!(!keeping.is_few(fresh(3_000)));
        for _ in 0..3 {
            keeping.after_round(&round(fresh(3_000), millis(3)), fresh(0));
        }
        assert!(keeping.is_few(fresh(3_000)));
    }

    #[test]
    fn others_go_on_as_they_like_while_rounds_become_shorter_or_little_is_left() {
        let mut keeping = KeepingUp::new();
        let mut rows = 64_000;
        while !keeping.is_few(fresh(rows)) {
            keeping.after_round(&round(fresh(rows), millis(rows)), fresh(rows / 2));
            rows /= 2;
        }
        assert_eq!(keeping.pace(), Duration::ZERO);
        assert_eq!(keeping.moment, LAST_MOMENT);
        keeping.after_round(&round(fresh(8), millis(8)), fresh(8));
        assert_eq!(keeping.pace(), Duration::ZERO);
        // Nor for a transaction that does not end.
        for _ in 0..10 {
            let waits = FinishedRound {
                can_shorten: false,
                ..round(fresh(3_000), millis(3_000))
            };
            keeping.after_round(&waits, fresh(3_000));
        }
        assert_eq!(keeping.pace(), Duration::ZERO);
        assert_eq!(keeping.moment, LAST_MOMENT);
    }

    #[test]
    fn it_ends_with_writers_that_touch_all_rows_in_each_round() {
        // 3,000 long rows, a millisecond each; others note one in each `micros`, or as the pace says.
        for micros in [1, 100, 500, 2_000] {
            let mut keeping = KeepingUp::new();
            let (mut work, mut elapsed) = (fresh(3_000), Duration::ZERO);
            let mut rounds = 0;
            while !keeping.is_few(work) {
                let took = millis(work.fresh) + Duration::from_micros(work.kept * 100);
                let interval = keeping.pace().max(Duration::from_micros(micros));
                let noted = (took.as_nanos() / interval.as_nanos()) as u64;
                let left = Work {
                    fresh: noted.min(3_000),
                    kept: work.fresh,
                };
                keeping.after_round(&round(work, took), left);
                (work, elapsed, rounds) = (left, elapsed + took, rounds + 1);
                assert!(rounds < 20);
            }
            assert!(elapsed < Duration::from_secs(15), "{elapsed:?}");
            assert!(keeping.moment <= LAST_MOMENT * 2);
        }
    }

    #[test]
    fn it_ends_with_writers_that_no_pace_slows() {
        let mut keeping = KeepingUp::new();
        let work = Work {
            fresh: 3_000,
            kept: 3_000,
        };
        let mut rounds = 0;
        while !keeping.is_few(work) {
            keeping.after_round(&round(work, millis(3_000)), work);
            rounds += 1;
            assert!(rounds < 30);
        }
        assert_eq!(keeping.pace(), SLOWEST_PACE);
        assert_eq!(keeping.longest_wait(), LONGEST_WAIT_AT_LAST);
        let mut keeping = KeepingUp::new();
        assert_eq!(keeping.longest_wait(), LONGEST_WAIT);
        let mut missed = 0;
        while !keeping.is_few_at_last(fresh(1_000_000)) {
            keeping.missed();
            missed += 1;
            assert!(missed < 30);
        }
    }
}
