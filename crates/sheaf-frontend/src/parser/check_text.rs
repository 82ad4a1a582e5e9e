//! The text of a CHECK as the catalog keeps it.
//!
//! The expression is kept as it was written, token by token, so that reading it again gives the same expression.
//! Comments and line ends become spaces. Columns are put into backticks and lose the name of their table, which may
//! change:
//!
//! ```text
//!   t.price > 0   /* net */ AND name <> "it's"     ->     `price` > 0 AND `name` <> 'it\'s'
//! ```
//!
//! Parentheses around all of it are left out: SHOW CREATE TABLE adds some, and a dump that is read again would have
//! more of them each time.

use std::ops::ControlFlow;

use sheaf_types::text::quoting::quoted_name;
use sqlparser::ast;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use crate::walk::{ExpressionReader, read_expression};

/// The names of columns in an expression, each once, as they are written first.
pub fn column_names(expression: &ast::Expr) -> Vec<String> {
    let mut names = Names(Vec::new());
    read_expression(expression, &mut names);
    names.0
}

struct Names(Vec<String>);

impl ExpressionReader for Names {
    fn leave_expression(&mut self, expression: &ast::Expr) -> ControlFlow<()> {
        let name = match expression {
            ast::Expr::Identifier(name) => Some(name),
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

/// The places of the names of columns. Words alone do not tell: a column may be called `day` or `and`.
struct Places(Vec<Span>);

impl ExpressionReader for Places {
    fn leave_expression(&mut self, expression: &ast::Expr) -> ControlFlow<()> {
        match expression {
            ast::Expr::Identifier(name) => self.0.push(name.span),
            ast::Expr::CompoundIdentifier(parts) => {
                self.0.extend(parts.iter().map(|name| name.span));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// What is kept of the expression that these tokens are.
pub(super) fn kept_text(tokens: &[TokenWithSpan], expression: &ast::Expr) -> String {
    let mut columns = Places(Vec::new());
    read_expression(expression, &mut columns);
    let tokens = without_parentheses(tokens);
    let mut text = String::new();
    let mut at = 0;
    let mut space = false;
    while at < tokens.len() {
        let TokenWithSpan { token, span } = &tokens[at];
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
            Token::Word(word) if word.quote_style.is_some() || columns.0.contains(span) => {
                text.push_str(&quoted_name(&word.value));
            }
            Token::Word(word) => text.push_str(&word.value),
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

/// As [`kept_text`], with the parentheses that MySQL prints around what has an operator outermost.
pub(super) fn kept_operation(tokens: &[TokenWithSpan], expression: &ast::Expr) -> String {
    let text = kept_text(tokens, expression);
    match is_operation(expression) {
        true => format!("({text})"),
        false => text,
    }
}

fn is_operation(expression: &ast::Expr) -> bool {
    use ast::Expr;
    match expression {
        Expr::Nested(inner) => is_operation(inner),
        Expr::UnaryOp { op, .. } => matches!(op, ast::UnaryOperator::Not),
        Expr::BinaryOp { .. }
        | Expr::Between { .. }
        | Expr::Case { .. }
        | Expr::Collate { .. }
        | Expr::InList { .. }
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::Like { .. }
        | Expr::RLike { .. } => true,
        _ => false,
    }
}

/// What is between parentheses that are around all of it.
fn without_parentheses(mut tokens: &[TokenWithSpan]) -> &[TokenWithSpan] {
    loop {
        let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
        while let [first, rest @ ..] = tokens
            && is_space(first)
        {
            tokens = rest;
        }
        while let [rest @ .., last] = tokens
            && is_space(last)
        {
            tokens = rest;
        }
        let [first, inner @ .., last] = tokens else {
            return tokens;
        };
        if (&first.token, &last.token) != (&Token::LParen, &Token::RParen) {
            return tokens;
        }
        let mut depth = 0_usize;
        for token in inner {
            match token.token {
                Token::LParen => depth += 1,
                // The first one ends before the end.
                Token::RParen if depth == 0 => return tokens,
                Token::RParen => depth -= 1,
                _ => {}
            }
        }
        tokens = inner;
    }
}

fn is_qualifier(behind: &[TokenWithSpan]) -> bool {
    let [period, word, ..] = behind else {
        return false;
    };
    period.token == Token::Period && matches!(word.token, Token::Word(_))
}
