//! Ports: where packets wait for a link. Two kinds with one meaning.
//!
//! A [`FastPort`] serves first come, first served, never evicts and never pauses, so a packet's
//! departure is known when it arrives: one number, `busy_until`, stands for the queue, and a hop
//! costs one event. A [`GeneralPort`] holds its packets until they leave, and so can serve by
//! priority, mark at dequeue, be accounted by pools and be paused.
//!
//! Invariant: where both can serve, they give the same verdicts and departures, to the picosecond.
//! The packet in transmission does not wait: it is in neither occupancy.

mod fast;
mod pausing;
mod rules;
mod standing;

pub use fast::FastPort;
use pausing::Pauses;
use rules::Rules;

use super::QueueView;
use super::admission::Admission;
use super::buffer::{Capacity, Claim, Memory};
use super::marking::Marking;
use super::pause::{Floor, Watchdog};
use super::queue::{DynamicQueues, Load, PausedSet, Queue, Waiting};
use crate::context::Context;
use crate::counters::DropReason;
use crate::packet::uet::CONTROL_PRIORITY;
use crate::packet::{Ecn, Packet, PacketId, Packets};
use crate::random::Random;
use crate::units::{Rate, Time};
use std::sync::Arc;

/// A link's rate, ready for the per-packet path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRate {
    rate: Rate,
    /// 0 where a byte does not take a whole number of picoseconds.
    ps_per_byte: u64,
}

impl LinkRate {
    /// Of a rate that is not zero.
    pub fn new(rate: Rate) -> LinkRate {
        LinkRate { rate, ps_per_byte: rate.whole_ps_per_byte().unwrap_or(0) }
    }
    /// Time to put `bytes` on the wire.
    #[inline]
    pub fn time(self, bytes: u64) -> Time {
        if self.ps_per_byte != 0 {
            Time::from_ps(bytes * self.ps_per_byte)
        } else {
            self.odd_time(bytes)
        }
    }
    #[cold]
    fn odd_time(self, bytes: u64) -> Time {
        self.rate.transmission_time(bytes)
    }
}

#[derive(Clone, Debug)]
pub struct PortConfig {
    pub rate: Rate,
    /// The amount that it may hold by itself.
    pub capacity: Capacity,
    /// Bytes that packets of the priority [`CONTROL_PRIORITY`] may take beside that; `None`: they
    /// take from it. With strict priority alone.
    pub control: Option<u64>,
    pub marking: Marking,
    pub admission: Admission,
    pub queue: Queue,
}

impl PortConfig {
    /// A port with the default answer at each place.
    pub fn plain(rate: Rate, capacity: Capacity) -> PortConfig {
        PortConfig {
            rate,
            capacity,
            control: None,
            marking: Marking::new(&Default::default()),
            admission: Admission::new(&Default::default()),
            queue: Queue::new(&Default::default()),
        }
    }

    /// Whether a [`FastPort`] can serve.
    pub fn fits_fast(&self) -> bool {
        self.queue.is_fifo()
            && self.control.is_none()
            && !self.marking.marks_at_dequeue()
            && !self.marking.watches_departures()
            && !self.admission.watches_departures()
    }
}

/// Sets CE on a packet whose transport reacts to it; returns whether it did.
#[inline]
pub(super) fn set_ce(packet: &mut Packet) -> bool {
    let reacts = packet.ecn() == Ecn::Ect;
    if reacts {
        packet.mark();
    }
    reacts
}

/// Facts that a port gets of a packet that is offered to it, beside the packet.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The queue by the switch's own lengths, if these are stale.
    pub known: Option<QueueView>,
    /// The admission counts a packet that found no room, too.
    pub sample_full: bool,
    pub random: &'a Random,
}

impl<'a> Terms<'a> {
    /// The queue is known as it is, and the admission counts whatever is offered.
    pub fn plain(random: &'a Random) -> Terms<'a> {
        Terms { known: None, sample_full: true, random }
    }
}

/// Asks whether a packet may join a queue that is as the view of `live`, or as the terms' `known`
/// where that is not the same, and lets the admission count it, if there is one to ask.
#[inline(always)]
fn admit(
    mut admission: Option<&mut Admission>,
    live: &Context<'_, QueueView>,
    terms: &Terms<'_>,
    lacks_room: impl Fn(&QueueView) -> Option<DropReason>,
) -> Result<(), DropReason> {
    let seen = live.of(terms.known.unwrap_or(live.view));
    let full = lacks_room(&seen.view);
    let early = admission.as_ref().filter(|_| full.is_none()).and_then(|it| it.test(&seen));
    let refusal = full.or(early).or_else(|| {
        let overflows = terms.known.is_some() && lacks_room(&live.view).is_some();
        overflows.then_some(DropReason::OverflowStale)
    });
    if (full.is_none() || terms.sample_full)
        && let Some(admission) = &mut admission
    {
        admission.commit(&seen, refusal.is_none());
    }
    refusal.map_or(Ok(()), Err)
}

/// A port that holds its packets. The fields that every packet changes are one cache line, its
/// queue the next.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct GeneralPort {
    /// When the link is free again.
    busy_until: Time,
    /// When the driver will call [`GeneralPort::on_ready`]; `Time::MAX`: not at all.
    ready_at: Time,
    bytes: u64,
    /// The most bytes that ever waited.
    pub bytes_max: u64,
    paused: PausedSet,
    /// Packets without payload, where they are apart.
    control: Option<Box<Apart>>,
    rules: Arc<Rules>,
    packets: u32,
    number: u16,
    /// It has a floor or a watchdog.
    is_guarded: bool,
    /// Packets marked here.
    pub marked: u64,
    queue: Queue,
    marking: Marking,
    pub(super) admission: Admission,
    /// The state that pause frames have set; none before the first.
    pauses: Option<Box<Pauses>>,
    /// The service in spite of a pause, if there is any.
    floor: Option<Box<Floor>>,
    /// The watchdog that ends a pause that lasts too long, if there is one.
    watchdog: Option<Box<Watchdog>>,
}

/// The packets that wait beside the buffer: no policy sees them.
#[derive(Clone, Copy, Debug)]
struct Apart {
    capacity: u64,
    bytes: u64,
    packets: u32,
}

/// The tasks that a general port gives its driver next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Service {
    /// Put this packet on the wire now; its last bit leaves then.
    pub transmit: Option<(PacketId, Time)>,
    /// Call [`GeneralPort::on_ready`] at this time.
    pub call_at: Option<Time>,
}

impl GeneralPort {
    /// A port with an idle link.
    pub fn new(config: PortConfig) -> GeneralPort {
        let rules = Arc::new(Rules::new(&config));
        GeneralPort::ruled(config, rules)
    }

    /// The ports of a switch, in order.
    pub fn all(configs: &[PortConfig]) -> Vec<GeneralPort> {
        let port = |((number, rules), config): ((usize, Arc<Rules>), &PortConfig)| GeneralPort {
            number: number as u16,
            ..GeneralPort::ruled(config.clone(), rules)
        };
        Rules::of_all(configs).enumerate().zip(configs).map(port).collect()
    }

    fn ruled(config: PortConfig, rules: Arc<Rules>) -> GeneralPort {
        GeneralPort {
            busy_until: Time::ZERO,
            ready_at: Time::MAX,
            bytes: 0,
            bytes_max: 0,
            paused: PausedSet::default(),
            rules,
            packets: 0,
            number: 0,
            is_guarded: false,
            marked: 0,
            queue: config.queue,
            marking: config.marking,
            admission: config.admission,
            control: config
                .control
                .map(|capacity| Box::new(Apart { capacity, bytes: 0, packets: 0 })),
            pauses: None,
            floor: None,
            watchdog: None,
        }
    }

    /// Each priority gets this rate, paused or not.
    pub fn guarantee(&mut self, rate: Rate) {
        self.floor = Some(Box::new(Floor::new(rate)));
        self.is_guarded = true;
    }

    /// The packets and bytes that wait.
    #[inline]
    pub fn view(&self) -> QueueView {
        QueueView { packets: self.packets, bytes: self.bytes }
    }

    /// The rate of the port's link.
    pub fn rate(&self) -> Rate {
        self.rules.rate.rate
    }

    /// When the packet in transmission has left; what waits may follow it.
    #[inline]
    pub fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// Whether higher priorities are served first.
    pub fn serves_by_priority(&self) -> bool {
        matches!(self.queue, Queue::StrictPriority(_))
    }

    /// The number by which pauses name the flow of this entropy, where flows have queues.
    pub fn vfid_of(&self, entropy: u32) -> Option<u16> {
        Some(self.flows()?.vfid_of(entropy))
    }

    /// How the queue of a packet stands, where flows have queues.
    pub fn load(&self, packet: &Packet) -> Option<Load> {
        self.flows()?.load(packet)
    }

    /// The number of a packet's flow, where flows have queues.
    pub fn vfid(&self, packet: &Packet) -> Option<u16> {
        if packet.is_data() { Some(self.flows()?.vfid(packet)) } else { None }
    }

    /// The queues of flows, where they have some.
    fn flows(&self) -> Option<&DynamicQueues> {
        if let Queue::DynamicQueues(flows) = &self.queue { Some(flows) } else { None }
    }

    /// All packets that wait, for the audit.
    pub fn queued(&self) -> Vec<PacketId> {
        self.queue.waiting()
    }

    /// Why a queue of `view` has no room for what claims it, if it has none.
    #[inline]
    pub fn lacks_room(
        &self,
        view: &QueueView,
        claim: &Claim,
        memory: &Memory,
    ) -> Option<DropReason> {
        self.rules.capacity.lacks_room(view, claim.size).or_else(|| memory.test(view.bytes, claim))
    }

    /// Takes the packet as [`GeneralPort::offer`] does. One that finds the link free and nothing
    /// before it goes past the queue: then this is when its last bit leaves. Otherwise follow with
    /// [`GeneralPort::serve`].
    ///
    /// # Errors
    /// As [`GeneralPort::offer`].
    #[inline(always)] // what it returns stays in registers
    pub fn pass(
        &mut self,
        now: Time,
        id: PacketId,
        packet: &mut Packet,
        memory: &mut Memory,
        terms: &Terms<'_>,
    ) -> Result<Option<Time>, DropReason> {
        let is_free = self.packets == 0 && now >= self.busy_until && self.paused.is_empty();
        if !(is_free && self.rules.passes) || self.is_guarded || memory.has_pools() {
            return self.offer(now, id, packet, memory, terms).map(|()| None);
        }
        self.admit(now, packet, memory, terms)?;
        self.greet(now, packet, terms.random);
        self.busy_until = now + self.rules.rate.time(packet.size as u64);
        Ok(Some(self.busy_until))
    }

    /// Takes the packet into the queue, on the same terms as [`FastPort::offer`]. Follow with
    /// [`GeneralPort::serve`].
    ///
    /// # Errors
    /// The reason to drop the packet: admission rejects it, or the queue or the switch's memory has
    /// no room.
    #[inline]
    pub fn offer(
        &mut self,
        now: Time,
        id: PacketId,
        packet: &mut Packet,
        memory: &mut Memory,
        terms: &Terms<'_>,
    ) -> Result<(), DropReason> {
        if self.control.is_some() && packet.priority() == CONTROL_PRIORITY {
            return self.offer_apart(id, packet);
        }
        self.admit(now, packet, memory, terms)?;
        self.take(now, id, packet, memory, terms.random);
        Ok(())
    }

    /// The same of a packet without payload, where those are apart.
    fn offer_apart(&mut self, id: PacketId, packet: &Packet) -> Result<(), DropReason> {
        let Some(apart) = &mut self.control else { return Err(DropReason::QueueFull) };
        if apart.bytes + u64::from(packet.size) > apart.capacity {
            return Err(DropReason::QueueFull);
        }
        apart.bytes += u64::from(packet.size);
        apart.packets += 1;
        self.queue.push(id, packet);
        Ok(())
    }

    #[inline]
    fn has_any(&self) -> bool {
        self.packets > 0 || self.control.as_ref().is_some_and(|apart| apart.packets > 0)
    }

    /// The newest packet that waits, of the lowest priority; with strict priority alone.
    pub(super) fn newest(&self) -> Option<PacketId> {
        if let Queue::StrictPriority(queue) = &self.queue { queue.newest() } else { None }
    }

    pub(super) fn take_newest(
        &mut self,
        now: Time,
        packets: &Packets,
        memory: &mut Memory,
        random: &Random,
    ) {
        let Queue::StrictPriority(queue) = &mut self.queue else { return };
        if let Some(id) = queue.take_newest() {
            self.forget(now, &packets[id], memory, random);
        }
    }

    /// Asks whether the packet may join the queue.
    #[inline(always)]
    fn admit(
        &mut self,
        now: Time,
        packet: &Packet,
        memory: &Memory,
        terms: &Terms<'_>,
    ) -> Result<(), DropReason> {
        let claim = Claim::of(packet, self.number);
        let lacks_room = |view: &QueueView| {
            let full = self.rules.capacity.lacks_room(view, claim.size);
            full.or_else(|| memory.test(view.bytes, &claim))
        };
        let view = QueueView { packets: self.packets, bytes: self.bytes };
        let live = Context { now, packet, view, random: terms.random };
        let admission = if self.rules.asks { Some(&mut self.admission) } else { None };
        admit(admission, &live, terms, lacks_room)
    }

    /// Shows marking and admission a packet that joins the queue.
    #[inline(always)]
    fn greet(&mut self, now: Time, packet: &mut Packet, random: &Random) {
        let (view, from) = (self.view(), self.rules.marks_from);
        let is_long = view.packets >= from.packets || view.bytes >= from.bytes;
        if is_long
            && self.marking.at_enqueue(&Context { now, packet, view, random })
            && set_ce(packet)
        {
            self.marked += 1;
        }
        if self.rules.asks {
            self.admission.on_enqueue(&Context { now, packet, view, random });
        }
    }

    /// Queues a packet for which there is room.
    #[inline]
    pub fn take(
        &mut self,
        now: Time,
        id: PacketId,
        packet: &mut Packet,
        memory: &mut Memory,
        random: &Random,
    ) {
        self.greet(now, packet, random);
        self.settle(now);
        self.queue.push(id, packet);
        self.bytes += packet.size as u64;
        self.packets += 1;
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.joins(packet.priority());
        }
        memory.take(self.number, packet);
    }

    /// Whether the packets less important than `rank` would, if they left, make room for `size`
    /// bytes.
    pub fn can_displace(&self, rank: u32, size: u64, memory: &Memory) -> bool {
        let bytes = (self.bytes + size)
            .saturating_sub(self.rules.capacity.bytes)
            .max(memory.missing(self.bytes, size));
        let packets = self.packets >= self.rules.capacity.packets;
        self.queue.can_evict(rank, bytes, u32::from(packets))
    }

    /// Takes out the least important packet, the newest among equals, if its rank is larger than
    /// `rank`.
    pub fn evict(
        &mut self,
        now: Time,
        rank: u32,
        packets: &Packets,
        memory: &mut Memory,
        random: &Random,
    ) -> Option<PacketId> {
        let id = self.queue.evict(rank)?;
        self.forget(now, &packets[id], memory, random);
        Some(id)
    }

    /// Starts the next packet if the link is free and one may be served.
    #[inline]
    pub fn serve(
        &mut self,
        now: Time,
        packets: &mut Packets,
        memory: &mut Memory,
        random: &Random,
    ) -> Service {
        if !self.paused.is_empty() {
            self.expire_pauses(now);
        }
        let held = self.floor.as_ref().map_or(self.paused, |floor| floor.held(self.paused, now));
        self.serve_but(held, now, packets, memory, random)
    }

    /// The same after a pause frame, which is no occasion to serve what is paused.
    pub fn heed(
        &mut self,
        now: Time,
        packets: &mut Packets,
        memory: &mut Memory,
        random: &Random,
    ) -> Service {
        self.expire_pauses(now);
        self.serve_but(self.paused, now, packets, memory, random)
    }

    #[inline(always)]
    fn serve_but(
        &mut self,
        held: PausedSet,
        now: Time,
        packets: &mut Packets,
        memory: &mut Memory,
        random: &Random,
    ) -> Service {
        let mut service = Service::default();
        self.settle(now);
        if now >= self.busy_until
            && self.has_any()
            && let Some(Waiting { id, size }) = self.queue.pop(held)
        {
            if let Some(apart) = &mut self.control
                && packets[id].priority() == CONTROL_PRIORITY
            {
                apart.bytes -= u64::from(size);
                apart.packets -= 1;
                self.busy_until = now + self.rules.rate.time(size.into());
                service.transmit = Some((id, self.busy_until));
                self.ask_for_call(now, &mut service);
                return service;
            }
            if self.rules.watches || self.is_guarded || memory.has_pools() {
                self.show_departure(now, &mut packets[id], random);
                memory.give(self.number, &packets[id]);
            } else {
                // Nobody looks at the packet, whose line may be far off by now.
                memory.give_bytes(size.into());
            }
            self.bytes -= u64::from(size);
            self.packets -= 1;
            self.busy_until = now + self.rules.rate.time(size.into());
            service.transmit = Some((id, self.busy_until));
        }
        self.bytes_max = self.bytes_max.max(self.bytes);
        self.ask_for_call(now, &mut service);
        service
    }

    /// Asks to be called when what waits may be served.
    #[inline(always)]
    fn ask_for_call(&mut self, now: Time, service: &mut Service) {
        if self.has_any() {
            let at = if self.busy_until > now { self.busy_until } else { self.next_resume() };
            if at < self.ready_at {
                self.ready_at = at;
                service.call_at = self.call(at);
            }
        }
    }

    /// Shows a packet that leaves the queue to all who watch it.
    fn show_departure(&mut self, now: Time, packet: &mut Packet, random: &Random) {
        if let Some(floor) = &mut self.floor {
            floor.on_departure(packet.priority(), packet.size as u64, now);
        }
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.leaves(packet.priority());
        }
        let view = self.view();
        if self.marking.at_dequeue(&Context { now, packet, view, random }) && set_ce(packet) {
            self.marked += 1;
        }
        let context = Context { now, packet, view, random };
        self.admission.on_dequeue(&context);
        self.marking.on_dequeue(&context);
    }

    /// Time has come to `now`, for a queue that keeps time.
    #[inline]
    fn settle(&mut self, now: Time) {
        if self.rules.has_flows
            && let Queue::DynamicQueues(flows) = &mut self.queue
        {
            flows.settle(now);
        }
    }

    /// The driver's call at the time that [`Service::call_at`] named.
    #[inline]
    pub fn on_ready(
        &mut self,
        now: Time,
        packets: &mut Packets,
        memory: &mut Memory,
        random: &Random,
    ) -> Service {
        if now != self.ready_at {
            return Service::default(); // an earlier call took its place
        }
        self.ready_at = Time::MAX;
        self.serve(now, packets, memory, random)
    }
}
