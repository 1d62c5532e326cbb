//! Data that a host's kernel has sent and that may not leave yet: its flow is held, or it waits for
//! its turn at the NIC.
//!
//! Flows that may send take turns of a packet. A host keeps as much as its kernel has under way,
//! which congestion windows and socket buffers bound.
//!
//! Invariant: packets of a flow leave in the order in which they came; a flow that is not held and
//! has packets has one turn.

use millpond_core::overlay::Target;
use millpond_core::packet::overlay::Whom;
use millpond_core::{FlowId, HostId, Packet, Time};
use millpond_linux::fabric::Held;
use std::collections::{BTreeMap, VecDeque};

/// A flow of this host: where it goes to, and which it is.
type Key = (HostId, FlowId);

/// A flow with packets that wait.
struct Flow {
    class: u16,
    packets: VecDeque<(Packet, Held)>,
    /// Since when it is held, if it is.
    held_since: Option<Time>,
}

/// A flow whose turn it is.
pub struct Turn {
    /// Its class of traffic.
    pub class: u16,
    /// Which it is.
    pub flow: FlowId,
    /// Where it goes to.
    pub to: HostId,
    /// Packets that wait.
    pub packets: u32,
}

/// The flows of a host.
#[derive(Default)]
pub struct Waiting {
    flows: BTreeMap<Key, Flow>,
    turns: VecDeque<Key>,
    /// How long flows were held, summed over them.
    held: Time,
}

impl Waiting {
    /// A packet of a class waits; `is_held` says whether its flow is held, if that is new here.
    pub fn join(
        &mut self,
        now: Time,
        class: u16,
        (packet, held): (Packet, Held),
        is_held: impl FnOnce() -> bool,
    ) {
        let key = (packet.dst, packet.flow);
        let turns = &mut self.turns;
        let flow = self.flows.entry(key).or_insert_with(|| {
            let held_since = is_held().then_some(now);
            if held_since.is_none() {
                turns.push_back(key);
            }
            Flow { class, packets: VecDeque::new(), held_since }
        });
        flow.packets.push_back((packet, held));
    }

    /// Whether some flow may send.
    pub fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// The flow whose turn it is. [`Waiting::take_turn`] follows.
    pub fn next_turn(&self) -> Option<Turn> {
        let &(to, flow) = self.turns.front()?;
        let Flow { class, packets, .. } = self.flows.get(&(to, flow))?;
        Some(Turn { class: *class, flow, to, packets: packets.len() as u32 })
    }

    /// The flow whose turn it is sends a packet, which is returned, or may not send: it is held.
    pub fn take_turn(
        &mut self,
        now: Time,
        key: (HostId, FlowId),
        may: bool,
    ) -> Option<(Packet, Held)> {
        self.turns.pop_front();
        let flow = self.flows.get_mut(&key)?;
        if !may {
            flow.held_since = Some(now);
            return None;
        }
        let leaves = flow.packets.pop_front();
        match flow.packets.is_empty() {
            true => drop(self.flows.remove(&key)),
            false => self.turns.push_back(key),
        }
        leaves
    }

    /// Another switch has said something of a target: flows that it covers are held from now on, or
    /// go on, as `is_held` says of a class and a flow.
    pub fn settle(
        &mut self,
        now: Time,
        (peer, target): (HostId, &Target),
        is_held: impl Fn(u16, FlowId) -> bool,
    ) {
        let flows = match Whom::of(target) {
            Whom::Flow { flow, .. } => (peer, flow)..=(peer, flow),
            Whom::Host | Whom::Application(_) => (peer, 0)..=(peer, FlowId::MAX),
        };
        for (key, flow) in self.flows.range_mut(flows) {
            match (flow.held_since, is_held(flow.class, key.1)) {
                (None, true) => {
                    flow.held_since = Some(now);
                    self.turns.retain(|turn| turn != key);
                }
                (Some(since), false) => {
                    flow.held_since = None;
                    self.held += now.saturating_sub(since);
                    self.turns.push_back(*key);
                }
                _ => {}
            }
        }
    }

    /// How long flows were held that had packets, summed over them.
    pub fn held(&self) -> Time {
        self.held
    }
}
