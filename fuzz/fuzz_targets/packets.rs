//! Packets as a client would send them: see [`sheaf_server::fuzzing::packets`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sheaf_server::fuzzing::packets(bytes));
