//! Values in the places of `?`, as tokens.

use sheaf_types::Value;
use sheaf_types::error::codes;
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
        let wanted = || match in_frames.contains(&at) {
            true => Some(Wanted::FrameBound),
            false => wanted_behind(&substituted),
        };
        let literal = match parameters {
            Parameters::Values(values) => {
                let value = values
                    .get(count)
                    .ok_or_else(|| SqlError::wrong_arguments("EXECUTE"))?;
                match wanted() {
                    Some(wanted) => number_tokens(value, wanted)?,
                    None => value_tokens(value),
                }
            }
            _ if wanted().is_some() => vec![Token::Number("1".into(), false)],
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

/// Where only a number can stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Behind LIMIT, OFFSET, and the comma of `LIMIT n, n`.
    RowCount,
    /// In front of PRECEDING and FOLLOWING.
    FrameBound,
    /// In NTILE.
    Buckets,
}

/// What is wanted behind these tokens.
fn wanted_behind(tokens: &[TokenWithSpan]) -> Option<Wanted> {
    let mut words = tokens
        .iter()
        .rev()
        .map(|token| &token.token)
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    let is_limit = |token: Option<&Token>| matches!(token, Some(Token::Word(word)) if matches!(word.keyword, Keyword::LIMIT | Keyword::OFFSET));
    let is_behind_limit = match words.next() {
        Some(Token::Comma) => {
            matches!(words.next(), Some(Token::Number(..))) && is_limit(words.next())
        }
        Some(Token::LParen) => {
            let word = words.next();
            let is_ntile =
                matches!(word, Some(Token::Word(word)) if word.value.eq_ignore_ascii_case("ntile"));
            return is_ntile.then_some(Wanted::Buckets);
        }
        last => is_limit(last),
    };
    is_behind_limit.then_some(Wanted::RowCount)
}

/// The value in a place where only a number can stand.
///
/// # Errors
/// 1690 for a negative number of rows, 3586 for a bound of a frame that is negative or NULL, and 1210 for what is no
/// whole number otherwise.
fn number_tokens(value: &Value, wanted: Wanted) -> Result<Vec<Token>> {
    if let Some(number) = row_count(value) {
        return Ok(vec![number]);
    }
    let is_negative = match value {
        Value::Int(number) => *number < 0,
        Value::Decimal { unscaled, .. } => *unscaled < 0,
        Value::WideDecimal { unscaled, .. } => unscaled.is_negative(),
        Value::Float(number) => *number < 0.0,
        Value::Double(number) => *number < 0.0,
        _ => false,
    };
    match (value, wanted) {
        // No rows.
        (Value::Null, Wanted::RowCount) => Ok(value_tokens(value)),
        (Value::Int(_), Wanted::RowCount) if is_negative => {
            let message = "unsigned integer value is out of range in 'EXECUTE'";
            Err(SqlError::new(codes::DATA_OUT_OF_RANGE, message))
        }
        (Value::Null | Value::Int(_), Wanted::FrameBound) if is_negative || value.is_null() => {
            Err(SqlError::illegal_frame())
        }
        (Value::Null | Value::Int(_), Wanted::Buckets) if is_negative || value.is_null() => {
            Err(SqlError::wrong_arguments("ntile"))
        }
        (Value::Int(_) | Value::UInt(_), _) => Ok(value_tokens(value)),
        // A frame of RANGE may have a fraction.
        (
            Value::Decimal { .. } | Value::WideDecimal { .. } | Value::Float(_) | Value::Double(_),
            Wanted::FrameBound,
        ) if !is_negative => Ok(value_tokens(value)),
        _ => Err(SqlError::wrong_arguments("EXECUTE")),
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
