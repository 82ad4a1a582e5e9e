//! `GROUP_CONCAT([DISTINCT] text ORDER BY ... SEPARATOR ...)`.
//!
//! The pass over the syntax tree writes it as `$group_concat(text, separator, maximum length, distinct key, order
//! key)`. Both keys are byte strings whose memcmp order is the order asked for, or NULL literals. So the operator above
//! sorts nothing, and the function keeps (order key, text) until the group is complete. It drops what comes after the
//! maximum length, so it keeps little, however many rows there are. Only keys of DISTINCT stay.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{Accumulator, AggregateUDFImpl, ReversedUDAF, Signature, Volatility};

use super::{result_field, safe_point};
use crate::functions::types::{field, text_field};

/// What the bytes of a group are counted as: themselves, and twice on their way out.
const HANDED_ON: usize = 3;
/// The heads of an entry's two blocks of memory or three, which the allocator rounds up.
const ENTRY_BYTES: usize = 32;
/// The lengths in the state of an entry, and whether it has a distinct key; those before the first entry are fewer.
const COUNTS_BYTES: usize = 16;

#[derive(Debug, PartialEq, Eq, Hash)]
pub struct GroupConcat {
    signature: Signature,
}

impl GroupConcat {
    pub fn new() -> GroupConcat {
        GroupConcat {
            signature: Signature::user_defined(Volatility::Immutable),
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
        "$group_concat"
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
        Ok(Box::new(Collected {
            is_binary: *args.return_field.data_type() == DataType::Binary,
            ..Collected::default()
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
    /// With DISTINCT.
    distinct_key: Option<Vec<u8>>,
    text: Vec<u8>,
}

/// The texts of a group so far.
#[derive(Debug, Default)]
struct Collected {
    /// They are byte strings.
    is_binary: bool,
    texts: Vec<Entry>,
    distinct: HashSet<Vec<u8>>,
    separator: String,
    max_bytes: usize,
    /// Of the entries and the distinct keys.
    bytes: usize,
    /// Of the texts and the separators between them.
    joined_bytes: usize,
    /// When that exceeds it, texts that are not needed are forgotten.
    forget_at_bytes: usize,
    /// No text is needed any more: without ORDER BY the first ones are the result.
    is_full: bool,
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
    fn add(&mut self, distinct_key: Option<&[u8]>, order_key: &[u8], text: &[u8]) {
        if self.is_full || distinct_key.is_some_and(|key| !self.distinct.insert(key.to_vec())) {
            return;
        }
        self.bytes += distinct_key.map_or(0, <[u8]>::len);
        let entry = Entry {
            order_key: order_key.to_vec(),
            distinct_key: distinct_key.map(<[u8]>::to_vec),
            text: text.to_vec(),
        };
        self.bytes += entry.bytes();
        self.joined_bytes += text.len() + self.separator.len();
        self.texts.push(entry);
        if self.joined_bytes > self.forget_at_bytes.max(self.max_bytes.saturating_mul(2)) {
            self.forget_rest();
        }
    }

    /// Forgets the texts behind the maximum length.
    fn forget_rest(&mut self) {
        let is_ordered = self.texts.iter().any(|entry| !entry.order_key.is_empty());
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
        self.forget_at_bytes = joined.saturating_mul(2);
        self.is_full = !is_ordered;
    }

    /// What fits into the maximum length.
    fn joined(&mut self) -> Vec<u8> {
        self.sort();
        let mut joined = Vec::with_capacity(self.joined_bytes.min(self.max_bytes));
        for (at, Entry { text, .. }) in self.texts.iter().enumerate() {
            if at > 0 {
                joined.extend_from_slice(self.separator.as_bytes());
            }
            joined.extend_from_slice(text);
            if joined.len() > self.max_bytes {
                // No byte of UTF-8 but a character's first stands behind the cut.
                let is_inside = |end: &usize| !self.is_binary && joined[*end] & 0xc0 == 0x80;
                let mut ends = (0..=self.max_bytes).rev();
                let end = ends.find(|end| !is_inside(end)).unwrap_or(0);
                joined.truncate(end);
                break;
            }
        }
        joined
    }

    /// Stable: equal keys keep the order of arrival.
    fn sort(&mut self) {
        self.texts.sort_by(|a, b| a.order_key.cmp(&b.order_key));
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        let distinct = self.distinct_key.as_ref().map_or(0, Vec::len);
        self.order_key.len() + distinct + self.text.len()
    }
}

impl Accumulator for Collected {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [texts, separators, limits, distinct_keys, order_keys] = values else {
            return exec_err!("$group_concat takes five arguments");
        };
        let separators = separators.as_string_view();
        if !separators.is_empty() {
            self.separator = separators.value(0).to_string();
            self.max_bytes =
                usize::try_from(limits.as_primitive::<Int64Type>().value(0)).unwrap_or(0);
        }
        let (distinct_keys, order_keys): (&BinaryArray, &BinaryArray) =
            (distinct_keys.as_binary(), order_keys.as_binary());
        let byte_strings: Option<&BinaryArray> = self.is_binary.then(|| texts.as_binary());
        for row in (0..texts.len()).filter(|row| texts.is_valid(*row)) {
            let distinct_key = distinct_keys
                .is_valid(row)
                .then(|| distinct_keys.value(row));
            let order_key = if order_keys.is_valid(row) {
                order_keys.value(row)
            } else {
                &[]
            };
            let text = match byte_strings {
                Some(byte_strings) => byte_strings.value(row),
                None => texts.as_string_view().value(row).as_bytes(),
            };
            self.add(distinct_key, order_key, text);
            safe_point()?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let joined = (!self.texts.is_empty()).then(|| self.joined());
        Ok(match self.is_binary {
            true => ScalarValue::Binary(joined),
            false => {
                // Whole texts between whole separators, cut between two characters.
                ScalarValue::Utf8View(joined.map(|text| match String::from_utf8(text) {
                    Ok(text) => text,
                    Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
                }))
            }
        })
    }

    /// What it holds, and what it takes to hand that on: a group that goes to a file, or to the result, is one value
    /// first and then one of an array.
    fn size(&self) -> usize {
        let texts = self.texts.capacity() * size_of::<Entry>() + self.texts.len() * ENTRY_BYTES;
        size_of_val(self) + HANDED_ON * self.bytes + texts
    }

    /// The texts leave one by one.
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let entries = self.texts.iter().map(|entry| entry.bytes() + COUNTS_BYTES);
        let header = self.separator.len() + COUNTS_BYTES;
        let mut state = Vec::with_capacity(header + entries.sum::<usize>());
        push_counted(&mut state, self.separator.as_bytes());
        push_counted(&mut state, &(self.max_bytes as u64).to_le_bytes());
        self.distinct = HashSet::new();
        for entry in std::mem::take(&mut self.texts) {
            push_counted(&mut state, &entry.order_key);
            match &entry.distinct_key {
                Some(key) => {
                    state.push(1);
                    push_counted(&mut state, key);
                }
                None => state.push(0),
            }
            push_counted(&mut state, &entry.text);
            safe_point()?;
        }
        self.bytes = 0;
        Ok(vec![ScalarValue::Binary(Some(state))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let states: &BinaryArray = states[0].as_binary();
        for mut rest in states.iter().flatten() {
            let corrupt =
                || datafusion_common::exec_datafusion_err!("a state of $group_concat is cut short");
            let separator = take_counted(&mut rest).ok_or_else(corrupt)?;
            let limit = take_counted(&mut rest).ok_or_else(corrupt)?;
            if !rest.is_empty() {
                self.separator = String::from_utf8_lossy(separator).into_owned();
                self.max_bytes = limit.try_into().map_or(0, u64::from_le_bytes) as usize;
            }
            while !rest.is_empty() {
                let order_key = take_counted(&mut rest).ok_or_else(corrupt)?;
                let (has_key, after) = rest.split_first().ok_or_else(corrupt)?;
                rest = after;
                let distinct_key = if *has_key == 1 {
                    Some(take_counted(&mut rest).ok_or_else(corrupt)?)
                } else {
                    None
                };
                let text = take_counted(&mut rest).ok_or_else(corrupt)?;
                self.add(distinct_key, order_key, text);
                safe_point()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(max_bytes: usize) -> Collected {
        Collected {
            separator: ",".to_string(),
            max_bytes,
            ..Collected::default()
        }
    }

    fn result(mut collected: Collected) -> String {
        let result = collected.evaluate().expect("a text");
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
                let distinct_key = is_distinct.then_some(text.as_bytes());
                short.add(distinct_key, order_key, text.as_bytes());
                long.add(distinct_key, order_key, text.as_bytes());
            }
            assert!(short.texts.capacity() < 200);
            assert_eq!(short.bytes < 2_000, !(is_ordered && is_distinct));
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
        let states = [&mut second, &mut first].map(|part| part.state().expect("a state"));
        let states = states.map(|state| match &state[0] {
            ScalarValue::Binary(Some(bytes)) => bytes.clone(),
            other => panic!("{other:?}"),
        });
        let states: ArrayRef = Arc::new(BinaryArray::from_iter_values(states));
        let mut whole = Collected::default();
        whole.merge_batch(&[states]).expect("whole states");
        assert_eq!(result(whole), "000,001,00");
    }
}
