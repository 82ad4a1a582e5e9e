//! Accounts: which users may connect, from where, how they are authenticated, and what they may do.
//!
//! An account is a user's name and a pattern of hosts; what it was granted is part of it. The catalog keeps each
//! account as one value under its name (docs/catalog-format.md). What the patterns match, and how passwords are
//! proved, is decided above.
//!
//! A role is an account that others were granted. It is known by them alone: each account has the roles that it was
//! granted itself, and so an account that is dropped has to be dropped from the others ([`drop_accounts`]).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sheaf_storage::sync::RwLock;
use sheaf_storage::sync::atomic::{AtomicBool, AtomicU64};

use crate::catalog::privilege::{PrivilegeLevel, Privileges};
use crate::definition::codec::{Reader, Writer};
use crate::error::Result;

/// The newest format of an account that this program writes and reads.
const FORMAT: u64 = 5;
/// Before CREATE ROLE and DROP ROLE were privileges, CREATE USER was enough for both: in this and older formats it
/// brings them. What says the same so is written so, which older programs read.
const FORMAT_WITHOUT_ROLE_PRIVILEGES: u64 = 4;
/// The same without roles.
const FORMAT_WITHOUT_ROLES: u64 = 3;
/// The same without privileges on columns.
const FORMAT_WITHOUT_COLUMNS: u64 = 2;
const FORMAT_WITHOUT_LIMITS: u64 = 1;

const LOCKED: u64 = 1;
const REQUIRE_TLS: u64 = 2;

const WITH_ADMIN_OPTION: u64 = 1;
const DEFAULT_ROLE: u64 = 2;

/// The most characters of the name of a user.
pub const MAX_USER_CHARACTERS: usize = 32;
/// The most characters of the pattern of hosts.
pub const MAX_HOST_CHARACTERS: usize = 255;

/// All accounts by name.
pub type Accounts = BTreeMap<AccountName, Arc<Account>>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountName {
    /// Letter case counts. Empty: any user.
    pub user: String,
    /// In lower case: a host, an address, or a pattern with `%` and `_`.
    pub host: String,
}

impl AccountName {
    pub fn new(user: &str, host: &str) -> AccountName {
        AccountName {
            user: user.to_string(),
            host: host.to_lowercase(),
        }
    }
}

/// As MySQL's messages write it.
impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'@'{}'", self.user, self.host)
    }
}

/// How the user of an account is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationMethod {
    /// `mysql_native_password`
    NativePassword,
    /// `caching_sha2_password`
    CachingSha2Password,
}

impl AuthenticationMethod {
    pub fn name(self) -> &'static str {
        match self {
            AuthenticationMethod::NativePassword => "mysql_native_password",
            AuthenticationMethod::CachingSha2Password => "caching_sha2_password",
        }
    }

    pub fn by_name(name: &str) -> Option<AuthenticationMethod> {
        [
            AuthenticationMethod::NativePassword,
            AuthenticationMethod::CachingSha2Password,
        ]
        .into_iter()
        .find(|method| method.name().eq_ignore_ascii_case(name))
    }
}

/// See the module's comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: AccountName,
    pub method: AuthenticationMethod,
    /// What the method checks a password with, as text (`authentication_string`); empty: there is no password.
    pub verifier: String,
    /// ACCOUNT LOCK: connections are refused.
    pub locked: bool,
    /// REQUIRE SSL.
    pub require_tls: bool,
    /// Clients that may be connected at the same time; 0: as many as the global variable says.
    pub max_user_connections: u32,
    /// ON *.*
    pub global: Privileges,
    /// ON database.*; names may be patterns with `%` and `_`.
    pub databases: BTreeMap<String, Privileges>,
    /// ON database.table, by database and table.
    pub tables: BTreeMap<String, BTreeMap<String, Privileges>>,
    /// ON database.table of single columns, by database and table. None of the maps is empty.
    pub columns: BTreeMap<String, BTreeMap<String, ColumnPrivileges>>,
    /// The roles that were granted to the account itself. Each of them is there, and none leads back here.
    pub roles: BTreeMap<AccountName, GrantedRole>,
}

/// How an account has a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrantedRole {
    /// WITH ADMIN OPTION: the account may grant it to others.
    pub with_admin_option: bool,
    /// It is active when a client connects.
    pub is_default: bool,
}

/// Removes accounts, and what others have of them.
pub fn drop_accounts(accounts: &mut Accounts, names: &[AccountName]) {
    accounts.retain(|name, _| !names.contains(name));
    for account in accounts.values_mut() {
        if names.iter().any(|name| account.roles.contains_key(name)) {
            let roles = &mut Arc::make_mut(account).roles;
            roles.retain(|role, _| !names.contains(role));
        }
    }
}

/// What is granted on columns of a table, by their names as they were when it was granted.
pub type ColumnPrivileges = BTreeMap<String, Privileges>;

impl Account {
    /// An account that may connect without a password and do nothing.
    pub fn new(name: AccountName) -> Account {
        Account {
            name,
            method: AuthenticationMethod::NativePassword,
            verifier: String::new(),
            locked: false,
            require_tls: false,
            max_user_connections: 0,
            global: Privileges::NONE,
            databases: BTreeMap::new(),
            tables: BTreeMap::new(),
            columns: BTreeMap::new(),
            roles: BTreeMap::new(),
        }
    }

    /// What is granted on columns of a table; `None`: nothing.
    pub fn columns_of(&self, database: &str, table: &str) -> Option<&ColumnPrivileges> {
        self.columns.get(database)?.get(table)
    }

    /// The account that a new database has: `root` of this machine, without a password, with all privileges.
    pub fn root() -> Account {
        Account {
            global: Privileges::all_at(PrivilegeLevel::Dynamic) | Privileges::GRANT_OPTION,
            ..Account::new(AccountName::new("root", "localhost"))
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        // Each format has what those before it have.
        let has_role_privileges = with_role_privileges(self.global) != self.global;
        let has_roles = has_role_privileges || !self.roles.is_empty();
        let has_columns = has_roles || !self.columns.is_empty();
        let has_limits = has_columns || self.max_user_connections != 0;
        out.number(match (has_roles, has_columns, has_limits) {
            _ if has_role_privileges => FORMAT,
            (true, _, _) => FORMAT_WITHOUT_ROLE_PRIVILEGES,
            (false, true, _) => FORMAT_WITHOUT_ROLES,
            (false, false, true) => FORMAT_WITHOUT_COLUMNS,
            (false, false, false) => FORMAT_WITHOUT_LIMITS,
        });
        out.text(self.method.name());
        out.text(&self.verifier);
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        out.number(flag(self.locked, LOCKED) | flag(self.require_tls, REQUIRE_TLS));
        out.number(self.global.bits());
        out.number(self.databases.len() as u64);
        for (database, privileges) in &self.databases {
            out.text(database);
            out.number(privileges.bits());
        }
        out.number(self.tables.len() as u64);
        for (database, tables) in &self.tables {
            out.text(database);
            out.number(tables.len() as u64);
            for (table, privileges) in tables {
                out.text(table);
                out.number(privileges.bits());
            }
        }
        if has_limits {
            out.number(self.max_user_connections.into());
        }
        if has_columns {
            out.number(self.columns.len() as u64);
        }
        for (database, tables) in &self.columns {
            out.text(database);
            out.number(tables.len() as u64);
            for (table, columns) in tables {
                out.text(table);
                out.number(columns.len() as u64);
                for (column, privileges) in columns {
                    out.text(column);
                    out.number(privileges.bits());
                }
            }
        }
        if has_roles {
            out.number(self.roles.len() as u64);
        }
        for (role, granted) in &self.roles {
            out.text(&role.user);
            out.text(&role.host);
            out.number(
                flag(granted.with_admin_option, WITH_ADMIN_OPTION)
                    | flag(granted.is_default, DEFAULT_ROLE),
            );
        }
        out.into_bytes()
    }

    pub(crate) fn decode(name: AccountName, bytes: &[u8]) -> Result<Account> {
        let object = name.to_string();
        let mut read = Reader::new(bytes, &object);
        let format = read.version(FORMAT)?;
        let method = AuthenticationMethod::by_name(&read.text()?);
        let method = method.ok_or_else(|| read.corrupt())?;
        let verifier = read.text()?;
        let flags = read.number()?;
        let mut account = Account {
            method,
            verifier,
            locked: flags & LOCKED != 0,
            require_tls: flags & REQUIRE_TLS != 0,
            global: Privileges::from_bits(read.number()?),
            ..Account::new(name)
        };
        if format <= FORMAT_WITHOUT_ROLE_PRIVILEGES {
            account.global = with_role_privileges(account.global);
        }
        for _ in 0..read.count()? {
            let database = read.text()?;
            let privileges = Privileges::from_bits(read.number()?);
            account.databases.insert(database, privileges);
        }
        for _ in 0..read.count()? {
            let tables = account.tables.entry(read.text()?).or_default();
            for _ in 0..read.count()? {
                let table = read.text()?;
                tables.insert(table, Privileges::from_bits(read.number()?));
            }
        }
        if format > FORMAT_WITHOUT_LIMITS {
            let limit = u32::try_from(read.number()?);
            account.max_user_connections = limit.map_err(|_| read.corrupt())?;
        }
        if format > FORMAT_WITHOUT_COLUMNS {
            for _ in 0..read.count()? {
                let tables = account.columns.entry(read.text()?).or_default();
                for _ in 0..read.count()? {
                    let columns = tables.entry(read.text()?).or_default();
                    for _ in 0..read.count()? {
                        let column = read.text()?;
                        columns.insert(column, Privileges::from_bits(read.number()?));
                    }
                }
            }
        }
        if format > FORMAT_WITHOUT_ROLES {
            for _ in 0..read.count()? {
                let (user, host) = (read.text()?, read.text()?);
                let flags = read.number()?;
                let granted = GrantedRole {
                    with_admin_option: flags & WITH_ADMIN_OPTION != 0,
                    is_default: flags & DEFAULT_ROLE != 0,
                };
                account.roles.insert(AccountName { user, host }, granted);
            }
        }
        Ok(account)
    }
}

/// What privileges ON *.* mean in a format that does not know CREATE ROLE and DROP ROLE.
fn with_role_privileges(global: Privileges) -> Privileges {
    match global.contains(Privileges::CREATE_USER) {
        true => global | Privileges::CREATE_ROLE | Privileges::DROP_ROLE,
        false => global,
    }
}

/// The accounts of a catalog.
pub(crate) struct AccountState {
    pub(super) accounts: RwLock<Arc<Accounts>>,
    /// Grows with every change.
    pub(super) version: AtomicU64,
    /// Whether the catalog tree has them.
    pub(super) is_stored: AtomicBool,
}

impl AccountState {
    /// The accounts as the catalog tree has them.
    pub(crate) fn new(stored: Accounts) -> AccountState {
        let is_stored = !stored.is_empty();
        let accounts = if is_stored {
            stored
        } else {
            let root = Account::root();
            [(root.name.clone(), Arc::new(root))].into()
        };
        AccountState {
            accounts: RwLock::new(Arc::new(accounts)),
            version: AtomicU64::new(1),
            is_stored: AtomicBool::new(is_stored),
        }
    }
}

/// Puts accounts together while the catalog tree is read, chunk by chunk.
#[derive(Default)]
pub(crate) struct AccountReader(Vec<(AccountName, Vec<u8>)>);

impl AccountReader {
    /// Takes an entry; `rest` is its key after the first byte.
    pub(crate) fn add(&mut self, rest: &[u8], chunk: &[u8]) -> Option<()> {
        let mut names = rest.splitn(3, |byte| *byte == 0);
        let mut text = || String::from_utf8(names.next()?.to_vec()).ok();
        let name = AccountName {
            user: text()?,
            host: text()?,
        };
        match self.0.last_mut() {
            Some((last, bytes)) if *last == name => bytes.extend_from_slice(chunk),
            _ => self.0.push((name, chunk.to_vec())),
        }
        Some(())
    }

    pub(crate) fn finish(self) -> Result<AccountState> {
        let decoded = self.0.into_iter().map(|(name, bytes)| {
            let account = Account::decode(name.clone(), &bytes)?;
            Ok((name, Arc::new(account)))
        });
        Ok(AccountState::new(decoded.collect::<Result<Accounts>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clerk() -> Account {
        Account {
            method: AuthenticationMethod::CachingSha2Password,
            verifier: "$A$005$salt".to_string(),
            locked: true,
            require_tls: true,
            max_user_connections: 7,
            global: Privileges::PROCESS,
            databases: [("shop%".to_string(), Privileges::SELECT)].into(),
            tables: [(
                "shop".to_string(),
                [(
                    "orders".to_string(),
                    Privileges::INSERT | Privileges::GRANT_OPTION,
                )]
                .into(),
            )]
            .into(),
            columns: [("shop".to_string(), columns_of_stock())].into(),
            roles: [
                (AccountName::new("reader", "%"), GrantedRole::default()),
                (
                    AccountName::new("writer", "localhost"),
                    GrantedRole {
                        with_admin_option: true,
                        is_default: true,
                    },
                ),
            ]
            .into(),
            ..Account::new(AccountName::new("clerk", "10.0.%"))
        }
    }

    fn columns_of_stock() -> BTreeMap<String, ColumnPrivileges> {
        let columns = [
            ("item".to_string(), Privileges::SELECT),
            (
                "amount".to_string(),
                Privileges::SELECT | Privileges::UPDATE,
            ),
        ];
        [("stock".to_string(), columns.into())].into()
    }

    #[test]
    fn an_account_survives_its_encoding() {
        let without_roles = Account {
            roles: BTreeMap::new(),
            ..clerk()
        };
        let without_columns = Account {
            columns: BTreeMap::new(),
            ..without_roles.clone()
        };
        let only_roles = Account {
            roles: clerk().roles,
            ..Account::new(clerk().name)
        };
        let makes_no_roles = Account {
            global: Account::root().global.without(Privileges::CREATE_ROLE),
            ..Account::root()
        };
        let formats = [
            (clerk(), FORMAT_WITHOUT_ROLE_PRIVILEGES),
            (only_roles, FORMAT_WITHOUT_ROLE_PRIVILEGES),
            (makes_no_roles, FORMAT),
            (without_roles, FORMAT_WITHOUT_ROLES),
            (without_columns, FORMAT_WITHOUT_COLUMNS),
            (Account::root(), FORMAT_WITHOUT_LIMITS),
        ];
        for (account, format) in formats {
            // Numbers below 128 are one byte.
            assert_eq!(u64::from(account.encode()[0]), format);
            let read = Account::decode(account.name.clone(), &account.encode());
            assert_eq!(read.expect("it was encoded"), account);
        }
    }

    #[test]
    fn create_user_brings_the_privileges_on_roles_that_older_programs_did_not_know() {
        let of_roles = Privileges::CREATE_ROLE | Privileges::DROP_ROLE;
        for (old, expected) in [
            (Account::root().global, Account::root().global),
            (Privileges::CREATE_USER, Privileges::CREATE_USER | of_roles),
            (Privileges::SUPER, Privileges::SUPER),
        ] {
            let mut out = Writer::default();
            out.number(FORMAT_WITHOUT_LIMITS);
            out.text(AuthenticationMethod::CachingSha2Password.name());
            out.text("");
            out.number(0);
            out.number(old.without(of_roles).bits());
            out.number(0);
            out.number(0);
            let read = Account::decode(clerk().name, &out.into_bytes());
            assert_eq!(read.expect("an account").global, expected);
        }
    }

    #[test]
    fn no_account_has_a_role_that_was_dropped() {
        let mut accounts = Accounts::new();
        let reader = AccountName::new("reader", "%");
        for account in [clerk(), Account::new(reader.clone()), Account::root()] {
            accounts.insert(account.name.clone(), Arc::new(account));
        }
        drop_accounts(&mut accounts, std::slice::from_ref(&reader));
        assert_eq!(accounts.len(), 2);
        let left = &accounts[&clerk().name].roles;
        assert_eq!(
            left.keys().next(),
            Some(&AccountName::new("writer", "localhost"))
        );
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let bytes = clerk().encode();
        for end in 0..bytes.len() {
            assert!(
                Account::decode(clerk().name, &bytes[..end]).is_err(),
                "{end}"
            );
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                // Whatever it is read as, reading it ends.
                let _ = Account::decode(clerk().name, &damaged);
            }
        }
    }
}
