//! What a part of a FROM is: a table, a query, or a table of `information_schema`.

use std::sync::Arc;

use sqlparser::ast;

use crate::direct::names::{Names, PlainTable};
use crate::direct::row_source::{Derived, RowSource};
use crate::parser::change::name_of;
use crate::session::Session;

/// A table, or a query in the place of one. `text` is what was parsed, `parameters` how many it has.
pub(in crate::direct) fn part_of_from<'a>(
    session: &Session,
    factor: &'a ast::TableFactor,
    (text, parameters): (&str, usize),
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
    let derived = Derived::compile_once(session, subquery, (text, parameters))?;
    alias.columns.is_empty().then(|| Names {
        source: RowSource::Query(derived),
        written: String::new(),
        alias: &alias.name.value,
        database: String::new(),
        is_outer: false,
    })
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
