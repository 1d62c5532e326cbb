//! RACK: losses detected by the times of transmission, RFC 8985 §6, as Linux does since 6.17.
//!
//! A segment is lost if one sent after it was delivered and it is older than a round trip and the
//! reordering window. That holds for retransmissions, too, which RFC 6675 cannot judge. Deviations:
//!
//! - The receiver reports no DSACK, so that the window's multiplier stays 1.
//! - RACK.min_RTT is the smallest round trip of the connection; Linux forgets it after 300 s.
//! - An echo earlier than a retransmission disqualifies its delivery only for cumulative
//!   acknowledgements. An ACK with SACKs echoes the last segment in order (RFC 7323 §4.3).
//! - A segment that TLT forces out is not noted: if it fills a hole, that looks like reordering.
//!
//! Invariant: `sent` holds what is neither acknowledged nor SACKed, each byte once, in the order of
//! the stream; what was sent once is in the order of time, too.

use millpond_core::{Sack, Time};
use std::collections::VecDeque;

/// A range of the stream that left at one time.
#[derive(Clone, Copy, Debug)]
struct Sent {
    from: u64,
    /// The last transmission (Segment.xmit_ts).
    at: Time,
    len: u32,
    /// Sent more than once (Segment.retransmitted).
    again: bool,
    /// Lost, and not sent again since (Segment.lost).
    lost: bool,
}

impl Sent {
    fn end(&self) -> u64 {
        self.from + u64::from(self.len)
    }
}

/// What the deliveries have shown.
#[derive(Clone, Debug)]
struct Delivered {
    /// RACK.min_RTT; `Time::MAX` before any sample.
    min_rtt: Time,
    /// RACK.rtt.
    rtt: Time,
    /// RACK.xmit_ts and RACK.end_seq: the segment sent last of those delivered.
    latest: Option<(Time, u64)>,
    /// RACK.fack: where the highest delivered segment ends.
    fack: u64,
    /// RACK.reordering_seen.
    reordering_seen: bool,
}

impl Delivered {
    /// Steps 1 to 3 (RFC 8985 §6.2) for one delivered segment; `echo`: the time that a cumulative
    /// acknowledgement of it echoes.
    fn note(&mut self, sent: Sent, now: Time, echo: Option<Time>) {
        if sent.end() > self.fack {
            self.fack = sent.end();
        } else if !sent.again && sent.end() < self.fack {
            self.reordering_seen = true;
        }
        let rtt = now.saturating_sub(sent.at);
        if !sent.again {
            self.min_rtt = self.min_rtt.min(rtt);
        } else if rtt < self.min_rtt || echo.is_some_and(|echo| echo < sent.at) {
            return; // an earlier transmission was delivered
        }
        self.rtt = rtt;
        self.latest = self.latest.max(Some((sent.at, sent.end())));
    }

    /// Whether it was sent before the latest delivered segment (RACK_sent_after).
    fn is_before_latest(&self, sent: &Sent) -> bool {
        self.latest.is_some_and(|latest| latest > (sent.at, sent.end()))
    }
}

/// A connection's state of RACK.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    sent: VecDeque<Sent>,
    /// Bytes in `sent`, and those of them that are lost.
    bytes: u64,
    lost: u64,
    /// Nothing below it is lost.
    lost_from: u64,
    /// Ranges in `sent` that were sent more than once.
    again: usize,
    /// When the reordering timer expires.
    pub(super) reorder_at: Time,
    /// The sender's deadline counts the reordering timer in.
    pub(super) armed: bool,
    delivered: Delivered,
}

impl Rack {
    /// Nothing sent; `srtt`: the round-trip time of the handshake, zero if there was none.
    pub(super) fn new(srtt: Time) -> Rack {
        let min_rtt = if srtt == Time::ZERO { Time::MAX } else { srtt };
        Rack {
            sent: VecDeque::new(),
            bytes: 0,
            lost: 0,
            lost_from: 0,
            again: 0,
            reorder_at: Time::MAX,
            armed: false,
            delivered: Delivered {
                min_rtt,
                rtt: Time::ZERO,
                latest: None,
                fack: 0,
                reordering_seen: false,
            },
        }
    }

    /// Bytes in the network: neither acknowledged, nor SACKed, nor lost.
    pub(super) fn pipe(&self) -> u64 {
        self.bytes - self.lost
    }

    /// Bytes neither acknowledged nor SACKed.
    pub(super) fn outstanding(&self) -> u64 {
        self.bytes
    }

    /// Whether anything lost waits to be sent again.
    pub(super) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Whether the lowest segment outstanding was sent more than once.
    pub(super) fn first_is_again(&self) -> bool {
        self.sent.front().is_some_and(|sent| sent.again)
    }

    /// New data `[from, to)` leaves.
    pub(super) fn send(&mut self, from: u64, to: u64, now: Time) {
        let len = (to - from) as u32;
        self.bytes += u64::from(len);
        if let Some(last) = self.sent.back_mut()
            && (last.end(), last.at) == (from, now)
            && !last.again
            && !last.lost
            && let Some(both) = last.len.checked_add(len)
        {
            last.len = both;
            return;
        }
        self.sent.push_back(Sent { from, at: now, len, again: false, lost: false });
    }

    /// `[from, to)` leaves again.
    pub(super) fn send_again(&mut self, from: u64, to: u64, now: Time) {
        let (first, end) = self.cut_out(from, to);
        for sent in self.sent.range_mut(first..end) {
            if sent.lost {
                self.lost -= u64::from(sent.len);
            }
            self.again += usize::from(!sent.again);
            (sent.at, sent.again, sent.lost) = (now, true, false);
        }
        if from <= self.lost_from {
            self.lost_from = self.lost_from.max(to);
        }
    }

    /// The lowest lost segment, of at most `mss` bytes.
    pub(super) fn first_lost(&self, mss: u32) -> Option<(u64, u64)> {
        if self.lost == 0 {
            return None;
        }
        let at = self.sent.partition_point(|sent| sent.end() <= self.lost_from);
        let sent = self.sent.range(at..).find(|sent| sent.lost)?;
        Some((sent.from, sent.end().min(sent.from + u64::from(mss))))
    }

    /// Takes over an ACK up to `una` with these blocks, which echoes `echo`.
    pub(super) fn acknowledge(&mut self, now: Time, una: u64, sack: Option<&Sack>, echo: Time) {
        self.deliver(0, una, now, Some(echo));
        let Some(sack) = sack else { return };
        // In the order of the stream: what one ACK reports together was not reordered.
        let mut blocks = sack.blocks;
        let blocks = &mut blocks[..usize::from(sack.count.min(4))];
        blocks.sort_unstable();
        for &mut (from, to) in blocks {
            if from.max(una) < to {
                self.deliver(from.max(una), to, now, None);
            }
        }
    }

    fn deliver(&mut self, from: u64, to: u64, now: Time, echo: Option<Time>) {
        let (first, end) = self.cut_out(from, to);
        for sent in self.sent.drain(first..end) {
            self.bytes -= u64::from(sent.len);
            self.again -= usize::from(sent.again);
            if sent.lost {
                self.lost -= u64::from(sent.len);
            }
            self.delivered.note(sent, now, echo);
        }
    }

    /// Splits what reaches over the ends of `[from, to)`; returns the indices of what lies in it.
    fn cut_out(&mut self, from: u64, to: u64) -> (usize, usize) {
        let first = self.split(from);
        if self.sent.get(first).is_none_or(|sent| sent.from >= to) {
            return (first, first);
        }
        (first, self.split(to))
    }

    /// Splits the range around `at`; returns the index of the first that begins there or above.
    fn split(&mut self, at: u64) -> usize {
        let i = self.sent.partition_point(|sent| sent.end() <= at);
        match self.sent.get_mut(i) {
            Some(sent) if sent.from < at => {
                let low = (at - sent.from) as u32;
                let high = Sent { from: at, len: sent.len - low, ..*sent };
                sent.len = low;
                self.again += usize::from(high.again);
                self.sent.insert(i + 1, high);
                i + 1
            }
            _ => i,
        }
    }

    /// Step 4: the reordering window. `eager`: in recovery, or as many segments SACKed as mean
    /// loss.
    pub(super) fn window(&self, eager: bool, srtt: Time) -> Time {
        let Delivered { min_rtt, reordering_seen, .. } = self.delivered;
        if (eager && !reordering_seen) || min_rtt == Time::MAX {
            return Time::ZERO;
        }
        (min_rtt / 4).min(srtt)
    }

    /// Step 5: marks what is lost at `now`, and sets when the reordering timer expires: when the
    /// youngest of what was sent before the latest delivered segment is old enough.
    pub(super) fn detect(&mut self, now: Time, window: Time) {
        self.reorder_at = Time::MAX;
        let Rack { sent, delivered, .. } = self;
        let mut latest_due = Time::ZERO;
        let mut again = self.again;
        for sent in sent {
            again -= usize::from(sent.again);
            if sent.lost {
                continue;
            }
            if !delivered.is_before_latest(sent) {
                if again == 0 && !sent.again {
                    break; // what was sent once is in the order of time
                }
                continue;
            }
            let due = sent.at + delivered.rtt + window;
            if due <= now {
                sent.lost = true;
                self.lost += u64::from(sent.len);
                self.lost_from = self.lost_from.min(sent.from);
            } else {
                latest_due = latest_due.max(due);
            }
        }
        if latest_due > Time::ZERO {
            self.reorder_at = latest_due;
        }
    }

    /// The retransmission timer has expired: the first segment is lost, and all that is older than
    /// a round trip (§6.3, with a window of 0, as in Linux).
    pub(super) fn time_out(&mut self, now: Time) {
        self.reorder_at = Time::MAX;
        for (i, sent) in self.sent.iter_mut().enumerate() {
            if !sent.lost && (i == 0 || sent.at + self.delivered.rtt <= now) {
                sent.lost = true;
                self.lost += u64::from(sent.len);
                self.lost_from = self.lost_from.min(sent.from);
            }
        }
    }
}
