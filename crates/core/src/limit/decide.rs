//! The decision table: what a packet gets for how far behind its virtual queue is.
//!
//! | | behind ≤ mark | ≤ drop_large | ≤ drop | beyond |
//! |---|---|---|---|---|
//! | ECN-capable | pass | CE | small: CE; large: drop | drop |
//! | TCP without ECN | pass | CWR by chance | small: CWR; large: drop with CWR | drop with CWR |
//! | neither | pass if not behind (EDT: pass) | small: pass; large: drop | the same | drop |
//!
//! With departure times a packet that is not behind `mark` is not too much, only early: the qdisc
//! below holds it until then. Where that qdisc is certain ([`flags::WAITS`]) a datagram without ECN
//! passes up to `drop`, and a TCP packet whose flow has nothing else in flight passes as one with a
//! share does: its sender gets the waiting time of its packets as signal. *CWR* asks the local TCP
//! to reduce its window (`tcp_enter_cwr`), as a full qdisc does; its probability rises linearly
//! from `mark` to `drop_large` (NRM's slides; thresholds in [`LimitParams`](super::LimitParams)). A
//! TCP packet that would be dropped while its flow has nothing else in flight is let through with
//! CWR, since no acknowledgement would clock the flow out of its timer; up to `bypass`, because
//! without that bound eight flows broke the limit by a sixth.
//!
//! A connection that follows its [`Share`](super::Share) is notified where its segment is larger
//! than the share allows, and not of the queue: its pace follows that. It is refused beyond
//! `bypass`; with nothing else in flight only where the queue cannot count its packet any more
//! ([`FLOOR`](super::FLOOR)), since it would wait for a timer.
//!
//! Invariant: a dropped packet is further behind than the table's bound; with `mark-only` none is
//! dropped.

use super::{Form, Reaction, SMALL, Settings, flags};

/// The facts of a packet that the decision may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Ask {
    /// Length of the IP packet, in bytes.
    pub bytes: u32,
    /// Bytes that it is charged; see [`wire_bytes`](super::wire_bytes).
    pub charged: u32,
    /// The flow's packets in flight, as the kernel counts them: a packet that is sent for the first
    /// time is not in it yet, one that is sent again is. `u32::MAX`: unknown.
    pub in_flight: u32,
    /// The flow's smoothed round-trip time in microseconds; 0: unknown.
    pub rtt: u32,
    /// 1 for TCP, else 0.
    pub tcp: u32,
    /// The ECN field: 0 to 3.
    pub ecn: u32,
    /// How large a segment may be of a connection that follows its [`Share`](super::Share); 0: it
    /// has none.
    pub share: u32,
}

/// The fate of a packet: a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Verdict(pub u32);

impl Verdict {
    /// It passes, and nobody is notified.
    pub const PASS: Verdict = Verdict(0);
    /// The verdict drops the packet.
    pub const DROP: u32 = 1;
    /// The verdict marks the packet with CE.
    pub const CE: u32 = 2;
    /// Its sender is asked to reduce the window.
    pub const CWR: u32 = 4;
    /// It would have been dropped, and passed because its flow has nothing else in flight.
    pub const BYPASS: u32 = 8;
    /// The queue is so far behind that senders are notified, whether or not this one was.
    pub const BEHIND: u32 = 16;

    /// Whether any of these bits is set.
    #[inline]
    pub fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }
}

/// Decides on a packet whose queue is `behind`. `draw` is uniform in 32 bits.
#[inline]
pub fn decide(settings: &Settings, behind: i64, ask: &Ask, draw: u32) -> Verdict {
    let ecn = ask.ecn != 0;
    let tcp = ask.tcp != 0;
    let large = ask.bytes > SMALL;
    let paced = settings.form == Form::Edt as u32;
    let shared = tcp && ask.share != 0;
    let waits = settings.flags & flags::WAITS != 0;
    let mut signals_from = if tcp || ecn || paced { settings.mark } else { 0 };
    let (mut drop, mut drop_large) = (settings.drop, settings.drop_large);
    if waits && !tcp && !ecn {
        signals_from = drop;
    }
    if shared {
        // Its pace follows the queue, and a window that is reduced while it is paced hardly grows
        // again: where many begin at once, their small segments would stay.
        drop = drop.max(settings.bypass);
        (signals_from, drop_large) = (drop, drop);
    }
    let too_far = behind > drop || (large && behind > drop_large);
    if !too_far && behind <= signals_from {
        return if shared && ask.bytes > ask.share {
            too_large(settings, ecn)
        } else {
            Verdict::PASS
        };
    }
    let mut verdict = Verdict::BEHIND;
    if too_far {
        verdict |= if tcp && !ecn { Verdict::DROP | Verdict::CWR } else { Verdict::DROP };
        let alone = tcp && ask.in_flight <= 1;
        if alone
            && (shared || waits)
            && settings.bypass > 0
            && behind < super::FLOOR * settings.drop
        {
            return Verdict(Verdict::BEHIND | Verdict::BYPASS);
        }
        if alone && behind <= settings.bypass {
            verdict = Verdict::BEHIND | Verdict::BYPASS | Verdict::CWR;
        }
    } else if ecn {
        // Two independent halves would be better; 16 bits are enough for a share of 1/65536.
        if draw >> 16 < share(settings, ask) {
            verdict |= Verdict::CE;
        }
    } else if tcp {
        if reduces(settings, behind, ask, draw) {
            verdict |= Verdict::CWR;
        }
    } else if large {
        verdict |= Verdict::DROP;
    }
    if ecn
        && (verdict & Verdict::BYPASS != 0
            || (settings.flags & flags::MARK_ONLY != 0 && verdict & Verdict::DROP != 0))
    {
        verdict |= Verdict::CE;
    }
    if settings.flags & flags::MARK_ONLY != 0 {
        verdict &= !Verdict::DROP;
    }
    if settings.flags & flags::NO_CWR != 0 {
        verdict &= !Verdict::CWR;
    }
    Verdict(verdict)
}

/// The verdict on a segment that is larger than its flow's share.
#[inline]
fn too_large(settings: &Settings, ecn: bool) -> Verdict {
    match ecn {
        true => Verdict(Verdict::CE),
        false if settings.flags & flags::NO_CWR == 0 => Verdict(Verdict::CWR),
        false => Verdict::PASS,
    }
}

/// The share of its due notifications that a flow gets, in 1/65536.
#[inline]
fn share(settings: &Settings, ask: &Ask) -> u32 {
    if settings.reaction != Reaction::RttAware as u32 || ask.rtt <= settings.reference_rtt {
        return 1 << 16;
    }
    (((settings.reference_rtt as u64) << 16) / ask.rtt as u64) as u32
}

/// Whether a TCP without ECN is notified now.
#[inline]
fn reduces(settings: &Settings, behind: i64, ask: &Ask, draw: u32) -> bool {
    if settings.reaction == Reaction::Step as u32 {
        return true;
    }
    let region = (settings.drop_large - settings.mark).max(1) as u64;
    let over = (behind - settings.mark).max(0) as u64;
    // Uniform in the region; products stay below 2^64 for regions of 2^39, nine minutes or half a
    // terabyte.
    let at = (region * (draw >> 8) as u64) >> 24;
    (over * share(settings, ask) as u64) >> 16 >= at
}
