//! Runs the body of a fuzz target for some seconds, without libFuzzer.
//!
//! libFuzzer needs a build of its own, with code that counts branches. This driver needs none: the tests of the bodies
//! include it, and `cargo test` has built them already. It knows nothing of branches. It keeps some inputs, changes one
//! of them at a few places, and calls the target with it:
//!
//! ```text
//!   samples of the test --> kept inputs --> one of them, changed --> target
//!                                ^------------ one in eight ------------'
//! ```
//!
//! | variable | what it says |
//! |---|---|
//! | `SHEAF_FUZZ_SECONDS` | how long; without it, a tenth of a second |
//! | `SHEAF_FUZZ_SEED` | the seed; without it, a new one |
//! | `SHEAF_FUZZ_INPUT` | the bytes of one input, in hexadecimal; nothing else runs |

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Inputs that are kept to be changed further, and the longest that one may become.
const KEPT_INPUTS: usize = 256;
const MAX_INPUT_BYTES: usize = 4096;
/// Inputs between two looks at the clock.
const INPUTS_PER_LOOK: usize = 64;
/// Numbers at which lengths, flags and signs change.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0xff_ffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 63,
    u64::MAX,
];

/// Runs `target` with inputs that begin as `sample` makes them of random numbers. A panic names the input.
pub fn run(
    name: &str,
    target: fn(&[u8]),
    mut sample: impl FnMut(&mut dyn FnMut() -> u64) -> Vec<u8>,
) {
    if let Ok(input) = std::env::var("SHEAF_FUZZ_INPUT") {
        return target(&from_hex(&input));
    }
    let seconds = number_of("SHEAF_FUZZ_SECONDS");
    let time = seconds.map_or(Duration::from_millis(100), Duration::from_secs);
    let seed = number_of("SHEAF_FUZZ_SEED").unwrap_or_else(new_seed);
    println!("{name}: from seed {seed}");
    let mut state = seed;
    let mut next = || mixed(&mut state);
    let mut kept: Vec<Vec<u8>> = (0..KEPT_INPUTS).map(|_| sample(&mut next)).collect();
    let end = Instant::now() + time;
    let mut inputs: u64 = 0;
    while Instant::now() < end {
        for _ in 0..INPUTS_PER_LOOK {
            let input = match next() % 16 {
                0 => sample(&mut next),
                _ => changed(&kept, &mut next),
            };
            inputs += 1;
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
                println!("{name}: SHEAF_FUZZ_INPUT={}", to_hex(&input));
                resume_unwind(panic);
            }
            if next() % 8 == 0 {
                let at = below(&mut next, KEPT_INPUTS);
                kept[at] = input;
            }
        }
    }
    println!("{name}: {inputs} inputs");
}

fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

fn new_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}

/// SplitMix64, as `sheaf_storage::Random`, which the tests of that crate know under another name.
fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn below(next: &mut dyn FnMut() -> u64, limit: usize) -> usize {
    (next() % limit as u64) as usize
}

/// One of the inputs, changed at one to four places.
fn changed(kept: &[Vec<u8>], next: &mut dyn FnMut() -> u64) -> Vec<u8> {
    let mut input = kept[below(next, kept.len())].clone();
    for _ in 0..=below(next, 4) {
        if input.is_empty() {
            input.push(next() as u8);
        }
        let at = below(next, input.len());
        let end = at + 1 + below(next, input.len() - at);
        match next() % 9 {
            0 => input[at] ^= 1 << (next() % 8),
            1 => input[at] = next() as u8,
            2 => input[at] = input[at].wrapping_add((next() % 33) as u8).wrapping_sub(16),
            3 => {
                let edge = EDGES[below(next, EDGES.len())].to_le_bytes();
                let width = (1 << (next() % 4)).min(input.len() - at);
                input[at..at + width].copy_from_slice(&edge[..width]);
            }
            4 => input.insert(at, next() as u8),
            5 => drop(input.drain(at..end)),
            6 => {
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            7 => input.truncate(end),
            _ => {
                let other = &kept[below(next, kept.len())];
                let from = below(next, other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
        input.truncate(MAX_INPUT_BYTES);
    }
    input
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.trim().as_bytes();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hexadecimal digits");
        u8::from_str_radix(pair, 16).expect("hexadecimal digits")
    };
    digits.chunks(2).map(byte).collect()
}
