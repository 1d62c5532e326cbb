//! Which flow a packet belongs to, and what must be equal for two packets of it to merge.
//!
//! Hashes are keyed by a number that each process draws: nobody who sends frames can make flows
//! collide, nor two headers look equal that are not.
//!
//! Invariant: a flow's identity is compared whole; a hash only finds it.

use crate::dataplane::frame::{Layers, Version};
use millpond_core::overlay;
use millpond_core::random::mix64;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};

/// One direction of a connection, from one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// Source and destination; IPv4's are in the first four bytes of each half.
    addresses: [u64; 4],
    /// Source and destination port, protocol, peer.
    ports: u32,
    protocol: u8,
    version: Version,
    peer: u16,
    vlan: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
pub struct Keys(u64, u64);

impl Default for Keys {
    fn default() -> Self {
        let drawn = || RandomState::new().build_hasher().finish();
        Keys(drawn() | 1, drawn())
    }
}

impl Keys {
    /// Those of a seed, for worlds that repeat to the byte.
    pub fn seeded(seed: u64) -> Keys {
        Keys(mix64(seed) | 1, mix64(seed ^ 1))
    }
    #[inline]
    pub fn of_pair(&self, a: u64, b: u64) -> u32 {
        (mix(mix(self.1 ^ a, self.0 ^ b), self.1) >> 32) as u32
    }
    /// A number that was drawn, to draw others from.
    pub fn drawn(&self) -> u64 {
        mix(self.0, self.1)
    }
}

#[inline]
fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}
#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}

impl FlowKey {
    /// Of a frame's headers: the same ends in two VLANs are two flows.
    #[inline]
    pub fn of(header: &[u8], layers: &Layers, vlan: Option<u16>, peer: u16) -> FlowKey {
        let at = layers.network;
        let addresses = match layers.version {
            Version::V4 => {
                [u64::from(word(header, at + 12)), 0, u64::from(word(header, at + 16)), 0]
            }
            Version::V6 => [8, 16, 24, 32].map(|offset| long(header, at + offset)),
        };
        let (ports, protocol) = (word(header, layers.transport), layers.protocol.number());
        FlowKey { addresses, ports, protocol, version: layers.version, peer, vlan }
    }
    pub fn ends(&self) -> [SocketAddr; 2] {
        let ports = self.ports.to_ne_bytes();
        [0, 1].map(|end| {
            let [high, low] =
                [self.addresses[2 * end], self.addresses[2 * end + 1]].map(u64::to_ne_bytes);
            let address = match self.version {
                Version::V4 => IpAddr::from((self.addresses[2 * end] as u32).to_ne_bytes()),
                Version::V6 => IpAddr::from(std::array::from_fn::<u8, 16, _>(|i| {
                    (if i < 8 { high } else { low })[i % 8]
                })),
            };
            SocketAddr::new(address, u16::from_be_bytes([ports[2 * end], ports[2 * end + 1]]))
        })
    }
    /// The peer that it comes from.
    #[inline]
    pub fn peer(&self) -> u16 {
        self.peer
    }
    /// The VLAN that it is in.
    pub fn vlan(&self) -> Option<u16> {
        self.vlan
    }
    #[inline]
    pub fn hash(&self, keys: &Keys) -> u32 {
        let [a, b, c, d] = self.addresses;
        // Twelve bits a VLAN, and as many a peer: there are few of those.
        let [vlan, protocol] = [self.vlan.unwrap_or(0).into(), u64::from(self.protocol)];
        let rest = u64::from(self.ports) << 32 | vlan << 20 | protocol << 12 | u64::from(self.peer);
        (mix(mix(mix(keys.1 ^ a, keys.0 ^ b), c ^ d.rotate_left(32)), rest ^ keys.0) >> 32) as u32
    }
}

/// How the overlay names the flow of a frame's headers: without its VLAN.
pub fn named(header: &[u8], layers: &Layers) -> overlay::FlowKey {
    let (at, ports) = (layers.network, layers.transport);
    let address = |at: usize| match layers.version {
        Version::V4 => {
            MAPPED | u128::from(u32::from_be_bytes(std::array::from_fn(|i| header[at + i])))
        }
        Version::V6 => u128::from_be_bytes(std::array::from_fn(|i| header[at + i])),
    };
    let (source, destination) =
        if layers.version == Version::V4 { (at + 12, at + 16) } else { (at + 8, at + 24) };
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    overlay::FlowKey {
        source: address(source),
        destination: address(destination),
        source_port: port(ports),
        destination_port: port(ports + 2),
        protocol: layers.protocol.number(),
    }
}
/// Where addresses of IPv4 are among those of IPv6 (RFC 4291, section 2.5.5.2).
const MAPPED: u128 = 0xffff_0000_0000;

/// Multiplies to 128 bits and folds: each bit of either reaches all.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd1b5_4a32_d192_ed03);
    (product >> 64) as u64 ^ product as u64
}

/// Digest of what must be equal for two TCP packets of a flow to merge, beside what the core
/// compares: the Ethernet header with its tags, TOS, TTL, DF, acknowledgement number, the header's
/// length with its reserved bits (AE of accurate ECN is one), window and options, as in the kernel.
#[inline]
pub fn merge_digest(header: &[u8], layers: &Layers, keys: &Keys) -> u64 {
    let mut digest = keys.1;
    let mut add = |bytes: &[u8]| {
        let (words, rest) = bytes.as_chunks::<8>();
        for chunk in words {
            digest = mix(digest ^ u64::from_ne_bytes(*chunk), keys.0);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        digest = mix(digest ^ u64::from_ne_bytes(last), keys.0 ^ rest.len() as u64);
    };
    let at = layers.network;
    add(&header[..at]);
    match layers.version {
        Version::V4 => add(&[header[at + 1], header[at + 6], header[at + 7], header[at + 8]]),
        Version::V6 => {
            add(&[header[at], header[at + 1], header[at + 2], header[at + 3], header[at + 7]])
        }
    }
    // The flags but for these, which the core compares.
    let tcp = &header[layers.transport..layers.payload];
    add(&[tcp[8], tcp[9], tcp[10], tcp[11], tcp[12], tcp[14], tcp[15]]);
    add(&tcp[20..]);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::parse;
    use crate::dataplane::frame::segment::tests::{Build, frame_of};

    #[test]
    fn flows_and_headers_are_told_apart() {
        let keys = Keys::default();
        for version in [Version::V4, Version::V6] {
            let frame = frame_of(&Build { version, payload: 10, ..Build::default() });
            let layers = *parse(&frame).unwrap().layers().unwrap();
            let key = FlowKey::of(&frame, &layers, None, 0);
            let others = [(None, 1), (Some(1), 0), (Some(1), 1)]
                .map(|(vlan, peer)| FlowKey::of(&frame, &layers, vlan, peer));
            let hashes: Vec<u32> = others.iter().chain([&key]).map(|key| key.hash(&keys)).collect();
            assert!(
                !others.contains(&key)
                    && hashes.iter().all(|hash| hashes.iter().filter(|h| *h == hash).count() == 1)
            );
            let [source, destination] = key.ends();
            assert!(
                source.is_ipv4() == (version == Version::V4)
                    && source.is_ipv4() == destination.is_ipv4()
            );
            let source_at = layers.network + if version == Version::V4 { 12 } else { 8 };
            let (length, text) = (if version == Version::V4 { 4 } else { 16 }, source.ip());
            let bytes = match text {
                IpAddr::V4(ip) => ip.octets().to_vec(),
                IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            assert_eq!(bytes, frame[source_at..source_at + length]);
            let port = [frame[layers.transport], frame[layers.transport + 1]];
            assert_eq!(source.port(), u16::from_be_bytes(port));
            let changed = |at: usize| {
                let mut other = frame.clone();
                other[at] ^= 1;
                (
                    FlowKey::of(&other, &layers, None, 0) == key,
                    merge_digest(&other, &layers, &keys) == merge_digest(&frame, &layers, &keys),
                )
            };
            let (n, t) = (layers.network, layers.transport);
            for same_flow in [0, 11, n + 1, t + 8, t + 12, t + 14, t + 15, t + 20, t + 31] {
                assert_eq!(changed(same_flow), (true, false), "{version:?} {same_flow}");
            }
            let address = if version == Version::V4 { n + 19 } else { n + 39 };
            for other_flow in [address, t, t + 3] {
                assert!(!changed(other_flow).0);
            }
            let named_by = |at: usize| {
                let mut other = frame.clone();
                other[at] ^= 1;
                named(&other, &layers) == named(&frame, &layers)
            };
            assert!(named_by(t + 8) && !named_by(address) && !named_by(t) && !named_by(t + 3));
            // Fields that the core compares: flags, the sequence number.
            for neither in [t + 4, t + 13] {
                assert_eq!(changed(neither), (true, true));
            }
        }
    }
}
