//! An operand that the typing rule does not look into.
//!
//! Who types one node at a time puts stand-ins in the place of its operands, and gives the operands back to what the
//! rule has made. A stand-in has the field of the operand. It also says how many nodes the operand has, so that what
//! would be repeated is computed once ([`super::once`]).

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// A function without arguments that has the field of an operand. It is never computed.
#[derive(Debug)]
pub struct StandIn {
    number: usize,
    field: FieldRef,
    nodes: usize,
}

impl StandIn {
    /// The rule tells no operands apart that have more nodes than this.
    pub const MANY_NODES: usize = super::once::MANY_NODES;

    /// `number`: of the operand. `nodes`: how many it has; it need not be counted beyond [`StandIn::MANY_NODES`].
    pub fn new(number: usize, field: FieldRef, nodes: usize) -> StandIn {
        StandIn {
            number,
            field,
            nodes,
        }
    }

    pub fn call(self) -> Expr {
        ScalarUDF::from(self).call(Vec::new())
    }

    /// The stand-in that an expression is.
    pub fn of(expr: &Expr) -> Option<&StandIn> {
        match expr {
            Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<StandIn>(),
            _ => None,
        }
    }

    pub fn number(&self) -> usize {
        self.number
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }
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
