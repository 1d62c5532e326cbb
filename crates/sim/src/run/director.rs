//! The serial part of a run: what one thread does at an edge while the others wait.
//!
//! It hands records over in the order of the whole run, lays out arrivals, holds a scheduler's
//! rounds, asks the observer whether to go on, and chooses the next window. At the end it adds up
//! what the partitions have counted.
//!
//! Invariant: it is called with all partitions at one time, and what it does depends on the plan
//! and that time alone.

use super::*;

/// How far arrivals are laid out beyond the next edge: enough that most edges have nothing to do.
const LAY_OUT_AHEAD: u64 = 16;
/// Windows with fewer events than this, in the mean of the last ones, are run by one thread (about
/// 100 µs of work: some ten times what a barrier costs).
const EVENTS_WORTH_SHARING: u64 = 1_500;
/// The observer is asked after at least so many events, and after so many edges.
pub(crate) const EVENTS_A_LOOK: u64 = 1 << 18;
const EDGES_A_LOOK: u64 = 256;
/// Records are handed over when this many wait.
const RECORDS_WAIT: usize = 4096;
/// So many samples and captured packets may wait, some of which are not due yet.
const CAPTURED_WAIT: usize = 1 << 16;

/// The stream of arrivals, with one looked at ahead.
pub(crate) struct Ahead {
    arrivals: Arrivals,
    next: Option<Event>,
}

impl Ahead {
    pub(crate) fn new(plan: &Plan) -> Ahead {
        let mut arrivals = plan.traffic.arrivals();
        let next = arrivals.next();
        Ahead { arrivals, next }
    }
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.next.as_ref().map(|event| match event {
            Event::Flow(flow) => flow.at,
            Event::Query(query) => query.at,
        })
    }
    pub(crate) fn take(&mut self) -> Option<Event> {
        std::mem::replace(&mut self.next, self.arrivals.next())
    }
}

/// The director, which runs the edges.
pub(crate) struct Director<'a, O: Observer> {
    pub(crate) shared: &'a Shared,
    pub(crate) arrivals: Ahead,
    pub(crate) connections: ConnectionFilter,
    /// Rounds of jobs that not all ranks have ended.
    pub(crate) rounds_of_jobs: RoundsOfJobs,
    /// Of the central scheduler, if there is one.
    pub(crate) rounds: Option<Rounds>,
    /// Looks for the end of progress, and what it has found.
    pub(crate) watch: Watch,
    pub(crate) standstill: Option<Standstill>,
    pub(crate) observer: &'a mut O,
    pub(crate) threads: usize,
    /// Events served so far, and the moving mean of a window's, in sixteenths.
    pub(crate) events: u64,
    pub(crate) recent: u64,
    /// Events served when the observer was last asked.
    pub(crate) looked: u64,
    pub(crate) edges: u64,
    /// Until when all events have been served: the present edge, or the end of a window's part.
    pub(crate) edge: Time,
    pub(crate) window_end: Time,
    /// How long a part of a window may be.
    pub(crate) part: Time,
    pub(crate) interrupted: bool,
    pub(crate) error: Option<O::Error>,
}

impl<'a, O: Observer> Director<'a, O> {
    pub(crate) fn new(shared: &'a Shared, observer: &'a mut O, threads: usize, part: Time) -> Self {
        let (plan, window) = (&shared.plan, shared.layout.window);
        Director {
            arrivals: Ahead::new(plan),
            connections: ConnectionFilter::new(&plan.capture),
            rounds: Rounds::new(plan, window),
            rounds_of_jobs: RoundsOfJobs::default(),
            watch: Watch::new(plan, window),
            standstill: None,
            shared,
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
        }
    }

    /// At an edge: hands over records and chooses the end of the next window, or `None` if the run
    /// is over.
    pub(crate) fn next_window(
        &mut self,
        partitions: &mut [&mut Partition],
        mail: bool,
    ) -> Option<Time> {
        let plan = &self.shared.plan;
        self.edges += 1;
        let waiting: usize = partitions.iter().map(|p| p.hosts.flow_records.len()).sum();
        let captured: usize = partitions
            .iter()
            .map(|p| {
                p.samplers.waiting() + p.fabric.captured.len() + p.fabric.captured_pauses.len()
            })
            .sum();
        let due = waiting >= RECORDS_WAIT
            || captured >= CAPTURED_WAIT
            || self.edges.is_multiple_of(EDGES_A_LOOK);
        let handed = if due { self.hand_over(partitions) } else { Ok(()) };
        if !self.look(partitions, due, handed) {
            return None;
        }
        if plan.until_complete && self.is_complete(partitions) {
            return None;
        }
        let due =
            partitions.iter().filter_map(|p| p.next_time()).chain(self.arrivals.next_time()).min();
        let due = due.into_iter().chain(self.next_connection(partitions)).min();
        let next = if mail { Some(self.edge) } else { due };
        let next = next.filter(|next| *next < plan.horizon);
        let window = self.shared.layout.window;
        let start = next.map_or(plan.horizon, |next| {
            Time::from_ps(next.as_ps() / window.as_ps() * window.as_ps())
        });
        if plan.until_complete && self.stalls(start, partitions) {
            return None;
        }
        let Some(next) = next else {
            self.edge = plan.horizon;
            return None;
        };
        let end = start + window;
        if let Some(rounds) = &mut self.rounds {
            rounds.hold(start, self.shared, partitions);
        }
        self.lay_out(partitions, end, end + window * LAY_OUT_AHEAD);
        self.window_end = end.min(plan.horizon);
        Some(self.part_from(next))
    }

    /// Whether a window is under way, of which a part has been served.
    pub(crate) fn is_amid_window(&self) -> bool {
        self.edge < self.window_end
    }

    /// Amid a window: chooses the end of its next part, or `None` if the observer has enough.
    pub(crate) fn next_part(&mut self, partitions: &[&mut Partition]) -> Option<Time> {
        if !self.look(partitions, false, Ok(())) {
            self.window_end = self.edge;
            return None;
        }
        let due = partitions.iter().filter_map(|p| p.next_time()).min();
        Some(self.part_from(due.unwrap_or(self.window_end)))
    }

    /// The end of the part that begins at `from`.
    pub(crate) fn part_from(&mut self, from: Time) -> Time {
        self.edge = self.window_end.min(from.saturating_add(self.part));
        self.edge
    }

    /// Asks the observer whether to go on, if it is `due` or enough has happened. An error ends the
    /// run, too.
    pub(crate) fn look(
        &mut self,
        partitions: &[&mut Partition],
        due: bool,
        so_far: Result<(), O::Error>,
    ) -> bool {
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
    pub(crate) fn next_connection(&self, partitions: &[&mut Partition]) -> Option<Time> {
        let bounded = self.shared.plan.horizon < Time::MAX;
        partitions
            .iter()
            .filter(|_| bounded)
            .filter_map(|p| p.samplers.next_connection(&p.hosts))
            .min()
    }

    /// Whether windows hold too little to share. Decides who computes, never what.
    pub(crate) fn is_quiet(&mut self, partitions: &[&mut Partition]) -> bool {
        let events: u64 = partitions.iter().map(|p| p.fabric.audit.events).sum();
        self.recent = self.recent - self.recent / 16 + (events - self.events);
        self.events = events;
        self.threads == 1 || self.recent < EVENTS_WORTH_SHARING * 16
    }

    /// Whether every flow of the plan is over.
    pub(crate) fn is_complete(&self, partitions: &[&mut Partition]) -> bool {
        let active: i64 = partitions.iter().map(|p| p.hosts.counters.active).sum();
        let waiting: i64 = partitions.iter().map(|p| p.hosts.waiting.under_way).sum();
        let ranks: u32 = partitions.iter().map(|p| p.hosts.ranks.at_work).sum();
        active == 0
            && waiting == 0
            && ranks == 0
            && self.arrivals.next.is_none()
            && partitions.iter().all(|p| p.nothing_to_start(self.edge))
    }

    /// Whether the run has stalled before `until`, before which no event is due.
    fn stalls(&mut self, until: Time, partitions: &[&mut Partition]) -> bool {
        let Some(found) = self.watch.look(until, &self.arrivals, &self.shared.plan, partitions)
        else {
            return false;
        };
        self.edge = found.at;
        self.standstill = Some(found);
        true
    }

    /// The report on flows that are open at the end of a run.
    fn left_standing(&mut self, partitions: &[&mut Partition]) -> Option<Standstill> {
        if self.standstill.is_some() || self.interrupted || !self.watch.is_settled(self.edge) {
            return self.standstill.take();
        }
        let plan = &self.shared.plan;
        let is_idle = self.arrivals.next_time().is_none()
            && partitions.iter().all(|p| p.next_time().is_none() && p.nothing_to_start(self.edge));
        if is_idle && let Some(found) = self.watch.judge_idle(self.edge, plan, partitions) {
            return Some(found);
        }
        // Nothing ends after the end of time.
        let is_end = plan.until_complete && self.edge >= Time::END && !self.is_complete(partitions);
        let found = Standstill { is_end, ..self.watch.judge(self.edge, plan, partitions) };
        (is_end || found.cut.flows > 0 || found.deadlock.is_some()).then_some(found)
    }

    /// Gives arrivals to their hosts' partitions: all before `end`, and further ones up to `ahead`
    /// while at it.
    pub(crate) fn lay_out(&mut self, partitions: &mut [&mut Partition], end: Time, ahead: Time) {
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

    pub(crate) fn standing(&self, partitions: &[&mut Partition]) -> Standing {
        let mut standing = Standing { simulated: self.edge, ..Standing::default() };
        for p in partitions {
            standing.hops += p.fabric.audit.hops;
            standing.started += p.hosts.counters.started;
            standing.completed += p.hosts.counters.completed;
        }
        standing
    }

    /// Hands over the records of all partitions in an order that does not depend on partitions.
    pub(crate) fn hand_over(&mut self, partitions: &mut [&mut Partition]) -> Result<(), O::Error> {
        let mut flows: Vec<(Time, FlowRecord)> = Vec::new();
        let mut queries: Vec<(Time, QueryRecord)> = Vec::new();
        let mut open: Vec<(FlowId, u32, u32)> = Vec::new();
        let mut spans: Vec<RankRecord> = Vec::new();
        for p in partitions.iter_mut() {
            spans.append(&mut p.hosts.ranks.spans);
            flows.append(&mut p.hosts.flow_records);
            queries.append(&mut p.hosts.query_records);
            open.append(&mut p.hosts.open_counts);
        }
        count_open(&mut flows, open);
        flows.sort_by_key(|(at, record)| (*at, record.flow, record.start));
        queries.sort_by_key(|(at, record)| (*at, record.query));
        for (_, record) in flows {
            self.observer.flow(&record)?;
        }
        for (_, record) in queries {
            self.observer.query(&record)?;
        }
        spans.sort_unstable_by_key(|span| (span.ended, span.class, span.round, span.rank));
        for span in &spans {
            self.observer.rank(span)?;
            if let Some(record) = self.rounds_of_jobs.add(self.shared, span) {
                self.observer.collective(&record)?;
            }
        }
        self.hand_over_captured(partitions)
    }

    /// The same with what was sampled, captured and probed before this edge. A departure may be
    /// known before its time; it waits until it is due, whatever the kind of its port.
    pub(crate) fn hand_over_captured(
        &mut self,
        partitions: &mut [&mut Partition],
    ) -> Result<(), O::Error> {
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
        // Stable, for a host may look at several packets at one instant, and a port send several
        // frames.
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

    /// The run is over and the last mail delivered, so that the audit sees every packet: sums up.
    pub(crate) fn conclude(mut self, mut partitions: Vec<Partition>) -> Result<Outcome, O::Error> {
        let standstill = self.left_standing(&partitions.iter_mut().collect::<Vec<_>>());
        let mut outcome = Outcome {
            standstill,
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
            peaks: BTreeMap::new(),
            queue_bytes_max: 0,
            limits: BTreeMap::new(),
            counters: Counters::default(),
            cores: Vec::new(),
            not_started: NotStarted::default(),
            unmatched: Unmatched::of(&partitions, self.interrupted),
        };
        let (mut started, mut late) = (Vec::new(), Vec::new());
        for p in &mut partitions {
            started.append(&mut p.hosts.waiting.started);
            late.append(&mut p.hosts.waiting.late);
            p.finish(self.edge);
            add_samples(&mut outcome.delivered, std::mem::take(&mut p.samplers.delivered));
            outcome.peaks.extend(p.samplers.peaks.take().unwrap_or_default());
            outcome.audit.merge(&p.audit());
            outcome.hosts.merge(&p.hosts.counters);
            outcome.marked += p.hosts.marked();
            p.hosts.report_counters(self.edge, &mut outcome.counters);
            p.hosts.count_limits(&mut outcome.limits);
            outcome.cores.extend(p.hosts.cores(self.edge));
            for node in &p.switches {
                outcome.marked += node.switch.marked();
                outcome.deflected += node.switch.deflected;
                outcome.pause_frames += node.switch.pause_counts().frames;
                node.switch.report_counters(self.edge, &mut outcome.counters);
                let most = node.switch.bytes_max().into_iter().max().unwrap_or(0);
                outcome.queue_bytes_max = outcome.queue_bytes_max.max(most);
            }
            for (pair, bytes) in std::mem::take(&mut p.hosts.pairs) {
                *outcome.pairs.entry(pair).or_insert(0) += bytes;
            }
        }
        outcome.not_started = NotStarted::of(&self.shared.plan, started, late);
        // A host's cores keep the order of their numbers.
        outcome.cores.sort_by_key(|(host, _)| *host);
        if let Some(rounds) = &self.rounds {
            rounds.report_counters(&self.shared.plan, &mut outcome.counters);
        }
        report_cores(
            &outcome.cores,
            self.edge.saturating_sub(self.shared.plan.warm_up),
            &mut outcome.counters,
        );
        let mut all: Vec<&mut Partition> = partitions.iter_mut().collect();
        let standing = self.standing(&all);
        self.hand_over(&mut all)?;
        for record in self.rounds_of_jobs.unfinished(self.shared) {
            self.observer.collective(&record)?;
        }
        self.observer.edge(&standing)?;
        outcome.sampled = self.connections.kept();
        Ok(outcome)
    }
}

/// Gives flows that are open at the end what their receivers have counted.
fn count_open(flows: &mut [(Time, FlowRecord)], mut open: Vec<(FlowId, u32, u32)>) {
    if open.is_empty() {
        return;
    }
    open.sort_unstable();
    for (_, record) in
        flows.iter_mut().filter(|(_, record)| record.finish.is_none() && !record.is_call)
    {
        if let Ok(at) = open.binary_search_by_key(&record.flow, |(flow, ..)| *flow) {
            let (_, out_of_order, path_changes) = open[at];
            record.out_of_order.get_or_insert(out_of_order);
            record.path_changes.get_or_insert(path_changes);
        }
    }
}

/// Adds a partition's samples, which are of the same times.
fn add_samples(all: &mut Vec<Vec<u64>>, samples: Vec<Vec<u64>>) {
    all.resize_with(all.len().max(samples.len()), Vec::new);
    for (sum, sample) in all.iter_mut().zip(samples) {
        sum.resize(sample.len(), 0);
        sum.iter_mut().zip(sample).for_each(|(sum, bytes)| *sum += bytes);
    }
}
