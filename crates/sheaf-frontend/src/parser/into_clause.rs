//! `SELECT ... INTO @a, @b`, `INTO OUTFILE 'name'`: the user variables or the file that take the rows of a query.
//!
//! INTO stands behind the select list, or at the end of the statement, in front of FOR UPDATE or behind it, also in
//! parentheses around the query or the last part of a union. sqlparser reads none of these, so INTO is taken out of the
//! tokens before the query is read.

use sheaf_types::error::codes;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::token::{is_space, keyword};

/// The tokens of a statement.
pub struct WithoutInto {
    pub tokens: Vec<TokenWithSpan>,
    /// What stood behind INTO; empty if there was none.
    pub targets: Vec<TokenWithSpan>,
}

/// Takes INTO and what belongs to it out of a query.
///
/// # Errors
/// For an INTO inside of a subquery, or with a part of a union behind it: 1064 if it stands behind the FROM, else 3954.
pub fn take_out(tokens: Vec<TokenWithSpan>) -> Result<WithoutInto> {
    let Some((at, around)) = place_of_into(&tokens) else {
        return Ok(WithoutInto {
            tokens,
            targets: Vec::new(),
        });
    };
    let end = match next(&tokens, at + 1).filter(|at| is_file(&tokens[*at].token)) {
        Some(kind) => end_of_file(&tokens, kind + 1),
        None => end_of_targets(&tokens, at + 1),
    };
    let is_behind = has_set_operation(&tokens[end..]);
    // Behind the FROM nothing but the end may follow.
    let is_wrong = match around {
        Around::Subquery => follows_from(&tokens[..at]),
        Around::Nothing => is_behind && follows_from(&tokens[..at]),
        Around::Parentheses => false,
    };
    if is_wrong {
        return Err(SqlError::parse_error("INTO", tokens[at].span.start.line));
    }
    if is_behind || around == Around::Subquery {
        return Err(SqlError::new(
            codes::MISPLACED_INTO,
            "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end of UNION clauses.",
        ));
    }
    let mut tokens = tokens;
    let mut targets: Vec<TokenWithSpan> = tokens.drain(at..end).collect();
    // INTO itself.
    targets.remove(0);
    Ok(WithoutInto { tokens, targets })
}

/// Whether the part of the query in which these tokens end has had its FROM.
fn follows_from(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0usize;
    for token in tokens.iter().rev() {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            token if keyword(token) == Keyword::FROM => return true,
            token if is_set_operation(keyword(token)) => return false,
            _ => {}
        }
    }
    false
}

/// Whether a part of a union follows, outside of parentheses.
fn has_set_operation(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0usize;
    tokens.iter().any(|token| {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            token => {
                return is_set_operation(keyword(token)) && depth == 0;
            }
        }
        false
    })
}

/// The first token at or behind a place that is no space.
fn next(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    (from..tokens.len()).find(|at| !is_space(&tokens[*at].token))
}

/// What is around an INTO.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    /// Parentheses around the query, or around a part of a union.
    Parentheses,
    Subquery,
}

/// Where INTO stands in front of a user variable or a file, and what is around it; `None` if the statement is no query,
/// or has none.
fn place_of_into(tokens: &[TokenWithSpan]) -> Option<(usize, Around)> {
    let first = &tokens[next(tokens, 0)?].token;
    let is_query = *first == Token::LParen
        || matches!(
            keyword(first),
            Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE
        );
    if !is_query {
        return None;
    }
    // The open parentheses, and whether each of them is around a query and not in one.
    let mut open: Vec<bool> = Vec::new();
    let mut before: Option<&Token> = None;
    for (at, token) in tokens.iter().enumerate() {
        if is_space(&token.token) {
            continue;
        }
        match &token.token {
            Token::LParen => {
                let is_around = match before {
                    None => true,
                    Some(Token::LParen) => open.last().copied().unwrap_or(true),
                    Some(before) => is_set_operation(keyword(before)),
                };
                open.push(is_around);
            }
            Token::RParen => _ = open.pop(),
            token if keyword(token) == Keyword::INTO => {
                let behind = next(tokens, at + 1);
                let behind = behind.map(|at| &tokens[at].token);
                if behind.is_some_and(|token| is_variable(token) || is_file(token)) {
                    let around = match (open.is_empty(), open.iter().all(|around| *around)) {
                        (true, _) => Around::Nothing,
                        (false, true) => Around::Parentheses,
                        (false, false) => Around::Subquery,
                    };
                    return Some((at, around));
                }
            }
            _ => {}
        }
        // `UNION ALL (`
        let is_word_between = matches!(keyword(&token.token), Keyword::ALL | Keyword::DISTINCT);
        if !(is_word_between && before.is_some_and(|before| is_set_operation(keyword(before)))) {
            before = Some(&token.token);
        }
    }
    None
}

fn is_set_operation(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT
    )
}

/// `@name`, or the sign in front of a name in quotes.
fn is_variable(token: &Token) -> bool {
    match token {
        Token::AtSign => true,
        Token::Word(word) => word.quote_style.is_none() && word.value.starts_with('@'),
        _ => false,
    }
}

fn is_file(token: &Token) -> bool {
    is_one_of(token, &["OUTFILE", "DUMPFILE"])
}

fn is_one_of(token: &Token, words: &[&str]) -> bool {
    match token {
        Token::Word(word) if word.quote_style.is_none() => {
            let mut words = words.iter();
            words.any(|known| word.value.eq_ignore_ascii_case(known))
        }
        _ => false,
    }
}

/// Words of the clauses behind the name of a file: `CHARACTER SET`, `FIELDS`, `LINES`.
const OF_FILES: [&str; 11] = [
    "CHARACTER",
    "SET",
    "CHARSET",
    "FIELDS",
    "COLUMNS",
    "TERMINATED",
    "OPTIONALLY",
    "ENCLOSED",
    "ESCAPED",
    "LINES",
    "STARTING",
];
/// A value stands behind these.
const BEFORE_VALUES: [&str; 3] = ["SET", "CHARSET", "BY"];

/// The end of the name of a file, and of what is said of its form.
fn end_of_file(tokens: &[TokenWithSpan], from: usize) -> usize {
    let Some(name) = next(tokens, from) else {
        return from;
    };
    let mut end = name + 1;
    let mut is_value = false;
    while let Some(at) = next(tokens, end) {
        let token = &tokens[at].token;
        if !is_value && !is_one_of(token, &OF_FILES) && !is_one_of(token, &["BY"]) {
            break;
        }
        is_value = !is_value && is_one_of(token, &BEFORE_VALUES);
        end = at + 1;
    }
    end
}

/// The end of a list of variables.
fn end_of_targets(tokens: &[TokenWithSpan], from: usize) -> usize {
    let mut end = from;
    while let Some(at) = next(tokens, end).filter(|at| is_variable(&tokens[*at].token)) {
        end = at + 1;
        // `@'a b'`, `@a.b`
        let is_bare = match &tokens[at].token {
            Token::Word(word) => word.value == "@",
            _ => true,
        };
        end += usize::from(is_bare && end < tokens.len());
        while tokens
            .get(end)
            .is_some_and(|token| token.token == Token::Period)
        {
            end = (end + 2).min(tokens.len());
        }
        match next(tokens, end).filter(|at| tokens[*at].token == Token::Comma) {
            Some(comma) => end = comma + 1,
            None => break,
        }
    }
    end
}
