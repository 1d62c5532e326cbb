//! Meters: the state of each port for packets that collect telemetry (HPCC, SIGCOMM 2019
//! §4.1).
//!
//! A general port writes when a packet leaves its queue. A fast port computes that time when the
//! packet joins, before it can count what will wait behind it. It writes the rest later: when the
//! next packet arrives after that time, or for whoever is about to read the record
//! ([`Switch::complete_telemetry`]). Until then the record has the port's number in its place.
//!
//! Invariant: what is written is as it was when the packet's first bit left, whenever it is
//! written.

use super::*;
use crate::packet::telemetry::Late;

#[derive(Clone, Debug)]
pub(super) struct Meter {
    rate: Rate,
    /// Bytes that were sent; at a fast port all that it has accepted.
    bytes: u64,
    /// Packets at a fast port that have not started: when each will, its record, and the bytes up
    /// to its end.
    waiting: VecDeque<(Time, u32, u64)>,
}

impl Meter {
    /// Of a port with a link of this rate.
    pub fn new(rate: Rate) -> Meter {
        Meter { rate, bytes: 0, waiting: VecDeque::new() }
    }

    /// Completes the records of packets that have started by `now`. Nothing has been accepted since
    /// the first of them did.
    #[inline]
    fn complete(&mut self, now: Time, number: u32, packets: &mut Packets) {
        if self.waiting.front().is_some_and(|(at, ..)| *at <= now) {
            self.write(now, number, packets);
        }
    }

    fn write(&mut self, now: Time, number: u32, packets: &mut Packets) {
        while let Some((at, slot, end)) = self.waiting.pop_front_if(|(at, ..)| *at <= now) {
            let late = Late { at, number };
            packets.record_at_mut::<Telemetry>(slot).complete(late, self.bytes - end);
        }
    }
}

impl Switch {
    /// A packet has left the queue of a general port.
    #[inline]
    pub(super) fn meter<W: Wire>(&mut self, now: Time, port: u16, id: PacketId, wire: &mut W) {
        let packet = &wire.packets()[id];
        let (size, side, is_data) = (packet.size, packet.side, packet.is_data());
        let meter = &mut self.meters[port as usize];
        if is_data && let Some(telemetry) = wire.packets().record_mut::<Telemetry>(side) {
            let queue = self.ports.view(now, port).bytes;
            telemetry.push(Hop { at: now, sent: meter.bytes, queue, rate: meter.rate });
        }
        meter.bytes += u64::from(size);
    }

    /// A fast port has accepted a packet that starts at `at`.
    pub(super) fn meter_ahead<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        at: Time,
        wire: &mut W,
    ) {
        let number = self.first_number + u32::from(port);
        let meter = &mut self.meters[port as usize];
        meter.complete(now, number, wire.packets());
        let packet = &wire.packets()[id];
        let (size, side, is_data) = (u64::from(packet.size), packet.side, packet.is_data());
        let (sent, rate) = (meter.bytes, meter.rate);
        meter.bytes += size;
        if is_data && let Some(slot) = wire.packets().slot_of::<Telemetry>(side) {
            let telemetry = wire.packets().record_at_mut::<Telemetry>(slot);
            let hop = Hop { at, sent, queue: 0, rate };
            if at == now {
                telemetry.push(hop);
            } else if telemetry.push_late(hop, number) {
                meter.waiting.push_back((at, slot, meter.bytes));
            }
        }
    }

    /// Whether some of its telemetry is to be completed.
    pub fn writes_late(&self) -> bool {
        matches!(self.ports, Ports::Fast(_)) && !self.meters.is_empty()
    }

    /// Writes what is missing in the records of packets that have started at a port by `at`, which
    /// is past.
    pub fn complete_telemetry(&mut self, at: Time, port: u16, packets: &mut Packets) {
        let number = self.first_number + u32::from(port);
        self.meters[port as usize].complete(at, number, packets);
    }
}
