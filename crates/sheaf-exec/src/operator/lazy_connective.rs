//! AND and OR whose second condition is an error in rows that do not come to it.
//!
//! DataFusion computes both conditions for all rows of a batch, but where the first one decides nearly all of them. The
//! value of a subquery that finds several rows is error 1242, and only where it is asked for:
//!
//! ```text
//!   id = 1 OR (SELECT x FROM u WHERE u.k = t.k) = 10        computed for the rows whose id is not 1
//! ```
//!
//! So there the second condition is computed for the rows that come to it, in a batch of these alone.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::{and_kleene, cast, or_kleene};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_expr::expressions::BinaryExpr;
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::functions::closed::is_or_calls;
use crate::functions::control::ONLY_ROW;
use crate::functions::one_row::ONE_ROW;

/// The same expression, whose connectives compute what may be an error for no row that does not come to it.
pub fn lazily_connected(expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    if !asks_for_one_row(&expr) {
        return Ok(expr);
    }
    let lazy = expr.transform_up(|expr| {
        let connective = expr.downcast_ref::<BinaryExpr>();
        let Some(connective) = connective.filter(|connective| {
            matches!(connective.op(), Operator::And | Operator::Or)
                && asks_for_one_row(connective.right())
        }) else {
            return Ok(Transformed::no(expr));
        };
        let lazy = LazyConnective {
            left: Arc::clone(connective.left()),
            is_or: *connective.op() == Operator::Or,
            right: Arc::clone(connective.right()),
        };
        Ok(Transformed::yes(Arc::new(lazy) as Arc<dyn PhysicalExpr>))
    })?;
    Ok(lazy.data)
}

/// Whether the value of a subquery in it is an error if there are several rows.
fn asks_for_one_row(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let asks = |expr: &Arc<dyn PhysicalExpr>| {
        let call = expr.downcast_ref::<ScalarFunctionExpr>();
        call.is_some_and(|call| {
            call.fun().name() == ONE_ROW
                || is_or_calls(call.fun(), |function| function.name == ONLY_ROW)
        })
    };
    // The closure does not fail.
    expr.exists(|expr| Ok(asks(expr))).unwrap_or(true)
}

/// See the module's comment.
#[derive(Debug)]
struct LazyConnective {
    left: Arc<dyn PhysicalExpr>,
    is_or: bool,
    right: Arc<dyn PhysicalExpr>,
}

impl PartialEq for LazyConnective {
    fn eq(&self, other: &Self) -> bool {
        self.left.eq(&other.left) && self.is_or == other.is_or && self.right.eq(&other.right)
    }
}

impl Eq for LazyConnective {}

impl Hash for LazyConnective {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.left.hash(state);
        self.is_or.hash(state);
        self.right.hash(state);
    }
}

impl LazyConnective {
    fn word(&self) -> &'static str {
        match self.is_or {
            true => "OR",
            false => "AND",
        }
    }
}

impl fmt::Display for LazyConnective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.word(), self.right)
    }
}

impl PhysicalExpr for LazyConnective {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        Ok(self.left.nullable(schema)? || self.right.nullable(schema)?)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let condition = |value: ColumnarValue| -> Result<BooleanArray> {
            let array = value.into_array(rows)?;
            Ok(cast(&array, &DataType::Boolean)?.as_boolean().clone())
        };
        let left = condition(self.left.evaluate(batch)?)?;
        let undecided = left.iter().map(|left| Some(left != Some(self.is_or)));
        let undecided: BooleanArray = undecided.collect();
        // Of the other rows it gives anything, which changes nothing.
        let right = condition(self.right.evaluate_selection(batch, &undecided)?)?;
        let both = match self.is_or {
            true => or_kleene(&left, &right)?,
            false => and_kleene(&left, &right)?,
        };
        Ok(ColumnarValue::Array(Arc::new(both)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let Ok([left, right]) = <[Arc<dyn PhysicalExpr>; 2]>::try_from(children) else {
            return internal_err!("a connective of two conditions");
        };
        Ok(Arc::new(LazyConnective {
            left,
            is_or: self.is_or,
            right,
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.left.fmt_sql(f)?;
        write!(f, " {} ", self.word())?;
        self.right.fmt_sql(f)
    }
}
