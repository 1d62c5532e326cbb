//! Ranks: how urgent a data packet is. Smaller is more important; packets without payload keep rank
//! 0.
//!
//! Follows the marking component of Vertigo's hosts (CoNEXT 2021 and its published simulations). A
//! packet's rank is settled when it is first sent and divided by the boost factor once for each
//! retransmission of it, so that what was deflected or dropped comes back with more weight. A
//! connection that was silent for longer than `idle` and then has to send a packet again has met
//! more than a detour: from then on the new packets of the same message, too, begin as if they had
//! been sent again that often.
//!
//! The offset of a packet's first byte identifies it. To find a packet's first rank when it is sent
//! again, packets are remembered by *runs*, in which the rank follows from the offset; a flow that
//! is written at once is one run. So a connection has a fixed, small state until something is sent
//! again or runs overlap, and then one entry for each packet that is sent again and not
//! acknowledged.
//!
//! Invariant: a packet that is sent again carries the rank of its first time, divided by what its
//! retransmissions call for; what is acknowledged is forgotten.

use crate::registry::{About, Signal};
use crate::units::Time;
use std::collections::{BTreeMap, VecDeque};

crate::params! {
    /// Packets carry no rank.
    pub struct UnrankedParams {}
}
crate::params! {
    /// Bytes that are left of the message.
    pub struct RemainingBytesParams {
        /// The rank is divided by it (rounding down) once for each retransmission of the packet; 0
        /// or 1: never. Source: Vertigo's published simulations use 2.
        pub boost: u32 = 2,
        /// A connection that sends a packet again after a longer silence gives the new packets of
        /// the same message the boost of one retransmission more. Source: Vertigo's published
        /// simulations use 360us at 10 and 40 Gbps.
        pub idle: Time = Time::from_us(360),
    }
}
crate::params! {
    /// Packets that were sent before in the burst.
    pub struct AttainedServiceParams {
        /// The rank is divided by it (rounding down) once for each retransmission of the packet; 0
        /// or 1: never. Source: Vertigo's published simulations use 2.
        pub boost: u32 = 2,
        /// A longer silence ends a burst: the next new packet is the first of another, and has the
        /// boost of none that was sent again before. Source: Vertigo's published simulations use
        /// 360us at 10 and 40 Gbps.
        pub idle: Time = Time::from_us(360),
    }
}

const UNRANKED: About = About { summary: "packets carry no rank", ..About::PLAIN };
const REMAINING_BYTES: About = About {
    summary: "bytes left of the message, from the packet's first byte on; halved for each \
              retransmission",
    source: "Abdous, Sharafzadeh, Ghorbani: Burst-tolerant datacenter networks with Vertigo, \
             CoNEXT 2021",
    provides: &[Signal::Ranks],
    ..About::PLAIN
};
const ATTAINED_SERVICE: About = About {
    summary: "packets sent before it in the burst (least attained service); halved for each \
              retransmission",
    source: "Abdous, Sharafzadeh, Ghorbani: Burst-tolerant datacenter networks with Vertigo, \
             CoNEXT 2021",
    provides: &[Signal::Ranks],
    ..About::PLAIN
};

crate::registry! {
    /// Which rank a packet carries.
    place: "transport.rank", question: "how urgent is this packet?", default: None,
    params: RankParams;
    "none" => None { UnrankedParams; UNRANKED },
    "remaining-bytes" => RemainingBytes { RemainingBytesParams; REMAINING_BYTES },
    "attained-service" => AttainedService { AttainedServiceParams; ATTAINED_SERVICE },
}

/// A data packet that is about to leave.
#[derive(Clone, Copy, Debug)]
pub struct Outbound {
    /// Offset of its first byte.
    pub seq: u64,
    /// Payload bytes, more than zero.
    pub len: u32,
    /// Was sent before.
    pub again: bool,
    /// Where the written stream ends: the end of the message.
    pub written: u64,
    /// Where what is acknowledged ends.
    pub acked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    RemainingBytes,
    AttainedService,
}

/// Packets that were first sent one after the other and whose ranks follow from their offsets.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    /// Offset of the first.
    from: u64,
    /// Remaining bytes: where the message ends. Attained service: how many came before the first in
    /// the burst.
    base: u64,
    /// Packets.
    count: u32,
    /// Payload of each but the last, which may be smaller.
    size: u32,
    /// How often each counts as sent again from the beginning.
    inherited: u32,
}

impl Run {
    /// Whether a packet at `seq` is the next of packets of one size.
    fn is_followed_by(&self, seq: u64) -> bool {
        seq == self.from + self.count as u64 * self.size as u64
    }
}

/// The memory kept only where a packet was sent again or runs overlap.
#[derive(Clone, Debug, Default)]
struct Past {
    /// Runs before the present one of which something is not acknowledged, in order.
    runs: VecDeque<Run>,
    /// By offset: how often a packet was sent again.
    again: BTreeMap<u64, u32>,
}

/// The ranks of one connection's packets.
#[derive(Clone, Debug)]
pub struct Ranker {
    by: By,
    /// The next new packet is the first of a burst.
    fresh: bool,
    boost: u32,
    idle: Time,
    /// When a packet last left; `Time::MAX`: none has.
    last: Time,
    /// How often the present message itself counts as sent again.
    retried: u32,
    run: Run,
    past: Option<Box<Past>>,
}

impl Ranker {
    /// Of a new connection; `None`: packets carry no rank.
    pub fn new(params: &RankParams) -> Option<Ranker> {
        let (by, boost, idle) = match params {
            RankParams::None(_) => return None,
            RankParams::RemainingBytes(p) => (By::RemainingBytes, p.boost, p.idle),
            RankParams::AttainedService(p) => (By::AttainedService, p.boost, p.idle),
        };
        let (last, run) = (Time::MAX, Run::default());
        Some(Ranker { by, fresh: true, boost, idle, last, retried: 0, run, past: None })
    }

    /// The rank of a packet that leaves now. To be asked once for each, in the order in which they
    /// leave.
    pub fn rank(&mut self, now: Time, packet: &Outbound) -> u32 {
        let was_idle = self.last != Time::MAX && now.saturating_sub(self.last) > self.idle;
        self.last = now;
        self.fresh |= was_idle;
        self.forget(packet.acked);
        let (rank, times) = if packet.again && self.run.count > 0 {
            self.again(packet.seq, was_idle)
        } else {
            (self.first(packet), self.retried)
        };
        u32::try_from(boosted(rank, self.boost, times)).unwrap_or(u32::MAX)
    }

    /// A new packet: the next of its run, or the first of another.
    fn first(&mut self, packet: &Outbound) -> u64 {
        let run = &self.run;
        let (base, goes_on) = match self.by {
            By::RemainingBytes => (packet.written, run.base == packet.written),
            By::AttainedService if self.fresh => (0, false),
            By::AttainedService => (run.base + run.count as u64, run.is_followed_by(packet.seq)),
        };
        self.fresh = false;
        if self.by == By::RemainingBytes && !goes_on {
            self.retried = 0; // of another message
        }
        if run.count > 0 && goes_on && run.inherited == self.retried {
            self.run.count = run.count.saturating_add(1);
        } else {
            if run.count > 0 && packet.acked < packet.seq {
                self.past.get_or_insert_default().runs.push_back(*run);
            }
            let (from, size, inherited) = (packet.seq, packet.len, self.retried);
            self.run = Run { from, base, count: 1, size, inherited };
        }
        self.settled(&self.run, packet.seq)
    }

    /// A packet that was sent before: its first rank, and how often it has been sent again by now.
    fn again(&mut self, seq: u64, was_idle: bool) -> (u64, u32) {
        let mut run = self.run;
        let past = self.past.get_or_insert_default();
        if seq < run.from
            && let Some(earlier) = past.runs.iter().rev().find(|earlier| earlier.from <= seq)
        {
            run = *earlier;
        }
        // After silence the present message goes on; an earlier one is no part of it, and a burst
        // is another one.
        let inherits = was_idle && self.by == By::RemainingBytes && run.base == self.run.base;
        self.retried = self.retried.saturating_add(inherits as u32);
        let times = past.again.entry(seq).or_insert(0);
        *times = times.saturating_add(1);
        let times = times.saturating_add(run.inherited);
        (self.settled(&run, seq), times)
    }

    /// The rank that the packet at `seq` of a run had at first.
    fn settled(&self, run: &Run, seq: u64) -> u64 {
        match self.by {
            By::RemainingBytes => run.base.saturating_sub(seq),
            By::AttainedService => run.base + seq.saturating_sub(run.from) / run.size.max(1) as u64,
        }
    }

    fn forget(&mut self, acked: u64) {
        let Some(past) = &mut self.past else { return };
        while !past.runs.is_empty()
            && past.runs.get(1).map_or(self.run.from, |next| next.from) <= acked
        {
            past.runs.pop_front();
        }
        while past.again.first_key_value().is_some_and(|(seq, _)| *seq < acked) {
            past.again.pop_first();
        }
        if past.runs.is_empty() && past.again.is_empty() {
            self.past = None;
        }
    }
}

/// `rank` divided by `boost`, rounding down, so many times.
fn boosted(mut rank: u64, boost: u32, times: u32) -> u64 {
    if boost > 1 {
        for _ in 0..times.min(u64::BITS) {
            rank /= boost as u64;
        }
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1000;

    fn remaining() -> Ranker {
        Ranker::new(&RankParams::RemainingBytes(RemainingBytesParams::default())).unwrap()
    }
    fn attained() -> Ranker {
        Ranker::new(&RankParams::AttainedService(AttainedServiceParams::default())).unwrap()
    }
    fn packet(i: u64, again: bool, acked: u64) -> Outbound {
        Outbound { seq: i * MSS, len: MSS as u32, again, written: 10 * MSS, acked: acked * MSS }
    }
    fn us(n: u64) -> Time {
        Time::from_us(n)
    }

    #[test]
    fn without_a_kind_there_is_nothing() {
        assert!(Ranker::new(&RankParams::default()).is_none());
    }

    #[test]
    fn remaining_bytes_count_from_the_packets_first_byte() {
        let mut r = remaining();
        let ranks: Vec<u32> = (0..10).map(|i| r.rank(us(i), &packet(i, false, 0))).collect();
        assert_eq!(ranks, [10_000, 9_000, 8_000, 7_000, 6_000, 5_000, 4_000, 3_000, 2_000, 1_000]);
        assert!(r.past.is_none(), "one message is one run");
        let huge = Outbound { seq: 0, len: 1, again: false, written: 1 << 40, acked: 0 };
        assert_eq!(remaining().rank(us(0), &huge), u32::MAX);
    }

    #[test]
    fn each_retransmission_divides_the_first_rank_again() {
        let mut r = remaining();
        (0..4).for_each(|i| _ = r.rank(us(i), &packet(i, false, 0)));
        assert_eq!(r.rank(us(50), &packet(1, true, 1)), 4_500);
        assert_eq!(r.rank(us(60), &packet(1, true, 1)), 2_250);
        assert_eq!(r.rank(us(61), &packet(3, true, 1)), 3_500);
        assert_eq!(r.rank(us(62), &packet(4, false, 1)), 6_000, "others are not boosted");
        assert_eq!(r.past.as_ref().unwrap().again.len(), 2);
        r.rank(us(63), &packet(5, false, 5));
        assert!(r.past.is_none(), "what is acknowledged is forgotten");
    }

    #[test]
    fn boost_rounds_down_each_time_and_can_be_off() {
        assert_eq!(boosted(7, 2, 1), 3);
        assert_eq!(boosted(7, 2, 2), 1);
        assert_eq!((boosted(100, 4, 2), boosted(100, 8, 1)), (6, 12));
        assert_eq!(boosted(u64::MAX, 2, u32::MAX), 0);
        for off in [0, 1] {
            assert_eq!(boosted(7, off, 9), 7);
        }
    }

    /// A timeout, in effect: everything that is new after it counts as sent again once.
    #[test]
    fn a_retransmission_after_silence_boosts_new_packets_too() {
        let mut r = remaining();
        (0..2).for_each(|i| _ = r.rank(us(i), &packet(i, false, 0)));
        assert_eq!(r.rank(us(362), &packet(0, true, 0)), 5_000, "itself only once");
        assert_eq!(r.rank(us(363), &packet(2, false, 1)), 4_000, "8000, inherited");
        assert_eq!(r.rank(us(364), &packet(2, true, 1)), 2_000);
        assert_eq!(r.rank(us(365), &packet(1, true, 1)), 4_500, "was sent before that");
        assert_eq!(r.rank(us(800), &packet(1, true, 1)), 2_250);
        assert_eq!(r.rank(us(801), &packet(3, false, 1)), 1_750, "7000, inherited twice");
        // Another message begins without the boost, whichever message is sent again meanwhile.
        let next = |i: u64, again: bool| Outbound { written: 20 * MSS, ..packet(i, again, 3) };
        assert_eq!(r.rank(us(802), &next(10, false)), 10_000);
        assert_eq!(r.rank(us(2_000), &next(3, true)), 875, "of the first message");
        assert_eq!(r.rank(us(2_001), &next(11, false)), 9_000);
        assert_eq!(r.rank(us(3_000), &next(10, true)), 5_000, "of the second");
        assert_eq!(r.rank(us(3_001), &next(12, false)), 4_000);
        // New data after silence is no sign of loss.
        let mut r = remaining();
        r.rank(us(0), &packet(0, false, 0));
        assert_eq!(r.rank(us(900), &packet(1, false, 0)), 9_000);
        assert_eq!(r.rank(us(901), &packet(2, false, 0)), 8_000);
    }

    /// A connection that has lost often does not come before others for ever.
    #[test]
    fn a_burst_after_losses_attains_service_as_any_other() {
        let mut r = attained();
        for round in 0..20u64 {
            let at = 1_000 * round;
            let first = 10 * round;
            assert_eq!(r.rank(us(at), &packet(first, false, first)), 0);
            let new = (1..9).map(|i| r.rank(us(at + i), &packet(first + i, false, first)));
            assert_eq!(new.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!(r.rank(us(at + 500), &packet(first + 8, true, first)), 4, "8, halved");
        }
    }

    /// Exactly `idle` is not longer than `idle`.
    #[test]
    fn attained_service_counts_packets_until_silence() {
        let mut r = attained();
        let first: Vec<u32> = (0..3).map(|i| r.rank(us(i), &packet(i, false, 0))).collect();
        assert_eq!(first, [0, 1, 2]);
        assert_eq!(r.rank(us(362), &packet(3, false, 0)), 3);
        assert_eq!(r.rank(us(723), &packet(4, false, 0)), 0);
        assert_eq!(r.rank(us(724), &packet(5, false, 0)), 1);
        assert_eq!(r.rank(us(725), &packet(3, true, 0)), 1, "3, halved");
        assert_eq!(r.rank(us(726), &packet(5, true, 0)), 0);
        assert_eq!(r.rank(us(727), &packet(6, false, 0)), 2, "what is sent again is not counted");
    }

    #[test]
    fn a_second_message_does_not_change_the_rank_of_the_first() {
        let mut r = remaining();
        let at = |seq, again, written| Outbound { seq, len: 100, again, written, acked: 0 };
        assert_eq!(r.rank(us(0), &at(0, false, 200)), 200);
        assert_eq!(r.rank(us(1), &at(100, false, 200)), 100);
        assert_eq!(r.rank(us(2), &at(200, false, 500)), 300);
        assert_eq!(r.rank(us(3), &at(100, true, 500)), 50);
        assert_eq!(r.rank(us(4), &at(200, true, 500)), 150);
    }

    /// The same by a table of every packet that was ever sent.
    struct Table {
        by: By,
        /// By offset: the first rank, divisions, and the end of the message.
        seen: BTreeMap<u64, (u64, u32, u64)>,
        last: Time,
        sent: u64,
        /// The end of the present message.
        end: u64,
        retried: u32,
    }

    impl Table {
        fn rank(&mut self, now: Time, p: &Outbound) -> u32 {
            let was_idle = self.last != Time::MAX && now.saturating_sub(self.last) > us(360);
            self.last = now;
            if was_idle {
                self.sent = 0;
            }
            let (rank, times) = match self.seen.get_mut(&p.seq) {
                Some((rank, times, end)) => {
                    *times += 1;
                    let inherits = was_idle && self.by == By::RemainingBytes && *end == self.end;
                    self.retried += inherits as u32;
                    (*rank, *times)
                }
                None => {
                    if self.end != p.written {
                        (self.end, self.retried) = (p.written, 0);
                    }
                    let rank =
                        if self.by == By::AttainedService { self.sent } else { p.written - p.seq };
                    self.sent += 1;
                    self.seen.insert(p.seq, (rank, self.retried, p.written));
                    (rank, self.retried)
                }
            };
            boosted(rank, 2, times) as u32
        }
    }

    proptest! {
        /// Runs give what a table of all packets would, whatever is written, sent again,
        /// acknowledged and waited for.
        #[test]
        fn runs_are_as_good_as_a_table(
            service in any::<bool>(),
            steps in prop::collection::vec(
                (0u64..500, 1u32..4, 0u8..4, any::<prop::sample::Index>()),
                1..200,
            ),
        ) {
            let mut ranker = if service { attained() } else { remaining() };
            let (last, seen) = (Time::MAX, BTreeMap::new());
            let mut table = Table { by: ranker.by, seen, last, sent: 0, end: 0, retried: 0 };
            let (mut now, mut sent, mut acked, mut written) = (Time::ZERO, Vec::new(), 0usize, 0);
            let mut next = 0;
            for (gap, len, what, index) in steps {
                now += us(gap);
                let outstanding = sent.len() - acked;
                if what == 0 && outstanding > 0 {
                    acked += index.index(outstanding + 1);
                }
                let una = sent.get(acked).map_or(next, |(seq, _): &(u64, u32)| *seq);
                let outstanding = sent.len() - acked;
                let packet = if what == 1 && outstanding > 0 {
                    let (seq, len) = sent[acked + index.index(outstanding)];
                    Outbound { seq, len, again: true, written, acked: una }
                } else {
                    written = written.max(next + len as u64 * 100 + index.index(3) as u64 * 100);
                    let new =
                        Outbound { seq: next, len: len * 100, again: false, written, acked: una };
                    sent.push((new.seq, new.len));
                    next += new.len as u64;
                    new
                };
                prop_assert_eq!(
                    ranker.rank(now, &packet),
                    table.rank(now, &packet),
                    "{:?}",
                    packet
                );
                if let Some(past) = &ranker.past {
                    prop_assert!(
                        past.runs.len() <= sent.len() - acked + 1
                            && past.again.len() <= sent.len() - acked
                    );
                }
            }
        }
    }
}
