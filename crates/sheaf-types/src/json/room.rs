//! Room for documents and their texts while they grow.
//!
//! A text of 2 MB becomes a million values, and the builder has 20 bytes for each of them. So whatever may grow long
//! asks its statement first, and [`JsonError::Stopped`] ends the work where there is no room. The same error ends it
//! after KILL: work that goes from value to value looks at that now and then.

use std::cell::Cell;

use sheaf_memory::{LONG_VALUE_BYTES, has_room_for, shall_stop};

use super::JsonError;

/// Values between two looks at whether the statement shall stop.
const VALUES_BETWEEN_LOOKS: u32 = 1024;

/// Elements that a list has room for at first.
const LEAST_ELEMENTS: usize = 8;

/// Room for so many more elements. A list that grows long doubles, as lists do.
///
/// # Errors
/// `Stopped`.
pub(super) fn make_room<T>(list: &mut Vec<T>, more: usize) -> Result<(), JsonError> {
    grow_to(list, more, LEAST_ELEMENTS.max(2 * list.capacity()))
}

/// As [`make_room`], for the last elements.
///
/// # Errors
/// `Stopped`.
pub(super) fn make_last_room<T>(list: &mut Vec<T>, more: usize) -> Result<(), JsonError> {
    grow_to(list, more, 0)
}

fn grow_to<T>(list: &mut Vec<T>, more: usize, least: usize) -> Result<(), JsonError> {
    if more <= list.capacity() - list.len() {
        return Ok(());
    }
    let wanted = list.len().saturating_add(more).max(least);
    ask(wanted.saturating_mul(size_of::<T>()))?;
    list.reserve_exact(wanted - list.len());
    Ok(())
}

/// Room for so many more bytes of a text.
///
/// # Errors
/// `Stopped`.
pub(super) fn make_text_room(text: &mut String, more: usize) -> Result<(), JsonError> {
    if more <= text.capacity() - text.len() {
        return Ok(());
    }
    let wanted = text.len().saturating_add(more).max(2 * text.capacity());
    ask(wanted)?;
    text.reserve_exact(wanted - text.len());
    Ok(())
}

/// Asks for so many bytes.
///
/// # Errors
/// `Stopped`.
pub(super) fn ask(bytes: usize) -> Result<(), JsonError> {
    match bytes < LONG_VALUE_BYTES || has_room_for(bytes) {
        true => Ok(()),
        false => Err(JsonError::Stopped),
    }
}

/// Looks at whether the statement shall stop.
///
/// # Errors
/// `Stopped`.
pub(super) fn ask_to_go_on() -> Result<(), JsonError> {
    match shall_stop() {
        true => Err(JsonError::Stopped),
        false => Ok(()),
    }
}

/// Counts values, and looks now and then at whether the statement shall stop.
#[derive(Debug, Default)]
pub(super) struct Turns(Cell<u32>);

impl Turns {
    /// # Errors
    /// `Stopped`.
    #[inline]
    pub(super) fn next(&self) -> Result<(), JsonError> {
        let taken = self.0.get().wrapping_add(1);
        self.0.set(taken);
        match taken.is_multiple_of(VALUES_BETWEEN_LOOKS) {
            true => ask_to_go_on(),
            false => Ok(()),
        }
    }
}
