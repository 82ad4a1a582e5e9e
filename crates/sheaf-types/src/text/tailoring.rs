//! Collations of languages: in which places they differ from the collation that they are made of.
//!
//! Each is the Unicode Collation Algorithm with some weights of its own. Those of the older family
//! (`utf8mb4_swedish_ci`) have the weights of version 4.0.0, and are PAD SPACE, as `utf8mb4_unicode_ci`. The newer
//! ones (`utf8mb4_sv_0900_ai_ci`, `utf8mb4_sv_0900_as_cs`) have those of version 9.0.0. A letter behind `z` has the
//! weight of `z` and one more (1F98 54A5), or in the older family a weight that is a little greater (106B).
//!
//! `tailoring.txt` says what is different, with the weights that MySQL 9.7 has, in sections for one or more languages:
//!
//! ```text
//!   [sv_0900]
//!   00E5 = 1F98 54A5 | 20 | 2 21     primary, secondary and tertiary weights; the older family has the first
//!   0063+0068 = 1D18 54A5 | 20 | 2   a sequence that has weights of its own, such as the Czech `ch`
//!   move 1C47 2021 +448              the primary weights in this range, so that Cyrillic is in front of Latin
//!   capitals first                   among tertiary weights
//! ```
//!
//! A sequence makes one difference to all other collations: the key of a text's beginning is not the beginning of its
//! key if the beginning ends within one. `c` is no beginning of `ch`. So a range for LIKE and a key that is made in
//! pieces end in front of what may be a sequence.

use std::sync::OnceLock;

use Family::{AccentsAndCases, Letters, Unicode400};

use super::unicode_primary::Codes;
use super::unicode_weights::{LevelTable, Version, Weights};

/// The collations, with MySQL's numbers and what they are made of.
const NAMES: [(u16, &str, Family); COUNT] = [
    (225, "utf8mb4_icelandic_ci", Unicode400),
    (226, "utf8mb4_latvian_ci", Unicode400),
    (227, "utf8mb4_romanian_ci", Unicode400),
    (228, "utf8mb4_slovenian_ci", Unicode400),
    (229, "utf8mb4_polish_ci", Unicode400),
    (230, "utf8mb4_estonian_ci", Unicode400),
    (231, "utf8mb4_spanish_ci", Unicode400),
    (232, "utf8mb4_swedish_ci", Unicode400),
    (233, "utf8mb4_turkish_ci", Unicode400),
    (234, "utf8mb4_czech_ci", Unicode400),
    (235, "utf8mb4_danish_ci", Unicode400),
    (236, "utf8mb4_lithuanian_ci", Unicode400),
    (237, "utf8mb4_slovak_ci", Unicode400),
    (238, "utf8mb4_spanish2_ci", Unicode400),
    (239, "utf8mb4_roman_ci", Unicode400),
    (240, "utf8mb4_persian_ci", Unicode400),
    (241, "utf8mb4_esperanto_ci", Unicode400),
    (242, "utf8mb4_hungarian_ci", Unicode400),
    (243, "utf8mb4_sinhala_ci", Unicode400),
    (244, "utf8mb4_german2_ci", Unicode400),
    (245, "utf8mb4_croatian_ci", Unicode400),
    (247, "utf8mb4_vietnamese_ci", Unicode400),
    (256, "utf8mb4_de_pb_0900_ai_ci", Letters),
    (257, "utf8mb4_is_0900_ai_ci", Letters),
    (258, "utf8mb4_lv_0900_ai_ci", Letters),
    (259, "utf8mb4_ro_0900_ai_ci", Letters),
    (260, "utf8mb4_sl_0900_ai_ci", Letters),
    (261, "utf8mb4_pl_0900_ai_ci", Letters),
    (262, "utf8mb4_et_0900_ai_ci", Letters),
    (263, "utf8mb4_es_0900_ai_ci", Letters),
    (264, "utf8mb4_sv_0900_ai_ci", Letters),
    (265, "utf8mb4_tr_0900_ai_ci", Letters),
    (266, "utf8mb4_cs_0900_ai_ci", Letters),
    (267, "utf8mb4_da_0900_ai_ci", Letters),
    (268, "utf8mb4_lt_0900_ai_ci", Letters),
    (269, "utf8mb4_sk_0900_ai_ci", Letters),
    (270, "utf8mb4_es_trad_0900_ai_ci", Letters),
    (271, "utf8mb4_la_0900_ai_ci", Letters),
    (273, "utf8mb4_eo_0900_ai_ci", Letters),
    (274, "utf8mb4_hu_0900_ai_ci", Letters),
    (275, "utf8mb4_hr_0900_ai_ci", Letters),
    (277, "utf8mb4_vi_0900_ai_ci", Letters),
    (279, "utf8mb4_de_pb_0900_as_cs", AccentsAndCases),
    (280, "utf8mb4_is_0900_as_cs", AccentsAndCases),
    (281, "utf8mb4_lv_0900_as_cs", AccentsAndCases),
    (282, "utf8mb4_ro_0900_as_cs", AccentsAndCases),
    (283, "utf8mb4_sl_0900_as_cs", AccentsAndCases),
    (284, "utf8mb4_pl_0900_as_cs", AccentsAndCases),
    (285, "utf8mb4_et_0900_as_cs", AccentsAndCases),
    (286, "utf8mb4_es_0900_as_cs", AccentsAndCases),
    (287, "utf8mb4_sv_0900_as_cs", AccentsAndCases),
    (288, "utf8mb4_tr_0900_as_cs", AccentsAndCases),
    (289, "utf8mb4_cs_0900_as_cs", AccentsAndCases),
    (290, "utf8mb4_da_0900_as_cs", AccentsAndCases),
    (291, "utf8mb4_lt_0900_as_cs", AccentsAndCases),
    (292, "utf8mb4_sk_0900_as_cs", AccentsAndCases),
    (293, "utf8mb4_es_trad_0900_as_cs", AccentsAndCases),
    (294, "utf8mb4_la_0900_as_cs", AccentsAndCases),
    (296, "utf8mb4_eo_0900_as_cs", AccentsAndCases),
    (297, "utf8mb4_hu_0900_as_cs", AccentsAndCases),
    (298, "utf8mb4_hr_0900_as_cs", AccentsAndCases),
    (300, "utf8mb4_vi_0900_as_cs", AccentsAndCases),
    (306, "utf8mb4_ru_0900_ai_ci", Letters),
    (307, "utf8mb4_ru_0900_as_cs", AccentsAndCases),
    (310, "utf8mb4_nb_0900_ai_ci", Letters),
    (311, "utf8mb4_nb_0900_as_cs", AccentsAndCases),
    (312, "utf8mb4_nn_0900_ai_ci", Letters),
    (313, "utf8mb4_nn_0900_as_cs", AccentsAndCases),
    (314, "utf8mb4_sr_latn_0900_ai_ci", Letters),
    (315, "utf8mb4_sr_latn_0900_as_cs", AccentsAndCases),
    (316, "utf8mb4_bs_0900_ai_ci", Letters),
    (317, "utf8mb4_bs_0900_as_cs", AccentsAndCases),
    (318, "utf8mb4_bg_0900_ai_ci", Letters),
    (319, "utf8mb4_bg_0900_as_cs", AccentsAndCases),
    (320, "utf8mb4_gl_0900_ai_ci", Letters),
    (321, "utf8mb4_gl_0900_as_cs", AccentsAndCases),
    (322, "utf8mb4_mn_cyrl_0900_ai_ci", Letters),
    (323, "utf8mb4_mn_cyrl_0900_as_cs", AccentsAndCases),
];
/// How many there are.
pub(super) const COUNT: usize = 78;
/// What the names of all begin with.
const CHARACTER_SET: &str = "utf8mb4_";

/// A collation of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tailoring {
    /// Its place in [`NAMES`].
    place: u8,
}

/// What a collation is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// `utf8mb4_unicode_ci`.
    Unicode400,
    /// `utf8mb4_0900_ai_ci`.
    Letters,
    /// `utf8mb4_0900_as_cs`.
    AccentsAndCases,
}

impl Tailoring {
    /// The one in this place of the list of all.
    pub(super) const fn at(place: usize) -> Tailoring {
        assert!(place < COUNT);
        Tailoring { place: place as u8 }
    }

    pub(super) fn name(self) -> &'static str {
        NAMES[usize::from(self.place)].1
    }

    pub(super) fn id(self) -> u16 {
        NAMES[usize::from(self.place)].0
    }

    #[inline]
    pub(super) fn family(self) -> Family {
        NAMES[usize::from(self.place)].2
    }

    /// The weights of the older family.
    pub(super) fn weights(self) -> &'static Weights {
        &self.tables().weights
    }

    /// The codes of primary weights of the newer family.
    pub(super) fn codes(self) -> &'static Codes {
        let tables = self.tables();
        tables.codes.get_or_init(|| Codes::of(&tables.weights))
    }

    /// Accents and cases of the newer family.
    pub(super) fn levels(self) -> &'static LevelTable {
        let tables = self.tables();
        let table = || {
            let records = tables.records.iter();
            LevelTable::tailored(
                records.map(|record| (record.text.as_str(), record.levels.as_slice())),
                tables.has_capitals_first,
            )
        };
        tables.levels.get_or_init(table)
    }

    /// True if a key can be cut in front of the character and behind it, whatever stands there.
    pub(super) fn is_in_no_sequence(self, character: char) -> bool {
        let mut sequences = self.tables().sequences();
        !sequences.any(|sequence| sequence.contains(character))
    }

    /// A text up to where a sequence may begin that what follows the text completes, or that is written in other
    /// letters which are equal one by one.
    pub(super) fn in_front_of_sequences(
        self,
        text: &str,
        is_same: impl Fn(char, char) -> bool,
    ) -> &str {
        let may_begin = |sequence: &str, text: &str| {
            let (mut sequence, mut text) = (sequence.chars(), text.chars());
            let first = sequence.next().zip(text.next());
            first.is_some_and(|(expected, found)| is_same(expected, found))
                && match (sequence.next(), text.next()) {
                    (Some(expected), Some(found)) => is_same(expected, found),
                    _ => true,
                }
        };
        let tables = self.tables();
        let mut places = text.char_indices().map(|(at, _)| at);
        let end = places.find(|at| {
            let mut sequences = tables.sequences();
            sequences.any(|sequence| may_begin(sequence, &text[*at..]))
        });
        &text[..end.unwrap_or(text.len())]
    }

    fn tables(self) -> &'static Tables {
        static TABLES: [OnceLock<Tables>; COUNT] = [const { OnceLock::new() }; COUNT];
        TABLES[usize::from(self.place)].get_or_init(|| Tables::of(self))
    }
}

/// A character or a sequence that has weights of its own.
struct Record {
    text: String,
    primary: Vec<u16>,
    /// Codes of secondary and tertiary weights; where there are more of one, 0 stands for what the other has not.
    levels: Vec<(u8, u8)>,
}

/// What a collation has instead of the tables that it is made of.
struct Tables {
    records: Vec<Record>,
    has_capitals_first: bool,
    weights: Weights,
    codes: OnceLock<Codes>,
    levels: OnceLock<LevelTable>,
}

impl Tables {
    fn of(tailoring: Tailoring) -> Tables {
        let family = tailoring.family();
        let language = tailoring.name().trim_start_matches(CHARACTER_SET);
        let section = match family {
            Unicode400 => language,
            Letters => language.trim_end_matches("_ai_ci"),
            AccentsAndCases => language.trim_end_matches("_as_cs"),
        };
        let (mut records, mut moves) = (Vec::new(), Vec::new());
        let mut has_capitals_first = false;
        for line in lines_of(section) {
            if let Some(range) = line.strip_prefix("move ") {
                moves.extend(read_move(range));
            } else if line == "capitals first" {
                has_capitals_first = true;
            } else {
                records.extend(Record::read(line));
            }
        }
        let version = match family {
            Unicode400 => Version::V400,
            Letters | AccentsAndCases => Version::V900,
        };
        let of_records = records
            .iter()
            .map(|record| (record.text.as_str(), record.primary.as_slice()));
        let weights = Weights::of(version).tailored(&moves, of_records);
        Tables {
            records,
            has_capitals_first,
            weights,
            codes: OnceLock::new(),
            levels: OnceLock::new(),
        }
    }

    /// The sequences of several characters.
    fn sequences(&self) -> impl Iterator<Item = &str> {
        let texts = self.records.iter().map(|record| record.text.as_str());
        texts.filter(|text| text.chars().nth(1).is_some())
    }
}

/// The lines of a section.
fn lines_of(section: &str) -> impl Iterator<Item = &'static str> {
    let lines = include_str!("tailoring.txt").lines();
    let is_head = move |line: &&str| {
        let names = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        names.is_some_and(|names| names.split(' ').any(|name| name == section))
    };
    let behind = lines.skip_while(move |line| !is_head(line)).skip(1);
    behind.take_while(|line| !line.starts_with('['))
}

/// The range of weights and what is added to them.
fn read_move(line: &str) -> Option<(u16, u16, i16)> {
    let mut words = line.split(' ');
    let mut weight = || u16::from_str_radix(words.next()?, 16).ok();
    let (from, to) = (weight()?, weight()?);
    Some((from, to, words.next()?.parse().ok()?))
}

impl Record {
    fn read(line: &str) -> Option<Record> {
        let (text, weights) = line.split_once(" =")?;
        let characters = text.split('+').map(|number| {
            let number = u32::from_str_radix(number, 16).ok()?;
            char::from_u32(number)
        });
        let text = characters.collect::<Option<String>>()?;
        let mut levels = weights.split('|').map(|level| {
            let weights = level.split_whitespace();
            let weights = weights.filter_map(|weight| u16::from_str_radix(weight, 16).ok());
            weights.collect::<Vec<u16>>()
        });
        let mut level = || levels.next().unwrap_or_default();
        let (primary, secondary, tertiary) = (level(), level(), level());
        let count = secondary.len().max(tertiary.len());
        let code = |weights: &[u16], at: usize, code_of: fn(u16) -> u8| {
            weights.get(at).map_or(0, |weight| code_of(*weight))
        };
        let levels = (0..count).map(|at| {
            let secondary = code(&secondary, at, LevelTable::secondary_code);
            (secondary, code(&tertiary, at, LevelTable::tertiary_code))
        });
        Some(Record {
            text,
            primary,
            levels: levels.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    use crate::text::collation::Collation;

    fn collation(name: &str) -> Collation {
        Collation::parse(name).expect(name)
    }

    fn assert_ascending(name: &str, texts: &str) {
        let texts: Vec<&str> = texts.split(' ').collect();
        for pair in texts.windows(2) {
            let order = collation(name).compare(pair[0], pair[1]);
            assert_eq!(order, Ordering::Less, "{} {} by {name}", pair[0], pair[1]);
        }
    }

    fn assert_equal(name: &str, a: &str, b: &str) {
        let order = collation(name).compare(a, b);
        assert_eq!(order, Ordering::Equal, "{a} {b} by {name}");
    }

    #[test]
    fn each_collation_has_a_section_and_each_line_is_read() {
        for place in 0..COUNT {
            let tailoring = Tailoring::at(place);
            let tables = tailoring.tables();
            let section = tailoring.name().trim_start_matches(CHARACTER_SET);
            let section = section.trim_end_matches("_ai_ci");
            let section = section.trim_end_matches("_as_cs");
            let records = lines_of(section).filter(|line| line.contains(" = "));
            assert_eq!(records.count(), tables.records.len(), "{section}");
            let is_moved = lines_of(section).any(|line| line.starts_with("move"));
            assert!(is_moved || !tables.records.is_empty(), "{section}");
        }
    }

    /// As MySQL 9.7 orders them.
    #[test]
    fn letters_stand_where_the_language_has_them() {
        for swedish in [
            "utf8mb4_swedish_ci",
            "utf8mb4_sv_0900_ai_ci",
            "utf8mb4_sv_0900_as_cs",
        ] {
            assert_ascending(swedish, "a ab ad z za zz å åa ä ö öz");
        }
        assert_equal("utf8mb4_swedish_ci", "ÅR ", "år");
        assert_equal("utf8mb4_sv_0900_ai_ci", "Ø", "ö");
        assert_ascending("utf8mb4_de_pb_0900_ai_ci", "ad ä af");
        assert_equal("utf8mb4_de_pb_0900_ai_ci", "Äpfel", "aepfel");
        assert_equal("utf8mb4_german2_ci", "Müller", "MUELLER ");
        for spanish in [
            "utf8mb4_spanish_ci",
            "utf8mb4_es_0900_ai_ci",
            "utf8mb4_gl_0900_as_cs",
        ] {
            assert_ascending(spanish, "n nz ñ o");
        }
        assert_ascending("utf8mb4_tr_0900_ai_ci", "h I i j");
        assert_equal("utf8mb4_tr_0900_ai_ci", "ı", "I");
        assert_equal("utf8mb4_turkish_ci", "İ", "i");
        assert_ascending("utf8mb4_ru_0900_ai_ci", "0 а я a z");
        assert_ascending("utf8mb4_hr_0900_ai_ci", "z а я α");
        assert_ascending("utf8mb4_da_0900_as_cs", "A a AE Z z Æ æ Ø ø Å å");
        assert_ascending("utf8mb4_vi_0900_as_cs", "a à ả ã á ạ ă â b d đ");
    }

    #[test]
    fn sequences_are_letters() {
        for czech in [
            "utf8mb4_czech_ci",
            "utf8mb4_cs_0900_ai_ci",
            "utf8mb4_cs_0900_as_cs",
        ] {
            assert_ascending(czech, "c cz č d h hz ch cha i");
        }
        assert_equal("utf8mb4_cs_0900_ai_ci", "Chata", "CHATA");
        assert_ascending("utf8mb4_hu_0900_ai_ci", "cz cs cso d dz dzs e");
        assert_ascending("utf8mb4_danish_ci", "ab z ø aa");
        assert_equal("utf8mb4_danish_ci", "Aa", "å");
        let czech = Tailoring::at(9);
        assert_eq!(czech.name(), "utf8mb4_czech_ci");
        for (text, kept) in [
            ("abc", "ab"),
            ("ach", "a"),
            ("aCh", "a"),
            ("acz", "acz"),
            ("", ""),
        ] {
            assert_eq!(Collation::Tailored(czech).settled_prefix(text), kept);
        }
    }
}
