//! A search that follows all ways through a pattern at once, and can be stopped anywhere (a "Pike VM").
//!
//! It knows every pattern: `\b` beside letters beyond ASCII, and groups. The other automata (`search.rs`) do not, but
//! take a byte in one step, where this takes as many as there are ways. A way is a state of the pattern's automaton and
//! the places where its groups begin and end. Of two ways to the same state the first is kept: it would win.

use std::ops::Range;

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::StateID;

use crate::functions::limits::Turns;

/// States between two looks at whether to go on: they take about a microsecond.
const STRETCH_STATES: u32 = 64;
/// A place that is not known (yet). No text is as long.
const NOWHERE: usize = usize::MAX;

/// The ways through a pattern at one byte of the text, the best one first.
#[derive(Default)]
struct Ways {
    states: Vec<StateID>,
    /// Where each state stands in `states`, if it does.
    positions: Vec<u32>,
    /// Places of groups, so many for each of `states`.
    places: Vec<usize>,
}

impl Ways {
    fn new(states: usize) -> Ways {
        Ways {
            positions: vec![0; states],
            ..Ways::default()
        }
    }

    fn contains(&self, state: StateID) -> bool {
        let position = self.positions[state.as_usize()] as usize;
        self.states.get(position) == Some(&state)
    }

    fn push(&mut self, state: StateID, places: &[usize]) {
        self.positions[state.as_usize()] = self.states.len() as u32;
        self.states.push(state);
        self.places.extend_from_slice(places);
    }

    fn clear(&mut self) {
        self.states.clear();
        self.places.clear();
    }
}

/// What is left to do on the way to all states that take no byte to reach.
enum Step {
    Enter(StateID),
    /// A place is again what it was, behind all that followed from it.
    Restore(usize, usize),
}

/// What a search goes through, and what it needs for that.
pub(super) struct Threads {
    nfa: NFA,
    now: Ways,
    next: Ways,
    steps: Vec<Step>,
    places: Vec<usize>,
}

/// A search was told to stop.
pub(super) struct Stopped;

impl Threads {
    /// The automaton has the pattern's groups.
    pub(super) fn new(nfa: NFA) -> Threads {
        let states = nfa.states().len();
        Threads {
            nfa,
            now: Ways::new(states),
            next: Ways::new(states),
            steps: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The first match in a part of a text.
    pub(super) fn find(
        &mut self,
        text: &str,
        part: Range<usize>,
        turns: &Turns<'_>,
    ) -> Result<Option<Range<usize>>, Stopped> {
        let places = self.search(text, part, (false, 2), turns)?;
        Ok(places.map(|places| places[0]..places[1]))
    }

    /// The groups of a match. The first one is the match.
    pub(super) fn groups(
        &mut self,
        text: &str,
        found: &Range<usize>,
        turns: &Turns<'_>,
    ) -> Result<Vec<Option<Range<usize>>>, Stopped> {
        let slots = self.nfa.group_info().slot_len();
        let places = self.search(text, found.clone(), (true, slots), turns)?;
        let group = |ends: &[usize]| match ends {
            [start, end] if *start != NOWHERE && *end != NOWHERE => Some(*start..*end),
            _ => None,
        };
        Ok(places.unwrap_or_default().chunks(2).map(group).collect())
    }

    /// The places of the first match's groups, so many of them.
    fn search(
        &mut self,
        text: &str,
        part: Range<usize>,
        (is_anchored, slots): (bool, usize),
        turns: &Turns<'_>,
    ) -> Result<Option<Vec<usize>>, Stopped> {
        let bytes = text.as_bytes();
        let mut found: Option<Vec<usize>> = None;
        let mut looked = 0;
        self.now.clear();
        for at in part.start..=part.end {
            let may_start = found.is_none() && (!is_anchored || at == part.start);
            if self.now.states.is_empty() && !may_start {
                break;
            }
            if may_start && text.is_char_boundary(at) {
                self.places.clear();
                self.places.resize(slots, NOWHERE);
                let start = self.nfa.start_anchored();
                enter(
                    &self.nfa,
                    (&mut self.steps, &mut self.places, &mut self.now),
                    (bytes, at, start),
                    (&mut looked, turns),
                )?;
            }
            let byte = (at < part.end).then(|| bytes[at]);
            for position in 0..self.now.states.len() {
                let places = &self.now.places[position * slots..][..slots];
                let next = match self.nfa.state(self.now.states[position]) {
                    State::ByteRange { trans } => byte
                        .filter(|byte| trans.matches_byte(*byte))
                        .map(|_| trans.next),
                    State::Sparse(sparse) => byte.and_then(|byte| sparse.matches_byte(byte)),
                    State::Dense(dense) => byte.and_then(|byte| dense.matches_byte(byte)),
                    // What follows would win less.
                    State::Match { .. } => {
                        found = Some(places.to_vec());
                        break;
                    }
                    _ => None,
                };
                look(&mut looked, turns)?;
                if let Some(next) = next {
                    self.places.clear();
                    self.places.extend_from_slice(places);
                    enter(
                        &self.nfa,
                        (&mut self.steps, &mut self.places, &mut self.next),
                        (bytes, at + 1, next),
                        (&mut looked, turns),
                    )?;
                }
            }
            std::mem::swap(&mut self.now, &mut self.next);
            self.next.clear();
        }
        Ok(found)
    }
}

/// Counts a state.
fn look(looked: &mut u32, turns: &Turns<'_>) -> Result<(), Stopped> {
    *looked = looked.wrapping_add(1);
    match looked.is_multiple_of(STRETCH_STATES) && turns.is_over_now() {
        true => Err(Stopped),
        false => Ok(()),
    }
}

/// Adds a state to the ways, or the states that it leads to without a byte.
fn enter(
    nfa: &NFA,
    (steps, places, ways): (&mut Vec<Step>, &mut [usize], &mut Ways),
    (bytes, at, state): (&[u8], usize, StateID),
    (looked, turns): (&mut u32, &Turns<'_>),
) -> Result<(), Stopped> {
    steps.clear();
    steps.push(Step::Enter(state));
    while let Some(step) = steps.pop() {
        let mut state = match step {
            Step::Enter(state) => state,
            Step::Restore(slot, place) => {
                places[slot] = place;
                continue;
            }
        };
        while !ways.contains(state) {
            ways.push(state, places);
            look(looked, turns)?;
            match nfa.state(state) {
                State::Look { look, next } => {
                    if !nfa.look_matcher().matches(*look, bytes, at) {
                        break;
                    }
                    state = *next;
                }
                State::Union { alternates } => {
                    let Some((first, others)) = alternates.split_first() else {
                        break;
                    };
                    steps.extend(others.iter().rev().map(|other| Step::Enter(*other)));
                    state = *first;
                }
                State::BinaryUnion { alt1, alt2 } => {
                    steps.push(Step::Enter(*alt2));
                    state = *alt1;
                }
                State::Capture { next, slot, .. } => {
                    if let Some(place) = places.get_mut(slot.as_usize()) {
                        steps.push(Step::Restore(slot.as_usize(), *place));
                        *place = at;
                    }
                    state = *next;
                }
                State::ByteRange { .. }
                | State::Sparse(_)
                | State::Dense(_)
                | State::Match { .. }
                | State::Fail => break,
            }
        }
    }
    Ok(())
}
