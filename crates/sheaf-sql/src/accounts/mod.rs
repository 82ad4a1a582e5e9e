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
//! [`Session::check_read`] when a query names a table, be it in a subquery or in EXPLAIN. Direct plans are shared by
//! sessions, so each carries what it [needs](TableNeed), and every execution checks that.
//!
//! Sessions of the library have no account and may do everything: the program has the data anyway.
//!
//! | file | what it holds |
//! |---|---|
//! | [`matching`] | which account a client is |
//! | [`password`], [`sha256_crypt`] | what is kept of passwords, and proofs |
//! | [`requirements`] | which privileges a statement needs |
//! | [`statements`] | CREATE USER, GRANT and the like |
//! | [`show`] | SHOW GRANTS, SHOW CREATE USER, the tables of privileges |

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

use crate::catalog_views::information_schema::is_virtual_database;
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::session::Session;
use password::FastDigest;
pub(crate) use requirements::{TableNeed, delete_reads, insert_needs, update_reads};
use sheaf_types::error::codes;
pub(crate) use show::{
    is_account_table, mysql_user, privilege_rows, schema_privileges, table_privileges,
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
            || account.is_some_and(|account| account.tables.contains_key(database))
    }

    fn see_table(&self, database: &str, table: &str) -> bool {
        let of_tables = Privileges::all_at(PrivilegeLevel::Table);
        self.on_table(database, table).intersects(of_tables)
    }
}

impl Session {
    /// Takes notice of changes of accounts. A statement's rights are those at its start.
    pub(crate) fn refresh_rights(&mut self) {
        self.is_blind_change = false;
        if self.info.account.is_some()
            && self.rights.version != self.engine.catalog().accounts_version()
        {
            self.take_rights();
        }
    }

    /// The rights that the session's account has.
    pub(crate) fn take_rights(&mut self) {
        // It may have another name now. Until its client has identified itself, the handle knows of none.
        if self.info.account.is_some()
            && let Some(name) = self.handle.account()
        {
            self.info.account = Some(name);
        }
        self.rights = match &self.info.account {
            Some(name) => Rights::of(self.engine.catalog(), name),
            None => Rights::all(),
        };
    }

    /// Runs something of the server's own, whichever rights the client has.
    pub(crate) fn with_all_rights<T>(&mut self, body: impl FnOnce(&mut Session) -> T) -> T {
        let own = std::mem::replace(&mut self.rights, Rights::all());
        let account = self.info.account.take();
        // Sessions survive panics, and these rights must not.
        let result = catch_unwind(AssertUnwindSafe(|| body(self)));
        (self.rights, self.info.account) = (own, account);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    pub(crate) fn has_all_rights(&self) -> bool {
        self.rights.are_all
    }

    /// The account that the client is, as CURRENT_USER() shows it.
    pub(crate) fn account_name(&self) -> AccountName {
        match &self.info.account {
            Some(name) => name.clone(),
            None => AccountName::new(&self.info.user, &self.info.host),
        }
    }

    /// Error 1227 without one of the privileges.
    pub(crate) fn check_one_of(&self, privileges: Privileges) -> Result<()> {
        if self.rights.global.intersects(privileges) {
            return Ok(());
        }
        let names: Vec<&str> = privileges.names().collect();
        Err(SqlError::new(
            codes::SPECIFIC_ACCESS_DENIED_ERROR,
            format!(
                "Access denied; you need (at least one of) the {} privilege(s) for this operation",
                names.join(" or ")
            ),
        ))
    }

    /// Error 1044 if a privilege for a database is missing.
    pub(crate) fn check_database(&self, database: &str, privileges: Privileges) -> Result<()> {
        match self.rights.on_database(database).contains(privileges) {
            true => Ok(()),
            false => Err(self.denied_database(database)),
        }
    }

    /// Error 1044 for a database in which the session may do nothing.
    pub(crate) fn check_sees_database(&self, database: &str) -> Result<()> {
        match self.sees_database(database) {
            true => Ok(()),
            false => Err(self.denied_database(database)),
        }
    }

    pub(crate) fn denied_database(&self, database: &str) -> SqlError {
        let name = self.account_name();
        SqlError::database_access_denied(&name.user, &name.host, database)
    }

    pub(crate) fn sees_database(&self, database: &str) -> bool {
        is_virtual_database(database) || self.rights.see_database(database)
    }

    pub(crate) fn sees_table(&self, database: &str, table: &str) -> bool {
        is_virtual_database(database) || self.rights.see_table(database, table)
    }

    /// Error 1142 for a table that the session may do nothing with.
    pub(crate) fn check_sees_table(&self, database: &str, table: &str) -> Result<()> {
        match self.sees_table(database, table) {
            true => Ok(()),
            false => Err(self.denied_table(table, "SELECT")),
        }
    }

    /// Error 1142 if privileges for a table are missing.
    pub(crate) fn require_on_table(
        &self,
        database: &str,
        table: &str,
        privileges: Privileges,
    ) -> Result<()> {
        if self.rights.global.contains(privileges) || is_virtual_database(database) {
            return Ok(());
        }
        let missing = privileges.without(self.rights.on_table(database, table));
        match missing.is_empty() {
            true => Ok(()),
            false => Err(self.denied_table(table, &missing.to_string())),
        }
    }

    /// The same, of privileges one of which is enough; the first is the one that is missed.
    pub(crate) fn require_one_on_table(
        &self,
        database: &str,
        table: &str,
        privileges: Privileges,
        command: &str,
    ) -> Result<()> {
        let granted = self.rights.on_table(database, table);
        match granted.intersects(privileges) || is_virtual_database(database) {
            true => Ok(()),
            false => Err(self.denied_table(table, command)),
        }
    }

    fn denied_table(&self, table: &str, command: &str) -> SqlError {
        let (user, host) = (&self.info.user, &self.info.host);
        SqlError::new(
            codes::TABLEACCESS_DENIED_ERROR,
            format!("{command} command denied to user '{user}'@'{host}' for table '{table}'"),
        )
    }

    /// Whether a query may read a table that it names: error 1142 if not. A change that reads no column of its table
    /// needs not be allowed to.
    pub(crate) fn check_read(&self, database: &str, table: &str) -> Result<()> {
        match self.is_blind_change {
            true => Ok(()),
            false => self.require_on_table(database, table, Privileges::SELECT),
        }
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
