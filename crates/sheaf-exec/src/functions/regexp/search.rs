//! Searches that can be stopped on their way through a long text.
//!
//! The `regex` crate searches a text in one go. How long that takes depends on the states of the pattern as on the
//! bytes of the text: `(.{1,60}x){60}y` takes half a minute for few megabytes. A search that may take long is done
//! here, byte by byte, by the automata that the crate itself is made of:
//!
//! ```text
//!   text      ....................xxxxxxxx.........
//!   forward   ------------------------------->|       the match's end, and a few bytes more
//!   reverse                       |<------          its start
//! ```
//!
//! Between two stretches of bytes the search looks whether it shall go on. A byte may lead to a state that is not known
//! yet, which takes as long as the pattern has states. So stretches are short. What these automata do not know (`\b`
//! beside letters beyond ASCII, and where groups are) is found by a slower one (`threads.rs`).

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use regex::Regex;
use regex_automata::hybrid::dfa::{Cache, Config as DfaConfig, DFA};
use regex_automata::hybrid::regex::{Builder, Regex as Automata};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchError};

use super::backtrack::ends_line;
use super::threads::Threads;
use super::{MAX_PATTERN_BYTES, Modes};
use crate::functions::limits::Turns;

/// States of a pattern times bytes of a text that are searched in one go, at most. Each takes about a nanosecond, and
/// ten where all states are met at all bytes.
const MOST_AT_ONCE: usize = 32 << 20;
/// Of a pattern of many states, which are not kept from byte to byte.
const MANY_STATES: usize = 1000;
const MOST_AT_ONCE_OF_MANY: usize = 8 << 20;
/// A shorter text is searched in one go, whatever the pattern. Its states are not counted.
const SHORT_TEXT_BYTES: usize = 256;
/// The states of an automaton that are kept. When there are more, they are found anew.
const CACHE_BYTES: usize = 4 << 20;
/// Bytes between two looks at whether to go on.
const STRETCH_BYTES: usize = 64;

/// A pattern that automata know. It belongs to one call of a kernel.
pub(super) struct Linear {
    pub regex: Arc<Regex>,
    text: Arc<str>,
    modes: Modes,
    /// Whether it may have a `$` that is the end of the text. It is also the place in front of the end of the last
    /// line, which the crate does not know.
    has_end: bool,
    /// Made when the first text comes that is not short. `None` if they are too large, which the pattern is then, too.
    steps: OnceCell<Option<RefCell<Steps>>>,
}

/// The automata, and the states that they have come to know.
struct Steps {
    automata: Automata,
    forward: Cache,
    reverse: Cache,
    /// Made when they are needed first.
    threads: Option<Box<Threads>>,
}

/// The groups of a match.
pub(super) enum Groups<'t> {
    AtOnce(regex::Captures<'t>),
    Stepped(Vec<Option<Range<usize>>>),
}

impl Groups<'_> {
    /// The text of a group in the text that was searched; 0 is the whole match.
    pub(super) fn get<'s>(&'s self, group: usize, text: &'s str) -> Option<&'s str> {
        match self {
            Groups::AtOnce(groups) => groups.get(group).map(|group| group.as_str()),
            Groups::Stepped(groups) => groups
                .get(group)?
                .as_ref()
                .map(|group| &text[group.clone()]),
        }
    }
}

impl Linear {
    /// What was compiled of a text, as a pattern of a call.
    pub(super) fn new(regex: Arc<Regex>, text: Arc<str>, modes: Modes) -> Linear {
        Linear {
            has_end: text.contains('$'),
            regex,
            text,
            modes,
            steps: OnceCell::new(),
        }
    }

    /// # Errors
    /// What the crate writes otherwise, and automata that would be too large.
    pub(super) fn compile(text: &str, modes: Modes) -> Result<Regex, regex::Error> {
        regex::RegexBuilder::new(text)
            .case_insensitive(modes.insensitive)
            .multi_line(modes.lines)
            .dot_matches_new_line(modes.dot_all)
            .size_limit(MAX_PATTERN_BYTES)
            .build()
    }

    /// Whether there is a match. `false` as well if the search is told to stop.
    pub(super) fn is_match(&self, text: &str, turns: &Turns<'_>) -> bool {
        match self.steps_for(text.len()) {
            Some(_) => self.find(text, 0, turns).is_some(),
            None => {
                let line = self.without_line_end(text);
                self.regex.is_match(text) || line.is_some_and(|line| self.regex.is_match(line))
            }
        }
    }

    /// The text without the end of its last line, if there is one and `$` stands in front of it, too.
    fn without_line_end<'t>(&self, text: &'t str) -> Option<&'t str> {
        match (self.has_end, self.modes.unix_lines) {
            (false, _) => None,
            (true, true) => text.strip_suffix('\n'),
            (true, false) => text
                .strip_suffix("\r\n")
                .or_else(|| text.strip_suffix(ends_line)),
        }
    }

    /// The first match at or behind a byte of the text. `None` as well if the search is told to stop.
    pub(super) fn find(&self, text: &str, at: usize, turns: &Turns<'_>) -> Option<Range<usize>> {
        let found = self.find_in(text, at, turns);
        let line = self.without_line_end(text);
        let Some(line) = line.filter(|line| at <= line.len()) else {
            return found;
        };
        match (found, self.find_in(line, at, turns)) {
            (Some(found), Some(before)) if found.start <= before.start => Some(found),
            (found, before) => before.or(found),
        }
    }

    /// As [`Self::find`], with `$` at the end of the text only.
    fn find_in(&self, text: &str, at: usize, turns: &Turns<'_>) -> Option<Range<usize>> {
        if turns.is_over() {
            return None;
        }
        let Some(steps) = self.steps_for(text.len() - at) else {
            return self.regex.find_at(text, at).map(|found| found.range());
        };
        let mut steps = steps.borrow_mut();
        if let Ok(found) = steps.find(text, at, turns) {
            return found;
        }
        match self.threads(&mut steps) {
            Some(threads) => threads.find(text, at..text.len(), turns).ok().flatten(),
            None => self.regex.find_at(text, at).map(|found| found.range()),
        }
    }

    /// The groups of a match that was found. `None` if the search is told to stop.
    pub(super) fn groups<'t>(
        &self,
        text: &'t str,
        found: &Range<usize>,
        turns: &Turns<'_>,
    ) -> Option<Groups<'t>> {
        let text = match self.without_line_end(text) {
            Some(line)
                if found.end <= line.len()
                    && self.find_in(text, found.start, turns).as_ref() != Some(found) =>
            {
                line
            }
            _ => text,
        };
        // The crate may look at all that follows.
        let Some(steps) = self.steps_for(text.len() - found.start) else {
            let groups = self.regex.captures_at(text, found.start);
            return groups.map(Groups::AtOnce);
        };
        let mut steps = steps.borrow_mut();
        let groups = self.threads(&mut steps)?.groups(text, found, turns);
        groups.ok().map(Groups::Stepped)
    }

    /// What so many bytes are searched by, if not in one go.
    fn steps_for(&self, bytes: usize) -> Option<&RefCell<Steps>> {
        if bytes < SHORT_TEXT_BYTES {
            return None;
        }
        let steps = self.steps.get_or_init(|| self.steps().map(RefCell::new));
        let steps = steps.as_ref()?;
        let states = steps.borrow().automata.forward().get_nfa().states().len();
        let most = match states < MANY_STATES {
            true => MOST_AT_ONCE,
            false => MOST_AT_ONCE_OF_MANY,
        };
        (states.saturating_mul(bytes) > most).then_some(steps)
    }

    fn syntax(&self) -> syntax::Config {
        syntax::Config::new()
            .case_insensitive(self.modes.insensitive)
            .multi_line(self.modes.lines)
            .dot_matches_new_line(self.modes.dot_all)
    }

    fn steps(&self) -> Option<Steps> {
        let automata = Builder::new()
            .syntax(self.syntax())
            .thompson(thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN_BYTES)))
            .dfa(
                DfaConfig::new()
                    .cache_capacity(CACHE_BYTES)
                    .skip_cache_capacity_check(true)
                    .unicode_word_boundary(true),
            )
            .build(&self.text)
            .ok()?;
        Some(Steps {
            forward: automata.forward().create_cache(),
            reverse: automata.reverse().create_cache(),
            automata,
            threads: None,
        })
    }

    fn threads<'s>(&self, steps: &'s mut Steps) -> Option<&'s mut Threads> {
        if steps.threads.is_none() {
            // The crate's own automata have groups, and this limit.
            let compiled = thompson::Compiler::new()
                .syntax(self.syntax())
                .configure(thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN_BYTES)))
                .build(&self.text);
            steps.threads = compiled.ok().map(|nfa| Box::new(Threads::new(nfa)));
        }
        steps.threads.as_deref_mut()
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
    use std::time::{Duration, Instant};

    use sheaf_access::CancelFlag;
    use sheaf_storage::Random;

    use super::*;

    const MODES: Modes = Modes {
        insensitive: true,
        lines: false,
        dot_all: false,
        unix_lines: false,
    };

    fn linear(pattern: &str) -> Linear {
        let regex = Linear::compile(pattern, MODES).unwrap();
        Linear::new(Arc::new(regex), pattern.into(), MODES)
    }

    /// Matches and their groups, by all automata.
    fn by_all(pattern: &str, text: &str) -> [Vec<Vec<Option<Range<usize>>>>; 3] {
        let pattern = linear(pattern);
        let mut steps = pattern.steps().unwrap();
        let cancel = CancelFlag::new();
        let turns = Turns::new(&cancel);
        let all = |find: &mut dyn FnMut(usize) -> Option<Vec<Option<Range<usize>>>>| {
            let (mut at, mut found) = (0, Vec::new());
            while let Some(groups) = find(at) {
                let range = groups[0].clone().unwrap();
                found.push(groups);
                let empty = usize::from(range.is_empty());
                let next = (range.end + empty..=text.len()).find(|at| text.is_char_boundary(*at));
                match next {
                    Some(next) => at = next,
                    None => break,
                }
            }
            found
        };
        let at_once = all(&mut |at| {
            let groups = pattern.regex.captures_at(text, at)?;
            let range = |group: Option<regex::Match<'_>>| group.map(|group| group.range());
            Some(groups.iter().map(range).collect())
        });
        let by_threads = all(&mut |at| {
            let threads = pattern.threads(&mut steps).unwrap();
            let found = threads.find(text, at..text.len(), &turns).ok().unwrap()?;
            let groups = threads.groups(text, &found, &turns).ok().unwrap();
            assert_eq!(groups[0].as_ref(), Some(&found));
            Some(groups)
        });
        let by_states = all(&mut |at| {
            let found = match steps.find(text, at, &turns) {
                Ok(found) => found?,
                // Not known: what the others say.
                Err(_) => pattern.regex.find_at(text, at)?.range(),
            };
            let threads = pattern.threads(&mut steps).unwrap();
            threads.groups(text, &found, &turns).ok()
        });
        [at_once, by_threads, by_states]
    }

    #[test]
    fn steps_find_what_a_search_in_one_go_finds() {
        let text = "Der Ärger der Bären: aaab aab ab b\nxyz ÄÄ 123 end";
        for pattern in [
            "a+b",
            "ä",
            "^d",
            "d$",
            "a|ab|aab",
            "b*",
            "",
            "(der|d)",
            ".{3,7}r",
            "x?y?z?",
            "[^a-z]+",
            "end$",
            "a{2}b|b$",
            "(?m)^x",
            "Ä*",
            r"\b\w+\b",
            r"\Ber\b",
            r"\b",
            r"\B",
            "(a)|(b)",
            "((a)|b)+",
            "(a*)(ab)?",
            "(a*?)(b|$)",
            r"(\w)(\w)?(\w)?",
            "(?P<x>ä)r(.)",
            "()(b|)",
            "(a|b)*?b",
            "([a-c]{1,2}){2,3}",
        ] {
            let [at_once, by_threads, by_states] = by_all(pattern, text);
            assert_eq!(by_threads, at_once, "{pattern}");
            assert_eq!(by_states, at_once, "{pattern}");
        }
    }

    #[test]
    fn automata_agree_on_random_patterns() {
        const ATOMS: [&str; 17] = [
            "a", "b", "ä", ".", "[ab]", "[^a]", r"\w", r"\b", r"\B", "^", "$", "(a)", "(b|ä)",
            "(a|)", "(?:ab|a)", "(a*?b)", r"\s",
        ];
        const COUNTS: [&str; 9] = ["", "*", "+", "?", "*?", "+?", "??", "{1,2}", "{0,3}?"];
        const LETTERS: [&str; 6] = ["a", "b", "ä", " ", "\n", "c"];
        let mut random = Random::new(11);
        for _ in 0..500 {
            let mut one_of =
                |choices: &[&'static str]| choices[random.below(choices.len() as u64) as usize];
            let mut pattern = String::new();
            for _ in 0..4 {
                pattern += one_of(&ATOMS);
                pattern += one_of(&COUNTS);
                pattern += one_of(&["", "", "", "|"]);
            }
            let text: String = (0..10).map(|_| one_of(&LETTERS)).collect();
            let [at_once, by_threads, by_states] = by_all(&pattern, &text);
            assert_eq!(by_threads, at_once, "{pattern:?} {text:?}");
            assert_eq!(by_states, at_once, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn a_long_search_stops() {
        let pattern = linear("[ab]b");
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

    /// How long a search goes on that is stopped after a moment.
    fn stopped_after(search: impl FnOnce(&Turns<'_>)) -> Duration {
        let cancel = CancelFlag::new();
        let stopper = cancel.clone();
        let stopping = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            stopper.cancel();
            Instant::now()
        });
        search(&Turns::new(&cancel));
        let end = Instant::now();
        end.saturating_duration_since(stopping.join().unwrap())
    }

    #[test]
    fn patterns_of_many_states_stop_soon() {
        // On any machine. Without stops it takes up to a minute.
        const SOON: Duration = Duration::from_secs(5);
        let short = "abcdefghix ".repeat(23_000);
        let long = "abcdefghix ".repeat(350_000);
        let with_accents = "abcdefghix é".repeat(350_000);
        for (pattern, text) in [
            ("(.{1,60}x){60}y", &short),
            ("(.{1,40}x){100}y", &short),
            (r"\b(.{1,60}x){60}y", &short),
            (r"\b(.{1,60}x){60}y", &with_accents),
        ] {
            let pattern = linear(pattern);
            let took = stopped_after(|turns| {
                pattern.find(text, 0, turns);
            });
            assert!(took < SOON, "{took:?}");
        }
        let pattern = linear("((.{1,9}x?){9})+$");
        let took = stopped_after(|turns| {
            pattern.groups(&long, &(0..long.len()), turns);
        });
        assert!(took < SOON, "{took:?}");
    }

    /// In one go and in steps.
    #[test]
    fn groups_are_the_same_in_long_texts() {
        let pattern = linear(r"\b(?P<first>\w)(\w*) (\d)?");
        let turns_of = CancelFlag::new();
        let turns = Turns::new(&turns_of);
        let short = "Ärger 7 ";
        let long = short.repeat(MOST_AT_ONCE / short.len() / 100);
        let [at_once, stepped] = [short, &long].map(|text| {
            let found = pattern.find(text, 0, &turns).unwrap();
            let groups = pattern.groups(text, &found, &turns).unwrap();
            let found = (0..5).map(|group| groups.get(group, text).map(str::to_string));
            (found.collect(), matches!(groups, Groups::Stepped(_)))
        });
        let expected: Vec<_> = [Some("Ärger 7"), Some("Ä"), Some("rger"), Some("7"), None]
            .map(|group| group.map(str::to_string))
            .into();
        assert_eq!(at_once, (expected.clone(), false));
        assert_eq!(stepped, (expected, true));
    }
}
