//! Long lists behind IN become one node while they are read.

use sheaf_exec::functions::in_values::MIN_PACKED;
use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::ahead::Ahead;
use crate::packed_list::ListPacker;

/// What stands behind the operand of an IN with many members that are all plain constants, or rows of them.
pub(super) struct LongList {
    pub(super) packed: Expr,
    pub(super) negated: bool,
    /// Its tokens, the blanks included.
    pub(super) tokens: usize,
}

/// The list that comes next, if it is such a one.
pub(super) fn long_list(parser: &Parser) -> Option<LongList> {
    let is_word = |token: &Token, keyword: Keyword| matches!(token, Token::Word(word) if word.keyword == keyword);
    let first = parser.peek_token_ref();
    let negated = is_word(&first.token, Keyword::NOT);
    if !negated && !is_word(&first.token, Keyword::IN) {
        return None;
    }
    let mut ahead = Ahead::of(parser);
    let mut next = || ahead.next();
    let mut token = next();
    if negated {
        token = next();
    }
    if !is_word(token, Keyword::IN) || *next() != Token::LParen {
        return None;
    }
    let mut list = ListPacker::new();
    let mut is_in_row = false;
    loop {
        let mut token = next();
        if *token == Token::LParen && !is_in_row {
            is_in_row = true;
            token = next();
        }
        match token {
            Token::Minus => match next() {
                Token::Number(digits, false) => list.push_number("-", digits),
                _ => return None,
            },
            Token::Number(digits, false) => list.push_number("", digits),
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                list.push_text(text);
            }
            token if is_word(token, Keyword::NULL) => list.push_null(),
            _ => return None,
        }
        let mut token = next();
        if is_in_row && *token == Token::RParen {
            is_in_row = false;
            token = next();
        }
        if !is_in_row {
            list.end_row();
        }
        match token {
            Token::Comma => {}
            Token::RParen if !is_in_row => break,
            _ => return None,
        }
    }
    let packed = list.packed(MIN_PACKED)?;
    Some(LongList {
        packed,
        negated,
        tokens: ahead.at - parser.index(),
    })
}
