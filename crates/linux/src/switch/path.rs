//! A path to another switch: its socket, and what waits for it.
//!
//! A super-segment's packets leave in one call of the kernel. Short packets that come one by one
//! are copied, and leave together when the round ends: a call costs far more than such a copy, and
//! the other end reads them in one, too. Sealed packets are copied by sealing them, so all of them
//! leave together, as many as a call takes: the rest of one super-segment and the next one's first
//! packets need no call of their own. A datagram that has joined others is the path's: what becomes
//! of it is counted here.
//!
//! Invariant: every datagram that it is given is sent once, waits, or is dropped for a reason that
//! is counted.

use super::config::PathParams;
use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::{Counters, Drop};
use crate::dataplane::egress::Egress;
use crate::dataplane::held::Held;
use crate::dataplane::port::udp::{BYTES_MAX, Udp};
use crate::dataplane::port::{self, Refusal};
use crate::encapsulation::Encapsulation;
use crate::tunnel::session::{HEAD, Session, TAG};
use millpond_core::Time;
use millpond_core::packet::TrafficClass;

/// The longest packet that waits for others to leave with.
const STAGED_MAX: usize = 2048;
/// The most that leave together, of at most [`BYTES_MAX`] bytes.
const TOGETHER: usize = 64;

#[derive(Default)]
pub struct Path {
    pub params: PathParams,
    /// Whose it is, among the peers.
    pub peer: usize,
    /// Its place among its peer's paths.
    pub label: u16,
    /// The socket that sends and receives; `None`: it cannot be opened.
    pub socket: Option<Udp>,
    /// Which namespace the socket is in.
    pub home: Option<(u64, u64)>,
    pub waiting: Option<port::Error>,
    pub counters: Counters,
    /// Datagrams that wait for the socket.
    pub queue: Egress<Vec<u8>>,
    /// Datagrams that wait for the round's end.
    staged: Staged,
    /// Packets that left together have found nobody, since this was asked last.
    pub has_failed: bool,
}

impl Path {
    /// A path that is not open yet.
    pub fn new(params: PathParams, peer: usize, label: u16) -> Path {
        Path { params, peer, label, ..Path::default() }
    }

    /// Sends packets, or queues what the socket takes no more of. A short one alone leaves with
    /// others of its round: follow with [`Path::depart`].
    pub fn send(
        &mut self,
        now: Time,
        buffers: &Buffers,
        stamp: &Encapsulation,
        frames: &[Held],
    ) -> Result<(), Drop> {
        if self.socket.is_none() {
            return Err(Drop::PortGone);
        }
        let header = &stamp.write()[..];
        if let [frame] = frames
            && frame.bytes.length() <= STAGED_MAX
        {
            let pieces = [header, frame.bytes.header.bytes(), frame.bytes.payload(buffers)];
            pieces.iter().for_each(|piece| self.staged.bytes.extend_from_slice(piece));
            self.stage(now, frame);
            return Ok(());
        }
        self.depart(now);
        let (mut sent, mut refused) = (0, None);
        if let Some(socket) = self.socket.as_ref().filter(|_| self.queue.is_idle(now)) {
            (sent, refused) = socket.send(header, frames, buffers);
            let length = |frame: &Held| (frame.bytes.length() + header.len()) as u64;
            self.count(sent, frames[..sent].iter().map(length).sum());
        }
        let rest = frames[sent..].iter().map(|frame| {
            let bytes = &frame.bytes;
            let datagram = || [header, bytes.header.bytes(), bytes.payload(buffers)].concat();
            (bytes.length() + header.len(), frame.class(), datagram)
        });
        self.queue_rest(now, refused, rest)
    }

    /// The same with packets sealed, of which all leave with others.
    pub fn send_sealed(
        &mut self,
        now: Time,
        buffers: &Buffers,
        stamp: &Encapsulation,
        frames: &[Held],
        session: &mut Session,
    ) -> Result<(), Drop> {
        if self.socket.is_none() {
            return Err(Drop::PortGone);
        }
        for frame in frames {
            let bytes = &frame.bytes;
            if self.staged.bytes.len() + bytes.length() + HEAD + TAG > BYTES_MAX {
                self.depart(now);
            }
            let parts = [bytes.header.bytes(), bytes.payload(buffers)];
            if !session.seal(stamp, parts, &mut self.staged.bytes) {
                return Err(Drop::NoSession);
            }
            self.stage(now, frame);
        }
        Ok(())
    }

    /// The datagram of a packet lies behind the others that leave together.
    fn stage(&mut self, now: Time, frame: &Held) {
        let Staged { bytes, ends, classes } = &mut self.staged;
        ends.push(bytes.len());
        classes.push(frame.class());
        if ends.len() == TOGETHER || !self.queue.is_idle(now) {
            self.depart(now);
        }
    }

    /// Sends what leaves together, or queues what the socket takes no more of.
    pub fn depart(&mut self, now: Time) {
        if self.staged.ends.is_empty() {
            return;
        }
        let mut staged = std::mem::take(&mut self.staged);
        let (mut sent, mut refused) = (0, None);
        match &self.socket {
            Some(socket) if self.queue.is_idle(now) => {
                (sent, refused) = socket.send_laid_out(&staged.bytes, &staged.ends);
                let bytes = sent.checked_sub(1).map_or(0, |last| staged.ends[last]);
                self.count(sent, bytes as u64);
            }
            Some(_) => {}
            None => refused = Some(Refusal::Gone),
        }
        let rest = (sent..staged.ends.len()).map(|at| {
            let datagram = staged.datagram(at);
            (datagram.len(), staged.classes[at], || datagram.to_vec())
        });
        if let Err(reason) = self.queue_rest(now, refused, rest) {
            (sent..staged.ends.len()).for_each(|_| self.counters.drop(reason));
            self.has_failed |= is_failure(reason);
        }
        staged.clear();
        self.staged = staged;
    }

    fn count(&mut self, sent: usize, bytes: u64) {
        self.counters.sent += sent as u64;
        self.counters.sent_bytes += bytes;
        self.counters.sent_large += u64::from(sent > 1);
    }

    /// Queues what the socket did not take: how long each is, of which class, and its bytes.
    fn queue_rest<F: FnOnce() -> Vec<u8>>(
        &mut self,
        now: Time,
        refused: Option<Refusal>,
        mut rest: impl Iterator<Item = (usize, TrafficClass, F)>,
    ) -> Result<(), Drop> {
        match refused {
            None => {}
            Some(Refusal::Full) => {
                rest.next()
                    .into_iter()
                    .for_each(|(_, _, datagram)| self.queue.refuse(now, datagram()));
            }
            Some(refusal) => return Err(refusal.reason()),
        }
        for (length, class, datagram) in rest {
            let size = u16::try_from(length).unwrap_or(u16::MAX);
            let described = millpond_core::Packet { size, class, ..Default::default() };
            if let Err(reason) = self.queue.offer(now, described, datagram) {
                self.counters.discard(reason);
            }
        }
        if !self.queue.is_empty() {
            self.drain(now);
        }
        Ok(())
    }

    /// Sends what waits, as far as the socket takes it.
    pub fn drain(&mut self, now: Time) {
        while let Some(datagram) = self.queue.next(now) {
            let sent = self
                .socket
                .as_ref()
                .map_or(Err(Refusal::Gone), |socket| socket.send_one(&datagram));
            match sent {
                Ok(()) => {
                    self.counters.sent += 1;
                    self.counters.sent_bytes += datagram.len() as u64;
                }
                Err(Refusal::Full) => return self.queue.refuse(now, datagram),
                Err(refusal) => self.counters.drop(refusal.reason()),
            }
        }
    }
}

/// Whether a path that refuses so leads nowhere.
pub fn is_failure(reason: Drop) -> bool {
    matches!(reason, Drop::Unreachable | Drop::PortGone)
}

/// Datagrams that leave together, one behind another.
#[derive(Default)]
struct Staged {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    classes: Vec<TrafficClass>,
}

impl Staged {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.classes.clear();
    }
    fn datagram(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::Header;
    use crate::dataplane::packet::Packet;
    use crate::tunnel::secret::Secrets;

    #[test]
    fn sealed_packets_of_several_frames_leave_in_one_call() {
        let [socket, other] = Udp::pair();
        let session = |drawn| Session::new(Secrets::parse("0123456789abcdef").unwrap(), drawn);
        let [mut ours, mut theirs] = [session([1; 16]), session([2; 16])];
        assert!(ours.greeted([2; 16], [1; 16]) && theirs.greeted([1; 16], [2; 16]));
        let mut path = Path::new(PathParams::default(), 0, 0);
        path.socket = Some(socket);
        let mut buffers = Buffers::new(1);
        let buffer = buffers.take().unwrap();
        let stamp = Encapsulation { label: 0, flowcell: 0, partial: false };
        let now = Time::ZERO;
        for frame in 0..3 {
            let packet = |i: u8| {
                let mut header = Header::default();
                header.set(&[30 * frame + i; 20]);
                Held::from(Packet::new(header, buffer, 0..1000))
            };
            let packets: Vec<Held> = (0..30).map(packet).collect();
            path.send_sealed(now, &buffers, &stamp, &packets, &mut ours).unwrap();
        }
        // As many as a call takes have left, and the rest leaves when the round ends.
        let length = 1020 + HEAD + TAG;
        assert_eq!(path.counters.sent as usize, BYTES_MAX / length);
        path.depart(now);
        assert_eq!((path.counters.sent, path.counters.sent_large), (90, 2));
        let (mut room, mut came, start) = (vec![0; 70_000], Vec::new(), std::time::Instant::now());
        while came.len() < 90 && start.elapsed().as_secs() < 5 {
            let Some((bytes, size)) = other.receive(&mut room).unwrap() else { continue };
            for datagram in room[..bytes].chunks_mut(size) {
                let (_, frame) = theirs.open(datagram).unwrap();
                came.push((datagram[frame.start], frame.len()));
            }
        }
        assert_eq!(came, (0..90).map(|i| (i, 1020)).collect::<Vec<_>>());
    }
}
