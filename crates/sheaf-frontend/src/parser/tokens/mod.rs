//! Text to tokens, as far as memory allows.
//!
//! ```text
//!   bytes   --statement_bytes-->  text   --scan-->  statements, without executable comments
//!   text    --tokens_of-------->  tokens that sqlparser knows: what MySQL writes otherwise is spelled as it expects
//!   text    --plain_tokens----->  the same in one pass, if nothing in it needs such care
//! ```

mod adjoining;
mod bit_literals;
mod from_first;
pub(crate) mod pieces;
pub(super) mod plain_tokens;
pub mod scan;
pub mod statement_bytes;
pub mod text_size;
mod user_variables;
pub(crate) mod word_table;

use sheaf_access::cancel;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};

use self::plain_tokens::keyword_of_clock;
use self::text_size::TextSize;
use super::LONG_TEXT_BYTES;
use super::error_place::tokenizer_error;
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};

/// The tokens of a text. sqlparser takes `\a` and `\f` in strings for control characters; in MySQL they are letters. So
/// texts that have them are unescaped here.
///
/// # Errors
/// 1064, and what stops the statement.
pub(super) fn tokens_of(
    text: &str,
    dialect: &SheafDialect,
    room: usize,
) -> Result<Vec<TokenWithSpan>> {
    /// The tokenizer looks so often whether it shall stop.
    const TOKENS_PER_LOOK: usize = 1 << 10;
    let mut tokens = Vec::with_capacity(room);
    let has_letters = text.contains("\\a") || text.contains("\\f");
    let (mut count, mut shall_stop) = (0_usize, false);
    let counted = |mut token: TokenWithSpan| {
        count += 1;
        if count.is_multiple_of(TOKENS_PER_LOOK) {
            shall_stop = cancel::is_statement_cancelled();
        }
        if shall_stop {
            // The tokenizer goes on to the end of the text, and nothing of it is kept.
            token.token = Token::EOF;
        }
        token
    };
    let apart = adjoining::without_comments_behind_bars(text);
    Tokenizer::new(dialect, &apart)
        .with_unescape(!has_letters)
        .tokenize_with_location_into_buf_with_mapper(&mut tokens, counted)
        .map_err(|error| tokenizer_error(text, &error))?;
    cancel::check_statement()?;
    if let Some(location) = adjoining::cut_exponent(&tokens) {
        let error = TokenizerError {
            message: "an exponent without digits".to_string(),
            location,
        };
        return Err(tokenizer_error(text, &error));
    }
    let mut tokens = adjoining::apart(tokens);
    if from_first::may_be_in(&tokens) {
        tokens = from_first::without_clause(tokens)?;
    }
    if has_letters {
        for token in &mut tokens {
            match &mut token.token {
                Token::SingleQuotedString(string) | Token::NationalStringLiteral(string) => {
                    *string = scan::unescaped(string, '\'');
                }
                Token::DoubleQuotedString(string) => *string = scan::unescaped(string, '"'),
                Token::Word(word) => {
                    if let Some(quote) = word.quote_style {
                        let doubled = String::from_iter([quote, quote]);
                        word.value = word.value.replace(&doubled, quote.encode_utf8(&mut [0; 4]));
                    }
                }
                _ => {}
            }
        }
    }
    for token in &mut tokens {
        if let Token::Word(word) = &mut token.token
            && word.quote_style.is_none()
            && word.keyword == Keyword::NoKeyword
            && let Some(keyword) = keyword_of_clock(&word.value)
        {
            word.keyword = keyword;
        }
    }
    if text.contains('@') {
        if user_variables::are_in_names(&tokens) {
            return Err(SqlError::not_supported_yet("names that begin with @"));
        }
        tokens = user_variables::as_words(tokens);
    }
    bit_literals::as_hexadecimal(tokens).map_err(|error| tokenizer_error(text, &error))
}

/// `CHAR SET` is another way to write `CHARACTER SET`.
pub(super) fn spell_out_char_set(tokens: &mut [TokenWithSpan]) {
    let mut char_at = None;
    for at in 0..tokens.len() {
        char_at = match &tokens[at].token {
            Token::Whitespace(_) => continue,
            Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::CHAR => {
                Some(at)
            }
            Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::SET => {
                let before = char_at.and_then(|at: usize| tokens.get_mut(at));
                if let Some(Token::Word(word)) = before.map(|token| &mut token.token) {
                    word.value = String::from("CHARACTER");
                    word.keyword = Keyword::CHARACTER;
                }
                None
            }
            _ => None,
        };
    }
}

/// How many tokens a long text has at most; 0 for another one. Their memory is there.
///
/// # Errors
/// There is none: the tokens of a long text take many times its memory.
pub(super) fn room_for_tokens(text: &str) -> Result<usize> {
    /// What the allocator has for the text of a token besides the text.
    const TEXT_ROOM_BYTES: usize = 16;
    if text.len() <= LONG_TEXT_BYTES {
        return Ok(0);
    }
    let most = TextSize::of(text).tokens;
    let bytes = most * (size_of::<TokenWithSpan>() + TEXT_ROOM_BYTES) + text.len();
    cancel::check_room_for(bytes)?;
    Ok(most)
}
