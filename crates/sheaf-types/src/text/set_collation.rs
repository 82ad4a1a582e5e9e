//! Collations of other character sets than utf8mb4: `latin1_swedish_ci`, `utf8mb3_bin`, `gbk_chinese_ci`.
//!
//! Texts are UTF-8 throughout. Such a collation says which characters a text may have and which bytes they are
//! ([`SetCollation::encoding`]), and orders texts as MySQL orders those bytes. All are PAD SPACE, and their sort keys
//! look as those of `utf8mb4_bin` do (see [`collation`](super::collation)), with weights in place of characters:
//!
//! | order | the weight of a character |
//! |---|---|
//! | [`Like`](Order::Like) | what a collation of utf8mb4 says: utf8mb3, ucs2, utf16, utf16le and utf32 |
//! | [`Codes`](Order::Codes) | its bytes as a number |
//! | [`Capitals`](Order::Capitals) | the same, with letters of ASCII in upper case |
//! | [`Bytes`](Order::Bytes) | that of its one byte, by a table |
//! | [`German2`](Order::German2) | the same; but `ä` is `ae`, and `ß` is `ss` |
//! | [`Chinese`](Order::Chinese) | by a table of single bytes, and one of pairs |
//!
//! Weights are numbers of characters, for one encoding of all: those of two bytes stand behind those of ASCII, and
//! those of three bytes between pairs with lower and with higher first bytes. So do the half-width letters of sjis and
//! cp932, single bytes from 0xA1 to 0xDF: MySQL compares such a byte with the first byte of a pair.
//!
//! The tables are MySQL 9.7's, as WEIGHT_STRING shows them. `set_weights.bin` has 256 bytes for each table of single
//! bytes. `double_weights.bin` has a number of two bytes, the lower one first, for each pair of [`FIRST_BYTES`] and
//! [`SECOND_BYTES`]: big5, and then gbk; zero is no character. MySQL shows and sorts by those of big5, by which many
//! characters are alike, but compares by codes: so do keys here.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use super::eight_bit::REPLACEMENT;
use super::encoding::TextEncoding;
use super::padded::general_weight;
use super::several_bytes::HALF_WIDTH;
use super::{PAD_BELOW, PAD_END};

/// Bytes that begin a pair of `double_weights.bin`.
const FIRST_BYTES: RangeInclusive<u8> = 0x81..=0xFE;
/// Bytes that end one.
const SECOND_BYTES: RangeInclusive<u8> = 0x40..=0xFE;
/// How many bytes end one.
const PAIRS: usize = 191;
/// Bytes of a table of pairs.
const DOUBLE_TABLE: usize = 126 * PAIRS * 2;
/// Weights of pairs stand behind this.
const OF_TWO: u32 = 0x1_0000;
/// The same for characters of three bytes, which begin with [`FIRST_OF_THREE`].
const OF_THREE: u32 = 0x2_0000;
/// The same for pairs whose first byte is that or a higher one.
const BEHIND_THREE: u32 = 0x3_0000;
const FIRST_OF_THREE: u32 = 0x8F00;
/// Added to weights that are lower than a space's, where this is not that of a space of ASCII: they are no spaces.
const BELOW: u8 = 0x40;

/// How texts of a set are ordered.
#[derive(Clone, Copy)]
enum Order {
    Like(&'static str),
    /// As `utf8mb4_general_ci`, but `ß` is a letter of its own.
    GeneralWithSharpS,
    Codes,
    Capitals,
    Bytes(usize),
    German2(usize),
    Chinese(usize, Option<Double>),
}

/// A table of weights of pairs.
#[derive(Clone, Copy)]
enum Double {
    Big5,
    Gbk,
}

use Order::{Bytes, Capitals, Chinese, Codes, GeneralWithSharpS, German2, Like};

/// MySQL's numbers and names, ascending. Not here are those of swe7, `gb18030_bin` and `gb18030_chinese_ci`,
/// `tis620_thai_ci`, `latin2_czech_cs` and `cp1250_czech_cs`.
static COLLATIONS: [(u16, &str, Order); COUNT] = [
    (1, "big5_chinese_ci", Chinese(0, Some(Double::Big5))),
    (3, "dec8_swedish_ci", Bytes(1)),
    (4, "cp850_general_ci", Bytes(2)),
    (5, "latin1_german1_ci", Bytes(3)),
    (6, "hp8_english_ci", Bytes(4)),
    (7, "koi8r_general_ci", Bytes(5)),
    (8, "latin1_swedish_ci", Bytes(1)),
    (9, "latin2_general_ci", Bytes(6)),
    (11, "ascii_general_ci", Bytes(7)),
    (12, "ujis_japanese_ci", Capitals),
    (13, "sjis_japanese_ci", Capitals),
    (14, "cp1251_bulgarian_ci", Bytes(8)),
    (15, "latin1_danish_ci", Bytes(9)),
    (16, "hebrew_general_ci", Bytes(10)),
    (19, "euckr_korean_ci", Capitals),
    (20, "latin7_estonian_cs", Bytes(11)),
    (21, "latin2_hungarian_ci", Bytes(12)),
    (22, "koi8u_general_ci", Bytes(13)),
    (23, "cp1251_ukrainian_ci", Bytes(14)),
    (24, "gb2312_chinese_ci", Chinese(15, None)),
    (25, "greek_general_ci", Bytes(16)),
    (26, "cp1250_general_ci", Bytes(17)),
    (27, "latin2_croatian_ci", Bytes(18)),
    (28, "gbk_chinese_ci", Chinese(15, Some(Double::Gbk))),
    (29, "cp1257_lithuanian_ci", Bytes(19)),
    (30, "latin5_turkish_ci", Bytes(20)),
    (31, "latin1_german2_ci", German2(21)),
    (32, "armscii8_general_ci", Bytes(7)),
    (33, "utf8mb3_general_ci", Like("utf8mb4_general_ci")),
    (35, "ucs2_general_ci", Like("utf8mb4_general_ci")),
    (36, "cp866_general_ci", Bytes(22)),
    (37, "keybcs2_general_ci", Bytes(23)),
    (38, "macce_general_ci", Bytes(24)),
    (39, "macroman_general_ci", Bytes(25)),
    (40, "cp852_general_ci", Bytes(26)),
    (41, "latin7_general_ci", Bytes(27)),
    (42, "latin7_general_cs", Bytes(28)),
    (43, "macce_bin", Codes),
    (44, "cp1250_croatian_ci", Bytes(29)),
    (47, "latin1_bin", Codes),
    (48, "latin1_general_ci", Bytes(30)),
    (49, "latin1_general_cs", Bytes(31)),
    (50, "cp1251_bin", Codes),
    (51, "cp1251_general_ci", Bytes(32)),
    (52, "cp1251_general_cs", Bytes(33)),
    (53, "macroman_bin", Codes),
    (54, "utf16_general_ci", Like("utf8mb4_general_ci")),
    (55, "utf16_bin", Like("utf8mb4_bin")),
    (56, "utf16le_general_ci", Like("utf8mb4_general_ci")),
    (57, "cp1256_general_ci", Bytes(34)),
    (58, "cp1257_bin", Codes),
    (59, "cp1257_general_ci", Bytes(35)),
    (60, "utf32_general_ci", Like("utf8mb4_general_ci")),
    (61, "utf32_bin", Like("utf8mb4_bin")),
    (62, "utf16le_bin", Like("utf8mb4_bin")),
    (64, "armscii8_bin", Codes),
    (65, "ascii_bin", Codes),
    (66, "cp1250_bin", Codes),
    (67, "cp1256_bin", Codes),
    (68, "cp866_bin", Codes),
    (69, "dec8_bin", Codes),
    (70, "greek_bin", Codes),
    (71, "hebrew_bin", Codes),
    (72, "hp8_bin", Codes),
    (73, "keybcs2_bin", Codes),
    (74, "koi8r_bin", Codes),
    (75, "koi8u_bin", Codes),
    (77, "latin2_bin", Codes),
    (78, "latin5_bin", Codes),
    (79, "latin7_bin", Codes),
    (80, "cp850_bin", Codes),
    (81, "cp852_bin", Codes),
    (83, "utf8mb3_bin", Like("utf8mb4_bin")),
    (84, "big5_bin", Codes),
    (85, "euckr_bin", Codes),
    (86, "gb2312_bin", Codes),
    (87, "gbk_bin", Codes),
    (88, "sjis_bin", Codes),
    (89, "tis620_bin", Codes),
    (90, "ucs2_bin", Like("utf8mb4_bin")),
    (91, "ujis_bin", Codes),
    (92, "geostd8_general_ci", Bytes(36)),
    (93, "geostd8_bin", Codes),
    (94, "latin1_spanish_ci", Bytes(37)),
    (95, "cp932_japanese_ci", Capitals),
    (96, "cp932_bin", Codes),
    (97, "eucjpms_japanese_ci", Capitals),
    (98, "eucjpms_bin", Codes),
    (99, "cp1250_polish_ci", Bytes(38)),
    (101, "utf16_unicode_ci", Like("utf8mb4_unicode_ci")),
    (102, "utf16_icelandic_ci", Like("utf8mb4_icelandic_ci")),
    (103, "utf16_latvian_ci", Like("utf8mb4_latvian_ci")),
    (104, "utf16_romanian_ci", Like("utf8mb4_romanian_ci")),
    (105, "utf16_slovenian_ci", Like("utf8mb4_slovenian_ci")),
    (106, "utf16_polish_ci", Like("utf8mb4_polish_ci")),
    (107, "utf16_estonian_ci", Like("utf8mb4_estonian_ci")),
    (108, "utf16_spanish_ci", Like("utf8mb4_spanish_ci")),
    (109, "utf16_swedish_ci", Like("utf8mb4_swedish_ci")),
    (110, "utf16_turkish_ci", Like("utf8mb4_turkish_ci")),
    (111, "utf16_czech_ci", Like("utf8mb4_czech_ci")),
    (112, "utf16_danish_ci", Like("utf8mb4_danish_ci")),
    (113, "utf16_lithuanian_ci", Like("utf8mb4_lithuanian_ci")),
    (114, "utf16_slovak_ci", Like("utf8mb4_slovak_ci")),
    (115, "utf16_spanish2_ci", Like("utf8mb4_spanish2_ci")),
    (116, "utf16_roman_ci", Like("utf8mb4_roman_ci")),
    (117, "utf16_persian_ci", Like("utf8mb4_persian_ci")),
    (118, "utf16_esperanto_ci", Like("utf8mb4_esperanto_ci")),
    (119, "utf16_hungarian_ci", Like("utf8mb4_hungarian_ci")),
    (120, "utf16_sinhala_ci", Like("utf8mb4_sinhala_ci")),
    (121, "utf16_german2_ci", Like("utf8mb4_german2_ci")),
    (122, "utf16_croatian_ci", Like("utf8mb4_croatian_ci")),
    (123, "utf16_unicode_520_ci", Like("utf8mb4_unicode_520_ci")),
    (124, "utf16_vietnamese_ci", Like("utf8mb4_vietnamese_ci")),
    (128, "ucs2_unicode_ci", Like("utf8mb4_unicode_ci")),
    (129, "ucs2_icelandic_ci", Like("utf8mb4_icelandic_ci")),
    (130, "ucs2_latvian_ci", Like("utf8mb4_latvian_ci")),
    (131, "ucs2_romanian_ci", Like("utf8mb4_romanian_ci")),
    (132, "ucs2_slovenian_ci", Like("utf8mb4_slovenian_ci")),
    (133, "ucs2_polish_ci", Like("utf8mb4_polish_ci")),
    (134, "ucs2_estonian_ci", Like("utf8mb4_estonian_ci")),
    (135, "ucs2_spanish_ci", Like("utf8mb4_spanish_ci")),
    (136, "ucs2_swedish_ci", Like("utf8mb4_swedish_ci")),
    (137, "ucs2_turkish_ci", Like("utf8mb4_turkish_ci")),
    (138, "ucs2_czech_ci", Like("utf8mb4_czech_ci")),
    (139, "ucs2_danish_ci", Like("utf8mb4_danish_ci")),
    (140, "ucs2_lithuanian_ci", Like("utf8mb4_lithuanian_ci")),
    (141, "ucs2_slovak_ci", Like("utf8mb4_slovak_ci")),
    (142, "ucs2_spanish2_ci", Like("utf8mb4_spanish2_ci")),
    (143, "ucs2_roman_ci", Like("utf8mb4_roman_ci")),
    (144, "ucs2_persian_ci", Like("utf8mb4_persian_ci")),
    (145, "ucs2_esperanto_ci", Like("utf8mb4_esperanto_ci")),
    (146, "ucs2_hungarian_ci", Like("utf8mb4_hungarian_ci")),
    (147, "ucs2_sinhala_ci", Like("utf8mb4_sinhala_ci")),
    (148, "ucs2_german2_ci", Like("utf8mb4_german2_ci")),
    (149, "ucs2_croatian_ci", Like("utf8mb4_croatian_ci")),
    (150, "ucs2_unicode_520_ci", Like("utf8mb4_unicode_520_ci")),
    (151, "ucs2_vietnamese_ci", Like("utf8mb4_vietnamese_ci")),
    (159, "ucs2_general_mysql500_ci", GeneralWithSharpS),
    (160, "utf32_unicode_ci", Like("utf8mb4_unicode_ci")),
    (161, "utf32_icelandic_ci", Like("utf8mb4_icelandic_ci")),
    (162, "utf32_latvian_ci", Like("utf8mb4_latvian_ci")),
    (163, "utf32_romanian_ci", Like("utf8mb4_romanian_ci")),
    (164, "utf32_slovenian_ci", Like("utf8mb4_slovenian_ci")),
    (165, "utf32_polish_ci", Like("utf8mb4_polish_ci")),
    (166, "utf32_estonian_ci", Like("utf8mb4_estonian_ci")),
    (167, "utf32_spanish_ci", Like("utf8mb4_spanish_ci")),
    (168, "utf32_swedish_ci", Like("utf8mb4_swedish_ci")),
    (169, "utf32_turkish_ci", Like("utf8mb4_turkish_ci")),
    (170, "utf32_czech_ci", Like("utf8mb4_czech_ci")),
    (171, "utf32_danish_ci", Like("utf8mb4_danish_ci")),
    (172, "utf32_lithuanian_ci", Like("utf8mb4_lithuanian_ci")),
    (173, "utf32_slovak_ci", Like("utf8mb4_slovak_ci")),
    (174, "utf32_spanish2_ci", Like("utf8mb4_spanish2_ci")),
    (175, "utf32_roman_ci", Like("utf8mb4_roman_ci")),
    (176, "utf32_persian_ci", Like("utf8mb4_persian_ci")),
    (177, "utf32_esperanto_ci", Like("utf8mb4_esperanto_ci")),
    (178, "utf32_hungarian_ci", Like("utf8mb4_hungarian_ci")),
    (179, "utf32_sinhala_ci", Like("utf8mb4_sinhala_ci")),
    (180, "utf32_german2_ci", Like("utf8mb4_german2_ci")),
    (181, "utf32_croatian_ci", Like("utf8mb4_croatian_ci")),
    (182, "utf32_unicode_520_ci", Like("utf8mb4_unicode_520_ci")),
    (183, "utf32_vietnamese_ci", Like("utf8mb4_vietnamese_ci")),
    (192, "utf8mb3_unicode_ci", Like("utf8mb4_unicode_ci")),
    (193, "utf8mb3_icelandic_ci", Like("utf8mb4_icelandic_ci")),
    (194, "utf8mb3_latvian_ci", Like("utf8mb4_latvian_ci")),
    (195, "utf8mb3_romanian_ci", Like("utf8mb4_romanian_ci")),
    (196, "utf8mb3_slovenian_ci", Like("utf8mb4_slovenian_ci")),
    (197, "utf8mb3_polish_ci", Like("utf8mb4_polish_ci")),
    (198, "utf8mb3_estonian_ci", Like("utf8mb4_estonian_ci")),
    (199, "utf8mb3_spanish_ci", Like("utf8mb4_spanish_ci")),
    (200, "utf8mb3_swedish_ci", Like("utf8mb4_swedish_ci")),
    (201, "utf8mb3_turkish_ci", Like("utf8mb4_turkish_ci")),
    (202, "utf8mb3_czech_ci", Like("utf8mb4_czech_ci")),
    (203, "utf8mb3_danish_ci", Like("utf8mb4_danish_ci")),
    (204, "utf8mb3_lithuanian_ci", Like("utf8mb4_lithuanian_ci")),
    (205, "utf8mb3_slovak_ci", Like("utf8mb4_slovak_ci")),
    (206, "utf8mb3_spanish2_ci", Like("utf8mb4_spanish2_ci")),
    (207, "utf8mb3_roman_ci", Like("utf8mb4_roman_ci")),
    (208, "utf8mb3_persian_ci", Like("utf8mb4_persian_ci")),
    (209, "utf8mb3_esperanto_ci", Like("utf8mb4_esperanto_ci")),
    (210, "utf8mb3_hungarian_ci", Like("utf8mb4_hungarian_ci")),
    (211, "utf8mb3_sinhala_ci", Like("utf8mb4_sinhala_ci")),
    (212, "utf8mb3_german2_ci", Like("utf8mb4_german2_ci")),
    (213, "utf8mb3_croatian_ci", Like("utf8mb4_croatian_ci")),
    (
        214,
        "utf8mb3_unicode_520_ci",
        Like("utf8mb4_unicode_520_ci"),
    ),
    (215, "utf8mb3_vietnamese_ci", Like("utf8mb4_vietnamese_ci")),
    (223, "utf8mb3_general_mysql500_ci", GeneralWithSharpS),
    (
        250,
        "gb18030_unicode_520_ci",
        Like("utf8mb4_unicode_520_ci"),
    ),
];
pub(super) const COUNT: usize = 188;

/// A collation of another character set than utf8mb4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetCollation {
    /// Its place in [`COLLATIONS`].
    place: u8,
}

/// What a character is in a sort key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// That of a space.
    Space,
    /// Lower than a space.
    Below(char),
    Above(char),
}

/// What is computed once of a collation.
struct Rules {
    encoding: TextEncoding,
    /// MySQL's weights of single bytes, and those of sort keys.
    raw: [u8; 256],
    single: [Weight; 256],
    double: Option<Double>,
    has_plain_ascii: bool,
}

impl SetCollation {
    /// The collation at a place of the list.
    pub(super) const fn at(place: usize) -> SetCollation {
        SetCollation { place: place as u8 }
    }

    pub fn name(self) -> &'static str {
        COLLATIONS[usize::from(self.place)].1
    }

    pub fn id(self) -> u16 {
        COLLATIONS[usize::from(self.place)].0
    }

    /// MySQL's name of its character set.
    pub fn character_set(self) -> &'static str {
        let name = self.name();
        name.split_once('_').map_or(name, |(set, _)| set)
    }

    pub fn encoding(self) -> TextEncoding {
        self.rules().encoding
    }

    /// The name of the collation of utf8mb4 that orders texts alike. What is said of the order is said of others.
    pub(super) fn like(self) -> Option<&'static str> {
        match self.order() {
            Like(name) => Some(name),
            _ => None,
        }
    }

    /// Its place in the list.
    pub(super) fn place(self) -> usize {
        self.place.into()
    }

    fn order(self) -> Order {
        COLLATIONS[usize::from(self.place)].2
    }

    pub(super) fn is_exact(self) -> bool {
        matches!(self.order(), Codes)
    }

    pub(super) fn ignores_case(self) -> bool {
        let single = &self.rules().single;
        single[usize::from(b'a')] == single[usize::from(b'A')]
    }

    /// See [`has_plain_ascii`](super::collation::Collation::has_plain_ascii).
    pub(super) fn has_plain_ascii(self) -> bool {
        self.rules().has_plain_ascii
    }

    fn rules(self) -> &'static Rules {
        static RULES: OnceLock<Vec<Rules>> = OnceLock::new();
        let rules = RULES.get_or_init(|| (0..COUNT).map(|place| Self::at(place).read()).collect());
        &rules[usize::from(self.place)]
    }

    fn read(self) -> Rules {
        let tables = include_bytes!("set_weights.bin");
        let (table, double) = match self.order() {
            Bytes(table) | German2(table) => (Some(table), None),
            Chinese(table, double) => (Some(table), double),
            _ => (None, None),
        };
        let mut raw: [u8; 256] = std::array::from_fn(|byte| byte as u8);
        if let Some(table) = table {
            raw.copy_from_slice(&tables[256 * table..256 * (table + 1)]);
        }
        if matches!(self.order(), Capitals | GeneralWithSharpS) {
            raw.make_ascii_uppercase();
        }
        let space = raw[usize::from(b' ')];
        let single = raw.map(|weight| match weight {
            weight if weight == space => Weight::Space,
            weight if weight > space => Weight::Above(char::from(weight)),
            weight if space == b' ' => Weight::Below(char::from(weight)),
            weight => Weight::Below(char::from(BELOW + weight)),
        });
        let ignores_case = raw[usize::from(b'a')] == raw[usize::from(b'A')];
        let is_plain = |a: u8, b: u8| {
            let is_same = match ignores_case {
                true => a.eq_ignore_ascii_case(&b),
                false => a == b,
            };
            is_same == (raw[usize::from(a)] == raw[usize::from(b)])
        };
        let has_plain_ascii = (0..128).all(|a| (0..128).all(|b| is_plain(a, b)));
        Rules {
            encoding: TextEncoding::of_character_set(self.character_set()),
            raw,
            single,
            double,
            has_plain_ascii,
        }
    }

    /// Appends the key of at most `limit` weights, and returns how many there were. A character has one, but for few of
    /// German: equal texts have equal beginnings.
    pub(super) fn key_into(self, text: &str, limit: usize, key: &mut Vec<u8>) -> usize {
        let rules = self.rules();
        let is_german = matches!(self.order(), German2(_));
        let is_general = matches!(self.order(), GeneralWithSharpS);
        let mut spaces = 0;
        let mut push = |weight: Weight| {
            let character = match weight {
                Weight::Space => {
                    spaces += 1;
                    return;
                }
                Weight::Below(character) => {
                    key.push(PAD_BELOW);
                    character
                }
                Weight::Above(character) => character,
            };
            key.resize(key.len() + spaces, b' ');
            spaces = 0;
            key.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        };
        let mut count = 0;
        for character in text.chars() {
            if count == limit {
                break;
            }
            push(match is_general {
                true => general(character),
                false => rules.weight(character),
            });
            count += 1;
            if is_german
                && count < limit
                && let Some(second) = second_letter(character)
            {
                push(rules.weight(second));
                count += 1;
            }
        }
        key.push(PAD_END);
        count
    }

    /// Appends MySQL's own weights of a character, as WEIGHT_STRING shows them. Not for those that are
    /// [like](Self::like) one of utf8mb4.
    pub(super) fn push_raw_weight(self, character: char, weights: &mut Vec<u8>) {
        let rules = self.rules();
        if matches!(self.order(), GeneralWithSharpS) {
            let weight = match general(character) {
                Weight::Space => ' ',
                Weight::Below(weight) | Weight::Above(weight) => weight,
            };
            let weight = u16::try_from(u32::from(weight)).unwrap_or(0xFFFD);
            return weights.extend(weight.to_be_bytes());
        }
        match *rules.code(character).as_slice() {
            [byte] => weights.push(rules.raw[usize::from(byte)]),
            [first, second] => {
                let pair = u16::try_from(rules.pair(first, second)).unwrap_or_default();
                weights.extend(pair.to_be_bytes());
            }
            ref bytes => weights.extend_from_slice(bytes),
        }
        if matches!(self.order(), German2(_))
            && let Some(second) = second_letter(character)
        {
            weights.push(second.to_ascii_uppercase() as u8);
        }
    }
}

/// What `utf8mb4_general_ci` has, but for `ß`.
fn general(character: char) -> Weight {
    let weight = match character {
        'ß' => character,
        character => general_weight(character),
    };
    match weight {
        ' ' => Weight::Space,
        weight if weight < ' ' => Weight::Below(weight),
        weight => Weight::Above(weight),
    }
}

/// What a letter of `latin1_german2_ci` has behind its own weight.
fn second_letter(character: char) -> Option<char> {
    match character {
        'Ä' | 'ä' | 'Ö' | 'ö' | 'Ü' | 'ü' => Some('e'),
        'ß' => Some('s'),
        _ => None,
    }
}

impl Rules {
    /// The bytes of a character in the set; those of a question mark if it is not there.
    fn code(&self, character: char) -> Vec<u8> {
        let mut bytes = [0; 4];
        let text = character.encode_utf8(&mut bytes);
        self.encoding.encode(text.as_bytes()).into_owned()
    }

    fn pair(&self, first: u8, second: u8) -> u32 {
        let code = u32::from(u16::from_be_bytes([first, second]));
        let (Some(double), true, true) = (
            self.double,
            FIRST_BYTES.contains(&first),
            SECOND_BYTES.contains(&second),
        ) else {
            return code;
        };
        let tables = include_bytes!("double_weights.bin");
        let row = usize::from(first - FIRST_BYTES.start());
        let column = usize::from(second - SECOND_BYTES.start());
        let start = match double {
            Double::Big5 => 0,
            Double::Gbk => DOUBLE_TABLE,
        };
        let at = start + 2 * (row * PAIRS + column);
        match u16::from_le_bytes([tables[at], tables[at + 1]]) {
            0 => code,
            weight => u32::from(weight),
        }
    }

    fn weight(&self, character: char) -> Weight {
        if character.is_ascii() {
            return self.single[character as usize];
        }
        if let TextEncoding::EightBit(set) = self.encoding {
            let byte = set.byte(character).unwrap_or(REPLACEMENT);
            return self.single[usize::from(byte)];
        }
        let weight = match *self.code(character).as_slice() {
            // No pair has these first bytes.
            [byte] if HALF_WIDTH.contains(&byte) => BEHIND_THREE + (u32::from(byte) << 8),
            [byte] => return self.single[usize::from(byte)],
            [first, second] => {
                match (self.double, u32::from(u16::from_be_bytes([first, second]))) {
                    (Some(Double::Gbk), _) => OF_TWO + self.pair(first, second),
                    (None, code) if code >= FIRST_OF_THREE => BEHIND_THREE + code,
                    (_, code) => OF_TWO + code,
                }
            }
            [_, second, third] => OF_THREE + u32::from(u16::from_be_bytes([second, third])),
            _ => return self.single[usize::from(REPLACEMENT)],
        };
        char::from_u32(weight).map_or(Weight::Space, Weight::Above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::collation::Collation;
    use crate::text::hexadecimal::digits_of;

    fn collation(name: &str) -> Collation {
        Collation::parse(name).expect(name)
    }

    fn is_equal(name: &str, a: &str, b: &str) -> bool {
        collation(name).compare(a, b).is_eq()
    }

    #[test]
    fn each_is_found_by_its_name_and_number() {
        assert_eq!(SECOND_BYTES.count() * FIRST_BYTES.count() * 2, DOUBLE_TABLE);
        assert!(COLLATIONS.is_sorted_by_key(|(id, ..)| *id));
        for (id, name, order) in &COLLATIONS {
            let found = collation(name);
            assert_eq!((found.id(), found.name()), (*id, *name));
            assert_eq!(Collation::of_id(u64::from(*id)), Some(found));
            if let Like(like) = order {
                assert!(Collation::parse(like).is_some(), "{like}");
            }
        }
        assert_eq!(collation("latin1_bin").character_set(), "latin1");
    }

    #[test]
    fn letters_are_equal_as_the_collation_says() {
        for (name, a, b, expected) in [
            ("latin1_swedish_ci", "a", "A", true),
            ("latin1_swedish_ci", "a", "ä", false),
            ("latin1_swedish_ci", "é", "E  ", true),
            ("latin1_german1_ci", "a", "ä", true),
            ("latin1_german2_ci", "ae", "Ä", true),
            ("latin1_german2_ci", "ss", "ß", true),
            ("latin1_general_cs", "a", "A", false),
            ("latin1_bin", "a", "a ", true),
            ("latin1_bin", "a", "A", false),
            ("cp1251_general_ci", "ж", "Ж", true),
            ("utf8mb3_general_ci", "ä", "A", true),
            ("ucs2_bin", "ä", "A", false),
            ("gbk_chinese_ci", "a中", "A中", true),
            ("gbk_chinese_ci", "中", "国", false),
            ("sjis_japanese_ci", "aあ", "Aあ", true),
            ("utf8mb3_general_mysql500_ci", "ß", "s", false),
        ] {
            assert_eq!(is_equal(name, a, b), expected, "{a} and {b} by {name}");
        }
    }

    #[test]
    fn texts_are_in_the_order_of_the_collation() {
        for (name, texts) in [
            ("latin1_swedish_ci", "a b z å ä ö"),
            ("latin1_bin", "A a z ä"),
            // ä is E4 and ж is D6 in their sets; by Unicode it would be the other way round with €.
            ("latin1_bin", "z € é"),
            ("koi8r_bin", "ю а б ц"),
            ("ujis_bin", "a ｱ 丂 あ"),
            // By their sounds: a, bei, zhong.
            ("gbk_chinese_ci", "a 啊 北 中"),
            ("big5_chinese_ci", "a 一 中 國"),
            // 8ABF, 955C, B1, DC, E150: single bytes are among the first bytes of pairs.
            ("sjis_bin", "a 漢 表 ｱ ﾜ 瓠"),
            ("sjis_japanese_ci", "a 漢 表 ｱ ﾜ 瓠"),
            ("cp932_bin", "a 漢 表 ｱ ﾜ 瓠"),
            ("cp932_japanese_ci", "a 漢 表 ｱ ﾜ 瓠"),
        ] {
            let texts: Vec<&str> = texts.split(' ').collect();
            for pair in texts.windows(2) {
                let order = collation(name).compare(pair[0], pair[1]);
                assert!(order.is_lt(), "{} and {} by {name}", pair[0], pair[1]);
            }
        }
        for name in ["latin7_general_ci", "latin7_general_cs", "latin1_bin"] {
            for (a, b) in [("a\t", "a"), ("a", "a b"), ("a \t", "a"), ("a b", "ab")] {
                assert!(
                    collation(name).compare(a, b).is_lt(),
                    "{a:?} {b:?} by {name}"
                );
            }
        }
    }

    #[test]
    fn weights_are_mysqls() {
        for (name, text, expected) in [
            ("latin1_swedish_ci", "aé", "4145"),
            ("latin1_german2_ci", "äß", "41455353"),
            ("gbk_chinese_ci", "a", "41"),
        ] {
            let mut weights = Vec::new();
            assert!(collation(name).weight_string_into(text, None, &mut weights));
            assert_eq!(digits_of(&weights), expected, "{name}");
        }
    }
}
