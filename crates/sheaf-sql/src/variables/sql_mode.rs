//! The value of `sql_mode`: the set of dialect and strictness flags.

use std::fmt;

use crate::error::{Result, SqlError};

/// Flags in MySQL's order of display.
const FLAGS: [&str; 20] = [
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "ANSI",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "NO_ENGINE_SUBSTITUTION",
    "HIGH_NOT_PRECEDENCE",
    "PAD_CHAR_TO_FULL_LENGTH",
];

/// The bits of flags in a mode that is given as a number, as MySQL's header files have them.
const BITS: [(u32, &str); 21] = [
    (0, "REAL_AS_FLOAT"),
    (1, "PIPES_AS_CONCAT"),
    (2, "ANSI_QUOTES"),
    (3, "IGNORE_SPACE"),
    (5, "ONLY_FULL_GROUP_BY"),
    (6, "NO_UNSIGNED_SUBTRACTION"),
    (7, "NO_DIR_IN_CREATE"),
    (18, "ANSI"),
    (19, "NO_AUTO_VALUE_ON_ZERO"),
    (20, "NO_BACKSLASH_ESCAPES"),
    (21, "STRICT_TRANS_TABLES"),
    (22, "STRICT_ALL_TABLES"),
    (23, "NO_ZERO_IN_DATE"),
    (24, "NO_ZERO_DATE"),
    (25, "ALLOW_INVALID_DATES"),
    (26, "ERROR_FOR_DIVISION_BY_ZERO"),
    (27, "TRADITIONAL"),
    (29, "HIGH_NOT_PRECEDENCE"),
    (30, "NO_ENGINE_SUBSTITUTION"),
    (31, "PAD_CHAR_TO_FULL_LENGTH"),
    (32, "TIME_TRUNCATE_FRACTIONAL"),
];

/// Flags that stand for several.
const ANSI: &str = "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI";
const TRADITIONAL: &str = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                           ERROR_FOR_DIVISION_BY_ZERO,TRADITIONAL,NO_ENGINE_SUBSTITUTION";

/// MySQL 8's default.
pub(super) const DEFAULT: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                                  ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// Modes of old versions that dumps still name; they have no effect.
const OBSOLETE: [&str; 11] = [
    "NO_AUTO_CREATE_USER",
    "NO_FIELD_OPTIONS",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "MYSQL323",
    "MYSQL40",
    "POSTGRESQL",
    "ORACLE",
    "MSSQL",
    "DB2",
    "MAXDB",
];

/// Modes that are not to be accepted and ignored: values would be computed, shown or stored otherwise than was asked
/// for.
const REFUSED: [&str; 2] = ["ALLOW_INVALID_DATES", "TIME_TRUNCATE_FRACTIONAL"];

/// A set of modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlMode {
    bits: u32,
}

impl Default for SqlMode {
    fn default() -> Self {
        SqlMode::parse(DEFAULT).unwrap_or(SqlMode { bits: 0 })
    }
}

impl SqlMode {
    /// Reads a list of modes separated by commas. Error 1231 with the first unknown one.
    pub fn parse(text: &str) -> Result<SqlMode> {
        let mut mode = SqlMode { bits: 0 };
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            let upper = word.to_ascii_uppercase();
            match upper.as_str() {
                upper if REFUSED.contains(&upper) => {
                    return Err(SqlError::not_supported_yet(format!("sql_mode {upper}")));
                }
                "ANSI" => mode.add_all(ANSI),
                "TRADITIONAL" => mode.add_all(TRADITIONAL),
                upper if FLAGS.contains(&upper) => mode.add_all(upper),
                upper if OBSOLETE.contains(&upper) => {}
                _ => return Err(SqlError::wrong_value_for_variable("sql_mode", word)),
            }
        }
        Ok(mode)
    }

    /// The modes whose bits a number has, in words. `None` if it has another one.
    pub(super) fn words_of_number(number: i128) -> Option<String> {
        let known = BITS.iter().filter(|(bit, _)| number >> bit & 1 == 1);
        let named: i128 = known.clone().map(|(bit, _)| 1_i128 << bit).sum();
        let words: Vec<&str> = known.map(|(_, word)| *word).collect();
        (named == number).then(|| words.join(","))
    }

    /// The mode as MySQL numbers it.
    pub(crate) fn number(self) -> u64 {
        let set = BITS.iter().filter(|(_, flag)| self.contains(flag));
        set.map(|(bit, _)| 1 << bit).sum()
    }

    fn add_all(&mut self, words: &str) {
        for word in words.split(',') {
            if let Some(position) = FLAGS.iter().position(|flag| *flag == word) {
                self.bits |= 1 << position;
            }
        }
    }

    /// This mode and one more flag.
    pub(crate) fn with_flag(mut self, flag: &str) -> SqlMode {
        self.add_all(flag);
        self
    }

    pub fn contains(self, flag: &str) -> bool {
        FLAGS
            .iter()
            .position(|known| *known == flag)
            .is_some_and(|position| self.bits & (1 << position) != 0)
    }

    /// What a mode of these is said of that is to go one day.
    pub(crate) fn deprecation(self) -> Option<String> {
        let name = "PAD_CHAR_TO_FULL_LENGTH";
        self.contains(name).then(|| {
            format!(
                "Changing sql mode '{name}' is deprecated. It will be removed in a future release."
            )
        })
    }

    /// A value that does not fit is an error, not a warning.
    pub fn is_strict(self) -> bool {
        self.contains("STRICT_TRANS_TABLES") || self.contains("STRICT_ALL_TABLES")
    }
}

impl fmt::Display for SqlMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = FLAGS
            .iter()
            .enumerate()
            .filter(|(n, _)| self.bits & (1 << n) != 0)
            .map(|(_, flag)| *flag)
            .collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_sets_of_bits() {
        let words = SqlMode::words_of_number;
        assert_eq!(words(0).as_deref(), Some(""));
        let both = "PIPES_AS_CONCAT,STRICT_ALL_TABLES";
        assert_eq!(words((1 << 22) + 2).as_deref(), Some(both));
        for wrong in [-1, 16, 1 << 14, 1 << 40] {
            assert_eq!(words(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn modes_are_read_and_shown_in_mysqls_order() {
        assert_eq!(SqlMode::default().to_string(), DEFAULT);
        let mode = SqlMode::parse("strict_all_tables, pipes_as_concat,NO_AUTO_CREATE_USER")
            .expect("valid");
        assert_eq!(mode.to_string(), "PIPES_AS_CONCAT,STRICT_ALL_TABLES");
        assert!(mode.is_strict());
        assert!(
            SqlMode::parse("ansi")
                .expect("valid")
                .contains("ANSI_QUOTES")
        );
        for refused in REFUSED {
            assert_eq!(SqlMode::parse(refused).map_err(|e| e.code), Err(1235));
        }
        assert_eq!(SqlMode::parse("LOOSE").map_err(|e| e.code), Err(1231));
    }
}
