//! The NIC: a host's one port towards the network.
//!
//! Invariant: what is offered is transmitted or discarded once, through the wire.

use super::{Call, HostWire, passes};
use crate::packet::{Packet, PacketId, flags};
use crate::random::{Random, Stream};
use crate::switch::QueueView;
use crate::switch::buffer::Memory;
use crate::switch::pause::{PauseFrame, PauseTarget};
use crate::switch::port::{FastPort, GeneralPort, PortConfig, Service, Terms};
use crate::units::Time;

/// A NIC's transmit queue, with random numbers for a marking that draws. The large kind is the
/// usual one, and every packet's: it is not behind a pointer.
#[allow(clippy::large_enum_variant)]
pub enum Nic {
    /// First come, first served: a departure is known on arrival.
    Fast(FastPort, Random),
    General(Box<(GeneralPort, Memory, Random)>),
    /// The driver's own: it takes each packet at once, and queues it where it must.
    Driver,
}

/// The outcome of a packet that was offered to a NIC.
pub(super) enum Offered {
    /// Its last bit leaves then (or left: it was dropped).
    Departs(Time),
    /// It waits; the wire is notified when it departs.
    Waits,
}

impl Nic {
    /// A NIC with an empty queue.
    pub fn new(config: PortConfig, memory: Memory, fast: bool, random: Stream) -> Nic {
        match fast {
            true => Nic::Fast(FastPort::new(config), random.into()),
            false => Nic::General(Box::new((GeneralPort::new(config), memory, random.into()))),
        }
    }

    /// As [`Nic::offer`]. A driver's NIC keeps no packet.
    pub(super) fn put<W: HostWire>(&mut self, now: Time, packet: Packet, wire: &mut W) {
        if let Nic::Driver = self {
            passes!(Nic);
            return wire.leave(packet, now);
        }
        let id = wire.inject(packet);
        self.offer(now, id, wire);
    }

    /// Queues a packet, or drops it.
    #[inline]
    pub(super) fn offer<W: HostWire>(&mut self, now: Time, id: PacketId, wire: &mut W) -> Offered {
        passes!(Nic);
        let refused = match self {
            Nic::Fast(port, random) => {
                match port.offer(now, &mut wire.packets()[id], &Terms::plain(random)) {
                    Ok(departs) => {
                        wire.transmit(id, departs);
                        return Offered::Departs(departs);
                    }
                    Err(reason) => reason,
                }
            }
            Nic::General(inner) => {
                let (port, memory, random) = &mut **inner;
                let packet = &mut wire.packets()[id];
                match port.pass(now, id, packet, memory, &Terms::plain(random)) {
                    Ok(Some(departs)) => {
                        act(Service { transmit: Some((id, departs)), call_at: None }, wire);
                        return Offered::Waits;
                    }
                    Ok(None) => {
                        let service = port.serve(now, wire.packets(), memory, random);
                        act(service, wire);
                        return Offered::Waits;
                    }
                    Err(reason) => reason,
                }
            }
            Nic::Driver => {
                wire.transmit(id, now);
                return Offered::Departs(now);
            }
        };
        wire.discard(id, refused);
        Offered::Departs(now)
    }

    /// A general NIC's link may be free.
    #[inline]
    pub(super) fn on_ready<W: HostWire>(&mut self, now: Time, wire: &mut W) {
        let Nic::General(inner) = self else { return };
        let (port, memory, random) = &mut **inner;
        let service = port.on_ready(now, wire.packets(), memory, random);
        act(service, wire);
    }

    /// The switch pauses a target, or lets it go on. Where switches pause, NICs are general ones.
    pub(super) fn on_pause<W: HostWire>(&mut self, now: Time, frame: PauseFrame, wire: &mut W) {
        let Nic::General(inner) = self else { return };
        let (port, memory, random) = &mut **inner;
        port.on_pause(now, frame.target, now.saturating_add(frame.duration));
        let service = port.serve(now, wire.packets(), memory, random);
        act(service, wire);
    }

    /// When the link is free, if a packet is in transmission at `now`. Packets that wait here and
    /// may be served are served before that.
    pub(super) fn link_free_at<W: HostWire>(&mut self, now: Time, wire: &mut W) -> Option<Time> {
        let busy_until = match self {
            Nic::Fast(port, _) => port.busy_until(),
            Nic::General(inner) => {
                let (port, memory, random) = &mut **inner;
                let service = port.serve(now, wire.packets(), memory, random);
                act(service, wire);
                port.busy_until()
            }
            Nic::Driver => Time::ZERO,
        };
        (busy_until > now).then_some(busy_until)
    }

    /// Until when a target is paused, if it is. Where switches pause, NICs are general ones.
    pub(super) fn resumes_at(&self, now: Time, target: PauseTarget) -> Option<Time> {
        match self {
            Nic::Fast(..) | Nic::Driver => None,
            Nic::General(inner) => inner.0.resumes_at(now, target),
        }
    }

    /// The number by which pauses name the flow of this entropy, if they stop flows here.
    pub(super) fn vfid(&self, entropy: u32) -> Option<u16> {
        match self {
            Nic::Fast(..) | Nic::Driver => None,
            Nic::General(inner) => inner.0.vfid_of(entropy),
        }
    }

    /// Whether higher priorities are served first.
    pub(super) fn serves_by_priority(&self) -> bool {
        matches!(self, Nic::General(inner) if inner.0.serves_by_priority())
    }

    /// How long queues have been paused here by `now`, summed over them.
    pub(super) fn paused_time(&self, now: Time) -> Time {
        match self {
            Nic::Fast(..) | Nic::Driver => Time::ZERO,
            Nic::General(inner) => inner.0.paused_time(now),
        }
    }

    /// All packets that wait here.
    pub(super) fn queued(&self) -> Vec<PacketId> {
        match self {
            Nic::Fast(..) | Nic::Driver => Vec::new(),
            Nic::General(inner) => inner.0.queued(),
        }
    }

    /// The queue just before `at`.
    pub(super) fn occupancy(&mut self, at: Time) -> QueueView {
        match self {
            Nic::Fast(port, _) => port.settled_view(Time::from_ps(at.as_ps().saturating_sub(1))),
            Nic::General(inner) => inner.0.view(),
            Nic::Driver => QueueView::default(),
        }
    }

    /// The packets that wait, in no order; none of a fast NIC, which keeps none.
    pub(super) fn packets(&self) -> Vec<PacketId> {
        match self {
            Nic::General(inner) => inner.0.waiting(),
            Nic::Fast(..) | Nic::Driver => Vec::new(),
        }
    }

    /// Bytes that wait here, where packets do.
    pub(super) fn waiting(&self) -> u64 {
        match self {
            Nic::Fast(..) | Nic::Driver => 0,
            Nic::General(inner) => inner.0.view().bytes,
        }
    }

    /// Packets marked here.
    pub(super) fn marked(&self) -> u64 {
        match self {
            Nic::Fast(port, _) => port.marked,
            Nic::General(inner) => inner.0.marked,
            Nic::Driver => 0,
        }
    }
}

#[inline]
fn act<W: HostWire>(service: Service, wire: &mut W) {
    if let Some(at) = service.call_at {
        wire.call(at, Call::Ready);
    }
    if let Some((id, departs)) = service.transmit {
        let packet = wire.packets()[id];
        wire.transmit(id, departs);
        if packet.has(flags::LAST) {
            wire.departs(&packet, departs);
        }
    }
}
