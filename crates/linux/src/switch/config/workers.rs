//! A switch of several workers: which keys it cannot have, and what each worker's switch is.
//!
//! Invariant: no two workers have the same address and port of a path.

use super::{Config, ImportanceKind, PathParams, PeerParams, PortKind, PortParams};
use crate::config::Checked;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

const ONE: &str = "take the key away, or `workers`";

/// Refuses what needs one worker that has all frames.
pub(super) fn read_port(r: &mut Checked<'_, '_>, port: &PortParams, workers: u32) {
    if workers == 1 {
        return;
    }
    if matches!(port.kind, PortKind::Shared | PortKind::VhostUser | PortKind::Pcap) {
        let message = format!(
            "a port of kind {} has one end for one worker, and this switch has {workers} \
             (`workers`)",
            port.kind_name()
        );
        r.wrong_help("kind", message, "tap and af-packet ports have a queue each");
    }
    let why = [
        ("shape", port.shape.is_some(), "makes senders wait for flows that one worker knows"),
        ("gate", port.gate, "makes senders wait for flows that one worker knows"),
        (
            "importance",
            port.importance != ImportanceKind::None,
            "follows both directions of a connection in one worker",
        ),
    ];
    for (key, _, why) in why.into_iter().filter(|(_, is_set, _)| *is_set) {
        let message = format!("{why}, and this switch has {workers} (`workers`)");
        r.wrong_help(key, message, ONE);
    }
}

/// The ports that the paths above have at each address of a namespace.
#[derive(Default)]
pub(super) struct Ends(HashMap<(IpAddr, Option<String>), BTreeMap<u16, String>>);

impl Ends {
    /// Refuses ports of addresses that another path's workers have, or that are none.
    pub(super) fn take(&mut self, r: &mut Checked<'_, '_>, path: &PathParams, workers: u32) {
        let of = |text: &str| text.parse::<SocketAddr>().ok();
        for (key, text) in [("local", &path.local), ("remote", &path.remote)] {
            let last = of(text).map(|at| u32::from(at.port()) + workers - 1);
            if last.is_some_and(|last| last > u16::MAX.into()) {
                let message = format!("{workers} workers (`workers`) have no ports from there on");
                r.wrong(key, message);
            }
        }
        let Some(local) = of(&path.local) else { return };
        let (port, others) = (local.port(), workers as u16 - 1);
        let ports = self.0.entry((local.ip(), path.namespace.clone())).or_default();
        let mut near = ports.range(port.saturating_sub(others)..=port.saturating_add(others));
        if let Some((_, other)) = near.find(|(at, _)| **at != port) {
            let message = format!(
                "the path above from {other} has this port for one of {workers} workers \
                 (`workers`): a path has as many ports from its own on"
            );
            r.wrong("local", message);
        }
        ports.insert(port, path.local.clone());
    }
}

pub(super) fn read_peer(r: &mut Checked<'_, '_>, peer: &PeerParams, workers: u32) {
    for key in ["overlay", "feedback", "pause-ttl", "hold-memory"] {
        if workers > 1 && r.has(key) && (key != "overlay" || peer.overlay) {
            let message = format!(
                "the overlay needs one worker, and this switch has {workers} (`workers`): its \
                 flows cannot be paused"
            );
            r.wrong_help(key, message, ONE);
        }
    }
}

/// An address with the port of a worker.
fn shifted(text: &str, worker: usize) -> String {
    let shift = |mut at: SocketAddr| {
        at.set_port(at.port().saturating_add(worker as u16));
        at.to_string()
    };
    text.parse().map_or_else(|_| text.to_string(), shift)
}

impl Config {
    /// The switch of one worker: its ports of the paths' addresses. With several workers none
    /// speaks the overlay.
    pub fn of_worker(mut self, worker: usize) -> Config {
        if self.switch.workers > 1 {
            self.peers.iter_mut().for_each(|peer| peer.overlay = false);
        }
        for path in self.paths.iter_mut().filter(|_| worker > 0) {
            path.local = shifted(&path.local, worker);
            path.remote = shifted(&path.remote, worker);
        }
        self
    }
}
