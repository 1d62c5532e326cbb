//! Amounts that were left to a rule ("auto") that takes the network: written out before anything is
//! built of it.
//!
//! An amount that follows a port's rate or memory stays "auto" in a plan and is worked out at each
//! port; so is one that the packets of a family decide (`rdma.base-rtt`, `homa-rtt-bytes`).
//!
//! Invariant: an amount that is written stays what it is.

use crate::settings::Settings;
use crate::topology::Topology;
use crate::transport::TransportKind;
use millpond_core::host::virtual_switch::VirtualSwitchParams;
use millpond_core::switch::pause::PauseParams;
use millpond_core::switch::site::Auto;
use millpond_core::{Rate, Time};

/// Writes them out for a network with this longest round trip.
pub(crate) fn network(s: &mut Settings, topology: &Topology, round_trip: Time) {
    if let PauseParams::Bfc(p) = &mut s.switch.pause {
        let longest = topology.links.iter().map(|link| link.delay).max().unwrap_or_default();
        *p = p.in_network(longest);
    }
    match &mut s.edge.virtual_switch {
        VirtualSwitchParams::Backdraft(p) => {
            let (feedback, ttl) = (p.feedback(round_trip), p.ttl(round_trip));
            (p.feedback, p.ttl) = (Auto::Given(feedback), Auto::Given(ttl));
        }
        VirtualSwitchParams::Credits(p) => {
            let (feedback, ttl) = (p.feedback(round_trip), p.ttl(round_trip));
            (p.feedback, p.ttl) = (Auto::Given(feedback), Auto::Given(ttl));
        }
        _ => {}
    }
    let hosts = topology.host_links();
    let fastest = hosts.iter().map(|link| link.rate).max().unwrap_or(Rate(0));
    let segment = u64::from(s.host.mss.unwrap_or(1).max(1));
    let segments = fastest.bytes_in(round_trip).div_ceil(segment);
    let own = s.traffic.iter_mut().filter_map(|t| t.transport.as_mut());
    for kind in std::iter::once(&mut s.transport_kind).chain(own) {
        if let TransportKind::Swift(p) = kind {
            *p = p.in_network(round_trip, segments as f64);
        }
    }
}
