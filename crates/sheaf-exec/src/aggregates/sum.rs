//! SUM: exact numbers add up to a DECIMAL, doubles to a double. The sum of no values is NULL. One that its type does
//! not hold is error 1690.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::Result;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use sheaf_types::number::MAX_WIDE_DIGITS;

use super::moving::{MovingStatistic, Statistic};
use super::ranged_sum::{FiniteSum, FiniteSums, SAFE_PRECISION, WideSum, WideSums};
use super::result_field;
use crate::functions::SqlType;
use crate::functions::types::{DECIMALS_KEY, MAX_PRECISION, float_decimals};

/// Digits that a sum may have more than its argument: MySQL's room for 10^22 rows.
const EXTRA_DIGITS: u8 = 22;

/// DataFusion's accumulators with MySQL's type of the result.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Sum {
    signature: Signature,
    accumulators: datafusion_functions_aggregate::sum::Sum,
}

impl Sum {
    pub fn new() -> Sum {
        Sum {
            signature: Signature::user_defined(Volatility::Immutable),
            accumulators: datafusion_functions_aggregate::sum::Sum::new(),
        }
    }
}

impl Default for Sum {
    fn default() -> Self {
        Self::new()
    }
}

fn sum_type(argument: &DataType) -> DataType {
    match argument {
        DataType::Decimal128(precision, scale) => DataType::Decimal128(
            precision.saturating_add(EXTRA_DIGITS).min(MAX_PRECISION),
            *scale,
        ),
        DataType::Decimal256(precision, scale) => DataType::Decimal256(
            precision
                .saturating_add(EXTRA_DIGITS)
                .min(MAX_WIDE_DIGITS.max(*precision)),
            *scale,
        ),
        DataType::Null => DataType::Float64,
        integer if integer.is_integer() => DataType::Decimal128(MAX_PRECISION, 0),
        _ => DataType::Float64,
    }
}

/// Whether a sum is looked at, since it may leave the range: a double, or a wide DECIMAL.
fn is_checked(args: &AccumulatorArgs<'_>) -> bool {
    let ty = args.return_field.data_type();
    is_double(args) || matches!(ty, DataType::Decimal256(..))
}

fn is_double(args: &AccumulatorArgs<'_>) -> bool {
    args.return_field.data_type() == &DataType::Float64
}

/// Whether so many digits are added up that the sum may leave an `i128`. Those of DISTINCT values are DataFusion's.
fn is_wide(args: &AccumulatorArgs<'_>) -> bool {
    let is_wide = |field: &FieldRef| {
        let ty = field.data_type();
        matches!(ty, DataType::Decimal128(precision, _) if *precision > SAFE_PRECISION)
    };
    !args.is_distinct && args.expr_fields.iter().any(is_wide)
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        "$sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Integers add up as DECIMALs. Strings and dates stay here: the typing rule turns them into doubles.
    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arg_types
            .iter()
            .map(|ty| match ty {
                integer if integer.is_integer() => DataType::Decimal128(20, 0),
                DataType::Float32 | DataType::Null => DataType::Float64,
                other => other.clone(),
            })
            .collect())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(sum_type(&arg_types[0]))
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        let field = Field::new("", sum_type(arg_fields[0].data_type()), true);
        // A quotient's guard digits stay hidden in its sum.
        let decimals = match SqlType::of(&arg_fields[0]) {
            SqlType::Decimal {
                scale, decimals, ..
            } if decimals != scale => Some(decimals),
            SqlType::Float | SqlType::Double => float_decimals(&arg_fields[0]),
            _ => None,
        };
        let metadata = decimals.map(|decimals| (DECIMALS_KEY.to_string(), decimals.to_string()));
        Ok(result_field(
            self.name(),
            &field.with_metadata(metadata.into_iter().collect()),
        ))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let is_checked = is_checked(&args);
        if is_wide(&args) {
            return Ok(Box::new(WideSum::new(args.return_field.data_type())));
        }
        let sum = self.accumulators.accumulator(args)?;
        Ok(match is_checked {
            true => Box::new(FiniteSum(sum)),
            false => sum,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.accumulators.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.accumulators.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let is_checked = is_checked(&args);
        if is_wide(&args) {
            return Ok(Box::new(WideSums::new(args.return_field.data_type())));
        }
        let sums = self.accumulators.create_groups_accumulator(args)?;
        Ok(match is_checked {
            true => Box::new(FiniteSums(sums)),
            false => sums,
        })
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        if is_wide(&args) {
            return Ok(Box::new(WideSum::new(args.return_field.data_type())));
        }
        if is_double(&args) && !args.is_distinct {
            let moving = MovingStatistic::new(Statistic::Sum);
            return Ok(Box::new(FiniteSum(Box::new(moving))));
        }
        let is_checked = is_checked(&args);
        let sum = self.accumulators.create_sliding_accumulator(args)?;
        Ok(match is_checked {
            true => Box::new(FiniteSum(sum)),
            false => sum,
        })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}
