//! Whence packets came: what the switch holds of each neighbour, whom it stops, and what happens
//! where it is stopped itself.
//!
//! Invariant: where a pause policy is active, every packet that waits is counted once, for the port
//! and priority by which it came in.

use super::pause::watchdog::Barks;
use super::pause::{IngressView, PAUSED, PauseCounts, PauseFrame, PauseTarget, Signal};
use super::port::GeneralPort;
use super::queue::Load;
use super::{Ports, Switch, Wire};
use crate::context::Context;
use crate::counters::{Count, Counters, DropReason};
use crate::packet::{PacketId, flags};
use crate::units::Time;

impl Switch {
    /// A pause frame has arrived from the neighbour at `port`.
    pub fn on_pause<W: Wire>(&mut self, now: Time, port: u16, frame: PauseFrame, wire: &mut W) {
        self.occupancy.refresh(now, port, &mut self.ports);
        if let Ports::General(ports) = &mut self.ports {
            let queue = &mut ports[port as usize];
            queue.on_pause(now, frame.target, now.saturating_add(frame.duration));
            let service = queue.heed(now, wire.packets(), &mut self.memory, &self.random);
            self.act(now, port, service, wire);
        }
    }

    /// The driver's call for what the pause policy has stopped or not, at a time that it asked for.
    pub fn on_pause_check<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        target: PauseTarget,
        wire: &mut W,
    ) {
        if self.has_watchdogs {
            self.on_watchdog(now, port, target, wire);
        }
        let view = self.ingress_view(port, port, target, None);
        let signal = self.pause.on_check(now, &view);
        self.signal(now, &view, signal, wire);
    }

    /// Asks for the calls of a port's watchdog.
    #[cold]
    pub(super) fn watch<W: Wire>(&mut self, now: Time, port: u16, wire: &mut W) {
        let Ports::General(ports) = &mut self.ports else { return };
        let Some((watchdog, paused)) = ports[port as usize].watchdog() else { return };
        while let Some((priority, at)) = watchdog.look(now, paused) {
            wire.call_pause_check(port, PauseTarget::Priority(priority), at);
        }
    }

    /// A call that may be of a port's watchdog.
    fn on_watchdog<W: Wire>(&mut self, now: Time, port: u16, target: PauseTarget, wire: &mut W) {
        let PauseTarget::Priority(priority) = target else { return };
        self.occupancy.refresh(now, port, &mut self.ports);
        let Ports::General(ports) = &mut self.ports else { return };
        let its = &mut ports[port as usize];
        let Some((watchdog, _)) =
            its.watchdog().filter(|(watchdog, _)| watchdog.expects(now, priority))
        else {
            return;
        };
        if watchdog.on_call(now, priority) == Barks::Storm {
            for id in its.on_storm(now, priority, wire.packets(), &mut self.memory, &self.random) {
                self.count_ingress(now, port, id, false, wire);
                wire.discard(id, DropReason::Watchdog);
            }
        }
        let Ports::General(ports) = &mut self.ports else { return };
        let service =
            ports[port as usize].serve(now, wire.packets(), &mut self.memory, &self.random);
        self.act(now, port, service, wire);
    }

    /// The counts of the pause policy.
    pub fn pause_counts(&self) -> PauseCounts {
        self.pause.counts()
    }

    /// How long neighbours have paused queues here by `now`, summed over ports and queues.
    pub fn paused_time(&self, now: Time) -> Time {
        match &self.ports {
            Ports::Fast(_) => Time::ZERO,
            Ports::General(ports) => {
                ports.iter().fold(Time::ZERO, |sum, port| sum + port.paused_time(now))
            }
        }
    }

    /// Storms that the ports' watchdogs have found.
    fn storms(&self) -> u64 {
        match &self.ports {
            Ports::Fast(_) => 0,
            Ports::General(ports) => ports.iter().map(GeneralPort::storms).sum(),
        }
    }

    /// Reports what its mechanisms have counted by `now`.
    pub fn report_counters(&self, now: Time, counters: &mut Counters) {
        if self.pause.is_active() {
            let named = counters.of(self.pause.kind());
            self.pause.counts().report(named);
            named.add(PAUSED, Count::Micros(self.paused_time(now)));
            if self.has_watchdogs {
                named.add("watchdog_storms", self.storms());
            }
        }
        if self.trim.is_some() {
            counters.of("trim").add("packets", self.trimmed);
        }
    }

    /// Counts the bytes of a packet that joins or leaves `port` for its ingress and asks the pause
    /// policy.
    #[cold]
    pub(super) fn count_ingress<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        enters: bool,
        wire: &mut W,
    ) {
        let packet = wire.packets()[id];
        let priority = packet.priority();
        let bytes = &mut self.ingress_bytes[packet.ingress as usize][priority as usize];
        *bytes = if enters { *bytes + packet.size as u64 } else { *bytes - packet.size as u64 };
        let load = self.ports.load(port, &packet);
        let target =
            load.map_or(PauseTarget::Priority(priority), |load| PauseTarget::Flow(load.vfid));
        let view = self.ingress_view(packet.ingress, port, target, load);
        let context = Context { now, packet: &packet, view, random: &self.random };
        let signal =
            if enters { self.pause.on_enqueue(&context) } else { self.pause.on_dequeue(&context) };
        if signal.counts || packet.has(flags::COUNTS) {
            let its = &mut wire.packets()[id].flags;
            *its = if signal.counts { *its | flags::COUNTS } else { *its & !flags::COUNTS };
        }
        self.signal(now, &view, signal, wire);
    }

    /// Shows the pause policy a packet that neither `port` nor another took.
    #[cold]
    pub(super) fn refuse_ingress<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        wire: &mut W,
    ) {
        let packet = wire.packets()[id];
        let view =
            self.ingress_view(packet.ingress, port, PauseTarget::Priority(packet.priority()), None);
        let signal =
            self.pause.on_refused(&Context { now, packet: &packet, view, random: &self.random });
        self.signal(now, &view, signal, wire);
    }

    fn ingress_view(
        &self,
        port: u16,
        egress: u16,
        target: PauseTarget,
        load: Option<Load>,
    ) -> IngressView {
        let priority = target.queue().unwrap_or_default();
        let bytes = self.ingress_bytes[port as usize][usize::from(priority)];
        let (facts, rate) = (self.memory.ingress(port, priority), self.ports.rate(egress));
        IngressView { port, egress, target, bytes, facts, load, rate }
    }

    /// Does what the pause policy wants.
    fn signal<W: Wire>(&mut self, now: Time, view: &IngressView, signal: Signal, wire: &mut W) {
        if let Some(frame) = signal.frame {
            let departs = match &mut self.ports {
                Ports::Fast(_) => now,
                Ports::General(ports) => ports[view.port as usize].send_frame(now),
            };
            wire.send_pause(view.port, frame, departs);
        }
        if let Some(at) = signal.call_at {
            wire.call_pause_check(view.port, view.target, at);
        }
    }
}
