//! A packet that is too long.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_linux::bodies::run("fragment", bytes));
