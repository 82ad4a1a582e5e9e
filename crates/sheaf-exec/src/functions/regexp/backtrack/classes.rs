//! Sets of characters.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// What a `.` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::functions::regexp) enum Dot {
    /// Any character, and a carriage return with its line feed.
    All,
    /// One that does not end a line.
    WithinLine,
    /// One that is no line feed.
    WithinUnixLine,
}

impl Dot {
    /// How the `regex` crate writes it. Behind a carriage return `(?mR:^)` holds where no line feed follows.
    pub(in crate::functions::regexp) fn pattern(self) -> &'static str {
        match self {
            Dot::All => r"(?:\r\n|[^\r]|\r(?mR:^))",
            Dot::WithinLine => r"[^\n-\r\x{85}\x{2028}\x{2029}]",
            Dot::WithinUnixLine => r"[^\n]",
        }
    }
}

/// The characters that end a line: from a line feed to a carriage return, and three of Unicode.
pub(in crate::functions::regexp) fn ends_line(character: char) -> bool {
    matches!(character, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The characters that words are made of.
pub(super) fn is_of_word(character: char) -> bool {
    match character.is_ascii() {
        true => character.is_ascii_alphanumeric() || character == '_',
        false => regex_syntax::is_word_character(character),
    }
}

pub(super) fn class(ranges: &[(char, char)]) -> ClassUnicode {
    let ranges = ranges.iter();
    ClassUnicode::new(ranges.map(|(first, last)| ClassUnicodeRange::new(*first, *last)))
}

/// A class by how it is written outside of brackets, as `\p{L}`; `None` for one that is not known.
pub(super) fn written(pattern: &str) -> Option<ClassUnicode> {
    let parsed = regex_syntax::Parser::new().parse(pattern).ok()?;
    match parsed.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        // A class of one character.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let ranges: Vec<(char, char)> = text.chars().map(|only| (only, only)).collect();
            Some(class(&ranges))
        }
        _ => None,
    }
}

pub(super) fn negated(mut class: ClassUnicode) -> ClassUnicode {
    class.negate();
    class
}

/// What a letter behind a backslash stands for.
pub(super) fn of_letter(letter: char) -> Option<ClassUnicode> {
    Some(match letter {
        'd' | 'D' | 's' | 'S' | 'w' | 'W' => written(&format!("\\{letter}"))?,
        'h' => horizontal()?,
        'H' => negated(horizontal()?),
        'v' => vertical(),
        'V' => negated(vertical()),
        _ => return None,
    })
}

fn horizontal() -> Option<ClassUnicode> {
    let mut blanks = written(r"\p{Zs}")?;
    blanks.union(&class(&[('\t', '\t')]));
    Some(blanks)
}

fn vertical() -> ClassUnicode {
    class(&[('\n', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')])
}

/// A class of POSIX by its name.
pub(super) fn of_posix(name: &str) -> Option<ClassUnicode> {
    let letters = match name.to_ascii_lowercase().as_str() {
        "alpha" => r"\p{Alphabetic}",
        "alnum" => r"[\p{Alphabetic}\p{Nd}]",
        "ascii" => r"[\x00-\x7F]",
        "digit" => r"\p{Nd}",
        "lower" => r"\p{Lowercase}",
        "upper" => r"\p{Uppercase}",
        "space" => r"\s",
        "blank" => r"[\p{Zs}\t]",
        "cntrl" => r"\p{Cc}",
        "graph" => r"[^\s\p{Cc}\p{Cn}]",
        "print" => r"[[^\s\p{Cc}\p{Cn}]\p{Zs}]",
        "punct" => r"\p{P}",
        "word" => r"\w",
        "xdigit" => r"[\p{Nd}A-Fa-f\u{FF21}-\u{FF26}\u{FF41}-\u{FF46}]",
        other => return written(&format!("\\p{{{other}}}")),
    };
    written(letters)
}

/// A character and those that differ from it in case; `None` if there are none.
pub(super) fn in_any_case(character: char) -> Option<ClassUnicode> {
    let mut all = class(&[(character, character)]);
    all.try_case_fold_simple().ok()?;
    let is_alone = all
        .ranges()
        .iter()
        .all(|range| range.start() == character && range.end() == character);
    (!is_alone).then_some(all)
}

/// A set that is looked up for each character.
#[derive(Clone, Debug)]
pub(super) struct Set {
    ascii: u128,
    ranges: Vec<(char, char)>,
}

impl Set {
    pub(super) fn new(class: &ClassUnicode) -> Set {
        let ranges = class.ranges().iter();
        let ranges: Vec<(char, char)> = ranges.map(|range| (range.start(), range.end())).collect();
        let of_ascii = ranges.partition_point(|(first, _)| first.is_ascii());
        let has = |code: u8| {
            let character = char::from(code);
            let mut ranges = ranges[..of_ascii].iter();
            ranges.any(|(first, last)| (*first..=*last).contains(&character))
        };
        let ascii = (0..128u8)
            .filter(|code| has(*code))
            .fold(0, |bits, code| bits | 1u128 << code);
        Set { ascii, ranges }
    }

    pub(super) fn has(&self, character: char) -> bool {
        if character.is_ascii() {
            return self.ascii >> (character as u32) & 1 == 1;
        }
        let place = self.ranges.partition_point(|(_, last)| *last < character);
        self.ranges
            .get(place)
            .is_some_and(|(first, _)| *first <= character)
    }
}
