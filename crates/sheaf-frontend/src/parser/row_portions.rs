//! INSERT of many rows, whose syntax trees are made in portions.
//!
//! The tree of a row takes some kilobytes, a hundred times its text. So of a long list only the first rows become trees
//! with the statement. A node behind them says where the others stand, and these are parsed when those before them have
//! been written:
//!
//! ```text
//!   INSERT INTO t VALUES (1, NOW()), ... (256, NOW()), (257, NOW()), ... (9999, NOW()) ON DUPLICATE KEY UPDATE a = 1
//!   |- parsed with the statement -------------------|  |- ARRAY[start, end, rows] --|  |- parsed with it ---------|
//! ```
//!
//! A statement with an error changes nothing. So all rows are parsed once before the first is written, portion after
//! portion. The whole statement becomes one tree where that finds a row of another length, or a query, which has to see
//! the same rows as all others. A syntax error is told of the portion that has it, as of the whole: for the tree there
//! may be no memory.
//!
//! The node is ARRAY, which MySQL does not have, so that no statement can have written it.

use std::ops::ControlFlow;

use sheaf_access::cancel;
use sheaf_types::error::codes;
use sqlparser::ast::{Array, Expr, Insert, Parens, Query, SetExpr, Values};

use super::pieces::{Piece, Pieces};
use super::statement::Statement;
use super::{LONG_TEXT_BYTES, Parameters, parse_with_parameters};
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::syntax::{number, number_digits};
use crate::walk::{ExpressionVisitor, walk_expression, walk_insert};

/// Rows that become trees at a time, and what their text has, but for the last one.
const PORTION_ROWS: usize = 256;
const PORTION_BYTES: usize = 256 << 10;
/// Rows of fewer words, literals and signs become one tree: it takes some megabytes.
const MIN_PIECES: usize = 16 << 10;
/// What stands in front of the rows of a portion.
const HEAD: &str = "INSERT INTO t VALUES ";

/// Where rows that are not parsed yet stand in the text of their statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPortions {
    start: usize,
    end: usize,
    rows: usize,
}

/// Some rows, and the text that their trees refer to.
#[derive(Debug)]
pub struct RowPortion {
    pub rows: Vec<Vec<Expr>>,
    pub text: String,
}

impl RowPortions {
    /// Those that the last row stands for, which is taken away. `None`: it is a row.
    pub fn take_from(rows: &mut Vec<Vec<Expr>>) -> Option<RowPortions> {
        let portions = RowPortions::of(rows.last()?)?;
        rows.pop();
        Some(portions)
    }

    fn of(row: &[Expr]) -> Option<RowPortions> {
        let [Expr::Array(Array { elem, named: true })] = row else {
            return None;
        };
        let numbers = elem
            .iter()
            .map(|part| number_digits(part)?.parse::<usize>().ok());
        match numbers.collect::<Option<Vec<usize>>>()?.as_slice() {
            &[start, end, rows] => Some(RowPortions { start, end, rows }),
            _ => None,
        }
    }

    fn as_row(self) -> Parens<Vec<Expr>> {
        let elem = [self.start, self.end, self.rows].map(number).into();
        Parens::with_empty_span(vec![Expr::Array(Array { elem, named: true })])
    }

    /// How many rows are left.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The next rows; `None` if none are left. `text` is that of the statement.
    ///
    /// # Errors
    /// As `parse_statement`.
    pub fn next(&mut self, text: &str, dialect: &SheafDialect) -> Result<Option<RowPortion>> {
        if self.rows == 0 {
            return Ok(None);
        }
        let rest = text.get(self.start..self.end).unwrap_or_default();
        let Some(found) = RowsAt::of(rest, 0) else {
            return Err(SqlError::parse_error(rest, 1));
        };
        let whole = text;
        let text = format!("{HEAD}{}", &rest[..found.end]);
        let start = self.start;
        self.start += found.next.unwrap_or(found.end);
        self.rows = self.rows.saturating_sub(found.rows);
        match parse_with_parameters(&text, dialect, Parameters::None) {
            Ok((Statement::Insert(insert), _)) => {
                let rows = rows_of(*insert).unwrap_or_default();
                Ok(Some(RowPortion { rows, text }))
            }
            Ok(_) => Err(SqlError::parse_error(&text, 1)),
            Err(error) => Err(error_in_whole(
                whole,
                start,
                start + found.end,
                dialect,
                error,
            )),
        }
    }
}

/// An error in a portion, as that of the whole statement: with its line, and with what follows.
fn error_in_whole(
    text: &str,
    start: usize,
    end: usize,
    dialect: &SheafDialect,
    error: SqlError,
) -> SqlError {
    /// More of a statement than the message of an error shows.
    const SHOWN_CHARS: usize = 200;
    if error.code != codes::PARSE_ERROR.number() {
        return error;
    }
    let following: String = text[end..].chars().take(SHOWN_CHARS).collect();
    let text = format!(
        "{}{HEAD}{}{following}",
        lines(&text[..start]),
        &text[start..end]
    );
    match parse_with_parameters(&text, dialect, Parameters::None) {
        Err(error) => error,
        Ok(_) => error,
    }
}

/// The ends of lines in a text, and nothing else of it.
fn lines(text: &str) -> String {
    text.chars().filter(|part| *part == '\n').collect()
}

/// The syntax error in what stands from the row on that is none.
fn error_behind(text: &str, start: usize, dialect: &SheafDialect) -> Option<SqlError> {
    /// A longer text may have any number of rows.
    const LONGEST: usize = 4 * PORTION_BYTES;
    let rest = &text[start..];
    if rest.len() > LONGEST {
        return None;
    }
    let text = format!("{}{HEAD}{rest}", lines(&text[..start]));
    let error = parse_with_parameters(&text, dialect, Parameters::None).err()?;
    (error.code == codes::PARSE_ERROR.number()).then_some(error)
}

fn rows_of(insert: Insert) -> Option<Vec<Vec<Expr>>> {
    let source = insert.source?;
    match *source.body {
        SetExpr::Values(values) => {
            let rows = values.rows.into_iter().map(|row| row.content);
            Some(rows.collect())
        }
        _ => None,
    }
}

/// Some rows in a text, no more than a portion.
#[derive(Debug, PartialEq, Eq)]
struct RowsAt {
    rows: usize,
    /// Where the last one ends.
    end: usize,
    /// What is behind its comma, if there is one.
    next: Option<usize>,
    /// Words, literals and signs.
    pieces: usize,
}

impl RowsAt {
    /// `None`: something else is there.
    fn of(text: &str, start: usize) -> Option<RowsAt> {
        let mut pieces = Pieces::new(text);
        pieces.skip_to(start);
        let (mut depth, mut is_behind_row) = (0_usize, false);
        let mut found = RowsAt {
            rows: 0,
            end: start,
            next: None,
            pieces: 0,
        };
        for (piece, range) in pieces {
            found.pieces += usize::from(piece != Piece::Blank);
            let is_portion = found.rows == PORTION_ROWS || found.end - start >= PORTION_BYTES;
            match piece {
                Piece::Blank => {}
                Piece::ExecutableStart(_) => return None,
                Piece::Symbol(b'(') if depth > 0 || !is_behind_row => depth += 1,
                Piece::Symbol(b')') if depth > 0 => {
                    depth -= 1;
                    if depth == 0 {
                        is_behind_row = true;
                        found.rows += 1;
                        found.end = range.end;
                    }
                }
                _ if depth > 0 => {}
                Piece::Symbol(b',') if is_behind_row && !is_portion => {
                    is_behind_row = false;
                }
                Piece::Symbol(b',') if is_behind_row => {
                    found.next = Some(range.end);
                    return Some(found);
                }
                _ if is_behind_row => return Some(found),
                _ => return None,
            }
        }
        (depth == 0 && is_behind_row).then_some(found)
    }
}

/// A statement of many rows.
#[derive(Debug, PartialEq, Eq)]
struct Split {
    /// Where the first portion ends.
    first_end: usize,
    others: RowPortions,
}

impl Split {
    /// `None`: the statement is something else, or short. An error is the place behind rows where there is none.
    fn of(text: &str) -> Option<std::result::Result<Split, usize>> {
        if text.len() <= LONG_TEXT_BYTES {
            return None;
        }
        let first = RowsAt::of(text, first_row(text)?)?;
        let start = first.next?;
        let (mut rows, mut pieces, mut end, mut next) = (0, first.pieces, start, Some(start));
        while let Some(at) = next {
            let Some(found) = RowsAt::of(text, at) else {
                return (pieces >= MIN_PIECES).then_some(Err(at));
            };
            rows += found.rows;
            pieces += found.pieces;
            (end, next) = (found.end, found.next);
        }
        let others = RowPortions { start, end, rows };
        (pieces >= MIN_PIECES).then_some(Ok(Split {
            first_end: first.end,
            others,
        }))
    }
}

/// Where the first row of an INSERT or REPLACE ... VALUES begins.
fn first_row(text: &str) -> Option<usize> {
    let (mut is_first, mut is_behind_values, mut depth) = (true, false, 0_usize);
    for (piece, range) in Pieces::new(text) {
        let is_one_of = |words: [&str; 2]| {
            let word = &text.as_bytes()[range.clone()];
            let is = |other: &str| word.eq_ignore_ascii_case(other.as_bytes());
            piece == Piece::Word && words.into_iter().any(is)
        };
        match piece {
            Piece::Blank => continue,
            _ if is_first && !is_one_of(["INSERT", "REPLACE"]) => return None,
            Piece::ExecutableStart(_) => return None,
            Piece::Symbol(b'(') if is_behind_values => return Some(range.start),
            Piece::Symbol(b'(') => depth += 1,
            Piece::Symbol(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_first = false;
        is_behind_values = depth == 0 && is_one_of(["VALUES", "VALUE"]);
    }
    None
}

/// The parts of a text that are parsed at once, if it is an INSERT of many rows: what is in front of the rows with the
/// first of them, and what is behind them.
pub fn parsed_at_once(text: &str) -> Option<(&str, &str)> {
    let split = Split::of(text)?.ok()?;
    Some((&text[..split.first_end], &text[split.others.end..]))
}

/// An INSERT of many rows, the first of which are trees. `None`: the statement is to be read as a whole.
///
/// # Errors
/// What stops the statement.
pub(super) fn parse_in_portions(text: &str, dialect: &SheafDialect) -> Result<Option<Statement>> {
    if dialect.ansi_quotes && text.contains('\\') {
        // The scan takes a backslash between double quotes for an escape, which it is not in a name.
        return Ok(None);
    }
    let split = match Split::of(text) {
        None => return Ok(None),
        Some(Ok(split)) => split,
        Some(Err(place)) => {
            return error_behind(text, place, dialect).map_or(Ok(None), Err);
        }
    };
    let (front, tail) = (&text[..split.first_end], &text[split.others.end..]);
    let left_out = &text[split.first_end..split.others.end];
    let front = format!("{front}{}{tail}", lines(left_out));
    let mut insert = match parse_with_parameters(&front, dialect, Parameters::None) {
        Ok((Statement::Insert(insert), _)) if is_plain_list(&insert) => insert,
        Err(error) if error.code == codes::PARSE_ERROR.number() => return Err(error),
        _ => {
            cancel::check_statement()?;
            return Ok(None);
        }
    };
    // The statement's own source is one.
    if queries_in(&mut insert) > 1 {
        return Ok(None);
    }
    let Some(width) = values_of(&mut insert).and_then(|values| {
        let first = values.rows.first()?;
        Some(first.content.len())
    }) else {
        return Ok(None);
    };
    let mut others = split.others;
    loop {
        let is_plain = match others.next(text, dialect) {
            Ok(Some(mut portion)) => are_plain(&mut portion.rows, width),
            Ok(None) => break,
            Err(error) if error.code == codes::PARSE_ERROR.number() => {
                cancel::check_statement()?;
                return Err(error);
            }
            Err(_) => false,
        };
        cancel::check_statement()?;
        if !is_plain {
            return Ok(None);
        }
    }
    if let Some(values) = values_of(&mut insert) {
        values.rows.push(split.others.as_row());
    }
    Ok(Some(Statement::Insert(insert)))
}

/// Whether all rows are inserted, as they are written, and nothing is returned.
fn is_plain_list(insert: &Insert) -> bool {
    let is_plain = |query: &Query| {
        query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none()
    };
    insert.returning.is_none() && insert.source.as_deref().is_some_and(is_plain)
}

fn values_of(insert: &mut Insert) -> Option<&mut Values> {
    match insert.source.as_mut()?.body.as_mut() {
        SetExpr::Values(values) => Some(values),
        _ => None,
    }
}

/// Whether rows have so many values each, and no query.
fn are_plain(rows: &mut [Vec<Expr>], width: usize) -> bool {
    let mut queries = Queries::default();
    for value in rows.iter_mut().flatten() {
        walk_expression(value, &mut queries);
    }
    queries.0 == 0 && rows.iter().all(|row| row.len() == width)
}

/// Counts queries.
#[derive(Default)]
struct Queries(usize);

impl ExpressionVisitor for Queries {
    fn enter_query(&mut self, _query: &Query) {
        self.0 += 1;
    }

    fn leave_expression(&mut self, _expression: &mut Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn queries_in(insert: &mut Insert) -> usize {
    let mut queries = Queries::default();
    walk_insert(insert, &mut queries);
    queries.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD_OF_TEST: &str = "insert into d.t (a, `values`, b) values ";

    /// A statement of so many rows.
    fn statement(rows: usize, tail: &str) -> String {
        let row = |n: usize| format!("({n}, concat('),(', \"a,b\"), /* ( */ (1 + {n}))");
        let rows: Vec<String> = (0..rows).map(row).collect();
        format!("{HEAD_OF_TEST}{}{tail}", rows.join(" ,\n"))
    }

    fn parsed(text: &str) -> Option<(Vec<Vec<Expr>>, Option<RowPortions>)> {
        let statement = parse_in_portions(text, &SheafDialect::default()).expect("no stop")?;
        let Statement::Insert(insert) = statement else {
            return None;
        };
        let mut rows = rows_of(*insert)?;
        let portions = RowPortions::take_from(&mut rows);
        Some((rows, portions))
    }

    #[test]
    fn many_rows_become_trees_in_portions() {
        let rows = 5 * PORTION_ROWS + 7;
        for tail in ["", " on duplicate key update a = values(a) + 1", " as n"] {
            let text = statement(rows, tail);
            let (front, portions) = parsed(&text).expect("portions");
            let mut portions = portions.expect("others");
            assert_eq!(
                (front.len(), portions.rows()),
                (PORTION_ROWS, rows - front.len())
            );
            let mut all = front;
            while let Some(portion) = portions
                .next(&text, &SheafDialect::default())
                .expect("rows")
            {
                assert!(portion.text.starts_with(HEAD));
                all.extend(portion.rows);
            }
            let whole = parse_with_parameters(&text, &SheafDialect::default(), Parameters::None);
            let Ok((Statement::Insert(whole), _)) = whole else {
                panic!("{whole:?}");
            };
            assert_eq!(all, rows_of(*whole).expect("rows"));
        }
    }

    #[test]
    fn other_statements_become_one_tree() {
        let rows = 5 * PORTION_ROWS + 7;
        let long = |tail: &str| statement(rows, tail);
        assert!(parsed(&long("")).is_some());
        let others = [
            statement(PORTION_ROWS, ""),
            long(", (1, 2)"),
            long(", (1, 2, (select 3))"),
            long(" limit 1"),
            long(" order by 1"),
            long(" returning a"),
            long(" on duplicate key update a = (select 1)"),
            long("").replacen("insert", "explain insert", 1),
            long("").replacen("values (", "values row(", 1),
            long("").replacen("(0,", "((select 1),", 1),
            format!("insert into t set a = 1{}", " ".repeat(LONG_TEXT_BYTES)),
        ];
        for text in others {
            let end = text.len().saturating_sub(60);
            assert!(parsed(&text).is_none(), "{}", &text[end..]);
        }
    }

    #[test]
    fn errors_are_those_of_the_whole() {
        let rows = 5 * PORTION_ROWS + 7;
        let broken = |row: usize| {
            let row = format!("({row}, concat");
            statement(rows, "").replacen(&row, &format!("{row} x"), 1)
        };
        let texts = [
            statement(rows, ", (1, 2, )"),
            statement(rows, ", (1, 2, 3"),
            statement(rows, ", (1, 2, 3) x y"),
            statement(rows, ","),
            statement(rows, " on duplicate key a = 1"),
            broken(3),
            broken(3 * PORTION_ROWS + 2),
        ];
        for text in texts {
            let dialect = SheafDialect::default();
            let whole = parse_with_parameters(&text, &dialect, Parameters::None);
            let error = parse_in_portions(&text, &dialect);
            assert_eq!(
                error.expect_err("an error").message,
                whole.expect_err("an error").message
            );
        }
    }

    #[test]
    fn a_row_of_a_statement_is_no_node() {
        let mut rows = vec![vec![number(1), number(2), number(3)]];
        assert_eq!(RowPortions::take_from(&mut rows), None);
        assert_eq!(rows.len(), 1);
    }
}
