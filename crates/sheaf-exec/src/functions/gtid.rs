//! GTID_SUBSET and GTID_SUBTRACT: sets of transactions of a binary log, as texts ([`sheaf_binlog::gtid`]).

use std::cell::RefCell;
use std::fmt::Write;

use datafusion_common::{DataFusionError, Result};
use sheaf_binlog::BinlogError;
use sheaf_binlog::gtid::GtidSet;

use super::result_array::{ints, texts};
use super::types::field;
use super::{EvaluationError, Function};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict(
        "gtid_subset",
        (2, 2),
        |_| Ok(field::bigint()),
        |call| {
            let (subsets, sets) = (call.bytes(0)?, call.bytes(1)?);
            let reader = Reader::default();
            let made = ints(call, |row| {
                let (subset, set) = (subsets.get(row)?, sets.get(row)?);
                let is_subset = reader.read(subset)?.is_subset(&reader.read(set)?);
                Some(i64::from(is_subset))
            });
            reader.check(made)
        },
    ),
    Function::strict(
        "gtid_subtract",
        (2, 2),
        |_| Ok(field::text()),
        |call| {
            let (sets, subtracted) = (call.bytes(0)?, call.bytes(1)?);
            let reader = Reader::default();
            let made = texts(call, |row, out| {
                let (set, subtracted) = (sets.get(row)?, subtracted.get(row)?);
                let mut set = reader.read(set)?;
                set.subtract(&reader.read(subtracted)?);
                write!(out, "{set}").ok()?;
                Some(())
            });
            reader.check(made)
        },
    ),
];

/// Reads sets, and keeps the first error.
#[derive(Default)]
struct Reader(RefCell<Option<BinlogError>>);

impl Reader {
    fn read(&self, text: &[u8]) -> Option<GtidSet> {
        match String::from_utf8_lossy(text).parse() {
            Ok(set) => Some(set),
            Err(error) => {
                self.0.borrow_mut().get_or_insert(error);
                None
            }
        }
    }

    fn check<T>(self, made: Result<T>) -> Result<T> {
        match self.0.into_inner() {
            Some(error) => Err(DataFusionError::from(EvaluationError::new(
                error.code(),
                error.to_string(),
            ))),
            None => made,
        }
    }
}
