//! A host's NIC: it marks, ranks and labels what leaves, and puts it on the link.
//!
//! The NIC serves first come, first served at the link's rate. Behind a virtual switch whose peers
//! hold senders back it takes data only while it has room, and the switch's own packets pass what
//! waits: one packet's time at most, as the simulator's NIC serves its highest priority first.
//!
//! Invariant: a packet enters the fabric at the time at which its last bit reaches the switch.

use crate::network::Uplink;
use crate::nic_queue::NicQueue;
use crate::rank::Ranks;
use crate::virtual_switch::VirtualSwitch;
use millpond_core::importance::{First, ImportanceParams, TltParams};
use millpond_core::random::mix64;
use millpond_core::{Packet, Time};
use millpond_linux::dataplane::buffers::Buffers;
use millpond_linux::dataplane::counters::Drop;
use millpond_linux::dataplane::flow::FlowKey;
use millpond_linux::dataplane::frame::{Layers, Offload, parse, parse_head};
use millpond_linux::dataplane::packet::Packet as Bytes;
use millpond_linux::edge::Carrier;
use millpond_linux::edge::importance::{Shim, ShimParams};
use millpond_linux::encapsulation::Encapsulation;
use millpond_linux::fabric::{Fabric, Held};
use millpond_scenario::plan::Plan;

/// The shim's wait after an echo for the host's TCP to send. A host's TCP answers within
/// the write of the acknowledgement, and the driver reads it before it looks at the time.
const DELTA: Time = Time::from_us(50);

/// A NIC never has room for more than this.
const ROOM_MAX: u64 = 1 << 32;

/// An edge's decision for packets: their label, and the number of their flowcell.
pub type Stamp = (u16, u16);

/// The NIC: what is on its way to the switch.
pub struct Nic {
    uplink: Uplink,
    /// Until when the link is taken.
    busy_until: Time,
    /// Until when the virtual switch's own packets take it.
    spoken_until: Time,
    /// Data of a virtual switch is taken while less than this waits.
    room: Time,
    /// The time of the largest packet.
    packet: Time,
    /// Whether switches follow labels; otherwise they hash.
    is_followed: bool,
    /// Marks the important packets of TCP, if the plan asks for it.
    pub shim: Option<Shim>,
    /// The ranks of packets, if they have any.
    pub ranks: Option<Ranks>,
    /// The virtual switch above it, if the plan has one.
    pub switch: Option<Box<VirtualSwitch>>,
    /// Packets that it has put on the link.
    pub entered: u64,
    /// Packets that wait, if somebody samples them.
    pub queue: Option<NicQueue>,
}

/// The connection that a packet is of, if it is of TCP.
pub fn key(held: &Held) -> Option<FlowKey> {
    let layers = held.view.tcp()?;
    Some(FlowKey::of(held.bytes.header.bytes(), layers, held.view.vlan, 0))
}

/// The shim of a host, if the plan marks importance. It cannot know the last packet of a window,
/// so the first one starts the clock.
fn shim(plan: &Plan) -> Option<Shim> {
    let ImportanceParams::Tlt(tlt) = &plan.transport_choices.importance else { return None };
    Some(Shim::new(&ShimParams {
        tlt: TltParams { first: First::First, ..tlt.clone() },
        delta: DELTA,
        clock_timeout: plan.transport.min_rto,
        ..ShimParams::default()
    }))
}

/// A packet of a frame that this side has made; `None`: no buffer is free.
pub fn made(frame: &[u8], buffers: &mut Buffers) -> Option<Held> {
    let view = parse(frame)?;
    let buffer = buffers.take()?;
    buffers.bytes_mut(buffer)[..frame.len()].copy_from_slice(frame);
    let headers = view.layers().map_or(frame.len(), |layers| layers.payload);
    let bytes = Bytes::of_frame(buffers, buffer, 0..frame.len(), headers);
    if !bytes.has_payload() {
        buffers.release(buffer);
    }
    Some(Held { bytes, view, offload: Offload::default() })
}

impl Nic {
    /// Of a plan's host at this end of its link.
    pub fn new(plan: &Plan, host: u32, uplink: Uplink, is_followed: bool) -> Nic {
        let speaking = plan.edge.virtual_switch.speaking();
        let room = speaking.map_or(0, |it| it.nic_limit.get().min(ROOM_MAX));
        Nic {
            busy_until: Time::ZERO,
            spoken_until: Time::ZERO,
            room: uplink.rate.time(room),
            packet: uplink.rate.time(plan.host.packet_max()),
            is_followed,
            shim: shim(plan),
            ranks: Ranks::new(&plan.transport_choices.rank),
            switch: VirtualSwitch::new(plan, host),
            entered: 0,
            queue: None,
            uplink,
        }
    }

    /// Until when the link is taken.
    pub fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// Marks, ranks and labels a packet, and puts it on the link or has it wait for that.
    pub fn launch(
        &mut self,
        now: Time,
        mut held: Held,
        stamp: Option<Stamp>,
        fabric: &mut Fabric,
        buffers: &mut Buffers,
    ) -> Result<(), Drop> {
        if let Some(shim) = &mut self.shim {
            shim.outgoing(now, &mut held.bytes, &held.view, buffers);
        }
        self.send(now, held, stamp, fabric, buffers)
    }

    /// The same with a packet that has its mark.
    fn send(
        &mut self,
        now: Time,
        mut held: Held,
        stamp: Option<Stamp>,
        fabric: &mut Fabric,
        buffers: &mut Buffers,
    ) -> Result<(), Drop> {
        let (header, length) = (held.bytes.header.bytes(), held.bytes.length());
        let mut packet = match fabric.classifier().read(now, header, length, &held.view) {
            Ok(packet) => packet,
            Err(reason) => {
                held.bytes.end(buffers);
                return Err(reason);
            }
        };
        if let Some((label, flowcell)) = stamp {
            packet.entropy = match self.is_followed {
                true => label.into(),
                false => mix64(u64::from(packet.flow) << 32 | u64::from(flowcell)) as u32,
            };
            packet.set_flowcell(flowcell);
        }
        let passes = match &mut self.switch {
            Some(switch) => switch.leave(now, packet, held),
            None => Some((packet, held)),
        };
        if let Some((packet, held)) = passes {
            self.transmit(now, packet, held, fabric, buffers);
        }
        self.take_turns(now, fabric, buffers);
        Ok(())
    }

    /// Takes data that may leave from the virtual switch, while there is room.
    fn take_turns(&mut self, now: Time, fabric: &mut Fabric, buffers: &Buffers) {
        while self.busy_until.saturating_sub(now) < self.room
            && let Some((packet, held)) =
                self.switch.as_mut().and_then(|switch| switch.next_leaving(now))
        {
            self.transmit(now, packet, held, fabric, buffers);
        }
    }

    /// Ranks a packet, and puts it on the link behind all others.
    fn transmit(
        &mut self,
        now: Time,
        mut packet: Packet,
        held: Held,
        fabric: &mut Fabric,
        buffers: &Buffers,
    ) {
        if let (Some(ranks), Some(key)) = (&mut self.ranks, key(&held)) {
            ranks.rank(now, &mut packet, key);
        }
        let starts = self.busy_until.max(now);
        self.queue.iter_mut().for_each(|queue| queue.join(now, starts, packet.size));
        let departs = starts + self.uplink.rate.time(packet.size.into());
        self.busy_until = departs;
        let arrives = self.carry(starts, departs, &mut packet);
        let jitter = self.uplink.jitter.as_mut();
        let arrives = jitter.map_or(arrives, |jitter| jitter.delay(arrives));
        fabric.enter((departs, arrives), self.uplink.line, packet, held, buffers);
    }

    /// When a packet that is on the link from `starts` to `departs` has crossed it.
    fn carry(&mut self, starts: Time, departs: Time, packet: &mut Packet) -> Time {
        self.entered += 1;
        let arrives = departs + self.uplink.delay;
        if !self.uplink.outages.is_empty() {
            self.uplink.outages.strike(packet, starts, arrives);
        }
        arrives
    }

    /// Puts a packet of the virtual switch on the link. The packet under way ends before it, and
    /// all that waits is later by its time. No jitter: that would keep it behind what it passes.
    fn speak(
        &mut self,
        now: Time,
        (mut packet, frame): (Packet, Vec<u8>),
        fabric: &mut Fabric,
        buffers: &mut Buffers,
    ) {
        // Without a buffer it is lost, as a packet can be.
        let Some(held) = made(&frame, buffers) else { return };
        let free = self.busy_until.min(now + self.packet);
        let starts = free.max(now).max(self.spoken_until);
        let time = self.uplink.rate.time(packet.size.into());
        self.spoken_until = starts + time;
        self.busy_until = self.busy_until.max(now) + time;
        let arrives = self.carry(starts, starts + time, &mut packet);
        fabric.enter((starts + time, arrives), self.uplink.line, packet, held, buffers);
    }

    /// Brings the virtual switch to `seen`, by which all that has come was handed to it, and sends
    /// what it has for others.
    pub fn serve_switch(
        &mut self,
        (now, seen): (Time, Time),
        fabric: &mut Fabric,
        buffers: &mut Buffers,
    ) {
        let Some(switch) = &mut self.switch else { return };
        switch.run(seen, buffers);
        while let Some(word) = self.switch.as_mut().and_then(|switch| switch.next_word()) {
            self.speak(now, word, fabric, buffers);
        }
        self.take_turns(now, fabric, buffers);
    }

    /// When [`Nic::serve_switch`] is due by itself.
    pub fn switch_deadline(&self) -> Option<Time> {
        let has_room = self.busy_until.saturating_sub(self.room);
        self.switch.as_ref().and_then(|switch| switch.deadline(has_room))
    }

    /// Sends what the shim has due: forced packets and echoes.
    pub fn send_due(&mut self, now: Time, fabric: &mut Fabric, buffers: &mut Buffers) {
        let Some(shim) = self.shim.as_mut().filter(|it| it.deadline().is_some_and(|at| at <= now))
        else {
            return;
        };
        let mut packets = Vec::new();
        shim.due(now, &mut |frame: &[u8]| packets.extend(made(frame, buffers)));
        for held in packets {
            // The host's own frames had a way to the same address.
            let _ = self.send(now, held, None, fabric, buffers);
        }
    }
}

/// The NIC as what carries an edge's packets.
pub struct Carry<'a> {
    /// The NIC.
    pub nic: &'a mut Nic,
    /// The fabric that its link leads to.
    pub fabric: &'a mut Fabric,
}

/// The offload of a packet whose transport checksum may be partial.
fn offload(partial: bool, layers: Option<&Layers>) -> Offload {
    match layers.filter(|_| partial) {
        Some(layers) => Offload::of(&Layers { end: layers.payload, ..*layers }, 0),
        None => Offload::default(),
    }
}

impl Carrier for Carry<'_> {
    fn carry(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        _: usize,
        stamp: Encapsulation,
        packets: &mut Vec<Bytes>,
    ) -> Result<(), Drop> {
        let mut result = Ok(());
        for mut bytes in packets.drain(..) {
            let view = parse_head(bytes.header.bytes(), bytes.length());
            let sent = match view {
                Some(view) => {
                    let offload = offload(stamp.partial, view.layers());
                    let held = Held { bytes, view, offload };
                    let stamp = Some((stamp.label, stamp.flowcell));
                    self.nic.launch(now, held, stamp, self.fabric, buffers)
                }
                None => {
                    bytes.end(buffers);
                    Err(Drop::Runt)
                }
            };
            result = result.and(sent);
        }
        result
    }
}
