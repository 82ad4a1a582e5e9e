//! Where the columns of a table are in its rows, if that is not simply in their order.
//!
//! ALGORITHM=INSTANT adds and drops columns without writing a row. Rows that are there stay as they are, and are read
//! as rows of the new definition:
//!
//! ```text
//!   CREATE TABLE t (a, b, c)         | a b c |
//!   ADD COLUMN d, ADD COLUMN e       | a b c |          and, from now on,  | a b c | d e |
//!   DROP COLUMN b                    | a - c |                             | a - c | d e |
//!   ADD COLUMN f FIRST               | a - c | and  | a - c | d e |  and   | a - c | d e | f |
//! ```
//!
//! A row is a number of *segments*, and each segment is laid out [as a row](crate::codec::row_codec) of its own fields.
//! The first one has the columns that the table had when it was made, or when its rows were written anew. Each
//! statement that adds columns adds one segment at the end. No segment is empty, so the length of a row says how many
//! it has: one that was written earlier just ends earlier. Its later columns have the values that they had as defaults
//! when they were added, which are kept here, whatever becomes of the default. A row that is changed is written with
//! all segments, unless it is numbers of the first one that change.
//!
//! The field of a column that was dropped stays where it is, as no value. So every row has the fields of its segments
//! at the same places, and nothing in a row says of which definition it is.
//!
//! A table whose rows are written anew by any change is of one segment again.

use sheaf_types::column_type::Stored;
use sheaf_types::{ColumnType, Value};

/// The most segments of a row. What would add one more writes the rows anew.
pub(crate) const MAX_SEGMENTS: usize = 64;
/// The most fields of all segments, dropped ones included.
pub(crate) const MAX_FIELDS: usize = 4_096;
/// The longest string that is kept for rows without it, in bytes.
pub(crate) const MAX_INITIAL_BYTES: usize = 1_024;

/// See the [module](self).
#[derive(Debug, Clone, PartialEq)]
pub struct RowShape {
    /// The fields of each segment; the first one is in all rows.
    pub(crate) segments: Vec<Vec<RowField>>,
}

/// A part of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowField {
    Column {
        /// Among the table's columns.
        position: usize,
        /// What it is in rows that end before this segment. UTC, for a TIMESTAMP.
        initial: Value,
    },
    /// Of a column that was dropped.
    Dropped { ty: ColumnType, nullable: bool },
}

impl RowShape {
    /// The shape of rows whose columns are in their order.
    pub(crate) fn plain(columns: usize) -> RowShape {
        let field = |position| RowField::Column {
            position,
            initial: Value::Null,
        };
        RowShape {
            segments: vec![(0..columns).map(field).collect()],
        }
    }

    /// Each column has one field, and no segment is empty.
    pub(crate) fn is_of(&self, columns: usize) -> bool {
        let fields = || self.segments.iter().flatten();
        let mut positions: Vec<usize> = fields()
            .filter_map(|field| match field {
                RowField::Column { position, .. } => Some(*position),
                RowField::Dropped { .. } => None,
            })
            .collect();
        positions.sort_unstable();
        positions.into_iter().eq(0..columns)
            && !self.segments.is_empty()
            && self.segments.len() <= MAX_SEGMENTS
            && fields().count() <= MAX_FIELDS
            && self.segments.iter().all(|segment| !segment.is_empty())
    }

    /// Rows without a field can be read as if they had it.
    pub(crate) fn fits<'c>(
        &self,
        column: impl Fn(usize) -> Option<(&'c ColumnType, bool)>,
    ) -> bool {
        let mut later = self.segments.iter().skip(1).flatten();
        later.all(|field| match field {
            RowField::Column { position, initial } => {
                column(*position).is_some_and(|(ty, nullable)| can_store(ty, nullable, initial))
            }
            RowField::Dropped { .. } => true,
        })
    }
}

/// Whether a column of this type can have this value.
pub(crate) fn can_store(ty: &ColumnType, nullable: bool, value: &Value) -> bool {
    let stored = ty.stored();
    let is_decimal = matches!(stored, Stored::Decimal { .. });
    match value {
        Value::Null => nullable,
        Value::Text(_) | Value::Bytes(_) | Value::Json(_) => stored == Stored::String,
        Value::Decimal { .. } => is_decimal && !ty.is_wide_decimal(),
        Value::WideDecimal { .. } => ty.is_wide_decimal(),
        Value::Float(_) => stored == Stored::Float,
        Value::Double(_) => stored == Stored::Double,
        // Stored as a number.
        _ => matches!(
            stored,
            Stored::Signed(_) | Stored::Unsigned(_) | Stored::Small
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_one_field() {
        assert!(RowShape::plain(3).is_of(3));
        assert!(!RowShape::plain(3).is_of(4) && !RowShape::plain(3).is_of(2));
        let mut shape = RowShape::plain(2);
        shape.segments.push(vec![RowField::Column {
            position: 1,
            initial: Value::Null,
        }]);
        assert!(!shape.is_of(2) && !shape.is_of(3));
        shape.segments[0][1] = RowField::Dropped {
            ty: ColumnType::Date,
            nullable: true,
        };
        assert!(shape.is_of(2));
        shape.segments.push(Vec::new());
        assert!(!shape.is_of(2));
    }
}
