//! Frames of the log: see [`sheaf_storage::fuzzing::log_frame`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sheaf_storage::fuzzing::log_frame(bytes));
