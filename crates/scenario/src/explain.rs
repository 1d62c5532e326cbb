//! Explanations: what a key, a kind, a place or a distribution means; and the list of all there is.

use crate::catalogue::{KeyInfo, KindInfo, PlaceInfo, dependences, places, tables, whole_name};
use crate::cdf::{BUILTIN, Cdf};
use crate::error::nearest;
use crate::keys::{GROUPS, key_text};
use crate::names::{NAMES, named};
use crate::numbers;
use crate::tree::parse_path;
use millpond_core::params::Form;
use millpond_core::registry::{Mechanism, PathProperty};
use std::fmt::Write;

const PROPERTIES: &[PathProperty] = &[
    PathProperty::FifoPerFlow,
    PathProperty::FifoPerFlowcell,
    PathProperty::LossIsSignal,
    PathProperty::NoLossAfterAdmission,
    PathProperty::ImportantSurvives,
    PathProperty::TimersRun,
    PathProperty::LabelFixesPath,
    PathProperty::SizeAtEdge,
    PathProperty::ControlNeverWaits,
    PathProperty::PhasesMix,
    PathProperty::AcyclicWaits,
];

/// Returns the meaning of `name`: a key ("transport.min-rto", "min-rto" alone, or as `--set` takes
/// it: "traffic.background.load"), a kind ("dctcp", or of one place only: "switch.admission.red"),
/// a place or table ("switch.marking", "host"), a distribution ("web-search"), a path property
/// ("fifo-per-flow"), a name of the field ("wcmp"), or a result ("fct_us.mice.p99"). If several
/// things have the name, the text explains all of them.
///
/// # Errors
/// The nearest names, if nothing has this name.
pub fn explain(name: &str) -> Result<String, String> {
    let name = name.trim().trim_matches(['[', ']']).trim();
    let places = places();
    let spellings = spellings(name, &places);
    for spelling in &spellings {
        let mut out = explain_name(spelling, &places);
        // A key's name without its table.
        let is_leaf =
            |key: &KeyInfo| key.name == *spelling || key.name.rsplit('.').next() == Some(spelling);
        // A table within a table ("queues", "host-link").
        let group = Some(format!("{spelling}.")).filter(|_| out.is_empty() && !spelling.is_empty());
        let is_within =
            |key: &KeyInfo| group.as_ref().is_some_and(|group| key.name.starts_with(group));
        let is_meant = |key: &KeyInfo| is_leaf(key) || is_within(key);
        explain_keys(&mut out, &places, |key| key.path != *spelling && is_meant(key));
        if !out.is_empty() {
            return Ok(out.trim_end().to_string() + "\n");
        }
    }
    if let Some(text) = numbers::explain(name) {
        return Ok(text.trim_end().to_string() + "\n");
    }
    Err(unknown(name, spellings.last().map_or(name, String::as_str), &places))
}

/// The name of a thing in `--set`, a variant or a message, and its name in the catalogue.
fn spellings(name: &str, places: &[PlaceInfo]) -> Vec<String> {
    let mut list = vec![name.to_string(), name.to_lowercase().replace('_', "-")];
    let Some(mut path) = parse_path(name) else { return list };
    // One table of several, by its name or its number.
    let lists = ["traffic", "limit", "application", "program", "failure"];
    if path.len() >= 2 && lists.contains(&path[0].as_str()) {
        path.remove(1);
        list.push(path.join("."));
    }
    if path.len() >= 3
        && path[0] == "host"
        && path[1] == "nic"
        && ["buffer", "marking"].contains(&path[2].as_str())
    {
        path.splice(0..2, ["switch".to_string()]);
        list.push(path.join("."));
    }
    // A traffic's own transport.
    if path.len() >= 2 && path[0] == "traffic" && path[1] == "transport" {
        path.remove(0);
        list.push(path.join("."));
    }
    // The kind of a place, a tier's amount, a part of a list or a distribution: what it is of.
    let whole = path.pop().filter(|_| !path.is_empty()).map(|part| (path.join("."), part));
    list.extend(
        whole
            .filter(|(whole, part)| part == "kind" || has_parts(whole, places))
            .map(|(whole, _)| whole),
    );
    list
}

/// Whether the value of a key has parts that a scenario can name.
fn has_parts(path: &str, places: &[PlaceInfo]) -> bool {
    let is_it = |key: &KeyInfo| {
        key.path == path && (key.key.tiered || matches!(key.key.form, Form::Text | Form::List))
    };
    let in_places = places.iter().flat_map(|place| &place.kinds).flat_map(|kind| &kind.keys);
    tables().iter().flat_map(|table| &table.keys).chain(in_places).any(is_it)
}

/// All that has exactly this name.
fn explain_name(name: &str, places: &[PlaceInfo]) -> String {
    let mut out = String::new();
    places.iter().filter(|p| p.place.path == name).for_each(|p| explain_place(&mut out, p));
    for table in tables().iter().filter(|t| t.path == name && !name.is_empty()) {
        let _ =
            writeln!(out, "[{}]\n  {}\n  keys: {}\n", table.path, table.about, names(&table.keys));
    }
    explain_members(&mut out, name, places);
    explain_keys(&mut out, places, |key| key.path == name);
    for place in places {
        let is_meant = |m: &Mechanism| (m.kind == name && name != "none") || whole_name(m) == name;
        for kind in place.kinds.iter().filter(|k| is_meant(&k.mechanism)) {
            explain_kind(&mut out, place, kind);
        }
    }
    explain_cdf(&mut out, name);
    explain_property(&mut out, places, name);
    let mut followed: Vec<&String> = Vec::new();
    for other in named(name) {
        let place =
            if other.place.is_empty() { String::new() } else { format!(" ({})", other.place) };
        let _ = writeln!(out, "{name}{place}: {}\n", other.advice);
        if !other.see.is_empty() && other.see != name && !followed.contains(&&other.see) {
            followed.push(&other.see);
        }
    }
    followed.iter().for_each(|see| out.push_str(&explain_name(see, places)));
    out
}

/// A table that has no keys of its own but places ("switch"), or a part of one
/// ("topology.host-link").
fn explain_members(out: &mut String, name: &str, places: &[PlaceInfo]) {
    let within = |path: &str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    let members: Vec<&PlaceInfo> = places.iter().filter(|p| within(p.place.path)).collect();
    if !members.is_empty() && !places.iter().any(|p| p.place.path == name) {
        let _ = writeln!(out, "[{name}]: places where a kind is chosen");
        for member in members {
            let _ = writeln!(out, "  {:<24} {}", member.place.path, member.place.question);
        }
        out.push('\n');
    }
    let group = name.split_once('.').filter(|(_, group)| GROUPS.contains(group));
    if group.is_some() {
        explain_keys(out, places, |key| within(&key.path));
    }
}

fn names(keys: &[KeyInfo]) -> String {
    if keys.is_empty() {
        return "none".into();
    }
    keys.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn explain_place(out: &mut String, info: &PlaceInfo) {
    let _ = writeln!(out, "{}: {}", info.place.path, info.place.question);
    for kind in &info.kinds {
        let default = if kind.mechanism.kind == info.place.default { " (default)" } else { "" };
        let _ = writeln!(
            out,
            "  {:<16} {}{default}",
            kind.mechanism.kind, kind.mechanism.about.summary
        );
    }
    out.push('\n');
}

fn explain_kind(out: &mut String, place: &PlaceInfo, kind: &KindInfo) {
    let about = kind.mechanism.about;
    let _ = writeln!(
        out,
        "{} = {{ kind = \"{}\" }}: {}",
        place.place.path, kind.mechanism.kind, about.summary
    );
    if !about.source.is_empty() {
        let _ = writeln!(out, "  source:   {}", about.source);
    }
    for (what, list) in dependences(about).iter().filter(|(_, list)| !list.is_empty()) {
        let _ = writeln!(out, "  {:<9} {}", format!("{what}:"), list.join(", "));
    }
    for key in &kind.keys {
        let _ = writeln!(out, "  {} = {}\n      {}", key.name, key.default, key.meaning().0);
    }
    out.push('\n');
}

/// All keys that satisfy `is`, those of several kinds once.
fn explain_keys(out: &mut String, places: &[PlaceInfo], is: impl Fn(&KeyInfo) -> bool) {
    for table in tables() {
        table.keys.iter().filter(|k| is(k)).for_each(|k| explain_key(out, k, &[]));
    }
    for place in places {
        let mut groups: Vec<(&KeyInfo, Vec<&str>)> = Vec::new();
        for kind in &place.kinds {
            for key in kind.keys.iter().filter(|k| is(k)) {
                let same = |(k, _): &&mut (&KeyInfo, Vec<&str>)| {
                    k.path == key.path && k.default == key.default && k.key.text() == key.key.text()
                };
                match groups.iter_mut().find(same) {
                    Some((_, kinds)) => kinds.push(kind.mechanism.kind),
                    None => groups.push((key, vec![kind.mechanism.kind])),
                }
            }
        }
        groups.iter().for_each(|(key, kinds)| explain_key(out, key, kinds));
    }
}

fn explain_key(out: &mut String, info: &KeyInfo, kinds: &[&str]) {
    let (meaning, source) = info.meaning();
    let off = if info.key.optional { ", or \"off\"" } else { "" };
    let _ = writeln!(out, "{}: {meaning}", info.path);
    let _ = writeln!(out, "  form:     {}{off}", key_text(&info.key));
    let _ = writeln!(out, "  default:  {}", info.default);
    if let Some(source) = source {
        let _ = writeln!(out, "  source:   {source}");
    }
    if !kinds.is_empty() {
        let _ = writeln!(out, "  of kind:  {}", kinds.join(", "));
    }
    out.push('\n');
}

fn explain_cdf(out: &mut String, name: &str) {
    let Some(builtin) = BUILTIN.iter().find(|b| b.name == name) else { return };
    let Some(cdf) = Cdf::builtin(name) else { return };
    let _ = writeln!(
        out,
        "sizes = \"{name}\": a distribution of flow sizes\n  source:   {}",
        builtin.source
    );
    let _ =
        writeln!(out, "  mean:     {:.0} bytes\n  form:     {}", cdf.mean(), cdf.shape().name());
    let points: Vec<String> = cdf.points().iter().map(|(x, p)| format!("{x}:{p:.4}")).collect();
    let _ = writeln!(out, "  points:   {}\n", points.join(" "));
}

fn explain_property(out: &mut String, places: &[PlaceInfo], name: &str) {
    let Some(property) = PROPERTIES.iter().find(|p| p.name() == name) else { return };
    let all =
        || places.iter().flat_map(|p| p.kinds.iter().map(move |k| (p.place.path, k.mechanism)));
    let with = |list: &dyn Fn(&millpond_core::registry::About) -> &'static [PathProperty]| {
        let found = all().filter(|(_, m)| list(m.about).contains(property));
        let found: Vec<String> = found.map(|(path, m)| format!("{path} \"{}\"", m.kind)).collect();
        if found.is_empty() { "nothing built yet".into() } else { found.join(", ") }
    };
    let _ = writeln!(
        out,
        "{name}: a property of the path; where it is broken, {}",
        property.consequence()
    );
    let _ = writeln!(out, "  needed by:   {}", with(&|a| a.needs));
    let _ = writeln!(out, "  broken by:   {}", with(&|a| a.breaks));
    let _ = writeln!(out, "  restored by: {}\n", with(&|a| a.restores));
}

/// "there is no …", with what is near to how the catalogue would call it.
fn unknown(name: &str, called: &str, places: &[PlaceInfo]) -> String {
    let mut known: Vec<String> =
        tables().into_iter().flat_map(|t| t.keys).flat_map(|k| [k.path, k.name]).collect();
    for place in places {
        known.push(place.place.path.into());
        for kind in &place.kinds {
            known.extend([kind.mechanism.kind.into(), whole_name(&kind.mechanism)]);
            known.extend(kind.keys.iter().flat_map(|k| [k.path.clone(), k.name.clone()]));
        }
    }
    known.extend(BUILTIN.iter().map(|b| b.name.to_string()));
    known.extend(PROPERTIES.iter().map(|p| p.name().to_string()));
    known.extend(NAMES.iter().flat_map(|n| n.names.clone()));
    known.extend(numbers::names().map(str::to_string));
    known.sort();
    known.dedup();
    let near_to = |called: &str| {
        let mut near = Vec::new();
        while near.len() < 3 {
            let left = known.iter().map(String::as_str).filter(|k| !near.contains(k));
            match nearest(called, left) {
                Some(found) => near.push(found),
                None => break,
            }
        }
        near
    };
    // A key in the wrong table is known by its last word.
    let last = called.rsplit('.').next().unwrap_or(called);
    let near = Some(near_to(called)).filter(|near| !near.is_empty());
    let near = near.unwrap_or_else(|| near_to(last));
    match near.is_empty() {
        true => format!("there is nothing called {name:?}; `millpond list` shows what there is"),
        false => format!("there is nothing called {name:?}; did you mean {}?", near.join(", ")),
    }
}

/// All places with their kinds, the traffic, the topologies and the distributions.
pub fn list() -> String {
    let mut out = String::new();
    for place in places() {
        explain_place(&mut out, &place);
    }
    out.push_str("sizes: built-in distributions of flow sizes\n");
    for b in BUILTIN.iter() {
        let mean = Cdf::builtin(b.name).map_or(0.0, |c| c.mean());
        let _ = writeln!(out, "  {:<22} mean {mean:>10.0} B   {}", b.name, b.source);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::error::Report;
    use crate::tree::{Datum, Node, Table, parse};
    use millpond_core::numbers::{metrics, network};
    use std::path::Path;

    fn has(name: &str, what: &[&str]) {
        let text = explain(name).unwrap();
        what.iter().for_each(|w| assert!(text.contains(w), "{name}: {w} not in\n{text}"));
    }

    #[test]
    fn a_key_in_the_wrong_table_is_found_by_its_last_word() {
        let error = explain("rdma.recovery.dupack-threshold").unwrap_err();
        assert!(error.contains("did you mean") && error.contains("dupack-threshold"), "{error}");
        assert!(explain("nothing.of.the-kind-at-all").unwrap_err().contains("millpond list"));
    }

    #[test]
    fn keys_kinds_places_and_distributions() {
        has("transport.min-rto", &["\"10ms\"", "RFC 6298", "a time such as"]);
        has("min-rto", &["transport.min-rto"]);
        has("dctcp", &["RFC 8257", "needs:", "fifo-per-flow", "dctcp-g = 0.0625"]);
        has("switch.marking", &["ecn", "none", "(default)"]);
        has("switch.pause", &["pfc", "bfc"]);
        has("edge.virtual-switch", &["backdraft", "credits", "picnic"]);
        has(
            "red",
            &["switch.marking = { kind = \"red\" }: ", "switch.admission = { kind = \"red\" }: "],
        );
        has("host.nic.marking.red", &["switch.marking = { kind = \"red\" }: "]);
        for (name, other) in [
            ("switch.admission.red", "switch.marking = "),
            ("switch.marking.red", "switch.admission = "),
        ] {
            let (text, place) = (explain(name).unwrap(), name.strip_suffix(".red").unwrap());
            assert!(
                text.starts_with(&format!("{place} = {{ kind = \"red\" }}: "))
                    && !text.contains(other),
                "{text}"
            );
        }
        assert!(explain("switch.admision.red").unwrap_err().contains("switch.admission.red"));
        has("switch.marking.threshold-packets", &["65", "of kind:  ecn"]);
        has(
            "topology.host-link.rate",
            &["10Gbps", "leaf-spine, fat-tree, single-switch, dumbbell"],
        );
        has("web-search", &["mean:     17"]);
        has("fifo-per-flow", &["switch.path \"spray\"", "transport \"dctcp\""]);
        has("[host]", &["mtu", "mss"]);
        has("capture.queues", &["capture.queues.every", "leaf0->spine1"]);
        has("queues", &["capture.queues.ports", "sp-pifo"]);
        has("host-link", &["topology.host-link.rate"]);
        has("bfc", &["NSDI 2022", "hop-rtt"]);
        has("transport.kind", &["transport: how much", "dctcp"]);
        has("traffic.background.load", &["traffic.load: ", "of kind:  poisson"]);
        has("traffic.\"my incast\".degree", &["traffic.degree: "]);
        has("traffic.bulk.transport.cubic-ecn", &["transport.cubic-ecn: "]);
        has("limit.batch.rate", &["limit.rate: "]);
        has("failure.0.at", &["failure.at: "]);
        has("switch.buffer.size.spine", &["switch.buffer.size: ", "table by tier"]);
        has("host.nic.marking.per", &["switch.marking.per: ", "HPCC"]);
        has("topology.host-link", &["topology.host-link.rate: ", "topology.host-link.delay: "]);
        has("switch", &["switch.path", "switch.buffer"]);
        has("edge", &["edge.load-balancing"]);
    }

    #[test]
    fn names_of_the_field_and_slips() {
        has(
            "flowlet",
            &["flowlet (switch.path): ", "edge.load-balancing = { kind = \"flowlet\" }: "],
        );
        has("DRILL(d,m)", &["memory = m", "switch.path = { kind = \"drill\" }: "]);
        has("dcqcn", &["transport", "dcqcn-alpha-timer"]);
        has("Min_RTO", &["transport.min-rto"]);
        assert!(explain("min-rtto").unwrap_err().contains("min-rto"));
        for (slip, meant) in [
            ("transport.min-rtt", "transport.min-rto"),
            ("host.mtuu", "host.mtu"),
            ("topology.host-link.rat", "topology.host-link.rate"),
            ("switch.marking.treshold-packets", "switch.marking.threshold-packets"),
            ("limit.batch.rat", "limit.rate"),
        ] {
            let told = explain(slip).unwrap_err();
            assert!(told.contains(slip) && told.contains(meant), "{told}");
        }
        has("sack", &["transport.sack: ", "of queue pairs it is IRN"]);
        has("rack", &["RFC 8985", "topology = { kind = \"single-switch\" }: "]);
        has("cwnd", &["cwnd_bytes", "capture.connections.every: "]);
        has("edt", &["limit.form: "]);
        has("QCT", &["queries.parquet", "traffic = { kind = \"incast\" }: "]);
        has("slowdown", &["flows.parquet", "size-bins: "]);
        has("p99", &["summary.json"]);
        has("noise", &["docs/guides/seeds.md", "95 %"]);
        has("seeds", &["docs/guides/seeds.md", "--seeds 6"]);
        for (name, nearest) in
            [("hull", "dctcp"), ("bolt", "hpcc"), ("sird", "homa"), ("dcPIM", "homa")]
        {
            has(name, &["not built", nearest]);
        }
        has("aeolus", &["not built", "color-aware"]);
        has("vlb", &["switch.path = { kind = \"ecmp\" }: ", "spray"]);
        has("juggler", &["not built", "presto-gro"]);
        assert!(explain("qqqqqq").unwrap_err().contains("list"));
        assert!(explain("").is_err());
    }

    #[test]
    fn results_lead_to_their_page() {
        for (name, page) in [
            ("fct_us.mice.p99", "docs/results.md"),
            ("web.fct.p95", "docs/results.md"),
            ("bursts.qct.mean", "docs/results.md"),
            ("packets.dropped", "docs/results-counters.md"),
            ("mechanisms.pfc.paused_us", "docs/results-counters.md"),
            ("fct_us.all.at_least.p99", "docs/results.md"),
            ("at_least", "docs/concepts/censoring.md"),
            ("difference_low", "docs/guides/seeds.md"),
        ] {
            has(name, &[page]);
        }
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for name in numbers::names() {
            let text = numbers::explain(name).unwrap();
            let page = text.rsplit_once('(').unwrap().1.trim_end().trim_end_matches(')');
            assert!(pages.join(page).exists(), "{name}: {page}");
        }
        for metric in metrics() {
            for stat in metric.statistics {
                has(&format!("web.{}.{stat}", metric.name), &["docs/"]);
            }
        }
        assert!(network().all(|number| explain(number.name).is_ok()));
        has("collective.fct.p50", &["flow completion time"]);
        assert!(explain("fct_uss").unwrap_err().contains("fct_us"));
        assert!(explain("web.fct").is_err() && explain("mice.fctt.p99").is_err());
    }

    /// A name that a scenario can hold is a name that is explained.
    fn explains(prefix: &str, table: &Table) {
        for entry in &table.entries {
            let path = if prefix.is_empty() {
                entry.key.clone()
            } else {
                format!("{prefix}.{}", entry.key)
            };
            assert!(explain(&path).is_ok(), "{path}: {:?}", explain(&path));
            match &entry.node.datum {
                Datum::Table(inner) => explains(&path, inner),
                Datum::Array(items) => {
                    for table in items.iter().filter_map(Node::as_table) {
                        let name =
                            table.text("name").map_or("0".into(), |name| format!("{name:?}"));
                        explains(&format!("{path}.{name}"), table);
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_path_of_a_scenario_is_explained() {
        for text in [
            "[host.nic]\nbuffer = { kind = \"per-port\" }\nmarking = { kind = \"ecn\" \
             }\n[host]\nreceive-cpu = {}\n[[failure]]\nlink = [\"leaf0\", \"spine0\"]\nat = \
             \"1us\"\n[[limit]]\nname = \"a\"\nrate = \"1Gbps\"\nhosts = 0\n[[traffic]]\nname = \
             \"b c\"\nkind = \"poisson\"\ntransport = { kind = \"swift\" }\n[[traffic]]\nkind = \
             \"incast\"\n",
            "[topology]\nkind = \"fat-tree\"\n[switch]\nbuffer = { size = { core = \"1MB\" } \
             }\n[[traffic]]\nkind = \"rpc\"\nclients = 2\nservers = 2\n[[traffic]]\nkind = \
             \"poisson\"\nload = 0.1\nsizes = { points = [[1, 0], [2, 1]] }\n",
        ] {
            let scenario = Scenario::parse("s", &format!("duration = \"1ms\"\n{text}")).unwrap();
            let resolved = scenario.plan(None, &[], None).unwrap().resolved;
            explains("", &parse(0, &resolved, &mut Report::default()));
        }
    }

    #[test]
    fn the_list_has_every_kind() {
        let text = list();
        for what in [
            "leaf-spine",
            "dctcp",
            "spray",
            "incast",
            "cache-follower-intra",
            "traffic:",
            "topology:",
        ] {
            assert!(text.contains(what), "{what}");
        }
    }
}
