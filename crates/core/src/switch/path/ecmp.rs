//! Equal-cost multi-path: a hash of the flow picks the port, so a flow keeps one path (RFC 2992).
//!
//! Invariant: DSCP and ECN are not in the hash, and every switch has its own salt, so flows do not polarise (the same
//! hash at two tiers would send all flows of a leaf over one core).

use super::{Choice, Chooses};
use crate::context::Context;
use crate::random::mix64;
use crate::registry::About;

pub(super) const ABOUT: About = About {
    summary: "a hash of the flow picks the port",
    source: "RFC 2992; RFC 2991 §5",
    needs: &[],
    breaks: &[],
    restores: &[],
};

crate::choice! {
    /// What is hashed.
    pub enum EcmpHash {
        /// The 5-tuple, salted per switch.
        FiveTuple = "5-tuple",
        /// splitmix64 of (source, destination), 16 bits a tier: for comparisons with other simulators.
        Pair = "pair",
    }
}

crate::params! {
    /// Equal-cost multi-path.
    pub struct EcmpParams {
        /// "5-tuple" hashes the flow with a salt of the switch's own; "pair" hashes only (source, destination), as
        /// splitmix64(src << 32 | dst) >> (16 × tier), low 16 bits, for comparisons with other simulators.
        pub hash: EcmpHash = EcmpHash::FiveTuple,
    }
}

/// The hash.
#[derive(Clone, Debug)]
pub struct Ecmp {
    hash: EcmpHash,
}

impl Ecmp {
    pub(super) fn new(params: &EcmpParams) -> Ecmp {
        Ecmp { hash: params.hash }
    }
}

impl Chooses for Ecmp {
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
        };
        candidates[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Site;
    use super::super::tests::choose_at;
    use super::*;
    use crate::packet::Packet;

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
        assert!(counts.iter().all(|&c| c > all / 4 - all / 40 && c < all / 4 + all / 40), "{counts:?}");
    }

    #[test]
    fn pair_is_the_published_formula() {
        let mut ecmp = Ecmp::new(&EcmpParams { hash: EcmpHash::Pair });
        let p = Packet { src: 3, dst: 19, ..Packet::default() };
        let h = mix64(3u64 << 32 | 19);
        assert_eq!(choose(&mut ecmp, &p, 0, 0) as u64, (h & 0xFFFF) % 4);
        assert_eq!(choose(&mut ecmp, &p, 0, 1) as u64, (h >> 16 & 0xFFFF) % 4);
    }
}
