//! GOAL, text and binary: any bytes are a program or an error, and any program ends on an ideal
//! network or names what is left.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_ranks::program::{Network, ideal, read};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(program) = read(bytes) {
        let _ = ideal(&program, &Network::default());
    }
});
