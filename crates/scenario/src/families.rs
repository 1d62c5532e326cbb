//! Conflicts with a transport of a family that is not TCP, and why; and the keys of `[transport]`
//! that such a family does not read.
//!
//! A connection's importance, rank, order and limits go by the offsets of one byte stream, and so
//! does an edge that spreads it. A subflow has offsets of its own. A queue pair has one stream, but
//! its segments are packets that a NIC paces, and no kernel's. A message of Homa's is sent in any
//! order by a host that decides among all its messages, and a packet of Ultra Ethernet has a number
//! and no offset.

use crate::choices::Visit;
use crate::error::{Problem, Report};
use crate::settings::Settings;
use millpond_core::congestion::{Family, TransportKind};
use millpond_core::registry::Choice;
use std::collections::BTreeMap;

/// A place, and why what is chosen there does not go with a family.
type Refusal = (&'static str, &'static str);

const STREAM: &str = "it goes by the offsets of one TCP, and each subflow has its own";
const SUBFLOWS: &[Refusal] = &[
    ("transport.importance", STREAM),
    ("transport.rank", STREAM),
    ("transport.ordering", STREAM),
    ("edge.load-balancing", "each subflow has a path of its own, and its packets must stay on it"),
];
const QUEUE_PAIRS: &[Refusal] =
    &[("host.receive-offload", "a NIC receives for its queue pairs, and merges nothing")];
const ORDER: &str = "a message is taken in any order";
const OFFSETS: &str = "it goes by the offsets of one byte stream, and there are messages alone";
const MERGES: &str = "it merges bytes of a stream";
const MESSAGES: &[Refusal] = &[
    ("transport.importance", OFFSETS),
    ("transport.rank", OFFSETS),
    ("transport.ordering", ORDER),
    (
        "edge.load-balancing",
        "a message is taken in any order, so switches may spray its packets (switch.path \
         \"spray\")",
    ),
    ("host.receive-offload", MERGES),
];
/// Of Ultra Ethernet: as of messages, and no virtual switch reads its answers.
const PACKETS: &[Refusal] = &[
    ("transport.importance", OFFSETS),
    ("transport.rank", OFFSETS),
    ("transport.ordering", ORDER),
    ("edge.load-balancing", "its packets choose their paths by themselves (uet-path-choice)"),
    ("host.receive-offload", MERGES),
    ("edge.virtual-switch", "a virtual switch holds flows by the answers of streams"),
];

/// A family that is not plain TCP, and what it has no place for.
fn refusals(family: &Family) -> &'static [Refusal] {
    match family {
        Family::Mptcp { .. } => SUBFLOWS,
        Family::Rdma => QUEUE_PAIRS,
        Family::Homa => MESSAGES,
        Family::Uet => PACKETS,
        _ => &[],
    }
}

/// The kind that is chosen at each place.
struct Chosen(BTreeMap<&'static str, &'static str>);

impl Visit for Chosen {
    fn choice<C: Choice>(&mut self, choice: &C) {
        self.0.insert(C::place().path, choice.kind());
    }
}

/// Refuses what a family of the scenario's transports has no place for.
pub(crate) fn check(s: &Settings, report: &mut Report) {
    let mut chosen = Chosen(BTreeMap::new());
    s.each_choice(&mut chosen);
    for table in [SUBFLOWS, QUEUE_PAIRS, MESSAGES, PACKETS] {
        let has = |kind: &&TransportKind| refusals(&kind.demands().family) == table;
        let first = s.kinds().find(has);
        first.into_iter().for_each(|kind| refuse(s, kind.kind(), table, &chosen, report));
    }
    if let Some(kind) = s.kinds().find(|kind| !kind.demands().family.is_tcp()) {
        let is_alone = s.kinds().all(|kind| !kind.demands().family.is_tcp());
        check_keys(s, kind.kind(), is_alone, report);
    }
}

/// Refuses what is chosen of these, and limits.
fn refuse(s: &Settings, kind: &str, table: &[Refusal], chosen: &Chosen, report: &mut Report) {
    let mut refuse = |path: &str, what: String, why: &str| {
        let text = format!("{what} and transport \"{kind}\" cannot be together: {why}");
        report.impossible(path, text);
    };
    for (path, why) in table {
        if let Some(other) = chosen.0.get(path).filter(|other| **other != "none") {
            refuse(path, format!("{path} \"{other}\""), why);
        }
    }
    let segments = "it decides on the segments of one TCP";
    if !s.limits.is_empty() {
        refuse("limit", "[[limit]]".into(), segments);
    }
    if s.edge.virtual_switch.admits() {
        let what = format!("edge.virtual-switch \"{}\"", s.edge.virtual_switch.kind());
        refuse("edge.virtual-switch", what, segments);
    }
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
