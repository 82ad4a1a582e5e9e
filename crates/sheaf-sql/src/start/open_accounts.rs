//! Accounts that anybody from the right place may use, and that may do what others are to be kept from.

use std::sync::Arc;

use sheaf_table::{AccountName, Privileges};
use sheaf_types::text::quoting::quoted_string;

use crate::engine::Engine;
use crate::error::Result;
use crate::session::SessionInfo;

impl Engine {
    /// The accounts that administer the server and have no password.
    pub fn open_accounts(&self) -> Vec<AccountName> {
        let administers = Privileges::SUPER | Privileges::CREATE_USER | Privileges::SHUTDOWN;
        let accounts = self.catalog().accounts();
        let open = accounts.values().filter(|account| {
            let is_open = account.verifier.is_empty() && !account.locked;
            is_open && account.global.intersects(administers)
        });
        open.map(|account| account.name.clone()).collect()
    }

    /// Gives an account a password.
    ///
    /// # Errors
    /// Those of ALTER USER.
    pub fn set_password(self: &Arc<Self>, account: &AccountName, password: &str) -> Result<()> {
        let [user, host, password] = [&*account.user, &*account.host, password].map(quoted_string);
        let mut session = self.session(SessionInfo::default())?;
        session.run_own(&format!(
            "ALTER USER {user}@{host} IDENTIFIED BY {password}"
        ))
    }
}
