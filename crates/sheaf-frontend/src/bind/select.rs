//! A SELECT, from its FROM to its LIMIT.
//!
//! ```text
//!   Limit                     the query's
//!     Project                 without what only ORDER BY has computed
//!       Sort
//!         Group by all        DISTINCT
//!           Project           the select list, and what ORDER BY computes besides
//!             Window
//!               Filter        HAVING
//!                 Group       GROUP BY and aggregates
//!                   Filter    WHERE
//!                     FROM
//! ```
//!
//! What a row or a group is not asked for is not there: most SELECTs have few of these.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use sheaf_access::CLUSTERED_KEY;
use sheaf_algebra::relation::{DependentKind, Item, SortKey};
use sheaf_algebra::scalar::Places;
use sheaf_algebra::{ColumnSet, Relation, Scalar};
use sheaf_exec::typing::Purpose;
use sheaf_types::error::codes;
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, ObjectName, OrderBy, OrderByExpr, OrderByKind, Select,
    SelectItem, SelectItemQualifiedWildcardKind, Spanned, Value as Literal,
};
use sqlparser::tokenizer::{Location, Span};

use super::block::{Block, Clause, NamedWindow, Pending, with_subqueries};
use super::expression::is_repeatable;
use super::from::plain_name;
use super::group::{Keys, named_items};
use super::grouped::{any_values_of_rows, check_groups};
use super::scope::{Found, ScopeColumn};
use super::window::{MAX_WINDOWS, resolved_window, too_many_windows};
use super::{Binder, Bound, Output, unsupported};
use crate::error::SqlError;
use crate::query::{Header, Listed};
use crate::syntax::{
    bare, header_of_literal, inside, is_plain_column, is_same, name_of_constant, number_digits,
    object_text, shown_in_header,
};

/// An item of the select list, bound.
pub(super) struct BoundItem<'s> {
    /// As it was written; `None` if a wildcard stands for it.
    expr: Option<&'s Expr>,
    /// The name by which ORDER BY finds it.
    name: String,
    pub(super) value: Scalar,
    pub(super) header: Header,
}

/// An item without wildcards, with its alias.
pub(super) struct ListedItem<'s> {
    pub expr: Cow<'s, Expr>,
    pub alias: Option<&'s str>,
    /// The header of an expression without an alias, which other clauses may name it by.
    pub header: Option<String>,
}

impl<'s> ListedItem<'s> {
    fn new(expr: Cow<'s, Expr>) -> ListedItem<'s> {
        ListedItem {
            expr,
            alias: None,
            header: None,
        }
    }
}

/// What ORDER BY orders by.
enum OrderKey {
    Item(usize),
    Value(Scalar),
}

/// What is wanted of a block by what it stands in.
#[derive(Clone, Copy)]
struct Wanted {
    /// No order without a LIMIT.
    drops_order: bool,
    /// The digits of quotients that are not shown.
    keeps_digits: bool,
    /// Rows, whatever they hold.
    lists_nothing: bool,
}

impl Binder<'_> {
    pub(super) fn select(
        &mut self,
        select: &Select,
        order_by: &[OrderByExpr],
    ) -> Bound<(Relation, Vec<Output>)> {
        if select.into.is_some()
            || select.top.is_some()
            || select.qualify.is_some()
            || !select.lateral_views.is_empty()
        {
            return unsupported("clauses of SELECT that MySQL does not have, or INTO");
        }
        let wanted = Wanted {
            drops_order: std::mem::take(&mut self.drops_order),
            keeps_digits: std::mem::take(&mut self.keeps_digits),
            lists_nothing: std::mem::take(&mut self.lists_nothing),
        };
        self.count_block()?;
        let enclosing = self.hints.open(select, self.text.as_str());
        let blocks = self.blocks.len();
        let bound = match self.has_any_value {
            false => self.select_inner(select, order_by, wanted),
            true => {
                let mut select = select.clone();
                let mut ordered = OrderBy {
                    kind: OrderByKind::Expressions(order_by.to_vec()),
                    interpolate: None,
                };
                any_values_of_rows(&mut select, Some(&mut ordered));
                match &ordered.kind {
                    OrderByKind::Expressions(order_by) => {
                        self.select_inner(&select, order_by, wanted)
                    }
                    OrderByKind::All(_) => self.select_inner(&select, order_by, wanted),
                }
            }
        };
        self.blocks.truncate(blocks);
        self.hints.close(enclosing);
        bound
    }

    fn select_inner(
        &mut self,
        select: &Select,
        order_by: &[OrderByExpr],
        wanted: Wanted,
    ) -> Bound<(Relation, Vec<Output>)> {
        let (mut relation, scope) = self.from(&select.from)?;
        let mut block = Block::new(scope);
        let is_outermost = self.depth == 1;
        let sets_variables = self.context.listed == Listed::Variables && is_outermost;
        block.keeps_digits = wanted.keeps_digits || sets_variables;
        block.lists_values = self.context.listed != Listed::Items && is_outermost;
        block.lists_nothing = wanted.lists_nothing;
        if !select.named_window.is_empty() {
            let windows = select.named_window.iter();
            let windows: Vec<_> = windows
                .map(|window| (window.0.value.clone(), window.1.clone()))
                .collect();
            if windows.len() > MAX_WINDOWS {
                return Err(too_many_windows(windows.len()));
            }
            for (at, (name, _)) in windows.iter().enumerate() {
                if windows[..at].iter().any(|(other, _)| is_same(other, name)) {
                    return Err(window_defined_twice(name));
                }
                let spec = resolved_window(name, &windows, 0)?;
                block.windows.push(NamedWindow {
                    name: name.clone(),
                    spec,
                    is_used: false,
                });
            }
        }
        if let GroupByExpr::Expressions(groups, _) = &select.group_by {
            let is_column =
                |name: &str| matches!(block.scope.column_of_tables(name), Found::Column(_));
            check_groups(groups, &select.projection, is_column)?;
        }
        self.blocks.push(block);
        if let Some(condition) = &select.selection {
            let condition = self.condition_of_rows(condition, &relation)?;
            relation = with_subqueries(relation, self.take_pending()?)?;
            relation = relation.filter(condition);
        }
        let is_named = !order_by.is_empty()
            || select.having.is_some()
            || !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
        let listed = self.listed(select, is_named)?;
        let block = self.block()?;
        block.items = named_items(&listed, &block.scope);
        if select.having.is_some() {
            let columns = listed
                .iter()
                .filter_map(|item| block.scope.column_named(&item.expr));
            block.shown_columns = columns.map(|column| column.id).collect();
        }
        let (with_keys, keys) = self.keys(&select.group_by, relation, &listed)?;
        relation = with_keys;

        let mut items = self.with_purpose(Purpose::Shown, |this| {
            let start = select.select_token.0.span.start;
            this.items(&select.projection, start)
        })?;
        let of_items = self.take_pending()?;
        self.block()?.clause = Clause::Having;
        let having = match &select.having {
            Some(having) => Some(self.choosing(|this| this.condition(having))?),
            None => None,
        };
        let of_having = self.take_pending()?;
        self.block()?.clause = Clause::OrderBy;
        let mut order =
            self.with_purpose(Purpose::Order, |this| this.order_keys(order_by, &items))?;
        let mut of_order = self.take_pending()?;
        self.check_unused_windows()?;
        if wanted.drops_order && self.block()?.functions.is_empty() {
            order.clear();
            of_order.clear();
        }
        let is_grouped = keys.is_some() || !self.block()?.aggregates.is_empty();
        // A single row has its order, whatever it is said by: that is not computed.
        if keys.is_none() && is_grouped {
            order.clear();
            of_order.clear();
        }
        let mut having = having;
        let mut pending: Vec<Pending> = of_items.into_iter().chain(of_order).collect();
        let mut of_having = of_having;
        if is_grouped {
            if let Some(keys) = &keys {
                self.above_groups(keys, (&mut items, &mut order, &mut having), &mut pending)?;
                pending_above_groups(keys, &mut of_having);
            }
            let named =
                self.named_above_groups(&items, &order, having.as_ref(), [&pending, &of_having])?;
            relation = self.grouped(relation, keys, &named, !order.is_empty())?;
        }
        if let Some(having) = having {
            relation = with_subqueries(relation, of_having)?;
            relation = relation.filter(having);
        }
        let functions = std::mem::take(&mut self.block()?.functions);
        let of_windows: ColumnSet = functions.iter().map(|(id, _)| *id).collect();
        let uses_windows = |pending: &Pending| {
            let condition = pending.condition.as_ref();
            condition.is_some_and(|condition| condition.columns().intersects(&of_windows))
                || pending.right.free_columns().intersects(&of_windows)
        };
        let (above, below): (Vec<_>, Vec<_>) = pending.into_iter().partition(uses_windows);
        relation = with_subqueries(relation, below)?;
        relation = self.over_windows(relation, functions);
        relation = with_subqueries(relation, above)?;
        self.listed_rows(select, relation, items, order)
    }

    pub(super) fn take_pending(&mut self) -> Bound<Vec<Pending>> {
        Ok(std::mem::take(&mut self.block()?.pending))
    }

    /// The select list, DISTINCT and ORDER BY.
    fn listed_rows(
        &mut self,
        select: &Select,
        mut relation: Relation,
        items: Vec<BoundItem<'_>>,
        order: Vec<(OrderKey, bool)>,
    ) -> Bound<(Relation, Vec<Output>)> {
        let below = relation.column_set();
        let mut listed: Vec<Item> = Vec::with_capacity(items.len());
        let mut taken = ColumnSet::new();
        let mut outputs = Vec::with_capacity(items.len());
        for mut item in items {
            item.value = self.rolled_up_label(item.value)?;
            // A column that is shown twice, or is one of a query around, gets an id of its own.
            let own = item.value.as_column();
            let own = own.filter(|column| below.contains(*column) && !taken.contains(*column));
            let id = match own {
                Some(column) => column,
                None => self.new_column(&item.header.name, &item.value),
            };
            taken.insert(id);
            self.columns.rename(id, &item.header.name);
            outputs.push(Output {
                id,
                field: Arc::clone(item.value.field()),
                header: item.header,
            });
            listed.push(Item {
                column: id,
                value: item.value,
            });
        }
        let is_plain = matches!(select.distinct, None | Some(Distinct::All));
        if is_plain && listed.iter().any(|item| item.value.is_of_variables()) {
            let order = order.iter().map(|(key, descends)| {
                let value = match key {
                    OrderKey::Item(at) => &listed[*at].value,
                    OrderKey::Value(value) => value,
                };
                // `@last := a` has its order before anything is assigned.
                (value.assigned_value().unwrap_or(value).clone(), *descends)
            });
            let order: Vec<_> = order.collect();
            if !order.iter().any(|(value, _)| value.is_of_variables()) {
                let relation = self.ordered_first(relation, order);
                return Ok((relation.project(listed), outputs));
            }
        }
        let shown = listed.len();
        let is_distinct = match &select.distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(_) => return unsupported("DISTINCT ON"),
        };
        let ordered_items = std::mem::take(&mut self.block()?.ordered_items);
        let mut places = Places::default();
        if !order.is_empty() {
            for (at, item) in listed.iter().enumerate() {
                places.add(item.value.fingerprint(), at);
            }
        }
        let mut above: Vec<Item> = Vec::new();
        let mut sort = Vec::with_capacity(order.len());
        for (key, descends) in order {
            let key = match key {
                // RAND() orders the rows that are left.
                OrderKey::Value(value)
                    if is_distinct
                        && value.as_literal().is_none()
                        && value.columns().is_empty() =>
                {
                    let column = self.new_column("order", &value);
                    let field = Arc::clone(value.field());
                    above.push(Item { column, value });
                    let value = Scalar::column(column, field);
                    sort.push(SortKey { value, descends });
                    continue;
                }
                OrderKey::Value(value) if is_distinct && !ordered_items.is_empty() => {
                    let value = of_shown(value, &ordered_items, &outputs);
                    if outputs
                        .iter()
                        .any(|output| value.columns().contains(output.id))
                        && value.as_column().is_none()
                        && value
                            .columns()
                            .iter()
                            .all(|column| outputs.iter().any(|output| output.id == column))
                    {
                        let column = self.new_column("order", &value);
                        let field = Arc::clone(value.field());
                        above.push(Item { column, value });
                        let value = Scalar::column(column, field);
                        sort.push(SortKey { value, descends });
                        continue;
                    }
                    OrderKey::Value(value)
                }
                OrderKey::Value(value) => OrderKey::Value(self.rolled_up_label(value)?),
                key => key,
            };
            let value = match key {
                OrderKey::Item(at) => {
                    Scalar::column(listed[at].column, Arc::clone(&outputs[at].field))
                }
                OrderKey::Value(value) if value.as_literal().is_some() => continue,
                OrderKey::Value(value) => {
                    // Items are columns by now.
                    let fingerprint = value.fingerprint();
                    let known = places.find(fingerprint, |at| listed[at].value == value);
                    let column = match known.filter(|_| is_repeatable(&value)) {
                        Some(at) => listed[at].column,
                        None => {
                            let column = match value.as_column() {
                                Some(column) if below.contains(column) => column,
                                _ => self.new_column("order", &value),
                            };
                            places.add(fingerprint, listed.len());
                            listed.push(Item {
                                column,
                                value: value.clone(),
                            });
                            column
                        }
                    };
                    Scalar::column(column, Arc::clone(value.field()))
                }
            };
            sort.push(SortKey { value, descends });
        }
        let hides = listed.len() > shown || !above.is_empty();
        let aggregated = std::mem::take(&mut self.block()?.aggregated);
        let of_aggregates: ColumnSet = listed
            .iter()
            .filter(|item| item.value.columns().intersects(&aggregated))
            .map(|item| item.column)
            .collect();
        relation = relation.project(listed);
        if is_distinct {
            // What is not shown is that of any of the rows that are equal.
            let mut columns = relation.columns().to_vec();
            let carried = columns.split_off(shown);
            if !carried.is_empty() && self.context.session.only_full_group_by() {
                let given = columns.iter().copied().collect();
                let determined = relation.properties().determined_by(&given);
                if let Some(column) = carried.iter().find(|column| !determined.contains(**column)) {
                    return Err(not_shown(of_aggregates.contains(*column)));
                }
            }
            relation = relation.group(columns, carried, Vec::new());
        }
        if !above.is_empty() {
            let items = self.passed_on(&relation).chain(above).collect();
            relation = relation.project(items);
        }
        relation = relation.sort(sort);
        if hides {
            let items = outputs.iter().map(|output| Item {
                column: output.id,
                value: Scalar::column(output.id, Arc::clone(&output.field)),
            });
            relation = relation.project(items.collect());
        }
        Ok((relation, outputs))
    }

    /// The rows in an order. Their columns, and more that the order is computed of.
    fn ordered_first(&mut self, relation: Relation, order: Vec<(Scalar, bool)>) -> Relation {
        let below = relation.column_set();
        let mut items = Vec::with_capacity(relation.columns().len() + order.len());
        for column in relation.columns() {
            let field = Arc::clone(&self.columns.get(*column).field);
            items.push(Item {
                column: *column,
                value: Scalar::column(*column, field),
            });
        }
        let mut keys = Vec::with_capacity(order.len());
        for (value, descends) in order {
            if value.as_literal().is_some() {
                continue;
            }
            let field = Arc::clone(value.field());
            let column = match value.as_column().filter(|column| below.contains(*column)) {
                Some(column) => column,
                None => {
                    let column = self.new_column("order", &value);
                    items.push(Item { column, value });
                    column
                }
            };
            let value = Scalar::column(column, field);
            keys.push(SortKey { value, descends });
        }
        match items.iter().all(Item::is_passed_on) {
            true => relation.sort(keys),
            false => relation.project(items).sort(keys),
        }
    }

    /// The items with their aliases, without wildcards, as GROUP BY and HAVING name them. `is_named`: some clause may
    /// name them.
    fn listed<'s>(&mut self, select: &'s Select, is_named: bool) -> Bound<Vec<ListedItem<'s>>> {
        let list = &select.projection;
        let text = Rc::clone(&self.text);
        let written = match is_named && list.iter().any(has_text_as_header) {
            true => text.select_items(select.select_token.0.span.start),
            false => Vec::new(),
        };
        let has_text = written.len() == list.len();
        let mut listed = Vec::with_capacity(list.len());
        for (position, item) in list.iter().enumerate() {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let is_text = is_named && has_text_as_header(item);
                    listed.push(ListedItem {
                        header: is_text
                            .then(|| header_of(expr, has_text.then(|| written[position]))),
                        ..ListedItem::new(Cow::Borrowed(expr))
                    });
                }
                SelectItem::ExprWithAlias { expr, alias } => listed.push(ListedItem {
                    alias: Some(alias.value.as_str()),
                    ..ListedItem::new(Cow::Borrowed(expr))
                }),
                SelectItem::Wildcard(_) => {
                    let columns = self.block()?.scope.visible().map(qualified_name);
                    listed.extend(columns.map(|column| ListedItem::new(Cow::Owned(column))));
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let columns = self.columns_of_wildcard(name)?;
                    let columns = columns.iter().map(qualified_name);
                    listed.extend(columns.map(|column| ListedItem::new(Cow::Owned(column))));
                }
                _ => {}
            }
        }
        Ok(listed)
    }

    /// A select list. `start`: where its SELECT stands in the statement.
    pub(super) fn items<'s>(
        &mut self,
        list: &'s [SelectItem],
        start: Location,
    ) -> Bound<Vec<BoundItem<'s>>> {
        self.block()?.clause = Clause::FieldList;
        let text = Rc::clone(&self.text);
        let written = match list.iter().any(has_text_as_header) {
            true => text.select_items(start),
            false => Vec::new(),
        };
        let has_text = written.len() == list.len();
        let mut items = Vec::with_capacity(list.len());
        for (position, item) in list.iter().enumerate() {
            self.block()?.items_so_far = items.len();
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let header = header_of(expr, has_text.then(|| written[position]));
                    items.push(self.item(expr, header)?);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    items.push(self.item(expr, alias.value.clone())?);
                }
                SelectItem::Wildcard(options) => {
                    let block = self.block()?;
                    let columns: Vec<ScopeColumn> = block.scope.visible().cloned().collect();
                    self.check_wildcard_of(None, None, &columns)?;
                    if columns.is_empty() {
                        return Err(SqlError::new(codes::NO_TABLES_USED, "No tables used"));
                    }
                    self.note_wildcard(options.wildcard_token.0.span, &columns);
                    self.block()?.note_listed(&columns);
                    items.extend(columns.iter().map(wildcard_item));
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let columns = self.columns_of_wildcard(name)?;
                    let star = options.wildcard_token.0.span;
                    self.note_wildcard(Span::new(name.span().start, star.end), &columns);
                    self.block()?.note_listed(&columns);
                    items.extend(columns.iter().map(wildcard_item));
                }
                other => return unsupported(other.to_string()),
            }
        }
        Ok(items)
    }

    /// The columns of `table.*`. Error 1051 for a table that there is not.
    fn columns_of_wildcard(&mut self, name: &ObjectName) -> Bound<Vec<ScopeColumn>> {
        let parts: Vec<&str> = name
            .0
            .iter()
            .filter_map(|part| part.as_ident())
            .map(|ident| ident.value.as_str())
            .collect();
        let (database, table) = match parts.as_slice() {
            [table] => (None, *table),
            [database, table] => (Some(*database), *table),
            _ => return Err(SqlError::bad_table(&object_text(name))),
        };
        let scope = &self.block()?.scope;
        let mut tables = scope.tables_named(database, table).peekable();
        if tables.peek().is_none() {
            return Err(SqlError::bad_table(&parts.join(".")));
        }
        let columns = tables.flat_map(|table| &table.columns);
        let is_key = |column: &ScopeColumn| column.name.starts_with(CLUSTERED_KEY);
        let columns = columns.filter(|column| !is_key(column) && !column.invisible);
        let columns: Vec<ScopeColumn> = columns.cloned().collect();
        self.check_wildcard_of(database, Some(table), &columns)?;
        Ok(columns)
    }

    /// Error 1142 for a `*` of tables that the reader may read in part. EXISTS does not ask what it stands for: there,
    /// `shown` is enough, if it is anything.
    fn check_wildcard_of(
        &self,
        database: Option<&str>,
        table: Option<&str>,
        shown: &[ScopeColumn],
    ) -> Bound<()> {
        match self.blocks.last() {
            Some(block) if !block.lists_nothing || shown.is_empty() => {
                self.check_wildcard(block.scope.restricted(database, table))
            }
            _ => Ok(()),
        }
    }

    fn item<'s>(&mut self, expr: &'s Expr, name: String) -> Bound<BoundItem<'s>> {
        self.keeps_digits = self.block()?.keeps_digits && matches!(inside(expr), Expr::Subquery(_));
        let value = match self.listed_integer_variable(expr) {
            Ok(None) => self.whole_value(expr),
            Ok(Some(variable)) => Ok(variable),
            Err(error) => Err(error),
        };
        self.keeps_digits = false;
        let mut value = value?;
        let is_plain = is_plain_column(expr).is_some();
        if !is_plain && !self.block()?.keeps_digits {
            value = self.call("$result", vec![value])?;
        }
        let header = match value.as_column().filter(|_| is_plain) {
            Some(column) => {
                let scopes = self.blocks.iter().rev().map(|block| &block.scope);
                let tables = scopes.flat_map(|scope| &scope.tables);
                let mut columns = tables.flat_map(|table| &table.columns);
                columns
                    .find(|known| known.id == column)
                    .map(|known| known.header(&name))
            }
            None => None,
        };
        let header = header.unwrap_or_else(|| Header {
            name: name.clone(),
            ..Header::default()
        });
        Ok(BoundItem {
            expr: Some(expr),
            name,
            value,
            header,
        })
    }

    fn order_keys(
        &mut self,
        order_by: &[OrderByExpr],
        items: &[BoundItem<'_>],
    ) -> Bound<Vec<(OrderKey, bool)>> {
        let mut keys = Vec::with_capacity(order_by.len());
        // Made when a key asks for it.
        let mut places: Option<HashMap<&Expr, usize>> = None;
        for (before, item) in order_by.iter().enumerate() {
            self.block()?.ordered_so_far = before;
            let descends = item.options.asc == Some(false);
            let expr = &item.expr;
            if let Some(position) = self.position(expr, items.len(), "order clause")? {
                keys.push((OrderKey::Item(position), descends));
                continue;
            }
            // Other numbers order nothing.
            if number_digits(expr).is_some() {
                continue;
            }
            if let Some(name) = plain_name(expr)
                && let Some(position) = item_named(items, name)?
            {
                keys.push((OrderKey::Item(position), descends));
                continue;
            }
            let places = places.get_or_insert_with(|| places_of(items));
            keys.push(match places.get(expr).copied() {
                Some(position) => (OrderKey::Item(position), descends),
                None => (OrderKey::Value(self.whole_value(expr)?), descends),
            });
        }
        Ok(keys)
    }

    /// What is bound over the rows below groups, as it is above them.
    fn above_groups(
        &mut self,
        keys: &Keys,
        (items, order, having): (
            &mut [BoundItem<'_>],
            &mut [(OrderKey, bool)],
            &mut Option<Scalar>,
        ),
        pending: &mut [Pending],
    ) -> Bound<()> {
        for item in items.iter_mut() {
            item.value = keys.in_expression(item.value.clone());
        }
        for (position, again) in &self.block()?.repeated_items {
            items[*position].value = again.clone();
        }
        for (key, _) in order {
            if let OrderKey::Value(value) = key {
                *value = keys.in_expression(value.clone());
            }
        }
        *having = having.take().map(|having| keys.in_expression(having));
        pending_above_groups(keys, pending);
        for (_, value) in &mut self.block()?.ordered_items {
            *value = keys.in_expression(value.clone());
        }
        for (_, function) in &mut self.block()?.functions {
            let above = function.clone();
            *function = above.map_operands(&mut |operand| keys.in_expression(operand));
        }
        Ok(())
    }

    /// The columns that are named above groups.
    fn named_above_groups(
        &mut self,
        items: &[BoundItem<'_>],
        order: &[(OrderKey, bool)],
        having: Option<&Scalar>,
        pending: [&[Pending]; 2],
    ) -> Bound<ColumnSet> {
        let mut named = ColumnSet::new();
        items
            .iter()
            .for_each(|item| item.value.add_columns(&mut named));
        for (key, _) in order {
            if let OrderKey::Value(value) = key {
                value.add_columns(&mut named);
            }
        }
        having
            .into_iter()
            .for_each(|having| having.add_columns(&mut named));
        for pending in pending.into_iter().flatten() {
            let condition = pending.condition.iter();
            condition.for_each(|condition| condition.add_columns(&mut named));
            named.union_with(pending.right.free_columns());
        }
        for (_, function) in &self.block()?.functions {
            function.for_each_operand(&mut |operand| operand.add_columns(&mut named));
        }
        // Values of subqueries are no columns of groups.
        for pending in pending.into_iter().flatten() {
            match pending.kind {
                DependentKind::Mark(column) | DependentKind::Single(column) => named.remove(column),
                _ => {}
            }
        }
        Ok(named)
    }
}

fn pending_above_groups(keys: &Keys, pending: &mut [Pending]) {
    for pending in pending {
        let condition = pending.condition.take();
        pending.condition = condition.map(|condition| keys.in_expression(condition));
        if !pending.right.free_columns().is_empty() {
            let right = std::mem::replace(&mut pending.right, Relation::unit());
            pending.right = right.map_scalars(&mut |scalar| keys.in_expression(scalar));
        }
    }
}

/// The first item that is each expression, of those that have one value however often they are computed.
fn places_of<'s>(items: &[BoundItem<'s>]) -> HashMap<&'s Expr, usize> {
    let mut places = HashMap::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        if let Some(expr) = item.expr.filter(|_| is_repeatable(&item.value)) {
            places.entry(expr).or_insert(position);
        }
    }
    places
}

/// The item that a name in ORDER BY means: an alias, or a column, as [`named_items`] says of the same name. Error 1052
/// if there are several columns that differ.
fn item_named(items: &[BoundItem<'_>], name: &str) -> Bound<Option<usize>> {
    // An expression without an alias has its text as its name.
    let is_named = |item: &BoundItem<'_>| is_same(&item.name, name);
    let is_expression = |item: &BoundItem<'_>| {
        let expr = item.expr;
        expr.is_some_and(|expr| is_plain_column(expr).is_none())
    };
    let mut first = None;
    for (at, item) in items.iter().enumerate() {
        if !is_named(item) {
            continue;
        }
        if is_expression(item) {
            return Ok(Some(at));
        }
        let column = *first.get_or_insert(at);
        if items[column].value != item.value {
            return Err(SqlError::non_unique_column(name, "order clause"));
        }
    }
    Ok(first)
}

/// What DISTINCT rows are ordered by, over what they show: items that are named in it are columns.
fn of_shown(value: Scalar, named: &[(usize, Scalar)], outputs: &[Output]) -> Scalar {
    value.replace(&|part| {
        let mut named = named.iter();
        let (at, _) = named.find(|(_, item)| item == part)?;
        let output = outputs.get(*at)?;
        let is_same_type = output.field.data_type() == part.field().data_type();
        is_same_type.then(|| Scalar::column(output.id, Arc::clone(&output.field)))
    })
}

/// 3591.
fn window_defined_twice(name: &str) -> SqlError {
    SqlError::new(
        codes::WINDOW_DUPLICATE_NAME,
        format!("Window '{name}' is defined twice."),
    )
}

/// DISTINCT rows are ordered by what they show: 3066 of an aggregate, and 3065 of anything else.
fn not_shown(is_aggregate: bool) -> SqlError {
    match is_aggregate {
        true => SqlError::new(
            codes::AGGREGATE_IN_ORDER_NOT_SELECT,
            "Expression of ORDER BY clause is not in SELECT list, contains aggregate function; this is incompatible \
             with DISTINCT",
        ),
        false => SqlError::new(
            codes::FIELD_IN_ORDER_NOT_SELECT,
            "Expression of ORDER BY clause is not in SELECT list; this is incompatible with DISTINCT",
        ),
    }
}

/// A column as a statement names it.
fn qualified_name(column: &ScopeColumn) -> Expr {
    Expr::CompoundIdentifier(vec![
        Ident::with_quote('`', &column.table.alias),
        Ident::with_quote('`', &column.name),
    ])
}

fn wildcard_item<'s>(column: &ScopeColumn) -> BoundItem<'s> {
    BoundItem {
        expr: None,
        name: column.name.clone(),
        value: column.scalar(),
        header: column.header(&column.name),
    }
}

/// Whether the header of an item is its text.
fn has_text_as_header(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(expr) if is_plain_column(expr).is_none())
}

/// The header of an item without an alias.
pub fn header_of(expr: &Expr, written: Option<&str>) -> String {
    let inner = bare(expr);
    if let Some(column) = is_plain_column(inner) {
        return column.value.clone();
    }
    // The value of a parameter is no part of the text.
    if written.is_some_and(is_parameter) {
        return PARAMETER.to_string();
    }
    if let Some(header) = header_of_literal(inner).or_else(|| name_of_constant(inner)) {
        return header;
    }
    match inner {
        Expr::Value(value) if matches!(value.value, Literal::Number(..)) && inner != expr => {
            value.to_string()
        }
        _ => match written {
            Some(written) => shown_in_header(written).to_string(),
            None => shown_in_header(&expr.to_string()).to_string(),
        },
    }
}

/// How a parameter is written.
const PARAMETER: &str = "?";

/// Whether an item is a parameter, perhaps in parentheses.
fn is_parameter(written: &str) -> bool {
    let is_around = |letter: char| matches!(letter, '(' | ')' | '+') || letter.is_whitespace();
    written.trim_matches(is_around) == PARAMETER
}
