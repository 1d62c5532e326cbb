//! Jitter (`host.jitter`): how much later than its stack's delay a packet leaves its host's hands,
//! and is looked at by the host that it is for.
//!
//! Real hosts are never twice as fast: interrupts, caches and schedulers see to that. Without it,
//! senders with equal delays tie to the picosecond at every queue, and whose packet finds the last
//! place is decided once for the whole run (docs/fidelity.md, "Phase effects").

use millpond_core::Time;
use millpond_core::registry::{About, PathProperty};

millpond_core::params! {
    /// Delays drawn evenly, each by itself; no packet overtakes another.
    pub struct UniformParams {
        /// Where the range ends, in times of the largest packet on the host's link; at 0 nothing is
        /// delayed, and arrivals at one instant come in a random order all the same. Source: Floyd
        /// and Jacobson 1992, a processing time of up to a packet's service time at the bottleneck;
        /// ns-2's scripts set `overhead_` so.
        #[within(0..=1_000)]
        pub packets: f64 = 1.0,
        /// Where the range ends, as a time; takes the place of packets.
        #[within(0..=1_000_000_000)]
        pub size: Option<Time> = None,
    }
}

millpond_core::params! {
    /// Nothing to set.
    pub struct NothingParams {}
}

const fn without(summary: &'static str) -> About {
    About { summary, source: "", ..About::PLAIN }
}

const NONE: About = About {
    breaks: &[PathProperty::PhasesMix],
    ..without("not at all: hosts are exact, and arrivals at one instant come in the order of links")
};
const UNIFORM: About = About {
    summary: "each packet is late by a time drawn evenly from a range, once where it leaves and \
              once where it arrives",
    source: "Floyd and Jacobson: On traffic phase effects in packet-switched gateways, 1992",
    ..About::PLAIN
};

millpond_core::registry! {
    /// How unequal a host's times are.
    place: "host.jitter", question: "how unequal are the times that a host takes for its packets?",
    default: Uniform,
    params: JitterParams;
    "none" => None { NothingParams; NONE },
    "uniform" => Uniform { UniformParams; UNIFORM },
}

impl JitterParams {
    /// Where the range of delays ends at a host whose link takes `packet` for the largest packet.
    /// `None`: hosts are exact.
    pub fn size(&self, packet: Time) -> Option<Time> {
        match self {
            JitterParams::None(_) => None,
            JitterParams::Uniform(UniformParams { size: Some(size), .. }) => Some(*size),
            JitterParams::Uniform(p) => {
                Some(Time::from_ps((packet.as_ps() as f64 * p.packets) as u64))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_takes_the_place_of_packets() {
        let packet = Time::from_ns(1_200);
        let uniform = |packets, size| JitterParams::Uniform(UniformParams { packets, size });
        assert_eq!(JitterParams::default().size(packet), Some(packet));
        assert_eq!(uniform(0.25, None).size(packet), Some(Time::from_ns(300)));
        assert_eq!(uniform(0.25, Some(Time::from_us(5))).size(packet), Some(Time::from_us(5)));
        assert_eq!(
            uniform(0.0, None).size(packet),
            Some(Time::ZERO),
            "no delay, and still no favourite"
        );
        assert_eq!(JitterParams::None(NothingParams {}).size(packet), None);
    }
}
