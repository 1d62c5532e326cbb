//! The receiving end: each subflow acknowledges its own bytes, and the stream is put together by
//! the packets' mappings.
//!
//! A packet's bytes count as there as soon as it arrives, also where its subflow misses earlier
//! ones: it carries its mapping. Linux hands them up by subflow, in order; the end of a stream is
//! the same.
//!
//! Invariant: each byte of the stream is delivered once and in order, whatever subflows repeat.

use super::{Config, tcp};
use crate::endpoint::{AckOut, Arrived, DataIn, Receives};
use millpond_core::ranges::Ranges;
use millpond_core::{Mapping, Time};

#[derive(Clone, Debug)]
pub struct Receiver {
    subflows: Box<[tcp::Receiver]>,
    /// The next byte of the stream.
    next: u64,
    /// The bytes that have arrived beyond it.
    held: Ranges,
    /// Which of the run's MPTCP transports it follows.
    which: u8,
}

impl Receiver {
    /// Nothing received, of a connection that follows MPTCP transport `which`.
    pub fn new(which: u8, cfg: &[Config]) -> Receiver {
        let subflows = vec![tcp::Receiver::new(); usize::from(cfg[usize::from(which)].subflows)];
        Receiver { subflows: subflows.into(), next: 0, held: Ranges::default(), which }
    }

    #[cfg(test)]
    pub fn received(&self) -> u64 {
        self.next
    }
}

impl Receives for Receiver {
    type Config = [Config];

    fn on_data(&mut self, now: Time, p: DataIn, cfg: &[Config]) -> Arrived {
        let cfg = &cfg[usize::from(self.which)].tcp;
        let nothing = Arrived::so_far(self.next);
        let Some(Mapping { subflow, data }) = p.mapping else { return nothing };
        let Some(own) = self.subflows.get_mut(usize::from(subflow)) else { return nothing };
        let arrived = own.on_data(now, p, cfg);
        let (from, to) = (data.max(self.next), data + u64::from(p.len));
        if from == self.next {
            self.next = to.max(self.next);
        } else if from < to {
            self.held.insert(from, to);
        }
        if let Some((_, end)) = self.held.around(self.next) {
            self.next = end;
        }
        self.held.remove_below(self.next);
        Arrived { in_order_upto: self.next, ..arrived }
    }

    fn expected(&self, mapping: Option<Mapping>) -> u64 {
        let subflow = usize::from(mapping.unwrap_or_default().subflow);
        self.subflows.get(subflow).map_or(0, |subflow| subflow.expected(None))
    }

    fn deadline(&self) -> Time {
        self.subflows.iter().map(tcp::Receiver::deadline).min().unwrap_or(Time::MAX)
    }

    fn on_timer(&mut self, now: Time, cfg: &[Config]) -> Option<(AckOut, Option<u8>)> {
        let cfg = &cfg[usize::from(self.which)].tcp;
        let due = self.subflows.iter().position(|subflow| subflow.deadline() <= now)?;
        let (ack, _) = self.subflows[due].on_timer(now, cfg)?;
        Some((ack, Some(due as u8)))
    }
}
