//! Credits: a sender may have in flight what the receiver has granted it from its memory.
//!
//! Backdraft (Sanaee, Shahinfar, Antichi, Stephens: Backdraft: a Lossless Virtual Switch that
//! Prevents the Slow Receiver Problem, NSDI 2022) names credits among what it does without, for
//! their extra round trip: who has none asks, and waits for a grant. It describes no protocol; this
//! one is this project's.
//!
//! A credit is room for one packet, whatever its length. The *spender* asks for what it would send
//! beyond what it has. The *granter* grants in turn, a few packets at a time, while what is granted
//! and what waits have room in its memory together. A flow has no more than a window of credits
//! that have not been used.
//!
//! All state is soft. A grant holds for its TTL: what was not sent until then is not sent, and what
//! has not come a feedback time later does not come, so its room is granted again. The expiry
//! repairs lost grants, lost packets, and credits that nobody needs. A flow without credits asks
//! again after `repeat`, and who has not asked for twice as long is no longer granted anything.
//!
//! Invariant: where nothing takes longer than a feedback time to come, the packets under way and
//! those that wait never have more than the memory.

use super::{Change, FlowKey, PeerId, Record, Target, Word};
use crate::units::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Packets that may be granted or wait.
    pub memory: u64,
    /// Credits that a flow may have and not have used.
    pub window: u64,
    /// Credits granted at a time, at most.
    pub grant: u64,
    pub ttl: Time,
    /// From a grant until its packet comes, beside the time that the sender takes.
    pub feedback: Time,
    /// After so long without a credit a flow asks again.
    pub repeat: Time,
}

/// One grant that has not ended.
#[derive(Clone, Debug)]
struct Grant {
    seq: u64,
    sent: Time,
    packets: u64,
    left: u64,
}

/// The requests and grants of a flow.
#[derive(Clone, Debug, Default)]
struct Account {
    wants: u64,
    asked: Time,
    is_in_line: bool,
    /// Granted packets that have not come.
    open: u64,
    grants: VecDeque<Grant>,
}

impl Account {
    /// Packets of its next grant: a whole one or all that it wants, if its window has that room.
    fn next(&self, terms: &Terms) -> u64 {
        let packets = terms.grant.min(self.wants);
        if self.open + packets > terms.window { 0 } else { packets }
    }
}

type Flow = (PeerId, FlowKey);

/// The receiver's side, of one memory.
#[derive(Clone, Debug)]
pub struct Granter {
    terms: Terms,
    flows: BTreeMap<Flow, Account>,
    /// Those that are granted in turn.
    line: VecDeque<Flow>,
    /// Packets asked for and not granted, and granted and not come, of all flows.
    wanted: u64,
    open: u64,
    /// In the order of time: when a grant's packets do not come any more.
    ends: VecDeque<(Time, Flow, u64)>,
    late: u64,
}

impl Granter {
    /// Nobody has asked. A grant is a quarter of the memory at most.
    pub fn new(terms: Terms) -> Granter {
        let (memory, window) = (terms.memory.max(1), terms.window.max(1));
        let grant = terms.grant.min(memory / 4).min(window).max(1);
        let terms = Terms { memory, grant, window, ..terms };
        Granter {
            terms,
            flows: BTreeMap::new(),
            line: VecDeque::new(),
            wanted: 0,
            open: 0,
            ends: VecDeque::new(),
            late: 0,
        }
    }

    /// A flow of `peer` would send so many packets beyond what was granted up to number `latest`.
    pub fn asked(&mut self, now: Time, peer: PeerId, key: FlowKey, wants: u64, latest: u64) {
        let account = self.flows.entry((peer, key)).or_default();
        // Grants under way were not known when the flow asked.
        let is_under_way =
            |grant: &&Grant| grant.seq > latest && grant.sent + self.terms.feedback > now;
        let under_way: u64 =
            account.grants.iter().filter(is_under_way).map(|grant| grant.packets).sum();
        let wants = wants.saturating_sub(under_way);
        self.wanted = self.wanted - account.wants + wants;
        (account.wants, account.asked) = (wants, now);
        self.queue((peer, key));
    }

    /// A flow that wants something gets in line, if its window has room for a whole grant.
    fn queue(&mut self, flow: Flow) {
        let Some(account) = self.flows.get_mut(&flow) else { return };
        if account.next(&self.terms) > 0 && !account.is_in_line {
            account.is_in_line = true;
            self.line.push_back(flow);
        }
    }

    /// A packet of a flow has come.
    pub fn arrived(&mut self, peer: PeerId, key: FlowKey) {
        let Some(account) = self.flows.get_mut(&(peer, key)) else { return self.late += 1 };
        let Some(grant) = account.grants.iter_mut().find(|grant| grant.left > 0) else {
            return self.late += 1;
        };
        grant.left -= 1;
        account.open -= 1;
        self.open -= 1;
        self.queue((peer, key));
    }

    /// Takes back what does not come any more.
    pub fn expire(&mut self, now: Time) {
        while let Some((_, flow, seq)) = self.ends.pop_front_if(|(at, ..)| *at <= now) {
            let Some(account) = self.flows.get_mut(&flow) else { continue };
            while let Some(grant) = account.grants.pop_front_if(|grant| grant.seq <= seq) {
                account.open -= grant.left;
                self.open -= grant.left;
            }
            if account.grants.is_empty() && account.wants == 0 && !account.is_in_line {
                self.flows.remove(&flow);
            } else {
                self.queue(flow);
            }
        }
    }

    /// When something may be granted because it was not used.
    pub fn deadline(&self) -> Option<Time> {
        self.ends.front().filter(|_| self.wanted > 0).map(|(at, ..)| *at)
    }

    /// The next grant, numbered `seq`, where so many packets wait. To be asked until there is no
    /// more.
    pub fn next(&mut self, now: Time, waiting: u64, seq: u64) -> Option<(PeerId, Record)> {
        let Terms { memory, ttl, feedback, repeat, .. } = self.terms;
        loop {
            let flow = *self.line.front()?;
            let account = self.flows.get_mut(&flow)?;
            if account.asked + repeat * 2 <= now {
                self.wanted -= std::mem::take(&mut account.wants);
            }
            let packets = account.next(&self.terms);
            if packets == 0 {
                account.is_in_line = false;
                self.line.pop_front();
                if account.grants.is_empty() && account.wants == 0 {
                    self.flows.remove(&flow);
                }
                continue;
            }
            if self.open + waiting + packets > memory {
                return None;
            }
            account.wants -= packets;
            self.wanted -= packets;
            account.open += packets;
            account.grants.push_back(Grant { seq, sent: now, packets, left: packets });
            account.is_in_line = false;
            self.open += packets;
            self.ends.push_back((now + ttl + feedback, flow, seq));
            self.line.pop_front();
            self.queue(flow);
            let (ttl, queued) = (micros(ttl), u32::try_from(packets).unwrap_or(u32::MAX));
            let target = Target::Flow(flow.1);
            return Some((flow.0, Record { word: Word::Grant, target, seq, queued, rate: 0, ttl }));
        }
    }

    /// Granted packets that have not come.
    pub fn open(&self) -> u64 {
        self.open
    }
    /// Packets that came without a grant, or after its end.
    pub fn late(&self) -> u64 {
        self.late
    }
}

#[derive(Clone, Debug)]
struct Purse {
    latest: u64,
    /// Grants: until when, and how many credits are left.
    credits: VecDeque<(Time, u32)>,
    /// Packets asked for and not granted yet, and since when.
    asked: u32,
    since: Time,
    /// It waits, until then at most.
    held: Option<Time>,
}

/// The sender's side, of all its flows.
#[derive(Clone, Debug)]
pub struct Spender {
    repeat: Time,
    flows: BTreeMap<Flow, Purse>,
    to_ask: BTreeSet<Flow>,
    /// Flows that wait, and when they are to try again.
    again: BTreeSet<(Time, Flow)>,
    changes: VecDeque<Change>,
}

/// Flows are remembered for so many times `repeat`.
const REMEMBERED: u64 = 100;

impl Spender {
    /// No flow has a credit. Flows ask again after `repeat`.
    pub fn new(repeat: Time) -> Spender {
        Spender {
            repeat,
            flows: BTreeMap::new(),
            to_ask: BTreeSet::new(),
            again: BTreeSet::new(),
            changes: VecDeque::new(),
        }
    }

    /// How many packets a flow may send, of those that it would. None: it waits, until
    /// [`Spender::next_change`] names it.
    pub fn admit(&mut self, now: Time, peer: PeerId, key: FlowKey, wants: u32) -> u32 {
        let flow = (peer, key);
        let purse = self.flows.entry(flow).or_insert_with(|| Purse {
            latest: 0,
            credits: VecDeque::new(),
            asked: 0,
            since: now,
            held: None,
        });
        while purse.credits.pop_front_if(|(until, left)| *until <= now || *left == 0).is_some() {}
        let has: u32 = purse.credits.iter().map(|(_, left)| *left).sum();
        if wants > has.saturating_add(purse.asked)
            || (wants > has && now >= purse.since + self.repeat)
        {
            (purse.asked, purse.since) = (wants - has, now);
            self.to_ask.insert(flow);
        }
        if has == 0 && wants > 0 && purse.held.is_none() {
            let at = purse.since + self.repeat;
            purse.held = Some(at);
            self.again.insert((at, flow));
        }
        has.min(wants)
    }

    /// A flow has sent so many packets.
    pub fn spent(&mut self, peer: PeerId, key: FlowKey, mut packets: u32) {
        let Some(purse) = self.flows.get_mut(&(peer, key)) else { return };
        for (_, left) in &mut purse.credits {
            let spent = packets.min(*left);
            *left -= spent;
            packets -= spent;
        }
    }

    /// The receiver's switch has granted something.
    pub fn on_record(&mut self, now: Time, peer: PeerId, record: &Record) {
        let (Word::Grant, Target::Flow(key)) = (record.word, record.target) else { return };
        let Some(purse) =
            self.flows.get_mut(&(peer, key)).filter(|purse| record.seq > purse.latest)
        else {
            return;
        };
        purse.latest = record.seq;
        purse.asked = purse.asked.saturating_sub(record.queued);
        purse.credits.push_back((now + Time::from_us(u64::from(record.ttl)), record.queued));
        self.release((peer, key));
    }

    /// A flow that waited may try.
    fn release(&mut self, (peer, key): Flow) {
        let Some(purse) = self.flows.get_mut(&(peer, key)) else { return };
        if let Some(at) = purse.held.take() {
            self.again.remove(&(at, (peer, key)));
            self.changes.push_back(Change { peer, target: Target::Flow(key), is_held: false });
        }
    }

    /// Flows that have waited for long try again, and ask if they still would send.
    pub fn expire(&mut self, now: Time) {
        while let Some(&(_, flow)) = self.again.first().filter(|(at, _)| *at <= now) {
            self.again.pop_first();
            self.flows.entry(flow).and_modify(|purse| purse.asked = 0);
            self.release(flow);
        }
    }

    /// Forgets flows that have been silent for long.
    pub fn age(&mut self, now: Time) {
        let lasts = self.repeat.saturating_mul(REMEMBERED);
        self.flows
            .retain(|_, purse| purse.held.is_some() || purse.since.saturating_add(lasts) > now);
    }

    /// When flows are to ask, or to try again.
    pub fn deadline(&self) -> Option<Time> {
        match self.to_ask.is_empty() {
            false => Some(Time::ZERO),
            true => self.again.first().map(|(at, _)| *at),
        }
    }

    pub fn next_ask(&mut self) -> Option<(PeerId, Record)> {
        loop {
            let (peer, key) = self.to_ask.pop_first()?;
            let Some(purse) = self.flows.get(&(peer, key)) else { continue };
            let (target, seq, queued) = (Target::Flow(key), purse.latest, purse.asked);
            return Some((peer, Record { word: Word::Ask, target, seq, queued, rate: 0, ttl: 0 }));
        }
    }

    /// Whether a flow waits for credits.
    pub fn is_held(&self, peer: PeerId, key: &FlowKey) -> bool {
        self.flows.get(&(peer, *key)).is_some_and(|purse| purse.held.is_some())
    }

    /// A flow that may try to send again. To be asked until there is no more.
    pub fn next_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }
}

fn micros(time: Time) -> u32 {
    u32::try_from(time.as_ps() / Time::from_us(1).as_ps()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    const TERMS: Terms = Terms {
        memory: 64,
        window: 32,
        grant: 8,
        ttl: Time::from_us(100),
        feedback: Time::from_us(20),
        repeat: Time::from_us(500),
    };

    fn key(flow: u128) -> FlowKey {
        FlowKey { source: flow, destination: 9, source_port: 0, destination_port: 0, protocol: 0 }
    }

    /// All that may be granted now, by flow.
    fn grants(granter: &mut Granter, now: Time, waiting: u64, seq: &mut u64) -> Vec<(u128, u32)> {
        let next = || {
            *seq += 1;
            let (_, record) = granter.next(now, waiting, *seq)?;
            let Target::Flow(key) = record.target else { return None };
            Some((key.source, record.queued))
        };
        std::iter::from_fn(next).collect()
    }

    /// The sheet's fact of credits: who has none asks, and waits for the answer.
    #[test]
    fn a_flow_sends_nothing_before_it_was_granted_something() {
        let (mut spender, mut granter) = (Spender::new(TERMS.repeat), Granter::new(TERMS));
        assert_eq!(
            (spender.admit(Time::ZERO, 1, key(5), 3), spender.is_held(1, &key(5))),
            (0, true)
        );
        let (peer, ask) = spender.next_ask().expect("it asks");
        assert_eq!((peer, ask.word, ask.queued, spender.next_ask()), (1, Word::Ask, 3, None));
        granter.asked(Time::from_us(2), 7, key(5), u64::from(ask.queued), ask.seq);
        let (to, grant) = granter.next(Time::from_us(2), 0, 1).expect("there is room");
        assert_eq!((to, grant.queued, granter.open()), (7, 3, 3));
        spender.on_record(Time::from_us(4), 1, &grant);
        let change = spender.next_change().expect("it may go on");
        assert_eq!((change.target, change.is_held), (Target::Flow(key(5)), false));
        assert_eq!(spender.admit(Time::from_us(4), 1, key(5), 3), 3);
        spender.spent(1, key(5), 3);
        assert_eq!(
            spender.admit(Time::from_us(4), 1, key(5), 1),
            0,
            "each credit is for one packet"
        );
        for _ in 0..3 {
            granter.arrived(7, key(5));
        }
        assert_eq!((granter.open(), granter.late()), (0, 0));
    }

    /// Eight packets at a time: two flows take turns, each to its window of 32, and 64 in all.
    #[test]
    fn flows_take_turns_within_their_windows_and_the_memory() {
        let (mut granter, mut seq) = (Granter::new(TERMS), 0);
        granter.asked(Time::ZERO, 7, key(1), 100, 0);
        granter.asked(Time::ZERO, 8, key(2), 100, 0);
        let first = grants(&mut granter, Time::ZERO, 0, &mut seq);
        assert_eq!(first, [(1, 8), (2, 8), (1, 8), (2, 8), (1, 8), (2, 8), (1, 8), (2, 8)]);
        // Packets that have come wait: they have their place still.
        for _ in 0..8 {
            granter.arrived(7, key(1));
        }
        assert_eq!(grants(&mut granter, Time::ZERO, 8, &mut seq), []);
        assert_eq!(
            grants(&mut granter, Time::ZERO, 1, &mut seq),
            [],
            "too little for a whole grant"
        );
        assert_eq!(grants(&mut granter, Time::ZERO, 0, &mut seq), [(1, 8)]);
    }

    /// A grant that is lost has its place back after TTL and feedback, not before.
    #[test]
    fn what_does_not_come_is_granted_again() {
        let (mut granter, mut seq) = (Granter::new(Terms { memory: 8, grant: 2, ..TERMS }), 0);
        granter.asked(Time::ZERO, 7, key(1), 8, 0);
        assert_eq!(grants(&mut granter, Time::ZERO, 0, &mut seq).len(), 4);
        granter.arrived(7, key(1));
        granter.asked(Time::from_us(30), 7, key(1), 4, 0);
        assert_eq!(granter.deadline(), Some(Time::from_us(120)));
        granter.expire(Time::from_us(119));
        assert_eq!(
            (granter.open(), grants(&mut granter, Time::from_us(119), 1, &mut seq)),
            (7, vec![])
        );
        granter.expire(Time::from_us(120));
        assert_eq!(
            (granter.open(), grants(&mut granter, Time::from_us(120), 1, &mut seq).len()),
            (0, 2)
        );
        granter.arrived(7, key(1));
        assert_eq!(granter.late(), 0);
    }

    /// An ask that crosses a grant asks for no more than is missing.
    #[test]
    fn an_ask_that_crosses_a_grant_is_not_granted_twice() {
        let (mut granter, mut seq) = (Granter::new(TERMS), 0);
        granter.asked(Time::ZERO, 7, key(1), 6, 0);
        assert_eq!(grants(&mut granter, Time::ZERO, 0, &mut seq), [(1, 6)]);
        granter.asked(Time::from_us(10), 7, key(1), 8, 0);
        assert_eq!(grants(&mut granter, Time::from_us(10), 0, &mut seq), [(1, 2)]);
        granter.asked(Time::from_us(40), 7, key(1), 8, 0);
        assert_eq!(
            grants(&mut granter, Time::from_us(40), 0, &mut seq),
            [(1, 8)],
            "those were lost"
        );
    }

    /// A flow whose whole window was lost is granted anew, without a word of its own.
    #[test]
    fn a_window_that_is_lost_comes_back() {
        let (mut granter, mut seq) = (Granter::new(TERMS), 0);
        granter.asked(Time::ZERO, 7, key(1), 40, 0);
        assert_eq!(grants(&mut granter, Time::ZERO, 0, &mut seq).len(), 4);
        assert_eq!(granter.deadline(), Some(Time::from_us(120)));
        granter.expire(Time::from_us(120));
        assert_eq!(grants(&mut granter, Time::from_us(120), 0, &mut seq), [(1, 8)]);
        granter.expire(Time::from_us(240));
        assert!((granter.deadline(), granter.open()) == (None, 0) && granter.flows.is_empty());
    }

    #[test]
    fn credits_end_and_who_waits_asks_again() {
        let mut spender = Spender::new(TERMS.repeat);
        assert_eq!(spender.admit(Time::ZERO, 1, key(5), 9), 0);
        spender.next_ask();
        let grant = |seq: u64, queued: u32| Record {
            word: Word::Grant,
            target: Target::Flow(key(5)),
            seq,
            queued,
            rate: 0,
            ttl: 100,
        };
        spender.on_record(Time::from_us(4), 1, &grant(3, 4));
        spender.on_record(Time::from_us(5), 1, &grant(3, 4));
        assert_eq!(
            spender.admit(Time::from_us(50), 1, key(5), 9),
            4,
            "a grant that comes twice counts once"
        );
        assert_eq!(spender.next_ask(), None, "five are asked for already");
        assert_eq!(spender.admit(Time::from_us(104), 1, key(5), 9), 0);
        assert_eq!(spender.next_ask().map(|(_, ask)| (ask.seq, ask.queued)), Some((3, 9)));
        assert_eq!(spender.deadline(), Some(Time::from_us(604)));
        while spender.next_change().is_some() {}
        spender.expire(Time::from_us(604));
        assert!(spender.next_change().is_some());
        assert_eq!(
            (
                spender.admit(Time::from_us(604), 1, key(5), 2),
                spender.next_ask().map(|(_, a)| a.queued)
            ),
            (0, Some(2))
        );
    }

    /// Whatever is lost, what waits never has more than the memory: with grants and packets that
    /// take a random time below feedback, and a third of them lost. With a larger memory to grant
    /// from the same run exceeds it.
    #[test]
    fn what_comes_always_has_room() {
        let most = |memory: u64| {
            let mut random = Stream::new(3, "credits");
            let mut granter = Granter::new(Terms { memory, ..TERMS });
            let mut spenders: Vec<Spender> = (0..4).map(|_| Spender::new(TERMS.repeat)).collect();
            let (mut seq, mut waiting, mut most) = (0, 0u64, 0);
            // Grants and packets on their way, by arrival.
            let mut grants: BTreeSet<(Time, usize, u64, u32)> = BTreeSet::new();
            let mut packets: BTreeSet<(Time, u64, usize)> = BTreeSet::new();
            let mut number = 0;
            for us in 0..20_000u64 {
                let now = Time::from_us(us);
                while let Some((_, _, from)) =
                    packets.first().copied().filter(|(at, ..)| *at <= now)
                {
                    packets.pop_first();
                    granter.arrived(from as PeerId, key(from as u128));
                    waiting += 1;
                }
                while let Some((_, to, seq, queued)) =
                    grants.first().copied().filter(|(at, ..)| *at <= now)
                {
                    grants.pop_first();
                    let target = Target::Flow(key(to as u128));
                    let record =
                        Record { word: Word::Grant, target, seq, queued, rate: 0, ttl: 100 };
                    spenders[to].on_record(now, 9, &record);
                }
                most = most.max(waiting);
                waiting -= u64::from(us % 3 == 0).min(waiting);
                granter.expire(now);
                for (from, spender) in spenders.iter_mut().enumerate() {
                    spender.expire(now);
                    let may = spender.admit(now, 9, key(from as u128), 40);
                    let sends = may.min(random.below(4) as u32);
                    spender.spent(9, key(from as u128), sends);
                    for _ in 0..sends {
                        number += 1;
                        let way = Time::from_us(1 + random.below(9));
                        packets.extend((random.below(3) > 0).then_some((now + way, number, from)));
                    }
                    while let Some((_, ask)) = spender.next_ask() {
                        granter.asked(
                            now,
                            from as PeerId,
                            key(from as u128),
                            u64::from(ask.queued),
                            ask.seq,
                        );
                    }
                }
                seq += 1;
                while let Some((to, grant)) = granter.next(now, waiting, seq) {
                    let way = Time::from_us(1 + random.below(9));
                    grants.extend((random.below(3) > 0).then_some((
                        now + way,
                        to as usize,
                        seq,
                        grant.queued,
                    )));
                    seq += 1;
                }
            }
            assert_eq!(granter.late(), 0);
            most
        };
        let with = most(64);
        assert!((9..=64).contains(&with), "{with}");
        assert!(most(1_000) > 64, "the bound was not needed");
    }
}
