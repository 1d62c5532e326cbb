//! Rates: the receiver advertises how fast senders may send, and they keep to it.
//!
//! PicNIC (Kumar and others: PicNIC: Predictable Virtualized NIC, SIGCOMM 2019), as far as it is
//! known here: fair queues at the receiver, congestion control that the receiver drives, and
//! admission with shaping at the sender. The law and its numbers are this project's.
//!
//! The *advertiser* looks at a queue once a period. Where a packet has waited for longer than the
//! target, each host that sends there gets an equal share of what was served in that period, times
//! target over wait and at least a half of it, so that the queue shrinks. Where nothing was served
//! meanwhile, the rate is halved. Where no packet has waited for so long, it grows by a part of
//! itself. From the link's rate on nobody is limited.
//!
//! The *shaper* lets one packet at a time leave for a destination that has a rate, of its flows in
//! turn. A flow that may not leave is held.
//!
//! A rate is soft state: the switch sends it once a period, and it holds for four. A loss of all of
//! these lets the sender go on.
//!
//! Invariant: what leaves for a destination in some time is at most its rate's, and one packet.

use super::{Change, FlowKey, PeerId, Record, Target, Word};
use crate::units::{Rate, Time};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How often a queue is looked at.
    pub period: Time,
    /// How long a packet may wait.
    pub target: Time,
    /// The part of itself by which a rate grows in a period, in thousandths.
    pub growth: u64,
    pub line: Rate,
}

/// A rate holds for so many periods.
const HOLDS: u64 = 4;
/// A host that has sent nothing for so long has no share.
const SILENT: Time = Time::from_ms(1);
/// No rate is lower than the link's divided by this.
const LOWEST: u64 = 10_000;

/// The receiver's side, of one queue.
#[derive(Clone, Debug)]
pub struct Advertiser {
    terms: Terms,
    /// In bits a second; `None`: nobody is limited.
    rate: Option<u64>,
    /// The peers that send there, and when last.
    senders: BTreeMap<PeerId, Time>,
    /// Since the last look: bytes that left, and the longest that one has waited.
    left: u64,
    longest: Time,
    next: Time,
}

impl Advertiser {
    pub fn new(terms: Terms) -> Advertiser {
        Advertiser {
            terms,
            rate: None,
            senders: BTreeMap::new(),
            left: 0,
            longest: Time::ZERO,
            next: Time::MAX,
        }
    }

    /// Data of `sender` has come. Whether it is to be notified of the rate at once.
    pub fn arrived(&mut self, now: Time, sender: PeerId) -> bool {
        if self.next == Time::MAX {
            self.next = now + self.terms.period;
        }
        self.senders.insert(sender, now).is_none() && self.rate.is_some()
    }

    /// A packet of so many bytes that has waited so long has left.
    pub fn left(&mut self, bytes: u64, waited: Time) {
        self.left += bytes;
        self.longest = self.longest.max(waited);
    }

    /// The time of the next [`Advertiser::look`], if there is one.
    pub fn deadline(&self) -> Option<Time> {
        (self.next != Time::MAX).then_some(self.next)
    }

    /// Looks, if it is time. `oldest`: how long the first that waits has. Whether senders are to be
    /// notified.
    pub fn look(&mut self, now: Time, oldest: Time) -> bool {
        if now < self.next {
            return false;
        }
        let Terms { period, target, growth, line } = self.terms;
        let (left, longest) =
            (std::mem::take(&mut self.left), std::mem::take(&mut self.longest).max(oldest));
        self.senders.retain(|_, last| *last + SILENT > now);
        let was = self.rate;
        let active = self.senders.len().max(1) as u64;
        let lowest = (line.bps() / LOWEST).max(1);
        self.rate = if longest > target && left == 0 {
            Some((was.unwrap_or(line.bps() / active) / 2).max(lowest))
        } else if longest > target {
            let served = u128::from(left) * 8 * u128::from(Time::from_s(1).as_ps())
                / u128::from(period.as_ps());
            let share = served / u128::from(active);
            let less =
                (share * u128::from(target.as_ps()) / u128::from(longest.as_ps())).max(share / 2);
            Some(u64::try_from(less).unwrap_or(u64::MAX).clamp(lowest, line.bps()))
        } else {
            was.map(|rate| rate + (rate * growth / 1000).max(1)).filter(|rate| *rate < line.bps())
        };
        let goes_on = self.rate.is_some() || !self.senders.is_empty();
        self.next = if goes_on { now + period } else { Time::MAX };
        was.is_some() || self.rate.is_some()
    }

    pub fn senders(&self) -> impl Iterator<Item = PeerId> {
        self.senders.keys().copied()
    }

    /// The record that notifies a sender of its rate to `target`.
    pub fn record(&self, target: Target, seq: u64) -> Record {
        let ttl = (self.terms.period * HOLDS).as_ps().div_ceil(Time::from_us(1).as_ps());
        let ttl = u32::try_from(ttl).unwrap_or(u32::MAX);
        match self.rate {
            None => Record { word: Word::Resume, target, seq, queued: 0, rate: 0, ttl },
            Some(bps) => {
                let rate = u32::try_from(bps / 1000).unwrap_or(u32::MAX).max(1);
                Record { word: Word::Rate, target, seq, queued: 0, rate, ttl }
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Pace {
    seq: u64,
    kbps: u64,
    until: Time,
    /// When the next packet may leave.
    next: Time,
    /// Flows that wait, and the one whose turn it is.
    line: VecDeque<FlowKey>,
    called: Option<FlowKey>,
}

impl Pace {
    /// When the first in line may go on.
    fn due(&self) -> Time {
        self.next.min(self.until)
    }
}

/// The rates that receivers advertised, at the sender.
#[derive(Clone, Debug, Default)]
pub struct Shaper {
    paces: BTreeMap<(PeerId, Target), Pace>,
}

impl Shaper {
    pub fn new() -> Shaper {
        Shaper::default()
    }

    /// A receiver's switch has advertised a rate, or that there is none.
    pub fn on_record(&mut self, now: Time, peer: PeerId, record: &Record) {
        let kbps = match record.word {
            Word::Rate => u64::from(record.rate.max(1)),
            Word::Resume => 0,
            _ => return,
        };
        let fresh =
            Pace { seq: 0, kbps, until: now, next: now, line: VecDeque::new(), called: None };
        let pace = self.paces.entry((peer, record.target)).or_insert(fresh);
        if record.seq < pace.seq {
            return;
        }
        let ttl = if kbps == 0 { Time::ZERO } else { Time::from_us(u64::from(record.ttl)) };
        (pace.seq, pace.kbps, pace.until) = (record.seq, kbps, now + ttl);
    }

    /// How many packets a flow may send, of those that it would. None: it waits until
    /// [`Shaper::next_change`] names it.
    pub fn admit(&mut self, now: Time, peer: PeerId, key: &FlowKey, wants: u32) -> u32 {
        let Some(pace) = self.paces.get_mut(&(peer, Target::application(key))) else {
            return wants;
        };
        let is_called = pace.called.take_if(|called| called == key).is_some();
        if pace.until <= now {
            return wants;
        }
        if pace.next <= now && (is_called || pace.line.is_empty()) {
            return wants.min(1);
        }
        if wants > 0 && !pace.line.contains(key) {
            pace.line.push_back(*key);
        }
        0
    }

    /// A flow has sent so many bytes.
    pub fn sent(&mut self, now: Time, peer: PeerId, key: &FlowKey, bytes: u64) {
        let Some(pace) = self.paces.get_mut(&(peer, Target::application(key))) else { return };
        if pace.until > now {
            let takes = Time::from_ps(
                (u128::from(bytes) * 8_000_000_000 / u128::from(pace.kbps.max(1))) as u64,
            );
            pace.next = pace.next.max(now).saturating_add(takes);
        }
    }

    /// When a flow that waits may go on.
    pub fn deadline(&self) -> Option<Time> {
        self.paces.values().filter(|pace| !pace.line.is_empty()).map(Pace::due).min()
    }

    /// A flow that may try to send now. To be asked until there is no more, after what it sends.
    pub fn next_change(&mut self, now: Time) -> Option<Change> {
        let is_due = |pace: &Pace| pace.due() <= now && !pace.line.is_empty();
        let (&(peer, _), pace) = self.paces.iter_mut().find(|(_, pace)| is_due(pace))?;
        pace.called = pace.line.pop_front();
        Some(Change { peer, target: Target::Flow(pace.called?), is_held: false })
    }

    pub fn is_held(&self, peer: PeerId, key: &FlowKey) -> bool {
        self.paces
            .get(&(peer, Target::application(key)))
            .is_some_and(|pace| pace.line.contains(key))
    }

    pub fn age(&mut self, now: Time) {
        self.paces.retain(|_, pace| pace.until > now || !pace.line.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        period: Time::from_us(50),
        target: Time::from_us(25),
        growth: 125,
        line: Rate::from_gbps(100),
    };

    fn key(flow: u128) -> FlowKey {
        FlowKey { source: flow, destination: 9, source_port: 0, destination_port: 4, protocol: 0 }
    }

    fn target() -> Target {
        Target::application(&key(0))
    }

    /// Half a megabit in 50 us are 10 Gb/s: 5 for each of two. A wait of 40 us makes it 25/40 of
    /// that, one of 100 us a half. Without a wait a rate grows by an eighth.
    #[test]
    fn a_rate_by_hand() {
        let mut advertiser = Advertiser::new(TERMS);
        assert!(!advertiser.arrived(Time::ZERO, 1) && !advertiser.arrived(Time::ZERO, 2));
        let mut look = |us: u64, bytes: u64, waited: u64| {
            let now = Time::from_us(us);
            advertiser.senders.values_mut().for_each(|last| *last = now);
            advertiser.left(bytes, Time::from_us(waited));
            let tells = advertiser.look(now, Time::ZERO);
            (tells, advertiser.rate.map(|bps| bps / 1_000_000))
        };
        assert_eq!(look(49, 0, 0), (false, None), "it is not time");
        assert_eq!(look(50, 62_500, 25), (false, None), "nobody has waited for too long");
        assert_eq!(look(100, 62_500, 40), (true, Some(3_125)));
        assert_eq!(look(150, 62_500, 100), (true, Some(2_500)));
        assert_eq!(look(200, 62_500, 900), (true, Some(2_500)));
        assert_eq!(look(250, 62_500, 1), (true, Some(2_812)));
        assert_eq!(look(300, 62_500, 26), (true, Some(4_807)));
        assert_eq!(look(350, 0, 90), (true, Some(2_403)), "an application that stands");
    }

    #[test]
    fn a_rate_ends_at_the_links_and_with_silence() {
        let mut advertiser = Advertiser::new(TERMS);
        advertiser.arrived(Time::ZERO, 1);
        advertiser.left(62_500, Time::from_us(30));
        assert!(advertiser.look(Time::from_us(50), Time::ZERO));
        assert_eq!(advertiser.record(target(), 3).word, Word::Rate);
        assert!(advertiser.arrived(Time::from_us(51), 2), "who is new is told at once");
        let mut told = 0;
        while let Some(at) = advertiser.deadline() {
            told += u32::from(advertiser.look(at, Time::ZERO));
        }
        assert_eq!(advertiser.record(target(), 4).word, Word::Resume);
        assert!((5..30).contains(&told), "{told}");
    }

    /// 12 Gb/s are a packet of 1500 bytes in a microsecond, of two flows in turn.
    #[test]
    fn flows_of_a_destination_take_turns_at_its_rate() {
        let mut shaper = Shaper::new();
        assert_eq!(shaper.admit(Time::ZERO, 1, &key(5), 40), 40);
        let rate = Record {
            word: Word::Rate,
            target: target(),
            seq: 1,
            queued: 0,
            rate: 12_000_000,
            ttl: 200,
        };
        shaper.on_record(Time::ZERO, 1, &rate);
        assert_eq!((shaper.admit(Time::ZERO, 1, &key(5), 40), shaper.deadline()), (1, None));
        shaper.sent(Time::ZERO, 1, &key(5), 1500);
        assert_eq!(
            (shaper.admit(Time::ZERO, 1, &key(5), 39), shaper.admit(Time::ZERO, 1, &key(6), 40)),
            (0, 0)
        );
        assert!(shaper.is_held(1, &key(5)) && shaper.next_change(Time::from_ns(999)).is_none());
        assert_eq!(shaper.deadline(), Some(Time::from_us(1)));
        let mut order = Vec::new();
        for us in 1..5 {
            let now = Time::from_us(us);
            while let Some(change) = shaper.next_change(now) {
                let Target::Flow(flow) = change.target else { panic!() };
                if shaper.admit(now, 1, &flow, 30) == 1 {
                    shaper.sent(now, 1, &flow, 1500);
                    order.push(flow.source);
                    assert_eq!(shaper.admit(now, 1, &flow, 30), 0);
                }
            }
        }
        assert_eq!(order, [5, 6, 5, 6]);
        // Nothing is said any more: the rate ends, and all go on.
        assert_eq!(shaper.admit(Time::from_us(200), 1, &key(7), 9), 9);
        assert!(
            shaper.next_change(Time::from_us(200)).is_some()
                && shaper.next_change(Time::from_us(200)).is_some()
        );
        shaper.age(Time::from_us(200));
        assert!(shaper.paces.is_empty());
    }

    #[test]
    fn what_is_late_changes_nothing() {
        let mut shaper = Shaper::new();
        let rate = |seq: u64, rate: u32| Record {
            word: Word::Rate,
            target: target(),
            seq,
            queued: 0,
            rate,
            ttl: 200,
        };
        shaper.on_record(Time::ZERO, 1, &rate(4, 12_000));
        shaper.on_record(Time::ZERO, 1, &rate(3, 99_000));
        shaper.sent(Time::ZERO, 1, &key(5), 1500);
        assert_eq!(shaper.admit(Time::ZERO, 1, &key(5), 1), 0);
        assert_eq!(
            shaper.deadline(),
            Some(Time::from_us(200)),
            "a packet takes a millisecond, the rate ends before"
        );
    }
}
