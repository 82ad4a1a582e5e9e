//! The warnings of the last statement: what SHOW WARNINGS lists.

use sheaf_types::ColumnIssue;
use sheaf_types::error::codes;

use crate::variables::Truncated;

/// How grave a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Note,
    Warning,
    Error,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub level: Level,
    pub code: u16,
    pub message: String,
}

/// The messages of one statement. Only `max_error_count` of them are kept; all are counted.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    kept: Vec<Warning>,
    count: u64,
    errors: u64,
    limit: usize,
    /// Notes are neither kept nor counted (`sql_notes`).
    leaves_notes_out: bool,
    /// Counts of the statement before, which `SELECT @@warning_count` asks for.
    previous: (u64, u64),
}

/// A place in a list of warnings.
#[derive(Clone, Copy, Debug)]
pub struct WarningsMark {
    kept: usize,
    count: u64,
    errors: u64,
}

impl Warnings {
    /// 1292: a variable did not take a value as it was given.
    pub(crate) fn warn_truncated(&mut self, truncated: &Truncated) {
        let Truncated { variable, value } = truncated;
        let message = format!("Truncated incorrect {variable} value: '{value}'");
        self.warn(codes::TRUNCATED_WRONG_VALUE, message);
    }

    /// Starts a statement's list.
    pub fn clear(&mut self, limit: usize, takes_notes: bool) {
        *self = Warnings {
            limit,
            leaves_notes_out: !takes_notes,
            previous: (self.count, self.errors),
            ..Warnings::default()
        };
    }

    pub fn add(&mut self, level: Level, code: u16, message: impl Into<String>) {
        if level == Level::Note && self.leaves_notes_out {
            return;
        }
        self.count += 1;
        self.errors += u64::from(level == Level::Error);
        if self.kept.len() < self.limit {
            self.kept.push(Warning {
                level,
                code,
                message: message.into(),
            });
        }
    }

    /// Counts warnings that are not kept.
    pub fn count_others(&mut self, others: u64) {
        self.count += others;
    }

    pub fn warn(&mut self, code: impl Into<u16>, message: impl Into<String>) {
        self.add(Level::Warning, code.into(), message);
    }

    /// What was wrong with a value that a column has taken nevertheless.
    pub fn add_issue(&mut self, issue: &ColumnIssue) {
        let level = match issue.problem.is_note() {
            true => Level::Note,
            false => Level::Warning,
        };
        self.add(level, issue.mysql_code(), issue.to_string());
    }

    pub fn note(&mut self, code: impl Into<u16>, message: impl Into<String>) {
        self.add(Level::Note, code.into(), message);
    }

    /// Where the list is now, for [`back_to`](Self::back_to).
    pub fn mark(&self) -> WarningsMark {
        WarningsMark {
            kept: self.kept.len(),
            count: self.count,
            errors: self.errors,
        }
    }

    /// Forgets what was added since.
    pub fn back_to(&mut self, mark: WarningsMark) {
        self.kept.truncate(mark.kept);
        self.count = mark.count;
        self.errors = mark.errors;
    }

    pub fn kept(&self) -> &[Warning] {
        &self.kept
    }

    /// Messages of this statement, with those that were not kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Those of them that are errors.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// `@@warning_count` while the next statement runs.
    pub fn previous_count(&self) -> u64 {
        self.previous.0
    }

    /// `@@error_count` while the next statement runs.
    pub fn previous_errors(&self) -> u64 {
        self.previous.1
    }

    /// The count as the protocol sends it.
    pub fn wire_count(&self) -> u16 {
        u16::try_from(self.count).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_some_kept() {
        let mut warnings = Warnings::default();
        warnings.clear(2, true);
        for row in 1..=5 {
            warnings.warn(1261_u16, format!("row {row}"));
        }
        assert_eq!((warnings.count(), warnings.kept().len()), (5, 2));
        warnings.clear(2, true);
        assert_eq!(warnings.count(), 0);
    }
}
