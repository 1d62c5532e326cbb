use super::wire::{Head, RECORDS};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

mod explore;
mod joined;

const US: Time = Time::from_us(1);

fn flow(number: u16) -> FlowKey {
    FlowKey { source: 1, destination: 2, source_port: number, destination_port: 80, protocol: 6 }
}
fn target(number: u16) -> Target {
    Target::Flow(flow(number))
}
fn key() -> Key {
    Key::new(b"what two switches share").expect("it is long enough")
}

fn any_target() -> impl Strategy<Value = Target> {
    let flow = (any::<u128>(), any::<u128>(), any::<u16>(), any::<u16>(), any::<u8>());
    prop_oneof![
        flow.prop_map(|(source, destination, source_port, destination_port, protocol)| {
            Target::Flow(FlowKey { source, destination, source_port, destination_port, protocol })
        }),
        (any::<u128>(), any::<u16>(), any::<u8>())
            .prop_map(|(address, port, protocol)| Target::Application { address, port, protocol }),
        Just(Target::Peer),
    ]
}
fn any_record() -> impl Strategy<Value = Record> {
    let words = vec![Word::Pause, Word::Refresh, Word::Resume, Word::Ask, Word::Grant, Word::Rate];
    let word = prop::sample::select(words);
    (word, any_target(), any::<u64>(), any::<[u32; 3]>()).prop_map(
        |(word, target, seq, [queued, rate, ttl])| Record { word, target, seq, queued, rate, ttl },
    )
}

proptest! {
    /// An encoded datagram is decoded; one that is changed anywhere, cut or added to is refused.
    #[test]
    fn a_datagram_is_what_it_was_or_nothing(
        records in prop::collection::vec(any_record(), 0..=RECORDS),
        [from, to, epoch, to_epoch] in any::<[u32; 4]>(),
        number in any::<u64>(),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let head = Head { from, to, epoch, to_epoch, number };
        let bytes = wire::encode(&head, &records, &key());
        prop_assert_eq!(bytes.len(), 48 + 60 * records.len());
        prop_assert!(bytes.len() <= 1_400 && wire::is_authentic(&bytes, &key()));
        prop_assert_eq!((wire::head(&bytes), wire::records(&bytes)), (Some(head), Some(records)));
        let mut bent = bytes.clone();
        bent[at.index(bytes.len())] ^= 1 << bit;
        prop_assert!(!wire::is_authentic(&bent, &key()));
        prop_assert_eq!(wire::head(&bytes[..at.index(bytes.len())]), None);
        bent.push(0);
        prop_assert_eq!(wire::head(&bent), None);
    }

    /// Two switches, a network that loses, doubles and reorders, and pauses that come and go: once
    /// it is quiet, exactly those are held that should be.
    #[test]
    fn both_sides_agree_when_it_is_quiet(
        steps in prop::collection::vec((0u16..40, any::<bool>(), 0u64..30, 0u8..4), 1..120),
    ) {
        let (mut a, mut b) = pair();
        let (mut now, mut paused, mut delayed) = (US * 1_000, BTreeSet::new(), Vec::new());
        for (number, is_pause, by, fate) in steps {
            if is_pause && paused.insert(number) {
                b.notifier.pause(now, 1, target(number), 1);
            } else if !is_pause && paused.remove(&number) {
                b.notifier.resume(now, 1, target(number));
            }
            now += US * by;
            while let Some(datagram) = b.transmit(now, 1) {
                match fate {
                    0 => (),
                    1 => delayed.push(datagram),
                    2 => {
                        let _ = listen(&mut a, now, &datagram);
                        prop_assert_eq!(listen(&mut a, now, &datagram), Err(Refused::Replayed));
                    }
                    _ => prop_assert!(listen(&mut a, now, &datagram).is_ok()),
                }
            }
            if let (3, Some(late)) = (fate, delayed.pop()) {
                let _ = listen(&mut a, now, &late);
            }
            while a.keeper.expire(now).is_some() {}
        }
        for _ in 0..400 {
            now += US * 5;
            while let Some(datagram) = b.transmit(now, 1) {
                prop_assert!(listen(&mut a, now, &datagram).is_ok());
            }
            while a.keeper.expire(now).is_some() {}
        }
        let is_whole = paused.len() > 16;
        for number in 0..40 {
            let is_held = a.keeper.is_held(2, &flow(number));
            // An application that is paused as a whole may stay so until half as many flows are.
            prop_assert!(is_held || !paused.contains(&number), "{} goes on", number);
            prop_assert!(
                !is_held || paused.contains(&number) || is_whole || paused.len() > 8,
                "{} stands",
                number
            );
        }
        for number in paused {
            b.notifier.resume(now, 1, target(number));
        }
        now += US * 20;
        while let Some(datagram) = b.transmit(now, 1) {
            prop_assert!(listen(&mut a, now, &datagram).is_ok());
        }
        let mut later = now;
        for _ in 0..40 {
            later += US * 5;
            while b.transmit(later, 1).is_some() {}
            while a.keeper.expire(later).is_some() {}
        }
        prop_assert!((0..40).all(|number| !a.keeper.is_held(2, &flow(number))));
        prop_assert_eq!(b.notifier.len(1), 0);
    }
}

/// Peer 1 sends, peer 2 receives at address 2.
fn listen(a: &mut Overlay, now: Time, datagram: &[u8]) -> Result<(), Refused> {
    a.receive(now, datagram, |peer, address| (peer, address) == (2, 2), |_| ())
}
fn greet(
    from: &mut Overlay,
    to: &mut Overlay,
    [me, other]: [PeerId; 2],
    now: Time,
) -> Result<(), Refused> {
    let greeting = from.transmit(now, other).expect("it greets");
    let answer = to.receive(now, &greeting, |_, _| false, |_| ());
    assert_eq!(to.keeper.deadline(), None, "{me} has said nothing");
    answer
}
fn fresh(me: PeerId, other: PeerId, epoch: u32) -> Overlay {
    let mut overlay = Overlay::new(me, epoch, Config::default());
    overlay.add(other, key());
    overlay
}
/// Two switches that know each other's epochs.
fn pair() -> (Overlay, Overlay) {
    let (mut a, mut b) = (fresh(1, 2, 7), fresh(2, 1, 9));
    assert_eq!(greet(&mut a, &mut b, [1, 2], Time::ZERO), Err(Refused::Replayed));
    assert_eq!(greet(&mut b, &mut a, [2, 1], Time::ZERO), Ok(()));
    (a, b)
}

/// Whoever repeats a datagram, at once or after the listener has restarted, changes nothing.
#[test]
fn a_repeated_datagram_changes_nothing() {
    let (mut a, mut b) = pair();
    b.notifier.pause(Time::ZERO, 1, target(1), 1);
    let pause = b.transmit(Time::ZERO, 1).expect("it says so");
    assert_eq!(listen(&mut a, Time::ZERO, &pause), Ok(()));
    assert!(a.keeper.is_held(2, &flow(1)) && !a.keeper.is_held(2, &flow(2)));
    b.notifier.resume(US * 20, 1, target(1));
    let resume = b.transmit(US * 20, 1).expect("it says so");
    assert_eq!(listen(&mut a, US * 20, &resume), Ok(()));
    for said in [&pause, &resume] {
        assert_eq!(listen(&mut a, US * 21, said), Err(Refused::Replayed));
    }
    assert!(!a.keeper.is_held(2, &flow(1)));
    let mut restarted = fresh(1, 2, 8);
    assert_eq!(listen(&mut restarted, US * 22, &pause), Err(Refused::Replayed));
    assert!(!restarted.keeper.is_held(2, &flow(1)));
    assert_eq!((a.counters().received, a.counters().replayed), (3, 2));
    // The peer learns of the restart, and says anew what it had said.
    b.notifier.pause(US * 30, 1, target(3), 1);
    b.transmit(US * 30, 1);
    assert_eq!(greet(&mut restarted, &mut b, [1, 2], US * 31), Ok(()));
    let anew = b.transmit(US * 31, 1).expect("it says it again");
    assert_eq!(listen(&mut restarted, US * 31, &anew), Ok(()));
    assert!(restarted.keeper.is_held(2, &flow(3)));
}

/// A peer that restarts has paused nobody.
#[test]
fn a_restart_ends_what_was_said_before() {
    let (mut a, mut b) = pair();
    b.notifier.pause(Time::ZERO, 1, Target::Peer, 1);
    let pause = b.transmit(Time::ZERO, 1).expect("it says so");
    listen(&mut a, Time::ZERO, &pause).expect("it counts");
    let mut restarted = fresh(2, 1, 10);
    let greeting = restarted.transmit(US, 1).expect("it greets");
    let mut changes = Vec::new();
    let answer = a.receive(US, &greeting, |_, _| true, |change| changes.push(change));
    assert_eq!(answer, Err(Refused::Replayed), "it did not know our epoch");
    assert_eq!(changes, [Change { peer: 2, target: Target::Peer, is_held: false }]);
    // Datagrams that the dead one had under way are void.
    b.notifier.pause(US, 1, target(1), 1);
    let late = b.transmit(US, 1).expect("it was on its way");
    assert_eq!(listen(&mut a, US * 2, &late), Err(Refused::Replayed));
}

#[test]
fn strangers_forgers_and_the_presumptuous_are_counted() {
    let (mut a, _) = pair();
    let pause = |target| Record { word: Word::Pause, target, seq: 1, queued: 0, rate: 0, ttl: 100 };
    let head = Head { from: 2, to: 1, epoch: 9, to_epoch: 7, number: 5 };
    let says = |head: Head, target, key: &Key| wire::encode(&head, &[pause(target)], key);
    let other = Key::new(b"what two others share").expect("it is long enough");
    for (datagram, refused) in [
        (says(Head { from: 3, ..head }, target(1), &key()), Refused::Stranger),
        (says(head, target(1), &other), Refused::Forged),
        (says(Head { to: 4, ..head }, target(1), &key()), Refused::Forged),
        (says(Head { epoch: 8, ..head }, target(1), &key()), Refused::Replayed),
        (says(head, target(1), &key())[1..].to_vec(), Refused::Form),
        (Vec::new(), Refused::Form),
    ] {
        assert_eq!(listen(&mut a, Time::ZERO, &datagram), Err(refused));
    }
    let elsewhere = Target::Flow(FlowKey { destination: 3, ..flow(1) });
    let application = Target::Application { address: 3, port: 80, protocol: 6 };
    for (number, target) in [(5, elsewhere), (6, application)] {
        assert_eq!(
            listen(&mut a, Time::ZERO, &says(Head { number, ..head }, target, &key())),
            Ok(())
        );
    }
    for (number, word) in [(7, Word::Ask), (8, Word::Grant), (9, Word::Rate)] {
        let record = Record { word, ..pause(self::target(1)) };
        let datagram = wire::encode(&Head { number, ..head }, &[record], &key());
        assert_eq!(
            listen(&mut a, Time::ZERO, &datagram),
            Ok(()),
            "a switch that pauses has no such word"
        );
    }
    let counters = a.counters();
    assert_eq!((counters.strangers, counters.forged, counters.foreign), (1, 4, 5));
    assert_eq!(a.keeper.deadline(), None, "nobody is held");
    assert!(Key::new(b"fifteen bytes..").is_none());
}

/// The words to peer 1 until `until`, as (microseconds, word, flow).
fn said(notifier: &mut Notifier, until: u64) -> Vec<(u64, Word, u16)> {
    let mut all = Vec::new();
    while let Some(due) = notifier.deadline(1).filter(|due| *due <= US * until) {
        for record in notifier.poll(due, 1, RECORDS) {
            let number = match record.target {
                Target::Flow(flow) => flow.source_port,
                Target::Application { .. } => 1_000,
                Target::Peer => 2_000,
            };
            all.push((due.as_ps() / US.as_ps(), record.word, number));
        }
    }
    all
}

#[test]
fn a_pause_is_refreshed_and_a_resume_said_twice() {
    use Word::*;
    let mut notifier = Notifier::new(Config::default());
    notifier.pause(US * 10, 1, target(1), 1);
    assert_eq!(said(&mut notifier, 70), [(10, Pause, 1), (35, Refresh, 1), (60, Refresh, 1)]);
    // Half a feedback time after the last word.
    notifier.resume(US * 64, 1, target(1));
    assert_eq!(said(&mut notifier, 1_000), [(70, Resume, 1), (90, Resume, 1)]);
    assert_eq!(notifier.len(1), 0);
}

#[test]
fn the_latest_wins_and_what_nobody_heard_is_not_taken_back() {
    use Word::*;
    let mut notifier = Notifier::new(Config::default());
    notifier.pause(US, 1, target(1), 1);
    notifier.resume(US, 1, target(1));
    assert_eq!((said(&mut notifier, 1_000), notifier.len(1)), (vec![], 0));
    notifier.pause(US, 1, target(1), 1);
    assert_eq!(said(&mut notifier, 1), [(1, Pause, 1)]);
    notifier.resume(US * 2, 1, target(1));
    notifier.pause(US * 3, 1, target(1), 1);
    assert_eq!(said(&mut notifier, 10), [(3, Pause, 1)], "the resume was never said");
}

#[test]
fn data_that_arrives_repeats_a_pause() {
    use Word::*;
    let mut notifier = Notifier::new(Config::default());
    notifier.pause(Time::ZERO, 1, target(1), 1);
    assert_eq!(said(&mut notifier, 0), [(0, Pause, 1)]);
    for at in 1..20 {
        notifier.arrived(US * at, 1, &flow(1));
        notifier.arrived(US * at, 1, &flow(2));
    }
    assert_eq!(said(&mut notifier, 19), [(10, Refresh, 1)]);
    notifier.arrived(US * 20, 1, &flow(1));
    assert_eq!(said(&mut notifier, 20), [(20, Refresh, 1)]);
}

/// The seventeenth flow pauses the application; the ninth that goes on sets it free, after those
/// that stay have been named.
#[test]
fn many_flows_are_paused_as_an_application() {
    use Word::*;
    let mut notifier = Notifier::new(Config::default());
    (0..16).for_each(|number| notifier.pause(Time::ZERO, 1, target(number), 1));
    assert_eq!(said(&mut notifier, 0).len(), 16);
    (16..100).for_each(|number| notifier.pause(US, 1, target(number), 1));
    assert_eq!(said(&mut notifier, 1), [(1, Pause, 1_000)]);
    (8..100).for_each(|number| notifier.resume(US * 2, 1, target(number)));
    let after = said(&mut notifier, 12);
    let resumed =
        after.iter().position(|word| *word == (12, Resume, 1_000)).expect("it is set free");
    assert!((0..8).all(|flow| !after.contains(&(2, Resume, flow))), "{after:?}");
    assert!(
        after[..resumed]
            .iter()
            .filter(|(_, word, _)| *word == Resume)
            .all(|(_, _, flow)| *flow < 16)
    );
    let mut keeper = Keeper::new(Config::default());
    let mut notifier = Notifier::new(Config::default());
    (0..100).for_each(|number| notifier.pause(US, 1, target(number), 1));
    (0..95).for_each(|number| notifier.resume(US * 2, 1, target(number)));
    for at in 0..100 {
        for record in notifier.poll(US * at, 1, RECORDS) {
            keeper.on_record(US * at, 1, &record);
        }
        while keeper.expire(US * at).is_some() {}
    }
    assert!((0..95).all(|number| !keeper.is_held(1, &flow(number))));
    assert!((95..100).all(|number| keeper.is_held(1, &flow(number))));
}

/// However many flows are paused, no more than four datagrams leave in half a feedback time, and in
/// the end every flow was named.
#[test]
fn control_is_bounded() {
    let mut notifier = Notifier::new(Config { ttl: Time::from_ms(10), ..Config::default() });
    let apart = |number: u16| Target::Flow(FlowKey { destination_port: number, ..flow(0) });
    (0..10_000).for_each(|number| notifier.pause(Time::ZERO, 1, apart(number), 1));
    let mut told = BTreeSet::new();
    for window in 0..200 {
        let mut datagrams = 0;
        for at in 0..10 {
            loop {
                let records = notifier.poll(US * (window * 10 + at), 1, RECORDS);
                if records.is_empty() {
                    break;
                }
                datagrams += 1;
                told.extend(records.iter().map(|record| record.target));
            }
        }
        assert!(datagrams <= 4, "{datagrams} datagrams in window {window}");
    }
    assert_eq!(told.len(), 10_000);
}

#[test]
fn a_pause_ends_by_itself_and_what_is_late_does_nothing() {
    let config = Config { targets: 2, ..Config::default() };
    let mut keeper = Keeper::new(config);
    let record = |word, seq, ttl| Record { word, target: target(1), seq, queued: 0, rate: 0, ttl };
    let held = |is_held| Some(Change { peer: 2, target: target(1), is_held });
    assert_eq!(keeper.on_record(Time::ZERO, 2, &record(Word::Pause, 4, 100)), held(true));
    assert_eq!(keeper.on_record(US * 50, 2, &record(Word::Refresh, 4, 100)), None);
    assert_eq!(
        (keeper.expire(US * 149), keeper.expire(US * 150), keeper.expire(US * 150)),
        (None, held(false), None)
    );
    // It was refreshed too late, and is held again.
    assert_eq!(keeper.on_record(US * 160, 2, &record(Word::Refresh, 4, 100)), held(true));
    assert_eq!(keeper.on_record(US * 170, 2, &record(Word::Resume, 5, 100)), held(false));
    assert_eq!(
        (keeper.on_record(US * 171, 2, &record(Word::Pause, 4, 100)), keeper.late()),
        (None, 1)
    );
    // Nobody is paused for longer than this side allows.
    assert_eq!(keeper.on_record(US * 180, 2, &record(Word::Pause, 6, u32::MAX)), held(true));
    assert_eq!(keeper.deadline(), Some(US * 180 + Time::from_ms(50)));
    // The targets remembered of a peer are bounded.
    keeper.on_record(US * 180, 2, &Record { target: target(2), ..record(Word::Pause, 7, 100) });
    let third = Record { target: target(3), ..record(Word::Pause, 8, 100) };
    assert_eq!((keeper.on_record(US * 180, 2, &third), keeper.beyond()), (None, 1));
    assert!(keeper.on_record(US * 180, 2, &Record { target: Target::Peer, ..third }).is_some());
    // In the end nothing is remembered.
    for at in 1..=3 {
        while keeper.expire(Time::from_s(at)).is_some() {}
    }
    assert_eq!((keeper.is_held(2, &flow(1)), keeper.deadline()), (false, None));
}
