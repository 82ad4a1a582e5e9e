//! What a statement leaves to those after it: ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID() and `Last_query_cost`.

use std::sync::Arc;

use sheaf_exec::functions::random_numbers::SeededNumbers;
use sheaf_exec::functions::user_variables::AssignedVariables;
use sheaf_storage::sync::atomic::{AtomicU64, Ordering};

use crate::last_insert_id::InsertIdCell;
use crate::variables::{VariableValue, Variables};

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
    /// What RAND() draws from since SET `rand_seed1` or `rand_seed2`.
    pub(crate) seeded_numbers: SeededNumbers,
    pub(crate) last_query_cost: f64,
}

impl Outcome {
    /// The session starts over. What its last query cost is still told.
    pub(crate) fn forget(&mut self) {
        (self.last_insert_id, self.row_count, self.found_rows) = (0, 0, 0);
        self.chosen_insert_id.store(0, Ordering::Relaxed);
        self.seeded_numbers.forget();
    }

    /// SET has given a seed a value. It is shown as 0, since the numbers go on from it.
    pub(crate) fn take_seed(&self, name: &str, variables: &mut Variables) {
        let Ok(VariableValue::Integer(seed)) = variables.get(name) else {
            return;
        };
        let seed = u64::try_from(*seed).unwrap_or(0);
        match name {
            "rand_seed1" => self.seeded_numbers.set_first(seed),
            _ => self.seeded_numbers.set_second(seed),
        }
        variables.set_internally(name, VariableValue::Integer(0));
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
