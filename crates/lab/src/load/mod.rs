//! The load generator: makes a plan's traffic with kernel TCP in network namespaces.
//!
//! One thread opens, serves and closes the connections of all hosts, with one `epoll`. Flows have
//! the ids, sizes and start times that the simulator gives them, since both draw from the plan.
//! A connection carries the scenario's bytes and nothing else: the client registers its port before
//! it connects, and the server looks the port up. A class of traffic has a port of its own at all
//! hosts, which no client has.
//!
//! | module | content |
//! |---|---|
//! | `engine` | the loop, and what connections do |
//! | `table` | its connections, by the keys of their events |
//! | `agenda` | what begins when |
//! | `connection` | a connection and its two ends |
//! | `ledger` | what a flow does to counts and records |
//! | `records` | records of flows, calls, queries, and samples of connections |
//! | `counts`, `goodput` | sums over the run, lateness, errors; bytes read over time |
//! | `info`, `namespaces`, `cgroups`, `clock` | the kernel |
//!
//! The world `virtual` makes the same traffic with sockets in other kernels, by `agenda`,
//! `connection` and `ledger`.
//!
//! Connections end without a packet (TCP_REPAIR), as in the simulator: no FIN, no TIME_WAIT. A run
//! needs CAP_SYS_ADMIN and CAP_NET_ADMIN. Bursts of connections to one host need `somaxconn` of its
//! namespace to be as large, and a first packet waits for ARP unless neighbours are permanent.
//! `tests/load/measurements.rs` measures its costs.
//!
//! **Not supported:** priorities of traffics, buffer sizes of the transport.
//!
//! Invariant: each flow that starts makes exactly one record, and the thread ends in the namespace
//! in which it began.

pub mod agenda;
mod cgroups;
mod clock;
pub mod connection;
mod counts;
mod engine;
mod goodput;
pub mod info;
pub mod ledger;
mod namespaces;
pub mod records;
mod table;

/// The port at which a lab's hosts listen for the first class of traffic.
pub const PORT: u16 = 7100;

pub use cgroups::Cgroup;
pub use counts::{Counts, Failure};

use millpond_core::Time;
use millpond_linux::fabric::Held;
use millpond_results::{ConnectionRecord, FlowRecord, QueryRecord};
use millpond_scenario::plan::Plan;
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A host's place in the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its network namespace: a name of `ip netns`, or a path.
    pub namespace: String,
    pub address: Ipv4Addr,
}

/// The class of traffic, of so many, that a packet's ports name; `None`: it is not the load's.
pub(crate) fn class_of(held: &Held, classes: u16) -> Option<u16> {
    let layers = held.view.tcp()?;
    let ports = held.bytes.header.bytes().get(layers.transport..layers.transport + 4)?;
    let of = |at: usize| {
        let class = u16::from_be_bytes([ports[at], ports[at + 1]]).checked_sub(PORT)?;
        (class < classes).then_some(class)
    };
    of(2).or_else(|| of(0))
}

/// A run of the load generator.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Whose traffic. The caller refuses transports other than `congestion`.
    pub plan: &'a Plan,
    pub places: &'a [Place],
    /// The kernel's name of every socket's congestion control, such as `cubic`.
    pub congestion: &'a str,
    /// The beginning of time, which may be to come: connections of probes open before it.
    pub began: Instant,
    /// The port at which hosts listen for the first class of traffic; those after it are the other
    /// classes'.
    pub port: u16,
    /// Cgroups for some hosts' sockets, no two for one class of a host.
    pub cgroups: &'a [Cgroup],
}

/// Takes records, each when its flow ends, and at the end those of unfinished flows. Each method
/// returns whether the run goes on.
pub trait Sink {
    /// Takes the record of a flow or call.
    fn flow(&mut self, record: FlowRecord) -> bool;
    /// Takes the record of a query.
    fn query(&mut self, record: QueryRecord) -> bool;
    /// Takes a probe's round-trip time, from the write of the question to the read of the answer.
    fn rtt(&mut self, rtt: Time) -> bool;
    /// Takes a sample of a connection, in the order of (time, flow).
    fn connection(&mut self, record: ConnectionRecord) -> bool;
}

/// The reason why a run could not begin or go on. Errors of single connections are in
/// [`Counts::errors`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A plan's host has no place, or a place no host.
    #[error("the plan has {hosts} hosts and the lab {places} places: give one place for each host")]
    Places { hosts: usize, places: usize },
    /// A namespace cannot be opened or entered.
    #[error("network namespace {name:?}: {source}; make it, and run as root")]
    Namespace { name: String, source: std::io::Error },
    #[error("host {host} cannot listen on {address}:{port} with {congestion:?}: {source}")]
    Listen {
        host: u32,
        address: Ipv4Addr,
        port: u16,
        congestion: String,
        /// The kernel's reason; "not found": it has no such congestion control.
        source: std::io::Error,
    },
    /// A thread for a cgroup's sockets cannot be started.
    #[error("a thread for a cgroup's sockets: {0}")]
    Thread(std::io::Error),
    /// The kernel refuses to report events.
    #[error("epoll: {0}")]
    Events(std::io::Error),
}

/// Makes the plan's traffic until it is over (if the plan runs until flows are complete), its
/// horizon is reached, `stop` is set or the sink has enough. Returns what has been counted.
///
/// The calling thread moves between the namespaces, and is back where it was at the end.
///
/// # Errors
/// If places and hosts do not match, or a host cannot be entered or listen.
pub fn run(
    settings: &Settings<'_>,
    stop: &AtomicBool,
    sink: &mut dyn Sink,
) -> Result<Counts, Error> {
    let slack = current_timer_slack().ok().and_then(NonZeroU64::new);
    // Where it is refused, flows start later, as the lateness shows.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let counts = engine::Engine::new(settings, sink).and_then(|engine| engine.run(stop));
    let _ = set_current_timer_slack(slack);
    counts
}
