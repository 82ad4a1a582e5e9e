//! Collations: which strings are equal, and in which order they come.
use std::cmp::Ordering;

/// The order of a string column.
#[allow(non_camel_case_types, reason = "the names are MySQL's own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Collation {
    /// Case- and accent-insensitive by the Unicode Collation Algorithm; trailing spaces count. The default.
    #[default]
    Utf8mb4_0900_ai_ci,
    /// Case- and accent-insensitive character by character; trailing spaces do not count.
    Utf8mb4_general_ci,
    /// By code point; trailing spaces do not count.
    Utf8mb4_bin,
    /// By byte.
    Binary,
}

impl Collation {
    /// MySQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Collation::Utf8mb4_0900_ai_ci => "utf8mb4_0900_ai_ci",
            Collation::Utf8mb4_general_ci => "utf8mb4_general_ci",
            Collation::Utf8mb4_bin => "utf8mb4_bin",
            Collation::Binary => "binary",
        }
    }

    /// MySQL's number, as it goes over the wire.
    pub fn id(self) -> u16 {
        match self {
            Collation::Utf8mb4_0900_ai_ci => 255,
            Collation::Utf8mb4_general_ci => 45,
            Collation::Utf8mb4_bin => 46,
            Collation::Binary => 63,
        }
    }

    /// The collation of that name, without regard to case.
    pub fn parse(name: &str) -> Option<Collation> {
        [Collation::Utf8mb4_0900_ai_ci, Collation::Utf8mb4_general_ci, Collation::Utf8mb4_bin, Collation::Binary]
            .into_iter()
            .find(|collation| collation.name().eq_ignore_ascii_case(name))
    }

    /// True if trailing spaces do not count (PAD SPACE).
    pub fn pads_spaces(self) -> bool {
        matches!(self, Collation::Utf8mb4_general_ci | Collation::Utf8mb4_bin)
    }

    /// Appends the sort key of `text`: memcmp on sort keys is the collation's order, and equal keys are equal strings.
    pub fn sort_key_into(self, text: &str, key: &mut Vec<u8>) {
        let _ = (text, key);
        unimplemented!()
    }

    /// The order of two strings.
    pub fn compare(self, a: &str, b: &str) -> Ordering {
        let _ = (a, b);
        unimplemented!()
    }
}
