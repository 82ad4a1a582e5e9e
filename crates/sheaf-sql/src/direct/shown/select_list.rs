//! The select list of a direct plan: what each column of the result is made of, and what it is called.
//!
//! An item is a column of one of the tables, an expression over a row, an aggregate, or a star that stands for several
//! columns. How it is called is told in [`crate::direct::syntax::headers`].

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use sheaf_frontend::{StatementText, bare, header_of_literal};
use sheaf_types::Value;
use sqlparser::ast;

use super::row::Item;
use crate::direct::expression::{Collector, Expressions};
use crate::direct::syntax::headers::{ComputedHeaders, HeaderName, ShownColumns, Spelled};
use crate::direct::syntax::names::{ColumnNames, Names, column_of};
use crate::direct::syntax::plain_call::is_aggregate_name;
use crate::parser::wildcard_option;
use crate::session::Session;
use crate::session::result::{ColumnMeta, table_flags};
use sheaf_frontend::query::Header;

/// The items of a select list with what the protocol and Arrow say of them.
pub(in crate::direct) struct SelectList<I> {
    pub(in crate::direct) items: Vec<I>,
    pub(in crate::direct) columns: Vec<ColumnMeta>,
    pub(in crate::direct) fields: Vec<Field>,
}

impl<I> SelectList<I> {
    fn new() -> SelectList<I> {
        SelectList {
            items: Vec::new(),
            columns: Vec::new(),
            fields: Vec::new(),
        }
    }

    fn push(&mut self, item: I, column: ColumnMeta, field: Field) {
        self.items.push(item);
        self.columns.push(column);
        self.fields.push(field);
    }
}

/// A column of the result: the table's position in the FROM, and the column.
pub(in crate::direct) type TableItem = (usize, Item);

/// The columns that are shown; `None` if an item is no column.
pub(in crate::direct) fn columns(
    session: &Session,
    select: &ast::Select,
    tables: &[Names<'_>],
) -> Option<SelectList<TableItem>> {
    let mut shown: Vec<(usize, usize, Option<&str>)> = Vec::new();
    let all = |table: usize| {
        let columns = tables[table].definition().visible_columns();
        columns.map(move |column| (table, column, None))
    };
    for item in &select.projection {
        match item {
            ast::SelectItem::UnnamedExpr(expr) => {
                let written = written_name(expr)?;
                let (table, column) = column_of(tables, expr)?;
                shown.push((table, column, Some(written)));
            }
            ast::SelectItem::ExprWithAlias { expr, alias } => {
                if matches!(expr, ast::Expr::Nested(_)) {
                    return None;
                }
                let (table, column) = column_of(tables, expr)?;
                shown.push((table, column, Some(&alias.value)));
            }
            item => shown.extend(shown_whole(item, tables)?.flat_map(all)),
        }
    }
    let describe = |(table, column, name): &(usize, usize, Option<&str>)| {
        describe_column(session, &tables[*table], *column, *name)
    };
    let item = |(table, column, _): &(usize, usize, Option<&str>)| item_of(tables, *table, *column);
    let (columns, fields) = shown.iter().map(describe).unzip();
    Some(SelectList {
        items: shown.iter().map(item).collect::<Option<_>>()?,
        columns,
        fields,
    })
}

/// What a client, and Arrow, is told of a column that is shown, by its own name or as `name`.
fn describe_column(
    session: &Session,
    names: &Names<'_>,
    column: usize,
    name: Option<&str>,
) -> (ColumnMeta, Field) {
    let own = &names.definition().columns[column];
    let header = Header {
        name: name.unwrap_or(&own.name).to_string(),
        org_name: own.name.clone(),
        table: names.alias.to_string(),
        org_table: names.written.clone(),
        database: names.database.clone(),
        is_stored: false,
    };
    let field = match names.table() {
        Some(table) => sheaf_access::schema_of(table).field(column).clone(),
        None => sheaf_access::arrow_field(own),
    };
    let field = match names.is_outer {
        true => field.with_nullable(true),
        false => field,
    };
    let mut meta = ColumnMeta::new(&field, &header, session.result_collation_id());
    meta.flags |= table_flags(names.definition(), column);
    (meta, field.with_name(header.name))
}

/// The same of a value that is computed.
fn describe_computed(session: &Session, field: Field, name: &str) -> (ColumnMeta, Field) {
    let header = Header {
        name: name.to_string(),
        ..Header::default()
    };
    let meta = ColumnMeta::new(&field, &header, session.result_collation_id());
    (meta, field.with_name(name))
}

/// `None`: a value has no bytes in its row that a client gets.
fn item_of(tables: &[Names<'_>], table: usize, column: usize) -> Option<TableItem> {
    let item = Item::new(column, &tables[table].definition().columns[column].ty);
    (!item.is_made_of_bits()).then_some((table, item))
}

/// A select list whose items are all computed: `item` makes them. `text` is the statement.
pub(in crate::direct) fn computed<I>(
    session: &Session,
    (select, text): (&ast::Select, &str),
    mut item: impl FnMut(&ast::Expr) -> Option<(I, Field)>,
) -> Option<SelectList<I>> {
    of_expressions((select, text), |expr, alias, written| {
        let (made, field) = item(expr)?;
        let (meta, field) = describe_computed(session, field, alias.unwrap_or(written));
        Some((made, meta, field))
    })
}

/// An item of a query with groups.
pub(in crate::direct) enum GroupedItem<A> {
    Column(TableItem),
    Aggregate(A),
}

/// A select list of columns and of aggregates, which `aggregate` makes. `text` is the statement.
pub(in crate::direct) fn grouped<A>(
    session: &Session,
    (select, text): (&ast::Select, &str),
    tables: &[Names<'_>],
    mut aggregate: impl FnMut(&ast::Expr) -> Option<(A, Field)>,
) -> Option<SelectList<GroupedItem<A>>> {
    of_expressions((select, text), |expr, alias, written| {
        if let Some((table, column)) = column_of(tables, expr) {
            let name = Some(alias.unwrap_or(written_name(expr)?));
            let (meta, field) = describe_column(session, &tables[table], column, name);
            let item = GroupedItem::Column(item_of(tables, table, column)?);
            return Some((item, meta, field));
        }
        let (made, field) = aggregate(expr)?;
        let (meta, field) = describe_computed(session, field, alias.unwrap_or(written));
        Some((GroupedItem::Aggregate(made), meta, field))
    })
}

/// A column's name as a select list has it; `None`: it is written in another way, which is its header.
fn written_name(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::Identifier(name) => Some(&name.value),
        ast::Expr::CompoundIdentifier(parts) => Some(&parts.last()?.value),
        _ => None,
    }
}

/// The items of a select list as they are written.
fn written_items<'t>(
    select: &ast::Select,
    statement: &'t StatementText<'_>,
) -> Option<Vec<&'t str>> {
    let written = statement.select_items(select.select_token.0.span.start);
    (written.len() == select.projection.len()).then_some(written)
}

/// A select list of expressions; `make` gets each with its alias and as it is written.
fn of_expressions<I>(
    (select, text): (&ast::Select, &str),
    mut make: impl FnMut(&ast::Expr, Option<&str>, &str) -> Option<(I, ColumnMeta, Field)>,
) -> Option<SelectList<I>> {
    let statement = StatementText::new(text);
    let written = written_items(select, &statement)?;
    let mut list = SelectList::new();
    for (shown, written) in select.projection.iter().zip(written) {
        let (expr, alias) = match shown {
            ast::SelectItem::UnnamedExpr(expr) => (expr, None),
            ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.as_str())),
            _ => return None,
        };
        let (made, meta, field) = make(expr, alias, written)?;
        list.push(made, meta, field);
    }
    Some(list)
}

/// The computed items of a select list.
#[derive(Debug)]
pub(in crate::direct) struct Computed {
    pub(in crate::direct) expressions: Expressions,
    pub(in crate::direct) headers: ComputedHeaders,
}

/// The headers of the computed items of a query, which are not known before it runs: their places in the list.
#[derive(Debug)]
pub(in crate::direct) struct Headers {
    items: Vec<(usize, HeaderName)>,
    /// All columns.
    pub(in crate::direct) columns: usize,
}

impl Headers {
    /// `None` if an item is no expression.
    pub(in crate::direct) fn of(
        (select, text): (&ast::Select, &str),
        tables: &[Names<'_>],
    ) -> Option<Headers> {
        let has_alias =
            |item: &ast::SelectItem| matches!(item, ast::SelectItem::ExprWithAlias { .. });
        let mut headers = Headers {
            items: Vec::new(),
            columns: 0,
        };
        // The query need not be one of the text then.
        if select.projection.iter().all(has_alias) {
            headers.columns = select.projection.len();
            return Some(headers);
        }
        let statement = StatementText::new(text);
        let written = statement.select_items(select.select_token.0.span.start);
        // What a plan asks for besides has names.
        let added = select.projection.get(written.len()..)?;
        if !added.iter().all(has_alias) {
            return None;
        }
        for (item, written) in select.projection.iter().zip(written) {
            match item {
                ast::SelectItem::UnnamedExpr(expr) => {
                    if column_of(tables, expr).is_none() || written_name(expr).is_none() {
                        let header = HeaderName::of(expr, written, text);
                        headers.items.push((headers.columns, header));
                    }
                    headers.columns += 1;
                }
                ast::SelectItem::ExprWithAlias { .. } => headers.columns += 1,
                item => {
                    let shown = shown_whole(item, tables)?;
                    let columns =
                        |table: usize| tables[table].definition().visible_columns().count();
                    headers.columns += shown.map(columns).sum::<usize>();
                }
            }
        }
        headers.columns += added.len();
        Some(headers)
    }

    /// Those of a run with these parameters; `None` if they cannot be told.
    pub(in crate::direct) fn names(
        &self,
        parameters: &[Value],
        spelled: Spelled<'_>,
    ) -> Option<Vec<String>> {
        let items = self.items.iter();
        items
            .map(|(_, header)| header.name(parameters, spelled))
            .collect()
    }

    /// The columns of the result under these names.
    pub(in crate::direct) fn shown(
        &self,
        metas: &[ColumnMeta],
        names: Vec<String>,
    ) -> ShownColumns {
        let mut columns = metas.to_vec();
        for ((place, _), name) in self.items.iter().zip(&names) {
            columns[*place].name.clone_from(name);
        }
        ShownColumns {
            names,
            columns,
            schema: Arc::new(Schema::empty()),
        }
    }
}

/// The tables all of whose columns an item shows; `None` if it is something else.
pub(in crate::direct) fn shown_whole(
    item: &ast::SelectItem,
    tables: &[Names<'_>],
) -> Option<Range<usize>> {
    match item {
        ast::SelectItem::Wildcard(options) if wildcard_option(options).is_none() => {
            Some(0..tables.len())
        }
        ast::SelectItem::QualifiedWildcard(
            ast::SelectItemQualifiedWildcardKind::ObjectName(name),
            options,
        ) if wildcard_option(options).is_none() => {
            let [part] = name.0.as_slice() else {
                return None;
            };
            let alias = &part.as_ident()?.value;
            let table = tables.iter().position(|names| names.alias == alias)?;
            Some(table..table + 1)
        }
        _ => None,
    }
}

/// The columns of a table that are shown, and what is computed from them; `None` if an item is neither.
pub(in crate::direct) fn columns_and_expressions(
    session: &Session,
    (select, text): (&ast::Select, &str),
    names: &Names<'_>,
) -> Option<(SelectList<Item>, Option<Computed>)> {
    if let Some(list) = columns(session, select, std::slice::from_ref(names)) {
        let list = SelectList {
            items: list.items.into_iter().map(|(_, item)| item).collect(),
            columns: list.columns,
            fields: list.fields,
        };
        return Some((list, None));
    }
    let collector = Collector::of_table(names);
    let (list, computed) = expressions(session, (select, text), Some(names), collector)?;
    Some((list, Some(computed)))
}

/// What is computed from nothing.
pub(in crate::direct) fn constants(
    session: &Session,
    (select, text): (&ast::Select, &str),
) -> Option<(SelectList<Item>, Computed)> {
    expressions(session, (select, text), None, Collector::of_constants())
}

/// The columns of a table, if there is one, and what is computed.
fn expressions(
    session: &Session,
    (select, text): (&ast::Select, &str),
    names: Option<&Names<'_>>,
    mut collector: Collector<'_>,
) -> Option<(SelectList<Item>, Computed)> {
    let statement = StatementText::new(text);
    let written = written_items(select, &statement)?;
    let mut list = SelectList::new();
    let mut computed = Vec::new();
    for (item, written) in select.projection.iter().zip(written) {
        let (expr, alias) = match item {
            ast::SelectItem::UnnamedExpr(expr) => (expr, None),
            ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.as_str())),
            ast::SelectItem::Wildcard(options) if wildcard_option(options).is_none() => {
                let names = names?;
                for column in names.definition().visible_columns() {
                    list.push_column(session, names, column, None);
                }
                continue;
            }
            _ => return None,
        };
        if let Some(names) = names
            && let Some(column) = names.column(expr)
        {
            let name = alias.unwrap_or(written_name(expr)?);
            if matches!(expr, ast::Expr::Nested(_)) {
                return None;
            }
            list.push_column(session, names, column, Some(name));
            continue;
        }
        let number = collector.add(expr)?.item;
        let header = match alias {
            Some(alias) => HeaderName::Fixed(alias.to_string()),
            None => HeaderName::of(expr, written, text),
        };
        computed.push((list.items.len(), header));
        let (meta, field) = describe_computed(session, Field::new("", DataType::Null, true), "");
        list.push(Item::computed(number), meta, field);
    }
    let computed = Computed {
        expressions: collector.finish()?.shown(),
        headers: ComputedHeaders(computed),
    };
    Some((list, computed))
}

impl SelectList<Item> {
    fn push_column(
        &mut self,
        session: &Session,
        names: &Names<'_>,
        column: usize,
        name: Option<&str>,
    ) {
        let (meta, field) = describe_column(session, names, column, name);
        let ty = &names.definition().columns[column].ty;
        self.push(Item::new(column, ty), meta, field);
    }
}

/// Whether a name in ORDER BY or its like may mean this item rather than a column of the tables: by its alias, or by
/// how it is written. The literal `'a'` is called `a`.
pub(in crate::direct) fn is_called(item: &ast::SelectItem, name: &str) -> bool {
    let called = match item {
        ast::SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
        ast::SelectItem::UnnamedExpr(expr) => {
            let inner = bare(expr);
            if matches!(
                inner,
                ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)
            ) {
                return false;
            }
            header_of_literal(inner).unwrap_or_else(|| expr.to_string())
        }
        _ => return false,
    };
    called.to_lowercase() == name.to_lowercase()
}

/// Whether a query, one of its parts or one in a FROM has an order or groups, and an item that is a place for a value
/// and nothing else. A text that was taken out of the statement is what the item is called, which is not known before a
/// run.
pub(in crate::direct) fn may_name_given(query: &ast::Query) -> bool {
    may_name_given_of(&query.body, query.order_by.is_some())
}

fn may_name_given_of(body: &ast::SetExpr, is_ordered: bool) -> bool {
    match body {
        ast::SetExpr::Select(select) => {
            let has_groups = match &select.group_by {
                ast::GroupByExpr::All(_) => true,
                ast::GroupByExpr::Expressions(by, _) => !by.is_empty(),
            };
            let has_names = is_ordered || has_groups || select.having.is_some();
            let is_in_from = |factor: &ast::TableFactor| {
                matches!(factor, ast::TableFactor::Derived { subquery, .. }
                    if may_name_given(subquery))
            };
            has_names && select.projection.iter().any(is_given)
                || select.from.iter().any(|part| {
                    let mut joins = part.joins.iter();
                    is_in_from(&part.relation) || joins.any(|join| is_in_from(&join.relation))
                })
        }
        ast::SetExpr::Query(query) => {
            may_name_given(query) || may_name_given_of(&query.body, is_ordered)
        }
        ast::SetExpr::SetOperation { left, right, .. } => {
            may_name_given_of(left, is_ordered) || may_name_given_of(right, is_ordered)
        }
        _ => false,
    }
}

fn is_given(item: &ast::SelectItem) -> bool {
    matches!(item, ast::SelectItem::UnnamedExpr(expr)
        if matches!(bare(expr), ast::Expr::Value(value)
            if matches!(value.value, ast::Value::Placeholder(_))))
}

/// Whether an item is an aggregate alone.
pub(in crate::direct) fn is_aggregate(item: &ast::SelectItem) -> bool {
    let (ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }) = item
    else {
        return false;
    };
    matches!(expr, ast::Expr::Function(function)
        if is_aggregate_name(&function.name.to_string().to_ascii_lowercase()))
}

/// Whether an item looks like an aggregate.
pub(in crate::direct) fn is_function(item: &ast::SelectItem) -> bool {
    matches!(
        item,
        ast::SelectItem::UnnamedExpr(ast::Expr::Function(_))
            | ast::SelectItem::ExprWithAlias {
                expr: ast::Expr::Function(_),
                ..
            }
    )
}
