//! What a replica knows of its source: how to reach it, and how far its changes have come.
//!
//! Both are bytes to the catalog. The *position* is written by the transaction that makes the changes behind which it
//! stands, be it one of rows or one of the catalog itself. So a crash leaves both or neither.

use std::cell::RefCell;

use sheaf_storage::{Storage, Transaction, Tree};

use crate::catalog::Catalog;
use crate::catalog::records::{CHUNK_BYTES, header, kind, put};
use crate::error::Result;

/// Second byte of the keys: the source, and a chunk of the position.
const SOURCE: u8 = 0;
const POSITION: u8 = 1;

thread_local! {
    /// The position that the next change of the catalog on this thread writes.
    static POSITION_OF_CHANGE: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Forgets the position, however the work ends.
struct Forget;

impl Drop for Forget {
    fn drop(&mut self) {
        POSITION_OF_CHANGE.set(None);
    }
}

/// Does work in which the first change of the catalog, if there is one, writes this position. False: there was none,
/// or none has come about.
pub fn moved_to<T>(position: Vec<u8>, work: impl FnOnce() -> T) -> (T, bool) {
    POSITION_OF_CHANGE.set(Some(position));
    let _forget = Forget;
    let done = work();
    let is_written = POSITION_OF_CHANGE.with_borrow(Option::is_none);
    (done, is_written)
}

/// What the change that begins has to write.
pub(super) fn take_position() -> Option<Vec<u8>> {
    POSITION_OF_CHANGE.take()
}

/// The change has not come about.
pub(super) fn put_back(position: Option<Vec<u8>>) {
    POSITION_OF_CHANGE.set(position);
}

/// The source and the position as they are kept. `None`: there is no source.
pub struct KeptReplication {
    pub source: Vec<u8>,
    pub position: Vec<u8>,
}

impl Catalog {
    /// What is kept of a source.
    ///
    /// # Errors
    /// Whatever the storage reports.
    pub fn replication(&self) -> Result<Option<KeptReplication>> {
        let tree = self.storage.catalog_tree();
        let mut source = Vec::new();
        if !tree.get(&[kind::REPLICATION, SOURCE], &mut source)? {
            return Ok(None);
        }
        let (mut position, mut chunk) = (Vec::new(), Vec::new());
        for number in 0.. {
            if !tree.get(&position_key(number), &mut chunk)? {
                break;
            }
            position.extend_from_slice(&chunk);
            chunk.clear();
        }
        Ok(Some(KeptReplication { source, position }))
    }

    /// Keeps a source and a position; `None`: there is none any more.
    ///
    /// # Errors
    /// Whatever the storage reports.
    pub fn keep_replication(&self, kept: Option<&KeptReplication>) -> Result<()> {
        let definitions = self.definitions.lock();
        self.change(|tree, transaction| {
            let next = header(definitions.next_table_id);
            put(tree, transaction, &[kind::HEADER], &next)?;
            match kept {
                Some(kept) => {
                    put(
                        tree,
                        transaction,
                        &[kind::REPLICATION, SOURCE],
                        &kept.source,
                    )?;
                    put_position(tree, transaction, &kept.position)
                }
                None => {
                    tree.delete(transaction, &[kind::REPLICATION, SOURCE])?;
                    put_position(tree, transaction, &[])
                }
            }
        })
    }

    /// Keeps another source; the position stays.
    ///
    /// # Errors
    /// Whatever the storage reports.
    pub fn keep_source_options(&self, source: &[u8]) -> Result<()> {
        let _definitions = self.definitions.lock();
        self.change(|tree, transaction| {
            put(tree, transaction, &[kind::REPLICATION, SOURCE], source)
        })
    }
}

/// Writes the position behind a transaction's changes, in the transaction itself.
///
/// # Errors
/// Whatever the storage reports.
pub fn put_replication_position(
    storage: &Storage,
    transaction: &mut Transaction,
    position: &[u8],
) -> Result<()> {
    put_position(&storage.catalog_tree(), transaction, position)
}

pub(super) fn put_position(
    tree: &Tree,
    transaction: &mut Transaction,
    position: &[u8],
) -> Result<()> {
    let mut chunks = 0;
    for chunk in position.chunks(CHUNK_BYTES) {
        put(tree, transaction, &position_key(chunks), chunk)?;
        chunks += 1;
    }
    while tree.delete(transaction, &position_key(chunks))? {
        chunks += 1;
    }
    Ok(())
}

fn position_key(chunk: usize) -> [u8; 4] {
    let [high, low] = (chunk as u16).to_be_bytes();
    [kind::REPLICATION, POSITION, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_written_once_and_only_in_its_work() {
        let ((), is_written) = moved_to(b"here".to_vec(), || {});
        assert!(!is_written);
        assert_eq!(take_position(), None);
        let (taken, is_written) = moved_to(b"there".to_vec(), take_position);
        assert_eq!((taken, is_written), (Some(b"there".to_vec()), true));
        let ((), is_written) = moved_to(b"back".to_vec(), || put_back(take_position()));
        assert!(!is_written);
    }
}
