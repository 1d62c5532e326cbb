//! The sender's side of TLT for transports with a window.
//!
//! An echo *arms* the sender: the next data packet is important, and disarms it. If the transport
//! sends nothing in answer to an acknowledgement although data is outstanding (its window is
//! closed, or there is no more), one packet is *forced* out of what was sent unprotected, so that
//! the clock does not stop: a byte of it if nothing seems lost, else a segment.
//!
//! Whether something is lost shows by *rounds*. A round is the time between two echoes. When an
//! echo comes, all that went out unprotected before its important packet has had its chance: what
//! of earlier rounds is still not acknowledged is lost (packets of a flow keep their order).
//!
//! From the authors' released simulator this deviates in three ways, each by a key of its own: the
//! clock is armed again by a timeout; an echo that is older than what is acknowledged still keeps
//! the clock running; and what earlier rounds than the last have lost is not forgotten while newer
//! losses go on, so that no loss of unimportant packets costs a timeout. An order matters that is
//! easy to get wrong: what an ACK acknowledges is forgotten first, then the transport sends, then a
//! packet is forced, then the rounds change.
//!
//! Invariant: while data is outstanding, the sender is armed only within the handling of one
//! acknowledgement.

use crate::packet::Importance;
use crate::ranges::Ranges;

crate::choice! {
    /// Which packet starts the clock.
    pub enum First {
        /// The last of a TCP, the first of a queue pair, as the authors' simulators of both have
        /// it.
        Auto = "auto",
        /// The last packet that the initial window lets out, or of a shorter flow.
        Last = "last",
        /// The first packet of the flow, which needs no knowledge of the window.
        First = "first",
    }
}

crate::choice! {
    /// How much of what was sent is forced out.
    pub enum Force {
        /// One byte while nothing seems lost, else a segment.
        Adaptive = "adaptive",
        /// Always one byte (an ablation).
        Byte = "byte",
        /// Always a segment (an ablation).
        Segment = "segment",
    }
}

crate::choice! {
    /// The rounds whose unacknowledged packets count as lost.
    pub enum LostRounds {
        /// All that are over.
        All = "all",
        /// The last one; what earlier ones have left is sent again only once it has left nothing.
        Last = "last",
    }
}

crate::params! {
    /// The keys of TLT for window-based transports (EuroSys 2021).
    pub struct TltParams {
        /// The first important packet of a flow: last (of the initial window) or first; "auto" is
        /// last of a TCP, first of a queue pair. Source: auto, the authors' simulators of both;
        /// first, their testbed.
        pub first: First = First::Auto,
        /// The amount forced out where the transport sends nothing. Source: adaptive, the authors'
        /// simulators.
        pub force: Force = Force::Adaptive,
        /// Whether a timeout arms the sender, so that the flow does not go on without an important
        /// packet. The authors' TCP simulator does not, their RDMA simulator does.
        pub arm_on_timeout: bool = true,
        /// Whether an echo of a forced packet that acknowledges less than what is acknowledged
        /// already keeps the clock running. The authors' TCP simulator waits for another
        /// acknowledgement.
        pub force_after_stale_echo: bool = true,
        /// Which rounds' packets count as lost once they are not acknowledged. The authors'
        /// simulators look at the last; then a hole of an earlier round waits while every round
        /// loses something, up to a timeout.
        pub lost_rounds: LostRounds = LostRounds::All,
        /// Of a queue pair without a clock of acknowledgements, whose last packet of a message and
        /// first after going back are important: so is the packet of this number after the last
        /// important one; off: none. Source: 96, the authors' RDMA simulator.
        #[within(1..)]
        pub every: Option<u32> = Some(96),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// Before the first important packet.
    Initial,
    /// An important packet or its echo is in flight.
    Running,
    /// An echo has come; the next data packet is important.
    Armed,
}

/// Bytes sent unprotected in a round, or in all rounds that are over, and not acknowledged.
#[derive(Clone, Debug, Default)]
struct Round {
    bytes: Ranges,
    /// Anything ever was.
    used: bool,
}

/// Which bytes of what was sent unprotected those are that were taken to be sent protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// Of the round under way.
    Current,
    /// Of the rounds that reveal losses.
    Previous,
    /// Of the rest of earlier rounds.
    Older,
    /// None of them: all was protected already.
    Nothing,
}

/// A packet to be sent at once, whatever the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forced {
    /// Offset of its first byte.
    pub seq: u64,
    /// Bytes, at least one.
    pub len: u32,
    /// [`Importance::Forced`], or [`Importance::Important`] in a recovery.
    pub importance: Importance,
}

/// Where a transport stands.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Its first unacknowledged byte.
    pub una: u64,
    /// Its first unsent byte.
    pub nxt: u64,
    /// Only the NIC keeps it from sending, so that its next packet comes without a further
    /// acknowledgement.
    pub more: bool,
    /// It is in fast recovery.
    pub recovering: bool,
}

/// One flow's machine at its sender.
#[derive(Clone, Debug)]
pub struct WindowMarker {
    params: TltParams,
    clock: Clock,
    /// The round under way.
    current: Round,
    /// The rounds that reveal losses: the last, or all that are over.
    previous: Round,
    /// The rest of rounds before the last, where only that one reveals losses.
    older: Ranges,
    /// The highest acknowledgement that an echo has carried.
    echoed: u64,
    /// The acknowledgement being handled is an echo: the round ends with it.
    round_ends: bool,
    /// It is an echo that is to be ignored otherwise.
    stale: bool,
    /// Where the last forced packet's bytes belong as long as they have not left, and whether it
    /// counts as a masked loss.
    taken: (Taken, bool),
    /// Segments that were forced out because something seemed lost while the transport was not in
    /// recovery, so that its congestion control may never see the loss.
    pub masked: u32,
    /// Packets and bytes sent: unimportant, important, forced.
    pub sent: [Sent; 3],
}

/// Data packets of one importance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Their payload, in bytes.
    pub bytes: u64,
}

impl Sent {
    #[inline]
    pub(super) fn add(&mut self, len: u32) {
        self.packets += 1;
        self.bytes += u64::from(len);
    }
}

impl WindowMarker {
    /// Of a new flow; where it is left to the kind of flow, of a TCP.
    pub fn new(params: &TltParams) -> WindowMarker {
        WindowMarker {
            params: params.clone(),
            clock: if params.first == First::First { Clock::Armed } else { Clock::Initial },
            current: Round::default(),
            previous: Round::default(),
            older: Ranges::default(),
            echoed: 0,
            round_ends: false,
            stale: false,
            taken: (Taken::Nothing, false),
            masked: 0,
            sent: [Sent::default(); 3],
        }
    }

    /// A data packet `[seq, seq + len)` leaves. `last`: the transport can send nothing after it for
    /// now.
    #[inline]
    pub fn on_packet(&mut self, seq: u64, len: u32, last: bool) -> Importance {
        let important = match self.clock {
            Clock::Initial => last,
            Clock::Running => false,
            Clock::Armed => true,
        };
        if important {
            self.protect(seq, seq + len as u64);
            self.clock = Clock::Running;
            self.sent[1].add(len);
            return Importance::Important;
        }
        self.sent[0].add(len);
        self.current.bytes.insert(seq, seq + len as u64);
        self.current.used = true;
        Importance::Unimportant
    }

    /// An acknowledgement has come, with the ranges that its SACK option holds; to be called before
    /// the transport is. Returns whether the transport may see it: a stale echo would count as
    /// a duplicate.
    #[inline]
    pub fn on_ack(
        &mut self,
        importance: Importance,
        ack: u64,
        sacked: &[(u64, u64)],
        una: u64,
    ) -> bool {
        for set in [&mut self.current.bytes, &mut self.previous.bytes, &mut self.older] {
            set.remove_below(ack);
            for &(from, to) in sacked {
                set.remove(from, to);
            }
        }
        if !matches!(importance, Importance::Echo | Importance::ForcedEcho) {
            return true;
        }
        self.echoed = self.echoed.max(ack);
        self.clock = Clock::Armed;
        self.round_ends = true;
        self.stale = importance == Importance::ForcedEcho && ack < una;
        !self.stale
    }

    /// Whether bytes of the rounds that reveal losses are not acknowledged.
    pub fn has_lost(&self) -> bool {
        !self.previous.bytes.is_empty()
    }

    /// In a recovery the transport is about to send from `seq`: what is to be sent in its place, if
    /// this packet must be important and something older is known to be lost.
    pub fn instead(&mut self, seq: u64, mss: u32) -> Option<Forced> {
        if self.clock != Clock::Armed || seq <= self.echoed {
            return None;
        }
        let (seq, len) = self.take(mss)?;
        self.sent[1].add(len);
        Some(Forced { seq, len, importance: Importance::Important })
    }

    /// The transport has sent what it may after an acknowledgement, and stands there. A packet to
    /// be sent at once, if the clock would stop otherwise.
    #[inline]
    pub fn after_ack(
        &mut self,
        Standing { una, nxt, more, recovering }: Standing,
        mss: u32,
    ) -> Option<Forced> {
        let mut forced = None;
        let waits = more || (self.stale && !self.params.force_after_stale_echo);
        if self.clock == Clock::Armed && una < nxt && !waits {
            let repairs = self.loses() && self.is_loss_probable() && !recovering;
            let lost = self.take(mss);
            self.taken.1 = repairs && lost.is_some();
            self.masked += u32::from(self.taken.1);
            // Where all that is outstanding was protected already, its first byte once more.
            let (seq, len) = lost.unwrap_or((una, 1));
            self.clock = Clock::Running;
            self.sent[2].add(len);
            forced = Some(Forced { seq, len, importance: Importance::Forced });
        }
        self.stale = false;
        if std::mem::take(&mut self.round_ends) {
            self.end_round();
        }
        forced
    }

    fn end_round(&mut self) {
        let over = std::mem::take(&mut self.current);
        match self.params.lost_rounds {
            LostRounds::All => add(&mut self.previous.bytes, &over.bytes),
            LostRounds::Last => {
                add(&mut self.older, &self.previous.bytes);
                self.previous.bytes = over.bytes;
            }
        }
        self.taken.0 = match (self.taken.0, self.params.lost_rounds) {
            (Taken::Current, _) => Taken::Previous,
            (Taken::Previous, LostRounds::Last) => Taken::Older,
            (taken, _) => taken,
        };
        self.previous.used = over.used;
    }

    /// A packet to be forced out was refused at its own host: it was never sent, and the next event
    /// forces it out again.
    pub fn on_refusal(&mut self, forced: &Forced) {
        let (from, to) = (forced.seq, forced.seq + u64::from(forced.len));
        let set = match self.taken.0 {
            Taken::Current => Some(&mut self.current.bytes),
            Taken::Previous => Some(&mut self.previous.bytes),
            Taken::Older => Some(&mut self.older),
            Taken::Nothing => None,
        };
        if let Some(set) = set {
            set.insert(from, to);
        }
        self.clock = Clock::Armed;
        self.masked -= u32::from(self.taken.1);
        let sent = if forced.importance == Importance::Forced { 2 } else { 1 };
        self.sent[sent].packets -= 1;
        self.sent[sent].bytes -= u64::from(forced.len);
    }

    /// The retransmission timer has expired.
    pub fn on_timeout(&mut self) {
        if self.params.arm_on_timeout {
            self.clock = Clock::Armed;
        }
    }

    /// Whether something of the previous round seems lost. A round in which nothing was sent counts
    /// as a loss, too.
    fn is_loss_probable(&self) -> bool {
        !(self.previous.bytes.is_empty() && self.previous.used)
    }

    /// Whether a segment is forced, not a byte.
    fn loses(&self) -> bool {
        match self.params.force {
            Force::Adaptive => self.is_loss_probable(),
            Force::Byte => false,
            Force::Segment => true,
        }
    }

    /// The range to send protected: the lowest that counts as lost, else the lowest at all.
    fn take(&mut self, mss: u32) -> Option<(u64, u32)> {
        let previous = self.previous.bytes.first().map(|range| (range, Taken::Previous));
        let older = self.older.first().map(|range| (range, Taken::Older));
        let current = self.current.bytes.first().map(|range| (range, Taken::Current));
        let rest = || older.into_iter().chain(current).min_by_key(|(range, _)| *range);
        let Some(((from, to), taken)) = previous.or_else(rest) else {
            self.taken = (Taken::Nothing, false);
            return None;
        };
        let len = if self.loses() { (to - from).min(mss as u64) } else { 1 };
        self.protect(from, from + len);
        self.clock = Clock::Running;
        self.taken = (taken, false);
        Some((from, len as u32))
    }

    fn protect(&mut self, from: u64, to: u64) {
        for set in [&mut self.current.bytes, &mut self.previous.bytes, &mut self.older] {
            set.remove(from, to);
        }
    }
}

fn add(to: &mut Ranges, ranges: &Ranges) {
    for (from, until) in ranges.iter() {
        to.insert(from, until);
    }
}
