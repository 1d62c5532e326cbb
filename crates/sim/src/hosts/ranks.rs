//! Ranks of jobs: a host's rank is called when its messages arrive and when its time comes, and
//! sends messages.
//!
//! Messages from one rank to another go on one connection, one behind the other. The receiving end
//! learns by a note where each message ends, before its first packet.
//!
//! Invariant: each message makes exactly one record, at its receiver; a rank is called in its own
//! host's cell alone.

use super::*;
use crate::mail::Posted;
use millpond_ranks::{Driver, Message, Rank, Span};
use millpond_results::RankRecord;
use millpond_scenario::traffic::JobPlan;

/// The ranks at a partition's hosts.
#[derive(Debug, Default)]
pub struct Ranks {
    /// By number among the ranks of all jobs.
    ranks: BTreeMap<u32, Rank>,
    /// By connection that comes in: its messages under way, the oldest first.
    posted: BTreeMap<FlowId, VecDeque<Posted>>,
    /// By rank's number and time: its sends that it will learn are matched.
    matches: BTreeMap<(u32, Time), Vec<u32>>,
    /// Ranks that have begun and are not done. Over all partitions it is zero if no job goes on.
    pub at_work: u32,
    /// Times to come for which ranks have asked.
    pub waking: u32,
    /// Parts of rounds that are over.
    pub spans: Vec<RankRecord>,
}

/// The requests of a rank when it is called.
#[derive(Debug, Default)]
struct Asked {
    sends: Vec<(u32, u32, Message)>,
    wakes: Vec<Time>,
    ended: Vec<Span>,
    matched: Vec<(u32, u32)>,
}

impl Driver for Asked {
    fn send(&mut self, to: u32, channel: u32, message: Message) {
        self.sends.push((to, channel, message));
    }
    fn wake(&mut self, at: Time) {
        self.wakes.push(at);
    }
    fn ended(&mut self, span: Span) {
        self.ended.push(span);
    }
    fn matched(&mut self, sender: u32, operation: u32) {
        self.matched.push((sender, operation));
    }
}

impl Hosts {
    /// The rank of a job at this partition's host `host` begins.
    pub(super) fn start_rank(
        &mut self,
        now: Time,
        class: u16,
        job: &Arc<JobPlan>,
        host: u32,
        fabric: &mut Fabric,
    ) {
        let Some(rank) = job.rank_at(self.hosts[host as usize].id) else { return };
        self.ranks.ranks.insert(job.first_rank + rank, Rank::new(rank, &job.work));
        self.ranks.at_work += 1;
        let call = |rank: &mut Rank, asked: &mut Asked| rank.start(now, &job.work, asked);
        self.call_rank(now, (class, job, rank), call, fabric);
    }

    /// A time has come for which a rank has asked.
    pub fn on_rank(&mut self, now: Time, number: u32, fabric: &mut Fabric) {
        self.ranks.waking -= 1;
        let shared = self.shared.clone();
        let Some((class, job, rank)) = shared.plan.traffic.job_of(number) else { return };
        let matched = self.ranks.matches.remove(&(number, now)).unwrap_or_default();
        let call = |rank: &mut Rank, asked: &mut Asked| {
            for operation in matched {
                rank.matched(now, operation, &job.work, asked);
            }
            rank.wake(now, &job.work, asked);
        };
        self.call_rank(now, (class, job, rank), call, fabric);
    }

    /// A rank here will learn that a send of its program is matched.
    pub(super) fn expect_match(
        &mut self,
        flow: FlowId,
        operation: u32,
        at: Time,
        fabric: &mut Fabric,
    ) {
        let Some(slot) = self.senders.slot_of(flow) else { return };
        let sending = self.senders.at(slot);
        let SourceKind::Job(job) =
            &self.shared.plan.traffic.sources[usize::from(sending.opening.class)].kind
        else {
            return;
        };
        let number = job.first_rank + job.sender(flow);
        self.ranks.matches.entry((number, at)).or_default().push(operation);
        self.ranks.waking += 1;
        fabric.events.push(at, Due::Host(sending.host, HostEvent::Rank(number)).into());
    }

    /// A message will come on a connection.
    pub(super) fn expect_message(&mut self, flow: FlowId, posted: Posted) {
        let Some(slot) = self.receivers.slot_of(flow) else { return };
        let receiving = self.receivers.at(slot);
        receiving.ends = receiving.ends.min(posted.ends);
        self.ranks.posted.entry(flow).or_default().push_back(posted);
    }

    /// Messages are delivered: records them, and calls their rank.
    #[cold]
    pub(super) fn take_messages(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let receiving = self.receivers.at(slot);
        let (opening, delivered) = (receiving.opening, receiving.delivered);
        let SourceKind::Job(job) = &shared.plan.traffic.sources[usize::from(opening.class)].kind
        else {
            return;
        };
        loop {
            let Some(queue) = self.ranks.posted.get_mut(&opening.flow) else { return };
            let next = queue.front().map_or(u64::MAX, |posted| posted.ends);
            let Some(posted) = queue.pop_front_if(|posted| posted.ends <= delivered) else {
                self.receivers.at(slot).ends = next;
                return;
            };
            let record = message_record(&shared, &opening, &posted, Some(now));
            self.flow_records.push((now, record));
            self.counters.completed += 1;
            self.counters.active -= 1;
            let Some(rank) = job.rank_at(shared.hosts_of(&opening).1) else { return };
            let from = job.sender(opening.flow);
            let call = |rank: &mut Rank, asked: &mut Asked| {
                rank.arrived(now, (from, &posted.message), &job.work, asked);
            };
            self.call_rank(now, (opening.class, job, rank), call, fabric);
        }
    }

    /// Calls a rank, and does what it asks for.
    fn call_rank(
        &mut self,
        now: Time,
        (class, job, rank): (u16, &Arc<JobPlan>, u32),
        call: impl FnOnce(&mut Rank, &mut Asked),
        fabric: &mut Fabric,
    ) {
        let number = job.first_rank + rank;
        let Some(at_work) = self.ranks.ranks.get_mut(&number) else { return };
        let mut asked = Asked::default();
        call(at_work, &mut asked);
        let is_over = |span: &Span| span.round + 1 == job.work.rounds();
        if asked.ended.iter().any(is_over) {
            self.ranks.at_work -= 1;
        }
        let host = job.hosts[rank as usize];
        self.ranks.spans.extend(asked.ended.into_iter().map(|span| RankRecord {
            class,
            round: span.round,
            rank,
            host,
            began: span.began,
            ready: span.ready,
            ended: span.ended,
            computed: span.computed,
            computations: span.computations,
        }));
        let local = self.shared.local_host(host);
        for at in asked.wakes {
            self.ranks.waking += 1;
            fabric.events.push(at, Due::Host(local, HostEvent::Rank(number)).into());
        }
        for (sender, operation) in asked.matched {
            self.tell_matched(now, (job, sender, rank), operation, fabric);
        }
        for (to, channel, message) in asked.sends {
            self.post(now, (class, job), (rank, to, channel), message, fabric);
        }
    }

    /// Notifies a rank that its send is matched here: news that takes the quickest way.
    fn tell_matched(
        &mut self,
        now: Time,
        (job, sender, receiver): (&Arc<JobPlan>, u32, u32),
        operation: u32,
        fabric: &mut Fabric,
    ) {
        let flow = job.flow(sender, receiver, job.work.channel(sender, operation));
        let (from, to) = (job.hosts[receiver as usize], job.hosts[sender as usize]);
        let at = now.saturating_add(job.news.way(from, to));
        let partition = self.shared.partition_of_host(to);
        let cell = |host: HostId| fabric.events.of_host(self.shared.local_host(host));
        // As for flows that wait for others: beyond a cell the way is longer than a window.
        if partition == fabric.partition && cell(from) == cell(to) {
            self.expect_match(flow, operation, at, fabric);
        } else {
            fabric.post(partition, Note::Matched { flow, operation, at });
        }
    }

    /// Sends a message on the connection of two ranks, which is opened for the first one.
    fn post(
        &mut self,
        now: Time,
        (class, job): (u16, &Arc<JobPlan>),
        (from, to, channel): (u32, u32, u32),
        message: Message,
        fabric: &mut Fabric,
    ) {
        let flow = job.flow(from, to, channel);
        let (src, dst) = (job.hosts[from as usize], job.hosts[to as usize]);
        let slot = match self.senders.slot_of(flow) {
            Some(slot) => slot,
            None => {
                let opening = Opening {
                    flow,
                    src,
                    dst,
                    sender_slot: NONE,
                    bytes: 0,
                    role: Role::Messages,
                    class,
                    query: None,
                    start: now,
                    request: 0,
                };
                self.open(now, opening, self.shared.handshake, fabric)
            }
        };
        self.count_start();
        let sending = self.senders.at(slot);
        sending.sender.write(now, message.bytes);
        let message = Posted { ends: sending.sender.written(), at: now, message };
        self.tell(now, dst, Note::Posted { flow, message }, fabric);
        self.pump(now, slot, fabric);
    }

    /// The rest of programs at the end, by rank's number: the class, the rank, and names.
    pub fn left_of_programs(&self) -> impl Iterator<Item = (u32, u16, u32, String)> + '_ {
        self.ranks.ranks.iter().filter_map(|(number, at_work)| {
            let (class, job, rank) = self.shared.plan.traffic.job_of(*number)?;
            Some((*number, class, rank, at_work.left(&job.work)?))
        })
    }

    /// Records of the messages that have not arrived, at the end of a run.
    pub(super) fn not_arrived(&mut self, rest: &mut Vec<FlowRecord>) {
        for (flow, queue) in std::mem::take(&mut self.ranks.posted) {
            let Some(slot) = self.receivers.slot_of(flow) else { continue };
            let opening = self.receivers.at(slot).opening;
            let records = queue.iter().map(|it| message_record(&self.shared, &opening, it, None));
            rest.extend(records);
        }
    }
}

/// A message as a flow.
fn message_record(
    shared: &Shared,
    opening: &Opening,
    posted: &Posted,
    finish: Option<Time>,
) -> FlowRecord {
    let Shared { plan, ideal, .. } = shared;
    let Opening { flow, class, .. } = *opening;
    let (src, dst) = shared.hosts_of(opening);
    let bytes = posted.message.bytes;
    let ideal = finish.map(|_| {
        // The first message waits for the connection.
        let opens = posted.ends == bytes && plan.opens_by_handshake(class);
        let handshake = if opens { ideal.handshake(plan, src, dst) } else { Time::ZERO };
        handshake.saturating_add(ideal.message(plan, src, dst, bytes))
    });
    FlowRecord {
        flow,
        class,
        src,
        dst,
        bytes,
        start: posted.at,
        finish,
        ideal: ideal.unwrap_or_default(),
        is_call: true,
        counted: posted.at >= plan.warm_up,
        ..FlowRecord::default()
    }
}
