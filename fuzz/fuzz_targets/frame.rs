//! Any bytes as a frame with its virtio header: they are understood or not, never a panic; and what is cut from a
//! super-segment is whole, right, and all of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_linux::frame::{Checksums, Header, Offload, Segmenter, checksum, offload, parse};

fuzz_target!(|bytes: &[u8]| {
    let Some((header, frame)) = bytes.split_first_chunk::<{ offload::LENGTH }>() else { return };
    let Some(view) = parse(frame) else { return };
    let Ok(mut offload) = Offload::read(header) else { return };
    if offload.check(&view, frame.len()).is_err() {
        return;
    }
    if let Some(layers) = view.layers() {
        let mut segmenter = Segmenter::new(frame, *layers, offload.gso_size.into(), Checksums::Full);
        let (mut header, mut at) = (Header::default(), layers.payload);
        while let Some(payload) = segmenter.next(&mut header) {
            assert_eq!(payload.start, at);
            at = payload.end;
            let packet = [header.bytes(), &frame[payload]].concat();
            let view = parse(&packet).expect("a packet has an Ethernet header");
            assert!(checksum::is_right(&packet, view.layers().expect("a packet of a transport's frame")));
        }
        assert_eq!(at, layers.end);
    }
    let mut frame = frame.to_vec();
    let _ = offload.fill(&mut frame);
});
