//! What columns are compared with: constants, parameters, columns of other tables, and what is computed of them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`operand`] | constants and parameters, and where they stand among a column's values |
//! | [`arithmetic`] | operands that are computed of whole numbers |
//! | [`relation`] | how values stand to each other |

pub(super) mod arithmetic;
pub(super) mod operand;
pub(super) mod relation;
