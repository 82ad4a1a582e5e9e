//! What SET PERSIST has kept for the next start.

use std::sync::{MutexGuard, PoisonError};

use sheaf_types::error::codes;

use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::variables::known_name;
use crate::variables::persisted::{self, PersistedVariables};

impl Engine {
    fn lock_persisted(&self) -> MutexGuard<'_, PersistedVariables> {
        self.persisted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What SET PERSIST has kept.
    pub(crate) fn persisted_variables(&self) -> PersistedVariables {
        self.lock_persisted().clone()
    }

    pub(crate) fn is_persisted(&self, name: &str) -> bool {
        let name = known_name(name).unwrap_or(name);
        self.lock_persisted().contains_key(name)
    }

    /// Changes what is persisted.
    ///
    /// # Errors
    /// 1026 if the file cannot be written, and those of `change`. Nothing has changed then.
    pub(crate) fn change_persisted<T>(
        &self,
        change: impl FnOnce(&mut PersistedVariables) -> Result<T>,
    ) -> Result<T> {
        let mut persisted = self.lock_persisted();
        let mut changed = persisted.clone();
        let result = change(&mut changed)?;
        if changed != *persisted {
            persisted::write_file(&self.directory, &changed).map_err(|error| {
                SqlError::new(
                    codes::ERROR_ON_WRITE,
                    format!("Error writing file '{}' ({error})", persisted::FILE),
                )
            })?;
            *persisted = changed;
        }
        Ok(result)
    }
}
