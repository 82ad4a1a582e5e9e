//! Patterns that only a search with backtracking knows, as MySQL's library (ICU) reads them.
//!
//! Automata keep all ways through a pattern at once, and so take linear time. What they cannot know is what a way has
//! met before, or what would follow:
//!
//! ```text
//!   (a+)b\1       the text of a group again          (?=x) (?!x) (?<=x) (?<!x)     what stands around
//!   (?>a+) a++    a group that gives nothing back    \G \R \X \Z (?#..) \Q..\E      the library's own
//! ```
//!
//! A search here tries one way after the other. It may take exponential time, so its steps are limited (error 3699),
//! and what it remembers (3698).
//!
//! `parse.rs` reads every pattern, for the numbers of its errors; `program.rs` makes instructions of the tree, and
//! `run.rs` follows them.

mod classes;
mod parse;
mod program;
mod run;

use std::ops::Range;

pub(super) use parse::{Problem, Syntax, parse};
use program::Program;
pub(super) use run::Stopped;

use crate::functions::limits::Turns;

/// A compiled pattern.
pub(super) struct Backtracking {
    program: Program,
    /// Of all groups, from the first one on.
    names: Vec<Option<String>>,
}

impl Backtracking {
    /// # Errors
    /// 3700 for a pattern that is too large, 3695 for what looks behind without bounds.
    pub(super) fn new(syntax: &Syntax) -> Result<Backtracking, Problem> {
        Ok(Backtracking {
            program: Program::new(syntax)?,
            names: syntax.groups.clone(),
        })
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.names.len()
    }

    /// The number of a group by its name.
    pub(super) fn group(&self, name: &str) -> Option<usize> {
        let mut names = self.names.iter();
        let found = names.position(|known| known.as_deref() == Some(name));
        found.map(|position| position + 1)
    }

    /// The first match at or behind a byte of the text, with its groups. The first of them is the match.
    pub(super) fn find(
        &self,
        text: &str,
        at: usize,
        turns: &Turns<'_>,
    ) -> Result<Option<Vec<Option<Range<usize>>>>, Stopped> {
        run::find(&self.program, text, at, turns)
    }
}
