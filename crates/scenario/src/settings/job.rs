//! Jobs: traffics of ranks that wait for each other, and where their ranks are.

use millpond_core::params::{Field, Form, Value, ValueError};
use millpond_core::{Bytes, Time, choice, params};
use millpond_ranks::collective::{Algorithm, Operation};
use millpond_ranks::program::Program;
use std::sync::Arc;

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

choice! {
    /// The connections that carry a job's messages.
    pub enum Connections {
        /// Each pair of ranks has one on each channel, which lasts: a message follows the one
        /// before.
        Lasting = "lasting",
        /// Each message has one of its own, with a handshake where the transport has one, a
        /// congestion window from its beginning, and a hash of its own.
        PerMessage = "per-message",
    }
}

params! {
    /// A collective operation among ranks.
    pub struct CollectiveParams {
        /// The operation of the ranks on their buffers.
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
        /// The job's place in that order: rank 0 is on the host of this number. Jobs whose ranges
        /// do not overlap share no host.
        pub first: u32 = 0,
        /// The connections that carry messages.
        pub connections: Connections = Connections::Lasting,
        /// Channels, each of which does its share of the buffer on connections of its own. With
        /// `host.nic.choice` "rail" channel c has NIC c.
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
        /// Of an all-to-all, pairwise or linear: for each rank a text of the bytes that it sends
        /// to each rank, as in ["0 2MB 100KB", "2MB 0 0", "0 1MB 0"]; in the place of `size` and
        /// `skew`.
        pub matrix: Vec<String> = Vec::new(),
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

/// A file of rank programs, and what was in it once it has been read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramFile {
    /// Its path, relative to the scenario; empty: none is named.
    pub path: String,
    /// The program that was in it.
    pub program: Option<Arc<Program>>,
}

impl Field for ProgramFile {
    const FORM: Form = Form::Text;
    fn to_value(&self) -> Value {
        Value::Text(self.path.clone())
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        match value {
            Value::Text(path) => Ok(ProgramFile { path: path.clone(), program: None }),
            _ => Err(ValueError("expected the path of a file".into())),
        }
    }
}

params! {
    /// Programs of ranks in GOAL's form, as LogGOPSim and its Schedgen have them.
    pub struct GoalParams {
        /// GOAL as text or binary, relative to the scenario file.
        pub file: ProgramFile = ProgramFile::default(),
        /// A hash of the file, as results write it: with it, a file that has changed since is an
        /// error.
        pub digest: Option<String> = None,
        /// The order of hosts in which ranks are placed.
        pub placement: Placement = Placement::Packed,
        /// The job's place in that order: rank 0 is on the host of this number.
        pub first: u32 = 0,
        /// The connections that carry messages.
        pub connections: Connections = Connections::Lasting,
        /// The cpu's time for a message, sent or received. Source: o of LogGOPS, which packets
        /// leave as it is.
        pub message_cost: Time = Time::ZERO,
        /// The cpu's time for a byte beyond a message's first. Source: O of LogGOPS.
        pub byte_cost: Time = Time::ZERO,
        /// The largest message whose send ends before it is received; a larger one ends when its
        /// receive has it. Source: S of LogGOPS, 65,535 in LogGOPSim.
        pub eager: Bytes = Bytes(65_535),
    }
}

params! {
    /// Execution traces of ranks in Chakra's form.
    pub struct ChakraParams {
        /// The traces, relative to the scenario file: "job" stands for job.0.et, job.1.et and so
        /// on, a file for each rank. "{rank}" in the name is the rank's place in other names.
        pub file: ProgramFile = ProgramFile::default(),
        /// A JSON object of process groups, relative to the scenario file: names, each with its
        /// list of ranks. Groups that a trace defines itself come first.
        pub groups: Option<String> = None,
        /// A hash of the files, as results write it: with it, files that have changed since are an
        /// error.
        pub digest: Option<String> = None,
        /// The order of hosts in which ranks are placed.
        pub placement: Placement = Placement::Packed,
        /// The job's place in that order: rank 0 is on the host of this number.
        pub first: u32 = 0,
        /// The connections that carry messages.
        pub connections: Connections = Connections::Lasting,
        /// The largest message whose send ends when the network has it; a larger one ends when its
        /// receive has it, as in MPI. Without it a send ends when its message has arrived, whether
        /// or not a receive is posted, as in ASTRA-sim. The rank's next communication waits for it.
        pub eager: Option<Bytes> = None,
    }
}

params! {
    /// Layers of a model in SimAI's form.
    pub struct SimaiParams {
        /// SimAI's workload text, relative to the scenario file. It gives the number of ranks.
        pub file: ProgramFile = ProgramFile::default(),
        /// A hash of the file, as results write it: with it, a file that has changed since is an
        /// error.
        pub digest: Option<String> = None,
        /// How often the layers are run forward and back.
        #[within(1..=1000000)]
        pub iterations: u32 = 1,
        /// The order of hosts in which ranks are placed.
        pub placement: Placement = Placement::Packed,
        /// The job's place in that order: rank 0 is on the host of this number.
        pub first: u32 = 0,
        /// The connections that carry messages.
        pub connections: Connections = Connections::Lasting,
    }
}
