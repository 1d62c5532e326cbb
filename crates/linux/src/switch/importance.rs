//! The importance shim of a port (`edge::importance`) on the frames of the switch.
//!
//! The shim decides about single packets, so this file cuts super-segments in both directions. If
//! the shim passes every packet of a super-segment to the host alike, the host receives one
//! super-segment again.
//!
//! Invariant: each TCP packet of the host passes the shim once on its way out, and each TCP packet
//! for the host once on its way in. Frames that are not TCP stay as they are.

use crate::dataplane::buffers::{Buffers, FRAME_MAX, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Header, View, coalesce, parse_head};
use crate::dataplane::held::{Held, cut};
use crate::dataplane::outgoing::Outgoing;
use crate::dataplane::port::shared::Fate;
use crate::edge::importance::{Shim, ShimParams, Verdict};
use millpond_core::Time;
use std::io::IoSlice;

pub use crate::edge::importance::{Counters as Reading, Sent as Data};

/// The shim's wait after an echo for the host's TCP to send. A host's TCP answers within
/// the write of the acknowledgement, unless its socket is in use by the application.
const DELTA: Time = Time::from_us(100);
/// How long the shim waits for the host to acknowledge an important packet.
const ECHO_WAIT: Time = Time::from_us(50);
/// The time between two looks for idle flows.
const EVICTION: Time = Time::from_ms(1);

pub struct HostShim {
    shim: Shim,
    /// Holds the frame for the host that the shim looks at.
    scratch: Buffers,
    parts: Vec<Held>,
    evicted: Time,
}

impl Default for HostShim {
    fn default() -> Self {
        let params = ShimParams { delta: DELTA, echo_wait: ECHO_WAIT, ..ShimParams::default() };
        HostShim {
            shim: Shim::new(&params),
            scratch: Buffers::new(1),
            parts: Vec::new(),
            evicted: Time::ZERO,
        }
    }
}

impl HostShim {
    /// Cuts a TCP frame of the host into single packets and marks each. The packets hold
    /// references to the frame's buffer; the caller ends them, and hands the vector back to
    /// [`HostShim::recycle`].
    pub fn outgoing(
        &mut self,
        now: Time,
        frame: &Frame,
        view: &View,
        buffers: &mut Buffers,
    ) -> Vec<Held> {
        // A panic may have left another frame's.
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        cut(frame, view, buffers, &mut parts);
        for held in &mut parts {
            self.shim.outgoing(now, &mut held.bytes, &held.view, buffers);
        }
        parts
    }

    /// Takes the emptied vector of [`HostShim::outgoing`] back.
    pub fn recycle(&mut self, mut parts: Vec<Held>) {
        parts.clear();
        self.parts = parts;
    }

    /// Passes a frame for the host, and calls `up` with each frame that the host receives: none
    /// if the shim consumes it.
    ///
    /// # Errors
    /// The last error of `up`.
    pub fn incoming(
        &mut self,
        now: Time,
        frame: &Outgoing<'_>,
        mut up: impl FnMut(&Outgoing<'_>) -> Result<Fate, Drop>,
    ) -> Result<Fate, Drop> {
        if frame.view.tcp().is_none() || frame.length > FRAME_MAX {
            return up(frame);
        }
        let Some(buffer) = self.scratch.take() else {
            // A panic has left it in use.
            self.scratch = Buffers::new(1);
            return up(frame);
        };
        self.parts.clear();
        let mut start = 0;
        for piece in frame.pieces {
            self.scratch.bytes_mut(buffer)[start..start + piece.len()].copy_from_slice(piece);
            start += piece.len();
        }
        let (length, offload) = (frame.length, frame.offload);
        let whole = Frame { buffer, start: 0, length, offload };
        cut(&whole, &frame.view, &mut self.scratch, &mut self.parts);
        let merged = self.judge(now);
        let sent = match merged {
            Some((mut header, flags)) => self.hand_up_merged(&whole, &mut header, flags, frame, up),
            None => self.hand_up_packets(frame, up),
        };
        self.parts.drain(..).for_each(|mut held| held.bytes.end(&mut self.scratch));
        self.scratch.release(buffer);
        sent
    }

    /// Has the shim decide about all parts, and drops those that it consumes. Returns the first
    /// header and the flags of all if the parts are several packets that the host may receive as
    /// one super-segment.
    fn judge(&mut self, now: Time) -> Option<(Header, u8)> {
        let HostShim { shim, scratch, parts, .. } = self;
        let (mut is_alike, mut flags, mut first) = (parts.len() > 1, 0, None::<Header>);
        parts.retain_mut(|held| {
            let before = held.bytes.header;
            if shim.incoming(now, &mut held.bytes, &held.view, scratch) == Verdict::Swallow {
                held.bytes.end(scratch);
                is_alike = false;
                return false;
            }
            let header = &held.bytes.header;
            let first = first.get_or_insert(*header);
            let Some(layers) = held.view.tcp() else { return true };
            flags |= tcp::flags(header.bytes(), layers);
            let own = &header.bytes()[layers.transport..];
            is_alike &= own == &before.bytes()[layers.transport..]
                && layers.ip().class(header.bytes()) == layers.ip().class(first.bytes());
            true
        });
        first.filter(|_| is_alike).map(|header| (header, flags))
    }

    /// Hands up all parts as the super-segment that they were.
    fn hand_up_merged(
        &self,
        whole: &Frame,
        header: &mut Header,
        flags: u8,
        frame: &Outgoing<'_>,
        mut up: impl FnMut(&Outgoing<'_>) -> Result<Fate, Drop>,
    ) -> Result<Fate, Drop> {
        let Some(layers) = self.parts.first().and_then(|held| held.view.tcp()) else {
            return up(frame);
        };
        let bytes = whole.bytes(&self.scratch);
        let Some(payload) = bytes.get(layers.payload..) else { return up(frame) };
        let mss = usize::from(whole.offload.gso_size);
        let offload = coalesce(header.bytes_mut(), layers, payload.len(), mss, flags);
        let pieces = [IoSlice::new(header.bytes()), IoSlice::new(payload)];
        let (length, sender) = (header.bytes().len() + payload.len(), frame.sender);
        let view = parse_head(header.bytes(), length).ok_or(Drop::BadInner)?;
        up(&Outgoing { view, offload, pieces: &pieces, length, sender })
    }

    /// Hands up the parts one by one.
    fn hand_up_packets(
        &self,
        frame: &Outgoing<'_>,
        mut up: impl FnMut(&Outgoing<'_>) -> Result<Fate, Drop>,
    ) -> Result<Fate, Drop> {
        let mut result = Ok(Fate::Left);
        for held in &self.parts {
            result = result.and(held.pass(&self.scratch, frame.sender, &mut up));
        }
        result
    }

    /// Returns when [`HostShim::due`] has a frame to send; `None`: not before another packet comes.
    pub fn deadline(&self) -> Option<Time> {
        self.shim.deadline()
    }

    /// Returns the frames that the shim sends in the host's name now.
    pub fn due(&mut self, now: Time) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        if self.deadline().is_some_and(|due| due <= now) {
            self.shim.due(now, &mut |frame: &[u8]| frames.push(frame.to_vec()));
        }
        frames
    }

    pub fn evict(&mut self, now: Time) {
        if now.saturating_sub(self.evicted) >= EVICTION {
            self.evicted = now;
            self.shim.evict(now);
        }
    }

    /// Returns the shim's counters as `show` reports them.
    pub fn reading(&self) -> Reading {
        self.shim.reading()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::segment::tests::{Build, frame_of};
    use crate::dataplane::frame::{Offload, parse};
    use crate::dataplane::port::shared::Sender;

    const MSS: usize = 1000;
    const PAYLOAD: usize = 4500;

    /// A super-segment of five packets, whose importance bits name an important packet.
    fn super_segment() -> (Vec<u8>, View, Offload) {
        let flags = tcp::ACK | tcp::PSH;
        let mut frame = frame_of(&Build { payload: PAYLOAD, flags, ..Build::default() });
        let layers = *parse(&frame).unwrap().tcp().unwrap();
        frame[layers.network + 1] |= 2 << 2;
        let mut header = frame[..layers.payload].to_vec();
        let offload = coalesce(&mut header, &layers, PAYLOAD, MSS, flags);
        frame[..layers.payload].copy_from_slice(&header);
        let view = parse(&frame).unwrap();
        (frame, view, offload)
    }

    #[test]
    fn a_super_segment_of_the_host_leaves_as_single_packets() {
        let (frame, view, offload) = super_segment();
        let mut buffers = Buffers::new(1);
        let buffer = buffers.take().unwrap();
        buffers.bytes_mut(buffer)[..frame.len()].copy_from_slice(&frame);
        let (mut shim, length) = (HostShim::default(), frame.len());
        let read = Frame { buffer, start: 0, length, offload };
        let mut parts = shim.outgoing(Time::ZERO, &read, &view, &mut buffers);
        let layers = *view.tcp().unwrap();
        let payload = |held: &Held| held.bytes.length() - layers.payload;
        assert_eq!(parts.iter().map(payload).collect::<Vec<_>>(), [1000, 1000, 1000, 1000, 500]);
        // Its flow is unknown, so each is green.
        assert!(
            parts.iter().all(|held| layers.ip().class(held.bytes.header.bytes()) >> 2 & 7 == 0)
        );
        assert_eq!(shim.reading().untracked_packets, 5);
        parts.iter_mut().for_each(|held| held.bytes.end(&mut buffers));
        shim.recycle(parts);
        buffers.release(buffer);
        assert_eq!(buffers.in_use(), 0);
    }

    #[test]
    fn the_host_receives_a_super_segment_of_an_untracked_flow_unchanged() {
        let (frame, view, offload) = super_segment();
        let (mut shim, mut up) = (HostShim::default(), Vec::new());
        for half in [0, frame.len() / 2] {
            let pieces = [IoSlice::new(&frame[..half]), IoSlice::new(&frame[half..])];
            let (length, sender) = (frame.len(), Sender::Elsewhere);
            let outgoing = Outgoing { view, offload, pieces: &pieces, length, sender };
            let sent = shim.incoming(Time::ZERO, &outgoing, |frame| {
                let bytes: Vec<u8> = frame.pieces.iter().flat_map(|it| it.to_vec()).collect();
                up.push((bytes, frame.offload.gso_size));
                Err(Drop::PortFull)
            });
            assert_eq!(sent, Err(Drop::PortFull));
        }
        assert_eq!(up, [(frame.clone(), MSS as u16), (frame, MSS as u16)]);
        assert_eq!(shim.scratch.in_use(), 0);
    }
}
