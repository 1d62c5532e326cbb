//! Any frame between the world of kernels in virtual time and an agent: messages that can be read
//! are written to the same bytes, and reading never panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_agent::wire::{Malformed, Order, Report};

/// Reads all messages that there are, and writes them again.
fn again<T>(
    bytes: &[u8],
    read: impl Fn(&mut &[u8]) -> Result<Option<T>, Malformed>,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    let (mut rest, mut written) = (bytes, Vec::new());
    while let Ok(Some(message)) = read(&mut rest) {
        write(&message, &mut written);
        assert_eq!(written, bytes[..bytes.len() - rest.len()]);
    }
}

fuzz_target!(|bytes: &[u8]| {
    again(bytes, Order::read, Order::write);
    again(bytes, Report::read, Report::write);
});
