//! Guests that mean harm: whatever they write, their port alone has it.

use super::attached::{LONG, Place, soon};
use super::driver::{BUFFERS, FROM_GUEST, Guest, Options, RINGS, RINGS_LENGTH, TO_GUEST};
use super::{PLAIN, announce, frame, number};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;

/// A deed of one of them.
#[derive(Clone, Debug)]
enum Deed {
    /// Writes a descriptor: ring, index, address, length, flags, next.
    Describe(usize, u16, u64, u32, u16, u16),
    /// Makes a head available.
    Offer(usize, u16),
    /// Shows what is available.
    Show(usize),
    /// Says that any number is.
    Lie(usize, u16),
    /// Writes anywhere into its rings.
    Scribble(u64, u64),
    /// Sends a frame of its own.
    Send,
}

fn deed() -> impl Strategy<Value = Deed> {
    let ring = 0..2usize;
    let address = prop_oneof![
        any::<u64>(),
        (0..0x200u64).prop_map(|at| BUFFERS + at * 512),
        (0..RINGS_LENGTH).prop_map(|at| RINGS + at),
        Just(RINGS + RINGS_LENGTH - 8),
        Just(u64::MAX - 4),
    ];
    let length = prop_oneof![
        any::<u32>(),
        0..3000u32,
        Just(0),
        Just(u32::MAX),
        Just(65_600),
        (0..64u32).prop_map(|n| n * 16)
    ];
    let next = prop_oneof![any::<u16>(), 0..20u16];
    let index = prop_oneof![0..20u16, 0..300u16];
    prop_oneof![
        6 => (ring.clone(), index.clone(), address, length, 0..8u16, next)
            .prop_map(|(r, i, a, l, f, n)| Deed::Describe(r, i % 256, a, l, f, n)),
        4 => (ring.clone(), index).prop_map(|(ring, head)| Deed::Offer(ring, head)),
        3 => ring.clone().prop_map(Deed::Show),
        1 => (ring, any::<u16>()).prop_map(|(ring, next)| Deed::Lie(ring, next)),
        2 => (0..RINGS_LENGTH - 8, any::<u64>()).prop_map(|(at, value)| Deed::Scribble(at, value)),
        1 => Just(Deed::Send),
    ]
}

fn act(guest: &mut Guest, deed: &Deed) {
    use vm_memory::{Bytes, GuestAddress};
    match *deed {
        Deed::Describe(ring, index, address, length, flags, next) => {
            guest.describe_in(ring, index, address, length, flags, next);
        }
        Deed::Offer(ring, head) => guest.offer(ring, head),
        Deed::Show(ring) => guest.show(ring),
        Deed::Lie(ring, next) => guest.lie(ring, next),
        Deed::Scribble(at, value) => {
            guest.memory.write_obj(value, GuestAddress(RINGS + at)).unwrap()
        }
        Deed::Send => drop(guest.send(&PLAIN, &frame(1, 9, 0))),
    }
}

#[test]
fn whatever_a_guest_writes_others_go_on() {
    let place = Place::new("hostile");
    place.apply(&["a", "b", "evil"], "");
    let (mut a, mut b) =
        (place.attach("a", Options::default()), place.attach("b", Options::default()));
    announce(&mut a, 1, &mut b);
    announce(&mut b, 2, &mut a);
    let others = RefCell::new((a, b, 0));
    let process = place.state().process();
    let mut runner =
        TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let done = runner.run(&proptest::collection::vec(deed(), 1..60), |deeds| {
        let (a, b, sent) = &mut *others.borrow_mut();
        assert!(place.has_none("evil"));
        let mut evil = Guest::attach(&place.socket("evil"), Options::default());
        assert!(evil.send(&PLAIN, &frame(1, 9, 0)));
        for deed in &deeds {
            act(&mut evil, deed);
            // Frames for it, of all sizes.
            assert!(soon(|| a.send(&PLAIN, &super::long(9, 1, 0, 1400))));
        }
        *sent += 1;
        assert!(soon(|| a.send(&PLAIN, &frame(2, 1, *sent))));
        loop {
            let (_, got) = b.receive(LONG).expect("others go on");
            if got[11] == 1 && number(&got) == *sent {
                return Ok(());
            }
        }
    });
    done.unwrap();
    assert_eq!(place.state().process(), process, "it is the same process");
    let guest = place.port("evil").guest.unwrap();
    assert!(
        guest.broken > 0 && place.dropped("evil", "bad-descriptor") > 0,
        "{:?}",
        place.port("evil")
    );
    assert_eq!(place.port("a").guest.unwrap().broken + place.port("b").guest.unwrap().broken, 0);
}

#[test]
fn chains_that_hold_no_frame_are_dropped_and_rings_that_cannot_be_end() {
    let place = Place::new("chains");
    place.apply(&["a", "b"], "");
    let mut a = place.attach("a", Options::default());
    let bad: [&[(u64, u32, u16, u16)]; 9] = [
        // For ever; beyond the table; nowhere; for the switch to write; too long; too short; a
        // table in a table; a table of no whole descriptors; across the end of a region.
        &[(BUFFERS, 100, 1, 0)],
        &[(BUFFERS, 100, 1, 256)],
        &[(1, 100, 0, 0)],
        &[(BUFFERS, 100, 2, 0)],
        &[(BUFFERS, 65_700, 0, 0)],
        &[(BUFFERS, 11, 0, 0)],
        &[(RINGS + 0x40000, 64, 4, 0)],
        &[(BUFFERS, 63, 4, 0)],
        &[(RINGS + RINGS_LENGTH - 10, 100, 0, 0)],
    ];
    for (n, chain) in bad.iter().enumerate() {
        for (index, (address, length, flags, next)) in chain.iter().enumerate() {
            a.describe_in(FROM_GUEST, index as u16, *address, *length, *flags, *next);
        }
        a.offer(FROM_GUEST, 0);
        a.show(FROM_GUEST);
        assert!(
            soon(|| place.dropped("a", "bad-descriptor") == n as u64 + 1),
            "chain {n}: {:?}",
            place.port("a")
        );
    }
    assert!(place.port("a").guest.unwrap().is_up, "it is its own loss");
    // Indices that jump, a head that no table has, and a buffer that cannot be written.
    let deeds: [fn(&mut Guest); 4] = [
        |guest| guest.lie(FROM_GUEST, 1000),
        |guest| {
            guest.offer(FROM_GUEST, 256);
            guest.show(FROM_GUEST);
        },
        |guest| {
            (0..256).for_each(|index| guest.describe_in(TO_GUEST, index, 1, 2000, 2, 0));
        },
        |guest| {
            (0..256).for_each(|index| guest.describe_in(TO_GUEST, index, BUFFERS, 0, 2, 0));
        },
    ];
    drop(a);
    let mut b = place.attach("b", Options::default());
    for (n, deed) in deeds.iter().enumerate() {
        assert!(place.has_none("a"));
        let mut a = place.attach("a", Options::default());
        deed(&mut a);
        assert!(b.send(&PLAIN, &frame(super::BROADCAST, 2, 0)));
        assert!(soon(|| place.port("a").guest.unwrap().broken == n as u64 + 1), "deed {n}");
        assert!(place.has_none("a"));
    }
    assert!(place.port("b").guest.unwrap().is_up);
}

/// Descriptors of no eventfds are refused: another kind may make who waits for it wait for ever.
#[test]
fn a_kick_is_an_eventfd() {
    use vhost::VhostBackend;
    let place = Place::new("kick");
    place.apply(&["a"], "");
    let guest = place.attach("a", Options::default());
    use std::os::fd::{FromRawFd, IntoRawFd};
    let file = std::fs::File::open("/dev/zero").unwrap();
    // SAFETY: the descriptor is the file's own, which gives it up.
    #[allow(unsafe_code)]
    let file = unsafe { vmm_sys_util::eventfd::EventFd::from_raw_fd(file.into_raw_fd()) };
    assert!(guest.front.set_vring_kick(1, &file).is_err());
    assert!(place.has_none("a"));
    assert_eq!(place.port("a").guest.unwrap().broken, 1);
}
