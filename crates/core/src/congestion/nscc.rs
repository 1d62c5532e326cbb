//! NSCC, the sender's window of Ultra Ethernet transport, by marks and by delay (uet-htsim).
//!
//! Each acknowledgement reports whether the packet that caused it was marked, and how long it took.
//! Delay is what a round trip takes beyond the shortest one seen. Four cases:
//!
//! | | below the target | at or above it |
//! |---|---|---|
//! | unmarked | grow in proportion to what is left; fast without delay | grow by a fair share |
//! | marked | nothing: the choice of paths acts | shrink by how far the average is above |
//!
//! *Quick adapt*: once a base round trip and a target, after a loss or with four times the target
//! of delay, a window that got less than an eighth of its largest through becomes what did.
//!
//! Invariant: the window is between one packet and 1.5 bandwidth-delay products.

use crate::units::{Rate, Time};

/// The network that constants are scaled from: 100 Gb/s and 12 us.
const REFERENCE_BYTES: f64 = 150_000.0;
const REFERENCE_TIME: Time = Time::from_us(12);
/// Weight of a sample of delay in the average.
const WEIGHT: f64 = 0.0125;
const GAMMA: f64 = 0.8;
/// A delay of less is none.
const NO_DELAY: Time = Time::from_us(1);
/// Packets' worth of bytes acknowledged, after which the window takes what it has gained.
const ADJUST_PACKETS: u64 = 8;

/// Terms that all connections of a network share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NsccTerms {
    /// A packet on the wire, in bytes.
    pub mtu: u64,
    pub rate: Rate,
    /// The longest round trip of the empty network.
    pub base: Time,
    /// The queueing delay that the window aims at.
    pub target: Time,
    /// The window of a new connection, in bytes.
    pub initial: u64,
    /// 1.5 times what the link carries in the longest round trip, in bytes.
    pub largest: u64,
    /// Growth for each byte acknowledged and picosecond below the target.
    alpha: f64,
    /// Growth for each byte acknowledged at or above it.
    fair: f64,
    /// Growth once a round trip, in bytes.
    eta: f64,
    /// Growth for each byte acknowledged where there is no delay.
    fast: f64,
}

impl NsccTerms {
    /// Of packets of `mss` bytes of payload and `mtu` on the wire.
    pub fn new(mss: u64, mtu: u64, rate: Rate, base: Time, target: Time) -> NsccTerms {
        let bdp = rate.bytes_in(base);
        let scale = bdp as f64 / REFERENCE_BYTES;
        let aim = target.as_ps() as f64;
        let b = aim / REFERENCE_TIME.as_ps() as f64;
        let mss = mss as f64;
        NsccTerms {
            mtu,
            rate,
            base,
            target,
            initial: bdp + bdp / 2,
            largest: bdp + bdp / 2,
            alpha: 4.0 * mss * scale * b / aim,
            fair: 5.0 * mss * scale,
            eta: 0.15 * mss * scale,
            fast: 0.25 * scale,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct NsccAck {
    pub now: Time,
    /// Bytes on the wire that are newly acknowledged.
    pub bytes: u64,
    /// The round trip of the packet that caused it, where that is known.
    pub rtt: Option<Time>,
    /// Whether that packet was marked.
    pub is_marked: bool,
    /// Bytes in flight.
    pub in_flight: u64,
}

/// NSCC's state of one connection: window in bytes, average delay and pending increases.
#[derive(Clone, Copy, Debug)]
pub struct Nscc {
    cwnd: u64,
    base: Time,
    average: f64,
    /// The gain since the last adjustment: over the window, bytes to add.
    gained: f64,
    acked: u64,
    adjusted_at: Time,
    grown_at: Time,
    shrunk_at: Option<Time>,
    /// Bytes acknowledged without any delay, and whether growth is fast.
    free: u64,
    is_fast: bool,
    /// Of the present period of quick adapt: what came, when it ends, and whether a packet was
    /// trimmed.
    came: u64,
    ends: Time,
    was_trimmed: bool,
    /// Bytes to come until marks count again.
    ignores: u64,
}

impl Nscc {
    pub fn new(terms: &NsccTerms) -> Nscc {
        Nscc {
            cwnd: terms.initial.max(terms.mtu),
            base: terms.base,
            average: 0.0,
            gained: 0.0,
            acked: 0,
            adjusted_at: Time::ZERO,
            grown_at: Time::ZERO,
            shrunk_at: None,
            free: 0,
            is_fast: false,
            came: 0,
            ends: Time::ZERO,
            was_trimmed: false,
            ignores: 0,
        }
    }

    /// The window in bytes.
    pub fn window(&self) -> u64 {
        self.cwnd
    }
    pub fn base(&self) -> Time {
        self.base
    }
    /// The moving average of the queueing delay.
    pub fn average(&self) -> Time {
        Time::from_ps(self.average as u64)
    }
    /// The largest window: 1.5 times what the link carries in the shortest round trip.
    pub fn largest(&self, terms: &NsccTerms) -> u64 {
        let bdp = terms.rate.bytes_in(self.base);
        bdp + bdp / 2
    }

    fn bound(&mut self, terms: &NsccTerms) {
        self.cwnd = self.cwnd.min(self.largest(terms)).max(terms.mtu);
    }

    /// Takes note of a round trip. Returns its delay.
    fn sample(&mut self, rtt: Time, is_marked: bool, terms: &NsccTerms) -> Time {
        if rtt < self.base {
            self.base = rtt;
        }
        let delay = rtt - self.base;
        // Unmarked packets that were late have met another's queue.
        let seen = match !is_marked && delay > terms.target {
            true => self.base / 4,
            false => delay,
        };
        self.average += WEIGHT * (seen.as_ps() as f64 - self.average);
        delay
    }

    /// The end of a period of quick adapt. Whether it has set the window.
    fn adapt(
        &mut self,
        now: Time,
        delay: Time,
        is_loss: bool,
        in_flight: u64,
        t: &NsccTerms,
    ) -> bool {
        if now < self.ends {
            return false;
        }
        let is_bad = self.was_trimmed || is_loss || delay > t.target * 4;
        let adapts = self.ends > Time::ZERO && is_bad && self.came < self.largest(t) / 8;
        if adapts {
            self.cwnd = self.came.max(t.mtu);
            self.ignores = in_flight;
            (self.gained, self.is_fast, self.free) = (0.0, false, 0);
        }
        self.ends = now + self.base + t.target;
        (self.came, self.was_trimmed) = (0, false);
        adapts
    }

    /// Changes the window for an acknowledgement, by its mark and its queueing delay.
    pub fn on_ack(&mut self, ack: &NsccAck, terms: &NsccTerms) {
        let delay = match ack.rtt {
            Some(rtt) => self.sample(rtt, ack.is_marked, terms),
            None => self.average(),
        };
        self.came += ack.bytes;
        let ignores = self.ignores > 0;
        self.ignores = self.ignores.saturating_sub(ack.bytes);
        if self.adapt(ack.now, delay, false, ack.in_flight, terms) || ignores && ack.is_marked {
            return;
        }
        match (ack.is_marked, delay >= terms.target) {
            (false, true) => {
                (self.free, self.is_fast) = (0, false);
                self.gained += terms.fair * ack.bytes as f64;
            }
            (false, false) => self.grow(ack.bytes, delay, terms),
            (true, true) => self.shrink(ack.now, terms),
            (true, false) => {}
        }
        self.bound(terms);
        self.adjust(ack.now, ack.bytes, terms);
    }

    fn grow(&mut self, bytes: u64, delay: Time, terms: &NsccTerms) {
        if delay < NO_DELAY {
            self.free += bytes;
            if self.is_fast || self.free > self.cwnd {
                self.is_fast = true;
                self.cwnd += (terms.fast * bytes as f64) as u64;
                return;
            }
        } else {
            (self.free, self.is_fast) = (0, false);
        }
        let left = (terms.target - delay).as_ps() as f64;
        self.gained += terms.alpha * bytes as f64 * left;
    }

    fn shrink(&mut self, now: Time, terms: &NsccTerms) {
        (self.free, self.is_fast) = (0, false);
        let target = terms.target.as_ps() as f64;
        let waits = self.shrunk_at.is_some_and(|at| now < at + self.base);
        if waits || self.average <= target {
            return;
        }
        self.shrunk_at = Some(now);
        let kept = (1.0 - GAMMA * (self.average - target) / self.average).max(0.5);
        self.cwnd = (self.cwnd as f64 * kept) as u64;
    }

    fn adjust(&mut self, now: Time, bytes: u64, terms: &NsccTerms) {
        self.acked += bytes;
        if self.acked <= ADJUST_PACKETS * terms.mtu && now < self.adjusted_at + terms.base {
            return;
        }
        self.cwnd += (self.gained / self.cwnd as f64) as u64;
        if now >= self.grown_at + terms.base {
            self.cwnd += terms.eta as u64;
            self.grown_at = now;
        }
        (self.gained, self.acked, self.adjusted_at) = (0.0, 0, now);
        self.bound(terms);
    }

    /// A packet was trimmed, of so many bytes; `counts`: the window has to do with it.
    pub fn on_nack(&mut self, ack: &NsccAck, counts: bool, terms: &NsccTerms) {
        self.was_trimmed = true;
        if let Some(rtt) = ack.rtt
            && rtt < self.base
        {
            self.base = rtt;
        }
        let sample = terms.base.as_ps() as f64;
        self.average += WEIGHT * (sample - self.average);
        let ignores = self.ignores > 0;
        if !self.adapt(ack.now, Time::ZERO, true, ack.in_flight, terms) && counts && !ignores {
            self.cwnd = self.cwnd.saturating_sub(ack.bytes);
            self.bound(terms);
        }
    }

    /// A packet of so many bytes was not answered in time.
    pub fn on_timeout(&mut self, bytes: u64, terms: &NsccTerms) {
        self.cwnd = self.cwnd.saturating_sub(bytes);
        self.bound(terms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 4086;
    const MTU: u64 = 4150;

    /// 100 Gb/s over six links of 1 us: the round trip of a packet and its ACK.
    fn terms() -> NsccTerms {
        let base = Time::from_ps(14_022_720);
        NsccTerms::new(MSS, MTU, Rate::from_gbps(100), base, base * 3 / 4)
    }

    fn is_near(value: f64, wanted: f64) -> bool {
        (value / wanted - 1.0).abs() < 1e-4
    }

    fn ack(bytes: u64, delay: Time, is_marked: bool, now: Time) -> NsccAck {
        NsccAck { now, bytes, rtt: Some(terms().base + delay), is_marked, in_flight: 0 }
    }

    /// A connection whose window was set, and no period of quick adapt ends.
    fn with_window(cwnd: u64, average: Time) -> Nscc {
        let average = average.as_ps() as f64;
        Nscc { cwnd, average, ends: Time::MAX, ..Nscc::new(&terms()) }
    }

    #[test]
    fn constants_by_hand() {
        let t = terms();
        assert_eq!(t.target, Time::from_ps(10_517_040));
        assert!(is_near(t.alpha, 1.59158e-3), "{}", t.alpha);
        assert!(is_near(t.fair, 23_873.7) && is_near(t.eta, 716.2) && is_near(t.fast, 0.29214));
        assert_eq!(Nscc::new(&t).window(), 262_926);
        // At 400 Gb/s.
        let base = Time::from_ps(12_505_680);
        let t = NsccTerms::new(MSS, MTU, Rate::from_gbps(400), base, base * 3 / 4);
        assert!(is_near(t.fair, 85_163.7) && is_near(t.eta, 2_554.9));
        assert_eq!(t.initial, 937_926);
    }

    #[test]
    fn growth_by_hand() {
        let t = terms();
        let gained = |delay: Time| {
            let mut nscc = with_window(100_000, Time::ZERO);
            nscc.on_ack(&ack(16_600, delay, false, Time::from_us(1)), &t);
            (nscc.gained, nscc.gained / 100_000.0)
        };
        let (inc, bytes) = gained(t.target / 2);
        assert!(is_near(inc, 138_931_185.0) && bytes as u64 == 1389, "{inc}");
        assert_eq!(gained(Time::ZERO).1 as u64, 2778);
        assert_eq!(gained(t.target).1 as u64, 3963);
    }

    #[test]
    fn growth_is_fast_once_a_window_came_without_delay() {
        let t = terms();
        let mut nscc = Nscc { is_fast: true, ..with_window(100_000, Time::ZERO) };
        nscc.on_ack(&ack(16_600, Time::ZERO, false, Time::from_us(1)), &t);
        assert_eq!(nscc.window(), 104_849);
        let mut nscc = with_window(100_000, Time::ZERO);
        for at in 1..=7 {
            assert!(!nscc.is_fast, "{at}");
            nscc.on_ack(&ack(16_600, Time::ZERO, false, Time::from_us(at)), &t);
        }
        assert!(nscc.is_fast);
        nscc.on_ack(&ack(16_600, NO_DELAY, false, Time::from_us(8)), &t);
        assert!(!nscc.is_fast && nscc.free == 0);
    }

    #[test]
    fn shrinking_by_hand() {
        let t = terms();
        for (over, kept) in [(1.2, 0.8667), (1.5, 0.7333), (2.0, 0.6), (2.7, 0.5), (9.0, 0.5)] {
            let average = Time::from_ps((t.target.as_ps() as f64 * over) as u64);
            let mut nscc = with_window(100_000, average);
            nscc.shrink(Time::from_us(1), &t);
            assert!(is_near(nscc.window() as f64, kept * 100_000.0), "{over}: {}", nscc.window());
            let once = nscc.window();
            nscc.shrink(Time::from_us(2), &t);
            assert_eq!(nscc.window(), once, "at most once a round trip");
            nscc.shrink(Time::from_us(1) + t.base, &t);
            assert!(nscc.window() < once);
        }
    }

    #[test]
    fn marks_below_the_target_change_nothing() {
        let t = terms();
        let mut nscc = with_window(100_000, t.target * 3);
        nscc.on_ack(&ack(16_600, t.target - Time::from_ps(1), true, Time::from_us(1)), &t);
        assert_eq!((nscc.window(), nscc.gained), (100_000, 0.0));
    }

    #[test]
    fn a_window_that_gets_little_through_becomes_what_does() {
        let t = terms();
        let mut nscc = Nscc::new(&t);
        nscc.on_ack(&ack(0, Time::ZERO, false, Time::ZERO), &t);
        let mut at = Time::from_us(20);
        nscc.on_ack(&ack(20_000, t.target, true, at), &t);
        at = t.base + t.target;
        let nack = NsccAck { in_flight: 50_000, rtt: None, ..ack(MTU, Time::ZERO, false, at) };
        nscc.on_nack(&nack, true, &t);
        assert_eq!(nscc.window(), 20_000);
        // Until as much as was in flight is reported, marks and trimmed packets say nothing new.
        nscc.average = t.target.as_ps() as f64 * 3.0;
        nscc.on_nack(&nack, true, &t);
        nscc.on_ack(&ack(50_000, t.target * 3, true, at), &t);
        assert_eq!(nscc.window(), 20_000);
        nscc.on_nack(&nack, true, &t);
        assert_eq!(nscc.window(), 20_000 - MTU);
    }

    #[test]
    fn a_window_keeps_its_bounds() {
        let t = terms();
        let mut nscc = with_window(MTU + 1, Time::ZERO);
        nscc.on_timeout(MTU, &t);
        assert_eq!(nscc.window(), MTU);
        let mut nscc = Nscc { is_fast: true, ..with_window(262_000, Time::ZERO) };
        nscc.on_ack(&ack(100_000, Time::ZERO, false, Time::from_us(1)), &t);
        assert_eq!(nscc.window(), 262_926);
        // A shorter round trip makes the largest window smaller.
        let rtt = Some(t.base / 2);
        nscc.on_ack(&NsccAck { rtt, ..ack(0, Time::ZERO, false, Time::from_us(2)) }, &t);
        assert_eq!(nscc.window(), nscc.largest(&t));
    }
}
