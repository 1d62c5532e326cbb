//! The records of the driver's thread for somebody: samples of queues, and packets at the ends of
//! links.
//!
//! Records go to their reader in batches, a thousand times a second. While too much waits for the
//! reader, packets are left out, and the next one that is not has their number.
//!
//! Invariant: the thread never waits for a reader, and records of a kind are in the order of time.

use crate::host::Host;
use crate::network::{first_lines, line_of};
use millpond_core::Time;
use millpond_linux::dataplane::buffers::Buffers;
use millpond_linux::fabric::{Fabric, LinkEnd, Passed};
use millpond_results::{Frame, PacketRecord, QueueRecord};
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::End;
use millpond_sim::samples::QueueSampler;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Memory that records may take while they wait for the reader.
const WAITING_MAX: usize = 64 << 20;
const INSTANT: Time = Time::from_ps(1);

/// Something that was recorded. Times are since the beginning of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Queue(QueueRecord),
    /// A packet at one of the plan's taps.
    Packet(PacketRecord),
}

impl Record {
    fn bytes(&self) -> usize {
        let frame = match self {
            Record::Queue(_) => None,
            Record::Packet(packet) => packet.frame.as_ref(),
        };
        size_of::<Record>() + frame.map_or(0, |frame| frame.bytes.len())
    }
}

/// The records of a lab, as they come. Recording ends when this is dropped.
pub struct Records {
    batches: Receiver<Vec<Record>>,
    waiting: Arc<AtomicUsize>,
}

impl Records {
    /// The next records; `None` if there are none within this time.
    pub fn next(&self, timeout: Duration) -> Option<Vec<Record>> {
        match self.batches.recv_timeout(timeout) {
            Ok(batch) => {
                self.waiting.fetch_sub(batch.iter().map(Record::bytes).sum(), Relaxed);
                Some(batch)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(timeout);
                None
            }
        }
    }
}

pub struct Recorder {
    /// The beginning and the end of the plan, by the thread's clock.
    span: [Time; 2],
    queues: QueueSampler,
    nics: Vec<u32>,
    ends: Vec<LinkEnd>,
    snaplen: usize,
    batch: Vec<Record>,
    /// By tap: packets left out since the last one that was not.
    missed: Vec<u64>,
    /// Packets left out.
    missed_all: u64,
    batches: Sender<Vec<Record>>,
    waiting: Arc<AtomicUsize>,
}

/// The end of a link as the fabric names it.
fn link_end(plan: &Plan, first: &[u32], end: End) -> LinkEnd {
    match end {
        End::Switch { switch, port } => LinkEnd::Port(first[switch as usize] + u32::from(port)),
        End::Host(host) => LinkEnd::Host(line_of(&plan.topology, first, host)),
    }
}

impl Recorder {
    /// Records what a plan captures between its beginning and its horizon. `clock` is the zero of
    /// the thread's clock. `None`: the plan captures neither queues nor packets.
    pub fn new(plan: &Plan, began: Instant, clock: Instant) -> (Option<Recorder>, Records) {
        let (sender, batches) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let records = Records { batches, waiting: waiting.clone() };
        let capture = &plan.capture;
        if capture.queues.is_none() && capture.taps.is_empty() {
            return (None, records);
        }
        let began = began.saturating_duration_since(clock);
        let began = Time::from_ns(began.as_nanos() as u64);
        let topology = &plan.topology;
        let first = first_lines(topology);
        let switches = (0..).zip(topology.switches.iter().map(|site| site.ports));
        let ports = capture.queues.as_ref().and_then(|queues| queues.ports.as_ref());
        let host = |end: &End| match end {
            End::Host(host) => Some(*host),
            End::Switch { .. } => None,
        };
        let nics = (0..topology.hosts).map(|host| (host, (host, 0)));
        let recorder = Recorder {
            span: [began, began.saturating_add(plan.horizon)],
            queues: QueueSampler::new(capture.queues.as_ref(), began, switches, nics),
            nics: ports.into_iter().flatten().filter_map(host).collect(),
            ends: capture.taps.iter().map(|tap| link_end(plan, &first, tap.end)).collect(),
            snaplen: capture.snaplen as usize,
            batch: Vec::new(),
            missed: vec![0; capture.taps.len()],
            missed_all: 0,
            batches: sender,
            waiting,
        };
        (Some(recorder), records)
    }

    /// When the next sample of queues is due; `None`: never.
    fn due(&self) -> Option<Time> {
        Some(self.queues.due()).filter(|due| *due < self.span[1])
    }

    /// Takes the sample of queues that is due at `at`, just before which the fabric is.
    fn sample(&mut self, at: Time, fabric: &mut Fabric, hosts: &mut [Host]) {
        let nic = |host: u32| hosts[host as usize].waiting(at);
        self.queues.sample(at, (0..).zip(fabric.switches_mut()), nic);
        let began = self.span[0];
        for row in self.queues.take() {
            self.keep(Record::Queue(QueueRecord { at: row.at.saturating_sub(began), ..row }));
        }
    }

    fn keep(&mut self, record: Record) {
        self.waiting.fetch_add(record.bytes(), Relaxed);
        self.batch.push(record);
    }

    /// Takes copies of the packets among these that are the plan's. They are in the order of time,
    /// and follow those of earlier calls.
    fn pass(&mut self, passed: &[Passed]) {
        let [began, end] = self.span;
        let mut own: Vec<(usize, &Passed)> = Vec::new();
        for packet in passed.iter().filter(|packet| began <= packet.at && packet.at < end) {
            let tap = self.ends.iter().position(|end| *end == packet.end);
            own.extend(tap.map(|tap| (tap, packet)));
        }
        own.sort_by_key(|(tap, packet)| (packet.at, *tap, !packet.outgoing));
        for (tap, packet) in own {
            if self.waiting.load(Relaxed) > WAITING_MAX {
                self.missed[tap] += 1;
                self.missed_all += 1;
                continue;
            }
            let frame = Frame {
                bytes: packet.bytes[..packet.bytes.len().min(self.snaplen)].into(),
                length: packet.bytes.len() as u32,
                missed: std::mem::take(&mut self.missed[tap]),
            };
            self.keep(Record::Packet(PacketRecord {
                at: packet.at.saturating_sub(began),
                tap: tap as u16,
                outgoing: packet.outgoing,
                packet: packet.packet,
                records: Vec::new(),
                frame: Some(frame),
            }));
        }
    }

    /// Hands over what there is; whether there is a reader still.
    fn hand_over(&mut self) -> bool {
        self.batch.is_empty() || self.batches.send(std::mem::take(&mut self.batch)).is_ok()
    }
}

#[derive(Default)]
pub struct Recorders {
    all: Vec<Recorder>,
    /// Packets left out by recorders that have ended.
    missed: u64,
}

impl Recorders {
    pub fn add(&mut self, recorder: Recorder, fabric: &mut Fabric, hosts: &mut [Host]) {
        self.all.push(recorder);
        self.watch(fabric, hosts);
    }

    /// Packets left out because a reader was too slow.
    pub fn missed(&self) -> u64 {
        self.missed + self.all.iter().map(|it| it.missed_all).sum::<u64>()
    }

    /// Watches what the recorders record, and nothing else.
    fn watch(&self, fabric: &mut Fabric, hosts: &mut [Host]) {
        fabric.watch(|end| self.all.iter().any(|it| it.ends.contains(&end)));
        for (number, host) in (0..).zip(hosts) {
            host.watch(self.all.iter().any(|it| it.nics.contains(&number)));
        }
    }

    /// Takes the samples of queues that are due by `now`, each of the instant just before.
    pub fn sample(
        &mut self,
        now: Time,
        fabric: &mut Fabric,
        hosts: &mut [Host],
        buffers: &mut Buffers,
    ) {
        let due = |(which, it): (usize, &Recorder)| Some((it.due()?, which));
        while let Some((at, which)) = self.all.iter().enumerate().filter_map(due).min()
            && at <= now
        {
            fabric.advance(at.saturating_sub(INSTANT), buffers);
            self.all[which].sample(at, fabric, hosts);
            if fabric.held() == 0 {
                self.all[which].queues.skip(now);
            }
        }
    }

    /// Hands over what was recorded before `now`, up to which the fabric has been advanced.
    pub fn hand_over(&mut self, now: Time, fabric: &mut Fabric, hosts: &mut [Host]) {
        let passed = fabric.passed(now);
        let ended = self.all.extract_if(.., |it| {
            it.pass(&passed);
            !it.hand_over()
        });
        let ended: Vec<Recorder> = ended.collect();
        if !ended.is_empty() {
            self.missed += ended.iter().map(|it| it.missed_all).sum::<u64>();
            self.watch(fabric, hosts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::Packet;
    use millpond_scenario::Scenario;

    fn plan(capture: &str) -> Plan {
        let text = format!(
            "duration = \"1ms\"\ntopology = {{ kind = \"single-switch\", hosts = 2 }}\n\
             capture = {{ {capture} }}\n[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
        );
        Scenario::parse("record.toml", &text).unwrap().plan(None, &[], None).unwrap()
    }

    fn passed(us: u64, end: LinkEnd) -> Passed {
        let (at, packet) = (Time::from_us(us), Packet::default());
        Passed { at, end, outgoing: true, packet, bytes: vec![7; 1514] }
    }

    #[test]
    fn packets_are_those_of_the_plans_places_and_time() {
        let clock = Instant::now();
        let began = clock + Duration::from_micros(100);
        let plan = plan("pcap = [\"host1\", \"switch0:0\"], snaplen = \"60B\"");
        let (recorder, records) = Recorder::new(&plan, began, clock);
        let mut recorder = recorder.unwrap();
        let (host, port) = (LinkEnd::Host(1), LinkEnd::Port(0));
        recorder.pass(&[
            passed(99, host),
            passed(100, port),
            passed(100, host),
            passed(100, LinkEnd::Port(1)),
            passed(1100, host),
        ]);
        assert!(recorder.hand_over());
        let batch = records.next(Duration::ZERO).unwrap();
        let seen: Vec<_> = batch
            .iter()
            .map(|record| match record {
                Record::Packet(it) => (it.at, it.tap, it.frame.as_ref().unwrap().bytes.len()),
                Record::Queue(_) => panic!("{record:?}"),
            })
            .collect();
        assert_eq!(seen, [(Time::ZERO, 0, 60), (Time::ZERO, 1, 60)]);
        drop(records);
        recorder.pass(&[passed(101, host)]);
        assert!(!recorder.hand_over(), "nobody reads");
    }

    #[test]
    fn packets_that_a_slow_reader_misses_are_counted_at_the_next_one() {
        let clock = Instant::now();
        let plan = plan("pcap = [\"host1\"]");
        let (recorder, records) = Recorder::new(&plan, clock, clock);
        let mut recorder = recorder.unwrap();
        recorder.waiting.store(WAITING_MAX + 1, Relaxed);
        recorder.pass(&[passed(1, LinkEnd::Host(1)), passed(2, LinkEnd::Host(1))]);
        recorder.waiting.store(0, Relaxed);
        recorder.pass(&[passed(3, LinkEnd::Host(1)), passed(4, LinkEnd::Host(1))]);
        assert!(recorder.hand_over() && recorder.missed_all == 2);
        let batch = records.next(Duration::ZERO).unwrap();
        let missed = |record: &Record| match record {
            Record::Packet(packet) => packet.frame.as_ref().map(|frame| frame.missed),
            Record::Queue(_) => None,
        };
        assert_eq!(batch.iter().map(missed).collect::<Vec<_>>(), [Some(2), Some(0)]);
        assert_eq!(records.waiting.load(Relaxed), 0);
    }

    #[test]
    fn a_plan_without_captures_has_no_recorder() {
        let now = Instant::now();
        assert!(Recorder::new(&plan("goodput = \"10us\""), now, now).0.is_none());
    }
}
