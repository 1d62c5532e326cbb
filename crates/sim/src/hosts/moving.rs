//! Connections of hosts with several NICs: which NIC they begin at, and moving to another when a
//! link fails or comes back.
//!
//! Each end moves by itself, when its own host learns of the change. Packets name the connection
//! by its slots, so one that comes in by another NIC than before is taken as any other.
//!
//! Invariant: a connection's timer event is one of its present NIC.

use super::*;
use crate::nics::Asks;

/// Whether a connection is the other direction of the one before it.
fn is_answer(role: Role) -> bool {
    matches!(role, Role::Response | Role::RpcResponses | Role::Pongs)
}

impl Hosts {
    /// The same connection with the addresses of the NICs that it begins with. An answer takes
    /// those of what it answers.
    pub(super) fn placed(&self, now: Time, opening: Opening) -> Opening {
        if is_answer(opening.role) {
            return opening;
        }
        let (src, dst) = self.pair(now, &opening, Asks::Sender);
        Opening { src, dst, ..opening }
    }

    /// The NICs of a connection at a time, as one of its ends sees it.
    fn pair(&self, now: Time, opening: &Opening, asks: Asks) -> (u32, u32) {
        let shared = &*self.shared;
        let before = (opening.src, opening.dst);
        let Some(nics) = &shared.nics else { return before };
        let world = (&shared.plan, &*shared.epochs);
        if !is_answer(opening.role) {
            return nics.choose(now, world, (opening.flow, opening.class), (asks, before));
        }
        // An answer is on the connection of the flow before it, the other way.
        let other = if asks == Asks::Sender { Asks::Receiver } else { Asks::Sender };
        let asked = (opening.flow - 1, opening.class);
        let (dst, src) = nics.choose(now, world, asked, (other, (before.1, before.0)));
        (src, dst)
    }

    /// Links or routes have changed: moves the connections of this cell's hosts.
    #[cold]
    pub fn move_connections(&mut self, now: Time, fabric: &mut Fabric) {
        if self.shared.nics.is_none() {
            return;
        }
        let here = fabric.events.here();
        let is_here = |host: u32, fabric: &Fabric| fabric.events.of_host(host) == here;
        let shared = self.shared.clone();
        let stays = |opening: &Opening| {
            let transport = shared.plan.traffic.transports[usize::from(opening.class)];
            shared.transport.is_scheduled(transport)
        };
        // By flow, since the order of slots depends on partitions.
        let mut sending: Vec<(FlowId, (u32, u32))> = Vec::new();
        for (flow, it) in self.senders.iter().filter(|(_, it)| is_here(it.host, fabric)) {
            let pair = self.pair(now, &it.opening, Asks::Sender);
            if !stays(&it.opening) && pair != (it.opening.src, it.opening.dst) {
                sending.push((flow, pair));
            }
        }
        sending.sort_unstable();
        let mut receiving: Vec<(FlowId, (u32, u32))> = Vec::new();
        for (flow, it) in self.receivers.iter().filter(|(_, it)| is_here(it.host, fabric)) {
            let pair = self.pair(now, &it.opening, Asks::Receiver);
            if !stays(&it.opening) && pair != (it.opening.src, it.opening.dst) {
                receiving.push((flow, pair));
            }
        }
        receiving.sort_unstable();
        for (flow, pair) in receiving {
            self.move_receiver(flow, pair, fabric);
        }
        for (flow, pair) in sending {
            self.move_sender(now, flow, pair, fabric);
        }
    }

    fn move_receiver(&mut self, flow: FlowId, (src, dst): (u32, u32), fabric: &mut Fabric) {
        let Some(slot) = self.receivers.slot_of(flow) else { return };
        let host = self.shared.local_host(dst);
        let it = self.receivers.at(slot);
        let key = |host: u32| Key::from(Due::Host(host, HostEvent::ReceiverTimer(flow)));
        if it.timer_at < Time::MAX {
            fabric.events.cancel(it.timer_at, key(it.host));
            fabric.events.push(it.timer_at, key(host));
        }
        (it.host, it.opening.src, it.opening.dst) = (host, src, dst);
    }

    fn move_sender(
        &mut self,
        now: Time,
        flow: FlowId,
        (src, dst): (u32, u32),
        fabric: &mut Fabric,
    ) {
        let Some(slot) = self.senders.slot_of(flow) else { return };
        let host = self.shared.local_host(src);
        let it = self.senders.at(slot);
        let key = |host: u32| Key::from(Due::Host(host, HostEvent::SenderTimer(flow)));
        if it.timer_at < Time::MAX {
            fabric.events.cancel(it.timer_at, key(it.host));
            fabric.events.push(it.timer_at, key(host));
        }
        let place = it.egress.as_ref().and_then(|egress| egress.place());
        let (from, priority) = (it.host, it.priority);
        (it.host, it.opening.src, it.opening.dst) = (host, src, dst);
        if let Some(place) = place {
            self.hosts[from as usize].round.put(priority, (place, slot), false);
        }
        self.pump(now, slot, fabric);
    }
}
