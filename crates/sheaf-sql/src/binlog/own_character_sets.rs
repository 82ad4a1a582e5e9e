//! The text of a definition in the character sets that its columns really have.
//!
//! Columns of few character sets and collations are columns of utf8mb4 here (see [`Collation::nearest`]). A follower that
//! ran the user's words would make them as they say, and could not put the rows of this server into them. So these
//! character sets and collations are replaced where they are named, and nothing else:
//!
//! ```text
//!   a VARCHAR(9) CHARACTER SET tis620    -->  a VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci
//!   ... DEFAULT CHARSET=gb18030 COLLATE=gb18030_bin  -->  ... DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
//! ```

use std::borrow::Cow;
use std::ops::Range;

use sheaf_frontend::character_sets::{character_set, collation, default_collation};
use sheaf_types::Collation;

use super::text_words::words_of;

/// See the [module](self). A text with CAST stays as it is: there a character set has another meaning.
pub(super) fn in_own_character_sets(text: &str) -> Cow<'_, str> {
    let words = words_of(text);
    let word = |place: usize| words.get(place).map_or("", |range| &text[range.clone()]);
    let is = |place: usize, wanted: &str| word(place).eq_ignore_ascii_case(wanted);
    if (0..words.len()).any(|place| is(place, "CAST")) {
        return Cow::Borrowed(text);
    }
    let mut replaced: Vec<(Range<usize>, String)> = Vec::new();
    for place in 0..words.len() {
        let follows_set = is(place, "CHARSET")
            || is(place, "SET")
                && place > 0
                && (is(place - 1, "CHARACTER") || is(place - 1, "CHAR"));
        let Some(range) = words.get(place + 1) else {
            break;
        };
        let name = word(place + 1).trim_matches(['\'', '"', '`']);
        if follows_set && let Ok(set) = character_set(name) {
            let named = match is(place + 2, "COLLATE") {
                true => word(place + 3).trim_matches(['\'', '"', '`']),
                false => default_collation(set),
            };
            if Collation::parse_with_aliases(named).is_none() {
                let nearest = Collation::nearest(default_collation(set)).name();
                let mut new = "utf8mb4".to_string();
                if !is(place + 2, "COLLATE") {
                    new = format!("{new} COLLATE {nearest}");
                }
                replaced.push((range.clone(), new));
            }
        } else if is(place, "COLLATE")
            && let Ok((_, name)) = collation(name)
            && Collation::parse(name).is_none()
        {
            replaced.push((range.clone(), Collation::nearest(name).name().to_string()));
        }
    }
    if replaced.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut own = text.to_string();
    for (range, new) in replaced.into_iter().rev() {
        own.replace_range(range, &new);
    }
    Cow::Owned(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_sets_are_those_that_columns_have() {
        for (given, own) in [
            (
                "CREATE TABLE t (a CHAR(9) CHARACTER SET tis620, b INT) CHARSET=gb18030 COLLATE=gb18030_bin",
                "CREATE TABLE t (a CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, b INT) \
                 CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
            ),
            (
                "ALTER DATABASE d /*!40100 DEFAULT CHARACTER SET 'tis620' */",
                "ALTER DATABASE d /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */",
            ),
            (
                "ALTER TABLE t CONVERT TO CHARACTER SET gb18030 COLLATE gb18030_bin",
                "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            ),
        ] {
            assert_eq!(in_own_character_sets(given), own);
        }
        for same in [
            "CREATE TABLE t (a TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, b CHAR(1) CHARACTER SET binary)",
            "CREATE TABLE t (a CHAR(9) CHARACTER SET latin1, b INT) CHARSET=utf8 COLLATE=utf8_bin",
            "CREATE TABLE t (a TEXT DEFAULT ('charset tis620'), `charset` INT) -- charset tis620",
            "CREATE TABLE t (a INT COMMENT 'it''s \\' charset tis620', latin1 INT)",
            "CREATE TABLE t (a TEXT AS (CAST(b AS CHAR CHARACTER SET tis620)))",
            "",
            "'",
        ] {
            assert!(
                matches!(in_own_character_sets(same), Cow::Borrowed(_)),
                "{same}"
            );
        }
    }
}
