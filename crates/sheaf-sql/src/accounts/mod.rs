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
//! more is checked. So a change of privileges, of an account or of a role, holds from the next statement on, of all
//! sessions.
//!
//! Rights are checked in two places: [`requirements`] when a statement is dispatched, by what it says, and
//! [`Client::check_read`] when a query names a table, be it in a subquery or in EXPLAIN. Direct plans are shared by
//! sessions, so each carries what it [needs](TableNeed), and every execution checks that.
//!
//! What an account and its roles may do is told in `rights/`; here is what accounts are asked and changed by.
//!
//! Sessions of the library have no account and may do everything: the program has the data anyway.
//!
//! | file | what it holds |
//! |---|---|
//! | [`columns`] | privileges on single columns |
//! | [`grant_tables`] | tables of `mysql` about accounts |
//! | [`logged`] | statements as the binary log has them |
//! | [`named`] | the accounts that a statement names |
//! | [`password`], [`sha256_crypt`] | what is kept of passwords, and proofs |
//! | [`requirements`] | which privileges a statement needs |
//! | [`roles`] | CREATE ROLE, GRANT of roles, SET ROLE and the like |
//! | [`role_tables`] | tables of `information_schema` about roles |
//! | [`statements`] | CREATE USER, GRANT and the like |
//! | [`show`] | SHOW GRANTS, SHOW CREATE USER, the tables of privileges |

mod columns;
mod grant_tables;
mod logged;
mod named;
pub mod password;
pub(crate) mod requirements;
mod role_tables;
mod roles;
mod sha256_crypt;
pub(crate) mod show;
pub(crate) mod statements;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use sheaf_table::{Account, AccountName, AuthenticationMethod, Catalog, Privileges};

use crate::engine::Engine;
use crate::rights::matching;
pub(crate) use crate::rights::{Client, Rights, TableNeed};
use crate::session::Session;
use crate::variables::VariableValue;
use crate::virtual_database::is_for_everybody;
pub(crate) use grant_tables::grant_table;
pub(crate) use requirements::{delete_reads, insert_needs, update_reads};
pub(crate) use role_tables::{
    administrable_role_authorizations, applicable_roles, enabled_roles, role_column_grants,
    role_table_grants,
};
pub(crate) use show::{
    column_privileges, privilege_rows, schema_privileges, table_privileges, user_privileges,
};

/// Whether an account may do something with a table; `None` if there is no such account.
fn may(
    catalog: &Catalog,
    account: &AccountName,
    (database, table): (&str, &str),
    privileges: Privileges,
) -> Option<bool> {
    let rights = Rights::by_default(catalog, account);
    rights.sources().first()?;
    let granted = rights.on_table(database, table);
    Some(granted.contains(privileges) || is_for_everybody(database, table))
}

/// Runs something of the server's own, whichever rights the client has. Names of tables mean those of all sessions:
/// what the client has put into a table of its own is not the server's.
pub(crate) fn with_all_rights<T>(session: &mut Session, body: impl FnOnce(&mut Session) -> T) -> T {
    let own = std::mem::replace(&mut session.client.rights, Rights::all());
    let account = session.client.info.account.take();
    let temporary = std::mem::take(&mut session.temporary);
    // Sessions survive panics, and these rights must not.
    let result = catch_unwind(AssertUnwindSafe(|| body(session)));
    (session.client.rights, session.client.info.account) = (own, account);
    session.temporary = temporary;
    result.unwrap_or_else(|panic| resume_unwind(panic))
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

    /// Whether a password is that of an account, of either method. One without a password has the empty one.
    pub fn is_password_right(&self, account: &Account, password: &[u8]) -> bool {
        if account.verifier.is_empty() || password.is_empty() {
            return account.verifier.is_empty() && password.is_empty();
        }
        match account.method {
            AuthenticationMethod::NativePassword => {
                password::is_native_password(&account.verifier, password)
            }
            AuthenticationMethod::CachingSha2Password => {
                self.is_sha2_password_right(account, password)
            }
        }
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

impl Engine {
    /// `default_authentication_plugin`
    pub(super) fn default_method(&self) -> AuthenticationMethod {
        let globals = self.globals();
        let name = match globals.get("default_authentication_plugin") {
            Ok(VariableValue::Text(name)) => name.as_str(),
            _ => "",
        };
        AuthenticationMethod::by_name(name).unwrap_or(AuthenticationMethod::NativePassword)
    }
}
