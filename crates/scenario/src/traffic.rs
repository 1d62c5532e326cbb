//! Traffic: which flows start when, between whom, and how large they are.
//!
//! Open-loop arrivals are a lazy, sorted stream that depends on the seed and the traffic only,
//! never on the variant or on what the network does. Closed-loop traffic (shuffle, rpc, jobs)
//! starts its next flow when an earlier one completes, and flows may wait for others
//! ([`Dependencies`]); what comes next is a pure function of the plan, so it draws nothing at run
//! time.
//!
//! Invariant: [`TrafficPlan::arrivals`] is sorted by (time, source, order within the source) and
//! the same however often it is asked for; it holds one flow a source, so ten million flows take no
//! more memory than ten.

mod among;
mod arrivals;
mod build;
mod dependencies;
mod emitted;
mod incast;
mod job;
mod load;
mod news;
mod pattern;
mod poisson;

pub use arrivals::{Arrivals, Event};
pub(crate) use build::build;
pub use dependencies::{Dependencies, Dependent, NodeId};
pub use job::JobPlan;
pub(crate) use load::{Load, Pairing};

use crate::settings::flows::FlowTable;
use crate::transport::TransportKind;
use arrivals::Generator;
use millpond_core::random::{Stream, hash_name, mix64};
use millpond_core::{FlowId, Time};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct TrafficPlan {
    /// Class names by class number: every traffic's name first, then the classes of CSV files.
    pub classes: Vec<String>,
    /// By class: the priority of its packets. A class that several lists name has the first one's.
    pub priorities: Vec<u8>,
    /// By class: how long its servers think before they answer.
    pub thinking: Vec<Thinking>,
    /// By class: its transport; 0: the scenario's, n: the n-th of `other_transports`.
    pub transports: Vec<u8>,
    /// Transports that traffics have for themselves, each once.
    pub other_transports: Vec<TransportKind>,
    /// The sources that the traffic tables have become.
    pub sources: Vec<Source>,
    /// Flow ids below it belong to closed-loop sources; arrivals are numbered from here in their
    /// order.
    pub first_open_flow: u32,
    /// How many flow ids there will be in all, where that is known in advance (a poisson without
    /// `count` counts only as it goes).
    pub total_flows: Option<u64>,
    /// Whether every source ends by itself before the end of time, so that a run may wait for its
    /// flows.
    pub is_finite: bool,
    /// Flows that start when others are delivered, if there are any.
    pub dependencies: Option<Arc<Dependencies>>,
    pub(crate) generators: Vec<Generator>,
    /// By host: whether it is of the part that this is; `None`: this is the whole.
    pub(crate) only: Option<Arc<[bool]>>,
}

impl TrafficPlan {
    /// The jobs, each with its class.
    pub fn jobs(&self) -> impl Iterator<Item = (u16, &Arc<JobPlan>)> {
        self.sources.iter().filter_map(|source| match &source.kind {
            SourceKind::Job(job) => Some((source.class, job)),
            _ => None,
        })
    }

    /// The job of a rank, by the rank's number among those of all jobs; and its rank there.
    pub fn job_of(&self, number: u32) -> Option<(u16, &Arc<JobPlan>, u32)> {
        self.jobs().find_map(|(class, job)| {
            let rank = number.checked_sub(job.first_rank)?;
            (rank < job.count()).then_some((class, job, rank))
        })
    }
    /// Whether a host's flows are here: where the traffic is a part of a plan's
    /// ([`Plan::part`](crate::Plan::part)), not all are.
    pub fn has(&self, host: u32) -> bool {
        self.only.as_ref().is_none_or(|only| only[host as usize])
    }
    /// The traffics whose rate is known in advance.
    pub(crate) fn loads(&self) -> Vec<Load> {
        self.generators.iter().filter_map(Generator::load).collect()
    }
    /// The destination ports that the only list of flows has, with the first flow of each run of
    /// equal ones.
    pub fn ports(&self) -> Vec<(FlowId, u16)> {
        let mut tables: Vec<(FlowId, &FlowTable)> = Vec::new();
        if let [Generator::Listed(list)] = &self.generators[..] {
            tables.push((self.first_open_flow, &list.table));
        }
        tables.extend(self.dependencies.iter().flat_map(|graph| graph.lists()));
        let ports = tables.iter().flat_map(|(first, table)| {
            (*first..).zip(&table.rows).filter_map(|(flow, row)| Some((flow, row.port?)))
        });
        let mut runs: Vec<(FlowId, u16)> = ports.collect();
        runs.dedup_by_key(|(_, port)| *port);
        runs
    }
    /// All open-loop flows and queries, in order, from the beginning.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals::new(&self.generators, self.first_open_flow, self.only.clone())
    }
}

/// How long servers take from a request to its answer: a normal distribution, cut off at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thinking {
    pub mean: Time,
    pub deviation: Time,
}

impl Thinking {
    /// The time before the answer that has this id. A function of seed and id alone: all variants
    /// of a scenario draw the same, and it matters to nobody when or by whom it is drawn.
    pub fn draw(&self, seed: u64, answer: FlowId) -> Time {
        if self.deviation == Time::ZERO {
            return self.mean;
        }
        const NAME: u64 = hash_name("think-time");
        let mut random = Stream::from_key(mix64(mix64(seed) ^ NAME) ^ answer as u64);
        let ps = random.normal(self.mean.as_ps() as f64, self.deviation.as_ps() as f64);
        Time::from_ps((ps.max(0.0) + 0.5) as u64)
    }
}

#[derive(Clone, Debug)]
pub struct Source {
    pub class: u16,
    pub kind: SourceKind,
}

/// A pair of hosts that probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePair {
    pub src: u32,
    pub dst: u32,
    /// When the first question is asked, from the traffic's start.
    pub phase: Time,
}

#[derive(Clone, Debug)]
pub enum SourceKind {
    /// All its flows are in [`TrafficPlan::arrivals`] or [`TrafficPlan::dependencies`].
    Open,
    /// Every host sends `size` to every other in its own random order, `concurrency` at a time;
    /// host h's i-th flow has id `first_flow + h × (hosts − 1) + i`.
    Shuffle {
        /// Bytes of each flow.
        size: u64,
        /// Flows of one host at a time.
        concurrency: u32,
        start: Time,
        /// No flow starts from here on.
        stop: Time,
        /// By host: its destinations in order.
        order: Vec<Vec<u32>>,
        /// Flow id of host 0's first.
        first_flow: u32,
    },
    /// Ping-pong of a small message: each pair asks every `period`, or as soon as the last answer
    /// is there if that is later. Probes make no flows.
    Probe {
        pairs: Vec<ProbePair>,
        /// Bytes of a question and of an answer.
        size: u64,
        /// From one question to the next.
        period: Time,
        start: Time,
        /// No question is asked from here on.
        stop: Time,
        /// Pair i's questions have id `first_flow + 2i`, its answers the next.
        first_flow: u32,
    },
    /// Closed loops on persistent connections: request up, response down, again.
    Rpc {
        connections: Vec<(u32, u32)>,
        /// Bytes.
        request: u64,
        /// Bytes.
        response: u64,
        start: Time,
        /// No request starts from here on.
        stop: Time,
        /// Connection i's request direction has id `first_flow + 2i`, its response direction the
        /// next.
        first_flow: u32,
    },
    /// Ranks that send when what they wait for has arrived.
    Job(Arc<JobPlan>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at: Time,
    /// The first to send: the sender, or the client of a request.
    pub src: u32,
    pub dst: u32,
    /// Bytes that `src` sends.
    pub bytes: u64,
    /// Bytes that `dst` sends back on the same connection once it has all of `bytes`; 0: nothing,
    /// and the flow is one-way. The flow's record is then the response: from the request's start to
    /// the response's last byte.
    pub response: u64,
    pub class: u16,
    /// Its flow id; with a response the request direction has this id and the response direction
    /// the next.
    pub flow: u32,
    /// The query that it belongs to.
    pub query: Option<u32>,
}

/// A query: an incast event, counted complete when all its responses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Dense, from 0 over the whole plan in the order of start.
    pub query: u32,
    /// The host that asks and receives.
    pub client: u32,
    pub degree: u32,
    pub at: Time,
    pub class: u16,
}
