//! Any text: a distribution that only rises and whose samples lie within it, or an error with its
//! line; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_core::random::Stream;
use millpond_scenario::cdf::{Cdf, Shape};

fuzz_target!(|text: &str| {
    for shape in [Shape::Linear, Shape::Steps] {
        match Cdf::parse(text, shape) {
            Ok(cdf) => {
                assert!(cdf.points().windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1));
                let (first, last) = (cdf.points()[0].0, cdf.points()[cdf.points().len() - 1].0);
                assert!(
                    cdf.mean() <= last.max(1.0),
                    "the mean {} is above the largest size {last}",
                    cdf.mean()
                );
                let mut random = Stream::new(1, "fuzz");
                for _ in 0..20 {
                    let bytes = cdf.sample(&mut random);
                    assert!(
                        bytes >= 1 && bytes as f64 <= last.ceil().max(1.0),
                        "{bytes} is not in {first} to {last}"
                    );
                }
            }
            Err(error) => assert!(error.line >= 1 && error.line <= text.lines().count().max(1)),
        }
    }
});
