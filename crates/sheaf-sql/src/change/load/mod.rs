//! LOAD DATA.
//!
//! | file | what it holds |
//! |---|---|
//! | [`load_data`] | the statement |
//! | [`field_reader`] | splits a data file into records and fields |
//! | [`pipe_reader`] | reads a named pipe so that KILL is noticed |

pub(crate) mod field_reader;
pub(crate) mod load_data;
pub(crate) mod pipe_reader;
