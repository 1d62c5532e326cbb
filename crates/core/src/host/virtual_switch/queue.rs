//! The queue before the ring of one core of an application, by kind of switch.
//!
//! Invariant: what was placed leaves once, each flow's in the order in which it came.

use super::application::ApplicationCore;
use super::generations::Language;
use super::measured::Measured;
use super::{VirtualSwitchConfig, VirtualSwitchParams};
use crate::flow_queues::headroom::{Loop, Peak, segments};
use crate::flow_queues::{Arrival, Class, Config, FlowQueues, Outcome, SLOTS, Verdict};
use crate::packet::{FlowId, HostId, Packet, PacketId};
use crate::random::{Random, mix64};
use crate::switch::site::Auto;
use crate::units::{Bytes, Time};
use std::collections::VecDeque;

/// A flow's identity in the queues: its number, and who sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub id: FlowId,
    pub from: HostId,
}

pub(super) type Queues = FlowQueues<Flow, PacketId>;

/// The smallest packet with payload that memory is divided for.
const SMALLEST: u32 = 64;

pub(super) struct Shared {
    waiting: VecDeque<PacketId>,
    size: usize,
    /// Packets from which on, and up to which.
    high: usize,
    low: usize,
    is_overloaded: bool,
}

pub(super) enum Queue {
    /// There is none: a packet joins the ring or is dropped.
    Ring,
    Shared(Shared),
    Measured(Measured),
    Flows(Box<Queues>),
}

/// The outcome of a packet.
pub(super) enum Placed {
    /// It waits; of flow queues with their verdict.
    Taken(Option<Verdict<PacketId>>),
    Dropped,
    Held(Verdict<PacketId>),
}

impl Queue {
    pub(super) fn new(config: &mut VirtualSwitchConfig) -> Queue {
        let random = Random::from(config.random.fork());
        match &config.params {
            VirtualSwitchParams::None(_) | VirtualSwitchParams::Lossy(_) => Queue::Ring,
            VirtualSwitchParams::Backpressure(p) => {
                let part = |share: f64| (f64::from(p.queue) * share) as usize;
                let (size, high) = (p.queue as usize, part(p.high).max(1));
                let low = part(p.low).min(high - 1);
                Queue::Shared(Shared {
                    waiting: VecDeque::new(),
                    size,
                    high,
                    low,
                    is_overloaded: false,
                })
            }
            VirtualSwitchParams::Picnic(p) => Queue::Measured(Measured::new(p.queue)),
            VirtualSwitchParams::FlowQueues(p) => {
                let queues = Config {
                    bytes: p.memory,
                    headroom: Bytes(0),
                    max_queues: p.max_queues,
                    alpha_eighths: (p.alpha * 8.0) as u64,
                    batch: p.batch,
                    cap: p.flow_cap,
                    ..Config::default()
                };
                Queue::flows(config, queues, 0, random)
            }
            VirtualSwitchParams::Backdraft(p) => {
                let queues = Config {
                    bytes: p.memory,
                    headroom: headroom(config, p),
                    max_queues: p.max_queues,
                    alpha_eighths: (p.alpha * 8.0) as u64,
                    batch: p.batch,
                    cap: p.flow_cap,
                    feedback: p.feedback(Time::ZERO),
                    ..Config::default()
                };
                Queue::flows(config, queues, 0, random)
            }
            // Nobody is asked to pause, and a flow alone may have all. Each queue may leave most of
            // its first and last segment empty.
            VirtualSwitchParams::Credits(p) => {
                let queues = Config {
                    bytes: p.memory,
                    headroom: Bytes(0),
                    max_queues: p.max_queues,
                    alpha_eighths: 64 * 8,
                    batch: p.batch,
                    cap: u32::MAX,
                    feedback: p.feedback(Time::ZERO),
                    ..Config::default()
                };
                Queue::flows(config, queues, 2 * u64::from(p.max_queues), random)
            }
        }
    }

    /// Flow queues of a switch, with so many segments beyond their memory's.
    fn flows(config: &VirtualSwitchConfig, of: Config, spare: u64, random: Random) -> Queue {
        let slots = u64::from(SMALLEST * SLOTS);
        let bytes = of.bytes.max(Bytes(2 * u64::from(config.packet_max)));
        let queues = Config {
            segments: bytes.0.div_ceil(slots).max(u64::from(SLOTS)) + spare,
            headroom_segments: segments(of.headroom, SMALLEST, u64::from(of.max_queues)),
            bytes,
            mtu: config.packet_max,
            quantum: config.packet_max,
            ..of
        };
        Queue::Flows(Box::new(FlowQueues::new(queues, random)))
    }

    /// A packet with payload comes, for this core.
    pub(super) fn place(
        &mut self,
        now: Time,
        id: PacketId,
        packet: &Packet,
        core: &mut ApplicationCore,
    ) -> Placed {
        match self {
            Queue::Ring if core.room() == 0 => Placed::Dropped,
            Queue::Ring => {
                core.push(id);
                Placed::Taken(None)
            }
            Queue::Shared(queue) => {
                if queue.waiting.len() >= queue.size {
                    return Placed::Dropped;
                }
                queue.waiting.push_back(id);
                queue.is_overloaded |= queue.waiting.len() >= queue.high;
                Placed::Taken(None)
            }
            Queue::Measured(queue) => match queue.push(now, id, packet) {
                true => Placed::Taken(None),
                false => Placed::Dropped,
            },
            Queue::Flows(queues) => {
                let verdict = queues.enqueue(
                    now,
                    &Arrival {
                        flow: Flow { id: packet.flow, from: packet.src },
                        hash: mix64(u64::from(packet.flow)) as u32,
                        packet: id,
                        len: u32::from(packet.size),
                        class: Class::Data,
                    },
                );
                match verdict.outcome {
                    Outcome::Hold => Placed::Held(verdict),
                    Outcome::Queued | Outcome::Coalesced(_) => Placed::Taken(Some(verdict)),
                }
            }
        }
    }

    /// Moves packets to the ring while it has room.
    pub(super) fn fill(&mut self, now: Time, core: &mut ApplicationCore) {
        match self {
            Queue::Ring => (),
            Queue::Shared(queue) => {
                while core.room() > 0
                    && let Some(id) = queue.waiting.pop_front()
                {
                    core.push(id);
                }
                queue.is_overloaded &= queue.waiting.len() > queue.low;
            }
            Queue::Measured(queue) => queue.fill(now, core),
            Queue::Flows(queues) => {
                while core.room() > 0
                    && let Some(departure) = queues.dequeue(now)
                {
                    core.push(departure.packet);
                }
            }
        }
    }

    /// Whether receive rings are to be polled no more.
    pub(super) fn is_overloaded(&self) -> bool {
        matches!(self, Queue::Shared(queue) if queue.is_overloaded)
    }

    /// Packets that wait.
    pub(super) fn len(&self) -> usize {
        match self {
            Queue::Ring => 0,
            Queue::Shared(queue) => queue.waiting.len(),
            Queue::Measured(queue) => queue.len(),
            Queue::Flows(queues) => {
                let counters = queues.counters();
                (counters.arrived - counters.departed - counters.coalesced) as usize
            }
        }
    }

    /// Packets of a flow that wait in flow queues.
    pub(super) fn waiting(&self, flow: FlowId, from: HostId) -> u64 {
        let Queue::Flows(queues) = self else { return 0 };
        u64::from(queues.waiting(mix64(u64::from(flow)) as u32, Flow { id: flow, from }))
    }

    /// Bytes that wait in flow queues.
    pub(super) fn queued(&self) -> Bytes {
        if let Queue::Flows(queues) = self { queues.queued() } else { Bytes(0) }
    }

    pub(super) fn flow_count(&self) -> usize {
        if let Queue::Flows(queues) = self { queues.flow_count() } else { 0 }
    }

    /// Forgets flows that were silent for long.
    pub(super) fn expire(&mut self, now: Time) {
        if let Queue::Flows(queues) = self {
            queues.expire(now);
        }
    }

    /// Nobody is there to take its signals.
    pub(super) fn ignore_signals(&mut self) {
        if let Queue::Flows(queues) = self {
            while queues.next_signal().is_some() {}
        }
    }
}

/// The headroom of one core of an application.
fn headroom(config: &VirtualSwitchConfig, p: &super::BackdraftParams) -> Bytes {
    if p.headroom == Auto::Auto && p.overlay != Language::Records {
        return Bytes(0);
    }
    let Auto::Auto = p.headroom else {
        let Auto::Given(headroom) = p.headroom else { return Bytes(0) };
        return headroom;
    };
    let way = Loop {
        feedback: p.feedback(Time::ZERO),
        fabric: p.headroom_fabric,
        losses: u64::from(p.losses),
    };
    let nic = Bytes(p.nic_limit.0 + config.segment.0);
    let peak = Peak { rate: config.rate, nic, batch: Bytes(0) };
    let senders = p.headroom_senders as usize;
    way.of_link(config.rate, &vec![peak; senders], &vec![nic; senders])
}
