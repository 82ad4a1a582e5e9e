//! Whether a thread makes room for others, or others wait for a lock that it holds: what it allocates then is not asked
//! for. To ask takes locks, and may take a tenth of a second.

use std::cell::Cell;

thread_local! {
    static MAKES_ROOM: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn makes_room() -> bool {
    MAKES_ROOM.get()
}

/// Ends the work, also by a panic.
struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        MAKES_ROOM.set(self.0);
    }
}

/// Does `work`, which makes room or has to be short.
pub fn making_room<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(MAKES_ROOM.replace(true));
    work()
}
