//! The hosts of one partition: applications, connections and NICs.
//!
//! A connection has a sending side at one host and a receiving side at the other, each in its host's partition. The two
//! sides speak through packets; what the simulation itself must know (that a connection exists, that it is over) goes by
//! [`Note`]. Data packets carry the receiver's slot and acknowledgements the sender's, so the per-packet path looks
//! nothing up; only the packets of the first round trip, which cannot know the slot yet, are found by flow id.
//!
//! Invariant: each flow that starts makes exactly one record, and a packet of a connection that is over is answered or
//! ignored as if the connection were still there, whatever partition its other side is in.

use crate::events::{Class, Key};
use crate::fabric::Fabric;
use crate::mail::{Note, Opening, Role};
use crate::nic::{Nic, Offered, Share};
use crate::shared::Shared;
use crate::slab::Slab;
use crate::transport::{AckIn, AckOut, Outgoing, Receiver, Sender};
use millpond_core::packet::{NONE, flags};
use millpond_core::random::mix64;
use millpond_core::{Color, Ecn, FlowId, HostId, Packet, PacketId, Time};
use millpond_results::{FlowRecord, QueryRecord};
use millpond_scenario::traffic::{Arrival, Query, SourceKind};
use millpond_scenario::{ideal_exchange, ideal_fct};
use std::collections::BTreeMap;
use std::sync::Arc;

/// TCP and IP headers without options.
pub const HEADER: u32 = 40;
/// Switches that a packet may cross. Source: the value of the Vertigo and Canary artifacts' hosts.
const TTL: u8 = 250;

/// A host.
pub struct Host {
    /// Its number in the whole network.
    pub id: HostId,
    /// Its NIC's out-link.
    pub out: u32,
    /// Its NIC.
    pub nic: Nic,
}

/// The sending side of a connection.
pub struct Sending {
    sender: Sender,
    host: u32,
    opening: Opening,
    /// The receiver's slot, once an acknowledgement has told it.
    peer: u32,
    hash: u32,
    priority: u8,
    /// When a timer event is scheduled; `Time::MAX`: none is.
    timer_at: Time,
    first_sent: Option<Time>,
    delivered: Option<Delivered>,
    share: Option<Box<Share>>,
}

#[derive(Clone, Copy)]
struct Delivered {
    at: Time,
    out_of_order: u32,
    path_changes: u32,
}

/// The receiving side of a connection.
pub struct Receiving {
    receiver: Receiver,
    host: u32,
    opening: Opening,
    hash: u32,
    priority: u8,
    timer_at: Time,
    /// Bytes delivered in order.
    delivered: u64,
    /// Where the present flow or message ends.
    ends: u64,
    /// When the present message of a persistent connection was asked for; `Time::MAX`: none is under way.
    asked: Time,
    /// Bytes delivered in the measured time.
    measured: u64,
    out_of_order: u32,
    path_changes: u32,
    path: u8,
    any: bool,
}

/// A query that waits for responses.
struct Pending {
    query: Query,
    completed: u32,
}

/// What a partition's hosts have counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostCounters {
    /// Flows started.
    pub started: u64,
    /// Flows over.
    pub completed: u64,
    /// Flows started and not over; the sum over all partitions is what is under way (one partition's may be negative).
    pub active: i64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Data packets that arrived behind a later one.
    pub out_of_order: u64,
    /// Application bytes delivered in the measured time.
    pub measured_bytes: u64,
}

impl HostCounters {
    /// Adds another partition's.
    pub fn merge(&mut self, other: &HostCounters) {
        self.started += other.started;
        self.completed += other.completed;
        self.active += other.active;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.out_of_order += other.out_of_order;
        self.measured_bytes += other.measured_bytes;
    }
}

/// All hosts of a partition.
pub struct Hosts {
    /// What all partitions share.
    pub shared: Arc<Shared>,
    /// By number in this partition.
    pub hosts: Vec<Host>,
    senders: Slab<Sending>,
    receivers: Slab<Receiving>,
    queries: BTreeMap<u32, Pending>,
    /// By shuffle (source index) and host here: how many of its flows have started.
    shuffled: BTreeMap<(u16, u32), u32>,
    /// Flows that are over, with the time at which they were.
    pub flow_records: Vec<(Time, FlowRecord)>,
    /// Queries that are over.
    pub query_records: Vec<(Time, QueryRecord)>,
    /// Probes answered in the measured time: (when, the answers' flow, round-trip time).
    pub rtts: Vec<(Time, FlowId, Time)>,
    /// Bytes delivered in the measured time, by (source, destination).
    pub pairs: BTreeMap<(HostId, HostId), u64>,
    /// Counters.
    pub counters: HostCounters,
    /// What general NICs have just begun to send; empty between events.
    begun: Vec<Departure>,
}

/// A packet that a general NIC has begun to send.
struct Departure {
    out: u32,
    id: PacketId,
    departs: Time,
}

fn five_tuple_hash(src: HostId, dst: HostId, flow: FlowId) -> u32 {
    (mix64((src as u64) << 32 | dst as u64) ^ mix64(flow as u64)) as u32
}

impl Hosts {
    /// Hosts without connections.
    pub fn new(shared: Arc<Shared>, hosts: Vec<Host>) -> Hosts {
        Hosts {
            shared,
            hosts,
            senders: Slab::default(),
            receivers: Slab::default(),
            queries: BTreeMap::new(),
            shuffled: BTreeMap::new(),
            flow_records: Vec::new(),
            query_records: Vec::new(),
            rtts: Vec::new(),
            pairs: BTreeMap::new(),
            counters: HostCounters::default(),
            begun: Vec::new(),
        }
    }

    // ── Flows begin ──────────────────────────────────────────────────────────────────────────────────────────────

    /// A query is asked; its flows follow.
    pub fn expect(&mut self, query: Query) {
        self.queries.insert(query.query, Pending { query, completed: 0 });
    }

    /// An open-loop flow starts.
    pub fn start(&mut self, now: Time, arrival: &Arrival, fabric: &mut Fabric) {
        let role = if arrival.response > 0 { Role::Request { response: arrival.response } } else { Role::OneWay };
        let opening = Opening {
            flow: arrival.flow,
            src: arrival.src,
            dst: arrival.dst,
            sender_slot: NONE,
            bytes: arrival.bytes,
            role,
            class: arrival.class,
            query: arrival.query,
            start: now,
            request: 0,
        };
        self.count_start();
        let slot = self.open(now, opening, self.shared.handshake, fabric);
        self.senders.at(slot).sender.write(now, arrival.bytes);
        self.pump(now, slot, fabric);
    }

    /// The closed loops that begin at this partition's host `host`.
    pub fn start_loops(&mut self, now: Time, source: u16, host: u32, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let id = self.hosts[host as usize].id;
        match &shared.plan.traffic.sources[source as usize].kind {
            SourceKind::Open => {}
            SourceKind::Shuffle { concurrency, .. } => {
                for _ in 0..*concurrency {
                    self.next_of_shuffle(now, source, host, fabric);
                }
            }
            SourceKind::Rpc { connections, request, .. } => {
                for (index, (client, server)) in connections.iter().enumerate() {
                    if *client == id {
                        self.open_rpc(now, source, index as u32, (*client, *server), *request, fabric);
                    }
                }
            }
            SourceKind::Probe { pairs, stop, first_flow, .. } => {
                for (index, pair) in pairs.iter().enumerate().filter(|(_, pair)| pair.src == id) {
                    let (at, flow) = (now.saturating_add(pair.phase), first_flow + 2 * index as u32);
                    if at < *stop {
                        fabric.events.push(at, Key::new(Class::Probe, host, flow));
                    }
                }
            }
        }
    }

    fn count_start(&mut self) {
        self.counters.started += 1;
        self.counters.active += 1;
    }

    /// Starts the host's next flow of a shuffle, if there is one.
    fn next_of_shuffle(&mut self, now: Time, source: u16, host: u32, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let SourceKind::Shuffle { size, stop, order, first_flow, .. } =
            &shared.plan.traffic.sources[source as usize].kind
        else {
            return;
        };
        let src = self.hosts[host as usize].id;
        let destinations = &order[src as usize];
        let started = self.shuffled.entry((source, host)).or_insert(0);
        let Some(&dst) = destinations.get(*started as usize) else { return };
        if now >= *stop {
            return;
        }
        let flow = first_flow + src * destinations.len() as u32 + *started;
        *started += 1;
        let opening = Opening {
            flow,
            src,
            dst,
            sender_slot: NONE,
            bytes: *size,
            role: Role::Shuffle,
            class: shared.plan.traffic.sources[source as usize].class,
            query: None,
            start: now,
            request: 0,
        };
        self.count_start();
        let slot = self.open(now, opening, self.shared.handshake, fabric);
        self.senders.at(slot).sender.write(now, *size);
        self.pump(now, slot, fabric);
    }

    fn open_rpc(
        &mut self,
        now: Time,
        source: u16,
        index: u32,
        (src, dst): (HostId, HostId),
        request: u64,
        fabric: &mut Fabric,
    ) {
        let traffic = &self.shared.plan.traffic.sources[source as usize];
        let SourceKind::Rpc { first_flow, .. } = traffic.kind else { return };
        let opening = Opening {
            flow: first_flow + 2 * index,
            src,
            dst,
            sender_slot: NONE,
            bytes: request,
            role: Role::RpcRequests,
            class: traffic.class,
            query: None,
            start: now,
            request: 0,
        };
        self.count_start();
        let slot = self.open(now, opening, self.shared.handshake, fabric);
        self.senders.at(slot).sender.write(now, request);
        self.pump(now, slot, fabric);
    }

    /// A probe is due: asks, on a connection that is taken to have been open for ever.
    pub fn on_probe(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let slot = match self.senders.slot_of(flow) {
            Some(slot) => slot,
            None => {
                let Some((class, probe, pair)) = self.shared.probe_of(flow) else { return };
                let opening = Opening {
                    flow,
                    src: pair.src,
                    dst: pair.dst,
                    sender_slot: NONE,
                    bytes: probe.size,
                    role: Role::Pings,
                    class,
                    query: None,
                    start: now,
                    request: 0,
                };
                self.open(now, opening, false, fabric)
            }
        };
        if let Some(answers) = self.receivers.slot_of(flow + 1) {
            self.receivers.at(answers).asked = now;
        }
        let it = self.senders.at(slot);
        let bytes = it.opening.bytes;
        it.sender.write(now, bytes);
        self.pump(now, slot, fabric);
    }

    /// A probe is answered: measures it, and asks again when the period is over.
    fn probed(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let it = self.receivers.at(slot);
        let (flow, asked) = (it.opening.flow, it.asked);
        if asked >= self.shared.plan.warm_up {
            self.rtts.push((now, flow, now.saturating_sub(asked)));
        }
        let Some((_, probe, _)) = self.shared.probe_of(flow - 1) else { return };
        let next = asked.saturating_add(probe.period).max(now);
        if next < probe.stop {
            fabric.events.push(next, Key::new(Class::Probe, self.receivers.at(slot).host, flow - 1));
        }
    }

    /// Makes the sending side of a connection and tells the receiving host of it.
    fn open(&mut self, now: Time, mut opening: Opening, handshake: bool, fabric: &mut Fabric) -> u32 {
        let shared = &self.shared;
        let sending = Sending {
            sender: if handshake { Sender::new(&shared.transport) } else { Sender::established(&shared.transport) },
            host: shared.local_host(opening.src),
            opening,
            peer: NONE,
            hash: five_tuple_hash(opening.src, opening.dst, opening.flow),
            priority: shared.plan.traffic.priorities[opening.class as usize],
            timer_at: Time::MAX,
            first_sent: None,
            delivered: None,
            share: shared.nic_limit.map(|limit| Box::new(Share::new(limit))),
        };
        let slot = self.senders.insert(opening.flow, sending);
        opening.sender_slot = slot;
        self.senders.at(slot).opening = opening;
        self.tell(now, opening.dst, Note::Open(opening), fabric);
        slot
    }

    /// Leaves a note for the partition of `host`, which may be this one.
    fn tell(&mut self, now: Time, host: HostId, note: Note, fabric: &mut Fabric) {
        let partition = self.shared.partition_of_host(host);
        if partition == fabric.partition {
            self.read(now, note, fabric);
        } else {
            fabric.post(partition, note);
        }
    }

    /// Reads a note.
    pub fn read(&mut self, now: Time, note: Note, fabric: &mut Fabric) {
        match note {
            Note::Open(opening) => self.accept(now, opening, fabric),
            Note::Delivered { flow, at, out_of_order, path_changes } => {
                if let Some(slot) = self.senders.slot_of(flow) {
                    self.senders.at(slot).delivered = Some(Delivered { at, out_of_order, path_changes });
                }
            }
            Note::Release(flow) => {
                if let Some(slot) = self.receivers.slot_of(flow)
                    && let Some(ended) = self.receivers.remove(slot)
                {
                    fabric.events.cancel(ended.timer_at, Key::new(Class::ReceiverTimer, ended.host, flow));
                    self.count_received(&ended);
                }
            }
        }
    }

    /// Makes the receiving side of a connection.
    fn accept(&mut self, now: Time, opening: Opening, fabric: &mut Fabric) {
        let receiving = Receiving {
            receiver: Receiver::new(),
            host: self.shared.local_host(opening.dst),
            opening,
            hash: five_tuple_hash(opening.dst, opening.src, opening.flow),
            priority: self.shared.plan.traffic.priorities[opening.class as usize],
            timer_at: Time::MAX,
            delivered: 0,
            ends: opening.bytes,
            asked: opening.start,
            measured: 0,
            out_of_order: 0,
            path_changes: 0,
            path: 0,
            any: false,
        };
        self.receivers.insert(opening.flow, receiving);
        if opening.role == Role::Pings {
            let answers =
                Opening { flow: opening.flow + 1, src: opening.dst, dst: opening.src, role: Role::Pongs, ..opening };
            self.open(now, answers, false, fabric);
        }
        if opening.role == Role::RpcRequests {
            // The server's half of the connection: its responses go out on the next flow id.
            let traffic = &self.shared.plan.traffic.sources;
            let bytes = traffic.iter().find_map(|source| match &source.kind {
                SourceKind::Rpc { connections, response, first_flow, .. }
                    if opening.flow >= *first_flow && opening.flow - first_flow < 2 * connections.len() as u32 =>
                {
                    Some(*response)
                }
                _ => None,
            });
            let responses = Opening {
                flow: opening.flow + 1,
                src: opening.dst,
                dst: opening.src,
                bytes: bytes.unwrap_or(0),
                role: Role::RpcResponses,
                ..opening
            };
            self.open(now, responses, false, fabric);
        }
    }

    // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Hands down what the windows and the NIC allow, and keeps the timer armed.
    #[inline]
    fn pump(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let shared = &*self.shared;
        loop {
            let it = self.senders.at(slot);
            let room = match &mut it.share {
                None => shared.segment_max,
                Some(share) => match share.room(now, shared.segment_max) {
                    Some(room) => room,
                    None => {
                        wake_when_room(it, shared, fabric);
                        break;
                    }
                },
            };
            let Some(out) = it.sender.poll_send(now, room, &shared.transport) else { break };
            let host = &mut self.hosts[it.host as usize];
            hand_down(now, slot, it, &out, host, shared, fabric, &mut self.begun);
            if !self.begun.is_empty() {
                transmit_begun(&mut self.begun, &mut self.senders, shared, fabric);
            }
        }
        let it = self.senders.at(slot);
        let deadline = it.sender.deadline();
        if deadline < it.timer_at {
            it.timer_at = deadline;
            fabric.events.push(deadline, Key::new(Class::SenderTimer, it.host, it.opening.flow));
        }
    }

    /// A general NIC's link is free.
    pub fn on_nic_ready(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let it = &mut self.hosts[host as usize];
        if let Some((id, departs)) = it.nic.on_ready(now, it.out, fabric) {
            self.begun.push(Departure { out: it.out, id, departs });
            transmit_begun(&mut self.begun, &mut self.senders, &self.shared, fabric);
        }
    }

    /// A flow's segment has left its NIC.
    pub fn on_nic_room(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.senders.slot_of(flow) else { return };
        if let Some(share) = &mut self.senders.at(slot).share {
            if share.wake_at != now {
                return;
            }
            share.wake_at = Time::MAX;
        }
        self.pump(now, slot, fabric);
    }

    /// A sender's timer event is due; the deadline may have moved since.
    pub fn on_sender_timer(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.senders.slot_of(flow) else { return };
        let it = self.senders.at(slot);
        if it.timer_at != now {
            return;
        }
        it.timer_at = Time::MAX;
        it.sender.on_timer(now, &self.shared.transport);
        self.pump(now, slot, fabric);
    }

    // ── Receiving ────────────────────────────────────────────────────────────────────────────────────────────────

    /// A packet has arrived at one of this partition's hosts.
    #[inline]
    pub fn on_arrival(&mut self, now: Time, host: u32, id: PacketId, fabric: &mut Fabric) {
        let packet = fabric.deliver(id);
        if packet.is_data() {
            self.on_data(now, host, &packet, fabric);
        } else if packet.has(flags::SYN) {
            self.on_handshake(now, host, &packet, fabric);
        } else {
            self.on_ack(now, &packet, fabric);
        }
    }

    #[inline]
    fn on_ack(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let sack = (packet.side != NONE).then(|| {
            fabric.sacks.remove(packet.side);
            fabric.sacks[packet.side]
        });
        let Some(it) = self.senders.get(packet.peer, packet.flow) else { return };
        it.peer = packet.seq as u32;
        let ack = AckIn { ack: packet.ack, ece: packet.has(flags::ECE), sack: sack.as_ref(), stamp: packet.stamp };
        it.sender.on_ack(now, &ack, &self.shared.transport);
        if it.sender.is_done() && !it.opening.role.is_persistent() {
            self.end(now, packet.peer, fabric);
        } else {
            self.pump(now, packet.peer, fabric);
        }
    }

    /// A SYN or a SYN-ACK (RFC 9293 §3.5): neither takes sequence space here.
    #[cold]
    fn on_handshake(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        if packet.has(flags::ACK) {
            let Some(it) = self.senders.get(packet.peer, packet.flow) else { return };
            it.peer = packet.seq as u32;
            it.sender.on_syn_ack(now, packet.stamp, &self.shared.transport);
            return self.pump(now, packet.peer, fabric);
        }
        let slot = self.receivers.slot_of(packet.flow).unwrap_or(NONE);
        let answer = Packet {
            seq: slot as u64,
            stamp: packet.stamp,
            flow: packet.flow,
            src: packet.dst,
            dst: packet.src,
            hash: five_tuple_hash(packet.dst, packet.src, packet.flow),
            side: NONE,
            peer: packet.ack as u32,
            size: packet.size,
            priority: packet.priority,
            flags: flags::SYN | flags::ACK,
            ttl: TTL,
            ..Packet::default()
        };
        self.put(now, host, answer, fabric);
    }

    #[inline]
    fn on_data(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        let slot = if packet.peer != NONE { packet.peer } else { self.receivers.slot_of(packet.flow).unwrap_or(NONE) };
        let shared = &*self.shared;
        let Some(it) = self.receivers.get(slot, packet.flow) else {
            return self.on_stray(now, host, packet, fabric);
        };
        if it.path != packet.path {
            it.path_changes += it.any as u32;
            it.path = packet.path;
        }
        it.any = true;
        let (ce, cwr) = (packet.ecn == Ecn::Ce, packet.has(flags::CWR));
        let arrived =
            it.receiver.on_data(now, packet.seq, packet.payload as u32, ce, cwr, packet.stamp, &shared.transport);
        it.out_of_order += arrived.out_of_order as u32;
        let news = arrived.in_order_upto - it.delivered;
        if now >= shared.plan.warm_up {
            it.measured += news;
        }
        it.delivered = arrived.in_order_upto;
        let deadline = it.receiver.deadline();
        if deadline < it.timer_at {
            it.timer_at = deadline;
            fabric.events.push(deadline, Key::new(Class::ReceiverTimer, it.host, packet.flow));
        }
        let complete = news > 0 && it.delivered >= it.ends;
        for ack in arrived.acks.into_iter().flatten() {
            self.acknowledge(now, slot, &ack, fabric);
        }
        if complete {
            self.complete(now, slot, fabric);
        }
    }

    /// Data for a connection that is over: a late copy, which is acknowledged at once like any duplicate
    /// (RFC 9293 §3.10.7.4). Its sender is gone, so only the size of the answer matters.
    #[cold]
    fn on_stray(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        let answer = Packet {
            seq: NONE as u64,
            ack: packet.seq + packet.payload as u64,
            stamp: packet.stamp,
            flow: packet.flow,
            src: packet.dst,
            dst: packet.src,
            hash: five_tuple_hash(packet.dst, packet.src, packet.flow),
            side: NONE,
            peer: packet.ack as u32,
            size: self.shared.header as u16,
            priority: packet.priority,
            flags: flags::ACK,
            ttl: TTL,
            ..Packet::default()
        };
        self.put(now, host, answer, fabric);
    }

    /// A receiver's delayed acknowledgement is due.
    pub fn on_receiver_timer(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.receivers.slot_of(flow) else { return };
        let it = self.receivers.at(slot);
        if it.timer_at != now {
            return;
        }
        it.timer_at = Time::MAX;
        let ack = it.receiver.on_timer(now, &self.shared.transport);
        let deadline = it.receiver.deadline();
        if deadline != Time::MAX {
            it.timer_at = deadline;
            fabric.events.push(deadline, Key::new(Class::ReceiverTimer, it.host, flow));
        }
        if let Some(ack) = ack {
            self.acknowledge(now, slot, &ack, fabric);
        }
    }

    #[inline]
    fn acknowledge(&mut self, now: Time, slot: u32, ack: &AckOut, fabric: &mut Fabric) {
        let it = self.receivers.at(slot);
        // RFC 2018 §3: two bytes and eight a block, padded to a multiple of four.
        let (side, option) = match ack.sack.count {
            0 => (NONE, 0),
            n => (fabric.sacks.insert(ack.sack), 4 + 8 * n as u32),
        };
        let packet = Packet {
            seq: slot as u64,
            ack: ack.ack,
            stamp: ack.stamp,
            flow: it.opening.flow,
            src: it.opening.dst,
            dst: it.opening.src,
            hash: it.hash,
            side,
            peer: it.opening.sender_slot,
            rank: 0,
            size: (self.shared.header + option) as u16,
            payload: 0,
            flags: if ack.ece { flags::ACK | flags::ECE } else { flags::ACK },
            ecn: Ecn::NotEct,
            color: Color::Green,
            priority: it.priority,
            ingress: 0,
            ttl: TTL,
            path: 0,
        };
        let host = it.host;
        self.put(now, host, packet, fabric);
    }

    /// Gives one packet to a host's NIC.
    #[inline]
    fn put(&mut self, now: Time, host: u32, packet: Packet, fabric: &mut Fabric) {
        let it = &mut self.hosts[host as usize];
        fabric.audit.injected.add(packet.size);
        let id = fabric.packets.insert(packet);
        if let Offered::Waits(Some((id, departs))) = it.nic.offer(now, it.out, id, fabric) {
            self.begun.push(Departure { out: it.out, id, departs });
            transmit_begun(&mut self.begun, &mut self.senders, &self.shared, fabric);
        }
    }

    // ── Flows end ────────────────────────────────────────────────────────────────────────────────────────────────

    /// The receiver has all bytes of a flow or of a message.
    fn complete(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let it = self.receivers.at(slot);
        let opening = it.opening;
        let (out_of_order, path_changes) = (it.out_of_order, it.path_changes);
        if opening.role.is_persistent() {
            return self.complete_message(now, slot, fabric);
        }
        let note = Note::Delivered { flow: opening.flow, at: now, out_of_order, path_changes };
        self.tell(now, opening.src, note, fabric);
        match opening.role {
            Role::Request { response } => {
                let answer = Opening {
                    flow: opening.flow + 1,
                    src: opening.dst,
                    dst: opening.src,
                    bytes: response,
                    role: Role::Response,
                    request: opening.bytes,
                    ..opening
                };
                let slot = self.open(now, answer, false, fabric);
                self.senders.at(slot).sender.write(now, response);
                self.pump(now, slot, fabric);
            }
            _ => {
                if let Some(query) = opening.query {
                    self.answered(now, query);
                }
            }
        }
    }

    /// A whole request or response of a persistent connection has arrived: answer it, or record it and ask again.
    fn complete_message(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let it = self.receivers.at(slot);
        let opening = it.opening;
        it.ends += opening.bytes;
        if opening.role == Role::Pongs {
            return self.probed(now, slot, fabric);
        }
        let pair =
            if matches!(opening.role, Role::RpcRequests | Role::Pings) { opening.flow + 1 } else { opening.flow - 1 };
        if opening.role == Role::RpcResponses {
            let record = message_record(it, Some(now), self.shared.plan.warm_up);
            it.asked = now;
            self.flow_records.push((now, record));
            self.counters.completed += 1;
            self.counters.active -= 1;
            if now >= self.shared.rpc_stop(opening.flow) {
                self.receivers.at(slot).asked = Time::MAX;
                return;
            }
            self.count_start();
        }
        if let Some(slot) = self.senders.slot_of(pair) {
            let it = self.senders.at(slot);
            let bytes = it.opening.bytes;
            it.sender.write(now, bytes);
            self.pump(now, slot, fabric);
        }
    }

    fn answered(&mut self, now: Time, query: u32) {
        let Some(pending) = self.queries.get_mut(&query) else { return };
        pending.completed += 1;
        if pending.completed == pending.query.degree {
            let record = query_record(pending, Some(now), self.shared.plan.warm_up);
            self.queries.remove(&query);
            self.query_records.push((now, record));
        }
    }

    /// All bytes of a flow are acknowledged.
    fn end(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let Some(ended) = self.senders.remove(slot) else { return };
        fabric.events.cancel(ended.timer_at, Key::new(Class::SenderTimer, ended.host, ended.opening.flow));
        let opening = ended.opening;
        self.count_sent(&ended.sender);
        // Read at the next edge, even where it stays in this partition: what the receiver answers to a late copy, which a
        // capture shows, must not depend on where it is.
        fabric.post(self.shared.partition_of_host(opening.dst), Note::Release(opening.flow));
        if matches!(opening.role, Role::Request { .. }) {
            // Its record is the response's.
            return;
        }
        self.counters.completed += 1;
        self.counters.active -= 1;
        let record =
            FlowRecord { ideal: self.ideal(&opening), ..flow_record(&ended, Some(now), self.shared.plan.warm_up) };
        self.flow_records.push((now, record));
        if opening.role == Role::Shuffle {
            let source = self.shared.shuffle_of(opening.flow);
            self.next_of_shuffle(now, source, ended.host, fabric);
        }
    }

    /// The same flow alone in the empty network.
    fn ideal(&self, o: &Opening) -> Time {
        match o.role {
            Role::Response => ideal_exchange(&self.shared.plan, o.dst, o.src, o.request, o.bytes),
            _ => ideal_fct(&self.shared.plan, o.src, o.dst, o.bytes),
        }
    }

    fn count_sent(&mut self, sender: &Sender) {
        self.counters.retransmitted += sender.retransmitted as u64;
        self.counters.timeouts += sender.timeouts as u64;
    }

    fn count_received(&mut self, it: &Receiving) {
        self.counters.out_of_order += it.out_of_order as u64;
        if it.measured > 0 && !it.opening.role.is_probe() {
            self.counters.measured_bytes += it.measured;
            *self.pairs.entry((it.opening.src, it.opening.dst)).or_insert(0) += it.measured;
        }
    }

    /// The run is over: makes the records of what is not, and counts what the open connections hold.
    pub fn finish(&mut self, end: Time) {
        let warm_up = self.shared.plan.warm_up;
        let mut rest: Vec<FlowRecord> = Vec::new();
        let (mut retransmitted, mut timeouts) = (0, 0);
        for (_, it) in self.senders.iter() {
            retransmitted += it.sender.retransmitted as u64;
            timeouts += it.sender.timeouts as u64;
            match it.opening.role {
                Role::RpcRequests | Role::RpcResponses | Role::Pings | Role::Pongs => {}
                // The response that has not begun is what did not finish.
                Role::Request { response } => {
                    if it.delivered.is_none() {
                        let o = it.opening;
                        let record = flow_record(it, None, warm_up);
                        rest.push(FlowRecord {
                            flow: o.flow + 1,
                            src: o.dst,
                            dst: o.src,
                            bytes: response,
                            finish: None,
                            ..record
                        });
                    }
                }
                _ => rest.push(flow_record(it, None, warm_up)),
            }
        }
        self.counters.retransmitted += retransmitted;
        self.counters.timeouts += timeouts;
        let mut received = std::mem::take(&mut self.receivers);
        for it in received.drain() {
            if it.opening.role == Role::RpcResponses && it.asked != Time::MAX && it.asked < end {
                rest.push(message_record(&it, None, warm_up));
            }
            self.count_received(&it);
        }
        rest.sort_by_key(|record| (record.flow, record.start));
        self.flow_records.extend(rest.into_iter().map(|record| (Time::MAX, record)));
        for pending in std::mem::take(&mut self.queries).into_values() {
            if pending.query.at < end {
                self.query_records.push((Time::MAX, query_record(&pending, None, warm_up)));
            }
        }
    }

    /// All packets that wait in NICs, for the audit.
    pub fn queued(&self) -> impl Iterator<Item = PacketId> + '_ {
        self.hosts.iter().flat_map(|host| host.nic.queued())
    }

    /// Packets marked by this partition's NICs.
    pub fn marked(&self) -> u64 {
        self.hosts.iter().map(|host| host.nic.marked()).sum()
    }
}

/// Cuts a segment into packets and gives them to the NIC.
#[inline]
#[allow(clippy::too_many_arguments)]
fn hand_down(
    now: Time,
    slot: u32,
    it: &mut Sending,
    segment: &Outgoing,
    host: &mut Host,
    shared: &Shared,
    fabric: &mut Fabric,
    begun: &mut Vec<Departure>,
) {
    let mut packet = Packet {
        seq: segment.seq,
        ack: slot as u64,
        stamp: now,
        flow: it.opening.flow,
        src: it.opening.src,
        dst: it.opening.dst,
        hash: it.hash,
        side: NONE,
        peer: it.peer,
        rank: 0,
        size: 0,
        payload: 0,
        flags: (if segment.retransmission { flags::RETRANSMISSION } else { 0 })
            | (if segment.cwr { flags::CWR } else { 0 })
            | (if segment.syn { flags::SYN } else { 0 }),
        ecn: segment.ecn,
        color: Color::Green,
        priority: it.priority,
        ingress: 0,
        ttl: TTL,
        path: 0,
    };
    if segment.len > 0 && it.first_sent.is_none() {
        it.first_sent = Some(now);
    }
    let mut rest = segment.len;
    let mut departs = Time::MAX;
    loop {
        let payload = rest.min(shared.mss);
        rest -= payload;
        packet.payload = payload as u16;
        packet.size = (payload + shared.header) as u16;
        if rest == 0 {
            packet.flags |= flags::LAST;
        }
        fabric.audit.injected.add(packet.size);
        let id = fabric.packets.insert(packet);
        match host.nic.offer(now, host.out, id, fabric) {
            Offered::Departs(at) => departs = at,
            Offered::Waits(Some((id, departs))) => begun.push(Departure { out: host.out, id, departs }),
            Offered::Waits(None) => {}
        }
        if rest == 0 {
            break;
        }
        packet.seq += payload as u64;
        // RFC 3168 §6.1.2: CWR on the first packet only, as a NIC that cuts segments sends it.
        packet.flags &= !flags::CWR;
    }
    if let Some(share) = &mut it.share {
        share.add(segment.len, departs);
    }
}

/// Puts what general NICs have begun to send on their links, and tells the flows whose segments leave.
fn transmit_begun(begun: &mut Vec<Departure>, senders: &mut Slab<Sending>, shared: &Shared, fabric: &mut Fabric) {
    for Departure { out, id, departs } in begun.drain(..) {
        let packet = fabric.packets[id];
        fabric.transmit(out, id, departs);
        if packet.has(flags::LAST)
            && let Some(it) = senders.get(packet.ack as u32, packet.flow)
            && let Some(share) = &mut it.share
        {
            share.leaves(departs);
            if share.wanted {
                wake_when_room(it, shared, fabric);
            }
        }
    }
}

/// Schedules the flow's next look at its NIC for when its first segment has left, if it has anything to send.
fn wake_when_room(it: &mut Sending, shared: &Shared, fabric: &mut Fabric) {
    let Some(share) = &mut it.share else { return };
    share.wanted = it.sender.would_send(&shared.transport);
    let at = share.first_leaves();
    if share.wanted && at != Time::MAX && share.wake_at == Time::MAX {
        share.wake_at = at;
        fabric.events.push(at, Key::new(Class::NicRoom, it.host, it.opening.flow));
    }
}

fn flow_record(it: &Sending, ended: Option<Time>, warm_up: Time) -> FlowRecord {
    let o = &it.opening;
    FlowRecord {
        flow: o.flow,
        class: o.class,
        src: o.src,
        dst: o.dst,
        bytes: o.bytes,
        start: o.start,
        finish: it.delivered.map(|d| d.at),
        sender_first: it.first_sent,
        sender_last: ended,
        ideal: Time::ZERO,
        retransmitted: it.sender.retransmitted,
        timeouts: it.sender.timeouts,
        out_of_order: it.delivered.map_or(0, |d| d.out_of_order),
        path_changes: it.delivered.map_or(0, |d| d.path_changes),
        query: o.query,
        counted: o.start >= warm_up,
    }
}

/// One message of a persistent connection, as its receiver saw it.
fn message_record(it: &Receiving, finish: Option<Time>, warm_up: Time) -> FlowRecord {
    let o = &it.opening;
    FlowRecord {
        flow: o.flow,
        class: o.class,
        src: o.src,
        dst: o.dst,
        bytes: o.bytes,
        start: it.asked,
        finish,
        counted: it.asked >= warm_up,
        ..FlowRecord::default()
    }
}

fn query_record(pending: &Pending, finish: Option<Time>, warm_up: Time) -> QueryRecord {
    let q = &pending.query;
    QueryRecord {
        query: q.query,
        class: q.class,
        client: q.client,
        degree: q.degree,
        start: q.at,
        finish,
        completed: pending.completed,
        counted: q.at >= warm_up,
    }
}
