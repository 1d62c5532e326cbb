//! Path choice: *which of these ports?*
//!
//! The candidates are the ports on shortest paths, in the order of their numbers. A policy is asked
//! only where there are several.

mod balanced;
mod conga;
mod drill;
mod ecmp;
mod flowlets;
mod labels;
mod letflow;
mod power_of_n;
mod spray;

pub use balanced::{Balanced, BalancedParams};
pub use conga::{Conga, CongaParams};
pub use drill::{Drill, DrillParams};
pub use ecmp::{Ecmp, EcmpHash, EcmpParams};
pub use labels::{Labels, LabelsParams};
pub use letflow::{LetFlow, LetFlowParams};
pub(in crate::switch) use power_of_n::Shortest;
pub use power_of_n::{PowerOfN, PowerOfNParams};
pub use spray::{Spray, SprayOrder, SprayParams};

use crate::context::Context;
use crate::packet::{Packet, PacketId, Packets};
use crate::switch::PortView;
use crate::switch::route::Attachment;
use crate::units::{Rate, Time};
use std::sync::Arc;

/// Where a choice is made: the facts of the switch that a policy may use.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// 0 for leaf and edge, 1 for spine and aggregation, 2 for core switches.
    pub tier: u8,
    /// The switch's own salt, derived from its name.
    pub salt: u32,
}

/// Where a packet can go.
pub struct Choice<'a> {
    /// The ports on shortest paths, in the order of their numbers; never empty.
    pub candidates: &'a [u16],
    pub site: Site,
    pub ports: &'a mut dyn PortView,
}

/// The facts that a path choice learns of its switch and network, once.
pub struct Facts<'a> {
    pub attachment: &'a Arc<Attachment>,
    pub rates: &'a [Rate],
}

/// A packet that leaves by `port`, shown before it joins that port's queue.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    pub now: Time,
    /// The packet.
    pub id: PacketId,
    pub port: u16,
    /// It came from a host of this switch.
    pub is_from_host: bool,
    /// It goes to a host of this switch.
    pub is_to_host: bool,
}

crate::registry! {
    /// Which path choice, with its parameters.
    place: "switch.path", question: "which of these ports?", default: Ecmp,
    params: PathParams, policy: Path as pub(super) trait Chooses {
        fn choose(&mut self, context: &mut Context<'_, Choice<'_>>) -> u16;
        /// Gives the choice the facts of its switch, before the first packet.
        fn install(&mut self, facts: &Facts<'_>) -> () = ();
        /// Whether a packet's label names its port, so that a dead port is a matter of the label.
        fn follows_labels(&self) -> bool = false;
        /// Which of the candidates a label's packet takes while some are dead, if it can take one.
        fn failover(&self, candidates: &[u16], packet: &Packet, dead: &[u16]) -> Option<u16> = None;
        /// Whether it is shown every packet, also where there is one port only.
        fn watches(&self) -> bool = false;
        /// A packet leaves by some port; it may be written to.
        fn passes(&mut self, passing: Passing, packets: &mut Packets) -> () = ();
        /// A packet of this size has joined a port's queue.
        fn joined(&mut self, now: Time, port: u16, size: u16) -> () = ();
    };
    "conga" => Conga { CongaParams, Conga; conga::ABOUT },
    "drill" => Drill { DrillParams, Drill; drill::ABOUT },
    "ecmp" => Ecmp { EcmpParams, Ecmp; ecmp::ABOUT },
    "labels" => Labels { LabelsParams, Labels; labels::ABOUT },
    "letflow" => LetFlow { LetFlowParams, LetFlow; letflow::ABOUT },
    "balanced" => Balanced { BalancedParams, Balanced; balanced::ABOUT },
    "power-of-n" => PowerOfN { PowerOfNParams, PowerOfN; power_of_n::ABOUT },
    "spray" => Spray { SprayParams, Spray; spray::ABOUT },
}

#[cfg(test)]
pub(in crate::switch) mod tests {
    use super::*;
    use crate::random::{Random, Stream};
    use crate::switch::NoPorts;
    use crate::units::Time;

    /// A place to choose at: a switch, its ports, the time, and random numbers that go on from
    /// choice to choice.
    pub struct Crossing<P> {
        pub now: Time,
        pub site: Site,
        pub ports: P,
        random: Random,
    }

    impl Default for Crossing<NoPorts> {
        fn default() -> Self {
            Crossing::of(NoPorts)
        }
    }

    impl<P: PortView> Crossing<P> {
        pub fn of(ports: P) -> Crossing<P> {
            Crossing {
                now: Time::ZERO,
                site: Site { tier: 0, salt: 0 },
                ports,
                random: Stream::new(1, "t").into(),
            }
        }
        pub fn choose(
            &mut self,
            policy: &mut impl Chooses,
            candidates: &[u16],
            packet: &Packet,
        ) -> u16 {
            let view = Choice { candidates, site: self.site, ports: &mut self.ports };
            policy.choose(&mut Context { now: self.now, packet, view, random: &self.random })
        }
    }

    /// One choice at a place, by a policy that looks at no port.
    pub fn choose_at(
        policy: &mut impl Chooses,
        site: Site,
        candidates: &[u16],
        packet: &Packet,
    ) -> u16 {
        Crossing { site, ..Crossing::default() }.choose(policy, candidates, packet)
    }
}
