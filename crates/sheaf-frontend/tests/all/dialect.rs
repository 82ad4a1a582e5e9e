//! The operators' precedence and the literals of MySQL's dialect.

use sheaf_frontend::dialect::SheafDialect;
use sqlparser::ast::Expr;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

/// Parses and prints with every operation in parentheses, so that the shape of the tree is visible.
fn shape(sql: &str) -> String {
    fn show(expr: &Expr) -> String {
        match expr {
            Expr::BinaryOp { left, op, right } => {
                format!("({} {op} {})", show(left), show(right))
            }
            Expr::UnaryOp { op, expr } => format!("({op} {})", show(expr)),
            Expr::Like { expr, pattern, .. } => {
                format!("({} LIKE {})", show(expr), show(pattern))
            }
            Expr::Between {
                expr, low, high, ..
            } => format!("({} BETWEEN {} AND {})", show(expr), show(low), show(high)),
            Expr::IsNull(expr) => format!("({} IS NULL)", show(expr)),
            Expr::Nested(expr) => show(expr),
            Expr::Cast { expr, .. } => format!("(BINARY {})", show(expr)),
            other => other.to_string(),
        }
    }
    let dialect = SheafDialect::default();
    let mut parser = Parser::new(&dialect).try_with_sql(sql).unwrap();
    let expr = parser.parse_expr().unwrap();
    assert_eq!(parser.peek_token_ref().token, Token::EOF, "{sql}");
    show(&expr)
}

#[test]
fn operators_bind_as_in_mysql() {
    for (sql, expected) in [
        ("a || b && c", "(a OR (b AND c))"),
        ("a OR b XOR c AND d", "(a OR (b XOR (c AND d)))"),
        ("NOT a = b", "(NOT (a = b))"),
        ("!a = b", "((NOT a) = b)"),
        ("a = b = c", "((a = b) = c)"),
        (
            "a | b & c << d + e * f ^ g",
            "(a | (b & (c << (d + (e * (f ^ g))))))",
        ),
        ("-a ^ b", "((- a) ^ b)"),
        ("a DIV b + c", "((a DIV b) + c)"),
        ("a MOD b * c", "((a % b) * c)"),
        ("a - b - c", "((a - b) - c)"),
        ("a = b LIKE c", "(a = (b LIKE c))"),
        ("a BETWEEN b AND c AND d", "((a BETWEEN b AND c) AND d)"),
        (
            "a + 1 BETWEEN b AND c + 1",
            "((a + 1) BETWEEN b AND (c + 1))",
        ),
        ("a = b IS NULL", "((a = b) IS NULL)"),
        ("NOT a IS NULL", "(NOT (a IS NULL))"),
        ("BINARY a = b", "((BINARY a) = b)"),
        ("a <=> b", "(a <=> b)"),
    ] {
        assert_eq!(shape(sql), expected, "{sql}");
    }
}

#[test]
fn intervals_have_composite_units() {
    assert_eq!(
        shape("a + INTERVAL '1 2' DAY_HOUR"),
        "(a + INTERVAL '1 2' DAY_HOUR)"
    );
    assert_eq!(shape("INTERVAL 1 + 1 MONTH"), "INTERVAL 1 + 1 MONTH");
    assert_eq!(shape("INTERVAL(3, 1, 5)"), "INTERVAL(3, 1, 5)");
}
