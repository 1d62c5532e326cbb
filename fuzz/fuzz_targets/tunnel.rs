//! A datagram between two switches that share a key.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_linux::bodies::run("tunnel", bytes));
