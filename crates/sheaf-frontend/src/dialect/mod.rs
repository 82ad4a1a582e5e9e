//! The MySQL dialect as the parser sees it.
//!
//! sqlparser has a MySQL dialect, but it leaves operator precedence at PostgreSQL's table. There `||` binds like
//! multiplication, `XOR` and the shifts are misplaced, `DIV` takes everything to its right, and infix `MOD` does not
//! exist. [`SheafDialect`] wraps it, forwards every property, and brings MySQL's whole table (from the grammar of the
//! reference manual, "Operator Precedence"), lowest first:
//!
//! ```text
//!   :=    OR ||    XOR    AND &&    NOT    = <=> >= > <= < <> != IS    LIKE REGEXP IN BETWEEN
//!   |     &        << >>  - +       * / DIV % MOD     ^     - (unary) ~    !    BINARY COLLATE
//! ```
//!
//! The wrapper answers [`Dialect::dialect`] with MySqlDialect's type id, so that the parser's own branches for MySQL
//! stay alive.

pub(crate) mod ahead;
mod cast;
mod infix;
mod interval;
mod json_value;
mod long_list;
mod name;
mod query;
mod string;
mod table_alias;

use std::any::TypeId;

use sheaf_access::cancel;
use sqlparser::ast::{BinaryOperator, Expr, Statement, UnaryOperator};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

pub use crate::function_names::SpacesOfFunctions;
use crate::function_names::missing_function;
use crate::reserved::is_reserved;
use crate::syntax::chain;
pub(crate) use cast::OF_ITS_SET;
use cast::{parse_binary, parse_cast, parse_char, parse_convert, parse_weight_string};
pub(crate) use infix::ESCAPE;
use infix::{
    is_between, is_like, is_mod, is_null, is_pattern, is_regexp, is_sounds, parse_between,
    parse_in_list, parse_like, parse_regexp, parse_sounds_like,
};
use interval::{is_interval, parse_interval, parse_moved_by_interval};
use json_value::parse_json_value;
use long_list::long_list;
use name::{
    is_collate_again, is_plain_name, is_string, parse_collation_of, parse_literal, parse_name,
};
use query::{is_comparison, parse_comparison_with_query, parse_query_in_parentheses};
use string::{
    is_plain_string, parse_introduced_strings, parse_national_string, parse_trim_of_spaces,
};
use table_alias::is_behind_table_in_parentheses;

/// Binding strength of each operator level; a higher number binds tighter.
mod binding {
    pub const ASSIGNMENT: u8 = 5;
    pub const OR: u8 = 10;
    pub const XOR: u8 = 20;
    pub const AND: u8 = 30;
    pub const NOT: u8 = 40;
    pub const COMPARISON: u8 = 50;
    pub const PREDICATE: u8 = 60;
    pub const BIT_OR: u8 = 70;
    pub const BIT_AND: u8 = 80;
    pub const SHIFT: u8 = 90;
    pub const SUM: u8 = 100;
    pub const PRODUCT: u8 = 110;
    pub const BIT_XOR: u8 = 120;
    pub const CONCAT: u8 = 125;
    pub const UNARY: u8 = 130;
    pub const BANG: u8 = 140;
    pub const COLLATE: u8 = 150;
    pub const ACCESS: u8 = 200;
}

/// MySQL's dialect with MySQL's operator precedence.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SheafDialect {
    /// `||` concatenates strings (sql_mode PIPES_AS_CONCAT); otherwise it is OR.
    pub pipes_as_concat: bool,
    /// `"x"` is an identifier (sql_mode ANSI_QUOTES); otherwise it is a string.
    pub ansi_quotes: bool,
    /// `NOT a` binds like `!` (sql_mode HIGH_NOT_PRECEDENCE).
    pub high_not_precedence: bool,
    /// LIKE and files have no escape character where none is written (sql_mode NO_BACKSLASH_ESCAPES). The backslashes
    /// of strings are escaped before a text is read: see `with_escaped_backslashes` in `parser/tokens/scan.rs`.
    pub no_backslash_escapes: bool,
    /// `COUNT (*)` is a call (sql_mode IGNORE_SPACE).
    pub spaces_of_functions: SpacesOfFunctions,
}

const MYSQL: MySqlDialect = MySqlDialect {};

/// Words that begin clauses of other dialects behind a table.
const ALIASES_OF_TABLES: [Keyword; 13] = [
    Keyword::ANTI,
    Keyword::ASOF,
    Keyword::END,
    Keyword::FORMAT,
    Keyword::MINUS,
    Keyword::OFFSET,
    Keyword::OPEN,
    Keyword::SEMI,
    Keyword::SETTINGS,
    Keyword::SORT,
    Keyword::START,
    Keyword::TOP,
    Keyword::VIEW,
];

/// Forwards yes/no properties to sqlparser's MySQL dialect.
macro_rules! forward {
    ($($property:ident),* $(,)?) => {
        $(fn $property(&self) -> bool {
            MYSQL.$property()
        })*
    };
}

impl Dialect for SheafDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        MYSQL.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        MYSQL.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        MYSQL.is_delimited_identifier_start(ch) || (self.ansi_quotes && ch == '"')
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        MYSQL.identifier_quote_style(identifier)
    }

    /// RETURNING ends the query of INSERT ... SELECT.
    fn is_column_alias(&self, kw: &Keyword, _: &mut Parser) -> bool {
        *kw != Keyword::RETURNING && !is_reserved(*kw)
    }

    fn is_select_item_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        match explicit {
            true => !is_reserved(*kw),
            false => self.is_column_alias(kw, parser),
        }
    }

    fn is_table_factor_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        !is_reserved(*kw)
            && (ALIASES_OF_TABLES.contains(kw) || MYSQL.is_table_factor_alias(explicit, kw, parser))
            && !is_behind_table_in_parentheses(parser)
    }

    /// `FROM ((t))`.
    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        MYSQL.parse_statement(parser)
    }

    forward!(
        supports_string_literal_backslash_escape,
        supports_string_literal_concatenation,
        ignores_wildcard_escapes,
        supports_numeric_prefix,
        supports_bitwise_shift_operators,
        supports_multiline_comment_hints,
        require_interval_qualifier,
        supports_limit_comma,
        supports_create_table_select,
        supports_insert_set,
        supports_user_host_grantee,
        supports_table_hints,
        requires_single_line_comment_whitespace,
        supports_match_against,
        supports_select_modifiers,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_update_order_by,
        supports_data_type_signed_suffix,
        supports_cross_join_constraint,
        supports_double_ampersand_operator,
        supports_binary_kw_as_cast,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
    );

    /// `GROUP BY a, b WITH ROLLUP`.
    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    /// Composite units, as in `EXTRACT(DAY_HOUR FROM x)`.
    fn allow_extract_custom(&self) -> bool {
        true
    }

    /// `WINDOW w AS (...)` and `OVER w`.
    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        match prec {
            Precedence::Period | Precedence::DoubleColon => binding::ACCESS,
            Precedence::AtTz | Precedence::PgOther | Precedence::Colon => binding::COLLATE,
            Precedence::Caret => binding::BIT_XOR,
            Precedence::MulDivModOp => binding::PRODUCT,
            Precedence::PlusMinus => binding::SUM,
            Precedence::Ampersand => binding::BIT_AND,
            Precedence::Pipe => binding::BIT_OR,
            Precedence::Between | Precedence::Like => binding::PREDICATE,
            Precedence::Eq | Precedence::Is => binding::COMPARISON,
            Precedence::UnaryNot => binding::NOT,
            Precedence::And => binding::AND,
            Precedence::Xor => binding::XOR,
            Precedence::Or => binding::OR,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        // Every expression passes here, so this is where a long statement stops that was killed.
        if let Err(cancelled) = cancel::check_statement() {
            return Some(Err(ParserError::ParserError(cancelled.to_string())));
        }
        let precedence = match &parser.peek_token_ref().token {
            Token::StringConcat if self.pipes_as_concat => binding::CONCAT,
            Token::StringConcat => binding::OR,
            Token::Overlap => binding::AND,
            Token::ShiftLeft | Token::ShiftRight => binding::SHIFT,
            Token::Assignment => binding::ASSIGNMENT,
            // Operators of these spellings do not exist here: the expression ends.
            Token::ExclamationMark
            | Token::Sharp
            | Token::AtSign
            | Token::Tilde
            | Token::DoubleColon
            | Token::DoubleEq => self.prec_unknown(),
            Token::Word(word) if word.keyword == Keyword::NOT && is_null(parser) => {
                self.prec_unknown()
            }
            Token::Word(word) if word.quote_style.is_none() && is_mod(&word.value) => {
                binding::PRODUCT
            }
            Token::Word(word) if is_sounds(&word.value) && is_like(parser) => binding::PREDICATE,
            Token::Word(_) if is_collate_again(parser) => binding::COLLATE,
            _ => return None,
        };
        Some(Ok(precedence))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if let Some(op) = self.chained(&parser.peek_token_ref().token) {
            return Some(self.parse_chain(parser, left, &op, precedence));
        }
        if is_collate_again(parser) {
            return Some(parse_collation_of(parser, left.clone()));
        }
        if let Some(list) = long_list(parser) {
            (0..list.tokens).for_each(|_| {
                parser.next_token_no_skip();
            });
            return Some(Ok(Expr::InList {
                expr: Box::new(left.clone()),
                list: vec![list.packed],
                negated: list.negated,
            }));
        }
        if let Some(negated) = is_between(parser) {
            return Some(parse_between(parser, left, negated));
        }
        if let Some(negated) = is_pattern(parser) {
            let default = self.no_backslash_escapes.then_some("");
            return Some(parse_like(parser, left, negated, default));
        }
        if let Some(negated) = is_regexp(parser) {
            return Some(parse_regexp(parser, left, negated));
        }
        let (op, right_precedence) = match &parser.peek_token_ref().token {
            Token::Plus | Token::Minus if is_interval(parser.peek_nth_token_ref(1)) => {
                return parse_moved_by_interval(parser, left).transpose();
            }
            Token::Word(word) if word.keyword == Keyword::DIV => {
                (BinaryOperator::MyIntegerDivide, precedence)
            }
            Token::Word(word) if word.quote_style.is_none() && is_mod(&word.value) => {
                (BinaryOperator::Modulo, precedence)
            }
            Token::Word(word) if is_sounds(&word.value) && is_like(parser) => {
                return Some(parse_sounds_like(parser, left, precedence));
            }
            Token::Word(word) if matches!(word.keyword, Keyword::IN | Keyword::NOT) => {
                return parse_in_list(parser, left).transpose();
            }
            token if is_comparison(token) => {
                return parse_comparison_with_query(parser, left).transpose();
            }
            // The only operator that associates to the right.
            Token::Assignment => (BinaryOperator::Assignment, precedence - 1),
            _ => return None,
        };
        parser.advance_token();
        Some(
            parser
                .parse_subexpr(right_precedence)
                .map(|right| Expr::BinaryOp {
                    left: Box::new(left.clone()),
                    op,
                    right: Box::new(right),
                }),
        )
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if self.spaces_of_functions != SpacesOfFunctions::Free
            && let Some(call) = missing_function(parser)
        {
            return Some(call);
        }
        if is_assignment_to_variable(parser) {
            return Some(parse_assignment(parser));
        }
        let (op, precedence) = match &parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, binding::UNARY - 1),
            Token::Plus => (UnaryOperator::Plus, binding::UNARY - 1),
            Token::Tilde => (UnaryOperator::BitwiseNot, binding::UNARY - 1),
            Token::ExclamationMark => (UnaryOperator::Not, binding::BANG - 1),
            Token::Word(word)
                if word.quote_style.is_none()
                    && word.value.starts_with('_')
                    && is_plain_string(&parser.peek_nth_token_ref(1).token)
                    && is_plain_string(&parser.peek_nth_token_ref(2).token) =>
            {
                return Some(parse_introduced_strings(parser));
            }
            Token::Word(word) if word.quote_style.is_none() => {
                return match word.keyword {
                    Keyword::NOT if self.high_not_precedence => {
                        parser.advance_token();
                        Some(unary(parser, UnaryOperator::Not, binding::BANG - 1))
                    }
                    Keyword::NOT => {
                        parser.advance_token();
                        Some(not(parser))
                    }
                    Keyword::BINARY => parse_binary(parser),
                    Keyword::CHAR if parser.peek_nth_token_ref(1).token == Token::LParen => {
                        Some(parse_char(parser))
                    }
                    Keyword::CAST if parser.peek_nth_token_ref(1).token == Token::LParen => {
                        Some(parse_cast(parser))
                    }
                    Keyword::CONVERT => Some(parse_convert(parser)),
                    Keyword::SUBSTR | Keyword::SUBSTRING
                        if parser.peek_nth_token_ref(1).token == Token::LParen =>
                    {
                        let part = parser.parse_substring();
                        Some(part.and_then(|part| parse_collation_of(parser, part)))
                    }
                    Keyword::INTERVAL => Some(parse_interval(parser)),
                    Keyword::TRIM => parse_trim_of_spaces(parser).transpose(),
                    _ if word.value.eq_ignore_ascii_case("weight_string")
                        && parser.peek_nth_token_ref(1).token == Token::LParen =>
                    {
                        Some(parse_weight_string(parser))
                    }
                    _ if word.value.eq_ignore_ascii_case("json_value")
                        && parser.peek_nth_token_ref(1).token == Token::LParen =>
                    {
                        Some(parse_json_value(parser))
                    }
                    Keyword::NoKeyword => parse_name(parser),
                    Keyword::CASE => {
                        parser.advance_token();
                        Some(parser.parse_case_expr())
                    }
                    keyword if is_plain_name(keyword) => parse_name(parser),
                    _ => None,
                };
            }
            Token::Word(_) => return parse_name(parser),
            Token::DoubleExclamationMark => {
                parser.advance_token();
                let once = unary(parser, UnaryOperator::Not, binding::BANG - 1);
                return Some(once.map(|once| Expr::UnaryOp {
                    op: UnaryOperator::Not,
                    expr: Box::new(once),
                }));
            }
            Token::NationalStringLiteral(_) if is_string(&parser.peek_nth_token_ref(1).token) => {
                return Some(parse_national_string(parser));
            }
            Token::Number(..) | Token::Placeholder(_) | Token::SingleQuotedString(_) => {
                return parse_literal(parser);
            }
            Token::LParen => return parse_query_in_parentheses(parser).transpose(),
            Token::LBrace => return parse_escape_of_odbc(parser),
            _ => return None,
        };
        parser.advance_token();
        Some(unary(parser, op, precedence))
    }
}

impl SheafDialect {
    /// The operator, if it is one whose chains may be put together in any way.
    fn chained(&self, token: &Token) -> Option<BinaryOperator> {
        Some(match token {
            Token::Word(word) => match word.keyword {
                Keyword::AND => BinaryOperator::And,
                Keyword::OR => BinaryOperator::Or,
                Keyword::XOR => BinaryOperator::Xor,
                _ => return None,
            },
            Token::StringConcat if self.pipes_as_concat => BinaryOperator::StringConcat,
            Token::StringConcat => BinaryOperator::Or,
            Token::Overlap => BinaryOperator::And,
            _ => return None,
        })
    }

    /// The rest of a chain of one operator, behind its first operand. So a chain is as long as it likes: the tree of
    /// its operators is not as deep.
    fn parse_chain(
        &self,
        parser: &mut Parser,
        first: &Expr,
        op: &BinaryOperator,
        precedence: u8,
    ) -> Result<Expr, ParserError> {
        let mut operands = vec![first.clone()];
        while self.chained(&parser.peek_token_ref().token).as_ref() == Some(op) {
            parser.advance_token();
            operands.push(parser.parse_subexpr(precedence)?);
        }
        // Their places in the tree, and in the lists from which it is made. What is refused is told behind the parser.
        let bytes = operands.len() * size_of::<Expr>() * 3;
        if cancel::check_room_for(bytes).is_err() {
            return Err(ParserError::ParserError("a chain without room".to_string()));
        }
        let join = |left, op, right| Expr::BinaryOp {
            left: Box::new(left),
            op,
            right: Box::new(right),
        };
        let chained = chain(operands, op, join);
        chained.ok_or_else(|| ParserError::ParserError("a chain of no operands".to_string()))
    }
}

/// `{word expression}` is the expression, whatever the word is. `{d '2024-01-01'}`, `{t '..'}`, `{ts '..'}` and
/// `{fn f()}` are sqlparser's.
fn parse_escape_of_odbc(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let Token::Word(word) = &parser.peek_nth_token_ref(1).token else {
        return None;
    };
    let is = |name: &str| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name);
    let is_moment = is("d") || is("t") || is("ts");
    if is("fn") || is_moment && is_plain_string(&parser.peek_nth_token_ref(2).token) {
        return None;
    }
    parser.advance_token();
    parser.advance_token();
    let expression = parser.parse_expr();
    Some(expression.and_then(|expression| {
        parser.expect_token(&Token::RBrace)?;
        Ok(Expr::Nested(Box::new(expression)))
    }))
}

/// `@a := 1` is an operand wherever it stands: `1 + @a := 2` is 3.
fn is_assignment_to_variable(parser: &Parser) -> bool {
    matches!(
        &parser.peek_token_ref().token,
        Token::Word(word) if word.value.starts_with('@') && !word.value.starts_with("@@")
    ) && parser.peek_nth_token_ref(1).token == Token::Assignment
}

fn parse_assignment(parser: &mut Parser) -> Result<Expr, ParserError> {
    let left = Box::new(Expr::Identifier(parser.parse_identifier()?));
    parser.expect_token(&Token::Assignment)?;
    Ok(Expr::BinaryOp {
        left,
        op: BinaryOperator::Assignment,
        right: Box::new(parser.parse_subexpr(binding::ASSIGNMENT - 1)?),
    })
}

/// What stands behind NOT, all of it: `NOT EXISTS (q) + 1` is `NOT (EXISTS (q) + 1)`.
fn not(parser: &mut Parser) -> Result<Expr, ParserError> {
    Ok(match parser.parse_subexpr(binding::NOT)? {
        Expr::Exists {
            subquery,
            negated: false,
        } => Expr::Exists {
            subquery,
            negated: true,
        },
        operand => Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(operand),
        },
    })
}

fn unary(parser: &mut Parser, op: UnaryOperator, precedence: u8) -> Result<Expr, ParserError> {
    Ok(Expr::UnaryOp {
        op,
        expr: Box::new(parser.parse_subexpr(precedence)?),
    })
}
