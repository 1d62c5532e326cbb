//! A plan's network slowed down: every rate divided by a factor, every time multiplied by it.
//!
//! Bytes stay, so bandwidth-delay products, buffers and thresholds keep their ratios, and so do
//! loads. A world in wall-clock time runs a 10 Gb/s network as one of 100 Mb/s this way.
//!
//! Invariant: a factor of 1 changes nothing.

use crate::keys::grouped;
use crate::plan::Plan;
use crate::resolved;
use crate::settings::Settings;
use crate::settings::graph::Graph;
use crate::settings::topology::{FileParams, TopologyParams};
use crate::settings::traffic::TrafficParams;
use millpond_core::params::{Params, Value};
use millpond_core::{Rate, Time};
use std::sync::Arc;

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
    let mut s = Settings::clone(&plan.settings);
    let mut done = Ok(());
    s.each_params(&mut |params| done = done.clone().and_then(|()| slow_params(params, factor)));
    done?;
    if let TopologyParams::File(FileParams { graph: Graph(Some(list)), .. }) = &mut s.topology {
        for link in &mut Arc::make_mut(list).links {
            link.rate = slow_rate("rate", link.rate, factor)?;
            link.delay = slow_time("delay", link.delay, factor)?;
        }
    }
    for traffic in &mut s.traffic {
        match &mut traffic.kind {
            // Queries a second.
            TrafficParams::Incast(p) => p.rate = p.rate.map(|rate| rate / f64::from(factor)),
            TrafficParams::Flows(p) => {
                for row in p.rows.0.iter_mut().flat_map(|table| &mut Arc::make_mut(table).rows) {
                    row.start = slow_time("rows", row.start, factor)?;
                }
            }
            _ => {}
        }
    }
    Ok(resolved::write(&s))
}

fn slow_params(params: &mut dyn Params, factor: u32) -> Result<(), String> {
    for (index, key) in params.keys().iter().enumerate() {
        let name = key.name();
        if let Some(value) = slow(grouped(&name).1, &params.get(index), factor)? {
            params.set(index, &value).map_err(|error| format!("`{name}`: {error}"))?;
        }
    }
    Ok(())
}

/// A value slowed, if it is a time or a rate.
fn slow(key: &str, value: &Value, factor: u32) -> Result<Option<Value>, String> {
    Ok(Some(match value {
        Value::Time(time) => Value::Time(slow_time(key, *time, factor)?),
        Value::Rate(rate) => Value::Rate(slow_rate(key, *rate, factor)?),
        // By tier, or by the rate of a link.
        Value::Tiers(tiers) => {
            let tier = |(name, value): &(String, Value)| {
                let name = match name.parse::<Rate>() {
                    Ok(rate) => slow_rate(key, rate, factor)?.to_string(),
                    Err(_) => name.clone(),
                };
                Ok((name, slow(key, value, factor)?.unwrap_or_else(|| value.clone())))
            };
            Value::Tiers(tiers.iter().map(tier).collect::<Result<_, String>>()?)
        }
        _ => return Ok(None),
    }))
}

fn slow_rate(key: &str, rate: Rate, factor: u32) -> Result<Rate, String> {
    let slow = Rate(rate.bps() / u64::from(factor));
    Some(slow).filter(|slow| slow.bps() > 0).ok_or_else(|| beyond(key, rate, factor))
}

fn slow_time(key: &str, time: Time, factor: u32) -> Result<Time, String> {
    let slow = time.as_ps().checked_mul(factor.into()).map(Time::from_ps);
    slow.filter(|slow| *slow <= Time::LONGEST).ok_or_else(|| beyond(key, time, factor))
}

fn beyond(key: &str, value: impl std::fmt::Display, factor: u32) -> String {
    format!("`{key}`: {value} slowed {factor} times is out of range")
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
