//! Connections over several NICs of their hosts: the subflows of one take paths in turn, and the
//! flowcells of one take a path each.
//!
//! A path here is a pair of NICs. A subflow keeps its own, since its 5-tuple names the addresses.
//! The subflows of one NIC share a queue there, and the scheduler passes by those whose queue is
//! full (as the MPTCP kernel, v0.8x). Acknowledgements of a subflow go back by its path, those of
//! flowcells by the connection's own NICs. A host restores the order of flowcells in one receive
//! ring, that of its first NIC, whichever NIC they come in by.
//!
//! Invariant: the first path is the connection's own pair of NICs.

use super::*;
use crate::endpoint::Config;
use crate::nics::{Asks, Pair};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NicPath {
    pair: Pair,
    /// The NIC of the end that has it, by number in the partition.
    host: u32,
    /// The number of that NIC at its host.
    nic: u16,
}

/// The paths of one end of a connection.
pub(super) struct NicPaths {
    all: Vec<NicPath>,
    /// By number of a NIC of the sending host: the segments of subflows that wait there.
    queues: Vec<Egress>,
}

impl NicPaths {
    /// Whether they are subflows', which have a queue in each NIC.
    pub(super) fn have_queues(&self) -> bool {
        !self.queues.is_empty()
    }

    /// The place of a subflow's path.
    fn place(&self, subflow: u8) -> usize {
        usize::from(subflow) % self.all.len()
    }

    fn of(&self, mapping: Mapping) -> NicPath {
        self.all[self.place(mapping.subflow)]
    }

    /// How much a subflow may hand down now, at most `whole`, and the paths whose queues are full,
    /// as bits. `None`: all are.
    pub(super) fn room(&mut self, now: Time, whole: u32) -> (Option<u32>, u64) {
        let (mut room, mut full) = (None, 0);
        for (at, path) in self.all.iter().enumerate().take(64) {
            match self.queues[usize::from(path.nic)].queue.room(now, whole) {
                Some(bytes) => room = Some(bytes),
                None => full |= 1 << at,
            }
        }
        (room, full)
    }

    /// The queue of a subflow in its NIC.
    pub(super) fn egress(&mut self, mapping: Option<Mapping>) -> &mut Egress {
        let nic = self.of(mapping.unwrap_or_default()).nic;
        &mut self.queues[usize::from(nic)]
    }

    /// The subflows of these paths, as bits.
    pub(super) fn subflows(&self, paths: u64) -> u64 {
        (0..64).filter(|n| paths >> self.place(*n) & 1 == 1).map(|n| 1 << n).sum()
    }
}

/// The packet goes by this pair of NICs, and by its subflow's path.
fn address(packet: &mut Packet, (src, dst): Pair, mapping: Option<Mapping>) {
    (packet.src, packet.dst) = (src, dst);
    packet.entropy = of_subflow(five_tuple_hash(src, dst, packet.flow), mapping);
}

/// Where a receiving end's acknowledgement leaves: the NIC, and in the packet the addresses.
#[inline]
pub(super) fn answers_by(it: &Receiving, packet: &mut Packet, mapping: Option<Mapping>) -> u32 {
    match (&it.paths, mapping) {
        (Some(paths), Some(mapping)) => {
            let NicPath { pair: (src, dst), host, .. } = paths.of(mapping);
            address(packet, (dst, src), Some(mapping));
            host
        }
        _ => it.host,
    }
}

/// The NIC that a segment leaves by, whose pair of addresses its first packet gets: that of its
/// subflow's path, or of its flowcell's.
pub(super) fn leaves_by(
    now: Time,
    it: &mut Sending,
    shared: &Shared,
    out: &Outgoing,
    first: &mut Packet,
) -> u32 {
    let Some(paths) = &it.paths else { return it.host };
    if paths.have_queues() {
        let NicPath { pair, host, .. } = paths.of(out.mapping.unwrap_or_default());
        address(first, pair, out.mapping);
        return host;
    }
    let (Some(plan), Some(egress)) = (&shared.labels, &mut it.egress) else { return it.host };
    let labels = |path: &NicPath| plan.between(now, path.pair.0, path.pair.1).len();
    let most = paths.all.iter().map(labels).max().unwrap_or(1);
    let cut = shared.cut_of(out);
    let chosen = egress.choose_nic(now, &plan.rule, out.len, cut, paths.all.len(), most);
    let NicPath { pair, host, .. } = paths.all[chosen];
    address(first, pair, None);
    host
}

/// Asks for a call when one of the full NICs of a connection's subflows has room.
pub(super) fn wake_split(now: Time, it: &mut Sending, shared: &Shared, fabric: &mut Fabric) {
    let Some(paths) = it.paths.as_deref_mut() else { return };
    let (_, full) = paths.room(now, shared.segment_max);
    wake(it, full, &shared.transport, fabric);
}

/// Asks for calls when segments have left the NICs of these paths, if the subflows have anything to
/// send.
fn wake(it: &mut Sending, full: u64, cfg: &Config, fabric: &mut Fabric) {
    let (wants, call) = (it.sender.would_send(cfg), Call::Room(it.opening.flow));
    let Some(NicPaths { all, queues }) = it.paths.as_deref_mut() else { return };
    for path in (0..64).zip(&*all).filter(|(at, _)| full >> at & 1 == 1).map(|(_, path)| path) {
        if let Some(at) = queues[usize::from(path.nic)].queue.wake(wants) {
            fabric.call(at, path.host, HostEvent::Call(call));
        }
    }
}

impl Hosts {
    /// The paths of an end of a connection of a class, of these pairs of NICs, if it takes several.
    pub(super) fn nic_paths(
        &self,
        asks: Asks,
        class: u16,
        pairs: &[Pair],
    ) -> Option<Box<NicPaths>> {
        let shared = &*self.shared;
        if !shared.plan.takes_several_nics(class) {
            return None;
        }
        let which = shared.plan.traffic.transports[usize::from(class)];
        let topology = &shared.plan.topology;
        let path = |pair: &Pair| {
            let nic = if asks == Asks::Sender { pair.0 } else { pair.1 };
            NicPath { pair: *pair, host: shared.local_host(nic), nic: topology.nic_number(nic) }
        };
        let is_split = asks == Asks::Sender && shared.transport.has_subflows(which);
        let nics = topology.nics(topology.host_of(pairs[0].0)).filter(|_| is_split);
        let queues = nics.map(|_| Egress::plain(shared.nic_limit)).collect();
        Some(Box::new(NicPaths { all: pairs.iter().map(path).collect(), queues }))
    }

    /// A segment of a connection leaves a NIC at `at`: notifies its queue there, and wakes it if it
    /// waits for that.
    pub(super) fn leaves(
        &mut self,
        slot: u32,
        flow: FlowId,
        host: u32,
        at: Time,
        fabric: &mut Fabric,
    ) {
        let nic = self.hosts[host as usize].id;
        let Some(sending) = self.senders.get(slot, flow) else { return };
        if let Some(paths) = sending.paths.as_deref_mut().filter(|paths| paths.have_queues()) {
            let number = self.shared.plan.topology.nic_number(nic);
            let queue = &mut paths.queues[usize::from(number)].queue;
            queue.leaves(nic, at);
            if queue.is_wanted {
                let path = paths.all.iter().take(64).position(|path| path.nic == number);
                let full = path.map_or(0, |path| 1 << path);
                wake(sending, full, &self.shared.transport, fabric);
            }
            return;
        }
        let Some(egress) = &mut sending.egress else { return };
        egress.queue.leaves(nic, at);
        if egress.queue.is_wanted {
            sending::wake_when_room(sending, &self.shared, fabric);
        }
    }

    /// The NIC whose node restores the order of a packet that has come in by this one.
    pub(super) fn reordering_nic(&self, host: u32) -> u32 {
        if !self.shared.sprays_nics {
            return host;
        }
        let nic = self.hosts[host as usize].id;
        self.shared.local_host(self.shared.plan.topology.host_of(nic))
    }

    /// A connection is over: frees its state in the receive rings of its host, or of one of its
    /// NICs.
    pub(super) fn forget(&mut self, host: u32, flow: FlowId) {
        let subflows = self.shared.transport.subflows();
        if self.shared.nics.is_none() {
            return self.hosts[host as usize].node.forget(flow, subflows);
        }
        let topology = &self.shared.plan.topology;
        for nic in topology.nics(topology.host_of(self.hosts[host as usize].id)) {
            let nic = self.shared.local_host(nic);
            self.hosts[nic as usize].node.forget(flow, subflows);
        }
    }
}

impl Sending {
    /// Whether the call that comes now is one that its queues wait for, if it has any.
    pub(super) fn is_woken(&mut self, now: Time) -> bool {
        if let Some(paths) = self.paths.as_deref_mut().filter(|paths| paths.have_queues()) {
            return paths.queues.iter_mut().fold(false, |woken, nic| nic.queue.woken(now) | woken);
        }
        self.egress.as_mut().is_none_or(|egress| egress.queue.woken(now))
    }

    /// Takes other paths if it has several; whether those, or its own pair of NICs, are others than
    /// before.
    pub(super) fn takes_others(&mut self, pairs: &[Pair], paths: Option<Box<NicPaths>>) -> bool {
        let before = (self.opening.src, self.opening.dst);
        let Some((own, new)) = self.paths.as_mut().zip(paths) else { return pairs[0] != before };
        let differs = own.all != new.all;
        own.all = new.all;
        differs
    }
}
