//! The answers that `millpond new` takes: their forms, their limits and the nearest valid names.

use millpond_core::units::{Bytes, Rate};
use millpond_scenario::cdf::BUILTIN;
use millpond_scenario::nearest;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;

/// More hosts than this take longer than seconds.
const HOSTS_MAX: u32 = 1024;
/// Ranks of a collective; further hosts stay idle.
const RANKS_MAX: u32 = 32;
/// Bytes that a run carries, about.
const VOLUME: u64 = 300_000_000;

/// A network and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// All hosts on one switch.
    SingleSwitch { hosts: u32 },
    /// Two tiers.
    LeafSpine { leaves: u32, spines: u32, hosts_per_leaf: u32 },
    /// Three tiers of switches with `k` ports.
    FatTree { k: u32 },
    /// Two switches.
    Dumbbell { hosts_per_side: u32 },
    /// A leaf for each rail; each accelerator is a host.
    Rails { servers: u32, rails: u32 },
}

/// One of each kind, with its default size.
pub const TOPOLOGIES: [Topology; 5] = [
    Topology::LeafSpine { leaves: 4, spines: 4, hosts_per_leaf: 8 },
    Topology::SingleSwitch { hosts: 32 },
    Topology::FatTree { k: 4 },
    Topology::Dumbbell { hosts_per_side: 8 },
    Topology::Rails { servers: 4, rails: 4 },
];

impl Topology {
    /// As in `topology.kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Topology::SingleSwitch { .. } => "single-switch",
            Topology::LeafSpine { .. } => "leaf-spine",
            Topology::FatTree { .. } => "fat-tree",
            Topology::Dumbbell { .. } => "dumbbell",
            Topology::Rails { .. } => "rail-optimised",
        }
    }

    /// The form of its size.
    fn form(&self) -> &'static str {
        match self {
            Topology::SingleSwitch { .. } => "HOSTS",
            Topology::LeafSpine { .. } => "LEAVESxSPINESxHOSTS-PER-LEAF",
            Topology::FatTree { .. } => "PORTS-PER-SWITCH",
            Topology::Dumbbell { .. } => "HOSTS-PER-SIDE",
            Topology::Rails { .. } => "SERVERSxRAILS",
        }
    }

    /// Hosts in all.
    pub fn hosts(&self) -> u32 {
        match *self {
            Topology::SingleSwitch { hosts } => hosts,
            Topology::LeafSpine { leaves, hosts_per_leaf, .. } => leaves * hosts_per_leaf,
            Topology::FatTree { k } => k * k * k / 4,
            Topology::Dumbbell { hosts_per_side } => 2 * hosts_per_side,
            Topology::Rails { servers, rails } => servers * rails,
        }
    }

    /// Links whose capacity a load refers to: the uplinks of leaves, or the hosts' links.
    pub fn links_of_load(&self) -> u32 {
        match *self {
            Topology::LeafSpine { leaves, spines, .. } => leaves * spines,
            Topology::Dumbbell { .. } => 2,
            _ => self.hosts(),
        }
    }

    /// Whether there are several shortest paths between some hosts.
    pub fn has_paths(&self) -> bool {
        matches!(self, Topology::LeafSpine { .. } | Topology::FatTree { .. })
    }

    /// With another size.
    fn sized(&self, text: &str) -> Result<Topology, String> {
        let wrong = || format!("the size of {} is {}", self.kind(), self.form());
        let parts: Option<Vec<u32>> = text.split('x').map(|part| part.parse().ok()).collect();
        let parts = parts.ok_or_else(wrong)?;
        let sized = match (self, &parts[..]) {
            (Topology::SingleSwitch { .. }, &[hosts]) => Topology::SingleSwitch { hosts },
            (Topology::LeafSpine { .. }, &[leaves, spines, hosts_per_leaf]) => {
                Topology::LeafSpine { leaves, spines, hosts_per_leaf }
            }
            (Topology::FatTree { .. }, &[k]) => Topology::FatTree { k },
            (Topology::Dumbbell { .. }, &[hosts_per_side]) => Topology::Dumbbell { hosts_per_side },
            (Topology::Rails { .. }, &[servers, rails]) => Topology::Rails { servers, rails },
            _ => return Err(wrong()),
        };
        sized.checked()
    }

    fn checked(self) -> Result<Topology, String> {
        let within = |name: &str, value: u32, range: RangeInclusive<u32>| {
            let (least, most) = (range.start(), range.end());
            let error = || format!("{name}: {least} to {most} (got {value})");
            range.contains(&value).then_some(()).ok_or_else(error)
        };
        match self {
            Topology::SingleSwitch { hosts } => within("hosts", hosts, 2..=HOSTS_MAX)?,
            Topology::LeafSpine { leaves, spines, hosts_per_leaf } => {
                within("leaves", leaves, 2..=64)?;
                within("spines", spines, 2..=64)?;
                within("hosts per leaf", hosts_per_leaf, 1..=64)?;
            }
            Topology::FatTree { k } => {
                within("ports per switch", k, 4..=16)?;
                if k % 2 == 1 {
                    return Err(format!("ports per switch: an even number (got {k})"));
                }
            }
            Topology::Dumbbell { hosts_per_side } => {
                within("hosts per side", hosts_per_side, 2..=512)?
            }
            Topology::Rails { servers, rails } => {
                within("servers", servers, 2..=64)?;
                within("rails", rails, 2..=16)?;
            }
        }
        within("hosts", self.hosts(), 2..=HOSTS_MAX)?;
        Ok(self)
    }
}

impl Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind())?;
        match self {
            Topology::SingleSwitch { hosts } => write!(f, "{hosts}"),
            Topology::LeafSpine { leaves, spines, hosts_per_leaf } => {
                write!(f, "{leaves}x{spines}x{hosts_per_leaf}")
            }
            Topology::FatTree { k } => write!(f, "{k}"),
            Topology::Dumbbell { hosts_per_side } => write!(f, "{hosts_per_side}"),
            Topology::Rails { servers, rails } => write!(f, "{servers}x{rails}"),
        }
    }
}

/// `KIND`, or `KIND:SIZE`.
pub fn topology(text: &str) -> Result<Topology, String> {
    let (kind, size) = parts(text);
    let found = TOPOLOGIES.iter().find(|topology| topology.kind() == kind);
    let found = found.ok_or_else(|| {
        unknown("topology", kind, TOPOLOGIES.iter().map(|topology| topology.kind()))
    })?;
    size.map_or(Ok(*found), |size| found.sized(size))
}

/// The forms of all topologies, with what they are.
pub fn topologies() -> Vec<(String, &'static str)> {
    let about = |topology: &Topology| match topology {
        Topology::SingleSwitch { .. } => "all hosts on one switch",
        Topology::LeafSpine { .. } => "two tiers, a link from each leaf to each spine",
        Topology::FatTree { .. } => "three tiers of equal switches",
        Topology::Dumbbell { .. } => "two switches with one link between them",
        Topology::Rails { .. } => "a leaf for each rail of servers with accelerators",
    };
    let form = |topology: &Topology| format!("{}:{}", topology.kind(), topology.form());
    TOPOLOGIES.iter().map(|topology| (form(topology), about(topology))).collect()
}

/// Rates that a message names.
pub const RATES: [&str; 7] =
    ["1Gbps", "10Gbps", "25Gbps", "40Gbps", "100Gbps", "200Gbps", "400Gbps"];

/// A rate of 1 to 800 Gb/s.
pub fn rate(text: &str) -> Result<Rate, String> {
    let text = text.trim();
    let rate = text.parse::<Rate>().map_err(|_| unknown("rate", text, RATES))?;
    let range = 1_000_000_000..=800_000_000_000;
    if !range.contains(&rate.bps()) {
        return Err(format!("the rate is 1Gbps to 800Gbps (got {rate})"));
    }
    Ok(rate)
}

/// The demands of a transport on hosts and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// One byte stream on one path.
    Tcp,
    /// Queue pairs.
    Rdma,
    /// Messages that receivers grant.
    Homa,
    /// Ultra Ethernet.
    Uet,
}

/// A transport that the questions offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// As in `transport.kind`.
    pub kind: &'static str,
    /// Its family.
    pub family: Family,
    /// Whether it steers by marks of the switches.
    pub marks: bool,
}

const fn transport_of(kind: &'static str, family: Family, marks: bool) -> Transport {
    Transport { kind, family, marks }
}

/// All that the questions offer, the default first.
pub const TRANSPORTS: [Transport; 12] = [
    transport_of("dctcp", Family::Tcp, true),
    transport_of("cubic", Family::Tcp, false),
    transport_of("newreno", Family::Tcp, false),
    transport_of("swift", Family::Tcp, false),
    transport_of("tas", Family::Tcp, true),
    transport_of("dcqcn", Family::Rdma, true),
    transport_of("hpcc", Family::Rdma, false),
    transport_of("powertcp", Family::Rdma, false),
    transport_of("timely", Family::Rdma, false),
    transport_of("rdma-dctcp", Family::Rdma, true),
    transport_of("homa", Family::Homa, false),
    transport_of("uet", Family::Uet, true),
];

/// A transport by its kind.
pub fn transport(text: &str) -> Result<Transport, String> {
    let kind = text.trim();
    let found = TRANSPORTS.into_iter().find(|transport| transport.kind == kind);
    found.ok_or_else(|| unknown("transport", kind, TRANSPORTS.iter().map(|one| one.kind)))
}

/// The traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// Flows of a built-in distribution at a load.
    Sizes { sizes: &'static str, load: f64 },
    /// Queries that many servers answer at once.
    Incast { degree: u32 },
    /// One long flow a host.
    Elephants { size: Bytes },
    /// A collective of all hosts, or of some.
    Collective { op: &'static str, size: Bytes },
}

impl Traffic {
    /// The kind, as it is answered.
    pub fn kind(&self) -> &'static str {
        match self {
            Traffic::Sizes { sizes, .. } => sizes,
            Traffic::Incast { .. } => INCAST,
            Traffic::Elephants { .. } => ELEPHANTS,
            Traffic::Collective { op, .. } => op,
        }
    }
}

impl Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind())?;
        match self {
            Traffic::Sizes { load, .. } => write!(f, "{load}"),
            Traffic::Incast { degree } => write!(f, "{degree}"),
            Traffic::Elephants { size } | Traffic::Collective { size, .. } => write!(f, "{size}"),
        }
    }
}

/// The collectives that the questions offer.
pub const COLLECTIVES: [&str; 5] =
    ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast"];

const INCAST: &str = "incast";
const ELEPHANTS: &str = "elephants";

/// All kinds, the default first.
pub fn traffic_kinds() -> Vec<&'static str> {
    let sizes = BUILTIN.iter().map(|cdf| cdf.name);
    sizes.chain([INCAST, ELEPHANTS]).chain(COLLECTIVES).collect()
}

/// The forms of all kinds, with what they are.
pub fn traffics() -> Vec<(String, &'static str)> {
    let forms = [
        ("DISTRIBUTION:LOAD", "flows at a load, such as web-search:0.5; `millpond list` names all"),
        ("incast:SERVERS", "so many hosts answer one host at the same instant"),
        ("elephants:SIZE", "each host sends one flow of this size"),
        (
            "all-reduce:SIZE",
            "or all-gather, reduce-scatter, all-to-all, broadcast; a rank's buffer",
        ),
    ];
    forms.map(|(form, about)| (form.to_string(), about)).to_vec()
}

/// Ranks of a collective.
pub fn ranks(topology: &Topology) -> u32 {
    topology.hosts().min(RANKS_MAX)
}

/// A round size that so many senders carry in a run.
fn usual(senders: u32, most: u64) -> Bytes {
    let share = (VOLUME / u64::from(senders.max(1))).clamp(1_000_000, most);
    Bytes(1_000_000 << (share / 1_000_000).ilog2())
}

/// `KIND`, or `KIND:VALUE`.
pub fn traffic(text: &str, topology: &Topology) -> Result<Traffic, String> {
    let (kind, value) = parts(text);
    let size = |usual: Bytes| match value {
        None => Ok(usual),
        Some(text) => {
            let size = text.parse::<Bytes>().map_err(|e| format!("{kind}: {e}"))?;
            let range = 1_000..=1_000_000_000;
            let error = || format!("{kind}: a size of 1KB to 1GB (got {size})");
            range.contains(&size.get()).then_some(size).ok_or_else(error)
        }
    };
    if let Some(cdf) = BUILTIN.iter().find(|cdf| cdf.name == kind) {
        let load = value.unwrap_or("0.5");
        let error = || format!("{kind}: a load of 0.01 to 0.95 (got {load})");
        let load = load.parse::<f64>().map_err(|_| error())?;
        let is_in = (0.01..=0.95).contains(&load);
        return is_in.then_some(Traffic::Sizes { sizes: cdf.name, load }).ok_or_else(error);
    }
    if let Some(op) = COLLECTIVES.into_iter().find(|op| *op == kind) {
        let size = size(usual(8 * ranks(topology), 16_000_000))?;
        return Ok(Traffic::Collective { op, size });
    }
    match kind {
        INCAST => {
            let most = topology.hosts() - 1;
            let degree = value.map_or(Ok(most.min(24)), |text| text.parse());
            let error = || format!("{kind}: 1 to {most} servers, all hosts but the receiver");
            let degree = degree.map_err(|_| error())?;
            (1..=most).contains(&degree).then_some(Traffic::Incast { degree }).ok_or_else(error)
        }
        ELEPHANTS => Ok(Traffic::Elephants { size: size(usual(topology.hosts(), 16_000_000))? }),
        _ => Err(unknown("traffic", kind, traffic_kinds())),
    }
}

/// A kind and what follows it, behind a colon or a space.
fn parts(text: &str) -> (&str, Option<&str>) {
    let text = text.trim();
    let (kind, value) = text.split_once([':', ' ']).unwrap_or((text, ""));
    let value = value.trim();
    (kind.trim(), (!value.is_empty()).then_some(value))
}

/// An error that has the nearest name, or all.
pub fn unknown<'a>(what: &str, name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let help = match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "none fits here".to_string(),
        None => format!("known here: {}", names.join(", ")),
    };
    format!("unknown {what} `{name}`; {help}")
}
