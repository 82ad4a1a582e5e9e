//! Privileges on single columns, as a client has them. What a statement needs of columns is told in
//! `accounts/columns.rs`.

use sheaf_frontend::query::Readable;
use sheaf_table::{AccountName, Catalog, Privileges};
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::rights::{Client, Rights, TableNeed};
use crate::virtual_database::is_for_everybody;

impl Rights {
    /// What one has on the table, or on some of its columns.
    pub(crate) fn on_some_column(&self, database: &str, table: &str) -> Privileges {
        let granted = self.on_columns_of(database, table);
        granted.fold(self.on_table(database, table), |all, (_, set)| all | set)
    }

    /// What one has on a column.
    pub(crate) fn on_column(&self, database: &str, table: &str, column: &str) -> Privileges {
        let granted = self.on_columns_of(database, table);
        granted
            .filter(|(name, _)| name.to_lowercase() == column.to_lowercase())
            .fold(self.on_table(database, table), |all, (_, set)| all | set)
    }

    fn readable(&self, database: &str, table: &str) -> Readable {
        let is_all = is_for_everybody(database, table)
            || self.on_table(database, table).contains(Privileges::SELECT);
        if is_all {
            return Readable::All;
        }
        let granted = self.on_columns_of(database, table);
        let readable = granted.filter(|(_, set)| set.contains(Privileges::SELECT));
        Readable::Only(readable.map(|(name, _)| name.clone()).collect())
    }
}

impl Client {
    /// Error 1142 if privileges are missing that the session has on no column of a table, or not on the table.
    pub(crate) fn require_on_some_column(
        &self,
        database: &str,
        table: &str,
        privileges: Privileges,
    ) -> Result<()> {
        let on_some_column = |rights: &Rights| rights.on_some_column(database, table);
        match self.missing((database, table), privileges, on_some_column) {
            None => Ok(()),
            Some(missing) => Err(self.denied_table(table, &missing.to_string())),
        }
    }

    /// Error 1143 if privileges on a column are missing.
    pub(crate) fn require_on_column(
        &self,
        (database, table): (&str, &str),
        column: &str,
        privileges: Privileges,
    ) -> Result<()> {
        let on_column = |rights: &Rights| rights.on_column(database, table, column);
        match self.missing((database, table), privileges, on_column) {
            None => Ok(()),
            Some(missing) => Err(self.denied_column(table, column, &missing.to_string())),
        }
    }

    pub(crate) fn denied_column(&self, table: &str, column: &str, command: &str) -> SqlError {
        let (user, host) = (&self.info.user, &self.info.host);
        SqlError::new(
            codes::COLUMNACCESS_DENIED_ERROR,
            format!(
                "{command} command denied to user '{user}'@'{host}' for column '{column}' in table '{table}'"
            ),
        )
    }

    /// Whether the session may do what a direct plan does with the whole of its tables. False: columns may decide, or
    /// there is an error, which the statement finds when it is dispatched.
    pub(crate) fn meets_needs(&self, needs: &[TableNeed]) -> bool {
        self.check_needs(needs).is_ok()
    }

    /// What the session may read of a table.
    fn readable(&self, database: &str, table: &str) -> Readable {
        match self.has_all_rights() {
            true => Readable::All,
            false => self.rights.readable(database, table),
        }
    }
}

impl Client {
    /// What an account may read of a table: `None`: the session's. Error 1449.
    pub(crate) fn readable_by(
        &self,
        catalog: &Catalog,
        account: Option<&AccountName>,
        database: &str,
        table: &str,
    ) -> Result<Readable> {
        let Some(account) = account else {
            return Ok(self.readable(database, table));
        };
        let rights = Rights::by_default(catalog, account);
        match rights.sources().is_empty() {
            true => Err(SqlError::no_such_definer(account)),
            false => Ok(rights.readable(database, table)),
        }
    }
}
