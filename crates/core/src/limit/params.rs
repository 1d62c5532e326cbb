//! A limit as a user writes it, and the integers that it becomes.

use super::queue::Form;
use super::{Length, POINT, Settings, flags};
use crate::units::{Bytes, Rate, Time};

crate::choice! {
    /// How senders are notified that a queue is behind.
    pub enum Reaction {
        /// CE for all; CWR with a probability that rises linearly from the mark to the drop
        /// threshold. The published one.
        Linear = "linear",
        /// CE and CWR for all beyond the mark threshold.
        Step = "step",
        /// As linear, and flows with round trips longer than `reference-rtt` are notified less
        /// often in that proportion.
        RttAware = "rtt-aware",
    }
}

crate::choice! {
    /// Which packets a limit sees.
    pub enum Direction {
        /// Those that leave.
        Egress = "egress",
        /// Those that arrive.
        Ingress = "ingress",
        /// Both, each with a virtual queue of its own.
        Both = "both",
    }
}

crate::choice! {
    /// The actions of a limit on arriving packets.
    pub enum IngressMode {
        /// Marks, and drops what is too far behind.
        Enforce = "enforce",
        /// Only marks, so that a burst is taken in by the switches' buffers.
        MarkOnly = "mark-only",
    }
}

/// The lowest and the highest rate that the integers of a virtual queue hold. The error of the rate
/// is below 1 % from 48 kb/s on, and 5 % at the lowest.
pub const RATES: std::ops::RangeInclusive<u64> = 8_000..=1_000_000_000_000;

/// A packet of the slides, which count thresholds in packets.
const PACKET: u64 = 1500;

crate::params! {
    /// The keys of a bandwidth limit: its rate and the thresholds of its virtual queue.
    pub struct LimitParams {
        /// The rate that the traffic is held to.
        pub rate: Rate = Rate(1_000_000_000),
        /// Bytes that may be saved up while idle and sent at once. Off: 150KB (100 packets; the
        /// published program), and less at low rates: what 2 ms carry, at least 15KB.
        pub burst: Option<Bytes> = None,
        /// How far behind its rate the traffic may be before senders are notified. Off: 180KB (120
        /// packets; the slides), and less at low rates: what 5 ms carry, at least 15KB.
        pub mark: Option<Bytes> = None,
        /// How far behind it may be before packets are dropped. Off: 900KB (600 packets; the
        /// slides), and less at low rates: what 20 ms carry, at least 108KB, so that no single
        /// super-segment crosses from mark to drop.
        pub drop: Option<Bytes> = None,
        /// The last part of the way to `drop`, kept for packets of at most 120 bytes. Source: 15
        /// packets, the published program.
        pub reserve: Bytes = Bytes(15 * 1500),
        /// How the virtual queue counts: credit (bytes; the slides), lock-free, or edt (earliest
        /// departure times, for a pacing qdisc).
        pub form: Form = Form::Credit,
        /// How senders are notified: linear (the slides), step, or rtt-aware.
        pub reaction: Reaction = Reaction::Linear,
        /// rtt-aware: flows with longer round trips are notified less often.
        pub reference_rtt: Time = Time::from_us(100),
        /// The length that a packet is charged: wire (each packet that a super-segment is cut into,
        /// with its headers and framing) or ip (the super-segment's IP length, as the published
        /// program does).
        pub length: Length = Length::Wire,
        /// Bytes below IP that each packet is charged with `length = "wire"`. 14: an Ethernet
        /// header; 38 with CRC, preamble and gap.
        pub framing: Bytes = Bytes(14),
        /// Whether senders without ECN are asked to reduce their windows (the published no_cn turns
        /// it off).
        pub cwr: bool = true,
        /// A flow with nothing else in flight is let through up to this many times the drop
        /// threshold; 0: never. Source: the published program has it without a bound in one
        /// variant; unbounded it breaks the limit. At low rates less: with the burst no more than
        /// what 30 ms carry (3 % of a second), and no less than `drop`.
        pub bypass: f64 = 2.0,
        /// Never drop, only notify senders.
        pub mark_only: bool = false,
        /// Let everything through unmarked, and count what would have happened.
        pub observe: bool = false,
    }
}

/// A threshold where none is given: the published one, and at low rates what some milliseconds
/// carry.
#[derive(Clone, Copy)]
struct Threshold {
    published: u64,
    ms: u64,
    least: u64,
}

const BURST: Threshold = Threshold { published: 100 * PACKET, ms: 2, least: 10 * PACKET };
const MARK: Threshold = Threshold { published: 120 * PACKET, ms: 5, least: 10 * PACKET };
const DROP: Threshold = Threshold { published: 600 * PACKET, ms: 20, least: 72 * PACKET };

/// The bytes that Linux lets one socket have in qdiscs (`net.core.wmem_default`), and a quarter
/// more.
const SOCKET_BUFFER: u64 = 266_240;

impl Threshold {
    fn at(self, bps: u64) -> u64 {
        self.published.min((bps / 8 * self.ms / 1000).max(self.least))
    }
}

impl LimitParams {
    /// Whether its rate is so low that a threshold that is not given is ours, and not the published
    /// one.
    pub fn has_own_thresholds(&self) -> bool {
        [(self.burst, BURST), (self.mark, MARK), (self.drop, DROP)]
            .into_iter()
            .any(|(given, own)| given.is_none() && own.at(self.rate.bps()) < own.published)
    }

    /// As it is where connections share the rate. A pace follows the queue some milliseconds
    /// late, and nothing waits in it: so defaults are times at all rates, 1 ms to save up and 20 ms
    /// until packets are dropped.
    pub fn shared(&self) -> LimitParams {
        let carries = |ms: u64| self.rate.bps() / 8 * ms / 1000;
        let at_least = |given: Option<Bytes>, own: Threshold, ms: u64| {
            Some(given.unwrap_or(Bytes(own.at(self.rate.bps()).max(carries(ms)))))
        };
        LimitParams {
            burst: at_least(self.burst, BURST, 1),
            drop: at_least(self.drop, DROP, DROP.ms),
            ..self.clone()
        }
    }

    /// As it is for arriving packets whose connections lose one at a time
    /// ([`space`](super::space)) and pause ([`pause`](super::pause)). A pause is two ticks of the
    /// receiver's clock at least, and a sender that has lost the last of its packets waits some
    /// 10 ms; what the queue is behind by must outlast both. So what is not given are times at all
    /// rates, as with [`shared`](LimitParams::shared): 1 ms to save up, 5 ms until senders are
    /// notified, 20 ms until packets are lost, and at `bypass` of 2, 30 ms until all are. At the
    /// lowest rates a few packets are more than that, and `drop` is half a second at most.
    pub fn arriving(&self) -> LimitParams {
        let carries = |ms: u64| self.rate.bps() / 8 * ms / 1000;
        let time = |ms: u64, least: u64| carries(ms).max(least);
        let least = DROP.least.min(carries(500)).max(2 * self.reserve.get());
        let mark = self.mark.map_or(0, Bytes::get);
        let drop = self.drop.unwrap_or(Bytes(time(DROP.ms, least).max(mark.saturating_mul(2))));
        LimitParams {
            burst: Some(self.burst.unwrap_or(Bytes(time(1, 2 * PACKET)))),
            mark: Some(self.mark.unwrap_or(Bytes(time(5, 2 * PACKET).min(drop.get() / 2)))),
            drop: Some(drop),
            bypass: 1.5 * self.bypass,
            ..self.clone()
        }
    }

    /// The part of a second's bytes that may pass beyond the rate in any one second, by its
    /// thresholds: what was saved up, and how far behind a queue lets packets through.
    pub fn excess(&self) -> f64 {
        let settings = LimitParams { form: Form::Credit, ..self.clone() }.settings();
        let most = settings.burst + settings.bypass.max(settings.drop);
        most as f64 * 8.0 / self.rate.bps().max(1) as f64
    }

    /// These parameters for a limit whose packets a qdisc (fq) holds until their departure times.
    /// Packets that wait are not lost, so `drop` is a horizon: 20 ms unless it is given, and at
    /// least 266,240 bytes, so that a sender's socket is full before its datagrams are dropped.
    pub fn departing(&self) -> LimitParams {
        let horizon = (self.rate.bps() / 8 * DROP.ms / 1000).max(SOCKET_BUFFER);
        LimitParams {
            drop: Some(self.drop.unwrap_or(Bytes(horizon))),
            form: Form::Edt,
            ..self.clone()
        }
    }

    /// Its integers, for a rate in [`RATES`]; others count as the nearest that is.
    pub fn settings(&self) -> Settings {
        let bps = self.rate.bps().clamp(*RATES.start(), *RATES.end());
        let carries = |ms: u64| bps / 8 * ms / 1000;
        let threshold =
            |given: Option<Bytes>, own: Threshold| given.map_or(own.at(bps), Bytes::get);
        let burst = threshold(self.burst, BURST);
        let mark = threshold(self.mark, MARK);
        let drop = threshold(self.drop, DROP).max(1);
        let drop_large = drop.saturating_sub(self.reserve.get()).max(1);
        let bypass = (self.bypass.clamp(0.0, super::FLOOR as f64) * drop as f64) as u64;
        // Packets let through beyond the drop threshold must not break the limit over a second; 0
        // stays 0.
        let bypass = bypass.min(carries(30).saturating_sub(burst).max(drop));
        let rate = ((bps as u128) << POINT) / 8_000_000_000;
        let cost = (8_000_000_000u128 << POINT) / bps as u128;
        let timed = self.form != Form::Credit;
        let amount = |bytes: u64| {
            let amount = if timed { (bytes as u128 * cost) >> POINT } else { bytes as u128 };
            amount.min(1 << 39) as i64
        };
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        Settings {
            rate: rate as u64,
            cost: cost as u64,
            burst: amount(burst),
            mark: amount(mark),
            drop: amount(drop),
            drop_large: amount(drop_large),
            bypass: amount(bypass),
            reference_rtt: (self.reference_rtt.as_ps() / 1_000_000).min(u32::MAX as u64) as u32,
            form: self.form as u32,
            reaction: self.reaction as u32,
            flags: flag(!self.cwr, flags::NO_CWR)
                | flag(self.mark_only, flags::MARK_ONLY)
                | flag(self.observe, flags::OBSERVE),
        }
    }
}
