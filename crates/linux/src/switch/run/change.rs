//! A switch becomes that of another configuration.
//!
//! Invariant: a port whose keys are the same keeps its interface, its counters and its addresses,
//! and so does one whose `importance` alone changes.

use super::{PortStatus, Switch, home};
use crate::dataplane::slot::Slot;
use crate::switch::config::{Config, ImportanceKind, PortParams};
use crate::switch::control::Done;
use crate::switch::error::Error;
use crate::switch::importance::HostShim;
use crate::switch::ports::{self, Opened};
use crate::switch::reading::PortReading;
use crate::switch::table::{Place, Table};
use std::iter;

/// A port of the configuration before.
struct Old {
    params: PortParams,
    slot: Slot,
    shim: Option<Box<HostShim>>,
    status: PortStatus,
}

/// Whether a port's interface is opened anew. A shim comes and goes without that.
fn is_opened_anew(before: &PortParams, new: &PortParams) -> bool {
    PortParams { importance: new.importance, ..before.clone() } != *new
}

impl Switch {
    fn take_ports(&mut self) -> Vec<Option<Old>> {
        let shims = std::mem::take(&mut self.node.shims).into_iter();
        let shims = shims.chain(iter::repeat_with(|| None));
        let ports = std::mem::take(&mut self.config.ports).into_iter();
        ports
            .zip(self.node.slots.drain(..))
            .zip(shims.zip(self.ports.drain(..)))
            .map(|((params, slot), (shim, status))| Some(Old { params, slot, shim, status }))
            .collect()
    }

    /// Makes the ports those of `config`. One whose interface stays keeps it open, with its
    /// counters.
    pub(super) fn change(&mut self, config: Config) -> Done {
        // Their queues of ports that go are closed first.
        let others = if self.team.leads() { self.team.change(&config) } else { Vec::new() };
        let config = config.of_worker(self.team.number());
        let same = |a: &PortParams, b: &PortParams| {
            (a.kind, a.device(), &a.namespace, &a.read, &a.write, &a.socket)
                == (b.kind, b.device(), &b.namespace, &b.read, &b.write, &b.socket)
        };
        let before = self.config.clone();
        let mut old = self.take_ports();
        let kept: Vec<Option<Old>> = config
            .ports
            .iter()
            .map(|new| {
                old.iter_mut()
                    .find(|o| o.as_ref().is_some_and(|old| same(&old.params, new)))
                    .and_then(Option::take)
            })
            .collect();
        // Old ports go first: a new port may want the interface of an old one.
        let leads = self.team.leads();
        for Old { params, slot, .. } in old.into_iter().flatten().filter(|_| leads) {
            if let Err(error) = ports::close(&self.state, &params, slot.port) {
                log::warn!("{error}");
            }
        }
        for (new, kept) in config.ports.iter().zip(kept) {
            let (params, slot, shim) = (new.clone(), Slot::new("", None, 0), None);
            let status = PortStatus { home: home(new), ..PortStatus::default() };
            let Old { params: before, mut slot, shim, status } =
                kept.unwrap_or(Old { params, slot, shim, status });
            (slot.name, slot.gso_least, slot.vlans) =
                (new.name.clone(), new.gso_least as u16, new.vlans());
            slot.guard = new.guard();
            let has_shim = new.importance == ImportanceKind::Tlt;
            self.node.shims.push(has_shim.then(|| shim.unwrap_or_default()));
            if is_opened_anew(&before, new) {
                // Opened anew, for its new address or MTU: the interface is persistent. An
                // application attaches again.
                slot.detach();
                slot.port = None;
            }
            self.node.slots.push(slot);
            self.ports.push(status);
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
            self.uplink.change(&config, own.edge != new.edge);
        }
        (self.config.switch, self.config.edge) = (config.switch, config.edge);
        (self.config.paths, self.config.peers) = (config.paths, config.peers);
        self.uplink.look_for_room();
        self.fit(self.now());
        if !self.team.leads() && before.paths.is_empty() {
            self.wait_for_predecessor();
        }
        let mut done = self.done();
        done.waiting.extend(others);
        done
    }

    /// Places that stay as they are keep their addresses: a change is no moment to take them over.
    fn renew_table(&mut self, before: &Config, config: &Config) {
        let mut table = Table::default();
        config.ports.iter().for_each(|port| table.add_port(port.addresses_max, &port.macs()));
        let [old, new] = [before.peers(), config.peers()];
        new.iter().for_each(|name| table.add_peer(config.peer(name).addresses_max));
        let ports = &config.ports;
        let stays = |port: &PortParams| ports.iter().position(|new| !is_opened_anew(port, new));
        let ports = before.ports.iter().map(stays);
        let peers = old.iter().map(|name| new.iter().position(|new| new == name));
        let (ports, peers): (Vec<_>, Vec<_>) = (ports.collect(), peers.collect());
        let stays = |place| match place {
            Place::Port(port) => ports.get(port).copied().flatten().map(Place::Port),
            Place::Peer(peer) => peers.get(peer).copied().flatten().map(Place::Peer),
        };
        if !self.team.is_alone() {
            table.report();
        }
        table.take_over(&self.node.table, stays);
        self.node.table = table;
    }

    pub(super) fn done(&self) -> Done {
        let waiting = self.config.ports.iter().zip(&self.ports);
        let waiting = waiting.filter_map(|(p, status)| {
            status.waiting.as_ref().map(|reason| (p.name.clone(), reason.to_string()))
        });
        let waiting = waiting.chain(self.uplink.waiting());
        let open = self.node.slots.iter().filter(|s| s.port.is_some()).count();
        let mut notes = self.misfits();
        notes.extend(self.reading().ports.iter().filter_map(PortReading::loop_note));
        Done { open, waiting: waiting.collect(), notes }
    }

    /// Opens a port that is not open.
    pub(super) fn open(&mut self, index: usize) {
        if self.node.slots[index].port.is_some() || !self.team.leads() {
            return;
        }
        let params = &self.config.ports[index];
        let status = &mut self.ports[index];
        status.home = home(params);
        status.waiting = match ports::open(&self.state, params, self.team.size()) {
            Ok(Opened { port, others, mtu, fits }) => {
                self.team.opened(index, others, mtu);
                let slot = &mut self.node.slots[index];
                (slot.port, slot.mtu, status.fits) = (Some(port), mtu, fits);
                self.losses.opened(slot, status.home, params.namespace.as_deref());
                log::info!("port {} is open, MTU {mtu}", params.name);
                None
            }
            Err(error) => {
                let before = status.waiting.as_ref().map(Error::to_string);
                if before.is_none_or(|before| before != error.to_string()) {
                    log::warn!("waits: {error}");
                }
                Some(error)
            }
        };
    }
}
