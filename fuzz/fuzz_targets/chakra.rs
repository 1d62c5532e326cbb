//! Chakra's traces: any bytes are a program or an error, and any program ends on an ideal network
//! or names what is left.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_ranks::program::chakra::{File, read};
use millpond_ranks::program::{Network, ideal};

// Two ranks with a trace each, and a file of groups: one that is given, or none.
fuzz_target!(|input: (&[u8], &[u8], Option<&[u8]>)| {
    let (zero, one, groups) = input;
    let traces = [File { name: "0", bytes: zero }, File { name: "1", bytes: one }];
    if let Ok(program) = read(&traces, groups.map(|bytes| File { name: "groups", bytes })) {
        let _ = ideal(&program, &Network::default());
    }
});
