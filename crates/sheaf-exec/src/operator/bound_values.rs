//! Values that a plan is given each time that it runs.
//!
//! A correlated subquery that runs for each row of a query is planned once. Where it names a column of that row, its
//! plan has a place, which is bound to the row's value before each run:
//!
//! ```text
//!   SELECT v FROM t WHERE lo <= ?0 AND v > ?1 ORDER BY lo DESC LIMIT 1
//!
//!   run       bound values     range of the index lo     condition on the rows
//!   row 1     10, 3            lo <= 10                  v > ?1, which is 3
//!   row 2     20, 7            lo <= 20                  v > ?1, which is 7
//! ```
//!
//! Expressions read the value of a place when they are evaluated ([`BoundValues::call`]). What a scan reads follows
//! from the values in the planner's own way, so the planner says it before each run ([`BoundRead`]).
//!
//! A plan with places is run by one task, one run after the other.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue, internal_datafusion_err};
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use sheaf_access::{Condition, ScanSpec};
use sheaf_storage::KeyRange;

/// The values that a plan runs with.
#[derive(Clone, Debug, Default)]
pub struct BoundValues {
    values: Arc<Mutex<Vec<ScalarValue>>>,
}

impl BoundValues {
    pub fn new(values: &[ScalarValue]) -> BoundValues {
        BoundValues {
            values: Arc::new(Mutex::new(values.to_vec())),
        }
    }

    /// The plan's next run has these.
    pub fn bind(&self, values: &[ScalarValue]) {
        *lock(&self.values) = values.to_vec();
    }

    /// The value of a place.
    pub fn get(&self, place: usize) -> Result<ScalarValue> {
        let value = lock(&self.values).get(place).cloned();
        value.ok_or_else(|| internal_datafusion_err!("no value is bound to place {place}"))
    }

    /// An expression that reads the value of a place, whose type is that of `field`.
    pub fn call(&self, place: usize, field: &FieldRef) -> Expr {
        let function = BoundValue {
            values: self.clone(),
            place,
            returns: Arc::new(field.as_ref().clone().with_nullable(true)),
            signature: Signature::nullary(Volatility::Immutable),
        };
        ScalarUDF::from(function).call(Vec::new())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A function without arguments.
#[derive(Debug)]
struct BoundValue {
    values: BoundValues,
    place: usize,
    returns: FieldRef,
    signature: Signature,
}

impl PartialEq for BoundValue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.values.values, &other.values.values) && self.place == other.place
    }
}

impl Eq for BoundValue {}

impl Hash for BoundValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place.hash(state);
    }
}

impl ScalarUDFImpl for BoundValue {
    fn name(&self) -> &'static str {
        "$bound"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.returns.data_type().clone())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&self.returns))
    }

    /// As of our other functions.
    fn evaluate_bounds(&self, _inputs: &[&Interval]) -> Result<Interval> {
        Interval::make_unbounded(self.returns.data_type())
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.values.get(self.place)?))
    }
}

/// What follows for a scan from the values of a run.
#[derive(Clone, Debug)]
pub struct BoundParts {
    pub ranges: Vec<KeyRange>,
    pub index_condition: Option<Condition>,
    pub row_condition: Option<Condition>,
}

/// Where a scan finds what its next run reads.
#[derive(Default)]
pub struct BoundRead {
    next: Mutex<Option<BoundParts>>,
}

impl BoundRead {
    /// The next run of the scan reads this.
    pub fn bind(&self, parts: BoundParts) {
        *lock(&self.next) = Some(parts);
    }

    /// The scan as it reads now: `planned`, but for what follows from values.
    pub(super) fn spec(&self, planned: &ScanSpec) -> Result<ScanSpec> {
        let parts = lock(&self.next).take();
        let parts = parts.ok_or_else(|| internal_datafusion_err!("a scan runs unbound"))?;
        Ok(ScanSpec {
            ranges: parts.ranges,
            index_condition: parts.index_condition,
            row_condition: parts.row_condition,
            ..planned.clone()
        })
    }
}

impl fmt::Debug for BoundRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundRead").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::RecordBatch;
    use arrow::datatypes::{Field, Schema};
    use datafusion_common::DFSchema;
    use datafusion_expr::execution_props::ExecutionProps;
    use datafusion_physical_expr::create_physical_expr;

    use super::*;

    #[test]
    fn an_expression_reads_the_value_of_the_run() {
        let number = |value| ScalarValue::Int32(Some(value));
        let values = BoundValues::new(&[number(1), number(2)]);
        let field: FieldRef = Arc::new(Field::new("", DataType::Int32, false));
        let expr = values.call(1, &field);
        let (properties, slots) = (ExecutionProps::new(), Default::default());
        let expr = create_physical_expr(&expr, &DFSchema::empty(), &properties, &slots).unwrap();
        let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let read = || match expr.evaluate(&nothing).unwrap() {
            ColumnarValue::Scalar(value) => value,
            ColumnarValue::Array(array) => panic!("{array:?}"),
        };
        assert_eq!(read(), number(2));
        values.bind(&[number(3), number(4)]);
        assert_eq!(read(), number(4));
    }

    #[test]
    fn a_place_without_a_value_is_an_error() {
        assert!(BoundValues::default().get(0).is_err());
    }
}
