//! The packets by which virtual switches speak to each other, as frames: UDP over IPv4 with the
//! datagram of [`millpond_core::overlay::wire`], as the simulator's captures show them.
//!
//! Invariant: what a frame was made of is read from it.

use crate::address::{ip, mac};
use millpond_core::Packet;
use millpond_core::overlay::wire;
use millpond_core::packet::Record;
use millpond_core::packet::overlay::{HEADERS, PROTOCOL, Words};
use millpond_linux::dataplane::buffers::Buffers;
use millpond_linux::dataplane::frame::checksum;
use millpond_linux::fabric::Held;

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
/// Version 4, five words of header.
const VERSION: u8 = 0x45;

/// The frame of a packet with these words.
pub fn frame(packet: &Packet, words: &Words) -> Vec<u8> {
    let class = packet.priority() << 5 | (packet.class.importance() as u8) << 2;
    let [high, low] = packet.size.to_be_bytes();
    let mut header = [VERSION, class, high, low, 0, 0, 0x40, 0, packet.ttl, PROTOCOL.number, 0, 0]
        .into_iter()
        .chain(ip(packet.src).octets())
        .chain(ip(packet.dst).octets())
        .collect::<Vec<u8>>();
    checksum::set(&mut header, 10);
    let mut frame = Vec::with_capacity(ETHERNET + usize::from(packet.size));
    for part in [&mac(packet.dst).0[..], &mac(packet.src).0, &IPV4, &header] {
        frame.extend_from_slice(part);
    }
    // UDP's checksum stays zero, which is none: the datagram has a tag.
    (PROTOCOL.header)(&mut frame, packet, &[Record::Words(*words)], None);
    frame
}

/// Reads the words of a frame; none if another kind of frame is given.
pub fn read(held: &Held, buffers: &Buffers) -> Words {
    let frame = [held.bytes.header.bytes(), held.bytes.payload(buffers)].concat();
    let datagram = frame.get(ETHERNET + HEADERS as usize..);
    let records = datagram.and_then(wire::records).unwrap_or_default();
    Words::new(&records)
}

#[cfg(test)]
mod tests {
    use super::*;

    use millpond_core::overlay::{Record as Said, Word};
    use millpond_core::packet::overlay::Whom;
    use millpond_linux::dataplane::frame::{Inner, Protocol};

    #[test]
    fn words_cross_as_a_datagram_of_their_packets_length() {
        let target = Whom::Flow { flow: 77, application: 3 }.target(5, 9);
        let said = Said { word: Word::Pause, target, seq: 12, queued: 3_000, rate: 0, ttl: 100 };
        let words = Words::new(&[said, Said { word: Word::Resume, ..said }]);
        let size = words.bytes() as u16;
        let packet = Packet { src: 9, dst: 5, size, ttl: 64, ..Packet::default() };
        let frame = frame(&packet, &words);
        assert_eq!(frame.len(), ETHERNET + usize::from(size));
        let mut buffers = Buffers::new(1);
        let mut held = Held::copy(&frame, &mut buffers).unwrap();
        let Inner::Transport(layers) = held.view.inner else { panic!("{:?}", held.view) };
        assert_eq!(layers.protocol, Protocol::Udp);
        assert_eq!(checksum::Sum::default().bytes(&frame[14..34]).fold(), 0xffff);
        assert_eq!(read(&held, &buffers), words);
        held.bytes.end(&mut buffers);
        assert_eq!(buffers.in_use(), 0);
    }
}
