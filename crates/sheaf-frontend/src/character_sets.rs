//! The character sets and collations that clients may name.

use crate::encoding::TextEncoding;
use crate::error::{Result, SqlError};

/// The collation id that marks bytes without a character set.
pub const BINARY_COLLATION_ID: u16 = 63;

/// Stands for a client that gets texts as they are (`character_set_results = NULL`): each column is labelled with its
/// own collation. No collation has this id.
pub const OWN_COLLATION_ID: u16 = 0;

/// Character sets that clients name. Text is UTF-8 throughout; statements and results in latin1 are converted (see
/// [`crate::encoding`]).
pub const CHARACTER_SETS: [(&str, &str, &str, u8); 6] = [
    ("ascii", "US ASCII", "ascii_general_ci", 1),
    ("binary", "Binary pseudo charset", "binary", 1),
    ("latin1", "cp1252 West European", "latin1_swedish_ci", 1),
    ("utf8", "UTF-8 Unicode", "utf8_general_ci", 3),
    ("utf8mb3", "UTF-8 Unicode", "utf8mb3_general_ci", 3),
    ("utf8mb4", "UTF-8 Unicode", "utf8mb4_0900_ai_ci", 4),
];

/// Collations that clients name, with MySQL's ids. Columns have nine of them (see [`sheaf_types::Collation`]); a
/// connection may ask for the others and gets the nearest.
pub const COLLATIONS: [(u16, &str); 22] = [
    (8, "latin1_swedish_ci"),
    (11, "ascii_general_ci"),
    (33, "utf8mb3_general_ci"),
    (33, "utf8_general_ci"),
    (45, "utf8mb4_general_ci"),
    (46, "utf8mb4_bin"),
    (47, "latin1_bin"),
    (48, "latin1_general_ci"),
    (63, "binary"),
    (65, "ascii_bin"),
    (83, "utf8mb3_bin"),
    (83, "utf8_bin"),
    (192, "utf8mb3_unicode_ci"),
    (192, "utf8_unicode_ci"),
    (214, "utf8mb3_unicode_520_ci"),
    (214, "utf8_unicode_520_ci"),
    (224, "utf8mb4_unicode_ci"),
    (246, "utf8mb4_unicode_520_ci"),
    (255, "utf8mb4_0900_ai_ci"),
    (278, "utf8mb4_0900_as_cs"),
    (305, "utf8mb4_0900_as_ci"),
    (309, "utf8mb4_0900_bin"),
];

/// The character set of that name. Error 1115.
pub fn character_set(name: &str) -> Result<&'static str> {
    CHARACTER_SETS
        .iter()
        .find(|(set, ..)| set.eq_ignore_ascii_case(name))
        .map(|(set, ..)| *set)
        .ok_or_else(|| SqlError::unknown_character_set(name))
}

/// Id and name of a collation. Error 1273.
pub fn collation(name: &str) -> Result<(u16, &'static str)> {
    COLLATIONS
        .iter()
        .find(|(_, collation)| collation.eq_ignore_ascii_case(name))
        .copied()
        .ok_or_else(|| SqlError::unknown_collation(name))
}

/// The character set that a collation belongs to.
pub fn character_set_of(collation: &str) -> &str {
    collation.split('_').next().unwrap_or(collation)
}

/// The collation of a character set: the one of that name, or else the default. Errors 1273 and 1253.
pub fn collation_within(character_set: &str, name: Option<&str>) -> Result<&'static str> {
    let Some(name) = name else {
        return Ok(default_collation(character_set));
    };
    let name = collation(name)?.1;
    match unaliased(character_set_of(name)) == unaliased(character_set) {
        true => Ok(name),
        false => Err(SqlError::collation_of_other_character_set(
            name,
            character_set,
        )),
    }
}

/// `utf8` is another name of `utf8mb3`.
fn unaliased(character_set: &str) -> &str {
    match character_set {
        "utf8" => "utf8mb3",
        other => other,
    }
}

/// The collation that CHARACTER SET and COLLATE name; `None` if neither is given. Errors 1115, 1273 and 1253.
pub fn named_collation(
    set: Option<&str>,
    collation_name: Option<&str>,
) -> Result<Option<&'static str>> {
    Ok(match (set, collation_name) {
        (Some(set), name) => Some(collation_within(character_set(set)?, name)?),
        (None, Some(name)) => Some(collation(name)?.1),
        (None, None) => None,
    })
}

/// The name of the collation of that id; clients send ids that may be any of MySQL's.
pub fn collation_of_id(id: u16) -> &'static str {
    COLLATIONS
        .iter()
        .find(|(known, _)| *known == id)
        .map_or_else(|| default_collation_of_id(id), |(_, name)| name)
}

/// The collation that stands for those of a character set that have no name here.
fn default_collation_of_id(id: u16) -> &'static str {
    match TextEncoding::of_collation_id(id) {
        TextEncoding::Latin1 => "latin1_swedish_ci",
        TextEncoding::Ascii => "ascii_general_ci",
        TextEncoding::Utf8 => "utf8mb4_0900_ai_ci",
    }
}

/// The character set that a client asks for by the id of one of its collations, if it is one that texts are not
/// converted from.
pub fn unsupported_character_set_of_id(id: u16) -> Option<&'static str> {
    Some(match id {
        1 | 84 => "big5",
        2 | 9 | 21 | 27 | 77 => "latin2",
        3 | 69 => "dec8",
        4 | 80 => "cp850",
        6 | 72 => "hp8",
        7 | 74 => "koi8r",
        10 | 82 => "swe7",
        12 | 91 => "ujis",
        13 | 88 => "sjis",
        14 | 23 | 50..=52 => "cp1251",
        16 | 71 => "hebrew",
        18 | 89 => "tis620",
        19 | 85 => "euckr",
        20 | 41 | 42 | 79 => "latin7",
        22 | 75 => "koi8u",
        24 | 86 => "gb2312",
        25 | 70 => "greek",
        26 | 34 | 44 | 66 | 99 => "cp1250",
        28 | 87 => "gbk",
        29 | 58 | 59 => "cp1257",
        30 | 78 => "latin5",
        32 | 64 => "armscii8",
        35 | 90 | 128..=151 | 159 => "ucs2",
        36 | 68 => "cp866",
        37 | 73 => "keybcs2",
        38 | 43 => "macce",
        39 | 53 => "macroman",
        40 | 81 => "cp852",
        54 | 55 | 101..=124 => "utf16",
        56 | 62 => "utf16le",
        57 | 67 => "cp1256",
        60 | 61 | 160..=183 => "utf32",
        92 | 93 => "geostd8",
        95 | 96 => "cp932",
        97 | 98 => "eucjpms",
        248..=250 => "gb18030",
        _ => return None,
    })
}

/// The collation that a character set has when none is named.
pub fn default_collation(character_set: &str) -> &'static str {
    CHARACTER_SETS
        .iter()
        .find(|(set, ..)| set.eq_ignore_ascii_case(character_set))
        .map_or("utf8mb4_0900_ai_ci", |(_, _, collation, _)| collation)
}
