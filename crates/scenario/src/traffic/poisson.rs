//! Poisson arrivals: one process for all hosts, each flow between a pair drawn for it. (A
//! superposition of a process a host with the same total rate is the same thing.)
//!
//! Invariant: gaps are rounded to picoseconds one by one and added as integers, so no error
//! accumulates.

use super::emitted::Emitted;
use super::load::{Load, Pairing};
use crate::cdf::Sizes;
use millpond_core::Time;
use millpond_core::random::Stream;
use millpond_core::switch::route::Attachment;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Poisson {
    pub random: Stream,
    pub at: Time,
    pub stop: Time,
    /// Seconds between flows on average.
    pub gap: f64,
    pub left: u64,
    pub sizes: Sizes,
    /// Bytes that ask for each flow; 0: sources send by themselves.
    pub request: u64,
    pub hosts: u32,
    /// Where hosts hang, if pairs must be on different leaves.
    pub inter_leaf: Option<Arc<Attachment>>,
    pub class: u16,
}

/// An exponential gap with this mean in seconds, in whole picoseconds.
pub(super) fn gap(random: &mut Stream, mean: f64) -> Time {
    Time::from_ps((random.exponential(mean) * 1e12 + 0.5) as u64)
}

/// A host other than `from`, on another leaf if `attachment` is given.
pub(super) fn other_host(
    random: &mut Stream,
    hosts: u32,
    from: u32,
    attachment: Option<&Attachment>,
) -> u32 {
    loop {
        let draw = random.below(hosts as u64 - 1) as u32;
        let host = draw + (draw >= from) as u32;
        match attachment {
            Some(a) if a.hosts[host as usize].0 == a.hosts[from as usize].0 => {}
            _ => return host,
        }
    }
}

impl Poisson {
    pub fn load(&self) -> Load {
        let answers = self.request > 0;
        let count = Time::from_ps((self.gap * self.left as f64 * 1e12) as u64);
        Load {
            class: self.class,
            bits_per_second: self.sizes.mean() * 8.0 / self.gap,
            pairing: match self.inter_leaf {
                Some(_) => Pairing::InterLeaf { answers },
                None => Pairing::Any,
            },
            members: None,
            start: self.at,
            end: self.stop.min(self.at.saturating_add(count)),
            half_of_bytes: Some(self.sizes.half_of_bytes()),
        }
    }

    pub fn next(&mut self) -> Option<(Time, Emitted)> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        self.at = self.at.saturating_add(gap(&mut self.random, self.gap));
        if self.at >= self.stop {
            self.left = 0;
            return None;
        }
        let src = self.random.below(self.hosts as u64) as u32;
        let dst = other_host(&mut self.random, self.hosts, src, self.inter_leaf.as_deref());
        let bytes = self.sizes.sample(&mut self.random);
        let (bytes, response) = if self.request == 0 { (bytes, 0) } else { (self.request, bytes) };
        Some((
            self.at,
            Emitted::Flow { src, dst, bytes, response, class: self.class, of_query: false },
        ))
    }
}
