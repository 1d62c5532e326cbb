//! Two switches with their edges, the fabric between them, and the loop that drives all of it: one
//! thread, one clock reading a round.
//!
//! A round looks first at what has left the fabric, a poll of at most `budget` packets for each
//! side, and reads the taps only when nothing of that is left. So a loop that cannot keep up leaves
//! frames in the senders' queues, and none is lost for want of time.
//!
//! Invariant: the receiving edge's time is the fabric's: a wait ends only when all packets that
//! left before its end were seen.

use super::fabric::{Fabric, PathSettings};
use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::{Counters, Drop};
use crate::dataplane::frame::View;
use crate::dataplane::port::shared::{Fate, Sender};
use crate::dataplane::port::{Error, Port, Tap};
use crate::dataplane::slot::Slot;
use crate::edge::{Carrier, Edge};
use crate::encapsulation::Encapsulation;
use crate::switch::node::{Node, Remote};
use millpond_core::Time;
use millpond_core::edge::flowcell::Rule;
use millpond_core::edge::gro::{self, OffloadParams};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Super-segments that are read from a tap at once.
const READS: usize = 4;
/// Buffers: the windows of a few connections.
const BUFFERS: usize = 4096;
/// The longest sleep.
const NAP: Time = Time::from_ms(10);

struct Side {
    node: Node,
    edge: Edge,
    /// The fabric for frames that this side sends.
    fabric: Fabric,
}

/// All of it. Side 0 is the sender's, side 1 the receiver's.
pub struct World {
    sides: [Side; 2],
    buffers: Buffers,
    budget: usize,
}

/// The way of frames for the other side.
struct Uplink<'a> {
    edge: &'a mut Edge,
    fabric: &'a mut dyn Carrier,
}

impl Remote for Uplink<'_> {
    fn transmit(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &Frame,
        view: &View,
        _: Option<(usize, Sender<'_>)>,
    ) -> Result<Fate, Drop> {
        let mut frame = *frame;
        self.edge.send(now, buffers, &mut frame, view, 0, self.fabric).map(|()| Fate::Left)
    }
}

impl World {
    /// Over these taps and paths, the same both ways.
    pub fn new(
        taps: [Tap; 2],
        paths: &[PathSettings],
        rule: Rule,
        offload: &OffloadParams,
        budget: usize,
    ) -> Result<World, Error> {
        let labels: Vec<u16> = (0..paths.len() as u16).collect();
        let side = |tap: Tap| -> Result<Side, Error> {
            let mtu = tap.device().mtu().map_err(|e| Error::kernel("asking for a tap's MTU", e))?;
            let name = tap.device().name().to_string();
            let mut node = Node::default();
            node.slots.push(Slot::new(name, Some(Port::Tap(tap)), mtu));
            let edge = Edge::new(rule, vec![labels.clone()], offload);
            Ok(Side { node, edge, fabric: Fabric::new(paths) })
        };
        let [a, b] = taps;
        Ok(World { sides: [side(a)?, side(b)?], buffers: Buffers::new(BUFFERS), budget })
    }

    /// Moves frames until `stop`.
    pub fn run(&mut self, stop: &AtomicBool) {
        // Else the kernel may let a sleep of microseconds last 50 more.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let start = Instant::now();
        let now = || Time::from_ns(start.elapsed().as_nanos() as u64);
        while !stop.load(Ordering::Relaxed) {
            let at = now();
            self.sides.iter_mut().for_each(|side| side.node.drain(at));
            let arrived = self.poll(at, 0) + self.poll(at, 1);
            let mut read = 0;
            if arrived < self.budget {
                for side in &mut self.sides {
                    let mut uplink = Uplink { edge: &mut side.edge, fabric: &mut side.fabric };
                    read += side.node.receive(at, 0, READS, &mut self.buffers, &mut uplink);
                }
            }
            if arrived + read == 0 {
                self.sleep(now());
            }
        }
        for side in &mut self.sides {
            side.fabric.clear(&mut self.buffers);
            let (at, node) = (now(), &mut side.node);
            side.edge.drain(at, &mut self.buffers, |peer, frame| node.from_peer(at, peer, frame));
        }
    }

    /// One poll of what has left the fabric for a side; how many packets.
    fn poll(&mut self, now: Time, to: usize) -> usize {
        let [a, b] = &mut self.sides;
        let (from, side) = if to == 0 { (b, a) } else { (a, b) };
        let (mut count, mut last) = (0, None);
        while count < self.budget
            && let Some((at, header, mut packet)) = from.fabric.next(now)
        {
            count += 1;
            last = Some(at);
            match Encapsulation::read(&header) {
                Some((stamp, _)) => {
                    let view = packet.view();
                    side.edge.arrive(at, 0, stamp, (packet, view), &mut self.buffers);
                }
                None => packet.end(&mut self.buffers),
            }
        }
        let is_drained = from.fabric.due().is_none_or(|due| due > now);
        let until = if is_drained { Some(now) } else { last };
        if let Some(until) = until {
            let node = &mut side.node;
            side.edge.flush(now, until, &mut self.buffers, |peer, frame| {
                node.from_peer(now, peer, frame)
            });
        }
        count
    }

    /// Until a frame, the fabric's next packet, or the end of a wait.
    fn sleep(&mut self, now: Time) {
        let mut until = now + NAP;
        for side in &mut self.sides {
            let dues = [side.fabric.due(), side.edge.deadline(), side.node.deadline()];
            until = dues.into_iter().flatten().fold(until, Time::min);
            side.edge.evict(now);
        }
        let wait = until.saturating_sub(now).to_duration();
        if wait.is_zero() {
            return;
        }
        let ports = self.sides.iter().filter_map(|s| s.node.slots[0].port.as_ref()?.fd());
        let mut fds: Vec<PollFd<'_>> =
            ports.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        // An interruption is a short sleep.
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// The counters of the receiver's offload.
    pub fn offload(&self) -> gro::Counters {
        self.sides[1].edge.offload_counters()
    }
    /// Packets that found their path full, both ways.
    pub fn path_drops(&self) -> u64 {
        self.sides.iter().map(|s| s.fabric.dropped).sum()
    }
    /// Frames that were dropped otherwise.
    pub fn other_drops(&self) -> u64 {
        let of = |c: &Counters| {
            c.reading()
                .dropped
                .iter()
                .filter(|(r, _)| *r != "path-full")
                .map(|(_, n)| n)
                .sum::<u64>()
        };
        self.sides.iter().map(|s| of(&s.edge.counters) + of(&s.node.slots[0].counters)).sum()
    }
    /// Buffers that something still refers to; none after a run.
    pub fn buffers_in_use(&self) -> usize {
        self.buffers.in_use()
    }
}
