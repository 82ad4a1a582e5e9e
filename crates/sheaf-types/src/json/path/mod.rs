//! The path language: `$.key`, `$."a key"`, `$[2]`, `$[last-1]`, `$[1 to last]`, `$.*`, `$[*]`, `$**.key`.
//!
//! A path is `$`, the document, and legs that lead from values to values below them. A value that is no array acts as
//! an array of itself: `$.a[0]` is `$.a` there.
//!
//! | file | what it holds |
//! |---|---|
//! | `parse` | a path from its text |
//! | `find` | the values that a path leads to |
//!
//! Reference: MySQL manual, "JSON Path Syntax".

mod find;
mod parse;

pub(crate) use find::{Place, expand};

use crate::json::JsonError;
use crate::json::text::push_quoted;

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    legs: Vec<Leg>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leg {
    /// `.key`
    Member(String),
    /// `.*`
    AnyMember,
    /// `[n]`
    Cell(Index),
    /// `[m to n]`
    Range(Index, Index),
    /// `[*]`
    AnyCell,
    /// `**`: the value itself, and all below it.
    Ellipsis,
}

/// A position in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// From the first element, which is 0.
    FromStart(u32),
    /// From the last element, which is 0.
    FromEnd(u32),
}

impl Index {
    /// The position in an array of so many elements. It may be before the first or behind the last.
    pub(crate) fn position(self, length: usize) -> i64 {
        match self {
            Index::FromStart(position) => position.into(),
            Index::FromEnd(back) => length as i64 - 1 - i64::from(back),
        }
    }

    /// The element at the position, if there is one.
    pub(crate) fn within(self, length: usize) -> Option<usize> {
        let position = usize::try_from(self.position(length)).ok()?;
        (position < length).then_some(position)
    }
}

impl Leg {
    /// Whether the leg may lead from one value to many.
    pub fn matches_many(&self) -> bool {
        !matches!(self, Leg::Member(_) | Leg::Cell(_))
    }

    /// Whether the leg may lead from a value that is no array to itself.
    pub(crate) fn wraps(&self) -> bool {
        matches!(self, Leg::Cell(_) | Leg::Range(..))
    }
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// `Path`, with the position.
    pub fn parse(text: &str) -> Result<Path, JsonError> {
        parse::parse(text).map(|legs| Path { legs })
    }

    pub fn legs(&self) -> &[Leg] {
        &self.legs
    }

    /// Whether the path may lead to more than one value.
    pub fn matches_many(&self) -> bool {
        self.legs.iter().any(Leg::matches_many)
    }

    /// Whether it is `$`.
    pub fn is_root(&self) -> bool {
        self.legs.is_empty()
    }

    /// The path itself, if it leads to one value at most.
    ///
    /// # Errors
    /// `Wildcard`.
    pub fn single(&self) -> Result<&[Leg], JsonError> {
        match self.matches_many() {
            true => Err(JsonError::Wildcard),
            false => Ok(&self.legs),
        }
    }
}

/// Appends `.key`, with quotes where the grammar needs them.
pub(crate) fn push_member(key: &str, out: &mut String) {
    out.push('.');
    match parse::is_identifier(key) {
        true => out.push_str(key),
        false => push_quoted(key, out),
    }
}

/// The path in its normal form, as JSON_SEARCH shows it.
impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("$")?;
        for leg in &self.legs {
            match leg {
                Leg::Member(key) => {
                    let mut member = String::new();
                    push_member(key, &mut member);
                    f.write_str(&member)?;
                }
                Leg::AnyMember => f.write_str(".*")?,
                Leg::Cell(index) => write!(f, "[{index}]")?,
                Leg::Range(from, to) => write!(f, "[{from} to {to}]")?,
                Leg::AnyCell => f.write_str("[*]")?,
                Leg::Ellipsis => f.write_str("**")?,
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Index::FromStart(position) => write!(f, "{position}"),
            Index::FromEnd(0) => f.write_str("last"),
            Index::FromEnd(back) => write!(f, "last-{back}"),
        }
    }
}
