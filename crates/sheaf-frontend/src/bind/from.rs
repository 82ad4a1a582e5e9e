//! FROM: tables, derived tables, common table expressions, and joins of them.
//!
//! Each table becomes a relation, and a scope in which its columns are found by name. A join puts both together:
//!
//! ```text
//!   FROM t, u LEFT JOIN v USING (id), LATERAL (SELECT t.a) d
//!        |  |           |             |
//!        |  |           |             a dependent join: it names a column of a table to its left
//!        |  |           columns of v may be missing; `id` is one column of the scope
//!        |  an inner join without a condition, as the comma is
//!        a scan, with the hints of the table
//! ```
//!
//! `DUAL` is no table: a FROM of it is one row without columns. A name in ON sees the tables of its join, and those of
//! the queries around it.

use std::sync::Arc;

use datafusion_expr::TableSource;
use sheaf_access::CLUSTERED_KEY;
use sheaf_algebra::column::Origin;
use sheaf_algebra::relation::{
    DependentKind, Derived, Item, Join, JoinKind, Operator, Project, Scan,
};
use sheaf_algebra::scalar::Comparison;
use sheaf_algebra::{Column, Relation, Scalar};
use sheaf_exec::{SheafTableSource, TableHints};
use sheaf_types::error::codes;
use sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor,
    TableIndexHintForClause, TableIndexHintType, TableIndexHints, TableWithJoins,
};

use super::block::{Block, Clause, Pending, with_subqueries};
use super::scope::{Scope, ScopeColumn, TableName};
use super::{Binder, Bound, Output, unsupported};
use crate::error::SqlError;
use crate::query::{Listed, Readable};
use crate::syntax::{is_same, object_text};

/// The numbers of derived tables begin here, behind all of references to tables.
const FIRST_DERIVED: u32 = 1 << 30;

/// The most tables and derived tables of one FROM (error 1116 beyond). The optimizer orders as many.
const MAX_TABLES_OF_JOIN: usize = 64;

impl Binder<'_> {
    /// The tables of a FROM; a row without columns where there is none.
    pub(super) fn from(&mut self, tables: &[TableWithJoins]) -> Bound<(Relation, Scope)> {
        if has_more_tables(tables, MAX_TABLES_OF_JOIN) {
            return Err(SqlError::too_many_tables(MAX_TABLES_OF_JOIN));
        }
        let mut all: Option<(Relation, Scope)> = None;
        // DUAL stands alone.
        if tables.len() > 1
            && tables
                .iter()
                .any(|table| alias_of_dual(&table.relation).is_some())
        {
            return Err(SqlError::parse_error("DUAL", 1));
        }
        for table in tables {
            let before: Vec<&Scope> = all.iter().map(|(_, names)| names).collect();
            let Some((relation, scope)) = self.table_with_joins(table, &before)? else {
                continue;
            };
            all = Some(match all {
                None => (relation, scope),
                Some((left, mut names)) => {
                    names.append(scope)?;
                    let joined = match takes_from(&relation, &left) {
                        true => left.dependent_join(DependentKind::Inner, relation, None),
                        false => left.join(JoinKind::Inner, relation, None),
                    };
                    (joined, names)
                }
            });
        }
        Ok(all.unwrap_or_else(|| (Relation::unit(), Scope::default())))
    }

    /// `None` for `DUAL`, which is no table. `before`: the tables that lateral ones may name.
    fn table_with_joins(
        &mut self,
        table: &TableWithJoins,
        before: &[&Scope],
    ) -> Bound<Option<(Relation, Scope)>> {
        if let Some(alias) = alias_of_dual(&table.relation) {
            return match (alias, table.joins.first()) {
                (None, None) => Ok(None),
                (Some(alias), _) => Err(SqlError::parse_error(&alias.name.value, 1)),
                (None, Some(join)) => Err(SqlError::parse_error(&join.to_string(), 1)),
            };
        }
        for join in &table.joins {
            if alias_of_dual(&join.relation).is_some() {
                return Err(SqlError::parse_error("DUAL", 1));
            }
        }
        let first = self.hints.tables_so_far();
        let (mut relation, mut names) = self.table_factor(&table.relation, before)?;
        for join in &table.joins {
            let middle = self.hints.tables_so_far();
            (relation, names) = self.join(relation, names, join, before)?;
            if matches!(join.join_operator, JoinOperator::StraightJoin(_)) {
                let end = self.hints.tables_so_far();
                self.hints.add_straight_join(first..middle, middle..end);
            }
        }
        Ok(Some((relation, names)))
    }

    fn join(
        &mut self,
        left: Relation,
        mut names: Scope,
        join: &sqlparser::ast::Join,
        before: &[&Scope],
    ) -> Bound<(Relation, Scope)> {
        let (constraint, kind, keeps_right) = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::StraightJoin(constraint) => (constraint, JoinKind::Inner, false),
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                (constraint, JoinKind::LeftOuter, false)
            }
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                (constraint, JoinKind::LeftOuter, true)
            }
            other => return unsupported(format!("{other:?}")),
        };
        if kind == JoinKind::LeftOuter && matches!(constraint, JoinConstraint::None) {
            return Err(SqlError::parse_error("", 1));
        }
        // A lateral table that keeps its rows does not see the rows that it may have to do without.
        let own = (!keeps_right).then_some(&names);
        let visible: Vec<&Scope> = before.iter().copied().chain(own).collect();
        let (right, mut right_names) = self.table_factor(&join.relation, &visible)?;
        match (kind, keeps_right) {
            (JoinKind::LeftOuter, false) => right_names.may_be_missing(),
            (JoinKind::LeftOuter, true) => names.may_be_missing(),
            _ => {}
        }
        let mut pending = Vec::new();
        let condition = match constraint {
            JoinConstraint::On(on) => {
                names.append(right_names)?;
                let mut block = Block::new(names);
                block.clause = Clause::On;
                self.blocks.push(block);
                let condition = self.condition(on);
                // ON of an inner join is a part of WHERE.
                let condition = match kind {
                    JoinKind::Inner => condition.map(|found| self.with_zero_dates(found, on)),
                    _ => condition,
                };
                let block = self.blocks.pop();
                let block = block.ok_or_else(|| SqlError::unknown("no block"))?;
                (names, pending) = (block.scope, block.pending);
                Some(condition?)
            }
            JoinConstraint::None => {
                names.append(right_names)?;
                None
            }
            JoinConstraint::Using(columns) => {
                let using: Vec<String> = columns.iter().map(object_text).collect();
                self.check_join(&names, &right_names, Some(&using))?;
                let pairs = names.join_by(right_names, Some(&using), keeps_right)?;
                self.equal(pairs)?
            }
            JoinConstraint::Natural => {
                self.check_join(&names, &right_names, None)?;
                let pairs = names.join_by(right_names, None, keeps_right)?;
                self.equal(pairs)?
            }
        };
        // A right join is a left join whose sides have changed places.
        let (first, second) = match keeps_right {
            true => (right, left),
            false => (left, right),
        };
        let is_lateral = takes_from(&second, &first);
        let (first, second) = match kind {
            JoinKind::LeftOuter if !is_lateral => {
                with_subqueries_of_sides(first, second, &mut pending)?
            }
            _ => (first, second),
        };
        if is_lateral || kind == JoinKind::LeftOuter && !pending.is_empty() {
            let kind = match kind {
                JoinKind::LeftOuter => DependentKind::LeftOuter,
                _ => DependentKind::Inner,
            };
            // What takes from both sides is tested on the right side, for each row of the left.
            let (second, condition) = match (pending.is_empty(), condition) {
                (false, Some(condition)) => {
                    (with_subqueries(second, pending)?.filter(condition), None)
                }
                (_, condition) => (second, condition),
            };
            return Ok((first.dependent_join(kind, second, condition), names));
        }
        if !pending.is_empty() {
            let joined = with_subqueries(first.join(kind, second, None), pending)?;
            let relation = match condition {
                Some(condition) => joined.filter(condition),
                None => joined,
            };
            return Ok((relation, names));
        }
        let relation = Operator::Join(Join {
            kind,
            left: Box::new(first),
            right: Box::new(second),
            condition,
        });
        Ok((relation.into(), names))
    }

    /// What the reader may read of a table or a view.
    fn readable(&self, database: &str, table: &str) -> Bound<Readable> {
        match self.context.rights {
            Some(rights) => rights.readable(database, table, self.reader(database, table)),
            None => Ok(Readable::All),
        }
    }

    /// Error 1143 for a column that a join compares and the reader may not read.
    fn check_join(&self, left: &Scope, right: &Scope, using: Option<&[String]>) -> Bound<()> {
        match left.unreadable_of_join(right, using) {
            Some((table, column)) => Err(self.denied_column(&table.table, column)),
            None => Ok(()),
        }
    }

    pub(super) fn denied_column(&self, table: &str, column: &str) -> SqlError {
        match self.context.rights {
            Some(rights) => rights.denied_column(table, column),
            None => SqlError::bad_field(column, "field list"),
        }
    }

    /// Error 1142 for tables of a `*` that the reader may read in part.
    pub(super) fn check_wildcard<'s>(
        &self,
        mut restricted: impl Iterator<Item = &'s TableName>,
    ) -> Bound<()> {
        match (restricted.next(), self.context.rights) {
            (Some(table), Some(rights)) => Err(rights.denied_table(&table.table)),
            (Some(table), None) => Err(SqlError::bad_table(&table.alias)),
            (None, _) => Ok(()),
        }
    }

    fn equal(&self, pairs: Vec<(ScopeColumn, ScopeColumn)>) -> Bound<Option<Scalar>> {
        let mut conditions = Vec::with_capacity(pairs.len());
        for (one, other) in pairs {
            let (one, other) = (one.scalar(), other.scalar());
            conditions.push(self.typing().comparison(Comparison::Equal, one, other)?);
        }
        Ok((!conditions.is_empty()).then(|| Scalar::and(conditions)))
    }

    fn table_factor(
        &mut self,
        factor: &TableFactor,
        before: &[&Scope],
    ) -> Bound<(Relation, Scope)> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                index_hints,
                ..
            } => self.table(name, alias.as_ref(), index_hints),
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                ..
            } => {
                let Some(alias) = alias else {
                    return Err(SqlError::derived_without_alias());
                };
                let first = self.tables.len();
                let blocks = self.blocks.len();
                if *lateral {
                    self.blocks.push(Block::new(visible(before)?));
                }
                let bound = self.query(subquery);
                self.blocks.truncate(blocks);
                let (relation, outputs) = bound?;
                self.hints.add_derived(&alias.name.value, first);
                let names: Vec<&str> = alias
                    .columns
                    .iter()
                    .map(|column| column.name.value.as_str())
                    .collect();
                self.derived(&alias.name.value, relation, outputs, &names)
            }
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => match self.table_with_joins(table_with_joins, before)? {
                Some(joined) => Ok(joined),
                None => Err(SqlError::parse_error("DUAL", 1)),
            },
            TableFactor::JsonTable {
                json_expr,
                json_path,
                columns,
                alias,
            } => {
                let alias = alias.as_ref().map(|alias| alias.name.value.as_str());
                let Some(alias) = alias else {
                    return Err(SqlError::table_function_without_alias());
                };
                let document = self.document_of_table(json_expr, before)?;
                self.json_table(alias, document, (json_path, columns))
            }
            other => unsupported(other.to_string()),
        }
    }

    /// A query as a table. Where it may have to be planned by itself, its columns get ids and a name of their own.
    pub(super) fn derived(
        &mut self,
        alias: &str,
        relation: Relation,
        outputs: Vec<Output>,
        names: &[&str],
    ) -> Bound<(Relation, Scope)> {
        if self.is_kept(&relation) {
            return self.kept_derived(alias, relation, &outputs, names);
        }
        let mut scope = scope_of_query(alias, &outputs, names)?;
        if !self.keeps_derived_tables {
            return Ok((relation, scope));
        }
        let reference = FIRST_DERIVED + self.derived_so_far;
        self.derived_so_far += 1;
        let mut items = Vec::with_capacity(outputs.len());
        let mut columns = std::mem::take(&mut scope.shown);
        for (position, (column, output)) in columns.iter_mut().zip(&outputs).enumerate() {
            let value = Scalar::column(output.id, Arc::clone(&output.field));
            let field = output.field.as_ref().clone().with_name(&column.name);
            column.field = Arc::new(field);
            column.id = self.columns.add(Column {
                field: Arc::clone(&column.field),
                name: column.name.clone(),
                origin: Some(Origin {
                    reference,
                    position: position as u32,
                }),
            });
            items.push(Item {
                column: column.id,
                value,
            });
        }
        let project = Project {
            input: Box::new(relation),
            items,
            derived: Some(Derived {
                reference,
                name: alias.to_string(),
            }),
        };
        let Some(table) = scope.tables.first() else {
            return unsupported("a derived table without a name");
        };
        let scope = Scope::of_table(Arc::clone(&table.name), columns);
        Ok((Operator::Project(project).into(), scope))
    }

    fn table(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        hints: &[TableIndexHints],
    ) -> Bound<(Relation, Scope)> {
        let parts: Vec<String> = name
            .0
            .iter()
            .filter_map(|part| part.as_ident())
            .map(|ident| ident.value.clone())
            .collect();
        if alias.is_some_and(|alias| !alias.columns.is_empty()) {
            return unsupported("names for the columns of a table");
        }
        let (database, table) = match parts.as_slice() {
            [table] => {
                if let Some(common) = self.common_table(table, alias)? {
                    return Ok(common);
                }
                match self.current_database() {
                    Some(database) => (database.to_string(), table.clone()),
                    None => return Err(SqlError::no_database_selected()),
                }
            }
            [database, table] => (database.clone(), table.clone()),
            _ => return Err(SqlError::parse_error(&name.to_string(), 1)),
        };
        let known_as = alias.map_or_else(|| table.clone(), |alias| alias.name.value.clone());
        self.note_table(name, &database);
        self.check_is_lasting(&database, &table)?;
        if let Some(view) = self.tables_by_name().view(&database, &table) {
            if let Some(hint) = hints.first().and_then(|hint| hint.index_names.first()) {
                return Err(SqlError::key_does_not_exist(&hint.value, &table));
            }
            // Whether it may be named at all.
            let reader = self.reader(&database, &table);
            (self.context.virtual_tables)(&database, &table, reader)?;
            let readable = self.readable(&database, &table)?;
            return self.view(view, &known_as, &readable);
        }
        let source = self.source(&database, &table, &known_as, hints)?;
        let schema = source.schema();
        let columns = schema.fields().iter().map(|field| field.name().as_str());
        let columns = columns.filter(|name| *name != CLUSTERED_KEY);
        let name = TableName {
            unreadable: self.readable(&database, &table)?.left_out(columns),
            alias: known_as,
            table,
            database,
        };
        self.scan(source, name)
    }

    /// A reference to a table.
    pub(super) fn scan(
        &mut self,
        source: Arc<dyn TableSource>,
        name: TableName,
    ) -> Bound<(Relation, Scope)> {
        self.count_block()?;
        let reference = self.tables.len() as u32;
        self.hints.add_table(&name.alias);
        let table_name = Arc::new(name);
        let schema = source.schema();
        let mut ids = Vec::with_capacity(schema.fields().len());
        let mut columns = Vec::with_capacity(schema.fields().len());
        let mut hidden = Vec::new();
        let stored = source.downcast_ref::<SheafTableSource>();
        let is_invisible = |position: usize| {
            let columns = stored.map(|stored| &stored.table.definition.columns);
            columns
                .and_then(|columns| columns.get(position))
                .is_some_and(|column| column.invisible)
        };
        let invisible: Vec<bool> = (0..schema.fields().len()).map(is_invisible).collect();
        let is_nameless = |position: usize| {
            let columns = stored.map(|stored| &stored.table.definition.columns);
            columns
                .and_then(|columns| columns.get(position))
                .is_some_and(|column| column.hidden)
        };
        let has_generated =
            stored.is_some_and(|stored| stored.table.definition.has_generated_columns());
        let mut all = Vec::new();
        for (position, field) in schema.fields().iter().enumerate() {
            let id = self.columns.add(Column {
                field: Arc::clone(field),
                name: field.name().clone(),
                origin: Some(Origin {
                    reference,
                    position: position as u32,
                }),
            });
            ids.push(id);
            let column = ScopeColumn {
                id,
                name: field.name().clone(),
                field: Arc::clone(field),
                may_be_missing: false,
                invisible: invisible[position],
                table: Arc::clone(&table_name),
            };
            if has_generated {
                all.push(column.clone());
            }
            match field.name() == CLUSTERED_KEY {
                true => hidden.push(column),
                false if table_name.unreadable.contains(field.name()) => {}
                false if is_nameless(position) => {}
                false => columns.push(column),
            }
        }
        if let Some(stored) = stored {
            self.note_indexed_expressions(stored, &all);
        }
        let padded = stored.filter(|_| self.context.session.pads_characters());
        let padded = padded.map(|stored| Arc::clone(&stored.table));
        self.tables.push(Arc::clone(&source));
        let scan = Scan {
            reference,
            name: table_name.alias.clone(),
            source,
            columns: ids,
        };
        let (rows, columns) = match padded {
            Some(table) => self.padded(scan.relation(), columns, &table.definition.columns)?,
            None => (scan.relation(), columns),
        };
        let mut scope = Scope::of_table(table_name, columns);
        if let Some(table) = scope.tables.first_mut() {
            table.columns.extend(hidden);
        }
        Ok((rows, scope))
    }

    /// The rows of a table with blanks behind the values of CHAR(n), up to n characters: the mode
    /// PAD_CHAR_TO_FULL_LENGTH. Other columns are handed on.
    fn padded(
        &mut self,
        rows: Relation,
        mut columns: Vec<ScopeColumn>,
        declared: &[sheaf_table::Column],
    ) -> Bound<(Relation, Vec<ScopeColumn>)> {
        let handed_on = rows.columns().iter().map(|column| Item {
            column: *column,
            value: Scalar::made(*column, &self.columns),
        });
        let mut items: Vec<Item> = handed_on.collect();
        let before = items.len();
        for column in &mut columns {
            let mut declared = declared.iter();
            let found = declared.find(|declared| declared.name == column.name);
            let padded = found.filter(|found| found.ty.is_character() && found.ty.is_padded());
            let Some(length) = padded.and_then(|padded| padded.ty.declared_length()) else {
                continue;
            };
            let operands = vec![
                column.scalar(),
                self.integer(i64::from(length)),
                self.text(" ")?,
            ];
            let value = self.call("rpad", operands)?;
            let value = self.typing().value(value)?;
            column.field = Arc::new(value.field().as_ref().clone().with_name(&column.name));
            column.id = self.columns.add(Column {
                field: Arc::clone(&column.field),
                name: column.name.clone(),
                origin: None,
            });
            items.push(Item {
                column: column.id,
                value,
            });
        }
        if items.len() == before {
            return Ok((rows, columns));
        }
        let project = Project {
            input: Box::new(rows),
            items,
            derived: None,
        };
        Ok((Operator::Project(project).into(), columns))
    }

    /// Whether a locking read locks what the FROM that is bound calls so. All of it in any other statement.
    pub(super) fn is_locked(&self, known_as: &str) -> bool {
        let Some(locked) = self.context.locked else {
            return true;
        };
        // A view is locked as a whole.
        let is_named = |name: &Option<String>| name.as_deref().is_none_or(|name| name == known_as);
        self.depth == self.locked_depth
            && (!self.open_views.is_empty() || locked.iter().any(is_named))
    }

    fn source(
        &mut self,
        database: &str,
        table: &str,
        known_as: &str,
        hints: &[TableIndexHints],
    ) -> Bound<Arc<dyn TableSource>> {
        let reader = self.reader(database, table);
        if let Some(source) = (self.context.virtual_tables)(database, table, reader)? {
            return Ok(source);
        }
        let opened = self.tables_by_name().table(database, table);
        let opened = opened.map_err(SqlError::from)?;
        let definition = &opened.definition;
        if self.context.session.time_zone_offset_seconds() != 0
            && let Some(column) = definition.virtual_column_of_time_zone()
        {
            return Err(SqlError::virtual_in_time_zone(table, &column.name));
        }
        let invisible_indexes = self.context.session.uses_invisible_indexes();
        let exists = |index: &str| {
            let mut known = std::iter::once(&definition.primary).chain(&definition.secondary);
            known.any(|known| {
                known.name.eq_ignore_ascii_case(index) && (!known.invisible || invisible_indexes)
            })
        };
        let mut hints = index_hints(hints, exists, table)?;
        hints.invisible_indexes = invisible_indexes;
        let reference = self.tables.len() as u32;
        let mut source = SheafTableSource::new(opened, reference, known_as.to_string(), hints);
        source.is_beside_locks = !self.is_locked(known_as);
        let outermost = self.depth == 1 && self.open_views.is_empty() || self.delivers_key;
        Ok(Arc::new(
            match self.context.listed == Listed::Changes && outermost {
                true => source.with_clustered_key(),
                false => source,
            },
        ))
    }
}

/// What lateral tables may name.
pub(super) fn visible(before: &[&Scope]) -> Bound<Scope> {
    let mut visible = Scope::default();
    for names in before {
        visible.append((*names).clone())?;
    }
    Ok(visible)
}

/// Whether something is computed for each row of `left`.
fn takes_from(right: &Relation, left: &Relation) -> bool {
    let free = right.free_columns();
    !free.is_empty() && free.intersects(&left.column_set())
}

/// Subqueries in ON of an outer join are tested for the rows of one side, before these are joined. Those that take from
/// both sides are left, and those after them, which may take their values.
fn with_subqueries_of_sides(
    mut first: Relation,
    mut second: Relation,
    all: &mut Vec<Pending>,
) -> Bound<(Relation, Relation)> {
    let mut left = Vec::new();
    for pending in std::mem::take(all) {
        let mut taken = pending.right.free_columns().clone();
        if let Some(condition) = &pending.condition {
            let own = pending.right.column_set();
            taken.union_with(&condition.columns().difference(&own));
        }
        if !left.is_empty() {
            left.push(pending);
        } else if !taken.intersects(&first.column_set()) {
            second = with_subqueries(second, vec![pending])?;
        } else if !taken.intersects(&second.column_set()) {
            first = with_subqueries(first, vec![pending])?;
        } else {
            left.push(pending);
        }
    }
    *all = left;
    Ok((first, second))
}

/// Error 1353 for names that are too many or too few.
pub(super) fn check_names(names: usize, outputs: usize) -> Bound<()> {
    match names == 0 || names == outputs {
        true => Ok(()),
        false => Err(SqlError::new(
            codes::VIEW_WRONG_LIST,
            "In definition of view, derived table or common table expression, SELECT list and column names list have \
             different column counts",
        )),
    }
}

/// The columns of a query under the name of a table; `names` are those that the alias gives. Errors 1060 and 1353.
pub(super) fn scope_of_query(alias: &str, outputs: &[Output], names: &[&str]) -> Bound<Scope> {
    check_names(names.len(), outputs.len())?;
    let table = Arc::new(TableName {
        alias: alias.to_string(),
        ..TableName::default()
    });
    let mut columns: Vec<ScopeColumn> = Vec::with_capacity(outputs.len());
    for (at, output) in outputs.iter().enumerate() {
        let name = names
            .get(at)
            .map_or(output.header.name.as_str(), |name| name);
        if columns.iter().any(|column| is_same(&column.name, name)) {
            return Err(SqlError::duplicate_field_name(name));
        }
        columns.push(ScopeColumn {
            id: output.id,
            name: name.to_string(),
            field: Arc::clone(&output.field),
            may_be_missing: false,
            invisible: false,
            table: Arc::clone(&table),
        });
    }
    Ok(Scope::of_table(table, columns))
}

/// Names that a query lists for the columns of a table.
pub(super) fn listed_names(alias: &TableAlias) -> Vec<String> {
    alias
        .columns
        .iter()
        .map(|column| column.name.value.clone())
        .collect()
}

/// A column by its name alone, in parentheses or not.
pub(super) fn plain_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(ident) if !ident.value.starts_with('@') => Some(&ident.value),
        Expr::Nested(inner) => plain_name(inner),
        _ => None,
    }
}

/// The lists of USE, FORCE and IGNORE INDEX. Error 1176 for an index that does not exist.
pub fn index_hints(
    hints: &[TableIndexHints],
    index_exists: impl Fn(&str) -> bool,
    table: &str,
) -> Bound<TableHints> {
    let mut taken = TableHints::default();
    for hint in hints {
        let names: Vec<String> = hint
            .index_names
            .iter()
            .map(|name| name.value.clone())
            .collect();
        if let Some(unknown) = names.iter().find(|name| !index_exists(name)) {
            return Err(SqlError::key_does_not_exist(unknown, table));
        }
        let (rows, order_by, group_by) =
            (&mut taken.rows, &mut taken.order_by, &mut taken.group_by);
        let purposes = match hint.for_clause {
            None => vec![rows, order_by, group_by],
            Some(TableIndexHintForClause::Join) => vec![rows],
            Some(TableIndexHintForClause::OrderBy) => vec![order_by],
            Some(TableIndexHintForClause::GroupBy) => vec![group_by],
        };
        for purpose in purposes {
            let names = names.iter().cloned();
            match hint.hint_type {
                TableIndexHintType::Use => purpose.use_index.get_or_insert_default().extend(names),
                TableIndexHintType::Force => purpose.force_index.extend(names),
                TableIndexHintType::Ignore => purpose.ignore_index.extend(names),
            }
        }
    }
    Ok(taken)
}

/// `None`: it is not `DUAL`. A table may be named so between backticks.
fn alias_of_dual(factor: &TableFactor) -> Option<Option<&TableAlias>> {
    let TableFactor::Table { name, alias, .. } = factor else {
        return None;
    };
    let [part] = name.0.as_slice() else {
        return None;
    };
    let name = part.as_ident()?;
    let is_dual = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("dual");
    is_dual.then_some(alias.as_ref())
}

/// Whether a FROM names more tables and derived tables than so many.
fn has_more_tables(tables: &[TableWithJoins], limit: usize) -> bool {
    let mut left = limit;
    let mut open: Vec<&TableWithJoins> = tables.iter().collect();
    while let Some(table) = open.pop() {
        let joined = table.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&table.relation).chain(joined) {
            match factor {
                TableFactor::NestedJoin {
                    table_with_joins, ..
                } => open.push(table_with_joins),
                _ if left == 0 => return true,
                _ => left -= 1,
            }
        }
    }
    false
}
