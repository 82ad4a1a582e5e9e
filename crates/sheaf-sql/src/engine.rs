//! One open database: its storage, its catalog, its sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Result, SqlError};
use crate::session::{Session, SessionHandle, SessionInfo};

/// How an engine is opened.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// What the whole process may use: buffer pool, query memory and the rest.
    pub memory_bytes: usize,
    /// The buffer pool's share; `None` lets the engine decide.
    pub pool_bytes: Option<usize>,
    /// Worker threads for vectorised plans; `None` takes the number of cores.
    pub threads: Option<usize>,
    pub max_connections: usize,
    /// The only directory LOAD DATA INFILE (without LOCAL) reads from; `None` forbids it.
    pub secure_file_priv: Option<PathBuf>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            memory_bytes: 512 << 20,
            pool_bytes: None,
            threads: None,
            max_connections: 151,
            secure_file_priv: None,
        }
    }
}

/// One open database. Shared by all its sessions.
pub struct Engine {
    options: EngineOptions,
    shutting_down: AtomicBool,
}

impl Engine {
    /// Opens the database in a directory, creating it when it is absent.
    pub fn open(_path: &Path, options: EngineOptions) -> Result<Arc<Engine>> {
        Ok(Arc::new(Engine {
            options,
            shutting_down: AtomicBool::new(false),
        }))
    }

    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Starts a session. Error 1040 when `max_connections` are open, 1053 when the engine is closing.
    pub fn session(self: &Arc<Self>, info: SessionInfo) -> Result<Session> {
        Ok(Session::new(Arc::clone(self), info))
    }

    /// The open sessions, by ascending id.
    pub fn sessions(&self) -> Vec<Arc<SessionHandle>> {
        Vec::new()
    }

    /// Ends the statement that a session runs, and with `connection` the session too. Error 1094 for an
    /// unknown id.
    pub fn kill(&self, id: u64, _connection: bool) -> Result<()> {
        Err(SqlError::no_such_thread(id))
    }

    /// No new sessions and no new statements from now on (error 1053); running statements go on.
    pub fn begin_shutdown(&self) {
        self.shutting_down.store(true, Ordering::Release);
    }

    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }

    /// The line that COM_STATISTICS answers.
    pub fn statistics_line(&self) -> String {
        String::new()
    }

    /// Ends all sessions and closes the storage; reopening finds everything that statements acknowledged.
    pub fn close(&self) -> Result<()> {
        self.begin_shutdown();
        Ok(())
    }
}
