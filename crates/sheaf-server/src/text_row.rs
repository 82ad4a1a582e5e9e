//! Rows of the text protocol, which answer COM_QUERY.
//!
//! A row is its values one after the other, each a text with its length in front; the byte 0xFB is NULL.

use arrow::record_batch::RecordBatch;
use mysql_common::io::BufMutExt;
use sheaf_memory::LONG_VALUE_BYTES;
use sheaf_sql::{Cell, CellReader, ColumnMeta, MysqlColumnType, SqlError, cell_readers};
use sheaf_types::temporal::{self, DAY};
use sheaf_types::{Value, number};

const NULL: u8 = 0xFB;
/// `decimals` of a column whose values have as many digits after the point as they need.
const NOT_FIXED_DECIMALS: u8 = 31;
/// Of the length of a text.
const MAX_LENGTH_BYTES: usize = 9;
/// Longer texts have lengths of three bytes or more.
const MAX_SHORT_TEXT_BYTES: usize = 250;
/// Values of so many bytes are looked at one by one: many of them may be more than there is room for.
const MIDDLING_BYTES: usize = 128 << 10;

/// Appends one row of a batch. Fails as [`encode_text`] does.
pub fn encode(
    readers: &[CellReader<'_>],
    columns: &[ColumnMeta],
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    encode_cells(readers.iter().map(|reader| reader.cell(row)), columns, out)
}

/// Appends a row with these values. Fails as [`encode_text`] does.
pub fn encode_cells<'a>(
    cells: impl Iterator<Item = Cell<'a>>,
    columns: &[ColumnMeta],
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    for (cell, column) in cells.zip(columns) {
        match cell {
            Cell::Null => out.push(NULL),
            cell => encode_text(cell, column, out)?,
        }
    }
    Ok(())
}

/// Appends a value that is not NULL as a text with its length in front.
///
/// # Errors
/// The value is long, and the process has no room for it: the statement has been told to stop.
pub fn encode_text(cell: Cell<'_>, column: &ColumnMeta, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if let Cell::Bytes(bytes) = cell {
        make_room_for(bytes.len(), out)?;
        out.put_lenenc_str(bytes);
        return Ok(());
    }
    if let Cell::Json(bytes) = cell {
        let text = json_text(bytes);
        return encode_text(Cell::Bytes(text.as_bytes()), column, out);
    }
    // Only a DOUBLE with fixed decimals can be too long for a length of one byte.
    let start = out.len();
    out.push(0);
    append_text(cell, column, out);
    let bytes = out.len() - start - 1;
    if bytes <= MAX_SHORT_TEXT_BYTES {
        out[start] = bytes as u8;
    } else {
        let mut length = Vec::new();
        length.put_lenenc_int(bytes as u64);
        out.splice(start..=start, length);
    }
    Ok(())
}

/// The text of a JSON value.
fn json_text(bytes: &[u8]) -> String {
    Value::Json(bytes.to_vec()).to_string()
}

/// A long value gets the room that it takes, and no more.
fn make_room_for(bytes: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let all = bytes + MAX_LENGTH_BYTES;
    let has_room = match all <= out.capacity() - out.len() {
        // The process takes what was reserved when it is written to.
        true => bytes < MIDDLING_BYTES || sheaf_memory::has_room_for(bytes),
        // What is there is copied.
        false => sheaf_memory::has_room_for_value(bytes + out.len()),
    };
    if !has_room {
        return Err(SqlError::query_interrupted());
    }
    if all <= out.capacity() - out.len() {
        return Ok(());
    }
    if bytes >= LONG_VALUE_BYTES && bytes > out.len() {
        out.reserve_exact(all);
    }
    Ok(())
}

/// The texts of a batch's values, for callers that show rows instead of sending them.
pub struct TextRows<'a> {
    readers: Vec<CellReader<'a>>,
    columns: &'a [ColumnMeta],
}

impl<'a> TextRows<'a> {
    /// Error 1105 if the batch is not of these columns.
    pub fn new(batch: &'a RecordBatch, columns: &'a [ColumnMeta]) -> Result<Self, SqlError> {
        Ok(TextRows {
            readers: cell_readers(batch, columns)?,
            columns,
        })
    }

    /// Appends the text of a value to `out`; `false` if it is NULL.
    pub fn append(&self, row: usize, column: usize, out: &mut Vec<u8>) -> bool {
        match self.readers[column].cell(row) {
            Cell::Null => false,
            cell => {
                append_text(cell, &self.columns[column], out);
                true
            }
        }
    }
}

/// Appends the text of a value, which for NULL is empty. That of a number with ZEROFILL has zeros in front.
fn append_text(cell: Cell<'_>, column: &ColumnMeta, out: &mut Vec<u8>) {
    if !column.has_zeros_in_front() {
        return append_plain(cell, column, out);
    }
    let start = out.len();
    append_plain(cell, column, out);
    let missing = (column.length as usize).saturating_sub(out.len() - start);
    if !matches!(cell, Cell::Null) {
        out.splice(start..start, std::iter::repeat_n(b'0', missing));
    }
}

fn append_plain(cell: Cell<'_>, column: &ColumnMeta, out: &mut Vec<u8>) {
    let decimals = column.decimals;
    let is_year = column.has_filled_years();
    match cell {
        Cell::Null => {}
        Cell::Bytes(bytes) => out.extend_from_slice(bytes),
        Cell::Json(bytes) => out.extend_from_slice(json_text(bytes).as_bytes()),
        Cell::Signed(value) if is_year => temporal::push_year(value as u16, out),
        Cell::Unsigned(value) if is_year => temporal::push_year(value as u16, out),
        Cell::Signed(value) => number::push_signed(value, out),
        Cell::Unsigned(value) => match column.bit_length() {
            Some(length) => number::push_bit_bytes(value, length, out),
            None => number::push_unsigned(value, out),
        },
        Cell::Decimal { unscaled, scale } => {
            number::push_decimal(unscaled, scale.max(0) as u8, out);
        }
        Cell::WideDecimal { unscaled, scale } => {
            number::push_wide_decimal(unscaled.into(), scale.max(0) as u8, out);
        }
        Cell::Float(value) if decimals < NOT_FIXED_DECIMALS => {
            number::push_fixed_double(value.into(), decimals, out);
        }
        Cell::Float(value) => number::push_float(value, out),
        Cell::Double(value) if decimals < NOT_FIXED_DECIMALS => {
            number::push_fixed_double(value, decimals, out);
        }
        Cell::Double(value) => number::push_double(value, out),
        Cell::Date(days) => match column.type_ {
            MysqlColumnType::DateTime | MysqlColumnType::Timestamp => {
                temporal::push_datetime(i64::from(days) * DAY, decimals, out);
            }
            _ => temporal::push_date(days, out),
        },
        Cell::DateTime(micros) => match column.type_ {
            MysqlColumnType::Date => temporal::push_date(temporal::split_datetime(micros).0, out),
            _ => temporal::push_datetime(micros, decimals, out),
        },
        Cell::Time(micros) => temporal::push_time(micros, decimals, out),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, Date32Array, Decimal128Array, DurationMicrosecondArray,
        Float32Array, Float64Array, Int8Array, Int64Array, NullArray, StringViewArray,
        TimestampMicrosecondArray, UInt16Array, UInt64Array,
    };
    use arrow::array::{BinaryArray, ListArray};
    use arrow::datatypes::Int32Type;
    use sheaf_sql::column_flags;

    pub(crate) fn column(name: &str, type_: MysqlColumnType, decimals: u8) -> ColumnMeta {
        ColumnMeta {
            name: name.into(),
            org_name: name.into(),
            table: "t".into(),
            org_table: "t".into(),
            database: "shop".into(),
            type_,
            collation_id: 255,
            length: 80,
            decimals,
            flags: 0,
            declared: None,
        }
    }

    /// One row with a column of each kind, and one of NULLs.
    pub(crate) fn every_type() -> (RecordBatch, Vec<ColumnMeta>) {
        use MysqlColumnType as T;
        let decimal = Decimal128Array::from(vec![Some(-12_345), None]);
        let columns: Vec<(ColumnMeta, ArrayRef)> = vec![
            (
                column("tiny", T::Tiny, 0),
                Arc::new(Int8Array::from(vec![Some(-128), None])),
            ),
            (
                column("bool", T::Tiny, 0),
                Arc::new(BooleanArray::from(vec![Some(true), None])),
            ),
            (
                column("big", T::LongLong, 0),
                Arc::new(Int64Array::from(vec![Some(i64::MIN), None])),
            ),
            (
                column("huge", T::LongLong, 0),
                Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
            ),
            (
                column("narrow", T::Long, 0),
                Arc::new(Int64Array::from(vec![Some(-7), None])),
            ),
            (
                column("price", T::NewDecimal, 2),
                Arc::new(decimal.with_precision_and_scale(15, 2).expect("it fits")),
            ),
            (
                column("float", T::Float, 31),
                Arc::new(Float32Array::from(vec![Some(2.5), None])),
            ),
            (
                column("double", T::Double, 31),
                Arc::new(Float64Array::from(vec![Some(1e20), None])),
            ),
            (
                column("text", T::VarString, 0),
                Arc::new(StringViewArray::from(vec![Some("a longer text é"), None])),
            ),
            (
                column("bytes", T::Blob, 0),
                Arc::new(BinaryArray::from_opt_vec(vec![Some(&[0, 0xFF]), None])),
            ),
            (
                column("date", T::Date, 0),
                Arc::new(Date32Array::from(vec![Some(9_861), None])),
            ),
            (
                column("moment", T::DateTime, 3),
                Arc::new(TimestampMicrosecondArray::from(vec![Some(1_500_000), None])),
            ),
            (
                column("length", T::Time, 0),
                Arc::new(DurationMicrosecondArray::from(vec![
                    Some(-90_061_000_000),
                    None,
                ])),
            ),
            (
                column("year", T::Year, 0),
                Arc::new(UInt16Array::from(vec![Some(1999), None])),
            ),
            (column("nothing", T::Null, 0), Arc::new(NullArray::new(2))),
        ];
        let batch = RecordBatch::try_from_iter(
            columns
                .iter()
                .map(|(meta, array)| (&meta.name, array.clone())),
        )
        .expect("the columns have two rows each");
        (batch, columns.into_iter().map(|(meta, _)| meta).collect())
    }

    #[test]
    fn a_row_is_texts_with_their_lengths() {
        let (batch, columns) = every_type();
        let readers = cell_readers(&batch, &columns).expect("all types are known");
        let mut out = Vec::new();
        encode(&readers, &columns, 0, &mut out).expect("room");
        let texts: Vec<&[u8]> = vec![
            b"-128",
            b"1",
            b"-9223372036854775808",
            b"18446744073709551615",
            b"-7",
            b"-123.45",
            b"2.5",
            b"1e20",
            "a longer text é".as_bytes(),
            &[0, 0xFF],
            b"1996-12-31",
            b"1970-01-01 00:00:01.500",
            b"-25:01:01",
            b"1999",
        ];
        let mut expected: Vec<u8> = texts
            .iter()
            .flat_map(|text| [&[text.len() as u8], *text].concat())
            .collect();
        expected.push(NULL);
        assert_eq!(out, expected);

        out.clear();
        encode(&readers, &columns, 1, &mut out).expect("room");
        assert_eq!(out, [NULL; 15]);
    }

    #[test]
    fn bits_are_as_many_bytes_as_they_take() {
        let bits = ColumnMeta {
            length: 10,
            ..column("b", MysqlColumnType::Bit, 0)
        };
        let mut out = Vec::new();
        encode_text(Cell::Unsigned(5), &bits, &mut out).expect("room");
        assert_eq!(out, [2, 0, 5]);
    }

    #[test]
    fn numbers_with_zerofill_have_zeros_in_front() {
        let filled = ColumnMeta {
            flags: column_flags::UNSIGNED | column_flags::ZEROFILL,
            length: 6,
            ..column("n", MysqlColumnType::Long, 0)
        };
        let text = |cell: Cell<'_>| {
            let mut out = Vec::new();
            encode_text(cell, &filled, &mut out).expect("room");
            out
        };
        assert_eq!(text(Cell::Unsigned(42)), b"\x06000042");
        assert_eq!(text(Cell::Unsigned(1_234_567)), b"\x071234567");
        let price = Cell::Decimal {
            unscaled: 150,
            scale: 2,
        };
        assert_eq!(text(price), b"\x06001.50");
    }

    #[test]
    fn long_texts_have_longer_lengths() {
        let long = "x".repeat(70_000);
        let array: ArrayRef = Arc::new(StringViewArray::from(vec![
            &long[..250],
            &long[..251],
            &long,
        ]));
        let batch = RecordBatch::try_from_iter([("text", array)]).expect("one column");
        let columns = [column("text", MysqlColumnType::Blob, 0)];
        let readers = cell_readers(&batch, &columns).expect("texts are known");
        for (row, head) in [
            (0, &[250][..]),
            (1, &[0xFC, 251, 0]),
            (2, &[0xFD, 0x70, 0x11, 0x01]),
        ] {
            let mut out = Vec::new();
            encode(&readers, &columns, row, &mut out).expect("room");
            assert_eq!(&out[..head.len()], head);
        }
    }

    #[test]
    fn a_double_with_fixed_decimals_may_need_a_longer_length_too() {
        let mut out = Vec::new();
        encode_text(
            Cell::Double(1e300),
            &column("d", MysqlColumnType::Double, 2),
            &mut out,
        )
        .expect("room");
        let text_bytes = 301 + 1 + 2;
        assert_eq!(
            out[..4],
            [
                0xFC,
                (text_bytes % 256) as u8,
                (text_bytes / 256) as u8,
                b'1'
            ]
        );
        assert_eq!(out.len(), 3 + text_bytes);
    }

    #[test]
    fn a_type_without_a_counterpart_is_an_error() {
        let lists: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some([
                Some(1),
            ])]));
        let batch = RecordBatch::try_from_iter([("list", lists)]).expect("one column");
        let columns = [column("list", MysqlColumnType::VarString, 0)];
        assert_eq!(
            cell_readers(&batch, &columns).err().map(|error| error.code),
            Some(1105)
        );
        assert_eq!(
            cell_readers(&batch, &[]).err().map(|error| error.code),
            Some(1105)
        );
    }
}
