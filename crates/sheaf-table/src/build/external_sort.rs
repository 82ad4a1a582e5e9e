//! Sorts index entries that may not fit in memory.
//!
//! Entries are collected in an arena, one after the other, beside an array of (first eight key bytes as a number,
//! offset). Sorting moves only the array, and most comparisons are of two numbers. When the memory is used up, the
//! sorted entries are written to a temporary file as a *run*; at the end the runs are merged. Nothing is allocated per
//! entry.
//!
//! All runs of a sort are in one [`TempFile`], so nothing remains after an error or a crash.
//!
//! ```text
//!   entry in arena and run:  | key length (u16) | payload length (u16) | key | payload |
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use sheaf_storage::{TempFile, TempSpace};

use crate::error::{Result, TableError};

/// The least memory of a sort.
pub(crate) const MIN_SORT_BYTES: usize = 256 << 10;
/// The most memory of a sort: offsets in the arena are 32 bits.
const MAX_SORT_BYTES: usize = 1 << 30;
/// The most runs that are merged at once; with more, some are merged into longer ones first.
const MAX_MERGED_RUNS: usize = 64;
/// The least bytes that a merge reads at once from a run.
const MIN_READ_BYTES: usize = 32 << 10;
/// Bytes that are written to a run at once.
const WRITE_BYTES: usize = 256 << 10;
/// Lengths in front of an entry.
const HEADER_BYTES: usize = 4;
/// What an entry takes besides its bytes: its place in the array.
const SLOT_BYTES: usize = size_of::<Slot>();

#[derive(Clone, Copy)]
struct Slot {
    /// The key's first eight bytes, big-endian, filled up with zeros.
    head: u64,
    offset: u32,
}

fn head_of(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(head)
        }
    }
}

/// Key and payload of the entry at the start of `bytes`, and its length.
#[inline]
fn read_entry(bytes: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let key_length = usize::from(u16::from_le_bytes([header[0], header[1]]));
    let payload_length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    let key = rest.get(..key_length)?;
    let payload = rest.get(key_length..key_length + payload_length)?;
    Some((key, payload, HEADER_BYTES + key_length + payload_length))
}

/// Entries in memory.
#[derive(Default)]
pub(crate) struct Arena {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

impl Arena {
    fn entry(&self, slot: Slot) -> (&[u8], &[u8]) {
        read_entry(&self.bytes[slot.offset as usize..])
            .map_or((&[], &[]), |(key, payload, _)| (key, payload))
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |slot: &Slot| {
            read_entry(&bytes[slot.offset as usize..]).map_or(&[][..], |(key, _, _)| key)
        };
        self.slots
            .sort_unstable_by(|a, b| match a.head.cmp(&b.head) {
                Ordering::Equal => key(a).cmp(key(b)),
                order => order,
            });
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
    }
}

/// Where a run is in the file.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    end: u64,
}

/// Writes a run at the end of the file.
struct RunWriter {
    start: u64,
    buffer: Vec<u8>,
}

impl RunWriter {
    fn new(file: &TempFile) -> RunWriter {
        RunWriter {
            start: file.length(),
            buffer: Vec::with_capacity(WRITE_BYTES + (WRITE_BYTES >> 2)),
        }
    }

    fn append(&mut self, file: &TempFile, key: &[u8], payload: &[u8]) -> Result<()> {
        push_entry(&mut self.buffer, key, payload);
        if self.buffer.len() >= WRITE_BYTES {
            self.flush(file)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, file: &TempFile) -> Result<()> {
        file.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self, file: &TempFile) -> Result<Run> {
        self.flush(file)?;
        Ok(Run {
            start: self.start,
            end: file.length(),
        })
    }
}

fn push_entry(bytes: &mut Vec<u8>, key: &[u8], payload: &[u8]) {
    bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(payload);
}

/// A sort in progress: entries in, in any order.
pub(crate) struct ExternalSort {
    space: Arc<TempSpace>,
    memory_bytes: usize,
    arena: Arena,
    file: Option<TempFile>,
    runs: Vec<Run>,
    entries: u64,
}

impl ExternalSort {
    /// A sort within `memory_bytes` (at least [`MIN_SORT_BYTES`]) that spills to `space`.
    pub(crate) fn new(space: &Arc<TempSpace>, memory_bytes: usize) -> ExternalSort {
        ExternalSort {
            space: Arc::clone(space),
            memory_bytes: memory_bytes.clamp(MIN_SORT_BYTES, MAX_SORT_BYTES),
            arena: Arena::default(),
            file: None,
            runs: Vec::new(),
            entries: 0,
        }
    }

    /// Number of entries so far.
    pub(crate) fn len(&self) -> u64 {
        self.entries
    }

    /// Adds an entry. Keys and payloads are shorter than 64 KiB, as the storage demands anyway.
    pub(crate) fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        let needed = HEADER_BYTES + key.len() + payload.len() + SLOT_BYTES;
        let used = self.arena.bytes.len() + self.arena.slots.len() * SLOT_BYTES;
        if used + needed > self.memory_bytes && !self.arena.slots.is_empty() {
            self.spill()?;
        }
        let offset = self.arena.bytes.len() as u32;
        push_entry(&mut self.arena.bytes, key, payload);
        self.arena.slots.push(Slot {
            head: head_of(key),
            offset,
        });
        self.entries += 1;
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        self.arena.sort();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.space.create("sort")?),
        };
        let mut run = RunWriter::new(file);
        for slot in &self.arena.slots {
            let (key, payload) = self.arena.entry(*slot);
            run.append(file, key, payload)?;
        }
        self.runs.push(run.finish(file)?);
        self.arena.clear();
        Ok(())
    }

    /// Ends the input: what was not spilled is, if anything was, and its memory is released.
    pub(crate) fn seal(&mut self) -> Result<()> {
        if !self.runs.is_empty() {
            if !self.arena.slots.is_empty() {
                self.spill()?;
            }
            self.arena = Arena::default();
        }
        Ok(())
    }

    /// Ends the input. The result delivers the entries in order, within `memory_bytes`.
    pub(crate) fn finish(mut self, memory_bytes: usize) -> Result<SortedEntries> {
        self.seal()?;
        if self.runs.is_empty() {
            self.arena.sort();
            return Ok(SortedEntries::InMemory {
                arena: self.arena,
                next: 0,
            });
        }
        let Some(mut file) = self.file.take() else {
            return Err(TableError::corrupt("?", "a sort has runs but no file"));
        };
        let mut runs = std::mem::take(&mut self.runs);
        while runs.len() > MAX_MERGED_RUNS {
            let rest = runs.split_off(MAX_MERGED_RUNS);
            let mut merge = Merge::new(file, &runs, memory_bytes)?;
            let mut longer = RunWriter::new(&merge.file);
            while merge.advance()? {
                let (key, payload) = merge.entry();
                // Borrowed from the merge, which owns the file too: copied through the writer's buffer.
                push_entry(&mut longer.buffer, key, payload);
                if longer.buffer.len() >= WRITE_BYTES {
                    longer.flush(&merge.file)?;
                }
            }
            file = merge.file;
            runs = rest;
            runs.push(longer.finish(&file)?);
        }
        Ok(SortedEntries::Merged(Merge::new(
            file,
            &runs,
            memory_bytes,
        )?))
    }
}

/// Reads a run from the front.
struct RunReader {
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Entries before this are delivered.
    at: usize,
    head: u64,
    /// Length of the current entry; 0: the run is at its end.
    length: usize,
}

impl RunReader {
    fn new(run: Run) -> RunReader {
        RunReader {
            next: run.start,
            end: run.end,
            buffer: Vec::new(),
            at: 0,
            head: 0,
            length: 0,
        }
    }

    fn entry(&self) -> (&[u8], &[u8]) {
        read_entry(&self.buffer[self.at..]).map_or((&[], &[]), |(key, payload, _)| (key, payload))
    }

    /// Steps to the next entry; false: there is none.
    fn advance(&mut self, file: &TempFile, read_bytes: usize) -> Result<bool> {
        self.at += self.length;
        while self.next < self.end && read_entry(&self.buffer[self.at..]).is_none() {
            self.fill(file, read_bytes)?;
        }
        match read_entry(&self.buffer[self.at..]) {
            Some((key, _, length)) => {
                self.head = head_of(key);
                self.length = length;
                Ok(true)
            }
            None => {
                self.length = 0;
                Ok(false)
            }
        }
    }

    /// Moves what is left to the front of the buffer and reads more behind it.
    fn fill(&mut self, file: &TempFile, read_bytes: usize) -> Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let kept = self.buffer.len();
        let more = (self.end - self.next).min(read_bytes as u64) as usize;
        self.buffer.resize(kept + more, 0);
        file.read_exact_at(&mut self.buffer[kept..], self.next)?;
        self.next += more as u64;
        Ok(())
    }
}

/// Merges runs with a heap of their readers.
pub(crate) struct Merge {
    file: TempFile,
    readers: Vec<RunReader>,
    /// A binary heap of readers by their current entries, the least first.
    heap: Vec<usize>,
    read_bytes: usize,
    started: bool,
}

impl Merge {
    fn new(file: TempFile, runs: &[Run], memory_bytes: usize) -> Result<Merge> {
        let read_bytes = (memory_bytes / runs.len().max(1)).max(MIN_READ_BYTES);
        let mut readers: Vec<RunReader> = runs.iter().copied().map(RunReader::new).collect();
        let mut heap = Vec::with_capacity(readers.len());
        for (position, reader) in readers.iter_mut().enumerate() {
            if reader.advance(&file, read_bytes)? {
                heap.push(position);
            }
        }
        let mut merge = Merge {
            file,
            readers,
            heap,
            read_bytes,
            started: false,
        };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(at);
        }
        Ok(merge)
    }

    fn is_less(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.readers[a], &self.readers[b]);
        match a.head.cmp(&b.head) {
            Ordering::Equal => a.entry().0 < b.entry().0,
            order => order == Ordering::Less,
        }
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                return;
            }
            if child + 1 < self.heap.len() && self.is_less(self.heap[child + 1], self.heap[child]) {
                child += 1;
            }
            if !self.is_less(self.heap[child], self.heap[at]) {
                return;
            }
            self.heap.swap(at, child);
            at = child;
        }
    }

    fn advance(&mut self) -> Result<bool> {
        if !self.started {
            self.started = true;
            return Ok(!self.heap.is_empty());
        }
        let Some(least) = self.heap.first().copied() else {
            return Ok(false);
        };
        if !self.readers[least].advance(&self.file, self.read_bytes)? {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(!self.heap.is_empty())
    }

    fn entry(&self) -> (&[u8], &[u8]) {
        self.heap
            .first()
            .map_or((&[], &[]), |least| self.readers[*least].entry())
    }
}

/// The entries of a sort in order.
pub(crate) enum SortedEntries {
    InMemory { arena: Arena, next: usize },
    Merged(Merge),
}

impl SortedEntries {
    /// Steps to the next entry (at first to the first one); false: there is none.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match self {
            SortedEntries::InMemory { arena, next } => {
                *next += 1;
                Ok(*next <= arena.slots.len())
            }
            SortedEntries::Merged(merge) => merge.advance(),
        }
    }

    /// Key and payload of the current entry.
    pub(crate) fn entry(&self) -> (&[u8], &[u8]) {
        match self {
            SortedEntries::InMemory { arena, next } => next
                .checked_sub(1)
                .map_or((&[], &[]), |at| arena.entry(arena.slots[at])),
            SortedEntries::Merged(merge) => merge.entry(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in no order, each once.
    fn scrambled(count: u64) -> impl Iterator<Item = u64> {
        assert!(count.is_power_of_two());
        (0..count).map(move |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % count)
    }

    fn sorted(sort: ExternalSort) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut entries = sort.finish(MIN_SORT_BYTES).unwrap();
        let mut all = Vec::new();
        while entries.advance().unwrap() {
            let (key, payload) = entries.entry();
            all.push((key.to_vec(), payload.to_vec()));
        }
        all
    }

    fn check(space: &Arc<TempSpace>, count: u64, padding: usize) -> usize {
        let mut sort = ExternalSort::new(space, MIN_SORT_BYTES);
        for number in scrambled(count) {
            // Most keys share their first eight bytes.
            let key = format!("shared-prefix-{number:08}");
            sort.push(key.as_bytes(), &vec![number as u8; padding])
                .unwrap();
        }
        assert_eq!(sort.len(), count);
        let runs = sort.runs.len();
        let all = sorted(sort);
        assert_eq!(all.len() as u64, count);
        for (number, (key, payload)) in all.iter().enumerate() {
            assert_eq!(key, format!("shared-prefix-{number:08}").as_bytes());
            assert_eq!(*payload, vec![number as u8; padding]);
        }
        runs
    }

    #[test]
    fn entries_come_out_sorted_from_memory_and_from_runs() {
        let directory = tempfile::tempdir().unwrap();
        let space = TempSpace::new(directory.path(), 1 << 30);
        assert_eq!(check(&space, 1 << 10, 3), 0);
        let runs = check(&space, 1 << 16, 3);
        assert!(runs > 4 && runs < MAX_MERGED_RUNS, "{runs}");
        // More runs than are merged at once.
        let runs = check(&space, 1 << 15, 600);
        assert!(runs > MAX_MERGED_RUNS, "{runs}");
        assert_eq!(space.used_bytes(), 0);
    }

    #[test]
    fn short_and_equal_keys_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let space = TempSpace::new(directory.path(), 1 << 30);
        let mut sort = ExternalSort::new(&space, MIN_SORT_BYTES);
        for key in [&b"b"[..], b"", b"a", b"b\0", b"a"] {
            sort.push(key, b"").unwrap();
        }
        let keys: Vec<Vec<u8>> = sorted(sort).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [&b""[..], b"a", b"a", b"b", b"b\0"]);
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, b"").unwrap();
        let space = TempSpace::new(&file, 1 << 30);
        let mut sort = ExternalSort::new(&space, MIN_SORT_BYTES);
        let pushed =
            (0..1u32 << 20).try_for_each(|number| sort.push(&number.to_be_bytes(), b"0123456789"));
        assert!(matches!(pushed, Err(TableError::TemporaryFile(_))));
    }
}
