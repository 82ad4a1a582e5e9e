//! Clustered keys of rows that a direct plan of a query has found: of the values of primary keys in its result.
//!
//! The operators' plan delivers keys as they are in the tree. A direct plan delivers columns. So the columns of a
//! primary key are what it is asked for, and the key is made of their values.

use std::sync::Arc;

use sheaf_access::CLUSTERED_KEY;
use sheaf_table::{Table, ValueRef};
use sheaf_types::{ColumnType, Value};
use sqlparser::ast;

/// Where the query has the primary key of a table's rows.
pub(in crate::direct) struct FoundKey {
    pub(in crate::direct) table: Arc<Table>,
    /// The query's column that the clustered key takes the place of.
    pub(in crate::direct) place: usize,
    /// Columns of the key, with those of the query.
    parts: Vec<(usize, usize)>,
}

impl FoundKey {
    /// Puts the columns of the primary key into a query that asks for the clustered key of a table. `None`: there is no
    /// primary key whose values the query gives as the table has them.
    pub(in crate::direct) fn of(
        table: Arc<Table>,
        place: usize,
        projection: &mut Vec<ast::SelectItem>,
    ) -> Option<FoundKey> {
        let definition = &table.definition;
        let key = &definition.primary;
        let is_plain = |ty: &ColumnType| {
            let is_string = ty.declared_length().is_some();
            ty.is_integer()
                || is_string && (ty.is_character() || ty.is_varying())
                || ty.decimal_digits().is_some()
                || ty.is_day()
        };
        let mut columns = key.parts.iter().map(|part| part.column);
        if !key.primary || !columns.all(|column| is_plain(&definition.columns[column].ty)) {
            return None;
        }
        let ast::SelectItem::ExprWithAlias { expr, alias } = projection.get(place)? else {
            return None;
        };
        let (expr, alias) = (expr.clone(), alias.clone());
        let ast::Expr::CompoundIdentifier(asked) = &expr else {
            return None;
        };
        let [of, name] = asked.as_slice() else {
            return None;
        };
        if name.value != CLUSTERED_KEY {
            return None;
        }
        let mut parts = Vec::with_capacity(key.parts.len());
        for (number, part) in key.parts.iter().enumerate() {
            let name = ast::Ident::with_quote('`', &definition.columns[part.column].name);
            let expr = ast::Expr::CompoundIdentifier(vec![of.clone(), name]);
            if number == 0 {
                let alias = alias.clone();
                projection[place] = ast::SelectItem::ExprWithAlias { expr, alias };
                parts.push((part.column, place));
                continue;
            }
            parts.push((part.column, projection.len()));
            let name = format!("{}{number} ", alias.value);
            let alias = ast::Ident::with_quote('`', name);
            projection.push(ast::SelectItem::ExprWithAlias { expr, alias });
        }
        Some(FoundKey {
            table,
            place,
            parts,
        })
    }

    /// The same where so many columns come before those of the key that the query does not spell: `*` is several.
    pub(in crate::direct) fn behind(mut self, columns: usize) -> FoundKey {
        self.place += columns;
        for (_, at) in &mut self.parts {
            *at += columns;
        }
        self
    }

    /// The query's columns that the key is made of.
    pub(in crate::direct) fn columns(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|(_, at)| *at)
    }

    /// The clustered key of a row that the query has found; NULL if an outer join has none.
    pub(in crate::direct) fn encoded(&self, found: &[Value]) -> Value {
        if self.parts.iter().any(|(_, at)| found[*at] == Value::Null) {
            return Value::Null;
        }
        let value = |column: usize| {
            let mut parts = self.parts.iter();
            let part = parts.find(|(of, _)| *of == column);
            part.map_or(ValueRef::Null, |(_, at)| ValueRef::from(&found[*at]))
        };
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        let layout = &self.table.clustered_layout;
        layout.encode_entry(value, 0, &mut key, &mut payload);
        Value::Bytes(key)
    }
}
