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
//! The plan is compiled from that text as from a prepared statement, and a literal means the same in both. The rest is kept
//! as it is written, spaces and letters, because result headers are cut from it. Whatever the pass is not sure of (comments,
//! escapes, quoted names, variables, literals with an introducer) makes the statement one for the parser.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_table::Value;

use super::{Circumstances, DirectPlan};
use crate::error::Result;
use crate::parser::{self, Parameters};
use crate::result::ResultSink;
use crate::session::Session;
use crate::values::number;

/// Statements longer than this are not looked for: parsing is not what takes their time.
const MAX_STATEMENT_BYTES: usize = 4 << 10;
/// Statements that a session remembers. When there are more it begins anew.
const MAX_STATEMENTS: usize = 64;

/// A session's statements by their text without literals.
#[derive(Default)]
pub(crate) struct StatementCache {
    known: BTreeMap<String, Known>,
    /// The running statement; its memory serves the next one.
    text: String,
    literals: Vec<Value>,
}

enum Known {
    Direct(Arc<DirectPlan>),
    NotDirect(Circumstances),
}

impl Session {
    /// Takes the literals out of a request, for [`Self::run_cached`]. False: it is not one statement that may be direct.
    pub(crate) fn take_literals(&mut self, sql: &str) -> bool {
        let StatementCache { text, literals, .. } = &mut self.statement_cache;
        sql.len() <= MAX_STATEMENT_BYTES
            && self.variables.direct_plans()
            && is_candidate(sql)
            && take_literals(sql, text, literals)
    }

    /// Runs the statement whose literals were [taken out](Self::take_literals) by a plan that is known, or becomes known.
    /// False: nothing has happened, and the statement is to be parsed.
    pub(crate) fn run_cached(&mut self, sink: &mut dyn ResultSink) -> Result<bool> {
        let mut cache = std::mem::take(&mut self.statement_cache);
        let outcome = match self.cached_plan(&mut cache) {
            Some(plan) => self.run_direct(&plan, &cache.literals, sink),
            None => Ok(false),
        };
        self.statement_cache = cache;
        outcome
    }

    fn cached_plan(&self, cache: &mut StatementCache) -> Option<Arc<DirectPlan>> {
        match cache.known.get(&cache.text) {
            Some(Known::Direct(plan)) if plan.holds(self) => return Some(Arc::clone(plan)),
            Some(Known::NotDirect(circumstances)) if circumstances.hold(self) => return None,
            _ => {}
        }
        if cache.known.len() >= MAX_STATEMENTS {
            cache.known.clear();
        }
        let circumstances = Circumstances::of(self);
        let text = cache.text.clone();
        let parsed = parser::parse_with_parameters(&text, &self.dialect(), Parameters::Numbered);
        let plan = match parsed {
            Ok((statement, count)) if count == cache.literals.len() => {
                self.direct_plan(&statement, &text)
            }
            _ => None,
        };
        match plan {
            Some(plan) => {
                let plan = Arc::new(plan);
                cache.known.insert(text, Known::Direct(Arc::clone(&plan)));
                Some(plan)
            }
            None => {
                cache.known.insert(text, Known::NotDirect(circumstances));
                None
            }
        }
    }
}

/// Whether a statement may be direct, by its first word.
fn is_candidate(sql: &str) -> bool {
    let first = sql.as_bytes().get(..6);
    let words: [&[u8]; 4] = [b"SELECT", b"INSERT", b"UPDATE", b"DELETE"];
    first.is_some_and(|first| words.iter().any(|word| first.eq_ignore_ascii_case(word)))
}

/// Writes the statement to `text` with `?` in the places of its numbers and strings, which go to `literals`. False: there
/// is something in it that only the parser understands.
fn take_literals(sql: &str, text: &mut String, literals: &mut Vec<Value>) -> bool {
    text.clear();
    literals.clear();
    let bytes = sql.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                at = end_of(bytes, at, is_word_byte);
                // x'61', _utf8mb4'a', N'a'
                if bytes.get(at) == Some(&b'\'') {
                    return false;
                }
                text.push_str(&sql[start..at]);
            }
            b'0'..=b'9' => {
                at = end_of(bytes, at, |byte| byte.is_ascii_digit());
                if bytes.get(at) == Some(&b'.') {
                    at = end_of(bytes, at + 1, |byte| byte.is_ascii_digit());
                }
                // 1e5, 0x61, 1a and 1.2.3
                if bytes
                    .get(at)
                    .is_some_and(|byte| is_word_byte(*byte) || *byte == b'.')
                {
                    return false;
                }
                let Some(value) = number(&sql[start..at]) else {
                    return false;
                };
                literals.push(value);
                text.push('?');
            }
            b'\'' => {
                at = end_of(bytes, at, |byte| byte != b'\'' && byte != b'\\');
                // The end of the text, an escape, a doubled quote, or a string that goes on.
                if bytes.get(at) != Some(&b'\'') || bytes.get(at + 1) == Some(&b'\'') {
                    return false;
                }
                literals.push(Value::Text(sql[start + 1..at].to_string()));
                at += 1;
                text.push('?');
            }
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b'(' | b')' | b'=' | b'<' | b'>' | b'+'
            | b'*' => {
                text.push(byte.into());
            }
            // The point of a qualified name, not that of a number.
            b'.' if !bytes.get(at).is_some_and(u8::is_ascii_digit) => text.push('.'),
            // A minus that is neither a comment's nor a literal's own.
            b'-' if bytes.get(at) == Some(&b' ') && bytes[..start].ends_with(b" ") => {
                text.push('-')
            }
            _ => return false,
        }
    }
    true
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn end_of(bytes: &[u8], from: usize, belongs: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let length = rest.iter().position(|byte| !belongs(*byte));
    from + length.unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(sql: &str) -> Option<(String, Vec<Value>)> {
        let (mut text, mut literals) = (String::new(), Vec::new());
        take_literals(sql, &mut text, &mut literals).then_some((text, literals))
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
        assert_eq!(
            taken("update t set k = k - 1").map(|(text, _)| text),
            Some("update t set k = k - ?".into())
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
            "select 1 -- comment",
            "select 1 # comment",
            "select /* comment */ 1",
            "select -1",
            "select 3--1",
            "select @a",
            "select \"a\"",
            "select `a`",
            "select ?",
            "select 1; select 2",
            "select é from t",
        ] {
            assert_eq!(taken(sql), None, "{sql}");
        }
    }
}
