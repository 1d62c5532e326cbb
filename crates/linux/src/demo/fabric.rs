//! Paths from one edge to another: each has a rate, a delay and a queue, and keeps its packets in
//! order.
//!
//! Invariant: a packet leaves its path at the time that rate and delay say, and carries that time,
//! however late it is looked at.

use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Drop;
use crate::dataplane::packet::Packet;
use crate::edge::Carrier;
use crate::encapsulation::{self, Encapsulation};
use millpond_core::{Rate, Time};
use std::collections::VecDeque;

/// Preamble, Ethernet, CRC, gap, IPv4 and UDP around the encapsulation.
const OVERHEAD: usize = 8 + 14 + 4 + 12 + 20 + 8 + encapsulation::LENGTH;
/// Packets that may wait on a path, as in a switch with 3 MB a port.
const WAITING_MAX: usize = 2048;

/// The properties of one path.
#[derive(Clone, Copy, Debug)]
pub struct PathSettings {
    /// How fast it sends.
    pub rate: Rate,
    /// How long a packet travels.
    pub delay: Time,
}

struct Traveller {
    at: Time,
    header: [u8; encapsulation::LENGTH],
    packet: Packet,
}

struct Path {
    settings: PathSettings,
    busy_until: Time,
    packets: VecDeque<Traveller>,
}

/// All paths in one direction.
pub struct Fabric {
    paths: Vec<Path>,
    /// Packets that did not fit, by reason.
    pub dropped: u64,
}

impl Fabric {
    /// With these paths; a label is a path's place.
    pub fn new(paths: &[PathSettings]) -> Fabric {
        let path = |s: &PathSettings| Path {
            settings: *s,
            busy_until: Time::ZERO,
            packets: VecDeque::new(),
        };
        Fabric { paths: paths.iter().map(path).collect(), dropped: 0 }
    }
    fn earliest(&self) -> Option<(Time, usize)> {
        let front = |(i, p): (usize, &Path)| p.packets.front().map(|t| (t.at, i));
        self.paths.iter().enumerate().filter_map(front).min()
    }
    /// When the next packet leaves.
    pub fn due(&self) -> Option<Time> {
        self.earliest().map(|(at, _)| at)
    }
    /// The next packet that has left by `now`: when, with what header, which.
    pub fn next(&mut self, now: Time) -> Option<(Time, [u8; encapsulation::LENGTH], Packet)> {
        let (_, path) = self.earliest().filter(|(at, _)| *at <= now)?;
        let traveller = self.paths[path].packets.pop_front()?;
        Some((traveller.at, traveller.header, traveller.packet))
    }
    /// Ends all that travels.
    pub fn clear(&mut self, buffers: &mut Buffers) {
        self.paths
            .iter_mut()
            .flat_map(|p| p.packets.drain(..))
            .for_each(|mut t| t.packet.end(buffers));
    }
}

impl Carrier for Fabric {
    fn carry(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        _: usize,
        stamp: Encapsulation,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Drop> {
        let header = stamp.write();
        let Some(path) = self.paths.get_mut(usize::from(stamp.label)) else {
            packets.drain(..).for_each(|mut p| p.end(buffers));
            return Err(Drop::UnknownLabel);
        };
        let mut result = Ok(());
        for mut packet in packets.drain(..) {
            if path.packets.len() >= WAITING_MAX {
                packet.end(buffers);
                self.dropped += 1;
                result = Err(Drop::PathFull);
                continue;
            }
            let bits = (packet.length() + OVERHEAD) as u64 * 8;
            let sent = path.busy_until.max(now)
                + Time::from_ps(bits * 1_000_000_000_000 / path.settings.rate.bps());
            path.busy_until = sent;
            path.packets.push_back(Traveller { at: sent + path.settings.delay, header, packet });
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::buffers::NONE;
    use crate::dataplane::frame::Header;

    #[test]
    fn packets_leave_by_rate_and_delay_and_in_order() {
        let path = |us| PathSettings { rate: Rate::from_gbps(10), delay: Time::from_us(us) };
        let mut fabric = Fabric::new(&[path(0), path(50)]);
        let mut buffers = Buffers::new(1);
        let packet = |bytes: usize| {
            let mut header = Header::default();
            header.set(&vec![0; bytes]);
            Packet::new(header, NONE, 0..0)
        };
        let stamp = |label| Encapsulation { label, flowcell: label, partial: false };
        let mut send = |label, count| {
            let mut packets = (0..count).map(|_| packet(100 - OVERHEAD)).collect();
            fabric.carry(Time::ZERO, &mut buffers, 0, stamp(label), &mut packets)
        };
        assert_eq!((send(1, 1), send(0, 2), send(2, 1)), (Ok(()), Ok(()), Err(Drop::UnknownLabel)));
        assert_eq!(send(0, WAITING_MAX), Err(Drop::PathFull));
        let mut left = Vec::new();
        while let Some((at, header, _)) = fabric.next(Time::from_us(51)) {
            left.push((at, Encapsulation::read(&header).unwrap().0.label));
        }
        // 100 bytes at 10 Gb/s: 80 ns.
        assert_eq!(left[..2], [(Time::from_ns(80), 0), (Time::from_ns(160), 0)]);
        assert!(left.windows(2).all(|w| w[0].0 <= w[1].0));
        assert!(left.contains(&(Time::from_ns(50_080), 1)));
        fabric.clear(&mut buffers);
        assert_eq!(fabric.due(), None);
    }
}
