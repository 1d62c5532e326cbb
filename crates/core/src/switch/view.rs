//! A switch's ports, as its policies see them.

use super::*;

/// The ports of a switch as a policy sees them.
pub(super) struct View<'a> {
    pub(super) now: Time,
    /// The packet that is decided of: where room depends on whence a packet comes, it is this
    /// one's.
    pub(super) packet: &'a Packet,
    pub(super) random: &'a Random,
    pub(super) ports: &'a mut Ports,
    pub(super) memory: &'a Memory,
    pub(super) occupancy: &'a mut Occupancy,
}

impl View<'_> {
    /// The queue of `port` by the switch's lengths.
    #[inline]
    pub(super) fn known(&mut self, port: u16) -> QueueView {
        self.occupancy.refresh(self.now, port, self.ports);
        let live = self.ports.view(self.now, port);
        self.occupancy.known(port, live)
    }
    /// Why `port` has no room for a packet of this size, or what `beyond` has against it in the
    /// port's admission.
    #[inline]
    pub(super) fn refusal(
        &self,
        port: u16,
        known: &QueueView,
        size: u64,
        beyond: impl FnOnce(&Admission) -> Option<DropReason>,
    ) -> Option<DropReason> {
        match &*self.ports {
            Ports::Fast(ports) => {
                let queue = &ports[port as usize];
                queue.lacks_room(known, size).or_else(|| beyond(&queue.admission))
            }
            Ports::General(ports) => {
                let queue = &ports[port as usize];
                let claim = Claim { size, ..Claim::of(self.packet, port) };
                queue.lacks_room(known, &claim, self.memory).or_else(|| beyond(&queue.admission))
            }
        }
    }
}

impl PortView for View<'_> {
    fn bytes(&mut self, port: u16) -> u64 {
        self.known(port).bytes
    }
    fn has_room(&mut self, port: u16, size: u64) -> bool {
        let known = self.known(port);
        self.refusal(port, &known, size, |_| None).is_none()
    }
    fn rejects(&mut self, port: u16, packet: &Packet) -> bool {
        let context =
            Context { now: self.now, packet, view: self.known(port), random: self.random };
        self.ports.admission(port).test(&context).is_some()
    }
    fn takes(&mut self, port: u16, packet: &Packet) -> Option<u64> {
        let known = self.known(port);
        let context = Context { now: self.now, packet, view: known, random: self.random };
        let refusal = self.refusal(port, &known, packet.size as u64, |it| it.test(&context));
        if refusal.is_none() { Some(known.bytes) } else { None }
    }
    fn note(&mut self, port: u16, packet: &Packet) {
        let context =
            Context { now: self.now, packet, view: self.known(port), random: self.random };
        self.ports.admission(port).commit(&context, false);
    }
}
