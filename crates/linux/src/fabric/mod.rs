//! A fabric: the core's switch nodes, the links between them, and ports of this machine.
//!
//! | file | what it does |
//! |---|---|
//! | `lines` | the nodes' exit: links, frames that wait for their time, calls that are due |
//! | `passing` | copies of frames that pass ends of links which somebody watches |
//!
//! Nodes decide in a time of their own, which never runs ahead of the clock: a call that a node
//! asked for is made with the time that it named, however late the poll loop is, and a frame is
//! handed to its port when the clock has reached the departure of its last bit. So a port is a link
//! of its rate whatever takes the frames, and verdicts do not depend on how often the loop comes
//! around.
//!
//! Of one instant, links that are free come before arrivals, and looks at what is paused after
//! them, as in the simulator; and arrivals draw lots where the plan has them do so.
//!
//! Invariant: each packet of a frame that arrived is sent once, dropped for a reason that is
//! counted, or held here, and its buffer is held as long.

mod lines;
mod passing;
#[cfg(test)]
mod tests;

pub use crate::dataplane::held::{Held, cut};
pub use lines::{Far, Left, Line, Modelled, Paused};
pub use passing::{LinkEnd, Passed};

use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::{parse, pause};
use crate::dataplane::metadata::Classifier;
use lines::{Call, Exit, Lines};
use millpond_core::packet::Record;
use millpond_core::switch::Switch;
use millpond_core::switch::pause::{PauseFrame, PauseTarget};
use millpond_core::{Packet, Time};
use passing::Watched;

pub struct Fabric {
    nodes: Vec<Node>,
    /// By line: its node, and its port there.
    ends: Vec<(u32, u16)>,
    classifier: Classifier,
    lines: Lines,
    /// The packets of one frame.
    parts: Vec<Held>,
}

/// A switch node and its first line.
struct Node {
    switch: Switch,
    first: u32,
}

impl Fabric {
    /// One switch, with a line for each of its ports.
    pub fn new(node: Switch, classifier: Classifier, lines: Vec<Line>) -> Fabric {
        Fabric::of([(node, lines)], classifier)
    }

    /// Several switches, each with a line for each of its ports. Lines are numbered in this order.
    pub fn of(
        switches: impl IntoIterator<Item = (Switch, Vec<Line>)>,
        classifier: Classifier,
    ) -> Fabric {
        let (mut nodes, mut ends, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for (switch, lines) in switches {
            let (node, first) = (nodes.len() as u32, all.len() as u32);
            ends.extend((0..lines.len()).map(|port| (node, port as u16)));
            all.extend(lines);
            nodes.push(Node { switch, first });
        }
        Fabric { nodes, ends, classifier, lines: Lines::new(all), parts: Vec::new() }
    }

    /// The first node, for what it has counted.
    pub fn node(&self) -> &Switch {
        &self.nodes[0].switch
    }
    pub fn switches(&self) -> impl Iterator<Item = &Switch> {
        self.nodes.iter().map(|node| &node.switch)
    }
    /// All nodes, to look at their queues.
    pub fn switches_mut(&mut self) -> impl Iterator<Item = &mut Switch> {
        self.nodes.iter_mut().map(|node| &mut node.switch)
    }
    /// One node, to change its routes or links.
    pub fn switch_mut(&mut self, node: usize) -> &mut Switch {
        &mut self.nodes[node].switch
    }
    pub fn lines(&self) -> &[Line] {
        &self.lines.all
    }
    /// Packets that are held here.
    pub fn held(&self) -> usize {
        self.lines.held()
    }
    /// Bytes that switches have cut off modelled packets.
    pub fn trimmed_bytes(&self) -> u64 {
        self.lines.trimmed_bytes
    }
    /// Bytes of the frames that are held here, and of those whose packets were dropped.
    pub fn bytes(&self) -> (u64, u64) {
        (self.lines.held_bytes(), self.lines.dropped_bytes)
    }
    /// Packets put on links by nodes.
    pub fn hops(&self) -> u64 {
        self.lines.hops
    }
    /// Returns the classifier, which makes packets of frames.
    pub fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    /// A packet has left its host at a time, and arrives at a line at another, which is not before
    /// the last call of [`Fabric::advance`].
    pub fn enter(
        &mut self,
        left: Time,
        at: Time,
        line: u32,
        packet: Packet,
        held: Held,
        buffers: &Buffers,
    ) {
        let Line { slot, watched, .. } = &mut self.lines.all[line as usize];
        slot.counters.receive(held.bytes.length());
        let is_watched = watched.host;
        debug_assert!(at >= self.lines.advanced, "{at} is before {}", self.lines.advanced);
        let id = self.lines.take(packet, held);
        if is_watched {
            self.lines.pass(left, LinkEnd::Host(line), true, id, buffers);
        }
        self.lines.arrives(at, line, id, false);
    }

    /// A modelled host's packet arrives at a line, not before the last call of
    /// [`Fabric::advance`]. The first of `records` are its own.
    pub fn enter_modelled(
        &mut self,
        at: Time,
        line: u32,
        packet: Packet,
        records: &mut dyn Iterator<Item = Record>,
    ) {
        debug_assert!(at >= self.lines.advanced, "{at} is before {}", self.lines.advanced);
        let id = self.lines.take_modelled(packet, records);
        self.lines.arrives(at, line, id, false);
    }

    /// The next modelled packet that has reached its host, in the order of time.
    pub fn leave_modelled(&mut self) -> Option<Modelled> {
        self.lines.modelled.pop_front()
    }

    /// Watches these ends of links, and no others: copies of frames that pass them are kept until
    /// [`Fabric::passed`] takes them.
    pub fn watch(&mut self, is_watched: impl Fn(LinkEnd) -> bool) {
        for (number, line) in (0..).zip(&mut self.lines.all) {
            let [port, host] = [LinkEnd::Port(number), LinkEnd::Host(number)].map(&is_watched);
            line.watched = Watched { port, host };
        }
    }

    /// Takes the frames that have passed watched ends before `until`, in the order of time; of one
    /// time, in the order in which the fabric noted them. No frame passes before the last call of
    /// [`Fabric::advance`].
    pub fn passed(&mut self, until: Time) -> Vec<Passed> {
        let mut passed: Vec<Passed> =
            self.lines.passed.extract_if(.., |passed| passed.at < until).collect();
        passed.sort_by_key(|passed| passed.at);
        passed
    }

    /// The next packet that has reached its host, in the order of time.
    pub fn leave(&mut self) -> Option<Left> {
        self.lines.left.pop_front()
    }

    /// The next pause frame for a host, in the order in which they were sent.
    pub fn paused(&mut self) -> Option<Paused> {
        self.lines.paused.pop_front()
    }

    /// Reads what a port has for now, `burst` frames at most; how many there were.
    pub fn receive(&mut self, now: Time, line: u32, burst: usize, buffers: &mut Buffers) -> usize {
        for count in 0..burst {
            let slot = &mut self.lines.all[line as usize].slot;
            let Some(read) = slot.read(buffers) else { return count };
            let Some(frame) = read else { continue };
            slot.counters.receive(frame.length);
            if let Err(reason) = self.arrive(now, line, &frame, buffers) {
                self.lines.all[line as usize].slot.counters.drop(reason);
            }
            buffers.release(frame.buffer);
        }
        burst
    }

    /// Takes a frame that arrived at a line. Packets that wait keep a reference to its buffer, and
    /// the switch counts the fate of each packet.
    ///
    /// # Errors
    /// The reason to drop the frame or one of its packets: no Ethernet header, an unknown control
    /// frame, a virtio header that does not fit, a source that is a group address, or an unknown
    /// destination.
    pub fn arrive(
        &mut self,
        now: Time,
        line: u32,
        frame: &Frame,
        buffers: &mut Buffers,
    ) -> Result<(), Drop> {
        self.call_until((now, Call::READY), buffers);
        let bytes = frame.bytes(buffers);
        if pause::is_control(bytes) {
            let quanta = pause::read(bytes).ok_or(Drop::BadControl)?;
            self.pause(now, line, &quanta, buffers);
            return Ok(());
        }
        let view = parse(bytes).ok_or(Drop::Runt)?;
        frame.offload.check(&view, frame.length).map_err(|_| Drop::BadOffload)?;
        if view.source.is_group() {
            return Err(Drop::SourceGroup);
        }
        cut(frame, &view, buffers, &mut self.parts);
        let Fabric { nodes, ends, classifier, lines, parts } = self;
        let (node, port) = ends[line as usize];
        let Node { switch, first } = &mut nodes[node as usize];
        let mut result = Ok(());
        for mut held in parts.drain(..) {
            match classifier.read(now, held.bytes.header.bytes(), held.bytes.length(), &held.view) {
                Ok(packet) => {
                    let id = lines.take(packet, held);
                    if lines.all[line as usize].watched.port {
                        lines.pass(now, LinkEnd::Port(line), false, id, buffers);
                    }
                    switch.on_arrival(now, port, id, &mut Exit { lines, buffers, first: *first });
                }
                Err(reason) => {
                    held.bytes.end(buffers);
                    result = Err(reason);
                }
            }
        }
        result
    }

    /// The neighbour at a line stops priorities, or lets them go on.
    fn pause(&mut self, now: Time, line: u32, quanta: &pause::Quanta, buffers: &mut Buffers) {
        let rate = self.lines.all[line as usize].rate;
        for (priority, quanta) in quanta.iter().enumerate() {
            if let Some(quanta) = quanta {
                let duration = rate.time(u64::from(*quanta) * pause::QUANTUM_BYTES);
                let target = PauseTarget::Priority(priority as u8);
                self.make(now, Call::Pause(line, target, duration), buffers);
            }
        }
    }

    /// The clock is at `now`, and what has arrived by then was looked at: makes the calls that are
    /// due, and hands the ports what has left them by then.
    pub fn advance(&mut self, now: Time, buffers: &mut Buffers) {
        self.call_until((now, Call::LAST), buffers);
        self.lines.advanced = self.lines.advanced.max(now);
        self.lines.release(now, buffers);
    }

    /// When [`Fabric::advance`] is due without a frame. A port that its device holds up is
    /// not asked for.
    pub fn deadline(&self) -> Option<Time> {
        self.lines.deadline()
    }

    fn call_until(&mut self, until: (Time, Call), buffers: &mut Buffers) {
        while let Some((at, call)) = self.lines.due(until) {
            self.make(at, call, buffers);
        }
    }

    fn make(&mut self, at: Time, call: Call, buffers: &mut Buffers) {
        if let Call::Arrive(_, line, _, id) | Call::Leave(_, line, _, id) = call
            && let Some(reason) = self.lines.lost(id)
        {
            return self.lines.discard(line, id, reason, buffers);
        }
        let line = match call {
            Call::Leave(_, line, _, id) => {
                if self.lines.all[line as usize].watched.host {
                    self.lines.pass(at, LinkEnd::Host(line), false, id, buffers);
                }
                return self.lines.leave(at, line, id);
            }
            Call::Ready(line)
            | Call::Arrive(_, line, ..)
            | Call::Pause(line, ..)
            | Call::PauseCheck(line, _) => line,
        };
        if let Call::Arrive(.., id) = call
            && self.lines.all[line as usize].watched.port
        {
            self.lines.pass(at, LinkEnd::Port(line), false, id, buffers);
        }
        let (node, port) = self.ends[line as usize];
        let Node { switch, first } = &mut self.nodes[node as usize];
        let exit = &mut Exit { lines: &mut self.lines, buffers, first: *first };
        match call {
            Call::Ready(_) => switch.on_ready(at, port, exit),
            Call::Arrive(.., id) => switch.on_arrival(at, port, id, exit),
            Call::Pause(_, target, duration) => {
                switch.on_pause(at, port, PauseFrame { target, duration }, exit)
            }
            Call::PauseCheck(_, target) => switch.on_pause_check(at, port, target, exit),
            Call::Leave(..) => {}
        }
    }
}
