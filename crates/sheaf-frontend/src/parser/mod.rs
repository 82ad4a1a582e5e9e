//! Text to [`Statement`].
//!
//! sqlparser reads queries, expressions and INSERT. It does not read many of the statements that MySQL's clients, dumps
//! and drivers send (LOAD DATA, SHOW INDEX, KILL QUERY, SET with scopes). It reads others into shapes that lose what
//! was written. So this is a statement parser of our own over sqlparser's tokens and its public methods. It looks at
//! the first words, reads the statement's frame itself, and calls sqlparser for everything that is an expression or a
//! query.
//!
//! Before tokens exist, [`scan`] finds out where statements end and refuses those nested too deep.

pub mod account;
mod alter_table;
mod bit_literals;
pub mod change;
pub mod check_text;
mod common_tables;
mod create_table;
mod definition;
mod explain;
mod foreign;
pub mod hint;
mod into_variables;
mod load;
mod parameters;
mod parsed;
mod plain_tokens;
mod plugin;
pub mod resource_group;
pub mod rewrite;
mod row_limit;
pub mod scan;
mod set;
mod show;
pub mod statement;
pub mod statement_bytes;
mod table_list;
mod types;

use std::ops::ControlFlow;

use sheaf_access::cancel;
use sheaf_table::statistics::DEFAULT_BUCKETS;
use sqlparser::ast::{self, Expr, FunctionArguments, Query, SetExpr, TableFactor};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace};

use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::walk::{ExpressionVisitor, walk_query};
pub use foreign::wildcard_option;
pub use parameters::{Parameters, parameter_number};
pub use parsed::{Parsed, ParsedQuery, ParsedStatement};
pub use statement::Statement;
use statement::{LockedTable, PrepareSource, TableName, TransactionEnd};

/// What sqlparser may recurse: parentheses, subqueries and unary operators each take a few levels.
const RECURSION_LIMIT: usize = 4 * scan::MAX_PARENTHESES;

/// Reads one statement. `text` has no executable comments left (see [`scan::resolve_executable_comments`]) and
/// ends before its semicolon.
///
/// # Errors
/// 1064 with the place, 1436 for a statement nested too deep, and what single clauses raise (1115 unknown
/// character set and the like).
pub fn parse_statement(text: &str, dialect: &SheafDialect) -> Result<Statement> {
    // What ends each transaction of many programs.
    if text.eq_ignore_ascii_case("COMMIT") {
        return Ok(Statement::Commit(TransactionEnd::default()));
    }
    Ok(parse_with_parameters(text, dialect, Parameters::None)?.0)
}

/// Reads a prepared statement with what stands in the places of `?`, and counts these.
///
/// # Errors
/// As [`parse_statement`], and 1210 if there are not as many values as places.
pub fn parse_with_parameters(
    text: &str,
    dialect: &SheafDialect,
    parameters: Parameters<'_>,
) -> Result<(Statement, usize)> {
    // Texts that are compiled once: they have no hints, and nothing is made of their tokens' texts.
    let room = room_for_tokens(text)?;
    let plain = match parameters {
        Parameters::Numbered => plain_tokens::plain_tokens(text, room),
        _ => None,
    };
    let tokens = match plain {
        Some(tokens) => tokens,
        None => tokens_of(text, dialect, room)?,
    };
    scan::check_nesting(&tokens)?;
    if let Some(place) = row_limit::wrong_row_count(&tokens) {
        return Err(error_at(text, place));
    }
    let (tokens, count) = parameters::substitute(tokens, parameters)?;
    let into_variables::WithoutInto { tokens, targets } = into_variables::take_out(tokens)?;
    let targets = variables_of(targets, dialect)?;
    let tokens = table_list::rewritten(tokens)?;
    let mut parser = StatementParser {
        tokens: Parser::new(dialect)
            .with_recursion_limit(RECURSION_LIMIT)
            .with_tokens_with_locations(tokens),
    };
    let parsed = parser.statement_to_the_end();
    // What has gone wrong then is that.
    cancel::check_statement()?;
    match parsed {
        Ok(Statement::Query(query)) if !targets.is_empty() => {
            Ok((Statement::SelectInto { query, targets }, count))
        }
        Ok(mut statement) => {
            if text.len() > LONG_TEXT_BYTES
                && let Statement::Query(query) = &mut statement
            {
                walk_query(query, &mut WithoutRoom);
                cancel::check_statement()?;
            }
            Ok((statement, count))
        }
        Err(Failure::Syntax(error)) => Err(parser.syntax_error(text, &error)),
        Err(Failure::Statement(error)) => Err(error),
    }
}

/// Trees of longer texts are kept without room for more: their lists, most of which have one member, have room for
/// four. The tree of a thousand subqueries took 18 MiB.
const LONG_TEXT_BYTES: usize = 16 << 10;

/// Takes the room from lists.
struct WithoutRoom;

impl ExpressionVisitor for WithoutRoom {
    fn change_query(&mut self, query: &mut Query) {
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection.shrink_to_fit();
            select.from.shrink_to_fit();
        }
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression {
            function.name.0.shrink_to_fit();
            if let FunctionArguments::List(list) = &mut function.args {
                list.args.shrink_to_fit();
            }
        }
        // What is shorter is somewhere else until the walk has come to an end.
        match cancel::is_statement_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn leave_table(&mut self, table: &mut TableFactor) {
        if let TableFactor::Table { name, .. } = table {
            name.0.shrink_to_fit();
        }
    }
}

/// The names of the variables behind INTO.
fn variables_of(tokens: Vec<TokenWithSpan>, dialect: &SheafDialect) -> Result<Vec<String>> {
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let mut parser = StatementParser {
        tokens: Parser::new(dialect).with_tokens_with_locations(tokens),
    };
    match parser.list(StatementParser::user_variable) {
        Ok(names) if parser.at_end() => Ok(names),
        Err(Failure::Statement(error)) => Err(error),
        _ => Err(SqlError::parse_error("INTO", 1)),
    }
}

/// The tokens of a text. sqlparser takes `\a` and `\f` in strings for control characters; in MySQL they are letters. So
/// texts that have them are unescaped here.
///
/// # Errors
/// 1064, and what stops the statement.
fn tokens_of(text: &str, dialect: &SheafDialect, room: usize) -> Result<Vec<TokenWithSpan>> {
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
    Tokenizer::new(dialect, text)
        .with_unescape(!has_letters)
        .tokenize_with_location_into_buf_with_mapper(&mut tokens, counted)
        .map_err(|error| tokenizer_error(text, &error))?;
    cancel::check_statement()?;
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
    bit_literals::as_hexadecimal(tokens).map_err(|error| tokenizer_error(text, &error))
}

/// How many tokens a long text has at most; 0 for another one. Their memory is there.
///
/// # Errors
/// There is none: the tokens of a long text take many times its memory.
fn room_for_tokens(text: &str) -> Result<usize> {
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

/// How large a text is, before anything is made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextSize {
    /// Its tokens, or some more: each byte begins one that is no part of a word, a number, a string or a comment.
    pub tokens: usize,
    /// Those that are not blank, but for the literals of [lists](Self::listed).
    pub meaningful: usize,
    /// Literals in lists behind IN, with their commas.
    pub listed: usize,
    /// How often it says SELECT.
    pub queries: usize,
}

impl TextSize {
    pub fn of(text: &str) -> TextSize {
        /// Where the scan is, beside a list behind IN.
        #[derive(PartialEq)]
        enum List {
            Outside,
            BehindIn,
            Inside,
        }
        let is_word_byte =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        let mut size = TextSize {
            tokens: 1,
            ..TextSize::default()
        };
        let mut list = List::Outside;
        let mut rest = text.as_bytes();
        while let [byte, following @ ..] = rest {
            size.tokens += 1;
            let length = match (byte, length_of_comment(rest)) {
                (_, Some(length)) => length,
                (b' ' | b'\t' | b'\n' | b'\r', None) => 1,
                (byte, None) => {
                    let is_word = is_word_byte(*byte);
                    let length = match byte {
                        b'\'' | b'"' | b'`' => 1 + length_of_quoted(following, *byte),
                        _ if is_word => {
                            let end = rest.iter().position(|byte| !is_word_byte(*byte));
                            end.unwrap_or(rest.len())
                        }
                        _ => 1,
                    };
                    let is = |word: &[u8]| is_word && rest[..length].eq_ignore_ascii_case(word);
                    list = match (list, byte) {
                        (List::BehindIn, b'(') => List::Inside,
                        (List::Inside, b'(' | b')' | b',' | b'-' | b'+' | b'.' | b'\'' | b'"') => {
                            List::Inside
                        }
                        (List::Inside, byte) if byte.is_ascii_digit() => List::Inside,
                        _ if is(b"IN") => List::BehindIn,
                        _ => List::Outside,
                    };
                    match list {
                        List::Inside => size.listed += 1,
                        List::Outside | List::BehindIn => size.meaningful += 1,
                    }
                    size.queries += usize::from(is(b"SELECT"));
                    length
                }
            };
            rest = &rest[length..];
        }
        size
    }
}

/// How long the comment is that a text begins with, if it has no meaning.
fn length_of_comment(text: &[u8]) -> Option<usize> {
    let end_of_line = || text.iter().position(|byte| *byte == b'\n');
    match text {
        [b'/', b'*', b'!' | b'M', ..] => None,
        [b'/', b'*', comment @ ..] => {
            let end = comment.windows(2).position(|bytes| bytes == b"*/");
            Some(end.map_or(text.len(), |end| end + 4))
        }
        [b'-', b'-', b' ' | b'\t' | b'\n' | b'\r', ..] | [b'-', b'-'] | [b'#', ..] => {
            Some(end_of_line().unwrap_or(text.len()))
        }
        _ => None,
    }
}

/// A statement from its first word on: parentheses, white space and comments without a meaning stand before it.
pub fn at_first_word(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|char: char| char == '(' || char.is_ascii_whitespace());
        match length_of_comment(rest.as_bytes()) {
            // A comment ends at the end of its text, or behind a character of ASCII.
            Some(length) => rest = rest.get(length..).unwrap_or_default(),
            None => return rest,
        }
    }
}

/// How long a string or a quoted name is behind its first quote.
fn length_of_quoted(text: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match *byte {
            byte if byte == quote => return at + 1,
            // What is behind it does not end the string.
            b'\\' if quote != b'`' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// An expression alone, such as a generated default.
pub fn parse_expression(text: &str, dialect: &SheafDialect) -> Result<ast::Expr> {
    match parse_statement(&format!("DO {text}"), dialect)? {
        Statement::Do(mut expressions) if expressions.len() == 1 => Ok(expressions.swap_remove(0)),
        _ => Err(SqlError::parse_error(text, 1)),
    }
}

/// Why a statement was not read.
enum Failure {
    /// Not the grammar: becomes 1064 with the place.
    Syntax(ParserError),
    /// The grammar, but an error all the same.
    Statement(SqlError),
}

impl From<ParserError> for Failure {
    fn from(error: ParserError) -> Self {
        Failure::Syntax(error)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Failure::Statement(error)
    }
}

type ParseResult<T> = std::result::Result<T, Failure>;

/// The parser of one statement.
struct StatementParser<'a> {
    tokens: Parser<'a>,
}

/// INSERT … SELECT is one query block: hints behind INSERT come before those behind SELECT.
fn hand_hints_to_query(insert: &mut ast::Insert) {
    let Some(query) = &mut insert.source else {
        return;
    };
    let mut body = query.body.as_mut();
    while let ast::SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    let ast::SetExpr::Select(select) = body else {
        return;
    };
    let mut own = std::mem::take(&mut insert.optimizer_hints);
    match (own.first_mut(), select.optimizer_hints.first()) {
        (Some(first), Some(behind)) => first.text = format!("{} {}", first.text, behind.text),
        (None, _) => return,
        _ => {}
    }
    select.optimizer_hints = own;
}

/// Words by their letters, whether sqlparser knows them as keywords or not.
impl StatementParser<'_> {
    /// True if the token is this unquoted word.
    fn is_word(token: &Token, word: &str) -> bool {
        matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
    }

    /// True if these words come next.
    fn peek(&self, words: &str) -> bool {
        words
            .split(' ')
            .enumerate()
            .all(|(n, word)| Self::is_word(&self.tokens.peek_nth_token_ref(n).token, word))
    }

    /// To the last place before this one where these words stand, or to the start.
    fn go_back_to(&mut self, words: &str) {
        loop {
            let before = self.tokens.index();
            self.tokens.prev_token();
            if self.peek(words) || self.tokens.index() == before || self.tokens.index() == 0 {
                return;
            }
        }
    }

    /// Reads these words if they come next.
    fn accept(&mut self, words: &str) -> bool {
        let found = self.peek(words);
        if found {
            for _ in words.split(' ') {
                self.tokens.advance_token();
            }
        }
        found
    }

    /// Reads the first of these that comes next.
    fn accept_one_of<'w>(&mut self, alternatives: &[&'w str]) -> Option<&'w str> {
        alternatives
            .iter()
            .copied()
            .find(|words| self.accept(words))
    }

    fn expect(&mut self, words: &str) -> ParseResult<()> {
        if self.accept(words) {
            Ok(())
        } else {
            self.unexpected(words)
        }
    }

    /// The next token is not what the grammar wants here.
    fn unexpected<T>(&self, wanted: &str) -> ParseResult<T> {
        Ok(self
            .tokens
            .expected_ref(wanted, self.tokens.peek_token_ref())?)
    }

    fn at_end(&self) -> bool {
        self.tokens.peek_token_ref().token == Token::EOF
    }

    fn accept_token(&mut self, token: &Token) -> bool {
        self.tokens.consume_token(token)
    }

    fn expect_token(&mut self, token: &Token) -> ParseResult<()> {
        self.tokens.expect_token(token)?;
        Ok(())
    }

    fn identifier(&mut self) -> ParseResult<String> {
        match &self.tokens.peek_token_ref().token {
            // sqlparser would take a string for an identifier.
            Token::Word(_) => Ok(self.tokens.parse_identifier()?.value),
            _ => self.unexpected("an identifier"),
        }
    }

    /// A name of a setting, character set, collation or engine: a word or a string.
    fn word_or_string(&mut self) -> ParseResult<String> {
        match &self.tokens.peek_token_ref().token {
            Token::Word(_) | Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => {
                Ok(self.tokens.parse_identifier()?.value)
            }
            _ => self.unexpected("a name"),
        }
    }

    fn string(&mut self) -> ParseResult<String> {
        Ok(self.tokens.parse_literal_string()?)
    }

    fn number(&mut self) -> ParseResult<u64> {
        Ok(self.tokens.parse_literal_uint()?)
    }

    fn expression(&mut self) -> ParseResult<ast::Expr> {
        let expression = self.tokens.parse_expr()?;
        self.native_expression(expression)
    }

    fn table_name(&mut self) -> ParseResult<TableName> {
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

    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept_token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn table_names(&mut self) -> ParseResult<Vec<TableName>> {
        self.list(Self::table_name)
    }

    /// Reads the name of a user variable, which the tokeniser delivers with its `@`.
    fn user_variable(&mut self) -> ParseResult<String> {
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
    fn optimizer_hints(&self) -> Vec<ast::OptimizerHint> {
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
    fn skip_rest(&mut self) {
        while !self.at_end() {
            self.tokens.advance_token();
        }
    }
}

/// The statements.
impl StatementParser<'_> {
    fn statement_to_the_end(&mut self) -> ParseResult<Statement> {
        let statement = self.statement()?;
        if self.at_end() {
            Ok(statement)
        } else {
            self.unexpected("the end of the statement")
        }
    }

    fn statement(&mut self) -> ParseResult<Statement> {
        let first = match &self.tokens.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            Token::LParen => String::from("("),
            Token::EOF => return Err(SqlError::empty_query().into()),
            _ => return self.unexpected("a statement"),
        };
        match first.as_str() {
            "WITH" if self.is_with_change() => self.with_change(),
            "SELECT" | "(" | "VALUES" | "TABLE" | "WITH" => self.query(),
            "INSERT" | "REPLACE" => self.insert(),
            "UPDATE" => self.update(),
            "DELETE" => self.delete(),
            "LOAD" => self.load(),
            "EXPLAIN" | "DESCRIBE" | "DESC" => self.explain(),
            "CREATE" => self.create(),
            "DROP" => self.drop(),
            "ALTER" => self.alter(),
            "RENAME" => self.rename(),
            "TRUNCATE" => {
                self.tokens.advance_token();
                self.accept("TABLE");
                let truncate = Statement::TruncateTable(self.table_name()?);
                let wait = self.lock_wait()?;
                Ok(within(wait, truncate))
            }
            "ANALYZE" | "CHECK" | "OPTIMIZE" | "REPAIR" => self.maintain(),
            "BACKUP" => {
                self.tokens.advance_token();
                self.expect("TO")?;
                let folder = self.string()?;
                Ok(Statement::Backup { folder })
            }
            "USE" => {
                self.tokens.advance_token();
                Ok(Statement::Use(self.identifier()?))
            }
            "SET" => self.set(),
            "SHOW" => self.show(),
            "FLUSH" => self.flush(),
            "KILL" => self.kill(),
            "SHUTDOWN" => {
                self.tokens.advance_token();
                Ok(Statement::Shutdown)
            }
            "PREPARE" => self.prepare(),
            "EXECUTE" => self.execute(),
            "DEALLOCATE" => self.deallocate(),
            "BEGIN" => {
                self.tokens.advance_token();
                if self.peek("NOT ATOMIC") {
                    return self.unsupported("compound statements");
                }
                self.accept("WORK");
                Ok(Statement::Begin {
                    consistent_snapshot: false,
                    read_only: None,
                })
            }
            "START" => self.start_transaction(),
            "COMMIT" | "ROLLBACK" => self.end_transaction(),
            "SAVEPOINT" => {
                self.tokens.advance_token();
                Ok(Statement::Savepoint(self.identifier()?))
            }
            "RELEASE" => {
                self.tokens.advance_token();
                self.expect("SAVEPOINT")?;
                Ok(Statement::ReleaseSavepoint(self.identifier()?))
            }
            "LOCK" => self.lock(),
            "UNLOCK" => {
                self.tokens.advance_token();
                if self.peek("INSTANCE") {
                    return self.unsupported("UNLOCK INSTANCE");
                }
                if self.accept_one_of(&["TABLES", "TABLE"]).is_none() {
                    return self.unexpected("TABLES");
                }
                Ok(Statement::UnlockTables)
            }
            "DO" => {
                self.tokens.advance_token();
                Ok(Statement::Do(self.list(Self::expression)?))
            }
            "CALL" => self.call(),
            "INSTALL" | "UNINSTALL" => self.plugin(),
            "GRANT" => self.grant(),
            "REVOKE" => self.revoke(),
            "HANDLER" | "XA" | "CHANGE" | "PURGE" | "RESET" | "STOP" | "CACHE" | "IMPORT"
            | "CLONE" | "SIGNAL" | "RESIGNAL" | "GET" | "BINLOG" | "CHECKSUM" | "HELP"
            | "RESTART" => self.unsupported(&first),
            _ => self.unexpected("a statement"),
        }
    }

    /// A statement of MySQL's that this version does not run.
    fn unsupported(&mut self, what: &str) -> ParseResult<Statement> {
        self.skip_rest();
        Ok(Statement::Unsupported(what.to_string()))
    }

    fn query(&mut self) -> ParseResult<Statement> {
        Ok(Statement::Query(self.query_expression()?))
    }

    /// A query, with the endings that only MySQL has.
    fn query_expression(&mut self) -> ParseResult<Box<ast::Query>> {
        let query = self.tokens.parse_query()?;
        let mut query = self.native_query(query)?;
        self.locked_tables(&mut query.locks)?;
        if self.peek("INTO OUTFILE") || self.peek("INTO DUMPFILE") {
            return Err(SqlError::not_supported_yet("SELECT ... INTO a file").into());
        }
        if self.peek("PROCEDURE") {
            return Err(SqlError::not_supported_yet("SELECT ... PROCEDURE").into());
        }
        if self.accept("LOCK IN SHARE MODE") {
            query.locks.push(ast::LockClause {
                lock_type: ast::LockType::Share,
                of: None,
                nonblock: None,
            });
        }
        if self.peek("INTO") {
            return Err(SqlError::not_supported_yet("SELECT ... INTO").into());
        }
        Ok(query)
    }

    /// `.. FOR UPDATE OF a`, then `, b NOWAIT FOR SHARE OF c, d`: a clause for each table.
    fn locked_tables(&mut self, locks: &mut Vec<ast::LockClause>) -> ParseResult<()> {
        let Some(mut clause) = locks.last().cloned() else {
            return Ok(());
        };
        let mut first = locks.len() - 1;
        while clause.of.is_some() && self.tokens.peek_token_ref().token == Token::Comma {
            while self.accept_token(&Token::Comma) {
                clause.of = Some(self.tokens.parse_object_name(false)?);
                locks.push(clause.clone());
            }
            let nonblock = match self.accept_one_of(&["NOWAIT", "SKIP LOCKED"]) {
                Some("NOWAIT") => Some(ast::NonBlock::Nowait),
                Some(_) => Some(ast::NonBlock::SkipLocked),
                None => None,
            };
            for lock in &mut locks[first..] {
                lock.nonblock = nonblock;
            }
            clause.lock_type = match self.accept_one_of(&["FOR UPDATE OF", "FOR SHARE OF"]) {
                Some("FOR UPDATE OF") => ast::LockType::Update,
                Some(_) => ast::LockType::Share,
                None => break,
            };
            first = locks.len();
            clause.of = Some(self.tokens.parse_object_name(false)?);
            locks.push(clause.clone());
        }
        Ok(())
    }

    fn insert(&mut self) -> ParseResult<Statement> {
        let replace = self.peek("REPLACE");
        for modifier in ["REPLACE IGNORE", "REPLACE HIGH_PRIORITY"] {
            if self.peek(modifier) {
                self.tokens.advance_token();
                return self.unexpected("INTO");
            }
        }
        match self.tokens.parse_statement()? {
            ast::Statement::Insert(mut insert) => {
                if replace && insert.on.is_some() {
                    self.go_back_to("ON DUPLICATE");
                }
                if replace && insert.insert_alias.is_some() {
                    self.go_back_to("AS");
                }
                if replace && (insert.on.is_some() || insert.insert_alias.is_some()) {
                    return self.unexpected("the end of REPLACE");
                }
                insert.replace_into |= replace;
                let mut insert = self.native_insert(insert)?;
                hand_hints_to_query(&mut insert);
                Ok(Statement::Insert(Box::new(insert)))
            }
            other => self.unsupported(&other.to_string()),
        }
    }

    fn maintain(&mut self) -> ParseResult<Statement> {
        let Some(verb) = self.accept_one_of(&["ANALYZE", "CHECK", "OPTIMIZE", "REPAIR"]) else {
            return self.unexpected("a statement");
        };
        let verb = match verb {
            "ANALYZE" => "analyze",
            "CHECK" => "check",
            "OPTIMIZE" => "optimize",
            _ => "repair",
        };
        let _ = self.accept_one_of(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if self.accept_one_of(&["TABLE", "TABLES"]).is_none() {
            return self.unexpected("TABLE");
        }
        let names = self.table_names()?;
        if verb == "optimize" {
            let wait = self.lock_wait()?;
            return Ok(within(wait, Statement::Maintain { verb, names }));
        }
        if verb == "analyze"
            && let Some(change) = self.accept_one_of(&["UPDATE HISTOGRAM", "DROP HISTOGRAM"])
        {
            return self.histograms(names, change == "UPDATE HISTOGRAM");
        }
        // CHECK TABLE's and REPAIR TABLE's thoroughness.
        if matches!(verb, "check" | "repair") {
            while self
                .accept_one_of(&[
                    "FOR UPGRADE",
                    "QUICK",
                    "FAST",
                    "MEDIUM",
                    "EXTENDED",
                    "CHANGED",
                    "USE_FRM",
                ])
                .is_some()
            {}
        }
        Ok(Statement::Maintain { verb, names })
    }

    /// The rest of ANALYZE TABLE ... UPDATE HISTOGRAM and DROP HISTOGRAM.
    fn histograms(&mut self, mut names: Vec<TableName>, updates: bool) -> ParseResult<Statement> {
        self.expect("ON")?;
        let columns = self.list(Self::identifier)?;
        let buckets = if !updates {
            None
        } else if self.accept("WITH") {
            let buckets = self.number()?;
            self.expect("BUCKETS")?;
            Some(buckets)
        } else {
            Some(DEFAULT_BUCKETS as u64)
        };
        if self.peek("USING DATA") {
            return self.unsupported("ANALYZE TABLE ... UPDATE HISTOGRAM ... USING DATA");
        }
        match names.pop() {
            Some(table) if names.is_empty() => Ok(Statement::Histograms {
                table,
                columns,
                buckets,
            }),
            _ => self.unsupported("Changing histograms of several tables at once"),
        }
    }

    fn flush(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        let _ = self.accept_one_of(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        let (mut status, mut optimizer_costs) = (false, false);
        let mut with_read_lock = None;
        self.list(|parser| {
            if parser.accept("STATUS") {
                status = true;
                return Ok(());
            }
            if parser.accept("OPTIMIZER_COSTS") {
                optimizer_costs = true;
                return Ok(());
            }
            let known = parser.accept_one_of(&[
                "PRIVILEGES",
                "HOSTS",
                "USER_RESOURCES",
                "BINARY LOGS",
                "ENGINE LOGS",
                "ERROR LOGS",
                "GENERAL LOGS",
                "SLOW LOGS",
                "RELAY LOGS",
                "LOGS",
                "QUERY CACHE",
            ]);
            if known.is_none() {
                if parser.accept_one_of(&["TABLES", "TABLE"]).is_none() {
                    return parser.unexpected("STATUS");
                }
                let mut tables = Vec::new();
                if matches!(parser.tokens.peek_token_ref().token, Token::Word(_))
                    && !parser.peek("WITH")
                {
                    tables = parser.table_names()?;
                }
                let locks = parser.accept_one_of(&["WITH READ LOCK", "FOR EXPORT"]);
                if locks == Some("FOR EXPORT") && tables.is_empty() {
                    return parser.unexpected("WITH READ LOCK");
                }
                with_read_lock = locks.map(|_| tables);
            }
            Ok(())
        })?;
        if let Some(tables) = with_read_lock {
            return Ok(Statement::FlushWithReadLock(tables));
        }
        Ok(Statement::Flush {
            status,
            optimizer_costs,
        })
    }

    fn kill(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        let _ = self.accept_one_of(&["HARD", "SOFT"]);
        let connection = !self.accept("QUERY");
        if connection {
            self.accept("CONNECTION");
        }
        Ok(Statement::Kill {
            connection,
            id: Box::new(self.expression()?),
        })
    }

    fn prepare(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        let name = self.identifier()?;
        self.expect("FROM")?;
        let source = match &self.tokens.peek_token_ref().token {
            Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => {
                PrepareSource::Text(self.string()?)
            }
            _ => PrepareSource::Variable(self.user_variable()?),
        };
        Ok(Statement::Prepare {
            name: name.to_lowercase(),
            source,
        })
    }

    fn execute(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        let name = self.identifier()?.to_lowercase();
        let using = if self.accept("USING") {
            self.list(Self::user_variable)?
        } else {
            Vec::new()
        };
        Ok(Statement::Execute { name, using })
    }

    fn deallocate(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        self.expect("PREPARE")?;
        Ok(Statement::Deallocate {
            name: self.identifier()?.to_lowercase(),
        })
    }

    /// `START TRANSACTION [WITH CONSISTENT SNAPSHOT | READ ONLY | READ WRITE, …]`
    fn start_transaction(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        for what in ["SLAVE", "REPLICA", "GROUP_REPLICATION"] {
            if self.peek(what) {
                return self.unsupported(&format!("START {what}"));
            }
        }
        self.expect("TRANSACTION")?;
        let (mut consistent_snapshot, mut read_only) = (false, None);
        while let Some(characteristic) =
            self.accept_one_of(&["WITH CONSISTENT SNAPSHOT", "READ ONLY", "READ WRITE"])
        {
            match characteristic {
                "READ ONLY" => read_only = Some(true),
                "READ WRITE" => read_only = Some(false),
                _ => consistent_snapshot = true,
            }
            if !self.accept_token(&Token::Comma) {
                break;
            }
        }
        Ok(Statement::Begin {
            consistent_snapshot,
            read_only,
        })
    }

    /// `COMMIT | ROLLBACK [WORK] [AND [NO] CHAIN] [[NO] RELEASE]`, `ROLLBACK [WORK] TO [SAVEPOINT] name`
    fn end_transaction(&mut self) -> ParseResult<Statement> {
        let commit = self.accept("COMMIT");
        if !commit {
            self.expect("ROLLBACK")?;
        }
        self.accept("WORK");
        if !commit && self.accept("TO") {
            self.accept("SAVEPOINT");
            return Ok(Statement::RollbackTo(self.identifier()?));
        }
        let chain = self.accept_one_of(&["AND CHAIN", "AND NO CHAIN"]) == Some("AND CHAIN");
        // The next transaction needs the connection.
        if chain && self.peek("RELEASE") {
            return self.unexpected("NO RELEASE");
        }
        let release = self.accept_one_of(&["RELEASE", "NO RELEASE"]) == Some("RELEASE");
        let end = TransactionEnd { chain, release };
        Ok(match commit {
            true => Statement::Commit(end),
            false => Statement::Rollback(end),
        })
    }

    fn lock(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        if self.peek("INSTANCE") {
            return self.unsupported("LOCK INSTANCE");
        }
        if self.accept_one_of(&["TABLES", "TABLE"]).is_none() {
            return self.unexpected("TABLES");
        }
        let tables = self.list(|parser| {
            let name = parser.table_name()?;
            let mut alias = None;
            let is_named = parser.accept("AS");
            let kinds = ["READ", "WRITE", "LOW_PRIORITY"];
            if is_named || !kinds.iter().any(|kind| parser.peek(kind)) {
                alias = Some(parser.identifier()?);
            }
            // MariaDB lets those that read beside CONCURRENT; the lock of all versions of MySQL is more.
            let kinds = [
                "READ LOCAL",
                "READ",
                "WRITE CONCURRENT",
                "WRITE",
                "LOW_PRIORITY WRITE",
            ];
            match parser.accept_one_of(&kinds) {
                Some(kind) => Ok(LockedTable {
                    name,
                    alias,
                    write: kind.contains("WRITE"),
                }),
                None => parser.unexpected("READ or WRITE"),
            }
        })?;
        let wait = self.lock_wait()?;
        Ok(within(wait, Statement::LockTables(tables)))
    }

    /// WAIT and NOWAIT, if that is what comes next: the seconds.
    fn lock_wait(&mut self) -> ParseResult<Option<u64>> {
        if self.accept("NOWAIT") {
            return Ok(Some(0));
        }
        match self.accept("WAIT") {
            true => self.number().map(Some),
            false => Ok(None),
        }
    }
}

/// A statement that waits for locks as it says itself.
fn within(wait: Option<u64>, statement: Statement) -> Statement {
    match wait {
        Some(seconds) => Statement::Within {
            seconds,
            statement: Box::new(statement),
        },
        None => statement,
    }
}

/// Places in errors.
impl StatementParser<'_> {
    fn syntax_error(&self, text: &str, error: &ParserError) -> SqlError {
        match error {
            ParserError::RecursionLimitExceeded => SqlError::stack_overrun(RECURSION_LIMIT),
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
                let place = place_in_message(message)
                    .unwrap_or_else(|| self.tokens.peek_token_ref().span.start);
                error_at(text, place)
            }
        }
    }
}

fn tokenizer_error(text: &str, error: &TokenizerError) -> SqlError {
    error_at(text, error.location)
}

/// sqlparser puts the place of an error at the end of its text: ` at Line: 1, Column: 15`.
fn place_in_message(message: &str) -> Option<Location> {
    let (_, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some(Location {
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    })
}

/// MySQL's syntax error repeats the statement from the place on. Line 0 is sqlparser's place of the end.
fn error_at(text: &str, place: Location) -> SqlError {
    if place.line == 0 {
        let lines = text.lines().count().max(1) as u64;
        return SqlError::parse_error("", lines);
    }
    let mut offset = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if number == place.line {
            let column = place.column.saturating_sub(1) as usize;
            offset += line
                .char_indices()
                .nth(column)
                .map_or(line.len(), |(at, _)| at);
            break;
        }
        offset += line.len();
    }
    SqlError::parse_error(&text[offset.min(text.len())..], place.line)
}
