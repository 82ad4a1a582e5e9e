//! What stands without a blank between: `a<@b`, `a^@b`, `~~a` and `!~a`, `and@b` and `1.from`.
//!
//! sqlparser knows the operators of PostgreSQL, and reads one of them where MySQL reads two. What its sign was cut from
//! is the name of a variable:
//!
//! ```text
//!   a<@b            a   <@   b      ->   a   <   @b
//!   a^@@global.x    a   ^@   @global.x   ->   a   ^   @@global.x
//!   !~a             !~   a          ->   !   ~   a
//! ```
//!
//! Words may have the sign of a variable in them, as accounts do (`bob@localhost`), and may begin with a digit. A
//! reserved word is no account, and a number with a point is none of a name: `1.5x` is `1.5 x`, and `1.5e` is nothing.
//!
//! `|/` is an operator of PostgreSQL, too, and the comment that begins there would be read as code. So comments right
//! behind a bar become blanks before there are tokens.

use std::borrow::Cow;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use super::pieces::{Piece, Pieces};
use crate::reserved::is_reserved;

/// The text with blanks in the places of comments right behind a bar. What follows stands where it stood.
pub(super) fn without_comments_behind_bars(text: &str) -> Cow<'_, str> {
    if !text.contains("|/*") {
        return Cow::Borrowed(text);
    }
    let mut apart = String::with_capacity(text.len());
    let mut copied = 0;
    let mut is_behind_bar = false;
    for (piece, range) in Pieces::new(text) {
        let is_comment = piece == Piece::Blank && text[range.start..].starts_with("/*");
        if is_behind_bar && is_comment {
            apart.push_str(&text[copied..range.start]);
            let blanks = text[range.clone()].chars();
            apart.extend(blanks.map(|part| if part == '\n' { part } else { ' ' }));
            copied = range.end;
        }
        is_behind_bar = piece == Piece::Symbol(b'|');
    }
    apart.push_str(&text[copied..]);
    Cow::Owned(apart)
}

/// A number with a point, and the letters right behind it. `1a` is a name, and so is what stands behind a point.
fn split_number(word: &str) -> Option<(&str, &str)> {
    let (whole, rest) = word.split_once('.')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_number = whole.bytes().all(|digit| digit.is_ascii_digit());
    let has_digits = !whole.is_empty() || digits > 0;
    (is_number && has_digits).then(|| word.split_at(whole.len() + 1 + digits))
}

/// Where a number with a point has the letter of an exponent behind it, and no exponent: `1.e`, `1.5ex`. To sqlparser
/// the letter begins a word.
pub(super) fn cut_exponent(tokens: &[TokenWithSpan]) -> Option<Location> {
    let is_cut = |pair: &&[TokenWithSpan]| match pair {
        [number, word] if number.span.end == word.span.start => {
            matches!(&number.token, Token::Number(digits, _) if digits.contains('.'))
                && matches!(
                    &word.token,
                    Token::Word(word)
                        if word.quote_style.is_none() && word.value.starts_with(['e', 'E'])
                )
        }
        _ => false,
    };
    let pair = tokens.windows(2).find(is_cut)?;
    Some(pair.first()?.span.start)
}

/// The tokens with a token for each operator.
pub(super) fn apart(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_joined = |token: &TokenWithSpan| {
        !parts_of(&token.token).is_empty() || words_of(&token.token).is_some()
    };
    if !tokens.iter().any(is_joined) {
        return tokens;
    }
    let mut split = Vec::with_capacity(tokens.len() + 1);
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if let Some((first, second)) = words_of(&token.token) {
            let mut middle = token.span.start;
            middle.column += first.to_string().chars().count() as u64;
            split.push(TokenWithSpan::new(
                first,
                Span::new(token.span.start, middle),
            ));
            split.push(TokenWithSpan::new(
                second,
                Span::new(middle, token.span.end),
            ));
            continue;
        }
        let parts = parts_of(&token.token);
        if parts.is_empty() {
            split.push(token);
            continue;
        }
        let mut start = token.span.start;
        for part in parts {
            let end = Location {
                line: start.line,
                column: start.column + 1,
            };
            split.push(TokenWithSpan::new(part.clone(), Span::new(start, end)));
            start = end;
        }
        if parts.last() != Some(&Token::AtSign) {
            continue;
        }
        let mut name = String::from("@");
        let mut end = None;
        while let Some(next) = tokens.next_if(|next| is_name(&next.token)) {
            name.push_str(&next.token.to_string());
            end = Some(next.span.end);
        }
        if let Some(end) = end
            && let Some(sign) = split.last_mut()
        {
            sign.span.end = end;
            sign.token = Token::Word(Word {
                value: name,
                quote_style: None,
                keyword: Keyword::NoKeyword,
            });
        }
    }
    split
}

/// The operators that a token is in MySQL; none if it is one there, too.
fn parts_of(token: &Token) -> &'static [Token] {
    match token {
        Token::ArrowAt => &[Token::Lt, Token::AtSign],
        Token::CaretAt => &[Token::Caret, Token::AtSign],
        Token::DoubleTilde => &[Token::Tilde, Token::Tilde],
        Token::ExclamationMarkTilde => &[Token::ExclamationMark, Token::Tilde],
        Token::ExclamationMarkDoubleTilde => &[Token::ExclamationMark, Token::Tilde, Token::Tilde],
        _ => &[],
    }
}

/// The two tokens that a word is in MySQL: a reserved word and a variable, or a number and a word.
fn words_of(token: &Token) -> Option<(Token, Token)> {
    let Token::Word(Word {
        value,
        quote_style: None,
        ..
    }) = token
    else {
        return None;
    };
    if value.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        let (number, word) = split_number(value)?;
        let is_word = word.starts_with(|first: char| first.is_alphabetic() || first == '_');
        return is_word.then(|| {
            let number = Token::Number(number.to_string(), false);
            (number, Token::make_word(word, None))
        });
    }
    let at = value.find('@').filter(|at| *at > 0)?;
    let word = Token::make_word(&value[..at], None);
    let is_reserved = matches!(&word, Token::Word(word) if is_reserved(word.keyword));
    let variable = match &value[at..] {
        "@" => Token::AtSign,
        name => Token::Word(Word {
            value: name.to_string(),
            quote_style: None,
            keyword: Keyword::NoKeyword,
        }),
    };
    is_reserved.then_some((word, variable))
}

/// Whether a token right behind the sign of a variable is of its name. One in quotes stays behind the sign.
fn is_name(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none(),
        Token::Number(..) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::SheafDialect;

    fn tokens_of(text: &str) -> Vec<TokenWithSpan> {
        let dialect = SheafDialect::default();
        let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
        tokens.expect("tokens")
    }

    #[test]
    fn operators_side_by_side_are_read_as_with_blanks() {
        for (text, spaced) in [
            ("a<@b", "a < @b"),
            ("a^@b", "a ^ @b"),
            ("a<@@global.x", "a < @@global.x"),
            ("1<@1a", "1 < @1a"),
            ("a<@from", "a < @from"),
            ("a<@`b c`", "a < @`b c`"),
            ("a<@ b", "a < @ b"),
            ("~~a", "~ ~ a"),
            ("~~~a", "~ ~ ~ a"),
            ("!~a", "! ~ a"),
            ("!~~a", "! ~ ~ a"),
            ("a between @a and@b", "a between @a and @b"),
            ("a or@@global.x", "a or @@global.x"),
            ("a and@`b c`", "a and @`b c`"),
            ("select 1.from t", "select 1. from t"),
            (
                "select 1.5x, .5y, 1.5from t",
                "select 1.5 x, .5 y, 1.5 from t",
            ),
            ("to bob@localhost", "to bob@localhost"),
            ("`and@b`", "`and@b`"),
            ("1e5, 1.5, t.1a, 1a", "1e5, 1.5, t.1a, 1a"),
        ] {
            let plain = |tokens: Vec<TokenWithSpan>| {
                let tokens = tokens.into_iter().map(|token| token.token);
                let tokens = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
                tokens.map(|token| token.to_string()).collect::<Vec<_>>()
            };
            assert_eq!(
                plain(apart(tokens_of(text))),
                plain(tokens_of(spaced)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_number_with_a_point_has_a_whole_exponent() {
        for (text, is_cut) in [
            ("1.e", true),
            ("1.else", true),
            ("1.5e", true),
            (".5E", true),
            ("1.5e1", false),
            ("1.5x", false),
            ("1.5 e", false),
            ("1e", false),
        ] {
            let is_found = cut_exponent(&tokens_of(text)).is_some();
            assert_eq!(is_found, is_cut, "{text}");
        }
    }

    #[test]
    fn comments_behind_a_bar_are_blanks() {
        for (text, apart) in [
            ("a|/*c*/b", "a|     b"),
            ("a||/* \n */b", "a||   \n   b"),
            ("'|/*c*/' /*d*/", "'|/*c*/' /*d*/"),
            ("a|/*\u{E9}*/|b", "a|     |b"),
            ("a|/", "a|/"),
        ] {
            assert_eq!(without_comments_behind_bars(text), apart);
        }
    }

    #[test]
    fn tokens_stand_where_they_are_written() {
        let tokens = apart(tokens_of("a<@b"));
        let columns = tokens
            .iter()
            .map(|token| (token.span.start.column, token.span.end.column));
        assert_eq!(columns.collect::<Vec<_>>(), [(1, 2), (2, 3), (3, 5)]);
        let tokens = apart(tokens_of("or@b"));
        let columns = tokens
            .iter()
            .map(|token| (token.span.start.column, token.span.end.column));
        assert_eq!(columns.collect::<Vec<_>>(), [(1, 3), (3, 5)]);
    }
}
