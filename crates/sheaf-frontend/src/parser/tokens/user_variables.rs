//! The names of user variables, ``@`a b` ``, `@'a b'` and `@a.b`, become one word with its sign.
//!
//! So nothing behind the tokens has to know how the name was written. What stands behind a string or a word is the host
//! of an account, `'bob'@'%'`, and stays as it is.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

pub(super) fn as_words(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut words: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let is_host = words
            .last()
            .is_some_and(|before| may_be_user(&before.token));
        match sign_of(&token.token).filter(|_| !is_host) {
            Some(name) => {
                let (variable, count) = variable(name, &tokens[at..]);
                words.push(variable);
                at += count;
            }
            None => {
                words.push(token.clone());
                at += 1;
            }
        }
    }
    words
}

/// Whether a name in quotes begins with the sign: behind the tokens nothing knows it from a variable. A host, an alias
/// behind AS and the name of a table may.
pub(super) fn are_in_names(tokens: &[TokenWithSpan]) -> bool {
    let tokens = tokens.iter().map(|token| &token.token);
    let mut before = &Token::EOF;
    let mut depth = 0usize;
    for token in tokens.filter(|token| !matches!(token, Token::Whitespace(_))) {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let may_begin = match before {
            Token::AtSign => true,
            Token::Word(word) => {
                is_before_table(word, depth)
                    || word.keyword == Keyword::AS
                    || word.value.ends_with('@')
            }
            _ => false,
        };
        if let Token::Word(word) = token
            && word.quote_style.is_some()
            && word.value.starts_with('@')
            && !may_begin
        {
            return true;
        }
        before = token;
    }
    false
}

/// Whether the name of a table stands behind a word. FROM in parentheses may be that of a function.
fn is_before_table(word: &Word, depth: usize) -> bool {
    word.quote_style.is_none()
        && match word.keyword {
            Keyword::FROM => depth == 0,
            keyword => matches!(
                keyword,
                Keyword::TABLE
                    | Keyword::INTO
                    | Keyword::JOIN
                    | Keyword::TO
                    | Keyword::EXISTS
                    | Keyword::RENAME
            ),
        }
}

/// What a token has behind the sign of a user variable.
fn sign_of(token: &Token) -> Option<&str> {
    match token {
        Token::AtSign => Some(""),
        Token::Word(word) if word.quote_style.is_none() => word
            .value
            .strip_prefix('@')
            .filter(|name| !name.starts_with('@')),
        _ => None,
    }
}

/// Whether an account may begin with a token.
fn may_be_user(token: &Token) -> bool {
    match token {
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => true,
        Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
        _ => false,
    }
}

/// The variable that some tokens begin with, and how many of them it is.
fn variable(begin: &str, tokens: &[TokenWithSpan]) -> (TokenWithSpan, usize) {
    let token_at = |at: usize| tokens.get(at).map(|token| &token.token);
    let mut name = format!("@{begin}");
    let mut count = 1;
    if begin.is_empty() {
        let quoted = token_at(1).and_then(|token| match token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Some(text),
            Token::Word(word) if word.quote_style.is_some() => Some(&word.value),
            _ => None,
        });
        let Some(quoted) = quoted.filter(|text| !text.is_empty() && !text.starts_with('@')) else {
            return (tokens[0].clone(), 1);
        };
        name.push_str(quoted);
        count = 2;
    }
    while token_at(count) == Some(&Token::Period)
        && let Some(Token::Word(part)) = token_at(count + 1)
    {
        name.push('.');
        name.push_str(&part.value);
        count += 2;
    }
    if count == 1 {
        return (tokens[0].clone(), 1);
    }
    let word = Token::Word(Word {
        value: name,
        quote_style: None,
        keyword: Keyword::NoKeyword,
    });
    let span = Span::new(tokens[0].span.start, tokens[count - 1].span.end);
    (TokenWithSpan::new(word, span), count)
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::SheafDialect;

    fn words(text: &str) -> Vec<String> {
        let dialect = SheafDialect::default();
        let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
        let words = as_words(tokens.expect("tokens")).into_iter();
        let words = words.filter(|token| !matches!(token.token, Token::Whitespace(_)));
        words.map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn names_in_quotes_and_of_parts_are_one_word() {
        assert_eq!(
            words("@`a b` = @'c' + @\"d\""),
            ["@a b", "=", "@c", "+", "@d"]
        );
        assert_eq!(words("@a.b.c,@x"), ["@a.b.c", ",", "@x"]);
        assert_eq!(
            words("@`a.b`, @@global.c"),
            ["@a.b", ",", "@@global", ".", "c"]
        );
        assert_eq!(words("select @'a'"), ["select", "@a"]);
    }

    #[test]
    fn names_that_begin_with_the_sign_are_known() {
        let are_in = |text: &str| {
            let dialect = SheafDialect::default();
            let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
            are_in_names(&tokens.expect("tokens"))
        };
        for text in [
            "select `@x` from t",
            "delete from t where `@x` is null",
            "select t.`@x`",
        ] {
            assert!(are_in(text), "{text}");
        }
        for text in [
            "select @x, @`x`",
            "select 1 as `@x`",
            "grant all on *.* to `u`@`@h`",
        ] {
            assert!(!are_in(text), "{text}");
        }
    }

    #[test]
    fn hosts_of_accounts_stay() {
        assert_eq!(words("'bob'@'%'"), ["'bob'", "@", "'%'"]);
        assert_eq!(words("`bob`@`a.b`"), ["`bob`", "@", "`a.b`"]);
        assert_eq!(words("bob@'%'"), ["bob@", "'%'"]);
        assert_eq!(words("@''"), ["@", "''"]);
    }
}
