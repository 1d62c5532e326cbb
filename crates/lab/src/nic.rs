//! A host's NIC: it puts what leaves on the link.
//!
//! The NIC serves first come, first served at the link's rate. Behind a virtual switch whose peers
//! hold senders back it takes data only while it has room, and the switch's own packets pass what
//! waits: one packet's time at most, as the simulator's NIC serves its highest priority first.
//!
//! Invariant: a packet enters the fabric at the time at which its last bit reaches the switch.

use crate::network::Uplink;
use crate::nic_queue::NicQueue;
use crate::words;
use millpond_core::packet::Words;
use millpond_core::{Packet, Time};
use millpond_linux::dataplane::buffers::Buffers;
use millpond_linux::dataplane::counters::Drop;
use millpond_linux::edge::Carrier;
use millpond_linux::fabric::{Fabric, Held};
use millpond_scenario::plan::Plan;

/// A NIC never has room for more than this.
const ROOM_MAX: u64 = 1 << 32;

/// The NIC: what is on its way to the switch.
pub struct Nic {
    uplink: Uplink,
    /// Until when the link is taken.
    pub busy_until: Time,
    /// Until when the virtual switch's own packets take it.
    spoken_until: Time,
    /// Data of a virtual switch is taken while less than this waits.
    pub room: Time,
    /// The time of the largest packet.
    packet: Time,
    /// Packets that it has put on the link.
    pub entered: u64,
    /// Packets that wait, if somebody samples them.
    pub queue: Option<NicQueue>,
}

impl Nic {
    /// Of a plan's host at this end of its link.
    pub fn new(plan: &Plan, uplink: Uplink) -> Nic {
        let speaking = plan.edge.virtual_switch.speaking();
        let room = speaking.map_or(0, |it| it.nic_limit.get().min(ROOM_MAX));
        Nic {
            busy_until: Time::ZERO,
            spoken_until: Time::ZERO,
            room: uplink.rate.time(room),
            packet: uplink.rate.time(plan.host.packet_max()),
            entered: 0,
            queue: None,
            uplink,
        }
    }

    /// Puts a packet on the link behind all others.
    fn transmit(
        &mut self,
        now: Time,
        mut packet: Packet,
        held: Held,
        fabric: &mut Fabric,
        buffers: &Buffers,
    ) {
        let starts = self.busy_until.max(now);
        self.queue.iter_mut().for_each(|queue| queue.join(now, starts, packet.size));
        let departs = starts + self.uplink.rate.time(packet.size.into());
        self.busy_until = departs;
        let arrives = self.cross(starts, departs, &mut packet);
        let jitter = self.uplink.jitter.as_mut();
        let arrives = jitter.map_or(arrives, |jitter| jitter.delay(arrives));
        fabric.enter(departs, arrives, self.uplink.line, packet, held, buffers);
    }

    /// When a packet that is on the link from `starts` to `departs` has crossed it.
    fn cross(&mut self, starts: Time, departs: Time, packet: &mut Packet) -> Time {
        self.entered += 1;
        let arrives = departs + self.uplink.delay;
        if !self.uplink.outages.is_empty() {
            self.uplink.outages.strike(packet, starts, arrives);
        }
        arrives
    }

    /// Puts a packet of the virtual switch on the link. The packet under way ends before it, and
    /// all that waits is later by its time. No jitter: that would keep it behind what it passes.
    pub fn speak(
        &mut self,
        now: Time,
        mut packet: Packet,
        words: &Words,
        fabric: &mut Fabric,
        buffers: &mut Buffers,
    ) {
        // Without a buffer it is lost, as a packet can be.
        let Some(held) = Held::copy(&words::frame(&packet, words), buffers) else { return };
        let free = self.busy_until.min(now + self.packet);
        let starts = free.max(now).max(self.spoken_until);
        let time = self.uplink.rate.time(packet.size.into());
        self.spoken_until = starts + time;
        self.busy_until = self.busy_until.max(now) + time;
        let arrives = self.cross(starts, starts + time, &mut packet);
        fabric.enter(starts + time, arrives, self.uplink.line, packet, held, buffers);
    }
}

/// The NIC as what carries an edge's packets.
pub struct Carry<'a> {
    pub nic: &'a mut Nic,
    /// The fabric that its link leads to.
    pub fabric: &'a mut Fabric,
}

impl Carrier for Carry<'_> {
    fn carry(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        packets: &[Packet],
        frames: &mut Vec<Held>,
    ) -> Result<(), Drop> {
        for (packet, held) in packets.iter().zip(frames.drain(..)) {
            self.nic.transmit(now, *packet, held, self.fabric, buffers);
        }
        Ok(())
    }

    fn has_room(&self, now: Time) -> bool {
        self.nic.busy_until.saturating_sub(now) < self.nic.room
    }
}
