//! The constants that costs are made of.
//!
//! They are measured when a database is made (again at the next start if others were at work then), and kept. So a plan
//! changes because the data did or because a user set a constant, not because the machine was busy when the server
//! started. They can be seen and set in the tables `mysql.engine_cost` (the device and the trees) and
//! `mysql.server_cost` (everything above), under MySQL's names where MySQL has the same thing. MySQL's unit is the read
//! of a page at random; ours is the microsecond.

/// Where a constant is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostTable {
    /// `mysql.engine_cost`
    Engine,
    /// `mysql.server_cost`
    Server,
}

/// Costs in microseconds. See [`CostConstants::ALL`] for the names that users know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostConstants {
    /// Reading a page at random, waiting for it: the device at depth 1.
    pub random_read_us: f64,
    /// Reading a prefetched page, with gaps between the pages: the device at its full depth.
    pub prefetched_read_us: f64,
    /// Reading the next page of a sequential scan: the device's bandwidth.
    pub sequential_read_us: f64,
    /// Descending a tree that is in the processor's cache.
    pub descent_us: f64,
    /// What a descent costs besides in a tree that is in memory and much larger than the processor's cache.
    pub miss_us: f64,
    /// Finding the next key in order on the leaf that a descent has led to.
    pub sorted_descent_us: f64,
    /// Taking a page that is in memory, from which a scan reads entries.
    pub page_us: f64,
    /// Going from one entry of a leaf to the next and reading its fixed columns.
    pub entry_us: f64,
    /// One column of one row into an Arrow array, a string or number on average.
    pub column_us: f64,
    /// Evaluating one condition on one row.
    pub condition_us: f64,
    /// Comparing two rows while sorting.
    pub compare_us: f64,
    /// Putting a row into a hash table.
    pub hash_build_us: f64,
    /// Probing a hash table with a row.
    pub hash_probe_us: f64,
    /// Copying a joined row into the output.
    pub joined_row_us: f64,
}

/// One of the constants.
#[derive(Clone, Copy)]
pub struct CostConstant {
    pub table: CostTable,
    /// Its `cost_name`.
    pub name: &'static str,
    pub comment: &'static str,
    pub get: fn(&CostConstants) -> f64,
    pub set: fn(&mut CostConstants, f64),
}

/// Constants are between these: 1 ps and 1,000 s.
pub const COST_BOUNDS: std::ops::RangeInclusive<f64> = 1e-6..=1e9;

macro_rules! constant {
    ($table:ident, $name:literal, $field:ident, $comment:literal) => {
        CostConstant {
            table: CostTable::$table,
            name: $name,
            comment: $comment,
            get: |constants| constants.$field,
            set: |constants, value| constants.$field = value,
        }
    };
}

impl CostConstants {
    /// All of them, in the order in which the tables show them.
    #[rustfmt::skip]
    pub const ALL: [CostConstant; 14] = [
        constant!(Engine, "io_block_read_cost", random_read_us, "a page at random, waited for"),
        constant!(Engine, "io_prefetched_block_read_cost", prefetched_read_us, "a page asked for ahead"),
        constant!(Engine, "io_sequential_block_read_cost", sequential_read_us, "the next page of a scan"),
        constant!(Engine, "memory_block_read_cost", descent_us, "a lookup in memory"),
        constant!(Engine, "memory_block_miss_cost", miss_us, "a lookup besides, in a tree much larger than processor caches"),
        constant!(Engine, "memory_sorted_block_read_cost", sorted_descent_us, "a lookup in memory, keys in order"),
        constant!(Engine, "memory_block_scan_cost", page_us, "a page in memory that a scan reads"),
        constant!(Engine, "entry_read_cost", entry_us, "the next entry of a leaf"),
        constant!(Server, "row_evaluate_cost", condition_us, "a condition on a row"),
        constant!(Server, "key_compare_cost", compare_us, "two rows compared by a sort"),
        constant!(Server, "column_read_cost", column_us, "a column of a row"),
        constant!(Server, "hash_build_cost", hash_build_us, "a row put into a hash table"),
        constant!(Server, "hash_probe_cost", hash_probe_us, "a row looked for in a hash table"),
        constant!(Server, "joined_row_cost", joined_row_us, "a row put out by a join"),
    ];

    /// Pages between two reads below which reading them as one costs less than two requests.
    pub fn merge_gap_pages(&self) -> f64 {
        self.prefetched_read_us / self.sequential_read_us
    }
}

impl Default for CostConstants {
    /// Measured on a virtual machine with two cores and a solid-state disk; 16 KiB pages.
    fn default() -> Self {
        CostConstants {
            random_read_us: 40.0,
            prefetched_read_us: 14.0,
            sequential_read_us: 9.0,
            descent_us: 0.5,
            miss_us: 3.2,
            sorted_descent_us: 0.5,
            page_us: 3.0,
            entry_us: 0.04,
            column_us: 0.006,
            condition_us: 0.01,
            compare_us: 0.02,
            hash_build_us: 0.05,
            hash_probe_us: 0.04,
            joined_row_us: 0.02,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_and_writes_its_own_constant() {
        let mut constants = CostConstants::default();
        for (position, constant) in CostConstants::ALL.iter().enumerate() {
            (constant.set)(&mut constants, position as f64 + 1.0);
        }
        for (position, constant) in CostConstants::ALL.iter().enumerate() {
            assert_eq!(
                (constant.get)(&constants),
                position as f64 + 1.0,
                "{}",
                constant.name
            );
        }
    }
}
