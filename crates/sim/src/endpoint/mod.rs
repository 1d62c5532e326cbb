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
//! knows neither clock nor network. The host reports to it what has arrived and when, and asks
//! [`Sender::poll_send`] for segments until there is none: then the window is full, or the time of
//! the next departure has not come. It calls `on_timer` once `deadline` has passed, which is the
//! family's one time for everything: a retransmission, a departure, an acknowledgement held back.
//! Deadlines move by plain stores, so the host keeps at most one timer event an end and looks at
//! the deadline when it fires.
//!
//! A new family is a folder with a `Config`, a `Sender` and a `Receiver` that have the functions
//! below, and its name in the lists at the head of this file. A meaning that only its packets have
//! (a NACK, a CNP) is a function more here, which the others answer by doing nothing.
//!
//! Invariant: while something that was sent is unanswered the sender's deadline is set, so a
//! connection always goes on by itself, whatever the network loses, reorders or repeats.

mod exchange;
pub(crate) mod homa;
mod mptcp;
mod rdma;
mod stages;
mod tcp;
pub(crate) mod uet;

pub use exchange::{AckIn, AckOut, Arrived, Counters, DataIn, Outgoing, Standing};
use millpond_core::congestion::{Family, Quantity, TransportKind};
use millpond_core::importance::{ImportanceParams, Marker};
use millpond_core::packet::Kind;
use millpond_core::{Ecn, FlowId, Mapping, Rate, Sack, Time};
use millpond_scenario::plan::Plan;
pub use rdma::{Answer, Request};

/// A connection's sending end. TCP's lies in it, since that is most connections'.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Sender {
    /// TCP's.
    Tcp(tcp::Sender),
    /// MPTCP's.
    Mptcp(Box<mptcp::Sender>),
    /// A queue pair's.
    Rdma(Box<rdma::Sender>),
    /// Of messages.
    Homa(Box<homa::Sender>),
    /// Of packets in any order.
    Uet(Box<uet::Sender>),
}

/// A connection's receiving end.
#[derive(Clone, Debug)]
pub enum Receiver {
    /// TCP's.
    Tcp(tcp::Receiver),
    /// MPTCP's.
    Mptcp(Box<mptcp::Receiver>),
    /// A queue pair's.
    Rdma(Box<rdma::Receiver>),
    /// Of messages.
    Homa(Box<homa::Receiver>),
    /// Of packets in any order.
    Uet(Box<uet::Receiver>),
}

/// The configuration that the connections of a run share, by family.
#[derive(Clone, Debug)]
pub struct Config {
    /// TCP's transports: the first, which has the others.
    pub tcp: tcp::Config,
    /// MPTCP's.
    pub mptcp: Vec<mptcp::Config>,
    /// Queue pairs'.
    pub rdma: Vec<rdma::Config>,
    /// Homa's.
    pub homa: Vec<homa::Config>,
    /// Ultra Ethernet's.
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
    ($end:expr, $name:ident => $answer:expr) => {
        if let Self::Tcp($name) = $end {
            $answer
        } else {
            match $end {
                Self::Tcp(_) => unreachable!("it was asked for before"),
                Self::Mptcp($name) => $answer,
                Self::Rdma($name) => $answer,
                Self::Homa($name) => $answer,
                Self::Uet($name) => $answer,
            }
        }
    };
    ($end:expr, $cfg:ident, $name:ident => $answer:expr) => {
        if let Self::Tcp($name) = $end {
            let $cfg = &$cfg.tcp;
            $answer
        } else {
            match $end {
                Self::Tcp(_) => unreachable!("it was asked for before"),
                Self::Mptcp($name) => {
                    let $cfg = &$cfg.mptcp[..];
                    $answer
                }
                Self::Rdma($name) => {
                    let $cfg = &$cfg.rdma[..];
                    $answer
                }
                Self::Homa($name) => {
                    let $cfg = &$cfg.homa[..];
                    $answer
                }
                Self::Uet($name) => {
                    let $cfg = &$cfg.uet[..];
                    $answer
                }
            }
        }
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
    /// says so. A queue pair has one packet below it, be that in the NIC's queue or in
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

    /// Whether a transport's connections hand down by a way of their family's.
    pub fn is_scheduled(&self, which: u8) -> bool {
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
    pub fn new(which: u8, handshake: bool, (line, flow): (Rate, FlowId), cfg: &Config) -> Sender {
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

    /// The application appends `bytes` to the stream.
    #[inline]
    pub fn write(&mut self, now: Time, bytes: u64) {
        each!(self, end => end.write(now, bytes))
    }
    /// The same, of an application that has received the answer to all that it has written.
    pub fn write_next(&mut self, now: Time, bytes: u64) {
        if let Sender::Homa(end) = self {
            end.is_answered();
        }
        self.write(now, bytes);
    }
    /// The next segment that may leave now, of at most `max_len` bytes (at least one packet, or
    /// nothing but the end of the stream will fit). To be called until `None`, after everything
    /// that happens to the sender.
    #[inline(always)] // called from two places, of which one is the per-packet path
    pub fn poll_send(&mut self, now: Time, max_len: u32, cfg: &Config) -> Option<Outgoing> {
        each!(self, cfg, end => end.poll_send(now, max_len, cfg))
    }
    /// Subflows, as bits, that get nothing to send for now.
    pub fn pass_by(&mut self, subflows: u64) {
        if let Sender::Mptcp(end) = self {
            end.pass_by(subflows);
        }
    }
    /// Whether [`Sender::poll_send`] would give a segment, if offered room for one of any size.
    pub fn would_send(&self, cfg: &Config) -> bool {
        each!(self, cfg, end => end.would_send(cfg))
    }
    /// Whether a queue pair's next packet may leave now. Where the pace alone keeps it, the
    /// deadline is its departure at the latest.
    pub fn is_ready(&mut self, now: Time, cfg: &Config) -> bool {
        if let Sender::Rdma(end) = self { end.is_ready(now, &cfg.rdma) } else { false }
    }
    /// The same of a queue pair that has just sent.
    pub fn is_ready_still(&self) -> bool {
        matches!(self, Sender::Rdma(end) if end.is_ready_still())
    }
    /// An acknowledgement.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &AckIn, cfg: &Config) {
        if let Sender::Tcp(end) = self {
            end.on_ack(now, ack, &cfg.tcp);
        } else if let Sender::Mptcp(end) = self {
            end.on_ack(now, ack, &cfg.mptcp);
        }
    }
    /// An answer of a queue pair's receiver.
    pub fn on_answer(&mut self, now: Time, answer: &Answer, cfg: &Config) {
        if let Sender::Rdma(end) = self {
            end.on_answer(now, answer, &cfg.rdma);
        }
    }
    /// The answer to a SYN that was handed down at `stamp`, of a subflow or of the connection.
    pub fn on_syn_ack(&mut self, now: Time, stamp: Time, mapping: Option<Mapping>, cfg: &Config) {
        match self {
            Sender::Tcp(end) => end.on_syn_ack(now, stamp, &cfg.tcp),
            Sender::Mptcp(end) => {
                end.on_syn_ack(now, stamp, mapping.unwrap_or_default(), &cfg.mptcp)
            }
            Sender::Rdma(_) | Sender::Homa(_) | Sender::Uet(_) => (),
        }
    }
    /// The message that it sends, of one that sends messages.
    #[inline]
    pub fn message(&mut self) -> Option<&mut homa::Sender> {
        if let Sender::Homa(end) = self { Some(end) } else { None }
    }
    /// Its packets in any order, of one that sends such.
    #[inline]
    pub fn packets(&mut self) -> Option<&mut uet::Sender> {
        if let Sender::Uet(end) = self { Some(end) } else { None }
    }
    /// A round-trip time learned otherwise than by data: the accepting end's, from SYN-ACK to the
    /// ACK of it.
    pub fn on_rtt(&mut self, rtt: Time, cfg: &Config) {
        each!(self, cfg, end => end.on_rtt(rtt, cfg))
    }
    /// When [`Sender::on_timer`] has something to do; `Time::MAX`: never.
    #[inline]
    pub fn deadline(&self) -> Time {
        each!(self, end => end.deadline())
    }
    /// Time has come to `now`; does nothing before the deadline.
    #[inline]
    pub fn on_timer(&mut self, now: Time, cfg: &Config) {
        each!(self, cfg, end => end.on_timer(now, cfg))
    }

    /// Whether no timer of its own lets it send again: it waits for its peer or for room in its
    /// NIC.
    pub fn waits(&self) -> bool {
        if let Sender::Rdma(end) = self { end.waits() } else { self.deadline() == Time::MAX }
    }

    /// Whether its timer can stand still while its flow is held. A queue pair's is its NIC's, which
    /// knows nothing of that.
    pub fn freezes(&self) -> bool {
        !matches!(self, Sender::Rdma(_))
    }
    /// Its flow was held for so long, and its timers stood still.
    pub fn thaw(&mut self, now: Time, held: Time) {
        match self {
            Sender::Tcp(end) => end.thaw(now, held),
            Sender::Mptcp(end) => end.thaw(now, held),
            Sender::Homa(end) => end.thaw(held),
            Sender::Uet(end) => end.thaw(held),
            Sender::Rdma(_) => (),
        }
    }

    /// Bytes acknowledged.
    #[inline]
    pub fn acked(&self) -> u64 {
        each!(self, end => end.acked())
    }
    /// Bytes written.
    #[inline]
    pub fn written(&self) -> u64 {
        each!(self, end => end.written())
    }
    /// Whether something was written and all of it is acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        each!(self, end => end.is_done())
    }
    /// The smoothed round-trip time, zero before the first sample.
    pub fn srtt(&self) -> Time {
        each!(self, end => end.srtt())
    }
    /// The retransmission timeout now.
    pub fn rto(&self) -> Time {
        each!(self, end => end.rto())
    }
    /// Its counts.
    #[inline]
    pub fn counters(&self) -> Counters {
        each!(self, end => end.counters())
    }
    /// Its state, seen from outside.
    pub fn standing(&self, cfg: &Config) -> Standing {
        each!(self, cfg, end => end.standing(cfg))
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

    /// A data packet arrives.
    #[inline]
    pub fn on_data(&mut self, now: Time, p: DataIn, cfg: &Config) -> Arrived {
        match self {
            Receiver::Tcp(end) => end.on_data(now, p.seq, p.len, p.ce, p.cwr, p.stamp, &cfg.tcp),
            Receiver::Mptcp(end) => end.on_data(now, &p, &cfg.mptcp),
            Receiver::Rdma(end) => end.on_data(now, &p, &cfg.rdma),
            Receiver::Homa(_) | Receiver::Uet(_) => {
                unreachable!("data of such families goes to their own ends")
            }
        }
    }
    /// The next byte that is expected of the sequence which a packet with this mapping is of.
    #[inline]
    pub fn expected(&self, mapping: Option<Mapping>) -> u64 {
        match self {
            Receiver::Tcp(end) => end.received(),
            Receiver::Mptcp(end) => end.expected(mapping.unwrap_or_default()),
            Receiver::Rdma(end) => end.received(),
            Receiver::Homa(end) => end.received(),
            Receiver::Uet(end) => end.delivered(),
        }
    }
    /// When [`Receiver::on_timer`] has something to do; `Time::MAX`: never.
    #[inline]
    pub fn deadline(&self) -> Time {
        each!(self, end => end.deadline())
    }
    /// The ACK that was held back, if its time has come, and which subflow's it is.
    pub fn on_timer(&mut self, now: Time, cfg: &Config) -> Option<(AckOut, Option<u8>)> {
        match self {
            Receiver::Tcp(end) => end.on_timer(now, &cfg.tcp).map(|ack| (ack, None)),
            Receiver::Mptcp(end) => {
                end.on_timer(now, &cfg.mptcp).map(|(ack, subflow)| (ack, Some(subflow)))
            }
            Receiver::Rdma(_) | Receiver::Uet(_) => None,
            Receiver::Homa(end) => {
                end.on_timer(now, &cfg.homa);
                None
            }
        }
    }
    /// An ACK of all that has arrived, now.
    pub fn acknowledge(&mut self, cfg: &Config) -> Option<AckOut> {
        match self {
            Receiver::Tcp(end) => Some(end.acknowledge(&cfg.tcp)),
            Receiver::Mptcp(_) | Receiver::Rdma(_) | Receiver::Homa(_) | Receiver::Uet(_) => None,
        }
    }
    /// The same of a queue pair, to a packet that was marked or not.
    pub fn answer_now(&mut self, is_marked: bool, cfg: &Config) -> Option<AckOut> {
        if let Receiver::Rdma(end) = self {
            Some(end.acknowledge(is_marked, &cfg.rdma))
        } else {
            None
        }
    }
    /// The message that it receives, of one that receives messages.
    #[inline]
    pub fn message(&mut self) -> Option<&mut homa::Receiver> {
        if let Receiver::Homa(end) = self { Some(end) } else { None }
    }
    /// Its packets in any order, of one that receives such.
    #[inline]
    pub fn packets(&mut self) -> Option<&mut uet::Receiver> {
        if let Receiver::Uet(end) = self { Some(end) } else { None }
    }
    /// Whether its answers to important data are echoes: there is an ACK clock.
    pub fn echoes(&self, cfg: &Config) -> bool {
        if let Receiver::Rdma(end) = self { end.config(&cfg.rdma).has_clock() } else { true }
    }
    /// The priority of an answer, where it is not that of the data.
    pub fn priority(&self, kind: Kind, cfg: &Config) -> Option<u8> {
        if let Receiver::Rdma(end) = self { end.config(&cfg.rdma).priority(kind) } else { None }
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
