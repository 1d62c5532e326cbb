//! A run: windows of virtual time, each served by all partitions, with a serial part at every edge.
//!
//! ```text
//! loop { every partition: take in mail, serve events before the edge  ──barrier──  edge: exchange mail, lay out
//!        arrivals, hand over records, choose the next window }
//! ```
//!
//! Where a window holds little work, one thread runs windows alone while the others sleep: handing over would cost more
//! than it saves, most of all on a machine that is busy elsewhere.
//!
//! A window that could take long is served in parts. Between two parts nothing changes hands and no
//! record leaves: the observer is asked whether to go on, and that is all. So a part's length
//! changes no result.
//!
//! Windows lie on a fixed grid (the layout's window length) and empty ones are skipped. Threads claim partitions, their
//! own first and then whatever another has not begun, so a thread that the kernel puts aside holds up one partition and
//! not all of its share.
//!
//! Invariant: what happens in a window depends on the plan alone; the number of threads decides only who computes it.

use crate::audit::Audit;
use crate::barrier::Barrier;
use crate::build::build;
use crate::hosts::{HostCounters, PollRecord};
use crate::layout;
use crate::mail::Mail;
use crate::partition::Partition;
use crate::samples::ConnectionFilter;
use crate::scheduling::Rounds;
use crate::shared::Shared;
use millpond_core::counters::Counters;
use millpond_core::host::{CoreCounts, LimitCounts, tell_cores};
use millpond_core::{FlowId, HostId, Time};
use millpond_results::{ConnectionRecord, FlowRecord, PacketRecord, PauseRecord, QueryRecord, QueueRecord};
use millpond_scenario::plan::Plan;
use millpond_scenario::traffic::{Arrivals, Event};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far arrivals are laid out beyond the next edge: enough that most edges have nothing to do.
const LAY_OUT_AHEAD: u64 = 16;
/// Windows with fewer events than this, in the mean of the last ones, are run by one thread (about 100 µs of work: some
/// ten times what a barrier costs).
const EVENTS_WORTH_SHARING: u64 = 1_500;
/// In a part of a window hosts can send no more than so many full packets at line rate: some tenths
/// of a second of work.
const PACKETS_A_PART: u128 = 50_000;
/// The observer is asked after at least so many events, and after so many edges.
const EVENTS_A_LOOK: u64 = 1 << 18;
const EDGES_A_LOOK: u64 = 256;
/// Records are handed over when this many wait.
const RECORDS_WAIT: usize = 4096;
/// So many samples and captured packets may wait, some of which are not due yet.
const CAPTURED_WAIT: usize = 1 << 16;

/// Where a run stands at the end of a window or of a part of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    /// Virtual time.
    pub simulated: Time,
    /// Packet-hops.
    pub hops: u64,
    /// Flows started.
    pub started: u64,
    /// Flows over.
    pub completed: u64,
}

/// Who watches a run and receives its records, in an order that is the same for any number of threads.
pub trait Observer: Send {
    /// The first error that receiving a record may end in.
    type Error: Send;
    /// A flow is over (or, at the end, is not). In the order of (time over, flow).
    fn flow(&mut self, record: &FlowRecord) -> Result<(), Self::Error>;
    /// A query is over (or, at the end, is not).
    fn query(&mut self, record: &QueryRecord) -> Result<(), Self::Error>;
    /// A probe was answered. In the order of (time of the answer, flow).
    fn rtt(&mut self, _rtt: Time) -> Result<(), Self::Error> {
        Ok(())
    }
    /// A port's queue was sampled. In the order of (time, node, port).
    fn queue(&mut self, _record: &QueueRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// A connection was sampled. In the order of (time, flow).
    fn connection(&mut self, _record: &ConnectionRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// A packet was captured. In the order of (time, capture), and of two at once the outgoing one first.
    fn packet(&mut self, _record: &PacketRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// A PAUSE frame was captured. In the order of packets, and after packets of the same time.
    fn pause(&mut self, _record: &PauseRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// A receive queue was polled. In the order of (time, host).
    fn poll(&mut self, _record: &PollRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Called several times a second; `false` ends the run there.
    fn edge(&mut self, standing: &Standing) -> Result<bool, Self::Error>;
}

/// How a run ended, and what was counted.
#[derive(Debug)]
pub struct Outcome {
    /// Where virtual time ended.
    pub simulated: Time,
    /// Ended by the observer before its time.
    pub interrupted: bool,
    /// Packets: injected, delivered, dropped, in flight.
    pub audit: Audit,
    /// Flows and transports.
    pub hosts: HostCounters,
    /// Packets marked, by switches and NICs.
    pub marked: u64,
    /// Packets deflected.
    pub deflected: u64,
    /// Frames of switches that stop a priority.
    pub pause_frames: u64,
    /// Application bytes delivered in the measured time, by (source, destination), of the pairs that had some to send.
    pub pairs: BTreeMap<(HostId, HostId), u64>,
    /// Application bytes delivered since the beginning, by class, at each multiple of `[capture] goodput`.
    pub delivered: Vec<Vec<u64>>,
    /// The flows whose connections were sampled.
    pub sampled: BTreeSet<FlowId>,
    /// The most bytes that ever waited at a switch port.
    pub queue_bytes_max: u64,
    /// What each limit has seen, by its index in the plan and whether it was of arriving packets.
    pub limits: BTreeMap<(u16, bool), LimitCounts>,
    /// What the mechanisms have counted that the plan has chosen, by name.
    pub counters: Counters,
    /// What each host's core has done, in the order of hosts; none where receiving costs nothing.
    pub cores: Vec<(HostId, CoreCounts)>,
}

/// Runs a plan with this many threads (at least one).
pub fn run<O: Observer>(plan: &Plan, threads: usize, observer: &mut O) -> Result<Outcome, O::Error> {
    run_in_parts(plan, threads, observer, part(plan))
}

/// The same with windows in parts of this length.
fn run_in_parts<O: Observer>(plan: &Plan, threads: usize, observer: &mut O, part: Time) -> Result<Outcome, O::Error> {
    let (shared, partitions) = build(plan, layout::partitions(threads));
    let count = partitions.len();
    let threads = threads.clamp(1, count);
    let stage = Stage {
        inboxes: (0..count).map(|_| Mutex::new((0..count).map(|_| Mail::default()).collect())).collect(),
        claimed: (0..count).map(|_| AtomicU64::new(0)).collect(),
        partitions: partitions.into_iter().map(Mutex::new).collect(),
        end: AtomicU64::new(0),
        alone: AtomicBool::new(threads == 1),
        over: AtomicBool::new(false),
        failed: AtomicBool::new(false),
    };
    let director = Director {
        arrivals: Ahead::new(plan),
        connections: ConnectionFilter::new(&plan.capture),
        rounds: Rounds::new(plan, shared.layout.window),
        shared: &shared,
        observer,
        threads,
        edges: 0,
        events: 0,
        looked: 0,
        recent: 0,
        edge: Time::ZERO,
        window_end: Time::ZERO,
        part,
        interrupted: false,
        error: None,
    };
    let director = Mutex::new(director);
    stage.at_edge(&director);
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let (stage, director, barrier) = (&stage, &director, &barrier);
            scope.spawn(move || stage.work(thread, threads, director, barrier));
        }
        stage.work(0, threads, &director, &barrier);
    });
    let mut director = director.into_inner().expect("a panic has been passed on");
    match director.error.take() {
        Some(error) => Err(error),
        None => director.conclude(stage),
    }
}

/// What the threads share.
struct Stage {
    partitions: Vec<Mutex<Partition>>,
    /// By receiving partition: mail by sending partition.
    inboxes: Vec<Mutex<Vec<Mail>>>,
    /// By partition: the last window (counted from one) that a thread has claimed.
    claimed: Vec<AtomicU64>,
    /// The present window's end, in picoseconds.
    end: AtomicU64,
    /// The next window is not worth sharing.
    alone: AtomicBool,
    /// There is no next window.
    over: AtomicBool,
    /// A thread has panicked.
    failed: AtomicBool,
}

impl Stage {
    /// One thread's part of the run.
    fn work<O: Observer>(&self, thread: usize, threads: usize, director: &Mutex<Director<'_, O>>, barrier: &Barrier) {
        let count = self.partitions.len();
        // A contiguous share each; then the others' shares, from their ends.
        let own = |t: usize| t * count / threads..(t + 1) * count / threads;
        let others = (1..threads).flat_map(|step| own((thread + step) % threads).rev());
        let order: Vec<usize> = own(thread).chain(others).collect();
        let mut window = 0;
        let mut panic = None;
        while !self.over.load(Ordering::Acquire) {
            window += 1;
            let end = Time::from_ps(self.end.load(Ordering::Acquire));
            let served = catch_unwind(AssertUnwindSafe(|| {
                for &p in &order {
                    let claim =
                        self.claimed[p].compare_exchange(window - 1, window, Ordering::AcqRel, Ordering::Relaxed);
                    if claim.is_ok() {
                        self.serve(p, end);
                    }
                }
            }));
            if let Err(cause) = served {
                self.failed.store(true, Ordering::Release);
                panic = Some(cause);
            }
            let edge = || {
                self.at_edge(director);
                while self.alone.load(Ordering::Relaxed) && !self.over.load(Ordering::Relaxed) {
                    let end = Time::from_ps(self.end.load(Ordering::Relaxed));
                    (0..count).for_each(|p| self.serve(p, end));
                    self.at_edge(director);
                }
            };
            barrier.wait(|| match catch_unwind(AssertUnwindSafe(edge)) {
                Ok(()) => {}
                Err(cause) => {
                    self.over.store(true, Ordering::Release);
                    panic = Some(cause);
                }
            });
        }
        if let Some(cause) = panic {
            resume_unwind(cause);
        }
    }

    /// One partition's part of a window.
    fn serve(&self, p: usize, end: Time) {
        let mut partition = lock(&self.partitions[p]);
        partition.take_in(&mut lock(&self.inboxes[p]));
        partition.run_until(end);
    }

    /// The serial part: everything that looks at more than one partition.
    fn at_edge<O: Observer>(&self, director: &Mutex<Director<'_, O>>) {
        if self.failed.load(Ordering::Acquire) {
            self.over.store(true, Ordering::Release);
            return;
        }
        let mut partitions: Vec<_> = self.partitions.iter().map(lock).collect();
        let mut director = lock(director);
        let mail = !director.is_amid_window() && self.exchange(&mut partitions);
        let mut partitions: Vec<&mut Partition> = partitions.iter_mut().map(|p| &mut **p).collect();
        let next = match director.is_amid_window() {
            true => director.next_part(&partitions),
            false => director.next_window(&mut partitions, mail),
        };
        match next {
            Some(end) => self.end.store(end.as_ps(), Ordering::Release),
            None => self.over.store(true, Ordering::Release),
        }
        self.alone.store(director.is_quiet(&partitions), Ordering::Release);
    }

    /// After the last window: has all mail read, and what is answered to it, since a note may open a connection whose other
    /// side is to be told.
    fn deliver_last_mail(&self) {
        let mut partitions: Vec<_> = self.partitions.iter().map(lock).collect();
        loop {
            for (partition, inbox) in partitions.iter_mut().zip(&self.inboxes) {
                partition.take_in(&mut lock(inbox));
            }
            if !self.exchange(&mut partitions) {
                return;
            }
        }
    }

    /// Moves what partitions left for each other into their inboxes. Says whether there was anything.
    fn exchange(&self, partitions: &mut [std::sync::MutexGuard<'_, Partition>]) -> bool {
        let mut any = false;
        for (from, partition) in partitions.iter_mut().enumerate() {
            for (to, outbox) in partition.fabric.outbox.iter_mut().enumerate() {
                if !outbox.is_empty() {
                    any = true;
                    std::mem::swap(outbox, &mut lock(&self.inboxes[to])[from]);
                }
            }
        }
        any
    }
}

/// How long a part of a window may be: from the topology alone, so that parts, too, are the same in
/// every run.
fn part(plan: &Plan) -> Time {
    let bps: u128 =
        plan.topology.links[..plan.topology.hosts as usize].iter().map(|link| u128::from(link.rate.bps())).sum();
    let bits = PACKETS_A_PART * u128::from(plan.host.mtu) * 8;
    let ps = bits * 1_000_000_000_000 / bps.max(1);
    Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX).max(1))
}

/// Adds a partition's samples, which are of the same times.
fn add_samples(all: &mut Vec<Vec<u64>>, samples: Vec<Vec<u64>>) {
    all.resize_with(all.len().max(samples.len()), Vec::new);
    for (sum, sample) in all.iter_mut().zip(samples) {
        sum.resize(sample.len(), 0);
        sum.iter_mut().zip(sample).for_each(|(sum, bytes)| *sum += bytes);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The stream of arrivals, with one looked at ahead.
struct Ahead {
    arrivals: Arrivals,
    next: Option<Event>,
}

impl Ahead {
    fn new(plan: &Plan) -> Ahead {
        let mut arrivals = plan.traffic.arrivals();
        let next = arrivals.next();
        Ahead { arrivals, next }
    }
    fn next_time(&self) -> Option<Time> {
        self.next.as_ref().map(|event| match event {
            Event::Flow(flow) => flow.at,
            Event::Query(query) => query.at,
        })
    }
    fn take(&mut self) -> Option<Event> {
        std::mem::replace(&mut self.next, self.arrivals.next())
    }
}

/// Who runs the edges.
struct Director<'a, O: Observer> {
    shared: &'a Shared,
    arrivals: Ahead,
    connections: ConnectionFilter,
    /// Of the central scheduler, if there is one.
    rounds: Option<Rounds>,
    observer: &'a mut O,
    threads: usize,
    /// Events served so far, and the moving mean of a window's, in sixteenths.
    events: u64,
    recent: u64,
    /// Events served when the observer was last asked.
    looked: u64,
    /// Edges seen.
    edges: u64,
    /// Until when all events have been served: the present edge, or the end of a window's part.
    edge: Time,
    /// The present window's end.
    window_end: Time,
    /// How long a part of a window may be.
    part: Time,
    interrupted: bool,
    error: Option<O::Error>,
}

impl<O: Observer> Director<'_, O> {
    /// At an edge: hands over records and chooses the end of the next window, or `None` if the run is over.
    fn next_window(&mut self, partitions: &mut [&mut Partition], mail: bool) -> Option<Time> {
        let plan = &self.shared.plan;
        self.edges += 1;
        let waiting: usize = partitions.iter().map(|p| p.hosts.flow_records.len()).sum();
        let captured: usize = partitions
            .iter()
            .map(|p| p.samplers.waiting() + p.fabric.captured.len() + p.fabric.captured_pauses.len())
            .sum();
        let due = waiting >= RECORDS_WAIT || captured >= CAPTURED_WAIT || self.edges.is_multiple_of(EDGES_A_LOOK);
        let handed = if due { self.hand_over(partitions) } else { Ok(()) };
        if !self.look(partitions, due, handed) {
            return None;
        }
        if plan.until_complete && self.is_complete(partitions) {
            return None;
        }
        let due = partitions.iter().filter_map(|p| p.next_time()).chain(self.arrivals.next_time()).min();
        let due = due.into_iter().chain(self.next_connection(partitions)).min();
        let next = if mail { Some(self.edge) } else { due };
        let Some(next) = next.filter(|next| *next < plan.horizon) else {
            self.edge = plan.horizon;
            return None;
        };
        let window = self.shared.layout.window;
        let start = Time::from_ps(next.as_ps() / window.as_ps() * window.as_ps());
        let end = start + window;
        if let Some(rounds) = &mut self.rounds {
            rounds.hold(start, self.shared, partitions);
        }
        self.lay_out(partitions, end, end + window * LAY_OUT_AHEAD);
        self.window_end = end.min(plan.horizon);
        Some(self.part_from(next))
    }

    /// Whether a window is under way, of which a part has been served.
    fn is_amid_window(&self) -> bool {
        self.edge < self.window_end
    }

    /// Amid a window: chooses the end of its next part, or `None` if the observer has enough.
    fn next_part(&mut self, partitions: &[&mut Partition]) -> Option<Time> {
        if !self.look(partitions, false, Ok(())) {
            self.window_end = self.edge;
            return None;
        }
        let due = partitions.iter().filter_map(|p| p.next_time()).min();
        Some(self.part_from(due.unwrap_or(self.window_end)))
    }

    /// The end of the part that begins at `from`.
    fn part_from(&mut self, from: Time) -> Time {
        self.edge = self.window_end.min(from.saturating_add(self.part));
        self.edge
    }

    /// Asks the observer whether to go on, if it is `due` or enough has happened. An error ends the
    /// run, too.
    fn look(&mut self, partitions: &[&mut Partition], due: bool, so_far: Result<(), O::Error>) -> bool {
        if !due && self.events - self.looked < EVENTS_A_LOOK {
            return true;
        }
        self.looked = self.events;
        let standing = self.standing(partitions);
        match so_far.and_then(|()| self.observer.edge(&standing)) {
            Ok(goes_on) => {
                self.interrupted = !goes_on;
                goes_on
            }
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }

    /// When a connection is to be sampled next. A run without an end does not go on for that.
    fn next_connection(&self, partitions: &[&mut Partition]) -> Option<Time> {
        let bounded = self.shared.plan.horizon < Time::MAX;
        partitions.iter().filter(|_| bounded).filter_map(|p| p.samplers.next_connection(&p.hosts)).min()
    }

    /// Whether windows hold too little to share. Decides who computes, never what.
    fn is_quiet(&mut self, partitions: &[&mut Partition]) -> bool {
        let events: u64 = partitions.iter().map(|p| p.fabric.audit.events).sum();
        self.recent = self.recent - self.recent / 16 + (events - self.events);
        self.events = events;
        self.threads == 1 || self.recent < EVENTS_WORTH_SHARING * 16
    }

    /// Whether every flow of the plan is over.
    fn is_complete(&self, partitions: &[&mut Partition]) -> bool {
        let active: i64 = partitions.iter().map(|p| p.hosts.counters.active).sum();
        active == 0 && self.arrivals.next.is_none() && partitions.iter().all(|p| p.nothing_to_start(self.edge))
    }

    /// Gives arrivals to their hosts' partitions: all before `end`, and further ones up to `ahead` while at it.
    fn lay_out(&mut self, partitions: &mut [&mut Partition], end: Time, ahead: Time) {
        if self.arrivals.next_time().is_none_or(|next| next >= end) {
            return;
        }
        while self.arrivals.next_time().is_some_and(|next| next < ahead) {
            match self.arrivals.take() {
                Some(Event::Flow(flow)) => {
                    partitions[self.shared.partition_of_host(flow.src) as usize].schedule(flow);
                }
                Some(Event::Query(query)) => {
                    partitions[self.shared.partition_of_host(query.client) as usize].expect(query);
                }
                None => break,
            }
        }
    }

    fn standing(&self, partitions: &[&mut Partition]) -> Standing {
        let mut standing = Standing { simulated: self.edge, ..Standing::default() };
        for p in partitions {
            standing.hops += p.fabric.audit.hops;
            standing.started += p.hosts.counters.started;
            standing.completed += p.hosts.counters.completed;
        }
        standing
    }

    /// Hands over the records of all partitions in an order that does not depend on partitions.
    fn hand_over(&mut self, partitions: &mut [&mut Partition]) -> Result<(), O::Error> {
        let mut flows: Vec<(Time, FlowRecord)> = Vec::new();
        let mut queries: Vec<(Time, QueryRecord)> = Vec::new();
        for p in partitions.iter_mut() {
            flows.append(&mut p.hosts.flow_records);
            queries.append(&mut p.hosts.query_records);
        }
        flows.sort_by_key(|(at, record)| (*at, record.flow, record.start));
        queries.sort_by_key(|(at, record)| (*at, record.query));
        for (_, record) in flows {
            self.observer.flow(&record)?;
        }
        for (_, record) in queries {
            self.observer.query(&record)?;
        }
        self.hand_over_captured(partitions)
    }

    /// The same with what was sampled, captured and probed before this edge. A departure may be known before its time;
    /// it waits until it is due, whatever the kind of port that knew it.
    fn hand_over_captured(&mut self, partitions: &mut [&mut Partition]) -> Result<(), O::Error> {
        let (mut rtts, mut queues, mut polls) = (Vec::new(), Vec::new(), Vec::new());
        let (mut packets, mut pauses, mut connections) = (Vec::new(), Vec::new(), Vec::new());
        for p in partitions.iter_mut() {
            rtts.append(&mut p.hosts.rtts);
            polls.append(&mut p.hosts.poll_records);
            let (mut of_queues, mut of_connections) = p.samplers.take();
            queues.append(&mut of_queues);
            connections.append(&mut of_connections);
            packets.extend(p.fabric.captured.extract_if(.., |record| record.at < self.edge));
            pauses.extend(p.fabric.captured_pauses.extract_if(.., |record| record.at < self.edge));
        }
        rtts.sort_unstable();
        queues.sort_unstable_by_key(|record| (record.at, record.node, record.port));
        // Stable, for a host may look at several packets at one instant, and a port send several frames.
        packets.sort_by_key(|record| (record.at, record.tap, !record.outgoing));
        pauses.sort_by_key(|record| (record.at, record.tap, !record.outgoing, record.frame.target));
        polls.sort_by_key(|record| (record.at, record.host));
        for (_, _, rtt) in rtts {
            self.observer.rtt(rtt)?;
        }
        queues.iter().try_for_each(|record| self.observer.queue(record))?;
        connections.sort_unstable_by_key(|record| (record.at, record.flow));
        for record in connections.iter().filter(|record| self.connections.keeps(record)) {
            self.observer.connection(record)?;
        }
        polls.iter().try_for_each(|record| self.observer.poll(record))?;
        let mut pauses = pauses.iter().peekable();
        for packet in &packets {
            while let Some(pause) = pauses.next_if(|pause| pause.at < packet.at) {
                self.observer.pause(pause)?;
            }
            self.observer.packet(packet)?;
        }
        pauses.try_for_each(|pause| self.observer.pause(pause))
    }

    /// The run is over: delivers the last mail, so that the audit sees every packet, and sums up.
    fn conclude(mut self, stage: Stage) -> Result<Outcome, O::Error> {
        stage.deliver_last_mail();
        let mut partitions: Vec<Partition> =
            stage.partitions.into_iter().map(|p| p.into_inner().expect("a panic has been passed on")).collect();
        let mut outcome = Outcome {
            simulated: self.edge,
            interrupted: self.interrupted,
            audit: Audit::default(),
            hosts: HostCounters::default(),
            marked: 0,
            deflected: 0,
            pause_frames: 0,
            pairs: BTreeMap::new(),
            delivered: Vec::new(),
            sampled: BTreeSet::new(),
            queue_bytes_max: 0,
            limits: BTreeMap::new(),
            counters: Counters::default(),
            cores: Vec::new(),
        };
        for p in &mut partitions {
            p.finish(self.edge);
            add_samples(&mut outcome.delivered, std::mem::take(&mut p.samplers.delivered));
            outcome.audit.merge(&p.audit());
            outcome.hosts.merge(&p.hosts.counters);
            outcome.marked += p.hosts.marked();
            p.hosts.tell_counters(self.edge, &mut outcome.counters);
            p.hosts.count_limits(&mut outcome.limits);
            outcome.cores.extend(p.hosts.cores(self.edge));
            for node in &p.switches {
                outcome.marked += node.switch.marked();
                outcome.deflected += node.switch.deflected;
                outcome.pause_frames += node.switch.pause_counts().frames;
                node.switch.tell_counters(self.edge, &mut outcome.counters);
                let most = node.switch.bytes_max().into_iter().max().unwrap_or(0);
                outcome.queue_bytes_max = outcome.queue_bytes_max.max(most);
            }
            for (pair, bytes) in std::mem::take(&mut p.hosts.pairs) {
                *outcome.pairs.entry(pair).or_insert(0) += bytes;
            }
        }
        outcome.cores.sort_unstable_by_key(|(host, _)| *host);
        if let Some(rounds) = &self.rounds {
            rounds.tell_counters(&self.shared.plan, &mut outcome.counters);
        }
        tell_cores(&outcome.cores, self.edge.saturating_sub(self.shared.plan.warm_up), &mut outcome.counters);
        let mut all: Vec<&mut Partition> = partitions.iter_mut().collect();
        let standing = self.standing(&all);
        self.hand_over(&mut all)?;
        self.observer.edge(&standing)?;
        outcome.sampled = self.connections.kept();
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_scenario::Scenario;
    use std::convert::Infallible;

    const SLOW_LINKS: &str = r#"
        name = "slow-links"
        until = "flows-complete"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 2
        hosts-per-leaf = 4
        host-link = { rate = "10Gbps", delay = "1us" }
        fabric-link = { rate = "10Gbps", delay = "2ms" }
        [[traffic]]
        kind = "permutation"
        size = "20MB"
        [[traffic]]
        name = "web"
        kind = "poisson"
        sizes = "web-search"
        load = 0.4
        stop = "6ms"
    "#;

    /// Records as they come, and how often it was asked.
    #[derive(Default)]
    struct Seen {
        flows: Vec<FlowRecord>,
        looks: u64,
        /// End at this look.
        enough: Option<u64>,
        last: Time,
    }

    impl Observer for Seen {
        type Error = Infallible;
        fn flow(&mut self, record: &FlowRecord) -> Result<(), Infallible> {
            self.flows.push(*record);
            Ok(())
        }
        fn query(&mut self, _record: &QueryRecord) -> Result<(), Infallible> {
            Ok(())
        }
        fn edge(&mut self, standing: &Standing) -> Result<bool, Infallible> {
            assert!(standing.simulated >= self.last, "time goes on");
            self.last = standing.simulated;
            self.looks += 1;
            Ok(self.enough != Some(self.looks))
        }
    }

    fn plan() -> Plan {
        Scenario::parse("slow-links.toml", SLOW_LINKS).unwrap().plan(None, &[], None).unwrap()
    }

    #[test]
    fn parts_of_windows_change_no_result() {
        let plan = plan();
        let run = |threads, part| {
            let mut seen = Seen::default();
            let outcome = run_in_parts(&plan, threads, &mut seen, part).unwrap();
            (seen.flows, outcome.simulated, outcome.audit.events, outcome.audit.hops, outcome.queue_bytes_max)
        };
        let whole = run(1, Time::MAX);
        assert!(whole.0.len() > 10 && whole.0.iter().all(|flow| flow.finish.is_some()));
        for (threads, part) in [(1, Time::from_us(130)), (2, Time::from_us(130)), (1, Time::from_ns(7_001))] {
            assert!(run(threads, part) == whole, "{threads} threads, parts of {part}");
        }
    }

    #[test]
    fn amid_a_long_window_the_observer_is_asked_and_may_end_the_run() {
        let plan = plan();
        let mut seen = Seen::default();
        let whole = run(&plan, 1, &mut seen).unwrap();
        assert!(seen.looks >= whole.audit.events / (2 * EVENTS_A_LOOK), "{} of {}", seen.looks, whole.audit.events);
        let part = Time::from_us(130);
        let mut all = Seen::default();
        run_in_parts(&plan, 2, &mut all, part).unwrap();
        let stopped = (1..all.looks).map(|looks| {
            let mut seen = Seen { enough: Some(looks), ..Seen::default() };
            let outcome = run_in_parts(&plan, 2, &mut seen, part).unwrap();
            assert!(outcome.interrupted && outcome.audit.is_conserved());
            outcome.simulated
        });
        let window = Time::from_ms(2).as_ps();
        let stopped: Vec<Time> = stopped.collect();
        assert!(stopped.iter().any(|at| !at.as_ps().is_multiple_of(window)), "{stopped:?}: some are amid a window");
    }
}
