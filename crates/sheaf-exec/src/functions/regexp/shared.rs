//! Compiled patterns that the calls of all statements share.
//!
//! To compile a pattern takes as long as to search a hundred short texts. A direct plan calls a kernel for each row,
//! and an application sends the same pattern again and again. So the last ones are kept:
//!
//! ```text
//!   call -> its own patterns --miss--> patterns of the process --miss--> compile
//! ```
//!
//! When there are too many the cache begins anew.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use regex::Regex;

use super::{GROWTH, Modes};

/// Patterns that are kept, at most.
const MAX_PATTERNS: usize = 128;

/// What they may take together, in bytes, once they have grown.
const MAX_BYTES: usize = 8 << 20;

/// What one of them may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The longest text of one that is kept.
const MAX_TEXT_BYTES: usize = 1 << 10;

/// See the module's comment.
#[derive(Default)]
pub(super) struct SharedPatterns {
    /// By their modes and their texts.
    compiled: HashMap<Modes, HashMap<String, Arc<Regex>>>,
    patterns: usize,
    bytes: usize,
}

static SHARED: RwLock<Option<SharedPatterns>> = RwLock::new(None);

/// The pattern of a text, if it is kept.
pub(super) fn find(text: &str, modes: Modes) -> Option<Arc<Regex>> {
    let shared = SHARED.read().unwrap_or_else(PoisonError::into_inner);
    shared.as_ref()?.find(text, modes)
}

/// Keeps a pattern, which has taken so many bytes when it was compiled.
pub(super) fn keep(text: &str, modes: Modes, (pattern, bytes): (&Arc<Regex>, usize)) {
    let bytes = bytes.saturating_mul(GROWTH);
    if bytes > MAX_PATTERN_BYTES || text.len() > MAX_TEXT_BYTES {
        return;
    }
    let mut shared = SHARED.write().unwrap_or_else(PoisonError::into_inner);
    let shared = shared.get_or_insert_with(SharedPatterns::default);
    shared.keep(text, modes, (pattern, bytes));
}

impl SharedPatterns {
    fn find(&self, text: &str, modes: Modes) -> Option<Arc<Regex>> {
        self.compiled.get(&modes)?.get(text).cloned()
    }

    fn keep(&mut self, text: &str, modes: Modes, (pattern, bytes): (&Arc<Regex>, usize)) {
        if self.patterns == MAX_PATTERNS || self.bytes + bytes > MAX_BYTES {
            *self = SharedPatterns::default();
        }
        let of_modes = self.compiled.entry(modes).or_default();
        if of_modes.contains_key(text) {
            return;
        }
        of_modes.insert(text.to_string(), Arc::clone(pattern));
        self.patterns += 1;
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(insensitive: bool) -> Modes {
        Modes {
            insensitive,
            lines: false,
            dot_all: false,
        }
    }

    #[test]
    fn patterns_are_kept_by_text_and_modes_up_to_a_limit() {
        let mut shared = SharedPatterns::default();
        let pattern = Arc::new(Regex::new("a").unwrap());
        shared.keep("a", modes(false), (&pattern, 10));
        assert!(shared.find("a", modes(false)).is_some());
        assert!(shared.find("a", modes(true)).is_none());
        assert!(shared.find("b", modes(false)).is_none());
        for number in 1..MAX_PATTERNS {
            shared.keep(&format!("a{number}"), modes(false), (&pattern, 10));
        }
        assert!(shared.find("a", modes(false)).is_some());
        shared.keep("one more", modes(false), (&pattern, 10));
        assert!(shared.find("a", modes(false)).is_none());
        assert_eq!((shared.patterns, shared.bytes), (1, 10));
        shared.keep("large", modes(false), (&pattern, MAX_BYTES));
        assert!(shared.find("one more", modes(false)).is_none());
        assert!(shared.find("large", modes(false)).is_some());
    }
}
