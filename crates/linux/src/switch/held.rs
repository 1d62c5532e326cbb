//! Frames for a peer that has paused their flows.
//!
//! A frame of an application stays in its ring, and its flow is paused. A frame from a kernel's
//! interface cannot stay where it was: it waits here, behind others of its flow, in flow queues
//! with a bound. Beyond that it is lost, and counted.
//!
//! Invariant: frames of a flow leave in the order in which they came; an application's flow is
//! paused only while the peer pauses what its first frame belongs to.

use crate::dataplane::flow::Keys;
use crate::dataplane::frame::{Offload, View};
use crate::dataplane::port::shared::{Origin, Pause};
use millpond_core::flow_queues::{Arrival, Class, Config, FlowQueues, Outcome, SLOTS};
use millpond_core::overlay::FlowKey;
use millpond_core::random::Stream;
use millpond_core::{Bytes, Time};
use std::collections::BTreeMap;

/// Bytes of a frame by which slots are counted.
const FRAME: u64 = 256;

#[derive(Debug)]
pub struct Waiting {
    pub view: View,
    /// The offload that is still to be done to it.
    pub offload: Offload,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The port that it came from.
    pub port: Option<u16>,
}

/// The frames that a peer's pauses hold.
#[derive(Debug)]
pub struct Held {
    queues: FlowQueues<FlowKey, u32>,
    waiting: Vec<Option<Waiting>>,
    free: Vec<u32>,
    backlog: BTreeMap<FlowKey, u32>,
    ports: BTreeMap<u16, u32>,
    /// Flows of applications, by attachment and number, and for whose sake each is paused.
    pauses: BTreeMap<(u32, u32), (FlowKey, Pause)>,
    keys: Keys,
    count: usize,
    lost: u64,
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
            waiting: Vec::new(),
            free: Vec::new(),
            backlog: BTreeMap::new(),
            ports: BTreeMap::new(),
            pauses: BTreeMap::new(),
            keys: Keys::default(),
            count: 0,
            lost: 0,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Whether frames of this flow wait.
    pub fn has(&self, flow: &FlowKey) -> bool {
        self.backlog.contains_key(flow)
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
    /// Takes a frame, whose flow may be held; `false`: there is no memory, and it is lost.
    pub fn queue(&mut self, now: Time, flow: FlowKey, is_held: bool, frame: Waiting) -> bool {
        let at = self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() as u32 - 1
        });
        let (hash, len) = (self.hash(&flow), frame.bytes.len() as u32);
        if is_held {
            self.queues.hold(now, hash, flow);
        }
        let verdict =
            self.queues.enqueue(now, &Arrival { flow, hash, packet: at, len, class: Class::Data });
        // No signal can reach a sender here: each is a kernel.
        while self.queues.next_signal().is_some() {}
        if matches!(verdict.outcome, Outcome::Hold) {
            self.free.push(at);
            self.lost += 1;
            return false;
        }
        if let Some(port) = frame.port {
            *self.ports.entry(port).or_insert(0) += 1;
        }
        self.waiting[at as usize] = Some(frame);
        *self.backlog.entry(flow).or_insert(0) += 1;
        self.count += 1;
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
    pub fn next(&mut self, now: Time) -> Option<Waiting> {
        let departure = self.queues.dequeue(now)?;
        while self.queues.next_signal().is_some() {}
        self.free.push(departure.packet);
        self.count -= 1;
        if let Some(left) = self.backlog.get_mut(&departure.flow) {
            *left -= 1;
            if *left == 0 {
                self.backlog.remove(&departure.flow);
            }
        }
        let frame = self.waiting[departure.packet as usize].take()?;
        if let Some(left) = frame.port.and_then(|port| self.ports.get_mut(&port)) {
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
        self.count
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
        self.lost
    }
    pub fn paused(&self) -> usize {
        self.pauses.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::parse;
    use crate::dataplane::frame::segment::tests::{Build, frame_of};

    fn flow(number: u16) -> FlowKey {
        FlowKey {
            source: 1,
            destination: 2,
            source_port: number,
            destination_port: 80,
            protocol: 17,
        }
    }
    fn frame(number: u32) -> Waiting {
        let bytes = frame_of(&Build { seq: number, payload: 986, ..Build::default() });
        Waiting { view: parse(&bytes).unwrap(), offload: Offload::default(), bytes, port: Some(7) }
    }
    fn number(frame: &Waiting) -> u32 {
        u32::from_be_bytes(std::array::from_fn(|i| frame.bytes[38 + i]))
    }

    #[test]
    fn a_flow_that_is_held_waits_in_order_and_others_go() {
        let mut held = Held::new(Bytes(1 << 20));
        let now = Time::from_us(1);
        for i in 0..6 {
            assert!(held.queue(now, flow((i % 2) as u16), i % 2 == 0, frame(i)));
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
        let taken = (0..100).filter(|i| held.queue(now, flow(1), true, frame(*i))).count();
        assert!((60..=64).contains(&taken) && held.lost() == 100 - taken as u64, "{taken}");
        assert!(held.bytes() <= 64 << 10 && held.peak() == held.bytes());
    }
}
