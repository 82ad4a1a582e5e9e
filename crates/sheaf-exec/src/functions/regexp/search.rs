//! Searches that can be stopped on their way through a long text.
//!
//! The `regex` crate searches a text in one go. That is short for a short text, and for a small pattern in a text of
//! few megabytes. A pattern with many states takes half a minute for those: `(.{1,60}x){60}y`. So such a search is done
//! here, byte by byte, by the automata that the crate itself is made of:
//!
//! ```text
//!   text      ....................xxxxxxxx.........
//!   forward   ------------------------------->|       the match's end, and a few bytes more
//!   reverse                       |<------          its start
//! ```
//!
//! Between two stretches of bytes the search looks whether it shall go on. A byte may lead to a state that is not known
//! yet, which takes as long as the pattern has states. So stretches are short. Patterns that the automata do not know
//! (`\b` beside letters beyond ASCII) are left to the crate.

use std::cell::RefCell;
use std::ops::Range;

use regex::Regex;
use regex_automata::hybrid::dfa::{Cache, Config as DfaConfig, DFA};
use regex_automata::hybrid::regex::{Builder, Regex as Automata};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchError};

use super::MAX_PATTERN_BYTES;
use crate::functions::limits::Turns;

/// A shorter text is searched in one go, in bytes.
const LONG_TEXT_BYTES: usize = 256 << 10;
/// So is one that is not much longer, for a pattern of fewer states.
const MANY_STATES: usize = 1000;
const VERY_LONG_TEXT_BYTES: usize = 4 << 20;
/// The states of an automaton that are kept. When there are more, they are found anew.
const CACHE_BYTES: usize = 4 << 20;
/// Bytes between two looks at whether to go on.
const STRETCH_BYTES: usize = 64;

/// What a pattern means besides its text.
#[derive(Clone, Copy)]
pub(super) struct Modes {
    pub insensitive: bool,
    pub lines: bool,
    pub dot_all: bool,
}

/// A compiled pattern. It belongs to one call of a kernel.
pub(super) struct Pattern {
    pub regex: Regex,
    text: String,
    modes: Modes,
    steps: RefCell<Stepped>,
}

/// How a long text is searched.
enum Stepped {
    /// None has been searched.
    Unknown,
    /// In one go: the automata do not know such a pattern.
    Never,
    With(Box<Steps>),
}

/// The automata, and the states that they have come to know.
struct Steps {
    has_many_states: bool,
    automata: Automata,
    forward: Cache,
    reverse: Cache,
}

impl Pattern {
    pub(super) fn new(text: &str, modes: Modes) -> Result<Pattern, regex::Error> {
        let regex = regex::RegexBuilder::new(text)
            .case_insensitive(modes.insensitive)
            .multi_line(modes.lines)
            .dot_matches_new_line(modes.dot_all)
            .size_limit(MAX_PATTERN_BYTES)
            .build()?;
        Ok(Pattern {
            regex,
            text: text.to_string(),
            modes,
            steps: RefCell::new(Stepped::Unknown),
        })
    }

    /// Whether there is a match. `false` as well if the search is told to stop.
    pub(super) fn is_match(&self, text: &str, turns: &Turns<'_>) -> bool {
        match text.len() >= LONG_TEXT_BYTES {
            true => self.find(text, 0, turns).is_some(),
            false => self.regex.is_match(text),
        }
    }

    /// The first match at or behind a byte of the text. `None` as well if the search is told to stop.
    pub(super) fn find(&self, text: &str, at: usize, turns: &Turns<'_>) -> Option<Range<usize>> {
        if turns.is_over() {
            return None;
        }
        let bytes = text.len() - at;
        if bytes >= LONG_TEXT_BYTES {
            let mut stepped = self.steps.borrow_mut();
            if let Stepped::Unknown = *stepped {
                *stepped = self.steps().map_or(Stepped::Never, Stepped::With);
            }
            if let Stepped::With(steps) = &mut *stepped
                && (steps.has_many_states || bytes >= VERY_LONG_TEXT_BYTES)
                && let Ok(found) = steps.find(text, at, turns)
            {
                return found;
            }
        }
        self.regex.find_at(text, at).map(|found| found.range())
    }

    fn steps(&self) -> Option<Box<Steps>> {
        let syntax = syntax::Config::new()
            .case_insensitive(self.modes.insensitive)
            .multi_line(self.modes.lines)
            .dot_matches_new_line(self.modes.dot_all);
        let automata = Builder::new()
            .syntax(syntax)
            .thompson(thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN_BYTES)))
            .dfa(
                DfaConfig::new()
                    .cache_capacity(CACHE_BYTES)
                    .skip_cache_capacity_check(true),
            )
            .build(&self.text)
            .ok()?;
        Some(Box::new(Steps {
            has_many_states: automata.forward().get_nfa().states().len() >= MANY_STATES,
            forward: automata.forward().create_cache(),
            reverse: automata.reverse().create_cache(),
            automata,
        }))
    }
}

impl Steps {
    /// # Errors
    /// A byte that the automata do not know what to do with.
    fn find(
        &mut self,
        text: &str,
        at: usize,
        turns: &Turns<'_>,
    ) -> Result<Option<Range<usize>>, MatchError> {
        let mut at = at;
        loop {
            let input = Input::new(text).span(at..text.len());
            let forward = self.automata.forward();
            let Some(end) = end_of_match(forward, &mut self.forward, &input, turns)? else {
                return Ok(None);
            };
            let input = Input::new(text).span(at..end).anchored(Anchored::Yes);
            let reverse = self.automata.reverse();
            let Some(start) = start_of_match(reverse, &mut self.reverse, &input, turns)? else {
                return Ok(None);
            };
            // An empty match inside of a character is none.
            if text.is_char_boundary(start) && text.is_char_boundary(end) {
                return Ok(Some(start..end));
            }
            at = (end..).find(|at| text.is_char_boundary(*at)).unwrap_or(end);
        }
    }
}

/// A state tells of a match one byte behind it.
fn end_of_match(
    dfa: &DFA,
    cache: &mut Cache,
    input: &Input<'_>,
    turns: &Turns<'_>,
) -> Result<Option<usize>, MatchError> {
    let bytes = input.haystack();
    let mut state = dfa.start_state_forward(cache, input)?;
    let mut end = None;
    let gave_up = |at| MatchError::gave_up(at);
    for (at, byte) in bytes[..input.end()].iter().enumerate().skip(input.start()) {
        if at % STRETCH_BYTES == 0 && turns.is_over_now() {
            return Ok(None);
        }
        state = dfa
            .next_state(cache, state, *byte)
            .map_err(|_| gave_up(at))?;
        if state.is_tagged() {
            if state.is_match() {
                end = Some(at);
            } else if state.is_dead() {
                return Ok(end);
            } else if state.is_quit() {
                return Err(MatchError::quit(*byte, at));
            }
        }
    }
    state = dfa
        .next_eoi_state(cache, state)
        .map_err(|_| gave_up(input.end()))?;
    Ok(match state.is_match() {
        true => Some(input.end()),
        false => end,
    })
}

/// The first byte of the match that ends where the input ends.
fn start_of_match(
    dfa: &DFA,
    cache: &mut Cache,
    input: &Input<'_>,
    turns: &Turns<'_>,
) -> Result<Option<usize>, MatchError> {
    let bytes = input.haystack();
    let mut state = dfa.start_state_reverse(cache, input)?;
    let mut start = None;
    let gave_up = |at| MatchError::gave_up(at);
    for at in (input.start()..input.end()).rev() {
        if at % STRETCH_BYTES == 0 && turns.is_over_now() {
            return Ok(None);
        }
        state = dfa
            .next_state(cache, state, bytes[at])
            .map_err(|_| gave_up(at))?;
        if state.is_tagged() {
            if state.is_match() {
                start = Some(at + 1);
            } else if state.is_dead() {
                return Ok(start);
            } else if state.is_quit() {
                return Err(MatchError::quit(bytes[at], at));
            }
        }
    }
    // What lies before the input is looked at by `^` and `\b`.
    state = match input.start() {
        0 => dfa.next_eoi_state(cache, state),
        before => dfa.next_state(cache, state, bytes[before - 1]),
    }
    .map_err(|_| gave_up(input.start()))?;
    if state.is_quit() {
        return Err(gave_up(input.start()));
    }
    Ok(match state.is_match() {
        true => Some(input.start()),
        false => start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_access::CancelFlag;

    const MODES: Modes = Modes {
        insensitive: true,
        lines: false,
        dot_all: false,
    };

    /// All matches, by the automata and by the crate.
    fn both(pattern: &str, text: &str) -> [Vec<Range<usize>>; 2] {
        let pattern = Pattern::new(pattern, MODES).unwrap();
        let automata = Automata::new(&format!("(?i){}", pattern.text)).unwrap();
        let mut steps = Steps {
            has_many_states: true,
            forward: automata.forward().create_cache(),
            reverse: automata.reverse().create_cache(),
            automata,
        };
        let cancel = CancelFlag::new();
        let turns = Turns::new(&cancel);
        let all = |find: &mut dyn FnMut(usize) -> Option<Range<usize>>| {
            let (mut at, mut found) = (0, Vec::new());
            while let Some(range) = find(at) {
                found.push(range.clone());
                let empty = usize::from(range.is_empty());
                let next = (range.end + empty..=text.len()).find(|at| text.is_char_boundary(*at));
                match next {
                    Some(next) => at = next,
                    None => break,
                }
            }
            found
        };
        [
            all(&mut |at| steps.find(text, at, &turns).unwrap()),
            all(&mut |at| pattern.regex.find_at(text, at).map(|found| found.range())),
        ]
    }

    #[test]
    fn steps_find_what_a_search_in_one_go_finds() {
        let text = "Der Ärger der Bären: aaab aab ab b\nxyz ÄÄ 123 end";
        for pattern in [
            "a+b", "ä", "^d", "d$", "a|ab|aab", "b*", "", "(der|d)", ".{3,7}r", "x?y?z?",
            "[^a-z]+", "end$", "a{2}b|b$", "(?m)^x", "Ä*",
        ] {
            let [stepped, at_once] = both(pattern, text);
            assert_eq!(stepped, at_once, "{pattern}");
        }
    }

    #[test]
    fn a_long_search_stops() {
        let pattern = Pattern::new("[ab]b", MODES).unwrap();
        let text = "a".repeat(32 << 20) + "b";
        let found = pattern.find(&text, 0, &Turns::new(&CancelFlag::new()));
        assert_eq!(found.map(|found| found.end), Some(text.len()));
        // It takes a tenth of a second. A thread that stops it may come too late once.
        let is_stopped = (0..20).any(|_| {
            let cancel = CancelFlag::new();
            let stopper = cancel.clone();
            let stopping = std::thread::spawn(move || stopper.cancel());
            let found = pattern.find(&text, 0, &Turns::new(&cancel));
            stopping.join().unwrap();
            found.is_none()
        });
        assert!(is_stopped);
    }
}
