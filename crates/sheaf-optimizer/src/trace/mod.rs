//! The optimizer trace: what was considered while a statement was planned, and why it lost.
//!
//! A [`Trace`] travels in the [`PlannerContext`](crate::PlannerContext). It is off as a rule. Then recording is one
//! test of an `Option`: the closure that makes the record is never called. What it looks like when it is on (`SET
//! optimizer_trace = 'enabled=on'`), by the planner's parts:
//!
//! ```text
//!   {"steps": [
//!      {"query_block": {"select#": 1, "steps": [
//!         {"rows_estimation": {"table": "orders", ..., "considered_access_paths": [ ... ]}},       [access]
//!         {"considered_execution_plans": {"plan_prefix": [...], "table": "orders", ...}}           [join]
//!      ]}},
//!      {"final_plan": ...}]}
//! ```
//!
//! The names are those of MySQL's trace where it has the same thing. Costs are microseconds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::json::{Json, Object};

/// Where the planner writes down what it considers; clones write to the same place. The default one is off.
#[derive(Clone, Debug, Default)]
pub struct Trace(Option<Arc<Mutex<Recorder>>>);

#[derive(Debug)]
struct Recorder {
    /// Lists of steps that are open, the outermost first. There is always one.
    open: Vec<Open>,
    /// Bytes that steps may take, printed on one line.
    limit_bytes: usize,
    recorded_bytes: usize,
    missing_bytes: usize,
    /// The step before was left out.
    left_out: bool,
}

#[derive(Debug)]
struct Open {
    name: &'static str,
    /// What is known of it besides its steps.
    header: Object,
    steps: Vec<Json>,
}

/// A finished trace.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedTrace {
    pub document: Json,
    /// Bytes of the steps that were left out because the trace became too long.
    pub missing_bytes: usize,
}

/// Why an alternative was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Another one is cheaper.
    Cost,
    /// A hint forbids it or prefers another one.
    Hint,
    /// A flag of `optimizer_switch` is off.
    Switch(&'static str),
    /// It cannot be done, or would do nothing; the text says why.
    NotApplicable(&'static str),
    /// It would need more memory than the statement may use.
    Memory,
}

impl Lost {
    fn text(self) -> String {
        match self {
            Lost::Cost => "cost".to_string(),
            Lost::Hint => "hint".to_string(),
            Lost::Switch(flag) => format!("optimizer_switch {flag}=off"),
            Lost::NotApplicable(why) => why.to_string(),
            Lost::Memory => "memory".to_string(),
        }
    }
}

/// Adds whether an alternative was taken, and if not, why.
pub(crate) fn with_verdict(object: Object, lost: Option<Lost>) -> Object {
    object
        .with("chosen", lost.is_none())
        .with_some("cause", lost.map(Lost::text))
}

impl Trace {
    /// A trace that records, up to about so many bytes.
    pub fn on(limit_bytes: usize) -> Trace {
        Trace(Some(Arc::new(Mutex::new(Recorder {
            open: vec![Open {
                name: "trace",
                header: Object::new(),
                steps: Vec::new(),
            }],
            limit_bytes,
            recorded_bytes: 0,
            missing_bytes: 0,
            left_out: false,
        }))))
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    fn recorder(&self) -> Option<MutexGuard<'_, Recorder>> {
        // A recorder is whole after every call, so a panic elsewhere does not spoil it.
        let recorder = self.0.as_ref()?;
        Some(recorder.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a step; `make` is called only if the trace is on.
    pub fn step(&self, name: &'static str, make: impl FnOnce() -> Json) {
        if self.is_on() {
            let step = make();
            if let Some(mut recorder) = self.recorder() {
                recorder.add(Object::new().with(name, step).into());
            }
        }
    }

    /// Records what came out, which is never left out.
    pub fn outcome(&self, name: &'static str, make: impl FnOnce() -> Json) {
        if self.is_on() {
            let step = make();
            if let Some(mut recorder) = self.recorder() {
                recorder
                    .current()
                    .steps
                    .push(Object::new().with(name, step).into());
            }
        }
    }

    /// Begins a step that has steps of its own, until the guard is dropped.
    pub fn begin(&self, name: &'static str, header: impl FnOnce() -> Object) -> OpenStep {
        if self.is_on() {
            let header = header();
            if let Some(mut recorder) = self.recorder() {
                recorder.open.push(Open {
                    name,
                    header,
                    steps: Vec::new(),
                });
            }
        }
        OpenStep(self.clone())
    }

    /// Adds to the step that was recorded last.
    pub(crate) fn amend(&self, member: &'static str, value: impl Into<Json>) {
        if let Some(mut recorder) = self.recorder()
            && !recorder.left_out
            && let Some(Json::Object(step)) = recorder.current().steps.last_mut()
            && let Some(step) = step.first_object()
        {
            step.add(member, value);
        }
    }

    /// What was recorded; `None` if the trace is off. Leaves an empty trace behind.
    pub fn finish(&self) -> Option<RecordedTrace> {
        let mut recorder = self.recorder()?;
        while recorder.open.len() > 1 {
            recorder.close();
        }
        let steps = std::mem::take(&mut recorder.current().steps);
        let missing_bytes = std::mem::take(&mut recorder.missing_bytes);
        recorder.recorded_bytes = 0;
        Some(RecordedTrace {
            document: Object::new().with("steps", steps).into(),
            missing_bytes,
        })
    }
}

impl Recorder {
    /// The innermost open list.
    fn current(&mut self) -> &mut Open {
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    fn add(&mut self, step: Json) {
        let bytes = step.bytes();
        self.left_out = self.recorded_bytes + bytes > self.limit_bytes;
        if self.left_out {
            self.missing_bytes += bytes;
            return;
        }
        self.recorded_bytes += bytes;
        self.current().steps.push(step);
    }

    /// Ends the innermost list, which is not the outermost one. Its steps are counted already.
    fn close(&mut self) {
        if self.open.len() > 1
            && let Some(open) = self.open.pop()
        {
            let step = open.header.with("steps", open.steps);
            self.current()
                .steps
                .push(Object::new().with(open.name, step).into());
        }
    }
}

/// A step that lasts until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct OpenStep(Trace);

impl Drop for OpenStep {
    fn drop(&mut self) {
        if let Some(mut recorder) = self.0.recorder() {
            recorder.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Layout;

    const ONE_LINE: Layout = Layout {
        one_line: true,
        end_markers: false,
    };

    #[test]
    fn a_trace_that_is_off_makes_nothing() {
        let trace = Trace::default();
        let _open = trace.begin("block", || panic!("made"));
        trace.step("step", || panic!("made"));
        assert_eq!(trace.finish(), None);
    }

    #[test]
    fn steps_nest() {
        let trace = Trace::on(1 << 20);
        let block = trace.begin("query_block", || Object::new().with("select#", 1u64));
        trace.step("guess", || Object::new().with("rows", 7u64).into());
        trace.amend("pruned", true);
        drop(block);
        trace.step("end", || Json::Null);
        let recorded = trace.finish().expect("the trace is on");
        assert_eq!(
            recorded.document.print(ONE_LINE),
            "{\"steps\": [{\"query_block\": {\"select#\": 1, \"steps\": [{\"guess\": {\"rows\": 7, \"pruned\": true}}]}}, \
             {\"end\": null}]}"
        );
    }

    #[test]
    fn what_is_too_long_is_counted_and_left_out() {
        let trace = Trace::on(40);
        trace.step("first", || "short".into());
        trace.step("second", || "x".repeat(100).into());
        trace.step("third", || "short".into());
        let recorded = trace.finish().expect("the trace is on");
        assert_eq!(
            recorded.document.print(ONE_LINE),
            "{\"steps\": [{\"first\": \"short\"}, {\"third\": \"short\"}]}"
        );
        assert_eq!(recorded.missing_bytes, 114);
    }
}
