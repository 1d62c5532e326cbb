//! Records of flows, calls and queries, as the simulator writes them.
//!
//! Three fields differ. `retransmitted` and `timeouts` include the SYN's, as TCP_INFO does.
//! `sender_last` is the kernel's time stamp of the last acknowledgement (SO_TIMESTAMPING). It can
//! be before `finish`: the kernel acknowledges bytes that the application has not read.
//!
//! Invariant: every other field means what it means in the simulator; `path_changes` is unknown.

use super::connection::{Opening, Role};
use super::info::TcpInfo;
use millpond_core::{FlowId, Time};
use millpond_results::{FlowRecord, QueryRecord};
use millpond_scenario::IdealTimes;
use millpond_scenario::plan::Plan;
use millpond_scenario::traffic::Query;

/// Makes records.
pub struct Recorder<'a> {
    /// Whose.
    pub plan: &'a Plan,
    ideal: IdealTimes,
}

/// A flow as it stands.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// What its client has opened.
    pub opening: &'a Opening,
    /// Whether a response is under way.
    pub answers: bool,
    /// When its last byte was read.
    pub delivered: Option<Time>,
    /// When its sender's socket was offered the first byte.
    pub first_sent: Option<Time>,
    /// When its last byte was acknowledged.
    pub acked: Option<Time>,
    /// Its sender's end.
    pub sent: TcpInfo,
    /// Its receiver's, if the flow has begun.
    pub received: TcpInfo,
}

impl<'a> Recorder<'a> {
    /// Makes a plan's.
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

    /// A flow as it stands.
    pub fn flow(&self, seen: &Seen<'_>) -> FlowRecord {
        let ideal = seen.delivered.map(|_| self.ideal(seen.opening));
        FlowRecord {
            finish: seen.delivered,
            sender_first: seen.first_sent,
            sender_last: seen.acked,
            ideal: ideal.unwrap_or_default(),
            retransmitted: seen.sent.retransmitted,
            timeouts: seen.sent.timeouts,
            out_of_order: Some(seen.received.out_of_order),
            srtt: seen.sent.srtt,
            rto: seen.sent.rto,
            ..self.opening(seen.opening)
        }
    }

    /// The call of a persistent connection that was asked at `asked`.
    pub fn call(&self, o: &Opening, asked: Time, finish: Option<Time>) -> FlowRecord {
        let record = self.opening(&Opening { start: asked, ..*o });
        let Opening { src, dst, bytes, class, start, .. } = *o;
        let ideal = finish.map(|_| {
            // The first call waits for the connection.
            let opens = asked == start && self.plan.opens_by_handshake(class);
            let handshake =
                if opens { self.ideal.handshake(self.plan, src, dst) } else { Time::ZERO };
            let call = self.ideal.call(self.plan, (src, dst), (bytes, record.bytes));
            handshake.saturating_add(call)
        });
        FlowRecord { finish, ideal: ideal.unwrap_or_default(), ..record }
    }

    /// The same flow alone in the empty network.
    fn ideal(&self, o: &Opening) -> Time {
        let plan = self.plan;
        let whole = match o.role {
            Role::Exchange { response } => {
                let thinks = self.thinks(o.class, o.flow + 1);
                self.ideal.exchange(plan, (o.src, o.dst), (o.bytes, response), thinks)
            }
            _ => self.ideal.flow(plan, o.src, o.dst, o.bytes),
        };
        match plan.opens_by_handshake(o.class) {
            true => whole,
            false => whole.saturating_sub(self.ideal.handshake(plan, o.src, o.dst)),
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
