//! Modelled hosts beside others that another world has, on a network that is that world's.
//!
//! The hosts of this world are a partition of their own, without switches. They exchange packets
//! with the network as partitions do: what is sent within a window arrives after it. Whoever has
//! the network chooses the windows, none longer than a packet needs from any host to its switch.
//!
//! Invariant: both ends of a connection are here, and each packet that a host has sent is in flight
//! here, has been handed to the network, or is counted.

use crate::build::build_as;
use crate::fabric::{Inbound, Receiver};
use crate::layout::Layout;
use crate::mail::{Crossing, Mail};
use crate::partition::Partition;
use crate::run::director::Director;
use crate::run::{Observer, Outcome, Standing};
use crate::shared::Shared;
use millpond_core::packet::Record;
use millpond_core::switch::pause::PauseFrame;
use millpond_core::{HostId, Packet, Time};
use millpond_scenario::plan::Plan;
use std::sync::Arc;

/// A packet on its way from a modelled host to a switch.
pub struct Sent {
    /// When its last bit arrives.
    pub at: Time,
    /// Where: a switch and its port.
    pub to: (u32, u16),
    /// Itself. It has the number of its own records.
    pub packet: Packet,
}

/// The modelled hosts of a plan.
pub struct Model {
    shared: Arc<Shared>,
    partition: Partition,
    /// By link that ends in the network: a switch and its port.
    ends: Vec<(u32, u16)>,
    /// By host of the plan: the link that ends there, if it is modelled.
    links: Vec<u32>,
}

impl Model {
    /// The hosts of a plan that are no Linux kernels, in windows of at most this length.
    pub fn new(plan: &Plan, window: Time) -> Model {
        let own = plan.part(false);
        let layout = Layout::of_hosts(&plan.topology, |host| !plan.host.is_linux(host), window);
        let (shared, partitions) = build_as(&own, layout);
        let [partition, network]: [Partition; 2] =
            partitions.try_into().unwrap_or_else(|_| unreachable!("the layout has two"));
        let plain = |to: Receiver, failing: &[Receiver]| match to {
            Receiver::Failing(at) => failing[at as usize],
            plain => plain,
        };
        let end = |it: &Inbound| match plain(it.to, &network.fabric.failing) {
            Receiver::Switch(switch, port) => (network.switches[switch as usize].index, port),
            // The network's own hosts: their packets come from its switches.
            Receiver::Host(_) | Receiver::Failing(_) => (u32::MAX, 0),
        };
        let ends = network.fabric.inbound.iter().map(end).collect();
        let mut links = vec![u32::MAX; plan.topology.hosts as usize];
        for (link, inbound) in (0..).zip(&partition.fabric.inbound) {
            if let Receiver::Host(host) = plain(inbound.to, &partition.fabric.failing) {
                links[partition.hosts.hosts[host as usize].id as usize] = link;
            }
        }
        Model { shared, partition, ends, links }
    }

    /// The state that its run shares.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Begins its run. `shared` is its own.
    pub fn begin<'a, O: Observer>(self, shared: &'a Shared, observer: &'a mut O) -> Beside<'a, O> {
        let Model { partition, ends, links, .. } = self;
        let director = Director::new(shared, observer, 1, Time::MAX);
        let mail = [Mail::default(), Mail::default()];
        Beside { director, partition, ends, links, mail }
    }
}

pub struct Beside<'a, O: Observer> {
    director: Director<'a, O>,
    partition: Partition,
    ends: Vec<(u32, u16)>,
    links: Vec<u32>,
    /// For the next window: what its hosts have left for each other, and what the network brings.
    mail: [Mail; 2],
}

impl<O: Observer> Beside<'_, O> {
    /// When something is due here; `None`: nothing before the network brings something.
    pub fn next_time(&mut self) -> Option<Time> {
        let left = (!self.mail[0].is_empty()).then_some(self.director.edge);
        let due = self.partition.next_time().into_iter().chain(self.director.arrivals.next_time());
        due.chain(left).chain(self.director.next_connection(&[&mut self.partition])).min()
    }

    /// The network brings a host a packet, whose last bit arrives at `at`, in the next window. Its
    /// records are the first of `records`.
    pub fn arrive(
        &mut self,
        at: Time,
        host: HostId,
        packet: Packet,
        records: impl IntoIterator<Item = Record>,
    ) {
        let mail = &mut self.mail[1];
        mail.packets.push(Crossing { arrives: at, inbound: self.links[host as usize], packet });
        mail.records.extend(records);
    }

    /// The network brings a host a pause frame, in the next window.
    pub fn pause(&mut self, at: Time, host: HostId, frame: PauseFrame) {
        self.mail[1].pauses.push((at, self.links[host as usize], frame));
    }

    /// Serves all before `end`, which is a window's, and hands `each` the packets for the network,
    /// those of a link in their order. An iterator yields all their records.
    pub fn run_until(
        &mut self,
        end: Time,
        mut each: impl FnMut(Sent, &mut dyn Iterator<Item = Record>),
    ) {
        let Beside { director, partition, mail, ends, .. } = self;
        director.lay_out(&mut [partition], end, end);
        partition.take_in(mail);
        partition.run_until(end);
        director.edge = end;
        let [own, network] = &mut partition.fabric.outbox[..] else {
            unreachable!("the layout has two")
        };
        std::mem::swap(own, &mut mail[0]);
        let mut records = network.records.drain(..);
        network.packets.take(|Crossing { arrives, inbound, packet }| {
            let to = ends[inbound as usize];
            each(Sent { at: arrives, to, packet }, &mut records);
        });
    }

    pub fn is_complete(&mut self) -> bool {
        let Beside { director, partition, mail, .. } = self;
        mail[0].is_empty() && director.is_complete(&[partition])
    }

    pub fn standing(&mut self) -> Standing {
        self.director.standing(&[&mut self.partition])
    }

    /// Hands over the records of what is over.
    ///
    /// # Errors
    /// The observer's.
    pub fn hand_over(&mut self) -> Result<(), O::Error> {
        self.director.hand_over(&mut [&mut self.partition])
    }

    pub fn observer(&mut self) -> &mut O {
        self.director.observer
    }

    /// The run is over at `end`: hands over the records of what is not, and sums up.
    ///
    /// # Errors
    /// The observer's.
    pub fn conclude(self, end: Time) -> Result<Outcome, O::Error> {
        let Beside { mut director, mut partition, mut mail, .. } = self;
        // A note may open a connection whose other side is to be notified.
        while mail.iter().any(|mail| !mail.is_empty()) {
            partition.take_in(&mut mail);
            std::mem::swap(&mut partition.fabric.outbox[0], &mut mail[0]);
        }
        director.edge = end;
        director.conclude(vec![partition])
    }
}
