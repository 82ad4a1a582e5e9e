//! The text of a CHECK as the catalog keeps it.
//!
//! The expression is kept as it was written, token by token, so that reading it again gives the same expression.
//! Comments and line ends become spaces. Columns are put into backticks and lose the name of their table, which may
//! change:
//!
//! ```text
//!   t.price > 0   /* net */ AND name <> "it's"     ->     `price` > 0 AND `name` <> 'it\'s'
//! ```

use std::ops::ControlFlow;

use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::walk::{ExpressionVisitor, walk_expression};

/// The names of columns in an expression, each once, as they are written first.
pub fn column_names(expression: &ast::Expr) -> Vec<String> {
    let mut names = Names(Vec::new());
    walk_expression(&mut expression.clone(), &mut names);
    names.0
}

struct Names(Vec<String>);

impl ExpressionVisitor for Names {
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let name = match expression {
            ast::Expr::Identifier(name) => Some(&*name),
            ast::Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        if let Some(name) = name
            && !name.value.starts_with('@')
            && !self
                .0
                .iter()
                .any(|known| known.eq_ignore_ascii_case(&name.value))
        {
            self.0.push(name.value.clone());
        }
        ControlFlow::Continue(())
    }
}

/// What is kept of the expression that these tokens are.
pub(super) fn kept_text(tokens: &[Token], expression: &ast::Expr) -> String {
    let columns = column_names(expression);
    let mut text = String::new();
    let mut at = 0;
    let mut space = false;
    while at < tokens.len() {
        let token = &tokens[at];
        at += 1;
        if matches!(token, Token::Whitespace(_)) {
            space = !text.is_empty();
            continue;
        }
        if std::mem::take(&mut space) {
            text.push(' ');
        }
        match token {
            // A table or a database before a column.
            Token::Word(_) if is_qualifier(&tokens[at..]) => at += 1,
            Token::Word(word) => {
                let is_column = |name: &String| name.eq_ignore_ascii_case(&word.value);
                let is_call = tokens.get(at) == Some(&Token::LParen);
                if word.quote_style.is_some() || (!is_call && columns.iter().any(is_column)) {
                    text.push_str(&sheaf_table::show_create::quoted(&word.value));
                } else {
                    text.push_str(&word.value);
                }
            }
            Token::SingleQuotedString(string)
            | Token::DoubleQuotedString(string)
            | Token::NationalStringLiteral(string) => {
                text.push_str(&sheaf_table::show_create::text_literal(string));
            }
            other => text.push_str(&other.to_string()),
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn is_qualifier(behind: &[Token]) -> bool {
    matches!(behind, [Token::Period, Token::Word(_), ..])
}
