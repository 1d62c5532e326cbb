//! Jobs: traffics of ranks that wait for each other, and where their ranks are.

use super::hosts::HostSet;
use super::traffic::about;
use millpond_core::registry::About;
use millpond_core::{Bytes, Time, choice, params};
use millpond_ranks::collective::{Algorithm, Operation};

choice! {
    /// Which hosts a job's ranks are on. Each kind is an order of the job's hosts, of which the
    /// job takes as many as it has ranks.
    pub enum Placement {
        /// In the order of their numbers.
        Packed = "packed",
        /// In an order drawn from the seed, the same for all jobs.
        Random = "random",
        /// One host of each leaf in turn.
        RoundRobin = "round-robin",
        /// In the order in which `hosts` names them.
        Listed = "listed",
    }
}

params! {
    /// A collective operation among ranks.
    pub struct CollectiveParams {
        /// What the ranks do with their buffers.
        pub op: Operation = Operation::AllReduce,
        /// How; "auto" is the first in the operation's row of docs/ai-traffic.md.
        pub algorithm: Algorithm = Algorithm::Auto,
        /// A rank's whole buffer, as nccl-tests counts it: for an all-gather, reduce-scatter or
        /// all-to-all the number of ranks times a rank's share. Of a pipeline: what a stage hands
        /// to the next for a micro-batch.
        #[within(1..)]
        pub size: Bytes = Bytes(1_000_000),
        /// How many ranks; off means one on each of `hosts`.
        #[within(2..)]
        pub ranks: Option<u32> = None,
        /// The order of hosts in which ranks are placed.
        pub placement: Placement = Placement::Packed,
        /// The hosts that ranks may be on.
        pub hosts: HostSet = HostSet::All,
        /// The job's place in that order: rank 0 is on the host of this number. Jobs whose ranges
        /// do not overlap share no host.
        pub first: u32 = 0,
        /// Channels, each of which does its share of the buffer on connections of its own. Of
        /// rings.
        #[within(1..=64)]
        pub channels: u32 = 1,
        /// Parts of a ring's chunk: the next step of a part waits for that part alone.
        #[within(1..=1024)]
        pub slices: u32 = 1,
        /// The largest chunk: a larger share of a ring takes several turns, and a tree or chain
        /// carries so much at a time. Off means no bound. Source: NCCL's simple protocol has 2 MiB
        /// a channel of a ring.
        #[within(1..)]
        pub chunk: Option<Bytes> = None,
        /// Ranks of a group, of the algorithms "hierarchical" and "pxn": ranks 0 to group − 1 are
        /// one server.
        #[within(1..)]
        pub group: u32 = 8,
        /// Of an all-to-all: bytes that rank 0 receives, over the mean. Others share the rest
        /// equally.
        #[within(0..)]
        pub skew: f64 = 1.0,
        /// Of a pipeline: micro-batches of a round.
        #[within(1..=1000000)]
        pub micro_batches: u32 = 8,
        /// Of a pipeline: how long a stage computes for a micro-batch, forward.
        pub forward: Time = Time::from_us(100),
        /// Of a pipeline: how long a stage computes for a micro-batch, backward.
        pub backward: Time = Time::from_us(200),
        /// Rounds: how often the ranks do it.
        #[within(1..)]
        pub repeat: u32 = 1,
        /// From the end of a rank's round to its computation for the next.
        pub gap: Time = Time::ZERO,
        /// How long each rank computes before its first message of a round.
        pub compute: Time = Time::ZERO,
        /// Standard deviation of that time over its mean; it is normally distributed, drawn for
        /// each rank and round, and never negative.
        #[within(0..=1)]
        pub compute_jitter: f64 = 0.0,
        /// Ranks that are late in each round, as in ["3", "8..11"].
        pub stragglers: Vec<String> = Vec::new(),
        /// How late they are.
        pub straggler_delay: Time = Time::ZERO,
    }
}

pub(super) const COLLECTIVE: About = about(
    "ranks that send when what they wait for has arrived, as in an all-reduce",
    "NCCL; Schedgen; MPICH",
);
