//! Checksums and message digests, as lower-case hexadecimal text.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use datafusion_common::Result;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::string::texts;
use super::types::field;
use super::{Call, Function};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("md5", (1, 1), |_| Ok(field::text()), digest::<Md5>),
    Function::strict("sha1", (1, 1), |_| Ok(field::text()), digest::<Sha1>),
    // Bytes, and the length of the digest in bits; NULL for a length that does not exist.
    Function::new("sha2", (2, 2), |_| Ok(field::text()), sha2),
    Function::strict(
        "crc32",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            let values = call.bytes(0)?;
            let sums: Int64Array = (0..call.rows())
                .map(|row| {
                    values
                        .get(row)
                        .map(|bytes| i64::from(crc32fast::hash(bytes)))
                })
                .collect();
            Ok(Arc::new(sums))
        },
    ),
];

fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        out.extend(
            [byte >> 4, byte & 15]
                .map(|digit| char::from_digit(u32::from(digit), 16).unwrap_or('0')),
        );
    }
}

fn digest<D: Digest>(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.bytes(0)?;
    texts(call, |row, out| {
        push_hex(out, &D::digest(values.get(row)?));
        Some(())
    })
}

fn sha2(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, bits) = (call.bytes(0)?, call.int(1)?);
    texts(call, |row, out| {
        let bytes = values.get(row)?;
        match bits.get(row)? {
            224 => push_hex(out, &Sha224::digest(bytes)),
            0 | 256 => push_hex(out, &Sha256::digest(bytes)),
            384 => push_hex(out, &Sha384::digest(bytes)),
            512 => push_hex(out, &Sha512::digest(bytes)),
            _ => return None,
        }
        Some(())
    })
}
