//! The direction of a connection in which the host sends: marks, the cache, and forced packets.
//!
//! Follows the sheet's rules E1 to E7 with the core's machine, [`WindowMarker`]. The shim differs
//! from a transport in three points. It learns that the host sent nothing by waiting `delta`. It
//! cannot replace a packet of the host (E6): it adds the lost range as an important packet and
//! leaves the host's packet unimportant. It learns of no timeout (E7): after `clock_timeout`
//! without an echo the host's next data packet is important.
//!
//! Invariant: each byte that left unimportant and is not acknowledged is in the cache. A forced
//! range lies within what the host has sent, above what is acknowledged, and within the window.

use super::cache::{Cache, Refusal};
use super::counters::{Counters, Reason};
use super::params::ShimParams;
use super::sequence::Numbers;
use millpond_core::importance::{Forced, Standing, WindowMarker};
use millpond_core::ranges::Ranges;
use millpond_core::{Importance, Time};

/// A packet further ahead than this of all that was sent is not of the stream.
const AHEAD_MAX: u64 = 1 << 28;
/// Default MSS of a peer that offers none (RFC 9293 §3.7.1).
const MSS: u32 = 536;
/// Ranges that the scoreboard holds at most.
const SCORES_MAX: usize = 256;

/// An acknowledgement that has come, in sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgement<'a> {
    pub importance: Importance,
    pub ack: u32,
    pub window: u16,
    /// Its SACK blocks without DSACK, or the ranges of a shim's echo.
    pub blocks: &'a [(u32, u32)],
    /// The peer's shim has sent it: the host receives nothing of it.
    pub is_shims: bool,
    /// It is nothing but an acknowledgement.
    pub is_pure: bool,
}

/// The shim's part in what a connection does.
pub(super) struct Terms<'a> {
    pub params: &'a ShimParams,
    pub counters: &'a mut Counters,
}

pub(super) struct Sending {
    numbers: Numbers,
    una: u64,
    /// The end of the payload that the host has sent.
    nxt: u64,
    /// The host has sent its FIN, which lies at `nxt`.
    is_over: bool,
    /// The end of the window that the peer advertised last.
    edge: u64,
    scale: u8,
    has_sack: bool,
    marker: WindowMarker,
    armed: bool,
    /// When the last important packet left.
    clock: Time,
    unanswered: u8,
    cache: Cache,
    /// Ranges that SACKs have reported to the host's TCP.
    scores: Ranges,
    /// The longest payload of a packet so far.
    mss: u32,
    mss_max: u32,
    /// The end of what has passed the peer's shim without a gap.
    arrived: u64,
    /// A range to be sent at once (E6).
    queued: Option<Forced>,
    has_forced: bool,
}

/// The end of the ranges that follow `from` without a gap.
fn reach(from: u64, ranges: &[(u64, u64)]) -> u64 {
    // As many rounds as there are ranges, in whatever order they come.
    ranges.iter().fold(from, |reached, _| {
        let follows = ranges.iter().filter(|range| range.0 <= reached).map(|range| range.1);
        follows.max().unwrap_or(reached).max(reached)
    })
}

impl Sending {
    /// Of a connection that opens. `window` and `mss` are of the peer's handshake packet.
    pub fn new(
        params: &ShimParams,
        isn: u32,
        window: u16,
        mss: u16,
        scale: u8,
        has_sack: bool,
    ) -> Sending {
        Sending {
            numbers: Numbers::new(isn),
            una: 0,
            nxt: 0,
            is_over: false,
            edge: window.into(),
            scale,
            has_sack,
            marker: WindowMarker::new(&params.tlt),
            armed: true,
            clock: Time::ZERO,
            unanswered: 0,
            cache: Cache::default(),
            scores: Ranges::default(),
            mss: 1,
            mss_max: if mss == 0 { MSS } else { mss.into() },
            arrived: 0,
            queued: None,
            has_forced: false,
        }
    }

    pub fn numbers(&self) -> Numbers {
        self.numbers
    }
    /// The sequence number behind all that the host has sent.
    pub fn next(&self) -> u32 {
        self.numbers.wire(self.nxt + u64::from(self.is_over))
    }
    /// Memory of its cache, in bytes.
    pub fn memory(&self) -> usize {
        self.cache.memory()
    }
    /// Whether the shim has forced a packet of it.
    pub fn has_forced(&self) -> bool {
        self.has_forced
    }
    pub fn is_done(&self) -> bool {
        self.is_over && self.una > self.nxt
    }
    /// Whether [`Sending::force`] has something to do once the host has had its time.
    pub fn is_armed(&self) -> bool {
        self.armed
    }
    /// Whether something is to be sent at once.
    pub fn is_urgent(&self) -> bool {
        self.queued.is_some()
    }

    /// The host sends payload. Returns its importance. `room`: memory that the cache may take.
    ///
    /// # Errors
    /// The reason why the flow cannot be tracked any longer.
    pub fn on_data(
        &mut self,
        now: Time,
        seq: u32,
        payload: &[u8],
        is_last: bool,
        room: usize,
        terms: &mut Terms<'_>,
    ) -> Result<Importance, Reason> {
        let Some(from) = self.numbers.offset(self.nxt, seq) else {
            return Ok(Importance::Control); // a keep-alive before the first byte
        };
        let end = from + payload.len() as u64;
        let is_beyond = end > self.nxt && self.is_over;
        if from > self.nxt + AHEAD_MAX || is_beyond {
            return Err(Reason::Stream);
        }
        if end <= self.una {
            return Ok(Importance::Control); // a keep-alive, or too late
        }
        let low = from.max(self.una);
        let kept = self.cache.insert(low, &payload[(low - from) as usize..], room);
        let is_new = end > self.nxt;
        self.nxt = self.nxt.max(end);
        self.mss = self.mss.max(payload.len() as u32).min(self.mss_max);
        if is_last {
            self.is_over = true;
        }
        match kept {
            Err(Refusal::Conflict) => return Err(Reason::Stream),
            Err(Refusal::Full) => return Ok(Importance::Control),
            Ok(()) if is_last => return Ok(Importance::Control),
            Ok(()) => (),
        }
        self.wake(now, terms)?;
        if self.armed && is_new && self.queued.is_none() && self.marker.has_lost() {
            self.queued = self.marker.instead(low, self.mss);
            self.armed = self.queued.is_none();
        }
        let importance = self.marker.on_packet(low, (end - low) as u32, false);
        if importance == Importance::Important {
            (self.armed, self.clock) = (false, now);
        }
        if !self.armed {
            // The round ends with the important packet: its echo judges what left before it.
            self.marker.after_ack(self.standing(), self.mss);
        }
        Ok(importance)
    }

    /// The host sends a FIN without payload.
    pub fn on_fin(&mut self, seq: u32) {
        self.is_over |= self.numbers.offset(self.nxt, seq) == Some(self.nxt);
    }

    /// Arms the machine if its last important packet had no echo for long.
    fn wake(&mut self, now: Time, terms: &mut Terms<'_>) -> Result<(), Reason> {
        let Terms { params, counters } = terms;
        if self.armed || now.saturating_sub(self.clock) <= params.clock_timeout {
            return Ok(());
        }
        self.unanswered += 1;
        if self.unanswered >= params.unanswered_max {
            return Err(Reason::NoEcho);
        }
        counters.rearmed += 1;
        self.marker.on_timeout();
        self.armed = params.tlt.arm_on_timeout;
        Ok(())
    }

    /// An acknowledgement comes. Returns whether the host need not receive it (rule E2), and
    /// whether to call [`Sending::force`] after `delta`.
    pub fn on_ack(&mut self, it: &Acknowledgement<'_>) -> (bool, bool) {
        let Some(ack) = self.numbers.offset(self.una, it.ack) else { return (false, false) };
        if ack > self.nxt + u64::from(self.is_over) {
            return (false, false); // of something that the host has not sent
        }
        let mut list = [(0, 0); super::options::RANGES_MAX];
        let mut count = 0;
        if self.has_sack || it.is_shims {
            for &(from, to) in it.blocks {
                let ends = (self.numbers.offset(ack, from), self.numbers.offset(ack, to));
                if let (Some(from), Some(to)) = ends
                    && from < to
                    && to <= self.nxt
                    && count < list.len()
                {
                    list[count] = (from, to);
                    count += 1;
                }
            }
        }
        let sacked = &list[..count];
        let is_echo = matches!(it.importance, Importance::Echo | Importance::ForcedEcho);
        let is_redundant = self.is_redundant(it, ack, sacked);
        self.marker.on_ack(it.importance, ack.min(self.nxt), sacked, self.una);
        if ack >= self.una {
            self.una = ack;
            self.edge = ack + (u64::from(it.window) << self.scale);
            self.cache.remove_below(ack);
        }
        if !it.is_shims {
            self.scores.remove_below(self.una);
            for &(from, to) in sacked.iter().filter(|range| range.1 > self.una) {
                if self.scores.iter().count() < SCORES_MAX {
                    self.scores.insert(from, to);
                }
            }
        }
        if is_echo {
            (self.armed, self.unanswered) = (true, 0);
        }
        self.arrived = self.arrived.max(self.una);
        if it.is_shims {
            self.arrived = reach(self.arrived, sacked);
        }
        let waits = self.arrived < self.nxt;
        if is_echo && !waits {
            // Nothing to force: only the round ends. Unacknowledged bytes wait in the peer's host,
            // and a probe for each round trip would keep it busy.
            let (una, nxt) = (self.nxt, self.nxt);
            self.marker.after_ack(Standing { una, nxt, ..self.standing() }, self.mss);
        }
        (is_redundant, self.armed && waits)
    }

    /// Whether an acknowledgement of a forced packet carries nothing new for the host's TCP.
    fn is_redundant(&self, it: &Acknowledgement<'_>, ack: u64, sacked: &[(u64, u64)]) -> bool {
        if it.importance != Importance::ForcedEcho || !it.is_pure || it.is_shims {
            return false;
        }
        if ack < self.una {
            return true;
        }
        let is_known = |&(from, to): &(u64, u64)| {
            to <= self.una || self.scores.around(from).is_some_and(|range| range.1 >= to)
        };
        ack == self.una
            && ack + (u64::from(it.window) << self.scale) == self.edge
            && sacked.iter().all(is_known)
            // Without SACK a duplicate is news where something is lost.
            && (self.has_sack || !self.marker.has_lost())
    }

    fn standing(&self) -> Standing {
        Standing { una: self.una, nxt: self.nxt, more: false, recovering: false }
    }

    /// The host has had its time. Appends the payload of the packet to force out and returns its
    /// sequence number and importance; `None`: there is none.
    pub fn force(
        &mut self,
        now: Time,
        payload: &mut Vec<u8>,
        counters: &mut Counters,
    ) -> Option<(u32, Importance)> {
        let forced = match self.queued.take() {
            Some(forced) => forced,
            None if !self.armed || self.arrived >= self.nxt => return None,
            None => self.marker.after_ack(self.standing(), self.mss)?,
        };
        self.armed = false;
        let (seq, len) = self.place(&forced);
        let is_inside = seq + len as u64 <= self.edge.min(self.nxt);
        if !is_inside || self.cache.read(seq, len, payload) < len {
            payload.clear();
            counters.refused += 1;
            self.marker.on_refusal(&forced);
            self.armed = true;
            return None;
        }
        (self.clock, self.has_forced) = (now, true);
        Some((self.numbers.wire(seq), forced.importance))
    }

    /// Where a forced range is sent from: above what has been acknowledged meanwhile; where its
    /// first byte is not cached, the first byte that is.
    fn place(&self, forced: &Forced) -> (u64, usize) {
        let end = forced.seq + u64::from(forced.len);
        let seq = forced.seq.max(self.una);
        if seq < end && self.cache.first_from(seq) == Some(seq) {
            return (seq, (end - seq) as usize);
        }
        (self.cache.first_from(self.una).unwrap_or(self.nxt), 1)
    }
}
