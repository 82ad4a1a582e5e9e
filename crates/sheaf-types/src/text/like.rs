//! LIKE: `%` is any text, `_` any character, the escape character takes the next one as it is.
//!
//! A pattern is compiled once: to the literal pieces between the `%`. Characters are equal as the collation says, one
//! by one (trailing spaces count, whatever the collation says of `=`). Under a case-insensitive collation an ASCII
//! piece against an ASCII text is compared in lower case; characters beyond ASCII are compared by sort key.

use super::collation::Collation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Literal(char),
    /// `_`
    AnyCharacter,
}

/// A LIKE pattern, ready to match.
#[derive(Debug)]
pub struct Pattern {
    collation: Collation,
    /// What stands between the `%`.
    pieces: Vec<Vec<Element>>,
    /// The pieces as lower-case (or exact) ASCII bytes, if they are that: the fast path.
    ascii: Option<Vec<Vec<u8>>>,
}

impl Pattern {
    pub fn new(pattern: &str, escape: Option<char>, collation: Collation) -> Pattern {
        let mut pieces = vec![Vec::new()];
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let piece = pieces.last_mut().expect("there is always a last piece");
            if Some(character) == escape {
                piece.push(Element::Literal(characters.next().unwrap_or(character)));
            } else if character == '%' {
                pieces.push(Vec::new());
            } else if character == '_' {
                piece.push(Element::AnyCharacter);
            } else {
                piece.push(Element::Literal(character));
            }
        }
        // Two `%` in a row are one: an empty piece matches everywhere.
        let fold = |byte: u8| {
            if is_exact(collation) {
                byte
            } else {
                byte.to_ascii_lowercase()
            }
        };
        let ascii = pieces
            .iter()
            .map(|piece| {
                piece
                    .iter()
                    .map(|element| match element {
                        Element::Literal(character) if character.is_ascii() => {
                            Some(fold(*character as u8))
                        }
                        _ => None,
                    })
                    .collect::<Option<Vec<u8>>>()
            })
            .collect::<Option<Vec<_>>>();
        Pattern {
            collation,
            pieces,
            ascii,
        }
    }

    /// A pattern of names, as SHOW .. LIKE and hosts have it: without regard to case, and a backslash escapes.
    pub fn of_names(pattern: &str) -> Pattern {
        Pattern::new(pattern, Some('\\'), Collation::Utf8mb4_general_ci)
    }

    /// The same of names that differ by case: those of databases and tables.
    pub fn of_names_by_case(pattern: &str) -> Pattern {
        Pattern::new(pattern, Some('\\'), Collation::Utf8mb4_bin)
    }

    /// The text before the first wildcard, and whether a single `%` is all that follows it.
    pub fn prefix(&self) -> (String, bool) {
        let first = &self.pieces[0];
        let text: String = first
            .iter()
            .map_while(|element| match element {
                Element::Literal(character) => Some(*character),
                Element::AnyCharacter => None,
            })
            .collect();
        let only_prefix = text.chars().count() == first.len()
            && self.pieces.len() > 1
            && self.pieces[1..].iter().all(Vec::is_empty);
        (text, only_prefix)
    }

    /// True if the pattern has no wildcard.
    pub fn is_literal(&self) -> bool {
        self.pieces.len() == 1 && !self.pieces[0].contains(&Element::AnyCharacter)
    }

    pub fn matches(&self, text: &str) -> bool {
        match &self.ascii {
            // Pieces of bytes find what they look for in any UTF-8 when bytes are compared exactly.
            Some(pieces) if is_exact(self.collation) => {
                match_bytes(text.as_bytes(), pieces, |a, b| a == b)
            }
            Some(pieces) if text.is_ascii() => {
                match_bytes(text.as_bytes(), pieces, |a, b| a.to_ascii_lowercase() == b)
            }
            _ => self.match_characters(text),
        }
    }

    fn match_characters(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let fits = |text: &[char], piece: &[Element]| {
            text.len() >= piece.len()
                && piece
                    .iter()
                    .zip(text)
                    .all(|(element, character)| match element {
                        Element::AnyCharacter => true,
                        Element::Literal(expected) => {
                            same_character(*expected, *character, self.collation)
                        }
                    })
        };
        let (first, rest) = self.pieces.split_first().expect("a pattern has a piece");
        if !fits(&text, first) {
            return false;
        }
        let Some((last, middle)) = rest.split_last() else {
            return text.len() == first.len();
        };
        let mut text = &text[first.len()..];
        for piece in middle {
            let Some(at) = (0..=text.len()).find(|at| fits(&text[*at..], piece)) else {
                return false;
            };
            text = &text[at + piece.len()..];
        }
        text.len() >= last.len() && fits(&text[text.len() - last.len()..], last)
    }
}

fn is_exact(collation: Collation) -> bool {
    matches!(collation, Collation::Utf8mb4_bin | Collation::Binary)
}

fn same_character(a: char, b: char, collation: Collation) -> bool {
    if a == b {
        return true;
    }
    if is_exact(collation) {
        return false;
    }
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(&b);
    }
    let (mut left, mut right) = ([0; 4], [0; 4]);
    // Under PAD SPACE, a space would equal the empty text; characters never do.
    collation
        .compare(a.encode_utf8(&mut left), b.encode_utf8(&mut right))
        .is_eq()
}

fn match_bytes(text: &[u8], pieces: &[Vec<u8>], same: impl Fn(u8, u8) -> bool + Copy) -> bool {
    let fits = |text: &[u8], piece: &[u8]| {
        text.iter()
            .zip(piece)
            .all(|(byte, expected)| same(*byte, *expected))
    };
    let (first, rest) = pieces.split_first().expect("a pattern has a piece");
    if text.len() < first.len() || !fits(text, first) {
        return false;
    }
    let Some((last, middle)) = rest.split_last() else {
        return text.len() == first.len();
    };
    let mut text = &text[first.len()..];
    for piece in middle {
        match find(text, piece, same) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.len() >= last.len() && fits(&text[text.len() - last.len()..], last)
}

/// First position of `piece` in `text`.
fn find(text: &[u8], piece: &[u8], same: impl Fn(u8, u8) -> bool + Copy) -> Option<usize> {
    let Some((first, rest)) = piece.split_first() else {
        return Some(0);
    };
    let last_start = text.len().checked_sub(piece.len())?;
    // Both cases of the first byte; for other bytes and exact collations the same byte twice, or one that cannot match.
    let upper = first.to_ascii_uppercase();
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(*first, upper, text.get(from..=last_start)?)?;
        let fits = same(text[at], *first)
            && text[at + 1..]
                .iter()
                .zip(rest)
                .all(|(byte, expected)| same(*byte, *expected));
        if fits {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_mysql() {
        for (text, pattern, insensitive, exact) in [
            ("special requests", "%special%requests%", true, true),
            ("special request", "%special%requests%", false, false),
            ("PROMO TIN", "promo%", true, false),
            ("abc", "a_c", true, true),
            ("abc", "a__c", false, false),
            ("a%c", "a\\%c", true, true),
            ("abc", "a\\%c", false, false),
            ("", "%", true, true),
            ("", "_", false, false),
            ("aab", "%ab", true, true),
            ("abab", "%ab%ab", true, true),
            ("aba", "%ab%ba", false, false),
            ("é", "_", true, true),
        ] {
            let matches = |collation| Pattern::new(pattern, Some('\\'), collation).matches(text);
            assert_eq!(
                matches(Collation::Utf8mb4_0900_ai_ci),
                insensitive,
                "{text} LIKE {pattern}"
            );
            assert_eq!(
                matches(Collation::Utf8mb4_bin),
                exact,
                "{text} LIKE BINARY {pattern}"
            );
        }
    }

    #[test]
    fn names_have_wildcards_and_escapes() {
        let like = |name: &str, pattern: &str| Pattern::of_names(pattern).matches(name);
        assert!(like("Handler_read_next", "handler\\_read%"));
        assert!(like("abc", "a_c") && like("abc", "%") && like("abc", "%b%") && like("", "%"));
        assert!(!like("abc", "a_") && !like("handlerXread", "handler\\_read"));
        assert!(like("mississippi", "%iss%ip%i") && !like("mississippi", "%iss%ix%"));
        assert!(like("Tür", "tÜ_") && like("a\\", "a\\"));
    }

    #[test]
    fn prefixes_are_what_precedes_the_first_wildcard() {
        let prefix =
            |pattern: &str| Pattern::new(pattern, Some('\\'), Collation::Utf8mb4_bin).prefix();
        assert_eq!(prefix("abc%"), ("abc".into(), true));
        assert_eq!(prefix("abc%d"), ("abc".into(), false));
        assert_eq!(prefix("a_c%"), ("a".into(), false));
        assert_eq!(prefix("abc"), ("abc".into(), false));
        assert_eq!(prefix("%"), ("".into(), true));
    }
}
