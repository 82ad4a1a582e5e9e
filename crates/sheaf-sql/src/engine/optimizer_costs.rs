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
//! is "The Optimizer Cost Model".

use std::path::Path;
use std::sync::{Arc, PoisonError};

use sheaf_optimizer::CostConstants;
use sheaf_optimizer::cost::constants::{COST_BOUNDS, CostConstant, CostTable};
use sheaf_optimizer::cost::measure::{AGREEMENT, Measurement};
use sheaf_types::Value;

use crate::engine::Engine;
use crate::error::Result;
use crate::session::Session;
use crate::session_parts::info::SessionInfo;

const DATABASE: &str = "mysql";

/// In the temporary directory, while the device is measured.
const SCRATCH: &str = "measure_costs";

/// Behind the comment of a constant whose measurement was disturbed.
const PROVISIONAL: &str = "; others were at work, so it is measured again at the next start";

/// What is known of every storage engine; there is only one.
const ENGINE_NAME: &str = "default";

fn table_name(table: CostTable) -> &'static str {
    match table {
        CostTable::Engine => "engine_cost",
        CostTable::Server => "server_cost",
    }
}

fn create_statement(table: CostTable) -> String {
    let (first, key) = match table {
        CostTable::Engine => (
            "engine_name varchar(64) NOT NULL, device_type int NOT NULL, ",
            "cost_name, engine_name, device_type",
        ),
        CostTable::Server => ("", "cost_name"),
    };
    format!(
        "CREATE TABLE {DATABASE}.{} ({first}cost_name varchar(64) NOT NULL, cost_value float DEFAULT NULL, \
         last_update timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, \
         comment varchar(1024) DEFAULT NULL, default_value float DEFAULT NULL, PRIMARY KEY ({key}))",
        table_name(table)
    )
}

fn insert_statement(constant: &CostConstant) -> String {
    let (columns, values) = match constant.table {
        CostTable::Engine => (
            "engine_name, device_type, ",
            format!("'{ENGINE_NAME}', 0, "),
        ),
        CostTable::Server => ("", String::new()),
    };
    format!(
        "INSERT INTO {DATABASE}.{} ({columns}cost_name, comment) VALUES ({values}'{}', '{}')",
        table_name(constant.table),
        constant.name,
        constant.comment.replace('\'', "''")
    )
}

/// It says what the device takes, not the processor.
fn is_of_device(constant: &CostConstant) -> bool {
    constant.name.starts_with("io_")
}

/// What a constant's row says.
struct CostRow {
    /// `cost_value`, as far as it is one.
    set: Option<f64>,
    /// `default_value`.
    measured: Option<f64>,
    /// Others were at work meanwhile.
    is_provisional: bool,
}

impl CostRow {
    fn is_due(&self) -> bool {
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

    fn cost_row(&self, constant: &CostConstant) -> Result<Option<CostRow>> {
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

    /// Makes the tables and rows that are not there yet, and reads the constants.
    ///
    /// # Errors
    /// What the statements report.
    pub fn create_cost_tables(self: &Arc<Self>) -> Result<()> {
        let mut session = None;
        for table in [CostTable::Server, CostTable::Engine] {
            if self.catalog().table(DATABASE, table_name(table)).is_err() {
                let session = self.own_session(&mut session)?;
                if !self.catalog().database_exists(DATABASE) {
                    session.run_own(&format!("CREATE DATABASE {DATABASE}"))?;
                }
                session.run_own(&create_statement(table))?;
            }
        }
        for constant in CostConstants::ALL {
            if self.cost_row(&constant)?.is_none() {
                let session = self.own_session(&mut session)?;
                session.run_own(&insert_statement(&constant))?;
            }
        }
        self.reload_costs()
    }

    fn own_session<'s>(
        self: &Arc<Self>,
        session: &'s mut Option<Session>,
    ) -> Result<&'s mut Session> {
        match session {
            Some(session) => Ok(session),
            None => Ok(session.insert(self.session(SessionInfo::default())?)),
        }
    }

    /// Has the constants measured if that has never been done, or others were at work when it was, keeps and uses them;
    /// false: they are known already. A constant of the processor that is new beside known ones differs from its
    /// default as they do: what is measured at another time, by itself, is not comparable.
    ///
    /// # Errors
    /// What the device or the statements report.
    pub(crate) fn measure_costs(
        self: &Arc<Self>,
        measure: impl FnOnce(&Path) -> sheaf_storage::Result<Option<Measurement>>,
    ) -> Result<bool> {
        let mut rows = Vec::new();
        for constant in CostConstants::ALL {
            if let Some(row) = self.cost_row(&constant)? {
                rows.push((constant, row));
            }
        }
        if !rows.iter().any(|(_, row)| row.is_due()) {
            return Ok(false);
        }
        let scratch = self.storage().temp_space().directory().join(SCRATCH);
        let Some(measurement) = measure(&scratch)? else {
            return Ok(false);
        };
        let mut costs = measurement.costs;
        follow_known(&mut costs, &rows);
        let agrees = keep_lower(&mut costs, &rows);
        let is_settled = !measurement.is_disturbed || agrees;
        let mut session = self.session(SessionInfo::default())?;
        for (constant, _) in rows.iter().filter(|(_, row)| row.is_due()) {
            let note = if is_settled { "" } else { PROVISIONAL };
            session.run_own(&format!(
                "UPDATE {DATABASE}.{} SET default_value = {}, comment = '{}{note}' WHERE cost_name = '{}'",
                table_name(constant.table),
                (constant.get)(&costs),
                constant.comment.replace('\'', "''"),
                constant.name
            ))?;
        }
        self.reload_costs()?;
        tracing::info!(?costs, is_settled, "measured what things cost");
        Ok(true)
    }
}

/// Constants of the processor that are new differ from their defaults as those do that are known.
fn follow_known(costs: &mut CostConstants, rows: &[(CostConstant, CostRow)]) {
    let defaults = CostConstants::default();
    let known = rows.iter().find_map(|(constant, row)| {
        let is_known = !is_of_device(constant) && !row.is_due();
        let measured = row.measured.filter(|_| is_known)?;
        Some(measured / (constant.get)(&defaults))
    });
    if let Some(factor) = known {
        for constant in CostConstants::ALL {
            if !is_of_device(&constant) {
                (constant.set)(costs, (constant.get)(&defaults) * factor);
            }
        }
    }
}

/// Keeps what an earlier, disturbed measurement has found if that is lower. True if both have found about the same.
fn keep_lower(costs: &mut CostConstants, rows: &[(CostConstant, CostRow)]) -> bool {
    let mut agreements = Vec::new();
    for (constant, row) in rows {
        if let Some(earlier) = row.measured.filter(|_| row.is_provisional) {
            let now = (constant.get)(costs);
            agreements.push((now / earlier).max(earlier / now) <= AGREEMENT);
            (constant.set)(costs, now.min(earlier));
        }
    }
    !agreements.is_empty() && agreements.into_iter().all(|agrees| agrees)
}
