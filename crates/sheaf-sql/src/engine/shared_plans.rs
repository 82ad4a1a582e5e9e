//! Plans that all sessions share, by the text of their statement without literals.
//!
//! ```text
//!   session A   its own few statements --miss--.
//!   session B   its own few statements --miss--+--> shards of shared plans --miss--> parse and compile
//! ```
//!
//! A session looks here only for statements that it does not know itself, so that running a known statement writes
//! nothing that others read. What is recent is therefore what some session has looked for lately; sessions that hold a
//! plan keep it when it is thrown out here.
//!
//! A plan depends on more than its text: on the current database, on how `sql_mode` reads text and treats values, on
//! the collation that results are described in, and on whether index conditions are used. These are its key. It holds
//! for one version of the definitions; when that changes, all of a shard goes, so that no plan keeps a dropped table.

use std::any::Any;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::session_parts::status::SharedPlansGauges;
use crate::variables::SqlMode;

/// Memory of all plans, by estimate.
const MAX_BYTES: usize = 16 << 20;
/// Sessions that look for different statements mostly look in different shards.
const SHARDS: usize = 16;
/// What a plan takes for each byte of its text, at most: VALUES needs two for an operand.
const PLAN_BYTES_PER_TEXT_BYTE: usize = 32;
/// What a plan takes for each column of its result, of which `*` names any number: its descriptions for the client and
/// for Arrow.
const PLAN_BYTES_PER_COLUMN: usize = 512;

/// A plan that sessions share. What it is, is known to the floor that makes it.
pub(crate) trait SharedPlan: Any + Send + Sync {
    /// How many columns its result has.
    fn result_columns(&self) -> usize;

    /// What was allocated for it.
    fn bytes(&self) -> usize;
}

/// What is known of a statement; `None`: it has no such plan.
pub(crate) type SharedKnown = Option<Arc<dyn SharedPlan>>;

/// What it takes. `of_text`: as its text tells.
fn bytes_of(known: &SharedKnown, of_text: usize) -> usize {
    match known {
        Some(plan) => {
            let estimated = of_text + plan.result_columns() * PLAN_BYTES_PER_COLUMN;
            estimated.max(plan.bytes())
        }
        None => of_text,
    }
}

/// See the module's comment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PlanKey {
    pub(crate) text: Arc<str>,
    pub(crate) database: Option<Arc<str>>,
    pub(crate) sql_mode: SqlMode,
    pub(crate) collation_id: u16,
    /// What literals compare by; what results are told in says nothing of it where they are not converted.
    pub(crate) connection_collation_id: u16,
    pub(crate) pushes_index_conditions: bool,
    /// What quotients have, see `div_precision_increment`.
    pub(crate) quotient_decimals: u8,
    /// The tables of a plan are seen in it, see `Table::in_time_zone`.
    pub(crate) time_zone_offset_seconds: i32,
}

impl PlanKey {
    /// The statement without its literals.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    fn bytes(&self) -> usize {
        let database = self.database.as_ref().map_or(0, |name| name.len());
        size_of::<Entry>() + database + self.text.len() * PLAN_BYTES_PER_TEXT_BYTE
    }
}

/// See the module's comment.
pub(crate) struct SharedPlans {
    shards: [Mutex<Shard>; SHARDS],
    evictions: AtomicU64,
}

#[derive(Default)]
struct Shard {
    /// What the plans were made for.
    schema_version: u64,
    entries: BTreeMap<PlanKey, Entry>,
    /// The same by when they were last looked for.
    by_use: BTreeMap<u64, PlanKey>,
    uses: u64,
    bytes: usize,
}

struct Entry {
    known: SharedKnown,
    used: u64,
    bytes: usize,
}

impl Default for SharedPlans {
    fn default() -> Self {
        SharedPlans {
            shards: std::array::from_fn(|_| Mutex::default()),
            evictions: AtomicU64::new(0),
        }
    }
}

impl SharedPlans {
    fn shard(&self, key: &PlanKey) -> MutexGuard<'_, Shard> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let shard = &self.shards[hasher.finish() as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known for this version of the definitions.
    pub(crate) fn find(&self, key: &PlanKey, schema_version: u64) -> Option<SharedKnown> {
        let mut shard = self.shard(key);
        match shard.begin(schema_version) {
            true => shard.find(key),
            false => None,
        }
    }

    /// Remembers what was found out for this version of the definitions.
    pub(crate) fn keep(&self, key: PlanKey, schema_version: u64, known: SharedKnown) {
        let mut shard = self.shard(&key);
        if shard.begin(schema_version) {
            let evicted = shard.keep(key, known, MAX_BYTES / SHARDS);
            self.evictions.fetch_add(evicted, Ordering::Relaxed);
        }
    }

    pub(crate) fn gauges(&self) -> SharedPlansGauges {
        let mut gauges = SharedPlansGauges {
            evictions: self.evictions.load(Ordering::Relaxed),
            ..SharedPlansGauges::default()
        };
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            gauges.statements += shard.entries.len() as u64;
            gauges.bytes += shard.bytes as u64;
        }
        gauges
    }
}

impl Shard {
    /// Forgets what was made for an earlier version. False if the version is an earlier one itself.
    fn begin(&mut self, schema_version: u64) -> bool {
        if schema_version > self.schema_version {
            *self = Shard {
                schema_version,
                ..Shard::default()
            };
        }
        schema_version == self.schema_version
    }

    fn find(&mut self, key: &PlanKey) -> Option<SharedKnown> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        if let Some(key) = self.by_use.remove(&entry.used) {
            self.by_use.insert(self.uses, key);
        }
        entry.used = self.uses;
        Some(entry.known.clone())
    }

    /// Returns how many others had to go.
    fn keep(&mut self, key: PlanKey, known: SharedKnown, max_bytes: usize) -> u64 {
        self.remove(&key);
        self.uses += 1;
        let used = self.uses;
        let bytes = bytes_of(&known, key.bytes());
        self.bytes += bytes;
        self.by_use.insert(used, key.clone());
        self.entries.insert(key, Entry { known, used, bytes });
        let mut evicted = 0;
        while self.bytes > max_bytes
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.remove(&oldest);
            evicted += 1;
        }
        evicted
    }

    fn remove(&mut self, key: &PlanKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> PlanKey {
        PlanKey {
            text: text.into(),
            database: Some("shop".into()),
            sql_mode: SqlMode::default(),
            collation_id: 255,
            connection_collation_id: 255,
            pushes_index_conditions: true,
            quotient_decimals: 4,
            time_zone_offset_seconds: 0,
        }
    }

    #[test]
    fn what_nobody_looked_for_lately_goes_first() {
        let mut shard = Shard::default();
        let room = 3 * key("select 1").bytes();
        for text in ["select 1", "select 2", "select 3"] {
            assert_eq!(shard.keep(key(text), None, room), 0);
        }
        assert!(shard.find(&key("select 1")).is_some());
        assert_eq!(shard.keep(key("select 4"), None, room), 1);
        assert!(shard.find(&key("select 2")).is_none());
        assert!(shard.find(&key("select 1")).is_some());
        assert_eq!((shard.entries.len(), shard.by_use.len()), (3, 3));
        assert_eq!(shard.bytes, room);
        // One that does not fit at all leaves an empty cache behind.
        let large = "x".repeat(room);
        assert_eq!(shard.keep(key(&large), None, room), 4);
        assert_eq!((shard.entries.len(), shard.bytes), (0, 0));
    }

    #[test]
    fn other_circumstances_are_other_statements() {
        let plans = SharedPlans::default();
        plans.keep(key("select 1"), 7, None);
        assert!(plans.find(&key("select 1"), 7).is_some());
        for other in [
            PlanKey {
                database: None,
                ..key("select 1")
            },
            PlanKey {
                collation_id: 46,
                ..key("select 1")
            },
            PlanKey {
                quotient_decimals: 8,
                ..key("select 1")
            },
            PlanKey {
                sql_mode: SqlMode::parse("ANSI_QUOTES").expect("a mode"),
                ..key("select 1")
            },
        ] {
            assert!(plans.find(&other, 7).is_none(), "{other:?}");
        }
        // A session that has not noticed the change yet finds nothing, and leaves nothing.
        assert!(plans.find(&key("select 1"), 8).is_none());
        plans.keep(key("select 1"), 7, None);
        assert!(plans.find(&key("select 1"), 8).is_none());
        assert_eq!(plans.gauges().evictions, 0);
    }
}
