//! Connections of hosts with several NICs: which NIC they begin at, and moving to another when a
//! link fails or comes back.
//!
//! Each end moves by itself, when its own host learns of the change. Packets name the connection
//! by its slots, so one that comes in by another NIC than before is taken as any other.
//!
//! Invariant: a connection's timer event is one of its present NIC.

use super::*;
use crate::nics::{Asks, Pair, World};

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
    fn pair(&self, now: Time, opening: &Opening, asks: Asks) -> Pair {
        let shared = &*self.shared;
        let before = (opening.src, opening.dst);
        let Some(nics) = &shared.nics else { return before };
        let world = World { plan: &shared.plan, epochs: &shared.epochs };
        if !is_answer(opening.role) {
            return nics.choose(now, world, opening.flow, opening.class, asks, before);
        }
        // An answer is on the connection of the flow before it, the other way.
        let (flow, back) = (opening.flow - 1, (before.1, before.0));
        let (dst, src) = nics.choose(now, world, flow, opening.class, asks.other(), back);
        (src, dst)
    }

    /// The pairs of NICs that a connection takes in turn at a time, as one of its ends sees it: one
    /// after the other from its own on, or that one alone.
    fn pairs(&self, now: Time, opening: &Opening, asks: Asks, own: Pair) -> Vec<Pair> {
        let shared = &*self.shared;
        let takes_several = shared.plan.takes_several_nics(opening.class);
        let Some(nics) = shared.nics.as_ref().filter(|_| takes_several) else { return vec![own] };
        let world = World { plan: &shared.plan, epochs: &shared.epochs };
        if !is_answer(opening.role) {
            return nics.turn(now, world, opening.flow, asks, own);
        }
        let turn = nics.turn(now, world, opening.flow - 1, asks.other(), (own.1, own.0));
        turn.into_iter().map(|(dst, src)| (src, dst)).collect()
    }

    /// The paths that an end of a connection begins with: those that its sender finds to work.
    pub(super) fn first_paths(
        &self,
        now: Time,
        opening: &Opening,
        of: Asks,
    ) -> Option<Box<NicPaths>> {
        let pairs = self.pairs(now, opening, Asks::Sender, (opening.src, opening.dst));
        self.nic_paths(of, opening.class, &pairs)
    }

    /// The pairs that an end moves to at a time at which its host learns of a change, if it moves.
    fn moves_to(&self, now: Time, opening: &Opening, asks: Asks) -> Option<Vec<Pair>> {
        let shared = &self.shared;
        let transport = shared.plan.traffic.transports[usize::from(opening.class)];
        let own = self.pair(now, opening, asks);
        let is_other =
            own != (opening.src, opening.dst) || shared.plan.takes_several_nics(opening.class);
        (!shared.transport.is_by_packets(transport) && is_other)
            .then(|| self.pairs(now, opening, asks, own))
    }

    /// The same, for an end whose host may have learned of changes after `from` and up to `to`.
    fn moves_since(&self, opening: &Opening, asks: Asks, span: (Time, Time)) -> Option<Vec<Pair>> {
        let shared = &self.shared;
        let own = if asks == Asks::Sender { opening.src } else { opening.dst };
        let world = World { plan: &shared.plan, epochs: &shared.epochs };
        let last = shared.nics.as_ref()?.last_change(world, own, span.0, span.1)?;
        self.moves_to(last, opening, asks)
    }

    /// An opening with the NICs that its sender takes if it was to open it at the first of these
    /// times and opens it at the second.
    pub(super) fn since(&self, opening: Opening, span: (Time, Time)) -> Opening {
        let moved = self.moves_since(&opening, Asks::Sender, span);
        let (src, dst) = moved.map_or((opening.src, opening.dst), |pairs| pairs[0]);
        Opening { src, dst, ..opening }
    }

    /// A host learns at `now` that a connection was opened to it at `at`: makes up for the changes
    /// between, which depend on when notes are read, for its ends of it.
    pub(super) fn catch_up(&mut self, opening: &Opening, at: Time, now: Time, fabric: &mut Fabric) {
        if at == now || self.shared.nics.is_none() {
            return;
        }
        if let Some(pairs) = self.moves_since(opening, Asks::Receiver, (at, now)) {
            self.move_receiver(opening.flow, &pairs, fabric);
        }
        let answers = opening.flow + 1;
        if let Role::Pings | Role::RpcRequests = opening.role
            && let Some(slot) = self.senders.slot_of(answers)
        {
            let answering = self.senders.at(slot).opening;
            if let Some(pairs) = self.moves_since(&answering, Asks::Sender, (at, now)) {
                self.move_sender(now, answers, &pairs, fabric);
            }
        }
    }

    /// Routes have changed, or the host of a NIC of this partition has learned of a change of its
    /// own links: moves the connections of this cell's hosts, or of that one.
    #[cold]
    pub fn move_connections(&mut self, now: Time, nic: Option<u32>, fabric: &mut Fabric) {
        if self.shared.nics.is_none() {
            return;
        }
        let here = fabric.events.here();
        let shared = self.shared.clone();
        let whose = |nic: u32| shared.plan.topology.host_of(self.hosts[nic as usize].id);
        let host = nic.map(whose);
        let is_here = |nic: u32, fabric: &Fabric| {
            fabric.events.of_host(nic) == here && host.is_none_or(|host| host == whose(nic))
        };
        // By flow, since the order of slots depends on partitions.
        let moved = |asks: Asks, (flow, opening): (FlowId, &Opening)| {
            self.moves_to(now, opening, asks).map(|pairs| (flow, pairs))
        };
        let sending = self.senders.iter().filter(|(_, end)| is_here(end.host, fabric));
        let sending = sending.filter_map(|(flow, end)| moved(Asks::Sender, (flow, &end.opening)));
        let receiving = self.receivers.iter().filter(|(_, end)| is_here(end.host, fabric));
        let receiving =
            receiving.filter_map(|(flow, end)| moved(Asks::Receiver, (flow, &end.opening)));
        let sending: BTreeMap<FlowId, Vec<Pair>> = sending.collect();
        let receiving: BTreeMap<FlowId, Vec<Pair>> = receiving.collect();
        for (flow, pairs) in receiving {
            self.move_receiver(flow, &pairs, fabric);
        }
        for (flow, pairs) in sending {
            self.move_sender(now, flow, &pairs, fabric);
        }
    }

    fn move_receiver(&mut self, flow: FlowId, pairs: &[Pair], fabric: &mut Fabric) {
        let Some(slot) = self.receivers.slot_of(flow) else { return };
        let ((src, dst), class) = (pairs[0], self.receivers.at(slot).opening.class);
        let (host, paths) =
            (self.shared.local_host(dst), self.nic_paths(Asks::Receiver, class, pairs));
        let end = self.receivers.at(slot);
        end.paths = paths;
        let event = HostEvent::ReceiverTimer(flow);
        move_timer(end.timer_at, event, end.host, host, fabric);
        (end.host, end.opening.src, end.opening.dst) = (host, src, dst);
    }

    fn move_sender(&mut self, now: Time, flow: FlowId, pairs: &[Pair], fabric: &mut Fabric) {
        let Some(slot) = self.senders.slot_of(flow) else { return };
        let ((src, dst), class) = (pairs[0], self.senders.at(slot).opening.class);
        let (host, paths) =
            (self.shared.local_host(src), self.nic_paths(Asks::Sender, class, pairs));
        let end = self.senders.at(slot);
        if !end.takes_others(pairs, paths) {
            return;
        }
        let old = end.timer_key();
        let place = end.egress.as_ref().and_then(|egress| egress.place());
        let (from, priority) = (end.host, end.priority);
        (end.host, end.opening.src, end.opening.dst) = (host, src, dst);
        end.timer.rename(old, end.timer_key(), &mut fabric.events);
        if let Some(place) = place {
            self.hosts[from as usize].round.put(priority, place, slot, false);
        }
        self.pump(now, slot, fabric);
    }
}

/// The event of a timer that is set, `at`, becomes one of another NIC.
fn move_timer(at: Time, event: HostEvent, from: u32, to: u32, fabric: &mut Fabric) {
    if at < Time::MAX {
        fabric.events.cancel(at, Due::Host(from, event).into());
        fabric.events.push(at, Due::Host(to, event).into());
    }
}
