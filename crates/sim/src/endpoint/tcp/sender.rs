//! A connection's sending end: what may be sent, what is lost, when to give up waiting.
//!
//! Loss recovery is RFC 6675 with SACK (or RACK's detection), RFC 6582 without; limited transmit
//! RFC 3042; after a timeout the outstanding data is sent again from the start, in slow start, past
//! what the receiver is known to hold (RFC 6675 §5.1: its SACKs are kept, since these receivers
//! never renege). The window is cut at most once a window of data, whatever the signals (RFC 3168
//! §5, RFC 8257 §3.4). It grows only while it is what limits the sender (RFC 7661 §4.1, RFC 9438
//! §5.8). Keys of the scenario take four of these away, as the TCP of published simulations does:
//! RFC 6582's recovery becomes RFC 5681's, which can cut twice a window; growth asks for no limit;
//! what room there is need not hold a full segment; and marks go on to cut what a loss has cut.
//!
//! Invariant: `una ≤ nxt ≤ written`; new data leaves only within the congestion window and
//! `window_limit`; while data is unacknowledged or a SYN unanswered the deadline is set.

mod deferral;
mod detection;
mod forced;
mod pace;
mod plan;
mod recovery;
mod reduction;
mod refusal;
mod subflow;
mod tail;

use super::Config;
use super::rack::Rack;
use super::rto::Rto;
use super::scoreboard::Scoreboard;
use crate::endpoint::{AckIn, Counters, Endpoint, Outgoing, Standing};
use millpond_core::congestion::{Acked, Cause, Control, Cut, Growth, Window};
use millpond_core::{Ecn, Mapping, Time};
use reduction::Reduction;
use tail::Tail;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    /// Nothing is known to be missing: the common case.
    Open,
    /// The same of a connection that may have to wait before it sends, or takes the uncommon path
    /// for another reason.
    Paced,
    /// Duplicate ACKs, too few to mean loss; or SACKs left from a recovery.
    Disorder,
    Recovery,
    /// After a timeout, until what was outstanding then is acknowledged.
    Loss,
    /// A SYN is to be sent.
    Closed,
    /// A SYN is on its way.
    SynSent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Syn,
    New(u32),
    /// `[from, to)` again.
    Again(u64, u64, Why),
}

/// Why a range is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// Fast retransmit, or the hole that a partial ACK has shown.
    First,
    /// NextSeg() rule 1 or 3.
    Hole,
    /// NextSeg() rule 4.
    Rescue,
    Timeout,
    Probe,
    Lost,
}

/// A connection's sending end. The fields that every ACK touches come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    /// The first byte not acknowledged.
    una: u64,
    /// The first byte never sent.
    nxt: u64,
    written: u64,
    window: Window,
    deadline: Time,
    rto: Rto,
    /// When data was last sent; `Time::MAX` before that.
    last_send: Time,
    control: Control,
    /// An ACK that reaches it ends recovery (RecoveryPoint; RFC 6582's recover).
    recover: u64,
    /// The end of what was sent when the window was last cut. Only marks and losses of what was
    /// sent after it cut again.
    cut_until: u64,
    /// After a timeout: the next byte to send again.
    resend: u64,
    /// The bytes that the receiver holds; allocated with the first SACK.
    board: Option<Box<Scoreboard>>,
    /// When what is outstanding was sent; allocated with the first segment, if RACK detects losses.
    rack: Option<Box<Rack>>,
    /// The window on its way down, if that takes a round trip.
    reduction: Option<Box<Reduction>>,
    dupacks: u32,
    /// How long the last segment takes at Linux's pacing rate, in nanoseconds; 0 where nothing is
    /// paced.
    gap_ns: u32,
    /// With deferral: the end of what had been sent when the window last was what limited.
    limited_until: u64,
    /// When the retransmission timer expires, while the deadline is the pace's or the probe's.
    rto_at: Time,
    /// The end of what was sent when the last tail loss probe left.
    probed: u64,
    pub(super) retransmitted: u32,
    pub(super) timeouts: u32,
    phase: Phase,
    /// The segment at `una` is to be sent again whatever the window.
    first_due: bool,
    /// The next new data carries CWR.
    cwr_due: bool,
    /// RFC 6582: a partial ACK has restarted the timer in this recovery.
    partial: bool,
    /// The pace forbids to send; the deadline is when it allows it.
    held: bool,
    /// New data waits for room for a larger segment.
    deferring: bool,
    /// Expiries since `una` last moved.
    expiries: u8,
    syns: u8,
    /// Which of the run's transports it follows; see [`Config::of`].
    which: u8,
    /// How often the probe timer was set since something was refused and nothing in flight; 0: it
    /// is not set.
    probes: u8,
    /// The probe timer has expired: one segment may be tried.
    probing: bool,
    tail: Tail,
}

/// How many bytes of new data to send: whole segments, except at the end of what is written.
#[inline]
fn whole_segments(room: u64, unsent: u64, max_len: u32, cfg: &Config) -> u32 {
    let mss = cfg.mss;
    let limit = room.min(u64::from(max_len));
    if unsent <= limit {
        return unsent as u32;
    }
    let limit = limit as u32;
    match limit.checked_sub(mss) {
        None if cfg.silly_window_avoidance => 0,
        None => limit,
        Some(rest) if rest < mss => mss,
        Some(rest) => limit - rest % mss,
    }
}

impl Sender {
    /// A new connection with nothing written. If the scenario has handshakes, its first segment is
    /// a SYN, once there is something to send.
    pub fn new(cfg: &Config) -> Sender {
        Sender::following(0, cfg)
    }

    /// The same of a connection that follows transport `which` of the run.
    pub fn following(which: u8, cfg: &Config) -> Sender {
        let cfg = cfg.of(which);
        let phase = if cfg.handshake { Phase::Closed } else { Sender::calm(cfg) };
        Sender {
            una: 0,
            nxt: 0,
            written: 0,
            window: Window { cwnd: cfg.initial_window, ssthresh: u64::MAX },
            deadline: Time::MAX,
            rto: if cfg.handshake { Rto::new(cfg) } else { Rto::for_data(cfg) },
            last_send: Time::MAX,
            control: Control::new(cfg.initial_window, &cfg.terms),
            recover: 0,
            cut_until: 0,
            resend: 0,
            board: None,
            rack: None,
            reduction: None,
            dupacks: 0,
            gap_ns: 0,
            limited_until: 0,
            rto_at: Time::MAX,
            probed: 0,
            retransmitted: 0,
            timeouts: 0,
            phase,
            first_due: false,
            cwr_due: false,
            partial: false,
            held: false,
            deferring: false,
            expiries: 0,
            syns: 0,
            which,
            probes: 0,
            probing: false,
            tail: Tail::Idle,
        }
    }

    /// The sending end of a connection that the other side has opened: no handshake, no round-trip
    /// time known yet.
    pub fn established(which: u8, cfg: &Config) -> Sender {
        Sender {
            phase: Sender::calm(cfg.of(which)),
            rto: Rto::for_data(cfg),
            ..Sender::following(which, cfg)
        }
    }

    #[inline]
    fn send_new(&mut self, now: Time, len: u32, cfg: &Config) -> Outgoing {
        let seq = self.nxt;
        self.nxt += u64::from(len);
        self.last_send = now;
        if self.deadline == Time::MAX {
            self.deadline = now.saturating_add(self.rto.current()); // RFC 6298 (5.1)
        }
        let cwr = std::mem::take(&mut self.cwr_due);
        Outgoing { cwr, ..Outgoing::new(seq, len, cfg.data_ecn) }
    }

    /// Data leaves while nothing is in flight: after an idle time of one timeout, from the restart
    /// window (RFC 5681 §4.1).
    #[cold]
    fn begin_flight(&mut self, now: Time, cfg: &Config) {
        if self.last_send == Time::MAX {
            return;
        }
        let idle = now.saturating_sub(self.last_send);
        self.control.idle(idle);
        self.gap_ns = 0; // it is over, or the sender would be held
        if cfg.restart_after_idle && idle > self.rto.current() {
            self.control.narrow(&mut self.window, cfg.initial_window, &cfg.terms);
        }
        self.last_send = now; // once, should the host be unable to send at once
    }

    #[cold]
    fn poll_else(&mut self, now: Time, max_len: u32, cfg: &Config) -> Option<Outgoing> {
        let cfg = cfg.of(self.which);
        if self.phase == Phase::Paced
            && !self.held
            && self.nxt == self.una
            && self.nxt < self.written
        {
            self.begin_flight(now, cfg);
        }
        let next = self.plan(max_len, cfg)?;
        self.deferring = matches!(next, Next::New(_))
            && self.tail != Tail::Due
            && self.defers(now, max_len, cfg);
        if self.deferring {
            self.limited_until = self.nxt;
            return None;
        }
        self.disarm();
        let segment = match next {
            Next::Syn => return Some(self.send_syn(now)),
            Next::Again(from, to, why) => self.send_again(now, from, to, why, cfg),
            Next::New(len) => {
                let probes = self.tail == Tail::Due;
                self.unschedule_probe();
                if let Some(board) = &mut self.board {
                    board.pipe += u64::from(len); // RFC 6675 (C.4)
                }
                let segment = self.send_new(now, len, cfg);
                self.note_new(now, len, cfg);
                if self.window.cwnd < self.in_flight() + u64::from(cfg.mss) {
                    self.limited_until = self.nxt;
                }
                // After a timeout, new data is due only once all holes are sent again.
                self.resend = self.nxt;
                if probes {
                    self.probe_sent(now);
                } else if !cfg.spaces && !cfg.pacing {
                    self.schedule_probe(now, cfg); // one that is held now may have none
                }
                segment
            }
        };
        if let Some(reduction) = &mut self.reduction {
            reduction.out += u64::from(segment.len);
        }
        if cfg.spaces {
            self.control.on_sent(now, segment.len, &cfg.terms);
            self.pace(now, cfg);
        } else if cfg.pacing {
            self.note_gap(segment.len, cfg);
            self.pace(now, cfg);
        }
        self.arm(now);
        Some(segment)
    }

    fn send_syn(&mut self, now: Time) -> Outgoing {
        self.phase = Phase::SynSent;
        self.deadline = now.saturating_add(self.rto.current());
        let retransmission = self.syns > 0;
        self.retransmitted += u32::from(retransmission);
        self.syns = self.syns.saturating_add(1);
        Outgoing { syn: true, retransmission, ..Outgoing::new(0, 0, Ecn::NotEct) }
    }

    /// `una` moves: a sample, and the timer starts again (RFC 6298 (5.2), (5.3)). Returns by how
    /// much.
    #[inline]
    fn advance(&mut self, now: Time, ack: &AckIn, measures: bool, cfg: &Config) -> u64 {
        let bytes = ack.ack - self.una;
        self.una = ack.ack;
        self.expiries = 0;
        if measures {
            self.rto.sample(now.saturating_sub(ack.stamp), cfg);
        } else {
            self.rto.acknowledged(cfg);
        }
        self.deadline = if self.una == self.nxt { Time::MAX } else { now + self.rto.current() };
        bytes
    }

    /// Shows an ACK of `bytes` more to the control law. Returns whether it asks for a cut.
    #[inline]
    fn show(&mut self, now: Time, bytes: u64, ack: &AckIn, cfg: &Config) -> bool {
        let (una, nxt, delay) = (self.una, self.sent_by_now(cfg), now.saturating_sub(ack.stamp));
        self.control
            .on_ack(Acked { now, bytes, ece: ack.ece, una, nxt, delay, hops: ack.hops }, &cfg.terms)
    }

    /// Congestion control for an ACK outside of recovery; `flight` is what was in flight before it.
    #[inline]
    fn steer(&mut self, now: Time, bytes: u64, flight: u64, ack: &AckIn, cfg: &Config) {
        if self.show(now, bytes, ack, cfg) {
            if self.una > self.cut_until {
                self.cut(Cause::Mark, flight, now, cfg);
            }
            return;
        }
        if self.reduction.is_some() {
            return;
        }
        let cwnd = self.window.cwnd;
        let limiting = if cwnd < self.window.ssthresh {
            cwnd <= 2 * flight
        } else {
            cwnd < flight + u64::from(cfg.mss)
        };
        // Linux remembers it for a window of data (`is_cwnd_limited`).
        let limiting = limiting || (cfg.defers && self.una - bytes < self.limited_until);
        if (limiting || !cfg.window_validation) && (!ack.ece || cfg.growth_on_echo) && bytes > 0 {
            let limit =
                if self.phase == Phase::Loss { u64::from(cfg.mss) } else { cfg.growth_limit };
            let is_bounded = cfg.growth_limit == u64::MAX;
            let growth = Growth { now, bytes, srtt: self.rto.srtt(), limit, is_bounded };
            self.control.grow(&mut self.window, &growth, &cfg.terms);
        }
    }

    /// The end of a signal's window of data. Where marks cut after a loss, too, that is after a
    /// timeout the end of what was sent since: SND.NXT as RFC 9293 takes it back to SND.UNA.
    #[inline]
    fn sent_by_now(&self, cfg: &Config) -> u64 {
        if self.phase == Phase::Loss && cfg.cut_after_loss { self.resend } else { self.nxt }
    }

    #[cold]
    fn cut(&mut self, cause: Cause, flight: u64, now: Time, cfg: &Config) {
        let cwnd = self.window.cwnd;
        self.control.cut(&mut self.window, &Cut { now, cause, flight }, &cfg.terms);
        let is_spread = cfg.prr && cause != Cause::Timeout;
        self.reduction = is_spread.then(|| Box::new(Reduction::new(self.una, self.nxt)));
        if is_spread {
            self.window.cwnd = cwnd.max(self.window.ssthresh);
        }
        if cause == Cause::Mark || !cfg.cut_after_loss {
            self.cut_until = self.sent_by_now(cfg);
        }
        self.cwr_due = cfg.ecn(); // RFC 3168 §6.1.2: for any reason
    }
}

impl Sender {
    /// Bytes believed to be in the network: RFC 6675's pipe where there are SACKs; after a timeout,
    /// what was sent since.
    pub fn in_flight(&self) -> u64 {
        match (self.phase, &self.board) {
            (Phase::Disorder | Phase::Recovery, Some(board)) => board.pipe,
            (Phase::Loss, Some(board)) if self.rack.is_some() => board.pipe,
            (Phase::Loss, Some(board)) => board.resent(self.una, self.resend),
            (Phase::Loss, None) => self.resend - self.una,
            _ => self.nxt - self.una,
        }
    }
    /// The congestion window in bytes. During RFC 6582's recovery it is inflated.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.window.cwnd
    }
    /// The slow-start threshold in bytes; `u64::MAX` at first.
    #[inline]
    pub fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }
}

impl Endpoint for Sender {
    type Config = Config;

    #[inline]
    fn write(&mut self, _now: Time, bytes: u64) {
        self.written += bytes;
    }

    #[inline(always)] // called from two places, of which one is the per-packet path
    fn poll_send(&mut self, now: Time, max_len: u32, cfg: &Config) -> Option<Outgoing> {
        if self.phase != Phase::Open {
            return self.poll_else(now, max_len, cfg);
        }
        if self.nxt == self.una && self.nxt < self.written {
            self.begin_flight(now, cfg);
        }
        let room = self.window.cwnd.min(cfg.window_limit).saturating_sub(self.nxt - self.una);
        let len = whole_segments(room, self.written - self.nxt, max_len, cfg);
        if len == 0 {
            return None;
        }
        Some(self.send_new(now, len, cfg))
    }

    fn would_send(&self, cfg: &Config) -> bool {
        !self.deferring && self.plan(u32::MAX, cfg.of(self.which)).is_some()
    }

    #[inline]
    fn on_ack(&mut self, now: Time, ack: &AckIn, cfg: &Config) {
        if self.phase != Phase::Open
            || ack.sack.is_some()
            || ack.ack <= self.una
            || ack.ack > self.nxt
        {
            return self.on_ack_else(now, ack, cfg);
        }
        let flight = self.nxt - self.una;
        let bytes = self.advance(now, ack, true, cfg);
        self.steer(now, bytes, flight, ack, cfg);
    }

    /// The answer to a SYN that was handed down at `stamp`.
    ///
    /// RFC 6298 (5.7) would set the timeout to 3 s where a SYN was sent again, for want of an
    /// unambiguous sample; the echo gives one. RFC 6928 §2: one segment to begin with only if more
    /// than one SYN had to be sent again.
    fn on_syn_ack(&mut self, now: Time, stamp: Time, _: Option<Mapping>, cfg: &Config) {
        if self.syns == 0 || !matches!(self.phase, Phase::SynSent | Phase::Closed) {
            return; // a repeated answer
        }
        let cfg = cfg.of(self.which);
        self.phase = Sender::calm(cfg);
        self.deadline = Time::MAX;
        self.expiries = 0;
        self.rto.sample(now.saturating_sub(stamp), cfg);
        if self.syns > 2 {
            self.control.narrow(&mut self.window, u64::from(cfg.mss), &cfg.terms);
        }
    }

    fn on_rtt(&mut self, rtt: Time, cfg: &Config) {
        self.rto.sample(rtt, cfg);
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.deadline
    }

    #[inline]
    fn on_timer(&mut self, now: Time, cfg: &Config) {
        if now >= self.deadline {
            self.expire(now, cfg);
        }
    }

    /// Its timers stood still for so long: they expire as much later, but no later than if they
    /// were started now, since an acknowledgement may have started them meanwhile.
    fn thaw(&mut self, now: Time, held: Time) {
        let latest = now.saturating_add(self.rto.current());
        let later = |at: Time| {
            if at == Time::MAX { at } else { at.saturating_add(held).min(latest.max(at)) }
        };
        (self.deadline, self.rto_at) = (later(self.deadline), later(self.rto_at));
    }

    #[inline]
    fn acked(&self) -> u64 {
        self.una
    }

    #[inline]
    fn written(&self) -> u64 {
        self.written
    }

    #[inline]
    fn sent(&self) -> u64 {
        self.nxt
    }

    fn srtt(&self) -> Time {
        self.rto.srtt()
    }

    fn rto(&self) -> Time {
        self.rto.current()
    }

    #[inline]
    fn counters(&self) -> Counters {
        Counters { retransmitted: self.retransmitted, timeouts: self.timeouts }
    }

    fn standing(&self, cfg: &Config) -> Standing {
        let metrics = self.control.metrics(&cfg.of(self.which).terms);
        Standing {
            state: match self.phase {
                Phase::Open | Phase::Paced => "open",
                Phase::Disorder => "disorder",
                Phase::Recovery => "recovery",
                Phase::Loss => "loss",
                Phase::Closed | Phase::SynSent => "syn-sent",
            },
            cwnd: self.cwnd(),
            ssthresh: self.ssthresh(),
            in_flight: self.in_flight(),
            law: metrics
                .into_iter()
                .filter_map(|(quantity, value)| Some((quantity.name, value?)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn new_data_goes_in_whole_segments_except_at_the_end() {
        let whole = |room, unsent, max_len, mss, avoid| {
            let cfg = crate::endpoint::tcp::tests::config(|p| {
                (p.mss, p.silly_window_avoidance) = (Some(mss), avoid)
            });
            whole_segments(room, unsent, max_len, &cfg)
        };
        assert_eq!(whole(5500, 99_999, 65_536, 1000, true), 5000);
        assert_eq!(whole(1999, 99_999, 65_536, 1000, true), 1000);
        assert_eq!(whole(999, 99_999, 65_536, 1000, true), 0);
        assert_eq!(whole(u64::MAX, 99_999, 65_536, 1460, true), 64_240);
        assert_eq!(whole(5500, 4321, 65_536, 1000, true), 4321);
        assert_eq!(whole(300, 200, 65_536, 1000, true), 200);
        assert_eq!(whole(u64::MAX, u64::MAX, 1000, 1000, true), 1000);
        assert_eq!(whole(0, 0, 1000, 1000, true), 0);
        assert_eq!(
            [whole(999, 99_999, 65_536, 1000, false), whole(5500, 99_999, 65_536, 1000, false)],
            [999, 5000]
        );
    }

    #[test]
    fn a_sender_is_small() {
        assert!(size_of::<Sender>() <= 256, "{}", size_of::<Sender>());
    }
}
