//! The host node: what lies between an endpoint and the wire.
//!
//! ```text
//!             segments                                                          packets
//!  endpoint ──► limit ──► importance ──► rank ──► label ──► flow queue ──► NIC ══►
//!  endpoint ◄── limit ◄── order ◄── receive offload ◄── receive ring and core ◄══
//! ```
//!
//! | file | stage | the question |
//! |---|---|---|
//! | `limit` | both ways | may this segment pass now? |
//! | `importance` | egress | must this packet not be dropped? |
//! | `rank` | egress | how urgent is it? |
//! | `label` | egress | which path does it take? |
//! | `flow_queue` | egress | how much may a flow have waiting in the NIC? |
//! | `round` | egress | which queue pair does the NIC ask for its next packet? |
//! | `nic` | egress | when does the link carry it? |
//! | `receive` | ingress | when does a core look at it? |
//! | `virtual_switch` | ingress, in place of the two | when does its application look at it? |
//! | `kernel` | both ways | what a kernel's TCP is as an endpoint, which arrives as frames |
//! | `offload` | ingress | what does it go up with? |
//! | `order` | ingress | has what comes before it arrived? |
//!
//! It is passive, as the switch is: a driver owns time, links and endpoints, and calls the
//! entrances of `egress` and `ingress`. The node answers through [`HostWire`]. Two of its answers
//! are what an entrance returns, since the endpoint needs them before it goes on: a refusal
//! ([`Host::ask`]), after which the endpoint keeps its segment, and what goes up
//! ([`Host::hand_up`]), which the endpoint answers before it is given the next.
//!
//! A host's stages are chosen when it is made, and a connection's by what it holds: an [`Egress`]
//! where it sends, an [`Ingress`] where it receives, or nothing. Where there is nothing the way is
//! one comparison long.
//!
//! Invariant: every packet goes through the stages in the order of the picture, whatever its kind:
//! data, acknowledgements, what is forced out, handshakes. No later stage has seen what a stage
//! refuses. Each packet that arrives is handed up or discarded once.

mod egress;
pub mod flow_queue;
mod flows;
pub mod importance;
mod ingress;
mod kernel;
pub mod label;
pub mod limit;
pub mod nic;
pub mod offload;
mod order;
mod rank;
pub mod receive;
mod received;
mod round;
pub mod stage;
mod stream;
#[cfg(test)]
mod tests;
pub mod virtual_switch;

pub use egress::{Conditions, Cut, Egress, EgressStages, Segment};
pub use flow_queue::FlowQueue;
pub use flows::{Expecting, Flows, Ingress};
pub use importance::MarkingCounters;
pub use kernel::{Backlog, KernelReceiving, KernelSending, Turn};
pub use label::{Label, Labels};
pub use limit::{Leave, LimitCounts, Limiter, LimiterConfig, Seen};
pub use nic::Nic;
pub use receive::{CoreCounts, Receive, ReceiveConfig, ReceiveCpuParams, report_cores};
pub use received::Received;
pub use round::Round;
pub use stream::Stream;
pub use virtual_switch::{VirtualSwitch, VirtualSwitchConfig};

use crate::counters::DropReason;
use crate::edge::gro;
use crate::packet::{FlowId, HostId, Packet, PacketId, Packets};
use crate::switch::QueueView;
use crate::switch::pause::PauseTarget;
use crate::units::Time;

/// The reason for which a host asks to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Host::on_ready`]: the NIC's link may be free.
    Ready,
    /// [`Host::on_release`]: the segment of this number has waited for its departure.
    Release(u32),
    /// [`Host::on_poll`] of this ring.
    Poll(u16),
    /// [`Host::on_held`]: what the offload of this ring holds has waited long enough.
    Held(u16),
    /// [`Host::on_worked`]: this core has done its work.
    Worked(u16),
    /// [`Host::on_order`]: what this flow's ordering buffer holds has waited long enough.
    Order(FlowId),
    /// The flow has room in its queue again: for the endpoint.
    Room(FlowId),
    /// [`Host::on_switch`]: this core of the virtual switch has ended its round.
    Switch(u16),
    /// [`Host::on_switch`]: this core of an application has served a packet.
    Application(u16),
    /// [`Host::on_switch`]: other switches are to be notified, or something has lasted long enough.
    Overlay,
}

/// The driver's services to a host: its link, its timers, and the pool that packets live in.
#[warn(missing_docs)]
pub trait HostWire {
    /// The key by which receive offload distinguishes flows.
    type Flow: Copy + Eq;
    /// The packets.
    fn packets(&mut self) -> &mut Packets;
    /// The host makes a packet: count it and keep it.
    fn inject(&mut self, packet: Packet) -> PacketId;
    /// The host makes a packet that leaves at `departs`: no queue of the host keeps it.
    fn leave(&mut self, packet: Packet, departs: Time) {
        let id = self.inject(packet);
        self.transmit(id, departs);
    }
    /// Put `id` on the NIC's link; its last bit leaves at `departs`.
    fn transmit(&mut self, id: PacketId, departs: Time);
    /// The last packet of a segment leaves then, for its flow's [`FlowQueue::leaves`].
    fn departs(&mut self, last: &Packet, at: Time);
    /// Call the host for this, at that time.
    fn call(&mut self, at: Time, call: Call);
    /// Do not, although it was asked for at that time.
    fn recall(&mut self, at: Time, call: Call);
    /// Over which labels a flow may be spread, and how.
    fn labels(&mut self, now: Time, src: HostId, dst: HostId) -> Labels<'_>;
    /// `id` has reached the host: to the network it is delivered.
    fn arrived(&mut self, id: PacketId);
    /// `id` goes up from the link or the virtual switch. `false`: a driver whose stages of
    /// importance stand before the endpoint has consumed it.
    fn passes_up(&mut self, _now: Time, _id: PacketId) -> bool {
        true
    }
    /// `id` is dropped; count it and free it.
    fn discard(&mut self, id: PacketId, reason: DropReason);
    /// All packets of what had reached the host are dropped after all.
    fn discard_received(&mut self, received: Received, reason: DropReason);
    /// A packet's headers as receive offload reads them; `None`: it goes up by itself, at once.
    fn headers(&mut self, id: PacketId) -> Option<gro::Arrival<Self::Flow>>;
    /// Makes one of the packets of a segment.
    fn merge(&mut self, released: gro::Released<'_, Self::Flow, PacketId>) -> Received;
    /// When a packet had come that a poll takes. To the kernel that is the poll; a driver that
    /// has a better time returns it, or polls that are late would hide how far paths differ.
    fn came(&mut self, now: Time, _: PacketId) -> Time {
        now
    }
    /// Until when all that has come has been looked at: what is held for longer has waited in vain.
    /// A driver whose polls may be late returns how late, or that would look like reordering.
    fn has_seen(&self, now: Time) -> Time {
        now
    }
    /// Whether [`HostWire::polled`] is to be called.
    fn records_polls(&self) -> bool {
        false
    }
    /// A poll took these packets (none: it was the timer), and the offload let those up.
    fn polled(
        &mut self,
        _now: Time,
        _taken: Vec<Packet>,
        _up: &[Received],
        _counters: &gro::Counters,
    ) {
    }
}

pub struct HostConfig {
    pub nic: Nic,
    /// The limits that hold it to a bandwidth.
    pub limit: Option<LimiterConfig>,
    /// Its receive rings, if what arrives waits for a poll.
    pub receive: Option<ReceiveConfig>,
    /// Its virtual switch, which has the receive rings in their place.
    pub virtual_switch: Option<VirtualSwitchConfig>,
    /// How long an ordering buffer may hold a packet, if there are any.
    pub ordering: Option<Time>,
}

/// A host. Receive offload distinguishes its flows by `K`.
pub struct Host<K = offload::Flow> {
    nic: Nic,
    limit: Option<Box<Limiter>>,
    arrival: Option<Box<ingress::Arrival<K>>>,
}

impl<K: Copy + Eq> Host<K> {
    /// A host without packets.
    pub fn new(config: HostConfig) -> Host<K> {
        let limit = config.limit.map(|config| Box::new(Limiter::new(config)));
        let is_limited = limit.as_ref().is_some_and(|limit| limit.sees_arrivals());
        let receive = config.receive.map(|config| Receive::new(&config));
        let switch = config.virtual_switch.and_then(VirtualSwitch::new);
        let arrival = ingress::Arrival::new(receive, switch, config.ordering, is_limited);
        Host { nic: config.nic, arrival, limit }
    }

    /// Whether anything limits what leaves it. Then [`Host::ask`] comes before
    /// [`Host::send_staged`].
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// The host's bandwidth limits, if it has any.
    pub fn limiter(&self) -> Option<&Limiter> {
        self.limit.as_deref()
    }

    pub fn receive(&self) -> Option<&Receive<K>> {
        self.arrival.as_ref()?.receive.as_ref()
    }

    /// The host's virtual switch, if it has one.
    pub fn virtual_switch(&self) -> Option<&VirtualSwitch> {
        self.arrival.as_ref()?.switch.as_deref()
    }

    /// All packets that wait to leave, for the audit.
    pub fn queued(&self) -> Vec<PacketId> {
        let mut all = self.nic.queued();
        all.extend(self.limit.iter().flat_map(|limit| limit.queued()));
        all
    }

    /// How many packets have arrived and wait for a poll, or in receive offload.
    pub fn kept(&self) -> usize {
        self.arrival.as_ref().map_or(0, |arrival| arrival.kept())
    }

    /// The queue of the NIC just before `at`, which is after all calls so far; what a limit holds
    /// back is not there yet.
    pub fn occupancy(&mut self, at: Time) -> QueueView {
        self.nic.occupancy(at)
    }

    /// The packets that wait in the NIC, in no order, if it is one that holds packets.
    pub fn waiting_packets(&self) -> Vec<PacketId> {
        self.nic.packets()
    }

    /// Bytes that wait in the NIC, if it is one that holds packets.
    pub fn waiting(&self) -> u64 {
        self.nic.waiting()
    }

    /// When the NIC's link is free, if a packet is in transmission at `now`. Packets that wait in
    /// the NIC and may be served go first.
    pub fn link_free_at<W: HostWire>(&mut self, now: Time, wire: &mut W) -> Option<Time> {
        self.nic.link_free_at(now, wire)
    }

    /// Until when the NIC's neighbour has paused a priority, if it has.
    pub fn priority_resumes_at(&self, now: Time, priority: u8) -> Option<Time> {
        self.nic.resumes_at(now, PauseTarget::Priority(priority))
    }

    /// Until when the NIC's neighbour has paused the flow of this entropy, if it has.
    pub fn flow_resumes_at(&self, now: Time, entropy: u32) -> Option<Time> {
        self.nic.resumes_at(now, PauseTarget::Flow(self.nic.vfid(entropy)?))
    }

    /// Whether the NIC serves higher priorities first.
    pub fn serves_by_priority(&self) -> bool {
        self.nic.serves_by_priority()
    }

    /// The packets given CE here, by the NIC and by the limits.
    pub fn marked(&self) -> u64 {
        self.nic.marked() + self.limit.as_ref().map_or(0, |limit| limit.marked)
    }

    /// How long queues have been paused here by `now`, summed over them.
    pub fn paused_time(&self, now: Time) -> Time {
        self.nic.paused_time(now)
    }
}

/// A packet passes a stage.
macro_rules! passes {
    ($stage:ident) => {
        $crate::host::stage::passes($crate::host::stage::Stage::$stage);
    };
}
use passes;
