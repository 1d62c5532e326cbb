//! A connection's two ends, a folder a family: what may be sent now, what a packet means, when to
//! look again, and what was counted.
//!
//! | folder | what it follows |
//! |---|---|
//! | `tcp` | a byte stream with windows, ACKs and timers; control laws of `core::congestion` |
//! | `mptcp` | RFC 8684: one stream over several TCPs |
//! | `rdma` | queue pairs: messages, a pace, go-back-N or IRN |
//! | `homa` | Homa (SIGCOMM 2018): messages, of which receivers grant what is not sent blindly |
//! | `uet` | Ultra Ethernet: packets that take any path and are taken in any order |
//!
//! The hosts hold [`Sender`] and [`Receiver`], closed enums of the families, and name none. An end
//! has neither clock nor network. The host reports to it what has arrived and when, and asks
//! [`Sender::poll_send`] for segments until there is none: then the window is full, or the time of
//! the next departure has not come. It calls `on_timer` once `deadline` has passed, which is the
//! family's one time for everything: a retransmission, a departure, an acknowledgement held back.
//! Deadlines move by plain stores, so the host keeps at most one timer event an end and looks at
//! the deadline when it fires.
//!
//! A new family is a folder with a `Config`, a `Sender` that is an [`Endpoint`] and a `Receiver`
//! that is a [`Receives`], with what its packets mean to its hosts, and its name in the lists at
//! the head of this file. A question that is new is a function in `ends`, which the others answer
//! by doing nothing.
//!
//! Invariant: while something that was sent is unanswered the sender's deadline is set, so a
//! connection always goes on by itself, whatever the network loses, reorders or repeats.

mod ends;
mod exchange;
pub(crate) mod homa;
mod mptcp;
mod rdma;
mod tcp;
pub(crate) mod uet;

pub use ends::{Endpoint, Limited, Marked, Receives};
pub use exchange::{
    AckIn, AckOut, Arrived, Beside, Counters, DataIn, Incoming, Outgoing, Standing,
};
use millpond_core::congestion::{Family, Quantity, TransportKind};
use millpond_core::host::Cut;
use millpond_core::importance::{ImportanceParams, Marker};
use millpond_core::packet::{Body, Kind, Packet, flags};
use millpond_core::{FlowId, Mapping, Rate, Time};
use millpond_scenario::plan::Plan;

/// The form of a segment's packets, and what a family has written on them beside the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Of a byte stream, and nothing beside.
    Stream,
    Rdma(rdma::Request),
    Homa(homa::Piece),
    /// Of packets in any order.
    Uet(uet::Piece),
}

impl Form {
    #[inline(always)]
    pub fn is_stream(&self) -> bool {
        matches!(self, Form::Stream)
    }

    /// Writes it on the first packet, which is a stream's so far.
    pub fn write(&self, packet: &mut Packet, slot: u32) {
        match self {
            Form::Stream => {}
            Form::Rdma(asks) => {
                packet.body = Body::RdmaData { seq: packet.seq(), slot, flowcell: 0 };
                packet.flags |= if asks.acknowledgement { flags::ASKS } else { 0 };
            }
            Form::Homa(piece) => piece.write(packet, slot),
            Form::Uet(piece) => piece.write(packet, slot),
        }
    }

    /// How its segment is cut, of which a stream's is cut so.
    pub fn cut(&self, stream: Cut) -> Cut {
        match self {
            Form::Stream | Form::Homa(_) => stream,
            Form::Rdma(asks) => Cut { header: stream.header + u32::from(asks.beyond), ..stream },
            Form::Uet(piece) => piece.cut(stream),
        }
    }
}

/// A connection's sending end. TCP's lies in it, since that is most connections'.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Sender {
    Tcp(tcp::Sender),
    Mptcp(Box<mptcp::Sender>),
    Rdma(Box<rdma::Sender>),
    Homa(Box<homa::Sender>),
    /// Of packets in any order.
    Uet(Box<uet::Sender>),
}

#[derive(Clone, Debug)]
pub enum Receiver {
    Tcp(tcp::Receiver),
    Mptcp(Box<mptcp::Receiver>),
    Rdma(Box<rdma::Receiver>),
    Homa(Box<homa::Receiver>),
    /// Of packets in any order.
    Uet(Box<uet::Receiver>),
}

/// The configuration that the connections of a run share, by family.
#[derive(Clone, Debug)]
pub struct Config {
    /// TCP's transports: the first, which has the others.
    pub tcp: tcp::Config,
    pub mptcp: Vec<mptcp::Config>,
    pub rdma: Vec<rdma::Config>,
    pub homa: Vec<homa::Config>,
    pub uet: Vec<uet::Config>,
    /// By the run's number of a transport: whose it is, and its number there.
    which: Vec<Which>,
}

/// A transport of the run, by its number among its family's.
#[derive(Clone, Copy, Debug)]
enum Which {
    Tcp(u8),
    Mptcp(u8),
    Rdma(u8),
    Homa(u8),
    Uet(u8),
}

/// Asks the family of an end, with the family's own configuration where one is given. TCP is asked
/// for first: of three families together the tag costs twice as much.
macro_rules! each {
    ($end:expr, $name:ident, ($($cfg:ident)?) => $answer:expr) => {
        if let Self::Tcp($name) = $end {
            $(let $cfg = &$cfg.tcp;)?
            $answer
        } else {
            match $end {
                Self::Tcp(_) => unreachable!("it was asked for before"),
                Self::Mptcp($name) => {
                    $(let $cfg = &$cfg.mptcp[..];)?
                    $answer
                }
                Self::Rdma($name) => {
                    $(let $cfg = &$cfg.rdma[..];)?
                    $answer
                }
                Self::Homa($name) => {
                    $(let $cfg = &$cfg.homa[..];)?
                    $answer
                }
                Self::Uet($name) => {
                    $(let $cfg = &$cfg.uet[..];)?
                    $answer
                }
            }
        }
    };
}

/// The questions that an end hands on to its family.
macro_rules! questions {
    () => {};
    (
        $(#[$meta:meta])*
        fn $name:ident(&self $(, $arg:ident: $type:ty)*; $($cfg:ident)?) $(-> $answer:ty)?;
        $($rest:tt)*
    ) => {
        /// The family's answer to the question of this name.
        $(#[$meta])*
        #[inline]
        pub fn $name(&self $(, $arg: $type)* $(, $cfg: &Config)?) $(-> $answer)? {
            each!(self, end, ($($cfg)?) => end.$name($($arg,)* $($cfg)?))
        }
        questions! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        fn $name:ident(&mut self $(, $arg:ident: $type:ty)*; $($cfg:ident)?) $(-> $answer:ty)?;
        $($rest:tt)*
    ) => {
        /// The family's answer to the question of this name.
        $(#[$meta])*
        #[inline]
        pub fn $name(&mut self $(, $arg: $type)* $(, $cfg: &Config)?) $(-> $answer)? {
            each!(self, end, ($($cfg)?) => end.$name($($arg,)* $($cfg)?))
        }
        questions! { $($rest)* }
    };
}

impl Config {
    /// Of a plan's transports: the scenario's, and those that some traffics have for themselves.
    pub fn new(plan: &Plan) -> Config {
        let (mut which, mut plain, mut mptcp) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rdma, mut homa, mut uet) = (Vec::new(), Vec::new(), Vec::new());
        let resolved = |kind| tcp::Config::new(&plan.transport, kind, plan.host.mtu);
        for kind in plan.transports() {
            match kind.demands().family {
                Family::Tcp => {
                    which.push(Which::Tcp(plain.len() as u8));
                    plain.push(resolved(kind));
                }
                Family::Mptcp { subflows, reinjection } => {
                    which.push(Which::Mptcp(mptcp.len() as u8));
                    mptcp.push(mptcp::Config { tcp: resolved(kind), subflows, reinjection });
                }
                Family::Rdma => {
                    which.push(Which::Rdma(rdma.len() as u8));
                    rdma.push(rdma::Config::new(plan, kind, resolved(kind).mss));
                }
                Family::Homa => {
                    let TransportKind::Homa(params) = kind else { continue };
                    which.push(Which::Homa(homa.len() as u8));
                    homa.push(homa::Config::new(plan, params, resolved(kind).mss));
                }
                Family::Uet => {
                    let TransportKind::Uet(params) = kind else { continue };
                    which.push(Which::Uet(uet.len() as u8));
                    uet.push(uet::Config::new(plan, params, resolved(kind).mss));
                }
            }
        }
        // Without any TCP the first is that of a subflow, for what all have in common.
        let mut plain = plain.into_iter();
        let first = plain.next().unwrap_or_else(|| resolved(&plan.transport_kind));
        Config { tcp: first.with_others(plain), mptcp, rdma, homa, uet, which }
    }

    /// The bytes that a connection of a transport may have waiting in its NIC, where its family
    /// bounds them. A queue pair has one packet below it, be that in the NIC's queue or in
    /// transmission, and so has a connection of Ultra Ethernet, which takes turns with others by
    /// packets.
    pub fn nic_bound(&self, which: u8) -> Option<u64> {
        match self.which[usize::from(which)] {
            Which::Rdma(which) => Some(u64::from(self.rdma[usize::from(which)].mss)),
            Which::Uet(which) => Some(u64::from(self.uet[usize::from(which)].mss)),
            Which::Tcp(_) | Which::Mptcp(_) | Which::Homa(_) => None,
        }
    }

    /// Whether NICs ask their queue pairs for each packet: they have no others' packets that wait.
    pub fn nic_pulls(&self) -> bool {
        self.which.iter().all(|which| matches!(which, Which::Rdma(_)))
    }

    /// Whether a host decides which of a transport's connections sends next.
    pub fn is_scheduled(&self, which: u8) -> bool {
        matches!(self.which[usize::from(which)], Which::Homa(_))
    }

    /// Whether a transport's connections hand down packets one by one, and others beside them.
    pub fn is_by_packets(&self, which: u8) -> bool {
        matches!(self.which[usize::from(which)], Which::Homa(_) | Which::Uet(_))
    }

    /// Whether a transport's connections are several subflows.
    pub fn has_subflows(&self, which: u8) -> bool {
        matches!(self.which[usize::from(which)], Which::Mptcp(_))
    }

    /// The markers of the important packets of a new connection, by the run's number of its
    /// transport.
    pub fn markers(&self, params: &ImportanceParams) -> Vec<Option<Marker>> {
        let marker = |which: &Which| match which {
            Which::Tcp(_) | Which::Mptcp(_) | Which::Homa(_) | Which::Uet(_) => {
                Marker::of(params, true)
            }
            Which::Rdma(which) => {
                Marker::of_queue_pair(params, self.rdma[usize::from(*which)].has_clock())
            }
        };
        self.which.iter().map(marker).collect()
    }

    /// The kinds of packets that are counted of families whose ends send some beside their data, by
    /// the family's name, with the names of their counts.
    pub fn counted(&self) -> impl Iterator<Item = (&'static str, &'static [(Kind, &'static str)])> {
        let homa = (!self.homa.is_empty()).then_some(("homa", homa::COUNTED));
        let uet = (!self.uet.is_empty()).then_some(("uet", uet::COUNTED));
        homa.into_iter().chain(uet)
    }

    /// The most subflows that a connection has.
    pub fn subflows(&self) -> u8 {
        self.mptcp.iter().map(|cfg| cfg.subflows).max().unwrap_or(1)
    }
}

/// The quantities that the control laws of a plan's connections steer by, each once.
pub fn quantities(plan: &Plan) -> Vec<Quantity> {
    let mut all: Vec<Quantity> = Vec::new();
    for quantity in plan.transports().flat_map(|kind| kind.quantities()) {
        if !all.contains(&quantity) {
            all.push(quantity);
        }
    }
    all
}

impl Sender {
    /// The sending end of a connection that follows transport `which` of the run, with nothing
    /// written. One that opens by a handshake begins with a SYN once there is something to send;
    /// otherwise the other side has opened it, or nobody had to. `line` is the rate of its host's
    /// link, `flow` the connection's.
    pub fn new(which: u8, handshake: bool, line: Rate, flow: FlowId, cfg: &Config) -> Sender {
        match (cfg.which[usize::from(which)], handshake) {
            (Which::Tcp(which), true) => Sender::Tcp(tcp::Sender::following(which, &cfg.tcp)),
            (Which::Tcp(which), false) => Sender::Tcp(tcp::Sender::established(which, &cfg.tcp)),
            (Which::Mptcp(which), _) => {
                Sender::Mptcp(Box::new(mptcp::Sender::new(which, handshake, &cfg.mptcp)))
            }
            (Which::Rdma(which), _) => {
                Sender::Rdma(Box::new(rdma::Sender::new(which, line, &cfg.rdma)))
            }
            (Which::Homa(which), _) => Sender::Homa(Box::new(homa::Sender::new(which))),
            (Which::Uet(which), _) => {
                Sender::Uet(Box::new(uet::Sender::new(which, flow, &cfg.uet)))
            }
        }
    }

    /// The family's answer to [`Endpoint::poll_send`].
    #[inline(always)] // called from two places, of which one is the per-packet path
    pub fn poll_send(&mut self, now: Time, most: u32, cfg: &Config) -> Option<Outgoing> {
        each!(self, end, (cfg) => end.poll_send(now, most, cfg))
    }

    questions! {
        fn write(&mut self, now: Time, bytes: u64;);
        fn write_next(&mut self, now: Time, bytes: u64;);
        fn would_send(&self; cfg) -> bool;
        fn beside(&mut self, now: Time, slot: u32; cfg) -> Option<Beside>;
        fn urgency(&mut self, now: Time; cfg) -> Option<u64>;
        fn urgency_still(&self;) -> Option<u64>;
        fn pass_by(&mut self, subflows: u64;);
        fn shares_nic(&mut self, senders: u32;);
        fn on_ack(&mut self, now: Time, ack: &AckIn; cfg);
        fn on_syn_ack(&mut self, now: Time, stamp: Time, mapping: Option<Mapping>; cfg);
        fn on_packet(&mut self, now: Time, incoming: &Incoming; cfg) -> Option<Body>;
        fn on_rtt(&mut self, rtt: Time; cfg);
        fn deadline(&self;) -> Time;
        fn on_timer(&mut self, now: Time; cfg);
        fn waits(&self;) -> bool;
        fn freezes(&self;) -> bool;
        fn thaw(&mut self, now: Time, held: Time;);
        fn acked(&self;) -> u64;
        fn written(&self;) -> u64;
        fn sent(&self;) -> u64;
        fn is_done(&self;) -> bool;
        fn srtt(&self;) -> Time;
        fn rto(&self;) -> Time;
        fn aborted(&self;) -> u32;
        fn counters(&self;) -> Counters;
        fn standing(&self; cfg) -> Standing;
        fn peek(&mut self, now: Time, most: u32; cfg) -> Option<Outgoing>;
        fn packets_out(&self; cfg) -> u32;
        fn is_probing(&self;) -> bool;
        fn accepted(&mut self;);
        fn refused(&mut self, now: Time, reduces: bool; cfg);
        fn reduce(&mut self, now: Time; cfg);
        fn sent_in_order(&self;) -> u64;
        fn is_recovering(&self;) -> bool;
        fn is_held(&self;) -> bool;
        fn ends_message(&self, at: u64;) -> bool;
        fn rewinds(&self;) -> u32;
        fn forced(&self, seq: u64, len: u32; cfg) -> Option<Outgoing>;
        fn forced_out(&mut self;);
        fn displaced(&mut self, len: u32;);
    }
}

impl Receiver {
    /// The receiving end of a connection that follows transport `which` of the run.
    pub fn new(which: u8, cfg: &Config) -> Receiver {
        match cfg.which[usize::from(which)] {
            Which::Tcp(which) => Receiver::Tcp(tcp::Receiver::following(which)),
            Which::Mptcp(which) => {
                Receiver::Mptcp(Box::new(mptcp::Receiver::new(which, &cfg.mptcp)))
            }
            Which::Rdma(which) => Receiver::Rdma(Box::new(rdma::Receiver::new(which))),
            Which::Homa(which) => Receiver::Homa(Box::new(homa::Receiver::new(which))),
            Which::Uet(which) => Receiver::Uet(Box::new(uet::Receiver::new(which))),
        }
    }

    questions! {
        fn on_data(&mut self, now: Time, data: DataIn; cfg) -> Arrived;
        fn on_packet(&mut self, now: Time, packet: &Packet, slot: u32; cfg)
            -> (Option<Arrived>, Option<Beside>);
        fn expected(&self, mapping: Option<Mapping>;) -> u64;
        fn deadline(&self;) -> Time;
        fn on_timer(&mut self, now: Time; cfg) -> Option<(AckOut, Option<u8>)>;
        fn acknowledge(&mut self, is_marked: bool; cfg) -> Option<AckOut>;
        fn echoes(&self; cfg) -> bool;
        fn aborted(&self;) -> u32;
        fn priority(&self, kind: Kind; cfg) -> Option<u8>;
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    /// There are as many as connections: another family costs the others nothing.
    #[test]
    fn an_end_is_as_small_as_a_tcps() {
        assert_eq!(size_of::<Sender>(), size_of::<tcp::Sender>());
        assert_eq!(size_of::<Receiver>(), size_of::<tcp::Receiver>());
    }
}
