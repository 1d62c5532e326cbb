//! The node by itself, under a driver that records what it asks for.

use super::limit::{ClassConfig, LimitConfig, QueueConfig, SideConfig};
use super::stage::Stage;
use super::*;
use crate::edge::Ranker;
use crate::edge::flowcell::{Opening, Rule};
use crate::edge::gro::{OffloadParams, StockGroParams};
use crate::edge::rank::{RankParams, RemainingBytesParams};
use crate::edge::schedule::Order;
use crate::importance::{Marker, TltParams, WindowMarker};
use crate::limit::{Form, LimitParams};
use crate::packet::tcp::HEADERS;
use crate::packet::{Body, Importance, NONE, flags};
use crate::random::Stream as Draws;
use crate::switch::admission::Admission;
use crate::switch::buffer::{BufferParams, Capacity, Memory, PerPortParams, SwitchFacts};
use crate::switch::marking::{Marking, MarkingParams};
use crate::switch::port::PortConfig;
use crate::switch::queue::{Queue, QueueParams};
use crate::switch::site::{Auto, PortSite};
use crate::units::{Bytes, Rate};
use std::collections::BTreeMap;

mod order;
mod receive;

/// The stages that were passed since the last call.
fn passed() -> Vec<Stage> {
    super::stage::recorded(Some(std::thread::current().id()))
}

fn us(n: u64) -> Time {
    Time::from_us(n)
}

const RULE: Rule =
    Rule { opening: Opening::Bytes(1 << 16), order: Order::RoundRobin, is_first: true };
const CUT: Cut = Cut { mss: 1460, header: 40, headers: HEADERS };

/// All that a host asks of the world, and its one connection.
#[derive(Default)]
struct World {
    packets: Packets,
    sent: Vec<(PacketId, Time)>,
    departed: Vec<(u32, Time)>,
    dropped: Vec<(u32, DropReason)>,
    arrived: usize,
    injected: usize,
    calls: BTreeMap<(Time, u32), Call>,
}

fn number(call: Call) -> u32 {
    match call {
        Call::Ready => 0,
        Call::Release(order) => 1 << 16 | order,
        Call::Poll(ring) => 2 << 16 | u32::from(ring),
        Call::Held(ring) => 3 << 16 | u32::from(ring),
        Call::Worked(core) => 4 << 16 | u32::from(core),
        Call::Order(flow) => 5 << 16 | flow,
        Call::Room(flow) => 6 << 16 | flow,
        Call::Switch(core) => 7 << 16 | u32::from(core),
        Call::Application(port) => 8 << 16 | u32::from(port),
        Call::Overlay => 9 << 16,
    }
}

impl HostWire for World {
    type Flow = offload::Flow;
    fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }
    fn inject(&mut self, packet: Packet) -> PacketId {
        self.injected += 1;
        self.packets.insert(packet)
    }
    fn transmit(&mut self, id: PacketId, departs: Time) {
        self.sent.push((id, departs));
    }
    fn departs(&mut self, last: &Packet, at: Time) {
        self.departed.push((last.flow, at));
    }
    fn call(&mut self, at: Time, call: Call) {
        self.calls.insert((at, number(call)), call);
    }
    fn recall(&mut self, at: Time, call: Call) {
        self.calls.remove(&(at, number(call)));
    }
    fn labels(&mut self, _: Time, _: HostId, _: HostId) -> Labels<'_> {
        Labels { rule: &RULE, is_followed: true, list: &[7, 8] }
    }
    fn arrived(&mut self, _: PacketId) {
        self.arrived += 1;
    }
    fn headers(&mut self, id: PacketId) -> Option<gro::Arrival<offload::Flow>> {
        Some(offload::headers(&self.packets, id))
    }
    fn merge(&mut self, released: gro::Released<'_, offload::Flow, PacketId>) -> Received {
        offload::merge(released, &mut self.packets)
    }
    fn discard(&mut self, id: PacketId, reason: DropReason) {
        self.packets.remove(id);
        self.dropped.push((1, reason));
    }
    fn discard_received(&mut self, received: Received, reason: DropReason) {
        self.packets.remove(received.id);
        self.dropped.push((received.packets, reason));
    }
}

#[derive(Default)]
struct Connection {
    next: u64,
    ingress: Option<Box<Ingress>>,
}

impl Flows for Connection {
    fn class(&self, _: &Packet) -> Option<u16> {
        Some(0)
    }
    fn expecting(&mut self, _: &Packet) -> Option<Expecting<'_>> {
        Some(Expecting { next: self.next, ingress: &mut self.ingress })
    }
    fn receiving(&mut self, _: FlowId) -> Option<Expecting<'_>> {
        Some(Expecting { next: self.next, ingress: &mut self.ingress })
    }
}

/// A stream of 100 KB of which nothing is acknowledged.
struct Untouched;

impl Stream for Untouched {
    fn written(&self) -> u64 {
        100_000
    }
    fn acked(&self) -> u64 {
        0
    }
    fn would_send(&self) -> bool {
        true
    }
}

fn nic(is_fast: bool) -> Nic {
    let rate = Rate::from_gbps(10);
    let site = PortSite { rate, ..PortSite::default() };
    let buffer = BufferParams::PerPort(PerPortParams {
        size: Auto::Given(None).into(),
        ..PerPortParams::default()
    });
    let capacity = Capacity::new(&buffer, &site);
    let config = PortConfig {
        rate,
        control: None,
        capacity,
        marking: Marking::new(&MarkingParams::default().at_port(&site, capacity)),
        admission: Admission::new(&Default::default()),
        queue: Queue::new(&QueueParams::default()),
    };
    Nic::new(config, Memory::new(&buffer, &SwitchFacts::default()), is_fast, Draws::new(1, "nic"))
}

/// One limit of this rate on what leaves and what arrives.
fn limits(mbps: u64, classes: Vec<ClassConfig>) -> LimiterConfig {
    let params =
        LimitParams { rate: Rate(mbps * 1_000_000), form: Form::Credit, ..LimitParams::default() };
    let side = || SideConfig {
        queues: vec![QueueConfig {
            limit: 0,
            settings: params.settings(),
            length: params.length,
            framing: 14,
        }],
        limits: vec![LimitConfig { classes: None, queues: vec![0] }],
    };
    LimiterConfig {
        egress: side(),
        ingress: side(),
        classes,
        random: Draws::new(1, "limit"),
        measured_from: Time::ZERO,
        headers: HEADERS,
        frame: 0,
    }
}

/// A class of HTB of 1 Gb/s without a burst.
fn htb() -> ClassConfig {
    let largest = Some(Bytes(1 << 39));
    let params = LimitParams {
        rate: Rate::from_gbps(1),
        burst: Some(Bytes(1)),
        form: Form::Edt,
        mark: largest,
        drop: largest,
        ..LimitParams::default()
    };
    ClassConfig { limit: 1, classes: None, settings: params.settings(), framing: 14, queue: 10 }
}

fn receive(rings: u16, cores: Option<u16>) -> ReceiveConfig {
    ReceiveConfig {
        rings,
        cores: cores.map(|cores| (cores, ReceiveCpuParams::default())),
        ..ReceiveConfig::new(
            &OffloadParams::Stock(StockGroParams::default()),
            None,
            None,
            Time::ZERO,
        )
        .expect("polls")
    }
}

/// A host on which every stage is on.
fn whole(classes: Vec<ClassConfig>) -> Host {
    Host::new(HostConfig {
        nic: nic(true),
        limit: Some(limits(10_000, classes)),
        receive: Some(receive(1, Some(1))),
        virtual_switch: None,
        ordering: Some(us(100)),
    })
}

/// A connection that has every stage.
fn sending() -> Box<Egress> {
    let rank = RankParams::RemainingBytes(RemainingBytesParams::default());
    let stages = EgressStages {
        conditions: Conditions { is_limited: true, ..Conditions::default() },
        place: None,
        marker: Some(Box::new(Marker::Window(WindowMarker::new(&TltParams::default())))),
        ranker: Ranker::new(&rank).map(Box::new),
        label: Some(Box::new(Label::new(&RULE, 1, 2, 0))),
    };
    Egress::new(Some(1 << 17), stages).expect("it has stages")
}

fn answering() -> Box<Ingress> {
    Ingress::labelled(Box::new(Label::new(&RULE, 3, 4, 0)))
}

fn packet(body: Body) -> Packet {
    Packet { body, flow: 3, dst: 1, peer: NONE, ttl: 64, size: 40, ..Packet::default() }
}

/// An acknowledgement, a SYN and its answer.
const ACK: Body = Body::Ack { ack: 0, slot: 0, hops: 0 };
const SYN: Body = Body::Syn { slot: 0, flowcell: 0 };
const SYN_ACK: Body = Body::SynAck { slot: 0 };

/// A data packet of the connection, the `n`-th.
fn data(n: u64) -> Packet {
    Packet {
        payload: 1460,
        size: 1500,
        ..packet(Body::Data { seq: n * 1460, slot: 0, flowcell: 0 })
    }
}

fn seen(payload: u32) -> Seen {
    let packets = payload.div_ceil(1460).max(1);
    Seen { class: Some(0), payload, packets, options: 0, in_flight: 1, srtt: Time::ZERO, ecn: 0 }
}
