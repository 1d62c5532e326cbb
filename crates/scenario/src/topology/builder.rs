//! The construction of all topologies: switches, then links, then routes; and the limits that all
//! share.

use super::{End, Fault, LinkSite, SwitchSite, Topology};
use crate::keys::in_table;
use millpond_core::params::{Params, Value};
use millpond_core::switch::route::{Attachment, Routes};
use millpond_core::{Rate, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Links beyond this are taken for a slip of the pen rather than a network.
const LINKS_MAX: u64 = 8_000_000;

/// Collects what is wrong with parameters.
#[derive(Default)]
pub(super) struct Checks(Vec<Fault>);

impl Checks {
    pub fn require(
        &mut self,
        holds: bool,
        key: impl Into<String>,
        message: impl FnOnce() -> String,
    ) {
        if !holds {
            self.0.push((key.into(), message()));
        }
    }
    /// A count of switches or hosts from 1.
    pub fn at_least_one(&mut self, count: u32, key: impl Into<String>) {
        self.require(count >= 1, key, || "must be at least 1".into());
    }
    /// A switch's ports must be numbered by 16 bits.
    pub fn ports(&mut self, ports: u64, key: impl Into<String>) {
        self.require(ports <= 65_535, key, || {
            format!("makes a switch of {ports} ports; 65535 is the most")
        });
    }
    /// Switches with hosts are numbered by 16 bits, of which one number is taken.
    pub fn leaves(&mut self, leaves: u64, key: impl Into<String>) {
        self.require(leaves <= 65_534, key, || {
            format!("makes {leaves} switches with hosts; 65534 is the most")
        });
    }
    /// The whole must fit a machine.
    pub fn links(&mut self, links: u64, key: impl Into<String>) {
        self.require(links <= LINKS_MAX, key, || {
            format!("makes {links} links; {LINKS_MAX} is the most")
        });
    }
    /// Time of a packet on a link of this rate must be finite and small.
    pub fn rate(&mut self, rate: Rate, key: impl Into<String>) {
        self.require(rate.bps() >= 1_000, key, || {
            format!("{rate} is too slow to send a packet; 1Kbps is the least")
        });
    }
    /// Virtual time must be able to hold many of it.
    pub fn delay(&mut self, delay: Time, key: impl Into<String>) {
        self.require(delay <= Time::from_s(1_000), key, || format!("{delay} is more than 1000s"));
    }
    /// The rates and delays of a kind's links, as its parameters declare them.
    pub fn of_links(&mut self, params: &dyn Params) {
        for (index, key) in params.keys().iter().enumerate() {
            match params.get(index) {
                Value::Rate(rate) => self.rate(rate, in_table(key)),
                Value::Time(delay) => self.delay(delay, in_table(key)),
                _ => {}
            }
        }
    }
    pub fn done(self) -> Result<(), Vec<Fault>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}

#[derive(Default)]
pub(super) struct Builder {
    switches: Vec<SwitchSite>,
    links: Vec<LinkSite>,
    wiring: Vec<Vec<u32>>,
    attached: Vec<(u16, u16)>,
    /// The hosts of NICs beyond the first ones, and those NICs' numbers.
    further: Vec<(u32, u16)>,
    names: BTreeMap<String, u32>,
}

impl Builder {
    pub fn switch(&mut self, name: String, tier: u8, pod: Option<u32>, ports: u32) {
        let (ports, is_joint) = (ports as u16, false);
        self.switches.push(SwitchSite { name, tier, pod, ports, is_joint });
        self.wiring.push(vec![u32::MAX; usize::from(ports)]);
    }

    /// The last switch is the middle of a link between two hosts.
    pub fn join(&mut self) {
        if let Some(switch) = self.switches.last_mut() {
            switch.is_joint = true;
        }
    }

    /// Connects the next host's first NIC to a leaf. All hosts come before their further NICs, and
    /// these before all fabric links.
    pub fn host(&mut self, leaf: u32, port: u32, rate: Rate, delay: Time) {
        debug_assert!(self.further.is_empty(), "first NICs come first");
        let address = self.attached.len() as u32;
        self.attached.push((leaf as u16, port as u16));
        self.link(End::Host(address), End::Switch { switch: leaf, port: port as u16 }, rate, delay);
    }

    /// Connects a further NIC of a host to a leaf. They come in the order of hosts and numbers.
    pub fn nic(&mut self, host: u32, leaf: u32, port: u32, rate: Rate, delay: Time) {
        let address = self.attached.len() as u32;
        let number = match self.further.last() {
            Some((last, number)) if *last == host => number + 1,
            _ => 1,
        };
        self.further.push((host, number));
        self.attached.push((leaf as u16, port as u16));
        self.link(End::Host(address), End::Switch { switch: leaf, port: port as u16 }, rate, delay);
    }

    /// Connects two switches, the one nearer to the hosts first.
    pub fn connect(&mut self, a: (u32, u32), b: (u32, u32), rate: Rate, delay: Time) {
        let end = |(switch, port): (u32, u32)| End::Switch { switch, port: port as u16 };
        self.link(end(a), end(b), rate, delay);
    }

    pub fn name(&mut self, name: Option<&str>) {
        let link = self.links.len() as u32 - 1;
        self.names.extend(name.map(|name| (name.to_string(), link)));
    }

    fn link(&mut self, a: End, b: End, rate: Rate, delay: Time) {
        let link = self.links.len() as u32;
        for end in [a, b] {
            if let End::Switch { switch, port } = end {
                self.wiring[switch as usize][port as usize] = link;
            }
        }
        self.links.push(LinkSite { a, b, rate, delay });
    }

    /// The network, with each switch's routes made by `routes` from the shared table of
    /// attachments.
    pub fn finish(self, routes: impl FnOnce(&Arc<Attachment>) -> Vec<Routes>) -> Topology {
        let hosts = (self.attached.len() - self.further.len()) as u32;
        let attachment = Arc::new(Attachment { hosts: self.attached });
        let routes = routes(&attachment);
        debug_assert_eq!(routes.len(), self.switches.len());
        debug_assert!(
            self.wiring.iter().flatten().all(|&l| l != u32::MAX),
            "every port has a link"
        );
        Topology {
            hosts,
            further: self.further,
            switches: self.switches,
            links: self.links,
            routes,
            attachment,
            wiring: self.wiring,
            link_names: self.names,
            numbers: Vec::new(),
            is_regular: false,
        }
    }
}
