//! Sums that may leave the range of their type: error 1690.
//!
//! DataFusion's sums of doubles become infinite, and its sums of DECIMALs wrap around, which gives a number that looks
//! like any other. Doubles are looked at when the sum is told: what was infinite stays so, or becomes NaN. A wrapped
//! sum does not show, so DECIMALs of many digits are added up here. Those of few digits cannot come so far: 10^10 rows
//! of [`SAFE_PRECISION`] digits fit into an `i128`.

use std::mem::{size_of, size_of_val};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Float64Type, i256};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, EmitTo, GroupsAccumulator};
use sheaf_access::int256_of;
use sheaf_types::number::power_of_ten;

use crate::functions::EvaluationError;
use crate::functions::types::MAX_PRECISION;

/// Digits of a DECIMAL that adds up without leaving an `i128`.
pub(super) const SAFE_PRECISION: u8 = 28;

fn out_of_range(type_name: &str) -> datafusion_common::DataFusionError {
    EvaluationError::out_of_range(type_name, "sum").into()
}

fn is_in_range(sum: i128) -> bool {
    sum.unsigned_abs() < power_of_ten(MAX_PRECISION).unsigned_abs()
}

/// Whether a result of wide DECIMALs has so few digits that rows and clients get it.
fn is_wide(sum: i256) -> bool {
    int256_of(sum).to_wide().is_some()
}

/// DataFusion's sum of doubles, or of wide DECIMALs.
#[derive(Debug)]
pub(super) struct FiniteSum(pub(super) Box<dyn Accumulator>);

impl Accumulator for FiniteSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.0.evaluate()? {
            ScalarValue::Float64(Some(sum)) if !sum.is_finite() => Err(out_of_range("DOUBLE")),
            ScalarValue::Decimal256(Some(sum), ..) if !is_wide(sum) => Err(out_of_range("DECIMAL")),
            sum => Ok(sum),
        }
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }
}

/// DataFusion's sums of doubles of groups.
pub(super) struct FiniteSums(pub(super) Box<dyn GroupsAccumulator>);

impl GroupsAccumulator for FiniteSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.0
            .update_batch(values, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = self.0.evaluate(emit_to)?;
        if let Some(values) = sums.as_primitive_opt::<Decimal256Type>() {
            return match values.iter().flatten().all(is_wide) {
                true => Ok(sums),
                false => Err(out_of_range("DECIMAL")),
            };
        }
        let values = sums.as_primitive::<Float64Type>();
        match values.iter().flatten().all(f64::is_finite) {
            true => Ok(sums),
            false => Err(out_of_range("DOUBLE")),
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.0.state(emit_to)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.merge_batch(values, group_indices, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.0.convert_to_state(values, opt_filter)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

/// The sum of DECIMALs, also of a frame that moves.
#[derive(Debug)]
pub(super) struct WideSum {
    data_type: DataType,
    sum: i128,
    /// Values in the sum.
    count: u64,
}

impl WideSum {
    pub(super) fn new(data_type: &DataType) -> WideSum {
        WideSum {
            data_type: data_type.clone(),
            sum: 0,
            count: 0,
        }
    }

    fn scalar(&self) -> ScalarValue {
        let scale = match self.data_type {
            DataType::Decimal128(_, scale) => scale,
            _ => 0,
        };
        ScalarValue::Decimal128((self.count > 0).then_some(self.sum), MAX_PRECISION, scale)
    }
}

impl Accumulator for WideSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Decimal128Type>().iter().flatten() {
            let sum = self.sum.checked_add(value);
            self.sum = sum.ok_or_else(|| out_of_range("DECIMAL"))?;
            self.count += 1;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match is_in_range(self.sum) {
            true => Ok(self.scalar()),
            false => Err(out_of_range("DECIMAL")),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.scalar()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Decimal128Type>().iter().flatten() {
            let sum = self.sum.checked_sub(value);
            self.sum = sum.ok_or_else(|| out_of_range("DECIMAL"))?;
            self.count -= 1;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

/// The sums of DECIMALs of groups.
pub(super) struct WideSums {
    data_type: DataType,
    sums: Vec<i128>,
    /// Whether the group has a value.
    has_value: Vec<bool>,
}

impl WideSums {
    pub(super) fn new(data_type: &DataType) -> WideSums {
        WideSums {
            data_type: data_type.clone(),
            sums: Vec::new(),
            has_value: Vec::new(),
        }
    }

    fn emit(&mut self, emit_to: EmitTo) -> Decimal128Array {
        let sums = emit_to.take_needed(&mut self.sums);
        let has_value = emit_to.take_needed(&mut self.has_value);
        Decimal128Array::new(sums.into(), Some(NullBuffer::from(has_value)))
            .with_data_type(self.data_type.clone())
    }
}

impl GroupsAccumulator for WideSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.sums.resize(total_num_groups, 0);
        self.has_value.resize(total_num_groups, false);
        let values = values[0].as_primitive::<Decimal128Type>();
        if values.null_count() == 0 && opt_filter.is_none() {
            let mut overflows = false;
            for (group, value) in group_indices.iter().zip(values.values()) {
                let (sum, overflow) = self.sums[*group].overflowing_add(*value);
                (self.sums[*group], self.has_value[*group]) = (sum, true);
                overflows |= overflow;
            }
            return match overflows {
                true => Err(out_of_range("DECIMAL")),
                false => Ok(()),
            };
        }
        for (row, group) in group_indices.iter().enumerate() {
            let is_left_out = |filter: &BooleanArray| filter.is_null(row) || !filter.value(row);
            if values.is_null(row) || opt_filter.is_some_and(is_left_out) {
                continue;
            }
            let sum = self.sums[*group].checked_add(values.value(row));
            self.sums[*group] = sum.ok_or_else(|| out_of_range("DECIMAL"))?;
            self.has_value[*group] = true;
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = self.emit(emit_to);
        match sums.values().iter().all(|sum| is_in_range(*sum)) {
            true => Ok(Arc::new(sums)),
            false => Err(out_of_range("DECIMAL")),
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.emit(emit_to))])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut rows = WideSums::new(&self.data_type);
        let each: Vec<usize> = (0..values[0].len()).collect();
        rows.update_batch(values, &each, opt_filter, each.len())?;
        rows.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.has_value.capacity()
    }
}
