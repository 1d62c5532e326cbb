//! Messages between switches and hosts, and the kernel's answers.

use super::{split, word};
use crate::dataplane::frame::{Offload, parse};
use crate::dataplane::port::shared::Sender;
use crate::encapsulation::Encapsulation;
use crate::limit::layout::{Flow, Report};
use crate::limit::message::{BYTES, Secret, decode, encode};
use crate::netlink;
use crate::switch::config::PeerParams;
use crate::switch::overlay::Talk;
use crate::switch::peer::Peer;
use crate::switch::uplink::paths::take;
use crate::tunnel::{Probe, Secrets, Session};
use millpond_core::Time;
use millpond_core::overlay::wire::{self, Head, Key, head, records};
use millpond_core::overlay::{Config, Overlay, Record, Target, Word};
use std::time::{Duration, UNIX_EPOCH};

/// A datagram of a path without a key: it is read as it would be written.
pub fn encapsulation(bytes: &[u8]) {
    let Some((_, datagram)) = split(bytes) else { return };
    if let Some((stamp, frame)) = Encapsulation::read(datagram) {
        assert_eq!([&stamp.write()[..], frame].concat(), datagram);
    }
    if let Ok(probe) = Probe::read(datagram, None) {
        assert_eq!(probe.write(None), datagram);
    }
}

/// An answer of the kernel.
pub fn netlink(bytes: &[u8]) {
    let Some((header, datagram)) = split(bytes) else { return };
    netlink::find(datagram, word(header, 0) as u16);
    if let Ok((all, _)) = netlink::messages(datagram) {
        let _ = all.iter().filter_map(|body| netlink::find(body, 2)).count();
    }
}

/// Probes of a peer without a key, and what this switch then sends.
pub fn peer(bytes: &[u8]) {
    let Some((header, datagram)) = split(bytes) else { return };
    let mut peer = Peer::new("peer", &PeerParams::default(), 2);
    let mut now = Time::from_us(word(header, 0) as u64);
    for (label, part) in (0..).zip(datagram.chunks(word(header, 2).max(32))) {
        let heard = take(now, &mut peer, label % 3, &mut part.to_vec(), |_| true);
        // A probe that answers this switch's own is the next one.
        let (mut sendings, _) = peer.tick(now, word(header, 4));
        if let (Ok(None), Some(sending)) = (heard, sendings.pop()) {
            let mut answer = sending.datagram;
            answer[8..40].rotate_left(16);
            answer[48..56].copy_from_slice(&(now.as_ps() / 1000).to_be_bytes());
            let _ = peer.on_probe(now, sending.label, &answer);
        }
        peer.reading(now, label % 2, 1514);
        now += Time::from_us(word(header, 6) as u64);
    }
}

/// A datagram between two switches that share a key: nothing opens that was not sealed, and what
/// was sealed opens once and whole.
pub fn tunnel(bytes: &[u8]) {
    let secrets = || Secrets::parse("0123456789abcdef\nfedcba9876543210").expect("two secrets");
    let Some((_, datagram)) = split(bytes) else { return };
    assert!(Probe::read(datagram, Some(&secrets())).is_err(), "nobody guesses a tag");
    let (mut a, mut b) = (Session::new(secrets(), [1; 16]), Session::new(secrets(), [2; 16]));
    assert!(a.greeted([2; 16], [1; 16]) && b.greeted([1; 16], [2; 16]));
    assert!(b.open(&mut datagram.to_vec()).is_err());
    let stamp = Encapsulation { label: 1, flowcell: 2, partial: false };
    let mut sealed = Vec::new();
    let (front, rest) = datagram.split_at(datagram.len() / 2);
    assert!(a.seal(&stamp, [front, rest], &mut sealed));
    let mut copy = sealed.clone();
    let (told, frame) = b.open(&mut copy).expect("it is the peer's");
    assert_eq!((told, &copy[frame]), (stamp, datagram));
    assert!(b.open(&mut sealed).is_err());
}

/// A datagram of pauses: one that has a form encodes to the same bytes, nothing counts without the
/// key, and the pauses of a peer with the key end by themselves.
pub fn overlay(bytes: &[u8]) {
    let Some((_, datagram)) = split(bytes) else { return };
    let key = Key::new(b"what two switches share").expect("it is long enough");
    let config = Config::default();
    let mut overlay = Overlay::new(1, 7, config);
    overlay.add(2, key.clone());
    hold(datagram, key.clone());
    let received = overlay.receive(Time::ZERO, datagram, |_, _| true, |_| ());
    assert!(received.is_err(), "nobody guesses 16 bytes");
    let (Some(head), Some(records)) = (head(datagram), records(datagram)) else { return };
    let again = wire::encode(&head, &records, &key);
    assert_eq!(again[..again.len() - 16], datagram[..datagram.len() - 16]);
    let true_head =
        Head { from: 2, to: 1, epoch: head.epoch.max(1), to_epoch: 7, number: head.number.max(1) };
    let said = wire::encode(&true_head, &records, &key);
    let owns = |_, address: u128| address.is_multiple_of(2);
    let mut is_foreign = false;
    let heard = overlay.receive(Time::ZERO, &said, owns, |change| {
        is_foreign |= change.target.destination().is_some_and(|address| address % 2 == 1);
    });
    assert!(heard.is_ok() && !is_foreign);
    assert!(overlay.receive(Time::ZERO, &said, owns, |_| ()).is_err(), "once");
    while overlay.keeper.expire(config.longest).is_some() {}
    for record in records {
        if let Target::Flow(flow) = record.target {
            assert!(!overlay.keeper.is_held(2, &flow), "it lasts");
        }
    }
}

/// The datagram as a frame for a peer that has paused all flows: it waits until the pause ends.
fn hold(frame: &[u8], key: Key) {
    let mut talk = Talk::new(&PeerParams::default());
    talk.meet(Time::ZERO, [9; 16], key.clone());
    let target = Target::Peer;
    let pause = Record { word: Word::Pause, target, seq: 1, queued: 9, rate: 0, ttl: 50_000 };
    let head = Head { from: 0, to: 0, epoch: 1, to_epoch: 1, number: 1 };
    let heard = talk.receive(Time::ZERO, &wire::encode(&head, &[pause], &key), |_| true);
    assert_eq!(heard, Ok(()));
    let Some(view) = parse(frame) else { return };
    let offload = Offload::default();
    let _ = talk.admit(Time::ZERO, frame, &offload, &view, Sender::Elsewhere);
    talk.expire(Time::from_s(9));
    while let Some(waiting) = talk.next(Time::from_s(9)) {
        assert_eq!(waiting.bytes, frame);
    }
}

/// A datagram at the limiter's port of notifications.
pub fn notification(bytes: &[u8]) {
    let Some((_, datagram)) = split(bytes) else { return };
    let secret = Secret::new(b"what hosts share").expect("it is long enough");
    let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    assert!(decode(datagram, now, &secret).is_err(), "nobody guesses 16 bytes");
    let _ = Report::from_bytes(datagram);
    let Some(flow) = datagram.first_chunk() else { return };
    let flow = Flow::from_bytes(flow);
    let sent = encode(flow, now, &secret);
    assert_eq!(decode(&sent, now, &secret), Ok(flow));
    let Some(at) = datagram.last().map(|byte| usize::from(*byte) % BYTES) else { return };
    let mut bent = sent;
    bent[at] ^= datagram[0].max(1);
    assert!(decode(&bent, now, &secret).is_err());
}
