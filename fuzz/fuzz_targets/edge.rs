//! Several frames through the edge.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_linux::bodies::run("edge", bytes));
