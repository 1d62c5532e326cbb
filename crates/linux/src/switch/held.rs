//! Frames for a peer that has paused their flows.
//!
//! A frame of an application stays in its ring, and its flow is paused. A frame from a kernel's
//! interface cannot stay where it was: it waits here, behind others of its flow, in flow queues
//! with a bound. Beyond that it is lost, and counted.
//!
//! Invariant: frames of a flow leave in the order in which they came; an application's flow is
//! paused only while the peer pauses what its first frame belongs to.

use crate::dataplane::flow::Keys;
use crate::dataplane::outgoing::Kept;
use crate::dataplane::port::shared::{Origin, Pause};
use millpond_core::flow_queues::{Arrival, Class, Config, FlowQueues, Outcome, SLOTS};
use millpond_core::overlay::FlowKey;
use millpond_core::random::Stream;
use millpond_core::{Bytes, Time};
use slab::Slab;
use std::collections::BTreeMap;

/// Bytes of a frame by which slots are counted.
const FRAME: u64 = 256;

/// The frames that a peer's pauses hold.
#[derive(Debug)]
pub struct Held {
    queues: FlowQueues<FlowKey, u32>,
    /// By handle: a frame, and the port that it came from.
    waiting: Slab<(Kept, Option<u16>)>,
    /// By port: its frames that wait.
    ports: BTreeMap<u16, u32>,
    /// Flows of applications, by attachment and number, and for whose sake each is paused.
    pauses: BTreeMap<(u32, u32), (FlowKey, Pause)>,
    keys: Keys,
}

impl Held {
    /// With so much memory for frames.
    pub fn new(memory: Bytes) -> Held {
        let config = Config {
            segments: (memory.0 / (FRAME * u64::from(SLOTS))).max(64),
            headroom_segments: 0,
            bytes: memory,
            headroom: Bytes(0),
            mtu: u16::MAX.into(),
            quantum: u16::MAX.into(),
            ..Config::default()
        };
        Held {
            queues: FlowQueues::new(config, Stream::new(0, "held").into()),
            waiting: Slab::new(),
            ports: BTreeMap::new(),
            pauses: BTreeMap::new(),
            keys: Keys::default(),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    /// Whether frames of this flow wait.
    pub fn has(&self, flow: &FlowKey) -> bool {
        self.queues.waiting(self.hash(flow), *flow) > 0
    }
    fn hash(&self, flow: &FlowKey) -> u32 {
        let folded = |address: u128| (address >> 64) as u64 ^ address as u64;
        let ports = u64::from(flow.source_port) << 16 | u64::from(flow.destination_port);
        let addresses = self.keys.of_pair(folded(flow.source), folded(flow.destination));
        self.keys.of_pair(addresses.into(), ports << 8 | u64::from(flow.protocol))
    }

    /// The application's flow is paused for the sake of its first frame.
    pub fn pause(&mut self, origin: &Origin, flow: FlowKey) {
        let pause = || Pause::of(origin.link.clone(), origin.flow);
        let at = (origin.link.attachment(), origin.flow);
        self.pauses.entry(at).and_modify(|(of, _)| *of = flow).or_insert_with(|| (flow, pause()));
    }
    /// Takes a frame of `port`, whose flow may be held; `false`: without memory it is lost.
    pub fn queue(
        &mut self,
        now: Time,
        flow: FlowKey,
        is_held: bool,
        frame: Kept,
        port: Option<u16>,
    ) -> bool {
        let (packet, len) = (self.waiting.vacant_key() as u32, frame.bytes.len() as u32);
        let hash = self.hash(&flow);
        if is_held {
            self.queues.hold(now, hash, flow);
        }
        let arrival = Arrival { flow, hash, packet, len, class: Class::Data };
        let verdict = self.queues.enqueue(now, &arrival);
        // No signal can reach a sender here: each is a kernel.
        while self.queues.next_signal().is_some() {}
        if matches!(verdict.outcome, Outcome::Hold) {
            self.queues.lose(len);
            return false;
        }
        if let Some(port) = port {
            *self.ports.entry(port).or_insert(0) += 1;
        }
        self.waiting.insert((frame, port));
        true
    }
    /// Holds or releases flows by `is_held`, of those that `is_meant` names.
    pub fn set(
        &mut self,
        now: Time,
        is_meant: impl Fn(&FlowKey) -> bool,
        is_held: impl Fn(&FlowKey) -> bool,
    ) {
        self.queues.set_where(now, true, |flow| is_meant(flow) && is_held(flow));
        self.queues.set_where(now, false, |flow| is_meant(flow) && !is_held(flow));
        self.pauses.retain(|_, (flow, _)| !is_meant(flow) || is_held(flow));
    }
    /// The next frame that may go.
    pub fn next(&mut self, now: Time) -> Option<Kept> {
        let departure = self.queues.dequeue(now)?;
        while self.queues.next_signal().is_some() {}
        let (frame, port) = self.waiting.remove(departure.packet as usize);
        if let Some(left) = port.and_then(|port| self.ports.get_mut(&port)) {
            *left -= 1;
        }
        Some(frame)
    }
    /// Forgets flows that were silent for long.
    pub fn expire(&mut self, now: Time) {
        self.queues.expire(now);
    }

    /// Ports that frames have come from which wait.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.ports.iter().filter(|(_, frames)| **frames > 0).map(|(port, _)| *port)
    }
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.queues.queued().0
    }
    /// The most bytes that have waited.
    pub fn peak(&self) -> u64 {
        self.queues.counters().peak_bytes
    }
    pub fn lost(&self) -> u64 {
        self.queues.counters().loss_pool
    }
    pub fn paused(&self) -> usize {
        self.pauses.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::segment::tests::{Build, frame_of};
    use crate::dataplane::frame::{Offload, parse};

    fn flow(number: u16) -> FlowKey {
        FlowKey {
            source: 1,
            destination: 2,
            source_port: number,
            destination_port: 80,
            protocol: 17,
        }
    }
    fn frame(number: u32) -> Kept {
        let bytes = frame_of(&Build { seq: number, payload: 986, ..Build::default() });
        Kept { view: parse(&bytes).unwrap(), offload: Offload::default(), bytes }
    }
    fn number(frame: &Kept) -> u32 {
        u32::from_be_bytes(std::array::from_fn(|i| frame.bytes[38 + i]))
    }

    #[test]
    fn a_flow_that_is_held_waits_in_order_and_others_go() {
        let mut held = Held::new(Bytes(1 << 20));
        let now = Time::from_us(1);
        for i in 0..6 {
            assert!(held.queue(now, flow((i % 2) as u16), i % 2 == 0, frame(i), Some(7)));
        }
        let numbers = |held: &mut Held| -> Vec<u32> {
            std::iter::from_fn(|| held.next(now)).map(|frame| number(&frame)).collect()
        };
        assert_eq!(numbers(&mut held), [1, 3, 5]);
        assert_eq!(held.ports().collect::<Vec<_>>(), [7]);
        assert!(held.has(&flow(0)) && !held.has(&flow(1)) && held.len() == 3);
        // A wider pause ends, and this one's stays.
        held.set(now, |_| true, |key| *key == flow(0));
        assert!(numbers(&mut held).is_empty());
        held.set(now, |key| *key == flow(0), |_| false);
        assert_eq!((numbers(&mut held), held.len(), held.bytes()), (vec![0, 2, 4], 0, 0));
        assert_eq!(held.ports().count(), 0);
    }

    #[test]
    fn memory_has_a_bound() {
        let mut held = Held::new(Bytes(64 << 10));
        let now = Time::from_us(1);
        let taken = (0..100).filter(|i| held.queue(now, flow(1), true, frame(*i), None)).count();
        assert!((60..=64).contains(&taken) && held.lost() == 100 - taken as u64, "{taken}");
        assert!(held.bytes() <= 64 << 10 && held.peak() == held.bytes());
    }
}
