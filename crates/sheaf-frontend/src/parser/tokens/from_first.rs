//! `NTH_VALUE(a, 2) FROM FIRST OVER w`: the clause says what the function does anyway, and its tokens go.

use sheaf_types::error::codes;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::token::is_word;

/// The tokens without the clause.
///
/// # Errors
/// 1235 for FROM LAST.
pub(super) fn without_clause(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut at = 0;
    while let Some(call) = place_of(&tokens, at, "nth_value") {
        at = call + 1;
        let Some(close) = end_of_arguments(&tokens, at) else {
            break;
        };
        let Some(from) = next(&tokens, close + 1).filter(|at| is_word(&tokens[*at].token, "from"))
        else {
            continue;
        };
        let Some(end) = next(&tokens, from + 1) else {
            break;
        };
        if is_word(&tokens[end].token, "last") && is_window(&tokens, end + 1) {
            return Err(SqlError::new(
                codes::NOT_SUPPORTED_YET,
                "This version of Sheaf doesn't yet support 'FROM LAST'",
            ));
        }
        if is_word(&tokens[end].token, "first") && is_window(&tokens, end + 1) {
            tokens.drain(from..=end);
        }
    }
    Ok(tokens)
}

/// Whether what comes is OVER, maybe behind RESPECT NULLS.
fn is_window(tokens: &[TokenWithSpan], from: usize) -> bool {
    next(tokens, from).is_some_and(|at| {
        ["over", "respect", "ignore"]
            .iter()
            .any(|word| is_word(&tokens[at].token, word))
    })
}

fn place_of(tokens: &[TokenWithSpan], from: usize, word: &str) -> Option<usize> {
    let found = tokens.get(from..)?;
    let found = found.iter().position(|token| is_word(&token.token, word))?;
    Some(from + found)
}

/// The next token that is no blank.
fn next(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let rest = tokens.get(from..)?;
    let found = rest
        .iter()
        .position(|token| !matches!(token.token, Token::Whitespace(_)))?;
    Some(from + found)
}

/// The parenthesis that closes the first one.
fn end_of_arguments(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => return Some(at),
            Token::RParen => depth -= 1,
            Token::Whitespace(_) => {}
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Whether a text may have the clause.
pub(super) fn may_be_in(tokens: &[TokenWithSpan]) -> bool {
    let is_nth_value = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::NTH_VALUE);
    tokens.iter().any(is_nth_value)
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::SheafDialect;

    fn without(text: &str) -> Result<String> {
        let dialect = SheafDialect::default();
        let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
        let tokens = without_clause(tokens.expect("tokens"))?;
        let words = tokens.iter().map(|token| token.token.to_string());
        Ok(words
            .filter(|word| !word.trim().is_empty())
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn only_the_clause_goes() {
        for (text, left) in [
            (
                "nth_value(a, 2) from first over w",
                "nth_value ( a , 2 ) over w",
            ),
            (
                "nth_value((a), 1) from first respect nulls over ()",
                "nth_value ( ( a ) , 1 ) respect nulls over ( )",
            ),
            (
                "nth_value(a, 2) over w from first",
                "nth_value ( a , 2 ) over w from first",
            ),
            ("lead(a) from first over w", "lead ( a ) from first over w"),
            ("nth_value from first", "nth_value from first"),
        ] {
            assert_eq!(without(text).expect("no error"), left, "{text}");
        }
        let last = without("nth_value(a, 2) from last over w");
        assert_eq!(last.map_err(|error| error.code), Err(1235));
    }
}
