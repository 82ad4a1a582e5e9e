//! Expressions whose results for a whole batch may take more memory than they are given.
//!
//! Kernels refuse to make more than a share of the query memory at a time ([`ResultLimits`]). A batch has thousands of
//! rows, so a function that lengthens its text comes to that limit although each of its values is small enough. Then
//! the batch is cut in half, and each half is evaluated by itself:
//!
//! ```text
//!   length(repeat(s, 100000))    8192 rows: too much    4096 rows: too much    2048, 2048, 2048, 2048
//! ```
//!
//! What comes out is put together again, so this helps where the long texts are something in between. Where they are
//! the result, [`crate::operator::bounded_projection`] hands them on in smaller batches.

use std::sync::Arc;

use arrow::compute::concat;
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion_expr::{ColumnarValue, Operator, Volatility};
use datafusion_physical_expr::expressions::{BinaryExpr, CaseExpr, Column, InListExpr, Literal};
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::functions::closed::is_or_calls;
use crate::functions::limits::{ResultLimits, ask_for};
use crate::functions::{EvaluationError, Function, as_function};
use crate::long_literal::{bytes_of, long_constant_bytes};
use crate::operator::wrapped_expr::{as_inner, same_as_inner};

/// The results of an expression may take half of what a function may make of them, and so many bytes at least. Each
/// worker has them twice while they are put together, and nobody has reserved them.
const PARTS: usize = 2;
const LEAST_BYTES: usize = 16 << 20;
/// What the strings of a batch take is bounded. Texts that are made of them may have each of them so many times: more
/// are many, although no function makes long texts of short ones.
pub const MOST_COPIES: usize = 4;
/// Texts of many rows have no shorter literals in them that count.
const COUNTED_LITERAL_BYTES: usize = 256;

/// Has the parts of a condition, or the whole expression, evaluated for fewer rows at a time where that is needed.
pub fn bounded(expr: Arc<dyn PhysicalExpr>, limits: &ResultLimits) -> Arc<dyn PhysicalExpr> {
    if !may_be_long(&expr) {
        return expr;
    }
    // The rest of the condition must stay visible to rules that look at its parts.
    if let Some(both) = expr.downcast_ref::<BinaryExpr>()
        && *both.op() == Operator::And
    {
        let left = bounded(Arc::clone(both.left()), limits);
        let right = bounded(Arc::clone(both.right()), limits);
        return Arc::new(BinaryExpr::new(left, Operator::And, right));
    }
    Arc::new(BoundedExpr {
        repeated_bytes: repeated_bytes(&expr),
        lengthened_bytes: limits.lengthened_bytes(),
        inner: expr,
        most_bytes: (limits.batch_bytes / PARTS).max(LEAST_BYTES),
    })
}

/// Whether values of a type are texts or byte strings, of any length.
pub fn is_string(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::Utf8View | DataType::Binary | DataType::BinaryView
    )
}

/// Whether an expression over such rows makes a text. A column is there without being made.
pub fn makes_text(expr: &Arc<dyn PhysicalExpr>, rows: &Schema) -> bool {
    let is_there = expr.is::<Column>() || expr.is::<Literal>();
    !is_there && expr.data_type(rows).is_ok_and(|ty| is_string(&ty))
}

/// How often the texts that expressions make have the string of the same column or literal in them, at most.
pub fn copies_made<'e>(
    exprs: impl IntoIterator<Item = &'e Arc<dyn PhysicalExpr>>,
    rows: &Schema,
) -> usize {
    let (mut of_columns, mut of_literals) = (vec![0; rows.fields().len()], 0);
    let texts = exprs.into_iter().filter(|expr| makes_text(expr, rows));
    for expr in texts {
        // The closure does not fail.
        let _ = expr.apply(|part| {
            if let Some(column) = part.downcast_ref::<Column>() {
                let field = rows.fields().get(column.index());
                let counts = field.is_some_and(|field| is_string(field.data_type()));
                if let Some(copies) = of_columns.get_mut(column.index()).filter(|_| counts) {
                    *copies += 1;
                }
            } else if let Some(literal) = part.downcast_ref::<Literal>() {
                of_literals += usize::from(is_counted(literal.value()));
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    of_columns.into_iter().fold(of_literals, usize::max)
}

/// Whether a literal in many texts counts.
pub fn is_counted(literal: &ScalarValue) -> bool {
    bytes_of(literal) > COUNTED_LITERAL_BYTES
}

/// Whether an expression has functions whose results may be much longer than their arguments.
fn lengthens(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let lengthens = |expr: &Arc<dyn PhysicalExpr>| {
        let call = expr.downcast_ref::<ScalarFunctionExpr>();
        call.is_some_and(|call| is_or_calls(call.fun(), Function::lengthens))
    };
    // The closure does not fail.
    expr.exists(|expr| Ok(lengthens(expr))).unwrap_or(true)
}

/// Whether an expression has functions that make long texts of short ones, or may have put long constants in theirs.
pub fn lengthens_much(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let grows = |expr: &Arc<dyn PhysicalExpr>| {
        let call = expr.downcast_ref::<ScalarFunctionExpr>();
        call.is_some_and(|call| is_or_calls(call.fun(), |function| function.growing))
    };
    // The closure does not fail.
    expr.exists(|expr| Ok(grows(expr))).unwrap_or(true)
        || has_long_constant(expr) && long_constant_bytes(expr) == 0
}

fn has_long_constant(expr: &Arc<dyn PhysicalExpr>) -> bool {
    // The closure does not fail.
    expr.exists(|expr| Ok(long_constant_bytes(expr) > 0))
        .unwrap_or(true)
}

/// Bytes of long constants that are part of the results for each row, or of what these are made of.
pub(crate) fn repeated_bytes(expr: &Arc<dyn PhysicalExpr>) -> usize {
    match long_constant_bytes(expr) == 0 && !lengthens(expr) {
        true => 0,
        false => bytes_of_row(expr),
    }
}

/// Bytes of long constants that there are for each row at the same time, while an expression is computed. What makes no
/// text takes what is the same for all rows as it is. What gives one of its parts, gives the longest one at most, and
/// conditions of AND and OR are computed one after the other.
fn bytes_of_row(expr: &Arc<dyn PhysicalExpr>) -> usize {
    let comparison = expr.downcast_ref::<BinaryExpr>();
    let call = expr.downcast_ref::<ScalarFunctionExpr>();
    let parts = expr.children().into_iter();
    let connects = |expr: &BinaryExpr| matches!(expr.op(), Operator::And | Operator::Or);
    if expr.is::<CaseExpr>() || comparison.is_some_and(connects) || call.is_some_and(chooses) {
        return parts.map(bytes_of_row).max().unwrap_or(0);
    }
    let makes_text = call.is_some_and(|call| is_string(call.return_type()));
    let compares = comparison.is_some() || expr.is::<InListExpr>();
    let takes_constants = compares || call.is_some() && !makes_text;
    let parts = parts.filter(|part| !takes_constants || is_of_rows(part));
    let parts = parts.map(bytes_of_row);
    parts.fold(long_constant_bytes(expr), usize::saturating_add)
}

/// Whether a function gives one of its arguments.
fn chooses(call: &ScalarFunctionExpr) -> bool {
    const CHOICES: [&str; 4] = ["$coalesce", "$greatest", "$least", "elt"];
    as_function(call.fun()).is_some_and(|function| CHOICES.contains(&function.name))
}

/// Whether an expression may differ from row to row.
fn is_of_rows(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let differs = |expr: &Arc<dyn PhysicalExpr>| {
        let call = expr.downcast_ref::<ScalarFunctionExpr>();
        let is_volatile =
            call.is_some_and(|call| call.fun().signature().volatility == Volatility::Volatile);
        is_volatile || expr.is::<Column>()
    };
    // The closure does not fail.
    expr.exists(|expr| Ok(differs(expr))).unwrap_or(true)
}

/// Whether the results of an expression for many rows may take much more memory than what they are made of: by
/// functions, or because a long constant is repeated.
pub(crate) fn may_be_long(expr: &Arc<dyn PhysicalExpr>) -> bool {
    lengthens(expr) || has_long_constant(expr)
}

/// The expression itself, for callers that evaluate it for few rows at a time.
pub(crate) fn unbounded(expr: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    match expr.downcast_ref::<BoundedExpr>() {
        Some(bounded) => &bounded.inner,
        None => expr,
    }
}

/// Whether it is an error for want of room that fewer rows would not need.
pub(crate) fn is_batch_too_large(error: &DataFusionError) -> bool {
    EvaluationError::find(error).is_some_and(EvaluationError::is_batch_too_large)
}

/// See the module's comment.
#[derive(Debug)]
struct BoundedExpr {
    inner: Arc<dyn PhysicalExpr>,
    /// The results for a batch.
    most_bytes: usize,
    /// What may be made of long constants at a time, and what they add to that for each row.
    lengthened_bytes: usize,
    repeated_bytes: usize,
}

same_as_inner!(BoundedExpr);

impl PhysicalExpr for BoundedExpr {
    as_inner!();

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let repeated_bytes = self.repeated_bytes.saturating_mul(rows);
        let is_too_much = rows > 1 && repeated_bytes > self.lengthened_bytes;
        let error = match is_too_much {
            // It need not be tried.
            true => EvaluationError::batch_too_large("expression", self.lengthened_bytes).into(),
            false => match self.inner.evaluate(batch) {
                Err(error) if rows > 1 && is_batch_too_large(&error) => error,
                outcome => return outcome,
            },
        };
        let half = rows / 2;
        let mut bytes = 0;
        let mut halves = Vec::with_capacity(2);
        for part in [batch.slice(0, half), batch.slice(half, rows - half)] {
            let array = self.evaluate(&part)?.into_array(part.num_rows())?;
            bytes += array.get_array_memory_size();
            if bytes > self.most_bytes {
                return Err(error);
            }
            halves.push(array);
        }
        // They are there twice while they are put together.
        ask_for(bytes)?;
        let halves: Vec<_> = halves.iter().map(|half| half.as_ref()).collect();
        Ok(ColumnarValue::Array(concat(&halves)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let Some(inner) = children.pop() else {
            return internal_err!("a bounded expression without its expression");
        };
        Ok(Arc::new(BoundedExpr {
            repeated_bytes: repeated_bytes(&inner),
            inner,
            most_bytes: self.most_bytes,
            lengthened_bytes: self.lengthened_bytes,
        }))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion_physical_expr::expressions::{CastExpr, binary, case, in_list, lit};

    use super::*;

    #[test]
    fn constants_count_where_rows_have_copies_of_them() {
        let rows = Schema::new(vec![Field::new("a", DataType::Utf8View, true)]);
        let column = || -> Arc<dyn PhysicalExpr> { Arc::new(Column::new("a", 0)) };
        let long = |bytes: usize| lit(ScalarValue::Utf8View(Some("x".repeat(bytes))));
        let connect = |left, op, right| binary(left, op, right, &rows).unwrap();
        let equal = |bytes: usize| connect(column(), Operator::Eq, long(bytes));
        assert_eq!(bytes_of_row(&long(5_000)), 5_000);
        assert_eq!(bytes_of_row(&equal(5_000)), 0);
        let chosen = |bytes: [usize; 2]| {
            let branches = vec![(equal(9_000), long(bytes[0]))];
            case(None, branches, Some(long(bytes[1]))).unwrap()
        };
        let is_chosen = connect(chosen([5_000, 6_000]), Operator::Eq, column());
        assert_eq!(bytes_of_row(&is_chosen), 6_000);
        let other = connect(chosen([7_000, 6_000]), Operator::Lt, chosen([5_000, 5_000]));
        assert_eq!(bytes_of_row(&other), 12_000);
        let any = connect(is_chosen, Operator::Or, other);
        assert_eq!(bytes_of_row(&any), 12_000);
        let members = vec![long(8_000), chosen([5_000, 5_000])];
        let member = in_list(column(), members, &false, &rows).unwrap();
        assert_eq!(bytes_of_row(&member), 5_000);
    }

    #[test]
    fn copies_are_of_one_column_or_literal() {
        let rows = Schema::new(vec![
            Field::new("a", DataType::Utf8View, true),
            Field::new("b", DataType::Utf8View, true),
            Field::new("n", DataType::Int64, true),
        ]);
        let column = |at: usize| -> Arc<dyn PhysicalExpr> {
            Arc::new(Column::new(rows.field(at).name(), at))
        };
        let text = |expr: Arc<dyn PhysicalExpr>| -> Arc<dyn PhysicalExpr> {
            Arc::new(CastExpr::new(expr, DataType::Binary, None))
        };
        let copies = |exprs: &[Arc<dyn PhysicalExpr>]| copies_made(exprs, &rows);
        assert_eq!(copies(&[column(0), column(0), lit("x".repeat(1000))]), 0);
        assert_eq!(copies(&[text(column(0)), text(column(1)), column(0)]), 1);
        assert_eq!(copies(&[text(column(0)), text(text(column(0)))]), 2);
        // Numbers make short texts.
        assert_eq!(copies(&[text(column(2)), text(column(2))]), 0);
        let literal = || text(lit("x".repeat(1000)));
        assert_eq!(copies(&[literal(), literal(), text(lit("x"))]), 2);
    }
}
