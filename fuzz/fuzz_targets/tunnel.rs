//! Any bytes as a datagram between two switches that share a key: a probe is read as it would be
//! written, nothing opens that was not sealed, and what was sealed opens once and whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_linux::encapsulation::Encapsulation;
use millpond_linux::tunnel::{Probe, Secrets, Session};

fuzz_target!(|bytes: &[u8]| {
    let secrets = || Secrets::parse("0123456789abcdef\nfedcba9876543210").expect("two secrets");
    assert!(Probe::read(bytes, Some(&secrets())).is_err(), "nobody guesses a tag");
    if let Ok(probe) = Probe::read(bytes, None) {
        assert_eq!(probe.write(None), bytes);
    }
    let (mut a, mut b) = (Session::new(secrets(), [1; 16]), Session::new(secrets(), [2; 16]));
    assert!(a.greeted([2; 16], [1; 16]) && b.greeted([1; 16], [2; 16]));
    assert!(b.open(&mut bytes.to_vec()).is_err());
    let stamp = Encapsulation { label: 1, flowcell: 2, partial: false };
    let mut sealed = Vec::new();
    let (front, rest) = bytes.split_at(bytes.len() / 2);
    assert!(a.seal(&stamp, [front, rest], &mut sealed));
    let mut copy = sealed.clone();
    let (told, frame) = b.open(&mut copy).expect("it is the peer's");
    assert_eq!((told, &copy[frame]), (stamp, bytes));
    assert!(b.open(&mut sealed).is_err());
});
