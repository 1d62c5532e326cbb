//! Addresses that a frame claims, and probes for loops.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_linux::bodies::run("neighbour", bytes));
