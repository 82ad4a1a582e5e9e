//! `GROUP_CONCAT([DISTINCT] text ORDER BY ... SEPARATOR ...)`.
//!
//! The pass over the syntax tree writes it as `$group_concat(text, separator, maximum length, distinct key, order
//! key)`. Both keys are byte strings whose memcmp order is the order asked for, or NULL literals. So the operator above
//! sorts nothing, and the function keeps (order key, text) until the group is complete. It drops what comes after the
//! maximum length, so it keeps little, however many rows there are. Only keys of DISTINCT stay, long ones as their
//! digests. Texts without either key are put together as they come.
//!
//! A result that was cut is noted with the number of the row in which that happened ([`GroupConcat::noting`]). That
//! counts the rows of all groups that went into results so far.
//!
//! Where long texts do not fit into memory, the states of all groups are no help. Those that have spilled are read in
//! batches of whole groups, one from each file, and every one of them is as long as its texts. So the function refuses
//! to go on when such states have left it (`LONG_STATE_BYTES`). The plan that takes the place of this one has the
//! rows of a group one behind the other, and one group in memory.

mod accumulators;
mod collected;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::Result;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::result_field;
use crate::functions::EvaluationError;
use crate::functions::limits::OversizedResults;
use crate::functions::types::{field, text_field};

use accumulators::{Alone, Groups};
use collected::Collected;

/// The function's name.
pub const NAME: &str = "$group_concat";

#[derive(Debug)]
pub struct GroupConcat {
    signature: Signature,
    cut: CutResults,
}

impl PartialEq for GroupConcat {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cut.counted, &other.cut.counted)
    }
}

impl Eq for GroupConcat {}

impl Hash for GroupConcat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.cut.counted).hash(state);
    }
}

impl GroupConcat {
    pub fn new() -> GroupConcat {
        GroupConcat {
            signature: Signature::user_defined(Volatility::Immutable),
            cut: CutResults::default(),
        }
    }

    /// The function in a plan of a session that wants to know which results were cut.
    pub fn noting(oversized: OversizedResults) -> GroupConcat {
        GroupConcat {
            cut: CutResults {
                noted: Some(oversized),
                ..CutResults::default()
            },
            ..GroupConcat::new()
        }
    }
}

/// Where it is noted that a result was cut.
#[derive(Clone, Debug, Default)]
struct CutResults {
    noted: Option<OversizedResults>,
    counted: Arc<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    /// The session's statement, whose rows these are.
    statement: AtomicU64,
    /// Rows in its results so far.
    rows: AtomicU64,
}

impl CutResults {
    /// A result is made of so many rows, the last of which may have been cut.
    ///
    /// # Errors
    /// 1260 where that is refused.
    fn count(&self, rows: u64, is_cut: bool) -> Result<()> {
        let Some(noted) = &self.noted else {
            return Ok(());
        };
        let counted = &self.counted;
        if counted.statement.swap(noted.statement(), Ordering::Relaxed) != noted.statement() {
            counted.rows.store(0, Ordering::Relaxed);
        }
        let rows = counted.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        match is_cut {
            true => noted.note(EvaluationError::cut_by_group_concat(rows)),
            false => Ok(()),
        }
    }
}

impl Default for GroupConcat {
    fn default() -> Self {
        Self::new()
    }
}

impl AggregateUDFImpl for GroupConcat {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(vec![
            joined_type(arg_types),
            DataType::Utf8View,
            DataType::Int64,
            DataType::Binary,
            DataType::Binary,
        ])
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(joined_type(arg_types))
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        let text = &arg_fields[..1];
        let field = match text[0].data_type() {
            DataType::Binary => field::bytes(),
            _ => text_field(text, "group_concat")?,
        };
        Ok(result_field(self.name(), &field))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Alone {
            collected: Collected::new(*args.return_field.data_type() == DataType::Binary),
            cut: self.cut.clone(),
        }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let is_binary = *args.return_field.data_type() == DataType::Binary;
        Ok(Box::new(Groups::new(is_binary, self.cut.clone())))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(
            format!("{}[collected]", args.name),
            DataType::Binary,
            true,
        ))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// Texts make a text, byte strings a byte string.
fn joined_type(arg_types: &[DataType]) -> DataType {
    match arg_types.first() {
        Some(DataType::Binary) => DataType::Binary,
        _ => DataType::Utf8View,
    }
}

#[cfg(test)]
mod tests;
