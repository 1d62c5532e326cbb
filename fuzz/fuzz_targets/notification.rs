//! A datagram at the limiter's port of notifications.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_linux::bodies::run("notification", bytes));
