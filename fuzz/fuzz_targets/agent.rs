//! Any frame between the world of kernels in virtual time and an agent: reading never panics, and
//! messages that can be read are read again from their own bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_agent::wire::{Order, Report, bytes, read};

fuzz_target!(|frame: &[u8]| {
    let mut rest = frame;
    while let Ok(Some(order)) = read::<Order>(&mut rest) {
        assert_eq!(read(&mut &bytes(&order)[..]), Ok(Some(order)));
    }
    let mut rest = frame;
    while let Ok(Some(report)) = read::<Report>(&mut rest) {
        assert_eq!(read(&mut &bytes(&report)[..]), Ok(Some(report)));
    }
});
