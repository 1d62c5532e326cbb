//! One rank of a program at work, over any network.
//!
//! The rules are LogGOPS' (LogGOPSim). A rank has clocks: one a cpu, and two a NIC, of sending and
//! of receiving. An operation begins when it is released and its clocks allow; without a dependency
//! operations begin in the order of issue. With o the cost of a message on the cpu, O that of a
//! byte, g the gap of a message at the NIC and G that of a byte, a message of s bytes:
//!
//! - *send* at t: the cpu is busy until t + o + (s − 1)O, the NIC until t + g + (s − 1)G. The
//!   network has the message at t + o, and an eager send ends then.
//! - *arrival* at τ, when the network has brought it and cpu and NIC are free (both by the
//!   sender's numbers): the cpu is busy until τ + o + (s − 1) max(O, G), the NIC until
//!   τ + g + (s − 1)G. Then it is matched.
//! - *receive*: posted when it is released; it ends when the message is matched, and its successors
//!   begin when the cpu has taken the message.
//! - a message larger than the *rendezvous* size: its send ends when it is matched. Without such a
//!   size each send ends when its message has arrived, as in ASTRA-sim with its flow.
//!
//! On a network of packets o and O stay as they are given, and g and G are zero: there the NIC
//! and the links take their time.
//!
//! Invariant: every operation begins and ends once; what is left at the end is named by
//! [`Executor::unmatched`].

use super::carrier::{Carrier, Costs, Piece, Unmatched};
use super::matching::{Arrival, Matching};
use super::{Action, Program, RankProgram};
use crate::collective::Send;
use crate::computations::Computations;
use crate::lanes::{Early, Exit, Lanes};
use millpond_core::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// An occasion for a rank to act.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Start,
    Wake,
    Arrived(Arrival),
    /// A message of a collective has arrived.
    Piece(Piece),
    /// The message of this operation has found its receive.
    Matched(u32),
}

/// The time, and the surroundings of a rank at it.
pub struct Moment<'a, C> {
    pub now: Time,
    pub program: &'a Program,
    pub carrier: &'a mut C,
}

/// A collective's way to the carrier.
struct OfCall<'a, C> {
    key: (u32, u32),
    rank: u32,
    program: &'a Program,
    carrier: &'a mut C,
}

impl<C: Carrier> Exit for OfCall<'_, C> {
    fn send(&mut self, lane: u32, turn: u32, _channel: u32, Send { to, bytes, step }: Send) {
        let (groups, number) = self.key;
        let to = self.program.groups[groups as usize].rank_at(self.rank, to);
        self.carrier.send_piece(to, Piece { groups, number, lane, step, turn, bytes });
    }
    fn wake(&mut self, at: Time) {
        self.carrier.wake(at);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// An operation is released, or tries again.
    Begin(u32),
    /// A send's message goes to the network.
    Depart(u32),
    End(u32),
    /// The message of this number among `arriving` has come, or tries again.
    Arrive(u64),
    /// The next of the communications that go one at a time begins, if none is under way.
    Choose,
}

#[derive(Clone, Debug)]
pub struct Executor {
    rank: u32,
    costs: Costs,
    /// By operation: others that it still waits for, and when it can begin as far as is known.
    left: Vec<u32>,
    /// Ordered by time, and then in the order of issue.
    due: BinaryHeap<Reverse<(Time, u64, Due)>>,
    issued: u64,
    arriving: BTreeMap<u64, Arrival>,
    cpus: BTreeMap<u8, Time>,
    sending: BTreeMap<u8, Time>,
    receiving: BTreeMap<u8, Time>,
    matching: Matching,
    /// Sends that wait for their receive.
    rendezvous: Vec<u32>,
    /// Of communications that go one at a time: the one under way.
    under_way: Option<u32>,
    /// Those that are released and wait for it.
    queued: BTreeSet<u32>,
    /// By division and number there: the collectives under way, each with its operation and call.
    calls: BTreeMap<(u32, u32), (u32, u32, Lanes)>,
    /// The same of collectives that have not begun: what has arrived.
    early: BTreeMap<(u32, u32), Early>,
    open: u32,
    begun: u32,
    /// For which time it has asked to be called.
    asked: Option<Time>,
    /// The latest of its clocks and ends.
    finish: Time,
    computations: Computations,
}

impl Executor {
    /// A rank that has not begun.
    pub fn new(rank: u32, program: &Program, costs: Costs) -> Executor {
        let own = &program.ranks[rank as usize];
        Executor {
            rank,
            costs,
            left: own.operations.iter().map(|operation| operation.waits).collect(),
            due: BinaryHeap::new(),
            issued: 0,
            arriving: BTreeMap::new(),
            cpus: BTreeMap::new(),
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            matching: Matching::default(),
            rendezvous: Vec::new(),
            open: own.operations.len() as u32,
            under_way: None,
            queued: BTreeSet::new(),
            calls: BTreeMap::new(),
            early: BTreeMap::new(),
            begun: 0,
            asked: None,
            finish: Time::ZERO,
            computations: Computations::of_job(program.ranks.len() as u32),
        }
    }

    pub fn is_done(&self) -> bool {
        self.open == 0
    }

    /// When the rank's cpus and operations are done, as far as it has come.
    pub fn finish(&self) -> Time {
        self.finish
    }

    pub fn computations(&self) -> &Computations {
        &self.computations
    }

    /// Acts on an event, and then on all that has become due.
    pub fn act<C: Carrier>(&mut self, event: Event, moment: &mut Moment<'_, C>) {
        let acts = match event {
            Event::Start => self.start(moment),
            Event::Wake => true,
            Event::Arrived(message) => {
                if self.costs.eager.is_none() {
                    moment.carrier.match_of(&message);
                }
                self.arriving.insert(self.issued, message);
                self.push(moment.now, Due::Arrive(self.issued));
                true
            }
            Event::Piece(piece) => self.arrived_piece(&piece, moment),
            Event::Matched(operation) => self.matched(operation, moment),
        };
        if acts {
            self.wake(moment);
        }
    }

    /// The program begins: sends are issued before receives, and these before computations.
    fn start<C>(&mut self, moment: &Moment<'_, C>) -> bool {
        let own = self.own(moment);
        let class = |operation: u32| match own.operations[operation as usize].action {
            Action::Send { .. } => 0,
            Action::Receive { .. } => 1,
            Action::Compute | Action::Collective { .. } => 2,
        };
        for wanted in 0..3 {
            for operation in 0..self.left.len() as u32 {
                if self.left[operation as usize] == 0 && class(operation) == wanted {
                    self.push(moment.now, Due::Begin(operation));
                }
            }
        }
        true
    }

    /// A send's message is matched, or has arrived where nothing waits for receives.
    fn matched<C>(&mut self, operation: u32, moment: &Moment<'_, C>) -> bool {
        let Some(at) = self.rendezvous.iter().position(|other| *other == operation) else {
            return false;
        };
        self.rendezvous.swap_remove(at);
        let cpu = self.own(moment).operations[operation as usize].cpu;
        let clock = self.cpus.entry(cpu).or_default();
        *clock = moment.now.max(*clock);
        self.push(moment.now, Due::End(operation));
        true
    }

    /// Does all that is due by now.
    fn wake<C: Carrier>(&mut self, moment: &mut Moment<'_, C>) {
        let now = moment.now;
        if self.asked.is_some_and(|at| at <= now) {
            self.asked = None;
        }
        while let Some(Reverse((at, number, due))) = self.due.peek().copied() {
            if at > now {
                if self.asked.is_none_or(|asked| at < asked) {
                    self.asked = Some(at);
                    moment.carrier.wake(at);
                }
                return;
            }
            self.due.pop();
            moment.now = at;
            match due {
                Due::Begin(operation) => self.begin(number, operation, moment),
                Due::Depart(operation) => self.depart(operation, moment),
                Due::End(operation) => self.end(operation, moment),
                Due::Arrive(message) => self.take(number, message, moment),
                Due::Choose => self.choose(moment),
            }
        }
    }

    fn push(&mut self, at: Time, due: Due) {
        self.due.push(Reverse((at, self.issued, due)));
        self.issued += 1;
    }

    /// An operation that is released begins, or waits for its clocks.
    fn begin<C: Carrier>(&mut self, number: u64, operation: u32, moment: &mut Moment<'_, C>) {
        let work = self.own(moment).operations[operation as usize];
        let cpu = self.cpus.get(&work.cpu).copied().unwrap_or_default();
        let gate = match work.action {
            Action::Receive { .. } | Action::Collective { .. } => moment.now,
            Action::Compute => cpu,
            Action::Send { .. } => {
                self.sending.get(&work.nic).copied().unwrap_or_default().max(cpu)
            }
        };
        if gate > moment.now {
            return self.due.push(Reverse((gate, number, Due::Begin(operation))));
        }
        let is_queued = matches!(work.action, Action::Send { .. } | Action::Collective { .. });
        if moment.program.one_at_a_time && is_queued {
            self.queued.insert(operation);
            return self.push(moment.now, Due::Choose);
        }
        self.carry_out(operation, moment);
    }

    /// Begins the first of the communications that go one at a time, if none is under way. Those
    /// that are released at one time are all queued by then.
    fn choose<C: Carrier>(&mut self, moment: &mut Moment<'_, C>) {
        if self.under_way.is_none()
            && let Some(operation) = self.queued.pop_first()
        {
            self.under_way = Some(operation);
            self.carry_out(operation, moment);
        }
    }

    fn carry_out<C: Carrier>(&mut self, operation: u32, moment: &mut Moment<'_, C>) {
        let (now, work) = (moment.now, self.own(moment).operations[operation as usize]);
        let Costs { message, byte, gap, gap_byte, .. } = self.costs;
        let rest = work.size.saturating_sub(1);
        let cpu = self.cpus.entry(work.cpu).or_default();
        match work.action {
            Action::Compute => {
                let until = now.saturating_add(Time::from_ns(1).saturating_mul(work.size));
                *cpu = until;
                self.computations.add(now, until);
                self.push(until, Due::End(operation));
            }
            Action::Send { .. } => {
                let has = now.saturating_add(message);
                *cpu = has.saturating_add(byte.saturating_mul(rest));
                let free = now.saturating_add(gap).saturating_add(gap_byte.saturating_mul(rest));
                self.finish = self.finish.max(*cpu);
                self.sending.insert(work.nic, free);
                self.push(has, Due::Depart(operation));
            }
            Action::Collective { call } => self.begin_call(operation, call, work.tag, moment),
            Action::Receive { from } => {
                if let Some(message) = self.matching.post(operation, from, work.tag) {
                    self.matched_with(operation, &message, moment);
                }
            }
        }
        self.begun += 1;
        self.release(now, self.own(moment).after_begin(operation));
    }

    /// A collective begins, which has this number in its division.
    fn begin_call<C: Carrier>(
        &mut self,
        operation: u32,
        call: u32,
        number: u32,
        moment: &mut Moment<'_, C>,
    ) {
        let Moment { now, program, carrier } = moment;
        let joined = &program.calls[call as usize];
        let key = (joined.groups, number);
        let early = self.early.remove(&key).unwrap_or_default();
        let place = program.groups[joined.groups as usize].place(self.rank);
        let mut lanes = Lanes::new(place, &joined.collective, early);
        let mut exit = OfCall { key, rank: self.rank, program, carrier: *carrier };
        lanes.run(*now, &joined.collective, &mut exit);
        match lanes.is_over() {
            true => self.push(*now, Due::End(operation)),
            false => drop(self.calls.insert(key, (operation, call, lanes))),
        }
    }

    /// A message of a collective has arrived. Whether the collective is under way.
    fn arrived_piece<C: Carrier>(&mut self, piece: &Piece, moment: &mut Moment<'_, C>) -> bool {
        let Moment { now, program, carrier } = moment;
        let key = (piece.groups, piece.number);
        let Some((operation, call, lanes)) = self.calls.get_mut(&key) else {
            let early = self.early.entry(key).or_default();
            *early.entry((piece.lane, piece.step)).or_insert(0) += 1;
            return false;
        };
        let collective = &program.calls[*call as usize].collective;
        let mut exit = OfCall { key, rank: self.rank, program, carrier: *carrier };
        lanes.arrived(*now, piece.lane, piece.step, collective, &mut exit);
        if lanes.is_over() {
            let operation = *operation;
            self.calls.remove(&key);
            self.push(*now, Due::End(operation));
        }
        true
    }

    fn own<'a, C>(&self, moment: &Moment<'a, C>) -> &'a RankProgram {
        &moment.program.ranks[self.rank as usize]
    }

    /// A send's message goes to the network; an eager send ends with that.
    fn depart<C: Carrier>(&mut self, operation: u32, moment: &mut Moment<'_, C>) {
        let work = self.own(moment).operations[operation as usize];
        let Action::Send { to } = work.action else {
            return;
        };
        match self.costs.eager.is_some_and(|most| work.size <= most) {
            true => self.push(moment.now, Due::End(operation)),
            false => self.rendezvous.push(operation),
        }
        let (from, tag, cpu, nic) = (self.rank, work.tag, work.cpu, work.nic);
        moment.carrier.send(to, Arrival { from, tag, bytes: work.size, operation, cpu, nic });
    }

    /// A message is taken by cpu and NIC, or waits for them.
    fn take<C: Carrier>(&mut self, number: u64, arrival: u64, moment: &mut Moment<'_, C>) {
        let Some(message) = self.arriving.get(&arrival).copied() else {
            return;
        };
        let now = moment.now;
        let cpu = self.cpus.entry(message.cpu).or_default();
        let gate = self.receiving.get(&message.nic).copied().unwrap_or_default().max(*cpu);
        if gate > now {
            return self.due.push(Reverse((gate, number, Due::Arrive(arrival))));
        }
        self.arriving.remove(&arrival);
        let Costs { message: own, byte, gap, gap_byte, .. } = self.costs;
        let rest = message.bytes.saturating_sub(1);
        *cpu = now.saturating_add(own).saturating_add(byte.max(gap_byte).saturating_mul(rest));
        self.finish = self.finish.max(*cpu);
        let free = now.saturating_add(gap).saturating_add(gap_byte.saturating_mul(rest));
        self.receiving.insert(message.nic, free);
        if let Some(operation) = self.matching.arrive(message) {
            self.matched_with(operation, &message, moment);
        }
    }

    /// A receive has its message: it ends when the cpu has taken it.
    fn matched_with<C: Carrier>(
        &mut self,
        operation: u32,
        message: &Arrival,
        moment: &mut Moment<'_, C>,
    ) {
        let clock = self.cpus.get(&message.cpu).copied().unwrap_or_default();
        if self.costs.eager.is_some_and(|most| message.bytes > most) {
            moment.carrier.match_of(message);
        }
        self.push(moment.now.max(clock), Due::End(operation));
    }

    fn end<C>(&mut self, operation: u32, moment: &Moment<'_, C>) {
        let now = moment.now;
        self.open -= 1;
        self.finish = self.finish.max(now);
        self.release(now, self.own(moment).after_end(operation));
        if self.under_way == Some(operation) {
            self.under_way = None;
            self.push(now, Due::Choose);
        }
    }

    /// Operations wait for one thing less.
    fn release(&mut self, now: Time, waiting: &[u32]) {
        for operation in waiting {
            let left = &mut self.left[*operation as usize];
            *left -= 1;
            if *left == 0 {
                self.push(now, Due::Begin(*operation));
            }
        }
    }

    /// The rest, when nothing is due any more. A message that nothing waits for is no part of it.
    pub fn unmatched(&self) -> Unmatched {
        let messages = self.matching.unexpected().filter(|_| self.costs.eager.is_some());
        Unmatched {
            receives: self.matching.posted().collect(),
            messages: messages.map(|message| (message.from, message.operation)).collect(),
            sends: self.rendezvous.clone(),
            calls: self.calls.values().map(|(operation, ..)| *operation).collect(),
            waiting: self.left.len() as u32 - self.begun,
        }
    }
}
