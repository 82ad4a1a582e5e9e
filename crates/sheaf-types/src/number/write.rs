//! FLOAT and DOUBLE as MySQL writes them: plain where the point lies among or near the digits, otherwise with an
//! exponent.
//!
//! A DOUBLE has the shortest digits that read back as the same number, a FLOAT six significant digits.

use std::io::Write;

/// Significant digits that a FLOAT is shown with (C's FLT_DIG).
const FLOAT_DIGITS: usize = 6;
/// Numbers with more digits before the point than this, or so many zeros after it, are written with an exponent
/// unless the point lies among their digits.
const MAX_POINT_POSITION: i32 = 15;
/// Room for a DOUBLE as Rust writes it with an exponent: 17 digits, a sign, a point, `e-324`.
const SCIENTIFIC_BYTES: usize = 32;

/// Appends a DOUBLE.
pub fn push_double(value: f64, out: &mut Vec<u8>) {
    let mut scientific = [0; SCIENTIFIC_BYTES];
    let mut rest = &mut scientific[..];
    // The buffer is long enough, so writing into it cannot fail.
    let _ = write!(rest, "{value:e}");
    let length = SCIENTIFIC_BYTES - rest.len();
    plain_or_scientific(&scientific[..length], out);
}

/// Appends a FLOAT.
pub fn push_float(value: f32, out: &mut Vec<u8>) {
    let mut scientific = [0; SCIENTIFIC_BYTES];
    let mut rest = &mut scientific[..];
    let _ = write!(rest, "{value:.precision$e}", precision = FLOAT_DIGITS - 1);
    let length = SCIENTIFIC_BYTES - rest.len();
    plain_or_scientific(&scientific[..length], out);
}

/// Rewrites a number of the form `d.ddde-x` as MySQL does: plain if the point lies among or near the digits.
fn plain_or_scientific(written: &[u8], out: &mut Vec<u8>) {
    let Some(e) = written.iter().position(|&byte| byte == b'e') else {
        // Infinities and NaN, which no MySQL expression gives, are shown as they are.
        return out.extend_from_slice(written);
    };
    let exponent_text = &written[e + 1..];
    let mut mantissa = &written[..e];
    if let [b'-', rest @ ..] = mantissa {
        out.push(b'-');
        mantissa = rest;
    }
    let mut digits = [0; SCIENTIFIC_BYTES];
    let mut count = 0;
    for &byte in mantissa.iter().filter(|byte| byte.is_ascii_digit()) {
        digits[count] = byte;
        count += 1;
    }
    while count > 1 && digits[count - 1] == b'0' {
        count -= 1;
    }
    let digits = &digits[..count];
    let exponent: i32 = std::str::from_utf8(exponent_text)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);

    // The value is 0.DIGITS times ten to the point's position.
    let point = exponent + 1;
    let plain =
        point > -MAX_POINT_POSITION && (point <= MAX_POINT_POSITION || count as i32 > point);
    if !plain {
        out.push(digits[0]);
        if count > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        out.extend_from_slice(exponent_text);
    } else if point <= 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + point.unsigned_abs() as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let (integer, fraction) = digits.split_at(count.min(point as usize));
        out.extend_from_slice(integer);
        out.resize(out.len() + point as usize - integer.len(), b'0');
        if !fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
    }
}
