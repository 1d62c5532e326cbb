//! SimAI's workload text: any text is a program or an error, and any program ends.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_ranks::program::{Network, ideal, simai};

fuzz_target!(|text: &str| {
    if let Ok(program) = simai::read(text, 2)
        && program.ranks.len() <= 64
    {
        ideal(&program, &Network::default()).expect("layers wait for nothing that does not come");
    }
});
