//! INSERT and REPLACE.

use sqlparser::ast;

use super::statement::Statement;
use super::{ParseResult, StatementParser};

impl StatementParser<'_> {
    pub(super) fn insert(&mut self) -> ParseResult<Statement> {
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
