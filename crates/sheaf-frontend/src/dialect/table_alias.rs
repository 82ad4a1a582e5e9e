//! Table aliases: there is none behind a table in parentheses.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

/// Whether the alias that has just been read stands behind `(t)`: inside there would be room for it. A query in
/// parentheses has one, and so do PARTITION (p) and a function.
pub(super) fn is_behind_table_in_parentheses(parser: &Parser) -> bool {
    let is_space = |token: &Token| matches!(token, Token::Whitespace(_));
    let alias = parser.index().saturating_sub(1);
    let before = |at: usize| {
        let mut tokens = (0..at).rev();
        tokens.find(|at| !is_space(&parser.token_at(*at).token))
    };
    let token = |at: Option<usize>| at.map(|at| &parser.token_at(at).token);
    let is_word = |token: Option<&Token>, keyword: Keyword| matches!(token, Some(Token::Word(word)) if word.keyword == keyword);
    let mut last = before(alias);
    if is_word(token(last), Keyword::AS) {
        last = last.and_then(before);
    }
    if token(last) != Some(&Token::RParen) {
        return false;
    }
    let mut open = 0;
    let mut at = last;
    while let Some(position) = at {
        match parser.token_at(position).token {
            Token::RParen => open += 1,
            Token::LParen => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
        at = position.checked_sub(1);
    }
    let Some(opening) = at else {
        return false;
    };
    if let Some(Token::Word(word)) = token(before(opening))
        && (word.keyword == Keyword::PARTITION || word.keyword == Keyword::JSON_TABLE)
    {
        return false;
    }
    let mut inside = (opening..alias).map(|at| &parser.token_at(at).token);
    let first = inside.find(|token| !is_space(token) && **token != Token::LParen);
    let queries = [
        Keyword::SELECT,
        Keyword::WITH,
        Keyword::VALUES,
        Keyword::TABLE,
    ];
    !queries.iter().any(|query| is_word(first, *query))
}
