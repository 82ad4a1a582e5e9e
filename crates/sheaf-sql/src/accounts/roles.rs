//! Roles: accounts whose privileges others may use.
//!
//! ```text
//!   CREATE ROLE reader                an account that no client may be
//!   GRANT reader TO ann               ann has it                          (an edge, kept with ann)
//!   SET DEFAULT ROLE reader TO ann    and uses it from the start
//!   SET ROLE reader | NONE | ...      or when a session says so
//! ```
//!
//! Any account may be granted as a role, and have roles itself; no edge closes a loop. What a session may do with the
//! roles that it uses is added up in [`rights`](crate::rights). A session keeps the names of the roles that it uses,
//! as MySQL does: one that is revoked or dropped brings nothing as long as the account does not have it again.
//!
//! An account grants a role that it has WITH ADMIN OPTION. With SUPER alone it grants a role that may do no more.
//! There are no mandatory roles, and no privilege ROLE_ADMIN: SUPER is enough for it in MySQL, too. DROP ROLE alone
//! drops locked accounts only.

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_table::{Account, AccountName, Accounts, Catalog, GrantedRole, Privileges, account};
use sheaf_types::error::codes;
use sheaf_types::text::quoting::quoted_name;

use super::named::{LeftOut, create, missing, operation_failed};
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::parser::account::{ActiveRoles, DefaultRoles, RoleGrant, UserName};
use crate::rights::client::roles_of;
use crate::rights::{Client, with_roles};
use crate::session::Session;

/// The most roles that an account is granted itself.
const MAX_ROLES_OF_ACCOUNT: usize = 256;

const CREATE_ROLE: &str = "CREATE ROLE";
const DROP_ROLE: &str = "DROP ROLE";

impl Client {
    /// CURRENT_ROLE()
    pub(crate) fn current_role(&self) -> String {
        match self.active_roles.is_empty() {
            true => "NONE".to_string(),
            false => list_of(&self.active_roles),
        }
    }

    /// Whether the session may grant roles and take them away. Error 1227.
    pub(super) fn check_may_grant_roles<'a>(
        &self,
        accounts: &Accounts,
        roles: impl Iterator<Item = &'a AccountName>,
    ) -> Result<()> {
        let has_admin_option = |role: &AccountName| {
            let mut sources = self.rights.sources().iter();
            sources.any(|source| {
                let granted = source.roles.get(role);
                granted.is_some_and(|granted| granted.with_admin_option)
            })
        };
        for role in roles.filter(|role| !has_admin_option(role)) {
            if !self.has_all_rights() && !self.rights.global.contains(Privileges::SUPER) {
                return Err(SqlError::new(
                    codes::SPECIFIC_ACCESS_DENIED_ERROR,
                    "Access denied; you need (at least one of) the WITH ADMIN, SUPER privilege(s) for this operation",
                ));
            }
            // No user grants what they do not have.
            self.check_covers(accounts, std::slice::from_ref(role))?;
        }
        Ok(())
    }
}

/// As GRANT writes an account.
pub(super) fn quoted(name: &AccountName) -> String {
    format!("{}@{}", quoted_name(&name.user), quoted_name(&name.host))
}

/// As GRANT lists roles.
pub(super) fn list_of<'a>(roles: impl IntoIterator<Item = &'a AccountName>) -> String {
    let roles: Vec<String> = roles.into_iter().map(quoted).collect();
    roles.join(",")
}

fn unknown_authorization(name: &AccountName) -> SqlError {
    SqlError::new(
        codes::UNKNOWN_AUTHID,
        format!("Unknown authorization ID {}", quoted(name)),
    )
}

/// Error 3530.
pub(super) fn not_granted(role: &AccountName, account: &AccountName) -> SqlError {
    SqlError::new(
        codes::ROLE_NOT_GRANTED,
        format!("{} is not granted to {}", quoted(role), quoted(account)),
    )
}

/// Error 3530 for a role that the account was not granted itself.
pub(super) fn check_granted(account: &Account, roles: &[AccountName]) -> Result<()> {
    let mut roles = roles.iter();
    match roles.find(|role| !account.roles.contains_key(role)) {
        Some(role) => Err(not_granted(role, &account.name)),
        None => Ok(()),
    }
}

/// Error 3532 for the name of an account that others have as a role.
pub(super) fn check_is_no_role(accounts: &Accounts, name: &AccountName) -> Result<()> {
    let mut others = accounts.values();
    match others.any(|account| account.roles.contains_key(name)) {
        true => Err(SqlError::new(
            codes::RENAME_ROLE,
            "Renaming of a role identifier is forbidden",
        )),
        false => Ok(()),
    }
}

/// Gives an account a role, which is there. Errors 4027 and 1105.
fn add_role(
    accounts: &mut Accounts,
    (name, role): (&AccountName, &AccountName),
    with_admin_option: bool,
) -> Result<()> {
    let granted = accounts
        .get(role)
        .ok_or_else(|| unknown_authorization(role))?;
    let brought = with_roles(accounts, granted, |_, _| true);
    if brought.iter().any(|brought| brought.name == *name) {
        return Err(SqlError::new(
            codes::ROLE_GRANTED_TO_ITSELF,
            format!(
                "User account {} is directly or indirectly granted to the role {}. The GRANT would create a loop",
                quoted(name),
                quoted(role)
            ),
        ));
    }
    let account = accounts.get_mut(name);
    let account = account.ok_or_else(|| unknown_authorization(name))?;
    let roles = &mut Arc::make_mut(account).roles;
    // To grant a role again takes nothing away, as in MariaDB.
    roles.entry(role.clone()).or_default().with_admin_option |= with_admin_option;
    match roles.len() > MAX_ROLES_OF_ACCOUNT {
        true => Err(SqlError::unknown(format!(
            "An account has at most {MAX_ROLES_OF_ACCOUNT} roles of its own"
        ))),
        false => Ok(()),
    }
}

/// Gives new accounts the roles that CREATE USER names. Error 3162 for a role that is not there.
pub(super) fn add_default_roles(
    accounts: &mut Accounts,
    names: &[AccountName],
    roles: &[AccountName],
) -> Result<()> {
    for name in names {
        for role in roles {
            add_role(accounts, (name, role), false)?;
            let account = accounts.get_mut(name).map(Arc::make_mut);
            if let Some(granted) = account.and_then(|account| account.roles.get_mut(role)) {
                granted.is_default = true;
            }
        }
    }
    Ok(())
}

/// Error 3162 for a role that is not there.
pub(super) fn check_known(accounts: &Accounts, roles: &[AccountName]) -> Result<()> {
    let mut roles = roles.iter();
    match roles.find(|role| !accounts.contains_key(role)) {
        Some(role) => Err(SqlError::new(
            codes::USER_DOES_NOT_EXIST,
            format!("Authorization ID {} does not exist.", quoted(role)),
        )),
        None => Ok(()),
    }
}

pub(super) fn create_roles(
    client: &Client,
    engine: &Engine,
    roles: Vec<AccountName>,
    if_not_exists: bool,
) -> Result<LeftOut> {
    if roles.iter().any(|role| role.user.is_empty()) {
        return Err(operation_failed(CREATE_ROLE, &roles));
    }
    let method = engine.default_method();
    let made = roles.into_iter().map(|name| Account {
        method,
        // No client may be it.
        locked: true,
        ..Account::new(name)
    });
    let made: Vec<Account> = made.collect();
    let mut left_out = LeftOut::new();
    engine.catalog().change_accounts(|accounts| {
        let names = made.iter().map(|account| &account.name);
        for name in names.filter(|name| !accounts.contains_key(name)) {
            client.check_covers_hidden(accounts, name)?;
        }
        left_out = create(accounts, made, CREATE_ROLE, if_not_exists)?;
        Ok::<(), SqlError>(())
    })?;
    Ok(left_out)
}

/// A role that an account does not have is none that is taken from it.
pub(super) fn revoke_roles(
    session: &mut Session,
    grant: &RoleGrant,
    if_exists: bool,
    ignore_unknown_user: bool,
) -> Result<()> {
    let (client, warnings) = (&session.client, &mut session.warnings);
    session.engine.catalog().change_accounts(|accounts| {
        client.check_may_grant_roles(accounts, grant.roles.iter())?;
        for role in &grant.roles {
            if accounts.contains_key(role) {
                continue;
            }
            let error = unknown_authorization(role);
            match if_exists {
                true => warnings.warn(error.code, error.message),
                false => return Err(error),
            }
        }
        for name in &client.names_of(&grant.accounts) {
            let Some(account) = accounts.get_mut(name) else {
                if !ignore_unknown_user {
                    return Err(unknown_authorization(name));
                }
                let message = format!("Authorization ID {} does not exist.", name.user);
                warnings.warn(codes::USER_DOES_NOT_EXIST, message);
                continue;
            };
            if grant
                .roles
                .iter()
                .any(|role| account.roles.contains_key(role))
            {
                let roles = &mut Arc::make_mut(account).roles;
                roles.retain(|role, _| !grant.roles.contains(role));
            }
        }
        Ok(())
    })
}

/// SET ROLE. Error 3530.
pub(super) fn set_role(session: &mut Session, roles: &ActiveRoles) -> Result<()> {
    let name = session.client.account_name();
    let accounts = session.engine.catalog().accounts();
    let has = |fits: &dyn Fn(&GrantedRole) -> bool| roles_of(&accounts, &name, fits);
    session.client.active_roles = match roles {
        ActiveRoles::None => BTreeSet::new(),
        ActiveRoles::Default => has(&|granted| granted.is_default),
        ActiveRoles::All => has(&|_| true),
        ActiveRoles::AllExcept(left_out) => {
            let mut all = has(&|_| true);
            all.retain(|role| !left_out.contains(role));
            all
        }
        ActiveRoles::Only(chosen) => {
            let all = has(&|_| true);
            let mut unknown = chosen.iter().filter(|role| !all.contains(role));
            if let Some(role) = unknown.next() {
                return Err(not_granted(role, &name));
            }
            chosen.iter().cloned().collect()
        }
    };
    session
        .client
        .take_rights(session.engine.catalog(), &session.handle);
    Ok(())
}

impl Client {
    /// Open sessions keep the roles that they use. Errors 3523 and 3530.
    pub(super) fn set_default_role(
        &self,
        catalog: &Catalog,
        users: &[UserName],
        roles: &DefaultRoles,
        if_exists: bool,
    ) -> Result<LeftOut> {
        let names = self.names_of(users);
        let mut left_out = LeftOut::new();
        catalog.change_accounts(|accounts| {
            self.check_covers(accounts, &names)?;
            for name in &names {
                let Some(account) = accounts.get_mut(name) else {
                    if !if_exists {
                        let error = match roles {
                            DefaultRoles::Only(roles) => roles.first(),
                            DefaultRoles::None | DefaultRoles::All => None,
                        };
                        let error = error.map(|role| not_granted(role, name));
                        return Err(error.unwrap_or_else(|| unknown_authorization(name)));
                    }
                    left_out.push(name.clone());
                    continue;
                };
                if let DefaultRoles::Only(roles) = roles {
                    check_granted(account, roles)?;
                }
                for (role, granted) in &mut Arc::make_mut(account).roles {
                    granted.is_default = match roles {
                        DefaultRoles::None => false,
                        DefaultRoles::All => true,
                        DefaultRoles::Only(roles) => roles.contains(role),
                    };
                }
            }
            Ok::<(), SqlError>(())
        })?;
        Ok(left_out)
    }

    pub(super) fn grant_roles(
        &self,
        catalog: &Catalog,
        grant: &RoleGrant,
        with_admin_option: bool,
    ) -> Result<()> {
        catalog.change_accounts(|accounts| {
            self.check_may_grant_roles(accounts, grant.roles.iter())?;
            let receivers = self.names_of(&grant.accounts);
            let mut names = grant.roles.iter().chain(&receivers);
            if let Some(unknown) = names.find(|name| !accounts.contains_key(name)) {
                return Err(unknown_authorization(unknown));
            }
            for name in &receivers {
                for role in &grant.roles {
                    add_role(accounts, (name, role), with_admin_option)?;
                }
            }
            Ok(())
        })
    }

    pub(super) fn drop_roles(
        &self,
        catalog: &Catalog,
        roles: &[AccountName],
        if_exists: bool,
    ) -> Result<LeftOut> {
        let mut left_out = LeftOut::new();
        catalog.change_accounts(|accounts| {
            self.check_covers(accounts, roles)?;
            let mut dropped = roles.iter().filter_map(|role| accounts.get(role));
            if !dropped.all(|account| account.locked) {
                self.check_one_of(Privileges::CREATE_USER)?;
            }
            left_out = missing(accounts, roles, DROP_ROLE, if_exists)?;
            account::drop_accounts(accounts, roles);
            Ok::<(), SqlError>(())
        })?;
        Ok(left_out)
    }
}
