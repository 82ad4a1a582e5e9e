//! A log with flipped bits: see [`sheaf_storage::fuzzing::damaged_log`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sheaf_storage::fuzzing::damaged_log(bytes));
