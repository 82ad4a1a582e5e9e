//! What a replica knows of its source: how to reach it, and how far its changes have come.
//!
//! Both are bytes to the catalog. The *position* is written by the transaction that makes the changes behind which it
//! stands, be it one of rows or one of the catalog itself. So a crash leaves both or neither.

use std::cell::RefCell;

use sheaf_storage::{Storage, Transaction, Tree};

use crate::catalog::Catalog;
use crate::catalog::records::{self, CHUNK_BYTES, header, kind};
use crate::error::Result;

/// Second byte of the keys: the source, and a chunk of the position.
const SOURCE: u8 = 0;
const POSITION: u8 = 1;

/// What a replica writes with the change that a statement of its source makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedChange {
    /// The position behind it.
    pub position: Vec<u8>,
    /// Where it comes from, for the replica's own followers: the first
    /// [annotation](sheaf_storage::Transaction::annotate) of the transaction.
    pub origin: Option<Vec<u8>>,
}

thread_local! {
    /// What the next change of the catalog on this thread writes.
    static APPLIED: RefCell<Option<AppliedChange>> = const { RefCell::new(None) };
}

/// Forgets it, however the work ends.
struct Forget;

impl Drop for Forget {
    fn drop(&mut self) {
        APPLIED.set(None);
    }
}

/// Does work in which the first change of the catalog, if there is one, writes this. False: there was none, or none has
/// come about.
pub fn applied<T>(change: AppliedChange, work: impl FnOnce() -> T) -> (T, bool) {
    APPLIED.set(Some(change));
    let _forget = Forget;
    let done = work();
    let is_written = APPLIED.with_borrow(Option::is_none);
    (done, is_written)
}

/// What the change that begins has to write.
pub(super) fn take() -> Option<AppliedChange> {
    APPLIED.take()
}

/// The change has not come about.
pub(super) fn put_back(change: Option<AppliedChange>) {
    APPLIED.set(change);
}

/// Writes it behind the change itself.
pub(super) fn put(
    tree: &Tree,
    transaction: &mut Transaction,
    change: &AppliedChange,
) -> Result<()> {
    put_position(tree, transaction, &change.position)?;
    match &change.origin {
        Some(origin) => Ok(transaction.annotate(origin, true)?),
        None => Ok(()),
    }
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
            records::put(tree, transaction, &[kind::HEADER], &next)?;
            match kept {
                Some(kept) => {
                    records::put(
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
            records::put(tree, transaction, &[kind::REPLICATION, SOURCE], source)
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

fn put_position(tree: &Tree, transaction: &mut Transaction, position: &[u8]) -> Result<()> {
    let mut chunks = 0;
    for chunk in position.chunks(CHUNK_BYTES) {
        records::put(tree, transaction, &position_key(chunks), chunk)?;
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
        let change = |position: &[u8]| AppliedChange {
            position: position.to_vec(),
            origin: None,
        };
        let ((), is_written) = applied(change(b"here"), || {});
        assert!(!is_written);
        assert_eq!(take(), None);
        let (taken, is_written) = applied(change(b"there"), take);
        assert_eq!((taken, is_written), (Some(change(b"there")), true));
        let ((), is_written) = applied(change(b"back"), || put_back(take()));
        assert!(!is_written);
    }
}
