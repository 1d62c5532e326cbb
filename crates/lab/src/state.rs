//! A plan's network as it moves: fabric, hosts, what changes them, and who looks on.
//!
//! The lab's thread drives it by the clock, and the world of kernels by virtual time.
//!
//! Invariant: each packet that hosts have sent is delivered, dropped for a counted reason, or held
//! here.

use crate::changes::Changes;
use crate::host::Host;
use crate::lateness::Quantiles;
use crate::network;
use crate::record::Recorders;
use millpond_core::Time;
use millpond_core::counters::{Counters, DropReason};
use millpond_linux::dataplane::buffers::Buffers;
use millpond_linux::dataplane::counters::Drop;
use millpond_linux::dataplane::slot::Slot;
use millpond_linux::fabric::{Fabric, Far, Left};
use millpond_scenario::plan::Plan;
use millpond_sim::labels::LabelPlan;

/// Frame buffers: 64 KB each, so 1 GB at most.
const BUFFERS: usize = 16_384;

/// Counts of the network since the lab came up.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Packets that hosts have put on their links.
    pub entered: u64,
    /// Packets that have reached their hosts.
    pub delivered: u64,
    /// Packets that switches and hosts' virtual switches dropped, by reason.
    pub dropped: Vec<(DropReason, u64)>,
    /// Packets still in the fabric, or in a virtual switch that has received them.
    pub held: u64,
    /// The bytes of each of these four, of frames.
    pub bytes: [u64; 4],
    /// Frames that a host's kernel did not take, or whose headers are wrong.
    pub refused: u64,
    /// Packets that hosts' interfaces have dropped.
    pub lost: u64,
    /// Packets that captures have missed because their reader was too slow.
    pub missed: u64,
    /// Expiries of retransmission timers, of all sockets of hosts.
    pub timeouts: u64,
    /// Segments sent again, of all sockets of hosts.
    pub retransmitted: u64,
    /// Packets put on links by switches and hosts.
    pub hops: u64,
    pub mechanisms: Counters,
    /// Packets marked.
    pub marked: u64,
    /// Packets deflected.
    pub deflected: u64,
    pub late: Quantiles,
    /// From one look at the hosts' ports to the next, while there was traffic.
    pub round: Quantiles,
}

pub struct State {
    pub fabric: Fabric,
    pub hosts: Vec<Host>,
    pub changes: Changes,
    pub buffers: Buffers,
    pub recorders: Recorders,
    /// Packets that have left the fabric, and their bytes.
    delivered: [u64; 2],
}

impl State {
    /// Of a plan whose hosts have these ports.
    pub fn new(plan: &Plan, slots: Vec<Slot>) -> State {
        let labels = LabelPlan::new(plan);
        let hosts = slots.into_iter().zip(network::uplinks(plan)).zip(0..);
        let hosts = hosts
            .map(|((slot, uplink), host)| Host::new(plan, labels.as_ref(), host, uplink, slot))
            .collect();
        State {
            fabric: network::fabric(plan),
            hosts,
            changes: Changes::new(plan, labels),
            buffers: Buffers::new(BUFFERS),
            recorders: Recorders::default(),
            delivered: [0; 2],
        }
    }

    /// Brings the fabric to `now`, with failures and samples of queues at their times.
    pub fn advance(&mut self, now: Time) {
        let State { fabric, hosts, changes, recorders, buffers, .. } = self;
        loop {
            let change = changes.next().filter(|at| *at <= now);
            let next = change.unwrap_or(now);
            recorders.sample(next, fabric, hosts, buffers);
            fabric.advance(next, buffers);
            match change {
                Some(_) => changes.make(fabric, hosts),
                None => return,
            }
        }
    }

    /// When the fabric has something to do, or something changes.
    pub fn deadline(&self) -> Option<Time> {
        self.fabric.deadline().into_iter().chain(self.changes.next()).min()
    }

    /// The next packet that has reached its host, in the order of time.
    pub fn leave(&mut self) -> Option<Left> {
        let left = self.fabric.leave()?;
        self.delivered[0] += 1;
        self.delivered[1] += left.held.bytes.length() as u64;
        Some(left)
    }

    /// Hands over what was recorded before `now`, up to which the fabric has been advanced.
    pub fn hand_over(&mut self, now: Time) {
        self.recorders.hand_over(now, &mut self.fabric, &mut self.hosts);
    }

    /// Packets put on links by switches and hosts.
    pub fn hops(&self) -> u64 {
        self.fabric.hops() + self.hosts.iter().map(Host::entered).sum::<u64>()
    }

    fn mechanisms(&self) -> Counters {
        let mut all = Counters::default();
        for host in &self.hosts {
            host.count(&mut all);
        }
        all
    }

    /// The counts, but for those of its driver.
    pub fn counted(&self) -> Counted {
        let lines = self.fabric.lines();
        let of_hosts =
            |reason: DropReason| self.hosts.iter().map(|host| host.dropped(reason)).sum::<u64>();
        let sum = |reason: DropReason| {
            let of_lines = lines.iter().map(|line| line.slot.counters.discarded(reason));
            of_lines.sum::<u64>() + of_hosts(reason)
        };
        // To the fabric these had left.
        let (kept, kept_bytes) = self
            .hosts
            .iter()
            .map(Host::kept)
            .fold((0, 0), |(packets, bytes), kept| (packets + kept.0, bytes + kept.1));
        let lost: u64 = DropReason::ALL.iter().map(|reason| of_hosts(*reason)).sum();
        let lost_bytes: u64 = self.hosts.iter().map(Host::dropped_bytes).sum();
        let refused = |slot: &millpond_linux::dataplane::slot::Slot| {
            // Frames for groups, such as a program's announcements, have no way here.
            let refused = Drop::ALL.iter().filter(|reason| **reason != Drop::Nowhere);
            refused.map(|reason| slot.counters.dropped(*reason)).sum::<u64>()
        };
        let entered: u64 = self.hosts.iter().map(Host::entered).sum();
        let (held_bytes, dropped_bytes) = self.fabric.bytes();
        let dropped_bytes = dropped_bytes + self.fabric.trimmed_bytes();
        let of_hosts = lines.iter().filter(|line| matches!(line.far, Far::Host(..)));
        let bytes: u64 = of_hosts.map(|line| line.slot.counters.received_bytes).sum();
        Counted {
            entered,
            delivered: self.delivered[0] - kept - lost,
            dropped: DropReason::ALL.iter().map(|reason| (*reason, sum(*reason))).collect(),
            held: self.fabric.held() as u64 + kept,
            bytes: [
                bytes,
                self.delivered[1] - kept_bytes - lost_bytes,
                dropped_bytes + lost_bytes,
                held_bytes + kept_bytes,
            ],
            refused: self.hosts.iter().map(|host| refused(&host.slot)).sum(),
            missed: self.recorders.missed(),
            hops: self.hops(),
            mechanisms: self.mechanisms(),
            marked: self.fabric.switches().map(|node| node.marked()).sum(),
            deflected: self.fabric.switches().map(|node| node.deflected).sum(),
            // The driver's own, and the hosts'.
            ..Counted::default()
        }
    }
}
