//! `UUID()`: a number of 128 bits that nobody else has, of version 1 (RFC 4122).
//!
//! It is made of the time in steps of 100 nanoseconds, a number that two at the same time would differ in, and a node
//! that the process has chosen at random. No two of a process have the same time: the next one is at least a step
//! later.
//!
//! ```text
//!   6ccd780c-baba-1026-9564-5b8c656024db      low, middle and high part of the time, clock sequence, node
//! ```

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::StringViewArray;

use super::Function;
use super::types::field;

pub(super) static FUNCTIONS: &[Function] = &[Function::new(
    "uuid",
    (0, 0),
    |_| Ok(field::text()),
    |call| {
        let values = (0..call.rows()).map(|_| next_uuid());
        Ok(Arc::new(StringViewArray::from_iter_values(values)))
    },
)
.never_null()
.volatile()];

/// Steps of 100 nanoseconds between the first day of the Gregorian calendar and 1970.
const STEPS_BEFORE_1970: u64 = 0x01B2_1DD2_1381_4000;
const NANOSECONDS_OF_A_STEP: u128 = 100;

/// A node that is no network card's, and a clock sequence.
static NODE: LazyLock<(u64, u64)> = LazyLock::new(|| {
    let random = || RandomState::new().build_hasher().finish();
    const MULTICAST: u64 = 1 << 40;
    ((random() >> 16) | MULTICAST, random() & 0x3FFF)
});

fn next_uuid() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let steps = now.map_or(0, |now| now.as_nanos() / NANOSECONDS_OF_A_STEP);
    let now = STEPS_BEFORE_1970.wrapping_add(u64::try_from(steps).unwrap_or(0));
    let later = |last: u64| Some(now.max(last + 1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    let time = now.max(last.unwrap_or(0) + 1);
    let (node, sequence) = *NODE;
    format!(
        "{:08x}-{:04x}-1{:03x}-{:04x}-{node:012x}",
        time & 0xFFFF_FFFF,
        (time >> 32) & 0xFFFF,
        (time >> 48) & 0xFFF,
        0x8000 | sequence,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_are_the_same() {
        let made: HashSet<String> = (0..10_000).map(|_| next_uuid()).collect();
        assert_eq!(made.len(), 10_000);
        for uuid in made {
            let parts: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12]);
            assert_eq!(uuid.as_bytes()[14], b'1');
        }
    }
}
