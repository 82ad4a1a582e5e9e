//! Cursors: leaf by leaf through a range, in either direction.

use crate::error::Result;

/// A resumable scan. It owns its tree and holds no page between calls.
pub struct LeafCursor {}

impl LeafCursor {
    /// The entries of the next leaf that lie in the range, as a private copy; none at the end. Never an empty copy.
    pub fn next_leaf(&mut self) -> Result<Option<&LeafEntries>> {
        unimplemented!()
    }

    /// Moves ahead (in scan direction) to `key`: entries before it are not delivered.
    pub fn seek(&mut self, key: &[u8]) {
        let _ = key;
        unimplemented!()
    }
}

/// Live entries of one leaf, ascending by key in both scan directions.
pub struct LeafEntries {
    _private: (),
}

impl LeafEntries {
    pub fn len(&self) -> usize {
        unimplemented!()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What all keys of the leaf begin with; a key is `prefix ++ suffix`.
    pub fn prefix(&self) -> &[u8] {
        unimplemented!()
    }

    /// Entry `i`'s key after the prefix.
    pub fn suffix(&self, i: usize) -> &[u8] {
        let _ = i;
        unimplemented!()
    }

    /// Clears `key` and writes entry `i`'s key to it.
    pub fn key_into(&self, i: usize, key: &mut Vec<u8>) {
        let _ = (i, key);
        unimplemented!()
    }

    /// Entry `i`'s value.
    pub fn value(&self, i: usize) -> &[u8] {
        let _ = i;
        unimplemented!()
    }
}
