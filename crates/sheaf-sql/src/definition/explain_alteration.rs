//! EXPLAIN ALTER TABLE: what the statement would do, what it would keep others from, and about how long it would take.
//! Nothing is locked or changed. Errors are those of the statement itself.
//!
//! ```text
//!   table   algorithm  lock  work                                   rows    bytes     seconds
//!   orders  INPLACE    NONE  1 index is built                       700000  47431680  0.45
//! ```
//!
//! The time is made of the constants of the [cost model](sheaf_optimizer::CostConstants), as if the table were in
//! memory, nobody else at work and nothing in the way. How long it waits for others is not known.

use sheaf_optimizer::CostConstants;
use sheaf_table::{AlterWork, Alteration};

use crate::definition::alter_table::PlannedAlteration;
use crate::definition::demands::Meanwhile;
use crate::error::Result;
use crate::parser::Parsed;
use crate::parser::statement::{TableChange, TableName};
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;

/// Sorting and writing an entry of an index takes so many comparisons, for each comparison that it needs to find its
/// place. Measured with 700,000 rows of 60 bytes.
const COMPARES_PER_STEP: f64 = 3.0;
/// Reading, converting and writing a column of a row. Measured with the same rows.
const COMPARES_PER_COLUMN: f64 = 14.0;

impl Session {
    pub(crate) fn explain_alteration(
        &mut self,
        name: &TableName,
        changes: Parsed<'_, &Vec<TableChange>>,
    ) -> Result<Rows> {
        let planned = self.plan_alteration(name, changes)?;
        let mut rows = Rows::new([
            ("table", Cells::Text(64)),
            ("algorithm", Cells::Text(7)),
            ("lock", Cells::Text(9)),
            ("work", Cells::Text(255)),
            ("rows", Cells::Unsigned),
            ("bytes", Cells::Unsigned),
            ("seconds", Cells::Double),
        ]);
        let reads = reads_rows(&planned);
        let table = &planned.current;
        let of_rows = |number: u64| if reads { number } else { 0 };
        rows.push(vec![
            planned.name.1.as_str().into(),
            algorithm(&planned).into(),
            lock(planned.meanwhile).into(),
            work(&planned).into(),
            of_rows(table.row_count_estimate()).into(),
            of_rows(table.data_bytes_estimate()).into(),
            Cell::Double(seconds(&planned, &self.engine.costs())),
        ]);
        Ok(rows)
    }
}

fn algorithm(planned: &PlannedAlteration) -> &'static str {
    match planned.work {
        AlterWork::Definition => "INSTANT",
        _ if planned.demands.asks_for_copy() => "COPY",
        AlterWork::Index | AlterWork::Rebuild => "INPLACE",
        AlterWork::Copy => "COPY",
    }
}

/// What others are kept from until the last moment, in which they are kept from everything.
fn lock(meanwhile: Meanwhile) -> &'static str {
    match meanwhile {
        Meanwhile::Write => "NONE",
        Meanwhile::Read => "SHARED",
        Meanwhile::Nothing => "EXCLUSIVE",
    }
}

/// A foreign key whose index is there is entered without a look at rows, if they are not to be checked.
fn reads_rows(planned: &PlannedAlteration) -> bool {
    match planned.work {
        AlterWork::Definition => false,
        AlterWork::Index => {
            new_indexes(planned) > 0 || planned.alterations.iter().any(compares_rows)
        }
        AlterWork::Rebuild | AlterWork::Copy => true,
    }
}

/// Indexes that are written.
fn new_indexes(planned: &PlannedAlteration) -> usize {
    let old = &planned.current.definition.secondary;
    let is_written = |id: u32| planned.work.copies() || !old.iter().any(|before| before.id == id);
    let indexes = planned.next.secondary.iter();
    indexes.filter(|index| is_written(index.id)).count()
}

fn work(planned: &PlannedAlteration) -> String {
    let indexes = match (planned.work, new_indexes(planned)) {
        (AlterWork::Definition, _) | (_, 0) => None,
        (_, 1) => Some("1 index is built".to_string()),
        (_, count) => Some(format!("{count} indexes are built")),
    };
    let rows = match planned.work {
        _ if !reads_rows(planned) => Some("the definition changes alone"),
        AlterWork::Rebuild => Some("rows are written anew"),
        AlterWork::Copy => Some("rows are converted and written anew"),
        AlterWork::Index if planned.alterations.iter().any(compares_rows) => {
            Some("rows are tested")
        }
        AlterWork::Index | AlterWork::Definition => None,
    };
    let parts: Vec<String> = rows
        .map(str::to_string)
        .into_iter()
        .chain(indexes)
        .collect();
    parts.join(", ")
}

fn compares_rows(change: &Alteration) -> bool {
    matches!(
        change,
        Alteration::AddForeignKey { check: true, .. }
            | Alteration::AddCheck(_)
            | Alteration::EnforceCheck { enforced: true, .. }
    )
}

fn seconds(planned: &PlannedAlteration, costs: &CostConstants) -> f64 {
    let rows = planned.current.row_count_estimate() as f64;
    let columns = planned.current.definition.columns.len() as f64;
    let steps = rows.max(2.0).log2();
    let per_entry = steps * COMPARES_PER_STEP * costs.compare_us;
    if !reads_rows(planned) {
        return 0.0;
    }
    let per_row = match planned.work {
        AlterWork::Index | AlterWork::Definition => costs.entry_us + columns * costs.column_us,
        AlterWork::Rebuild | AlterWork::Copy => columns * COMPARES_PER_COLUMN * costs.compare_us,
    };
    let micros = rows * (per_row + new_indexes(planned) as f64 * per_entry);
    // To milliseconds.
    (micros / 1e3).round() / 1e3
}
