//! Any bytes as a frame with its virtio header: they are understood or not, never a panic; what is
//! cut from a super-segment is whole, right, and all of it; and a VLAN's tag comes and goes without
//! a trace.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_linux::dataplane::frame::{Checksums, Header, Inner, Offload, Segmenter};
use millpond_linux::dataplane::frame::{checksum, mss, offload, parse, vlan};

/// As at two access ports of a VLAN.
fn tag_and_untag(frame: &[u8], offload: &Offload) {
    let Ok(moved) = offload.tagged() else { return };
    let mut tagged = [&[0; vlan::LENGTH][..], frame].concat();
    vlan::insert(&mut tagged, vlan::ETHERTYPE, 10);
    assert_eq!(vlan::tagging(&tagged), vlan::Tagging::Tagged);
    assert_eq!(vlan::around(&tagged).expect("it has a tag").concat(), frame);
    assert_eq!(
        moved.untagged().map(|back| Offload { header: 0, ..back }),
        Ok(Offload { header: 0, ..*offload })
    );
    let (plain, view) =
        (parse(frame).expect("it was"), parse(&tagged).expect("it has an Ethernet header"));
    // A frame that ends with its EtherType has none behind the tag; no deeper tag, nor a longer
    // header, is looked behind.
    if let (Some(10), Inner::Transport(_)) = (view.vlan, view.inner) {
        let back = view.untagged();
        assert_eq!((back.inner, back.ethernet, back.tag), (plain.inner, plain.ethernet, plain.tag));
        assert_eq!(moved.check(&view, tagged.len()), offload.check(&plain, frame.len()));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((header, frame)) = bytes.split_first_chunk::<{ offload::LENGTH }>() else { return };
    let Some(view) = parse(frame) else { return };
    let Ok(mut offload) = Offload::read(header) else { return };
    tag_and_untag(frame, &offload);
    if offload.check(&view, frame.len()).is_err() {
        return;
    }
    if let Some(layers) = view.layers() {
        let mut segmenter =
            Segmenter::new(frame, *layers, offload.gso_size.into(), Checksums::Full);
        let (mut header, mut at) = (Header::default(), layers.payload);
        while let Some(payload) = segmenter.next(&mut header) {
            assert_eq!(payload.start, at);
            at = payload.end;
            let packet = [header.bytes(), &frame[payload]].concat();
            let view = parse(&packet).expect("a packet has an Ethernet header");
            assert!(checksum::is_right(
                &packet,
                view.layers().expect("a packet of a transport's frame")
            ));
        }
        assert_eq!(at, layers.end);
    }
    let mut frame = frame.to_vec();
    if let Some(layers) = view.tcp() {
        let was_right = checksum::is_right(&frame, layers);
        mss::clamp(&mut frame, layers, 1000, false);
        assert_eq!(checksum::is_right(&frame, layers), was_right);
    }
    let _ = offload.fill(&mut frame);
});
