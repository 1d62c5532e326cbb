//! What a port has done, and why frames were dropped.
//!
//! Invariant: every frame that was received is counted once as sent, per place that it was sent to, or once as dropped, by its reason.

use serde::Serialize;
use std::collections::BTreeMap;

macro_rules! drops {
    ($($(#[doc = $doc:literal])* $variant:ident = $word:literal),+ $(,)?) => {
        /// Why a frame went no further.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Drop { $($(#[doc = $doc])* $variant),+ }
        impl Drop {
            /// All of them.
            pub const ALL: &'static [Drop] = &[$(Drop::$variant),+];
            /// As results and metrics name it.
            pub const fn name(self) -> &'static str {
                match self { $(Drop::$variant => $word),+ }
            }
        }
    };
}

drops! {
    /// Shorter than an Ethernet header.
    Runt = "runt",
    /// Claims to come from a group address.
    SourceGroup = "source-group",
    /// Its virtio header does not fit it.
    BadOffload = "bad-offload",
    /// It is for the port that it came from.
    SamePort = "same-port",
    /// Its packets are longer than the MTU of the port that it is for.
    Oversized = "oversized",
    /// There is nowhere to send it to.
    Nowhere = "nowhere",
    /// The device's queue is full.
    PortFull = "port-full",
    /// The interface is down.
    PortDown = "port-down",
    /// The kernel found the frame wrong.
    PortRefused = "port-refused",
    /// The interface is gone.
    PortGone = "port-gone",
    /// All buffers are in use.
    NoBuffer = "no-buffer",
    /// No encapsulation, or one of another version.
    BadEncapsulation = "bad-encapsulation",
    /// Encapsulated, and then not a frame that may be.
    BadInner = "bad-inner",
    /// A label that no path has.
    UnknownLabel = "unknown-label",
    /// The path's queue is full.
    PathFull = "path-full",
    /// Nobody answers at the path's other end.
    Unreachable = "unreachable",
}

/// One port's, or one peer's.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Frames that came in: super-segments count once.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Super-segments among them.
    pub sent_large: u64,
    dropped: [u64; Drop::ALL.len()],
}

impl Counters {
    /// One more for this reason.
    #[inline]
    pub fn drop(&mut self, reason: Drop) {
        self.dropped[reason as usize] += 1;
    }
    /// How many for this reason.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.dropped[reason as usize]
    }
    /// For results: reasons that have not occurred are left out.
    pub fn reading(&self) -> Reading {
        let dropped = Drop::ALL.iter().filter(|r| self.dropped(**r) > 0).map(|r| (r.name(), self.dropped(*r)));
        Reading {
            received: self.received,
            received_bytes: self.received_bytes,
            sent: self.sent,
            sent_bytes: self.sent_bytes,
            sent_large: self.sent_large,
            dropped: dropped.map(|(name, n)| (name.to_string(), n)).collect(),
        }
    }
}

/// [`Counters`] as they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Reading {
    /// As in [`Counters`].
    pub received: u64,
    /// As in [`Counters`].
    pub received_bytes: u64,
    /// As in [`Counters`].
    pub sent: u64,
    /// As in [`Counters`].
    pub sent_bytes: u64,
    /// As in [`Counters`].
    pub sent_large: u64,
    /// By reason.
    pub dropped: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_distinct_and_only_what_occurred_is_shown() {
        let mut names: Vec<_> = Drop::ALL.iter().map(|d| d.name()).collect();
        names.dedup();
        assert_eq!(names.len(), Drop::ALL.len());
        let mut counters = Counters::default();
        counters.drop(Drop::Runt);
        assert_eq!(counters.reading().dropped, BTreeMap::from([("runt".to_string(), 1)]));
    }
}
