//! What a statement leaves to those after it: ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID() and `Last_query_cost`.

use std::sync::Arc;

use sheaf_exec::functions::user_variables::AssignedVariables;
use sheaf_storage::sync::atomic::{AtomicU64, Ordering};

use crate::last_insert_id::InsertIdCell;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct Outcome {
    /// ROW_COUNT() of the previous statement.
    pub(crate) row_count: i64,
    /// FOUND_ROWS() of the previous query.
    pub(crate) found_rows: u64,
    /// LAST_INSERT_ID().
    pub(crate) last_insert_id: u64,
    /// What the running statement makes of it by LAST_INSERT_ID(value).
    pub(crate) insert_id_cell: InsertIdCell,
    /// What the running statement assigns by `@name := value`.
    pub(crate) assigned_variables: AssignedVariables,
    /// `insert_id`: what AUTO_INCREMENT gives to the next row, once; 0: what it gives as always.
    pub(crate) chosen_insert_id: Arc<AtomicU64>,
    pub(crate) last_query_cost: f64,
}

impl Outcome {
    /// The session starts over. What its last query cost is still told.
    pub(crate) fn forget(&mut self) {
        (self.last_insert_id, self.row_count, self.found_rows) = (0, 0, 0);
        self.chosen_insert_id.store(0, Ordering::Relaxed);
    }

    /// The first id that the running statement has generated; 0: none. LAST_INSERT_ID(value) does not count beside it.
    pub(crate) fn note_generated(&mut self, id: u64) {
        if id != 0 {
            self.insert_id_cell.take();
            self.last_insert_id = id;
        }
    }

    /// The statement is over, and LAST_INSERT_ID(value) takes effect.
    pub(crate) fn take_insert_id(&mut self) {
        if let Some(id) = self.insert_id_cell.take() {
            self.last_insert_id = id;
        }
    }
}
