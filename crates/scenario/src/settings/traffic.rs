//! The kinds of traffic and their keys.

use crate::cdf::SizeSpec;
use crate::settings::flows::FlowRows;
use crate::settings::hosts::HostSet;
use crate::settings::job::{ChakraParams, CollectiveParams, GoalParams, SimaiParams};
use crate::transport::TransportKind;
use millpond_core::params::{Field, Form, Value, ValueError};
use millpond_core::registry::{About, Choice};
use millpond_core::{Bytes, Time, choice, params, registry};

choice! {
    /// The meaning of a load of one.
    pub enum LoadBase {
        /// "fabric" where leaves have uplinks, else "host-links".
        Auto = "auto",
        /// The sum of the leaves' uplinks.
        Fabric = "fabric",
        /// The sum of the host links.
        HostLinks = "host-links",
    }
}
impl LoadBase {
    /// The base itself, where the leaves' uplinks sum up to `fabric`.
    pub(crate) fn settled(self, fabric: u128) -> LoadBase {
        match self {
            LoadBase::Auto if fabric > 0 => LoadBase::Fabric,
            LoadBase::Auto => LoadBase::HostLinks,
            chosen => chosen,
        }
    }
}

choice! {
    /// The pairs of hosts that talk.
    pub enum Pairs {
        /// Any two hosts.
        Random = "random",
        /// Two hosts on different leaves.
        InterLeaf = "inter-leaf",
    }
}

/// The receiver of an incast: a host drawn for each query, or one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Drawn for each query.
    Random,
    /// Always this one.
    Host(u32),
}

impl Field for Receiver {
    const FORM: Form = Form::Text;
    fn to_value(&self) -> Value {
        match self {
            Receiver::Random => Value::Text("random".into()),
            Receiver::Host(h) => Value::Int(*h as u64),
        }
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        match value {
            Value::Text(t) if t == "random" => Ok(Receiver::Random),
            Value::Int(h) if u32::try_from(*h).is_ok() => Ok(Receiver::Host(*h as u32)),
            _ => Err(ValueError("expected \"random\" or the number of a host".into())),
        }
    }
}

/// The pairs of hosts that probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbePairs {
    /// So many pairs, drawn at random.
    Count(u32),
    /// Every host probes a random other one.
    Random,
    /// Every host probes a random one on another leaf.
    InterLeaf,
    /// These.
    Listed(Vec<(u32, u32)>),
}

impl Field for ProbePairs {
    const FORM: Form = Form::List;
    fn to_value(&self) -> Value {
        match self {
            ProbePairs::Count(n) => Value::Int(*n as u64),
            ProbePairs::Random => Value::Text("random".into()),
            ProbePairs::InterLeaf => Value::Text("inter-leaf".into()),
            ProbePairs::Listed(pairs) => {
                Value::List(pairs.iter().map(|(a, b)| format!("{a}-{b}")).collect())
            }
        }
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        let listed = match value {
            Value::Text(t) if t == "random" => return Ok(ProbePairs::Random),
            Value::Text(t) if t == "inter-leaf" => return Ok(ProbePairs::InterLeaf),
            Value::Int(n) if u32::try_from(*n).is_ok() => return Ok(ProbePairs::Count(*n as u32)),
            Value::Text(t) => t.split(',').map(pair).collect(),
            Value::List(list) => list.iter().map(|t| pair(t)).collect(),
            _ => None,
        };
        let message = "expected \"random\", \"inter-leaf\", a number of pairs, or pairs of hosts \
                       such as [\"0-16\"]";
        listed.map(ProbePairs::Listed).ok_or_else(|| ValueError(message.into()))
    }
}

/// Two hosts, as in "0-16".
pub(crate) fn pair(text: &str) -> Option<(u32, u32)> {
    let (a, b) = text.split_once('-')?;
    Some((a.trim().parse().ok()?, b.trim().parse().ok()?))
}

params! {
    /// The keys that every traffic has.
    pub struct TrafficCommon {
        /// Its name: the class of its flows in the statistics and the name of its random
        /// stream. Off means the name of its kind.
        pub name: Option<String> = None,
        /// When its first flow may start.
        pub start: Time = Time::ZERO,
        /// No flow starts from here on; off means at the end of the run.
        pub stop: Option<Time> = None,
        /// Other traffics, by name, that come first: its start counts from when all their flows are
        /// delivered, and from when the news of that can be there. They must have a number of flows
        /// that is known in advance.
        pub after: Vec<String> = Vec::new(),
        /// The hosts among which it runs: "all", or hosts and ranges such as ["0..7", "9"]. A load
        /// then refers to their links, or to their share of their leaves' uplinks.
        pub hosts: HostSet = HostSet::All,
        /// Priority of its packets, 0 (lowest) to 7: a strict-priority queue serves the highest
        /// first.
        pub priority: u32 = 0,
    }
}
params! {
    /// Poisson arrivals.
    pub struct PoissonParams {
        /// Flow sizes: the name of a built-in distribution, a file of two columns (bytes,
        /// cumulative probability; ns-2's and Homa's forms are read as well), one size, or { points
        /// = [[bytes, probability], …] }.
        pub sizes: SizeSpec = SizeSpec::default(),
        /// Application payload over capacity.
        pub load: f64 = 0.5,
        /// The capacity that load refers to: "fabric" is the sum of the leaves' uplinks,
        /// "host-links" that of the host links, "auto" is the first where there are uplinks.
        pub load_base: LoadBase = LoadBase::Auto,
        /// "random": any two hosts; "inter-leaf": two hosts on different leaves.
        pub pairs: Pairs = Pairs::Random,
        /// Flows in all; off means as many as start before stop.
        pub count: Option<u64> = None,
        /// Bytes that a client sends to ask for each flow: then the flow is the answer, and comes
        /// back on the connection of the request. Off means that sources send by themselves.
        pub request: Option<Bytes> = None,
        /// Mean of the time that a server takes from a request to its answer; needs a request.
        /// Source: Vertigo's published simulations use 20us.
        pub think_time: Time = Time::ZERO,
        /// Standard deviation of that time, which is normally distributed and never negative.
        /// Source: Vertigo's published simulations use 3us.
        pub think_deviation: Time = Time::ZERO,
    }
}
params! {
    /// Incast queries.
    pub struct IncastParams {
        /// Servers that answer each query, drawn for each among all hosts but the receiver.
        pub degree: u32 = 10,
        /// Bytes that each server sends on each of its flows.
        pub response: Bytes = Bytes(40_000),
        /// Flows of each server, all at once. Source: TLT's published simulations open four.
        #[within(1..)]
        pub flows_per_server: u32 = 1,
        /// Bytes that the receiver sends to ask each server; off means that the servers start by
        /// themselves at the query's time.
        pub request: Option<Bytes> = None,
        /// Queries per second on average, as a Poisson process. Not together with period.
        pub rate: Option<f64> = None,
        /// Time from one query to the next; the first is at start. Not together with rate.
        pub period: Option<Time> = None,
        /// Queries in all; off means as many as start before stop. Without rate and period all
        /// start at once, one by default.
        pub count: Option<u64> = None,
        /// The receiver: "random" draws a host for each query, a number is a host.
        pub receiver: Receiver = Receiver::Random,
        /// Mean of the time that a server takes from a request to its answer; needs a request.
        /// Source: Vertigo's published simulations use 20us.
        pub think_time: Time = Time::ZERO,
        /// Standard deviation of that time, which is normally distributed and never negative.
        /// Source: Vertigo's published simulations use 3us.
        pub think_deviation: Time = Time::ZERO,
    }
}
params! {
    /// One flow a host, to a permutation of the hosts, which may cross the fabric.
    pub struct PermutationParams {
        /// Bytes of each flow.
        pub size: Bytes = Bytes(1_000_000),
        /// Host h starts h times this after start.
        pub stagger: Time = Time::ZERO,
    }
}
params! {
    /// One flow a host, to the host a fixed distance away.
    pub struct StrideParams {
        /// Host h sends to (h + offset) mod H.
        pub offset: u32 = 1,
        /// Bytes of each flow.
        pub size: Bytes = Bytes(1_000_000),
        /// Host h starts h times this after start.
        pub stagger: Time = Time::ZERO,
    }
}
params! {
    /// One flow a host, to a random host; receivers may collide.
    pub struct RandomParams {
        /// "random": any other host; "inter-leaf": a host on another leaf.
        pub pairs: Pairs = Pairs::Random,
        /// Bytes of each flow.
        pub size: Bytes = Bytes(1_000_000),
        /// Host h starts h times this after start.
        pub stagger: Time = Time::ZERO,
    }
}
params! {
    /// Every host to every other.
    pub struct ShuffleParams {
        /// Bytes of each flow.
        pub size: Bytes = Bytes(1_000_000),
        /// Flows of one host at a time; more than there are other hosts means all at once.
        #[within(1..)]
        pub concurrency: u32 = 2,
    }
}
params! {
    /// Closed loops of requests and responses.
    pub struct RpcParams {
        /// Hosts that ask, drawn at random.
        pub clients: u32 = 1,
        /// Hosts that answer, drawn among the others.
        pub servers: u32 = 1,
        /// Bytes of a request.
        pub request: Bytes = Bytes(100),
        /// Bytes of a response.
        pub response: Bytes = Bytes(10_000),
        /// Clients with their servers, as in ["0-1", "0-2"]; empty means that they are drawn.
        pub pairs: Vec<String> = Vec::new(),
        /// Persistent connections of each client (of each pair, where pairs are given), dealt out
        /// to the servers in turn; each has one request at a time.
        pub connections: u32 = 1,
    }
}
params! {
    /// Ping-pong of a small message, to measure round-trip times.
    pub struct ProbeParams {
        /// The pairs of asker and asked: "random" (every host a random other one), "inter-leaf"
        /// (every host one on another leaf), a number of random pairs, or the pairs themselves, as
        /// in ["0-16", "3-20"].
        pub pairs: ProbePairs = ProbePairs::Random,
        /// From one question of a pair to its next; a question waits for the answer to the last
        /// one. The first is asked at a random time within the first period.
        pub period: Time = Time::from_us(100),
        /// Bytes of a question, and of its answer.
        pub size: Bytes = Bytes(64),
    }
}
params! {
    /// Flows from a list.
    pub struct FlowsParams {
        /// CSV file with the header start_us,src,dst,bytes and, if need be, class, id, after (ids
        /// with spaces between them: the flow starts start_us after these are delivered) and port
        /// (which fct.txt has); relative to the scenario file. Times count from start.
        pub file: Option<String> = None,
        /// A hash of the file's text, as results write it beside a long file's name: with it, a
        /// file that has changed since is an error.
        pub digest: Option<String> = None,
        /// The list itself instead of a file: [[start, src, dst, bytes], …] with an optional class
        /// at the end; start is a time such as "10us" or a number of microseconds. Or rows { start,
        /// src, dst, bytes, class, id, after = [ids], port }.
        pub rows: FlowRows = FlowRows::default(),
    }
}

const fn about(summary: &'static str, source: &'static str) -> About {
    About { summary, source, ..About::PLAIN }
}
const POISSON: About =
    about("flows between random hosts at random times, with sizes from a distribution", "");
const INCAST: About = about(
    "queries that many servers answer at once",
    "DIBS, EuroSys 2014 §5; DCTCP, SIGCOMM 2010 §2",
);
const PERMUTATION: About = about("every host sends one flow and receives one", "");
const STRIDE: About = about("host h sends one flow to host h + offset", "Hedera, NSDI 2010 §6");
const BIJECTION: About =
    about("a permutation in which every flow leaves its leaf", "Hedera, NSDI 2010 §6; Presto §5");
const RANDOM: About = about(
    "every host sends one flow to a random host; receivers may collide",
    "Hedera, NSDI 2010 §6; Presto §5",
);
const SHUFFLE: About =
    about("every host sends to every other, a few at a time", "Hedera, NSDI 2010 §6; Presto §5");
const RPC: About = about("clients that ask again as soon as they are answered", "");
const PROBE: About =
    about("ping-pong of a small message, which measures round-trip times and makes no flows", "");
const FLOWS: About = about("flows from a file", "");
const COLLECTIVE: About = about(
    "ranks that send when what they wait for has arrived, as in an all-reduce",
    "NCCL; Schedgen; MPICH",
);
const GOAL: About = about(
    "programs of ranks: computations, sends and receives that wait for each other",
    "LogGOPSim, HPDC 2010; ATLAHS, SC 2025",
);
const SIMAI: About =
    about("layers of a model: computations and collectives of each rank", "SimAI, NSDI 2025");
const CHAKRA: About = about(
    "execution traces: the computations, messages and collectives that ranks have done",
    "Chakra, MLCommons; ASTRA-sim",
);

registry! {
    /// Which traffic, with its parameters.
    place: "traffic", question: "which flows start when, between whom?", default: Poisson,
    params: TrafficParams;
    "poisson" => Poisson { PoissonParams; POISSON },
    "incast" => Incast { IncastParams; INCAST },
    "permutation" => Permutation { PermutationParams; PERMUTATION },
    "stride" => Stride { StrideParams; STRIDE },
    "bijection" => Bijection { PermutationParams; BIJECTION },
    "random" => Random { RandomParams; RANDOM },
    "shuffle" => Shuffle { ShuffleParams; SHUFFLE },
    "rpc" => Rpc { RpcParams; RPC },
    "probe" => Probe { ProbeParams; PROBE },
    "flows" => Flows { FlowsParams; FLOWS },
    "collective" => Collective { CollectiveParams; COLLECTIVE },
    "goal" => Goal { GoalParams; GOAL },
    "simai" => Simai { SimaiParams; SIMAI },
    "chakra" => Chakra { ChakraParams; CHAKRA },
}

impl TrafficParams {
    /// Whether ranks make it, which are placed on its hosts.
    pub(crate) fn is_job(&self) -> bool {
        matches!(self, Self::Collective(_) | Self::Goal(_) | Self::Simai(_) | Self::Chakra(_))
    }
}

/// One `[[traffic]]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficSettings {
    /// The keys that all kinds have.
    pub common: TrafficCommon,
    /// The kind with its keys.
    pub kind: TrafficParams,
    /// Its own transport, where it is not the scenario's.
    pub transport: Option<TransportKind>,
}

impl TrafficSettings {
    /// Its own name, or its kind's.
    pub(crate) fn name(&self) -> String {
        self.common.name.clone().unwrap_or_else(|| self.kind.kind().to_string())
    }
}
