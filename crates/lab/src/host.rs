//! A host's port: the NIC of its link, and the stages above it.
//!
//! ```text
//!  TAP ──► label ──► TLT's shim ──► virtual switch: held flows ──► NIC ══►
//!  TAP ◄── receive offload ◄── order ◄── TLT's shim ◄── virtual switch ◄══
//! ```
//!
//! Each stage is there where the plan asks for it. The edge ([`Edge`], `millpond switch`'s own
//! code) labels what leaves and merges what arrives.
//!
//! Invariant: a packet that arrives is handed to the kernel once, consumed by the shim, dropped for
//! a counted reason, or held here.

use crate::address;
use crate::network::Uplink;
use crate::nic::{Carry, Nic, key};
use crate::order::Orders;
use crate::virtual_switch::VirtualSwitch;
use millpond_core::Time;
use millpond_core::counters::Counters;
use millpond_core::edge::flowcell::{Opening, Rule};
use millpond_core::edge::schedule::Order;
use millpond_core::packet::Kind;
use millpond_core::registry::Choice;
use millpond_core::switch::QueueView;
use millpond_linux::dataplane::buffers::{Buffers, Frame};
use millpond_linux::dataplane::counters::Drop;
use millpond_linux::dataplane::flow::Keys;
use millpond_linux::dataplane::frame::parse::tcp;
use millpond_linux::dataplane::frame::{Offload, parse, parse_head};
use millpond_linux::dataplane::outgoing::Outgoing;
use millpond_linux::dataplane::port::Received;
use millpond_linux::dataplane::port::shared::Sender;
use millpond_linux::dataplane::slot::Slot;
use millpond_linux::edge::Edge;
use millpond_linux::edge::importance::{Shim, Verdict};
use millpond_linux::encapsulation::Encapsulation;
use millpond_linux::fabric::{Fabric, Held, Left, cut};
use millpond_scenario::plan::Plan;
use millpond_sim::labels::LabelPlan;
use std::io::IoSlice;

/// A rule for edges that only receive.
const UNUSED: Rule =
    Rule { opening: Opening::Bytes(u64::MAX), order: Order::RoundRobin, is_first: true };

/// A host as the fabric has it.
pub struct Host {
    hosts: u32,
    /// Its TAP.
    pub slot: Slot,
    nic: Nic,
    edge: Option<Edge>,
    /// Restores order, if the plan asks for it.
    orders: Option<Orders>,
    /// Packets in order, on their way up.
    due: Vec<Left>,
    /// Whether the edge labels what leaves.
    labels: bool,
    /// Whether the edge merges what arrives.
    merges: bool,
    flat: Vec<u8>,
    parts: Vec<Held>,
}

/// The edge of a host, if the plan gives it any work.
fn edge(plan: &Plan, labels: Option<&LabelPlan>, host: u32) -> Option<Edge> {
    let offload = &plan.host.choices.receive_offload;
    if labels.is_none() && offload.kind() == "none" {
        return None;
    }
    let list = |peer| labels.map_or(vec![0], |it| it.between(Time::ZERO, host, peer).to_vec());
    let lists = (0..plan.topology.hosts).map(list).collect();
    let rule = labels.map_or(UNUSED, |labels| labels.rule);
    let keys = Keys::seeded(plan.seed ^ u64::from(host) << 32);
    Some(Edge::keyed(rule, lists, offload, keys))
}

impl Host {
    /// A plan's host behind its TAP.
    pub fn new(
        plan: &Plan,
        labels: Option<&LabelPlan>,
        host: u32,
        uplink: Uplink,
        slot: Slot,
    ) -> Host {
        let is_followed = labels.is_some_and(|labels| labels.is_followed);
        Host {
            hosts: plan.topology.hosts,
            slot,
            nic: Nic::new(plan, host, uplink, is_followed),
            orders: Orders::new(plan.transport_choices.ordering.timeout()),
            edge: edge(plan, labels, host),
            labels: labels.is_some(),
            merges: plan.host.choices.receive_offload.kind() != "none",
            due: Vec::new(),
            flat: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// From now on these labels lead to each peer; none: as before.
    pub fn set_labels<'a>(&mut self, labels: impl Fn(u32) -> &'a [u16]) {
        let Some(edge) = &mut self.edge else { return };
        (0..self.hosts).for_each(|peer| edge.set_labels(peer as usize, labels(peer).to_vec()));
    }
    /// Until when its link is taken by what it has sent.
    pub fn sends_until(&self) -> Time {
        self.nic.busy_until()
    }
    /// Packets that its NIC has taken.
    pub fn entered(&self) -> u64 {
        self.nic.entered
    }
    /// Samples of its NIC will be asked for, or no longer.
    pub fn watch(&mut self, is_on: bool) {
        self.nic.queue = is_on.then(|| self.nic.queue.take().unwrap_or_default());
    }
    /// The packets that wait in its NIC just before `at`, if it is watched.
    pub fn waiting(&mut self, at: Time) -> QueueView {
        self.nic.queue.as_mut().map_or(QueueView::default(), |queue| queue.view(at))
    }
    /// Its virtual switch, if it has one.
    pub fn switch(&self) -> Option<&VirtualSwitch> {
        self.nic.switch.as_deref()
    }
    /// Adds what its mechanisms have counted.
    pub fn count(&self, all: &mut Counters) {
        if let Some(switch) = self.switch() {
            switch.count(all);
        }
        let Some(tlt) = self.nic.shim.as_ref().map(Shim::counters) else { return };
        let named = all.of("tlt");
        for (kind, sent) in [
            ("unimportant", tlt.unimportant),
            ("important", tlt.important),
            ("forced", tlt.forced),
            ("green", tlt.green),
        ] {
            named.add(format!("{kind}_packets"), sent.packets);
            named.add(format!("{kind}_bytes"), sent.bytes);
        }
        for (name, count) in [
            ("echoes", tlt.echoes_marked + tlt.echoes_sent),
            ("echoes_of_shims", tlt.echoes_sent),
            ("acks_withheld", tlt.acks_swallowed),
            ("dsacks_stripped", tlt.dsacks_stripped),
            ("rearmed", tlt.rearmed),
            ("refused", tlt.refused),
            ("untracked_flows", tlt.untracked.iter().sum()),
        ] {
            named.add(name, count);
        }
    }

    /// Reads what its kernel has sent, `burst` frames at most and until a departure is due; how
    /// many frames there were.
    pub fn read(
        &mut self,
        clock: impl Fn() -> Time,
        burst: usize,
        fabric: &mut Fabric,
        buffers: &mut Buffers,
    ) -> usize {
        for count in 0..burst {
            let now = clock();
            if count > 0 && fabric.deadline().is_some_and(|due| due <= now) {
                return count;
            }
            let Some(buffer) = buffers.take() else { return count };
            let received = self
                .slot
                .port
                .as_mut()
                .map_or(Received::Nothing, |port| port.receive(buffers.bytes_mut(buffer)));
            let more = !matches!(received, Received::Nothing | Received::Gone);
            match received {
                Received::Frame { start, length, offload } => {
                    let frame = Frame { buffer, start, length, offload };
                    self.leave(now, frame, fabric, buffers);
                }
                Received::Refused(refusal) => self.slot.counters.drop(refusal.reason()),
                Received::Nothing => {}
                Received::Gone => self.slot.port = None,
            }
            buffers.release(buffer);
            if !more {
                return count;
            }
        }
        burst
    }

    /// Takes a frame that its kernel has sent.
    pub fn leave(&mut self, now: Time, frame: Frame, fabric: &mut Fabric, buffers: &mut Buffers) {
        self.slot.counters.received += 1;
        self.slot.counters.received_bytes += frame.length as u64;
        if let Err(reason) = self.send(now, frame, fabric, buffers) {
            self.slot.counters.drop(reason);
        }
    }

    fn send(
        &mut self,
        now: Time,
        mut frame: Frame,
        fabric: &mut Fabric,
        buffers: &mut Buffers,
    ) -> Result<(), Drop> {
        let bytes = frame.bytes(buffers);
        if let Some(reply) = address::answer(bytes, self.hosts) {
            let view = parse(&reply).ok_or(Drop::Runt)?;
            return self.up(now, &view_of(&view, &[IoSlice::new(&reply)], reply.len()));
        }
        let view = parse(bytes).ok_or(Drop::Runt)?;
        frame.offload.check(&view, frame.length).map_err(|_| Drop::BadOffload)?;
        if let Some(edge) = self.edge.as_mut().filter(|_| self.labels) {
            let Some(peer) = address::of_mac(view.destination, self.hosts) else {
                return Err(Drop::Nowhere);
            };
            let carry = &mut Carry { nic: &mut self.nic, fabric };
            return edge.send(now, buffers, &mut frame, &view, peer as usize, carry);
        }
        cut(&frame, &view, buffers, &mut self.parts);
        let mut result = Ok(());
        for held in self.parts.drain(..) {
            result = result.and(self.nic.launch(now, held, None, fabric, buffers));
        }
        result
    }

    /// Takes a packet that has reached the host. [`Host::flush`] follows when the round ends.
    pub fn arrive(&mut self, now: Time, left: Left, buffers: &mut Buffers) {
        match &mut self.nic.switch {
            Some(switch) => switch.arrive(left, buffers),
            None => self.receive(now, left, buffers),
        }
    }

    /// Takes a packet that no virtual switch has, or that it has let through.
    fn receive(&mut self, now: Time, mut left: Left, buffers: &mut Buffers) {
        if let Some(shim) = &mut self.nic.shim {
            let held = &mut left.held;
            if shim.incoming(now, &mut held.bytes, &held.view, buffers) == Verdict::Swallow {
                return held.bytes.end(buffers);
            }
            // It may have taken an option out of the headers.
            let view = parse_head(held.bytes.header.bytes(), held.bytes.length());
            held.view = view.unwrap_or(held.view);
        }
        let Some((orders, key)) = self.orders.as_mut().zip(key(&left.held)) else {
            return self.hand_up(now, left, buffers);
        };
        if left.packet.kind() == Kind::Syn || left.packet.kind() == Kind::SynAck {
            let layers = left.held.view.tcp();
            let seq = layers.map_or(0, |layers| tcp::seq(left.held.bytes.header.bytes(), layers));
            orders.open(now, left.packet.flow, key, seq);
        }
        orders.arrive(now, left, key, |left| self.due.push(left));
        self.hand_up_due(now, buffers);
    }

    fn hand_up_due(&mut self, now: Time, buffers: &mut Buffers) {
        let mut due = std::mem::take(&mut self.due);
        due.drain(..).for_each(|left| self.hand_up(now, left, buffers));
        self.due = due;
    }

    fn hand_up(&mut self, now: Time, left: Left, buffers: &mut Buffers) {
        let Left { at, packet, mut held, .. } = left;
        if let Some(edge) = self.edge.as_mut().filter(|_| self.merges) {
            let partial = held.offload.partial;
            let stamp = Encapsulation {
                label: packet.entropy as u16,
                flowcell: packet.flowcell(),
                partial,
            };
            let view = held.bytes.view();
            return edge.arrive(at, packet.src as usize, stamp, (held.bytes, view), buffers);
        }
        let pieces =
            [IoSlice::new(held.bytes.header.bytes()), IoSlice::new(held.bytes.payload(buffers))];
        let frame =
            Outgoing { offload: held.offload, ..view_of(&held.view, &pieces, held.bytes.length()) };
        if let Err(reason) = self.up(now, &frame) {
            self.slot.counters.drop(reason);
        }
        held.bytes.end(buffers);
    }

    /// Hands a frame to the kernel, which takes it at once or has it wait.
    fn up(&mut self, now: Time, frame: &Outgoing<'_>) -> Result<(), Drop> {
        self.slot.deliver(now, frame, &mut self.flat).map(|_| ())
    }

    /// A round has ended at `now`; all that has come by `seen` was handed to [`Host::arrive`].
    pub fn flush(&mut self, (now, seen): (Time, Time), fabric: &mut Fabric, buffers: &mut Buffers) {
        self.nic.serve_switch((now, seen), fabric, buffers);
        while let Some(left) = self.nic.switch.as_mut().and_then(|switch| switch.next_up()) {
            self.receive(now, left, buffers);
        }
        self.nic.send_due(now, fabric, buffers);
        self.slot.drain(now, &mut self.flat);
        if let Some(orders) = &mut self.orders {
            orders.expire(now, |left| self.due.push(left));
            self.hand_up_due(now, buffers);
        }
        let Host { edge: Some(edge), slot, flat, merges: true, .. } = self else { return };
        edge.flush(now, now, buffers, |_, frame| slot.deliver(now, frame, flat).map(|_| ()));
    }

    /// When [`Host::flush`] is due by itself.
    pub fn deadline(&self) -> Option<Time> {
        let edge = self.edge.as_ref().and_then(Edge::deadline);
        let order = self.orders.as_ref().and_then(Orders::deadline);
        let shim = self.nic.shim.as_ref().and_then(Shim::deadline);
        let switch = self.nic.switch_deadline();
        edge.into_iter().chain(self.slot.due()).chain(order).chain(shim).chain(switch).min()
    }

    /// Forgets flows that are idle: to be called each millisecond.
    pub fn age(&mut self, now: Time) {
        if let Some(edge) = &mut self.edge {
            edge.evict(now);
        }
        if let Some(shim) = &mut self.nic.shim {
            shim.evict(now);
        }
        if let Some(ranks) = &mut self.nic.ranks {
            ranks.evict(now);
        }
        if let Some(orders) = &mut self.orders {
            orders.evict(now);
        }
    }
}

/// A frame that is whole.
fn view_of<'a>(
    view: &millpond_linux::dataplane::frame::View,
    pieces: &'a [IoSlice<'a>],
    length: usize,
) -> Outgoing<'a> {
    let (offload, sender) = (Offload::default(), Sender::Elsewhere);
    Outgoing { view: *view, offload, pieces, length, sender }
}
