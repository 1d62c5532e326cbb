//! How much memory must be kept for what still comes after a pause was sent.
//!
//! A sender goes on until the pause has reached it, and what had left it by then arrives. So a
//! flow of rate R needs R·T for the feedback time T, what waits in its sender's NIC, what waits in
//! the fabric, and a batch that its sender has just taken. Together the flows of one receiver
//! cannot arrive faster than its link. Where pauses may be lost and are repeated every T/2, each
//! loss that is to be survived costs R·T/2 more.
//!
//! Invariant: rounded up everywhere; the result is never too small by rounding.

use super::pool::SLOTS;
use crate::units::{Bytes, Rate, Time};

/// The quantities that headroom depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// From the crossing of a threshold until the last packet has arrived that left before the
    /// sender stopped: detection, the message's way, the sender's poll, the packet's way.
    pub feedback: Time,
    /// Bytes that wait in the fabric, at most.
    pub fabric: Bytes,
    /// Pauses in a row whose loss must not hurt.
    pub losses: u64,
}

/// A flow that may have to be paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    pub rate: Rate,
    /// Its bytes that wait in its sender's NIC, at most.
    pub nic: Bytes,
    /// Bytes that its sender takes at a time, at most.
    pub batch: Bytes,
}

impl Loop {
    fn arriving(&self, rate: Rate) -> u64 {
        // T, and T/2 more a loss: half times are counted so that nothing is halved.
        let halves = u128::from(self.feedback.as_ps()) * u128::from(2 + self.losses);
        let bits = u128::from(rate.bps()).saturating_mul(halves);
        u64::try_from(bits.div_ceil(2 * 8 * 1_000_000_000_000)).unwrap_or(u64::MAX)
    }
    /// The headroom that one flow needs.
    pub fn of_flow(&self, flow: &Peak) -> Bytes {
        let waiting = flow.nic.0.saturating_add(self.fabric.0).saturating_add(flow.batch.0);
        Bytes(self.arriving(flow.rate).saturating_add(waiting))
    }
    /// The headroom that all flows need, whenever each of them is asked to pause.
    pub fn of_flows(&self, flows: &[Peak]) -> Bytes {
        Bytes(flows.iter().fold(0, |sum: u64, flow| sum.saturating_add(self.of_flow(flow).0)))
    }
    /// The headroom of all flows that arrive over one link and are asked *together*, as by a pause
    /// of their application: no more than the link can carry and the senders' NICs hold. `senders`:
    /// what waits in the NIC of each sender, whatever its number of flows. Flows that are asked one
    /// after the other fill the link in turn, and need [`Loop::of_flows`].
    pub fn of_link(&self, link: Rate, flows: &[Peak], senders: &[Bytes]) -> Bytes {
        let apart = self.of_flows(flows).0;
        let held = senders.iter().fold(self.fabric.0, |sum, nic| sum.saturating_add(nic.0));
        Bytes(apart.min(self.arriving(link).saturating_add(held)))
    }
}

/// Segments for `headroom` of packets of at least `smallest` bytes, of at most `flows` flows: each
/// may leave most of its last segment empty, and has read most of its first.
pub fn segments(headroom: Bytes, smallest: u32, flows: u64) -> u64 {
    headroom
        .0
        .div_ceil(u64::from(smallest.max(1)))
        .div_ceil(u64::from(SLOTS))
        .saturating_add(2 * flows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: Loop = Loop { feedback: Time::from_us(20), fabric: Bytes(0), losses: 0 };

    /// 100 Gb/s for 20 us are 250,000 bytes; 256 packets of 1500 bytes are 384,000; a batch of 32
    /// is 48,000.
    #[test]
    fn one_flow_by_hand() {
        let flow = Peak { rate: Rate::from_gbps(100), nic: Bytes(384_000), batch: Bytes(48_000) };
        assert_eq!(LOOP.of_flow(&flow), Bytes(682_000));
        let deep = Loop { fabric: Bytes(200_000), ..LOOP };
        assert_eq!(deep.of_flow(&flow), Bytes(882_000));
    }

    /// Four senders of 64 KiB each behind 100 Gb/s: 250,000 + 262,144.
    #[test]
    fn a_link_by_hand() {
        let flow = Peak { rate: Rate::from_gbps(100), nic: Bytes(65_536), batch: Bytes(48_000) };
        assert_eq!(
            LOOP.of_link(Rate::from_gbps(100), &[flow; 4], &[Bytes(65_536); 4]),
            Bytes(512_144)
        );
        // One slow flow needs less than the link could carry: 2,500 + 65,536 + 48,000.
        let slow = Peak { rate: Rate::from_gbps(1), ..flow };
        assert_eq!(
            LOOP.of_link(Rate::from_gbps(100), &[slow], &[Bytes(65_536); 4]),
            Bytes(116_036)
        );
    }

    /// Two losses double what arrives: 250,000 and twice 125,000.
    #[test]
    fn losses_by_hand() {
        let flow = Peak { rate: Rate::from_gbps(100), nic: Bytes(0), batch: Bytes(0) };
        assert_eq!(Loop { losses: 2, ..LOOP }.of_flow(&flow), Bytes(500_000));
        // 1 b/s for 20 us is a fraction of a bit, and a byte.
        assert_eq!(LOOP.of_flow(&Peak { rate: Rate(1), ..flow }), Bytes(1));
        assert_eq!(
            Loop { feedback: Time::MAX, ..LOOP }.of_flow(&Peak { rate: Rate(u64::MAX), ..flow }),
            Bytes(u64::MAX)
        );
    }

    /// 512,144 bytes of full packets are 342, in 6 segments; of 64 bytes 8,003, in 126.
    #[test]
    fn segments_by_hand() {
        assert_eq!(segments(Bytes(512_144), 1500, 4), 6 + 8);
        assert_eq!(segments(Bytes(512_144), 64, 0), 126);
        assert_eq!(segments(Bytes(0), 0, 0), 0);
    }
}
