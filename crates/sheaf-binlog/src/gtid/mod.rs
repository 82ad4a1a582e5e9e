//! Identifiers of transactions: which server committed one first, and as its how manieth.
//!
//! A GTID is `uuid:number`, or `uuid:tag:number`. A server gives numbers without gaps, so what it has applied is a few
//! intervals for each uuid and tag, [`GtidSet`], however many transactions there were.
//!
//! | file | what it holds |
//! |---|---|
//! | `intervals` | sets of numbers |
//! | `set` | sets of GTIDs, as texts and in PREVIOUS_GTIDS |
//! | `parse` | the text of a set |

mod intervals;
mod parse;
mod set;

use std::fmt;
use std::str::FromStr;

pub use intervals::{Interval, Intervals};
pub use set::GtidSet;

use crate::error::BinlogError;

/// The greatest number of a transaction: MySQL's limit.
pub const MAX_NUMBER: u64 = i64::MAX as u64 - 1;
/// Characters of a tag, at most.
pub const MAX_TAG_LENGTH: usize = 32;

/// The identifier of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

/// Bytes of the groups that dashes separate.
const UUID_GROUPS: [usize; 5] = [4, 2, 2, 2, 6];

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0.iter();
        for (at, group) in UUID_GROUPS.into_iter().enumerate() {
            if at > 0 {
                f.write_str("-")?;
            }
            for byte in bytes.by_ref().take(group) {
                write!(f, "{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Uuid {
    type Err = BinlogError;

    /// With dashes, in braces, or without either.
    fn from_str(text: &str) -> Result<Uuid, BinlogError> {
        parse::uuid(text)
    }
}

/// The name of a series of numbers of a server. Most transactions have the empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

impl Tag {
    /// A letter or underscore, then letters, digits and underscores; no distinction of cases. `None`: it is not such a
    /// text.
    pub fn new(text: &str) -> Option<Tag> {
        let is_tag = text.len() <= MAX_TAG_LENGTH
            && !text.starts_with(|first: char| first.is_ascii_digit())
            && text.bytes().all(is_of_tag);
        is_tag.then(|| Tag(text.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn is_of_tag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A transaction of this server's own kind: without a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    server: Uuid,
    number: u64,
}

impl Gtid {
    /// `None`: the number is 0 or too great.
    pub fn new(server: Uuid, number: u64) -> Option<Gtid> {
        let is_number = (1..=MAX_NUMBER).contains(&number);
        is_number.then_some(Gtid { server, number })
    }

    pub fn server(self) -> Uuid {
        self.server
    }

    pub fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.server, self.number)
    }
}
