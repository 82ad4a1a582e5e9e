//! Bit literals, `b'1010'` and `0b1010`, become the hexadecimal literals of the same bytes, X'0A'.
//!
//! To MySQL both are bytes, which are a number where one is wanted. So nothing behind the tokens has to know the bits.
//! What has other digits stays as it is: the parser has an error for it, or another meaning.
//!
//! A name may begin with a digit. So `0x` without digits is a name, and `0xfg` is one, of which sqlparser makes the
//! literal `0xf` and the name `g`. `1e` is a name, too, where no exponent follows: sqlparser makes a number and a name.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, TokenizerError, Word};

/// # Errors
/// Where X'...' has other digits, or half a byte. 0x1 is the byte 0x01.
pub(super) fn as_hexadecimal(
    tokens: Vec<TokenWithSpan>,
) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    let mut tokens = with_names_of_digits(tokens);
    for token in &mut tokens {
        if let Token::HexStringLiteral(digits) = &token.token {
            let is_quoted = is_quoted(digits, token.span);
            let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            if !is_hexadecimal || is_quoted && digits.len() % 2 == 1 {
                return Err(TokenizerError {
                    message: format!("X'{digits}' is no bytes"),
                    location: token.span.start,
                });
            }
        }
        let bits = match &token.token {
            Token::SingleQuotedByteStringLiteral(bits) => Some(bits.as_str()),
            // An identifier may begin with a digit, but this one is a literal.
            Token::Word(Word {
                value,
                quote_style: None,
                ..
            }) => value.strip_prefix("0b").filter(|bits| !bits.is_empty()),
            _ => None,
        };
        if let Some(digits) = bits.and_then(hexadecimal_digits) {
            token.token = Token::HexStringLiteral(digits);
        }
    }
    Ok(tokens)
}

/// Whether a hexadecimal literal is written as `X'...'`, not as `0x...`.
fn is_quoted(digits: &str, span: Span) -> bool {
    span.end.column - span.start.column == digits.len() as u64 + 3
}

/// Names that begin with `0x`, or with digits and an `e`, are one word each.
fn with_names_of_digits(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    // Tokens that are the end of a name. They go at once: a text may have a million of them.
    let mut ends = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let rest = match &tokens[at].token {
            Token::HexStringLiteral(digits) if !is_quoted(digits, tokens[at].span) => {
                let rest = word_behind(&tokens, at);
                let is_name = digits.is_empty() || rest.is_some();
                is_name.then(|| (format!("0x{digits}"), rest))
            }
            // Behind a period digits are a word.
            Token::Number(digits, false)
            | Token::Word(Word {
                value: digits,
                quote_style: None,
                ..
            }) if digits.bytes().all(|byte| byte.is_ascii_digit()) => word_behind(&tokens, at)
                .filter(|(word, _)| word.starts_with(['e', 'E']))
                .map(|rest| (digits.clone(), Some(rest))),
            _ => None,
        };
        let mut next = at + 1;
        if let Some((mut value, rest)) = rest {
            if let Some((rest, end)) = rest {
                value.push_str(&rest);
                tokens[at].span.end = end;
                ends.push(next);
                next += 1;
            }
            tokens[at].token = Token::Word(Word {
                value,
                quote_style: None,
                keyword: Keyword::NoKeyword,
            });
        }
        at = next;
    }
    if !ends.is_empty() {
        let (mut ends, mut next) = (ends.into_iter().peekable(), 0);
        tokens.retain(|_| {
            let at = next;
            next += 1;
            ends.next_if_eq(&at).is_none()
        });
    }
    tokens
}

/// The word that begins where this token ends, and its end.
fn word_behind(tokens: &[TokenWithSpan], at: usize) -> Option<(String, Location)> {
    let next = tokens.get(at + 1)?;
    match &next.token {
        Token::Word(word)
            if word.quote_style.is_none()
                && next.span.start == tokens[at].span.end
                && !word.value.starts_with('@') =>
        {
            Some((word.value.clone(), next.span.end))
        }
        _ => None,
    }
}

/// Of the bytes that have these bits, the first one filled up with zeros; `None` for what is no bits.
fn hexadecimal_digits(bits: &str) -> Option<String> {
    if !bits.bytes().all(|bit| matches!(bit, b'0' | b'1')) {
        return None;
    }
    let filled = format!("{bits:0>width$}", width = bits.len().next_multiple_of(8));
    let bytes = filled.as_bytes().chunks(8).map(|byte| {
        let byte = byte
            .iter()
            .fold(0u8, |byte, bit| byte << 1 | u8::from(*bit == b'1'));
        format!("{byte:02X}")
    });
    Some(bytes.collect())
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::SheafDialect;

    fn read(text: &str) -> Vec<Token> {
        let dialect = SheafDialect::default();
        let mut tokenizer = Tokenizer::new(&dialect, text);
        let tokens = tokenizer.tokenize_with_location().expect("tokens");
        let read = as_hexadecimal(tokens).expect("literals");
        read.into_iter().map(|token| token.token).collect()
    }

    #[test]
    fn bits_are_bytes() {
        for (text, digits) in [
            ("b'1010'", "0A"),
            ("B'101000001'", "0141"),
            ("b''", ""),
            ("0b1010", "0A"),
            ("0b0000000000000001", "0001"),
        ] {
            let hexadecimal = Token::HexStringLiteral(digits.to_owned());
            assert_eq!(read(text), [hexadecimal], "{text}");
        }
    }

    #[test]
    fn half_bytes_are_refused() {
        let dialect = SheafDialect::default();
        let tokens_of = |text| {
            let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
            as_hexadecimal(tokens.expect("tokens"))
        };
        for text in ["x'1'", "select X'4d5'", "x'zz'"] {
            assert!(tokens_of(text).is_err(), "{text}");
        }
        for text in ["0x1", "x''", "x'4D'", "select 0x123, x'00'"] {
            assert!(tokens_of(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn names_may_begin_with_digits() {
        for name in ["0x", "0xfg", "0xff_a", "0x_1", "0xé", "1e", "12Eq", "1e_5"] {
            let word = Token::Word(Word {
                value: name.to_owned(),
                quote_style: None,
                keyword: Keyword::NoKeyword,
            });
            assert_eq!(read(name), [word], "{name}");
        }
        let several = read("1e,2e,0xg,3");
        let several: Vec<_> = several.iter().map(Token::to_string).collect();
        assert_eq!(several, ["1e", ",", "2e", ",", "0xg", ",", "3"]);
        let names = read("a.2e_b")
            .into_iter()
            .filter(|token| matches!(token, Token::Word(_)));
        assert_eq!(names.count(), 2);
        for text in ["1e5", "1 e", "1.5"] {
            let is_number = |token: &Token| matches!(token, Token::Number(..));
            assert!(read(text).iter().any(is_number), "{text}");
        }
        for text in ["0xff g", "0xff`g`", "x'ff'g"] {
            let is_bytes = |token: &Token| matches!(token, Token::HexStringLiteral(_));
            assert!(read(text).iter().any(is_bytes), "{text}");
        }
    }

    #[test]
    fn what_has_other_digits_stays() {
        for text in ["b'12'", "0b12", "0b", "0B10", "10b1", "0 b1", "`0b1`"] {
            let is_bytes = |token: &Token| matches!(token, Token::HexStringLiteral(_));
            assert!(!read(text).iter().any(is_bytes), "{text}");
        }
    }
}
