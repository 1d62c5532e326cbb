//! The simulator's hosts: a receiver's virtual switch, and those of its senders, under a driver
//! whose links take no time.

use super::{After, Event, FLOWS, SENDERS, Scene, Spoken, Stand, Trace, Want};
use millpond_core::counters::DropReason;
use millpond_core::edge::flowcell::{Opening, Rule};
use millpond_core::edge::gro;
use millpond_core::edge::schedule::Order;
use millpond_core::host::virtual_switch::{
    ApplicationConfig, ApplicationCosts, BackdraftParams, VirtualSwitchParams,
};
use millpond_core::host::{
    Call, Expecting, Flows, Host, HostConfig, HostWire, Labels, Nic, Received, VirtualSwitchConfig,
    offload,
};
use millpond_core::packet::overlay::Whom;
use millpond_core::packet::{Body, NONE, Words};
use millpond_core::random::Stream;
use millpond_core::switch::site::Auto;
use millpond_core::{Bytes, FlowId, HostId, Packet, PacketId, Packets, Rate, Time};
use std::collections::BTreeMap;

const RECEIVER: HostId = 0;
/// The overlay's names count hosts from 0; flows are of the senders behind the receiver.
pub fn sender(flow: u32) -> HostId {
    1 + flow % SENDERS
}

#[derive(Default)]
struct Wire {
    packets: Packets,
    sent: Vec<PacketId>,
    dropped: Vec<DropReason>,
    calls: BTreeMap<(Time, u32), Call>,
}

fn number(call: Call) -> u32 {
    match call {
        Call::Switch(core) => u32::from(core),
        Call::Application(port) => 1 << 16 | u32::from(port),
        Call::Overlay => 2 << 16,
        other => unreachable!("{other:?}"),
    }
}

impl HostWire for Wire {
    type Flow = offload::Flow;
    fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }
    fn inject(&mut self, packet: Packet) -> PacketId {
        self.packets.insert(packet)
    }
    fn transmit(&mut self, id: PacketId, _: Time) {
        self.sent.push(id);
    }
    fn departs(&mut self, _: &Packet, _: Time) {}
    fn call(&mut self, at: Time, call: Call) {
        self.calls.insert((at, number(call)), call);
    }
    fn recall(&mut self, at: Time, call: Call) {
        self.calls.remove(&(at, number(call)));
    }
    fn labels(&mut self, _: Time, _: HostId, _: HostId) -> Labels<'_> {
        const RULE: Rule =
            Rule { opening: Opening::Bytes(1 << 16), order: Order::RoundRobin, is_first: true };
        Labels { rule: &RULE, is_followed: false, list: &[] }
    }
    fn arrived(&mut self, _: PacketId) {}
    fn discard(&mut self, id: PacketId, reason: DropReason) {
        self.packets.remove(id);
        self.dropped.push(reason);
    }
    fn discard_received(&mut self, received: Received, reason: DropReason) {
        self.discard(received.id, reason);
    }
    fn headers(&mut self, _: PacketId) -> Option<gro::Arrival<offload::Flow>> {
        None
    }
    fn merge(&mut self, _: gro::Released<'_, offload::Flow, PacketId>) -> Received {
        unreachable!("nothing is merged")
    }
}

struct Connections;

impl Flows for Connections {
    fn class(&self, _: &Packet) -> Option<u16> {
        Some(0)
    }
    fn expecting(&mut self, _: &Packet) -> Option<Expecting<'_>> {
        None
    }
    fn receiving(&mut self, _: FlowId) -> Option<Expecting<'_>> {
        None
    }
}

struct End {
    host: Host,
    wire: Wire,
}

impl End {
    fn new(id: HostId, scene: &Scene) -> End {
        let params = BackdraftParams {
            // As in the replay, where the switch has done with a frame before the next one comes.
            poll: Time::ZERO,
            per_packet: Time::ZERO,
            doorbell: Time::ZERO,
            memory: Bytes(scene.memory),
            alpha: f64::from(scene.alpha) / 8.0,
            headroom: Auto::Given(Bytes(scene.headroom)),
            feedback: Auto::Given(scene.feedback),
            ttl: Auto::Given(scene.feedback * 5),
            ..BackdraftParams::default()
        };
        let costs = ApplicationCosts {
            ring: scene.ring,
            batch: scene.batch,
            work: scene.work,
            stall_every: (scene.stall > Time::ZERO).then_some(Time::from_us(200)),
            stall: scene.stall,
            ..ApplicationCosts::default()
        };
        let config = VirtualSwitchConfig {
            host: id,
            params: VirtualSwitchParams::Backdraft(params),
            applications: vec![ApplicationConfig { costs, hosts: None }],
            by_class: vec![Some(0)],
            rate: Rate::from_gbps(100),
            packet_max: scene.quantum,
            segment: Bytes(u64::from(scene.quantum)),
            random: Stream::new(scene.seed, "conformance"),
        };
        let virtual_switch = Some(config);
        let host = Host::new(HostConfig {
            nic: Nic::Driver,
            limit: None,
            receive: None,
            virtual_switch,
            ordering: None,
        });
        End { host, wire: Wire::default() }
    }

    /// When it is to be called.
    fn next(&self) -> Option<Time> {
        self.wire.calls.keys().next().map(|(at, _)| *at)
    }
    /// Calls it for the first thing that is due; what that was, and the frames that went up.
    fn call(&mut self) -> Option<(Call, Vec<u32>)> {
        let ((now, _), call) = self.wire.calls.pop_first()?;
        self.host.on_switch(now, call, &mut Connections, &mut self.wire);
        let mut up = Vec::new();
        while let Some(id) = self.host.hand_up(now, &mut Connections, &mut self.wire) {
            up.push(self.wire.packets[id].seq() as u32);
            self.wire.packets.remove(id);
        }
        while self.host.next_change(now).is_some() {}
        Some((call, up))
    }
    fn arrive(&mut self, now: Time, packet: Packet) {
        let id = self.wire.packets.insert(packet);
        self.host.on_arrival(now, id, &mut self.wire);
    }
}

struct World {
    ends: Vec<End>,
    trace: Trace,
}

impl World {
    /// A step of the receiver, or of a sender's timer, is over: its words are heard.
    fn note(&mut self, now: Time, event: Event, up: Vec<u32>) {
        self.trace.served.extend(up);
        let mut said = Vec::new();
        for id in std::mem::take(&mut self.ends[0].wire.sent) {
            let packet = self.ends[0].wire.packets[id];
            let words = *self.ends[0].wire.packets.side::<Words>(&packet).expect("words");
            self.ends[0].wire.packets.remove(id);
            said.extend(words.entries().iter().map(|it| {
                let flow = match it.whom {
                    Whom::Flow { flow, .. } => Some(flow),
                    Whom::Application(_) => None,
                    Whom::Host => unreachable!("no switch pauses a whole host"),
                };
                Spoken {
                    to: packet.dst,
                    word: it.word,
                    flow,
                    number: it.seq,
                    queued: it.queued,
                    ttl: it.ttl,
                }
            }));
            let sender = &mut self.ends[packet.dst as usize];
            let mut heard = Packet { side: Default::default(), ..packet };
            sender.wire.packets.attach(&mut heard, words);
            sender.arrive(now, heard);
            while sender.next() == Some(now) {
                sender.call();
            }
        }
        let counts = self.ends[0].host.virtual_switch().expect("it has one").counts();
        let flows = counts.flows.unwrap_or_default();
        let stand = Stand {
            waiting: flows.queued,
            pauses: flows.pauses,
            resumes: flows.resumes,
            refused: counts.stops,
            served: self.trace.served.len(),
        };
        let held = |flow: u32| self.ends[sender(flow) as usize].host.is_held(0, flow, RECEIVER);
        let after = After { stand, said, held: (0..FLOWS).map(held).collect() };
        self.trace.steps.push((now, event, after));
    }

    /// All that is due up to a time.
    fn until(&mut self, end: Time) {
        loop {
            let due =
                self.ends.iter().enumerate().filter_map(|(n, it)| Some((it.next()?, n))).min();
            let Some((now, n)) = due.filter(|(at, _)| *at <= end) else { return };
            let Some((call, up)) = self.ends[n].call() else { return };
            let event = match call {
                Call::Switch(_) => Event::Round,
                Call::Application(_) => Event::Serves,
                _ => Event::Words,
            };
            self.note(now, event, up);
        }
    }

    /// Frames of a flow of their own fill the application's ring, until one waits.
    fn fill(&mut self, now: Time) {
        while self.trace.steps.last().is_none_or(|(_, _, after)| after.stand.waiting == 0) {
            self.want(now, &Want { gap: Time::ZERO, flow: FLOWS, size: 300, is_late: true });
        }
    }

    fn want(&mut self, now: Time, want: &Want) {
        let Want { flow, size, is_late, .. } = *want;
        let (from, number) = (sender(flow), self.trace.frames.len());
        self.trace.frames.push((flow, size));
        if !is_late && self.ends[from as usize].host.is_held(0, flow, RECEIVER) {
            return self.note(now, Event::Kept, Vec::new());
        }
        let body = Body::Data { seq: number as u64, slot: 0, flowcell: 0 };
        let (payload, peer) = (size - 42, NONE);
        let packet = Packet {
            body,
            flow,
            src: from,
            dst: RECEIVER,
            peer,
            size,
            payload,
            ttl: 64,
            ..Packet::default()
        };
        self.ends[0].arrive(now, packet);
        let event = match self.ends[0].wire.dropped.pop() {
            None => Event::Comes(number as u32),
            Some(DropReason::ReceiveRing) => Event::Dropped,
            Some(other) => unreachable!("{other:?}"),
        };
        self.note(now, event, Vec::new());
        self.until(now);
    }
}

/// Plays a scene until nothing is left to do.
pub fn simulate(scene: &Scene) -> Trace {
    let ends = (0..=SENDERS).map(|id| End::new(id, scene)).collect();
    let mut world = World { ends, trace: Trace::default() };
    let mut now = Time::from_us(1);
    let first = (0..SENDERS).map(|flow| Want { gap: Time::ZERO, flow, size: 300, is_late: true });
    for want in first.chain(scene.wants.iter().copied()) {
        now += want.gap;
        world.until(now);
        world.fill(now);
        world.want(now, &want);
    }
    world.until(Time::MAX);
    world.trace
}
