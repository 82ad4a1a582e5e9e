//! FORMAT_BYTES and FORMAT_PICO_TIME: numbers with the unit that suits them.
//!
//! ```text
//!   FORMAT_BYTES(512)      ' 512 bytes'         FORMAT_PICO_TIME(3501)         '3.50 ns'
//!   FORMAT_BYTES(2048)     '2.00 KiB'           FORMAT_PICO_TIME(6e13)         '1.00 min'
//! ```

use std::fmt::Write;

use super::Function;
use super::result_array::texts;
use super::types::field;

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict(
        "format_bytes",
        (1, 1),
        |_| Ok(field::text()),
        |call| {
            let values = call.double(0)?;
            texts(call, |row, out| push(out, values.get(row)?, &BYTES))
        },
    ),
    Function::strict(
        "format_pico_time",
        (1, 1),
        |_| Ok(field::text()),
        |call| {
            let values = call.double(0)?;
            texts(call, |row, out| push(out, values.get(row)?, &PICO_TIME))
        },
    ),
];

/// Whether the function of this name is one of these.
pub(crate) fn are_of(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name)
}

/// What numbers are shown in.
struct Units {
    /// The unit of the number itself.
    plain: &'static str,
    /// The columns that the number takes in it.
    plain_columns: usize,
    /// Others, the greatest first, and how many of the plain ones they are.
    others: &'static [(f64, &'static str)],
}

const KIB: f64 = 1024.0;
const BYTES: Units = Units {
    plain: "bytes",
    plain_columns: 4,
    others: &[
        (KIB * KIB * KIB * KIB * KIB * KIB, "EiB"),
        (KIB * KIB * KIB * KIB * KIB, "PiB"),
        (KIB * KIB * KIB * KIB, "TiB"),
        (KIB * KIB * KIB, "GiB"),
        (KIB * KIB, "MiB"),
        (KIB, "KiB"),
    ],
};

const SECOND: f64 = 1e12;
const PICO_TIME: Units = Units {
    plain: "ps",
    plain_columns: 3,
    others: &[
        (86_400.0 * SECOND, "d"),
        (3_600.0 * SECOND, "h"),
        (60.0 * SECOND, "min"),
        (SECOND, "s"),
        (1e9, "ms"),
        (1e6, "us"),
        (1e3, "ns"),
    ],
};

/// From here on a number is shown with an exponent.
const LONG_NUMBER: f64 = 100_000.0;

fn push(out: &mut String, value: f64, units: &Units) -> Option<()> {
    let mut others = units.others.iter();
    let Some((size, unit)) = others.find(|(size, _)| value.abs() >= *size) else {
        let (whole, columns, unit) = (value.trunc() as i64, units.plain_columns, units.plain);
        return write!(out, "{whole:columns$} {unit}").ok();
    };
    let shown = value / size;
    if shown.abs() < LONG_NUMBER {
        return write!(out, "{shown:.2} {unit}").ok();
    }
    // Two digits of the exponent at least, and its sign.
    let text = format!("{shown:.2e}");
    let (digits, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    write!(out, "{digits}e{exponent:+03} {unit}").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_the_unit_that_suits_them() {
        let shown = |value: f64, units: &Units| {
            let mut text = String::new();
            push(&mut text, value, units).unwrap();
            text
        };
        assert_eq!(shown(0.0, &BYTES), "   0 bytes");
        assert_eq!(shown(1.5, &BYTES), "   1 bytes");
        assert_eq!(shown(-2048.0, &BYTES), "-2.00 KiB");
        assert_eq!(shown(1_048_575.0, &BYTES), "1024.00 KiB");
        assert_eq!(shown(1e30, &BYTES), "8.67e+11 EiB");
        assert_eq!(shown(999.0, &PICO_TIME), "999 ps");
        assert_eq!(shown(188_732_396_662_000.0, &PICO_TIME), "3.15 min");
    }
}
