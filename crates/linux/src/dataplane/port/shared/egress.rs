//! Frames that wait for an application: the core's flow queues, with the frames beside them.
//!
//! A flow of another application is asked to pause, and its frames wait with their sender: the
//! feedback of [`FlowQueues`], which takes no time here. The overlay notifies a flow from another
//! switch (`notices`), and headroom has what comes until the pause arrives. A flow from anywhere
//! else cannot be notified. Its frames that find no memory are lost, and counted.
//!
//! The other kinds are one flow for all that comes, as switches have that keep no flows apart. As
//! in BESS, on which Backdraft's authors build, it drops at its end, or stops the switch between
//! watermarks (0.9 and 0.15 of it). Both are here to compare flow queues with.
//!
//! All frames of an application's flow are data to the queues: they keep their order, and an
//! acknowledgement overtakes nothing. Of TCP from elsewhere acknowledgements and handshakes are
//! not: nobody pauses them.
//!
//! Invariant: a frame that was taken is given out once, in the order of its flow, or counted when
//! all is given up.

use super::link::{Link, Origin, Pause, Sender};
use super::notices::{Notice, Notices};
use super::waiting::Waiting;
use crate::dataplane::flow::{FlowKey, Keys, named};
use crate::dataplane::frame::{Mac, View, parse::tcp};
use millpond_core::flow_queues::{Arrival, Class, Config, Counters, FlowQueues, Outcome, SLOTS};
use millpond_core::random::Stream;
use millpond_core::{Bytes, Time, choice, overlay};
use millpond_port::host::Host;
use slab::Slab;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::sync::{Arc, Weak};

/// Bytes of a packet by which slots are counted: a queue has slots for its memory if packets are as
/// long on average.
const PACKET: u64 = 256;

/// Segments of one queue for all: more than its bytes can fill.
const ONE_QUEUE: u64 = 1 << 32;

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
    /// One that another switch sends, which the overlay can notify.
    Remote {
        /// The switch.
        peer: u16,
        /// The flow, as the overlay names it.
        key: overlay::FlowKey,
    },
    /// A connection from elsewhere, and the port that it comes from.
    Connection(FlowKey, Option<u16>),
    /// What else goes from one to another.
    Pair(Mac, Mac),
    /// All that comes, in one queue.
    All,
}

choice! {
    /// How frames wait for an application.
    pub enum QueueKind {
        /// A queue a flow; flows are paused.
        FlowQueues = "flow-queues",
        /// One queue; above a mark the switch takes nothing from anywhere.
        Backpressure = "backpressure",
        /// One queue, which drops what it has no room for.
        Lossy = "lossy",
    }
}

/// The queues of one application.
#[derive(Debug)]
pub struct Egress {
    kind: QueueKind,
    config: Config,
    queues: FlowQueues<Flow, u32>,
    /// By handle.
    waiting: Slab<Waiting>,
    /// Applications that have sent here.
    sources: BTreeMap<u32, Weak<Link>>,
    /// The flows that were asked to pause.
    pauses: BTreeMap<(u32, u32), Pause>,
    /// By port: its flows that were asked to pause and cannot be notified.
    ports: BTreeMap<u16, u32>,
    /// The notices for other switches.
    notices: Notices,
    /// With one queue: it is filled to 0.9 of its memory, and has not fallen to 0.15 since.
    is_full: bool,
    /// How often that has begun.
    stops: u64,
    keys: Keys,
    /// Of queues that were given up.
    before: Counters,
}

/// The class of a frame to its queue: a pure acknowledgement or the beginning of a connection is
/// exempt from pauses.
pub fn class(view: &View, header: &[u8]) -> Class {
    match view.tcp().filter(|layers| layers.payload <= header.len() && layers.payload == layers.end)
    {
        Some(layers) => {
            match tcp::flags(header, layers) & (tcp::FIN | tcp::SYN | tcp::RST | tcp::ACK) {
                tcp::ACK => Class::Ack,
                flags if flags & tcp::SYN != 0 => Class::Control,
                _ => Class::Data,
            }
        }
        None => Class::Data,
    }
}

/// The queues' shares by the configuration: `headroom` of `memory`, slots in proportion. One queue
/// for all has no headroom and is bounded by bytes alone.
fn config(kind: QueueKind, memory: u64, headroom: u64, frame_max: u32) -> Config {
    let is_one = kind != QueueKind::FlowQueues;
    let segments = if is_one { ONE_QUEUE } else { memory / (PACKET * u64::from(SLOTS)) };
    let (segments, headroom) = (segments.max(64), if is_one { 0 } else { headroom.min(memory) });
    let kept = (u128::from(segments) * u128::from(headroom) / u128::from(memory.max(1))) as u64;
    Config {
        segments: segments - kept,
        headroom_segments: kept,
        bytes: Bytes(memory - headroom),
        headroom: Bytes(headroom),
        mtu: frame_max,
        quantum: frame_max,
        ..Config::default()
    }
}

impl Egress {
    /// With so much memory, of which only flows that were asked to pause may take `headroom`, for
    /// frames of at most `frame_max` bytes.
    pub fn new(kind: QueueKind, memory: u64, headroom: u64, frame_max: u32) -> Egress {
        let config = config(kind, memory, headroom, frame_max);
        Egress {
            kind,
            config,
            queues: FlowQueues::new(config, Stream::new(0, "shared-port").into()),
            waiting: Slab::new(),
            sources: BTreeMap::new(),
            pauses: BTreeMap::new(),
            ports: BTreeMap::new(),
            notices: Notices::default(),
            is_full: false,
            stops: 0,
            keys: Keys::default(),
            before: Counters::default(),
        }
    }

    /// The flow of a frame, and its hash.
    pub fn flow(&self, sender: Sender<'_>, view: &View, header: &[u8]) -> (Flow, u32) {
        if let Sender::Application(Origin { link, flow, .. }) = sender {
            let attachment = link.attachment();
            let hash = self.keys.of_pair(attachment.into(), (*flow).into());
            return (Flow::Ring { attachment, flow: *flow }, hash);
        }
        match view.layers().filter(|layers| layers.payload <= header.len()) {
            Some(layers) => {
                let key = FlowKey::of(
                    header,
                    layers,
                    view.vlan,
                    if let Sender::Peer(peer) = sender { peer } else { 0 },
                );
                let hash = key.hash(&self.keys);
                match sender {
                    Sender::Peer(peer) => (Flow::Remote { peer, key: named(header, layers) }, hash),
                    _ => (Flow::Connection(key, sender.port()), hash),
                }
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
        self.waiting.is_empty()
    }

    /// Takes a frame; `false`: there is no memory. A frame with an origin is then its sender's to
    /// keep, and its flow is paused; any other is lost.
    pub fn offer(
        &mut self,
        now: Time,
        flow: (Flow, u32),
        class: Class,
        sender: Sender<'_>,
        pieces: &[IoSlice<'_>],
    ) -> bool {
        let (flow, hash) = flow;
        let len = pieces.iter().map(|piece| piece.len()).sum::<usize>() as u32;
        let (at, origin) = (self.waiting.vacant_key() as u32, sender.origin());
        let arrival = match self.kind {
            QueueKind::FlowQueues => {
                let class = if origin.is_some() { Class::Data } else { class };
                Arrival { flow, hash, packet: at, len, class }
            }
            _ => Arrival { flow: Flow::All, hash: 0, packet: at, len, class: Class::Data },
        };
        if let Some(Origin { link, .. }) = origin {
            self.sources.entry(link.attachment()).or_insert_with(|| Arc::downgrade(link));
        }
        let verdict = self.queues.enqueue(now, &arrival);
        if let (Flow::Remote { peer, key }, Class::Data) = (arrival.flow, arrival.class) {
            self.notices.arrived(peer, key, &verdict, self.queues.queued());
        }
        let is_taken = !matches!(verdict.outcome, Outcome::Hold);
        if is_taken {
            self.waiting.insert(Waiting::new(pieces, hash as u16, origin));
        } else if origin.is_none() {
            self.queues.lose(len);
        }
        if let Outcome::Coalesced(older) = verdict.outcome {
            self.waiting.remove(older as usize);
        }
        self.settle();
        is_taken
    }

    /// Hands over frames as long as there is room for them; `sent` gets the length of each. How
    /// many there were.
    pub fn drain(&mut self, now: Time, host: &mut Host, sent: &mut dyn FnMut(usize)) -> usize {
        let mut count = 0;
        while host.has_room()
            && let Some(departure) = self.queues.dequeue(now)
        {
            let frame = self.waiting.remove(departure.packet as usize);
            host.deliver(&[IoSlice::new(&frame.bytes)], frame.tag);
            sent(frame.bytes.len());
            count += 1;
        }
        self.settle();
        count
    }

    /// Asks applications' flows to pause, or to go on; one queue stops the switch or lets it go on.
    fn settle(&mut self) {
        while let Some(signal) = self.queues.next_signal() {
            match signal.flow {
                Flow::Ring { attachment, flow } if !signal.is_pause => {
                    self.pauses.remove(&(attachment, flow));
                }
                Flow::Ring { attachment, flow } => {
                    if let Some(link) = self.sources.get(&attachment).and_then(Weak::upgrade) {
                        self.pauses.insert((attachment, flow), Pause::of(link, flow));
                    }
                }
                Flow::Remote { peer, key } => {
                    self.notices.flow(peer, key, signal.is_pause, signal.queued)
                }
                Flow::Connection(_, Some(port)) => {
                    let flows = self.ports.entry(port).or_insert(0);
                    *flows = if signal.is_pause { *flows + 1 } else { flows.saturating_sub(1) };
                }
                Flow::Connection(_, None) | Flow::Pair(..) | Flow::All => {}
            }
        }
        self.notices.settle(&self.queues, self.config.bytes);
        if self.kind == QueueKind::Backpressure {
            let (bytes, memory) = (self.bytes(), self.config.bytes.0);
            let fills = !self.is_full && bytes >= memory / 10 * 9;
            self.stops += u64::from(fills);
            self.is_full = fills || self.is_full && bytes > memory / 100 * 15;
        }
    }
    /// The notices that are due to other switches.
    pub fn take_notices(&mut self, into: &mut Vec<Notice>) {
        self.notices.take(into);
    }

    /// Forgets flows that were silent for long, and applications that have gone.
    pub fn expire(&mut self, now: Time) {
        self.queues.expire(now);
        self.settle();
        self.notices.expire();
        self.sources.retain(|_, link| link.strong_count() > 0);
    }

    /// Gives up all that waits; how many frames. Whoever was paused for it goes on.
    pub fn clear(&mut self) -> usize {
        let (count, before) = (self.waiting.len(), self.counters());
        let mut notices = std::mem::take(&mut self.notices);
        notices.end();
        let (memory, headroom) = (self.config.bytes.0, self.config.headroom.0);
        let fresh = Egress::new(self.kind, memory + headroom, headroom, self.config.mtu);
        *self = Egress { before, notices, ..fresh };
        count
    }

    /// The events so far.
    pub fn counters(&self) -> Counters {
        let (now, before) = (self.queues.counters(), &self.before);
        let [pauses, resumes] = match self.kind {
            QueueKind::FlowQueues => [now.pauses, now.resumes],
            _ => [self.stops, 0],
        };
        Counters {
            pauses: pauses + before.pauses,
            resumes: resumes + before.resumes,
            held: now.held + before.held,
            loss_pool: now.loss_pool + before.loss_pool,
            peak_bytes: now.peak_bytes.max(before.peak_bytes),
            ..now
        }
    }
    /// Ports from which a flow should pause.
    pub fn slowed(&self) -> impl Iterator<Item = u16> {
        self.ports.iter().filter(|(_, flows)| **flows > 0).map(|(port, _)| *port)
    }
    /// Frames that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.queues.queued().0
    }
    /// Whether the switch is to take nothing from anywhere.
    pub fn is_stopped(&self) -> bool {
        self.is_full
    }
    /// Whether a frame that found no room stays with the application that sends it.
    pub fn is_lossless(&self) -> bool {
        self.kind != QueueKind::Lossy
    }
    /// Flows of flow queues.
    pub fn flows(&self) -> usize {
        if self.kind == QueueKind::FlowQueues { self.queues.flow_count() } else { 0 }
    }
    /// Flows of applications and of other switches that are asked to pause.
    pub fn notified(&self) -> usize {
        self.pauses.len() + self.notices.flows()
    }
}
