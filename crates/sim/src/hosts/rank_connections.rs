//! The connections that carry messages between ranks of jobs.
//!
//! Messages from one rank to another go on one connection, one behind the other, or each on one of
//! its own, which ends with it. The receiving end learns by a note where each message ends, before
//! its first packet.
//!
//! Messages of one lane leave in the order of turns: a message of a later turn that goes on another
//! connection waits until the one before has left, so that they do not share the NIC.
//!
//! Invariant: each message makes exactly one record: at its receiver, or at the end of the run
//! where it waits. A rank has at most [`OPEN`] connections of one message each on a channel.

use super::*;
use crate::mail::Posted;
use millpond_ranks::{Message, Rank};
use millpond_scenario::Ends;
use millpond_scenario::settings::job::Connections;
use millpond_scenario::traffic::JobPlan;

/// Connections of one message each that a rank has open on a channel, at most. Later messages wait
/// for one to end. Far fewer than a rank has ids, so none is used again before its receiving end
/// is gone, too.
const OPEN: u32 = 4096;

/// A rank's number, a collective in its program, and a lane.
type LaneKey = (u32, u32, u32);

/// The way of a message: from a rank of a job to another, on a channel.
#[derive(Clone, Copy)]
pub(super) struct Leg<'a> {
    pub(super) class: u16,
    pub(super) job: &'a Arc<JobPlan>,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) channel: u32,
}

impl Leg<'_> {
    /// The number of the rank that sends.
    fn rank(&self) -> u32 {
        self.job.first_rank + self.from
    }

    fn lane(&self, message: &Message) -> LaneKey {
        (self.rank(), message.call, message.lane)
    }

    /// The connection of this number on it.
    fn flow(&self, opened: u32) -> FlowId {
        self.job.flow(self.from, self.to, self.channel, opened)
    }

    fn opening(&self, start: Time, flow: FlowId) -> Opening {
        let role = match self.job.connections {
            Connections::Lasting => Role::Messages,
            Connections::PerMessage => Role::Message,
        };
        let ends = [self.from, self.to].map(|rank| self.job.hosts[rank as usize]);
        Opening::new(start, flow, self.class, role, ends.into())
    }
}

/// A message that waits: to which rank, on which channel, since when.
#[derive(Debug)]
struct Behind {
    to: u32,
    channel: u32,
    at: Time,
    message: Message,
}

/// The connections of the ranks at a partition's hosts.
#[derive(Debug, Default)]
pub(super) struct RankConnections {
    /// By connection that comes in: its messages under way, the oldest first.
    posted: BTreeMap<FlowId, VecDeque<Posted>>,
    /// By rank's number and channel, where each message has a connection of its own.
    own: BTreeMap<(u32, u32), Own>,
    /// A lane's last message, and those behind.
    lanes: BTreeMap<LaneKey, LaneOut>,
    /// By connection, and where a message of it ends: lanes that wait until it has left.
    awaited: BTreeMap<FlowId, BTreeSet<(u64, LaneKey)>>,
}

/// The messages that a lane of a rank sends.
#[derive(Debug, Default)]
struct LaneOut {
    /// The last message that it sent: its round and turn, connection and end there.
    last: Option<((u32, u32), FlowId, u64)>,
    behind: VecDeque<Behind>,
}

/// A rank's connections of one message each on a channel.
#[derive(Debug, Default)]
struct Own {
    opened: u32,
    open: u32,
    /// Messages that wait for one to end.
    waiting: VecDeque<Behind>,
}

impl RankConnections {
    /// Takes the lanes that wait for the first `sent` bytes of a connection, or for fewer.
    fn left(&mut self, flow: FlowId, sent: u64) -> BTreeSet<(u64, LaneKey)> {
        let Some(mut left) = self.awaited.remove(&flow) else { return BTreeSet::new() };
        let still = left.split_off(&(sent.saturating_add(1), (0, 0, 0)));
        if !still.is_empty() {
            self.awaited.insert(flow, still);
        }
        left
    }

    pub fn close(&mut self, flow: FlowId) {
        self.posted.remove(&flow);
    }
}

impl Hosts {
    pub(super) fn post(&mut self, now: Time, leg: Leg, message: Message, fabric: &mut Fabric) {
        self.count_start();
        let key = leg.lane(&message);
        let waits = |lane: &LaneOut| message.turn.is_some() && !lane.behind.is_empty();
        if self.ranks.connections.lanes.get(&key).is_some_and(waits)
            || self.is_leaving(leg, &message)
        {
            let lane = self.ranks.connections.lanes.entry(key).or_default();
            let Leg { to, channel, .. } = leg;
            return lane.behind.push_back(Behind { to, channel, at: now, message });
        }
        self.admit(now, leg, now, message, fabric);
    }

    /// Whether the message of an earlier turn of the lane has not left, and goes on a connection
    /// other than this message's.
    fn is_leaving(&mut self, leg: Leg, message: &Message) -> bool {
        let key = leg.lane(message);
        let connections = &mut self.ranks.connections;
        let lane = connections.lanes.get(&key);
        let (Some(own), Some(LaneOut { last: Some((turn, flow, end)), .. })) = (message.turn, lane)
        else {
            return false;
        };
        let is_own = leg.job.connections == Connections::Lasting && *flow == leg.flow(0);
        if *turn == (message.round, own) || is_own {
            return false;
        }
        let Some(slot) = self.senders.slot_of(*flow) else { return false };
        let sending = self.senders.at(slot);
        if sending.sender.sent() >= *end {
            return false;
        }
        sending.is_awaited = true;
        connections.awaited.entry(*flow).or_default().insert((*end, key))
    }

    /// A connection for which lanes wait has handed down what it may: those go on whose message
    /// has left.
    #[cold]
    pub(super) fn messages_left(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let sending = self.senders.at(slot);
        let (flow, class, sent) =
            (sending.opening.flow, sending.opening.class, sending.sender.sent());
        let shared = self.shared.clone();
        let Some(job) = shared.job(class) else { return };
        let connections = &mut self.ranks.connections;
        let left = connections.left(flow, sent);
        sending.is_awaited = connections.awaited.contains_key(&flow);
        for (_, key) in left {
            self.go_on_behind(now, class, job, key, fabric);
        }
    }

    /// The messages of a lane go whose turn it is.
    fn go_on_behind(
        &mut self,
        now: Time,
        class: u16,
        job: &Arc<JobPlan>,
        key: LaneKey,
        fabric: &mut Fabric,
    ) {
        let from = key.0 - job.first_rank;
        loop {
            let lane = self.ranks.connections.lanes.get_mut(&key);
            let Some(next) = lane.and_then(|lane| lane.behind.pop_front()) else { return };
            let leg = Leg { class, job, from, to: next.to, channel: next.channel };
            if self.is_leaving(leg, &next.message) {
                let lane = self.ranks.connections.lanes.entry(key).or_default();
                return lane.behind.push_front(next);
            }
            self.admit(now, leg, next.at, next.message, fabric);
        }
    }

    /// Sends a message now, or when one of the rank's connections of one message each has ended; it
    /// has waited since `at`.
    fn admit(&mut self, now: Time, leg: Leg, at: Time, message: Message, fabric: &mut Fabric) {
        let Leg { to, channel, .. } = leg;
        if leg.job.connections == Connections::PerMessage {
            let own = self.ranks.connections.own.entry((leg.rank(), channel)).or_default();
            if own.open == OPEN {
                return own.waiting.push_back(Behind { to, channel, at, message });
            }
        }
        self.carry(now, leg, at, message, fabric);
    }

    /// The connection of a rank's next message, which may not be open yet.
    fn connection_of(&mut self, leg: Leg) -> FlowId {
        if leg.job.connections == Connections::Lasting {
            return leg.flow(0);
        }
        let own = self.ranks.connections.own.entry((leg.rank(), leg.channel)).or_default();
        own.open += 1;
        loop {
            let flow = leg.flow(own.opened);
            own.opened = own.opened.wrapping_add(1);
            if self.senders.slot_of(flow).is_none() {
                return flow;
            }
        }
    }

    /// Sends a message of a rank, which has waited since `at`, on a connection that is opened where
    /// it is not.
    fn carry(&mut self, now: Time, leg: Leg, at: Time, message: Message, fabric: &mut Fabric) {
        let flow = self.connection_of(leg);
        let opening = leg.opening(now, flow);
        let slot = match self.senders.slot_of(flow) {
            Some(slot) => slot,
            None => self.open(now, opening, self.shared.handshake, fabric),
        };
        let sending = self.senders.at(slot);
        sending.sender.write(now, message.bytes);
        let ends = sending.sender.written();
        if let Some(turn) = message.turn {
            let lane = self.ranks.connections.lanes.entry(leg.lane(&message)).or_default();
            lane.last = Some(((message.round, turn), flow, ends));
        }
        let message = Posted { ends, at, message };
        self.notify(now, opening.dst, Note::Posted { flow, message }, fabric);
        self.pump(now, slot, fabric);
    }

    /// A connection of one message has ended: the next that waits goes, and lanes that wait for its
    /// message, which may never have left in the sender's count: a late acknowledgement, or that of
    /// a copy that TLT forced out, ends it after a timeout.
    pub(super) fn message_ended(&mut self, now: Time, ended: &Opening, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let Some(job) = shared.job(ended.class) else { return };
        let (from, channel) = (job.sender(ended.flow), job.channel(ended.flow));
        let number = job.first_rank + from;
        let Some(own) = self.ranks.connections.own.get_mut(&(number, channel)) else { return };
        own.open -= 1;
        if let Some(Behind { to, at, message, .. }) = own.waiting.pop_front() {
            let leg = Leg { class: ended.class, job, from, to, channel };
            self.carry(now, leg, at, message, fabric);
        }
        for (_, key) in self.ranks.connections.left(ended.flow, u64::MAX) {
            self.go_on_behind(now, ended.class, job, key, fabric);
        }
    }

    /// A message will come on a connection.
    pub(super) fn expect_message(&mut self, flow: FlowId, posted: Posted) {
        let Some(slot) = self.receivers.slot_of(flow) else { return };
        let receiving = self.receivers.at(slot);
        receiving.ends = receiving.ends.min(posted.ends);
        self.ranks.connections.posted.entry(flow).or_default().push_back(posted);
    }

    /// Messages are delivered: records them, and calls their rank.
    #[cold]
    pub(super) fn take_messages(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let receiving = self.receivers.at(slot);
        let (opening, delivered) = (receiving.opening, receiving.delivered);
        let Some(job) = shared.job(opening.class) else { return };
        loop {
            let posted = &mut self.ranks.connections.posted;
            let Some(queue) = posted.get_mut(&opening.flow) else { return };
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
            let call = |rank: &mut Rank, asked: &mut _| {
                rank.arrived(now, from, &posted.message, &job.work, asked);
            };
            self.call_rank(now, opening.class, job, rank, call, fabric);
        }
    }

    /// Records of the messages that have not arrived, at the end of a run.
    pub(super) fn not_arrived(&mut self, rest: &mut Vec<FlowRecord>) {
        let RankConnections { posted, own, lanes, .. } =
            std::mem::take(&mut self.ranks.connections);
        for (flow, queue) in posted {
            let Some(slot) = self.receivers.slot_of(flow) else { continue };
            let opening = self.receivers.at(slot).opening;
            let records = queue.iter().map(|it| message_record(&self.shared, &opening, it, None));
            rest.extend(records);
        }
        let mut waiting = |number, opened, behind: Behind| {
            let Some((class, job, from)) = self.shared.plan.traffic.job_of(number) else { return };
            let Behind { to, channel, at, message } = behind;
            let leg = Leg { class, job, from, to, channel };
            let opening = leg.opening(at, leg.flow(opened));
            let posted = Posted { ends: message.bytes, at, message };
            rest.push(message_record(&self.shared, &opening, &posted, None));
        };
        for ((number, _), own) in own {
            for (later, behind) in (0..).zip(own.waiting) {
                waiting(number, own.opened.wrapping_add(later), behind);
            }
        }
        for ((number, ..), lane) in lanes {
            lane.behind.into_iter().for_each(|behind| waiting(number, 0, behind));
        }
    }
}

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
        let ends = Ends { class, src, dst };
        let handshake = if opens { ideal.handshake(plan, ends) } else { Time::ZERO };
        handshake.saturating_add(ideal.message(plan, ends, bytes))
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
