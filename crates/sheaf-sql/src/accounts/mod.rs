//! Accounts: which user a client is, and what its session may do.
//!
//! ```text
//!   handshake -> account of (user, host) -> proof of the password -> session
//!                                                                       |
//!   statement -> rights, refreshed if any account has changed -> what it needs of which tables -> allowed, or an error
//! ```
//!
//! The catalog keeps the accounts, as one value with a version. A session has a pointer to its account and the version
//! that it looked at. A statement compares versions, which writes nothing; if the account may do everything, nothing
//! more is checked. So a change of privileges holds from the next statement on, of all sessions.
//!
//! Rights are checked in two places: [`requirements`] when a statement is dispatched, by what it says, and
//! [`Client::check_read`] when a query names a table, be it in a subquery or in EXPLAIN. Direct plans are shared by
//! sessions, so each carries what it [needs](TableNeed), and every execution checks that.
//!
//! Sessions of the library have no account and may do everything: the program has the data anyway.
//!
//! | file | what it holds |
//! |---|---|
//! | [`columns`] | privileges on single columns |
//! | [`client`] | the client of a session: its account, and what it may do |
//! | [`matching`] | which account a client is |
//! | [`password`], [`sha256_crypt`] | what is kept of passwords, and proofs |
//! | [`requirements`] | which privileges a statement needs |
//! | [`statements`] | CREATE USER, GRANT and the like |
//! | [`show`] | SHOW GRANTS, SHOW CREATE USER, the tables of privileges |

mod client;
mod columns;
mod matching;
pub mod password;
mod requirements;
mod sha256_crypt;
mod show;
mod statements;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sheaf_table::{Account, AccountName, Catalog, PrivilegeLevel, Privileges};

use crate::engine::Engine;
use crate::session::Session;
use crate::virtual_database::is_virtual_database;
pub(crate) use client::Client;
use password::FastDigest;
pub(crate) use requirements::{TableNeed, delete_reads, insert_needs, update_reads};
pub(crate) use show::{
    column_privileges, mysql_user, privilege_rows, schema_privileges, table_privileges,
    user_privileges,
};

/// What a session may do.
pub(crate) struct Rights {
    /// The version of the accounts that the others are of.
    version: u64,
    /// `None`: of a session of the library, or its account is gone; `global` tells which.
    account: Option<Arc<Account>>,
    /// ON *.*
    global: Privileges,
    /// Those are all that there are.
    are_all: bool,
}

impl Rights {
    /// Those of the program itself.
    pub(crate) fn all() -> Rights {
        Rights::new(
            0,
            None,
            Privileges::all_at(PrivilegeLevel::Dynamic) | Privileges::GRANT_OPTION,
        )
    }

    fn of(catalog: &Catalog, name: &AccountName) -> Rights {
        // In this order: a change in between is seen at the next statement.
        let version = catalog.accounts_version();
        let account = catalog.accounts().get(name).cloned();
        let global = account
            .as_ref()
            .map_or(Privileges::NONE, |found| found.global);
        Rights::new(version, account, global)
    }

    fn new(version: u64, account: Option<Arc<Account>>, global: Privileges) -> Rights {
        Rights {
            version,
            account,
            global,
            // ALL does not say that they may be given to others.
            are_all: global.contains(Privileges::all_at(PrivilegeLevel::Dynamic))
                && global.contains(Privileges::GRANT_OPTION),
        }
    }

    /// ON *.*, and ON database.*
    fn on_database(&self, database: &str) -> Privileges {
        let Some(account) = &self.account else {
            return self.global;
        };
        let exact = account.databases.get(database).copied();
        let patterns = account.databases.iter().map(|(name, set)| (name, *set));
        let granted = exact.or_else(|| matching::best_pattern(patterns, database));
        self.global | granted.unwrap_or_default()
    }

    /// What one has on each of the databases that fit a pattern, as GRANT names them.
    fn on_databases_like(&self, pattern: &str) -> Privileges {
        let Some(account) = &self.account else {
            return self.global;
        };
        let exact = account.databases.get(pattern).copied();
        let patterns = account.databases.iter().map(|(name, set)| (name, *set));
        let granted = exact.or_else(|| matching::best_cover(patterns, pattern));
        self.global | granted.unwrap_or_default()
    }

    fn on_table(&self, database: &str, table: &str) -> Privileges {
        let Some(account) = &self.account else {
            return self.global;
        };
        let tables = account.tables.get(database);
        let own = tables.and_then(|tables| tables.get(table)).copied();
        self.on_database(database) | own.unwrap_or_default()
    }

    /// Whether there is anything in the database that one may use.
    fn see_database(&self, database: &str) -> bool {
        let shows = Privileges::all_at(PrivilegeLevel::Database) | Privileges::SHOW_DATABASES;
        let account = self.account.as_ref();
        self.on_database(database).intersects(shows)
            || account.is_some_and(|account| {
                account.tables.contains_key(database) || account.columns.contains_key(database)
            })
    }

    fn see_table(&self, database: &str, table: &str) -> bool {
        let of_tables = Privileges::all_at(PrivilegeLevel::Table);
        self.on_some_column(database, table).intersects(of_tables)
    }

    /// Whether there is a privilege for the table, and not only for columns of it.
    fn see_definition(&self, database: &str, table: &str) -> bool {
        let of_tables = Privileges::all_at(PrivilegeLevel::Table);
        self.on_table(database, table).intersects(of_tables)
    }
}

/// Whether an account may do something with a table; `None` if there is no such account.
fn may(
    catalog: &Catalog,
    account: &AccountName,
    (database, table): (&str, &str),
    privileges: Privileges,
) -> Option<bool> {
    let rights = Rights::of(catalog, account);
    rights.account.as_ref()?;
    let granted = rights.on_table(database, table);
    Some(granted.contains(privileges) || is_virtual_database(database))
}

impl Session {
    /// Runs something of the server's own, whichever rights the client has. Names of tables mean those of all sessions:
    /// what the client has put into a table of its own is not the server's.
    pub(crate) fn with_all_rights<T>(&mut self, body: impl FnOnce(&mut Session) -> T) -> T {
        let own = std::mem::replace(&mut self.client.rights, Rights::all());
        let account = self.client.info.account.take();
        let temporary = std::mem::take(&mut self.temporary);
        // Sessions survive panics, and these rights must not.
        let result = catch_unwind(AssertUnwindSafe(|| body(self)));
        (self.client.rights, self.client.info.account) = (own, account);
        self.temporary = temporary;
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Digests that proofs of caching_sha2_password are checked with, of users that have connected since the start. Each
/// goes with the verifier that it was made for.
#[derive(Default)]
pub(crate) struct DigestCache(Mutex<BTreeMap<AccountName, (String, FastDigest)>>);

impl DigestCache {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<AccountName, (String, FastDigest)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn digest_of(&self, account: &Account) -> Option<FastDigest> {
        let digests = self.lock();
        let (verifier, digest) = digests.get(&account.name)?;
        (*verifier == account.verifier).then_some(*digest)
    }
}

/// Authentication, for the protocol floor.
impl Engine {
    /// The account of a client that says that it is `user`; `hosts` are the names and addresses that it has.
    pub fn account_of(&self, user: &str, hosts: &[&str]) -> Option<Arc<Account>> {
        matching::find(&self.catalog().accounts(), user, hosts).cloned()
    }

    /// Whether any account may connect from a host.
    pub fn admits_host(&self, hosts: &[&str]) -> bool {
        matching::admits(&self.catalog().accounts(), hosts)
    }

    /// Whether a proof of caching_sha2_password is right; `None` if only the password itself can tell.
    pub fn is_sha2_proof_right(
        &self,
        account: &Account,
        challenge: &[u8],
        proof: &[u8],
    ) -> Option<bool> {
        let digest = self.digests.digest_of(account)?;
        Some(password::sha2_proof_is_right(&digest, challenge, proof))
    }

    /// Whether a password is that of an account of caching_sha2_password. Later proofs of it can be checked.
    pub fn is_sha2_password_right(&self, account: &Account, password: &[u8]) -> bool {
        let is_right = password::is_sha2_password(&account.verifier, password);
        if is_right {
            let accounts = self.catalog().accounts();
            let mut digests = self.digests.lock();
            // Those of dropped accounts.
            digests.retain(|name, _| accounts.contains_key(name));
            let digest = (account.verifier.clone(), password::fast_digest(password));
            digests.insert(account.name.clone(), digest);
        }
        is_right
    }
}
