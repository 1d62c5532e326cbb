//! Several frames through a switch.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_linux::bodies::run("switch", bytes));
