//! The digests that are known, by text and schema, with the sums that sessions have handed over.
//!
//! There are at most `performance_schema_digests_size` of them. What has no place is summed up in one row without a
//! digest, as in MySQL.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sheaf_frontend::digest::Digest;

use super::digest_name::DigestName;
use super::digest_sums::DigestSums;
use super::latency_histogram::LatencyHistogram;
use super::local_sums::LocalSums;

/// Sessions that have different digests mostly use different shards.
const SHARDS: usize = 16;

type Shard = BTreeMap<Arc<DigestName>, DigestSums>;

/// See the module's comment.
pub(crate) struct DigestTable {
    capacity: usize,
    /// The most bytes of tokens that a digest is made of.
    max_digest_bytes: usize,
    size: AtomicUsize,
    /// How often it was emptied: what had no place may have one since.
    emptied: AtomicU64,
    /// Digests that had no place, each time that a session met one.
    lost: AtomicU64,
    shards: [Mutex<Shard>; SHARDS],
    /// What had no place.
    rest: Mutex<DigestSums>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DigestTable {
    /// A capacity of 0: nothing is counted.
    pub(crate) fn new(capacity: usize, max_digest_bytes: usize) -> DigestTable {
        DigestTable {
            capacity,
            max_digest_bytes,
            size: AtomicUsize::new(0),
            emptied: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            shards: std::array::from_fn(|_| Mutex::default()),
            rest: Mutex::default(),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.capacity > 0
    }

    pub(crate) fn max_digest_bytes(&self) -> usize {
        self.max_digest_bytes
    }

    pub(crate) fn emptied(&self) -> u64 {
        self.emptied.load(Ordering::Acquire)
    }

    /// `Performance_schema_digest_lost`
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn shard(&self, name: &DigestName) -> MutexGuard<'_, Shard> {
        let mut hasher = DefaultHasher::new();
        hasher.write(name.digest.text.as_bytes());
        // The remainder is below the number of shards.
        let shard = hasher.finish() % SHARDS as u64;
        lock(&self.shards[shard as usize])
    }

    /// A digest with its place in the table; `None`: there is none left.
    pub(crate) fn name_of(&self, schema: Option<&str>, digest: Digest) -> Option<Arc<DigestName>> {
        let name = Arc::new(DigestName::new(schema, digest));
        let mut shard = self.shard(&name);
        if let Some((known, _)) = shard.get_key_value(&name) {
            return Some(Arc::clone(known));
        }
        if !self.take_place() {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        shard.insert(Arc::clone(&name), DigestSums::default());
        Some(name)
    }

    fn take_place(&self) -> bool {
        let next = |size: usize| (size < self.capacity).then_some(size + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.size.fetch_update(set, fetch, next).is_ok()
    }

    /// Takes over sums of a session. `None`: of digests without a place.
    pub(crate) fn add(&self, name: Option<&Arc<DigestName>>, sums: &DigestSums) {
        if sums.count == 0 {
            return;
        }
        let Some(name) = name else {
            return lock(&self.rest).merge(sums);
        };
        let mut shard = self.shard(name);
        match shard.get_mut(name) {
            Some(known) => known.merge(sums),
            // The table was emptied meanwhile.
            None if self.take_place() => {
                shard.insert(Arc::clone(name), sums.clone());
            }
            None => {
                drop(shard);
                lock(&self.rest).merge(sums);
            }
        }
    }

    /// All that was counted, with what sessions have not handed over yet; `None`: what had no place.
    pub(crate) fn rows<'s>(
        &self,
        sessions: impl Iterator<Item = &'s LocalSums>,
    ) -> Vec<(Option<Arc<DigestName>>, DigestSums)> {
        let mut all: Shard = BTreeMap::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let sums =
                |(name, sums): (&Arc<DigestName>, &DigestSums)| (Arc::clone(name), sums.clone());
            all.extend(shard.iter().map(sums));
        }
        let mut rest = lock(&self.rest).clone();
        for session in sessions {
            session.for_each(|name, sums| match name {
                Some(name) => all.entry(Arc::clone(name)).or_default().merge(sums),
                None => rest.merge(sums),
            });
        }
        let all = all.into_iter().map(|(name, sums)| (Some(name), sums));
        let all = all.chain([(None, rest)]);
        all.filter(|(_, sums)| sums.count > 0).collect()
    }

    /// Forgets how long statements took, and nothing else.
    pub(crate) fn clear_times<'s>(&self, sessions: impl Iterator<Item = &'s LocalSums>) {
        for shard in &self.shards {
            for sums in lock(shard).values_mut() {
                sums.times = LatencyHistogram::default();
            }
        }
        lock(&self.rest).times = LatencyHistogram::default();
        sessions.for_each(LocalSums::clear_times);
    }

    /// Forgets everything, also what sessions have not handed over yet.
    pub(crate) fn clear<'s>(&self, sessions: impl Iterator<Item = &'s LocalSums>) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            self.size.fetch_sub(shard.len(), Ordering::Relaxed);
            shard.clear();
        }
        *lock(&self.rest) = DigestSums::default();
        self.lost.store(0, Ordering::Relaxed);
        sessions.for_each(LocalSums::clear);
        self.emptied.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sheaf_frontend::digest::Reading;

    use super::super::StatementEvent;
    use super::*;

    fn digest(statement: &str) -> Digest {
        Digest::of(statement, Reading::default(), 1024)
    }

    fn once() -> DigestSums {
        let mut sums = DigestSums::default();
        let event = StatementEvent {
            elapsed: Duration::from_micros(1),
            ..StatementEvent::default()
        };
        sums.add(&event, |_| {});
        sums
    }

    #[test]
    fn what_has_no_place_is_one_row() {
        let table = DigestTable::new(2, 1024);
        for statement in ["select 1", "select a", "select 2", "select b", "select c"] {
            let name = table.name_of(Some("d"), digest(statement));
            table.add(name.as_ref(), &once());
        }
        let rows = table.rows(std::iter::empty());
        let counts = rows.iter().map(|(name, sums)| (name.is_some(), sums.count));
        let mut counts: Vec<(bool, u64)> = counts.collect();
        counts.sort_unstable();
        assert_eq!(counts, [(false, 2), (true, 1), (true, 2)]);
        assert_eq!(table.lost(), 2);
    }

    #[test]
    fn schemas_are_told_apart_and_nothing_is_left_when_it_is_cleared() {
        let table = DigestTable::new(10, 1024);
        for schema in [None, Some("a"), Some("b")] {
            let name = table.name_of(schema, digest("select 1"));
            table.add(name.as_ref(), &once());
        }
        assert_eq!(table.rows(std::iter::empty()).len(), 3);
        table.clear(std::iter::empty());
        assert!(table.rows(std::iter::empty()).is_empty());
        assert_eq!(table.size.load(Ordering::Relaxed), 0);
    }
}
