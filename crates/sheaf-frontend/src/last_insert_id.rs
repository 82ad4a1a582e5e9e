//! LAST_INSERT_ID(value): gives its argument back and makes it what LAST_INSERT_ID() returns from then on.
//!
//! It is how applications without AUTO_INCREMENT count: `UPDATE counters SET n = LAST_INSERT_ID(n + 1)`. The function
//! is one of its session: it writes into a cell that the session looks into when the statement has ended.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, UInt64Type};
use datafusion_common::{Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function's name in lowered queries; its argument is a BIGINT UNSIGNED.
pub const SET_LAST_INSERT_ID: &str = "$set_last_insert_id";

/// What the running statement gave to LAST_INSERT_ID(value), if it did.
#[derive(Clone, Debug, Default)]
pub struct InsertIdCell(Arc<Given>);

#[derive(Debug, Default)]
struct Given {
    /// Written after the number.
    is_given: AtomicBool,
    id: AtomicU64,
}

impl InsertIdCell {
    /// Empties the cell.
    pub fn take(&self) -> Option<u64> {
        let id = self.get();
        if id.is_some() {
            self.0.is_given.store(false, Ordering::Relaxed);
        }
        id
    }

    pub fn get(&self) -> Option<u64> {
        let is_given = self.0.is_given.load(Ordering::Acquire);
        is_given.then(|| self.0.id.load(Ordering::Relaxed))
    }

    fn set(&self, id: u64) {
        self.0.id.store(id, Ordering::Relaxed);
        self.0.is_given.store(true, Ordering::Release);
    }

    /// The function over this cell.
    pub fn function(&self) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(SetLastInsertId {
            cell: self.clone(),
            signature: Signature::any(1, Volatility::Volatile),
        }))
    }
}

#[derive(Debug)]
struct SetLastInsertId {
    cell: InsertIdCell,
    signature: Signature,
}

impl PartialEq for SetLastInsertId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cell.0, &other.cell.0)
    }
}

impl Eq for SetLastInsertId {}

impl Hash for SetLastInsertId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.cell.0).hash(state);
    }
}

impl ScalarUDFImpl for SetLastInsertId {
    fn name(&self) -> &str {
        SET_LAST_INSERT_ID
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    /// The last row decides. NULL counts as 0.
    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = arguments.args.first() else {
            return exec_err!("LAST_INSERT_ID without its argument");
        };
        let array = value.to_array(arguments.number_rows)?;
        let Some(ids) = array.as_primitive_opt::<UInt64Type>() else {
            return exec_err!("LAST_INSERT_ID of a {}", array.data_type());
        };
        if let Some(last) = ids.len().checked_sub(1) {
            let id = if ids.is_null(last) {
                0
            } else {
                ids.value(last)
            };
            self.cell.set(id);
        }
        Ok(value.clone())
    }
}
