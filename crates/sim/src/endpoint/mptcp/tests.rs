//! Both ends over several paths, each with a delay and a script of its own.
//!
//! The pipe takes no time to put packets on the wire. After every event it asserts what must always
//! hold.

use super::*;
use crate::endpoint::{AckIn, AckOut, DataIn, Endpoint, Receives};
use millpond_core::congestion::{Coupling, MptcpParams, TransportKind};
use millpond_core::random::mix64;
use millpond_core::{Bytes, Mapping, Time};
use millpond_scenario::transport::TransportParams;
use proptest::prelude::*;
use std::collections::BTreeMap;

const MSS: u64 = 1000;

fn config(change: impl FnOnce(&mut MptcpParams, &mut TransportParams)) -> Vec<Config> {
    let mut own = MptcpParams::default();
    let mut params =
        TransportParams { mss: Some(MSS as u32), handshake: false, ..TransportParams::default() };
    change(&mut own, &mut params);
    let (subflows, reinjection) = (own.mptcp_subflows as u8, own.mptcp_reinjection);
    let tcp = tcp::Config::new(&params, &TransportKind::Mptcp(own), 1500);
    vec![Config { tcp, subflows, reinjection }]
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Syn(Mapping, Time),
    SynAck(Mapping, Time),
    Data(DataIn),
    Ack(AckOut, Mapping),
}

/// The outcome of the n-th packet of a subflow, each way together: `None` is a loss; else how much
/// later it is, and whether it comes twice.
type Script = Box<dyn FnMut(u8, usize) -> Option<(Time, bool)>>;

struct Pipe {
    cfg: Vec<Config>,
    sender: Sender,
    receiver: Receiver,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    /// One way, by subflow.
    delays: Vec<Time>,
    script: Script,
    counts: Vec<usize>,
    /// New bytes that each subflow was given.
    given: Vec<u64>,
    syns: Vec<u8>,
    offload: u32,
}

impl Pipe {
    fn new(cfg: Vec<Config>, handshake: bool) -> Pipe {
        let n = usize::from(cfg[0].subflows);
        Pipe {
            sender: Sender::new(0, handshake, &cfg),
            receiver: Receiver::new(0, &cfg),
            now: Time::ZERO,
            events: BTreeMap::new(),
            order: 0,
            delays: vec![Time::from_us(40); n],
            script: Box::new(|_, _| Some((Time::ZERO, false))),
            counts: vec![0; n],
            given: vec![0; n],
            syns: Vec::new(),
            offload: 65_536,
            cfg,
        }
    }

    fn write(&mut self, bytes: u64) {
        self.sender.write(self.now, bytes);
        self.pump();
    }

    fn travel(&mut self, subflow: u8, event: Event) {
        let count = &mut self.counts[usize::from(subflow)];
        *count += 1;
        let Some((late, twice)) = (self.script)(subflow, *count - 1) else { return };
        for _ in 0..1 + u32::from(twice) {
            self.order += 1;
            self.events
                .insert((self.now + self.delays[usize::from(subflow)] + late, self.order), event);
        }
    }

    fn pump(&mut self) {
        while let Some(out) = self.sender.poll_send(self.now, self.offload, &self.cfg) {
            let mapping = out.mapping.expect("a segment is of a subflow");
            if out.syn {
                self.syns.push(mapping.subflow);
                self.travel(mapping.subflow, Event::Syn(mapping, self.now));
                continue;
            }
            assert!(out.len > 0 && mapping.data + u64::from(out.len) <= self.sender.written());
            self.given[usize::from(mapping.subflow)] +=
                if out.retransmission { 0 } else { u64::from(out.len) };
            let mut sent = 0;
            while sent < u64::from(out.len) {
                let len = (u64::from(out.len) - sent).min(MSS) as u32;
                let (seq, mapping) = (out.seq + sent, Some(mapping.further(sent)));
                let packet = DataIn {
                    seq,
                    len,
                    ce: false,
                    cwr: false,
                    stamp: self.now,
                    asks: false,
                    mapping,
                };
                self.travel(out.mapping.expect("as above").subflow, Event::Data(packet));
                sent += u64::from(len);
            }
        }
        let outstanding = self.sender.acked() < self.sender.written();
        assert!(
            !outstanding || self.sender.deadline() < Time::MAX || !self.events.is_empty(),
            "it would stand still"
        );
        assert!(self.sender.acked() <= self.receiver.received());
    }

    fn step(&mut self, until: Time) -> bool {
        let next = self.events.keys().next().map_or(Time::MAX, |key| key.0);
        let at = next.min(self.sender.deadline()).min(self.receiver.deadline());
        if at > until || at == Time::MAX {
            return false;
        }
        self.now = self.now.max(at);
        if self.receiver.deadline() <= at {
            let (ack, subflow) =
                self.receiver.on_timer(at, &self.cfg).expect("the deadline has passed");
            self.answer(ack, subflow.unwrap_or_default());
        } else if next <= at {
            let (_, event) = self.events.pop_first().expect("it was there");
            self.handle(event);
        } else {
            self.sender.on_timer(at, &self.cfg);
        }
        self.pump();
        true
    }

    fn answer(&mut self, ack: AckOut, subflow: u8) {
        let mapping = Mapping { subflow, data: self.receiver.received() };
        self.travel(subflow, Event::Ack(ack, mapping));
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Syn(mapping, stamp) => {
                self.travel(mapping.subflow, Event::SynAck(mapping, stamp))
            }
            Event::SynAck(mapping, stamp) => {
                self.sender.on_syn_ack(self.now, stamp, Some(mapping), &self.cfg)
            }
            Event::Data(packet) => {
                let before = self.receiver.received();
                let subflow = packet.mapping.expect("a packet is of a subflow").subflow;
                let arrived = self.receiver.on_data(self.now, packet, &self.cfg);
                assert_eq!(arrived.in_order_upto, self.receiver.received());
                assert!((before..=self.sender.written()).contains(&arrived.in_order_upto));
                arrived.acks.into_iter().flatten().for_each(|ack| self.answer(ack, subflow));
            }
            Event::Ack(ack, mapping) => {
                let sack = (ack.sack.count > 0).then_some(&ack.sack);
                let (AckOut { ack, ece, stamp, .. }, mapping) = (ack, Some(mapping));
                self.sender.on_ack(
                    self.now,
                    &AckIn { ack, ece, sack, stamp, hops: 1, mapping },
                    &self.cfg,
                );
            }
        }
    }

    fn finish(&mut self) -> Time {
        while !self.sender.is_done() {
            assert!(
                self.step(Time::from_s(10_000)),
                "stuck at {} of {}",
                self.sender.acked(),
                self.sender.written()
            );
        }
        assert_eq!(self.receiver.received(), self.sender.written());
        self.now
    }
}

#[test]
fn the_stream_is_spread_over_all_subflows_and_put_together() {
    let mut pipe = Pipe::new(config(|own, _| own.mptcp_subflows = 4), false);
    pipe.write(400 * MSS);
    pipe.finish();
    assert!(pipe.given.iter().all(|bytes| *bytes > 50 * MSS), "{:?}", pipe.given);
    assert_eq!(pipe.given.iter().sum::<u64>(), 400 * MSS);
    assert_eq!((pipe.sender.counters().retransmitted, pipe.sender.counters().timeouts), (0, 0));
}

/// Of two subflows with room the one with the shorter round-trip time is asked.
#[test]
fn the_scheduler_prefers_the_lowest_round_trip_time() {
    let mut pipe = Pipe::new(config(|own, _| own.mptcp_subflows = 2), false);
    pipe.delays = vec![Time::from_us(400), Time::from_us(20)];
    // Ten segments for each path's sample, and then less than the near window holds.
    pipe.write(20 * MSS);
    pipe.finish();
    assert_eq!(pipe.given, [10 * MSS, 10 * MSS]);
    for _ in 0..10 {
        pipe.write(5 * MSS);
        pipe.finish();
    }
    assert_eq!(pipe.given, [10 * MSS, 60 * MSS]);
}

#[test]
fn the_others_join_once_the_first_is_open_and_only_while_there_is_something_to_send() {
    let mut pipe = Pipe::new(config(|own, p| (own.mptcp_subflows, p.handshake) = (3, true)), true);
    pipe.write(5 * MSS);
    assert_eq!(pipe.syns, [0]);
    pipe.finish();
    assert!(pipe.syns.len() <= 3 && pipe.given[1..] == [0, 0], "{:?} {:?}", pipe.syns, pipe.given);
    let mut pipe = Pipe::new(config(|own, p| (own.mptcp_subflows, p.handshake) = (3, true)), true);
    pipe.write(500 * MSS);
    pipe.finish();
    assert_eq!(pipe.syns, [0, 1, 2]);
    assert!(pipe.given.iter().all(|bytes| *bytes > 0), "{:?}", pipe.given);
}

/// One path dies for good. Its data in flight comes by the other after the first timeout; without
/// reinjection it never comes.
#[test]
fn what_a_dead_path_had_in_flight_is_reinjected() {
    for reinjection in [true, false] {
        let mut pipe = Pipe::new(
            config(|own, p| {
                (own.mptcp_subflows, own.mptcp_reinjection) = (2, reinjection);
                p.min_rto = Time::from_ms(10);
            }),
            false,
        );
        pipe.script = Box::new(|n, count| (n == 0 || count < 20).then_some((Time::ZERO, false)));
        pipe.write(200 * MSS);
        while !pipe.sender.is_done() && pipe.step(Time::from_s(1)) {}
        assert_eq!(pipe.sender.is_done(), reinjection);
        assert!(pipe.sender.counters().timeouts > 0);
        if reinjection {
            assert!(pipe.now < Time::from_ms(12), "{:?}", pipe.now);
            assert!(
                pipe.given.iter().sum::<u64>() > 200 * MSS,
                "some were sent as new data of two subflows"
            );
        }
    }
}

/// Equal round-trip times, one path that loses 1 packet in 500 and one that loses 1 in 50. Windows
/// go as √(1/p) where nothing is linked: a ratio of 3.2. By LIA they go as 1/p: 10. OLIA leaves the
/// worse path but for what it probes with.
#[test]
fn a_lossy_path_gets_what_the_laws_say() {
    let ratio = |coupling: Coupling| {
        let mut pipe = Pipe::new(
            config(|own, _| (own.mptcp_subflows, own.mptcp_coupling) = (2, coupling)),
            false,
        );
        pipe.script = Box::new(|n, count| {
            let one_in = if n == 0 { 500 } else { 50 };
            let lost = mix64(count as u64 ^ u64::from(n) << 40).is_multiple_of(one_in);
            (!lost).then_some((Time::ZERO, false))
        });
        pipe.write(100_000 * MSS);
        pipe.finish();
        pipe.given[0] as f64 / pipe.given[1] as f64
    };
    let (uncoupled, lia, olia) =
        (ratio(Coupling::Uncoupled), ratio(Coupling::Lia), ratio(Coupling::Olia));
    assert!((2.2..4.5).contains(&uncoupled), "{uncoupled}");
    assert!((6.0..15.0).contains(&lia), "{lia}");
    assert!(olia > lia, "{olia} and {lia}");
}

/// The receive window is the connection's, not a subflow's.
#[test]
fn all_subflows_share_the_receive_window() {
    let mut pipe = Pipe::new(
        config(|own, p| (own.mptcp_subflows, p.receive_buffer) = (4, Some(Bytes(12 * MSS)))),
        false,
    );
    pipe.write(300 * MSS);
    while !pipe.sender.is_done() {
        assert!(pipe.step(Time::from_s(1)));
        let held = pipe.given.iter().sum::<u64>() - pipe.sender.acked();
        assert!(held <= 12 * MSS, "{held}");
    }
}

#[test]
fn a_connection_is_shown_as_a_whole() {
    let mut pipe = Pipe::new(config(|own, _| own.mptcp_subflows = 2), false);
    pipe.write(200 * MSS);
    let standing = pipe.sender.standing(&pipe.cfg);
    assert_eq!((standing.cwnd, standing.in_flight, standing.state), (20 * MSS, 20 * MSS, "open"));
    assert_eq!((standing.ssthresh, pipe.sender.srtt()), (u64::MAX, Time::ZERO));
    pipe.finish();
    assert_eq!(pipe.sender.srtt(), Time::from_us(80));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the paths lose, repeat and delay, each byte arrives once and in order.
    #[test]
    fn every_byte_is_delivered_once_and_in_order(
        subflows in 1u32..9,
        coupling in prop::sample::select(vec![Coupling::Lia, Coupling::Olia, Coupling::Uncoupled]),
        flags in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        numbers in
            (1u32..4, 1u32..20, prop::option::of(3u64..40), prop::option::weighted(0.8, 1u32..5)),
        delays in prop::collection::vec(1u64..300, 8),
        fates in prop::collection::vec(any::<u8>(), 0..400),
        writes in prop::collection::vec((1u64..60_000, 0u64..2_000), 1..6),
        offload in 1u32..40,
    ) {
        let (sack, handshake, reinjection, limited) = flags;
        let (delayed, window, buffer, threshold) = numbers;
        let cfg = config(|own, p| {
            (own.mptcp_subflows, own.mptcp_coupling, own.mptcp_reinjection) =
                (subflows, coupling, reinjection);
            (p.sack, p.handshake, p.limited_transmit) = (sack, handshake, limited);
            (p.delayed_ack, p.initial_window, p.dupack_threshold) = (delayed, window, threshold);
            p.receive_buffer = buffer.map(|b| Bytes(b * MSS / 2));
            (p.min_rto, p.initial_rto) = (Time::from_us(500), Time::from_ms(1));
            p.delayed_ack_timeout = Time::from_us(200);
        });
        let mut pipe = Pipe::new(cfg, handshake);
        pipe.delays = delays[..subflows as usize].iter().map(|us| Time::from_us(*us)).collect();
        let mut fates = fates.into_iter();
        pipe.script = Box::new(move |_, _| match fates.next().unwrap_or(1) {
            byte if byte % 8 == 0 => None,
            byte if byte % 8 == 3 => Some((Time::from_us(u64::from(byte)), false)),
            byte => Some((Time::ZERO, byte % 8 == 5)),
        });
        pipe.offload = offload * MSS as u32;
        for (bytes, wait) in writes {
            pipe.write(bytes);
            let until = pipe.now + Time::from_us(wait);
            while pipe.step(until) {}
            pipe.now = pipe.now.max(until);
        }
        pipe.finish();
        prop_assert_eq!(pipe.sender.acked(), pipe.sender.written());
    }
}
