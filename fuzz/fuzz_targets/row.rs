//! Rows as a page would have them: see [`sheaf_table::fuzzing::row`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sheaf_table::fuzzing::row(bytes));
