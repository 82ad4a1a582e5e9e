//! Which privileges a statement needs, by what it says.
//!
//! Tables that are read are checked where queries are planned ([`Client::check_read`]); here it is about what a
//! statement changes, defines or administers. The rules are those of MySQL's manual, which names the privileges with
//! each statement.

use std::ops::ControlFlow;

use sheaf_table::{AccountName, Catalog, Privileges, TableNames};
use sheaf_types::error::codes;
use sqlparser::ast;

use crate::accounts::{Client, may};
use crate::change::values::assigned::is_default;
use crate::change::values::value_names::{names_in, names_outside_queries};
use crate::error::{Result, SqlError};
use crate::parser::account::{AccountOptions, AccountStatement};
use crate::parser::change::name_of;
use crate::parser::statement::{
    CreateTable, Delete, ForeignKeyDefinition, OnDuplicate, TableChange, TableName, Update,
};
use crate::session::Session;
use crate::statement::properties::Requirement;

/// Checks what a statement needs. Errors 1044, 1142, 1227, 1370.
pub(crate) fn check_requirement(session: &mut Session, requirement: Requirement<'_>) -> Result<()> {
    session.client.changed_alone.clear();
    if session.client.has_all_rights() {
        return Ok(());
    }
    let check = RightsCheck {
        client: &session.client,
        database: session.database.as_deref(),
        names: session.table_names(),
    };
    let changed_alone = match requirement {
        Requirement::Update(update) => check.changed_alone(update.into())?,
        Requirement::Delete(delete) => check.changed_alone(delete.into())?,
        _ => Vec::new(),
    };
    session.client.changed_alone = changed_alone;
    if let Requirement::Session(id) = requirement {
        let other = session.engine.session_handle(id)?;
        return session.client.check_sees_session(&other);
    }
    let check = RightsCheck {
        client: &session.client,
        database: session.database.as_deref(),
        names: session.table_names(),
    };
    check.check(requirement)
}

impl Client {
    /// Whether an account may do something with a table; `None`: the session. Errors 1142 and 1449.
    pub(crate) fn check_allowed_to(
        &self,
        catalog: &Catalog,
        account: Option<&AccountName>,
        (database, table): (&str, &str),
        privileges: Privileges,
    ) -> Result<()> {
        let Some(account) = account else {
            return self.require_on_table(database, table, privileges);
        };
        match may(catalog, account, (database, table), privileges) {
            None => Err(SqlError::no_such_definer(account)),
            Some(true) => Ok(()),
            Some(false) => Err(self.denied_table(table, &privileges.to_string())),
        }
    }
}

/// Whose rights are checked, and what the names of the statement mean.
pub(super) struct RightsCheck<'s> {
    pub(super) client: &'s Client,
    pub(super) database: Option<&'s str>,
    pub(super) names: TableNames<'s>,
}

impl RightsCheck<'_> {
    fn check(&self, requirement: Requirement<'_>) -> Result<()> {
        match requirement {
            Requirement::Nothing | Requirement::WhenLookedUp => Ok(()),
            Requirement::OneOf(privileges) => self.client.check_one_of(privileges),
            Requirement::Database(name, privileges) => {
                let name = name.or(self.database);
                let name = name.ok_or_else(SqlError::no_database_selected)?;
                self.client.check_database(name, privileges)
            }
            Requirement::Tables(names, privileges) => self.check_table_names(names, privileges),
            Requirement::Views(names, privileges) => {
                let mut names = names.iter();
                names.try_for_each(|name| self.check_lasting_name(name, privileges))
            }
            // Of a session that is not the client's own; which one it is was asked before.
            Requirement::Session(_) => self.client.check_one_of(Privileges::PROCESS),
            Requirement::Routine(name) => self.check_routine(name),
            Requirement::Insert(insert) => self.check_insert(insert),
            Requirement::Update(update) => self.check_single(update.into(), Privileges::UPDATE),
            Requirement::Delete(delete) => {
                match delete.targets.is_empty() {
                    true => self.check_single(delete.into(), Privileges::DELETE),
                    // Whose rows are deleted is checked when the targets are known.
                    false => Ok(()),
                }
            }
            Requirement::LoadData(load) => {
                if !load.local {
                    self.client.check_one_of(Privileges::FILE)?;
                }
                let needs = match load.on_duplicate {
                    OnDuplicate::Replace => Privileges::INSERT | Privileges::DELETE,
                    _ => Privileges::INSERT,
                };
                self.check_load(load, needs)
            }
            Requirement::Create(create) => self.check_create(create),
            Requirement::Alter(name, changes) => self.check_alter(name, changes),
            Requirement::Rename(pairs) => {
                let mut pairs = pairs.iter();
                pairs.try_for_each(|(old, new)| self.check_rename(old, new))
            }
            Requirement::Lock(tables) => {
                let mut names = tables.iter().map(|table| &table.name);
                names.try_for_each(|name| self.check_table_to_lock(name))
            }
            Requirement::ReadLock(names) => {
                self.client.check_one_of(Privileges::RELOAD)?;
                let mut names = names.iter();
                names.try_for_each(|name| self.check_table_to_lock(name))
            }
            Requirement::Account(statement) => self.check_account_statement(statement),
            Requirement::ResourceGroup(statement) => {
                self.client.check_resource_group_statement(statement)
            }
        }
    }

    fn check_create(&self, create: &CreateTable) -> Result<()> {
        if create.temporary {
            self.check_to_create_temporary(&create.name)?;
            return match &create.like {
                Some(like) => self.check_table_name(like, Privileges::SELECT),
                None => Ok(()),
            };
        }
        let mut needs = match create.query {
            Some(_) => Privileges::CREATE | Privileges::INSERT,
            None => Privileges::CREATE,
        };
        if create.or_replace {
            needs = needs | Privileges::DROP;
        }
        self.check_lasting_name(&create.name, needs)?;
        if let Some(like) = &create.like {
            self.check_table_name(like, Privileges::SELECT)?;
        }
        for key in &create.foreign_keys {
            self.check_parent(key, &create.name)?;
        }
        Ok(())
    }

    fn check_account_statement(&self, statement: &AccountStatement) -> Result<()> {
        match statement {
            AccountStatement::Create { .. }
            | AccountStatement::Drop { .. }
            | AccountStatement::Rename(_)
            | AccountStatement::RevokeAll { .. } => {
                self.client.check_one_of(Privileges::CREATE_USER)
            }
            AccountStatement::CreateRoles { .. } => self
                .client
                .check_one_of(Privileges::CREATE_USER | Privileges::CREATE_ROLE),
            // Which accounts DROP ROLE alone may drop is checked with the accounts as they are then.
            AccountStatement::DropRoles { .. } => self
                .client
                .check_one_of(Privileges::CREATE_USER | Privileges::DROP_ROLE),
            // One's own password.
            AccountStatement::Alter { users, options, .. } => {
                let are_own = users.iter().all(|user| self.client.is_own(&user.name));
                match are_own && *options == AccountOptions::default() {
                    true => Ok(()),
                    false => self.client.check_one_of(Privileges::CREATE_USER),
                }
            }
            // One's own roles.
            AccountStatement::SetRole(_) => Ok(()),
            AccountStatement::SetDefaultRole { users, .. } => {
                match users.iter().all(|user| self.client.is_own(user)) {
                    true => Ok(()),
                    false => self.client.check_one_of(Privileges::CREATE_USER),
                }
            }
            // Which roles one may grant is checked with the accounts as they are then.
            AccountStatement::GrantRoles { .. } | AccountStatement::RevokeRoles { .. } => Ok(()),
            AccountStatement::SetPassword { user, .. } if self.client.is_own(user) => Ok(()),
            AccountStatement::SetPassword { .. } => {
                self.client.check_one_of(Privileges::CREATE_USER)
            }
            // One may grant what one has with GRANT OPTION.
            AccountStatement::Grant(grant) | AccountStatement::Revoke { grant, .. } => {
                self.check_may_grant(grant)
            }
        }
    }

    /// A session may do everything with its temporary tables, whose names hide others.
    fn check_table_name(&self, name: &TableName, privileges: Privileges) -> Result<()> {
        match self.is_temporary(name)? {
            true => Ok(()),
            false => self.check_lasting_name(name, privileges),
        }
    }

    /// The same, of a name that means a table of all sessions.
    fn check_lasting_name(&self, name: &TableName, privileges: Privileges) -> Result<()> {
        let (database, table) = name.resolve(self.database)?;
        self.client.require_on_table(&database, &table, privileges)
    }

    fn is_temporary(&self, name: &TableName) -> Result<bool> {
        let (database, table) = name.resolve(self.database)?;
        Ok(self.names.is_temporary(&database, &table))
    }

    /// Error 1044 if temporary tables of the database may not be made.
    fn check_to_create_temporary(&self, name: &TableName) -> Result<()> {
        let (database, _) = name.resolve(self.database)?;
        self.client
            .check_database(&database, Privileges::CREATE_TEMPORARY_TABLES)
    }

    fn check_table_to_lock(&self, name: &TableName) -> Result<()> {
        if self.is_temporary(name)? {
            return Ok(());
        }
        let (database, _) = name.resolve(self.database)?;
        self.check_table_name(name, Privileges::SELECT)?;
        self.client
            .check_database(&database, Privileges::LOCK_TABLES)
    }

    fn check_table_names(&self, names: &[TableName], privileges: Privileges) -> Result<()> {
        names
            .iter()
            .try_for_each(|name| self.check_table_name(name, privileges))
    }

    /// The table of a statement about a single one. Those about several are checked when it is known which of them they
    /// change.
    fn check_single(&self, change: RowChange<'_>, privileges: Privileges) -> Result<()> {
        let Some(name) = change.single_table() else {
            return Ok(());
        };
        // On which columns is checked when it is known which these are.
        let name = name_of(name)?;
        if self.is_temporary(&name)? {
            return Ok(());
        }
        let needs = match self.changed_alone(change)?.is_empty() {
            false => privileges,
            true => privileges | Privileges::SELECT,
        };
        let (database, table) = name.resolve(self.database)?;
        self.client.require_on_some_column(&database, &table, needs)
    }

    /// The tables and views that a statement changes, if no query inside of the statement names them: they may be named
    /// without SELECT, and of their columns those that may be read. In a subquery to count rows is to read them, be it
    /// through a view. Of several tables, those count of which the session may change a column.
    fn changed_alone(&self, change: RowChange<'_>) -> Result<Vec<(String, String)>> {
        if change.returns {
            return Ok(Vec::new());
        }
        let names = change.names_in_from();
        let are_several = names.len() > 1 || change.single_table().is_none();
        let mut changed = Vec::with_capacity(names.len());
        for name in names {
            let name = name_of(name)?.resolve(self.database)?;
            let (database, table) = (name.0.as_str(), name.1.as_str());
            let may_change = || {
                let needs = Privileges::UPDATE;
                self.client.require_on_some_column(database, table, needs)
            };
            let is_changed = !are_several || may_change().is_ok();
            if is_changed && !change.reads(&mut |relation| self.may_read(relation, &name)) {
                changed.push(name);
            }
        }
        Ok(changed)
    }

    /// Whether a name in a subquery may mean a table. Every view may read it.
    fn may_read(&self, relation: &ast::ObjectName, changed: &(String, String)) -> bool {
        let resolved = name_of(relation).and_then(|name| name.resolve(self.database));
        match resolved {
            Ok(name) => name == *changed || self.names.view(&name.0, &name.1).is_some(),
            Err(_) => true,
        }
    }

    fn check_alter(&self, name: &TableName, changes: &[TableChange]) -> Result<()> {
        let (database, table) = name.resolve(self.database)?;
        if self.is_temporary(name)? {
            let mut changes = changes.iter();
            return changes.try_for_each(|change| match change {
                TableChange::RenameTo(new) => self.check_to_create_temporary(new),
                _ => Ok(()),
            });
        }
        for change in changes {
            match change {
                // CREATE INDEX and DROP INDEX are these.
                TableChange::AddKey(_)
                | TableChange::DropKey { .. }
                | TableChange::DropPrimaryKey => {
                    let needs = Privileges::INDEX | Privileges::ALTER;
                    self.client
                        .require_one_on_table(&database, &table, needs, "INDEX")?;
                }
                // CREATE INDEX may have them as well.
                TableChange::Algorithm(_) | TableChange::Lock(_) => {}
                TableChange::RenameTo(new) => self.check_rename(name, new)?,
                TableChange::AddForeignKey(key) => {
                    self.client
                        .require_on_table(&database, &table, Privileges::ALTER)?;
                    self.check_parent(key, name)?;
                }
                _ => self
                    .client
                    .require_on_table(&database, &table, Privileges::ALTER)?,
            }
        }
        Ok(())
    }

    /// The table that a foreign key refers to is in the database of its own, if it has none.
    fn check_parent(&self, key: &ForeignKeyDefinition, child: &TableName) -> Result<()> {
        let parent = &key.table;
        let database = parent.database.as_ref().or(child.database.as_ref());
        let parent = TableName {
            database: database.cloned(),
            table: parent.table.clone(),
        };
        self.check_referenced(&parent)
    }

    fn check_rename(&self, old: &TableName, new: &TableName) -> Result<()> {
        self.check_lasting_name(old, Privileges::ALTER | Privileges::DROP)?;
        self.check_lasting_name(new, Privileges::CREATE | Privileges::INSERT)
    }

    /// Error 1370.
    fn check_routine(&self, name: &str) -> Result<()> {
        let database = name.split('.').next().unwrap_or_default();
        if self
            .client
            .check_database(database, Privileges::EXECUTE)
            .is_ok()
        {
            return Ok(());
        }
        let (user, host) = (&self.client.info.user, &self.client.info.host);
        Err(SqlError::new(
            codes::PROCACCESS_DENIED_ERROR,
            format!("execute command denied to user '{user}'@'{host}' for routine '{name}'"),
        ))
    }
}

/// An UPDATE or a DELETE: which tables it names, and the expressions in it.
struct RowChange<'s> {
    tables: &'s [ast::TableWithJoins],
    expressions: Vec<&'s ast::Expr>,
    /// RETURNING, or a DELETE that says from which tables of a join: it reads all of them.
    returns: bool,
}

impl<'s> RowChange<'s> {
    /// The name of the table, if there is one.
    fn single_table(&self) -> Option<&'s ast::ObjectName> {
        match self.tables {
            [table] if table.joins.is_empty() => match &table.relation {
                ast::TableFactor::Table { name, .. } => Some(name),
                _ => None,
            },
            _ => None,
        }
    }
}

impl<'s> RowChange<'s> {
    /// The names of tables and views in the FROM, but for those in queries.
    fn names_in_from(&self) -> Vec<&'s ast::ObjectName> {
        let mut names = Vec::new();
        for table in self.tables {
            let joined = table.joins.iter().map(|join| &join.relation);
            for factor in std::iter::once(&table.relation).chain(joined) {
                if let ast::TableFactor::Table { name, .. } = factor {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Whether a query in the statement names a table for which `is_meant` is true.
    fn reads(&self, is_meant: &mut dyn FnMut(&ast::ObjectName) -> bool) -> bool {
        let mut visit = |relation: &ast::ObjectName| match is_meant(relation) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut expressions = self.expressions.iter();
        if expressions.any(|value| ast::visit_relations(*value, &mut visit).is_break()) {
            return true;
        }
        self.tables.iter().any(|table| {
            let is_read = match &table.relation {
                ast::TableFactor::Table { .. } => false,
                other => ast::visit_relations(other, &mut visit).is_break(),
            };
            let mut joins = table.joins.iter();
            is_read
                || joins.any(|join| {
                    let is_read = match &join.relation {
                        ast::TableFactor::Table { .. } => false,
                        other => ast::visit_relations(other, &mut visit).is_break(),
                    };
                    let operator = &join.join_operator;
                    is_read || ast::visit_relations(operator, &mut visit).is_break()
                })
        })
    }
}

impl<'s> From<&'s Update> for RowChange<'s> {
    fn from(update: &'s Update) -> Self {
        let values = update
            .assignments
            .iter()
            .map(|assignment| &assignment.value);
        let order = update.order_by.iter().map(|item| &item.expr);
        RowChange {
            tables: &update.tables,
            expressions: values.chain(&update.selection).chain(order).collect(),
            returns: false,
        }
    }
}

impl<'s> From<&'s Delete> for RowChange<'s> {
    fn from(delete: &'s Delete) -> Self {
        let order = delete.order_by.iter().map(|item| &item.expr);
        RowChange {
            tables: &delete.tables,
            expressions: delete.selection.iter().chain(order).collect(),
            returns: delete.returning.is_some() || !delete.targets.is_empty(),
        }
    }
}

/// What an INSERT or REPLACE needs of its table.
pub(crate) fn insert_needs(insert: &ast::Insert) -> Privileges {
    let mut needs = Privileges::INSERT;
    if values_are_read(insert) {
        needs = needs | Privileges::SELECT;
    }
    if insert.replace_into {
        needs = needs | Privileges::DELETE;
    }
    if let Some(on) = &insert.on {
        needs = needs | Privileges::UPDATE;
        if duplicates_are_read(on) {
            needs = needs | Privileges::SELECT;
        }
    }
    if insert.returning.is_some() {
        needs = needs | Privileges::SELECT;
    }
    needs
}

/// Whether a value may name a column of its row.
fn values_are_read(insert: &ast::Insert) -> bool {
    let names_one = |value: &ast::Expr| {
        !matches!(value, ast::Expr::Value(_)) && !names_outside_queries(value).is_empty()
    };
    let mut assigned = insert.assignments.iter();
    if assigned.any(|assignment| names_one(&assignment.value)) {
        return true;
    }
    match insert.source.as_deref().map(|source| source.body.as_ref()) {
        Some(ast::SetExpr::Values(values)) => {
            let mut rows = values.rows.iter();
            rows.any(|row| row.content.iter().any(names_one))
        }
        _ => false,
    }
}

/// Whether ON DUPLICATE KEY UPDATE looks at a column of the conflicting row, or of the one to insert.
fn duplicates_are_read(on: &ast::OnInsert) -> bool {
    let ast::OnInsert::DuplicateKeyUpdate(assignments) = on else {
        return true;
    };
    let mut values = assignments.iter().map(|assignment| &assignment.value);
    values.any(|value| !names_in(value).is_empty())
}

/// Whether an UPDATE may look at a column, so that a direct plan, which tells of no columns, needs SELECT.
pub(crate) fn update_reads(update: &Update) -> bool {
    let is_single = update.tables.iter().all(|table| table.joins.is_empty());
    update.selection.is_some()
        || !update.order_by.is_empty()
        || !is_single
        || update.tables.len() != 1
        || update
            .assignments
            .iter()
            .any(|assignment| !is_constant(&assignment.value))
}

pub(crate) fn delete_reads(delete: &Delete) -> bool {
    delete.selection.is_some()
        || !delete.order_by.is_empty()
        || delete.returning.is_some()
        || !delete.targets.is_empty()
}

/// Whether an expression is of constants only. What is not sure is not.
fn is_constant(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Value(_) => true,
        ast::Expr::Identifier(_) => is_default(expression),
        ast::Expr::Nested(inner) => is_constant(inner),
        ast::Expr::UnaryOp { expr, .. } => is_constant(expr),
        ast::Expr::BinaryOp { left, right, .. } => is_constant(left) && is_constant(right),
        _ => false,
    }
}
