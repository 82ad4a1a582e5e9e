//! What a part of a FROM is: a table, a query, or a table of `information_schema`.

use std::sync::Arc;

use sqlparser::ast;

use super::NESTING;
use crate::direct::rows::row_source::{Derived, RowSource};
use crate::direct::syntax::attempt::{Attempt, Place};
use crate::direct::syntax::limits::Rewriting;
use crate::direct::syntax::names::{Names, PlainTable};
use crate::parser::change::name_of;
use crate::session::Session;

/// A table, or a query in the place of one.
pub(in crate::direct) fn part_of_from<'a>(
    session: &Session,
    factor: &'a ast::TableFactor,
    attempt: Attempt<'_>,
) -> Option<Names<'a>> {
    let ast::TableFactor::Derived {
        lateral: false,
        subquery,
        alias: Some(alias),
        sample: None,
    } = factor
    else {
        return table_of_from(session, factor);
    };
    let derived = query_of_from(session, subquery, attempt)?;
    alias.columns.is_empty().then(|| Names {
        source: RowSource::Query(derived),
        written: String::new(),
        alias: &alias.name.value,
        database: String::new(),
        is_outer: false,
    })
}

/// The plan of a query, or what an attempt before has left.
fn query_of_from(
    session: &Session,
    query: &ast::Query,
    attempt: Attempt<'_>,
) -> Option<Arc<Derived>> {
    let compile = || Derived::compile(session, query, attempt).map(Arc::new);
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return compile();
    };
    let place = Place {
        at: select.select_token.0.span.start,
        parameters: attempt.parameters,
        depths: (NESTING.get(), Rewriting::depth()),
    };
    if let Some(known) = attempt.known(&place, query) {
        return known;
    }
    let derived = compile();
    attempt.keep(place, query, derived.as_ref());
    derived
}

/// A table, or one of `information_schema`.
pub(in crate::direct) fn table_of_from<'a>(
    session: &Session,
    factor: &'a ast::TableFactor,
) -> Option<Names<'a>> {
    Names::of_factor(session, factor).or_else(|| table_of_definitions(session, factor))
}

/// A table of `information_schema`, whose rows are made for each run.
fn table_of_definitions<'a>(session: &Session, factor: &'a ast::TableFactor) -> Option<Names<'a>> {
    let plain = PlainTable::of(factor)?;
    let (database, written) = session.resolve(&name_of(plain.name).ok()?).ok()?;
    let derived = Derived::of_definitions(session, (&database, &written))?;
    plain.names(RowSource::Query(Arc::new(derived)), (database, written))
}
