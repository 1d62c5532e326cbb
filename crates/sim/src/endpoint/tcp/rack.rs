//! RACK: losses detected by the times of transmission, RFC 8985 §6, as Linux does since 6.17.
//!
//! A segment is lost if one sent after it was delivered and it is older than a round trip and the
//! reordering window. The rule holds for retransmissions, too, which RFC 6675 cannot judge.
//! Deviations:
//!
//! - The receiver reports no DSACK, so that the window's multiplier stays 1.
//! - Transmissions are numbered. The RFC orders those of one time by their sequence numbers, which
//!   is wrong for a hole sent again just after new data.
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
    at: Time,
    order: u64,
    len: u32,
    again: bool,
    /// Lost, and not sent again since (Segment.lost).
    lost: bool,
}

impl Sent {
    fn end(&self) -> u64 {
        self.from + u64::from(self.len)
    }
}

#[derive(Clone, Debug)]
struct Delivered {
    /// RACK.min_RTT; `Time::MAX` before any sample.
    min_rtt: Time,
    rtt: Time,
    /// The segment sent last of those delivered, by the number of its transmission and its end
    /// (RACK.xmit_ts, RACK.end_seq).
    latest: (u64, u64),
    /// RACK.fack: where the highest delivered segment ends.
    fack: u64,
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
        self.latest = self.latest.max((sent.order, sent.end()));
    }

    /// Whether it was sent before the latest delivered segment (RACK_sent_after).
    fn is_before_latest(&self, sent: &Sent) -> bool {
        (sent.order, sent.end()) < self.latest
    }
}

#[derive(Clone, Debug)]
pub(super) struct Rack {
    sent: VecDeque<Sent>,
    /// Bytes in `sent`, and those of them that are lost.
    bytes: u64,
    lost: u64,
    lost_from: u64,
    /// Ranges in `sent` that were sent more than once.
    again: usize,
    order: u64,
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
            order: 0,
            reorder_at: Time::MAX,
            armed: false,
            delivered: Delivered {
                min_rtt,
                rtt: Time::ZERO,
                latest: (0, 0),
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

    /// When the lowest segment outstanding was last sent.
    pub(super) fn first_sent(&self) -> Option<Time> {
        self.sent.front().map(|sent| sent.at)
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
            && (last.end(), last.at, last.order) == (from, now, self.order)
            && !last.again
            && !last.lost
            && let Some(both) = last.len.checked_add(len)
        {
            last.len = both;
            return;
        }
        self.order += 1;
        let order = self.order;
        self.sent.push_back(Sent { from, at: now, order, len, again: false, lost: false });
    }

    /// `[from, to)` leaves again.
    pub(super) fn send_again(&mut self, from: u64, to: u64, now: Time) {
        self.order += 1;
        let (first, end) = self.cut_out(from, to);
        for sent in self.sent.range_mut(first..end) {
            if sent.lost {
                self.lost -= u64::from(sent.len);
            }
            self.again += usize::from(!sent.again);
            (sent.at, sent.order) = (now, self.order);
            (sent.again, sent.lost) = (true, false);
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
        let quarter = min_rtt / 4;
        // The first SACKs come before the first sample; Linux takes one from them.
        if srtt == Time::ZERO { quarter } else { quarter.min(srtt) }
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

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    fn sack(blocks: &[(u64, u64)]) -> Sack {
        let mut sack = Sack { count: blocks.len() as u8, ..Sack::default() };
        sack.blocks[..blocks.len()].copy_from_slice(blocks);
        sack
    }

    /// Ten segments of a byte, a microsecond apart. The first is acknowledged after 100 us.
    fn ten() -> Rack {
        let mut rack = Rack::new(Time::ZERO);
        for i in 0..10 {
            rack.send(i, i + 1, US(i));
        }
        rack.acknowledge(US(100), 1, None, US(0));
        rack
    }

    #[test]
    fn rfc8985_a_segment_is_lost_once_a_later_one_is_delivered_and_the_window_is_over() {
        let mut rack = ten();
        rack.detect(US(100), US(25));
        assert_eq!((rack.pipe(), rack.reorder_at), (9, Time::MAX), "nothing later is delivered");
        // 3 is delivered: 1 and 2 were sent before it.
        rack.acknowledge(US(103), 1, Some(&sack(&[(3, 4)])), US(0));
        rack.detect(US(103), US(25));
        assert_eq!((rack.pipe(), rack.reorder_at), (8, US(2 + 100 + 25)));
        rack.detect(US(126), US(25));
        assert_eq!((rack.first_lost(9), rack.pipe()), (Some((1, 2)), 7));
        rack.detect(US(127), US(25));
        assert_eq!((rack.pipe(), rack.reorder_at), (6, Time::MAX));
    }

    #[test]
    fn rfc8985_the_window_is_zero_if_eager_until_reordering_is_seen_and_capped_by_srtt() {
        let mut rack = ten();
        assert_eq!(rack.window(false, US(100)), US(25));
        assert_eq!(rack.window(true, US(100)), Time::ZERO);
        assert_eq!(rack.window(false, US(10)), US(10), "SRTT");
        assert_eq!(rack.window(false, Time::ZERO), US(25), "no SRTT yet");
        rack.acknowledge(US(103), 1, Some(&sack(&[(3, 4)])), US(0));
        assert_eq!(rack.window(true, US(100)), Time::ZERO);
        rack.acknowledge(US(104), 2, None, US(1)); // 1 was sent once, below 3
        assert_eq!(rack.window(true, US(100)), US(25));
        assert_eq!(Rack::new(US(40)).window(false, US(100)), US(10), "the handshake's");
        assert_eq!(Rack::new(Time::ZERO).window(false, US(100)), Time::ZERO);
    }

    #[test]
    fn what_one_ack_reports_or_was_sent_again_is_not_reordering() {
        let mut rack = ten();
        rack.acknowledge(US(110), 2, Some(&sack(&[(7, 8), (3, 4), (5, 6)])), US(0));
        assert_eq!(rack.window(true, US(100)), Time::ZERO);
        rack.send_again(4, 5, US(110));
        rack.acknowledge(US(210), 2, Some(&sack(&[(3, 6)])), US(0));
        assert_eq!(rack.window(true, US(100)), Time::ZERO);
        rack.acknowledge(US(211), 2, Some(&sack(&[(6, 8)])), US(0));
        assert_eq!(rack.window(true, US(100)), US(25), "6 was sent once");
    }

    #[test]
    fn rfc8985_a_retransmission_is_lost_once_a_later_transmission_is_delivered() {
        let mut rack = ten();
        rack.acknowledge(US(105), 1, Some(&sack(&[(2, 6)])), US(0));
        rack.detect(US(105), Time::ZERO);
        assert_eq!(rack.first_lost(9), Some((1, 2)));
        rack.send_again(1, 2, US(105));
        rack.send(10, 11, US(106));
        assert_eq!((rack.first_lost(9), rack.pipe()), (None, 6));
        // A segment sent before the retransmission shows nothing.
        rack.acknowledge(US(109), 1, Some(&sack(&[(2, 10)])), US(0));
        rack.detect(US(109), Time::ZERO);
        assert_eq!((rack.first_lost(9), rack.pipe()), (None, 2));
        rack.acknowledge(US(206), 1, Some(&sack(&[(2, 11)])), US(0));
        rack.detect(US(206), Time::ZERO);
        assert_eq!((rack.first_lost(9), rack.pipe()), (Some((1, 2)), 0));
    }

    #[test]
    fn rfc8985_the_delivery_of_an_earlier_transmission_shows_nothing() {
        for (delivered, echo, shows) in
            [(US(199), US(105), false), (US(205), US(1), false), (US(205), US(105), true)]
        {
            let mut rack = ten();
            rack.send_again(3, 4, US(105));
            rack.send_again(1, 2, US(105));
            rack.acknowledge(delivered, 2, None, echo);
            rack.detect(delivered, Time::ZERO);
            assert_eq!(rack.has_lost(), shows, "at {delivered:?} with {echo:?}");
        }
    }

    #[test]
    fn ranges_sent_at_once_are_one_until_a_sack_splits_them() {
        let mut rack = Rack::new(Time::ZERO);
        rack.send(0, 4000, US(1));
        rack.send(4000, 9000, US(1));
        assert_eq!(rack.sent.len(), 1);
        rack.acknowledge(US(101), 1000, Some(&sack(&[(6000, 7000), (3000, 4000)])), US(1));
        assert_eq!((rack.sent.len(), rack.outstanding()), (3, 6000));
        rack.detect(US(101), Time::ZERO);
        assert_eq!((rack.pipe(), rack.first_lost(1460)), (2000, Some((1000, 2460))));
        rack.send_again(1000, 2460, US(101));
        assert_eq!((rack.pipe(), rack.first_lost(1460)), (3460, Some((2460, 3000))));
        rack.acknowledge(US(201), 9000, None, US(101));
        assert_eq!((rack.pipe(), rack.outstanding(), rack.again), (0, 0, 0));
    }

    #[test]
    fn rfc8985_a_timeout_loses_the_first_and_what_is_older_than_a_round_trip() {
        let mut rack = ten();
        rack.send_again(1, 2, US(140));
        rack.send(10, 11, US(150));
        rack.time_out(US(170));
        assert_eq!(rack.first_lost(9), Some((1, 2)), "the first, however young");
        assert_eq!((rack.pipe(), rack.reorder_at), (1, Time::MAX), "not the youngest");
    }
}
