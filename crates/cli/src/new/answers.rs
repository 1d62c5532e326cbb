//! The answers that `millpond new` takes: their forms, their limits and the nearest valid names.

use millpond_core::units::{Bytes, Rate};
use millpond_scenario::cdf::BUILTIN;
use millpond_scenario::nearest;
use serde::Deserialize;
use std::fmt::{self, Display};
use std::sync::LazyLock;

/// More hosts than this take longer than seconds.
const HOSTS_MAX: u32 = 1024;
/// Ranks of a collective; further hosts stay idle.
const RANKS_MAX: u32 = 32;
/// Bytes that a run carries, about.
const VOLUME: u64 = 300_000_000;

/// A mechanism, which becomes a variant.
#[derive(Debug, Deserialize)]
pub struct Mechanism {
    /// Of the variant, and of the answer.
    pub name: String,
    pub about: String,
    /// The families of transports that it fits.
    pub families: Vec<Family>,
    /// The networks that it fits; none: all.
    pub network: Option<Network>,
    /// The keys that the variant sets.
    pub set: Vec<(String, String)>,
    /// The part that the plain network must have for a comparison with the mechanism.
    pub needs: Option<Needs>,
}

/// Where a mechanism has something to decide.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    OneNic,
    Paths,
    LeafSpine,
}

/// A part of the plain network.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// A bandwidth limit by a token bucket.
    Limit,
    /// Virtual switches that drop, and an application slower than its link.
    Application,
    /// Receive offload as the kernel has it.
    Offload,
}

#[derive(Deserialize)]
struct Offers {
    topology: Vec<Kind>,
    transport: Vec<Transport>,
    mechanism: Vec<Mechanism>,
}

static OFFERS: LazyLock<Offers> = LazyLock::new(|| {
    toml::from_str(include_str!("offers.toml")).unwrap_or_else(|e| panic!("offers.toml: {e}"))
});

#[derive(Debug, Deserialize, PartialEq, Eq)]
struct Kind {
    /// As in `topology.kind`.
    name: String,
    about: String,
    form: String,
    /// The numbers of its size: name, least, most and default of each.
    parts: Vec<(String, u32, u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    of: &'static Kind,
    /// A number for each part; further ones are 1.
    sizes: [u32; 3],
}

/// One of each kind, with its default size.
pub fn networks() -> Vec<Topology> {
    let of = |kind: &'static Kind| {
        let size = |at: usize| kind.parts.get(at).map_or(1, |(.., default)| *default);
        Topology { of: kind, sizes: std::array::from_fn(size) }
    };
    OFFERS.topology.iter().map(of).collect()
}

/// The transports that the questions offer.
pub fn transports() -> &'static [Transport] {
    &OFFERS.transport
}

/// The mechanisms, in the order in which they are offered.
pub fn mechanisms() -> &'static [Mechanism] {
    &OFFERS.mechanism
}

impl Topology {
    /// As in `topology.kind`.
    pub fn kind(&self) -> &'static str {
        &self.of.name
    }

    /// The numbers of its size, with their names.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.of.parts.iter().zip(self.sizes).map(|((name, ..), size)| (name.as_str(), size))
    }

    pub fn hosts(&self) -> u32 {
        let [a, b, c] = self.sizes;
        match self.kind() {
            "leaf-spine" => a * c,
            "fat-tree" => a * a * a / 4,
            "dumbbell" => 2 * a,
            _ => a * b,
        }
    }

    /// Links whose capacity a load refers to: the uplinks of leaves, or the hosts' links.
    pub fn links_of_load(&self) -> u32 {
        match self.kind() {
            "leaf-spine" => self.sizes[0] * self.sizes[1],
            "dumbbell" => 2,
            _ => self.hosts(),
        }
    }

    /// Whether there are several shortest paths between some hosts.
    pub fn has_paths(&self) -> bool {
        ["leaf-spine", "fat-tree"].contains(&self.kind())
    }

    fn sized(&self, text: &str) -> Result<Topology, String> {
        let wrong = || format!("the size of {} is {}", self.kind(), self.of.form);
        let numbers: Option<Vec<u32>> = text.split('x').map(|part| part.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.len() == self.of.parts.len());
        let numbers = numbers.ok_or_else(wrong)?;
        let within = |name: &str, value: u32, least: u32, most: u32| {
            let error = || format!("{name}: {least} to {most} (got {value})");
            (least..=most).contains(&value).then_some(()).ok_or_else(error)
        };
        let mut sized = Topology { of: self.of, sizes: [1; 3] };
        for ((name, least, most, _), (size, number)) in
            self.of.parts.iter().zip(sized.sizes.iter_mut().zip(numbers))
        {
            within(name, number, *least, *most)?;
            *size = number;
        }
        let [k, ..] = sized.sizes;
        if sized.kind() == "fat-tree" && k % 2 == 1 {
            return Err(format!("ports per switch: an even number (got {k})"));
        }
        within("hosts", sized.hosts(), 2, HOSTS_MAX)?;
        Ok(sized)
    }
}

impl Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.parts().map(|(_, size)| size.to_string()).collect();
        write!(f, "{}:{}", self.kind(), sizes.join("x"))
    }
}

/// `KIND`, or `KIND:SIZE`.
pub fn topology(text: &str) -> Result<Topology, String> {
    let (kind, size) = parts(text);
    let known = networks();
    let found = known.iter().find(|topology| topology.kind() == kind);
    let found = found
        .ok_or_else(|| unknown("topology", kind, known.iter().map(|topology| topology.kind())))?;
    size.map_or(Ok(*found), |size| found.sized(size))
}

/// The forms of all topologies, with what they are.
pub fn topologies() -> Vec<(String, &'static str)> {
    let shown = |kind: &'static Kind| (format!("{}:{}", kind.name, kind.form), &*kind.about);
    OFFERS.topology.iter().map(shown).collect()
}

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
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// One byte stream on one path.
    Tcp,
    Rdma,
    Homa,
    Uet,
}

/// A transport that the questions offer.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct Transport {
    /// As in `transport.kind`.
    pub kind: String,
    pub family: Family,
    /// Whether it steers by marks of the switches.
    pub marks: bool,
}

pub fn transport(text: &str) -> Result<&'static Transport, String> {
    let kind = text.trim();
    let found = transports().iter().find(|transport| transport.kind == kind);
    found.ok_or_else(|| unknown("transport", kind, transports().iter().map(|one| &*one.kind)))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// Flows of a built-in distribution at a load.
    Sizes {
        sizes: &'static str,
        load: f64,
    },
    /// Queries that many servers answer at once.
    Incast {
        degree: u32,
    },
    Elephants {
        size: Bytes,
    },
    /// A collective of all hosts, or of some.
    Collective {
        op: &'static str,
        size: Bytes,
    },
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
