//! Where a text stands in another one, and which of two is less: LOCATE, INSTR, and STRCMP.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use arrow::array::ArrayRef;
use datafusion_common::Result;
use sheaf_types::Collation;
use sheaf_types::text::collation::not_last;

use super::case::push_lowercase;
use super::length::{byte_at, characters};
use super::{bigint, compared};
use crate::functions::limits::Turns;
use crate::functions::result_array::ints;
use crate::functions::{Call, Function, Length};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("locate", (2, 3), bigint, |call| locate(call, 0, 1))
        .bytewise_but(&[2])
        .whole_numbers(2, 3)
        .length(Length::Int),
    Function::strict("instr", (2, 2), bigint, |call| locate(call, 1, 0))
        .bytewise()
        .length(Length::Int),
    Function::strict(
        "strcmp",
        (2, 2),
        |operands| compared(operands, "strcmp"),
        strcmp,
    )
    .bytewise()
    .length(Length::Int),
];

fn locate(call: &Call<'_>, needle: usize, haystack: usize) -> Result<ArrayRef> {
    // Unlike in other comparisons, the text that is looked for has no say.
    let collation = call.collation_of_first(&[haystack, needle]);
    let (needles, haystacks) = (call.text(needle)?, call.text(haystack)?);
    let turns = call.turns();
    let alike = RefCell::new(AlikeCharacters::of(collation));
    let starts = if call.len() == 3 {
        Some(call.int(2)?)
    } else {
        None
    };
    ints(call, |row| {
        let (needle, haystack) = (needles.get(row)?, haystacks.get(row)?);
        let start = match &starts {
            Some(starts) => starts.get(row)?,
            None => 1,
        };
        let Some(skipped) = start
            .checked_sub(1)
            .and_then(|skipped| usize::try_from(skipped).ok())
        else {
            return Some(0);
        };
        let is_ascii = collation.has_plain_ascii() && needle.is_ascii() && haystack.is_ascii();
        let mut alike = alike.borrow_mut();
        let mut folded = |text| match collation {
            collation if collation.is_exact() => Cow::Borrowed(text),
            collation if is_ascii && !collation.ignores_case() => Cow::Borrowed(text),
            _ if is_ascii => Cow::Owned(lowercase(text, &turns)),
            _ => Cow::Owned(turns.characters(text).map(|c| alike.first(c)).collect()),
        };
        let (needle, haystack) = (folded(needle), folded(haystack));
        if skipped > characters(&haystack) {
            return Some(0);
        }
        let from = byte_at(&haystack, skipped);
        Some(match turns.find(&haystack[from..], &needle) {
            Some(at) => characters(&haystack[..from + at]) as i64 + 1,
            None => 0,
        })
    })
}

fn lowercase(text: &str, turns: &Turns<'_>) -> String {
    let mut lower = String::with_capacity(text.len());
    let stretches = turns.stretches(text);
    stretches.for_each(|text| push_lowercase(text, &mut lower));
    lower
}

/// Characters that are equal by a collation, each set by the one of it that came first: by this, texts are searched as
/// their bytes. Sets are of single characters, so `ss` is not `ß`.
struct AlikeCharacters {
    collation: Collation,
    first: HashMap<Vec<u8>, char>,
    known: HashMap<char, char>,
}

impl AlikeCharacters {
    fn of(collation: Collation) -> AlikeCharacters {
        AlikeCharacters {
            collation,
            first: HashMap::new(),
            known: HashMap::new(),
        }
    }

    fn first(&mut self, character: char) -> char {
        *self.known.entry(character).or_insert_with(|| {
            let mut key = Vec::new();
            let mut text = [0; 5];
            let text = not_last(character, &mut text);
            self.collation.sort_key_into(text, &mut key);
            *self.first.entry(key).or_insert(character)
        })
    }
}

fn strcmp(call: &Call<'_>) -> Result<ArrayRef> {
    let collation = call.matching_collation("strcmp")?;
    let (left, right, turns) = (call.text(0)?, call.text(1)?, call.turns());
    ints(call, |row| {
        Some(turns.compare(collation, left.get(row)?, right.get(row)?) as i64)
    })
}
