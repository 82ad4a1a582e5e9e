//! What a match is replaced by, as MySQL's library (ICU) reads it.
//!
//! | in the replacement | stands for |
//! |---|---|
//! | `$1`, `${name}` | the text of a group; `$0` is the whole match |
//! | `\$`, `\\`, `\x` | the character behind the backslash |
//! | `\u0041`, `\U00000041` | the character of that number |
//!
//! A group has as many digits as there are groups for: with one group, `$10` is the first one and a 0.

use std::str::Chars;

use sheaf_types::error::codes;

use super::out_of_bounds;
use super::pattern::Pattern;
use super::search::Groups;
use crate::functions::EvaluationError;
use crate::functions::limits::TextWriter;

pub(super) struct Replacement(Vec<Part>);

enum Part {
    Text(String),
    Group(usize),
}

impl Replacement {
    /// # Errors
    /// 3686 for the number of a group that there is not, 3887 for what is no number or name of one.
    pub(super) fn parse(text: &str, pattern: &Pattern) -> Result<Replacement, EvaluationError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '\\' => plain.extend(escaped(&mut rest)),
                '$' => {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(Part::Group(group(&mut rest, pattern)?));
                }
                other => plain.push(other),
            }
        }
        parts.push(Part::Text(plain));
        Ok(Replacement(parts))
    }

    /// How many times a group may be in it.
    pub(super) fn references(&self) -> usize {
        let is_group = |part: &&Part| matches!(part, Part::Group(_));
        self.0.iter().filter(is_group).count()
    }

    /// Appends it for a match in a text.
    pub(super) fn push(&self, text: &str, groups: &Groups<'_>, out: &mut TextWriter) {
        for part in &self.0 {
            match part {
                Part::Text(plain) => out.push_str(plain),
                Part::Group(group) => out.push_str(groups.get(*group, text).unwrap_or_default()),
            }
        }
    }
}

/// What a backslash and what follows it stand for; nothing at the end.
fn escaped(rest: &mut Chars<'_>) -> Option<char> {
    let character = rest.next()?;
    let digits = match character {
        'u' => 4,
        'U' => 8,
        _ => return Some(character),
    };
    let number = rest.as_str().get(..digits);
    let number = number.filter(|number| number.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let named = number.and_then(|number| char::from_u32(u32::from_str_radix(number, 16).ok()?));
    if named.is_some() {
        rest.by_ref().take(digits).for_each(drop);
    }
    named.or(Some(character))
}

/// The group whose number or name stands behind `$`.
fn group(rest: &mut Chars<'_>, pattern: &Pattern) -> Result<usize, EvaluationError> {
    let wrong_name = || {
        let message = "A capture group has an invalid name.";
        EvaluationError::new(codes::REGEXP_INVALID_CAPTURE_GROUP_NAME, message)
    };
    let next = rest.as_str();
    if let Some(name) = next.strip_prefix('{') {
        let (name, behind) = name.split_once('}').ok_or_else(wrong_name)?;
        *rest = behind.chars();
        return pattern.group_named(name).ok_or_else(wrong_name);
    }
    let groups = pattern.group_count();
    let mut group = None;
    for digit in next.bytes().take_while(u8::is_ascii_digit) {
        let longer = group.unwrap_or(0) * 10 + usize::from(digit - b'0');
        if longer > groups {
            break;
        }
        group = Some(longer);
        rest.next();
    }
    match group {
        Some(group) => Ok(group),
        None if next.starts_with(|digit: char| digit.is_ascii_digit()) => Err(out_of_bounds()),
        None => Err(wrong_name()),
    }
}
