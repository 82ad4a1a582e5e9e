//! GROUP BY, and what may be named above it.
//!
//! An expression above groups is bound over the columns of FROM, as any other. Then what the block groups by is looked
//! for in it: a column stays, since a group passes its keys on, and an expression becomes the column that it was
//! computed as. What is left of other columns has to be the same in all rows of a group
//! ([`Properties::determined_in_a_run`]), or of any row where ONLY_FULL_GROUP_BY is off. The group carries it.
//!
//! ```text
//!   SELECT a + 1, MAX(b), u.name FROM t JOIN u ON u.id = t.c GROUP BY a + 1, t.c
//!
//!   Project #9, #10, #6
//!     Group by #9, #2 carrying #6: #10 := max(#1)
//!       Project #1, #2, #6, #9 := #0 + 1
//! ```
//!
//! [`Properties::determined_in_a_run`]: sheaf_algebra::properties::Properties::determined_in_a_run

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::ScalarValue;
use sheaf_algebra::properties::constants;
use sheaf_algebra::relation::{Item, SortKey};
use sheaf_algebra::scalar::Places;
use sheaf_algebra::{ColumnId, ColumnSet, Relation, Scalar};
use sheaf_exec::typing::Purpose;
use sheaf_types::error::codes;
use sqlparser::ast::{Expr, GroupByExpr, GroupByWithModifier};

use super::block::{Clause, Grouping, NamedItem, with_subqueries};
use super::from::plain_name;
use super::grouped::cannot_group_on;
use super::scope::{Found, Scope};
use super::select::ListedItem;
use super::{Binder, Bound, has_word, unsupported};
use crate::error::SqlError;
use crate::syntax::{is_plain_column, is_same};

/// What a block groups by.
pub(super) struct Keys {
    pub columns: Vec<ColumnId>,
    /// What is computed for them, below the group.
    pub computed: Vec<Item>,
    /// The same expressions as they are in a select list, which notes more than GROUP BY.
    shown: Vec<(Scalar, ColumnId)>,
    /// Where the two have what.
    computed_places: Places,
    shown_places: Places,
    /// WITH ROLLUP: keys that come again. What is named above the group is the first of them.
    repeated: Vec<Item>,
    /// The items of the select list that are keys, by their position.
    items: Vec<usize>,
    /// WITH ROLLUP: the column that tells which keys are rolled up.
    pub level: Option<ColumnId>,
}

impl Keys {
    /// The column of the group that an expression is, and the key as it was written.
    fn known(&self, scalar: &Scalar) -> Option<(&Scalar, ColumnId)> {
        let fingerprint = scalar.fingerprint();
        let is_computed = |at: usize| self.computed[at].value == *scalar;
        if let Some(at) = self.computed_places.find(fingerprint, is_computed) {
            return Some((&self.computed[at].value, self.computed[at].column));
        }
        let is_shown = |at: usize| self.shown[at].0 == *scalar;
        let (value, column) = &self.shown[self.shown_places.find(fingerprint, is_shown)?];
        Some((value, *column))
    }

    /// An expression above the group.
    pub fn in_expression(&self, scalar: Scalar) -> Scalar {
        if self.level.is_some() {
            return self.rolled_up(scalar);
        }
        if self.computed.is_empty() {
            return scalar;
        }
        scalar.replace(&|scalar| {
            let (value, column) = self.known(scalar)?;
            Some(Scalar::column(column, Arc::clone(value.field())))
        })
    }
}

impl Keys {
    /// As [`Self::in_expression`], where keys may be NULL because they are rolled up.
    fn rolled_up(&self, scalar: Scalar) -> Scalar {
        scalar.replace(&|scalar| {
            let column = match self.known(scalar) {
                Some((_, column)) => column,
                None => scalar
                    .as_column()
                    .filter(|column| self.columns.contains(column))?,
            };
            let field = scalar.field().as_ref().clone().with_nullable(true);
            Some(Scalar::column(column, Arc::new(field)))
        })
    }

    /// The order in which WITH ROLLUP gives its rows: by the first key, within it by the second, and each sum behind
    /// what it sums up.
    fn order(&self, level: &Scalar, binder: &Binder<'_>) -> Bound<Vec<SortKey>> {
        let mut order = Vec::with_capacity(2 * self.columns.len());
        for (at, column) in self.columns.iter().enumerate() {
            let bit = 1u64 << (self.columns.len() - 1 - at);
            let bit = Scalar::literal(ScalarValue::UInt64(Some(bit)));
            let is_summed = binder.call("$bit_and", vec![level.clone(), bit])?;
            let field = binder.columns.get(*column).field.as_ref().clone();
            let key = Scalar::column(*column, Arc::new(field.with_nullable(true)));
            for value in [is_summed, key] {
                let descends = false;
                order.push(SortKey { value, descends });
            }
        }
        Ok(order)
    }
}

impl Binder<'_> {
    /// What the innermost block groups by; `None` if it has no GROUP BY.
    pub(super) fn keys(
        &mut self,
        group_by: &GroupByExpr,
        relation: Relation,
        items: &[ListedItem<'_>],
    ) -> Bound<(Relation, Option<Keys>)> {
        let GroupByExpr::Expressions(exprs, modifiers) = group_by else {
            return unsupported("GROUP BY ALL");
        };
        let is_rollup = match modifiers.as_slice() {
            [] => false,
            [GroupByWithModifier::Rollup] => true,
            _ => return unsupported("GROUP BY modifiers other than WITH ROLLUP"),
        };
        if exprs.is_empty() {
            return Ok((relation, None));
        }
        self.block()?.clause = Clause::GroupBy;
        let mut keys = Keys {
            columns: Vec::new(),
            computed: Vec::new(),
            shown: Vec::new(),
            computed_places: Places::default(),
            shown_places: Places::default(),
            repeated: Vec::new(),
            items: Vec::new(),
            level: is_rollup.then(|| {
                let field = Arc::new(Field::new("level", DataType::UInt64, false));
                self.columns.add_computed("level", field)
            }),
        };
        for expr in exprs {
            let expr = match self.position(expr, items.len(), "group statement")? {
                Some(position) => {
                    self.key_of_item(position, &items[position].expr, &mut keys)?;
                    continue;
                }
                None => expr,
            };
            if let Some(name) = plain_name(expr)
                && let Some((position, item)) = self.item_of_key(name)?
            {
                match self.key_of_item(position, &item, &mut keys) {
                    Err(error) if error.is(codes::WRONG_GROUP_FIELD) => {
                        return Err(cannot_group_on(name));
                    }
                    bound => bound?,
                };
                continue;
            }
            let is_column = self.key(expr, &mut keys)?;
            let name = match expr {
                Expr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.as_str()),
                expr => plain_name(expr),
            };
            if let Some(name) = name {
                let block = self.block()?;
                // A column may be grouped by under another name.
                let is_its_name = !matches!(block.scope.column(name), Found::Nothing);
                if is_column && is_its_name {
                    block.grouped_names.push(name.to_string());
                }
            }
        }
        if keys.level.is_some() || has_word(self.context.sql, "grouping") {
            let level = |level| Scalar::made(level, &self.columns);
            let level = keys.level.map(level);
            let written = keys.columns.iter().map(|key| self.written(&keys, *key));
            let written = written.collect();
            self.block()?.grouping = Some(Grouping {
                level,
                keys: written,
            });
        }
        let pending = std::mem::take(&mut self.block()?.pending);
        Ok((with_subqueries(relation, pending)?, Some(keys)))
    }

    /// What a key may be written as.
    fn written(&self, keys: &Keys, key: ColumnId) -> Vec<Scalar> {
        let mut written = vec![Scalar::column(
            key,
            Arc::clone(&self.columns.get(key).field),
        )];
        let computed = keys.computed.iter().filter(|item| item.column == key);
        written.extend(computed.map(|item| item.value.clone()));
        let shown = keys.shown.iter().filter(|(_, column)| *column == key);
        written.extend(shown.map(|(value, _)| value.clone()));
        written
    }

    /// An item of the select list as a key.
    fn key_of_item(&mut self, position: usize, item: &Expr, keys: &mut Keys) -> Bound<()> {
        let repeated = keys.repeated.len();
        self.block()?.in_item = Some(position);
        let bound = self.key(item, keys);
        self.block()?.in_item = None;
        bound?;
        let is_named_again = keys.items.contains(&position);
        keys.items.push(position);
        if let Some(again) = keys.repeated.get(repeated).filter(|_| !is_named_again) {
            let field = again.value.field().as_ref().clone().with_nullable(true);
            let again = Scalar::column(again.column, Arc::new(field));
            self.block()?.repeated_items.push((position, again));
        }
        Ok(())
    }

    /// WITH ROLLUP, a key that comes again is a key of its own.
    fn repeat(&mut self, value: Scalar, keys: &mut Keys) {
        if keys.level.is_some() {
            let column = self.new_column("again", &value);
            keys.columns.push(column);
            keys.repeated.push(Item { column, value });
        }
    }

    /// The item of the select list that a name in GROUP BY means, and its position. A column of one table of FROM hides
    /// it, unless it is the item. Where several tables have the name it is the item's, and what USING and NATURAL join
    /// by counts as several.
    ///
    /// # Errors
    /// 1052 for a name of columns that differ.
    fn item_of_key(&mut self, name: &str) -> Bound<Option<(usize, Expr)>> {
        let block = self.block()?;
        let mut items = block.items.iter();
        let item = items.find(|item| is_same(&item.name, name) && !item.is_behind_alias);
        let Some(item) = item else {
            return Ok(None);
        };
        if item.is_ambiguous {
            return Err(SqlError::non_unique_column(name, block.clause.name()));
        }
        let is_hidden = match block.scope.column_of_tables(name) {
            Found::Column(column) => {
                let shown = block.scope.column_named(&item.expr);
                shown.is_none_or(|shown| shown.id != column.id)
            }
            Found::Nothing => block.scope.unreadable_in(None, None, name).is_some(),
            Found::Several => false,
        };
        Ok((!is_hidden).then(|| (item.position, item.expr.clone())))
    }

    /// Whether it is a column of FROM.
    fn key(&mut self, expr: &Expr, keys: &mut Keys) -> Bound<bool> {
        let value = match self.value(expr) {
            Err(error) if error.is(codes::INVALID_GROUP_FUNC_USE) => {
                return Err(cannot_group_on(&expr.to_string()));
            }
            value => value?,
        };
        let own = self.own_columns()?;
        if let Some(column) = value.as_column()
            && own.contains(column)
        {
            match keys.columns.contains(&column) {
                true => self.repeat(value, keys),
                false => keys.columns.push(column),
            }
            self.block()?.grouped_columns.push(column);
            return Ok(true);
        }
        // What has subqueries is the column of its group when it comes again.
        if let Some(column) = value.as_column()
            && let Some(item) = keys.computed.iter().find(|item| item.column == column)
        {
            let value = item.value.clone();
            self.repeat(value, keys);
            return Ok(false);
        }
        let has_subqueries = !self.block()?.pending.is_empty();
        let fingerprint = value.fingerprint();
        let is_it = |at: usize| keys.computed[at].value == value;
        if keys.computed_places.find(fingerprint, is_it).is_some() {
            self.repeat(value, keys);
            return Ok(false);
        }
        let column = self.new_column(&expr.to_string(), &value);
        if has_subqueries {
            let of_group = Scalar::column(column, Arc::clone(value.field()));
            self.block()?.grouped.push((expr.clone(), of_group));
        } else {
            let shown = self.with_purpose(Purpose::Shown, |this| this.value(expr))?;
            keys.shown_places.add(shown.fingerprint(), keys.shown.len());
            keys.shown.push((shown, column));
        }
        keys.columns.push(column);
        keys.computed_places.add(fingerprint, keys.computed.len());
        keys.computed.push(Item { column, value });
        Ok(false)
    }

    /// The columns of the innermost block's FROM.
    pub(super) fn own_columns(&mut self) -> Bound<ColumnSet> {
        let block = self.block()?;
        let columns = block.scope.tables.iter().flat_map(|table| &table.columns);
        Ok(columns.map(|column| column.id).collect())
    }

    /// The groups of a relation. `named`: what is computed above them. `is_ordered`: the query orders its rows.
    ///
    /// # Errors
    /// 1055 for a column that is not the same in all rows of a group.
    pub(super) fn grouped(
        &mut self,
        mut relation: Relation,
        keys: Option<Keys>,
        named: &ColumnSet,
        is_ordered: bool,
    ) -> Bound<Relation> {
        let block = self.block()?;
        let aggregates = std::mem::take(&mut block.aggregates);
        block.aggregate_places = Places::default();
        block.aggregated = aggregates.iter().map(|(id, _)| *id).collect();
        let in_aggregates = std::mem::take(&mut block.pending_in_aggregates);
        relation = with_subqueries(relation, in_aggregates)?;
        let level = keys.as_ref().and_then(|keys| keys.level);
        let has_keys = keys.is_some();
        let order = match (&keys, level) {
            (Some(keys), Some(level)) if !is_ordered => {
                let field = Arc::clone(&self.columns.get(level).field);
                keys.order(&Scalar::column(level, field), self)?
            }
            _ => Vec::new(),
        };
        let (by, computed) = match keys {
            Some(keys) => {
                let computed = keys.computed.into_iter().chain(keys.repeated);
                (keys.columns, computed.collect())
            }
            None => (Vec::new(), Vec::<Item>::new()),
        };
        if !computed.is_empty() {
            let items = self.passed_on(&relation).chain(computed).collect();
            relation = relation.project(items);
        }
        let given: ColumnSet = by.iter().copied().collect();
        let below = relation.column_set();
        let others = named.clone().intersection(&below).difference(&given);
        let block = self.block()?;
        // MySQL asks before it folds: IFNULL(5, k) names k.
        let folded = block
            .written_columns
            .clone()
            .intersection(&below)
            .difference(&given);
        let mut asked = folded.difference(&block.written_in_keys);
        asked.union_with(&others);
        let constants = match asked.is_empty() {
            true => Vec::new(),
            false => constants::written(&relation),
        };
        if self.context.session.only_full_group_by() && !asked.is_empty() {
            // Rows of WITH ROLLUP have lost what would determine others.
            let determined = match level {
                Some(_) => given.clone(),
                None => relation.properties().determined_in_a_run(&given),
            };
            let is_constant = |column| constants.iter().any(|known| known.column == column);
            let asked = asked.iter().filter(|column| !determined.contains(*column));
            let wrong: Vec<ColumnId> = asked
                .filter(|column| level.is_some() || !is_constant(*column))
                .collect();
            if !wrong.is_empty() {
                return Err(self.not_grouped(&wrong, has_keys));
            }
        }
        // Beside aggregates of no rows, a constant is what it is.
        let constants: Vec<Item> = constants
            .into_iter()
            .filter(|known| !has_keys && !known.may_be_missing && others.contains(known.column))
            .map(|known| Item {
                column: known.column,
                value: known.value.clone(),
            })
            .collect();
        let is_constant = |column| constants.iter().any(|item| item.column == column);
        let carried = others.iter().filter(|column| !is_constant(*column));
        let carried = carried.collect();
        Ok(match level {
            None if constants.is_empty() => relation.group(by, carried, aggregates),
            None => {
                let groups = relation.group(by, carried, aggregates);
                let items = self.passed_on(&groups).chain(constants).collect();
                groups.project(items)
            }
            Some(level) => relation.rollup(by, carried, aggregates, level).sort(order),
        })
    }

    /// A list of all columns of a relation.
    pub(super) fn passed_on<'a>(&'a self, relation: &'a Relation) -> impl Iterator<Item = Item> {
        relation.columns().iter().map(|id| Item {
            column: *id,
            value: Scalar::made(*id, &self.columns),
        })
    }

    /// 1055, or 1140 where there is no GROUP BY, for the first expression that names one of these columns: those of the
    /// select list come first, then HAVING, then those of ORDER BY.
    fn not_grouped(&self, wrong: &[ColumnId], has_keys: bool) -> SqlError {
        let block = self.blocks.last();
        let places = block.into_iter().flat_map(|block| &block.written_places);
        let first = places
            .filter(|place| wrong.contains(&place.column))
            .min_by_key(|place| {
                let clause = match place.clause {
                    Clause::FieldList => 0,
                    Clause::Having => 1,
                    _ => 2,
                };
                (clause, place.number)
            });
        let (clause, number) = match first {
            Some(place) if place.clause == Clause::Having => ("HAVING clause", place.number),
            Some(place) if place.clause == Clause::OrderBy => ("ORDER BY clause", place.number),
            Some(place) => ("SELECT list", place.number),
            None => ("SELECT list", 1),
        };
        let place = format!("#{number} of {clause}");
        let column = first.map_or(wrong[0], |place| place.column);
        let name = &self.columns.get(column).name;
        let scope = block.map(|block| &block.scope);
        let mut columns = scope
            .into_iter()
            .flat_map(|scope| &scope.tables)
            .flat_map(|table| &table.columns);
        let name = match columns.find(|known| known.id == column) {
            Some(known) if known.table.table.is_empty() => {
                format!("{}.{}", known.table.alias, known.name)
            }
            Some(known) => {
                let table = &known.table;
                format!("{}.{}.{}", table.database, table.alias, known.name)
            }
            None => name.clone(),
        };
        match has_keys {
            true => SqlError::not_in_group_by(&place, &name),
            false => SqlError::mixed_with_groups(&place, &name),
        }
    }
}

/// What the names of items mean to GROUP BY, HAVING and ORDER BY. An expression hides columns of the same name, and of
/// several expressions it is the first:
///
/// ```text
///   SELECT a x, b + 1 x, c + 1 x    x is b + 1
///   SELECT a x, b x                 error 1052 where x is named
///   SELECT a x                      HAVING a > 1 is x > 1
///   SELECT 'v', a + 1               HAVING v = 'v' AND `a + 1` > 2
/// ```
pub(super) fn named_items(items: &[ListedItem<'_>], scope: &Scope) -> Vec<NamedItem> {
    let mut all: Vec<NamedItem> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    let mut add = |item: NamedItem| match positions.entry(item.name.to_lowercase()) {
        Entry::Vacant(entry) => {
            entry.insert(all.len());
            all.push(item);
        }
        Entry::Occupied(entry) => {
            let known = &mut all[*entry.get()];
            match (known.is_behind_alias, item.is_behind_alias) {
                (true, false) => *known = item,
                (false, true) => {}
                _ if known.is_ambiguous || is_plain_column(&known.expr).is_none() => {}
                _ if is_plain_column(&item.expr).is_none() => *known = item,
                _ => known.is_ambiguous = !is_same_column(&known.expr, &item.expr, scope),
            }
        }
    };
    for (position, listed) in items.iter().enumerate() {
        let (expr, alias, header) = (&listed.expr, &listed.alias, &listed.header);
        let item = |name: &str, is_behind_alias: bool| NamedItem {
            name: name.to_string(),
            is_alias: alias.is_some() && !is_behind_alias,
            is_header: header.is_some(),
            is_behind_alias,
            is_ambiguous: false,
            expr: expr.as_ref().clone(),
            position,
        };
        let column = is_plain_column(expr).map(|column| column.value.as_str());
        match (alias, column) {
            (Some(alias), column) => {
                add(item(alias, false));
                if let Some(column) = column.filter(|column| !is_same(column, alias)) {
                    add(item(column, true));
                }
            }
            (None, Some(column)) => add(item(column, false)),
            (None, None) => {
                if let Some(header) = header {
                    add(item(header, false));
                }
            }
        }
    }
    all
}

fn is_same_column(one: &Expr, other: &Expr, scope: &Scope) -> bool {
    if one == other {
        return true;
    }
    match (scope.column_named(one), scope.column_named(other)) {
        (Some(one), Some(other)) => one.id == other.id,
        _ => false,
    }
}
