//! Samples of connections: their sending ends as the kernel reports them (TCP_INFO).
//!
//! Invariant: rows are in the order of (time, flow), and a row's time is that of its sample.

use super::super::records::{sample, under_way};
use super::*;
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
        let open = under_way(capture, connections.values());
        let chosen = chosen.choose(|_| open.keys().copied().collect());
        let rows = chosen.iter().filter_map(|flow| {
            let (connection, side) = open.get(flow)?;
            sample(now, *flow, connection, *side)
        });
        let mut goes_on = true;
        for row in rows {
            goes_on &= self.sink.connection(row);
        }
        self.ledger.goes_on &= goes_on;
        let mut next = samples::Clock::new(Some(capture.every), at);
        next.skip(now);
        self.set_timer(next.due(), Timer::Sample);
    }
}
