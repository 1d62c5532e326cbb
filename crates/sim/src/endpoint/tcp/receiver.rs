//! A connection's receiving end: reassembly, and the ACKs that report it.
//!
//! RFC 5681 §4.2 (when to acknowledge), RFC 2018 §4 (which blocks to report), RFC 3168 §6.1.3 and
//! RFC 8257 §3.2 (how to echo marks), RFC 7323 §4.3 (which time to echo). The application reads at
//! once, so the window never shrinks, and what was reported by SACK is never given up (no
//! reneging).
//!
//! Invariant: each byte is delivered once and in order; while an ACK is held back the deadline is
//! set.

use super::Config;
use crate::endpoint::{AckOut, Arrived, DataIn, Receives};
use millpond_core::congestion::Echo;
use millpond_core::packet::Kind;
use millpond_core::ranges::Ranges;
use millpond_core::{Mapping, Sack, Time};

/// How many ranges are remembered in the order of their arrival: more than a SACK reports, so that
/// it stays full when some of them merge.
const RECENT: usize = 8;

/// The bytes that have arrived beyond a hole.
#[derive(Clone, Debug, Default)]
struct Held {
    ranges: Ranges,
    /// A byte of each range, the one that grew last first.
    recent: [u64; RECENT],
    count: usize,
}

#[derive(Clone, Debug)]
pub struct Receiver {
    /// The next byte expected.
    next: u64,
    acked: u64,
    stamp: Time,
    /// When an ACK held back must leave.
    deadline: Time,
    /// The bytes beyond a hole; allocated with the first hole.
    held: Option<Box<Held>>,
    /// Full segments that the next ACK will answer.
    pending: u32,
    /// The echo on the next ACK: DCTCP.CE, or the latch.
    echo: bool,
    /// Whether `held` holds anything.
    holding: bool,
    /// Which of the run's transports it follows; see [`Config::of`]. They differ here in how marks
    /// are echoed.
    which: u8,
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver::new()
    }
}

impl Receiver {
    pub fn new() -> Receiver {
        Receiver {
            next: 0,
            acked: 0,
            stamp: Time::ZERO,
            deadline: Time::MAX,
            held: None,
            pending: 0,
            echo: false,
            holding: false,
            which: 0,
        }
    }

    /// The same of a connection that follows transport `which` of the run.
    pub fn following(which: u8) -> Receiver {
        Receiver { which, ..Receiver::new() }
    }

    #[inline(never)]
    fn on_data_else(&mut self, now: Time, p: DataIn, cfg: &Config) -> Arrived {
        let DataIn { seq, len, ce, cwr, stamp, .. } = p;
        let (before, mut at_once) = self.take_mark(ce, cwr, cfg);
        // RFC 7323 §4.3 (2): the earliest data that the next ACK answers, so that a delayed ACK
        // does not look fast.
        if seq <= self.acked && stamp >= self.stamp {
            self.stamp = stamp;
        }
        let end = seq + u64::from(len);
        let out_of_order = seq > self.next;
        if out_of_order {
            at_once = true; // RFC 5681 §4.2: out of order
            self.hold(seq, end);
        } else if end <= self.next {
            at_once = true; // RFC 9293 §3.10.7.4: nothing new
        } else {
            at_once |= self.holding; // RFC 5681 §4.2: fills a gap
            self.next = end;
            if self.holding {
                self.release();
            }
        }
        self.pending += if len <= cfg.mss { 1 } else { len.div_ceil(cfg.mss) };
        let ack = if at_once || self.pending >= cfg.delayed_ack {
            Some(self.ack_now(cfg))
        } else {
            self.deadline = self.deadline.min(now.saturating_add(cfg.delayed_ack_timeout));
            None
        };
        let acks = if before.is_some() { [before, ack] } else { [ack, None] };
        Arrived { in_order_upto: self.next, out_of_order, acks }
    }

    /// Looks at a packet's CE and CWR. Returns the ACK of what came before it, if that is echoed
    /// differently, and whether the packet's own ACK must not be held back.
    fn take_mark(&mut self, ce: bool, cwr: bool, cfg: &Config) -> (Option<AckOut>, bool) {
        match cfg.of(self.which).echo {
            Echo::Off | Echo::Notify => (None, false),
            Echo::Latch => {
                self.echo = ce || (self.echo && !cwr);
                (None, false)
            }
            Echo::Precise if ce == self.echo => (None, false),
            // RFC 8257 §3.2: an ACK at once, and, as it may, one before it for what is still owed
            // in the old state.
            Echo::Precise => {
                let before = (self.pending > 0).then(|| self.ack_now(cfg));
                self.echo = ce;
                (before, true)
            }
        }
    }

    /// An ACK of all that has arrived, now.
    fn ack_now(&mut self, cfg: &Config) -> AckOut {
        self.pending = 0;
        self.deadline = Time::MAX;
        self.acked = self.next;
        let sack = match &mut self.held {
            Some(held) if self.holding && cfg.sack => held.report(cfg.sack_blocks),
            _ => Sack::default(),
        };
        AckOut { kind: Kind::Ack, ack: self.next, ece: self.echo, sack, stamp: self.stamp }
    }

    #[cold]
    fn hold(&mut self, from: u64, to: u64) {
        if from == to {
            return;
        }
        let held = self.held.get_or_insert_default();
        held.ranges.insert(from, to);
        held.touch(from);
        self.holding = true;
    }

    /// Delivers what has become in order.
    #[cold]
    fn release(&mut self) {
        let Some(held) = &mut self.held else { return };
        if let Some((_, end)) = held.ranges.around(self.next) {
            self.next = end;
        }
        held.ranges.remove_below(self.next);
        if held.ranges.is_empty() {
            held.count = 0;
            self.holding = false;
        }
    }
}

impl Receives for Receiver {
    type Config = Config;

    #[inline]
    fn on_data(&mut self, now: Time, p: DataIn, cfg: &Config) -> Arrived {
        if p.seq == self.next
            && !self.holding
            && p.ce == self.echo
            && !p.cwr
            && cfg.delayed_ack == 1
        {
            // In order, nothing to change in the echo (in either rule), and no ACK to hold back.
            self.next += u64::from(p.len);
            (self.acked, self.stamp) = (self.next, p.stamp);
            let (kind, sack) = (Kind::Ack, Sack::default());
            let ack = AckOut { kind, ack: self.next, ece: p.ce, sack, stamp: p.stamp };
            return Arrived {
                in_order_upto: self.next,
                out_of_order: false,
                acks: [Some(ack), None],
            };
        }
        self.on_data_else(now, p, cfg)
    }

    #[inline]
    fn expected(&self, _: Option<Mapping>) -> u64 {
        self.next
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.deadline
    }

    fn on_timer(&mut self, now: Time, cfg: &Config) -> Option<(AckOut, Option<u8>)> {
        (now >= self.deadline).then(|| (self.ack_now(cfg), None))
    }

    fn acknowledge(&mut self, _: bool, cfg: &Config) -> Option<AckOut> {
        Some(self.ack_now(cfg))
    }
}

impl Held {
    /// The range around `at` has grown: it goes to the front, once.
    fn touch(&mut self, at: u64) {
        let Some((from, to)) = self.ranges.around(at) else { return };
        let mut keep = [at; RECENT];
        let mut count = 1;
        for &old in &self.recent[..self.count] {
            if !(from..to).contains(&old) && count < RECENT {
                keep[count] = old;
                count += 1;
            }
        }
        (self.recent, self.count) = (keep, count);
    }

    /// RFC 2018 §4: the range that grew last first, then those reported before it.
    fn report(&self, most: usize) -> Sack {
        let mut sack = Sack::default();
        for &at in &self.recent[..self.count] {
            if let Some(range) = self.ranges.around(at)
                && usize::from(sack.count) < most
            {
                sack.blocks[usize::from(sack.count)] = range;
                sack.count += 1;
            }
        }
        sack
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, config_of};
    use super::*;
    use millpond_core::congestion::{DctcpEcho, DctcpParams};
    use millpond_scenario::transport::TransportKind;

    const MSS: u64 = 1000;

    struct Bench {
        cfg: Config,
        receiver: Receiver,
        now: Time,
    }

    impl Bench {
        fn new(cfg: Config) -> Bench {
            Bench { cfg, receiver: Receiver::new(), now: Time::ZERO }
        }
        /// Segment `i`, a microsecond after the last.
        fn segment(&mut self, i: u64, ce: bool, cwr: bool) -> Arrived {
            self.now += Time::from_us(1);
            let (seq, len, stamp) = (i * MSS, MSS as u32, self.now);
            let data = DataIn { seq, len, ce, cwr, stamp, asks: false, mapping: None };
            self.receiver.on_data(self.now, data, &self.cfg)
        }
        /// The (ack, ece) of each ACK that follows from it, in segments.
        fn acks(&mut self, i: u64, ce: bool, cwr: bool) -> Vec<(u64, bool)> {
            self.segment(i, ce, cwr).acks.iter().flatten().map(|a| (a.ack / MSS, a.ece)).collect()
        }
    }

    fn dctcp(echo: DctcpEcho, delayed_ack: u32) -> Bench {
        let kind = TransportKind::Dctcp(DctcpParams { dctcp_echo: echo, ..DctcpParams::default() });
        Bench::new(config_of(kind, |p| (p.mss, p.delayed_ack) = (Some(MSS as u32), delayed_ack)))
    }

    #[test]
    fn rfc8257_figure_1_two_states_with_delayed_acks() {
        let mut b = dctcp(DctcpEcho::Precise, 2);
        // CE = 0: one ACK for two packets.
        assert_eq!((b.acks(0, false, false), b.acks(1, false, false)), (vec![], vec![(2, false)]));
        // 0 → 1 with a packet owed: its ACK without echo, then this one's with it.
        assert_eq!(
            (b.acks(2, false, false), b.acks(3, true, false)),
            (vec![], vec![(3, false), (4, true)])
        );
        // CE = 1: one ACK for two packets, with the echo.
        assert_eq!((b.acks(4, true, false), b.acks(5, true, false)), (vec![], vec![(6, true)]));
        // 1 → 0 with nothing owed: this one's, at once. CWR means nothing here.
        assert_eq!(b.acks(6, false, true), vec![(7, false)]);
        assert_eq!(b.acks(7, true, false), vec![(8, true)]);
    }

    #[test]
    fn precise_echo_without_delay_is_each_packets_own_mark() {
        let mut b = dctcp(DctcpEcho::Precise, 1);
        for (i, ce) in [false, true, true, false, true, false, false].into_iter().enumerate() {
            assert_eq!(b.acks(i as u64, ce, i % 2 == 0), vec![(i as u64 + 1, ce)]);
        }
    }

    #[test]
    fn rfc3168_latch_echoes_until_cwr_and_a_marked_cwr_packet_sets_it_again() {
        let mut b = dctcp(DctcpEcho::Latch, 1);
        let sequence = [
            (false, false, false),
            (true, false, true),
            (false, false, true),
            (false, false, true),
            (false, true, false),
            (true, true, true),
            (false, true, false),
        ];
        for (i, (ce, cwr, echo)) in sequence.into_iter().enumerate() {
            assert_eq!(b.acks(i as u64, ce, cwr), vec![(i as u64 + 1, echo)]);
        }
    }

    #[test]
    fn sack_blocks_come_most_recent_first_and_merge() {
        let mut b = Bench::new(config(|p| p.mss = Some(MSS as u32)));
        let mut blocks = |i: u64| {
            let arrived = b.segment(i, false, false);
            let ack = arrived.acks[0].unwrap();
            let n = usize::from(ack.sack.count);
            (
                ack.ack / MSS,
                ack.sack.blocks[..n].iter().map(|r| (r.0 / MSS, r.1 / MSS)).collect::<Vec<_>>(),
            )
        };
        assert_eq!(blocks(2), (0, vec![(2, 3)]));
        assert_eq!(blocks(4), (0, vec![(4, 5), (2, 3)]));
        assert_eq!(blocks(6), (0, vec![(6, 7), (4, 5), (2, 3)]));
        assert_eq!(blocks(8), (0, vec![(8, 9), (6, 7), (4, 5), (2, 3)]));
        assert_eq!(blocks(10), (0, vec![(10, 11), (8, 9), (6, 7), (4, 5)]));
        assert_eq!(blocks(3), (0, vec![(2, 5), (10, 11), (8, 9), (6, 7)]));
        assert_eq!(blocks(0), (1, vec![(2, 5), (10, 11), (8, 9), (6, 7)]));
        assert_eq!(blocks(1), (5, vec![(10, 11), (8, 9), (6, 7)]));
    }

    #[test]
    fn delayed_acks_are_sent_at_the_second_segment_at_once_around_holes_and_after_the_timeout() {
        let mut b = Bench::new(config(|p| (p.mss, p.delayed_ack) = (Some(MSS as u32), 2)));
        assert_eq!(b.acks(0, false, false), vec![]);
        let due = b.now + b.cfg.delayed_ack_timeout;
        assert_eq!(b.receiver.deadline(), due);
        assert_eq!(b.receiver.on_timer(due - Time::from_ps(1), &b.cfg), None);
        let (ack, _) = b.receiver.on_timer(due, &b.cfg).unwrap();
        assert_eq!((ack.ack, b.receiver.deadline()), (MSS, Time::MAX));
        assert_eq!(b.acks(1, false, false), vec![]);
        assert_eq!(b.acks(3, false, false), vec![(2, false)]); // out of order
        assert_eq!(b.acks(2, false, false), vec![(4, false)]); // fills the hole
        assert_eq!(b.acks(2, false, false), vec![(4, false)]); // nothing new
        assert_eq!((b.acks(4, false, false), b.acks(5, false, false)), (vec![], vec![(6, false)]));
    }

    #[test]
    fn a_delayed_ack_echoes_its_earliest_segment_and_a_duplicate_ack_the_last_in_order() {
        let mut b = Bench::new(config(|p| (p.mss, p.delayed_ack) = (Some(MSS as u32), 2)));
        b.segment(0, false, false);
        assert_eq!(b.segment(1, false, false).acks[0].unwrap().stamp, Time::from_us(1));
        b.segment(2, false, false);
        assert_eq!(b.segment(4, false, false).acks[0].unwrap().stamp, Time::from_us(3));
        assert_eq!(b.segment(3, false, false).acks[0].unwrap().stamp, Time::from_us(5));
    }

    #[test]
    fn a_receiver_is_small() {
        assert!(size_of::<Receiver>() <= 128, "{}", size_of::<Receiver>());
    }
}
