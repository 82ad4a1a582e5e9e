//! AES_ENCRYPT(text, key [, vector [, derivation, ...]]) and AES_DECRYPT: byte strings in the mode of
//! `block_encryption_mode`.
//!
//! The binder puts the mode in front of the arguments, so a call gives the same for the same arguments. A mode with an
//! initialization vector takes the first 16 bytes of the third argument. One without ignores it, with a warning.
//! What is no ciphertext is NULL.
//!
//! ```text
//!   'hkdf' [, salt [, info]]                      the second argument is a password that the key is derived from
//!   'pbkdf2_hmac' [, salt [, iterations]]
//! ```

mod derived_key;
mod modes;

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder};
use datafusion_common::{Result, exec_datafusion_err};
use sheaf_types::error::codes;

use self::derived_key::{DerivedKey, hkdf, pbkdf2};
use self::modes::{BLOCK_BYTES, Block, Mode, Stream};
use super::types::field;
use super::{Call, EvaluationError, Function};

/// The fewest arguments with the mode, and the most.
const ARGUMENTS: (usize, usize) = (3, 7);

/// Places of arguments.
const VECTOR: usize = 3;
const DERIVATION: usize = 4;

/// A derivation's name, salt and info are shorter, in bytes.
const OPTION_BYTES: usize = 256;

/// The digits of a number of iterations are fewer.
const ITERATIONS_BYTES: usize = 6;

const ITERATIONS: RangeInclusive<u32> = 1000..=65_535;

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "$aes_encrypt",
        ARGUMENTS,
        |_| Ok(field::bytes()),
        |call| ciphered(call, Direction::Encrypt),
    )
    .makes_bytes()
    .in_defaults(),
    Function::new(
        "$aes_decrypt",
        ARGUMENTS,
        |_| Ok(field::bytes()),
        |call| ciphered(call, Direction::Decrypt),
    )
    .makes_bytes()
    .in_defaults(),
];

#[derive(Clone, Copy)]
enum Direction {
    Encrypt,
    Decrypt,
}

fn ciphered(call: &Call<'_>, direction: Direction) -> Result<ArrayRef> {
    let (modes, values, keys) = (call.text(0)?, call.bytes(1)?, call.bytes(2)?);
    let vectors = (call.len() > VECTOR).then(|| call.bytes(VECTOR));
    let vectors = vectors.transpose()?;
    let options = (DERIVATION..call.len()).map(|place| call.bytes(place));
    let options = options.collect::<Result<Vec<_>>>()?;
    let turns = call.turns();
    let mut account = call.account();
    let mut builder = BinaryBuilder::with_capacity(call.rows(), 0);
    let mut out = Vec::new();
    for row in 0..call.rows() {
        account.check()?;
        let (Some(value), Some(key)) = (values.get(row), keys.get(row)) else {
            builder.append_null();
            continue;
        };
        let mode = modes.get(row).and_then(Mode::of_name);
        let mode = mode.ok_or_else(|| exec_datafusion_err!("no mode of AES"))?;
        let vector = match &vectors {
            Some(vectors) if mode.takes_vector() => first_block(call, vectors.get(row))?,
            None if mode.takes_vector() => return Err(missing_vector(call).into()),
            Some(_) => {
                call.warn(ignored_vector())?;
                [0; BLOCK_BYTES]
            }
            None => [0; BLOCK_BYTES],
        };
        let options: Vec<Option<&[u8]>> = options.iter().map(|option| option.get(row)).collect();
        out.clear();
        let mut stream = match derived(key, &options)? {
            Some(derived) => Stream::with_derived_key(mode, &derived, vector),
            None => Stream::new(mode, key, vector),
        };
        let pieces = turns.byte_stretches(value);
        let made = match direction {
            Direction::Encrypt => {
                stream.encrypt(pieces, &mut out);
                Some(())
            }
            Direction::Decrypt => stream.decrypt(pieces, &mut out),
        };
        let is_made = made.is_some() && account.book(out.len())?;
        builder.append_option(is_made.then_some(&out));
    }
    Ok(Arc::new(builder.finish()))
}

/// The name that a user knows the function by.
fn name_of<'c>(call: &'c Call<'_>) -> &'c str {
    call.name().trim_start_matches('$')
}

/// # Errors
/// 1882: the vector is NULL, or shorter than a block.
fn first_block(call: &Call<'_>, vector: Option<&[u8]>) -> Result<Block> {
    let block = vector.and_then(|vector| vector.first_chunk::<BLOCK_BYTES>());
    let too_short = || {
        EvaluationError::new(
            codes::AES_INVALID_IV,
            format!(
                "The initialization vector supplied to {} is too short. Must be at least {BLOCK_BYTES} bytes long",
                name_of(call)
            ),
        )
    };
    Ok(*block.ok_or_else(too_short)?)
}

/// The key that is derived from a password; `None` without a derivation.
///
/// # Errors
/// 3238: an option is NULL, or too long. 3235: there is no such derivation. 3236: too few iterations, or too many.
fn derived(
    password: &[u8],
    options: &[Option<&[u8]>],
) -> std::result::Result<Option<DerivedKey>, EvaluationError> {
    let option = |place: usize, limit: usize| match options.get(place) {
        None => Ok(None),
        Some(Some(option)) if option.len() < limit => Ok(Some(*option)),
        Some(_) => Err(EvaluationError::new(
            codes::AES_INVALID_KDF_OPTION_SIZE,
            format!(
                "KDF option size is invalid, please provide valid size < {limit} bytes and not NULL"
            ),
        )),
    };
    let Some(name) = option(0, OPTION_BYTES)? else {
        return Ok(None);
    };
    if name != b"hkdf" && name != b"pbkdf2_hmac" {
        return Err(EvaluationError::new(
            codes::AES_INVALID_KDF_NAME,
            "KDF method name is not valid. Please use hkdf or pbkdf2_hmac method name",
        ));
    }
    let salt = option(1, OPTION_BYTES)?.unwrap_or_default();
    Ok(Some(if name == b"hkdf" {
        let info = option(2, OPTION_BYTES)?.unwrap_or_default();
        hkdf(password, salt, info)
    } else {
        let iterations = match option(2, ITERATIONS_BYTES)? {
            Some(written) => iterations(written)?,
            None => *ITERATIONS.start(),
        };
        pbkdf2(password, salt, iterations)
    }))
}

/// The number that a text begins with.
fn iterations(written: &[u8]) -> std::result::Result<u32, EvaluationError> {
    let digits = written.trim_ascii_start().iter();
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    // There are not so many of them that it overflows.
    let number = digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    match ITERATIONS.contains(&number) {
        true => Ok(number),
        false => Err(EvaluationError::new(
            codes::AES_INVALID_KDF_ITERATIONS,
            "For KDF method pbkdf2_hmac iterations value less than 1000 or more than 65535 is not allowed due to \
             security reasons. Please provide iterations >= 1000 and iterations < 65535",
        )),
    }
}

/// 1582: the mode takes a vector.
fn missing_vector(call: &Call<'_>) -> EvaluationError {
    EvaluationError::new(
        codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT,
        format!(
            "Incorrect parameter count in the call to native function '{}'",
            name_of(call)
        ),
    )
}

/// 1618: the mode takes no vector.
fn ignored_vector() -> EvaluationError {
    EvaluationError::new(codes::WARN_OPTION_IGNORED, "<IV> option ignored")
}
