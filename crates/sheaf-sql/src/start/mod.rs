//! Opens a database, starts its sessions, and does what needs sessions of the engine's own.
//!
//! | file | what it holds |
//! |---|---|
//! | [`start_variables`] | system variables of a configuration, and those of SET PERSIST |
//! | [`cost_tables`] | makes and fills the tables of cost constants |
//! | [`maintenance`] | what an engine does by itself, beside all statements |
//! | [`open_accounts`] | accounts without a password that administer the server |

mod cost_tables;
mod maintenance;
mod open_accounts;
pub(crate) mod start_variables;

use std::path::Path;
use std::sync::Arc;

use sheaf_storage::{LOCK_BYTES, Storage, StorageOptions};
use sheaf_table::AccountName;

use crate::catalog_views::CatalogViews;
use crate::engine::{Engine, EngineOptions};
use crate::error::Result;
use crate::session::{Session, SessionInfo};

impl Engine {
    /// Opens the database in a directory, creating it when it is absent.
    pub fn open(path: &Path, options: EngineOptions) -> Result<Arc<Engine>> {
        options.check()?;
        let memory = options.memory_split()?;
        let storage = Storage::open(
            path,
            StorageOptions {
                pool_bytes: memory.pool_bytes,
                max_version_bytes: memory.version_bytes,
                max_row_locks: options
                    .storage
                    .max_row_locks
                    .min(memory.lock_bytes / LOCK_BYTES),
                ..options.storage.clone()
            },
        )?;
        Self::open_storage(storage, path, options)
    }

    /// Opens the database in an open storage, such as one on the simulated disk.
    pub fn open_storage(
        storage: Arc<Storage>,
        path: &Path,
        options: EngineOptions,
    ) -> Result<Arc<Engine>> {
        let engine = Engine::new(storage, path, options)?;
        engine.reload_costs()?;
        engine.set_persisted()?;
        engine.start_binlog()?;
        Ok(engine)
    }

    /// Starts a session. Error 1040 when `max_connections` are open, 1203 and 1226 when the account has its share of
    /// them, 1053 when the engine is closing, 1049 when there is no such database.
    pub fn session(self: &Arc<Self>, info: SessionInfo) -> Result<Session> {
        let account = info.account.clone();
        let session = self.session_without_place(info)?;
        self.give_place(&session.handle, account.as_ref())?;
        Ok(session)
    }

    /// Starts the session of a client that has not identified itself yet. It gets a place of `max_connections` when it
    /// [has](Session::change_user). Error 1040 when too many are about to do so.
    pub fn session_of_stranger(self: &Arc<Self>, host: &str) -> Result<Session> {
        self.session_without_place(SessionInfo {
            user: "unauthenticated user".into(),
            host: host.into(),
            account: Some(AccountName::new("", "")),
            ..SessionInfo::default()
        })
    }

    /// The session of the replica's applier, which is no client.
    pub(crate) fn session_of_replica(self: &Arc<Self>, info: SessionInfo) -> Result<Session> {
        self.session_without_place(info)
    }

    fn session_without_place(self: &Arc<Self>, info: SessionInfo) -> Result<Session> {
        let handle = self.begin_session(&info)?;
        let mut session = Session::new(Arc::clone(self), handle, info, &CatalogViews)?;
        session.read_rewrite_rules_once();
        Ok(session)
    }
}
