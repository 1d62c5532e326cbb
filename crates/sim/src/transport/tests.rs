//! Both ends over a small pipe: a fixed delay each way, and a script that drops, delays, repeats or marks packets.
//!
//! The pipe takes no time to put packets on the wire, so that what is counted here are round trips. After every event it
//! asserts what must always hold.

use super::*;
use millpond_scenario::transport::{CubicParams, DctcpParams, NewRenoParams, SwiftParams};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MSS: u64 = 1000;
/// One way.
const DELAY: Time = Time::from_us(40);
const RTT: Time = Time::from_us(80);

pub(super) fn config_of<R>(kind: TransportKind, change: impl FnOnce(&mut TransportParams) -> R) -> Config {
    let mut params = TransportParams::default();
    change(&mut params);
    Config::new(&params, &kind, 1500)
}

/// DCTCP with these common parameters.
pub(super) fn config<R>(change: impl FnOnce(&mut TransportParams) -> R) -> Config {
    config_of(TransportKind::Dctcp(DctcpParams::default()), change)
}

/// NewReno, segments of [`MSS`] and no handshake, with these common parameters.
fn newreno<R>(change: impl FnOnce(&mut TransportParams) -> R) -> Config {
    config_of(TransportKind::NewReno(NewRenoParams::default()), |p| {
        (p.mss, p.handshake) = (Some(MSS as u32), false);
        change(p)
    })
}

fn dctcp<R>(change: impl FnOnce(&mut TransportParams) -> R) -> Config {
    config(|p| {
        (p.mss, p.handshake) = (Some(MSS as u32), false);
        change(p)
    })
}

/// Swift with these windows, in segments; with a target that this pipe never reaches, so that it stays at the largest.
fn swift<R>(min: f64, max: f64, change: impl FnOnce(&mut TransportParams) -> R) -> Config {
    let p = SwiftParams { swift_window_min: min, swift_window_max: max, ..SwiftParams::default() };
    config_of(TransportKind::Swift(p), |p| {
        (p.mss, p.handshake) = (Some(MSS as u32), false);
        change(p)
    })
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    drop: bool,
    twice: bool,
    mark: bool,
    late: Time,
}

const DROP: Fate = Fate { drop: true, twice: false, mark: false, late: Time::ZERO };
const PASS: Fate = Fate { drop: false, twice: false, mark: false, late: Time::ZERO };
const MARK: Fate = Fate { drop: false, twice: false, mark: true, late: Time::ZERO };

#[derive(Clone, Copy, Debug)]
enum Event {
    Syn(Time),
    SynAck(Time),
    Data { seq: u64, len: u32, ce: bool, cwr: bool, stamp: Time },
    Ack(AckOut),
}

/// A packet as the sender's NIC has cut it.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    seq: u64,
    again: bool,
}

type Script = Box<dyn FnMut(usize, u64) -> Fate>;

struct Pipe {
    cfg: Config,
    sender: Sender,
    receiver: Receiver,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    /// Fate of the n-th data packet, whose offset is also given.
    data_fate: Script,
    ack_fate: Script,
    acks: usize,
    /// Largest segment handed down.
    offload: u32,
    sent: Vec<Sent>,
    syns: Vec<Time>,
    highest: u64,
}

impl Pipe {
    fn new(cfg: Config) -> Pipe {
        Pipe {
            sender: Sender::new(&cfg),
            cfg,
            receiver: Receiver::new(),
            now: Time::ZERO,
            events: BTreeMap::new(),
            order: 0,
            data_fate: Box::new(|_, _| PASS),
            ack_fate: Box::new(|_, _| PASS),
            acks: 0,
            offload: 65_536,
            sent: Vec::new(),
            syns: Vec::new(),
            highest: 0,
        }
    }

    /// Loses the data packets with these numbers in the order of sending.
    fn losing(cfg: Config, lost: &'static [usize]) -> Pipe {
        Pipe { data_fate: Box::new(|n, _| if lost.contains(&n) { DROP } else { PASS }), ..Pipe::new(cfg) }
    }

    fn write(&mut self, segments: u64) {
        self.sender.write(self.now, segments * MSS);
        self.pump();
    }

    fn travel(&mut self, event: Event, fate: Fate) {
        for _ in 0..if fate.drop { 0 } else { 1 + u32::from(fate.twice) } {
            self.order += 1;
            self.events.insert((self.now + DELAY + fate.late, self.order), event);
        }
    }

    /// Sends what the sender has, and asserts what must hold of it.
    fn pump(&mut self) {
        while let Some(out) = self.sender.poll_send(self.now, self.offload, &self.cfg) {
            if out.syn {
                self.syns.push(self.now);
                let fate = (self.data_fate)(usize::MAX, self.syns.len() as u64);
                self.travel(Event::Syn(self.now), fate);
                continue;
            }
            assert!(out.len > 0 && out.seq + u64::from(out.len) <= self.sender.written());
            if !out.retransmission {
                assert_eq!(out.seq, self.highest);
                self.highest += u64::from(out.len);
                let extra = if self.cfg.sack { 0 } else { 2 * u64::from(self.cfg.mss) };
                assert!(self.sender.in_flight() <= self.sender.cwnd() + extra);
                assert!(self.highest - self.sender.acked() <= self.cfg.window_limit);
                let end = self.highest == self.sender.written();
                let whole = end || out.len.is_multiple_of(self.cfg.mss) || !self.cfg.silly_window_avoidance;
                assert!(whole, "whole segments");
            } else {
                assert!(out.len <= self.cfg.mss && out.seq + u64::from(out.len) <= self.highest);
            }
            self.put(out);
        }
        assert!(!self.sender.would_send(&self.cfg));
        let waiting = self.sender.acked() < self.highest || (!self.syns.is_empty() && self.highest == 0);
        assert!(!waiting || self.sender.deadline() != Time::MAX, "data outstanding and no timer");
        assert!(self.sender.in_flight() <= 2 * self.highest && self.sender.acked() <= self.receiver.received());
        assert!(self.sender.cwnd() >= u64::from(self.cfg.mss));
    }

    fn put(&mut self, out: Outgoing) {
        let (mut seq, end) = (out.seq, out.seq + u64::from(out.len));
        let mut cwr = out.cwr;
        while seq < end {
            let len = (end - seq).min(u64::from(self.cfg.mss)) as u32;
            let fate = (self.data_fate)(self.sent.len(), seq);
            self.sent.push(Sent { at: self.now, seq, again: out.retransmission });
            let ce = fate.mark && out.ecn == Ecn::Ect;
            self.travel(Event::Data { seq, len, ce, cwr, stamp: self.now }, fate);
            cwr = false;
            seq += u64::from(len);
        }
    }

    fn answer(&mut self, ack: AckOut) {
        let fate = (self.ack_fate)(self.acks, ack.ack);
        self.acks += 1;
        self.travel(Event::Ack(ack), fate);
    }

    /// Lets the next thing happen. Returns whether there was one before `until`.
    fn step(&mut self, until: Time) -> bool {
        let next = self.events.keys().next().map_or(Time::MAX, |k| k.0);
        let at = next.min(self.sender.deadline()).min(self.receiver.deadline());
        if at > until || at == Time::MAX {
            return false;
        }
        assert!(at >= self.now);
        self.now = at;
        if self.receiver.deadline() <= at {
            let ack = self.receiver.on_timer(at, &self.cfg).expect("the deadline has passed");
            self.answer(ack);
        } else if next <= at {
            let (_, event) = self.events.pop_first().expect("it was there");
            self.handle(event);
        } else {
            self.sender.on_timer(at, &self.cfg);
        }
        self.pump();
        true
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Syn(stamp) => self.travel(Event::SynAck(stamp), PASS),
            Event::SynAck(stamp) => self.sender.on_syn_ack(self.now, stamp, &self.cfg),
            Event::Data { seq, len, ce, cwr, stamp } => {
                let before = self.receiver.received();
                let arrived = self.receiver.on_data(self.now, seq, len, ce, cwr, stamp, &self.cfg);
                assert_eq!(arrived.in_order_upto, self.receiver.received());
                assert!(arrived.in_order_upto >= before && arrived.in_order_upto <= self.highest);
                for ack in arrived.acks.into_iter().flatten() {
                    self.answer(ack);
                }
            }
            Event::Ack(ack) => {
                let sack = (ack.sack.count > 0).then_some(&ack.sack);
                let ack = AckIn { ack: ack.ack, ece: ack.ece, sack, stamp: ack.stamp, hops: 1 };
                self.sender.on_ack(self.now, &ack, &self.cfg);
            }
        }
    }

    fn run(&mut self, until: Time) {
        while self.step(until) {}
        self.now = self.now.max(until.min(Time::from_s(1000)));
    }

    /// Runs until all is acknowledged; returns when that was.
    fn finish(&mut self) -> Time {
        while !self.sender.is_done() {
            assert!(self.step(Time::from_s(1000)), "stuck at {} of {}", self.sender.acked(), self.sender.written());
        }
        assert_eq!(self.receiver.received(), self.sender.written());
        self.now
    }

    /// When and what was sent again, in round trips and segments.
    fn again(&self) -> Vec<(u64, u64)> {
        self.sent.iter().filter(|s| s.again).map(|s| (s.at.as_ps() / RTT.as_ps(), s.seq / MSS)).collect()
    }

    /// Packets sent in each of the first round trips.
    fn by_round(&self, rounds: u64) -> Vec<usize> {
        let round = |s: &Sent| s.at.as_ps() / RTT.as_ps();
        (0..rounds).map(|r| self.sent.iter().filter(|s| round(s) == r).count()).collect()
    }
}

/// An ACK of `ack` segments with these SACK blocks, in segments, at a microsecond after the start.
fn ack(sender: &mut Sender, cfg: &Config, ack: u64, ece: bool, blocks: &[(u64, u64)]) {
    let mut sack = Sack { count: blocks.len() as u8, ..Sack::default() };
    for (i, b) in blocks.iter().enumerate() {
        sack.blocks[i] = (b.0 * MSS, b.1 * MSS);
    }
    let sack = (!blocks.is_empty()).then_some(&sack);
    sender.on_ack(Time::from_us(80), &AckIn { ack: ack * MSS, ece, sack, stamp: Time::ZERO, hops: 1 }, cfg);
}

/// All that the sender sends now, as (first segment, segments, again).
fn poll(sender: &mut Sender, cfg: &Config) -> Vec<(u64, u64, bool)> {
    std::iter::from_fn(|| sender.poll_send(Time::from_us(80), 65_536, cfg))
        .map(|o| (o.seq / MSS, u64::from(o.len) / MSS, o.retransmission))
        .collect()
}

/// A sender with a first window of `window` segments on its way and more to send.
fn in_flight(cfg: &Config, window: u64) -> Sender {
    let mut sender = Sender::established(0, cfg);
    sender.write(Time::ZERO, 1000 * MSS);
    assert_eq!(poll(&mut sender, cfg), [(0, window, false)]);
    sender
}

#[test]
fn rfc6928_the_initial_window_leaves_as_one_burst_after_the_handshake() {
    let mut pipe = Pipe::new(config(|p| p.mss = Some(MSS as u32)));
    pipe.write(100);
    pipe.run(RTT);
    assert_eq!((pipe.syns.as_slice(), pipe.sent.len()), (&[Time::ZERO][..], 10));
    assert!(pipe.sent.iter().all(|s| s.at == RTT && !s.again));
    assert_eq!((pipe.sender.srtt(), pipe.sender.rto()), (RTT, Time::from_ms(10)));
}

#[test]
fn slow_start_doubles_each_round_trip() {
    for delayed_ack in [1, 2] {
        let mut pipe = Pipe::new(newreno(|p| p.delayed_ack = delayed_ack));
        pipe.write(10_000);
        pipe.run(RTT * 6);
        assert_eq!(pipe.by_round(6), [10, 20, 40, 80, 160, 320]);
    }
}

#[test]
fn congestion_avoidance_adds_a_segment_each_round_trip() {
    let mut pipe = Pipe::losing(newreno(|_| ()), &[40]);
    pipe.write(10_000);
    pipe.run(RTT * 30);
    assert_eq!((pipe.sender.retransmitted, pipe.sender.timeouts), (1, 0));
    let rounds = pipe.by_round(30);
    assert!(rounds[10..].windows(2).all(|w| w[1] == w[0] + 1), "{rounds:?}");
}

#[test]
fn rfc5681_the_third_duplicate_ack_retransmits_and_the_first_two_transmit() {
    for sack in [false, true] {
        let cfg = newreno(|p| p.sack = sack);
        let mut s = in_flight(&cfg, 10);
        let blocks = |n: u64| if sack { vec![(1, n + 1)] } else { vec![] };
        for n in 1..=2 {
            ack(&mut s, &cfg, 0, false, &blocks(n));
            assert_eq!(poll(&mut s, &cfg), [(9 + n, 1, false)], "limited transmit, RFC 3042");
        }
        ack(&mut s, &cfg, 0, false, &blocks(3));
        assert_eq!(poll(&mut s, &cfg), [(0, 1, true)]);
        assert_eq!(s.ssthresh(), 5 * MSS, "half of FlightSize without limited transmit's");
        assert_eq!(s.cwnd(), if sack { 5 * MSS } else { 8 * MSS });
        assert_eq!((s.retransmitted, s.timeouts), (1, 0));
    }
}

#[test]
fn without_limited_transmit_duplicate_acks_send_nothing() {
    for sack in [false, true] {
        let cfg = newreno(|p| (p.sack, p.limited_transmit) = (sack, false));
        let mut s = in_flight(&cfg, 10);
        for n in 1..=2 {
            ack(&mut s, &cfg, 0, false, if sack { &[(1, 2), (3, 4)][..n] } else { &[] });
            assert_eq!(poll(&mut s, &cfg), []);
        }
    }
}

#[test]
fn the_duplicate_ack_threshold_can_be_one_or_off() {
    for sack in [false, true] {
        let cfg = newreno(|p| (p.sack, p.dupack_threshold) = (sack, Some(1)));
        let mut s = in_flight(&cfg, 10);
        ack(&mut s, &cfg, 0, false, if sack { &[(1, 2)] } else { &[] });
        assert_eq!(poll(&mut s, &cfg)[0], (0, 1, true));
        let mut pipe = Pipe::losing(newreno(|p| (p.sack, p.dupack_threshold) = (sack, None)), &[3]);
        pipe.write(10);
        assert!(pipe.finish() > Time::from_ms(10));
        assert_eq!((pipe.sender.timeouts, pipe.sent.iter().find(|s| s.again).unwrap().seq), (1, 3 * MSS));
    }
}

#[test]
fn rfc6582_partial_acks_repair_one_hole_a_round_trip() {
    let mut pipe = Pipe::losing(newreno(|p| p.sack = false), &[10, 13, 16]);
    pipe.write(60);
    pipe.finish();
    assert_eq!(pipe.again(), [(2, 10), (3, 13), (4, 16)]);
    assert_eq!((pipe.sender.timeouts, pipe.sender.ssthresh()), (0, 10 * MSS));
}

#[test]
fn rfc6675_repairs_several_holes_in_one_round_trip() {
    let mut pipe = Pipe::losing(newreno(|_| ()), &[10, 13, 16]);
    pipe.write(60);
    pipe.finish();
    assert_eq!(pipe.again(), [(2, 10), (2, 13), (2, 16)]);
    assert_eq!((pipe.sender.timeouts, pipe.sender.ssthresh()), (0, 10 * MSS));
}

#[test]
fn a_lost_tail_waits_for_the_timer() {
    for sack in [false, true] {
        let mut pipe = Pipe::losing(newreno(|p| p.sack = sack), &[4]);
        pipe.write(5);
        let done = pipe.finish();
        assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (1, 1));
        // The timer was restarted by the last ACK, a round trip after the start.
        assert_eq!(done, RTT + Time::from_ms(10) + RTT);
    }
}

#[test]
fn timeouts_back_off_from_min_rto_unless_fixed() {
    let gaps = |change: fn(&mut TransportParams)| {
        let cfg = newreno(|p| {
            p.min_rto = Time::from_ms(4);
            change(p);
        });
        let mut pipe = Pipe::new(cfg);
        pipe.data_fate = Box::new(|n, _| if (1..5).contains(&n) { DROP } else { PASS });
        pipe.write(1);
        pipe.run(RTT);
        pipe.write(1);
        pipe.finish();
        let at: Vec<Time> = pipe.sent[1..].iter().map(|s| s.at).collect();
        at.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>()
    };
    assert_eq!(gaps(|_| ()), [4, 8, 16, 32].map(Time::from_ms));
    assert_eq!(gaps(|p| p.fixed_rto = Some(Time::from_us(200))), [200; 4].map(Time::from_us));
    assert_eq!(gaps(|p| p.max_rto = Time::from_ms(10)), [4, 8, 10, 10].map(Time::from_ms));
}

#[test]
fn a_timeout_halves_once_starts_from_one_segment_and_skips_what_is_sacked() {
    let cfg = newreno(|p| p.dupack_threshold = None);
    let mut s = in_flight(&cfg, 10);
    ack(&mut s, &cfg, 2, false, &[(3, 5), (6, 8)]);
    assert_eq!(poll(&mut s, &cfg).iter().map(|p| p.1).sum::<u64>(), 8, "two for the ACK's growth, six for 2+4 gone");
    let flight = s.in_flight();
    assert_eq!(flight, 12 * MSS);
    s.on_timer(s.deadline(), &cfg);
    assert_eq!((s.cwnd(), s.ssthresh()), (MSS, 6 * MSS), "FlightSize is at most the window");
    assert_eq!(poll(&mut s, &cfg), [(2, 1, true)]);
    s.on_timer(s.deadline(), &cfg);
    assert_eq!(s.ssthresh(), 6 * MSS, "held when the timer expires again, RFC 5681 §3.1");
    assert_eq!((poll(&mut s, &cfg), s.timeouts), (vec![(2, 1, true)], 2));
    ack(&mut s, &cfg, 5, false, &[(6, 8)]);
    assert_eq!(poll(&mut s, &cfg), [(5, 1, true), (8, 1, true)]);
    ack(&mut s, &cfg, 8, false, &[]);
    assert_eq!(s.cwnd(), 3 * MSS, "one segment an ACK after a timeout, RFC 3465 §2.3");
    assert_eq!(poll(&mut s, &cfg), [(9, 1, true), (10, 1, true)]);
}

#[test]
fn a_lost_retransmission_waits_for_the_timer() {
    let mut pipe = Pipe::new(newreno(|_| ()));
    let mut lost = 0;
    pipe.data_fate = Box::new(move |_, seq| {
        lost += u32::from(seq == 12 * MSS);
        if seq == 12 * MSS && lost <= 2 { DROP } else { PASS }
    });
    pipe.write(40);
    pipe.finish();
    assert_eq!(pipe.sender.timeouts, 1);
    assert!(pipe.sender.retransmitted >= 2);
}

#[test]
fn rfc6298_lost_syns_wait_one_second_then_two_and_rfc6928_shrinks_the_window_after_the_second() {
    for (lost, syns, window) in [(1u64, vec![0, 1], 10), (2, vec![0, 1, 3], 1)] {
        let mut pipe = Pipe::new(config(|p| p.mss = Some(MSS as u32)));
        pipe.data_fate = Box::new(move |n, k| if n == usize::MAX && k <= lost { DROP } else { PASS });
        pipe.write(100);
        pipe.run(Time::from_s(*syns.last().unwrap()) + RTT);
        assert_eq!(pipe.syns, syns.iter().map(|&s| Time::from_s(s)).collect::<Vec<_>>());
        assert_eq!((pipe.sent.len(), pipe.sender.rto()), (window, Time::from_ms(10)));
        assert_eq!((u64::from(pipe.sender.timeouts), u64::from(pipe.sender.retransmitted)), (lost, lost));
    }
}

#[test]
fn rfc5681_an_idle_connection_restarts_from_the_initial_window() {
    for (restart, expected) in [(true, 10), (false, 40)] {
        let mut pipe = Pipe::new(newreno(|p| p.restart_after_idle = restart));
        pipe.write(70);
        pipe.finish();
        assert!((40 * MSS..=80 * MSS).contains(&pipe.sender.cwnd()));
        pipe.run(pipe.now + Time::from_ms(11));
        let before = pipe.sent.len();
        pipe.write(40);
        assert_eq!(pipe.sent.len() - before, expected);
    }
}

#[test]
fn buffers_limit_what_is_in_flight() {
    let mut pipe = Pipe::new(newreno(|p| p.receive_buffer = Some(millpond_core::Bytes(16 * MSS + 500))));
    pipe.write(200);
    pipe.finish();
    assert_eq!(pipe.by_round(5), [10, 16, 16, 16, 16]);
    assert!(pipe.sender.cwnd() <= 34 * MSS, "a window that does not limit does not grow");
}

/// The same without validation: the window counts what was acknowledged, whether or not it is what limits.
#[test]
fn without_validation_a_window_grows_beyond_the_receivers() {
    let mut pipe = Pipe::new(newreno(|p| {
        p.receive_buffer = Some(millpond_core::Bytes(16 * MSS + 500));
        p.window_validation = false;
    }));
    pipe.write(200);
    pipe.finish();
    assert_eq!(pipe.by_round(5), [10, 16, 16, 16, 16], "what is sent is the same");
    assert_eq!(pipe.sender.cwnd(), (10 + 200) * MSS);
}

#[test]
fn silly_window_avoidance_waits_for_room_for_a_segment_and_without_it_any_room_is_filled() {
    for avoid in [true, false] {
        let cfg = newreno(|p| {
            (p.initial_window, p.receive_buffer) = (20, Some(millpond_core::Bytes(10 * MSS + 300)));
            p.silly_window_avoidance = avoid;
        });
        let mut s = Sender::established(0, &cfg);
        s.write(Time::ZERO, 1000 * MSS);
        // Acknowledged so far, and what is sent then: room of 800 bytes is none, 1,600 bytes are room for one.
        let expected: [(u64, &[u32]); 3] = match avoid {
            true => [(0, &[10_000]), (500, &[]), (1300, &[1000])],
            false => [(0, &[10_000, 300]), (500, &[500]), (1300, &[800])],
        };
        for (acked, expected) in expected {
            let ack = AckIn { ack: acked, ece: false, sack: None, stamp: Time::ZERO, hops: 1 };
            s.on_ack(Time::from_us(80), &ack, &cfg);
            let sent = std::iter::from_fn(|| s.poll_send(Time::from_us(80), 65_536, &cfg));
            assert_eq!(sent.map(|out| out.len).collect::<Vec<_>>(), expected, "{acked} acknowledged");
        }
    }
}

/// Two holes in one window. NewReno sends the second again as soon as the first is filled; Reno has ended its recovery by
/// then, and wants three duplicates more, which cut the window once more, or the timer.
#[test]
fn reno_leaves_the_second_hole_of_a_window_to_new_duplicates_or_the_timer() {
    let repaired_first = |fast_recovery| {
        let cfg = newreno(|p| (p.sack, p.limited_transmit, p.fast_recovery) = (false, false, fast_recovery));
        let mut s = in_flight(&cfg, 10);
        for _ in 0..2 {
            ack(&mut s, &cfg, 0, false, &[]);
            assert_eq!(poll(&mut s, &cfg), []);
        }
        ack(&mut s, &cfg, 0, false, &[]);
        assert_eq!(poll(&mut s, &cfg), [(0, 1, true)]);
        assert_eq!((s.cwnd(), s.ssthresh()), (8 * MSS, 5 * MSS));
        ack(&mut s, &cfg, 3, false, &[]);
        (cfg, s)
    };
    let (cfg, mut s) = repaired_first(FastRecovery::NewReno);
    assert_eq!(poll(&mut s, &cfg), [(3, 1, true)], "RFC 6582: a partial ACK shows the next hole");
    assert_eq!((s.retransmitted, s.timeouts, s.ssthresh()), (2, 0, 5 * MSS));

    let (cfg, mut s) = repaired_first(FastRecovery::Reno);
    assert_eq!(s.cwnd(), 5 * MSS, "RFC 5681 §3.2 (6): deflated to ssthresh");
    assert_eq!(poll(&mut s, &cfg), [], "seven segments are in flight");
    for _ in 0..2 {
        ack(&mut s, &cfg, 3, false, &[]);
        assert_eq!(poll(&mut s, &cfg), []);
    }
    ack(&mut s, &cfg, 3, false, &[]);
    assert_eq!(poll(&mut s, &cfg), [(3, 1, true)]);
    assert_eq!((s.retransmitted, s.timeouts, s.ssthresh()), (2, 0, 5 * MSS / 2), "cut again");

    let (cfg, mut s) = repaired_first(FastRecovery::Reno);
    poll(&mut s, &cfg);
    s.on_timer(s.deadline(), &cfg);
    assert_eq!(poll(&mut s, &cfg), [(3, 1, true)]);
    assert_eq!((s.retransmitted, s.timeouts), (2, 1));
}

/// One loss a window is the same to both; with SACK, RFC 6675 repairs all losses whatever the key says.
#[test]
fn reno_repairs_one_hole_as_newreno_does_and_sack_has_its_own_way() {
    for sack in [false, true] {
        let repairs = |fast_recovery| {
            let cfg = newreno(|p| (p.sack, p.fast_recovery) = (sack, fast_recovery));
            let mut pipe = Pipe::losing(cfg, if sack { &[10, 13, 16] } else { &[13] });
            pipe.write(60);
            pipe.finish();
            (pipe.again(), pipe.sender.timeouts, pipe.sender.ssthresh())
        };
        let expected = if sack { vec![(2, 10), (2, 13), (2, 16)] } else { vec![(2, 13)] };
        for (again, timeouts, _) in [repairs(FastRecovery::Reno), repairs(FastRecovery::NewReno)] {
            assert_eq!((again, timeouts), (expected.clone(), 0));
        }
        assert!(!sack || repairs(FastRecovery::Reno).2 == repairs(FastRecovery::NewReno).2);
    }
}

#[test]
fn an_echo_that_cuts_nothing_grows_the_window_only_where_it_is_told_to() {
    for growth in [false, true] {
        let kind = TransportKind::Dctcp(DctcpParams { dctcp_growth_on_echo: growth, ..DctcpParams::default() });
        let cfg = config_of(kind, |p| (p.mss, p.handshake) = (Some(MSS as u32), false));
        let mut s = in_flight(&cfg, 10);
        ack(&mut s, &cfg, 1, false, &[]); // ends the first observation; the second ends beyond what is sent by now
        assert_eq!(s.cwnd(), 11 * MSS);
        ack(&mut s, &cfg, 2, true, &[]);
        assert_eq!(s.cwnd(), if growth { 12 * MSS } else { 11 * MSS });
        ack(&mut s, &cfg, 3, false, &[]);
        assert_eq!(s.cwnd(), if growth { 13 * MSS } else { 12 * MSS }, "others grow it in any case");
        // The echo is answered all the same, at the window's end.
        for n in 4..=11 {
            poll(&mut s, &cfg);
            ack(&mut s, &cfg, n, false, &[]);
        }
        assert!(s.alpha().unwrap() < 1.0 && s.ssthresh() < u64::MAX, "{:?}", s.alpha());
    }
}

#[test]
fn rfc8257_every_window_with_marks_is_cut_once_and_others_never() {
    let mut pipe = Pipe::new(dctcp(|_| ()));
    pipe.data_fate = Box::new(|n, _| if (70..250).contains(&n) { MARK } else { PASS });
    pipe.write(100_000);
    let (mut cuts, mut window) = (Vec::new(), pipe.sender.cwnd());
    while pipe.now < RTT * 60 {
        assert!(pipe.step(Time::MAX));
        if pipe.sender.cwnd() < window {
            cuts.push((pipe.now.as_ps() / RTT.as_ps(), window, pipe.sender.cwnd(), pipe.sender.alpha().unwrap()));
        }
        window = pipe.sender.cwnd();
    }
    assert!(cuts.len() >= 5, "{cuts:?}");
    for w in cuts.windows(2) {
        assert!(w[1].0 > w[0].0, "twice in a round trip: {w:?}");
    }
    for &(_, before, after, alpha) in &cuts {
        let expected = ((before as f64 * (1.0 - alpha / 2.0)) as u64).max(MSS);
        assert_eq!(after, expected);
    }
    assert_eq!(pipe.sender.timeouts, 0);
    assert!(pipe.sender.alpha().unwrap() < 1.0 && pipe.sender.cwnd() > 20 * MSS, "grows again once marks have ended");
}

#[test]
fn dctcp_cuts_at_the_first_mark_if_told_so_and_says_cwr_once() {
    let kind = TransportKind::Dctcp(DctcpParams {
        dctcp_reduce: DctcpReduce::FirstMark,
        dctcp_alpha_initial: 0.5,
        ..DctcpParams::default()
    });
    let cfg = config_of(kind, |p| (p.mss, p.handshake) = (Some(MSS as u32), false));
    let mut s = in_flight(&cfg, 10);
    ack(&mut s, &cfg, 1, false, &[]);
    poll(&mut s, &cfg);
    ack(&mut s, &cfg, 2, true, &[]);
    let alpha = 0.5 * 15.0 / 16.0; // the first ACK has ended the first observation
    assert_eq!(s.cwnd(), (11_000.0 * (1.0 - alpha / 2.0)) as u64);
    let cut = s.cwnd();
    for n in 3..=11 {
        ack(&mut s, &cfg, n, true, &[]);
        assert_eq!(s.cwnd(), cut, "once a window, and no growth on an echo");
    }
    let out: Vec<_> = std::iter::from_fn(|| s.poll_send(Time::from_us(80), MSS as u32, &cfg)).collect();
    assert!(out[0].cwr && out[1..].iter().all(|o| !o.cwr) && out.iter().all(|o| o.ecn == Ecn::Ect));
}

#[test]
fn loss_in_a_window_already_cut_for_marks_does_not_cut_again() {
    let cfg = dctcp(|p| p.initial_window = 20);
    let mut s = in_flight(&cfg, 20);
    ack(&mut s, &cfg, 1, true, &[]); // ends the first observation, alpha 1: half
    assert_eq!((s.cwnd(), s.ssthresh()), (10 * MSS, 10 * MSS));
    ack(&mut s, &cfg, 1, false, &[(2, 5)]);
    assert_eq!(poll(&mut s, &cfg), [(1, 1, true)]);
    assert_eq!((s.cwnd(), s.ssthresh()), (10 * MSS, 10 * MSS));
}

#[test]
fn ecn_of_data_and_retransmissions_by_transport() {
    let ecn = |kind| {
        let cfg = config_of(kind, |_| ());
        (cfg.data_ecn, cfg.retransmission_ecn, cfg.echo)
    };
    assert_eq!(ecn(TransportKind::Dctcp(DctcpParams::default())), (Ecn::Ect, Ecn::Ect, Echo::Precise));
    assert_eq!(ecn(TransportKind::NewReno(NewRenoParams::default())), (Ecn::NotEct, Ecn::NotEct, Echo::Off));
    let marked = TransportKind::Cubic(CubicParams { cubic_ecn: true, ..CubicParams::default() });
    assert_eq!(ecn(marked), (Ecn::Ect, Ecn::NotEct, Echo::Latch));
    assert_eq!(ecn(TransportKind::Swift(SwiftParams::default())), (Ecn::NotEct, Ecn::NotEct, Echo::Off));
}

#[test]
fn newreno_with_ecn_halves_once_a_window_and_the_latch_ends_with_cwr() {
    let kind = TransportKind::NewReno(NewRenoParams { newreno_ecn: true });
    let cfg = config_of(kind, |p| (p.mss, p.handshake) = (Some(MSS as u32), false));
    let mut pipe = Pipe::new(cfg);
    pipe.data_fate = Box::new(|n, _| if n == 30 { MARK } else { PASS });
    pipe.write(100_000);
    let (mut cuts, mut window) = (Vec::new(), pipe.sender.cwnd());
    while pipe.now < RTT * 12 {
        assert!(pipe.step(Time::MAX));
        if pipe.sender.cwnd() < window {
            cuts.push((window / MSS, pipe.sender.cwnd() / MSS));
        }
        window = pipe.sender.cwnd();
    }
    assert_eq!(cuts, [(40, 20)]);
    assert!(pipe.sender.cwnd() > 24 * MSS);
}

#[test]
fn scattered_losses_of_new_data_never_need_the_timer() {
    for sack in [false, true] {
        for kind in [TransportKind::NewReno(Default::default()), TransportKind::Cubic(Default::default())] {
            let mut pipe = Pipe::new(config_of(kind, |p| (p.mss, p.sack) = (Some(MSS as u32), sack)));
            let mut highest = 0;
            pipe.data_fate = Box::new(move |_, seq| {
                let new = seq > highest;
                highest = highest.max(seq);
                if new && (seq / MSS) % 97 == 50 && seq < 4900 * MSS { DROP } else { PASS }
            });
            pipe.write(5000);
            pipe.finish();
            assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 50));
        }
    }
}

#[test]
fn timeouts_of_zero_do_not_stop_time() {
    let cfg = config(|p| {
        (p.min_rto, p.initial_rto, p.max_rto) = (Time::ZERO, Time::ZERO, Time::ZERO);
        p.fixed_rto = Some(Time::ZERO);
    });
    let mut pipe = Pipe::new(cfg);
    pipe.data_fate = Box::new(|n, _| if n < 3 { DROP } else { PASS });
    pipe.write(3);
    pipe.finish();
}

#[test]
fn reordering_below_the_threshold_is_not_loss() {
    for sack in [false, true] {
        let mut pipe = Pipe::new(newreno(|p| p.sack = sack));
        // Every tenth packet is overtaken by nothing but those sent with it and after it in the same burst.
        pipe.data_fate = Box::new(|n, _| if n % 10 == 7 { Fate { late: Time::from_ps(1), ..PASS } } else { PASS });
        pipe.write(200);
        pipe.offload = MSS as u32;
        pipe.finish();
        assert_eq!((pipe.sender.timeouts, pipe.receiver.received()), (0, 200 * MSS));
    }
}

/// The tail of a short flow is lost, once or twice: with INET's estimator it is repaired some (7/8)^n of the initial
/// timeout after the last ACK, for n samples, and three times that; with RFC 6298's after the floor, and three times it.
#[test]
fn inet_timeouts_repair_a_tail_lost_once_or_twice_at_the_plateaus() {
    for (handshake, acked) in [(false, 0u64), (false, 1), (false, 4), (true, 0), (true, 1), (true, 2), (true, 3)] {
        for estimator in [RtoEstimator::Inet, RtoEstimator::Rfc6298] {
            for lost in [1, 2] {
                let mut pipe = Pipe::new(config(|p| {
                    (p.mss, p.handshake, p.rto_estimator) = (Some(MSS as u32), handshake, estimator);
                    p.max_rto = Time::from_s(240);
                }));
                let mut times = 0;
                pipe.data_fate = Box::new(move |n, seq| {
                    times += u32::from(n != usize::MAX && seq == acked * MSS);
                    if n != usize::MAX && seq == acked * MSS && times <= lost { DROP } else { PASS }
                });
                pipe.write(acked + 1);
                pipe.finish();
                let samples = acked as i32 + i32::from(handshake);
                let rto = match estimator {
                    _ if samples == 0 => 1.0,
                    RtoEstimator::Inet => 0.875f64.powi(samples),
                    RtoEstimator::Rfc6298 => 0.010,
                };
                let first = pipe.sent.iter().find(|s| s.seq == acked * MSS).unwrap().at;
                let since = if acked > 0 { first + RTT } else { first };
                let again: Vec<f64> = pipe.sent.iter().filter(|s| s.again).map(|s| (s.at - since).as_s_f64()).collect();
                assert_eq!((again.len() as u32, pipe.sender.timeouts), (lost, lost));
                for (at, factor) in again.iter().zip([1.0, 3.0]) {
                    let off = (at - factor * rto).abs();
                    assert!(off < 5e-4 * factor, "{estimator:?}, {samples} samples: {at} s, not {factor} × {rto} s");
                }
            }
        }
    }
}

#[test]
fn swift_below_one_segment_sends_one_packet_each_round_trip_time_over_the_window() {
    // The last is far below what the timeout of 10 ms would wait for; nothing is lost, so it must not expire.
    for (window, gap) in [(0.5, RTT * 2), (0.25, RTT * 4), (0.001, RTT * 1000)] {
        let mut pipe = Pipe::new(swift(window, window, |_| ()));
        pipe.write(20);
        pipe.finish();
        let at: Vec<Time> = pipe.sent.iter().map(|s| s.at).collect();
        assert_eq!(at, (0..20).map(|n| gap * n).collect::<Vec<_>>());
        assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 0));
        // What is written later waits for its turn, too; and after a pause it does not.
        pipe.write(1);
        pipe.finish();
        assert_eq!(pipe.sent.last().unwrap().at, gap * 20);
        pipe.run(gap * 100);
        pipe.write(1);
        assert_eq!(pipe.sent.last().unwrap().at, gap * 100);
    }
}

#[test]
fn swift_paces_what_a_timeout_sends_again() {
    let mut pipe = Pipe::losing(swift(0.001, 0.01, |_| ()), &[3]);
    pipe.write(4);
    pipe.finish();
    // One each 8 ms; the fourth is lost. The timer halves the window, and the next turn is 16 ms after the last sending.
    let at: Vec<Time> = pipe.sent.iter().map(|s| s.at).collect();
    assert_eq!(at, [0, 8, 16, 24, 40].map(Time::from_ms));
    assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (1, 1));
}

#[test]
fn swift_repairs_a_loss_without_the_timer_and_takes_half_of_the_window() {
    for sack in [false, true] {
        let mut pipe = Pipe::losing(swift(0.001, 20.0, |p| (p.sack, p.initial_window) = (sack, 20)), &[25]);
        pipe.write(400);
        let mut least = u64::MAX;
        while !pipe.sender.is_done() {
            assert!(pipe.step(Time::from_s(1)));
            least = least.min(pipe.sender.cwnd());
        }
        assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 1));
        assert_eq!(pipe.again(), [(2, 25)]);
        // Without SACK the first that is seen of it is after the ACK that ends recovery, which covers a window: + 2.
        assert!((10 * MSS..13 * MSS).contains(&least), "{least}");
    }
}

#[test]
fn swift_begins_anew_after_lost_syns_and_an_idle_time() {
    let mut pipe = Pipe::new(swift(0.001, 43.0, |p| p.initial_window = 2));
    pipe.write(100);
    pipe.finish();
    assert!(pipe.sender.cwnd() > 10 * MSS);
    pipe.run(pipe.now + Time::from_ms(11));
    let before = pipe.sent.len();
    pipe.write(40);
    assert_eq!(pipe.sent.len() - before, 2, "the restart window");
    pipe.finish();
    let mut pipe = Pipe::new(swift(0.001, 43.0, |p| p.handshake = true));
    pipe.data_fate = Box::new(|n, k| if n == usize::MAX && k <= 2 { DROP } else { PASS });
    pipe.write(100);
    pipe.run(Time::from_s(3) + RTT);
    assert_eq!((pipe.syns.len(), pipe.sent.len()), (3, 1));
    pipe.finish();
}

fn any_kind() -> impl Strategy<Value = TransportKind> {
    prop_oneof![
        any::<bool>().prop_map(|newreno_ecn| TransportKind::NewReno(NewRenoParams { newreno_ecn })),
        (0.01f64..3.0, 0.0f64..30.0, 0u64..100).prop_map(|(min, more, target)| {
            TransportKind::Swift(SwiftParams {
                swift_window_min: min,
                swift_window_max: min + more,
                swift_base_target: Time::from_us(target),
                swift_retransmit_reset: 3,
                ..SwiftParams::default()
            })
        }),
        any::<bool>().prop_map(|ecn| TransportKind::Cubic(CubicParams { cubic_ecn: ecn, ..CubicParams::default() })),
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(latch, first, growth)| {
            TransportKind::Dctcp(DctcpParams {
                dctcp_growth_on_echo: growth,
                dctcp_echo: if latch { DctcpEcho::Latch } else { DctcpEcho::Precise },
                dctcp_reduce: if first { DctcpReduce::FirstMark } else { DctcpReduce::WindowEnd },
                ..DctcpParams::default()
            })
        }),
    ]
}

fn any_params() -> impl Strategy<Value = TransportParams> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let released = (any::<bool>(), any::<bool>(), any::<bool>());
    let numbers = (1u32..4, 1u32..20, prop::option::weighted(0.8, 1u32..5), prop::option::of(3u64..40));
    (flags, released, numbers).prop_map(|(flags, (reno, validation, avoidance), (delayed, iw, threshold, buffer))| {
        let (sack, limited, handshake, fixed, restart) = flags;
        TransportParams {
            fast_recovery: if reno { FastRecovery::Reno } else { FastRecovery::NewReno },
            window_validation: validation,
            silly_window_avoidance: avoidance,
            mss: Some(MSS as u32),
            sack,
            limited_transmit: limited,
            handshake,
            fixed_rto: fixed.then_some(Time::from_us(300)),
            restart_after_idle: restart,
            delayed_ack: delayed,
            initial_window: iw,
            dupack_threshold: threshold,
            receive_buffer: buffer.map(|b| millpond_core::Bytes(b * MSS / 2)),
            min_rto: Time::from_us(500),
            initial_rto: Time::from_ms(1),
            delayed_ack_timeout: Time::from_us(200),
            ..TransportParams::default()
        }
    })
}

/// From a byte: a tenth each of lost, repeated, marked and late packets, some of them both.
fn fate(byte: u8) -> Fate {
    let late = if byte % 10 == 3 { Time::from_us(u64::from(byte)) } else { Time::ZERO };
    Fate { drop: byte.is_multiple_of(10), twice: byte % 10 == 1, mark: byte % 5 == 2, late }
}

fn script(bytes: Vec<u8>) -> Script {
    let mut bytes = bytes.into_iter();
    Box::new(move |_, _| bytes.next().map_or(PASS, fate))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a network does to the first packets each way, all is delivered, and the pipe's assertions hold.
    #[test]
    fn everything_is_delivered_once_and_in_order(
        kind in any_kind(),
        params in any_params(),
        data in prop::collection::vec(any::<u8>(), 0..300),
        acks in prop::collection::vec(any::<u8>(), 0..300),
        writes in prop::collection::vec((1u64..60_000, 0u64..2_000), 1..6),
        offload in 1u32..40,
    ) {
        let mut pipe = Pipe::new(Config::new(&params, &kind, 1500));
        pipe.data_fate = script(data);
        pipe.ack_fate = script(acks);
        pipe.offload = offload * MSS as u32;
        for (bytes, wait_us) in writes {
            pipe.sender.write(pipe.now, bytes);
            pipe.pump();
            pipe.run(pipe.now + Time::from_us(wait_us));
        }
        pipe.finish();
        // What is still under way disturbs nothing.
        pipe.run(Time::MAX);
        prop_assert_eq!(pipe.sender.acked(), pipe.sender.written());
        prop_assert_eq!((pipe.sender.in_flight(), pipe.sender.deadline()), (0, Time::MAX));
    }
}
