//! The mechanisms that `millpond new` offers, where they fit, and what a variant sets for them.

use super::answers::{Family, TRANSPORTS, Topology, Transport, unknown};

/// A mechanism, which becomes a variant.
#[derive(Debug)]
pub struct Mechanism {
    /// Of the variant, and of the answer.
    pub name: &'static str,
    /// Its effect, in a line.
    pub about: &'static str,
    /// The families of transports that it fits.
    families: &'static [Family],
    /// The networks that it fits.
    network: Network,
    /// The keys that the variant sets.
    pub set: &'static [(&'static str, &'static str)],
    /// Its demands on the scenario itself.
    pub needs: Needs,
}

/// Where a mechanism has something to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Any,
    OneNic,
    Paths,
    LeafSpine,
}

/// The part that the plain network must have for a comparison with the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A bandwidth limit by a token bucket.
    Limit,
    /// Virtual switches that drop, and an application slower than its link.
    Application,
    /// Receive offload as the kernel has it.
    Offload,
}

use Family::{Homa, Rdma, Tcp, Uet};

const fn of(
    name: &'static str,
    about: &'static str,
    families: &'static [Family],
    network: Network,
    set: &'static [(&'static str, &'static str)],
) -> Mechanism {
    Mechanism { name, about, families, network, set, needs: Needs::Nothing }
}

/// Restores the order of packets below the transport.
const ORDERED: (&str, &str) = ("transport.ordering.kind", "\"timeout\"");

/// The threshold of a pause as a share of the free memory: its default.
const ALPHA: &str = "0.0625";

/// All, in the order in which they are offered.
pub const ALL: &[Mechanism] = &[
    of(
        "tlt",
        "marks one packet a flow as important; switches drop the others first",
        &[Tcp, Rdma],
        Network::Any,
        &[("transport.importance.kind", "\"tlt\""), ("switch.admission.kind", "\"color-aware\"")],
    ),
    Mechanism {
        needs: Needs::Offload,
        ..of(
            "presto",
            "sends flowcells of 64 KB over all paths in turn",
            &[Tcp],
            Network::Paths,
            &[
                ("switch.path.kind", "\"labels\""),
                ("edge.load-balancing.kind", "\"presto\""),
                ("host.receive-offload.kind", "\"presto-gro\""),
            ],
        )
    },
    of(
        "canary",
        "forwards, deflects or drops by the packet's rank, before it enters a queue",
        &[Tcp],
        Network::Paths,
        &[
            ("switch.path.kind", "\"power-of-n\""),
            ("switch.admission", "{ kind = \"aifo\", burst-headroom = 0.9, sample-period = 20 }"),
            ("switch.deflection.kind", "\"canary\""),
            ("transport.rank.kind", "\"remaining-bytes\""),
            ORDERED,
        ],
    ),
    Mechanism {
        needs: Needs::Limit,
        ..of(
            "nrm",
            "holds hosts to a rate by marks and drops; no packet waits",
            &[Tcp],
            Network::OneNic,
            &[("limit.tenant.kind", "\"nrm\"")],
        )
    },
    Mechanism {
        needs: Needs::Application,
        ..of(
            "backdraft",
            "pauses the flows of a slow application past the fabric",
            &[Tcp],
            Network::OneNic,
            &[
                ("edge.virtual-switch.kind", "\"backdraft\""),
                ("switch.queue.kind", "\"strict-priority\""),
            ],
        )
    },
    of(
        "letflow",
        "a flow that has paused takes a port drawn at random",
        &[Tcp],
        Network::Paths,
        &[("switch.path.kind", "\"letflow\""), ORDERED],
    ),
    of(
        "conga",
        "a flowlet takes the uplink with the least congested way",
        &[Tcp],
        Network::LeafSpine,
        &[("switch.path.kind", "\"conga\""), ORDERED],
    ),
    of(
        "spray",
        "each packet takes its own path",
        &[Tcp, Rdma],
        Network::Paths,
        &[("switch.path.kind", "\"spray\""), ORDERED],
    ),
    of(
        "dibs",
        "a packet that finds its queue full goes to a random port with room",
        &[Tcp],
        Network::Paths,
        &[("switch.deflection.kind", "\"dibs\""), ("transport.dupack-threshold", "\"off\"")],
    ),
    of(
        "drill",
        "each packet takes the shortest of a few queues",
        &[Homa],
        Network::Paths,
        &[("switch.path.kind", "\"drill\"")],
    ),
    of(
        "pfc",
        "a switch pauses the neighbour that fills its memory",
        &[Rdma, Homa],
        Network::Any,
        &[("switch.pause.kind", "\"pfc\""), ("switch.pause.alpha", ALPHA)],
    ),
    of(
        "bfc",
        "a switch pauses single flows at its neighbours",
        &[Rdma],
        Network::Any,
        &[("switch.queue.kind", "\"dynamic-queues\""), ("switch.pause.kind", "\"bfc\"")],
    ),
    of(
        "irn",
        "receivers keep packets out of order; senders send what is missing alone",
        &[Rdma],
        Network::Any,
        &[("rdma.recovery.kind", "\"selective\"")],
    ),
    of(
        "trim",
        "a full queue cuts the payload off and forwards the headers",
        &[Uet],
        Network::Any,
        &[("switch.overflow.kind", "\"trim\"")],
    ),
];

impl Mechanism {
    /// Why it does not fit, if it does not.
    pub fn refuses(&self, topology: &Topology, transport: &Transport) -> Option<String> {
        if !self.families.contains(&transport.family) {
            let fits = TRANSPORTS.iter().filter(|one| self.families.contains(&one.family));
            let kinds: Vec<&str> = fits.map(|one| one.kind).collect();
            let kinds = kinds.join(", ");
            return Some(format!("needs one of the transports {kinds} (got {})", transport.kind));
        }
        let is_leaf_spine = topology.kind() == "leaf-spine";
        let has_several_nics = topology.kind() == "rail-optimised";
        match self.network {
            Network::OneNic if has_several_nics => {
                Some(format!("needs hosts with one NIC (got {})", topology.kind()))
            }
            Network::Paths if !topology.has_paths() => Some(format!(
                "needs several paths: leaf-spine or fat-tree (got {})",
                topology.kind()
            )),
            Network::LeafSpine if !is_leaf_spine => {
                Some(format!("needs a leaf-spine (got {})", topology.kind()))
            }
            _ => None,
        }
    }
}

/// Those that fit.
pub fn fitting(topology: &Topology, transport: &Transport) -> Vec<&'static Mechanism> {
    ALL.iter().filter(|mechanism| mechanism.refuses(topology, transport).is_none()).collect()
}

/// Names of mechanisms, each once; `none` alone means none.
pub fn chosen(
    text: &str,
    topology: &Topology,
    transport: &Transport,
) -> Result<Vec<&'static Mechanism>, String> {
    let fitting = fitting(topology, transport);
    let mut chosen: Vec<&'static Mechanism> = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "none") {
        let known = ALL.iter().find(|mechanism| mechanism.name == name);
        let Some(known) = known else {
            return Err(unknown("mechanism", name, fitting.iter().map(|one| one.name)));
        };
        if let Some(why) = known.refuses(topology, transport) {
            let names: Vec<&str> = fitting.iter().map(|one| one.name).chain(["none"]).collect();
            return Err(format!("mechanism `{name}` {why}; here: {}", names.join(", ")));
        }
        if !chosen.iter().any(|other| other.name == known.name) {
            chosen.push(known);
        }
    }
    Ok(chosen)
}
