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

use std::any::TypeId;

use sheaf_access::cancel;
use sheaf_exec::functions::in_values::MIN_PACKED;
use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, Expr, Interval, ObjectName, Statement,
    TrimWhereField, UnaryOperator, Value, ValueWithSpan,
};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::packed_list::ListPacker;
use crate::reserved::is_reserved;
use crate::syntax::{call, chain};

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
}

const MYSQL: MySqlDialect = MySqlDialect {};

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

    fn is_column_alias(&self, kw: &Keyword, _: &mut Parser) -> bool {
        !RESERVED_FOR_COLUMN_ALIAS.contains(kw) && !is_reserved(*kw)
    }

    fn is_select_item_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        match explicit {
            true => !is_reserved(*kw),
            false => self.is_column_alias(kw, parser),
        }
    }

    fn is_table_factor_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        !is_reserved(*kw)
            && MYSQL.is_table_factor_alias(explicit, kw, parser)
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
            Token::StringConcat if self.pipes_as_concat => binding::UNARY,
            Token::StringConcat => binding::OR,
            Token::Overlap => binding::AND,
            Token::ShiftLeft | Token::ShiftRight => binding::SHIFT,
            Token::Assignment => binding::ASSIGNMENT,
            // Operators of these spellings do not exist here: the expression ends.
            Token::ExclamationMark
            | Token::Sharp
            | Token::AtSign
            | Token::DoubleColon
            | Token::DoubleEq => self.prec_unknown(),
            Token::Word(word) if word.keyword == Keyword::NOT && is_null(parser) => {
                self.prec_unknown()
            }
            Token::Word(word) if word.quote_style.is_none() && is_mod(&word.value) => {
                binding::PRODUCT
            }
            Token::Word(word) if is_sounds(&word.value) && is_like(parser) => binding::PREDICATE,
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
                        Some(parser.parse_not())
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

/// What stands behind the operand of an IN with many members that are all plain constants, or rows of them.
struct LongList {
    packed: Expr,
    negated: bool,
    /// Its tokens, the blanks included.
    tokens: usize,
}

/// The list that comes next, if it is such a one.
fn long_list(parser: &Parser) -> Option<LongList> {
    let is_word = |token: &Token, keyword: Keyword| matches!(token, Token::Word(word) if word.keyword == keyword);
    let first = parser.peek_token_ref();
    let negated = is_word(&first.token, Keyword::NOT);
    if !negated && !is_word(&first.token, Keyword::IN) {
        return None;
    }
    let mut ahead = Ahead::of(parser);
    let mut next = || ahead.next();
    let mut token = next();
    if negated {
        token = next();
    }
    if !is_word(token, Keyword::IN) || *next() != Token::LParen {
        return None;
    }
    let mut list = ListPacker::new();
    let mut is_in_row = false;
    loop {
        let mut token = next();
        if *token == Token::LParen && !is_in_row {
            is_in_row = true;
            token = next();
        }
        match token {
            Token::Minus => match next() {
                Token::Number(digits, false) => list.push_number("-", digits),
                _ => return None,
            },
            Token::Number(digits, false) => list.push_number("", digits),
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                list.push_text(text);
            }
            token if is_word(token, Keyword::NULL) => list.push_null(),
            _ => return None,
        }
        let mut token = next();
        if is_in_row && *token == Token::RParen {
            is_in_row = false;
            token = next();
        }
        if !is_in_row {
            list.end_row();
        }
        match token {
            Token::Comma => {}
            Token::RParen if !is_in_row => break,
            _ => return None,
        }
    }
    let packed = list.packed(MIN_PACKED)?;
    Some(LongList {
        packed,
        negated,
        tokens: ahead.at - parser.index(),
    })
}

/// Whether the alias that has just been read stands behind `(t)`: inside there would be room for it. A query in
/// parentheses has one, and so do PARTITION (p) and a function.
fn is_behind_table_in_parentheses(parser: &Parser) -> bool {
    let is_space = |token: &Token| matches!(token, Token::Whitespace(_));
    let alias = parser.index().saturating_sub(1);
    let before = |at: usize| {
        let mut tokens = (0..at).rev();
        tokens.find(|at| !is_space(&parser.token_at(*at).token))
    };
    let token = |at: Option<usize>| at.map(|at| &parser.token_at(at).token);
    let is_word = |token: Option<&Token>, keyword: Keyword| matches!(token, Some(Token::Word(word)) if word.keyword == keyword);
    let mut last = before(alias);
    if is_word(token(last), Keyword::AS) {
        last = last.and_then(before);
    }
    if token(last) != Some(&Token::RParen) {
        return false;
    }
    let mut open = 0;
    let mut at = last;
    while let Some(position) = at {
        match parser.token_at(position).token {
            Token::RParen => open += 1,
            Token::LParen => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
        at = position.checked_sub(1);
    }
    let Some(opening) = at else {
        return false;
    };
    if let Some(Token::Word(word)) = token(before(opening))
        && (word.keyword == Keyword::PARTITION || word.keyword == Keyword::JSON_TABLE)
    {
        return false;
    }
    let mut inside = (opening..alias).map(|at| &parser.token_at(at).token);
    let first = inside.find(|token| !is_space(token) && **token != Token::LParen);
    let queries = [
        Keyword::SELECT,
        Keyword::WITH,
        Keyword::VALUES,
        Keyword::TABLE,
    ];
    !queries.iter().any(|query| is_word(first, *query))
}

/// Whether `NULL` stands behind the next word. `a NOT NULL` is PostgreSQL's.
fn is_null(parser: &Parser) -> bool {
    let next = parser.peek_nth_token_ref(1);
    matches!(&next.token, Token::Word(word) if word.keyword == Keyword::NULL)
}

fn is_mod(word: &str) -> bool {
    word.eq_ignore_ascii_case("mod")
}

fn is_sounds(word: &str) -> bool {
    word.eq_ignore_ascii_case("sounds")
}

fn is_like(parser: &Parser) -> bool {
    matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word) if word.keyword == Keyword::LIKE)
}

/// Whether one of these operators comes, or NOT before one, which is true.
fn comes(parser: &Parser, operators: &[Keyword]) -> Option<bool> {
    let keyword = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match keyword(parser.peek_token_ref()) {
        Keyword::NOT => {
            let next = keyword(parser.peek_nth_token_ref(1));
            operators.contains(&next).then_some(true)
        }
        first => operators.contains(&first).then_some(false),
    }
}

fn is_between(parser: &Parser) -> Option<bool> {
    comes(parser, &[Keyword::BETWEEN])
}

fn is_regexp(parser: &Parser) -> Option<bool> {
    comes(parser, &[Keyword::REGEXP, Keyword::RLIKE])
}

/// sqlparser takes the NULL of `a REGEXP NULL` for a part of the operator. A parameter is such a NULL while its
/// statement is prepared.
fn parse_regexp(parser: &mut Parser, left: &Expr, negated: bool) -> Result<Expr, ParserError> {
    if negated {
        parser.advance_token();
    }
    let regexp = parser.parse_keyword(Keyword::REGEXP);
    if !regexp {
        parser.expect_keyword_is(Keyword::RLIKE)?;
    }
    Ok(Expr::RLike {
        negated,
        expr: Box::new(left.clone()),
        pattern: Box::new(parser.parse_subexpr(binding::PREDICATE)?),
        regexp,
    })
}

/// The upper bound may be a predicate: `a BETWEEN 1 AND b IN (2, 3)` has the upper bound `b IN (2, 3)`.
fn parse_between(parser: &mut Parser, left: &Expr, negated: bool) -> Result<Expr, ParserError> {
    parser.advance_token();
    if negated {
        parser.advance_token();
    }
    let low = parser.parse_subexpr(binding::PREDICATE)?;
    parser.expect_keyword_is(Keyword::AND)?;
    let high = parser.parse_subexpr(binding::COMPARISON)?;
    Ok(Expr::Between {
        expr: Box::new(left.clone()),
        negated,
        low: Box::new(low),
        high: Box::new(high),
    })
}

/// `a SOUNDS LIKE b`.
fn parse_sounds_like(
    parser: &mut Parser,
    left: &Expr,
    precedence: u8,
) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.advance_token();
    let right = parser.parse_subexpr(precedence)?;
    Ok(Expr::BinaryOp {
        left: Box::new(call("soundex", vec![left.clone()])),
        op: BinaryOperator::Eq,
        right: Box::new(call("soundex", vec![right])),
    })
}

/// `x IN ((a), (b))` and `x IN ((a))`, with `(a)` a subquery: what begins with a subquery may be one, or a list of
/// operands. sqlparser tries one after the other. `None` for every other IN.
fn parse_in_list(parser: &mut Parser, left: &Expr) -> Result<Option<Expr>, ParserError> {
    let is_keyword = |token: &Token, keyword: Keyword| {
        matches!(token,
            Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
    };
    let begins_query =
        |token: &Token| is_keyword(token, Keyword::SELECT) || is_keyword(token, Keyword::WITH);
    let mut ahead = Ahead::of(parser);
    let mut first = ahead.next();
    let negated = is_keyword(first, Keyword::NOT);
    if negated {
        first = ahead.next();
    }
    if !is_keyword(first, Keyword::IN) || *ahead.next() != Token::LParen {
        return Ok(None);
    }
    let is_query = match ahead.next() {
        token if begins_query(token) => true,
        Token::LParen => {
            // Inside of the parentheses that a query or an operand begins with.
            let mut inside = Ahead { ..ahead };
            let mut token = inside.next();
            while *token == Token::LParen {
                token = inside.next();
            }
            if !begins_query(token) {
                return Ok(None);
            }
            ahead.skip_parentheses();
            let goes_on = [
                Keyword::UNION,
                Keyword::EXCEPT,
                Keyword::INTERSECT,
                Keyword::ORDER,
                Keyword::LIMIT,
            ];
            let token = ahead.next();
            *token == Token::RParen || goes_on.iter().any(|word| is_keyword(token, *word))
        }
        _ => return Ok(None),
    };
    if negated {
        parser.advance_token();
    }
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(left.clone());
    let condition = match is_query {
        true => Expr::InSubquery {
            expr,
            subquery: parser.parse_query()?,
            negated,
        },
        false => Expr::InList {
            expr,
            list: parser.parse_comma_separated(Parser::parse_expr)?,
            negated,
        },
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Some(condition))
}

/// A look at the tokens that come, one by one. A look at the nth of them from the start is a walk over n.
pub(crate) struct Ahead<'p, 't> {
    parser: &'p Parser<'t>,
    at: usize,
}

impl<'p, 't> Ahead<'p, 't> {
    pub(crate) fn of(parser: &'p Parser<'t>) -> Self {
        let at = parser.index();
        Ahead { parser, at }
    }

    /// The next one that is no blank.
    pub(crate) fn next(&mut self) -> &'p Token {
        loop {
            let token = &self.parser.token_at(self.at).token;
            self.at += 1;
            if !matches!(token, Token::Whitespace(_)) {
                return token;
            }
        }
    }

    /// Goes behind an operand in a list in parentheses: to the comma or parenthesis behind it, which is returned.
    /// `None` at the end of the statement.
    fn skip_operand(&mut self) -> Option<&'p Token> {
        loop {
            match self.next() {
                Token::LParen => self.skip_parentheses(),
                token @ (Token::RParen | Token::Comma) => return Some(token),
                Token::EOF => return None,
                _ => {}
            }
        }
    }

    /// Goes behind the parenthesis that closes the one that was met last, or to the end.
    fn skip_parentheses(&mut self) {
        let mut depth = 1;
        while depth > 0 {
            match self.next() {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::EOF => return,
                _ => {}
            }
        }
    }
}

fn unary(parser: &mut Parser, op: UnaryOperator, precedence: u8) -> Result<Expr, ParserError> {
    Ok(Expr::UnaryOp {
        op,
        expr: Box::new(parser.parse_subexpr(precedence)?),
    })
}

/// Whether a word says how what stands in front of it is compared.
fn is_collate(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.keyword == Keyword::COLLATE)
}

fn is_plain_string(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)
    )
}

fn is_string(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::HexStringLiteral(_)
            | Token::NationalStringLiteral(_)
    )
}

/// Words of other dialects, and of MySQL's where they are types or functions, that are names like any other here. Many
/// columns and the usual functions have them, and [`parse_name`] takes a tenth of what sqlparser does for them.
fn is_plain_name(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::ABS
            | Keyword::ACCOUNT
            | Keyword::ACTION
            | Keyword::AVG
            | Keyword::CATEGORY
            | Keyword::CEIL
            | Keyword::COALESCE
            | Keyword::COMMENT
            | Keyword::COUNT
            | Keyword::DATA
            | Keyword::DATE
            | Keyword::DAY
            | Keyword::FLOOR
            | Keyword::HOUR
            | Keyword::ID
            | Keyword::IF
            | Keyword::LEVEL
            | Keyword::LOCATION
            | Keyword::LOWER
            | Keyword::MAX
            | Keyword::MIN
            | Keyword::MONTH
            | Keyword::NAME
            | Keyword::NULLIF
            | Keyword::OWNER
            | Keyword::PASSWORD
            | Keyword::ROLE
            | Keyword::SOURCE
            | Keyword::STATUS
            | Keyword::SUM
            | Keyword::TARGET
            | Keyword::TEXT
            | Keyword::TYPE
            | Keyword::UPPER
            | Keyword::VALUE
            | Keyword::VERSION
            | Keyword::YEAR
    )
}

/// A column or a call by a name that means nothing else. sqlparser would first try whether it is a type in front of a
/// string, and put together what is wrong with that. `None` of all that is more than a name.
fn parse_name(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let token = |ahead: usize| &parser.peek_nth_token_ref(ahead).token;
    match token(1) {
        Token::Arrow | Token::LongArrow => None,
        Token::LParen => {
            let name = parser.next_token();
            let Token::Word(word) = name.token else {
                return None;
            };
            let name = ObjectName::from(vec![word.into_ident(name.span)]);
            let call = parser.parse_function(name);
            Some(call.and_then(|call| parse_collation_of(parser, call)))
        }
        Token::Period => {
            // Of a database, a table and a column. The library takes more for fields of values, one by one.
            if let (Token::Word(_), Token::Period, Token::Word(_), Token::Period) =
                (token(2), token(3), token(4), token(5))
            {
                for _ in 0..5 {
                    parser.advance_token();
                }
                let period = parser.peek_token();
                return Some(parser.expected("no more parts of a name", period));
            }
            let is_column = matches!(token(2), Token::Word(_))
                && !matches!(token(3), Token::Period | Token::LParen)
                && !is_collate(token(3));
            if !is_column {
                return None;
            }
            let table = parser.next_token();
            parser.advance_token();
            let column = parser.next_token();
            match (table.token, column.token) {
                (Token::Word(table_name), Token::Word(name)) => {
                    Some(Ok(Expr::CompoundIdentifier(vec![
                        table_name.into_ident(table.span),
                        name.into_ident(column.span),
                    ])))
                }
                _ => None,
            }
        }
        next if is_string(next) || is_collate(next) => None,
        _ => {
            let name = parser.next_token();
            match name.token {
                Token::Word(word) => Some(Ok(Expr::Identifier(word.into_ident(name.span)))),
                _ => None,
            }
        }
    }
}

/// COLLATE behind an operand.
fn parse_collation_of(parser: &mut Parser, operand: Expr) -> Result<Expr, ParserError> {
    if !parser.parse_keyword(Keyword::COLLATE) {
        return Ok(operand);
    }
    Ok(Expr::Collate {
        expr: Box::new(operand),
        collation: parser.parse_object_name(false)?,
    })
}

/// A literal, as [`parse_name`] does it.
fn parse_literal(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let next = &parser.peek_nth_token_ref(1).token;
    match is_string(next) || is_collate(next) {
        true => None,
        false => Some(parser.parse_value().map(Expr::Value)),
    }
}

/// `BINARY x`, a cast that binds tighter than any operator. `None` when BINARY is not followed by an operand: then it
/// is the name of a character set.
fn parse_binary(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let is_name = matches!(
        parser.peek_nth_token_ref(1).token,
        Token::EOF | Token::SemiColon | Token::Comma | Token::RParen
    );
    if is_name {
        return None;
    }
    parser.advance_token();
    let operand = parser.parse_subexpr(binding::COLLATE);
    Some(operand.map(|operand| Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(operand),
        data_type: DataType::Binary(None),
        array: false,
        format: None,
    }))
}

/// `CAST(x AS type)` and `CAST(x AS CHAR CHARACTER SET charset)`.
fn parse_cast(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_keyword(Keyword::AS)?;
    let (data_type, charset) = parse_type_of_cast(parser)?;
    let array = parser.parse_keyword(Keyword::ARRAY);
    parser.expect_token(&Token::RParen)?;
    let cast = match charset {
        Some(charset) => converted(expr, Some(data_type), Some(charset)),
        None => Expr::Cast {
            kind: CastKind::Cast,
            expr,
            data_type,
            array,
            format: None,
        },
    };
    parse_collation_of(parser, cast)
}

/// `CONVERT(x, type)`, `CONVERT(x, CHAR CHARACTER SET charset)` and `CONVERT(x USING charset)`.
fn parse_convert(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    let (data_type, charset) = match parser.parse_keyword(Keyword::USING) {
        true => (None, Some(parser.parse_object_name(false)?)),
        false => {
            parser.expect_token(&Token::Comma)?;
            let (data_type, charset) = parse_type_of_cast(parser)?;
            (Some(data_type), charset)
        }
    };
    parser.expect_token(&Token::RParen)?;
    parse_collation_of(parser, converted(expr, data_type, charset))
}

fn converted(expr: Box<Expr>, data_type: Option<DataType>, charset: Option<ObjectName>) -> Expr {
    Expr::Convert {
        is_try: false,
        expr,
        data_type,
        charset,
        target_before_value: false,
        styles: Vec::new(),
    }
}

/// What a value is made of by CAST and CONVERT: a type, and of characters their character set.
fn parse_type_of_cast(parser: &mut Parser) -> Result<(DataType, Option<ObjectName>), ParserError> {
    let is_characters = matches!(
        &parser.peek_token_ref().token,
        Token::Word(word) if matches!(word.keyword, Keyword::CHAR | Keyword::CHARACTER)
    );
    let data_type = parser.parse_data_type()?;
    let has_set = is_characters
        && (parser.parse_keywords(&[Keyword::CHARACTER, Keyword::SET])
            || parser.parse_keyword(Keyword::CHARSET));
    let charset = match has_set {
        true => Some(parser.parse_object_name(false)?),
        false => None,
    };
    Ok((data_type, charset))
}

/// `CHAR(n, ...)` and `CHAR(n, ... USING charset)`.
fn parse_char(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let codes = parser.parse_comma_separated(Parser::parse_expr)?;
    let charset = match parser.parse_keyword(Keyword::USING) {
        true => Some(parser.parse_object_name(false)?),
        false => None,
    };
    parser.expect_token(&Token::RParen)?;
    let bytes = call("char", codes);
    Ok(match charset {
        Some(charset) => converted(Box::new(bytes), None, Some(charset)),
        None => bytes,
    })
}

/// `INTERVAL expr unit`, composite units included, or the function `INTERVAL(n, a, b, ...)`.
fn parse_interval(parser: &mut Parser) -> Result<Expr, ParserError> {
    // What is parsed twice at each level of a nest is parsed 2^n times.
    if is_followed_by_list(parser) {
        let name = parser.parse_identifier()?;
        return parser.parse_function(ObjectName::from(vec![name]));
    }
    parser.advance_token();
    let value = Box::new(parser.parse_expr()?);
    let is_composite = matches!(
        &parser.peek_token_ref().token,
        Token::Word(word) if is_composite_unit(&word.value)
    );
    let leading_field = match is_composite {
        true => DateTimeField::Custom(parser.parse_identifier()?),
        _ if parser.next_token_is_temporal_unit() => parser.parse_date_time_field()?,
        _ => return parser.expected_ref("a unit of time", parser.peek_token_ref()),
    };
    Ok(Expr::Interval(Interval {
        value,
        leading_field: Some(leading_field),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

fn is_interval(token: &TokenWithSpan) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == Keyword::INTERVAL)
}

/// `left + INTERVAL n unit`. What follows takes the whole as its operand: nothing computes with an interval. `None` if
/// it is the function INTERVAL.
///
/// ```text
///   d + INTERVAL 1 DAY * 2      (d + INTERVAL 1 DAY) * 2
/// ```
fn parse_moved_by_interval(parser: &mut Parser, left: &Expr) -> Result<Option<Expr>, ParserError> {
    let op = match parser.peek_token_ref().token {
        Token::Plus => BinaryOperator::Plus,
        _ => BinaryOperator::Minus,
    };
    parser.advance_token();
    if is_followed_by_list(parser) {
        parser.prev_token();
        return Ok(None);
    }
    Ok(Some(Expr::BinaryOp {
        left: Box::new(left.clone()),
        op,
        right: Box::new(parse_interval(parser)?),
    }))
}

/// `TRIM(LEADING FROM x)` and its relatives, which take spaces away; `None` if something else is taken away.
fn parse_trim_of_spaces(parser: &mut Parser) -> Result<Option<Expr>, ParserError> {
    let keyword_at = |at: usize| match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let trim_where = match keyword_at(2) {
        Keyword::LEADING => TrimWhereField::Leading,
        Keyword::TRAILING => TrimWhereField::Trailing,
        Keyword::BOTH => TrimWhereField::Both,
        _ => return Ok(None),
    };
    if parser.peek_nth_token_ref(1).token != Token::LParen || keyword_at(3) != Keyword::FROM {
        return Ok(None);
    }
    (0..4).for_each(|_| parser.advance_token());
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Some(Expr::Trim {
        trim_where: Some(trim_where),
        trim_what: None,
        expr,
        trim_characters: None,
    }))
}

/// `N'a' 'b'`, which is `N'ab'`.
fn parse_national_string(parser: &mut Parser) -> Result<Expr, ParserError> {
    let span = parser.peek_token_ref().span;
    let mut text = String::new();
    if let Token::NationalStringLiteral(part) = &parser.peek_token_ref().token {
        text.push_str(part);
        parser.advance_token();
    }
    take_strings(parser, &mut text);
    Ok(Expr::Value(ValueWithSpan {
        value: Value::NationalStringLiteral(text),
        span,
    }))
}

/// `_utf8mb4'a' 'b'`, which is `_utf8mb4'ab'`.
fn parse_introduced_strings(parser: &mut Parser) -> Result<Expr, ParserError> {
    let prefix = parser.parse_identifier()?;
    let span = parser.peek_token_ref().span;
    let mut text = String::new();
    take_strings(parser, &mut text);
    let value = Value::SingleQuotedString(text).with_span(span);
    Ok(Expr::Prefixed {
        prefix,
        value: Box::new(Expr::Value(value)),
    })
}

/// Adds strings that stand one behind another.
fn take_strings(parser: &mut Parser, text: &mut String) {
    while let Token::SingleQuotedString(part) | Token::DoubleQuotedString(part) =
        &parser.peek_token_ref().token
    {
        text.push_str(part);
        parser.advance_token();
    }
}

/// Whether the word that comes next has several operands between parentheses behind it.
fn is_followed_by_list(parser: &Parser) -> bool {
    let mut ahead = Ahead::of(parser);
    ahead.next();
    *ahead.next() == Token::LParen && ahead.skip_operand() == Some(&Token::Comma)
}

/// The units of an interval that combine two fields, as in `INTERVAL '1 2' DAY_HOUR`.
fn is_composite_unit(word: &str) -> bool {
    const COMPOSITE: [&str; 11] = [
        "second_microsecond",
        "minute_microsecond",
        "minute_second",
        "hour_microsecond",
        "hour_second",
        "hour_minute",
        "day_microsecond",
        "day_second",
        "day_minute",
        "day_hour",
        "year_month",
    ];
    COMPOSITE.iter().any(|unit| word.eq_ignore_ascii_case(unit))
}
