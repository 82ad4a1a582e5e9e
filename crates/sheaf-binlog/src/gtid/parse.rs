//! The text of a set of GTIDs: `uuid[:[tag:]first[-last]]...[, ...]`, with white space and commas where nobody minds.

use std::str::FromStr;

use super::{GtidSet, Interval, MAX_NUMBER, MAX_TAG_LENGTH, Tag, UUID_GROUPS, Uuid, is_of_tag};
use crate::error::BinlogError;

/// Characters that an error shows before the place, and behind it.
const SHOWN_BEFORE: usize = 14;
const SHOWN_BEHIND: usize = 28;
/// Stands for what an error does not show.
const CUT: &str = "...";

/// What is wrong, and where.
struct Problem {
    what: &'static str,
    place: usize,
}

/// Reads a text from the left.
struct Input<'t> {
    text: &'t [u8],
    place: usize,
}

type Parsed<T> = Result<T, Problem>;

impl FromStr for GtidSet {
    type Err = BinlogError;

    /// # Errors
    /// 1772, with MySQL's words for what is wrong.
    fn from_str(text: &str) -> Result<GtidSet, BinlogError> {
        let mut input = Input::of(text);
        input.set().map_err(|problem| problem.of_text(text))
    }
}

pub(super) fn uuid(text: &str) -> Result<Uuid, BinlogError> {
    let mut input = Input::of(text);
    let read = input.uuid().and_then(|uuid| match input.peek() {
        None => Ok(uuid),
        Some(_) => Err(input.problem("Expected end of string")),
    });
    read.map_err(|problem| problem.of_text(text))
}

impl Problem {
    /// MySQL's words.
    fn of_text(self, text: &str) -> BinlogError {
        let (what, place) = (self.what, self.place);
        // Places lie between characters of ASCII; what follows may be any text.
        let characters: Vec<char> = text.chars().collect();
        let place = text.get(..place).map_or(0, |before| before.chars().count());
        let (before, behind) = characters.split_at(place);
        let behind: String = match behind.len() > SHOWN_BEHIND {
            true => behind[..SHOWN_BEHIND - CUT.len()]
                .iter()
                .chain(&['.'; 3])
                .collect(),
            false => behind.iter().collect(),
        };
        let text = match before.len() {
            0 => format!("{what} at the beginning of the string: \"{behind}\""),
            length => {
                let before: String = match length > SHOWN_BEFORE {
                    true => ['.'; 3]
                        .iter()
                        .chain(&before[length - (SHOWN_BEFORE - CUT.len())..])
                        .collect(),
                    false => before.iter().collect(),
                };
                format!(
                    "{what} after {length} characters, marked by [HERE] in: \"{before}[HERE]{behind}\""
                )
            }
        };
        BinlogError::MalformedGtidSet { text }
    }
}

impl<'t> Input<'t> {
    fn of(text: &'t str) -> Input<'t> {
        Input {
            text: text.as_bytes(),
            place: 0,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.place).copied()
    }

    fn eat(&mut self, expected: u8) -> bool {
        let is_there = self.peek() == Some(expected);
        self.place += usize::from(is_there);
        is_there
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.place += 1;
        }
    }

    fn skip_space(&mut self) {
        self.skip(|byte| byte.is_ascii_whitespace() || byte == 0x0B);
    }

    fn problem(&self, what: &'static str) -> Problem {
        Problem {
            what,
            place: self.place,
        }
    }

    fn set(&mut self) -> Parsed<GtidSet> {
        let mut set = GtidSet::new();
        loop {
            self.skip_space();
            while self.eat(b',') {
                self.skip_space();
            }
            if self.peek().is_none() {
                return Ok(set);
            }
            self.server(&mut set)?;
            if self.peek().is_some_and(|next| next != b',') {
                return Err(self.problem("Expected \",\""));
            }
        }
    }

    /// A server and its intervals.
    fn server(&mut self, set: &mut GtidSet) -> Parsed<()> {
        let server = self.uuid()?;
        let mut tag = Tag::default();
        self.skip_space();
        while self.eat(b':') {
            self.skip_space();
            match self.tag() {
                Some(found) => tag = found,
                None => set.add_interval(server, tag.clone(), self.interval()?),
            }
            self.skip_space();
        }
        Ok(())
    }

    fn uuid(&mut self) -> Parsed<Uuid> {
        let is_in_braces = self.eat(b'{');
        let start = self.place;
        let has_dashes = is_in_braces || self.text.get(start + 8) == Some(&b'-');
        let mut bytes = [0; 16];
        let mut at = 0;
        for (group, length) in UUID_GROUPS.into_iter().enumerate() {
            if group > 0 && has_dashes && !self.eat(b'-') {
                return Err(self.problem("Expected \"-\""));
            }
            for _ in 0..length {
                bytes[at] = self.hex_byte()?;
                at += 1;
            }
        }
        if is_in_braces && !self.eat(b'}') {
            return Err(self.problem("Expected \"}\""));
        }
        Ok(Uuid(bytes))
    }

    fn hex_byte(&mut self) -> Parsed<u8> {
        if self.text.len() < self.place + 2 {
            return Err(self.problem("Expected at least two hex digits"));
        }
        let high = self.hex_digit()?;
        Ok(high << 4 | self.hex_digit()?)
    }

    fn hex_digit(&mut self) -> Parsed<u8> {
        let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
        let digit = digit.ok_or_else(|| self.problem("Expected hex digit"))?;
        self.place += 1;
        Ok(digit as u8)
    }

    /// A tag, if one begins here and is not too long.
    fn tag(&mut self) -> Option<Tag> {
        let rest = &self.text[self.place..];
        let length = rest.iter().take_while(|byte| is_of_tag(**byte)).count();
        let found = std::str::from_utf8(&rest[..length]).ok()?;
        let tag = Tag::new(found).filter(|_| (1..=MAX_TAG_LENGTH).contains(&length))?;
        self.place += length;
        Some(tag)
    }

    fn interval(&mut self) -> Parsed<Interval> {
        let start = self.place;
        let first = self.number()?;
        if !(1..=MAX_NUMBER).contains(&first) {
            return Err(Problem {
                what: "Interval start out of range",
                place: start,
            });
        }
        self.skip_space();
        if !self.eat(b'-') {
            return Ok(Interval { first, last: first });
        }
        self.skip_space();
        let last = self.number()?;
        if last > MAX_NUMBER {
            return Err(self.problem("Interval end out of range"));
        }
        Ok(Interval { first, last })
    }

    /// A number; one that is too long is the greatest.
    fn number(&mut self) -> Parsed<u64> {
        let start = self.place;
        self.skip(|byte| byte.is_ascii_digit());
        let digits = &self.text[start..self.place];
        if digits.is_empty() {
            return Err(self.problem("Expected number"));
        }
        Ok(digits.iter().fold(0u64, |number, digit| {
            number
                .saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    /// MySQL 9.7's errors.
    #[test]
    fn what_is_no_set_is_told_in_mysqls_words() {
        for (text, message) in [
            (
                "A:",
                r#"Expected number after 37 characters, marked by [HERE] in: "...0aa9429562:[HERE]""#,
            ),
            (
                "A:0-3",
                r#"Interval start out of range after 37 characters, marked by [HERE] in: "...0aa9429562:[HERE]0-3""#,
            ),
            (
                "A:9223372036854775807",
                r#"Interval start out of range after 37 characters, marked by [HERE] in: "...0aa9429562:[HERE]9223372036854775807""#,
            ),
            (
                "A:1-9223372036854775807",
                r#"Interval end out of range after 58 characters, marked by [HERE] in: "...36854775807[HERE]""#,
            ),
            (
                "A:1 2",
                r#"Expected "," after 39 characters, marked by [HERE] in: "...a9429562:1 [HERE]2""#,
            ),
            (
                "A:-1",
                r#"Expected number after 37 characters, marked by [HERE] in: "...0aa9429562:[HERE]-1""#,
            ),
            (
                "A:1-",
                r#"Expected number after 39 characters, marked by [HERE] in: "...a9429562:1-[HERE]""#,
            ),
            (
                "A:9t:1",
                r#"Expected "," after 38 characters, marked by [HERE] in: "...aa9429562:9[HERE]t:1""#,
            ),
            (
                "A:1::3",
                r#"Expected number after 39 characters, marked by [HERE] in: "...a9429562:1:[HERE]:3""#,
            ),
            (
                ":1",
                r#"Expected hex digit at the beginning of the string: ":1""#,
            ),
            (
                "x",
                r#"Expected at least two hex digits at the beginning of the string: "x""#,
            ),
            (
                "{3e11fa4771ca11e19e33c80aa9429562}:1",
                r#"Expected "-" after 9 characters, marked by [HERE] in: "{3e11fa47[HERE]71ca11e19e33c80aa9429562}:1""#,
            ),
            (
                "3e11fa4771ca-11e1-9e33-c80aa9429562:1",
                r#"Expected hex digit after 12 characters, marked by [HERE] in: "3e11fa4771ca[HERE]-11e1-9e33-c80aa9429562:1""#,
            ),
            (
                "3e11fa47-71ca-11e1-9e33-c80aa942956:1",
                r#"Expected hex digit after 35 characters, marked by [HERE] in: "...c80aa942956[HERE]:1""#,
            ),
            (
                "A:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab:1",
                r#"Expected number after 37 characters, marked by [HERE] in: "...0aa9429562:[HERE]aaaaaaaaaaaaaaaaaaaaaaaaa...""#,
            ),
        ] {
            let found = text.replace('A', A).parse::<GtidSet>().unwrap_err();
            let expected = format!("Malformed GTID set specification '{message}'.");
            assert_eq!(found.to_string(), expected, "{text}");
            assert_eq!(found.code().number(), 1772);
        }
    }

    #[test]
    fn any_text_is_read_or_refused() {
        for text in [
            "ä",
            "3ä",
            "{ü",
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:ä1",
            "\u{0}",
        ] {
            assert!(text.parse::<GtidSet>().is_err(), "{text}");
            assert!(uuid(text).is_err(), "{text}");
        }
    }
}
