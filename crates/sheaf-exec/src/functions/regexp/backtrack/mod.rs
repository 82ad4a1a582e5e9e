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
//! `parse.rs` reads every pattern, for the numbers of its errors (`problem.rs`); `program.rs` makes instructions of the
//! tree, and `run.rs` follows them. All three look whether the statement shall stop.

mod classes;
mod parse;
mod problem;
mod program;
mod run;

use std::ops::Range;

pub(super) use classes::{Dot, ends_line};
pub(super) use parse::{Syntax, parse};
pub(super) use problem::Problem;
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
    pub(super) fn new(syntax: &Syntax, turns: &Turns<'_>) -> Result<Backtracking, Problem> {
        Ok(Backtracking {
            program: Program::new(syntax, turns)?,
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

    /// The first match at or behind a byte of the text, with its groups. The first of them is the match. `start`: where
    /// `\G` stands.
    pub(super) fn find(
        &self,
        text: &str,
        (at, start): (usize, usize),
        turns: &Turns<'_>,
    ) -> Result<Option<Vec<Option<Range<usize>>>>, Stopped> {
        run::find(&self.program, text, (at, start), turns)
    }
}

#[cfg(test)]
mod tests {
    use sheaf_access::CancelFlag;

    use super::super::Modes;
    use super::*;

    const MODES: Modes = Modes {
        insensitive: false,
        lines: false,
        dot_all: false,
        unix_lines: false,
    };

    fn compiled(pattern: &str, cancel: &CancelFlag) -> Result<Backtracking, Problem> {
        let turns = Turns::new(cancel);
        Backtracking::new(&parse(pattern, MODES, &turns)?, &turns)
    }

    fn problem(pattern: &str) -> Option<Problem> {
        compiled(pattern, &CancelFlag::new()).err()
    }

    fn found(pattern: &str, text: &str) -> Option<Range<usize>> {
        let cancel = CancelFlag::new();
        let compiled = compiled(pattern, &cancel).unwrap();
        let found = compiled.find(text, (0, 0), &Turns::new(&cancel)).unwrap();
        found.and_then(|groups| groups[0].clone())
    }

    #[test]
    fn what_is_empty_is_not_repeated() {
        assert_eq!(found("(?=a)(?:(?:){1000000}){1000000}", "ba"), Some(1..1));
        assert_eq!(found("(?=a)(?:){0,1000000}a", "ba"), Some(1..2));
        assert_eq!(found("(?=a)(?:(?:){3,})*a", "ba"), Some(1..2));
        let many = format!("(?=a)(?:(?:(?=a){})*){{60000}}", "(?:)".repeat(16_000));
        assert_eq!(problem(&many), Some(Problem::TooBig));
    }

    #[test]
    fn what_is_repeated_has_one_set() {
        let cancel = CancelFlag::new();
        let of_words = compiled(r"(?=a)\w{60000}(\d{3})++", &cancel).unwrap();
        assert_eq!(of_words.program.sets.len(), 2);
        assert_eq!(
            found(r"(?=.)\w{3}(?:\d{2})++[ab]{2}", "?xyz1234ab"),
            Some(1..10)
        );
        assert_eq!(problem(&r"\w".repeat(60_000)), Some(Problem::TooBig));
    }

    #[test]
    fn lengths_tell_how_far_to_look_back() {
        assert_eq!(found("(?<=(?:ab|c){1,2})d", "xcd"), Some(2..3));
        assert_eq!(found("(?<!a{2,3})d", "aad"), None);
        assert_eq!(problem("(?<=(?:ab|c*))d"), Some(Problem::LookBehind));
        assert_eq!(problem("(?<=(?:a{100}){101})d"), Some(Problem::LookBehind));
    }

    #[test]
    fn names_are_given_once() {
        assert_eq!(found(r"(?<a>x)(?<b>y)\k<b>\k<a>", "xyyx"), Some(0..4));
        assert_eq!(problem("(?<a>x)(?<a>y)"), Some(Problem::GroupName));
        assert_eq!(problem(r"(?<a>x)\k<b>"), Some(Problem::GroupName));
    }

    #[test]
    fn sets_of_many_ranges_are_put_together() {
        let letters: String = ('\u{4e00}'..'\u{7e00}').step_by(2).collect();
        let pattern = format!("(?=.)[{letters}a-c--b]+");
        assert_eq!(found(&pattern, "bca\u{4e02}\u{4e03}"), Some(1..6));
        assert_eq!(found("(?=.)[[:alpha:]:]+", "1a:"), Some(1..3));
        assert_eq!(found("(?=.)[:a]+", "1a:"), Some(1..3));
    }

    #[test]
    fn all_work_of_a_search_is_counted() {
        let cancel = CancelFlag::new();
        // Each end of the outer group goes through what is kept of the inner one.
        for (pattern, text) in [
            ("(?>(?:(a)|b)*(?>(?>(?>)))c)", "a".repeat(20_000)),
            ("(?:(?<=[ab]{0,9000}c)|.)*d", "ab".repeat(10_000)),
            (r"(a*)*\1d", "a".repeat(20_000)),
        ] {
            let compiled = compiled(pattern, &cancel).unwrap();
            let found = compiled.find(&text, (0, 0), &Turns::new(&cancel));
            assert_eq!(found, Err(Stopped::Steps), "{pattern}");
        }
    }

    #[test]
    fn what_is_told_to_stop_stops() {
        let cancel = CancelFlag::new();
        let tried = compiled("(?=a)a", &cancel).unwrap();
        cancel.cancel();
        let turns = Turns::new(&cancel);
        assert_eq!(tried.find("a", (0, 0), &turns), Err(Stopped::Told));
        let long = compiled(&"a".repeat(1000), &cancel).err();
        assert_eq!(long, Some(Problem::Told));
        // A constant that is folded has no flag of its own.
        let none = CancelFlag::new();
        let found = cancel.during(|| tried.find("a", (0, 0), &Turns::new(&none)));
        assert_eq!(found, Err(Stopped::Told));
    }
}
