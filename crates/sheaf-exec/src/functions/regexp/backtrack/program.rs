//! Instructions of a pattern.
//!
//! ```text
//!   (a|b)*c       0 Split 1 or 6     1 Open 1     2 Split 3 or 5 ...     6 Char c     7 Done
//! ```

use std::collections::HashMap;

use super::classes::{Dot, Set};
use super::parse::{Assertion, Kind, Node, Syntax};
use super::problem::Problem;
use crate::functions::limits::Turns;

/// The most instructions of a pattern: numbers in braces repeat them.
const MAX_INSTRUCTIONS: usize = 200_000;
/// The most parts of a pattern that are looked at, with what is repeated.
const MAX_VISITS: usize = 2_000_000;
/// Parts between two looks at whether to go on.
const STRETCH_VISITS: usize = 4096;
/// The most characters that a pattern looks back for.
const MAX_BEHIND: usize = 10_000;

#[derive(Debug)]
pub(super) enum Instruction {
    Char(char),
    /// By its number.
    Set(usize),
    Any(Dot),
    Assert(Assertion),
    /// A group begins. Its text is the one before until it ends.
    Open(usize),
    Close(usize),
    /// One way, and another one if that fails.
    Split(usize, usize),
    Jump(usize),
    /// Notes a place, by its number.
    Mark(usize),
    /// Fails where nothing was taken since the mark: a loop would not end.
    Progress(usize),
    BackReference {
        group: usize,
        in_any_case: bool,
    },
    /// What follows, up to `end`, is looked for alone.
    Atomic {
        end: usize,
    },
    Look {
        end: usize,
        is_negated: bool,
        /// So many characters back, at least and at most. `None`: ahead.
        behind: Option<(usize, usize)>,
    },
    /// The end of the pattern, or of what is looked for alone.
    Done,
}

pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    pub(super) sets: Vec<Set>,
    /// Places: where each group begins and ends, the match first, and behind them where each of them was begun.
    pub(super) slots: usize,
    /// The match and the groups.
    pub(super) groups: usize,
    pub(super) marks: usize,
    /// The match begins where the text does.
    pub(super) is_anchored: bool,
}

/// The characters that a node takes, at least and at most. `None`: any number.
type Length = (usize, Option<usize>);

/// Makes a program of a tree.
struct Compiler<'a> {
    program: Program,
    /// The sets of nodes: what is repeated has one of them. By where the nodes lie, in a tree that stays.
    sets: HashMap<*const Node, usize>,
    /// The same for the lengths of nodes that have others inside.
    lengths: HashMap<*const Node, Length>,
    visits: usize,
    turns: &'a Turns<'a>,
}

impl Program {
    /// # Errors
    /// 3700 and 3695.
    pub(super) fn new(syntax: &Syntax, turns: &Turns<'_>) -> Result<Program, Problem> {
        let program = Program {
            instructions: Vec::new(),
            sets: Vec::new(),
            slots: 3 * (syntax.groups.len() + 1),
            groups: syntax.groups.len() + 1,
            marks: 0,
            is_anchored: false,
        };
        let mut compiler = Compiler {
            program,
            sets: HashMap::new(),
            lengths: HashMap::new(),
            visits: 0,
            turns,
        };
        compiler.add(&syntax.node)?;
        compiler.push(Instruction::Done)?;
        let mut program = compiler.program;
        let first = program.instructions.first();
        let at_start = Assertion::TextStart;
        program.is_anchored =
            matches!(first, Some(Instruction::Assert(first)) if *first == at_start);
        Ok(program)
    }
}

impl Compiler<'_> {
    /// Counts a part of the pattern.
    fn visit(&mut self) -> Result<(), Problem> {
        self.visits += 1;
        match self.visits {
            visits if visits > MAX_VISITS => Err(Problem::TooBig),
            visits if visits.is_multiple_of(STRETCH_VISITS) && self.turns.is_over_in_any_plan() => {
                Err(Problem::Told)
            }
            _ => Ok(()),
        }
    }

    /// The number of the next instruction.
    fn end(&self) -> usize {
        self.program.instructions.len()
    }

    fn put(&mut self, at: usize, instruction: Instruction) {
        self.program.instructions[at] = instruction;
    }

    fn push(&mut self, instruction: Instruction) -> Result<usize, Problem> {
        let instructions = &mut self.program.instructions;
        if instructions.len() >= MAX_INSTRUCTIONS {
            return Err(Problem::TooBig);
        }
        instructions.push(instruction);
        Ok(instructions.len() - 1)
    }

    fn add(&mut self, node: &Node) -> Result<(), Problem> {
        self.visit()?;
        match node {
            Node::Char(character) => {
                self.push(Instruction::Char(*character))?;
            }
            Node::Set(class) => {
                let sets = &mut self.program.sets;
                let known = self.sets.entry(std::ptr::from_ref(node));
                let set = *known.or_insert_with(|| {
                    sets.push(Set::new(class));
                    sets.len() - 1
                });
                self.push(Instruction::Set(set))?;
            }
            Node::Any(dot) => {
                self.push(Instruction::Any(*dot))?;
            }
            Node::Assert(assertion) => {
                self.push(Instruction::Assert(*assertion))?;
            }
            Node::Group(number, node) => {
                self.push(Instruction::Open(*number))?;
                self.add(node)?;
                self.push(Instruction::Close(*number))?;
            }
            Node::Atomic(node) => self.add_atomic(|compiler| compiler.add(node))?,
            Node::Look {
                node,
                is_behind,
                is_negated,
            } => {
                let behind = match is_behind {
                    true => {
                        let (least, most) = self.length(node)?;
                        let most = most.filter(|most| *most <= MAX_BEHIND);
                        Some((least, most.ok_or(Problem::LookBehind)?))
                    }
                    false => None,
                };
                let at = self.push(Instruction::Done)?;
                self.add(node)?;
                self.push(Instruction::Done)?;
                let look = Instruction::Look {
                    end: self.end(),
                    is_negated: *is_negated,
                    behind,
                };
                self.put(at, look);
            }
            Node::BackReference { group, in_any_case } => {
                let (group, in_any_case) = (*group, *in_any_case);
                self.push(Instruction::BackReference { group, in_any_case })?;
            }
            Node::Repeat {
                node,
                least,
                most,
                kind: Kind::Possessive,
            } => {
                let times = (*least, *most);
                self.add_atomic(|compiler| compiler.add_repeated(node, times, Kind::Greedy))?;
            }
            Node::Repeat {
                node,
                least,
                most,
                kind,
            } => self.add_repeated(node, (*least, *most), *kind)?,
            Node::Sequence(nodes) => {
                for node in nodes {
                    self.add(node)?;
                }
            }
            Node::Choice(choices) => {
                let mut ends = Vec::with_capacity(choices.len());
                for (number, choice) in choices.iter().enumerate() {
                    if number + 1 == choices.len() {
                        self.add(choice)?;
                        continue;
                    }
                    let split = self.push(Instruction::Done)?;
                    self.add(choice)?;
                    ends.push(self.push(Instruction::Done)?);
                    self.put(split, Instruction::Split(split + 1, self.end()));
                }
                let behind = self.end();
                for end in ends {
                    self.put(end, Instruction::Jump(behind));
                }
            }
        }
        Ok(())
    }

    fn add_atomic(
        &mut self,
        add: impl FnOnce(&mut Self) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let at = self.push(Instruction::Done)?;
        add(self)?;
        self.push(Instruction::Done)?;
        self.put(at, Instruction::Atomic { end: self.end() });
        Ok(())
    }

    fn add_repeated(
        &mut self,
        node: &Node,
        (least, most): (u32, Option<u32>),
        kind: Kind,
    ) -> Result<(), Problem> {
        for _ in 0..least {
            let start = self.end();
            self.add(node)?;
            if self.end() == start {
                // Nothing, however often.
                break;
            }
        }
        match most {
            None => self.add_loop(node, kind),
            Some(most) => self.add_optional(node, most - least, kind),
        }
    }

    /// Any number of times.
    fn add_loop(&mut self, node: &Node, kind: Kind) -> Result<(), Problem> {
        let start = self.push(Instruction::Done)?;
        let mark = (self.length(node)?.0 == 0).then_some(self.program.marks);
        if let Some(mark) = mark {
            self.program.marks += 1;
            self.push(Instruction::Mark(mark))?;
        }
        self.add(node)?;
        if let Some(mark) = mark {
            self.push(Instruction::Progress(mark))?;
        }
        self.push(Instruction::Jump(start))?;
        self.put(start, split(kind, start + 1, self.end()));
        Ok(())
    }

    /// So many times at most.
    fn add_optional(&mut self, node: &Node, most: u32, kind: Kind) -> Result<(), Problem> {
        let mut splits = Vec::new();
        for _ in 0..most {
            let at = self.push(Instruction::Done)?;
            self.add(node)?;
            if self.end() == at + 1 {
                self.program.instructions.truncate(at);
                break;
            }
            splits.push(at);
        }
        let behind = self.end();
        for at in splits {
            self.put(at, split(kind, at + 1, behind));
        }
        Ok(())
    }

    fn length(&mut self, node: &Node) -> Result<Length, Problem> {
        let inside = match node {
            Node::Any(Dot::All) => return Ok((1, Some(2))),
            Node::Char(_) | Node::Set(_) | Node::Any(_) => return Ok((1, Some(1))),
            Node::Assert(_) | Node::Look { .. } => return Ok((0, Some(0))),
            Node::BackReference { .. } => return Ok((0, None)),
            inside => inside,
        };
        let place = std::ptr::from_ref(inside);
        if let Some(known) = self.lengths.get(&place) {
            return Ok(*known);
        }
        self.visit()?;
        let length = self.length_with_inside(inside)?;
        self.lengths.insert(place, length);
        Ok(length)
    }

    fn length_with_inside(&mut self, node: &Node) -> Result<Length, Problem> {
        Ok(match node {
            Node::Group(_, node) | Node::Atomic(node) => self.length(node)?,
            Node::Repeat {
                node, least, most, ..
            } => {
                let (shortest, longest) = self.length(node)?;
                let most = most.map(|most| most as usize);
                let longest = match (longest, most) {
                    (Some(0), _) => Some(0),
                    (Some(longest), Some(most)) => longest.checked_mul(most),
                    _ => None,
                };
                (shortest.saturating_mul(*least as usize), longest)
            }
            Node::Sequence(nodes) => {
                let (mut least, mut most) = (0usize, Some(0usize));
                for node in nodes {
                    let (shortest, longest) = self.length(node)?;
                    least = least.saturating_add(shortest);
                    most = most.zip(longest).and_then(|(a, b)| a.checked_add(b));
                }
                (least, most)
            }
            Node::Choice(choices) => {
                let (mut least, mut most) = (usize::MAX, Some(0usize));
                for node in choices {
                    let (shortest, longest) = self.length(node)?;
                    least = least.min(shortest);
                    most = most.zip(longest).map(|(a, b)| a.max(b));
                }
                (least, most)
            }
            simple => self.length(simple)?,
        })
    }
}

fn split(kind: Kind, inside: usize, behind: usize) -> Instruction {
    match kind {
        Kind::Lazy => Instruction::Split(behind, inside),
        Kind::Greedy | Kind::Possessive => Instruction::Split(inside, behind),
    }
}
