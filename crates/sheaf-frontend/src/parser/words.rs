//! Words by their letters, whether sqlparser knows them as keywords or not, and names, numbers and lists made of them.

use sheaf_types::text::hexadecimal::bytes_of;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, Whitespace};

use super::statement::TableName;
use super::{ParseResult, StatementParser};
use crate::token::is_word;

impl StatementParser<'_> {
    /// True if the token is this unquoted word.
    pub(super) fn is_word(token: &Token, word: &str) -> bool {
        is_word(token, word)
    }

    /// True if these words come next.
    pub(super) fn peek(&self, words: &str) -> bool {
        words
            .split(' ')
            .enumerate()
            .all(|(n, word)| Self::is_word(&self.tokens.peek_nth_token_ref(n).token, word))
    }

    /// To the last place before this one where these words stand, or to the start.
    pub(super) fn go_back_to(&mut self, words: &str) {
        loop {
            let before = self.tokens.index();
            self.tokens.prev_token();
            if self.peek(words) || self.tokens.index() == before || self.tokens.index() == 0 {
                return;
            }
        }
    }

    /// Reads these words if they come next.
    pub(super) fn accept(&mut self, words: &str) -> bool {
        let found = self.peek(words);
        if found {
            for _ in words.split(' ') {
                self.tokens.advance_token();
            }
        }
        found
    }

    /// Reads the first of these that comes next.
    pub(super) fn accept_one_of<'w>(&mut self, alternatives: &[&'w str]) -> Option<&'w str> {
        alternatives
            .iter()
            .copied()
            .find(|words| self.accept(words))
    }

    pub(super) fn expect(&mut self, words: &str) -> ParseResult<()> {
        if self.accept(words) {
            Ok(())
        } else {
            self.unexpected(words)
        }
    }

    /// The next token is not what the grammar wants here.
    pub(super) fn unexpected<T>(&self, wanted: &str) -> ParseResult<T> {
        Ok(self
            .tokens
            .expected_ref(wanted, self.tokens.peek_token_ref())?)
    }

    pub(super) fn at_end(&self) -> bool {
        self.tokens.peek_token_ref().token == Token::EOF
    }

    pub(super) fn accept_token(&mut self, token: &Token) -> bool {
        self.tokens.consume_token(token)
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> ParseResult<()> {
        self.tokens.expect_token(token)?;
        Ok(())
    }

    pub(super) fn identifier(&mut self) -> ParseResult<String> {
        match &self.tokens.peek_token_ref().token {
            // sqlparser would take a string for an identifier.
            Token::Word(_) => Ok(self.tokens.parse_identifier()?.value),
            _ => self.unexpected("an identifier"),
        }
    }

    /// A name of a setting, character set, collation or engine: a word or a string.
    pub(super) fn word_or_string(&mut self) -> ParseResult<String> {
        match &self.tokens.peek_token_ref().token {
            Token::Word(_) | Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => {
                Ok(self.tokens.parse_identifier()?.value)
            }
            _ => self.unexpected("a name"),
        }
    }

    /// A character set or a collation of a definition, which DEFAULT is none of.
    pub(super) fn charset_name(&mut self) -> ParseResult<String> {
        match self.peek("DEFAULT") {
            true => self.unexpected("a name"),
            false => self.word_or_string(),
        }
    }

    pub(super) fn string(&mut self) -> ParseResult<String> {
        match &self.tokens.peek_token_ref().token {
            // sqlparser would take a word for a string.
            Token::Word(_) => self.unexpected("a string"),
            _ => Ok(self.tokens.parse_literal_string()?),
        }
    }

    /// A string, or the bytes of a literal in hexadecimal digits or bits.
    pub(super) fn string_or_bytes(&mut self) -> ParseResult<Vec<u8>> {
        if let Token::HexStringLiteral(digits) = &self.tokens.peek_token_ref().token
            && let Some(bytes) = bytes_of(digits)
        {
            self.tokens.advance_token();
            return Ok(bytes);
        }
        Ok(self.string()?.into_bytes())
    }

    pub(super) fn number(&mut self) -> ParseResult<u64> {
        Ok(self.tokens.parse_literal_uint()?)
    }

    pub(super) fn expression(&mut self) -> ParseResult<ast::Expr> {
        let expression = self.tokens.parse_expr()?;
        self.native_expression(expression)
    }

    pub(super) fn table_name(&mut self) -> ParseResult<TableName> {
        let first = self.identifier()?;
        if self.accept_token(&Token::Period) {
            Ok(TableName {
                database: Some(first),
                table: self.identifier()?,
            })
        } else {
            Ok(TableName {
                database: None,
                table: first,
            })
        }
    }

    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept_token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn table_names(&mut self) -> ParseResult<Vec<TableName>> {
        self.list(Self::table_name)
    }

    /// Reads the name of a user variable, which the tokeniser delivers with its `@`.
    pub(super) fn user_variable(&mut self) -> ParseResult<String> {
        let Token::Word(word) = &self.tokens.peek_token_ref().token else {
            return self.unexpected("a user variable");
        };
        let Some(name) = word
            .value
            .strip_prefix('@')
            .filter(|name| word.quote_style.is_none() && !name.starts_with('@'))
        else {
            return self.unexpected("a user variable");
        };
        let mut name = name.to_string();
        self.tokens.advance_token();
        if name.is_empty() {
            // @'name' and @`name`
            name = self.word_or_string()?;
        }
        while self.accept_token(&Token::Period) {
            name.push('.');
            name.push_str(&self.identifier()?);
        }
        Ok(name.to_lowercase())
    }

    /// The comments right behind the word that was read last, if they hold optimizer hints. They are not read: what
    /// comes next passes over them.
    pub(super) fn optimizer_hints(&self) -> Vec<ast::OptimizerHint> {
        let comments = (0..).map_while(|n| match self.tokens.peek_nth_token_no_skip(n).token {
            Token::Whitespace(space) => Some(space),
            _ => None,
        });
        let hints = comments.filter_map(|space| match space {
            Whitespace::MultiLineComment(comment) => comment.strip_prefix('+').map(str::to_string),
            _ => None,
        });
        hints
            .map(|text| ast::OptimizerHint {
                prefix: String::new(),
                text,
                style: ast::OptimizerHintStyle::MultiLine,
            })
            .collect()
    }

    /// Leaves out what is of no interest up to the end of the statement.
    pub(super) fn skip_rest(&mut self) {
        while !self.at_end() {
            self.tokens.advance_token();
        }
    }
}
