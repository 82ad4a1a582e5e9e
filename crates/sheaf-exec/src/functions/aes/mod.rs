//! AES_ENCRYPT(text, key [, vector]) and AES_DECRYPT: byte strings in the mode of `block_encryption_mode`.
//!
//! The binder puts the mode in front of the arguments, so a call gives the same for the same arguments. A mode with an
//! initialization vector takes the first 16 bytes of the third argument. One without ignores it, with a warning.
//! What is no ciphertext is NULL.

mod modes;

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder};
use datafusion_common::{Result, exec_datafusion_err};
use sheaf_types::error::codes;

use self::modes::{BLOCK_BYTES, Block, Mode, Stream};
use super::types::field;
use super::{Call, EvaluationError, Function};

/// The arguments with the mode, and without a vector and with it.
const ARGUMENTS: (usize, usize) = (3, 4);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "$aes_encrypt",
        ARGUMENTS,
        |_| Ok(field::bytes()),
        |call| ciphered(call, Direction::Encrypt),
    ),
    Function::new(
        "$aes_decrypt",
        ARGUMENTS,
        |_| Ok(field::bytes()),
        |call| ciphered(call, Direction::Decrypt),
    ),
];

#[derive(Clone, Copy)]
enum Direction {
    Encrypt,
    Decrypt,
}

fn ciphered(call: &Call<'_>, direction: Direction) -> Result<ArrayRef> {
    let (modes, values, keys) = (call.text(0)?, call.bytes(1)?, call.bytes(2)?);
    let vectors = (call.len() == ARGUMENTS.1).then(|| call.bytes(3));
    let vectors = vectors.transpose()?;
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
        out.clear();
        let mut stream = Stream::new(mode, key, vector);
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
