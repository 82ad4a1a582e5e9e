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
                let written = match expr {
                    ast::Expr::Identifier(name) => &name.value,
                    ast::Expr::CompoundIdentifier(parts) => &parts.last()?.value,
                    _ => return None,
                };
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
    let collation_id = session.result_collation_id();
    let describe = |(table, column, name): &(usize, usize, Option<&str>)| {
        let names = &tables[*table];
        let own = &names.definition().columns[*column];
        let header = Header {
            name: name.unwrap_or(&own.name).to_string(),
            org_name: own.name.clone(),
            table: names.alias.to_string(),
            org_table: names.written.clone(),
            database: names.database.clone(),
        };
        let field = sheaf_access::arrow_field(own);
        let mut meta = ColumnMeta::new(&field, &header, collation_id);
        meta.flags |= table_flags(names.definition(), *column);
        (meta, field.with_name(header.name))
    };
    let item = |(table, column, _): &(usize, usize, Option<&str>)| {
        let ty = &tables[*table].definition().columns[*column].ty;
        (*table, Item::new(*column, ty))
    };
    let (columns, fields) = shown.iter().map(describe).unzip();
    Some(SelectList {
        items: shown.iter().map(item).collect(),
        columns,
        fields,
    })
}

/// A select list whose items are all computed: `item` makes them. `text` is the statement.
pub(super) fn computed<I>(
    session: &Session,
    (select, text): (&ast::Select, &str),
    mut item: impl FnMut(&ast::Expr) -> Option<(I, Field)>,
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
        let (expr, name) = match shown {
            ast::SelectItem::UnnamedExpr(expr) => (expr, written),
            ast::SelectItem::ExprWithAlias { expr, alias } => (expr, alias.value.as_str()),
            _ => return None,
        };
        let (made, field) = item(expr)?;
        let header = Header {
            name: name.to_string(),
            ..Header::default()
        };
        let collation_id = session.result_collation_id();
        list.columns
            .push(ColumnMeta::new(&field, &header, collation_id));
        list.fields.push(field.with_name(name));
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
