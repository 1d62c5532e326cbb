//! The virtio header that goes with a frame: what its receiver has yet to do to it, or may believe.
//!
//! Follows `struct virtio_net_hdr` (10 bytes, in the machine's byte order as TAP and AF_PACKET have
//! it) and what include/linux/virtio_net.h makes of it.
//!
//! Invariant: an [`Offload`] that was [checked](Offload::check) against a frame names a transport
//! header within it, of the right kind.

use super::checksum::Sum;
use super::parse::{Layers, Protocol, Version, View};
use super::vlan;

/// How long it is before each frame.
pub const LENGTH: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const ECN: u8 = 0x80;

/// The packets that a super-segment is to be cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum GsoType {
    /// It is one packet.
    #[default]
    None,
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    Udp,
}

/// The work that a receiver of the frame has yet to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Offload {
    /// Whether the transport checksum is only the pseudo-header's; the rest is trusted, or for the
    /// last to add.
    pub partial: bool,
    /// Where the transport header is, in bytes from the frame's first; with `partial`.
    pub checksum_start: u16,
    /// Where in it the checksum is.
    pub checksum_offset: u16,
    /// The packets that it is to be cut into.
    pub gso: GsoType,
    /// Payload bytes of each packet but the last.
    pub gso_size: u16,
    /// How long the headers are: a hint.
    pub header: u16,
    /// The first packet has CWR set, and no other is to have it.
    pub ecn: bool,
}

/// Why a header does not fit its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

impl Offload {
    /// Reads the virtio header before a frame.
    ///
    /// # Errors
    /// [`Unfit`] if the kind of segmentation is none that millpond offers.
    #[inline]
    pub fn read(bytes: &[u8; LENGTH]) -> Result<Offload, Unfit> {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let gso = match bytes[1] & !ECN {
            0 => GsoType::None,
            1 => GsoType::Tcp4,
            4 => GsoType::Tcp6,
            5 => GsoType::Udp,
            _ => return Err(Unfit),
        };
        Ok(Offload {
            partial: bytes[0] & NEEDS_CHECKSUM != 0,
            checksum_start: word(6),
            checksum_offset: word(8),
            gso,
            gso_size: word(4),
            header: word(2),
            ecn: bytes[1] & ECN != 0,
        })
    }

    /// As the bytes before a frame.
    #[inline]
    pub fn write(&self) -> [u8; LENGTH] {
        let kind = match self.gso {
            GsoType::None => 0,
            GsoType::Tcp4 => 1,
            GsoType::Tcp6 => 4,
            GsoType::Udp => 5,
        };
        let mut bytes = [0; LENGTH];
        bytes[0] = if self.partial { NEEDS_CHECKSUM } else { 0 };
        bytes[1] = kind | if self.ecn { ECN } else { 0 };
        let words = [
            (2, self.header),
            (4, self.gso_size),
            (6, self.checksum_start),
            (8, self.checksum_offset),
        ];
        for (at, word) in words {
            bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// For a frame whose transport checksum is partial, to be cut into packets of `gso_size` if it
    /// has more than that.
    pub fn of(layers: &Layers, gso_size: usize) -> Offload {
        let many = layers.end - layers.payload > gso_size;
        let gso = match (many, layers.protocol, layers.version) {
            (false, ..) => GsoType::None,
            (true, Protocol::Udp, _) => GsoType::Udp,
            (true, Protocol::Tcp, Version::V4) => GsoType::Tcp4,
            (true, Protocol::Tcp, Version::V6) => GsoType::Tcp6,
        };
        Offload {
            partial: true,
            checksum_start: layers.transport as u16,
            checksum_offset: layers.protocol.checksum_at() as u16,
            gso,
            gso_size: if many { gso_size as u16 } else { 0 },
            header: if many { layers.payload as u16 } else { 0 },
            ecn: false,
        }
    }

    /// Checks that the header fits a frame of `frame` bytes: a super-segment is TCP or UDP of the
    /// version that it names, with its partial checksum where the transport's is. In a single
    /// packet a partial checksum may be anywhere: of a transport in a tunnel, or of an unknown one.
    ///
    /// # Errors
    /// [`Unfit`] if it does not.
    pub fn check(&self, view: &View, frame: usize) -> Result<(), Unfit> {
        if self.partial
            && usize::from(self.checksum_start) + usize::from(self.checksum_offset) + 2 > frame
        {
            return Err(Unfit);
        }
        let expected = match self.gso {
            GsoType::None => return Ok(()),
            GsoType::Tcp4 => (Some(Version::V4), Protocol::Tcp),
            GsoType::Tcp6 => (Some(Version::V6), Protocol::Tcp),
            GsoType::Udp => (None, Protocol::Udp),
        };
        let layers = view.layers().ok_or(Unfit)?;
        let fits = expected.0.is_none_or(|v| v == layers.version) && expected.1 == layers.protocol;
        // The payload may be no more than one packet: so a sender marks the last bytes of a
        // stream.
        match fits && self.gso_size > 0 && (!self.partial || self.is_at(layers)) {
            true => Ok(()),
            false => Err(Unfit),
        }
    }

    /// How many packets a frame of `length` bytes becomes, or some more: its headers count as
    /// payload.
    #[inline]
    pub fn packets(&self, length: usize) -> usize {
        if self.gso_size > 0 { length.div_ceil(self.gso_size.into()) } else { 1 }
    }

    /// How long the longest packet is that a frame of `length` bytes becomes, with its Ethernet
    /// header.
    #[inline]
    pub fn longest(&self, view: &View, length: usize) -> usize {
        match view.layers().filter(|_| self.gso_size > 0) {
            Some(l) => l.payload + (l.end - l.payload).min(self.gso_size.into()),
            None => length,
        }
    }

    /// Whether its partial checksum is the transport's of `layers`.
    pub fn is_at(&self, layers: &Layers) -> bool {
        usize::from(self.checksum_start) == layers.transport
            && usize::from(self.checksum_offset) == layers.protocol.checksum_at()
    }

    /// Completes a single packet's partial checksum, wherever it is. The checksum covers the rest
    /// of the frame.
    ///
    /// # Errors
    /// [`Unfit`] if the checksum is beyond the frame's end, or the frame is a super-segment.
    pub fn fill(&mut self, frame: &mut [u8]) -> Result<(), Unfit> {
        let (start, at) = (usize::from(self.checksum_start), usize::from(self.checksum_offset));
        if self.partial {
            let covered = frame
                .get_mut(start..)
                .filter(|c| c.len() >= at + 2 && self.gso == GsoType::None)
                .ok_or(Unfit)?;
            let checksum = match Sum::default().bytes(covered).checksum() {
                0 => 0xffff,
                other => other,
            };
            covered[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        *self = Offload::default();
        Ok(())
    }
}

impl Offload {
    /// Returns the header for the frame with one more tag.
    ///
    /// # Errors
    /// [`Unfit`] if the checksum starts within the Ethernet addresses, or would start beyond 65,535
    /// bytes.
    pub fn tagged(self) -> Result<Offload, Unfit> {
        self.moved(vlan::AT, |at| at.checked_add(vlan::LENGTH as u16))
    }
    /// Returns the header for the frame without its first tag.
    ///
    /// # Errors
    /// [`Unfit`] if the checksum starts within the Ethernet addresses or the tag.
    pub fn untagged(self) -> Result<Offload, Unfit> {
        self.moved(vlan::AT + vlan::LENGTH, |at| at.checked_sub(vlan::LENGTH as u16))
    }
    /// The places that it names behind `from` are elsewhere; unfit if it names anything before.
    fn moved(self, from: usize, to: impl Fn(u16) -> Option<u16>) -> Result<Offload, Unfit> {
        let checksum_start = match self.partial {
            true if usize::from(self.checksum_start) < from => None,
            true => to(self.checksum_start),
            false => Some(self.checksum_start),
        };
        // A hint: one that means nothing becomes none.
        let header = to(self.header).filter(|_| usize::from(self.header) >= from).unwrap_or(0);
        Ok(Offload { checksum_start: checksum_start.ok_or(Unfit)?, header, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::segment::tests::{Build, frame_of};
    use super::*;

    #[test]
    fn is_written_as_it_is_read() {
        let frame = frame_of(&Build { payload: 5000, ..Build::default() });
        let layers = *parse(&frame).unwrap().layers().unwrap();
        let offload = Offload::of(&layers, 1448);
        assert_eq!(Offload::read(&offload.write()), Ok(offload));
        assert_eq!(
            (offload.gso, offload.gso_size, offload.checksum_start),
            (GsoType::Tcp4, 1448, 34)
        );
        // A frame of one packet must not claim to be more (the kernel would refuse it, or cut it
        // into one).
        assert_eq!(Offload::of(&layers, 5000).gso, GsoType::None);
        assert!(Offload::read(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]).is_err(), "UFO was never asked for");
    }

    #[test]
    fn lies_do_not_fit() {
        let frame = frame_of(&Build { payload: 5000, ..Build::default() });
        let view = parse(&frame).unwrap();
        let good = Offload::of(view.layers().unwrap(), 1448);
        assert_eq!(good.check(&view, frame.len()), Ok(()));
        let wrong = [
            Offload { gso: GsoType::Tcp6, ..good },
            Offload { gso: GsoType::Udp, ..good },
            Offload { gso_size: 0, ..good },
            Offload { checksum_start: 30, ..good },
            Offload { checksum_offset: 6, ..good },
        ];
        wrong.iter().for_each(|offload| {
            assert_eq!(offload.check(&view, frame.len()), Err(Unfit), "{offload:?}")
        });
        let arp = parse(&[0; 60]).unwrap();
        assert!(good.check(&arp, 60).is_err());
        let tunnelled = Offload {
            partial: true,
            checksum_start: 100,
            checksum_offset: 16,
            ..Offload::default()
        };
        assert!(tunnelled.check(&view, frame.len()).is_ok(), "of a transport within");
        let beyond = Offload { partial: true, checksum_start: 59, ..Offload::default() };
        assert!(beyond.check(&arp, 60).is_err());
    }
}
