//! MySQL's aggregate functions.
//!
//! Where DataFusion's accumulators compute the right thing they are used, and only the type of the result is ours: SUM
//! of integers is a DECIMAL, MIN of a DATETIME(3) keeps its fraction digits. MIN and MAX of strings follow their
//! collation, GROUP_CONCAT and ANY_VALUE are our own.
//!
//! AVG is not here: the pass over the syntax tree writes it as SUM / COUNT, which has exactly its type and rounding.
//! Deviations and the bit aggregates are DataFusion's, over arguments that the pass has made numbers; over frames that
//! move, they and sums of doubles are our own too.

mod any_value;
mod extreme;
mod group_concat;
mod moving;
mod ranged_sum;
mod sum;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{Field, FieldRef};
use datafusion_common::Result;
use datafusion_expr::AggregateUDF;

use crate::functions::limits::{ask_for, stopped};

pub use any_value::AnyValue;
pub use extreme::Extreme;
pub use group_concat::{GroupConcat, NAME as GROUP_CONCAT};
use moving::{Moving, Statistic};
pub use sum::Sum;

static AGGREGATES: LazyLock<HashMap<String, Arc<AggregateUDF>>> = LazyLock::new(|| {
    use datafusion_functions_aggregate as stock;
    let functions = [
        Arc::new(AggregateUDF::from(Sum::new())),
        Arc::new(AggregateUDF::from(Extreme::min())),
        Arc::new(AggregateUDF::from(Extreme::max())),
        Arc::new(AggregateUDF::from(GroupConcat::new())),
        Arc::new(AggregateUDF::from(AnyValue::new())),
        stock::count::count_udaf(),
        moving(
            stock::stddev::stddev_udaf(),
            Statistic::Deviation { sample: true },
        ),
        moving(
            stock::stddev::stddev_pop_udaf(),
            Statistic::Deviation { sample: false },
        ),
        moving(
            stock::variance::var_samp_udaf(),
            Statistic::Variance { sample: true },
        ),
        moving(
            stock::variance::var_pop_udaf(),
            Statistic::Variance { sample: false },
        ),
        moving(stock::bit_and_or_xor::bit_and_udaf(), Statistic::BitAnd),
        moving(stock::bit_and_or_xor::bit_or_udaf(), Statistic::BitOr),
        moving(stock::bit_and_or_xor::bit_xor_udaf(), Statistic::BitXor),
        stock::grouping::grouping_udaf(),
        stock::first_last::first_value_udaf(),
        stock::first_last::last_value_udaf(),
    ];
    functions
        .into_iter()
        .map(|function| (function.name().to_string(), function))
        .collect()
});

/// To be called between the values of a batch by functions that keep them: a batch may be large.
///
/// # Errors
/// The statement shall stop, perhaps because the process has too much memory.
fn safe_point() -> Result<()> {
    match sheaf_memory::may_go_on() {
        true => Ok(()),
        false => Err(stopped()),
    }
}

fn moving(stock: Arc<AggregateUDF>, statistic: Statistic) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Moving::new(stock, statistic)))
}

/// The aggregate function of this name. `$sum` and `$group_concat` are ours under names that DataFusion's
/// rewrites for `sum` do not recognise.
pub fn aggregate_function(name: &str) -> Option<Arc<AggregateUDF>> {
    AGGREGATES.get(name).cloned()
}

/// Names of all aggregate functions.
pub fn aggregate_names() -> impl Iterator<Item = &'static str> {
    AGGREGATES.keys().map(String::as_str)
}

/// `field` as the result of an aggregate: NULL for an empty group, everything else as it is.
fn result_field(name: &str, field: &Field) -> FieldRef {
    Arc::new(field.clone().with_name(name).with_nullable(true))
}
