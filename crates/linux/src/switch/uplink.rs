//! The switch's edge: frames for other switches, over their paths, and frames from them.
//!
//! Invariant: a peer that does not answer costs what is sent to it and nothing else.

use super::buffers::Buffers;
use super::config::{Config, PathParams};
use super::counters::{Counters, Drop};
use super::egress::Egress;
use super::node::{Frame, Node, Remote};
use super::ports;
use super::show::PathReading;
use crate::edge::{Carrier, Edge, Packet};
use crate::encapsulation::Encapsulation;
use crate::fabric::metadata::class;
use crate::frame::{View, parse_head};
use crate::namespace;
use crate::port::{Refusal, udp::Udp};
use millpond_core::Time;
use millpond_core::edge::flowcell::Rule;
use millpond_core::edge::gro::{self, OffloadParams};
use millpond_core::edge::schedule::weighted;

/// Reads of one path in a round.
const BURST: usize = 16;

struct Path {
    params: PathParams,
    peer: usize,
    /// Its place among its peer's paths.
    label: u16,
    socket: Option<Udp>,
    /// Which namespace the socket is in.
    home: Option<(u64, u64)>,
    waiting: Option<String>,
    counters: Counters,
    /// What waits for the socket: datagrams.
    queue: Egress<Vec<u8>>,
}

impl Path {
    /// Sends packets, or queues what the socket takes no more of.
    fn send(&mut self, now: Time, buffers: &Buffers, header: &[u8], packets: &[Packet]) -> Result<(), Drop> {
        let Some(socket) = &self.socket else { return Err(Drop::PortGone) };
        let (mut sent, mut refused) = (0, None);
        if self.queue.is_idle(now) {
            (sent, refused) = socket.send(header, packets, buffers);
            self.counters.sent += sent as u64;
            self.counters.sent_bytes += packets[..sent].iter().map(|p| (p.length() + header.len()) as u64).sum::<u64>();
            self.counters.sent_large += u64::from(sent > 1);
        }
        let mut rest = packets[sent..].iter().map(|packet| (packet, packet.header.bytes(), packet.payload(buffers)));
        match refused {
            None => {}
            Some(Refusal::Full) => {
                let first = rest.next().map(|(_, front, payload)| [header, front, payload].concat());
                first.into_iter().for_each(|datagram| self.queue.refuse(now, datagram));
            }
            Some(refusal) => return Err(refusal.reason()),
        }
        for (packet, front, payload) in rest {
            let size = u16::try_from(packet.length() + header.len()).unwrap_or(u16::MAX);
            let class = parse_head(front, packet.length()).map_or(Default::default(), |view| class(front, &view));
            let described = millpond_core::Packet { size, class, ..Default::default() };
            if let Err(reason) = self.queue.offer(now, described, || [header, front, payload].concat()) {
                self.counters.discard(reason);
            }
        }
        if !self.queue.is_empty() {
            self.drain(now);
        }
        Ok(())
    }

    /// Sends what waits, as far as the socket takes it.
    fn drain(&mut self, now: Time) {
        while let Some(datagram) = self.queue.next(now) {
            let sent = self.socket.as_ref().map_or(Err(Refusal::Gone), |socket| socket.send_one(&datagram));
            match sent {
                Ok(()) => {
                    self.counters.sent += 1;
                    self.counters.sent_bytes += datagram.len() as u64;
                }
                Err(Refusal::Full) => return self.queue.refuse(now, datagram),
                Err(refusal) => self.counters.drop(refusal.reason()),
            }
        }
    }
}

/// The paths, as what carries packets.
#[derive(Default)]
struct Paths(Vec<Path>);

/// The edge of a switch with peers.
pub struct Uplink {
    peers: Vec<String>,
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
        let peers = config.peers();
        let mut paths = Vec::new();
        let mut labels = vec![Vec::new(); peers.len()];
        for params in &config.paths {
            let peer = peers.iter().position(|name| *name == params.peer).unwrap_or(0);
            let label = labels[peer].len() as u16;
            labels[peer].push((label, u64::from(params.weight)));
            let (params, counters) = (params.clone(), Counters::default());
            let queue = Egress::default();
            paths.push(Path { params, peer, label, socket: None, home: None, waiting: None, counters, queue });
        }
        let labels = labels.iter().map(|weights| weighted(weights)).collect();
        let edge = Edge::new(rule, labels, offload);
        let mut uplink = Uplink { peers, paths: Paths(paths), edge, drained: Time::ZERO, burst };
        uplink.open();
        uplink
    }

    /// Opens the paths that are not open.
    pub fn open(&mut self) {
        for path in &mut self.paths.0 {
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
        self.paths.0[path].socket = Some(socket);
    }
    /// Why paths are not there.
    pub fn waiting(&self) -> impl Iterator<Item = (String, String)> {
        self.paths
            .0
            .iter()
            .filter_map(|p| Some((format!("{} to {}", p.params.local, p.params.remote), p.waiting.clone()?)))
    }
    /// What to wait for, and which path it is.
    pub fn sockets(&self) -> impl Iterator<Item = (usize, &Udp)> {
        self.paths.0.iter().enumerate().filter_map(|(i, path)| Some((i, path.socket.as_ref()?)))
    }

    /// Handles what a path has for now; whether there may be more.
    pub fn receive(&mut self, now: Time, path: usize, buffers: &mut Buffers) -> bool {
        let Some(path) = self.paths.0.get_mut(path) else { return false };
        for _ in 0..self.burst {
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
                    match Encapsulation::read(&buffers.bytes(buffer)[start..end]) {
                        None => path.counters.drop(Drop::BadEncapsulation),
                        Some((stamp, frame)) => {
                            let range = end - frame.len()..end;
                            let packet = Packet::of_bytes(buffers, buffer, range);
                            buffers.retain(buffer, u32::from(packet.has_payload()));
                            self.edge.arrive(now, path.peer, stamp, packet, buffers);
                        }
                    }
                    start = end;
                }
            }
            buffers.release(buffer);
            match read {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                // Of what was sent before; there may be frames behind it.
                Err(refusal) => path.counters.drop(refusal.reason()),
            }
        }
        true
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
        for path in self.paths.0.iter_mut().filter(|path| path.queue.due().is_some_and(|due| due <= now)) {
            path.drain(now);
        }
    }
    /// When [`Uplink::drain_paths`] is due; `None`: nothing waits.
    pub fn paths_due(&self) -> Option<Time> {
        self.paths.0.iter().filter_map(|path| path.queue.due()).min()
    }
    /// What need not be done at once.
    pub fn housekeeping(&mut self, now: Time) {
        self.open();
        self.edge.evict(now);
    }
    /// Hands over all that is held.
    pub fn drain(&mut self, now: Time, buffers: &mut Buffers, node: &mut Node) {
        self.edge.drain(now, buffers, node);
    }
    /// What each path has done.
    pub fn reading(&self) -> Vec<PathReading> {
        let path = |path: &Path| PathReading {
            peer: self.peers[path.peer].clone(),
            label: path.label,
            local: path.params.local.clone(),
            remote: path.params.remote.clone(),
            reason: path.waiting.clone(),
            counters: path.counters.reading(),
        };
        self.paths.0.iter().map(path).collect()
    }
    /// What the receive offload has counted, and why frames from peers went no further.
    pub fn counters(&self) -> (gro::Counters, &Counters) {
        (self.edge.offload_counters(), &self.edge.counters)
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
        let path = self.0.iter_mut().find(|path| path.peer == peer && path.label == stamp.label);
        let result = path.map_or(Err(Drop::UnknownLabel), |path| path.send(now, buffers, &stamp.write(), packets));
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
        let Uplink { peers, paths, edge, .. } = self;
        let mut frame = *frame;
        match peer {
            Some(peer) => edge.send(now, buffers, &mut frame, view, peer, paths),
            None => {
                let (mut reached, mut failed) = (false, Drop::Nowhere);
                for peer in 0..peers.len() {
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
