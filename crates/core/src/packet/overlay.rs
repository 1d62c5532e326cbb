//! The words of virtual switches to each other (Backdraft, NSDI 2022), as packets: UDP with the
//! datagram of [`crate::overlay::wire`].
//!
//! A packet's side record has the words of its datagram, with flows by number where the datagram
//! has addresses. A capture shows the datagram; its tag is made with a key of zeros, for a
//! simulation has no secrets, and both epochs are 1, for its switches do not restart.
//!
//! Invariant: a packet's length is what its words take in a datagram.

use super::{FlowId, HostId, Packet, Protocol, Record};
use crate::overlay::{self, FlowKey, Target, Word, wire};
use crate::units::Time;

/// Words of a packet: a datagram has room for more, a side record is of a size with others.
pub const WORDS: usize = 6;
pub const HEADERS: u32 = 28;
/// The datagram's port, as a capture shows it.
const PORT: u16 = 4793;

/// The overlay, as a capture shows it.
pub const PROTOCOL: Protocol = Protocol {
    name: "overlay",
    number: 17,
    checksum_at: 6,
    header,
    has_entropy_port: false,
    control_priority: None,
    late: |packet| packet.body,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    /// All that is sent to the host that speaks.
    #[default]
    Host,
    /// One core of an application there, by its number.
    Application(u16),
    Flow {
        flow: FlowId,
        /// The core of an application that it goes to.
        application: u16,
    },
}

impl Whom {
    /// The overlay's identity of a flow between hosts. The core of an application that it goes to
    /// stands in the place of a port.
    pub fn key(flow: FlowId, application: u16, from: HostId, to: HostId) -> FlowKey {
        FlowKey {
            source: u128::from(from) << 32 | u128::from(flow),
            destination: u128::from(to),
            source_port: 0,
            destination_port: application,
            protocol: 0,
        }
    }
    /// The overlay's target, of what `from` sends to `to`.
    pub fn target(self, from: HostId, to: HostId) -> Target {
        match self {
            Whom::Host => Target::Peer,
            Whom::Application(port) => {
                Target::Application { address: u128::from(to), port, protocol: 0 }
            }
            Whom::Flow { flow, application } => {
                Target::Flow(Whom::key(flow, application, from, to))
            }
        }
    }
    /// Of a target that [`Whom::target`] made.
    pub fn of(target: &Target) -> Whom {
        match target {
            Target::Peer => Whom::Host,
            Target::Application { port, .. } => Whom::Application(*port),
            Target::Flow(key) => {
                Whom::Flow { flow: key.source as FlowId, application: key.destination_port }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub word: Word,
    pub whom: Whom,
    pub seq: u64,
    /// Bytes that wait there.
    pub queued: u32,
    /// How long it holds, in microseconds.
    pub ttl: u32,
    /// In kb/s, how fast it may send then; 0: as it likes.
    pub rate: u32,
}

/// The words of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    entries: [Entry; WORDS],
    count: u8,
}

impl Words {
    /// Of the overlay's records, of which there are at most [`WORDS`].
    pub fn new(records: &[overlay::Record]) -> Words {
        let mut words = Words::default();
        for (place, record) in words.entries.iter_mut().zip(records) {
            let overlay::Record { word, target, seq, queued, rate, ttl } = *record;
            *place = Entry { word, whom: Whom::of(&target), seq, queued, ttl, rate };
            words.count += 1;
        }
        words
    }
    pub fn entries(&self) -> &[Entry] {
        &self.entries[..usize::from(self.count)]
    }
    /// The overlay's records that `by` sends to `to`. They are about what `to` sends to `by`; a
    /// request is about what its sender sends.
    pub fn records(&self, by: HostId, to: HostId) -> impl Iterator<Item = overlay::Record> + '_ {
        self.entries().iter().map(move |it| {
            let Entry { word, whom, seq, queued, ttl, rate } = *it;
            let target = if word == Word::Ask { whom.target(by, to) } else { whom.target(to, by) };
            overlay::Record { word, target, seq, queued, rate, ttl }
        })
    }
    /// Bytes of the packet: IP, UDP and the datagram.
    pub fn bytes(&self) -> u32 {
        HEADERS + wire::length(self.entries().len()) as u32
    }
}

/// Puts a packet's header behind `out`, with a checksum of zero.
fn header(out: &mut Vec<u8>, packet: &Packet, records: &[Record], _: Option<Time>) {
    let words = Record::find::<Words>(records).copied().unwrap_or_default();
    let head = wire::Head {
        from: packet.src,
        to: packet.dst,
        epoch: 1,
        to_epoch: 1,
        number: packet.stamp.as_ps(),
    };
    let entries: Vec<overlay::Record> = words.records(packet.src, packet.dst).collect();
    let key = wire::Key::new(&[0; wire::SECRET_LEAST]);
    let datagram = key.map(|key| wire::encode(&head, &entries, &key)).unwrap_or_default();
    for half in [PORT, PORT, (8 + datagram.len()) as u16, 0] {
        out.extend_from_slice(&half.to_be_bytes());
    }
    out.extend_from_slice(&datagram);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_records_and_a_header_is_as_long_as_the_packet() {
        let whoms = [Whom::Host, Whom::Application(3), Whom::Flow { flow: 77, application: 3 }];
        let entries = |whom: Whom| overlay::Record {
            word: Word::Pause,
            target: whom.target(5, 9),
            seq: 12,
            queued: 3_000,
            rate: 10_000,
            ttl: 100,
        };
        let records: Vec<overlay::Record> = whoms.into_iter().map(entries).collect();
        let words = Words::new(&records);
        assert_eq!(words.records(9, 5).collect::<Vec<_>>(), records);
        assert!(words.entries().iter().map(|it| it.whom).eq(whoms));
        let ask = overlay::Record { word: Word::Ask, target: whoms[2].target(9, 5), ..records[2] };
        assert!(Words::new(&[ask]).records(9, 5).eq([ask]), "who asks speaks of what it sends");
        let packet = Packet { src: 9, dst: 5, size: words.bytes() as u16, ..Packet::default() };
        let mut out = Vec::new();
        header(&mut out, &packet, &[Record::Words(words)], None);
        assert_eq!(out.len() as u32 + 20, words.bytes());
        assert_eq!(wire::records(&out[8..]), Some(records));
    }
}
