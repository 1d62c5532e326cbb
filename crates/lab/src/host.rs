//! A host's port: its TAP, its edge, and the NIC of its link.
//!
//! ```text
//!  TAP ──► edge: importance ──► rank ──► label ──► flows that others hold ──► NIC ══►
//!  TAP ◄── edge: order ◄── receive offload ◄── importance ◄── virtual switch ◄══
//! ```
//!
//! The edge ([`Edge`], `millpond switch`'s own code) has the stages that the plan asks for, in the
//! simulator's order: limits come first, on the host's cgroups.
//!
//! Cores of the virtual switch and of applications are the scenario's: their work takes its time in
//! the fabric's schedule, and none of this machine's cores. A packet with payload reaches the
//! kernel when its application's core has served it. The kernel's receive window plays no part in
//! that. The port of a connection names its class of traffic ([`crate::load`]), and so its
//! application; other packets have none.
//!
//! Invariant: a packet that arrives is handed to the kernel once, consumed by the shim, dropped for
//! a counted reason, or held here.

#[cfg(test)]
mod tests;

use crate::address;
use crate::load::class_of;
use crate::network::Uplink;
use crate::nic::{Carry, Nic};
use crate::words;
use millpond_core::Time;
use millpond_core::counters::{Count, Counters, DropReason};
use millpond_core::importance::{First, ImportanceParams, TltParams};
use millpond_core::packet::Kind;
use millpond_core::registry::Choice;
use millpond_core::switch::QueueView;
use millpond_linux::dataplane::buffers::{Buffers, Frame};
use millpond_linux::dataplane::counters::Drop;
use millpond_linux::dataplane::flow::Keys;
use millpond_linux::dataplane::frame::parse;
use millpond_linux::dataplane::outgoing::Outgoing;
use millpond_linux::dataplane::port::shared::Sender;
use millpond_linux::dataplane::slot::Slot;
use millpond_linux::edge::importance::{Shim, ShimParams};
use millpond_linux::edge::{ClassOf, Departure, Edge, Stages};
use millpond_linux::fabric::{Fabric, Held, Left};
use millpond_scenario::plan::Plan;
use millpond_sim::equip;
use millpond_sim::labels::LabelPlan;
use std::io::IoSlice;

/// The shim's wait after an echo for the host's TCP to send. A host's TCP answers within
/// the write of the acknowledgement, and the driver reads it before it looks at the time.
const DELTA: Time = Time::from_us(50);

/// A host as the fabric has it.
pub struct Host {
    hosts: u32,
    pub slot: Slot,
    nic: Nic,
    edge: Edge,
    /// The kind of its virtual switch.
    switch: &'static str,
    flat: Vec<u8>,
}

/// The shim of a host, if the plan marks importance. It cannot find the last packet of a window,
/// so the first one starts the clock.
fn shim(plan: &Plan) -> Option<Shim> {
    let ImportanceParams::Tlt(tlt) = &plan.transport_choices.importance else { return None };
    Some(Shim::new(&ShimParams {
        tlt: TltParams { first: First::First, ..tlt.clone() },
        delta: DELTA,
        clock_timeout: plan.transport.min_rto,
        ..ShimParams::default()
    }))
}

fn stages(plan: &Plan, labels: Option<&LabelPlan>, host: u32) -> Stages {
    let rate = plan.topology.links[host as usize].rate;
    let classes = plan.traffic.classes.len() as u16;
    let class: ClassOf = Box::new(move |held: &Held| class_of(held, classes));
    let list = |labels: &LabelPlan| {
        (0..plan.topology.hosts)
            .map(|peer| labels.between(Time::ZERO, host, peer).to_vec())
            .collect()
    };
    Stages {
        shim: shim(plan),
        rank: plan.transport_choices.rank.clone(),
        rule: labels.map(|labels| labels.rule),
        is_followed: labels.is_some_and(|labels| labels.is_followed),
        labels: labels.map(list).unwrap_or_default(),
        offload: plan.host.choices.receive_offload.clone(),
        ordering: plan.transport_choices.ordering.timeout(),
        virtual_switch: equip::virtual_switch(plan, host, rate).zip(Some(class)),
        framing: plan.host.frame_overhead as u16,
        keys: Keys::seeded(plan.seed ^ u64::from(host) << 32),
    }
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
        Host {
            hosts: plan.topology.hosts,
            slot,
            nic: Nic::new(plan, uplink),
            edge: Edge::of(stages(plan, labels, host)),
            switch: plan.edge.virtual_switch.kind(),
            flat: Vec::new(),
        }
    }

    /// From now on these labels lead to each peer; none: as before.
    pub fn set_labels<'a>(&mut self, labels: impl Fn(u32) -> &'a [u16]) {
        let edge = &mut self.edge;
        (0..self.hosts).for_each(|peer| edge.set_labels(peer as usize, labels(peer).to_vec()));
    }
    /// Until when its link is taken by what it has sent.
    pub fn sends_until(&self) -> Time {
        self.nic.busy_until
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
    /// Packets that its virtual switch has dropped.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.edge.counters.discarded(reason)
    }
    /// The bytes of all of these.
    pub fn dropped_bytes(&self) -> u64 {
        self.edge.dropped_bytes()
    }
    /// Packets that have arrived and wait in its virtual switch, and their bytes.
    pub fn kept(&self) -> (u64, u64) {
        self.edge.host().virtual_switch().map_or((0, 0), |_| self.edge.kept())
    }
    /// Adds what its mechanisms have counted.
    pub fn count(&self, all: &mut Counters) {
        if let Some(switch) = self.edge.host().virtual_switch() {
            let named = all.of(self.switch);
            switch.counts().report(named);
            if let Some(held) = self.edge.held() {
                named.add("held-us", Count::Micros(held));
            }
        }
        let Some(tlt) = self.edge.shim().map(Shim::counters) else { return };
        let named = all.of("tlt");
        for (kind, sent) in tlt.data() {
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
            ("untracked_flows", tlt.untracked.values().sum()),
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
            let Some(read) = self.slot.read(buffers) else { return count };
            if let Some(frame) = read {
                self.leave(now, frame, fabric, buffers);
                buffers.release(frame.buffer);
            }
        }
        burst
    }

    /// Takes a frame that its kernel has sent.
    pub fn leave(&mut self, now: Time, frame: Frame, fabric: &mut Fabric, buffers: &mut Buffers) {
        self.slot.counters.receive(frame.length);
        if let Err(reason) = self.send(now, frame, fabric, buffers) {
            self.slot.counters.drop(reason);
        }
    }

    fn send(
        &mut self,
        now: Time,
        frame: Frame,
        fabric: &mut Fabric,
        buffers: &mut Buffers,
    ) -> Result<(), Drop> {
        let bytes = frame.bytes(buffers);
        if let Some(reply) = address::answer(bytes, self.hosts) {
            let view = parse(&reply).ok_or(Drop::Runt)?;
            let (pieces, length) = ([IoSlice::new(&reply)], reply.len());
            let (offload, sender) = (Default::default(), Sender::Elsewhere);
            return self.up(now, &Outgoing { view, offload, pieces: &pieces, length, sender });
        }
        let view = parse(bytes).ok_or(Drop::Runt)?;
        frame.offload.check(&view, frame.length).map_err(|_| Drop::BadOffload)?;
        let first = fabric.classifier().read(now, bytes, frame.length, &view)?;
        let carry = &mut Carry { nic: &mut self.nic, fabric };
        let departure = Departure { frame: &frame, view: &view, first };
        self.edge.leave(now, buffers, departure, carry)
    }

    /// Takes a packet that has reached the host. [`Host::flush`] follows when the round ends.
    pub fn arrive(&mut self, now: Time, left: Left, buffers: &mut Buffers) {
        let Left { at, packet, mut held, .. } = left;
        if packet.kind() == Kind::Overlay {
            let words = words::read(&held, buffers);
            held.bytes.end(buffers);
            return self.edge.receive_words(at, packet, words, buffers);
        }
        self.edge.receive(now, at, packet, held, buffers);
    }

    /// Hands a frame to the kernel, which takes it at once or has it wait.
    fn up(&mut self, now: Time, frame: &Outgoing<'_>) -> Result<(), Drop> {
        self.slot.deliver(now, frame, &mut self.flat).map(|_| ())
    }

    /// A round has ended at `now`; all that has come by `seen` was handed to [`Host::arrive`].
    pub fn flush(&mut self, now: Time, seen: Time, fabric: &mut Fabric, buffers: &mut Buffers) {
        let Host { edge, nic, slot, flat, .. } = self;
        edge.flush(now, seen, buffers, |_, frame| slot.deliver(now, frame, flat).map(|_| ()));
        while let Some((packet, words)) = edge.next_word() {
            nic.speak(now, packet, &words, fabric, buffers);
        }
        for frame in edge.due(now) {
            let Some(view) = parse(&frame) else { continue };
            // The host's own frames had a way to the same address.
            let first = fabric.classifier().read(now, &frame, frame.len(), &view);
            let Ok(first) = first else { continue };
            let carry = &mut Carry { nic, fabric };
            edge.send_own(now, buffers, &frame, &view, first, carry);
        }
        let carry = &mut Carry { nic, fabric };
        edge.take_turns(now, buffers, carry);
        slot.drain(now, flat);
    }

    /// When [`Host::flush`] is due by itself.
    pub fn deadline(&self) -> Option<Time> {
        let has_room = self.nic.busy_until.saturating_sub(self.nic.room);
        let turns = self.edge.has_turns().then_some(has_room);
        self.edge.deadline().into_iter().chain(self.slot.due()).chain(turns).min()
    }

    /// Forgets flows that are idle: to be called each millisecond.
    pub fn age(&mut self, now: Time) {
        self.edge.evict(now);
    }
}
