//! Accounts in the catalog.
//!
//! They are few and read by every connection, so all of them are in memory, as one value that is replaced whole. A
//! statement that changes accounts changes all that it names in one transaction of the catalog tree, or none.
//!
//! A database without accounts has [`Account::root`]. It is written down with the first change.

use std::sync::Arc;

use sheaf_storage::sync::atomic::Ordering;
use sheaf_storage::{Transaction, Tree};

use crate::catalog::Catalog;
use crate::catalog::account::{Account, AccountName, Accounts};
use crate::catalog::records::{CHUNK_BYTES, header, kind, put};
use crate::error::{Result, TableError};

impl Catalog {
    /// All accounts, as of now.
    pub fn accounts(&self) -> Arc<Accounts> {
        Arc::clone(&self.accounts.accounts.read())
    }

    /// Grows with every change of an account. If it is read before [`Self::accounts`], the accounts are at least so
    /// new.
    pub fn accounts_version(&self) -> u64 {
        self.accounts.version.load(Ordering::Acquire)
    }

    /// Changes accounts: what `change` leaves is what there is, durably. Changes come one after the other.
    ///
    /// # Errors
    /// What `change` reports, and then nothing has changed; whatever the storage reports.
    pub fn change_accounts<E: From<TableError>>(
        &self,
        change: impl FnOnce(&mut Accounts) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let definitions = self.definitions.lock();
        let before = self.accounts();
        let mut after = Accounts::clone(&before);
        change(&mut after)?;
        let is_stored = self.accounts.is_stored.load(Ordering::Acquire);
        self.change(|tree, transaction| {
            put(
                tree,
                transaction,
                &[kind::HEADER],
                &header(definitions.next_table_id),
            )?;
            for name in before.keys().filter(|name| !after.contains_key(name)) {
                delete_chunks(tree, transaction, name, 0)?;
            }
            for (name, account) in &after {
                let is_new = before
                    .get(name)
                    .is_none_or(|old| !Arc::ptr_eq(old, account));
                if is_new || !is_stored {
                    put_account(tree, transaction, account)?;
                }
            }
            Ok(())
        })?;
        self.accounts.is_stored.store(true, Ordering::Release);
        *self.accounts.accounts.write() = Arc::new(after);
        self.accounts.version.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

fn account_key(name: &AccountName, chunk: usize) -> Vec<u8> {
    let chunk = (chunk as u16).to_be_bytes();
    [
        &[kind::ACCOUNT],
        name.user.as_bytes(),
        &[0],
        name.host.as_bytes(),
        &[0],
        &chunk,
    ]
    .concat()
}

fn put_account(tree: &Tree, transaction: &mut Transaction, account: &Account) -> Result<()> {
    let mut chunks = 0;
    for chunk in account.encode().chunks(CHUNK_BYTES) {
        put(
            tree,
            transaction,
            &account_key(&account.name, chunks),
            chunk,
        )?;
        chunks += 1;
    }
    delete_chunks(tree, transaction, &account.name, chunks)
}

/// Deletes the chunks of an account from number `first` on.
fn delete_chunks(
    tree: &Tree,
    transaction: &mut Transaction,
    name: &AccountName,
    first: usize,
) -> Result<()> {
    let mut chunk = first;
    while tree.delete(transaction, &account_key(name, chunk))? {
        chunk += 1;
    }
    Ok(())
}
