//! The overlays of the authors' release in the place of ours: which records a queue sends, to whom,
//! and what their receiver does ([`crate::overlay::generations`] decides).
//!
//! *Timed*, the first: the sender of a flow whose queue is 7/8 full is asked to pause for a time,
//! and to keep a rate then. The next record leaves when the pause has run out; nobody is asked to
//! go on.
//!
//! *Episode*, the second: when the packets that wait for a core of an application reach 70 % of
//! what its memory holds, the host that has sent the last of them is asked to pause, until less
//! than half is there. It is asked once, and a pause holds for ever.
//!
//! Neither repeats a record, nor has headroom. The release has no bound but its rings', and drops
//! what they do not hold; here polling stops, as the second generation does. Its RESUME goes to
//! the sender of the packet at hand, who may be another than was asked to pause; here it goes to
//! the one who was.
//!
//! Invariant: records are a function of arrivals and of what waits.

use crate::overlay::generations::{Episodes, Timed, TimedPause, TimedSource};
use crate::overlay::{FlowKey, Record, Target, Word};
use crate::packet::overlay::Whom;
use crate::packet::{FlowId, HostId};
use crate::units::Time;
use std::collections::{BTreeMap, VecDeque};

crate::choice! {
    /// The language in which virtual switches talk to each other.
    pub enum Language {
        /// This project's: soft state that is refreshed and repeated.
        Records = "records",
        /// The authors' first: a pause for a time, and a rate after it.
        Timed = "timed",
        /// The authors' second: once when a queue is long, and once when it no longer is.
        Episode = "episode",
    }
}

/// A flow is forgotten when nothing of it has waited or come for so long, as in the release.
const IDLE: Time = Time::from_ms(100);

/// Packets: of a flow, and of all flows of its application's core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub flow: u64,
    pub port: u64,
}

/// A flow whose queue asks for timed pauses.
struct TimedFlow {
    queue: Timed,
    /// When its rate was last sampled.
    sampled: Time,
    /// Packets that came, and that had left by the last sample.
    came: u64,
    left: u64,
    last: Time,
}

impl TimedFlow {
    fn new(now: Time, capacity: u64) -> TimedFlow {
        TimedFlow { queue: Timed::new(capacity), sampled: now, came: 0, left: 0, last: now }
    }

    /// A packet joins, and so many wait with it.
    fn joined(&mut self, now: Time, waiting: u64) -> Option<TimedPause> {
        (self.came, self.last) = (self.came + 1, now);
        let periods = now.saturating_sub(self.sampled).as_ps() / Timed::SAMPLE.as_ps();
        let left = self.came - waiting.min(self.came);
        if let Some(each) = left.saturating_sub(self.left).checked_div(periods) {
            (0..periods.min(4)).for_each(|_| self.queue.sample(each));
            self.sampled = now;
            self.left = left;
        }
        self.queue.joined(now, waiting)
    }
}

/// The generation's state, of all queues of a host.
enum State {
    Timed(BTreeMap<(u16, FlowId), TimedFlow>),
    /// By core of an application: its episode, and whom it has notified.
    Episode(BTreeMap<u16, (Episodes, Option<HostId>)>),
}

pub(super) struct Generation {
    state: State,
    /// Packets that a queue holds: a flow's, or a core's.
    capacity: u64,
    packet_max: u32,
    seq: u64,
    pending: VecDeque<(HostId, Record)>,
    /// Targets here that keep a rate, with the number of the record that set it.
    sources: BTreeMap<(HostId, Target), (TimedSource, u64)>,
}

impl Generation {
    /// `capacities`: packets that a flow's queue holds, and that a core's memory does.
    pub(super) fn new(
        language: Language,
        capacities: Waiting,
        packet_max: u32,
    ) -> Option<Generation> {
        let (state, capacity) = match language {
            Language::Records => return None,
            Language::Timed => (State::Timed(BTreeMap::new()), capacities.flow),
            Language::Episode => (State::Episode(BTreeMap::new()), capacities.port),
        };
        Some(Generation {
            state,
            capacity,
            packet_max,
            seq: 0,
            pending: VecDeque::new(),
            sources: BTreeMap::new(),
        })
    }

    /// `ttl`: for how long it holds, in microseconds; `rate`: that from then on in kb/s, 0: any.
    fn send(&mut self, to: HostId, word: Word, target: Target, rate: u32, ttl: u32) {
        self.seq += 1;
        self.pending.push_back((to, Record { word, target, seq: self.seq, queued: 0, rate, ttl }));
    }

    /// A packet of a flow from there joins a queue.
    pub(super) fn arrived(
        &mut self,
        now: Time,
        me: HostId,
        port: u16,
        flow: Flow,
        waiting: Waiting,
    ) {
        let capacity = self.capacity;
        match &mut self.state {
            State::Timed(flows) => {
                let timed =
                    flows.entry((port, flow.id)).or_insert_with(|| TimedFlow::new(now, capacity));
                let Some(pause) = timed.joined(now, waiting.flow) else { return };
                let target = Whom::Flow { flow: flow.id, application: port }.target(flow.from, me);
                let kbps =
                    pause.packets_per_second.saturating_mul(u64::from(self.packet_max) * 8) / 1000;
                let kbps = u32::try_from(kbps).unwrap_or(u32::MAX).max(1);
                self.send(flow.from, Word::Pause, target, kbps, micros(pause.duration));
            }
            State::Episode(_) => self.observe(me, port, waiting.port, Some(flow.from)),
        }
    }

    /// Packets have left, and so many wait for this core.
    pub(super) fn left(&mut self, me: HostId, port: u16, waiting: u64) {
        if matches!(self.state, State::Episode(_)) {
            self.observe(me, port, waiting, None);
        }
    }

    fn observe(&mut self, me: HostId, port: u16, waiting: u64, from: Option<HostId>) {
        let State::Episode(ports) = &mut self.state else { return };
        let (episodes, paused) = ports.entry(port).or_default();
        let (to, word) = match episodes.observe(waiting, self.capacity) {
            None => return,
            Some(true) => (from, Word::Pause),
            Some(false) => (paused.take(), Word::Resume),
        };
        if word == Word::Pause {
            *paused = to;
        }
        let Some(to) = to else { return };
        let target = Whom::Application(port).target(to, me);
        self.send(to, word, target, 0, u32::MAX);
    }

    pub(super) fn expire(&mut self, now: Time) {
        if let State::Timed(flows) = &mut self.state {
            flows.retain(|_, timed| timed.last + IDLE > now);
        }
    }

    /// The records to be sent now: at most so many for one host.
    pub(super) fn next(&mut self, most: usize) -> Option<(HostId, Vec<Record>)> {
        let (to, first) = self.pending.pop_front()?;
        let mut records = vec![first];
        while records.len() < most
            && let Some((_, record)) = self.pending.pop_front_if(|(other, _)| *other == to)
        {
            records.push(record);
        }
        Some((to, records))
    }

    /// A target here is asked to pause for a time, and to keep a rate then.
    pub(super) fn on_record(&mut self, now: Time, from: HostId, record: &Record) {
        if record.rate == 0 {
            return;
        }
        let (source, seq) = self.sources.entry((from, record.target)).or_default();
        let packets_per_second = u64::from(record.rate) * 1000 / (u64::from(self.packet_max) * 8);
        source.on_record(
            now,
            TimedPause { duration: Time::from_us(u64::from(record.ttl)), packets_per_second },
        );
        *seq = record.seq;
    }

    /// A flow that keeps a rate has handed down so many packets: what holds it until the next may
    /// leave.
    pub(super) fn handed_down(
        &mut self,
        now: Time,
        to: HostId,
        key: &FlowKey,
        packets: u64,
    ) -> Option<Record> {
        let target = Target::Flow(*key);
        let (source, seq) = self.sources.get_mut(&(to, target))?;
        source.leaves(now, packets);
        let ttl = micros(source.next().saturating_sub(now));
        Some(Record { word: Word::Refresh, target, seq: *seq, queued: 0, rate: 0, ttl })
    }
}

/// A flow that sends to a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub id: FlowId,
    pub from: HostId,
}

fn micros(time: Time) -> u32 {
    u32::try_from(time.as_ps().div_ceil(Time::from_us(1).as_ps())).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Flow = Flow { id: 7, from: 3 };

    fn said(generation: &mut Generation) -> Vec<(HostId, Word, u32, u32)> {
        let all = std::iter::from_fn(|| generation.next(1));
        all.map(|(to, records)| (to, records[0].word, records[0].ttl, records[0].rate)).collect()
    }

    /// A queue of 64 packets is high from 56 on and low at 8. A thousand packets that left in the
    /// last of four samples are 250,000 a second: 48 of them take 192 us, at 1500 bytes 3 Gb/s.
    #[test]
    fn a_timed_pause_by_hand() {
        let mut generation =
            Generation::new(Language::Timed, Waiting { flow: 64, port: 0 }, 1500).unwrap();
        let mut join = |us: u64, flow: u64| {
            generation.arrived(Time::from_us(us), 9, 0, FROM, Waiting { flow, port: 0 });
            said(&mut generation)
        };
        for _ in 0..1_000 {
            assert!(join(0, 1).is_empty());
        }
        assert!(join(1_000, 1).is_empty(), "a sample, and no long queue");
        assert_eq!(join(1_100, 56), [(3, Word::Pause, 192, 3_000_000)]);
        assert!(join(1_291, 64).is_empty(), "the pause lasts");
        assert_eq!(join(1_292, 64), [(3, Word::Pause, 224, 3_000_000)]);
    }

    /// 70 % of 100 packets tell the sender of the packet at hand, once; less than 50 % tell him
    /// again.
    #[test]
    fn an_episode_by_hand() {
        let mut generation =
            Generation::new(Language::Episode, Waiting { flow: 0, port: 100 }, 1500).unwrap();
        let join = |generation: &mut Generation, from: HostId, port: u64| {
            generation.arrived(Time::ZERO, 9, 4, Flow { id: 7, from }, Waiting { flow: 0, port });
            said(generation)
        };
        assert!(join(&mut generation, 3, 70).is_empty());
        assert_eq!(join(&mut generation, 5, 71), [(5, Word::Pause, u32::MAX, 0)]);
        assert!(join(&mut generation, 3, 100).is_empty(), "the other sender goes on");
        generation.left(9, 4, 50);
        assert!(said(&mut generation).is_empty());
        generation.left(9, 4, 49);
        assert_eq!(said(&mut generation), [(5, Word::Resume, u32::MAX, 0)]);
    }

    /// 3 Gb/s are a packet of 1500 bytes in 4 us.
    #[test]
    fn a_rate_holds_a_flow_after_each_segment() {
        let mut generation =
            Generation::new(Language::Timed, Waiting { flow: 64, port: 0 }, 1500).unwrap();
        let key = Whom::key(7, 0, 9, 3);
        assert_eq!(generation.handed_down(Time::ZERO, 3, &key, 1), None);
        let target = Target::Flow(key);
        let pause =
            Record { word: Word::Pause, target, seq: 12, queued: 0, rate: 3_000_000, ttl: 100 };
        generation.on_record(Time::ZERO, 3, &pause);
        let holds = |record: Option<Record>| record.map(|record| (record.seq, record.ttl));
        assert_eq!(holds(generation.handed_down(Time::from_us(100), 3, &key, 1)), Some((12, 4)));
        assert_eq!(holds(generation.handed_down(Time::from_us(104), 3, &key, 43)), Some((12, 172)));
    }

    #[test]
    fn words_for_one_host_go_together_and_silent_flows_are_forgotten() {
        let mut generation =
            Generation::new(Language::Timed, Waiting { flow: 8, port: 0 }, 1500).unwrap();
        for (id, from) in [(1, 3), (2, 3), (3, 5)] {
            generation.arrived(Time::ZERO, 9, 0, Flow { id, from }, Waiting { flow: 7, port: 0 });
        }
        let counts =
            std::iter::from_fn(|| generation.next(6)).map(|(to, records)| (to, records.len()));
        assert_eq!(counts.collect::<Vec<_>>(), [(3, 2), (5, 1)]);
        generation.expire(Time::from_ms(99));
        let State::Timed(flows) = &generation.state else { panic!() };
        assert_eq!(flows.len(), 3);
        generation.expire(Time::from_ms(100));
        let State::Timed(flows) = &generation.state else { panic!() };
        assert!(flows.is_empty());
    }
}
