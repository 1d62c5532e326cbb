//! The replay: an application in this process at a switch's slot, with the trace's times for a
//! clock.

use super::simulated::sender;
use super::{After, Event, FLOWS, SENDERS, Scene, Spoken, Stand, Trace};
use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Drop;
use crate::dataplane::flow::named;
use crate::dataplane::frame::parse;
use crate::dataplane::frame::segment::tests::{Build, frame_of};
use crate::dataplane::frame::{Layers, Offload, Protocol};
use crate::dataplane::port::Port;
use crate::dataplane::port::shared::link::Link;
use crate::dataplane::port::shared::{
    Fate, Notice, Origin, QueueKind, Sender, Shared, SharedSettings, What,
};
use crate::dataplane::{outgoing::Outgoing, slot::Slot};
use crate::switch::config::PeerParams;
use crate::switch::node::{Alone, Node, Round};
use crate::switch::overlay::{Admission, Talk};
use millpond_core::Time;
use millpond_core::overlay::{FlowKey, Key, Target, wire};
use millpond_port::Frame;
use millpond_port::layout::Sizes;
use std::collections::{BTreeSet, VecDeque};
use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Source ports from here on are flows.
const FIRST: u16 = 1000;
/// Packets that the simulator's switch takes in a round.
const BATCH: usize = 32;
const NUMBER: usize = 42;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Behind {
    /// At other switches, which the overlay notifies.
    Peers,
    /// At ports of the same switch, as applications.
    Applications,
}

#[derive(Default)]
pub struct Replayed {
    pub after: Vec<After>,
    pub served: Vec<u32>,
    /// By step: the flows that are asked to pause.
    pub told: Vec<BTreeSet<u32>>,
}

fn frame(number: u32, flow: u32, size: u16) -> Vec<u8> {
    let payload = usize::from(size) - NUMBER;
    let mut frame =
        frame_of(&Build { protocol: Protocol::Udp, payload, port: 7, ..Build::default() });
    frame[29] = sender(flow) as u8;
    frame[34..36].copy_from_slice(&(FIRST + flow as u16).to_be_bytes());
    frame[NUMBER..NUMBER + 4].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|i| frame[NUMBER + i]))
}

fn layers(frame: &[u8]) -> Layers {
    *parse(frame).expect("a frame").layers().expect("of UDP")
}

fn flow_of(key: &FlowKey) -> u32 {
    u32::from(key.source_port - FIRST)
}

/// An overlay with this feedback time, as with a peer that it has met.
fn talk(feedback: Time, drawn: u8) -> Talk {
    let mut talk =
        Talk::new(&PeerParams { feedback, pause_ttl: feedback * 5, ..PeerParams::default() });
    let key = Key::new(b"what two switches share").expect("a key");
    talk.meet(Time::ZERO, [drawn; 16], key);
    talk
}

/// A switch with one application, and what is at the senders' ends.
struct Rig<'a> {
    trace: &'a Trace,
    behind: Behind,
    node: Node,
    buffers: Buffers,
    socket: PathBuf,
    port: millpond_port::Port,
    frames: Vec<Frame>,
    /// Frames that the application has taken and not done with.
    hand: VecDeque<u32>,
    /// Frames that the simulator's receive ring holds.
    ring: VecDeque<u32>,
    ours: Vec<Talk>,
    theirs: Vec<Talk>,
    links: Vec<Arc<Link>>,
    told: BTreeSet<u32>,
    refused: u64,
    replayed: Replayed,
}

impl std::ops::Drop for Rig<'_> {
    fn drop(&mut self) {
        // Whoever has not attached has left none.
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Rig<'_> {
    fn new<'a>(trace: &'a Trace, scene: &Scene, behind: Behind) -> Rig<'a> {
        static RIGS: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "millpond-alike-{}-{}",
            std::process::id(),
            RIGS.fetch_add(1, Ordering::Relaxed)
        );
        let socket = std::env::temp_dir().join(name);
        let sizes =
            Sizes { flows: 1, places: 16, buffers: scene.ring, buffer_bytes: scene.quantum };
        let (memory, headroom) = (scene.memory + scene.headroom, scene.headroom);
        let queue = QueueKind::FlowQueues;
        let settings =
            SharedSettings { socket: socket.clone(), uid: None, sizes, queue, memory, headroom };
        let (mut node, mut buffers) = (Node::default(), Buffers::new(4));
        let shared = Port::Shared(Box::new(Shared::open(settings).expect("a socket")));
        node.slots.push(Slot::new("application", Some(shared), 1500));
        node.table.add_port(1024, &[]);
        let path = socket.clone();
        let attaching =
            std::thread::spawn(move || millpond_port::Port::attach(path).expect("a port"));
        while !attaching.is_finished() {
            node.serve_attached(&mut Round::new(Time::ZERO, &mut buffers, &mut Alone), 0, true);
        }
        let port = attaching.join().expect("attached");
        let talks =
            |drawn: u8| (0..SENDERS).map(|n| talk(scene.feedback, drawn + n as u8)).collect();
        Rig {
            trace,
            behind,
            node,
            buffers,
            socket,
            port,
            frames: vec![Frame::default(); scene.batch as usize],
            hand: VecDeque::new(),
            ring: VecDeque::new(),
            ours: talks(1),
            theirs: talks(101),
            links: (0..SENDERS).map(|_| Link::new(FLOWS + 1)).collect(),
            told: BTreeSet::new(),
            refused: 0,
            replayed: Replayed::default(),
        }
    }

    fn shared(&mut self) -> &mut Shared {
        self.node.slots[0].shared().expect("an application's")
    }

    /// The application takes frames if it has none, and the switch fills its buffers again.
    fn poll(&mut self, now: Time) {
        self.node.flush_attached(&[0]);
        if !self.hand.is_empty() {
            return;
        }
        let count = self.port.recv(&mut self.frames);
        self.hand.extend(self.frames[..count].iter().map(|frame| number(frame.bytes())));
        // One hears that buffers are free, the next hands over what waits.
        for _ in 0..2 {
            self.node.serve_attached(&mut Round::new(now, &mut self.buffers, &mut Alone), 0, false);
        }
        self.node.flush_attached(&[0]);
    }

    /// Offers a frame to the application's port: whether that has taken it.
    fn offer(&mut self, now: Time, which: u32) -> Result<bool, String> {
        let (flow, size) = self.trace.frames[which as usize];
        let bytes = frame(which, flow, size);
        let pieces = [IoSlice::new(&bytes[..NUMBER]), IoSlice::new(&bytes[NUMBER..])];
        let peer = sender(flow) as u16 - 1;
        let origin = Origin { link: self.links[usize::from(peer)].clone(), flow, buffer: which };
        let sender = match self.behind {
            Behind::Peers => Sender::Peer(peer),
            Behind::Applications => Sender::Application(&origin),
        };
        let view = parse(&bytes).expect("a frame");
        let outgoing = Outgoing {
            view,
            offload: Offload::default(),
            pieces: &pieces,
            length: bytes.len(),
            sender,
        };
        let is_taken =
            match (self.behind, self.node.slots[0].deliver(now, &outgoing, &mut Vec::new())) {
                (_, Ok(Fate::Left | Fate::Waits)) => true,
                (Behind::Peers, Err(Drop::LossPool)) | (Behind::Applications, Ok(Fate::Held)) => {
                    false
                }
                (_, other) => return Err(format!("frame {which}: {other:?}")),
            };
        self.refused += u64::from(!is_taken);
        Ok(is_taken)
    }

    fn step(&mut self, now: Time, event: Event) -> Result<(), String> {
        match event {
            Event::Kept | Event::Dropped | Event::Words => (),
            Event::Comes(number) => self.ring.push_back(number),
            Event::Round => {
                for _ in 0..self.ring.len().min(BATCH) {
                    let which = self.ring[0];
                    if !self.offer(now, which)? {
                        break;
                    }
                    self.ring.pop_front();
                    self.poll(now);
                }
            }
            Event::Serves => {
                let served = self.hand.pop_front().ok_or("the application has nothing")?;
                self.replayed.served.push(served);
                self.poll(now);
            }
        }
        let said = self.speak(now)?;
        let reading = self.shared().reading();
        let stand = Stand {
            waiting: reading.waiting_bytes,
            pauses: reading.pauses,
            resumes: reading.resumes,
            refused: self.refused,
            served: self.replayed.served.len(),
        };
        let held = (0..FLOWS).map(|flow| self.holds(now, flow)).collect();
        self.replayed.after.push(After { stand, said, held });
        self.replayed.told.push(self.told.clone());
        if self.told.len() != reading.notified {
            return Err(format!(
                "{:?} are announced, {} in the reading",
                self.told, reading.notified
            ));
        }
        Ok(())
    }

    /// As the switch's uplink does at the end of a round, with paths that take no time.
    fn speak(&mut self, now: Time) -> Result<Vec<Spoken>, String> {
        let mut told = Vec::new();
        self.shared().take_notices(&mut told);
        for Notice { peer, what } in told {
            match what {
                What::Pause(Target::Flow(flow), _) => drop(self.told.insert(flow_of(&flow))),
                What::Resume(Target::Flow(flow)) => drop(self.told.remove(&flow_of(&flow))),
                _ => (),
            }
            self.ours[usize::from(peer)].notify(now, &what);
        }
        for link in &self.links {
            for (flow, is_paused) in link.take().1 {
                if is_paused {
                    self.told.insert(flow)
                } else {
                    self.told.remove(&flow)
                };
            }
        }
        let mut said = Vec::new();
        for (peer, (ours, theirs)) in self.ours.iter_mut().zip(&mut self.theirs).enumerate() {
            if ours.deadline().is_some_and(|due| due <= now) {
                ours.expire(now);
                while let Some(datagram) = ours.transmit(now) {
                    theirs
                        .receive(now, &datagram, |_| true)
                        .map_err(|reason| format!("{reason:?}"))?;
                    for record in wire::records(&datagram).ok_or("no datagram")? {
                        let flow = match record.target {
                            Target::Flow(key) => Some(flow_of(&key)),
                            Target::Application { .. } => None,
                            Target::Peer => return Err("a peer is paused".into()),
                        };
                        let (to, number) = (1 + peer as u32, record.seq);
                        let (word, queued, ttl) = (record.word, record.queued, record.ttl);
                        said.push(Spoken { to, word, flow, number, queued, ttl });
                    }
                }
            }
            if theirs.deadline().is_some_and(|due| due <= now) {
                theirs.expire(now);
            }
            while theirs.next(now).is_some() {}
        }
        Ok(said)
    }

    /// Whether a frame of a flow would wait at its sender.
    fn holds(&mut self, now: Time, flow: u32) -> bool {
        let bytes = frame(0, flow, 64);
        debug_assert_eq!(flow_of(&named(&bytes, &layers(&bytes))), flow);
        let view = parse(&bytes).expect("a frame");
        let theirs = &mut self.theirs[sender(flow) as usize - 1];
        theirs.admit(now, &bytes, &Offload::default(), &view, Sender::Elsewhere)
            == Ok(Admission::Waits)
    }

    /// When something was to be said before `now`, if it was.
    fn overdue(&self, now: Time) -> Option<Time> {
        self.ours.iter().filter_map(Talk::deadline).min().filter(|due| *due < now)
    }
}

/// Replays a trace on Linux, with what `scene` says of memory, application and times.
pub fn replay(trace: &Trace, scene: &Scene, behind: Behind) -> Result<Replayed, String> {
    let mut rig = Rig::new(trace, scene, behind);
    for (now, event, _) in &trace.steps {
        if let Some(due) = rig.overdue(*now) {
            return Err(format!("before {now:?}: Linux would speak at {due:?}"));
        }
        rig.step(*now, *event)?;
    }
    match rig.overdue(Time::MAX) {
        Some(due) => Err(format!("at the end Linux would speak at {due:?}")),
        None => Ok(std::mem::take(&mut rig.replayed)),
    }
}
