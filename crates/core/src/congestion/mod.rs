//! Control laws: *how much may be in flight, how fast may it leave, and when may the next?*
//!
//! A law is one file: its parameters, its declaration, and one connection's state behind
//! [`Law`]. It is registered by one line below. A family of endpoints asks [`Control`], the closed
//! enum of all laws; no other file names one.
//!
//! Losses and retransmissions are the family's affair. It calls [`Control::on_ack`] once an
//! acknowledgement and [`Control::cut`] at most once a window of data (RFC 3168 §5, RFC 8257 §3.4).
//! Slow start is the same for all laws that have one: RFC 5681 §3.1 with the byte counting of RFC
//! 3465 §2.2.
//!
//! The laws of queue pairs (RDMA) steer a rate. They begin at the rate of their host's link, and
//! beside acknowledgements they may take notifications, switches' telemetry and a timer of their
//! own. Their state is behind a pointer, so that TCP's connections stay small.
//!
//! Homa and Ultra Ethernet have no law, but a line here: their parameters are a transport's, and
//! what may be in flight is decided by their own endpoints.
//!
//! Invariant: `cwnd` is at least one segment, and `ssthresh` at least two where it means anything.

mod cubic;
mod dcqcn;
mod dctcp;
mod homa;
mod hpcc;
mod hystart;
mod links;
mod mptcp;
mod newreno;
mod nscc;
mod powertcp;
mod rdma_dctcp;
mod swift;
mod tas;
mod terms;
#[cfg(test)]
mod tests;
mod timely;
mod uet;

pub use dctcp::{DctcpAlphaUpdate, DctcpEcho, DctcpReduce};
pub use homa::Cutoffs;
pub use mptcp::Coupling;
pub use nscc::{Nscc, NsccAck, NsccTerms};
pub use terms::{
    Acked, Cause, Cut, Demands, Echo, Family, Growth, Metric, Path, Quantity, Setting, Window,
};
pub use uet::UetControl;

use crate::packet::Telemetry;
use crate::registry::PathProperty;
use crate::switch::site::{Auto, scaled};
use crate::{Rate, Time};
use std::fmt::Debug;

/// Properties of the path that a loss-based law needs.
const LOSS_BASED: &[PathProperty] = &[
    PathProperty::FifoPerFlow,
    PathProperty::TimersRun,
    PathProperty::LossIsSignal,
    PathProperty::PhasesMix,
];

/// Terms that all connections of a law share: their packets, and the law's constants.
#[derive(Clone, Debug, PartialEq)]
pub struct Shared<C> {
    /// Largest payload of a packet, in bytes.
    pub mss: u32,
    /// Whether the connections declare ECN.
    pub ecn: bool,
    /// Constants that follow from the law's parameters.
    pub law: C,
}

/// The answers of a control law. The value is one connection's state. A law implements what differs
/// from the defaults: one that steers a window has `grow` and `cut`; one that steers a rate has
/// `rate`; one with a schedule of its own, `next_departure`.
#[warn(missing_docs)]
pub trait Law: Clone + Debug {
    /// Parameters that a scenario sets.
    type Params: Default;
    /// Constants that follow from them, worked out once.
    type Constants: Clone + Debug + PartialEq;

    /// Whether RFC 5681's slow start, its floors and its window after a timeout are the law's.
    const SLOW_STARTS: bool = true;

    /// Its demands on the connection's two ends.
    fn demands(_: &Self::Params) -> Demands {
        Demands::default()
    }
    /// A key whose value contradicts another's, and why.
    fn check(_: &Self::Params) -> Option<(&'static str, String)> {
        None
    }
    /// The parameters, resolved: fractions lie in [0, 1].
    fn constants(params: &Self::Params) -> Self::Constants;

    /// The window of a new connection, of which the family would like this one, in bytes.
    fn initial_window(wanted: u64, _: &Shared<Self::Constants>) -> u64 {
        wanted
    }
    /// A new connection, with this window in bytes.
    fn new(window: u64, shared: &Shared<Self::Constants>) -> Self;

    /// Takes note of an acknowledgement. Returns whether the window should be cut for it.
    #[inline]
    fn on_ack(&mut self, ack: Acked, shared: &Shared<Self::Constants>) -> bool {
        ack.ece && shared.ecn
    }
    /// Sees all subflows of its connection, of which it is number `own`.
    fn couple(&mut self, _own: usize, _: &[Path], _: &Shared<Self::Constants>) {}
    /// How many bytes its path has carried without a loss, of a law that counts them.
    fn quality(&self) -> u64 {
        0
    }
    /// Sees the window in slow start, before an acknowledgement opens it; may end slow start.
    #[inline]
    fn slow_start(&mut self, _: &mut Window, _: &Shared<Self::Constants>) {}
    /// Opens the window, beyond slow start.
    #[inline]
    fn grow(&mut self, _: &mut Window, _: &Growth, _: &Shared<Self::Constants>) {}
    /// Closes the window.
    fn cut(&mut self, _: &mut Window, _: &Cut, _: &Shared<Self::Constants>) {}
    /// The family has brought the window down to at most `bytes`, after idle time or lost SYNs.
    fn narrow(&mut self, _bytes: u64, _: &Shared<Self::Constants>) {}
    /// Nothing was in flight for this long.
    fn idle(&mut self, _span: Time) {}

    /// The window in bytes, of a law that keeps it itself.
    fn window(&self, _: &Shared<Self::Constants>) -> Option<u64> {
        None
    }
    /// The rate at which packets may leave; `None`: any.
    fn rate(&self, _: &Shared<Self::Constants>) -> Option<Rate> {
        None
    }
    /// When the next packet may leave, where the last one, a full one, left at `last`.
    fn next_departure(&self, last: Time, shared: &Shared<Self::Constants>) -> Time {
        match self.rate(shared) {
            Some(rate) => last.saturating_add(rate.transmission_time(u64::from(shared.mss))),
            None => last,
        }
    }

    /// Its queue pair begins.
    fn begin(&mut self, _: &Setting, _: &Shared<Self::Constants>) {}
    /// A notification of congestion (CNP).
    fn on_notification(&mut self, _now: Time, _: &Shared<Self::Constants>) {}
    /// The switches' records on data that is answered; after `on_ack` of the same answer.
    fn on_telemetry(&mut self, _: &Acked, _: &Telemetry, _: &Shared<Self::Constants>) {}
    /// A packet leaves, of so many bytes: a queue pair's on the wire, a TCP's of payload, where it
    /// spaces its packets.
    #[inline]
    fn on_sent(&mut self, _now: Time, _bytes: u32, _: &Shared<Self::Constants>) {}
    /// When `on_timer` has something to do; `Time::MAX`: never.
    fn deadline(&self) -> Time {
        Time::MAX
    }
    /// Time has come to `now`; does nothing before the deadline.
    fn on_timer(&mut self, _now: Time, _: &Shared<Self::Constants>) {}

    /// Quantities that it steers by, for those who sample connections: the same in the same order,
    /// whatever its state.
    fn metrics(&self, _: &Shared<Self::Constants>) -> Vec<Metric> {
        Vec::new()
    }
}

/// Makes of one line a law: the parameters that a scenario chooses, the state of a connection
/// ([`Control`]), and the constants of a run ([`Terms`]). A module names its law's constants.
macro_rules! laws {
    ($($kind:literal => $module:ident :: $Law:ident { $Params:ident }),+ $(,)?) => {
        $(
            use $module::$Law;
            pub use $module::$Params;
        )+

        crate::registry! {
            /// Which transport, with its parameters.
            place: "transport", question: "how much may be in flight?", default: Dctcp,
            params: TransportKind;
            $($kind => $Law { $Params; $module::ABOUT }),+
        }

        impl TransportKind {
            /// Its demands on a connection's two ends.
            pub fn demands(&self) -> Demands {
                match self { $(TransportKind::$Law(params) => $Law::demands(params)),+ }
            }
            /// A key whose value contradicts another's, and why.
            pub fn check(&self) -> Option<(&'static str, String)> {
                match self { $(TransportKind::$Law(params) => $Law::check(params)),+ }
            }
        }

        /// Terms that the connections of one transport share. A law looks up its own constants
        /// without asking which one is followed; those of the others are there and never read.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Terms {
            kind: TransportKind,
            $($module: Shared<<$Law as Law>::Constants>),+
        }

        impl Terms {
            /// Of a transport whose packets carry at most `mss` bytes.
            pub fn new(kind: &TransportKind, mss: u32) -> Terms {
                let ecn = kind.declares_ecn();
                $(let $module = match kind {
                    TransportKind::$Law(params) => $Law::constants(params),
                    _ => $Law::constants(&Default::default()),
                };)+
                Terms { kind: kind.clone(), $($module: Shared { mss, ecn, law: $module }),+ }
            }
            /// The window of a new connection, of which the family would like this one.
            pub fn initial_window(&self, wanted: u64) -> u64 {
                match &self.kind {
                    $(TransportKind::$Law(_) => $Law::initial_window(wanted, &self.$module)),+
                }
            }
        }

        /// One connection's control law: a closed enum, so that dispatch is a jump and not a
        /// pointer.
        #[derive(Clone, Debug)]
        pub enum Control {
            $(#[doc = concat!("The state of `kind = \"", $kind, "\"`.")] $Law($Law)),+
        }

        impl Control {
            /// A new connection, with this window in bytes.
            pub fn new(window: u64, terms: &Terms) -> Control {
                match &terms.kind {
                    $(TransportKind::$Law(_) => Control::$Law($Law::new(window, &terms.$module))),+
                }
            }

            /// Takes note of an acknowledgement. Returns whether the window should be cut for it.
            #[inline]
            pub fn on_ack(&mut self, ack: Acked, terms: &Terms) -> bool {
                match self { $(Control::$Law(law) => law.on_ack(ack, &terms.$module)),+ }
            }

            /// Sees all subflows of its connection, of which it is number `own`.
            pub fn couple(&mut self, own: usize, paths: &[Path], terms: &Terms) {
                match self { $(Control::$Law(law) => law.couple(own, paths, &terms.$module)),+ }
            }

            /// How many bytes its path has carried without a loss, of a law that counts them.
            pub fn quality(&self) -> u64 {
                match self { $(Control::$Law(law) => law.quality()),+ }
            }

            /// Opens the window for newly acknowledged bytes.
            #[inline]
            pub fn grow(&mut self, window: &mut Window, growth: &Growth, terms: &Terms) {
                match self { $(Control::$Law(law) => grow(law, window, growth, &terms.$module)),+ }
            }

            /// Reduces the window after a loss, a mark or a timeout, as `cut` names it.
            #[cold]
            pub fn cut(&mut self, window: &mut Window, cut: &Cut, terms: &Terms) {
                match self { $(Control::$Law(law) => close(law, window, cut, &terms.$module)),+ }
            }

            /// Brings the window down to at most `bytes`: the restart window, or that of a
            /// connection whose SYNs were lost.
            #[cold]
            pub fn narrow(&mut self, window: &mut Window, bytes: u64, terms: &Terms) {
                window.cwnd = window.cwnd.min(bytes);
                match self { $(Control::$Law(law) => law.narrow(bytes, &terms.$module)),+ }
            }

            /// Nothing was in flight for this long.
            #[cold]
            pub fn idle(&mut self, span: Time) {
                match self { $(Control::$Law(law) => law.idle(span)),+ }
            }

            /// The window in bytes, of a law that keeps it itself.
            pub fn window(&self, terms: &Terms) -> Option<u64> {
                match self { $(Control::$Law(law) => law.window(&terms.$module)),+ }
            }

            /// The rate at which packets may leave; `None`: any.
            pub fn rate(&self, terms: &Terms) -> Option<Rate> {
                match self { $(Control::$Law(law) => law.rate(&terms.$module)),+ }
            }

            /// When the next packet may leave, where the last one left at `last`.
            pub fn next_departure(&self, last: Time, terms: &Terms) -> Time {
                match self { $(Control::$Law(law) => law.next_departure(last, &terms.$module)),+ }
            }

            /// Its queue pair begins.
            pub fn begin(&mut self, setting: &Setting, terms: &Terms) {
                match self { $(Control::$Law(law) => law.begin(setting, &terms.$module)),+ }
            }

            /// A notification of congestion (CNP).
            pub fn on_notification(&mut self, now: Time, terms: &Terms) {
                match self { $(Control::$Law(law) => law.on_notification(now, &terms.$module)),+ }
            }

            /// The switches' records on data that is answered.
            pub fn on_telemetry(&mut self, acked: &Acked, telemetry: &Telemetry, terms: &Terms) {
                match self {
                    $(Control::$Law(law) => law.on_telemetry(acked, telemetry, &terms.$module)),+
                }
            }

            /// A packet of so many bytes leaves.
            #[inline]
            pub fn on_sent(&mut self, now: Time, bytes: u32, terms: &Terms) {
                match self { $(Control::$Law(law) => law.on_sent(now, bytes, &terms.$module)),+ }
            }

            /// When [`Control::on_timer`] has something to do; `Time::MAX`: never.
            #[inline]
            pub fn deadline(&self) -> Time {
                match self { $(Control::$Law(law) => law.deadline()),+ }
            }

            /// Time has come to `now`.
            pub fn on_timer(&mut self, now: Time, terms: &Terms) {
                match self { $(Control::$Law(law) => law.on_timer(now, &terms.$module)),+ }
            }

            /// Quantities that it steers by, and their values.
            pub fn metrics(&self, terms: &Terms) -> Vec<Metric> {
                match self { $(Control::$Law(law) => law.metrics(&terms.$module)),+ }
            }
        }
    };
}

laws! {
    "newreno" => newreno::NewReno { NewRenoParams },
    "cubic" => cubic::Cubic { CubicParams },
    "dctcp" => dctcp::Dctcp { DctcpParams },
    "swift" => swift::Swift { SwiftParams },
    "tas" => tas::Tas { TasParams },
    "mptcp" => mptcp::Mptcp { MptcpParams },
    "dcqcn" => dcqcn::Dcqcn { DcqcnParams },
    "hpcc" => hpcc::Hpcc { HpccParams },
    "powertcp" => powertcp::Powertcp { PowertcpParams },
    "timely" => timely::Timely { TimelyParams },
    "rdma-dctcp" => rdma_dctcp::RdmaDctcp { RdmaDctcpParams },
    "homa" => homa::Homa { HomaParams },
    "uet" => uet::Uet { UetParams },
}

const RATE: Quantity =
    Quantity { name: "rate_gbps", meaning: "the rate at which packets may leave, in Gb/s" };

/// A rate as a value of [`RATE`]'s unit.
fn in_gbps(rate: f64) -> f64 {
    rate / 1e9
}

/// A rate to add, in bits a second, at a host whose link has this one: as given, or `amount` for
/// each `per` of it.
fn step(given: Auto<Rate>, amount: Rate, per: Rate, line: Rate) -> f64 {
    match given {
        Auto::Given(rate) => rate.bps() as f64,
        Auto::Auto => scaled(amount.bps(), Some(per), line) as f64,
    }
}

impl TransportKind {
    /// Whether its connections declare ECN, and so learn of congestion from marks where there are
    /// any.
    pub fn declares_ecn(&self) -> bool {
        self.demands().echo != Echo::Off
    }

    /// Quantities that it steers by, beside the window.
    pub fn quantities(&self) -> Vec<Quantity> {
        let terms = Terms::new(self, 1);
        Control::new(1, &terms).metrics(&terms).into_iter().map(|(quantity, _)| quantity).collect()
    }
}

#[inline]
fn grow<L: Law>(law: &mut L, window: &mut Window, growth: &Growth, shared: &Shared<L::Constants>) {
    if L::SLOW_STARTS && window.cwnd < window.ssthresh {
        law.slow_start(window, shared);
    }
    if L::SLOW_STARTS && window.cwnd < window.ssthresh {
        // RFC 3465 §2.2: what was acknowledged, at most L. As in Linux's `tcp_slow_start`, the rest
        // beyond a threshold that bounds it grows the window by the law.
        let most = growth.bytes.min(growth.limit);
        let room = if growth.is_bounded { window.ssthresh - window.cwnd } else { most };
        let rise = most.min(room);
        window.cwnd += rise;
        if most > rise {
            law.grow(window, &Growth { bytes: most - rise, ..*growth }, shared);
        }
    } else {
        law.grow(window, growth, shared);
    }
}

fn close<L: Law>(law: &mut L, window: &mut Window, cut: &Cut, shared: &Shared<L::Constants>) {
    law.cut(window, cut, shared);
    if L::SLOW_STARTS {
        let mss = u64::from(shared.mss);
        window.ssthresh = window.ssthresh.max(2 * mss); // RFC 5681 (4)
        if cut.cause == Cause::Timeout {
            window.cwnd = mss; // the loss window, RFC 5681 §3.1
        }
        window.cwnd = window.cwnd.max(mss);
    }
}
