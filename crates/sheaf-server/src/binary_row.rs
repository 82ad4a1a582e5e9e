//! Rows of the binary protocol, which answer COM_STMT_EXECUTE.
//!
//! ```text
//!   0x00 | NULL bitmap: (columns + 7 + 2) / 8 bytes, column i is bit i + 2 | the values that are not NULL
//! ```
//!
//! Integers and floats have the width of the column's type, little-endian. Dates and times begin with their
//! length and leave out what is zero at their end. Everything else, decimals too, is text as in `text_row`.

use sheaf_sql::{Cell, CellReader, ColumnMeta, MysqlColumnType, SqlError};
use sheaf_types::number::{Int256, decimal_to_double, wide_decimal_to_double};
use sheaf_types::temporal::{civil_from_days, split_datetime, split_time};

use crate::text_row::encode_text;

/// The NULL bitmap of a row begins with two bits that are not used.
const NULL_BITMAP_OFFSET: usize = 2;

/// Appends one row of a batch. Error 1105 if a value does not have the type that was announced for its column.
pub fn encode(
    readers: &[CellReader<'_>],
    columns: &[ColumnMeta],
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    encode_cells(readers.iter().map(|reader| reader.cell(row)), columns, out)
}

/// Appends a row with these values. Error 1105 if one does not have the type that was announced for its column.
pub fn encode_cells<'a>(
    cells: impl Iterator<Item = Cell<'a>>,
    columns: &[ColumnMeta],
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    out.push(0);
    let bitmap = out.len();
    out.resize(bitmap + (columns.len() + NULL_BITMAP_OFFSET).div_ceil(8), 0);
    for (position, (cell, column)) in cells.zip(columns).enumerate() {
        match cell {
            Cell::Null => {
                let bit = position + NULL_BITMAP_OFFSET;
                out[bitmap + bit / 8] |= 1 << (bit % 8);
            }
            cell => encode_value(cell, column, out)?,
        }
    }
    Ok(())
}

fn encode_value(cell: Cell<'_>, column: &ColumnMeta, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let mismatch = || {
        SqlError::unknown(format!(
            "column '{}' was announced as {:?} and has the value {cell:?}",
            column.name, column.type_
        ))
    };
    match column.type_ {
        MysqlColumnType::Tiny => out.push(integer(cell).ok_or_else(mismatch)? as u8),
        MysqlColumnType::Short | MysqlColumnType::Year => {
            out.extend_from_slice(&(integer(cell).ok_or_else(mismatch)? as u16).to_le_bytes());
        }
        MysqlColumnType::Long | MysqlColumnType::Int24 => {
            out.extend_from_slice(&(integer(cell).ok_or_else(mismatch)? as u32).to_le_bytes());
        }
        MysqlColumnType::LongLong => {
            out.extend_from_slice(&(integer(cell).ok_or_else(mismatch)? as u64).to_le_bytes());
        }
        MysqlColumnType::Float => {
            out.extend_from_slice(&(number(cell).ok_or_else(mismatch)? as f32).to_le_bytes());
        }
        MysqlColumnType::Double => {
            out.extend_from_slice(&number(cell).ok_or_else(mismatch)?.to_le_bytes())
        }
        MysqlColumnType::Date => match cell {
            Cell::Date(days) => encode_date(days, out),
            Cell::DateTime(micros) => encode_date(split_datetime(micros).0, out),
            _ => return Err(mismatch()),
        },
        MysqlColumnType::DateTime | MysqlColumnType::Timestamp => match cell {
            Cell::Date(days) => encode_date(days, out),
            Cell::DateTime(micros) => encode_date_time(micros, out),
            _ => return Err(mismatch()),
        },
        MysqlColumnType::Time => match cell {
            Cell::Time(micros) => encode_time(micros, out),
            _ => return Err(mismatch()),
        },
        _ => return encode_text(cell, column, out),
    }
    Ok(())
}

/// The bits of an integer of either sign.
fn integer(cell: Cell<'_>) -> Option<i64> {
    match cell {
        Cell::Signed(value) => Some(value),
        Cell::Unsigned(value) => Some(value as i64),
        Cell::Decimal { unscaled, scale: 0 } => i64::try_from(unscaled)
            .ok()
            .or_else(|| u64::try_from(unscaled).ok().map(|value| value as i64)),
        Cell::WideDecimal { unscaled, scale: 0 } => {
            let number = Int256::from(unscaled).to_i128()?;
            let signed = i64::try_from(number).ok();
            signed.or_else(|| u64::try_from(number).ok().map(|value| value as i64))
        }
        _ => None,
    }
}

fn number(cell: Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Float(value) => Some(value.into()),
        Cell::Double(value) => Some(value),
        Cell::Signed(value) => Some(value as f64),
        Cell::Unsigned(value) => Some(value as f64),
        Cell::Decimal { unscaled, scale } => Some(decimal_to_double(unscaled, scale.max(0) as u8)),
        Cell::WideDecimal { unscaled, scale } => {
            Some(wide_decimal_to_double(unscaled.into(), scale.max(0) as u8))
        }
        _ => None,
    }
}

fn put_date(days: i32, out: &mut Vec<u8>) {
    let (year, month, day) = civil_from_days(days);
    out.extend_from_slice(&(year.clamp(0, 9999) as u16).to_le_bytes());
    out.push(month as u8);
    out.push(day as u8);
}

fn encode_date(days: i32, out: &mut Vec<u8>) {
    out.push(4);
    put_date(days, out);
}

fn encode_date_time(micros: i64, out: &mut Vec<u8>) {
    let (days, micros_of_day) = split_datetime(micros);
    if micros_of_day == 0 {
        return encode_date(days, out);
    }
    let (hours, minutes, seconds, fraction) = split_time(micros_of_day);
    out.push(if fraction == 0 { 7 } else { 11 });
    put_date(days, out);
    out.extend_from_slice(&[hours as u8, minutes as u8, seconds as u8]);
    if fraction != 0 {
        out.extend_from_slice(&(fraction as u32).to_le_bytes());
    }
}

fn encode_time(micros: i64, out: &mut Vec<u8>) {
    if micros == 0 {
        return out.push(0);
    }
    let (hours, minutes, seconds, fraction) = split_time(micros);
    out.push(if fraction == 0 { 8 } else { 12 });
    out.push(u8::from(micros < 0));
    out.extend_from_slice(&((hours / 24) as u32).to_le_bytes());
    out.extend_from_slice(&[(hours % 24) as u8, minutes as u8, seconds as u8]);
    if fraction != 0 {
        out.extend_from_slice(&(fraction as u32).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_row::tests::{column, every_type};
    use arrow::array::{ArrayRef, StringViewArray};
    use arrow::record_batch::RecordBatch;
    use sheaf_sql::cell_readers as readers;
    use std::sync::Arc;

    #[test]
    fn values_have_the_width_of_their_type() {
        let (batch, columns) = every_type();
        let readers = readers(&batch, &columns).expect("all types are known");
        let mut out = Vec::new();
        encode(&readers, &columns, 0, &mut out).expect("values fit their columns");
        let expected = [
            // Of 15 columns only the last is NULL: bit 16.
            &[0, 0, 0, 1][..],
            &[0x80, 1],
            &i64::MIN.to_le_bytes(),
            &u64::MAX.to_le_bytes(),
            &(-7_i32).to_le_bytes(),
            b"\x07-123.45",
            &2.5_f32.to_le_bytes(),
            &1e20_f64.to_le_bytes(),
            b"\x10a longer text \xC3\xA9",
            &[2, 0, 0xFF],
            &[4, 0xCC, 0x07, 12, 31],
            &[11, 0xB2, 0x07, 1, 1, 0, 0, 1, 0x20, 0xA1, 0x07, 0],
            &[8, 1, 1, 0, 0, 0, 1, 1, 1],
            &1999_u16.to_le_bytes(),
        ]
        .concat();
        assert_eq!(out, expected);

        out.clear();
        encode(&readers, &columns, 1, &mut out).expect("NULL fits every column");
        assert_eq!(out, [0, 0b1111_1100, 0xFF, 1]);
    }

    #[test]
    fn a_value_of_another_type_than_announced_is_an_error() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["not a number"]));
        let batch = RecordBatch::try_from_iter([("n", texts)]).expect("one column");
        for type_ in [
            MysqlColumnType::LongLong,
            MysqlColumnType::Double,
            MysqlColumnType::Date,
        ] {
            let columns = [column("n", type_, 0)];
            let readers = readers(&batch, &columns).expect("texts are known");
            assert_eq!(
                encode(&readers, &columns, 0, &mut Vec::new()).map_err(|error| error.code),
                Err(1105)
            );
        }
    }
}
