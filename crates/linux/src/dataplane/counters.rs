//! Counters of a port: what it has done, and why frames were dropped.
//!
//! Invariant: every frame that was received is counted once as sent, per place that it was sent to,
//! or once as dropped, by its reason; unless it still waits in a queue, or was a pause frame and
//! obeyed.

use crate::dataplane::port::Refusal;
use crate::dataplane::port::shared::Refused;
use millpond_core::counters::DropReason;
use serde::Serialize;
use std::collections::BTreeMap;

/// Reasons by name.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $word:literal),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $doc])* $variant),+ }
        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// As results and metrics name it.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }
    };
}
pub(crate) use named;

named! {
/// Why a frame went no further.
pub enum Drop {
    /// Shorter than an Ethernet header.
    Runt = "runt",
    /// Claims to come from a group address.
    SourceGroup = "source-group",
    /// Its virtio header does not fit it.
    BadOffload = "bad-offload",
    /// A super-segment of more and smaller packets than its port may send.
    SmallGso = "small-gso",
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
    /// The queue of its interface to the switch was full: the kernel has dropped it.
    DeviceFull = "device-full",
    /// The queue of the socket that it came to was full: the kernel has dropped it.
    SocketFull = "socket-full",
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
    /// The peer has not made it, or not for this process.
    Stranger = "stranger",
    /// It has come before.
    Replayed = "replayed",
    /// The peer and this process have not agreed on a session yet.
    NoSession = "no-session",
    /// A MAC control frame with an unknown opcode or form.
    BadControl = "bad-control",
    /// Its source is in use elsewhere, or not among those that its port may have.
    ForeignSource = "foreign-source",
    /// Its IP, ARP or neighbour discovery claims an address that its port does not have.
    SourceGuard = "source-guard",
    /// A probe of the switch's own that has come back, or a frame of a port that a loop blocks.
    Loop = "loop",
    /// Its VLAN is none that the port carries which it came from or is for, or its tag is not to be
    /// there.
    ForeignVlan = "foreign-vlan",
    /// It is for its link alone (IEEE 802.1Q §8.6.3): LLDP, LACP, spanning tree.
    LinkLocal = "link-local",
    /// No application is attached to the port.
    NoApplication = "no-application",
    /// An application's or a guest's descriptor names no frame.
    BadDescriptor = "bad-descriptor",
    /// There was no memory for it to wait in, and its sender could not keep it.
    LossPool = "loss-pool",
    /// Its peer has paused its flow, and there was no memory for it to wait in.
    LossHeld = "loss-held",
    /// It had waited for an application that has gone.
    LossAppExit = "loss-app-exit",
    /// No guest is attached to the port whose driver is up.
    NoGuest = "no-guest",
    /// It had waited for a guest that has gone.
    LossGuestExit = "loss-guest-exit",
    /// The switch's own code failed at it (`fault`).
    InternalError = "internal-error",
}
}

impl Refused {
    /// As a reason to drop.
    pub(crate) fn reason(self) -> Drop {
        match self {
            Refused::NoApplication => Drop::NoApplication,
            Refused::NoMemory => Drop::LossPool,
            Refused::TooLong => Drop::Oversized,
        }
    }
}

impl Refusal {
    /// As a reason to drop.
    pub fn reason(self) -> Drop {
        match self {
            Refusal::Full => Drop::PortFull,
            Refusal::Down => Drop::PortDown,
            Refusal::TooLong => Drop::Oversized,
            Refusal::Invalid => Drop::PortRefused,
            Refusal::Gone => Drop::PortGone,
            Refusal::Unreachable => Drop::Unreachable,
            Refusal::Descriptor => Drop::BadDescriptor,
            Refusal::NoGuest => Drop::NoGuest,
        }
    }
}

/// One port's, or one peer's.
#[derive(Clone, Debug)]
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
    discarded: [u64; DropReason::ALL.len()],
    /// The kernel's own count of losses when it was looked at last.
    kernel: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            received: 0,
            received_bytes: 0,
            sent: 0,
            sent_bytes: 0,
            sent_large: 0,
            dropped: [0; Drop::ALL.len()],
            discarded: [0; DropReason::ALL.len()],
            kernel: 0,
        }
    }
}

impl Counters {
    /// A frame of so many bytes has come in.
    #[inline]
    pub fn receive(&mut self, length: usize) {
        self.received += 1;
        self.received_bytes += length as u64;
    }
    /// One more for this reason.
    #[inline]
    pub fn drop(&mut self, reason: Drop) {
        self.dropped[reason as usize] += 1;
    }
    /// The kernel's own count of losses is this now; one that has fallen has begun anew.
    pub fn rose(&mut self, reason: Drop, total: u64) {
        self.dropped[reason as usize] += total.checked_sub(self.kernel).unwrap_or(total);
        self.kernel = total;
    }
    /// Of the kernel's count what is beyond this is to be counted.
    pub fn rises_from(&mut self, total: u64) {
        self.kernel = total;
    }
    /// Frames that the kernel has lost.
    pub fn lost_by_kernel(&self) -> u64 {
        self.dropped(Drop::DeviceFull) + self.dropped(Drop::SocketFull)
    }
    /// How many for this reason.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.dropped[reason as usize]
    }
    /// One more for a reason that a queue had.
    #[inline]
    pub fn discard(&mut self, reason: DropReason) {
        self.discarded[reason as usize] += 1;
    }
    /// How many for a reason that a queue had.
    pub fn discarded(&self, reason: DropReason) -> u64 {
        self.discarded[reason as usize]
    }
    /// For results: reasons that have not occurred are left out.
    pub fn reading(&self) -> Reading {
        let dropped = Drop::ALL.iter().map(|reason| (reason.name(), self.dropped(*reason)));
        let discarded =
            DropReason::ALL.iter().map(|reason| (reason.name(), self.discarded(*reason)));
        let dropped = dropped.chain(discarded).filter(|(_, count)| *count > 0);
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

impl Reading {
    /// Adds what another worker has counted.
    pub fn add(&mut self, other: &Reading) {
        self.received += other.received;
        self.received_bytes += other.received_bytes;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.sent_large += other.sent_large;
        for (reason, count) in &other.dropped {
            *self.dropped.entry(reason.clone()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_kernels_losses_are_counted_once() {
        let mut counters = Counters::default();
        counters.rises_from(100);
        for total in [100, 130, 130, 5, 7] {
            counters.rose(Drop::DeviceFull, total);
        }
        assert_eq!((counters.dropped(Drop::DeviceFull), counters.lost_by_kernel()), (37, 37));
    }

    #[test]
    fn reasons_are_distinct_and_only_what_occurred_is_shown() {
        let names = Drop::ALL
            .iter()
            .map(|reason| reason.name())
            .chain(DropReason::ALL.iter().map(|it| it.name()));
        let names: BTreeSet<_> = names.collect();
        assert_eq!(names.len(), Drop::ALL.len() + DropReason::ALL.len());
        let mut counters = Counters::default();
        counters.drop(Drop::Runt);
        counters.discard(DropReason::QueueFull);
        let dropped = BTreeMap::from([("runt".to_string(), 1), ("queue-full".to_string(), 1)]);
        assert_eq!(counters.reading().dropped, dropped);
    }
}
