//! The tables of the database `mysql` that tell of accounts: `user`, `db`, `tables_priv` and their like.
//!
//! Tools list accounts and privileges by them. The catalog keeps accounts; these are its views, with MySQL's columns.
//! Statements change them: CREATE USER, GRANT, SET DEFAULT ROLE. Texts stand for ENUM and SET. Grantors and times are
//! not kept: a grantor is empty, a time NULL.

use std::collections::BTreeSet;

use sheaf_table::{Account, AccountName, Catalog, PrivilegeLevel, Privileges};

use crate::accounts::show::names_of_tables;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;

const HOST: Cells = Cells::Text(255);
const FLAG: Cells = Cells::Text(1);
const NAME: Cells = Cells::Name;
const TIME: Cells = Cells::Text(26);
const LISTED: Cells = Cells::Text(255);
const GRANTOR: Cells = Cells::Text(288);

/// Privileges on everything as columns of `user`, in MySQL's order, before what is not a privilege.
const GLOBAL: [(&str, Privileges); 29] = [
    ("Select_priv", Privileges::SELECT),
    ("Insert_priv", Privileges::INSERT),
    ("Update_priv", Privileges::UPDATE),
    ("Delete_priv", Privileges::DELETE),
    ("Create_priv", Privileges::CREATE),
    ("Drop_priv", Privileges::DROP),
    ("Reload_priv", Privileges::RELOAD),
    ("Shutdown_priv", Privileges::SHUTDOWN),
    ("Process_priv", Privileges::PROCESS),
    ("File_priv", Privileges::FILE),
    ("Grant_priv", Privileges::GRANT_OPTION),
    ("References_priv", Privileges::REFERENCES),
    ("Index_priv", Privileges::INDEX),
    ("Alter_priv", Privileges::ALTER),
    ("Show_db_priv", Privileges::SHOW_DATABASES),
    ("Super_priv", Privileges::SUPER),
    ("Create_tmp_table_priv", Privileges::CREATE_TEMPORARY_TABLES),
    ("Lock_tables_priv", Privileges::LOCK_TABLES),
    ("Execute_priv", Privileges::EXECUTE),
    ("Repl_slave_priv", Privileges::REPLICATION_SLAVE),
    ("Repl_client_priv", Privileges::REPLICATION_CLIENT),
    ("Create_view_priv", Privileges::CREATE_VIEW),
    ("Show_view_priv", Privileges::SHOW_VIEW),
    ("Create_routine_priv", Privileges::CREATE_ROUTINE),
    ("Alter_routine_priv", Privileges::ALTER_ROUTINE),
    ("Create_user_priv", Privileges::CREATE_USER),
    ("Event_priv", Privileges::EVENT),
    ("Trigger_priv", Privileges::TRIGGER),
    ("Create_tablespace_priv", Privileges::CREATE_TABLESPACE),
];

/// The same of `db`.
const OF_DATABASE: [(&str, Privileges); 19] = [
    ("Select_priv", Privileges::SELECT),
    ("Insert_priv", Privileges::INSERT),
    ("Update_priv", Privileges::UPDATE),
    ("Delete_priv", Privileges::DELETE),
    ("Create_priv", Privileges::CREATE),
    ("Drop_priv", Privileges::DROP),
    ("Grant_priv", Privileges::GRANT_OPTION),
    ("References_priv", Privileges::REFERENCES),
    ("Index_priv", Privileges::INDEX),
    ("Alter_priv", Privileges::ALTER),
    ("Create_tmp_table_priv", Privileges::CREATE_TEMPORARY_TABLES),
    ("Lock_tables_priv", Privileges::LOCK_TABLES),
    ("Create_view_priv", Privileges::CREATE_VIEW),
    ("Show_view_priv", Privileges::SHOW_VIEW),
    ("Create_routine_priv", Privileges::CREATE_ROUTINE),
    ("Alter_routine_priv", Privileges::ALTER_ROUTINE),
    ("Execute_priv", Privileges::EXECUTE),
    ("Event_priv", Privileges::EVENT),
    ("Trigger_priv", Privileges::TRIGGER),
];

/// Members of the SET of `tables_priv`, in their order.
const OF_TABLE: [(&str, Privileges); 13] = [
    ("Select", Privileges::SELECT),
    ("Insert", Privileges::INSERT),
    ("Update", Privileges::UPDATE),
    ("Delete", Privileges::DELETE),
    ("Create", Privileges::CREATE),
    ("Drop", Privileges::DROP),
    ("Grant", Privileges::GRANT_OPTION),
    ("References", Privileges::REFERENCES),
    ("Index", Privileges::INDEX),
    ("Alter", Privileges::ALTER),
    ("Create View", Privileges::CREATE_VIEW),
    ("Show view", Privileges::SHOW_VIEW),
    ("Trigger", Privileges::TRIGGER),
];

/// Members of the SET of `columns_priv`.
const OF_COLUMN: [(&str, Privileges); 4] = [
    ("Select", Privileges::SELECT),
    ("Insert", Privileges::INSERT),
    ("Update", Privileges::UPDATE),
    ("References", Privileges::REFERENCES),
];

/// The rows of a table of this name; `None` if it is none of those of accounts.
pub(crate) fn grant_table(table: &str, session: &Session) -> Option<Rows> {
    Some(match table {
        "user" => user(session),
        "db" => db(session),
        "tables_priv" => tables_priv(session),
        "columns_priv" => columns_priv(session),
        "role_edges" => role_edges(session),
        "default_roles" => default_roles(session),
        "global_grants" => global_grants(session),
        _ => return None,
    })
}

fn flag(is_so: bool) -> Cell {
    if is_so { "Y" } else { "N" }.into()
}

fn members(privileges: Privileges, of: &[(&str, Privileges)]) -> Cell {
    let held = of.iter().filter(|(_, one)| privileges.contains(*one));
    let names: Vec<&str> = held.map(|(name, _)| *name).collect();
    names.join(",").into()
}

fn host_and_user(name: &AccountName) -> [Cell; 2] {
    [name.host.clone().into(), name.user.clone().into()]
}

/// Adds the rows that `rows_of` makes of each account.
fn for_each_account(
    catalog: &Catalog,
    rows: &mut Rows,
    mut rows_of: impl FnMut(&Account, &mut Rows),
) {
    for account in catalog.accounts().values() {
        rows_of(account, rows);
    }
}

fn user(session: &Session) -> Rows {
    let mut columns = vec![("Host", HOST), ("User", NAME)];
    columns.extend(GLOBAL.map(|(name, _)| (name, FLAG)));
    columns.extend([
        ("ssl_type", Cells::Text(9)),
        ("ssl_cipher", Cells::Text(1024)),
        ("x509_issuer", Cells::Text(1024)),
        ("x509_subject", Cells::Text(1024)),
        ("max_questions", Cells::Unsigned),
        ("max_updates", Cells::Unsigned),
        ("max_connections", Cells::Unsigned),
        ("max_user_connections", Cells::Unsigned),
        ("plugin", Cells::Text(64)),
        ("authentication_string", Cells::Text(1024)),
        ("password_expired", FLAG),
        ("password_last_changed", TIME),
        ("password_lifetime", Cells::Unsigned),
        ("account_locked", FLAG),
        ("Create_role_priv", FLAG),
        ("Drop_role_priv", FLAG),
        ("Password_reuse_history", Cells::Unsigned),
        ("Password_reuse_time", Cells::Unsigned),
        ("Password_require_current", FLAG),
        ("User_attributes", Cells::Text(1024)),
    ]);
    let mut rows = Rows::new(columns);
    for_each_account(session.engine.catalog(), &mut rows, |account, rows| {
        let mut row = Vec::from(host_and_user(&account.name));
        row.extend(GLOBAL.map(|(_, privilege)| flag(account.global.contains(privilege))));
        row.push(if account.require_tls { "ANY" } else { "" }.into());
        // Certificates are not asked for, and nothing is counted by the hour.
        row.extend(["", "", ""].map(Cell::from));
        row.extend([0u64, 0, 0].map(Cell::from));
        row.push(u64::from(account.max_user_connections).into());
        row.push(account.method.name().into());
        row.push(account.verifier.clone().into());
        // Passwords do not expire.
        row.extend([flag(false), Cell::Null, Cell::Null]);
        row.push(flag(account.locked));
        row.push(flag(account.global.contains(Privileges::CREATE_ROLE)));
        row.push(flag(account.global.contains(Privileges::DROP_ROLE)));
        row.extend([Cell::Null, Cell::Null, Cell::Null, Cell::Null]);
        rows.push(row);
    });
    rows
}

fn db(session: &Session) -> Rows {
    let mut columns = vec![("Host", HOST), ("Db", NAME), ("User", NAME)];
    columns.extend(OF_DATABASE.map(|(name, _)| (name, FLAG)));
    let mut rows = Rows::new(columns);
    for_each_account(session.engine.catalog(), &mut rows, |account, rows| {
        for (database, privileges) in &account.databases {
            let mut row = vec![
                account.name.host.clone().into(),
                database.clone().into(),
                account.name.user.clone().into(),
            ];
            row.extend(OF_DATABASE.map(|(_, privilege)| flag(privileges.contains(privilege))));
            rows.push(row);
        }
    });
    rows
}

fn tables_priv(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("Host", HOST),
        ("Db", NAME),
        ("User", NAME),
        ("Table_name", NAME),
        ("Grantor", GRANTOR),
        ("Timestamp", TIME),
        ("Table_priv", LISTED),
        ("Column_priv", LISTED),
    ]);
    for_each_account(session.engine.catalog(), &mut rows, |account, rows| {
        let granted = names_of_tables(&account.tables);
        let of_columns = names_of_tables(&account.columns);
        let names: BTreeSet<(&str, &str)> = granted.chain(of_columns).collect();
        for (database, table) in names {
            let own = account.tables.get(database).and_then(|own| own.get(table));
            let of_columns = account.columns_of(database, table).into_iter().flatten();
            let of_columns = of_columns.fold(Privileges::NONE, |all, (_, one)| all | *one);
            rows.push(vec![
                account.name.host.clone().into(),
                database.into(),
                account.name.user.clone().into(),
                table.into(),
                "".into(),
                Cell::Null,
                members(own.copied().unwrap_or_default(), &OF_TABLE),
                members(of_columns, &OF_COLUMN),
            ]);
        }
    });
    rows
}

fn columns_priv(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("Host", HOST),
        ("Db", NAME),
        ("User", NAME),
        ("Table_name", NAME),
        ("Column_name", NAME),
        ("Timestamp", TIME),
        ("Column_priv", LISTED),
    ]);
    for_each_account(session.engine.catalog(), &mut rows, |account, rows| {
        for (database, tables) in &account.columns {
            for (table, columns) in tables {
                for (column, privileges) in columns {
                    rows.push(vec![
                        account.name.host.clone().into(),
                        database.clone().into(),
                        account.name.user.clone().into(),
                        table.clone().into(),
                        column.clone().into(),
                        Cell::Null,
                        members(*privileges, &OF_COLUMN),
                    ]);
                }
            }
        }
    });
    rows
}

fn role_edges(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("FROM_HOST", HOST),
        ("FROM_USER", NAME),
        ("TO_HOST", HOST),
        ("TO_USER", NAME),
        ("WITH_ADMIN_OPTION", FLAG),
    ]);
    for_each_account(session.engine.catalog(), &mut rows, |account, rows| {
        for (role, granted) in &account.roles {
            let mut row = [host_and_user(role), host_and_user(&account.name)].concat();
            row.push(flag(granted.with_admin_option));
            rows.push(row);
        }
    });
    rows
}

fn default_roles(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("HOST", HOST),
        ("USER", NAME),
        ("DEFAULT_ROLE_HOST", HOST),
        ("DEFAULT_ROLE_USER", NAME),
    ]);
    for_each_account(session.engine.catalog(), &mut rows, |account, rows| {
        for (role, _) in account.roles.iter().filter(|(_, role)| role.is_default) {
            rows.push([host_and_user(&account.name), host_and_user(role)].concat());
        }
    });
    rows
}

/// The privileges that have no column in `user`.
fn global_grants(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("USER", NAME),
        ("HOST", HOST),
        ("PRIV", Cells::Text(32)),
        ("WITH_GRANT_OPTION", FLAG),
    ]);
    let fixed = Privileges::all_at(PrivilegeLevel::Global);
    let dynamic = Privileges::all_at(PrivilegeLevel::Dynamic).without(fixed);
    let dynamic = dynamic.without(Privileges::GRANT_OPTION);
    for_each_account(session.engine.catalog(), &mut rows, |account, rows| {
        let grantable = account.global.contains(Privileges::GRANT_OPTION);
        for name in account.global.and(dynamic).names() {
            rows.push(vec![
                account.name.user.clone().into(),
                account.name.host.clone().into(),
                name.into(),
                flag(grantable),
            ]);
        }
    });
    rows
}
