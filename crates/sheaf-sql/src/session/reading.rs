//! What a session may read: with its own privileges, or with those of the account that has made a view.

use sheaf_frontend::query::Readable;
use sheaf_table::{AccountName, Privileges};
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::session::Session;

impl Session {
    /// Whether a query may read a table or a view, with the privileges of the session or of the account that has made
    /// the view which the table stands in. Errors 1142, 1345 and 1449.
    pub(crate) fn check_read_by(
        &self,
        reader: Option<&AccountName>,
        database: &str,
        table: &str,
    ) -> Result<()> {
        match reader {
            None => {
                self.client.check_read(database, table)?;
                self.check_explains(Privileges::SHOW_VIEW, (database, table))
            }
            // What is read with the privileges of another account is not shown to one that may not read it.
            account => {
                let to_see = Privileges::SELECT | Privileges::SHOW_VIEW;
                self.check_explains(to_see, (database, table))?;
                match self
                    .client
                    .readable_by(self.engine.catalog(), account, database, table)?
                {
                    Readable::Only(names) if names.is_empty() => {
                        Err(self.client.denied_table(table, "SELECT"))
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// EXPLAIN and traces show what a view is made of to accounts that may see it. Only views need SHOW VIEW.
    fn check_explains(&self, needed: Privileges, (database, table): (&str, &str)) -> Result<()> {
        if self.client.has_all_rights() {
            return Ok(());
        }
        let needed = match self.engine.catalog().view(database, table) {
            Some(_) => needed,
            None => needed.without(Privileges::SHOW_VIEW),
        };
        let granted = self.client.require_on_table(database, table, needed);
        match (granted, self.statement.is_explained) {
            (Ok(()), _) => Ok(()),
            (Err(_), true) => Err(SqlError::new(
                codes::VIEW_NO_EXPLAIN,
                "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table",
            )),
            (Err(_), false) => {
                self.traces.hide();
                Ok(())
            }
        }
    }
}
