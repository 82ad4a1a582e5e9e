//! The share of a table's rows that a condition on one column accepts.
//!
//! Shares are of all rows. NULL satisfies no comparison. A value that was not there when the table was analyzed may be
//! there now, so an equality is never estimated at less than one row.

use std::sync::Arc;

use sheaf_storage::KeyRange;
use sheaf_types::Value;

use crate::codec::key_range::PartBounds;
use crate::definition::schema::TableDefinition;
use crate::error::Result;
use crate::statistics::column_key::ColumnKey;
use crate::statistics::histogram::SampledValue;
use crate::statistics::{ColumnStatistics, TableStatistics};

/// Estimates conditions on one column. Values are of the column's type (see [`crate::definition::convert`]).
pub struct ColumnEstimator {
    statistics: Arc<TableStatistics>,
    column: usize,
    key: ColumnKey,
}

impl ColumnEstimator {
    /// `column` is the position of a column that the statistics cover.
    pub(crate) fn new(
        statistics: Arc<TableStatistics>,
        column: usize,
        key: ColumnKey,
    ) -> ColumnEstimator {
        ColumnEstimator {
            statistics,
            column,
            key,
        }
    }

    /// What was collected.
    pub fn statistics(&self) -> &ColumnStatistics {
        &self.statistics.columns[self.column]
    }

    /// How the column's values become the keys that [`Self::equal_key`] and [`Self::within_keys`] take.
    pub fn key(&self) -> &ColumnKey {
        &self.key
    }

    /// IS NULL.
    pub fn null(&self) -> f64 {
        self.statistics().null_share.clamp(0.0, 1.0)
    }

    /// `= value`. Without a histogram, the average value's share.
    pub fn equal(&self, value: &Value) -> f64 {
        match value.is_null() {
            true => 0.0,
            false => self.equal_key(&self.key.key(value)),
        }
    }

    /// `= value`, a value that is not NULL, by its key.
    pub fn equal_key(&self, key: &[u8]) -> f64 {
        let statistics = self.statistics();
        let not_null = 1.0 - self.null();
        let share = match &statistics.histogram {
            Some(histogram) => histogram.share_of_value(key),
            None => not_null / statistics.distinct.value.max(1) as f64,
        };
        let one_row = 1.0 / self.statistics.rows.max(1) as f64;
        share.max(one_row).min(1.0)
    }

    /// `IN (values)`. Values that are equal count once.
    pub fn one_of(&self, values: &[Value]) -> f64 {
        let mut keys: Vec<(Vec<u8>, &Value)> = values
            .iter()
            .filter(|value| !value.is_null())
            .map(|value| (self.key.key(value), value))
            .collect();
        keys.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        keys.dedup_by(|a, b| a.0 == b.0);
        let sum: f64 = keys.iter().map(|(_, value)| self.equal(value)).sum();
        sum.min(1.0 - self.null()).max(0.0)
    }

    /// `<`, `<=`, `>`, `>=`, BETWEEN, `LIKE 'text%'`, IS NOT NULL. `None`: there is no histogram to tell.
    pub fn within(&self, bounds: &PartBounds) -> Option<f64> {
        self.within_keys(&self.key.range(bounds))
    }

    /// The same by the keys of the values, which leave NULL out.
    pub fn within_keys(&self, range: &KeyRange) -> Option<f64> {
        let histogram = self.statistics().histogram.as_ref()?;
        if range.is_empty() {
            return Some(0.0);
        }
        Some(histogram.share_of_range(range, &self.key).clamp(0.0, 1.0))
    }

    /// The same for `LIKE 'text%'`, by the keys of the strings that begin with the text.
    pub fn with_prefix(&self, range: &KeyRange) -> Option<f64> {
        let histogram = self.statistics().histogram.as_ref()?;
        Some(histogram.share_of_prefix(range, &self.key).clamp(0.0, 1.0))
    }

    /// Values that stand for the column, each with the share of the rows that it stands for: the common ones, and the
    /// first and the last of each bucket. What a condition that is no range accepts of them, it accepts of the rows.
    /// Strings are cut as the histogram has them. `None`: there is no histogram.
    ///
    /// # Errors
    /// `Corrupt` if the histogram does not hold values of the column.
    pub fn sample(&self, definition: &TableDefinition) -> Option<Result<Vec<(Value, f64)>>> {
        let histogram = self.statistics().histogram.as_ref()?;
        let common = histogram
            .common
            .iter()
            .map(|common| (&common.value, common.share));
        let bounds = histogram.buckets.iter().flat_map(|bucket| {
            let half = bucket.share / 2.0;
            [(&bucket.lower, half), (&bucket.upper, half)]
        });
        let decode = |(value, share): (&SampledValue, f64)| {
            let value = self.key.decode(definition, &value.key, &value.payload)?;
            Ok((value, share))
        };
        Some(common.chain(bounds).map(decode).collect())
    }
}
