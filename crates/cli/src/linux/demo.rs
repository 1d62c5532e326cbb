//! `millpond lab demo`: one mechanism under kernel TCP, beside what it replaces.
//!
//! The scenarios are files of this repository, and part of this program.

use crate::args::linux::{Demo, DemoArgs};
use crate::failure::Failure;
use crate::run::default_out;
use crate::say;
use crate::stderr::warn;
use crate::watch::{Terminal, catch_interrupts};
use millpond::{Comparison, Lab, Options, Scenario, VariantResult};
use millpond_results::compare_table;
use std::process::{Command, Stdio};

/// A demo's scenario.
struct Shown {
    name: &'static str,
    text: &'static str,
    /// The key of its load, and the loads.
    vary: Option<(&'static str, &'static str)>,
    /// Where the statistics have the times that it is about.
    times: [&'static str; 2],
    /// Its demands on the machine: a command of the shell that succeeds, and Debian's packages.
    needs: Option<[&'static str; 2]>,
}

const TLT: Shown = Shown {
    name: "tlt/testbed.toml",
    text: include_str!("../../../../papers/tlt/testbed.toml"),
    vary: Some(("traffic.incast.flows-per-server", "1,5,10,16,22")),
    times: ["fct_us", "all"],
    needs: None,
};
const TLT_PROGRAMS: Shown = Shown {
    name: "tlt/redis.toml",
    text: include_str!("../../../../papers/tlt/redis.toml"),
    vary: Some(("program.clients.arguments", "-c 1,-c 5,-c 10,-c 16,-c 22")),
    times: ["latency_us", "set"],
    needs: Some([
        "command -v redis-server && command -v nginx && \
         test -e /usr/lib/nginx/modules/ngx_stream_module.so",
        "redis-server nginx libnginx-mod-stream",
    ]),
};
const CANARY: Shown = Shown {
    name: "lab/canary.toml",
    text: include_str!("../../../../scenarios/lab/canary.toml"),
    vary: None,
    times: ["fct_us", "requests"],
    needs: None,
};
const CANARY_PROGRAMS: Shown = Shown {
    name: "canary/memcached.toml",
    text: include_str!("../../../../papers/canary/memcached.toml"),
    vary: None,
    times: ["latency_us", "get"],
    needs: Some(["command -v memcached && command -v iperf3", "memcached iperf3"]),
};

impl Shown {
    fn of(args: &DemoArgs) -> Shown {
        match (args.which, args.programs) {
            (Demo::Tlt, false) => TLT,
            (Demo::Tlt, true) => TLT_PROGRAMS,
            (Demo::Canary, false) => CANARY,
            (Demo::Canary, true) => CANARY_PROGRAMS,
        }
    }

    /// Refuses if this machine lacks its programs.
    fn check(&self) -> Result<(), Failure> {
        let Some([check, packages]) = self.needs else { return Ok(()) };
        let mut shell = Command::new("sh");
        let status = shell.args(["-c", check]).stdin(Stdio::null()).stdout(Stdio::null()).status();
        match status.is_ok_and(|status| status.success()) {
            true => Ok(()),
            false => Err(Failure::Usage(format!(
                "--programs needs programs that are not installed: apt-get install {packages}"
            ))),
        }
    }

    fn number(&self, result: &VariantResult, statistic: &str) -> f64 {
        number(result, &[self.times[0], self.times[1], statistic])
    }
}

/// Shows a mechanism.
pub fn demo(args: &DemoArgs) -> Result<(), Failure> {
    let shown = Shown::of(args);
    shown.check()?;
    let scenario = Scenario::parse(shown.name, shown.text)?;
    let vary: Vec<_> = shown.vary.into_iter().collect();
    let comparison = Comparison::across(&scenario, &vary, args.seeds.inclusive(), &["lab"])?;
    if !args.output.quiet {
        warn(comparison.warnings(), args.output.warnings());
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
        say(&compare_table(results, args.output.warnings()));
        match args.which {
            Demo::Tlt => say(&worst(&shown, results)),
            Demo::Canary => say(&means(&shown, results)),
        }
        say(&format!("report:  {}", compared.folder.join("report.html").display()));
    }
    Ok(())
}

fn number(result: &VariantResult, path: &[&str]) -> f64 {
    result.statistics.leaf(path).and_then(|leaf| leaf.mean).unwrap_or(f64::NAN)
}

/// The point at which the kernel alone is slowest, and what TLT makes of it.
fn worst(shown: &Shown, results: &[VariantResult]) -> String {
    let p99 = |result: &VariantResult| shown.number(result, "p99");
    let of = |variant: &str| {
        let prefix = format!("{variant} ");
        results.iter().filter(move |result| result.variant.starts_with(&prefix)).collect::<Vec<_>>()
    };
    let all = [of("linux"), of("rto-min-5ms"), of("tlt")];
    let points = 0..all.iter().map(Vec::len).min().unwrap_or(0);
    // Few responses have no 99th percentile.
    let points = points.filter(|at| all.iter().all(|of| p99(of[*at]).is_finite()));
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
fn means(shown: &Shown, results: &[VariantResult]) -> String {
    let mean = |result| shown.number(result, "mean");
    let parts: Vec<String> = results
        .iter()
        .map(|result| {
            let change = 100.0 * (mean(result) / mean(&results[0]) - 1.0);
            format!("{} {:.2} ms ({change:+.0}%)", result.variant, mean(result) / 1000.0)
        })
        .collect();
    format!("mean response: {}", parts.join(", "))
}
