//! A switch becomes that of another configuration.
//!
//! Invariant: a port whose keys are the same keeps its interface, its counters and its addresses.

use super::{Switch, home};
use crate::dataplane::slot::Slot;
use crate::switch::config::{Config, PortParams};
use crate::switch::control::Done;
use crate::switch::error::Error;
use crate::switch::ports::{self, Opened};
use crate::switch::table::{Place, Table};
use crate::switch::uplink::Uplink;

impl Switch {
    /// Makes the ports those of `config`. One whose interface stays keeps it open, with its
    /// counters.
    pub(super) fn change(&mut self, config: Config) -> Done {
        let same = |a: &PortParams, b: &PortParams| {
            (a.kind, a.device(), &a.namespace, &a.read, &a.write, &a.socket)
                == (b.kind, b.device(), &b.namespace, &b.read, &b.write, &b.socket)
        };
        let before = self.config.clone();
        let mut old: Vec<Option<(PortParams, Slot)>> = std::mem::take(&mut self.config.ports)
            .into_iter()
            .zip(self.node.slots.drain(..))
            .map(Some)
            .collect();
        let kept: Vec<Option<(PortParams, Slot)>> = config
            .ports
            .iter()
            .map(|new| {
                old.iter_mut()
                    .find(|o| o.as_ref().is_some_and(|(p, _)| same(p, new)))
                    .and_then(Option::take)
            })
            .collect();
        // What goes first: a new port may want the interface of an old one.
        for (params, slot) in old.into_iter().flatten() {
            if let Err(error) = ports::close(&self.state, &params, slot.port) {
                log::warn!("{error}");
            }
        }
        self.waiting.clear();
        self.homes.clear();
        self.fits.clear();
        for (new, kept) in config.ports.iter().zip(kept) {
            let (before, mut slot) = match kept {
                Some((before, slot)) => (Some(before), slot),
                None => (None, Slot::new("", None, 0)),
            };
            (slot.name, slot.gso_least, slot.vlans) =
                (new.name.clone(), new.gso_least as u16, new.vlans());
            if before.is_some_and(|before| before != *new) {
                // Opened anew, for its new address or MTU: the interface is persistent. An
                // application attaches again.
                slot.detach();
                slot.port = None;
            }
            self.node.slots.push(slot);
            self.waiting.push(None);
            self.homes.push(home(new));
            self.fits.push(false);
            self.config.ports.push(new.clone());
            self.open(self.config.ports.len() - 1);
        }
        self.renew_table(&before, &config);
        let (own, new) = (&self.config, &config);
        let uplink = |config: &Config| {
            (config.switch.clone(), config.edge.clone(), config.paths.clone(), config.peers.clone())
        };
        if uplink(own) != uplink(new) {
            let now = self.now();
            self.uplink.drain(now, &mut self.buffers, &mut self.node);
            self.buffers.set_limit(config.switch.buffers as usize);
            // Its sockets first: those of the same addresses are to be opened anew.
            self.uplink = Uplink::new(&Config::default());
            self.uplink = Uplink::new(&config);
        }
        (self.config.switch, self.config.edge) = (config.switch, config.edge);
        (self.config.paths, self.config.peers) = (config.paths, config.peers);
        self.uplink.look_for_room();
        self.fit();
        self.done()
    }

    /// Places that stay as they are keep their addresses: a change is no moment to take them over.
    fn renew_table(&mut self, before: &Config, config: &Config) {
        let mut table = Table::default();
        config.ports.iter().for_each(|port| table.add_port(port.addresses_max, &port.macs()));
        let [old, new] = [before.peers(), config.peers()];
        new.iter().for_each(|name| table.add_peer(config.peer(name).addresses_max));
        let ports = &config.ports;
        let ports = before.ports.iter().map(|port| ports.iter().position(|new| new == port));
        let peers = old.iter().map(|name| new.iter().position(|new| new == name));
        let (ports, peers): (Vec<_>, Vec<_>) = (ports.collect(), peers.collect());
        let stays = |place| match place {
            Place::Port(port) => ports.get(port).copied().flatten().map(Place::Port),
            Place::Peer(peer) => peers.get(peer).copied().flatten().map(Place::Peer),
        };
        table.take_over(&self.node.table, stays);
        self.node.table = table;
    }

    pub(super) fn done(&self) -> Done {
        let waiting = self.config.ports.iter().zip(&self.waiting);
        let waiting = waiting
            .filter_map(|(p, w)| w.as_ref().map(|reason| (p.name.clone(), reason.to_string())));
        let waiting = waiting.chain(self.uplink.waiting());
        let open = self.node.slots.iter().filter(|s| s.port.is_some()).count();
        Done { open, waiting: waiting.collect(), notes: self.misfits() }
    }

    /// Opens a port that is not open.
    pub(super) fn open(&mut self, index: usize) {
        if self.node.slots[index].port.is_some() {
            return;
        }
        let params = &self.config.ports[index];
        self.homes[index] = home(params);
        self.waiting[index] = match ports::open(&self.state, params) {
            Ok(Opened { port, mtu, fits }) => {
                let slot = &mut self.node.slots[index];
                (slot.port, slot.mtu, self.fits[index]) = (Some(port), mtu, fits);
                self.losses.opened(slot, self.homes[index], params.namespace.as_deref());
                log::info!("port {} is open, MTU {mtu}", params.name);
                None
            }
            Err(error) => {
                let before = self.waiting[index].as_ref().map(Error::to_string);
                if before.is_none_or(|before| before != error.to_string()) {
                    log::warn!("waits: {error}");
                }
                Some(error)
            }
        };
    }
}
