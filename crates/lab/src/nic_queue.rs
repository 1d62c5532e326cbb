//! The packets that wait in a host's NIC, for samples of it.
//!
//! Invariant: a packet counts from just after its arrival at the NIC until just before its first
//! bit leaves.

use millpond_core::Time;
use millpond_core::switch::QueueView;
use std::collections::VecDeque;

/// A packet that has to wait.
struct Waiting {
    arrived: Time,
    starts: Time,
    bytes: u16,
}

/// The packets that wait in a NIC, in order.
#[derive(Default)]
pub struct NicQueue(VecDeque<Waiting>);

impl NicQueue {
    /// A packet arrives, and starts onto the link later.
    pub fn join(&mut self, arrived: Time, starts: Time, bytes: u16) {
        self.0.push_back(Waiting { arrived, starts, bytes });
    }

    /// The packets that wait just before `at`, which no later call may precede.
    pub fn view(&mut self, at: Time) -> QueueView {
        while self.0.front().is_some_and(|packet| packet.starts < at) {
            self.0.pop_front();
        }
        let mut view = QueueView::default();
        for packet in self.0.iter().take_while(|packet| packet.arrived < at) {
            view.packets += 1;
            view.bytes += u64::from(packet.bytes);
        }
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_waits_from_its_arrival_until_it_starts() {
        let mut queue = NicQueue::default();
        let us = Time::from_us;
        queue.join(us(1), us(3), 1500);
        queue.join(us(2), us(5), 100);
        let view = |packets, bytes| QueueView { packets, bytes };
        let expected = [view(0, 0), view(1, 1500), view(2, 1600), view(1, 100), view(1, 100)];
        let seen: Vec<QueueView> = (1..=5).map(|at| queue.view(us(at))).collect();
        assert_eq!(seen, expected);
        assert_eq!(queue.view(us(6)), view(0, 0));
    }
}
