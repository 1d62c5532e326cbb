//! Pauses: whom a host's switch asks to stop, and whom it was asked to ([`crate::overlay`]
//! decides).
//!
//! If a flow's queue asks for a pause, its sender is notified. Where a core of an application has
//! no shared memory left, all who send to it are asked together, since flows that are asked one
//! after the other need the sum of their headroom. Their pause ends when all headroom is there and
//! half of the memory. Memory is that of one core of an application, so a pause of all that goes to
//! a host, which is the next rung of [`Rung`], would stop others for nothing, and is not sent.
//!
//! Switches do not restart, so epochs and tags of datagrams have no part.
//!
//! Invariant: whoever is asked to pause is asked to go on, or forgets it.

use super::generations::{self, Generation, Waiting};
use super::overlay::{Leaving, Overlay};
use super::queue::{Flow, Queue};
use super::{BackdraftParams, Port, VirtualSwitchConfig};
use crate::flow_queues::Verdict;
use crate::overlay::{Change, Config, Keeper, Notifier, Record, Senders, Target};
use crate::packet::overlay::{WORDS, Whom};
use crate::packet::{HostId, Packet, PacketId};
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

pub(super) struct Pauses {
    me: HostId,
    notifier: Notifier,
    keeper: Keeper,
    memory: Bytes,
    senders: Vec<Senders<HostId>>,
    /// Hosts for which records may be due now.
    touched: BTreeSet<HostId>,
    /// When records for the others are due.
    due: Due,
    /// The release's way, in the place of the notifier's.
    generation: Option<Generation>,
    /// Targets that may no longer, or may again, send.
    changes: VecDeque<Change>,
}

impl Pauses {
    pub(super) fn new(config: &VirtualSwitchConfig, p: &BackdraftParams) -> Pauses {
        let capacities = Waiting {
            flow: u64::from(p.flow_cap) * 8 / 7,
            port: p.memory.0 / u64::from(config.packet_max),
        };
        let generation = Generation::new(p.overlay, capacities, config.packet_max);
        let longest = if generation.is_some() {
            FOR_EVER
        } else {
            p.ttl(Time::ZERO).max(Config::default().longest)
        };
        let times = Config {
            feedback: p.feedback(Time::ZERO),
            ttl: p.ttl(Time::ZERO),
            longest,
            flows: p.application_flows,
            ..Config::default()
        };
        Pauses {
            me: config.host,
            notifier: Notifier::new(times),
            keeper: Keeper::new(times),
            memory: p.memory,
            senders: Vec::new(),
            touched: BTreeSet::new(),
            due: Due::default(),
            generation,
            changes: VecDeque::new(),
        }
    }

    /// Notifies all who send to a port that they are to pause, or to go on.
    fn notify_all(&mut self, now: Time, port: u16, pauses: Option<Bytes>) {
        let Some(senders) = self.senders.get(usize::from(port)) else { return };
        for sender in senders.iter() {
            let target = Whom::Application(port).target(sender, self.me);
            match pauses {
                Some(queued) => self.notifier.pause(now, sender, target, queued.0),
                None => self.notifier.resume(now, sender, target),
            }
            self.touched.insert(sender);
        }
    }
}

impl Overlay for Pauses {
    fn on_record(&mut self, now: Time, from: HostId, record: &Record) {
        if let Some(generation) = &mut self.generation {
            generation.on_record(now, from, record);
        }
        self.changes.extend(self.keeper.on_record(now, from, record));
    }

    fn expire(&mut self, now: Time, _: &mut [Port]) {
        while let Some(change) = self.keeper.expire(now) {
            self.changes.push_back(change);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.due.first().into_iter().chain(self.keeper.deadline()).min()
    }

    fn age(&mut self, now: Time) {
        if let Some(generation) = &mut self.generation {
            generation.expire(now);
        }
    }

    /// It may have to keep a rate.
    fn handed_down(&mut self, now: Time, flow: &Leaving, packets: u32) {
        let Some(generation) = &mut self.generation else { return };
        if let Some(record) =
            generation.handed_down(now, flow.to, &flow.key, u64::from(packets.max(1)))
        {
            self.changes.extend(self.keeper.on_record(now, flow.to, &record));
        }
    }

    fn is_held(&self, flow: &Leaving) -> bool {
        self.keeper.is_held(flow.to, &flow.key)
    }

    fn arrived(
        &mut self,
        now: Time,
        port: u16,
        packet: &Packet,
        queue: &Queue,
        verdict: Option<&Verdict<PacketId>>,
    ) {
        let Some(verdict) = verdict else { return };
        if let Some(generation) = &mut self.generation {
            let waiting =
                Waiting { flow: queue.waiting(packet.flow, packet.src), port: queue.len() as u64 };
            let flow = generations::Flow { id: packet.flow, from: packet.src };
            return generation.arrived(now, self.me, port, flow, waiting);
        }
        let at = usize::from(port);
        if self.senders.len() <= at {
            self.senders.resize_with(at + 1, Senders::default);
        }
        if self.senders[at].arrived(packet.src, verdict.rung) {
            self.notify_all(now, port, Some(queue.queued()));
        }
        if verdict.is_notified || self.senders[at].is_paused() {
            let key = Whom::key(packet.flow, port, packet.src, self.me);
            self.notifier.arrived(now, packet.src, &key);
            self.touched.insert(packet.src);
        }
    }

    /// Takes the signals of a port's queues, and ends the pauses of all who send to it.
    fn take_signals(&mut self, now: Time, port: u16, queue: &mut Queue) {
        if let Some(generation) = &mut self.generation {
            queue.ignore_signals();
            return generation.left(self.me, port, queue.len() as u64);
        }
        let Queue::Flows(queues) = queue else { return };
        while let Some(signal) = queues.next_signal() {
            let Flow { id, from } = signal.flow;
            let target: Target = Whom::Flow { flow: id, application: port }.target(from, self.me);
            match signal.is_pause {
                true => self.notifier.pause(now, from, target, signal.queued.0),
                false => self.notifier.resume(now, from, target),
            }
            self.touched.insert(from);
        }
        if self
            .senders
            .get_mut(usize::from(port))
            .is_some_and(|senders| senders.calms(queues, self.memory))
        {
            self.notify_all(now, port, None);
        }
    }

    fn is_quiet(&self, now: Time) -> bool {
        let is_due = self.due.first().is_some_and(|at| at <= now);
        self.generation.is_none() && self.touched.is_empty() && self.changes.is_empty() && !is_due
    }

    fn next(&mut self, now: Time, _: &mut [Port]) -> Option<(HostId, Vec<Record>)> {
        if let Some(batch) = self.generation.as_mut().and_then(|generation| generation.next(WORDS))
        {
            return Some(batch);
        }
        while let Some((_, host)) = self.due.pop_first_if_due(now) {
            self.touched.insert(host);
        }
        while let Some(&host) = self.touched.first() {
            let records = self.notifier.poll(now, host, WORDS);
            if records.is_empty() {
                self.touched.pop_first();
                let next = self.notifier.deadline(host).map(|at| at.max(now + Time::from_ps(1)));
                self.due.set(host, next);
                continue;
            }
            return Some((host, records));
        }
        None
    }

    fn next_change(&mut self, _: Time) -> Option<Change> {
        self.changes.pop_front()
    }
}
