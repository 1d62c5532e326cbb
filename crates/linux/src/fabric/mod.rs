//! A switch of a fabric: the core's switch node between real ports.
//!
//! | file | what it does |
//! |---|---|
//! | `lines` | the node's exit: frames that wait for their time, calls that are due |
//!
//! The node decides in a time of its own, which never runs ahead of the clock: a call that it asked
//! for is made with the time that it named, however late the poll loop is, and a frame is handed to
//! its port when the clock has reached the departure of its last bit. So a port is a link of its
//! rate whatever takes the frames, and verdicts do not depend on how often the loop comes around.
//!
//! Of one instant, links that are free come before arrivals, and looks at what is paused after
//! them, as in the simulator.
//!
//! Invariant: each packet of a frame that arrived is sent once, dropped for a reason that is
//! counted, or held here, and its buffer is held as long.

#[cfg(test)]
mod conformance;
mod lines;
#[cfg(test)]
mod tests;

pub use lines::Line;

use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::{Checksums, Header, Segmenter, View, parse, parse_head, pause};
use crate::dataplane::metadata::Classifier;
use crate::dataplane::packet::Packet as Bytes;
use crate::dataplane::port::Received;
use lines::{Call, Exit, Held, Lines};
use millpond_core::Time;
use millpond_core::switch::Switch;
use millpond_core::switch::pause::{PauseFrame, PauseTarget};

/// A switch and its ports.
pub struct FabricSwitch {
    /// What decides.
    node: Switch,
    classifier: Classifier,
    lines: Lines,
    /// The packets of one frame.
    parts: Vec<Held>,
}

impl FabricSwitch {
    /// Of a node and a line for each of its ports.
    pub fn new(node: Switch, classifier: Classifier, lines: Vec<Line>) -> FabricSwitch {
        FabricSwitch { node, classifier, lines: Lines::new(lines), parts: Vec::new() }
    }

    /// The node, for what it has counted.
    pub fn node(&self) -> &Switch {
        &self.node
    }
    /// The ports.
    pub fn lines(&self) -> &[Line] {
        &self.lines.all
    }
    /// Packets that are held here.
    pub fn held(&self) -> usize {
        self.lines.held()
    }

    /// Reads what a port has for now, `burst` frames at most; how many there were.
    pub fn receive(&mut self, now: Time, port: u16, burst: usize, buffers: &mut Buffers) -> usize {
        for count in 0..burst {
            let line = &mut self.lines.all[usize::from(port)];
            let Some(buffer) = buffers.take() else {
                line.slot.counters.drop(Drop::NoBuffer);
                return count;
            };
            let received = line
                .slot
                .port
                .as_mut()
                .map_or(Received::Nothing, |p| p.receive(buffers.bytes_mut(buffer)));
            let more = !matches!(received, Received::Nothing | Received::Gone);
            match received {
                Received::Frame { start, length, offload } => {
                    line.slot.counters.received += 1;
                    line.slot.counters.received_bytes += length as u64;
                    let frame = Frame { buffer, start, length, offload };
                    if let Err(reason) = self.arrive(now, port, &frame, buffers) {
                        self.lines.all[usize::from(port)].slot.counters.drop(reason);
                    }
                }
                Received::Refused(refusal) => line.slot.counters.drop(refusal.reason()),
                Received::Nothing => {}
                Received::Gone => line.slot.port = None,
            }
            buffers.release(buffer);
            if !more {
                return count;
            }
        }
        burst
    }

    /// Takes a frame that arrived at `port`. Packets that wait keep a reference to its buffer, and
    /// the switch counts the fate of each packet.
    ///
    /// # Errors
    /// The reason to drop the frame or one of its packets: no Ethernet header, an unknown control
    /// frame, a virtio header that does not fit, a source that is a group address, or an unknown
    /// destination.
    pub fn arrive(
        &mut self,
        now: Time,
        port: u16,
        frame: &Frame,
        buffers: &mut Buffers,
    ) -> Result<(), Drop> {
        self.call_until((now, Call::Ready(u16::MAX)), buffers);
        let bytes = frame.bytes(buffers);
        if pause::is_control(bytes) {
            let quanta = pause::read(bytes).ok_or(Drop::BadControl)?;
            self.pause(now, port, &quanta, buffers);
            return Ok(());
        }
        let view = parse(bytes).ok_or(Drop::Runt)?;
        frame.offload.check(&view, frame.length).map_err(|_| Drop::BadOffload)?;
        if view.source.is_group() {
            return Err(Drop::SourceGroup);
        }
        self.cut(frame, &view, buffers);
        let FabricSwitch { node, classifier, lines, parts } = self;
        let mut result = Ok(());
        for mut held in parts.drain(..) {
            match classifier.read(now, held.bytes.header.bytes(), held.bytes.length(), &held.view) {
                Ok(packet) => {
                    let id = lines.take(packet, held);
                    node.on_arrival(now, port, id, &mut Exit { lines, buffers });
                }
                Err(reason) => {
                    held.bytes.end(buffers);
                    result = Err(reason);
                }
            }
        }
        result
    }

    /// Cuts a super-segment into packets, as a NIC would on the way to a wire: the switch decides
    /// of packets.
    fn cut(&mut self, frame: &Frame, view: &View, buffers: &mut Buffers) {
        let range = frame.start..frame.start + frame.length;
        let bytes = &buffers.bytes(frame.buffer)[range.clone()];
        match view.layers().filter(|_| frame.offload.gso_size > 0) {
            Some(layers) => {
                let mut segmenter = Segmenter::new(
                    bytes,
                    *layers,
                    frame.offload.gso_size.into(),
                    Checksums::Partial,
                );
                let mut header = Header::default();
                while let Some(payload) = segmenter.next(&mut header) {
                    let offload = segmenter.offload(payload.len());
                    let length = header.bytes().len() + payload.len();
                    let view = parse_head(header.bytes(), length).unwrap_or(*view);
                    let payload = payload.start + range.start..payload.end + range.start;
                    let bytes = Bytes::new(header, frame.buffer, payload);
                    self.parts.push(Held { bytes, view, offload });
                }
            }
            None => {
                let headers = view.layers().map_or(range.len(), |layers| layers.payload);
                let bytes = Bytes::of_frame(buffers, frame.buffer, range, headers);
                self.parts.push(Held { bytes, view: *view, offload: frame.offload });
            }
        }
        buffers.retain(
            frame.buffer,
            self.parts.iter().filter(|part| part.bytes.has_payload()).count() as u32,
        );
    }

    /// The neighbour at a port stops priorities, or lets them go on.
    fn pause(&mut self, now: Time, port: u16, quanta: &pause::Quanta, buffers: &mut Buffers) {
        let rate = self.lines.all[usize::from(port)].rate;
        for (priority, quanta) in quanta.iter().enumerate() {
            if let Some(quanta) = quanta {
                let duration = rate.time(u64::from(*quanta) * pause::QUANTUM_BYTES);
                let frame = PauseFrame { target: PauseTarget::Priority(priority as u8), duration };
                self.node.on_pause(now, port, frame, &mut Exit { lines: &mut self.lines, buffers });
            }
        }
    }

    /// The clock is at `now`, and what has arrived by then was looked at: makes the calls that are
    /// due, and hands the ports what has left them by then.
    pub fn advance(&mut self, now: Time, buffers: &mut Buffers) {
        self.call_until((now, Call::LAST), buffers);
        self.lines.release(now, buffers);
    }

    /// When [`FabricSwitch::advance`] is due without a frame. A port that its device holds up is
    /// not asked for.
    pub fn deadline(&self) -> Option<Time> {
        self.lines.deadline()
    }

    fn call_until(&mut self, until: (Time, Call), buffers: &mut Buffers) {
        while let Some((at, call)) = self.lines.due(until) {
            let exit = &mut Exit { lines: &mut self.lines, buffers };
            match call {
                Call::Ready(port) => self.node.on_ready(at, port, exit),
                Call::PauseCheck(port, target) => self.node.on_pause_check(at, port, target, exit),
            }
        }
    }
}
