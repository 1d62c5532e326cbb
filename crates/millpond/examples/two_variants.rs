//! Runs two variants of a scenario and prints their 99th percentiles of the flow completion time.
//! `cargo run --release -p millpond --example two_variants [SCENARIO [VARIANT VARIANT]]`

use millpond::{Error, Options, Scenario, run};

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = arguments.first().map_or("scenarios/microburst.toml", String::as_str);
    let scenario = Scenario::open(file)?;
    let mut variants: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    if variants.is_empty() {
        variants = scenario.variants().into_iter().take(2).collect();
    }
    for variant in variants {
        let summary = run(&scenario.plan(Some(variant))?, &Options::default())?;
        let p99 = summary.fct_us.get("all").and_then(|fct| fct.p99);
        println!("{variant}: p99 {:.1} us", p99.unwrap_or(f64::NAN));
    }
    Ok(())
}
