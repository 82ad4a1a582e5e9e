//! Types of SQL by their numbers in the protocol: those whose bytes a document holds as they are.

/// VARBINARY.
pub const VARCHAR: u8 = 15;
pub const BIT: u8 = 16;
/// A DECIMAL of more digits than the type of its own has, see [`Builder::wide_decimal`](super::Builder::wide_decimal).
pub const DECIMAL: u8 = 246;
/// The first of the BLOB types, which end with [`STRING`].
pub const TINY_BLOB: u8 = 249;
/// BINARY.
pub const STRING: u8 = 254;
