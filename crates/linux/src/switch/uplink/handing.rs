//! Frames for a peer that does not answer this worker, because it has fewer: the first worker sends
//! them.
//!
//! A reply comes to the first worker, then, whose queue of a tap writes it, so the kernel hands the
//! connection's frames to that worker from there on.
//!
//! Invariant: frames of one flow are handed over in their order; so many wait at most.

use super::Uplink;
use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::parse;
use crate::dataplane::port::shared::Sender;
use crate::switch::node::{Node, Remote};
use crate::switch::order::Handed;
use millpond_core::Time;
use std::sync::Arc;

/// Frames that may be on their way to the first worker.
const WAITING: usize = 1024;

/// Frames of a round, for the first worker.
#[derive(Default)]
pub(super) struct Handing {
    frames: Vec<Handed>,
    /// Each frame under way has a copy of it.
    under_way: Arc<()>,
}

impl Uplink {
    /// Hands frames to the first worker from now on, if a peer does not answer this one.
    pub fn follow(&mut self) {
        self.handing.get_or_insert_default();
    }

    /// Whether frames for a peer are the first worker's to send.
    #[inline]
    pub(super) fn hands_over(&self, now: Time, peer: usize) -> bool {
        self.handing.is_some() && !self.paths.peers.get(peer).is_some_and(|peer| peer.answers(now))
    }

    #[cold]
    pub(super) fn hand_over(
        &mut self,
        buffers: &Buffers,
        frame: &Frame,
        peer: usize,
    ) -> Result<(), Drop> {
        let handing = self.handing.as_mut().ok_or(Drop::Nowhere)?;
        if Arc::strong_count(&handing.under_way) > WAITING {
            return Err(Drop::PathFull);
        }
        let (bytes, place) = (frame.bytes(buffers).to_vec(), handing.under_way.clone());
        handing.frames.push(Handed { peer, offload: frame.offload, bytes, place });
        Ok(())
    }

    /// Returns the frames of this round that are for the first worker.
    pub fn take_away(&mut self) -> Vec<Handed> {
        let frames = self.handing.as_mut().map(|handing| &mut handing.frames);
        frames.map(std::mem::take).unwrap_or_default()
    }

    /// Sends a frame of another worker, and answers one that is too long.
    pub fn take_handed(
        &mut self,
        now: Time,
        handed: Handed,
        buffers: &mut Buffers,
        node: &mut Node,
    ) {
        let Handed { peer, offload, bytes, .. } = handed;
        let Some(frame) = Frame::copy(&bytes, offload, buffers) else {
            return self.edge.counters.drop(Drop::NoBuffer);
        };
        let sent = match parse(&bytes) {
            Some(view) => {
                let to = Some((peer, Sender::Elsewhere));
                let sent = self.caught("frames of workers", &frame, buffers, |uplink, buffers| {
                    uplink.transmit(now, buffers, &frame, &view, to).map(|_| ())
                });
                if sent == Err(Drop::Oversized) {
                    node.answer_too_big(now, &bytes, &view, self.frame_max(peer));
                }
                sent
            }
            None => Err(Drop::Runt),
        };
        buffers.release(frame.buffer);
        if let Err(reason) = sent {
            self.edge.counters.drop(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::Offload;
    use crate::dataplane::frame::segment::tests::{Build, frame_of};
    use crate::dataplane::port::shared::Fate;
    use crate::dataplane::port::udp::Udp;
    use crate::switch::config::{Config, PathParams};
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};

    #[test]
    fn frames_are_handed_over_in_order_and_so_many_at_once() {
        let paths = vec![PathParams { peer: "a".into(), ..PathParams::default() }];
        let config = Config { paths, ..Config::default() };
        let [mut first, mut other] = [(); 2].map(|()| Uplink::new(&config));
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        first.put(0, Udp::over(theirs));
        other.follow();
        let (now, mut buffers, mut node) = (Time::ZERO, Buffers::new(16), Node::default());
        let give = |seq: u32, buffers: &mut Buffers, other: &mut Uplink| {
            let bytes = frame_of(&Build { port: 80, seq, payload: 100, ..Build::default() });
            let buffer = buffers.take().unwrap();
            buffers.bytes_mut(buffer)[..bytes.len()].copy_from_slice(&bytes);
            let (length, offload) = (bytes.len(), Offload::default());
            let frame = Frame { buffer, start: 0, length, offload };
            let to = Some((0, Sender::Elsewhere));
            let sent = other.transmit(now, buffers, &frame, &parse(&bytes).unwrap(), to);
            buffers.release(frame.buffer);
            (sent, bytes)
        };
        let mut frames = Vec::new();
        for number in 0..WAITING as u32 {
            let (sent, bytes) = give(1000 + 100 * number, &mut buffers, &mut other);
            assert_eq!(sent, Ok(Fate::Left));
            frames.push(bytes);
        }
        // They are under way when they have been taken away, and until they are sent.
        let handed = other.take_away();
        assert_eq!(give(0, &mut buffers, &mut other).0, Err(Drop::PathFull));
        let mut came = Vec::new();
        for frame in handed {
            first.take_handed(now, frame, &mut buffers, &mut node);
            first.depart(now);
            let mut room = [0; 400];
            let (_, length) = recv(&ours, &mut room[..], RecvFlags::empty()).unwrap();
            came.push(room[crate::encapsulation::LENGTH..length].to_vec());
        }
        assert!(came == frames, "each once, in their order, as they were");
        assert_eq!(give(0, &mut buffers, &mut other).0, Ok(Fate::Left));
        assert_eq!(buffers.in_use(), 0);
    }
}
