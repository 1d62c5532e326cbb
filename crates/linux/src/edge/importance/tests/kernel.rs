//! A model of a kernel's TCP. The sender has slow start, RFC 6675's recovery and a retransmission
//! timeout of 200 ms; the receiver delays ACKs by 40 ms, and reports SACK and DSACK.
//!
//! Invariant: the receiver checks each payload byte against the stream, and that no TSval goes
//! backwards.

use super::frames::{Seg, Style, syn_options};
use crate::dataplane::frame::parse::tcp::{ACK, ECE, FIN, SYN};
use millpond_core::Time;
use millpond_core::ranges::Ranges;

pub const MSS: u64 = 1000;
const RTO: Time = Time::from_ms(200);
const DELAYED: Time = Time::from_ms(40);

/// The byte of the stream at an offset.
pub fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9) >> 13) as u8 ^ at as u8
}

fn near(first: u32, reference: u64, seq: u32) -> u64 {
    let distance = seq.wrapping_sub(first.wrapping_add(reference as u32)) as i32;
    reference.checked_add_signed(distance.into()).expect("within the stream")
}

pub struct Sender {
    style: Style,
    size: u64,
    /// Bytes that the application has written.
    pub written: u64,
    pub una: u64,
    nxt: u64,
    open: bool,
    edge: u64,
    cwnd: u64,
    ssthresh: u64,
    scores: Ranges,
    again: Ranges,
    recover: Option<u64>,
    /// All below was lost, by a timeout.
    lost_below: u64,
    dupacks: u32,
    timer: Time,
    backoff: u32,
    pub timeouts: u32,
    recent: u32,
}

impl Sender {
    pub fn new(style: Style, size: u64, window: u64) -> Sender {
        Sender {
            style,
            size,
            written: size,
            una: 0,
            nxt: 0,
            open: false,
            edge: 0,
            cwnd: window,
            ssthresh: u64::MAX,
            scores: Ranges::default(),
            again: Ranges::default(),
            recover: None,
            lost_below: 0,
            dupacks: 0,
            timer: Time::MAX,
            backoff: 0,
            timeouts: 0,
            recent: 0,
        }
    }
    pub fn is_done(&self) -> bool {
        self.una > self.size
    }
    pub fn deadline(&self) -> Time {
        self.timer
    }
    fn first(&self) -> u32 {
        self.style.isn[0].wrapping_add(1)
    }
    fn fields(&self, now: Time, seq: u32, flags: u8) -> Seg {
        Seg {
            seq,
            ack: self.style.isn[1].wrapping_add(1),
            flags: flags | ACK,
            window: 1000,
            stamps: self.style.stamps.then(|| (stamp(now), self.recent)),
            ..Seg::default()
        }
    }
    pub fn start(&mut self, now: Time, out: &mut Vec<Seg>) {
        self.timer = now + RTO;
        let extra = syn_options(&self.style);
        let seq = self.style.isn[0];
        out.push(Seg { seq, flags: SYN, window: 1000, extra, ..Seg::default() });
    }
    fn segment(&mut self, now: Time, from: u64, to: u64) -> Seg {
        let mut seg = self.fields(now, self.first().wrapping_add(from as u32), 0);
        seg.payload = (from..to.min(self.size)).map(byte).collect();
        if to > self.size {
            seg.flags |= FIN;
        }
        seg.class = self.style.ecn;
        if self.timer == Time::MAX {
            self.timer = now + RTO;
        }
        seg
    }
    pub fn receive(&mut self, now: Time, seg: &Seg, out: &mut Vec<Seg>) {
        if seg.flags & SYN != 0 {
            if self.open {
                return out.push(self.fields(now, self.first(), 0));
            }
            self.open = true;
            self.timer = Time::MAX;
            self.edge = seg.window.into();
            out.push(self.fields(now, self.first(), 0));
            return self.send(now, out);
        }
        if let Some((value, _)) = seg.stamps {
            self.recent = value;
        }
        let ack = near(self.first(), self.una, seg.ack);
        assert!(ack <= self.nxt, "an ACK of what was never sent");
        if ack < self.una {
            return;
        }
        self.edge = ack + (u64::from(seg.window) << self.style.scale.unwrap_or(0));
        let before = self.sacked();
        for (a, b) in &seg.sack {
            let (a, b) = (near(self.first(), ack, *a), near(self.first(), ack, *b));
            if a > ack {
                self.scores.insert(a, b);
            }
        }
        let has_news = self.sacked() > before;
        if ack > self.una {
            self.advance(now, ack);
        } else if self.nxt > self.una && (has_news || !self.style.sack) {
            self.dupacks += 1;
        }
        let is_lost = self.dupacks >= 3 || self.sacked() >= 3 * MSS;
        if is_lost && self.recover.is_none() && self.nxt > self.una {
            self.ssthresh = ((self.nxt - self.una) / 2).max(2 * MSS);
            (self.cwnd, self.recover) = (self.ssthresh, Some(self.nxt));
            self.again = Ranges::default();
            let to = (self.una + MSS).min(self.nxt);
            self.again.insert(self.una, to);
            let seg = self.segment(now, self.una, to);
            out.push(seg);
        }
        self.send(now, out);
    }
    fn advance(&mut self, now: Time, ack: u64) {
        let grown = ack - self.una;
        self.una = ack;
        (self.dupacks, self.backoff) = (0, 0);
        self.scores.remove_below(ack);
        self.again.remove_below(ack);
        self.timer = if ack == self.nxt { Time::MAX } else { now + RTO };
        match self.recover {
            Some(recover) if ack < recover => (),
            Some(_) => self.recover = None,
            None if self.cwnd < self.ssthresh => self.cwnd += grown,
            None => self.cwnd += MSS * grown / self.cwnd,
        }
    }
    fn sacked(&self) -> u64 {
        self.scores.iter().map(|(a, b)| b - a).sum()
    }
    /// The first range that counts as lost and was not sent again.
    fn hole(&self) -> Option<(u64, u64)> {
        let top = self.scores.end().unwrap_or(0).saturating_sub(3 * MSS).max(self.lost_below);
        let mut at = self.una;
        loop {
            let (from, to) = self.scores.hole(at, self.nxt);
            if from >= to || from >= top {
                return None;
            }
            let (a, b) = self.again.hole(from, to);
            if a < b {
                return Some((a, b.min(a + MSS)));
            }
            at = to;
        }
    }
    fn send(&mut self, now: Time, out: &mut Vec<Seg>) {
        let mut pipe = self.pipe();
        while self.open && pipe + MSS <= self.cwnd.max(MSS) {
            let hole = self.recover.and_then(|_| self.hole());
            let end = (self.nxt + MSS).min(self.written + u64::from(self.written == self.size));
            let (from, to) = match hole {
                Some((a, b)) => {
                    self.again.insert(a, b);
                    (a, b)
                }
                None if end > self.nxt && end <= self.edge => (self.nxt, end),
                None => return,
            };
            self.nxt = self.nxt.max(to);
            pipe += to - from;
            let seg = self.segment(now, from, to);
            out.push(seg);
        }
    }
    fn pipe(&self) -> u64 {
        let lost = self.lost_below.max(self.scores.end().unwrap_or(0).saturating_sub(3 * MSS));
        let is_known = self.recover.is_some() && lost > self.una;
        let sacked_below = self.scores.sum_below(lost);
        let gone = if is_known { (lost - self.una).saturating_sub(sacked_below) } else { 0 };
        let again: u64 = self.again.iter().map(|(a, b)| b - a).sum();
        (self.nxt - self.una).saturating_sub(self.sacked() + gone) + again
    }
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Seg>) {
        if !self.open {
            return self.start(now, out);
        }
        self.timeouts += 1;
        self.backoff = (self.backoff + 1).min(6);
        self.timer = now + RTO * (1 << self.backoff);
        self.ssthresh = (self.cwnd / 2).max(2 * MSS);
        self.cwnd = MSS;
        (self.lost_below, self.recover) = (self.nxt, Some(self.nxt));
        self.again = Ranges::default();
        self.send(now, out);
    }
    pub fn write(&mut self, now: Time, written: u64, out: &mut Vec<Seg>) {
        self.written = written.min(self.size);
        self.send(now, out);
    }
}

fn stamp(now: Time) -> u32 {
    (now.as_ps() / 1_000_000) as u32
}

pub struct Receiver {
    style: Style,
    size: u64,
    window: u64,
    pub next: u64,
    pub ranges: Ranges,
    recent: u32,
    pending: u32,
    timer: Time,
    has_ece: bool,
    /// The network keeps the order: no TSval may go backwards.
    pub strict: bool,
}

impl Receiver {
    pub fn new(style: Style, size: u64, window: u64) -> Receiver {
        Receiver {
            style,
            size,
            window,
            next: 0,
            ranges: Ranges::default(),
            recent: 0,
            pending: 0,
            timer: Time::MAX,
            has_ece: false,
            strict: true,
        }
    }
    pub fn deadline(&self) -> Time {
        self.timer
    }
    fn first(&self) -> u32 {
        self.style.isn[0].wrapping_add(1)
    }
    pub fn receive(&mut self, now: Time, seg: &Seg, out: &mut Vec<Seg>) {
        if seg.flags & SYN != 0 {
            let extra = syn_options(&self.style);
            let (seq, ack) = (self.style.isn[1], seg.seq.wrapping_add(1));
            let window = self.window.min(65_535) as u16;
            return out.push(Seg { seq, ack, flags: SYN | ACK, window, extra, ..Seg::default() });
        }
        if let Some((value, _)) = seg.stamps {
            let is_old = (value.wrapping_sub(self.recent) as i32) < 0;
            assert!(!(is_old && self.strict), "PAWS");
            self.recent = value;
        }
        if seg.end() == seg.seq {
            return;
        }
        let from = near(self.first(), self.next, seg.seq);
        for (at, sent) in (from..).zip(&seg.payload) {
            assert_eq!(*sent, byte(at), "a corrupted byte at {at}");
        }
        let is_over = seg.flags & FIN != 0;
        let to = from + seg.payload.len() as u64 + u64::from(is_over);
        assert!(to <= self.size + 1 && is_over == (to == self.size + 1));
        assert!(to <= self.next + self.window, "beyond the window");
        let known = to <= self.next || self.ranges.around(from).is_some_and(|r| r.1 >= to);
        let duplicate = known.then_some((from, to));
        let is_odd = known || from > self.next || !self.ranges.is_empty();
        if to > self.next {
            self.ranges.insert(from.max(self.next), to);
        }
        if let Some((_, end)) = self.ranges.around(self.next) {
            self.next = end;
            self.ranges.remove_below(end);
        }
        self.pending += 1;
        self.has_ece = seg.class & 3 == 3;
        if is_odd || self.pending >= 2 || is_over {
            out.push(self.acknowledge(now, duplicate));
        } else {
            self.timer = self.timer.min(now + DELAYED);
        }
    }
    fn acknowledge(&mut self, now: Time, duplicate: Option<(u64, u64)>) -> Seg {
        (self.pending, self.timer) = (0, Time::MAX);
        let wire = |at: u64| self.first().wrapping_add(at as u32);
        let most = if self.style.stamps { 3 } else { 4 };
        let blocks = duplicate.into_iter().chain(self.ranges.iter().rev()).take(most);
        let sack = blocks.map(|(a, b)| (wire(a), wire(b))).filter(|_| self.style.sack).collect();
        Seg {
            seq: self.style.isn[1].wrapping_add(1),
            ack: wire(self.next),
            flags: ACK | if self.has_ece { ECE } else { 0 },
            window: (self.window >> self.style.scale.unwrap_or(0)).min(65_535) as u16,
            stamps: self.style.stamps.then(|| (stamp(now), self.recent)),
            sack,
            ..Seg::default()
        }
    }
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Seg>) {
        let ack = self.acknowledge(now, None);
        out.push(ack);
    }
}
