//! The traces of the session's statements: `optimizer_trace` and `information_schema.OPTIMIZER_TRACE`.
//!
//! Which statements are kept is said by `optimizer_trace_offset` and `optimizer_trace_limit`, as in MySQL's manual
//! ("Tracing the Optimizer"). With an offset of 0 or more: so many statements since tracing was set up, after the
//! offset. With a negative offset: the first of the last ones. All of them together keep to
//! `optimizer_trace_max_mem_size`: a trace that becomes longer loses steps, and says how many bytes they had.
//!
//! Tracing leaves a statement the plan that it has. The trace of one that runs directly says so in a step
//! `direct_plan`, and nothing else was planned. If the direct plan was given up, the step says that, and the operators
//! follow. EXPLAIN plans operators in both cases. A statement that reads the traces is not traced itself.

use std::cell::Cell;
use std::collections::VecDeque;

use sheaf_optimizer::Trace;
use sheaf_optimizer::json::{Json, Layout, Object};

use crate::variables::Variables;

/// Traces that a session keeps, at most.
const MAX_KEPT: usize = 10_000;

/// A statement and how it was planned.
#[derive(Debug)]
pub(crate) struct StatementTrace {
    pub(crate) query: String,
    pub(crate) trace: String,
    pub(crate) missing_bytes: u64,
    /// The session may not see what the statement has read, so the trace is empty.
    pub(crate) is_hidden: bool,
}

/// The traces of a session.
#[derive(Debug, Default)]
pub(crate) struct OptimizerTraces {
    kept: VecDeque<StatementTrace>,
    /// Statements traced since the window was set.
    traced: u64,
    window: Window,
    /// The running statement reads the traces.
    is_read: Cell<bool>,
    /// The running statement reads what the session may not see, through a view.
    is_hidden: Cell<bool>,
    /// The direct plan of the running statement was given up.
    gave_up: bool,
    /// Where the running statement's planning is recorded.
    pub(crate) current: Trace,
}

/// What became of a direct plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectOutcome {
    Chosen,
    GivenUp,
}

/// Which traces are kept and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Window {
    offset: i64,
    limit: u64,
}

impl OptimizerTraces {
    /// The traces to be shown, oldest first.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &StatementTrace> {
        self.is_read.set(true);
        let limit = usize::try_from(self.window.limit).unwrap_or(usize::MAX);
        self.kept.iter().take(limit)
    }

    /// The running statement's trace would show what the session may not see.
    pub(crate) fn hide(&self) {
        self.is_hidden.set(true);
    }

    fn bytes(&self) -> usize {
        let bytes = |kept: &StatementTrace| kept.query.len() + kept.trace.len();
        self.kept.iter().map(bytes).sum()
    }

    /// A new window forgets what the old one kept.
    fn set_window(&mut self, window: Window) {
        if self.window != window {
            self.kept.clear();
            self.traced = 0;
            self.window = window;
        }
    }

    /// Makes room for one more trace; false if it is not to be kept.
    fn make_room(&mut self) -> bool {
        let number = self.traced;
        self.traced += 1;
        match u64::try_from(self.window.offset) {
            Ok(first) => {
                (first..first.saturating_add(self.window.limit)).contains(&number)
                    && self.kept.len() < MAX_KEPT
            }
            Err(_) => {
                let last = usize::try_from(self.window.offset.unsigned_abs()).unwrap_or(MAX_KEPT);
                while self.kept.len() >= last.min(MAX_KEPT) {
                    self.kept.pop_front();
                }
                self.window.limit > 0
            }
        }
    }

    /// Records what became of the running statement's direct plan.
    pub(crate) fn note_direct(&self, outcome: DirectOutcome) {
        let text = match outcome {
            DirectOutcome::Chosen => "chosen",
            DirectOutcome::GivenUp => "given_up",
        };
        let step = || Json::from(Object::new().with("outcome", text));
        self.current.outcome("direct_plan", step);
    }

    /// The direct plan of the running statement was given up, and its trace begins with that.
    pub(crate) fn give_up_direct(&mut self) {
        self.gave_up = true;
    }

    /// Keeps the trace of a statement that has run directly.
    pub(crate) fn keep_direct(&mut self, variables: &Variables, text: &str) {
        self.begin(variables, true);
        self.note_direct(DirectOutcome::Chosen);
        self.end(variables, text);
    }

    /// Starts to trace a statement, if statements of its kind are traced and the session wants it.
    pub(crate) fn begin(&mut self, variables: &Variables, is_traced: bool) {
        self.current = Trace::default();
        self.is_hidden.set(false);
        let gave_up = std::mem::take(&mut self.gave_up);
        if !is_traced || !variables.traces_optimizer() {
            return;
        }
        self.is_read.set(false);
        self.set_window(Window {
            offset: variables.optimizer_trace_offset(),
            limit: variables.optimizer_trace_limit(),
        });
        self.current = Trace::on(variables.optimizer_trace_max_mem_size());
        if gave_up {
            self.note_direct(DirectOutcome::GivenUp);
        }
    }

    /// Keeps the trace of the statement that has ended, with or without success.
    pub(crate) fn end(&mut self, variables: &Variables, text: &str) {
        let trace = std::mem::take(&mut self.current);
        let Some(recorded) = trace.finish() else {
            return;
        };
        if self.is_read.get() || !self.make_room() {
            return;
        }
        let layout = Layout {
            one_line: variables.optimizer_trace_flag("one_line"),
            end_markers: variables.end_markers_in_json(),
        };
        let mut kept = StatementTrace {
            query: text.to_string(),
            trace: recorded.document.print(layout),
            missing_bytes: recorded.missing_bytes as u64,
            is_hidden: self.is_hidden.get(),
        };
        if kept.is_hidden {
            kept.trace.clear();
            kept.missing_bytes = 0;
        }
        let room = variables
            .optimizer_trace_max_mem_size()
            .saturating_sub(self.bytes());
        if kept.query.len() > room {
            kept.missing_bytes += kept.trace.len() as u64;
            kept.trace.clear();
            let end = kept.query.floor_char_boundary(room);
            kept.query.truncate(end);
        }
        self.kept.push_back(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statements that are shown after ten were traced.
    fn shown(offset: i64, limit: u64) -> Vec<String> {
        let mut traces = OptimizerTraces::default();
        traces.set_window(Window { offset, limit });
        for n in 0..10 {
            if traces.make_room() {
                traces.kept.push_back(StatementTrace {
                    query: n.to_string(),
                    trace: String::new(),
                    missing_bytes: 0,
                    is_hidden: false,
                });
            }
        }
        traces.shown().map(|trace| trace.query.clone()).collect()
    }

    #[test]
    fn offset_and_limit_choose_among_the_statements() {
        assert_eq!(shown(-1, 1), ["9"]);
        assert_eq!(shown(-2, 1), ["8"]);
        assert_eq!(shown(-3, 5), ["7", "8", "9"]);
        assert_eq!(shown(0, 2), ["0", "1"]);
        assert_eq!(shown(8, 5), ["8", "9"]);
        assert_eq!(shown(0, 0), [""; 0]);
    }
}
