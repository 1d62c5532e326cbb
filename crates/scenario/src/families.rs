//! Conflicts with a transport of a family that is not TCP, and why; and the keys of `[transport]`
//! that such a family does not read.
//!
//! A connection's importance, rank, order and limits go by the offsets of one byte stream, and so
//! does an edge that spreads it. A subflow has offsets of its own. A queue pair has one stream, but
//! its segments are packets that a NIC paces, and no kernel's. A message of Homa's is sent in any
//! order by a host that decides among all its messages, and a packet of Ultra Ethernet has a number
//! and no offset.

use crate::error::{Problem, Report};
use crate::settings::Settings;
use crate::source::Span;
use millpond_core::congestion::{Family, TransportKind};
use millpond_core::registry::Choice;

/// A place that may be taken, what is chosen there, and why that does not go with a family.
type Refusal = (&'static str, &'static str, &'static str);

/// Refuses what a family of the scenario's transports has no place for.
pub(crate) fn check(s: &Settings, report: &mut Report) {
    let first = |is: fn(&Family) -> bool| {
        s.kinds().find(|kind| is(&kind.demands().family)).map(TransportKind::kind)
    };
    if let Some(kind) = first(|family| matches!(family, Family::Mptcp { .. })) {
        refuse(s, kind, subflows(s), report);
    }
    if let Some(kind) = first(|family| *family == Family::Rdma) {
        refuse(s, kind, queue_pairs(s), report);
    }
    if let Some(kind) = first(|family| *family == Family::Homa) {
        refuse(s, kind, messages(s), report);
    }
    if let Some(kind) = first(|family| *family == Family::Uet) {
        refuse(s, kind, packets(s), report);
    }
    if let Some(kind) = first(|family| !family.is_tcp()) {
        let is_alone = s.kinds().all(|kind| !kind.demands().family.is_tcp());
        check_keys(s, kind, is_alone, report);
    }
}

/// Refuses what is chosen of these, and limits.
fn refuse(s: &Settings, kind: &str, chosen: Vec<Refusal>, report: &mut Report) {
    let mut refuse = |at: Span, what: String, why: &str| {
        let text = format!("{what} and transport \"{kind}\" cannot be together: {why}");
        report.add(at, Problem::Impossible(text));
    };
    for (path, chosen, why) in chosen.into_iter().filter(|(_, chosen, _)| *chosen != "none") {
        refuse(s.place(path), format!("{path} \"{chosen}\""), why);
    }
    let segments = "it decides on the segments of one TCP";
    if !s.limits.is_empty() {
        refuse(s.place("limit"), "[[limit]]".into(), segments);
    }
    if s.edge.virtual_switch.admits() {
        let what = format!("edge.virtual-switch \"{}\"", s.edge.virtual_switch.kind());
        refuse(s.place("edge.virtual-switch"), what, segments);
    }
}

fn subflows(s: &Settings) -> Vec<Refusal> {
    let stream = "it goes by the offsets of one TCP, and each subflow has its own";
    vec![
        ("transport.importance", s.transport_choices.importance.kind(), stream),
        ("transport.rank", s.transport_choices.rank.kind(), stream),
        ("transport.ordering", s.transport_choices.ordering.kind(), stream),
        (
            "edge.load-balancing",
            s.edge.load_balancing.kind(),
            "each subflow has a path of its own, and its packets must stay on it",
        ),
    ]
}

fn queue_pairs(s: &Settings) -> Vec<Refusal> {
    vec![(
        "host.receive-offload",
        s.host_choices.receive_offload.kind(),
        "a NIC receives for its queue pairs, and merges nothing",
    )]
}

fn messages(s: &Settings) -> Vec<Refusal> {
    let message = "it goes by the offsets of one byte stream, and there are messages alone";
    vec![
        ("transport.importance", s.transport_choices.importance.kind(), message),
        ("transport.rank", s.transport_choices.rank.kind(), message),
        (
            "transport.ordering",
            s.transport_choices.ordering.kind(),
            "a message is taken in any order",
        ),
        (
            "edge.load-balancing",
            s.edge.load_balancing.kind(),
            "a message is taken in any order, so switches may spray its packets (switch.path \
             \"spray\")",
        ),
        (
            "host.receive-offload",
            s.host_choices.receive_offload.kind(),
            "it merges bytes of a stream",
        ),
    ]
}

/// Of Ultra Ethernet: as of messages, and no virtual switch knows its answers.
fn packets(s: &Settings) -> Vec<Refusal> {
    let mut all = messages(s);
    let sprays = "its packets choose their paths by themselves (uet-path-choice)";
    for refusal in all.iter_mut().filter(|(path, ..)| *path == "edge.load-balancing") {
        refusal.2 = sprays;
    }
    let knows = "a virtual switch holds flows by the answers of streams";
    all.push(("edge.virtual-switch", s.edge.virtual_switch.kind(), knows));
    all
}

/// Where the keys are that a kind of transport reads.
fn own_keys(kind: &str) -> &'static str {
    match kind {
        "homa" => "what Homa reads begins with homa-",
        "uet" => "what Ultra Ethernet reads begins with uet-",
        _ => "what queue pairs read is in [rdma]",
    }
}

/// Keys of TCP that are written where nothing runs TCP. Those that a layer below the kind's writes,
/// as a scenario whose variants have other transports, are for the others.
fn check_keys(s: &Settings, kind: &str, is_alone: bool, report: &mut Report) {
    if !is_alone {
        return;
    }
    for (key, at) in &s.tcp_keys {
        let text = format!(
            "`{key}` has no effect: it is TCP's, and transport \"{kind}\" does not read it"
        );
        report.help(*at, Problem::Impossible(text), own_keys(kind));
    }
}
