//! Importance: *is this packet important?* Hosts mark the few packets whose loss would cause a timeout.
//!
//! | file | for |
//! |---|---|
//! | `window` | transports with a window (TCP, DCTCP): one important packet in flight, always |
//! | `rate` | transports without an ACK clock: the last packet of a message, the first after a rewind |
//!
//! Follows TLT (Lim, Bai, Zhu, Jung, Han: Towards timeout-less transport in commodity datacenter networks, EuroSys 2021) and
//! its authors' published simulators. A drop causes a timeout only where nothing that arrives later tells the sender of
//! it. So it is enough that one data packet a flow, or the acknowledgement of one, is in the network and cannot be dropped:
//! what was sent before it and is not acknowledged by its echo is lost, and the sender knows within two round trips.
//! Switches that know two colors ([`Importance::color`](crate::Importance::color)) drop the others beyond a threshold and so keep room
//! for these.
//!
//! A receiver needs no state: it answers an important packet at once, with an echo
//! ([`Importance::echo`](crate::Importance::echo)). Data on the way back never carries one.
//!
//! TLT changes no window and no rate. It marks, sometimes forces out a packet that the transport would not have sent, and
//! reads echoes. All of it is free of clocks and I/O: the same machine can mark the traffic of an unmodified TCP at the
//! host's edge.
//!
//! Invariant: while a flow has data unacknowledged, an important data packet of it is in flight, or its echo is, or the
//! sender is about to send one.

mod rate;
mod window;

pub use rate::{RateMarker, RateParams};
pub use window::{First, Force, Forced, LostRounds, Marker, Sent, Standing, WindowParams};

use crate::registry::{About, PathProperty};

crate::params! {
    /// All packets are alike.
    pub struct AlikeParams {}
}

const ALIKE: About = About { summary: "all packets are alike", source: "", needs: &[], breaks: &[], restores: &[] };
const WINDOW: About = About {
    summary: "one data packet a flow is important, and its echo: what was sent before it and is not echoed is lost",
    source: "Lim et al.: Towards timeout-less transport in commodity datacenter networks, EuroSys 2021",
    needs: &[PathProperty::FifoPerFlow, PathProperty::ImportantSurvives, PathProperty::TimersRun],
    breaks: &[],
    restores: &[],
};

crate::registry! {
    /// Which packets are important.
    place: "transport.importance", question: "is this packet important?", default: None,
    params: ImportanceParams;
    "none" => None { AlikeParams; ALIKE },
    "tlt" => Tlt { WindowParams; WINDOW },
}

#[cfg(test)]
mod tests;
