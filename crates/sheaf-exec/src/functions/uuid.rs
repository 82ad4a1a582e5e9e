//! UUIDs: numbers of 128 bits that nobody else has, as texts and as bytes. UUID_SHORT() makes numbers of 64 bits.
//!
//! `UUID()` makes one of version 1 (RFC 4122). It is made of the time in steps of 100 nanoseconds, a number that two at
//! the same time would differ in, and a node that the process has chosen at random. No two of a process have the same
//! time: the next one is at least a step later.
//!
//! ```text
//!   6ccd780c-baba-1026-9564-5b8c656024db      low, middle and high part of the time, clock sequence, node
//! ```
//!
//! UUID_TO_BIN and BIN_TO_UUID convert. With an argument that is not 0, those of one process are ordered by time:
//!
//! ```text
//!   6ccd780c baba 1026 ..    -->    1026 baba 6ccd780c ..
//! ```

use std::cell::RefCell;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, StringViewArray, UInt64Array};
use datafusion_common::Result;

use super::result_array::{byte_strings, ints, texts};
use super::types::field;
use super::{Call, EvaluationError, Function, Length};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "uuid",
        (0, 0),
        |_| Ok(field::text()),
        |call| {
            let values = (0..call.rows()).map(|_| next_uuid());
            Ok(Arc::new(StringViewArray::from_iter_values(values)))
        },
    )
    .never_null()
    .volatile()
    .length(Length::Fixed(36))
    .in_defaults(),
    // Its argument is the server's number.
    Function::new(
        "$uuid_short",
        (1, 1),
        |_| Ok(field::unsigned_bigint()),
        |call| {
            let servers = call.unsigned(0)?;
            let value = |row| next_short(servers.get(row).unwrap_or(0));
            Ok(Arc::new(UInt64Array::from_iter_values(
                (0..call.rows()).map(value),
            )))
        },
    )
    .never_null()
    .volatile()
    .in_defaults(),
    Function::strict(
        "is_uuid",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            let values = call.bytes(0)?;
            ints(call, |row| {
                Some(i64::from(bytes_of(values.get(row)?).is_some()))
            })
        },
    ),
    Function::new(
        "uuid_to_bin",
        (1, 2),
        |_| Ok(field::bytes()),
        |call| {
            let (values, swaps) = (call.bytes(0)?, swaps(call)?);
            let wrong = Wrong::default();
            let made = byte_strings(call, |row, out| {
                let text = values.get(row)?;
                let mut bytes = bytes_of(text).or_else(|| wrong.note(text))?;
                if swaps(row) {
                    // High, middle, low.
                    let [a, b, c, d, e, f, g, h, ..] = bytes;
                    bytes[..8].copy_from_slice(&[g, h, e, f, a, b, c, d]);
                }
                out.extend(bytes);
                Some(())
            });
            wrong.check(call, made)
        },
    )
    .makes_bytes()
    .length(Length::Fixed(16)),
    Function::new(
        "bin_to_uuid",
        (1, 2),
        |_| Ok(field::text()),
        |call| {
            let (values, swaps) = (call.bytes(0)?, swaps(call)?);
            let wrong = Wrong::default();
            let made = texts(call, |row, out| {
                let bytes = values.get(row)?;
                let given = <[u8; 16]>::try_from(bytes).ok();
                let mut bytes = given.or_else(|| wrong.note(bytes))?;
                if swaps(row) {
                    let [g, h, e, f, a, b, c, d, ..] = bytes;
                    bytes[..8].copy_from_slice(&[a, b, c, d, e, f, g, h]);
                }
                push_uuid(out, &bytes)
            });
            wrong.check(call, made)
        },
    )
    .length(Length::Fixed(36)),
];

/// Bytes that stand between the hyphens of a text.
const GROUPS: [usize; 5] = [4, 2, 2, 2, 6];

/// Whether the second argument, of each row, says that the parts of the time change their places.
fn swaps<'a>(call: &'a Call<'_>) -> Result<impl Fn(usize) -> bool + use<'a>> {
    let swaps = match call.len() {
        2 => Some(call.int(1)?),
        _ => None,
    };
    Ok(move |row| {
        let value = swaps.as_ref().and_then(|swaps| swaps.get(row));
        value.is_some_and(|value| value != 0)
    })
}

/// The first value of a batch that a function does not take.
#[derive(Default)]
struct Wrong(RefCell<Option<Vec<u8>>>);

impl Wrong {
    fn note<T>(&self, bytes: &[u8]) -> Option<T> {
        self.0.borrow_mut().get_or_insert_with(|| bytes.to_vec());
        None
    }

    fn check(self, call: &Call<'_>, made: Result<ArrayRef>) -> Result<ArrayRef> {
        match self.0.into_inner() {
            Some(bytes) => Err(EvaluationError::not_for_function(&bytes, call.name()).into()),
            None => made,
        }
    }
}

/// The bytes of a text of 32 digits, alone or with hyphens; and then in braces as well.
fn bytes_of(text: &[u8]) -> Option<[u8; 16]> {
    let text = match text {
        [b'{', inner @ .., b'}'] if inner.len() == 36 => inner,
        text => text,
    };
    let has_hyphens = match text.len() {
        32 => false,
        36 => true,
        _ => return None,
    };
    let mut bytes = [0; 16];
    let (mut at, mut filled) = (0, 0);
    for (group, length) in GROUPS.into_iter().enumerate() {
        if has_hyphens && group > 0 {
            (text[at] == b'-').then_some(())?;
            at += 1;
        }
        for byte in &mut bytes[filled..filled + length] {
            let digit = |at: usize| char::from(text[at]).to_digit(16);
            *byte = (digit(at)? << 4 | digit(at + 1)?) as u8;
            at += 2;
        }
        filled += length;
    }
    Some(bytes)
}

fn push_uuid(out: &mut String, bytes: &[u8; 16]) -> Option<()> {
    let mut rest = bytes.as_slice();
    for (group, length) in GROUPS.into_iter().enumerate() {
        if group > 0 {
            out.push('-');
        }
        let (bytes, others) = rest.split_at(length);
        for byte in bytes {
            write!(out, "{byte:02x}").ok()?;
        }
        rest = others;
    }
    Some(())
}

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

/// The next of the numbers that UUID_SHORT() gives:
///
/// ```text
///   8 bits    the server's number
///   32 bits   the second in which the process gave the first one
///   24 bits   a counter, which may go on into the seconds
/// ```
fn next_short(server: u64) -> u64 {
    static START: LazyLock<AtomicU64> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0, |now| now.as_secs());
        AtomicU64::new((seconds & 0xFFFF_FFFF) << 24)
    });
    let counted = START.fetch_add(1, Ordering::Relaxed);
    ((server & 0xFF) << 56).wrapping_add(counted)
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
