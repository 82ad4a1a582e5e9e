//! Values in both directions.
//!
//! | MySQL | Python |
//! |---|---|
//! | integers, YEAR | `int` |
//! | DECIMAL | `decimal.Decimal` |
//! | FLOAT, DOUBLE | `float` |
//! | texts, ENUM, SET, JSON | `str` |
//! | bytes, BIT | `bytes` |
//! | DATE | `datetime.date`; a date that Python does not have (`0000-00-00`) is its text |
//! | DATETIME, TIMESTAMP | `datetime.datetime` without a zone; the same |
//! | TIME | `datetime.timedelta` |

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess,
    PyFloat, PyInt, PyMemoryView, PyString, PyTime, PyTimeAccess, PyType,
};
use sheaf::{Cell, ColumnMeta, MysqlColumnType, Value};
use sheaf_types::number::push_bit_bytes;
use sheaf_types::temporal::{
    DAY, SECOND, ZERO_DATE, ZERO_DATETIME, civil_from_days, days_from_civil, split_datetime,
};

use crate::error::wrong_arguments;

/// The most digits of a parameter that goes as a decimal, and those behind its point. Longer ones go as texts.
const MAX_DIGITS: usize = 38;
const MAX_SCALE: usize = 30;

fn decimal_class(python: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(python, "decimal", "Decimal")
}

/// A decimal as it is written without an exponent; as a text if it has more digits than DECIMAL.
fn decimal_value(text: &str) -> PyResult<Value> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong_arguments(format!("{text} is no value of SQL")));
    }
    let significant = all.trim_start_matches('0').len();
    let unscaled = all.parse::<i128>().ok();
    Ok(match (unscaled, u8::try_from(fraction.len())) {
        (Some(unscaled), Ok(scale)) if significant <= MAX_DIGITS && fraction.len() <= MAX_SCALE => {
            Value::Decimal {
                unscaled: sign * unscaled,
                scale,
            }
        }
        _ => Value::Text(text.to_string()),
    })
}

fn integer_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(number) = object.extract::<i64>() {
        return Ok(Value::Int(number));
    }
    match object.extract::<u64>() {
        Ok(number) => Ok(Value::UInt(number)),
        Err(_) => decimal_value(object.str()?.to_str()?),
    }
}

fn micros_of_day(time: &impl PyTimeAccess) -> i64 {
    let seconds = i64::from(time.get_hour()) * 3600
        + i64::from(time.get_minute()) * 60
        + i64::from(time.get_second());
    seconds * SECOND + i64::from(time.get_microsecond())
}

fn days_of(date: &impl PyDateAccess) -> i32 {
    days_from_civil(
        date.get_year(),
        u32::from(date.get_month()),
        u32::from(date.get_day()),
    )
}

fn refuse_zone(object: &Bound<'_, PyAny>) -> PyResult<()> {
    match object.getattr("tzinfo")?.is_none() {
        true => Ok(()),
        false => Err(wrong_arguments(
            "DATETIME and TIME have no zone: convert the value, and give it without tzinfo",
        )),
    }
}

/// A parameter. A type that has no counterpart is refused by its name.
pub(crate) fn to_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    // A bool is an int, and a datetime a date: the narrower ones first.
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Value::Int(i64::from(flag.is_true())));
    }
    if object.is_instance_of::<PyInt>() {
        return integer_value(object);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Text(text.to_str()?.to_string()));
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        let number = float.value();
        return match number.is_finite() {
            true => Ok(Value::Double(number)),
            false => Err(wrong_arguments(format!("{number} is no value of SQL"))),
        };
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Value::Bytes(bytes.to_vec()));
    }
    if object.is_instance_of::<PyMemoryView>() {
        let bytes = object.call_method0("tobytes")?;
        return Ok(Value::Bytes(bytes.extract()?));
    }
    if let Ok(point) = object.cast::<PyDateTime>() {
        refuse_zone(object)?;
        let days = i64::from(days_of(point));
        return Ok(Value::DateTime(days * DAY + micros_of_day(point)));
    }
    if let Ok(date) = object.cast::<PyDate>() {
        return Ok(Value::Date(days_of(date)));
    }
    if let Ok(time) = object.cast::<PyTime>() {
        refuse_zone(object)?;
        return Ok(Value::Time(micros_of_day(time)));
    }
    if let Ok(delta) = object.cast::<PyDelta>() {
        let micros = i64::from(delta.get_days()) * DAY
            + i64::from(delta.get_seconds()) * SECOND
            + i64::from(delta.get_microseconds());
        return Ok(Value::Time(micros));
    }
    if object.is_instance(decimal_class(object.py())?)? {
        let shown = object.call_method1("__format__", ("f",))?;
        return decimal_value(shown.extract::<std::borrow::Cow<'_, str>>()?.as_ref());
    }
    // Integers of other libraries, such as those of NumPy.
    if let Ok(index) = object.call_method0("__index__") {
        return integer_value(&index);
    }
    let name = object.get_type().name()?;
    Err(wrong_arguments(format!(
        "A parameter can be no {name}: convert it to str, bytes, a number, a date or a time"
    )))
}

/// A value as its text.
fn as_text<'py>(python: Python<'py>, value: &Value) -> Bound<'py, PyAny> {
    PyString::new(python, &value.to_string()).into_any()
}

fn date(python: Python<'_>, days: i32) -> PyResult<Bound<'_, PyAny>> {
    let (year, month, day) = civil_from_days(days);
    if days == ZERO_DATE || year < 1 {
        return Ok(as_text(python, &Value::Date(days)));
    }
    Ok(PyDate::new(python, year, month as u8, day as u8)?.into_any())
}

fn datetime(python: Python<'_>, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    let (days, of_day) = split_datetime(micros);
    let (year, month, day) = civil_from_days(days);
    if micros == ZERO_DATETIME || year < 1 {
        return Ok(as_text(python, &Value::DateTime(micros)));
    }
    let seconds = of_day / SECOND;
    let point = PyDateTime::new(
        python,
        year,
        month as u8,
        day as u8,
        (seconds / 3600) as u8,
        (seconds / 60 % 60) as u8,
        (seconds % 60) as u8,
        (of_day % SECOND) as u32,
        None,
    )?;
    Ok(point.into_any())
}

/// A value of a row.
pub(crate) fn to_python<'py>(
    python: Python<'py>,
    cell: Cell<'_>,
    column: &ColumnMeta,
) -> PyResult<Bound<'py, PyAny>> {
    use MysqlColumnType as M;
    Ok(match cell {
        Cell::Null => python.None().into_bound(python),
        Cell::Signed(number) => number.into_pyobject(python)?.into_any(),
        Cell::Unsigned(number) => match column.bit_length() {
            Some(length) => {
                let mut bytes = Vec::with_capacity(8);
                push_bit_bytes(number, length, &mut bytes);
                PyBytes::new(python, &bytes).into_any()
            }
            None => number.into_pyobject(python)?.into_any(),
        },
        Cell::Decimal { unscaled, scale } => {
            let scale = scale.unsigned_abs();
            let text = Value::Decimal { unscaled, scale }.to_string();
            decimal_class(python)?.call1((text,))?
        }
        Cell::WideDecimal { unscaled, scale } => {
            let scale = scale.unsigned_abs();
            let text = Value::WideDecimal { unscaled, scale }.to_string();
            decimal_class(python)?.call1((text,))?
        }
        // As it is written, not the nearest double of what it holds: 0.1, not 0.10000000149.
        Cell::Float(number) => {
            let shown = Value::Float(number).to_string().parse::<f64>();
            PyFloat::new(python, shown.unwrap_or(f64::from(number))).into_any()
        }
        Cell::Double(number) => PyFloat::new(python, number).into_any(),
        Cell::Bytes(bytes) if column.is_binary() => PyBytes::new(python, bytes).into_any(),
        Cell::Bytes(bytes) => PyString::new(python, &String::from_utf8_lossy(bytes)).into_any(),
        Cell::Json(bytes) => as_text(python, &Value::Json(bytes.to_vec())),
        Cell::Date(days) => match column.type_ {
            M::DateTime | M::Timestamp => datetime(python, i64::from(days) * DAY)?,
            _ => date(python, days)?,
        },
        Cell::DateTime(micros) => match column.type_ {
            M::Date => date(python, split_datetime(micros).0)?,
            _ => datetime(python, micros)?,
        },
        Cell::Time(micros) => {
            let seconds = micros.div_euclid(SECOND);
            let micros = micros.rem_euclid(SECOND) as i32;
            PyDelta::new(python, 0, seconds as i32, micros, true)?.into_any()
        }
    })
}
