//! A general port's pauses: frames that it gets, the one that it sends, and when pauses end.
//!
//! Invariant: a queue is paused from a frame until its time has passed or another frame resumes it.

use super::GeneralPort;
use crate::switch::pause::{FRAME_BYTES, PauseTarget};
use crate::switch::queue::{DynamicQueues, Queue};
use crate::units::Time;

/// The state that the neighbour's pause frames have set.
#[derive(Clone, Debug, Default)]
pub(super) struct Pauses {
    /// By queue, as far as any was paused: from when and until when it is or was last.
    spans: Vec<(Time, Time)>,
    /// Time that spans before those have lasted, summed over queues.
    lasted: Time,
    /// The last end of a pause for which the driver was asked to call. As all pauses of a link last
    /// as long, the next ends later.
    called_at: Time,
}

impl GeneralPort {
    /// A pause frame from the neighbour: stop `target` until then; a time that has passed resumes
    /// it. Follow with [`GeneralPort::serve`].
    pub fn on_pause(&mut self, now: Time, target: PauseTarget, until: Time) {
        if let (PauseTarget::Flow(vfid), Queue::DynamicQueues(flows)) = (target, &mut self.queue) {
            return flows.pause(now, vfid, until);
        }
        let Some(queue) = target.queue() else { return };
        let Pauses { spans, lasted: sum, .. } = &mut **self.pauses.get_or_insert_default();
        spans.resize(spans.len().max(queue as usize + 1), (Time::ZERO, Time::ZERO));
        *sum += lasted(std::mem::replace(&mut spans[queue as usize], (now, until)), now);
        let mut counts = true;
        if let Some(watchdog) = &mut self.watchdog
            && until > now
        {
            watchdog.on_pause(now, queue);
            counts = !watchdog.has_storm(queue);
        }
        self.paused.put(queue, until > now && counts);
    }

    /// A frame of this port's own, for the neighbour: it waits for the packet in transmission and
    /// for nothing else. When its last bit leaves.
    pub fn send_frame(&mut self, now: Time) -> Time {
        self.busy_until = self.busy_until.max(now) + self.rules.rate.time(FRAME_BYTES);
        self.busy_until
    }

    pub fn is_paused(&self, target: PauseTarget) -> bool {
        match target {
            PauseTarget::Priority(priority) => self.paused.has(priority & 7),
            PauseTarget::Flow(vfid) => self.flows().is_some_and(|flows| flows.is_paused(vfid)),
        }
    }

    /// Until when a target is paused, if it is at `now`.
    pub fn resumes_at(&self, now: Time, target: PauseTarget) -> Option<Time> {
        let until = match target {
            PauseTarget::Flow(vfid) => self.flows()?.paused_until(vfid)?,
            PauseTarget::Priority(priority) => {
                let spans = &self.pauses.as_ref()?.spans;
                spans.get(usize::from(priority & 7))?.1
            }
        };
        (until > now).then_some(until)
    }

    /// How long queues have been paused by `now`, summed over them.
    pub fn paused_time(&self, now: Time) -> Time {
        let of_flows = self.flows().map_or(Time::ZERO, |flows| flows.paused_time(now));
        let Some(pauses) = &self.pauses else { return of_flows };
        pauses.spans.iter().fold(pauses.lasted + of_flows, |sum, span| sum + lasted(*span, now))
    }

    pub(super) fn expire_pauses(&mut self, now: Time) {
        let Some(pauses) = &self.pauses else { return };
        for (queue, _) in pauses.spans.iter().enumerate().filter(|(_, span)| span.1 <= now) {
            self.paused.put(queue as u8, false);
        }
    }

    /// When the first pause ends, or never.
    pub(super) fn next_resume(&self) -> Time {
        let Some(pauses) = &self.pauses else {
            return self.flows().map_or(Time::MAX, DynamicQueues::next_resume);
        };
        let paused =
            pauses.spans.iter().enumerate().filter(|(queue, _)| self.paused.has(*queue as u8));
        paused.map(|(_, span)| span.1).min().unwrap_or(Time::MAX)
    }

    /// The time for which to ask the driver, unless it has been asked already: other priorities may
    /// have been served since.
    pub(super) fn call(&mut self, at: Time) -> Option<Time> {
        if let Some(pauses) = &mut self.pauses {
            if pauses.called_at == at {
                return None;
            }
            if at != self.busy_until {
                pauses.called_at = at;
            }
        } else if let Queue::DynamicQueues(flows) = &mut self.queue {
            return flows.asks(at, at != self.busy_until).then_some(at);
        }
        Some(at)
    }
}

/// How much of a span is over by `now`.
fn lasted(span: (Time, Time), now: Time) -> Time {
    span.1.min(now).saturating_sub(span.0)
}
