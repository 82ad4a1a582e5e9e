//! `GROUP_CONCAT([DISTINCT] text ORDER BY ... SEPARATOR ...)`.
//!
//! The pass over the syntax tree writes it as `$group_concat(text, separator, maximum length, distinct key, order
//! key)`: both keys are byte strings whose memcmp order is the order asked for, or NULL literals. So the operator above
//! needs to sort nothing, and the function remembers (order key, text) until the group is complete.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{Accumulator, AggregateUDFImpl, ReversedUDAF, Signature, Volatility};

use super::result_field;
use crate::functions::types::text_field;

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

    fn coerce_types(&self, _arg_types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(vec![
            DataType::Utf8View,
            DataType::Utf8View,
            DataType::Int64,
            DataType::Binary,
            DataType::Binary,
        ])
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        Ok(result_field(
            self.name(),
            &text_field(&arg_fields[..1], "group_concat")?,
        ))
    }

    fn accumulator(&self, _args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Collected::default()))
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

#[derive(Debug)]
struct Entry {
    order_key: Vec<u8>,
    /// With DISTINCT.
    distinct_key: Option<Vec<u8>>,
    text: String,
}

/// The texts of a group so far.
#[derive(Debug, Default)]
struct Collected {
    texts: Vec<Entry>,
    distinct: HashSet<Vec<u8>>,
    separator: String,
    max_bytes: usize,
    bytes: usize,
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
    fn add(&mut self, distinct_key: Option<&[u8]>, order_key: &[u8], text: &str) {
        if distinct_key.is_some_and(|key| !self.distinct.insert(key.to_vec())) {
            return;
        }
        // A distinct key is kept twice.
        self.bytes += order_key.len() + text.len() + 2 * distinct_key.map_or(0, <[u8]>::len);
        self.texts.push(Entry {
            order_key: order_key.to_vec(),
            distinct_key: distinct_key.map(<[u8]>::to_vec),
            text: text.to_string(),
        });
    }
}

impl Accumulator for Collected {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [texts, separators, limits, distinct_keys, order_keys] = values else {
            return exec_err!("$group_concat takes five arguments");
        };
        let (texts, separators) = (texts.as_string_view(), separators.as_string_view());
        if !separators.is_empty() {
            self.separator = separators.value(0).to_string();
            self.max_bytes =
                usize::try_from(limits.as_primitive::<Int64Type>().value(0)).unwrap_or(0);
        }
        let (distinct_keys, order_keys): (&BinaryArray, &BinaryArray) =
            (distinct_keys.as_binary(), order_keys.as_binary());
        for row in (0..texts.len()).filter(|row| texts.is_valid(*row)) {
            let distinct_key = distinct_keys
                .is_valid(row)
                .then(|| distinct_keys.value(row));
            let order_key = if order_keys.is_valid(row) {
                order_keys.value(row)
            } else {
                &[]
            };
            self.add(distinct_key, order_key, texts.value(row));
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.texts.is_empty() {
            return Ok(ScalarValue::Utf8View(None));
        }
        // Stable: equal keys keep the order of arrival.
        self.texts.sort_by(|a, b| a.order_key.cmp(&b.order_key));
        let mut joined = String::new();
        for (at, Entry { text, .. }) in self.texts.iter().enumerate() {
            if at > 0 {
                joined.push_str(&self.separator);
            }
            joined.push_str(text);
            if joined.len() > self.max_bytes {
                let end = (0..=self.max_bytes)
                    .rev()
                    .find(|end| joined.is_char_boundary(*end))
                    .unwrap_or(0);
                joined.truncate(end);
                break;
            }
        }
        Ok(ScalarValue::Utf8View(Some(joined)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes + self.texts.capacity() * size_of::<Entry>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut state = Vec::new();
        push_counted(&mut state, self.separator.as_bytes());
        push_counted(&mut state, &(self.max_bytes as u64).to_le_bytes());
        for entry in &self.texts {
            push_counted(&mut state, &entry.order_key);
            match &entry.distinct_key {
                Some(key) => {
                    state.push(1);
                    push_counted(&mut state, key);
                }
                None => state.push(0),
            }
            push_counted(&mut state, entry.text.as_bytes());
        }
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
                let text = String::from_utf8_lossy(take_counted(&mut rest).ok_or_else(corrupt)?);
                self.add(distinct_key, order_key, &text);
            }
        }
        Ok(())
    }
}
