//! Records of flows, calls and queries, as the simulator writes them.
//!
//! Three fields differ. `retransmitted` and `timeouts` include the SYN's, as TCP_INFO does.
//! `sender_last` is the kernel's time stamp of the last acknowledgement (SO_TIMESTAMPING). It can
//! be before `finish`: the kernel acknowledges bytes that the application has not read.
//!
//! Invariant: every other field means what it means in the simulator; `path_changes` is unknown.

use super::connection::{Connection, Opening, Role, Side};
use super::info::Socket;
use millpond_core::{FlowId, Time};
use millpond_results::{ConnectionRecord, FlowRecord, QueryRecord};
use millpond_scenario::plan::{ConnectionCapture, Plan};
use millpond_scenario::traffic::Query;
use millpond_scenario::{Ends, Exchange, IdealTimes};
use std::collections::BTreeMap;

pub struct Recorder<'a> {
    pub plan: &'a Plan,
    ideal: IdealTimes,
}

impl<'a> Recorder<'a> {
    /// Makes records of a plan's flows.
    pub fn new(plan: &'a Plan) -> Recorder<'a> {
        Recorder { plan, ideal: IdealTimes::default() }
    }

    /// Time that a server thinks before the answer that has this id.
    pub fn thinks(&self, class: u16, answer: FlowId) -> Time {
        self.plan.traffic.thinking[usize::from(class)].draw(self.plan.seed, answer)
    }

    /// The record of a flow that has not begun.
    pub fn opening(&self, o: &Opening) -> FlowRecord {
        let (flow, src, dst, bytes) = match o.role {
            Role::Exchange { response } | Role::Rpc { response, .. } => {
                (o.flow + 1, o.dst, o.src, response)
            }
            _ => (o.flow, o.src, o.dst, o.bytes),
        };
        let is_call = matches!(o.role, Role::Rpc { .. });
        FlowRecord {
            flow,
            class: o.class,
            src,
            dst,
            bytes,
            start: o.start,
            out_of_order: (!is_call).then_some(0),
            is_call,
            query: o.query,
            counted: o.start >= self.plan.warm_up,
            ..FlowRecord::default()
        }
    }

    /// A flow as it stands. A response that has not begun has its request's sender.
    pub fn flow<S: Socket>(&self, c: &Connection<S>) -> FlowRecord {
        let sender = match c.opening.role {
            Role::Exchange { .. } if c.answers => Side::Server,
            _ => Side::Client,
        };
        let is_of_sender = c.sender() == Some(sender);
        let (sending, receiving) = (c.end(sender), c.end(sender.other()));
        let sent = sending.map(|end| end.socket.info()).unwrap_or_default();
        let received = receiving.filter(|_| is_of_sender).map(|end| end.socket.info());
        FlowRecord {
            finish: c.delivered,
            sender_first: sending.and_then(|end| end.first_sent),
            sender_last: sending.and_then(|end| end.acked),
            ideal: if c.delivered.is_some() { self.ideal(&c.opening) } else { Time::ZERO },
            retransmitted: sent.retransmitted,
            timeouts: sent.timeouts,
            out_of_order: Some(received.unwrap_or_default().out_of_order),
            srtt: sent.srtt,
            rto: sent.rto,
            ..self.opening(&c.opening)
        }
    }

    /// The record of the flow or call that a connection leaves unfinished.
    pub fn unfinished<S: Socket>(&self, c: &Connection<S>) -> FlowRecord {
        match c.opening.role {
            Role::Rpc { .. } => self.call(c, None),
            _ => self.flow(c),
        }
    }

    /// The present call of a persistent connection.
    pub fn call<S: Socket>(&self, c: &Connection<S>, finish: Option<Time>) -> FlowRecord {
        let record = self.opening(&Opening { start: c.asked, ..c.opening });
        let Opening { src, dst, bytes, class, start, .. } = c.opening;
        let ideal = finish.map(|_| {
            // The first call waits for the connection.
            let opens = c.asked == start && self.plan.opens_by_handshake(class);
            let ends = Ends { class, src, dst };
            let handshake = if opens { self.ideal.handshake(self.plan, ends) } else { Time::ZERO };
            let sizes = Exchange { request: bytes, response: record.bytes };
            handshake.saturating_add(self.ideal.call(self.plan, ends, sizes))
        });
        FlowRecord { finish, ideal: ideal.unwrap_or_default(), ..record }
    }

    /// The same flow alone in the empty network.
    fn ideal(&self, o: &Opening) -> Time {
        let (plan, ends) = (self.plan, Ends { class: o.class, src: o.src, dst: o.dst });
        let whole = match o.role {
            Role::Exchange { response } => {
                let thinks = self.thinks(o.class, o.flow + 1);
                self.ideal.exchange(plan, ends, Exchange { request: o.bytes, response }, thinks)
            }
            _ => self.ideal.flow(plan, ends, o.bytes),
        };
        match plan.opens_by_handshake(o.class) {
            true => whole,
            false => whole.saturating_sub(self.ideal.handshake(plan, ends)),
        }
    }

    /// A query of which so many flows are complete.
    pub fn query(&self, q: &Query, completed: u32, finish: Option<Time>) -> QueryRecord {
        QueryRecord {
            query: q.query,
            class: q.class,
            client: q.client,
            degree: q.degree,
            start: q.at,
            finish,
            completed,
            counted: q.at >= self.plan.warm_up,
        }
    }
}

/// The flow that an end of a connection sends, if the capture means it and it is under way.
pub fn sampled_flow<S: Socket>(
    capture: &ConnectionCapture,
    c: &Connection<S>,
    side: Side,
) -> Option<FlowId> {
    let flow = c.opening.flow + u32::from(side == Side::Server);
    let (src, dst) = c.pair(side);
    let is_named = capture.flows.as_ref().is_none_or(|flows| flows.binary_search(&flow).is_ok());
    if !is_named || !capture.means(c.opening.class, src, dst) {
        return None;
    }
    let is_under_way = match (c.opening.role, side) {
        (Role::OneWay | Role::Shuffle { .. } | Role::Rpc { .. }, Side::Client) => true,
        // A request is no flow of the results: it must be named.
        (Role::Exchange { .. }, Side::Client) => {
            capture.flows.is_some() && (c.client.first_sent.is_none() || c.client.is_sending())
        }
        (Role::Exchange { .. } | Role::Rpc { .. }, Side::Server) => {
            c.server.as_ref().is_some_and(|server| server.first_sent.is_some())
        }
        (Role::OneWay | Role::Shuffle { .. }, Side::Server) | (Role::Probe { .. }, _) => false,
    };
    is_under_way.then_some(flow)
}

/// The flows that a capture means and that are under way, each with the end that sends it.
pub fn under_way<'c, S: Socket>(
    capture: &ConnectionCapture,
    all: impl Iterator<Item = &'c Connection<S>>,
) -> BTreeMap<FlowId, (&'c Connection<S>, Side)> {
    let ends = all.flat_map(|c| [(c, Side::Client), (c, Side::Server)]);
    ends.filter_map(|(c, side)| Some((sampled_flow(capture, c, side)?, (c, side)))).collect()
}

/// The sample of an end that sends a flow; `None`: there is no such end.
pub fn sample<S: Socket>(
    at: Time,
    flow: FlowId,
    c: &Connection<S>,
    side: Side,
) -> Option<ConnectionRecord> {
    let info = c.end(side)?.socket.info();
    let (src, dst) = c.pair(side);
    Some(ConnectionRecord {
        at,
        flow,
        class: c.opening.class,
        src,
        dst,
        state: info.state(),
        cwnd: info.cwnd(),
        ssthresh: info.ssthresh(),
        in_flight: info.in_flight(),
        acked: info.acked(side == Side::Client),
        srtt: Some(info.srtt).filter(|srtt| *srtt > Time::ZERO),
        rto: info.rto,
        retransmitted: info.retransmitted,
        timeouts: info.timeouts,
        // The kernel does not report what its control laws steer by.
        law: Vec::new(),
    })
}
