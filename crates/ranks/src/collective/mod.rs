//! Collectives as schedules: which messages each rank sends in which step, and for how many it
//! waits.
//!
//! A rank takes the steps of each of its *lanes* in order. A step waits for messages that name it,
//! then computes, then sends. So the send of a step waits for the receive of the step before at the
//! same rank, and for nothing else (Schedgen's rule). Messages of one lane leave the host in the
//! order of steps, one after the other; those of one step leave together. Lanes of one rank do not
//! wait for each other: they are NCCL's channels and slices, and the chunks of a tree. Each channel
//! does its share of the buffer as a collective of its own; of a pipeline, whose stages compute
//! once for a micro-batch, each message has a part on each channel.
//!
//! | file | algorithms |
//! |---|---|
//! | `ring` | ring all-reduce, reduce-scatter, all-gather |
//! | `doubling` | halving-doubling, recursive doubling |
//! | `tree` | binomial trees, NCCL's double binary tree, chains |
//! | `exchange` | all-to-all: pairwise, linear, Bruck, PXN; the dissemination barrier |
//! | `rails` | hierarchical all-reduce |
//! | `pipeline` | stages of a pipeline, one forward one backward |
//! | `closed` | times without contention, bus bandwidth |
//!
//! Invariant: each message that a rank sends is awaited by exactly one step of its receiver, and
//! each step awaits as many as are sent to it. A step is computed when it is asked for; nothing is
//! kept.

mod closed;
mod doubling;
mod exchange;
mod pipeline;
mod rails;
mod ring;
mod tree;

use millpond_core::{Time, choice};
use std::borrow::Cow;
use std::sync::Arc;

choice! {
    /// A collective's action on the ranks' buffers.
    #[derive(PartialOrd, Ord)]
    pub enum Operation {
        /// Every rank gets the sum of all buffers.
        AllReduce = "all-reduce",
        /// Every rank gets its share of the sum of all buffers.
        ReduceScatter = "reduce-scatter",
        /// Every rank gets the shares of all ranks.
        AllGather = "all-gather",
        /// Every rank gets the buffer of rank 0.
        Broadcast = "broadcast",
        /// Rank 0 gets the sum of all buffers.
        Reduce = "reduce",
        /// Every rank sends a block of its buffer to every other.
        AllToAll = "all-to-all",
        /// No rank goes on before all have come.
        Barrier = "barrier",
        /// Ranks are stages, which hand micro-batches forward and gradients back.
        Pipeline = "pipeline",
    }
}

choice! {
    /// How a collective is done.
    #[derive(PartialOrd, Ord)]
    pub enum Algorithm {
        /// The first in the table of its operation.
        Auto = "auto",
        /// Each rank sends to the next, share by share.
        Ring = "ring",
        /// Recursive halving, then doubling; the nearest partner first.
        HalvingDoubling = "halving-doubling",
        /// The same with the farthest partner first.
        HalvingDoublingFar = "halving-doubling-far",
        /// Pairs exchange whole buffers, at doubling distances.
        RecursiveDoubling = "recursive-doubling",
        /// Two binary trees, of which each carries half of the buffer.
        DoubleBinaryTree = "double-binary-tree",
        /// Within groups, then between equal members of all groups.
        Hierarchical = "hierarchical",
        /// A binomial tree.
        Binomial = "binomial",
        /// One step for each other rank.
        Pairwise = "pairwise",
        /// All messages at once.
        Linear = "linear",
        /// Blocks travel by powers of two.
        Bruck = "bruck",
        /// Blocks go first to the member of the own group that is on the destination's rail.
        Pxn = "pxn",
        /// Messages at doubling distances.
        Dissemination = "dissemination",
        /// One forward, one backward.
        OneForwardOneBackward = "1f1b",
    }
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 8] = [
        Operation::AllReduce,
        Operation::ReduceScatter,
        Operation::AllGather,
        Operation::Broadcast,
        Operation::Reduce,
        Operation::AllToAll,
        Operation::Barrier,
        Operation::Pipeline,
    ];
}

/// The algorithms of an operation; the first is what [`Algorithm::Auto`] means.
pub const fn algorithms(operation: Operation) -> &'static [Algorithm] {
    use Algorithm::*;
    match operation {
        Operation::AllReduce => &[
            Ring,
            HalvingDoubling,
            HalvingDoublingFar,
            RecursiveDoubling,
            DoubleBinaryTree,
            Hierarchical,
        ],
        Operation::ReduceScatter | Operation::AllGather => &[Ring],
        Operation::Broadcast => &[Binomial, Ring],
        Operation::Reduce => &[Binomial],
        Operation::AllToAll => &[Pairwise, Linear, Bruck, Pxn],
        Operation::Barrier => &[Dissemination],
        Operation::Pipeline => &[OneForwardOneBackward],
    }
}

/// The needs of a step before it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Messages that it waits for.
    pub awaits: u32,
    /// How long it computes then.
    pub work: Time,
}

/// A message that a step sends, on its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// To which rank.
    pub to: u32,
    /// How much.
    pub bytes: u64,
    /// Which of the receiver's steps waits for it.
    pub step: u32,
}

/// A step of a lane at a rank.
#[derive(Clone, Copy, Debug)]
struct Slot {
    rank: u32,
    lane: u32,
    step: u32,
}

/// A family of algorithms.
struct Schedule {
    /// For how many messages a step waits; nothing after the last step.
    awaits: fn(&Collective, Slot) -> Option<u32>,
    sends: fn(&Collective, Slot, &mut dyn FnMut(Send)),
}

const NOTHING: Schedule = Schedule { awaits: |_, _| None, sends: |_, _, _| {} };

/// A collective among `ranks` ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// Its action.
    pub operation: Operation,
    /// How; never [`Algorithm::Auto`].
    pub algorithm: Algorithm,
    /// How many take part: at least 2.
    pub ranks: u32,
    /// A rank's whole buffer. Of a pipeline: what a stage hands to the next for a micro-batch.
    pub bytes: u64,
    /// Channels: each does its share of the buffer by itself, on connections of its own.
    pub channels: u32,
    /// Parts of a ring's chunk that do not wait for each other.
    pub slices: u32,
    /// The largest chunk; `None`: there is no bound.
    pub chunk: Option<u64>,
    /// Ranks of a group, of those algorithms that have groups.
    pub group: u32,
    /// Of an all-to-all: what rank 0 receives, as a multiple of the mean.
    pub skew: f64,
    /// Of an all-to-all, pairwise or linear: the bytes from each rank to each, in the place of
    /// equal or skewed blocks. `bytes` is then the mean of the rows.
    pub matrix: Option<Matrix>,
    /// Of a pipeline.
    pub micro_batches: u32,
    /// How long a stage of a pipeline computes for a micro-batch, forward and backward.
    pub stage: (Time, Time),
}

/// The bytes from each rank to each.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Of all channels, a row a sender.
    blocks: Arc<[u64]>,
    /// How many channels divide each block, and which of them this is for.
    channels: (u32, u32),
}

impl Matrix {
    /// Of whole blocks, a row a sender.
    pub fn new(blocks: Arc<[u64]>) -> Matrix {
        Matrix { blocks, channels: (1, 0) }
    }

    /// All bytes.
    pub fn total(&self) -> u64 {
        self.blocks.iter().sum()
    }

    /// The block at a place.
    fn block(&self, place: u32) -> u64 {
        let (channels, own) = self.channels;
        share(self.blocks[place as usize], channels, own)
    }
}

impl Collective {
    /// In one channel, without groups and without a bound on chunks. `algorithm` is not
    /// [`Algorithm::Auto`]; `bytes` are of a rank's whole buffer.
    pub fn plain(operation: Operation, algorithm: Algorithm, ranks: u32, bytes: u64) -> Collective {
        Collective {
            operation,
            algorithm,
            ranks,
            bytes,
            channels: 1,
            slices: 1,
            chunk: None,
            group: 1,
            skew: 1.0,
            matrix: None,
            micro_batches: 1,
            stage: (Time::ZERO, Time::ZERO),
        }
    }

    /// Lanes that each rank has.
    pub fn lanes(&self) -> u32 {
        match self.algorithm {
            Algorithm::OneForwardOneBackward => 1,
            _ => self.channels * self.lanes_of_channel(),
        }
    }

    /// Lanes of the channel with the largest share, which is the first.
    fn lanes_of_channel(&self) -> u32 {
        let bytes = share(self.bytes, self.channels, 0);
        match self.algorithm {
            Algorithm::Ring if self.operation == Operation::Broadcast => {
                tree::pieces(bytes, self.chunk)
            }
            Algorithm::Ring => self.slices,
            Algorithm::DoubleBinaryTree => 2 * tree::pieces(share(bytes, 2, 0), self.chunk),
            _ => 1,
        }
    }

    /// The share of a channel, as a collective of one channel.
    fn of_channel(&self, channel: u32) -> Cow<'_, Collective> {
        if self.channels == 1 {
            return Cow::Borrowed(self);
        }
        let channels = (self.channels, channel);
        Cow::Owned(Collective {
            bytes: share(self.bytes, self.channels, channel),
            channels: 1,
            matrix: self.matrix.clone().map(|matrix| Matrix { channels, ..matrix }),
            ..self.clone()
        })
    }

    /// The needs of a step of a rank's lane; `None`: the lane has no such step.
    pub fn step(&self, rank: u32, lane: u32, step: u32) -> Option<Step> {
        if self.algorithm == Algorithm::OneForwardOneBackward {
            return pipeline::step(self, rank, step);
        }
        let of_channel = self.lanes_of_channel();
        let (own, lane) = (self.of_channel(lane / of_channel), lane % of_channel);
        let awaits = (own.schedule().awaits)(&own, Slot { rank, lane, step });
        awaits.map(|awaits| Step { awaits, ..Step::default() })
    }

    /// The messages that a step of a rank's lane sends, with their channels, in their order. The
    /// channels of one pair of ranks are different connections.
    pub fn sends(&self, rank: u32, lane: u32, step: u32, mut each: impl FnMut(u32, Send)) {
        if self.algorithm == Algorithm::OneForwardOneBackward {
            for channel in 0..self.channels {
                let own = self.of_channel(channel);
                pipeline::sends(&own, rank, step, &mut |send| each(channel, send));
            }
            return;
        }
        let of_channel = self.lanes_of_channel();
        let (channel, slot) = (lane / of_channel, Slot { rank, lane: lane % of_channel, step });
        let own = self.of_channel(channel);
        (own.schedule().sends)(&own, slot, &mut |send| each(channel, send));
    }

    fn schedule(&self) -> &'static Schedule {
        match self.algorithm {
            // A pipeline computes, and has its own.
            Algorithm::Auto | Algorithm::OneForwardOneBackward => &NOTHING,
            Algorithm::Ring if self.operation == Operation::Broadcast => &tree::CHAIN,
            Algorithm::Ring => &ring::RING,
            Algorithm::HalvingDoubling
            | Algorithm::HalvingDoublingFar
            | Algorithm::RecursiveDoubling => &doubling::DOUBLING,
            Algorithm::DoubleBinaryTree => &tree::DOUBLE,
            Algorithm::Hierarchical => &rails::RAILS,
            Algorithm::Binomial => &tree::BINOMIAL,
            Algorithm::Pairwise
            | Algorithm::Linear
            | Algorithm::Bruck
            | Algorithm::Pxn
            | Algorithm::Dissemination => &exchange::EXCHANGE,
        }
    }

    /// The bytes that one rank sends to another in an all-to-all.
    pub fn block(&self, from: u32, to: u32) -> u64 {
        if let Some(matrix) = &self.matrix {
            return matrix.block(from * self.ranks + to);
        }
        let own = share(self.bytes, self.ranks, to);
        if self.skew == 1.0 {
            return own;
        }
        let ranks = f64::from(self.ranks);
        let weight = match to {
            0 => self.skew,
            _ => (ranks - self.skew) / (ranks - 1.0),
        };
        (self.bytes as f64 / ranks * weight + 0.5) as u64
    }
}

/// Part `index` of a whole in `parts` parts: the first ones are a byte longer if it does not
/// divide.
pub(crate) fn share(whole: u64, parts: u32, index: u32) -> u64 {
    whole / u64::from(parts) + u64::from(u64::from(index) < whole % u64::from(parts))
}

#[cfg(test)]
mod tests;
