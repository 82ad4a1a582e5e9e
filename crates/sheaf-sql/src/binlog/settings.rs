//! What variables say about the binary log.

use std::collections::VecDeque;
use std::time::Duration;

use sheaf_binlog::row::columns::RowImage;

/// What variables say about the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BinlogSettings {
    /// The server's.
    pub(crate) version: &'static str,
    pub(crate) server_id: u32,
    /// A file that is longer is the last but one.
    pub(crate) max_file_bytes: u64,
    pub(crate) image: RowImage,
    /// Older files are removed; `None`: they stay.
    pub(crate) expire: Option<Duration>,
}

/// Settings that are left for commits under them. Beyond it, the oldest commits are written as a later setting says.
const MAX_KEPT: usize = 1024;

/// The settings, and those before: the files are written behind the commits, each commit as the variables were then.
#[derive(Debug)]
pub(super) struct SettingsOverTime {
    newest: BinlogSettings,
    /// Oldest first, each with the number of the last commit under it.
    before: VecDeque<(u64, BinlogSettings)>,
}

impl SettingsOverTime {
    pub(super) fn new(newest: BinlogSettings) -> SettingsOverTime {
        SettingsOverTime {
            newest,
            before: VecDeque::new(),
        }
    }

    pub(super) fn newest(&self) -> BinlogSettings {
        self.newest
    }

    /// Commits behind `last` are under these settings.
    pub(super) fn assign(&mut self, settings: BinlogSettings, last: u64) {
        let before = std::mem::replace(&mut self.newest, settings);
        if before != settings {
            self.before.push_back((last, before));
            if self.before.len() > MAX_KEPT {
                self.before.pop_front();
            }
        }
    }

    /// The settings of a commit; those of commits before it are not asked for any more.
    pub(super) fn of(&mut self, number: u64) -> BinlogSettings {
        while self.before.front().is_some_and(|(last, _)| *last < number) {
            self.before.pop_front();
        }
        let kept = self.before.front().map(|(_, settings)| *settings);
        kept.unwrap_or(self.newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(server_id: u32) -> BinlogSettings {
        BinlogSettings {
            version: "8",
            server_id,
            max_file_bytes: 4096,
            image: RowImage::Full,
            expire: None,
        }
    }

    #[test]
    fn each_commit_has_the_settings_of_its_time() {
        let mut all = SettingsOverTime::new(settings(1));
        all.assign(settings(1), 3);
        all.assign(settings(2), 5);
        all.assign(settings(3), 5);
        all.assign(settings(4), 8);
        assert_eq!(all.of(4).server_id, 1);
        assert_eq!(all.of(5).server_id, 1);
        assert_eq!(all.of(6).server_id, 3);
        assert_eq!(all.of(8).server_id, 3);
        assert_eq!(all.of(9).server_id, 4);
        assert!(all.before.is_empty());
        assert_eq!(all.newest().server_id, 4);
    }

    #[test]
    fn settings_that_are_kept_are_bounded() {
        let mut all = SettingsOverTime::new(settings(0));
        for number in 1..=5000 {
            all.assign(settings(number), number.into());
        }
        assert_eq!(all.before.len(), MAX_KEPT);
        assert_eq!(all.of(5000).server_id, 4999);
    }
}
