//! UPDATE and DELETE, with MySQL's options and its two forms for several tables.

use sheaf_types::error::codes;
use sqlparser::ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::statement::{Delete, TableName, Update};
use super::{ParseResult, Statement, StatementParser};
use crate::error::SqlError;

impl StatementParser<'_> {
    /// `UPDATE [LOW_PRIORITY] [IGNORE] tables SET column = value, … [WHERE …] [ORDER BY …] [LIMIT n]`
    pub fn update(&mut self) -> ParseResult<Statement> {
        self.expect("UPDATE")?;
        let hints = self.optimizer_hints();
        self.accept("LOW_PRIORITY");
        let ignore = self.accept("IGNORE");
        let tables = self.list(Self::table_and_joins)?;
        self.expect("SET")?;
        let assignments = self.list(|parser| {
            let mut assignment = parser.tokens.parse_assignment()?;
            assignment.value = parser.native_expression(assignment.value)?;
            Ok(assignment)
        })?;
        let selection = self.selection()?;
        let (order_by, limit) = self.order_and_limit()?;
        Ok(Statement::Update(Box::new(Update {
            hints,
            ignore,
            tables,
            assignments,
            selection,
            order_by,
            limit,
        })))
    }

    /// ```text
    /// DELETE [options] FROM table [[AS] alias] [WHERE …] [ORDER BY …] [LIMIT n] [RETURNING …]
    /// DELETE [options] table[.*], … FROM tables [WHERE …]
    /// DELETE [options] FROM table[.*], … USING tables [WHERE …]
    /// ```
    pub fn delete(&mut self) -> ParseResult<Statement> {
        self.expect("DELETE")?;
        let hints = self.optimizer_hints();
        let mut ignore = false;
        while let Some(option) = self.accept_one_of(&["LOW_PRIORITY", "QUICK", "IGNORE"]) {
            ignore |= option == "IGNORE";
        }
        let mut targets = Vec::new();
        if !self.accept("FROM") {
            targets = self.delete_targets()?;
            self.expect("FROM")?;
        } else if let Some(names) = self.targets_before_using()? {
            targets = names;
        }
        // Only tables lose rows.
        if targets.is_empty() && self.tokens.peek_token_ref().token == Token::LParen {
            return self.unexpected("a table");
        }
        let tables = self.list(Self::table_and_joins)?;
        let selection = self.selection()?;
        let (mut order_by, mut limit, mut returning) = (Vec::new(), None, None);
        if targets.is_empty() {
            (order_by, limit) = self.order_and_limit()?;
            if self.accept("RETURNING") {
                returning = Some(self.list(|parser| {
                    let item = parser.tokens.parse_select_item()?;
                    parser.native_item(item)
                })?);
            }
        }
        Ok(Statement::Delete(Box::new(Delete {
            hints,
            ignore,
            targets,
            tables,
            selection,
            order_by,
            limit,
            returning,
        })))
    }

    fn table_and_joins(&mut self) -> ParseResult<ast::TableWithJoins> {
        let table = self.tokens.parse_table_and_joins()?;
        self.native_table(table)
    }

    fn selection(&mut self) -> ParseResult<Option<ast::Expr>> {
        if self.accept("WHERE") {
            self.expression().map(Some)
        } else {
            Ok(None)
        }
    }

    fn order_and_limit(&mut self) -> ParseResult<(Vec<ast::OrderByExpr>, Option<ast::Expr>)> {
        let order_by = if self.accept("ORDER BY") {
            self.list(|parser| {
                let order = parser.tokens.parse_order_by_expr()?;
                parser.native_order(order)
            })?
        } else {
            Vec::new()
        };
        let limit = if self.accept("LIMIT") {
            Some(self.expression()?)
        } else {
            None
        };
        if self.peek("OFFSET") || self.tokens.peek_token_ref().token == Token::Comma {
            return self.unexpected("the end of the statement");
        }
        Ok((order_by, limit))
    }

    fn delete_targets(&mut self) -> ParseResult<Vec<TableName>> {
        Ok(delete_targets(&mut self.tokens)?)
    }

    /// The names of `FROM t1, t2 USING …`; `None`, with nothing read, if these are not names in front of a USING.
    fn targets_before_using(&mut self) -> ParseResult<Option<Vec<TableName>>> {
        let names = self.tokens.maybe_parse(|tokens| {
            let names = delete_targets(tokens)?;
            tokens.expect_keyword(sqlparser::keywords::Keyword::USING)?;
            Ok(names)
        })?;
        Ok(names)
    }
}

/// `table`, `database.table`, each with `.*` if the writer likes.
fn delete_targets(tokens: &mut Parser<'_>) -> Result<Vec<TableName>, ParserError> {
    tokens.parse_comma_separated(|tokens| {
        let mut parts = vec![tokens.parse_identifier()?.value];
        while tokens.consume_token(&Token::Period) {
            if tokens.consume_token(&Token::Mul) {
                break;
            }
            parts.push(tokens.parse_identifier()?.value);
        }
        let table = parts.pop().unwrap_or_default();
        match (parts.pop(), parts.is_empty()) {
            (database, true) => Ok(TableName { database, table }),
            _ => tokens.expected_ref("a table", tokens.peek_token_ref()),
        }
    })
}

/// A name of one or two parts.
///
/// # Errors
/// 1103 for any other.
pub fn name_of(name: &ast::ObjectName) -> Result<TableName, SqlError> {
    let parts: Vec<&ast::Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [table] => Ok(TableName {
            database: None,
            table: table.value.clone(),
        }),
        [database, table] => Ok(TableName {
            database: Some(database.value.clone()),
            table: table.value.clone(),
        }),
        _ => Err(SqlError::new(
            codes::WRONG_TABLE_NAME,
            format!("Incorrect table name '{name}'"),
        )),
    }
}
