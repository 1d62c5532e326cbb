//! The edge's report of itself: its paths, peers and flows.

use super::Uplink;
use super::paths::Paths;
use crate::dataplane::counters::Counters;
use crate::dataplane::port::udp::Udp;
use crate::edge::Sent;
use crate::switch::overlay::Talk;
use crate::switch::path::Path;
use crate::switch::peer::Peer;
use crate::switch::reading::{FlowReading, PathReading, PeerReading};
use millpond_core::Time;
use millpond_core::edge::gro;

/// The most flows that are shown.
const FLOWS_SHOWN: usize = 1000;

impl Uplink {
    /// Each path's counts and state; `widest` is the longest frame that a port may have.
    pub fn reading(&self, now: Time, widest: usize) -> Vec<PathReading> {
        let Paths { paths, peers, .. } = &self.paths;
        let path = |path: &Path| PathReading {
            peer: peers[path.peer].name.clone(),
            label: path.label,
            local: path.params.local.clone(),
            remote: path.params.remote.clone(),
            reason: path
                .waiting
                .as_ref()
                .map(ToString::to_string)
                .or_else(|| peers[path.peer].blocked().map(str::to_string)),
            health: peers[path.peer].reading(now, path.label, widest),
            reports_ignored: path.socket.as_ref().map_or(0, Udp::reports),
            counters: path.counters.reading(),
        };
        paths.iter().map(path).collect()
    }
    /// The signals to and from each peer, where it speaks the overlay.
    pub fn peers(&self) -> Vec<PeerReading> {
        let reading = |peer: &Peer| PeerReading {
            name: peer.name.clone(),
            overlay: peer.overlay().map(Talk::reading),
        };
        self.paths.peers.iter().map(reading).collect()
    }
    /// The counts of each path, with its name.
    pub fn path_counters(&self) -> impl Iterator<Item = (String, &Counters)> {
        let Paths { paths, peers, .. } = &self.paths;
        let name = |path: &Path| format!("path {} to {}", path.params.local, peers[path.peer].name);
        paths.iter().map(move |path| (name(path), &path.counters))
    }
    pub fn peer_names(&self) -> Vec<String> {
        self.paths.peers.iter().map(|peer| peer.name.clone()).collect()
    }
    /// How many flows are known that it sends over paths, and that come over them.
    pub fn flow_counts(&self) -> [usize; 2] {
        [self.edge.flows(), self.edge.flows_received()]
    }
    /// The flows that it sends over paths, those first that have sent last; [`FLOWS_SHOWN`] at
    /// most.
    pub fn flows(&self, now: Time) -> Vec<FlowReading> {
        let peers = &self.paths.peers;
        let mut all: Vec<_> = self.edge.sent().collect();
        all.sort_by_key(|sent| std::cmp::Reverse(sent.last));
        let reading = |sent: Sent| {
            let [source, destination] = sent.key.ends().map(|end| end.to_string());
            FlowReading {
                peer: peers
                    .get(usize::from(sent.key.peer()))
                    .map_or_else(String::new, |peer| peer.name.clone()),
                vlan: sent.key.vlan(),
                source,
                destination,
                label: sent.label,
                bytes: sent.bytes,
                silent_s: now.saturating_sub(sent.last).as_us_f64() / 1e6,
            }
        };
        all.into_iter().take(FLOWS_SHOWN).map(reading).collect()
    }
    /// The counts of receive offload, and why frames from peers went no further.
    pub fn counters(&self) -> (gro::Counters, &Counters) {
        (self.edge.offload_counters(), &self.edge.counters)
    }
}
