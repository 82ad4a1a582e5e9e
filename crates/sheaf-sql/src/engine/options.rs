//! How an engine is opened, and how its memory is divided.
//!
//! # Memory
//!
//! `memory_bytes` bounds the whole process. It is split once, when the engine opens:
//!
//! ```text
//!   memory_bytes
//!   |- buffer pool      pool_bytes, or half of the whole
//!   |- query memory     half of what is left: hash tables, sorts, the sorts of bulk loads and index builds
//!   '- the rest         code and stacks, catalog, sessions, batches on their way, what libraries do not account
//! ```
//!
//! The pool never exceeds its part (its frames are all it has), running plans get theirs from one accounted pool
//! and spill or fail beyond it.

use std::path::PathBuf;

use sheaf_storage::StorageOptions;
use sheaf_table::CatalogLimits;

use crate::error::{Result, SqlError};

/// The least memory that an engine works in.
pub const MIN_MEMORY_BYTES: usize = 16 << 20;
/// The smallest buffer pool: a few pages for each level of the trees that a statement touches.
pub const MIN_POOL_BYTES: usize = 1 << 20;
/// The least memory of old versions of rows: a statement may change a hundred thousand small rows, however little
/// memory there is.
const MIN_VERSION_BYTES: usize = 8 << 20;
/// What they get where there is more, as long as it is not more than a quarter of all: some hundred bytes of each leaf
/// that a transaction changes stay in memory.
const WANTED_VERSION_BYTES: usize = 16 << 20;
/// The default of `max_allowed_packet` is this part of the memory: the syntax tree of a statement is many times as
/// big as its text.
pub(super) const PACKET_SHARE: usize = 32;
pub(super) const MIN_PACKET_BYTES: usize = 1 << 20;
pub(super) const MAX_PACKET_BYTES: usize = 64 << 20;
/// The part of the memory that all sessions together may keep for their next statements, and the part that their long
/// requests may take. See `session_memory` and `long_statement_memory`.
const SESSION_MEMORY_SHARE: usize = 8;
const LONG_STATEMENT_SHARE: usize = 8;
/// The part of the memory that the definitions of all tables may take, and the part of the statistics that are kept.
/// See `definition_memory` and `statistics_memory`.
const DEFINITION_SHARE: usize = 2;
const STATISTICS_SHARE: usize = 8;
/// The part of the memory that statements may take together before they run, and for the plans that run.
const PLANNING_SHARE: usize = 8;
/// The part of the memory that row locks may take. See `max_row_locks`.
const LOCK_SHARE: usize = 4;
/// What a client takes that has run a small statement: its session, its thread, and what both keep. So many as three
/// quarters of the memory hold may be connected.
const CONNECTION_BYTES: usize = 112 << 10;
/// What a digest takes with its text, its sample and its times, as a part of the eighth of the memory that all may
/// take.
pub(super) const DIGEST_BYTES: usize = 4 << 10;
pub(super) const DIGEST_SHARE: usize = 8;
/// Worker threads are never more than this.
const MAX_THREADS: usize = 64;

/// How an engine is opened.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// What the whole process may use: buffer pool, query memory and the rest.
    pub memory_bytes: usize,
    /// The buffer pool's share; `None`: half.
    pub pool_bytes: Option<usize>,
    /// Worker threads for vectorised plans; `None` takes the number of cores.
    pub threads: Option<usize>,
    pub max_connections: usize,
    /// Digests of statements that are counted (`performance_schema_digests_size`), fewer where the memory is small; 0:
    /// none.
    pub digests: usize,
    /// The only directory LOAD DATA INFILE (without LOCAL) reads from; `None` forbids it, an empty path allows any.
    pub secure_file_priv: Option<PathBuf>,
    /// Whether connections over the network must be encrypted; `SET GLOBAL require_secure_transport` changes it.
    pub require_secure_transport: bool,
    /// The port that the server listens on, for `@@port`.
    pub port: u16,
    /// How the storage is opened: durability, log, archive, limits. Its pool and its memory for versions follow from
    /// `memory_bytes`.
    pub storage: StorageOptions,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            memory_bytes: 512 << 20,
            pool_bytes: None,
            threads: None,
            max_connections: 151,
            digests: 10_000,
            secure_file_priv: None,
            require_secure_transport: false,
            port: 0,
            storage: StorageOptions::default(),
        }
    }
}

/// The split of an engine's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySplit {
    pub pool_bytes: usize,
    pub query_bytes: usize,
    /// Old versions of rows, for readers that may not see the newest.
    pub version_bytes: usize,
    /// Row locks, if their keys are short.
    pub lock_bytes: usize,
}

impl EngineOptions {
    /// Whether an engine can be opened with these.
    ///
    /// # Errors
    /// 1041 if there is too little memory, 1231 if nobody could connect, and those of the storage's options.
    pub fn check(&self) -> Result<()> {
        self.memory_split()?;
        if self.max_connections == 0 {
            return Err(SqlError::wrong_value_for_variable("max_connections", "0"));
        }
        Ok(self.storage.check()?)
    }

    /// Splits the memory. Error 1041 if there is too little of it.
    pub fn memory_split(&self) -> Result<MemorySplit> {
        let pool_bytes = self
            .pool_bytes
            .unwrap_or(self.memory_bytes / 2)
            .max(MIN_POOL_BYTES);
        let rest = self.memory_bytes.saturating_sub(pool_bytes);
        if self.memory_bytes < MIN_MEMORY_BYTES || rest < self.memory_bytes / 8 {
            return Err(SqlError::out_of_memory(&format!(
                "a memory of {} bytes with a buffer pool of {pool_bytes} leaves too little for queries; \
                 at least {MIN_MEMORY_BYTES} bytes are needed, an eighth of them beside the pool",
                self.memory_bytes
            )));
        }
        Ok(MemorySplit {
            pool_bytes,
            query_bytes: rest / 2,
            version_bytes: (rest / 4)
                .max(MIN_VERSION_BYTES)
                .max(WANTED_VERSION_BYTES.min(self.memory_bytes / 4)),
            lock_bytes: self.memory_bytes / LOCK_SHARE,
        })
    }

    pub(super) fn worker_threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(cores).clamp(1, MAX_THREADS)
    }
}

pub(super) fn long_statement_bytes(memory_bytes: usize) -> usize {
    memory_bytes / LONG_STATEMENT_SHARE
}

pub(super) fn planning_bytes(memory_bytes: usize) -> usize {
    memory_bytes / PLANNING_SHARE
}

pub(super) fn catalog_limits(memory_bytes: usize) -> CatalogLimits {
    CatalogLimits {
        definition_bytes: memory_bytes / DEFINITION_SHARE,
        statistics_bytes: memory_bytes / STATISTICS_SHARE,
    }
}

pub(super) fn most_connections(memory_bytes: usize) -> usize {
    memory_bytes / 4 * 3 / CONNECTION_BYTES
}

pub(super) fn session_bytes(memory_bytes: usize) -> usize {
    memory_bytes / SESSION_MEMORY_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(memory_mib: usize, pool_mib: Option<usize>) -> Result<(usize, usize)> {
        let options = EngineOptions {
            memory_bytes: memory_mib << 20,
            pool_bytes: pool_mib.map(|pool| pool << 20),
            ..EngineOptions::default()
        };
        options
            .memory_split()
            .map(|split| (split.pool_bytes >> 20, split.query_bytes >> 20))
    }

    #[test]
    fn memory_is_split_between_pool_and_queries() {
        assert_eq!(split(512, None), Ok((256, 128)));
        assert_eq!(split(512, Some(384)), Ok((384, 64)));
        assert_eq!(split(64, Some(2)), Ok((2, 31)));
    }

    #[test]
    fn a_pool_that_leaves_nothing_is_refused() {
        assert_eq!(split(64, Some(63)).map_err(|error| error.code), Err(1041));
        assert_eq!(split(4, None).map_err(|error| error.code), Err(1041));
    }

    #[test]
    fn options_that_no_engine_runs_with_are_refused() {
        let code = |options: EngineOptions| options.check().map_err(|error| error.code);
        assert_eq!(code(EngineOptions::default()), Ok(()));
        let without_clients = EngineOptions {
            max_connections: 0,
            ..EngineOptions::default()
        };
        assert_eq!(code(without_clients), Err(1231));
        for fill_factor in [0.1, 1.5, f32::NAN] {
            let storage = StorageOptions {
                fill_factor,
                ..StorageOptions::default()
            };
            let options = EngineOptions {
                storage,
                ..EngineOptions::default()
            };
            assert!(options.check().is_err(), "{fill_factor}");
        }
    }
}
