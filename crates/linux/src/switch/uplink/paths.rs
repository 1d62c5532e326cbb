//! The paths to peers, as what carries the edge's packets, probes and the overlay's datagrams.
//!
//! Invariant: a path that leads nowhere is reported to its peer.

use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Drop;
use crate::dataplane::held::Held;
use crate::dataplane::port::Refusal;
use crate::edge::Carrier;
use crate::encapsulation::Encapsulation;
use crate::switch::path::{Path, is_failure};
use crate::switch::peer::Peer;
use crate::tunnel::probe::{self, Wrong};
use crate::tunnel::session::Refused;
use millpond_core::edge::liveness::Standing;
use millpond_core::overlay::wire;
use millpond_core::{Packet, Time};
use std::ops::Range;

/// The paths and whom they lead to, as what carries packets.
#[derive(Default)]
pub struct Paths {
    pub paths: Vec<Path>,
    pub peers: Vec<Peer>,
}

impl Paths {
    /// Sends a probe, past what waits: it measures the path and not its queue.
    pub fn probe(&mut self, now: Time, peer: usize, label: u16, datagram: &[u8]) {
        let Some(path) =
            self.paths.iter_mut().find(|path| path.peer == peer && path.label == label)
        else {
            return;
        };
        let Some(socket) = &path.socket else { return self.peers[peer].failed(now, label) };
        match socket.send_one(datagram) {
            Ok(()) | Err(Refusal::Full) => {}
            Err(Refusal::TooLong) => self.peers[peer].too_long(now, label, datagram.len()),
            Err(_) => self.peers[peer].failed(now, label),
        }
    }

    /// Sends a datagram of the overlay, past what waits, over the peer's working paths in turn.
    pub fn send_record(&mut self, now: Time, peer: usize, datagram: &[u8]) {
        let is_used = |peers: &[Peer], path: &Path| {
            path.peer == peer && peers[peer].standing(path.label) == Standing::Used
        };
        let used = self.paths.iter().filter(|path| is_used(&self.peers, path)).count();
        let turn = self.peers[peer].talk().map_or(0, |talk| talk.turn(used));
        let path = self.paths.iter().filter(|path| is_used(&self.peers, path)).nth(turn);
        if let Some((label, socket)) =
            path.and_then(|path| Some((path.label, path.socket.as_ref()?)))
            && let Err(Refusal::Unreachable) = socket.send_one(datagram)
        {
            self.peers[peer].failed(now, label);
        }
    }

    fn carry_over(
        &mut self,
        now: Time,
        buffers: &Buffers,
        packets: &[Packet],
        frames: &[Held],
    ) -> Result<(), Drop> {
        let (Some(first), Some(frame)) = (packets.first(), frames.first()) else { return Ok(()) };
        let (stamp, peer) = (Encapsulation::of(first, frame), first.dst as usize);
        let Paths { paths, peers } = self;
        let found = paths.iter_mut().find(|path| path.peer == peer && path.label == stamp.label);
        let (path, peer) = (found.ok_or(Drop::UnknownLabel)?, &mut peers[peer]);
        let result = match (peer.has_key(), peer.session()) {
            (false, _) => path.send(now, buffers, &stamp, frames),
            (true, None) => Err(Drop::NoSession),
            (true, Some(session)) => path.send_sealed(now, buffers, &stamp, frames, session),
        };
        if std::mem::take(&mut path.has_failed) || result.is_err_and(is_failure) {
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
        packets: &[Packet],
        frames: &mut Vec<Held>,
    ) -> Result<(), Drop> {
        let result = self.carry_over(now, buffers, packets, frames);
        frames.drain(..).for_each(|mut frame| frame.bytes.end(buffers));
        result
    }
}

/// Takes a datagram of a peer: a frame in it, or a probe.
pub fn take(
    now: Time,
    peer: &mut Peer,
    label: u16,
    datagram: &mut [u8],
    owns: impl Fn(u128) -> bool,
) -> Result<Option<(Encapsulation, Range<usize>)>, Drop> {
    if probe::is_probe(datagram) {
        return peer.on_probe(now, label, datagram).map(|()| None).map_err(|wrong| match wrong {
            Wrong::Malformed => Drop::BadEncapsulation,
            Wrong::Stranger => Drop::Stranger,
        });
    }
    if wire::is_overlay(datagram) {
        peer.greet(now);
        // One without an overlay takes none.
        return peer
            .talk()
            .map_or(Err(Drop::Stranger), |talk| talk.receive(now, datagram, owns))
            .map(|()| None);
    }
    if peer.has_key() {
        let opened =
            peer.session().map_or(Err(Refused::Stranger), |session| session.open(datagram));
        return opened.map(Some).map_err(|refused| match refused {
            // The peer has not made a datagram that is not sealed.
            Refused::Malformed | Refused::Stranger => Drop::Stranger,
            Refused::Replayed => Drop::Replayed,
        });
    }
    let (stamp, frame) = Encapsulation::read(datagram).ok_or(Drop::BadEncapsulation)?;
    Ok(Some((stamp, datagram.len() - frame.len()..datagram.len())))
}
