//! Addresses of IPv4 and IPv6, as texts and as numbers or bytes in the order of the network.
//!
//! ```text
//!   INET_ATON('10.0.0.1')  = 167772161          INET_NTOA takes it back; '10.1' is the same address
//!   INET6_ATON('::1')      = 16 bytes           of '10.0.0.1' 4 bytes; INET6_NTOA takes both back
//! ```
//!
//! What is no address is NULL.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use datafusion_common::Result;

use super::result_array::{byte_strings, ints, texts};
use super::types::field;
use super::{Call, Function, Length, SqlType};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "inet_aton",
        (1, 1),
        |_| Ok(field::unsigned_bigint()),
        |call| {
            let values = call.text(0)?;
            let numbers = (0..call.rows()).map(|row| number_of(values.get(row)?));
            Ok(Arc::new(numbers.collect::<UInt64Array>()))
        },
    )
    .null_in_doubt()
    .key_operand(),
    Function::new(
        "inet_ntoa",
        (1, 1),
        |_| Ok(field::text()),
        |call| {
            let values = call.int(0)?;
            texts(call, |row, out| {
                let number = u32::try_from(values.get(row)?).ok()?;
                write!(out, "{}", Ipv4Addr::from(number)).ok()
            })
        },
    )
    .length(Length::Fixed(31)),
    Function::new(
        "inet6_aton",
        (1, 1),
        |_| Ok(field::bytes()),
        |call| {
            let values = call.text(0)?;
            byte_strings(call, |row, out| {
                let text = values.get(row)?;
                match v4(text) {
                    Some(address) => out.extend(address.octets()),
                    None => out.extend(v6(text)?.octets()),
                }
                Some(())
            })
        },
    )
    .makes_bytes()
    .length(Length::Fixed(16)),
    Function::new(
        "inet6_ntoa",
        (1, 1),
        |_| Ok(field::text()),
        |call| {
            let values = call.bytes(0)?;
            let is_bytes = call.sql_type(0) == SqlType::Bytes;
            texts(call, |row, out| {
                // A text is no address.
                let bytes = values.get(row).filter(|_| is_bytes)?;
                if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
                    return write!(out, "{}", Ipv4Addr::from(v4)).ok();
                }
                push_v6(out, Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))
            })
        },
    )
    .length(Length::Fixed(39)),
    Function::strict(
        "is_ipv4",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            let values = call.text(0)?;
            ints(call, |row| Some(i64::from(v4(values.get(row)?).is_some())))
        },
    ),
    Function::strict(
        "is_ipv6",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            let values = call.text(0)?;
            ints(call, |row| Some(i64::from(v6(values.get(row)?).is_some())))
        },
    ),
    Function::strict(
        "is_ipv4_compat",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            // Beside the two that mean something else, :: and ::1.
            is_v4_inside(call, |words| words[..6] == [0; 6], 2)
        },
    ),
    Function::strict(
        "is_ipv4_mapped",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| is_v4_inside(call, |words| words[..6] == [0, 0, 0, 0, 0, 0xFFFF], 0),
    ),
];

/// The number of an address that may leave out middle parts: `127.1` is 127.0.0.1.
fn number_of(text: &str) -> Option<u64> {
    let mut parts = [0u64; 4];
    let mut count = 0;
    for part in text.split('.') {
        // An empty part is 0, but not at the end.
        let value = part.bytes().try_fold(0u64, |value, digit| {
            let digit = char::from(digit).to_digit(10)?;
            let value = value * 10 + u64::from(digit);
            (value <= 255).then_some(value)
        })?;
        *parts.get_mut(count)? = value;
        count += 1;
    }
    if text.is_empty() || text.ends_with('.') {
        return None;
    }
    let last = parts[count - 1];
    let first = parts[..count - 1].iter().zip([24, 16, 8]);
    Some(first.map(|(part, shift)| part << shift).sum::<u64>() + last)
}

/// Four numbers of one to three digits.
fn v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        *octet = is_number.then(|| part.parse().ok()).flatten()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// An address of IPv4 at its end may have leading zeros, as one that stands alone.
fn v6(text: &str) -> Option<Ipv6Addr> {
    match text.rsplit_once(':') {
        Some((before, last)) if last.contains('.') => {
            format!("{before}:{}", v4(last)?).parse().ok()
        }
        _ => text.parse().ok(),
    }
}

/// The address with its longest run of zeros left out, be it one, and an address of IPv4 in it as such.
fn push_v6(out: &mut String, address: Ipv6Addr) -> Option<()> {
    let words = address.segments();
    let (mut gap, mut run) = (0..0, 0..0);
    for (at, word) in words.into_iter().enumerate() {
        run = match word {
            0 => run.start..at + 1,
            _ => at + 1..at + 1,
        };
        if run.len() > gap.len() {
            gap = run.clone();
        }
    }
    let has_v4 = gap.start == 0 && (gap.len() == 6 || gap.len() == 5 && words[5] == 0xFFFF);
    let mut at = 0;
    while at < words.len() {
        if at == gap.start && !gap.is_empty() {
            out.push_str(if at == 0 { "::" } else { ":" });
            at = gap.end;
        } else if at == 6 && has_v4 {
            let [.., a, b, c, d] = address.octets();
            return write!(out, "{}", Ipv4Addr::new(a, b, c, d)).ok();
        } else {
            write!(out, "{:x}", words[at]).ok()?;
            if at + 1 < words.len() {
                out.push(':');
            }
            at += 1;
        }
    }
    Some(())
}

/// Whether the words of an address of IPv6 are as `matches` says, and the number of its last two is at least so much.
fn is_v4_inside(call: &Call<'_>, matches: fn(&[u16; 8]) -> bool, least: u32) -> Result<ArrayRef> {
    let values = call.bytes(0)?;
    let is_bytes = call.sql_type(0) == SqlType::Bytes;
    ints(call, |row| {
        let address = <[u8; 16]>::try_from(values.get(row)?).ok();
        let words = address.map(|address| Ipv6Addr::from(address).segments());
        let is_inside = words.is_some_and(|words| {
            let number = u32::from(words[6]) << 16 | u32::from(words[7]);
            matches(&words) && number >= least
        });
        Some(i64::from(is_bytes && is_inside))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_may_be_left_out_and_are_bytes() {
        for (text, number) in [
            ("1.2.3.4", Some(0x0102_0304)),
            ("127.1", Some(0x7F00_0001)),
            ("1.2.3", Some(0x0102_0003)),
            ("5", Some(5)),
            (".1", Some(1)),
            ("1..2", Some(0x0100_0002)),
            ("1.2.3.4.5", None),
            ("256.1.1.1", None),
            ("1.2.3.", None),
            ("1.2.3.4 ", None),
            ("", None),
        ] {
            assert_eq!(number_of(text), number, "{text}");
        }
    }

    #[test]
    fn the_longest_run_of_zeros_is_left_out() {
        for text in [
            "::",
            "::1",
            "1::",
            "1:0:0:2::3",
            "1::2:3:4:5:6:7",
            "::ffff:1.2.3.4",
            "::1.2.3.4",
            "fe80::5a55:caff:fefa:9089",
            "1:2:3:4:5:6:7:8",
        ] {
            let mut out = String::new();
            push_v6(&mut out, v6(text).expect(text)).expect("a text takes it");
            assert_eq!(out, text);
        }
        assert_eq!(v4("01.2.3.4"), Some(Ipv4Addr::new(1, 2, 3, 4)));
        assert_eq!(v4("1.2.3.0004"), None);
        assert_eq!(v6("::01.2.3.004"), v6("::1.2.3.4"));
        assert!(v6("::01.2.3.004").is_some());
        for text in [
            "::1.2.3.0004",
            "::1.2.3.",
            "1.2.3.4::",
            ":1.2.3.4",
            "::1.2.3",
        ] {
            assert_eq!(v6(text), None, "{text}");
        }
    }
}
