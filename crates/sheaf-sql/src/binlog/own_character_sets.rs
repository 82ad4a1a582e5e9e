//! The text of a definition in the character sets that its columns really have.
//!
//! Columns of few character sets and collations are columns of utf8mb4 here (see [`Collation::nearest`]). A follower
//! that ran the user's words would make them as they say, and could not put the rows of this server into them. So these
//! character sets and collations are replaced where they are named. The engine, which others do not have, is their own.
//! Nothing else is changed:
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

/// See the [module](self). What CAST and CONVERT make of a value has the character set that they say.
pub(super) fn in_own_character_sets(text: &str) -> Cow<'_, str> {
    let words = words_of(text);
    let word = |place: usize| words.get(place).map_or("", |range| &text[range.clone()]);
    let is = |place: usize, wanted: &str| word(place).eq_ignore_ascii_case(wanted);
    let mut replaced: Vec<(Range<usize>, String)> = Vec::new();
    let mut casts = Casts::default();
    for place in 0..words.len() {
        let is_behind_cast = casts.have_just_ended;
        let before = place.checked_sub(1).map_or("", word);
        casts.pass(word(place), before);
        let is_column = ["CHANGE", "COLUMN"]
            .iter()
            .any(|word| before.eq_ignore_ascii_case(word));
        let names_set = is(place, "CHARSET") && !is_column
            || is(place, "SET")
                && ["CHARACTER", "CHAR"]
                    .iter()
                    .any(|name| before.eq_ignore_ascii_case(name));
        let Some(range) = words.get(place + 1) else {
            break;
        };
        let name = word(place + 1).trim_matches(['\'', '"', '`']);
        // A comma is between names of columns.
        if text[words[place].end..range.start].contains(',') {
            continue;
        }
        if is(place, "ENGINE")
            && name.eq_ignore_ascii_case("Sheaf")
            && matches!(text[words[place].end..range.start].trim(), "" | "=")
        {
            replaced.push((range.clone(), "InnoDB".to_string()));
            continue;
        }
        if names_set
            && casts.are_over()
            && let Ok(set) = character_set(name)
        {
            // `BINARY` may stand on both sides.
            let first = match is(place, "CHARSET") {
                true => place,
                false => place - 1,
            };
            let (is_binary_before, is_binary_behind) = (
                first > 0 && is(first - 1, "BINARY"),
                is(place + 2, "BINARY"),
            );
            let own = match is_binary_before || is_binary_behind {
                true => format!("{set}_bin"),
                false => default_collation(set).to_string(),
            };
            let behind = place + 2 + usize::from(is_binary_behind);
            let named = match is(behind, "COLLATE") {
                true => word(behind + 1).trim_matches(['\'', '"', '`']),
                false => own.as_str(),
            };
            if Collation::parse_with_aliases(named).is_some() {
                continue;
            }
            let mut new = "utf8mb4".to_string();
            if !is(behind, "COLLATE") {
                new = format!("{new} COLLATE {}", Collation::nearest(&own).name());
            }
            if is_binary_before {
                replaced.push((words[first - 1].start..words[first].start, String::new()));
            }
            let end = words[behind - 1].end;
            replaced.push((range.start..end, new));
        } else if is(place, "COLLATE")
            && !is_behind_cast
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

/// The calls of CAST and CONVERT around a word.
#[derive(Default)]
struct Casts {
    depth: usize,
    /// The depths of those that have begun.
    begun: Vec<usize>,
    /// The last word has ended one.
    have_just_ended: bool,
}

impl Casts {
    /// Goes on with a word.
    fn pass(&mut self, word: &str, before: &str) {
        self.have_just_ended = false;
        match word {
            "(" => {
                self.depth += 1;
                if ["CAST", "CONVERT"]
                    .iter()
                    .any(|name| before.eq_ignore_ascii_case(name))
                {
                    self.begun.push(self.depth);
                }
            }
            ")" => {
                self.have_just_ended = self.begun.pop_if(|begun| *begun == self.depth).is_some();
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
    }

    /// Whether none is around the last word.
    fn are_over(&self) -> bool {
        self.begun.is_empty()
    }
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
                "CREATE TABLE t (engine INT, sheaf INT, KEY (engine, sheaf)) ENGINE = 'Sheaf' DEFAULT CHARSET=utf8mb4",
                "CREATE TABLE t (engine INT, sheaf INT, KEY (engine, sheaf)) ENGINE = InnoDB DEFAULT CHARSET=utf8mb4",
            ),
            (
                "ALTER DATABASE d /*!40100 DEFAULT CHARACTER SET 'tis620' */",
                "ALTER DATABASE d /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */",
            ),
            (
                "ALTER TABLE t CONVERT TO CHARACTER SET gb18030 COLLATE gb18030_bin",
                "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            ),
            (
                "CREATE TABLE t (a CHAR(9) CHARACTER SET gb18030 BINARY NOT NULL, b CHAR(9) BINARY CHARSET gb18030)",
                "CREATE TABLE t (a CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
                 b CHAR(9) CHARSET utf8mb4 COLLATE utf8mb4_bin)",
            ),
            (
                "CREATE TABLE t (a TEXT CHARACTER SET gb18030, b TEXT AS (CAST((a COLLATE gb18030_bin) AS CHAR \
                 CHARACTER SET gb18030) COLLATE gb18030_bin), c TEXT CHARSET gb18030)",
                "CREATE TABLE t (a TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, \
                 b TEXT AS (CAST((a COLLATE utf8mb4_bin) AS CHAR CHARACTER SET gb18030) COLLATE gb18030_bin), \
                 c TEXT CHARSET utf8mb4 COLLATE utf8mb4_general_ci)",
            ),
        ] {
            assert_eq!(in_own_character_sets(given), own);
        }
        for same in [
            "CREATE TABLE t (a TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, b CHAR(1) CHARACTER SET binary)",
            "CREATE TABLE t (a CHAR(9) CHARACTER SET latin1, b INT) CHARSET=utf8 COLLATE=utf8_bin",
            "CREATE TABLE t (a TEXT DEFAULT ('charset latin1'), `charset` INT) -- charset latin1",
            "ALTER TABLE t CHANGE charset tis620 INT, CHANGE COLUMN charset gb18030 INT",
            "CREATE TABLE t (charset INT, tis620 INT, KEY (charset, tis620))",
            "CREATE TABLE t (a INT COMMENT 'it''s \\' charset latin1', latin1 INT)",
            "CREATE TABLE t (a TEXT AS (CAST(b AS CHAR CHARACTER SET latin1)))",
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
