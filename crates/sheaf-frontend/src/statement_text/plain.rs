//! Select lists of texts in which the bytes tell all: words, numbers, strings without escapes, and operators.
//!
//! Everything here is `None` of other texts: with comments, backslashes, double quotes, or other letters.

use sqlparser::tokenizer::Location;

use super::is_modifier;

const ENDS: [&str; 13] = [
    "from",
    "into",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "union",
    "except",
    "intersect",
    "for",
    "window",
    "lock",
];

fn is_plain(text: &str) -> bool {
    let is_other = |byte: &u8| matches!(byte, b'\\' | b'"' | b'#') || !byte.is_ascii();
    let bytes = text.as_bytes();
    let is_comment = |pair: &[u8]| matches!(pair, b"--" | b"/*");
    !bytes.iter().any(is_other) && !bytes.windows(2).any(is_comment)
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@')
}

/// How many bytes belong to the token that a text begins with. `None` of a string without an end.
fn token_length(bytes: &[u8]) -> Option<usize> {
    let run = |belongs: fn(u8) -> bool| bytes.iter().take_while(|byte| belongs(**byte)).count();
    match bytes.first()? {
        quote @ (b'\'' | b'`') => {
            // A doubled quote is the end of one string and the beginning of another.
            let end = bytes[1..].iter().position(|byte| byte == quote)?;
            Some(end + 2)
        }
        first if first.is_ascii_whitespace() => Some(run(|byte| byte.is_ascii_whitespace())),
        first if is_word_byte(*first) => Some(run(is_word_byte)),
        _ => Some(1),
    }
}

/// Number of `?` in the text.
pub(super) fn parameter_count(text: &str) -> Option<usize> {
    if !is_plain(text) {
        return None;
    }
    let mut rest = text.as_bytes();
    let mut count = 0;
    while !rest.is_empty() {
        count += usize::from(rest[0] == b'?');
        rest = &rest[token_length(rest)?..];
    }
    Some(count)
}

/// The byte at which a location is.
fn byte_at(text: &str, location: Location) -> Option<usize> {
    let mut start = 0;
    for _ in 1..location.line {
        start += text[start..].find('\n')? + 1;
    }
    Some(start + usize::try_from(location.column).ok()?.checked_sub(1)?)
}

/// As [`super::StatementText::select_items`].
pub(super) fn select_items(text: &str, select: Location) -> Option<Vec<&str>> {
    const SELECT: usize = "select".len();
    if !is_plain(text) {
        return None;
    }
    let start = byte_at(text, select)?;
    if !text
        .get(start..start + SELECT)?
        .eq_ignore_ascii_case("select")
    {
        return None;
    }
    let bytes = text.as_bytes();
    let mut at = start + SELECT;
    if bytes.get(at).is_some_and(|byte| is_word_byte(*byte)) {
        return None;
    }
    let mut items = Vec::new();
    let mut depth = 0usize;
    let mut item: Option<(usize, usize)> = None;
    let mut is_first = true;
    while at < bytes.len() {
        let end = at + token_length(&bytes[at..])?;
        let token = &text[at..end];
        match bytes[at] {
            byte if byte.is_ascii_whitespace() => {
                at = end;
                continue;
            }
            byte if is_word_byte(byte) && !byte.is_ascii_digit() => {
                if is_first && is_modifier(token) {
                    at = end;
                    continue;
                }
                if depth == 0 && ENDS.iter().any(|word| token.eq_ignore_ascii_case(word)) {
                    break;
                }
            }
            b';' => break,
            b')' if depth == 0 => break,
            b')' => depth -= 1,
            b'(' => depth += 1,
            b',' if depth == 0 => {
                items.extend(item.take().map(|(from, to)| &text[from..to]));
                at = end;
                continue;
            }
            _ => {}
        }
        is_first = false;
        item = Some((item.map_or(at, |(from, _)| from), end));
        at = end;
    }
    items.extend(item.map(|(from, to)| &text[from..to]));
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StatementText;

    #[test]
    fn items_are_those_that_the_tokens_tell() {
        let start = Location::new(1, 1);
        for text in [
            "select a, b from t",
            "SELECT DISTINCT a.b , `from`, 'it''s, (from)' FROM t",
            "select\n sql_no_cache count(*), (select max(x) from u where y = 1, 2)\nwhere 1",
            "select 1.5, x-1 as `a b`,@a := 3 , @@global.port",
            "select a ,b, coalesce(c, 'x)') z into outfile 'x'",
            "select t.* , t.from_date from t for update",
            "select 1;",
            "select ?, f(?), '?'",
        ] {
            let plain = select_items(text, start);
            // With a comment behind it the tokens are asked.
            let commented = format!("{text} -- x");
            let cut = StatementText::new(&commented);
            assert_eq!(plain, Some(cut.select_items(start)), "{text}");
            assert_eq!(parameter_count(text), Some(cut.parameter_count()), "{text}");
        }
        let two = "select 1 union\n  select a, b";
        assert_eq!(select_items(two, Location::new(2, 3)), Some(vec!["a", "b"]));
        for other in [
            "select 1 -- x",
            "select 'a\\'b'",
            "select \"a\"",
            "select 'é'",
            "selection",
        ] {
            assert_eq!(select_items(other, start), None, "{other}");
        }
    }
}
