//! LIKE: `%` is any text, `_` any character, the escape character takes the next one as it is.
//!
//! A pattern is compiled once: to the literal pieces between the `%`. Characters are equal as the collation says, one
//! by one (trailing spaces count, whatever the collation says of `=`). Under a case-insensitive collation an ASCII
//! piece against an ASCII text is compared in lower case; characters beyond ASCII are compared by sort key.

use super::collation::{Collation, not_last};

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
    /// What stands between the `%`, one piece behind the other.
    elements: Vec<Element>,
    /// Where the pieces end, in elements; never empty.
    ends: Vec<usize>,
    /// The elements as lower-case (or exact) ASCII bytes, if they are that: the fast path.
    ascii: Option<Vec<u8>>,
}

/// What a pattern takes for each byte of its text, at most: an element and the byte of it, or the end of a piece.
const BYTES_OF_BYTE: usize = 16;

/// The pieces of a pattern: parts of its elements by their ends.
struct Pieces<'p, T> {
    elements: &'p [T],
    ends: &'p [usize],
}

impl<'p, T> Pieces<'p, T> {
    fn get(&self, at: usize) -> &'p [T] {
        let start = match at {
            0 => 0,
            at => self.ends[at - 1],
        };
        &self.elements[start..self.ends[at]]
    }

    fn first(&self) -> &'p [T] {
        self.get(0)
    }

    /// What stands behind the first `%`: the pieces between others, and the last one. `None`: there is no `%`.
    fn rest(&self) -> Option<(impl Iterator<Item = &'p [T]>, &'p [T])> {
        let last = self.ends.len() - 1;
        (last > 0).then(|| ((1..last).map(|at| self.get(at)), self.get(last)))
    }
}

impl Pattern {
    /// What a pattern of so many bytes takes, at most: to be asked for before it is made, where it may be long.
    pub fn memory_of(pattern_bytes: usize) -> usize {
        pattern_bytes.saturating_mul(BYTES_OF_BYTE)
    }

    pub fn new(pattern: &str, escape: Option<char>, collation: Collation) -> Pattern {
        let mut elements = Vec::with_capacity(pattern.len());
        let mut ends =
            Vec::with_capacity(1 + memchr::memchr_iter(b'%', pattern.as_bytes()).count());
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            if Some(character) == escape {
                elements.push(Element::Literal(characters.next().unwrap_or(character)));
            } else if character == '%' {
                // Two `%` in a row are one: an empty piece matches everywhere.
                ends.push(elements.len());
            } else if character == '_' {
                elements.push(Element::AnyCharacter);
            } else {
                elements.push(Element::Literal(character));
            }
        }
        ends.push(elements.len());
        let fold = |byte: u8| {
            if collation.ignores_case() {
                byte.to_ascii_lowercase()
            } else {
                byte
            }
        };
        let byte_of = |element: &Element| match element {
            Element::Literal(character) if character.is_ascii() => Some(fold(*character as u8)),
            _ => None,
        };
        let is_ascii = collation.has_plain_ascii()
            && elements.iter().all(|element| byte_of(element).is_some());
        let ascii = is_ascii.then(|| elements.iter().filter_map(byte_of).collect());
        Pattern {
            collation,
            elements,
            ends,
            ascii,
        }
    }

    fn pieces(&self) -> Pieces<'_, Element> {
        Pieces {
            elements: &self.elements,
            ends: &self.ends,
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
        let first = self.pieces().first();
        let text: String = first
            .iter()
            .map_while(|element| match element {
                Element::Literal(character) => Some(*character),
                Element::AnyCharacter => None,
            })
            .collect();
        let only_prefix = text.chars().count() == first.len()
            && self.ends.len() > 1
            && first.len() == self.elements.len();
        (text, only_prefix)
    }

    /// True if the pattern has no wildcard.
    pub fn is_literal(&self) -> bool {
        self.ends.len() == 1 && !self.elements.contains(&Element::AnyCharacter)
    }

    pub fn matches(&self, text: &str) -> bool {
        self.matches_until(text, &|| false) == Some(true)
    }

    /// The same for long texts: `is_over` is asked now and then, and `None` is what it has ended.
    pub fn matches_until(&self, text: &str, is_over: &dyn Fn() -> bool) -> Option<bool> {
        let mut effort = Effort { steps: 0, is_over };
        let ascii = self.ascii.as_ref().map(|elements| Pieces {
            elements,
            ends: &self.ends,
        });
        match &ascii {
            // Pieces of bytes find what they look for in any UTF-8 when bytes are compared exactly.
            Some(pieces) if self.collation.is_exact() => {
                match_bytes(text.as_bytes(), pieces, |a, b| a == b, &mut effort)
            }
            Some(pieces) if text.is_ascii() && !self.collation.ignores_case() => {
                match_bytes(text.as_bytes(), pieces, |a, b| a == b, &mut effort)
            }
            Some(pieces) if text.is_ascii() => {
                let is_same = |a: u8, b| a.to_ascii_lowercase() == b;
                match_bytes(text.as_bytes(), pieces, is_same, &mut effort)
            }
            _ => self.match_characters(text, &mut effort),
        }
    }

    fn match_characters(&self, text: &str, effort: &mut Effort<'_>) -> Option<bool> {
        if !sheaf_memory::has_room_for_value(text.len().saturating_mul(size_of::<char>())) {
            return None;
        }
        let text: Vec<char> = text.chars().collect();
        // How many elements fit, at most all.
        let fitting = |text: &[char], piece: &[Element]| {
            let pairs = piece.iter().zip(text);
            let fits = |(element, character): &(&Element, &char)| match element {
                Element::AnyCharacter => true,
                Element::Literal(expected) => {
                    same_character(*expected, **character, self.collation)
                }
            };
            pairs.take_while(fits).count()
        };
        let pieces = self.pieces();
        let first = pieces.first();
        if fitting(&text, first) < first.len() {
            return Some(false);
        }
        let Some((middle, last)) = pieces.rest() else {
            return Some(text.len() == first.len());
        };
        let mut text = &text[first.len()..];
        for piece in middle {
            let mut at = 0;
            loop {
                if at + piece.len() > text.len() {
                    return Some(false);
                }
                let fits = fitting(&text[at..], piece);
                if fits == piece.len() {
                    break;
                }
                effort.take(fits + 1)?;
                at += 1;
            }
            text = &text[at + piece.len()..];
        }
        let is_last = |text: &[char]| fitting(&text[text.len() - last.len()..], last) == last.len();
        Some(text.len() >= last.len() && is_last(text))
    }
}

/// How much a match has compared since it last asked whether to go on.
struct Effort<'s> {
    steps: usize,
    is_over: &'s dyn Fn() -> bool,
}

impl Effort<'_> {
    /// Comparisons of characters between two questions.
    const STRETCH: usize = 32 << 10;

    /// `None`: it is over.
    fn take(&mut self, steps: usize) -> Option<()> {
        self.steps += steps;
        if self.steps >= Self::STRETCH {
            self.steps = 0;
            return (!(self.is_over)()).then_some(());
        }
        Some(())
    }
}

fn same_character(a: char, b: char, collation: Collation) -> bool {
    if a == b {
        return true;
    }
    if collation.is_exact() {
        return false;
    }
    if a.is_ascii() && b.is_ascii() && collation.has_plain_ascii() {
        return collation.ignores_case() && a.eq_ignore_ascii_case(&b);
    }
    // Not at the end of a text: under PAD SPACE, a space would equal a character without weights there.
    let mut bytes = [[0; 5]; 2];
    let [left, right] = &mut bytes;
    let texts = (not_last(a, left), not_last(b, right));
    collation.compare(texts.0, texts.1).is_eq()
}

fn match_bytes(
    text: &[u8],
    pieces: &Pieces<'_, u8>,
    same: impl Fn(u8, u8) -> bool + Copy,
    effort: &mut Effort<'_>,
) -> Option<bool> {
    let fits = |text: &[u8], piece: &[u8]| {
        text.iter()
            .zip(piece)
            .all(|(byte, expected)| same(*byte, *expected))
    };
    let first = pieces.first();
    if text.len() < first.len() || !fits(text, first) {
        return Some(false);
    }
    let Some((middle, last)) = pieces.rest() else {
        return Some(text.len() == first.len());
    };
    let mut text = &text[first.len()..];
    for piece in middle {
        match find(text, piece, same, effort)? {
            Some(at) => text = &text[at + piece.len()..],
            None => return Some(false),
        }
    }
    Some(text.len() >= last.len() && fits(&text[text.len() - last.len()..], last))
}

/// First position of `piece` in `text`; `None` outside: the match is over.
fn find(
    text: &[u8],
    piece: &[u8],
    same: impl Fn(u8, u8) -> bool + Copy,
    effort: &mut Effort<'_>,
) -> Option<Option<usize>> {
    let Some((first, rest)) = piece.split_first() else {
        return Some(Some(0));
    };
    let Some(last_start) = text.len().checked_sub(piece.len()) else {
        return Some(None);
    };
    // Both cases of the first byte; for other bytes and exact collations the same byte twice, or one that cannot match.
    let upper = first.to_ascii_uppercase();
    let mut from = 0;
    loop {
        let starts = text.get(from..=last_start);
        let Some(next) = starts.and_then(|starts| memchr::memchr2(*first, upper, starts)) else {
            return Some(None);
        };
        let at = from + next;
        if same(text[at], *first) {
            let pairs = text[at + 1..].iter().zip(rest);
            let fitting = pairs
                .take_while(|(byte, expected)| same(**byte, **expected))
                .count();
            if fitting == rest.len() {
                return Some(Some(at));
            }
            effort.take(fitting + 1)?;
        }
        from = at + 1;
    }
}

/// The text before the first wildcard of a pattern in which nothing is escaped, as [`Pattern::prefix`] without a copy.
pub fn plain_prefix(pattern: &str) -> &str {
    let end = pattern.find(['%', '_']);
    &pattern[..end.unwrap_or(pattern.len())]
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
    fn a_pattern_takes_no_more_than_it_says() {
        for text in ["%a", "%", "a", "_", "\\a", "ä%"] {
            let text = text.repeat(1000);
            let pattern = Pattern::new(&text, Some('\\'), Collation::Utf8mb4_bin);
            let elements = size_of_val(pattern.elements.as_slice()) + pattern.elements.len();
            let taken = elements.max(4 * pattern.elements.capacity()) + 8 * pattern.ends.capacity();
            assert!(taken <= Pattern::memory_of(text.len()), "{taken}");
        }
    }

    #[test]
    fn a_long_match_asks_whether_to_go_on() {
        for (text, collation) in [
            ("a".repeat(100_000), Collation::Utf8mb4_bin),
            ("a".repeat(100_000), Collation::Utf8mb4_0900_ai_ci),
            ("ä".repeat(10_000), Collation::Utf8mb4_0900_ai_ci),
        ] {
            let piece = &text[..2_000];
            let pattern = Pattern::new(&format!("%{piece}b%"), None, collation);
            let asked = std::cell::Cell::new(0);
            let is_over = || asked.replace(asked.get() + 1) == 3;
            assert_eq!(pattern.matches_until(&text, &is_over), None);
            assert_eq!(asked.get(), 4);
            let short = &text[..1_000];
            assert_eq!(pattern.matches_until(short, &|| true), Some(false));
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
        for pattern in ["abc%", "a_c%", "abc", "%", "ä%", ""] {
            assert_eq!(plain_prefix(pattern), prefix(pattern).0, "{pattern}");
        }
    }
}
