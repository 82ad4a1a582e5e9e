//! The answer to a greeting: see [`sheaf_server::fuzzing::handshake`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sheaf_server::fuzzing::handshake(bytes));
