//! MIN and MAX. Of strings by their collation, which shows the string as it was stored; of everything else as
//! DataFusion does.

use std::cmp::Ordering;
use std::collections::VecDeque;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use datafusion_functions_aggregate::min_max::{Max, Min};
use sheaf_types::Collation;

use super::{ask_for, result_field, safe_point};
use crate::functions::SqlType;
use crate::functions::collation::extreme_collation;
use crate::functions::conversion::to_text;

#[derive(Debug, PartialEq, Eq, Hash)]
enum Stock {
    Min(Min),
    Max(Max),
}

/// MIN or MAX.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Extreme {
    signature: Signature,
    stock: Stock,
}

impl Extreme {
    pub fn min() -> Extreme {
        Extreme {
            signature: Signature::user_defined(Volatility::Immutable),
            stock: Stock::Min(Min::new()),
        }
    }

    pub fn max() -> Extreme {
        Extreme {
            signature: Signature::user_defined(Volatility::Immutable),
            stock: Stock::Max(Max::new()),
        }
    }

    fn stock(&self) -> &dyn AggregateUDFImpl {
        match &self.stock {
            Stock::Min(min) => min,
            Stock::Max(max) => max,
        }
    }

    /// The order on strings in which the result comes first.
    fn wanted(&self) -> Ordering {
        match self.stock {
            Stock::Min(_) => Ordering::Less,
            Stock::Max(_) => Ordering::Greater,
        }
    }
}

fn text_collation(args: &AccumulatorArgs<'_>) -> Option<Collation> {
    extreme_collation(&SqlType::of(args.expr_fields.first()?))
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.stock().name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arg_types
            .iter()
            .map(|ty| {
                if ty.is_string() {
                    DataType::Utf8View
                } else {
                    ty.clone()
                }
            })
            .collect())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types[0].clone())
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        Ok(result_field(self.name(), &arg_fields[0]))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match text_collation(&args) {
            Some(collation) => Ok(Box::new(TextExtreme {
                collation,
                wanted: self.wanted(),
                field: args.expr_fields[0].clone(),
                best: None,
            })),
            None => self.stock().accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.stock().state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        text_collation(&args).is_none() && self.stock().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.stock().create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        match text_collation(&args) {
            Some(collation) => Ok(Box::new(SlidingTextExtreme {
                collation,
                wanted: self.wanted(),
                field: args.expr_fields[0].clone(),
                candidates: VecDeque::new(),
                first_row: 0,
                end_row: 0,
                text_bytes: 0,
            })),
            None => self.stock().create_sliding_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The first or last string of a group.
#[derive(Debug)]
struct TextExtreme {
    collation: Collation,
    wanted: Ordering,
    field: FieldRef,
    best: Option<String>,
}

impl Accumulator for TextExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let texts = to_text(&values[0], &self.field)?;
        for row in (0..texts.len()).filter(|row| texts.is_valid(*row)) {
            let text = texts.value(row);
            let better = match &self.best {
                None => true,
                Some(best) => self.collation.compare(text, best) == self.wanted,
            };
            if better {
                self.best = Some(text.to_string());
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8View(self.best.clone()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.best.as_ref().map_or(0, String::capacity)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// The first or last string of a frame that moves on over the rows of a window.
///
/// Of the frame's rows only those count that no later row beats: the others leave the frame before that row does. So
/// the best string is always the first candidate, and each row comes and goes once.
#[derive(Debug)]
struct SlidingTextExtreme {
    collation: Collation,
    wanted: Ordering,
    field: FieldRef,
    /// Rows by their number, with their strings, from the best to the worst. Of equal strings the first is shown.
    candidates: VecDeque<(u64, String)>,
    /// The rows of the frame.
    first_row: u64,
    end_row: u64,
    text_bytes: usize,
}

impl Accumulator for SlidingTextExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let texts = to_text(&values[0], &self.field)?;
        for row in 0..texts.len() {
            let number = self.end_row;
            self.end_row += 1;
            if texts.is_null(row) {
                continue;
            }
            let text = texts.value(row);
            while let Some((_, worst)) = self.candidates.back()
                && self.collation.compare(text, worst) == self.wanted
            {
                self.text_bytes -= worst.len();
                self.candidates.pop_back();
            }
            self.text_bytes += text.len();
            if self.candidates.len() == self.candidates.capacity() {
                ask_for(2 * self.candidates.capacity() * size_of::<(u64, String)>())?;
            }
            self.candidates.push_back((number, text.to_string()));
            safe_point()?;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.first_row += values[0].len() as u64;
        while let Some((number, text)) = self.candidates.front()
            && *number < self.first_row
        {
            self.text_bytes -= text.len();
            self.candidates.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let best = self.candidates.front().map(|(_, text)| text.clone());
        Ok(ScalarValue::Utf8View(best))
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.candidates.capacity() * size_of::<(u64, String)>()
            + self.text_bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
