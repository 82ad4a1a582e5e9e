//! Regular expressions: REGEXP / RLIKE, REGEXP_LIKE, REGEXP_REPLACE, REGEXP_SUBSTR and REGEXP_INSTR.
//!
//! A match looks at case unless the collation does not. Patterns are those of ICU, MySQL's library. Most are searched
//! by the automata of the `regex` crate, in linear time (`search.rs`). What these do not know, such as look-around and
//! back-references, and what would make them too large, is searched with backtracking (`backtrack/`). A call looks
//! whether it shall stop between two matches, and on the way through a long text. Patterns that many calls have are
//! compiled once (`shared.rs`).

mod backtrack;
mod pattern;
mod replacement;
mod search;
mod shared;
mod threads;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringViewArray};
use arrow::datatypes::Field;
use datafusion_common::Result;
use pattern::Pattern;
use replacement::Replacement;
use sheaf_types::error::codes;

use super::limits::{TextWriter, Turns};
use super::result_array::{long_texts, parts};
use super::types::{field, matching_collation, text_field};
use super::{Argument, Call, EvaluationError, Function, Operands};

/// The largest automaton of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 8 << 20;

/// What the kept compiled patterns of a call may take, in bytes. Searches make a pattern grow: to so many times what it
/// takes at first.
const MAX_KEPT_BYTES: usize = 16 << 20;
const GROWTH: usize = 8;

/// What a pattern means besides its text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Modes {
    insensitive: bool,
    lines: bool,
    dot_all: bool,
    /// Lines end at line feeds only.
    unix_lines: bool,
}

/// A text that is found: of the collation of the text and the pattern.
///
/// # Errors
/// 1267 if these insist on different ones.
fn found_text(operands: &Operands<'_>) -> Result<Field> {
    compared(operands)?;
    text_field(&operands.fields[..2], "regexp")
}

/// Texts and patterns that insist on different collations are told of before there are rows.
fn compared(operands: &Operands<'_>) -> Result<()> {
    matching_collation(&operands.fields[0], &operands.fields[1], "regexp")?;
    Ok(())
}

pub(super) static FUNCTIONS: &[Function] = &[
    // Text, pattern, and optionally match types: "c" case-sensitive, "i" not, "m" lines, "n" dot matches line ends, "u"
    // these are line feeds.
    Function::strict(
        "regexp_like",
        (2, 3),
        |operands| compared(operands).map(|()| field::boolean()),
        regexp_like,
    ),
    // Text, pattern, replacement; position, which occurrence (0: all), match types.
    Function::strict("regexp_replace", (3, 6), found_text, regexp_replace).growing(),
    // Text, pattern; position, which occurrence, match types.
    Function::new("regexp_substr", (2, 5), found_text, |call| {
        let values = call.text(0)?;
        let places = Places::new(call, 2)?;
        let patterns = Patterns::new(call, places.modes(call, 4)?)?;
        let turns = call.turns();
        let found = (0..call.rows()).map(|row| {
            if turns.is_over_now() {
                return Ok(None);
            }
            let (Some(pattern), Some(text)) = (patterns.of_row(row)?, values.get(row)) else {
                return Ok(None);
            };
            let Some((start, occurrence)) = places.of(row, text, OutOfBounds::Parameters)? else {
                return Ok(None);
            };
            let found = nth_match(&pattern, text, (start, occurrence), &turns);
            pattern.check()?;
            Ok(found.map(|found| &text[found]))
        });
        let found = found.collect::<Result<Vec<_>>>()?;
        parts(call, |row| found[row])
    }),
    // Text, pattern; position, which occurrence, 1 for what follows the match, match types.
    Function::strict(
        "regexp_instr",
        (2, 6),
        |operands| compared(operands).map(|()| field::bigint()),
        regexp_instr,
    ),
];

/// What is wrong with a position before the text. Behind the text it is error 3686.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutOfBounds {
    /// Error 3686. Right behind the text is wrong, too.
    Bounds,
    /// Error 1583.
    Parameters,
}

/// Where a call looks for its pattern, and which match it wants.
struct Places {
    name: &'static str,
    positions: Option<Argument<Int64Array>>,
    occurrences: Option<Argument<Int64Array>>,
}

impl Places {
    /// The position is this argument, the occurrence the next one.
    fn new(call: &Call<'_>, position: usize) -> Result<Places> {
        let number = |argument: usize| match argument < call.len() {
            true => call.int(argument).map(Some),
            false => Ok(None),
        };
        Ok(Places {
            name: call.name(),
            positions: number(position)?,
            occurrences: number(position + 1)?,
        })
    }

    /// The match types, if they are given.
    fn modes(&self, call: &Call<'_>, argument: usize) -> Result<Option<Argument<StringViewArray>>> {
        match argument < call.len() {
            true => call.text(argument).map(Some),
            false => Ok(None),
        }
    }

    /// The first byte to look at, and which match is wanted from there on. `None` if either is NULL.
    fn of(&self, row: usize, text: &str, bounds: OutOfBounds) -> Result<Option<(usize, i64)>> {
        let number = |argument: &Option<Argument<Int64Array>>| match argument {
            Some(numbers) => numbers.get(row),
            None => Some(1),
        };
        let (Some(position), Some(occurrence)) =
            (number(&self.positions), number(&self.occurrences))
        else {
            return Ok(None);
        };
        let before = match usize::try_from(position.saturating_sub(1)) {
            Ok(before) => before,
            Err(_) if bounds == OutOfBounds::Parameters => {
                let message = format!(
                    "Incorrect parameters in the call to native function '{}'",
                    self.name
                );
                let code = codes::WRONG_PARAMETERS_TO_NATIVE_FCT;
                return Err(EvaluationError::new(code, message).into());
            }
            Err(_) => return Err(out_of_bounds().into()),
        };
        if before == 0 {
            return Ok(Some((0, occurrence)));
        }
        let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        match starts.nth(before) {
            Some(start) if start < text.len() || bounds == OutOfBounds::Parameters => {
                Ok(Some((start, occurrence)))
            }
            _ => Err(out_of_bounds().into()),
        }
    }
}

fn out_of_bounds() -> EvaluationError {
    EvaluationError::new(
        codes::REGEXP_INDEX_OUTOFBOUNDS_ERROR,
        "Index out of bounds in regular expression search.",
    )
}

/// The match of a number, from 1 on, at or behind a byte of the text.
fn nth_match(
    pattern: &Pattern,
    text: &str,
    (start, occurrence): (usize, i64),
    turns: &Turns<'_>,
) -> Option<Range<usize>> {
    let mut found = pattern.find_first(text, start, turns)?;
    for _ in 1..occurrence {
        found = pattern.find(text, behind(text, &found)?, turns)?;
    }
    Some(found)
}

/// Where the next match is looked for. An empty match is not found again.
fn behind(text: &str, found: &Range<usize>) -> Option<usize> {
    match found.is_empty() {
        false => Some(found.end),
        true => Some(found.end + text[found.end..].chars().next()?.len_utf8()),
    }
}

fn regexp_replace(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, replacements) = (call.text(0)?, call.text(2)?);
    let places = Places::new(call, 3)?;
    let patterns = Patterns::new(call, places.modes(call, 5)?)?;
    let wrong = Cell::new(None);
    // All, unless a number is given.
    let wants_all = |occurrence: i64| places.occurrences.is_none() || occurrence == 0;
    let at = |row: usize| match values.get(row) {
        Some(text) => places.of(row, text, OutOfBounds::Parameters),
        None => Ok(None),
    };
    let at = (0..call.rows()).map(at).collect::<Result<Vec<_>>>()?;
    let turns = call.turns();
    let replaced = long_texts(call, |row, out| {
        if turns.is_over_now() {
            return None;
        }
        let pattern = match patterns.of_row(row) {
            Ok(pattern) => pattern?,
            Err(error) => {
                wrong.set(Some(error));
                return None;
            }
        };
        let (text, replacement) = (values.get(row)?, replacements.get(row)?);
        let (start, occurrence) = at[row]?;
        let only = match wants_all(occurrence) {
            true => None,
            false => Some(nth_match(&pattern, text, (start, occurrence), &turns)),
        };
        if let Err(error) = pattern.check() {
            wrong.set(Some(error));
            return None;
        }
        let places = match only {
            // Nothing is replaced in an empty text, even where an empty match is found.
            _ if text.is_empty() => return Some(()),
            Some(None) => {
                out.push_str(text);
                return Some(());
            }
            Some(Some(found)) => (found.start, 1),
            None => (start, usize::MAX),
        };
        match replace(&pattern, text, places, replacement, out, &turns) {
            Ok(()) => Some(()),
            Err(error) => {
                wrong.set(Some(error));
                None
            }
        }
    });
    match wrong.take() {
        Some(error) => Err(error),
        None => replaced,
    }
}

fn regexp_instr(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.text(0)?;
    let places = Places::new(call, 2)?;
    let patterns = Patterns::new(call, places.modes(call, 5)?)?;
    let sides = match call.len() > 4 {
        true => Some(call.int(4)?),
        false => None,
    };
    let turns = call.turns();
    let position = |row: usize| {
        if turns.is_over_now() {
            return Ok(None);
        }
        let (Some(pattern), Some(text)) = (patterns.of_row(row)?, values.get(row)) else {
            return Ok(None);
        };
        let side = match &sides {
            Some(sides) => sides.get(row),
            None => Some(0),
        };
        let Some((start, occurrence)) = places.of(row, text, OutOfBounds::Bounds)? else {
            return Ok(None);
        };
        let is_behind = match side {
            None => return Ok(None),
            Some(side @ 0..=1) => side == 1,
            Some(_) => {
                let what = "regexp_instr: return_option must be 1 or 0.";
                return Err(EvaluationError::wrong_arguments(what).into());
            }
        };
        // What lies before is not there for `^`.
        let found = nth_match(&pattern, &text[start..], (0, occurrence), &turns);
        pattern.check()?;
        let byte = found.map(|found| match is_behind {
            true => start + found.end,
            false => start + found.start,
        });
        Ok(Some(
            byte.map_or(0, |byte| text[..byte].chars().count() as i64 + 1),
        ))
    };
    let positions = (0..call.rows())
        .map(position)
        .collect::<Result<Int64Array>>()?;
    Ok(Arc::new(positions))
}

/// Writes a text with so many matches replaced, from a byte on.
fn replace(
    pattern: &Pattern,
    text: &str,
    (from, count): (usize, usize),
    replacement: &str,
    out: &mut TextWriter,
    turns: &Turns<'_>,
) -> Result<()> {
    let is_plain = !replacement.contains(['$', '\\']);
    let mut parsed = None;
    let (mut done, mut at) = (0, from);
    // The only one has been found before.
    let mut is_first = count > 1;
    for _ in 0..count {
        let whole = match is_first {
            true => pattern.find_first(text, at, turns),
            false => pattern.find(text, at, turns),
        };
        is_first = false;
        let Some(whole) = whole else {
            break;
        };
        out.push_str(&text[done..whole.start]);
        done = whole.end;
        if is_plain {
            if !out.expect(replacement.len()) {
                return Ok(());
            }
            out.push_str(replacement);
        } else {
            let meaning = match parsed.take() {
                Some(parsed) => parsed,
                None => Replacement::parse(replacement, pattern)?,
            };
            let Some(groups) = pattern.groups(text, &whole, turns) else {
                break;
            };
            // More than this does not come out: no group is longer than the match.
            let most = meaning.references().saturating_mul(whole.len());
            if !out.expect(replacement.len().saturating_add(most)) {
                return Ok(());
            }
            meaning.push(text, &groups, out);
            parsed = Some(meaning);
        }
        match behind(text, &whole) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.push_str(&text[done..]);
    pattern.check()
}

/// The patterns of a call. Those that are compiled are kept for other rows, as far as they are not too large.
struct Patterns<'a> {
    patterns: Argument<StringViewArray>,
    modes: Option<Argument<StringViewArray>>,
    insensitive: bool,
    turns: Turns<'a>,
    /// Of the function.
    name: &'static str,
    /// That of all rows, if it is a constant.
    constant: OnceCell<Option<Rc<Pattern>>>,
    kept: RefCell<Kept>,
}

/// Compiled patterns, by their texts and modes, and the bytes that they take.
#[derive(Default)]
struct Kept {
    compiled: HashMap<(String, String), Rc<Pattern>>,
    bytes: usize,
}

impl<'a> Patterns<'a> {
    fn new(call: &Call<'a>, modes: Option<Argument<StringViewArray>>) -> Result<Patterns<'a>> {
        let (text, pattern) = (&call.args.arg_fields[0], &call.args.arg_fields[1]);
        let collation = matching_collation(text, pattern, "regexp")?;
        let insensitive = collation.ignores_case();
        Ok(Patterns {
            patterns: call.text(1)?,
            modes,
            insensitive,
            turns: call.turns(),
            name: call.name(),
            constant: OnceCell::new(),
            kept: RefCell::default(),
        })
    }

    /// The pattern of a row; `None` if it is NULL.
    fn of_row(&self, row: usize) -> Result<Option<Rc<Pattern>>> {
        if let Some(constant) = self.constant.get() {
            return Ok(constant.clone());
        }
        let pattern = self.compile(row)?;
        let modes = self.modes.as_ref();
        if self.patterns.constant && modes.is_none_or(|modes| modes.constant) {
            return Ok(self.constant.get_or_init(|| pattern).clone());
        }
        Ok(pattern)
    }

    fn compile(&self, row: usize) -> Result<Option<Rc<Pattern>>> {
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
        if let Some(known) = self.kept.borrow().compiled.get(&key) {
            return Ok(Some(Rc::clone(known)));
        }
        let mut modes = Modes {
            insensitive: self.insensitive,
            lines: false,
            dot_all: false,
            unix_lines: false,
        };
        for flag in mode.chars() {
            match flag {
                'c' => modes.insensitive = false,
                'i' => modes.insensitive = true,
                'm' => modes.lines = true,
                'n' => modes.dot_all = true,
                'u' => modes.unix_lines = true,
                _ => return Err(EvaluationError::wrong_arguments(self.name).into()),
            }
        }
        let make = || Pattern::new(pattern, modes, &self.turns);
        let (compiled, bytes) = sheaf_memory::kept_by(make);
        let compiled = Rc::new(compiled?);
        let bytes = bytes.saturating_mul(GROWTH);
        let mut kept = self.kept.borrow_mut();
        if kept.bytes.saturating_add(bytes) > MAX_KEPT_BYTES {
            *kept = Kept::default();
        }
        kept.bytes = kept.bytes.saturating_add(bytes);
        kept.compiled.insert(key, Rc::clone(&compiled));
        Ok(Some(compiled))
    }
}

fn regexp_like(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.text(0)?;
    let modes = if call.len() == 3 {
        Some(call.text(2)?)
    } else {
        None
    };
    let patterns = Patterns::new(call, modes)?;
    let turns = call.turns();
    let is_match = |row| {
        if turns.is_over_now() {
            return Ok(None);
        }
        let Some((pattern, text)) = patterns.of_row(row)?.zip(values.get(row)) else {
            return Ok(None);
        };
        let is_match = pattern.is_match(text, &turns);
        pattern.check()?;
        Ok(Some(is_match))
    };
    let found = (0..call.rows()).map(is_match);
    Ok(Arc::new(found.collect::<Result<BooleanArray>>()?))
}
