//! The character sets and collations that clients may name.

use std::sync::LazyLock;

pub use crate::collation_names::COLLATIONS;
use crate::encoding::TextEncoding;
use crate::error::{Result, SqlError};

/// The collation id that marks bytes without a character set.
pub const BINARY_COLLATION_ID: u16 = 63;

/// Stands for a client that gets texts as they are (`character_set_results = NULL`): each column is labelled with its
/// own collation. No collation has this id.
pub const OWN_COLLATION_ID: u16 = 0;

/// The last id of a collation of MySQL's.
const LAST_COLLATION_ID: u16 = 323;

/// Character sets that clients name. Text is UTF-8 throughout; statements and results in the others are converted (see
/// [`crate::encoding`]).
pub const CHARACTER_SETS: [(&str, &str, &str, u8); 40] = [
    ("armscii8", "ARMSCII-8 Armenian", "armscii8_general_ci", 1),
    ("ascii", "US ASCII", "ascii_general_ci", 1),
    ("big5", "Big5 Traditional Chinese", "big5_chinese_ci", 2),
    ("binary", "Binary pseudo charset", "binary", 1),
    ("cp1250", "Windows Central European", "cp1250_general_ci", 1),
    ("cp1251", "Windows Cyrillic", "cp1251_general_ci", 1),
    ("cp1256", "Windows Arabic", "cp1256_general_ci", 1),
    ("cp1257", "Windows Baltic", "cp1257_general_ci", 1),
    ("cp850", "DOS West European", "cp850_general_ci", 1),
    ("cp852", "DOS Central European", "cp852_general_ci", 1),
    ("cp866", "DOS Russian", "cp866_general_ci", 1),
    ("cp932", "SJIS for Windows Japanese", "cp932_japanese_ci", 2),
    ("dec8", "DEC West European", "dec8_swedish_ci", 1),
    (
        "eucjpms",
        "UJIS for Windows Japanese",
        "eucjpms_japanese_ci",
        3,
    ),
    ("euckr", "EUC-KR Korean", "euckr_korean_ci", 2),
    (
        "gb18030",
        "China National Standard GB18030",
        "gb18030_chinese_ci",
        4,
    ),
    (
        "gb2312",
        "GB2312 Simplified Chinese",
        "gb2312_chinese_ci",
        2,
    ),
    ("gbk", "GBK Simplified Chinese", "gbk_chinese_ci", 2),
    ("geostd8", "GEOSTD8 Georgian", "geostd8_general_ci", 1),
    ("greek", "ISO 8859-7 Greek", "greek_general_ci", 1),
    ("hebrew", "ISO 8859-8 Hebrew", "hebrew_general_ci", 1),
    ("hp8", "HP West European", "hp8_english_ci", 1),
    (
        "keybcs2",
        "DOS Kamenicky Czech-Slovak",
        "keybcs2_general_ci",
        1,
    ),
    ("koi8r", "KOI8-R Relcom Russian", "koi8r_general_ci", 1),
    ("koi8u", "KOI8-U Ukrainian", "koi8u_general_ci", 1),
    ("latin1", "cp1252 West European", "latin1_swedish_ci", 1),
    (
        "latin2",
        "ISO 8859-2 Central European",
        "latin2_general_ci",
        1,
    ),
    ("latin5", "ISO 8859-9 Turkish", "latin5_turkish_ci", 1),
    ("latin7", "ISO 8859-13 Baltic", "latin7_general_ci", 1),
    ("macce", "Mac Central European", "macce_general_ci", 1),
    ("macroman", "Mac West European", "macroman_general_ci", 1),
    ("sjis", "Shift-JIS Japanese", "sjis_japanese_ci", 2),
    ("tis620", "TIS620 Thai", "tis620_thai_ci", 1),
    ("ucs2", "UCS-2 Unicode", "ucs2_general_ci", 2),
    ("ujis", "EUC-JP Japanese", "ujis_japanese_ci", 3),
    ("utf16", "UTF-16 Unicode", "utf16_general_ci", 4),
    ("utf16le", "UTF-16LE Unicode", "utf16le_general_ci", 4),
    ("utf32", "UTF-32 Unicode", "utf32_general_ci", 4),
    ("utf8mb3", "UTF-8 Unicode", "utf8mb3_general_ci", 3),
    ("utf8mb4", "UTF-8 Unicode", "utf8mb4_0900_ai_ci", 4),
];

/// The character set of that name; `utf8` is another one of `utf8mb3`. Error 1115.
pub fn character_set(name: &str) -> Result<&'static str> {
    let wanted = match name.eq_ignore_ascii_case("utf8") {
        true => "utf8mb3",
        false => name,
    };
    CHARACTER_SETS
        .iter()
        .find(|(set, ..)| set.eq_ignore_ascii_case(wanted))
        .map(|(set, ..)| *set)
        .ok_or_else(|| SqlError::unknown_character_set(name))
}

/// The same for the character set of statements. Error 1231 for those that they cannot be in.
pub fn statement_character_set(name: &str) -> Result<&'static str> {
    let name = character_set(name)?;
    match is_for_statements(name) {
        true => Ok(name),
        false => Err(SqlError::wrong_value_for_variable(
            "character_set_client",
            name,
        )),
    }
}

/// Id and name of a collation; `utf8_bin` is another name of `utf8mb3_bin`. Error 1273.
pub fn collation(name: &str) -> Result<(u16, &'static str)> {
    let is_wanted = |collation: &str| match name.split_once('_') {
        Some((set, rest)) if set.eq_ignore_ascii_case("utf8") => collation
            .strip_prefix("utf8mb3_")
            .is_some_and(|known| known.eq_ignore_ascii_case(rest)),
        _ => collation.eq_ignore_ascii_case(name),
    };
    COLLATIONS
        .iter()
        .find(|(_, collation)| is_wanted(collation))
        .copied()
        .ok_or_else(|| SqlError::unknown_collation(name))
}

/// The character set that a collation belongs to.
pub fn character_set_of(collation: &str) -> &str {
    collation.split('_').next().unwrap_or(collation)
}

/// The collation of a character set: the one of that name, or else the default. Errors 1115, 1273 and 1253.
pub fn collation_within(character_set: &str, name: Option<&str>) -> Result<&'static str> {
    let Some(name) = name else {
        return Ok(default_collation(character_set));
    };
    let name = collation(name)?.1;
    match character_set_of(name) == self::character_set(character_set)? {
        true => Ok(name),
        false => Err(SqlError::collation_of_other_character_set(
            name,
            character_set,
        )),
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
        .map_or_else(
            || character_set_of_id(id).map_or("utf8mb4_0900_ai_ci", default_collation),
            |(_, name)| name,
        )
}

/// The encoding of texts that are labelled with a collation, by MySQL's number. Every result set asks for it, so the
/// answers are looked for once.
pub fn encoding_of_collation_id(id: u16) -> TextEncoding {
    static KNOWN: LazyLock<Vec<TextEncoding>> =
        LazyLock::new(|| (0..=LAST_COLLATION_ID).map(encoding_of_id).collect());
    let known = KNOWN.get(usize::from(id)).copied();
    known.unwrap_or_else(|| encoding_of_id(id))
}

fn encoding_of_id(id: u16) -> TextEncoding {
    TextEncoding::of_character_set(character_set_of(collation_of_id(id)))
}

/// The character set that a client asks for by the id of one of its collations, if it is one that statements are
/// not converted from.
pub fn unsupported_character_set_of_id(id: u16) -> Option<&'static str> {
    let name = character_set_of_id(id)?;
    (character_set(name).is_err() || !is_for_statements(name)).then_some(name)
}

/// Whether texts of a character set have other bytes than UTF-8.
pub fn has_other_bytes(character_set: &str) -> bool {
    TextEncoding::of_character_set(character_set) != TextEncoding::Utf8
}

/// Whether statements may be in a character set: ASCII is one byte a character in it.
pub fn is_for_statements(character_set: &str) -> bool {
    !matches!(
        TextEncoding::of_character_set(character_set),
        TextEncoding::Wide(_)
    )
}

/// The character set of a collation that may have no name here; `None` for those of UTF-8.
fn character_set_of_id(id: u16) -> Option<&'static str> {
    Some(match id {
        1 | 84 => "big5",
        2 | 9 | 21 | 27 | 77 => "latin2",
        3 | 69 => "dec8",
        4 | 80 => "cp850",
        5 | 8 | 15 | 31 | 47 | 48 | 49 | 94 => "latin1",
        6 | 72 => "hp8",
        7 | 74 => "koi8r",
        10 | 82 => "swe7",
        11 | 65 => "ascii",
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
