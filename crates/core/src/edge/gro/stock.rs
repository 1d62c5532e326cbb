//! Receive offload as the Linux kernel does it (net/core/gro.c and net/ipv4/tcp_offload.c): the
//! baseline.
//!
//! Held segments lie in eight buckets by hash, eight a bucket at most; a flow has one. A packet
//! joins its flow's segment if it continues it exactly and the headers agree; otherwise that
//! segment goes up and the packet begins another. So does a segment that a short packet or a flag
//! has ended, the oldest of a full bucket, and at the end of a poll all that is left. The kernel
//! keeps segments over polls only with `gro_flush_timeout`, which is not modelled.
//!
//! The kernel compares the link header too, so packets of one flow that carry their path in it (a
//! shadow MAC, an outer port) are different flows to it. Whether they are here is `labels`.
//!
//! Invariant: a flow's packets leave in the order in which they came; after [`Stock::flush`]
//! nothing is held.

use super::segment::{Segments, is_single, pass};
use super::{Arrival, Cause, Counters, Labels, Released, StockGroParams};
use crate::units::Time;

const BUCKETS: usize = 8;
const HELD: usize = 8;

/// Held segments of one bucket, the oldest first.
#[derive(Clone, Copy, Debug)]
struct Bucket<F> {
    count: usize,
    held: [Option<(F, u32)>; HELD],
}

impl<F: Copy> Bucket<F> {
    fn remove(&mut self, at: usize) {
        self.held.copy_within(at + 1..self.count, at);
        self.count -= 1;
    }
}

/// A receive queue that merges as Linux does (`net/core/gro.c`).
#[derive(Clone, Debug)]
pub struct Stock<F, P> {
    keeps_labels: bool,
    buckets: [Bucket<F>; BUCKETS],
    segments: Segments<P>,
    counters: Counters,
}

impl<F: Copy + Eq, P: Copy> Stock<F, P> {
    pub fn new(params: &StockGroParams) -> Self {
        Stock {
            keeps_labels: params.labels == Labels::Kept,
            buckets: [Bucket { count: 0, held: [None; HELD] }; BUCKETS],
            segments: Segments::default(),
            counters: Counters::default(),
        }
    }

    /// Merges a packet with its flow's segment, or releases that one and starts another.
    #[inline]
    pub fn receive(
        &mut self,
        now: Time,
        arrival: &Arrival<F>,
        packet: P,
        out: &mut impl FnMut(Released<'_, F, P>),
    ) {
        let bucket = &mut self.buckets[arrival.hash as usize % BUCKETS];
        let segments = &self.segments;
        let is_same = |(flow, at): (F, u32)| {
            flow == arrival.flow && (!self.keeps_labels || segments[at].path == arrival.path)
        };
        let found = (0..bucket.count).find(|i| bucket.held[*i].is_some_and(is_same));
        if let Some(i) = found {
            let Some((flow, at)) = bucket.held[i] else { unreachable!("it was found") };
            let added = self.segments.append::<false, F>(at, now, arrival, packet);
            let cause = match added {
                Ok(false) => return,
                Ok(true) => Cause::Complete,
                Err(_) => Cause::Ejected,
            };
            bucket.remove(i);
            self.segments.release(at, flow, cause, &mut self.counters, out);
            if added.is_ok() {
                return;
            }
        }
        if is_single(arrival) {
            return pass(now, arrival, packet, &mut self.counters, out);
        }
        if bucket.count == HELD {
            let Some((flow, at)) = bucket.held[0] else { unreachable!("a full bucket") };
            bucket.remove(0);
            self.segments.release(at, flow, Cause::Oldest, &mut self.counters, out);
        }
        bucket.held[bucket.count] = Some((arrival.flow, self.segments.begin(now, arrival, packet)));
        bucket.count += 1;
    }

    /// The poll ends: all that is held goes up.
    pub fn flush(&mut self, out: &mut impl FnMut(Released<'_, F, P>)) {
        for bucket in &mut self.buckets {
            for (flow, at) in bucket.held[..std::mem::take(&mut bucket.count)].iter().flatten() {
                self.segments.release(*at, *flow, Cause::PollEnd, &mut self.counters, out);
            }
        }
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
