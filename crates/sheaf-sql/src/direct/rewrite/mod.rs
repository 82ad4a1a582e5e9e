//! Queries without what others say as well. Each of these writes a query in a plainer way.
//!
//! | file | what it holds |
//! |---|---|
//! | [`qualified`] | names of databases before columns |
//! | [`using`] | USING and NATURAL |
//! | [`dual`] | FROM DUAL |
//! | [`modifiers`] | words that change no row |

pub(super) mod dual;
pub(super) mod modifiers;
pub(super) mod qualified;
pub(super) mod using;
