//! The two ends by themselves, and a host's pacer.

use super::receiver::PacketIn;
use super::*;
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
    let (next, first) = ack(receiver.on_data(&data(0), &cfg));
    assert_eq!((next, first.bytes, first.ahead, first.value), (1, 4150, 0, 7));
    // 16,384 bytes are four packets.
    let quiet = (1..4).map(|psn| receiver.on_data(&data(psn), &cfg));
    assert!(quiet.collect::<Vec<_>>().iter().all(|came| *came == Came::Quietly));
    assert_eq!(ack(receiver.on_data(&data(4), &cfg)).0, 5);
    // A mark, a question, and what came before.
    assert_eq!(ack(receiver.on_data(&PacketIn { is_marked: true, ..data(5) }, &cfg)).0, 6);
    assert_eq!(ack(receiver.on_data(&PacketIn { asks: true, ..data(6) }, &cfg)).0, 7);
    assert_eq!(ack(receiver.on_data(&data(3), &cfg)).0, 7);
    assert_eq!(receiver.delivered(), 7 * 4086);
}

#[test]
fn a_receiver_names_what_came_beyond_a_gap_and_asks_for_what_was_trimmed() {
    let cfg = config("");
    let mut receiver = Receiver::new(0);
    receiver.on_data(&data(0), &cfg);
    let trimmed = PacketIn { is_trimmed: true, len: 0, size: 64, ..data(1) };
    assert_eq!(receiver.on_data(&trimmed, &cfg), Came::Nack);
    receiver.on_data(&data(2), &cfg);
    let (next, it) = ack(receiver.on_data(&PacketIn { asks: true, ..data(4) }, &cfg));
    assert_eq!((next, it.base, it.bitmap, it.ahead, it.bytes), (1, 4, 1, 2, 3 * 4150));
    let (_, it) = ack(receiver.on_data(&PacketIn { is_marked: true, ..data(3) }, &cfg));
    assert_eq!((it.base, it.bitmap), (3, 0b11));
    // The gap closes, and one beyond it has asked.
    let (next, it) = ack(receiver.on_data(&data(1), &cfg));
    assert_eq!((next, it.ahead, receiver.delivered()), (5, 0, 5 * 4086));
    // A packet that came need not be sent again.
    assert_eq!(ack(receiver.on_data(&trimmed, &cfg)).0, 5);
}

fn selective(bytes: u64) -> Selective {
    Selective { bytes, ..Selective::default() }
}

#[test]
fn a_sender_fills_its_window_and_asks_at_its_end() {
    let cfg = config("uet-window = \"20000B\"");
    let mut sender = Sender::new(0, 1, &cfg);
    sender.write(Time::ZERO, 100_000);
    let pieces: Vec<_> = std::iter::from_fn(|| sender.next(Time::ZERO, &cfg)).collect();
    assert_eq!(pieces.iter().map(|it| it.psn).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(pieces.iter().map(|it| it.asks).collect::<Vec<_>>(), [false, false, false, true]);
    let rtt = Time::from_us(5);
    sender.on_ack(rtt, 1, &selective(4150), (false, rtt), &cfg);
    assert_eq!(sender.next(rtt, &cfg).unwrap().psn, 4);
    // A NACK: the window has a packet less, and its packet goes first.
    sender.on_nack(rtt, 2, 7, (false, true, rtt), &cfg);
    assert_eq!(sender.next(rtt, &cfg), None);
    sender.on_ack(rtt, 2, &selective(2 * 4150), (false, rtt), &cfg);
    let again = sender.next(rtt, &cfg).unwrap();
    assert_eq!((again.psn, again.is_again, again.asks), (2, true, true));
    sender.on_ack(rtt, 5, &selective(5 * 4150), (false, rtt), &cfg);
    assert_eq!(sender.acked(), 5 * 4086);
}

#[test]
fn a_packet_without_an_answer_is_sent_again() {
    let cfg = config("uet-rto = \"100us\"");
    let mut sender = Sender::new(0, 1, &cfg);
    sender.write(Time::ZERO, 1_000);
    assert_eq!(sender.next(Time::ZERO, &cfg).unwrap().len, 1_000);
    assert_eq!(sender.deadline(), Time::from_us(100));
    sender.on_timer(Time::from_us(100), &cfg);
    assert_eq!(sender.counters().timeouts, 1);
    let again = sender.next(Time::from_us(100), &cfg).unwrap();
    assert!(again.is_again && sender.deadline() == Time::from_us(200));
    sender.on_ack(Time::from_us(110), 1, &selective(1_064), (false, Time::from_us(10)), &cfg);
    assert!(sender.is_done() && sender.deadline() == Time::MAX);
}

#[test]
fn credit_is_speculative_until_the_first_answer() {
    let cfg = config("uet-control = \"rccc\"\nuet-window = \"8300B\"");
    let mut sender = Sender::new(0, 1, &cfg);
    sender.write(Time::ZERO, 100_000);
    let pieces: Vec<_> = std::iter::from_fn(|| sender.next(Time::ZERO, &cfg)).collect();
    assert_eq!(pieces.len(), 2);
    let last = pieces.last().unwrap();
    assert!(last.asks && last.target > 0);
    // 64 units are 16,384 bytes: four packets, the last of which credit covers in part.
    sender.on_pull(64);
    let pieces = std::iter::from_fn(|| sender.next(Time::ZERO, &cfg)).count();
    assert_eq!(pieces, 4);
    sender.on_pull(64);
    assert_eq!(sender.next(Time::ZERO, &cfg), None, "the same credit once");
}

#[test]
fn a_pacer_gives_99_percent_of_the_link_by_turns() {
    let cfg = config("uet-control = \"rccc\"");
    let mut pacer = Pacer::default();
    let rate = Rate::from_gbps(100);
    assert_eq!(pacer.ask(Time::ZERO, 1, 1_000), Some(Time::ZERO));
    assert_eq!(pacer.ask(Time::ZERO, 2, 100), None);
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
fn a_lost_pull_is_repeated_for_who_begs() {
    let cfg = config("uet-control = \"rccc\"");
    let (mut pacer, rate) = (Pacer::default(), Rate::from_gbps(100));
    pacer.ask(Time::ZERO, 1, 100);
    assert_eq!(pacer.repeat(Time::ZERO, 1, &cfg[0]), None, "its turn comes");
    let (first, next) = pacer.next(Time::ZERO, rate, &cfg[0]);
    let (last, _) = pacer.next(next.unwrap(), rate, &cfg[0]);
    assert_eq!((first.unwrap().credit, last.unwrap().credit), (64, 100));
    let given = next.unwrap();
    assert_eq!(pacer.repeat(given, 1, &cfg[0]), None, "the PULL may be on its way");
    let later = given + cfg[0].terms.base;
    assert_eq!(pacer.ask(later, 1, 100), None, "by asking it would get none");
    assert_eq!(pacer.repeat(later, 1, &cfg[0]).map(|pull| pull.credit), Some(100));
    assert_eq!(pacer.repeat(later, 1, &cfg[0]), None, "once a round trip");
    assert_eq!(pacer.repeat(later, 2, &cfg[0]), None, "of a stranger");
}
