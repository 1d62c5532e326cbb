//! What waits for an application: the core's flow queues, with the frames beside them.
//!
//! A flow of another application is told to pause, and its frames wait with their sender: the
//! feedback of [`FlowQueues`], which takes no time here. A flow from anywhere else cannot be told.
//! What of it finds no memory is lost, and counted.
//!
//! All frames of an application's flow are data to the queues: they keep their order, and an
//! acknowledgement overtakes nothing.
//!
//! Invariant: a frame that was taken is given out once, in the order of its flow, or counted when
//! all is given up.

use super::link::{Link, Origin, Pause, Ticket};
use crate::edge::flow::{FlowKey, Keys};
use crate::frame::{Mac, View};
use millpond_core::flow_queues::{Arrival, Class, Config, Counters, FlowQueues, Outcome, SLOTS};
use millpond_core::random::Stream;
use millpond_core::{Bytes, Time};
use millpond_port::host::Host;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::sync::{Arc, Weak};

/// Bytes of a packet by which slots are counted: a queue has slots for its memory if packets are as
/// long on average.
const PACKET: u64 = 256;

/// Which flow a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// One of an application's, which can be paused.
    Ring {
        /// The application.
        attachment: u32,
        /// Its flow.
        flow: u32,
    },
    /// A connection from elsewhere.
    Connection(FlowKey),
    /// What else goes from one to another.
    Pair(Mac, Mac),
}

/// A frame that waits.
#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    tag: u16,
    /// Its sender's buffer, which comes back when the frame is gone.
    _ticket: Option<Ticket>,
}

/// The queues of one application.
#[derive(Debug)]
pub struct Egress {
    config: Config,
    queues: FlowQueues<Flow, u32>,
    /// By handle.
    waiting: Vec<Option<Waiting>>,
    free: Vec<u32>,
    count: usize,
    /// Applications that have sent here.
    sources: BTreeMap<u32, Weak<Link>>,
    /// The flows that were told to pause.
    told: BTreeMap<(u32, u32), Pause>,
    keys: Keys,
    /// Of queues that were given up.
    before: Counters,
}

/// What the queues have by what a user says: an eighth is headroom.
fn config(memory: u64, frame_max: u32) -> Config {
    let segments = (memory / (PACKET * u64::from(SLOTS))).max(64);
    let headroom = memory / 8;
    Config {
        segments: segments - segments / 8,
        headroom_segments: segments / 8,
        bytes: Bytes(memory - headroom),
        headroom: Bytes(headroom),
        mtu: frame_max,
        quantum: frame_max,
        ..Config::default()
    }
}

impl Egress {
    /// With so much memory, for frames of at most `frame_max` bytes.
    pub fn new(memory: u64, frame_max: u32) -> Egress {
        let config = config(memory, frame_max);
        Egress {
            config,
            queues: FlowQueues::new(config, Stream::new(0, "shared-port").into()),
            waiting: Vec::new(),
            free: Vec::new(),
            count: 0,
            sources: BTreeMap::new(),
            told: BTreeMap::new(),
            keys: Keys::default(),
            before: Counters::default(),
        }
    }

    /// The flow of a frame, and its hash.
    pub fn flow(&self, origin: Option<&Origin>, view: &View, header: &[u8]) -> (Flow, u32) {
        if let Some(Origin { link, flow, .. }) = origin {
            let attachment = link.attachment();
            let hash = self.keys.of_pair(attachment.into(), (*flow).into());
            return (Flow::Ring { attachment, flow: *flow }, hash);
        }
        match view.layers().filter(|layers| layers.payload <= header.len()) {
            Some(layers) => {
                let key = FlowKey::of(header, layers, 0);
                (Flow::Connection(key), key.hash(&self.keys))
            }
            None => {
                let (from, to) = (view.source, view.destination);
                (Flow::Pair(from, to), self.keys.of_pair(from.number(), to.number()))
            }
        }
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes a frame; `false`: there is no memory. A frame with an origin is then its sender's to
    /// keep, and its flow is paused; any other is lost.
    pub fn offer(&mut self, now: Time, flow: (Flow, u32), origin: Option<&Origin>, pieces: &[IoSlice<'_>]) -> bool {
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let at = self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() as u32 - 1
        });
        if let Some(Origin { link, .. }) = origin {
            self.sources.entry(link.attachment()).or_insert_with(|| Arc::downgrade(link));
        }
        let (flow, hash) = flow;
        let arrival = Arrival { flow, hash, packet: at, len: length as u32, class: Class::Data };
        let verdict = self.queues.enqueue(now, &arrival);
        let is_taken = !matches!(verdict.outcome, Outcome::Hold);
        if is_taken {
            let bytes = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            self.waiting[at as usize] = Some(Waiting { bytes, tag: hash as u16, _ticket: origin.map(Ticket::of) });
            self.count += 1;
        } else {
            self.free.push(at);
            if origin.is_none() {
                self.queues.lose(length as u32);
            }
        }
        self.tell();
        is_taken
    }

    /// Hands over frames as long as there is room for them; `sent` is told how long each is. How
    /// many there were.
    pub fn drain(&mut self, now: Time, host: &mut Host, sent: &mut dyn FnMut(usize)) -> usize {
        let mut count = 0;
        while host.has_room() {
            let Some(departure) = self.queues.dequeue(now) else { break };
            self.free.push(departure.packet);
            if let Some(frame) = self.waiting[departure.packet as usize].take() {
                host.deliver(&[IoSlice::new(&frame.bytes)], frame.tag);
                sent(frame.bytes.len());
            }
            self.count -= 1;
            count += 1;
        }
        self.tell();
        count
    }

    /// Tells applications' flows to pause, or to go on.
    fn tell(&mut self) {
        while let Some(signal) = self.queues.next_signal() {
            let Flow::Ring { attachment, flow } = signal.flow else { continue };
            if !signal.is_pause {
                self.told.remove(&(attachment, flow));
            } else if let Some(link) = self.sources.get(&attachment).and_then(Weak::upgrade) {
                self.told.insert((attachment, flow), Pause::of(link, flow));
            }
        }
    }

    /// Forgets flows that were silent for long, and applications that have gone.
    pub fn expire(&mut self, now: Time) {
        self.queues.expire(now);
        self.tell();
        self.sources.retain(|_, link| link.strong_count() > 0);
    }

    /// Gives up all that waits; how many frames. Whoever was paused for it goes on.
    pub fn clear(&mut self) -> usize {
        let count = self.count;
        self.before = self.counters();
        let (config, before) = (self.config, self.before);
        let fresh = Egress::new(0, config.mtu);
        let queues = FlowQueues::new(config, Stream::new(0, "shared-port").into());
        *self = Egress { config, before, queues, ..fresh };
        count
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        let (now, before) = (self.queues.counters(), &self.before);
        Counters {
            pauses: now.pauses + before.pauses,
            resumes: now.resumes + before.resumes,
            held: now.held + before.held,
            loss_pool: now.loss_pool + before.loss_pool,
            peak_bytes: now.peak_bytes.max(before.peak_bytes),
            ..now
        }
    }
    /// Frames that wait.
    pub fn len(&self) -> usize {
        self.count
    }
    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.queues.queued().0
    }
    /// Flows that are known.
    pub fn flows(&self) -> usize {
        self.queues.flow_count()
    }
    /// Flows of applications that are told to pause.
    pub fn told(&self) -> usize {
        self.told.len()
    }
}
