//! Any datagram at the overlay's port: what has a form encodes to the same bytes, nothing counts
//! that was not made with the key, and whatever a peer with the key says is heard without a panic
//! and ends by itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_core::Time;
use millpond_core::overlay::wire::{Head, Key, encode, head, records};
use millpond_core::overlay::{Config, Overlay, Target};

fuzz_target!(|bytes: &[u8]| {
    let key = Key::new(b"what two switches share").expect("it is long enough");
    let config = Config::default();
    let mut overlay = Overlay::new(1, 7, config);
    overlay.add(2, key.clone());
    assert!(
        overlay.receive(Time::ZERO, bytes, |_, _| true, |_| ()).is_err(),
        "nobody guesses 16 bytes"
    );
    let (Some(head), Some(records)) = (head(bytes), records(bytes)) else { return };
    let again = encode(&head, &records, &key);
    assert_eq!(again[..again.len() - 16], bytes[..bytes.len() - 16]);
    let true_head =
        Head { from: 2, to: 1, epoch: head.epoch.max(1), to_epoch: 7, number: head.number.max(1) };
    let said = encode(&true_head, &records, &key);
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
});
