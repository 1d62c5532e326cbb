//! A host's NIC: one port towards the network, and what each flow may have waiting there.
//!
//! The per-flow limit is Linux's TCP Small Queues: a flow that has as much in the NIC as it may is not asked for more
//! until one of its segments has left in full. Segments are the transport's super-segments; the NIC cuts them.
//!
//! Invariant: what a flow has waiting never exceeds the limit, and every segment handed down is accounted for until its
//! last packet has left.

use crate::events::{Class, Key};
use crate::fabric::Fabric;
use crate::limiter::Limiter;
use millpond_core::random::Random;
use millpond_core::switch::QueueView;
use millpond_core::switch::buffer::Memory;
use millpond_core::switch::pause::PauseFrame;
use millpond_core::switch::port::{FastPort, GeneralPort, PortConfig, Service, Terms};
use millpond_core::{PacketId, Time};
use std::collections::VecDeque;

/// A NIC's transmit queue, with random numbers for a marking that draws.
pub enum Nic {
    /// First come, first served: a departure is known on arrival.
    Fast(FastPort, Random),
    /// Anything else.
    General(Box<(GeneralPort, Memory, Random)>),
    /// Either of them behind the host's limits.
    Limited(Box<Limited>),
}

/// A NIC whose host has limits: they are asked first.
pub struct Limited {
    /// The NIC; never limited itself.
    pub nic: Nic,
    /// The limits.
    pub limiter: Limiter,
}

/// What became of a packet that was offered to a NIC.
pub enum Offered {
    /// Its last bit leaves then (or left: it was dropped).
    Departs(Time),
    /// It waits; the packet that the NIC has begun to send, if any, and when its last bit leaves.
    Waits(Option<(PacketId, Time)>),
    /// Nothing yet: the host's limits are to be asked first.
    Asks,
}

impl Nic {
    /// A NIC with an empty queue.
    pub fn new(config: PortConfig, memory: Memory, fast: bool, random: Random) -> Nic {
        match fast {
            true => Nic::Fast(FastPort::new(config), random),
            false => Nic::General(Box::new((GeneralPort::new(config), memory, random))),
        }
    }

    /// Queues a packet for out-link `out`, or drops it. The caller transmits what [`Offered::Waits`] names.
    #[inline]
    pub fn offer(&mut self, now: Time, out: u32, id: PacketId, fabric: &mut Fabric) -> Offered {
        let refused = match self {
            Nic::Fast(port, random) => match port.offer(now, &mut fabric.packets[id], &Terms::plain(random)) {
                Ok(departs) => {
                    fabric.transmit(out, id, departs);
                    return Offered::Departs(departs);
                }
                Err(reason) => reason,
            },
            Nic::General(inner) => {
                let (port, memory, random) = &mut **inner;
                match port.offer(now, id, &mut fabric.packets[id], memory, &Terms::plain(random)) {
                    Ok(()) => {
                        let service = port.serve(now, &mut fabric.packets, memory, random);
                        return Offered::Waits(act(out, service, fabric));
                    }
                    Err(reason) => reason,
                }
            }
            Nic::Limited(_) => return Offered::Asks,
        };
        fabric.discard(id, refused);
        Offered::Departs(now)
    }

    /// A general NIC's link is free: what it begins to send, for the caller to transmit.
    pub fn on_ready(&mut self, now: Time, out: u32, fabric: &mut Fabric) -> Option<(PacketId, Time)> {
        match self {
            Nic::Fast(..) => None,
            Nic::General(inner) => {
                let (port, memory, random) = &mut **inner;
                let service = port.on_ready(now, &mut fabric.packets, memory, random);
                act(out, service, fabric)
            }
            Nic::Limited(inner) => inner.nic.on_ready(now, out, fabric),
        }
    }

    /// The switch pauses a target, or lets it go on: what the NIC begins to send, for the caller to
    /// transmit. Where switches pause, NICs are general ones.
    pub fn on_pause(
        &mut self,
        now: Time,
        out: u32,
        frame: PauseFrame,
        fabric: &mut Fabric,
    ) -> Option<(PacketId, Time)> {
        match self {
            Nic::Fast(..) => None,
            Nic::General(inner) => {
                let (port, memory, random) = &mut **inner;
                port.on_pause(now, frame.target, now.saturating_add(frame.duration));
                let service = port.serve(now, &mut fabric.packets, memory, random);
                act(out, service, fabric)
            }
            Nic::Limited(inner) => inner.nic.on_pause(now, out, frame, fabric),
        }
    }

    /// How long queues have been paused here by `now`, summed over them.
    pub fn paused_time(&self, now: Time) -> Time {
        match self {
            Nic::Fast(..) => Time::ZERO,
            Nic::General(inner) => inner.0.paused_time(now),
            Nic::Limited(inner) => inner.nic.paused_time(now),
        }
    }

    /// All packets that wait here, for the audit.
    pub fn queued(&self) -> Vec<PacketId> {
        match self {
            Nic::Fast(..) => Vec::new(),
            Nic::General(inner) => inner.0.queued(),
            Nic::Limited(inner) => {
                let mut all = inner.nic.queued();
                all.extend(inner.limiter.queued());
                all
            }
        }
    }

    /// What waits just before `at`, which is after all that the NIC was told; what a limit holds
    /// back is not there yet.
    pub fn occupancy(&mut self, at: Time) -> QueueView {
        match self {
            Nic::Fast(port, _) => port.settled_view(Time::from_ps(at.as_ps().saturating_sub(1))),
            Nic::General(inner) => inner.0.view(),
            Nic::Limited(inner) => inner.nic.occupancy(at),
        }
    }

    /// Packets marked here.
    pub fn marked(&self) -> u64 {
        match self {
            Nic::Fast(port, _) => port.marked,
            Nic::General(inner) => inner.0.marked,
            Nic::Limited(inner) => inner.nic.marked() + inner.limiter.marked,
        }
    }

    /// The host's limits.
    pub fn limited(&mut self) -> Option<&mut Limited> {
        match self {
            Nic::Limited(inner) => Some(inner),
            _ => None,
        }
    }
}

fn act(out: u32, service: Service, fabric: &mut Fabric) -> Option<(PacketId, Time)> {
    if let Some(at) = service.call_at {
        fabric.events.push(at, Key::new(Class::PortReady, out, 0));
    }
    service.transmit
}

/// What one flow has waiting in its NIC.
#[derive(Debug)]
pub struct Share {
    limit: u64,
    waiting: u64,
    /// By segment: its bytes, and when its last packet leaves (`Time::MAX` while unknown).
    segments: VecDeque<(u32, Time)>,
    /// When the flow will be woken; `Time::MAX`: not at all.
    pub wake_at: Time,
    /// The flow waits for room.
    pub wanted: bool,
    /// What may wait, of a flow whose host has limits: to all others it never has room, and who hands down for it asks
    /// [`Share::room_at_limit`].
    behind_limit: Option<u64>,
}

impl Share {
    /// Nothing waits.
    pub fn new(limit: u64) -> Share {
        Share { limit, waiting: 0, segments: VecDeque::new(), wake_at: Time::MAX, wanted: false, behind_limit: None }
    }

    /// Nothing waits, of a flow whose host has limits.
    pub fn behind_limit(limit: u64) -> Share {
        // One byte waits for ever, and none is allowed.
        Share { waiting: 1, behind_limit: Some(limit), ..Share::new(0) }
    }

    /// Whether the flow's host has limits.
    #[inline]
    pub fn is_behind_limit(&self) -> bool {
        self.behind_limit.is_some()
    }

    /// As [`Share::room`], of a flow whose host has limits.
    pub fn room_at_limit(&mut self, now: Time, whole: u32) -> Option<u32> {
        let Some(limit) = self.behind_limit else { return self.room(now, whole) };
        (self.limit, self.waiting) = (limit, self.waiting - 1);
        let room = self.room(now, whole);
        (self.limit, self.waiting) = (0, self.waiting + 1);
        room
    }

    /// How much the flow may hand down now, at most `whole`; less than a whole segment only where nothing waits.
    pub fn room(&mut self, now: Time, whole: u32) -> Option<u32> {
        while let Some(&(bytes, departs)) = self.segments.front() {
            if departs > now {
                break;
            }
            self.waiting -= bytes as u64;
            self.segments.pop_front();
        }
        let room = self.limit.saturating_sub(self.waiting);
        if room >= whole as u64 {
            Some(whole)
        } else if self.waiting == 0 {
            Some(room as u32)
        } else {
            None
        }
    }

    /// A segment was handed down.
    pub fn add(&mut self, bytes: u32, departs: Time) {
        self.segments.push_back((bytes, departs));
        self.waiting += bytes as u64;
    }

    /// The first segment whose departure was unknown leaves then.
    pub fn leaves(&mut self, departs: Time) {
        if let Some(segment) = self.segments.iter_mut().find(|(_, at)| *at == Time::MAX) {
            segment.1 = departs;
        }
    }

    /// When the first segment leaves (`Time::MAX`: nothing waits, or it is not known yet).
    pub fn first_leaves(&self) -> Time {
        self.segments.front().map_or(Time::MAX, |(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_waits_for_a_whole_segment_to_leave() {
        let mut share = Share::new(128 << 10);
        let whole = 45 * 1448;
        for departs in [10, 20] {
            assert_eq!(share.room(Time::ZERO, whole), Some(whole));
            share.add(whole, Time::from_us(departs));
        }
        assert_eq!(share.room(Time::from_us(9), whole), None);
        assert_eq!(share.first_leaves(), Time::from_us(10));
        assert_eq!(share.room(Time::from_us(10), whole), Some(whole));
    }

    #[test]
    fn a_limit_below_a_segment_still_lets_something_through() {
        let mut share = Share::new(3_000);
        assert_eq!(share.room(Time::ZERO, 65_160), Some(3_000));
        share.add(2_896, Time::MAX);
        assert_eq!(share.room(Time::from_us(5), 65_160), None);
        share.leaves(Time::from_us(6));
        assert_eq!(share.room(Time::from_us(6), 65_160), Some(3_000));
    }
}
