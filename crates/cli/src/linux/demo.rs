//! `millpond lab demo`: one mechanism under kernel TCP, beside what it replaces.
//!
//! The scenarios are files of this repository, and part of this program.

use crate::args::linux::{Demo, DemoArgs};
use crate::failure::Failure;
use crate::run::default_out;
use crate::watch::{Terminal, catch_interrupts};
use crate::{say, tell};
use millpond::{Comparison, Lab, Options, Scenario, VariantResult};
use millpond_results::compare_table;

/// Flows of each of the eight servers.
const FLOWS: &str = "1,5,10,16,22";

/// Shows a mechanism.
pub fn demo(args: &DemoArgs) -> Result<(), Failure> {
    let (name, text, vary) = match args.which {
        Demo::Tlt => (
            "lab/tlt.toml",
            include_str!("../../../../scenarios/lab/tlt.toml"),
            vec![("traffic.incast.flows-per-server", FLOWS)],
        ),
        Demo::Canary => {
            ("lab/canary.toml", include_str!("../../../../scenarios/lab/canary.toml"), vec![])
        }
    };
    let scenario = Scenario::parse(name, text)?;
    let comparison = Comparison::across(&scenario, &vary, args.seeds.inclusive(), &["lab"])?;
    if !args.output.quiet {
        comparison.warnings().iter().for_each(|warning| tell(format_args!("warning: {warning}")));
    }
    let out = default_out(&args.output.out, comparison.name(), Some("lab-demo"));
    let terminal = Terminal::new(args.output.quiet, "");
    catch_interrupts();
    let lab = Lab { scale: Some(1) };
    let options =
        Options { world: &lab, force: args.output.force, control: &terminal, ..Options::default() };
    let compared = millpond::compare(&comparison, &out, &options)?;
    let results = &compared.results;
    if args.output.json {
        say(&serde_json::to_string_pretty(results)?);
    } else if !args.output.quiet {
        say(&compare_table(results));
        match args.which {
            Demo::Tlt => say(&worst(results)),
            Demo::Canary => say(&means(results)),
        }
        say(&format!("report:  {}", compared.folder.join("report.html").display()));
    }
    Ok(())
}

fn number(result: &VariantResult, path: &[&str]) -> f64 {
    result.statistics.leaf(path).and_then(|leaf| leaf.mean).unwrap_or(f64::NAN)
}

fn p99(result: &VariantResult) -> f64 {
    number(result, &["fct_us", "all", "p99"])
}

/// The point at which the kernel alone is slowest, and what TLT makes of it.
fn worst(results: &[VariantResult]) -> String {
    let of = |variant: &str| {
        let prefix = format!("{variant} ");
        results.iter().filter(move |result| result.variant.starts_with(&prefix)).collect::<Vec<_>>()
    };
    let all = [of("linux"), of("rto-min-5ms"), of("tlt")];
    let points = 0..all.iter().map(Vec::len).min().unwrap_or(0);
    let Some(at) = points.max_by(|a, b| p99(all[0][*a]).total_cmp(&p99(all[0][*b]))) else {
        return String::new();
    };
    let [linux, patient, tlt] = [0, 1, 2].map(|variant| all[variant][at]);
    let ms = |result| p99(result) / 1000.0;
    let less = |than| 100.0 * (1.0 - p99(tlt) / p99(than));
    let rtos = |result: &VariantResult| number(result, &["timeouts"]);
    let name = linux.variant.trim_start_matches("linux ");
    format!(
        "worst point, {name}: p99 {:.1} ms with TLT; {:.1} ms as Linux is ({:.0}% less), {:.1} ms \
         with rto_min 5 ms ({:.0}% less); timeouts {}, {}, {}; sent again {}, {}, {}",
        ms(tlt),
        ms(linux),
        less(linux),
        ms(patient),
        less(patient),
        rtos(tlt),
        rtos(linux),
        rtos(patient),
        number(tlt, &["packets", "retransmitted"]),
        number(linux, &["packets", "retransmitted"]),
        number(patient, &["packets", "retransmitted"]),
    )
}

/// The mean response of requests, with and without deflection.
fn means(results: &[VariantResult]) -> String {
    let mean = |result| number(result, &["fct_us", "requests", "mean"]);
    let parts: Vec<String> = results
        .iter()
        .map(|result| {
            let change = 100.0 * (mean(result) / mean(&results[0]) - 1.0);
            format!("{} {:.2} ms ({change:+.0}%)", result.variant, mean(result) / 1000.0)
        })
        .collect();
    format!("mean response: {}", parts.join(", "))
}
