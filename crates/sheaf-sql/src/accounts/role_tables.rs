//! What `information_schema` tells a session of roles: those that its account has, those that it uses, and what these
//! were granted.
//!
//! Grantors are not kept, so they are NULL.

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_table::{Account, AccountName, Accounts, GrantedRole, Privileges};

use crate::engine::Engine;
use crate::query::rows::{Cell, Cells, Rows};
use crate::rights::Client;

const NAME: Cells = Cells::Text(255);
const YES_OR_NO: Cells = Cells::Text(3);

/// A role that the session's account has, by itself or by another role.
struct Applicable {
    grantee: AccountName,
    role: AccountName,
    granted: GrantedRole,
}

fn yes_or_no(is_so: bool) -> Cell {
    if is_so { "YES" } else { "NO" }.into()
}

/// Each edge that leads from the account, the account's own first.
fn applicable(accounts: &Accounts, account: &AccountName) -> Vec<Applicable> {
    let mut found = Vec::new();
    let mut waiting = vec![account];
    let mut seen = BTreeSet::from([account]);
    let mut at = 0;
    while let Some(name) = waiting.get(at).copied() {
        at += 1;
        let roles = accounts.get(name).map(|grantee| &grantee.roles);
        for (role, granted) in roles.into_iter().flatten() {
            found.push(Applicable {
                grantee: name.clone(),
                role: role.clone(),
                granted: *granted,
            });
            if seen.insert(role) {
                waiting.push(role);
            }
        }
    }
    found
}

fn authorizations(
    client: &Client,
    engine: &Engine,
    is_shown: impl Fn(&Applicable) -> bool,
) -> Rows {
    let mut rows = Rows::new([
        ("USER", NAME),
        ("HOST", NAME),
        ("GRANTEE", NAME),
        ("GRANTEE_HOST", NAME),
        ("ROLE_NAME", NAME),
        ("ROLE_HOST", NAME),
        ("IS_GRANTABLE", YES_OR_NO),
        ("IS_DEFAULT", YES_OR_NO),
        ("IS_MANDATORY", YES_OR_NO),
    ]);
    let own = client.account_name();
    let found = applicable(&engine.catalog().accounts(), &own);
    for edge in found.iter().filter(|edge| is_shown(edge)) {
        // Only roles of its own are default roles.
        let is_default = edge.granted.is_default && edge.grantee == own;
        rows.push(vec![
            own.user.clone().into(),
            own.host.clone().into(),
            edge.grantee.user.clone().into(),
            edge.grantee.host.clone().into(),
            edge.role.user.clone().into(),
            edge.role.host.clone().into(),
            yes_or_no(edge.granted.with_admin_option),
            yes_or_no(is_default),
            yes_or_no(false),
        ]);
    }
    rows
}

/// The rows of `information_schema.APPLICABLE_ROLES`.
pub(crate) fn applicable_roles(client: &Client, engine: &Engine) -> Rows {
    authorizations(client, engine, |_| true)
}

/// The rows of `information_schema.ADMINISTRABLE_ROLE_AUTHORIZATIONS`.
pub(crate) fn administrable_role_authorizations(client: &Client, engine: &Engine) -> Rows {
    authorizations(client, engine, |edge| edge.granted.with_admin_option)
}

/// The rows of `information_schema.ENABLED_ROLES`.
pub(crate) fn enabled_roles(client: &Client, engine: &Engine) -> Rows {
    let mut rows = Rows::new([
        ("ROLE_NAME", NAME),
        ("ROLE_HOST", NAME),
        ("IS_DEFAULT", YES_OR_NO),
        ("IS_MANDATORY", YES_OR_NO),
    ]);
    let accounts = engine.catalog().accounts();
    let own = accounts.get(&client.account_name());
    for role in &client.active_roles {
        let granted = own.and_then(|own| own.roles.get(role));
        rows.push(vec![
            role.user.clone().into(),
            role.host.clone().into(),
            yes_or_no(granted.is_some_and(|granted| granted.is_default)),
            yes_or_no(false),
        ]);
    }
    rows
}

/// The roles that the session uses, those included that these have.
fn used_roles(client: &Client) -> &[Arc<Account>] {
    let sources = client.rights.sources();
    sources.get(1..).unwrap_or_default()
}

/// Privileges as MySQL's table of them spells these.
fn spelled(privileges: Privileges) -> String {
    const NAMES: [(Privileges, &str); 13] = [
        (Privileges::SELECT, "Select"),
        (Privileges::INSERT, "Insert"),
        (Privileges::UPDATE, "Update"),
        (Privileges::DELETE, "Delete"),
        (Privileges::CREATE, "Create"),
        (Privileges::DROP, "Drop"),
        (Privileges::GRANT_OPTION, "Grant"),
        (Privileges::REFERENCES, "References"),
        (Privileges::INDEX, "Index"),
        (Privileges::ALTER, "Alter"),
        (Privileges::CREATE_VIEW, "Create View"),
        (Privileges::SHOW_VIEW, "Show view"),
        (Privileges::TRIGGER, "Trigger"),
    ];
    let names = NAMES.iter().filter(|(one, _)| privileges.contains(*one));
    let names: Vec<&str> = names.map(|(_, name)| *name).collect();
    names.join(",")
}

/// What stands in front of the privileges of a role on a table.
fn of_table(role: &Account, database: &str, table: &str) -> Vec<Cell> {
    vec![
        Cell::Null,
        Cell::Null,
        role.name.user.clone().into(),
        role.name.host.clone().into(),
        "def".into(),
        database.into(),
        table.into(),
    ]
}

const OF_TABLE: [(&str, Cells); 7] = [
    ("GRANTOR", NAME),
    ("GRANTOR_HOST", NAME),
    ("GRANTEE", NAME),
    ("GRANTEE_HOST", NAME),
    ("TABLE_CATALOG", Cells::Text(3)),
    ("TABLE_SCHEMA", Cells::Text(64)),
    ("TABLE_NAME", Cells::Text(64)),
];
const OF_PRIVILEGES: [(&str, Cells); 2] = [("PRIVILEGE_TYPE", NAME), ("IS_GRANTABLE", YES_OR_NO)];

/// The rows of `information_schema.ROLE_TABLE_GRANTS`.
pub(crate) fn role_table_grants(client: &Client) -> Rows {
    let mut rows = Rows::new(OF_TABLE.into_iter().chain(OF_PRIVILEGES));
    for role in used_roles(client) {
        for (database, tables) in &role.tables {
            for (table, privileges) in tables {
                let mut row = of_table(role, database, table);
                row.push(spelled(*privileges).into());
                row.push(yes_or_no(privileges.contains(Privileges::GRANT_OPTION)));
                rows.push(row);
            }
        }
    }
    rows
}

/// The rows of `information_schema.ROLE_COLUMN_GRANTS`.
pub(crate) fn role_column_grants(client: &Client) -> Rows {
    let of_column = [("COLUMN_NAME", Cells::Text(64))];
    let columns = OF_TABLE.into_iter().chain(of_column).chain(OF_PRIVILEGES);
    let mut rows = Rows::new(columns);
    for role in used_roles(client) {
        for (database, tables) in &role.columns {
            for (table, columns) in tables {
                // What may be granted on is said of the table.
                let own = role.tables.get(database).and_then(|own| own.get(table));
                let option = own.copied().unwrap_or_default();
                for (column, privileges) in columns {
                    let mut row = of_table(role, database, table);
                    row.push(column.clone().into());
                    row.push(spelled(*privileges).into());
                    row.push(yes_or_no(option.contains(Privileges::GRANT_OPTION)));
                    rows.push(row);
                }
            }
        }
    }
    rows
}
