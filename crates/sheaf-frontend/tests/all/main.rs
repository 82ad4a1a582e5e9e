//! The front end's tests, in one binary.

mod dialect;
mod errors;
mod queries;
mod scan;
mod statements;
