//! Receiver-driven rates between hosts' switches, as PicNIC has them ([`crate::overlay::rates`]
//! decides).
//!
//! Each core of an application has a queue of its own before its ring, so nobody waits behind
//! another's packets; what does not fit is dropped. How long packets wait there decides which rate
//! the hosts are notified that send to it.
//!
//! A host's flows to the same core of an application share the rate that it was given.
//!
//! Invariant: what was placed leaves once, in the order in which it came.

use super::overlay::{Leaving, Overlay};
use super::queue::Queue;
use super::{PicnicParams, Port, VirtualSwitchConfig};
use crate::flow_queues::Verdict;
use crate::overlay::rates::{Advertiser, Shaper, Terms};
use crate::overlay::{Change, Record};
use crate::packet::overlay::{WORDS, Whom};
use crate::packet::{HostId, Packet, PacketId};
use crate::units::Time;
use std::collections::BTreeSet;

pub(super) struct Picnic {
    me: HostId,
    packet_max: u64,
    advertisers: Vec<Advertiser>,
    shaper: Shaper,
    seq: u64,
    /// The hosts to be notified, and the port whose rate they get.
    pending: BTreeSet<(HostId, u16)>,
}

impl Picnic {
    pub(super) fn new(config: &VirtualSwitchConfig, p: &PicnicParams) -> Picnic {
        let growth = (p.increase * 1000.0) as u64;
        let terms = Terms { period: p.period, target: p.target, growth, line: config.rate };
        let ports: u32 =
            config.applications.iter().map(|application| application.costs.cores).sum();
        Picnic {
            me: config.host,
            packet_max: u64::from(config.packet_max),
            advertisers: (0..ports).map(|_| Advertiser::new(terms)).collect(),
            shaper: Shaper::new(),
            seq: 0,
            pending: BTreeSet::new(),
        }
    }
}

impl Overlay for Picnic {
    fn on_record(&mut self, now: Time, from: HostId, record: &Record) {
        self.shaper.on_record(now, from, record);
    }

    /// Looks at the queues whose period is over.
    fn expire(&mut self, now: Time, ports: &mut [Port]) {
        for (number, (advertiser, port)) in self.advertisers.iter_mut().zip(ports).enumerate() {
            let Queue::Measured(queue) = &mut port.queue else { continue };
            if advertiser.deadline().is_none_or(|at| at > now) {
                continue;
            }
            advertiser.left(std::mem::take(&mut queue.left), std::mem::take(&mut queue.longest));
            let oldest =
                queue.waiting.front().map_or(Time::ZERO, |(_, came, _)| now.saturating_sub(*came));
            if advertiser.look(now, oldest) {
                self.pending.extend(advertiser.senders().map(|sender| (sender, number as u16)));
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.advertisers.iter().filter_map(Advertiser::deadline).chain(self.shaper.deadline()).min()
    }

    fn age(&mut self, now: Time) {
        self.shaper.age(now);
    }

    fn arrived(
        &mut self,
        now: Time,
        port: u16,
        packet: &Packet,
        _: &Queue,
        _: Option<&Verdict<PacketId>>,
    ) {
        if self.advertisers[usize::from(port)].arrived(now, packet.src) {
            self.pending.insert((packet.src, port));
        }
    }

    fn take_signals(&mut self, _: Time, _: u16, _: &mut Queue) {}

    fn next(&mut self, _: Time, _: &mut [Port]) -> Option<(HostId, Vec<Record>)> {
        let (to, _) = *self.pending.first()?;
        let mut records = Vec::new();
        while records.len() < WORDS
            && let Some(&(host, port)) = self.pending.first()
            && host == to
        {
            self.pending.pop_first();
            self.seq += 1;
            let target = Whom::Application(port).target(to, self.me);
            records.push(self.advertisers[usize::from(port)].record(target, self.seq));
        }
        Some((to, records))
    }

    fn admit(&mut self, now: Time, flow: &Leaving, wants: u32) -> u32 {
        self.shaper.admit(now, flow.to, &flow.key, wants)
    }

    fn handed_down(&mut self, now: Time, flow: &Leaving, packets: u32) {
        self.shaper.sent(now, flow.to, &flow.key, u64::from(packets) * self.packet_max);
    }

    fn is_held(&self, flow: &Leaving) -> bool {
        self.shaper.is_held(flow.to, &flow.key)
    }

    fn next_change(&mut self, now: Time) -> Option<Change> {
        self.shaper.next_change(now)
    }
}
