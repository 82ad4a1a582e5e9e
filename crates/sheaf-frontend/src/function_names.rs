//! `COUNT(*)` and `COUNT (*)`: names of functions that are such only with the parenthesis next to them.
//!
//! MySQL's lexer knows some functions by what stands behind their name. Then they may be names of tables and columns
//! everywhere else:
//!
//! ```text
//!   SELECT SUM(a)          the function           INSERT INTO sum (a)    a table
//!   SELECT SUM (a)         error 1630             INSERT INTO sum(a)     error 1064
//! ```
//!
//! With `sql_mode` IGNORE_SPACE spaces do not matter: all of these are functions. A name in front of a parenthesis that
//! is no function gets backticks, which mean the same in MySQL. [`missing_function`] reads it where an expression
//! begins.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// How spaces behind the name of a function are read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum SpacesOfFunctions {
    /// They mean nothing, and neither do backticks: in texts that were accepted once.
    #[default]
    Free,
    /// They part the name from its parenthesis.
    Separate,
    /// They mean nothing, and no name of a table stands in front of a parenthesis (`sql_mode` IGNORE_SPACE).
    Ignored,
}

/// Words of the grammar.
const WORDS: [&str; 29] = [
    "bit_and",
    "bit_or",
    "bit_xor",
    "cast",
    "count",
    "curdate",
    "curtime",
    "date_add",
    "date_sub",
    "extract",
    "group_concat",
    "json_arrayagg",
    "json_objectagg",
    "max",
    "mid",
    "min",
    "now",
    "position",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "substr",
    "substring",
    "sum",
    "sysdate",
    "trim",
    "var_pop",
    "var_samp",
];
/// `variance` is a word, too; the others are functions by the same rule, and names with a parenthesis next to them.
const VARIANCE: &str = "variance";
const NATIVE: [&str; 4] = ["adddate", "session_user", "subdate", "system_user"];

/// What the name of a missing function ends in, so that it is that of no other.
const MARK: &str = " (";

fn is_word(name: &str) -> bool {
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    WORDS.iter().any(is) || is(&VARIANCE)
}

/// Whether a function of this name is none unless its parenthesis stands next to it.
pub fn needs_parenthesis(name: &str) -> bool {
    is_word(name) || NATIVE.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The name of a function that was called with a space behind it; `None` of all others.
pub fn without_parenthesis(name: &str) -> Option<&str> {
    name.strip_suffix(MARK)
}

/// Puts names between backticks that are no functions, although a parenthesis follows.
///
/// # Errors
/// The place of a function where the name of a table or an index has to stand.
pub(crate) fn told_apart(
    tokens: &mut [TokenWithSpan],
    spaces: SpacesOfFunctions,
) -> Result<(), Location> {
    if spaces == SpacesOfFunctions::Free {
        return Ok(());
    }
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let mut before: Option<usize> = None;
    for at in 0..tokens.len() {
        let token = &tokens[at];
        if is_blank(&token) {
            continue;
        }
        let previous = before.replace(at).map(|before| &tokens[before].token);
        let Token::Word(word) = &token.token else {
            continue;
        };
        let next = tokens[at + 1..].iter().find(|token| !is_blank(token));
        let Some(next) = next.filter(|next| next.token == Token::LParen) else {
            continue;
        };
        if word.quote_style.is_some()
            || previous == Some(&Token::Period)
            || !needs_parenthesis(&word.value)
        {
            continue;
        }
        let is_function = spaces == SpacesOfFunctions::Ignored || next.span.start == token.span.end;
        if is_function && is_word(&word.value) && previous.is_some_and(precedes_name) {
            return Err(token.span.start);
        }
        if !is_function && let Token::Word(word) = &mut tokens[at].token {
            word.quote_style = Some('`');
            word.keyword = Keyword::NoKeyword;
        }
    }
    Ok(())
}

/// Whether the name of a table or an index stands behind this word.
fn precedes_name(before: &Token) -> bool {
    matches!(before, Token::Word(word) if matches!(
        word.keyword,
        Keyword::INTO
            | Keyword::INSERT
            | Keyword::REPLACE
            | Keyword::TABLE
            | Keyword::KEY
            | Keyword::INDEX
            | Keyword::UNIQUE
            | Keyword::REFERENCES
            | Keyword::EXISTS
            | Keyword::WITH
            | Keyword::RECURSIVE
    ))
}

/// A call of a function that is none: `SUM (a)`, or `` `sum`(a) ``; `None` of anything else.
pub(crate) fn missing_function(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let name = match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_some() && needs_parenthesis(&word.value) => {
            word.value.clone()
        }
        _ => return None,
    };
    (parser.peek_nth_token_ref(1).token == Token::LParen).then(|| call_of(name, parser))
}

/// What stands in parentheses is expressions: the grammar of the function itself is not known.
fn call_of(name: String, parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.advance_token();
    let mut args = Vec::new();
    if !parser.consume_token(&Token::RParen) {
        loop {
            if parser.peek_keyword(Keyword::INTERVAL) || parser.peek_keyword(Keyword::DISTINCT) {
                return parser.expected_ref("an expression", parser.peek_token_ref());
            }
            let operand = parser.parse_expr()?;
            args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(operand)));
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    if parser.peek_keyword(Keyword::OVER) {
        return parser.expected_ref("the end of the expression", parser.peek_token_ref());
    }
    let name = Ident::new(format!("{name}{MARK}"));
    Ok(Expr::Function(Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }))
}

/// Functions that MySQL's grammar knows with their arguments, sorted. What is wrong with these is a mistake in the
/// grammar, 1064; of other functions it is told by name.
const OF_GRAMMAR: [&str; 93] = [
    "adddate",
    "ascii",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "char",
    "charset",
    "coalesce",
    "collation",
    "convert",
    "count",
    "cume_dist",
    "curdate",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "curtime",
    "database",
    "date",
    "date_add",
    "date_sub",
    "day",
    "dense_rank",
    "extract",
    "first_value",
    "format",
    "get_format",
    "group_concat",
    "hour",
    "if",
    "insert",
    "interval",
    "json_arrayagg",
    "json_objectagg",
    "lag",
    "last_value",
    "lead",
    "left",
    "localtime",
    "localtimestamp",
    "log",
    "max",
    "microsecond",
    "mid",
    "min",
    "minute",
    "mod",
    "month",
    "now",
    "nth_value",
    "ntile",
    "percent_rank",
    "position",
    "quarter",
    "rank",
    "repeat",
    "replace",
    "reverse",
    "right",
    "row_count",
    "row_number",
    "schema",
    "second",
    "session_user",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "subdate",
    "substr",
    "substring",
    "sum",
    "sysdate",
    "system_user",
    "time",
    "timestamp",
    "timestampadd",
    "timestampdiff",
    "trim",
    "truncate",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "values",
    "var_pop",
    "var_samp",
    "variance",
    "week",
    "weight_string",
    "year",
];

/// Whether a function, aggregates among them, is a part of MySQL's grammar.
pub fn is_of_grammar(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    OF_GRAMMAR.binary_search(&name.as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;
    use crate::parser::parse_statement;

    fn reads(text: &str, spaces_of_functions: SpacesOfFunctions) -> bool {
        let dialect = SheafDialect {
            spaces_of_functions,
            ..SheafDialect::default()
        };
        parse_statement(text, &dialect).is_ok()
    }

    #[test]
    fn spaces_make_names_of_functions() {
        let separate = |text: &str| reads(text, SpacesOfFunctions::Separate);
        for text in [
            "SELECT count(*), avg (a), upper ('a'), now()",
            "INSERT INTO count (a) VALUES (1)",
            "CREATE TABLE sum (a INT, KEY max (a))",
            "SELECT t.count, count FROM t",
            // Only its names are looked up later.
            "SELECT sum (a), `max`(a)",
        ] {
            assert!(separate(text), "{text}");
        }
        for text in [
            "SELECT count (*)",
            "SELECT count/**/(*)",
            "SELECT cast (1 AS CHAR)",
            "SELECT sum (DISTINCT a)",
            "SELECT date_add ('2020-01-01', INTERVAL 1 DAY)",
            "INSERT INTO count(a) VALUES (1)",
            "CREATE TABLE t (a INT, KEY max(a))",
        ] {
            assert!(!separate(text), "{text}");
        }
    }

    #[test]
    fn ignored_spaces_leave_no_names_in_front_of_parentheses() {
        let ignored = |text: &str| reads(text, SpacesOfFunctions::Ignored);
        assert!(ignored(
            "SELECT count (*), sum(a), cast (1 AS CHAR), t.count"
        ));
        assert!(ignored("SELECT count FROM t"));
        assert!(!ignored("CREATE TABLE sum (a INT)"));
        assert!(ignored("SELECT adddate FROM t"));
    }

    #[test]
    fn functions_of_the_grammar_are_sorted() {
        assert!(OF_GRAMMAR.is_sorted());
        assert!(is_of_grammar("Microsecond") && !is_of_grammar("abs"));
    }
}
