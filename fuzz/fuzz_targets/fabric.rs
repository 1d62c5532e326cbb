//! Any bytes as a frame that reaches a fabric's switch: a pause frame says what it says again when
//! it is written anew; a packet's verdict is read back from where it was written, and no IPv4
//! header that was right becomes wrong.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_core::{Ecn, Packet, Time};
use millpond_linux::dataplane::frame::checksum::Sum;
use millpond_linux::dataplane::frame::{Mac, parse, pause};
use millpond_linux::dataplane::metadata::{self, Classifier, FRAMING};

fuzz_target!(|bytes: &[u8]| {
    if let Some(quanta) = pause::read(bytes) {
        assert_eq!(pause::read(&pause::write(Mac::default(), &quanta)), Some(quanta));
    }
    let Some(view) = parse(bytes) else { return };
    let classifier = Classifier::new([(view.destination, 7)], FRAMING);
    let Ok(packet) = classifier.read(Time::ZERO, bytes, bytes.len(), &view) else { return };
    assert_eq!(packet.dst, 7);
    let decided =
        Packet { class: packet.class.with_ecn(Ecn::Ce), ttl: packet.ttl.wrapping_sub(1), ..packet };
    let header = |frame: &[u8]| {
        let bytes = frame.get(view.ethernet..)?;
        let length = usize::from(bytes.first()? & 15) * 4;
        Some(Sum::default().bytes(bytes.get(..length)?).fold())
    };
    let mut frame = bytes.to_vec();
    metadata::write(&decided, &mut frame, &view);
    if frame != bytes {
        let again = classifier.read(Time::ZERO, &frame, frame.len(), &view).expect("it was one");
        assert_eq!((again.class, again.ttl), (decided.class, decided.ttl));
        let is_four = frame[view.ethernet] >> 4 == 4;
        assert!(!is_four || header(bytes) != Some(0xffff) || header(&frame) == Some(0xffff));
    }
});
