//! The rows that other sessions change while an index is built.
//!
//! A change notes the primary key of its row here, before it changes the row. The build looks later what has become of
//! these rows. Keys are never taken back: a row that is as it was makes no difference to the build. So rollbacks need
//! not know of it, and there is nothing to recover.
//!
//! While no index is built, a change finds that out by reading one flag. Keys go to memory first, and then to a
//! temporary file, one after the other:
//!
//! ```text
//!   | key length (u16) | key | key length (u16) | key | ...
//! ```

use std::sync::Arc;

use sheaf_storage::sync::Mutex;
use sheaf_storage::sync::atomic::{AtomicBool, Ordering};
use sheaf_storage::{TempFile, TempSpace};

use crate::error::{Result, TableError};

/// Bytes of keys in memory. Who brings them there writes them to the file, and others wait for it.
const MEMORY_BYTES: usize = 256 << 10;
/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct TouchedRows {
    is_noting: AtomicBool,
    keys: Mutex<NotedKeys>,
}

/// Primary keys in the order in which rows were changed, some of them more than once.
#[derive(Default)]
pub(crate) struct NotedKeys {
    space: Option<Arc<TempSpace>>,
    memory: Vec<u8>,
    file: Option<TempFile>,
    count: u64,
    /// Keys are lost, because this went wrong. Who changed the row goes on.
    failure: Option<TableError>,
}

impl NotedKeys {
    fn of_space(space: &Arc<TempSpace>) -> NotedKeys {
        NotedKeys {
            space: Some(Arc::clone(space)),
            ..NotedKeys::default()
        }
    }

    fn push(&mut self, key: &[u8]) -> Result<()> {
        if self.memory.len() >= MEMORY_BYTES
            && let Some(space) = &self.space
        {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(space.create("touched")?),
            };
            file.append(&self.memory)?;
            self.memory.clear();
        }
        self.memory
            .extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.memory.extend_from_slice(key);
        self.count += 1;
        Ok(())
    }

    /// Gives all keys to `each`.
    ///
    /// # Errors
    /// Those of `each`; keys are lost, or could not be read.
    pub(crate) fn for_each(mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut bytes = Vec::new();
        if let Some(file) = &self.file {
            let (mut at, end) = (0, file.length());
            while at < end {
                let kept = bytes.len();
                let more = (end - at).min(READ_BYTES as u64);
                bytes.resize(kept + more as usize, 0);
                file.read_exact_at(&mut bytes[kept..], at)?;
                at += more;
                let read = keys_of(&bytes, &mut each)?;
                bytes.drain(..read);
            }
        }
        bytes.extend_from_slice(&self.memory);
        keys_of(&bytes, &mut each)?;
        Ok(())
    }
}

/// Gives the keys that are there as a whole to `each`. Returns how many bytes they are.
fn keys_of(bytes: &[u8], each: &mut impl FnMut(&[u8]) -> Result<()>) -> Result<usize> {
    let mut at = 0;
    while let Some((length, rest)) = bytes[at..].split_first_chunk::<2>()
        && let Some(key) = rest.get(..usize::from(u16::from_le_bytes(*length)))
    {
        each(key)?;
        at += length.len() + key.len();
    }
    Ok(at)
}

impl TouchedRows {
    /// Keys are noted until what is returned is dropped. Transactions that have opened the table before may not know.
    pub(crate) fn start(&self, space: &Arc<TempSpace>) -> NotingRows<'_> {
        *self.keys.lock() = NotedKeys::of_space(space);
        self.is_noting.store(true, Ordering::SeqCst);
        NotingRows(self)
    }

    /// A row is about to be changed, inserted or deleted.
    #[inline]
    pub(crate) fn note(&self, primary_key: &[u8]) {
        if self.is_noting.load(Ordering::Acquire) {
            self.note_slowly(primary_key);
        }
    }

    #[cold]
    fn note_slowly(&self, primary_key: &[u8]) {
        let mut keys = self.keys.lock();
        if keys.failure.is_none()
            && let Err(error) = keys.push(primary_key)
        {
            keys.failure = Some(error);
        }
    }
}

/// Keys of changed rows are noted while this lives.
pub(crate) struct NotingRows<'a>(&'a TouchedRows);

impl NotingRows<'_> {
    /// How many changes were noted since the keys were taken last.
    pub(crate) fn len(&self) -> u64 {
        self.0.keys.lock().count
    }

    /// Takes the keys that were noted so far.
    pub(crate) fn take(&self) -> NotedKeys {
        let mut keys = self.0.keys.lock();
        let next = NotedKeys {
            space: keys.space.clone(),
            ..NotedKeys::default()
        };
        std::mem::replace(&mut keys, next)
    }
}

impl Drop for NotingRows<'_> {
    fn drop(&mut self) {
        self.0.is_noting.store(false, Ordering::SeqCst);
        *self.0.keys.lock() = NotedKeys::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(noting: &NotingRows<'_>) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        let each = |key: &[u8]| {
            keys.push(key.to_vec());
            Ok(())
        };
        noting.take().for_each(each).unwrap();
        keys
    }

    #[test]
    fn keys_are_noted_from_memory_to_a_file_and_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let options = sheaf_storage::StorageOptions::default();
        let storage = sheaf_storage::Storage::open(folder.path(), options).unwrap();
        let rows = TouchedRows::default();
        rows.note(b"before");
        let noting = rows.start(storage.temp_space());
        assert!(taken(&noting).is_empty());
        let keys: Vec<Vec<u8>> = (0..3_000_u32)
            .map(|number| vec![b'k'; number as usize % 700])
            .collect();
        keys.iter().for_each(|key| rows.note(key));
        assert_eq!(noting.len(), 3_000);
        assert!(taken(&noting) == keys);
        assert_eq!(noting.len(), 0);
        rows.note(b"after");
        assert_eq!(taken(&noting), [b"after"]);
        rows.note(b"left over");
        drop(noting);
        rows.note(b"later");
        assert!(taken(&rows.start(storage.temp_space())).is_empty());
    }
}
