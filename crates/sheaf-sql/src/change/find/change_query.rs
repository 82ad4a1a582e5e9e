//! What UPDATE and DELETE have in common: their tables, and the query that finds the rows.
//!
//! A statement that changes rows is planned as the SELECT that finds them. It delivers, for each table that is
//! changed, the encoded clustered key of the row ([`CLUSTERED_KEY`], NULL where an outer join found none), and behind
//! the keys the new values:
//!
//! ```text
//!   UPDATE t JOIN u ON u.id = t.u SET t.a = t.a + u.b WHERE u.c = 1 ORDER BY t.d LIMIT 5
//!   SELECT t.<key>, t.a + u.b FROM t JOIN u ON u.id = t.u WHERE u.c = 1 ORDER BY t.d LIMIT 5
//! ```
//!
//! So rows are found as fast as queries find them, and every expression means what it means in a query. The tables are
//! locked for changes before the query is planned, so their definitions stay. Rows that others change meanwhile are
//! found out when they are locked (`isolation/transaction.rs`).

use std::borrow::Cow;
use std::sync::Arc;

use sheaf_access::{CLUSTERED_KEY, cancel};
use sheaf_frontend::StatementText;
use sheaf_frontend::bind::header_of;
use sheaf_storage::sync::atomic::Ordering;
use sheaf_table::{
    ChangeGuard, ChangeSet, Column, Privileges, Table, TableDefinition, TableError, View,
    WriteGuard,
};
use sheaf_types::Value;
use sheaf_types::error::codes;
use sqlparser::ast;

use super::through_view::{ChangedView, changed_views, check_change_of_view, no_deletes};
use crate::change::values::assigned::last_part;
use crate::error::{Result, SqlError};
use crate::parser::change::name_of;
use crate::parser::statement::TableName;
use crate::parser::{Parsed, ParsedQuery};
use crate::query::run::MAX_REPLANS;
use crate::query::values::select_of;
use crate::session::Session;
use crate::virtual_database::is_virtual_database;

/// A table in the FROM of a statement that changes rows.
pub(crate) struct Reference {
    /// The name that columns are qualified with.
    pub(crate) alias: String,
    /// The table whose rows are changed: of a view, the one that it has the rows of. `None`: they cannot be changed.
    pub(crate) table: Option<Arc<Table>>,
    pub(crate) view: Option<Arc<View>>,
    /// How the view is changed, if it can be: of one that joins tables, as the one that is assigned.
    pub(crate) changed_view: Option<Arc<ChangedView>>,
    /// The ways in which a view of several tables can be changed.
    joined: Vec<Arc<ChangedView>>,
    database: String,
    /// The statement gives it a name of its own.
    has_alias: bool,
    /// A table of another database has the same name here, so columns need the database, too.
    shares_name: bool,
}

impl Reference {
    /// Rows that no table has: of a derived table, or a table function.
    fn of_rows(alias: &ast::TableAlias) -> Reference {
        Reference {
            alias: alias.name.value.clone(),
            table: None,
            view: None,
            changed_view: None,
            joined: Vec::new(),
            database: String::new(),
            has_alias: true,
            shares_name: false,
        }
    }

    /// Error 1288 for a derived table, or a view that cannot be changed; 1395 for rows of several tables to delete.
    pub(crate) fn changeable(&self, verb: &str) -> Result<&Arc<Table>> {
        self.table
            .as_ref()
            .ok_or_else(|| match (self.joined.first(), verb) {
                (Some(view), "DELETE") => no_deletes(&view.database, &view.name),
                _ => SqlError::non_updatable_table(&self.alias, verb),
            })
    }

    /// The expression that delivers the row's clustered key.
    pub(crate) fn key(&self) -> ast::Expr {
        let view = self.changed_view.as_ref();
        self.column(view.map_or(CLUSTERED_KEY, |view| view.key.as_str()))
    }

    /// Whether it is a view that joins tables, of which one is changed.
    pub(crate) fn joins(&self) -> bool {
        self.changed_view.as_ref().is_some_and(|view| view.joins)
    }

    /// Takes a view of several tables for the first one of which a column is assigned. Any of them has the error of a
    /// column that is none, if there `is_no_other` table.
    fn choose_table(&mut self, assigned: &[ast::Assignment], is_no_other: bool) {
        let chosen = assigned.iter().find_map(|assignment| {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return None;
            };
            let parts = name.0.iter().filter_map(|part| part.as_ident());
            let parts: Vec<&str> = parts.map(|part| part.value.as_str()).collect();
            let (column, table) = parts.split_last()?;
            let is_own = match table {
                [] => true,
                [table] => *table == self.alias,
                [database, table] => *database == self.database && *table == self.alias,
                _ => false,
            };
            let mut joined = self.joined.iter().filter(|_| is_own);
            joined.find(|view| view.has_column(column)).cloned()
        });
        let any = self
            .joined
            .first()
            .filter(|_| is_no_other && !assigned.is_empty());
        if let Some(chosen) = chosen.or_else(|| any.cloned()) {
            self.table = Some(Arc::clone(&chosen.table));
            self.changed_view = Some(chosen);
        }
    }

    /// The name of a column, which means that of no other table.
    pub(crate) fn column(&self, column: &str) -> ast::Expr {
        let database = self.shares_name.then_some(self.database.as_str());
        let parts = database.into_iter().chain([self.alias.as_str(), column]);
        ast::Expr::CompoundIdentifier(parts.map(quoted).collect())
    }

    /// True if `name` means this reference.
    fn is_called(&self, name: &TableName) -> bool {
        let database = |written: &String| *written == self.database;
        name.table == self.alias && name.database.as_ref().is_none_or(database)
    }
}

fn quoted(name: &str) -> ast::Ident {
    ast::Ident::with_quote('`', name)
}

/// The tables of a statement in the order in which they are written, and the columns that joins make one of.
pub(crate) struct References(pub(crate) Vec<Reference>, JoinedColumns);

impl References {
    /// The columns that `*` shows, or `alias.*`. `None`: joins make one of two columns, or the columns are not those of
    /// tables.
    pub(crate) fn columns_shown(&self, of: Option<&str>) -> Option<Vec<ast::SelectItem>> {
        let References(references, joined) = self;
        if !joined.names.is_empty() || joined.natural.is_some() {
            return None;
        }
        let mut items = Vec::new();
        let mut is_known = false;
        for reference in references {
            if of.is_some_and(|name| name != reference.alias) {
                continue;
            }
            is_known = true;
            let columns = match &reference.view {
                Some(view) => &view.definition.columns,
                None => &reference.table.as_ref()?.definition.columns,
            };
            let columns = columns.iter().filter(|column| !column.invisible);
            items.extend(
                columns.map(|column| ast::SelectItem::UnnamedExpr(reference.column(&column.name))),
            );
        }
        is_known.then_some(items)
    }
}

/// Columns of two tables that USING and NATURAL make one: the name alone is that of the table whose rows the join
/// keeps.
#[derive(Default)]
struct JoinedColumns {
    /// With whether that is the table on the right.
    names: Vec<(String, bool)>,
    natural: Option<bool>,
}

impl JoinedColumns {
    fn add(&mut self, operator: &ast::JoinOperator) {
        use ast::JoinOperator as Operator;
        let (constraint, keeps_right) = match operator {
            Operator::Right(constraint) | Operator::RightOuter(constraint) => (constraint, true),
            Operator::Join(constraint)
            | Operator::Inner(constraint)
            | Operator::Left(constraint)
            | Operator::LeftOuter(constraint)
            | Operator::CrossJoin(constraint)
            | Operator::StraightJoin(constraint) => (constraint, false),
            _ => return,
        };
        match constraint {
            ast::JoinConstraint::Using(columns) => {
                let names = columns.iter().map(last_part);
                self.names.extend(names.map(|name| (name, keeps_right)));
            }
            ast::JoinConstraint::Natural => self.natural = Some(keeps_right),
            _ => {}
        }
    }

    /// Whether a column is that of the last table that has it; `None` if no join has made one of several. NATURAL makes
    /// one of those that are `visible`.
    fn keeps_right(&self, column: &str, visible: bool) -> Option<bool> {
        let mut names = self.names.iter();
        let found = names.find(|(name, _)| name.eq_ignore_ascii_case(column));
        let natural = self.natural.filter(|_| visible);
        found.map(|(_, keeps_right)| *keeps_right).or(natural)
    }
}

impl References {
    /// Whether a view that joins tables is changed.
    pub(crate) fn joins_views(&self) -> bool {
        self.0.iter().any(Reference::joins)
    }

    /// An error if there is a view: plans that are kept know nothing of the privileges of its definer.
    pub(crate) fn check_no_views(&self) -> Result<()> {
        match self.0.iter().any(|reference| reference.view.is_some()) {
            true => Err(SqlError::not_supported_yet("kept plans of views")),
            false => Ok(()),
        }
    }

    /// The reference that a DELETE names: a table with an alias by that alone, another one by its own name, in
    /// `database` if the DELETE names none. Errors 1109 if there is none, and 1066 if there are several.
    pub(crate) fn find(&self, name: &TableName, database: Option<&str>) -> Result<usize> {
        let written = name.database.as_deref();
        let is_called = |known: &Reference| {
            let is_there = match known.has_alias {
                true => written.is_none(),
                false => written.or(database) == Some(&known.database),
            };
            is_there && known.alias == name.table
        };
        let mut found = (0..self.0.len()).filter(|known| is_called(&self.0[*known]));
        match (found.next(), found.next()) {
            (Some(known), None) => Ok(known),
            (Some(_), Some(_)) => Err(SqlError::non_unique_table(&name.table)),
            (None, _) => Err(SqlError::unknown_table_in(&name.table, "MULTI DELETE")),
        }
    }

    /// Whether a table has a column of this name. It is not known of derived tables.
    pub(crate) fn have_column(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|reference| match (&reference.view, &reference.table) {
                (Some(view), _) => {
                    let mut columns = view.definition.columns.iter();
                    columns.any(|column| column.name.eq_ignore_ascii_case(name))
                }
                (None, Some(table)) => table.definition.column_position(name).is_some(),
                (None, None) => false,
            })
    }

    /// Reference and position of a column by its name. Errors 1054 and 1052.
    pub(crate) fn column(&self, name: &ast::ObjectName) -> Result<(usize, usize)> {
        let parts: Vec<&str> = name
            .0
            .iter()
            .filter_map(|part| part.as_ident())
            .map(|ident| ident.value.as_str())
            .collect();
        let unknown = || SqlError::bad_field(&parts.join("."), "field list");
        let (qualifier, column) = match parts.as_slice() {
            [column] => (None, *column),
            [table, column] => (Some((None, *table)), *column),
            [database, table, column] => (Some((Some(*database), *table)), *column),
            _ => return Err(unknown()),
        };
        let mut found = None;
        for (number, reference) in self.0.iter().enumerate() {
            if let Some((database, table)) = qualifier {
                let name = TableName {
                    database: database.map(str::to_string),
                    table: table.to_string(),
                };
                if !reference.is_called(&name) {
                    continue;
                }
                // A derived table that is named cannot be changed, whatever its columns are.
                reference.changeable("UPDATE")?;
            }
            let Some(table) = &reference.table else {
                continue;
            };
            let position = match &reference.changed_view {
                Some(view) => view.column(column)?,
                None => table.definition.column_position(column),
            };
            let Some(position) = position else {
                continue;
            };
            let is_visible = |(number, position): (usize, usize)| {
                let Reference {
                    table,
                    changed_view,
                    ..
                } = &self.0[number];
                let mut tables = table.iter().filter(|_| changed_view.is_none());
                !tables.any(|table| table.definition.columns[position].invisible)
            };
            let visible = is_visible((number, position)) && found.is_none_or(is_visible);
            found = match (found, self.1.keeps_right(column, visible)) {
                (None, _) | (Some(_), Some(true)) => Some((number, position)),
                (first, Some(false)) => first,
                (Some(_), None) => {
                    return Err(SqlError::non_unique_column(column, "field list"));
                }
            };
        }
        found.ok_or_else(|| match self.0.iter().find(|known| known.table.is_none()) {
            // Whatever its columns are.
            Some(derived) if self.0.len() == 1 => {
                SqlError::non_updatable_table(&derived.alias, "UPDATE")
            }
            _ => unknown(),
        })
    }
}

impl Session {
    /// Looks up the tables of a FROM. Errors 1146 and 1046.
    pub(crate) fn references_of(&self, tables: &[ast::TableWithJoins]) -> Result<References> {
        self.references_to_assign(tables, &[])
    }

    /// As [`Self::references_of`], of a statement that assigns columns.
    pub(crate) fn references_to_assign(
        &self,
        tables: &[ast::TableWithJoins],
        assigned: &[ast::Assignment],
    ) -> Result<References> {
        let mut references = References(Vec::new(), JoinedColumns::default());
        for table in tables {
            self.add_references(table, &mut references)?;
        }
        let names: Vec<String> = references
            .0
            .iter()
            .map(|known| known.alias.clone())
            .collect();
        for reference in &mut references.0 {
            let mut same = names.iter().filter(|name| **name == reference.alias);
            reference.shares_name = !reference.database.is_empty() && same.nth(1).is_some();
            reference.choose_table(assigned, names.len() == 1);
        }
        Ok(references)
    }

    fn add_references(
        &self,
        tables: &ast::TableWithJoins,
        references: &mut References,
    ) -> Result<()> {
        for join in &tables.joins {
            references.1.add(&join.join_operator);
        }
        let joined = tables.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&tables.relation).chain(joined) {
            match factor {
                factor if is_dual(factor) => {}
                ast::TableFactor::Table { name, alias, .. } => {
                    let (database, table) = self.resolve(&name_of(name)?)?;
                    self.check_sees_table(&database, &table)?;
                    let is_virtual =
                        is_virtual_database(&database) || self.is_system_table(&database, &table);
                    let names = self.table_names();
                    let view = names.view(&database, &table);
                    let changed = view
                        .as_ref()
                        .map(|view| changed_views(self, view, "UPDATE"));
                    let mut joined: Vec<Arc<ChangedView>> = match changed {
                        Some(Ok(changed)) => changed.into_iter().map(Arc::new).collect(),
                        _ => Vec::new(),
                    };
                    let changed_view = match joined.len() {
                        1 => joined.pop(),
                        _ => None,
                    };
                    references.0.push(Reference {
                        alias: alias
                            .as_ref()
                            .map_or_else(|| table.clone(), |alias| alias.name.value.clone()),
                        table: match (is_virtual || view.is_some(), &changed_view) {
                            (_, Some(changed)) => Some(Arc::clone(&changed.table)),
                            (true, None) => None,
                            (false, None) => Some(names.table(&database, &table)?),
                        },
                        view,
                        changed_view,
                        joined,
                        database,
                        has_alias: alias.is_some(),
                        shares_name: false,
                    });
                }
                ast::TableFactor::NestedJoin {
                    table_with_joins, ..
                } => self.add_references(table_with_joins, references)?,
                ast::TableFactor::Derived { alias, .. } => {
                    let alias = alias.as_ref();
                    let alias = alias.ok_or_else(SqlError::derived_without_alias)?;
                    references.0.push(Reference::of_rows(alias));
                }
                ast::TableFactor::JsonTable { alias, .. } => {
                    let alias = alias.as_ref();
                    let alias = alias.ok_or_else(SqlError::table_function_without_alias)?;
                    references.0.push(Reference::of_rows(alias));
                }
                other => return Err(SqlError::not_supported_yet(other)),
            }
        }
        Ok(())
    }

    /// Error 1143 for a column of a reference, by its position in the table, that the session does not have a privilege
    /// on.
    pub(crate) fn check_column(
        &self,
        reference: &Reference,
        position: usize,
        privilege: Privileges,
    ) -> Result<()> {
        match &reference.table {
            Some(table) => {
                let view = reference.changed_view.as_deref();
                self.check_column_of(table, view, position, privilege)
            }
            None => Ok(()),
        }
    }

    /// The same of a table, and of the view through which it is changed.
    pub(crate) fn check_column_of(
        &self,
        table: &Table,
        view: Option<&ChangedView>,
        position: usize,
        privilege: Privileges,
    ) -> Result<()> {
        if self.client.has_all_rights() {
            return Ok(());
        }
        let definition = &table.definition;
        match view {
            Some(view) => {
                let mut columns = view.columns.iter();
                let found = columns.find(|(_, known)| *known == Some(position));
                let column = found.map_or("", |(name, _)| name.as_str());
                let view = (view.database.as_str(), view.name.as_str());
                self.client.require_on_column(view, column, privilege)
            }
            None if definition.is_temporary() => Ok(()),
            None => {
                let column = &definition.columns[position].name;
                let table = (definition.database.as_str(), definition.name.as_str());
                self.client.require_on_column(table, column, privilege)
            }
        }
    }

    /// Error 1142 for a table or a view that the session may not name in a query.
    pub(crate) fn check_may_name(&self, reference: &Reference) -> Result<()> {
        match (&reference.changed_view, &reference.table) {
            (Some(view), _) => self.client.check_read(&view.database, &view.name),
            (None, Some(table)) if !table.definition.is_temporary() => {
                let definition = &table.definition;
                self.client
                    .check_read(&definition.database, &definition.name)
            }
            (None, _) => Ok(()),
        }
    }

    /// Error 1142 for a table or a view of whose rows the session may change nothing. Which columns it may assign is
    /// checked by [`Self::check_column`].
    pub(crate) fn check_may_change(
        &self,
        reference: &Reference,
        privilege: Privileges,
    ) -> Result<()> {
        match (&reference.changed_view, &reference.table) {
            (Some(view), _) => check_change_of_view(&self.client, &self.engine, view, privilege),
            (None, Some(table)) if !table.definition.is_temporary() => {
                let (database, name) = (&table.definition.database, &table.definition.name);
                self.client
                    .require_on_some_column(database, name, privilege)
            }
            (None, _) => Ok(()),
        }
    }

    /// Opens tables for writing, as [`Self::lock_tables`] does: `choose` says which of the references. Error 1142 for
    /// one that the session does not have the privilege for. `assigned`: what an UPDATE assigns.
    pub(crate) fn lock_for_change<T>(
        &mut self,
        (from, assigned): (&[ast::TableWithJoins], &[ast::Assignment]),
        privilege: Privileges,
        choose: impl Fn(&References) -> Result<(T, Vec<usize>)>,
    ) -> Result<(References, T, ChangeSet)> {
        let verb = match privilege == Privileges::DELETE {
            true => "DELETE",
            false => "UPDATE",
        };
        for _ in 0..MAX_REPLANS {
            let references = self.references_to_assign(from, assigned)?;
            let (chosen, targets) = choose(&references)?;
            let mut tables = Vec::new();
            for target in targets {
                let table = references.0[target].changeable(verb)?;
                let (database, name) = (&table.definition.database, &table.definition.name);
                self.check_changeable(database)?;
                self.check_may_change(&references.0[target], privilege)?;
                let alias = &references.0[target].alias;
                match &references.0[target].changed_view {
                    Some(view) => {
                        let name = (view.database.as_str(), view.name.as_str());
                        self.table_locks.check_to_change(name, alias)?;
                    }
                    None if table.definition.is_temporary() => {}
                    None => self.table_locks.check_to_change((database, name), alias)?,
                }
                tables.push(Arc::clone(table));
            }
            let mut definitions = tables.iter().map(|table| &table.definition);
            self.check_writable(definitions.all(TableDefinition::is_temporary))?;
            if let Some(locked) = self.lock_tables(&tables)? {
                return Ok((references, chosen, locked));
            }
        }
        Err(SqlError::definition_changed())
    }

    /// With `sql_safe_updates` and without LIMIT, a condition on a key has to narrow down the rows of each table that
    /// is changed, whether the plan uses that key or not. Error 1175. With LIMIT, views are asked for a key.
    pub(crate) fn check_safe_update(
        &mut self,
        query: ParsedQuery<'_>,
        references: &References,
        targets: impl IntoIterator<Item = usize>,
        verb: &str,
    ) -> Result<()> {
        if query.ast.limit_clause.is_some() {
            return self.check_keys_of_views(references, targets, verb);
        }
        if !self.variables.sql_safe_updates() {
            return Ok(());
        }
        let view = self.transactions.current_view(self.engine.storage())?;
        let planned = self.plan_change(query, view)?;
        for target in targets {
            let reference = &references.0[target];
            let mut rows = planned.physical.explain.iter();
            let row = match &reference.changed_view {
                Some(view) => rows.find(|row| row.table.as_deref() == Some(view.alias.as_str())),
                None => {
                    let alias = Some(reference.alias.as_str());
                    rows.find(|row| row.id == Some(1) && row.table.as_deref() == alias)
                }
            };
            // What is not read at all has no row.
            if row.is_some_and(|row| row.possible_keys.is_none()) {
                return Err(SqlError::update_without_key());
            }
        }
        Ok(())
    }

    /// Which rows LIMIT takes of a view is said by the keys of its table that the view has all columns of.
    ///
    /// # Errors
    /// 1288 for a view without such a key, if `updatable_views_with_limit` is NO.
    fn check_keys_of_views(
        &mut self,
        references: &References,
        targets: impl IntoIterator<Item = usize>,
        verb: &str,
    ) -> Result<()> {
        for target in targets {
            let reference = &references.0[target];
            let Some(view) = &reference.changed_view else {
                continue;
            };
            if view.shows_a_key() {
                continue;
            }
            let are_updatable = self.variables.get("updatable_views_with_limit")?;
            if are_updatable.to_string() == "NO" {
                return Err(SqlError::non_updatable_table(&reference.alias, verb));
            }
            self.warnings.note(
                codes::WARN_VIEW_WITHOUT_KEY,
                "View being updated does not have complete key of the underlying table in it",
            );
        }
        Ok(())
    }

    /// Opens tables for writing, with those that foreign keys connect them to. They are taken in the order of their
    /// names, so that two statements cannot wait for each other. `None`: a definition has changed since they were
    /// looked up.
    pub(crate) fn lock_tables(&mut self, targets: &[Arc<Table>]) -> Result<Option<ChangeSet>> {
        let check = self.variables.foreign_key_checks();
        let (catalog, zone) = (self.engine.catalog(), self.variables.time_zone());
        let schema_version = catalog.schema_version();
        let tables = match check {
            true if self.unrelated_tables.has(schema_version, targets) => Cow::Borrowed(targets),
            true => {
                let related = catalog.related_tables(targets, zone);
                let unrelated = &mut self.unrelated_tables;
                unrelated.note(schema_version, targets, &related);
                Cow::Owned(related)
            }
            false => {
                let mut tables = targets.to_vec();
                let name = |table: &Arc<Table>| {
                    let definition = &table.definition;
                    // A temporary table may have the name of another one.
                    let (database, name) = (&definition.database, &definition.name);
                    (database.clone(), name.clone(), definition.id)
                };
                tables.sort_by_key(name);
                tables.dedup_by(|a, b| Arc::ptr_eq(a, b));
                Cow::Owned(tables)
            }
        };
        let is_free = self.holds_no_table();
        let mut guards = Vec::with_capacity(tables.len());
        for table in tables.iter() {
            let guard = match self.transactions.take_kept_table(table) {
                Some(guard) => Ok(Some(guard)),
                None => self
                    .relock_for_change_of_rows(table, &guards, is_free && guards.is_empty())
                    .map(|guard| guard.map(ChangeGuard::from)),
            };
            match guard {
                Ok(Some(guard)) => guards.push(guard),
                Ok(None) => {
                    self.transactions.return_tables(guards);
                    return Ok(None);
                }
                Err(error) => {
                    self.transactions.return_tables(guards);
                    return Err(error);
                }
            }
        }
        let current = |(guard, table): (&ChangeGuard, &Arc<Table>)| Arc::ptr_eq(guard, table);
        // A table that began to refer to one of these came after them.
        let catalog = self.engine.catalog();
        let is_complete = !check
            || catalog.schema_version() == schema_version
            || catalog.related_tables(targets, zone).len() == tables.len();
        if guards.iter().zip(tables.iter()).all(current) && is_complete {
            return Ok(Some(self.opened_tables(guards, check)));
        }
        self.transactions.return_tables(guards);
        Ok(None)
    }

    /// Tables that a statement has opened to change them.
    fn opened_tables(&mut self, guards: Vec<ChangeGuard>, check: bool) -> ChangeSet {
        let mut tables = ChangeSet::new(guards, check);
        tables.give_out(self.variables.auto_increment_series());
        if self.outcome.chosen_insert_id.load(Ordering::Relaxed) > 0 {
            tables.choose(Arc::clone(&self.outcome.chosen_insert_id));
        }
        if tables.has_links() {
            let flag = self.handle.cancel_flag().clone();
            tables.end_when(move || flag.is_cancelled());
        }
        self.transactions.note_opened_targets();
        tables
    }

    /// As [`lock_tables`](Self::lock_tables), for a table that no other session knows: opens those that it refers to.
    pub(crate) fn lock_tables_of_new(&mut self, guard: WriteGuard) -> Result<ChangeSet> {
        let check = self.variables.foreign_key_checks();
        let zone = self.variables.time_zone();
        for _ in 0..MAX_REPLANS {
            let keys = guard.definition.foreign_keys.iter().filter(|_| check);
            let catalog = self.engine.catalog();
            // The table itself is not there. What else is missing, the check of the keys says.
            let parents = keys.filter_map(|key| {
                let parent = catalog.table(&key.referenced_database, &key.referenced_table);
                Some(parent.ok()?.in_time_zone(zone))
            });
            let parents: Vec<Arc<Table>> = parents.collect();
            let mut guards = match parents.is_empty() {
                true => Vec::new(),
                false => match self.lock_tables(&parents)? {
                    Some(tables) => tables.into_tables(),
                    None => continue,
                },
            };
            guards.push(ChangeGuard::from(guard));
            return Ok(self.opened_tables(guards, check));
        }
        Err(SqlError::definition_changed())
    }
}

/// Whether this is `DUAL`, which is no table. A table may be named so between backticks.
pub(crate) fn is_dual(factor: &ast::TableFactor) -> bool {
    let ast::TableFactor::Table { name, .. } = factor else {
        return false;
    };
    let [part] = name.0.as_slice() else {
        return false;
    };
    let mut name = part.as_ident().into_iter();
    name.any(|name| name.quote_style.is_none() && name.value.eq_ignore_ascii_case("dual"))
}

/// Position of a table that was locked.
pub(crate) fn position_of(locked: &ChangeSet, table: &Arc<Table>) -> Result<usize> {
    locked
        .position(table)
        .ok_or_else(|| SqlError::unknown("a table to change was not locked"))
}

/// Whether IGNORE makes a warning of what is wrong with a row: it is left as it was.
pub(crate) fn is_ignorable(error: &TableError) -> bool {
    matches!(
        error,
        TableError::DuplicateKey { .. }
            | TableError::NoParentRow { .. }
            | TableError::HasChildRow { .. }
    )
}

/// The query that finds the rows to change.
pub(crate) struct ChangeQuery<'a> {
    pub(crate) hints: &'a [ast::OptimizerHint],
    pub(crate) projection: Vec<ast::Expr>,
    pub(crate) from: &'a [ast::TableWithJoins],
    pub(crate) selection: &'a Option<ast::Expr>,
    pub(crate) order_by: &'a [ast::OrderByExpr],
    pub(crate) limit: &'a Option<ast::Expr>,
}

impl ChangeQuery<'_> {
    pub(crate) fn build(self) -> Result<Box<ast::Query>> {
        // What the change finds its rows by is copied.
        cancel::check_room_for_tree()?;
        let mut query = select_of(self.projection)?;
        if let ast::SetExpr::Select(select) = query.body.as_mut() {
            select.optimizer_hints = self.hints.to_vec();
            select.from = self.from.to_vec();
            select.selection = self.selection.clone();
        }
        if !self.order_by.is_empty() {
            query.order_by = Some(ast::OrderBy {
                kind: ast::OrderByKind::Expressions(self.order_by.to_vec()),
                interpolate: None,
            });
        }
        query.limit_clause = self
            .limit
            .clone()
            .map(|limit| ast::LimitClause::LimitOffset {
                limit: Some(limit),
                offset: None,
                limit_by: Vec::new(),
            });
        Ok(query)
    }
}

/// The clustered key in a column of the query's result; `None` where an outer join found no row.
pub(crate) fn key_of(value: &Value) -> Result<Option<&[u8]>> {
    match value {
        Value::Bytes(key) => Ok(Some(key)),
        Value::Null => Ok(None),
        _ => Err(SqlError::unknown("a clustered key that is no byte string")),
    }
}

/// What RETURNING shows of a table's rows: each column of `*`, and each expression under the name that is written.
pub(crate) fn returned_items(
    items: Parsed<'_, &[ast::SelectItem]>,
    table: &Table,
) -> Vec<ast::SelectItem> {
    let text = StatementText::new(items.text);
    let written = text.returned_items();
    let mut all = Vec::with_capacity(items.ast.len());
    for (number, item) in items.ast.iter().enumerate() {
        match item {
            ast::SelectItem::UnnamedExpr(expr) => {
                let written = written
                    .get(number)
                    .filter(|_| written.len() == items.ast.len());
                let name = header_of(expr, written.copied());
                all.push(ast::SelectItem::ExprWithAlias {
                    expr: expr.clone(),
                    alias: ast::Ident::with_quote('`', name),
                });
            }
            ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => {
                all.extend(columns_of(&table.definition.columns));
            }
            item => all.push(item.clone()),
        }
    }
    all
}

fn columns_of(columns: &[Column]) -> impl Iterator<Item = ast::SelectItem> {
    let columns = columns.iter().filter(|column| !column.invisible);
    columns.map(|column| {
        let name = ast::Ident::with_quote('`', &column.name);
        ast::SelectItem::UnnamedExpr(ast::Expr::Identifier(name))
    })
}

/// Adds the items of RETURNING behind the key; `*` is all columns of the table.
pub(crate) fn add_items(query: &mut ast::Query, items: &[ast::SelectItem], columns: &[Column]) {
    let ast::SetExpr::Select(select) = query.body.as_mut() else {
        return;
    };
    for item in items {
        match item {
            ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => {
                select.projection.extend(columns_of(columns));
            }
            item => select.projection.push(item.clone()),
        }
    }
}
