//! The words of a statement's text, where it is to be changed a little before others read it.

use std::ops::Range;

/// Where words, strings and parentheses stand in a text. Comments have none, unless MySQL reads them.
pub(crate) fn words_of(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80;
    let find = |from: usize, end: &str| {
        let found = text.get(from..).and_then(|rest| rest.find(end));
        found.map_or(bytes.len(), |place| from + place + end.len())
    };
    let (mut words, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        match byte {
            b'\'' | b'"' | b'`' => {
                at = end_of_quoted(bytes, start);
                words.push(start..at);
            }
            b'#' => at = find(at, "\n"),
            b'-' if text[at..].starts_with("-- ") => at = find(at, "\n"),
            b'/' if text[at..].starts_with("/*!") => at += 3,
            b'/' if text[at..].starts_with("/*") => at = find(at + 2, "*/"),
            b'(' | b')' => {
                at += 1;
                words.push(start..at);
            }
            _ if is_letter(byte) => {
                while bytes.get(at).is_some_and(|byte| is_letter(*byte)) {
                    at += 1;
                }
                words.push(start..at);
            }
            _ => at += 1,
        }
    }
    words
}

/// Behind the end of what is quoted from `start` on.
fn end_of_quoted(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'\\' if quote != b'`' => 2,
            _ if byte != quote => 1,
            // A doubled quote is one in the text.
            _ if bytes.get(at + 1) == Some(&quote) => 2,
            _ => return at + 1,
        };
    }
    bytes.len()
}
