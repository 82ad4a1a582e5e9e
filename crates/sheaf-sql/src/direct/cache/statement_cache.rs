//! Direct plans of statements that come as text.
//!
//! Programs send the same few statements again and again with other literals. One pass over the text takes the literals
//! out, and what is left finds the plan:
//!
//! ```text
//!   SELECT c FROM t WHERE id = 17 AND b = 'x'
//!   SELECT c FROM t WHERE id = ? AND b = ?        17, 'x'
//! ```
//!
//! The plan is compiled from that text as from a prepared statement, and a literal means the same in both. The rest is
//! kept as it is written, spaces and letters, because result headers are cut from it. Comments are left out, so that
//! clients that tag their statements share plans. Anything that the pass is not sure of makes the statement one for the
//! parser. Such are hints and other comments with a meaning, comments in parentheses, where they may be part of a
//! header, escapes, quoted names of variables, and literals with an introducer.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use sheaf_types::{Value, number_literal};

use crate::direct::{DirectPlan, Known, Spelled};
use crate::error::Result;
use crate::session::Session;
use crate::session::circumstances::Circumstances;
use crate::session::result::ResultSink;
use crate::session::status::Command;

/// Statements longer than this are not looked for: parsing is not what takes their time.
pub(in crate::direct) const MAX_STATEMENT_BYTES: usize = 4 << 10;
/// Statements that a session has at hand. When there are more it begins anew, with those that all sessions share.
const MAX_STATEMENTS: usize = 64;
/// The most memory that their plans may take, but for the last one.
const MAX_PLANS_BYTES: usize = 4 << 20;

/// A longer number stays in its text: it may have more digits than a value.
const MAX_NUMBER_BYTES: usize = sheaf_types::number::MAX_DIGITS as usize;

/// A statement that had no direct plan with its literals either is compiled with them again after so many runs.
const RUNS_WITHOUT_TRYING: u32 = 32;

/// A session's statements by their text without literals.
#[derive(Default)]
pub(crate) struct StatementCache {
    /// What the statements were found out for.
    circumstances: Option<Circumstances>,
    known: BTreeMap<Arc<str>, Known>,
    /// Those of them that have had no plan with their literals, and how often they have run since.
    refused: BTreeMap<Arc<str>, u32>,
    /// The running statement; its memory serves the next one.
    taken: Taken,
}

impl StatementCache {
    /// The text of the running statement with `?` in the places of its literals.
    pub(crate) fn taken_text(&self) -> &str {
        &self.taken.text
    }

    /// Forgets what was found out in other circumstances.
    fn keep_current(&mut self, session: &Session) {
        let circumstances = self.circumstances.as_ref();
        if !circumstances.is_some_and(|known| session.is_still_under(known)) {
            self.known.clear();
            self.refused.clear();
            self.circumstances = Some(session.circumstances());
        }
    }

    /// The running statement has no direct plan with its literals.
    pub(crate) fn refuse_taken(&mut self) {
        if self.refused.len() >= MAX_STATEMENTS {
            self.refused.clear();
        }
        let text = self.known.get_key_value(self.taken.text.as_str());
        if let Some((text, Known::NotDirect)) = text {
            self.refused.insert(Arc::clone(text), 0);
        }
    }

    /// The plan of a text with `?` in the places of its literals.
    pub(in crate::direct) fn plan_of(
        &mut self,
        session: &Session,
        text: &str,
    ) -> Result<Option<Arc<DirectPlan>>> {
        self.keep_current(session);
        plan_at_hand(session, &mut self.known, text)?;
        Ok(match self.known.get(text) {
            Some(Known::Direct(plan)) => Some(Arc::clone(plan)),
            _ => None,
        })
    }
}

/// A statement taken apart.
#[derive(Default)]
pub(in crate::direct) struct Taken {
    /// With `?` in the places of literals.
    pub(in crate::direct) text: String,
    /// Their values, unless the text is that of a list of rows.
    literals: Vec<Value>,
    /// Where they stand in the request.
    pub(in crate::direct) spans: Vec<Range<usize>>,
    /// Something else was left out, too.
    has_comments: bool,
}

impl Taken {
    pub(in crate::direct) fn clear(&mut self) {
        self.text.clear();
        self.literals.clear();
        self.spans.clear();
        self.has_comments = false;
    }

    pub(in crate::direct) fn take_literals(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.literals)
    }

    /// `sql` is the request.
    fn spelled<'a>(&'a self, sql: &'a str) -> Spelled<'a> {
        match self.has_comments {
            true => Spelled::Changed,
            false => Spelled::TakenOut(sql, &self.spans),
        }
    }
}

/// What has become of a statement that came as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cached {
    Done,
    /// It has a plan, but not for its literals, or not for so many rows; or had none lately. Nothing has happened.
    Declined,
    /// It has no plan without its literals, and may have one with them. Nothing has happened.
    NotDirect,
}

/// Takes the literals out of a request, for [`run_cached`]. False: it is not one statement that may be
/// direct.
pub(crate) fn take_literals(session: &mut Session, sql: &str) -> bool {
    let has_ansi_quotes = session.variables.sql_mode().contains("ANSI_QUOTES");
    sql.len() <= MAX_STATEMENT_BYTES
        && session.variables.direct_plans()
        && session.statement_cache.with(|cache: &mut StatementCache| {
            Pass::new(sql, has_ansi_quotes, &mut cache.taken).take_literals()
        })
}

/// Runs the statement whose literals were [taken out](take_literals) of `sql` by a plan that is known, or
/// becomes known. Unless it is done, the statement is to be parsed.
pub(crate) fn run_cached(
    session: &mut Session,
    sql: &str,
    sink: &mut dyn ResultSink,
) -> Result<Cached> {
    // Plans are used where they are: counting one's users would be noticed by all sessions that have it.
    let mut cache: Box<StatementCache> = session.statement_cache.take();
    cache.keep_current(session);
    let StatementCache {
        known,
        taken,
        refused,
        ..
    } = &mut *cache;
    let outcome = match plan_at_hand(session, known, &taken.text) {
        Ok(Some(plan)) if plan.parameters == taken.literals.len() => {
            let given = (taken.literals.as_slice(), taken.spelled(sql));
            let is_done = session.run_direct(plan, given, sink);
            is_done.map(|is_done| match is_done {
                true => Cached::Done,
                false => Cached::Declined,
            })
        }
        Ok(_) => Ok(match refused.get_mut(taken.text.as_str()) {
            Some(runs) if *runs < RUNS_WITHOUT_TRYING => {
                *runs += 1;
                Cached::Declined
            }
            _ => Cached::NotDirect,
        }),
        Err(error) => Err(error),
    };
    session.statement_cache.put(cache);
    outcome
}

pub(in crate::direct) fn plan_at_hand<'k>(
    session: &Session,
    known: &'k mut BTreeMap<Arc<str>, Known>,
    text: &str,
) -> Result<Option<&'k DirectPlan>> {
    let is_known = known.get(text).is_some_and(Known::is_current);
    if is_known {
        session.handle.commands.count(Command::StatementCacheHits);
    } else {
        let plans = known.values().filter_map(Known::plan);
        let bytes: usize = plans.map(DirectPlan::bytes).sum();
        if known.len() >= MAX_STATEMENTS || bytes > MAX_PLANS_BYTES {
            known.clear();
        }
        let (key, found) = session.known_plan(text)?;
        known.insert(Arc::clone(key.text()), found);
    }
    Ok(match known.get(text) {
        Some(Known::Direct(plan)) => Some(plan),
        _ => None,
    })
}

/// The pass over the bytes of a statement.
pub(in crate::direct) struct Pass<'a> {
    sql: &'a str,
    /// What is between double quotes is a name.
    has_ansi_quotes: bool,
    /// The next byte.
    pub(in crate::direct) at: usize,
    /// It reads a row of a list: where literals stand, and not what they are. NULL is one, and texts may have escapes.
    pub(in crate::direct) in_list: bool,
    pub(in crate::direct) taken: &'a mut Taken,
}

impl<'a> Pass<'a> {
    pub(in crate::direct) fn new(
        sql: &'a str,
        has_ansi_quotes: bool,
        taken: &'a mut Taken,
    ) -> Pass<'a> {
        taken.clear();
        Pass {
            sql,
            has_ansi_quotes,
            at: 0,
            in_list: false,
            taken,
        }
    }

    /// Writes the statement to a text with `?` in the places of its numbers and strings, which are kept apart. False:
    /// it cannot be direct, or there is something in it that only the parser understands.
    fn take_literals(mut self) -> bool {
        while let Some(byte) = self.peek(0) {
            if byte == b';' {
                return self.is_candidate() && self.rest_is_empty();
            }
            if !self.token(byte) {
                return false;
            }
        }
        self.is_candidate()
    }

    /// Goes beyond the token that begins with the next byte. False: as [`take_literals`].
    pub(in crate::direct) fn token(&mut self, byte: u8) -> bool {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'0'..=b'9' => self.number(self.at),
            b'\'' => self.string(b'\''),
            b'"' if !self.has_ansi_quotes => self.string(b'"'),
            b'`' => self.quoted_name(),
            // What is in front of the statement is nothing.
            b' ' | b'\t' | b'\n' | b'\r' if self.taken.text.is_empty() => {
                self.at += 1;
                true
            }
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b'(' | b')' | b'=' | b'<' | b'>' | b'+'
            | b'*' | b'%' | b'!' | b'|' | b'&' | b'^' | b'~' => self.copy(1),
            b'@' => self.variable(),
            // The point of a qualified name, not that of a number.
            b'.' if !self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) => self.copy(1),
            b'-' => self.minus(),
            b'/' if self.peek(1) == Some(b'*') => self.comment(),
            b'/' => self.copy(1),
            _ => false,
        }
    }

    /// Whether a statement may be direct, by its first word.
    fn is_candidate(&self) -> bool {
        // A UNION may begin with parentheses.
        let text = self.taken.text.trim_start_matches(['(', ' ']).as_bytes();
        let words: [&[u8]; 6] = [
            b"SELECT", b"INSERT", b"UPDATE", b"DELETE", b"REPLAC", b"WITH",
        ];
        let begins_with = |word: &[u8]| {
            let first = text.get(..word.len());
            first.is_some_and(|first| first.eq_ignore_ascii_case(word))
        };
        words.iter().any(|word| begins_with(word)) || begins_with(b"SET") && self.sets_by_query()
    }

    /// Whether a SET is that of a user variable, and has a query if it is complete.
    fn sets_by_query(&self) -> bool {
        let text = self.taken.text.as_bytes();
        if text.len() == b"SET".len() {
            let (next, second) = (self.peek(1), self.peek(2));
            return self.peek(0) == Some(b' ') && next == Some(b'@') && second != Some(b'@');
        }
        let mut words = text.windows(b"select".len());
        words.any(|word| word.eq_ignore_ascii_case(b"select"))
    }

    /// How the literal of this number is written.
    pub(in crate::direct) fn written(&self, number: usize) -> &str {
        &self.sql[self.taken.spans[number].clone()]
    }

    pub(in crate::direct) fn peek(&self, ahead: usize) -> Option<u8> {
        self.sql.as_bytes().get(self.at + ahead).copied()
    }

    fn copy(&mut self, bytes: usize) -> bool {
        self.taken
            .text
            .push_str(&self.sql[self.at..self.at + bytes]);
        self.at += bytes;
        true
    }

    /// Where the bytes end, from so many ahead on, that belong to what is being read.
    fn end_of(&self, ahead: usize, belongs: impl Fn(u8) -> bool) -> usize {
        let bytes = self.sql.as_bytes();
        let from = bytes.len().min(self.at + ahead);
        let length = bytes[from..].iter().position(|byte| !belongs(*byte));
        length.map_or(bytes.len(), |length| from + length)
    }

    fn word(&mut self) -> bool {
        let is_first = self.taken.text.is_empty();
        let end = self.end_of(1, is_word_byte);
        if self.in_list && self.sql[self.at..end].eq_ignore_ascii_case("null") {
            let start = self.at;
            self.at = end;
            return self.literal(start, |_| Some(Value::Null));
        }
        self.copy(end - self.at);
        // x'61', _utf8mb4'a', N'a'. Other statements need not be read to their end.
        !matches!(self.peek(0), Some(b'\'' | b'"')) && (!is_first || self.is_candidate())
    }

    /// `@name` or `@@name`
    fn variable(&mut self) -> bool {
        let marks = if self.peek(1) == Some(b'@') { 2 } else { 1 };
        let end = self.end_of(marks, is_word_byte);
        end > self.at + marks && self.copy(end - self.at)
    }

    /// The number that begins at the next byte. A sign stands where the literal begins.
    fn number(&mut self, start: usize) -> bool {
        let bytes = self.sql.as_bytes();
        let mut end = self.end_of(1, |byte| byte.is_ascii_digit());
        if bytes.get(end) == Some(&b'.') {
            end = self.end_of(end + 1 - self.at, |byte| byte.is_ascii_digit());
        }
        // 1e5, 0x61, 1a and 1.2.3
        if bytes
            .get(end)
            .is_some_and(|byte| is_word_byte(*byte) || *byte == b'.')
        {
            return false;
        }
        // No value has all digits of it. To the bounds of frames it has them.
        if end - self.at > MAX_NUMBER_BYTES {
            return false;
        }
        if start == self.at && ends_in_type(&self.taken.text) {
            return self.copy(end - self.at);
        }
        if start == self.at && self.is_shown_by_exists(end) {
            return self.copy(end - self.at);
        }
        self.at = end;
        // `1.` is a number, but not everywhere.
        bytes[end - 1] != b'.' && self.literal(start, number_literal)
    }

    /// Whether the number up to here is the 1 of `SELECT 1 FROM` or `SELECT 1 AS one FROM`, which is no value: it says
    /// that rows are looked for. The columns of a query in a FROM may not depend on values.
    fn is_shown_by_exists(&self, end: usize) -> bool {
        let ends_in_select = || {
            let text = self.taken.text.as_bytes();
            let before = text.len().checked_sub(b"select ".len());
            before.is_some_and(|before| text[before..].eq_ignore_ascii_case(b"select "))
        };
        let is_followed_by = |word: &[u8]| {
            let next = self.sql.as_bytes().get(end..end + word.len());
            next.is_some_and(|next| next.eq_ignore_ascii_case(word))
        };
        !self.in_list
            && &self.sql[self.at..end] == "1"
            && (is_followed_by(b" as ") || is_followed_by(b" from "))
            && ends_in_select()
    }

    fn string(&mut self, quote: u8) -> bool {
        let bytes = self.sql.as_bytes();
        let next_of_meaning = |from: usize| {
            let rest = &bytes[from.min(bytes.len())..];
            memchr::memchr2(quote, b'\\', rest).map_or(bytes.len(), |length| from + length)
        };
        let mut end = next_of_meaning(self.at + 1);
        // In a list, what follows a backslash is a part of the text, and so is a doubled quote.
        loop {
            end = match (bytes.get(end), bytes.get(end + 1)) {
                _ if !self.in_list => break,
                (Some(b'\\'), Some(_)) => end + 2,
                (Some(first), Some(second)) if *first == quote && *second == quote => end + 2,
                _ => break,
            };
            end = next_of_meaning(end);
        }
        // The end of the text, an escape, a doubled quote, or a string that goes on.
        if bytes.get(end) != Some(&quote) || matches!(bytes.get(end + 1), Some(b'\'' | b'"')) {
            return false;
        }
        // It is a part of the function, and no value.
        if !self.in_list && ends_in_separator(&self.taken.text) {
            let written = &self.sql[self.at..=end];
            return !written.contains('?') && self.copy(written.len());
        }
        let start = self.at;
        self.at = end + 1;
        let text = |literal: &str| Value::Text(literal[1..literal.len() - 1].to_string());
        self.literal(start, |literal| Some(text(literal)))
    }

    /// Puts down a literal that begins at `start` and has been read. `value`: of its text.
    fn literal(&mut self, start: usize, value: impl FnOnce(&str) -> Option<Value>) -> bool {
        if !self.in_list {
            let Some(value) = value(&self.sql[start..self.at]) else {
                return false;
            };
            self.taken.literals.push(value);
        }
        self.taken.text.push('?');
        self.taken.spans.push(start..self.at);
        true
    }

    fn quoted_name(&mut self) -> bool {
        let end = self.end_of(1, |byte| byte != b'`' && byte != b'?' && byte.is_ascii());
        let bytes = self.sql.as_bytes();
        let is_whole = bytes.get(end) == Some(&b'`') && bytes.get(end + 1) != Some(&b'`');
        is_whole && self.copy(end + 1 - self.at)
    }

    /// A minus between operands, the sign of a number, or the beginning of a comment.
    fn minus(&mut self) -> bool {
        match self.peek(1) {
            Some(b'-') => self.comment(),
            Some(b'0'..=b'9') if !ends_in_operand(&self.taken.text) => {
                let start = self.at;
                self.at += 1;
                self.number(start)
            }
            Some(_) => self.copy(1),
            None => false,
        }
    }

    /// Leaves out a comment that says nothing to the server.
    fn comment(&mut self) -> bool {
        let rest = &self.sql[self.at..];
        let length = match rest.as_bytes() {
            // Hints, and statements for some versions.
            [b'/', b'*', b'+' | b'!' | b'M', ..] => None,
            [b'/', b'*', ..] => rest[2..].find("*/").map(|end| end + 4),
            [b'-', b'-', b' ' | b'\t' | b'\n' | b'\r', ..] | [b'-', b'-'] => {
                Some(rest.find('\n').unwrap_or(rest.len()))
            }
            _ => None,
        };
        let Some(length) = length else {
            return false;
        };
        // The header of `SUM(/* all */ a)` has its comment, too.
        let count = |mark: char| self.taken.text.matches(mark).count();
        if count('(') != count(')') {
            return false;
        }
        self.at += length;
        self.taken.has_comments = true;
        // It parts words.
        if !self.taken.text.is_empty() {
            self.taken.text.push(' ');
        }
        true
    }

    fn rest_is_empty(&self) -> bool {
        self.sql[self.at + 1..].trim_ascii().is_empty()
    }
}

/// Whether a minus behind this text stands between operands. Behind a word of the language it is a sign, too; what is
/// missing here is told by the parser.
fn ends_in_operand(text: &str) -> bool {
    const WORDS: [&str; 16] = [
        "select", "where", "and", "or", "not", "between", "when", "then", "else", "in", "like",
        "values", "set", "by", "limit", "offset",
    ];
    let text = text.trim_ascii_end();
    let Some(last) = text.as_bytes().last() else {
        return false;
    };
    match last {
        b')' | b'?' | b'`' => true,
        last if is_word_byte(*last) => {
            let word = text.bytes().rev().take_while(|byte| is_word_byte(*byte));
            let word = &text[text.len() - word.count()..];
            !WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
        }
        _ => false,
    }
}

/// Whether a number behind this text is a length or a number of digits, which belongs to a type: `DECIMAL(10,`, `NOW(`.
fn ends_in_type(text: &str) -> bool {
    const WORDS: [&str; 20] = [
        "char",
        "character",
        "nchar",
        "binary",
        "varchar",
        "varbinary",
        "decimal",
        "dec",
        "numeric",
        "float",
        "time",
        "datetime",
        "now",
        "current_timestamp",
        "current_time",
        "curtime",
        "sysdate",
        "localtime",
        "utc_timestamp",
        "utc_time",
    ];
    let is_between = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b',' | b' ');
    let between = text.bytes().rev().take_while(is_between).count();
    let Some(text) = text[..text.len() - between].strip_suffix('(') else {
        return false;
    };
    let text = text.trim_ascii_end();
    let word = text.bytes().rev().take_while(|byte| is_word_byte(*byte));
    let word = &text[text.len() - word.count()..];
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Whether a string behind this text is the separator of GROUP_CONCAT.
fn ends_in_separator(text: &str) -> bool {
    const WORD: &str = "separator";
    let text = text.trim_ascii_end().as_bytes();
    let Some(before) = text.len().checked_sub(WORD.len()) else {
        return false;
    };
    let is_whole = before == 0 || !is_word_byte(text[before - 1]);
    is_whole && text[before..].eq_ignore_ascii_case(WORD.as_bytes())
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(sql: &str) -> Option<(String, Vec<Value>)> {
        let mut taken = Taken::default();
        let pass = Pass::new(sql, false, &mut taken);
        pass.take_literals().then_some((taken.text, taken.literals))
    }

    #[test]
    fn literals_are_found_where_they_were() {
        let sql = "select k-17, concat('a',\t-2.50) from t";
        let mut taken = Taken::default();
        assert!(Pass::new(sql, false, &mut taken).take_literals());
        assert_eq!(taken.text, "select k-?, concat(?,\t?) from t");
        let spelled: Vec<&str> = taken.spans.iter().map(|span| &sql[span.clone()]).collect();
        assert_eq!(spelled, ["17", "'a'", "-2.50"]);
    }

    #[test]
    fn literals_leave_places() {
        let decimal = Value::Decimal {
            unscaled: 150,
            scale: 2,
        };
        assert_eq!(
            taken("SELECT c1 FROM d.t WHERE id=17 AND b IN ('x', 'é') AND p < 1.50"),
            Some((
                "SELECT c1 FROM d.t WHERE id=? AND b IN (?, ?) AND p < ?".into(),
                vec![
                    Value::Int(17),
                    Value::Text("x".into()),
                    Value::Text("é".into()),
                    decimal
                ]
            ))
        );
        for (sql, text) in [
            ("update t set k = k - 1", "update t set k = k - ?"),
            ("select -1, a -1, (a)-1", "select ?, a -?, (a)-?"),
            ("select 3-1, a/2 % 5", "select ?-?, a/? % ?"),
            ("select @a + 1 from t", "select @a + ? from t"),
            (
                "SELECT 1 AS one FROM t LIMIT 1",
                "SELECT 1 AS one FROM t LIMIT ?",
            ),
            (
                "select a from t where exists (select 1 from u) and b = 1",
                "select a from t where exists (select 1 from u) and b = ?",
            ),
            ("select 1", "select ?"),
            ("select 1, 2 from t", "select ?, ? from t"),
            ("select 12 from t", "select ? from t"),
            (
                "select group_concat(a separator ', '), 'x' from t",
                "select group_concat(a separator ', '), ? from t",
            ),
            (
                "select cast(a as decimal(10, 2)), now(3)",
                "select cast(a as decimal(10, 2)), now(3)",
            ),
            (" select a from t;\n", "select a from t"),
            (
                "/* page 7 */ select/**/`a b` from t -- all of it\nwhere id = 1",
                "select `a b` from t  \nwhere id = ?",
            ),
            (
                "select a from t where b = \"x\"",
                "select a from t where b = ?",
            ),
        ] {
            assert_eq!(taken(sql).map(|(text, _)| text).as_deref(), Some(text));
        }
        assert_eq!(
            taken("insert into t values (-1, -2.5,-9223372036854775808)").map(|(_, found)| found),
            Some(vec![
                Value::Int(-1),
                Value::Decimal {
                    unscaled: -25,
                    scale: 1
                },
                Value::Int(i64::MIN)
            ])
        );
    }

    #[test]
    fn what_only_the_parser_understands_is_left_to_it() {
        for sql in [
            "select 'it''s'",
            "select 'a\\'b'",
            "select 'open",
            "select x'61'",
            "select _utf8mb4'a'",
            "select 0x61",
            "select 1e5",
            "select .5",
            "select count(*) over (order by k range 199999999999999999999999999999999999989 preceding) from t",
            "select 1 # comment",
            "select /*+ hint */ 1",
            "select /*!40001 sql_no_cache */ 1",
            "select /* open",
            "select sum(/* all */ a) from t",
            "select 1 --2",
            "select 3--1",
            "select @@`a`",
            "select @'a'",
            "select `a``b`",
            "select `a?`",
            "select group_concat(a separator '?') from t",
            "select 'a'\"b\"",
            "show tables",
            "select 1.",
            "select ?",
            "select 1; select 2",
            "select é from t",
        ] {
            assert_eq!(taken(sql), None, "{sql}");
        }
    }
}
