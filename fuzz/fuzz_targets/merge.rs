//! A super-segment that is cut, merged and cut again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_linux::bodies::run("merge", bytes));
