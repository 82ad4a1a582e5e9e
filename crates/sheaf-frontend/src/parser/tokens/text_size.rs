//! How large a text is, and where it begins, before tokens are made of it.

/// How large a text is, before anything is made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextSize {
    /// Its tokens, or some more: each byte begins one that is no part of a word, a number, a string or a comment.
    pub tokens: usize,
    /// Those that are not blank, but for the literals of [lists](Self::listed).
    pub meaningful: usize,
    /// Literals in lists behind IN, with their commas.
    pub listed: usize,
    /// How often it says SELECT.
    pub queries: usize,
}

impl TextSize {
    pub fn of(text: &str) -> TextSize {
        /// Where the scan is, beside a list behind IN.
        #[derive(PartialEq)]
        enum List {
            Outside,
            BehindIn,
            Inside,
        }
        let is_word_byte =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        let mut size = TextSize {
            tokens: 1,
            ..TextSize::default()
        };
        let mut list = List::Outside;
        let mut rest = text.as_bytes();
        while let [byte, following @ ..] = rest {
            size.tokens += 1;
            let length = match (byte, length_of_comment(rest)) {
                (_, Some(length)) => length,
                (b' ' | b'\t' | b'\n' | b'\r', None) => 1,
                (byte, None) => {
                    let is_word = is_word_byte(*byte);
                    let length = match byte {
                        b'\'' | b'"' | b'`' => 1 + length_of_quoted(following, *byte),
                        _ if is_word => {
                            let end = rest.iter().position(|byte| !is_word_byte(*byte));
                            end.unwrap_or(rest.len())
                        }
                        _ => 1,
                    };
                    let is = |word: &[u8]| is_word && rest[..length].eq_ignore_ascii_case(word);
                    list = match (list, byte) {
                        (List::BehindIn, b'(') => List::Inside,
                        (List::Inside, b'(' | b')' | b',' | b'-' | b'+' | b'.' | b'\'' | b'"') => {
                            List::Inside
                        }
                        (List::Inside, byte) if byte.is_ascii_digit() => List::Inside,
                        _ if is(b"IN") => List::BehindIn,
                        _ => List::Outside,
                    };
                    match list {
                        List::Inside => size.listed += 1,
                        List::Outside | List::BehindIn => size.meaningful += 1,
                    }
                    size.queries += usize::from(is(b"SELECT"));
                    length
                }
            };
            rest = &rest[length..];
        }
        size
    }
}

/// A statement from its first word on: parentheses, white space and comments without a meaning stand before it.
pub fn at_first_word(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|char: char| char == '(' || char.is_ascii_whitespace());
        match length_of_comment(rest.as_bytes()) {
            // A comment ends at the end of its text, or behind a character of ASCII.
            Some(length) => rest = rest.get(length..).unwrap_or_default(),
            None => return rest,
        }
    }
}

/// The word that a statement begins with; empty, if it begins with none.
pub fn first_word(text: &str) -> &str {
    let text = at_first_word(text);
    let end = text.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
    &text[..end.unwrap_or(text.len())]
}

/// Whether the first word of a statement is one of these.
pub fn begins_with(text: &str, words: &[&str]) -> bool {
    let first = first_word(text);
    words.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// How long the comment is that a text begins with, if it has no meaning.
fn length_of_comment(text: &[u8]) -> Option<usize> {
    let end_of_line = || text.iter().position(|byte| *byte == b'\n');
    match text {
        [b'/', b'*', b'!' | b'M', ..] => None,
        [b'/', b'*', comment @ ..] => {
            let end = comment.windows(2).position(|bytes| bytes == b"*/");
            Some(end.map_or(text.len(), |end| end + 4))
        }
        [b'-', b'-', b' ' | b'\t' | b'\n' | b'\r', ..] | [b'-', b'-'] | [b'#', ..] => {
            Some(end_of_line().unwrap_or(text.len()))
        }
        _ => None,
    }
}

/// How long a string or a quoted name is behind its first quote.
fn length_of_quoted(text: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match *byte {
            byte if byte == quote => return at + 1,
            // What is behind it does not end the string.
            b'\\' if quote != b'`' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_stands_behind_comments_and_parentheses() {
        for (text, word) in [
            (" (select 1)", "select"),
            ("/**/ set", "set"),
            ("# a\n-- b\n((/* c */table t))", "table"),
            ("load_it", "load_it"),
            ("/*! select 1 */", ""),
            ("'x'", ""),
            ("", ""),
        ] {
            assert_eq!(first_word(text), word, "{text}");
        }
        assert!(begins_with("/* x */ Select 1", &["SET", "SELECT"]));
        assert!(!begins_with("selected", &["SELECT"]) && !begins_with("", &["SELECT"]));
    }
}
