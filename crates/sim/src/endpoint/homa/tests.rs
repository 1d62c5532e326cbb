//! Both ends over a small pipe: a fixed delay each way, a packet in each 1 us, and a script that
//! drops packets. Grants are asked for after each piece, as a host with one message would.
//!
//! After every event it asserts what must always hold.

use super::receiver::{Came, PieceIn, Stands};
use super::sender::Piece;
use super::*;
use crate::endpoint::{Endpoint, Receives};
use millpond_core::Time;
use millpond_core::ranges::Ranges;
use millpond_scenario::Scenario;
use proptest::prelude::*;
use std::collections::BTreeMap;

const MSS: u32 = 1000;
/// One way.
const DELAY: Time = Time::from_us(4);
/// From one packet to the next.
const PACKET: Time = Time::from_us(1);

/// Homa with these keys of `[transport]`: RTTbytes are 10 KB, RESENDs leave after 100 us.
fn config(keys: &str) -> Vec<Config> {
    let text = format!(
        "name = \"h\"\nduration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = \
         2\n[host]\nmtu = 1040\n[transport]\nkind = \"homa\"\nhoma-rtt-bytes = \
         9500\nhoma-resend-interval = \"100us\"\n{keys}\n[[traffic]]\nkind = \
         \"permutation\"\nsize = 1000\n"
    );
    let plan = Scenario::parse("test", &text)
        .unwrap()
        .plan(None, &[], None)
        .unwrap_or_else(|e| panic!("{e}"));
    crate::endpoint::Config::new(&plan).homa
}

/// A packet that goes over the pipe.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Data(Piece),
    Grant { number: u16, upto: u32, priority: u8 },
    Resend { number: u16, asked: Asked },
    Busy { number: u16 },
    Done { number: u16 },
    Ping { number: u16 },
    Unknown { number: u16 },
}

type Script = Box<dyn FnMut(usize, &Event) -> bool>;

struct Pipe {
    cfg: Vec<Config>,
    sender: Sender,
    receiver: Receiver,
    now: Time,
    /// When the sender's next packet may leave: its NIC takes one at a time.
    free_at: Time,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    /// Whether the n-th packet of either way is lost.
    loses: Script,
    sent: Vec<(Time, Event)>,
    lost: Vec<Event>,
    /// Bytes that came as new ones, by message.
    came: BTreeMap<u16, Ranges>,
    delivered: u64,
}

impl Pipe {
    fn new(cfg: Vec<Config>, loses: impl FnMut(usize, &Event) -> bool + 'static) -> Pipe {
        Pipe {
            cfg,
            sender: Sender::new(0),
            receiver: Receiver::new(0),
            now: Time::ZERO,
            free_at: Time::ZERO,
            events: BTreeMap::new(),
            order: 0,
            loses: Box::new(loses),
            sent: Vec::new(),
            lost: Vec::new(),
            came: BTreeMap::new(),
            delivered: 0,
        }
    }

    fn push(&mut self, event: Event) {
        let is_lost = (self.loses)(self.sent.len(), &event);
        self.sent.push((self.now, event));
        if is_lost {
            return self.lost.push(event);
        }
        self.order += 1;
        self.events.insert((self.now + DELAY, self.order), event);
    }

    fn write(&mut self, bytes: u64) {
        self.sender.write(self.now, bytes);
        self.pump();
    }

    fn pump(&mut self) {
        self.sender.begin(self.now, &self.cfg);
        if self.sender.takes_ping() {
            self.push(Event::Ping { number: self.sender.number() });
        }
        if self.now >= self.free_at
            && let Some(piece) = self.sender.next(self.now, &self.cfg)
        {
            assert!(piece.len > 0 && piece.len <= MSS && piece.offset + piece.len <= piece.length);
            self.free_at = self.now + PACKET;
            self.push(Event::Data(piece));
        }
        assert!(self.sender.acked() <= self.receiver.delivered());
        let is_given_up = self.sender.aborted() > 0;
        assert!(
            self.sender.is_done() || is_given_up || self.sender.deadline() < Time::MAX,
            "silence has an end"
        );
    }

    fn grant(&mut self) {
        let number = self.receiver.number();
        if let Some(upto) = self.receiver.grant(self.now, 2, &self.cfg) {
            self.push(Event::Grant { number, upto, priority: 2 });
        }
    }

    fn arrive(&mut self, event: Event) {
        let (now, cfg) = (self.now, self.cfg.clone());
        match event {
            Event::Data(piece) => {
                let Piece { number, length, offset, len, .. } = piece;
                let before = self.receiver.delivered();
                let came =
                    self.receiver.on_piece(now, &PieceIn { number, length, offset, len }, &cfg);
                assert!(self.receiver.delivered() >= before, "what is delivered stays so");
                self.delivered = self.receiver.delivered();
                self.came
                    .entry(number)
                    .or_default()
                    .insert(u64::from(offset), u64::from(offset + len));
                if came == Came::Part {
                    self.grant();
                } else {
                    self.push(Event::Done { number });
                }
            }
            Event::Grant { number, upto, priority } => {
                self.sender.on_grant(now, number, upto, priority, &cfg)
            }
            Event::Resend { number, asked } => {
                if self.sender.on_resend(now, number, asked, &cfg) {
                    self.push(Event::Busy { number });
                }
            }
            Event::Busy { number } => self.receiver.on_busy(now, number, &cfg),
            Event::Done { number } => self.sender.on_done(now, number, &cfg),
            Event::Unknown { number } => self.sender.on_unknown(now, number, &cfg),
            Event::Ping { number } => {
                let answer = match self.receiver.stands(number) {
                    Stands::Done => Event::Done { number },
                    Stands::Unknown => Event::Unknown { number },
                    Stands::Granted { upto, priority } => Event::Grant { number, upto, priority },
                };
                self.push(answer);
            }
        }
        self.pump();
    }

    /// Until nothing more happens, or at most until a time.
    fn run(&mut self, until: Time) {
        loop {
            let arrives = self.events.keys().next().map_or(Time::MAX, |key| key.0);
            let nic = if self.sender.urgency_still().is_some() {
                self.free_at.max(self.now)
            } else {
                Time::MAX
            };
            let timer = self.sender.deadline().min(self.receiver.deadline());
            let next = arrives.min(nic).min(timer);
            if next > until || next == Time::MAX {
                return;
            }
            self.now = next;
            if arrives == next {
                let (_, event) = self.events.pop_first().expect("it is there");
                self.arrive(event);
            }
            if self.receiver.deadline() <= self.now {
                self.receiver.on_timer(self.now, &self.cfg);
                if self.receiver.takes_asks() {
                    let number = self.receiver.number();
                    for asked in self.receiver.missing(&self.cfg) {
                        self.push(Event::Resend { number, asked });
                    }
                }
            }
            if self.sender.deadline() <= self.now {
                self.sender.on_timer(self.now, &self.cfg);
            }
            self.pump();
        }
    }

    fn pieces(&self) -> Vec<Piece> {
        let piece = |(_, event): &(Time, Event)| {
            if let Event::Data(piece) = event { Some(*piece) } else { None }
        };
        self.sent.iter().filter_map(piece).collect()
    }
    fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.sent.iter().filter(|(_, event)| is(event)).count()
    }
}

fn is_resend(event: &Event) -> bool {
    matches!(event, Event::Resend { .. })
}

/// A range of packets that is to be asked for.
fn asked(from: u32, len: u32) -> Asked {
    Asked { from, len, priority: 7 }
}

#[test]
fn rtt_bytes_leave_without_a_grant_and_the_rest_as_granted() {
    let mut pipe = Pipe::new(config(""), |_, _| false);
    pipe.write(40_000);
    pipe.run(Time::from_us(3));
    assert!(
        pipe.sent.iter().all(|(_, event)| matches!(event, Event::Data(_))),
        "nothing has come yet"
    );
    pipe.run(Time::from_ms(1));
    let pieces = pipe.pieces();
    assert!(
        pipe.sender.is_done() && pieces.len() == 40 && pieces.iter().all(|piece| !piece.is_again)
    );
    // 40 KB are above all cutoffs: the fourth priority from above; what is granted has the grant's.
    let priorities: Vec<u8> = pieces.iter().map(|piece| piece.priority).collect();
    assert_eq!((priorities[..10].to_vec(), priorities[10..].to_vec()), (vec![4; 10], vec![2; 30]));
    // RTTbytes are 10 packets, and twice that 19: the first packet is answered by a grant to 20 KB,
    // and the next follows when less than 10 KB of it are left.
    let grants = pipe.sent.iter().filter_map(|(_, event)| match event {
        Event::Grant { upto, .. } => Some(*upto),
        _ => None,
    });
    assert_eq!(grants.collect::<Vec<_>>(), [20_000, 30_000, 40_000]);
    // The link never waits: 40 packets, one each microsecond.
    let done = pipe
        .sent
        .iter()
        .position(|(_, event)| matches!(event, Event::Done { .. }))
        .expect("it is there");
    assert_eq!(pipe.sent[done].0, Time::from_us(39) + DELAY);
}

#[test]
fn unscheduled_priorities_follow_the_length() {
    let cfg = &config("")[0];
    let priorities: Vec<u8> = [1, 469, 470, 5_521, 5_522, 15_267, 15_268, 1 << 30]
        .map(|length| cfg.unscheduled_priority(length))
        .into();
    assert_eq!(priorities, [7, 7, 6, 6, 5, 5, 4, 4]);
    let other = &config("homa-unscheduled-cutoffs = [1000]")[0];
    assert_eq!([1_000, 1_001].map(|length| other.unscheduled_priority(length)), [7, 6]);
    assert_eq!(config("homa-unscheduled-cutoffs = \"\"")[0].unscheduled_priority(9), 7);
}

/// Of four levels: one message has the lowest, two the two lowest; a fifth shares the lowest.
#[test]
fn scheduled_priorities_are_the_lowest_that_tell_messages_apart() {
    let cfg = &config("")[0];
    let of = |active: usize| {
        (0..active).map(|rank| cfg.scheduled_priority(rank, active)).collect::<Vec<_>>()
    };
    assert_eq!(of(1), [0]);
    assert_eq!(of(2), [1, 0]);
    assert_eq!(of(4), [3, 2, 1, 0]);
    assert_eq!(of(6), [3, 2, 1, 0, 0, 0]);
}

/// Packets 3, 4 and 8 of ten are lost: two ranges are asked for, once, after the interval.
#[test]
fn each_range_that_is_missing_is_asked_for_once() {
    let mut pipe = Pipe::new(config(""), |n, _| [3, 4, 8].contains(&n));
    pipe.write(10_000);
    pipe.run(Time::from_ms(2));
    let resends =
        pipe.sent.iter().filter(|(_, event)| is_resend(event)).cloned().collect::<Vec<_>>();
    // The last packet came at 13 us.
    let at = Time::from_us(113);
    let expected = [(3_000, 2_000), (8_000, 1_000)]
        .map(|(from, len)| (at, Event::Resend { number: 0, asked: asked(from, len) }));
    assert_eq!(resends, expected);
    let again: Vec<(u32, u8)> = pipe
        .pieces()
        .iter()
        .filter(|piece| piece.is_again)
        .map(|piece| (piece.offset, piece.priority))
        .collect();
    assert_eq!(again, [(3_000, 7), (4_000, 7), (8_000, 7)]);
    assert!(pipe.sender.is_done());
    assert_eq!(pipe.sender.counters().retransmitted, 3);
}

/// Nothing of the message came: nobody but the sender can know. It asks after three intervals.
#[test]
fn a_message_of_which_nothing_came_begins_anew() {
    let mut pipe = Pipe::new(config(""), |n, _| n < 2);
    pipe.write(2_000);
    pipe.run(Time::from_ms(2));
    let words: Vec<Event> = pipe
        .sent
        .iter()
        .map(|(_, event)| *event)
        .filter(|event| !matches!(event, Event::Data(_)))
        .collect();
    assert_eq!(
        words,
        [Event::Ping { number: 0 }, Event::Unknown { number: 0 }, Event::Done { number: 0 }]
    );
    assert_eq!((pipe.sender.counters().retransmitted, pipe.sender.is_done()), (2, true));
    let ping =
        pipe.sent.iter().find(|(_, event)| matches!(event, Event::Ping { .. })).map(|(at, _)| *at);
    assert_eq!(ping, Some(Time::from_us(301)), "three intervals after the second packet");
}

/// The grant was lost: what may be sent never comes, a RESEND stands for the grant, and since none
/// of it has been sent the answer is BUSY.
#[test]
fn a_lost_grant_is_made_good_by_a_resend() {
    let mut pipe = Pipe::new(config("homa-grant-bytes = 15000"), |_, event| {
        matches!(event, Event::Grant { upto: 16_000, .. } | Event::Grant { upto: 22_000, .. })
    });
    pipe.write(16_000);
    pipe.run(Time::from_ms(2));
    assert!(pipe.sender.is_done());
    assert_eq!(pipe.count(is_resend), 1);
    assert_eq!(pipe.count(|event| matches!(event, Event::Busy { .. })), 1);
    assert_eq!(pipe.sender.counters().retransmitted, 0, "nothing was sent twice");
}

/// DONE was lost: PING brings it once more.
#[test]
fn a_lost_done_is_asked_for() {
    let mut lost = 0;
    let mut pipe = Pipe::new(config(""), move |_, event| {
        lost += u32::from(matches!(event, Event::Done { .. }));
        matches!(event, Event::Done { .. }) && lost == 1
    });
    pipe.write(5_000);
    pipe.run(Time::from_ms(2));
    assert!(pipe.sender.is_done());
    assert_eq!(
        (pipe.count(|event| matches!(event, Event::Ping { .. })), pipe.pieces().len()),
        (1, 5)
    );
}

/// Forty intervals without a word, and either end gives up.
#[test]
fn silence_ends_in_giving_up() {
    let mut pipe = Pipe::new(config(""), |n, _| n >= 4);
    pipe.write(10_000);
    pipe.run(Time::from_s(1));
    assert_eq!(
        (pipe.sender.aborted(), pipe.receiver.aborted(), pipe.sender.is_done()),
        (1, 1, false)
    );
    assert_eq!(pipe.count(is_resend), 40, "one range, forty times");
    assert!(pipe.now < Time::from_ms(5), "{:?}", pipe.now);
    let mut pipe = Pipe::new(config("homa-abort-after = \"off\""), |n, _| (4..700).contains(&n));
    pipe.write(10_000);
    pipe.run(Time::from_s(1));
    assert!(pipe.sender.is_done() && pipe.sender.aborted() == 0);
}

/// A connection's messages are distinguished: a late copy of the last is answered and changes
/// nothing.
#[test]
fn messages_of_a_connection_follow_each_other() {
    let mut pipe = Pipe::new(config(""), |_, event| *event == Event::Done { number: 0 });
    pipe.write(3_000);
    pipe.run(Time::from_us(50));
    assert!(!pipe.sender.is_done());
    // The next message waits until the answer to the first has come by another connection.
    pipe.sender.write_next(pipe.now, 25_000);
    pipe.pump();
    pipe.run(Time::from_us(80));
    let late =
        Piece { number: 0, length: 3_000, offset: 0, len: 1_000, is_again: true, priority: 7 };
    pipe.push(Event::Data(late));
    pipe.run(Time::from_ms(2));
    assert!(pipe.sender.is_done());
    assert_eq!((pipe.delivered, pipe.sender.acked()), (28_000, 28_000));
    assert_eq!(pipe.pieces().len(), 3 + 25 + 1);
}

/// A flow beyond 32 bits is several messages.
#[test]
fn a_flow_of_more_than_a_message_is_several() {
    let cfg = config("");
    let mut sender = Sender::new(0);
    let bytes = (1u64 << 32) + 5;
    sender.write(Time::ZERO, bytes);
    sender.begin(Time::ZERO, &cfg);
    assert_eq!((sender.number(), sender.urgency_still()), (0, Some(u64::from(u32::MAX))));
    sender.on_done(Time::from_us(1), 0, &cfg);
    assert_eq!((sender.number(), sender.urgency_still(), sender.is_done()), (1, Some(6), false));
    sender.on_done(Time::from_us(2), 1, &cfg);
    assert!(sender.is_done() && sender.acked() == bytes);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever data is lost: every byte comes, each range is sent again exactly as often as it was
    /// lost, and the message ends.
    #[test]
    fn lost_data_is_sent_again_exactly_once(
        bytes in 1u64..60_000,
        seed in any::<u64>(),
        percent in 0u64..40,
        grant in 10_000u32..40_000,
    ) {
        let mut random = millpond_core::random::Stream::new(seed, "losses");
        let loses = move |_: usize, event: &Event| {
            matches!(event, Event::Data(piece) if piece.offset > 0) && random.below(100) < percent
        };
        let mut pipe = Pipe::new(config(&format!("homa-grant-bytes = {grant}")), loses);
        pipe.write(bytes);
        pipe.run(Time::from_s(1));
        prop_assert!(pipe.sender.is_done());
        prop_assert_eq!(pipe.delivered, bytes);
        prop_assert_eq!(pipe.came[&0].iter().collect::<Vec<_>>(), [(0, bytes)]);
        let lost = pipe.lost.len() as u32;
        prop_assert_eq!(pipe.sender.counters().retransmitted, lost);
        prop_assert_eq!(
            pipe.pieces().len() as u64,
            bytes.div_ceil(u64::from(MSS)) + u64::from(lost)
        );
    }

    /// Whatever is lost of either way, until a time after which nothing is: every message of a
    /// connection ends, and its bytes are delivered once.
    #[test]
    fn any_losses_are_repaired(
        sizes in prop::collection::vec(1u64..40_000, 1..4),
        seed in any::<u64>(),
        percent in 0u64..60,
    ) {
        let mut random = millpond_core::random::Stream::new(seed, "losses");
        let loses = move |n: usize, _: &Event| n < 400 && random.below(100) < percent;
        let mut pipe = Pipe::new(config("homa-abort-after = \"off\""), loses);
        let mut sum = 0;
        for bytes in sizes {
            sum += bytes;
            let until = pipe.now + Time::from_s(1);
            pipe.write(bytes);
            pipe.run(until);
            prop_assert!(pipe.sender.is_done());
            prop_assert_eq!((pipe.delivered, pipe.sender.acked()), (sum, sum));
        }
    }
}
