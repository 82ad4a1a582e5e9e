//! A compiled pattern: searched by automata where these know it, and with backtracking where they do not.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use datafusion_common::Result as PlanResult;
use sheaf_types::error::codes;

use super::Modes;
use super::backtrack::{Backtracking, Dot, Problem, Stopped, parse};
use super::search::{Groups, Linear};
use super::shared::{self, Compiled};
use crate::functions::EvaluationError;
use crate::functions::limits::{Turns, stopped};

/// A compiled pattern. It belongs to one call of a kernel.
pub(super) struct Pattern {
    search: Search,
    /// Why a search had no answer.
    stopped: Cell<Option<Stopped>>,
}

enum Search {
    Linear(Box<Linear>),
    Backtracking(Arc<Backtracking>),
}

impl Pattern {
    /// # Errors
    /// ICU's, by their numbers, and that the statement has been told to stop.
    pub(super) fn new(text: &str, modes: Modes, turns: &Turns<'_>) -> PlanResult<Pattern> {
        let search = search_for(text, modes, turns).map_err(|problem| match problem {
            Problem::Told => stopped(),
            other => other.error(text).into(),
        })?;
        Ok(Pattern {
            search,
            stopped: Cell::new(None),
        })
    }

    /// Error 3699 or 3698 if a search has taken too much. If it was told to stop that is an error, too: a constant
    /// would be folded to a wrong answer.
    pub(super) fn check(&self) -> PlanResult<()> {
        match self.stopped.take() {
            None => Ok(()),
            Some(Stopped::Told) => Err(stopped()),
            Some(Stopped::Steps) => Err(EvaluationError::new(
                codes::REGEXP_TIME_OUT,
                "Timeout exceeded in regular expression match.",
            )
            .into()),
            Some(Stopped::Stack) => Err(EvaluationError::new(
                codes::REGEXP_STACK_OVERFLOW,
                "Overflow in the regular expression backtrack stack.",
            )
            .into()),
        }
    }

    /// Whether there is a match. `false` as well if the search was stopped.
    pub(super) fn is_match(&self, text: &str, turns: &Turns<'_>) -> bool {
        match &self.search {
            Search::Linear(linear) => linear.is_match(text, turns),
            Search::Backtracking(_) => self.find_first(text, 0, turns).is_some(),
        }
    }

    /// The first match at or behind a byte of the text, where others have come before. `None` as well if the search was
    /// stopped.
    pub(super) fn find(&self, text: &str, at: usize, turns: &Turns<'_>) -> Option<Range<usize>> {
        self.find_at(text, (at, at), turns)
    }

    /// As [`Self::find`], where none has come before: `\G` is the start of the text, wherever the search begins.
    pub(super) fn find_first(
        &self,
        text: &str,
        at: usize,
        turns: &Turns<'_>,
    ) -> Option<Range<usize>> {
        self.find_at(text, (at, 0), turns)
    }

    fn find_at(
        &self,
        text: &str,
        (at, start): (usize, usize),
        turns: &Turns<'_>,
    ) -> Option<Range<usize>> {
        match &self.search {
            Search::Linear(linear) => linear.find(text, at, turns),
            Search::Backtracking(tried) => {
                let groups = self.noted(tried.find(text, (at, start), turns))?;
                groups.into_iter().next().flatten()
            }
        }
    }

    /// The groups of a match that was found. `None` if the search was stopped.
    pub(super) fn groups<'t>(
        &self,
        text: &'t str,
        found: &Range<usize>,
        turns: &Turns<'_>,
    ) -> Option<Groups<'t>> {
        match &self.search {
            Search::Linear(linear) => linear.groups(text, found, turns),
            Search::Backtracking(tried) => {
                let groups = self.noted(tried.find(text, (found.start, found.start), turns))?;
                Some(Groups::Stepped(groups))
            }
        }
    }

    fn noted<T>(&self, found: Result<Option<T>, Stopped>) -> Option<T> {
        match found {
            Ok(found) => found,
            Err(stopped) => {
                self.stopped.set(Some(stopped));
                None
            }
        }
    }

    /// How many groups there are besides the match.
    pub(super) fn group_count(&self) -> usize {
        match &self.search {
            Search::Linear(linear) => linear.regex.captures_len() - 1,
            Search::Backtracking(tried) => tried.groups(),
        }
    }

    /// The number of a group by its name.
    pub(super) fn group_named(&self, name: &str) -> Option<usize> {
        match &self.search {
            Search::Linear(linear) => {
                let mut names = linear.regex.capture_names();
                names.position(|group| group == Some(name))
            }
            Search::Backtracking(tried) => tried.group(name),
        }
    }
}

/// What the trees of a pattern take for a byte of its text, at most, in bytes; for a `.`; and for a class of many
/// letters, such as `\w` and `\p{L}`.
const TREE_OF_BYTE: usize = 512;
const TREE_OF_DOT: usize = 3 << 10;
const TREE_OF_CLASS: usize = 16 << 10;
/// What they may take. Nobody looks whether to stop until they are made, and that takes a moment.
const MOST_OF_TREES: usize = 192 << 20;

/// What a pattern takes while it is compiled, at most, besides the automaton: a library makes trees of all of its text
/// before it counts what comes out.
fn memory_of_trees(text: &str) -> usize {
    let bytes = text.as_bytes();
    let next = bytes.iter().skip(1).chain([&b' ']);
    let of_bytes = bytes
        .iter()
        .zip(next)
        .map(|(byte, next)| match (byte, next) {
            (b'\\', b'w' | b'W' | b'd' | b'D' | b's' | b'S' | b'p' | b'P') | (b'[', b':') => {
                TREE_OF_CLASS
            }
            (b'.', _) => TREE_OF_DOT,
            _ => TREE_OF_BYTE,
        });
    of_bytes.sum()
}

fn search_for(text: &str, modes: Modes, turns: &Turns<'_>) -> Result<Search, Problem> {
    let known = match shared::find(text, modes) {
        Some(known) => known,
        None => {
            let (made, bytes) = sheaf_memory::kept_by(|| compile(text, modes, turns));
            let made = made?;
            shared::keep(text, modes, (made.clone(), bytes));
            made
        }
    };
    Ok(match known {
        Compiled::Linear(regex, text) => Search::Linear(Box::new(Linear::new(regex, text, modes))),
        Compiled::Backtracking(tried) => Search::Backtracking(tried),
    })
}

fn compile(text: &str, modes: Modes, turns: &Turns<'_>) -> Result<Compiled, Problem> {
    let trees = memory_of_trees(text);
    if trees > MOST_OF_TREES {
        return Err(Problem::TooBig);
    }
    if !sheaf_memory::has_room_for_value(trees) {
        return Err(Problem::Told);
    }
    let syntax = parse(text, modes, turns)?;
    if !syntax.needs_backtracking {
        // Errors: what the crate writes otherwise, and automata that would be too large. These have all states of a
        // class for each of its repetitions; instructions name the class.
        let dots = with_dots(text, &syntax.dots);
        let written = with_unicode_classes(&dots);
        if let Ok(regex) = Linear::compile(&written, modes) {
            return Ok(Compiled::Linear(Arc::new(regex), Arc::from(written)));
        }
    }
    let tried = Backtracking::new(&syntax, turns)?;
    Ok(Compiled::Backtracking(Arc::new(tried)))
}

/// The pattern with what each `.` at these places stands for.
fn with_dots<'p>(pattern: &'p str, dots: &[(usize, Dot)]) -> Cow<'p, str> {
    if dots.is_empty() {
        return Cow::Borrowed(pattern);
    }
    let mut written =
        String::with_capacity(pattern.len() + dots.len() * Dot::WithinLine.pattern().len());
    let mut done = 0;
    for (at, dot) in dots {
        written.push_str(&pattern[done..*at]);
        written.push_str(dot.pattern());
        done = at + 1;
    }
    written.push_str(&pattern[done..]);
    Cow::Owned(written)
}

/// What the names of POSIX classes stand for: all of Unicode, where the `regex` crate knows ASCII only.
const CLASSES: [(&str, &str); 12] = [
    ("[:alpha:]", r"\p{Alphabetic}"),
    ("[:alnum:]", r"\p{Alphabetic}\p{Nd}"),
    ("[:digit:]", r"\p{Nd}"),
    ("[:lower:]", r"\p{Lowercase}"),
    ("[:upper:]", r"\p{Uppercase}"),
    ("[:space:]", r"\s"),
    ("[:blank:]", r"\p{Zs}\t"),
    ("[:cntrl:]", r"\p{Cc}"),
    ("[:punct:]", r"\p{P}"),
    ("[:word:]", r"\w"),
    ("[:graph:]", r"[^\s\p{Cc}\p{Cn}]"),
    ("[:print:]", r"[^\s\p{Cc}\p{Cn}]\p{Zs}"),
];

/// The two ends of a word, as MariaDB and MySQL 5.7 write them.
const ENDS_OF_WORDS: [(&str, &str); 2] = [("[[:<:]]", r"\b{start}"), ("[[:>:]]", r"\b{end}")];

fn with_unicode_classes(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains("[:") {
        return Cow::Borrowed(pattern);
    }
    let ends = ENDS_OF_WORDS.iter();
    let pattern = ends.fold(pattern.to_string(), |pattern, (name, end)| {
        pattern.replace(name, end)
    });
    let replaced = CLASSES.iter().fold(pattern, |pattern, (name, class)| {
        let negated = name.replace("[:", "[:^");
        let pattern = pattern.replace(&negated, &format!("[^{class}]"));
        pattern.replace(name, class)
    });
    Cow::Owned(replaced)
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    const MODES: Modes = Modes {
        insensitive: true,
        lines: false,
        dot_all: false,
        unix_lines: false,
    };

    #[test]
    fn long_patterns_are_too_big() {
        let cancel = sheaf_access::CancelFlag::new();
        let turns = Turns::new(&cancel);
        let long = [
            format!("({}b)", "a|".repeat(400_000)),
            "[ab]".repeat(300_000),
            ".".repeat(100_000),
            format!("[{}]", "a-bc-d".repeat(300_000)),
            format!("(?x){}", "a #b\n".repeat(300_000)),
            r"\w".repeat(20_000),
        ];
        for pattern in long {
            let problem = search_for(&pattern, MODES, &turns).err();
            assert!(
                matches!(problem, Some(Problem::TooBig)),
                "{}",
                &pattern[..20]
            );
        }
        let pattern = "ab".repeat(10_000);
        assert!(Pattern::new(&pattern, MODES, &turns).is_ok());
    }

    #[test]
    fn many_repetitions_of_large_classes_are_searched_with_backtracking() {
        let cancel = sheaf_access::CancelFlag::new();
        let turns = Turns::new(&cancel);
        for (pattern, text, expected) in [
            (r"^[\w.]{1,64}@[\w.]{1,255}$", "ann.b@example.com", true),
            (r"^[\w.]{1,64}@[\w.]{1,255}$", "ann.b@example.com\n", true),
            (r"^[\w.]{1,64}@[\w.]{1,255}$", "ännchen@exämple.com", true),
            (r"^[\w.]{1,64}@[\w.]{1,255}$", "ann b@example.com", false),
            (r"^(\w{1,63}\.){1,126}\w{2,63}\.?$", "www.example.com", true),
            (r"^(\w{1,63}\.){1,126}\w{2,63}\.?$", "www..com", false),
            (r"^[^\s]{3,2000}$", "abc", true),
            (r"^.{0,5000}$", "abc\nd", false),
            (r"\p{L}{300}", "abc", false),
        ] {
            // Twice: the second time it is known to be too large for automata.
            for _ in 0..2 {
                let compiled = Pattern::new(pattern, MODES, &turns).unwrap();
                assert_eq!(
                    compiled.is_match(text, &turns),
                    expected,
                    "{text:?} {pattern}"
                );
            }
        }
        let mail = search_for(r"^[\w.]{1,64}@[\w.]{1,255}$", MODES, &turns).unwrap();
        assert!(matches!(mail, Search::Backtracking(_)));
    }

    #[test]
    fn lines_end_as_in_icu() {
        let cancel = sheaf_access::CancelFlag::new();
        let turns = Turns::new(&cancel);
        for (text, pattern, expected) in [
            ("a\r\n", "a$", Some(0..1)),
            ("a\r\n", r"a\r$", None),
            ("a\r", "a$", Some(0..1)),
            ("a\u{2028}", "a$", Some(0..1)),
            ("a\n\r", "a$", None),
            ("a\r\n", r"a\s+$", Some(0..3)),
            ("a\rb", "a.b", None),
            ("a\u{85}b", "a.b", None),
            ("a\rb", "(?s)a.b", Some(0..3)),
            ("a\rb", "(?s:a.b)|.", Some(0..3)),
            ("a.b\u{b}c", r"[.]\.?.*", Some(1..3)),
            ("xäy", "x.y", Some(0..4)),
            ("a\r\nb", "(?s)a.b", Some(0..4)),
            ("a\r\n", "(?s)a.$", Some(0..3)),
            ("\r\n", "(?s)^.\n", None),
            ("a\r\rb", "(?s)a..b", Some(0..4)),
        ] {
            let compiled = Pattern::new(pattern, MODES, &turns).unwrap();
            assert!(matches!(compiled.search, Search::Linear(_)));
            let found = compiled.find(text, 0, &turns);
            assert_eq!(found, expected, "{text:?} {pattern}");
        }
    }

    /// By automata, where they know it, and with look-around.
    #[test]
    fn match_types_tell_where_lines_end() {
        let cancel = sheaf_access::CancelFlag::new();
        let turns = Turns::new(&cancel);
        let modes = |types: &str| Modes {
            insensitive: false,
            lines: types.contains('m'),
            dot_all: types.contains('n'),
            unix_lines: types.contains('u'),
        };
        type Places = &'static [(usize, usize)];
        let cases: [(&str, &str, &str, Places); 12] = [
            ("u", ".", "a\r\nb", &[(0, 1), (1, 2), (3, 4)]),
            ("n", ".", "a\r\nb", &[(0, 1), (1, 3), (3, 4)]),
            ("nu", ".", "a\r\nb", &[(0, 1), (1, 3), (3, 4)]),
            ("n", ".\n", "a\r\nb", &[]),
            ("n", "\r.", "a\r\nb", &[(1, 3)]),
            ("n", ".+?", "\r\n\rx", &[(0, 2), (2, 3), (3, 4)]),
            ("n", ".$", "a\r\n", &[(0, 1), (1, 3)]),
            ("u", ".$", "a\r\n", &[(1, 2)]),
            ("u", "a$", "a\r", &[]),
            ("mu", "^.", "a\r\nb\rc\nd", &[(0, 1), (3, 4), (7, 8)]),
            ("m", "^.", "a\r\nb\rc\nd", &[(0, 1), (3, 4), (5, 6), (7, 8)]),
            (
                "m",
                ".$",
                "a\r\nb\rc\u{b}d",
                &[(0, 1), (3, 4), (5, 6), (7, 8)],
            ),
        ];
        for (types, pattern, text, expected) in cases {
            for pattern in [pattern.to_string(), format!("(?!y){pattern}")] {
                let compiled = Pattern::new(&pattern, modes(types), &turns).unwrap();
                let (mut found, mut at) = (Vec::new(), 0);
                while let Some(next) = compiled.find(text, at, &turns) {
                    at = next.end;
                    found.push((next.start, next.end));
                }
                assert_eq!(found, expected, "{types} {pattern:?} {text:?}");
            }
        }
    }

    #[test]
    fn posix_classes_know_letters_beyond_ascii() {
        for (text, pattern, expected) in [
            ("ä", "^[[:alpha:]]$", true),
            ("é7", "^[[:alnum:]_]+$", true),
            ("Ä", "^[[:lower:]]$", false),
            ("$", "[[:punct:]]", false),
            ("+", "[^[:punct:]]", true),
            ("+", "[[:^punct:]]", true),
            ("ä", "[[:^graph:][:^alpha:]]", false),
            ("%_-", "^[[:punct:]]+$", true),
            ("ä b", "^[[:print:]]+$", true),
            ("ä\tb", "^[[:print:]]+$", false),
            ("\u{2028}", "[[:print:]]", false),
            ("\u{ad}", "^[[:graph:]]$", true),
            ("\u{a0}", "[[:graph:]]", false),
            ("1", "[^[:digit:]]", false),
            ("ein Wört da", "[[:<:]]wört[[:>:]]", false),
            ("ein Wört da", "[[:<:]]Wört[[:>:]]", true),
            ("Wörter", "[[:<:]]Wört[[:>:]]", false),
            ("Vorwört", "[[:<:]]wört", false),
        ] {
            let regex = Regex::new(&with_unicode_classes(pattern)).expect(pattern);
            assert_eq!(regex.is_match(text), expected, "{text} {pattern}");
        }
    }
}
