//! What a query of a join shows: columns and aggregates, its groups, and the columns of its ORDER BY.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use sheaf_access::IndexRef;
use sheaf_storage::Direction;
use sheaf_table::{KeyPart, Table};
use sqlparser::ast;

use super::MAX_TABLES;
use super::order::Step;
use crate::direct::access::{Access, indexes};
use crate::direct::derived::shape_of_select;
use crate::direct::read::PlainSelect;
use crate::direct::rows::order::{OrderItem, SortKey, descends};
use crate::direct::rows::row_source::RowSource;
use crate::direct::shown::aggregate::{Aggregate, call_of};
use crate::direct::shown::joined_list::{
    GroupItem, JoinedAggregate, JoinedFunction, JoinedKey, KeyColumn, Shown,
};
use crate::direct::shown::select_list::{self, GroupedItem, is_function};
use crate::direct::syntax::names::{Names, OneOf, column_of};
use crate::session::Session;
use crate::session::result::ColumnMeta;

/// Whether rows are aggregated or grouped that may be missing: the table at a place `may_miss` them.
pub(super) fn outer_is_needed(shown: &Shown, may_miss: impl Fn(usize) -> bool) -> bool {
    match shown {
        Shown::Columns(_) => false,
        Shown::Aggregates(aggregates) => {
            let mut aggregates = aggregates.iter();
            aggregates.any(|aggregate| may_miss(aggregate.place))
        }
        // The row that a group shows is one of all tables.
        Shown::Groups { .. } => (0..MAX_TABLES).any(may_miss),
    }
}

/// What a query shows.
pub(super) struct List {
    pub(super) shown: Shown,
    pub(super) columns: Vec<ColumnMeta>,
    pub(super) fields: Vec<Field>,
}

impl List {
    /// Has the vectorised path tell what a client is told, where columns are those of queries. `None`: that is not
    /// known before a run, or not for what is shown.
    pub(super) fn describe_queries(
        &mut self,
        session: &Session,
        (select, text): (&ast::Select, &str),
    ) -> Option<()> {
        if !matches!(self.shown, Shown::Columns(_)) {
            return None;
        }
        let lowered = session.lower_shape(&shape_of_select(select)?, text).ok()?;
        let fields = lowered.plan.schema().fields();
        let columns = session.columns_of(&lowered);
        let mut own = self.fields.iter().zip(fields);
        let is_same = columns.len() == self.columns.len()
            && own.all(|(own, field)| own.data_type() == field.data_type());
        if !is_same {
            return None;
        }
        let fields = fields.iter().zip(&columns);
        let named = |(field, column): (&Arc<Field>, &ColumnMeta)| {
            field.as_ref().clone().with_name(&column.name)
        };
        self.fields = fields.map(named).collect();
        self.columns = columns;
        Some(())
    }

    /// `ordered`: the columns of ORDER BY; `place`: where a table of the FROM is read.
    pub(super) fn of(
        session: &Session,
        (select, text): (&ast::Select, &str),
        plain: &PlainSelect<'_>,
        (names, ordered): (&[Names<'_>], &[KeyColumn]),
        place: impl Fn(usize) -> Option<usize> + Copy,
    ) -> Option<List> {
        let aggregate = |expr: &ast::Expr| {
            let ((table, function), field) = aggregate_of(expr, names)?;
            let place = place(table)?;
            Some((JoinedAggregate { place, function }, field))
        };
        let has_aggregates = select.projection.iter().any(is_function);
        if !plain.group_by.is_empty() || plain.distinct {
            if plain.distinct && (has_aggregates || !plain.group_by.is_empty()) {
                return None;
            }
            let list = select_list::grouped(session, (select, text), names, aggregate)?;
            let shown = grouped(select, plain, list.items, (names, ordered), place)?;
            return Some(List {
                shown,
                columns: list.columns,
                fields: list.fields,
            });
        }
        if has_aggregates {
            let list = select_list::computed(session, (select, text), aggregate)?;
            return Some(List {
                shown: Shown::Aggregates(list.items),
                columns: list.columns,
                fields: list.fields,
            });
        }
        let list = select_list::columns(session, select, names)?;
        let items = list.items.into_iter();
        let items = items.map(|(table, item)| Some((place(table)?, item)));
        Some(List {
            shown: Shown::Columns(items.collect::<Option<_>>()?),
            columns: list.columns,
            fields: list.fields,
        })
    }
}

/// The groups of a query, or of its DISTINCT.
fn grouped(
    select: &ast::Select,
    plain: &PlainSelect<'_>,
    items: Vec<GroupedItem<JoinedAggregate>>,
    (names, ordered): (&[Names<'_>], &[KeyColumn]),
    place: impl Fn(usize) -> Option<usize>,
) -> Option<Shown> {
    let mut by: Vec<KeyColumn> = Vec::new();
    for expr in plain.group_by {
        let (table, column) = unaliased(expr, select, names)?;
        by.push((table, column, false));
    }
    let (mut shown, mut aggregates) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            GroupedItem::Column((table, item)) => {
                let is_key = |key: &KeyColumn| (key.0, key.1) == (table, item.column);
                match (by.iter().any(is_key), plain.distinct) {
                    (true, _) => {}
                    (false, true) => by.push((table, item.column, false)),
                    (false, false) => return None,
                }
                shown.push(GroupItem::Column(place(table)?, item));
            }
            GroupedItem::Aggregate(aggregate) => {
                shown.push(GroupItem::Aggregate(aggregates.len()));
                aggregates.push(aggregate);
            }
        }
    }
    // What else groups were ordered by would be that of any of their rows.
    let is_key =
        |(table, column, _): &KeyColumn| by.iter().any(|key| (key.0, key.1) == (*table, *column));
    ordered.iter().all(is_key).then_some(())?;
    Some(Shown::Groups {
        by: JoinedKey::new(&by, names, place)?,
        items: shown,
        aggregates,
    })
}

/// The columns of ORDER BY.
pub(in crate::direct) fn ordered_columns(
    order_by: &ast::OrderBy,
    select: &ast::Select,
    names: &[Names<'_>],
) -> Option<Vec<KeyColumn>> {
    let ast::OrderByKind::Expressions(items) = &order_by.kind else {
        return None;
    };
    if order_by.interpolate.is_some() {
        return None;
    }
    let item = |item: &ast::OrderByExpr| {
        let descending = descends(item)?;
        let (table, column) = unaliased(&item.expr, select, names)?;
        let is_ordered = match &names[table].source {
            RowSource::Query(derived) => derived.is_ordered(column),
            RowSource::Table(_) => true,
        };
        is_ordered.then_some((table, column, descending))
    };
    items.iter().map(item).collect()
}

/// The column that an expression is. What an item of the select list is called hides columns of the same name.
fn unaliased(
    expr: &ast::Expr,
    select: &ast::Select,
    names: &[Names<'_>],
) -> Option<(usize, usize)> {
    if let ast::Expr::Nested(inner) = expr {
        return unaliased(inner, select, names);
    }
    if let ast::Expr::Identifier(name) = expr {
        let is_hidden = |item: &ast::SelectItem| select_list::is_called(item, &name.value);
        if select.projection.iter().any(is_hidden) {
            return None;
        }
    }
    column_of(names, expr)
}

/// How the groups of a whole table are found by one entry each; `None` if no index tells them so.
pub(super) fn first_of(table: &Table, shown: &Shown) -> Option<Step> {
    let Shown::Groups { by, aggregates, .. } = shown else {
        return None;
    };
    let mut extreme = None;
    for aggregate in aggregates {
        let JoinedFunction::Plain([Aggregate::Extreme { column, wanted, .. }]) = aggregate.function
        else {
            return None;
        };
        if extreme.is_some_and(|known| known != (column, wanted)) {
            return None;
        }
        extreme = Some((column, wanted));
    }
    let mut columns: Vec<usize> = by.columns().map(|(_, column)| column).collect();
    columns.sort_unstable();
    columns.dedup();
    indexes(table).find_map(|index| {
        let layout = match index {
            IndexRef::Clustered => &table.clustered_layout,
            IndexRef::Secondary(position) => &table.secondary_layouts[position],
        };
        let is_whole = |part: &KeyPart| part.prefix_length.is_none();
        let leading = layout.parts.get(..columns.len())?.iter();
        let mut held = leading
            .map(|part| part.column.filter(|_| is_whole(part)))
            .collect::<Option<Vec<usize>>>()?;
        held.sort_unstable();
        // Where all parts make a group, each entry is one.
        if held != columns || layout.parts.len() == columns.len() {
            return None;
        }
        let mut direction = Direction::Forward;
        if let Some((column, wanted)) = extreme {
            let part = layout.parts.get(columns.len())?;
            let may_be_null = table.definition.columns[column].nullable;
            // The least one may be behind NULLs.
            let is_known = wanted.is_gt() || !may_be_null;
            if part.column != Some(column) || !is_whole(part) || !is_known {
                return None;
            }
            if wanted.is_gt() {
                direction = Direction::Backward;
            }
        }
        let access = Access::whole(index, &[]);
        Some(Step::First(access, (direction, columns.len())))
    })
}

/// An aggregate and its table.
fn aggregate_of(expr: &ast::Expr, names: &[Names<'_>]) -> Option<((usize, JoinedFunction), Field)> {
    let call = call_of(expr)?;
    if call.is_distinct {
        let ast::FunctionArgExpr::Expr(argument) = call.argument else {
            return None;
        };
        let (table, column) = column_of(names, argument)?;
        let wanted = OrderItem {
            column,
            descending: false,
        };
        let key = SortKey::new(names[table].definition(), vec![wanted])?;
        let is_count = call.function.eq_ignore_ascii_case("count");
        let field = Field::new("", DataType::Int64, false);
        return is_count.then_some((
            (table, JoinedFunction::CountDistinct { column, key }),
            field,
        ));
    }
    (0..names.len()).find_map(|table| {
        let aggregate = Aggregate::of(expr, &OneOf { names, table })?;
        let field = aggregate.field(names[table].definition());
        Some(((table, JoinedFunction::Plain([aggregate])), field))
    })
}
