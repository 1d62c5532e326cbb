//! Samples of connections: their sending ends as the kernel reports them (TCP_INFO).
//!
//! Invariant: rows are in the order of (time, flow), and a row's time is that of its sample.

use super::super::connection::{Connection, End, Role, Side};
use super::super::info::TcpInfo;
use super::*;
use millpond_results::ConnectionRecord;
use millpond_scenario::plan::ConnectionCapture;
use millpond_sim::samples;

impl Engine<'_> {
    /// The first sample of connections is to come, if the plan has any.
    pub(super) fn begin_samples(&mut self) {
        if let Some(capture) = &self.plan.capture.connections {
            self.chosen = Some(Chosen::new(capture.clone()));
            self.set_timer(capture.every, Timer::Sample);
        }
    }

    /// Takes the sample that was due at `at`.
    pub(super) fn sample(&mut self, at: Time) {
        let Engine { plan, connections, chosen: Some(chosen), .. } = self else { return };
        let Some(capture) = &plan.capture.connections else { return };
        let now = self.clock.now();
        let ends = connections.iter().flat_map(|(_, connection)| {
            let ends = [Side::Client, Side::Server].map(|side| (connection, side));
            ends.into_iter().filter_map(|(c, side)| Some((flow(capture, c, side)?, (c, side))))
        });
        let open: BTreeMap<FlowId, (&Connection, Side)> = ends.collect();
        let chosen = chosen.choose(|_| open.keys().copied().collect());
        let rows = chosen.iter().filter_map(|flow| {
            let (connection, side) = open.get(flow)?;
            row(now, *flow, connection, *side)
        });
        let mut goes_on = true;
        for row in rows {
            goes_on &= self.sink.connection(row);
        }
        self.goes_on &= goes_on;
        let mut next = samples::Clock::new(Some(capture.every), at);
        next.skip(now);
        self.set_timer(next.due(), Timer::Sample);
    }
}

/// The flow that an end of a connection sends, if the capture means it and it is under way.
fn flow(capture: &ConnectionCapture, c: &Connection, side: Side) -> Option<FlowId> {
    let flow = c.opening.flow + u32::from(side == Side::Server);
    let (src, dst) = c.pair(side);
    let is_named = capture.flows.as_ref().is_none_or(|flows| flows.binary_search(&flow).is_ok());
    if !is_named || !capture.means(c.opening.class, src, dst) {
        return None;
    }
    let is_under_way = match (c.opening.role, side) {
        (Role::OneWay | Role::Shuffle { .. } | Role::Rpc { .. }, Side::Client) => true,
        // A request is no flow of the results: it must be named.
        (Role::Exchange { .. }, Side::Client) => capture.flows.is_some() && has_more(&c.client),
        (Role::Exchange { .. } | Role::Rpc { .. }, Side::Server) => {
            c.server.as_ref().is_some_and(|server| server.first_sent.is_some())
        }
        (Role::OneWay | Role::Shuffle { .. }, Side::Server) | (Role::Probe { .. }, _) => false,
    };
    is_under_way.then_some(flow)
}

/// Whether an end that was to send has bytes which are not acknowledged.
fn has_more(end: &End) -> bool {
    end.first_sent.is_none() || end.to_send > 0 || socket::unacknowledged(&end.socket) > 0
}

fn row(at: Time, flow: FlowId, c: &Connection, side: Side) -> Option<ConnectionRecord> {
    let info = TcpInfo::of(&c.end(side)?.socket);
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
