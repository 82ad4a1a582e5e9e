//! [`EntryBlock`]: entries of an index, laid out for work column by column.
//!
//! Leaves keep the common prefix of their keys apart. A part of a key starts where the one before it ends, which
//! depends on the entry as soon as a part may be NULL or is a string. A block holds whole keys in one buffer. It also
//! holds, for the parts that are read, where each starts in each entry. These positions are found once, part after
//! part, only as far as needed.

use std::ops::Range;

use sheaf_storage::LeafEntries;
use sheaf_table::{KeyLayout, PartKind, TableError, sort_key_end};

use crate::error::Result;
use crate::keys::byte_strings::ByteStrings;

/// Entries of a leaf or of several, with the tag of the key that asked for them (0 in a scan).
#[derive(Default)]
pub(crate) struct EntryBlock {
    pub(crate) keys: ByteStrings,
    pub(crate) payloads: ByteStrings,
    pub(crate) tags: Vec<u32>,
    /// `starts[p][i]`: where part `p` starts in entry `i`. Filled for the parts located so far.
    starts: Vec<Vec<u16>>,
    located: usize,
}

impl EntryBlock {
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.payloads.clear();
        self.tags.clear();
        self.located = 0;
    }

    /// Appends a run of a leaf's entries.
    pub(crate) fn push_leaf(&mut self, leaf: &LeafEntries, run: Range<usize>, tag: u32) {
        self.located = 0;
        let prefix = leaf.prefix();
        for entry in run {
            self.keys.push_pieces([prefix, leaf.suffix(entry)]);
            self.payloads.push(leaf.value(entry));
        }
        self.tags.resize(self.keys.len(), tag);
    }

    /// Appends one entry of another block.
    pub(crate) fn push_from(&mut self, other: &EntryBlock, entry: usize) {
        self.located = 0;
        self.keys.push(other.keys.get(entry));
        self.payloads.push(other.payloads.get(entry));
        self.tags.push(other.tags[entry]);
    }

    /// Finds where all parts up to and including `part` start and end in the selected entries. Entries that are not
    /// selected now must not be selected later.
    ///
    /// # Errors
    /// `Corrupt` if a key ends within a part.
    pub(crate) fn locate(
        &mut self,
        layout: &KeyLayout,
        part: usize,
        selection: &[u32],
    ) -> Result<()> {
        if self.located == 0 {
            self.starts.resize_with(layout.parts.len() + 1, Vec::new);
            self.starts[0].clear();
            self.starts[0].resize(self.keys.len(), 0);
            self.located = 1;
        }
        while self.located <= part + 1 {
            let (before, after) = self.starts.split_at_mut(self.located);
            let ends = &mut after[0];
            ends.resize(self.keys.len(), 0);
            let starts = &before[self.located - 1];
            locate_ends(
                layout,
                self.located - 1,
                &self.keys,
                selection,
                starts,
                ends,
            )?;
            self.located += 1;
        }
        Ok(())
    }

    /// Where a located part starts in each entry.
    pub(crate) fn starts(&self, part: usize) -> &[u16] {
        debug_assert!(part < self.located, "locate() comes first");
        &self.starts[part]
    }

    /// The bytes of a located part, NULL byte included.
    #[inline]
    pub(crate) fn part(&self, part: usize, entry: usize) -> &[u8] {
        &self.keys.get(entry)
            [usize::from(self.starts[part][entry])..usize::from(self.starts[part + 1][entry])]
    }
}

/// Puts into `ends` where part `part` ends in each selected key, given where it starts.
fn locate_ends(
    layout: &KeyLayout,
    part: usize,
    keys: &ByteStrings,
    selection: &[u32],
    starts: &[u16],
    ends: &mut [u16],
) -> Result<()> {
    let description = &layout.parts[part];
    let null_byte = usize::from(description.nullable);
    let ends_with_zero =
        matches!(description.kind, PartKind::Text(collation) if !collation.pads_spaces());
    let mut is_short = false;
    for &entry in selection {
        let entry = entry as usize;
        let (key, start) = (keys.get(entry), usize::from(starts[entry]));
        let end = match description.fixed_width {
            _ if description.nullable && key.get(start) == Some(&0) => start + 1,
            Some(width) => start + width,
            None if ends_with_zero => {
                sort_key_end(key, start + null_byte).ok_or_else(short_key)? + 1
            }
            None => start + layout.part_length(part, key.get(start..).unwrap_or_default())?,
        };
        is_short |= end > key.len();
        ends[entry] = end as u16;
    }
    if is_short { Err(short_key()) } else { Ok(()) }
}

fn short_key() -> crate::error::AccessError {
    TableError::Corrupt {
        object: "index entry".to_string(),
        detail: "a key ends within one of its parts".to_string(),
    }
    .into()
}

/// How the primary key is read out of the entries of a secondary index.
pub(crate) enum PrimaryKeySource {
    /// It is the last so many bytes of each key.
    Tail(usize),
    /// It has to be put together from the parts.
    Parts,
}

impl PrimaryKeySource {
    pub(crate) fn new(secondary: &KeyLayout, clustered: &KeyLayout) -> Self {
        let appended = &secondary.parts[secondary.declared..];
        let tail = fixed_key_bytes(clustered, clustered.parts.len());
        match tail {
            Some(bytes) if appended.len() == clustered.parts.len() => Self::Tail(bytes),
            _ => Self::Parts,
        }
    }

    /// The clustered key that `key` points to; `scratch` holds it where it is not one slice of the key.
    #[inline]
    pub(crate) fn primary_key<'a>(
        &self,
        layout: &KeyLayout,
        key: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        match self {
            Self::Tail(bytes) => key
                .len()
                .checked_sub(*bytes)
                .map(|start| &key[start..])
                .ok_or_else(short_key),
            Self::Parts => {
                scratch.clear();
                layout.primary_key_into(key, scratch)?;
                Ok(scratch)
            }
        }
    }
}

/// Length of the first `parts` parts of every key, if it is always the same.
pub(crate) fn fixed_key_bytes(layout: &KeyLayout, parts: usize) -> Option<usize> {
    layout.parts[..parts]
        .iter()
        .try_fold(0, |sum, part| match part.fixed_width {
            Some(width) if !part.nullable => Some(sum + width),
            _ => None,
        })
}

/// Width of a part's value where it is a fixed number of at most 16 bytes, without its NULL byte.
pub(crate) fn value_width(kind: PartKind) -> Option<usize> {
    match kind {
        PartKind::Integer { width, .. } | PartKind::Decimal { width, .. } => {
            Some(usize::from(width))
        }
        PartKind::Float => Some(4),
        PartKind::Double | PartKind::RowId => Some(8),
        PartKind::Text(_) | PartKind::Bytes => None,
    }
}
