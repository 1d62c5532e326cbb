//! Both ends over a small pipe: a fixed delay each way, and a script that drops, delays or marks
//! packets.
//!
//! The pipe takes no time to put packets on the wire; the pace spaces them. After every event it
//! asserts what must always hold.

use super::*;
use crate::endpoint::{
    AckIn, AckOut, Counters, DataIn, Endpoint, Form, Marked, Outgoing, Receives,
};
use millpond_scenario::Scenario;
use proptest::prelude::*;
use std::collections::BTreeMap;

const MSS: u64 = 1000;
/// One way.
const DELAY: Time = Time::from_us(4);
/// At which 1040 bytes take 208 ns.
const LINE: Rate = Rate(40_000_000_000);

/// The queue pairs of a scenario with these keys of `[transport]` and `[rdma]`.
fn config(transport: &str, rdma: &str) -> Vec<Config> {
    let text = format!(
        "name = \"q\"\nduration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = \
         2\n[host]\nmtu = 1040\n[transport]\n{transport}\n[rdma]\n{rdma}\n[[traffic]]\nkind = \
         \"permutation\"\nsize = 1000\n"
    );
    let plan = Scenario::parse("test", &text)
        .unwrap()
        .plan(None, &[], None)
        .unwrap_or_else(|e| panic!("{e}"));
    crate::endpoint::Config::new(&plan).rdma
}

const GO_BACK_N: &str =
    "recovery = { kind = \"go-back-n\", timeout = \"1ms\" }\nbase-rtt = \"10us\"";
const IRN: &str = "recovery = { kind = \"selective\" }\nbase-rtt = \"10us\"";

#[derive(Clone, Copy, Debug)]
enum Event {
    Data { seq: u64, len: u32, ce: bool, asks: bool, stamp: Time },
    Answer(AckOut),
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    drop: bool,
    mark: bool,
    late: Time,
}

const PASS: Fate = Fate { drop: false, mark: false, late: Time::ZERO };
const DROP: Fate = Fate { drop: true, ..PASS };
const MARK: Fate = Fate { mark: true, ..PASS };

type Script = Box<dyn FnMut(usize, u64) -> Fate>;

struct Pipe {
    cfg: Vec<Config>,
    sender: Sender,
    receiver: Receiver,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    /// Fate of the n-th data packet, whose offset is also given; and of the n-th answer.
    data_fate: Script,
    answer_fate: Script,
    sent: Vec<(Time, u64)>,
    answers: Vec<(Time, AckOut)>,
    delivered: u64,
}

impl Pipe {
    fn new(cfg: Vec<Config>) -> Pipe {
        Pipe {
            sender: Sender::new(0, LINE, &cfg),
            receiver: Receiver::new(0),
            cfg,
            now: Time::ZERO,
            events: BTreeMap::new(),
            order: 0,
            data_fate: Box::new(|_, _| PASS),
            answer_fate: Box::new(|_, _| PASS),
            sent: Vec::new(),
            answers: Vec::new(),
            delivered: 0,
        }
    }

    fn push(&mut self, fate: Fate, event: Event) {
        if !fate.drop {
            self.order += 1;
            self.events.insert((self.now + DELAY + fate.late, self.order), event);
        }
    }

    fn pump(&mut self) {
        while let Some(out) = self.sender.poll_send(self.now, MSS as u32, &self.cfg) {
            let Outgoing { seq, len, form, .. } = out;
            assert!(
                len > 0 && u64::from(len) <= MSS && seq + u64::from(len) <= self.sender.written()
            );
            let fate = (self.data_fate)(self.sent.len(), seq);
            self.sent.push((self.now, seq));
            let Form::Rdma(asks) = form else { panic!("a queue pair's packet asks for something") };
            let asks = asks.acknowledgement;
            self.push(fate, Event::Data { seq, len, ce: fate.mark, asks, stamp: self.now });
        }
        assert!(self.sender.acked() <= self.receiver.expected(None));
        assert!(
            self.sender.acked() == self.sender.sent() || self.sender.deadline() < Time::MAX,
            "silence has an end"
        );
        assert!(
            self.sender.is_done() || self.sender.deadline() < Time::MAX || !self.events.is_empty()
        );
    }

    fn arrive(&mut self, event: Event) {
        match event {
            Event::Data { seq, len, ce, asks, stamp } => {
                let data = DataIn { seq, len, ce, cwr: false, stamp, asks, mapping: None };
                let arrived = self.receiver.on_data(self.now, data, &self.cfg);
                assert!(
                    arrived.in_order_upto >= self.delivered
                        && arrived.in_order_upto <= self.sender.sent()
                );
                self.delivered = arrived.in_order_upto;
                for answer in arrived.acks.into_iter().flatten() {
                    let fate = (self.answer_fate)(self.answers.len(), answer.ack);
                    self.answers.push((self.now, answer));
                    self.push(fate, Event::Answer(answer));
                }
            }
            Event::Answer(AckOut { kind, ack, ece, sack, stamp }) => {
                let sack = (sack.count > 0).then_some(&sack);
                let ack = AckIn { ack, ece, sack, stamp, hops: 1, mapping: None };
                self.sender.on_answer(self.now, &Answer { kind, ack, telemetry: None }, &self.cfg);
            }
        }
    }

    /// Runs until all is acknowledged; returns when.
    fn run(&mut self, bytes: u64) -> Time {
        self.sender.write(self.now, bytes);
        self.pump();
        for _ in 0..2_000_000 {
            if self.sender.is_done() {
                return self.now;
            }
            let next = self.events.first_key_value().map_or(Time::MAX, |((at, _), _)| *at);
            if self.sender.deadline() < next {
                self.now = self.sender.deadline();
                self.sender.on_timer(self.now, &self.cfg);
            } else {
                let ((at, _), event) = self.events.pop_first().expect("something is under way");
                self.now = at;
                self.arrive(event);
            }
            self.pump();
        }
        panic!("no end: {:?}", self.sender);
    }

    fn kinds(&self) -> Vec<Kind> {
        self.answers.iter().map(|(_, answer)| answer.kind).collect()
    }
}

/// By hand: 1040 bytes on the wire take 208 ns at 40 Gb/s, and the tenth packet leaves after nine
/// of them.
#[test]
fn packets_leave_at_the_rate_with_their_headers() {
    let mut pipe = Pipe::new(config("kind = \"dcqcn\"", GO_BACK_N));
    let done = pipe.run(10 * MSS);
    let expected: Vec<_> = (0..10).map(|n| (Time::from_ns(208 * n), n * MSS)).collect();
    assert_eq!(pipe.sent, expected);
    assert_eq!(done, Time::from_ns(9 * 208) + DELAY + DELAY);
    assert_eq!(pipe.kinds(), [Kind::RdmaAck; 10]);
    assert_eq!(pipe.sender.counters(), Counters { retransmitted: 0, timeouts: 0 });
}

/// By hand: the third packet is lost. The fourth causes a NACK, of which the fifth and sixth, and
/// all others in flight, cause none; 8 us after the fourth left the sender goes back and sends
/// everything from the third on again.
#[test]
fn go_back_n_sends_all_from_what_is_missing_on() {
    let mut pipe = Pipe::new(config("kind = \"dcqcn\"", GO_BACK_N));
    pipe.data_fate = Box::new(|n, _| if n == 2 { DROP } else { PASS });
    pipe.run(100 * MSS);
    let nacks: Vec<_> = pipe.answers.iter().filter(|(_, a)| a.kind == Kind::Nack).collect();
    assert_eq!(nacks.len(), 1);
    assert_eq!((nacks[0].0, nacks[0].1.ack), (Time::from_ns(3 * 208) + DELAY, 2 * MSS));
    let again = pipe.sent.iter().skip(3).find(|(_, seq)| *seq == 2 * MSS).unwrap();
    // The pace: the packet of 8.736 us was sent before the NACK came at 8.624.
    assert_eq!(again.0, Time::from_ns(42 * 208));
    assert_eq!(pipe.sender.counters(), Counters { retransmitted: 40, timeouts: 0 });
    assert_eq!(pipe.sender.rewinds(), 1);
}

/// By hand: what is sent again is lost, too. Its successors come out of order, but the NACK may be
/// repeated only after 500 us: the timer, 1 ms after the last packet or answer, ends the silence.
#[test]
fn the_timer_counts_from_the_last_packet_and_does_not_back_off() {
    let mut pipe = Pipe::new(config("kind = \"dcqcn\"", GO_BACK_N));
    let mut lost = 0;
    pipe.data_fate = Box::new(move |_, seq| {
        lost += u32::from(seq == 9 * MSS);
        if seq == 9 * MSS && lost <= 3 { DROP } else { PASS }
    });
    pipe.run(10 * MSS);
    assert_eq!(pipe.sender.counters(), Counters { retransmitted: 3, timeouts: 3 });
    let tail: Vec<Time> =
        pipe.sent.iter().filter(|(_, seq)| *seq == 9 * MSS).map(|(at, _)| *at).collect();
    // The last acknowledgement before, of the ninth packet, came after 8 · 208 ns and two delays.
    let heard = Time::from_ns(8 * 208) + DELAY + DELAY;
    let ms = |n| Time::from_ms(n);
    assert_eq!(tail, [Time::from_ns(9 * 208), heard + ms(1), heard + ms(2), heard + ms(3)]);
}

/// By hand: of twenty packets the third and sixth are lost. Selective retransmission sends these
/// two again, after the NACK of the fourth, and no other.
#[test]
fn selective_sends_what_is_missing_alone() {
    let mut pipe = Pipe::new(config("kind = \"dcqcn\"", IRN));
    pipe.data_fate = Box::new(|n, _| if n == 2 || n == 5 { DROP } else { PASS });
    pipe.run(60 * MSS);
    assert_eq!(pipe.sender.counters(), Counters { retransmitted: 2, timeouts: 0 });
    let again: Vec<u64> = pipe
        .sent
        .iter()
        .map(|(_, seq)| *seq)
        .scan(0, |top, seq| {
            let is_again = seq < *top;
            *top = (*top).max(seq + MSS);
            Some(is_again.then_some(seq))
        })
        .flatten()
        .collect();
    assert_eq!(again, [2 * MSS, 5 * MSS]);
    let first = pipe.answers.iter().find(|(_, a)| a.kind == Kind::Nack).unwrap().1;
    assert_eq!((first.ack, first.sack.blocks[0]), (2 * MSS, (3 * MSS, 4 * MSS)));
}

/// IRN's two timeouts: with a lost tail of one packet the short one, with a whole lost window the
/// long one.
#[test]
fn few_packets_in_flight_wait_less() {
    let at = |lost: std::ops::Range<usize>| {
        let mut pipe = Pipe::new(config("kind = \"dcqcn\"", IRN));
        pipe.data_fate = Box::new(move |n, _| if lost.contains(&n) { DROP } else { PASS });
        pipe.run(10 * MSS);
        (pipe.sender.counters().timeouts, pipe.sent[10].0)
    };
    let (timeouts, again) = at(9..10);
    assert_eq!((timeouts, again), (1, Time::from_ns(8 * 208) + DELAY + DELAY + Time::from_us(100)));
    assert_eq!(at(0..10), (1, Time::from_ns(9 * 208) + Time::from_us(320)));
}

/// BDP-FC and windows: 10 us at 40 Gb/s are 50,000 bytes.
#[test]
fn windows_bound_what_is_unacknowledged() {
    let most = |rdma: &str| {
        let mut pipe = Pipe::new(config("kind = \"dcqcn\"", rdma));
        pipe.answer_fate =
            Box::new(|n, _| if n < 500 { Fate { late: Time::from_us(90), ..PASS } } else { PASS });
        pipe.run(200 * MSS);
        let first = pipe.answers[0].0 + DELAY + Time::from_us(90);
        pipe.sent.iter().filter(|(at, _)| *at < first).count()
    };
    assert_eq!(most(IRN), 50);
    assert_eq!(
        most("recovery = { kind = \"selective\", bdp-limit = \"off\" }\nbase-rtt = \"10us\""),
        200
    );
    assert_eq!(most("flow-control = \"static\"\nwindow = 18750"), 19, "the last one may go beyond");
    assert_eq!(most("flow-control = \"none\""), 200);
}

/// By hand: a CNP for the first mark, none within 50 us of it, and one at the next packet after
/// that.
#[test]
fn the_notification_point_keeps_its_interval() {
    let mut pipe = Pipe::new(config("kind = \"dcqcn\"\ndcqcn-g = 0.0", "cnp-interval = \"50us\""));
    pipe.data_fate = Box::new(|n, _| if n < 40 { MARK } else { PASS });
    pipe.run(400 * MSS);
    let cnps: Vec<Time> =
        pipe.answers.iter().filter(|(_, a)| a.kind == Kind::Cnp).map(|(at, _)| *at).collect();
    assert_eq!(cnps.len(), 2, "the marks after the first are told at the interval's end");
    assert!(
        cnps[0] == DELAY
            && cnps[1] >= DELAY + Time::from_us(50)
            && cnps[1] < DELAY + Time::from_us(51)
    );
    assert!(pipe.answers.iter().all(|(_, a)| !a.ece));
    let mut pipe = Pipe::new(config("kind = \"dcqcn\"", "notification = \"answers\""));
    pipe.data_fate = Box::new(|n, _| if n < 3 { MARK } else { PASS });
    pipe.run(10 * MSS);
    assert_eq!(pipe.answers.iter().filter(|(_, a)| a.ece).count(), 3);
    assert!(!pipe.kinds().contains(&Kind::Cnp));
}

/// Of four packets one asks, and so does the last of each message.
#[test]
fn acknowledgements_come_as_they_are_asked_for() {
    let mut pipe = Pipe::new(config("kind = \"dcqcn\"", "ack-interval = 4"));
    pipe.run(10 * MSS);
    let acked: Vec<u64> = pipe.answers.iter().map(|(_, a)| a.ack / MSS).collect();
    assert_eq!(acked, [4, 8, 10]);
    // A window of less than the interval does not wait for the timer.
    let mut pipe = Pipe::new(config(
        "kind = \"dcqcn\"",
        "ack-interval = 64\nflow-control = \"static\"\nwindow = 5000",
    ));
    pipe.run(20 * MSS);
    assert_eq!(pipe.sender.counters().timeouts, 0);
}

/// A receiver with one answer a packet: what comes, and whether the answer reports a mark.
fn echoes(rdma: &str, packets: &[(u64, bool)]) -> Vec<Option<bool>> {
    let cfg = config("kind = \"dcqcn\"", &format!("notification = \"answers\"\n{rdma}"));
    let mut receiver = Receiver::new(0);
    let every = u64::from(cfg[0].ack_interval);
    let arrivals = packets.iter().enumerate().map(|(n, &(seq, ce))| {
        let (stamp, asks) = (Time::from_us(n as u64), (n as u64 + 1).is_multiple_of(every));
        let data =
            DataIn { seq: seq * MSS, len: MSS as u32, ce, cwr: false, stamp, asks, mapping: None };
        receiver.on_data(stamp, data, &cfg).acks[0].map(|answer| answer.ece)
    });
    arrivals.collect()
}

/// By hand: the second packet is lost. The third causes a NACK and the fourth, which is marked, no
/// other; the mark is gone with it, as in `RdmaHw::ReceiveUdp`.
#[test]
fn mark_of_a_discarded_packet_is_echoed_by_no_other_answer() {
    let came = [(0, false), (2, false), (3, true), (1, false), (2, false)];
    assert_eq!(
        echoes(GO_BACK_N, &came),
        [Some(false), Some(false), None, Some(false), Some(false)]
    );
    let came = [(0, false), (2, true), (3, false), (1, true), (1, true)];
    assert_eq!(echoes(GO_BACK_N, &came), [Some(false), Some(true), None, Some(true), Some(true)]);
    // IRN's receiver holds the third already.
    let came = [(0, false), (2, false), (2, true), (1, false)];
    assert_eq!(echoes(IRN, &came), [Some(false), Some(false), None, Some(false)]);
}

#[test]
fn mark_of_an_accepted_packet_waits_for_the_answer_that_covers_it() {
    let came = [(0, true), (1, false), (2, false), (3, false), (4, false), (5, false)];
    let answered = echoes("ack-interval = 3", &came);
    assert_eq!(answered, [None, None, Some(true), None, None, Some(false)]);
}

#[test]
fn what_comes_again_is_answered_or_not() {
    let rdma = |answers: bool| {
        format!("recovery = {{ kind = \"go-back-n\", answer-duplicates = {answers} }}")
    };
    let came = [(0, false), (0, true), (1, false)];
    assert_eq!(echoes(&rdma(true), &came), [Some(false), Some(true), Some(false)]);
    assert_eq!(echoes(&rdma(false), &came), [Some(false), None, Some(false)]);
}

/// By hand: at 40 Gb/s the second packet leaves after 208 ns, and the third 208 ns later. 100 ns
/// after the second TIMELY, whose longest round trip is 50 ns, takes 0.6 of the rate: 346.7 ns for
/// the same packet.
#[test]
fn rate_that_changes_counts_at_once_or_from_the_next_packet() {
    let departure = |rate_change: &str| {
        let law = "kind = \"timely\"\ntimely-low = \"1ns\"\ntimely-high = \"50ns\"";
        let cfg = config(law, &format!("rate-change = \"{rate_change}\"\n{GO_BACK_N}"));
        let mut sender = Sender::new(0, LINE, &cfg);
        sender.write(Time::ZERO, 5 * MSS);
        for sent in [1, 2] {
            let stamp = Time::from_ns(208 * (sent - 1));
            assert!(sender.poll_send(stamp, MSS as u32, &cfg).is_some());
            let ack =
                AckIn { ack: sent * MSS, ece: false, sack: None, stamp, hops: 1, mapping: None };
            let now = stamp + Time::from_ns(100);
            sender.on_answer(now, &Answer { kind: Kind::RdmaAck, ack, telemetry: None }, &cfg);
            assert!(sender.urgency(now, &cfg).is_none());
        }
        sender.deadline().as_ps()
    };
    assert_eq!(departure("next-packet"), 416_000);
    assert_eq!(departure("law"), 416_000);
    assert!((554_660..554_680).contains(&departure("at-once")));
}

/// TIMELY's timestamp, and what HPCC's switches write.
#[test]
fn what_data_has_beside_its_headers_is_on_the_wire() {
    let beyond = |law: &str, rdma: &str| {
        let cfg = config(&format!("kind = \"{law}\""), rdma);
        (cfg[0].header, cfg[0].beyond)
    };
    assert_eq!(beyond("timely", ""), (rdma::HEADERS, 0));
    assert_eq!(beyond("timely", "data-header = 8"), (rdma::HEADERS + 8, 8));
    assert_eq!(beyond("hpcc", ""), (rdma::HEADERS + telemetry::BYTES, telemetry::BYTES as u16));
}

/// A packet carries bytes of one message.
#[test]
fn messages_share_no_packet() {
    let mut pipe = Pipe::new(config("kind = \"dcqcn\"", GO_BACK_N));
    pipe.data_fate = Box::new(|n, _| if n == 1 { DROP } else { PASS });
    pipe.sender.write(Time::ZERO, 1500);
    pipe.sender.write(Time::ZERO, 10);
    pipe.run(2100);
    let mut firsts: Vec<u64> = pipe.sent.iter().map(|(_, seq)| *seq).collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts, [0, 1000, 1500, 1510, 2510, 3510]);
}

/// With HPCC a window in proportion to the rate, with the others none, unless the scenario says so.
#[test]
fn a_law_has_the_window_that_it_asks_for() {
    let cwnd = |transport: &str, rdma: &str| {
        let pipe = Pipe::new(config(transport, rdma));
        (pipe.sender.standing(&pipe.cfg).cwnd, pipe.cfg[0].flow_control)
    };
    let rdma = "base-rtt = \"10us\"";
    assert_eq!(cwnd("kind = \"hpcc\"", rdma), (50_000, FlowControl::Rate));
    assert_eq!(
        cwnd("kind = \"timely\"", rdma),
        (50_000, FlowControl::None),
        "what the rate has in flight"
    );
    assert_eq!(
        cwnd("kind = \"hpcc\"", &format!("{rdma}\nflow-control = \"none\"")).1,
        FlowControl::None
    );
}

fn transports() -> impl Strategy<Value = (&'static str, &'static str)> {
    let law = prop::sample::select(vec!["dcqcn", "timely", "rdma-dctcp", "hpcc"]);
    let rdma = prop::sample::select(vec![
        GO_BACK_N,
        IRN,
        "recovery = { kind = \"go-back-n\", timeout = \"50us\", nack-interval = \"0us\" \
         }\nack-interval = 7",
        "recovery = { kind = \"selective\", timeout-low = \"20us\", timeout-high = \"30us\", \
         resend = \"all\" }",
        "recovery = { kind = \"selective\", bdp-limit = \"off\", nack-interval = \"0us\" \
         }\nnotification = \"answers\"",
        "recovery = { kind = \"selective\", bdp-limit = 1, few = 0 }\nack-interval = \
         100\nflow-control = \"rate\"",
    ]);
    (law, rdma)
}

proptest! {
    /// Whatever is lost, marked or late, in both directions: each byte is delivered once and in
    /// order, the timer ends every silence, and the message completes.
    #[test]
    fn every_byte_is_delivered_once_and_in_order(
        (law, rdma) in transports(),
        bytes in 1u64..120_000,
        data in prop::collection::vec((0..10u32, 0..4u64), 1..200),
        answers in prop::collection::vec((0..10u32, 0..4u64), 1..200),
        losses in 0..6u32,
    ) {
        let mut pipe = Pipe::new(config(&format!("kind = \"{law}\""), rdma));
        let fate = move |(lot, late): (u32, u64)| Fate {
            drop: lot < losses,
            mark: lot == 9,
            late: Time::from_us(if lot == 8 { 5 * late } else { 0 }),
        };
        // A pattern repeats, but not for ever: at its end everything passes.
        let scripted = move |list: Vec<(u32, u64)>| -> Script {
            Box::new(move |n, _| if n < 4 * list.len() { fate(list[n % list.len()]) } else { PASS })
        };
        (pipe.data_fate, pipe.answer_fate) = (scripted(data), scripted(answers));
        pipe.run(bytes);
        prop_assert_eq!((pipe.delivered, pipe.sender.acked()), (bytes, bytes));
    }

    /// Without losses nothing is sent again, whatever the law and the windows.
    #[test]
    fn a_lossless_path_costs_nothing((law, rdma) in transports(), bytes in 1u64..300_000) {
        prop_assume!(!rdma.contains("20us") && !rdma.contains("50us"));
        let mut pipe = Pipe::new(config(&format!("kind = \"{law}\""), rdma));
        pipe.run(bytes);
        prop_assert_eq!(pipe.sender.counters(), Counters { retransmitted: 0, timeouts: 0 });
    }
}

#[test]
fn a_nack_of_what_is_held_is_not_repeated_within_the_interval() {
    let cfg =
        config("kind = \"dcqcn\"", "recovery = { kind = \"selective\", nack-interval = \"10us\" }");
    let mut receiver = Receiver::new(0);
    let mut at = |us: u64, seq: u64| {
        let (now, len) = (Time::from_us(us), MSS as u32);
        let data = DataIn {
            seq: seq * MSS,
            len,
            ce: false,
            cwr: false,
            stamp: now,
            asks: true,
            mapping: None,
        };
        receiver.on_data(now, data, &cfg).acks[0].map(|a| (a.kind, a.ack / MSS, a.sack.count))
    };
    assert_eq!(at(0, 2), Some((Kind::Nack, 0, 1)));
    assert_eq!(at(1, 3), Some((Kind::Nack, 0, 1)), "another packet");
    assert_eq!(at(2, 2), None);
    assert_eq!(at(11, 2), Some((Kind::Nack, 0, 1)));
    assert_eq!(at(12, 0), Some((Kind::Nack, 1, 0)), "something is missing still");
    assert_eq!(at(13, 1), Some((Kind::RdmaAck, 4, 0)));
    assert_eq!(at(14, 1), Some((Kind::RdmaAck, 4, 0)), "what comes again is acknowledged");
}
