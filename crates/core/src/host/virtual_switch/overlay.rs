//! What a host's switch tells others, and what it was told ([`crate::overlay`] decides).
//!
//! A flow that its queue tells to pause is said so to its sender. Where a core of an application
//! has no shared memory left, all who send to it are told together, since flows that are told one
//! after the other need the sum of their headroom. That ends when all headroom is there and half
//! of the memory. Memory is that of one core of an application, so a pause of all that goes to a
//! host, which is the next rung of [`Rung`], would stop others for nothing, and is not said.
//!
//! What was lost on arrival is drawn here (`control-loss`). Switches do not restart, so epochs and
//! tags of datagrams have no part.
//!
//! Invariant: whoever is told to pause is told to go on, or forgets it.

use super::generations::{self, Generation, Waiting};
use super::queue::{Flow, Queue};
use super::{Call, HostWire, VirtualSwitchConfig, VirtualSwitchParams};
use crate::flow_queues::Verdict;
use crate::overlay::{Change, Config, Keeper, Record, Senders, Target, Teller};
use crate::packet::overlay::{WORDS, Whom, Words};
use crate::packet::{Body, Ecn, FlowId, HostId, Importance, Packet, PacketId, TTL, TrafficClass, flags};
use crate::random::{Stream, mix64};
use crate::units::{Bytes, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// For words that end by themselves at no time that a run reaches.
const FOR_EVER: Time = Time::from_s(5_000);

/// A time for each of some hosts.
#[derive(Clone, Debug, Default)]
struct Due {
    by_time: BTreeSet<(Time, HostId)>,
    of: BTreeMap<HostId, Time>,
}

impl Due {
    fn set(&mut self, host: HostId, at: Option<Time>) {
        let old = match at {
            Some(at) => self.of.insert(host, at),
            None => self.of.remove(&host),
        };
        if let Some(old) = old {
            self.by_time.remove(&(old, host));
        }
        self.by_time.extend(at.map(|at| (at, host)));
    }
    fn first(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }
    fn pop_first_if_due(&mut self, now: Time) -> Option<(Time, HostId)> {
        let (at, host) = *self.by_time.first().filter(|(at, _)| *at <= now)?;
        self.set(host, None);
        Some((at, host))
    }
}

/// One host's part.
pub(super) struct Overlay {
    me: HostId,
    teller: Teller,
    keeper: Keeper,
    /// Shared memory of a port.
    memory: Bytes,
    priority: u8,
    /// By port.
    senders: BTreeMap<u16, Senders<HostId>>,
    /// Hosts that something may be to be said to now.
    touched: BTreeSet<HostId>,
    /// When something is to be said to the others.
    due: Due,
    /// The release's way, in the place of the teller's.
    generation: Option<Generation>,
    /// Targets that may no longer, or may again, send.
    pub(super) changes: VecDeque<Change>,
    /// When the host is called; [`Time::MAX`]: it is not.
    timer_at: Time,
    loss: f64,
    loss_run: u32,
    /// By sender: packets lost in a row.
    lost: BTreeMap<HostId, u32>,
    random: Stream,
    /// PAUSE, REFRESH, RESUME.
    pub(super) said: [u64; 3],
}

impl Overlay {
    pub(super) fn new(config: &mut VirtualSwitchConfig) -> Option<Box<Overlay>> {
        let VirtualSwitchParams::Backdraft(p) = &config.params else { return None };
        let packets = (u64::from(p.flow_cap) * 8 / 7, p.memory.0 / u64::from(config.packet_max));
        let generation = Generation::new(p.overlay, packets, config.packet_max);
        let longest = if generation.is_some() { FOR_EVER } else { p.ttl.max(Config::default().longest) };
        let times =
            Config { feedback: p.feedback, ttl: p.ttl, longest, flows: p.application_flows, ..Config::default() };
        Some(Box::new(Overlay {
            me: config.host,
            teller: Teller::new(times),
            keeper: Keeper::new(times),
            memory: p.memory,
            priority: p.priority as u8,
            senders: BTreeMap::new(),
            touched: BTreeSet::new(),
            due: Due::default(),
            generation,
            changes: VecDeque::new(),
            timer_at: Time::MAX,
            loss: p.control_loss,
            loss_run: p.control_loss_run,
            lost: BTreeMap::new(),
            random: config.random.fork(),
            said: [0; 3],
        }))
    }

    /// Whether a packet from there is lost on arrival.
    pub(super) fn loses(&mut self, from: HostId) -> bool {
        if self.loss <= 0.0 {
            return false;
        }
        let run = self.lost.entry(from).or_insert(0);
        let is_lost = *run < self.loss_run && self.random.unit() < self.loss;
        *run = if is_lost { *run + 1 } else { 0 };
        is_lost
    }

    /// Another switch has said something.
    pub(super) fn hear(&mut self, now: Time, from: HostId, words: &Words) {
        for record in words.records(from, self.me) {
            if let Some(generation) = &mut self.generation {
                generation.hear(now, from, &record);
            }
            self.changes.extend(self.keeper.hear(now, from, &record));
        }
    }

    /// Ends what has lasted for long enough.
    pub(super) fn expire(&mut self, now: Time) {
        if self.timer_at <= now {
            self.timer_at = Time::MAX;
        }
        while let Some(change) = self.keeper.expire(now) {
            self.changes.push_back(change);
        }
    }

    /// Forgets flows that are silent.
    pub(super) fn age(&mut self, now: Time) {
        if let Some(generation) = &mut self.generation {
            generation.expire(now);
        }
    }

    /// A flow from here has handed down so many packets: it may have to keep a rate.
    pub(super) fn handed_down(&mut self, now: Time, flow: FlowId, application: u16, to: HostId, packets: u64) {
        let Some(generation) = &mut self.generation else { return };
        let key = Whom::key(flow, application, self.me, to);
        if let Some(record) = generation.handed_down(now, to, &key, packets) {
            self.changes.extend(self.keeper.hear(now, to, &record));
        }
    }

    /// Whether a flow from here may not send.
    pub(super) fn is_held(&self, flow: FlowId, application: u16, to: HostId) -> bool {
        self.keeper.is_held(to, &Whom::key(flow, application, self.me, to))
    }

    /// Data has come for a port whose queues have answered so.
    pub(super) fn arrived(
        &mut self,
        now: Time,
        port: u16,
        packet: &Packet,
        verdict: &Verdict<PacketId>,
        queue: &Queue,
    ) {
        if let Some(generation) = &mut self.generation {
            let waiting = Waiting { flow: queue.waiting(packet.flow, packet.src), port: queue.len() as u64 };
            let flow = generations::Flow { id: packet.flow, from: packet.src };
            return generation.arrived(now, self.me, port, flow, waiting);
        }
        let senders = self.senders.entry(port).or_default();
        if senders.arrived(packet.src, verdict.rung) {
            self.say_to_all(now, port, Some(queue.queued()));
        }
        if verdict.is_told || self.senders[&port].is_paused() {
            let key = Whom::key(packet.flow, port, packet.src, self.me);
            self.teller.arrived(now, packet.src, &key);
            self.touched.insert(packet.src);
        }
    }

    /// Says to all who send to a port that they are to pause, or to go on.
    fn say_to_all(&mut self, now: Time, port: u16, pauses: Option<Bytes>) {
        let Some(senders) = self.senders.get(&port) else { return };
        for sender in senders.iter() {
            let target = Whom::Application(port).target(sender, self.me);
            match pauses {
                Some(queued) => self.teller.pause(now, sender, target, queued.0),
                None => self.teller.resume(now, sender, target),
            }
            self.touched.insert(sender);
        }
    }

    /// Takes what a port's queues want said, and ends the pauses of all who send to it.
    pub(super) fn tell(&mut self, now: Time, port: u16, queue: &mut Queue) {
        if let Some(generation) = &mut self.generation {
            queue.ignore_signals();
            return generation.left(self.me, port, queue.len() as u64);
        }
        let Queue::Flows(queues) = queue else { return };
        while let Some(signal) = queues.next_signal() {
            let Flow { id, from } = signal.flow;
            let target: Target = Whom::Flow { flow: id, application: port }.target(from, self.me);
            match signal.is_pause {
                true => self.teller.pause(now, from, target, signal.queued.0),
                false => self.teller.resume(now, from, target),
            }
            self.touched.insert(from);
        }
        if self.senders.get_mut(&port).is_some_and(|senders| senders.calms(queues, self.memory)) {
            self.say_to_all(now, port, None);
        }
    }

    /// What is to be said now, and to whom. To be asked until there is no more.
    pub(super) fn next_words(&mut self, now: Time) -> Option<(HostId, Words)> {
        if let Some((host, records)) = self.generation.as_mut().and_then(|generation| generation.next(WORDS)) {
            return Some((host, self.words(&records)));
        }
        while let Some((_, host)) = self.due.pop_first_if_due(now) {
            self.touched.insert(host);
        }
        while let Some(&host) = self.touched.first() {
            let records = self.teller.poll(now, host, WORDS);
            if records.is_empty() {
                self.touched.pop_first();
                let next = self.teller.deadline(host).map(|at| at.max(now + Time::from_ps(1)));
                self.due.set(host, next);
                continue;
            }
            return Some((host, self.words(&records)));
        }
        None
    }

    /// Records as words, which are counted.
    fn words(&mut self, records: &[Record]) -> Words {
        for record in records {
            self.said[record.word.index()] += 1;
        }
        Words::new(records)
    }

    /// The packet of these words.
    pub(super) fn packet(&self, now: Time, me: HostId, to: HostId, words: &Words) -> Packet {
        Packet {
            body: Body::Overlay,
            stamp: now,
            flow: FlowId::MAX,
            src: me,
            dst: to,
            entropy: mix64(u64::from(me) << 32 | u64::from(to)) as u32,
            size: words.bytes() as u16,
            flags: flags::LAST,
            class: TrafficClass::new(self.priority, Importance::Control, Ecn::NotEct),
            ttl: TTL,
            ..Packet::default()
        }
    }

    /// Keeps the timer no later than there is something to do.
    pub(super) fn arm<W: HostWire>(&mut self, now: Time, wire: &mut W) {
        let next = self.due.first().into_iter().chain(self.keeper.deadline()).min().unwrap_or(Time::MAX);
        let next = if next == Time::MAX { next } else { next.max(now + Time::from_ps(1)) };
        if next == self.timer_at {
            return;
        }
        if self.timer_at != Time::MAX {
            wire.recall(self.timer_at, Call::Overlay);
        }
        self.timer_at = next;
        if next != Time::MAX {
            wire.call(next, Call::Overlay);
        }
    }
}
