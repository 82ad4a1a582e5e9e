//! What accounts are granted, for SHOW and for `information_schema`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sheaf_table::{Account, AccountName, Catalog, PrivilegeLevel, Privileges};
use sheaf_types::error::codes;
use sheaf_types::text::quoting::quoted_name;

use crate::accounts::roles::{check_granted, list_of, quoted};
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::parser::account::UserName;
use crate::query::rows::{Cells, Rows};
use crate::rights::{Client, with_roles};

const TEXT: Cells = Cells::Text(64);
const GRANTEE: Cells = Cells::Text(292);

/// What was granted to an account, and to the roles of it that are named. Without any, the user is shown with the
/// roles that the session uses. Error 3530.
pub(crate) fn grant_rows(
    client: &Client,
    engine: &Engine,
    user: &UserName,
    using: &[AccountName],
) -> Result<Rows> {
    let account = client.shown_account(engine.catalog(), user)?;
    check_granted(&account, using)?;
    let is_used = |role: &AccountName| match (user, using.is_empty()) {
        (UserName::Current, true) => client.active_roles.contains(role),
        _ => using.contains(role),
    };
    let header = format!("Grants for {}@{}", account.name.user, account.name.host);
    let mut rows = Rows::new([(header, Cells::Text(1024))]);
    let accounts = engine.catalog().accounts();
    let account = Arc::new(account);
    let sources = with_roles(&accounts, &account, |role, _| is_used(role));
    let roles = sources.get(1..).unwrap_or_default();
    for line in grants_of(&with_grants_of(&account, roles)) {
        rows.push(vec![line.into()]);
    }
    Ok(rows)
}

pub(crate) fn create_user_rows(client: &Client, engine: &Engine, user: &UserName) -> Result<Rows> {
    let account = client.shown_account(engine.catalog(), user)?;
    let header = format!(
        "CREATE USER for {}@{}",
        account.name.user, account.name.host
    );
    let mut rows = Rows::new([(header, Cells::Text(1024))]);
    let verifier = match account.verifier.as_str() {
        "" => String::new(),
        // Its alphabet has no quote.
        verifier => format!(" AS '{verifier}'"),
    };
    let default = account.roles.iter().filter(|(_, role)| role.is_default);
    let default_roles = match list_of(default.map(|(name, _)| name)).as_str() {
        "" => String::new(),
        roles => format!(" DEFAULT ROLE {roles}"),
    };
    let require = if account.require_tls { "SSL" } else { "NONE" };
    let limit = match account.max_user_connections {
        0 => String::new(),
        limit => format!(" WITH MAX_USER_CONNECTIONS {limit}"),
    };
    let lock = if account.locked { "LOCK" } else { "UNLOCK" };
    rows.push(vec![
        format!(
            "CREATE USER {} IDENTIFIED WITH '{}'{verifier}{default_roles} REQUIRE {require}{limit} PASSWORD EXPIRE DEFAULT ACCOUNT {lock}",
            quoted(&account.name),
            account.method.name()
        )
        .into(),
    ]);
    Ok(rows)
}

/// The accounts that `information_schema` shows the session.
fn shown_accounts(client: &Client, engine: &Engine) -> Vec<Account> {
    let own = client.account_name();
    let sees_all = client.check_database("mysql", Privileges::SELECT).is_ok();
    let accounts = engine.catalog().accounts();
    accounts
        .values()
        .filter(|account| sees_all || account.name == own)
        .map(|account| Account::clone(account))
        .collect()
}

impl Client {
    /// An account to show: the user's own, or any if the user may read the database `mysql`. Errors 1044 and 1141.
    fn shown_account(&self, catalog: &Catalog, user: &UserName) -> Result<Account> {
        if !self.is_own(user) {
            self.check_database("mysql", Privileges::SELECT)?;
        }
        let name = match user {
            UserName::Current => self.account_name(),
            UserName::Named(name) => name.clone(),
        };
        let accounts = catalog.accounts();
        let account = accounts.get(&name).map(|account| Account::clone(account));
        account.ok_or_else(|| {
            let message = format!(
                "There is no such grant defined for user '{}' on host '{}'",
                name.user, name.host
            );
            SqlError::new(codes::NONEXISTING_GRANT, message)
        })
    }
}

/// The rows of `information_schema.USER_PRIVILEGES`.
pub(crate) fn user_privileges(client: &Client, engine: &Engine) -> Rows {
    let mut rows = Rows::new([
        ("GRANTEE", GRANTEE),
        ("TABLE_CATALOG", TEXT),
        ("PRIVILEGE_TYPE", TEXT),
        ("IS_GRANTABLE", Cells::Text(3)),
    ]);
    for account in shown_accounts(client, engine) {
        let grantee = account.name.to_string();
        for (name, grantable) in listed(account.global, "USAGE") {
            rows.push(vec![
                grantee.clone().into(),
                "def".into(),
                name.into(),
                grantable.into(),
            ]);
        }
    }
    rows
}

/// The rows of `information_schema.SCHEMA_PRIVILEGES`.
pub(crate) fn schema_privileges(client: &Client, engine: &Engine) -> Rows {
    let mut rows = Rows::new([
        ("GRANTEE", GRANTEE),
        ("TABLE_CATALOG", TEXT),
        ("TABLE_SCHEMA", TEXT),
        ("PRIVILEGE_TYPE", TEXT),
        ("IS_GRANTABLE", Cells::Text(3)),
    ]);
    for account in shown_accounts(client, engine) {
        let grantee = account.name.to_string();
        for (database, privileges) in &account.databases {
            for (name, grantable) in listed(*privileges, "USAGE") {
                rows.push(vec![
                    grantee.clone().into(),
                    "def".into(),
                    database.clone().into(),
                    name.into(),
                    grantable.into(),
                ]);
            }
        }
    }
    rows
}

/// The rows of `information_schema.TABLE_PRIVILEGES`.
pub(crate) fn table_privileges(client: &Client, engine: &Engine) -> Rows {
    let mut rows = Rows::new([
        ("GRANTEE", GRANTEE),
        ("TABLE_CATALOG", TEXT),
        ("TABLE_SCHEMA", TEXT),
        ("TABLE_NAME", TEXT),
        ("PRIVILEGE_TYPE", TEXT),
        ("IS_GRANTABLE", Cells::Text(3)),
    ]);
    for account in shown_accounts(client, engine) {
        let grantee = account.name.to_string();
        for (database, tables) in &account.tables {
            for (table, privileges) in tables {
                for (name, grantable) in listed(*privileges, "USAGE") {
                    rows.push(vec![
                        grantee.clone().into(),
                        "def".into(),
                        database.clone().into(),
                        table.clone().into(),
                        name.into(),
                        grantable.into(),
                    ]);
                }
            }
        }
    }
    rows
}

/// The rows of `information_schema.COLUMN_PRIVILEGES`.
pub(crate) fn column_privileges(client: &Client, engine: &Engine) -> Rows {
    let mut rows = Rows::new([
        ("GRANTEE", GRANTEE),
        ("TABLE_CATALOG", TEXT),
        ("TABLE_SCHEMA", TEXT),
        ("TABLE_NAME", TEXT),
        ("COLUMN_NAME", TEXT),
        ("PRIVILEGE_TYPE", TEXT),
        ("IS_GRANTABLE", Cells::Text(3)),
    ]);
    for account in shown_accounts(client, engine) {
        let grantee = account.name.to_string();
        for (database, tables) in &account.columns {
            for (table, columns) in tables {
                // What may be granted on is said of the table.
                let own = account.tables.get(database).and_then(|own| own.get(table));
                let option = own.copied().unwrap_or_default();
                let option = option.and(Privileges::GRANT_OPTION);
                for (column, privileges) in columns {
                    for (name, grantable) in listed(*privileges | option, "USAGE") {
                        rows.push(vec![
                            grantee.clone().into(),
                            "def".into(),
                            database.clone().into(),
                            table.clone().into(),
                            column.clone().into(),
                            name.into(),
                            grantable.into(),
                        ]);
                    }
                }
            }
        }
    }
    rows
}

/// SHOW PRIVILEGES
pub(crate) fn privilege_rows() -> Rows {
    let mut rows = Rows::new([
        ("Privilege", TEXT),
        ("Context", TEXT),
        ("Comment", Cells::Text(1024)),
    ]);
    for (_, name, level) in Privileges::ALL_BY_NAME {
        let context = match level {
            PrivilegeLevel::Table => "Databases,Tables",
            PrivilegeLevel::Database => "Databases",
            PrivilegeLevel::Global | PrivilegeLevel::Dynamic => "Server Admin",
        };
        rows.push(vec![(*name).into(), context.into(), "".into()]);
    }
    rows
}

/// Names of privileges, and whether they may be granted on.
fn listed(privileges: Privileges, none: &'static str) -> Vec<(&'static str, &'static str)> {
    let grantable = match privileges.contains(Privileges::GRANT_OPTION) {
        true => "YES",
        false => "NO",
    };
    let mut names: Vec<_> = privileges
        .without(Privileges::GRANT_OPTION)
        .names()
        .map(|name| (name, grantable))
        .collect();
    if names.is_empty() {
        names.push((none, grantable));
    }
    names
}

/// An account as if it was granted itself what its roles were.
fn with_grants_of(account: &Account, roles: &[Arc<Account>]) -> Account {
    let mut all = account.clone();
    for source in roles {
        all.global = all.global | source.global;
        add_up(&mut all.databases, &source.databases);
        for (database, tables) in &source.tables {
            add_up(all.tables.entry(database.clone()).or_default(), tables);
        }
        for (database, tables) in &source.columns {
            let all = all.columns.entry(database.clone()).or_default();
            for (table, columns) in tables {
                add_up(all.entry(table.clone()).or_default(), columns);
            }
        }
    }
    all
}

fn add_up(all: &mut BTreeMap<String, Privileges>, more: &BTreeMap<String, Privileges>) {
    for (name, privileges) in more {
        let set = all.entry(name.clone()).or_default();
        *set = *set | *privileges;
    }
}

/// The GRANT statements that give an account what it has.
fn grants_of(account: &Account) -> Vec<String> {
    let to = quoted(&account.name);
    let line = |names: String, on: &str, with: Privileges| {
        let option = match with.contains(Privileges::GRANT_OPTION) {
            true => " WITH GRANT OPTION",
            false => "",
        };
        format!("GRANT {names} ON {on} TO {to}{option}")
    };
    let mut lines = Vec::new();
    let fixed = Privileges::all_at(PrivilegeLevel::Global);
    let dynamic = account
        .global
        .and(Privileges::all_at(PrivilegeLevel::Dynamic).without(fixed));
    let is_all = account
        .global
        .contains(Privileges::all_at(PrivilegeLevel::Dynamic));
    if is_all {
        lines.push(line("ALL PRIVILEGES".to_string(), "*.*", account.global));
    } else {
        let names = names_or(account.global.and(fixed), fixed, "USAGE");
        lines.push(line(names, "*.*", account.global));
        if !dynamic.is_empty() {
            lines.push(line(dynamic.to_string(), "*.*", account.global));
        }
    }
    for (database, privileges) in &account.databases {
        let all = Privileges::all_at(PrivilegeLevel::Database);
        let on = format!("{}.*", quoted_name(database));
        lines.push(line(names_or(*privileges, all, "USAGE"), &on, *privileges));
    }
    let of_tables = names_of_tables(&account.tables);
    let of_columns = names_of_tables(&account.columns);
    let tables: BTreeSet<(&str, &str)> = of_tables.chain(of_columns).collect();
    for (database, table) in tables {
        let own = account.tables.get(database).and_then(|own| own.get(table));
        let own = own.copied().unwrap_or_default();
        let on = format!("{}.{}", quoted_name(database), quoted_name(table));
        lines.push(line(
            names_on_table(account, (database, table), own),
            &on,
            own,
        ));
    }
    for (with_admin_option, option) in [(false, ""), (true, " WITH ADMIN OPTION")] {
        let roles = account.roles.iter();
        let roles = roles.filter(|(_, granted)| granted.with_admin_option == with_admin_option);
        let roles = list_of(roles.map(|(name, _)| name));
        if !roles.is_empty() {
            lines.push(format!("GRANT {roles} TO {to}{option}"));
        }
    }
    lines
}

/// Databases and tables that something is granted on.
pub(super) fn names_of_tables<T>(
    granted: &BTreeMap<String, BTreeMap<String, T>>,
) -> impl Iterator<Item = (&str, &str)> {
    granted.iter().flat_map(|(database, tables)| {
        let tables = tables.keys();
        tables.map(|table| (database.as_str(), table.as_str()))
    })
}

/// The privileges on a table, each followed by the same on columns.
fn names_on_table(account: &Account, (database, table): (&str, &str), own: Privileges) -> String {
    let all = Privileges::all_at(PrivilegeLevel::Table);
    let columns = account.columns_of(database, table);
    let Some(columns) = columns.filter(|_| !own.contains(all)) else {
        return names_or(own, all, "USAGE");
    };
    let mut names = Vec::new();
    for (privilege, name, _) in Privileges::ALL_BY_NAME {
        if own.contains(*privilege) {
            names.push((*name).to_string());
        }
        let granted = columns.iter().filter(|(_, set)| set.contains(*privilege));
        let granted: Vec<String> = granted.map(|(column, _)| quoted_name(column)).collect();
        if !granted.is_empty() {
            names.push(format!("{name} ({})", granted.join(", ")));
        }
    }
    names.join(", ")
}

fn names_or(privileges: Privileges, all: Privileges, none: &str) -> String {
    let privileges = privileges.without(Privileges::GRANT_OPTION);
    if privileges.is_empty() {
        none.to_string()
    } else if privileges.contains(all) {
        "ALL PRIVILEGES".to_string()
    } else {
        privileges.to_string()
    }
}
