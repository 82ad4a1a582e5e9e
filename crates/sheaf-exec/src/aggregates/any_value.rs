//! ANY_VALUE: some value of the group, the first that arrives.
//!
//! It is a function of MySQL. GROUP BY also uses it to show a column that it does not group by. That is a string that
//! is grouped by its sort key, a column that the group's key determines, and without ONLY_FULL_GROUP_BY any other.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array, new_empty_array};
use arrow::compute::kernels::boolean::not;
use arrow::compute::{concat, nullif, prep_null_mask_filter, take};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::result_field;
use crate::operator::compacted_exec::detached_array;

#[derive(Debug, PartialEq, Eq, Hash)]
pub struct AnyValue {
    signature: Signature,
}

impl AnyValue {
    pub fn new() -> AnyValue {
        AnyValue {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl Default for AnyValue {
    fn default() -> Self {
        Self::new()
    }
}

impl AggregateUDFImpl for AnyValue {
    fn name(&self) -> &str {
        "any_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arg_types.to_vec())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types[0].clone())
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        Ok(result_field(self.name(), &arg_fields[0]))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let empty = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(FirstOfAll {
            value: empty,
            is_set: false,
        }))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(FirstOfEachGroup {
            data_type: args.return_field.data_type().clone(),
            chunks: Vec::new(),
            groups: 0,
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

#[derive(Debug)]
struct FirstOfAll {
    value: ScalarValue,
    is_set: bool,
}

impl Accumulator for FirstOfAll {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if !self.is_set && !values[0].is_empty() {
            self.value = ScalarValue::try_from_array(&values[0], 0)?.compacted();
            self.is_set = true;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        // An empty partition hands over NULL, and so may a group of NULLs: take the first that is a value.
        if self.value.is_null()
            && let Some(row) = (0..states[0].len()).find(|row| states[0].is_valid(*row))
        {
            self.value = ScalarValue::try_from_array(&states[0], row)?.compacted();
            self.is_set = true;
        }
        Ok(())
    }
}

/// Groups are numbered without gaps, but not in the order in which they appear: of the rows of a batch, those whose
/// hash is that of another group are numbered last. So the first rows of new groups are sorted by the groups' numbers.
/// A batch without a new group, which most are, is not looked at.
struct FirstOfEachGroup {
    data_type: DataType,
    /// Values of groups 0, 1, 2, ..., as pieces of the batches that they came in.
    chunks: Vec<ArrayRef>,
    /// Number of groups that have a value.
    groups: usize,
}

impl FirstOfEachGroup {
    fn take_first(
        &mut self,
        values: &ArrayRef,
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let new_groups = total_num_groups.saturating_sub(self.groups);
        if new_groups == 0 {
            return Ok(());
        }
        let is_taken =
            |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        // The group of all rows, of which there is none, comes with a row that is not one of it: its value is NULL.
        let mut rows: Vec<Option<u32>> = vec![None; new_groups];
        let mut missing = new_groups;
        for (row, group) in group_indices.iter().enumerate() {
            let new_group = group.checked_sub(self.groups);
            if let Some(first) = new_group.and_then(|group| rows.get_mut(group))
                && first.is_none()
                && is_taken(row)
            {
                *first = Some(row as u32);
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
        }
        self.chunks.push(copied(values, &UInt32Array::from(rows))?);
        self.groups = total_num_groups;
        Ok(())
    }

    fn emit(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let chunks: Vec<&dyn Array> = self.chunks.iter().map(|chunk| chunk.as_ref()).collect();
        let all = if chunks.is_empty() {
            new_empty_array(&self.data_type)
        } else {
            concat(&chunks)?
        };
        let emitted = match emit_to {
            EmitTo::All => all.len(),
            EmitTo::First(count) => count,
        };
        // In a sorted input groups are emitted again and again: the rest would keep alive what all of them had.
        let rest = detached_array(all.slice(emitted, all.len() - emitted))?;
        self.groups = rest.len();
        self.chunks = if rest.is_empty() {
            Vec::new()
        } else {
            vec![rest]
        };
        // Nor do those that leave hold on to the others.
        detached_array(all.slice(0, emitted))
    }
}

/// Some rows of an array, without the memory of the others: an array of views would keep it all.
fn copied(values: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef> {
    let chunk = take(values, rows, None)?;
    Ok(match chunk.data_type() {
        DataType::Utf8View => Arc::new(chunk.as_string_view().gc()),
        DataType::BinaryView => Arc::new(chunk.as_binary_view().gc()),
        _ => chunk,
    })
}

impl GroupsAccumulator for FirstOfEachGroup {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.take_first(&values[0], group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.emit(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.emit(emit_to)?])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.take_first(&values[0], group_indices, None, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let Some(filter) = opt_filter else {
            return Ok(vec![Arc::clone(&values[0])]);
        };
        let is_left_out = not(&prep_null_mask_filter(filter))?;
        Ok(vec![nullif(&values[0], &is_left_out)?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self
                .chunks
                .iter()
                .map(|chunk| chunk.get_array_memory_size())
                .sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;

    use super::*;

    #[test]
    fn groups_come_in_any_order() {
        let mut first = FirstOfEachGroup {
            data_type: DataType::Utf8View,
            chunks: Vec::new(),
            groups: 0,
        };
        let mut update = |values: &[&str], groups: &[usize], total| {
            let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(values));
            first.update_batch(&[values], groups, None, total).unwrap();
        };
        update(&["c", "a", "c2", "b"], &[2, 0, 2, 1], 3);
        update(&["a2", "b2"], &[0, 1], 3);
        update(&["e", "c3", "d", "d2"], &[4, 2, 3, 3], 5);
        let emitted = first.evaluate(EmitTo::All).unwrap();
        let emitted: Vec<_> = emitted.as_string_view().iter().flatten().collect();
        assert_eq!(emitted, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn groups_that_were_emitted_take_no_memory() {
        let mut first = FirstOfEachGroup {
            data_type: DataType::Utf8View,
            chunks: Vec::new(),
            groups: 0,
        };
        let mut least = usize::MAX;
        for round in 0..100 {
            let rows = 1000 * round..1000 * (round + 1);
            let values = rows.map(|row| format!("a value of more than twelve bytes: {row}"));
            let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(values));
            // The group that is left comes first.
            let start = usize::from(round > 0);
            let groups: Vec<usize> = (start..1000 + start).collect();
            first
                .update_batch(&[values], &groups, None, 1000 + start)
                .unwrap();
            let emitted = first.evaluate(EmitTo::First(999 + start)).unwrap();
            assert_eq!(emitted.len(), 999 + start);
            least = least.min(first.size());
            assert!(first.size() <= 2 * least, "round {round}: {}", first.size());
        }
    }

    #[test]
    fn groups_that_wait_for_a_batch_of_their_own_take_their_own_memory() {
        let mut first = FirstOfEachGroup {
            data_type: DataType::Utf8View,
            chunks: Vec::new(),
            groups: 0,
        };
        // Batches have more rows than are emitted at a time, so more and more groups are left.
        let mut left = 0;
        for round in 0..100 {
            let rows = 1000 * round..1000 * (round + 1);
            let values = rows.map(|row| format!("a value of more than twelve bytes: {row:06}"));
            let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(values));
            let groups: Vec<usize> = (left..left + 1000).collect();
            first
                .update_batch(&[values], &groups, None, left + 1000)
                .unwrap();
            let emitted = first.state(EmitTo::First(970)).unwrap();
            assert_eq!(emitted[0].len(), 970);
            assert!(emitted[0].get_array_memory_size() <= 3 * 970 * (41 + 16));
            left += 30;
            // A text and its view.
            let most = 3 * left * (41 + 16);
            assert!(first.size() <= most, "round {round}: {}", first.size());
        }
    }
}
