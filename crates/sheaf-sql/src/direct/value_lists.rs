//! INSERT and REPLACE of many rows, read row by row instead of as a syntax tree.
//!
//! Dumps and loaders write thousands of rows into one statement, and each looks like the one before:
//!
//! ```text
//!   INSERT INTO t (a, b, c) VALUES (1,'x',NOW()),(2,NULL,NOW()), ... ON DUPLICATE KEY UPDATE b = 'y'
//!   head                           row                               tail
//!
//!   INSERT INTO t (a, b, c) VALUES (?,?,NOW()) ON DUPLICATE KEY UPDATE b = ?          the plan's text
//! ```
//!
//! Where all rows are the same without their literals, the statement is that of one row, run with the literals of each.
//! A first pass looks whether they are, before anything is changed. A second one reads the literals of a row and writes the
//! row, so no more than one row is in memory. A tree of the statement took ten times its size, and most of its time.

use std::borrow::Cow;

use sheaf_table::Value;

use super::statement_cache::{Pass, Taken, signed_number};
use super::{Action, Cached, DirectPlan};
use crate::error::Result;
use crate::parser::scan::unescaped;
use crate::result::ResultSink;
use crate::session::Session;

/// Shorter statements have plans of their own.
const MIN_STATEMENT_BYTES: usize = 1 << 10;
/// The most bytes in front of the rows.
const MAX_HEAD_BYTES: usize = 4 << 10;

/// See the module's comment.
pub(crate) struct ValueLists<'a> {
    sql: &'a str,
    has_ansi_quotes: bool,
    /// The statement of one row.
    text: String,
    /// Where the first row begins.
    first: usize,
    /// How many literals each row has.
    width: usize,
    /// The literals of the tail.
    tail: Vec<Value>,
}

impl<'a> ValueLists<'a> {
    /// `None`: the statement is not of this kind.
    fn of(sql: &'a str, has_ansi_quotes: bool) -> Option<ValueLists<'a>> {
        let first_word = sql.trim_ascii_start().as_bytes().get(..6)?;
        let inserts = first_word.eq_ignore_ascii_case(b"INSERT")
            || first_word.eq_ignore_ascii_case(b"REPLAC");
        if sql.len() < MIN_STATEMENT_BYTES || !inserts {
            return None;
        }
        let mut taken = Taken::default();
        let mut pass = Pass::new(sql, has_ansi_quotes, &mut taken);
        pass.in_list = true;
        while !ends_in_values(&pass.taken.text) {
            let byte = pass.peek(0)?;
            if pass.taken.text.len() > MAX_HEAD_BYTES || byte == b';' || !pass.token(byte) {
                return None;
            }
        }
        if !pass.taken.spans.is_empty() {
            return None;
        }
        let mut text = std::mem::take(&mut pass.taken.text);
        pass.skip_space();
        let first = pass.at;
        let mut number = 0;
        let (mut form, mut width) = (String::new(), 0);
        loop {
            if !pass.row() {
                return None;
            }
            if number == 0 {
                form.push_str(&pass.taken.text);
                width = pass.taken.spans.len();
            } else if pass.taken.text != form {
                return None;
            }
            number += 1;
            let end = pass.at;
            if !pass.next_row() {
                text.push_str(&form);
                let tail = tail(sql, end, has_ansi_quotes, &mut text)?;
                return (number > 1).then_some(ValueLists {
                    sql,
                    has_ansi_quotes,
                    text,
                    first,
                    width,
                    tail,
                });
            }
        }
    }

    /// The rows from the first one on.
    pub(super) fn reader<'t>(&self, taken: &'t mut Taken) -> RowReader<'t>
    where
        'a: 't,
    {
        let mut pass = Pass::new(self.sql, self.has_ansi_quotes, taken);
        pass.in_list = true;
        pass.at = self.first;
        RowReader {
            pass,
            is_first: true,
        }
    }

    /// The literals of the first row and those of the tail: what the plan's statement gets as parameters.
    fn parameters(&self) -> Option<Vec<Value>> {
        let mut taken = Taken::default();
        let mut reader = self.reader(&mut taken);
        let mut parameters = Vec::with_capacity(self.width + self.tail.len());
        if reader.next_row() {
            for place in 0..self.width {
                parameters.push(literal(reader.literal(place))?);
            }
        }
        parameters.extend(self.tail.iter().cloned());
        Some(parameters)
    }
}

/// Reads row after row of a list that is known to have nothing but rows of one form.
pub(super) struct RowReader<'t> {
    pass: Pass<'t>,
    is_first: bool,
}

impl RowReader<'_> {
    /// False: there are no more.
    pub(super) fn next_row(&mut self) -> bool {
        let has_more = std::mem::take(&mut self.is_first) || self.pass.next_row();
        has_more && self.pass.row()
    }

    /// How a literal of the row is written.
    pub(super) fn literal(&self, place: usize) -> &str {
        self.pass.written(place)
    }
}

impl Pass<'_> {
    fn skip_space(&mut self) {
        while self.peek(0).is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Reads a row with its parentheses. False: there is none, or one that only the parser understands.
    fn row(&mut self) -> bool {
        self.taken.clear();
        let mut depth = 0_usize;
        loop {
            match self.peek(0) {
                Some(b'(') => depth += 1,
                Some(b')') => depth = depth.saturating_sub(1),
                // It does not begin with a parenthesis.
                _ if depth == 0 => return false,
                _ => {}
            }
            let Some(byte) = self.peek(0) else {
                return false;
            };
            if !self.token(byte) {
                return false;
            }
            if depth == 0 {
                return byte == b')';
            }
        }
    }

    /// Goes to the row behind a comma. False: there is no comma, and nothing was read but space.
    fn next_row(&mut self) -> bool {
        self.skip_space();
        let has_more = self.peek(0) == Some(b',');
        if has_more {
            self.at += 1;
            self.skip_space();
        }
        has_more
    }
}

/// Reads what is behind the rows into the text of the plan; its literals. `None`: something else than what may be there.
fn tail(sql: &str, at: usize, has_ansi_quotes: bool, text: &mut String) -> Option<Vec<Value>> {
    let rest = sql[at..].trim_ascii();
    if rest.is_empty() || rest == ";" {
        return Some(Vec::new());
    }
    let begins = |word: &str| {
        let first = rest.as_bytes().get(..word.len());
        first.is_some_and(|first| first.eq_ignore_ascii_case(word.as_bytes()))
    };
    if !begins("on ") && !begins("as ") {
        return None;
    }
    let mut taken = Taken::default();
    let mut pass = Pass::new(rest, has_ansi_quotes, &mut taken);
    // A word in front of it keeps the pass from looking for the beginning of a statement.
    pass.taken.text.push(' ');
    while let Some(byte) = pass.peek(0) {
        if byte == b';' {
            if !rest[pass.at + 1..].trim_ascii().is_empty() {
                return None;
            }
            break;
        }
        if !pass.token(byte) {
            return None;
        }
    }
    text.push_str(&taken.text);
    Some(taken.take_literals())
}

/// Whether a text that begins as INSERT or REPLACE does ends in the word in front of rows.
fn ends_in_values(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends_in = |word: &str| {
        let from = bytes.len().checked_sub(word.len());
        let ends = from.is_some_and(|from| bytes[from..].eq_ignore_ascii_case(word.as_bytes()));
        ends && from.is_some_and(|from| {
            from > 0 && matches!(bytes[from - 1], b' ' | b')' | b'\n' | b'\t' | b'`')
        })
    };
    ends_in("values") || ends_in("value")
}

/// The value of a literal as it is written in a row.
pub(super) fn literal(written: &str) -> Option<Value> {
    match written.as_bytes() {
        [quote @ (b'\'' | b'"'), ..] => Some(Value::Text(text(written, *quote).into_owned())),
        [b'n' | b'N', ..] => Some(Value::Null),
        _ => signed_number(written),
    }
}

/// What a literal in quotes says.
pub(super) fn text(written: &str, quote: u8) -> Cow<'_, str> {
    let inner = &written[1..written.len() - 1];
    let is_plain = |byte: u8| byte != b'\\' && byte != quote;
    match inner.bytes().all(is_plain) {
        true => Cow::Borrowed(inner),
        false => Cow::Owned(unescaped(inner, char::from(quote))),
    }
}

impl Session {
    /// Runs a statement whose rows are all of one form. Unless it is done, the statement is to be parsed.
    pub(crate) fn run_value_lists(
        &mut self,
        lists: &ValueLists<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Cached> {
        let mut cache = std::mem::take(&mut self.statement_cache);
        let outcome = match cache.plan_of(self, &lists.text) {
            Some(plan) => self.run_lists_by(plan, lists, sink),
            None => Ok(Cached::NotDirect),
        };
        self.statement_cache = cache;
        outcome
    }

    fn run_lists_by(
        &mut self,
        plan: &DirectPlan,
        lists: &ValueLists<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Cached> {
        let Action::Insert(insert) = &plan.action else {
            return Ok(Cached::NotDirect);
        };
        let parameters = lists.parameters();
        let Some(parameters) = parameters.filter(|all| all.len() == plan.parameters) else {
            return Ok(Cached::NotDirect);
        };
        if !insert.takes_lists() {
            return Ok(Cached::NotDirect);
        }
        let is_done = self.around_direct(plan, &parameters, |session, parameters| {
            session.run_direct_insert(insert, (parameters, Some(lists)), sink)
        })?;
        Ok(match is_done {
            true => Cached::Done,
            false => Cached::Declined,
        })
    }

    /// The rows of a request, if they are all of one form.
    pub(crate) fn value_lists<'a>(&self, sql: &'a str) -> Option<ValueLists<'a>> {
        let has_ansi_quotes = self.variables.sql_mode().contains("ANSI_QUOTES");
        match self.variables.direct_plans() {
            true => ValueLists::of(sql, has_ansi_quotes),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sql: &str) -> Option<(String, Vec<Vec<Value>>, Vec<Value>)> {
        let padded = format!("{sql}{}", " ".repeat(MIN_STATEMENT_BYTES));
        let lists = ValueLists::of(&padded, false)?;
        let mut taken = Taken::default();
        let mut reader = lists.reader(&mut taken);
        let mut rows = Vec::new();
        while reader.next_row() {
            let values = (0..lists.width).map(|place| literal(reader.literal(place)));
            rows.push(values.collect::<Option<Vec<Value>>>()?);
        }
        Some((lists.text.clone(), rows, lists.tail.clone()))
    }

    #[test]
    fn rows_of_one_form_are_read_one_by_one() {
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(
            rows(
                "insert into t (a,b,c) values (1,'x',now()),\n (-2,NULL,now()) , (null,'',now());"
            ),
            Some((
                "insert into t (a,b,c) values(?,?,now())".into(),
                vec![
                    vec![Value::Int(1), text("x")],
                    vec![Value::Int(-2), Value::Null],
                    vec![Value::Null, text("")],
                ],
                Vec::new()
            ))
        );
        assert_eq!(
            rows(
                "REPLACE `d`.`t` VALUES ('it''s','a\\'b\\\\','),(\"'),('\\n','','é') \
                 on duplicate key update a = 'x', b = values(b) + 1"
            ),
            Some((
                "REPLACE `d`.`t` VALUES(?,?,?) on duplicate key update a = ?, b = values(b) + ?"
                    .into(),
                vec![
                    vec![text("it's"), text("a'b\\"), text("),(\"")],
                    vec![text("\n"), text(""), text("é")],
                ],
                vec![text("x"), Value::Int(1)]
            ))
        );
        let functions = rows("insert t values (concat('a',1),2.50),(concat('b',22),NULL)");
        assert_eq!(
            functions.map(|(text, rows, _)| (text, rows.len())),
            Some(("insert t values(concat(?,?),?)".into(), 2))
        );
    }

    #[test]
    fn what_is_not_of_one_form_is_left_to_the_parser() {
        for sql in [
            "insert into t values (1),(default)",
            "insert into t values (1),(1+1)",
            "insert into t values (1),(x'61')",
            "insert into t values (1),(0x61)",
            "insert into t values (1),(1e5)",
            "insert into t values (1),(_latin1'a')",
            "insert into t values (1),(2",
            "insert into t values (1),('2)",
            "insert into t values (1),('a'\"b\")",
            "insert into t values (1),",
            "insert into t values (1),(2) limit 1",
            "insert into t values (1),(2); select 1",
            "insert into t values (1),(2) on duplicate key update a = 1; select 1",
            "insert into t select 1",
            "insert into t set a = 1",
            "update t set a = 1",
            "values (1),(2)",
        ] {
            assert_eq!(rows(sql), None, "{sql}");
        }
    }
}
