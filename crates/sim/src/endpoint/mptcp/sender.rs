//! The sending end: which subflow sends the next bytes of the stream.
//!
//! The scheduler is the MPTCP kernel's default (v0.8x): of the subflows whose windows have room,
//! the one with the lowest smoothed round-trip time; one without a sample comes first. A subflow
//! gets bytes when it sends them and not before, so nothing waits behind a full window. The first
//! subflow opens the connection; the others join once it is open, while there is something to send.
//!
//! A subflow itself repairs what it has sent, as any TCP. At a timeout what it had in flight is
//! *reinjected*: others send the same bytes as new data of theirs. The subflow still repairs its
//! own sequence space, and the receiver drops what it has.
//!
//! Invariant: `acked ≤ next ≤ written`; each byte that a subflow has in flight has one mapping; all
//! that a subflow was given is sent.

use super::{Config, tcp};
use crate::endpoint::{AckIn, Counters, Endpoint, Limited, Marked, Outgoing, Standing};
use millpond_core::congestion::Path;
use millpond_core::{Mapping, Time};
use std::collections::VecDeque;

/// Bytes of a subflow that are in flight, in one piece of the stream.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    seq: u64,
    data: u64,
    len: u64,
    /// Other subflows are to send it.
    is_reinjected: bool,
}

#[derive(Clone, Debug)]
struct Subflow {
    tcp: tcp::Sender,
    /// The chunks in flight, in the order of both offsets of the subflow.
    chunks: VecDeque<Chunk>,
}

/// A piece of the stream that another subflow than `by` is to send again.
#[derive(Clone, Copy, Debug)]
struct Reinjection {
    from: u64,
    to: u64,
    by: u8,
}

#[derive(Clone, Debug)]
pub struct Sender {
    subflows: Box<[Subflow]>,
    /// Subflows by smoothed round-trip time: the scheduler's order.
    order: Box<[u8]>,
    /// The paths that the control law is shown.
    paths: Box<[Path]>,
    written: u64,
    /// The first byte that no subflow was given.
    next: u64,
    /// The first byte that the receiver lacks.
    acked: u64,
    again: VecDeque<Reinjection>,
    /// The rest of a segment that several mappings cover.
    rest: Option<Outgoing>,
    /// As bits: the subflows whose NIC has no room.
    full: u64,
    deadline: Time,
    /// Which of the run's MPTCP transports it follows.
    which: u8,
}

/// A subflow's segment; its place in the stream is to be found.
fn on_subflow(out: Outgoing, subflow: u8) -> Outgoing {
    Outgoing { mapping: Some(Mapping { subflow, data: 0 }), ..out }
}

impl Sender {
    /// A connection that follows MPTCP transport `which`; with a handshake, or open on all paths.
    pub fn new(which: u8, handshake: bool, cfg: &[Config]) -> Sender {
        let own = &cfg[usize::from(which)];
        let tcp = match handshake {
            true => tcp::Sender::following(0, &own.tcp),
            false => tcp::Sender::established(0, &own.tcp),
        };
        let subflow = Subflow { tcp, chunks: VecDeque::new() };
        let path = Path { cwnd: own.tcp.initial_window, rtt: Time::ZERO, quality: 0 };
        Sender {
            subflows: vec![subflow; usize::from(own.subflows)].into(),
            order: (0..own.subflows).collect(),
            paths: vec![path; usize::from(own.subflows)].into(),
            written: 0,
            next: 0,
            acked: 0,
            again: VecDeque::new(),
            rest: None,
            full: 0,
            deadline: Time::MAX,
            which,
        }
    }

    fn has_room(&self, subflow: u8) -> bool {
        self.full >> subflow & 1 == 0
    }
    fn next_segment(&mut self, now: Time, max_len: u32, cfg: &Config) -> Option<Outgoing> {
        if let Some(rest) = self.rest.take() {
            return Some(self.map(rest));
        }
        for at in 0..self.order.len() {
            let n = self.order[at];
            if !self.has_room(n) {
                continue;
            }
            if let Some(out) = self.subflows[usize::from(n)].tcp.poll_send(now, max_len, &cfg.tcp) {
                return Some(self.map(on_subflow(out, n)));
            }
        }
        self.reinject(now, max_len, cfg).or_else(|| self.send_new(now, max_len, cfg))
    }

    fn reinject(&mut self, now: Time, max_len: u32, cfg: &Config) -> Option<Outgoing> {
        while let Some(piece) = self.again.front_mut() {
            piece.from = piece.from.max(self.acked);
            let Reinjection { from, to, by } = *piece;
            if from >= to {
                self.again.pop_front();
                continue;
            }
            let (out, taken) = self.offer(now, from, to - from, Some(by), max_len, cfg)?;
            if let Some(piece) = self.again.front_mut() {
                piece.from += taken;
            }
            return Some(out);
        }
        None
    }

    fn send_new(&mut self, now: Time, max_len: u32, cfg: &Config) -> Option<Outgoing> {
        let unsent = self.written - self.next;
        let allowed = cfg.tcp.window_limit.saturating_sub(self.next - self.acked);
        let more = match unsent > allowed && cfg.tcp.silly_window_avoidance {
            true => allowed - allowed % u64::from(cfg.tcp.mss),
            false => unsent.min(allowed),
        };
        if more == 0 {
            return None;
        }
        let (out, taken) = self.offer(now, self.next, more, None, max_len, cfg)?;
        self.next += taken;
        Some(out)
    }

    /// Offers `more` bytes of the stream from `data` on to the subflows in their order, but for
    /// `not`. The segment that one of them makes, and how much of what was offered it takes.
    fn offer(
        &mut self,
        now: Time,
        data: u64,
        more: u64,
        not: Option<u8>,
        max_len: u32,
        cfg: &Config,
    ) -> Option<(Outgoing, u64)> {
        for at in 0..self.order.len() {
            let n = self.order[at];
            let may_join = n == 0 || self.subflows[0].tcp.is_open();
            if not == Some(n) || !may_join || !self.has_room(n) {
                continue;
            }
            let subflow = &mut self.subflows[usize::from(n)];
            let Some(out) = subflow.tcp.offer(now, more, max_len, &cfg.tcp) else { continue };
            let out = on_subflow(out, n);
            if out.syn || out.retransmission {
                return Some((self.map(out), 0));
            }
            let len = u64::from(out.len);
            match subflow.chunks.back_mut() {
                // Bytes that follow in both are one piece, until others are to send it.
                Some(last) if last.data + last.len == data && !last.is_reinjected => {
                    last.len += len
                }
                _ => subflow.chunks.push_back(Chunk {
                    seq: out.seq,
                    data,
                    len,
                    is_reinjected: false,
                }),
            }
            return Some((self.map(out), len));
        }
        None
    }

    /// Gives a segment its place in the stream; what another mapping covers of it comes next.
    fn map(&mut self, mut out: Outgoing) -> Outgoing {
        if out.syn {
            return out;
        }
        let Some(mapping) = &mut out.mapping else { return out };
        let chunks = &self.subflows[usize::from(mapping.subflow)].chunks;
        let after = chunks.partition_point(|chunk| chunk.seq <= out.seq);
        let Some(chunk) = after.checked_sub(1).map(|at| chunks[at]) else { return out };
        let inside = out.seq - chunk.seq;
        mapping.data = chunk.data + inside;
        let fits = chunk.len - inside;
        if u64::from(out.len) > fits {
            let len = out.len - fits as u32;
            self.rest = Some(Outgoing { seq: out.seq + fits, len, cwr: false, ..out });
            out.len = fits as u32;
        }
        out
    }

    /// The subflow that the scheduler asks first among those that are open.
    fn nearest(&self) -> &tcp::Sender {
        let open = |n: &&u8| self.subflows[usize::from(**n)].tcp.srtt() > Time::ZERO;
        let n = self.order.iter().find(open).copied().unwrap_or(0);
        &self.subflows[usize::from(n)].tcp
    }

    /// After something has happened to subflows: their order, and the time to look again.
    fn arrange(&mut self) {
        let subflows = &self.subflows;
        self.order.sort_by_key(|n| (subflows[usize::from(*n)].tcp.srtt(), *n));
        self.deadline =
            subflows.iter().map(|subflow| subflow.tcp.deadline()).min().unwrap_or(Time::MAX);
    }
}

impl Endpoint for Sender {
    type Config = [Config];

    fn write(&mut self, _now: Time, bytes: u64) {
        self.written += bytes;
    }

    /// First the segments that a subflow has to send of its own (repairs, SYNs); then reinjections;
    /// then new data.
    fn poll_send(&mut self, now: Time, max_len: u32, cfg: &[Config]) -> Option<Outgoing> {
        let cfg = &cfg[usize::from(self.which)];
        let out = self.next_segment(now, max_len, cfg);
        self.deadline =
            self.subflows.iter().map(|subflow| subflow.tcp.deadline()).min().unwrap_or(Time::MAX);
        out
    }

    /// Whether a subflow has something of its own to send, or could have room for more of the
    /// stream: it may turn out to be too little.
    fn would_send(&self, cfg: &[Config]) -> bool {
        let cfg = &cfg[usize::from(self.which)];
        let more = self.next < self.written || !self.again.is_empty();
        let could = |subflow: &Subflow| {
            subflow.tcp.would_send(&cfg.tcp) || (more && subflow.tcp.has_room(&cfg.tcp))
        };
        self.rest.is_some() || self.subflows.iter().any(could)
    }

    fn pass_by(&mut self, subflows: u64) {
        self.full = subflows;
    }

    fn on_ack(&mut self, now: Time, ack: &AckIn, cfg: &[Config]) {
        let cfg = &cfg[usize::from(self.which)];
        let Some(Mapping { subflow, data }) = ack.mapping else { return };
        let n = usize::from(subflow);
        if n >= self.subflows.len() {
            return;
        }
        self.acked = self.acked.max(data.min(self.next));
        for (path, subflow) in self.paths.iter_mut().zip(&self.subflows) {
            *path = subflow.tcp.path();
        }
        let own = &mut self.subflows[n];
        own.tcp.couple(n, &self.paths, &cfg.tcp);
        own.tcp.on_ack(now, ack, &cfg.tcp);
        let una = own.tcp.acked();
        while own.chunks.front().is_some_and(|chunk| chunk.seq + chunk.len <= una) {
            own.chunks.pop_front();
        }
        self.arrange();
    }

    fn on_syn_ack(&mut self, now: Time, stamp: Time, mapping: Option<Mapping>, cfg: &[Config]) {
        let cfg = &cfg[usize::from(self.which)];
        let subflow = usize::from(mapping.unwrap_or_default().subflow);
        if let Some(subflow) = self.subflows.get_mut(subflow) {
            subflow.tcp.on_syn_ack(now, stamp, mapping, &cfg.tcp);
        }
        self.arrange();
    }

    fn on_rtt(&mut self, rtt: Time, cfg: &[Config]) {
        self.subflows[0].tcp.on_rtt(rtt, &cfg[usize::from(self.which)].tcp);
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.deadline
    }

    fn on_timer(&mut self, now: Time, cfg: &[Config]) {
        if now < self.deadline {
            return;
        }
        let cfg = &cfg[usize::from(self.which)];
        for (n, subflow) in self.subflows.iter_mut().enumerate() {
            let timeouts = subflow.tcp.counters().timeouts;
            subflow.tcp.on_timer(now, &cfg.tcp);
            if !cfg.reinjection || subflow.tcp.counters().timeouts == timeouts {
                continue;
            }
            let una = subflow.tcp.acked();
            for chunk in subflow.chunks.iter_mut().filter(|chunk| !chunk.is_reinjected) {
                chunk.is_reinjected = true;
                let from = chunk.data + una.saturating_sub(chunk.seq);
                self.again.push_back(Reinjection { from, to: chunk.data + chunk.len, by: n as u8 });
            }
        }
        self.arrange();
    }

    fn thaw(&mut self, now: Time, held: Time) {
        self.subflows.iter_mut().for_each(|subflow| subflow.tcp.thaw(now, held));
        self.deadline =
            self.subflows.iter().map(|subflow| subflow.tcp.deadline()).min().unwrap_or(Time::MAX);
    }

    fn acked(&self) -> u64 {
        self.acked
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn sent(&self) -> u64 {
        self.next
    }

    /// The smoothed round-trip time of the subflow that is asked first.
    fn srtt(&self) -> Time {
        self.nearest().srtt()
    }

    fn rto(&self) -> Time {
        self.nearest().rto()
    }

    fn counters(&self) -> Counters {
        let mut sum = Counters { retransmitted: 0, timeouts: 0 };
        for subflow in &self.subflows {
            let its = subflow.tcp.counters();
            sum.retransmitted += its.retransmitted;
            sum.timeouts += its.timeouts;
        }
        sum
    }

    /// Windows are summed over the subflows; the state is that of the one that is worst off.
    fn standing(&self, cfg: &[Config]) -> Standing {
        let cfg = &cfg[usize::from(self.which)].tcp;
        let mut sum = self.subflows[0].tcp.standing(cfg);
        let worse = ["open", "disorder", "recovery", "loss"];
        let rank = |state: &str| worse.iter().position(|other| *other == state);
        for subflow in &self.subflows[1..] {
            let its = subflow.tcp.standing(cfg);
            if subflow.tcp.is_open() {
                sum.cwnd += its.cwnd;
                sum.ssthresh = sum.ssthresh.saturating_add(its.ssthresh);
                sum.in_flight += its.in_flight;
                if rank(its.state) > rank(sum.state) {
                    sum.state = its.state;
                }
            }
        }
        sum
    }
}

impl Limited for Sender {}

impl Marked for Sender {
    /// There is no one sequence, and to those who count by it nothing was sent.
    fn sent_in_order(&self) -> u64 {
        0
    }
}
