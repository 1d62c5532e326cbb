//! The first bytes of a frame.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_linux::bodies::run("headers", bytes));
