//! The columns that CREATE TABLE … SELECT makes of those of a query.
//!
//! A column of a table keeps its type, its default and its comment. Of an expression the plan knows the kind of its
//! values, and [`value_extent`](crate::query::value_extent) how long they can be:
//!
//! ```text
//!   'abc'  varchar(3)     1  int     concat(v, 'x')  varchar(4)     d * 2  decimal(11,2)     upper(t)  mediumtext
//! ```
//!
//! What is not known keeps the widest type of its kind.

use arrow::datatypes::{DataType, Field};
use sheaf_access::TYPE_KEY;
use sheaf_table::Column;
use sheaf_table::schema::{DefaultValue, same_name};
use sheaf_types::column_type::MAX_CHARACTER_BYTES;
use sheaf_types::{ColumnType, Value};

use crate::definition::ddl::column_type_of;
use crate::query::value_extent::Extent;
use crate::session::Session;
use crate::session::result::{ColumnMeta, is_of_any_length};

/// Longer texts and byte strings become TEXT and BLOB.
const MAX_LENGTH: u32 = 512;
/// What TEXT and BLOB, and their kinds of other lengths, hold.
const LONG_BYTES: [u64; 3] = [65_535, 16_777_215, 4_294_967_295];

impl Session {
    /// The column that holds what a column of a query shows.
    pub(super) fn made_column(
        &self,
        field: &Field,
        meta: &ColumnMeta,
        extent: Option<Extent>,
    ) -> Column {
        let nullable = field.is_nullable();
        let origin = match meta.org_table.is_empty() {
            true => None,
            false => self.table_names().columns(&meta.database, &meta.org_table),
        };
        let origin = origin.and_then(|columns| {
            let mut columns = columns.into_iter();
            columns.find(|column| same_name(&column.name, &meta.org_name))
        });
        match origin {
            Some(column) => Column {
                name: meta.name.clone(),
                nullable,
                auto_increment: false,
                generated: None,
                default: match column.auto_increment && !nullable {
                    true => Some(DefaultValue::Value(zero_of(&column.ty))),
                    // Its columns are not there.
                    false => match column.default_expression() {
                        Some(default) if !default.columns.is_empty() => None,
                        _ => column.default.clone(),
                    },
                },
                ..column
            },
            None => {
                let ty = made_type(field, extent);
                Column::new(meta.name.clone(), ty, nullable)
            }
        }
    }
}

fn zero_of(ty: &ColumnType) -> Value {
    match ty {
        ty if !ty.is_integer() => Value::Null,
        ty if ty.is_unsigned() => Value::UInt(0),
        _ => Value::Int(0),
    }
}

/// The type of a column with these values.
fn made_type(field: &Field, extent: Option<Extent>) -> ColumnType {
    let general = column_type_of(field);
    match (&general, extent) {
        _ if field.data_type() == &DataType::Null => ColumnType::VarBinary { length: 0 },
        (ColumnType::VarChar { .. } | ColumnType::Text { .. }, extent) => {
            let collation = general.collation().unwrap_or_default();
            match extent {
                Some(Extent::Text(length) | Extent::Shown(length)) if length <= MAX_LENGTH => {
                    ColumnType::VarChar { length, collation }
                }
                Some(Extent::Null) => ColumnType::VarChar {
                    length: 0,
                    collation,
                },
                extent
                    if is_of_any_length(&general) || !field.metadata().contains_key(TYPE_KEY) =>
                {
                    let characters = extent.map(Extent::shown);
                    let bytes = characters
                        .map(|length| u64::from(length).saturating_mul(MAX_CHARACTER_BYTES.into()));
                    ColumnType::Text {
                        max_bytes: long_bytes(bytes),
                        collation,
                    }
                }
                _ => general,
            }
        }
        (ColumnType::Blob { .. }, Some(Extent::Bytes(length))) => match length <= MAX_LENGTH {
            true => ColumnType::VarBinary { length },
            false => ColumnType::Blob {
                max_bytes: long_bytes(Some(length.into())),
            },
        },
        (
            ColumnType::BigInt { unsigned },
            Some(Extent::Integer {
                is_narrow: true, ..
            }),
        ) => ColumnType::Int {
            unsigned: *unsigned,
        },
        (
            ColumnType::Decimal {
                precision,
                scale,
                unsigned,
            },
            Some(Extent::Decimal {
                precision: known,
                scale: known_scale,
            }),
        ) if known_scale == u32::from(*scale) && known < u32::from(*precision) => {
            ColumnType::Decimal {
                precision: u8::try_from(known).unwrap_or(*precision),
                scale: *scale,
                unsigned: *unsigned,
            }
        }
        (
            ColumnType::Decimal {
                precision,
                scale: 0,
                unsigned,
            },
            Some(Extent::Integer { digits, .. }),
        ) if digits < u32::from(*precision) => ColumnType::Decimal {
            precision: u8::try_from(digits.max(1)).unwrap_or(*precision),
            scale: 0,
            unsigned: *unsigned,
        },
        _ => general,
    }
}

/// The smallest of the long types with room for so many bytes, or for any number.
fn long_bytes(bytes: Option<u64>) -> u64 {
    let [.., longest] = LONG_BYTES;
    let bytes = bytes.unwrap_or(longest);
    let mut kinds = LONG_BYTES.into_iter();
    kinds.find(|most| bytes <= *most).unwrap_or(longest)
}
