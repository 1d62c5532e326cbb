//! Packets that go out: window, credit, what is sent again, timeouts, SLEEK.
//!
//! **Sending.** Packets to be sent again go first, the lowest number before others, and then new
//! ones. Either needs a window of what is in flight and the packet, and credit where the receiver
//! gives some. A connection begins with a window of speculative credit, which its first answer
//! ends. A packet asks for an ACK if it is the last, is sent again, or uses window or credit up.
//!
//! **Losses.** A NACK has its packet sent again at once. A packet that is not answered within the
//! timeout is, too; the timeout does not back off. Where switches drop and SLEEK is on, an ACK that
//! has as many packets beyond the next one expected as a window and a half begins a recovery: what
//! is unacknowledged up to the highest number sent then goes out once more. A probe asks for such
//! an ACK when none has come for a while.
//!
//! **Asking for credit.** Each packet carries a target: up to where its sender wants credit, which
//! is the rest to be sent, at most a window, without the credit that it has, shared among the
//! senders of its NIC. A sender without credit asks by a request to send (a probe): at once if the
//! application has written since the last target and nothing is in flight; when one of its packets
//! times out, at most once a base round trip; and when nothing is in flight and no credit has come
//! for a timeout since it last asked, since a PULL or the request may be lost. The wait doubles
//! with each request: the receiver serves many, and requests must not fill its link.
//!
//! Invariant: a number is acknowledged, in flight, or waits to be sent again; the deadline is set
//! while any is in flight.

use super::{CREDIT, Config, entropy};
use crate::endpoint::{
    Beside, Counters, Endpoint, Form, Incoming, Limited, Marked, Outgoing, Standing,
};
use millpond_core::congestion::{Nscc, NsccAck};
use millpond_core::edge::entropy::{Entropy, Fate};
use millpond_core::host::Cut;
use millpond_core::packet::uet::HEADERS;
use millpond_core::packet::{Body, Packet, Selective, flags};
use millpond_core::random::mix64;
use millpond_core::{Ecn, Time};
use std::collections::{BTreeSet, VecDeque};

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub psn: u32,
    pub len: u16,
    pub value: u16,
    /// Up to where credit is wanted.
    pub target: u32,
    pub is_again: bool,
    pub asks: bool,
}

impl Piece {
    /// Makes a packet one of the connection's, by its entropy value.
    pub fn write(&self, packet: &mut Packet, slot: u32) {
        let Piece { psn, target, value, .. } = *self;
        packet.body = Body::UetData { psn, target, slot, value };
        packet.entropy = entropy(packet.entropy, value);
        packet.flags |= if self.asks { flags::ASKS } else { 0 };
    }

    /// Its cut: it is one packet, with headers of its own.
    pub fn cut(&self, stream: Cut) -> Cut {
        let header = stream.header - stream.headers + HEADERS;
        Cut { mss: self.len.into(), header, headers: HEADERS }
    }
}

/// A trimmed packet's NACK.
#[derive(Clone, Copy, Debug)]
pub struct Nack {
    pub psn: u32,
    /// The packet's entropy value.
    pub value: u16,
    pub is_marked: bool,
    /// It was trimmed on its last link.
    pub is_last_hop: bool,
    pub rtt: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub psn: u32,
    /// Up to where credit is wanted.
    pub target: u32,
    pub value: u16,
    /// It is a request to send: the sender has packets and no credit.
    pub requests: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Waits,
    Acked,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    state: State,
    at: Time,
    len: u16,
    value: u16,
    /// SLEEK has sent it again in the present recovery.
    is_repaired: bool,
}

/// The credit that a sender has.
#[derive(Clone, Copy, Debug)]
struct Credit {
    /// Bytes that may be sent; below zero by a packet at most.
    left: i64,
    /// All that the receiver has given, in units.
    given: u32,
    /// The first answer has not come: the rest of `left` is speculative.
    is_speculative: bool,
    /// The application has written since the last target, without credit.
    has_news: bool,
    /// When a target was last sent.
    asked_at: Time,
    /// Requests to send since credit last came.
    requests: u32,
}

impl Credit {
    /// When to ask again, if nothing in flight asks.
    fn asks_again_at(&self, cfg: &Config) -> Time {
        self.asked_at.saturating_add(cfg.rto.saturating_mul(1 << self.requests.min(LAST_DOUBLING)))
    }
}

/// Doublings of the wait between two requests to send, at most.
const LAST_DOUBLING: u32 = 6;

#[derive(Clone, Debug)]
pub struct Sender {
    written: u64,
    cut: u64,
    acked: u64,
    /// The first number that is not acknowledged, and those from there on.
    first: u32,
    sent: VecDeque<Sent>,
    again: BTreeSet<u32>,
    /// Bytes on the wire of the packets in `again`.
    waiting: u64,
    /// Departures in their order; stale where a packet was answered or sent again.
    departures: VecDeque<(Time, u32)>,
    /// May be below zero for a moment: what is reported of counts packets that wait, too.
    in_flight: i64,
    /// Bytes that the receiver has reported.
    reported: u64,
    nscc: Nscc,
    credit: Option<Credit>,
    entropy: Entropy,
    /// The end of SLEEK's recovery: a number.
    recovery: Option<u32>,
    /// A probe is due then; one is to leave now.
    probe_at: Time,
    probes: bool,
    /// A request to send is to leave, since a packet has timed out.
    requests: bool,
    rtt: Time,
    deadline: Time,
    retransmitted: u32,
    timeouts: u32,
    senders: u32,
    /// Which of the run's transports of this family it follows.
    which: u8,
}

impl Sender {
    /// Nothing written, of the connection of a flow.
    pub fn new(which: u8, flow: u32, cfg: &[Config]) -> Sender {
        let own = &cfg[usize::from(which)];
        let credit = own.control.has_credit().then_some(Credit {
            left: own.terms.initial as i64,
            given: 0,
            is_speculative: true,
            has_news: false,
            asked_at: Time::ZERO,
            requests: 0,
        });
        let seed = mix64(own.seed ^ mix64(u64::from(flow) | 1 << 40));
        Sender {
            written: 0,
            cut: 0,
            acked: 0,
            first: 0,
            sent: VecDeque::new(),
            again: BTreeSet::new(),
            waiting: 0,
            departures: VecDeque::new(),
            in_flight: 0,
            reported: 0,
            nscc: Nscc::new(&own.terms),
            credit,
            entropy: Entropy::new(own.path_choice, own.paths, seed),
            recovery: None,
            probe_at: Time::MAX,
            probes: false,
            requests: false,
            rtt: Time::ZERO,
            deadline: Time::MAX,
            retransmitted: 0,
            timeouts: 0,
            senders: 1,
            which,
        }
    }

    /// The common part of all like it.
    pub fn config<'a>(&self, cfg: &'a [Config]) -> &'a Config {
        &cfg[usize::from(self.which)]
    }
    fn has_packet(&self) -> bool {
        !self.again.is_empty() || self.cut < self.written
    }

    /// The next packet's bytes on the wire.
    fn next_wire(&self, cfg: &Config) -> u64 {
        let len = match self.again.first() {
            Some(psn) => self.sent[(psn - self.first) as usize].len,
            None => (self.written - self.cut).min(u64::from(cfg.mss)) as u16,
        };
        cfg.wire(len)
    }

    fn window(&self, cfg: &Config) -> i64 {
        match cfg.control.has_credit() && !cfg.control.has_window() {
            true => i64::MAX,
            false => self.nscc.window() as i64,
        }
    }

    fn may_send(&self, wire: u64, cfg: &Config) -> bool {
        let repairs = self.recovery.is_some() && !self.again.is_empty();
        let has_window = repairs || self.window(cfg) >= self.in_flight + wire as i64;
        has_window && self.credit.is_none_or(|credit| credit.left > 0)
    }

    /// Whether it has packets and may send none for want of credit.
    fn is_starved(&self) -> bool {
        self.has_packet() && self.credit.is_some_and(|credit| credit.left <= 0)
    }

    /// The packet of this number, which is in flight, is to be sent again.
    fn queue_again(&mut self, psn: u32, cfg: &Config) -> u64 {
        let sent = &mut self.sent[(psn - self.first) as usize];
        sent.state = State::Waits;
        let bytes = cfg.wire(sent.len);
        self.in_flight -= bytes as i64;
        self.waiting += bytes;
        self.again.insert(psn);
        bytes
    }

    /// The next packet, if one may leave. Its target is shared by so many senders of its NIC.
    pub fn next(&mut self, now: Time, senders: u32, cfg: &[Config]) -> Option<Piece> {
        let cfg = self.config(cfg);
        if !self.has_packet() {
            return None;
        }
        let wire = self.next_wire(cfg);
        if !self.may_send(wire, cfg) {
            return None;
        }
        let value = self.entropy.next(now);
        let again = self.again.pop_first();
        let (psn, len) = match again {
            Some(psn) => {
                let sent = &mut self.sent[(psn - self.first) as usize];
                (sent.state, sent.at, sent.value) = (State::InFlight, now, value);
                self.retransmitted += 1;
                self.waiting -= wire;
                (psn, sent.len)
            }
            None => {
                let len = (self.written - self.cut).min(u64::from(cfg.mss)) as u16;
                self.cut += u64::from(len);
                let state = State::InFlight;
                self.sent.push_back(Sent { state, at: now, len, value, is_repaired: false });
                (self.first + self.sent.len() as u32 - 1, len)
            }
        };
        self.in_flight += wire as i64;
        self.departures.push_back((now, psn));
        if let Some(credit) = &mut self.credit {
            credit.left -= wire as i64;
        }
        let is_last = self.again.is_empty() && self.cut == self.written;
        let full = cfg.wire(cfg.mss as u16) as i64;
        let is_out = self.window(cfg) < self.in_flight.saturating_add(full)
            || self.credit.is_some_and(|credit| credit.left <= 0);
        let target = self.target(senders, cfg);
        if let Some(credit) = &mut self.credit {
            (credit.asked_at, credit.has_news) = (now, false);
        }
        self.arm(cfg);
        self.await_probe(now, cfg, false);
        let is_again = again.is_some();
        Some(Piece { psn, len, value, target, is_again, asks: is_last || is_again || is_out })
    }

    /// Up to where credit is wanted, in units, which a packet that leaves now carries.
    fn target(&self, senders: u32, cfg: &Config) -> u32 {
        let Some(credit) = &self.credit else { return 0 };
        let packets = (self.written - self.cut).div_ceil(u64::from(cfg.mss));
        let backlog = self.written - self.cut + packets * u64::from(cfg.header);
        let most = match cfg.control.has_window() {
            true => (self.nscc.window() + cfg.terms.mtu).min(cfg.terms.largest),
            false => cfg.terms.largest,
        };
        let mut wants = (backlog + self.waiting).min(most) as i64 - credit.left;
        if credit.is_speculative && backlog > 0 {
            wants = wants.max(cfg.terms.mtu as i64);
        }
        let given = i64::from(credit.given) * CREDIT as i64;
        let target = given + wants / i64::from(senders.max(1));
        (target.max(0) as u64).div_ceil(CREDIT) as u32
    }

    fn end_speculation(&mut self) {
        if let Some(credit) = &mut self.credit
            && std::mem::take(&mut credit.is_speculative)
        {
            credit.left = credit.left.min(0);
        }
    }

    pub fn on_pull(&mut self, given: u32, cfg: &[Config]) {
        let cfg = self.config(cfg);
        self.end_speculation();
        if let Some(credit) = self.credit.as_mut().filter(|credit| given > credit.given) {
            let left = credit.left + i64::from(given - credit.given) * CREDIT as i64;
            (credit.left, credit.given) = (left.min(cfg.terms.largest as i64), given);
            credit.requests = 0;
        }
        self.arm(cfg);
    }

    /// Takes a packet as acknowledged.
    fn acknowledge(&mut self, psn: u32, cfg: &Config) {
        let Some(at) = psn.checked_sub(self.first) else { return };
        let Some(sent) = self.sent.get_mut(at as usize) else { return };
        if sent.state == State::Waits {
            // The bytes reported count it: it leaves the flight by them.
            let bytes = cfg.wire(sent.len);
            self.in_flight += bytes as i64;
            self.waiting -= bytes;
            self.again.remove(&psn);
        }
        sent.state = State::Acked;
    }

    /// Takes the numbers off that are acknowledged with all before them.
    fn settle(&mut self) {
        while let Some(sent) = self.sent.front().filter(|sent| sent.state == State::Acked) {
            self.acked += u64::from(sent.len);
            self.sent.pop_front();
            self.first += 1;
        }
        if self.recovery.is_some_and(|end| self.first >= end) {
            self.recovery = None;
            self.sent.iter_mut().for_each(|sent| sent.is_repaired = false);
        }
    }

    /// An ACK: the next number that is expected, the rest, whether what caused it was marked, and
    /// how long that took.
    pub fn on_selective(
        &mut self,
        now: Time,
        next: u32,
        selective: &Selective,
        is_marked: bool,
        rtt: Time,
        cfg: &[Config],
    ) {
        let cfg = self.config(cfg);
        self.end_speculation();
        self.rtt = rtt;
        for psn in self.first..next.min(self.first + self.sent.len() as u32) {
            self.acknowledge(psn, cfg);
        }
        let mut bits = selective.bitmap;
        while bits != 0 {
            self.acknowledge(selective.base.saturating_add(bits.trailing_zeros()), cfg);
            bits &= bits - 1;
        }
        let newly = selective.bytes.saturating_sub(self.reported);
        self.reported = self.reported.max(selective.bytes);
        self.in_flight -= newly as i64;
        let fate = if is_marked { Fate::Marked } else { Fate::Good };
        self.learn(now, selective.value, fate, cfg);
        if cfg.control.has_window() {
            let in_flight = self.in_flight.max(0) as u64;
            let ack = NsccAck { now, bytes: newly, rtt: Some(rtt), is_marked, in_flight };
            self.nscc.on_ack(&ack, &cfg.terms);
        }
        self.settle();
        if cfg.sleek {
            self.look_for_losses(selective.ahead, cfg);
        }
        self.arm(cfg);
        self.await_probe(now, cfg, true);
    }

    fn learn(&mut self, now: Time, value: u16, fate: Fate, cfg: &Config) {
        self.entropy.learn(now, value, fate, cfg.trims);
    }

    /// A NACK of a packet that was trimmed; on its last link, or before.
    pub fn on_nack(&mut self, now: Time, nack: &Nack, cfg: &[Config]) {
        let Nack { psn, value, is_marked, is_last_hop, rtt } = *nack;
        let cfg = self.config(cfg);
        self.end_speculation();
        let fate = match (is_last_hop, is_marked) {
            (true, false) => Fate::Good,
            (true, true) => Fate::Marked,
            (false, _) => Fate::Trimmed,
        };
        self.learn(now, value, fate, cfg);
        let at = psn.wrapping_sub(self.first) as usize;
        if self.sent.get(at).is_none_or(|sent| sent.state != State::InFlight) {
            return;
        }
        let bytes = self.queue_again(psn, cfg);
        if cfg.control.has_window() {
            let in_flight = self.in_flight.max(0) as u64;
            let ack = NsccAck { now, bytes, rtt: Some(rtt), is_marked, in_flight };
            let counts = !(cfg.control.has_credit() && is_last_hop);
            self.nscc.on_nack(&ack, counts, &cfg.terms);
        }
        self.arm(cfg);
    }

    /// SLEEK: begins a recovery if so many packets came beyond the next one expected.
    fn look_for_losses(&mut self, ahead: u32, cfg: &Config) {
        let window = self.nscc.window();
        let most = (window + window / 2).min(self.nscc.largest(&cfg.terms));
        let enough = most.max(5 * u64::from(cfg.mss)) / u64::from(cfg.mss);
        if u64::from(ahead) >= enough {
            self.begin_recovery();
        }
        self.repair(cfg);
    }

    fn begin_recovery(&mut self) {
        if self.recovery.is_none() && !self.sent.is_empty() {
            self.recovery = Some(self.first + self.sent.len() as u32);
        }
    }

    /// The packets that a recovery sends again, each once and a window's packets ahead.
    fn repair(&mut self, cfg: &Config) {
        let Some(end) = self.recovery else { return };
        let ahead = (self.nscc.window() / u64::from(cfg.mss)).max(1) as u32;
        let upto = end.min(self.first.saturating_add(ahead));
        for psn in self.first..upto {
            let sent = &mut self.sent[(psn - self.first) as usize];
            if sent.state == State::InFlight && !sent.is_repaired {
                sent.is_repaired = true;
                self.queue_again(psn, cfg);
            }
        }
    }

    /// The next probe is due a while after an ACK, or after the last one.
    fn await_probe(&mut self, now: Time, cfg: &Config, is_ack: bool) {
        if !cfg.sleek {
            return;
        }
        if self.sent.is_empty() {
            self.probe_at = Time::MAX;
        } else if is_ack || self.probe_at == Time::MAX {
            let base = self.nscc.base();
            let has_more = self.cut < self.written;
            let wait = if has_more { base * 3 } else { base + cfg.terms.target };
            self.probe_at = now + wait;
        }
    }

    /// The answer to a probe: if it met no queue, what was sent before should have come.
    pub fn on_probe_answer(&mut self, delay: Time, cfg: &[Config]) {
        let cfg = self.config(cfg);
        if cfg.sleek && delay < cfg.terms.target {
            self.begin_recovery();
            self.repair(cfg);
        }
    }

    /// A probe that is to leave now, once. Its target is shared by so many senders of its NIC.
    pub fn takes_probe(&mut self, now: Time, senders: u32, cfg: &[Config]) -> Option<Probe> {
        let cfg = self.config(cfg);
        let (probes, timed_out) =
            (std::mem::take(&mut self.probes), std::mem::take(&mut self.requests));
        let has_news = self.credit.is_some_and(|credit| credit.has_news);
        let requests = self.is_starved() && (timed_out || has_news && self.departures.is_empty());
        if !probes && !requests {
            return None;
        }
        let target = self.target(senders, cfg);
        // SLEEK's probes ask for no credit, and must not put off the request that does.
        if let Some(credit) = self.credit.as_mut().filter(|_| requests) {
            (credit.asked_at, credit.has_news) = (now, false);
            credit.requests += 1;
        }
        self.arm(cfg);
        let last = self.first + self.sent.len() as u32;
        Some(Probe { psn: last.saturating_sub(1), target, value: self.entropy.next(now), requests })
    }

    /// The delay of a round trip beyond the shortest.
    pub fn delay(&self, rtt: Time) -> Time {
        rtt.saturating_sub(self.nscc.base())
    }

    /// The oldest packet in flight has the deadline, or if there is none the next request to send.
    fn arm(&mut self, cfg: &Config) {
        while let Some(&(at, psn)) = self.departures.front() {
            let sent = psn.checked_sub(self.first).and_then(|at| self.sent.get(at as usize));
            if sent.is_some_and(|it| it.state == State::InFlight && it.at == at) {
                break;
            }
            self.departures.pop_front();
        }
        let oldest = self.departures.front().map(|(at, _)| at.saturating_add(cfg.rto));
        let starved = self.credit.filter(|_| self.is_starved());
        let asks_again = || starved.map(|credit| credit.asks_again_at(cfg));
        self.deadline = oldest.or_else(asks_again).unwrap_or(Time::MAX);
    }
}

impl Endpoint for Sender {
    type Config = [Config];

    fn write(&mut self, _: Time, bytes: u64) {
        self.written += bytes;
        if let Some(credit) = self.credit.as_mut().filter(|credit| credit.left <= 0) {
            credit.has_news = true;
        }
    }

    #[inline(never)]
    fn poll_send(&mut self, now: Time, _: u32, cfg: &[Config]) -> Option<Outgoing> {
        let piece = self.next(now, self.senders, cfg)?;
        let segment = Outgoing::new(0, piece.len.into(), Ecn::Ect);
        Some(Outgoing { retransmission: piece.is_again, form: Form::Uet(piece), ..segment })
    }

    fn would_send(&self, cfg: &[Config]) -> bool {
        let cfg = self.config(cfg);
        self.has_packet() && self.may_send(self.next_wire(cfg), cfg)
    }

    fn beside(&mut self, now: Time, slot: u32, cfg: &[Config]) -> Option<Beside> {
        let Probe { psn, target, value, requests } = self.takes_probe(now, self.senders, cfg)?;
        let body = Body::UetProbe { psn, target, slot, value };
        let flags = if requests { flags::ASKS } else { 0 };
        Some(Beside { value: Some(value), flags, ..Beside::new(now, body) })
    }

    fn shares_nic(&mut self, senders: u32) {
        self.senders = senders;
    }

    fn on_packet(&mut self, now: Time, incoming: &Incoming, cfg: &[Config]) -> Option<Body> {
        let packet = incoming.packet;
        let rtt = now.saturating_sub(packet.stamp);
        let is_marked = packet.has(flags::ECE);
        match packet.body {
            Body::UetAck { next, .. } => {
                let selective = incoming.packets.side::<Selective>(packet)?;
                let delay = self.delay(rtt);
                self.on_selective(now, next, selective, is_marked, rtt, cfg);
                if packet.has(flags::ASKS) {
                    self.on_probe_answer(delay, cfg);
                }
            }
            Body::UetNack { psn, value, .. } => {
                let is_last_hop = packet.has(flags::LAST_HOP);
                self.on_nack(now, &Nack { psn, value, is_marked, is_last_hop, rtt }, cfg);
            }
            Body::UetPull { credit, .. } => self.on_pull(credit, cfg),
            _ => {}
        }
        None
    }

    fn deadline(&self) -> Time {
        self.deadline.min(self.probe_at)
    }

    fn on_timer(&mut self, now: Time, cfg: &[Config]) {
        let cfg = self.config(cfg);
        if now >= self.probe_at {
            self.probes = !self.sent.is_empty();
            self.probe_at = match self.probes {
                true => now + self.nscc.base() * 5,
                false => Time::MAX,
            };
        }
        if now < self.deadline {
            return;
        }
        let timeouts = self.timeouts;
        while let Some(&(at, psn)) = self.departures.front().filter(|(at, _)| *at + cfg.rto <= now)
        {
            self.departures.pop_front();
            let index = psn.wrapping_sub(self.first) as usize;
            let Some(sent) = self.sent.get(index) else { continue };
            if sent.state != State::InFlight || sent.at != at {
                continue;
            }
            let value = sent.value;
            let bytes = self.queue_again(psn, cfg);
            self.timeouts += 1;
            self.learn(now, value, Fate::Lost, cfg);
            if cfg.control.has_window() {
                self.nscc.on_timeout(bytes, &cfg.terms);
            }
        }
        let timed_out = self.timeouts > timeouts;
        if let Some(credit) = self.credit.filter(|_| self.is_starved()) {
            let is_due = self.departures.is_empty() && now >= credit.asks_again_at(cfg);
            self.timeouts += u32::from(is_due && !timed_out);
            let is_apart = now >= credit.asked_at.saturating_add(cfg.terms.base);
            self.requests = is_due || timed_out && is_apart;
        }
        self.arm(cfg);
    }

    fn thaw(&mut self, _: Time, held: Time) {
        for sent in &mut self.sent {
            sent.at = sent.at.saturating_add(held);
        }
        self.departures.iter_mut().for_each(|(at, _)| *at = at.saturating_add(held));
        self.deadline = self.deadline.saturating_add(held);
        self.probe_at = self.probe_at.saturating_add(held);
        if let Some(credit) = &mut self.credit {
            credit.asked_at = credit.asked_at.saturating_add(held);
        }
    }

    fn acked(&self) -> u64 {
        self.acked
    }

    fn written(&self) -> u64 {
        self.written
    }

    /// Payload sent of all that was written.
    fn sent(&self) -> u64 {
        self.cut
    }

    fn srtt(&self) -> Time {
        self.rtt
    }

    fn counters(&self) -> Counters {
        Counters { retransmitted: self.retransmitted, timeouts: self.timeouts }
    }

    fn standing(&self, _: &[Config]) -> Standing {
        let repairs = self.recovery.is_some() || !self.again.is_empty();
        Standing {
            state: if repairs { "recovery" } else { "open" },
            cwnd: self.nscc.window(),
            ssthresh: u64::MAX,
            in_flight: self.in_flight.max(0) as u64,
            law: Vec::new(),
        }
    }
}

impl Limited for Sender {}

impl Marked for Sender {}
