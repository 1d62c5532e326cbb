//! The two ends by themselves, and a host's pacer.

use super::receiver::{Came, PacketIn};
use super::sender::{Nack, Piece};
use super::*;
use crate::endpoint::{Endpoint, Receives};
use millpond_core::packet::Selective;
use millpond_scenario::Scenario;

fn config(transport: &str) -> Vec<Config> {
    let text = format!(
        "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\nhost-link = {{ rate \
         = \"100Gbps\", delay = \"1us\" }}\n[host]\nmtu = 4126\nframe-overhead = 24\n[switch]\n\
         queue = {{ kind = \"strict-priority\" }}\noverflow = {{ kind = \"trim\" }}\n[transport]\n\
         kind = \"uet\"\n{transport}\n[[traffic]]\nkind = \"permutation\"\nsize = 1\n"
    );
    let scenario = Scenario::parse("uet", &text).unwrap_or_else(|e| panic!("{e}"));
    let plan = scenario.plan(None, &[], None).unwrap_or_else(|e| panic!("{e}"));
    crate::endpoint::Config::new(&plan).uet
}

fn data(psn: u32) -> PacketIn {
    let (len, size) = (4086, 4150);
    PacketIn { psn, len, size, value: 7, is_marked: false, asks: false, is_trimmed: false }
}

fn nack(psn: u32, rtt: Time) -> Nack {
    Nack { psn, value: 7, is_marked: false, is_last_hop: true, rtt }
}

fn ack(came: Came) -> (u32, Selective) {
    match came {
        Came::Ack(next, selective) => (next, selective),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_receiver_acknowledges_when_it_must() {
    let cfg = config("");
    let mut receiver = Receiver::new(0);
    let (next, first) = ack(receiver.on_piece(&data(0), &cfg));
    assert_eq!((next, first.bytes, first.ahead, first.value), (1, 4150, 0, 7));
    // 16,384 bytes are four packets.
    let quiet = (1..4).map(|psn| receiver.on_piece(&data(psn), &cfg));
    assert!(quiet.collect::<Vec<_>>().iter().all(|came| *came == Came::Quietly));
    assert_eq!(ack(receiver.on_piece(&data(4), &cfg)).0, 5);
    // A mark, a question, and what came before.
    assert_eq!(ack(receiver.on_piece(&PacketIn { is_marked: true, ..data(5) }, &cfg)).0, 6);
    assert_eq!(ack(receiver.on_piece(&PacketIn { asks: true, ..data(6) }, &cfg)).0, 7);
    assert_eq!(ack(receiver.on_piece(&data(3), &cfg)).0, 7);
    assert_eq!(receiver.expected(None), 7 * 4086);
}

#[test]
fn a_receiver_names_what_came_beyond_a_gap_and_asks_for_what_was_trimmed() {
    let cfg = config("");
    let mut receiver = Receiver::new(0);
    receiver.on_piece(&data(0), &cfg);
    let trimmed = PacketIn { is_trimmed: true, len: 0, size: 64, ..data(1) };
    assert_eq!(receiver.on_piece(&trimmed, &cfg), Came::Nack);
    receiver.on_piece(&data(2), &cfg);
    let (next, it) = ack(receiver.on_piece(&PacketIn { asks: true, ..data(4) }, &cfg));
    assert_eq!((next, it.base, it.bitmap, it.ahead, it.bytes), (1, 4, 1, 2, 3 * 4150));
    let (_, it) = ack(receiver.on_piece(&PacketIn { is_marked: true, ..data(3) }, &cfg));
    assert_eq!((it.base, it.bitmap), (3, 0b11));
    // The gap closes, and one beyond it has asked.
    let (next, it) = ack(receiver.on_piece(&data(1), &cfg));
    assert_eq!((next, it.ahead, receiver.expected(None)), (5, 0, 5 * 4086));
    // A packet that came need not be sent again.
    assert_eq!(ack(receiver.on_piece(&trimmed, &cfg)).0, 5);
}

fn selective(bytes: u64) -> Selective {
    Selective { bytes, ..Selective::default() }
}

#[test]
fn a_sender_fills_its_window_and_asks_at_its_end() {
    let cfg = config("uet-window = \"20000B\"");
    let mut sender = Sender::new(0, 1, &cfg);
    sender.write(Time::ZERO, 100_000);
    let pieces: Vec<_> = std::iter::from_fn(|| sender.next(Time::ZERO, 1, &cfg)).collect();
    assert_eq!(pieces.iter().map(|it| it.psn).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(pieces.iter().map(|it| it.asks).collect::<Vec<_>>(), [false, false, false, true]);
    let rtt = Time::from_us(5);
    sender.on_selective(rtt, 1, &selective(4150), false, rtt, &cfg);
    assert_eq!(sender.next(rtt, 1, &cfg).unwrap().psn, 4);
    // A NACK: the window has a packet less, and its packet goes first.
    sender.on_nack(rtt, &nack(2, rtt), &cfg);
    assert_eq!(sender.next(rtt, 1, &cfg), None);
    sender.on_selective(rtt, 2, &selective(2 * 4150), false, rtt, &cfg);
    let again = sender.next(rtt, 1, &cfg).unwrap();
    assert_eq!((again.psn, again.is_again, again.asks), (2, true, true));
    sender.on_selective(rtt, 5, &selective(5 * 4150), false, rtt, &cfg);
    assert_eq!(sender.acked(), 5 * 4086);
}

#[test]
fn a_packet_without_an_answer_is_sent_again() {
    let cfg = config("uet-rto = \"100us\"");
    let mut sender = Sender::new(0, 1, &cfg);
    sender.write(Time::ZERO, 1_000);
    assert_eq!(sender.next(Time::ZERO, 1, &cfg).unwrap().len, 1_000);
    assert_eq!(sender.deadline(), Time::from_us(100));
    sender.on_timer(Time::from_us(100), &cfg);
    assert_eq!(sender.counters().timeouts, 1);
    let again = sender.next(Time::from_us(100), 1, &cfg).unwrap();
    assert!(again.is_again && sender.deadline() == Time::from_us(200));
    sender.on_selective(Time::from_us(110), 1, &selective(1_064), false, Time::from_us(10), &cfg);
    assert!(sender.is_done() && sender.deadline() == Time::MAX);
}

#[test]
fn credit_is_speculative_until_the_first_answer() {
    let cfg = config("uet-control = \"rccc\"\nuet-window = \"8300B\"");
    let mut sender = Sender::new(0, 1, &cfg);
    sender.write(Time::ZERO, 100_000);
    let pieces: Vec<_> = std::iter::from_fn(|| sender.next(Time::ZERO, 1, &cfg)).collect();
    assert_eq!(pieces.len(), 2);
    let last = pieces.last().unwrap();
    assert!(last.asks && last.target > 0);
    // 64 units are 16,384 bytes: four packets, the last of which credit covers in part.
    sender.on_pull(64, &cfg);
    let pieces = std::iter::from_fn(|| sender.next(Time::ZERO, 1, &cfg)).count();
    assert_eq!(pieces, 4);
    sender.on_pull(64, &cfg);
    assert_eq!(sender.next(Time::ZERO, 1, &cfg), None, "the same credit once");
}

#[test]
fn a_pacer_gives_99_percent_of_the_link_by_turns() {
    let cfg = config("uet-control = \"rccc\"");
    let mut pacer = Pacer::default();
    let rate = Rate::from_gbps(100);
    assert_eq!(pacer.ask(Time::ZERO, 1, 1_000, false), Some(Time::ZERO));
    assert_eq!(pacer.ask(Time::ZERO, 2, 100, false), None);
    let (mut at, mut given) = (Time::ZERO, Vec::new());
    for _ in 0..4 {
        let (pull, next) = pacer.next(at, rate, &cfg[0]);
        given.push(pull.map(|it| (it.flow, it.credit, it.is_slow)).unwrap());
        let wait = next.unwrap() - at;
        assert!(wait.as_ps().abs_diff(1_323_960) < 10 || given.len() > 3, "{wait}");
        at = next.unwrap();
    }
    assert_eq!(given, [(1, 64, false), (2, 64, false), (1, 128, false), (2, 100, false)]);
    // One that has all waits until it asks for more.
    let (pull, _) = pacer.next(at, rate, &cfg[0]);
    assert_eq!(pull.unwrap().flow, 1);
    pacer.forget(1);
    let slow = pacer.next(at, rate, &cfg[0]).0.unwrap();
    assert!(slow.is_slow && slow.flow == 2);
}

#[test]
fn a_request_to_send_is_answered_by_the_last_pull() {
    let cfg = config("uet-control = \"rccc\"");
    let (mut pacer, rate) = (Pacer::default(), Rate::from_gbps(100));
    pacer.ask(Time::ZERO, 1, 100, false);
    assert_eq!(pacer.ask(Time::ZERO, 1, 100, true), None, "it is active");
    let (first, next) = pacer.next(Time::ZERO, rate, &cfg[0]);
    let (last, next) = pacer.next(next.unwrap(), rate, &cfg[0]);
    assert_eq!((first.unwrap().credit, last.unwrap().credit), (64, 100));
    let later = next.unwrap();
    assert_eq!(pacer.ask(later, 1, 100, false), None, "the target does not rise");
    pacer.ask(later, 1, 100, true);
    let (again, next) = pacer.next(later, rate, &cfg[0]);
    assert_eq!(again.map(|pull| (pull.credit, pull.is_slow)), Some((100, false)));
    assert!(next.unwrap() < later + Time::from_ns(100), "nothing was given");
}

#[test]
fn satisfied_connections_get_slow_pulls_a_largest_window_ahead() {
    let cfg = config("uet-control = \"rccc\"");
    let (mut pacer, rate) = (Pacer::default(), Rate::from_gbps(100));
    pacer.ask(Time::ZERO, 1, 64, false);
    let (mut at, mut last) = (Time::ZERO, 0);
    while let (Some(pull), next) = pacer.next(at, rate, &cfg[0]) {
        last = pull.credit;
        let Some(next) = next else { break };
        at = next;
    }
    let ahead = (cfg[0].terms.largest / CREDIT) as u32;
    assert!((64 + ahead..128 + ahead).contains(&last), "{last}, {ahead} ahead");
}

/// The pieces that a sender of credit sends now.
fn pieces(sender: &mut Sender, now: Time, cfg: &[Config]) -> Vec<Piece> {
    std::iter::from_fn(|| sender.next(now, 1, cfg)).collect()
}

#[test]
fn a_target_is_the_rest_without_the_credit_at_hand_shared_among_the_senders_of_a_nic() {
    let cfg = config("uet-control = \"rccc\"");
    let mut sender = Sender::new(0, 1, &cfg);
    sender.write(Time::ZERO, 40_860);
    // Speculative credit covers it all: a packet of credit is asked for while more is to come.
    let first = pieces(&mut sender, Time::ZERO, &cfg);
    let targets: Vec<u32> = first.iter().map(|it| it.target).collect();
    assert_eq!(targets, [[17; 9].as_slice(), &[0]].concat());
    // The credit of 64 units pays for one packet of three that are to be sent again, whose target
    // has the other two.
    let rtt = Time::from_us(5);
    sender.on_selective(rtt, 1, &selective(4150), false, rtt, &cfg);
    for psn in [1, 2, 3] {
        sender.on_nack(rtt, &nack(psn, rtt), &cfg);
    }
    sender.on_pull(17, &cfg);
    let piece = sender.next(rtt, 1, &cfg).unwrap();
    let left = 17 * 256 - 4150;
    assert_eq!(u64::from(piece.target), 17 + (2 * 4150 - left as u64).div_ceil(256));
    let shared = sender.clone().next(rtt, 2, &cfg).unwrap();
    let wants = 4150 - (left - 4150);
    assert_eq!(u64::from(shared.target), (17 * 256 + wants as u64 / 2).div_ceil(256));
}

#[test]
fn a_sender_without_credit_requests_to_send_what_is_written_later() {
    let cfg = config("uet-control = \"rccc\"\nuet-rto = \"100us\"");
    let mut sender = Sender::new(0, 1, &cfg);
    sender.write(Time::ZERO, 1_000);
    assert_eq!(pieces(&mut sender, Time::ZERO, &cfg).len(), 1);
    let at = Time::from_us(5);
    sender.on_selective(at, 1, &selective(1_064), false, at, &cfg);
    assert_eq!((sender.takes_probe(at, 1, &cfg), sender.deadline()), (None, Time::MAX));
    sender.write(at, 1_000);
    assert_eq!(sender.next(at, 1, &cfg), None);
    let request = sender.takes_probe(at, 1, &cfg).unwrap();
    assert_eq!((request.requests, request.target), (true, 1_064_u32.div_ceil(256)));
    assert_eq!(sender.takes_probe(at, 1, &cfg), None, "once");
    // Nothing comes: it asks again, after twice the timeout for each request so far.
    let mut asked = at;
    for wait in [200, 400, 800] {
        assert_eq!(sender.deadline(), asked + Time::from_us(wait));
        asked = sender.deadline();
        sender.on_timer(asked, &cfg);
        assert!(sender.takes_probe(asked, 1, &cfg).is_some_and(|it| it.requests));
    }
    assert_eq!(sender.counters().timeouts, 3);
    sender.on_pull(5, &cfg);
    assert_eq!(pieces(&mut sender, asked, &cfg).len(), 1);
}

#[test]
fn a_timeout_without_credit_requests_to_send_once_a_base_round_trip() {
    let cfg = config("uet-control = \"rccc\"\nuet-window = \"8300B\"\nuet-rto = \"10us\"");
    let mut sender = Sender::new(0, 1, &cfg);
    sender.write(Time::ZERO, 100_000);
    assert_eq!(pieces(&mut sender, Time::ZERO, &cfg).len(), 2);
    let at = Time::from_us(10);
    sender.on_timer(at, &cfg);
    assert!(sender.takes_probe(at, 1, &cfg).is_some_and(|it| it.requests));
    for late in 1..20 {
        sender.on_timer(at + Time::from_us(late), &cfg);
        assert_eq!(sender.takes_probe(at + Time::from_us(late), 1, &cfg), None, "{late}");
    }
}

#[test]
fn bytes_in_flight_are_even_after_a_timeout_that_was_too_early() {
    let cfg = config("uet-control = \"constant\"\nuet-window = \"20000B\"\nuet-rto = \"10us\"");
    let (mut sender, mut receiver) = (Sender::new(0, 1, &cfg), Receiver::new(0));
    sender.write(Time::ZERO, 8_172);
    let first = pieces(&mut sender, Time::ZERO, &cfg);
    sender.on_timer(Time::from_us(10), &cfg);
    // One packet goes out again, and the other is acknowledged while it waits for that.
    let again = sender.next(Time::from_us(10), 1, &cfg).unwrap();
    let mut at = Time::from_us(20);
    for piece in first.iter().chain([&again]) {
        let packet = PacketIn { asks: true, ..data(piece.psn) };
        let (next, selective) = ack(receiver.on_piece(&packet, &cfg));
        sender.on_selective(at, next, &selective, false, at, &cfg);
        at += Time::from_us(1);
    }
    assert_eq!((sender.standing(&cfg).in_flight, sender.is_done()), (0, true));
    sender.write(at, 100_000);
    assert_eq!(pieces(&mut sender, at, &cfg).len(), 4, "a window is four packets");
}
