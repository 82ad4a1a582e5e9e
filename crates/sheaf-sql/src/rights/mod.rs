//! What a session may do: the privileges of its account, and those of the roles that are active.
//!
//! ```text
//!   account ── own privileges ─────────────┐
//!      └─ roles that are active ── theirs ─┼─> one set for each database, table and column
//!            └─ roles of these ─── theirs ─┘
//! ```
//!
//! This is the only place where privileges of several accounts become one set. Each of them says by itself what it has
//! on a database, by the pattern of its own that fits best; then all of them are added up.
//!
//! | file | what it holds |
//! |---|---|
//! | [`client`] | the client of a session: its account, and what it may do |
//! | [`columns`] | the same of single columns |
//! | [`matching`] | which account a client is, and which pattern fits a database |
//! | [`table_need`] | what a plan that sessions share needs of a table |

pub(crate) mod client;
mod columns;
pub(crate) mod matching;
mod table_need;

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_table::{
    Account, AccountName, Accounts, Catalog, GrantedRole, PrivilegeLevel, Privileges,
};

pub(crate) use client::Client;
pub(crate) use table_need::TableNeed;

/// See the module's comment.
pub(crate) struct Rights {
    /// The version of the accounts that the others are of.
    pub(crate) version: u64,
    /// The account, and behind it the roles that it uses. Empty: of a session of the library, or the account is gone;
    /// `global` tells which.
    sources: Vec<Arc<Account>>,
    /// ON *.*
    pub(crate) global: Privileges,
    /// Those are all that there are.
    pub(crate) are_all: bool,
}

impl Rights {
    /// Those of the program itself.
    pub(crate) fn all() -> Rights {
        let global = Privileges::all_at(PrivilegeLevel::Dynamic) | Privileges::GRANT_OPTION;
        Rights::new(0, Vec::new(), global)
    }

    /// Those of an account with some of the roles that were granted to it.
    pub(crate) fn of(
        catalog: &Catalog,
        name: &AccountName,
        is_active: impl Fn(&AccountName, GrantedRole) -> bool,
    ) -> Rights {
        // In this order: a change in between is seen at the next statement.
        let version = catalog.accounts_version();
        let accounts = catalog.accounts();
        let sources = match accounts.get(name) {
            Some(account) => with_roles(&accounts, account, is_active),
            None => Vec::new(),
        };
        let global = sources.iter().map(|source| source.global);
        let global = global.fold(Privileges::NONE, |all, set| all | set);
        Rights::new(version, sources, global)
    }

    /// Those that an account has where its roles are not chosen: in a view that it has made.
    pub(crate) fn by_default(catalog: &Catalog, name: &AccountName) -> Rights {
        Rights::of(catalog, name, |_, granted| granted.is_default)
    }

    fn new(version: u64, sources: Vec<Arc<Account>>, global: Privileges) -> Rights {
        Rights {
            version,
            sources,
            global,
            // ALL does not say that they may be given to others.
            are_all: global.contains(Privileges::all_at(PrivilegeLevel::Dynamic))
                && global.contains(Privileges::GRANT_OPTION),
        }
    }

    /// The account, and behind it the roles that it uses.
    pub(crate) fn sources(&self) -> &[Arc<Account>] {
        &self.sources
    }

    fn added_up(&self, first: Privileges, of: impl Fn(&Account) -> Privileges) -> Privileges {
        let sources = self.sources.iter();
        sources.fold(first, |all, source| all | of(source))
    }

    /// ON *.*, and ON database.*
    pub(crate) fn on_database(&self, database: &str) -> Privileges {
        self.added_up(self.global, |account| {
            let patterns = account.databases.iter().map(|(name, set)| (name, *set));
            matching::best_pattern(patterns, database).unwrap_or_default()
        })
    }

    /// What one has on each of the databases that fit a pattern, as GRANT names them.
    pub(crate) fn on_databases_like(&self, pattern: &str) -> Privileges {
        self.added_up(self.global, |account| {
            let exact = account.databases.get(pattern).copied();
            let patterns = account.databases.iter().map(|(name, set)| (name, *set));
            let granted = exact.or_else(|| matching::best_cover(patterns, pattern));
            granted.unwrap_or_default()
        })
    }

    pub(crate) fn on_table(&self, database: &str, table: &str) -> Privileges {
        self.added_up(self.on_database(database), |account| {
            let tables = account.tables.get(database);
            let own = tables.and_then(|tables| tables.get(table)).copied();
            own.unwrap_or_default()
        })
    }

    /// What is granted on single columns of a table; a column may come several times.
    pub(crate) fn on_columns_of(
        &self,
        database: &str,
        table: &str,
    ) -> impl Iterator<Item = (&String, Privileges)> {
        let sources = self.sources.iter();
        let columns = sources.filter_map(move |account| account.columns_of(database, table));
        columns.flatten().map(|(column, set)| (column, *set))
    }

    /// Whether there is anything in the database that one may use.
    pub(crate) fn see_database(&self, database: &str) -> bool {
        let shows = Privileges::all_at(PrivilegeLevel::Database) | Privileges::SHOW_DATABASES;
        let mut sources = self.sources.iter();
        self.on_database(database).intersects(shows)
            || sources.any(|account| {
                account.tables.contains_key(database) || account.columns.contains_key(database)
            })
    }

    pub(crate) fn see_table(&self, database: &str, table: &str) -> bool {
        let of_tables = Privileges::all_at(PrivilegeLevel::Table);
        self.on_some_column(database, table).intersects(of_tables)
    }

    /// Whether there is a privilege for the table that comes from none for its database.
    pub(crate) fn are_on_table_itself(&self, database: &str, table: &str) -> bool {
        self.sources.iter().any(|account| {
            let tables = account.tables.get(database);
            tables.is_some_and(|tables| tables.contains_key(table))
        })
    }

    /// Whether there is a privilege for the table, and not only for columns of it.
    pub(crate) fn see_definition(&self, database: &str, table: &str) -> bool {
        let of_tables = Privileges::all_at(PrivilegeLevel::Table);
        self.on_table(database, table).intersects(of_tables)
    }
}

/// What an account may do ON *.* when it connects; nothing if there is none.
pub(crate) fn global_at_start(
    catalog: &Catalog,
    account: &AccountName,
    with_all_roles: bool,
) -> Privileges {
    let is_used = |_: &AccountName, granted| client::is_used_at_start(granted, with_all_roles);
    Rights::of(catalog, account, is_used).global
}

/// An account, and behind it those of its roles that are active, each with all roles that it has itself.
pub(crate) fn with_roles(
    accounts: &Accounts,
    account: &Arc<Account>,
    is_active: impl Fn(&AccountName, GrantedRole) -> bool,
) -> Vec<Arc<Account>> {
    let mut sources = vec![Arc::clone(account)];
    let granted = account.roles.iter();
    let active = granted.filter(|(role, granted)| is_active(role, **granted));
    let mut waiting: Vec<&AccountName> = active.map(|(role, _)| role).collect();
    let mut seen = BTreeSet::from([&account.name]);
    while let Some(role) = waiting.pop() {
        let is_new = seen.insert(role);
        if let Some(found) = accounts.get(role).filter(|_| is_new) {
            waiting.extend(found.roles.keys());
            sources.push(Arc::clone(found));
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(user: &str, roles: &[&str]) -> Account {
        let mut account = Account::new(AccountName::new(user, "%"));
        for role in roles {
            let role = AccountName::new(role, "%");
            account.roles.insert(role, GrantedRole::default());
        }
        account
    }

    #[test]
    fn a_role_brings_the_roles_that_it_has() {
        let all = [
            account("ann", &["reader", "chief"]),
            account("chief", &["writer", "reader"]),
            account("reader", &["base"]),
            account("writer", &["base", "gone"]),
            account("base", &[]),
        ];
        let accounts: Accounts = all
            .into_iter()
            .map(|account| (account.name.clone(), Arc::new(account)))
            .collect();
        let names_with = |active: &str| {
            let ann = &accounts[&AccountName::new("ann", "%")];
            let sources = with_roles(&accounts, ann, |role, _| role.user == active);
            let names = sources.iter().map(|source| source.name.user.clone());
            let mut names: Vec<String> = names.collect();
            assert_eq!(names.remove(0), "ann");
            names.sort_unstable();
            names
        };
        assert!(names_with("nobody").is_empty());
        assert_eq!(names_with("reader"), ["base", "reader"]);
        assert_eq!(names_with("chief"), ["base", "chief", "reader", "writer"]);
    }

    #[test]
    fn each_account_has_its_own_best_pattern() {
        let mut ann = account("ann", &["reader"]);
        ann.databases.insert("shop".into(), Privileges::INSERT);
        ann.databases.insert("%".into(), Privileges::DROP);
        let mut reader = account("reader", &[]);
        reader.databases.insert("sh%".into(), Privileges::SELECT);
        let sources = vec![Arc::new(ann), Arc::new(reader)];
        let rights = Rights::new(1, sources, Privileges::NONE);
        let both = Privileges::INSERT | Privileges::SELECT;
        assert_eq!(rights.on_database("shop"), both);
        let others = Privileges::DROP | Privileges::SELECT;
        assert_eq!(rights.on_database("shoe"), others);
        assert_eq!(rights.on_database("other"), Privileges::DROP);
    }
}
