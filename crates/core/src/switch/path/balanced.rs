//! Balanced: the destination's number picks the port, so permutations whose destinations are consecutive spread
//! perfectly. It is no protocol but a yardstick: it takes path choice out of a comparison.

use super::Site;
use crate::packet::Packet;
use crate::random::Stream;
use crate::registry::{About, PathProperty};
use crate::switch::PortView;

pub(super) const ABOUT: About = About {
    summary: "the up-port at tier t is (dst / n^t) mod n",
    source: "a yardstick, for comparisons between simulators",
    needs: &[],
    breaks: &[PathProperty::LabelFixesPath],
    restores: &[],
};

crate::params! {
    /// Nothing to set.
    pub struct BalancedParams {}
}

/// `(dst / n^t) mod n`.
#[derive(Clone, Debug)]
pub struct Balanced;

impl Balanced {
    pub(super) fn new(_: &BalancedParams) -> Balanced {
        Balanced
    }
    #[inline]
    pub(super) fn choose(
        &mut self,
        candidates: &[u16],
        packet: &Packet,
        site: Site,
        _: &mut dyn PortView,
        _: &mut Stream,
    ) -> u16 {
        let n = candidates.len() as u32;
        let mut digit = packet.dst;
        for _ in 0..site.tier {
            digit /= n;
        }
        candidates[(digit % n) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::NoPorts;

    #[test]
    fn digit_of_the_destination() {
        let mut random = Stream::new(1, "t");
        let mut at = |dst, tier| {
            Balanced.choose(
                &[4, 5, 6, 7],
                &Packet { dst, ..Packet::default() },
                Site { tier, salt: 0 },
                &mut NoPorts,
                &mut random,
            )
        };
        assert_eq!([at(0, 0), at(1, 0), at(6, 0), at(6, 1), at(15, 1)], [4, 5, 6, 5, 7]);
    }
}
