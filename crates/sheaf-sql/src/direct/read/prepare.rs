//! A plan with its parameters: whether they suit it, and how its rows are read.

use sheaf_storage::KeyRange;
use sheaf_table::Table;
use sheaf_types::Value;

use super::clauses::row_count;
use super::{MAX_LIMITED_ROWS, MAX_WHOLE_ROWS, Read, Ready, Shown, Way};
use crate::direct::access::{BoundAccess, Keys, MAX_ROWS};
use crate::error::Result;

impl Read {
    /// `None`: the operands or the number of rows do not suit. `most`: rows that the session lets a query send.
    pub(in crate::direct) fn prepare(
        &self,
        most: u64,
        table: &Table,
        parameters: &[Value],
    ) -> Result<Option<Ready>> {
        let (Some(bound), Some(limit), Some(offset)) = (
            self.access.bind(table, parameters),
            row_count(self.limit.as_ref(), parameters, u64::MAX),
            row_count(self.offset.as_ref(), parameters, 0),
        ) else {
            return Ok(None);
        };
        // A LIMIT of the statement's own comes before the session's.
        let limit = match self.limit {
            Some(_) => limit,
            None => most,
        };
        let ready = |bound, way| Ready {
            bound,
            limit,
            offset,
            way,
        };
        let wanted = limit.saturating_add(offset);
        if !self.is_long(table, &bound, (limit, offset))? {
            return Ok(Some(ready(bound, Way::Through)));
        }
        let may_end_early =
            self.limit.is_some() && wanted <= MAX_LIMITED_ROWS && self.distinct.is_none();
        Ok(match &self.walk {
            _ if !may_end_early => None,
            _ if self.order.is_none() => Some(ready(bound, Way::ForAWhile)),
            Some(walk) => {
                let bound = walk.access.bind(table, parameters);
                bound.map(|bound| ready(bound, Way::InOrder))
            }
            None => None,
        })
    }

    /// Whether so many rows may lie under the keys that the vectorised path is better.
    fn is_long(
        &self,
        table: &Table,
        bound: &BoundAccess,
        (limit, offset): (u64, u64),
    ) -> Result<bool> {
        let is_short = matches!(bound.keys, Keys::Points(_))
            || matches!(self.shown, Shown::Aggregates { ends_at_first, .. } if ends_at_first);
        if is_short {
            return Ok(false);
        }
        let sends_all = matches!(self.shown, Shown::Columns(_))
            && self.order.is_none()
            && self.distinct.is_none();
        // Of the rows that are passed over nothing is shown.
        let is_limited = limit <= MAX_LIMITED_ROWS && limit.saturating_add(offset) <= MAX_ROWS;
        if sends_all && !self.access.has_tests() && is_limited {
            return Ok(false);
        }
        if self.access.is_whole() {
            return Ok(!self.reads_whole || !self.is_small(table)?);
        }
        Ok(bound.keys.estimated_rows(table, self.access.index)? > self.access.most_rows())
    }

    /// Whether a table has so few rows that it is read from end to end.
    pub(in crate::direct) fn is_small(&self, table: &Table) -> Result<bool> {
        let most = match self.shown {
            Shown::Aggregates {
                counts_entries: true,
                ..
            } => MAX_ROWS,
            _ => MAX_WHOLE_ROWS.min(self.access.most_rows()),
        };
        Ok(table.clustered.estimate_entries(&KeyRange::all())? <= most)
    }

    /// Whether the number of rows still is what the plan was made for.
    pub(in crate::direct) fn is_current(&self, table: &Table) -> bool {
        !self.reads_whole || matches!(self.is_small(table), Ok(true))
    }
}
