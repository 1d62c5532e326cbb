//! What cannot be together with a transport of several subflows, and why.
//!
//! A connection's importance, rank, order and limits go by the offsets of one byte stream, and so
//! does an edge that spreads it. A subflow has offsets of its own.

use crate::error::{Problem, Report};
use crate::settings::Settings;
use millpond_core::congestion::{Family, TransportKind};
use millpond_core::registry::Choice;

/// Refuses what goes by one stream's offsets, where some traffic runs over several subflows.
pub(crate) fn check(s: &Settings, report: &mut Report) {
    let is_several = |kind: &&TransportKind| matches!(kind.demands().family, Family::Mptcp { .. });
    let mut kinds = s.traffic.iter().map(|t| t.transport.as_ref().unwrap_or(&s.transport_kind));
    let Some(kind) = kinds.find(is_several).map(|kind| kind.kind()) else { return };
    let mut refuse = |path: &str, what: String, why: &str| {
        let text = format!("{what} and transport \"{kind}\" cannot be together: {why}");
        report.add(s.place(path), Problem::Impossible(text));
    };
    let stream = "it goes by the offsets of one TCP, and each subflow has its own";
    let chosen: [(&str, &str, &str); 4] = [
        ("transport.importance", s.transport_choices.importance.kind(), stream),
        ("transport.rank", s.transport_choices.rank.kind(), stream),
        ("transport.ordering", s.transport_choices.ordering.kind(), stream),
        (
            "edge.load-balancing",
            s.edge.load_balancing.kind(),
            "each subflow has a path of its own, and its packets must stay on it",
        ),
    ];
    for (path, chosen, why) in chosen.into_iter().filter(|(_, chosen, _)| *chosen != "none") {
        refuse(path, format!("{path} \"{chosen}\""), why);
    }
    if !s.limits.is_empty() {
        refuse("limit", "[[limit]]".into(), "it decides on the segments of one TCP");
    }
}
