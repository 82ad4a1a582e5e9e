//! What a name means: a column of a block, or an item of its select list.

use std::cmp::Ordering;

use sheaf_algebra::Scalar;
use sheaf_types::error::codes;

use crate::bind::block::{Clause, NamedItem};
use crate::bind::scope::{Found, ScopeColumn};
use crate::bind::{Binder, Bound};
use crate::error::SqlError;
use crate::syntax::is_same;

impl Binder<'_> {
    /// What `column`, `table.column` or `database.table.column` means.
    pub(super) fn named(
        &mut self,
        database: Option<&str>,
        table: Option<&str>,
        column: &str,
    ) -> Bound<Scalar> {
        let Some(innermost) = self.blocks.last() else {
            return Err(SqlError::bad_field(column, "field list"));
        };
        let clause = innermost.clause;
        let last = self.blocks.len() - 1;
        for at in (0..self.blocks.len()).rev() {
            let block = &self.blocks[at];
            if table.is_none()
                && block.clause == Clause::Having
                && !block.in_aggregate
                && block.in_item.is_none()
                && let Some(item) = self.item_named(at, column)?
            {
                return Ok(item);
            }
            let block = &self.blocks[at];
            let is_above_groups = at == last
                && block.clause == Clause::Having
                && !block.in_aggregate
                && block.in_item.is_none()
                && !block.in_grouping;
            let found = match table {
                _ if is_above_groups => block.column_above_groups(database, table, column),
                Some(table) => block.scope.column_of(database, table, column),
                None => block.scope.column(column),
            };
            match found {
                Found::Column(found) => {
                    // The name means that of another table as much.
                    if !is_above_groups
                        && let Some(hidden) = block.scope.unreadable_in(database, table, column)
                    {
                        return Err(self.denied_column(&hidden.table, column));
                    }
                    let (id, column) = (found.id, ScopeColumn::scalar(found));
                    self.note_named(at);
                    if self.open_aggregates.is_empty() {
                        self.blocks[at].note_written(id);
                    }
                    return Ok(column);
                }
                Found::Several => {
                    let name = qualified(table, column);
                    return Err(SqlError::non_unique_column(&name, clause.name()));
                }
                Found::Nothing => {
                    // It hides those further out.
                    if let Some(hidden) = block.scope.unreadable_in(database, table, column) {
                        return Err(self.denied_column(&hidden.table, column));
                    }
                }
            }
            let is_around = at + 1 < self.blocks.len();
            let knows_items = matches!(block.clause, Clause::GroupBy | Clause::OrderBy)
                || block.clause == Clause::Having && block.in_aggregate
                || (block.clause == Clause::FieldList || block.in_item.is_some()) && is_around;
            if table.is_none()
                && knows_items
                && let Some(item) = self.item_named(at, column)?
            {
                return Ok(item);
            }
        }
        // Whether there is such a column is not told of a table that is read in part.
        let mut scopes = self.blocks.iter().rev().map(|block| &block.scope);
        if let Some(restricted) = scopes.find_map(|scope| scope.restricted(database, table).next())
        {
            return Err(self.denied_column(&restricted.table, column));
        }
        let mut name = qualified(table, column);
        if let Some(database) = database {
            name = format!("{database}.{name}");
        }
        Err(SqlError::bad_field(&name, clause.name()))
    }

    /// Tells the innermost aggregate that is open that a column of this block is named. What a subquery in an argument
    /// reads by itself says nothing about the aggregate's place, nor does what an aggregate in it is given.
    fn note_named(&mut self, block: usize) {
        let Some(open) = self.open_aggregates.last_mut() else {
            return;
        };
        match block.cmp(&open.block) {
            Ordering::Less => open.names_outer = open.names_outer.max(Some(block)),
            Ordering::Equal => open.names_own = true,
            Ordering::Greater => {}
        }
    }

    /// The item of the select list that has this alias, bound where its name stands, in the scopes of the block. In
    /// HAVING, what the block groups by hides it. Error 1247 for an item of the same list that comes later.
    fn item_named(&mut self, at: usize, name: &str) -> Bound<Option<Scalar>> {
        let block = &self.blocks[at];
        let is_around = at + 1 < self.blocks.len();
        if block.in_item.is_some() && !is_around
            || block
                .grouped_names
                .iter()
                .any(|grouped| is_same(grouped, name))
        {
            return Ok(None);
        }
        let mut items = block.items.iter();
        // In HAVING a column that is shown is an item, too.
        let in_having = block.clause == Clause::Having;
        let is_named = |item: &NamedItem| item.is_alias || item.is_header || in_having;
        let item = items.find(|item| is_named(item) && is_same(&item.name, name));
        let Some(item) = item else {
            return Ok(None);
        };
        if block.in_item.is_some_and(|open| item.position >= open) {
            return Ok(None);
        }
        if item.is_ambiguous {
            return Err(SqlError::non_unique_column(name, block.clause.name()));
        }
        let is_alias = item.is_alias || item.is_header;
        let (expr, position) = (item.expr.clone(), item.position);
        if block.clause == Clause::FieldList && position >= block.items_so_far {
            return Err(SqlError::new(
                codes::ILLEGAL_REFERENCE,
                format!("Reference '{name}' not supported (forward reference in item list)"),
            ));
        }
        let mut repeated = block.repeated_items.iter();
        if matches!(block.clause, Clause::Having | Clause::OrderBy)
            && let Some((_, again)) = repeated.find(|(item, _)| *item == position)
        {
            return Ok(Some(again.clone()));
        }
        let inner = self.blocks.split_off(at + 1);
        // An aggregate of a subquery does not become one of this block by an alias.
        let open_aggregates = match is_alias && !inner.is_empty() {
            true => Some(std::mem::take(&mut self.open_aggregates)),
            false => None,
        };
        let open = self.blocks[at].in_item.replace(position);
        let item = self.value(&expr);
        self.blocks[at].in_item = open;
        self.blocks.extend(inner);
        if let Some(open_aggregates) = open_aggregates {
            self.open_aggregates = open_aggregates;
        }
        let item = item?;
        let block = &mut self.blocks[at];
        if block.clause == Clause::OrderBy {
            block.ordered_items.push((position, item.clone()));
        }
        Ok(Some(item))
    }
}

fn qualified(table: Option<&str>, column: &str) -> String {
    match table {
        Some(table) => format!("{table}.{column}"),
        None => column.to_string(),
    }
}
