//! Frames: what the log is made of. A frame is recovered whole or not at all.
//!
//! ```text
//!  kind (1) | length of the body | body
//!
//!  mini-transaction    note, then the changes of its pages ([`redo_codec`](super::redo_codec))
//!  commit              transaction, time
//!  end of rollback     transaction
//! ```
//!
//! The *note* of a mini-transaction says what it means to a transaction. It is nothing (a split, a purge), or a change
//! of a row with all that its undo needs. Or it is the compensation of the transaction's newest change that is not
//! compensated yet. (There are two more notes. One says that a tree's counts were written, so that recovery can count
//! on from there. The other says that the pages of extents that a tree gets here were written past the log, so that the
//! log alone cannot make them.) So undo information and redo information reach the log together or not at all. What was
//! undone before a crash is not undone again (ARIES' compensation log records).

use crate::log::bytes::{Damaged, Reader, put_bytes, put_number};
use crate::log::change::{Change, TransactionId};
use crate::log::redo::RedoRecord;
use crate::log::redo_codec;
use crate::page::{PAGE_SIZE, PageId, TreeId};

/// First byte of a frame. The numbers are the log's format.
mod kind {
    pub(super) const MINI_TRANSACTION: u8 = 1;
    pub(super) const COMMIT: u8 = 2;
    pub(super) const END_OF_ROLLBACK: u8 = 3;
}

/// First byte of a mini-transaction's body.
mod note {
    pub(super) const NONE: u8 = 0;
    pub(super) const CHANGE: u8 = 1;
    pub(super) const COMPENSATION: u8 = 2;
    pub(super) const COUNTS: u8 = 3;
    pub(super) const PAGES_PAST_LOG: u8 = 4;
}

/// Largest body of a frame: three node images, their records, a note and a group's worth of extents fit by far.
pub(crate) const MAX_FRAME_BYTES: usize = 128 << 10;

/// What a mini-transaction is to a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Note<'a> {
    /// Nothing: it is never undone.
    None,
    /// A change of a row.
    Change {
        transaction: TransactionId,
        tree: TreeId,
        change: Change,
        key: &'a [u8],
        /// The value before, of an update or a delete; of the update of a part, that part.
        before: &'a [u8],
        /// Where the part begins in the value; 0 for other changes.
        start: usize,
    },
    /// The newest change of the transaction was undone.
    Compensation { transaction: TransactionId },
    /// The present number of entries of a tree was written to the tree directory.
    Counts { tree: TreeId },
    /// A tree gets extents whose pages were written past the log, and are durable: a bulk build while there is no
    /// archive.
    PagesPastLog,
}

/// A frame, read back.
#[derive(Clone, Copy)]
pub(crate) enum Frame<'a> {
    MiniTransaction {
        note: Note<'a>,
        /// The changes of pages, to be read by [`redo_codec::decode`].
        changes: Reader<'a>,
    },
    Commit {
        transaction: TransactionId,
        /// Microseconds since 1970.
        time_us: u64,
    },
    EndOfRollback(TransactionId),
}

/// Replaces `out` by the frame of a mini-transaction.
pub(crate) fn encode_mini_transaction<'r>(
    out: &mut Vec<u8>,
    note: Note<'_>,
    changes: impl Iterator<Item = (PageId, &'r RedoRecord<'r>)>,
) {
    out.clear();
    out.push(kind::MINI_TRANSACTION);
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    put_note(out, note);
    for (page, record) in changes {
        redo_codec::encode(out, page, record);
    }
    close(out);
}

/// A frame that changes nothing.
pub(crate) fn encode_nothing() -> Vec<u8> {
    let mut out = Vec::new();
    encode_mini_transaction(&mut out, Note::None, std::iter::empty());
    out
}

/// Appends the frame of a commit to `out`.
pub(crate) fn put_commit(out: &mut Vec<u8>, transaction: TransactionId, time_us: u64) {
    let start = out.len();
    out.push(kind::COMMIT);
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    put_number(out, transaction.0);
    put_number(out, time_us);
    close(&mut out[start..]);
}

/// The frame that ends a rollback.
pub(crate) fn encode_end_of_rollback(transaction: TransactionId) -> Vec<u8> {
    let mut out = vec![kind::END_OF_ROLLBACK];
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    put_number(&mut out, transaction.0);
    close(&mut out);
    out
}

/// Bytes of a body's length: three, which is [`MAX_FRAME_BYTES`] and more.
const LENGTH_BYTES: usize = 3;

/// Bytes before the body.
const HEAD_BYTES: usize = 1 + LENGTH_BYTES;

fn close(frame: &mut [u8]) {
    let length = frame.len() - HEAD_BYTES;
    assert!(length <= MAX_FRAME_BYTES, "a frame of {length} bytes");
    frame[1..HEAD_BYTES].copy_from_slice(&(length as u32).to_le_bytes()[..LENGTH_BYTES]);
}

/// Bytes of the frame that `bytes` begin with, its head included.
pub(crate) fn length(bytes: &[u8]) -> Result<usize, Damaged> {
    let head = bytes.first_chunk::<HEAD_BYTES>().ok_or(Damaged)?;
    let length = u32::from_le_bytes([head[1], head[2], head[3], 0]) as usize;
    if length > MAX_FRAME_BYTES || HEAD_BYTES + length > bytes.len() {
        return Err(Damaged);
    }
    Ok(HEAD_BYTES + length)
}

/// Reads a frame that [`length`] has measured.
pub(crate) fn decode(frame: &[u8]) -> Result<Frame<'_>, Damaged> {
    let kind = *frame.first().ok_or(Damaged)?;
    let mut body = Reader(frame.get(HEAD_BYTES..).ok_or(Damaged)?);
    let decoded = match kind {
        kind::MINI_TRANSACTION => {
            return Ok(Frame::MiniTransaction {
                note: take_note(&mut body)?,
                changes: body,
            });
        }
        kind::COMMIT => Frame::Commit {
            transaction: TransactionId(body.number()?),
            time_us: body.number()?,
        },
        kind::END_OF_ROLLBACK => Frame::EndOfRollback(TransactionId(body.number()?)),
        _ => return Err(Damaged),
    };
    if body.is_empty() {
        Ok(decoded)
    } else {
        Err(Damaged)
    }
}

fn put_note(out: &mut Vec<u8>, note: Note<'_>) {
    match note {
        Note::None => out.push(note::NONE),
        Note::Change {
            transaction,
            tree,
            change,
            key,
            before,
            start,
        } => {
            out.push(note::CHANGE);
            put_number(out, transaction.0);
            put_number(out, tree.0);
            out.push(change as u8);
            put_bytes(out, key);
            if change == Change::UpdatePart {
                put_number(out, start as u64);
            }
            put_bytes(out, before);
        }
        Note::Compensation { transaction } => {
            out.push(note::COMPENSATION);
            put_number(out, transaction.0);
        }
        Note::Counts { tree } => {
            out.push(note::COUNTS);
            put_number(out, tree.0);
        }
        Note::PagesPastLog => out.push(note::PAGES_PAST_LOG),
    }
}

fn take_note<'a>(input: &mut Reader<'a>) -> Result<Note<'a>, Damaged> {
    match input.byte()? {
        note::NONE => Ok(Note::None),
        note::CHANGE => {
            let transaction = TransactionId(input.number()?);
            let tree = TreeId(input.number()?);
            let change = Change::from_byte(input.byte()?).ok_or(Damaged)?;
            let key = input.bytes()?;
            let start = match change {
                Change::UpdatePart => input.bounded(PAGE_SIZE)?,
                _ => 0,
            };
            Ok(Note::Change {
                transaction,
                tree,
                change,
                key,
                before: input.bytes()?,
                start,
            })
        }
        note::COMPENSATION => Ok(Note::Compensation {
            transaction: TransactionId(input.number()?),
        }),
        note::COUNTS => Ok(Note::Counts {
            tree: TreeId(input.number()?),
        }),
        note::PAGES_PAST_LOG => Ok(Note::PagesPastLog),
        _ => Err(Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_as_it_was_written() {
        let change = Note::Change {
            transaction: TransactionId(77),
            tree: TreeId(1000),
            change: Change::Update,
            key: b"key",
            before: &[1; 300],
            start: 0,
        };
        let part = Note::Change {
            transaction: TransactionId(78),
            tree: TreeId(1000),
            change: Change::UpdatePart,
            key: b"key",
            before: &[1; 30],
            start: 1234,
        };
        let compensation = Note::Compensation {
            transaction: TransactionId(1),
        };
        let counts = Note::Counts {
            tree: TreeId(1 << 20),
        };
        let records = [
            RedoRecord::PurgeGhosts,
            RedoRecord::RemoveEntry { slot: 9 },
            RedoRecord::SetValue {
                slot: 1,
                value: b"new",
            },
        ];
        let mut frame = Vec::new();
        let notes = [change, part, compensation, counts];
        for note in notes.into_iter().chain([Note::None, Note::PagesPastLog]) {
            let changes = records.iter().enumerate();
            encode_mini_transaction(
                &mut frame,
                note,
                changes.map(|(page, record)| (PageId(page as u64), record)),
            );
            assert_eq!(length(&frame), Ok(frame.len()));
            let Frame::MiniTransaction {
                note: read,
                mut changes,
            } = decode(&frame).unwrap()
            else {
                panic!("another kind of frame");
            };
            assert_eq!(read, note);
            for (page, _) in records.iter().enumerate() {
                let mut scratch = Box::new([0; PAGE_SIZE]);
                let (id, _) = redo_codec::decode(&mut changes, &mut scratch).unwrap();
                assert_eq!(id, PageId(page as u64));
            }
            assert!(changes.is_empty());
        }
        let mut commit = b"what was there before".to_vec();
        let start = commit.len();
        put_commit(&mut commit, TransactionId(5000), 1 << 50);
        assert_eq!(length(&commit[start..]), Ok(commit.len() - start));
        assert!(matches!(
            decode(&commit[start..]),
            Ok(Frame::Commit {
                transaction: TransactionId(5000),
                time_us: 0x0004_0000_0000_0000
            })
        ));
        let end = encode_end_of_rollback(TransactionId(3));
        assert!(matches!(
            decode(&end),
            Ok(Frame::EndOfRollback(TransactionId(3)))
        ));
    }

    #[test]
    fn what_is_cut_off_is_no_frame() {
        let mut commit = Vec::new();
        put_commit(&mut commit, TransactionId(5000), 1 << 50);
        for end in 0..commit.len() {
            assert_eq!(length(&commit[..end]), Err(Damaged));
            assert!(decode(&commit[..end]).is_err());
        }
    }
}
