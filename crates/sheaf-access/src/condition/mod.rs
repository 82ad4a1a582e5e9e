//! Conditions, split by where they are cheapest to test.
//!
//! An [`EncodedCondition`] compares columns with constants. It is compiled once per scan to compares of bytes (parts of
//! an index key, which order as their bytes do) or of fixed-width words (columns of a row). It is tested per entry
//! before anything is turned into Arrow. What cannot be said so is a [`BatchCondition`] and is evaluated once per
//! batch, over the survivors.
//!
//! Three-valued logic: a condition accepts a row only if it is *true*. Comparing with NULL is unknown, and unknown
//! is not true. As there is no NOT here (the planner moves it into the operators), AND and OR of "is true" give the
//! same answer as three-valued AND and OR would.
//!
//! | file | what it holds |
//! |---|---|
//! | [`columns`] | where a condition or a projection finds a column |
//! | [`encoded`] | from constants to compares |
//! | [`key_condition`] | tests on the parts of keys |
//! | [`row_condition`] | tests on the bytes of rows |
//! | [`predicate_cache`] | how a string condition judged the last few strings |
//! | [`index_entries`] | entries laid out for work column by column |

pub(crate) mod columns;
pub(crate) mod encoded;
pub(crate) mod index_entries;
pub(crate) mod key_condition;
pub(crate) mod predicate_cache;
pub(crate) mod row_condition;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use sheaf_types::Value;

use crate::error::Result;

/// A condition that is evaluated over a batch of rows.
pub trait BatchCondition: Any + Send + Sync + fmt::Debug {
    /// One boolean per row; NULL counts as false. The batch holds the columns of [`ColumnsCondition::columns`] in
    /// that order.
    fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray>;

    /// Whether the other one is sure to judge every row as this one does, each time.
    fn is_same(&self, other: &dyn BatchCondition) -> bool;
}

/// A [`BatchCondition`] and the columns it reads.
#[derive(Clone, Debug)]
pub struct ColumnsCondition {
    /// Table columns, in the order in which the condition numbers them.
    pub columns: Vec<usize>,
    /// The condition over a batch of exactly these columns.
    pub condition: Arc<dyn BatchCondition>,
}

impl PartialEq for ColumnsCondition {
    /// See [`BatchCondition::is_same`].
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns && self.condition.is_same(&*other.condition)
    }
}

/// A conjunction: both parts must be true.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// Tested per entry on encoded bytes.
    pub encoded: Option<EncodedCondition>,
    /// Tested per batch on what `encoded` let through.
    pub rest: Option<ColumnsCondition>,
}

/// Comparison operators. None of them is true when a side is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A condition on single columns of one table against constants.
///
/// Columns are positions in `TableDefinition::columns`. A constant is a [`Value`] of the column's own type (integers
/// of the same sign as the column, decimals of any scale that converts exactly) or `Value::Null`. Strings compare
/// under the column's collation.
#[derive(Clone, Debug, PartialEq)]
pub enum EncodedCondition {
    /// `column op value`
    Compare {
        /// Table column.
        column: usize,
        /// Operator.
        op: CompareOp,
        /// Constant of the column's type.
        value: Value,
    },
    /// `column IN (values)`
    In {
        /// Table column.
        column: usize,
        /// Constants of the column's type, in any order.
        values: Vec<Value>,
    },
    /// `column IS NULL`
    IsNull {
        /// Table column.
        column: usize,
    },
    /// `column IS NOT NULL`
    IsNotNull {
        /// Table column.
        column: usize,
    },
    /// All of them; true when empty.
    And(Vec<EncodedCondition>),
    /// Any of them; false when empty.
    Or(Vec<EncodedCondition>),
}

impl EncodedCondition {
    /// `column BETWEEN low AND high`
    pub fn between(column: usize, low: Value, high: Value) -> Self {
        EncodedCondition::And(vec![
            EncodedCondition::Compare {
                column,
                op: CompareOp::GreaterOrEqual,
                value: low,
            },
            EncodedCondition::Compare {
                column,
                op: CompareOp::LessOrEqual,
                value: high,
            },
        ])
    }

    /// Adds the columns that this condition reads to `columns`, without repeating any.
    pub fn collect_columns(&self, columns: &mut Vec<usize>) {
        match self {
            EncodedCondition::Compare { column, .. }
            | EncodedCondition::In { column, .. }
            | EncodedCondition::IsNull { column }
            | EncodedCondition::IsNotNull { column } => {
                if !columns.contains(column) {
                    columns.push(*column);
                }
            }
            EncodedCondition::And(terms) | EncodedCondition::Or(terms) => {
                terms.iter().for_each(|term| term.collect_columns(columns));
            }
        }
    }
}
