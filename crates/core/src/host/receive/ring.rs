//! A receive ring with its offload.

use super::*;

/// A receive ring with its offload.
pub(super) struct Ring<K> {
    pub(super) number: u16,
    pub(super) offload: Offload<K, PacketId>,
    pub(super) budget: u32,
    pub(super) coalescing: Time,
    throttle: Time,
    /// No poll is asked for that begins before this.
    pub(super) rests_until: Time,
    pub(super) waiting: VecDeque<PacketId>,
    /// Packets that the offload holds.
    pub(super) held: usize,
    /// A poll is asked for, or follows the one that is worked on.
    pub(super) is_called: bool,
    /// It was to be polled while its core worked.
    pub(super) polls_again: bool,
    /// When the driver was asked to look after what is held; `Time::MAX`: it was not.
    pub(super) timer_at: Time,
    pub(super) polls: u32,
    /// Segments that the offload has let through, in order.
    pub(super) up: VecDeque<Received>,
}

impl<K: Copy + Eq> Ring<K> {
    pub(super) fn new(number: u16, config: &ReceiveConfig) -> Ring<K> {
        Ring {
            number,
            offload: Offload::new(&config.offload),
            budget: config.budget,
            coalescing: config.coalescing,
            throttle: config.throttle,
            rests_until: Time::ZERO,
            waiting: VecDeque::new(),
            held: 0,
            is_called: false,
            polls_again: false,
            timer_at: Time::MAX,
            polls: 0,
            up: VecDeque::new(),
        }
    }

    /// The packets that the next poll will take, their payload, and whether that is its budget.
    pub(super) fn next<W: HostWire>(&self, wire: &mut W) -> (u64, u64, bool) {
        let packets = self.waiting.len().min(self.budget as usize);
        let pool = wire.packets();
        let bytes = self.waiting.iter().take(packets).map(|id| u64::from(pool[*id].payload)).sum();
        (packets as u64, bytes, packets == self.budget as usize)
    }

    /// Takes packets out of the ring and ends the poll.
    pub(super) fn poll<W: HostWire<Flow = K>>(&mut self, now: Time, wire: &mut W) {
        self.rests_until = now.saturating_add(self.throttle);
        let Ring { offload, waiting, held, up, .. } = self;
        for id in waiting.drain(..waiting.len().min(self.budget as usize)) {
            let Some(arrival) = wire.headers(id) else {
                up.push_back(Received::one(id, &wire.packets()[id]));
                continue;
            };
            *held += 1;
            offload.receive(wire.came(now, id), &arrival, id, &mut |released| {
                *held -= released.packets.len();
                up.push_back(merge(released, wire));
            });
        }
        self.flush(now, wire);
    }

    /// Ends the waits that are over by what the driver has seen.
    pub(super) fn flush<W: HostWire<Flow = K>>(&mut self, now: Time, wire: &mut W) {
        let Ring { offload, held, up, .. } = self;
        offload.flush(wire.has_seen(now), &mut |released| {
            *held -= released.packets.len();
            up.push_back(merge(released, wire));
        });
    }

    /// Lets go all that waits or is held.
    pub(super) fn drain<W: HostWire<Flow = K>>(&mut self, now: Time, wire: &mut W) {
        self.budget = u32::MAX;
        self.poll(now, wire);
        let Ring { offload, held, up, .. } = self;
        offload.drain(&mut |released| {
            *held -= released.packets.len();
            up.push_back(merge(released, wire));
        });
    }

    /// Looks for idle flows now and then.
    pub(super) fn age(&mut self, now: Time) {
        self.polls += 1;
        if self.polls.is_multiple_of(EVICTION_POLLS) {
            self.offload.evict(now);
        }
    }

    /// Keeps the timer no later than what is held can wait, and no earlier than the core is free.
    pub(super) fn arm<W: HostWire>(&mut self, free_at: Time, wire: &mut W) {
        let deadline = self.offload.deadline().unwrap_or(Time::MAX).max(free_at);
        if deadline < self.timer_at {
            wire.recall(self.timer_at, Call::Held(self.number));
            self.timer_at = deadline;
            wire.call(deadline, Call::Held(self.number));
        }
    }

    /// The timer has come; whether it is the one that was asked for last.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.timer_at <= now;
        if is_due {
            self.timer_at = Time::MAX;
        }
        is_due
    }
}
