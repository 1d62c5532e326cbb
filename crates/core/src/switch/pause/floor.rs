//! A rate that no pause takes away: what a switch's port serves of a paused priority all the same.
//!
//! The egress queue of TLT's released simulators (`BEgressQueue::DoDequeueRR`) serves, before it
//! asks whom it may, any priority that has had less than its guaranteed bandwidth of 10 Gb/s,
//! paused or not. A priority's account is a time: up to when what has left would have kept a link
//! of that rate busy. So a port that has sent at more than the rate stands still until its account
//! is even, and one that has sent less goes on. It is asked when a packet joins or has left, as
//! there, not when the account becomes even.
//!
//! Invariant: an account never lies before the last departure; what leaves while paused is at most
//! the rate, and two packets.

use crate::packet::PRIORITIES;
use crate::switch::queue::PausedSet;
use crate::units::{Rate, Time};

#[derive(Clone, Debug)]
pub struct Floor {
    rate: Rate,
    /// By priority: until when it has had its rate.
    even_at: [Time; PRIORITIES],
}

impl Floor {
    /// Of a port that has sent nothing.
    pub fn new(rate: Rate) -> Floor {
        Floor { rate, even_at: [Time::ZERO; PRIORITIES] }
    }

    /// Of the queues that are paused, those that have had their rate by `now`.
    pub fn held(&self, mut paused: PausedSet, now: Time) -> PausedSet {
        for (queue, even_at) in self.even_at.iter().enumerate() {
            if *even_at < now {
                paused.put(queue as u8, false);
            }
        }
        paused
    }

    /// A packet of `size` bytes leaves.
    pub fn on_departure(&mut self, priority: u8, size: u64, now: Time) {
        let even_at = &mut self.even_at[priority as usize];
        *even_at = (*even_at + self.rate.transmission_time(size)).max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port of 40 Gb/s, of which 10 are guaranteed: a packet takes 300 ns, and 1.2 us of the
    /// account.
    #[test]
    fn an_account_is_charged_for_all_that_leaves_and_forgiven_while_idle() {
        let mut floor = Floor::new(Rate::from_gbps(10));
        let paused = PausedSet::of(&[3]);
        let holds = |floor: &Floor, ns| floor.held(paused, Time::from_ns(ns)).has(3);
        assert!(!holds(&floor, 1));
        for n in 0..10 {
            floor.on_departure(3, 1_500, Time::from_ns(300 * n));
        }
        // Ten packets: even after 12 us, though they left within 3.
        assert!(holds(&floor, 3_000) && holds(&floor, 12_000) && !holds(&floor, 12_001));
        // Long after, one packet costs nothing and the next its 1.2 us.
        floor.on_departure(3, 1_500, Time::from_us(100));
        assert!(!holds(&floor, 100_300));
        floor.on_departure(3, 1_500, Time::from_ns(100_300));
        assert!(holds(&floor, 101_200) && !holds(&floor, 101_201));
        // Other priorities have accounts of their own.
        assert!(!floor.held(PausedSet::of(&[3, 5]), Time::from_us(101)).has(5));
    }
}
