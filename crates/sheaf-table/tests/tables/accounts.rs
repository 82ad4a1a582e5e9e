//! Accounts in the catalog: durable, and changed as a whole or not at all.

use std::sync::Arc;

use sheaf_table::{Account, AccountName, Accounts, Catalog, Privileges, TableError};
use tempfile::TempDir;

use crate::fixture::{open, scratch};

fn add(accounts: &mut Accounts, user: &str) {
    let mut account = Account::new(AccountName::new(user, "%"));
    // Longer than an entry of a tree.
    let tables = (0..500).map(|n| (format!("table_{n}"), Privileges::SELECT));
    account.tables.insert("shop".to_string(), tables.collect());
    accounts.insert(account.name.clone(), Arc::new(account));
}

fn users(catalog: &Catalog) -> Vec<String> {
    let accounts = catalog.accounts();
    accounts.keys().map(|name| name.user.clone()).collect()
}

#[test]
fn accounts_are_there_after_a_restart() {
    let (directory, catalog) = scratch();
    assert_eq!(users(&catalog), ["root"]);
    let version = catalog.accounts_version();
    catalog
        .change_accounts(|accounts| {
            add(accounts, "alice");
            add(accounts, "bob");
            Ok::<(), TableError>(())
        })
        .unwrap();
    assert!(catalog.accounts_version() > version);
    let catalog = reopen(&directory, catalog);
    assert_eq!(users(&catalog), ["alice", "bob", "root"]);
    let accounts = catalog.accounts();
    assert_eq!(
        accounts[&AccountName::new("alice", "%")].tables["shop"].len(),
        500
    );

    catalog
        .change_accounts(|accounts| {
            accounts.retain(|name, _| name.user != "alice");
            Ok::<(), TableError>(())
        })
        .unwrap();
    let catalog = reopen(&directory, catalog);
    assert_eq!(users(&catalog), ["bob", "root"]);
}

fn reopen(directory: &TempDir, catalog: Arc<Catalog>) -> Arc<Catalog> {
    catalog.storage().close().unwrap();
    drop(catalog);
    open(directory.path())
}

#[test]
fn a_change_that_fails_changes_nothing() {
    let (_directory, catalog) = scratch();
    let outcome = catalog.change_accounts(|accounts| {
        add(accounts, "alice");
        Err(TableError::Interrupted)
    });
    assert_eq!(outcome.unwrap_err().mysql_code(), 1317);
    assert_eq!(users(&catalog), ["root"]);
}
