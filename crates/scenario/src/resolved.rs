//! The resolved scenario: every key with its value, as TOML that gives the same plan and resolves
//! to the same text.

use crate::cdf::SizeSpec;
use crate::choices::{Choices, Visit, key_of};
use crate::keys::{RIVALS, grouped};
use crate::settings::flows::FlowTable;
use crate::settings::graph::{EdgeList, Graph};
use crate::settings::limit::LimitSettings;
use crate::settings::topology::{FileParams, TopologyParams};
use crate::settings::traffic::{TrafficParams, TrafficSettings};
use crate::settings::{NicChoice, Settings};
use crate::toml_text::{quote, value_text};
use millpond_core::params::Params;
use millpond_core::registry::Choice;
use std::fmt::Write;

/// Keys and values, with grouped keys as inline tables where their first member stands.
fn pairs(params: &dyn Params) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for (i, key) in params.keys().iter().enumerate() {
        let name = key.name();
        let text = value_text(&params.get(i));
        match grouped(&name) {
            (None, _) => out.push((name, text)),
            (Some(group), leaf) => {
                let pair = format!("{leaf} = {text}");
                match groups.iter_mut().find(|(g, _)| *g == group) {
                    Some((_, members)) => members.push(pair),
                    None => {
                        groups.push((group, vec![pair]));
                        out.push((group.to_string(), String::new()));
                    }
                }
            }
        }
    }
    for (group, members) in groups {
        if let Some(entry) = out.iter_mut().find(|(name, _)| name == group) {
            entry.1 = format!("{{ {} }}", members.join(", "));
        }
    }
    out
}

/// A choice's keys without those that another key of it makes ineffective.
fn choice_pairs<C: Choice>(choice: &C) -> Vec<(String, String)> {
    let mut list = pairs(choice.params());
    for (place, kind, key, other) in RIVALS {
        let is_set = list.iter().any(|(k, v)| k == other && v != "\"off\"" && v != "[]");
        if *place == C::place().path && *kind == choice.kind() && is_set {
            list.retain(|(k, _)| k != key);
        }
    }
    list
}

fn inline<C: Choice>(choice: &C) -> String {
    let mut text = format!("{{ kind = {}", quote(choice.kind()));
    for (key, value) in choice_pairs(choice) {
        let _ = write!(text, ", {key} = {value}");
    }
    text + " }"
}

impl Visit for String {
    fn choice<C: Choice>(&mut self, choice: &C) {
        let _ = writeln!(self, "{} = {}", key_of(C::place().path), inline(choice));
    }
}

fn lines(out: &mut String, pairs: &[(String, String)]) {
    for (key, value) in pairs {
        let _ = writeln!(out, "{key} = {value}");
    }
}

fn nic<C: Choice>(choice: &NicChoice<C>, without: &str) -> String {
    match choice {
        NicChoice::Without => quote(without),
        NicChoice::Switch => quote("switch"),
        NicChoice::Own(own) => inline(own),
    }
}

pub(crate) fn write(s: &Settings) -> String {
    let mut out = String::new();
    lines(&mut out, &pairs(&s.run));
    let _ = writeln!(out, "\n[topology]\nkind = {}", quote(s.topology.kind()));
    let mut network = pairs(s.topology.params());
    if let TopologyParams::File(FileParams { graph: Graph(Some(list)), .. }) = &s.topology {
        network = vec![("graph".into(), graph(list))];
    }
    lines(&mut out, &network);
    out.push_str("\n[host]\n");
    lines(&mut out, &pairs(&s.host));
    let (buffer, marking) = (nic(&s.nic.buffer, "unlimited"), nic(&s.nic.marking, "none"));
    let mut own: Vec<String> =
        pairs(&s.nic.params).iter().map(|(k, v)| format!("{k} = {v}")).collect();
    // Written only where it differs: hosts with one NIC have nothing to choose.
    if s.chooses_nics() {
        own.push(format!("choice = {}", inline(&s.nic.choices.choice)));
    }
    let _ = writeln!(out, "nic = {{ buffer = {buffer}, marking = {marking}, {} }}", own.join(", "));
    s.host_choices.each(&mut out);
    // Written only where it is: a run without it is the same run as before there was such a table.
    if let Some(cpu) = &s.receive_cpu {
        let costs: Vec<String> = pairs(cpu).iter().map(|(k, v)| format!("{k} = {v}")).collect();
        let _ = writeln!(out, "receive-cpu = {{ {} }}", costs.join(", "));
    }
    out.push_str("\n[switch]\n");
    s.switch.each(&mut out);
    let _ = writeln!(out, "\n[transport]\nkind = {}", quote(s.transport_kind.kind()));
    let mut common = pairs(&s.transport);
    common.retain(|(key, _)| key != "mss");
    if s.runs_tcp() {
        lines(&mut out, &common);
    }
    lines(&mut out, &choice_pairs(&s.transport_kind));
    s.transport_choices.each(&mut out);
    // Written only where it acts: a run without queue pairs is the same whatever it has.
    if s.has_queue_pairs() {
        out.push_str("\n[rdma]\n");
        lines(&mut out, &pairs(&s.rdma));
        s.rdma_choices.each(&mut out);
    }
    out.push_str("\n[edge]\n");
    s.edge.each(&mut out);
    out.push_str("\n[engine]\n");
    lines(&mut out, &pairs(&s.engine));
    out.push_str("\n[capture]\n");
    lines(&mut out, &pairs(&s.capture));
    for f in &s.failures {
        out.push_str("\n[[failure]]\n");
        lines(&mut out, &pairs(f));
    }
    for a in &s.applications {
        out.push_str("\n[[application]]\n");
        lines(&mut out, &pairs(&a.common));
        lines(&mut out, &pairs(&a.costs));
    }
    for p in &s.programs {
        out.push_str("\n[[program]]\n");
        lines(&mut out, &pairs(p));
    }
    for l in &s.limits {
        limit(&mut out, l);
    }
    for t in &s.traffic {
        traffic(&mut out, t);
    }
    out
}

fn graph(list: &EdgeList) -> String {
    let mut out = format!("{{ hosts = {}, ", list.hosts);
    if !list.numbers.is_empty() {
        let _ = write!(out, "numbers = {:?}, ", list.numbers);
    }
    out.push_str("switches = [\n");
    for switch in &list.switches {
        let tier = switch.tier.map(|tier| format!(", tier = {tier}")).unwrap_or_default();
        let _ = writeln!(out, "  {{ name = {}{tier} }},", quote(&switch.name));
    }
    out.push_str("], links = [\n");
    for link in &list.links {
        let (rate, delay) = (quote(&link.rate.to_string()), quote(&link.delay.to_string()));
        let (a, b) = (quote(&link.a), quote(&link.b));
        let name =
            link.name.as_ref().map(|name| format!(", name = {}", quote(name))).unwrap_or_default();
        let _ = writeln!(out, "  {{ a = {a}, b = {b}, rate = {rate}, delay = {delay}{name} }},");
    }
    out + "] }"
}

fn limit(out: &mut String, l: &LimitSettings) {
    out.push_str("\n[[limit]]\n");
    let common = pairs(&l.common);
    let (name, rest) = common.split_at(1);
    lines(out, name);
    let _ = writeln!(out, "kind = {}", quote(l.kind.kind()));
    lines(out, rest);
    lines(out, &choice_pairs(&l.kind));
}

fn traffic(out: &mut String, t: &TrafficSettings) {
    out.push_str("\n[[traffic]]\n");
    let common = pairs(&t.common);
    let (name, rest) = common.split_at(1);
    lines(out, name);
    let _ = writeln!(out, "kind = {}", quote(t.kind.kind()));
    lines(out, rest);
    if let Some(transport) = &t.transport {
        let _ = writeln!(out, "transport = {}", inline(transport));
    }
    let mut own = choice_pairs(&t.kind);
    match &t.kind {
        TrafficParams::Poisson(p) => {
            if let Some(entry) = own.iter_mut().find(|(key, _)| key == "sizes") {
                entry.1 = sizes(&p.sizes);
            }
        }
        TrafficParams::Flows(p) => {
            // One of the two, never both.
            match &p.rows.0 {
                Some(table) => {
                    own.retain(|(key, _)| key != "file");
                    own.iter_mut()
                        .filter(|(key, _)| key == "rows")
                        .for_each(|entry| entry.1 = rows(table));
                }
                None => own.retain(|(key, _)| key != "rows"),
            }
        }
        _ => {}
    }
    lines(out, &own);
}

fn sizes(spec: &SizeSpec) -> String {
    match spec {
        SizeSpec::Builtin(name) => quote(name),
        SizeSpec::Fixed(bytes) => quote(&bytes.to_string()),
        SizeSpec::File { path, shape, digest, .. } => {
            let digest = digest
                .as_ref()
                .map(|digest| format!(", digest = {}", quote(digest)))
                .unwrap_or_default();
            format!("{{ file = {}, interpolation = {}{digest} }}", quote(path), quote(shape.name()))
        }
        SizeSpec::Points(cdf) => {
            let points: Vec<String> =
                cdf.points().iter().map(|(x, p)| format!("[{x:?}, {p:?}]")).collect();
            let shape = quote(cdf.shape().name());
            format!("{{ points = [{}], interpolation = {shape} }}", points.join(", "))
        }
    }
}

fn rows(table: &FlowTable) -> String {
    let mut out = String::from("[\n");
    for (at, row) in table.rows.iter().enumerate() {
        let start = quote(&row.start.to_string());
        let class = row.class.and_then(|c| table.classes.get(c as usize)).map(|class| quote(class));
        if table.waits.is_none() && row.port.is_none() {
            let class = class.map_or(String::new(), |class| format!(", {class}"));
            let _ = writeln!(out, "  [{start}, {}, {}, {}{class}],", row.src, row.dst, row.bytes);
            continue;
        }
        let _ = write!(
            out,
            "  {{ start = {start}, src = {}, dst = {}, bytes = {}",
            row.src, row.dst, row.bytes
        );
        let others = table.waits.iter().flat_map(|waits| &waits.after[at]);
        let after: Vec<String> =
            others.filter_map(|other| table.id(*other as usize)).map(quote).collect();
        let after = (!after.is_empty()).then(|| format!("[{}]", after.join(", ")));
        let (id, port) = (table.id(at).map(quote), row.port.map(|port| port.to_string()));
        for (key, value) in [("class", class), ("id", id), ("after", after), ("port", port)] {
            if let Some(value) = value {
                let _ = write!(out, ", {key} = {value}");
            }
        }
        out.push_str(" },\n");
    }
    out + "]"
}
