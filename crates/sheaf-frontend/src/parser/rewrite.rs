//! Query rewrite rules: a statement that matches a pattern is replaced before it is parsed, as by MySQL's rewriter
//! plugin.
//!
//! ```text
//!   pattern       SELECT * FROM t WHERE a = ? AND b = 1
//!   replacement   SELECT * FROM t FORCE INDEX (a) WHERE a = ? AND b = 1
//!
//!   SELECT * FROM t WHERE a=7 and b=1   ->   SELECT * FROM t FORCE INDEX (a) WHERE a = 7 AND b = 1
//! ```
//!
//! Statement and pattern are compared token by token. White space, comments and the case of words do not matter. A `?`
//! of the pattern stands for any literal (or for a `?` of a prepared statement), and every other literal for itself.
//! The rules are found by the statement's digest, its tokens without its literals. So a statement is cut into tokens
//! once, however many rules there are.

use std::collections::BTreeMap;
use std::ops::Range;

use sqlparser::tokenizer::{Token, Tokenizer};

use super::{Parameters, parse_with_parameters};
use crate::dialect::SheafDialect;

/// The most rules that are in force; MySQL's plugin has no limit but its table.
pub const MAX_RULES: usize = 1_000;
/// Statements longer than this match no rule: a pattern has at most 5,000 characters, the rest would be literals.
const MAX_STATEMENT_BYTES: usize = 256 << 10;
/// What a statement that is rewritten may begin with.
const VERBS: [&str; 6] = ["select", "with", "insert", "replace", "update", "delete"];

/// A statement's tokens without its literals, and where the literals are.
struct Digest {
    text: String,
    literals: Vec<Literal>,
}

struct Literal {
    token: Token,
    /// Bytes of the statement.
    range: Range<usize>,
}

impl Digest {
    /// `None` if the text cannot be cut into tokens, or is no statement that is rewritten.
    fn of(statement: &str, dialect: &SheafDialect) -> Option<Digest> {
        let first = statement.trim_start();
        let begins = |verb: &&str| {
            first
                .get(..verb.len())
                .is_some_and(|word| word.eq_ignore_ascii_case(verb))
        };
        if statement.len() > MAX_STATEMENT_BYTES || !VERBS.iter().any(begins) {
            return None;
        }
        let tokens = Tokenizer::new(dialect, statement)
            .tokenize_with_location()
            .ok()?;
        let mut digest = Digest {
            text: String::new(),
            literals: Vec::new(),
        };
        let mut places = Places::new(statement);
        for token in tokens {
            let word = match token.token {
                Token::Whitespace(_) | Token::EOF | Token::SemiColon => continue,
                Token::Word(word) => word.value.to_lowercase(),
                literal if is_literal(&literal) => {
                    let start = places.byte_at(token.span.start.line, token.span.start.column);
                    let end = places.byte_at(token.span.end.line, token.span.end.column);
                    digest.literals.push(Literal {
                        token: literal,
                        range: start..end,
                    });
                    "?".to_string()
                }
                other => other.to_string(),
            };
            digest.text.push_str(&word);
            digest.text.push(' ');
        }
        Some(digest)
    }
}

fn is_literal(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
    )
}

fn is_placeholder(token: &Token) -> bool {
    matches!(token, Token::Placeholder(_))
}

/// From lines and columns, which ascend, to bytes.
struct Places<'a> {
    rest: std::str::CharIndices<'a>,
    line: u64,
    column: u64,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Places<'a> {
        Places {
            rest: text.char_indices(),
            line: 1,
            column: 1,
        }
    }

    fn byte_at(&mut self, line: u64, column: u64) -> usize {
        while (self.line, self.column) < (line, column) {
            match self.rest.next() {
                Some((_, '\n')) => (self.line, self.column) = (self.line + 1, 1),
                Some(_) => self.column += 1,
                None => break,
            }
        }
        self.rest.offset()
    }
}

/// One rule.
struct Rule {
    /// The current database must be this one.
    database: Option<String>,
    /// For each literal of the pattern the one that it must be; `None` for `?`.
    literals: Vec<Option<Token>>,
    /// The replacement between its `?`.
    pieces: Vec<String>,
}

/// The rules that are in force.
#[derive(Default)]
pub struct RewriteRules {
    by_digest: BTreeMap<String, Vec<Rule>>,
    count: usize,
}

impl RewriteRules {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a rule for statements with this current database, or with any.
    ///
    /// # Errors
    /// What is wrong with the rule, as MySQL's plugin writes it to the rule's `message`.
    pub fn add(
        &mut self,
        pattern: &str,
        database: Option<&str>,
        replacement: &str,
        dialect: &SheafDialect,
    ) -> Result<(), String> {
        if self.count >= MAX_RULES {
            return Err(format!("There are more than {MAX_RULES} rules."));
        }
        for (what, text) in [("pattern", pattern), ("replacement", replacement)] {
            parse_with_parameters(text, dialect, Parameters::Unknown)
                .map_err(|error| format!("Parse error in {what}: >>{}<<", error.message))?;
        }
        let wrong = |what: &str| {
            format!("The {what} is not a SELECT, INSERT, REPLACE, UPDATE or DELETE statement.")
        };
        let digest = Digest::of(pattern, dialect).ok_or_else(|| wrong("pattern"))?;
        let replaced = Digest::of(replacement, dialect).ok_or_else(|| wrong("replacement"))?;
        let literals: Vec<Option<Token>> = digest
            .literals
            .into_iter()
            .map(|literal| (!is_placeholder(&literal.token)).then_some(literal.token))
            .collect();
        let mut pieces = Vec::new();
        let mut end = 0;
        let places = replaced.literals.iter();
        for place in places.filter(|literal| is_placeholder(&literal.token)) {
            pieces.push(replacement[end..place.range.start].to_string());
            end = place.range.end;
        }
        pieces.push(replacement[end..].to_string());
        if pieces.len() - 1 > literals.iter().filter(|literal| literal.is_none()).count() {
            return Err("Replacement has more parameters than pattern.".to_string());
        }
        self.by_digest.entry(digest.text).or_default().push(Rule {
            database: database.map(str::to_string),
            literals,
            pieces,
        });
        self.count += 1;
        Ok(())
    }

    /// What a statement becomes by the first rule that it matches.
    pub fn rewrite(
        &self,
        statement: &str,
        database: Option<&str>,
        dialect: &SheafDialect,
    ) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let digest = Digest::of(statement, dialect)?;
        let rules = self.by_digest.get(&digest.text)?;
        let matches = |rule: &&Rule| {
            let mut literals = rule.literals.iter().zip(&digest.literals);
            (rule.database.is_none() || rule.database.as_deref() == database)
                && literals.all(|(wanted, literal)| {
                    wanted
                        .as_ref()
                        .is_none_or(|wanted| *wanted == literal.token)
                })
        };
        let rule = rules.iter().find(matches)?;
        let mut values = rule
            .literals
            .iter()
            .zip(&digest.literals)
            .filter(|(wanted, _)| wanted.is_none())
            .map(|(_, literal)| &statement[literal.range.clone()]);
        let mut rewritten = String::new();
        let (last, before) = rule.pieces.split_last()?;
        for piece in before {
            rewritten.push_str(piece);
            rewritten.push_str(values.next()?);
        }
        rewritten.push_str(last);
        Some(rewritten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: &[(&str, Option<&str>, &str)]) -> RewriteRules {
        let mut all = RewriteRules::default();
        for (pattern, database, replacement) in rules {
            all.add(pattern, *database, replacement, &SheafDialect::default())
                .expect("a rule");
        }
        all
    }

    fn rewritten(rules: &RewriteRules, statement: &str, database: Option<&str>) -> Option<String> {
        rules.rewrite(statement, database, &SheafDialect::default())
    }

    #[test]
    fn literals_take_the_places_of_parameters() {
        let rules = rules(&[
            ("SELECT ?", None, "SELECT ? + 1"),
            (
                "select * from t where a = ? and b = 'x' and c = ?",
                Some("d"),
                "select * from t force index (a) where c = ? and a = ?",
            ),
        ]);
        let cases = [
            ("select  /* so */ 'é'", None, Some("SELECT 'é' + 1")),
            ("select 7;", None, Some("SELECT 7 + 1")),
            ("select -7", None, None),
            ("select 7, 8", None, None),
            (
                "SELECT * FROM t\nWHERE a = 'é''s' AND b = 'x' AND c = 4.5",
                Some("d"),
                Some("select * from t force index (a) where c = 'é''s' and a = 4.5"),
            ),
            (
                "select * from t where a = ? and b = 'x' and c = ?",
                Some("d"),
                Some("select * from t force index (a) where c = ? and a = ?"),
            ),
            (
                "select * from t where a = 1 and b = 'y' and c = 2",
                Some("d"),
                None,
            ),
            (
                "select * from t where a = 1 and b = 'x' and c = 2",
                Some("e"),
                None,
            ),
            (
                "select * from t where a = 1 and b = 'x' and c = 2",
                None,
                None,
            ),
            ("show tables", None, None),
        ];
        for (statement, database, expected) in cases {
            assert_eq!(
                rewritten(&rules, statement, database).as_deref(),
                expected,
                "{statement}"
            );
        }
    }

    #[test]
    fn wrong_rules_say_what_is_wrong() {
        let mut rules = RewriteRules::default();
        let mut add = |pattern: &str, replacement: &str| {
            rules
                .add(pattern, None, replacement, &SheafDialect::default())
                .expect_err("a wrong rule")
        };
        assert!(add("SELEC ?", "SELECT 1").starts_with("Parse error in pattern: >>"));
        assert!(add("SELECT ?", "SELECT").starts_with("Parse error in replacement: >>"));
        assert_eq!(
            add("SELECT ?", "SELECT ?, ?"),
            "Replacement has more parameters than pattern."
        );
        assert!(add("SHOW TABLES", "SELECT 1").contains("is not a SELECT"));
        assert!(rules.is_empty());
    }
}
