//! Follows the instructions of a pattern through a text.
//!
//! Where there are two ways, the second one is remembered on a stack, and so is what a place of a group was before it
//! was changed. What fails goes back to the last of them. What is looked for alone (`(?=x)`, `(?>x)`) is a search of
//! its own: when it ends, its ways are forgotten, and its places stay remembered.

use std::ops::Range;

use super::classes::{Dot, ends_line, is_of_word};
use super::parse::Assertion;
use super::program::{Instruction, Program};
use crate::functions::limits::Turns;

/// The most steps of a search.
const MAX_STEPS: u64 = 20_000_000;
/// The most that a search remembers.
const MAX_REMEMBERED: usize = 400_000;
/// Steps between two looks at whether to go on.
const STRETCH_STEPS: u64 = 4096;
/// Bytes that are compared, or places that are made, in the time of a step.
const BYTES_OF_STEP: usize = 64;
/// A place that is not known (yet). No text is as long.
const NOWHERE: usize = usize::MAX;

/// Why a search has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::functions::regexp) enum Stopped {
    /// It was told to stop.
    Told,
    /// It took too many steps.
    Steps,
    /// It remembered too much.
    Stack,
}

/// What is done when a way fails.
enum Memory {
    /// Another way: its instruction and place.
    Way(usize, usize),
    /// The place of a group.
    Slot(usize, usize),
    Mark(usize, usize),
}

struct Search<'a, 't> {
    program: &'a Program,
    text: &'a str,
    /// Where `\G` stands.
    start: usize,
    slots: Vec<usize>,
    marks: Vec<usize>,
    memory: Vec<Memory>,
    steps: u64,
    /// At so many steps it looks again whether to go on.
    next_look: u64,
    turns: &'a Turns<'t>,
}

/// The first match at or behind a byte of the text; `start`: where `\G` stands.
pub(super) fn find(
    program: &Program,
    text: &str,
    (at, start): (usize, usize),
    turns: &Turns<'_>,
) -> Result<Option<Vec<Option<Range<usize>>>>, Stopped> {
    let mut search = Search {
        program,
        text,
        start,
        slots: vec![NOWHERE; program.slots],
        marks: vec![NOWHERE; program.marks],
        memory: Vec::new(),
        steps: 0,
        next_look: 0,
        turns,
    };
    search.count(1 + program.slots / BYTES_OF_STEP)?;
    let starts = text[at..].char_indices().map(|(place, _)| at + place);
    for start in starts.chain([text.len()]) {
        if program.is_anchored && start > 0 {
            break;
        }
        // What has failed has put back all places.
        if let Some(end) = search.run(0, start, None)? {
            search.slots[0] = start;
            search.slots[1] = end;
            let group = |ends: &[usize]| match ends {
                [start, end] if *start != NOWHERE && *end != NOWHERE && start <= end => {
                    Some(*start..*end)
                }
                _ => None,
            };
            let places = &search.slots[..2 * program.groups];
            return Ok(Some(places.chunks(2).map(group).collect()));
        }
    }
    Ok(None)
}

impl Search<'_, '_> {
    /// Where what begins with an instruction ends; `target`: it has to end there.
    fn run(
        &mut self,
        first: usize,
        at: usize,
        target: Option<usize>,
    ) -> Result<Option<usize>, Stopped> {
        let (program, base) = (self.program, self.memory.len());
        let (mut instruction, mut at) = (first, at);
        loop {
            self.count(1)?;
            let next = match &program.instructions[instruction] {
                Instruction::Char(wanted) => {
                    let found = self.character(at).filter(|found| found == wanted);
                    found.map(|found| (instruction + 1, at + found.len_utf8()))
                }
                Instruction::Set(set) => {
                    let found = self.character(at);
                    let found = found.filter(|found| program.sets[*set].has(*found));
                    found.map(|found| (instruction + 1, at + found.len_utf8()))
                }
                Instruction::Any(dot) => self.any(*dot, at).map(|end| (instruction + 1, end)),
                Instruction::Assert(assertion) => {
                    self.holds(*assertion, at).then_some((instruction + 1, at))
                }
                Instruction::Open(group) => {
                    self.set_place(2 * program.groups + group, at)?;
                    Some((instruction + 1, at))
                }
                Instruction::Close(group) => {
                    let begun = self.slots[2 * program.groups + group];
                    self.set_place(2 * group, begun)?;
                    self.set_place(2 * group + 1, at)?;
                    Some((instruction + 1, at))
                }
                Instruction::Split(one, other) => {
                    let (one, other) = (*one, *other);
                    self.remember(Memory::Way(other, at))?;
                    Some((one, at))
                }
                Instruction::Jump(to) => Some((*to, at)),
                Instruction::Mark(mark) => {
                    let mark = *mark;
                    self.remember(Memory::Mark(mark, self.marks[mark]))?;
                    self.marks[mark] = at;
                    Some((instruction + 1, at))
                }
                // An empty turn is the last one.
                Instruction::Progress(mark) => match self.marks[*mark] == at {
                    true => Some((instruction + 2, at)),
                    false => Some((instruction + 1, at)),
                },
                Instruction::BackReference { group, in_any_case } => self
                    .taken_again(*group, *in_any_case, at)?
                    .map(|end| (instruction + 1, end)),
                Instruction::Atomic { end } => {
                    let end = *end;
                    self.run(instruction + 1, at, None)?.map(|at| (end, at))
                }
                Instruction::Look {
                    end,
                    is_negated,
                    behind,
                } => {
                    let (end, is_negated, behind) = (*end, *is_negated, *behind);
                    let before = self.memory.len();
                    let found = self.looks(instruction + 1, at, behind)?;
                    if found && is_negated {
                        self.forget(before);
                    }
                    (found != is_negated).then_some((end, at))
                }
                Instruction::Done => match target {
                    Some(target) if target != at => None,
                    _ => {
                        self.keep_places(base)?;
                        return Ok(Some(at));
                    }
                },
            };
            match next.or_else(|| self.other_way(base)) {
                Some(next) => (instruction, at) = next,
                None => return Ok(None),
            }
        }
    }

    /// Counts what takes as long as so many steps.
    fn count(&mut self, steps: usize) -> Result<(), Stopped> {
        self.steps += steps as u64;
        if self.steps < self.next_look {
            return Ok(());
        }
        if self.turns.is_over_in_any_plan() {
            return Err(Stopped::Told);
        }
        if self.steps > MAX_STEPS {
            return Err(Stopped::Steps);
        }
        self.next_look = (self.steps + STRETCH_STEPS).min(MAX_STEPS + 1);
        Ok(())
    }

    fn remember(&mut self, memory: Memory) -> Result<(), Stopped> {
        if self.memory.len() >= MAX_REMEMBERED {
            return Err(Stopped::Stack);
        }
        self.memory.push(memory);
        Ok(())
    }

    fn set_place(&mut self, slot: usize, at: usize) -> Result<(), Stopped> {
        self.remember(Memory::Slot(slot, self.slots[slot]))?;
        self.slots[slot] = at;
        Ok(())
    }

    /// The last way that is remembered behind `base`.
    fn other_way(&mut self, base: usize) -> Option<(usize, usize)> {
        while self.memory.len() > base {
            match self.memory.pop()? {
                Memory::Way(instruction, at) => return Some((instruction, at)),
                Memory::Slot(slot, place) => self.slots[slot] = place,
                Memory::Mark(mark, place) => self.marks[mark] = place,
            }
        }
        None
    }

    /// Forgets the ways behind `base`, but not what places were before.
    fn keep_places(&mut self, base: usize) -> Result<(), Stopped> {
        self.count(self.memory.len() - base)?;
        let mut kept = base;
        for at in base..self.memory.len() {
            if !matches!(self.memory[at], Memory::Way(..)) {
                self.memory.swap(kept, at);
                kept += 1;
            }
        }
        self.memory.truncate(kept);
        Ok(())
    }

    /// Makes all places what they were before what is remembered behind `base`.
    fn forget(&mut self, base: usize) {
        while self.other_way(base).is_some() {}
    }

    /// Whether what begins with an instruction stands here; `behind`: whether it ends here.
    fn looks(
        &mut self,
        first: usize,
        at: usize,
        behind: Option<(usize, usize)>,
    ) -> Result<bool, Stopped> {
        let Some((least, most)) = behind else {
            return Ok(self.run(first, at, None)?.is_some());
        };
        self.count(least)?;
        let text = self.text;
        let before = text[..at].char_indices().rev().map(|(place, _)| place);
        let starts = std::iter::once(at).chain(before);
        for start in starts.take(most + 1).skip(least) {
            if self.run(first, start, Some(at))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn character(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    /// The end of what a `.` stands for.
    fn any(&self, dot: Dot, at: usize) -> Option<usize> {
        let found = self.character(at)?;
        let is_taken = match dot {
            Dot::All => true,
            Dot::WithinLine => !ends_line(found),
            Dot::WithinUnixLine => found != '\n',
        };
        let is_pair = dot == Dot::All && self.text[at..].starts_with("\r\n");
        is_taken.then(|| at + found.len_utf8() + usize::from(is_pair))
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }

    fn holds(&self, assertion: Assertion, at: usize) -> bool {
        let (before, behind) = (self.before(at), self.character(at));
        let is_in_pair = before == Some('\r') && behind == Some('\n');
        let is_word = |character: Option<char>| character.is_some_and(is_of_word);
        match assertion {
            Assertion::TextStart => at == 0,
            Assertion::TextEnd => behind.is_none(),
            Assertion::LastLineEnd => {
                let rest = &self.text[at..];
                let mut last = rest.chars();
                let is_last = last.next().is_some_and(ends_line) && last.next().is_none();
                rest.is_empty() || rest == "\r\n" || is_last && !is_in_pair
            }
            Assertion::LineStart => {
                at == 0 || before.is_some_and(ends_line) && behind.is_some() && !is_in_pair
            }
            Assertion::LineEnd => behind.is_none_or(ends_line) && !is_in_pair,
            Assertion::LastUnixLineEnd => matches!(&self.text[at..], "" | "\n"),
            Assertion::UnixLineStart => at == 0 || before == Some('\n'),
            Assertion::UnixLineEnd => behind.is_none_or(|behind| behind == '\n'),
            Assertion::WordBoundary => is_word(before) != is_word(behind),
            Assertion::NoWordBoundary => is_word(before) == is_word(behind),
            Assertion::WordStart => !is_word(before) && is_word(behind),
            Assertion::WordEnd => is_word(before) && !is_word(behind),
            Assertion::SearchStart => at == self.start,
        }
    }

    /// The end of a group's text that stands here again.
    fn taken_again(
        &mut self,
        group: usize,
        in_any_case: bool,
        at: usize,
    ) -> Result<Option<usize>, Stopped> {
        let (start, end) = (self.slots[2 * group], self.slots[2 * group + 1]);
        if start == NOWHERE || end == NOWHERE || start > end {
            return Ok(None);
        }
        let text = self.text;
        let (taken, rest) = (&text[start..end], &text[at..]);
        if !in_any_case {
            self.count(taken.len() / BYTES_OF_STEP)?;
            return Ok(rest.starts_with(taken).then_some(at + taken.len()));
        }
        let mut characters = rest.chars();
        let mut length = 0;
        for wanted in taken.chars() {
            self.count(1)?;
            let Some(found) = characters.next() else {
                return Ok(None);
            };
            if wanted != found && !wanted.to_lowercase().eq(found.to_lowercase()) {
                return Ok(None);
            }
            length += found.len_utf8();
        }
        Ok(Some(at + length))
    }
}
