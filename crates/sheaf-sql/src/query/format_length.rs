//! How long the texts are that functions make by a format.

/// Decimals of FORMAT, at most.
const FORMAT_DECIMALS: u32 = 30;
/// What a format makes of one of its characters, at most, where it is not written down.
const LONGEST_OF_CHARACTER: u32 = 10;

/// The longest text that FORMAT makes of a number of so many characters, by MySQL's rule: with a sign, a point and
/// decimals. Doubles beyond that are longer.
pub(super) fn length_of_number_format(characters: u32) -> u32 {
    let separators = characters / 3 + 2;
    characters.saturating_add(separators + FORMAT_DECIMALS)
}

/// The longest text that DATE_FORMAT or TIME_FORMAT makes by a format of so many characters, by MySQL's rule.
pub(super) fn length_of_unknown_format(characters: u32) -> Option<u32> {
    characters.checked_mul(LONGEST_OF_CHARACTER)
}

/// The longest text that DATE_FORMAT or TIME_FORMAT makes by a format that is written down. Names of days and months
/// may be those of any language.
pub(super) fn length_of_format(format: &str) -> Option<u32> {
    let mut length = 0;
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        length += match character {
            '%' => match characters.next()? {
                'M' | 'W' => 64,
                'a' | 'b' => 32,
                'r' => 11,
                'T' => 8,
                // TIME has hours of three digits and a sign.
                'H' | 'k' => 7,
                'f' => 6,
                'D' | 'Y' | 'x' | 'X' => 4,
                'j' => 3,
                'c' | 'd' | 'e' | 'h' | 'I' | 'i' | 'l' | 'm' | 'p' | 's' | 'S' | 'u' | 'U'
                | 'v' | 'V' | 'y' => 2,
                _ => 1,
            },
            _ => 1,
        };
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_room_for_what_they_show() {
        assert_eq!(length_of_format("%Y-%m-%d"), Some(10));
        assert_eq!(length_of_format("%H:%i"), Some(10));
        assert_eq!(length_of_format("on %W, %%"), Some(3 + 64 + 2 + 1));
        assert_eq!(length_of_format("50%"), None);
    }

    #[test]
    fn numbers_have_room_for_their_separators() {
        assert_eq!(length_of_number_format(11), 46);
        assert_eq!(length_of_number_format(30), 72);
    }
}
