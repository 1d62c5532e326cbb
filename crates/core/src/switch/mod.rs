//! The switch node: receive, choose a port, admit, queue, transmit.
//!
//! It is passive: [`Switch::on_arrival`], [`Switch::on_ready`], [`Switch::on_pause`] and
//! [`Switch::on_pause_check`] are called by a driver, which owns the links and the clock, and
//! answers through [`Wire`]. The simulator drives it from its event queue, the Linux poll loop from
//! its clock.
//!
//! Invariant: each packet that arrives is handed to the wire exactly once, to be transmitted or
//! dropped. A port that a policy chose is asked once more, with the same test, when the packet
//! joins it.

pub mod admission;
pub mod buffer;
pub mod deflection;
mod displace;
mod early;
mod ingress;
pub mod marking;
mod meter;
pub mod occupancy;
pub mod overflow;
pub mod path;
pub mod pause;
mod pause_frame;
pub mod port;
pub mod queue;
mod reading;
pub mod route;
pub mod site;
mod standing;
mod trim;
mod view;

use meter::Meter;
use view::View;

use crate::context::Context;
use crate::counters::DropReason;
use crate::packet::{Hop, PRIORITIES, Packet, PacketId, Packets, Telemetry};
use crate::random::{Random, Stream};
use crate::units::{Rate, Time};
use admission::{Admission, PortFacts};
use buffer::{Claim, Memory};
use deflection::{Deflection, Elsewhere, Nature};
use occupancy::Occupancy;
use path::{Choice, Facts, Passing, Path, Site};
use pause::{Pause, PauseFrame, PauseTarget};
use port::{FastPort, GeneralPort, PortConfig, Service, Terms};
use queue::Load;
use route::Routes;
use std::collections::VecDeque;

/// A policy's view of one queue, as it is at `now`. The packet in transmission is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueView {
    /// Packets that wait.
    pub packets: u32,
    /// Bytes that wait.
    pub bytes: u64,
}

/// A policy's view of the ports of its switch: lengths as the switch's occupancy gives them, the
/// tests as each port would make them.
#[warn(missing_docs)]
pub trait PortView {
    /// Bytes that wait at a port.
    fn bytes(&mut self, port: u16) -> u64;
    /// Whether a packet of this size finds room there (the published FULL is its opposite).
    fn has_room(&mut self, port: u16, size: u64) -> bool;
    /// Whether the port's admission refuses the packet although there may be room (the published
    /// REJECT).
    fn rejects(&mut self, port: u16, packet: &Packet) -> bool;
    /// Bytes that wait at the port if it has room for the packet and its admission does not refuse
    /// it. One question for three, for those who ask it of every packet.
    fn takes(&mut self, port: u16, packet: &Packet) -> Option<u64> {
        let takes = self.has_room(port, packet.size as u64) && !self.rejects(port, packet);
        takes.then(|| self.bytes(port))
    }
    /// Counts the packet as offered in the port's admission, as if it had arrived there.
    fn note(&mut self, port: u16, packet: &Packet);
}

/// No ports to see: for policies that look at none.
pub struct NoPorts;

impl PortView for NoPorts {
    fn bytes(&mut self, _: u16) -> u64 {
        0
    }
    fn has_room(&mut self, _: u16, _: u64) -> bool {
        false
    }
    fn rejects(&mut self, _: u16, _: &Packet) -> bool {
        true
    }
    fn note(&mut self, _: u16, _: &Packet) {}
}

/// The driver's services to a node: links, timing, and the pool that packets live in.
#[warn(missing_docs)]
pub trait Wire {
    /// The packets.
    fn packets(&mut self) -> &mut Packets;
    /// Put `id` on the link of `port`; its last bit leaves at `departs`.
    fn transmit(&mut self, port: u16, id: PacketId, departs: Time);
    /// Call [`Switch::on_ready`] for `port` at `at`.
    fn call_ready(&mut self, port: u16, at: Time);
    /// `id` is dropped; count it and free it.
    fn discard(&mut self, id: PacketId, reason: DropReason);
    /// So many bytes were cut off a packet.
    fn trimmed(&mut self, _bytes: u16) {}
    /// Send a pause frame to the neighbour at `port`; its last bit leaves at `departs`.
    fn send_pause(&mut self, port: u16, frame: PauseFrame, departs: Time);
    /// Call [`Switch::on_pause_check`] for `port` and `target` at `at`.
    fn call_pause_check(&mut self, port: u16, target: PauseTarget, at: Time);
}

/// All ports of a switch, of one kind.
#[derive(Clone, Debug)]
pub enum Ports {
    Fast(Vec<FastPort>),
    General(Vec<GeneralPort>),
}

#[derive(Clone, Debug)]
pub struct SwitchConfig {
    pub site: Site,
    pub routes: Routes,
    pub ports: Vec<PortConfig>,
    /// Ports that lead to other switches.
    pub fabric_ports: Vec<u16>,
    /// Use fast ports; all must fit, and a deflection needs ports that share no memory.
    pub fast: bool,
    pub memory: Memory,
    pub path: Path,
    pub deflection: Deflection,
    /// How fresh the queue lengths are that the switch decides by.
    pub occupancy: Occupancy,
    pub pause: Pause,
    /// The settings that it trims by; not with fast ports.
    pub trim: Option<overflow::Trim>,
    /// Add itself to the telemetry of packets that collect it; the number of its first port among
    /// all of its driver. With fast ports the driver [completes](Switch::complete_telemetry) what
    /// it reads.
    pub telemetry: Option<u32>,
    pub random: Stream,
}

impl SwitchConfig {
    /// A switch of hosts alone, with general ports and the default answer at each place.
    pub fn plain(
        routes: Routes,
        ports: Vec<PortConfig>,
        memory: Memory,
        random: Stream,
    ) -> SwitchConfig {
        SwitchConfig {
            site: Site { tier: 0, salt: 1 },
            routes,
            ports,
            fabric_ports: Vec::new(),
            fast: false,
            memory,
            path: Path::new(&Default::default()),
            deflection: Deflection::new(&Default::default()),
            occupancy: Occupancy::new(&Default::default()),
            pause: Pause::new(&Default::default()),
            trim: None,
            telemetry: None,
            random,
        }
    }
}

/// A switch node: ports, routes, shared memory and the policies of each place.
#[derive(Clone, Debug)]
pub struct Switch {
    site: Site,
    routes: Routes,
    ports: Ports,
    path: Path,
    memory: Memory,
    deflection: Deflection,
    occupancy: Occupancy,
    pause: Pause,
    fabric_ports: Vec<u16>,
    /// By ingress port and priority: bytes held; empty unless a pause policy is active.
    ingress_bytes: Vec<[u64; PRIORITIES]>,
    random: Random,
    /// Ports whose links are known to be down, and room for the candidates that are left without
    /// them.
    dead: Vec<u16>,
    alive: Vec<u16>,
    /// Some port is down, and the path's labels must be led around it.
    detours: bool,
    nature: Nature,
    /// The deflection or the path choice acts on packets that are forwarded.
    steps_in: bool,
    /// One of them has, or its ports are close.
    looks_closely: bool,
    /// Packets that make room for another, while they are moved.
    victims: Vec<PacketId>,
    has_watchdogs: bool,
    /// Its fast ports have meters or share a memory.
    is_close: bool,
    /// Nobody counts what enters and leaves its general ports' queues.
    is_plain: bool,
    /// By port; empty where no packet asks.
    meters: Vec<Meter>,
    /// The number of its first port among all of its driver.
    first_number: u32,
    trim: Option<overflow::Trim>,
    /// Packets deflected here.
    pub deflected: u64,
    /// Packets trimmed here.
    pub trimmed: u64,
}

impl Ports {
    fn count(&self) -> usize {
        match self {
            Ports::Fast(ports) => ports.len(),
            Ports::General(ports) => ports.len(),
        }
    }
    /// The queue at `port` now.
    fn view(&mut self, now: Time, port: u16) -> QueueView {
        match self {
            Ports::Fast(ports) => ports[port as usize].settled_view(now),
            Ports::General(ports) => ports[port as usize].view(),
        }
    }
    /// How the queue of a packet stands at `port`, where flows have queues.
    fn load(&self, port: u16, packet: &Packet) -> Option<Load> {
        match self {
            Ports::Fast(_) => None,
            Ports::General(ports) => ports[port as usize].load(packet),
        }
    }
    /// The rate of a general port's link.
    fn rate(&self, port: u16) -> Rate {
        match self {
            Ports::Fast(_) => Rate(0),
            Ports::General(ports) => ports[port as usize].rate(),
        }
    }
    fn admission(&mut self, port: u16) -> &mut Admission {
        match self {
            Ports::Fast(ports) => &mut ports[port as usize].admission,
            Ports::General(ports) => &mut ports[port as usize].admission,
        }
    }
}

impl Switch {
    /// The path choice, for a controller to install labels in.
    pub fn path_mut(&mut self) -> &mut Path {
        &mut self.path
    }

    pub fn new(config: SwitchConfig) -> Switch {
        // By reference: a collect from the vector itself would keep its larger allocation.
        let mut ports = if config.fast {
            Ports::Fast(FastPort::all(&config.ports))
        } else {
            Ports::General(GeneralPort::all(&config.ports))
        };
        let count = ports.count();
        // A stream of their own, so that what they draw does not move the node's.
        let mut random = config.random.clone().fork();
        let mut occupancy = config.occupancy;
        occupancy.install(count, &mut random);
        for (port, it) in config.ports.iter().enumerate() {
            let capacity = config.memory.reach(it.capacity);
            ports
                .admission(port as u16)
                .install(&PortFacts { capacity, rate: it.rate }, &mut random);
        }
        let mut pause = config.pause;
        let rates: Vec<_> = config.ports.iter().map(|it| it.rate).collect();
        pause.install(&rates);
        if let (Some(rate), Ports::General(ports)) = (pause.min_rate(), &mut ports) {
            ports.iter_mut().for_each(|port| port.guarantee(rate));
        }
        let watchdog = pause.watchdog();
        if let (Some(terms), Ports::General(ports)) = (watchdog, &mut ports) {
            ports.iter_mut().for_each(|port| port.guard(terms));
        }
        let is_close = config.fast && (config.telemetry.is_some() || config.memory.is_shared());
        let is_plain = !pause.is_active()
            && watchdog.is_none()
            && !occupancy.watches_departures()
            && config.trim.is_none();
        let mut path = config.path;
        path.install(&Facts { attachment: config.routes.attachment(), rates: &rates });
        let nature = config.deflection.nature();
        let steps_in = nature.diverts || path.watches();
        Switch {
            site: config.site,
            routes: config.routes,
            ports,
            steps_in,
            looks_closely: steps_in || is_close,
            path,
            ingress_bytes: vec![[0; PRIORITIES]; if pause.is_active() { count } else { 0 }],
            nature,
            deflection: config.deflection,
            occupancy,
            pause,
            fabric_ports: config.fabric_ports,
            random: config.random.into(),
            dead: Vec::new(),
            alive: Vec::new(),
            detours: false,
            victims: Vec::new(),
            has_watchdogs: watchdog.is_some(),
            is_plain,
            is_close,
            meters: match config.telemetry {
                Some(_) => rates.iter().map(|rate| Meter::new(*rate)).collect(),
                None => Vec::new(),
            },
            first_number: config.telemetry.unwrap_or(0),
            memory: config.memory,
            trim: config.trim,
            deflected: 0,
            trimmed: 0,
        }
    }

    /// A packet has arrived in full at `ingress`.
    #[inline]
    pub fn on_arrival<W: Wire>(&mut self, now: Time, ingress: u16, id: PacketId, wire: &mut W) {
        let packet = &mut wire.packets()[id];
        packet.ingress = ingress;
        packet.ttl = packet.ttl.saturating_sub(1);
        if packet.ttl == 0 {
            return wire.discard(id, DropReason::Ttl);
        }
        let candidates = self.routes.towards(packet.dst);
        let port = match candidates.len() {
            1 if self.detours => match self.detour(candidates[0], &wire.packets()[id]) {
                Some(port) => port,
                None => return wire.discard(id, DropReason::LinkDown),
            },
            1 => candidates[0],
            0 => return wire.discard(id, DropReason::LinkDown),
            _ => {
                let first = candidates[0];
                let candidates = match self.dead.is_empty() {
                    true => candidates,
                    false => alive(candidates, packet, &self.path, &self.dead, &mut self.alive),
                };
                let (memory, occupancy, random) = (&self.memory, &mut self.occupancy, &self.random);
                let mut ports =
                    View { now, packet, random, ports: &mut self.ports, memory, occupancy };
                let view = Choice { candidates, site: self.site, ports: &mut ports };
                let port = self.path.choose(&mut Context { now, packet, view, random });
                packet.path = packet.path << 4 ^ port.wrapping_sub(first) as u8;
                port
            }
        };
        if self.looks_closely {
            return self.forward_closely(now, port, id, wire);
        }
        if let Err(reason) = self.offer_plainly(now, port, id, wire) {
            self.not_taken(now, port, id, reason, wire);
        }
    }

    /// Forwards where the deflection sends packets elsewhere whose queue was not asked, the path
    /// choice is shown every packet, or fast ports have meters or share a memory.
    #[inline(never)]
    fn forward_closely<W: Wire>(&mut self, now: Time, port: u16, id: PacketId, wire: &mut W) {
        if !self.steps_in {
            if let Err(reason) = self.offer_closely(now, port, id, wire) {
                self.not_taken(now, port, id, reason, wire);
            }
            return;
        }
        let (size, watches) = (wire.packets()[id].size, self.path.watches());
        if watches {
            let is_host = |port: u16| self.fabric_ports.binary_search(&port).is_err();
            let (is_from_host, is_to_host) = (is_host(wire.packets()[id].ingress), is_host(port));
            self.path.passes(Passing { now, id, port, is_from_host, is_to_host }, wire.packets());
        }
        if self.nature.diverts && self.is_diverted(now, port, id, wire) {
            return self.refused(now, port, id, DropReason::Early, wire);
        }
        match self.offer(now, port, id, wire) {
            Ok(()) if watches => self.path.joined(now, port, size),
            Ok(()) => {}
            Err(reason) => self.not_taken(now, port, id, reason, wire),
        }
    }

    /// The port that was chosen did not take the packet.
    #[inline]
    fn not_taken<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        reason: DropReason,
        wire: &mut W,
    ) {
        match reason {
            // The decision was to forward; the queue found that it was wrong.
            DropReason::OverflowStale | DropReason::Watchdog => wire.discard(id, reason),
            reason => self.refused(now, port, id, reason, wire),
        }
    }

    /// The driver's call for a general port, at a time that it asked for.
    #[inline]
    pub fn on_ready<W: Wire>(&mut self, now: Time, port: u16, wire: &mut W) {
        self.occupancy.refresh(now, port, &mut self.ports);
        if let Ports::General(ports) = &mut self.ports {
            let service =
                ports[port as usize].on_ready(now, wire.packets(), &mut self.memory, &self.random);
            self.act(now, port, service, wire);
        }
    }

    /// The network's routes have changed. Packets that wait at a port stay there.
    pub fn set_routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    /// The link at `port` is known to be up again, or to be down: then the port is chosen only
    /// where a route has no other. Packets that wait at the port stay there.
    pub fn set_alive(&mut self, port: u16, alive: bool) {
        self.dead.retain(|dead| *dead != port);
        if !alive {
            self.dead.push(port);
        }
        self.detours = !self.dead.is_empty() && self.path.follows_labels();
    }

    /// Where a packet goes that has one way only, which may be down: then out of the next port to
    /// another switch, which may have a way around. `None` if there is no such port, or the way is
    /// to a host.
    #[cold]
    fn detour(&self, only: u16, packet: &Packet) -> Option<u16> {
        if !self.dead.contains(&only) {
            return Some(only);
        }
        let from = self.fabric_ports.binary_search(&only).ok()?;
        let others =
            self.fabric_ports.iter().cycle().skip(from + 1).take(self.fabric_ports.len() - 1);
        others.copied().find(|port| !self.dead.contains(port) && *port != packet.ingress)
    }

    /// Bytes that wait in the shared memory. With fast ports at most as many wait; 0 where each has
    /// a memory of its own.
    pub fn memory_used(&self) -> u64 {
        self.memory.used()
    }

    /// Queues the packet at `port`, or returns the reason of the refusal.
    #[inline]
    fn offer<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        wire: &mut W,
    ) -> Result<(), DropReason> {
        match self.is_close {
            true => self.offer_closely(now, port, id, wire),
            false => self.offer_plainly(now, port, id, wire),
        }
    }

    /// As `offer`, at any port but a fast one that has a meter or shares a memory. Compiled into
    /// the path of every packet.
    #[inline(always)]
    fn offer_plainly<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        wire: &mut W,
    ) -> Result<(), DropReason> {
        self.occupancy.refresh(now, port, &mut self.ports);
        let sample_full = self.nature.samples_when_full;
        let terms = Terms { known: self.occupancy.of(port), sample_full, random: &self.random };
        match &mut self.ports {
            Ports::Fast(ports) => {
                let departs = ports[port as usize].offer(now, &mut wire.packets()[id], &terms)?;
                wire.transmit(port, id, departs);
            }
            Ports::General(ports) if self.is_plain => {
                let (queue, memory) = (&mut ports[port as usize], &mut self.memory);
                match queue.pass(now, id, &mut wire.packets()[id], memory, &terms)? {
                    Some(departs) => self.leave(now, port, id, departs, wire),
                    None => {
                        let service = queue.serve(now, wire.packets(), memory, &self.random);
                        self.act(now, port, service, wire);
                    }
                }
            }
            Ports::General(ports) => {
                let packet = &mut wire.packets()[id];
                if self.has_watchdogs && ports[port as usize].keeps_out(packet) {
                    return Err(DropReason::Watchdog);
                }
                ports[port as usize].offer(now, id, packet, &mut self.memory, &terms)?;
                self.joined(now, port, id, wire);
            }
        }
        Ok(())
    }

    /// As `offer`, at a fast port that has a meter or shares a memory.
    #[inline(always)]
    fn offer_closely<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        wire: &mut W,
    ) -> Result<(), DropReason> {
        self.occupancy.refresh(now, port, &mut self.ports);
        let Ports::Fast(ports) = &mut self.ports else { unreachable!("its ports are fast") };
        let sample_full = self.nature.samples_when_full;
        let terms = Terms { known: self.occupancy.of(port), sample_full, random: &self.random };
        let at = ports[port as usize].busy_until().max(now);
        let (packet, memory) = (&mut wire.packets()[id], &mut self.memory);
        let departs = match memory.is_shared() {
            false => ports[port as usize].offer(now, packet, &terms)?,
            true => FastPort::offer_of(ports, port, now, packet, memory, &terms)?,
        };
        if !self.meters.is_empty() {
            self.meter_ahead(now, port, id, at, wire);
        }
        wire.transmit(port, id, departs);
        Ok(())
    }

    /// A packet has joined a general port's queue.
    #[inline]
    fn joined<W: Wire>(&mut self, now: Time, port: u16, id: PacketId, wire: &mut W) {
        if !self.ingress_bytes.is_empty() {
            self.count_ingress(now, port, id, true, wire);
        }
        if let Ports::General(ports) = &mut self.ports {
            let service =
                ports[port as usize].serve(now, wire.packets(), &mut self.memory, &self.random);
            self.act(now, port, service, wire);
        }
    }

    /// Whether the deflection sends the packet elsewhere although its queue was not asked.
    #[inline(never)]
    fn is_diverted<W: Wire>(&mut self, now: Time, port: u16, id: PacketId, wire: &mut W) -> bool {
        let (memory, occupancy, random) = (&self.memory, &mut self.occupancy, &self.random);
        let packet = &wire.packets()[id];
        let mut ports = View { now, packet, random, ports: &mut self.ports, memory, occupancy };
        let view = Elsewhere { port, candidates: &self.fabric_ports, ports: &mut ports };
        self.deflection.divert(&mut Context { now, packet, view, random })
    }

    /// The queue refused it: deflect or drop.
    #[inline(never)]
    fn refused<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        reason: DropReason,
        wire: &mut W,
    ) {
        if self.trim.is_some() && self.trims(now, port, id, reason, wire) {
            return;
        }
        if self.nature.displaces {
            return self.displace(now, port, id, reason, wire);
        }
        let Some(other) = self.elsewhere(now, port, id, wire) else {
            let reason = if self.deflection.is_none() { reason } else { DropReason::NoDeflection };
            if !self.ingress_bytes.is_empty() {
                self.refuse_ingress(now, port, id, wire);
            }
            return wire.discard(id, reason);
        };
        self.mark_deflected(id, wire);
        match self.offer(now, other, id, wire) {
            Ok(()) => self.deflected += 1,
            Err(DropReason::OverflowStale) => wire.discard(id, DropReason::OverflowStale),
            Err(_) => wire.discard(id, DropReason::NoDeflection),
        }
    }

    /// Where the deflection sends a packet that `port` did not take.
    #[inline]
    fn elsewhere<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        wire: &mut W,
    ) -> Option<u16> {
        let (memory, occupancy, random) = (&self.memory, &mut self.occupancy, &self.random);
        let packet = &wire.packets()[id];
        let mut ports = View { now, packet, random, ports: &mut self.ports, memory, occupancy };
        let all = &self.fabric_ports;
        let candidates =
            if self.dead.is_empty() { all } else { survivors(all, &self.dead, &mut self.alive) };
        let view = Elsewhere { port, candidates, ports: &mut ports };
        self.deflection.choose(&mut Context { now, packet, view, random })
    }

    #[inline]
    fn act<W: Wire>(&mut self, now: Time, port: u16, service: Service, wire: &mut W) {
        if !self.is_plain {
            return self.act_closely(now, port, service, wire);
        }
        if let Some((id, departs)) = service.transmit {
            self.leave(now, port, id, departs, wire);
        }
        if let Some(at) = service.call_at {
            wire.call_ready(port, at);
        }
    }

    /// A packet goes on the link of `port`.
    #[inline]
    fn leave<W: Wire>(&mut self, now: Time, port: u16, id: PacketId, departs: Time, wire: &mut W) {
        if !self.meters.is_empty() {
            self.meter(now, port, id, wire);
        }
        wire.transmit(port, id, departs);
    }

    /// As `act`, where somebody counts what leaves.
    #[inline(never)]
    fn act_closely<W: Wire>(&mut self, now: Time, port: u16, service: Service, wire: &mut W) {
        if let Some((id, departs)) = service.transmit {
            if self.occupancy.watches_departures() {
                let view = self.ports.view(now, port);
                let bytes = view.bytes + wire.packets()[id].size as u64;
                self.occupancy.departed(port, QueueView { packets: view.packets + 1, bytes });
            }
            if !self.ingress_bytes.is_empty() {
                self.count_ingress(now, port, id, false, wire);
            }
            self.leave(now, port, id, departs, wire);
        }
        if let Some(at) = service.call_at {
            wire.call_ready(port, at);
        }
        if self.has_watchdogs {
            self.watch(now, port, wire);
        }
    }
}

/// The candidates that a path choice has while some are dead: of labels, the one that their
/// failover names.
#[cold]
fn alive<'a>(
    candidates: &'a [u16],
    packet: &Packet,
    path: &Path,
    dead: &[u16],
    room: &'a mut Vec<u16>,
) -> &'a [u16] {
    if !path.follows_labels() {
        return survivors(candidates, dead, room);
    }
    room.clear();
    room.extend(path.failover(candidates, packet, dead));
    if room.is_empty() { candidates } else { room }
}

/// The candidates without those that are dead; all of them where none is left.
#[cold]
fn survivors<'a>(candidates: &'a [u16], dead: &[u16], room: &'a mut Vec<u16>) -> &'a [u16] {
    room.clear();
    room.extend(candidates.iter().filter(|port| !dead.contains(port)));
    if room.is_empty() { candidates } else { room }
}

#[cfg(test)]
mod tests;
