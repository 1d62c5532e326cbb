//! The switch's edge: frames for other switches, over their paths, and frames from them.
//!
//! Each path is probed (`peer`). Those that do not work, or not as well as others, have no label
//! until they do.
//!
//! Invariant: a peer that does not answer costs what is sent to it and nothing else.

use super::buffers::Buffers;
use super::config::Config;
use super::counters::{Counters, Drop};
use super::node::{Frame, Node, Remote};
use super::path::{Path, Staging};
use super::peer::Peer;
use super::ports;
use super::show::PathReading;
use crate::edge::{Carrier, Edge, Packet};
use crate::encapsulation::Encapsulation;
use crate::frame::View;
use crate::namespace;
use crate::port::{Refusal, udp::Udp};
use crate::tunnel::probe::{self, Wrong};
use crate::tunnel::session::Refused;
use millpond_core::Time;
use millpond_core::edge::flowcell::Rule;
use millpond_core::edge::gro::{self, OffloadParams};
use millpond_core::edge::liveness::Standing;
use millpond_core::edge::schedule::weighted;
use std::ops::Range;

/// Reads of one path in a round.
const BURST: usize = 16;

/// The paths and whom they lead to, as what carries packets.
#[derive(Default)]
struct Paths {
    paths: Vec<Path>,
    peers: Vec<Peer>,
    staging: Staging,
}

/// The edge of a switch with peers.
pub struct Uplink {
    paths: Paths,
    edge: Edge,
    /// Until when waits may end: all that came before was seen.
    drained: Time,
    /// Reads of one path before others have their turn.
    burst: usize,
}

impl Uplink {
    /// With the paths of `config`, those that can be opened.
    pub fn new(config: &Config) -> Uplink {
        Uplink::with(config, config.edge.rule(), &config.edge.receive_offload.0, BURST)
    }

    /// The same with the edge's parameters as the core has them.
    pub(super) fn with(config: &Config, rule: Rule, offload: &OffloadParams, burst: usize) -> Uplink {
        let names = config.peers();
        let mut paths = Vec::new();
        let mut labels = vec![Vec::new(); names.len()];
        for params in &config.paths {
            let peer = names.iter().position(|name| *name == params.peer).unwrap_or(0);
            let label = labels[peer].len() as u16;
            labels[peer].push((label, u64::from(params.weight)));
            paths.push(Path::new(params.clone(), peer, label));
        }
        let peers = names.iter().zip(&labels).map(|(name, labels)| Peer::new(name, &config.peer(name), labels.len()));
        let paths = Paths { paths, peers: peers.collect(), staging: Staging::default() };
        let labels = labels.iter().map(|weights| weighted(weights)).collect();
        let mut uplink = Uplink { paths, edge: Edge::new(rule, labels, offload), drained: Time::ZERO, burst };
        uplink.open();
        uplink
    }

    /// Opens the paths that are not open.
    pub fn open(&mut self) {
        for path in &mut self.paths.paths {
            // An open socket keeps its namespace alive when that has lost its name, or another has it.
            let home = path.params.namespace.as_deref().and_then(namespace::identity);
            if path.socket.is_some() && path.home == home {
                continue;
            }
            (path.socket, path.home) = (None, home);
            match ports::open_path(&path.params) {
                Ok(socket) => (path.socket, path.waiting) = (Some(socket), None),
                Err(error) => path.waiting = Some(error.to_string()),
            }
        }
    }
    /// Gives a path its socket.
    #[cfg(test)]
    pub(super) fn put(&mut self, path: usize, socket: Udp) {
        self.paths.paths[path].socket = Some(socket);
    }
    /// Why paths are not there.
    pub fn waiting(&self) -> impl Iterator<Item = (String, String)> {
        let Paths { paths, peers, .. } = &self.paths;
        let of_path = |p: &Path| Some((format!("{} to {}", p.params.local, p.params.remote), p.waiting.clone()?));
        let of_peer = |peer: &Peer| Some((format!("the key of {}", peer.name), peer.blocked()?.to_string()));
        paths.iter().filter_map(of_path).chain(peers.iter().filter_map(of_peer))
    }
    /// What to wait for, and which path it is.
    pub fn sockets(&self) -> impl Iterator<Item = (usize, &Udp)> {
        self.paths.paths.iter().enumerate().filter_map(|(i, path)| Some((i, path.socket.as_ref()?)))
    }

    /// Handles what a path has for now; whether there may be more.
    pub fn receive(&mut self, now: Time, path: usize, buffers: &mut Buffers) -> bool {
        let Uplink { paths: Paths { paths, peers, .. }, edge, burst, .. } = self;
        let Some(path) = paths.get_mut(path) else { return false };
        let peer = &mut peers[path.peer];
        for _ in 0..*burst {
            let Some(socket) = &path.socket else { return false };
            let Some(buffer) = buffers.take() else {
                path.counters.drop(Drop::NoBuffer);
                return true;
            };
            let read = socket.receive(buffers.bytes_mut(buffer));
            if let Ok(Some((bytes, size))) = read {
                let mut start = 0;
                while start < bytes {
                    let end = (start + size).min(bytes);
                    path.counters.received += 1;
                    path.counters.received_bytes += (end - start) as u64;
                    match take(now, peer, path.label, &mut buffers.bytes_mut(buffer)[start..end]) {
                        Ok(None) => {}
                        Ok(Some((stamp, frame))) => {
                            let range = start + frame.start..start + frame.end;
                            let packet = Packet::of_bytes(buffers, buffer, range);
                            buffers.retain(buffer, u32::from(packet.has_payload()));
                            edge.arrive(now, path.peer, stamp, packet, buffers);
                        }
                        Err(reason) => path.counters.drop(reason),
                    }
                    start = end;
                }
            }
            buffers.release(buffer);
            match read {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                // Of what was sent before; there may be frames behind it.
                Err(refusal) => {
                    if refusal == Refusal::Unreachable {
                        peer.failed(now, path.label);
                    }
                    path.counters.drop(refusal.reason());
                }
            }
        }
        true
    }

    /// Probes paths that it is time for; `widest` is the longest frame of a port.
    pub fn tick(&mut self, now: Time, widest: usize) {
        for peer in 0..self.paths.peers.len() {
            let (sendings, changed) = self.paths.peers[peer].tick(now, widest);
            for sending in sendings {
                self.paths.probe(now, peer, sending.label, &sending.datagram);
            }
            if changed {
                self.relabel(peer);
            }
        }
    }
    /// When [`Uplink::tick`] is due.
    pub fn tick_due(&self) -> Option<Time> {
        self.paths.peers.iter().map(Peer::due).min()
    }
    /// Other paths lead to a peer than before.
    fn relabel(&mut self, peer: usize) {
        let Paths { paths, peers, .. } = &self.paths;
        let standing = |path: &Path| peers[peer].standing(path.label);
        let of_peer = || paths.iter().filter(|path| path.peer == peer);
        let weights: Vec<(u16, u64)> = of_peer()
            .filter(|path| standing(path) == Standing::Used)
            .map(|path| (path.label, u64::from(path.params.weight)))
            .collect();
        let told: Vec<String> =
            of_peer().map(|path| format!("{} {}", path.params.local, standing(path).name())).collect();
        eprintln!("paths to {}: {}", peers[peer].name, told.join(", "));
        self.edge.set_labels(peer, weighted(&weights));
    }

    /// A poll of all paths has ended, after which there may be more or not.
    pub fn flush(&mut self, now: Time, is_drained: bool, buffers: &mut Buffers, node: &mut Node) {
        if is_drained {
            self.drained = now;
        }
        self.edge.flush(now, self.drained, buffers, node);
        if buffers.is_exhausted() {
            // What is held has all buffers: what else has come cannot be looked at before some of it goes.
            self.drained = now;
            self.edge.flush(now, now, buffers, node);
        }
    }
    /// When [`Uplink::flush`] is due without a packet.
    pub fn deadline(&self) -> Option<Time> {
        self.edge.deadline()
    }
    /// Sends what waits for paths and is due.
    pub fn drain_paths(&mut self, now: Time) {
        for path in self.paths.paths.iter_mut().filter(|path| path.queue.due().is_some_and(|due| due <= now)) {
            path.drain(now);
        }
    }
    /// When [`Uplink::drain_paths`] is due; `None`: nothing waits.
    pub fn paths_due(&self) -> Option<Time> {
        self.paths.paths.iter().filter_map(|path| path.queue.due()).min()
    }
    /// What need not be done at once.
    pub fn housekeeping(&mut self, now: Time) {
        self.open();
        self.paths.peers.iter_mut().for_each(Peer::read_key);
        self.edge.evict(now);
    }
    /// Hands over all that is held.
    pub fn drain(&mut self, now: Time, buffers: &mut Buffers, node: &mut Node) {
        self.edge.drain(now, buffers, node);
    }
    /// What each path has done, and how it is.
    pub fn reading(&self, now: Time) -> Vec<PathReading> {
        let Paths { paths, peers, .. } = &self.paths;
        let path = |path: &Path| PathReading {
            peer: peers[path.peer].name.clone(),
            label: path.label,
            local: path.params.local.clone(),
            remote: path.params.remote.clone(),
            reason: path.waiting.clone().or_else(|| peers[path.peer].blocked().map(str::to_string)),
            health: peers[path.peer].reading(now, path.label),
            counters: path.counters.reading(),
        };
        paths.iter().map(path).collect()
    }
    /// What the receive offload has counted, and why frames from peers went no further.
    pub fn counters(&self) -> (gro::Counters, &Counters) {
        (self.edge.offload_counters(), &self.edge.counters)
    }
}

/// What a datagram of a peer is: a frame in it, or a probe.
fn take(
    now: Time,
    peer: &mut Peer,
    label: u16,
    datagram: &mut [u8],
) -> Result<Option<(Encapsulation, Range<usize>)>, Drop> {
    if probe::is_probe(datagram) {
        return peer.hear(now, label, datagram).map(|()| None).map_err(|wrong| match wrong {
            Wrong::Malformed => Drop::BadEncapsulation,
            Wrong::Stranger => Drop::Stranger,
        });
    }
    if peer.has_key() {
        let opened = peer.session().map_or(Err(Refused::Stranger), |session| session.open(datagram));
        return opened.map(Some).map_err(|refused| match refused {
            // What is not sealed the peer has not made.
            Refused::Malformed | Refused::Stranger => Drop::Stranger,
            Refused::Replayed => Drop::Replayed,
        });
    }
    let (stamp, frame) = Encapsulation::read(datagram).ok_or(Drop::BadEncapsulation)?;
    Ok(Some((stamp, datagram.len() - frame.len()..datagram.len())))
}

impl Paths {
    /// Sends a probe, past what waits: it is to tell of the path and not of its queue.
    fn probe(&mut self, now: Time, peer: usize, label: u16, datagram: &[u8]) {
        let Some(path) = self.paths.iter_mut().find(|path| path.peer == peer && path.label == label) else { return };
        let Some(socket) = &path.socket else { return self.peers[peer].failed(now, label) };
        match socket.send_one(datagram) {
            Ok(()) | Err(Refusal::Full) => {}
            Err(Refusal::TooLong) => self.peers[peer].too_long(now, label, datagram.len()),
            Err(_) => self.peers[peer].failed(now, label),
        }
    }

    fn carry_over(
        &mut self,
        now: Time,
        buffers: &Buffers,
        peer: usize,
        stamp: &Encapsulation,
        packets: &[Packet],
    ) -> Result<(), Drop> {
        let Paths { paths, peers, staging } = self;
        let found = paths.iter_mut().find(|path| path.peer == peer && path.label == stamp.label);
        let (path, peer) = (found.ok_or(Drop::UnknownLabel)?, &mut peers[peer]);
        let result = match (peer.has_key(), peer.session()) {
            (false, _) => path.send(now, buffers, stamp, packets),
            (true, None) => Err(Drop::NoSession),
            (true, Some(session)) => path.send_sealed(now, buffers, stamp, packets, (session, staging)),
        };
        if let Err(Drop::Unreachable | Drop::PortGone) = result {
            peer.failed(now, path.label);
        }
        result
    }
}

impl Carrier for Paths {
    fn carry(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        peer: usize,
        stamp: Encapsulation,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Drop> {
        let result = self.carry_over(now, buffers, peer, &stamp, packets);
        packets.drain(..).for_each(|packet| packet.end(buffers));
        result
    }
}

impl Remote for Uplink {
    fn transmit(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &Frame,
        view: &View,
        peer: Option<usize>,
    ) -> Result<(), Drop> {
        let Uplink { paths, edge, .. } = self;
        let mut frame = *frame;
        match peer {
            Some(peer) => edge.send(now, buffers, &mut frame, view, peer, paths),
            None => {
                let (mut reached, mut failed) = (false, Drop::Nowhere);
                for peer in 0..paths.peers.len() {
                    match edge.send(now, buffers, &mut frame, view, peer, paths) {
                        Ok(()) => reached = true,
                        Err(reason) => failed = reason,
                    }
                }
                if reached { Ok(()) } else { Err(failed) }
            }
        }
    }
}
