//! A frame at a switch of a fabric.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_linux::bodies::run("fabric", bytes));
