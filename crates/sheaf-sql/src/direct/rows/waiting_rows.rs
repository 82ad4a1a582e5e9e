//! Rows that are looked up together, because entries that lead to them have been read.
//!
//! A lookup waits for memory several times, or for the disk. So the keys of some rows are collected first, over several
//! ranges of the index if need be. Then memory is asked for all of them ([`PointReader::look_ahead`]); and the disk,
//! once one of them has had to be waited for, for more and more at a time. A caller that wants only so many rows does
//! not have more looked up at first.

use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_access::CancelFlag;
use sheaf_storage::{LOOK_AHEAD_KEYS, PointReader, ReadView, Tree};

use crate::error::Result;

/// Most rows that are asked for at the same time, where they have to be read from the disk.
const MOST_ROWS: usize = 128;

/// See the module's comment.
pub(in crate::direct) struct WaitingRows {
    clustered: Arc<Tree>,
    reader: PointReader,
    /// Encoded clustered keys, one after the other, and where each ends.
    keys: Vec<u8>,
    ends: Vec<usize>,
    /// Keys that are collected before their rows are looked up.
    group: usize,
    /// A row of the last group was not in memory.
    has_missed: bool,
}

impl WaitingRows {
    /// `wanted`: rows that are enough, if that is known.
    pub(in crate::direct) fn new(
        clustered: &Arc<Tree>,
        view: &ReadView,
        wanted: u64,
    ) -> WaitingRows {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        WaitingRows {
            reader: clustered.point_reader_at(view.clone()),
            clustered: Arc::clone(clustered),
            keys: Vec::new(),
            ends: Vec::new(),
            group: wanted.clamp(1, LOOK_AHEAD_KEYS),
            has_missed: false,
        }
    }

    /// Adds a row, whose encoded clustered key `fill` appends.
    pub(in crate::direct) fn push(
        &mut self,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        fill(&mut self.keys)?;
        self.ends.push(self.keys.len());
        Ok(())
    }

    /// Whether it is time to look the rows up.
    pub(in crate::direct) fn is_group(&self) -> bool {
        self.ends.len() >= self.group
    }

    /// Gives the rows that are there to `each`, with their keys, in the order in which they came, until it has enough.
    /// Where they come from the disk, this takes long: the flag is looked at on the way.
    pub(in crate::direct) fn look_up(
        &mut self,
        cancel: &CancelFlag,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let mut asks = self.has_missed;
        self.has_missed = false;
        let mut at = 0;
        while at < self.ends.len() {
            if asks {
                // All that are left of the group, which is larger the next time.
                asks = false;
                self.has_missed = self.ask_disk(at)?;
            }
            if at.is_multiple_of(LOOK_AHEAD_KEYS) {
                cancel.check()?;
            }
            if at.is_multiple_of(LOOK_AHEAD_KEYS) && at + 1 < self.ends.len() {
                let end = (at + LOOK_AHEAD_KEYS).min(self.ends.len());
                let keys = (at..end).map(|at| key(&self.keys, &self.ends, at));
                self.reader.look_ahead(keys);
            }
            let reads = self.clustered.thread_page_work().reads;
            let key = key(&self.keys, &self.ends, at);
            if let Some(row) = self.reader.get(key)?
                && each(key, row)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            at += 1;
            if !self.has_missed && self.clustered.thread_page_work().reads > reads {
                self.has_missed = true;
                asks = true;
            }
        }
        self.keys.clear();
        self.ends.clear();
        let most = match self.has_missed {
            true => MOST_ROWS,
            false => LOOK_AHEAD_KEYS,
        };
        self.group = (2 * self.group).min(most);
        Ok(ControlFlow::Continue(()))
    }

    /// Asks for the pages of the keys from this one on; whether there was one that is not in memory.
    fn ask_disk(&self, from: usize) -> Result<bool> {
        let keys = (from..self.ends.len()).map(|at| key(&self.keys, &self.ends, at));
        let mut keys: Vec<&[u8]> = keys.collect();
        keys.sort_unstable();
        let summary = self.clustered.prefetch_keys(&mut keys.into_iter())?;
        Ok(summary.requested_pages > 0)
    }
}

fn key<'k>(keys: &'k [u8], ends: &[usize], at: usize) -> &'k [u8] {
    let start = at.checked_sub(1).map_or(0, |before| ends[before]);
    &keys[start..ends[at]]
}
