//! A run: windows of virtual time, each served by all partitions, with a serial part at every edge.
//!
//! ```text
//! loop { every partition: take in mail, serve events before the edge  ──barrier──
//!        edge: exchange mail, lay out arrivals, hand over records, choose the next window }
//! ```
//!
//! Where a window holds little work, one thread runs windows alone while the others sleep: handing
//! over would cost more than it saves, most of all on a machine that is busy elsewhere.
//!
//! A window that could take long is served in parts. Between two parts nothing changes hands and no
//! record leaves: the observer is asked whether to go on, and that is all. So a part's length
//! changes no result.
//!
//! Windows lie on a fixed grid (the layout's window length) and empty ones are skipped. Threads
//! claim partitions, their own first and then whatever another has not begun, so a thread that the
//! kernel puts aside holds up one partition and not all of its share.
//!
//! Invariant: what happens in a window depends on the plan alone; the number of threads decides
//! only who computes it.

pub(crate) mod director;
mod watch;

use crate::audit::Audit;
use crate::barrier::Barrier;
use crate::build::build;
use crate::hosts::{HostCounters, PollRecord};
use crate::jobs::RoundsOfJobs;
use crate::layout;
use crate::mail::Mail;
use crate::partition::Partition;
use crate::samples::{ConnectionFilter, Peak};
use crate::scheduling::Rounds;
use crate::shared::Shared;
use crate::standstill::Standstill;
use director::{Ahead, Director};
use millpond_core::counters::Counters;
use millpond_core::host::{CoreCounts, LimitCounts, report_cores};
use millpond_core::{FlowId, HostId, Time};
use millpond_results::{
    CollectiveRecord, ConnectionRecord, FlowRecord, Node, PacketRecord, PauseRecord, QueryRecord,
    QueueRecord, RankRecord,
};
use millpond_scenario::plan::Plan;
use millpond_scenario::traffic::{Arrivals, Event};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use watch::Watch;

/// In a part of a window hosts can send no more than so many full packets at line rate: some tenths
/// of a second of work.
const PACKETS_A_PART: u128 = 50_000;
/// Where a run stands at the end of a window or of a part of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    pub simulated: Time,
    /// Packet-hops.
    pub hops: u64,
    pub started: u64,
    pub completed: u64,
}

/// The watcher of a run, which receives its records, in an order that is the same for any number of
/// threads.
pub trait Observer: Send {
    /// The first error that receiving a record may end in.
    type Error: Send;
    /// Takes the record of a flow that ended, or that is unfinished at the end. Records come in the
    /// order of (end, flow).
    ///
    /// # Errors
    /// An error, here and below, ends the run with it.
    fn flow(&mut self, record: &FlowRecord) -> Result<(), Self::Error>;
    /// Takes the record of a query that ended, or that is unfinished at the end.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn query(&mut self, record: &QueryRecord) -> Result<(), Self::Error>;
    /// Takes the round-trip time of a probe. Times come in the order of (time of the answer, flow).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn rtt(&mut self, _rtt: Time) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Takes a sample of a port's queue. Samples come in the order of (time, node, port).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn queue(&mut self, _record: &QueueRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Takes a sample of a connection. Samples come in the order of (time, flow).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn connection(&mut self, _record: &ConnectionRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Takes a captured packet. Packets come in the order of (time, capture); of two at once the
    /// outgoing one comes first.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn packet(&mut self, _record: &PacketRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Takes a captured PAUSE frame. Frames come in the order of packets, and after packets of the
    /// same time.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn pause(&mut self, _record: &PauseRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Takes the record of a receive queue's poll. Polls come in the order of (time, host).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn poll(&mut self, _record: &PollRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Takes a rank's part of a round of its job. Parts come in the order of (end, class, round,
    /// rank).
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn rank(&mut self, _record: &RankRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Takes a round of a job that all ranks have ended, or that is unfinished at the end.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn collective(&mut self, _record: &CollectiveRecord) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Is called several times a second of wall-clock time. Returns whether the run goes on.
    ///
    /// # Errors
    /// As [`Observer::flow`].
    fn edge(&mut self, standing: &Standing) -> Result<bool, Self::Error>;
}

/// How a run ended, and what was counted.
#[derive(Debug)]
pub struct Outcome {
    pub simulated: Time,
    /// Ended by the observer before its time.
    pub interrupted: bool,
    /// Packets: injected, delivered, dropped, in flight.
    pub audit: Audit,
    pub hosts: HostCounters,
    /// Packets marked, by switches and NICs.
    pub marked: u64,
    /// Packets deflected.
    pub deflected: u64,
    /// Frames of switches that stop a priority.
    pub pause_frames: u64,
    /// Application bytes delivered in the measured time, by (source, destination), of the pairs
    /// that had some to send.
    pub pairs: BTreeMap<(HostId, HostId), u64>,
    /// Application bytes delivered since the beginning, by class, at each multiple of `[capture]
    /// goodput`.
    pub delivered: Vec<Vec<u64>>,
    /// The flows whose connections were sampled.
    pub sampled: BTreeSet<FlowId>,
    /// The fullest sample of each port, if the plan asks for contents.
    pub peaks: BTreeMap<(Node, u16), Peak>,
    /// The most bytes that ever waited at a switch port.
    pub queue_bytes_max: u64,
    /// The counts of each limit, by its index in the plan and whether it was of arriving packets.
    pub limits: BTreeMap<(u16, bool), LimitCounts>,
    /// The counts of the mechanisms that the plan has chosen, by name.
    pub counters: Counters,
    /// The work of each host's core, in the order of hosts; none where receiving costs nothing.
    pub cores: Vec<(HostId, CoreCounts)>,
    /// Flows that were to start and did not.
    pub not_started: NotStarted,
    /// Open flows that cannot end, if that is known.
    pub standstill: Option<Standstill>,
    /// The rest of the programs of ranks.
    pub unmatched: Unmatched,
}

impl Outcome {
    /// Whether the run ended since no open flow can end.
    pub fn is_stalled(&self) -> bool {
        self.unmatched.is_end
            || self.standstill.as_ref().is_some_and(|standstill| standstill.is_end)
    }
}

/// The rest of the programs of ranks at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Class, rank, and what is left there by names, in the order of ranks.
    pub ranks: Vec<(u16, u32, String)>,
    /// Nothing was under way any more that could have ended it.
    pub is_end: bool,
}

impl Unmatched {
    fn of(partitions: &[Partition], interrupted: bool) -> Unmatched {
        let left = partitions.iter().flat_map(|p| p.hosts.left_of_programs());
        let mut left: Vec<(u32, u16, u32, String)> = left.collect();
        left.sort_unstable();
        let active: i64 = partitions.iter().map(|p| p.hosts.counters.active).sum();
        let is_to_come = active != 0 || partitions.iter().any(|p| !p.hosts.ranks.waking.is_empty());
        let is_end = !left.is_empty() && !is_to_come && !interrupted;
        let ranks = left.into_iter().map(|(_, class, rank, what)| (class, rank, what)).collect();
        Unmatched { ranks, is_end }
    }
}

/// Flows of the plan's dependencies that never started, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotStarted {
    /// They wait for flows that were not delivered.
    pub waiting: Vec<FlowId>,
    /// Their time would have been after their stop or the end.
    pub late: Vec<FlowId>,
}

impl NotStarted {
    /// All that are not among those that `started`; of them, those that were `late`.
    fn of(plan: &Plan, mut started: Vec<FlowId>, mut late: Vec<FlowId>) -> NotStarted {
        let Some(graph) = &plan.traffic.dependencies else { return NotStarted::default() };
        started.sort_unstable();
        late.sort_unstable();
        let all = (0..graph.flows.len() as u32)
            .filter(|node| started.binary_search(&(graph.first_flow + node)).is_err());
        let is_late = |node: &u32| {
            graph.waits_for(*node) == 0 || late.binary_search(&(graph.first_flow + node)).is_ok()
        };
        let (late, waiting): (Vec<u32>, Vec<u32>) = all.partition(is_late);
        let flows =
            |nodes: Vec<u32>| nodes.into_iter().map(|node| graph.first_flow + node).collect();
        NotStarted { waiting: flows(waiting), late: flows(late) }
    }
}

/// Runs a plan with this many threads (at least one).
///
/// # Errors
/// The first error of `observer`.
pub fn run<O: Observer>(
    plan: &Plan,
    threads: usize,
    observer: &mut O,
) -> Result<Outcome, O::Error> {
    run_in_parts(plan, threads, observer, part(plan))
}

/// The same with windows in parts of this length.
fn run_in_parts<O: Observer>(
    plan: &Plan,
    threads: usize,
    observer: &mut O,
    part: Time,
) -> Result<Outcome, O::Error> {
    let (shared, partitions) = build(plan, layout::partitions(threads));
    let count = partitions.len();
    let threads = threads.clamp(1, count);
    let stage = Stage {
        inboxes: (0..count)
            .map(|_| Mutex::new((0..count).map(|_| Mail::default()).collect()))
            .collect(),
        claimed: (0..count).map(|_| AtomicU64::new(0)).collect(),
        partitions: partitions.into_iter().map(Mutex::new).collect(),
        end: AtomicU64::new(0),
        alone: AtomicBool::new(threads == 1),
        over: AtomicBool::new(false),
        failed: AtomicBool::new(false),
    };
    let director = Director::new(&shared, observer, threads, part);
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
        None => {
            stage.deliver_last_mail();
            let all = stage.partitions.into_iter();
            director.conclude(all.map(|p| p.into_inner().expect("no panic")).collect())
        }
    }
}

/// The state that the threads share.
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
    over: AtomicBool,
    failed: AtomicBool,
}

impl Stage {
    /// One thread's part of the run.
    fn work<O: Observer>(
        &self,
        thread: usize,
        threads: usize,
        director: &Mutex<Director<'_, O>>,
        barrier: &Barrier,
    ) {
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
                    let claim = self.claimed[p].compare_exchange(
                        window - 1,
                        window,
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    );
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

    /// After the last window: has all mail read, and what is answered to it, since a note may open
    /// a connection whose other side is to be notified.
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

    /// Moves what partitions left for each other into their inboxes. Returns whether there was
    /// anything.
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
    let bps: u128 = plan.topology.host_links().iter().map(|link| u128::from(link.rate.bps())).sum();
    let bits = PACKETS_A_PART * u128::from(plan.host.mtu) * 8;
    let ps = bits * 1_000_000_000_000 / bps.max(1);
    Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX).max(1))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
            (
                seen.flows,
                outcome.simulated,
                outcome.audit.events,
                outcome.audit.hops,
                outcome.queue_bytes_max,
            )
        };
        let whole = run(1, Time::MAX);
        assert!(whole.0.len() > 10 && whole.0.iter().all(|flow| flow.finish.is_some()));
        for (threads, part) in
            [(1, Time::from_us(130)), (2, Time::from_us(130)), (1, Time::from_ns(7_001))]
        {
            assert!(run(threads, part) == whole, "{threads} threads, parts of {part}");
        }
    }

    #[test]
    fn amid_a_long_window_the_observer_is_asked_and_may_end_the_run() {
        let plan = plan();
        let mut seen = Seen::default();
        let whole = run(&plan, 1, &mut seen).unwrap();
        assert!(
            seen.looks >= whole.audit.events / (2 * director::EVENTS_A_LOOK),
            "{} of {}",
            seen.looks,
            whole.audit.events
        );
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
        assert!(
            stopped.iter().any(|at| !at.as_ps().is_multiple_of(window)),
            "{stopped:?}: some are amid a window"
        );
    }
}
