//! The optimizer's cost constants in the tables `mysql.server_cost` and `mysql.engine_cost`.
//!
//! They are ordinary tables with MySQL's columns, so a user who may change tables may change constants:
//!
//! ```sql
//!   UPDATE mysql.engine_cost SET cost_value = 120 WHERE cost_name = 'io_block_read_cost';
//!   FLUSH OPTIMIZER_COSTS;
//! ```
//!
//! `cost_value` NULL means `default_value`, which is what was measured when the database was made
//! ([`sheaf_optimizer::cost::measure`]). If others were at work then, the comments of the rows say so. The next start
//! then measures again and keeps the lower values: nothing makes a machine faster than it is. Values are in
//! microseconds. A value that cannot be a cost is ignored with a warning in the log, as in MySQL. The manual's section
//! is "The Optimizer Cost Model". `start/cost_tables.rs` makes and fills the tables.

use std::sync::PoisonError;

use sheaf_optimizer::CostConstants;
use sheaf_optimizer::cost::constants::{COST_BOUNDS, CostConstant, CostTable};
use sheaf_types::Value;

use crate::engine::Engine;
use crate::error::Result;

pub(crate) const DATABASE: &str = "mysql";

/// Behind the comment of a constant whose measurement was disturbed.
pub(crate) const PROVISIONAL: &str =
    "; others were at work, so it is measured again at the next start";

/// What is known of every storage engine; there is only one.
pub(crate) const ENGINE_NAME: &str = "default";

pub(crate) fn table_name(table: CostTable) -> &'static str {
    match table {
        CostTable::Engine => "engine_cost",
        CostTable::Server => "server_cost",
    }
}

/// What a constant's row says.
pub(crate) struct CostRow {
    /// `cost_value`, as far as it is one.
    pub(crate) set: Option<f64>,
    /// `default_value`.
    pub(crate) measured: Option<f64>,
    /// Others were at work meanwhile.
    pub(crate) is_provisional: bool,
}

impl CostRow {
    pub(crate) fn is_due(&self) -> bool {
        self.measured.is_none() || self.is_provisional
    }
}

impl Engine {
    /// The constants that statements are planned with.
    pub fn costs(&self) -> CostConstants {
        *self.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the constants from their tables; those that are in no table are the built-in ones.
    ///
    /// # Errors
    /// What reading the tables reports.
    pub fn reload_costs(&self) -> Result<()> {
        let mut costs = CostConstants::default();
        for constant in CostConstants::ALL {
            if let Some(row) = self.cost_row(&constant)?
                && let Some(value) = row.set.or(row.measured)
            {
                (constant.set)(&mut costs, value);
            }
        }
        *self.costs.lock().unwrap_or_else(PoisonError::into_inner) = costs;
        Ok(())
    }

    pub(crate) fn cost_row(&self, constant: &CostConstant) -> Result<Option<CostRow>> {
        let Ok(table) = self.catalog().table(DATABASE, table_name(constant.table)) else {
            return Ok(None);
        };
        let definition = &table.definition;
        let column = |name: &str| definition.column_position(name);
        // A user may have made another table in its place.
        let (Some(set), Some(measured)) = (column("cost_value"), column("default_value")) else {
            return Ok(None);
        };
        let key = definition.primary.parts.iter().map(|part| part.column);
        let mut row = vec![Value::Null; definition.columns.len()];
        for column in key {
            row[column] = match definition.columns[column].name.as_str() {
                "cost_name" => Value::Text(constant.name.to_string()),
                "engine_name" => Value::Text(ENGINE_NAME.to_string()),
                "device_type" => Value::Int(0),
                _ => return Ok(None),
            };
        }
        let Some(row) = table.read_row(&table.encode_primary_key(&row))? else {
            return Ok(None);
        };
        let cost = |value: &Value| match value {
            Value::Float(cost) => Some(f64::from(*cost)),
            Value::Double(cost) => Some(*cost),
            _ => None,
        };
        let cost = |value: &Value| {
            let cost = cost(value)?;
            if !COST_BOUNDS.contains(&cost) {
                tracing::warn!(constant = constant.name, cost, "a cost constant is ignored");
                return None;
            }
            Some(cost)
        };
        Ok(Some(CostRow {
            set: cost(&row[set]),
            measured: cost(&row[measured]),
            is_provisional: column("comment").is_some_and(
                |comment| matches!(&row[comment], Value::Text(text) if text.ends_with(PROVISIONAL)),
            ),
        }))
    }
}
