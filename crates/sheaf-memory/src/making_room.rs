//! Whether a thread makes room for others: what it allocates for that is not asked for.

use std::cell::Cell;

thread_local! {
    static MAKES_ROOM: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn makes_room() -> bool {
    MAKES_ROOM.get()
}

/// Does `work`, which makes room.
pub(crate) fn making_room<T>(work: impl FnOnce() -> T) -> T {
    let before = MAKES_ROOM.replace(true);
    let done = work();
    MAKES_ROOM.set(before);
    done
}
