//! Frames: what the log is made of. A frame is recovered whole or not at all.
//!
//! ```text
//!  kind (1) | length of the body | body
//!
//!  mini-transaction    note, then the changes of its pages ([`redo_codec`](super::redo_codec))
//!  commit              transaction, time, perhaps its number
//!  end of rollback     transaction
//!  annotation          transaction, bytes
//! ```
//!
//! The *note* of a mini-transaction says what it means to a transaction. It is nothing (a split, a purge), or a change
//! of a row with all that its undo needs. Or it is the compensation of the transaction's newest change that is not
//! compensated yet. (There are two more notes. One says that a tree's counts were written, so that recovery can count
//! on from there. The other says that the pages of extents that a tree gets here were written past the log, so that the
//! log alone cannot make them.) So undo information and redo information reach the log together or not at all. What was
//! undone before a crash is not undone again (ARIES' compensation log records).
//!
//! Where changes are followed ([`crate::log::change_feed`]), the note of a change in a followed tree has the whole
//! value after it as well. A transaction that has made such changes gets the next number when it commits. Annotations
//! are what the floors above say about a transaction to followers. Without followers nothing of this is written.

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
    pub(super) const ANNOTATION: u8 = 4;
}

/// First byte of a mini-transaction's body.
mod note {
    pub(super) const NONE: u8 = 0;
    pub(super) const CHANGE: u8 = 1;
    pub(super) const COMPENSATION: u8 = 2;
    pub(super) const COUNTS: u8 = 3;
    pub(super) const PAGES_PAST_LOG: u8 = 4;
    pub(super) const ROW: u8 = 5;
}

/// Bits of an annotation.
mod annotation {
    /// The bytes end here; otherwise the transaction's next annotation goes on with them.
    pub(super) const IS_LAST: u8 = 1;
    /// They belong to the transaction, and are nothing unless it commits.
    pub(super) const OF_TRANSACTION: u8 = 2;
    /// The bytes begin here. What is left of an annotation that was not completed is nothing.
    pub(super) const IS_FIRST: u8 = 4;
    pub(super) const ALL: u8 = IS_LAST | OF_TRANSACTION | IS_FIRST;
}

/// Most bytes of one annotation frame. Longer ones are several.
pub(crate) const MAX_ANNOTATION_BYTES: usize = 64 << 10;

/// What the bytes of an annotation frame are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// The annotation begins here: what is left of one that was not completed is nothing.
    pub(crate) is_first: bool,
    /// It ends here; otherwise the transaction's next annotation frame goes on with it.
    pub(crate) is_last: bool,
    /// It is nothing unless the transaction commits.
    pub(crate) is_of_transaction: bool,
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
    /// A [`Change`](Note::Change) in a tree whose changes are followed.
    Row {
        transaction: TransactionId,
        tree: TreeId,
        change: Change,
        key: &'a [u8],
        /// The whole value before, of an update or a delete.
        before: &'a [u8],
        /// The whole value after; empty after a delete.
        after: &'a [u8],
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
        /// Of a transaction that has changed what is followed: 1, 2, 3 and so on, in the order of the log.
        number: Option<u64>,
    },
    EndOfRollback(TransactionId),
    Annotation {
        transaction: TransactionId,
        piece: Piece,
        bytes: &'a [u8],
    },
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
pub(crate) fn put_commit(
    out: &mut Vec<u8>,
    transaction: TransactionId,
    time_us: u64,
    number: Option<u64>,
) {
    let start = out.len();
    out.push(kind::COMMIT);
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    put_number(out, transaction.0);
    put_number(out, time_us);
    if let Some(number) = number {
        put_number(out, number);
    }
    close(&mut out[start..]);
}

/// Replaces `out` by the frame of an annotation of at most [`MAX_ANNOTATION_BYTES`].
pub(crate) fn encode_annotation(
    out: &mut Vec<u8>,
    transaction: TransactionId,
    piece: Piece,
    bytes: &[u8],
) {
    out.clear();
    out.push(kind::ANNOTATION);
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    put_number(out, transaction.0);
    let bits = [
        (piece.is_first, annotation::IS_FIRST),
        (piece.is_last, annotation::IS_LAST),
        (piece.is_of_transaction, annotation::OF_TRANSACTION),
    ];
    let set = bits.iter().filter(|(is_set, _)| *is_set);
    out.push(set.map(|(_, bit)| bit).sum());
    put_bytes(out, bytes);
    close(out);
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
            number: match body.is_empty() {
                true => None,
                false => Some(body.number()?),
            },
        },
        kind::ANNOTATION => {
            let transaction = TransactionId(body.number()?);
            let bits = body.byte()?;
            if bits & !annotation::ALL != 0 {
                return Err(Damaged);
            }
            Frame::Annotation {
                transaction,
                piece: Piece {
                    is_first: bits & annotation::IS_FIRST != 0,
                    is_last: bits & annotation::IS_LAST != 0,
                    is_of_transaction: bits & annotation::OF_TRANSACTION != 0,
                },
                bytes: body.bytes()?,
            }
        }
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
            put_changed_row(out, (transaction, tree), change, key);
            if change == Change::UpdatePart {
                put_number(out, start as u64);
            }
            put_bytes(out, before);
        }
        Note::Row {
            transaction,
            tree,
            change,
            key,
            before,
            after,
        } => {
            out.push(note::ROW);
            put_changed_row(out, (transaction, tree), change, key);
            put_bytes(out, before);
            put_bytes(out, after);
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

/// See [`take_changed_row`].
fn put_changed_row(
    out: &mut Vec<u8>,
    (transaction, tree): (TransactionId, TreeId),
    change: Change,
    key: &[u8],
) {
    put_number(out, transaction.0);
    put_number(out, tree.0);
    out.push(change as u8);
    put_bytes(out, key);
}

fn take_note<'a>(input: &mut Reader<'a>) -> Result<Note<'a>, Damaged> {
    match input.byte()? {
        note::NONE => Ok(Note::None),
        note::CHANGE => {
            let (transaction, tree, change, key) = take_changed_row(input)?;
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
        note::ROW => {
            let (transaction, tree, change, key) = take_changed_row(input)?;
            if change == Change::UpdatePart {
                return Err(Damaged);
            }
            Ok(Note::Row {
                transaction,
                tree,
                change,
                key,
                before: input.bytes()?,
                after: input.bytes()?,
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

/// What notes of changes begin with: by whom, in which tree, what kind of change, and the key of the row.
fn take_changed_row<'a>(
    input: &mut Reader<'a>,
) -> Result<(TransactionId, TreeId, Change, &'a [u8]), Damaged> {
    let transaction = TransactionId(input.number()?);
    let tree = TreeId(input.number()?);
    let change = Change::from_byte(input.byte()?).ok_or(Damaged)?;
    Ok((transaction, tree, change, input.bytes()?))
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
        let row = Note::Row {
            transaction: TransactionId(79),
            tree: TreeId(1001),
            change: Change::Update,
            key: b"key",
            before: &[1; 300],
            after: &[2; 200],
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
        let notes = [change, part, row, compensation, counts];
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
        put_commit(&mut commit, TransactionId(5000), 1 << 50, None);
        assert_eq!(length(&commit[start..]), Ok(commit.len() - start));
        assert!(matches!(
            decode(&commit[start..]),
            Ok(Frame::Commit {
                transaction: TransactionId(5000),
                time_us: 0x0004_0000_0000_0000,
                number: None,
            })
        ));
        let mut numbered = Vec::new();
        put_commit(&mut numbered, TransactionId(5000), 7, Some(1 << 40));
        assert!(matches!(
            decode(&numbered),
            Ok(Frame::Commit {
                transaction: TransactionId(5000),
                time_us: 7,
                number: Some(0x0100_0000_0000),
            })
        ));
        for bits in 0..8 {
            let mut annotation = Vec::new();
            let written = Piece {
                is_first: bits & 1 != 0,
                is_last: bits & 2 != 0,
                is_of_transaction: bits & 4 != 0,
            };
            encode_annotation(&mut annotation, TransactionId(8), written, b"what was said");
            assert_eq!(length(&annotation), Ok(annotation.len()));
            let Ok(Frame::Annotation {
                transaction: TransactionId(8),
                piece,
                bytes: b"what was said",
            }) = decode(&annotation)
            else {
                panic!("another frame");
            };
            assert_eq!(piece, written);
        }
        let end = encode_end_of_rollback(TransactionId(3));
        assert!(matches!(
            decode(&end),
            Ok(Frame::EndOfRollback(TransactionId(3)))
        ));
    }

    #[test]
    fn what_is_cut_off_is_no_frame() {
        let mut commit = Vec::new();
        put_commit(&mut commit, TransactionId(5000), 1 << 50, None);
        for end in 0..commit.len() {
            assert_eq!(length(&commit[..end]), Err(Damaged));
            assert!(decode(&commit[..end]).is_err());
        }
    }
}
