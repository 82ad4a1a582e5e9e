//! Spilling: tables that nobody has used lately go to the spill file when memory is short.
//!
//! Whoever is about to change something looks first, while it holds no latch, whether the store is crowded. If it is,
//! garbage goes; if that is not enough, a hand goes round the leaves, as the clock of the buffer pool does, and picks
//! tables that were not used since it came by last, until the store is well below its budget again. So spilling
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
//! A table is copied under its shard's lock, written with no lock held, and taken out of memory under the lock again,
//! if the leaf's past is still the one that was copied: it carries a stamp that every change renews. Otherwise what was
//! written is given up. So readers, changes, splits, merges, the collector and the dropping of trees need not know that
//! a table is being spilled, and when the write fails, nothing has happened.

use std::ops::Bound;
use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::page::PageId;
use crate::snapshot::{LiveSnapshots, StatusCell};
use crate::spill_file::MAX_PIECE_BYTES;
use crate::versions::key_filter::KeyFilter;
use crate::versions::leaf::{LeafCopy, LeafVersions, Part, SpilledTable};
use crate::versions::{SHARDS, TABLES_PER_LOCK, VersionStore, VersionTable};

/// Shares of the budget, in percent: spilling begins at the one and ends at the other.
const HIGH_WATER_PERCENT: usize = 90;
const LOW_WATER_PERCENT: usize = 60;

/// Bytes of tables that are written at a time, about.
const BATCH_BYTES: usize = 1 << 20;

/// Smaller tables take hardly more memory than what is left of a spilled one.
const WORTH_SPILLING_BYTES: usize = 512;

/// A leaf with so many spilled tables has them joined the next time one is spilled.
const MAX_PARTS: usize = 4;

/// Where the spiller goes on.
#[derive(Default)]
pub(super) struct Hand {
    shard: usize,
    /// The last page of the shard that it has passed.
    page: Option<PageId>,
}

/// A leaf whose table is to be spilled.
pub(super) struct Candidate {
    page: PageId,
    copy: LeafCopy,
    /// The table has what the parts had.
    joins_parts: bool,
}

impl VersionStore {
    fn high_water(&self) -> usize {
        self.budget_bytes / 100 * HIGH_WATER_PERCENT
    }

    fn low_water(&self) -> usize {
        self.budget_bytes / 100 * LOW_WATER_PERCENT
    }

    /// Whether so much more is welcome in memory.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.memory_bytes() + bytes <= self.low_water()
    }

    /// To be called before a change, by a thread that holds no latch: the change's version has room in memory then.
    ///
    /// # Errors
    /// `VersionStoreFull` if neither memory nor the spill file has room for what somebody may still need; `DiskFull`
    /// and `Io` of the spill file.
    #[inline]
    pub(crate) fn make_room(&self, live: impl FnOnce() -> Arc<LiveSnapshots>) -> Result<()> {
        if self.memory_bytes() <= self.high_water() {
            return Ok(());
        }
        self.make_room_slowly(live)
    }

    #[cold]
    fn make_room_slowly(&self, live: impl FnOnce() -> Arc<LiveSnapshots>) -> Result<()> {
        let mut hand = self.hand.lock();
        if self.memory_bytes() <= self.high_water() {
            return Ok(());
        }
        // Bits of pages whose tables go stay set, which is allowed: the next reader takes them away.
        self.purge_all(&live());
        while self.memory_bytes() > self.low_water() {
            let surplus = self.memory_bytes() - self.low_water();
            let mut candidates = self.gather(&mut hand, surplus);
            if candidates.is_empty() || self.spill(&mut candidates)? == 0 {
                break;
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
    pub(super) fn gather(&self, hand: &mut Hand, surplus: usize) -> Vec<Candidate> {
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
                if leaf.cool_down() || !is_worth_spilling(leaf) {
                    continue;
                }
                let copy = leaf.copy();
                bytes += copy.table.encoded_bytes();
                memory += copy.table.memory_bytes();
                candidates.push(Candidate {
                    page,
                    joins_parts: copy.parts.len() >= MAX_PARTS,
                    copy,
                });
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
    pub(super) fn spill(&self, candidates: &mut Vec<Candidate>) -> Result<usize> {
        for candidate in candidates
            .iter_mut()
            .filter(|candidate| candidate.joins_parts)
        {
            candidate.copy.load_parts()?;
        }
        candidates.retain(|candidate| candidate.copy.table.encoded_bytes() <= MAX_PIECE_BYTES);
        let pieces: Vec<_> = candidates
            .iter()
            .map(|candidate| candidate.copy.table.encode())
            .collect();
        let spilled = self
            .spill_file
            .store(&pieces)
            .map_err(|error| match error {
                StorageError::SpillFileFull { .. } => self.full(),
                error => error,
            })?;
        let mut dropped = 0;
        for (candidate, bytes) in candidates.drain(..).zip(spilled) {
            let table = &candidate.copy.table;
            let part = Part::new(SpilledTable {
                bytes,
                writers: table.writers().into(),
                keys: KeyFilter::of(table.len(), table.keys()),
            });
            let Candidate {
                page,
                copy,
                joins_parts,
            } = candidate;
            let is_dropped = self.change_leaf_if(page, copy.stamp, |leaf| {
                leaf.set_table(VersionTable::new());
                if joins_parts {
                    leaf.parts = Vec::new();
                }
                leaf.parts.reserve_exact(1);
                leaf.parts.insert(0, part);
            });
            dropped += usize::from(is_dropped);
        }
        Ok(dropped)
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
        && leaf.table().encoded_bytes() <= MAX_PIECE_BYTES
}

/// Whether somebody whom `matters` picks has perhaps written in a part of the leaf's past that was spilled.
pub(super) fn may_matter(
    leaf: &LeafVersions,
    key: Option<&[u8]>,
    matters: impl Fn(&Arc<StatusCell>) -> bool,
) -> bool {
    let mut parts = leaf.parts.iter();
    parts.any(|part| part.may_matter(key, &matters))
}
