//! The accumulators: of the only group, and of all groups of a GROUP BY.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, NullBufferBuilder, StringViewArray,
    make_view,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::Int64Type;
use datafusion_common::{DataFusionError, Result, ScalarValue, exec_err, resources_datafusion_err};
use datafusion_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::super::{ask_for, safe_point};
use super::collected::{Collected, Part, push_header, push_part};
use super::{CutResults, NAME};
use crate::short_key::short_key;

/// Results that are shorter share a block of memory of this size.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// States that are longer, on average, are not read from files: each batch would have many of them.
const LONG_STATE_BYTES: usize = 256;

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

/// The only group.
#[derive(Debug, Default)]
pub(super) struct Alone {
    pub(super) collected: Collected,
    pub(super) cut: CutResults,
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
        ask_for(self.collected.state_bytes())?;
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
pub(super) struct Groups {
    is_binary: bool,
    cut: CutResults,
    pub(super) groups: Vec<Collected>,
    /// What the groups say of their sizes.
    pub(super) bytes: usize,
    /// It puts together what others have collected.
    merges: bool,
    /// Long states of all groups have left it.
    has_left: bool,
}

impl Groups {
    pub(super) fn new(is_binary: bool, cut: CutResults) -> Groups {
        Groups {
            is_binary,
            cut,
            ..Groups::default()
        }
    }

    pub(super) fn grow_to(&mut self, groups: usize) {
        let known = self.groups.len();
        self.groups
            .resize_with(groups.max(known), || Collected::new(self.is_binary));
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
                ask_for(most)?;
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
        ask_for(bytes)?;
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
        ask_for(bytes)?;
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
