//! What the optimizer trace says of a direct plan that ran.

use crate::direct::DirectPlan;
use crate::error::Result;
use crate::session::Session;
use crate::session::status::Command;

impl Session {
    /// Traces a run that has come to its end, or was given up. SET is not traced, and EXPLAIN traces itself.
    pub(in crate::direct) fn trace_run(&mut self, plan: &DirectPlan, outcome: &Result<bool>) {
        if self.statement.is_explained || plan.command() == Command::SetOption {
            return;
        }
        match outcome {
            Ok(false) => self.traces.give_up_direct(),
            Ok(true) | Err(_) => {
                let text = self.handle.last_statement();
                self.traces.keep_direct(&self.variables, &text);
            }
        }
    }
}
