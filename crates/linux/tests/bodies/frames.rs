//! One frame through functions of one frame.

use super::{split, word};
use crate::dataplane::buffers::Buffers;
use crate::dataplane::flow::{FlowKey, Keys, merge_digest, named};
use crate::dataplane::frame::neighbour::{Guard, announces};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{
    Checksums, HEADER_MAX, Header, Inner, Layers, Mac, Offload, Segmenter, Tag, View, checksum,
    coalesce, fragment, mss, parse, parse_head, pause, too_big, vlan,
};
use crate::dataplane::loops::Probe;
use crate::dataplane::metadata::{self, Classifier, FRAMING};
use crate::dataplane::packet::Packet;
use checksum::Sum;
use millpond_core::{Ecn, Time};
use std::cell::RefCell;

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers::new(1));
}

/// A frame with its virtio header: it is understood or not; packets that are cut from a
/// super-segment are whole, right and all of it; a VLAN's tag comes and goes without a trace.
pub fn frame(bytes: &[u8]) {
    let Some((header, frame)) = split(bytes) else { return };
    let Some(view) = parse(frame) else { return };
    let Ok(mut offload) = Offload::read(header) else { return };
    assert_eq!(Offload::read(&offload.write()), Ok(offload));
    tag_and_untag(frame, &offload);
    if offload.check(&view, frame.len()).is_err() {
        return;
    }
    assert!(view.layers().is_none() || offload.longest(&view, frame.len()) <= frame.len());
    if let Some(layers) = view.layers() {
        let mss = offload.gso_size.into();
        let mut segmenter = Segmenter::new(frame, *layers, mss, Checksums::Full);
        let (mut header, mut at) = (Header::default(), layers.payload);
        while let Some(payload) = segmenter.next(&mut header) {
            assert_eq!(payload.start, at);
            at = payload.end;
            let packet = [header.bytes(), &frame[payload]].concat();
            let view = parse(&packet).expect("a packet has an Ethernet header");
            let layers = view.layers().expect("a packet of a transport's frame");
            assert!(checksum::is_right(&packet, layers));
        }
        assert_eq!(at, layers.end);
    }
    let mut frame = frame.to_vec();
    if let Some(layers) = view.tcp() {
        let was_right = checksum::is_right(&frame, layers);
        mss::clamp(&mut frame, layers, word(header, 2) as u16, false);
        assert_eq!(checksum::is_right(&frame, layers), was_right);
    }
    let _ = offload.fill(&mut frame);
}

/// As at two access ports of a VLAN.
fn tag_and_untag(frame: &[u8], offload: &Offload) {
    let Ok(moved) = offload.tagged() else { return };
    let mut tagged = [&[0; vlan::LENGTH][..], frame].concat();
    vlan::insert(&mut tagged, vlan::ETHERTYPE, 10);
    assert_eq!(vlan::tagging(&tagged), vlan::Tagging::Tagged);
    assert_eq!(vlan::around(&tagged).expect("it has a tag").concat(), frame);
    let header = |offload: Offload| Offload { header: 0, ..offload };
    assert_eq!(moved.untagged().map(header), Ok(header(*offload)));
    let (plain, view) = (parse(frame).expect("it was"), parse(&tagged).expect("it is longer"));
    // A frame that ends with its EtherType has none behind the tag; no deeper tag, nor a longer
    // header, is looked behind.
    if let (Some(10), Inner::Transport(_)) = (view.vlan, view.inner) {
        let back = view.untagged();
        assert_eq!((back.inner, back.ethernet, back.tag), (plain.inner, plain.ethernet, plain.tag));
        assert_eq!(moved.check(&view, tagged.len()), offload.check(&plain, frame.len()));
    }
    vlan::set_number(&mut tagged, 4094);
    assert!(parse(&tagged).is_some_and(|it| view.vlan.is_none() || it.vlan == Some(4094)));
}

/// The first bytes of a frame: each offset lies within them, and the frame's packet is the frame.
pub fn headers(bytes: &[u8]) {
    let Some((header, frame)) = split(bytes) else { return };
    let front = &frame[..word(header, 0) % (frame.len() + 1)];
    for (front, length) in [(frame, frame.len()), (front, frame.len()), (front, front.len())] {
        let Some(view) = parse_head(front, length) else { continue };
        assert!(view.ethernet <= front.len() && view.tag.is_none_or(|at| at + 12 <= front.len()));
        let Some(l) = view.layers() else { continue };
        assert!(view.ethernet <= l.network && l.network < l.transport && l.transport < l.payload);
        assert!(l.payload <= l.end && l.end <= length && l.payload <= front.len());
        let (key, flow) = (FlowKey::of(front, l, view.vlan, 1), named(front, l));
        assert_eq!(key.ends().map(|end| end.port()), [flow.source_port, flow.destination_port]);
    }
    BUFFERS.with_borrow_mut(|buffers| {
        let Some(buffer) = buffers.take() else { return };
        if let Some(room) = buffers.bytes_mut(buffer).get_mut(..frame.len()) {
            room.copy_from_slice(frame);
            let (packet, view) = Packet::read(buffers, buffer, 0..frame.len());
            let (front, payload) = (packet.header.bytes(), packet.payload(buffers));
            assert!(front.len() <= HEADER_MAX && packet.length() == frame.len());
            assert!(frame.starts_with(front) && frame.ends_with(payload));
            assert_eq!(packet.view(), view);
        }
        buffers.release(buffer);
    });
}

/// A frame at a switch of a fabric: pause frames are written as they were read, a verdict is read
/// from where it was written, and no right IPv4 header becomes wrong.
pub fn fabric(bytes: &[u8]) {
    let Some((_, frame)) = split(bytes) else { return };
    if let Some(quanta) = pause::read(frame) {
        assert!(pause::is_control(frame));
        assert_eq!(pause::read(&pause::write(Mac::default(), &quanta)), Some(quanta));
    }
    let Some(view) = parse(frame) else { return };
    let classifier = Classifier::new([(view.destination, 7)], FRAMING);
    let Ok(packet) = classifier.read(Time::ZERO, frame, frame.len(), &view) else { return };
    assert_eq!(packet.dst, 7);
    let (class, ttl) = (packet.class.with_ecn(Ecn::Ce), packet.ttl.wrapping_sub(1));
    let decided = millpond_core::Packet { class, ttl, ..packet };
    let sum = |frame: &[u8]| {
        let bytes = frame.get(view.ethernet..)?;
        let length = usize::from(bytes.first()? & 15) * 4;
        Some(Sum::default().bytes(bytes.get(..length)?).fold())
    };
    let mut after = frame.to_vec();
    metadata::write(&decided, &mut after, &view);
    if after != frame {
        let again = classifier.read(Time::ZERO, &after, after.len(), &view).expect("it was one");
        assert_eq!((again.class, again.ttl), (decided.class, decided.ttl));
        let is_four = after.get(view.ethernet).is_some_and(|byte| byte >> 4 == 4);
        assert!(!is_four || sum(frame) != Some(0xffff) || sum(&after) == Some(0xffff));
    }
    if let Some(at) = view.tag {
        Tag::deflect(&mut after, at);
        assert!(Tag::read(&after, at).is_some_and(|tag| tag.deflected));
    }
}

/// A packet that is too long: its fragments are short and carry its payload in order; the answer
/// to its sender is a right packet that quotes it.
pub fn fragment(bytes: &[u8]) {
    let Some((header, frame)) = split(bytes) else { return };
    let (mtu, ethernet) = (word(header, 2) % 2048, word(header, 4) % 64);
    fragment::may_be_cut(frame, ethernet);
    let Some(view) = parse(frame) else { return };
    let ethernet = view.ethernet;
    if let Some(fragments) = fragment::cut(frame, ethernet, mtu) {
        let mut payload = Vec::new();
        for fragment in &fragments {
            assert!(fragment.len() <= ethernet + mtu && fragment[..12] == frame[..12]);
            let header = usize::from(fragment[ethernet] & 15) * 4;
            let packet = &fragment[ethernet..];
            assert_eq!(Sum::default().bytes(&packet[..header]).fold(), 0xffff);
            payload.extend_from_slice(&packet[header..]);
        }
        let header = usize::from(frame[ethernet] & 15) * 4;
        assert!(frame[ethernet + header..].starts_with(&payload));
    }
    if let Some(answer) = too_big::answer(frame, &view, mtu) {
        let back = parse(&answer).expect("it has an Ethernet header");
        assert_eq!((back.source, back.destination), (view.destination, view.source));
        assert_eq!(back.inner, Inner::OtherIp);
        assert!(answer.len() <= ethernet + too_big::QUOTED);
        // ICMPv4's checksum is over its message alone.
        let message = &answer[ethernet + 20..];
        let is_four = answer[ethernet] >> 4 == 4;
        assert!(!is_four || Sum::default().bytes(message).fold() == 0xffff);
    }
}

/// Addresses that a frame claims, and probes for loops.
pub fn neighbour(bytes: &[u8]) {
    let Some((_, frame)) = split(bytes) else { return };
    let Some(view) = parse(frame) else { return };
    announces(frame, &view);
    let guard = Guard::new(vec![view.source], vec!["10.0.0.1".parse().expect("an address")]);
    guard.permits(frame, &view);
    Probe::read(frame, &view);
}

/// A super-segment that is cut, merged and cut again gives the same packets, whose digests are
/// alike.
pub fn merge(bytes: &[u8]) {
    let Some((header, frame)) = split(bytes) else { return };
    let Some(view) = parse(frame) else { return };
    let Some(layers) = view.tcp() else { return };
    let length = layers.end - layers.payload;
    let mss = (word(header, 4) % 2048).max(length / 8 + 1);
    let keys = Keys::seeded(1);
    let all = packets(frame, layers, mss);
    let parts: Vec<View> = all.iter().filter_map(|packet| parse(packet)).collect();
    let mut flags = 0;
    for (packet, view) in all.iter().zip(&parts) {
        let layers = view.tcp().expect("it is cut from TCP");
        flags |= tcp::flags(packet, layers);
        assert_eq!(merge_digest(packet, layers, &keys), merge_digest(&all[0], layers, &keys));
    }
    let mut front = all[0][..layers.payload].to_vec();
    let offload = coalesce(&mut front, layers, length, mss, flags);
    assert_eq!((offload.gso_size > 0, offload.packets(length)), (all.len() > 1, all.len().max(1)));
    let merged = [&front, &frame[layers.payload..layers.end]].concat();
    let view = parse(&merged).expect("it has an Ethernet header");
    assert_eq!(offload.check(&view, merged.len()), Ok(()));
    assert_eq!(packets(&merged, view.tcp().expect("it is TCP"), mss), all);
}

fn packets(frame: &[u8], layers: &Layers, mss: usize) -> Vec<Vec<u8>> {
    let mut segmenter = Segmenter::new(frame, *layers, mss, Checksums::Full);
    let mut header = Header::default();
    std::iter::from_fn(|| {
        let payload = segmenter.next(&mut header)?;
        Some([header.bytes(), &frame[payload]].concat())
    })
    .collect()
}
