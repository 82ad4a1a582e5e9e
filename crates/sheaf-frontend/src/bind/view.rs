//! Views: the query of a view is bound where the view is named, as a derived table is.
//!
//! ```text
//!   CREATE VIEW v AS SELECT id, a + 1 AS b FROM t          SELECT v.b FROM v WHERE v.id = 7
//!
//!   -->   SELECT v.b FROM (SELECT id, a + 1 AS b FROM t) AS v WHERE v.id = 7
//! ```
//!
//! Inside of it, nothing of the statement around is known: no table, no common table expression, no alias. Names
//! without a database are those of the view's. Its tables are read with the privileges of the account that made it,
//! unless it says SQL SECURITY INVOKER. What is wrong inside is told of the view as a whole (error 1356), since a user
//! that names it need not know what is in there.
//!
//! While a view is made, its query is bound once, and what has to be kept of it is noted: the columns that `*` stands
//! for at that moment, and the database of each table.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use sheaf_access::CLUSTERED_KEY;
use sheaf_algebra::Relation;
use sheaf_exec::typing::Purpose;
use sheaf_table::view::{View, ViewSecurity};
use sheaf_table::{AccountName, TableNames};
use sheaf_types::Collation;
use sheaf_types::error::codes::{self, ErrorCode};
use sqlparser::ast::{Expr, Ident, ObjectName, Query, SelectItem, SetExpr, Spanned, TableFactor};
use sqlparser::tokenizer::{Location, Span};

use super::scope::{Scope, ScopeColumn, ScopeTable, TableName};
use super::{Binder, Bound, BoundPart, has_any_value, has_word};
use crate::dialect::SheafDialect;
use crate::error::SqlError;
use crate::parser::{Statement, parse_statement};
use crate::query::{Listed, Readable, Reader, ViewNotes};
use crate::statement_text::StatementText;
use crate::statement_text::edit::Edit;

/// What is wrong with the query of a view if one of these comes of it.
const OF_BROKEN_VIEWS: [ErrorCode; 11] = [
    codes::NO_SUCH_TABLE,
    codes::BAD_DB_ERROR,
    codes::BAD_FIELD_ERROR,
    codes::BAD_TABLE_ERROR,
    codes::SP_DOES_NOT_EXIST,
    codes::TABLEACCESS_DENIED_ERROR,
    codes::COLUMNACCESS_DENIED_ERROR,
    codes::DBACCESS_DENIED_ERROR,
    codes::VIEW_WRONG_LIST,
    codes::DUP_FIELDNAME,
    // The view that the statement names is told, not the one inside.
    codes::VIEW_INVALID,
];

/// The deepest nesting of views that are changed through.
const MAX_CHANGED_VIEWS: usize = 64;

/// The key of a row of a table below a view, which the view delivers.
struct DeliveredKey {
    /// What the query of the view calls the table, or the view in between.
    table: String,
    /// The column there.
    name: String,
    /// The column of the view.
    shown: String,
}

/// A view whose query is bound.
#[derive(Clone)]
pub(super) struct OpenView {
    view: Arc<View>,
}

impl OpenView {
    fn name(&self) -> (&str, &str) {
        let definition = &self.view.definition;
        (&definition.database, &definition.name)
    }
}

impl Binder<'_> {
    /// The database of names that have none.
    pub(super) fn current_database(&self) -> Option<&str> {
        match self.open_views.last() {
            Some(open) => Some(open.name().0),
            None => self.context.session.current_database(),
        }
    }

    /// What texts compare by that come from no column.
    pub(super) fn collation(&self) -> Collation {
        match self.open_views.last() {
            _ if self.binds_kept => Collation::default(),
            Some(open) => Collation::nearest(&open.view.definition.collation),
            None => self.context.session.collation(),
        }
    }

    /// What names of tables mean. All readers of a view read the same tables.
    pub(super) fn tables_by_name(&self) -> TableNames<'_> {
        match self.open_views.is_empty() {
            true => self.context.tables,
            false => self.context.tables.of_all_sessions(),
        }
    }

    /// The account whose privileges tables are read with; `None`: the session's.
    pub(super) fn definer(&self) -> Option<&AccountName> {
        let definition = &self.open_views.last()?.view.definition;
        match definition.security {
            ViewSecurity::Definer => Some(&definition.definer),
            ViewSecurity::Invoker => None,
        }
    }

    /// With whose privileges a table is read.
    pub(super) fn reader(&self, database: &str, table: &str) -> Reader<'_> {
        match self.definer() {
            Some(definer) => Reader::Definer(definer),
            None if self.tables_by_name().is_temporary(database, table) => Reader::Owner,
            None => Reader::Session,
        }
    }

    /// Error 1352 for a temporary table in the query of a view that is made.
    pub(super) fn check_is_lasting(&self, database: &str, table: &str) -> Bound<()> {
        match self.notes().is_some() && self.context.tables.is_temporary(database, table) {
            true => Err(SqlError::new(
                codes::VIEW_SELECT_TEMPORARY_TABLE,
                format!("View's SELECT refers to a temporary table '{table}'"),
            )),
            false => Ok(()),
        }
    }

    /// A reference to a view.
    pub(super) fn view(
        &mut self,
        view: Arc<View>,
        alias: &str,
        readable: &Readable,
    ) -> Bound<(Relation, Scope)> {
        let definition = &view.definition;
        let full_name = format!("{}.{}", definition.database, definition.name);
        let name = (definition.database.as_str(), definition.name.as_str());
        let is_made = |notes: &ViewNotes| (notes.database.as_str(), notes.name.as_str()) == name;
        if self.context.notes.is_some_and(is_made) {
            return Err(SqlError::no_such_table(name.0, name.1));
        }
        if self.open_views.iter().any(|open| open.name() == name) {
            return Err(SqlError::new(
                codes::VIEW_RECURSIVE,
                format!("`{}`.`{}` contains view recursion", name.0, name.1),
            ));
        }
        let first = self.tables.len();
        // Of the rows that a statement changes, their keys are delivered.
        let delivers_keys =
            self.context.listed == Listed::Changes && (self.depth == 1 || self.delivers_key);
        let keys = match delivers_keys {
            true => self.keys_of_view(&view, 0),
            false => Vec::new(),
        };
        let around = std::mem::replace(&mut self.delivers_key, !keys.is_empty());
        // The FROM of the view's query is two levels below: behind the view and behind its query.
        let locked_depth = match self.is_locked(alias) {
            true => self.depth + 2,
            false => 0,
        };
        let locked_around = std::mem::replace(&mut self.locked_depth, locked_depth);
        let bound = self.nested(|binder| binder.query_of_view(&view, &keys));
        self.locked_depth = locked_around;
        self.delivers_key = around;
        let is_made = self.context.notes.is_some();
        let (relation, outputs) = bound.map_err(|error| match is_of_broken_view(&error) {
            // It would name itself.
            true if is_made && error.code == codes::NO_SUCH_TABLE.number() => error,
            true => SqlError::invalid_view(&full_name),
            false => error,
        })?;
        self.hints.add_derived(alias, first);
        let names = definition.columns.iter().map(|column| column.name.as_str());
        let mut names: Vec<&str> = names.collect();
        names.extend(keys.iter().map(|key| key.shown.as_str()));
        let (relation, mut scope) = self.derived(alias, relation, outputs, &names)?;
        // Nothing but their names shows them.
        scope.shown.truncate(scope.shown.len() - keys.len());
        let table = TableName {
            alias: alias.to_string(),
            table: definition.name.clone(),
            database: definition.database.clone(),
            unreadable: readable.left_out(scope.shown.iter().map(|column| column.name.as_str())),
        };
        Ok((relation, under_name(scope, table)))
    }

    /// The keys that a view delivers of the tables whose rows it has.
    fn keys_of_view(&self, view: &View, depth: usize) -> Vec<DeliveredKey> {
        let definition = &view.definition;
        if !definition.is_updatable || depth == MAX_CHANGED_VIEWS {
            return Vec::new();
        }
        let parsed = parse_statement(&definition.query, &SheafDialect::default());
        let Ok(Statement::Query(query)) = parsed else {
            return Vec::new();
        };
        let tables = joined_tables(&query).unwrap_or_default();
        let is_only = tables.len() == 1;
        let mut keys = Vec::new();
        for (name, alias) in tables {
            let parts = name.0.iter().filter_map(|part| part.as_ident());
            let parts: Vec<&str> = parts.map(|part| part.value.as_str()).collect();
            let below = match parts.as_slice() {
                [table] => Some((definition.database.as_str(), *table)),
                [database, table] => Some((*database, *table)),
                _ => None,
            };
            let tables = self.context.tables.of_all_sessions();
            let below = below.and_then(|(database, table)| tables.view(database, table));
            let names = match below {
                Some(below) => {
                    let keys = self.keys_of_view(&below, depth + 1).into_iter();
                    keys.map(|key| key.shown).collect()
                }
                None => vec![CLUSTERED_KEY.to_string()],
            };
            keys.extend(names.into_iter().map(|name| DeliveredKey {
                table: alias.to_string(),
                shown: match is_only {
                    true => name.clone(),
                    false => key_of_joined(&name, alias),
                },
                name,
            }));
        }
        keys
    }

    fn query_of_view(&mut self, view: &Arc<View>, keys: &[DeliveredKey]) -> Bound<BoundPart> {
        let text = &view.definition.query;
        let Statement::Query(mut query) = parse_statement(text, &SheafDialect::default())? else {
            return Err(SqlError::parse_error(text, 1));
        };
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection.extend(keys.iter().map(|key| {
                let names = [&key.table, &key.name].map(|name| Ident::with_quote('`', name));
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names.to_vec()))
            }));
        }
        // A view locks nothing.
        query.locks.clear();
        // Nothing of what is around.
        let around = std::mem::replace(&mut self.text, Rc::new(StatementText::new(text.clone())));
        let blocks = std::mem::take(&mut self.blocks);
        let common_tables = std::mem::take(&mut self.common_tables);
        let aggregates = std::mem::take(&mut self.open_aggregates);
        let purpose = std::mem::replace(&mut self.purpose, Purpose::Other);
        let is_chosen = std::mem::take(&mut self.is_chosen);
        let drops_order = std::mem::take(&mut self.drops_order);
        let any_value = std::mem::replace(&mut self.has_any_value, has_any_value(text));
        let watches = std::mem::take(&mut self.watches_conditions);
        let enclosing = self.hints.leave_statement();
        self.keeps_derived_tables |= has_word(text, "no_merge");
        self.open_views.push(OpenView {
            view: Arc::clone(view),
        });
        let texts = self.texts.of_collation(self.collation());
        let texts = self.texts_of_view.replace(Rc::new(texts));
        let bound = self.query(&query);
        self.texts_of_view = texts;
        self.open_views.pop();
        self.hints.close(enclosing);
        self.watches_conditions = watches;
        self.has_any_value = any_value;
        self.drops_order = drops_order;
        self.is_chosen = is_chosen;
        self.purpose = purpose;
        self.open_aggregates = aggregates;
        self.common_tables = common_tables;
        self.blocks = blocks;
        self.text = around;
        bound
    }

    fn notes(&self) -> Option<&ViewNotes> {
        match self.open_views.is_empty() {
            true => self.context.notes,
            false => None,
        }
    }

    fn note(&self, place: Range<Location>, words: String) {
        // What the parser has put among the tokens stands nowhere.
        if let Some(notes) = self.notes()
            && place.start.line > 0
        {
            notes.edits.borrow_mut().push(Edit { place, words });
        }
    }

    /// The columns that a `*` stands for.
    pub(super) fn note_wildcard(&self, span: Span, columns: &[ScopeColumn]) {
        if self.notes().is_none() {
            return;
        }
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let tables = self
            .blocks
            .last()
            .map_or(&[][..], |block| &block.scope.tables);
        let is_unique = |alias: &str| {
            let of_name = tables.iter().filter(|table| table.name.alias == alias);
            of_name.count() < 2
        };
        let columns = columns.iter();
        let columns: Vec<String> = columns
            .map(|column| {
                let (alias, name) = (quoted(&column.table.alias), quoted(&column.name));
                match is_unique(&column.table.alias) {
                    true => format!("{alias}.{name}"),
                    // Tables of several databases.
                    false => format!("{}.{alias}.{name}", quoted(&column.table.database)),
                }
            })
            .collect();
        self.note(span.start..span.end, columns.join(", "));
    }

    /// The database of a table that is named.
    pub(super) fn note_table(&self, name: &ObjectName, database: &str) {
        let Some(notes) = self.notes() else {
            return;
        };
        let is_own = notes.database == database;
        match name.0.as_slice() {
            [table] if !is_own => {
                let start = table.span().start;
                let database = database.replace('`', "``");
                self.note(start..start, format!("`{database}`."));
            }
            [database, table] if is_own => {
                self.note(database.span().start..table.span().start, String::new());
            }
            _ => {}
        }
    }
}

fn is_of_broken_view(error: &SqlError) -> bool {
    OF_BROKEN_VIEWS
        .iter()
        .any(|code| code.number() == error.code)
}

/// The tables that a query joins, with the names that its columns are qualified with. `None` if it reads anything else,
/// or two tables have the same name.
pub fn joined_tables(query: &Query) -> Option<Vec<(&ObjectName, &str)>> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let mut tables: Vec<(&ObjectName, &str)> = Vec::new();
    for table in &select.from {
        let joined = table.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&table.relation).chain(joined) {
            let TableFactor::Table { name, alias, .. } = factor else {
                return None;
            };
            let own = name.0.last()?.as_ident()?;
            let alias = alias.as_ref().map_or(own, |alias| &alias.name);
            let alias = alias.value.as_str();
            if tables.iter().any(|(_, known)| *known == alias) {
                return None;
            }
            tables.push((name, alias));
        }
    }
    (!tables.is_empty()).then_some(tables)
}

/// The name under which a view of several tables delivers the key `name` of the one that its query calls `alias`.
pub fn key_of_joined(name: &str, alias: &str) -> String {
    format!("{name} of {alias}")
}

/// The columns that may be read under the full name of a table.
fn under_name(scope: Scope, name: TableName) -> Scope {
    let name = Arc::new(name);
    let renamed = |column: ScopeColumn| {
        (!name.unreadable.contains(&column.name)).then(|| ScopeColumn {
            table: Arc::clone(&name),
            ..column
        })
    };
    let tables = scope.tables.into_iter().map(|table| ScopeTable {
        name: Arc::clone(&name),
        columns: table.columns.into_iter().filter_map(renamed).collect(),
    });
    Scope {
        tables: tables.collect(),
        shown: scope.shown.into_iter().filter_map(renamed).collect(),
    }
}
