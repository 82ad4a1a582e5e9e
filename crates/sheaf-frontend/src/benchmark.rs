//! BENCHMARK(count, expression): evaluates an expression so many times for each row, and is 0.
//!
//! What the expression names are the function's other arguments. The function has the expression itself, and evaluates
//! it over a batch of these. A subquery in it counts as a column: it is evaluated once.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema};
use datafusion_common::{DataFusionError, Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use sheaf_access::CancelFlag;
use sheaf_algebra::scalar::physical::Batches;
use sheaf_algebra::{ColumnId, Scalar};
use sheaf_exec::functions::EvaluationError;
use sheaf_exec::functions::limits::ResultLimits;
use sheaf_types::error::codes;

/// The function's name in lowered queries.
const BENCHMARK: &str = "benchmark";

/// The function over an expression, and its arguments behind the count, which is a BIGINT.
pub(crate) fn benchmark_function(
    expression: Scalar,
    cancel: CancelFlag,
) -> (Arc<ScalarUDF>, Vec<Scalar>) {
    let mut columns: Vec<(ColumnId, FieldRef)> = Vec::new();
    add_columns(&expression, &mut columns);
    let arguments = columns.iter();
    let arguments = arguments.map(|(id, field)| Scalar::column(*id, Arc::clone(field)));
    let arguments = arguments.collect();
    let function = ScalarUDF::from(Benchmark {
        expression: Arc::new(expression),
        columns,
        cancel,
        signature: Signature::variadic_any(Volatility::Volatile),
    });
    (Arc::new(function), arguments)
}

fn add_columns(expression: &Scalar, columns: &mut Vec<(ColumnId, FieldRef)>) {
    if let Some(id) = expression.as_column()
        && !columns.iter().any(|(known, _)| *known == id)
    {
        columns.push((id, Arc::clone(expression.field())));
    }
    expression.for_each_operand(&mut |operand| add_columns(operand, columns));
}

struct Benchmark {
    expression: Arc<Scalar>,
    /// What the expression names, in the order of the arguments.
    columns: Vec<(ColumnId, FieldRef)>,
    cancel: CancelFlag,
    signature: Signature,
}

impl fmt::Debug for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(BENCHMARK)
    }
}

impl PartialEq for Benchmark {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.expression, &other.expression)
    }
}

impl Eq for Benchmark {}

impl Hash for Benchmark {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.expression).hash(state);
    }
}

impl ScalarUDFImpl for Benchmark {
    fn name(&self) -> &str {
        BENCHMARK
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    /// NULL where the count is NULL or negative.
    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let Some((count, values)) = arguments.args.split_first() else {
            return exec_err!("BENCHMARK without a count");
        };
        let counts = count.to_array(rows)?;
        let Some(counts) = counts.as_primitive_opt::<Int64Type>() else {
            return exec_err!("BENCHMARK of a {}", counts.data_type());
        };
        let fields = self.columns.iter().zip(&arguments.arg_fields[1..]);
        let fields = fields.enumerate().map(|(at, ((_, field), given))| {
            let field = Field::new(format!("c{at}"), given.data_type().clone(), true)
                .with_metadata(field.metadata().clone());
            Arc::new(field)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()));
        let values: Result<Vec<_>> = values.iter().map(|value| value.to_array(rows)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), values?, &options)?;
        let position = |id| self.columns.iter().position(|(known, _)| *known == id);
        let expression = Batches {
            schema: &schema,
            position: &position,
            options: &arguments.config_options,
        }
        .expression(&self.expression)?;
        let limits = arguments.config_options.extensions.get::<ResultLimits>();
        let made = (0..rows).map(|row| {
            let count = counts.is_valid(row).then(|| counts.value(row));
            let Some(count) = count else { return Ok(None) };
            if count < 0 {
                if let Some(limits) = limits {
                    limits.warn(wrong_count(count));
                }
                return Ok(None);
            }
            let row = batch.slice(row, 1);
            for _ in 0..count {
                self.cancel
                    .check()
                    .map_err(|error| DataFusionError::External(Box::new(error)))?;
                expression.evaluate(&row)?;
            }
            Ok(Some(0))
        });
        let made = made.collect::<Result<Int64Array>>()?;
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}

fn wrong_count(count: i64) -> EvaluationError {
    EvaluationError::new(
        codes::WRONG_VALUE_FOR_TYPE,
        format!("Incorrect count value: '{count}' for function {BENCHMARK}"),
    )
}
