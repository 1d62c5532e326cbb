//! Any datagram at the port of notifications: a flow that somebody with the secret has named, or a
//! reason why not; never a panic. And a flow that is named arrives as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_linux::limit::layout::{Flow, Report};
use millpond_linux::limit::message::{BYTES, Secret, decode, encode};
use std::time::{Duration, UNIX_EPOCH};

fuzz_target!(|bytes: &[u8]| {
    let secret = Secret::new(b"what hosts share").expect("it is long enough");
    let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    assert!(decode(bytes, now, &secret).is_err(), "nobody guesses 16 bytes");
    let _ = Report::from_bytes(bytes);
    let Some(flow) = bytes.first_chunk() else { return };
    let flow = Flow::from_bytes(flow);
    let sent = encode(flow, now, &secret);
    assert_eq!(decode(&sent, now, &secret), Ok(flow));
    let Some(at) = bytes.last().map(|byte| usize::from(*byte) % BYTES) else { return };
    let mut bent = sent;
    bent[at] ^= bytes[0].max(1);
    assert!(decode(&bent, now, &secret).is_err());
});
