//! The round in which a NIC asks its queue pairs for packets.
//!
//! A NIC holds no packet of a queue pair that waits. When its link is free it asks the queue pairs
//! that may send now, in turn: the one after the last that it has served, in the order of their
//! flows' numbers, which is that of arrivals. A newcomer stands at the end of that order, so it
//! waits for half of the others in the mean. Source: HPCC's released simulator,
//! `RdmaEgressQueue::GetNextQindex`, in the order of opening: here connections that open at one
//! edge of a window have no other order that is the same for any number of partitions.
//!
//! Turns are by packet, as there: packets are of one size but for the last of a message.
//!
//! Where a NIC serves by priority, each priority has a round of its own.
//!
//! Invariant: a queue pair stands in a round exactly while it may send, at its place.

use crate::units::Time;

/// Rounds of a NIC: one for each priority.
const RINGS: usize = 8;

/// The queue pairs of one priority.
#[derive(Clone, Debug, Default)]
struct Ring {
    /// Those that may send, in order: place and slot. A list, since they are few: most wait for
    /// their pace or their window.
    ready: Vec<(u32, u32)>,
    /// The place that was served last.
    last: u32,
}

/// A host's queue pairs, as its NIC asks them.
#[derive(Clone, Debug)]
pub struct Round {
    /// By priority, or one for all.
    rings: Vec<Ring>,
    /// How many queue pairs may send, in all rings.
    ready: usize,
    /// When the NIC will ask again; `Time::MAX`: once a queue pair may send.
    asks_at: Time,
}

impl Round {
    /// Of a NIC without queue pairs; `by_priority`: it serves higher priorities first.
    pub fn new(by_priority: bool) -> Round {
        let rings = vec![Ring::default(); if by_priority { RINGS } else { 1 }];
        Round { rings, ready: 0, asks_at: Time::MAX }
    }

    fn ring(&mut self, priority: u8) -> &mut Ring {
        let number = usize::from(priority) % self.rings.len();
        &mut self.rings[number]
    }

    /// The queue pair at a place may send now, or may not.
    pub fn put(&mut self, priority: u8, place: u32, slot: u32, may_send: bool) {
        let number = usize::from(priority) % self.rings.len();
        let ready = &mut self.rings[number].ready;
        match (ready.binary_search(&(place, slot)), may_send) {
            (Err(at), true) => {
                ready.insert(at, (place, slot));
                self.ready += 1;
            }
            (Ok(at), false) => {
                ready.remove(at);
                self.ready -= 1;
            }
            _ => (),
        }
    }

    /// The queue pair at a place is being served: the next turn is that of the one after it.
    pub fn serve(&mut self, priority: u8, place: u32) {
        self.ring(priority).last = place;
    }

    /// Whether no queue pair may send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ready == 0
    }

    /// The slot whose turn it is among those that `may` names, and the priorities that
    /// `may_ring` does: the highest priority first.
    pub fn next(
        &self,
        mut may_ring: impl FnMut(u8) -> bool,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        for (priority, ring) in self.rings.iter().enumerate().rev() {
            if ring.ready.is_empty() || !may_ring(priority as u8) {
                continue;
            }
            let turn = ring.ready.partition_point(|(place, _)| *place <= ring.last);
            let (upto, after) = ring.ready.split_at(turn);
            if let Some((_, slot)) = after.iter().chain(upto).find(|(_, slot)| may(*slot)) {
                return Some(*slot);
            }
        }
        None
    }

    /// The NIC has to ask at `at`. The call that it replaces (`Time::MAX`: none), unless one is due
    /// by then already.
    pub fn asks(&mut self, now: Time, at: Time) -> Option<Time> {
        let is_due = self.asks_at > now && self.asks_at <= at;
        (!is_due).then(|| std::mem::replace(&mut self.asks_at, at))
    }

    /// Whether the NIC has to ask at `now`, and not only at a time that was replaced.
    pub fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.asks_at == now;
        if is_due {
            self.asks_at = Time::MAX;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(round: &mut Round) -> Option<u32> {
        let slot = round.next(|_| true, |_| true)?;
        round.serve(0, slot); // slots are places here
        Some(slot)
    }

    fn round(ready: &[u32]) -> Round {
        let mut round = Round::new(false);
        for place in ready {
            round.put(0, *place, *place, true);
        }
        round
    }

    #[test]
    fn queue_pairs_take_turns_in_the_order_of_their_flows() {
        let mut round = round(&[1, 2, 3]);
        let served: Vec<_> = (0..7).filter_map(|_| next(&mut round)).collect();
        assert_eq!(served, [1, 2, 3, 1, 2, 3, 1]);
    }

    /// Beside eight others a newcomer waits for none to seven of them, 3.5 in the mean, whoever is
    /// being served when it comes.
    #[test]
    fn newcomer_waits_for_half_of_the_others() {
        let mut waited = 0;
        for served in 1..=8 {
            let mut round = round(&[1, 2, 3, 4, 5, 6, 7, 8]);
            round.serve(0, served);
            let place = 9;
            round.put(0, place, place, true);
            waited +=
                std::iter::from_fn(|| next(&mut round)).take_while(|slot| *slot != place).count();
        }
        assert_eq!(waited, 28);
    }

    #[test]
    fn queue_pair_that_may_not_send_keeps_its_place() {
        let mut round = round(&[1, 2, 3]);
        round.put(0, 2, 2, false);
        assert_eq!([next(&mut round), next(&mut round)], [Some(1), Some(3)]);
        round.put(0, 2, 2, true);
        assert_eq!([next(&mut round), next(&mut round)], [Some(1), Some(2)]);
        assert_eq!(round.next(|_| true, |slot| slot != 3), Some(1), "the third is paused");
        assert_eq!(round.next(|_| false, |_| true), None, "its priority is paused");
    }

    #[test]
    fn higher_priorities_are_asked_first_where_the_nic_serves_by_priority() {
        let of = |by_priority| {
            let mut round = Round::new(by_priority);
            round.put(2, 1, 1, true);
            round.put(5, 2, 2, true);
            round.next(|_| true, |_| true)
        };
        assert_eq!([of(true), of(false)], [Some(2), Some(1)]);
    }

    #[test]
    fn one_call_at_a_time_is_asked_for() {
        let us = Time::from_us;
        let mut round = Round::new(false);
        assert_eq!(round.asks(us(1), us(5)), Some(Time::MAX));
        assert_eq!(round.asks(us(2), us(6)), None, "it is called before");
        assert_eq!(round.asks(us(2), us(4)), Some(us(5)), "that call comes too late");
        assert!(!round.is_due(us(3)) && round.is_due(us(4)) && !round.is_due(us(5)));
        assert_eq!(round.asks(us(5), us(7)), Some(Time::MAX));
    }
}
