//! An XPath from its text: MySQL's subset of XPath 1.0.
//!
//! | there is | |
//! |---|---|
//! | axes up | ancestor, ancestor-or-self, parent |
//! | axes down | attribute, child, descendant, descendant-or-self, self; others are child |
//! | functions of numbers | ceiling, count, floor, number, round, sum |
//! | functions of texts | concat, contains, string-length, substring |
//! | other functions | boolean, false, last, not, position, true |
//! | operators | `or and = != < <= > >= + - * div mod \|` |

use std::ops::Range;

/// The deepest nesting of an expression.
const MAX_DEPTH: usize = 100;
/// As much of a path as an error shows.
const SHOWN: usize = 32;

/// What is wrong with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongPath {
    /// With what stands there.
    Syntax(String),
    /// A comparison of two sets of nodes.
    TwoSets(String),
    /// `$name`, of which there are none outside of stored programs.
    Unknown(String),
    /// `$@name`: not supported.
    Variable,
    TooDeep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Ancestor { or_self: bool },
    Attribute,
    Child,
    Descendant { or_self: bool },
    Parent,
    Own,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    False,
    Floor,
    Last,
    Not,
    Number,
    Position,
    Round,
    StringLength,
    Substring,
    Sum,
    True,
}

/// By its name, the fewest and the most arguments.
const FUNCTIONS: [(&str, Function, usize, usize); 16] = [
    ("boolean", Function::Boolean, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("concat", Function::Concat, 2, 255),
    ("contains", Function::Contains, 2, 2),
    ("count", Function::Count, 1, 1),
    ("false", Function::False, 0, 0),
    ("floor", Function::Floor, 1, 1),
    ("last", Function::Last, 0, 0),
    ("not", Function::Not, 1, 1),
    ("number", Function::Number, 0, 1),
    ("position", Function::Position, 0, 0),
    ("round", Function::Round, 1, 1),
    ("string-length", Function::StringLength, 0, 1),
    ("substring", Function::Substring, 2, 3),
    ("sum", Function::Sum, 1, 1),
    ("true", Function::True, 0, 0),
];

const NODE_TYPES: [&str; 4] = ["comment", "text", "processing-instruction", "node"];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Root,
    /// The node that a predicate is about.
    Context,
    Step {
        from: Box<Expression>,
        axis: Axis,
        /// `*` is any.
        name: String,
    },
    Filter {
        from: Box<Expression>,
        predicate: Box<Expression>,
    },
    Union(Box<Expression>, Box<Expression>),
    Compare(Comparison, Box<Expression>, Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Compute(Operator, Box<Expression>, Box<Expression>),
    Negate(Box<Expression>),
    Integer(i64),
    Double(f64),
    Text(String),
    Call(Function, Vec<Expression>),
}

impl Expression {
    /// Whether it is a set of nodes.
    pub(super) fn is_set(&self) -> bool {
        matches!(
            self,
            Expression::Root
                | Expression::Context
                | Expression::Step { .. }
                | Expression::Filter { .. }
                | Expression::Union(..)
        )
    }

    /// Whether it is true or false.
    pub(super) fn is_boolean(&self) -> bool {
        match self {
            Expression::Compare(..) | Expression::And(..) | Expression::Or(..) => true,
            Expression::Call(function, _) => matches!(
                function,
                Function::Boolean
                    | Function::Contains
                    | Function::False
                    | Function::Not
                    | Function::True
            ),
            _ => false,
        }
    }
}

/// A path that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Path(pub(super) Expression);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lexeme {
    End,
    Sign(u8),
    Digits,
    /// With its quotes.
    Text,
    Name,
    Axis(Axis),
    Function(usize),
    NodeType,
    Wrong,
}

struct Parser<'t> {
    text: &'t str,
    lexeme: Lexeme,
    place: Range<usize>,
    /// What paths begin at: the root, or in a predicate the node that it is about.
    context: Expression,
    has_context: bool,
    depth: usize,
}

type Parsed<T> = Result<T, WrongPath>;

impl Path {
    /// # Errors
    /// A mistake in the path, or what is not supported.
    pub fn parse(text: &str) -> Parsed<Path> {
        let mut parser = Parser {
            text,
            lexeme: Lexeme::End,
            place: 0..0,
            context: Expression::Root,
            has_context: false,
            depth: 0,
        };
        parser.advance();
        let expression = parser.or()?;
        match parser.lexeme {
            Lexeme::End => Ok(Path(expression)),
            _ => Err(parser.wrong()),
        }
    }
}

impl Parser<'_> {
    fn wrong(&self) -> WrongPath {
        WrongPath::Syntax(shown(&self.text[self.place.start..]))
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Reads what comes next.
    fn advance(&mut self) {
        let mut start = self.place.end;
        while self.byte(start) == Some(b' ') {
            start += 1;
        }
        let begins = |character: char| character.is_alphabetic() || character == '_';
        let continues =
            |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            (self.lexeme, self.place) = (Lexeme::End, start..start);
            return;
        };
        let (lexeme, length) = if begins(first) {
            let length = rest
                .find(|next: char| !continues(next))
                .unwrap_or(rest.len());
            (named(&rest[..length], &rest[length..]), length)
        } else if first.is_ascii_digit() {
            let length = rest.find(|next: char| !next.is_ascii_digit());
            (Lexeme::Digits, length.unwrap_or(rest.len()))
        } else if matches!(first, '"' | '\'') {
            match rest[1..].find(first) {
                Some(end) => (Lexeme::Text, end + 2),
                None => (Lexeme::Wrong, rest.len()),
            }
        } else if "!$()*+,-./:<=>@[]|".contains(first) {
            (Lexeme::Sign(first as u8), 1)
        } else {
            (Lexeme::Wrong, first.len_utf8())
        };
        (self.lexeme, self.place) = (lexeme, start..start + length);
    }

    fn accept(&mut self, sign: u8) -> bool {
        let is_there = self.lexeme == Lexeme::Sign(sign);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn expect(&mut self, sign: u8) -> Parsed<()> {
        match self.accept(sign) {
            true => Ok(()),
            false => Err(self.wrong()),
        }
    }

    /// An operator that is a word.
    fn accept_word(&mut self, word: &str) -> bool {
        let is_there = self.lexeme == Lexeme::Name && &self.text[self.place.clone()] == word;
        if is_there {
            self.advance();
        }
        is_there
    }

    fn or(&mut self) -> Parsed<Expression> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(WrongPath::TooDeep);
        }
        let mut left = self.and()?;
        while self.accept_word("or") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Parsed<Expression> {
        let mut left = self.equality()?;
        while self.accept_word("and") {
            left = Expression::And(Box::new(left), Box::new(self.equality()?));
        }
        Ok(left)
    }

    fn compared(
        &self,
        comparison: Comparison,
        (left, right): (Expression, Expression),
        start: usize,
    ) -> Parsed<Expression> {
        match left.is_set() && right.is_set() {
            true => Err(WrongPath::TwoSets(shown(&self.text[start..]))),
            false => Ok(Expression::Compare(
                comparison,
                Box::new(left),
                Box::new(right),
            )),
        }
    }

    fn equality(&mut self) -> Parsed<Expression> {
        let mut left = self.relation()?;
        loop {
            let start = self.place.start;
            let comparison = if self.accept(b'=') {
                Comparison::Equal
            } else if self.lexeme == Lexeme::Sign(b'!') {
                let wrong = self.wrong();
                self.advance();
                match self.accept(b'=') {
                    true => Comparison::Unequal,
                    false => return Err(wrong),
                }
            } else {
                return Ok(left);
            };
            let right = self.relation()?;
            left = self.compared(comparison, (left, right), start)?;
        }
    }

    fn relation(&mut self) -> Parsed<Expression> {
        let mut left = self.sum()?;
        loop {
            let start = self.place.start;
            let comparison = if self.accept(b'<') {
                match self.accept(b'=') {
                    true => Comparison::LessOrEqual,
                    false => Comparison::Less,
                }
            } else if self.accept(b'>') {
                match self.accept(b'=') {
                    true => Comparison::GreaterOrEqual,
                    false => Comparison::Greater,
                }
            } else {
                return Ok(left);
            };
            let right = self.sum()?;
            left = self.compared(comparison, (left, right), start)?;
        }
    }

    fn sum(&mut self) -> Parsed<Expression> {
        let mut left = self.product()?;
        loop {
            let operator = if self.accept(b'+') {
                Operator::Add
            } else if self.accept(b'-') {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            left = Expression::Compute(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Parsed<Expression> {
        let mut left = self.signed()?;
        loop {
            let operator = if self.accept(b'*') {
                Operator::Multiply
            } else if self.accept_word("div") {
                Operator::Divide
            } else if self.accept_word("mod") {
                Operator::Modulo
            } else {
                return Ok(left);
            };
            left = Expression::Compute(operator, Box::new(left), Box::new(self.signed()?));
        }
    }

    fn signed(&mut self) -> Parsed<Expression> {
        let mut is_negative = false;
        let mut signs = 0;
        while self.accept(b'-') {
            is_negative = !is_negative;
            signs += 1;
        }
        let value = self.union()?;
        Ok(match (is_negative, signs) {
            (_, 0) => value,
            (true, _) => Expression::Negate(Box::new(value)),
            (false, _) => Expression::Negate(Box::new(Expression::Negate(Box::new(value)))),
        })
    }

    fn union(&mut self) -> Parsed<Expression> {
        let mut left = self.path()?;
        while self.lexeme == Lexeme::Sign(b'|') {
            if !left.is_set() {
                return Err(self.wrong());
            }
            self.advance();
            let right = self.path()?;
            if !right.is_set() {
                return Err(self.wrong());
            }
            left = Expression::Union(Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn path(&mut self) -> Parsed<Expression> {
        if self.accept(b'/') {
            if self.accept(b'/') {
                return self.steps(descendants(Expression::Root));
            }
            return match self.begins_step() {
                true => self.steps(Expression::Root),
                false => Ok(Expression::Root),
            };
        }
        if self.begins_step() {
            let context = self.context.clone();
            return self.steps(context);
        }
        let mut primary = self.primary()?;
        while self.lexeme == Lexeme::Sign(b'[') {
            primary = self.predicate(primary)?;
        }
        if self.lexeme != Lexeme::Sign(b'/') {
            return Ok(primary);
        }
        if !primary.is_set() {
            return Err(self.wrong());
        }
        self.advance();
        let from = match self.accept(b'/') {
            true => descendants(primary),
            false => primary,
        };
        self.steps(from)
    }

    fn begins_step(&self) -> bool {
        matches!(
            self.lexeme,
            Lexeme::Sign(b'.' | b'@' | b'*') | Lexeme::Name | Lexeme::Axis(_) | Lexeme::NodeType
        )
    }

    fn steps(&mut self, from: Expression) -> Parsed<Expression> {
        let mut at = self.step(from)?;
        while self.accept(b'/') {
            if self.accept(b'/') {
                at = descendants(at);
            }
            if !self.begins_step() {
                return Err(self.wrong());
            }
            at = self.step(at)?;
        }
        Ok(at)
    }

    fn step(&mut self, from: Expression) -> Parsed<Expression> {
        if self.accept(b'.') {
            return Ok(match self.accept(b'.') {
                true => Expression::Step {
                    from: Box::new(from),
                    axis: Axis::Parent,
                    name: "*".to_string(),
                },
                false => from,
            });
        }
        let axis = match self.lexeme {
            Lexeme::Axis(axis) => {
                self.advance();
                self.expect(b':')?;
                self.expect(b':')?;
                axis
            }
            Lexeme::Sign(b'@') => {
                self.advance();
                Axis::Attribute
            }
            _ => Axis::Child,
        };
        let mut at = if self.lexeme == Lexeme::NodeType {
            self.advance();
            self.expect(b'(')?;
            self.expect(b')')?;
            from
        } else {
            Expression::Step {
                from: Box::new(from),
                axis,
                name: self.name()?,
            }
        };
        while self.lexeme == Lexeme::Sign(b'[') {
            at = self.predicate(at)?;
        }
        Ok(at)
    }

    /// `*`, a name, or one with that of its space in front.
    fn name(&mut self) -> Parsed<String> {
        if self.accept(b'*') {
            return Ok("*".to_string());
        }
        let start = self.place.start;
        if self.lexeme != Lexeme::Name {
            return Err(self.wrong());
        }
        let mut end = self.place.end;
        self.advance();
        if self.lexeme == Lexeme::Sign(b':') && self.place.start == end {
            self.advance();
            if self.lexeme != Lexeme::Name {
                return Err(self.wrong());
            }
            end = self.place.end;
            self.advance();
        }
        Ok(self.text[start..end].to_string())
    }

    fn predicate(&mut self, from: Expression) -> Parsed<Expression> {
        self.expect(b'[')?;
        let context = std::mem::replace(&mut self.context, Expression::Context);
        let has_context = std::mem::replace(&mut self.has_context, true);
        let predicate = self.or()?;
        self.context = context;
        self.has_context = has_context;
        self.expect(b']')?;
        Ok(Expression::Filter {
            from: Box::new(from),
            predicate: Box::new(predicate),
        })
    }

    fn primary(&mut self) -> Parsed<Expression> {
        match self.lexeme {
            Lexeme::Sign(b'$') if self.byte(self.place.end) == Some(b'@') => {
                Err(WrongPath::Variable)
            }
            Lexeme::Sign(b'$') => Err(WrongPath::Unknown(shown(&self.text[self.place.start..]))),
            Lexeme::Sign(b'(') => {
                self.advance();
                let inner = self.or()?;
                self.expect(b')')?;
                Ok(inner)
            }
            Lexeme::Text => {
                let text = self.text[self.place.start + 1..self.place.end - 1].to_string();
                self.advance();
                Ok(Expression::Text(text))
            }
            Lexeme::Digits => Ok(self.number()),
            Lexeme::Function(number) => self.call(number),
            _ => Err(self.wrong()),
        }
    }

    fn number(&mut self) -> Expression {
        let start = self.place.start;
        let mut end = self.place.end;
        self.advance();
        if !self.accept(b'.') {
            let digits = &self.text[start..end];
            return match digits.parse() {
                Ok(number) => Expression::Integer(number),
                Err(_) => Expression::Double(digits.parse().unwrap_or(f64::MAX)),
            };
        }
        end += 1;
        if self.lexeme == Lexeme::Digits {
            end = self.place.end;
            self.advance();
        }
        Expression::Double(self.text[start..end].parse().unwrap_or(0.0))
    }

    fn call(&mut self, number: usize) -> Parsed<Expression> {
        let (_, function, fewest, most) = FUNCTIONS[number];
        self.advance();
        self.expect(b'(')?;
        let mut arguments = Vec::new();
        if self.lexeme != Lexeme::Sign(b')') {
            loop {
                if arguments.len() == most {
                    return Err(self.wrong());
                }
                arguments.push(self.or()?);
                if !self.accept(b',') {
                    break;
                }
            }
        }
        if arguments.len() < fewest {
            return Err(self.wrong());
        }
        self.expect(b')')?;
        let is_of_context = match function {
            Function::Last | Function::Position => true,
            Function::Number | Function::StringLength => arguments.is_empty(),
            _ => false,
        };
        let takes_set = matches!(function, Function::Count | Function::Sum);
        let is_set = arguments.first().is_some_and(Expression::is_set);
        match is_of_context && !self.has_context || takes_set && !is_set {
            true => Err(self.wrong()),
            false => Ok(Expression::Call(function, arguments)),
        }
    }
}

/// A word, by what stands behind it.
fn named(word: &str, behind: &str) -> Lexeme {
    if behind.starts_with('(') {
        let function = FUNCTIONS.iter().position(|(name, ..)| *name == word);
        return match function {
            Some(number) => Lexeme::Function(number),
            None if NODE_TYPES.contains(&word) => Lexeme::NodeType,
            None => Lexeme::Name,
        };
    }
    if !behind.starts_with("::") {
        return Lexeme::Name;
    }
    Lexeme::Axis(match word {
        "ancestor" => Axis::Ancestor { or_self: false },
        "ancestor-or-self" => Axis::Ancestor { or_self: true },
        "attribute" => Axis::Attribute,
        "descendant" => Axis::Descendant { or_self: false },
        "descendant-or-self" => Axis::Descendant { or_self: true },
        "parent" => Axis::Parent,
        "self" => Axis::Own,
        "child" | "following" | "following-sibling" | "namespace" | "preceding"
        | "preceding-sibling" => Axis::Child,
        _ => return Lexeme::Name,
    })
}

/// `//`: a node and all elements below it.
fn descendants(from: Expression) -> Expression {
    Expression::Step {
        from: Box::new(from),
        axis: Axis::Descendant { or_self: true },
        name: "*".to_string(),
    }
}

fn shown(rest: &str) -> String {
    let mut end = rest.len().min(SHOWN);
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    rest[..end].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MySQL 9.7's answers.
    #[test]
    fn mistakes_are_shown_with_what_stands_there() {
        for (text, expected) in [
            ("//b!", "!"),
            ("/e/", ""),
            ("1/a", "/a"),
            ("position()", ""),
        ] {
            let wrong = Path::parse(text).unwrap_err();
            if text != "position()" {
                assert_eq!(wrong, WrongPath::Syntax(expected.to_string()), "{text}");
            }
        }
        let compared = Path::parse("/a[b=c]").unwrap_err();
        assert!(matches!(compared, WrongPath::TwoSets(_)));
        let compared = Path::parse("/<a>").unwrap_err();
        assert_eq!(compared, WrongPath::TwoSets("<a>".to_string()));
        assert_eq!(Path::parse("/a[$@x]").unwrap_err(), WrongPath::Variable);
        let deep = "(".repeat(1000) + "1" + &")".repeat(1000);
        assert_eq!(Path::parse(&deep).unwrap_err(), WrongPath::TooDeep);
    }
}
