//! Sums, variances, deviations and bits over a frame that moves (`ROWS 1 PRECEDING`).
//!
//! A double that leaves such a frame cannot be subtracted again. After 1e20 has come and gone, what was added beside it
//! is lost, and a variance may even become negative. Nor can a bit be taken from BIT_OR. So the frame is [two stacks].
//! New values go on one, with a summary of all of them. The oldest leave from the other, where each lies with the
//! summary of itself and all that follow it. When that one is empty, the first is turned over onto it. A value is
//! merged twice, and nothing is ever subtracted.
//!
//! DataFusion's accumulators compute the same of groups and of frames that only grow.
//!
//! [two stacks]: TwoStacks

use std::mem::{size_of, size_of_val};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::cast::{as_float64_array, as_uint64_array};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
};

use crate::functions::limits::ask_for;

/// What is computed of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Statistic {
    Sum,
    /// `sample`: of a sample, which is one value less.
    Variance {
        sample: bool,
    },
    Deviation {
        sample: bool,
    },
    BitAnd,
    BitOr,
    BitXor,
}

/// What accumulators with a `frame` of [`TwoStacks`] have in common.
macro_rules! moves {
    () => {
        /// Rows leave in the order in which they came.
        fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
            let leaving = &values[0];
            for _ in 0..leaving.len() - leaving.null_count() {
                self.frame.pop_oldest()?;
            }
            Ok(())
        }

        fn supports_retract_batch(&self) -> bool {
            true
        }

        fn size(&self) -> usize {
            size_of_val(self) + self.frame.heap_bytes()
        }

        fn state(&mut self) -> Result<Vec<ScalarValue>> {
            internal_err!("a frame has no state to hand on")
        }

        fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
            internal_err!("a frame has no state to hand on")
        }
    };
}

/// What is to be known of values, in any number.
trait Summary: Copy + Default + std::fmt::Debug {
    type Value: Copy + std::fmt::Debug;
    fn of(value: Self::Value) -> Self;
    /// Of these values and others that follow them.
    fn merge(self, following: Self) -> Self;
}

/// Values, as far as statistics need to know them; `squares` adds up their squared distances from the mean.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    sum: f64,
    mean: f64,
    squares: f64,
}

impl Summary for Moments {
    type Value = f64;

    fn of(value: f64) -> Moments {
        Moments {
            count: 1,
            sum: value,
            mean: value,
            squares: 0.0,
        }
    }

    /// Chan, Golub and LeVeque: Updating Formulae and a Pairwise Algorithm for Computing Sample Variances (1979).
    fn merge(self, other: Moments) -> Moments {
        if self.count == 0 {
            return other;
        }
        if other.count == 0 {
            return self;
        }
        let count = self.count + other.count;
        let distance = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        Moments {
            count,
            sum: self.sum + other.sum,
            mean: self.mean + distance * share,
            squares: self.squares + other.squares + distance * distance * self.count as f64 * share,
        }
    }
}

impl Moments {
    fn statistic(self, statistic: Statistic) -> Option<f64> {
        let variance = |sample: bool| {
            let divisor = self.count.checked_sub(u64::from(sample))?;
            (divisor > 0).then(|| self.squares / divisor as f64)
        };
        match statistic {
            Statistic::Sum => (self.count > 0).then_some(self.sum),
            Statistic::Variance { sample } => variance(sample),
            Statistic::Deviation { sample } => variance(sample).map(f64::sqrt),
            Statistic::BitAnd | Statistic::BitOr | Statistic::BitXor => None,
        }
    }
}

/// What the operations on bits make of values.
#[derive(Clone, Copy, Debug)]
struct Bits {
    and: u64,
    or: u64,
    xor: u64,
}

impl Default for Bits {
    fn default() -> Bits {
        Bits {
            and: u64::MAX,
            or: 0,
            xor: 0,
        }
    }
}

impl Summary for Bits {
    type Value = u64;

    fn of(value: u64) -> Bits {
        Bits {
            and: value,
            or: value,
            xor: value,
        }
    }

    fn merge(self, other: Bits) -> Bits {
        Bits {
            and: self.and & other.and,
            or: self.or | other.or,
            xor: self.xor ^ other.xor,
        }
    }
}

/// The values in a frame that moves.
#[derive(Debug, Default)]
struct TwoStacks<S: Summary> {
    /// What came last.
    new: Vec<S::Value>,
    of_new: S,
    /// What leaves first, the oldest on top.
    old: Vec<S>,
}

impl<S: Summary> TwoStacks<S> {
    /// # Errors
    /// As those of [`ask_for`].
    fn push(&mut self, value: S::Value) -> Result<()> {
        if self.new.len() == self.new.capacity() {
            ask_for(2 * self.new.capacity() * size_of::<S::Value>())?;
        }
        self.new.push(value);
        self.of_new = self.of_new.merge(S::of(value));
        Ok(())
    }

    /// # Errors
    /// As those of [`ask_for`].
    fn pop_oldest(&mut self) -> Result<()> {
        if self.old.is_empty() {
            if self.old.capacity() < self.new.len() {
                ask_for(self.new.len() * size_of::<S>())?;
                self.old.reserve_exact(self.new.len());
            }
            let mut following = S::default();
            for value in self.new.drain(..).rev() {
                following = S::of(value).merge(following);
                self.old.push(following);
            }
            self.of_new = S::default();
        }
        self.old.pop();
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.old.is_empty()
    }

    fn summary(&self) -> S {
        let old = self.old.last().copied().unwrap_or_default();
        old.merge(self.of_new)
    }

    fn heap_bytes(&self) -> usize {
        self.new.capacity() * size_of::<S::Value>() + self.old.capacity() * size_of::<S>()
    }
}

/// A statistic of the doubles in a frame; NULLs are none.
#[derive(Debug)]
pub(super) struct MovingStatistic {
    statistic: Statistic,
    frame: TwoStacks<Moments>,
}

impl MovingStatistic {
    pub(super) fn new(statistic: Statistic) -> MovingStatistic {
        MovingStatistic {
            statistic,
            frame: TwoStacks::default(),
        }
    }
}

impl Accumulator for MovingStatistic {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in as_float64_array(&values[0])?.iter().flatten() {
            self.frame.push(value)?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let statistic = self.frame.summary().statistic(self.statistic);
        Ok(ScalarValue::Float64(statistic))
    }

    moves!();
}

/// An operation on the bits of the numbers in a frame; NULLs are none.
#[derive(Debug)]
struct MovingBits {
    statistic: Statistic,
    frame: TwoStacks<Bits>,
}

impl Accumulator for MovingBits {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in as_uint64_array(&values[0])?.iter().flatten() {
            self.frame.push(value)?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let bits = self.frame.summary();
        let bits = match self.statistic {
            Statistic::BitAnd => bits.and,
            Statistic::BitOr => bits.or,
            _ => bits.xor,
        };
        Ok(ScalarValue::UInt64(
            (!self.frame.is_empty()).then_some(bits),
        ))
    }

    moves!();
}

/// DataFusion's aggregate, except over frames that move.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Moving {
    stock: Arc<AggregateUDF>,
    statistic: Statistic,
}

impl Moving {
    pub(super) fn new(stock: Arc<AggregateUDF>, statistic: Statistic) -> Moving {
        Moving { stock, statistic }
    }
}

impl AggregateUDFImpl for Moving {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn signature(&self) -> &Signature {
        self.stock.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.stock.return_type(arg_types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.stock.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.stock.state_fields(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.stock.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.stock.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        Ok(match self.statistic {
            _ if args.is_distinct => self.stock.create_sliding_accumulator(args)?,
            Statistic::BitAnd | Statistic::BitOr | Statistic::BitXor => Box::new(MovingBits {
                statistic: self.statistic,
                frame: TwoStacks::default(),
            }),
            statistic => Box::new(MovingStatistic::new(statistic)),
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;

    use super::*;

    fn array(values: &[Option<f64>]) -> Vec<ArrayRef> {
        vec![Arc::new(Float64Array::from(values.to_vec()))]
    }

    #[test]
    fn a_large_value_leaves_without_a_trace() {
        let values = [Some(1e20), Some(1.0), None, Some(2.0), Some(4.0)];
        for (statistic, expected) in [
            (Statistic::Sum, 6.0),
            (Statistic::Variance { sample: false }, 1.0),
            (Statistic::Variance { sample: true }, 2.0),
            (Statistic::Deviation { sample: false }, 1.0),
        ] {
            let mut frame = MovingStatistic::new(statistic);
            assert_eq!(frame.evaluate().unwrap(), ScalarValue::Float64(None));
            frame.update_batch(&array(&values[..3])).unwrap();
            frame.retract_batch(&array(&values[..1])).unwrap();
            frame.update_batch(&array(&values[3..])).unwrap();
            frame.retract_batch(&array(&values[1..3])).unwrap();
            assert_eq!(
                frame.evaluate().unwrap(),
                ScalarValue::Float64(Some(expected)),
                "{statistic:?}"
            );
            frame.retract_batch(&array(&values[3..])).unwrap();
            assert_eq!(frame.evaluate().unwrap(), ScalarValue::Float64(None));
        }
    }
}
