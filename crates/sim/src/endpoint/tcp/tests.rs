//! Both ends over a small pipe: a fixed delay each way, and a script that drops, delays, repeats or
//! marks packets.
//!
//! The pipe takes no time to put packets on the wire, so that what is counted here are round trips.
//! After every event it asserts what must always hold.

mod anything;
mod linux;
mod marks;
mod pacing;
mod rack;
mod recovery;
mod reduction;
mod swift;
mod tas;
mod timeouts;
mod windows;

use super::*;
use crate::endpoint::{AckIn, AckOut, DataIn, Endpoint, Limited, Marked, Outgoing, Receives};
use millpond_core::congestion::{CubicParams, DctcpParams, Echo, NewRenoParams, SwiftParams};
use millpond_core::congestion::{DctcpAlphaUpdate, DctcpEcho, DctcpReduce};
use millpond_core::switch::site::Auto;
use millpond_core::{Ecn, Sack, Time};
use millpond_scenario::transport::{
    FastRecovery, LossDetection, Pacing, RtoEstimator, RttSamples, TransportKind, TransportParams,
};
use std::collections::BTreeMap;

const MSS: u64 = 1000;
const DELAY: Time = Time::from_us(40);
const RTT: Time = Time::from_us(80);

pub(super) fn config_of<R>(
    kind: TransportKind,
    change: impl FnOnce(&mut TransportParams) -> R,
) -> Config {
    // RFC 6298's first timeout: the times here are reckoned with it.
    let mut params = TransportParams { initial_rto: Time::from_s(1), ..TransportParams::default() };
    change(&mut params);
    Config::new(&params, &kind, 1500)
}

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

/// Swift with these windows, in segments; with a target that this pipe never reaches, so that it
/// stays at the largest.
fn swift<R>(min: f64, max: f64, change: impl FnOnce(&mut TransportParams) -> R) -> Config {
    let p = SwiftParams {
        swift_window_min: min,
        swift_window_max: Auto::Given(max),
        ..SwiftParams::default()
    };
    config_of(TransportKind::Swift(p), |p| {
        (p.mss, p.handshake) = (Some(MSS as u32), false);
        change(p)
    })
}

/// Fate of a packet.
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
        Pipe {
            data_fate: Box::new(|n, _| if lost.contains(&n) { DROP } else { PASS }),
            ..Pipe::new(cfg)
        }
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
                // A tail loss probe asks for no window.
                let probes = self.cfg.tlp && out.len <= self.cfg.mss;
                assert!(probes || self.sender.in_flight() <= self.sender.cwnd() + extra);
                assert!(self.highest - self.sender.acked() <= self.cfg.window_limit);
                let end = self.highest == self.sender.written();
                let whole =
                    end || out.len.is_multiple_of(self.cfg.mss) || !self.cfg.silly_window_avoidance;
                assert!(whole, "whole segments");
            } else {
                assert!(out.len <= self.cfg.mss && out.seq + u64::from(out.len) <= self.highest);
            }
            self.put(out);
        }
        assert!(!self.sender.would_send(&self.cfg));
        let waiting =
            self.sender.acked() < self.highest || (!self.syns.is_empty() && self.highest == 0);
        assert!(!waiting || self.sender.deadline() != Time::MAX, "data outstanding and no timer");
        assert!(
            self.sender.in_flight() <= 2 * self.highest
                && self.sender.acked() <= self.receiver.expected(None)
        );
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
            let (ack, _) = self.receiver.on_timer(at, &self.cfg).expect("the deadline has passed");
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
            Event::SynAck(stamp) => self.sender.on_syn_ack(self.now, stamp, None, &self.cfg),
            Event::Data { seq, len, ce, cwr, stamp } => {
                let before = self.receiver.expected(None);
                let (asks, mapping) = (false, None);
                let data = DataIn { seq, len, ce, cwr, stamp, asks, mapping };
                let arrived = self.receiver.on_data(self.now, data, &self.cfg);
                assert_eq!(arrived.in_order_upto, self.receiver.expected(None));
                assert!(arrived.in_order_upto >= before && arrived.in_order_upto <= self.highest);
                for ack in arrived.acks.into_iter().flatten() {
                    self.answer(ack);
                }
            }
            Event::Ack(ack) => {
                let sack = (ack.sack.count > 0).then_some(&ack.sack);
                let ack = AckIn {
                    ack: ack.ack,
                    ece: ack.ece,
                    sack,
                    stamp: ack.stamp,
                    hops: 1,
                    mapping: None,
                };
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
            assert!(
                self.step(Time::from_s(1000)),
                "stuck at {} of {}",
                self.sender.acked(),
                self.sender.written()
            );
        }
        assert_eq!(self.receiver.expected(None), self.sender.written());
        self.now
    }

    /// When and what was sent again, in round trips and segments.
    fn again(&self) -> Vec<(u64, u64)> {
        self.sent
            .iter()
            .filter(|s| s.again)
            .map(|s| (s.at.as_ps() / RTT.as_ps(), s.seq / MSS))
            .collect()
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
    sender.on_ack(
        Time::from_us(80),
        &AckIn { ack: ack * MSS, ece, sack, stamp: Time::ZERO, hops: 1, mapping: None },
        cfg,
    );
}

/// DCTCP's alpha, for those that have one.
fn alpha(sender: &Sender, cfg: &Config) -> Option<f64> {
    sender.standing(cfg).law.iter().find(|(name, _)| *name == "alpha").map(|(_, value)| *value)
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
