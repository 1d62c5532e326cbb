//! A path to another switch: its socket, and what waits for it.
//!
//! Invariant: every datagram that it is given is sent once, waits, or is dropped for a reason that is
//! counted.

use super::buffers::Buffers;
use super::config::PathParams;
use super::counters::{Counters, Drop};
use super::egress::Egress;
use crate::edge::Packet;
use crate::encapsulation::Encapsulation;
use crate::fabric::metadata::class;
use crate::frame::parse_head;
use crate::port::{self, Refusal, udp::Udp};
use crate::tunnel::session::Session;
use millpond_core::Time;

/// A path.
pub struct Path {
    /// As it is configured.
    pub params: PathParams,
    /// Whose it is, among the peers.
    pub peer: usize,
    /// Its place among its peer's paths.
    pub label: u16,
    /// What sends and receives; `None`: it cannot be opened.
    pub socket: Option<Udp>,
    /// Which namespace the socket is in.
    pub home: Option<(u64, u64)>,
    /// Why it cannot be opened.
    pub waiting: Option<port::Error>,
    /// What it has done.
    pub counters: Counters,
    /// What waits for the socket: datagrams.
    pub queue: Egress<Vec<u8>>,
}

impl Path {
    /// That is not open yet.
    pub fn new(params: PathParams, peer: usize, label: u16) -> Path {
        let (counters, queue) = (Counters::default(), Egress::default());
        Path { params, peer, label, socket: None, home: None, waiting: None, counters, queue }
    }

    /// Sends packets, or queues what the socket takes no more of.
    pub fn send(
        &mut self,
        now: Time,
        buffers: &Buffers,
        stamp: &Encapsulation,
        packets: &[Packet],
    ) -> Result<(), Drop> {
        let Some(socket) = &self.socket else { return Err(Drop::PortGone) };
        let header = &stamp.write()[..];
        let (mut sent, mut refused) = (0, None);
        if self.queue.is_idle(now) {
            (sent, refused) = socket.send(header, packets, buffers);
            let bytes = packets[..sent].iter().map(|p| (p.length() + header.len()) as u64).sum();
            self.count(sent, bytes);
        }
        let rest = &packets[sent..];
        let datagram = |i: usize| [header, rest[i].header.bytes(), rest[i].payload(buffers)].concat();
        self.queue_rest(now, refused, rest, header.len(), datagram)
    }

    /// The same with packets sealed; `staging` is room for them.
    pub fn send_sealed(
        &mut self,
        now: Time,
        buffers: &Buffers,
        stamp: &Encapsulation,
        packets: &[Packet],
        (session, staging): (&mut Session, &mut Staging),
    ) -> Result<(), Drop> {
        let Some(socket) = &self.socket else { return Err(Drop::PortGone) };
        staging.clear();
        for packet in packets {
            if !session.seal(stamp, [packet.header.bytes(), packet.payload(buffers)], &mut staging.bytes) {
                return Err(Drop::NoSession);
            }
            staging.ends.push(staging.bytes.len());
        }
        let (mut sent, mut refused) = (0, None);
        if self.queue.is_idle(now) {
            (sent, refused) = socket.send_laid_out(&staging.bytes, &staging.ends);
            let bytes = sent.checked_sub(1).map_or(0, |last| staging.ends[last]);
            self.count(sent, bytes as u64);
        }
        let datagram = |i: usize| staging.datagram(sent + i).to_vec();
        self.queue_rest(now, refused, &packets[sent..], SEALED, datagram)
    }

    fn count(&mut self, sent: usize, bytes: u64) {
        self.counters.sent += sent as u64;
        self.counters.sent_bytes += bytes;
        self.counters.sent_large += u64::from(sent > 1);
    }

    /// Queues what the socket did not take.
    fn queue_rest(
        &mut self,
        now: Time,
        refused: Option<Refusal>,
        rest: &[Packet],
        overhead: usize,
        datagram: impl Fn(usize) -> Vec<u8>,
    ) -> Result<(), Drop> {
        let mut from = 0;
        match refused {
            None => {}
            Some(Refusal::Full) => {
                rest.first().into_iter().for_each(|_| self.queue.refuse(now, datagram(0)));
                from = 1;
            }
            Some(refusal) => return Err(refusal.reason()),
        }
        for (i, packet) in rest.iter().enumerate().skip(from) {
            let size = u16::try_from(packet.length() + overhead).unwrap_or(u16::MAX);
            let front = packet.header.bytes();
            let class = parse_head(front, packet.length()).map_or(Default::default(), |view| class(front, &view));
            let described = millpond_core::Packet { size, class, ..Default::default() };
            if let Err(reason) = self.queue.offer(now, described, || datagram(i)) {
                self.counters.discard(reason);
            }
        }
        if !self.queue.is_empty() {
            self.drain(now);
        }
        Ok(())
    }

    /// Sends what waits, as far as the socket takes it.
    pub fn drain(&mut self, now: Time) {
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

/// Bytes that a sealed frame needs beside its own.
const SEALED: usize = crate::tunnel::session::HEAD + crate::tunnel::session::TAG;

/// Sealed datagrams, one behind another.
#[derive(Default)]
pub struct Staging {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Staging {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
    fn datagram(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }
}
