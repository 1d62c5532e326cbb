//! Hosts of the plan that are modelled (`host.linux`), on the kernels' network: the simulator's own
//! hosts, whose packets pass the same switches and links as the kernels' frames.
//!
//! Both share the calendar's windows: what either sends in one reaches a switch after it.
//!
//! Invariant: a result depends on virtual time alone; records are handed over at times of the
//! plan's.

use crate::watch::Watch;
use millpond_core::Time;
use millpond_lab::Counted;
use millpond_lab::load::Counts;
use millpond_lab::state::State;
use millpond_linux::fabric::{Modelled as Arrived, Paused};
use millpond_results::{CollectiveRecord, ConnectionRecord, FlowRecord, QueryRecord, RankRecord};
use millpond_scenario::plan::Plan;
use millpond_sim::beside::{Beside, Model};
use millpond_sim::shared::Shared;
use millpond_sim::{Observer, Standing};
use std::convert::Infallible;

/// Records that nobody has taken, in their order.
#[derive(Default)]
pub struct Collected {
    flows: Vec<FlowRecord>,
    queries: Vec<QueryRecord>,
    rtts: Vec<Time>,
    connections: Vec<ConnectionRecord>,
    ranks: Vec<RankRecord>,
    collectives: Vec<CollectiveRecord>,
}

impl Observer for Collected {
    type Error = Infallible;
    fn flow(&mut self, record: &FlowRecord) -> Result<(), Infallible> {
        self.flows.push(*record);
        Ok(())
    }
    fn query(&mut self, record: &QueryRecord) -> Result<(), Infallible> {
        self.queries.push(*record);
        Ok(())
    }
    fn rtt(&mut self, rtt: Time) -> Result<(), Infallible> {
        self.rtts.push(rtt);
        Ok(())
    }
    fn connection(&mut self, record: &ConnectionRecord) -> Result<(), Infallible> {
        self.connections.push(record.clone());
        Ok(())
    }
    fn rank(&mut self, record: &RankRecord) -> Result<(), Infallible> {
        self.ranks.push(record.clone());
        Ok(())
    }
    fn collective(&mut self, record: &CollectiveRecord) -> Result<(), Infallible> {
        self.collectives.push(*record);
        Ok(())
    }
    fn edge(&mut self, _: &Standing) -> Result<bool, Infallible> {
        Ok(true)
    }
}

impl Collected {
    /// Hands all over; whether the run goes on.
    pub fn pass(&mut self, watch: &mut dyn Watch) -> bool {
        let mut goes_on = true;
        self.flows.drain(..).for_each(|record| goes_on &= watch.flow(record));
        self.queries.drain(..).for_each(|record| goes_on &= watch.query(record));
        self.rtts.drain(..).for_each(|rtt| goes_on &= watch.rtt(rtt));
        self.connections.drain(..).for_each(|record| goes_on &= watch.connection(record));
        self.ranks.drain(..).for_each(|record| goes_on &= watch.rank(&record));
        self.collectives.drain(..).for_each(|record| goes_on &= watch.collective(&record));
        goes_on
    }
}

pub struct Modelled<'a> {
    beside: Beside<'a, Collected>,
    /// By switch: the line of its first port.
    first: Vec<u32>,
    /// They stand still from here on.
    horizon: Time,
    /// Packets that they have sent into the network.
    sent: u64,
}

impl<'a> Modelled<'a> {
    /// Those of a plan. `model`, whose `shared` this is, is theirs.
    pub fn new(
        plan: &Plan,
        model: Model,
        shared: &'a Shared,
        collected: &'a mut Collected,
    ) -> Modelled<'a> {
        let first = millpond_lab::network::first_lines(&plan.topology);
        let beside = model.begin(shared, collected);
        Modelled { beside, first, horizon: plan.horizon, sent: 0 }
    }

    pub fn next(&mut self) -> Option<Time> {
        self.beside.next_time().filter(|at| *at < self.horizon)
    }

    /// A pause frame has come for one of these hosts.
    pub fn pauses(&mut self, paused: Paused) {
        self.beside.pause(paused.at, paused.host, paused.frame);
    }

    /// Serves a window, up to whose end the network has been advanced.
    pub fn run(&mut self, end: Time, state: &mut State) {
        let Modelled { beside, first, sent, .. } = self;
        while let Some(Arrived { at, host, packet, records }) = state.fabric.leave_modelled() {
            beside.arrive(at, host, packet, records);
        }
        if self.horizon == Time::ZERO {
            return;
        }
        beside.run_until(end.min(self.horizon), |it, records| {
            *sent += 1;
            let (switch, port) = it.to;
            let line = first[switch as usize] + u32::from(port);
            state.fabric.enter_modelled(it.at, line, it.packet, records);
        });
        if end >= self.horizon {
            self.horizon = Time::ZERO;
        }
    }

    pub fn stop(&mut self) {
        self.horizon = Time::ZERO;
    }

    /// Whether every flow of theirs is over.
    pub fn is_complete(&mut self) -> bool {
        self.beside.is_complete()
    }

    /// Packets put on links by them, flows that have started and that are over.
    pub fn standing(&mut self) -> (u64, u64, u64) {
        let Standing { started, completed, .. } = self.beside.standing();
        (self.sent, started, completed)
    }

    /// Hands over the records of what is over; whether the run goes on.
    pub fn hand_over(&mut self, watch: &mut dyn Watch) -> bool {
        let Ok(()) = self.beside.hand_over();
        self.beside.observer().pass(watch)
    }
}

/// The modelled hosts' run is over at `end`: their records to the sink, and their counts beside the
/// kernels'.
pub fn conclude(modelled: Modelled<'_>, end: Time, counts: &mut Counts, counted: &mut Counted) {
    let Modelled { beside, sent, .. } = modelled;
    let Ok(own) = beside.conclude(end);
    let (audit, hosts) = (own.audit, own.hosts);
    counts.started += hosts.started;
    counts.completed += hosts.completed;
    counts.bytes_measured += hosts.measured_bytes;
    counts.retransmitted += hosts.retransmitted;
    counts.timeouts += hosts.timeouts;
    counts.out_of_order += hosts.out_of_order;
    counts.pairs.extend(own.pairs);
    counts.sampled.extend(own.sampled);
    let longer = own.delivered.len().max(counts.goodput.len());
    counts.goodput.resize_with(longer, Vec::new);
    for (sum, sample) in counts.goodput.iter_mut().zip(own.delivered) {
        sum.resize(sum.len().max(sample.len()), 0);
        sum.iter_mut().zip(sample).for_each(|(sum, bytes)| *sum += bytes);
    }
    counted.entered += audit.injected.packets;
    counted.delivered += audit.delivered.packets;
    counted.held += audit.in_flight.packets + audit.lost;
    counted.hops += sent;
    counted.marked += own.marked;
    counted.retransmitted = counts.retransmitted;
    counted.timeouts = counts.timeouts;
    for ((_, count), tally) in counted.dropped.iter_mut().zip(&audit.dropped) {
        *count += tally.packets;
    }
    let bytes = [audit.injected, audit.delivered, audit.dropped_total(), audit.in_flight];
    counted.bytes.iter_mut().zip(bytes).for_each(|(sum, own)| *sum += own.bytes);
    counted.mechanisms.merge(own.counters);
}
