//! The values of a prepared statement: see [`sheaf_server::fuzzing::parameters`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sheaf_server::fuzzing::parameters(bytes));
