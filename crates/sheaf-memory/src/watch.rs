//! A thread that keeps the process within its limit when nobody else looks.
//!
//! A statement that takes much looks at the process itself, at its safe points. Hundreds of clients with small
//! statements take as much together, and none of them ever does.

use std::sync::Once;
use std::thread;
use std::time::Duration;

use crate::process::{self, Fullness};
use crate::statement::stop_for;

/// How often the thread looks.
const WATCH: Duration = Duration::from_millis(100);
/// The same when the process has nearly as much as it may.
const CLOSE_WATCH: Duration = Duration::from_millis(10);

/// Sets what the process may take, and keeps it within that.
pub fn keep_within(bytes: usize) {
    static WATCHED: Once = Once::new();
    process::set_limit(bytes);
    WATCHED.call_once(|| {
        let watcher = thread::Builder::new().name("memory".into());
        // Without it, statements look for themselves.
        drop(watcher.spawn(watch));
    });
}

/// Caches give back what is over the limit. The statement that holds most is stopped near the end of the tolerance.
fn watch() {
    loop {
        process::count_threads();
        stop_for(match process::fullness() {
            Fullness::TooFull(bytes) => bytes,
            Fullness::Bearable | Fullness::Writing => 0,
        });
        let is_close = process::was_close();
        thread::sleep(if is_close { CLOSE_WATCH } else { WATCH });
    }
}
