//! What is found wrong with values while a statement evaluates expressions.
//!
//! A text that is no number, a division by zero or a result that is too long is found by whichever thread evaluates it.
//! Plans hold a share of these lists and note it there. When the statement ends it becomes warnings. In a strict mode,
//! a statement that changes rows has it refused instead: the evaluation fails.

use sheaf_exec::functions::limits::OversizedResults;
use sheaf_exec::functions::truncated::TruncatedTexts;

use crate::session_parts::warnings::Warnings;
use crate::variables::SqlMode;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct Findings {
    /// Texts that were cut to numbers, and divisions by zero.
    pub(crate) truncated_texts: TruncatedTexts,
    /// Results that are longer than `max_allowed_packet`, or of GROUP_CONCAT than `group_concat_max_len`.
    pub(crate) oversized_results: OversizedResults,
}

impl Findings {
    /// A statement begins.
    pub(crate) fn begin(&self) {
        self.truncated_texts.begin();
        self.oversized_results.begin();
    }

    /// What the running statement finds is an error.
    pub(crate) fn refuse(&self) {
        self.truncated_texts.refuse();
        self.oversized_results.refuse();
    }

    /// Divisions by zero are found, if `sql_mode` says so.
    pub(crate) fn watch_divisions(&self, mode: SqlMode) {
        if mode.contains("ERROR_FOR_DIVISION_BY_ZERO") {
            self.truncated_texts.watch_divisions();
        }
    }

    /// As [`watch_divisions`](Self::watch_divisions), also of conditions, for what INSERT … SELECT and CREATE TABLE …
    /// SELECT read.
    pub(crate) fn watch_divisions_of_source(&self, mode: SqlMode) {
        if mode.contains("ERROR_FOR_DIVISION_BY_ZERO") {
            self.truncated_texts.watch_divisions();
            self.truncated_texts.watch_conditions(false);
        }
    }

    /// As [`watch_divisions`](Self::watch_divisions), of the conditions of UPDATE and DELETE alone.
    pub(crate) fn watch_divisions_of_conditions(&self, mode: SqlMode) {
        if mode.contains("ERROR_FOR_DIVISION_BY_ZERO") {
            self.truncated_texts.watch_constant_divisors();
            self.truncated_texts.watch_conditions(true);
        }
    }

    /// Makes warnings of what was found.
    pub(crate) fn warn(&self, warnings: &mut Warnings) {
        let (messages, others) = self.truncated_texts.take();
        for (code, message) in messages {
            warnings.warn(code, message);
        }
        warnings.count_others(others);
        let (messages, others) = self.oversized_results.take();
        for (code, message) in messages {
            warnings.warn(code, message);
        }
        warnings.count_others(others);
    }
}
