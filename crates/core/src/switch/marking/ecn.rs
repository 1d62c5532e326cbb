//! Step marking on the instantaneous queue length, as DCTCP asks of its switches (RFC 8257 §3.1; SIGCOMM 2010 §3.1).
//!
//! Invariant: at a given queue length the answer is always the same; there is no average and no randomness.

use crate::registry::About;
use crate::switch::QueueView;
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "sets CE when the queue is at least as long as a threshold",
    source: "RFC 8257 §3.1; DCTCP, SIGCOMM 2010 §3.1",
    needs: &[],
    breaks: &[],
    restores: &[],
};

crate::choice! {
    /// When the queue's length is looked at.
    pub enum MarkAt {
        /// On arrival: the packets that wait, without the arriving one.
        Enqueue = "enqueue",
        /// On departure: the packets that wait, with the departing one. Tells the sender one queueing delay sooner.
        Dequeue = "dequeue",
    }
}

crate::params! {
    /// Step marking.
    pub struct EcnParams {
        /// CE is set when at least this many packets wait. Source: 65 at 10 Gb/s (DCTCP, SIGCOMM 2010 §3.4). Ignored
        /// where threshold-bytes is given.
        pub threshold_packets: u32 = 65,
        /// CE is set when at least this many bytes wait. Source: RFC 8257 §3.1; off means that packets are counted.
        pub threshold_bytes: Option<Bytes> = None,
        /// Whether the queue is looked at on arrival or on departure. Source: RFC 8257 §3.1 leaves it open; arrival is
        /// the DCTCP paper's.
        pub at: MarkAt = MarkAt::Enqueue,
    }
}

/// The step marker.
#[derive(Clone, Debug)]
pub struct Ecn {
    /// In packets; `u32::MAX` where bytes count.
    packets: u32,
    /// In bytes; `u64::MAX` where packets count.
    bytes: u64,
    at: MarkAt,
}

impl Ecn {
    pub(super) fn new(params: &EcnParams) -> Ecn {
        match params.threshold_bytes {
            Some(bytes) => Ecn { packets: u32::MAX, bytes: bytes.0, at: params.at },
            None => Ecn { packets: params.threshold_packets, bytes: u64::MAX, at: params.at },
        }
    }
    #[inline]
    fn above(&self, view: &QueueView) -> bool {
        view.packets >= self.packets || view.bytes >= self.bytes
    }
    #[inline]
    pub(super) fn at_enqueue(&self, view: &QueueView) -> bool {
        self.at == MarkAt::Enqueue && self.above(view)
    }
    #[inline]
    pub(super) fn at_dequeue(&self, view: &QueueView) -> bool {
        self.at == MarkAt::Dequeue && self.above(view)
    }
    #[inline]
    pub(super) fn marks_at_dequeue(&self) -> bool {
        self.at == MarkAt::Dequeue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(packets: u32, bytes: u64) -> QueueView {
        QueueView { packets, bytes }
    }

    #[test]
    fn marks_when_at_least_the_threshold_waits() {
        let ecn = Ecn::new(&EcnParams::default());
        assert!(!ecn.at_enqueue(&view(64, 96_000)));
        assert!(ecn.at_enqueue(&view(65, 97_500)));
        assert!(!ecn.at_dequeue(&view(65, 97_500)));
    }

    #[test]
    fn bytes_take_the_place_of_packets() {
        let ecn =
            Ecn::new(&EcnParams { threshold_bytes: Some(Bytes(30_000)), at: MarkAt::Dequeue, ..Default::default() });
        assert!(!ecn.at_dequeue(&view(1_000, 29_999)));
        assert!(ecn.at_dequeue(&view(1, 30_000)));
        assert!(!ecn.at_enqueue(&view(1_000, 30_000)));
    }
}
