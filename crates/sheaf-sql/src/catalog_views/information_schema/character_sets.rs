//! CHARACTER_SETS, COLLATIONS, and which collation is of which character set.

use sheaf_types::Collation;

use super::{NUMBER, TEXT};
use crate::query::rows::{Cells, Rows};
use crate::variables::{CHARACTER_SETS, COLLATIONS, character_set_of};

pub(super) fn character_sets() -> Rows {
    let mut rows = Rows::new([
        ("CHARACTER_SET_NAME", TEXT),
        ("DEFAULT_COLLATE_NAME", TEXT),
        ("DESCRIPTION", Cells::Text(1024)),
        ("MAXLEN", NUMBER),
    ]);
    for (name, description, collation, bytes) in CHARACTER_SETS {
        rows.push(vec![
            name.into(),
            collation.into(),
            description.into(),
            u64::from(bytes).into(),
        ]);
    }
    rows
}

pub(super) fn collations() -> Rows {
    collations_under([
        "COLLATION_NAME",
        "CHARACTER_SET_NAME",
        "ID",
        "IS_DEFAULT",
        "IS_COMPILED",
        "SORTLEN",
        "PAD_ATTRIBUTE",
    ])
}

/// Every collation, under the names that SHOW or the information schema gives its columns.
pub(crate) fn collations_under(headers: [&str; 7]) -> Rows {
    let cells = [TEXT, TEXT, NUMBER, TEXT, TEXT, NUMBER, TEXT];
    let mut rows = Rows::new(headers.into_iter().zip(cells));
    for (id, name) in COLLATIONS {
        let (character_set, is_default) = collation_owner(name);
        rows.push(vec![
            name.into(),
            character_set.into(),
            u64::from(id).into(),
            if is_default { "Yes" } else { "" }.into(),
            "Yes".into(),
            sort_length(id).into(),
            match Collation::parse(name) {
                Some(collation) if !collation.pads_spaces() => "NO PAD",
                _ => "PAD SPACE",
            }
            .into(),
        ]);
    }
    rows
}

/// MySQL's SORTLEN: the bytes of memory that it sorts a byte in. The newer collations have no fixed number.
fn sort_length(id: u16) -> u64 {
    match id {
        255..=308 | 310..=323 => 0,
        101..=124 | 128..=151 | 160..=183 | 192..=215 | 224..=247 => 8,
        18 => 4,
        31 | 248 => 2,
        _ => 1,
    }
}

/// A collation's character set, and whether it is that set's default.
pub(crate) fn collation_owner(collation: &str) -> (&str, bool) {
    let character_set = character_set_of(collation);
    let is_default = CHARACTER_SETS
        .iter()
        .any(|(set, _, default, _)| *set == character_set && *default == collation);
    (character_set, is_default)
}

pub(super) fn applicability() -> Rows {
    let mut rows = Rows::new([("COLLATION_NAME", TEXT), ("CHARACTER_SET_NAME", TEXT)]);
    for (_, name) in COLLATIONS {
        rows.push(vec![name.into(), collation_owner(name).0.into()]);
    }
    rows
}
