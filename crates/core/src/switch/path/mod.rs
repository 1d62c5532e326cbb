//! Path choice: *which of these ports?*
//!
//! The candidates are the ports on shortest paths, in the order of their numbers. A policy is asked only where there are
//! several.

mod balanced;
mod ecmp;
mod labels;
mod power_of_n;
mod spray;

pub use balanced::{Balanced, BalancedParams};
pub use ecmp::{Ecmp, EcmpHash, EcmpParams};
pub use labels::{Labels, LabelsParams};
pub(in crate::switch) use power_of_n::Shortest;
pub use power_of_n::{PowerOfN, PowerOfNParams};
pub use spray::{Spray, SprayOrder, SprayParams};

use crate::packet::Packet;
use crate::random::Stream;
use crate::switch::PortView;

/// Where a choice is made: what a policy may know of its switch.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// 0 for leaf and edge, 1 for spine and aggregation, 2 for core switches.
    pub tier: u8,
    /// The switch's own salt, derived from its name.
    pub salt: u32,
}

crate::registry! {
    /// Which path choice, with its parameters.
    place: "switch.path", question: "which of these ports?", default: Ecmp,
    params: PathParams, policy: Path {
        /// One of `candidates` (never empty).
        fn choose(&mut self, candidates: &[u16], packet: &Packet, site: Site, ports: &mut dyn PortView, random: &mut Stream) -> u16;
    };
    "ecmp" => Ecmp { EcmpParams, Ecmp; ecmp::ABOUT },
    "labels" => Labels { LabelsParams, Labels; labels::ABOUT },
    "balanced" => Balanced { BalancedParams, Balanced; balanced::ABOUT },
    "power-of-n" => PowerOfN { PowerOfNParams, PowerOfN; power_of_n::ABOUT },
    "spray" => Spray { SprayParams, Spray; spray::ABOUT },
}
