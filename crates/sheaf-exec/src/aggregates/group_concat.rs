//! `GROUP_CONCAT([DISTINCT] text ORDER BY ... SEPARATOR ...)`.
//!
//! The pass over the syntax tree writes it as `$group_concat(text, separator, maximum length, distinct key, order
//! key)`. Both keys are byte strings whose memcmp order is the order asked for, or NULL literals. So the operator above
//! sorts nothing, and the function keeps (order key, text) until the group is complete. It drops what comes after the
//! maximum length, so it keeps little, however many rows there are. Only keys of DISTINCT stay, long ones as their
//! digests. Texts without either key are put together as they come.
//!
//! A result that was cut is noted with the number of the row in which that happened ([`GroupConcat::noting`]). That
//! counts the rows of all groups that went into results so far.
//!
//! Where long texts do not fit into memory, the states of all groups are no help. Those that have spilled are read in
//! batches of whole groups, one from each file, and every one of them is as long as its texts. So the function refuses
//! to go on when such states have left it ([`LONG_STATE_BYTES`]). The plan that takes the place of this one has the
//! rows of a group one behind the other, and one group in memory.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::NullBufferBuilder;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, StringViewArray, make_view,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{DataFusionError, Result, ScalarValue, exec_err, resources_datafusion_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::{result_field, safe_point};
use crate::functions::EvaluationError;
use crate::functions::limits::OversizedResults;
use crate::functions::types::{field, text_field};
use crate::short_key::short_key;

/// The function's name.
pub const NAME: &str = "$group_concat";
/// Results that are shorter share a block of memory of this size.
const BLOCK_BYTES: usize = 256 << 10;
/// States that are longer, on average, are not read from files: each batch would have many of them.
const LONG_STATE_BYTES: usize = 256;
/// The heads of an entry's two blocks of memory or three, which the allocator rounds up.
const ENTRY_BYTES: usize = 32;
/// The lengths in the state of an entry, and whether it has a distinct key; those before the first entry are fewer.
const COUNTS_BYTES: usize = 16;

/// What a distinct key takes besides its bytes: its place in the set, and the head of its block of memory.
const DISTINCT_BYTES: usize = 48;
#[derive(Debug)]
pub struct GroupConcat {
    signature: Signature,
    cut: CutResults,
}

impl PartialEq for GroupConcat {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cut.counted, &other.cut.counted)
    }
}

impl Eq for GroupConcat {}

impl Hash for GroupConcat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.cut.counted).hash(state);
    }
}

impl GroupConcat {
    pub fn new() -> GroupConcat {
        GroupConcat {
            signature: Signature::user_defined(Volatility::Immutable),
            cut: CutResults::default(),
        }
    }

    /// The function in a plan of a session that wants to know which results were cut.
    pub fn noting(oversized: OversizedResults) -> GroupConcat {
        GroupConcat {
            cut: CutResults {
                noted: Some(oversized),
                ..CutResults::default()
            },
            ..GroupConcat::new()
        }
    }
}

/// Where it is noted that a result was cut.
#[derive(Clone, Debug, Default)]
struct CutResults {
    noted: Option<OversizedResults>,
    counted: Arc<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    /// The session's statement, whose rows these are.
    statement: AtomicU64,
    /// Rows in its results so far.
    rows: AtomicU64,
}

impl CutResults {
    /// A result is made of so many rows, the last of which may have been cut.
    ///
    /// # Errors
    /// 1260 where that is refused.
    fn count(&self, rows: u64, is_cut: bool) -> Result<()> {
        let Some(noted) = &self.noted else {
            return Ok(());
        };
        let counted = &self.counted;
        if counted.statement.swap(noted.statement(), Ordering::Relaxed) != noted.statement() {
            counted.rows.store(0, Ordering::Relaxed);
        }
        let rows = counted.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        match is_cut {
            true => noted.note(EvaluationError::cut_by_group_concat(rows)),
            false => Ok(()),
        }
    }
}

impl Default for GroupConcat {
    fn default() -> Self {
        Self::new()
    }
}

impl AggregateUDFImpl for GroupConcat {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(vec![
            joined_type(arg_types),
            DataType::Utf8View,
            DataType::Int64,
            DataType::Binary,
            DataType::Binary,
        ])
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(joined_type(arg_types))
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        let text = &arg_fields[..1];
        let field = match text[0].data_type() {
            DataType::Binary => field::bytes(),
            _ => text_field(text, "group_concat")?,
        };
        Ok(result_field(self.name(), &field))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Alone {
            collected: Collected {
                is_binary: *args.return_field.data_type() == DataType::Binary,
                ..Collected::default()
            },
            cut: self.cut.clone(),
        }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups {
            is_binary: *args.return_field.data_type() == DataType::Binary,
            cut: self.cut.clone(),
            ..Groups::default()
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(
            format!("{}[collected]", args.name),
            DataType::Binary,
            true,
        ))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// Texts make a text, byte strings a byte string.
fn joined_type(arg_types: &[DataType]) -> DataType {
    match arg_types.first() {
        Some(DataType::Binary) => DataType::Binary,
        _ => DataType::Utf8View,
    }
}

#[derive(Debug)]
struct Entry {
    order_key: Vec<u8>,
    /// With DISTINCT; a short one.
    distinct_key: Option<Box<[u8]>>,
    text: Vec<u8>,
}

/// The texts of a group so far.
#[derive(Debug, Default)]
struct Collected {
    /// They are byte strings.
    is_binary: bool,
    /// Texts without keys, with separators between them, as they came. It is one byte longer than the maximum if there
    /// were more.
    joined: Vec<u8>,
    /// How many of them there are.
    joined_texts: u64,
    /// Texts with keys.
    texts: Vec<Entry>,
    distinct: HashSet<Box<[u8]>>,
    separator: String,
    max_bytes: usize,
    /// Of the entries and the distinct keys.
    bytes: usize,
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
    /// Adds a text that is there once, or with a short distinct key.
    fn add(&mut self, distinct_key: Option<Box<[u8]>>, order_key: &[u8], text: &[u8]) {
        if self.is_full {
            return;
        }
        if let Some(key) = &distinct_key {
            if !self.distinct.insert(key.clone()) {
                return;
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
    }

    /// Adds so many texts that were put together, behind the others.
    fn append(&mut self, text: &[u8], texts: u64) {
        let separator = match self.joined_texts {
            0 => "",
            _ => &self.separator,
        };
        let most = self.max_bytes.saturating_add(1);
        let wanted = self.joined.len() + separator.len() + text.len();
        if wanted > self.joined.capacity() {
            let capacity = wanted.max(2 * self.joined.capacity()).min(most);
            self.joined.reserve_exact(capacity - self.joined.len());
        }
        for part in [separator.as_bytes(), text] {
            let bytes = part.len().min(most - self.joined.len());
            self.joined.extend_from_slice(&part[..bytes]);
        }
        self.joined_texts += texts;
        self.is_full = self.joined.len() > self.max_bytes;
    }

    fn is_empty(&self) -> bool {
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
    fn most_bytes(&self) -> usize {
        (self.joined.len() + self.joined_bytes).min(self.max_bytes)
    }

    /// The texts without keys, cut.
    fn take_joined(&mut self, cut: &CutResults) -> Result<Vec<u8>> {
        let mut joined = std::mem::take(&mut self.joined);
        let is_cut = joined.len() > self.max_bytes;
        if is_cut {
            joined.truncate(self.end_of_cut(&joined, self.max_bytes));
        }
        cut.count(std::mem::take(&mut self.joined_texts), is_cut)?;
        Ok(joined)
    }

    /// Writes what fits into the maximum length. Texts leave one by one.
    fn join_into(&mut self, out: &mut Vec<u8>, cut: &CutResults) -> Result<()> {
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

/// The arguments of a batch.
struct Arguments<'a> {
    texts: &'a ArrayRef,
    /// The texts are byte strings.
    byte_strings: Option<&'a BinaryArray>,
    separator: &'a str,
    max_bytes: usize,
    distinct_keys: &'a BinaryArray,
    order_keys: &'a BinaryArray,
}

/// A row's part of a result.
struct Part<'a> {
    /// A short one.
    distinct_key: Option<Box<[u8]>>,
    order_key: &'a [u8],
    text: &'a [u8],
}

impl<'a> Arguments<'a> {
    fn of(values: &'a [ArrayRef], is_binary: bool) -> Result<Arguments<'a>> {
        let [texts, separators, limits, distinct_keys, order_keys] = values else {
            return exec_err!("$group_concat takes five arguments");
        };
        // They are constants.
        let (separators, limits) = (
            separators.as_string_view(),
            limits.as_primitive::<Int64Type>(),
        );
        let (separator, max_bytes) = match separators.is_empty() {
            true => ("", 0),
            false => (separators.value(0), limits.value(0)),
        };
        Ok(Arguments {
            texts,
            byte_strings: is_binary.then(|| texts.as_binary()),
            separator,
            max_bytes: usize::try_from(max_bytes).unwrap_or(0),
            distinct_keys: distinct_keys.as_binary(),
            order_keys: order_keys.as_binary(),
        })
    }

    /// None: NULL, which adds nothing.
    fn part(&self, row: usize) -> Option<Part<'a>> {
        if self.texts.is_null(row) {
            return None;
        }
        let (distinct, order) = (self.distinct_keys, self.order_keys);
        Some(Part {
            distinct_key: distinct
                .is_valid(row)
                .then(|| short_key(distinct.value(row))),
            order_key: match order.is_valid(row) {
                true => order.value(row),
                false => &[],
            },
            text: match self.byte_strings {
                Some(byte_strings) => byte_strings.value(row),
                None => self.texts.as_string_view().value(row).as_bytes(),
            },
        })
    }
}

/// The state of a group is what it has of its texts, behind the separator, the maximum length, and how many texts were
/// put together.
fn push_header(state: &mut Vec<u8>, separator: &str, max_bytes: usize, joined_texts: u64) {
    push_counted(state, separator.as_bytes());
    push_counted(state, &(max_bytes as u64).to_le_bytes());
    push_counted(state, &joined_texts.to_le_bytes());
}

fn push_part(state: &mut Vec<u8>, distinct_key: Option<&[u8]>, order_key: &[u8], text: &[u8]) {
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
    fn add_part(&mut self, part: Part<'_>) -> Result<()> {
        self.add(part.distinct_key, part.order_key, part.text);
        safe_point()
    }

    fn set_limits(&mut self, separator: &str, max_bytes: usize) {
        if self.max_bytes != max_bytes || self.separator != separator {
            self.separator = separator.to_string();
            self.max_bytes = max_bytes;
        }
    }

    fn state_bytes(&self) -> usize {
        let entries = self.texts.iter().map(|entry| entry.bytes() + COUNTS_BYTES);
        self.separator.len() + self.joined.len() + 3 * COUNTS_BYTES + entries.sum::<usize>()
    }

    /// Writes its state. The texts leave one by one.
    fn push_state(&mut self, state: &mut Vec<u8>) -> Result<()> {
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
    fn merge(&mut self, mut state: &[u8]) -> Result<()> {
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
                self.append(text, std::mem::take(&mut joined_texts));
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
    fn result(&mut self, cut: &CutResults) -> Result<Option<Vec<u8>>> {
        if self.joined_texts > 0 {
            return self.take_joined(cut).map(Some);
        }
        if self.is_empty() {
            return Ok(None);
        }
        let mut joined = Vec::with_capacity(self.most_bytes());
        self.join_into(&mut joined, cut)?;
        Ok(Some(joined))
    }

    /// What it holds, or what it takes to hand that on if that is more: the texts leave one by one.
    fn size(&self) -> usize {
        let texts = self.texts.capacity() * size_of::<Entry>() + self.texts.len() * ENTRY_BYTES;
        let texts = texts.max(self.joined_bytes.min(self.max_bytes));
        size_of_val(self) + self.bytes + texts + self.joined.capacity()
    }
}

/// The only group.
#[derive(Debug, Default)]
struct Alone {
    collected: Collected,
    cut: CutResults,
}

impl Accumulator for Alone {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let collected = &mut self.collected;
        let arguments = Arguments::of(values, collected.is_binary)?;
        let rows = arguments.texts.len();
        if rows > 0 {
            collected.set_limits(arguments.separator, arguments.max_bytes);
        }
        for part in (0..rows).filter_map(|row| arguments.part(row)) {
            collected.add_part(part)?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let joined = self.collected.result(&self.cut)?;
        Ok(match self.collected.is_binary {
            true => ScalarValue::Binary(joined),
            false => ScalarValue::Utf8View(joined.map(to_text)),
        })
    }

    fn size(&self) -> usize {
        size_of::<CutResults>() + self.collected.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut state = Vec::with_capacity(self.collected.state_bytes());
        self.collected.push_state(&mut state)?;
        Ok(vec![ScalarValue::Binary(Some(state))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let states: &BinaryArray = states[0].as_binary();
        let mut states = states.iter().flatten();
        states.try_for_each(|state| self.collected.merge(state))
    }
}

/// Whole texts between whole separators, cut between two characters.
fn to_text(joined: Vec<u8>) -> String {
    match String::from_utf8(joined) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// All groups. DataFusion has an accumulator for each, and makes their states one by one before it puts them together.
#[derive(Default)]
struct Groups {
    is_binary: bool,
    cut: CutResults,
    groups: Vec<Collected>,
    /// What the groups say of their sizes.
    bytes: usize,
    /// It puts together what others have collected.
    merges: bool,
    /// Long states of all groups have left it.
    has_left: bool,
}

impl Groups {
    fn grow_to(&mut self, groups: usize) {
        let known = self.groups.len();
        self.groups.resize_with(groups.max(known), || Collected {
            is_binary: self.is_binary,
            ..Collected::default()
        });
        self.bytes += (self.groups.len() - known) * size_of::<Collected>();
    }

    /// Does something to a group.
    fn change(
        &mut self,
        group: usize,
        change: impl FnOnce(&mut Collected) -> Result<()>,
    ) -> Result<()> {
        let group = &mut self.groups[group];
        let before = group.size();
        let changed = change(group);
        self.bytes = (self.bytes + group.size()).saturating_sub(before);
        changed
    }

    fn take(&mut self, emitted: EmitTo) -> Vec<Collected> {
        let taken = emitted.take_needed(&mut self.groups);
        let bytes = taken.iter().map(Collected::size);
        self.bytes = self.bytes.saturating_sub(bytes.sum());
        taken
    }

    /// The results of groups of texts. Each is written once, to where the array has it.
    fn texts(groups: Vec<Collected>, cut: &CutResults) -> Result<StringViewArray> {
        let mut left: usize = groups.iter().map(Collected::most_bytes).sum();
        let (mut blocks, mut block) = (Vec::new(), Vec::new());
        let mut views = Vec::with_capacity(groups.len());
        let mut valid = NullBufferBuilder::new(groups.len());
        for mut group in groups {
            let most = group.most_bytes();
            if group.joined_texts > 0 && most >= BLOCK_BYTES {
                // It is a block itself.
                left -= most;
                blocks.push(Buffer::from_vec(std::mem::take(&mut block)));
                let joined = group.take_joined(cut)?;
                views.push(make_view(&joined, blocks.len() as u32, 0));
                blocks.push(Buffer::from_vec(joined));
                valid.append(true);
                continue;
            }
            if block.capacity() - block.len() < most {
                let full = Vec::with_capacity(left.min(BLOCK_BYTES).max(most));
                blocks.push(Buffer::from_vec(std::mem::replace(&mut block, full)));
            }
            left -= most;
            let start = block.len();
            valid.append(!group.is_empty());
            group.join_into(&mut block, cut)?;
            views.push(make_view(
                &block[start..],
                blocks.len() as u32,
                start as u32,
            ));
        }
        blocks.push(Buffer::from_vec(block));
        let texts = StringViewArray::try_new(views.into(), blocks, valid.finish())?;
        Ok(texts)
    }

    /// The results of groups of byte strings.
    fn byte_strings(groups: Vec<Collected>, cut: &CutResults) -> Result<BinaryArray> {
        let bytes = groups.iter().map(Collected::most_bytes).sum();
        let (mut values, mut ends) = (Vec::with_capacity(bytes), Vec::with_capacity(groups.len()));
        let mut valid = NullBufferBuilder::new(groups.len());
        for mut group in groups {
            valid.append(!group.is_empty());
            group.join_into(&mut values, cut)?;
            ends.push(values.len());
        }
        byte_strings(values, ends, valid.finish())
    }
}

/// What comes of long texts that do not fit into memory. The statement may go on with another plan.
fn out_of_memory() -> DataFusionError {
    resources_datafusion_err!("{NAME} has long texts of many groups, which do not fit into memory")
}

/// Byte strings that were written one behind the other, and where each of them ends.
fn byte_strings(
    values: Vec<u8>,
    ends: impl IntoIterator<Item = usize>,
    valid: Option<NullBuffer>,
) -> Result<BinaryArray> {
    let mut offsets = vec![0];
    for end in ends {
        match i32::try_from(end) {
            Ok(end) => offsets.push(end),
            Err(_) => return exec_err!("groups of more than 2 GiB"),
        }
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(BinaryArray::new(offsets, Buffer::from_vec(values), valid))
}

/// The rows that a filter leaves.
fn is_left(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        if self.has_left {
            return Err(out_of_memory());
        }
        self.grow_to(groups);
        let arguments = Arguments::of(values, self.is_binary)?;
        for (row, group) in group_indices.iter().enumerate() {
            if is_left(filter, row)
                && let Some(part) = arguments.part(row)
            {
                self.change(*group, |group| {
                    group.set_limits(arguments.separator, arguments.max_bytes);
                    group.add_part(part)
                })?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emitted: EmitTo) -> Result<ArrayRef> {
        let groups = self.take(emitted);
        Ok(match self.is_binary {
            true => Arc::new(Self::byte_strings(groups, &self.cut)?),
            false => Arc::new(Self::texts(groups, &self.cut)?),
        })
    }

    fn state(&mut self, emitted: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = self.take(emitted);
        let bytes: usize = groups.iter().map(Collected::state_bytes).sum();
        if matches!(emitted, EmitTo::All) && bytes > LONG_STATE_BYTES * groups.len() {
            if self.merges {
                return Err(out_of_memory());
            }
            self.has_left = true;
        }
        let (mut states, mut ends) = (Vec::with_capacity(bytes), Vec::with_capacity(groups.len()));
        for mut group in groups {
            group.push_state(&mut states)?;
            ends.push(states.len());
        }
        Ok(vec![Arc::new(byte_strings(states, ends, None)?)])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.merges = true;
        self.grow_to(groups);
        let states: &BinaryArray = values[0].as_binary();
        for (row, group) in group_indices.iter().enumerate() {
            if states.is_valid(row) {
                self.change(*group, |group| group.merge(states.value(row)))?;
            }
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let arguments = Arguments::of(values, self.is_binary)?;
        let rows = arguments.texts.len();
        let (mut states, mut ends) = (Vec::new(), Vec::with_capacity(rows));
        for row in 0..rows {
            push_header(&mut states, arguments.separator, arguments.max_bytes, 0);
            if is_left(filter, row)
                && let Some(part) = arguments.part(row)
            {
                let key = part.distinct_key.as_deref();
                push_part(&mut states, key, part.order_key, part.text);
                safe_point()?;
            }
            ends.push(states.len());
        }
        Ok(vec![Arc::new(byte_strings(states, ends, None)?)])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_consumers::out_of_memory_in;

    fn collected(max_bytes: usize) -> Collected {
        Collected {
            separator: ",".to_string(),
            max_bytes,
            ..Collected::default()
        }
    }

    fn alone(collected: Collected) -> Alone {
        Alone {
            collected,
            ..Alone::default()
        }
    }

    fn result(collected: Collected) -> String {
        let result = alone(collected).evaluate().expect("a text");
        let ScalarValue::Utf8View(Some(text)) = result else {
            panic!("{result:?}");
        };
        text
    }

    #[test]
    fn what_does_not_fit_is_forgotten_and_changes_nothing() {
        let mut random = 1_u64;
        for (is_ordered, is_distinct) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let (mut short, mut long) = (collected(100), collected(usize::MAX));
            for _ in 0..20_000 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let text = format!("{}", (random >> 33) % 5_000);
                let order_key = match is_ordered {
                    true => text.as_bytes(),
                    false => &[],
                };
                let distinct_key = is_distinct.then(|| short_key(text.as_bytes()));
                short.add(distinct_key.clone(), order_key, text.as_bytes());
                long.add(distinct_key, order_key, text.as_bytes());
            }
            assert!(short.texts.capacity() < 200);
            assert!(short.joined.capacity() <= 101);
            assert_eq!(short.bytes < 5_000, !(is_ordered && is_distinct));
            assert_eq!(result(short), result(long)[..100]);
        }
    }

    #[test]
    fn parts_that_have_forgotten_what_does_not_fit_are_put_together() {
        let (mut first, mut second) = (collected(10), collected(10));
        for number in 0..1_000 {
            let part = if number % 2 == 0 {
                &mut first
            } else {
                &mut second
            };
            let text = format!("{number:03}");
            part.add(None, text.as_bytes(), text.as_bytes());
        }
        let states = [second, first].map(|part| alone(part).state().expect("a state"));
        let states = states.map(|state| match &state[0] {
            ScalarValue::Binary(Some(bytes)) => bytes.clone(),
            other => panic!("{other:?}"),
        });
        let states: ArrayRef = Arc::new(BinaryArray::from_iter_values(states));
        let mut whole = Alone::default();
        whole.merge_batch(&[states]).expect("whole states");
        assert_eq!(result(whole.collected), "000,001,00");
    }

    /// The arguments of rows whose texts are their numbers, some of them NULL.
    fn arguments(rows: std::ops::Range<i64>) -> Vec<ArrayRef> {
        let length = rows.clone().count();
        let texts = rows.map(|row| (row % 7 > 0).then(|| format!("{row:04}")));
        let texts: Vec<Option<String>> = texts.collect();
        let keys = texts.iter().map(|text| text.as_ref().map(String::as_bytes));
        vec![
            Arc::new(texts.iter().cloned().collect::<StringViewArray>()),
            Arc::new(StringViewArray::from_iter_values(vec![";"; length])),
            Arc::new(arrow::array::Int64Array::from(vec![100; length])),
            Arc::new(BinaryArray::from(vec![None; length])),
            Arc::new(keys.collect::<BinaryArray>()),
        ]
    }

    #[test]
    fn long_states_that_have_left_are_no_way_to_go_on() {
        let long = |row: usize| {
            let mut values = arguments(row as i64..row as i64 + 1);
            values[0] = Arc::new(StringViewArray::from_iter_values(["x".repeat(1_000)]));
            values
        };
        let named = |error: DataFusionError| {
            let DataFusionError::ResourcesExhausted(text) = error else {
                panic!("{error}");
            };
            assert_eq!(out_of_memory_in(&text), Some("GROUP_CONCAT"));
        };
        let (mut first, mut last) = (Groups::default(), Groups::default());
        // Groups that are complete leave, and others follow.
        for row in 1..3 {
            first.update_batch(&long(row), &[0], None, 1).expect("rows");
            let states = first.state(EmitTo::First(1)).expect("states");
            last.merge_batch(&states, &[0], 1).expect("states");
        }
        named(last.state(EmitTo::All).expect_err("it would come back"));
        first.update_batch(&long(3), &[0], None, 1).expect("rows");
        first.state(EmitTo::All).expect("the end, perhaps");
        let more = first.update_batch(&long(4), &[0], None, 1);
        named(more.expect_err("the others are gone"));
    }

    #[test]
    fn results_are_as_long_as_they_may_be() {
        for (max_bytes, expected) in [
            (100, "äöü,€"),
            (10, "äöü,€"),
            (9, "äöü,"),
            (7, "äöü,"),
            (6, "äöü"),
            (5, "äö"),
            (1, ""),
        ] {
            let mut groups = Groups::default();
            groups.grow_to(3);
            for group in 0..2 {
                groups.groups[group] = collected(max_bytes);
                for text in ["äöü", "€"] {
                    groups.groups[group].add(None, &[], text.as_bytes());
                }
            }
            let texts = groups.evaluate(EmitTo::All).expect("results");
            let texts: Vec<_> = texts.as_string_view().iter().collect();
            assert_eq!(texts, [Some(expected), Some(expected), None], "{max_bytes}");
        }
    }

    #[test]
    fn what_is_cut_is_noted_with_the_rows_of_all_groups() {
        let oversized = OversizedResults::default();
        let function = GroupConcat::noting(oversized.clone());
        let mut groups = Groups {
            cut: function.cut.clone(),
            ..Groups::default()
        };
        groups.grow_to(4);
        // Its separator does not fit, its last text does not, all fits, and a long one in a block of its own.
        for (group, (max_bytes, text)) in [
            (5, "12345"),
            (8, "12345"),
            (11, "12345"),
            (BLOCK_BYTES, "12345"),
        ]
        .iter()
        .enumerate()
        {
            groups.groups[group] = collected(*max_bytes);
            for _ in 0..if group == 3 { BLOCK_BYTES } else { 2 } {
                groups.groups[group].add(None, &[], text.as_bytes());
            }
        }
        let texts = groups.evaluate(EmitTo::All).expect("results");
        let texts = texts.as_string_view();
        assert_eq!(
            texts.iter().take(3).flatten().collect::<Vec<_>>(),
            ["12345", "12345,12", "12345,12345"]
        );
        assert_eq!(texts.value(3).len(), BLOCK_BYTES);
        let cut = |row: usize| (1260, format!("Row {row} was cut by GROUP_CONCAT()"));
        let last = 6 + (BLOCK_BYTES + 1).div_ceil(6);
        assert_eq!(oversized.take(), (vec![cut(2), cut(4), cut(last)], 0));
        // In a strict mode it is an error, also of sorted texts.
        oversized.refuse();
        let mut sorted = Alone {
            collected: collected(3),
            cut: function.cut.clone(),
        };
        for text in ["b", "a", "c"] {
            sorted.collected.add(None, text.as_bytes(), text.as_bytes());
        }
        let error = sorted.evaluate().expect_err("it is cut");
        let error = EvaluationError::find(&error).expect("one of ours");
        assert_eq!(
            error.message,
            format!("Row {} was cut by GROUP_CONCAT()", last + 3)
        );
    }

    #[test]
    fn keys_are_short_and_different() {
        let (short, long) = ([7; 31], [7; 32]);
        assert_eq!(*short_key(&short), short);
        let digest = short_key(&long);
        assert_eq!(digest.len(), 32);
        assert_ne!(*digest, long);
        assert_ne!(short_key(&digest), digest);
    }

    const GROUPS: usize = 5;

    #[test]
    fn all_groups_together_are_what_each_is_alone() {
        let of_groups = Groups::default;
        let mut alone: Vec<Alone> = (0..GROUPS).map(|_| Alone::default()).collect();
        let (mut first, mut second) = (of_groups(), of_groups());
        for start in (0..400).step_by(100) {
            let values = arguments(start..start + 100);
            let indices: Vec<usize> = (0..100).map(|row| row % GROUPS).collect();
            for (row, group) in indices.iter().enumerate() {
                let row: Vec<ArrayRef> = values.iter().map(|array| array.slice(row, 1)).collect();
                Accumulator::update_batch(&mut alone[*group], &row).expect("rows");
            }
            match start {
                0 | 200 => first.update_batch(&values, &indices, None, GROUPS),
                _ => {
                    let states = second.convert_to_state(&values, None).expect("states");
                    second.merge_batch(&states, &indices, GROUPS)
                }
            }
            .expect("rows");
        }
        // Some leave before the others.
        let few = first.state(EmitTo::First(2)).expect("states");
        let rest = first.state(EmitTo::All).expect("states");
        assert_eq!(first.bytes, 0);
        second.merge_batch(&few, &[0, 1], GROUPS).expect("states");
        second
            .merge_batch(&rest, &[2, 3, 4], GROUPS)
            .expect("states");
        let results = second.evaluate(EmitTo::All).expect("results");
        assert_eq!(second.bytes, 0);
        let results = results.as_string_view();
        for (group, alone) in alone.into_iter().enumerate() {
            assert_eq!(
                results.value(group),
                result(alone.collected),
                "group {group}"
            );
        }
    }
}
