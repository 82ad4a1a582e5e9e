//! Where a condition or a projection finds a column: in the rows, or in the entries of an index.

use arrow::datatypes::DataType;
use sheaf_table::{KeyLayout, PartKind, Table};
use sheaf_types::{ColumnType, temporal::TimeZone};

use crate::arrow_types::{CLUSTERED_KEY_TYPE, arrow_type};
use crate::condition::index_entries::value_width;
use crate::error::{AccessError, Result};

/// What bytes an access method reads its columns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Rows: the values of the clustered tree.
    Rows,
    /// Entries of this secondary index.
    Entries(usize),
}

/// How a column is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// In rows: a number of `width` bytes, little-endian, at `offset`.
    RowNumber {
        offset: usize,
        width: usize,
        kind: NumberKind,
    },
    /// In rows: a string.
    RowString,
    /// In entries: a number of `width` bytes, big-endian with its sign flipped, after the NULL byte of its part.
    KeyNumber {
        part: usize,
        width: usize,
        kind: NumberKind,
    },
    /// In entries: a string.
    KeyString { part: usize },
    /// The encoded clustered key: beside a row, or within an entry's key.
    ClusteredKey,
}

/// What the bytes of a number mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    Signed,
    Unsigned,
    Float,
}

/// A column of one source.
#[derive(Clone, Debug)]
pub(crate) struct ColumnSource {
    /// Position in the table.
    pub(crate) column: usize,
    pub(crate) ty: ColumnType,
    pub(crate) nullable: bool,
    /// Of a TIMESTAMP: the zone of values in conditions and batches. It is UTC in rows and entries.
    pub(crate) time_zone: TimeZone,
    pub(crate) place: Place,
    /// In rows: byte and mask of the NULL bit.
    pub(crate) null_bit: Option<(usize, u8)>,
    /// In rows: the segment that it is in, from whose beginning place and NULL bit are counted, and its number there.
    pub(crate) segment: (usize, usize),
}

impl ColumnSource {
    /// Finds a column; the position after the last one is the clustered key.
    ///
    /// # Errors
    /// `Unsupported` if the entries of the index do not hold the whole column.
    pub(crate) fn new(table: &Table, source: Source, column: usize) -> Result<Self> {
        let Some(definition) = table.definition.columns.get(column) else {
            return Ok(Self {
                column,
                ty: CLUSTERED_KEY_TYPE,
                nullable: false,
                time_zone: TimeZone::UTC,
                place: Place::ClusteredKey,
                null_bit: None,
                segment: (0, column),
            });
        };
        let mut segment = (0, column);
        let (place, null_bit) = match source {
            Source::Rows => {
                let place = match table.row_layout.fixed(column) {
                    Some((offset, width)) => Place::RowNumber {
                        offset,
                        width,
                        kind: number_kind(&definition.ty),
                    },
                    None => Place::RowString,
                };
                segment = table.row_layout.segment_of(column);
                (place, table.row_layout.null_bit(column))
            }
            Source::Entries(position) => {
                let layout = &table.secondary_layouts[position];
                (
                    key_place(layout, column)
                        .ok_or_else(|| not_in_index(table, position, column))?,
                    None,
                )
            }
        };
        Ok(Self {
            column,
            ty: definition.ty.clone(),
            nullable: definition.nullable,
            time_zone: definition.time_zone,
            place,
            null_bit,
            segment,
        })
    }
}

fn key_place(layout: &KeyLayout, column: usize) -> Option<Place> {
    let part = layout.part_of(column)?;
    let kind = layout.parts[part].kind;
    Some(match value_width(kind) {
        Some(width) => {
            let kind = match kind {
                PartKind::Float | PartKind::Double => NumberKind::Float,
                PartKind::Integer { unsigned: true, .. } | PartKind::RowId => NumberKind::Unsigned,
                _ => NumberKind::Signed,
            };
            Place::KeyNumber { part, width, kind }
        }
        None => Place::KeyString { part },
    })
}

fn not_in_index(table: &Table, index: usize, column: usize) -> AccessError {
    AccessError::Unsupported(format!(
        "index '{}' of table '{}' does not hold column '{}'",
        table.definition.secondary[index].name,
        table.definition.name,
        table.definition.columns[column].name
    ))
}

/// How the numbers of a type of fixed width are read.
fn number_kind(ty: &ColumnType) -> NumberKind {
    match arrow_type(ty) {
        DataType::Float32 | DataType::Float64 => NumberKind::Float,
        number if number.is_unsigned_integer() => NumberKind::Unsigned,
        // The number of its label, or of its labels.
        _ if ty.has_labels() => NumberKind::Unsigned,
        _ => NumberKind::Signed,
    }
}

/// Digits after the point of a DECIMAL column, 0 for all other types.
pub(crate) fn scale_of(ty: &ColumnType) -> u8 {
    ty.decimal_digits().map_or(0, |(_, scale)| scale)
}
