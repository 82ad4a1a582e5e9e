//! What stands for an operand while a node is put to the typing rule.
//!
//! Where expressions are typed from below, the rule need not see what an operand is, but for its type. So the cost of a
//! node does not grow with what is below it. A stand-in is a call without arguments that has the operand's field. It
//! also says how large the operand is, because the rule repeats small operands only:
//!
//! ```text
//!   (((a + 1) * 2) - 3) * 4 BETWEEN 1 AND b      $operand BETWEEN 1 AND b, and $operand has 9 nodes
//! ```
//!
//! A body of a function of its own ([`crate::functions::closed`]) cannot have a stand-in. The rule leaves it there, and
//! its caller asks the rule again, with the operand as it is ([`crate::typing::stand_ins_in_bodies`]).

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, internal_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// How large an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its nodes, as [`crate::typing::nodes_of_call`] counts those of calls.
    pub nodes: usize,
    /// How many CASE are inside of each other.
    pub cases: usize,
}

/// A call that stands for the operand of this number.
pub fn stand_in(number: usize, field: FieldRef, size: Size) -> Expr {
    let stand_in = StandIn {
        number,
        field,
        size,
    };
    ScalarUDF::from(stand_in).call(Vec::new())
}

/// The number of the operand that an expression stands for.
pub fn stand_in_number(expr: &Expr) -> Option<usize> {
    of(expr).map(|stand_in| stand_in.number)
}

/// The size of the operand that an expression stands for.
pub(crate) fn size_behind(expr: &Expr) -> Option<Size> {
    of(expr).map(|stand_in| stand_in.size)
}

fn of(expr: &Expr) -> Option<&StandIn> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) if args.is_empty() => {
            func.inner().downcast_ref()
        }
        _ => None,
    }
}

#[derive(Debug)]
struct StandIn {
    number: usize,
    field: FieldRef,
    size: Size,
}

impl PartialEq for StandIn {
    fn eq(&self, other: &StandIn) -> bool {
        self.number == other.number
    }
}

impl Eq for StandIn {}

impl Hash for StandIn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl ScalarUDFImpl for StandIn {
    fn name(&self) -> &str {
        "$operand"
    }

    fn signature(&self) -> &Signature {
        static SIGNATURE: LazyLock<Signature> =
            LazyLock::new(|| Signature::nullary(Volatility::Immutable));
        &SIGNATURE
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("an operand's stand-in is not computed")
    }
}
