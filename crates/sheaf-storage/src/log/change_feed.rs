//! What transactions have changed, in the order of their commits: for followers of a database.
//!
//! The log has the changes of all transactions between each other, and some are taken back. A [`ChangeFeed`] reads the
//! log while it is written, and puts the changes of each transaction aside until its end:
//!
//! ```text
//!   log     | a: x=1 | b: y=1 | a: z=5 | undo a | b: commit 8 | a: x=2 | a: commit 9 |
//!   feed                                         8: y=1                 9: x=1, x=2
//! ```
//!
//! Commits have numbers without gaps, so a reader that has kept the last one knows what is new to it. Only changes of
//! [followed trees](crate::Tree::follow) are delivered, with whole values, but each change counts, since an undo takes
//! back whatever was the newest. Nothing is delivered before it is durable.
//!
//! **Annotations** are bytes of the floors above ([`crate::Transaction::annotate`]). What belongs to its transaction is
//! delivered in its place among the changes. The rest are remarks, which are delivered at once.
//!
//! **Where to go on.** What a restarted reader needs begins where the oldest transaction began that had not ended:
//! [`restart_point`](ChangeFeed::restart_point). The log from there on is kept until the reader has
//! [written that down](ChangeFeed::release). From there on it meets transactions again that it has, and knows them by
//! their numbers; the beginning of such a one may be missing.
//!
//! Changes of a large transaction wait in a temporary file.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::log::bytes::{Damaged, Reader, put_bytes, put_number};
use crate::log::change::{Change, TransactionId};
use crate::log::follower::LogFollower;
use crate::log::frame::{self, Frame, Note};
use crate::page::{Lsn, TreeId};
use crate::temp_file::{TempFile, TempFileError, TempSpace};

/// Changes of a transaction that wait in memory, in bytes. Beyond it they go to a temporary file.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Bytes of a temporary file that are read at a time. A reader may need no more than some behind a place, so it begins
/// with fewer.
const PIECE_BYTES: usize = 256 << 10;
const FIRST_PIECE_BYTES: usize = 16 << 10;

/// A place in the log from which changes can be followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedPoint {
    pub position: Lsn,
    /// That of the newest commit before the position which has a number; 0 if there is none.
    pub number: u64,
}

/// What a feed delivers.
pub enum Followed {
    /// What was said about a transaction, and is true whatever has become of it.
    Remark(Vec<u8>),
    /// A transaction that has committed.
    Transaction(FollowedTransaction),
}

/// A change of a followed tree, or what was said about the transaction at this place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FollowedChange<'a> {
    Insert {
        tree: TreeId,
        key: &'a [u8],
        value: &'a [u8],
    },
    Update {
        tree: TreeId,
        key: &'a [u8],
        before: &'a [u8],
        after: &'a [u8],
    },
    Delete {
        tree: TreeId,
        key: &'a [u8],
        before: &'a [u8],
    },
    Annotation(&'a [u8]),
}

/// A transaction that has committed.
pub struct FollowedTransaction {
    pub id: TransactionId,
    /// 1, 2, 3 and so on, in the order of commits.
    pub number: u64,
    /// When it committed, in microseconds since 1970.
    pub time_us: u64,
    /// The newest number that had committed before the transaction's last change. It had all its locks then, so it can
    /// be applied beside those that committed later.
    pub depends_on: u64,
    changes: Changes,
}

impl FollowedTransaction {
    /// Whether its changes are more than memory should have at a time.
    pub fn is_large(&self) -> bool {
        self.changes.records.file.is_some()
    }

    /// Calls `visit` with its changes, in their order. Those that it has taken back are not among them.
    ///
    /// # Errors
    /// Those of `visit`, and of reading the temporary file.
    pub fn for_each<E: From<StorageError>>(
        &self,
        mut visit: impl FnMut(FollowedChange<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.for_each_from(ChangePlace::FIRST, |_, change| {
            visit(change).map(|()| ControlFlow::Continue(()))
        })
    }

    /// Calls `visit` with its changes and their places, from the change at this place on, until it breaks.
    ///
    /// # Errors
    /// As [`for_each`](Self::for_each).
    pub fn for_each_from<E: From<StorageError>>(
        &self,
        place: ChangePlace,
        mut visit: impl FnMut(ChangePlace, FollowedChange<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        self.changes
            .records
            .for_each_from(place.0, |place, record| {
                let (ordinal, change) = read_record(record).map_err(|Damaged| damaged())?;
                match ordinal.is_none_or(|ordinal| self.changes.has_kept(ordinal)) {
                    true => visit(ChangePlace(place), change),
                    false => Ok(ControlFlow::Continue(())),
                }
            })
    }
}

/// Where a change stands among those of its transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangePlace(u64);

impl ChangePlace {
    /// That of a transaction's first change.
    pub const FIRST: ChangePlace = ChangePlace(0);
}

/// What a transaction has changed so far.
#[derive(Default)]
struct Changes {
    /// Changes so far, those included that were taken back, and those of trees that are not followed.
    count: u64,
    /// Those that were not taken back, by their ordinals.
    kept: Vec<Range<u64>>,
    records: Records,
}

impl Changes {
    /// The ordinal of a new change.
    fn add(&mut self) -> u64 {
        let ordinal = self.count;
        self.count += 1;
        match self.kept.last_mut() {
            Some(last) if last.end == ordinal => last.end += 1,
            _ => self.kept.push(ordinal..self.count),
        }
        ordinal
    }

    /// Whether a change was not taken back.
    fn has_kept(&self, ordinal: u64) -> bool {
        let place = self.kept.partition_point(|range| range.end <= ordinal);
        self.kept
            .get(place)
            .is_some_and(|range| range.start <= ordinal)
    }

    /// The newest change was taken back.
    fn take_back(&mut self) {
        // A feed that began in the middle of the transaction may not know it.
        if let Some(last) = self.kept.last_mut() {
            last.end -= 1;
            if last.is_empty() {
                self.kept.pop();
            }
        }
    }
}

/// Records one after the other, each behind its length (4 bytes).
#[derive(Default)]
struct Records {
    /// What was written before.
    file: Option<TempFile>,
    memory: Vec<u8>,
}

impl Records {
    fn push(&mut self, space: &Arc<TempSpace>, put: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let start = self.memory.len();
        self.memory.extend_from_slice(&[0; 4]);
        put(&mut self.memory);
        let length = (self.memory.len() - start - 4) as u32;
        self.memory[start..start + 4].copy_from_slice(&length.to_le_bytes());
        if self.memory.len() >= MAX_WAITING_BYTES {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(space.create("changes").map_err(failed)?),
            };
            file.append(&self.memory).map_err(failed)?;
            self.memory = Vec::new();
        }
        Ok(())
    }

    /// Visits the records from the one on that begins at `start`, with their places, until `visit` breaks.
    fn for_each_from<E: From<StorageError>>(
        &self,
        start: u64,
        mut visit: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let in_file = self.file.as_ref().map_or(0, TempFile::length);
        if let Some(file) = &self.file {
            let (mut at, mut piece, mut bytes) = (start, Vec::new(), FIRST_PIECE_BYTES);
            while at < in_file {
                let begin = piece.len();
                let more = (in_file - at).min(bytes as u64);
                bytes = (2 * bytes).min(PIECE_BYTES);
                piece.resize(begin + more as usize, 0);
                file.read_exact_at(&mut piece[begin..], at)
                    .map_err(failed)?;
                let place = at - begin as u64;
                at += more;
                match visit_whole(&piece, place, &mut visit)? {
                    ControlFlow::Continue(read) => drop(piece.drain(..read)),
                    ControlFlow::Break(()) => return Ok(()),
                }
            }
        }
        let skipped = start.saturating_sub(in_file);
        let rest = usize::try_from(skipped)
            .ok()
            .and_then(|skipped| self.memory.get(skipped..));
        visit_whole(rest.unwrap_or_default(), in_file + skipped, &mut visit).map(drop)
    }
}

/// Visits the records that are whole, of which the first one is at `place`. Returns how many bytes they are.
fn visit_whole<E>(
    bytes: &[u8],
    place: u64,
    visit: &mut impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, E>,
) -> Result<ControlFlow<(), usize>, E> {
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first_chunk::<4>()
        && let Some((record, behind)) =
            behind.split_at_checked(u32::from_le_bytes(*length) as usize)
    {
        let at = place + (bytes.len() - rest.len()) as u64;
        if visit(at, record)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        rest = behind;
    }
    Ok(ControlFlow::Continue(bytes.len() - rest.len()))
}

/// First byte of a record.
mod record {
    pub(super) const INSERT: u8 = 0;
    pub(super) const UPDATE: u8 = 1;
    pub(super) const DELETE: u8 = 2;
    pub(super) const ANNOTATION: u8 = 3;
}

/// The ordinal of a change, and what it is.
fn read_record(bytes: &[u8]) -> Result<(Option<u64>, FollowedChange<'_>), Damaged> {
    let mut input = Reader(bytes);
    let kind = input.byte()?;
    if kind == record::ANNOTATION {
        return Ok((None, FollowedChange::Annotation(input.0)));
    }
    let ordinal = input.number()?;
    let (tree, key) = (TreeId(input.number()?), input.bytes()?);
    let (before, after) = (input.bytes()?, input.bytes()?);
    let change = match kind {
        record::INSERT => FollowedChange::Insert {
            tree,
            key,
            value: after,
        },
        record::UPDATE => FollowedChange::Update {
            tree,
            key,
            before,
            after,
        },
        record::DELETE => FollowedChange::Delete { tree, key, before },
        _ => return Err(Damaged),
    };
    Ok((Some(ordinal), change))
}

/// A transaction that has not ended.
struct OpenTransaction {
    /// Before its first frame.
    first: FeedPoint,
    changes: Changes,
    /// The newest number at its last change.
    depends_on: u64,
    /// Pieces of an annotation that is not complete. `None`: it began before the feed did, or there is none.
    annotation: Option<Vec<u8>>,
}

/// See the [module](self).
pub struct ChangeFeed {
    follower: LogFollower,
    space: Arc<TempSpace>,
    has_gap: bool,
    /// Whole frames of the log, and the place of the next one.
    chunk: Vec<u8>,
    chunk_start: Lsn,
    at: usize,
    /// All before was read.
    position: Lsn,
    /// The newest number before the position.
    number: u64,
    open: BTreeMap<TransactionId, OpenTransaction>,
}

impl ChangeFeed {
    /// A feed from a point on, or from where the follower begins if that is later.
    pub(crate) fn new(
        follower: LogFollower,
        point: FeedPoint,
        space: Arc<TempSpace>,
    ) -> ChangeFeed {
        let position = follower.position();
        follower.note_followed();
        ChangeFeed {
            follower,
            space,
            has_gap: position > point.position,
            chunk: Vec::new(),
            chunk_start: position,
            at: 0,
            position,
            number: point.number,
            open: BTreeMap::new(),
        }
    }

    /// Whether the log from the wanted point on was not there any more, so that changes are missing.
    pub fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// All that lies before in the log was read.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Durable bytes of the log that were not read yet.
    pub fn waiting_bytes(&self) -> u64 {
        self.follower
            .durable_end()
            .0
            .saturating_sub(self.position.0)
    }

    /// Where another feed has to begin to go on behind what this one has delivered.
    pub fn restart_point(&self) -> FeedPoint {
        let oldest = self.open.values().map(|open| open.first);
        let oldest = oldest.min_by_key(|first| first.position);
        oldest.unwrap_or(FeedPoint {
            position: self.position,
            number: self.number,
        })
    }

    /// The log before this point is not needed any more.
    pub fn release(&self, point: FeedPoint) {
        self.follower.release(point.position);
    }

    /// What comes next; `None`: nothing more is durable by now.
    ///
    /// # Errors
    /// The log cannot be read, or a temporary file not be written. The feed cannot go on then: make another one.
    pub fn deliver(&mut self) -> Result<Option<Followed>> {
        loop {
            while self.at < self.chunk.len() {
                let chunk = std::mem::take(&mut self.chunk);
                let found = self.next_frame(&chunk);
                self.chunk = chunk;
                if let Some(found) = found? {
                    return Ok(Some(found));
                }
            }
            match self.follower.next()? {
                Some((lsn, bytes)) => {
                    (self.chunk_start, self.chunk, self.at) = (lsn, bytes, 0);
                    self.follower.note_followed();
                }
                None => return Ok(None),
            }
        }
    }

    fn next_frame(&mut self, chunk: &[u8]) -> Result<Option<Followed>> {
        let unreadable = |Damaged| damaged();
        let length = frame::length(&chunk[self.at..]).map_err(unreadable)?;
        let frame = frame::decode(&chunk[self.at..self.at + length]).map_err(unreadable)?;
        let start = Lsn(self.chunk_start.0 + self.at as u64);
        // The first chunk may begin earlier.
        let found = match start >= self.position {
            true => self.note_frame(start, frame)?,
            false => None,
        };
        self.at += length;
        self.position = self.position.max(Lsn(start.0 + length as u64));
        Ok(found)
    }

    fn note_frame(&mut self, start: Lsn, frame: Frame<'_>) -> Result<Option<Followed>> {
        match frame {
            Frame::MiniTransaction { note, .. } => self.note_change(start, note).map(|()| None),
            Frame::EndOfRollback(id) => {
                self.open.remove(&id);
                Ok(None)
            }
            Frame::Commit {
                transaction: id,
                time_us,
                number,
            } => {
                let open = self.open.remove(&id);
                let Some(number) = number else {
                    return Ok(None);
                };
                let (changes, depends_on) = match open {
                    Some(open) => (open.changes, open.depends_on),
                    None => (Changes::default(), self.number),
                };
                self.number = number;
                Ok(Some(Followed::Transaction(FollowedTransaction {
                    id,
                    number,
                    time_us,
                    depends_on,
                    changes,
                })))
            }
            Frame::Annotation {
                transaction,
                piece,
                bytes,
            } => {
                let space = Arc::clone(&self.space);
                let open = self.open_at(start, transaction);
                if piece.is_first {
                    open.annotation = Some(Vec::new());
                }
                if let Some(annotation) = &mut open.annotation {
                    annotation.extend_from_slice(bytes);
                }
                let Some(annotation) = open.annotation.take_if(|_| piece.is_last) else {
                    return Ok(None);
                };
                if !piece.is_of_transaction {
                    return Ok(Some(Followed::Remark(annotation)));
                }
                let records = &mut open.changes.records;
                records.push(&space, |out| {
                    out.push(record::ANNOTATION);
                    out.extend_from_slice(&annotation);
                })?;
                Ok(None)
            }
        }
    }

    fn note_change(&mut self, start: Lsn, note: Note<'_>) -> Result<()> {
        match note {
            Note::None | Note::Counts { .. } | Note::PagesPastLog => {}
            Note::Change { transaction, .. } => {
                self.open_at(start, transaction).changes.add();
            }
            Note::Compensation { transaction } => {
                if let Some(open) = self.open.get_mut(&transaction) {
                    open.changes.take_back();
                }
            }
            Note::Row {
                transaction,
                tree,
                change,
                key,
                before,
                after,
            } => {
                let (space, number) = (Arc::clone(&self.space), self.number);
                let open = self.open_at(start, transaction);
                open.depends_on = number;
                let ordinal = open.changes.add();
                open.changes.records.push(&space, |out| {
                    out.push(match change {
                        Change::Insert | Change::Revive => record::INSERT,
                        Change::Update | Change::UpdatePart => record::UPDATE,
                        Change::Delete => record::DELETE,
                    });
                    put_number(out, ordinal);
                    put_number(out, tree.0);
                    put_bytes(out, key);
                    put_bytes(out, before);
                    put_bytes(out, after);
                })?;
            }
        }
        Ok(())
    }

    /// A transaction that something is said of from `start` on.
    fn open_at(&mut self, start: Lsn, id: TransactionId) -> &mut OpenTransaction {
        let first = FeedPoint {
            position: start,
            number: self.number,
        };
        self.open.entry(id).or_insert_with(|| OpenTransaction {
            first,
            changes: Changes::default(),
            depends_on: first.number,
            annotation: None,
        })
    }
}

fn damaged() -> StorageError {
    StorageError::UnknownFormat {
        file: "the log".into(),
        reason: "it cannot be followed: a record is damaged".into(),
    }
}

fn failed(error: TempFileError) -> StorageError {
    let path = error.path.display().to_string();
    StorageError::io("use", path, 0, error.source)
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;

    fn kept(changes: &Changes) -> Vec<u64> {
        changes.kept.iter().cloned().flatten().collect()
    }

    #[test]
    fn what_is_taken_back_is_the_newest_change_that_is_left() {
        let mut changes = Changes::default();
        for _ in 0..3 {
            changes.add();
        }
        changes.take_back();
        changes.take_back();
        assert_eq!(kept(&changes), [0]);
        assert_eq!(changes.add(), 3);
        assert_eq!(changes.add(), 4);
        assert_eq!(kept(&changes), [0, 3, 4]);
        for _ in 0..9 {
            changes.take_back();
        }
        assert!(kept(&changes).is_empty());
    }

    #[test]
    fn records_read_as_they_were_written_from_memory_and_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let space = TempSpace::new(directory.path(), u64::MAX);
        let mut records = Records::default();
        let record = |number: usize| vec![number as u8; number * 37 % 5_000];
        for number in 0..2_000 {
            records
                .push(&space, |out| out.extend(record(number)))
                .unwrap();
        }
        assert!(records.file.is_some() && !records.memory.is_empty());
        let mut number = 0;
        let mut places = Vec::new();
        let read = records.for_each_from(0, |place, bytes| {
            assert_eq!(bytes, record(number));
            number += 1;
            places.push(place);
            Ok::<_, StorageError>(ControlFlow::Continue(()))
        });
        read.unwrap();
        assert_eq!(number, 2_000);
        // The record at a place, and the one behind it.
        for (number, start) in places.iter().enumerate().step_by(7) {
            let mut read = Vec::new();
            let visited = records.for_each_from(*start, |place, bytes| {
                read.push((place, bytes.to_vec()));
                Ok::<_, StorageError>(match read.len() {
                    2 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                })
            });
            visited.unwrap();
            let numbers = number..(number + 2).min(places.len());
            let expected: Vec<_> = numbers.map(|it| (places[it], record(it))).collect();
            assert_eq!(read, expected);
        }
    }
}
