//! Digests: what statements are that differ in their literals only.
//!
//! ```text
//!   select c from t where id in (1, 2) and b = 'x'     /* page 7 */
//!   SELECT `c` FROM `t` WHERE `id` IN (...) AND `b` = ?
//! ```
//!
//! The text is the one that MySQL makes, its oddities included, so that what is known of a digest on one server is
//! found on the other. MySQL reduces tokens while it reads them, and so does this: a literal is `?`, literals between
//! commas are a list of any length, and lists between commas are a list of rows.
//!
//! ```text
//!   (1, 2), (3, 4)      ( ?        ( ?, ...        (...)        (...) , ( ?      (...) /* , ... */
//! ```
//!
//! No more tokens are kept than fit into `max_digest_length` bytes, as MySQL counts them. So the work for a digest has
//! a limit, but for lists, which are read to their end. The hash is SHA-256 of the text. MySQL takes it of numbers that
//! its own grammar gives to tokens, and which differ from version to version.
//!
//! Reference: MySQL manual, "Performance Schema Statement Digests and Sampling".

mod function;
mod keywords;
mod sample;
mod tokens;

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};
use sheaf_types::text::hexadecimal::push_small_digits;

pub(crate) use self::function::digest_function;
pub use self::sample::with_parameters;
pub use self::tokens::Reading;
use self::tokens::{Token, Tokens};
use crate::parser::scan::resolve_executable_comments;

/// A statement without its literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    pub text: String,
}

impl Digest {
    /// Of one statement. `max_bytes`: see the module's comment.
    pub fn of(statement: &str, reading: Reading, max_bytes: usize) -> Digest {
        /// Items of most statements.
        const USUAL_ITEMS: usize = 64;
        let resolved = resolve_executable_comments(statement);
        let mut reduction = Reduction {
            items: Vec::with_capacity(USUAL_ITEMS),
            bytes: 0,
            max_bytes,
            is_full: false,
            lists: vec![false],
        };
        let mut tokens = Tokens::new(&resolved, reading).peekable();
        while let Some(token) = tokens.next() {
            reduction.add(token, tokens.peek());
            if reduction.is_full {
                break;
            }
        }
        Digest {
            text: reduction.text(),
        }
    }

    /// Of `PREPARE name FROM statement` and of EXECUTE: what the statement is, behind what is done to it.
    pub fn behind(&self, verb: &str) -> Digest {
        Digest {
            text: format!("{verb} {}", self.text),
        }
    }

    /// The hash in hexadecimal digits. It is made where it is shown: that takes as long as reading the statement.
    pub fn hex(&self) -> String {
        hex(&Sha256::digest(self.text.as_bytes()).into())
    }
}

/// A hash in hexadecimal digits.
pub fn hex(hash: &[u8; 32]) -> String {
    let mut digits = String::with_capacity(2 * hash.len());
    push_small_digits(&mut digits, hash);
    digits
}

/// What tokens have been reduced to.
enum Item<'t> {
    Word(&'static str),
    Name(Cow<'t, str>),
    NameInBlock(Cow<'t, str>),
    /// The number of a column in ORDER BY or GROUP BY.
    Column(&'t str),
    Value,
    Values,
    /// Rows of one value, and rows of several: one of them, or a list.
    Row,
    Rows,
    WideRow,
    WideRows,
    /// What stands behind IN.
    InList,
}

impl Item<'_> {
    /// As MySQL counts them against `max_digest_length`.
    fn bytes(&self) -> usize {
        const TOKEN_BYTES: usize = 2;
        match self {
            Item::Name(name) | Item::NameInBlock(name) => 2 * TOKEN_BYTES + name.len(),
            Item::Column(number) => 2 * TOKEN_BYTES + number.len(),
            _ => TOKEN_BYTES,
        }
    }
}

/// The items so far.
struct Reduction<'t> {
    items: Vec<Item<'t>>,
    bytes: usize,
    max_bytes: usize,
    is_full: bool,
    /// For each parenthesis that is open, whether it is in a list of ORDER BY, GROUP BY or PARTITION BY.
    lists: Vec<bool>,
}

impl<'t> Reduction<'t> {
    fn push(&mut self, item: Item<'t>) {
        let bytes = item.bytes();
        match self.bytes + bytes <= self.max_bytes {
            true => {
                self.bytes += bytes;
                self.items.push(item);
            }
            false => self.is_full = true,
        }
    }

    fn pop(&mut self, count: usize) {
        for item in self.items.drain(self.items.len() - count..) {
            self.bytes -= item.bytes();
        }
    }

    /// The word that stands so far from the end, from 0.
    fn word(&self, from_end: usize) -> Option<&'static str> {
        match self.items.iter().nth_back(from_end) {
            Some(Item::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn add(&mut self, token: Token<'t>, next: Option<&Token<'t>>) {
        match token {
            Token::Word(")") => self.close(),
            Token::Word(word) => {
                self.note_word(word);
                self.push(Item::Word(word));
            }
            Token::Name(name) => self.push(Item::Name(name)),
            Token::NameInBlock(name) => self.push(Item::NameInBlock(name)),
            Token::Number(text) if self.is_column(text, next) => self.push(Item::Column(text)),
            Token::Number(_) => {
                while matches!(self.word(0), Some("+" | "-"))
                    && self.word(1).is_some_and(begins_expression)
                {
                    self.pop(1);
                }
                self.value();
            }
            Token::Literal => self.value(),
            Token::Null if self.expects_literal() => self.value(),
            Token::Null => self.push(Item::Word("NULL")),
        }
    }

    /// Whether NULL is a value here. Elsewhere it is a part of a definition, or of IS NULL.
    fn expects_literal(&self) -> bool {
        let before = match self.word(0) {
            Some("NOT") => self.word(1),
            before => before,
        };
        before.is_some_and(precedes_literal)
    }

    fn note_word(&mut self, word: &'static str) {
        match word {
            "(" => self.lists.push(false),
            "BY" => {
                let is_list = matches!(self.word(0), Some("ORDER" | "GROUP" | "PARTITION"));
                self.set_list(is_list);
            }
            "LIMIT" | "HAVING" | "SEPARATOR" | "UNION" | "SELECT" | "ROWS" | "RANGE" | "FOR"
            | "INTO" | "WINDOW" => self.set_list(false),
            _ => {}
        }
    }

    fn set_list(&mut self, is_list: bool) {
        if let Some(last) = self.lists.last_mut() {
            *last = is_list;
        }
    }

    /// Whether a number is all that stands in a place of such a list.
    fn is_column(&self, number: &str, next: Option<&Token<'t>>) -> bool {
        let is_whole = number.bytes().all(|byte| byte.is_ascii_digit());
        // Columns are counted from 1.
        let is_some = number.bytes().any(|byte| byte != b'0');
        let is_in_list = self.lists.last().is_some_and(|is_list| *is_list);
        if !(is_whole && is_some && is_in_list) {
            return false;
        }
        let is_first = match self.word(0) {
            Some("BY") => true,
            // Behind a literal it joins a list of literals before anything else is known of it.
            Some(",") => {
                let before = self.items.iter().nth_back(1);
                !matches!(before, Some(Item::Value | Item::Values))
            }
            _ => false,
        };
        let ends = match next {
            None => true,
            Some(Token::Word(word)) => !is_operator(word),
            Some(_) => false,
        };
        is_first && ends
    }

    fn value(&mut self) {
        let is_behind_value = self.word(0) == Some(",")
            && matches!(
                self.items.iter().nth_back(1),
                Some(Item::Value | Item::Values)
            );
        if is_behind_value {
            self.pop(2);
            self.push(Item::Values);
        } else {
            self.push(Item::Value);
        }
    }

    /// A parenthesis ends.
    fn close(&mut self) {
        if self.lists.len() > 1 {
            self.lists.pop();
        }
        let is_single = match self.items.last() {
            Some(Item::Value) => true,
            Some(Item::Values) => false,
            _ => return self.push(Item::Word(")")),
        };
        if self.word(1) != Some("(") {
            return self.push(Item::Word(")"));
        }
        self.pop(2);
        if self.word(0) == Some("IN") {
            return self.push(Item::InList);
        }
        let before = match self.word(0) {
            Some(",") => self.items.iter().nth_back(1),
            _ => None,
        };
        let (item, is_list) = match (is_single, before) {
            (true, Some(Item::Row | Item::Rows)) => (Item::Rows, true),
            (true, _) => (Item::Row, false),
            (false, Some(Item::WideRow | Item::WideRows)) => (Item::WideRows, true),
            (false, _) => (Item::WideRow, false),
        };
        if is_list {
            self.pop(2);
        }
        self.push(item);
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(2 * self.bytes);
        let mut is_parted = false;
        for item in &self.items {
            if is_parted {
                text.push(' ');
            }
            is_parted = true;
            match item {
                Item::Word(word) => {
                    text.push_str(word);
                    is_parted = !matches!(*word, "@" | "@@");
                }
                Item::Name(name) => text.extend(["`", name, "`"]),
                Item::NameInBlock(name) => {
                    text.extend(["`", name, "`@"]);
                    is_parted = false;
                }
                Item::Column(number) => text.push_str(number),
                Item::Value => text.push('?'),
                Item::Values => text.push_str("?, ..."),
                Item::Row => text.push_str("(?)"),
                Item::Rows => text.push_str("(?) /* , ... */"),
                Item::WideRow | Item::InList => text.push_str("(...)"),
                Item::WideRows => text.push_str("(...) /* , ... */"),
            }
        }
        text
    }
}

/// Words behind which a sign belongs to the number that follows it.
fn begins_expression(word: &str) -> bool {
    const WORDS: [&str; 27] = [
        "AND", "AT", "BETWEEN", "CASE", "DEFAULT", "DIV", "ELSE", "ELSEIF", "ENDS", "EVERY", "IF",
        "INTERVAL", "LIKE", "MOD", "NOT", "OR", "RETURN", "RLIKE", "SELECT", "STARTS", "THEN",
        "UNTIL", "WHEN", "WHILE", "XOR", "||", "&&",
    ];
    const SYMBOLS: [&str; 20] = [
        "(", ",", "|", "&", "<<", ">>", "+", "-", "*", "/", "%", "^", "=", "<=>", ">=", ">", "<=",
        "<", "!=", "->",
    ];
    WORDS.contains(&word) || SYMBOLS.contains(&word)
}

/// Words behind which NULL is a value.
fn precedes_literal(word: &str) -> bool {
    const WORDS: [&str; 17] = [
        "ALL",
        "BY",
        "CONDITION",
        "DISTINCTROW",
        "HAVING",
        "ON",
        "ESCAPE",
        "WHERE",
        "IN",
        "SELECT",
        "VALUES",
        "RETURN",
        ":=",
        "!",
        "~",
        "LIMIT",
        "USING",
    ];
    begins_expression(word) || WORDS.contains(&word)
}

/// Words that go on with an expression.
fn is_operator(word: &str) -> bool {
    const WORDS: [&str; 13] = [
        "AND", "BETWEEN", "COLLATE", "DIV", "IN", "IS", "LIKE", "MEMBER", "MOD", "NOT", "OR",
        "RLIKE", "XOR",
    ];
    let is_symbol = word.bytes().all(|byte| byte.is_ascii_punctuation());
    WORDS.contains(&word) || is_symbol && !matches!(word, "," | ")")
}

#[cfg(test)]
mod tests;
