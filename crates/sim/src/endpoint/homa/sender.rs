//! A message that goes out: what of it may be sent, and what is asked for again.
//!
//! **Sending.** Up to RTTbytes leave without a grant, with the priority of the message's length,
//! the rest as far as it is granted, with the priority of the last grant.
//!
//! **RESEND** asks for a range again. The part of it that has been sent goes out once more, before
//! all else; of the rest it counts as a grant, since that may be what was lost. A range of which
//! nothing has been sent yet is answered by BUSY: the host had shorter messages to send.
//!
//! **PING** asks whether the message is there, when nothing may be sent and nothing has come for
//! `ping-after`. The receiver answers by DONE, a grant, or UNKNOWN, after
//! which the message begins anew. A receiver that is silent for `abort-after` is given up.
//!
//! Invariant: `sent ≤ top ≤ length`; while a message is neither done nor given up the deadline is
//! set.

use super::Config;
use crate::endpoint::{
    Beside, Counters, Endpoint, Form, Incoming, Limited, Marked, Outgoing, Standing,
};
use millpond_core::packet::{Body, Packet};
use millpond_core::ranges::Ranges;
use millpond_core::{Ecn, Time};

/// A piece of a message, for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub number: u16,
    /// Bytes of the whole message.
    pub length: u32,
    pub offset: u32,
    pub len: u32,
    pub is_again: bool,
    pub priority: u8,
}

impl Piece {
    /// Makes a packet one of the message's.
    pub fn write(&self, packet: &mut Packet, slot: u32) {
        let Piece { offset, length, number, priority, .. } = *self;
        packet.body = Body::HomaData { offset, length, slot, number };
        packet.class = packet.class.with_priority(priority);
    }
}

/// The range that a RESEND asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The first byte that is missing.
    pub from: u32,
    pub len: u32,
    /// The priority to send it with.
    pub priority: u8,
}

/// A connection's sending end: its present message.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    /// Its number; the first is 0.
    number: u16,
    length: u32,
    /// The next byte to send in turn, and the first never sent.
    sent: u32,
    top: u32,
    /// The bytes that may be sent.
    granted: u32,
    priority: u8,
    /// Data that is asked for again, and with which priority.
    again: Ranges,
    again_priority: u8,
    is_done: bool,
    is_given_up: bool,
    /// Bytes of the messages before it, and of all that was written.
    before: u64,
    written: u64,
    /// When a packet of the receiver last came, and when it is asked next.
    silent_since: Time,
    ping_at: Time,
    pings: bool,
    deadline: Time,
    retransmitted: u32,
    timeouts: u32,
    aborted: u32,
    /// Which of the run's Homa transports it follows.
    which: u8,
}

impl Sender {
    /// Nothing written, of a connection that follows Homa transport `which`.
    pub fn new(which: u8) -> Sender {
        Sender {
            number: u16::MAX,
            is_done: true,
            ping_at: Time::MAX,
            deadline: Time::MAX,
            which,
            ..Sender::default()
        }
    }

    /// Bytes written that are of no message yet.
    fn rest(&self) -> u64 {
        self.written - self.before - u64::from(self.length)
    }

    /// Begins the next message, if the last is done and there is one.
    pub fn begin(&mut self, now: Time, cfg: &[Config]) {
        let (cfg, rest) = (self.config(cfg), self.rest());
        if !self.is_done || rest == 0 {
            return;
        }
        self.before += u64::from(self.length);
        self.number = self.number.wrapping_add(1);
        self.length = u32::try_from(rest).unwrap_or(u32::MAX);
        (self.sent, self.top, self.is_done) = (0, 0, false);
        self.again = Ranges::default();
        self.granted = cfg.unscheduled(self.length);
        self.restart_silence(now, cfg);
    }

    /// The common part of all like it.
    fn config<'a>(&self, cfg: &'a [Config]) -> &'a Config {
        &cfg[usize::from(self.which)]
    }
    pub fn number(&self) -> u16 {
        self.number
    }
    /// The next piece, whose urgency is [`Endpoint::urgency`].
    pub fn next(&mut self, now: Time, cfg: &[Config]) -> Option<Piece> {
        self.urgency_still()?;
        let cfg = self.config(cfg);
        let (offset, len, priority) = match self.again.first() {
            Some((from, to)) => {
                let len = (to - from).min(u64::from(cfg.mss));
                self.again.remove_below(from + len);
                (from as u32, len as u32, self.again_priority)
            }
            None => {
                let (at, unscheduled) = (self.sent, cfg.unscheduled(self.length));
                let is_blind = at < unscheduled;
                self.sent += (self.granted - at).min(cfg.mss);
                let priority =
                    if is_blind { cfg.unscheduled_priority(self.length) } else { self.priority };
                (at, self.sent - at, priority)
            }
        };
        let is_again = offset < self.top;
        self.retransmitted += u32::from(is_again);
        self.top = self.top.max(offset + len);
        self.ping_at = now.saturating_add(cfg.ping_after);
        self.arm(cfg);
        Some(Piece { number: self.number, length: self.length, offset, len, is_again, priority })
    }

    pub fn on_grant(&mut self, now: Time, number: u16, upto: u32, priority: u8, cfg: &[Config]) {
        if !self.is_about(number) {
            return;
        }
        self.priority = priority;
        self.granted = self.granted.max(upto.min(self.length));
        self.restart_silence(now, self.config(cfg));
    }

    /// A RESEND. Whether the answer is BUSY.
    pub fn on_resend(&mut self, now: Time, number: u16, asked: Asked, cfg: &[Config]) -> bool {
        if !self.is_about(number) {
            return false;
        }
        let (from, to) =
            (asked.from.min(self.length), asked.from.saturating_add(asked.len).min(self.length));
        self.timeouts += 1;
        self.again_priority = asked.priority;
        if to > self.granted {
            // Nothing but a grant that was lost asks for what may not be sent.
            self.granted = to;
        }
        let is_busy = from >= self.sent;
        if !is_busy {
            self.again.insert(u64::from(from), u64::from(to.min(self.sent)));
        }
        self.restart_silence(now, self.config(cfg));
        is_busy
    }

    /// A RESEND of a message whose flow may not send. Whether the answer is BUSY.
    pub fn puts_off(&mut self, now: Time, number: u16, cfg: &[Config]) -> bool {
        let is_about = self.is_about(number);
        if is_about {
            self.restart_silence(now, self.config(cfg));
        }
        is_about
    }

    pub fn on_done(&mut self, now: Time, number: u16, cfg: &[Config]) {
        if !self.is_about(number) {
            return;
        }
        self.is_done = true;
        (self.deadline, self.pings) = (Time::MAX, false);
        self.begin(now, cfg);
    }

    /// Nothing of the message is there: it begins anew.
    pub fn on_unknown(&mut self, now: Time, number: u16, cfg: &[Config]) {
        if !self.is_about(number) {
            return;
        }
        let cfg = self.config(cfg);
        self.sent = 0;
        self.again = Ranges::default();
        self.granted = cfg.unscheduled(self.length);
        self.restart_silence(now, cfg);
    }

    /// Whether something that comes is about the present message, which is under way.
    fn is_about(&self, number: u16) -> bool {
        number == self.number && !self.is_done && !self.is_given_up
    }

    /// Whether a PING is to leave now; the answer is `true` once.
    pub fn takes_ping(&mut self) -> bool {
        std::mem::take(&mut self.pings)
    }

    /// A packet of the receiver has come.
    fn restart_silence(&mut self, now: Time, cfg: &Config) {
        self.silent_since = now;
        self.ping_at = now.saturating_add(cfg.ping_after);
        self.arm(cfg);
    }

    fn arm(&mut self, cfg: &Config) {
        let abort = cfg
            .abort_after
            .map_or(Time::MAX, |(_, silence)| self.silent_since.saturating_add(silence));
        self.deadline = self.ping_at.min(abort);
    }
}

impl Endpoint for Sender {
    type Config = [Config];

    /// The application writes a message, which begins when the receiver has the one before it.
    fn write(&mut self, _now: Time, bytes: u64) {
        self.written += bytes;
    }

    /// The last message has been answered, and so has arrived.
    fn write_next(&mut self, now: Time, bytes: u64) {
        if self.sent == self.length && self.rest() == 0 {
            self.is_done = true;
        }
        self.write(now, bytes);
    }

    #[inline(never)]
    fn poll_send(&mut self, now: Time, _: u32, cfg: &[Config]) -> Option<Outgoing> {
        let piece = self.next(now, cfg)?;
        let form = Form::Homa(piece);
        let segment = Outgoing::new(0, piece.len, Ecn::NotEct);
        Some(Outgoing { retransmission: piece.is_again, form, ..segment })
    }

    fn would_send(&self, _: &[Config]) -> bool {
        self.urgency_still().is_some()
    }

    fn beside(&mut self, now: Time, slot: u32, _: &[Config]) -> Option<Beside> {
        let ping = Body::Ping { slot, number: self.number };
        self.takes_ping().then(|| Beside::new(now, ping))
    }

    fn urgency(&mut self, now: Time, cfg: &[Config]) -> Option<u64> {
        self.begin(now, cfg);
        self.urgency_still()
    }

    /// How urgent its next piece is, smaller first; `None`: there is none. A piece that is sent
    /// again comes before all else; then it is the bytes that are left to send (SRPT).
    fn urgency_still(&self) -> Option<u64> {
        if self.is_done || self.is_given_up {
            None
        } else if !self.again.is_empty() {
            Some(0)
        } else {
            (self.sent < self.granted).then(|| u64::from(self.length - self.sent))
        }
    }

    fn on_packet(&mut self, now: Time, incoming: &Incoming, cfg: &[Config]) -> Option<Body> {
        let slot = incoming.packet.peer;
        match incoming.packet.body {
            Body::Grant { upto, number, priority, .. } => {
                self.on_grant(now, number, upto, priority, cfg)
            }
            Body::Resend { from, len, number, priority, .. } => {
                let is_busy = match incoming.is_frozen {
                    true => self.puts_off(now, number, cfg),
                    false => self.on_resend(now, number, Asked { from, len, priority }, cfg),
                };
                return is_busy.then_some(Body::Busy { slot, number });
            }
            Body::Done { number, .. } => self.on_done(now, number, cfg),
            Body::Unknown { number, .. } => self.on_unknown(now, number, cfg),
            _ => {}
        }
        None
    }

    fn deadline(&self) -> Time {
        self.deadline
    }

    fn on_timer(&mut self, now: Time, cfg: &[Config]) {
        if now < self.deadline {
            return;
        }
        let cfg = self.config(cfg);
        if self.urgency_still().is_some() {
            // Its host has shorter messages to send: it has not been silent for want of an answer.
            self.restart_silence(now, cfg);
        } else if cfg
            .abort_after
            .is_some_and(|(_, silence)| self.silent_since.saturating_add(silence) <= now)
        {
            self.is_given_up = true;
            self.aborted += 1;
            self.deadline = Time::MAX;
        } else {
            self.pings = true;
            self.timeouts += 1;
            self.ping_at = now.saturating_add(cfg.ping_after);
            self.arm(cfg);
        }
    }

    fn thaw(&mut self, _: Time, held: Time) {
        for at in [&mut self.silent_since, &mut self.ping_at, &mut self.deadline] {
            *at = at.saturating_add(held);
        }
    }

    /// Bytes of messages that are done.
    fn acked(&self) -> u64 {
        self.before + if self.is_done { u64::from(self.length) } else { 0 }
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn sent(&self) -> u64 {
        self.before + u64::from(self.top)
    }

    fn aborted(&self) -> u32 {
        self.aborted
    }

    fn counters(&self) -> Counters {
        Counters { retransmitted: self.retransmitted, timeouts: self.timeouts }
    }

    /// The bytes that may be sent stand for the window.
    fn standing(&self, _: &[Config]) -> Standing {
        let is_open = !self.is_done && self.again.is_empty();
        Standing {
            state: if is_open || self.is_done { "open" } else { "recovery" },
            cwnd: u64::from(self.granted),
            ssthresh: u64::MAX,
            in_flight: if self.is_done { 0 } else { u64::from(self.top) },
            law: Vec::new(),
        }
    }
}

impl Limited for Sender {}

impl Marked for Sender {}
