//! The query of a view, written so that it means the same under every `sql_mode`.
//!
//! A view keeps its query as text, which is read under the default dialect. Under some modes the text that was given
//! has another meaning: `||` concatenates, NOT binds tighter, LIKE has no escape character. Then the text is made from
//! the syntax tree, in words that every mode reads alike:
//!
//! ```text
//!   PIPES_AS_CONCAT        a || b || 1          -->   concat(concat(a, b), 1)
//!   HIGH_NOT_PRECEDENCE    NOT a BETWEEN 1, 2   -->   (NOT (a)) BETWEEN 1, 2
//!   NO_BACKSLASH_ESCAPES   a LIKE 'x\%'         -->   a LIKE 'x\\%' ESCAPE ''
//! ```
//!
//! The text is read again and compared with the tree. What does not come out the same is refused.

use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionVisitor, walk_query};
use sqlparser::ast::{
    self, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, UnaryOperator, Value,
};

use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::parser::statement::Statement;
use crate::parser::{Parameters, parse_with_parameters};

/// A query for the default dialect. Error 1235 for one that cannot be written so.
pub(super) fn standard_text(text: String, dialect: SheafDialect) -> Result<String> {
    let has_word = |word: &str| text.to_ascii_lowercase().contains(word);
    let is_standard = !(dialect.pipes_as_concat && text.contains("||")
        || dialect.high_not_precedence && has_word("not")
        || dialect.no_backslash_escapes && has_word("like"));
    if is_standard {
        return Ok(text);
    }
    let Some(mut query) = query_of(&text, dialect)? else {
        return Ok(text);
    };
    walk_query(&mut query, &mut Standard);
    let mut shown = query.clone();
    walk_query(&mut shown, &mut Escaped);
    let written = shown.to_string();
    match query_of(&written, SheafDialect::default()) {
        Ok(Some(read)) if read == query => Ok(written),
        _ => Err(SqlError::not_supported_yet(
            "CREATE VIEW of such a query under PIPES_AS_CONCAT, HIGH_NOT_PRECEDENCE and NO_BACKSLASH_ESCAPES",
        )),
    }
}

fn query_of(text: &str, dialect: SheafDialect) -> Result<Option<ast::Query>> {
    let (statement, _) = parse_with_parameters(text, &dialect, Parameters::Unknown)?;
    Ok(match statement {
        Statement::Query(query) => Some(*query),
        _ => None,
    })
}

fn concat(operands: [Expr; 2]) -> Expr {
    let argument = |operand| FunctionArg::Unnamed(FunctionArgExpr::Expr(operand));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("concat")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: operands.map(argument).to_vec(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Writes what depends on the mode in another way.
struct Standard;

impl ExpressionVisitor for Standard {
    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        const NULL: Expr = Expr::Tuple(Vec::new());
        match expression {
            Expr::BinaryOp {
                left,
                op: BinaryOperator::StringConcat,
                right,
            } => {
                let operands = [left, right].map(|side| std::mem::replace(side.as_mut(), NULL));
                *expression = concat(operands);
            }
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => {
                let operand = std::mem::replace(expr.as_mut(), NULL);
                *expression = Expr::Nested(Box::new(Expr::UnaryOp {
                    op: UnaryOperator::Not,
                    expr: Box::new(Expr::Nested(Box::new(operand))),
                }));
            }
            Expr::Value(value) => {
                if let Value::DoubleQuotedString(text) = &mut value.value {
                    value.value = Value::SingleQuotedString(std::mem::take(text));
                }
            }
            Expr::Like {
                escape_char: Some(escape),
                ..
            } => {
                if let Value::DoubleQuotedString(text) = &mut escape.value {
                    escape.value = Value::SingleQuotedString(std::mem::take(text));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Escapes what strings hold, for their text.
struct Escaped;

impl ExpressionVisitor for Escaped {
    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let value = match expression {
            Expr::Value(value) => Some(&mut value.value),
            Expr::Like { escape_char, .. } => escape_char.as_mut().map(|escape| &mut escape.value),
            _ => None,
        };
        if let Some(Value::SingleQuotedString(text) | Value::NationalStringLiteral(text)) = value {
            *text = text.replace('\\', "\\\\").replace('\'', "''");
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_the_mode_is_written_in_another_way() {
        let dialect = SheafDialect {
            pipes_as_concat: true,
            high_not_precedence: true,
            no_backslash_escapes: true,
            ..SheafDialect::default()
        };
        for (text, standard) in [
            ("SELECT 1", "SELECT 1"),
            (
                "SELECT a || b || 1 FROM t",
                "SELECT concat(concat(a, b), 1) FROM t",
            ),
            ("SELECT 2 OR 3 || 3", "SELECT 2 OR concat(3, 3)"),
            (
                "SELECT NOT 1 BETWEEN -5 AND 5",
                "SELECT (NOT (1)) BETWEEN -5 AND 5",
            ),
            ("SELECT 1 NOT IN (2)", "SELECT 1 NOT IN (2)"),
            (
                "SELECT a LIKE 'x\\\\%', 'it''s'",
                "SELECT a LIKE 'x\\\\%' ESCAPE '', 'it''s'",
            ),
        ] {
            let written = standard_text(text.to_string(), dialect);
            assert_eq!(written.expect("a query"), standard, "{text}");
        }
    }
}
