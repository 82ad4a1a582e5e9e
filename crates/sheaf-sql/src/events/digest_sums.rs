//! The sums of all statements of one digest.

use std::time::Duration;

use sheaf_optimizer::Reads;

use super::StatementEvent;
use super::latency_histogram::LatencyHistogram;
use super::thread_work::Work;

/// A sample is replaced by any other statement when it is older than this, and by a slower one before that
/// (`performance_schema_max_digest_sample_age`).
const MAX_SAMPLE_AGE: Duration = Duration::from_secs(60);

/// See the module's comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DigestSums {
    pub(crate) count: u64,
    pub(crate) sum_nanos: u64,
    pub(crate) min_nanos: u64,
    pub(crate) max_nanos: u64,
    pub(crate) lock_nanos: u64,
    pub(crate) errors: u64,
    pub(crate) warnings: u64,
    pub(crate) rows_affected: u64,
    pub(crate) rows_sent: u64,
    pub(crate) rows_examined: u64,
    /// Statements that have read a whole table or index.
    pub(crate) scans: u64,
    pub(crate) reads: Reads,
    pub(crate) work: Work,
    /// Sorts of statements that have read a whole table or index.
    pub(crate) sorts_of_scans: u64,
    /// Microseconds since 1970 UTC.
    pub(crate) first_seen: i64,
    pub(crate) last_seen: i64,
    pub(crate) times: LatencyHistogram,
    pub(crate) sample: Sample,
}

/// One of the statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) text: String,
    pub(crate) nanos: u64,
    /// Microseconds since 1970 UTC.
    pub(crate) seen: i64,
}

impl DigestSums {
    /// `sample` writes the statement to a text.
    pub(crate) fn add(&mut self, event: &StatementEvent, sample: impl FnOnce(&mut String)) {
        let nanos = u64::try_from(event.elapsed.as_nanos()).unwrap_or(u64::MAX);
        let is_first = self.count == 0;
        self.min_nanos = if is_first {
            nanos
        } else {
            self.min_nanos.min(nanos)
        };
        self.max_nanos = self.max_nanos.max(nanos);
        self.sum_nanos = self.sum_nanos.saturating_add(nanos);
        self.count += 1;
        let lock_nanos = u64::try_from(event.lock_wait.as_nanos()).unwrap_or(u64::MAX);
        self.lock_nanos = self.lock_nanos.saturating_add(lock_nanos);
        self.errors += u64::from(event.error != 0);
        self.warnings += event.warnings;
        self.rows_affected += event.rows_affected;
        self.rows_sent += event.rows_sent;
        self.rows_examined += event.rows_examined;
        self.scans += u64::from(event.has_scanned);
        self.reads.add(event.reads);
        self.work.add(event.work);
        if event.has_scanned {
            self.sorts_of_scans += event.work.sorts;
        }
        let seen = event.began_micros;
        if is_first {
            self.first_seen = seen;
        }
        self.last_seen = self.last_seen.max(seen);
        self.times.add(nanos);
        let age = seen.saturating_sub(self.sample.seen);
        let is_old = i128::from(age) > MAX_SAMPLE_AGE.as_micros() as i128;
        if is_first || is_old || nanos > self.sample.nanos {
            (self.sample.nanos, self.sample.seen) = (nanos, seen);
            self.sample.text.clear();
            sample(&mut self.sample.text);
        }
    }

    pub(crate) fn merge(&mut self, other: &DigestSums) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        self.count += other.count;
        self.lock_nanos = self.lock_nanos.saturating_add(other.lock_nanos);
        self.sum_nanos = self.sum_nanos.saturating_add(other.sum_nanos);
        self.min_nanos = self.min_nanos.min(other.min_nanos);
        self.max_nanos = self.max_nanos.max(other.max_nanos);
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.rows_affected += other.rows_affected;
        self.rows_sent += other.rows_sent;
        self.rows_examined += other.rows_examined;
        self.scans += other.scans;
        self.reads.add(other.reads);
        self.work.add(other.work);
        self.sorts_of_scans += other.sorts_of_scans;
        self.first_seen = self.first_seen.min(other.first_seen);
        self.last_seen = self.last_seen.max(other.last_seen);
        self.times.merge(&other.times);
        let age = other.sample.seen.saturating_sub(self.sample.seen);
        let is_old = i128::from(age) > MAX_SAMPLE_AGE.as_micros() as i128;
        if is_old || other.sample.nanos > self.sample.nanos {
            self.sample = other.sample.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(micros: u64, began_micros: i64) -> StatementEvent {
        StatementEvent {
            began_micros,
            elapsed: Duration::from_micros(micros),
            rows_sent: 2,
            ..StatementEvent::default()
        }
    }

    #[test]
    fn the_slowest_statement_is_the_sample_until_it_is_old() {
        let mut sums = DigestSums::default();
        let minute = 60_000_000;
        for (name, micros, seen) in [
            ("first", 10, 1),
            ("slower", 20, 2),
            ("faster", 5, 3),
            ("later", 7, 4 + minute),
        ] {
            sums.add(&event(micros, seen), |text| text.push_str(name));
            let expected = if name == "faster" { "slower" } else { name };
            assert_eq!(sums.sample.text, expected);
        }
        assert_eq!((sums.count, sums.rows_sent), (4, 8));
        assert_eq!((sums.min_nanos, sums.max_nanos), (5_000, 20_000));
        assert_eq!((sums.first_seen, sums.last_seen), (1, 4 + minute));
    }

    #[test]
    fn sums_are_merged() {
        let (mut left, mut right) = (DigestSums::default(), DigestSums::default());
        left.add(&event(10, 5), |text| text.push_str("left"));
        right.add(&event(30, 4), |text| text.push_str("right"));
        let mut all = DigestSums::default();
        all.merge(&left);
        all.merge(&DigestSums::default());
        all.merge(&right);
        assert_eq!((all.count, all.sum_nanos), (2, 40_000));
        assert_eq!((all.first_seen, all.last_seen), (4, 5));
        assert_eq!(all.sample.text, "right");
    }
}
