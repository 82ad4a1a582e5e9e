//! What a token is, as the passes over tokens ask. A word in quotes is a name, whatever it spells.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

/// The keyword that a token is; `NoKeyword` for others.
pub(crate) fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

pub(crate) fn is_keyword(token: &Token, wanted: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == wanted)
}

/// Whether a token is this word, in any case, which need not be one of sqlparser's keywords.
pub(crate) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// Blanks and comments.
pub(crate) fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}
