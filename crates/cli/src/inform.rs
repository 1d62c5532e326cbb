//! `check`, `list`, `explain`, `schema`: what can be asked without running anything.

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::pages::located;
use crate::print;
use crate::run::load;
use millpond_core::registry::{Choice, PathProperty, Signal};
use millpond_core::switch::buffer::Capacity;
use millpond_core::switch::marking::Threshold;
use millpond_scenario::catalogue::PlaceInfo;
use millpond_scenario::cdf::BUILTIN;
use millpond_scenario::choices::Visit;
use millpond_scenario::offered::{Offered, Share};
use millpond_scenario::plan::{Plan, PortKind};
use millpond_scenario::{catalogue, explain, reference, schema};
use millpond_sim::layout::{Layout, PARTITIONS_MAX};
use std::collections::BTreeMap;

/// Checks a scenario, all its variants included.
pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    let scenario = load(&args.scenario, &args.overrides)?;
    let variants: Vec<Option<String>> = match &args.variant {
        Some(name) => vec![Some(name.clone())],
        None => std::iter::once(None)
            .chain(scenario.variants().into_iter().map(|v| Some(v.to_string())))
            .collect(),
    };
    // The report of a plan is kept, not the plan: there may be thousands, and all are made before
    // any is printed.
    let (mut resolved, mut reports) = (None, Vec::new());
    // Variants print of their load and their notes what differs from the first's.
    let mut first: Option<Vec<String>> = None;
    let mut idle = scenario.idle();
    for variant in variants {
        let plan = scenario.plan(variant.as_deref())?;
        let mut warnings = plan.warnings().to_vec();
        // Of the scenario and all its variants, and so reported once.
        warnings.append(&mut idle);
        reports.push(if args.json {
            as_json(plan.detail(), variant.as_deref(), &warnings)
        } else {
            let load = load_lines(plan.detail());
            let own = load.iter().filter(|line| first.iter().flatten().all(|known| known != *line));
            let text = as_text(plan.detail(), variant.as_deref(), &warnings, own);
            first.get_or_insert(load);
            text.into()
        });
        resolved.get_or_insert(plan.resolved().to_string());
    }
    if args.resolved {
        print(&resolved.unwrap_or_default());
    } else if args.json {
        print(&serde_json::Value::Array(reports).to_string());
    } else {
        reports.iter().filter_map(|text| text.as_str()).for_each(print);
    }
    Ok(())
}

/// The offered load, and a line a note.
fn load_lines(plan: &Plan) -> Vec<String> {
    let offered = Some(plan.offered().to_string()).filter(|text| !text.is_empty());
    let offered = offered.map(|text| format!("  {text}"));
    offered.into_iter().chain(plan.notes().iter().map(|note| format!("  note: {note}"))).collect()
}

/// A line, one for each kind of ports, those of the load, and one for each warning.
fn as_text<'a>(
    plan: &Plan,
    variant: Option<&str>,
    warnings: &[String],
    load: impl Iterator<Item = &'a String>,
) -> String {
    let variant = variant.unwrap_or("as it stands");
    let line = format!("{} ({variant}): {}", plan.name, describe(plan));
    let ports = plan.port_kinds().into_iter().map(|ports| format!("  {ports}"));
    let warnings = warnings.iter().map(|warning| format!("  warning: {warning}"));
    let after = ports.chain(load.cloned()).chain(warnings);
    std::iter::once(line).chain(after).collect::<Vec<_>>().join("\n")
}

fn describe(plan: &Plan) -> String {
    let t = &plan.topology;
    let layout = Layout::new(t, PARTITIONS_MAX, plan.engine.one_partition);
    let is_fast = millpond_sim::build::fast_ports(plan, layout.partitions);
    let ports = if is_fast { "fast" } else { "general" };
    let others: String =
        others(plan).iter().map(|(place, kind)| format!(" · {} {kind}", last(place))).collect();
    let (links, switches) = t.counts();
    let count =
        |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    format!(
        "{} hosts, {}, {}; {} · {} · {} · {}{others}; {}, windows of {}, {ports} ports",
        t.hosts,
        count(switches, "switch", "switches"),
        count(links, "link", "links"),
        plan.transport_kind.kind(),
        plan.switch.path.kind(),
        plan.switch.buffer.kind(),
        plan.switch.marking.kind(),
        count(layout.partitions, "partition", "partitions"),
        layout.window,
    )
}

/// Places that every plan names, and one that none reports: hosts jitter in nearly all.
const NAMED: [&str; 4] = ["switch.path", "switch.buffer", "switch.marking", "host.jitter"];

/// Of the places that a scenario seldom chooses at, those where it has, along the packet's path:
/// ("switch.queue", "srpt").
fn others(plan: &Plan) -> Vec<(&'static str, &'static str)> {
    struct Others(Vec<(&'static str, &'static str)>);
    impl Visit for Others {
        fn choice<C: Choice>(&mut self, choice: &C) {
            let place = C::place();
            if choice.kind() != place.default && !NAMED.contains(&place.path) {
                self.0.push((place.path, choice.kind()));
            }
        }
    }
    let mut others = Others(Vec::new());
    plan.each_choice(&mut others);
    others.0
}

fn last(place: &str) -> &str {
    place.rsplit('.').next().unwrap_or(place)
}

fn as_json(plan: &Plan, variant: Option<&str>, warnings: &[String]) -> serde_json::Value {
    let (links, switches) = plan.topology.counts();
    serde_json::json!({
        "name": plan.name,
        "variant": variant,
        "hosts": plan.topology.hosts,
        "switches": switches,
        "links": links,
        "horizon_us": plan.horizon.as_us_f64(),
        "mechanisms": mechanisms(plan),
        "ports": plan.port_kinds().iter().map(port_json).collect::<Vec<_>>(),
        "offered": offered_json(&plan.offered()),
        "warnings": warnings,
        "notes": plan.notes(),
    })
}

fn offered_json(offered: &Offered) -> serde_json::Value {
    let share = |share: &Option<Share>| {
        share.as_ref().map(|s| serde_json::json!({ "mean": s.mean, "most": s.most, "at": s.at }))
    };
    serde_json::json!({
        "host_links": share(&offered.host_links),
        "uplinks": share(&offered.uplinks),
        "oversubscription": offered.oversubscription,
        "unrated": offered.unrated,
    })
}

fn port_json(ports: &PortKind) -> serde_json::Value {
    let (packets, bytes) = match ports.threshold {
        Some(Threshold::Packets(packets)) => (Some(packets), None),
        Some(Threshold::Bytes(bytes) | Threshold::Average(bytes)) => (None, Some(bytes.get())),
        None => (None, None),
    };
    let Capacity { bytes: held, packets: most } = ports.capacity;
    serde_json::json!({
        "tier": ports.tier,
        "rate_bps": ports.rate.bps(),
        "count": ports.count,
        "buffer_bytes": (held < u64::MAX).then_some(held),
        "buffer_packets": (most < u32::MAX).then_some(most),
        "mark_packets": packets,
        "mark_bytes": bytes,
    })
}

/// The mechanisms that `describe` names, by place.
fn mechanisms(plan: &Plan) -> BTreeMap<&'static str, &'static str> {
    let always = [
        ("transport", plan.transport_kind.kind()),
        ("switch.path", plan.switch.path.kind()),
        ("switch.buffer", plan.switch.buffer.kind()),
        ("switch.marking", plan.switch.marking.kind()),
    ];
    always.into_iter().chain(others(plan)).collect()
}

pub fn list(json: bool) -> Result<(), Failure> {
    if json {
        let places: Vec<serde_json::Value> = catalogue::places().iter().map(place_json).collect();
        let sizes: Vec<&str> = BUILTIN.iter().map(|cdf| cdf.name).collect();
        print(&serde_json::json!({ "places": places, "sizes": sizes }).to_string());
    } else {
        print(&explain::list());
    }
    Ok(())
}

fn place_json(info: &PlaceInfo) -> serde_json::Value {
    let place = info.place;
    let kinds: Vec<serde_json::Value> = place
        .mechanisms
        .iter()
        .map(|m| {
            let names = |properties: &[PathProperty]| {
                properties.iter().map(|p| p.name()).collect::<Vec<_>>()
            };
            let signals = |signals: &[Signal]| signals.iter().map(|s| s.name()).collect::<Vec<_>>();
            serde_json::json!({
                "kind": m.kind,
                "summary": m.about.summary,
                "source": m.about.source,
                "needs": names(m.about.needs),
                "breaks": names(m.about.breaks),
                "provides": signals(m.about.provides),
                "reads": signals(m.about.reads),
                "keys": m.keys.iter().map(|key| key.name()).collect::<Vec<_>>(),
            })
        })
        .collect();
    serde_json::json!({
        "place": place.path, "question": place.question, "default": place.default, "kinds": kinds,
    })
}

/// Explains a key, a kind or a place.
pub fn explain(name: &str, json: bool) -> Result<(), Failure> {
    let text = located(&explain::explain(name).map_err(Failure::Usage)?);
    if json {
        print(&serde_json::json!({ "name": name, "text": text }).to_string());
    } else {
        print(&text);
    }
    Ok(())
}

pub fn schema() -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&schema::schema())?;
    print(&text);
    Ok(())
}

pub fn reference() -> Result<(), Failure> {
    print(&reference::reference());
    Ok(())
}
