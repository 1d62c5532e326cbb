//! Links and the packets on them: what a partition's hosts and switches send through.
//!
//! A link's packets in flight are a FIFO at its receiving end, so the event queue holds one arrival
//! a busy link, not one a packet. A link that ends in another partition copies the packet into that
//! partition's mail; it is taken in at the window's edge, before it can be due.
//!
//! Hosts are late with packets by a little (`host.jitter`), both ways. The delay is added where a
//! packet enters the link at a host: it only delays, so windows hold, and it keeps the order of a
//! link. On the way to the host it jitters what is clocked by acknowledgements; on the way from it,
//! what its NIC sends back to back.
//!
//! Invariant: every packet id in the pool is in exactly one place: a link's FIFO, a port's queue,
//! or a node's hands.

use crate::audit::{Audit, Tally};
use crate::cells::Cells;
use crate::event::{Due, HostEvent};
use crate::flight::{Chunks, Flight};
use crate::mail::{Crossing, Mail, Note};
use millpond_core::counters::DropReason;
use millpond_core::host::Received;
use millpond_core::jitter::Jitter;
use millpond_core::outages::{Outages, lost};
use millpond_core::switch::Wire;
use millpond_core::switch::pause::{FRAME_BYTES, PauseFrame, PauseTarget};
use millpond_core::switch::port::LinkRate;
use millpond_core::{Color, PacketId, Packets, Time};
use millpond_results::{PacketRecord, PauseRecord};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// In this partition: index in [`Fabric::inbound`].
    Local(u32),
    /// In another: its number, and the index in its `inbound`.
    Remote(u16, u32),
    /// In this partition, with a host that jitters at one end: index in [`Fabric::jittered`].
    Jittered(u32),
    /// Looked at more closely: index in [`Fabric::watched`].
    Watched(u32),
}

/// The sending end of a directed link.
#[derive(Clone, Copy, Debug)]
pub struct OutLink {
    /// Propagation (and the stack's delay, where an end is a host).
    pub delay: Time,
    pub target: Target,
}

/// A link that fails or is captured.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The same link, not looked at: an out-link of its own, so that the usual case stays small.
    pub plain: u32,
    /// Its rate, to compute when a transmission began.
    pub rate: LinkRate,
    pub delay: Time,
    /// When it is down or loses packets.
    pub outages: Outages,
    /// Captures of its packets.
    pub taps: Vec<LinkTap>,
}

/// A capture's part in one directed link.
#[derive(Clone, Copy, Debug)]
pub struct LinkTap {
    pub tap: u16,
    /// Whether packets leave there, or arrive.
    pub outgoing: bool,
}

/// The node at a link's receiving end, by its number in this partition.
#[derive(Clone, Copy, Debug)]
pub enum Receiver {
    Host(u32),
    /// A switch, and the port there.
    Switch(u32, u16),
    /// Either of them, at the end of a link that may fail: index in [`Fabric::failing`].
    Failing(u32),
}

/// The receiving end of a directed link. Half a cache line.
#[derive(Debug)]
#[repr(align(32))]
pub struct Inbound {
    pub to: Receiver,
    /// The receiver's cell.
    cell: u32,
    /// The number by which its arrivals draw lots.
    lot: u32,
    /// Packets in flight and when their last bit arrives.
    flight: Flight,
}

const _: () = assert!(size_of::<Inbound>() == 32);

impl Inbound {
    /// An idle link to a node of this cell; `lot` is the number by which its arrivals draw lots.
    pub fn new(to: Receiver, cell: u32, lot: u32) -> Inbound {
        Inbound { to, cell, lot, flight: Flight::default() }
    }
}

/// One partition's links, packets and events.
pub struct Fabric {
    pub partition: u16,
    /// Packets.
    pub packets: Packets,
    pub events: Cells,
    /// Links that end here, in the order of their global numbers.
    pub inbound: Vec<Inbound>,
    /// By link that ends here: pause frames in flight and when each arrives. Packets that wait are
    /// no obstacle to them.
    pub pauses: BTreeMap<u32, VecDeque<(Time, PauseFrame)>>,
    /// Where the packets in flight on them are.
    pub chunks: Chunks,
    /// Links that begin here: the switches' ports one after the other, then the hosts' NICs.
    pub outlinks: Vec<OutLink>,
    /// Mail that goes to other partitions at the window's edge, by partition.
    pub outbox: Vec<Mail>,
    /// Links from and to hosts that jitter: where each ends, which is plain, and its delays.
    pub jittered: Vec<(Target, Jitter)>,
    /// Out-links that fail or are captured.
    pub watched: Vec<Watched>,
    /// The receivers at the ends of links that may fail.
    pub failing: Vec<Receiver>,
    /// Packets captured and not yet handed over.
    pub captured: Vec<PacketRecord>,
    pub captured_pauses: Vec<PauseRecord>,
    /// Packets and bytes injected, delivered and dropped.
    pub audit: Audit,
}

impl Fabric {
    /// An event of a host is due at a time.
    #[inline]
    pub fn call(&mut self, at: Time, host: u32, event: HostEvent) {
        self.events.push(at, Due::Host(host, event).into());
    }

    /// Sends `id` over out-link `out`; its last bit leaves at `departs`.
    #[inline]
    pub fn transmit(&mut self, out: u32, id: PacketId, departs: Time) {
        let link = self.outlinks[out as usize];
        let arrives = departs + link.delay;
        match link.target {
            Target::Local(inbound) => self.fly(inbound, arrives, id),
            Target::Remote(partition, inbound) => self.cross(partition, inbound, arrives, id),
            Target::Jittered(jittered) => self.transmit_jittered(jittered, arrives, id),
            Target::Watched(watched) => self.transmit_watched(watched, id, departs),
        }
    }

    /// A packet is sent over a link with a host that jitters. By itself, so that all other hops
    /// stay as short as they are.
    #[inline(never)]
    fn transmit_jittered(&mut self, jittered: u32, arrives: Time, id: PacketId) {
        let (target, jitter) = &mut self.jittered[jittered as usize];
        let (target, late) = (*target, jitter.delay(arrives));
        self.send_plain(target, late, id);
    }

    /// A packet leaves for another partition.
    #[inline]
    fn cross(&mut self, partition: u16, inbound: u32, arrives: Time, id: PacketId) {
        let mail = &mut self.outbox[partition as usize];
        let packet = self.packets.send(id, &mut mail.records);
        mail.packets.push(Crossing { arrives, inbound, packet });
    }

    /// A packet is sent over a link that may fail, or whose packets are captured.
    #[cold]
    #[inline(never)]
    fn transmit_watched(&mut self, watched: u32, id: PacketId, departs: Time) {
        let entry = &mut self.watched[watched as usize];
        let link = self.outlinks[entry.plain as usize];
        let mut arrives = departs + link.delay;
        let packet = &mut self.packets[id];
        let starts = Time::from_ps(
            departs.as_ps().saturating_sub(entry.rate.time(packet.size as u64).as_ps()),
        );
        let lost = entry.outages.strike(packet, starts, departs + entry.delay);
        let mut target = link.target;
        if let Target::Jittered(jittered) = target {
            // A packet that arrives is captured when it is looked at.
            let (plain, jitter) = &mut self.jittered[jittered as usize];
            arrives = jitter.delay(arrives);
            target = *plain;
        }
        for tap in entry.taps.iter().filter(|tap| tap.outgoing || !lost) {
            let at = if tap.outgoing { departs } else { arrives };
            let packet = self.packets[id];
            let records = self.packets.records(&packet);
            self.captured.push(PacketRecord {
                at,
                tap: tap.tap,
                outgoing: tap.outgoing,
                packet,
                records,
                frame: None,
            });
        }
        self.send_plain(target, arrives, id);
    }

    /// A packet is sent to where a link ends that is not looked at more closely.
    fn send_plain(&mut self, target: Target, arrives: Time, id: PacketId) {
        match target {
            Target::Local(inbound) => self.fly(inbound, arrives, id),
            Target::Remote(partition, inbound) => self.cross(partition, inbound, arrives, id),
            Target::Jittered(_) | Target::Watched(_) => {
                unreachable!("what a watched link leads to is plain")
            }
        }
    }

    /// The receiver of the packet that has come over a link that may fail; `None` if it was lost
    /// there.
    #[cold]
    pub fn land_failing(&mut self, failing: u32, id: PacketId) -> Option<Receiver> {
        let Some(reason) = lost(&self.packets[id]) else {
            return Some(self.failing[failing as usize]);
        };
        self.audit.hops -= 1;
        self.discard(id, reason);
        None
    }

    #[inline]
    fn fly(&mut self, inbound: u32, arrives: Time, id: PacketId) {
        let link = &mut self.inbound[inbound as usize];
        if link.flight.is_empty() {
            self.events.push_to(
                link.cell,
                arrives,
                Due::Arrival { inbound, number: link.lot }.into(),
            );
        }
        link.flight.push(arrives, id, &mut self.chunks);
    }

    /// The packet whose arrival is due on `inbound`, and who receives it.
    #[inline]
    pub fn land(&mut self, inbound: u32) -> (Receiver, PacketId) {
        self.audit.hops += 1;
        let link = &mut self.inbound[inbound as usize];
        let (id, next) = link
            .flight
            .pop(&mut self.chunks)
            .expect("an arrival is scheduled only for a packet in flight");
        if let Some((arrives, next)) = next {
            // Fetches the next packet's line while others are served: with many packets under way
            // it is far off, and waiting for it is what a hop would cost most. A store, for unlike
            // a load it holds nothing up; the field is set anew on arrival.
            self.packets[next].ingress = 0;
            self.events.push_here(arrives, Due::Arrival { inbound, number: link.lot }.into());
        }
        (link.to, id)
    }

    /// The pause frame whose arrival is due on `inbound`, and who receives it.
    pub fn land_pause(&mut self, inbound: u32) -> (Receiver, PauseFrame) {
        let pauses = self.pauses.entry(inbound).or_default();
        let (_, frame) =
            pauses.pop_front().expect("a pause is scheduled only for a frame in flight");
        if let Some((arrives, _)) = pauses.front() {
            self.events.push(*arrives, Due::Pause(inbound).into());
        }
        match self.inbound[inbound as usize].to {
            Receiver::Failing(failing) => (self.failing[failing as usize], frame),
            to => (to, frame),
        }
    }

    /// Takes in the packets and pause frames that another partition sent. Its notes stay for the
    /// hosts.
    pub fn take_in(&mut self, mail: &mut Mail) {
        let Mail { packets, records, .. } = mail;
        let mut records = records.drain(..);
        packets.take(|Crossing { arrives, inbound, packet }| {
            let id = self.packets.bring(packet, &mut records);
            self.fly(inbound, arrives, id);
        });
        drop(records);
        for (arrives, inbound, frame) in mail.pauses.drain(..) {
            self.fly_pause(inbound, arrives, frame);
        }
    }

    fn fly_pause(&mut self, inbound: u32, arrives: Time, frame: PauseFrame) {
        let pauses = self.pauses.entry(inbound).or_default();
        if pauses.is_empty() {
            self.events.push(arrives, Due::Pause(inbound).into());
        }
        pauses.push_back((arrives, frame));
    }

    /// Sends a pause frame over out-link `out`; its last bit leaves at `departs`.
    #[cold]
    pub fn send_pause(&mut self, out: u32, frame: PauseFrame, departs: Time) {
        let link = self.outlinks[out as usize];
        let arrives = departs + link.delay;
        match link.target {
            Target::Local(inbound) => self.fly_pause(inbound, arrives, frame),
            // NICs obey by themselves: nothing that could be late has a part in it.
            Target::Jittered(jittered) => match self.jittered[jittered as usize].0 {
                Target::Local(inbound) => self.fly_pause(inbound, arrives, frame),
                Target::Remote(partition, inbound) => {
                    self.outbox[partition as usize].pauses.push((arrives, inbound, frame));
                }
                Target::Jittered(_) | Target::Watched(_) => {
                    unreachable!("what a jittered link leads to is plain")
                }
            },
            Target::Remote(partition, inbound) => {
                self.outbox[partition as usize].pauses.push((arrives, inbound, frame));
            }
            Target::Watched(watched) => {
                let link = &mut self.watched[watched as usize];
                let starts = departs.saturating_sub(link.rate.time(FRAME_BYTES));
                let lost = link.outages.lose(starts, departs + link.delay, Color::Green).is_some();
                for tap in link.taps.iter().filter(|tap| tap.outgoing || !lost) {
                    let at = if tap.outgoing { departs } else { arrives };
                    let LinkTap { tap, outgoing, .. } = *tap;
                    self.captured_pauses.push(PauseRecord {
                        at,
                        tap,
                        outgoing,
                        frame,
                        rate: link.rate,
                    });
                }
                if !lost {
                    let plain = link.plain;
                    self.send_pause(plain, frame, departs);
                }
            }
        }
    }

    /// A packet has reached its host.
    #[inline]
    pub fn arrived(&mut self, id: PacketId) {
        self.audit.delivered.add(self.packets[id].size);
    }

    /// Drops all packets of what had reached its host.
    pub fn discard_received(&mut self, received: Received, reason: DropReason) {
        let all = Tally { packets: u64::from(received.packets), bytes: u64::from(received.bytes) };
        self.audit.drop_delivered(&self.packets[received.id], all, reason);
        self.packets.remove(received.id);
    }

    /// Drops a packet for a reason.
    #[cold]
    pub fn discard(&mut self, id: PacketId, reason: DropReason) {
        self.audit.drop(&self.packets[id], reason);
        self.packets.remove(id);
    }

    /// Leaves a note for another partition.
    pub fn post(&mut self, partition: u16, note: Note) {
        self.outbox[partition as usize].notes.push(note);
    }

    /// Packets in flight on the links that end here.
    pub fn in_flight(&self) -> impl Iterator<Item = PacketId> + '_ {
        self.inbound.iter().flat_map(|link| link.flight.ids(&self.chunks))
    }
}

/// The links of one node as its ports see them.
pub struct Ports<'a> {
    pub fabric: &'a mut Fabric,
    /// The node's first out-link; its port p is the p-th after it.
    pub first: u32,
}

impl Wire for Ports<'_> {
    #[inline]
    fn packets(&mut self) -> &mut Packets {
        &mut self.fabric.packets
    }
    #[inline]
    fn transmit(&mut self, port: u16, id: PacketId, departs: Time) {
        self.fabric.transmit(self.first + port as u32, id, departs);
    }
    #[inline]
    fn call_ready(&mut self, port: u16, at: Time) {
        self.fabric.events.push_here(at, Due::PortReady(self.first + port as u32).into());
    }
    fn discard(&mut self, id: PacketId, reason: DropReason) {
        self.fabric.discard(id, reason);
    }
    fn trimmed(&mut self, bytes: u16) {
        self.fabric.audit.trimmed.add(bytes);
    }
    fn send_pause(&mut self, port: u16, frame: PauseFrame, departs: Time) {
        self.fabric.send_pause(self.first + port as u32, frame, departs);
    }
    fn call_pause_check(&mut self, port: u16, target: PauseTarget, at: Time) {
        self.fabric
            .events
            .push(at, Due::PauseCheck { out: self.first + port as u32, target }.into());
    }
}
