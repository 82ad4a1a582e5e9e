//! The client of a session: its account, what it said that it can do, and what it may do.
//!
//! These are the questions about rights that need nothing else of the session. Which of them a statement asks is said
//! in `accounts/requirements.rs`.

use std::collections::BTreeSet;

use sheaf_storage::LockMode;
use sheaf_table::{AccountName, Accounts, Catalog, GrantedRole, Privileges};
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::parser::account::UserName;
use crate::rights::{Rights, TableNeed};
use crate::session_parts::handle::SessionHandle;
use crate::session_parts::info::SessionInfo;
use crate::virtual_database::{is_for_everybody, is_information_schema};

/// One of these is needed to lock rows that are read exclusively.
const TO_LOCK: Privileges = Privileges::from_all(&[
    Privileges::UPDATE,
    Privileges::DELETE,
    Privileges::LOCK_TABLES,
]);

/// See the module's comment.
pub(crate) struct Client {
    pub(crate) info: SessionInfo,
    pub(crate) rights: Rights,
    /// The roles that the session uses, as far as its account has them.
    pub(crate) active_roles: BTreeSet<AccountName>,
    /// The tables and views of which the running statement changes rows, if no query in it names them. They need no
    /// SELECT; their columns do, and so does what a view reads.
    pub(crate) changed_alone: Vec<(String, String)>,
}

impl Client {
    pub(crate) fn new(info: SessionInfo) -> Client {
        Client {
            info,
            rights: Rights::all(),
            active_roles: BTreeSet::new(),
            changed_alone: Vec::new(),
        }
    }

    /// Takes notice of changes of accounts. A statement's rights are those at its start.
    pub(crate) fn refresh_rights(&mut self, catalog: &Catalog, handle: &SessionHandle) {
        self.changed_alone.clear();
        if self.info.account.is_some() && self.rights.version != catalog.accounts_version() {
            self.take_rights(catalog, handle);
        }
    }

    /// The rights that the session's account has with the roles that the session uses.
    pub(crate) fn take_rights(&mut self, catalog: &Catalog, handle: &SessionHandle) {
        // It may have another name now. Until its client has identified itself, the handle knows of none.
        if self.info.account.is_some()
            && let Some(name) = handle.account()
        {
            self.info.account = Some(name);
        }
        self.rights = match &self.info.account {
            Some(name) => Rights::of(catalog, name, |role, _| self.active_roles.contains(role)),
            None => Rights::all(),
        };
    }

    /// The rights of a client that connects: with the default roles of its account, or with all of its roles.
    pub(crate) fn take_rights_at_start(
        &mut self,
        catalog: &Catalog,
        handle: &SessionHandle,
        with_all_roles: bool,
    ) {
        self.take_rights(catalog, handle);
        self.active_roles = match &self.info.account {
            Some(name) => {
                let is_used = |granted: &GrantedRole| is_used_at_start(*granted, with_all_roles);
                roles_of(&catalog.accounts(), name, is_used)
            }
            None => BTreeSet::new(),
        };
        self.take_rights(catalog, handle);
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

    /// The account that a view of the client's has for its definer.
    pub(crate) fn own_definer(&self) -> AccountName {
        match &self.info.account {
            Some(own) => own.clone(),
            // The program itself; every catalog has this account in the beginning.
            None => AccountName::new("root", "localhost"),
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
        is_information_schema(database) || self.rights.see_database(database)
    }

    pub(crate) fn sees_table(&self, database: &str, table: &str) -> bool {
        is_for_everybody(database, table) || self.rights.see_table(database, table)
    }

    pub(crate) fn sees_column(&self, database: &str, table: &str, column: &str) -> bool {
        let rights = self.rights.on_column(database, table, column);
        rights.intersects(Privileges::ON_COLUMNS)
    }

    /// What the session may do with a column, as `information_schema.columns` says it. Empty: it does not see it.
    pub(crate) fn column_privileges(&self, database: &str, table: &str, column: &str) -> String {
        let rights = self.rights.on_column(database, table, column);
        let names = [
            ("select", Privileges::SELECT),
            ("insert", Privileges::INSERT),
            ("update", Privileges::UPDATE),
            ("references", Privileges::REFERENCES),
        ];
        let names = names.iter().filter(|(_, needed)| rights.contains(*needed));
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        names.join(",")
    }

    /// Error 1142 for a table whose columns the session may do nothing with. What is granted on the table itself is
    /// enough, whatever it is.
    pub(crate) fn check_sees_columns(&self, database: &str, table: &str) -> Result<()> {
        match self.rights.are_on_table_itself(database, table) {
            true => Ok(()),
            false => self.require_one_on_table(database, table, Privileges::ON_COLUMNS, "SELECT"),
        }
    }

    /// Error 1142 for a table that the session may do nothing with.
    pub(crate) fn check_sees_table(&self, database: &str, table: &str) -> Result<()> {
        match self.sees_table(database, table) {
            true => Ok(()),
            false => Err(self.denied_table(table, "SELECT")),
        }
    }

    /// Error 1142 for a table of which the session may at most use columns: its definition names all of them.
    pub(crate) fn check_sees_definition(&self, database: &str, table: &str) -> Result<()> {
        self.check_sees_table(database, table)?;
        match is_for_everybody(database, table) || self.rights.see_definition(database, table) {
            true => Ok(()),
            false => Err(self.denied_table(table, "SHOW")),
        }
    }

    /// Error 1142 if privileges for a table are missing.
    pub(crate) fn require_on_table(
        &self,
        database: &str,
        table: &str,
        privileges: Privileges,
    ) -> Result<()> {
        let on_table = |rights: &Rights| rights.on_table(database, table);
        match self.missing((database, table), privileges, on_table) {
            None => Ok(()),
            Some(missing) => Err(self.denied_table(table, &missing.to_string())),
        }
    }

    /// Which of the privileges for a table, or for a column of it, are missing, if these are `granted`; `None`: none.
    pub(super) fn missing(
        &self,
        (database, table): (&str, &str),
        privileges: Privileges,
        granted: impl FnOnce(&Rights) -> Privileges,
    ) -> Option<Privileges> {
        if self.rights.global.contains(privileges) || is_for_everybody(database, table) {
            return None;
        }
        let missing = privileges.without(granted(&self.rights));
        (!missing.is_empty()).then_some(missing)
    }

    /// The same, of privileges one of which is enough, be it on a column.
    pub(crate) fn require_one_on_table(
        &self,
        database: &str,
        table: &str,
        privileges: Privileges,
        command: &str,
    ) -> Result<()> {
        let granted = self.rights.on_some_column(database, table);
        match granted.intersects(privileges) || is_for_everybody(database, table) {
            true => Ok(()),
            false => Err(self.denied_table(table, command)),
        }
    }

    pub(crate) fn denied_table(&self, table: &str, command: &str) -> SqlError {
        let (user, host) = (&self.info.user, &self.info.host);
        SqlError::new(
            codes::TABLEACCESS_DENIED_ERROR,
            format!("{command} command denied to user '{user}'@'{host}' for table '{table}'"),
        )
    }

    /// Whether a query may name a table, or some of its columns: error 1142 if not. Which columns is asked by
    /// [`ReadRights`](sheaf_frontend::query::ReadRights).
    pub(crate) fn check_read(&self, database: &str, table: &str) -> Result<()> {
        let mut changed = self.changed_alone.iter();
        match changed.any(|(of, name)| of == database && name == table) {
            true => Ok(()),
            false => self.require_on_some_column(database, table, Privileges::SELECT),
        }
    }

    /// Checks what a direct plan needs. Error 1142.
    pub(crate) fn check_needs(&self, needs: &[TableNeed]) -> Result<()> {
        for need in needs {
            let (database, table) = (&need.database, &need.table);
            self.require_on_table(database, table, need.privileges)?;
            if need.locks == Some(LockMode::Exclusive) {
                self.check_may_lock(database, table)?;
            }
        }
        Ok(())
    }

    /// Whether rows may be locked exclusively: error 1142 if not. To lock them against changes, it is enough to read
    /// them.
    pub(crate) fn check_may_lock(&self, database: &str, table: &str) -> Result<()> {
        self.require_one_on_table(database, table, TO_LOCK, "SELECT with locking clause")
    }

    pub(crate) fn is_own(&self, user: &UserName) -> bool {
        match user {
            UserName::Current => true,
            UserName::Named(name) => *name == self.account_name(),
        }
    }

    /// Whether a session is one's own, or one may see those of others. Error 1227.
    pub(crate) fn check_sees_session(&self, session: &SessionHandle) -> Result<()> {
        match self.sees_sessions_of(&session.activity().user) {
            true => Ok(()),
            false => self.check_one_of(Privileges::PROCESS),
        }
    }

    /// Whether the list of sessions has those of a user.
    pub(crate) fn sees_sessions_of(&self, user: &str) -> bool {
        user == self.info.user || self.rights.global.contains(Privileges::PROCESS)
    }

    /// Error 1095 for a session that is not one's own to end.
    pub(crate) fn check_may_kill(&self, session: &SessionHandle) -> Result<()> {
        let to_kill = Privileges::CONNECTION_ADMIN | Privileges::SUPER;
        if session.activity().user == self.info.user || self.check_one_of(to_kill).is_ok() {
            return Ok(());
        }
        Err(SqlError::new(
            codes::KILL_DENIED_ERROR,
            format!("You are not owner of thread {}", session.id()),
        ))
    }
}

/// Whether a session uses a role before it says which.
pub(crate) fn is_used_at_start(granted: GrantedRole, with_all_roles: bool) -> bool {
    with_all_roles || granted.is_default
}

/// Those of the roles of an account that fit; none if there is no such account.
pub(crate) fn roles_of(
    accounts: &Accounts,
    name: &AccountName,
    fits: impl Fn(&GrantedRole) -> bool,
) -> BTreeSet<AccountName> {
    let account = accounts.get(name);
    let granted = account.into_iter().flat_map(|account| &account.roles);
    let fitting = granted.filter(|(_, granted)| fits(granted));
    fitting.map(|(role, _)| role.clone()).collect()
}
