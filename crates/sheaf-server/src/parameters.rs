//! Values that a client binds to a prepared statement.
//!
//! COM_STMT_EXECUTE carries, when the statement has parameters:
//!
//! ```text
//!   NULL bitmap: (n + 7) / 8 bytes | 1 if types follow, else 0 | [type, flags] x n | values
//! ```
//!
//! Types are sent once and remembered; NULL parameters and those sent ahead by COM_STMT_SEND_LONG_DATA have no
//! bytes among the values.

use mysql_common::constants::ColumnType;
use mysql_common::io::ParseBuf;
use sheaf_sql::encoding::TextEncoding;
use sheaf_sql::{Share, SqlError};
use sheaf_types::error::codes;
use sheaf_types::number::MAX_WIDE_DIGITS;
use sheaf_types::temporal::{DAY, SECOND, checked_days};
use sheaf_types::{Value, number_literal};

/// Set in a type's second byte when its integers are unsigned.
const UNSIGNED_FLAG: u8 = 0x80;

/// What a connection keeps about one of its prepared statements.
#[derive(Debug, Default)]
pub struct BoundStatement {
    parameters: usize,
    /// What the client bound last; empty until it did.
    types: Vec<(ColumnType, bool)>,
    /// Parameters sent in pieces since the last execution.
    long_data: Vec<Option<Vec<u8>>>,
    long_data_bytes: usize,
    /// Of what all sessions may keep, for these pieces.
    memory: Option<Share>,
    /// What went wrong with a piece, which has no answer of its own: the next execution reports it.
    long_data_error: Option<SqlError>,
}

impl BoundStatement {
    pub fn new(parameters: usize) -> Self {
        BoundStatement {
            parameters,
            long_data: vec![None; parameters],
            ..BoundStatement::default()
        }
    }

    /// A piece of a parameter. All pieces of one execution together are bounded by `max_bytes`, and take their memory
    /// of what `keep` gives.
    pub fn append_long_data(
        &mut self,
        (parameter, data): (usize, &[u8]),
        max_bytes: usize,
        keep: impl FnOnce(usize) -> Result<Share, SqlError>,
    ) {
        if parameter >= self.long_data.len() {
            self.long_data_error = Some(SqlError::wrong_arguments("mysqld_stmt_send_long_data"));
            return;
        };
        if self.long_data_bytes + data.len() > max_bytes {
            self.long_data_error = Some(SqlError::unknown(
                "Parameter of prepared statement which is set through mysql_send_long_data() is longer than \
                 'max_allowed_packet' bytes",
            ));
            return;
        }
        let bytes = self.long_data_bytes + data.len();
        let has_room = self
            .memory
            .as_mut()
            .is_some_and(|share| share.resize(bytes));
        if !has_room {
            // What it has is given back first: a session's pieces do not wait for themselves.
            self.memory = None;
            match keep(bytes) {
                Ok(share) => self.memory = Some(share),
                Err(error) => {
                    self.reset();
                    self.long_data_error = Some(error);
                    return;
                }
            }
        }
        let slot = &mut self.long_data[parameter];
        self.long_data_bytes = bytes;
        slot.get_or_insert_default().extend_from_slice(data);
    }

    /// What the pieces have of what all sessions may keep. An execution holds it as long as it has their values.
    pub fn take_memory(&mut self) -> Option<Share> {
        self.memory.take()
    }

    /// Forgets what was sent in pieces (COM_STMT_RESET, and after each execution).
    pub fn reset(&mut self) {
        self.long_data.fill(None);
        self.long_data_bytes = 0;
        self.memory = None;
        self.long_data_error = None;
    }

    /// The parameters of an execution; `body` is the command's packet from the NULL bitmap on. Error 1835 if it
    /// is not as the protocol has it, 1210 if no types were ever sent, 1235 for texts that are not UTF-8 by `encoding`.
    pub fn decode(&mut self, body: &[u8], encoding: TextEncoding) -> Result<Vec<Value>, SqlError> {
        if let Some(error) = self.long_data_error.take() {
            self.reset();
            return Err(error);
        }
        let result = self.decode_values(body);
        self.reset();
        let values = result?;
        if let Some(set) = encoding.table_set()
            && values.iter().any(needs_conversion)
        {
            let name = set.name();
            return Err(SqlError::not_supported_yet(format!(
                "a parameter with characters beyond ASCII in character_set_client {name}"
            )));
        }
        Ok(values)
    }

    fn decode_values(&mut self, body: &[u8]) -> Result<Vec<Value>, SqlError> {
        if self.parameters == 0 {
            return Ok(Vec::new());
        }
        let mut body = ParseBuf(body);
        let null_bitmap = body
            .checked_eat(self.parameters.div_ceil(8))
            .ok_or_else(malformed_packet)?;
        if body.checked_eat_u8().ok_or_else(malformed_packet)? != 0 {
            let types = body
                .checked_eat(2 * self.parameters)
                .ok_or_else(malformed_packet)?;
            self.types = types
                .chunks_exact(2)
                .map(|entry| {
                    let type_ = ColumnType::try_from(entry[0]).map_err(|_| malformed_packet())?;
                    Ok((type_, entry[1] & UNSIGNED_FLAG != 0))
                })
                .collect::<Result<_, SqlError>>()?;
        }
        if self.types.len() != self.parameters {
            return Err(SqlError::wrong_arguments("mysqld_stmt_execute"));
        }
        let mut values = Vec::with_capacity(self.parameters);
        for (position, &(type_, unsigned)) in self.types.iter().enumerate() {
            values.push(if let Some(data) = self.long_data[position].take() {
                value_of_bytes(type_, data)
            } else if null_bitmap[position / 8] & (1 << (position % 8)) != 0 {
                Value::Null
            } else {
                decode_value(type_, unsigned, &mut body).ok_or_else(malformed_packet)?
            });
        }
        Ok(values)
    }
}

/// A text beyond ASCII. Whether its column is to get it, or the bytes that it came in, is known too late to convert it.
fn needs_conversion(value: &Value) -> bool {
    matches!(value, Value::Text(text) if !text.is_ascii())
}

pub fn malformed_packet() -> SqlError {
    SqlError::new(codes::MALFORMED_PACKET, "Malformed communication packet.")
}

/// `None` if the packet ends too early.
fn decode_value(type_: ColumnType, unsigned: bool, body: &mut ParseBuf<'_>) -> Option<Value> {
    use ColumnType::*;
    Some(match type_ {
        MYSQL_TYPE_NULL => Value::Null,
        MYSQL_TYPE_TINY if unsigned => Value::UInt(body.checked_eat_u8()?.into()),
        MYSQL_TYPE_TINY => Value::Int(body.checked_eat_i8()?.into()),
        MYSQL_TYPE_SHORT | MYSQL_TYPE_YEAR if unsigned => {
            Value::UInt(body.checked_eat_u16_le()?.into())
        }
        MYSQL_TYPE_SHORT | MYSQL_TYPE_YEAR => Value::Int(body.checked_eat_i16_le()?.into()),
        MYSQL_TYPE_LONG | MYSQL_TYPE_INT24 if unsigned => {
            Value::UInt(body.checked_eat_u32_le()?.into())
        }
        MYSQL_TYPE_LONG | MYSQL_TYPE_INT24 => Value::Int(body.checked_eat_i32_le()?.into()),
        MYSQL_TYPE_LONGLONG if unsigned => Value::UInt(body.checked_eat_u64_le()?),
        MYSQL_TYPE_LONGLONG => Value::Int(body.checked_eat_i64_le()?),
        MYSQL_TYPE_FLOAT => Value::Float(body.checked_eat_f32_le()?),
        MYSQL_TYPE_DOUBLE => Value::Double(body.checked_eat_u64_le().map(f64::from_bits)?),
        MYSQL_TYPE_DATE
        | MYSQL_TYPE_NEWDATE
        | MYSQL_TYPE_DATETIME
        | MYSQL_TYPE_DATETIME2
        | MYSQL_TYPE_TIMESTAMP
        | MYSQL_TYPE_TIMESTAMP2 => decode_date_time(type_, body)?,
        MYSQL_TYPE_TIME | MYSQL_TYPE_TIME2 => decode_time(body)?,
        _ => value_of_bytes(type_, lenenc_bytes(body)?.to_vec()),
    })
}

/// A string with its length in front. Unlike `ParseBuf`'s own, it refuses the first bytes 0xFB and 0xFF.
fn lenenc_bytes<'a>(body: &mut ParseBuf<'a>) -> Option<&'a [u8]> {
    if matches!(body.0.first(), None | Some(0xFB | 0xFF)) {
        return None;
    }
    let length = usize::try_from(body.checked_eat_lenenc_int()?).ok()?;
    body.checked_eat(length)
}

/// A parameter that travels as a string of bytes: a text, unless it is of a binary type or not UTF-8.
fn value_of_bytes(type_: ColumnType, bytes: Vec<u8>) -> Value {
    use ColumnType::*;
    match type_ {
        MYSQL_TYPE_TINY_BLOB
        | MYSQL_TYPE_MEDIUM_BLOB
        | MYSQL_TYPE_LONG_BLOB
        | MYSQL_TYPE_BLOB
        | MYSQL_TYPE_BIT
        | MYSQL_TYPE_GEOMETRY => Value::Bytes(bytes),
        _ => match String::from_utf8(bytes) {
            Ok(text) if matches!(type_, MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL) => {
                decimal_of(text)
            }
            Ok(text) => Value::Text(text),
            Err(error) => Value::Bytes(error.into_bytes()),
        },
    }
}

/// The number that a client's DECIMAL says, as a literal with a point would, exponent or not; anything else stays a
/// text, for the statement to judge.
fn decimal_of(text: String) -> Value {
    let exact = without_exponent(&text).and_then(|written| number_literal(&written));
    match exact.or_else(|| number_literal(&text)) {
        Some(Value::Int(number)) => whole_decimal(number.into()),
        Some(Value::UInt(number)) => whole_decimal(number.into()),
        Some(number) => number,
        None => Value::Text(text),
    }
}

/// A number with an exponent, `1.5E-7`, written without one. `None`: there is none, or more digits before the point
/// than a DECIMAL has, so that only a DOUBLE has room.
fn without_exponent(text: &str) -> Option<String> {
    let (number, exponent) = text.split_once(['e', 'E'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let mut digits = whole.bytes().chain(fraction.bytes());
    if !has_digits || !digits.all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let point = whole.len() as i64 + i64::from(exponent);
    let leading_zeros = digits.bytes().take_while(|digit| *digit == b'0').count();
    if leading_zeros == digits.len() {
        // Zero: it keeps its decimals, and needs no digits before them.
        let decimals = fraction.len() as i64 - i64::from(exponent);
        let decimals = decimals.clamp(0, MAX_WIDE_DIGITS.into()) as usize;
        return Some(format!("{sign}0.{}", "0".repeat(decimals)));
    }
    if point - leading_zeros as i64 > MAX_WIDE_DIGITS.into() {
        return None;
    }
    if point <= 0 {
        // What is behind the digits of the widest DECIMAL is cut, so that no more zeros need be written.
        let zeros = (-point).min(i64::from(MAX_WIDE_DIGITS) + 1) as usize;
        return Some(format!("{sign}0.{}{digits}", "0".repeat(zeros)));
    }
    let point = point as usize;
    Some(match digits.split_at_checked(point) {
        Some((whole, "")) => format!("{sign}{whole}"),
        Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{digits:0<point$}"),
    })
}

fn whole_decimal(unscaled: i128) -> Value {
    Value::Decimal { unscaled, scale: 0 }
}

/// Length 0, 4, 7 or 11, then year, month, day, and as far as the length goes hour, minute, second, microsecond.
fn decode_date_time(type_: ColumnType, body: &mut ParseBuf<'_>) -> Option<Value> {
    let length = body.checked_eat_u8()?;
    let mut fields = ParseBuf(body.checked_eat(length.into())?);
    let (mut year, mut month, mut day, mut hour, mut minute, mut second, mut micros) =
        (0, 0, 0, 0, 0, 0, 0);
    if length >= 4 {
        year = fields.checked_eat_u16_le()?;
        month = fields.checked_eat_u8()?;
        day = fields.checked_eat_u8()?;
    }
    if length >= 7 {
        hour = fields.checked_eat_u8()?;
        minute = fields.checked_eat_u8()?;
        second = fields.checked_eat_u8()?;
    }
    if length >= 11 {
        micros = fields.checked_eat_u32_le()?;
    }
    let is_date = matches!(
        type_,
        ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE
    );
    let days = checked_days(year.into(), month.into(), day.into())
        .filter(|_| hour <= 23 && minute <= 59 && second <= 59 && micros < 1_000_000);
    Some(match days {
        Some(days) if is_date => Value::Date(days),
        Some(days) => {
            let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
            Value::DateTime(i64::from(days) * DAY + seconds * SECOND + i64::from(micros))
        }
        // The zero date and impossible dates go on as text, so that they fail as they would in a literal.
        None if is_date => Value::Text(format!("{year:04}-{month:02}-{day:02}")),
        None => Value::Text(format!(
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}"
        )),
    })
}

/// Length 0, 8 or 12, then 1 if negative, days, hours, minutes, seconds and microseconds.
fn decode_time(body: &mut ParseBuf<'_>) -> Option<Value> {
    let length = body.checked_eat_u8()?;
    let mut fields = ParseBuf(body.checked_eat(length.into())?);
    if length < 8 {
        return Some(Value::Time(0));
    }
    let negative = fields.checked_eat_u8()? != 0;
    let days = fields.checked_eat_u32_le()?;
    let hours = fields.checked_eat_u8()?;
    let minutes = fields.checked_eat_u8()?;
    let seconds = fields.checked_eat_u8()?;
    let fraction = if length >= 12 {
        fields.checked_eat_u32_le()?
    } else {
        0
    };
    let seconds = i64::from(hours) * 3_600 + i64::from(minutes) * 60 + i64::from(seconds);
    let micros = i64::from(days) * DAY + seconds * SECOND + i64::from(fraction);
    Some(Value::Time(if negative { -micros } else { micros }))
}

#[cfg(test)]
mod tests {
    use sheaf_sql::Budget;

    use super::*;

    fn execute(statement: &mut BoundStatement, body: &[&[u8]]) -> Result<Vec<Value>, SqlError> {
        statement.decode(&body.concat(), TextEncoding::Utf8)
    }

    fn any_memory(bytes: usize) -> Result<Share, SqlError> {
        let all = Budget::new(1000).try_take(bytes);
        all.ok_or_else(|| SqlError::out_of_memory("sessions have it"))
    }

    #[test]
    fn values_come_in_the_types_that_were_bound() {
        let mut statement = BoundStatement::new(8);
        let types = [8, 0, 8, 0x80, 1, 0, 5, 0, 253, 0, 252, 0, 246, 0, 6, 0];
        let values = execute(
            &mut statement,
            &[
                &[0, 1],
                &types,
                &(-5_i64).to_le_bytes(),
                &u64::MAX.to_le_bytes(),
                &[0xFE],
                &1.5_f64.to_le_bytes(),
                b"\x03abc",
                b"\x02\xFF\x00",
                b"\x06-12.50",
            ],
        )
        .expect("the packet is well formed");
        assert_eq!(
            values,
            [
                Value::Int(-5),
                Value::UInt(u64::MAX),
                Value::Int(-2),
                Value::Double(1.5),
                Value::Text("abc".into()),
                Value::Bytes(vec![0xFF, 0]),
                Value::Decimal {
                    unscaled: -1250,
                    scale: 2
                },
                Value::Null,
            ]
        );
    }

    #[test]
    fn a_decimal_with_an_exponent_is_exact() {
        let decimal = |unscaled, scale| Value::Decimal { unscaled, scale };
        for (text, expected) in [
            ("1E-7", decimal(1, 7)),
            ("-1.25e-3", decimal(-125, 5)),
            ("0E-10", decimal(0, 10)),
            ("0E+5", decimal(0, 0)),
            ("1E+5", decimal(100_000, 0)),
            ("+1.25E1", decimal(125, 1)),
            ("1.25E2", decimal(125, 0)),
            (
                "12345678901234567890.5E-5",
                decimal(123_456_789_012_345_678_905, 6),
            ),
            ("1E+70", Value::Double(1e70)),
            ("E5", Value::Text("E5".into())),
            ("1E5x", Value::Text("1E5x".into())),
        ] {
            assert_eq!(decimal_of(text.into()), expected, "{text}");
        }
        let wide = decimal_of("1E+64".into());
        assert_eq!(wide, decimal_of(format!("1{}", "0".repeat(64))));
        assert!(matches!(
            decimal_of("1E-2000000000".into()),
            Value::WideDecimal { .. }
        ));
    }

    #[test]
    fn types_are_remembered_and_nulls_have_no_bytes() {
        let mut statement = BoundStatement::new(2);
        execute(
            &mut statement,
            &[
                &[0, 1, 3, 0, 3, 0],
                &1_i32.to_le_bytes(),
                &2_i32.to_le_bytes(),
            ],
        )
        .expect("both are bound");
        let values =
            execute(&mut statement, &[&[0b01, 0], &7_i32.to_le_bytes()]).expect("types are known");
        assert_eq!(values, [Value::Null, Value::Int(7)]);
    }

    #[test]
    fn dates_and_times_have_as_many_fields_as_they_need() {
        let mut statement = BoundStatement::new(5);
        let types = [10, 0, 12, 0, 12, 0, 11, 0, 11, 0];
        let values = execute(
            &mut statement,
            &[
                &[0, 1],
                &types,
                &[4, 0xCC, 0x07, 12, 31],
                &[7, 0xB2, 0x07, 1, 1, 0, 0, 1],
                &[0],
                &[12, 1, 34, 0, 0, 0, 22, 59, 59, 0x40, 0x42, 0x0F, 0],
                &[0],
            ],
        )
        .expect("the packet is well formed");
        assert_eq!(
            values,
            [
                Value::Date(9_861),
                Value::DateTime(1_000_000),
                Value::Text("0000-00-00 00:00:00.000000".into()),
                Value::Time(-(838 * 3_600 + 59 * 60 + 59 + 1) * 1_000_000),
                Value::Time(0),
            ]
        );
    }

    #[test]
    fn every_cut_of_a_packet_is_an_error() {
        let body = [
            &[0, 1, 8, 0, 253, 0, 12, 0][..],
            &9_i64.to_le_bytes(),
            b"\x03abc\x04\xCC\x07\x0C\x1F",
        ]
        .concat();
        BoundStatement::new(3)
            .decode(&body, TextEncoding::Utf8)
            .expect("the whole packet is well formed");
        for cut in 0..body.len() {
            let error = BoundStatement::new(3)
                .decode(&body[..cut], TextEncoding::Utf8)
                .expect_err("the packet is cut");
            assert_eq!(error.code, 1835, "cut at {cut}: {error}");
        }
        let endless = [
            &[0, 1, 253, 0][..],
            &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
        ]
        .concat();
        assert_eq!(
            BoundStatement::new(1)
                .decode(&endless, TextEncoding::Utf8)
                .expect_err("too long")
                .code,
            1835
        );
    }

    #[test]
    fn pieces_are_joined_and_forgotten_after_the_execution() {
        let mut statement = BoundStatement::new(1);
        statement.append_long_data((0, b"long "), 100, any_memory);
        statement.append_long_data((0, b"data"), 100, any_memory);
        let body = [0, 1, 253, 0];
        assert_eq!(
            statement
                .decode(&body, TextEncoding::Utf8)
                .expect("no value bytes are due"),
            [Value::Text("long data".into())]
        );
        assert_eq!(
            statement
                .decode(&body, TextEncoding::Utf8)
                .expect_err("now they are")
                .code,
            1835
        );
    }

    #[test]
    fn pieces_beyond_the_limit_are_an_error_of_the_execution() {
        let mut statement = BoundStatement::new(1);
        statement.append_long_data((0, &[0; 60]), 100, any_memory);
        statement.append_long_data((0, &[0; 60]), 100, any_memory);
        let body = [0, 1, 252, 0];
        assert_eq!(
            statement
                .decode(&body, TextEncoding::Utf8)
                .expect_err("120 bytes are more than 100")
                .code,
            1105
        );
        statement.append_long_data((1, b"x"), 100, any_memory);
        assert_eq!(
            statement
                .decode(&body, TextEncoding::Utf8)
                .expect_err("there is no second parameter")
                .code,
            1210
        );
    }
}
