//! Entries of a log that were not written: how many, and when that is said.
//!
//! A disk that is full stays so for thousands of entries. So the error log gets a line for the first one, and then at
//! most one in [`REPORT_INTERVAL`], which says how many were lost since the line before.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::log_file::LogFile;

/// From one line of the error log to the next.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// See the module's comment.
pub(super) struct LostEntries {
    /// All that were lost, as a status variable shows.
    total: Arc<AtomicU64>,
    /// Those that no line has told of.
    unsaid: u64,
    /// When the last line was written.
    said: Option<Instant>,
    error: String,
}

impl LostEntries {
    pub(super) fn new(total: &Arc<AtomicU64>) -> LostEntries {
        LostEntries {
            total: Arc::clone(total),
            unsaid: 0,
            said: None,
            error: String::new(),
        }
    }

    /// Why entries are lost from now on.
    pub(super) fn note_error(&mut self, error: &io::Error) {
        self.error = error.to_string();
    }

    /// One was lost.
    pub(super) fn lose(&mut self, file: &LogFile, now: Instant) {
        if let Some(lost) = self.count(now) {
            self.say(file, lost);
        }
    }

    /// Counts one. How many a line is to tell of, if it is time for one.
    fn count(&mut self, now: Instant) -> Option<u64> {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.unsaid += 1;
        self.due(now)
    }

    /// How many a line is to tell of now.
    fn due(&mut self, now: Instant) -> Option<u64> {
        let is_over = |said: Instant| now.saturating_duration_since(said) >= REPORT_INTERVAL;
        if self.unsaid == 0 || !self.said.is_none_or(is_over) {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }

    /// One was written: tells of what no line has told of, if it is time for one.
    pub(super) fn report_due(&mut self, file: &LogFile, now: Instant) {
        if let Some(lost) = self.due(now) {
            self.say(file, lost);
        }
    }

    /// The log ends: tells of what no line has told of.
    pub(super) fn report_rest(&mut self, file: &LogFile) {
        let lost = std::mem::take(&mut self.unsaid);
        if lost > 0 {
            self.say(file, lost);
        }
    }

    fn say(&self, file: &LogFile, lost: u64) {
        tracing::error!(
            lost,
            file = file.name(),
            error = self.error,
            "entries of the slow query log could not be written"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_of_all_that_were_lost_since_the_one_before() {
        let total = Arc::default();
        let mut lost = LostEntries::new(&total);
        let start = Instant::now();
        assert_eq!(lost.count(start), Some(1));
        for _ in 0..7 {
            assert_eq!(lost.count(start), None);
        }
        assert_eq!(lost.count(start + REPORT_INTERVAL), Some(8));
        assert_eq!(lost.count(start + REPORT_INTERVAL), None);
        assert_eq!(lost.due(start + REPORT_INTERVAL), None);
        assert_eq!(lost.due(start + 2 * REPORT_INTERVAL), Some(1));
        assert_eq!(lost.due(start + 4 * REPORT_INTERVAL), None);
        assert_eq!(total.load(Ordering::Relaxed), 10);
    }
}
