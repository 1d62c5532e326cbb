//! Equal-cost multi-path: a hash of the flow picks the port, so a flow keeps one path (RFC 2992).
//!
//! Invariant: DSCP and ECN are not in the hash, and every switch has its own salt, so flows do not
//! polarise (the same hash at two tiers would send all flows of a leaf over one core). The hashes
//! of other simulators have no salt, and are for comparisons with them.

use super::{Choice, Chooses, Facts};
use crate::context::Context;
use crate::packet::{End, Packet};
use crate::random::mix64;
use crate::registry::{About, Signal};
use crate::switch::route::Attachment;
use std::sync::Arc;

pub(super) const ABOUT: About = About {
    summary: "a hash of the flow picks the port",
    source: "RFC 2992; RFC 2991 §5",
    reads: &[Signal::Labels],
    alone: &[Signal::Labels],
    ..About::PLAIN
};

crate::choice! {
    /// The fields of a packet that ECMP hashes.
    pub enum EcmpHash {
        /// The 5-tuple, salted per switch.
        FiveTuple = "5-tuple",
        /// splitmix64 of (source, destination), 16 bits a tier: for comparisons with other
        /// simulators.
        Pair = "pair",
        /// XOR of addresses, protocol and ports, the same in every switch: that of TLT's released
        /// TCP simulator.
        Xor = "xor",
    }
}

crate::params! {
    /// The keys of equal-cost multi-path (RFC 2992).
    pub struct EcmpParams {
        /// "5-tuple" hashes the flow with a salt of the switch's own; "pair" hashes only (source,
        /// destination), as splitmix64(src << 32 | dst) >> (16 × tier), low 16 bits, for
        /// comparisons with other simulators. "xor" is (src · 59) ^ dst ^ protocol ^ (source port
        /// << 16) ^ destination port, in every switch the same, of hosts numbered 10.rack.host.2
        /// and one port for all data. Source: TLT's released TCP simulator.
        pub hash: EcmpHash = EcmpHash::FiveTuple,
    }
}

/// ECMP at one switch: the hash with the switch's salt.
#[derive(Clone, Debug)]
pub struct Ecmp {
    hash: EcmpHash,
    /// Where each host is attached, by its address.
    attachment: Arc<Attachment>,
}

/// TCP's number in the IP header.
const TCP: u32 = 6;
/// The port that all data goes to. Another one names another of the ports that data takes, and no
/// more.
const DATA_PORT: u32 = 9;
/// Where the ports of connecting ends begin, and how many there are (RFC 6335 §6).
const EPHEMERAL: (u32, u32) = (49_152, 16_384);

impl Ecmp {
    pub(super) fn new(params: &EcmpParams) -> Ecmp {
        Ecmp { hash: params.hash, attachment: Arc::default() }
    }

    /// A host's address, 10.rack.host.2.
    fn address(&self, host: u32) -> u32 {
        let (rack, place) = self.attachment.hosts.get(host as usize).copied().unwrap_or_default();
        10 << 24 | u32::from(rack & 0xff) << 16 | u32::from(place & 0xff) << 8 | 2
    }

    #[inline(never)]
    fn xor(&self, packet: &Packet) -> u32 {
        let kind = packet.kind();
        let own = match kind.protocol().has_entropy_port {
            true => packet.entropy & 0xffff,
            false => EPHEMERAL.0 + packet.flow % EPHEMERAL.1,
        };
        let (from, to) = match kind.end() {
            End::Sender => (own, DATA_PORT),
            End::Receiver => (DATA_PORT, own),
            End::Host => (DATA_PORT, DATA_PORT),
        };
        self.address(packet.src).wrapping_mul(59) ^ self.address(packet.dst) ^ TCP ^ from << 16 ^ to
    }
}

impl Chooses for Ecmp {
    fn install(&mut self, facts: &Facts<'_>) {
        self.attachment = facts.attachment.clone();
    }
    #[inline]
    fn choose(&mut self, context: &mut Context<'_, Choice<'_>>) -> u16 {
        let (packet, Choice { candidates, site, .. }) = (context.packet, &context.view);
        let n = candidates.len() as u64;
        let index = match self.hash {
            EcmpHash::FiveTuple => {
                let h = mix64((packet.entropy as u64) << 32 | site.salt as u64) >> 32;
                (h * n) >> 32
            }
            EcmpHash::Pair => {
                let h = mix64((packet.src as u64) << 32 | packet.dst as u64);
                ((h >> (16 * site.tier as u32).min(48)) & 0xFFFF) % n
            }
            EcmpHash::Xor => u64::from(self.xor(packet)) % n,
        };
        candidates[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Site;
    use super::super::tests::choose_at;
    use super::*;
    use crate::packet::{Body, Packet};

    fn choose(ecmp: &mut Ecmp, packet: &Packet, salt: u32, tier: u8) -> u16 {
        choose_at(ecmp, Site { tier, salt }, &[0, 1, 2, 3], packet)
    }

    #[test]
    fn a_flow_keeps_its_port_and_flows_spread() {
        let mut ecmp = Ecmp::new(&EcmpParams::default());
        let mut counts = [0u32; 4];
        for flow in 0..40_000u32 {
            let p = Packet { entropy: mix64(flow as u64) as u32, ..Packet::default() };
            let port = choose(&mut ecmp, &p, 9, 0);
            assert_eq!(port, choose(&mut ecmp, &p, 9, 0));
            counts[port as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_600..10_400).contains(c)), "{counts:?}");
    }

    /// Flows that one switch sends the same way are spread evenly by the next: no polarisation.
    #[test]
    fn two_tiers_are_independent() {
        let mut ecmp = Ecmp::new(&EcmpParams::default());
        let mut counts = [0u32; 4];
        for flow in 0..40_000u32 {
            let p = Packet { entropy: mix64(flow as u64) as u32, ..Packet::default() };
            if choose(&mut ecmp, &p, 1, 0) == 0 {
                counts[choose(&mut ecmp, &p, 2, 1) as usize] += 1;
            }
        }
        let all: u32 = counts.iter().sum();
        assert!(
            counts.iter().all(|&c| c > all / 4 - all / 40 && c < all / 4 + all / 40),
            "{counts:?}"
        );
    }

    #[test]
    fn pair_is_the_published_formula() {
        let mut ecmp = Ecmp::new(&EcmpParams { hash: EcmpHash::Pair });
        let p = Packet { src: 3, dst: 19, ..Packet::default() };
        let h = mix64(3u64 << 32 | 19);
        assert_eq!(choose(&mut ecmp, &p, 0, 0) as u64, (h & 0xFFFF) % 4);
        assert_eq!(choose(&mut ecmp, &p, 0, 1) as u64, (h >> 16 & 0xFFFF) % 4);
    }

    /// With addresses that end in 2 and one data port the low bits are the same for all data: of
    /// four ports one is taken. Acknowledgements have the other end's port there, and spread.
    #[test]
    fn xor_sends_all_data_by_one_port_of_four() {
        let mut ecmp = Ecmp::new(&EcmpParams { hash: EcmpHash::Xor });
        let hosts = (0..96).map(|host| (host / 8, host % 8)).collect();
        ecmp.attachment = Arc::new(Attachment { hosts });
        let (mut data, mut acks) = ([0; 4], [0; 4]);
        for flow in 0..4_000u32 {
            let (src, dst) = (flow % 48, 48 + flow % 47);
            let sent = Packet { flow, src, dst, ..Packet::default() };
            let answer =
                Packet { body: Body::Ack { ack: 1, slot: 0, hops: 0 }, src: dst, dst: src, ..sent };
            data[choose(&mut ecmp, &sent, flow, 0) as usize] += 1;
            acks[choose(&mut ecmp, &answer, flow, 0) as usize] += 1;
        }
        assert_eq!(data.iter().filter(|count| **count > 0).count(), 1, "{data:?}");
        assert!(acks.iter().all(|count| *count == 1_000), "{acks:?}");
        // By hand: hosts 10.0.0.2 and 10.6.0.2, flow 0: 0x0a000002 * 59 ^ 0x0a060002 ^ 6 ^ 49152 <<
        // 16 ^ 9.
        let packet = Packet { src: 0, dst: 48, ..Packet::default() };
        assert_eq!(ecmp.xor(&packet), 0x4e00_0076 ^ 0x0a06_0002 ^ 6 ^ 0xc000_0000 ^ 9);
    }
}
