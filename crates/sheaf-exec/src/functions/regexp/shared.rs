//! Compiled patterns that the calls of all statements share.
//!
//! To compile a pattern takes as long as to search a hundred short texts. A direct plan calls a kernel for each row,
//! and an application sends the same pattern again and again. So the last ones are kept:
//!
//! ```text
//!   call -> its own patterns --miss--> patterns of the process --miss--> those of the statement --miss--> compile
//! ```
//!
//! When there are too many the cache begins anew. A pattern that is too large for all is kept until its statement ends.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use regex::Regex;

use super::backtrack::Backtracking;
use super::{GROWTH, Modes};

/// Patterns that are kept, at most.
const MAX_PATTERNS: usize = 128;

/// What those of the process may take together, in bytes, once they have grown.
const MAX_BYTES: usize = 8 << 20;

/// What one of them may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The longest text of one of them.
const MAX_TEXT_BYTES: usize = 1 << 10;

/// What those of a statement may take together. A larger one is kept alone.
const MAX_STATEMENT_BYTES: usize = 64 << 20;

/// What compiling a pattern has led to.
#[derive(Clone)]
pub(super) enum Compiled {
    /// The automata, and the text that they were made of.
    Linear(Arc<Regex>, Arc<str>),
    Backtracking(Arc<Backtracking>),
}

impl Compiled {
    /// What it takes once it has grown, of what it took when it was compiled.
    fn grown(&self, bytes: usize) -> usize {
        match self {
            Compiled::Linear(..) => bytes.saturating_mul(GROWTH),
            Compiled::Backtracking(_) => bytes,
        }
    }
}

/// See the module's comment.
#[derive(Default)]
pub(super) struct SharedPatterns {
    /// By their modes and their texts.
    compiled: HashMap<Modes, HashMap<String, Compiled>>,
    patterns: usize,
    bytes: usize,
}

static SHARED: RwLock<Option<SharedPatterns>> = RwLock::new(None);

/// The pattern of a text, if it is kept.
pub(super) fn find(text: &str, modes: Modes) -> Option<Compiled> {
    let shared = SHARED.read().unwrap_or_else(PoisonError::into_inner);
    let known = shared.as_ref().and_then(|shared| shared.find(text, modes));
    drop(shared);
    known.or_else(|| {
        let shared = of_statement()?;
        let shared = shared.read().unwrap_or_else(PoisonError::into_inner);
        shared.find(text, modes)
    })
}

/// Keeps a pattern, which has taken so many bytes when it was compiled.
pub(super) fn keep(text: &str, modes: Modes, (pattern, bytes): (Compiled, usize)) {
    let bytes = pattern.grown(bytes);
    if bytes <= MAX_PATTERN_BYTES && text.len() <= MAX_TEXT_BYTES {
        let mut shared = SHARED.write().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.get_or_insert_with(SharedPatterns::default);
        shared.keep(text, modes, (pattern, bytes), MAX_BYTES);
    } else if let Some(shared) = of_statement() {
        let mut shared = shared.write().unwrap_or_else(PoisonError::into_inner);
        shared.keep(text, modes, (pattern, bytes), MAX_STATEMENT_BYTES);
    }
}

/// The patterns of the statement that the thread works for.
fn of_statement() -> Option<Arc<RwLock<SharedPatterns>>> {
    sheaf_memory::current().map(|statement| statement.shared.get())
}

impl SharedPatterns {
    fn find(&self, text: &str, modes: Modes) -> Option<Compiled> {
        self.compiled.get(&modes)?.get(text).cloned()
    }

    fn keep(
        &mut self,
        text: &str,
        modes: Modes,
        (pattern, bytes): (Compiled, usize),
        most_bytes: usize,
    ) {
        if self.patterns == MAX_PATTERNS || self.bytes.saturating_add(bytes) > most_bytes {
            *self = SharedPatterns::default();
        }
        let of_modes = self.compiled.entry(modes).or_default();
        if of_modes.contains_key(text) {
            return;
        }
        of_modes.insert(text.to_string(), pattern);
        self.patterns += 1;
        self.bytes = self.bytes.saturating_add(bytes);
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
            unix_lines: false,
        }
    }

    #[test]
    fn patterns_are_kept_by_text_and_modes_up_to_a_limit() {
        let mut shared = SharedPatterns::default();
        let pattern = Compiled::Linear(Arc::new(Regex::new("a").unwrap()), "a".into());
        shared.keep("a", modes(false), (pattern.clone(), 10), MAX_BYTES);
        assert!(shared.find("a", modes(false)).is_some());
        assert!(shared.find("a", modes(true)).is_none());
        assert!(shared.find("b", modes(false)).is_none());
        for number in 1..MAX_PATTERNS {
            shared.keep(
                &format!("a{number}"),
                modes(false),
                (pattern.clone(), 10),
                MAX_BYTES,
            );
        }
        assert!(shared.find("a", modes(false)).is_some());
        shared.keep("one more", modes(false), (pattern.clone(), 10), MAX_BYTES);
        assert!(shared.find("a", modes(false)).is_none());
        assert_eq!((shared.patterns, shared.bytes), (1, 10));
        shared.keep(
            "large",
            modes(false),
            (pattern.clone(), MAX_BYTES),
            MAX_BYTES,
        );
        assert!(shared.find("one more", modes(false)).is_none());
        assert!(shared.find("large", modes(false)).is_some());
    }

    /// Beside the patterns of the process, which know it not.
    #[test]
    fn a_large_pattern_is_kept_until_its_statement_ends() {
        let statement = sheaf_memory::StatementMemory::new(Arc::default());
        let pattern = Compiled::Linear(Arc::new(Regex::new("a").unwrap()), "a".into());
        let large = (pattern, MAX_PATTERN_BYTES);
        statement.during(|| {
            keep("large", modes(true), large);
            assert!(find("large", modes(true)).is_some());
        });
        assert!(find("large", modes(true)).is_none());
        statement.end();
        assert!(statement.during(|| find("large", modes(true))).is_none());
    }
}
