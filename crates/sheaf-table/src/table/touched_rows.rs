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
//!
//! A key that is in memory is not noted again. So rows that are changed again and again take no more room than once.
//!
//! **Limits.** Keys that were noted, and those that the build has kept, have a limit in bytes (the variable
//! `innodb_online_alter_log_max_size`). Beyond it, or where the file cannot be written, all of them are dropped, no
//! more are noted, and the build fails; changes of rows go on. If changes come faster than the build brings them to the
//! index, it asks for a [pace](NotingRows::slow_down): then changes wait a little after their notes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_storage::sync::Mutex;
use sheaf_storage::sync::atomic::{AtomicBool, Ordering};
use sheaf_storage::{TempFile, TempSpace};

use crate::error::{Result, TableError};

/// Bytes of keys in memory. The thread that brings them there writes them to the file, and others wait for it.
const MEMORY_BYTES: usize = 256 << 10;
/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// A change waits for no shorter time than this: threads do not sleep more exactly. It goes on, and the next ones wait.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// After so much of a wait a change looks whether the pace has been lifted.
const WAIT_SLICE: Duration = Duration::from_millis(10);

/// See the [module](self).
#[derive(Default)]
pub(crate) struct TouchedRows {
    is_noting: AtomicBool,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    keys: NotedKeys,
    /// The name of an index that is built, and how many bytes the keys may have.
    index: String,
    limit_bytes: u64,
    /// Bytes of keys that the build has taken and keeps.
    kept_bytes: u64,
    pace: Pace,
    /// Keys are lost, because this went wrong. The change of the row goes on.
    failure: Option<TableError>,
}

/// Primary keys in the order in which rows were changed, some of them more than once.
#[derive(Default)]
pub(crate) struct NotedKeys {
    space: Option<Arc<TempSpace>>,
    memory: Vec<u8>,
    /// The keys that are in memory.
    recent: HashSet<Box<[u8]>>,
    file: Option<TempFile>,
    count: u64,
    bytes: u64,
}

/// How fast keys may be noted.
#[derive(Default)]
struct Pace {
    /// From one key to the next; 0: no matter.
    interval: Duration,
    /// No change waits for longer, however many sessions change rows.
    longest: Duration,
    /// When the last key was due.
    due: Option<Instant>,
}

impl Pace {
    /// A key was noted: how long its change waits.
    fn wait(&mut self, now: Instant) -> Duration {
        if self.interval.is_zero() {
            return Duration::ZERO;
        }
        let due = self.due.map_or(now, |due| due.max(now)) + self.interval;
        let due = due.min(now + self.longest);
        self.due = Some(due);
        let wait = due - now;
        match wait < SHORTEST_WAIT {
            true => Duration::ZERO,
            false => wait,
        }
    }
}

impl Noted {
    /// Returns how long the change waits.
    fn note(&mut self, key: &[u8]) -> Duration {
        if self.failure.is_some() || self.keys.recent.contains(key) {
            return Duration::ZERO;
        }
        let pushed = match self.keys.bytes + self.kept_bytes + entry_bytes(key) > self.limit_bytes {
            true => Err(self.too_many()),
            false => self.keys.push(key),
        };
        match pushed {
            Ok(()) => self.pace.wait(Instant::now()),
            Err(failure) => {
                self.fail(failure);
                Duration::ZERO
            }
        }
    }

    fn too_many(&self) -> TableError {
        TableError::TooManyChangesBeside {
            index: self.index.clone(),
        }
    }

    /// Memory and file are given back at once.
    fn fail(&mut self, failure: TableError) {
        self.keys = NotedKeys::default();
        self.failure = Some(failure);
    }
}

/// Bytes that a key takes.
pub(crate) fn entry_bytes(key: &[u8]) -> u64 {
    (size_of::<u16>() + key.len()) as u64
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
            self.recent.clear();
        }
        self.memory
            .extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.memory.extend_from_slice(key);
        self.recent.insert(key.into());
        self.count += 1;
        self.bytes += entry_bytes(key);
        Ok(())
    }

    /// Gives all keys to `each`.
    ///
    /// # Errors
    /// Those of `each`; keys could not be read.
    pub(crate) fn for_each(self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
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
    /// Keys are noted until what is returned is dropped, up to so many bytes. Transactions that have opened the table
    /// before may not know. `index`: the name of one that is built.
    pub(crate) fn start(
        &self,
        space: &Arc<TempSpace>,
        index: &str,
        limit_bytes: u64,
    ) -> NotingRows<'_> {
        *self.noted.lock() = Noted {
            keys: NotedKeys::of_space(space),
            index: index.to_string(),
            limit_bytes,
            ..Noted::default()
        };
        self.is_noting.store(true, Ordering::SeqCst);
        NotingRows(self)
    }

    /// A row is about to be changed, inserted or deleted. The caller keeps no page, and may have to wait a little.
    #[inline]
    pub(crate) fn note(&self, primary_key: &[u8]) {
        if self.is_noting.load(Ordering::Acquire) {
            self.note_slowly(primary_key);
        }
    }

    #[cold]
    fn note_slowly(&self, primary_key: &[u8]) {
        let mut wait = self.noted.lock().note(primary_key);
        while !wait.is_zero() {
            let slice = wait.min(WAIT_SLICE);
            std::thread::sleep(slice);
            wait -= slice;
            if self.noted.lock().pace.interval.is_zero() {
                break;
            }
        }
    }
}

/// Keys of changed rows are noted while this lives.
pub(crate) struct NotingRows<'a>(&'a TouchedRows);

impl NotingRows<'_> {
    /// How many changes were noted since the keys were taken last.
    pub(crate) fn len(&self) -> u64 {
        self.0.noted.lock().keys.count
    }

    /// Takes the keys that were noted so far.
    ///
    /// # Errors
    /// Why keys are lost: `TooManyChangesBeside`, `TemporaryFile`.
    pub(crate) fn take(&self) -> Result<NotedKeys> {
        let mut noted = self.0.noted.lock();
        if let Some(failure) = noted.failure.take() {
            return Err(failure);
        }
        let next = NotedKeys {
            space: noted.keys.space.clone(),
            ..NotedKeys::default()
        };
        Ok(std::mem::replace(&mut noted.keys, next))
    }

    /// Whether keys are lost.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.noted.lock().failure.is_some()
    }

    /// How many bytes the keys have that were taken and are still to be looked at. They count for the limit.
    ///
    /// # Errors
    /// `TooManyChangesBeside`.
    pub(crate) fn keep(&self, bytes: u64) -> Result<()> {
        let mut noted = self.0.noted.lock();
        noted.kept_bytes = bytes;
        match bytes > noted.limit_bytes {
            true => Err(noted.too_many()),
            false => Ok(()),
        }
    }

    /// From now on a key may be noted after each `interval`, or sooner if many sessions change rows at the same time:
    /// no change waits for longer than `longest`. 0: nobody waits any more.
    pub(crate) fn slow_down(&self, interval: Duration, longest: Duration) {
        let pace = &mut self.0.noted.lock().pace;
        (pace.interval, pace.longest) = (interval, longest);
    }
}

impl Drop for NotingRows<'_> {
    fn drop(&mut self) {
        self.0.is_noting.store(false, Ordering::SeqCst);
        *self.0.noted.lock() = Noted::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: u64 = u64::MAX;

    fn storage() -> (tempfile::TempDir, Arc<sheaf_storage::Storage>) {
        let folder = tempfile::tempdir().unwrap();
        let options = sheaf_storage::StorageOptions::default();
        let storage = sheaf_storage::Storage::open(folder.path(), options).unwrap();
        (folder, storage)
    }

    fn taken(noting: &NotingRows<'_>) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        let each = |key: &[u8]| {
            keys.push(key.to_vec());
            Ok(())
        };
        noting.take().unwrap().for_each(each).unwrap();
        keys
    }

    #[test]
    fn keys_are_noted_from_memory_to_a_file_and_taken_once() {
        let (_folder, storage) = storage();
        let rows = TouchedRows::default();
        rows.note(b"before");
        let noting = rows.start(storage.temp_space(), "i", NO_LIMIT);
        assert!(taken(&noting).is_empty());
        let keys: Vec<Vec<u8>> = (0..3_000_u32)
            .map(|number| {
                let mut key = number.to_be_bytes().to_vec();
                key.resize(4 + number as usize % 700, b'k');
                key
            })
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
        assert!(taken(&rows.start(storage.temp_space(), "i", NO_LIMIT)).is_empty());
    }

    #[test]
    fn rows_that_are_changed_again_are_noted_once_until_they_are_taken() {
        let (_folder, storage) = storage();
        let rows = TouchedRows::default();
        let noting = rows.start(storage.temp_space(), "i", NO_LIMIT);
        for _ in 0..2 {
            (0..100).for_each(|number: u32| rows.note(&(number % 3).to_be_bytes()));
            assert_eq!(noting.len(), 3);
            assert_eq!(taken(&noting).len(), 3);
        }
    }

    #[test]
    fn keys_have_a_limit_and_what_is_beyond_drops_all() {
        let (_folder, storage) = storage();
        let rows = TouchedRows::default();
        let noting = rows.start(storage.temp_space(), "by_number", 1 << 20);
        let note = |number: u32| {
            let mut key = number.to_be_bytes().to_vec();
            key.resize(1_000, b'k');
            rows.note(&key);
        };
        (0..1_000).for_each(note);
        assert!(!noting.has_failed() && storage.temp_space().used_bytes() > 0);
        assert_eq!(taken(&noting).len(), 1_000);
        noting.keep(500 << 10).unwrap();
        (0..500).for_each(note);
        assert!(!noting.has_failed());
        (500..600).for_each(note);
        assert!(noting.has_failed());
        assert_eq!(storage.temp_space().used_bytes(), 0);
        let failure = noting.take().map(|_| ()).unwrap_err();
        assert_eq!(failure.mysql_code(), 1799);
        assert_eq!(
            failure.to_string(),
            "Creating index 'by_number' required more than 'innodb_online_alter_log_max_size' bytes of modification log. Please try again."
        );
        assert_eq!(noting.keep(2 << 20).unwrap_err().mysql_code(), 1799);
        drop(noting);
        let noting = rows.start(storage.temp_space(), "i", 1 << 20);
        (0..500).for_each(note);
        assert_eq!(taken(&noting).len(), 500);
    }

    #[test]
    fn a_pace_lets_a_few_pass_and_makes_nobody_wait_for_long() {
        let millis = Duration::from_millis;
        let now = Instant::now();
        let mut pace = Pace::default();
        assert!((0..1_000).all(|_| pace.wait(now).is_zero()));
        let longest_wait = millis(10);
        (pace.interval, pace.longest) = (Duration::from_micros(300), longest_wait);
        let waits: Vec<Duration> = (0..4).map(|_| pace.wait(now)).collect();
        let none = Duration::ZERO;
        assert_eq!(waits, [none, none, none, Duration::from_micros(1_200)]);
        // What was due has passed.
        assert!(pace.wait(now + millis(50)).is_zero());
        let longest = (0..1_000).map(|_| pace.wait(now + millis(50))).max();
        assert_eq!(longest, Some(longest_wait));
        assert_eq!(pace.wait(now + millis(55)), Duration::from_micros(5_300));
        // A slow pace makes nobody wait for longer.
        pace.interval = millis(100);
        let longest = (0..50).map(|_| pace.wait(now + millis(100))).max();
        assert_eq!(longest, Some(longest_wait));
    }
}
