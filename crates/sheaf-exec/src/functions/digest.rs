//! Checksums and message digests, as lower-case hexadecimal text.

use arrow::array::ArrayRef;
use datafusion_common::Result;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use sheaf_types::text::hexadecimal::push_small_digits;

use super::limits::Turns;
use super::result_array::{ints, texts};
use super::types::field;
use super::{Call, Function, Length};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("md5", (1, 1), |_| Ok(field::text()), digest::<Md5>)
        .length(Length::Fixed(32))
        .key_operand(),
    Function::strict("sha1", (1, 1), |_| Ok(field::text()), digest::<Sha1>)
        .length(Length::Fixed(40))
        .key_operand(),
    // Bytes, and the length of the digest in bits; NULL for a length that does not exist.
    Function::new("sha2", (2, 2), |_| Ok(field::text()), sha2).key_operand(),
    // What it is without the component that judges passwords.
    Function::strict(
        "validate_password_strength",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            let values = call.bytes(0)?;
            ints(call, |row| values.get(row).map(|_| 0))
        },
    ),
    Function::strict(
        "crc32",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            let (values, turns) = (call.bytes(0)?, call.turns());
            ints(call, |row| {
                let mut hasher = crc32fast::Hasher::new();
                let stretches = turns.byte_stretches(values.get(row)?);
                stretches.for_each(|bytes| hasher.update(bytes));
                Some(i64::from(hasher.finalize()))
            })
        },
    ),
];

fn push_digest<D: Digest>(out: &mut String, bytes: &[u8], turns: &Turns<'_>) {
    let mut digest = D::new();
    let stretches = turns.byte_stretches(bytes);
    stretches.for_each(|bytes| digest.update(bytes));
    push_small_digits(out, &digest.finalize());
}

fn digest<D: Digest>(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, turns) = (call.bytes(0)?, call.turns());
    texts(call, |row, out| {
        push_digest::<D>(out, values.get(row)?, &turns);
        Some(())
    })
}

fn sha2(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, bits, turns) = (call.bytes(0)?, call.int(1)?, call.turns());
    texts(call, |row, out| {
        let bytes = values.get(row)?;
        match bits.get(row)? {
            224 => push_digest::<Sha224>(out, bytes, &turns),
            0 | 256 => push_digest::<Sha256>(out, bytes, &turns),
            384 => push_digest::<Sha384>(out, bytes, &turns),
            512 => push_digest::<Sha512>(out, bytes, &turns),
            _ => return None,
        }
        Some(())
    })
}
