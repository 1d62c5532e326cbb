//! The direction of a connection in which the host receives: which important packets wait for an
//! echo, and the ranges that an echo may have.
//!
//! An echo leaves at once: on the host's next pure acknowledgement that covers the important
//! packet, or after `echo_wait` in a frame of the shim's own. The frame repeats the acknowledgement
//! number that the host has sent last. It reports what has passed the shim in an option of its own,
//! which TCP ignores, and never in SACK: the host may have dropped it. The sender's shim takes the
//! report as a reason not to force these bytes; it keeps them until the host acknowledges them.
//!
//! Invariant: an echo acknowledges what the host has acknowledged, and no byte more.

use super::sequence::Numbers;
use millpond_core::Importance;
use millpond_core::ranges::Ranges;

/// Ranges beyond the acknowledgement that are remembered at most.
const RANGES_MAX: usize = 64;

/// An important packet without an echo.
#[derive(Clone, Copy, Debug)]
struct Pending {
    from: u64,
    to: u64,
    echo: Importance,
}

#[derive(Default)]
pub(super) struct Receiving {
    numbers: Numbers,
    /// The highest acknowledgement that the host has sent.
    acked: u64,
    /// The end of the window that the host has advertised.
    edge: u64,
    scale: u8,
    /// Payload beyond `acked` that has passed up to the host.
    passed: Ranges,
    pending: Option<Pending>,
    fin: Option<u64>,
}

impl Receiving {
    /// Of a connection that opens. `window`: as the host's handshake packet has it.
    pub fn new(isn: u32, window: u16, scale: u8) -> Receiving {
        let (numbers, edge) = (Numbers::new(isn), window.into());
        Receiving { numbers, edge, scale, ..Receiving::default() }
    }

    pub fn numbers(&self) -> Numbers {
        self.numbers
    }
    /// The host's acknowledgement as a sequence number.
    pub fn ack(&self) -> u32 {
        self.numbers.wire(self.acked)
    }
    /// Whether the host has acknowledged the peer's FIN.
    pub fn is_done(&self) -> bool {
        self.fin.is_some_and(|at| self.acked > at)
    }

    /// Whether an important packet waits for its echo.
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Payload comes. Returns whether an echo is due now that was not before.
    pub fn on_data(&mut self, seq: u32, len: usize, has_fin: bool, importance: Importance) -> bool {
        let from = self.numbers.offset(self.acked, seq);
        let (from, to) = from.map_or((0, 0), |from| (from, from + len as u64));
        if len > 0 && self.acked < to && to <= self.edge && self.passed.iter().count() < RANGES_MAX
        {
            self.passed.insert(from.max(self.acked), to);
        }
        if has_fin && to >= self.acked && to <= self.edge {
            self.fin = Some(to);
        }
        let echo = importance.echo();
        if echo == Importance::Control || len == 0 {
            return false;
        }
        let was_pending = self.pending.replace(Pending { from, to, echo }).is_some();
        !was_pending
    }

    /// The host sends a packet with an acknowledgement and a window. Returns whether the
    /// acknowledgement is of this connection.
    pub fn on_sent(&mut self, ack: u32, window: u16) -> bool {
        let Some(at) = self.numbers.offset(self.acked, ack) else { return false };
        if at >= self.acked {
            self.acked = at;
            self.edge = at + (u64::from(window) << self.scale);
            self.passed.remove_below(at);
        }
        true
    }

    /// The host sends a pure acknowledgement with these SACK blocks: the echo that it carries.
    pub fn take_echo(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Option<Importance> {
        let pending = self.pending?;
        let ack = self.numbers.offset(self.acked, ack)?;
        let covers = |&(from, to): &(u32, u32)| {
            let ends = (self.numbers.offset(ack, from), self.numbers.offset(ack, to));
            matches!(ends, (Some(from), Some(to)) if from <= pending.from && pending.to <= to)
        };
        if ack < pending.to && !blocks.iter().any(covers) {
            return None;
        }
        self.pending = None;
        Some(pending.echo)
    }

    /// The echo to send in a frame of the shim's own, and the ranges that it reports: the lowest.
    pub fn echo(&mut self, ranges: &mut Vec<(u32, u32)>) -> Option<Importance> {
        let pending = self.pending.take()?;
        ranges.clear();
        let lowest = self.passed.iter().take(super::options::RANGES_MAX);
        ranges.extend(lowest.map(|(a, b)| (self.numbers.wire(a), self.numbers.wire(b))));
        Some(pending.echo)
    }
}
