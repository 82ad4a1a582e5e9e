//! Reads a pattern, with the errors that ICU tells of.
//!
//! A descent by levels, each of which calls the one below it:
//!
//! ```text
//!   choice       a|b                      sequence   ab            repetition  a*  a+?  a{2,3}+
//!   atom         a  .  [a-z]  \d  ^  (a)  (?:a)  (?=a)  (?<n>a)  \1
//!   set          [a-z&&[^x][:alpha:]]
//! ```
//!
//! The result is a tree of [`Node`]s. It also says whether automata do not know the pattern, or would read it
//! otherwise: look-around, back-references, atomic groups and possessive repetitions need backtracking. Depth, numbers
//! and the bytes of the tree are limited.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

use regex_syntax::hir::ClassUnicode;

use super::classes::{Dot, class, in_any_case, negated, of_letter, of_posix, written};
use super::problem::Problem;
use crate::functions::limits::Turns;
use crate::functions::regexp::Modes;

/// The deepest nesting of groups and sets.
const MAX_DEPTH: usize = 200;
/// The largest number in braces.
const MAX_COUNT: u32 = 1_000_000;
/// What the tree of a pattern may take, in bytes. Each `\w` takes some thousands.
const MAX_BYTES: usize = 16 << 20;
/// Parts of a pattern between two looks at whether to go on.
const STRETCH_PARTS: u32 = 256;
/// Ranges of a set that are put in order at once.
const RANGES_AT_ONCE: usize = 4096;

/// A pattern that was read.
pub(in crate::functions::regexp) struct Syntax {
    pub(super) node: Node,
    /// Of all groups that may be named, from the first one on.
    pub(super) groups: Vec<Option<String>>,
    /// Automata do not know it, or read it otherwise.
    pub(in crate::functions::regexp) needs_backtracking: bool,
    /// Where in the pattern each `.` stands. Automata know one end of a line only.
    pub(in crate::functions::regexp) dots: Vec<(usize, Dot)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assertion {
    TextStart,
    TextEnd,
    /// The end of the text, or in front of the end of its last line.
    LastLineEnd,
    LineStart,
    LineEnd,
    /// As the three before, where lines end at line feeds only.
    LastUnixLineEnd,
    UnixLineStart,
    UnixLineEnd,
    WordBoundary,
    NoWordBoundary,
    WordStart,
    WordEnd,
    SearchStart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Greedy,
    Lazy,
    Possessive,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Char(char),
    Set(ClassUnicode),
    Any(Dot),
    Assert(Assertion),
    /// By its number, from 1 on.
    Group(usize, Box<Node>),
    Atomic(Box<Node>),
    Look {
        node: Box<Node>,
        is_behind: bool,
        is_negated: bool,
    },
    BackReference {
        group: usize,
        in_any_case: bool,
    },
    Repeat {
        node: Box<Node>,
        least: u32,
        most: Option<u32>,
        kind: Kind,
    },
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
}

/// Reads a pattern.
pub(in crate::functions::regexp) fn parse(
    pattern: &str,
    modes: Modes,
    turns: &Turns<'_>,
) -> Result<Syntax, Problem> {
    let mut parser = Parser {
        pattern,
        rest: pattern.chars().peekable(),
        at: 0,
        groups: Vec::new(),
        names: HashMap::new(),
        bytes: 0,
        parts: 0,
        turns,
        most_referred: 0,
        needs_backtracking: false,
        dots: Vec::new(),
        flags: Flags {
            in_any_case: modes.insensitive,
            lines: modes.lines,
            dot_all: modes.dot_all,
            unix_lines: modes.unix_lines,
            comments: false,
        },
        depth: 0,
    };
    let node = parser.choice()?;
    if parser.peek().is_some() {
        return Err(Problem::Parenthesis);
    }
    if parser.most_referred > parser.groups.len() {
        return Err(Problem::BackReference);
    }
    Ok(Syntax {
        node,
        groups: parser.groups,
        needs_backtracking: parser.needs_backtracking,
        dots: parser.dots,
    })
}

#[derive(Clone, Copy)]
struct Flags {
    in_any_case: bool,
    lines: bool,
    dot_all: bool,
    unix_lines: bool,
    comments: bool,
}

struct Parser<'a> {
    pattern: &'a str,
    rest: Peekable<Chars<'a>>,
    /// Bytes that were read.
    at: usize,
    groups: Vec<Option<String>>,
    /// The numbers of groups.
    names: HashMap<String, usize>,
    /// What the tree takes so far.
    bytes: usize,
    parts: u32,
    turns: &'a Turns<'a>,
    most_referred: usize,
    needs_backtracking: bool,
    dots: Vec<(usize, Dot)>,
    flags: Flags,
    depth: usize,
}

/// What stands in a pattern, and whether it may be repeated.
struct Atom {
    node: Node,
    repeats: bool,
}

fn once(node: Node) -> Atom {
    Atom {
        node,
        repeats: false,
    }
}

fn repeated(node: Node) -> Atom {
    Atom {
        node,
        repeats: true,
    }
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn accept(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.next();
        }
        is_there
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let is_there = self.pattern[self.at..].starts_with(word);
        if is_there {
            for _ in word.chars() {
                self.next();
            }
        }
        is_there
    }

    /// Counts a part of the pattern, and the bytes of it that are kept.
    fn take(&mut self, bytes: usize) -> Result<(), Problem> {
        self.parts = self.parts.wrapping_add(1);
        if self.parts.is_multiple_of(STRETCH_PARTS) && self.turns.is_over_in_any_plan() {
            return Err(Problem::Told);
        }
        self.bytes += bytes;
        match self.bytes > MAX_BYTES {
            true => Err(Problem::TooBig),
            false => Ok(()),
        }
    }

    fn take_node(&mut self) -> Result<(), Problem> {
        self.take(size_of::<Node>())
    }

    fn set_node(&mut self, set: ClassUnicode) -> Result<Node, Problem> {
        self.take(size_of_val(set.ranges()))?;
        Ok(Node::Set(set))
    }

    fn wrong(&self) -> Problem {
        Problem::Rule(self.at)
    }

    fn choice(&mut self) -> Result<Node, Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Problem::TooBig);
        }
        let mut choices = vec![self.sequence()?];
        while self.accept('|') {
            self.take_node()?;
            choices.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(match choices.len() {
            1 => choices.swap_remove(0),
            _ => Node::Choice(choices),
        })
    }

    fn sequence(&mut self) -> Result<Node, Problem> {
        let mut nodes = Vec::new();
        loop {
            self.skip_comments()?;
            match self.peek() {
                None | Some('|' | ')') => break,
                _ => {}
            }
            self.take_node()?;
            let Some(atom) = self.atom()? else {
                continue;
            };
            self.skip_comments()?;
            nodes.push(self.repetition(atom)?);
        }
        Ok(match nodes.len() {
            1 => nodes.swap_remove(0),
            _ => Node::Sequence(nodes),
        })
    }

    /// Comments, and with the flag `x` blanks between words of the pattern.
    fn skip_comments(&mut self) -> Result<(), Problem> {
        loop {
            if self.accept_word("(?#") {
                self.needs_backtracking = true;
                while self.next().ok_or(Problem::Parenthesis)? != ')' {}
            } else if self.flags.comments && self.peek().is_some_and(char::is_whitespace) {
                self.next();
            } else if self.flags.comments && self.accept('#') {
                while self.next().is_some_and(|next| next != '\n') {}
            } else {
                return Ok(());
            }
        }
    }

    fn repetition(&mut self, atom: Atom) -> Result<Node, Problem> {
        let (least, most) = match self.peek() {
            Some('*' | '+' | '?' | '{') if !atom.repeats => return Err(self.wrong()),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => (0, Some(0)),
            _ => return Ok(atom.node),
        };
        let (least, most) = match self.next() {
            Some('{') => self.interval()?,
            _ => (least, most),
        };
        let kind = match self.peek() {
            Some('?') => Kind::Lazy,
            Some('+') => Kind::Possessive,
            _ => Kind::Greedy,
        };
        if kind != Kind::Greedy {
            self.next();
        }
        self.needs_backtracking |= kind == Kind::Possessive;
        self.skip_comments()?;
        if matches!(self.peek(), Some('*' | '+' | '?' | '{')) {
            return Err(self.wrong());
        }
        Ok(Node::Repeat {
            node: Box::new(atom.node),
            least,
            most,
            kind,
        })
    }

    /// What stands behind an open brace.
    fn interval(&mut self) -> Result<(u32, Option<u32>), Problem> {
        let least = self.number()?.ok_or(Problem::Interval)?;
        let most = match self.accept(',') {
            true => self.number()?,
            false => Some(least),
        };
        match self.accept('}') {
            false => Err(Problem::Interval),
            true if most.is_some_and(|most| most < least) => Err(Problem::MaximumBelowMinimum),
            true => Ok((least, most)),
        }
    }

    fn number(&mut self) -> Result<Option<u32>, Problem> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|digit| digit.to_digit(10)) {
            self.next();
            let longer = number.unwrap_or(0) * 10 + digit;
            if longer > MAX_COUNT {
                return Err(Problem::TooBig);
            }
            number = Some(longer);
        }
        Ok(number)
    }

    /// `None`: flags, which are no part of the pattern.
    fn atom(&mut self) -> Result<Option<Atom>, Problem> {
        for (ends, assertion) in [
            ("[[:<:]]", Assertion::WordStart),
            ("[[:>:]]", Assertion::WordEnd),
        ] {
            if self.accept_word(ends) {
                return Ok(Some(once(Node::Assert(assertion))));
            }
        }
        let start = self.at;
        let Some(next) = self.next() else {
            return Err(self.wrong());
        };
        Ok(Some(match next {
            '(' => return self.group(),
            '[' => {
                let set = self.set(0)?;
                let set = self.folded(set)?;
                repeated(self.set_node(set)?)
            }
            '.' => {
                let dot = match (self.flags.dot_all, self.flags.unix_lines) {
                    (true, _) => Dot::All,
                    (false, true) => Dot::WithinUnixLine,
                    (false, false) => Dot::WithinLine,
                };
                self.dots.push((start, dot));
                repeated(Node::Any(dot))
            }
            '^' | '$' => once(Node::Assert(self.end_of_line(next == '^'))),
            '\\' => return self.escaped(),
            '*' | '+' | '?' | '{' | '}' => return Err(Problem::Rule(start)),
            other => repeated(self.literal(other)?),
        }))
    }

    /// A `^`, or else a `$`.
    fn end_of_line(&mut self, is_start: bool) -> Assertion {
        let Flags {
            lines, unix_lines, ..
        } = self.flags;
        self.needs_backtracking |= lines && !unix_lines;
        match (is_start, lines, unix_lines) {
            (true, false, _) => Assertion::TextStart,
            (true, true, false) => Assertion::LineStart,
            (true, true, true) => Assertion::UnixLineStart,
            (false, false, false) => Assertion::LastLineEnd,
            (false, false, true) => Assertion::LastUnixLineEnd,
            (false, true, false) => Assertion::LineEnd,
            (false, true, true) => Assertion::UnixLineEnd,
        }
    }

    fn literal(&mut self, character: char) -> Result<Node, Problem> {
        let folded = match self.flags.in_any_case {
            true => in_any_case(character),
            false => None,
        };
        match folded {
            Some(all) => self.set_node(all),
            None => Ok(Node::Char(character)),
        }
    }

    fn folded(&self, mut set: ClassUnicode) -> Result<ClassUnicode, Problem> {
        if self.flags.in_any_case {
            set.try_case_fold_simple().map_err(|_| Problem::Argument)?;
        }
        Ok(set)
    }

    /// What follows an open parenthesis.
    fn group(&mut self) -> Result<Option<Atom>, Problem> {
        if !self.accept('?') {
            return self.captured(None).map(Some);
        }
        let look = |node, is_behind, is_negated| {
            once(Node::Look {
                node: Box::new(node),
                is_behind,
                is_negated,
            })
        };
        let next = self.next().ok_or(Problem::Parenthesis)?;
        let atom = match next {
            ':' => repeated(self.grouped()?),
            '>' => {
                self.needs_backtracking = true;
                repeated(Node::Atomic(Box::new(self.grouped()?)))
            }
            '=' | '!' => {
                self.needs_backtracking = true;
                look(self.grouped()?, false, next == '!')
            }
            '<' if matches!(self.peek(), Some('=' | '!')) => {
                self.needs_backtracking = true;
                let is_negated = self.next() == Some('!');
                look(self.grouped()?, true, is_negated)
            }
            '<' if self.peek().is_some_and(|first| first.is_ascii_alphabetic()) => {
                let name = self.name('>')?;
                return self.captured(Some(name)).map(Some);
            }
            // As PCRE writes it.
            'P' if self.accept('<') => {
                let name = self.name('>')?;
                return self.captured(Some(name)).map(Some);
            }
            '(' | '{' => return Err(Problem::Unimplemented),
            'a'..='z' | 'A'..='Z' | '-' => return self.set_flags(next),
            _ => return Err(self.wrong()),
        };
        Ok(Some(atom))
    }

    fn captured(&mut self, name: Option<String>) -> Result<Atom, Problem> {
        if let Some(name) = &name {
            self.take(2 * name.len())?;
            let number = self.groups.len() + 1;
            if self.names.insert(name.clone(), number).is_some() {
                return Err(Problem::GroupName);
            }
        }
        self.take(size_of::<Option<String>>())?;
        self.groups.push(name);
        let number = self.groups.len();
        let node = self.grouped()?;
        Ok(repeated(Node::Group(number, Box::new(node))))
    }

    /// The inside of a group, to its parenthesis. Flags that are set in it end with it.
    fn grouped(&mut self) -> Result<Node, Problem> {
        let flags = self.flags;
        let node = self.choice()?;
        self.flags = flags;
        match self.accept(')') {
            true => Ok(node),
            false => Err(Problem::Parenthesis),
        }
    }

    fn name(&mut self, end: char) -> Result<String, Problem> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some(next) if next == end && !name.is_empty() => return Ok(name),
                Some(next) if next.is_ascii_alphabetic() => name.push(next),
                Some(next) if next.is_ascii_digit() && !name.is_empty() => name.push(next),
                _ => return Err(Problem::GroupName),
            }
        }
    }

    /// Flags, for the rest of the group or for a group of their own.
    fn set_flags(&mut self, first: char) -> Result<Option<Atom>, Problem> {
        let before = self.flags;
        let mut is_on = true;
        let mut next = first;
        loop {
            match next {
                '-' if is_on => is_on = false,
                'i' => self.flags.in_any_case = is_on,
                'm' => self.flags.lines = is_on,
                's' => self.flags.dot_all = is_on,
                'x' => self.flags.comments = is_on,
                'd' => {
                    self.flags.unix_lines = is_on;
                    self.needs_backtracking = true;
                }
                'w' | 'u' => self.needs_backtracking = true,
                ')' => return Ok(None),
                ':' => {
                    let node = self.choice()?;
                    self.flags = before;
                    return match self.accept(')') {
                        true => Ok(Some(repeated(node))),
                        false => Err(Problem::Parenthesis),
                    };
                }
                _ => return Err(self.wrong()),
            }
            next = self.next().ok_or(Problem::Parenthesis)?;
        }
    }

    /// What follows a backslash.
    fn escaped(&mut self) -> Result<Option<Atom>, Problem> {
        let letter = self.next().ok_or(Problem::Escape)?;
        if let Some(set) = of_letter(letter) {
            self.needs_backtracking |= matches!(letter, 'h' | 'H' | 'v' | 'V');
            return Ok(Some(repeated(self.set_node(set)?)));
        }
        let assertion = match letter {
            'A' => Some(Assertion::TextStart),
            'z' => Some(Assertion::TextEnd),
            'Z' => Some(Assertion::LastLineEnd),
            'b' => Some(Assertion::WordBoundary),
            'B' => Some(Assertion::NoWordBoundary),
            'G' => Some(Assertion::SearchStart),
            _ => None,
        };
        if let Some(assertion) = assertion {
            self.needs_backtracking |= matches!(letter, 'Z' | 'G');
            return Ok(Some(once(Node::Assert(assertion))));
        }
        Ok(Some(match letter {
            'p' | 'P' => {
                let set = self.property(letter)?;
                let set = self.folded(set)?;
                repeated(self.set_node(set)?)
            }
            'Q' => {
                self.needs_backtracking = true;
                let mut quoted = Vec::new();
                while !self.accept_word("\\E") {
                    match self.next() {
                        Some(next) => {
                            self.take_node()?;
                            quoted.push(self.literal(next)?);
                        }
                        None => break,
                    }
                }
                match quoted.pop() {
                    None => return Ok(None),
                    // The last character alone is repeated.
                    Some(last) => {
                        self.skip_comments()?;
                        let last = self.repetition(repeated(last))?;
                        quoted.push(last);
                        once(Node::Sequence(quoted))
                    }
                }
            }
            'R' => {
                self.needs_backtracking = true;
                let pair = vec![Node::Char('\r'), Node::Char('\n')];
                let one = of_letter('v').ok_or(Problem::Argument)?;
                let ends = vec![Node::Sequence(pair), self.set_node(one)?];
                repeated(Node::Atomic(Box::new(Node::Choice(ends))))
            }
            // A letter with its marks.
            'X' => {
                self.needs_backtracking = true;
                let marks = written(r"\p{M}").ok_or(Problem::Argument)?;
                let marks = Node::Repeat {
                    node: Box::new(self.set_node(marks)?),
                    least: 0,
                    most: None,
                    kind: Kind::Possessive,
                };
                repeated(Node::Sequence(vec![Node::Any(Dot::All), marks]))
            }
            'k' => {
                if !self.accept('<') {
                    return Err(Problem::GroupName);
                }
                let name = self.name('>')?;
                let group = self.names.get(&name).copied();
                let group = group.ok_or(Problem::GroupName)?;
                repeated(self.back_reference(group))
            }
            '1'..='9' => {
                let mut group = letter as usize - '0' as usize;
                while let Some(digit) = self.peek().and_then(|digit| digit.to_digit(10)) {
                    let longer = group * 10 + digit as usize;
                    if longer > self.groups.len() {
                        break;
                    }
                    self.next();
                    group = longer;
                }
                repeated(self.back_reference(group))
            }
            _ => {
                let character = self.character(letter)?;
                repeated(self.literal(character)?)
            }
        }))
    }

    fn back_reference(&mut self, group: usize) -> Node {
        self.needs_backtracking = true;
        self.most_referred = self.most_referred.max(group);
        Node::BackReference {
            group,
            in_any_case: self.flags.in_any_case,
        }
    }

    /// The character that a backslash and a letter stand for, in a set or outside of one.
    fn character(&mut self, letter: char) -> Result<char, Problem> {
        Ok(match letter {
            'a' => '\u{7}',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => {
                let mut code = 0;
                let mut digits = 0;
                while digits < 3
                    && let Some(digit) = self.peek().and_then(|digit| digit.to_digit(8))
                    && code * 8 + digit < 256
                {
                    self.next();
                    code = code * 8 + digit;
                    digits += 1;
                }
                match digits {
                    0 => return Err(Problem::Escape),
                    _ => char::from_u32(code).ok_or(Problem::Escape)?,
                }
            }
            'c' => {
                let control = self.next().ok_or(Problem::Escape)?;
                char::from_u32(u32::from(control) & 0x1f).ok_or(Problem::Escape)?
            }
            'x' if self.accept('{') => {
                let code = self.hexadecimal(1, 6)?;
                match self.accept('}') {
                    true => code,
                    false => return Err(Problem::Escape),
                }
            }
            'x' => self.hexadecimal(1, 2)?,
            'u' => self.hexadecimal(4, 4)?,
            'U' => self.hexadecimal(8, 8)?,
            other if other.is_ascii_alphanumeric() => return Err(Problem::Escape),
            other => other,
        })
    }

    fn hexadecimal(&mut self, least: usize, most: usize) -> Result<char, Problem> {
        let mut code = 0u32;
        let mut digits = 0;
        while digits < most
            && let Some(digit) = self.peek().and_then(|digit| digit.to_digit(16))
        {
            self.next();
            code = code.saturating_mul(16).saturating_add(digit);
            digits += 1;
        }
        match digits < least {
            true => Err(Problem::Escape),
            false => char::from_u32(code).ok_or(Problem::Escape),
        }
    }

    /// A property behind `\p` or `\P`.
    fn property(&mut self, letter: char) -> Result<ClassUnicode, Problem> {
        let mut name = String::new();
        match self.next() {
            Some('{') => loop {
                match self.next() {
                    Some('}') => break,
                    Some(next) => name.push(next),
                    None => return Err(Problem::Argument),
                }
            },
            Some(single) if single.is_ascii_alphabetic() => name.push(single),
            _ => return Err(Problem::Argument),
        }
        let (name, is_negated) = match name.strip_prefix('^') {
            Some(name) => (name.to_string(), true),
            None => (name, false),
        };
        let set = written(&format!("\\p{{{name}}}")).ok_or(Problem::Argument)?;
        Ok(match is_negated != (letter == 'P') {
            true => negated(set),
            false => set,
        })
    }

    /// A set of characters, behind its open bracket.
    fn set(&mut self, depth: usize) -> Result<ClassUnicode, Problem> {
        if depth > MAX_DEPTH {
            return Err(Problem::TooBig);
        }
        // A name of POSIX with brackets of its own.
        if depth == 0 && self.peek() == Some(':') {
            let rest = &self.pattern[self.at + 1..];
            let rest = rest
                .trim_start_matches(|letter: char| letter.is_ascii_alphabetic() || letter == '^');
            if rest.starts_with(":]") {
                return self.posix();
            }
        }
        let is_negated = self.accept('^');
        let mut all = class(&[]);
        let mut ranges = Vec::new();
        // What the set is cut with, or what is taken out of it: the operation, and what stood in front of it.
        let mut before: Option<(ClassUnicode, bool)> = None;
        let mut is_first = true;
        loop {
            self.take(0)?;
            if ranges.len() >= RANGES_AT_ONCE {
                add_ranges(&mut all, &mut ranges);
            }
            if self.pattern[self.at..].starts_with("&&")
                || self.pattern[self.at..].starts_with("--")
            {
                add_ranges(&mut all, &mut ranges);
                let is_cut = self.next() == Some('&');
                self.next();
                let left = combined(before.take(), std::mem::replace(&mut all, class(&[])));
                before = Some((left, is_cut));
                is_first = false;
                continue;
            }
            let next = self.next().ok_or(Problem::Bracket)?;
            match next {
                ']' if !is_first => break,
                '[' if self.peek() == Some(':') => all.union(&self.posix()?),
                '[' => all.union(&self.set(depth + 1)?),
                '\\' => {
                    let letter = self.peek().ok_or(Problem::Escape)?;
                    if let Some(set) = of_letter(letter) {
                        self.next();
                        self.needs_backtracking |= matches!(letter, 'h' | 'H' | 'v' | 'V');
                        all.union(&set);
                    } else if matches!(letter, 'p' | 'P') {
                        self.next();
                        all.union(&self.property(letter)?);
                    } else {
                        let first = self.character_of_set(next)?;
                        ranges.push(self.range(first)?);
                    }
                }
                other => {
                    let first = self.character_of_set(other)?;
                    ranges.push(self.range(first)?);
                }
            }
            is_first = false;
        }
        add_ranges(&mut all, &mut ranges);
        let all = combined(before, all);
        // What is left out is left out in any case.
        let all = self.folded(all)?;
        Ok(match is_negated {
            true => negated(all),
            false => all,
        })
    }

    /// A name of POSIX, behind the bracket in front of its colon.
    fn posix(&mut self) -> Result<ClassUnicode, Problem> {
        self.next();
        let is_negated = self.accept('^');
        let mut name = String::new();
        loop {
            match self.next() {
                Some(':') => break,
                Some(next) if next.is_ascii_alphanumeric() || matches!(next, '_' | '=' | ' ') => {
                    name.push(next);
                }
                Some(_) => return Err(Problem::Argument),
                None => return Err(Problem::Bracket),
            }
        }
        if !self.accept(']') {
            return Err(Problem::Bracket);
        }
        let set = of_posix(&name).ok_or(Problem::Argument)?;
        Ok(match is_negated {
            true => negated(set),
            false => set,
        })
    }

    fn character_of_set(&mut self, first: char) -> Result<char, Problem> {
        match first {
            '\\' => {
                let letter = self.next().ok_or(Problem::Escape)?;
                match letter {
                    'b' => Ok('\u{8}'),
                    letter => self.character(letter),
                }
            }
            other => Ok(other),
        }
    }

    /// A character of a set, and those up to another one.
    fn range(&mut self, first: char) -> Result<(char, char), Problem> {
        let rest = &self.pattern[self.at..];
        let is_range = rest.starts_with('-')
            && !rest.starts_with("--")
            && !rest.starts_with("-]")
            && !rest.starts_with("-[");
        let mut last = first;
        if is_range {
            self.next();
            let next = self.next().ok_or(Problem::Bracket)?;
            let is_class = next == '\\'
                && self.peek().is_some_and(|letter| {
                    matches!(letter, 'p' | 'P') || of_letter(letter).is_some()
                });
            if is_class {
                return Err(Problem::Argument);
            }
            last = self.character_of_set(next)?;
        }
        if last < first {
            return Err(Problem::Range);
        }
        Ok((first, last))
    }
}

fn add_ranges(all: &mut ClassUnicode, ranges: &mut Vec<(char, char)>) {
    all.union(&class(ranges));
    ranges.clear();
}

/// What stood in front of an operation, and what stands behind it.
fn combined(before: Option<(ClassUnicode, bool)>, behind: ClassUnicode) -> ClassUnicode {
    match before {
        None => behind,
        Some((mut left, true)) => {
            left.intersect(&behind);
            left
        }
        Some((mut left, false)) => {
            left.difference(&behind);
            left
        }
    }
}
