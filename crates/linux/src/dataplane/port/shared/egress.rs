//! Frames that wait for an application: the core's flow queues, with the frames beside them.
//!
//! A flow of another application is asked to pause, and its frames wait with their sender: the
//! feedback of [`FlowQueues`], which takes no time here. The overlay notifies a flow from another
//! switch (`told`), and headroom has what comes until the pause arrives. A flow from anywhere else
//! cannot be notified. Its frames that find no memory are lost, and counted.
//!
//! All frames of an application's flow are data to the queues: they keep their order, and an
//! acknowledgement overtakes nothing. Of TCP from elsewhere acknowledgements and handshakes are
//! not: nobody pauses them.
//!
//! Invariant: a frame that was taken is given out once, in the order of its flow, or counted when
//! all is given up.

use super::fifo::Fifo;
use super::link::{Link, Origin, Pause, Sender};
use super::told::{Tells, Told};
use super::waiting::Waiting;
use crate::dataplane::flow::{FlowKey, Keys, named};
use crate::dataplane::frame::{Mac, View, parse::tcp};
use millpond_core::flow_queues::{Arrival, Class, Config, Counters, FlowQueues, Outcome, SLOTS};
use millpond_core::random::Stream;
use millpond_core::{Bytes, Time, choice, overlay};
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
    config: Config,
    queues: FlowQueues<Flow, u32>,
    /// By handle.
    waiting: Vec<Option<Waiting>>,
    free: Vec<u32>,
    count: usize,
    /// Applications that have sent here.
    sources: BTreeMap<u32, Weak<Link>>,
    /// The flows that were asked to pause.
    told: BTreeMap<(u32, u32), Pause>,
    /// By port: its flows that were asked to pause and cannot be notified.
    ports: BTreeMap<u16, u32>,
    /// The notices for other switches.
    tells: Tells,
    /// In the place of flow queues, where those are not wanted.
    fifo: Option<Fifo>,
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

/// The queues' shares by the configuration: `headroom` of `memory`, slots in proportion.
fn config(memory: u64, headroom: u64, frame_max: u32) -> Config {
    let segments = (memory / (PACKET * u64::from(SLOTS))).max(64);
    let headroom = headroom.min(memory);
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
        let config = config(memory, headroom, frame_max);
        let fifo = match kind {
            QueueKind::FlowQueues => None,
            QueueKind::Backpressure => Some(Fifo::new(memory, true)),
            QueueKind::Lossy => Some(Fifo::new(memory, false)),
        };
        Egress {
            config,
            queues: FlowQueues::new(config, Stream::new(0, "shared-port").into()),
            waiting: Vec::new(),
            free: Vec::new(),
            count: 0,
            sources: BTreeMap::new(),
            told: BTreeMap::new(),
            ports: BTreeMap::new(),
            tells: Tells::default(),
            fifo,
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
        self.count == 0
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
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        if let Some(fifo) = &mut self.fifo {
            let has_room = fifo.has_room(length);
            if has_room {
                fifo.push(Waiting::new(pieces, flow.1 as u16, sender.origin()));
                self.count += 1;
            }
            return has_room;
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() as u32 - 1
        });
        let origin = sender.origin();
        if let Some(Origin { link, .. }) = origin {
            self.sources.entry(link.attachment()).or_insert_with(|| Arc::downgrade(link));
        }
        let (flow, hash) = flow;
        let class = if origin.is_some() { Class::Data } else { class };
        let arrival = Arrival { flow, hash, packet: at, len: length as u32, class };
        let verdict = self.queues.enqueue(now, &arrival);
        let is_taken = !matches!(verdict.outcome, Outcome::Hold);
        if let Outcome::Coalesced(older) = verdict.outcome {
            self.waiting[older as usize] = None;
            self.free.push(older);
            self.count -= 1;
        }
        if let (Flow::Remote { peer, key }, Class::Data) = (flow, class) {
            self.tells.arrived(peer, key, &verdict, self.queues.queued());
        }
        if is_taken {
            self.waiting[at as usize] = Some(Waiting::new(pieces, hash as u16, origin));
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

    /// Hands over frames as long as there is room for them; `sent` gets the length of each. How
    /// many there were.
    pub fn drain(&mut self, now: Time, host: &mut Host, sent: &mut dyn FnMut(usize)) -> usize {
        let mut count = 0;
        while let Some(fifo) = &mut self.fifo
            && host.has_room()
            && let Some(frame) = fifo.pop()
        {
            host.deliver(&[IoSlice::new(&frame.bytes)], frame.tag);
            sent(frame.bytes.len());
            self.count -= 1;
            count += 1;
        }
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

    /// Asks applications' flows to pause, or to go on.
    fn tell(&mut self) {
        while let Some(signal) = self.queues.next_signal() {
            match signal.flow {
                Flow::Ring { attachment, flow } if !signal.is_pause => {
                    self.told.remove(&(attachment, flow));
                }
                Flow::Ring { attachment, flow } => {
                    if let Some(link) = self.sources.get(&attachment).and_then(Weak::upgrade) {
                        self.told.insert((attachment, flow), Pause::of(link, flow));
                    }
                }
                Flow::Remote { peer, key } => {
                    self.tells.flow(peer, key, signal.is_pause, signal.queued)
                }
                Flow::Connection(_, Some(port)) => {
                    let told = self.ports.entry(port).or_insert(0);
                    *told = if signal.is_pause { *told + 1 } else { told.saturating_sub(1) };
                }
                Flow::Connection(_, None) | Flow::Pair(..) => {}
            }
        }
        self.tells.settle(&self.queues, self.config.bytes);
    }
    /// The notices that are due to other switches.
    pub fn take_told(&mut self, into: &mut Vec<Told>) {
        self.tells.take(into);
    }

    /// Forgets flows that were silent for long, and applications that have gone.
    pub fn expire(&mut self, now: Time) {
        self.queues.expire(now);
        self.tell();
        self.tells.expire();
        self.sources.retain(|_, link| link.strong_count() > 0);
    }

    /// Gives up all that waits; how many frames. Whoever was paused for it goes on.
    pub fn clear(&mut self) -> usize {
        let count = self.count;
        self.before = self.counters();
        let (config, before) = (self.config, self.before);
        let mut tells = std::mem::take(&mut self.tells);
        tells.end();
        let mut fifo = self.fifo.take();
        fifo.iter_mut().for_each(Fifo::clear);
        let fresh = Egress::new(QueueKind::FlowQueues, 0, 0, config.mtu);
        let queues = FlowQueues::new(config, Stream::new(0, "shared-port").into());
        *self = Egress { config, before, queues, tells, fifo, ..fresh };
        count
    }

    /// The events so far.
    pub fn counters(&self) -> Counters {
        let (now, before) = (self.queues.counters(), &self.before);
        Counters {
            pauses: now.pauses + before.pauses + self.fifo.as_ref().map_or(0, Fifo::stopped_count),
            resumes: now.resumes + before.resumes,
            held: now.held + before.held,
            loss_pool: now.loss_pool + before.loss_pool,
            peak_bytes: now
                .peak_bytes
                .max(before.peak_bytes)
                .max(self.fifo.as_ref().map_or(0, Fifo::peak)),
            ..now
        }
    }
    /// Ports from which a flow should pause.
    pub fn slowed(&self) -> impl Iterator<Item = u16> {
        self.ports.iter().filter(|(_, told)| **told > 0).map(|(port, _)| *port)
    }
    /// Frames that wait.
    pub fn len(&self) -> usize {
        self.count
    }
    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.queues.queued().0 + self.fifo.as_ref().map_or(0, Fifo::bytes)
    }
    /// Whether the switch is to take nothing from anywhere.
    pub fn is_stopped(&self) -> bool {
        self.fifo.as_ref().is_some_and(Fifo::is_stopped)
    }
    /// Whether a frame that found no room stays with the application that sends it.
    pub fn is_lossless(&self) -> bool {
        self.fifo.as_ref().is_none_or(Fifo::stops)
    }
    /// Flows that are known.
    pub fn flows(&self) -> usize {
        self.queues.flow_count()
    }
    /// Flows of applications and of other switches that are asked to pause.
    pub fn told(&self) -> usize {
        self.told.len() + self.tells.flows()
    }
}
