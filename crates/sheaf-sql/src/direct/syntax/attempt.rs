//! One attempt to compile a statement, and what attempts before have left to it.
//!
//! A statement is compiled in one way after the other until one succeeds, and each of them begins with the FROM. So a
//! query in a FROM is compiled once for all that is tried with its statement:
//!
//! ```text
//!   SELECT .. FROM (SELECT .. FROM 8 tables) k GROUP BY ..     a join? other work over rows? of a small table?
//!                  ---------------------------                 the same plan, or none, for each of them
//! ```
//!
//! A query that stands twice in one plan has two plans there: what their accesses do is counted apart.

use std::cell::RefCell;
use std::sync::Arc;

use sqlparser::ast;
use sqlparser::tokenizer::Location;

use super::limits::LONG_TEXT_BYTES;
use crate::direct::rows::row_source::Derived;

/// Queries of a statement that are kept, at most.
const MAX_KEPT: usize = 32;

/// What all parts of a statement are compiled with.
#[derive(Clone, Copy)]
pub(in crate::direct) struct Attempt<'s> {
    /// What was parsed.
    pub(in crate::direct) text: &'s str,
    /// How many parameters it has, with what its session gives besides.
    pub(in crate::direct) parameters: usize,
    /// The queries of this text; `None`: none are kept.
    queries: Option<&'s KnownQueries>,
}

impl<'s> Attempt<'s> {
    pub(in crate::direct) fn new(
        (text, parameters): (&'s str, usize),
        queries: &'s KnownQueries,
    ) -> Attempt<'s> {
        Attempt {
            text,
            parameters,
            queries: (text.len() <= LONG_TEXT_BYTES).then_some(queries),
        }
    }

    /// The same with so many parameters.
    pub(in crate::direct) fn with_parameters(self, parameters: usize) -> Attempt<'s> {
        Attempt { parameters, ..self }
    }

    /// The same of another text, which the statement does not have.
    pub(in crate::direct) fn with_text(self, text: &'s str) -> Attempt<'s> {
        Attempt {
            text,
            queries: None,
            ..self
        }
    }

    /// What an attempt before has left of a query in a FROM: its plan, or that it has none.
    pub(in crate::direct) fn known(
        &self,
        place: &Place,
        query: &ast::Query,
    ) -> Option<Option<Arc<Derived>>> {
        let queries = self.queries?.0.borrow();
        let mut queries = queries.iter();
        let is_it =
            |known: &&KnownQuery| known.place == *place && known.is_left() && known.query == *query;
        Some(queries.find(is_it)?.derived.clone())
    }

    /// Leaves what has become of a query to the next attempts.
    pub(in crate::direct) fn keep(
        &self,
        place: Place,
        query: &ast::Query,
        derived: Option<&Arc<Derived>>,
    ) {
        let Some(KnownQueries(queries)) = self.queries else {
            return;
        };
        let mut queries = queries.borrow_mut();
        if queries.len() < MAX_KEPT {
            queries.push(KnownQuery {
                place,
                query: query.clone(),
                derived: derived.cloned(),
            });
        }
    }
}

/// Queries in the FROMs of a statement, as long as it is compiled.
#[derive(Default)]
pub(in crate::direct) struct KnownQueries(RefCell<Vec<KnownQuery>>);

/// A query that was compiled.
struct KnownQuery {
    place: Place,
    /// As rewriting has left it.
    query: ast::Query,
    /// `None`: it has no plan.
    derived: Option<Arc<Derived>>,
}

impl KnownQuery {
    /// Whether no plan has it.
    fn is_left(&self) -> bool {
        let derived = self.derived.as_ref();
        derived.is_none_or(|derived| Arc::strong_count(derived) == 1)
    }
}

/// What the plan of a query depends on besides its tree.
#[derive(PartialEq, Eq)]
pub(in crate::direct) struct Place {
    /// Where its SELECT is written: headers are cut from there.
    pub(in crate::direct) at: Location,
    pub(in crate::direct) parameters: usize,
    /// How deeply it stands in other FROMs, and in rewritten queries.
    pub(in crate::direct) depths: (usize, u32),
}
