//! Queries in a FROM, compiled once for all that is tried with their statement.
//!
//! A statement is compiled in one way after the other until one succeeds, and each of them begins with the FROM:
//!
//! ```text
//!   SELECT .. FROM (SELECT .. FROM 8 tables) k GROUP BY ..     a join? other work over rows? of a small table?
//!                  ---------------------------                 the same plan, or none, for each of them
//! ```
//!
//! What an attempt has left goes to the next one. A query that stands twice in one plan has two plans there: what their
//! accesses do is counted apart.

use std::cell::RefCell;
use std::sync::Arc;

use sqlparser::ast;
use sqlparser::tokenizer::Location;

use super::{Derived, NESTING};
use crate::direct::limits::{LONG_TEXT_BYTES, Rewriting};
use crate::session::Session;

/// Queries of a statement that are kept, at most.
const MAX_KEPT: usize = 32;

thread_local! {
    /// What the statement that is compiled has in its FROMs.
    static KNOWN: RefCell<Option<KnownQueries>> = const { RefCell::new(None) };
}

/// See the module's comment.
struct KnownQueries {
    text: TextPlace,
    queries: Vec<KnownQuery>,
}

/// A query that was compiled.
struct KnownQuery {
    place: Place,
    /// As rewriting has left it.
    query: ast::Query,
    /// `None`: it has no plan.
    derived: Option<Arc<Derived>>,
}

/// A text by its address, which no other one has while its statement is compiled.
#[derive(PartialEq, Eq)]
struct TextPlace {
    address: usize,
    length: usize,
}

impl KnownQuery {
    /// Whether no plan has it.
    fn is_left(&self) -> bool {
        let derived = self.derived.as_ref();
        derived.is_none_or(|derived| Arc::strong_count(derived) == 1)
    }
}

impl TextPlace {
    fn of(text: &str) -> TextPlace {
        TextPlace {
            address: text.as_ptr() as usize,
            length: text.len(),
        }
    }
}

/// What the plan of a query depends on besides its tree.
#[derive(PartialEq, Eq)]
struct Place {
    /// Where its SELECT is written: headers are cut from there.
    at: Location,
    parameters: usize,
    /// How deeply it stands in other FROMs, and in rewritten queries.
    depths: (usize, u32),
}

/// A statement is compiled as long as this lives.
pub(in crate::direct) struct Attempts {
    /// It is no part of another one.
    is_whole: bool,
}

impl Attempts {
    pub(in crate::direct) fn begin(text: &str) -> Attempts {
        KNOWN.with_borrow_mut(|known| {
            let is_whole = known.is_none() && text.len() <= LONG_TEXT_BYTES;
            if is_whole {
                *known = Some(KnownQueries {
                    text: TextPlace::of(text),
                    queries: Vec::new(),
                });
            }
            Attempts { is_whole }
        })
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        if self.is_whole {
            drop(KNOWN.take());
        }
    }
}

impl Derived {
    /// As [`Self::compile`], or what an attempt before has left.
    pub(in crate::direct) fn compile_once(
        session: &Session,
        query: &ast::Query,
        given: (&str, usize),
    ) -> Option<Arc<Derived>> {
        let (text, parameters) = given;
        let compile = || Derived::compile(session, query, given).map(Arc::new);
        let ast::SetExpr::Select(select) = query.body.as_ref() else {
            return compile();
        };
        let place = Place {
            at: select.select_token.0.span.start,
            parameters,
            depths: (NESTING.get(), Rewriting::depth()),
        };
        let text = TextPlace::of(text);
        let known = KNOWN.with_borrow(|known| {
            let known = known.as_ref().filter(|known| known.text == text)?;
            let mut queries = known.queries.iter();
            let is_it = |known: &&KnownQuery| {
                known.place == place && known.is_left() && known.query == *query
            };
            let found = queries.find(is_it)?;
            Some(found.derived.clone())
        });
        if let Some(known) = known {
            return known;
        }
        let derived = compile();
        KNOWN.with_borrow_mut(|known| {
            let known = known.as_mut().filter(|known| known.text == text);
            if let Some(KnownQueries { queries, .. }) = known
                && queries.len() < MAX_KEPT
            {
                queries.push(KnownQuery {
                    place,
                    query: query.clone(),
                    derived: derived.clone(),
                });
            }
        });
        derived
    }
}
