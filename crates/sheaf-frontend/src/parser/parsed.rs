//! A syntax tree and the text that it was read from.
//!
//! Places in a tree refer to its text: headers of columns and hints are read there. So a tree, a part of it, and what
//! is made of its parts are handed on together with the whole text.

use sqlparser::ast;

use super::Statement;

/// A syntax tree, a part of one, or what is made of parts, with the text of the statement.
#[derive(Clone, Copy, Debug)]
pub struct Parsed<'t, T> {
    pub ast: T,
    pub text: &'t str,
}

/// A whole statement.
pub type ParsedStatement<'t> = Parsed<'t, Statement>;

/// A query of a statement.
pub type ParsedQuery<'t> = Parsed<'t, &'t ast::Query>;

impl<'t, T> Parsed<'t, T> {
    pub fn new(ast: T, text: &'t str) -> Parsed<'t, T> {
        Parsed { ast, text }
    }

    /// Another tree of the same statement.
    pub fn with<U>(&self, ast: U) -> Parsed<'t, U> {
        Parsed::new(ast, self.text)
    }
}
