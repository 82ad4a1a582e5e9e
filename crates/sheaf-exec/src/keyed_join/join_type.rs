//! What a keyed join delivers.

/// What a keyed join delivers for an outer row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyedJoinType {
    /// The outer row with each match.
    Inner,
    /// The same, and the outer row with NULLs if there is no match.
    LeftOuter,
    /// The outer row if there is a match.
    Semi,
    /// The outer row if there is none.
    Anti,
    /// The outer row and whether there is a match.
    Mark,
}

/// Whether matches only decide what becomes of their outer row, which is then delivered in its own order.
pub(super) fn marks_only(join_type: KeyedJoinType) -> bool {
    matches!(
        join_type,
        KeyedJoinType::Semi | KeyedJoinType::Anti | KeyedJoinType::Mark
    )
}
