//! Values in the places of `?`, as tokens.

use sheaf_types::Value;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::value_literal::{null_token, value_tokens};

/// What stands in the places of `?`.
#[derive(Clone, Copy, Debug)]
pub enum Parameters<'a> {
    /// The statement is run as text: `?` is a syntax error.
    None,
    /// The statement is prepared: NULL, and 1 where only a number can stand.
    Unknown,
    /// The statement is compiled once for all values: each place becomes a placeholder with its number, from 0, which
    /// [`parameter_number`] reads.
    Numbered,
    Values(&'a [Value]),
}

/// Puts the values in place. Returns how many there were. Error 1210 if that is not the number of values.
pub fn substitute(
    tokens: Vec<TokenWithSpan>,
    parameters: Parameters<'_>,
) -> Result<(Vec<TokenWithSpan>, usize)> {
    let is_parameter =
        |token: &TokenWithSpan| matches!(&token.token, Token::Placeholder(text) if text == "?");
    let may_be_there = !matches!(parameters, Parameters::None);
    // `?7` is of another dialect, and would be taken for a number of ours.
    let wrong = tokens.iter().position(|token| {
        matches!(token.token, Token::Placeholder(_)) && !(may_be_there && is_parameter(token))
    });
    if let Some(wrong) = wrong {
        let near: String = tokens[wrong..]
            .iter()
            .map(|token| token.to_string())
            .collect();
        return Err(SqlError::parse_error(&near, tokens[wrong].span.start.line));
    }
    if !may_be_there {
        return Ok((tokens, 0));
    }
    if matches!(parameters, Parameters::Numbered) {
        let mut tokens = tokens;
        let places = tokens.iter_mut().filter(|token| is_parameter(token));
        let mut count = 0;
        for place in places {
            place.token = Token::Placeholder(format!("?{count}"));
            count += 1;
        }
        return Ok((tokens, count));
    }
    let mut substituted: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut count = 0;
    let in_frames: Vec<usize> = (0..tokens.len())
        .filter(|at| is_parameter(&tokens[*at]) && is_frame_bound(&tokens[at + 1..]))
        .collect();
    for (at, token) in tokens.into_iter().enumerate() {
        if !is_parameter(&token) {
            substituted.push(token);
            continue;
        }
        let wants_number = || in_frames.contains(&at) || follows_limit(&substituted);
        let literal = match parameters {
            Parameters::Values(values) => {
                let value = values
                    .get(count)
                    .ok_or_else(|| SqlError::wrong_arguments("EXECUTE"))?;
                match row_count(value).filter(|_| wants_number()) {
                    Some(number) => vec![number],
                    None => value_tokens(value),
                }
            }
            _ if wants_number() => vec![Token::Number("1".into(), false)],
            _ => vec![null_token()],
        };
        count += 1;
        let span = token.span;
        substituted.extend(
            literal
                .into_iter()
                .map(|token| TokenWithSpan { token, span }),
        );
    }
    match parameters {
        Parameters::Values(values) if values.len() != count => {
            Err(SqlError::wrong_arguments("EXECUTE"))
        }
        _ => Ok((substituted, count)),
    }
}

/// The number of a placeholder of [`Parameters::Numbered`].
pub fn parameter_number(placeholder: &str) -> Option<usize> {
    placeholder.strip_prefix('?')?.parse().ok()
}

/// True in front of PRECEDING and FOLLOWING.
fn is_frame_bound(behind: &[TokenWithSpan]) -> bool {
    let mut words = behind.iter().map(|token| &token.token);
    let next = words.find(|token| !matches!(token, Token::Whitespace(_)));
    matches!(next, Some(Token::Word(word)) if matches!(word.keyword, Keyword::PRECEDING | Keyword::FOLLOWING))
}

/// True behind LIMIT, OFFSET, and the comma of `LIMIT n, n`, and behind `NTILE(`.
fn follows_limit(tokens: &[TokenWithSpan]) -> bool {
    let mut words = tokens
        .iter()
        .rev()
        .map(|token| &token.token)
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    let is_limit = |token: Option<&Token>| matches!(token, Some(Token::Word(word)) if matches!(word.keyword, Keyword::LIMIT | Keyword::OFFSET));
    match words.next() {
        Some(Token::Comma) => {
            matches!(words.next(), Some(Token::Number(..))) && is_limit(words.next())
        }
        Some(Token::LParen) => {
            matches!(words.next(), Some(Token::Word(word)) if word.value.eq_ignore_ascii_case("ntile"))
        }
        last => is_limit(last),
    }
}

/// The number of rows that a text or a DECIMAL spells. Many clients bind all their values as texts, and MySQL takes
/// those behind LIMIT.
fn row_count(value: &Value) -> Option<Token> {
    let number: u64 = match value {
        Value::Text(text) => text.trim().parse().ok()?,
        Value::Decimal { unscaled, scale: 0 } => u64::try_from(*unscaled).ok()?,
        _ => return None,
    };
    Some(Token::Number(number.to_string(), false))
}
