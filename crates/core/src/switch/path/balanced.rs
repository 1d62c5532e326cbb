//! Balanced: the destination's number picks the port, so permutations whose destinations are
//! consecutive spread perfectly. It is no protocol but a yardstick: it takes path choice out of a
//! comparison.

use super::{Choice, Chooses};
use crate::context::Context;
use crate::registry::{About, PathProperty};

pub(super) const ABOUT: About = About {
    summary: "the up-port at tier t is (dst / n^t) mod n",
    source: "a yardstick, for comparisons between simulators",
    breaks: &[PathProperty::LabelFixesPath],
    ..About::PLAIN
};

crate::params! {
    /// The balanced choice has no keys.
    pub struct BalancedParams {}
}

/// `(dst / n^t) mod n`.
#[derive(Clone, Debug)]
pub struct Balanced;

impl Balanced {
    pub(super) fn new(_: &BalancedParams) -> Balanced {
        Balanced
    }
}

impl Chooses for Balanced {
    #[inline]
    fn choose(&mut self, context: &mut Context<'_, Choice<'_>>) -> u16 {
        let Choice { candidates, site, .. } = &context.view;
        let n = candidates.len() as u32;
        let mut digit = context.packet.dst;
        for _ in 0..site.tier {
            digit /= n;
        }
        candidates[(digit % n) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Site;
    use super::super::tests::choose_at;
    use super::*;
    use crate::packet::Packet;

    #[test]
    fn digit_of_the_destination() {
        let at = |dst, tier| {
            let packet = Packet { dst, ..Packet::default() };
            choose_at(&mut Balanced, Site { tier, salt: 0 }, &[4, 5, 6, 7], &packet)
        };
        assert_eq!([at(0, 0), at(1, 0), at(6, 0), at(6, 1), at(15, 1)], [4, 5, 6, 5, 7]);
    }
}
