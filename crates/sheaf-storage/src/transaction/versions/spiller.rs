//! Spilling: tables that were not used lately go to the spill file when memory is short.
//!
//! A thread that is about to change something looks first, while it holds no latch, whether the store is crowded. If it
//! is, garbage goes. If that is not enough, a hand goes round the leaves, as the clock of the buffer pool does. It
//! picks tables that were not used since it came by last, until the store is well below its budget again. So spilling
//! happens rarely and in large sequential writes, and a huge transaction that goes from leaf to leaf spills every table
//! once.
//!
//! ```text
//!   0            low water                 high water  budget
//!   |---------------|---------------------------|-------|
//!                   <--------- spill -----------*
//!   read back and keep <|> read back for one use
//! ```
//!
//! A table is copied under its shard's lock and written with no lock held. It is taken out of memory under the lock
//! again, if the leaf's past is still the one that was copied: it carries a stamp that every change renews. Otherwise
//! what was written is discarded. So readers, changes, splits, merges, the collector and the dropping of trees need not
//! know that a table is being spilled, and when the write fails, nothing has happened.
//!
//! A leaf that is spilled again and again has its newest spilled tables joined with the next one, as far as they fit in
//! one piece together. What is not needed any more is left out. So each version is written again a few times at most,
//! and a leaf's tables are few and small, or large. A table that is larger than a piece is spilled in several.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::page::PageId;
use crate::transaction::snapshot::{LiveSnapshots, StatusCell};
use crate::transaction::spill_file::{MAX_PIECE_BYTES, Spilled};
use crate::transaction::versions::bloom_filter::BloomFilter;
use crate::transaction::versions::leaf::{LeafCopy, LeafVersions, Part, SpilledTable};
use crate::transaction::versions::{SHARDS, TABLES_PER_LOCK, VersionStore, VersionTable};

/// Share of the budget, in percent: spilling begins there. The rest is for threads that find another one spilling.
const HIGH_WATER_PERCENT: usize = 90;
/// Spilling ends at this share of what tables have below that, in percent.
const LOW_WATER_PERCENT: usize = 66;

/// Spilled tables have filters of their keys until what is left in memory of the spilled is this part of the budget.
const FILTERS_SHARE: usize = 4;

/// Bytes of tables that are written at a time, about.
const BATCH_BYTES: usize = 1 << 20;

/// Smaller tables take hardly more memory than what is left of a spilled one.
const WORTH_SPILLING_BYTES: usize = 512;

/// So many spilled tables of a leaf are joined with the next one, if they fit in one piece.
const PARTS_TO_JOIN: usize = 4;

/// A batch of which nothing could be dropped, because all of it has changed meanwhile, is no reason to stop before
/// there were so many.
const MOST_FRUITLESS_ROUNDS: u32 = 64;

/// Where the spiller goes on.
#[derive(Default)]
pub(super) struct Hand {
    shard: usize,
    /// The last page of the shard that it has passed.
    page: Option<PageId>,
}

/// Tables that the hand passes by although they are worth spilling.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spared {
    /// Those that were used since it came by last.
    Hot,
    None,
}

/// A leaf whose table is to be spilled.
pub(super) struct Candidate {
    page: PageId,
    copy: LeafCopy,
    /// So many of the newest parts are to be joined with the table.
    joined: usize,
    /// Joining has left out all that there was of a key.
    has_forgotten: bool,
}

impl Candidate {
    fn new(page: PageId, copy: LeafCopy) -> Candidate {
        let mut bytes = copy.table.encoded_bytes();
        let fit = copy.parts.iter().take_while(|part| {
            bytes += part.spilled_bytes();
            bytes <= MAX_PIECE_BYTES
        });
        let joined = match fit.count() {
            few if few < PARTS_TO_JOIN => 0,
            parts => parts,
        };
        Candidate {
            page,
            copy,
            joined,
            has_forgotten: false,
        }
    }

    /// Joins the newest parts with the table. If one of them cannot be read, they stay as they are.
    fn join(&mut self, live: &LiveSnapshots) {
        match self.copy.with_newest_parts(self.joined) {
            Ok(mut table) => {
                self.has_forgotten = table.purge(live);
                self.copy.table = table;
            }
            Err(error) => {
                tracing::warn!(
                    "old versions of page {} are not joined: {error}",
                    self.page.0
                );
                self.joined = 0;
            }
        }
    }

    /// The table as it will be in the file.
    fn pieces(&self) -> Vec<Cow<'_, VersionTable>> {
        let table = &self.copy.table;
        match table.encoded_bytes() <= MAX_PIECE_BYTES {
            true if table.is_empty() => Vec::new(),
            true => vec![Cow::Borrowed(table)],
            false => {
                let tables = table.divided(MAX_PIECE_BYTES);
                tables.into_iter().map(Cow::Owned).collect()
            }
        }
    }
}

impl VersionStore {
    fn high_water(&self) -> usize {
        self.budget_bytes / 100 * HIGH_WATER_PERCENT
    }

    /// What stays of spilled tables does not go below it.
    fn low_water(&self) -> usize {
        let others = self.other_bytes().min(self.high_water());
        others + (self.high_water() - others) / 100 * LOW_WATER_PERCENT
    }

    /// Whether so much more is welcome in memory.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.memory_bytes() + bytes <= self.low_water()
    }

    /// To be called before a change, by a thread that holds no latch: the change's version has room in memory then.
    ///
    /// # Errors
    /// `VersionStoreFull` if neither memory nor the spill file has room for what may still be needed; `DiskFull` and
    /// `Io` of the spill file.
    #[inline]
    pub(crate) fn make_room(&self, live: impl FnOnce() -> Arc<LiveSnapshots>) -> Result<()> {
        if self.memory_bytes() <= self.high_water() {
            return Ok(());
        }
        self.make_room_slowly(live)
    }

    #[cold]
    fn make_room_slowly(&self, live: impl FnOnce() -> Arc<LiveSnapshots>) -> Result<()> {
        let mut hand = match self.hand.try_lock() {
            Some(hand) => hand,
            // A transaction with much to spill has it, and is not to keep those that change little.
            None if self.memory_bytes() <= self.budget_bytes => return Ok(()),
            None => self.hand.lock(),
        };
        if self.memory_bytes() <= self.high_water() {
            return Ok(());
        }
        let live = live();
        // Bits of pages whose tables go stay set, which is allowed: the next reader takes them away.
        self.purge_all(&live);
        let mut fruitless = 0;
        while self.memory_bytes() > self.low_water() && fruitless < MOST_FRUITLESS_ROUNDS {
            let surplus = self.memory_bytes() - self.low_water();
            let mut candidates = self.gather(&mut hand, surplus, Spared::Hot);
            if candidates.is_empty() {
                // Readers may have used all leaves again while the hand went round.
                candidates = self.gather(&mut hand, surplus, Spared::None);
            }
            if candidates.is_empty() {
                break;
            }
            match self.spill(candidates, &live) {
                Ok(0) => fruitless += 1,
                Ok(_) => fruitless = 0,
                // What was spilled before may be enough.
                Err(StorageError::VersionStoreFull { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        if self.memory_bytes() > self.high_water() {
            return Err(self.full());
        }
        Ok(())
    }

    fn full(&self) -> StorageError {
        StorageError::VersionStoreFull {
            limit: self.budget_bytes,
            spill_limit: self.spill_file.limit_bytes(),
        }
    }

    /// The next tables to be spilled: together about [`BATCH_BYTES`], or `surplus` bytes of memory if that is less.
    pub(super) fn gather(&self, hand: &mut Hand, surplus: usize, spared: Spared) -> Vec<Candidate> {
        let (mut candidates, mut bytes, mut memory) = (Vec::new(), 0, 0);
        // Leaves that come while the hand goes round twice are not waited for.
        let mut left = 2 * self.leaves() + SHARDS;
        let mut empty_shards = 0;
        while left > 0 && bytes < BATCH_BYTES && memory < surplus && empty_shards <= 2 * SHARDS {
            let shard = self.shards[hand.shard].read();
            let after = hand.page.map_or(Bound::Unbounded, Bound::Excluded);
            let range = shard.leaves.range((after, Bound::Unbounded));
            let mut passed = 0;
            for (&page, leaf) in range.take(TABLES_PER_LOCK) {
                hand.page = Some(page);
                passed += 1;
                let is_spared = leaf.cool_down() && spared == Spared::Hot;
                if is_spared || !is_worth_spilling(leaf) {
                    continue;
                }
                let copy = leaf.copy();
                bytes += copy.table.encoded_bytes();
                memory += copy.table.memory_bytes();
                candidates.push(Candidate::new(page, copy));
            }
            left = left.saturating_sub(passed);
            if passed < TABLES_PER_LOCK {
                hand.page = None;
                hand.shard = (hand.shard + 1) % SHARDS;
                empty_shards += 1;
            }
        }
        candidates
    }

    /// Writes the candidates' tables, and drops them from memory where nothing has changed meanwhile. Returns how many
    /// were dropped.
    ///
    /// # Errors
    /// `VersionStoreFull` if the file has room for none of them, and those of the file.
    pub(super) fn spill(
        &self,
        mut candidates: Vec<Candidate>,
        live: &LiveSnapshots,
    ) -> Result<usize> {
        for candidate in &mut candidates {
            if candidate.joined > 0 {
                candidate.join(live);
            }
        }
        let tables: Vec<_> = candidates.iter().map(Candidate::pieces).collect();
        let stored = self.store(&tables)?;
        let mut dropped = 0;
        for ((candidate, tables), spilled) in candidates.iter().zip(&tables).zip(stored) {
            // Another one may have left the file no room for it.
            let Some(spilled) = spilled else { continue };
            let parts = tables.iter().zip(spilled).map(|(table, bytes)| {
                let keys = match self.other_bytes() < self.budget_bytes / FILTERS_SHARE {
                    true => BloomFilter::of(table.len(), table.keys()),
                    false => BloomFilter::of_any(),
                };
                Part::new(SpilledTable::new(bytes, table.writers().into(), keys))
            });
            let parts = parts.collect();
            let is_dropped = self.change_leaf_if(candidate.page, candidate.copy.stamp, |leaf| {
                let joined = &candidate.copy.parts[..candidate.joined];
                leaf.set_spilled(parts, joined, candidate.has_forgotten);
            });
            dropped += usize::from(is_dropped);
        }
        Ok(dropped)
    }

    /// Stores the tables of several leaves: all of them side by side, or those that the file has room for.
    fn store(&self, leaves: &[Vec<Cow<'_, VersionTable>>]) -> Result<Vec<Option<Vec<Spilled>>>> {
        let encode = |tables: &[Cow<'_, VersionTable>]| -> Vec<_> {
            tables.iter().map(|table| table.encode()).collect()
        };
        let pieces: Vec<_> = leaves.iter().flat_map(|tables| encode(tables)).collect();
        match self.spill_file.store(&pieces) {
            Ok(spilled) => {
                let mut spilled = spilled.into_iter();
                let of_leaf = |tables: &Vec<_>| Some(spilled.by_ref().take(tables.len()).collect());
                return Ok(leaves.iter().map(of_leaf).collect());
            }
            Err(StorageError::SpillFileFull { .. }) => {}
            Err(error) => return Err(error),
        }
        drop(pieces);
        let mut stored = Vec::with_capacity(leaves.len());
        for tables in leaves {
            stored.push(match self.spill_file.store(&encode(tables)) {
                Ok(spilled) => Some(spilled),
                Err(StorageError::SpillFileFull { .. }) => None,
                Err(error) => return Err(error),
            });
        }
        match stored.iter().any(Option::is_some) {
            true => Ok(stored),
            false => Err(self.full()),
        }
    }

    /// Reads back what was spilled of a leaf's past, and keeps it in memory. The caller holds no latch.
    pub(crate) fn bring_back(&self, page: PageId) -> Result<()> {
        loop {
            let mut copy = {
                let shard = self.shard(page).read();
                match shard.leaves.get(&page) {
                    Some(leaf) if !leaf.parts.is_empty() => leaf.copy(),
                    _ => return Ok(()),
                }
            };
            copy.load_parts()?;
            if self.keep(page, copy) {
                return Ok(());
            }
        }
    }

    /// Puts a leaf's past that was read back in memory. False if there is another by now.
    fn keep(&self, page: PageId, copy: LeafCopy) -> bool {
        self.change_leaf_if(page, copy.stamp, |leaf| {
            leaf.set_table(copy.table);
            leaf.parts = Vec::new();
            leaf.touch();
        })
    }

    /// Everything that is known of a leaf's past, for one use; kept in memory if there is room.
    pub(super) fn load(&self, page: PageId, mut copy: LeafCopy) -> Result<VersionTable> {
        copy.load_parts()?;
        let table = copy.table;
        if self.has_room_for(table.memory_bytes()) {
            let stamp = copy.stamp;
            self.keep(
                page,
                LeafCopy {
                    stamp,
                    table: table.clone(),
                    parts: Vec::new(),
                },
            );
        }
        Ok(table)
    }
}

fn is_worth_spilling(leaf: &LeafVersions) -> bool {
    leaf.table().memory_bytes() >= WORTH_SPILLING_BYTES
}

/// Whether a writer that `matters` picks has perhaps written in a part of the leaf's past that was spilled.
pub(super) fn may_matter(
    leaf: &LeafVersions,
    key: Option<&[u8]>,
    matters: impl Fn(&Arc<StatusCell>) -> bool,
) -> bool {
    let mut parts = leaf.parts.iter();
    parts.any(|part| part.may_matter(key, &matters))
}
