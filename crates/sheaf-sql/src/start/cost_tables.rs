//! Makes the tables of the optimizer's cost constants (`engine/optimizer_costs.rs`), and fills them with what the
//! machine takes.

use std::path::Path;
use std::sync::Arc;

use sheaf_optimizer::CostConstants;
use sheaf_optimizer::cost::constants::{CostConstant, CostTable};
use sheaf_optimizer::cost::measure::{AGREEMENT, Measurement};

use crate::engine::Engine;
use crate::engine::optimizer_costs::{CostRow, DATABASE, ENGINE_NAME, PROVISIONAL, table_name};
use crate::error::Result;
use crate::session::{Session, SessionInfo};

/// In the temporary directory, while the device is measured.
const SCRATCH: &str = "measure_costs";

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

impl Engine {
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
