//! A plan's network slowed down: every rate divided by a factor, every time multiplied by it.
//!
//! Bytes stay, so bandwidth-delay products, buffers and thresholds keep their ratios, and so do
//! loads. A world in wall-clock time runs a 10 Gb/s network as one of 100 Mb/s this way.
//!
//! The text of a plan has all defaults written out and a unit on every time and rate, so the
//! change is one of values, key by key; names are left alone.
//!
//! Invariant: a factor of 1 changes nothing.

use crate::plan::Plan;
use millpond_core::{Rate, Time};

/// Keys whose strings are names or commands, whatever they look like.
const NAMES: [&str; 20] = [
    "name",
    "about",
    "kernel",
    "shows",
    "classes",
    "after",
    "traffic",
    "ports",
    "pcap",
    "path",
    "a",
    "b",
    "command",
    "arguments",
    "responses",
    "host",
    "hosts",
    "linux",
    "scopes",
    "link",
];

/// The text of a plan that is `factor` times as slow.
///
/// # Errors
/// A sentence that names the value that cannot be slowed: a list of flows in a file, or a time or
/// rate that leaves the range.
pub fn slowed(plan: &Plan, factor: u32) -> Result<String, String> {
    if plan.base.is_some() && factor != 1 {
        let what = "a long list of flows stays in its file, whose start times do not slow down";
        return Err(format!("traffic.flows: {what}: use a scale of 1 or a shorter list"));
    }
    text(&plan.resolved, factor)
}

fn text(resolved: &str, factor: u32) -> Result<String, String> {
    let mut slowed = String::with_capacity(resolved.len() + 64);
    let mut table = "";
    for line in resolved.split_inclusive('\n') {
        if line.starts_with('[') {
            table = line.trim();
        }
        match line.strip_prefix("rate = ").and_then(|rate| rate.trim().parse::<f64>().ok()) {
            // Queries a second.
            Some(rate) if table == "[[traffic]]" => {
                slowed += &format!("rate = {:?}\n", rate / f64::from(factor));
            }
            _ => strings(line, factor, &mut slowed)?,
        }
    }
    Ok(slowed)
}

/// Copies a line with its quoted values slowed.
fn strings(line: &str, factor: u32, into: &mut String) -> Result<(), String> {
    let mut key = String::new();
    let mut word = String::new();
    let mut rest = line.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => {
                let mut end = at + 1;
                let mut is_escaped = false;
                for (next, c) in rest.by_ref() {
                    end = next;
                    match c {
                        '"' if !is_escaped => break,
                        _ => is_escaped = c == '\\' && !is_escaped,
                    }
                }
                let value = &line[at + 1..end];
                *into += &format!("\"{}\"", slow(&key, value, factor)?);
                continue;
            }
            '=' => key = std::mem::take(&mut word),
            c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => word.push(c),
            ' ' => {}
            _ => word.clear(),
        }
        into.push(c);
    }
    Ok(())
}

/// A value slowed, if it is a time or a rate.
fn slow(key: &str, value: &str, factor: u32) -> Result<String, String> {
    if NAMES.contains(&key) {
        return Ok(value.into());
    }
    let beyond = || format!("`{key}`: {value} slowed {factor} times is out of range");
    if let Ok(rate) = value.parse::<Rate>() {
        let bps = rate.bps() / u64::from(factor);
        return if bps == 0 { Err(beyond()) } else { Ok(format!("{bps}bps")) };
    }
    match value.parse::<Time>() {
        Ok(Time::MAX) | Err(_) => Ok(value.into()),
        Ok(time) => {
            let ps = time.as_ps().checked_mul(factor.into()).ok_or_else(beyond)?;
            if ps > Time::LONGEST.as_ps() { Err(beyond()) } else { Ok(format!("{ps}ps")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn plan(text: &str) -> Plan {
        Scenario::parse("a.toml", text).unwrap().plan(None, &[], None).unwrap()
    }

    const TEXT: &str = "duration = \"10ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n\
                        host-link = { rate = \"10Gbps\", delay = \"1us\" }\n[switch]\n\
                        marking = { kind = \"ecn\", threshold-packets = 65 }\n\
                        path = { kind = \"letflow\", gap = \"50us\" }\n[[traffic]]\n\
                        name = \"5us\"\nkind = \"incast\"\ndegree = 3\nresponse = \"32KB\"\n\
                        rate = 400.0\nthink-time = \"3us\"\n[[traffic]]\nkind = \"flows\"\n\
                        rows = [[10, 0, 1, 10000]]\n[[limit]]\nname = \"1s\"\nhosts = 0\n\
                        rate = \"1Gbps\"\nscopes = [\"2s\"]\n[[limit]]\nname = \"2s\"\n\
                        rate = \"5Gbps\"\n";

    #[test]
    fn times_and_rates_scale_and_bytes_and_names_stay() {
        let (fast, slow) = (plan(TEXT), plan(&slowed(&plan(TEXT), 100).unwrap()));
        let link = &slow.topology.links[0];
        assert_eq!((link.rate, link.delay), (Rate(100_000_000), Time::from_us(100)));
        assert_eq!(slow.horizon, Time::from_s(1));
        assert_eq!(slow.traffic.classes, fast.traffic.classes);
        assert_eq!(slow.switch.marking, fast.switch.marking);
        assert!(slow.resolved.contains("gap = \"5ms\""), "{}", slow.resolved);
        assert!(slow.resolved.contains("think-time = \"300us\""));
        assert!(slow.resolved.contains("rate = 4.0\n"));
        let limits: Vec<_> = slow.limits.iter().map(|it| (it.hosts.len(), it.rate())).collect();
        assert_eq!(limits, [(1, Rate(10_000_000)), (0, Rate(50_000_000))]);
        let times = |plan: &Plan| {
            let mut arrivals = plan.traffic.arrivals();
            let all: Vec<_> = std::iter::from_fn(|| arrivals.next_arrival()).collect();
            all.into_iter()
                .map(|a| (a.at.as_ps(), a.src, a.dst, a.bytes, a.flow))
                .collect::<Vec<_>>()
        };
        let (fast, slow) = (times(&fast), times(&slow));
        assert_eq!(fast.len(), slow.len());
        for (a, b) in fast.iter().zip(&slow) {
            assert!((a.0 * 100).abs_diff(b.0) <= 100, "{a:?} {b:?}");
            assert_eq!((a.1, a.2, a.3, a.4), (b.1, b.2, b.3, b.4));
        }
    }

    #[test]
    fn a_factor_of_one_changes_nothing() {
        let plan = plan(TEXT);
        let same = self::plan(&slowed(&plan, 1).unwrap());
        assert_eq!(same.resolved, plan.resolved);
    }

    #[test]
    fn what_leaves_the_range_is_named() {
        let plan = plan(&TEXT.replace("10ms", "20000s"));
        let error = slowed(&plan, 1000).unwrap_err();
        assert!(error.starts_with("`duration`: 20000s"), "{error}");
    }
}
