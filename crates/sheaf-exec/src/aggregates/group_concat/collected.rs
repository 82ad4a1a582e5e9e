//! The texts of a group so far, and their state for other threads and files.

use std::collections::HashSet;

use datafusion_common::Result;

use super::super::{ask_for, safe_point};
use super::CutResults;

/// A row's part of a result.
pub(super) struct Part<'a> {
    /// A short one.
    pub(super) distinct_key: Option<Box<[u8]>>,
    pub(super) order_key: &'a [u8],
    pub(super) text: &'a [u8],
}

/// The heads of an entry's two blocks of memory or three, which the allocator rounds up.
const ENTRY_BYTES: usize = 32;
/// The lengths in the state of an entry, and whether it has a distinct key; those before the first entry are fewer.
const COUNTS_BYTES: usize = 16;

/// What a distinct key takes besides its bytes: its place in the set, and the head of its block of memory.
const DISTINCT_BYTES: usize = 48;

#[derive(Debug)]
pub(super) struct Entry {
    order_key: Vec<u8>,
    /// With DISTINCT; a short one.
    distinct_key: Option<Box<[u8]>>,
    text: Vec<u8>,
}

/// The texts of a group so far.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// They are byte strings.
    pub(super) is_binary: bool,
    /// Texts without keys, with separators between them, as they came. It is one byte longer than the maximum if there
    /// were more.
    pub(super) joined: Vec<u8>,
    /// How many of them there are.
    pub(super) joined_texts: u64,
    /// Texts with keys.
    pub(super) texts: Vec<Entry>,
    pub(super) distinct: HashSet<Box<[u8]>>,
    pub(super) separator: String,
    pub(super) max_bytes: usize,
    /// Of the entries and the distinct keys.
    pub(super) bytes: usize,
    /// Of the texts with keys and the separators between them.
    joined_bytes: usize,
    /// When that exceeds it, texts that are not needed are forgotten.
    forget_at_bytes: usize,
    /// There is an ORDER BY.
    is_ordered: bool,
    /// No text is needed any more: without ORDER BY the first ones are the result.
    is_full: bool,
}

/// What texts of so many bytes may become before those that are not needed are forgotten: that takes a sort.
fn with_room(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 2)
}

/// Writes bytes with their length before them.
fn push_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take_counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let bytes = after.get(..length)?;
    *rest = &after[length..];
    Some(bytes)
}

impl Collected {
    pub(super) fn new(is_binary: bool) -> Collected {
        Collected {
            is_binary,
            ..Collected::default()
        }
    }

    /// Adds a text that is there once, or with a short distinct key.
    ///
    /// # Errors
    /// As those of [`safe_point`].
    pub(super) fn add(
        &mut self,
        distinct_key: Option<Box<[u8]>>,
        order_key: &[u8],
        text: &[u8],
    ) -> Result<()> {
        if self.is_full {
            return Ok(());
        }
        if let Some(key) = &distinct_key {
            if !self.distinct.insert(key.clone()) {
                return Ok(());
            }
            self.bytes += key.len() + DISTINCT_BYTES;
        } else if order_key.is_empty() && self.texts.is_empty() {
            return self.append(text, 1);
        }
        let entry = Entry {
            order_key: order_key.to_vec(),
            distinct_key,
            text: text.to_vec(),
        };
        self.bytes += entry.bytes();
        self.joined_bytes += text.len() + self.separator.len();
        self.texts.push(entry);
        self.is_ordered |= !order_key.is_empty();
        if !self.is_ordered {
            self.is_full = self.joined_bytes - self.separator.len() > self.max_bytes;
        } else if self.joined_bytes > self.forget_at_bytes.max(with_room(self.max_bytes)) {
            self.forget_rest();
        }
        Ok(())
    }

    /// Adds so many texts that were put together, behind the others.
    ///
    /// # Errors
    /// As those of [`safe_point`].
    pub(super) fn append(&mut self, text: &[u8], texts: u64) -> Result<()> {
        let separator = match self.joined_texts {
            0 => "",
            _ => &self.separator,
        };
        let most = self.max_bytes.saturating_add(1);
        let wanted = self.joined.len() + separator.len() + text.len();
        if wanted > self.joined.capacity() {
            let capacity = wanted.max(2 * self.joined.capacity()).min(most);
            ask_for(capacity)?;
            self.joined.reserve_exact(capacity - self.joined.len());
        }
        for part in [separator.as_bytes(), text] {
            let bytes = part.len().min(most - self.joined.len());
            self.joined.extend_from_slice(&part[..bytes]);
        }
        self.joined_texts += texts;
        self.is_full = self.joined.len() > self.max_bytes;
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.joined_texts == 0
    }

    /// Forgets the texts behind the maximum length.
    fn forget_rest(&mut self) {
        self.sort();
        let mut joined = 0;
        let needed = self.texts.iter().position(|entry| {
            joined += entry.text.len();
            let is_enough = joined > self.max_bytes;
            joined += self.separator.len();
            is_enough
        });
        let Some(last) = needed else {
            return;
        };
        for forgotten in self.texts.drain(last + 1..) {
            self.bytes -= forgotten.bytes();
        }
        self.texts.shrink_to(2 * self.texts.len());
        self.joined_bytes = joined;
        self.forget_at_bytes = with_room(joined);
    }

    /// How long the result is, at most.
    pub(super) fn most_bytes(&self) -> usize {
        (self.joined.len() + self.joined_bytes).min(self.max_bytes)
    }

    /// The texts without keys, cut.
    pub(super) fn take_joined(&mut self, cut: &CutResults) -> Result<Vec<u8>> {
        let mut joined = std::mem::take(&mut self.joined);
        let is_cut = joined.len() > self.max_bytes;
        if is_cut {
            joined.truncate(self.end_of_cut(&joined, self.max_bytes));
        }
        cut.count(std::mem::take(&mut self.joined_texts), is_cut)?;
        Ok(joined)
    }

    /// Writes what fits into the maximum length. Texts leave one by one.
    pub(super) fn join_into(&mut self, out: &mut Vec<u8>, cut: &CutResults) -> Result<()> {
        if self.joined_texts > 0 {
            out.extend_from_slice(&self.take_joined(cut)?);
            return Ok(());
        }
        self.sort();
        self.distinct = HashSet::new();
        self.bytes = 0;
        let start = out.len();
        let (mut rows, mut is_cut) = (0, false);
        for Entry { text, .. } in std::mem::take(&mut self.texts) {
            let separator = if rows > 0 {
                self.separator.as_bytes()
            } else {
                &[]
            };
            rows += 1;
            is_cut = !self.push_cut(out, start, separator) || !self.push_cut(out, start, &text);
            if is_cut {
                break;
            }
            safe_point()?;
        }
        cut.count(rows, is_cut)
    }

    /// Writes as much of a part as fits. False: that was not all of it.
    fn push_cut(&self, out: &mut Vec<u8>, start: usize, part: &[u8]) -> bool {
        let room = self.max_bytes.saturating_sub(out.len() - start);
        let fits = part.len() <= room;
        let end = if fits {
            part.len()
        } else {
            self.end_of_cut(part, room)
        };
        out.extend_from_slice(&part[..end]);
        fits
    }

    /// Where a text that is longer than `room` ends: between two characters.
    fn end_of_cut(&self, text: &[u8], room: usize) -> usize {
        // No byte of UTF-8 but a character's first stands behind the cut.
        let is_inside = |end: &usize| !self.is_binary && text[*end] & 0xc0 == 0x80;
        (0..=room).rev().find(|end| !is_inside(end)).unwrap_or(0)
    }

    /// Stable: equal keys keep the order of arrival.
    fn sort(&mut self) {
        self.texts.sort_by(|a, b| a.order_key.cmp(&b.order_key));
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        let distinct = self.distinct_key.as_ref().map_or(0, |key| key.len());
        self.order_key.len() + distinct + self.text.len()
    }
}

/// The state of a group is what it has of its texts, behind the separator, the maximum length, and how many texts were
/// put together.
pub(super) fn push_header(
    state: &mut Vec<u8>,
    separator: &str,
    max_bytes: usize,
    joined_texts: u64,
) {
    push_counted(state, separator.as_bytes());
    push_counted(state, &(max_bytes as u64).to_le_bytes());
    push_counted(state, &joined_texts.to_le_bytes());
}

pub(super) fn push_part(
    state: &mut Vec<u8>,
    distinct_key: Option<&[u8]>,
    order_key: &[u8],
    text: &[u8],
) {
    push_counted(state, order_key);
    match distinct_key {
        Some(key) => {
            state.push(1);
            push_counted(state, key);
        }
        None => state.push(0),
    }
    push_counted(state, text);
}

impl Collected {
    pub(super) fn add_part(&mut self, part: Part<'_>) -> Result<()> {
        self.add(part.distinct_key, part.order_key, part.text)?;
        safe_point()
    }

    pub(super) fn set_limits(&mut self, separator: &str, max_bytes: usize) {
        if self.max_bytes != max_bytes || self.separator != separator {
            self.separator = separator.to_string();
            self.max_bytes = max_bytes;
        }
    }

    pub(super) fn state_bytes(&self) -> usize {
        let entries = self.texts.iter().map(|entry| entry.bytes() + COUNTS_BYTES);
        self.separator.len() + self.joined.len() + 3 * COUNTS_BYTES + entries.sum::<usize>()
    }

    /// Writes its state. The texts leave one by one.
    pub(super) fn push_state(&mut self, state: &mut Vec<u8>) -> Result<()> {
        push_header(state, &self.separator, self.max_bytes, self.joined_texts);
        if self.joined_texts > 0 {
            push_part(state, None, &[], &std::mem::take(&mut self.joined));
            self.joined_texts = 0;
        }
        self.distinct = HashSet::new();
        self.bytes = 0;
        for entry in std::mem::take(&mut self.texts) {
            let key = entry.distinct_key.as_deref();
            push_part(state, key, &entry.order_key, &entry.text);
            safe_point()?;
        }
        Ok(())
    }

    /// Adds what another part of the group has collected.
    pub(super) fn merge(&mut self, mut state: &[u8]) -> Result<()> {
        let rest = &mut state;
        let corrupt =
            || datafusion_common::exec_datafusion_err!("a state of $group_concat is cut short");
        let separator = take_counted(rest).ok_or_else(corrupt)?;
        let limit = take_counted(rest).ok_or_else(corrupt)?;
        let joined = take_counted(rest).ok_or_else(corrupt)?;
        let mut joined_texts = joined.try_into().map_or(0, u64::from_le_bytes);
        if !rest.is_empty() {
            let max_bytes = limit.try_into().map_or(0, u64::from_le_bytes) as usize;
            self.set_limits(&String::from_utf8_lossy(separator), max_bytes);
        }
        while !rest.is_empty() {
            let order_key = take_counted(rest).ok_or_else(corrupt)?;
            let (has_key, after) = rest.split_first().ok_or_else(corrupt)?;
            *rest = after;
            let distinct_key = match *has_key {
                1 => Some(take_counted(rest).ok_or_else(corrupt)?),
                _ => None,
            };
            let text = take_counted(rest).ok_or_else(corrupt)?;
            if joined_texts > 0 && !self.is_full {
                self.append(text, std::mem::take(&mut joined_texts))?;
            } else if joined_texts == 0 {
                self.add_part(Part {
                    distinct_key: distinct_key.map(Box::from),
                    order_key,
                    text,
                })?;
            }
        }
        Ok(())
    }

    /// The result; None: there was no text.
    pub(super) fn result(&mut self, cut: &CutResults) -> Result<Option<Vec<u8>>> {
        if self.joined_texts > 0 {
            return self.take_joined(cut).map(Some);
        }
        if self.is_empty() {
            return Ok(None);
        }
        ask_for(self.most_bytes())?;
        let mut joined = Vec::with_capacity(self.most_bytes());
        self.join_into(&mut joined, cut)?;
        Ok(Some(joined))
    }

    /// What it holds, or what it takes to hand that on if that is more: the texts leave one by one.
    pub(super) fn size(&self) -> usize {
        let texts = self.texts.capacity() * size_of::<Entry>() + self.texts.len() * ENTRY_BYTES;
        let texts = texts.max(self.joined_bytes.min(self.max_bytes));
        size_of_val(self) + self.bytes + texts + self.joined.capacity()
    }
}
