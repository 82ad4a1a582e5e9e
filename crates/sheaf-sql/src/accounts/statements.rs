//! CREATE, ALTER, DROP and RENAME USER, SET PASSWORD, GRANT and REVOKE. What is about roles is done in
//! [`roles`](super::roles).
//!
//! Each changes all the accounts that it names, or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_table::{
    Account, AccountName, Accounts, Column, ColumnPrivileges, PrivilegeLevel, Privileges, account,
};
use sheaf_types::error::codes;

use super::named::{LeftOut, create, missing, operation_failed};
use super::roles::{create_roles, revoke_roles, set_role};
use super::{password, roles};
use crate::accounts::requirements::RightsCheck;
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::parser::account::{
    AccountOptions, AccountStatement, Grant, GrantLevel, Identified, Secret, UserDefinition,
    UserName,
};
use crate::rights::{Client, matching, with_roles};
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::virtual_database::{is_information_schema, is_virtual_database};

/// Of the privileges that are missing, a message names so many.
const MAX_SHOWN_PRIVILEGES: usize = 3;
/// The most databases, and the most tables, that an account has privileges on.
const MAX_GRANTS_OF_ACCOUNT: usize = 10_000;

const CREATE_USER: &str = "CREATE USER";
const ALTER_USER: &str = "ALTER USER";
const DROP_USER: &str = "DROP USER";
const RENAME_USER: &str = "RENAME USER";

/// Whose accounts may be changed by whom.
impl Client {
    fn name_of(&self, user: &UserName) -> AccountName {
        match user {
            UserName::Current => self.account_name(),
            UserName::Named(name) => name.clone(),
        }
    }

    pub(super) fn names_of(&self, users: &[UserName]) -> Vec<AccountName> {
        users.iter().map(|user| self.name_of(user)).collect()
    }

    /// No user takes over an account that may do what they may not: error 1227. It may do what its roles may.
    pub(super) fn check_covers(&self, accounts: &Accounts, names: &[AccountName]) -> Result<()> {
        let found = names.iter().filter_map(|name| accounts.get(name));
        self.check_covers_each(accounts, found)
    }

    /// Nor do they take its clients from it by an account that comes before it.
    pub(super) fn check_covers_hidden(&self, accounts: &Accounts, new: &AccountName) -> Result<()> {
        self.check_covers_each(accounts, matching::hidden_by(accounts, new))
    }

    /// One's own account is one's own.
    fn check_covers_each<'a>(
        &self,
        accounts: &Accounts,
        covered: impl Iterator<Item = &'a Arc<Account>>,
    ) -> Result<()> {
        let own = self.account_name();
        for account in covered.filter(|account| account.name != own) {
            let sources = with_roles(accounts, account, |_, _| true);
            let missing = sources.iter().map(|source| self.missing_rights(source));
            let missing = missing.fold(Privileges::NONE, |all, set| all | set);
            if !missing.is_empty() {
                let mut names: Vec<&str> = missing.names().take(MAX_SHOWN_PRIVILEGES + 1).collect();
                if names.len() > MAX_SHOWN_PRIVILEGES {
                    names[MAX_SHOWN_PRIVILEGES] = "...";
                }
                return Err(SqlError::new(
                    codes::SPECIFIC_ACCESS_DENIED_ERROR,
                    format!(
                        "Access denied; you need the {} privilege(s), which {} has, for this operation",
                        names.join(", "),
                        account.name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Privileges that an account has, and the session does not have there.
    fn missing_rights(&self, account: &Account) -> Privileges {
        let mut missing = account.global.without(self.rights.global);
        for (pattern, granted) in &account.databases {
            missing = missing | granted.without(self.rights.on_databases_like(pattern));
        }
        for (database, tables) in &account.tables {
            for (table, granted) in tables {
                missing = missing | granted.without(self.rights.on_table(database, table));
            }
        }
        for (database, tables) in &account.columns {
            for (table, columns) in tables {
                for (column, granted) in columns {
                    let own = self.rights.on_column(database, table, column);
                    missing = missing | granted.without(own);
                }
            }
        }
        missing
    }
}

impl RightsCheck<'_> {
    /// No user grants what they do not have. Errors 1045, 1044 and 1142.
    pub(super) fn check_may_grant(&self, grant: &Grant) -> Result<()> {
        let needed = granted(grant)? | Privileges::GRANT_OPTION;
        match &grant.on {
            GrantLevel::Global if self.client.rights.global.contains(needed) => Ok(()),
            GrantLevel::Global => Err(SqlError::access_denied(
                &self.client.info.user,
                &self.client.info.host,
                true,
            )),
            // It is a pattern: to have the privileges on a database of this name is not enough.
            GrantLevel::Database(name) => {
                let name = name.as_deref().or(self.database);
                let name = name.ok_or_else(SqlError::no_database_selected)?;
                match self.client.rights.on_databases_like(name).contains(needed) {
                    true => Ok(()),
                    false => Err(self.client.denied_database(name)),
                }
            }
            GrantLevel::Table(name) => {
                let (database, table) = name.resolve(self.database)?;
                let own = self.client.rights.on_table(&database, &table);
                if !own.contains(needed) {
                    return Err(self.client.denied_table(&table, "GRANT"));
                }
                let mut columns = grant.columns.iter().flat_map(|(privileges, columns)| {
                    columns.iter().map(move |column| (column, *privileges))
                });
                columns.try_for_each(|(column, privileges)| {
                    self.client
                        .require_on_column((&database, &table), column, privileges)
                })
            }
        }
    }
}

/// What is granted or revoked at a level. Errors 1221 and 1144 for privileges that the level does not have.
fn granted(grant: &Grant) -> Result<Privileges> {
    let level = match grant.on {
        GrantLevel::Global => PrivilegeLevel::Dynamic,
        GrantLevel::Database(_) => PrivilegeLevel::Database,
        GrantLevel::Table(_) => PrivilegeLevel::Table,
    };
    if level != PrivilegeLevel::Table && !grant.columns.is_empty() {
        return Err(illegal_grant());
    }
    let all = Privileges::all_at(level);
    if (all | Privileges::GRANT_OPTION).contains(grant.privileges) {
        return Ok(match grant.all {
            true => all | grant.privileges,
            false => grant.privileges,
        });
    }
    Err(match level {
        PrivilegeLevel::Table => illegal_grant(),
        _ => SqlError::wrong_usage("DB GRANT", "GLOBAL PRIVILEGES"),
    })
}

fn illegal_grant() -> SqlError {
    SqlError::new(
        codes::ILLEGAL_GRANT_FOR_TABLE,
        "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used",
    )
}

pub(crate) fn change_accounts(
    session: &mut Session,
    statement: AccountStatement,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let mut left_out = LeftOut::new();
    let mut problem = "does not exist";
    let mut code = codes::USER_DOES_NOT_EXIST;
    let catalog = Arc::clone(session.engine.catalog());
    match statement {
        AccountStatement::Create {
            if_not_exists,
            users,
            default_roles,
            options,
        } => {
            (problem, code) = ("already exists", codes::USER_ALREADY_EXISTS);
            let made = define_accounts(&session.client, &session.engine, users, &options)?;
            catalog.change_accounts(|accounts| {
                session
                    .client
                    .check_may_grant_roles(accounts, default_roles.iter())?;
                roles::check_known(accounts, &default_roles)?;
                let names = made.iter().map(|account| account.name.clone());
                let mut new: Vec<AccountName> = names.collect();
                new.retain(|name| !accounts.contains_key(name));
                for name in &new {
                    session.client.check_covers_hidden(accounts, name)?;
                }
                left_out = create(accounts, made, CREATE_USER, if_not_exists)?;
                roles::add_default_roles(accounts, &new, &default_roles)
            })?;
        }
        AccountStatement::Alter {
            if_exists,
            users,
            options,
        } => catalog.change_accounts(|accounts| {
            left_out = session
                .client
                .alter(accounts, &users, &options, if_exists)?;
            Ok::<(), SqlError>(())
        })?,
        AccountStatement::Drop { if_exists, users } => catalog.change_accounts(|accounts| {
            let names = session.client.names_of(&users);
            session.client.check_covers(accounts, &names)?;
            left_out = missing(accounts, &names, DROP_USER, if_exists)?;
            account::drop_accounts(accounts, &names);
            Ok::<(), SqlError>(())
        })?,
        AccountStatement::Rename(pairs) => {
            rename_accounts(&session.client, &session.engine, &pairs)?
        }
        AccountStatement::SetPassword { user, password } => {
            let name = session.client.name_of(&user);
            catalog.change_accounts(|accounts| {
                session
                    .client
                    .check_covers(accounts, std::slice::from_ref(&name))?;
                let account = accounts.get_mut(&name).ok_or_else(|| {
                    SqlError::new(
                        codes::PASSWORD_NO_MATCH,
                        "Can't find any matching row in the user table",
                    )
                })?;
                let verifier = password::verifier(account.method, &password)?;
                Arc::make_mut(account).verifier = verifier;
                Ok::<(), SqlError>(())
            })?;
        }
        AccountStatement::Grant(grant) => grant_privileges(session, &grant)?,
        AccountStatement::Revoke {
            if_exists,
            grant,
            ignore_unknown_user,
        } => revoke_privileges(session, &grant, if_exists, ignore_unknown_user)?,
        AccountStatement::RevokeAll { if_exists, from } => {
            let names = session.client.names_of(&from);
            catalog.change_accounts(|accounts| {
                session.client.check_covers(accounts, &names)?;
                left_out = missing(accounts, &names, "REVOKE", if_exists)?;
                for name in &names {
                    if let Some(account) = accounts.get_mut(name) {
                        let account = Arc::make_mut(account);
                        account.global = Privileges::NONE;
                        account.databases.clear();
                        account.tables.clear();
                        account.columns.clear();
                    }
                }
                Ok::<(), SqlError>(())
            })?;
        }
        AccountStatement::CreateRoles {
            if_not_exists,
            roles,
        } => {
            (problem, code) = ("already exists", codes::USER_ALREADY_EXISTS);
            left_out = create_roles(&session.client, &session.engine, roles, if_not_exists)?;
        }
        AccountStatement::DropRoles { if_exists, roles } => {
            left_out = session
                .client
                .drop_roles(session.engine.catalog(), &roles, if_exists)?;
        }
        AccountStatement::GrantRoles {
            grant,
            with_admin_option,
        } => session
            .client
            .grant_roles(session.engine.catalog(), &grant, with_admin_option)?,
        AccountStatement::RevokeRoles {
            if_exists,
            grant,
            ignore_unknown_user,
        } => revoke_roles(session, &grant, if_exists, ignore_unknown_user)?,
        AccountStatement::SetRole(roles) => set_role(session, &roles)?,
        AccountStatement::SetDefaultRole {
            if_exists,
            users,
            roles,
        } => {
            left_out = session.client.set_default_role(
                session.engine.catalog(),
                &users,
                &roles,
                if_exists,
            )?
        }
    }
    for name in left_out {
        session
            .warnings
            .note(code, format!("Authorization ID {name} {problem}."));
    }
    // One's own rights may be others now.
    session
        .client
        .refresh_rights(session.engine.catalog(), &session.handle);
    session.ok(sink, 0, String::new())
}

/// The accounts that CREATE USER makes.
fn define_accounts(
    client: &Client,
    engine: &Engine,
    users: Vec<UserDefinition>,
    options: &AccountOptions,
) -> Result<Vec<Account>> {
    let default_method = engine.default_method();
    users
        .into_iter()
        .map(|user| {
            let mut account = Account::new(client.name_of(&user.name));
            account.method = default_method;
            if let Some(identified) = &user.identified {
                identify(&mut account, identified)?;
            }
            apply(&mut account, options);
            Ok(account)
        })
        .collect()
}

/// Open connections go with their accounts, so that they count and keep their rights.
fn rename_accounts(client: &Client, engine: &Engine, pairs: &[(UserName, UserName)]) -> Result<()> {
    let name_both = |(old, new): &(UserName, UserName)| (client.name_of(old), client.name_of(new));
    let pairs: Vec<(AccountName, AccountName)> = pairs.iter().map(name_both).collect();
    let mut have_followed = false;
    let renamed = engine.catalog().change_accounts(|accounts| {
        for (old, new) in &pairs {
            client.check_covers(accounts, std::slice::from_ref(old))?;
            rename(accounts, old, new.clone())?;
            client.check_covers_hidden(accounts, new)?;
        }
        // Before the accounts have a new version, at which sessions look for theirs.
        for (old, new) in &pairs {
            engine.rename_connections(old, new);
        }
        have_followed = true;
        Ok::<(), SqlError>(())
    });
    if renamed.is_err() && have_followed {
        for (old, new) in pairs.iter().rev() {
            engine.rename_connections(new, old);
        }
    }
    renamed
}

fn database_of(current: Option<&str>, name: Option<&str>) -> Result<String> {
    let database = name.or(current);
    Ok(database
        .ok_or_else(SqlError::no_database_selected)?
        .to_string())
}

fn grant_privileges(session: &mut Session, grant: &Grant) -> Result<()> {
    let granted = granted(grant)?;
    let level = level_of(session, grant)?;
    // A grant on a table that is not there yet must include the privilege to make it.
    let mut columns = Vec::new();
    if let Level::Table(database, table) = &level
        && is_virtual_database(database)
    {
        if !grant.columns.is_empty() {
            return Err(SqlError::not_supported_yet(format!(
                "a grant on columns of {database}"
            )));
        }
        if !session.virtual_tables.has_table(database, table, session)? {
            return Err(SqlError::no_such_table(database, table));
        }
    }
    if let Level::Table(database, table) = &level
        && (!granted.contains(Privileges::CREATE) || !grant.columns.is_empty())
        && (!session.is_system_table(database, table) || !grant.columns.is_empty())
        && !is_virtual_database(database)
    {
        let catalog = session.engine.catalog();
        columns = match catalog.view(database, table) {
            Some(view) => columns_of(grant, &view.definition.columns, table)?,
            None => {
                let found = catalog.table(database, table)?;
                columns_of(grant, &found.definition.columns, table)?
            }
        };
    }
    let names = session.client.names_of(&grant.users);
    session.engine.catalog().change_accounts(|accounts| {
        for name in &names {
            let account = accounts.get_mut(name).ok_or_else(|| {
                SqlError::new(
                    codes::CANT_CREATE_USER_WITH_GRANT,
                    "You are not allowed to create a user with GRANT",
                )
            })?;
            let account = Arc::make_mut(account);
            // USAGE is granted, too: that makes an entry.
            if !granted.is_empty() || columns.is_empty() {
                level.add(account, granted)?;
            }
            level.add_columns(account, &columns)?;
        }
        Ok(())
    })
}

fn revoke_privileges(
    session: &mut Session,
    grant: &Grant,
    if_exists: bool,
    ignore_unknown_user: bool,
) -> Result<()> {
    let revoked = granted(grant)?;
    // Of ALL PRIVILEGES some are enough.
    let named = match grant.all {
        true => grant.privileges.and(Privileges::GRANT_OPTION),
        false => revoked,
    };
    let level = level_of(session, grant)?;
    let names = session.client.names_of(&grant.users);
    let warnings = &mut session.warnings;
    session.engine.catalog().change_accounts(|accounts| {
        for name in &names {
            let account = accounts.get_mut(name).map(Arc::make_mut);
            if account.is_none() && ignore_unknown_user {
                let message = format!("Authorization ID {} does not exist.", name.user);
                warnings.warn(codes::USER_DOES_NOT_EXIST, message);
                continue;
            }
            let is_known = account.is_some();
            let is_done = account.is_some_and(|account| {
                if !level.has(account, named) || !level.has_columns(account, &grant.columns) {
                    return false;
                }
                let of_columns = level.remove_columns(account, &grant.columns);
                let is_only_of_columns = revoked.is_empty() && !grant.columns.is_empty();
                of_columns && (is_only_of_columns || level.remove(account, revoked))
            });
            if is_done {
                continue;
            }
            let error = level.no_such_grant(name);
            match if_exists && is_known {
                true => warnings.warn(error.code, error.message),
                false => return Err(error),
            }
        }
        Ok(())
    })
}

fn level_of(session: &Session, grant: &Grant) -> Result<Level> {
    Ok(match &grant.on {
        GrantLevel::Global => Level::Global,
        GrantLevel::Database(name) => {
            Level::Database(database_of(session.database.as_deref(), name.as_deref())?)
        }
        GrantLevel::Table(name) => {
            let (database, table) = session.resolve(name)?;
            if is_information_schema(&database) {
                session.check_changeable(&database)?;
            }
            Level::Table(database, table)
        }
    })
}

impl Client {
    fn alter(
        &self,
        accounts: &mut Accounts,
        users: &[UserDefinition],
        options: &AccountOptions,
        if_exists: bool,
    ) -> Result<LeftOut> {
        let names: Vec<AccountName> = users.iter().map(|user| self.name_of(&user.name)).collect();
        self.check_covers(accounts, &names)?;
        let left_out = missing(accounts, &names, ALTER_USER, if_exists)?;
        for (name, user) in names.iter().zip(users) {
            let Some(account) = accounts.get_mut(name) else {
                continue;
            };
            let account = Arc::make_mut(account);
            if let Some(identified) = &user.identified {
                identify(account, identified)?;
            }
            apply(account, options);
        }
        Ok(left_out)
    }
}

/// What privileges are granted on, with all names.
enum Level {
    Global,
    Database(String),
    Table(String, String),
}

impl Level {
    /// Error 1105 for too many grants.
    fn add(&self, account: &mut Account, granted: Privileges) -> Result<()> {
        let set = match self {
            Level::Global => &mut account.global,
            Level::Database(name) => account.databases.entry(name.clone()).or_default(),
            Level::Table(database, table) => {
                let tables = account.tables.entry(database.clone()).or_default();
                tables.entry(table.clone()).or_default()
            }
        };
        *set = *set | granted;
        // Whoever may do everything with a table needs nothing of its columns.
        if let Level::Table(database, table) = self
            && granted.contains(Privileges::all_at(PrivilegeLevel::Table))
        {
            take_columns(account, database, table, Privileges::ON_COLUMNS);
        }
        let tables: usize = account.tables.values().map(BTreeMap::len).sum();
        if account.databases.len().max(tables) > MAX_GRANTS_OF_ACCOUNT {
            return Err(SqlError::unknown(format!(
                "An account has privileges on at most {MAX_GRANTS_OF_ACCOUNT} databases or tables"
            )));
        }
        Ok(())
    }

    /// Error 1105 for too many grants.
    fn add_columns(&self, account: &mut Account, columns: &[(String, Privileges)]) -> Result<()> {
        let (Level::Table(database, table), false) = (self, columns.is_empty()) else {
            return Ok(());
        };
        let tables = account.columns.entry(database.clone()).or_default();
        let granted = tables.entry(table.clone()).or_default();
        for (column, privileges) in columns {
            let set = granted.entry(column.clone()).or_default();
            *set = *set | *privileges;
        }
        let tables = account.columns.values().flat_map(BTreeMap::values);
        let all: usize = tables.map(ColumnPrivileges::len).sum();
        match all > MAX_GRANTS_OF_ACCOUNT {
            true => Err(SqlError::unknown(format!(
                "An account has privileges on at most {MAX_GRANTS_OF_ACCOUNT} columns"
            ))),
            false => Ok(()),
        }
    }

    /// Whether privileges are granted there, each on a table or on some of its columns. ON *.* none are missed.
    fn has(&self, account: &Account, named: Privileges) -> bool {
        let granted = match self {
            Level::Global => return true,
            Level::Database(name) => account.databases.get(name).copied().unwrap_or_default(),
            Level::Table(database, table) => {
                let tables = account.tables.get(database);
                let own = tables.and_then(|tables| tables.get(table));
                let columns = account.columns_of(database, table).into_iter().flatten();
                columns.fold(own.copied().unwrap_or_default(), |all, (_, set)| all | *set)
            }
        };
        granted.contains(named)
    }

    /// Whether each of the privileges on columns is granted.
    fn has_columns(&self, account: &Account, named: &[(Privileges, Vec<String>)]) -> bool {
        let Level::Table(database, table) = self else {
            return true;
        };
        let is_granted = |privilege: Privileges, name: &String| {
            let mut columns = account.columns_of(database, table).into_iter().flatten();
            columns.any(|(known, set)| {
                known.to_lowercase() == name.to_lowercase() && set.intersects(privilege)
            })
        };
        let mut named = named.iter();
        named.all(|(privilege, names)| names.iter().all(|name| is_granted(*privilege, name)))
    }

    /// False if something that is revoked on a column is not granted on it.
    fn remove_columns(&self, account: &mut Account, revoked: &[(Privileges, Vec<String>)]) -> bool {
        let Level::Table(database, table) = self else {
            return true;
        };
        for (privilege, names) in revoked {
            for name in names {
                let columns = account.columns_of(database, table);
                let mut granted = columns.into_iter().flatten();
                let found = granted.find(|(known, set)| {
                    known.to_lowercase() == name.to_lowercase() && set.intersects(*privilege)
                });
                let Some((known, _)) = found else {
                    return false;
                };
                let known = known.clone();
                take_column(account, database, table, (&known, *privilege));
            }
        }
        true
    }

    /// False if nothing is granted there.
    fn remove(&self, account: &mut Account, revoked: Privileges) -> bool {
        match self {
            Level::Global => {
                account.global = account.global.without(revoked);
                true
            }
            Level::Database(name) => remove_from(&mut account.databases, name, revoked),
            Level::Table(database, table) => {
                // What is revoked on the table is on its columns as well.
                let of_columns = take_columns(account, database, table, revoked);
                let Some(tables) = account.tables.get_mut(database) else {
                    return of_columns;
                };
                let is_removed = remove_from(tables, table, revoked);
                if tables.is_empty() {
                    account.tables.remove(database);
                }
                is_removed || of_columns
            }
        }
    }

    fn no_such_grant(&self, name: &AccountName) -> SqlError {
        let text = format!(
            "There is no such grant defined for user '{}' on host '{}'",
            name.user, name.host
        );
        match self {
            Level::Table(_, table) => SqlError::new(
                codes::NONEXISTING_TABLE_GRANT,
                format!("{text} on table '{table}'"),
            ),
            _ => SqlError::new(codes::NONEXISTING_GRANT, text),
        }
    }
}

/// Takes privileges on columns of a table away. False if none of them were granted.
fn take_columns(
    account: &mut Account,
    database: &str,
    table: &str,
    privileges: Privileges,
) -> bool {
    let columns = account.columns_of(database, table).into_iter().flatten();
    let granted = columns.filter(|(_, set)| set.intersects(privileges));
    let names: Vec<String> = granted.map(|(name, _)| name.clone()).collect();
    for name in &names {
        take_column(account, database, table, (name, privileges));
    }
    !names.is_empty()
}

/// Takes privileges on a column away, and all that is empty then.
fn take_column(
    account: &mut Account,
    database: &str,
    table: &str,
    (column, privileges): (&str, Privileges),
) {
    let Some(tables) = account.columns.get_mut(database) else {
        return;
    };
    if let Some(columns) = tables.get_mut(table) {
        remove_from(columns, column, privileges);
        if columns.is_empty() {
            tables.remove(table);
        }
    }
    if tables.is_empty() {
        account.columns.remove(database);
    }
}

/// The columns that a GRANT names, as the table or view spells them, each with what is granted on it. Error 1054.
fn columns_of(grant: &Grant, known: &[Column], table: &str) -> Result<Vec<(String, Privileges)>> {
    let mut granted = Vec::new();
    for (privilege, names) in &grant.columns {
        for name in names {
            let mut known = known.iter().filter(|column| !column.hidden);
            let found = known.find(|column| column.name.to_lowercase() == name.to_lowercase());
            let found = found.ok_or_else(|| SqlError::bad_field(name, table))?;
            granted.push((found.name.clone(), *privilege));
        }
    }
    Ok(granted)
}

/// Takes privileges from an entry, and the entry away if none are left.
fn remove_from(grants: &mut BTreeMap<String, Privileges>, name: &str, revoked: Privileges) -> bool {
    let Some(set) = grants.get_mut(name) else {
        return false;
    };
    *set = set.without(revoked);
    if set.is_empty() {
        grants.remove(name);
    }
    true
}

/// Error 1827 for a verifier that is none.
fn identify(account: &mut Account, identified: &Identified) -> Result<()> {
    if let Some(method) = identified.method {
        account.method = method;
    }
    account.verifier = match &identified.secret {
        Secret::None => String::new(),
        Secret::Password(password) => password::verifier(account.method, password)?,
        Secret::Verifier(verifier) if password::is_verifier(account.method, verifier) => {
            verifier.clone()
        }
        Secret::Verifier(_) => {
            return Err(SqlError::new(
                codes::PASSWORD_FORMAT,
                "The password hash doesn't have the expected format.",
            ));
        }
    };
    Ok(())
}

fn apply(account: &mut Account, options: &AccountOptions) {
    account.require_tls = options.require_tls.unwrap_or(account.require_tls);
    account.locked = options.locked.unwrap_or(account.locked);
    if let Some(limit) = options.max_user_connections {
        account.max_user_connections = limit;
    }
}

/// Error 1396 if an account is not there or the new name is taken, and 3532 if it is a role. Its own roles go with it.
fn rename(accounts: &mut Accounts, old: &AccountName, new: AccountName) -> Result<()> {
    let failed = || operation_failed(RENAME_USER, std::slice::from_ref(old));
    if accounts.contains_key(&new) {
        return Err(failed());
    }
    roles::check_is_no_role(accounts, old)?;
    let mut account = accounts.remove(old).ok_or_else(failed)?;
    Arc::make_mut(&mut account).name = new.clone();
    accounts.insert(new, account);
    Ok(())
}
