//! WEIGHT_STRING: what a collation compares of a text, as MySQL shows it.
//!
//! Sort keys are shorter codes of the same order. Here each weight is written as it stands in MySQL's tables, the
//! higher byte first:
//!
//! | collation | of each character |
//! |---|---|
//! | `utf8mb4_bin` | its number in three bytes |
//! | `utf8mb4_general_ci` | its weight in two bytes; those beyond the Basic Multilingual Plane are FFFD |
//! | those of the Unicode Collation Algorithm | its primary weights in two bytes each |
//! | `utf8mb4_0900_bin`, `binary` | its bytes |

use super::collation::Collation;
use super::padded::general_weight;
use super::unicode_weights::{Version, Weights};

/// The weight of characters beyond the Basic Multilingual Plane.
const BEYOND: u16 = 0xFFFD;

impl Collation {
    /// Appends the weights of a text. Of `length` characters, if that is given: of a longer text the others are left
    /// out, and a shorter one has spaces behind it if the collation is PAD SPACE. False for collations whose accents
    /// and cases have weights of their own, of which nothing is appended.
    pub fn weight_string_into(
        self,
        text: &str,
        length: Option<usize>,
        weights: &mut Vec<u8>,
    ) -> bool {
        if self.has_levels() {
            return false;
        }
        let characters = text.chars().take(length.unwrap_or(usize::MAX));
        let missing = length.map_or(0, |length| length.saturating_sub(text.chars().count()));
        let padding = match self.pads_spaces() {
            true => missing,
            false => 0,
        };
        let characters = characters.chain(std::iter::repeat_n(' ', padding));
        let table = match self.order() {
            Collation::Utf8mb4_unicode_ci => Some(Weights::of(Version::V400)),
            Collation::Utf8mb4_unicode_520_ci => Some(Weights::of(Version::V520)),
            Collation::Utf8mb4_0900_ai_ci => Some(Weights::of(Version::V900)),
            Collation::Tailored(language) => Some(language.weights()),
            _ => None,
        };
        if let Some(table) = table {
            let (text, mut of_text) = (characters.collect::<String>(), Vec::new());
            table.push_weights_of_text(&text, &mut of_text);
            weights.extend(of_text.iter().flat_map(|weight| weight.to_be_bytes()));
            return true;
        }
        let is_short = matches!(self.character_set(), "utf8mb3" | "ucs2");
        for character in characters {
            match self.order() {
                Collation::OfSet(collation) => {
                    collation.push_raw_weight(character, weights);
                }
                Collation::Utf8mb4_general_ci => {
                    let weight = u32::from(general_weight(character));
                    let weight = u16::try_from(weight).unwrap_or(BEYOND);
                    weights.extend(weight.to_be_bytes());
                }
                Collation::Utf8mb4_bin if is_short => {
                    let weight = u16::try_from(u32::from(character)).unwrap_or(BEYOND);
                    weights.extend(weight.to_be_bytes());
                }
                Collation::Utf8mb4_bin => {
                    weights.extend_from_slice(&u32::from(character).to_be_bytes()[1..]);
                }
                _ => weights.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::hexadecimal::digits_of;

    fn weights(collation: Collation, text: &str, length: Option<usize>) -> String {
        let mut weights = Vec::new();
        assert!(collation.weight_string_into(text, length, &mut weights));
        digits_of(&weights)
    }

    /// Answers of MySQL 9.7.
    #[test]
    fn weights_are_mysqls() {
        let text = "aé中😀";
        for (collation, expected) in [
            (Collation::Utf8mb4_general_ci, "004100454E2DFFFD"),
            (Collation::Utf8mb4_bin, "0000610000E9004E2D01F600"),
            (Collation::Utf8mb4_unicode_ci, "0E330E8BFB40CE2DFFFD"),
            (
                Collation::Utf8mb4_unicode_520_ci,
                "120F126BFB40CE2DFBC3F600",
            ),
            (Collation::Utf8mb4_0900_ai_ci, "1C471CAAFB40CE2D15FB"),
            (Collation::Utf8mb4_0900_bin, "61C3A9E4B8ADF09F9880"),
        ] {
            assert_eq!(
                weights(collation, text, None),
                expected,
                "{}",
                collation.name()
            );
        }
        let of = |collation, text, length| weights(collation, text, Some(length));
        assert_eq!(
            of(Collation::Utf8mb4_general_ci, "ab", 4),
            "0041004200200020"
        );
        assert_eq!(of(Collation::Utf8mb4_general_ci, "ab", 1), "0041");
        assert_eq!(
            of(Collation::Utf8mb4_bin, "ab", 4),
            "000061000062000020000020"
        );
        assert_eq!(
            of(Collation::Utf8mb4_unicode_ci, "ab", 4),
            "0E330E4A02090209"
        );
        assert_eq!(of(Collation::Utf8mb4_unicode_ci, "ßx", 2), "0FEA0FEA105A");
        assert_eq!(of(Collation::Utf8mb4_0900_ai_ci, "ab", 4), "1C471C60");
        assert!(!Collation::Utf8mb4_0900_as_cs.weight_string_into(text, None, &mut Vec::new()));
    }
}
