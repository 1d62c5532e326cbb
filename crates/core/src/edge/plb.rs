//! PLB, protective load balancing: a flow that meets congestion round after round draws a new label
//! (Qureshi et al., SIGCOMM 2022; as Linux has it since 6.2, `net/ipv4/tcp_plb.c`).
//!
//! A round is what is in flight when the last one ended. It is congested if at least so much of
//! what it acknowledged was marked. After enough congested rounds the flow moves at once; after
//! fewer it moves as soon as nothing is in flight, since then no packet can be overtaken.
//!
//! A timeout moves it at once, since its path may be broken. Linux does that without PLB as well,
//! at every timeout of a retransmission (commit 3acf3ec3f4b0 of 2016, `tcp_write_timeout`). Then it
//! stays for a while: what a failure has moved is not to be moved by marks.
//!
//! Invariant: marks move a flow only at the end of a round, and congested rounds are counted anew
//! after each move.

use super::Feedback;
use crate::random::mix64;
use crate::registry::{About, PathProperty, Reason, Signal};
use crate::units::Time;

pub(super) const ABOUT: About = About {
    summary: "a flow draws a new label after rounds in which much of it was marked",
    source: "Qureshi et al.: PLB: Congestion Signals are Simple and Effective for Network Load \
             Balancing, SIGCOMM 2022; Linux 6.2",
    breaks: &[PathProperty::FifoPerFlow],
    provides: &[Signal::Labels],
    reads: &[Signal::Marks, Signal::Paths],
    answers: Some(Reason::Marks),
    ..About::PLAIN
};

crate::params! {
    /// The keys of protective load balancing (PLB, SIGCOMM 2022).
    pub struct PlbParams {
        /// Of 256 bytes acknowledged in a round, how many marked ones make it congested. Source:
        /// 128, Linux's tcp_plb_cong_thresh.
        #[within(1..=256)]
        pub threshold: u32 = 128,
        /// Congested rounds in a row after which a flow moves, whatever is in flight. Source: 12,
        /// Linux's tcp_plb_rehash_rounds.
        #[within(1..=31)]
        pub rounds: u32 = 12,
        /// Congested rounds in a row after which a flow moves that has nothing in flight; 0: it
        /// waits for the others. Source: 3, Linux's tcp_plb_idle_rehash_rounds.
        #[within(0..=31)]
        pub idle_rounds: u32 = 3,
        /// How long a flow stays after a timeout; up to as much again is drawn to it. Source: 60s,
        /// Linux's tcp_plb_suspend_rto_sec.
        pub suspend: Time = Time::from_s(60),
        /// Whether a flow draws a label at each timeout. Source: on, Linux's net.core.txrehash; at
        /// every timeout since commit 3acf3ec3f4b0 (2016).
        pub redraw_on_timeout: bool = true,
    }
}

/// The rule that a host's flows share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlbRule {
    threshold: u64,
    rounds: u32,
    idle_rounds: u32,
    suspend: Time,
    redraws: bool,
}

impl PlbParams {
    /// The rule.
    pub(super) fn rule(&self) -> PlbRule {
        let PlbParams { threshold, rounds, idle_rounds, suspend, redraw_on_timeout: redraws } =
            *self;
        PlbRule { threshold: u64::from(threshold), rounds, idle_rounds, suspend, redraws }
    }
}

/// One flow, at its sender.
#[derive(Clone, Debug)]
pub struct Plb {
    rule: PlbRule,
    /// Where the present round ends: what was sent when it began.
    round_ends: u64,
    /// Bytes that it has acknowledged, and those of them that were marked.
    acked: u64,
    marked: u64,
    /// Congested rounds in a row.
    congested: u32,
    /// It stays until then.
    stays_until: Time,
    /// A random number of its own.
    key: u64,
}

impl Plb {
    /// Of a new flow; `key` is a random number of its own.
    pub fn new(rule: PlbRule, key: u64) -> Plb {
        Plb { rule, round_ends: 0, acked: 0, marked: 0, congested: 0, stays_until: Time::ZERO, key }
    }

    /// An acknowledgement has come; whether the flow moves.
    pub fn on_feedback(&mut self, now: Time, feedback: &Feedback) -> bool {
        let acked = feedback.to.saturating_sub(feedback.from);
        self.acked += acked;
        self.marked += if feedback.is_marked { acked } else { 0 };
        if feedback.to < self.round_ends {
            return false;
        }
        if self.acked > 0 {
            let is_congested = self.marked * 256 >= self.rule.threshold * self.acked;
            self.congested =
                if is_congested { (self.congested + 1).min(self.rule.rounds) } else { 0 };
        }
        (self.round_ends, self.acked, self.marked) = (feedback.sent, 0, 0);
        let is_idle = feedback.to >= feedback.sent && self.rule.idle_rounds > 0;
        let moves = self.congested >= self.rule.rounds
            || (is_idle && self.congested >= self.rule.idle_rounds);
        if !moves || now < self.stays_until {
            return false;
        }
        self.congested = 0;
        true
    }

    /// The retransmission timer has fired; whether the flow moves.
    pub fn timed_out(&mut self, now: Time) -> bool {
        self.key = mix64(self.key);
        let suspend = self.rule.suspend.as_ps();
        let drawn = ((u128::from(self.key) * u128::from(suspend)) >> 64) as u64;
        self.stays_until =
            now.saturating_add(self.rule.suspend).saturating_add(Time::from_ps(drawn));
        self.congested = 0;
        self.rule.redraws
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Time = Time::from_us(1);

    fn plb() -> Plb {
        Plb::new(PlbParams::default().rule(), 7)
    }

    /// A round of ten packets of 1,000 bytes, so many of them marked, ten more in flight behind it;
    /// whether the flow moved.
    fn round(it: &mut Plb, una: &mut u64, marked: u64, is_last: bool) -> bool {
        let mut moved = 0;
        for packet in 0..10 {
            let (from, to) = (*una, *una + 1_000);
            let end = it.round_ends.max(10_000);
            let sent = if is_last { end } else { to + 10_000 };
            moved += u32::from(
                it.on_feedback(US, &Feedback { from, to, sent, is_marked: packet < marked }),
            );
            *una = to;
        }
        assert!(moved <= 1);
        moved == 1
    }

    /// The first round has no end before it: what was in flight when it began is not known.
    fn begun() -> (Plb, u64) {
        let (mut it, mut una) = (plb(), 0);
        it.round_ends = 10_000;
        round(&mut it, &mut una, 0, false);
        (it, una)
    }

    #[test]
    fn it_moves_after_twelve_congested_rounds_in_a_row() {
        let (mut it, mut una) = begun();
        let moved: Vec<u32> = (1..=24).filter(|_| round(&mut it, &mut una, 5, false)).collect();
        assert_eq!(moved, [12, 24], "and counts anew");
    }

    #[test]
    fn a_round_below_the_threshold_breaks_the_row() {
        let (mut it, mut una) = begun();
        for _ in 0..5 {
            assert!((0..11).all(|_| !round(&mut it, &mut una, 5, false)));
            assert!(!round(&mut it, &mut una, 4, false));
        }
    }

    #[test]
    fn an_idle_flow_moves_after_three() {
        let (mut it, mut una) = begun();
        assert!((0..2).all(|_| !round(&mut it, &mut una, 10, false)));
        assert!(round(&mut it, &mut una, 10, true));
        let never = PlbParams { idle_rounds: 0, ..PlbParams::default() };
        let (mut it, mut una) = (Plb::new(never.rule(), 1), 0);
        it.round_ends = 10_000;
        assert!((0..4).all(|_| !round(&mut it, &mut una, 10, false)));
        assert!(!round(&mut it, &mut una, 10, true));
    }

    #[test]
    fn after_a_timeout_it_stays() {
        let (mut it, mut una) = begun();
        assert!(it.timed_out(US), "it moves first");
        assert!(it.stays_until >= US + Time::from_s(60) && it.stays_until < US + Time::from_s(120));
        assert!((0..30).all(|_| !round(&mut it, &mut una, 10, false)));
        it.stays_until = US;
        assert!(round(&mut it, &mut una, 10, false), "and goes as soon as it may");
    }

    #[test]
    fn each_timeout_moves_it_unless_that_is_off() {
        let (mut it, mut una) = begun();
        assert!((0..11).all(|_| !round(&mut it, &mut una, 10, false)));
        assert!(it.timed_out(US) && it.timed_out(US * 2), "also where it is to stay");
        assert_eq!(it.congested, 0, "congested rounds were the other path's");
        let off = PlbParams { redraw_on_timeout: false, ..PlbParams::default() };
        let mut it = Plb::new(off.rule(), 1);
        assert!(!it.timed_out(US));
        assert!(it.stays_until >= US + Time::from_s(60), "it stays all the same");
    }
}
