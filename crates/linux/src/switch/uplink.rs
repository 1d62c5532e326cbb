//! The switch's edge: frames for other switches, over their paths, and frames from them.
//!
//! Each path is probed (`peer`). Those that do not work, or not as well as others, have no label
//! until they do.
//!
//! Invariant: a peer that does not answer costs what is sent to it and nothing else.

mod cutting;
mod handing;
pub(crate) mod paths;
mod reading;
mod renewing;

use super::config::Config;
use super::node::{Node, Remote};
use super::overlay::{Admission, Homes};
use super::path::Path;
use super::peer::Peer;
use super::ports;
use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::fault;
use crate::dataplane::flow::named;
use crate::dataplane::frame::{Offload, View, mss, parse};
use crate::dataplane::packet::Packet;
use crate::dataplane::port::shared::{Fate, Notice, Sender};
use crate::dataplane::port::{self, udp::Udp};
use crate::edge::Edge;
use handing::Handing;
use millpond_core::Time;
use millpond_core::edge::flowcell::Rule;
use millpond_core::edge::gro::OffloadParams;
use millpond_worlds::namespace;
use paths::{Paths, take};
use std::collections::BTreeSet;

/// Between two looks for idle flows, as the core's documentation has it.
const EVICTION: Time = Time::from_ms(1);
/// Reads of one path in a round.
const BURST: usize = 16;
/// Frames that had waited for a peer, and are sent in a round.
const HELD_BURST: usize = 64;

/// The edge of a switch with peers.
pub struct Uplink {
    paths: Paths,
    edge: Edge,
    /// Which peers' addresses are whose, where any speaks the overlay.
    homes: Option<Homes>,
    notices: Vec<Notice>,
    /// Until when waits may end: all that came before was seen.
    drained: Time,
    /// Reads of one path before others have their turn.
    burst: usize,
    /// When idle flows were looked for last.
    evicted: Time,
    /// Frames for the first worker; `None`: this is the first.
    handing: Option<Handing>,
}

impl Uplink {
    /// With the paths of `config`, those that can be opened.
    pub fn new(config: &Config) -> Uplink {
        Uplink::with(config, config.edge.rule(), &config.edge.receive_offload.0, BURST)
    }

    /// The same with the edge's parameters as the core has them.
    pub(super) fn with(
        config: &Config,
        rule: Rule,
        offload: &OffloadParams,
        burst: usize,
    ) -> Uplink {
        let mut uplink = Uplink {
            paths: Paths::default(),
            edge: Edge::new(rule, Vec::new(), offload),
            homes: None,
            notices: Vec::new(),
            drained: Time::ZERO,
            burst,
            evicted: Time::ZERO,
            handing: None,
        };
        uplink.renew(config);
        uplink
    }

    /// Opens the paths that are not open.
    pub fn open(&mut self) {
        for path in &mut self.paths.paths {
            // An open socket keeps its namespace alive when that has lost its name, or another has
            // it.
            let home = path.params.namespace.as_deref().and_then(namespace::identity);
            if path.socket.is_some() && path.home == home {
                continue;
            }
            (path.socket, path.home) = (None, home);
            match ports::open_path(&path.params) {
                Ok(socket) => (path.socket, path.waiting) = (Some(socket), None),
                Err(error) => path.waiting = Some(error),
            }
        }
    }
    #[cfg(test)]
    pub(super) fn put(&mut self, path: usize, socket: Udp) {
        self.paths.paths[path].socket = Some(socket);
    }
    pub fn waiting(&self) -> impl Iterator<Item = (String, String)> {
        let Paths { paths, peers, .. } = &self.paths;
        let of_path = |p: &Path| {
            Some((
                format!("{} to {}", p.params.local, p.params.remote),
                p.waiting.as_ref()?.to_string(),
            ))
        };
        let of_peer =
            |peer: &Peer| Some((format!("the key of {}", peer.name), peer.blocked()?.to_string()));
        paths.iter().filter_map(of_path).chain(peers.iter().filter_map(of_peer))
    }
    /// Whether another process has the address of a path.
    pub fn is_busy(&self) -> bool {
        self.paths.paths.iter().any(|path| matches!(path.waiting, Some(port::Error::Busy { .. })))
    }
    /// The sockets to wait for, and which path each is.
    pub fn sockets(&self) -> impl Iterator<Item = (usize, &Udp)> {
        self.paths.paths.iter().enumerate().filter_map(|(i, path)| Some((i, path.socket.as_ref()?)))
    }

    /// Handles what a path has for now; whether there may be more.
    pub fn receive(&mut self, now: Time, path: usize, buffers: &mut Buffers) -> bool {
        let Uplink { paths: Paths { paths, peers, .. }, edge, homes, burst, .. } = self;
        let Some(path) = paths.get_mut(path) else { return false };
        let peer = &mut peers[path.peer];
        let owns =
            |address| homes.as_ref().is_none_or(|homes| homes.is_of(address, path.peer as u16));
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
                    path.counters.receive(end - start);
                    let arrival = fault::caught(|| {
                        let datagram = &mut buffers.bytes_mut(buffer)[start..end];
                        let Some((stamp, frame)) = take(now, peer, path.label, datagram, owns)?
                        else {
                            return Ok(());
                        };
                        let range = start + frame.start..start + frame.end;
                        #[cfg(test)]
                        fault::inject(&buffers.bytes(buffer)[range.clone()], fault::INJECTED);
                        let (packet, view) = Packet::read(buffers, buffer, range);
                        buffers.retain(buffer, u32::from(packet.has_payload()));
                        edge.arrive(now, path.peer, stamp, packet, view, buffers);
                        Ok(())
                    });
                    let arrival = arrival.unwrap_or_else(|panic| {
                        let work = format!("path {} of {}", path.label, peer.name);
                        Err(panic.keep(work, &buffers.bytes(buffer)[start..end]))
                    });
                    if let Err(reason) = arrival {
                        path.counters.drop(reason);
                    }
                    start = end;
                }
            }
            buffers.release(buffer);
            match read {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                // There may be frames behind it.
                Err(refusal) => path.counters.drop(refusal.reason()),
            }
        }
        true
    }

    /// Passes the wishes of the switch's ports on to peers, and sends what is due.
    pub fn speak(&mut self, now: Time, node: &mut Node) {
        let mut notices = std::mem::take(&mut self.notices);
        node.take_notices(&mut notices);
        for Notice { peer, what } in notices.drain(..) {
            if let Some(talk) = self.paths.peers.get_mut(usize::from(peer)).and_then(Peer::talk) {
                talk.notify(now, &what);
            }
        }
        self.notices = notices;
        for peer in 0..self.paths.peers.len() {
            let Some(talk) = self.paths.peers[peer]
                .talk()
                .filter(|talk| talk.deadline().is_some_and(|due| due <= now))
            else {
                continue;
            };
            talk.expire(now);
            while let Some(datagram) =
                self.paths.peers[peer].talk().and_then(|talk| talk.transmit(now))
            {
                self.paths.send_record(now, peer, &datagram);
            }
        }
    }
    /// When [`Uplink::speak`] is due.
    pub fn speaks_at(&self) -> Option<Time> {
        self.paths.peers.iter().filter_map(|peer| peer.overlay()?.deadline()).min()
    }
    /// Sends what the switch itself answers to frames from peers.
    pub fn answer(&mut self, now: Time, buffers: &mut Buffers, node: &mut Node) {
        for (peer, answer) in node.take_answers() {
            let Some(view) = parse(&answer) else { continue };
            let Some(frame) = Frame::copy(&answer, Offload::default(), buffers) else { continue };
            let sent = self.caught("answers", &frame, buffers, |uplink, buffers| {
                uplink.send(now, buffers, &mut frame.clone(), &view, peer)
            });
            if let Err(reason) = sent {
                self.edge.counters.drop(reason);
            }
            buffers.release(frame.buffer);
        }
    }
    /// Sends what has waited for peers and may go. Whether there may be more.
    pub fn release(&mut self, now: Time, buffers: &mut Buffers) -> bool {
        for peer in 0..self.paths.peers.len() {
            for count in 0.. {
                if count == HELD_BURST || buffers.is_exhausted() {
                    return true;
                }
                let Some(waiting) = self.paths.peers[peer].talk().and_then(|talk| talk.next(now))
                else {
                    break;
                };
                let copied = Frame::copy(&waiting.bytes, waiting.offload, buffers);
                let Some(frame) = copied else { break };
                let sent = self.caught("frames that waited", &frame, buffers, |uplink, buffers| {
                    let Uplink { paths, edge, .. } = uplink;
                    edge.send(now, buffers, &mut frame.clone(), &waiting.view, peer, paths)
                });
                buffers.release(frame.buffer);
                if let (Err(_), Some(talk)) = (sent, self.paths.peers[peer].talk()) {
                    talk.failed += 1;
                }
            }
        }
        false
    }

    /// Sends a frame whose buffer nobody else has. A panic costs the frame.
    fn caught(
        &mut self,
        work: &str,
        frame: &Frame,
        buffers: &mut Buffers,
        send: impl FnOnce(&mut Uplink, &mut Buffers) -> Result<(), Drop>,
    ) -> Result<(), Drop> {
        fault::caught(|| send(self, buffers)).unwrap_or_else(|panic| {
            buffers.disown(frame.buffer);
            Err(panic.keep(work, frame.bytes(buffers)))
        })
    }

    /// Merging begins anew, after a panic. Packets that wait to be merged are lost.
    pub fn merge_anew(&mut self, config: &Config, buffers: &mut Buffers) {
        self.edge.end(buffers);
        self.change(config, true);
    }

    /// Probes paths that it is time for; `widest` is the longest frame of a port.
    pub fn tick(&mut self, now: Time, widest: usize) {
        for peer in 0..self.paths.peers.len() {
            self.paths.peers[peer].greet(now);
            let (sendings, changed) = self.paths.peers[peer].tick(now, widest);
            for sending in sendings {
                self.paths.probe(now, peer, sending.label, &sending.datagram);
            }
            if changed {
                self.edge.set_labels(peer, self.labels(peer));
            }
        }
    }
    /// When [`Uplink::tick`] is due.
    pub fn tick_due(&self) -> Option<Time> {
        self.paths.peers.iter().map(Peer::due).min()
    }
    /// A poll of all paths has ended, after which there may be more or not.
    pub fn flush(&mut self, now: Time, is_drained: bool, buffers: &mut Buffers, node: &mut Node) {
        if is_drained {
            self.drained = now;
        }
        self.edge.flush(now, self.drained, buffers, |peer, frame| node.from_peer(now, peer, frame));
        if buffers.is_exhausted() {
            // Held packets have all buffers: others that have come cannot be looked at before some
            // of these go.
            self.drained = now;
            self.edge.flush(now, now, buffers, |peer, frame| node.from_peer(now, peer, frame));
        }
    }
    /// When [`Uplink::flush`] is due without a packet.
    pub fn deadline(&self) -> Option<Time> {
        self.edge.deadline()
    }
    /// Whether paths to a peer have room for a frame's packets. A SYN asks for no more than they
    /// carry.
    fn fit(
        &self,
        buffers: &mut Buffers,
        frame: &Frame,
        view: &View,
        peer: usize,
    ) -> Result<(), Drop> {
        let Some(most) = self.paths.peers.get(peer).and_then(Peer::frame_max) else {
            return Ok(());
        };
        if frame.offload.longest(view, frame.length) > most {
            return Err(Drop::Oversized);
        }
        if let Some(layers) = view.tcp() {
            let room = most.saturating_sub(view.ethernet + mss::headers(layers.version));
            let bytes =
                &mut buffers.bytes_mut(frame.buffer)[frame.start..frame.start + frame.length];
            let is_partial = frame.offload.partial && frame.offload.is_at(layers);
            mss::clamp(bytes, layers, room.min(u16::MAX.into()) as u16, is_partial);
        }
        Ok(())
    }

    /// Sends a frame to one peer, past what waits for it.
    fn send(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &mut Frame,
        view: &View,
        peer: usize,
    ) -> Result<(), Drop> {
        if self.hands_over(now, peer) {
            return self.hand_over(buffers, frame, peer);
        }
        match self.fit(buffers, frame, view, peer) {
            Err(Drop::Oversized) => return self.send_cut(now, buffers, frame, view, peer),
            fits => fits?,
        }
        let Uplink { paths, edge, .. } = self;
        edge.send(now, buffers, frame, view, peer, paths)
    }

    /// The longest frame that all peers can be sent; by the kernel's word alone, or by what was
    /// found, too. `None`: nothing is known to be too long.
    pub fn room(&self) -> [Option<usize>; 2] {
        let peers = || self.paths.peers.iter();
        [peers().filter_map(Peer::room).min(), peers().filter_map(Peer::frame_max).min()]
    }
    /// Whether each peer has a path that is used, and answers.
    pub fn reaches_all(&self, now: Time) -> bool {
        self.paths.peers.iter().all(|peer| peer.is_reached() && !peer.is_silent(now))
    }
    /// Asks the kernel how long datagrams may be.
    pub fn look_for_room(&mut self) {
        let Paths { paths, peers, .. } = &mut self.paths;
        for path in paths {
            peers[path.peer].set_room(path.label, path.socket.as_ref().and_then(Udp::room));
        }
    }

    /// Sends what waits for paths and is due.
    pub fn drain_paths(&mut self, now: Time) {
        for path in self
            .paths
            .paths
            .iter_mut()
            .filter(|path| path.queue.due().is_some_and(|due| due <= now))
        {
            path.drain(now);
        }
    }
    /// Sends what was to leave together: to be called when a round ends.
    pub fn depart(&mut self, now: Time) {
        let Paths { paths, peers } = &mut self.paths;
        for path in paths {
            path.depart(now);
            if std::mem::take(&mut path.has_failed) {
                peers[path.peer].failed(now, path.label);
            }
        }
    }
    /// When [`Uplink::drain_paths`] is due; `None`: nothing waits.
    pub fn paths_due(&self) -> Option<Time> {
        self.paths.paths.iter().filter_map(|path| path.queue.due()).min()
    }
    /// Does the work that need not be done at once.
    pub fn housekeeping(&mut self, now: Time) {
        self.report(now);
        self.open();
        self.look_for_room();
        self.paths.peers.iter_mut().for_each(Peer::read_key);
        self.paths.peers.iter_mut().filter_map(Peer::talk).for_each(|talk| talk.housekeeping(now));
    }
    /// Forgets some of the flows that are idle, each millisecond.
    pub fn evict(&mut self, now: Time) {
        if now.saturating_sub(self.evicted) >= EVICTION {
            self.evicted = now;
            self.edge.evict(now);
        }
    }
    /// Hands over all that is held.
    pub fn drain(&mut self, now: Time, buffers: &mut Buffers, node: &mut Node) {
        self.edge.drain(now, buffers, |peer, frame| node.from_peer(now, peer, frame));
    }
    /// Adds the ports from which a flow should pause.
    pub fn slowed(&self, into: &mut BTreeSet<u16>) {
        self.paths
            .peers
            .iter()
            .filter_map(Peer::overlay)
            .for_each(|talk| into.extend(talk.slowed()));
    }
    /// Counts what the kernel has lost of what came over paths.
    pub fn count_losses(&mut self) {
        for path in &mut self.paths.paths {
            if let Some(socket) = &path.socket {
                path.counters.rose(Drop::SocketFull, socket.lost());
            }
        }
    }
}

impl Remote for Uplink {
    fn transmit(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &Frame,
        view: &View,
        peer: Option<(usize, Sender<'_>)>,
    ) -> Result<Fate, Drop> {
        let mut frame = *frame;
        match peer {
            Some((peer, _)) if self.hands_over(now, peer) => {
                self.hand_over(buffers, &frame, peer).map(|()| Fate::Left)
            }
            Some((peer, sender)) => {
                if self.fit(buffers, &frame, view, peer) == Err(Drop::Oversized) {
                    let sent = self.send_cut(now, buffers, &frame, view, peer);
                    return sent.map(|()| Fate::Left);
                }
                let Uplink { paths, edge, homes, .. } = self;
                if let Some(talk) = paths.peers.get_mut(peer).and_then(Peer::talk) {
                    let bytes = frame.bytes(buffers);
                    if let (Some(homes), Some(layers)) = (homes, view.layers()) {
                        homes.note(named(bytes, layers).destination, peer as u16);
                    }
                    match talk.admit(now, bytes, &frame.offload, view, sender)? {
                        Admission::Goes => {}
                        Admission::Stays => return Ok(Fate::Held),
                        Admission::Waits => return Ok(Fate::Left),
                    }
                }
                edge.send(now, buffers, &mut frame, view, peer, paths).map(|()| Fate::Left)
            }
            None => {
                let (mut reached, mut failed) = (false, Drop::Nowhere);
                for peer in 0..self.paths.peers.len() {
                    match self.send(now, buffers, &mut frame, view, peer) {
                        Ok(()) => reached = true,
                        Err(reason) => failed = reason,
                    }
                }
                if reached { Ok(Fate::Left) } else { Err(failed) }
            }
        }
    }
    fn frame_max(&self, peer: usize) -> Option<usize> {
        self.paths.peers.get(peer)?.frame_max()
    }
}
