//! Regular expressions: REGEXP / RLIKE, REGEXP_LIKE, REGEXP_REPLACE, REGEXP_SUBSTR and REGEXP_INSTR.
//!
//! A match looks at case unless the collation does not. Patterns are those of the `regex` crate, which has no
//! look-around and no back-references: such a pattern is error 3685. In return a match takes linear time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, StringViewArray};
use arrow::datatypes::Field;
use datafusion_common::Result;
use regex::{Regex, RegexBuilder};
use sheaf_types::Collation;
use sheaf_types::error::codes;

use super::limits::TextWriter;
use super::string::{ints, long_texts, parts};
use super::types::{field, matching_collation, text_field};
use super::{Argument, Call, EvaluationError, Function, Operands};

/// The largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 8 << 20;

fn like_first(operands: &Operands<'_>) -> Result<Field> {
    text_field(&operands.fields[..1], "regexp")
}

pub(super) static FUNCTIONS: &[Function] = &[
    // Text, pattern, and optionally match types ("c" case-sensitive, "i" not, "m" lines, "n" dot matches line ends).
    Function::strict("regexp_like", (2, 3), |_| Ok(field::boolean()), regexp_like),
    Function::strict("regexp_replace", (3, 3), like_first, |call| {
        let (values, replacements) = (call.text(0)?, call.text(2)?);
        let mut patterns = Patterns::new(call, None)?;
        let compiled = patterns.compile_all(call.rows())?;
        long_texts(call, |row, out| {
            let pattern = compiled[row].as_ref()?;
            replace_all(pattern, values.get(row)?, replacements.get(row)?, out);
            Some(())
        })
    })
    .growing(),
    Function::new("regexp_substr", (2, 2), like_first, |call| {
        let values = call.text(0)?;
        let compiled = Patterns::new(call, None)?.compile_all(call.rows())?;
        parts(call, |row| {
            Some(compiled[row].as_ref()?.find(values.get(row)?)?.as_str())
        })
    }),
    Function::strict(
        "regexp_instr",
        (2, 2),
        |_| Ok(field::bigint()),
        |call| {
            let values = call.text(0)?;
            let compiled = Patterns::new(call, None)?.compile_all(call.rows())?;
            ints(call, |row| {
                let text = values.get(row)?;
                let found = compiled[row].as_ref()?.find(text);
                Some(found.map_or(0, |found| text[..found.start()].chars().count() as i64 + 1))
            })
        },
    ),
];

/// Writes a text with every match replaced. A `$1` of MySQL is the same here; a name in braces is not known to it.
fn replace_all(pattern: &Regex, text: &str, replacement: &str, out: &mut TextWriter) {
    let references = replacement.matches('$').count();
    let mut expanded = String::new();
    let mut done = 0;
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0) else {
            continue;
        };
        out.push_str(&text[done..whole.start()]);
        done = whole.end();
        // More than this does not come out.
        let longest = found.iter().flatten().map(|group| group.len()).max();
        let most = references.saturating_mul(longest.unwrap_or(0));
        if !out.expect(replacement.len().saturating_add(most)) {
            return;
        }
        expanded.clear();
        found.expand(replacement, &mut expanded);
        out.push_str(&expanded);
    }
    out.push_str(&text[done..]);
}

/// What the names of POSIX classes stand for: all of Unicode, where the `regex` crate knows ASCII only.
const CLASSES: [(&str, &str); 11] = [
    ("[:alpha:]", r"\p{Alphabetic}"),
    ("[:alnum:]", r"\p{Alphabetic}\p{Nd}"),
    ("[:digit:]", r"\p{Nd}"),
    ("[:lower:]", r"\p{Lowercase}"),
    ("[:upper:]", r"\p{Uppercase}"),
    ("[:space:]", r"\s"),
    ("[:blank:]", r"\p{Zs}\t"),
    ("[:cntrl:]", r"\p{Cc}"),
    ("[:punct:]", r"\p{P}$+<=>^`|~"),
    ("[:word:]", r"\w"),
    ("[:^alpha:]", r"\P{Alphabetic}"),
];

fn with_unicode_classes(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains("[:") {
        return Cow::Borrowed(pattern);
    }
    let named = CLASSES.iter();
    let replaced = named.fold(pattern.to_string(), |pattern, (name, class)| {
        pattern.replace(name, class)
    });
    Cow::Owned(replaced)
}

/// The patterns of a call, each compiled once.
struct Patterns {
    patterns: Argument<StringViewArray>,
    modes: Option<Argument<StringViewArray>>,
    insensitive: bool,
    compiled: HashMap<(String, String), Arc<Regex>>,
}

impl Patterns {
    fn new(call: &Call<'_>, modes: Option<Argument<StringViewArray>>) -> Result<Patterns> {
        let collation = matching_collation(&call.sql_type(0), &call.sql_type(1), "regexp")?;
        let insensitive = !matches!(collation, Collation::Utf8mb4_bin | Collation::Binary);
        Ok(Patterns {
            patterns: call.text(1)?,
            modes,
            insensitive,
            compiled: HashMap::new(),
        })
    }

    fn compile(&mut self, row: usize) -> Result<Option<Arc<Regex>>> {
        let Some(pattern) = self.patterns.get(row) else {
            return Ok(None);
        };
        let mode = match &self.modes {
            Some(modes) => match modes.get(row) {
                Some(mode) => mode,
                None => return Ok(None),
            },
            None => "",
        };
        let key = (pattern.to_string(), mode.to_string());
        if let Some(known) = self.compiled.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let mut insensitive = self.insensitive;
        let (mut lines, mut dot_all) = (false, false);
        for flag in mode.chars() {
            match flag {
                'c' => insensitive = false,
                'i' => insensitive = true,
                'm' => lines = true,
                'n' => dot_all = true,
                'u' => {}
                _ => return Err(EvaluationError::wrong_arguments("regexp_like").into()),
            }
        }
        let regex = RegexBuilder::new(&with_unicode_classes(pattern))
            .case_insensitive(insensitive)
            .multi_line(lines)
            .dot_matches_new_line(dot_all)
            .size_limit(MAX_PATTERN_BYTES)
            .build()
            .map_err(|error| {
                EvaluationError::new(
                    codes::REGEXP_ILLEGAL_ARGUMENT,
                    format!("Illegal argument to a regular expression: {error}"),
                )
            })?;
        let regex = Arc::new(regex);
        self.compiled.insert(key, Arc::clone(&regex));
        Ok(Some(regex))
    }

    fn compile_all(&mut self, rows: usize) -> Result<Vec<Option<Arc<Regex>>>> {
        let constant =
            self.patterns.constant && self.modes.as_ref().is_none_or(|modes| modes.constant);
        if constant {
            return Ok(vec![self.compile(0)?; rows]);
        }
        (0..rows).map(|row| self.compile(row)).collect()
    }
}

fn regexp_like(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.text(0)?;
    let modes = if call.len() == 3 {
        Some(call.text(2)?)
    } else {
        None
    };
    let compiled = Patterns::new(call, modes)?.compile_all(call.rows())?;
    let account = call.account();
    let result: BooleanArray = (0..call.rows())
        .map(|row| match account.is_over() {
            true => None,
            false => Some(compiled[row].as_ref()?.is_match(values.get(row)?)),
        })
        .collect();
    account.check()?;
    Ok(Arc::new(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posix_classes_know_letters_beyond_ascii() {
        for (text, pattern, expected) in [
            ("ä", "^[[:alpha:]]$", true),
            ("é7", "^[[:alnum:]_]+$", true),
            ("Ä", "^[[:lower:]]$", false),
            ("$", "[[:punct:]]", true),
            ("1", "[^[:digit:]]", false),
        ] {
            let regex = Regex::new(&with_unicode_classes(pattern)).expect(pattern);
            assert_eq!(regex.is_match(text), expected, "{text} {pattern}");
        }
    }
}
