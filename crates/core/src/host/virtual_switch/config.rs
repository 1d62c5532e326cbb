//! The parts of a host's virtual switch, and the cost of a round of it.

use super::application::ApplicationCosts;
use super::params::{Doorbells, LossyParams, VirtualSwitchParams};
use crate::packet::HostId;
use crate::random::Stream;
use crate::units::{Bytes, Rate, Time};

#[derive(Clone, Debug)]
pub struct ApplicationConfig {
    pub costs: ApplicationCosts,
    /// The hosts that have it, ascending; `None`: all.
    pub hosts: Option<Vec<HostId>>,
}

impl ApplicationConfig {
    pub(super) fn is_at(&self, host: HostId) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.binary_search(&host).is_ok())
    }
}

/// The parts of a host's switch.
pub struct VirtualSwitchConfig {
    pub host: HostId,
    pub params: VirtualSwitchParams,
    /// The applications of all hosts, which number their cores.
    pub applications: Vec<ApplicationConfig>,
    /// By class of traffic: the application that has it.
    pub by_class: Vec<Option<u16>>,
    /// The rate of the host's link.
    pub rate: Rate,
    /// Bytes of the largest packet on the wire.
    pub packet_max: u32,
    /// Bytes of the largest segment that a sender hands down.
    pub segment: Bytes,
    pub random: Stream,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub ring: usize,
    pub batch: usize,
    pub poll: Time,
    pub per_packet: Time,
    pub doorbell: Time,
    pub doorbells: Option<Doorbells>,
}

impl Costs {
    /// Of a kind; and its number of cores.
    pub fn new(params: &VirtualSwitchParams) -> (Costs, u32) {
        macro_rules! of {
            ($p:expr, $doorbell:expr, $doorbells:expr) => {{
                let (ring, batch) = ($p.ring as usize, $p.batch as usize);
                let (poll, per_packet) = ($p.poll, $p.per_packet);
                (
                    Costs {
                        ring,
                        batch,
                        poll,
                        per_packet,
                        doorbell: $doorbell,
                        doorbells: $doorbells,
                    },
                    $p.cores,
                )
            }};
        }
        match params {
            VirtualSwitchParams::None(_) => of!(LossyParams::default(), Time::ZERO, None),
            VirtualSwitchParams::Lossy(p) => of!(p, Time::ZERO, None),
            VirtualSwitchParams::Backpressure(p) => of!(p, Time::ZERO, None),
            VirtualSwitchParams::FlowQueues(p) => of!(p, p.doorbell, Some(p.doorbells)),
            VirtualSwitchParams::Backdraft(p) => of!(p, p.doorbell, Some(p.doorbells)),
            VirtualSwitchParams::Credits(p) => of!(p, p.doorbell, Some(p.doorbells)),
            VirtualSwitchParams::Picnic(p) => of!(p, Time::ZERO, None),
        }
    }
}
