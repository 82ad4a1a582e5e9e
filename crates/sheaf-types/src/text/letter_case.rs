//! The other case of a letter, as MySQL 9.7 knows it: by Unicode 9, and character for character.
//!
//! The standard library knows later versions of Unicode, which have given letters another case that had none. So
//! letters of the later ones are left out here. Of what would be several characters (`ß`), there is no upper case. The
//! Greek letters with a iota below have one: `ᾳ` is `ᾼ`, and not `ΑΙ`.

use std::ops::RangeInclusive;

/// Letters that have had another case since a later version than Unicode 9, or may get one: those of Georgian,
/// Vithkuqi, Garay, Medefaidrin and Beria Erfe, and single ones.
const LATER: [RangeInclusive<char>; 14] = [
    '\u{19B}'..='\u{19B}',
    '\u{264}'..='\u{264}',
    '\u{282}'..='\u{282}',
    '\u{10D0}'..='\u{10FF}',
    '\u{1C89}'..='\u{1CBF}',
    '\u{1D8E}'..='\u{1D8E}',
    '\u{2C2F}'..='\u{2C2F}',
    '\u{2C5F}'..='\u{2C5F}',
    '\u{A794}'..='\u{A794}',
    '\u{A7B8}'..='\u{A7F6}',
    '\u{10570}'..='\u{105BF}',
    '\u{10D50}'..='\u{10D85}',
    '\u{16E40}'..='\u{16E7F}',
    '\u{16EA0}'..='\u{16ED3}',
];

/// A character in upper case.
pub fn uppercase(character: char) -> char {
    let with_iota = match character {
        '\u{1F80}'..='\u{1F87}' | '\u{1F90}'..='\u{1F97}' | '\u{1FA0}'..='\u{1FA7}' => Some(8),
        '\u{1FB3}' | '\u{1FC3}' | '\u{1FF3}' => Some(9),
        _ => None,
    };
    if let Some(distance) = with_iota {
        return char::from_u32(character as u32 + distance).unwrap_or(character);
    }
    if is_later(character) {
        return character;
    }
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        _ => character,
    }
}

/// A character in lower case.
pub fn lowercase(character: char) -> char {
    match is_later(character) {
        true => character,
        false => character.to_lowercase().next().unwrap_or(character),
    }
}

fn is_later(character: char) -> bool {
    LATER.iter().any(|letters| letters.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are MySQL 9.7's, by `utf8mb4_0900_ai_ci`.
    #[test]
    fn letters_have_the_case_that_they_have_in_unicode_9() {
        for (lower, upper) in [
            ('a', 'A'),
            ('é', 'É'),
            ('ῃ', 'ῌ'),
            ('ᾀ', 'ᾈ'),
            ('ᾧ', 'ᾯ'),
            ('ⱥ', 'Ⱥ'),
            ('ꭰ', 'Ꭰ'),
            ('ꙋ', 'Ꙋ'),
            ('𐓘', '𐒰'),
            ('𞤢', '𞤀'),
        ] {
            assert_eq!(uppercase(lower), upper, "{lower}");
            assert_eq!(lowercase(upper), lower, "{upper}");
        }
        for (lower, upper) in [('ς', 'Σ'), ('µ', 'Μ'), ('ı', 'I'), ('ſ', 'S'), ('ᲀ', 'В')]
        {
            assert_eq!(uppercase(lower), upper, "{lower}");
        }
    }

    #[test]
    fn later_letters_and_those_of_several_have_one_case() {
        for letter in [
            '\u{10D0}',
            '\u{1C90}',
            '\u{A794}',
            '\u{A7C4}',
            '\u{A7F5}',
            '\u{282}',
            '\u{2C2F}',
            '\u{16E60}',
            '\u{16E40}',
            'ß',
            'ŉ',
            'ᾷ',
            'ᾴ',
            'ΐ',
        ] {
            assert_eq!(uppercase(letter), letter, "{letter}");
            assert_eq!(lowercase(letter), letter, "{letter}");
        }
        assert_eq!(lowercase('İ'), 'i');
        assert_eq!(lowercase('ẞ'), 'ß');
    }
}
