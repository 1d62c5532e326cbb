//! Ranks of jobs: a host's rank is called when its messages arrive and when its time comes, and
//! sends messages, on [connections](super::rank_connections).
//!
//! Invariant: a rank is called in its own host's cell alone.

use super::rank_connections::{Leg, RankConnections};
use super::*;
use millpond_ranks::{Driver, Message, Rank, Span};
use millpond_results::RankRecord;
use millpond_scenario::traffic::JobPlan;

/// The ranks at a partition's hosts.
#[derive(Debug, Default)]
pub struct Ranks {
    /// By number among the ranks of all jobs.
    ranks: BTreeMap<u32, Rank>,
    /// The connections that carry their messages.
    pub(super) connections: RankConnections,
    /// By rank's number and time: its sends that it will learn are matched.
    matches: BTreeMap<(u32, Time), Vec<u32>>,
    /// Ranks that have begun and are not done. Over all partitions it is zero if no job goes on.
    pub at_work: u32,
    /// Ranks' numbers, and times to come at which they are called, each once.
    pub waking: BTreeSet<(u32, Time)>,
    /// Parts of rounds that are over.
    pub spans: Vec<RankRecord>,
}

/// The requests of a rank when it is called.
#[derive(Debug, Default)]
pub(super) struct Asked {
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
        self.call_rank(now, class, job, rank, call, fabric);
    }

    /// A time has come for which a rank has asked.
    pub fn on_rank(&mut self, now: Time, number: u32, fabric: &mut Fabric) {
        self.ranks.waking.remove(&(number, now));
        let shared = self.shared.clone();
        let Some((class, job, rank)) = shared.plan.traffic.job_of(number) else { return };
        let mut matched = self.ranks.matches.remove(&(number, now)).unwrap_or_default();
        matched.sort_unstable();
        let call = |rank: &mut Rank, asked: &mut Asked| {
            for operation in matched {
                rank.matched(now, operation, &job.work, asked);
            }
            rank.wake(now, &job.work, asked);
        };
        self.call_rank(now, class, job, rank, call, fabric);
    }

    /// A rank here will learn that a send of its program is matched.
    pub(super) fn expect_match(
        &mut self,
        number: u32,
        operation: u32,
        at: Time,
        fabric: &mut Fabric,
    ) {
        let Some((_, job, rank)) = self.shared.plan.traffic.job_of(number) else { return };
        let host = self.shared.local_host(job.hosts[rank as usize]);
        self.ranks.matches.entry((number, at)).or_default().push(operation);
        self.wake_rank(number, host, at, fabric);
    }

    /// A rank at this partition's host `host` is called at a time, once for all that it asks for.
    fn wake_rank(&mut self, number: u32, host: u32, at: Time, fabric: &mut Fabric) {
        if self.ranks.waking.insert((number, at)) {
            fabric.call(at, host, HostEvent::Rank(number));
        }
    }

    /// Calls a rank, and does what it asks for.
    pub(super) fn call_rank(
        &mut self,
        now: Time,
        class: u16,
        job: &Arc<JobPlan>,
        rank: u32,
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
            self.wake_rank(number, local, at, fabric);
        }
        for (sender, operation) in asked.matched {
            self.notify_matched(now, job, sender, rank, operation, fabric);
        }
        for (to, channel, message) in asked.sends {
            self.post(now, Leg { class, job, from: rank, to, channel }, message, fabric);
        }
    }

    /// Notifies a rank that its send is matched here: news that takes the quickest way.
    fn notify_matched(
        &mut self,
        now: Time,
        job: &JobPlan,
        sender: u32,
        receiver: u32,
        operation: u32,
        fabric: &mut Fabric,
    ) {
        let number = job.first_rank + sender;
        let (from, to) = (job.hosts[receiver as usize], job.hosts[sender as usize]);
        let at = now.saturating_add(job.news.way(from, to));
        let partition = self.shared.partition_of_host(to);
        let cell = |host: HostId| fabric.events.of_host(self.shared.local_host(host));
        // As for flows that wait for others: beyond a cell the way is longer than a window.
        if partition == fabric.partition && cell(from) == cell(to) {
            self.expect_match(number, operation, at, fabric);
        } else {
            fabric.post(partition, Note::Matched { rank: number, operation, at });
        }
    }

    /// The rest of programs at the end, by rank's number: the class, the rank, and names.
    pub fn left_of_programs(&self) -> impl Iterator<Item = (u32, u16, u32, String)> + '_ {
        self.ranks.ranks.iter().filter_map(|(number, at_work)| {
            let (class, job, rank) = self.shared.plan.traffic.job_of(*number)?;
            Some((*number, class, rank, at_work.left(&job.work)?))
        })
    }
}
