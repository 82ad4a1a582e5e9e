//! INSERT and REPLACE of many rows, read row by row instead of as a syntax tree.
//!
//! Dumps and loaders write thousands of rows into one statement, and each looks like one before it:
//!
//! ```text
//!   INSERT INTO t (a, b, c) VALUES (1,'x',NOW()),(2,NULL,NOW()), ... ON DUPLICATE KEY UPDATE b = 'y'
//!   head                           row                               tail
//!
//!   INSERT INTO t (a, b, c) VALUES (?,?,NOW()) ON DUPLICATE KEY UPDATE b = ?          the plan's text
//! ```
//!
//! Rows that are the same without their literals are of one *form*. The statement is that of one row, run with the
//! literals of each; where rows are of several forms (here NOW(), there NULL), each form has a plan. A first pass looks
//! whether they are, before anything is changed, and notes where the literals stand. Where there are too many to note,
//! a second pass finds them again, row by row. So no more than one row is in memory. A tree of the statement took ten
//! times its size, and most of its time.

use std::borrow::Cow;
use std::ops::Range;

use sheaf_types::{Value, number_literal};

use crate::direct::cache::statement_cache::{Pass, Taken};
use crate::parser::scan::unescaped;
use crate::variables::Variables;

/// Shorter statements have plans of their own.
const MIN_STATEMENT_BYTES: usize = 1 << 10;
/// The most bytes in front of the rows.
const MAX_HEAD_BYTES: usize = 4 << 10;
/// The most forms of rows.
const MAX_FORMS: usize = 8;
/// Literals whose places are noted, at most: these are half a MiB.
const MAX_NOTED: usize = 64 << 10;

/// See the module's comment.
pub(crate) struct ValueLists<'a> {
    sql: &'a str,
    has_ansi_quotes: bool,
    /// In the order in which they appear first.
    pub(in crate::direct) forms: Vec<Form>,
    /// Bytes of the texts of forms in front of the row.
    head_bytes: usize,
    pub(in crate::direct) rows: u64,
    /// Where the first row begins.
    first: usize,
    /// `None`: there are too many.
    noted: Option<Noted>,
    /// The literals of the tail.
    pub(in crate::direct) tail: Vec<Value>,
}

/// What the first pass has found of all rows.
#[derive(Default)]
struct Noted {
    /// The number of each row's form.
    forms: Vec<u8>,
    /// Where the literals stand, row after row.
    places: Vec<Range<u32>>,
}

impl Noted {
    /// False: there are too many, or they are too far.
    fn add(&mut self, form: usize, places: &[Range<usize>]) -> bool {
        let (Ok(form), true) = (
            u8::try_from(form),
            self.places.len() + places.len() <= MAX_NOTED,
        ) else {
            return false;
        };
        self.forms.push(form);
        places.iter().all(|place| {
            let ends = (u32::try_from(place.start), u32::try_from(place.end));
            match ends {
                (Ok(start), Ok(end)) => {
                    self.places.push(start..end);
                    true
                }
                _ => false,
            }
        })
    }
}

/// What rows have in common.
pub(in crate::direct) struct Form {
    /// A row without its literals.
    row: String,
    /// How many literals it has.
    pub(in crate::direct) width: usize,
    /// The statement of one such row.
    pub(in crate::direct) text: String,
}

impl Form {
    fn of(taken: &Taken) -> Form {
        Form {
            row: taken.text.clone(),
            width: taken.spans.len(),
            text: String::new(),
        }
    }
}

/// The number of the form that a row has, which is nearly always that of the row before.
fn form_of(forms: &[Form], row: &str, before: usize) -> Option<usize> {
    let has = |form: &Form| form.row == row;
    match forms.get(before) {
        Some(form) if has(form) => Some(before),
        _ => forms.iter().position(has),
    }
}

impl<'a> ValueLists<'a> {
    /// The rows of a request, if they are of few forms, and direct plans are on. What is traced is parsed as a whole.
    pub(crate) fn of_request(variables: &Variables, sql: &'a str) -> Option<ValueLists<'a>> {
        let has_ansi_quotes = variables.sql_mode().contains("ANSI_QUOTES");
        match variables.direct_plans() && !variables.traces_optimizer() {
            true => ValueLists::of(sql, has_ansi_quotes),
            false => None,
        }
    }

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
        let head = std::mem::take(&mut pass.taken.text);
        pass.skip_space();
        let first = pass.at;
        let (mut number, mut form) = (0, 0);
        let mut forms: Vec<Form> = Vec::new();
        let mut noted = Some(Noted::default());
        loop {
            if !pass.row() {
                return None;
            }
            form = match form_of(&forms, &pass.taken.text, form) {
                Some(form) => form,
                None if forms.len() < MAX_FORMS => {
                    forms.push(Form::of(pass.taken));
                    forms.len() - 1
                }
                None => return None,
            };
            noted = noted.and_then(|mut noted| {
                let is_noted = noted.add(form, &pass.taken.spans);
                is_noted.then_some(noted)
            });
            number += 1;
            let end = pass.at;
            if !pass.next_row() {
                let (behind, tail) = tail(sql, end, has_ansi_quotes)?;
                for form in &mut forms {
                    form.text = format!("{head}{}{behind}", form.row);
                }
                return (number > 1).then_some(ValueLists {
                    sql,
                    has_ansi_quotes,
                    forms,
                    head_bytes: head.len(),
                    rows: number,
                    first,
                    noted,
                    tail,
                });
            }
        }
    }

    /// The statement with two rows of each form, which has the same digest where all rows are of one.
    pub(crate) fn shape(&self) -> String {
        let text = &self.forms[0].text;
        let (head, behind) = text.split_at(self.head_bytes);
        let tail = &behind[self.forms[0].row.len()..];
        let rows = self.forms.iter().flat_map(|form| [&*form.row, &*form.row]);
        let rows: Vec<&str> = rows.collect();
        format!("{head}{}{tail}", rows.join(","))
    }

    /// The rows from the first one on.
    pub(in crate::direct) fn reader<'t>(&'t self, taken: &'t mut Taken) -> RowReader<'t> {
        let mut pass = Pass::new(self.sql, self.has_ansi_quotes, taken);
        pass.in_list = true;
        pass.at = self.first;
        RowReader {
            pass,
            lists: self,
            form: 0,
            next: 0,
            first_place: 0,
        }
    }

    /// The literals of the first row and those of the tail: what the plan's statement gets as parameters.
    pub(in crate::direct) fn parameters(&self) -> Option<Vec<Value>> {
        let mut taken = Taken::default();
        let mut reader = self.reader(&mut taken);
        let mut parameters = Vec::new();
        if reader.next_row().is_some() {
            for place in 0..reader.width() {
                parameters.push(literal(reader.literal(place))?);
            }
        }
        parameters.extend(self.tail.iter().cloned());
        Some(parameters)
    }
}

/// Reads row after row of a list that is known to have nothing but rows of these forms.
pub(in crate::direct) struct RowReader<'t> {
    /// Over the rows, where nothing is noted.
    pass: Pass<'t>,
    lists: &'t ValueLists<'t>,
    /// That of the row that was read last.
    form: usize,
    /// The next row.
    next: usize,
    /// Where the places of the row begin among all.
    first_place: usize,
}

impl RowReader<'_> {
    /// The number of the next row's form; `None`: there are no more.
    pub(in crate::direct) fn next_row(&mut self) -> Option<usize> {
        self.form = match &self.lists.noted {
            Some(noted) => {
                let form = usize::from(*noted.forms.get(self.next)?);
                if self.next > 0 {
                    self.first_place += self.width();
                }
                form
            }
            None => {
                let has_more = self.next == 0 || self.pass.next_row();
                if !has_more || !self.pass.row() {
                    return None;
                }
                form_of(&self.lists.forms, &self.pass.taken.text, self.form)?
            }
        };
        self.next += 1;
        Some(self.form)
    }

    /// How many literals the row has.
    fn width(&self) -> usize {
        self.lists.forms[self.form].width
    }

    /// How a literal of the row is written.
    pub(in crate::direct) fn literal(&self, place: usize) -> &str {
        match &self.lists.noted {
            Some(noted) => {
                let Range { start, end } = &noted.places[self.first_place + place];
                &self.lists.sql[*start as usize..*end as usize]
            }
            None => self.pass.written(place),
        }
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

/// What is behind the rows, without its literals, and these. `None`: something else than what may be there.
fn tail(sql: &str, at: usize, has_ansi_quotes: bool) -> Option<(String, Vec<Value>)> {
    let rest = sql[at..].trim_ascii();
    if rest.is_empty() || rest == ";" {
        return Some((String::new(), Vec::new()));
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
    let literals = taken.take_literals();
    Some((taken.text, literals))
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
pub(in crate::direct) fn literal(written: &str) -> Option<Value> {
    match written.as_bytes() {
        [quote @ (b'\'' | b'"'), ..] => Some(Value::Text(text(written, *quote).into_owned())),
        [b'n' | b'N', ..] => Some(Value::Null),
        _ => number_literal(written),
    }
}

/// What a literal in quotes says.
pub(in crate::direct) fn text(written: &str, quote: u8) -> Cow<'_, str> {
    let inner = &written[1..written.len() - 1];
    match memchr::memchr2(b'\\', quote, inner.as_bytes()) {
        None => Cow::Borrowed(inner),
        Some(_) => Cow::Owned(unescaped(inner, char::from(quote))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sql: &str) -> Option<(String, Vec<Vec<Value>>, Vec<Value>)> {
        let padded = format!("{sql}{}", " ".repeat(MIN_STATEMENT_BYTES));
        let mut lists = ValueLists::of(&padded, false)?;
        let noted = read(&lists)?;
        lists.noted = None;
        assert_eq!(read(&lists)?, noted, "read again: {sql}");
        let texts: Vec<&str> = lists.forms.iter().map(|form| form.text.as_str()).collect();
        Some((texts.join(" / "), noted, lists.tail.clone()))
    }

    fn read(lists: &ValueLists<'_>) -> Option<Vec<Vec<Value>>> {
        let mut taken = Taken::default();
        let mut reader = lists.reader(&mut taken);
        let mut rows = Vec::new();
        while reader.next_row().is_some() {
            let values = (0..reader.width()).map(|place| literal(reader.literal(place)));
            rows.push(values.collect::<Option<Vec<Value>>>()?);
        }
        Some(rows)
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
    fn rows_of_several_forms_are_read_as_they_come() {
        let (text, rows, _) =
            rows("insert t values (1,now()),(2,null),(default,3),(4,5),(6,now())").expect("rows");
        assert_eq!(
            text,
            "insert t values(?,now()) / insert t values(?,?) / insert t values(default,?)"
        );
        let int = |number| Value::Int(number);
        let expected = [
            vec![int(1)],
            vec![int(2), Value::Null],
            vec![int(3)],
            vec![int(4), int(5)],
            vec![int(6)],
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn more_literals_than_are_noted_are_found_again() {
        let row = "(1,'two',3.5),";
        let rows = MAX_NOTED / 3 + 1;
        let sql = format!("insert t values {}(9,'',NULL)", row.repeat(rows));
        let lists = ValueLists::of(&sql, false).expect("rows");
        assert!(lists.noted.is_none());
        let read = read(&lists).expect("values");
        assert_eq!(read.len(), rows + 1);
        let last = vec![Value::Int(9), Value::Text(String::new()), Value::Null];
        assert_eq!(read.last(), Some(&last));
    }

    #[test]
    fn what_has_other_rows_is_left_to_the_parser() {
        for sql in [
            "insert t values (a),(b),(c),(d),(e),(f),(g),(h),(i)",
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
