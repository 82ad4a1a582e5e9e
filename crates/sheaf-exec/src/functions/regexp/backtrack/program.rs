//! Instructions of a pattern.
//!
//! ```text
//!   (a|b)*c       0 Split 1 or 6     1 Open 1     2 Split 3 or 5 ...     6 Char c     7 Done
//! ```

use super::classes::Set;
use super::parse::{Assertion, Kind, Node, Problem, Syntax};

/// The most instructions of a pattern: numbers in braces repeat them.
const MAX_INSTRUCTIONS: usize = 200_000;
/// The most characters that a pattern looks back for.
const MAX_BEHIND: usize = 10_000;

#[derive(Debug)]
pub(super) enum Instruction {
    Char(char),
    /// By its number.
    Set(usize),
    Any {
        ends_lines: bool,
    },
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

impl Program {
    /// # Errors
    /// 3700 and 3695.
    pub(super) fn new(syntax: &Syntax) -> Result<Program, Problem> {
        let mut program = Program {
            instructions: Vec::new(),
            sets: Vec::new(),
            slots: 3 * (syntax.groups.len() + 1),
            groups: syntax.groups.len() + 1,
            marks: 0,
            is_anchored: false,
        };
        program.add(&syntax.node)?;
        program.push(Instruction::Done)?;
        let first = program.instructions.first();
        let at_start = Assertion::TextStart;
        program.is_anchored =
            matches!(first, Some(Instruction::Assert(first)) if *first == at_start);
        Ok(program)
    }

    fn push(&mut self, instruction: Instruction) -> Result<usize, Problem> {
        if self.instructions.len() >= MAX_INSTRUCTIONS {
            return Err(Problem::TooBig);
        }
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    fn add(&mut self, node: &Node) -> Result<(), Problem> {
        match node {
            Node::Char(character) => {
                self.push(Instruction::Char(*character))?;
            }
            Node::Set(class) => {
                self.sets.push(Set::new(class));
                let set = self.sets.len() - 1;
                self.push(Instruction::Set(set))?;
            }
            Node::Any { ends_lines } => {
                let ends_lines = *ends_lines;
                self.push(Instruction::Any { ends_lines })?;
            }
            Node::Assert(assertion) => {
                self.push(Instruction::Assert(*assertion))?;
            }
            Node::Group(number, node) => {
                self.push(Instruction::Open(*number))?;
                self.add(node)?;
                self.push(Instruction::Close(*number))?;
            }
            Node::Atomic(node) => self.add_atomic(node)?,
            Node::Look {
                node,
                is_behind,
                is_negated,
            } => {
                let behind = match is_behind {
                    true => {
                        let (least, most) = length(node);
                        let most = most.filter(|most| *most <= MAX_BEHIND);
                        Some((least, most.ok_or(Problem::LookBehind)?))
                    }
                    false => None,
                };
                let at = self.push(Instruction::Done)?;
                self.add(node)?;
                self.push(Instruction::Done)?;
                self.instructions[at] = Instruction::Look {
                    end: self.instructions.len(),
                    is_negated: *is_negated,
                    behind,
                };
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
                let greedy = Node::Repeat {
                    node: node.clone(),
                    least: *least,
                    most: *most,
                    kind: Kind::Greedy,
                };
                self.add_atomic(&greedy)?;
            }
            Node::Repeat {
                node,
                least,
                most,
                kind,
            } => {
                for _ in 0..*least {
                    self.add(node)?;
                }
                match most {
                    None => self.add_loop(node, *kind)?,
                    Some(most) => self.add_optional(node, most - least, *kind)?,
                }
            }
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
                    self.instructions[split] =
                        Instruction::Split(split + 1, self.instructions.len());
                }
                let behind = self.instructions.len();
                for end in ends {
                    self.instructions[end] = Instruction::Jump(behind);
                }
            }
        }
        Ok(())
    }

    fn add_atomic(&mut self, node: &Node) -> Result<(), Problem> {
        let at = self.push(Instruction::Done)?;
        self.add(node)?;
        self.push(Instruction::Done)?;
        self.instructions[at] = Instruction::Atomic {
            end: self.instructions.len(),
        };
        Ok(())
    }

    /// Any number of times.
    fn add_loop(&mut self, node: &Node, kind: Kind) -> Result<(), Problem> {
        let start = self.push(Instruction::Done)?;
        let mark = (length(node).0 == 0).then_some(self.marks);
        if let Some(mark) = mark {
            self.marks += 1;
            self.push(Instruction::Mark(mark))?;
        }
        self.add(node)?;
        if let Some(mark) = mark {
            self.push(Instruction::Progress(mark))?;
        }
        self.push(Instruction::Jump(start))?;
        self.instructions[start] = split(kind, start + 1, self.instructions.len());
        Ok(())
    }

    /// So many times at most.
    fn add_optional(&mut self, node: &Node, most: u32, kind: Kind) -> Result<(), Problem> {
        let mut splits = Vec::new();
        for _ in 0..most {
            splits.push(self.push(Instruction::Done)?);
            self.add(node)?;
        }
        let behind = self.instructions.len();
        for at in splits {
            self.instructions[at] = split(kind, at + 1, behind);
        }
        Ok(())
    }
}

fn split(kind: Kind, inside: usize, behind: usize) -> Instruction {
    match kind {
        Kind::Lazy => Instruction::Split(behind, inside),
        Kind::Greedy | Kind::Possessive => Instruction::Split(inside, behind),
    }
}

/// The characters that a node takes, at least and at most. `None`: any number.
fn length(node: &Node) -> (usize, Option<usize>) {
    match node {
        Node::Char(_) | Node::Set(_) | Node::Any { .. } => (1, Some(1)),
        Node::Assert(_) | Node::Look { .. } => (0, Some(0)),
        Node::Group(_, node) | Node::Atomic(node) => length(node),
        Node::BackReference { .. } => (0, None),
        Node::Repeat {
            node, least, most, ..
        } => {
            let (shortest, longest) = length(node);
            let most = most.map(|most| most as usize);
            let longest = match (longest, most) {
                (Some(0), _) => Some(0),
                (Some(longest), Some(most)) => longest.checked_mul(most),
                _ => None,
            };
            (shortest.saturating_mul(*least as usize), longest)
        }
        Node::Sequence(nodes) => nodes.iter().map(length).fold(
            (0usize, Some(0usize)),
            |(least, most), (shortest, longest)| {
                let most = most.zip(longest).and_then(|(a, b)| a.checked_add(b));
                (least.saturating_add(shortest), most)
            },
        ),
        Node::Choice(choices) => {
            let lengths: Vec<_> = choices.iter().map(length).collect();
            let least = lengths.iter().map(|(least, _)| *least).min();
            let most = lengths.iter().map(|(_, most)| *most);
            let most: Option<Vec<usize>> = most.collect();
            (
                least.unwrap_or(0),
                most.map(|most| most.into_iter().max().unwrap_or(0)),
            )
        }
    }
}
