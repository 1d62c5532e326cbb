//! A queue pair's sending end: when the next packet leaves, what it carries, and what is sent
//! again.
//!
//! **Pace.** A packet leaves no sooner than the one before it takes at the control law's rate, with
//! its headers. A rate that changes counts from the next packet on, or at once (`rate-change`).
//!
//! **Windows.** A packet may leave while less than the window is unacknowledged, so the last one
//! may go beyond it, as in HPCC's released simulator. IRN's bound (BDP-FC) is a second window.
//!
//! **Go-back-N.** A NACK, or a timeout, moves the next packet back to the first byte that is
//! missing.
//!
//! **Selective.** A NACK begins a recovery, which ends when all that was sent by then is
//! acknowledged. In it everything is sent again, once, that lies before something that the receiver
//! holds; then new packets go on. After a timeout it is everything that the receiver is not known
//! to hold (IRN §3.1). A recovery that ends while the receiver still misses something is followed
//! by another.
//!
//! **The timer** starts anew with each packet and with each answer while something is
//! unacknowledged, and never backs off.
//!
//! Invariant: `una ≤ next ≤ top ≤ written`; while something is unacknowledged the timer is set, and
//! while the pace alone keeps a packet the deadline is its departure at the latest.

use super::{Answer, Config, Recovery, Request};
use crate::endpoint::{Counters, Endpoint, Form, Incoming, Limited, Marked, Outgoing, Standing};
use millpond_core::congestion::{Acked, Control, Setting};
use millpond_core::packet::{Body, Kind, Telemetry};
use millpond_core::ranges::Ranges;
use millpond_core::switch::site::Auto;
use millpond_core::{Rate, Time};
use millpond_scenario::rdma::{FlowControl, Resend};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Repair {
    /// An acknowledgement that reaches it ends the recovery.
    until: u64,
    /// All that is not held is sent again, not only what lies before something held.
    all: bool,
}

#[derive(Clone, Debug)]
pub struct Sender {
    /// The first byte not acknowledged.
    una: u64,
    /// The next byte to send: below `top` it was sent before.
    next: u64,
    /// The first byte never sent.
    top: u64,
    written: u64,
    /// Where messages before the last one end, of those that are not acknowledged.
    ends: VecDeque<u64>,
    control: Control,
    setting: Setting,
    /// IRN's bound of what may be unacknowledged.
    limit: u64,
    /// When the last packet left, and its bytes on the wire; `Time::MAX`: none has.
    last: Time,
    last_size: u32,
    /// When the next may leave: at the rate that held then, or where a rate counts at once, that
    /// holds now.
    paced_to: Time,
    /// The law's rate now, if it has one, and the window that follows from it.
    rate: Option<Rate>,
    window: u64,
    /// There is a packet that the windows allow, as of the last look.
    follows: bool,
    /// The pace alone forbids to send it.
    held: bool,
    rto: Time,
    rto_at: Time,
    deadline: Time,
    /// The bytes that the receiver is known to hold beyond `una`.
    holds: Ranges,
    repair: Option<Repair>,
    /// Packets since one asked for an acknowledgement.
    unasked: u32,
    srtt: Time,
    retransmitted: u32,
    timeouts: u32,
    rewinds: u32,
    /// Which of the run's RDMA transports it follows.
    which: u8,
}

impl Sender {
    /// A queue pair that follows RDMA transport `which`, at a host with a link of this rate.
    pub fn new(which: u8, line: Rate, cfg: &[Config]) -> Sender {
        let own = &cfg[usize::from(which)];
        let setting = own.setting(line);
        let mut control = Control::new(setting.window, &own.terms);
        control.begin(&setting, &own.terms);
        let limit = match own.recovery {
            Recovery::Selective { limit: Auto::Auto, .. } => own.in_flight(line),
            Recovery::Selective { limit: Auto::Given(Some(limit)), .. } => limit,
            _ => u64::MAX,
        };
        let mut sender = Sender {
            una: 0,
            next: 0,
            top: 0,
            written: 0,
            ends: VecDeque::new(),
            control,
            setting,
            limit,
            last: Time::MAX,
            last_size: 0,
            paced_to: Time::ZERO,
            rate: None,
            window: 0,
            follows: false,
            held: false,
            rto: Time::ZERO,
            rto_at: Time::MAX,
            deadline: Time::MAX,
            holds: Ranges::default(),
            repair: None,
            unasked: 0,
            srtt: Time::ZERO,
            retransmitted: 0,
            timeouts: 0,
            rewinds: 0,
            which,
        };
        sender.rate = sender.control.rate(&own.terms).or(own.max_rate);
        sender.window = sender.window_at(sender.rate, own);
        sender
    }

    /// Follows the control law, which may have changed its rate: both divisions that a rate costs
    /// are made once, and not whenever somebody asks whether a packet may leave.
    #[inline]
    fn steer(&mut self, cfg: &Config) {
        let rate = self.control.rate(&cfg.terms).or(cfg.max_rate);
        if rate == self.rate {
            return;
        }
        self.rate = rate;
        self.window = self.window_at(rate, cfg);
        if cfg.repaces {
            self.paced_to = self.departure();
        }
    }

    /// Bytes that may be unacknowledged when a packet leaves.
    fn window_at(&self, rate: Option<Rate>, cfg: &Config) -> u64 {
        match cfg.flow_control {
            FlowControl::Law | FlowControl::None => u64::MAX,
            FlowControl::Static => self.setting.window,
            FlowControl::Rate => {
                let line = self.setting.line.bps().max(1);
                let rate = rate.map_or(line, |rate| rate.bps());
                let whole = self.setting.window;
                let window = match whole.checked_mul(rate) {
                    Some(product) => product / line,
                    None => {
                        let window = u128::from(whole) * u128::from(rate) / u128::from(line);
                        u64::try_from(window).unwrap_or(u64::MAX)
                    }
                };
                window.max(1)
            }
        }
    }

    /// When the next packet may leave at the rate that holds now.
    fn departure(&self) -> Time {
        match self.rate {
            Some(rate) if self.last < Time::MAX => {
                self.last.saturating_add(rate.transmission_time(u64::from(self.last_size)))
            }
            _ => Time::ZERO,
        }
    }

    fn timeout(&self, cfg: &Config) -> Time {
        match cfg.recovery {
            Recovery::GoBackN { timeout } => timeout,
            Recovery::Selective { timeouts: (low, high), few, .. } => {
                let is_few = self.top - self.una <= few.saturating_mul(u64::from(cfg.mss));
                if is_few { low } else { high }
            }
        }
    }

    /// Where the message of a byte ends.
    fn message_end(&self, at: u64) -> u64 {
        self.ends.iter().copied().find(|end| *end > at).unwrap_or(self.written)
    }

    /// The next packet that the windows allow, of at most `max_len` bytes: its first byte and
    /// length.
    fn plan(&self, max_len: u32, cfg: &Config) -> Option<(u64, u32)> {
        let (at, end) = match cfg.recovery {
            Recovery::GoBackN { .. } => (self.next, self.written),
            Recovery::Selective { .. } => self.hole().unwrap_or((self.top, self.written)),
        };
        let in_flight = match cfg.recovery {
            Recovery::GoBackN { .. } => at - self.una,
            // A packet that is sent again in a recovery is in flight already, or lost.
            Recovery::Selective { .. } if at < self.top => 0,
            Recovery::Selective { .. } => self.top - self.una,
        };
        if in_flight >= self.window || in_flight >= self.limit {
            return None;
        }
        let end = end.min(self.message_end(at));
        let len = (end - at).min(u64::from(cfg.mss.min(max_len))) as u32;
        (len > 0).then_some((at, len))
    }

    /// In a recovery, the next range to send again.
    fn hole(&self) -> Option<(u64, u64)> {
        let repair = self.repair?;
        let mut at = self.next.max(self.una);
        if let Some((_, end)) = self.holds.around(at) {
            at = end;
        }
        let until =
            if repair.all { repair.until } else { self.holds.end().unwrap_or(0).min(repair.until) };
        let next_held =
            self.holds.iter().find(|held| held.0 > at).map_or(until, |held| held.0.min(until));
        (at < next_held).then_some((at, next_held))
    }

    fn send(&mut self, now: Time, seq: u64, len: u32, cfg: &Config) -> Outgoing {
        let end = seq + u64::from(len);
        let retransmission = seq < self.top;
        self.retransmitted += u32::from(retransmission);
        if retransmission || self.repair.is_none() {
            // In a recovery new packets do not move the place of the next retransmission.
            self.next = end;
        }
        self.top = self.top.max(end);
        (self.last, self.last_size) = (now, len + cfg.header);
        self.control.on_sent(now, self.last_size, &cfg.terms);
        self.steer(cfg);
        self.paced_to = self.departure();
        self.start_timer(now, cfg);
        let follows = self.plan(cfg.mss, cfg).is_some();
        self.follows = follows;
        self.held = follows && self.paced_to > now;
        self.unasked += 1;
        let asks = retransmission
            || !follows
            || self.unasked >= cfg.ack_interval
            || end == self.message_end(seq);
        if asks {
            self.unasked = 0;
        }
        self.outgoing(seq, len, retransmission, asks, cfg)
    }

    fn outgoing(
        &self,
        seq: u64,
        len: u32,
        retransmission: bool,
        acknowledgement: bool,
        cfg: &Config,
    ) -> Outgoing {
        let asks = Request { beyond: cfg.beyond, acknowledgement, telemetry: cfg.telemetry };
        let form = Form::Rdma(asks);
        Outgoing { retransmission, form, ..Outgoing::new(seq, len, cfg.ecn) }
    }

    /// An acknowledgement, a NACK, or a notification of congestion.
    pub fn on_answer(&mut self, now: Time, answer: &Answer, cfg: &[Config]) {
        let cfg = &cfg[usize::from(self.which)];
        if answer.kind == Kind::Cnp {
            self.control.on_notification(now, &cfg.terms);
        } else {
            self.take_ack(now, answer, cfg);
        }
        self.steer(cfg);
        self.arm();
    }

    fn take_ack(&mut self, now: Time, answer: &Answer, cfg: &Config) {
        let Answer { kind, ack, telemetry } = answer;
        let reached = ack.ack.clamp(self.una, self.top);
        let bytes = reached - self.una;
        self.una = reached;
        self.next = self.next.max(reached);
        while self.ends.front().is_some_and(|end| *end <= reached) {
            self.ends.pop_front();
        }
        let delay = now.saturating_sub(ack.stamp);
        self.sample(delay);
        self.repair(*kind == Kind::Nack, answer, cfg);
        self.start_timer(now, cfg);
        if ack.ece {
            self.control.on_notification(now, &cfg.terms);
        }
        let (una, nxt) = (ack.ack, self.top);
        let acked = Acked { now, bytes, ece: ack.ece, una, nxt, delay, hops: ack.hops };
        self.control.on_ack(acked, &cfg.terms);
        if let Some(telemetry) = telemetry {
            self.control.on_telemetry(&acked, telemetry, &cfg.terms);
        }
    }

    fn repair(&mut self, is_nack: bool, answer: &Answer, cfg: &Config) {
        let Recovery::Selective { resend, .. } = cfg.recovery else {
            if is_nack && self.next > self.una {
                self.go_back();
            }
            return;
        };
        self.holds.remove_below(self.una);
        let blocks =
            answer.ack.sack.map_or(&[][..], |sack| &sack.blocks[..usize::from(sack.count)]);
        for &(from, to) in blocks {
            let (from, to) = (from.max(self.una), to.min(self.top));
            if from < to {
                self.holds.insert(from, to);
            }
        }
        self.repair = self.repair.filter(|repair| self.una < repair.until);
        if self.repair.is_none() && !self.holds.is_empty() {
            self.repair = Some(Repair { until: self.top, all: resend == Resend::All });
            self.go_back();
        }
        if self.repair.is_none() {
            self.next = self.top;
        }
    }

    fn go_back(&mut self) {
        self.next = self.una;
        self.rewinds += 1;
    }

    /// Gain 1/8, as RFC 6298's; for those who look on.
    fn sample(&mut self, rtt: Time) {
        self.srtt = match self.srtt {
            Time::ZERO => rtt,
            srtt => Time::from_ps(srtt.as_ps() - srtt.as_ps() / 8 + rtt.as_ps() / 8),
        };
    }

    fn start_timer(&mut self, now: Time, cfg: &Config) {
        self.rto = self.timeout(cfg);
        self.rto_at = now.saturating_add(self.rto);
    }

    fn arm(&mut self) {
        let pace = if self.held { self.paced_to } else { Time::MAX };
        let rto = if self.una < self.top { self.rto_at } else { Time::MAX };
        self.deadline = pace.min(rto).min(self.control.deadline());
    }
}

impl Endpoint for Sender {
    type Config = [Config];

    fn write(&mut self, _now: Time, bytes: u64) {
        if self.una < self.written {
            self.ends.push_back(self.written);
        }
        self.written += bytes;
    }

    fn poll_send(&mut self, now: Time, max_len: u32, cfg: &[Config]) -> Option<Outgoing> {
        let cfg = &cfg[usize::from(self.which)];
        self.held = false;
        let planned = self.plan(max_len, cfg);
        self.follows = planned.is_some();
        let sent = match planned {
            Some(_) if self.paced_to > now => {
                self.held = true;
                None
            }
            Some((seq, len)) => Some(self.send(now, seq, len, cfg)),
            None => None,
        };
        self.arm();
        sent
    }

    /// Whether only its NIC keeps it from sending: the pace has a deadline of its own.
    fn would_send(&self, cfg: &[Config]) -> bool {
        !self.held && self.plan(u32::MAX, &cfg[usize::from(self.which)]).is_some()
    }

    fn urgency(&mut self, now: Time, cfg: &[Config]) -> Option<u64> {
        let cfg = &cfg[usize::from(self.which)];
        self.follows = self.plan(u32::MAX, cfg).is_some();
        self.held = self.follows && self.paced_to > now;
        self.arm();
        self.urgency_still()
    }

    fn urgency_still(&self) -> Option<u64> {
        (self.follows && !self.held).then_some(0)
    }

    fn on_packet(&mut self, now: Time, incoming: &Incoming, cfg: &[Config]) -> Option<Body> {
        let kind = incoming.packet.kind();
        let telemetry = incoming.packets.side::<Telemetry>(incoming.packet);
        self.on_answer(now, &Answer { kind, ack: incoming.ack, telemetry }, cfg);
        None
    }

    fn on_rtt(&mut self, rtt: Time, _: &[Config]) {
        self.sample(rtt);
    }

    fn deadline(&self) -> Time {
        self.deadline
    }

    fn on_timer(&mut self, now: Time, cfg: &[Config]) {
        if now < self.deadline {
            return;
        }
        let cfg = &cfg[usize::from(self.which)];
        if self.control.deadline() <= now {
            self.control.on_timer(now, &cfg.terms);
            self.steer(cfg);
        }
        if self.una < self.top && self.rto_at <= now {
            self.timeouts += 1;
            self.go_back();
            if let Recovery::Selective { .. } = cfg.recovery {
                self.repair = Some(Repair { until: self.top, all: true });
            }
            self.start_timer(now, cfg);
        }
        self.held &= self.paced_to > now;
        self.arm();
    }

    /// Its timer is its NIC's, which does not see that a flow is held.
    fn freezes(&self) -> bool {
        false
    }

    /// Whether no timer lets it send again: its control law's timers run on.
    fn waits(&self) -> bool {
        !self.held && (self.una == self.top || self.rto_at == Time::MAX)
    }

    fn acked(&self) -> u64 {
        self.una
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn sent(&self) -> u64 {
        self.top
    }

    fn srtt(&self) -> Time {
        self.srtt
    }

    fn rto(&self) -> Time {
        self.rto
    }

    fn counters(&self) -> Counters {
        Counters { retransmitted: self.retransmitted, timeouts: self.timeouts }
    }

    /// A queue pair without a window shows what its rate has in flight in the base round trip.
    fn standing(&self, cfg: &[Config]) -> Standing {
        let cfg = &cfg[usize::from(self.which)];
        let metrics = self.control.metrics(&cfg.terms);
        let window = self.window.min(self.limit);
        let rate = || cfg.in_flight(self.rate.unwrap_or(self.setting.line));
        Standing {
            state: if self.repair.is_some() || self.next < self.top { "recovery" } else { "open" },
            cwnd: if window == u64::MAX { rate() } else { window },
            ssthresh: u64::MAX,
            in_flight: self.top - self.una,
            law: metrics
                .into_iter()
                .filter_map(|(quantity, value)| Some((quantity.name, value?)))
                .collect(),
        }
    }
}

impl Limited for Sender {}

impl Marked for Sender {
    fn is_held(&self) -> bool {
        self.held
    }

    fn ends_message(&self, at: u64) -> bool {
        at == self.written || self.ends.contains(&at)
    }

    fn rewinds(&self) -> u32 {
        self.rewinds
    }

    fn forced(&self, seq: u64, len: u32, cfg: &[Config]) -> Option<Outgoing> {
        Some(self.outgoing(seq, len, true, true, &cfg[usize::from(self.which)]))
    }

    fn forced_out(&mut self) {
        self.retransmitted += 1;
    }
}
