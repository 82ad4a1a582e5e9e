//! Bytes in the order of the values: keys compare bytewise as [`compare`](crate::json::compare::compare) does, and
//! equal values have equal keys.
//!
//! ```text
//!   value     class, then by class:
//!   number    sign (0, 1, 2); unless zero: point, digits in pairs plus 1, 0; complemented if negative
//!   string    bytes, where 0 is 0 255; 0 0
//!   array     1 and an element, ...; 0
//!   object    number of members; for each: the key as a string's bytes, value
//! ```

use std::cmp::Ordering;

use crate::json::compare::{Number, class};
use crate::json::document::{Json, MAX_NESTING, View};

/// The key of a value.
pub fn sort_key(value: Json<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    push_sort_key(value, &mut key);
    key
}

/// Appends the key of a value. No key is the beginning of another one.
pub fn push_sort_key(value: Json<'_>, key: &mut Vec<u8>) {
    push(value, MAX_NESTING, key);
}

/// `room`: containers in each other that are looked at. Deeper ones are damaged.
fn push(value: Json<'_>, room: usize, key: &mut Vec<u8>) {
    let view = value.view();
    key.push(class(&view));
    match view {
        View::Null => {}
        View::Int(_)
        | View::UInt(_)
        | View::Double(_)
        | View::Decimal { .. }
        | View::WideDecimal { .. } => {
            push_number(&Number::of(&view), key);
        }
        View::Bool(value) => key.push(value.into()),
        View::String(text) => push_bytes(text.as_bytes(), key),
        View::Opaque { bytes, .. } => push_bytes(bytes, key),
        View::Date(days) => push_signed(days.into(), key),
        View::Time(micros) | View::DateTime(micros) | View::Timestamp(micros) => {
            push_signed(micros, key)
        }
        View::Array(array) => {
            if let Some(room) = room.checked_sub(1) {
                for element in array {
                    key.push(1);
                    push(element, room, key);
                }
            }
            key.push(0);
        }
        View::Object(object) => {
            let Some(room) = room.checked_sub(1) else {
                return key.extend_from_slice(&[0; 4]);
            };
            key.extend_from_slice(&(object.len() as u32).to_be_bytes());
            for (name, member) in object {
                push_bytes(name.as_bytes(), key);
                push(member, room, key);
            }
        }
    }
}

fn push_signed(number: i64, key: &mut Vec<u8>) {
    let shifted = number as u64 ^ 1 << 63;
    key.extend_from_slice(&shifted.to_be_bytes());
}

fn push_bytes(bytes: &[u8], key: &mut Vec<u8>) {
    for &byte in bytes {
        key.push(byte);
        if byte == 0 {
            key.push(0xFF);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

fn push_number(number: &Number, key: &mut Vec<u8>) {
    key.push(match number.sign {
        Ordering::Less => 0,
        Ordering::Equal => 1,
        Ordering::Greater => 2,
    });
    if number.sign.is_eq() {
        return;
    }
    let start = key.len();
    let point = (number.point - i32::from(i16::MIN)) as u16;
    key.extend_from_slice(&point.to_be_bytes());
    for pair in number.digits.chunks(2) {
        let second = pair.get(1).unwrap_or(&0);
        key.push(pair[0] * 10 + second + 1);
    }
    key.push(0);
    if number.sign.is_lt() {
        for byte in &mut key[start..] {
            *byte = !*byte;
        }
    }
}
