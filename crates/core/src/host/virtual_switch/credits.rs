//! Credits between hosts' switches ([`crate::overlay::credits`] decides).
//!
//! Flows wait in flow queues, which pause nobody. A core of an application has a memory of
//! so many packets; what is granted of it and what waits in it are bounded together, so nothing
//! that was granted finds no room. `overcommit` grants more than there is.
//!
//! A flow asks for itself alone, where its application's host is the one that it goes to. A packet
//! without payload needs no credits.
//!
//! Invariant: a packet that comes uses one credit of its flow, when the queue takes it.

use super::overlay::{Leaving, Overlay};
use super::queue::Queue;
use super::{CreditsParams, Port, VirtualSwitchConfig};
use crate::flow_queues::{Outcome, Verdict};
use crate::overlay::credits::{Granter, Spender, Terms};
use crate::overlay::{Change, Record, Target, Word};
use crate::packet::overlay::{WORDS, Whom};
use crate::packet::{HostId, Packet, PacketId};
use crate::switch::site::Auto;
use crate::units::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(super) struct Credits {
    me: HostId,
    granters: Vec<Granter>,
    spender: Spender,
    /// Ports where something may be to be granted.
    touched: BTreeSet<u16>,
    seq: u64,
    pending: BTreeMap<HostId, VecDeque<Record>>,
}

impl Credits {
    pub(super) fn new(config: &VirtualSwitchConfig, p: &CreditsParams) -> Credits {
        let packet = u64::from(config.packet_max.max(1));
        let memory = (p.memory.get() / packet).max(2);
        let window = match p.window {
            // A whole grant must have room while the link's worth of another one is under way.
            Auto::Auto => {
                config.rate.bytes_in(p.feedback(Time::ZERO)) + u64::from(p.grant) * packet
            }
            Auto::Given(bytes) => bytes.get(),
        };
        let terms = Terms {
            memory: (memory as f64 * p.overcommit) as u64,
            window: (window / packet).max(1),
            grant: u64::from(p.grant),
            ttl: p.ttl(Time::ZERO),
            feedback: p.feedback(Time::ZERO),
            repeat: p.repeat,
        };
        let ports: u32 =
            config.applications.iter().map(|application| application.costs.cores).sum();
        Credits {
            me: config.host,
            granters: (0..ports).map(|_| Granter::new(terms)).collect(),
            spender: Spender::new(p.repeat),
            touched: BTreeSet::new(),
            seq: 0,
            pending: BTreeMap::new(),
        }
    }

    /// Grants what there is room for.
    fn grant(&mut self, now: Time, ports: &[Port]) {
        while let Some(port) = self.touched.pop_first() {
            let waiting = ports[usize::from(port)].queue.len() as u64;
            let granter = &mut self.granters[usize::from(port)];
            while let Some((to, record)) = granter.next(now, waiting, self.seq + 1) {
                self.seq += 1;
                self.pending.entry(to).or_default().push_back(record);
            }
        }
    }
}

impl Overlay for Credits {
    fn on_record(&mut self, now: Time, from: HostId, record: &Record) {
        match (record.word, record.target) {
            (Word::Ask, Target::Flow(key)) => {
                let Whom::Flow { application, .. } = Whom::of(&record.target) else { return };
                let Some(granter) = self.granters.get_mut(usize::from(application)) else { return };
                granter.asked(now, from, key, u64::from(record.queued), record.seq);
                self.touched.insert(application);
            }
            _ => self.spender.on_record(now, from, record),
        }
    }

    fn expire(&mut self, now: Time, _: &mut [Port]) {
        self.spender.expire(now);
        for (port, granter) in self.granters.iter_mut().enumerate() {
            if granter.deadline().is_some_and(|at| at <= now) {
                granter.expire(now);
                self.touched.insert(port as u16);
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.granters.iter().filter_map(Granter::deadline).chain(self.spender.deadline()).min()
    }

    fn age(&mut self, now: Time) {
        self.spender.age(now);
    }

    fn arrived(
        &mut self,
        now: Time,
        port: u16,
        packet: &Packet,
        _: &Queue,
        verdict: Option<&Verdict<PacketId>>,
    ) {
        if verdict.is_none_or(|verdict| verdict.outcome == Outcome::Hold) {
            return;
        }
        let granter = &mut self.granters[usize::from(port)];
        granter.expire(now);
        granter.arrived(packet.src, Whom::key(packet.flow, port, packet.src, self.me));
    }

    fn take_signals(&mut self, _: Time, port: u16, queue: &mut Queue) {
        queue.ignore_signals();
        self.touched.insert(port);
    }

    fn next(&mut self, now: Time, ports: &mut [Port]) -> Option<(HostId, Vec<Record>)> {
        self.grant(now, ports);
        while let Some((to, ask)) = self.spender.next_ask() {
            self.pending.entry(to).or_default().push_back(ask);
        }
        let mut first = self.pending.first_entry()?;
        let records = first.get_mut();
        let count = records.len().min(WORDS);
        let batch = (*first.key(), first.get_mut().drain(..count).collect());
        if first.get().is_empty() {
            first.remove();
        }
        Some(batch)
    }

    fn admit(&mut self, now: Time, flow: &Leaving, wants: u32) -> u32 {
        self.spender.admit(now, flow.to, flow.key, wants)
    }

    fn handed_down(&mut self, _: Time, flow: &Leaving, packets: u32) {
        self.spender.spent(flow.to, flow.key, packets);
    }

    fn is_held(&self, flow: &Leaving) -> bool {
        self.spender.is_held(flow.to, &flow.key)
    }

    fn next_change(&mut self, _: Time) -> Option<Change> {
        self.spender.next_change()
    }

    fn late(&self) -> u64 {
        self.granters.iter().map(Granter::late).sum()
    }
}
