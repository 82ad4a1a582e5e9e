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
mod advise;
mod alter_table;
mod assignment_signs;
pub mod change;
pub mod check_text;
mod common_tables;
mod create_table;
mod definition;
pub mod diagnostics;
mod error_place;
mod explain;
mod explicit_table;
mod foreign;
pub mod hint;
mod insert;
mod into_clause;
mod json_table;
mod load;
mod lock;
mod maintain;
mod parameters;
mod parsed;
mod plugin;
mod prepare;
mod query;
mod query_behind_insert;
pub mod replication;
pub mod resource_group;
pub mod rewrite;
mod role;
mod rollup;
mod row_limit;
mod row_portions;
mod set;
mod set_statement;
mod show;
pub mod statement;
mod table_list;
mod tokens;
mod transaction;
mod types;
pub mod view;
mod without_room;
mod words;

use sheaf_access::cancel;
use sheaf_table::view::ViewCheck;
use sqlparser::ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::function_names;
use crate::walk::walk_query;
use error_place::error_at;
pub use foreign::wildcard_option;
use lock::within;
pub use parameters::{Parameters, parameter_number};
pub use parsed::{Parsed, ParsedQuery, ParsedStatement};
pub use row_portions::{RowPortion, RowPortions, parsed_at_once};
pub use statement::Statement;
use statement::{Assignment, BinaryLogChange, IntoTarget, TransactionEnd};
use tokens::plain_tokens::plain_tokens;
pub(crate) use tokens::{pieces, word_table};
use tokens::{room_for_tokens, spell_out_char_set, tokens_of};
pub use tokens::{scan, statement_bytes, text_size};
pub use types::column_type;
use view::ViewEnd;
use without_room::WithoutRoom;

/// What sqlparser may recurse: parentheses, subqueries and unary operators each take a few levels.
const RECURSION_LIMIT: usize = 4 * scan::MAX_PARENTHESES;

/// Reads one statement. `text` has no executable comments left (see [`scan::resolve_executable_comments`]) and
/// ends before its semicolon. Of an INSERT of many rows, the first are read: see [`RowPortions`].
///
/// # Errors
/// 1064 with the place, 1436 for a statement nested too deep, and what single clauses raise (1115 unknown
/// character set and the like).
pub fn parse_statement(text: &str, dialect: &SheafDialect) -> Result<Statement> {
    // What ends each transaction of many programs.
    if text.eq_ignore_ascii_case("COMMIT") {
        return Ok(Statement::Commit(TransactionEnd::default()));
    }
    if let Some(statement) = row_portions::parse_in_portions(text, dialect)? {
        return Ok(statement);
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
        Parameters::Numbered => plain_tokens(text, room),
        _ => None,
    };
    let mut tokens = match plain {
        Some(tokens) => tokens,
        None => tokens_of(text, dialect, room)?,
    };
    scan::check_nesting(&tokens)?;
    spell_out_char_set(&mut tokens);
    function_names::told_apart(&mut tokens, dialect.spaces_of_functions)
        .map_err(|place| error_at(text, place))?;
    if let Some(place) = row_limit::wrong_row_count(&tokens) {
        return Err(error_at(text, place));
    }
    let (tokens, count) = parameters::substitute(tokens, parameters)?;
    let mut tokens = tokens;
    let assignments = assignments_in_front(set_statement::take_out(&mut tokens), text, dialect)?;
    let into_clause::WithoutInto { tokens, targets } = into_clause::take_out(tokens)?;
    let target = into_target(targets, dialect)?;
    let tokens = explicit_table::rewritten(tokens).map_err(|wrong| match wrong {
        explicit_table::Wrong::Syntax(place) => error_at(text, place),
        explicit_table::Wrong::InView => SqlError::not_supported_yet("TABLE in a view"),
    })?;
    let (tokens, view_end) = view::take_out_check(tokens);
    let tokens = json_table::rewritten(tokens, dialect, text)?;
    let tokens = table_list::rewritten(tokens)?;
    let tokens = query_behind_insert::rewritten(tokens);
    let tokens = assignment_signs::rewritten(rollup::rewritten(tokens));
    let mut parser = StatementParser {
        tokens: Parser::new(dialect)
            .with_recursion_limit(RECURSION_LIMIT)
            .with_tokens_with_locations(tokens),
        view_end,
        escapes_in_files: !dialect.no_backslash_escapes,
    };
    let parsed = parser.statement_to_the_end();
    // What has gone wrong then is that.
    cancel::check_statement()?;
    let statement = match (parsed, target) {
        (Ok(Statement::Query(query)), Some(target)) => {
            let target = Box::new(target);
            Statement::SelectInto { query, target }
        }
        (Ok(mut statement), _) => {
            if text.len() > LONG_TEXT_BYTES
                && let Statement::Query(query) = &mut statement
            {
                walk_query(query, &mut WithoutRoom);
                cancel::check_statement()?;
            }
            statement
        }
        (Err(failure), _) => return Err(parser.error(text, failure)),
    };
    let statement = match assignments.is_empty() {
        true => statement,
        false => Statement::SetStatement {
            assignments,
            statement: Box::new(statement),
        },
    };
    Ok((statement, count))
}

/// What SET STATEMENT in front of a statement assigns.
fn assignments_in_front(
    tokens: Vec<TokenWithSpan>,
    text: &str,
    dialect: &SheafDialect,
) -> Result<Vec<Assignment>> {
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let mut parser = StatementParser {
        tokens: Parser::new(dialect)
            .with_recursion_limit(RECURSION_LIMIT)
            .with_tokens_with_locations(tokens),
        view_end: ViewEnd::default(),
        escapes_in_files: true,
    };
    let assignments = parser.assignments_for_statement();
    assignments.map_err(|failure| parser.error(text, failure))
}

/// Trees of longer texts are kept without room for more: their lists, most of which have one member, have room for
/// four. The tree of a thousand subqueries took 18 MiB.
const LONG_TEXT_BYTES: usize = 16 << 10;

/// What stands behind INTO; `None` if nothing does.
fn into_target(tokens: Vec<TokenWithSpan>, dialect: &SheafDialect) -> Result<Option<IntoTarget>> {
    if tokens.is_empty() {
        return Ok(None);
    }
    let mut parser = StatementParser {
        tokens: Parser::new(dialect).with_tokens_with_locations(tokens),
        view_end: ViewEnd::default(),
        escapes_in_files: !dialect.no_backslash_escapes,
    };
    match parser.target_of_into() {
        Ok(target) if parser.at_end() => Ok(Some(target)),
        Err(Failure::Statement(error)) => Err(error),
        _ => Err(SqlError::parse_error("INTO", 1)),
    }
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
    /// Where the query of a view ends. WITH CHECK OPTION behind it is no longer among the tokens.
    view_end: ViewEnd,
    /// Whether files have a backslash as their escape character where none is written.
    escapes_in_files: bool,
}

/// The statements.
impl StatementParser<'_> {
    fn error(&self, text: &str, failure: Failure) -> SqlError {
        match failure {
            Failure::Syntax(error) => self.syntax_error(text, &error),
            Failure::Statement(error) => error,
        }
    }

    fn statement_to_the_end(&mut self) -> ParseResult<Statement> {
        let statement = self.statement()?;
        if self.view_end.check != ViewCheck::None {
            return Err(SqlError::parse_error("WITH CHECK OPTION", 1).into());
        }
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
            "CHECKSUM" => self.checksum(),
            "ADVISE" => self.advise(),
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
            "RESET" => self.reset(),
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
            "GET" => Ok(Statement::GetDiagnostics(Box::new(self.get_diagnostics()?))),
            "PURGE" => self.purge(),
            "CHANGE" => {
                let filter = "CHANGE REPLICATION FILTER";
                let words = ["CHANGE REPLICATION SOURCE TO", "CHANGE MASTER TO", filter];
                match self.accept_one_of(&words) {
                    Some(word) if word == filter => {
                        Ok(Statement::Replication(self.change_filter()?))
                    }
                    Some(_) => Ok(Statement::Replication(self.change_source()?)),
                    None => self.unsupported(&first),
                }
            }
            "STOP" => match self.accept_one_of(&["STOP REPLICA", "STOP SLAVE"]) {
                Some(_) => Ok(Statement::Replication(self.stop_replica()?)),
                None => self.unsupported(&first),
            },
            "HANDLER" | "XA" | "CACHE" | "IMPORT" | "CLONE" | "SIGNAL" | "RESIGNAL" | "BINLOG"
            | "HELP" | "RESTART" => self.unsupported(&first),
            _ => self.unexpected("a statement"),
        }
    }

    /// A statement of MySQL's that this version does not run.
    fn unsupported(&mut self, what: &str) -> ParseResult<Statement> {
        self.skip_rest();
        Ok(Statement::Unsupported(what.to_string()))
    }

    /// PURGE BINARY LOGS TO 'file' | BEFORE moment
    fn purge(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        if self.accept_one_of(&["BINARY", "MASTER"]).is_none() {
            return self.unexpected("BINARY");
        }
        self.expect("LOGS")?;
        let change = match self.accept_one_of(&["TO", "BEFORE"]) {
            Some("TO") => BinaryLogChange::PurgeTo(self.string()?),
            Some(_) => BinaryLogChange::PurgeBefore(Box::new(self.expression()?)),
            None => return self.unexpected("TO or BEFORE"),
        };
        Ok(Statement::BinaryLog(change))
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
}
