//! The select list: columns of the tables that a statement reads, or values computed from their rows.

use arrow::datatypes::Field;
use sheaf_frontend::StatementText;
use sqlparser::ast;

use super::names::{Names, column_of};
use super::row::Item;
use crate::query::Header;
use crate::result::{ColumnMeta, table_flags};
use crate::session::Session;

/// The items of a select list with what the protocol and Arrow say of them.
pub(super) struct SelectList<I> {
    pub(super) items: Vec<I>,
    pub(super) columns: Vec<ColumnMeta>,
    pub(super) fields: Vec<Field>,
}

/// A column of the result: the table's position in the FROM, and the column.
pub(super) type TableItem = (usize, Item);

/// The columns that are shown; `None` if an item is no column.
pub(super) fn columns(
    session: &Session,
    select: &ast::Select,
    tables: &[Names<'_>],
) -> Option<SelectList<TableItem>> {
    let mut shown: Vec<(usize, usize, Option<&str>)> = Vec::new();
    let all = |table: usize| {
        let columns = 0..tables[table].definition().columns.len();
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
            ast::SelectItem::Wildcard(options) if is_plain_wildcard(options) => {
                shown.extend((0..tables.len()).flat_map(all));
            }
            ast::SelectItem::QualifiedWildcard(
                ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) if is_plain_wildcard(options) => {
                let [part] = name.0.as_slice() else {
                    return None;
                };
                let alias = &part.as_ident()?.value;
                let table = tables.iter().position(|names| names.alias == alias)?;
                shown.extend(all(table));
            }
            _ => return None,
        }
    }
    let describe = |(table, column, name): &(usize, usize, Option<&str>)| {
        describe_column(session, &tables[*table], *column, *name)
    };
    let item = |(table, column, _): &(usize, usize, Option<&str>)| item_of(tables, *table, *column);
    let (columns, fields) = shown.iter().map(describe).unzip();
    Some(SelectList {
        items: shown.iter().map(item).collect(),
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
    };
    let field = sheaf_access::arrow_field(own);
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

fn item_of(tables: &[Names<'_>], table: usize, column: usize) -> TableItem {
    let ty = &tables[table].definition().columns[column].ty;
    (table, Item::new(column, ty))
}

/// A select list whose items are all computed: `item` makes them. `text` is the statement.
pub(super) fn computed<I>(
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
pub(super) enum GroupedItem<A> {
    Column(TableItem),
    Aggregate(A),
}

/// A select list of columns and of aggregates, which `aggregate` makes. `text` is the statement.
pub(super) fn grouped<A>(
    session: &Session,
    (select, text): (&ast::Select, &str),
    tables: &[Names<'_>],
    mut aggregate: impl FnMut(&ast::Expr) -> Option<(A, Field)>,
) -> Option<SelectList<GroupedItem<A>>> {
    of_expressions((select, text), |expr, alias, written| {
        if let Some((table, column)) = column_of(tables, expr) {
            let name = Some(alias.unwrap_or(written_name(expr)?));
            let (meta, field) = describe_column(session, &tables[table], column, name);
            let item = GroupedItem::Column(item_of(tables, table, column));
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

/// A select list of expressions; `make` gets each with its alias and as it is written.
fn of_expressions<I>(
    (select, text): (&ast::Select, &str),
    mut make: impl FnMut(&ast::Expr, Option<&str>, &str) -> Option<(I, ColumnMeta, Field)>,
) -> Option<SelectList<I>> {
    let statement = StatementText::new(text);
    let written = statement.select_items(select.select_token.0.span.start);
    if written.len() != select.projection.len() {
        return None;
    }
    let mut list = SelectList {
        items: Vec::new(),
        columns: Vec::new(),
        fields: Vec::new(),
    };
    for (shown, written) in select.projection.iter().zip(written) {
        let (expr, alias) = match shown {
            ast::SelectItem::UnnamedExpr(expr) => (expr, None),
            ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.as_str())),
            _ => return None,
        };
        let (made, meta, field) = make(expr, alias, written)?;
        list.columns.push(meta);
        list.fields.push(field);
        list.items.push(made);
    }
    Some(list)
}

/// Whether an item looks like an aggregate.
pub(super) fn is_function(item: &ast::SelectItem) -> bool {
    matches!(
        item,
        ast::SelectItem::UnnamedExpr(ast::Expr::Function(_))
            | ast::SelectItem::ExprWithAlias {
                expr: ast::Expr::Function(_),
                ..
            }
    )
}

fn is_plain_wildcard(options: &ast::WildcardAdditionalOptions) -> bool {
    let ast::WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    opt_ilike.is_none()
        && opt_exclude.is_none()
        && opt_except.is_none()
        && opt_replace.is_none()
        && opt_rename.is_none()
        && opt_alias.is_none()
}
