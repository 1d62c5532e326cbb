//! `[[limit]]`: its kinds and their keys.

use crate::settings::hosts::HostSet;
pub use millpond_core::limit::IngressMode;
use millpond_core::limit::{Direction, LimitParams};
use millpond_core::registry::{About, Choice, PathProperty, Signal};
use millpond_core::{Bytes, Rate, params, registry};

params! {
    /// The keys that every limit has, beside its kind.
    pub struct LimitCommon {
        /// Its name, in the results and where other limits name it as a scope. Off means
        /// the name of its kind.
        pub name: Option<String> = None,
        /// The hosts that have it, each with a virtual queue of its own: "all", a number, or ranges
        /// such as "0..7" (both ends count). Off: none by itself, only where other limits name it
        /// as a scope.
        pub hosts: Option<HostSet> = None,
        /// The traffics (or classes of a list of flows) that belong to it; empty means all that its
        /// hosts send or receive.
        pub traffic: Vec<String> = Vec::new(),
        /// Which packets it sees: those that leave, those that arrive, or both, each with a virtual
        /// queue of its own.
        pub direction: Direction = Direction::Egress,
        /// On arriving packets: enforce marks and drops, mark-only never drops.
        pub ingress_mode: IngressMode = IngressMode::Enforce,
        /// Further limits that its packets are charged to; of all of them the most congested
        /// decides.
        pub scopes: Vec<String> = Vec::new(),
    }
}

params! {
    /// HTB with one class and a queue behind it.
    pub struct HtbParams {
        /// The class's rate and ceiling.
        pub rate: Rate = Rate(1_000_000_000),
        /// Bytes that may be sent at once after an idle time (burst and cburst). Off: 1600 bytes
        /// and what the rate carries in a tick of the clock. Source: tc's own calculation, with a
        /// tick of 1 ns.
        pub burst: Option<Bytes> = None,
        /// Segments that may wait in the class; what comes then is refused as by any full qdisc.
        /// Source: pfifo with Linux's transmit queue length of 1000.
        pub queue: u32 = 1000,
        /// Bytes below IP that each packet is charged. Source: Linux charges the Ethernet header of
        /// each packet that a super-segment is cut into.
        pub framing: Bytes = Bytes(14),
    }
}

const NRM: About = About {
    summary: "a virtual queue turns how far its traffic is behind into marks, window reductions \
              and drops; nothing waits",
    source: "NRM, Linux Plumbers Conference 2018; Linux samples/bpf/hbm*",
    needs: &[PathProperty::LossIsSignal],
    breaks: &[PathProperty::ImportantSurvives, PathProperty::NoLossAfterAdmission],
    provides: &[Signal::Marks],
    alone: &[Signal::Marks],
    ..About::PLAIN
};
/// An NRM limit on what leaves: a drop is a local failure to send, and nothing that was accepted is
/// lost.
pub(crate) const EGRESS: About = About { breaks: &[PathProperty::ImportantSurvives], ..NRM };
/// An NRM limit on what arrives.
pub(crate) const INGRESS: About =
    About { breaks: &[PathProperty::ImportantSurvives, PathProperty::NoLossAfterAdmission], ..NRM };
/// The same where it never drops.
pub(crate) const MARKS: About = About { breaks: &[], ..NRM };
const HTB: About = About {
    summary: "a token bucket with a queue before the NIC: segments wait for their rate",
    source: "Linux tc-htb(8), one class",
    ..About::PLAIN
};

registry! {
    /// Which limiter, with its parameters.
    place: "limit", question: "may this segment leave (or this packet arrive) now?", default: Nrm,
    params: LimitKind;
    "nrm" => Nrm { LimitParams; NRM },
    "htb" => Htb { HtbParams; HTB },
}

/// One `[[limit]]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitSettings {
    /// The keys that all kinds have.
    pub common: LimitCommon,
    /// The kind with its keys.
    pub kind: LimitKind,
}

impl LimitSettings {
    /// Its own name, or its kind's.
    pub(crate) fn name(&self) -> String {
        self.common.name.clone().unwrap_or_else(|| self.kind.kind().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ingress_takes_away_and_egress_does_not() {
        let breaks = |about: &About| about.breaks.contains(&PathProperty::NoLossAfterAdmission);
        assert!(breaks(&INGRESS) && !breaks(&EGRESS) && !breaks(&MARKS));
    }
}
