//! Limit: *pass, mark or drop?* A host holds traffic to a bandwidth without queueing it.
//!
//! | file | what it decides |
//! |---|---|
//! | `queue` | how far a virtual queue is behind, in bytes or in time |
//! | `decide` | what a packet gets for it: pass, CE, a window reduction, a drop |
//! | `scopes` | which of several limits speaks for a packet |
//! | `share` | how fast each connection of a scope may send |
//! | `loss` | which packets an arriving connection loses |
//! | `window` | how much it may have under way, and when it may go on |
//! | `length` | how many bytes a packet is charged |
//! | `params` | from what a user writes to integers |
//!
//! Follows NRM (Brakmo, Starovoitov: BPF Host Network Resource Management, Linux Plumbers
//! Conference 2018) and, where the slides are silent, the behaviour of the sample that came of it
//! in Linux 5.2. A *virtual queue* is a number that may go negative; how negative it is becomes a
//! congestion signal to the sender, long before anything waits.
//!
//! All of it is integer arithmetic on `#[repr(C)]` values, because it exists twice: here, and as
//! `limit.h` for eBPF. Times are nanoseconds, as the kernel's clock gives them. Nothing here
//! divides a signed number (eBPF could not).
//!
//! Invariant: the same state, settings, packet, time and draw give the same verdict and the same
//! state in both.

mod decide;
mod length;
mod loss;
mod params;
mod queue;
mod scopes;
mod share;
mod window;

pub use decide::{Ask, Verdict, decide};
pub use length::{Length, wire_bytes};
pub use loss::{Arrival, Loss, SHORT as SHORT_RTT, space};
pub use params::{Direction, IngressMode, LimitParams, RATES, Reaction};
pub use queue::{Charge, Form, State, behind, charge, refund};
pub use scopes::{Counts, Outcome, Scope, Scopes, congestion};
pub use share::{EVERY as SHARE_EVERY, Share, adjust};
pub use window::{pause, window};

/// Settings of one virtual queue, as integers. Amounts are bytes for [`Form::Credit`] and
/// nanoseconds for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Settings {
    /// Bytes a nanosecond, with [`POINT`] binary places.
    pub rate: u64,
    /// Nanoseconds a byte, with [`POINT`] binary places.
    pub cost: u64,
    /// The most that may be saved up.
    pub burst: i64,
    /// Further behind than this, senders are notified.
    pub mark: i64,
    /// Further behind than this, any packet is dropped.
    pub drop: i64,
    /// Further behind than this, packets larger than [`SMALL`] are dropped: the rest is kept for
    /// small ones.
    pub drop_large: i64,
    /// A flow that has nothing else in flight is let through up to here; 0: never.
    pub bypass: i64,
    /// [`Reaction::RttAware`] notifies flows with longer round trips less often than this one; in
    /// microseconds.
    pub reference_rtt: u32,
    /// A [`Form`].
    pub form: u32,
    /// A [`Reaction`].
    pub reaction: u32,
    /// Bits of [`flags`].
    pub flags: u32,
}

const _: () = assert!(size_of::<Settings>() == 72);

/// Bits of [`Settings::flags`].
pub mod flags {
    /// Senders without ECN are never asked to reduce their windows.
    pub const NO_CWR: u32 = 1;
    pub const MARK_ONLY: u32 = 2;
    /// It marks and drops nothing; what it would have done is counted.
    pub const OBSERVE: u32 = 4;
    /// Its connections share its rate: each is paced at the [`Share`](super::Share).
    pub const SHARE: u32 = 8;
    /// Arriving connections lose one packet at a time; see [`space`](super::space).
    pub const SPACED: u32 = 16;
    /// Receive windows of its connections follow its queue; see [`window`](super::window).
    pub const HELD: u32 = 32;
    /// A qdisc below holds packets until they may leave: datagrams are dropped beyond `drop` alone.
    pub const WAITS: u32 = 64;
}

/// Binary places of [`Settings::rate`] and [`Settings::cost`]. The published program has 20; 24
/// keep the error of a rate below 0.01 % from 5 Mb/s on, and leave room for 1 Tb/s over the longest
/// time that is counted at once ([`IDLE_MAX`]).
pub const POINT: u32 = 24;
/// A queue that was idle for longer counts as idle for this long, in nanoseconds, so that no
/// product overflows. It fills any burst.
pub const IDLE_MAX: u64 = 1_000_000_000;
/// Packets up to this many bytes may use the reserve. Source: the published program.
pub const SMALL: u32 = 120;
/// A queue is never further behind than this many times its drop threshold, whatever is let
/// through.
pub const FLOOR: i64 = 4;

#[cfg(test)]
mod tests;
