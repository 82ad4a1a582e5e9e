//! In which order relations are joined, and by which method. The operators of the chosen order are made in
//! `physical/joins`.
//!
//! | file | what it holds |
//! |---|---|
//! | [`edge`] | the equalities between a relation and others |
//! | [`hints`] | what hints say about joins |
//! | [`method`] | by which method a relation is joined |
//! | [`order`] | the search for the cheapest order |
//! | [`rows`] | how many rows a join leaves |
//! | [`row_order`] | the order of a join's rows, as far as later lookups gain by it |
//! | [`trace`] | what the optimizer trace says of orders |
//! | [`first_rows`] | joins of which only the first rows are wanted |
//! | [`reduction`] | groups that a join will not ask for are not made |

pub(crate) mod edge;
pub(crate) mod first_rows;
pub(crate) mod hints;
pub(crate) mod method;
pub(crate) mod order;
pub(crate) mod reduction;
pub(crate) mod row_order;
pub(crate) mod rows;
pub(crate) mod trace;
