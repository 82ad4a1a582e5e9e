//! RANDOM_BYTES(count): bytes that nobody can guess, from the operating system. Each row gets its own.

use std::cell::RefCell;

use datafusion_common::exec_datafusion_err;

use super::result_array::byte_strings;
use super::types::field;
use super::{EvaluationError, Function};

/// The most bytes of one value.
const MAX_BYTES: usize = 1024;

pub(super) static FUNCTIONS: &[Function] = &[Function::new(
    "random_bytes",
    (1, 1),
    |_| Ok(field::bytes()),
    |call| {
        let counts = call.int(0)?;
        let failed = RefCell::new(None);
        let made = byte_strings(call, |row, out| {
            let count = usize::try_from(counts.get(row)?).ok();
            let Some(count) = count.filter(|count| (1..=MAX_BYTES).contains(count)) else {
                let error = EvaluationError::out_of_range("length", "random_bytes");
                failed.borrow_mut().get_or_insert_with(|| error.into());
                return None;
            };
            out.resize(count, 0);
            if let Err(error) = getrandom_system::fill(out) {
                let error = exec_datafusion_err!("the system has no random bytes: {error}");
                failed.borrow_mut().get_or_insert(error);
            }
            Some(())
        });
        match failed.into_inner() {
            Some(error) => Err(error),
            None => made,
        }
    },
)
.volatile()
.whole_numbers(0, 1)
.makes_bytes()
.in_defaults()];
