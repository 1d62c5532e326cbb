//! The results of every shipped scenario, as readable tables that are compared with
//! `tests/golden/`.
//!
//! A table that changes is a result that changes: `MILLPOND_BLESS=1 cargo test -p millpond-cli
//! --test all golden::` writes the new ones, and the difference in version control shows what the
//! change did. Numbers are rounded to four digits; results are the same on every machine.

use crate::common::{Dir, GOLDEN_COMMAND, SHIPPED, Shipped, root, stems, succeed, summary};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number rounded to four significant digits; `-` for a statistic of nothing.
fn four(value: &Value) -> String {
    let Some(x) = value.as_f64() else { return "-".to_string() };
    let rounded: f64 = format!("{x:.3e}").parse().expect("what was written can be read");
    let magnitude = if rounded == 0.0 { 0 } else { rounded.abs().log10().floor() as i32 };
    format!("{rounded:.*}", (3 - magnitude).max(0) as usize)
}

fn count(value: &Value) -> String {
    value.as_u64().map_or("-".to_string(), |n| n.to_string())
}

/// One variant.
fn table(title: &str, s: &Value) -> String {
    let mut out = String::new();
    let flows = &s["flows"];
    let _ = writeln!(out, "== {title}");
    let _ = writeln!(
        out,
        "flows        {} of {} done",
        count(&flows["completed"]),
        count(&flows["started"])
    );
    let _ = writeln!(
        out,
        "goodput      {} Gb/s, Jain {}",
        four(&flows["goodput_gbps"]),
        four(&s["fairness_jain"])
    );
    for (class, fct) in s["fct_us"].as_object().expect("fct_us is by class") {
        let slow = &s["slowdown"][class];
        let _ = writeln!(
            out,
            "fct us       {class:16} n {:6} mean {:>9} p50 {:>9} p99 {:>9} slowdown p50 {:>7} p99 \
             {:>7}",
            count(&fct["count"]),
            four(&fct["mean"]),
            four(&fct["p50"]),
            four(&fct["p99"]),
            four(&slow["p50"]),
            four(&slow["p99"]),
        );
    }
    let qct = &s["qct_us"];
    let _ = writeln!(
        out,
        "qct us       {} of {} done, mean {} p50 {} p99 {}",
        count(&qct["completed"]),
        count(&qct["started"]),
        four(&qct["mean"]),
        four(&qct["p50"]),
        four(&qct["p99"]),
    );
    packet_lines(&mut out, &s["packets"]);
    let _ = writeln!(out, "timeouts     {}", count(&s["timeouts"]));
    for (name, counters) in s["mechanisms"].as_object().into_iter().flatten() {
        let counters = counters.as_object().expect("counters are by name");
        let line: Vec<String> =
            counters.iter().map(|(key, n)| format!("{key} {}", count(n))).collect();
        let _ = writeln!(out, "{name:12} {}", line.join(", "));
    }
    if s["pause_frames"].as_u64() != Some(0) {
        let _ = writeln!(out, "pause_frames {}", count(&s["pause_frames"]));
    }
    s["limits"].as_array().into_iter().flatten().for_each(|limit| limit_line(&mut out, limit));
    out
}

fn packet_lines(out: &mut String, packets: &Value) {
    let keys = ["sent", "delivered", "dropped", "ecn_marked", "retransmitted", "out_of_order"];
    let line: Vec<String> =
        keys.iter().map(|key| format!("{key} {}", count(&packets[*key]))).collect();
    let _ = writeln!(out, "packets      {}", line.join(", "));
    let drops = packets["dropped_by"].as_object().expect("dropped_by is by reason");
    let line: Vec<String> = drops
        .iter()
        .filter(|(_, n)| n.as_u64() != Some(0))
        .map(|(reason, n)| format!("{reason} {n}"))
        .collect();
    let _ = writeln!(
        out,
        "drops        {}",
        if line.is_empty() { "none".to_string() } else { line.join(", ") }
    );
}

fn limit_line(out: &mut String, limit: &Value) {
    let keys = ["packets", "marked", "reduced", "local_drops", "dropped", "bypassed"];
    let line: Vec<String> =
        keys.iter().map(|key| format!("{key} {}", count(&limit[*key]))).collect();
    let name =
        format!("{} {} {}", limit["name"], limit["kind"], limit["direction"]).replace('"', "");
    let _ = writeln!(
        out,
        "limit        {name}: {} Gb/s, credit {} B, rtt {} us, wait {} us; {}",
        four(&limit["rate_gbps"]),
        four(&limit["credit_mean_bytes"]),
        four(&limit["rtt_mean_us"]),
        four(&limit["wait_mean_us"]),
        line.join(", ")
    );
}

/// All variants of a scenario.
fn tables(shipped: &Shipped) -> String {
    let dir = Dir::new("golden");
    let mut out = format!("{GOLDEN_COMMAND}{}.toml", shipped.name);
    shipped.short.iter().for_each(|set| out.push_str(&format!(" --set {set}")));
    out.push('\n');
    for variant in shipped.arms() {
        let folder = dir.at(variant.unwrap_or("base"));
        succeed(&mut shipped.run(variant, &folder, &[]));
        let s = summary(&folder);
        assert_eq!(s["audit"]["conserved"], true);
        let title = variant.map_or("(no variant)".to_string(), |v| format!("--variant {v}"));
        out.push('\n');
        out.push_str(&table(&title, &s));
    }
    out
}

/// How a scenario's tables differ from its golden ones, or `None`; writes those where that is asked
/// for.
fn difference(shipped: &Shipped) -> Option<String> {
    let (name, found) = (&shipped.name, tables(shipped));
    let path = root().join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("MILLPOND_BLESS").is_some_and(|v| v == "1") {
        fs::write(&path, &found).unwrap();
        return None;
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let lines: Vec<String> = differing(&golden, &found);
    (!lines.is_empty()).then(|| {
        format!("{name} is not as in {} (- golden, + found):\n{}", path.display(), lines.join("\n"))
    })
}

/// The lines that differ, in place.
fn differing(golden: &str, found: &str) -> Vec<String> {
    let (a, b): (Vec<&str>, Vec<&str>) = (golden.lines().collect(), found.lines().collect());
    let pairs = (0..a.len().max(b.len())).map(|i| (a.get(i), b.get(i))).filter(|(a, b)| a != b);
    pairs
        .flat_map(|(a, b)| [a.map(|line| format!("- {line}")), b.map(|line| format!("+ {line}"))])
        .flatten()
        .collect()
}

/// All of them, as many at a time as there are cores.
#[test]
fn every_shipped_scenario_gives_its_table() {
    let next = AtomicUsize::new(0);
    let wrong: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(shipped) = SHIPPED.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(difference(shipped));
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    assert!(
        wrong.is_empty(),
        "{}\nif it should be: MILLPOND_BLESS=1 cargo test -p millpond-cli --test all golden::",
        wrong.join("\n")
    );
}

/// A golden table is of a scenario that ships. (A scenario without one is seen where they are
/// listed.)
#[test]
fn no_table_is_left_over() {
    assert_eq!(stems("tests/golden", ".txt"), stems("scenarios", ".toml"));
}
