//! Operators for a query that was planned before, over tables with candidates.
//!
//! [`sheaf_optimizer::advisor::replanning`] says why this is enough, and where it is not.

use std::sync::Arc;

use sheaf_optimizer::advisor::over_tables;
use sheaf_optimizer::plan_physical;
use sheaf_table::Table;

use super::planned_cost::PlannedCost;
use crate::error::Result;
use crate::session::Session;
use crate::session::hypothesis::OptimizedQuery;

/// What a query is expected to cost with these tables in place of others of their version. `None`: one of its
/// tables has another definition by now.
pub(super) fn replanned(
    session: &mut Session,
    query: &OptimizedQuery,
    tables: &[Arc<Table>],
) -> Result<Option<PlannedCost>> {
    // No table is dropped while its trees are looked into.
    let mut guards = Vec::new();
    for table in &query.tables {
        let is_first = guards.is_empty() && session.holds_no_table();
        let guard = session.lock_for_read(table, is_first)?;
        if !guard.is_version_of(table) {
            return Ok(None);
        }
        guards.push(guard);
    }
    let planning = Arc::clone(session.workers.planning());
    let mut bytes = planning.begin_plan();
    let planned = planning.during(|| -> Result<PlannedCost> {
        let plan = over_tables(query.plan.clone(), tables)?;
        let physical = plan_physical(&plan, &query.context)?;
        Ok(PlannedCost::of(&physical))
    })?;
    bytes.is_made();
    Ok(Some(planned))
}
